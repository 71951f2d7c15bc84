/* Jobs whose model the sites' own trainers train: what such a spec says, and what is refused. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/job_spec.h"

static int parse(const char *text, struct kedge_job_spec *ret, struct kedge_diag *d)
{
    *d = (struct kedge_diag){.text = ""};
    return kedge_job_spec_parse(kedge_view_str(text), ret, d);
}

#define EXTERNAL(model, initial, rest) \
    "{\"name\":\"j\",\"tenants\":[\"org-a\"],\"data\":\"d\",\"rounds\":3,\"model\":" model initial rest "}"
#define INITIAL ",\"initial_model\":\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\""
#define TENSOR(name, shape) "{\"name\":" name ",\"shape\":" shape "}"
#define NET(tensors, more) ",\"external\":{\"trainer\":\"digits-net\",\"tensors\":" tensors more "}"

START_TEST(test_external)
{
    struct kedge_job_spec *s = malloc(sizeof *s);
    struct kedge_layout layout;
    struct kedge_diag d;
    ck_assert_ptr_nonnull(s);
    const char *tensors = NET("[" TENSOR("\"fc.weight\"", "[10,64]") "," TENSOR("\"scale\"", "[]") "]",
                              ",\"settings\":{ \"epochs\": [1.5, {\"a\": null}]}");
    char text[1024];
    snprintf(text, sizeof text, EXTERNAL("\"external\"", INITIAL, "%s"), tensors);
    ck_assert_msg(parse(text, s, &d) == KEDGE_OK, "%s", d.text);
    ck_assert(s->is_external);
    ck_assert_str_eq(s->external.trainer.s, "digits-net");
    ck_assert_str_eq(s->external.settings, "{\"epochs\":[1.5,{\"a\":null}]}");
    ck_assert_int_eq(kedge_job_spec_layout(s, &layout, &d), KEDGE_OK);
    ck_assert_uint_eq(layout.count, 2);
    ck_assert_str_eq(layout.tensors[0].name, "fc.weight");
    ck_assert_uint_eq(layout.tensors[0].dims[0], 10);
    ck_assert_uint_eq(layout.tensors[0].dims[1], 64);
    ck_assert_str_eq(layout.tensors[1].name, "scale");
    ck_assert_uint_eq(layout.tensors[1].dims_count, 0);
    ck_assert_uint_eq(layout.values_count, 641);
    kedge_layout_deinit(&layout);
    free(s);
}
END_TEST

#define ONE NET("[" TENSOR("\"w\"", "[2]") "]", "")
static const struct {
    const char *text, *says;
} external_wrong[] = {
    {EXTERNAL("\"external\"", "", ONE), "initial_model"},
    {EXTERNAL("\"external\"", INITIAL, ""), "external"},
    {EXTERNAL("{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}", INITIAL, ONE), "no other model"},
    {EXTERNAL("\"elsewhere\"", INITIAL, ONE), "\"external\""},
    {EXTERNAL("\"external\"", INITIAL, ",\"external\":7"), "expected an object"},
    {EXTERNAL("\"external\"", INITIAL, ",\"external\":{\"trainer\":\"../x\",\"tensors\":[]}"), "trainer"},
    {EXTERNAL("\"external\"", INITIAL, ",\"external\":{\"trainer\":\"x\",\"command\":[\"rm\"]}"), "command"},
    {EXTERNAL("\"external\"", INITIAL, NET("[]", "")), "tensors"},
    {EXTERNAL("\"external\"", INITIAL, NET("[" TENSOR("7", "[2]") "]", "")), "tensors"},
    {EXTERNAL("\"external\"", INITIAL, NET("[{\"name\":\"w\",\"shape\":[2],\"file\":\"/\"}]", "")),
     "tensors"},
    {EXTERNAL("\"external\"", INITIAL, NET("[" TENSOR("\"w\\u0000x\"", "[2]") "]", "")), ""},
    {EXTERNAL("\"external\"", INITIAL, NET("[" TENSOR("\"\"", "[2]") "]", "")), "tensor 0"},
    {EXTERNAL("\"external\"", INITIAL, NET("[" TENSOR("\"w\"", "[0]") "]", "")), "shape"},
    {EXTERNAL("\"external\"", INITIAL, NET("[" TENSOR("\"w\"", "[-1]") "]", "")), "shape"},
    {EXTERNAL("\"external\"", INITIAL, NET("[" TENSOR("\"w\"", "[4294967296]") "]", "")), "shape"},
    {EXTERNAL("\"external\"", INITIAL, NET("[" TENSOR("\"w\"", "[1048576,1048576]") "]", "")), "tensor 0"},
    {EXTERNAL("\"external\"", INITIAL, NET("[" TENSOR("\"w\"", "[1,1,1,1,1,1,1,1,1]") "]", "")), "shape"},
    {EXTERNAL("\"external\"", INITIAL, NET("[" TENSOR("\"w\"", "[2]") "," TENSOR("\"w\"", "[3]") "]", "")),
     "tensor 1"},
    {EXTERNAL("\"external\"", INITIAL, NET("[" TENSOR("\"w\"", "[2]") "]", ",\"settings\":[1]")), "settings"},
    {EXTERNAL("\"external\"", INITIAL, ONE ",\"strategy\":\"ifca\",\"groups\":2"), "random"},
    {EXTERNAL("\"external\"", INITIAL, ONE ",\"strategy\":\"fedclust\",\"grouping\":\"flexcfl\""),
     "last layer"},
};

START_TEST(test_external_wrong)
{
    struct kedge_job_spec *s = malloc(sizeof *s);
    struct kedge_diag d;
    ck_assert_ptr_nonnull(s);
    int err = parse(external_wrong[_i].text, s, &d);
    ck_assert_msg(err != KEDGE_OK, "%s", external_wrong[_i].text);
    ck_assert_msg(strstr(d.text, external_wrong[_i].says) != NULL, "%s: %s", external_wrong[_i].text, d.text);
    free(s);
}
END_TEST

/* Names and settings that are too long are told; what just fits comes back whole. */
START_TEST(test_external_long)
{
    struct kedge_job_spec *s = malloc(sizeof *s);
    struct kedge_layout layout;
    struct kedge_diag d;
    size_t cap = 1 << 16;
    char *text = malloc(cap);
    ck_assert(s && text);
    for (unsigned names = 253; names <= 255; names++) { /* 129 bytes each */
        size_t n = (size_t)snprintf(text, cap, "%s",
                                    EXTERNAL("\"external\"", INITIAL,
                                             ",\"external\":{\"trainer\":"
                                             "\"x\",\"tensors\":["));
        n -= 1; /* without the bracket that closes the spec */
        for (unsigned i = 0; i < names; i++) {
            n += (size_t)snprintf(text + n, cap - n, "%s{\"name\":\"%0127u\",\"shape\":[]}", i ? "," : "", i);
        }
        snprintf(text + n, cap - n, "]}}");
        int err = parse(text, s, &d);
        ck_assert_msg(err == (names <= 254 ? KEDGE_OK : KEDGE_E_TOO_LONG), "%u names: %s", names, d.text);
        if (err == KEDGE_OK) {
            ck_assert_int_eq(kedge_job_spec_layout(s, &layout, &d), KEDGE_OK);
            ck_assert_uint_eq(layout.count, names);
            kedge_layout_deinit(&layout);
        }
    }
    for (size_t len = 4080; len <= 4100; len++) { /* {"a":"…"} */
        size_t n = (size_t)snprintf(text, cap,
                                    EXTERNAL("\"external\"", INITIAL,
                                             NET("[" TENSOR("\"w\"", "[2]") "]", ",\"settings\":{\"a\":\"")));
        n -= 2;
        memset(text + n, 'x', len - 8);
        snprintf(text + n + len - 8, cap - n - len + 8, "\"}}}");
        int err = parse(text, s, &d);
        ck_assert_msg((err == KEDGE_OK) == (len <= KEDGE_EXTERNAL_SETTINGS_MAX), "%zu bytes: %s", len,
                      d.text);
        ck_assert(err != KEDGE_OK || strlen(s->external.settings) == len);
    }
    free(text);
    free(s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chain job spec external");
    TCase *t = tcase_create("spec");
    tcase_add_test(t, test_external);
    tcase_add_loop_test(t, test_external_wrong, 0, sizeof external_wrong / sizeof external_wrong[0]);
    tcase_add_test(t, test_external_long);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
