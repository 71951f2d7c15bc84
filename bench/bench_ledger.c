/* Durable statements per second on one ledger: envelopes with an Ed25519 signature are verified by two
 * worker threads, which submit them to the ledger's committer and go on; a statement counts when its
 * commit is durable, its checkpoint signed and the high-water mark written. Beside it, in the same run:
 * the bare rate of signature verification on the same two threads, and LMDB alone (the same entries, 256
 * to a transaction). Prints one JSON line per row (medians of RUNS). Built as a program with
 * -DKEDGE_BENCH_MAIN. */
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/bench_ledger.h"
#include "chain/store/committer.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "crypto/sign.h"

enum { STATEMENTS = 20000, ENVELOPE = 900, WORKERS = 2, RUNS = 5, GROUP = 256, TARGET = 10000 };

struct envelope {
    struct kedge_signature signature;
    uint8_t payload[ENVELOPE - KEDGE_SIGNATURE_LEN];
};

struct bench {
    struct envelope *envelopes;
    struct kedge_key_pair site, log;
    struct kedge_committer *c;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t answered, failed;
    char dir[64];
};

struct worker {
    struct bench *b;
    size_t from, to;
    size_t failed;
};

static int prepare(struct bench *b)
{
    b->envelopes = kedge_mem_new(STATEMENTS, sizeof *b->envelopes);
    if (!b->envelopes || kedge_crypto_init()) {
        return KEDGE_E_NOMEM;
    }
    (void)kedge_verify_allow_tables(true); /* as the coordinator does */
    kedge_key_generate(&b->site);
    kedge_key_generate(&b->log);
    for (size_t i = 0; i < STATEMENTS; i++) {
        struct envelope *e = &b->envelopes[i];
        int n = snprintf((char *)e->payload, sizeof e->payload, "{\"statement\":%zu,\"kind\":\"update\"}", i);
        memset(e->payload + n, ' ', sizeof e->payload - (size_t)n);
        kedge_sign(kedge_view_of(e->payload, sizeof e->payload), &b->site, &e->signature);
    }
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->changed, NULL);
    return KEDGE_OK;
}

/* `bare`: by libsodium alone, what the rate is measured against. */
static bool is_signed(const struct bench *b, size_t i, bool bare)
{
    const struct envelope *e = &b->envelopes[i];
    struct kedge_view payload = kedge_view_of(e->payload, sizeof e->payload);
    return bare ? crypto_sign_verify_detached(e->signature.b, payload.ptr, payload.len, b->site.public.b) == 0
                : kedge_verify(payload, &e->signature, &b->site.public) == KEDGE_OK;
}

static void on_done(void *arg, const struct kedge_commit_result *r)
{
    struct bench *b = arg;
    pthread_mutex_lock(&b->mutex);
    b->answered++;
    b->failed += r->err != KEDGE_OK;
    if (b->answered == STATEMENTS) {
        pthread_cond_signal(&b->changed);
    }
    pthread_mutex_unlock(&b->mutex);
}

static void *verify_only(void *arg)
{
    struct worker *w = arg;
    for (size_t i = w->from; i < w->to; i++) {
        w->failed += !is_signed(w->b, i, true);
    }
    return NULL;
}

static void *verify_and_submit(void *arg)
{
    struct worker *w = arg;
    for (size_t i = w->from; i < w->to; i++) {
        if (!is_signed(w->b, i, false)) {
            w->failed++;
            continue;
        }
        char key[32];
        int n = snprintf(key, sizeof key, "job/1/%zu", i);
        struct kedge_ledger_append item = {
            .entry = kedge_view_of(&w->b->envelopes[i], sizeof w->b->envelopes[i]),
            .idem_key = kedge_view_of(key, (size_t)n),
        };
        int err;
        while ((err = kedge_committer_submit(w->b->c, &item, 1, on_done, w->b)) == KEDGE_E_FULL) {
            kedge_os_sleep_ms(1);
        }
        w->failed += err != KEDGE_OK;
    }
    return NULL;
}

/* Runs fn on all workers; how many items failed. */
static size_t run_workers(struct bench *b, void *(*fn)(void *))
{
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    size_t failed = 0;
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){b, STATEMENTS * i / WORKERS, STATEMENTS * (i + 1) / WORKERS, 0};
        KEDGE_ASSERT(pthread_create(&threads[i], NULL, fn, &workers[i]) == 0);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        failed += workers[i].failed;
    }
    return failed;
}

static double rate_since(uint64_t start_ns)
{
    return (double)STATEMENTS * 1e9 / (double)(kedge_os_now_ns() - start_ns);
}

static int open_store(const struct bench *b, const char *name, struct kedge_kv **ret,
                      char path[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    struct kedge_kv_lmdb_options options = {.create = true};
    int err = kedge_path_join(path, b->dir, name);
    return err ? err : kedge_kv_lmdb_open(path, &options, ret, d);
}

/* The whole path; *ret_group: entries per commit. */
static int measure_ledger(struct bench *b, double *ret_rate, double *ret_group, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], mark[KEDGE_PATH_MAX];
    struct kedge_kv *kv;
    struct kedge_ledger *l;
    int err = open_store(b, "ledger", &kv, path, d);
    err = err ? err : kedge_path_join(mark, b->dir, "mark");
    if (err) {
        return err;
    }
    struct kedge_ledger_options options = {
        .origin = "bench.example/t", .key = &b->log, .high_water_path = mark, .create = true};
    err = kedge_ledger_open(kv, &options, &l, d);
    err = err ? err : kedge_committer_start(l, NULL, &b->c, d);
    if (err) {
        kedge_kv_close(kv);
        return err;
    }
    b->answered = b->failed = 0;
    uint64_t start = kedge_os_now_ns(), commits, entries;
    size_t failed = run_workers(b, verify_and_submit);
    pthread_mutex_lock(&b->mutex);
    while (b->answered + failed < STATEMENTS) {
        pthread_cond_wait(&b->changed, &b->mutex);
    }
    pthread_mutex_unlock(&b->mutex);
    *ret_rate = rate_since(start);
    kedge_committer_stats(b->c, &commits, &entries, NULL);
    *ret_group = commits ? (double)entries / (double)commits : 0;
    kedge_committer_stop(b->c);
    err = failed || b->failed || kedge_ledger_size(l) != STATEMENTS ? KEDGE_E_BUG : KEDGE_OK;
    kedge_ledger_close(l);
    kedge_kv_close(kv);
    int removed = kedge_dir_remove(path);
    removed = removed ? removed : (remove(mark) == 0 ? KEDGE_OK : KEDGE_E_IO);
    return err ? kedge_diag_set(d, err, "statements were lost: a bug") : removed;
}

/* LMDB alone: the same bytes, one table, no hashes, no signatures. */
static int measure_store(struct bench *b, double *ret_rate, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_kv *kv;
    struct kedge_kv_tx *tx;
    int err = open_store(b, "raw", &kv, path, d);
    if (err) {
        return err;
    }
    uint64_t start = kedge_os_now_ns();
    for (size_t i = 0; i < STATEMENTS && !err; i += GROUP) {
        err = kedge_kv_begin(kv, true, &tx, d);
        for (size_t k = i; k < i + GROUP && k < STATEMENTS && !err; k++) {
            uint8_t key[8];
            kedge_store_be64(key, k);
            err = kedge_kv_put(tx, KEDGE_KV_ENTRY, kedge_view_of(key, sizeof key),
                               kedge_view_of(&b->envelopes[k], sizeof b->envelopes[k]), KEDGE_KV_APPEND);
        }
        err = err ? err : kedge_kv_commit(tx, d);
    }
    *ret_rate = rate_since(start);
    kedge_kv_close(kv);
    return err ? err : kedge_dir_remove(path);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, RUNS, sizeof *values, compare);
    return values[RUNS / 2];
}

/* CPU time of this process so far, all threads. */
static double cpu_now_us(void)
{
    struct rusage u;
    KEDGE_ASSERT(getrusage(RUSAGE_SELF, &u) == 0);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6
           + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int measure(struct bench *b, struct kedge_bench_ledger *ret, struct kedge_diag *d)
{
    double ledger[RUNS], groups[RUNS], verify[RUNS], store[RUNS], ledger_cpu[RUNS], verify_cpu[RUNS];
    for (size_t i = 0; i < RUNS; i++) {
        uint64_t start = kedge_os_now_ns();
        double cpu = cpu_now_us();
        if (run_workers(b, verify_only) > 0) {
            return kedge_diag_set(d, KEDGE_E_BUG, "a signature did not verify");
        }
        verify[i] = rate_since(start);
        verify_cpu[i] = (cpu_now_us() - cpu) / STATEMENTS;
        int err = measure_store(b, &store[i], d);
        cpu = cpu_now_us();
        err = err ? err : measure_ledger(b, &ledger[i], &groups[i], d);
        if (err) {
            return err;
        }
        ledger_cpu[i] = (cpu_now_us() - cpu) / STATEMENTS;
    }
    ret->rate = median(ledger);
    ret->low = ledger[0];
    ret->high = ledger[RUNS - 1];
    ret->verify_rate = median(verify);
    ret->lmdb_rate = median(store);
    ret->entries_per_commit = median(groups);
    ret->cpu_us = median(ledger_cpu);
    ret->verify_cpu_us = median(verify_cpu);
    return KEDGE_OK;
}

int kedge_bench_ledger(struct kedge_bench_ledger *ret)
{
    struct bench b = {.dir = "/tmp/kedge-bench-XXXXXX"};
    struct kedge_diag d = {.err = KEDGE_OK};
    if (!mkdtemp(b.dir)) {
        return KEDGE_E_IO;
    }
    int err = prepare(&b);
    err = err ? err : measure(&b, ret, &d);
    if (err) {
        fprintf(stderr, "bench ledger: %s %s\n", kedge_strerror(err), d.text);
    }
    kedge_mem_free(b.envelopes);
    int removed = kedge_dir_remove(b.dir);
    return err ? err : removed;
}

#ifdef KEDGE_BENCH_MAIN
int main(void)
{
    struct kedge_bench_ledger r;
    if (kedge_bench_ledger(&r)) {
        return 1;
    }
    printf("{\"name\":\"ledger-durable\",\"value\":%.0f,\"unit\":\"statements/s\",\"baseline\":%.0f,"
           "\"ratio\":%.3f,\"target\":%d,\"holds\":%s,\"low\":%.0f,\"high\":%.0f,\"lmdb_alone\":%.0f,"
           "\"entries_per_commit\":%.0f,\"cpu_us\":%.1f,\"verify_cpu_us\":%.1f}\n",
           r.rate, r.verify_rate, r.rate / r.verify_rate, TARGET, r.rate >= TARGET ? "true" : "false", r.low,
           r.high, r.lmdb_rate, r.entries_per_commit, r.cpu_us, r.verify_cpu_us);
    return 0;
}
#endif
