/* Which models may be given up, what is said of a record that lacks them, and how a replay makes them again.
 */
#include "chain/store/blob/pruned.h"
#include "tests/unit/audit/support.h"

enum { ROUNDS = 5 };

static struct kedge_trust trust;

/* What may go of the record in "fx", and the verdict of the replay before. */
static size_t choose(const char *job, uint32_t keep_every, struct kedge_buf *ret)
{
    struct kedge_audit_options options = {.threads = 1};
    struct kedge_audit_report r;
    struct kedge_diag d = {.text = ""};
    struct kedge_id id = {""};
    if (job) {
        ck_assert_int_eq(kedge_id_from(kedge_view_str(job), &id), KEDGE_OK);
    }
    const struct kedge_audit_prune ask = {.job = job ? &id : NULL, .keep_every = keep_every, .ret = ret};
    kedge_buf_init(ret, 1 << 16);
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, &d), KEDGE_OK);
    ck_assert_msg(kedge_audit_prunable(at("fx"), &trust, &options, &ask, &r, &d) == KEDGE_OK, "%s", d.text);
    kedge_trust_deinit(&trust);
    if (r.verdict != KEDGE_AUDIT_YES) {
        print_findings(&r);
    }
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    for (size_t i = KEDGE_HASH_LEN; i < ret->len; i += KEDGE_HASH_LEN) {
        ck_assert_int_lt(memcmp(ret->ptr + i - KEDGE_HASH_LEN, ret->ptr + i, KEDGE_HASH_LEN), 0);
    }
    return ret->len / KEDGE_HASH_LEN;
}

static size_t count(const char *job, uint32_t keep_every)
{
    struct kedge_buf digests;
    size_t n = choose(job, keep_every, &digests);
    kedge_buf_deinit(&digests);
    return n;
}

/* As kedge ledger prune does; listed: writes them down before. */
static void give_up(struct kedge_view digests, bool listed)
{
    struct kedge_state_log log;
    struct kedge_hash digest;
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(kedge_state_log_open(at("fx/state"), NULL, KEDGE_STATE_WRITE, &log, &d) == KEDGE_OK, "%s",
                  d.text);
    ck_assert(!listed || kedge_pruned_add(at("fx/state/main"), digests, &d) == KEDGE_OK);
    for (size_t i = 0; i < digests.len; i += KEDGE_HASH_LEN) {
        memcpy(digest.b, digests.ptr + i, sizeof digest.b);
        ck_assert_int_eq(kedge_blobs_remove(log.blobs, &digest, &d), KEDGE_OK);
    }
    kedge_state_log_close(&log);
}

static struct kedge_audit_report judged(bool replay)
{
    struct kedge_audit_options options = {.threads = 1};
    return run(at("fx"), at("fx/trust.json"), NULL, replay, options);
}

/* The record lacks a model that nobody may give up, or says that it does. */
static void assert_missing(bool replay)
{
    struct kedge_audit_report r = judged(replay);
    ck_assert(has_code(&r, KEDGE_AUDIT_BLOB_MISSING));
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
}

/* All that a replay computes. */
static struct kedge_hash results(void)
{
    struct kedge_audit_report r = judged(true);
    struct kedge_hash digest = r.results;
    kedge_audit_report_deinit(&r);
    return digest;
}

/* The job's released model. */
static struct kedge_hash last_model(void)
{
    struct kedge_buf bytes;
    struct kedge_hash digest;
    kedge_buf_init(&bytes, 1 << 20);
    ck_assert_int_eq(kedge_file_read(at("fx/models/plain-g0.safetensors"), &bytes, NULL), KEDGE_OK);
    kedge_sha256(kedge_buf_view(&bytes), &digest);
    kedge_buf_deinit(&bytes);
    return digest;
}

START_TEST(test_which_models)
{
    make_scratch();
    fx_large(at("fx"), 2, ROUNDS);
    ck_assert_uint_eq(count(NULL, 0), ROUNDS - 1); /* the last one is the job's result */
    ck_assert_uint_eq(count(NULL, 2), 2);          /* of rounds 1 and 3 */
    ck_assert_uint_eq(count(NULL, 1), 0);
    ck_assert_uint_eq(count("nobody", 0), 0);
    remove_scratch();
}
END_TEST

START_TEST(test_open_jobs_keep_all)
{
    make_scratch();
    fx_federation(at("fx"), FX_UNFINISHED);
    struct kedge_buf digests;
    struct kedge_audit_report r = judged(false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    size_t n = choose(NULL, 0, &digests);
    kedge_buf_deinit(&digests);
    remove_scratch();
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    ck_assert_uint_lt(n, count(NULL, 0));
    remove_scratch();
}
END_TEST

START_TEST(test_made_again)
{
    struct kedge_buf digests;
    make_scratch();
    fx_large(at("fx"), 2, ROUNDS);
    struct kedge_hash before = results();
    ck_assert_uint_eq(choose(NULL, 0, &digests), ROUNDS - 1);
    give_up(kedge_buf_view(&digests), true);
    for (int replay = 0; replay < 2; replay++) {
        struct kedge_audit_report r = judged(replay);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        ck_assert_uint_eq(r.error_count, 0);
        ck_assert_uint_eq(r.counts.pruned, ROUNDS - 1);
        ck_assert_uint_eq(r.counts.rebuilt, replay ? ROUNDS - 1 : 0);
        kedge_audit_report_deinit(&r);
    }
    struct kedge_hash again = results();
    ck_assert(kedge_hash_eq(&before, &again));
    ck_assert_uint_eq(count(NULL, 0), ROUNDS - 1); /* once more is fine */
    kedge_buf_deinit(&digests);
    remove_scratch();
}
END_TEST

/* Models of groups that are tried, joined and cut. */
static const struct {
    void (*make)(const char *dir, enum fx_twist twist);
    enum fx_twist twist;
} grouped[] = {
    {fx_trying, FX_NONE}, {fx_parts, FX_NONE}, {fx_parts, FX_PARTS_BACK}, {fx_parts, FX_PARTS_OFTEN}};

START_TEST(test_groups_made_again)
{
    struct kedge_buf digests;
    make_scratch();
    grouped[_i].make(at("fx"), grouped[_i].twist);
    struct kedge_hash before = results();
    ck_assert_uint_gt(choose(NULL, 0, &digests), 0);
    give_up(kedge_buf_view(&digests), true);
    for (int replay = 0; replay < 2; replay++) {
        struct kedge_audit_report r = judged(replay);
        print_findings(&r);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        ck_assert_uint_eq(r.counts.rebuilt, replay ? digests.len / KEDGE_HASH_LEN : 0);
        kedge_audit_report_deinit(&r);
    }
    struct kedge_hash again = results();
    ck_assert(kedge_hash_eq(&before, &again));
    kedge_buf_deinit(&digests);
    remove_scratch();
}
END_TEST

START_TEST(test_not_these)
{
    struct kedge_buf digests;
    struct kedge_hash last;
    make_scratch();
    fx_large(at("fx"), 2, ROUNDS);
    ck_assert_uint_eq(choose(NULL, 0, &digests), ROUNDS - 1);
    give_up(kedge_view_of(digests.ptr, KEDGE_HASH_LEN), false); /* gone, and nobody said so */
    assert_missing(false);
    ck_assert_int_eq(kedge_pruned_add(at("fx/state/main"), kedge_view_of(digests.ptr, KEDGE_HASH_LEN), NULL),
                     KEDGE_OK);
    last = last_model();
    give_up(kedge_view_of(last.b, sizeof last.b), true); /* listed, and it may not be */
    assert_missing(false);
    assert_missing(true);
    kedge_buf_deinit(&digests);
    remove_scratch();
}
END_TEST

START_TEST(test_list)
{
    static const char *const bad[] = {"", "kedge-pruned/v2\n", "kedge-pruned/v1\nff\n", "kedge-pruned/v1"};
    const struct kedge_hash a = {{1}}, b = {{2}};
    uint8_t both[2 * KEDGE_HASH_LEN];
    struct kedge_buf got;
    make_scratch();
    kedge_buf_init(&got, 1 << 10);
    ck_assert_int_eq(kedge_pruned_read(scratch, &got, NULL), KEDGE_OK);
    ck_assert(got.len == 0 && !kedge_pruned_has(kedge_buf_view(&got), &a));
    memcpy(both, b.b, sizeof b.b);
    memcpy(both + sizeof b.b, a.b, sizeof a.b);
    ck_assert_int_eq(kedge_pruned_add(scratch, kedge_view_of(both, sizeof b.b), NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_pruned_add(scratch, kedge_view_of(both, sizeof both), NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_pruned_read(scratch, &got, NULL), KEDGE_OK);
    ck_assert_uint_eq(got.len, sizeof both); /* ascending, each once */
    ck_assert(kedge_pruned_has(kedge_buf_view(&got), &a) && kedge_pruned_has(kedge_buf_view(&got), &b));
    ck_assert(memcmp(got.ptr, a.b, sizeof a.b) == 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedge_file_write(at("pruned.txt"), kedge_view_str(bad[i]), 0600, NULL), KEDGE_OK);
        kedge_buf_clear(&got);
        ck_assert_int_eq(kedge_pruned_read(scratch, &got, NULL), KEDGE_E_CORRUPT);
        ck_assert_int_eq(kedge_pruned_add(scratch, kedge_view_of(both, sizeof both), NULL), KEDGE_E_CORRUPT);
    }
    kedge_buf_deinit(&got);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit_prune");
    TCase *c = tcase_create("prune");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, test_which_models);
    tcase_add_test(c, test_open_jobs_keep_all);
    tcase_add_test(c, test_made_again);
    tcase_add_loop_test(c, test_groups_made_again, 0, sizeof grouped / sizeof grouped[0]);
    tcase_add_test(c, test_not_these);
    tcase_add_test(c, test_list);
    suite_add_tcase(s, c);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
