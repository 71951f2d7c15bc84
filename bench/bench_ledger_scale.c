/* Ledgers of many tenants and of many statements: rates over eight tenants' ledgers, what a quiet tenant
 * feels of a flooding neighbour, proofs and opening of a large ledger. Works in a folder of $TMPDIR (or
 * /tmp). */
#include <inttypes.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_ledger.h"
#include "chain/log/proof.h"
#include "chain/store/committer.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/rng.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "crypto/sign.h"

enum {
    TENANTS = 8,
    COMMITTERS = 16, /* as in the coordinator */
    WORKERS = 2,
    STATEMENTS = 40000,
    PAYLOAD = 836, /* with its signature 900 bytes */
    QUIET_SAMPLES = 300,
    QUIET_PAUSE_MS = 10,
    FLOOD_BATCH = 256,
    LARGE_ENTRY = 64,
    PROOFS = 1000,
    OPENS = 21,
    LEVELS_AT_TEN_MILLION = 24,
    HASH_LINE = 45, /* base64 of a hash and a line feed */
};
#define LARGE_DEFAULT UINT64_C(1000000)

struct envelope {
    struct kedge_signature signature;
    uint8_t payload[PAYLOAD];
};

struct log {
    char store[KEDGE_PATH_MAX], mark[KEDGE_PATH_MAX];
    struct kedge_kv *kv;
    struct kedge_ledger *l;
    struct kedge_committer *c;
};

struct bench {
    char dir[KEDGE_PATH_MAX];
    struct envelope *envelopes;
    struct kedge_key_pair site, key;
    struct log logs[TENANTS];
    struct kedge_commit_pool *pool; /* as the coordinator has one for all tenants */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t answered, failed, expected; /* the waiter is woken by the last answer */
};

struct worker {
    struct bench *b;
    size_t from, to, failed;
};

/* ---- logs ---- */

static int open_log(struct bench *b, unsigned i, bool create, struct kedge_diag *d)
{
    struct log *log = &b->logs[i];
    char name[32];
    struct kedge_kv_lmdb_options kv = {.create = create};
    struct kedge_ledger_options options = {
        .origin = "bench.example/t", .key = &b->key, .high_water_path = log->mark, .create = create};
    snprintf(name, sizeof name, "ledger-%u", i);
    KEDGE_TRY(kedge_path_join(log->store, b->dir, name));
    snprintf(name, sizeof name, "mark-%u", i);
    KEDGE_TRY(kedge_path_join(log->mark, b->dir, name));
    KEDGE_TRY(kedge_kv_lmdb_open(log->store, &kv, &log->kv, d));
    return kedge_ledger_open(log->kv, &options, &log->l, d);
}

static void close_log(struct log *log)
{
    kedge_committer_stop(log->c);
    kedge_ledger_close(log->l);
    kedge_kv_close(log->kv);
    *log = (struct log){.kv = NULL};
}

static int start_logs(struct bench *b, unsigned count, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_commit_pool_new(COMMITTERS, &b->pool, d));
    for (unsigned i = 0; i < count; i++) {
        const struct kedge_committer_options options = {.pool = b->pool};
        KEDGE_TRY(open_log(b, i, true, d));
        KEDGE_TRY(kedge_committer_start(b->logs[i].l, &options, &b->logs[i].c, d));
    }
    return KEDGE_OK;
}

static void close_logs(struct bench *b)
{
    for (unsigned i = 0; i < TENANTS; i++) {
        close_log(&b->logs[i]);
    }
    kedge_commit_pool_free(b->pool);
    b->pool = NULL;
}

static int begin(struct bench *b)
{
    const char *base = getenv("TMPDIR");
    *b = (struct bench){.envelopes = NULL};
    int n = snprintf(b->dir, sizeof b->dir, "%s/kedge-bench-XXXXXX", base && base[0] ? base : "/tmp");
    if (n < 0 || (size_t)n >= sizeof b->dir || !mkdtemp(b->dir)) {
        return KEDGE_E_IO;
    }
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->changed, NULL);
    kedge_key_generate(&b->site);
    kedge_key_generate(&b->key);
    return KEDGE_OK;
}

static int end(struct bench *b, int err, const struct kedge_diag *d)
{
    close_logs(b);
    if (err) {
        fprintf(stderr, "bench ledger: %s %s\n", kedge_strerror(err), d->text);
    }
    kedge_mem_free(b->envelopes);
    int removed = kedge_dir_remove(b->dir);
    return err ? err : removed;
}

/* ---- eight tenants ---- */

static int sign_all(struct bench *b)
{
    (void)kedge_verify_allow_tables(true); /* as the coordinator does */
    b->envelopes = kedge_mem_new(STATEMENTS, sizeof *b->envelopes);
    for (size_t i = 0; b->envelopes && i < STATEMENTS; i++) {
        struct envelope *e = &b->envelopes[i];
        int n = snprintf((char *)e->payload, sizeof e->payload, "{\"statement\":%zu,\"kind\":\"update\"}", i);
        memset(e->payload + n, ' ', sizeof e->payload - (size_t)n);
        kedge_sign(kedge_view_of(e->payload, sizeof e->payload), &b->site, &e->signature);
    }
    return b->envelopes ? KEDGE_OK : KEDGE_E_NOMEM;
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
    if (b->answered >= b->expected) {
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
        char key[32];
        int n = snprintf(key, sizeof key, "job/1/%zu", i), err;
        struct kedge_ledger_append item = {
            .entry = kedge_view_of(&w->b->envelopes[i], sizeof w->b->envelopes[i]),
            .idem_key = kedge_view_of(key, (size_t)n),
        };
        if (!is_signed(w->b, i, false)) {
            w->failed++;
            continue;
        }
        while ((err = kedge_committer_submit(w->b->logs[i % TENANTS].c, &item, 1, on_done, w->b))
               == KEDGE_E_FULL) {
            kedge_os_sleep_ms(1);
        }
        w->failed += err != KEDGE_OK;
    }
    return NULL;
}

/* Statements per second; with `submit`, until the last is durable. */
static double run_workers(struct bench *b, bool submit, size_t *ret_failed)
{
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    uint64_t start = kedge_os_now_ns();
    *ret_failed = b->answered = b->failed = 0;
    b->expected = STATEMENTS;
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){b, STATEMENTS * i / WORKERS, STATEMENTS * (i + 1) / WORKERS, 0};
        KEDGE_ASSERT(pthread_create(&threads[i], NULL, submit ? verify_and_submit : verify_only, &workers[i])
                     == 0);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        *ret_failed += workers[i].failed;
    }
    pthread_mutex_lock(&b->mutex);
    b->expected = STATEMENTS - *ret_failed;
    while (submit && b->answered < b->expected) {
        pthread_cond_wait(&b->changed, &b->mutex);
    }
    *ret_failed += b->failed;
    pthread_mutex_unlock(&b->mutex);
    return (double)STATEMENTS * 1e9 / (double)(kedge_os_now_ns() - start);
}

int kedge_bench_ledger_tenants(struct kedge_bench_ledger_tenants *ret)
{
    struct bench b;
    struct kedge_diag d = {.text = ""};
    size_t failed = 0, bad = 0;
    int err = begin(&b);
    if (err) {
        return err;
    }
    err = sign_all(&b);
    err = err ? err : start_logs(&b, TENANTS, &d);
    if (!err) {
        ret->verify_rate = run_workers(&b, false, &bad);
        ret->rate = run_workers(&b, true, &failed);
        err = failed + bad > 0 ? kedge_diag_set(&d, KEDGE_E_BUG, "statements were lost: a bug") : err;
    }
    return end(&b, err, &d);
}

/* ---- a quiet tenant ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct flood {
    struct bench *b;
    bool stop; /* under the mutex */
    uint64_t submitted;
};

static void on_flood(void *arg, const struct kedge_commit_result *r)
{
    (void)arg;
    (void)r;
}

/* The neighbour: as much as its queue takes, all the time. */
static void *flood_run(void *arg)
{
    struct flood *f = arg;
    static uint8_t content[FLOOD_BATCH][900];
    struct kedge_ledger_append items[FLOOD_BATCH];
    for (bool stop = false; !stop;) {
        for (size_t i = 0; i < FLOOD_BATCH; i++) {
            kedge_store_be64(content[i], f->submitted++);
            items[i] = (struct kedge_ledger_append){.entry = kedge_view_of(content[i], sizeof content[i])};
        }
        if (kedge_committer_submit(f->b->logs[1].c, items, FLOOD_BATCH, on_flood, NULL) == KEDGE_E_FULL) {
            kedge_os_sleep_ms(1);
        }
        pthread_mutex_lock(&f->b->mutex);
        stop = f->stop;
        pthread_mutex_unlock(&f->b->mutex);
    }
    return NULL;
}

/* One statement now and then, from submission to the durable answer: the 99th of 100, in ms. */
static int quiet_p99(struct bench *b, uint64_t first, double *ret, struct kedge_diag *d)
{
    static double samples[QUIET_SAMPLES];
    for (size_t i = 0; i < QUIET_SAMPLES; i++) {
        uint8_t content[900] = {0};
        kedge_store_be64(content, first + i);
        struct kedge_ledger_append item = {.entry = kedge_view_of(content, sizeof content)};
        uint64_t start = kedge_os_now_ns();
        pthread_mutex_lock(&b->mutex);
        b->answered = 0;
        b->expected = 1;
        pthread_mutex_unlock(&b->mutex);
        int err = kedge_committer_submit(b->logs[0].c, &item, 1, on_done, b);
        if (err) {
            return kedge_diag_set(d, err, "the quiet tenant was turned away");
        }
        pthread_mutex_lock(&b->mutex);
        while (b->answered == 0) {
            pthread_cond_wait(&b->changed, &b->mutex);
        }
        pthread_mutex_unlock(&b->mutex);
        samples[i] = (double)(kedge_os_now_ns() - start) / 1e6;
        kedge_os_sleep_ms(QUIET_PAUSE_MS);
    }
    qsort(samples, QUIET_SAMPLES, sizeof *samples, compare);
    *ret = samples[QUIET_SAMPLES * 99 / 100];
    return KEDGE_OK;
}

int kedge_bench_quiet_tenant(struct kedge_bench_quiet_tenant *ret)
{
    struct bench b;
    struct kedge_diag d = {.text = ""};
    struct flood f = {.b = &b};
    pthread_t thread;
    int err = begin(&b);
    if (err) {
        return err;
    }
    err = start_logs(&b, 2, &d);
    err = err ? err : quiet_p99(&b, 0, &ret->alone_ms, &d);
    if (!err) {
        uint64_t start = kedge_os_now_ns(), entries = 0;
        KEDGE_ASSERT(pthread_create(&thread, NULL, flood_run, &f) == 0);
        err = quiet_p99(&b, QUIET_SAMPLES, &ret->p99_ms, &d);
        pthread_mutex_lock(&b.mutex);
        f.stop = true;
        pthread_mutex_unlock(&b.mutex);
        pthread_join(thread, NULL);
        kedge_committer_stats(b.logs[1].c, NULL, &entries, NULL);
        ret->neighbour_rate = (double)entries * 1e9 / (double)(kedge_os_now_ns() - start);
    }
    return end(&b, err, &d);
}

/* ---- a large ledger ---- */

/* KEDGE_BENCH_ENTRIES, else a million: what a run of all rows can wait for. */
static uint64_t large_size(void)
{
    const char *text = getenv("KEDGE_BENCH_ENTRIES");
    uint64_t n = LARGE_DEFAULT;
    return text && kedge_decimal_decode(kedge_view_str(text), UINT64_C(1) << 32, &n) == KEDGE_OK
                   && n >= FLOOD_BATCH
               ? n
               : LARGE_DEFAULT;
}

static int fill(struct bench *b, uint64_t size, struct kedge_diag *d)
{
    static uint8_t content[FLOOD_BATCH][LARGE_ENTRY];
    struct kedge_ledger_append items[FLOOD_BATCH];
    int err = open_log(b, 0, true, d);
    for (uint64_t at = 0; at < size && !err; at += FLOOD_BATCH) {
        for (size_t i = 0; i < FLOOD_BATCH; i++) {
            kedge_store_be64(content[i], at + i);
            items[i] = (struct kedge_ledger_append){.entry = kedge_view_of(content[i], LARGE_ENTRY)};
        }
        err = kedge_ledger_append(b->logs[0].l, items, FLOOD_BATCH, NULL, NULL, d);
    }
    return err;
}

/* Receipts of entries here and there: ms each, and the longest in bytes. */
static int prove(struct bench *b, struct kedge_bench_large_ledger *ret, struct kedge_diag *d)
{
    struct kedge_buf note, text;
    struct kedge_rng rng;
    uint64_t size = 0;
    unsigned levels = 0;
    kedge_rng_init(&rng, 1, KEDGE_RNG_TEST, 0, 0);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
    int err = kedge_ledger_checkpoint(b->logs[0].l, &note, &size);
    uint64_t start = kedge_os_now_ns();
    for (unsigned i = 0; i < PROOFS && !err; i++) {
        struct kedge_proof proof = {.index = kedge_rng_below(&rng, size), .note = kedge_buf_view(&note)};
        err = kedge_ledger_inclusion(b->logs[0].l, proof.index, size, &proof.path);
        kedge_buf_clear(&text);
        kedge_proof_encode(&proof, &text);
        ret->proof_bytes = text.len > ret->proof_bytes ? text.len : ret->proof_bytes;
        levels = proof.path.count > levels ? (unsigned)proof.path.count : levels;
    }
    ret->proof_ms = (double)(kedge_os_now_ns() - start) / 1e6 / PROOFS;
    unsigned more = levels < LEVELS_AT_TEN_MILLION ? LEVELS_AT_TEN_MILLION - levels : 0;
    ret->proof_bytes_ten_million = ret->proof_bytes + more * HASH_LINE;
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&text);
    return err ? kedge_diag_set(d, err, "cannot prove: %s", kedge_strerror(err)) : KEDGE_OK;
}

int kedge_bench_large_ledger(struct kedge_bench_large_ledger *ret)
{
    struct bench b;
    struct kedge_diag d = {.text = ""};
    double opens[OPENS];
    *ret = (struct kedge_bench_large_ledger){.size = large_size()};
    int err = begin(&b);
    if (err) {
        return err;
    }
    uint64_t start = kedge_os_now_ns();
    err = fill(&b, ret->size, &d);
    ret->build_s = (double)(kedge_os_now_ns() - start) / 1e9;
    err = err ? err : prove(&b, ret, &d);
    for (size_t i = 0; i < OPENS && !err; i++) {
        close_log(&b.logs[0]);
        start = kedge_os_now_ns();
        err = open_log(&b, 0, false, &d);
        opens[i] = (double)(kedge_os_now_ns() - start) / 1e6;
    }
    if (!err) {
        ret->size = kedge_ledger_size(b.logs[0].l);
        qsort(opens, OPENS, sizeof *opens, compare);
        ret->open_ms = opens[OPENS / 2];
    }
    return end(&b, err, &d);
}
