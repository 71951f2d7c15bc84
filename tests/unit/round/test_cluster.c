/* What a job's spec says of groups, done to updates of a few values, worked out by hand. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/os/file.h"
#include "common/tensor/safetensors.h"
#include "round/drift.h"
#include "round/reshape.h"

enum { MOST = 8, VALUES_MAX = 8 };

static char dir[64];
static char paths[MOST][KEDGE_PATH_MAX];
static struct kedge_blob_at at[MOST];
static const uint32_t tenants[MOST] = {0, 1, 2, 3, 4, 5};
static struct kedge_job_spec spec;
static struct kedge_layout layout;

/* A job of this strategy and of the model with these layers; more: further keys of the spec. */
static void set_up(const char *strategy, const char *model, const char *more)
{
    char text[600];
    struct kedge_diag d = {.text = ""};
    snprintf(text, sizeof text,
             "{\"name\":\"j\",\"tenants\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"],\"data\":\"x\",\"rounds\":3,"
             "\"model\":%s,\"strategy\":\"%s\"%s}",
             model, strategy, more);
    ck_assert_msg(kedge_job_spec_parse(kedge_view_str(text), &spec, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_int_eq(kedge_model_layout(&spec.model, &layout, NULL), KEDGE_OK);
    snprintf(dir, sizeof dir, "/tmp/kedge-cluster-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void tear_down(void)
{
    kedge_layout_deinit(&layout);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

static void write_updates(const int32_t (*values)[VALUES_MAX], size_t count)
{
    for (size_t k = 0; k < count; k++) {
        struct kedge_buf file;
        kedge_buf_init(&file, 1 << 16);
        ck_assert_int_eq(kedge_safetensors_header(&layout, KEDGE_DTYPE_I32, &file), KEDGE_OK);
        kedge_buf_put(&file, values[k], (size_t)layout.values_count * 4);
        snprintf(paths[k], sizeof paths[k], "%s/%zu", dir, k);
        FILE *f = fopen(paths[k], "wb");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fwrite(file.ptr, 1, file.len, f), file.len);
        ck_assert_int_eq(fclose(f), 0);
        at[k] = (struct kedge_blob_at){.path = paths[k]};
        kedge_buf_deinit(&file);
    }
}

/* Of the first `known` updates it is said who stands with whom. */
static void expect_groups(const int32_t (*values)[VALUES_MAX], size_t count, uint32_t groups,
                          const uint32_t *expected, size_t known)
{
    uint32_t group[MOST], found = 0;
    struct kedge_diag d = {.text = ""};
    const struct kedge_compute_sites sites = {at, tenants, count};
    write_updates(values, count);
    ck_assert_msg(kedge_compute_groups(&layout, &sites, &spec, 0, group, &found, &d) == KEDGE_OK, "%s",
                  d.text);
    ck_assert_uint_eq(found, groups);
    for (size_t i = 0; i < known; i++) {
        ck_assert_msg(group[i] < groups, "update %zu is left out", i);
        for (size_t k = 0; k < known; k++) { /* numbers are the clustering's affair */
            ck_assert_int_eq(group[i] == group[k], expected[i] == expected[k]);
        }
    }
}

#define MCLR "{\"preset\":\"mclr\",\"inputs\":1,\"classes\":2}" /* four values */
#define MLP                                                                         \
    "{\"layers\":[{\"type\":\"dense\",\"in\":1,\"out\":1,\"activation\":\"relu\"}," \
    "{\"type\":\"dense\",\"in\":1,\"out\":2}]}" /* two values, and four of the last layer */

/* Two kinds that pull against each other, and two updates of a hundred times their length at right angles to
 * them. By inner products the long ones are the two directions that count, and the others are all alike. */
static const int32_t with_long_ones[6][VALUES_MAX] = {{10, 0, 0, 0},  {-10, 0, 0, 0},  {11, 0, 0, 0},
                                                      {-12, 0, 0, 0}, {0, 0, 1000, 0}, {0, 0, 0, 1100}};

START_TEST(the_metric_is_the_strategys)
{
    static const struct {
        const char *strategy;
        uint32_t expected[4];
    } cases[] = {{"flexcfl", {0, 1, 0, 1}}, {"flexcfl-madc", {0, 1, 0, 1}}, {"flexcfl-plain", {0, 0, 0, 0}}};
    set_up(cases[_i].strategy, MCLR, ",\"groups\":2");
    expect_groups(with_long_ones, 6, 2, cases[_i].expected, 4);
    tear_down();
}
END_TEST

/* Three directions, two updates of each. */
static const int32_t three_kinds[6][VALUES_MAX] = {{50, 1, 0, 0}, {0, 40, 1, 0}, {0, 1, 0, 60},
                                                   {70, 0, 2, 0}, {1, 55, 0, 0}, {0, 0, 1, 30}};

START_TEST(the_number_is_chosen)
{
    static const struct {
        const char *keys;
        uint32_t least, most, groups, expected[6];
    } cases[] = {
        {",\"groups\":3", 3, 3, 3, {0, 1, 2, 0, 1, 2}},
        {",\"groups\":2,\"choose\":\"silhouette\",\"options\":{\"most\":\"5\"}", 2, 5, 3, {0, 1, 2, 0, 1, 2}},
        {",\"groups\":5,\"choose\":\"silhouette\",\"options\":{\"most\":\"2\"}", 2, 5, 3, {0, 1, 2, 0, 1, 2}},
    };
    uint32_t least, most;
    set_up("flexcfl", MCLR, cases[_i].keys);
    kedge_job_spec_groups(&spec, &least, &most);
    ck_assert_uint_eq(least, cases[_i].least);
    ck_assert_uint_eq(most, cases[_i].most);
    ck_assert_uint_eq(kedge_job_spec_groups_most(&spec), cases[_i].most);
    expect_groups(three_kinds, 6, cases[_i].groups, cases[_i].expected, 6);
    tear_down();
}
END_TEST

/* In front the updates pair 0 with 1 and 2 with 3, in the last layer 0 with 2 and 1 with 3. */
static const int32_t two_layers[4][VALUES_MAX] = {
    {900, 900, 10, 0, 0, 0}, {900, 900, 0, 20, 0, 0}, {-900, 700, 30, 0, 0, 0}, {-900, 700, 0, 40, 0, 0}};

START_TEST(one_shot_clustering_sees_the_last_layer)
{
    static const uint32_t by_all[4] = {0, 0, 1, 1}, by_last[4] = {0, 1, 0, 1};
    set_up("flexcfl", MLP, ",\"groups\":2");
    ck_assert_uint_eq(kedge_job_spec_sign_first(&spec, &layout), 0);
    expect_groups(two_layers, 4, 2, by_all, 4);
    tear_down();
    set_up("fedclust", MLP, ",\"options\":{\"link\":\"0.5\"}");
    ck_assert_uint_eq(kedge_job_spec_sign_first(&spec, &layout), 2);
    ck_assert_uint_eq(kedge_job_spec_groups_most(&spec), KEDGE_GROUPS_USUAL);
    expect_groups(two_layers, 4, 2, by_last, 4);
    tear_down();
    set_up("fedclust", MLP, ",\"options\":{\"link\":\"1\"}"); /* at right angles, so all are joined */
    expect_groups(two_layers, 4, 1, (const uint32_t[4]){0, 0, 0, 0}, 4);
    tear_down();
}
END_TEST

static int sink(void *arg, struct kedge_view bytes)
{
    kedge_buf_put(arg, bytes.ptr, bytes.len);
    return ((struct kedge_buf *)arg)->err;
}

/* Two tenants count alike. By the last layer both members are (1, 0, 0, 0), scaled to 2047 each, and a
 * direction is in units of 2^-12; in front of it there are zeros. */
START_TEST(its_directions_are_zero_in_front)
{
    static const int32_t expected[6] = {0, 0, 2047 * 4096, 0, 0, 0};
    struct kedge_buf out;
    set_up("fedclust", MLP, "");
    write_updates(two_layers, 4);
    const struct kedge_blob_at members[2] = {at[0], at[2]};
    const struct kedge_compute_sites sites = {members, tenants, 2};
    kedge_buf_init(&out, 1 << 16);
    ck_assert_int_eq(kedge_compute_direction(&layout, &sites, &spec,
                                             (struct kedge_sink){.write = sink, .arg = &out}, NULL),
                     KEDGE_OK);
    ck_assert_uint_ge(out.len, sizeof expected);
    ck_assert_mem_eq(out.ptr + out.len - sizeof expected, expected, sizeof expected);
    kedge_buf_deinit(&out);
    tear_down();
}
END_TEST

/* Directions at right angles; the first turns so that its cosine to what it was is 0.6, which is 0.4 of their
 * distance.
 */
START_TEST(drift_is_in_units_of_the_distance)
{
    static const int32_t directions[4][VALUES_MAX] = {
        {1000, 0, 0, 0}, {0, 1000, 0, 0}, {600, 800, 0, 0}, {1000, 0, 0, 0}};
    double drift;
    set_up("flexcfl", MCLR, ",\"groups\":2");
    write_updates(directions, 4);
    const struct kedge_blob_at made[2] = {{.path = paths[0]}, {.path = paths[1]}},
                               turned[2] = {{.path = paths[2]}, {.path = paths[1]}},
                               alike[2] = {{.path = paths[0]}, {.path = paths[3]}};
    ck_assert_int_eq(kedge_compute_drift(&layout, made, turned, 2, &drift, NULL), KEDGE_OK);
    ck_assert_double_eq_tol(drift, 0.4, 1e-3);
    ck_assert(kedge_job_spec_drifted(drift));
    ck_assert_int_eq(kedge_compute_drift(&layout, made, made, 2, &drift, NULL), KEDGE_OK);
    ck_assert_double_eq_tol(drift, 0, 1e-12);
    ck_assert(!kedge_job_spec_drifted(drift));
    ck_assert_int_eq(kedge_compute_drift(&layout, alike, made, 2, &drift, NULL),
                     KEDGE_OK); /* they were all alike */
    ck_assert_double_eq(drift, KEDGE_DRIFT_LARGEST);
    ck_assert_int_eq(kedge_compute_drift(&layout, made, made, 0, &drift, NULL), KEDGE_E_ARG);
    tear_down();
}
END_TEST

START_TEST(groups_that_are_alike_become_one)
{
    static const int32_t directions[4][VALUES_MAX] = {
        {0, 1000, 0, 0}, {1000, 10, 0, 0}, {0, 990, 30, 0}, {1000, 0, 0, 0}};
    uint32_t into[4];
    bool any;
    set_up("flexcfl", MCLR, ",\"groups\":4,\"options\":{\"refresh\":\"1\",\"merge\":\"0.9\"}");
    write_updates(directions, 4);
    const struct kedge_blob_at all[4] = {
        {.path = paths[0]}, {.path = paths[1]}, {.path = paths[2]}, {.path = paths[3]}};
    const struct kedge_blob_at without[4] = {
        all[0], {.path = NULL}, all[2], all[3]}; /* the second is part of another already */
    ck_assert_int_eq(kedge_compute_merges(&layout, &spec, all, 4, into, &any, NULL), KEDGE_OK);
    ck_assert(any && into[0] == 0 && into[1] == 1 && into[2] == 0 && into[3] == 1);
    ck_assert_int_eq(kedge_compute_merges(&layout, &spec, without, 4, into, &any, NULL), KEDGE_OK);
    ck_assert(any && into[0] == 0 && into[1] == 1 && into[2] == 0 && into[3] == 3);
    spec.options.merge = 1;
    ck_assert_int_eq(kedge_compute_merges(&layout, &spec, all, 4, into, &any, NULL), KEDGE_OK);
    ck_assert(!any && into[2] == 2);
    tear_down();
}
END_TEST

START_TEST(a_capped_tenant_does_not_decide_what_groups_become)
{
    /* Groups 0 and 2 become one. Tenant 0 has six sites in group 0, three in 2; tenant 1 two in 2 and four
     * that stay in 1; tenant 2 one in 0. */
    static const uint32_t tenant[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2};
    static const uint32_t group[] = {0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 1, 1, 1, 1, 0}, into[] = {0, 1, 0};
    static const struct {
        const char *share;
        uint64_t zero, two;      /* of 0 and 2, up to a factor */
    } cases[] = {{"1", 7, 5},    /* as they have sites */
                 {"0.8", 7, 5},  /* three quarters are tenant 0's, and that may be */
                 {"0.5", 3, 3}}; /* it counts 3 of 6, shared out as its sites are: 2 and 1 */
    enum { COUNT = sizeof tenant / sizeof tenant[0] };
    uint64_t weight[3];
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char keys[200];
        (void)snprintf(keys, sizeof keys,
                       ",\"tenant_share_max\":\"%s\",\"groups\":3,"
                       "\"options\":{\"refresh\":\"1\",\"merge\":\"0.9\"}",
                       cases[k].share);
        set_up("flexcfl", MCLR, keys);
        ck_assert_int_eq(kedge_compute_merge_weights(&spec, tenant, group, COUNT, into, 3, 0, weight),
                         KEDGE_OK);
        ck_assert_double_eq_tol((double)weight[0] / (double)weight[2],
                                (double)cases[k].zero / (double)cases[k].two, 1e-5);
        ck_assert(weight[0] > 0 && weight[1] == 0);
        ck_assert_int_eq(kedge_compute_merge_weights(&spec, tenant, group, 0, into, 3, 0, weight), KEDGE_OK);
        ck_assert(weight[0] == 1 && weight[1] == 0 && weight[2] == 1); /* nobody is left */
        ck_assert_int_eq(kedge_compute_merge_weights(&spec, group, tenant, COUNT, into, 2, 0, weight),
                         KEDGE_E_ARG);
        tear_down();
    }
}
END_TEST

START_TEST(a_group_of_two_kinds_is_cut)
{
    static const struct {
        const char *silhouette;
        int32_t updates[6][VALUES_MAX];
        size_t count;
        bool is_cut;
    } cases[] = {
        {"0.5", {{9, 0, 0, 0}, {0, 9, 0, 0}, {8, 0, 0, 0}, {0, 7, 0, 0}}, 4, true},
        {"0.5", {{9, 0, 0, 0}, {0, 9, 0, 0}, {8, 0, 0, 0}}, 3, false},               /* too few */
        {"0.5", {{9, 0, 0, 0}, {7, 0, 0, 0}, {8, 0, 0, 0}, {0, 7, 0, 0}}, 4, false}, /* one part of one */
        {"0.9", {{9, 5, 0, 0}, {5, 9, 0, 0}, {9, 7, 0, 0}, {7, 9, 0, 0}}, 4, false}, /* not apart enough */
        {"1", {{9, 0, 0, 0}, {0, 9, 0, 0}, {8, 0, 0, 0}, {0, 7, 0, 0}}, 4, false},   /* never */
        {"0.5", {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}, 4, false}, /* point nowhere */
    };
    char keys[120];
    uint32_t part[6];
    bool is_cut;
    snprintf(keys, sizeof keys, ",\"groups\":2,\"options\":{\"refresh\":\"1\",\"silhouette\":\"%s\"}",
             cases[_i].silhouette);
    set_up("flexcfl", MCLR, keys);
    write_updates(cases[_i].updates, cases[_i].count);
    const struct kedge_compute_sites sites = {at, tenants, cases[_i].count};
    ck_assert_int_eq(kedge_compute_cut(&layout, &spec, &sites, part, &is_cut, NULL), KEDGE_OK);
    ck_assert_int_eq(is_cut, cases[_i].is_cut);
    ck_assert(!is_cut || (part[0] == 0 && part[1] == 1 && part[2] == 0 && part[3] == 1));
    tear_down();
}
END_TEST

static int put(void *arg, struct kedge_view bytes)
{
    kedge_buf_put(arg, bytes.ptr, bytes.len);
    return KEDGE_OK;
}

/* Updates that point nowhere make one group, whose direction is zero: never a job that fails. */
/* Two kinds of three and two of zeros, which go with part 0 whichever half they lie in; fewer than two that
 * are not zero are no half. */
START_TEST(zeros_make_no_half)
{
    static const int32_t mixed[8][VALUES_MAX] = {{0},
                                                 {90, 5, 80, 1},
                                                 {88, 6, 81, 2},
                                                 {91, 4, 79, 0},
                                                 {-70, 60, 5, 9},
                                                 {-71, 62, 4, 8},
                                                 {-69, 61, 6, 9},
                                                 {0}},
                         few[5][VALUES_MAX] = {{90, 5, 80, 1}, {88, 6, 81, 2}, {91, 4, 79, 0}, {0}, {0}};
    uint32_t part[8];
    bool is_cut = false;
    struct kedge_diag d = {.text = ""};
    struct kedge_compute_sites sites = {at, tenants, 8};
    set_up("flexcfl-adaptive", MCLR, ",\"groups\":2");
    write_updates(mixed, 8);
    ck_assert_int_eq(kedge_compute_halves(&layout, &spec, &sites, part, &is_cut, &d), KEDGE_OK);
    ck_assert(is_cut && part[0] == 0 && part[1] == 0 && part[3] == 0 && part[7] == 0);
    ck_assert(part[4] == 1 && part[5] == 1 && part[6] == 1);
    sites.count = 5;
    write_updates(few, 5);
    ck_assert_int_eq(kedge_compute_halves(&layout, &spec, &sites, part, &is_cut, &d), KEDGE_OK);
    ck_assert(!is_cut && part[3] == 0 && part[4] == 0);
    tear_down();
}
END_TEST

START_TEST(nothing_learnt)
{
    static const int32_t still[3][VALUES_MAX] = {{0}};
    static const uint32_t one[3] = {0, 0, 0};
    const struct kedge_compute_sites sites = {at, tenants, 3};
    struct kedge_buf made;
    struct kedge_diag d = {.text = ""};
    set_up("flexcfl", MCLR, ",\"groups\":2");
    expect_groups(still, 3, 1, one, 3);
    kedge_buf_init(&made, 1 << 16);
    const struct kedge_sink sink = {.write = put, .arg = &made};
    ck_assert_int_eq(kedge_compute_direction(&layout, &sites, &spec, sink, &d), KEDGE_E_NO_DIRECTION);
    ck_assert_uint_eq(made.len, 0);
    ck_assert_int_eq(kedge_compute_made_direction(&layout, &sites, &spec, sink, &d), KEDGE_OK);
    ck_assert_uint_gt(made.len, 4 * layout.values_count);
    for (size_t i = made.len - 4 * (size_t)layout.values_count; i < made.len; i++) {
        ck_assert_uint_eq(made.ptr[i], 0);
    }
    kedge_buf_deinit(&made);
    tear_down();
    set_up("flexcfl-adaptive", MCLR, ""); /* which begins with one group anyway */
    expect_groups(still, 3, 1, one, 3);
    tear_down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("compute cluster");
    TCase *t = tcase_create("groups of a job");
    tcase_add_loop_test(t, the_metric_is_the_strategys, 0, 3);
    tcase_add_loop_test(t, the_number_is_chosen, 0, 3);
    tcase_add_test(t, one_shot_clustering_sees_the_last_layer);
    tcase_add_test(t, its_directions_are_zero_in_front);
    tcase_add_test(t, drift_is_in_units_of_the_distance);
    tcase_add_test(t, groups_that_are_alike_become_one);
    tcase_add_test(t, a_capped_tenant_does_not_decide_what_groups_become);
    tcase_add_test(t, zeros_make_no_half);
    tcase_add_test(t, nothing_learnt);
    tcase_add_loop_test(t, a_group_of_two_kinds_is_cut, 0, 6);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
