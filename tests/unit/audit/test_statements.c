/* The verdict on each entry: what is wrong is named at the entries that it is about, and nowhere else. */
#include "chain/statement/statement.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/tampered.h"

struct tally {
    uint64_t entries, flawed, unsigned_entries, malformed;
    uint64_t codes;      /* of all */
    char first[128];     /* "log[index] kind" of the first flawed one */
    uint64_t stop_after; /* 0: never */
};

static int count_entry(void *arg, const struct kedge_audit_entry *e)
{
    struct tally *t = arg;
    ck_assert(!kedge_hash_is_zero(&e->leaf));
    if (e->codes && t->flawed++ == 0) {
        snprintf(t->first, sizeof t->first, "%s[%llu] %s", e->log, (unsigned long long)e->index, e->kind);
    }
    t->entries++;
    t->codes |= e->codes;
    t->malformed += strcmp(e->kind, "malformed") == 0;
    t->unsigned_entries += e->signer_count == 0;
    return t->entries == t->stop_after ? KEDGE_E_DISK_FULL : KEDGE_OK;
}

static struct tally tell(bool replay, struct kedge_audit_report *ret)
{
    struct tally t[2] = {{.stop_after = 0}, {.stop_after = 0}};
    struct kedge_trust trust;
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, &d), KEDGE_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct kedge_audit_options options = {.each = count_entry, .each_arg = &t[i], .threads = i ? 4 : 1};
        int err =
            (replay ? kedge_audit_replay : kedge_audit_verify)(at("fx"), &trust, NULL, 0, &options, ret, &d);
        ck_assert_msg(err == KEDGE_OK, "%s", d.text);
        if (i == 0) {
            kedge_audit_report_deinit(ret);
        }
    }
    ck_assert_mem_eq(&t[0], &t[1], sizeof t[0]); /* whatever the number of threads */
    kedge_trust_deinit(&trust);
    return t[0];
}

#define BIT(code) (UINT64_C(1) << KEDGE_AUDIT_##code)

START_TEST(test_good)
{
    struct kedge_audit_report r;
    copy_base();
    struct tally t = tell(true, &r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(t.entries, r.counts.entries);
    ck_assert_uint_eq(t.flawed + t.malformed + t.unsigned_entries, 0);
    ck_assert_str_eq(r.deployment, "fx.kedge.local");
    ck_assert_uint_eq(r.log_count, 3);
    uint64_t entries = 0;
    for (uint32_t i = 0; i < r.log_count; i++) {
        entries += r.logs[i].entries;
        ck_assert_uint_eq(r.logs[i].flawed, 0);
        ck_assert(r.logs[i].has_key && r.logs[i].has_authority);
        ck_assert_uint_eq(r.logs[i].head_size, r.logs[i].entries);
        ck_assert(!kedge_hash_is_zero(&r.logs[i].head_root) && !kedge_hash_is_zero(&r.logs[i].head_note));
    }
    ck_assert_uint_eq(entries, t.entries);
    ck_assert_str_eq(r.logs[0].name, "main");
    ck_assert_str_eq(r.logs[2].origin, "fx.kedge.local/org-b");
    kedge_audit_report_deinit(&r);
}
END_TEST

static const struct twist_case {
    enum fx_twist twist;
    uint64_t codes;  /* exactly these, together */
    uint64_t flawed; /* at so many entries */
    const char *first;
} twists[] = {
    {FX_OTHER_SITE_SIGNS, BIT(SIGNATURE), 0, "fx.kedge.local/org-a["},
    {FX_GARBAGE, BIT(STATEMENT), 1, "fx.kedge.local/org-a["},
    {FX_MISPLACED, BIT(MISPLACED), 1, "fx.kedge.local/org-a["},
    {FX_TOTALS, BIT(TOTALS), 0, "fx.kedge.local/main["},
    {FX_AGGREGATE, 0, 0, ""}, /* only replay finds it */
};

START_TEST(test_twists)
{
    const struct twist_case *c = &twists[_i];
    struct kedge_audit_report r;
    make_scratch();
    fx_federation(at("fx"), c->twist);
    struct tally t = tell(false, &r);
    ck_assert_msg(t.codes == c->codes, "%s: codes %llx, expected %llx", t.first, (unsigned long long)t.codes,
                  (unsigned long long)c->codes);
    ck_assert((t.flawed > 0) == (c->codes != 0));
    ck_assert(c->flawed == 0 || t.flawed == c->flawed);
    ck_assert_int_eq(strncmp(t.first, c->first, strlen(c->first)), 0);
    ck_assert_uint_eq(t.malformed, c->twist == FX_GARBAGE);
    kedge_audit_report_deinit(&r);
    if (c->twist == FX_AGGREGATE) {
        t = tell(true, &r);
        ck_assert(t.codes == BIT(REPLAY_AGGREGATE));
        kedge_audit_report_deinit(&r);
    }
    remove_scratch();
}
END_TEST

struct pick {
    char path[KEDGE_PATH_MAX];
};

static enum kedge_blob_verdict take_first(void *arg, const struct kedge_hash *digest, uint64_t size,
                                          const char *path)
{
    struct pick *p = arg;
    ck_assert(digest && size > 0);
    snprintf(p->path, sizeof p->path, "%s", path);
    return KEDGE_BLOB_STOP;
}

/* A blob that is away or another: the statement that names it is not good, and no other. */
START_TEST(test_blob)
{
    static const struct kedge_blobs_options options = {.read_only = true};
    struct kedge_audit_report r;
    struct kedge_blobs *blobs;
    struct pick p;
    for (int missing = 0; missing < 2; missing++) {
        base_is_made = false;
        copy_base();
        ck_assert_int_eq(kedge_blobs_open(at("fx/state/main"), &options, &blobs, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_blobs_for_each(blobs, take_first, &p, NULL), KEDGE_OK);
        kedge_blobs_close(blobs);
        if (missing) {
            ck_assert_int_eq(unlink(p.path), 0);
        } else {
            fx_flip(p.path, -1);
        }
        struct tally t = tell(false, &r);
        ck_assert(t.codes & (missing ? BIT(BLOB_MISSING) : BIT(BLOB_DIGEST)));
        ck_assert(t.flawed >= 1 && t.flawed < t.entries / 2);
        ck_assert_int_eq(strncmp(t.first, "fx.kedge.local/main[", 20), 0);
        kedge_audit_report_deinit(&r);
        remove_scratch();
    }
}
END_TEST

START_TEST(test_teller_may_fail)
{
    struct tally t = {.stop_after = 7};
    struct kedge_audit_options options = {.each = count_entry, .each_arg = &t};
    struct kedge_audit_report r;
    struct kedge_diag d = {.text = ""};
    base_is_made = false;
    copy_base();
    ck_assert_int_eq(kedge_audit_verify(at("fx"), NULL, NULL, 0, &options, &r, &d), KEDGE_E_DISK_FULL);
    ck_assert_uint_eq(t.entries, 7);
    ck_assert_str_ne(d.text, "");
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-statements");
    TCase *t = tcase_create("statements");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_good);
    tcase_add_loop_test(t, test_twists, 0, (int)(sizeof twists / sizeof twists[0]));
    tcase_add_test(t, test_blob);
    tcase_add_test(t, test_teller_may_fail);
    suite_add_tcase(s, t);
    return run_suite(s);
}
