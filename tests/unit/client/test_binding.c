/* What a trainer is told of the job's data: the owner's binding, and what the job says of it. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/policy.h"

static int bind(const struct kedge_site_policy *p, const char *data, const char *said, char out[256],
                struct kedge_diag *d)
{
    struct kedge_job_spec s = {.standardize = KEDGE_STANDARDIZE_UNSAID};
    json_t *binding = NULL;
    snprintf(s.data, sizeof s.data, "%s", data);
    if (strchr(said, 'c')) {
        memcpy(s.classes, "x\0y", 4);
        s.classes_count = 2;
    }
    if (strchr(said, 's')) {
        s.standardize = strchr(said, 'n') ? KEDGE_STANDARDIZE_NONE : KEDGE_STANDARDIZE_LOCAL;
    }
    s.learns_classes = strchr(said, 'f') != NULL;
    int err = kedge_policy_binding(p, &s, strchr(said, 'k') ? "p\0q\0" : "", &binding, d);
    char *text = err ? NULL : json_dumps(binding, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    snprintf(out, 256, "%s", text ? text : "");
    free(text);
    json_decref(binding);
    return err;
}

/* The owner's words for the job's classes stay; whether features are standardized is the job's to say. */
START_TEST(test_policy_binding)
{
    struct kedge_site_policy p;
    struct kedge_diag d = {.text = ""};
    char out[256];
    ck_assert_int_eq(
        kedge_policy_parse(kedge_view_str("{\"data\":{\"a\":{\"train\":1},\"b\":{\"classes\":[\"u\",\"v\"],"
                                          "\"standardize\":\"local\"},\"c\":{\"classes\":[\"u\"]},\"e\":7,"
                                          "\"g\":{\"train\":1,\"classes\":\"federated\"}}}"),
                           "x", &p, NULL),
        KEDGE_OK);
    ck_assert_int_eq(bind(&p, "a", "", out, &d), KEDGE_OK);
    ck_assert_str_eq(out, "{\"train\":1}");
    ck_assert_int_eq(bind(&p, "a", "cs", out, &d), KEDGE_OK);
    ck_assert_str_eq(out, "{\"classes\":[\"x\",\"y\"],\"standardize\":\"local\",\"train\":1}");
    ck_assert_int_eq(bind(&p, "b", "csn", out, &d), KEDGE_OK);
    ck_assert_str_eq(out, "{\"classes\":[\"u\",\"v\"],\"standardize\":\"none\"}");
    ck_assert_int_eq(bind(&p, "e", "cs", out, &d), KEDGE_OK);
    ck_assert_str_eq(out, "7");
    ck_assert_int_eq(bind(&p, "c", "c", out, &d), KEDGE_E_DENIED);
    ck_assert_str_eq(d.text, "policy.json: data \"c\": \"classes\" has 1 names, but the job has 2");
    /* what labels there are is told only where the owner lets it; to other jobs that says nothing */
    for (const char *const *name = (const char *const[]){"a", "b", NULL}; *name; name++) {
        ck_assert_int_eq(bind(&p, *name, "f", out, &d), KEDGE_E_DENIED);
        ck_assert(strstr(d.text, "does not say that its labels may be told")
                  && strstr(d.hint, "\"federated\""));
    }
    ck_assert_int_eq(bind(&p, "g", "f", out, &d), KEDGE_OK);
    ck_assert_str_eq(out, "{\"classes\":\"federated\",\"train\":1}");
    ck_assert_int_eq(bind(&p, "g", "fk", out, &d), KEDGE_OK);
    ck_assert_str_eq(out, "{\"classes\":[\"p\",\"q\"],\"train\":1}");
    ck_assert_int_eq(bind(&p, "g", "c", out, &d), KEDGE_OK);
    ck_assert_str_eq(out, "{\"classes\":[\"x\",\"y\"],\"train\":1}");
    ck_assert_int_eq(bind(&p, "g", "", out, &d), KEDGE_OK);
    ck_assert_str_eq(out, "{\"train\":1}");
    ck_assert_int_eq(bind(&p, "f", "", out, &d), KEDGE_E_DENIED);
    ck_assert_str_eq(d.text, "policy.json binds no data named \"f\"");
    ck_assert_uint_eq(json_object_size(json_object_get(p.data, "a")),
                      1); /* what is the owner's is untouched */
    kedge_policy_deinit(&p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client binding");
    TCase *t = tcase_create("binding");
    tcase_add_test(t, test_policy_binding);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
