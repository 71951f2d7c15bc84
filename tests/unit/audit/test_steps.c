/* What steps say of their groups, one field of it changed: verify finds each, which looks at no vector. The
 * step is changed as the fixtures' coordinator signs it. */
#include <stddef.h>

#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

typedef void make_fn(const char *dir, const char *keys, enum fx_twist twist);

static void living(const char *dir, const char *keys, enum fx_twist twist)
{
    ck_assert_ptr_null(keys);
    fx_living(dir, twist);
}

static void joining(const char *dir, const char *keys, enum fx_twist twist)
{
    ck_assert_ptr_null(keys);
    fx_joining(dir, twist);
}

static void cutting(const char *dir, const char *keys, enum fx_twist twist)
{
    ck_assert_ptr_null(keys);
    fx_cutting(dir, twist);
}

static void keeping(const char *dir, const char *keys, enum fx_twist twist)
{
    ck_assert_ptr_null(keys);
    fx_keeping(dir, twist);
}

static void trying(const char *dir, const char *keys, enum fx_twist twist)
{
    ck_assert_ptr_null(keys);
    fx_trying(dir, twist);
}

static void parts(const char *dir, const char *keys, enum fx_twist twist)
{
    ck_assert_ptr_null(keys);
    fx_parts(dir, twist);
}

#define ADAM "\"server\":\"adam\""
#define MIXED "\"mixing\":\"0.1\",\"server\":\"adam\""
#define AT(field) offsetof(struct kedge_st_step_group, field)

enum change { FLIP, ZERO, ONE, TWO };

static const struct twisted {
    make_fn *make;
    const char *keys;
    uint32_t step, group; /* the step by its place among all of the record */
    size_t field;
    enum change change; /* of a digest, or the number */
    enum kedge_audit_code code;
} twisted[] = {
    {fx_ungrouped, ADAM, 0, 0, AT(before), FLIP, KEDGE_AUDIT_BASE},
    {fx_ungrouped, ADAM, 0, 0, AT(aggregate), FLIP, KEDGE_AUDIT_STEP},
    {fx_ungrouped, ADAM, 1, 0, AT(state_before), ZERO, KEDGE_AUDIT_STEP},
    {fx_ungrouped, ADAM, 1, 0, AT(state_after), ZERO, KEDGE_AUDIT_STEP},
    {fx_ungrouped, ADAM, 1, 0, AT(stepped), FLIP, KEDGE_AUDIT_STEP},
    {fx_ungrouped, ADAM, 1, 0, AT(direction), FLIP, KEDGE_AUDIT_STEP},
    {fx_ungrouped, NULL, 1, 0, AT(after), FLIP, KEDGE_AUDIT_STEP},
    {fx_ungrouped, NULL, 1, 0, AT(state_after), FLIP, KEDGE_AUDIT_STEP},
    {fx_choosing, MIXED, 1, 0, AT(stepped), ZERO, KEDGE_AUDIT_STEP},
    {fx_edges, NULL, 1, 0, AT(merged_into), ONE, KEDGE_AUDIT_STEP},
    {living, NULL, 1, 1, AT(direction), FLIP, KEDGE_AUDIT_STEP},
    {living, NULL, 2, 1, AT(made), FLIP, KEDGE_AUDIT_STEP},
    {living, NULL, 2, 1, AT(whole), FLIP, KEDGE_AUDIT_STEP},
    {living, NULL, 2, 1, AT(split_of), ONE, KEDGE_AUDIT_STEP},
    {living, NULL, 1, 1, AT(merged_into), ONE, KEDGE_AUDIT_STEP},
    {joining, NULL, 2, 1, AT(merged_into), ZERO, KEDGE_AUDIT_STEP},
    {joining, NULL, 2, 1, AT(merged_into), TWO, KEDGE_AUDIT_STEP},
    {joining, NULL, 3, 1, AT(after), FLIP, KEDGE_AUDIT_STEP},
    {cutting, NULL, 2, 0, AT(whole), ZERO, KEDGE_AUDIT_STEP},
    {cutting, NULL, 2, 2, AT(split_of), TWO, KEDGE_AUDIT_STEP},
    {cutting, NULL, 2, 2, AT(after), FLIP, KEDGE_AUDIT_STEP},
    {keeping, NULL, 2, 0, AT(made), FLIP, KEDGE_AUDIT_STEP},
    {trying, NULL, 1, 0, AT(tried_with), ZERO, KEDGE_AUDIT_STEP},
    {trying, NULL, 1, 1, AT(trial), FLIP, KEDGE_AUDIT_STEP},
    {trying, NULL, 2, 0, AT(tried_with), TWO, KEDGE_AUDIT_STEP},
    {trying, NULL, 2, 1, AT(merged_into), ZERO, KEDGE_AUDIT_STEP},
    {trying, NULL, 3, 1, AT(trial), FLIP, KEDGE_AUDIT_STEP},
    {parts, NULL, 1, 0, AT(tried_with), ZERO, KEDGE_AUDIT_STEP},
    {parts, NULL, 1, 1, AT(split_of), ZERO, KEDGE_AUDIT_STEP},
    {parts, NULL, 1, 1, AT(before), FLIP, KEDGE_AUDIT_BASE},
    {parts, NULL, 1, 0, AT(whole), ZERO, KEDGE_AUDIT_STEP},
    {parts, NULL, 2, 1, AT(trial), FLIP, KEDGE_AUDIT_STEP},
    {parts, NULL, 3, 2, AT(merged_into), TWO, KEDGE_AUDIT_STEP},
    {parts, NULL, 3, 2, AT(tried_with), ONE, KEDGE_AUDIT_STEP},
    {parts, NULL, 3, 3, AT(after), FLIP, KEDGE_AUDIT_STEP},
    {parts, NULL, 4, 0, AT(split_of), TWO, KEDGE_AUDIT_STEP},
    {parts, NULL, 4, 1, AT(tried_with), ZERO, KEDGE_AUDIT_STEP},
    {parts, NULL, 6, 2, AT(merged_into), ONE, KEDGE_AUDIT_STEP},
    {parts, NULL, 7, 0, AT(tried_with), TWO, KEDGE_AUDIT_STEP},
    {parts, NULL, 7, 1, AT(trial), FLIP, KEDGE_AUDIT_STEP},
};

/* What is to be changed, and how many steps there were; NULL: nothing. */
static const struct twisted *changing;
static uint32_t steps;
static bool changed;
/* From step 2 on group 1 is part of group 0, and group 2 of group 1. */
static bool chains;

static void chain(struct kedge_st_step *step)
{
    ck_assert_uint_eq(step->group_count, 3);
    for (uint32_t g = 1; g < step->group_count; g++) {
        step->groups[g].merged_into = g;
        step->groups[g].after = step->groups[0].after;
    }
}

static void change_field(struct kedge_st_step_group *row, const struct twisted *t)
{
    uint8_t *at = (uint8_t *)row + t->field;
    bool is_number = t->field == AT(split_of) || t->field == AT(merged_into) || t->field == AT(tried_with);
    const size_t len = is_number ? sizeof row->split_of : sizeof row->after;
    uint8_t was[sizeof row->after];
    memcpy(was, at, len);
    if (is_number) {
        const uint32_t number = t->change == ONE ? 1 : t->change == TWO ? 2 : 0;
        memcpy(at, &number, sizeof number);
    } else if (t->change == ZERO) {
        memset(at, 0, len);
    } else {
        at[5] ^= 4;
    }
    changed = memcmp(was, at, len) != 0;
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
    if (st->kind == KEDGE_ST_STEP && chains && steps++ >= 2) {
        other = *st;
        chain(&other.u.step);
        return __real_kedge_statement_sign(&other, key, ret, d);
    }
    if (st->kind != KEDGE_ST_STEP || !changing || steps++ != changing->step) {
        return __real_kedge_statement_sign(st, key, ret, d);
    }
    ck_assert_uint_lt(changing->group, st->u.step.group_count);
    other = *st;
    change_field(&other.u.step.groups[changing->group], changing);
    return __real_kedge_statement_sign(&other, key, ret, d);
}
/* NOLINTEND(cert-dcl51-cpp) */

START_TEST(test_twisted)
{
    const struct twisted *t = &twisted[_i];
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    steps = 0;
    changing = t;
    changed = false;
    t->make(at("fx"), t->keys, FX_NONE);
    changing = NULL;
    ck_assert(changed);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    if (!has_code(&r, t->code)) {
        print_findings(&r);
    }
    ck_assert(has_code(&r, t->code));
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

static bool has_text(const struct kedge_audit_report *r, const char *text)
{
    for (uint32_t i = 0; i < r->finding_count; i++) {
        if (strstr(r->findings[i].text, text)) {
            return true;
        }
    }
    return false;
}

/* A group goes into one that stays. Into one that itself becomes part of another, no close puts it: one who
 * follows such a step looks for its sites where there are none. Without a check of that the engine comes
 * to the same step. */
START_TEST(test_part_of_a_part)
{
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_apart(at("good"), FX_NONE);
    struct kedge_audit_report good = run(at("good"), at("good/trust.json"), NULL, true, options);
    print_findings(&good);
    ck_assert_int_eq(good.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&good);
    steps = 0;
    chains = true;
    fx_apart(at("fx"), FX_NONE);
    chains = false;
    ck_assert_uint_ge(steps, 3);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    if (!has_text(&r, "group 2: it is cut off another one or part of one")) {
        print_findings(&r);
    }
    ck_assert(has_text(&r, "group 2: it is cut off another one or part of one"));
    ck_assert(!has_text(&r, "group 1: it is cut off another one or part of one"));
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-steps");
    TCase *t = tcase_create("steps");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_twisted, 0, sizeof twisted / sizeof twisted[0]);
    tcase_add_test(t, test_part_of_a_part);
    suite_add_tcase(s, t);
    return run_suite(s);
}
