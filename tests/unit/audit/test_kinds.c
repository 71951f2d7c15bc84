/* A record with a FIFO, a folder, a device or a link into the void where a file should be: the audit says so,
 * and neither waits nor reads on for ever. */
#include <sys/stat.h>

#include "common/base/os/clock.h"
#include "tests/unit/audit/tampered.h"

enum { WAIT_S = 30 }; /* each audit takes a fraction of a second; SIGALRM ends a program that hangs */

static const char *const kinds[] = {"fifo", "folder", "/dev/zero", "nowhere"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *const files[] = {
    "fx/state/config.json",
    "fx/state/main/ledger.lmdb/data.mdb",
    "fx/state/main/ledger.lmdb/lock.mdb",
    "fx/state/tenants/org-a/tenant.json",
    "fx/state/tenants/org-a/ledger.lmdb/data.mdb",
    "fx/models/plain-g0.safetensors",
    NULL, /* a blob */
};
enum { FILES = sizeof files / sizeof files[0] };

static void replace_by(const char *path, const char *kind)
{
    ck_assert(unlink(path) == 0 || access(path, F_OK) != 0); /* a copy may have no lock.mdb */
    if (strcmp(kind, "fifo") == 0) {
        ck_assert_int_eq(mkfifo(path, 0600), 0);
    } else if (strcmp(kind, "folder") == 0) {
        ck_assert_int_eq(mkdir(path, 0700), 0);
    } else {
        ck_assert_int_eq(symlink(kind, path), 0);
    }
}

static enum kedge_blob_verdict take_first(void *arg, const struct kedge_hash *digest, uint64_t size,
                                          const char *path)
{
    char *out = arg;
    ck_assert(digest && size > 0);
    if (out[0] == '\0') {
        snprintf(out, KEDGE_PATH_MAX, "%s", path);
    }
    return KEDGE_BLOB_KEEP;
}

static void find_file(size_t i, char out[KEDGE_PATH_MAX])
{
    out[0] = '\0';
    if (files[i]) {
        snprintf(out, KEDGE_PATH_MAX, "%s", at(files[i]));
        return;
    }
    struct kedge_blobs_options options = {.read_only = true};
    struct kedge_blobs *blobs;
    ck_assert_int_eq(kedge_blobs_open(at("fx/state/tenants/org-a"), &options, &blobs, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_for_each(blobs, take_first, out, NULL), KEDGE_OK);
    kedge_blobs_close(blobs);
}

/* One audit, verify or replay; a verdict, or an error that says where. */
static void audit_once(const char *path, const char *kind, bool replay, bool beside)
{
    struct kedge_audit_options options = {
        .threads = 2, .read_timeout_s = WAIT_S, .beside_coordinator = beside};
    struct kedge_audit_report r;
    struct kedge_trust trust;
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    uint64_t begin_ns = kedge_os_now_ns();
    alarm(WAIT_S);
    int err = (replay ? kedge_audit_replay : kedge_audit_verify)(at("fx"), &trust, NULL, 0, &options, &r, &d);
    alarm(0);
    kedge_trust_deinit(&trust);
    ck_assert_msg(kedge_os_now_ns() - begin_ns < WAIT_S / 2 * UINT64_C(1000000000), "%s as %s: it waited",
                  path, kind);
    if (err) {
        ck_assert_msg(d.text[0] != '\0', "%s as %s: %s", path, kind, kedge_strerror(err));
        return;
    }
    bool good = strstr(path, "lock.mdb") && strcmp(kind, "nowhere") == 0; /* no lock file is no fault */
    if (!good && r.verdict != KEDGE_AUDIT_NO) {
        print_findings(&r);
    }
    ck_assert_msg(r.verdict == (good ? KEDGE_AUDIT_YES : KEDGE_AUDIT_NO) && good == (r.error_count == 0),
                  "%s as %s: verdict %d", path, kind, (int)r.verdict);
    kedge_audit_report_deinit(&r);
}

START_TEST(test_file)
{
    for (size_t k = 0; k < KINDS; k++) {
        char path[KEDGE_PATH_MAX];
        copy_base();
        find_file((size_t)_i, path);
        replace_by(path, kinds[k]);
        audit_once(path, kinds[k], k % 2 == 1, false);
        audit_once(path, kinds[k], k % 2 == 0, true);
    }
}
END_TEST

/* What the auditor brings along: trust and the notes that a site saw. */
START_TEST(test_brought_along)
{
    struct kedge_trust trust;
    struct kedge_audit_report r;
    struct kedge_diag d = {.text = ""};
    copy_base(); /* makes the folder that at() names, too */
    const char *seen = at("fx/seen");
    ck_assert_int_eq(mkfifo(seen, 0600), 0);
    alarm(WAIT_S);
    ck_assert_int_lt(kedge_trust_read(seen, &trust, &d), 0);
    ck_assert_msg(strstr(d.text, seen) && strstr(d.text, "FIFO"), "%s", d.text);
    d.text[0] = '\0';
    ck_assert_int_lt(kedge_audit_verify(at("fx"), NULL, &seen, 1, NULL, &r, &d), 0);
    ck_assert_msg(strstr(d.text, seen) && strstr(d.text, "FIFO"), "%s", d.text);
    alarm(0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-kinds");
    TCase *t = tcase_create("kinds");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, test_file, 0, FILES);
    tcase_add_test(t, test_brought_along);
    suite_add_tcase(s, t);
    return run_tampered(s);
}
