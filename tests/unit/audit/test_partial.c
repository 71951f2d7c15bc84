/* A tenant's copy alone: its ledger, the main chain's proofs and its own inputs are judged; the rest is said
 * to be unchecked, and only the rest. */
#include "chain/store/kv/kv.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/tampered.h"

static struct kedge_audit_report audit_as(const char *tenant, bool replay)
{
    static struct kedge_id id;
    struct kedge_audit_options options = {.tenant_count = tenant != NULL, .tenants = &id};
    if (tenant) {
        ck_assert_int_eq(kedge_id_from(kedge_view_str(tenant), &id), KEDGE_OK);
    }
    return run(at("fx"), at("fx/trust.json"), NULL, replay, options);
}

static bool has_note(const struct kedge_audit_report *r, const char *where, const char *text)
{
    for (uint32_t i = 0; i < r->finding_count; i++) {
        const struct kedge_audit_finding *f = &r->findings[i];
        if (f->severity == KEDGE_AUDIT_NOTE && strcmp(f->where, where) == 0 && strstr(f->text, text)) {
            return true;
        }
    }
    return false;
}

static void fresh(void)
{
    base_is_made = false;
    copy_base();
}

START_TEST(test_replica)
{
    static const char *const names[] = {"org-a", "org-b"};
    for (int replay = 0; replay < 2; replay++) {
        fresh();
        fx_replica(at("fx"), names[_i]);
        struct kedge_audit_report r = audit_as(names[_i], replay);
        print_findings(&r);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        ck_assert_uint_eq(r.counts.logs, 2);
        ck_assert(has_note(&r, "main", "withheld"));
        ck_assert(has_note(&r, "tenants", "the ledger of"));
        ck_assert(has_note(&r, "tenants", "input lists"));
        ck_assert(has_note(&r, "replay", "decisions") == replay);
        ck_assert(!has_note(&r, "blobs", "")); /* of what it may read everything is here */
        ck_assert(!replay || r.counts.decisions > 0);
        kedge_audit_report_deinit(&r);
        remove_scratch();
    }
}
END_TEST

/* Closes of all kinds, of which one tenant's inputs are not here: what they decided is taken as recorded, and
 * what rests on models alone is made again. */
static const struct {
    void (*make)(const char *dir, enum fx_twist twist);
} grouped[] = {{fx_moving},  {fx_regrouping}, {fx_keeping}, {fx_living},
               {fx_joining}, {fx_cutting},    {fx_parts}};

START_TEST(test_replica_of_groups)
{
    make_scratch();
    grouped[_i].make(at("fx"), FX_NONE);
    fx_replica(at("fx"), "org-a");
    struct kedge_audit_report r = audit_as("org-a", true);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert(has_note(&r, "replay", "decisions"));
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* Not named on the command line, an incomplete copy is no record. */
START_TEST(test_not_asked_for)
{
    fresh();
    fx_replica(at("fx"), "org-a");
    struct kedge_audit_report r = audit_as(NULL, false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    ck_assert(has_code(&r, KEDGE_AUDIT_TENANT_MISSING));
    kedge_audit_report_deinit(&r);
    r = audit_as("org-b", false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    ck_assert(has_code(&r, KEDGE_AUDIT_TENANT_MISSING));
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* A whole record may be judged as one tenant's: the others are not looked at. */
START_TEST(test_whole_record)
{
    fresh();
    struct kedge_audit_report r = audit_as("org-a", true);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert(!has_note(&r, "main", "withheld"));
    ck_assert(has_note(&r, "main", "checkpoints of tenants"));
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

struct remover {
    bool updates; /* those that are no text: lists begin with '{' */
    size_t removed;
};

static enum kedge_blob_verdict remove_some(void *arg, const struct kedge_hash *digest, uint64_t size,
                                           const char *path)
{
    struct remover *r = arg;
    char first = 0;
    FILE *f = fopen(path, "re");
    ck_assert(f && digest && size > 0 && fread(&first, 1, 1, f) == 1);
    fclose(f);
    if ((first == '{') == r->updates) {
        return KEDGE_BLOB_KEEP;
    }
    ck_assert_int_eq(unlink(path), 0);
    r->removed++;
    return KEDGE_BLOB_KEEP;
}

static size_t remove_blobs(const char *folder, bool updates)
{
    static const struct kedge_blobs_options options = {.read_only = true};
    struct remover r = {.updates = updates};
    struct kedge_blobs *blobs;
    ck_assert_int_eq(kedge_blobs_open(at(folder), &options, &blobs, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_for_each(blobs, remove_some, &r, NULL), KEDGE_OK);
    kedge_blobs_close(blobs);
    ck_assert_uint_gt(r.removed, 0);
    return r.removed;
}

/* Without updates, models or lists everything else still holds. */
START_TEST(test_without_blobs)
{
    fresh();
    fx_replica(at("fx"), "org-a");
    (void)remove_blobs("fx/state/tenants/org-a", true);
    struct kedge_audit_report r = audit_as("org-a", true);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert(has_note(&r, "blobs", "this copy does not hold"));
    kedge_audit_report_deinit(&r);
    (void)remove_blobs("fx/state/tenants/org-a", false);
    (void)remove_blobs("fx/state/main", true);
    (void)remove_blobs("fx/state/main", false); /* job specs, too */
    ck_assert_int_eq(kedge_dir_remove(at("fx/models")), KEDGE_OK);
    r = audit_as("org-a", true);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert(has_note(&r, "main/blobs", "job specs"));
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* What is here must hold: one tenant's own faults are found in its copy. */
static const struct fault {
    enum fx_twist twist;
    enum kedge_audit_code code;
} faults[] = {
    {FX_OTHER_SITE_SIGNS, KEDGE_AUDIT_SIGNATURE},
    {FX_TOTALS, KEDGE_AUDIT_TOTALS},
    {FX_UNLISTED, KEDGE_AUDIT_UNLISTED},
    {FX_REVOKED_UPDATE, KEDGE_AUDIT_SITE_REVOKED},
    {FX_MAIN_ROOT, KEDGE_AUDIT_FORK},
    {FX_SEED, KEDGE_AUDIT_ROUND},
    {FX_ROW_DIGEST, KEDGE_AUDIT_ROW},
    {FX_GHOST_UPDATE, KEDGE_AUDIT_SITE_UNKNOWN},
};

/* Of the main chain all that was there before the last round was opened. */
static size_t edit_before_last_round(struct fx_entry *entries, size_t count)
{
    static const char opened[] = "round-opened/";
    for (size_t i = count; i-- > 0;) {
        struct kedge_view key = entries[i].idem_key;
        if (key.len > sizeof opened - 1 && memcmp(key.ptr, opened, sizeof opened - 1) == 0) {
            return i;
        }
    }
    return count;
}

/* A replica of a coordinator that runs: its main chain was taken first, so the ledger is newer than it. What
 * the main chain cannot know yet is no fault; in a record that nobody writes to any more it is one. */
START_TEST(test_replica_of_a_running_coordinator)
{
    for (int is_replica = 0; is_replica < 2; is_replica++) {
        fresh();
        fx_rewrite(at("fx"), NULL, edit_before_last_round, false);
        ck_assert_int_eq(kedge_dir_remove(at("fx/models")), KEDGE_OK); /* of a release to come */
        if (is_replica) {
            fx_replica(at("fx"), "org-a");
        }
        struct kedge_audit_report r = audit_as("org-a", false);
        print_findings(&r);
        ck_assert_int_eq(r.verdict, is_replica ? KEDGE_AUDIT_YES : KEDGE_AUDIT_NO);
        ck_assert_int_eq(has_code(&r, KEDGE_AUDIT_UPDATE), true);
        kedge_audit_report_deinit(&r);
        remove_scratch();
    }
}
END_TEST

START_TEST(test_faults)
{
    make_scratch();
    fx_federation(at("fx"), faults[_i].twist);
    fx_replica(at("fx"), "org-a");
    struct kedge_audit_report r = audit_as("org-a", false);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    ck_assert_msg(has_code(&r, faults[_i].code), "expected %s", kedge_audit_code_name(faults[_i].code));
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-partial");
    TCase *t = tcase_create("partial");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_replica, 0, 2);
    tcase_add_loop_test(t, test_replica_of_groups, 0, (int)(sizeof grouped / sizeof grouped[0]));
    tcase_add_test(t, test_replica_of_a_running_coordinator);
    tcase_add_test(t, test_not_asked_for);
    tcase_add_test(t, test_whole_record);
    tcase_add_test(t, test_without_blobs);
    tcase_add_loop_test(t, test_faults, 0, (int)(sizeof faults / sizeof faults[0]));
    suite_add_tcase(s, t);
    return run_suite(s);
}
