/* The Merkle tree against a naive oracle written from RFC 6962 §2.1's own recursion: every root and every
 * proof of all sizes to 300, and small proofs damaged in every way of the list that transparency-dev/merkle
 * keeps. SEED=n replays. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/merkle.h"
#include "common/base/rng.h"
#include "common/base/text.h"

enum { SIZES = 300 };

/* ck_assert reports each success, too, which is dear a million times. */
#define must(condition) ((condition) ? (void)0 : ck_abort_msg("%s", #condition))

static struct kedge_hash leaf_hashes[SIZES + 1];
/* What the oracle said of [begin, end): it is asked for the same ranges some hundred thousand times. */
static struct {
    bool known;
    struct kedge_hash root;
} memo[SIZES + 1][SIZES + 1];
static struct kedge_rng rng;

static void setup(void)
{
    uint64_t seed = 1;
    const char *text = getenv("SEED");
    if (text && kedge_decimal_decode(kedge_view_str(text), UINT64_MAX, &seed) != KEDGE_OK) {
        ck_abort_msg("SEED is not a number");
    }
    printf("SEED=%llu\n", (unsigned long long)seed);
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 1, 0);
    for (uint32_t i = 0; i <= SIZES; i++) {
        kedge_merkle_leaf(kedge_view_of(&i, sizeof i), &leaf_hashes[i]);
    }
}

/* The oracle. Its recursion is at most 9 deep here. */
static uint64_t naive_split(uint64_t n)
{
    uint64_t k = 1;
    while (k * 2 < n) {
        k *= 2;
    }
    return k;
}

static struct kedge_hash naive_root(uint64_t begin, uint64_t end)
{
    struct kedge_hash h;
    if (begin == end) {
        kedge_sha256(kedge_view_of("", 0), &h);
        return h;
    }
    if (end - begin == 1) {
        return leaf_hashes[begin];
    }
    if (memo[begin][end].known) {
        return memo[begin][end].root;
    }
    uint64_t k = naive_split(end - begin);
    struct kedge_hash left = naive_root(begin, begin + k);
    struct kedge_hash right = naive_root(begin + k, end);
    uint8_t bytes[65] = {1};
    memcpy(bytes + 1, left.b, 32);
    memcpy(bytes + 33, right.b, 32);
    kedge_sha256(kedge_view_of(bytes, sizeof bytes), &h);
    memo[begin][end].root = h;
    memo[begin][end].known = true;
    return h;
}

static void naive_inclusion(uint64_t i, uint64_t begin, uint64_t end, struct kedge_path *path)
{
    if (end - begin == 1) {
        return;
    }
    uint64_t mid = begin + naive_split(end - begin);
    if (i < mid) {
        naive_inclusion(i, begin, mid, path);
        path->hashes[path->count++] = naive_root(mid, end);
    } else {
        naive_inclusion(i, mid, end, path);
        path->hashes[path->count++] = naive_root(begin, mid);
    }
}

static void naive_consistency(uint64_t m, uint64_t begin, uint64_t end, bool full, struct kedge_path *path)
{
    if (m == end - begin) {
        if (!full) {
            path->hashes[path->count++] = naive_root(begin, end);
        }
        return;
    }
    uint64_t k = naive_split(end - begin);
    if (m <= k) {
        naive_consistency(m, begin, begin + k, full, path);
        path->hashes[path->count++] = naive_root(begin + k, end);
    } else {
        naive_consistency(m - k, begin + k, end, false, path);
        path->hashes[path->count++] = naive_root(begin, begin + k);
    }
}

static int get(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret)
{
    uint64_t size = *(const uint64_t *)arg;
    must((index + 1) << level <= size); /* never asked beyond the tree */
    *ret = naive_root(index << level, (index + 1) << level);
    return KEDGE_OK;
}

static void assert_same_path(const struct kedge_path *a, const struct kedge_path *b)
{
    must(a->count == b->count);
    must(a->count == 0 || memcmp(a->hashes, b->hashes, a->count * sizeof a->hashes[0]) == 0);
}

static void check_inclusion(uint64_t i, uint64_t n)
{
    struct kedge_path path, want = {0};
    must(kedge_inclusion_prove(get, &n, i, n, &path) == KEDGE_OK);
    naive_inclusion(i, 0, n, &want);
    assert_same_path(&path, &want);
    struct kedge_hash root = naive_root(0, n);
    must(kedge_inclusion_verify(i, n, &leaf_hashes[i], path.hashes, path.count, &root) == KEDGE_OK);
}

static void check_consistency(uint64_t m, uint64_t n)
{
    struct kedge_path path, want = {0};
    must(kedge_consistency_prove(get, &n, m, n, &path) == KEDGE_OK);
    naive_consistency(m, 0, n, true, &want);
    assert_same_path(&path, &want);
    struct kedge_hash old_root = naive_root(0, m), root = naive_root(0, n);
    must(kedge_consistency_verify(m, n, &old_root, &root, path.hashes, path.count) == KEDGE_OK);
    /* With its first hash spelled out the path says both roots by itself. */
    struct kedge_path explicit;
    struct kedge_hash says_old, says_new;
    int err = kedge_consistency_prove_explicit(get, &n, m, n, &explicit);
    must(err == (m < n ? KEDGE_OK : KEDGE_E_ARG));
    if (!err) {
        bool whole = (m & (m - 1)) == 0;
        must(explicit.count == path.count + (whole ? 1 : 0));
        must(!whole || kedge_hash_eq(&explicit.hashes[0], &old_root));
        must(kedge_consistency_roots(m, n, explicit.hashes, explicit.count, &says_old, &says_new)
             == KEDGE_OK);
        must(kedge_hash_eq(&says_old, &old_root) && kedge_hash_eq(&says_new, &root));
    }
    for (uint32_t count = 0; !err && count <= explicit.count + 1; count++) {
        explicit.hashes[explicit.count] = root;
        must(kedge_consistency_roots(m, n, explicit.hashes, count, &says_old, &says_new)
             == (count == explicit.count ? KEDGE_OK : KEDGE_E_VERIFY));
    }
}

START_TEST(frontier_root_and_proofs_equal_the_oracle)
{
    struct kedge_frontier f = {0};
    size_t proofs = 0;
    for (uint64_t n = 0; n <= SIZES; n++) {
        struct kedge_hash a, b, want = naive_root(0, n);
        kedge_frontier_root(&f, &a);
        ck_assert(kedge_hash_eq(&a, &want));
        must(kedge_merkle_root(get, &n, n, &b) == KEDGE_OK);
        ck_assert(kedge_hash_eq(&b, &want));
        for (uint64_t i = 0; i < n; i++) {
            check_inclusion(i, n);
            check_consistency(i + 1, n);
            proofs += 2;
        }
        must(kedge_frontier_append(&f, &leaf_hashes[n]) == KEDGE_OK);
    }
    printf("%zu proofs of all sizes from 0 to %d equal the oracle's\n", proofs, SIZES);
    ck_assert_uint_eq(proofs, (size_t)SIZES * (SIZES + 1));
}
END_TEST

/* Every small proof proves its own (index, size) and no other, nor another leaf. */
START_TEST(an_inclusion_proof_fits_nothing_else)
{
    for (uint64_t n = 1; n <= 24; n++) {
        struct kedge_hash root = naive_root(0, n);
        for (uint64_t i = 0; i < n; i++) {
            struct kedge_path p;
            ck_assert_int_eq(kedge_inclusion_prove(get, &n, i, n, &p), KEDGE_OK);
            for (uint64_t other = 0; other <= 2 * n; other++) {
                int err = kedge_inclusion_verify(other, n, &leaf_hashes[i], p.hashes, p.count, &root);
                ck_assert_int_eq(err, other == i ? KEDGE_OK : KEDGE_E_VERIFY);
                err = kedge_inclusion_verify(i, n, &leaf_hashes[other], p.hashes, p.count, &root);
                ck_assert_int_eq(err, other == i ? KEDGE_OK : KEDGE_E_VERIFY);
            }
            ck_assert_int_eq(kedge_inclusion_verify(i, 0, &leaf_hashes[i], p.hashes, p.count, &root),
                             KEDGE_E_VERIFY);
            ck_assert_int_eq(kedge_inclusion_verify(i, UINT64_MAX, &leaf_hashes[i], p.hashes, p.count, &root),
                             KEDGE_E_VERIFY);
        }
    }
}
END_TEST

/* One way of damaging a path; false when this way does not apply. */
static bool damage(const struct kedge_path *from, uint32_t way, uint32_t at, struct kedge_path *ret)
{
    struct kedge_hash garbage;
    memset(garbage.b, 0xa5, sizeof garbage.b);
    *ret = *from;
    switch (way) {
    case 0: /* garbage in front of element `at`, or behind the last */
        memmove(&ret->hashes[at + 1], &ret->hashes[at], (ret->count - at) * sizeof garbage);
        ret->hashes[at] = garbage;
        ret->count++;
        return true;
    case 1: /* element removed */
        if (at == ret->count) {
            return false;
        }
        memmove(&ret->hashes[at], &ret->hashes[at + 1], (ret->count - at - 1) * sizeof garbage);
        ret->count--;
        return true;
    case 2: /* neighbours swapped */
        if (at + 1 >= ret->count) {
            return false;
        }
        garbage = ret->hashes[at];
        ret->hashes[at] = ret->hashes[at + 1];
        ret->hashes[at + 1] = garbage;
        return true;
    case 3: /* element doubled */
        if (at == ret->count) {
            return false;
        }
        memmove(&ret->hashes[at + 1], &ret->hashes[at], (ret->count - at) * sizeof garbage);
        ret->count++;
        return true;
    default: /* one bit */
        if (at == ret->count) {
            return false;
        }
        ret->hashes[at].b[kedge_rng_below(&rng, KEDGE_HASH_LEN)] ^= (uint8_t)(1u << (way % 8));
        return true;
    }
}

START_TEST(damaged_proofs_fail)
{
    struct kedge_path p, bad;
    for (uint64_t n = 1; n <= 40; n++) {
        struct kedge_hash root = naive_root(0, n);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t m = i + 1;
            struct kedge_hash old_root = naive_root(0, m);
            for (uint32_t way = 0; way < 6; way++) {
                ck_assert_int_eq(kedge_inclusion_prove(get, &n, i, n, &p), KEDGE_OK);
                for (uint32_t at = 0; at <= p.count; at++) {
                    if (damage(&p, way, at, &bad)) {
                        ck_assert_int_eq(
                            kedge_inclusion_verify(i, n, &leaf_hashes[i], bad.hashes, bad.count, &root),
                            KEDGE_E_VERIFY);
                    }
                }
                ck_assert_int_eq(kedge_consistency_prove(get, &n, m, n, &p), KEDGE_OK);
                for (uint32_t at = 0; at <= p.count; at++) {
                    if (damage(&p, way, at, &bad)) {
                        ck_assert_int_eq(
                            kedge_consistency_verify(m, n, &old_root, &root, bad.hashes, bad.count),
                            KEDGE_E_VERIFY);
                    }
                }
            }
        }
    }
}
END_TEST

START_TEST(a_consistency_proof_fits_no_other_sizes_or_roots)
{
    struct kedge_path p;
    for (uint64_t n = 2; n <= 24; n++) {
        struct kedge_hash root = naive_root(0, n);
        for (uint64_t m = 1; m < n; m++) {
            struct kedge_hash old_root = naive_root(0, m);
            ck_assert_int_eq(kedge_consistency_prove(get, &n, m, n, &p), KEDGE_OK);
            for (uint64_t other = 0; other <= n + 1; other++) {
                int err = kedge_consistency_verify(other, n, &old_root, &root, p.hashes, p.count);
                ck_assert_int_eq(err, other == m ? KEDGE_OK : KEDGE_E_VERIFY);
            }
            ck_assert_int_eq(kedge_consistency_verify(m, n, &root, &old_root, p.hashes, p.count),
                             KEDGE_E_VERIFY);
            ck_assert_int_eq(kedge_consistency_verify(m, n, &old_root, &old_root, p.hashes, p.count),
                             KEDGE_E_VERIFY);
            ck_assert_int_eq(kedge_consistency_verify(m, n, &root, &root, p.hashes, p.count), KEDGE_E_VERIFY);
            ck_assert_int_eq(kedge_consistency_verify(m, m - 1, &old_root, &root, p.hashes, p.count),
                             KEDGE_E_VERIFY);
        }
    }
}
END_TEST

int main(void)
{
    setup();
    TCase *tc = tcase_create("merkle");
    tcase_set_timeout(tc, 100);
    tcase_add_test(tc, frontier_root_and_proofs_equal_the_oracle);
    tcase_add_test(tc, an_inclusion_proof_fits_nothing_else);
    tcase_add_test(tc, damaged_proofs_fail);
    tcase_add_test(tc, a_consistency_proof_fits_no_other_sizes_or_roots);
    Suite *s = suite_create("property/merkle");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
