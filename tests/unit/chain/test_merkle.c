/* The Merkle tree against published roots, proofs and mutations, and against the frontier's own algebra. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/lines.h"
#include "chain/log/merkle.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"

/* The eight leaves of google/certificate-transparency and the root of each size (ledger reference, RFC 6962).
 */
static const char *const leaves[] = {
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"};
static const char *const roots[] = {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                                    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                                    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
                                    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
                                    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
                                    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
                                    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
                                    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
                                    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};

static void assert_hash(const struct kedge_hash *h, const char *hex)
{
    char text[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(h, text);
    ck_assert_str_eq(text, hex);
}

START_TEST(roots_of_the_reference_leaves)
{
    struct kedge_frontier f = {0};
    struct kedge_hash h;
    for (size_t i = 0; i <= 8; i++) {
        kedge_frontier_root(&f, &h);
        assert_hash(&h, roots[i]);
        if (i == 8) {
            break;
        }
        uint8_t entry[16];
        size_t len = strlen(leaves[i]) / 2;
        ck_assert_int_eq(kedge_hex_decode(kedge_view_str(leaves[i]), entry, len), KEDGE_OK);
        kedge_merkle_leaf(kedge_view_of(entry, len), &h);
        ck_assert_int_eq(kedge_frontier_append(&f, &h), KEDGE_OK);
    }
}
END_TEST

START_TEST(frontier_survives_its_encoding_and_refuses_others)
{
    struct kedge_frontier f = {0};
    for (uint32_t i = 0; i < 300; i++) {
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&b, 4096);
        kedge_frontier_encode(&f, &b);
        struct kedge_frontier g;
        ck_assert_int_eq(kedge_frontier_decode(kedge_buf_view(&b), &g), KEDGE_OK);
        ck_assert_uint_eq(g.size, f.size);
        struct kedge_hash a, c;
        kedge_frontier_root(&f, &a);
        kedge_frontier_root(&g, &c);
        ck_assert(kedge_hash_eq(&a, &c));
        ck_assert_int_eq(kedge_frontier_decode(kedge_view_of(b.ptr, b.len - 1), &g), KEDGE_E_FORMAT);
        kedge_buf_put_u8(&b, 0);
        ck_assert_int_eq(kedge_frontier_decode(kedge_buf_view(&b), &g), KEDGE_E_FORMAT);
        kedge_merkle_leaf(kedge_view_of(&i, sizeof i), &a);
        ck_assert_int_eq(kedge_frontier_append(&f, &a), KEDGE_OK);
    }
    static struct kedge_frontier full;
    full.size = KEDGE_TREE_SIZE_MAX;
    struct kedge_hash leaf = {{1}};
    ck_assert_int_eq(kedge_frontier_append(&full, &leaf), KEDGE_E_FULL);
    ck_assert_uint_eq(full.size, KEDGE_TREE_SIZE_MAX);
    static const uint8_t too_large[8] = {0x80};
    ck_assert_int_eq(kedge_frontier_decode(kedge_view_of(too_large, 8), &full), KEDGE_E_FORMAT);
}
END_TEST

/* A log in memory: hashes of all complete subtrees, by level. */
enum { LEVELS = 18 };
struct log {
    struct kedge_hash *levels[LEVELS];
    uint64_t size;
};

static void log_build(struct log *log, const struct kedge_hash *leaf_hashes, uint64_t size)
{
    log->size = size;
    for (unsigned level = 0; level < LEVELS; level++) {
        uint64_t count = size >> level;
        log->levels[level] = kedge_mem_new(count, sizeof(struct kedge_hash));
        ck_assert_ptr_nonnull(log->levels[level]);
        for (uint64_t i = 0; i < count; i++) {
            if (level == 0) {
                log->levels[0][i] = leaf_hashes[i];
            } else {
                kedge_merkle_node(&log->levels[level - 1][2 * i], &log->levels[level - 1][2 * i + 1],
                                  &log->levels[level][i]);
            }
        }
    }
}

static void log_free(struct log *log)
{
    for (unsigned level = 0; level < LEVELS; level++) {
        kedge_mem_free(log->levels[level]);
    }
}

static int log_get(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret)
{
    const struct log *log = arg;
    ck_assert_uint_lt(level, LEVELS);
    ck_assert_uint_lt(index, log->size >> level);
    *ret = log->levels[level][index];
    return KEDGE_OK;
}

static void log_of_entries(struct log *log, uint64_t size)
{
    struct kedge_hash *h = kedge_mem_new(size, sizeof *h);
    ck_assert_ptr_nonnull(h);
    for (uint64_t i = 0; i < size; i++) {
        char text[32];
        int n = snprintf(text, sizeof text, "entry-%llu", (unsigned long long)i);
        kedge_merkle_leaf(kedge_view_of(text, (size_t)n), &h[i]);
    }
    log_build(log, h, size);
    kedge_mem_free(h);
}

static void log_of_reference_leaves(struct log *log)
{
    struct kedge_hash h[8];
    for (size_t i = 0; i < 8; i++) {
        uint8_t entry[16];
        size_t len = strlen(leaves[i]) / 2;
        ck_assert_int_eq(kedge_hex_decode(kedge_view_str(leaves[i]), entry, len), KEDGE_OK);
        kedge_merkle_leaf(kedge_view_of(entry, len), &h[i]);
    }
    log_build(log, h, 8);
}

static void assert_path(const struct kedge_path *path, struct kedge_view list)
{
    struct kedge_hash want[KEDGE_PROOF_MAX];
    size_t count = vector_hashes(list, want, KEDGE_PROOF_MAX);
    ck_assert_uint_eq(path->count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert(kedge_hash_eq(&path->hashes[i], &want[i]));
    }
}

static void check_inclusion_file(const char *name, struct log *log)
{
    struct vector_table t = vector_table_open(name);
    size_t rows = 0;
    while (vector_table_next(&t)) {
        uint64_t index = vector_u64(t.columns[0]);
        uint64_t size = vector_u64(t.columns[1]);
        struct kedge_hash leaf = vector_hash(t.columns[2]);
        struct kedge_hash want = vector_hash(t.columns[3]);
        struct kedge_hash root;
        struct kedge_path path;
        ck_assert_int_eq(kedge_merkle_root(log_get, log, size, &root), KEDGE_OK);
        ck_assert(kedge_hash_eq(&root, &want));
        ck_assert(kedge_hash_eq(&leaf, &log->levels[0][index]));
        ck_assert_int_eq(kedge_inclusion_prove(log_get, log, index, size, &path), KEDGE_OK);
        assert_path(&path, t.columns[4]);
        ck_assert_int_eq(kedge_inclusion_verify(index, size, &leaf, path.hashes, path.count, &root),
                         KEDGE_OK);
        rows++;
    }
    ck_assert_uint_gt(rows, 0);
    vector_table_close(&t);
}

static void check_consistency_file(const char *name, struct log *log)
{
    struct vector_table t = vector_table_open(name);
    size_t rows = 0;
    while (vector_table_next(&t)) {
        uint64_t m = vector_u64(t.columns[0]);
        uint64_t n = vector_u64(t.columns[1]);
        struct kedge_hash root_m = vector_hash(t.columns[2]);
        struct kedge_hash root_n = vector_hash(t.columns[3]);
        struct kedge_path path;
        ck_assert_int_eq(kedge_consistency_prove(log_get, log, m, n, &path), KEDGE_OK);
        assert_path(&path, t.columns[4]);
        ck_assert_int_eq(kedge_consistency_verify(m, n, &root_m, &root_n, path.hashes, path.count), KEDGE_OK);
        rows++;
    }
    ck_assert_uint_gt(rows, 0);
    vector_table_close(&t);
}

START_TEST(published_proofs_come_out_byte_for_byte)
{
    if (!vectors_present()) {
        return;
    }
    struct log log;
    log_of_reference_leaves(&log);
    check_inclusion_file("merkle/reference_inclusion.tsv", &log);
    check_consistency_file("merkle/reference_consistency.tsv", &log);
    log_free(&log);
    log_of_entries(&log, 70000);
    check_inclusion_file("merkle/entries_inclusion.tsv", &log);
    check_consistency_file("merkle/entries_consistency.tsv", &log);
    struct vector_table t = vector_table_open("merkle/entries_roots.tsv");
    while (vector_table_next(&t)) {
        struct kedge_hash want = vector_hash(t.columns[1]);
        struct kedge_hash root;
        ck_assert_int_eq(kedge_merkle_root(log_get, &log, vector_u64(t.columns[0]), &root), KEDGE_OK);
        ck_assert(kedge_hash_eq(&root, &want));
    }
    vector_table_close(&t);
    log_free(&log);
}
END_TEST

/* Hashes that are not 32 bytes cannot even be written down here: such cases must be negative. */
static bool is_hash_list(struct kedge_view list)
{
    struct kedge_view head;
    while (kedgei_cut(&list, ',', &head)) {
        if (head.len != KEDGE_HASH_HEX_LEN) {
            return false;
        }
    }
    return vector_is(list, "-") || list.len == KEDGE_HASH_HEX_LEN;
}

static bool is_expressible(const struct vector_table *t)
{
    if (is_hash_list(t->columns[3]) && is_hash_list(t->columns[4]) && is_hash_list(t->columns[5])) {
        return true;
    }
    ck_assert(vector_is(t->columns[6], "reject"));
    return false;
}

START_TEST(upstream_cases_get_their_verdicts)
{
    if (!vectors_present()) {
        return;
    }
    size_t rows = 0;
    struct vector_table t = vector_table_open("merkle/upstream_inclusion.tsv");
    while (vector_table_next(&t)) {
        if (vector_is(t.columns[6], "skip")) {
            continue;
        }
        rows++;
        if (!is_expressible(&t)) {
            continue;
        }
        struct kedge_hash leaf = vector_hash(t.columns[3]);
        struct kedge_hash root = vector_hash(t.columns[4]);
        struct kedge_hash path[KEDGE_PROOF_MAX];
        size_t count = vector_hashes(t.columns[5], path, KEDGE_PROOF_MAX);
        int err = kedge_inclusion_verify(vector_u64(t.columns[1]), vector_u64(t.columns[2]), &leaf, path,
                                         count, &root);
        ck_assert_msg(err == (vector_is(t.columns[6], "accept") ? KEDGE_OK : KEDGE_E_VERIFY),
                      "inclusion %.*s", (int)t.columns[0].len, (const char *)t.columns[0].ptr);
    }
    vector_table_close(&t);
    t = vector_table_open("merkle/upstream_consistency.tsv");
    while (vector_table_next(&t)) {
        if (vector_is(t.columns[6], "skip")) {
            continue;
        }
        rows++;
        if (!is_expressible(&t)) {
            continue;
        }
        struct kedge_hash root_m = vector_hash(t.columns[3]);
        struct kedge_hash root_n = vector_hash(t.columns[4]);
        struct kedge_hash path[KEDGE_PROOF_MAX];
        size_t count = vector_hashes(t.columns[5], path, KEDGE_PROOF_MAX);
        int err = kedge_consistency_verify(vector_u64(t.columns[1]), vector_u64(t.columns[2]), &root_m,
                                           &root_n, path, count);
        ck_assert_msg(err == (vector_is(t.columns[6], "accept") ? KEDGE_OK : KEDGE_E_VERIFY),
                      "consistency %.*s", (int)t.columns[0].len, (const char *)t.columns[0].ptr);
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 195);
}
END_TEST

static int get_fails(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret)
{
    (void)arg, (void)level, (void)index, (void)ret;
    return KEDGE_E_IO;
}

START_TEST(generation_refuses_what_is_out_of_range_and_hands_errors_on)
{
    struct log log;
    log_of_reference_leaves(&log);
    struct kedge_path path = {.count = 77};
    struct kedge_hash h = {{9}};
    ck_assert_int_eq(kedge_inclusion_prove(log_get, &log, 8, 8, &path), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_inclusion_prove(log_get, &log, 0, 0, &path), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_inclusion_prove(log_get, &log, 0, UINT64_MAX, &path), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_consistency_prove(log_get, &log, 0, 8, &path), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_consistency_prove(log_get, &log, 9, 8, &path), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_inclusion_prove(get_fails, NULL, 3, 8, &path), KEDGE_E_IO);
    ck_assert_int_eq(kedge_consistency_prove(get_fails, NULL, 3, 8, &path), KEDGE_E_IO);
    ck_assert_int_eq(kedge_merkle_root(get_fails, NULL, 8, &h), KEDGE_E_IO);
    ck_assert_int_eq(kedge_merkle_root(get_fails, NULL, UINT64_MAX, &h), KEDGE_E_ARG);
    ck_assert_uint_eq(path.count, 77);
    ck_assert_uint_eq(h.b[0], 9);
    ck_assert_int_eq(kedge_consistency_prove(get_fails, NULL, 8, 8, &path), KEDGE_OK);
    ck_assert_uint_eq(path.count, 0);
    log_free(&log);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("merkle");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, roots_of_the_reference_leaves);
    tcase_add_test(tc, frontier_survives_its_encoding_and_refuses_others);
    tcase_add_test(tc, published_proofs_come_out_byte_for_byte);
    tcase_add_test(tc, upstream_cases_get_their_verdicts);
    tcase_add_test(tc, generation_refuses_what_is_out_of_range_and_hands_errors_on);
    Suite *s = suite_create("chain/merkle");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
