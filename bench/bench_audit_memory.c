/* What an auditor holds while it verifies: a record is written by the tests' federation, then verified while
 * a thread looks at the process from outside, as `ps` would. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench_audit.h"
#include "chain/audit/audit.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "tests/fixtures/federation.h"

enum {
    SITES = 16,           /* of each of the two tenants */
    ENTRIES_A_ROUND = 69, /* an update and an evaluation of each site, five of the main chain */
    LOOK_EVERY_MS = 2,
    ENTRIES_LEAST = 40000, /* below, tables do not fill their part of the heap */
};
#define ENTRIES_DEFAULT UINT64_C(200000)

/* ---- looking ---- */

struct sampler {
    pthread_t thread;
    atomic_bool stop;
    uint64_t anonymous, resident; /* bytes, the most that was seen */
};

/* The number behind a word of /proc/self/status, in bytes. No heap: a child may be forked meanwhile. */
static uint64_t status(const char *text, const char *word)
{
    const char *p = strstr(text, word);
    uint64_t kib = 0;
    p = p ? p + strlen(word) : NULL;
    while (p && (*p == ' ' || *p == '\t')) {
        p++;
    }
    size_t digits = p ? strspn(p, "0123456789") : 0;
    return digits > 0 && kedge_decimal_decode(kedge_view_of(p, digits), UINT64_C(1) << 40, &kib) == KEDGE_OK
               ? kib * 1024
               : 0;
}

static void look(struct sampler *s)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    uint64_t anonymous = status(text, "RssAnon:"), resident = status(text, "VmRSS:");
    s->anonymous = anonymous > s->anonymous ? anonymous : s->anonymous;
    s->resident = resident > s->resident ? resident : s->resident;
}

static void *run_sampler(void *arg)
{
    struct sampler *s = arg;
    while (!atomic_load(&s->stop)) {
        look(s);
        kedge_os_sleep_ms(LOOK_EVERY_MS);
    }
    return NULL;
}

/* ---- one record ---- */

struct held {
    uint64_t entries, anonymous, resident;
};

static int verify(const char *dir, struct held *ret, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_trust trust;
    struct kedge_audit_report report;
    struct sampler s = {.anonymous = 0};
    int err = kedge_path_join(path, dir, "trust.json");
    err = err ? err : kedge_trust_read(path, &trust, d);
    if (err) {
        return err;
    }
    (void)malloc_trim(0); /* what writing the record left behind */
    KEDGE_ASSERT(pthread_create(&s.thread, NULL, run_sampler, &s) == 0);
    err = kedge_audit_verify(dir, &trust, NULL, 0, NULL, &report, d);
    atomic_store(&s.stop, true);
    pthread_join(s.thread, NULL);
    kedge_trust_deinit(&trust);
    if (!err) {
        bool good = report.verdict == KEDGE_AUDIT_YES;
        *ret = (struct held){report.counts.entries, s.anonymous, s.resident};
        kedge_audit_report_deinit(&report);
        err = good ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_VERIFY, "the record does not verify: a bug");
    }
    return err;
}

static int measure(uint64_t entries, struct held *ret)
{
    char root[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX];
    struct kedge_diag d = {.text = ""};
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(root, sizeof root, "%s/kedge-bench-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
    if (n < 0 || (size_t)n >= sizeof root || !mkdtemp(root)) {
        return KEDGE_E_IO;
    }
    int err = kedge_path_join(dir, root, "record");
    if (!err) {
        fx_long(dir, SITES, (uint32_t)(entries / ENTRIES_A_ROUND));
        err = verify(dir, ret, &d);
    }
    if (err) {
        fprintf(stderr, "bench audit: %s %s\n", kedge_strerror(err), d.text);
    }
    int removed = kedge_dir_remove(root);
    return err ? err : removed;
}

static uint64_t wanted_entries(void)
{
    const char *text = getenv("KEDGE_BENCH_ENTRIES");
    uint64_t n = ENTRIES_DEFAULT;
    return text && kedge_decimal_decode(kedge_view_str(text), UINT64_C(1) << 26, &n) == KEDGE_OK
                   && n >= ENTRIES_LEAST
               ? n
               : ENTRIES_DEFAULT;
}

int kedge_bench_audit_memory(struct kedge_bench_audit_memory *ret)
{
    struct held held = {.entries = 0};
    int err = measure(wanted_entries(), &held);
    if (!err) {
        *ret = (struct kedge_bench_audit_memory){
            .entries = held.entries, .held = (double)held.anonymous, .resident = (double)held.resident};
    }
    return err;
}
