/* Parts of a model: which tensors words name, and values that go out of the whole and back. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tensor/model.h"
#include "common/tensor/part.h"

enum { VALUES = 3 * 4 + 4 + 4 * 2 + 2 };

static struct kedge_layout layout;

static struct kedge_part part_of(const char *a, const char *b)
{
    struct kedge_part p = {.count = 0};
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(a ? kedge_part_add(&p, a, &d) : KEDGE_OK, KEDGE_OK);
    ck_assert_int_eq(b ? kedge_part_add(&p, b, &d) : KEDGE_OK, KEDGE_OK);
    return p;
}

/* The tensors in it, in order: 0.weight 0.bias 1.weight 1.bias. */
static const char *has(const struct kedge_part *p)
{
    static char marks[5];
    for (uint32_t i = 0; i < 4; i++) {
        marks[i] = kedge_part_has(p, &layout, i) ? 'x' : '.';
    }
    return marks;
}

static void setup(void)
{
    struct kedge_model_spec spec;
    ck_assert_int_eq(kedge_model_mlp(3, 4, 2, &spec, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec, &layout, NULL), KEDGE_OK);
    ck_assert_uint_eq(layout.count, 4);
    ck_assert_uint_eq(layout.values_count, VALUES);
}

static void teardown(void)
{
    kedge_layout_deinit(&layout);
}

START_TEST(words)
{
    struct kedge_part none = {.count = 0}, first = part_of("0", NULL), one = part_of("1.bias", NULL),
                      two = part_of("0.bias", "1"), unknown = part_of("2", NULL), stem = part_of("0.w", NULL),
                      all = part_of("1", "0");
    struct kedge_diag d = {.text = ""};
    ck_assert_str_eq(has(&none), "xx..");
    ck_assert_str_eq(has(&first), "xx..");
    ck_assert_str_eq(has(&one), "...x");
    ck_assert_str_eq(has(&two), ".xxx");
    ck_assert_int_eq(kedge_part_check(&none, &layout, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_part_check(&two, &layout, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_part_check(&unknown, &layout, &d), KEDGE_E_SHAPE);
    ck_assert_ptr_nonnull(strstr(d.text, "no tensor \"2\""));
    ck_assert_int_eq(kedge_part_check(&stem, &layout, &d), KEDGE_E_SHAPE);
    ck_assert_int_eq(kedge_part_check(&all, &layout, &d), KEDGE_E_SHAPE);
    ck_assert_ptr_nonnull(strstr(d.text, "all tensors"));
    ck_assert_int_eq(kedge_part_add(&two, "1", &d), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(d.text, "twice"));
    ck_assert_int_eq(kedge_part_add(&two, "", &d), KEDGE_E_FORMAT);
    char longest[KEDGE_TENSOR_NAME_MAX + 2];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    ck_assert_int_eq(kedge_part_add(&two, longest, &d), KEDGE_E_FORMAT);
    int err = KEDGE_OK;
    for (unsigned i = 0; i <= KEDGE_PART_WORDS_MAX && !err; i++) {
        char word[16];
        snprintf(word, sizeof word, "w%u", i);
        err = kedge_part_add(&one, word, &d);
    }
    ck_assert_int_eq(err, KEDGE_E_TOO_LONG);
    ck_assert_uint_le(one.bytes, KEDGE_PART_BYTES_MAX);
}
END_TEST

START_TEST(values_go_out_and_back)
{
    struct kedge_part p = part_of("0.bias", "1.weight");
    struct kedge_layout in, out;
    float whole[VALUES], inside[VALUES], outside[VALUES], again[VALUES] = {0};
    ck_assert_int_eq(kedge_part_layout(&p, &layout, true, &in, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_part_layout(&p, &layout, false, &out, NULL), KEDGE_OK);
    ck_assert_uint_eq(in.values_count, 4 + 8);
    ck_assert_uint_eq(out.values_count, 12 + 2);
    ck_assert_str_eq(in.tensors[1].name, "1.weight");
    ck_assert_str_eq(out.tensors[1].name, "1.bias");
    for (int i = 0; i < VALUES; i++) {
        whole[i] = (float)i;
    }
    kedge_part_take(&p, &layout, true, whole, inside);
    kedge_part_take(&p, &layout, false, whole, outside);
    ck_assert(inside[0] == 12 && inside[4] == 16 && outside[0] == 0 && outside[12] == 24);
    kedge_part_put(&p, &layout, true, inside, again);
    kedge_part_put(&p, &layout, false, outside, again);
    ck_assert_mem_eq(whole, again, sizeof whole);
    kedge_layout_deinit(&in);
    kedge_layout_deinit(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tensor/part");
    TCase *t = tcase_create("part");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, words);
    tcase_add_test(t, values_go_out_and_back);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
