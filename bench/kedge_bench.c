/* kedge-bench [NAME…] [--format json]: what Kedge promises of its speed and size, measured here and now, each
 * row with the machine's limit or a published figure beside it. docs/benchmarks.md explains the rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_audit.h"
#include "bench/bench_federation.h"
#include "bench/bench_ledger.h"
#include "bench/bench_rule.h"
#include "bench/bench_transport.h"
#include "bench/rows.h"
#include "bench/rows_learn.h"
#include "common/base/err.h"
#include "common/base/try.h"
#include "crypto/sign.h"

static bool json, is_first = true;

static void print_row(const struct row *r)
{
    double ratio = r->baseline > 0 ? r->value / r->baseline : 0;
    if (json) {
        printf("{\"name\":\"%s\",\"value\":%.5g,\"unit\":\"%s\",\"baseline\":%.5g,\"ratio\":%.3g,\"target\":%"
               ".5g,"
               "\"at_least\":%s,\"holds\":%s}\n",
               r->name, r->value, r->unit, r->baseline, ratio, r->target, r->at_least ? "true" : "false",
               r->holds ? "true" : "false");
    } else {
        if (is_first) {
            printf("%-24s %12s %-14s %12s %8s %12s  %s\n", "row", "value", "unit", "baseline", "ratio",
                   "target", "holds");
        }
        printf("%-24s %12.5g %-14s %12.5g %8.3g %s%10.5g  %s\n", r->name, r->value, r->unit, r->baseline,
               ratio, r->at_least ? ">=" : "<=", r->target, r->holds ? "yes" : "no");
    }
    is_first = false;
    fflush(stdout);
}

static int at_most(struct row *r, const char *name, const char *unit, double value, double baseline,
                   double target)
{
    *r = (struct row){name, unit, value, baseline, target, false, value <= target};
    return baseline > 0 ? KEDGE_OK : KEDGE_E_IO;
}

/* ---- rows ---- */

static int empty_round(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_run run = {
        .inputs = 2, .classes = 3, .sites = 2, .rounds = 300, .idle = true, .timeout_s = 60};
    struct kedge_bench_cost cost;
    *ret_count = 2;
    KEDGE_TRY(kedge_bench_federation(&run, &cost));
    KEDGE_TRY(at_most(&rows[0], "empty-round", "ms", 1e3 * cost.round_s, 1e3 * kedge_bench_sync(200), 20));
    return at_most(&rows[1], "client-idle", "MB", cost.client_mb, 100, 10);
}

/* Seconds that the bytes of a round (a model down and an update up, per site) take through Kedge's TLS alone.
 */
static double wire_seconds(double model_bytes, unsigned sites)
{
    double rate = kedge_bench_chunks(KEDGE_NET_TLS, 4, 100);
    return rate > 0 ? 2 * model_bytes * sites / rate : -1;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of three federations. */
static int median_round(const struct kedge_bench_run *run, double *ret_s)
{
    double s[3];
    for (int i = 0; i < 3; i++) {
        struct kedge_bench_cost cost;
        int err = kedge_bench_federation(run, &cost);
        if (err) {
            return err;
        }
        s[i] = cost.round_s;
    }
    qsort(s, 3, sizeof *s, compare);
    *ret_s = s[1];
    return KEDGE_OK;
}

/* The figures that are demanded are of identity training. Rows in which something changes in every round have
 * targets of their own: what others need with updates as large. */
static const double FLOWER_1MB_MS = 120, FLARE_100MB_S = 9.1;

static int round_1mb(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_run run = {
        .inputs = 26213, .classes = 10, .sites = 10, .rounds = 40, .unchanged = true, .timeout_s = 60};
    double same, one, open, all;
    *ret_count = 4;
    KEDGE_TRY(median_round(&run, &same));
    run.unchanged = false;
    KEDGE_TRY(median_round(&run, &one));
    run.plain_blobs = true;
    KEDGE_TRY(median_round(&run, &open));
    run.plain_blobs = false;
    run.noise = true;
    KEDGE_TRY(median_round(&run, &all));
    double wire = 1e3 * wire_seconds(1048560, 10);
    KEDGE_TRY(at_most(&rows[0], "round-1mb-10", "ms", 1e3 * same, wire, 60));
    KEDGE_TRY(at_most(&rows[1], "round-1mb-10-changed", "ms", 1e3 * one, wire, FLOWER_1MB_MS));
    KEDGE_TRY(at_most(&rows[2], "round-1mb-10-noise", "ms", 1e3 * all, wire, FLOWER_1MB_MS));
    return at_most(&rows[3], "round-1mb-10-plain-blobs", "ms", 1e3 * open, 1e3 * one, FLOWER_1MB_MS);
}

static int round_100mb(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_run run = {
        .inputs = 2621439, .classes = 10, .sites = 8, .rounds = 6, .timeout_s = 300};
    struct kedge_bench_cost cost, same, twice;
    *ret_count = 4;
    KEDGE_TRY(kedge_bench_federation(&run, &cost));
    run.sites = 16;
    run.rounds = 2;
    KEDGE_TRY(kedge_bench_federation(&run, &twice));
    run.sites = 8;
    run.rounds = 6;
    run.unchanged = true;
    KEDGE_TRY(kedge_bench_federation(&run, &same));
    double wire = wire_seconds(104857600, 8);
    KEDGE_TRY(at_most(&rows[0], "round-100mb-8", "s", same.round_s, wire, 4));
    KEDGE_TRY(at_most(&rows[1], "round-100mb-8-changed", "s", cost.round_s, wire, FLARE_100MB_S));
    KEDGE_TRY(at_most(&rows[2], "coordinator-memory", "MB", cost.coordinator_mb, 2100, 300));
    return at_most(&rows[3], "coordinator-memory-16", "MB", twice.coordinator_mb, 2100, 300);
}

static int memory_of_groups(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_run run = {
        .inputs = 2621439, .classes = 10, .sites = 8, .groups = 4, .rounds = 1, .timeout_s = 300};
    struct kedge_bench_cost cost;
    int err = kedge_bench_federation(&run, &cost);
    *ret_count = 1;
    return err ? err : at_most(&rows[0], "coordinator-memory-4-groups", "MB", cost.coordinator_mb, 2100, 300);
}

static int round_100mb_plain(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_run run = {
        .inputs = 2621439, .classes = 10, .sites = 8, .rounds = 6, .plain = true, .timeout_s = 300};
    struct kedge_bench_cost cost, same;
    *ret_count = 2;
    KEDGE_TRY(kedge_bench_federation(&run, &cost));
    run.unchanged = true;
    KEDGE_TRY(kedge_bench_federation(&run, &same));
    double rate = kedge_bench_chunks(KEDGE_NET_TCP, 4, 100);
    double wire = rate > 0 ? 2 * 104857600.0 * 8 / rate : -1;
    KEDGE_TRY(at_most(&rows[0], "round-100mb-8-plain", "s", same.round_s, wire, 2.5));
    return at_most(&rows[1], "round-100mb-8-plain-changed", "s", cost.round_s, wire, FLARE_100MB_S);
}

static int round_100mb_noise(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_run run = {
        .inputs = 2621439, .classes = 10, .sites = 8, .rounds = 5, .noise = true, .timeout_s = 300};
    struct kedge_bench_cost cost;
    *ret_count = 2;
    KEDGE_TRY(kedge_bench_federation(&run, &cost));
    double wire = wire_seconds(104857600, 8);
    KEDGE_TRY(at_most(&rows[0], "round-100mb-8-noise", "s", cost.round_s, wire, FLARE_100MB_S));
    return at_most(&rows[1], "coordinator-memory-noise", "MB", cost.coordinator_mb, 2100, 300);
}

static int poc_first_round(struct row rows[ROWS_MAX], int *ret_count)
{
    enum { PROCESSES = 25 }; /* a coordinator, twelve clients, twelve trainers */
    struct kedge_bench_run run = {.rounds = 2, .timeout_s = 60};
    struct kedge_bench_cost cost;
    double best[3] = {0};
    int err = KEDGE_OK;
    for (int i = 0; i < 3 && !err; i++) {
        err = kedge_bench_federation(&run, &cost);
        best[i] = err ? 0 : cost.first_round_s;
    }
    double low = best[0] < best[1] ? best[0] : best[1], high = best[0] < best[1] ? best[1] : best[0];
    double middle = best[2] < low ? low : best[2] > high ? high : best[2];
    *ret_count = 1;
    return err ? err : at_most(&rows[0], "poc-first-round", "s", middle, PROCESSES * kedge_bench_start(9), 2);
}

/* 50 updates of 10 MB, beside reading them alone. */
static int robust_rules(struct row rows[ROWS_MAX], int *ret_count)
{
    const double target = 500;
    struct kedge_bench_rules r;
    int err = kedge_bench_rules(&r);
    if (!err) {
        const char *const unit = "Mparam/s/core";
        rows[0] = (struct row){"median-50", unit, r.median, r.reading, target, true, r.median >= target};
        rows[1] = (struct row){"trimmed-mean-50",       unit, r.trimmed_mean, r.reading, target, true,
                               r.trimmed_mean >= target};
        rows[2] = (struct row){"krum-50", unit, r.krum, r.reading, target, true, r.krum >= target};
        *ret_count = 3;
    }
    return err;
}

static int ledger_statements(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_ledger l;
    int err = kedge_bench_ledger(&l);
    if (!err) {
        rows[0] = (struct row){"ledger-statements", "statements/s", l.rate, l.verify_rate, 10000, true,
                               l.rate >= 10000};
        *ret_count = 1;
    }
    return err;
}

static int ledger_tenants(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_ledger_tenants l;
    int err = kedge_bench_ledger_tenants(&l);
    if (!err) {
        rows[0] = (struct row){"ledger-statements-8-tenants",
                               "statements/s",
                               l.rate,
                               l.verify_rate,
                               20000,
                               true,
                               l.rate >= 20000 && l.rate >= 0.6 * l.verify_rate};
        *ret_count = 1;
    }
    return err;
}

static int quiet_tenant(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_quiet_tenant q;
    int err = kedge_bench_quiet_tenant(&q);
    if (!err) {
        rows[0] = (struct row){"quiet-tenant-p99", "ms", q.p99_ms, q.alone_ms, 20, false, q.p99_ms <= 20};
        *ret_count = 1;
    }
    return err;
}

/* The baseline of both first rows is how many statements the ledger has. */
static int large_ledger(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_large_ledger l;
    int err = kedge_bench_large_ledger(&l);
    if (!err) {
        double size = (double)l.size, bytes = (double)l.proof_bytes_ten_million;
        rows[0] = (struct row){"ledger-open-10m", "ms", l.open_ms, size, 100, false, l.open_ms < 100};
        rows[1] = (struct row){"inclusion-proof", "ms", l.proof_ms, size, 1, false, l.proof_ms < 1};
        rows[2] = (struct row){"inclusion-proof-bytes", "B", bytes, 0, 2048, false, bytes < 2048};
        *ret_count = 3;
    }
    return err;
}

static int audit_verify(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_audit_verify v;
    int err = kedge_bench_audit_verify(&v);
    if (!err) {
        double rate = v.rate, fast = v.fast_rate, limit = v.verify_rate;
        bool holds = rate >= 6000 && rate >= 0.45 * limit, fast_holds = fast >= 12000 && fast >= 0.6 * limit;
        rows[0] = (struct row){"audit-verify", "1/s/core", rate, limit, 6000, true, holds};
        rows[1] = (struct row){"audit-verify-fast", "1/s/core", fast, limit, 12000, true, fast_holds};
        *ret_count = 2;
    }
    return err;
}

static int audit_replay(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_audit_replay a;
    int err = kedge_bench_audit_replay(&a);
    if (!err) {
        double limit = 1e-6 * (a.read_rate < a.hash_rate ? a.read_rate : a.hash_rate);
        rows[0] = (struct row){
            "audit-replay", "MB/s", 1e-6 * a.rate, limit, 0.6 * limit, true, 1e-6 * a.rate >= 0.6 * limit};
        *ret_count = 1;
    }
    return err;
}

/* The baseline is how many entries the record has. */
static int audit_memory(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_audit_memory m;
    int err = kedge_bench_audit_memory(&m);
    if (!err) {
        double entries = (double)m.entries, held = 1e-6 * m.held, resident = 1e-6 * m.resident;
        rows[0] = (struct row){"audit-memory-10m", "MB", held, entries, 100, false, held < 100};
        rows[1] = (struct row){"audit-resident", "MB", resident, entries, 100, false, resident < 100};
        *ret_count = 2;
    }
    return err;
}

/* One measurement can give several rows. */
static const struct measurement {
    const char *rows[ROWS_MAX];
    int (*run)(struct row rows[ROWS_MAX], int *ret_count);
    bool named_only; /* takes minutes: only when asked for by name */
} measurements[] = {
    {{"empty-round", "client-idle"}, empty_round, false},
    {{"round-1mb-10", "round-1mb-10-changed", "round-1mb-10-noise", "round-1mb-10-plain-blobs"},
     round_1mb,
     false},
    {{"round-100mb-8", "round-100mb-8-changed", "coordinator-memory", "coordinator-memory-16"},
     round_100mb,
     false},
    {{"round-100mb-8-noise", "coordinator-memory-noise"}, round_100mb_noise, false},
    {{"coordinator-memory-4-groups"}, memory_of_groups, false},
    {{"round-100mb-8-plain", "round-100mb-8-plain-changed"}, round_100mb_plain, false},
    {{"poc-first-round"}, poc_first_round, false},
    {{"mean-kernel", "mean-kernel-2-threads"}, kedge_row_mean_kernel, false},
    {{"mean-vs-torch"}, kedge_row_mean_vs_torch, false},
    {{"gram-vs-sgemm", "gram-from-updates"}, kedge_row_gram_vs_sgemm, false},
    {{"grouping-100x45mb"}, kedge_row_grouping_100x45mb, false},
    {{"median-50", "trimmed-mean-50", "krum-50"}, robust_rules, false},
    {{"ledger-statements"}, ledger_statements, false},
    {{"ledger-statements-8-tenants"}, ledger_tenants, false},
    {{"quiet-tenant-p99"}, quiet_tenant, false},
    {{"ledger-open-10m", "inclusion-proof", "inclusion-proof-bytes"}, large_ledger, false},
    {{"audit-verify", "audit-verify-fast"}, audit_verify, false},
    {{"audit-replay"}, audit_replay, false},
    {{"audit-memory-10m", "audit-resident"}, audit_memory, false},
    {{"chaos-10000"}, kedge_row_chaos, false},
    {{"sim-crowd-1m", "sim-crowd-1m-memory"}, kedge_row_crowd, false},
    {{"sim-learn-torch", "sim-learn-numpy", "sim-learn-core-torch", "sim-learn-core-numpy"},
     kedge_row_learn_speed,
     false},
    {{"groups-planted", "groups-after-swaps"}, kedge_row_learn_groups, false},
    {{"newcomers"}, kedge_row_learn_newcomers, false},
    {{"compress-mnist", "compress-fashion", "compress-mnist-rare", "compress-fashion-rare", "compress-bytes"},
     kedge_row_compress,
     false},
    {{"train-mclr-10", "train-mclr-32", "train-mclr-128"}, kedge_row_train_mclr, false},
    {{"train-mlp-10", "train-mlp-32", "train-mlp-128"}, kedge_row_train_mlp, false},
    {{"train-lenet-10", "train-lenet-32", "train-lenet-128"}, kedge_row_train_lenet, false},
    {{"train-femnist-10", "train-femnist-32", "train-femnist-128"}, kedge_row_train_femnist, false},
    {{"train-cifar-10", "train-cifar-32", "train-cifar-128"}, kedge_row_train_cifar, false},
    {{"train-letters-10", "train-letters-32", "train-letters-128"}, kedge_row_train_letters, false},
    {{"train-dense-128", "train-conv-128"}, kedge_row_train_layers, false},
    {{"train-memory"}, kedge_row_train_memory, false},
    {{"planner", "planner-energy", "planner-1000", "plan-parts", "plan-parts-4096"}, kedge_row_plan, false},
    {{"batch-energy", "batch-time", "batch-cost-20", "batch-cost-100"}, kedge_row_batch, false},
    {{"targets-first", "targets-worst", "targets-replay"}, kedge_row_targets, false},
    {{"batch-job-60", "batch-job-300", "batch-job-best"}, kedge_row_rounds, false},
    {{"meter-core", "meter-reading"}, kedge_row_meter, false},
    {{"flexcfl-vs-fedavg", "flexcfl-vs-fedprox", "flexcfl-vs-fesem", "flexcfl-vs-fesem-released"},
     kedge_row_accuracy_published,
     true},
    {{"best-vs-flexcfl-mnist", "best-vs-flexcfl-fashion", "best-vs-flexcfl-letters", "best-vs-flexcfl-digits",
      "best-vs-flexcfl-synthetic"},
     kedge_row_accuracy_best,
     true},
};
enum { MEASUREMENTS = sizeof measurements / sizeof measurements[0] };

static bool is_row(const char *name)
{
    for (size_t i = 0; i < MEASUREMENTS; i++) {
        for (size_t k = 0; k < ROWS_MAX && measurements[i].rows[k]; k++) {
            if (strcmp(measurements[i].rows[k], name) == 0) {
                return true;
            }
        }
    }
    return false;
}

static char *const *asked; /* rows by name */
static int asked_count;    /* none: all */

bool kedge_bench_wants(const char *row)
{
    for (int i = 0; i < asked_count; i++) {
        if (strcmp(asked[i], row) == 0) {
            return true;
        }
    }
    return asked_count == 0;
}

static int measure(const struct measurement *m)
{
    struct row rows[ROWS_MAX];
    int made = 0, err = KEDGE_OK;
    bool wanted = false;
    for (size_t k = 0; k < ROWS_MAX && m->rows[k]; k++) {
        wanted = wanted || kedge_bench_wants(m->rows[k]);
    }
    if (wanted && (asked_count > 0 || !m->named_only)) {
        err = m->run(rows, &made);
        if (err) {
            fprintf(stderr, "kedge-bench: %s: not measured: %s\n", m->rows[0], kedge_strerror(err));
            return err;
        }
    }
    for (int k = 0; k < made; k++) {
        if (kedge_bench_wants(rows[k].name)) {
            print_row(&rows[k]);
        }
    }
    return err;
}

static int usage(FILE *to)
{
    fprintf(to, "Usage: kedge-bench [NAME...] [--format json|text]\nRows (*: minutes, only by name):\n");
    for (size_t i = 0; i < MEASUREMENTS; i++) {
        for (size_t k = 0; k < ROWS_MAX && measurements[i].rows[k]; k++) {
            fprintf(to, "  %s%s\n", measurements[i].rows[k], measurements[i].named_only ? " *" : "");
        }
    }
    return to == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
    int count = 0, code = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return usage(stdout);
        }
        if (strcmp(argv[i], "--format") == 0 && i + 1 < argc
            && (strcmp(argv[i + 1], "json") == 0 || strcmp(argv[i + 1], "text") == 0)) {
            json = strcmp(argv[++i], "json") == 0;
        } else if (is_row(argv[i])) {
            argv[1 + count++] = argv[i];
        } else {
            fprintf(stderr, "kedge-bench: no row \"%.60s\"\n", argv[i]);
            return usage(stderr);
        }
    }
    asked = argv + 1;
    asked_count = count;
    if (kedge_crypto_init() != KEDGE_OK) {
        return 1;
    }
    for (size_t i = 0; i < MEASUREMENTS; i++) {
        if (measure(&measurements[i]) != KEDGE_OK) {
            code = 1;
        }
    }
    return kedge_bench_clean() == KEDGE_OK ? code : 1;
}
