/* What an auditor holds while it verifies: a record is written by the tests' federation, then verified by
 * `kedge` while its process is looked at from outside, as `ps` would. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench_audit.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "tests/fixtures/federation.h"

enum {
    SITES = 16,           /* of each of the two tenants */
    ENTRIES_A_ROUND = 69, /* an update and an evaluation of each site, five of the main chain */
    LOOK_EVERY_MS = 2,
    ENTRIES_LEAST = 40000, /* below, tables do not fill their part of the heap */
};
#define ENTRIES_DEFAULT UINT64_C(200000)

/* ---- looking ---- */

struct held {
    uint64_t entries, anonymous, resident; /* bytes, the most that was seen */
};

/* The number behind a word of /proc/PID/status, in bytes. */
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

static void look(pid_t pid, struct held *h)
{
    char text[4096], path[64];
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    uint64_t anonymous = status(text, "RssAnon:"), resident = status(text, "VmRSS:");
    h->anonymous = anonymous > h->anonymous ? anonymous : h->anonymous;
    h->resident = resident > h->resident ? resident : h->resident;
}

/* ---- one record ---- */

/* `kedge audit verify` as anybody starts it. */
static int verify(const char *root, const char *dir, struct held *ret, struct kedge_diag *d)
{
    char bin[KEDGE_PATH_MAX], kedge[KEDGE_PATH_MAX], trust[KEDGE_PATH_MAX], log[KEDGE_PATH_MAX];
    const char *const argv[] = {kedge, "audit", "verify", dir, "--trust", trust, "--format", "json", NULL};
    struct kedge_process_options options = {
        .argv = argv, .stderr_path = log, .pipe_stdout = true, .die_with_parent = true};
    struct kedge_process p;
    int state = 0;
    KEDGE_TRY(kedge_process_own_dir(bin, sizeof bin));
    KEDGE_TRY(kedge_path_join(kedge, bin, "kedge"));
    KEDGE_TRY(kedge_path_join(trust, dir, "trust.json"));
    KEDGE_TRY(kedge_path_join(log, root, "log"));
    KEDGE_TRY(kedge_process_start(&options, &p, d));
    while (!kedge_process_poll(&p, &state)) {
        look(p.pid, ret);
        kedge_os_sleep_ms(LOOK_EVERY_MS);
    }
    kedge_process_stop(&p, SIGTERM, 0); /* closes the pipe */
    return state == 0 && ret->anonymous > 0
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_VERIFY, "the record does not verify: a bug");
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
        uint32_t rounds = (uint32_t)(entries / ENTRIES_A_ROUND);
        fx_long(dir, SITES, rounds);
        ret->entries = (uint64_t)rounds * ENTRIES_A_ROUND;
        err = verify(root, dir, ret, &d);
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
