/* Records in which a tenant had updates erased: what is said then, and what is wrong about an erasure. */
#include <inttypes.h>

#include "chain/store/blob/blobs.h"
#include "tests/fixtures/federation_buffer.h"
#include "tests/fixtures/federation_impl.h"
#include "tests/unit/audit/tampered.h"

enum { UPDATES_MAX = 64 };

/* What is erased, and how. */
struct order {
    const char *job; /* NULL: of all */
    uint32_t rounds_from, rounds_to;
    const char *signer;
    int64_t entry_off; /* added to the entry that is named */
    bool keep_file;
};

struct found {
    struct kedge_hash update;
    uint64_t entry;
};

struct search {
    const struct order *o;
    struct found found[UPDATES_MAX];
    size_t count;
};

static int look(void *arg, uint64_t index, struct kedge_view entry)
{
    static struct kedge_statement st;
    struct search *s = arg;
    struct kedge_signed_statement signed_by;
    ck_assert_int_eq(kedge_statement_read(entry, &st, &signed_by, NULL), KEDGE_OK);
    kedge_buf_deinit(&signed_by.payload);
    const struct kedge_st_update *u = &st.u.update;
    bool meant = st.kind == KEDGE_ST_UPDATE && (!s->o->job || strcmp(u->job.s, s->o->job) == 0)
                 && u->round >= s->o->rounds_from && u->round <= s->o->rounds_to;
    for (size_t i = 0; meant && i < s->count; i++) {
        meant = !kedge_hash_eq(&s->found[i].update, &st.subject);
    }
    if (meant) {
        ck_assert_uint_lt(s->count, UPDATES_MAX);
        s->found[s->count++] = (struct found){st.subject, index};
    }
    return KEDGE_OK;
}

/* Of org-a. Returns how many. */
static size_t erase(const struct order *o)
{
    static struct kedge_statement st;
    struct search s = {.o = o};
    struct kedge_state_log log;
    struct kedge_key_pair key;
    struct kedge_id tenant = fx_id_of("org-a");
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), &tenant, KEDGE_STATE_WRITE, &log, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_for_each(log.ledger, 0, look, &s), KEDGE_OK);
    fx_key_of(o->signer ? o->signer : "org-a", &key);
    for (size_t i = 0; i < s.count; i++) {
        char hex[KEDGE_HASH_HEX_LEN + 1];
        st = (struct kedge_statement){.kind = KEDGE_ST_ERASED};
        st.u.erased = (struct kedge_st_erased){tenant, s.found[i].update,
                                               (uint64_t)((int64_t)s.found[i].entry + o->entry_off),
                                               "no longer needed", "retention"};
        kedge_hash_hex(&s.found[i].update, hex);
        fx_append(&log, &st, &key, "erased/%s", hex);
        ck_assert(o->keep_file || kedge_blobs_remove(log.blobs, &s.found[i].update, NULL) == KEDGE_OK);
    }
    ck_assert_int_eq(kedge_ledger_flush(log.ledger, NULL), KEDGE_OK);
    kedge_state_log_close(&log);
    return s.count;
}

static const char *text_with(const struct kedge_audit_report *r, const char *part)
{
    for (uint32_t i = 0; i < r->finding_count; i++) {
        if (r->findings[i].code == KEDGE_AUDIT_ERASED && strstr(r->findings[i].text, part)) {
            return r->findings[i].text;
        }
    }
    return NULL;
}

static struct kedge_audit_report judged(bool replay, bool live)
{
    struct kedge_audit_options options = {.live = live};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, replay, options);
    if (r.error_count > 0) {
        print_findings(&r);
    }
    return r;
}

START_TEST(all_else_holds)
{
    copy_base();
    struct kedge_audit_report whole = judged(true, false);
    ck_assert_uint_eq(whole.counts.decisions_erased, 0);
    ck_assert_uint_gt(erase(&(struct order){.job = "plain", .rounds_to = 1000}), 0);
    struct kedge_audit_report r = judged(false, false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_ptr_nonnull(text_with(&r, "updates are erased by order of the tenant"));
    ck_assert_ptr_nonnull(text_with(&r, "job \"plain\", group 0: the aggregates of rounds 1"));
    ck_assert_ptr_null(text_with(&r, "grouping"));
    uint64_t notes = r.note_count, erased = r.counts.decisions_erased;
    kedge_audit_report_deinit(&r);
    r = judged(true, false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(r.note_count, notes);
    ck_assert_uint_eq(r.counts.decisions_erased, erased);
    ck_assert_uint_gt(erased, 0);
    ck_assert_uint_eq(r.counts.decisions + erased, whole.counts.decisions);
    kedge_audit_report_deinit(&r);
    kedge_audit_report_deinit(&whole);
}
END_TEST

/* The server's control variate steps with the updates, so its steps rest on them, too. */
START_TEST(control_variates_rest_on_updates)
{
    copy_base();
    ck_assert_int_eq(kedge_dir_remove(at("fx")), KEDGE_OK); /* for another one */
    fx_ungrouped(at("fx"), "\"strategy\":\"scaffold\",\"control_sites\":4", FX_NONE);
    struct kedge_audit_report whole = judged(true, false);
    ck_assert_uint_gt(erase(&(struct order){.rounds_from = 2, .rounds_to = 2}), 0);
    struct kedge_audit_report r = judged(true, false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_ptr_nonnull(text_with(&r, "the aggregates of rounds 2 can"));
    ck_assert_ptr_nonnull(text_with(&r, "the server's steps of rounds 2 cannot be replayed"));
    ck_assert_uint_eq(r.counts.decisions_erased, 2);
    ck_assert_uint_eq(r.counts.decisions + 2, whole.counts.decisions);
    kedge_audit_report_deinit(&r);
    kedge_audit_report_deinit(&whole);
}
END_TEST

START_TEST(groups_rest_on_updates)
{
    copy_base();
    ck_assert_uint_gt(erase(&(struct order){.rounds_to = 0}), 0); /* round 0: pre-training */
    struct kedge_audit_report r = judged(true, false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_ptr_nonnull(text_with(&r, "the groupings of rounds 0 cannot be replayed"));
    ck_assert_ptr_nonnull(text_with(&r, "group 0: the directions of rounds 0"));
    ck_assert_ptr_nonnull(text_with(&r, "which group a site is given, "));
    ck_assert_ptr_nonnull(text_with(&r, "group 0: the aggregates of rounds 0 can"));
    kedge_audit_report_deinit(&r);
}
END_TEST

/* Directions that are estimated again rest on the same updates, and so does what follows from them. */
START_TEST(directions_rest_on_updates_again)
{
    copy_base();
    ck_assert_int_eq(kedge_dir_remove(at("fx")), KEDGE_OK); /* for another one */
    fx_living(at("fx"), FX_NONE);
    struct kedge_audit_report whole = judged(true, false);
    ck_assert_uint_eq(erase(&(struct order){.rounds_to = 0}), 3);
    struct kedge_audit_report r = judged(true, false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_ptr_nonnull(text_with(&r, "group 0: the directions of rounds 0, 2 cannot be replayed"));
    ck_assert_ptr_nonnull(text_with(&r, "group 1: the directions of rounds 0, 2 cannot be replayed"));
    ck_assert_ptr_nonnull(text_with(&r, "which groups are alike or hold two kinds behind rounds 2 cannot"));
    ck_assert_ptr_nonnull(text_with(&r, "which group a site is given, 3 times, cannot be replayed"));
    /* two aggregates, a grouping, four directions, what follows from two of them, three groups */
    ck_assert_uint_eq(r.counts.decisions_erased, 11);
    ck_assert_uint_eq(r.counts.decisions + 11, whole.counts.decisions);
    kedge_audit_report_deinit(&r);
    kedge_audit_report_deinit(&whole);
}
END_TEST

/* org-a's updates of this round are erased from a record of groups that began as one: how many decisions rest
 * on them, and what is said of the trials (NULL: nothing, they are judged as ever). */
static const struct {
    void (*make)(const char *dir, enum fx_twist twist);
    enum fx_twist twist;
    uint32_t round, erased;
    const char *says;
} cut[] = {
    /* the first grouping, direction and aggregate, the closes that look for cuts, the groups of org-a's
       sites; round 7 looks for cuts, and finds none */
    {fx_parts, FX_NONE, 0, 3 + 5 + 12, "tried or cut after rounds 1-3, 6-7 cannot be replayed"},
    {fx_parts, FX_PARTS_BACK, 0, 3 + 4 + 18, "tried or cut after rounds 1, 3, 6-7 cannot be replayed"},
    {fx_parts, FX_PARTS_OFTEN, 0, 3 + 6 + 14, "tried or cut after rounds 1-4, 6-7 cannot be replayed"},
    /* aggregates, and the model of a cut that is taken back; of round 3 the parts' trials, too; round 4 cuts
       none */
    {fx_parts, FX_NONE, 3, 3 + 1 + 1, "tried or cut after rounds 3 cannot be replayed"},
    {fx_parts, FX_NONE, 4, 3 + 1, NULL},
    /* as where directions are estimated again, above, and a move */
    {fx_joining, FX_NONE, 0, 11 + 1, "alike or hold two kinds behind rounds 2 cannot be replayed"},
};

START_TEST(cuts_rest_on_updates)
{
    copy_base();
    ck_assert_int_eq(kedge_dir_remove(at("fx")), KEDGE_OK); /* for another one */
    cut[_i].make(at("fx"), cut[_i].twist);
    struct kedge_audit_report whole = judged(true, false);
    ck_assert_int_eq(whole.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_gt(erase(&(struct order){.rounds_from = cut[_i].round, .rounds_to = cut[_i].round}), 0);
    struct kedge_audit_report r = judged(true, false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert(cut[_i].says ? text_with(&r, cut[_i].says) != NULL : !text_with(&r, "tried or cut"));
    ck_assert_uint_eq(r.counts.decisions_erased, cut[_i].erased);
    ck_assert_uint_eq(r.counts.decisions + cut[_i].erased, whole.counts.decisions);
    kedge_audit_report_deinit(&r);
    kedge_audit_report_deinit(&whole);
}
END_TEST

/* What sites found of a trial is a statement: that the record goes against it is found, whatever is erased.
 */
START_TEST(evaluations_are_not_erased)
{
    static const enum fx_twist forged[] = {FX_PARTS_STAYS_FORGED, FX_PARTS_BACK_FORGED};
    copy_base();
    ck_assert_int_eq(kedge_dir_remove(at("fx")), KEDGE_OK); /* for another one */
    fx_parts(at("fx"), forged[_i]);
    ck_assert_uint_gt(erase(&(struct order){.rounds_to = 8}), 0);
    struct kedge_audit_report r = judged(true, false);
    ck_assert(has_code(&r, KEDGE_AUDIT_REPLAY_GROUPING));
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
}
END_TEST

/* An aggregate of an asynchronous job rests on updates of earlier rounds' tasks, too. */
START_TEST(late_updates_are_rested_on)
{
    copy_base();
    ck_assert_int_eq(kedge_dir_remove(at("fx")), KEDGE_OK); /* for another one */
    fx_buffered(at("fx"), NULL, FX_BUFFER_NONE);
    struct kedge_audit_report whole = judged(true, false);
    ck_assert_int_eq(whole.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_gt(erase(&(struct order){.rounds_from = 1, .rounds_to = 1}), 1);
    struct kedge_audit_report r = judged(true, false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_ptr_nonnull(text_with(&r, "group 0: the aggregates of rounds 1, 3 cannot be replayed"));
    ck_assert_uint_eq(r.counts.decisions_erased, 2);
    ck_assert_uint_eq(r.counts.decisions + 2, whole.counts.decisions);
    kedge_audit_report_deinit(&r);
    kedge_audit_report_deinit(&whole);
}
END_TEST

START_TEST(everything_erased)
{
    copy_base();
    ck_assert_uint_gt(erase(&(struct order){.rounds_to = 1000}), 0);
    struct kedge_audit_report r = judged(true, false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_gt(r.counts.decisions, 0); /* selections, steps, … */
    kedge_audit_report_deinit(&r);
}
END_TEST

START_TEST(a_file_that_is_still_here)
{
    copy_base();
    erase(&(struct order){.job = "plain", .rounds_from = 1, .rounds_to = 1, .keep_file = true});
    expect(NULL, false, KEDGE_AUDIT_ERASED, KEDGE_AUDIT_NO);
    struct kedge_audit_report r = judged(false, true); /* the coordinator may be about to remove it */
    ck_assert_uint_eq(r.error_count, 0);
    ck_assert_ptr_nonnull(text_with(&r, "is still here; org-a["));
    kedge_audit_report_deinit(&r);
}
END_TEST

START_TEST(orders_that_are_none)
{
    copy_base();
    erase(&(struct order){.job = "plain", .rounds_from = 1, .rounds_to = 1, .entry_off = 1000000});
    expect(NULL, false, KEDGE_AUDIT_ERASED, KEDGE_AUDIT_NO); /* names an entry that is not there */
    copy_base();
    erase(&(struct order){.job = "plain", .rounds_from = 1, .rounds_to = 1, .entry_off = -1});
    expect(NULL, false, KEDGE_AUDIT_ERASED, KEDGE_AUDIT_NO); /* names another entry */
    copy_base();
    erase(&(struct order){.job = "plain", .rounds_from = 1, .rounds_to = 1, .signer = "org-b"});
    expect(NULL, false, KEDGE_AUDIT_SIGNATURE, KEDGE_AUDIT_NO); /* not signed by the tenant's admin */
}
END_TEST

/* The last entry, an order, comes before everything but the admin's key. */
static size_t order_first(struct fx_entry *entries, size_t count)
{
    struct fx_entry last = entries[count - 1];
    memmove(&entries[2], &entries[1], (count - 2) * sizeof *entries);
    entries[1] = last;
    return count;
}

START_TEST(an_update_behind_its_order)
{
    copy_base();
    erase(&(struct order){.job = "plain", .rounds_from = 1, .rounds_to = 1});
    fx_rewrite(at("fx"), "org-a", order_first, false);
    expect(NULL, false, KEDGE_AUDIT_ERASED, KEDGE_AUDIT_NO);
}
END_TEST

START_TEST(no_order_no_excuse)
{
    copy_base();
    erase(&(struct order){.job = "plain", .rounds_from = 1, .rounds_to = 1});
    struct order rest = {.rounds_from = 2, .rounds_to = 2};
    struct search s = {.o = &rest};
    struct kedge_state_log log;
    struct kedge_id tenant = fx_id_of("org-a");
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), &tenant, KEDGE_STATE_WRITE, &log, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_for_each(log.ledger, 0, look, &s), KEDGE_OK);
    ck_assert_uint_gt(s.count, 0);
    ck_assert_int_eq(kedge_blobs_remove(log.blobs, &s.found[0].update, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_find(log.blobs, &s.found[0].update, NULL), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_blobs_remove(log.blobs, &s.found[0].update, NULL), KEDGE_OK); /* once more */
    kedge_state_log_close(&log);
    expect(NULL, false, KEDGE_AUDIT_BLOB_MISSING, KEDGE_AUDIT_NO);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-erased");
    TCase *t = tcase_create("erased");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, all_else_holds);
    tcase_add_test(t, control_variates_rest_on_updates);
    tcase_add_test(t, groups_rest_on_updates);
    tcase_add_test(t, directions_rest_on_updates_again);
    tcase_add_loop_test(t, cuts_rest_on_updates, 0, sizeof cut / sizeof cut[0]);
    tcase_add_loop_test(t, evaluations_are_not_erased, 0, 2);
    tcase_add_test(t, late_updates_are_rested_on);
    tcase_add_test(t, everything_erased);
    tcase_add_test(t, a_file_that_is_still_here);
    tcase_add_test(t, orders_that_are_none);
    tcase_add_test(t, an_update_behind_its_order);
    tcase_add_test(t, no_order_no_excuse);
    suite_add_tcase(s, t);
    return run_tampered(s);
}
