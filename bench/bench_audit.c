/* Records are written by the tests' federation, straight through the stores; then the auditor judges them as
 * `kedge audit` does, and the same run measures what nobody can do without: the signatures' verification, the
 * files' reading, their hashes. */
#include "bench/bench_audit.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "chain/audit/audit.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "crypto/sign.h"
#include "tests/fixtures/federation.h"

enum {
    RUNS = 3,
    SITES = 16,              /* of each of the two tenants */
    STATEMENT_ROUNDS = 3125, /* 100,000 updates */
    SIGNED_BYTES = 1000,     /* of an update's PAE, nearly */
    SIGNATURES = 4000,
    BLOB_ROUNDS = 4, /* 128 updates */
    BLOB_INPUTS = 400000,
    THREADS_MAX = 64,
    FILES_MAX = 4096,
    BLOCK = 1 << 20,
};

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

static double cpu_of(int who)
{
    struct rusage u;
    KEDGE_ASSERT(getrusage(who, &u) == 0);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec)
           + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Of this process and of children that ended: the auditor reads stores in some. */
static double cpu_now(void)
{
    return cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN);
}

/* ---- the record ---- */

struct record {
    char root[128], dir[160];
    struct kedge_trust trust;
};

static void remove_record(struct record *r)
{
    kedge_trust_deinit(&r->trust);
    if (kedge_dir_remove(r->root) != KEDGE_OK) {
        fprintf(stderr, "kedge-bench: %s is left\n", r->root);
    }
}

static int make_record(const char *parent, uint32_t rounds, uint32_t inputs, bool same, struct record *r)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_diag d = {.text = ""};
    memset(r, 0, sizeof *r);
    snprintf(r->root, sizeof r->root, "%.100s/kedge-bench-XXXXXX", parent);
    if (!mkdtemp(r->root)) {
        return KEDGE_E_IO;
    }
    snprintf(r->dir, sizeof r->dir, "%s/record", r->root);
    fx_measured(r->dir, SITES, rounds, inputs, same);
    int err = kedge_path_join(path, r->dir, "trust.json");
    err = err ? err : kedge_trust_read(path, &r->trust, &d);
    if (err) {
        fprintf(stderr, "kedge-bench: %s\n", d.text);
        remove_record(r);
    }
    return err;
}

/* One audit whose answer is yes. */
static int judge(const struct record *r, uint32_t threads, bool replay, bool fast,
                 struct kedge_audit_counts *ret)
{
    struct kedge_audit_options options = {.threads = threads, .fast = fast};
    struct kedge_audit_report report;
    struct kedge_diag d = {.text = ""};
    int err =
        (replay ? kedge_audit_replay : kedge_audit_verify)(r->dir, &r->trust, NULL, 0, &options, &report, &d);
    if (err) {
        fprintf(stderr, "kedge-bench: audit: %s\n", d.text);
        return err;
    }
    *ret = report.counts;
    err = report.verdict == KEDGE_AUDIT_YES ? KEDGE_OK : KEDGE_E_VERIFY;
    if (err) {
        fprintf(stderr, "kedge-bench: audit: %s\n", report.findings[0].text);
    }
    kedge_audit_report_deinit(&report);
    return err;
}

/* ---- verify ---- */

static double bare_rate(void)
{
    static uint8_t message[SIGNED_BYTES];
    struct kedge_key_pair key;
    struct kedge_signature sig;
    kedge_key_generate(&key);
    kedge_sign(kedge_view_of(message, sizeof message), &key, &sig);
    double start = cpu_now();
    for (int i = 0; i < SIGNATURES; i++) {
        int rc = crypto_sign_verify_detached(sig.b, message, sizeof message, key.public.b);
        KEDGE_ASSERT(rc == 0);
    }
    return SIGNATURES / (cpu_now() - start);
}

/* Statements per second of processor time. */
static int verify_rate(const struct record *r, bool fast, double *ret)
{
    struct kedge_audit_counts counts;
    double start = cpu_now();
    int err = judge(r, 1, false, fast, &counts);
    *ret = err ? 0 : (double)counts.entries / (cpu_now() - start);
    return err;
}

int kedge_bench_audit_verify(struct kedge_bench_audit_verify *ret)
{
    struct record r;
    double rate[RUNS], fast[RUNS], bare[RUNS];
    /* In memory where there is room: each append of the record's writer is a commit. */
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    int err = make_record(parent, STATEMENT_ROUNDS, 4, true, &r);
    if (err) {
        return err;
    }
    for (int i = 0; i < RUNS && !err; i++) {
        bare[i] = bare_rate();
        err = verify_rate(&r, false, &rate[i]);
        err = err ? err : verify_rate(&r, true, &fast[i]);
    }
    remove_record(&r);
    if (!err) {
        *ret = (struct kedge_bench_audit_verify){
            .rate = median(rate), .fast_rate = median(fast), .verify_rate = median(bare)};
    }
    return err;
}

/* ---- replay ---- */

struct files {
    char (*paths)[KEDGE_PATH_MAX];
    uint32_t count;
    uint64_t bytes;
};

static enum kedge_blob_verdict add_file(void *arg, const struct kedge_hash *digest, uint64_t size,
                                        const char *path)
{
    struct files *f = arg;
    (void)digest;
    KEDGE_ASSERT(f->count < FILES_MAX);
    snprintf(f->paths[f->count++], KEDGE_PATH_MAX, "%s", path);
    f->bytes += size;
    return KEDGE_BLOB_KEEP;
}

static int list_files(const struct record *r, struct files *f)
{
    static const char *const logs[] = {"state/main", "state/tenants/org-a", "state/tenants/org-b"};
    static const struct kedge_blobs_options options = {.read_only = true};
    f->paths = kedge_mem_new(FILES_MAX, sizeof *f->paths);
    int err = f->paths ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; i < sizeof logs / sizeof logs[0] && !err; i++) {
        char path[KEDGE_PATH_MAX];
        struct kedge_blobs *blobs;
        err = kedge_path_join(path, r->dir, logs[i]);
        err = err ? err : kedge_blobs_open(path, &options, &blobs, NULL);
        if (!err) {
            err = kedge_blobs_for_each(blobs, add_file, f, NULL);
            kedge_blobs_close(blobs);
        }
    }
    return err;
}

/* Clean pages only, so after a sync: what follows comes from the storage, where the system lets go of them.
 */
static void evict(const struct files *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        int fd = open(f->paths[i], O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            (void)fdatasync(fd);
            (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
            close(fd);
        }
    }
}

struct worker {
    const struct files *files;
    uint32_t first, step;
    bool hash; /* as many bytes of memory, in place of reading */
    uint64_t bytes;
};

static uint64_t read_file(const char *path, uint8_t *block)
{
    uint64_t sum = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, block, BLOCK)) > 0) {
        sum += (uint64_t)n;
    }
    if (fd >= 0) {
        close(fd);
    }
    return sum;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    uint8_t *block = kedge_mem_new(1, BLOCK);
    KEDGE_ASSERT(block);
    for (uint32_t i = w->first; i < w->files->count; i += w->step) {
        struct kedge_hash ignored;
        if (w->hash) {
            kedge_sha256(kedge_view_of(block, BLOCK), &ignored);
            w->bytes += BLOCK;
        } else {
            w->bytes += read_file(w->files->paths[i], block);
        }
    }
    kedge_mem_free(block);
    return NULL;
}

/* Bytes per second on that many threads. */
static double rate_of(const struct files *f, uint32_t threads, bool hash)
{
    struct worker workers[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    uint64_t start = kedge_os_now_ns(), bytes = 0;
    for (uint32_t i = 0; i < threads; i++) {
        workers[i] = (struct worker){f, i, threads, hash, 0};
        KEDGE_ASSERT(pthread_create(&ids[i], NULL, work, &workers[i]) == 0);
    }
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        bytes += workers[i].bytes;
    }
    return (double)bytes * 1e9 / (double)(kedge_os_now_ns() - start);
}

int kedge_bench_audit_replay(struct kedge_bench_audit_replay *ret)
{
    struct record r;
    struct files files = {.paths = NULL};
    double rate[RUNS], reading[RUNS], hashing[RUNS];
    const char *tmp = getenv("TMPDIR");
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t threads = n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (uint32_t)n;
    int err = make_record(tmp && tmp[0] == '/' ? tmp : "/tmp", BLOB_ROUNDS, BLOB_INPUTS, false, &r);
    if (err) {
        return err;
    }
    err = list_files(&r, &files);
    for (int i = 0; i < RUNS && !err; i++) {
        struct kedge_audit_counts counts;
        hashing[i] = rate_of(&files, threads, true);
        evict(&files);
        reading[i] = rate_of(&files, threads, false);
        evict(&files);
        uint64_t start = kedge_os_now_ns();
        err = judge(&r, threads, true, false, &counts);
        rate[i] = (double)files.bytes * 1e9 / (double)(kedge_os_now_ns() - start);
    }
    kedge_mem_free(files.paths);
    remove_record(&r);
    if (!err) {
        *ret = (struct kedge_bench_audit_replay){
            .rate = median(rate), .read_rate = median(reading), .hash_rate = median(hashing)};
    }
    return err;
}
