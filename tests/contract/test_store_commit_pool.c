/* Many ledgers over few threads: each keeps its order, none waits for more than one transaction of each of
 * the others, one that hangs keeps one thread, and ledgers come and go while others work. */
#include "ledger_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "chain/store/committer.h"
#include "common/base/os/clock.h"

enum { LEDGERS = 40, THREADS = 3, PER_LEDGER = 100, COMERS = 12 };

struct log {
    struct fixture f;
    struct kedge_committer *c;
    atomic_uint answers, errors, out_of_order;
    uint64_t expected; /* index of the next answer; on the threads of the pool, one at a time */
};

static void begin(struct log *log, struct kedge_commit_pool *pool)
{
    const struct kedge_committer_options options = {.pool = pool};
    fixture_init(&log->f);
    log->f.kv = new_kv(&log->f, 0);
    fixture_must_open(&log->f, true);
    ck_assert_int_eq(kedge_committer_start(log->f.l, &options, &log->c, NULL), KEDGE_OK);
}

static void end(struct log *log, uint64_t entries)
{
    kedge_committer_stop(log->c);
    ck_assert_uint_eq(kedge_ledger_size(log->f.l), entries);
    check_is_clean(log->f.l);
    fixture_deinit(&log->f);
}

static struct kedge_commit_pool *pool_of(unsigned threads)
{
    struct kedge_commit_pool *pool;
    ck_assert_int_eq(kedge_commit_pool_new(threads, &pool, NULL), KEDGE_OK);
    return pool;
}

static void on_done(void *arg, const struct kedge_commit_result *r)
{
    struct log *log = arg;
    log->errors += r->err != KEDGE_OK;
    log->out_of_order += !r->err && r->items[0].index != log->expected;
    log->expected++;
    log->answers++;
}

static void submit(struct log *log, unsigned number, kedge_commit_done *done, void *arg)
{
    char entry[32], key[32];
    int n = snprintf(key, sizeof key, "k/%u", number);
    struct kedge_ledger_append a = {.entry = entry_text(number, entry),
                                    .idem_key = kedge_view_of(key, (size_t)n)};
    ck_assert_int_eq(kedge_committer_submit(log->c, &a, 1, done, arg), KEDGE_OK);
}

START_TEST(many_ledgers_keep_their_order)
{
    static struct log logs[LEDGERS];
    struct kedge_commit_pool *pool = pool_of(THREADS);
    ck_assert_uint_eq(kedge_commit_pool_threads(pool), 1); /* others when they are needed */
    for (unsigned i = 0; i < LEDGERS; i++) {
        begin(&logs[i], pool);
    }
    for (unsigned k = 0; k < PER_LEDGER; k++) {
        for (unsigned i = 0; i < LEDGERS; i++) {
            submit(&logs[i], k, on_done, &logs[i]);
        }
    }
    ck_assert_uint_le(kedge_commit_pool_threads(pool), THREADS);
    for (unsigned i = 0; i < LEDGERS; i++) {
        end(&logs[i], PER_LEDGER); /* answers what waits */
        ck_assert_uint_eq(logs[i].answers, PER_LEDGER);
        ck_assert_uint_eq(logs[i].errors, 0);
        ck_assert_uint_eq(logs[i].out_of_order, 0);
    }
    kedge_commit_pool_free(pool);
}
END_TEST

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint held;

static void hold(void *arg, const struct kedge_commit_result *r)
{
    (void)arg;
    (void)r;
    held++;
    pthread_mutex_lock(&gate); /* a disk that does not answer */
    pthread_mutex_unlock(&gate);
}

static void wait_until(const atomic_uint *what, unsigned is)
{
    for (int i = 0; i < 10000 && *what != is; i++) {
        kedge_os_sleep_ms(1);
    }
    ck_assert_uint_eq(*what, is);
}

START_TEST(one_that_hangs_keeps_one_thread)
{
    static struct log slow, quick[3];
    struct kedge_commit_pool *pool = pool_of(2);
    begin(&slow, pool);
    held = 0;
    pthread_mutex_lock(&gate);
    submit(&slow, 0, hold, NULL);
    wait_until(&held, 1);
    submit(&slow, 1, on_done, &slow);
    slow.expected = 1;
    for (unsigned i = 0; i < 3; i++) {
        begin(&quick[i], pool);
        submit(&quick[i], 0, on_done, &quick[i]);
        wait_until(&quick[i].answers, 1);
    }
    kedge_os_sleep_ms(120); /* the quick ones have stored their checkpoints, too */
    submit(&quick[0], 1, on_done, &quick[0]);
    wait_until(&quick[0].answers, 2);
    ck_assert_uint_eq(slow.answers, 0); /* its own order holds */
    ck_assert_uint_eq(kedge_commit_pool_threads(pool), 2);
    pthread_mutex_unlock(&gate);
    end(&slow, 2);
    ck_assert_uint_eq(slow.out_of_order, 0);
    for (unsigned i = 0; i < 3; i++) {
        end(&quick[i], i == 0 ? 2 : 1);
    }
    kedge_commit_pool_free(pool);
}
END_TEST

static atomic_uint turns;

static void note_turn(void *arg, const struct kedge_commit_result *r)
{
    ck_assert_int_eq(r->err, KEDGE_OK);
    *(unsigned *)arg = ++turns;
}

/* Transactions of the greatest size, which cannot be grouped. */
static void submit_large(struct log *log, unsigned from, unsigned *ret_turn)
{
    static char texts[KEDGE_APPEND_MAX][32];
    struct kedge_ledger_append items[KEDGE_APPEND_MAX];
    for (unsigned i = 0; i < KEDGE_APPEND_MAX; i++) {
        items[i] = (struct kedge_ledger_append){.entry = entry_text(from + i, texts[i])};
    }
    ck_assert_int_eq(kedge_committer_submit(log->c, items, KEDGE_APPEND_MAX, note_turn, ret_turn), KEDGE_OK);
}

START_TEST(a_greedy_ledger_has_one_turn_in_each_round)
{
    static struct log greedy, modest[2];
    unsigned of_greedy[4] = {0}, of_modest[2] = {0};
    struct kedge_commit_pool *pool = pool_of(1);
    begin(&greedy, pool);
    begin(&modest[0], pool);
    begin(&modest[1], pool);
    held = 0;
    pthread_mutex_lock(&gate);
    submit(&greedy, 0, hold, NULL);
    wait_until(&held, 1);
    for (unsigned i = 0; i < 4; i++) {
        submit_large(&greedy, 1 + i * KEDGE_APPEND_MAX, &of_greedy[i]);
    }
    submit(&modest[0], 0, note_turn, &of_modest[0]);
    submit(&modest[1], 0, note_turn, &of_modest[1]);
    pthread_mutex_unlock(&gate);
    end(&greedy, 1 + 4 * KEDGE_APPEND_MAX);
    ck_assert_uint_eq(of_modest[0], 1);
    ck_assert_uint_eq(of_modest[1], 2);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(of_greedy[i], 3 + i);
    }
    end(&modest[0], 1);
    end(&modest[1], 1);
    kedge_commit_pool_free(pool);
}
END_TEST

static void *come_and_go(void *arg)
{
    struct kedge_commit_pool *pool = arg;
    for (unsigned i = 0; i < COMERS; i++) {
        struct log log = {.expected = 0};
        begin(&log, pool);
        submit(&log, 0, on_done, &log);
        if (i % 3 == 0) {
            wait_until(&log.answers, 1);
            kedge_os_sleep_ms(i % 2 ? 60 : 0); /* its checkpoint is stored, or waits to be */
            ck_assert_int_eq(kedge_committer_reopen(log.c, NULL), KEDGE_OK);
        }
        end(&log, 1);
        ck_assert_uint_eq(log.errors, 0);
    }
    return NULL;
}

START_TEST(ledgers_come_and_go)
{
    pthread_t threads[THREADS];
    struct kedge_commit_pool *pool = pool_of(2);
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, pool), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    kedge_commit_pool_free(pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store commit pool");
    TCase *t = tcase_create("contract");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, many_ledgers_keep_their_order);
    tcase_add_test(t, one_that_hangs_keeps_one_thread);
    tcase_add_test(t, a_greedy_ledger_has_one_turn_in_each_round);
    tcase_add_test(t, ledgers_come_and_go);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
