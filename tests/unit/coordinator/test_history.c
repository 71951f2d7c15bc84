/* A job's rounds read from its statements: sums, times and sizes; pages that are bounded and meet; statements
 * that are not what they should be. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/store/kv/kv.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "coordinator/daemon/restore/history.h"
#include "tests/fixtures/kv.h"
#include "tests/unit/base/check.h"

static struct kedge_statement st;
static struct kedge_key_pair key;
static struct kedge_diag diag;
static struct kedge_kv *stores[2];
static struct kedge_ledger *main_ledger, *own;
static struct kedge_job_spec spec;
static struct kedge_history_log logs[1];
static struct kedge_history_source source;
enum { ROWS = 8 };
static struct kedge_round_history *rows;

static void open_logs(void)
{
    static const char text[] =
        "{\"name\":\"demo\",\"tenants\":[\"org-a\"],\"data\":\"none\",\"rounds\":9,\"batch\":1,"
        "\"learning_rate\":\"0.1\",\"model\":{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}}";
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_key_generate(&key);
    ck_assert_msg(kedge_job_spec_parse(kedge_view_str(text), &spec, &diag) == KEDGE_OK, "%s", diag.text);
    for (size_t i = 0; i < 2; i++) {
        struct kedge_ledger_options options = {
            .origin = i ? "history.test/org-a" : "history.test/main", .key = &key, .create = true};
        ck_assert_int_eq(kedge_kv_memory_new(&stores[i]), KEDGE_OK);
        ck_assert_int_eq(kedge_ledger_open(stores[i], &options, i ? &own : &main_ledger, &diag), KEDGE_OK);
    }
    logs[0] = (struct kedge_history_log){.tenant = {"org-a"}, .ledger = own};
    source =
        (struct kedge_history_source){.spec = &spec, .main = main_ledger, .tenants = logs, .tenant_count = 1};
    diag.text[0] = '\0';
}

static void close_logs(void)
{
    kedge_ledger_close(main_ledger);
    kedge_ledger_close(own);
    kedge_kv_close(stores[0]);
    kedge_kv_close(stores[1]);
}

KEDGE_PRINTF(3, 4) static void put(struct kedge_ledger *l, struct kedge_view entry, const char *format, ...)
{
    char idem[KEDGE_IDEM_KEY_MAX + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(idem, sizeof idem, format, args);
    va_end(args);
    struct kedge_ledger_append item = {.entry = entry, .idem_key = kedge_view_str(idem)};
    ck_assert_int_eq(kedge_ledger_append(l, &item, 1, NULL, NULL, &diag), KEDGE_OK);
}

/* Signs `st`. */
static void put_statement(struct kedge_ledger *l, const char *idem)
{
    struct kedge_buf envelope KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    int err = kedge_statement_sign(&st, &key, &envelope, &diag);
    ck_assert_msg(err == KEDGE_OK, "%s", diag.text);
    put(l, kedge_buf_view(&envelope), "%s", idem);
}

static void put_opened(uint32_t round, uint32_t selected, uint64_t time_ms)
{
    char idem[64];
    st = (struct kedge_statement){.kind = KEDGE_ST_ROUND_OPENED};
    st.u.round_opened = (struct kedge_st_round_opened){.job = spec.name,
                                                       .round = round,
                                                       .round_kind = KEDGE_TRAIN_TRAIN,
                                                       .tenant_count = 1,
                                                       .tenants = {{.candidates = 5, .selected = selected}},
                                                       .time_ms = time_ms};
    snprintf(idem, sizeof idem, "round-opened/demo/%08" PRIu32, round);
    put_statement(main_ledger, idem);
}

/* The tenant's checkpoint: only its key is looked at. */
static void put_checkpoint(const char *tenant, uint64_t size)
{
    put(main_ledger, kedge_view_str("a checkpoint"), "checkpoint/%s/%020" PRIu64, tenant, size);
}

static void put_closed(uint32_t round, uint32_t accepted, uint32_t refused, uint64_t time_ms)
{
    char idem[64];
    st = (struct kedge_statement){.kind = KEDGE_ST_AGGREGATE};
    struct kedge_st_aggregate *a = &st.u.aggregate;
    *a = (struct kedge_st_aggregate){.job = spec.name,
                                     .round = round,
                                     .rule = "fedavg/v1",
                                     .count = accepted,
                                     .tenant_count = 1,
                                     .tenants = {{.accepted = accepted, .refused = refused}}};
    snprintf(idem, sizeof idem, "aggregate/demo/%08" PRIu32 "/00", round);
    put_statement(main_ledger, idem);
    st = (struct kedge_statement){.kind = KEDGE_ST_STEP};
    st.u.step = (struct kedge_st_step){
        .job = spec.name, .round = round, .rule = "identity/v1", .group_count = 1, .time_ms = time_ms};
    snprintf(idem, sizeof idem, "step/demo/%08" PRIu32, round);
    put_statement(main_ledger, idem);
}

static void put_evaluation(uint32_t round, const char *site, uint64_t samples, uint64_t correct, double loss)
{
    char idem[64];
    st = (struct kedge_statement){.kind = KEDGE_ST_EVALUATION};
    st.u.evaluation = (struct kedge_st_evaluation){.tenant = {"org-a"},
                                                   .job = spec.name,
                                                   .round = round,
                                                   .samples = samples,
                                                   .correct = correct,
                                                   .loss = loss};
    snprintf(st.u.evaluation.site.s, sizeof st.u.evaluation.site.s, "%s", site);
    snprintf(idem, sizeof idem, "evaluation/demo/%08" PRIu32 "/%s", round, site);
    put_statement(own, idem);
}

static struct kedge_history_page page_of(uint32_t most)
{
    kedge_mem_free(rows);
    rows = kedge_history_rows_new(ROWS, 1);
    for (uint32_t i = 0; i < ROWS; i++) { /* what a row had is none of the next round's */
        memset(rows[i].metrics, 0xee, sizeof *rows[i].metrics);
        rows[i].round = rows[i].groups = rows[i].accepted = rows[i].refused = UINT32_MAX;
    }
    return (struct kedge_history_page){.rows = rows, .most = most};
}

START_TEST(test_a_round)
{
    open_logs();
    put_evaluation(1, "site-2", 10, 5, 0.1);
    put_evaluation(1, "site-1", 30, 21, 0.7);
    put_opened(1, 4, 1000);
    put_checkpoint("org-a", 2);
    put_checkpoint("org-b", 700);
    put_closed(1, 3, 1, 3500);
    put_checkpoint("org-a", 9);
    struct kedge_history_page page = page_of(8);
    ck_assert_msg(kedge_history_read(&source, 0, 1, &page, &diag) == KEDGE_OK, "%s", diag.text);
    ck_assert(page.count == 1 && page.next == KEDGE_HISTORY_END);
    ck_assert(rows[0].round == 1 && rows[0].groups == 1 && rows[0].selected == 4);
    ck_assert(rows[0].accepted == 3 && rows[0].refused == 1 && rows[0].metrics[0].members == 3);
    ck_assert(rows[0].opened_ms == 1000 && rows[0].closed_ms == 3500);
    ck_assert_uint_eq(rows[0].main_size, 5);
    ck_assert_uint_eq(rows[0].statements, 5 + 2); /* neither another tenant's nor a later checkpoint */
    ck_assert(rows[0].metrics[0].samples == 40 && rows[0].metrics[0].correct == 26);
    ck_assert_double_eq_tol(kedge_history_loss(&rows[0].metrics[0]), 0.55, 1e-7);
    page = page_of(8);
    page.without_evaluations = true;
    ck_assert_int_eq(kedge_history_read(&source, 0, 1, &page, &diag), KEDGE_OK);
    ck_assert(page.count == 1 && rows[0].accepted == 3 && rows[0].metrics[0].samples == 0);
    close_logs();
}
END_TEST

/* Whatever order they come in, and however large they are, the sum of losses is the same. */
START_TEST(test_order_of_losses)
{
    static const double losses[] = {0.1, 1e6, 0.3, 1e300, -1e300, 7e-9, 2.0 / 3};
    const size_t count = sizeof losses / sizeof losses[0];
    struct kedge_group_metric sums[2] = {{.samples = 0}};
    struct kedge_round_history forth = {.room = 1, .metrics = &sums[0]},
                               back = {.room = 1, .metrics = &sums[1]};
    for (size_t i = 0; i < count; i++) {
        struct kedge_st_evaluation e = {.samples = i ? 3 + i : KEDGE_ST_COUNT_MAX, .loss = losses[i]};
        kedge_history_add_evaluation(&forth, &e);
        size_t k = count - 1 - i;
        e = (struct kedge_st_evaluation){.samples = k ? 3 + k : KEDGE_ST_COUNT_MAX, .loss = losses[k]};
        kedge_history_add_evaluation(&back, &e);
    }
    ck_assert(forth.metrics[0].loss_sum == back.metrics[0].loss_sum);
    ck_assert_double_gt(kedge_history_loss(&forth.metrics[0]), 0.09);
}
END_TEST

START_TEST(test_pages_meet)
{
    open_logs();
    for (uint32_t r = 1; r <= 9; r++) { /* round 5 is not closed, as if it had never been */
        put_opened(r, r, 1000 * r);
        if (r % 2 == 0) {
            put_checkpoint("org-a", 10 * r);
        }
        if (r != 5) {
            put_closed(r, r, 0, 1000 * r + 1);
        }
    }
    struct kedge_history_page all = page_of(8);
    struct kedge_round_history whole[ROWS];
    ck_assert_int_eq(kedge_history_read(&source, 0, 9, &all, &diag), KEDGE_OK);
    ck_assert(all.count == 8 && all.next == KEDGE_HISTORY_END);
    memcpy(whole, rows, sizeof whole); /* but for their metrics */
    ck_assert(whole[0].statements == whole[0].main_size && whole[1].statements == whole[1].main_size + 20);
    ck_assert(whole[4].round == 6 && whole[4].statements == whole[4].main_size + 60);
    for (uint32_t most = 1; most <= 8; most++) {
        uint32_t from = 0, got = 0;
        while (from != KEDGE_HISTORY_END) {
            struct kedge_history_page page = page_of(most);
            ck_assert_int_eq(kedge_history_read(&source, from, 9, &page, &diag), KEDGE_OK);
            ck_assert(page.count <= most && page.next > from);
            for (uint32_t i = 0; i < page.count; i++, got++) {
                ck_assert(rows[i].round == whole[got].round && rows[i].main_size == whole[got].main_size);
                ck_assert_uint_eq(rows[i].statements, whole[got].statements);
                ck_assert_uint_eq(rows[i].selected, whole[got].selected);
            }
            from = page.next;
        }
        ck_assert_uint_eq(got, 8);
    }
    struct kedge_history_page page = page_of(8);
    ck_assert_int_eq(kedge_history_read(&source, UINT32_MAX, 9, &page, &diag), KEDGE_OK);
    ck_assert(page.count == 0 && page.next == KEDGE_HISTORY_END);
    close_logs();
}
END_TEST

START_TEST(test_what_is_wrong)
{
    struct kedge_history_page page = page_of(8);
    open_logs();
    put_closed(1, 1, 0, 5);
    ck_assert_int_eq(kedge_history_read(&source, 0, 3, &page, &diag), KEDGE_E_CORRUPT);
    ck_assert_msg(strstr(diag.text, "no round-opened") != NULL, "%s", diag.text);
    close_logs();
    open_logs();
    put(main_ledger, kedge_view_str("{}"), "step/demo/00000002");
    ck_assert_int_eq(kedge_history_read(&source, 0, 3, &page, &diag), KEDGE_E_CORRUPT);
    ck_assert_msg(strstr(diag.text, "entry 0") != NULL, "%s", diag.text);
    close_logs();
    open_logs();
    put_opened(1, 1, 5);
    put_closed(1, 1, 0, 6);
    put(main_ledger, kedge_view_str("a checkpoint"), "checkpoint/org-a/9");
    page = page_of(8);
    ck_assert_int_eq(kedge_history_read(&source, 0, 3, &page, &diag), KEDGE_E_CORRUPT);
    close_logs();
}
END_TEST

/* What a statement says of a group that the job cannot have is not counted: there is no room for it. */
START_TEST(test_groups_beyond_the_job)
{
    open_logs(); /* the spec */
    close_logs();
    struct kedge_round_history *two = kedge_history_rows_new(2, 3);
    kedge_history_begin(&two[0], &spec, 4);
    ck_assert(two[0].groups == 1 && two[0].room == 3 && two[1].metrics == two[0].metrics + 3);
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedge_st_aggregate a = {.group = g, .count = 2 + g};
        const struct kedge_st_evaluation e = {.group = g, .samples = 10, .correct = g};
        kedge_history_add_aggregate(&two[0], &a);
        kedge_history_add_evaluation(&two[0], &e);
    }
    ck_assert(two[0].groups == 3 && two[0].metrics[2].members == 4 && two[0].metrics[2].correct == 2);
    ck_assert(two[1].metrics[0].members == 0 && two[1].metrics[2].samples == 0);
    kedge_history_copy(&two[1], &two[0]);
    ck_assert(two[1].round == 4 && two[1].groups == 3 && two[1].metrics == two[0].metrics + 3);
    ck_assert_mem_eq(two[1].metrics, two[0].metrics, 3 * sizeof *two[0].metrics);
    kedge_history_begin(&two[0], &spec, 5);
    ck_assert(two[0].groups == 1 && two[0].metrics[2].members == 0);
    kedge_mem_free(two);
}
END_TEST

static void put_update(struct kedge_blobs *blobs, const char *site, const char *file, double joules,
                       enum kedge_energy_quality quality, double seconds)
{
    char idem[64];
    const struct kedge_view bytes = kedge_view_str(file);
    st = (struct kedge_statement){.kind = KEDGE_ST_UPDATE};
    struct kedge_st_update *u = &st.u.update;
    *u = (struct kedge_st_update){.tenant = {"org-a"},
                                  .job = spec.name,
                                  .round = 1,
                                  .update_kind = KEDGE_TRAIN_TRAIN,
                                  .samples = 1,
                                  .data_samples = joules > 50 ? 4 : 0,
                                  .batch = 1,
                                  .learning_rate = 0.1,
                                  .energy_joules = joules,
                                  .energy_quality = quality,
                                  .seconds = seconds,
                                  .engine = "test"};
    snprintf(u->site.s, sizeof u->site.s, "%s", site);
    if (blobs) {
        ck_assert_int_eq(kedge_blobs_put(blobs, &bytes, 1, &st.subject, &diag), KEDGE_OK);
    } else {
        kedge_sha256(bytes, &st.subject); /* erased since */
    }
    snprintf(idem, sizeof idem, "update/demo/%08" PRIu32 "/train/%s", 1, site);
    put_statement(own, idem);
}

/* Joules of two qualities stay apart, what nobody said is no 0, and an erased file has no size. */
START_TEST(test_costs)
{
    char folder[] = "/tmp/kedge-history-XXXXXX";
    struct kedge_blobs *blobs;
    open_logs();
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(kedge_blobs_open(folder, NULL, &blobs, &diag), KEDGE_OK);
    logs[0].blobs = blobs;
    put_update(blobs, "s1", "12345", 2.5, KEDGE_ENERGY_MEASURED, 1.5);
    put_update(blobs, "s2", "1234567", 4, KEDGE_ENERGY_MEASURED, 2);
    put_update(blobs, "s3", "123", 100, KEDGE_ENERGY_MODELLED, 0);
    put_update(blobs, "s4", "1", NAN, KEDGE_ENERGY_UNKNOWN, 4);
    put_update(NULL, "s5", "gone", 8, KEDGE_ENERGY_MEASURED, 1);
    put_opened(1, 5, 1000);
    put_closed(1, 5, 0, 2000);
    struct kedge_history_page page = page_of(ROWS);
    ck_assert_int_eq(kedge_history_read(&source, 0, 9, &page, &diag), KEDGE_OK);
    ck_assert(page.count == 1 && rows[0].costs.updates == 0); /* not asked for */
    page = page_of(ROWS);
    page.with_costs = page.without_evaluations = true;
    ck_assert_msg(kedge_history_read(&source, 0, 9, &page, &diag) == KEDGE_OK, "%s", diag.text);
    const struct kedge_round_costs *c = &rows[0].costs;
    ck_assert(c->updates == 5 && c->measured == 3 && c->modelled == 1 && c->untold == 1);
    ck_assert(c->joules_measured == 14.5 && c->joules_modelled == 100 && c->site_seconds == 8.5);
    ck_assert(c->bytes == 16 && c->erased == 1);
    ck_assert(c->trained == 1 && c->data == 4); /* of the one update with a planned part */
    kedge_blobs_close(blobs);
    ck_assert_int_eq(kedge_dir_remove(folder), KEDGE_OK);
    close_logs();
}
END_TEST

/* However many groups a job has, a page fits into an answer. */
START_TEST(test_page_size)
{
    for (uint32_t groups = 1; groups <= KEDGE_GROUPS_MAX; groups++) {
        uint32_t most = kedge_history_page_rounds(groups);
        ck_assert(most >= 32 && most <= KEDGE_HISTORY_PAGE_MAX);
        ck_assert(groups == 1 ? most == KEDGE_HISTORY_PAGE_MAX : most * groups * 256 < KEDGE_ADMIN_JSON_MAX);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_a_round,       test_order_of_losses,       test_pages_meet,
                                  test_what_is_wrong, test_groups_beyond_the_job, test_page_size,
                                  test_costs};
    return run_suite("coordinator-history", tests, sizeof tests / sizeof tests[0]);
}
