/* Who is a candidate: a round has only candidates that had what its job needs when it opened, as far as the
 * checkpoints around it tell; and a tenant's statements about one site come in order. */
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

#define NEEDS "\"needs\":[\"gpu=h100\"]"

static const struct fx_labels none[] = {{NULL, NULL, 0, false}};
static const struct fx_labels all[] = {{"*", "gpu=h100 zone=eu", 1, false}, {NULL, NULL, 0, false}};
static const struct fx_labels two[] = {
    {"*", "", 1, false}, {"*", "gpu=h100", 2, false}, {NULL, NULL, 0, false}};
static const struct fx_labels one_else[] = {{"s1", "gpu=h100", 1, false},
                                            {"s2", "gpu=h200", 1, false},
                                            {"s9", "gpu=h100", 1, false},
                                            {NULL, NULL, 0, false}};
static const struct fx_labels one_untold[] = {{"s1", "gpu=h100", 1, false}, {NULL, NULL, 0, false}};
static const struct fx_labels taken[] = {
    {"*", "gpu=h100", 1, false}, {"*", "zone=eu", 2, false}, {NULL, NULL, 0, false}};
static const struct fx_labels gap[] = {
    {"*", "gpu=h100", 1, false}, {"*", "gpu=h100", 3, false}, {NULL, NULL, 0, false}};
static const struct fx_labels from_two[] = {{"*", "gpu=h100", 2, false}, {NULL, NULL, 0, false}};
static const struct fx_labels other_key[] = {{"*", "gpu=h100", 1, true}, {NULL, NULL, 0, false}};

static const struct {
    const char *keys;
    const struct fx_labels *labels;
    bool is_good;
    enum kedge_audit_code code; /* of a bad one */
} records[] = {
    {NEEDS, all, true, 0},
    {NEEDS, two, true, 0},
    {"\"enrol_within_s\":86400", none, true, 0},
    {"\"enrol_within_s\":86400", one_else, true, 0},
    {"\"needs\":[\"gpu=h100\",\"zone=eu\"]", all, true, 0},
    {"\"needs\":[\"gpu=h100\",\"zone=us\"]", all, false, KEDGE_AUDIT_CANDIDATE},
    {NEEDS, none, false, KEDGE_AUDIT_CANDIDATE},
    {NEEDS, one_else, false, KEDGE_AUDIT_CANDIDATE},
    {NEEDS, one_untold, false, KEDGE_AUDIT_CANDIDATE},
    {NEEDS, taken, false,
     KEDGE_AUDIT_CANDIDATE}, /* before the first round opened, or after: the second is late */
    {NEEDS, gap, false, KEDGE_AUDIT_MISPLACED},
    {NEEDS, from_two, false, KEDGE_AUDIT_MISPLACED},
    {NEEDS, other_key, false, KEDGE_AUDIT_KEY},
    {"\"sites_per_round\":[3,3]", none, true, 0}, /* as many candidates as there must be, and fewer */
    {"\"sites_per_round\":[4,4]", none, true, 0},
    {"\"sites_per_round\":[5,6]", none, false, KEDGE_AUDIT_ROUND},
};

START_TEST(test_record)
{
    const struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_labels = records[_i].labels;
    fx_ungrouped(at("fx"), records[_i].keys, FX_NONE);
    fx_labels = NULL;
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    if ((r.verdict == KEDGE_AUDIT_YES) != records[_i].is_good) {
        print_findings(&r);
    }
    ck_assert((r.verdict == KEDGE_AUDIT_YES) == records[_i].is_good);
    ck_assert(records[_i].is_good || has_code(&r, records[_i].code));
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-labels");
    TCase *t = tcase_create("labels");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_record, 0, sizeof records / sizeof records[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
