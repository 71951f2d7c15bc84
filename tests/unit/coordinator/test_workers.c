/* Workers: whose work is next, what is left to whom while others are busy, and whose line the loop is at. */
#include <check.h>
#include <pthread.h>

#include "coordinator/daemon/host.h"
#include "coordinator/daemon/inbox.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/workers.h"
#include "tests/fixtures/run.h"

enum { WORKS = 512, A = KEDGE_LINE_TENANTS + 1, B = KEDGE_LINE_TENANTS + 2 };

struct gated {
    struct kedge_work work;
    bool waits; /* for the gate */
    uint32_t line;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t change;
    bool open; /* the gate */
    unsigned at_gate, run, back;
    uint32_t order[WORKS]; /* lines, as they were run */
    struct kedge_item *returned[WORKS];
    uint32_t handled_line;
    struct gated pool[WORKS];
    unsigned used;
    struct kedge_host host;
} world = {.mutex = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

/* The loop's queue. */
void kedge_host_post(struct kedge_host *h, struct kedge_item *item)
{
    ck_assert_ptr_eq(h, &world.host);
    pthread_mutex_lock(&world.mutex);
    world.returned[world.back++] = item;
    pthread_cond_broadcast(&world.change);
    pthread_mutex_unlock(&world.mutex);
}

static void run(struct kedge_host *h, struct kedge_work *work)
{
    struct gated *g = (struct gated *)work;
    ck_assert_ptr_eq(h, &world.host);
    pthread_mutex_lock(&world.mutex);
    world.at_gate += g->waits;
    pthread_cond_broadcast(&world.change);
    while (g->waits && !world.open) {
        pthread_cond_wait(&world.change, &world.mutex);
    }
    world.order[world.run++] = g->line;
    pthread_cond_broadcast(&world.change);
    pthread_mutex_unlock(&world.mutex);
}

static void handle(struct kedge_host *h, struct kedge_item *item)
{
    (void)item;
    world.handled_line = h->line;
}

static void put(uint32_t line, bool waits)
{
    struct gated *g = &world.pool[world.used++];
    *g = (struct gated){.work = {.item = {.handle = handle}, .run = run}, .waits = waits, .line = line};
    kedge_host_work_in(&world.host, line, &g->work);
}

static void wait_until(const unsigned *what, unsigned is)
{
    pthread_mutex_lock(&world.mutex);
    while (*what < is) {
        pthread_cond_wait(&world.change, &world.mutex);
    }
    pthread_mutex_unlock(&world.mutex);
}

static void open_gate(void)
{
    pthread_mutex_lock(&world.mutex);
    world.open = true;
    pthread_cond_broadcast(&world.change);
    pthread_mutex_unlock(&world.mutex);
}

static void start(unsigned count)
{
    struct kedge_diag d = {.text = ""};
    world.open = false;
    world.at_gate = world.run = world.back = world.used = 0;
    ck_assert_msg(kedge_workers_open(&world.host, count, &d) == KEDGE_OK, "%s", d.text);
}

START_TEST(a_flood_holds_up_its_own_line)
{
    start(1);
    put(A, true); /* the one worker is here until all others stand in line */
    wait_until(&world.at_gate, 1);
    for (int i = 0; i < 300; i++) {
        put(A, false);
    }
    put(B, false);
    put(KEDGE_LINE_OWN, false);
    open_gate();
    kedge_workers_close(&world.host); /* what stands in line is done */
    ck_assert_uint_eq(world.run, 303);
    ck_assert_uint_eq(world.order[1], KEDGE_LINE_OWN);
    ck_assert_msg(world.order[2] == B || world.order[3] == B, "B's work is done late");
    ck_assert_uint_eq(world.back, 303);
    ck_assert_ptr_null(world.host.workers);
}
END_TEST

/* Work that is under way and not paid yet counts: one line does not take all workers. */
START_TEST(workers_take_of_each_line)
{
    start(4);
    put(KEDGE_LINE_OWN, true);
    put(KEDGE_LINE_OWN, true);
    put(KEDGE_LINE_OWN, true);
    put(A, true);
    wait_until(&world.at_gate, 4);
    for (int i = 0; i < 100; i++) {
        put(A, false);
        put(B, false);
    }
    open_gate();
    kedge_workers_close(&world.host);
    unsigned in_a_row = 0, most = 0;
    for (unsigned i = 4; i < 100; i++) {
        in_a_row = world.order[i] == A ? in_a_row + 1 : 0;
        most = in_a_row > most ? in_a_row : most;
    }
    ck_assert_msg(most <= 12, "%u of A's in a row, while B waits", most);
}
END_TEST

START_TEST(own_work_leaves_one_worker)
{
    start(3);
    for (int i = 0; i < 3; i++) {
        put(KEDGE_LINE_OWN, true);
    }
    wait_until(&world.at_gate, 2);
    put(B, false);
    wait_until(&world.run, 1); /* while closes go on */
    ck_assert_uint_eq(world.order[0], B);
    open_gate();
    kedge_workers_close(&world.host);
    ck_assert_uint_eq(world.run, 4);
}
END_TEST

START_TEST(the_loop_is_at_the_line_of_the_work)
{
    start(2);
    put(B, false);
    kedge_workers_close(&world.host);
    ck_assert_uint_eq(world.back, 1);
    world.returned[0]->handle(&world.host, world.returned[0]);
    ck_assert_uint_eq(world.handled_line, B);
    ck_assert_uint_eq(world.host.line, KEDGE_LINE_OWN);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("workers");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_flood_holds_up_its_own_line);
    tcase_add_test(t, workers_take_of_each_line);
    tcase_add_test(t, own_work_leaves_one_worker);
    tcase_add_test(t, the_loop_is_at_the_line_of_the_work);
    Suite *s = suite_create("coordinator/workers");
    suite_add_tcase(s, t);
    return run_suite(s);
}
