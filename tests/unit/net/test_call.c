/* Requests and replies over every transport. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/net/client.h"
#include "common/net/server.h"
#include "tests/unit/net/world.h"

START_TEST(test_round_trip)
{
    struct world w;
    world_open(&w, world_echo, NULL);
    for (unsigned i = 0; i < 3; i++) {
        struct kedge_net_client *client = world_client(&w, i);
        struct kedge_net_reply reply;
        ck_assert_int_eq(kedge_net_call(client, kedge_view_str("hello"), 5000, &reply), KEDGE_OK);
        ck_assert(kedge_view_eq(reply.view, kedge_view_str("hello")));
        kedge_net_reply_release(&reply);
        kedge_net_client_close(client);
    }
    world_close(&w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("net");
    TCase *t = tcase_create("call");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_round_trip);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
