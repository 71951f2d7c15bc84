/* Readers who wait for events: how many may, who is woken by what, and that the rest of the server stays free
 * for others. */
#include <check.h>

#include "common/base/limits.h"
#include "common/base/os/clock.h"
#include "common/net/web/http.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/web/events_wait.h"
#include "tests/fixtures/run.h"

enum { TENANTS = 64 };

static struct {
    struct kedge_host host;
    struct kedge_events_waiting waiting;
    uint64_t next[TENANTS], all; /* of the streams */
    uint32_t answered;
} world;

/* The streams. */
uint64_t kedge_host_events_next(const struct kedge_host *h, uint32_t tenant)
{
    ck_assert_ptr_eq(h, &world.host);
    return tenant == KEDGE_COORD_NONE ? world.all : world.next[tenant];
}

static void answer(struct kedge_host *h, struct kedge_http_request *req)
{
    ck_assert_ptr_eq(h, &world.host);
    ck_assert_ptr_null(req);
    world.answered++;
}

static void begin(unsigned connections)
{
    world.waiting = (struct kedge_events_waiting){.most = kedge_events_waiting_most(connections)};
    world.host.events_waiting = &world.waiting;
    world.all = 1;
    world.answered = 0;
    for (uint32_t t = 0; t < TENANTS; t++) {
        world.next[t] = 1;
    }
}

static bool wait_for(uint32_t tenant, uint64_t from, uint64_t until_ns)
{
    return kedge_events_wait(
        &world.host,
        &(struct kedge_events_waiter){
            .tenant = tenant, .party = 2 + tenant, .from = from, .until_ns = until_ns, .answer = answer});
}

/* Each waiter holds a connection and the memory for a piece of an answer: of either three quarters are left,
 * however many tenants' readers wait. */
START_TEST(test_others_have_room)
{
    static const unsigned connections[] = {8, 12, 100, 256, 4096};
    const uint64_t pieces = (uint64_t)KEDGE_CHUNK_BUDGET / KEDGE_HTTP_PIECE_MAX;
    uint64_t waiting = 0;
    begin(connections[_i]);
    for (uint32_t t = 0; t < TENANTS; t++) {
        uint32_t of_tenant = 0;
        for (int n = 0; n < 32; n++) {
            of_tenant += wait_for(t, 1, 100);
        }
        ck_assert_uint_le(of_tenant, KEDGE_EVENTS_WAITING_OF_PARTY);
        waiting += of_tenant;
    }
    ck_assert_uint_ge(waiting, 1);
    ck_assert_uint_le(4 * waiting, connections[_i]);
    ck_assert_uint_le(4 * waiting, pieces);
    kedge_events_wait_look(&world.host, KEDGE_TIME_NEVER);
    ck_assert_uint_eq(world.answered, waiting);
    ck_assert(wait_for(0, 1, 100));
}
END_TEST

/* One's own event, or the time: not others' events. */
START_TEST(test_who_is_woken)
{
    begin(256);
    ck_assert(!wait_for(0, 0, 100)); /* that has happened */
    ck_assert(wait_for(0, 1, 100));
    ck_assert(wait_for(1, 1, 50));
    ck_assert_uint_eq(kedge_events_wait_due_ns(&world.host), 50);
    world.all++;
    world.next[2]++;
    kedge_events_wait_look(&world.host, 10);
    ck_assert_uint_eq(world.answered, 0);
    kedge_events_wait_look(&world.host, 50);
    ck_assert_uint_eq(world.answered, 1);
    ck_assert_uint_eq(kedge_events_wait_due_ns(&world.host), 100);
    world.all++;
    world.next[0]++;
    kedge_events_wait_look(&world.host, 51);
    ck_assert_uint_eq(world.answered, 2);
    ck_assert_uint_eq(kedge_events_wait_due_ns(&world.host), KEDGE_TIME_NEVER);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator events wait");
    TCase *t = tcase_create("wait");
    tcase_add_loop_test(t, test_others_have_room, 0, 5);
    tcase_add_test(t, test_who_is_woken);
    suite_add_tcase(s, t);
    return run_suite(s);
}
