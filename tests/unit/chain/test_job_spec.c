/* The job spec: defaults, what each key takes, what is refused and how it is named. */
#include "chain/job_spec.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/share_cap.h"

#define HEAD                                                                                             \
    "{\"name\":\"j\",\"tenants\":[\"org-a\",\"org-b\",\"org-c\"],\"data\":\"d\",\"rounds\":3,\"model\":" \
    "{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}"

static int parse(const char *text, struct kedge_job_spec *ret, struct kedge_diag *d)
{
    *d = (struct kedge_diag){.text = ""};
    return kedge_job_spec_parse(kedge_view_str(text), ret, d);
}

START_TEST(test_defaults)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_int_eq(parse(HEAD "}", &s, &d), KEDGE_OK);
    ck_assert_uint_eq(s.seed, 1);
    ck_assert_uint_eq(s.sites_per_round, 0);
    ck_assert_uint_eq(s.batch, 10);
    ck_assert_uint_eq(s.groups, 1);
    ck_assert_uint_eq(s.scale, 20);
    ck_assert_uint_eq(s.weight_max, 1000000);
    ck_assert_uint_eq(s.tenant_share_max, KEDGE_SHARE_ONE);
    ck_assert_uint_eq(s.round_timeout_s, 3600);
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, false), "fedavg/v1");
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, true), "flexcfl-cold-start/v1");
}
END_TEST

static const struct {
    const char *text;
    uint32_t share; /* 0: refused */
} shares[] = {
    {"\"1\"", 1000000},
    {"\"1.0\"", 1000000},
    {"\"1.000000\"", 1000000},
    {"\"0.5\"", 500000},
    {"\"0.333334\"", 333334},
    {"\"0.999999\"", 999999},
    {"\"0.333333\"", 0}, /* three tenants: not a whole */
    {"\"0.000001\"", 0},
    {"\"0\"", 0},
    {"\"0.0\"", 0},
    {"\"1.000001\"", 0},
    {"\"2\"", 0},
    {"\"0.5000000\"", 0},
    {"\"0.\"", 0},
    {"\".5\"", 0},
    {"\"00.5\"", 0},
    {"\"-0.5\"", 0},
    {"\"+0.5\"", 0},
    {"\"5e-1\"", 0},
    {"\" 0.5\"", 0},
    {"\"0,5\"", 0},
    {"\"0.5.\"", 0},
    {"\"\"", 0},
    {"0.5", 0},
    {"1", 0},
    {"null", 0},
    {"[\"0.5\"]", 0},
    {"\"half\"", 0},
    {"true", 0},
};

START_TEST(test_shift)
{
    static const struct {
        const char *keys;
        enum kedge_shift_test shift;
        uint32_t pause;
    } rows[] = {
        {"", KEDGE_SHIFT_TEST_NONE, 1},
        {",\"grouping\":\"flexcfl\",\"groups\":2", KEDGE_SHIFT_TEST_LABELS, 1},
        {",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":\"none\"", KEDGE_SHIFT_TEST_NONE, 1},
        {",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":\"update\",\"migration_pause\":9",
         KEDGE_SHIFT_TEST_UPDATE, 9},
        {",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":\"counts\"", KEDGE_SHIFT_TEST_COUNTS, 1},
        {",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":\"update\"", KEDGE_SHIFT_TEST_UPDATE, 10},
    };
    struct kedge_job_spec s;
    struct kedge_diag d;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s}", HEAD, rows[i].keys);
        ck_assert_msg(parse(text, &s, &d) == KEDGE_OK, "%s", d.text);
        ck_assert_int_eq(s.shift, rows[i].shift);
        ck_assert_uint_eq(s.migration_pause, rows[i].pause);
    }
}
END_TEST

START_TEST(test_tenant_share)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    char text[512];
    snprintf(text, sizeof text, "%s,\"tenant_share_max\":%s}", HEAD, shares[_i].text);
    int err = parse(text, &s, &d);
    if (shares[_i].share == 0) {
        ck_assert_msg(err == KEDGE_E_FORMAT, "%s is taken", shares[_i].text);
        ck_assert_ptr_nonnull(strstr(d.text, "tenant_share_max"));
        return;
    }
    ck_assert_msg(err == KEDGE_OK, "%s: %s", shares[_i].text, d.text);
    ck_assert_uint_eq(s.tenant_share_max, shares[_i].share);
    bool capped = shares[_i].share < KEDGE_SHARE_ONE;
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, false), capped ? "fedavg-capped/v1" : "fedavg/v1");
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, true),
                     capped ? "flexcfl-cold-start-capped/v1" : "flexcfl-cold-start/v1");
}
END_TEST

/* What is wrong, and the words by which it must be named. */
static const struct {
    const char *text, *named;
} wrong[] = {
    {"", "empty"},
    {"\n", "empty"},
    {"[]", "object"},
    {"{\"name\":\"j\"", "line 1"},
    {"{\"name\":\"j\",\"name\":\"k\"}", "line 1"},
    {HEAD ",\"model\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}", "nested deeper than 16"},
    {HEAD ",\"round\":3}", "\"round\""},
    {"{\"name\":\"j\"}", "\"tenants\" is missing"},
    {"{\"name\":\"J\",\"tenants\":[\"a\"]}", "\"name\""},
    {"{\"name\":\"j\",\"tenants\":[\"b\",\"a\"]}", "ascending"},
    {"{\"name\":\"j\",\"tenants\":[\"a\",\"a\"]}", "each once"},
    {"{\"name\":\"j\",\"tenants\":[]}", "\"tenants\""},
    {HEAD ",\"tenant_share_max\":\"0.5\\u0000\"}", "line 1"},
    {HEAD ",\"batch\":0}", "\"batch\""},
    {HEAD ",\"batch\":\"10\"}", "\"batch\""},
    {HEAD ",\"learning_rate\":0.1}", "\"learning_rate\""},
    {HEAD ",\"learning_rate\":\"nan\"}", "\"learning_rate\""},
    {HEAD ",\"seed\":1}", "\"seed\""},
    {HEAD ",\"seed\":\"18446744073709551616\"}", "\"seed\""},
    {HEAD ",\"groups\":2}", "\"groups\""},
    {HEAD ",\"grouping\":\"flexcfl\"}", "\"groups\""},
    {HEAD ",\"grouping\":\"other\"}", "\"grouping\""},
    {HEAD ",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":\"sometimes\"}", "\"shift\": expected"},
    {HEAD ",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":true}", "\"shift\": expected"},
    {HEAD ",\"grouping\":\"flexcfl\",\"groups\":2,\"migration_pause\":0}", "\"migration_pause\""},
    {HEAD ",\"shift\":\"labels\"}", "\"shift\": expected no other value"},
    {HEAD ",\"bound\":\"4096\",\"scale\":20}", "\"bound\""},
    {HEAD ",\"initial_model\":\"00\"}", "\"initial_model\""},
};

START_TEST(test_wrong)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_msg(parse(wrong[_i].text, &s, &d) != KEDGE_OK, "%s is taken", wrong[_i].text);
    ck_assert_msg(strstr(d.text, wrong[_i].named) != NULL, "%s: %s", wrong[_i].text, d.text);
}
END_TEST

/* Every key that the page lists is one that the parser knows, with the default that the page tells. */
START_TEST(test_page)
{
    char line[1024], text[1200];
    struct kedge_job_spec s;
    struct kedge_diag d;
    int keys = 0;
    FILE *page = fopen("docs/job-spec.md", "r");
    ck_assert_ptr_nonnull(page);
    while (fgets(line, sizeof line, page)) {
        char key[64], fallback[64];
        if (sscanf(line, "| `%63[a-z_0-9]` | %63[^|] |", key, fallback) != 2) {
            continue;
        }
        keys++;
        snprintf(text, sizeof text, "%s,\"%s\":{}}", HEAD,
                 key); /* known, but nothing takes an empty object */
        ck_assert_int_ne(parse(text, &s, &d), KEDGE_OK);
        ck_assert_msg(!strstr(d.text, "unknown key"), "docs/job-spec.md: %s", d.text);
        size_t len = strcspn(fallback, " ");
        fallback[len] = '\0';
        if (strncmp(fallback, "required", 8) != 0 && strcmp(fallback, "made") != 0
            && !strstr(key, "pretrain")) {
            char plain[64];
            size_t n = 0;
            for (size_t i = 0; fallback[i]; i++) { /* without code marks and thousands' commas */
                if (fallback[i] != '`' && fallback[i] != ',') {
                    plain[n++] = fallback[i];
                }
            }
            plain[n] = '\0';
            struct kedge_job_spec with, without;
            snprintf(text, sizeof text, "%s,\"%s\":%s}", HEAD, key, plain);
            ck_assert_msg(parse(text, &with, &d) == KEDGE_OK, "%s: %s", text, d.text);
            ck_assert_int_eq(parse(HEAD "}", &without, &d), KEDGE_OK);
            ck_assert_msg(memcmp(&with, &without, sizeof with) == 0, "docs/job-spec.md: default of %s", key);
        }
    }
    fclose(page);
    ck_assert_int_eq(keys, 27);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chain job spec");
    TCase *t = tcase_create("job spec");
    tcase_add_test(t, test_defaults);
    tcase_add_loop_test(t, test_tenant_share, 0, sizeof shares / sizeof shares[0]);
    tcase_add_test(t, test_shift);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(t, test_page);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
