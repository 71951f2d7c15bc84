/* Plans: openings that give their sites other parts of their data than follows from what these said, and
 * updates that are of other parts. The fixtures' coordinator plans nothing: parts are added as its lists are
 * written and its statements signed, honestly, or with one thing wrong. With the time alone for a worth every
 * site of which something is known has the least part. */
#include "chain/statement/input_list.h"
#include "job/job_spec.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

#define PLANNED "\"plan\":{\"data\":0,\"energy\":0,\"time\":1,\"least_percent\":20}"

enum { SITES = 20, LEAST = 20 };
enum lie {
    HONEST,
    GIVES_MORE,
    GIVES_ALL,
    GIVES_NONE,
    SPARES_A_NEWCOMER,
    TAKES_ALL,
    SAYS_NOTHING,
    PLANS_UNASKED
};
static enum lie lie;
static uint32_t
    given[SITES]; /* percent that the last opening gave, by tenant and the digit of the site's name */
static bool is_known[SITES];  /* it has sent an update */
static uint32_t lists, parts; /* openings' rows, and those of them with the least part */

static uint32_t openings; /* their lists, so far: of the first tenant and of the second in turn */

static uint32_t place_of(uint32_t tenant, const struct kedge_id *site)
{
    ck_assert(site->s[0] == 's' && site->s[1] >= '0' && site->s[1] <= '9');
    return tenant * 10 + (uint32_t)(site->s[1] - '0');
}

static uint32_t part_for(uint32_t place)
{
    const bool known = is_known[place];
    const uint32_t honest = known ? LEAST : 100;
    parts += known;
    if (lie == GIVES_ALL || lie == SPARES_A_NEWCOMER) {
        return lie == GIVES_ALL ? 100 : LEAST;
    }
    if (known && lie == GIVES_MORE) {
        return LEAST + 1;
    }
    return known && lie == GIVES_NONE ? 0 : honest;
}

/* The linker puts these in the place of the fixtures' (--wrap).
 * NOLINTBEGIN(cert-dcl51-cpp): the linker's names */
int __real_kedge_input_list_encode(const struct kedge_input_row *rows, size_t count, struct kedge_buf *out);
int __wrap_kedge_input_list_encode(const struct kedge_input_row *rows, size_t count, struct kedge_buf *out);
int __wrap_kedge_input_list_encode(const struct kedge_input_row *rows, size_t count, struct kedge_buf *out)
{
    static struct kedge_input_row other[KEDGE_SITES_MAX];
    const bool is_opening = count > 0 && rows[0].use <= KEDGE_USE_SELECTED;
    memcpy(other, rows, count * sizeof *rows);
    for (size_t i = 0; i < count && is_opening; i++) {
        const uint32_t place = place_of(openings % 2, &rows[i].site);
        if (rows[i].use == KEDGE_USE_SELECTED) {
            other[i].percent = given[place] = part_for(place);
            lists++;
        }
    }
    openings += is_opening;
    return __real_kedge_input_list_encode(other, count, out);
}

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
        struct kedge_st_update *u = &other.u.update;
        const uint32_t place = place_of((uint32_t)(u->tenant.s[4] - 'a'), &u->site), percent = given[place];
        u->data_samples = percent > 0 && lie != TAKES_ALL ? u->samples * 100 / percent : u->samples;
        u->data_samples = lie == SAYS_NOTHING && u->round == 2 ? 0 : u->data_samples;
        is_known[place] = true;
    }
    return __real_kedge_statement_sign(&other, key, ret, d);
}
/* NOLINTEND(cert-dcl51-cpp) */

static void make(const char *keys, enum lie what)
{
    lie = what;
    lists = parts = openings = 0;
    memset(given, 0, sizeof given);
    memset(is_known, 0, sizeof is_known);
    fx_ungrouped(at("fx"), keys, FX_NONE);
    ck_assert_uint_gt(lists, 3);
    ck_assert(parts > 1 && parts < lists);
}

static struct kedge_audit_report audit(void)
{
    const struct kedge_audit_options options = {.threads = 1};
    return run(at("fx"), at("fx/trust.json"), NULL, false, options);
}

START_TEST(test_honest)
{
    make_scratch();
    make(PLANNED, HONEST);
    struct kedge_audit_report r = audit();
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

static const struct {
    enum lie lie;
    const char *keys;
    enum kedge_audit_code code;
} lies[] = {{GIVES_MORE, PLANNED, KEDGE_AUDIT_PLAN},
            {GIVES_ALL, PLANNED, KEDGE_AUDIT_PLAN},
            {SPARES_A_NEWCOMER, PLANNED, KEDGE_AUDIT_PLAN},
            {GIVES_NONE, PLANNED, KEDGE_AUDIT_LIST},
            {TAKES_ALL, PLANNED, KEDGE_AUDIT_UPDATE},
            {SAYS_NOTHING, PLANNED, KEDGE_AUDIT_UPDATE},
            {PLANS_UNASKED, "\"enrol_within_s\":86400", KEDGE_AUDIT_LIST},
            {PLANS_UNASKED, "\"enrol_within_s\":86400", KEDGE_AUDIT_UPDATE}};

START_TEST(test_lies)
{
    make_scratch();
    make(lies[_i].keys, lies[_i].lie);
    struct kedge_audit_report r = audit();
    if (!has_code(&r, lies[_i].code)) {
        print_findings(&r);
    }
    ck_assert(has_code(&r, lies[_i].code) && r.verdict == KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-plan");
    TCase *t = tcase_create("plan");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_honest);
    tcase_add_loop_test(t, test_lies, 0, sizeof lies / sizeof lies[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
