/* What steps charge against a job's budget, and rounds that are opened though nothing is left. The fixtures'
 * coordinator has no budgets: what its steps say is added as it signs them, honestly, or with one thing
 * wrong. */
#include "coordinator/schedule/budget.h"
#include "job/job_spec.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

#define METERED "\"budget\":{\"joules\":1000000000}"

/* The cost of an update of the fixtures is the same for all: so a round's is told by its count. */
enum lie { HONEST, CHARGES_MORE, CHARGES_LESS, FORGETS, SPENDS_LESS, SAYS_NOTHING };
static enum lie lie;
static uint32_t steps;
static uint64_t sums[8], spent; /* by round */
static uint64_t said[8];        /* what the last record's steps charged */

static uint64_t cost_of(const struct kedge_st_update *u)
{
    const struct kedge_job_spec spec = {
        .strategy = kedge_strategy_find("fedavg"),
        .round_timeout_s = 3600,
        .budget = {.unit = KEDGE_JOB_BUDGET_JOULES, .per_joule = 1, .watts = 1000}};
    return kedge_job_spec_charge(&spec, u->energy_quality != KEDGE_ENERGY_UNKNOWN, u->energy_joules,
                                 u->seconds);
}

static void say(struct kedge_st_step *step)
{
    const bool second = step->round == 2;
    step->charged = sums[step->round];
    step->charged += lie == CHARGES_MORE && second ? 1 : 0;
    step->charged -= lie == CHARGES_LESS && second ? 1 : 0;
    spent = kedge_schedule_sum(lie == FORGETS && second ? 0 : spent, step->charged);
    step->spent = spent - (lie == SPENDS_LESS && second ? 1 : 0);
    said[step->round] = step->charged;
    if (lie == SAYS_NOTHING && second) {
        step->charged = step->spent = 0;
    }
}

/* The linker puts this in the place of the fixtures' (--wrap).
 * NOLINTBEGIN(cert-dcl51-cpp): the linker's names */
int __real_kedge_statement_sign(const struct kedge_statement *st, const struct kedge_key_pair *key,
                                struct kedge_buf *ret, struct kedge_diag *d);
int __wrap_kedge_statement_sign(const struct kedge_statement *st, const struct kedge_key_pair *key,
                                struct kedge_buf *ret, struct kedge_diag *d);
int __wrap_kedge_statement_sign(const struct kedge_statement *st, const struct kedge_key_pair *key,
                                struct kedge_buf *ret, struct kedge_diag *d)
{
    static struct kedge_statement other;
    other = *st;
    if (st->kind == KEDGE_ST_UPDATE) {
        ck_assert_uint_lt(st->u.update.round, 8);
        other.u.update.energy_quality = KEDGE_ENERGY_MEASURED;
        other.u.update.energy_joules = 2.5 + st->u.update.round;
        other.u.update.seconds = 1;
        sums[st->u.update.round] = kedge_schedule_sum(sums[st->u.update.round], cost_of(&other.u.update));
    } else if (st->kind == KEDGE_ST_STEP) {
        steps++;
        say(&other.u.step);
    }
    return __real_kedge_statement_sign(&other, key, ret, d);
}
/* NOLINTEND(cert-dcl51-cpp) */

static void make(const char *keys, enum lie what)
{
    lie = what;
    steps = 0;
    spent = 0;
    memset(sums, 0, sizeof sums);
    fx_ungrouped(at("fx"), keys, FX_NONE);
    ck_assert_uint_ge(steps, 2);
}

static struct kedge_audit_report audit(void)
{
    const struct kedge_audit_options options = {.threads = 1};
    return run(at("fx"), at("fx/trust.json"), NULL, false, options);
}

START_TEST(test_honest)
{
    make_scratch();
    make(METERED, HONEST);
    struct kedge_audit_report r = audit();
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_gt(said[1], 0);
    ck_assert_uint_gt(said[2], 0);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

static const enum lie lies[] = {CHARGES_MORE, CHARGES_LESS, FORGETS, SPENDS_LESS, SAYS_NOTHING};

START_TEST(test_lies)
{
    make_scratch();
    make(METERED, lies[_i]);
    assert_found(false, KEDGE_AUDIT_BUDGET, "a charge");
    remove_scratch();
}
END_TEST

/* A job without a budget is charged nothing. */
START_TEST(test_without_budget)
{
    make_scratch();
    make("\"enrol_within_s\":86400", HONEST);
    assert_found(false, KEDGE_AUDIT_BUDGET, "a charge of a job without budget");
    remove_scratch();
}
END_TEST

/* Round 2 is opened where twice the cost of round 1 is left, to the last millionth; with one less it is the
 * coordinator's crime, whatever else fits. */
START_TEST(test_opened_though_spent)
{
    char keys[128];
    make_scratch();
    make(METERED, HONEST);
    const uint64_t first = said[1];
    for (uint64_t less = 0; less < 2; less++) {
        const uint64_t budget = 2 * first - less;
        ck_assert_int_eq(kedge_dir_remove(at("fx")), KEDGE_OK);
        snprintf(keys, sizeof keys, "\"budget\":{\"joules\":\"%u.%06u\"}", (unsigned)(budget / 1000000),
                 (unsigned)(budget % 1000000));
        make(keys, HONEST);
        struct kedge_audit_report r = audit();
        if (has_code(&r, KEDGE_AUDIT_BUDGET) != (less == 1)) {
            print_findings(&r);
        }
        ck_assert(has_code(&r, KEDGE_AUDIT_BUDGET) == (less == 1));
        kedge_audit_report_deinit(&r);
    }
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-budget");
    TCase *t = tcase_create("budget");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_honest);
    tcase_add_loop_test(t, test_lies, 0, sizeof lies / sizeof lies[0]);
    tcase_add_test(t, test_without_budget);
    tcase_add_test(t, test_opened_though_spent);
    suite_add_tcase(s, t);
    return run_suite(s);
}
