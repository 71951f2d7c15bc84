/* Whether a site's data are still those that it was grouped by, and how this is kept and read. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/stored.h"
#include "client/daemon/trainer/metrics.h"
#include "client/daemon/update/shift.h"
#include "tests/fixtures/run.h"

static const struct kedge_id job = {"j"}, other = {"k"};

static struct kedge_labels labels_of(uint64_t a, uint64_t b, uint64_t c)
{
    struct kedge_labels l = {.classes = c ? 3 : 2, .counts = {a, b, c}};
    return l;
}

static const struct {
    const char *what;
    enum kedge_shift_test test;
    uint64_t now[3];
    uint32_t round, pause;
    bool shifted;
} rows[] = {
    {"the same data", KEDGE_SHIFT_TEST_LABELS, {50, 50, 0}, 9, 1, false},
    {"more of the same", KEDGE_SHIFT_TEST_LABELS, {500, 500, 0}, 9, 1, false},
    {"a fifth of the shares, not more", KEDGE_SHIFT_TEST_LABELS, {70, 30, 0}, 9, 1, false},
    {"more than a fifth", KEDGE_SHIFT_TEST_LABELS, {71, 29, 0}, 9, 1, true},
    {"a class that was not there", KEDGE_SHIFT_TEST_LABELS, {35, 35, 30}, 9, 1, true},
    {"no test", KEDGE_SHIFT_TEST_NONE, {100, 0, 0}, 9, 1, false},
    {"the published test does not see which label", KEDGE_SHIFT_TEST_COUNTS, {50, 50, 0}, 9, 1, false},
    {"… but sizes", KEDGE_SHIFT_TEST_COUNTS, {500, 500, 0}, 9, 1, true},
    {"by updates: it is time", KEDGE_SHIFT_TEST_UPDATE, {50, 50, 0}, 13, 10, true},
    {"by updates: not yet", KEDGE_SHIFT_TEST_UPDATE, {50, 50, 0}, 12, 10, false},
    {"by updates: a round of the past", KEDGE_SHIFT_TEST_UPDATE, {50, 50, 0}, 1, 1, false},
};

START_TEST(test_shifted)
{
    struct kedge_groupeds g = {.count = 0};
    struct kedge_labels then = labels_of(50, 50, 0);
    struct kedge_labels now = labels_of(rows[_i].now[0], rows[_i].now[1], rows[_i].now[2]);
    ck_assert(!kedge_grouped_shifted(&g, &job, rows[_i].test, rows[_i].pause, rows[_i].round, &now));
    kedge_grouped_note(&g, &job, 3, &then);
    ck_assert_msg(kedge_grouped_shifted(&g, &job, rows[_i].test, rows[_i].pause, rows[_i].round, &now)
                      == rows[_i].shifted,
                  "%s", rows[_i].what);
    ck_assert(!kedge_grouped_shifted(&g, &other, rows[_i].test, rows[_i].pause, rows[_i].round, &now));
}
END_TEST

/* A trainer that tells no labels: nothing is compared. */
START_TEST(test_unknown)
{
    struct kedge_groupeds g = {.count = 0};
    struct kedge_labels none = {.classes = 0}, some = labels_of(1, 2, 3);
    kedge_grouped_note(&g, &job, 3, &none);
    ck_assert(!kedge_grouped_shifted(&g, &job, KEDGE_SHIFT_TEST_LABELS, 1, 9, &some));
    kedge_grouped_note(&g, &job, 4, &some);
    ck_assert_uint_eq(g.count, 1);
    ck_assert(!kedge_grouped_shifted(&g, &job, KEDGE_SHIFT_TEST_LABELS, 1, 9, &none));
}
END_TEST

/* By losses: 100 samples, a deviation of 1: a standard error of 0.1, of a difference 0.1414. */
static const struct {
    const char *what;
    double then, now, deviation;
    uint64_t samples;
    uint32_t round;
    bool shifted;
} losses[] = {
    {"three standard errors, not more", 0.5, 0.92, 1, 100, 4, false},
    {"more than three", 0.5, 0.93, 1, 100, 4, true},
    {"better than before", 0.5, 0.01, 1, 100, 4, false},
    {"fewer samples say less", 0.5, 0.93, 1, 50, 4, false},
    {"one sample says nothing", 0.5, 9, 0, 1, 4, false},
    {"a trainer that does not tell", 0.5, 9, -1, 100, 4, false},
    {"not yet: it has just pre-trained", 0.5, 9, 1, 100, 3, false},
};

START_TEST(test_losses)
{
    struct kedge_groupeds g = {.count = 0};
    struct kedge_labels labels = labels_of(50, 50, 0);
    ck_assert(!kedge_grouped_lost(&g, &job, 1, 9, 100, 9, 1)); /* a job that is not remembered */
    kedge_grouped_note(&g, &job, 3, &labels);
    ck_assert(!kedge_grouped_lost(&g, &job, 1, 3, 100, losses[_i].then, 1));
    ck_assert_msg(kedge_grouped_lost(&g, &job, 1, losses[_i].round, losses[_i].samples, losses[_i].now,
                                     losses[_i].deviation)
                      == losses[_i].shifted,
                  "%s", losses[_i].what);
    if (losses[_i].shifted) { /* until it has pre-trained, and then there is nothing to compare with */
        ck_assert(kedge_grouped_lost(&g, &job, 1, 5, 100, losses[_i].now, 1));
        kedge_grouped_note(&g, &job, 5, &labels);
        ck_assert(!kedge_grouped_lost(&g, &job, 1, 6, 100, losses[_i].now, 1));
    }
    ck_assert(!kedge_grouped_shifted(&g, &job, KEDGE_SHIFT_TEST_LOSS, 1, 9, &labels));
}
END_TEST

/* What cannot be compared is told once for a job, also after it has pre-trained again. */
START_TEST(test_blind)
{
    struct kedge_groupeds g = {.count = 0};
    struct kedge_labels labels = labels_of(50, 50, 0);
    ck_assert(!kedge_grouped_is_blind(&g, &job, 100, -1)); /* a job that is not remembered */
    kedge_grouped_note(&g, &job, 3, &labels);
    kedge_grouped_note(&g, &other, 3, &labels);
    ck_assert(!kedge_grouped_is_blind(&g, &job, 2, 0));
    ck_assert(kedge_grouped_is_blind(&g, &job, 100, -1));
    ck_assert(!kedge_grouped_is_blind(&g, &job, 100, -1));
    kedge_grouped_note(&g, &job, 5, &labels);
    ck_assert(!kedge_grouped_is_blind(&g, &job, 1, 1));
    ck_assert(kedge_grouped_is_blind(&g, &other, 1, 1));
}
END_TEST

/* The oldest makes room; the first number of samples stays. */
START_TEST(test_room)
{
    struct kedge_groupeds g = {.count = 0};
    struct kedge_labels few = labels_of(1, 1, 0), many = labels_of(10, 10, 0);
    for (int i = 0; i < KEDGE_GROUPED_MAX; i++) {
        struct kedge_id id = {{(char)('a' + i), '\0'}};
        kedge_grouped_note(&g, &id, (uint32_t)i, &few);
    }
    kedge_grouped_note(&g, &(struct kedge_id){"a"}, 7, &many); /* known: no room needed, now the newest */
    ck_assert_uint_eq(g.count, KEDGE_GROUPED_MAX);
    ck_assert_str_eq(g.items[KEDGE_GROUPED_MAX - 1].job.s, "a");
    ck_assert_uint_eq(g.items[KEDGE_GROUPED_MAX - 1].samples, 2);
    ck_assert_uint_eq(g.items[KEDGE_GROUPED_MAX - 1].round, 7);
    ck_assert_uint_eq(g.items[KEDGE_GROUPED_MAX - 1].labels.counts[0], 10);
    kedge_grouped_note(&g, &(struct kedge_id){"z"}, 8, &few);
    ck_assert_uint_eq(g.count, KEDGE_GROUPED_MAX);
    ck_assert_str_eq(g.items[0].job.s, "c"); /* "b" was the oldest */
    ck_assert_str_eq(g.items[KEDGE_GROUPED_MAX - 1].job.s, "z");
}
END_TEST

START_TEST(test_answer)
{
    static const struct {
        const char *labels;
        bool fine;
        uint32_t classes;
    } answers[] = {
        {"", true, 0},
        {",\"labels\":[]", true, 0},
        {",\"labels\":[3,0,9007199254740992]", true, 3},
        {",\"labels\":[-1]", false, 0},
        {",\"labels\":[1.5]", false, 0},
        {",\"labels\":[\"1\"]", false, 0},
        {",\"labels\":7", false, 0},
        {",\"labels\":[9007199254740993]", false, 0},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct kedge_metrics m = {.samples = 0};
        struct kedge_diag d;
        char line[256];
        snprintf(line, sizeof line, "{\"status\":\"ok\",\"samples\":3,\"steps\":1,\"seconds\":\"0.1\"%s}",
                 answers[i].labels);
        int err = kedge_metrics_parse(kedge_view_str(line), true, false, &m, &d);
        ck_assert_msg((err == KEDGE_OK) == answers[i].fine, "%s", line);
        ck_assert_uint_eq(m.labels.classes, answers[i].classes);
        ck_assert(err || answers[i].classes < 3 || m.labels.counts[0] == 3);
    }
}
END_TEST

static void put_back(const struct kedge_site_stored *s, struct kedge_site_stored *ret)
{
    struct kedge_buf text;
    struct kedge_diag d;
    kedge_buf_init(&text, KEDGE_STORED_TEXT_MAX);
    ck_assert_int_eq(kedge_stored_encode(s, &text), KEDGE_OK);
    ck_assert_msg(kedge_stored_decode(kedge_buf_view(&text), ret, &d) == KEDGE_OK, "%s", d.text);
    kedge_buf_deinit(&text);
}

START_TEST(test_memory)
{
    static struct kedge_site_stored s, back;
    s = (struct kedge_site_stored){.memory = {.enrolled = true, .shift_count = 2}};
    s.memory.shifts[0] = (struct kedge_site_shift){job, true};
    s.memory.shifts[1] = (struct kedge_site_shift){other, false};
    for (int i = 0; i < KEDGE_GROUPED_MAX; i++) { /* as much as there can be */
        struct kedge_labels all = {.classes = KEDGE_LABELS_MAX};
        struct kedge_id id = {{(char)('a' + i), '\0'}};
        for (int k = 0; k < KEDGE_LABELS_MAX; k++) {
            all.counts[k] = ((uint64_t)1 << 45) - (uint64_t)k;
        }
        kedge_grouped_note(&s.groupeds, &id, (uint32_t)i, &all);
    }
    ck_assert(!kedge_grouped_lost(&s.groupeds, &(struct kedge_id){"d"}, 1, 9, 4, 0.25, 1));
    put_back(&s, &back);
    ck_assert_uint_eq(back.memory.shift_count, 2);
    ck_assert_str_eq(back.memory.shifts[1].job.s, "k");
    ck_assert(back.memory.shifts[0].answered && !back.memory.shifts[1].answered);
    ck_assert_uint_eq(back.groupeds.count, KEDGE_GROUPED_MAX);
    ck_assert_mem_eq(&back.groupeds.items[2].labels, &s.groupeds.items[2].labels,
                     sizeof back.groupeds.items[2].labels);
    ck_assert_uint_eq(back.groupeds.items[3].samples, s.groupeds.items[3].samples);
    ck_assert(back.groupeds.items[3].has_loss && !back.groupeds.items[2].has_loss);
    ck_assert(back.groupeds.items[3].loss == 0.25 && back.groupeds.items[3].loss_square == 0.25);
}
END_TEST

static const char *const damaged[] = {
    "{\"enrolled\":true,\"results\":[],\"shifts\":7}",
    "{\"enrolled\":true,\"results\":[],\"shifts\":[{\"job\":\"j\"}]}",
    "{\"enrolled\":true,\"results\":[],\"shifts\":[{\"job\":\"J!\",\"answered\":true}]}",
    "{\"enrolled\":true,\"results\":[],\"grouped\":[{\"job\":\"j\",\"round\":1,\"samples\":1}]}",
    "{\"enrolled\":true,\"results\":[],\"grouped\":[{\"job\":\"j\",\"round\":-1,\"samples\":1,\"labels\":[1]}"
    "]}",
    "{\"enrolled\":true,\"results\":[],\"grouped\":[{\"job\":\"j\",\"round\":1,\"samples\":1,\"labels\":[-1]}"
    "]}",
    "{\"enrolled\":true,\"results\":[],\"grouped\":[{\"job\":\"j\",\"round\":1,\"samples\":1,\"labels\":[1],"
    "\"loss\":\"1\"}]}",
};

START_TEST(test_damaged)
{
    static struct kedge_site_stored back;
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(kedge_stored_decode(kedge_view_str(damaged[_i]), &back, &d) == KEDGE_E_FORMAT, "%s",
                  damaged[_i]);
    ck_assert(strstr(d.text, "\"shifts\"") || strstr(d.text, "\"grouped\""));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client-shift");
    TCase *t = tcase_create("shift");
    tcase_add_loop_test(t, test_shifted, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(t, test_unknown);
    tcase_add_loop_test(t, test_losses, 0, sizeof losses / sizeof losses[0]);
    tcase_add_test(t, test_room);
    tcase_add_test(t, test_blind);
    tcase_add_test(t, test_answer);
    tcase_add_test(t, test_memory);
    tcase_add_loop_test(t, test_damaged, 0, sizeof damaged / sizeof damaged[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
