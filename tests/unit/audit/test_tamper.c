/* A good record that somebody changed afterwards: bytes, files, order, keys. */
#include "chain/log/checkpoint.h"
#include "common/base/mem.h"
#include "crypto/keyfile.h"
#include "tests/fixtures/effort.h"
#include "tests/unit/audit/tampered.h"

/* ---- files ---- */

/* One blob of a kind: the smallest or largest of a log's. */
struct pick {
    bool largest;
    uint64_t size;
    char path[KEDGE_PATH_MAX];
};

static enum kedge_blob_verdict visit(void *arg, const struct kedge_hash *digest, uint64_t size,
                                     const char *path)
{
    struct pick *p = arg;
    ck_assert_ptr_nonnull(digest);
    if (p->path[0] == '\0' || (p->largest ? size > p->size : size < p->size)) {
        p->size = size;
        snprintf(p->path, sizeof p->path, "%s", path);
    }
    return KEDGE_BLOB_KEEP;
}

static void pick_blob(const char *folder, bool largest, char out[KEDGE_PATH_MAX])
{
    struct pick p = {.largest = largest};
    struct kedge_blobs_options options = {.read_only = true};
    struct kedge_blobs *blobs;
    ck_assert_int_eq(kedge_blobs_open(at(folder), &options, &blobs, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_for_each(blobs, visit, &p, NULL), KEDGE_OK);
    kedge_blobs_close(blobs);
    snprintf(out, KEDGE_PATH_MAX, "%s", p.path);
}

START_TEST(test_blobs)
{
    static const char *const folders[] = {"fx/state/main", "fx/state/tenants/org-a",
                                          "fx/state/tenants/org-b"};
    char path[KEDGE_PATH_MAX];
    for (int i = 0; i < 6; i++) {
        copy_base();
        pick_blob(folders[i % 3], i >= 3, path);
        fx_flip(path, i % 2 ? 3 : -3);
        expect(NULL, false, KEDGE_AUDIT_BLOB_DIGEST, KEDGE_AUDIT_NO);
        copy_base();
        ck_assert_int_eq(truncate(path, 5), 0);
        expect(NULL, true, KEDGE_AUDIT_BLOB_DIGEST, KEDGE_AUDIT_NO);
        copy_base();
        ck_assert_int_eq(unlink(path), 0);
        expect(NULL, true, KEDGE_AUDIT_BLOB_MISSING, KEDGE_AUDIT_NO);
    }
}
END_TEST

START_TEST(test_blobs_without_statement)
{
    struct kedge_blobs *blobs;
    struct kedge_hash digest;
    struct kedge_view part = kedge_view_str("nobody asked for this");
    copy_base();
    ck_assert_int_eq(kedge_blobs_open(at("fx/state/tenants/org-a"), NULL, &blobs, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_put(blobs, &part, 1, &digest, NULL), KEDGE_OK);
    kedge_blobs_close(blobs);
    expect(NULL, false, KEDGE_AUDIT_BLOB_UNREFERENCED, KEDGE_AUDIT_NO);
    expect(NULL, true, KEDGE_AUDIT_BLOB_UNREFERENCED, KEDGE_AUDIT_YES);
    copy_base();
    ck_assert_int_eq(kedge_file_write(at("fx/state/main/blobs/readme"), part, 0600, NULL), KEDGE_OK);
    expect(NULL, true, KEDGE_AUDIT_STRAY_FILE, KEDGE_AUDIT_NO);
}
END_TEST

START_TEST(test_models)
{
    copy_base();
    fx_flip(at("fx/models/plain-g0.safetensors"), -1);
    expect(NULL, true, KEDGE_AUDIT_MODEL_FILE, KEDGE_AUDIT_NO);
    copy_base();
    ck_assert_int_eq(unlink(at("fx/models/flex-g1.safetensors")), 0);
    expect(NULL, false, KEDGE_AUDIT_MODEL_FILE, KEDGE_AUDIT_NO);
    expect(NULL, true, KEDGE_AUDIT_MODEL_FILE, KEDGE_AUDIT_YES);
    copy_base();
    fx_copy(at("fx/models/flex-g1.safetensors"), at("fx/models/flex-g2.safetensors"));
    expect(NULL, false, KEDGE_AUDIT_MODEL_FILE, KEDGE_AUDIT_NO);
    copy_base();
    ck_assert_int_eq(rename(at("fx/models/flex-g0.safetensors"), at("fx/models/x")), 0);
    ck_assert_int_eq(rename(at("fx/models/flex-g1.safetensors"), at("fx/models/flex-g0.safetensors")), 0);
    ck_assert_int_eq(rename(at("fx/models/x"), at("fx/models/flex-g1.safetensors")), 0);
    expect(NULL, false, KEDGE_AUDIT_MODEL_FILE, KEDGE_AUDIT_NO);
}
END_TEST

START_TEST(test_state_files)
{
    copy_base();
    fx_flip(at("fx/state/tenants/org-b/tenant.json"),
            -10); /* a digit of the salt: still a digit, or no salt */
    struct kedge_audit_options options = {.threads = 1};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
    copy_base();
    replace(at("fx/state/config.json"), "fx.kedge.local", "fy.kedge.local");
    expect(NULL, false, KEDGE_AUDIT_STATE, KEDGE_AUDIT_NO);
    copy_base();
    ck_assert_int_eq(kedge_dir_remove(at("fx/state/tenants/org-b")), KEDGE_OK);
    expect(NULL, false, KEDGE_AUDIT_TENANT_MISSING, KEDGE_AUDIT_NO);
    copy_base();
    ck_assert_int_eq(kedge_dir_remove(at("fx/state/tenants/org-b/ledger.lmdb")), KEDGE_OK);
    expect(NULL, false, KEDGE_AUDIT_LEDGER, KEDGE_AUDIT_NO);
}
END_TEST

/* ---- bytes of the ledgers ---- */

/* The bytes of an entry as they are stored, from the good record. */
static void read_entry(const char *tenant, uint64_t index, struct kedge_buf *ret)
{
    struct kedge_state_log log;
    struct kedge_id id;
    if (tenant) {
        ck_assert_int_eq(kedge_id_from(kedge_view_str(tenant), &id), KEDGE_OK);
    }
    ck_assert_int_eq(
        kedge_state_log_open(at("good/state"), tenant ? &id : NULL, KEDGE_STATE_COPY, &log, NULL), KEDGE_OK);
    struct kedge_kv_tx *tx;
    uint8_t key[8];
    kedge_store_be64(key, index);
    ck_assert_int_eq(kedge_kv_begin(log.kv, false, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_get(tx, KEDGE_KV_ENTRY, kedge_view_of(key, sizeof key), ret), KEDGE_OK);
    kedge_kv_abort(tx);
    kedge_state_log_close(&log);
}

static const struct entry_case {
    const char *tenant, *mdb;
    uint64_t index;
} entry_cases[] = {
    {NULL, "fx/state/main/ledger.lmdb/data.mdb", 2},
    {NULL, "fx/state/main/ledger.lmdb/data.mdb", 3}, /* a tenant's checkpoint */
    {"org-a", "fx/state/tenants/org-a/ledger.lmdb/data.mdb", 1},
    {"org-b", "fx/state/tenants/org-b/ledger.lmdb/data.mdb", 12},
};

/* Flips one bit of every n-th byte of a stored entry, wherever copies of it stand in the file. */
START_TEST(test_entry_bytes)
{
    const struct entry_case *c = &entry_cases[_i];
    struct kedge_buf file, entry;
    unsigned copies = 0;
    copy_base();
    kedge_buf_init(&file, 256 << 20);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_file_read(at(c->mdb), &file, NULL), KEDGE_OK);
    read_entry(c->tenant, c->index, &entry);
    for (size_t at_byte = 0; at_byte < entry.len; at_byte += 1 + entry.len / 9) {
        struct kedge_buf changed;
        kedge_buf_init(&changed, 256 << 20);
        kedge_buf_put(&changed, file.ptr, file.len);
        uint8_t *p = changed.ptr;
        while ((p = memmem(p, changed.len - (size_t)(p - changed.ptr), entry.ptr, entry.len)) != NULL) {
            p[at_byte] ^= 4;
            p++;
            copies++;
        }
        ck_assert_int_eq(kedge_file_write(at(c->mdb), kedge_buf_view(&changed), 0600, NULL), KEDGE_OK);
        kedge_buf_deinit(&changed);
        expect(NULL, false, KEDGE_AUDIT_LEDGER, KEDGE_AUDIT_NO);
    }
    ck_assert_uint_gt(copies, 8);
    kedge_buf_deinit(&entry);
    kedge_buf_deinit(&file);
}
END_TEST

/* Damage anywhere must end in a verdict or an error, never in a crash. */
START_TEST(test_damaged_pages)
{
    copy_base();
    const char *mdb = at("fx/state/tenants/org-a/ledger.lmdb/data.mdb");
    int64_t size = kedge_file_size(mdb);
    ck_assert_int_gt(size, 0);
    unsigned no = 0;
    for (int i = 0; i < 12; i++) {
        copy_base();
        FILE *f = fopen(at("fx/state/tenants/org-a/ledger.lmdb/data.mdb"), "r+b");
        ck_assert_ptr_nonnull(f);
        ck_assert_int_eq(fseek(f, (long)(size / 12 * i), SEEK_SET), 0);
        for (int k = 0; k < 4096; k++) {
            fputc((k * 37 + i) & 255, f);
        }
        ck_assert_int_eq(fclose(f), 0);
        struct kedge_audit_options options = {.threads = 1, .read_timeout_s = 10};
        struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
        no += r.verdict == KEDGE_AUDIT_NO;
        kedge_audit_report_deinit(&r);
    }
    ck_assert_uint_gt(no, 3);
    copy_base();
    ck_assert_int_eq(truncate(at("fx/state/main/ledger.lmdb/data.mdb"), 8192), 0);
    expect(NULL, false, KEDGE_AUDIT_LEDGER, KEDGE_AUDIT_NO);
}
END_TEST

/* ---- logs written again ---- */

static size_t edit_swap(struct fx_entry *e, size_t n)
{
    struct fx_entry x = e[n - 1];
    e[n - 1] = e[n - 2];
    e[n - 2] = x;
    return n;
}
static size_t edit_swap_releases(struct fx_entry *e, size_t n)
{
    struct fx_entry x = e[n - 2];
    e[n - 2] = e[n - 3];
    e[n - 3] = x;
    return n;
}
static size_t edit_drop(struct fx_entry *e, size_t n)
{
    memmove(&e[4], &e[5], (n - 5) * sizeof *e);
    return n - 1;
}
static size_t edit_double(struct fx_entry *e, size_t n)
{
    e[n] = e[4];
    e[n].idem_key = kedge_view_of(NULL, 0);
    return n + 1;
}
static size_t edit_reverse(struct fx_entry *e, size_t n)
{
    for (size_t i = 2, k = n - 1; i < k; i++, k--) {
        struct fx_entry x = e[i];
        e[i] = e[k];
        e[k] = x;
    }
    return n;
}
static size_t edit_truncate(struct fx_entry *e, size_t n)
{
    (void)e;
    return n - 2;
}
static size_t edit_last(struct fx_entry *e, size_t n)
{
    (void)e;
    return n - 1;
}
static size_t edit_empty(struct fx_entry *e, size_t n)
{
    (void)e;
    (void)n;
    return 0;
}
static size_t edit_nothing(struct fx_entry *e, size_t n)
{
    (void)e;
    return n;
}
static size_t edit_keys(struct fx_entry *e, size_t n)
{
    struct kedge_view x = e[2].idem_key;
    e[2].idem_key = e[3].idem_key;
    e[3].idem_key = x;
    return n;
}
static size_t edit_no_key(struct fx_entry *e, size_t n)
{
    e[2].idem_key = kedge_view_of(NULL, 0);
    return n;
}

/* The last checkpoint of a tenant, which its own log has, too, under another signature. */
static size_t edit_note(struct fx_entry *e, size_t n)
{
    static uint8_t bytes[KEDGE_ENTRY_MAX];
    size_t i = n - 1;
    while (e[i].entry.ptr[0] == '{') {
        i--;
    }
    ck_assert_uint_le(e[i].entry.len, sizeof bytes);
    memcpy(bytes, e[i].entry.ptr, e[i].entry.len);
    uint8_t *digit = &bytes[e[i].entry.len - 10]; /* of the signature */
    *digit = *digit == 'A' ? 'B' : 'A';
    e[i].entry.ptr = bytes;
    return n;
}

static const struct rewrite_case {
    const char *tenant;
    fx_edit *edit;
    bool foreign_key;
    enum kedge_audit_code code;
} rewrites[] = {
    {"org-a", edit_swap, false, KEDGE_AUDIT_FORK},
    {"org-a", edit_drop, false, KEDGE_AUDIT_FORK},
    {"org-a", edit_double, false, KEDGE_AUDIT_DOUBLED},
    {"org-a", edit_reverse, false, KEDGE_AUDIT_FORK},
    {"org-a", edit_truncate, false, KEDGE_AUDIT_TRUNCATED},
    {"org-b", edit_empty, false, KEDGE_AUDIT_TRUNCATED},
    {"org-a", edit_keys, false, KEDGE_AUDIT_IDEMPOTENCY},
    {"org-a", edit_no_key, false, KEDGE_AUDIT_IDEMPOTENCY},
    {"org-a", edit_nothing, true, KEDGE_AUDIT_SIGNATURE},
    {NULL, edit_note, false, KEDGE_AUDIT_SIGNATURE},
    {NULL, edit_swap, false, KEDGE_AUDIT_JOB}, /* job-closed before the last release */
    {NULL, edit_swap_releases, false, KEDGE_AUDIT_RELEASE},
    {NULL, edit_last, false, KEDGE_AUDIT_RELEASE}, /* releases, but no job-closed */
    {NULL, edit_drop, false, KEDGE_AUDIT_ROUND},
    {NULL, edit_double, false, KEDGE_AUDIT_DOUBLED},
    {NULL, edit_reverse, false, KEDGE_AUDIT_JOB},
    {NULL, edit_empty, false, KEDGE_AUDIT_MISPLACED},
    {NULL, edit_nothing, true, KEDGE_AUDIT_SIGNATURE},
};

START_TEST(test_rewritten)
{
    const struct rewrite_case *c = &rewrites[_i];
    copy_base();
    fx_rewrite(at("fx"), c->tenant, c->edit, c->foreign_key);
    expect(NULL, false, c->code, KEDGE_AUDIT_NO);
}
END_TEST

/* ---- checkpoints seen earlier ---- */

START_TEST(test_seen)
{
    struct kedge_buf note;
    copy_base();
    const char *seen = at("seen.note");
    fx_checkpoint(at("good"), NULL, seen);
    struct kedge_audit_options options = {.threads = 1};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), seen, false, options);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    fx_rewrite(at("fx"), NULL, edit_nothing, false); /* the same again: still the same log */
    r = run(at("fx"), at("fx/trust.json"), seen, false, options);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    fx_rewrite(at("fx"), NULL, edit_last,
               false); /* nothing but the seen checkpoint tells of the last entry */
    expect(at("seen.note"), false, KEDGE_AUDIT_TRUNCATED, KEDGE_AUDIT_NO);
    copy_base();
    fx_rewrite(at("fx"), NULL, edit_swap, false);
    expect(at("seen.note"), false, KEDGE_AUDIT_FORK, KEDGE_AUDIT_NO);
    copy_base();
    fx_checkpoint(at("good"), "org-a", at("seen-a.note"));
    fx_rewrite(at("fx"), "org-a", edit_last, false);
    expect(at("seen-a.note"), false, KEDGE_AUDIT_TRUNCATED, KEDGE_AUDIT_NO);
    /* a note of another key, and one that is none */
    struct kedge_key_pair other;
    struct kedge_hash root;
    copy_base();
    kedge_key_generate(&other);
    kedge_sha256(kedge_view_str("x"), &root);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str("fx.kedge.local/main"), 3, &root, &other, &note),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("seen-x.note"), kedge_buf_view(&note), 0600, NULL), KEDGE_OK);
    expect(at("seen-x.note"), false, KEDGE_AUDIT_SEEN, KEDGE_AUDIT_NO);
    ck_assert_int_eq(kedge_file_write(at("seen-x.note"), kedge_view_str("hello\n"), 0600, NULL), KEDGE_OK);
    expect(at("seen-x.note"), false, KEDGE_AUDIT_SEEN, KEDGE_AUDIT_NO);
    /* two checkpoints of one size and two roots, both by the log's own key */
    struct kedge_key_pair own;
    ck_assert_int_eq(kedge_keyfile_read_private(at("good/state/keys/log-main.pem"), &own, NULL), KEDGE_OK);
    kedge_buf_clear(&note);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str("fx.kedge.local/main"), 3, &root, &own, &note),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("seen-x.note"), kedge_buf_view(&note), 0600, NULL), KEDGE_OK);
    expect(at("seen-x.note"), false, KEDGE_AUDIT_FORK, KEDGE_AUDIT_NO);
    kedge_buf_deinit(&note);
}
END_TEST

/* The coordinator's own mark tells of an end that was cut off, and of another history, without any checkpoint
 * kept. */
START_TEST(test_high_water)
{
    static const struct {
        const char *tenant, *mark;
    } logs[] = {{NULL, "state/high-water/main"}, {"org-a", "state/high-water/org-a"}};
    char good[64], now[64];
    for (int i = 0; i < 2; i++) {
        snprintf(good, sizeof good, "good/%s", logs[i].mark);
        snprintf(now, sizeof now, "fx/%s", logs[i].mark);
        copy_base();
        fx_rewrite(at("fx"), logs[i].tenant, edit_last, false);
        fx_copy(at(good), at(now));
        expect(NULL, false, KEDGE_AUDIT_LEDGER, KEDGE_AUDIT_NO);
        copy_base();
        fx_rewrite(at("fx"), logs[i].tenant, edit_swap, false);
        fx_copy(at(good), at(now));
        expect(NULL, false, KEDGE_AUDIT_LEDGER, KEDGE_AUDIT_NO);
        copy_base();
        ck_assert_int_eq(kedge_file_write(at(now), kedge_view_str("no mark\n"), 0600, NULL), KEDGE_OK);
        expect(NULL, false, KEDGE_AUDIT_LEDGER, KEDGE_AUDIT_NO);
        ck_assert_int_eq(unlink(at(now)), 0); /* an exported record has none */
        struct kedge_audit_options options = {.threads = 1};
        struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        kedge_audit_report_deinit(&r);
    }
}
END_TEST

/* ---- manners ---- */

START_TEST(test_no_record)
{
    struct kedge_audit_report r;
    struct kedge_diag d = {.text = ""};
    copy_base();
    ck_assert_int_eq(kedge_audit_verify(at("none"), NULL, NULL, 0, NULL, &r, &d), KEDGE_E_NOT_FOUND);
    ck_assert_str_ne(d.hint, "");
    const char *seen = at("no.note");
    ck_assert_int_eq(kedge_audit_verify(at("fx"), NULL, &seen, 1, NULL, &r, &d), KEDGE_E_NOT_FOUND);
}
END_TEST

START_TEST(test_leaves_no_trace)
{
    static const char *const traces[] = {"lock.mdb", "kedge.lock"};
    char path[KEDGE_PATH_MAX];
    copy_base();
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", at("fx/state/main/ledger.lmdb"), traces[i]);
        (void)unlink(path);
    }
    struct kedge_audit_options options = {.threads = 1};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", at("fx/state/main/ledger.lmdb"), traces[i]);
        ck_assert(!kedge_file_exists(path));
    }
}
END_TEST

/* Memory that runs out anywhere is an error, never a verdict. */
START_TEST(test_out_of_memory)
{
    struct kedge_trust trust;
    struct kedge_diag d = {.text = ""};
    copy_base();
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, &d), KEDGE_OK);
    bool done = false;
    for (long n = 1; !done && n < 100000; n += n < 40 ? 1 : EFFORT(29, 97)) {
        struct kedge_audit_options options = {.threads = 1};
        struct kedge_audit_report r;
        kedge_mem_fail_at(n);
        int err = kedge_audit_replay(at("fx"), &trust, NULL, 0, &options, &r, &d);
        kedge_mem_fail_at(0);
        if (!err) {
            if (r.verdict != KEDGE_AUDIT_YES) {
                print_findings(&r);
            }
            ck_assert_msg(r.verdict == KEDGE_AUDIT_YES, "allocation %ld failed and became a verdict", n);
            kedge_audit_report_deinit(&r);
            done = n > 1000;
        } else {
            ck_assert_msg(err == KEDGE_E_NOMEM, "allocation %ld: %s", n, kedge_strerror(err));
        }
    }
    kedge_trust_deinit(&trust);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-tamper");
    TCase *t = tcase_create("tamper");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, test_blobs);
    tcase_add_test(t, test_blobs_without_statement);
    tcase_add_test(t, test_models);
    tcase_add_test(t, test_state_files);
    tcase_add_loop_test(t, test_entry_bytes, 0, (int)(sizeof entry_cases / sizeof entry_cases[0]));
    tcase_add_test(t, test_damaged_pages);
    tcase_add_loop_test(t, test_rewritten, 0, (int)(sizeof rewrites / sizeof rewrites[0]));
    tcase_add_test(t, test_seen);
    tcase_add_test(t, test_high_water);
    tcase_add_test(t, test_no_record);
    tcase_add_test(t, test_leaves_no_trace);
    tcase_add_test(t, test_out_of_memory);
    suite_add_tcase(s, t);
    return run_tampered(s);
}
