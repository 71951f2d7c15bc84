/* Walks over a log at a restart: every statement of a kind in order, the last key, and entries that are not
 * what their key says. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/store/kv/kv.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/restore/restore_walk.h"
#include "tests/fixtures/kv.h"
#include "tests/unit/base/check.h"

#define ORIGIN "walk.test/org-a"

static struct kedge_statement st;
static struct kedge_key_pair key;
static struct kedge_kv *kv;
static struct kedge_ledger *ledger;
static struct kedge_diag diag;
static uint64_t seen[8];
static size_t seen_count;

static void open_ledger(void)
{
    struct kedge_ledger_options options = {.origin = ORIGIN, .key = &key, .create = true};
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_key_generate(&key);
    ck_assert_int_eq(kedge_kv_memory_new(&kv), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_open(kv, &options, &ledger, &diag), KEDGE_OK);
    seen_count = 0;
}

static void close_ledger(void)
{
    kedge_ledger_close(ledger);
    kedge_kv_close(kv);
}

static void put_bytes(struct kedge_view entry, const char *idem_key)
{
    struct kedge_ledger_append item = {.entry = entry, .idem_key = kedge_view_str(idem_key)};
    ck_assert_int_eq(kedge_ledger_append(ledger, &item, 1, NULL, NULL, &diag), KEDGE_OK);
}

/* job-joined of this job, under any key. */
static void put_joined(const char *job, const char *idem_key)
{
    struct kedge_buf envelope;
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    st = (struct kedge_statement){.kind = KEDGE_ST_JOB_JOINED};
    st.at = (struct kedge_st_position){key.public, 1000, 0, {{0}}};
    st.u.job_joined.tenant = (struct kedge_id){"org-a"};
    ck_assert_int_eq(kedge_id_from(kedge_view_str(job), &st.u.job_joined.job), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_sign(&st, &key, &envelope, &diag), KEDGE_OK);
    put_bytes(kedge_buf_view(&envelope), idem_key);
    kedge_buf_deinit(&envelope);
}

static int see(struct kedge_walk *w, uint64_t index)
{
    ck_assert_int_eq(w->st->kind, KEDGE_ST_JOB_JOINED);
    seen[seen_count++] = index;
    return KEDGE_OK;
}

static struct kedge_walk walk_of(void)
{
    diag.text[0] = '\0';
    return (struct kedge_walk){.d = &diag, .st = &st};
}

START_TEST(test_all_and_last)
{
    open_ledger();
    put_joined("b", "job-joined/b/00000002/x");
    put_joined("a", "job-joined/a/00000010/x");
    put_joined("a", "job-joined/a/00000009/x");
    put_joined("a", "job-joined/ab/00000009/x"); /* whose name begins like another's */
    struct kedge_walk w = walk_of();
    ck_assert_int_eq(kedge_walk_all(&w, ledger, KEDGE_ST_JOB_JOINED, "", KEDGE_WALK_ALL, see), KEDGE_OK);
    ck_assert_uint_eq(seen_count, 4);
    seen_count = 0;
    ck_assert_int_eq(kedge_walk_all(&w, ledger, KEDGE_ST_JOB_JOINED, "a", KEDGE_WALK_ALL, see), KEDGE_OK);
    ck_assert(seen_count == 2 && seen[0] == 2 && seen[1] == 1);
    seen_count = 0;
    ck_assert_int_eq(kedge_walk_all(&w, ledger, KEDGE_ST_JOB_JOINED, "a", 10, see), KEDGE_OK);
    ck_assert(seen_count == 1 && seen[0] == 1);
    ck_assert_int_eq(kedge_walk_last(&w, ledger, "job-joined", "a"), KEDGE_OK);
    ck_assert(w.found && w.last_index == 1);
    ck_assert_str_eq(w.last_key, "job-joined/a/00000010/x");
    ck_assert_int_eq(kedge_walk_last(&w, ledger, "job-joined", "c"), KEDGE_OK);
    ck_assert(!w.found);
    close_ledger();
}
END_TEST

static const struct {
    const char *entry; /* NULL: a job-joined */
    const char *said;
} wrong[] = {
    {NULL, "log " ORIGIN ", entry 1: job-joined stands where aggregate belongs"},
    {"{}", "log " ORIGIN ", entry 1: "},
    {"\xff\xfe", "log " ORIGIN ", entry 1: "},
};

START_TEST(test_wrong_entries)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        open_ledger();
        put_joined("a", "job-joined/a");
        if (wrong[i].entry) {
            put_bytes(kedge_view_str(wrong[i].entry), "aggregate/a/00000001/00");
        } else {
            put_joined("b", "aggregate/a/00000001/00");
        }
        struct kedge_walk w = walk_of();
        ck_assert_int_eq(kedge_walk_all(&w, ledger, KEDGE_ST_AGGREGATE, "a", 1, see), KEDGE_E_CORRUPT);
        ck_assert_msg(strstr(diag.text, wrong[i].said) != NULL, "%s", diag.text);
        ck_assert_uint_eq(seen_count, 0);
        close_ledger();
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_all_and_last, test_wrong_entries};
    return run_suite("coordinator-restore-walk", tests, sizeof tests / sizeof tests[0]);
}
