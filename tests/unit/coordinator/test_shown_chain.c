/* What a site is shown of the main chain when the ledger answers, and when it does not: never a checkpoint
 * without the proof that belongs to it. The ledger is played by this test. */
#include <check.h>
#include <stdlib.h>

#include "coordinator/daemon/host.h"
#include "coordinator/daemon/sites/requests.h"
#include "coordinator/daemon/witness/witness.h"

static struct {
    int checkpoint_err, since_seen_err, since_cosigned_err;
    uint64_t size, final_size; /* final_size 0: no quorum has cosigned */
    uint64_t seen;
} ledger;

int kedge_ledger_checkpoint(struct kedge_ledger *l, struct kedge_buf *ret_note, uint64_t *ret_size)
{
    ck_assert_ptr_null(l);
    kedge_buf_put_str(ret_note, "newest"); /* also where it fails: half a note is none */
    *ret_size = ledger.size;
    return ledger.checkpoint_err;
}

int kedge_ledger_consistency(struct kedge_ledger *l, uint64_t old_size, uint64_t size,
                             struct kedge_path *ret_path)
{
    ck_assert_ptr_null(l);
    ck_assert(old_size > 0 && old_size < size && size == ledger.size);
    ret_path->count = (unsigned)old_size; /* tells the two apart */
    return old_size == ledger.seen ? ledger.since_seen_err : ledger.since_cosigned_err;
}

uint64_t kedge_host_final_size(const struct kedge_host *h)
{
    ck_assert_ptr_nonnull(h);
    return ledger.final_size;
}

void kedge_host_final_note(const struct kedge_host *h, struct kedge_buf *out)
{
    ck_assert_ptr_nonnull(h);
    kedge_buf_put_str(out, ledger.final_size > 0 ? "cosigned" : "");
}

START_TEST(test_shown)
{
    static const struct {
        int checkpoint_err, since_seen_err, since_cosigned_err;
        uint64_t seen, final_size;
        const char *newest, *cosigned;
        unsigned since_seen, since_cosigned;
    } rows[] = {
        /* of ten entries */
        {KEDGE_OK, KEDGE_OK, KEDGE_OK, 4, 7, "newest", "cosigned", 4, 7},
        {KEDGE_OK, KEDGE_OK, KEDGE_OK, 0, 10, "newest", "cosigned", 0, 0},
        {KEDGE_OK, KEDGE_OK, KEDGE_OK, 10, 0, "newest", "", 0, 0},
        {KEDGE_OK, KEDGE_OK, KEDGE_OK, 11, 0, "newest", "", 0, 0}, /* the site judges */
        {KEDGE_E_IO, KEDGE_OK, KEDGE_OK, 4, 7, "", "", 0, 0},
        {KEDGE_E_NOT_FOUND, KEDGE_OK, KEDGE_OK, 4, 7, "", "", 0, 0},
        {KEDGE_OK, KEDGE_E_IO, KEDGE_OK, 4, 7, "", "", 0, 0},
        {KEDGE_OK, KEDGE_E_CORRUPT, KEDGE_OK, 4, 0, "", "", 0, 0},
        /* a site that demands no quorum goes on */
        {KEDGE_OK, KEDGE_OK, KEDGE_E_IO, 4, 7, "newest", "", 4, 0},
    };
    ck_assert_uint_eq(sizeof rows / sizeof rows[0], 9);
    static struct kedge_host h;
    struct kedge_shown_chain shown;
    ledger.checkpoint_err = rows[_i].checkpoint_err;
    ledger.since_seen_err = rows[_i].since_seen_err;
    ledger.since_cosigned_err = rows[_i].since_cosigned_err;
    ledger.size = 10;
    ledger.seen = rows[_i].seen;
    ledger.final_size = rows[_i].final_size;
    kedge_host_show_chain(&h, rows[_i].seen, &shown);
    ck_assert(kedge_view_eq(kedge_buf_view(&shown.newest), kedge_view_str(rows[_i].newest)));
    ck_assert(kedge_view_eq(kedge_buf_view(&shown.cosigned), kedge_view_str(rows[_i].cosigned)));
    ck_assert_uint_eq(shown.since_seen.count, rows[_i].since_seen);
    ck_assert_uint_eq(shown.since_cosigned.count, rows[_i].since_cosigned);
    kedge_shown_chain_deinit(&shown);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("shown");
    tcase_add_loop_test(tc, test_shown, 0, 9);
    Suite *s = suite_create("coordinator/shown_chain");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
