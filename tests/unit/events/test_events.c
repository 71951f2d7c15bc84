/* Lines of events, the ring that keeps them, and the frames in which they go to the companion. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/events/event.h"
#include "coordinator/events/frame.h"
#include "coordinator/events/ring.h"

/* ---- lines ---- */

/* Every member has a value, the longest that it can have. */
static struct kedge_event full(enum kedge_event_kind kind)
{
    struct kedge_event e = {.kind = kind,
                            .time_ms = UINT64_C(1) << 53,
                            .main_size = UINT64_C(1) << 53,
                            .entry = (UINT64_C(1) << 53) - 1,
                            .round = UINT32_MAX,
                            .draw = 99,
                            .group = UINT32_MAX,
                            .groups = UINT32_MAX,
                            .accepted = UINT32_MAX,
                            .refused = UINT32_MAX,
                            .selected = UINT32_MAX,
                            .round_ms = UINT64_C(1) << 53,
                            .size = UINT64_C(1) << 53,
                            .from = "enrolling",
                            .to = "completed",
                            .cause = "insufficient-resources",
                            .reason = "ROUND_CLOSED",
                            .move = UINT32_MAX};
    memset(e.job.s, 'j', KEDGE_ID_MAX);
    memset(e.tenant.s, 't', KEDGE_ID_MAX);
    memset(e.site.s, 's', KEDGE_ID_MAX);
    memset(e.hash.b, 0xab, sizeof e.hash.b);
    return e;
}

static json_t *line_of(const struct kedge_event *e, uint64_t seq)
{
    struct kedge_buf line;
    kedge_buf_init(&line, KEDGE_EVENT_LINE_MAX);
    kedge_event_head(seq, &line);
    kedge_event_rest(e, &line);
    ck_assert_int_eq(line.err, KEDGE_OK);
    ck_assert_ptr_null(memchr(line.ptr, '\n', line.len));
    json_t *o = json_loadb((const char *)line.ptr, line.len, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(o);
    kedge_buf_deinit(&line);
    return o;
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

START_TEST(test_every_kind_is_a_line_that_fits)
{
    for (int kind = 0; kind < KEDGE_EVENT_KINDS; kind++) {
        struct kedge_event e = full((enum kedge_event_kind)kind);
        struct kedge_buf topic, rest;
        kedge_buf_init(&topic, KEDGE_EVENT_TOPIC_MAX);
        kedge_buf_init(&rest, KEDGE_EVENT_REST_MAX);
        kedge_event_topic(&e, &topic);
        kedge_event_rest(&e, &rest);
        ck_assert_int_eq(topic.err, KEDGE_OK);
        ck_assert_int_eq(rest.err, KEDGE_OK);
        json_t *o = line_of(&e, KEDGE_EVENT_RUNS_MAX * KEDGE_EVENT_RUN + KEDGE_EVENT_RUN - 1);
        ck_assert_str_eq(text(o, "event"), kedge_event_name(e.kind));
        ck_assert_int_eq(json_integer_value(json_object_get(o, "v")), 1);
        ck_assert(json_integer_value(json_object_get(o, "seq")) <= INT64_C(1) << 53);
        ck_assert_uint_eq(strlen(text(o, "topic")), topic.len);
        ck_assert(memcmp(text(o, "topic"), topic.ptr, topic.len) == 0);
        ck_assert(json_object_size(o) >= 7);
        json_decref(o);
        kedge_buf_deinit(&topic);
        kedge_buf_deinit(&rest);
    }
}
END_TEST

START_TEST(test_a_close_and_a_move)
{
    struct kedge_event closed = {.kind = KEDGE_EVENT_ROUND_CLOSED,
                                 .entry = 12,
                                 .job = {"first"},
                                 .round = 3,
                                 .groups = 2,
                                 .accepted = 8,
                                 .refused = 1,
                                 .round_ms = 1203};
    json_t *o = line_of(&closed, 20000000007);
    json_t *want =
        json_loads("{\"v\":1,\"seq\":20000000007,\"time_ms\":0,\"topic\":\"job/first/round-closed\","
                   "\"event\":\"round-closed\",\"job\":\"first\",\"round\":3,\"groups\":2,\"accepted\":8,"
                   "\"refused\":1,\"seconds\":1.203,\"entry\":12}",
                   0, NULL);
    ck_assert(json_equal(o, want));
    json_decref(o);
    json_decref(want);
    struct kedge_event moved = {.kind = KEDGE_EVENT_JOB,
                                .entry = KEDGE_EVENT_NO_ENTRY,
                                .job = {"first"},
                                .from = "training",
                                .to = "halted",
                                .cause = "storage",
                                .reason = "DISK_FULL"};
    o = line_of(&moved, 0); /* from the record: no number */
    ck_assert_ptr_null(json_object_get(o, "seq"));
    ck_assert_ptr_null(json_object_get(o, "entry"));
    ck_assert_str_eq(text(o, "from"), "training");
    ck_assert_str_eq(text(o, "cause"), "storage");
    ck_assert_str_eq(text(o, "reason"), "DISK_FULL");
    json_decref(o);
    moved.reason = NULL;
    o = line_of(&moved, 1);
    ck_assert_ptr_null(json_object_get(o, "reason"));
    json_decref(o);
}
END_TEST

/* What is no word cannot get into a line. */
START_TEST(test_only_words_are_written)
{
    static const char *const bad[] = {"a\"b", "a\\b", "a b", "a\nb", "\x01", "\xc3\xa4", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kedge_event e = {
            .kind = KEDGE_EVENT_JOB, .job = {"j"}, .from = bad[i], .to = bad[i], .cause = bad[i]};
        json_t *o = line_of(&e, 1);
        ck_assert_ptr_null(json_object_get(o, "from"));
        ck_assert_ptr_null(json_object_get(o, "to"));
        ck_assert_ptr_null(json_object_get(o, "cause"));
        json_decref(o);
    }
}
END_TEST

START_TEST(test_topics)
{
    static const struct {
        struct kedge_event e;
        const char *topic;
    } rows[] = {
        {{.kind = KEDGE_EVENT_REFUSED, .job = {"j"}, .tenant = {"t"}, .site = {"s"}}, "job/j/refused"},
        {{.kind = KEDGE_EVENT_SITE, .tenant = {"t"}, .site = {"s"}}, "tenant/t/site"},
        {{.kind = KEDGE_EVENT_HEAD, .tenant = {"t"}}, "tenant/t/head"},
        {{.kind = KEDGE_EVENT_HEAD}, "main/head"},
        {{.kind = KEDGE_EVENT_FINAL}, "main/final"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_buf topic;
        kedge_buf_init(&topic, KEDGE_EVENT_TOPIC_MAX);
        kedge_event_topic(&rows[i].e, &topic);
        ck_assert(kedge_view_eq(kedge_buf_view(&topic), kedge_view_str(rows[i].topic)));
        kedge_buf_deinit(&topic);
    }
}
END_TEST

/* ---- the ring ---- */

static void push(struct kedge_event_ring *ring, uint64_t seq, const uint32_t *tenants, uint32_t count)
{
    char rest[32];
    snprintf(rest, sizeof rest, "rest %03llu", (unsigned long long)seq);
    const struct kedge_event_row row = {.seq = seq,
                                        .tenants = tenants,
                                        .tenant_count = count,
                                        .topic = kedge_view_str("topic"),
                                        .rest = kedge_view_str(rest)};
    kedge_event_ring_push(ring, &row);
}

START_TEST(test_the_ring_keeps_the_last)
{
    struct kedge_event_ring *ring;
    struct kedge_event_row row;
    const uint32_t tenants[] = {7, 3};
    ck_assert_int_eq(kedge_event_ring_new(4, 1000, &ring), KEDGE_OK);
    ck_assert_uint_eq(kedge_event_ring_first(ring), 0);
    ck_assert(!kedge_event_ring_get(ring, 0, &row));
    for (uint64_t seq = 10; seq < 20; seq++) {
        push(ring, seq, tenants, 2);
        ck_assert_uint_eq(kedge_event_ring_first(ring), seq < 14 ? 10 : seq - 3);
    }
    ck_assert_uint_eq(kedge_event_ring_count(ring), 4);
    ck_assert(!kedge_event_ring_get(ring, 15, &row) && !kedge_event_ring_get(ring, 20, &row));
    for (uint64_t seq = 16; seq < 20; seq++) {
        char rest[32];
        snprintf(rest, sizeof rest, "rest %03llu", (unsigned long long)seq);
        ck_assert(kedge_event_ring_get(ring, seq, &row));
        ck_assert(kedge_view_eq(row.rest, kedge_view_str(rest))
                  && kedge_view_eq(row.topic, kedge_view_str("topic")));
        ck_assert(kedge_event_row_is_for(&row, 3) && kedge_event_row_is_for(&row, 7));
        ck_assert(!kedge_event_row_is_for(&row, 0));
    }
    push(ring, 30, NULL, 0); /* numbers between were never kept: what is kept has no gap */
    ck_assert_uint_eq(kedge_event_ring_count(ring), 1);
    ck_assert_uint_eq(kedge_event_ring_first(ring), 30);
    ck_assert(kedge_event_ring_get(ring, 30, &row) && !kedge_event_row_is_for(&row, 0));
    kedge_event_ring_free(ring);
}
END_TEST

START_TEST(test_the_ring_has_so_many_bytes)
{
    static char big[600];
    struct kedge_event_ring *ring;
    struct kedge_event_row row = {.topic = kedge_view_str("t"), .rest = kedge_view_of(big, sizeof big)};
    ck_assert_int_eq(kedge_event_ring_new(100, 2000, &ring), KEDGE_OK);
    for (row.seq = 1; row.seq <= 50; row.seq++) {
        kedge_event_ring_push(ring, &row);
        ck_assert(kedge_event_ring_count(ring) <= 3);
    }
    ck_assert_uint_eq(kedge_event_ring_first(ring), 48);
    static char huge[3000];
    row.rest = kedge_view_of(huge, sizeof huge); /* more than all: nothing can be kept without a gap */
    kedge_event_ring_push(ring, &row);
    ck_assert_uint_eq(kedge_event_ring_count(ring), 0);
    kedge_event_ring_free(ring);
}
END_TEST

/* ---- frames ---- */

START_TEST(test_frames_come_out_as_they_went_in)
{
    struct kedge_buf bytes;
    struct kedge_event_frame f,
        frames[] = {
            {KEDGE_EVENT_FRAME_OPEN, {NULL, 0}, {NULL, 0}},
            {KEDGE_EVENT_FRAME_SAY, kedge_view_str("org-a"), kedge_view_str("job/j/head {}")},
            {KEDGE_EVENT_FRAME_BEAT, {NULL, 0}, {NULL, 0}},
        };
    kedge_buf_init(&bytes, 10000);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(kedge_event_frame_encode(&frames[i], &bytes), KEDGE_OK);
    }
    for (size_t cut = 0; cut <= bytes.len; cut++) { /* however it arrives */
        struct kedge_view rest = kedge_view_of(bytes.ptr, cut);
        size_t got = 0;
        int err;
        while ((err = kedge_event_frame_take(&rest, &f)) == KEDGE_OK) {
            ck_assert_int_eq(f.type, frames[got].type);
            ck_assert(kedge_view_eq(f.name, frames[got].name)
                      && kedge_view_eq(f.payload, frames[got].payload));
            got++;
        }
        ck_assert_int_eq(err, KEDGE_E_NOT_FOUND);
        ck_assert((got == 3) == (cut == bytes.len));
    }
    kedge_buf_deinit(&bytes);
}
END_TEST

START_TEST(test_frames_that_are_none)
{
    static const uint8_t bad[][5] = {
        {0, 3, 1, 0},                     /* shorter than its head */
        {0, 4, 1, 1},                     /* its name is not in it */
        {0, 4, 0, 0},                     /* no such type */
        {0, 4, 4, 0},    {0x10, 1, 1, 0}, /* longer than a frame */
        {0, 200, 1, 64},                  /* a name that is too long */
    };
    struct kedge_event_frame f;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kedge_view v = kedge_view_of(bad[i], 4);
        ck_assert_int_eq(kedge_event_frame_take(&v, &f), KEDGE_E_FORMAT);
    }
    static char much[KEDGE_EVENT_FRAME_MAX];
    struct kedge_buf out;
    kedge_buf_init(&out, 10000);
    f = (struct kedge_event_frame){.type = KEDGE_EVENT_FRAME_SAY,
                                   .payload = kedge_view_of(much, sizeof much)};
    ck_assert_int_eq(kedge_event_frame_encode(&f, &out), KEDGE_E_TOO_LONG);
    ck_assert_uint_eq(out.len, 0);
    kedge_buf_deinit(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("events");
    TCase *t = tcase_create("events");
    tcase_add_test(t, test_every_kind_is_a_line_that_fits);
    tcase_add_test(t, test_a_close_and_a_move);
    tcase_add_test(t, test_only_words_are_written);
    tcase_add_test(t, test_topics);
    tcase_add_test(t, test_the_ring_keeps_the_last);
    tcase_add_test(t, test_the_ring_has_so_many_bytes);
    tcase_add_test(t, test_frames_come_out_as_they_went_in);
    tcase_add_test(t, test_frames_that_are_none);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
