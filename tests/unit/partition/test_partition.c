/* Splits over sites: every promise of partition.h, on the digits where they are real. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "sim/partition/files.h"

enum { N = 1000, CLASSES = 10 };

static int32_t labels[N];

static void make_labels(void)
{
    for (int i = 0; i < N; i++) {
        labels[i] = (i * 7 + i / 13) % CLASSES;
    }
}

static const struct kedge_partition_spec specs[] = {
    {.kind = KEDGE_PARTITION_IID, .sites = 12, .train_share = 0.8, .seed = 1},
    {.kind = KEDGE_PARTITION_IID, .sites = 1, .train_share = 0.5, .seed = 1},
    {.kind = KEDGE_PARTITION_IID, .sites = 500, .train_share = 0.8, .seed = 2},
    {.kind = KEDGE_PARTITION_RING, .sites = 20, .classes_per_site = 3, .train_share = 0.8, .seed = 3},
    {.kind = KEDGE_PARTITION_RING, .sites = 7, .classes_per_site = 2, .train_share = 0.9, .seed = 3},
    {.kind = KEDGE_PARTITION_RING, .sites = 4, .classes_per_site = 10, .train_share = 0.8, .seed = 3},
    {.kind = KEDGE_PARTITION_PLANTED, .sites = 12, .groups = 3, .train_share = 0.8, .seed = 4},
    {.kind = KEDGE_PARTITION_PLANTED, .sites = 13, .groups = 10, .train_share = 0.8, .seed = 4},
};

START_TEST(every_sample_goes_to_at_most_one_site_that_holds_its_class)
{
    const struct kedge_partition_spec *spec = &specs[_i];
    struct kedge_partition p;
    uint32_t used[N] = {0}, total = 0, held = 0;
    make_labels();
    ck_assert_int_eq(kedge_partition_make(spec, labels, N, CLASSES, &p, NULL), KEDGE_OK);
    ck_assert_uint_eq(p.sites_count, spec->sites);
    for (uint32_t s = 0; s < spec->sites; s++) {
        uint32_t train_count, test_count;
        const uint32_t *train = kedge_partition_train(&p, s, &train_count);
        const uint32_t *test = kedge_partition_test(&p, s, &test_count);
        ck_assert_uint_ge(train_count, 1);
        ck_assert_uint_ge(test_count, 1);
        ck_assert_ptr_eq(train + train_count, test);
        double share = (double)train_count / (double)(train_count + test_count);
        ck_assert_double_le(share, spec->train_share + 1.0 / (train_count + test_count) + 1e-12);
        for (uint32_t i = 0; i < train_count + test_count; i++) {
            ck_assert_uint_lt(train[i], N);
            ck_assert_uint_eq(used[train[i]]++, 0);
            ck_assert(kedge_partition_holds(spec, CLASSES, s, (uint32_t)labels[train[i]]));
        }
        total += train_count + test_count;
    }
    for (int i = 0; i < N; i++) { /* nothing is left out but classes without a holder */
        bool any = false;
        for (uint32_t s = 0; s < spec->sites; s++) {
            any = any || kedge_partition_holds(spec, CLASSES, s, (uint32_t)labels[i]);
        }
        held += any;
    }
    ck_assert_uint_eq(total, held);
    kedge_partition_deinit(&p);
}
END_TEST

START_TEST(rings_and_groups_hold_what_they_should)
{
    const struct kedge_partition_spec ring = specs[3], planted = specs[6];
    for (uint32_t s = 0; s < ring.sites; s++) {
        for (uint32_t c = 0; c < CLASSES; c++) {
            bool expected = c == s % 10 || c == (s + 1) % 10 || c == (s + 2) % 10;
            ck_assert(kedge_partition_holds(&ring, CLASSES, s, c) == expected);
        }
    }
    for (uint32_t c = 0; c < CLASSES; c++) { /* 10 classes in 3 groups: 0–2, 3–5, 6–9 */
        uint32_t group = c < 3 ? 0 : c < 6 ? 1 : 2;
        for (uint32_t s = 0; s < planted.sites; s++) {
            ck_assert(kedge_partition_holds(&planted, CLASSES, s, c) == (s % 3 == group));
        }
    }
}
END_TEST

START_TEST(shares_are_equal_within_one_per_class)
{
    struct kedge_partition p;
    make_labels();
    ck_assert_int_eq(kedge_partition_make(&specs[3], labels, N, CLASSES, &p, NULL), KEDGE_OK);
    for (uint32_t c = 0; c < CLASSES; c++) {
        uint32_t least = N, most = 0;
        for (uint32_t s = 0; s < specs[3].sites; s++) {
            uint32_t train_count, test_count, own = 0;
            const uint32_t *rows = kedge_partition_train(&p, s, &train_count);
            (void)kedge_partition_test(&p, s, &test_count);
            for (uint32_t i = 0; i < train_count + test_count; i++) {
                own += labels[rows[i]] == (int32_t)c;
            }
            if (kedge_partition_holds(&specs[3], CLASSES, s, c)) {
                least = own < least ? own : least;
                most = own > most ? own : most;
            }
        }
        ck_assert_uint_le(most - least, 1);
    }
    kedge_partition_deinit(&p);
}
END_TEST

START_TEST(the_seed_decides_and_nothing_else)
{
    struct kedge_partition a, b, c;
    struct kedge_partition_spec other = specs[6];
    other.seed++;
    make_labels();
    ck_assert_int_eq(kedge_partition_make(&specs[6], labels, N, CLASSES, &a, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_partition_make(&specs[6], labels, N, CLASSES, &b, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_partition_make(&other, labels, N, CLASSES, &c, NULL), KEDGE_OK);
    ck_assert_mem_eq(a.order, b.order, sizeof labels);
    ck_assert_mem_ne(a.order, c.order, sizeof labels);
    kedge_partition_deinit(&a);
    kedge_partition_deinit(&b);
    kedge_partition_deinit(&c);
}
END_TEST

static const struct {
    struct kedge_partition_spec spec;
    const char *says;
} bad[] = {
    {{.kind = KEDGE_PARTITION_IID, .sites = 0, .train_share = 0.8}, "0 sites"},
    {{.kind = KEDGE_PARTITION_IID, .sites = 5000, .train_share = 0.8}, "5000 sites"},
    {{.kind = KEDGE_PARTITION_IID, .sites = 501, .train_share = 0.8}, "site 499 would get 1 samples"},
    {{.kind = KEDGE_PARTITION_IID, .sites = 2, .train_share = 1.0}, "train share 1"},
    {{.kind = KEDGE_PARTITION_IID, .sites = 2, .train_share = 0.0}, "train share 0"},
    {{.kind = KEDGE_PARTITION_RING, .sites = 2, .train_share = 0.8}, "0 classes per site"},
    {{.kind = KEDGE_PARTITION_RING, .sites = 2, .classes_per_site = 11, .train_share = 0.8}, "11 classes"},
    {{.kind = KEDGE_PARTITION_PLANTED, .sites = 2, .groups = 3, .train_share = 0.8}, "3 groups"},
    {{.kind = KEDGE_PARTITION_PLANTED, .sites = 20, .groups = 11, .train_share = 0.8}, "11 groups"},
};

START_TEST(impossible_specs_are_refused_by_name)
{
    struct kedge_partition p;
    struct kedge_diag diag;
    make_labels();
    ck_assert_int_eq(kedge_partition_make(&bad[_i].spec, labels, N, CLASSES, &p, &diag), KEDGE_E_ARG);
    ck_assert_msg(strstr(diag.text, bad[_i].says) != NULL, "\"%s\" in \"%s\"", bad[_i].says, diag.text);
}
END_TEST

START_TEST(labels_out_of_range_are_refused)
{
    struct kedge_partition p;
    struct kedge_diag diag;
    make_labels();
    labels[17] = CLASSES;
    ck_assert_int_eq(kedge_partition_make(&specs[0], labels, N, CLASSES, &p, &diag), KEDGE_E_ARG);
    ck_assert_ptr_nonnull(strstr(diag.text, "label 10 of sample 17"));
    labels[17] = -1;
    ck_assert_int_eq(kedge_partition_make(&specs[0], labels, N, CLASSES, &p, &diag), KEDGE_E_ARG);
}
END_TEST

static void load_binding(const char *dir, struct kedge_dataset *train, struct kedge_dataset *test)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    struct kedge_json_token tokens[64];
    struct kedge_json doc;
    struct kedge_data_binding binding;
    kedge_buf_init(&text, 65536);
    ck_assert_int_eq(kedge_path_join(path, dir, "binding.json"), KEDGE_OK);
    ck_assert_int_eq(kedge_file_read(path, &text, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_json_parse(kedge_buf_view(&text), tokens, 64, &doc, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_data_binding_from_json(&doc, 0, &binding, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_data_binding_load(&binding, train, test, NULL), KEDGE_OK);
    kedge_buf_deinit(&text);
}

static void check_rows(const struct kedge_dataset *all, const struct kedge_dataset *part,
                       const uint32_t *rows, uint32_t count)
{
    ck_assert_uint_eq(part->n, count);
    ck_assert_uint_eq(part->features, all->features);
    ck_assert_float_eq(part->scale, all->scale);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_int_eq(part->labels[i], all->labels[rows[i]]);
        ck_assert_mem_eq(part->bytes + (size_t)i * 64, all->bytes + (size_t)rows[i] * 64, 64);
    }
}

START_TEST(a_site_reads_back_its_share_of_the_digits)
{
    struct kedge_data_source digits = {.format = KEDGE_DATA_IDX,
                                       .path = "data/digits/digits-images.idx",
                                       .labels_path = "data/digits/digits-labels.idx",
                                       .scale = 1.0 / 255.0};
    struct kedge_dataset all, train, test;
    struct kedge_partition p;
    uint32_t count;
    char dir[] = "/tmp/kedge-partition-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(kedge_dataset_load(&digits, &all, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_partition_make(&specs[6], all.labels, all.n, all.classes, &p, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_partition_write_idx(dir, &all, &p, 5, NULL), KEDGE_OK);
    load_binding(dir, &train, &test);
    const uint32_t *rows = kedge_partition_train(&p, 5, &count);
    check_rows(&all, &train, rows, count);
    rows = kedge_partition_test(&p, 5, &count);
    check_rows(&all, &test, rows, count);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
    kedge_partition_deinit(&p);
    kedge_dataset_deinit(&all);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("partition");
    TCase *tc = tcase_create("partition");
    tcase_add_loop_test(tc, every_sample_goes_to_at_most_one_site_that_holds_its_class, 0,
                        sizeof specs / sizeof specs[0]);
    tcase_add_test(tc, rings_and_groups_hold_what_they_should);
    tcase_add_test(tc, shares_are_equal_within_one_per_class);
    tcase_add_test(tc, the_seed_decides_and_nothing_else);
    tcase_add_loop_test(tc, impossible_specs_are_refused_by_name, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(tc, labels_out_of_range_are_refused);
    tcase_add_test(tc, a_site_reads_back_its_share_of_the_digits);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
