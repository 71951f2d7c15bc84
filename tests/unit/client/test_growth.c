/* What an answer proves of the main chain: of one history, of two, without proof, unsigned. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "chain/checkpoint.h"
#include "chain/merkle.h"
#include "client/daemon/host.h"

#define ORIGIN "fl.example.org/main"

/* Two histories of one log: the second differs from leaf `fork` on. */
struct history {
    uint64_t size, fork;
};

static int get(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret)
{
    struct kedge_frontier f = {0};
    for (uint64_t i = index << level; i < (index + 1) << level; i++) {
        struct kedge_hash leaf;
        uint8_t entry[2] = {i >= ((const struct history *)arg)->fork, (uint8_t)i};
        kedge_merkle_leaf(kedge_view_of(entry, sizeof entry), &leaf);
        ck_assert_int_eq(kedge_frontier_append(&f, &leaf), KEDGE_OK);
    }
    kedge_frontier_root(&f, ret);
    return KEDGE_OK;
}

static struct kedge_site_chain chain_of(struct history h)
{
    struct kedge_site_chain c = {.size = h.size};
    struct kedge_hash root;
    if (h.size > 0) {
        ck_assert_int_eq(kedge_merkle_root(get, &h, h.size, &root), KEDGE_OK);
        memcpy(c.root.b, root.b, sizeof c.root.b);
    }
    return c;
}

static struct kedge_key_pair pair_of(uint8_t seed_byte)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    memset(seed.b, seed_byte, sizeof seed.b);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

/* Checks what somebody shows who signs with the key of signer, to a site that trusts the key of 1. */
static int check(struct history seen, struct history shown, uint8_t signer, struct kedge_view proof,
                 struct kedge_site_chain *ret, bool *ret_breaks)
{
    struct kedge_site_host *h = calloc(1, sizeof *h);
    struct kedge_key_pair log = pair_of(1), pair = pair_of(signer);
    struct kedge_site_chain before = chain_of(seen), now = chain_of(shown);
    struct kedge_hash root;
    struct kedge_buf note;
    ck_assert_ptr_nonnull(h);
    h->trust.known = true;
    ck_assert_int_eq(
        kedge_vkey_make(kedge_view_str(ORIGIN), KEDGE_KEY_ED25519, &log.public, &h->trust.main_log),
        KEDGE_OK);
    memcpy(root.b, now.root.b, sizeof root.b);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(ORIGIN), shown.size, &root, &pair, &note),
                     KEDGE_OK);
    struct kedge_shown_main m = {.newest = kedge_buf_view(&note), .since_seen = proof};
    int err = kedge_client_check_main(h, &before, &m, ret, ret_breaks);
    kedge_buf_deinit(&note);
    free(h);
    return err;
}

enum proof { NONE, HONEST, SPOILT };

START_TEST(test_growth)
{
    static const struct {
        struct history seen, shown;
        enum proof proof;
        int golden;
        bool breaks;
    } rows[] = {
        {{0, 99}, {9, 99}, NONE, KEDGE_OK, false},        /* nothing was seen: nothing to grow out of */
        {{9, 99}, {9, 99}, NONE, KEDGE_OK, false},        /* the same */
        {{9, 99}, {9, 3}, NONE, KEDGE_OK, true},          /* of the same size and another root */
        {{9, 99}, {8, 99}, NONE, KEDGE_OK, false},        /* smaller: the core judges */
        {{9, 99}, {12, 99}, HONEST, KEDGE_OK, false},     /* it grew */
        {{8, 99}, {9, 99}, HONEST, KEDGE_OK, false},      /* out of a whole subtree */
        {{9, 99}, {12, 99}, NONE, KEDGE_E_FORMAT, false}, /* without a proof: no answer, no evidence */
        {{8, 99}, {9, 99}, NONE, KEDGE_E_FORMAT, false},  /* … also out of a whole subtree */
        {{9, 99}, {12, 3}, NONE, KEDGE_E_FORMAT, false},  /* … though it is another history */
        {{9, 99}, {12, 3}, HONEST, KEDGE_OK, true},       /* the other history's own proof */
        {{9, 99}, {12, 99}, SPOILT, KEDGE_OK, true},
    };
    ck_assert_uint_eq(sizeof rows / sizeof rows[0], 11);
    struct kedge_path path = {.count = 0};
    struct history shown = rows[_i].shown;
    if (rows[_i].proof != NONE) {
        ck_assert_int_eq(kedge_consistency_prove(get, &shown, rows[_i].seen.size, shown.size, &path),
                         KEDGE_OK);
        ck_assert_uint_gt(path.count, 0); /* between different sizes there is always something to say */
    }
    path.hashes[0].b[0] ^= rows[_i].proof == SPOILT;
    struct kedge_site_chain ret = {.size = 0}, golden = chain_of(shown);
    bool breaks = false;
    struct kedge_view proof = kedge_view_of(path.hashes, path.count * sizeof path.hashes[0]);
    ck_assert_int_eq(check(rows[_i].seen, shown, 1, proof, &ret, &breaks), rows[_i].golden);
    ck_assert(breaks == rows[_i].breaks);
    if (rows[_i].golden == KEDGE_OK) {
        ck_assert_uint_eq(ret.size, golden.size);
        ck_assert_mem_eq(ret.root.b, golden.root.b, sizeof golden.root.b);
    }
}
END_TEST

START_TEST(test_signed_by_another)
{
    struct kedge_site_chain ret;
    bool breaks = false;
    ck_assert_int_eq(
        check((struct history){9, 99}, (struct history){9, 99}, 2, kedge_view_of(NULL, 0), &ret, &breaks),
        KEDGE_E_VERIFY);
    ck_assert(!breaks);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("growth");
    tcase_add_loop_test(tc, test_growth, 0, 11);
    tcase_add_test(tc, test_signed_by_another);
    Suite *s = suite_create("client/growth");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
