/* Blobs in pieces from sources that lie about how much there is. */
#include "chain/follow/fetch.h"

#include "tests/contract/ledger_fixture.h"
#include "tests/unit/chain/samples.h"

struct source {
    uint64_t total;       /* as it says */
    uint64_t total_later; /* from the second piece on */
    size_t piece;         /* bytes of each; the second and later ones: */
    size_t piece_later;
    unsigned calls, stop_at;
};

static const char TEXT[] = "0123456789";
static struct fixture f;
static struct kedge_blobs *blobs;

static int read_piece(void *arg, uint64_t offset, struct kedge_view *ret, uint64_t *ret_total,
                      struct kedge_diag *d)
{
    struct source *s = arg;
    (void)d;
    size_t len = s->calls == 0 ? s->piece : s->piece_later;
    *ret_total = s->calls == 0 ? s->total : s->total_later;
    s->calls++;
    ck_assert_uint_lt(s->calls, 100); /* for ever */
    ck_assert_uint_le(offset + len, sizeof TEXT);
    *ret = kedge_view_of(TEXT + offset, len);
    return KEDGE_OK;
}

static bool is_stopped(void *arg)
{
    struct source *s = arg;
    return s->calls == s->stop_at;
}

static int fetch(struct source *s, struct kedge_blob_wanted *wanted, uint64_t *ret_size)
{
    struct kedge_follow_pieces pieces = {read_piece, is_stopped, s, "blob"};
    struct kedge_id reader = sample_id("w");
    struct kedge_diag d = {.text = ""};
    int err = kedge_follow_fetch(&pieces, blobs, &reader, wanted, ret_size, &d);
    ck_assert(err == KEDGE_OK || d.text[0]);
    return err;
}

static void set_up(void)
{
    char dir[96];
    struct kedge_diag d = {.text = ""};
    fixture_init(&f);
    snprintf(dir, sizeof dir, "%s/blobs", f.dir);
    ck_assert_int_eq(kedge_dir_make(dir, 0700, &d), KEDGE_OK);
    ck_assert_msg(kedge_blobs_open(dir, NULL, &blobs, &d) == KEDGE_OK, "%s", d.text);
}

static void tear_down(void)
{
    kedge_blobs_close(blobs);
    fixture_deinit(&f);
}

START_TEST(sources_that_lie_are_left)
{
    static const struct {
        struct source source;
        enum kedge_blob_want want;
        int err;
    } rows[] = {
        {{10, 11, 4, 3, 0, 0}, KEDGE_WANT_UPDATE, KEDGE_E_FORMAT}, /* grows */
        {{10, 4, 4, 0, 0, 0}, KEDGE_WANT_UPDATE, KEDGE_E_FORMAT},  /* ends where it is, without a piece */
        {{10, 10, 4, 0, 0, 0}, KEDGE_WANT_UPDATE, KEDGE_E_FORMAT}, /* empty pieces */
        {{10, 10, 0, 0, 0, 0}, KEDGE_WANT_UPDATE, KEDGE_E_FORMAT},
        {{10, 10, 4, 7, 0, 0}, KEDGE_WANT_UPDATE, KEDGE_E_FORMAT}, /* more than is left */
        {{UINT64_MAX, UINT64_MAX, 4, 4, 0, 0}, KEDGE_WANT_UPDATE, KEDGE_E_FORMAT},
        {{65537, 65537, 4, 4, 0, 0}, KEDGE_WANT_LIST, KEDGE_E_FORMAT}, /* a spec of that size */
        {{9, 9, 9, 0, 0, 0}, KEDGE_WANT_UPDATE, KEDGE_E_BLOB_DIGEST},  /* another blob */
    };
    struct kedge_blob_wanted wanted = {.digest = {{0}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct source s = rows[i].source;
        uint64_t size = 7;
        wanted.want = rows[i].want;
        kedge_sha256(kedge_view_str(TEXT), &wanted.digest);
        wanted.digest.b[0] ^= (uint8_t)(i + 1); /* a try of its own */
        int err = fetch(&s, &wanted, &size);
        ck_assert_msg(err == rows[i].err, "row %zu: %s", i, kedge_strerror(err));
        ck_assert_uint_eq(size, 7);
        ck_assert_int_eq(kedge_blobs_find(blobs, &wanted.digest, NULL), KEDGE_E_NOT_FOUND);
    }
}
END_TEST

START_TEST(what_was_cut_off_goes_on)
{
    struct source s = {10, 10, 4, 3, 0, 2};
    struct kedge_blob_wanted wanted = {.want = KEDGE_WANT_UPDATE};
    uint64_t size = 0;
    kedge_sha256(kedge_view_str(TEXT), &wanted.digest);
    ck_assert_int_eq(fetch(&s, &wanted, &size), KEDGE_E_CANCELLED);
    ck_assert_uint_eq(s.calls, 2);
    s = (struct source){10, 10, 4, 3, 0, 0};
    ck_assert_int_eq(fetch(&s, &wanted, &size), KEDGE_OK);
    ck_assert_uint_eq(s.calls, 2); /* the first tells the size, the second brings the last three bytes */
    ck_assert_uint_eq(size, 10);
    ck_assert_int_eq(kedge_blobs_find(blobs, &wanted.digest, NULL), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("follow");
    TCase *t = tcase_create("fetch");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, sources_that_lie_are_left);
    tcase_add_test(t, what_was_cut_off_goes_on);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
