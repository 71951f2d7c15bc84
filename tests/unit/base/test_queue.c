/* The queue between threads: order, limits, deadlines, closing, nothing lost or doubled. Runs under TSan too.
 */
#include "common/base/os/queue.h"

#include <pthread.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "tests/unit/base/check.h"

enum { PRODUCERS = 3, CONSUMERS = 3, EACH = 2000 };

START_TEST(order_and_capacity)
{
    struct kedge_queue *q = NULL;
    int items[4];
    void *got = NULL;
    ck_assert_int_eq(kedge_queue_new(3, &q), KEDGE_OK);
    for (int round = 0; round < 5; round++) { /* wraps around */
        for (int i = 0; i < 3; i++) {
            ck_assert_int_eq(kedge_queue_try_put(q, &items[i]), KEDGE_OK);
        }
        ck_assert_int_eq(kedge_queue_try_put(q, &items[3]), KEDGE_E_FULL);
        for (int i = 0; i < 3; i++) {
            ck_assert_int_eq(kedge_queue_take(q, 0, &got), KEDGE_OK);
            ck_assert_ptr_eq(got, &items[i]);
        }
    }
    kedge_queue_free(q);
    kedge_queue_free(NULL);
}
END_TEST

START_TEST(deadline)
{
    struct kedge_queue *q = NULL;
    int marker;
    void *got = &marker;
    ck_assert_int_eq(kedge_queue_new(1, &q), KEDGE_OK);
    ck_assert_int_eq(kedge_queue_take(q, 0, &got), KEDGE_E_TIMEOUT); /* long past */
    uint64_t before = kedge_os_now_ns();
    ck_assert_int_eq(kedge_queue_take(q, before + 20000000, &got), KEDGE_E_TIMEOUT);
    ck_assert(kedge_os_now_ns() >= before + 20000000);
    ck_assert_ptr_eq(got, &marker);
    kedge_queue_free(q);
}
END_TEST

START_TEST(close_drains)
{
    struct kedge_queue *q = NULL;
    int item;
    void *got = NULL;
    ck_assert_int_eq(kedge_queue_new(2, &q), KEDGE_OK);
    ck_assert_int_eq(kedge_queue_put(q, &item), KEDGE_OK);
    kedge_queue_close(q);
    kedge_queue_close(q);
    ck_assert_int_eq(kedge_queue_put(q, &item), KEDGE_E_CLOSED);
    ck_assert_int_eq(kedge_queue_try_put(q, &item), KEDGE_E_CLOSED);
    ck_assert_int_eq(kedge_queue_take(q, KEDGE_TIME_NEVER, &got), KEDGE_OK);
    ck_assert_ptr_eq(got, &item);
    ck_assert_int_eq(kedge_queue_take(q, KEDGE_TIME_NEVER, &got), KEDGE_E_CLOSED);
    ck_assert_int_eq(kedge_queue_take(q, 0, &got), KEDGE_E_CLOSED);
    kedge_queue_free(q);

    kedge_mem_fail_at(1);
    ck_assert_int_eq(kedge_queue_new(2, &q), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
}
END_TEST

struct shared {
    struct kedge_queue *q;
    unsigned char tokens[PRODUCERS * EACH]; /* addresses stand for items */
};

struct producer {
    struct shared *shared;
    size_t first;
    int err;
};

static void *produce(void *arg)
{
    struct producer *p = arg;
    for (size_t i = 0; i < EACH && !p->err; i++) {
        p->err = kedge_queue_put(p->shared->q, &p->shared->tokens[p->first + i]);
    }
    return NULL;
}

struct consumer {
    struct shared *shared;
    unsigned seen[PRODUCERS * EACH];
    size_t last[PRODUCERS];
    bool in_order;
    int err;
};

static void *consume(void *arg)
{
    struct consumer *c = arg;
    void *item = NULL;
    while ((c->err = kedge_queue_take(c->shared->q, KEDGE_TIME_NEVER, &item)) == KEDGE_OK) {
        size_t i = (size_t)((unsigned char *)item - c->shared->tokens);
        c->in_order = c->in_order && i + 1 > c->last[i / EACH];
        c->last[i / EACH] = i + 1;
        c->seen[i]++;
    }
    return NULL;
}

START_TEST(many_threads)
{
    static struct shared shared;
    static struct producer producers[PRODUCERS];
    static struct consumer consumers[CONSUMERS];
    pthread_t makers[PRODUCERS], takers[CONSUMERS];
    ck_assert_int_eq(kedge_queue_new(7, &shared.q), KEDGE_OK);
    for (size_t i = 0; i < CONSUMERS; i++) {
        consumers[i] = (struct consumer){.shared = &shared, .in_order = true};
        ck_assert_int_eq(pthread_create(&takers[i], NULL, consume, &consumers[i]), 0);
    }
    for (size_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){&shared, i * EACH, KEDGE_OK};
        ck_assert_int_eq(pthread_create(&makers[i], NULL, produce, &producers[i]), 0);
    }
    for (size_t i = 0; i < PRODUCERS; i++) {
        pthread_join(makers[i], NULL);
        ck_assert_int_eq(producers[i].err, KEDGE_OK);
    }
    kedge_queue_close(shared.q);
    for (size_t i = 0; i < CONSUMERS; i++) {
        pthread_join(takers[i], NULL);
        ck_assert_int_eq(consumers[i].err, KEDGE_E_CLOSED);
        ck_assert(consumers[i].in_order); /* one producer's items reach one consumer in order */
    }
    for (size_t i = 0; i < PRODUCERS * EACH; i++) {
        unsigned n = 0;
        for (size_t c = 0; c < CONSUMERS; c++) {
            n += consumers[c].seen[i];
        }
        ck_assert_uint_eq(n, 1);
    }
    kedge_queue_free(shared.q);
}
END_TEST

static void *put_blocked(void *arg)
{
    struct producer *p = arg;
    p->err = kedge_queue_put(p->shared->q, &p->shared->tokens[0]);
    return NULL;
}

START_TEST(close_wakes_waiting_threads)
{
    static struct shared shared;
    static struct producer blocked;
    static struct consumer waiting;
    pthread_t thread;
    ck_assert_int_eq(kedge_queue_new(1, &shared.q), KEDGE_OK);
    waiting = (struct consumer){.shared = &shared};
    ck_assert_int_eq(pthread_create(&thread, NULL, consume, &waiting), 0);
    kedge_os_sleep_ms(10);
    kedge_queue_close(shared.q);
    pthread_join(thread, NULL);
    ck_assert_int_eq(waiting.err, KEDGE_E_CLOSED);
    kedge_queue_free(shared.q);

    ck_assert_int_eq(kedge_queue_new(1, &shared.q), KEDGE_OK);
    ck_assert_int_eq(kedge_queue_put(shared.q, &shared.tokens[1]), KEDGE_OK);
    blocked = (struct producer){.shared = &shared};
    ck_assert_int_eq(pthread_create(&thread, NULL, put_blocked, &blocked), 0);
    kedge_os_sleep_ms(10);
    kedge_queue_close(shared.q);
    pthread_join(thread, NULL);
    ck_assert_int_eq(blocked.err, KEDGE_E_CLOSED);
    kedge_queue_free(shared.q);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {order_and_capacity, deadline, close_drains, many_threads,
                                  close_wakes_waiting_threads};
    return run_suite("base/queue", tests, sizeof tests / sizeof tests[0]);
}
