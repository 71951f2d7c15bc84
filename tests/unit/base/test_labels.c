/* Labels: their one spelling, and which sets have what is needed. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/base/labels.h"
#include "common/base/rng.h"
#include "tests/fixtures/run.h"

static const char *const good[] = {"",
                                   "a=1",
                                   "gpu=h100 zone=eu-1",
                                   "a-b=1 a=1 a_b=1",
                                   "0=0",
                                   "a234567890123456789012345678901=v234567890123456789012345678901"};
static const char *const bad[] = {"a",
                                  "=",
                                  "a=",
                                  "=1",
                                  "a=1 ",
                                  " a=1",
                                  "a=1  b=1",
                                  "b=1 a=1",
                                  "a=1 a=1",
                                  "a=1 a=2",
                                  "a==1",
                                  "A=1",
                                  "a=B",
                                  "-a=1",
                                  "a=.1",
                                  "a=1=2",
                                  "a=1,b=1",
                                  "a=1\nb=1",
                                  "a=\xc3\xa9",
                                  "a=1\tb=2",
                                  "a2345678901234567890123456789012=1",
                                  "a=v2345678901234567890123456789012"};

START_TEST(test_spelling)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(kedge_labels_are_valid(kedge_view_str(good[i])), "%s", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!kedge_labels_are_valid(kedge_view_str(bad[i])), "%s", bad[i]);
    }
    ck_assert(!kedge_labels_are_valid(kedge_view_of("a=1\0", 4)));
    ck_assert(!kedge_label_is_valid(kedge_view_of("", 0)) && !kedge_label_is_valid(kedge_view_of(NULL, 0)));
}
END_TEST

/* However labels are added, the set comes out in its one spelling, and has what was put in. */
START_TEST(test_added)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 7, 0, 0, 0);
    for (int run = 0; run < 2000; run++) {
        struct kedge_label_set set = {.text = ""};
        uint32_t in = 0, count = 0;
        for (int i = 0; i < 40; i++) {
            char label[KEDGE_LABEL_MAX + 1];
            const uint32_t key = (uint32_t)kedge_rng_below(&rng, 20);
            snprintf(label, sizeof label, "%c%s=%u", (char)('a' + key / 2), key % 2 ? "-x" : "",
                     (unsigned)kedge_rng_below(&rng, 3));
            const struct kedge_label_set before = set;
            const int err = kedge_labels_add(&set, kedge_view_str(label));
            const bool had = (in >> key & 1) != 0;
            ck_assert_int_eq(err, had                              ? KEDGE_E_EXISTS
                                  : count == KEDGE_LABEL_COUNT_MAX ? KEDGE_E_FULL
                                                                   : KEDGE_OK);
            ck_assert(err == KEDGE_OK || strcmp(before.text, set.text) == 0);
            ck_assert(err != KEDGE_OK || kedge_labels_cover(kedge_view_str(set.text), kedge_view_str(label)));
            count += err == KEDGE_OK;
            in |= err == KEDGE_OK ? 1u << key : 0;
            ck_assert(kedge_labels_are_valid(kedge_view_str(set.text)));
            ck_assert(kedge_labels_cover(kedge_view_str(set.text), kedge_view_str(before.text)));
        }
    }
}
END_TEST

START_TEST(test_full)
{
    struct kedge_label_set set = {.text = ""};
    char label[KEDGE_LABEL_MAX + 1];
    for (int i = 0; i <= KEDGE_LABEL_COUNT_MAX; i++) {
        snprintf(label, sizeof label, "%02d%s=%s", i, "45678901234567890123456789012",
                 "v234567890123456789012345678901");
        ck_assert_uint_eq(strlen(label), KEDGE_LABEL_MAX);
        ck_assert_int_eq(kedge_labels_add(&set, kedge_view_str(label)),
                         i < KEDGE_LABEL_COUNT_MAX ? KEDGE_OK : KEDGE_E_FULL);
    }
    ck_assert_uint_eq(strlen(set.text), KEDGE_LABELS_TEXT_MAX);
    ck_assert(kedge_labels_are_valid(kedge_view_str(set.text)));
    ck_assert_int_eq(kedge_labels_add(&set, kedge_view_str("nothing")), KEDGE_E_FORMAT);
}
END_TEST

static const struct {
    const char *have, *needs;
    bool covers;
} sets[] = {
    {"", "", true},
    {"a=1", "", true},
    {"", "a=1", false},
    {"a=1", "a=1", true},
    {"a=1", "a=2", false},
    {"a=11", "a=1", false},
    {"a=1", "a=11", false},
    {"a=1 b=2 c=3", "b=2", true},
    {"a=1 b=2 c=3", "a=1 c=3", true},
    {"a=1 b=2 c=3", "a=1 b=3", false},
    {"a=1 b=2 c=3", "a=1 b=2 c=3 d=4", false},
};

START_TEST(test_cover)
{
    ck_assert(kedge_labels_cover(kedge_view_str(sets[_i].have), kedge_view_str(sets[_i].needs))
              == sets[_i].covers);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("labels");
    TCase *t = tcase_create("labels");
    tcase_add_test(t, test_spelling);
    tcase_add_test(t, test_added);
    tcase_add_test(t, test_full);
    tcase_add_loop_test(t, test_cover, 0, sizeof sets / sizeof sets[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
