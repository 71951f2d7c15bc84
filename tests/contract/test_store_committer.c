/* Group commit: order, atomic submissions, isolation of a bad one, back-pressure, failure and reopening.
 */
#include "ledger_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "chain/store/committer.h"
#include "common/base/os/clock.h"
#include "tests/fixtures/kv.h"

enum { PRODUCERS = 4, PER_PRODUCER = 500 };

struct seen {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t answers, errors;
    int last_err;
    uint64_t last_size, last_index;
    bool in_order;
};

static void seen_init(struct seen *s)
{
    *s = (struct seen){.in_order = true};
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
}

static void on_done(void *arg, const struct kedge_commit_result *r)
{
    struct seen *s = arg;
    pthread_mutex_lock(&s->mutex);
    s->answers++;
    s->errors += r->err != KEDGE_OK;
    s->last_err = r->err;
    if (!r->err) {
        bool covers = r->count > 0 && r->checkpoint.len > 0 && r->items[r->count - 1].index < r->size;
        s->in_order = s->in_order && covers && r->size >= s->last_size
                      && (s->answers == 1 || r->items[0].existing || r->items[0].index > s->last_index);
        s->last_size = r->size;
        s->last_index = r->items[r->count - 1].index;
    } else {
        s->in_order = s->in_order && r->diag && r->diag->text[0];
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

static void wait_for(struct seen *s, size_t answers)
{
    pthread_mutex_lock(&s->mutex);
    while (s->answers < answers) {
        pthread_cond_wait(&s->changed, &s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
}

struct producer {
    struct kedge_committer *c;
    struct seen *seen;
    int id;
};

static void *produce(void *arg)
{
    struct producer *p = arg;
    for (int i = 0; i < PER_PRODUCER; i++) {
        char entry[64], key[64];
        int n = snprintf(entry, sizeof entry, "statement %d of %d", i, p->id);
        int k = snprintf(key, sizeof key, "p%d/%06d", p->id, i);
        struct kedge_ledger_append item = {.entry = kedge_view_of(entry, (size_t)n),
                                           .idem_key = kedge_view_of(key, (size_t)k)};
        int err;
        while ((err = kedge_committer_submit(p->c, &item, 1, on_done, p->seen)) == KEDGE_E_FULL) {
            kedge_os_sleep_ms(1);
        }
        if (err) {
            return (void *)1;
        }
    }
    return NULL;
}

struct order {
    uint64_t last;
    size_t count;
};

static int check_order(void *arg, struct kedge_view key, uint64_t index)
{
    struct order *o = arg;
    (void)key;
    bool is_right = o->count == 0 || index > o->last;
    o->last = index;
    o->count++;
    return is_right ? 0 : 1;
}

START_TEST(many_producers_keep_their_order)
{
    struct fixture f;
    fixture_init(&f);
    f.kv = fixture_lmdb(f.store, true);
    fixture_must_open(&f, true);
    struct kedge_committer *c;
    struct kedge_committer_options options = {.queue_max = 300};
    ck_assert_int_eq(kedge_committer_start(f.l, &options, &c, NULL), KEDGE_OK);
    struct seen seen[PRODUCERS];
    struct producer producers[PRODUCERS];
    pthread_t threads[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        seen_init(&seen[i]);
        producers[i] = (struct producer){c, &seen[i], i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
        wait_for(&seen[i], PER_PRODUCER);
        ck_assert_uint_eq(seen[i].errors, 0);
        ck_assert(seen[i].in_order);
    }
    uint64_t commits, entries;
    size_t waiting;
    kedge_committer_stats(c, &commits, &entries, &waiting);
    ck_assert_uint_eq(entries, PRODUCERS * PER_PRODUCER);
    ck_assert_uint_lt(commits, entries / 2); /* it does group */
    ck_assert_uint_eq(waiting, 0);
    kedge_committer_stop(c);
    for (int i = 0; i < PRODUCERS; i++) {
        char prefix[8];
        int n = snprintf(prefix, sizeof prefix, "p%d/", i);
        struct order o = {0, 0};
        ck_assert_int_eq(kedge_ledger_scan_keys(f.l, kedge_view_of(prefix, (size_t)n), check_order, &o),
                         KEDGE_OK);
        ck_assert_uint_eq(o.count, PER_PRODUCER);
    }
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_ledger_check(f.l, NULL, NULL, &d) == KEDGE_OK, "%s", d.text);
    fixture_deinit(&f);
}
END_TEST

static void open_faulty(struct fixture *f)
{
    struct kedge_kv *inner;
    ck_assert_int_eq(kedge_kv_memory_new(&inner), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_faulty_new(inner, &f->kv), KEDGE_OK);
    fixture_must_open(f, true);
}

START_TEST(a_bad_submission_harms_no_other)
{
    struct fixture f;
    fixture_init(&f);
    open_faulty(&f);
    struct kedge_committer *c;
    ck_assert_int_eq(kedge_committer_start(f.l, NULL, &c, NULL), KEDGE_OK);
    struct seen good, bad;
    seen_init(&good);
    seen_init(&bad);
    struct kedge_ledger_append first[] = {item("a", "k1"), item("b", "k2")};
    struct kedge_ledger_append clash[] = {item("c", "k3"), item("other", "k1")};
    ck_assert_int_eq(kedge_committer_submit(c, first, 2, on_done, &good), KEDGE_OK);
    ck_assert_int_eq(kedge_committer_submit(c, clash, 2, on_done, &bad), KEDGE_OK);
    ck_assert_int_eq(kedge_committer_submit(c, first, 2, on_done, &good), KEDGE_OK);
    ck_assert_int_eq(kedge_committer_submit(c, first, 0, on_done, &good), KEDGE_E_ARG);
    wait_for(&good, 2);
    wait_for(&bad, 1);
    ck_assert_uint_eq(good.errors, 0);
    ck_assert_int_eq(bad.last_err, KEDGE_E_EXISTS);
    ck_assert(bad.in_order);
    kedge_committer_stop(c);
    ck_assert_uint_eq(kedge_ledger_size(f.l), 2); /* "c" went down with its own submission */
    fixture_deinit(&f);
}
END_TEST

static void hold(void *arg, const struct kedge_commit_result *r)
{
    (void)r;
    pthread_mutex_lock(arg); /* keeps the committer busy until the test lets go */
    pthread_mutex_unlock(arg);
}

START_TEST(a_full_queue_pushes_back)
{
    struct fixture f;
    fixture_init(&f);
    open_faulty(&f);
    struct kedge_committer *c;
    struct kedge_committer_options options = {.queue_max = 3};
    ck_assert_int_eq(kedge_committer_start(f.l, &options, &c, NULL), KEDGE_OK);
    struct seen seen;
    seen_init(&seen);
    pthread_mutex_t gate;
    pthread_mutex_init(&gate, NULL);
    pthread_mutex_lock(&gate);
    struct kedge_ledger_append a = item("a", "k");
    ck_assert_int_eq(kedge_committer_submit(c, &a, 1, hold, &gate), KEDGE_OK);
    size_t waiting = 1;
    while (waiting > 0) {
        kedge_committer_stats(c, NULL, NULL, &waiting);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(kedge_committer_submit(c, &a, 1, on_done, &seen), KEDGE_OK);
    }
    ck_assert_int_eq(kedge_committer_submit(c, &a, 1, on_done, &seen), KEDGE_E_FULL);
    pthread_mutex_unlock(&gate);
    kedge_committer_stop(c); /* answers what waits */
    ck_assert_uint_eq(seen.answers, 3);
    ck_assert_uint_eq(seen.errors, 0);
    pthread_mutex_destroy(&gate);
    fixture_deinit(&f);
}
END_TEST

START_TEST(a_failed_ledger_refuses_until_reopened)
{
    struct fixture f;
    fixture_init(&f);
    open_faulty(&f);
    struct kedge_committer *c;
    kedge_kv_faulty_set(f.kv, KEDGE_KV_FAULT_FAILED_BUT_DONE, 1);
    ck_assert_int_eq(kedge_committer_start(f.l, NULL, &c, NULL), KEDGE_OK);
    struct seen seen;
    seen_init(&seen);
    struct kedge_ledger_append a = item("a", "k");
    for (size_t i = 1; i <= 2; i++) {
        ck_assert_int_eq(kedge_committer_submit(c, &a, 1, on_done, &seen), KEDGE_OK);
        wait_for(&seen, i);
        ck_assert_int_eq(seen.last_err, KEDGE_E_IO);
    }
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_committer_reopen(c, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_int_eq(kedge_committer_submit(c, &a, 1, on_done, &seen), KEDGE_OK);
    wait_for(&seen, 3);
    ck_assert_int_eq(seen.last_err, KEDGE_OK);
    ck_assert_uint_eq(seen.last_size, 1);
    kedge_kv_faulty_set(f.kv, KEDGE_KV_FAULT_FULL, 1); /* a full disk needs no reopening */
    struct kedge_ledger_append b = item("b", "k2");
    ck_assert_int_eq(kedge_committer_submit(c, &b, 1, on_done, &seen), KEDGE_OK);
    wait_for(&seen, 4);
    if (seen.last_err == KEDGE_OK) { /* the fault met the idle store of a checkpoint instead */
        ck_assert_uint_eq(seen.last_size, 2);
    } else {
        ck_assert_int_eq(seen.last_err, KEDGE_E_DISK_FULL);
        ck_assert_int_eq(kedge_committer_submit(c, &b, 1, on_done, &seen), KEDGE_OK);
        wait_for(&seen, 5);
        ck_assert_int_eq(seen.last_err, KEDGE_OK);
    }
    kedge_committer_stop(c);
    fixture_deinit(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store committer");
    TCase *t = tcase_create("contract");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, many_producers_keep_their_order);
    tcase_add_test(t, a_bad_submission_harms_no_other);
    tcase_add_test(t, a_full_queue_pushes_back);
    tcase_add_test(t, a_failed_ledger_refuses_until_reopened);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
