/* A function that answers, fails, crashes or hangs in a child process. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chain/store/blob/guard.h"

enum { SLOW = 4, PATIENCE_MS = 60000 };

static int answer(void *arg, struct kedge_buf *ret_out, struct kedge_diag *reterr)
{
    int what = *(int *)arg;
    kedge_buf_put_str(ret_out, "seen");
    if (what == 1) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "as expected");
    }
    if (what == 2) {
        raise(SIGKILL);
    }
    if (what == 3) {
        abort();
    }
    for (int i = 0; what == SLOW && i < 60000; i++) {
        usleep(1000);
    }
    return KEDGE_OK;
}

START_TEST(guard_turns_a_crash_into_an_error)
{
    static const int expected[] = {KEDGE_OK, KEDGE_E_FORMAT, KEDGE_E_CORRUPT, KEDGE_E_CORRUPT,
                                   KEDGE_E_CORRUPT};
    for (int what = 0; what < 5; what++) {
        struct kedge_buf out;
        kedge_buf_init(&out, 100);
        struct kedge_diag d = {0};
        ck_assert_int_eq(kedge_store_guarded(answer, &what, what == SLOW ? 300 : PATIENCE_MS, &out, &d),
                         expected[what]);
        if (what < 2) {
            ck_assert(kedge_view_eq(kedge_buf_view(&out), kedge_view_str("seen")));
        }
        if (what == 1) {
            ck_assert_str_eq(d.text, "as expected");
        }
        kedge_buf_deinit(&out);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store guard");
    TCase *t = tcase_create("guard");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, guard_turns_a_crash_into_an_error);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
