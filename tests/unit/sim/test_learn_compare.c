/* Comparisons of learning simulations and their pictures. KEEP=DIR leaves the pictures there to be looked at.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/os/file.h"
#include "common/base/rng.h"
#include "sim/learn/compare.h"
#include "sim/learn/report/plot.h"

enum { ROUNDS = 100, SEEDS = 5 };
static char scratch[256];
static struct kedge_diag diag;

/* Student's t, 97.5 %: published tables (Abramowitz and Stegun, table 26.10). */
START_TEST(test_t)
{
    static const struct {
        uint32_t freedom;
        double t;
    } known[] = {{1, 12.706}, {2, 4.303},  {4, 2.776},  {9, 2.262},   {20, 2.086},
                 {21, 2.080}, {30, 2.042}, {60, 2.000}, {120, 1.980}, {999, 1.962}};
    ck_assert_msg(fabs(kedge_learn_t(known[_i].freedom) - known[_i].t) < 0.0006, "%u: %f", known[_i].freedom,
                  kedge_learn_t(known[_i].freedom));
}
END_TEST

START_TEST(test_estimates)
{
    const double a[] = {1, 2, 3, 4, 5}, b[] = {2, 2, 4, 4, 6}, hole[] = {1, (double)NAN, 3};
    struct kedge_learn_estimate e = kedge_learn_estimate_of(a, 5);
    ck_assert(e.mean == 3 && e.count == 5);
    ck_assert(fabs(e.half - 2.7764 * sqrt(2.5 / 5)) < 1e-9);
    e = kedge_learn_difference_of(b, a, 5); /* 1, 0, 1, 0, 1: far less spread than either alone */
    ck_assert(fabs(e.mean - 0.6) < 1e-12 && fabs(e.half - 2.7764 * sqrt(0.3 / 5)) < 1e-9);
    e = kedge_learn_estimate_of(a, 1);
    ck_assert(e.mean == 1 && isnan(e.half));
    e = kedge_learn_estimate_of(hole, 3); /* a run without the value leaves nothing to say */
    ck_assert(isnan(e.mean) && isnan(e.half));
    ck_assert(isnan(kedge_learn_estimate_of(a, 0).mean));
}
END_TEST

START_TEST(test_json)
{
    struct kedge_learn_summary at[4];
    static const char *const names[] = {"one", "two"};
    memset(at, 0, sizeof at);
    for (size_t i = 0; i < 4; i++) {
        at[i].value[KEDGE_LEARN_MEASURE_accuracy_max] = 0.5 + 0.125 * (double)i;
        at[i].value[KEDGE_LEARN_MEASURE_personal_max] = (double)NAN;
        at[i].digest = i;
    }
    struct kedge_learn_comparison c = {2, 2, names, at};
    struct kedge_buf out;
    kedge_buf_init(&out, 1 << 16);
    kedge_learn_put_comparison(&c, 1, &out);
    kedge_buf_put_u8(&out, 0);
    const char *text = (const char *)out.ptr;
    ck_assert_ptr_nonnull(
        strstr(text, "{\"name\":\"two\",\"measures\":{\"accuracy_max\":{\"mean\":0.8125,\"half\":"));
    ck_assert_ptr_nonnull(strstr(text, ",\"difference\":{\"mean\":0.25,\"half\":0}},"));
    ck_assert_ptr_nonnull(strstr(text, "\"personal_max\":{\"mean\":null,\"half\":null,"));
    ck_assert_ptr_nonnull(strstr(text, "\"digest\":\"0000000000000003\"}]}"));
    kedge_buf_deinit(&out);
}
END_TEST

/* ---- pictures ---- */

static void make_rounds(uint32_t variant, uint32_t seed, struct kedge_learn_round *rounds)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 1, KEDGE_RNG_TEST, variant, seed);
    uint32_t members[5] = {300, 250, 200, 150, 100};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        double best = 0.8 + 0.03 * variant, noise = 0.03 * (kedge_rng_unit(&rng) - 0.5);
        double accuracy = best - 0.5 / (1 + 0.2 * i) + noise;
        bool known = i % 2 == 0 || i >= ROUNDS - 10;
        uint32_t from = (uint32_t)kedge_rng_below(&rng, 5), to = (uint32_t)kedge_rng_below(&rng, 5);
        uint32_t moved = members[from] < 9 ? members[from] : 9;
        members[from] -= moved;
        members[to] += moved;
        rounds[i] = (struct kedge_learn_round){
            .round = i,
            .virtual_s = (40.0 + 9 * variant) * (i + 1),
            .bytes_up = UINT64_C(628000) * (i + 1),
            .bytes_down = UINT64_C(628000) * (variant + 1) * (i + 1),
            .joules = 950.0 * (i + 1),
            .accuracy = known ? accuracy : (double)NAN,
            .accuracy_sites = known ? accuracy - 0.01 : (double)NAN,
            .accuracy_worst = known ? accuracy - 0.25 - noise : (double)NAN,
            .accuracy_auxiliary = known ? accuracy - 0.12 : (double)NAN,
            .accuracy_personal = (double)NAN,
            .groups = 5,
        };
        memcpy(rounds[i].members, members, sizeof members);
    }
}

static bool draw(const char *name, const struct kedge_buf *script)
{
    char path[512];
    int err = kedge_learn_plot_draw(scratch, name, kedge_buf_view(script), &diag);
    if (err == KEDGE_E_NOT_FOUND) {
        ck_assert_ptr_nonnull(strstr(diag.text, "gnuplot is not installed"));
        printf("skipped: gnuplot is not installed\n");
        return false;
    }
    ck_assert_msg(err == KEDGE_OK, "%s", diag.text);
    for (int png = 0; png < 2; png++) {
        snprintf(path, sizeof path, "%s/%s.%s", scratch, name, png ? "png" : "svg");
        ck_assert_msg(kedge_file_size(path) > 4000, "%s", path);
    }
    /* the style for dark screens names colours that gnuplot wrote, and every panel has a title */
    struct kedge_buf svg KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&svg, 1 << 24);
    snprintf(path, sizeof path, "%s/%s.svg", scratch, name);
    ck_assert_int_eq(kedge_file_read(path, &svg, NULL), KEDGE_OK);
    kedge_buf_put_u8(&svg, 0);
    static const char *const texts[] = {"prefers-color-scheme:dark", " by rounds<", "fill=\"#ffffff\"/>",
                                        "'rgb( 68,  68,  68)'"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_msg(strstr((const char *)svg.ptr, texts[i]) != NULL, "%s: %s", path, texts[i]);
    }
    snprintf(path, sizeof path, "%s/gnuplot.log", scratch); /* and gnuplot had nothing to say */
    ck_assert_msg(!kedge_file_exists(path), "%s", path);
    return true;
}

static void set_up(void)
{
    const char *keep = getenv("KEEP");
    snprintf(scratch, sizeof scratch, "%s", keep ? keep : "/tmp/kedge-plots-XXXXXX");
    ck_assert(keep || mkdtemp(scratch));
}

static void tear_down(void)
{
    ck_assert(getenv("KEEP") || kedge_dir_remove(scratch) == KEDGE_OK);
}

START_TEST(test_pictures_of_a_run)
{
    static struct kedge_learn_round rounds[ROUNDS];
    struct kedge_buf script;
    kedge_buf_init(&script, 1 << 20);
    make_rounds(2, 0, rounds);
    ck_assert(kedge_learn_plot_has_groups(rounds, ROUNDS));
    kedge_learn_plot_accuracy("mnist-1000-mclr", rounds, ROUNDS, &script);
    ck_assert_int_eq(script.err, KEDGE_OK);
    bool can = draw(KEDGE_LEARN_PLOT_ACCURACY, &script);
    kedge_buf_clear(&script);
    kedge_learn_plot_groups("mnist-1000-mclr", rounds, ROUNDS, &script);
    if (can) {
        (void)draw(KEDGE_LEARN_PLOT_GROUPS, &script);
        kedge_buf_clear(&script);
        kedge_buf_put_str(&script, "plot nothing\n"); /* a failure is one, and where to look is said */
        ck_assert_int_eq(kedge_learn_plot_draw(scratch, "broken", kedge_buf_view(&script), &diag),
                         KEDGE_E_IO);
        ck_assert_ptr_nonnull(strstr(diag.text, "gnuplot.log"));
    }
    kedge_buf_deinit(&script);
}
END_TEST

/* One round, nothing evaluated, no energy, no bytes: a picture nevertheless. */
START_TEST(test_picture_of_little)
{
    struct kedge_learn_round rounds[2] = {
        {.accuracy = (double)NAN, .accuracy_personal = (double)NAN, .groups = 1, .members = {3}},
        {.round = 1, .accuracy = 0.5, .accuracy_personal = 0.75, .groups = 1, .members = {3}},
    };
    struct kedge_buf script;
    kedge_buf_init(&script, 1 << 20);
    ck_assert(!kedge_learn_plot_has_groups(rounds, 2));
    kedge_learn_plot_accuracy("little", rounds, 2, &script);
    (void)draw(KEDGE_LEARN_PLOT_ACCURACY, &script);
    kedge_buf_deinit(&script);
}
END_TEST

START_TEST(test_picture_of_variants)
{
    enum { VARIANTS = 10 };
    static struct kedge_learn_round rounds[VARIANTS][SEEDS][ROUNDS];
    static const char *const names[VARIANTS] = {"fedavg", "fedprox", "scaffold",          "ifca",
                                                "fesem",  "cfl",     "flexcfl-unit_norm", "flexcfl-static",
                                                "best",   "ditto"};
    const struct kedge_learn_round *at[VARIANTS][SEEDS];
    uint32_t counts[SEEDS] = {ROUNDS, ROUNDS, ROUNDS, ROUNDS, ROUNDS - 20};
    struct kedge_learn_curve curves[VARIANTS];
    for (uint32_t v = 0; v < VARIANTS; v++) {
        for (uint32_t s = 0; s < SEEDS; s++) {
            make_rounds(v, s, rounds[v][s]);
            at[v][s] = rounds[v][s];
        }
        curves[v] = (struct kedge_learn_curve){names[v], SEEDS, at[v], counts};
    }
    struct kedge_buf script;
    kedge_buf_init(&script, 1 << 22);
    kedge_learn_plot_compare("mnist-1000-mclr", curves, VARIANTS, &script);
    ck_assert_int_eq(script.err, KEDGE_OK);
    (void)draw(KEDGE_LEARN_PLOT_COMPARE, &script);
    kedge_buf_deinit(&script);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("learn_compare");
    TCase *t = tcase_create("compare");
    tcase_add_loop_test(t, test_t, 0, 10);
    tcase_add_test(t, test_estimates);
    tcase_add_test(t, test_json);
    TCase *p = tcase_create("pictures");
    tcase_add_checked_fixture(p, set_up, tear_down);
    tcase_set_timeout(p, 60);
    tcase_add_test(p, test_picture_of_little);
    tcase_add_test(p, test_pictures_of_a_run);
    tcase_add_test(p, test_picture_of_variants);
    suite_add_tcase(s, t);
    suite_add_tcase(s, p);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
