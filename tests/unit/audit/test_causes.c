/* Findings under their causes: of one fault an auditor reads one line, and how many others it explains. */
#include "chain/audit/base/causes.h"

#include "common/base/mem.h"
#include "tests/unit/audit/tampered.h"

/* ---- one fault, one cause ---- */

static size_t edit_drop(struct fx_entry *e, size_t n)
{
    memmove(&e[4], &e[5], (n - 5) * sizeof *e);
    return n - 1;
}

static size_t edit_swap(struct fx_entry *e, size_t n)
{
    struct fx_entry x = e[n - 1];
    e[n - 1] = e[n - 2];
    e[n - 2] = x;
    return n;
}

/* One letter of a statement in the middle. */
static size_t edit_letter(struct fx_entry *e, size_t n)
{
    static uint8_t bytes[KEDGE_ENTRY_MAX];
    size_t i = n / 2;
    while (e[i].entry.ptr[0] != '{') {
        i++;
    }
    memcpy(bytes, e[i].entry.ptr, e[i].entry.len);
    uint8_t *payload = memmem(bytes, e[i].entry.len, "\"payload\":\"", 11);
    ck_assert_ptr_nonnull(payload);
    payload[60] = payload[60] == 'A' ? 'B' : 'A';
    e[i].entry.ptr = bytes;
    return n;
}

static size_t edit_nothing(struct fx_entry *e, size_t n)
{
    (void)e;
    return n;
}

static const struct fault {
    const char *tenant;
    fx_edit *edit; /* NULL: the twist */
    bool foreign_key;
    enum fx_twist twist;
    enum kedge_audit_code cause;
    uint32_t causes; /* that are shown */
    uint64_t least;  /* findings in all */
    const char *where, *follows;
} faults[] = {
    {"org-a", edit_drop, false, FX_NONE, KEDGE_AUDIT_TRUNCATED, 1, 20, "main[28]",
     "findings can follow from this:"},
    {"org-a", edit_swap, false, FX_NONE, KEDGE_AUDIT_FORK, 1, 5, "main[28]", " 2 row, 2 unlisted"},
    {"org-a", edit_letter, false, FX_NONE, KEDGE_AUDIT_STATEMENT, 1, 10, "org-a[9]", " not-joined"},
    {NULL, edit_letter, false, FX_NONE, KEDGE_AUDIT_STATEMENT, 1, 60, "main[18]",
     "61 findings can follow from this:"},
    {NULL, edit_nothing, true, FX_NONE, KEDGE_AUDIT_SIGNATURE, 3, 37, "main checkpoint 0", "34 more like it"},
    {NULL, NULL, false, FX_GHOST_UPDATE, KEDGE_AUDIT_SITE_UNKNOWN, 1, 5, "org-a[3]",
     "4 findings can follow from this:"},
    {NULL, NULL, false, FX_GHOST_FORGED, KEDGE_AUDIT_SIGNATURE, 1, 6, "org-a[3]", " site-unknown"},
    {NULL, NULL, false, FX_KEY_TWICE, KEDGE_AUDIT_KEY, 1, 6, "org-a[2]",
     "5 findings can follow from this: 5 site-unknown"},
    /* what a coordinator lied about is told, whatever else is wrong */
    {NULL, NULL, false, FX_LEFT_OUT, KEDGE_AUDIT_ROW, 5, 10, "main[10]", "2 unlisted"},
};

struct told {
    uint32_t count;
    char where[KEDGE_AUDIT_WHERE_MAX], follows[1024];
    enum kedge_audit_code code; /* of the first */
    bool aggregate;
};

static void take(void *arg, const struct kedge_audit_finding *f, const char *follows)
{
    struct told *t = arg;
    if (t->count++ == 0) {
        snprintf(t->where, sizeof t->where, "%s", f->where);
        snprintf(t->follows, sizeof t->follows, "%s", follows);
        t->code = f->code;
    }
    t->aggregate = t->aggregate || f->code == KEDGE_AUDIT_REPLAY_AGGREGATE;
}

START_TEST(test_fault)
{
    const struct fault *c = &faults[_i];
    struct told told = {.count = 0};
    copy_base();
    if (c->edit) {
        fx_rewrite(at("fx"), c->tenant, c->edit, c->foreign_key);
    } else {
        ck_assert_int_eq(kedge_dir_remove(at("fx")), KEDGE_OK);
        fx_federation(at("fx"), c->twist);
    }
    struct kedge_audit_report r =
        run(at("fx"), at("fx/trust.json"), NULL, true, (struct kedge_audit_options){0});
    uint32_t *cause = kedge_mem_new(r.finding_count + 1, sizeof *cause);
    ck_assert_ptr_nonnull(cause);
    kedge_audit_causes(&r, cause);
    kedge_audit_each_cause(&r, cause, KEDGE_AUDIT_ERROR, take, &told);
    ck_assert_uint_ge(r.error_count, c->least);
    ck_assert_msg(told.count == c->causes, "%u causes", told.count);
    ck_assert_str_eq(kedge_audit_code_name(told.code), kedge_audit_code_name(c->cause));
    ck_assert_str_eq(told.where, c->where);
    ck_assert_msg(strstr(told.follows, c->follows) != NULL, "%s", told.follows);
    ck_assert_int_eq(told.aggregate, c->twist == FX_LEFT_OUT);
    kedge_mem_free(cause);
    kedge_audit_report_deinit(&r);
}
END_TEST

/* ---- all pairs ---- */

/* Whether a finding of code b follows from one of code a, where there is no other. */
static bool follows(uint32_t a, uint32_t b)
{
    struct kedge_audit_finding two[2] = {{.where = "org-a[1]"}, {.where = "org-a[2]"}};
    struct kedge_audit_report pair = {.findings = two, .finding_count = 2};
    uint32_t cause[2];
    two[0].severity = two[1].severity = KEDGE_AUDIT_ERROR;
    two[0].code = (enum kedge_audit_code)a;
    two[1].code = (enum kedge_audit_code)b;
    kedge_audit_causes(&pair, cause);
    return cause[1] == 0;
}

/* Codes that follow from none that is left are taken away, again and again: of a circle none could be. */
START_TEST(test_no_circles)
{
    bool gone[KEDGE_AUDIT_CODE_COUNT] = {false};
    uint32_t left = KEDGE_AUDIT_CODE_COUNT, turns = 0, pairs = 0;
    for (; left > 0 && turns < KEDGE_AUDIT_CODE_COUNT; turns++) {
        for (uint32_t b = 0; b < KEDGE_AUDIT_CODE_COUNT; b++) {
            bool explained = gone[b];
            for (uint32_t a = 0; a < KEDGE_AUDIT_CODE_COUNT && !explained; a++) {
                explained = a != b && !gone[a] && follows(a, b);
                pairs += explained;
            }
            left -= !explained;
            gone[b] = gone[b] || !explained;
        }
    }
    ck_assert_msg(left == 0, "%u codes explain each other", left);
    ck_assert_uint_gt(pairs, 20);
}
END_TEST

/* Notes stand alone, and nothing follows from a checkpoint without a signature. */
START_TEST(test_what_explains_nothing)
{
    struct kedge_audit_finding f[] = {
        {.severity = KEDGE_AUDIT_NOTE, .code = KEDGE_AUDIT_KEY_REVOKED, .where = "org-a[1]"},
        {.severity = KEDGE_AUDIT_ERROR, .code = KEDGE_AUDIT_SIGNATURE, .where = "org-a checkpoint 4"},
        {.severity = KEDGE_AUDIT_ERROR, .code = KEDGE_AUDIT_ROW, .where = "main[3]"},
        {.severity = KEDGE_AUDIT_NOTE, .code = KEDGE_AUDIT_ROW, .where = "main[4]"},
    };
    struct kedge_audit_report r = {.findings = f, .finding_count = 4};
    uint32_t cause[4];
    kedge_audit_causes(&r, cause);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(cause[i], i);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit_causes");
    TCase *t = tcase_create("causes");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_fault, 0, sizeof faults / sizeof faults[0]);
    tcase_add_test(t, test_no_circles);
    tcase_add_test(t, test_what_explains_nothing);
    suite_add_tcase(s, t);
    return run_tampered(s);
}
