/* Which blobs a statement references, and that all of them, and its bytes, fit an entry of a ledger. */
#include "chain/statement/entry_index.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/chain/samples.h"

static struct kedge_statement st, read;
static struct kedge_hash refs[KEDGE_ENTRY_REFS_MAX];

/* A digest of its own for every (what, number), none of them zero. */
static struct kedge_hash digest_of(uint32_t what, uint32_t number)
{
    struct kedge_hash h = {{0xff}};
    h.b[1] = (uint8_t)what;
    h.b[2] = (uint8_t)number;
    return h;
}

static bool has(size_t count, const struct kedge_hash *digest)
{
    for (size_t i = 0; i < count; i++) {
        if (kedge_hash_eq(&refs[i], digest)) {
            return true;
        }
    }
    return false;
}

/* ---- references ---- */

/* Of as many groups as there can be, each with all that a step can say: none is left out. */
START_TEST(a_step_references_all_that_a_round_needs)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_STEP};
    st.u.step.group_count = KEDGE_GROUPS_MAX;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        st.u.step.groups[g] = (struct kedge_st_step_group){
            .group = g,
            .before = digest_of(100, g),
            .state_before = digest_of(101, g),
            .made = digest_of(102, g),
            .aggregate = digest_of(0, g),
            .after = digest_of(1, g),
            .stepped = digest_of(2, g),
            .state_after = digest_of(3, g),
            .direction = digest_of(4, g),
            .whole = digest_of(5, g),
            .trial = digest_of(6, g),
        };
    }
    size_t count = kedge_statement_refs(&st, refs);
    ck_assert_uint_eq(count, KEDGE_STEP_GROUP_REFS * KEDGE_GROUPS_MAX);
    for (uint32_t what = 0; what < KEDGE_STEP_GROUP_REFS; what++) {
        for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            const struct kedge_hash named = digest_of(what, g);
            ck_assert(has(count, &named));
        }
    }
    struct kedge_st_step_group *row = &st.u.step.groups[0]; /* what a row does not have is not referenced */
    st.u.step.group_count = 1;
    row->stepped = row->state_after = row->whole = row->trial = (struct kedge_hash){{0}};
    ck_assert_uint_eq(kedge_statement_refs(&st, refs), 3);
}
END_TEST

START_TEST(a_job_references_the_models_that_it_begins_with)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_JOB_OPENED, .subject = digest_of(0, 0)};
    struct kedge_st_job_opened *o = &st.u.job_opened;
    o->initial_model = digest_of(1, 0);
    ck_assert_uint_eq(kedge_statement_refs(&st, refs), 2);
    o->base_model = digest_of(2, 0);
    ck_assert_uint_eq(kedge_statement_refs(&st, refs), 3);
    o->first_model_count = KEDGE_GROUPS_MAX - 1;
    for (uint32_t g = 1; g < KEDGE_GROUPS_MAX; g++) {
        o->first_models[g - 1] = (struct kedge_st_first_model){g, digest_of(3, g)};
    }
    size_t count = kedge_statement_refs(&st, refs);
    ck_assert_uint_eq(count, 2 + KEDGE_GROUPS_MAX);
    ck_assert(has(count, &st.subject) && has(count, &o->initial_model) && has(count, &o->base_model));
    for (uint32_t g = 1; g < KEDGE_GROUPS_MAX; g++) {
        ck_assert(has(count, &o->first_models[g - 1].model));
    }
}
END_TEST

START_TEST(rounds_reference_the_lists_of_all_tenants)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_ROUND_OPENED};
    st.u.round_opened.tenant_count = KEDGE_ST_TENANTS_MAX;
    for (uint32_t i = 0; i < KEDGE_ST_TENANTS_MAX; i++) {
        st.u.round_opened.tenants[i].list = digest_of(1, i);
    }
    size_t count = kedge_statement_refs(&st, refs);
    ck_assert_uint_eq(count, KEDGE_ST_TENANTS_MAX);
    ck_assert(has(count, &st.u.round_opened.tenants[KEDGE_ST_TENANTS_MAX - 1].list));
    st = (struct kedge_statement){.kind = KEDGE_ST_AGGREGATE};
    st.u.aggregate.tenant_count = KEDGE_ST_TENANTS_MAX;
    for (uint32_t i = 0; i < KEDGE_ST_TENANTS_MAX; i++) {
        st.u.aggregate.tenants[i].list = digest_of(2, i);
    }
    count = kedge_statement_refs(&st, refs);
    ck_assert_uint_eq(count, KEDGE_ST_TENANTS_MAX);
    ck_assert(has(count, &st.u.aggregate.tenants[KEDGE_ST_TENANTS_MAX - 1].list));
}
END_TEST

/* A site that has sent nothing yet is given a group by no update. */
START_TEST(what_there_is_not_is_not_referenced)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_GROUP_ASSIGNED};
    ck_assert_uint_eq(kedge_statement_refs(&st, refs), 0);
    st.u.group_assigned.update = digest_of(1, 0);
    ck_assert_uint_eq(kedge_statement_refs(&st, refs), 1);
    st = (struct kedge_statement){.kind = KEDGE_ST_JOB_CLOSED, .subject = digest_of(1, 1)};
    ck_assert_uint_eq(kedge_statement_refs(&st, refs), 0);
}
END_TEST

/* ---- size ---- */

/* What a strategy's row can say of a group at once. `refresh`, which gives `made` and `whole`, and
 * `trial_every`, which gives `trial`, are options of different strategies (tests/unit/strategy); a group
 * that is part of another has no trial, and half of the groups at most are cut off in one close. */
enum { TRIED = 1, PART = 2, MADE = 4, WHOLE = 8, CUT_OFF = 16 };

static void fill_row(uint32_t g, int what)
{
    struct kedge_st_step_group *row = &st.u.step.groups[g];
    *row = (struct kedge_st_step_group){.group = g,
                                        .before = digest_of(0, g),
                                        .aggregate = digest_of(1, g),
                                        .after = digest_of(2, g),
                                        .direction = digest_of(3, g),
                                        .stepped = digest_of(4, g),
                                        .state_before = digest_of(5, g),
                                        .state_after = digest_of(6, g)};
    if (what & TRIED) {
        row->trial = digest_of(7, g);
        row->tried_with = KEDGE_GROUPS_MAX;
    }
    row->merged_into = what & PART ? KEDGE_GROUPS_MAX : 0;
    row->split_of = what & CUT_OFF ? KEDGE_GROUPS_MAX : 0;
    if (what & MADE) {
        row->made = digest_of(8, g);
    }
    if (what & WHOLE) {
        row->whole = digest_of(9, g);
    }
}

static const struct {
    const char *name;
    int even, odd; /* of groups with these numbers */
} steps[] = {
    {"trials of all", TRIED, TRIED},
    {"groups that are joined and tried", TRIED, PART},
    {"directions again, all parts", MADE | PART, MADE | PART},
    {"all groups cut", WHOLE | MADE, CUT_OFF | MADE},
};

/* With a signature, and read again. */
START_TEST(the_longest_step_fits_an_entry)
{
    struct kedge_key_pair pair = sample_pair(1);
    struct kedge_buf envelope;
    struct kedge_diag d = {.text = ""};
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    st = (struct kedge_statement){.kind = KEDGE_ST_STEP, .subject = digest_of(2, 0)};
    struct kedge_st_step *step = &st.u.step;
    memset(step->job.s, 'j', sizeof step->job.s - 1);
    memset(step->rule, 'r', sizeof step->rule - 1);
    step->round = KEDGE_ROUNDS_MAX;
    step->drift = step->eta = 0.12345678901234567;
    step->personal = 1;
    step->time_ms = KEDGE_ST_COUNT_MAX;
    step->group_count = KEDGE_GROUPS_MAX;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        fill_row(g, g % 2 == 0 ? steps[_i].even : steps[_i].odd);
    }
    int err = kedge_statement_sign(&st, &pair, &envelope, &d);
    ck_assert_msg(err == KEDGE_OK, "%s: %s", steps[_i].name, d.text);
    ck_assert_int_eq(kedge_statement_open(kedge_buf_view(&envelope), &pair.public, &read, &d), KEDGE_OK);
    ck_assert_uint_eq(read.u.step.group_count, KEDGE_GROUPS_MAX);
    kedge_buf_deinit(&envelope);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("entry index");
    tcase_add_test(tc, a_step_references_all_that_a_round_needs);
    tcase_add_test(tc, a_job_references_the_models_that_it_begins_with);
    tcase_add_test(tc, rounds_reference_the_lists_of_all_tenants);
    tcase_add_test(tc, what_there_is_not_is_not_referenced);
    tcase_add_loop_test(tc, the_longest_step_fits_an_entry, 0, (int)(sizeof steps / sizeof steps[0]));
    Suite *s = suite_create("chain/entry index");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
