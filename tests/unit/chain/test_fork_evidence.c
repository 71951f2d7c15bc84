/* Evidence of forks: real ones are proven, honest logs cannot be framed, one spelling. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/fork_evidence.h"
#include "common/base/mem.h"
#include "tests/unit/chain/vectors.h"
#include "tests/unit/chain/witnesses.h"

enum { LEAVES = 24 };

/* Two histories of one log: the second differs from leaf `fork` on. */
struct history {
    uint64_t size, fork;
};

static struct kedge_hash leaf_of(uint64_t fork, uint64_t i)
{
    struct kedge_hash h;
    uint8_t entry[2] = {i >= fork, (uint8_t)i};
    kedge_merkle_leaf(kedge_view_of(entry, sizeof entry), &h);
    return h;
}

static int get(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret)
{
    struct kedge_frontier f = {0};
    for (uint64_t i = index << level; i < (index + 1) << level; i++) {
        struct kedge_hash leaf = leaf_of(((const struct history *)arg)->fork, i);
        ck_assert_int_eq(kedge_frontier_append(&f, &leaf), KEDGE_OK);
    }
    kedge_frontier_root(&f, ret);
    return KEDGE_OK;
}

static struct kedge_hash root_of(struct history h)
{
    struct kedge_hash root;
    ck_assert_int_eq(kedge_merkle_root(get, &h, h.size, &root), KEDGE_OK);
    return root;
}

static struct kedge_buf note_by(struct kedge_key_pair pair, struct history h, const char *origin)
{
    struct kedge_hash root = root_of(h);
    struct kedge_buf b;
    kedge_buf_init(&b, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(origin), h.size, &root, &pair, &b), KEDGE_OK);
    return b;
}

static struct kedge_buf note_of(struct history h, const char *origin)
{
    return note_by(pair_of_witness(0), h, origin);
}

/* Evidence that old and new are of two histories, in new's words; free by kedge_buf_deinit. */
static struct kedge_buf evidence_of(struct history old, struct history new)
{
    struct kedge_buf a = note_of(old, WITNESSES_LOG), b = note_of(new, WITNESSES_LOG), text;
    struct kedge_path path;
    kedge_buf_init(&text, KEDGE_FORK_EVIDENCE_MAX);
    if (old.size != new.size) {
        ck_assert_int_eq(kedge_consistency_prove_explicit(get, &new, old.size, new.size, &path), KEDGE_OK);
    }
    ck_assert_int_eq(kedge_fork_evidence_encode(kedge_buf_view(&b), kedge_buf_view(&a),
                                                old.size != new.size ? &path : NULL, &text),
                     KEDGE_OK);
    kedge_buf_deinit(&a);
    kedge_buf_deinit(&b);
    return text;
}

static int verify(struct kedge_view text, struct kedge_hash *ret_actual, struct kedge_diag *diag)
{
    struct kedge_vkey key = vkey_of(0);
    struct kedge_fork_evidence e;
    int err = kedge_fork_evidence_decode(text, &e);
    if (err) {
        return err;
    }
    if (e.old_checkpoint.size != e.new_checkpoint.size) { /* equal ones keep the order they were given in */
        struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&again, KEDGE_FORK_EVIDENCE_MAX);
        ck_assert_int_eq(kedge_fork_evidence_encode(e.new_note, e.old_note, &e.path, &again), KEDGE_OK);
        ck_assert(kedge_view_eq(kedge_buf_view(&again), text));
    }
    return kedge_fork_evidence_verify(&e, &key, 1, ret_actual, diag);
}

START_TEST(every_fork_is_proven_and_every_honest_pair_is_not)
{
    for (uint64_t n = 1; n <= LEAVES; n++) {
        for (uint64_t m = 1; m <= n; m++) {
            for (uint64_t fork = 0; fork <= n; fork += 3) {
                struct history old = {m, LEAVES}, new = {n, fork}, new_at_m = {m, fork};
                struct kedge_buf text = evidence_of(old, new);
                struct kedge_hash actual, want = root_of(new_at_m);
                struct kedge_diag diag;
                int err = verify(kedge_buf_view(&text), &actual, &diag);
                ck_assert_int_eq(err, fork < m ? KEDGE_OK : KEDGE_E_VERIFY);
                if (err) {
                    ck_assert_ptr_nonnull(strstr(diag.text, "are consistent"));
                } else if (m < n) {
                    ck_assert(kedge_hash_eq(&actual, &want));
                }
                kedge_buf_deinit(&text);
            }
        }
    }
}
END_TEST

/* Any bit of the path, and of the signed texts, decides: nothing that was changed frames the log. */
START_TEST(an_honest_log_cannot_be_framed)
{
    struct kedge_buf text = evidence_of((struct history){5, LEAVES}, (struct history){13, LEAVES});
    size_t tried = 0, decoded = 0;
    for (size_t i = 0; i < text.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            text.ptr[i] ^= (uint8_t)(1u << bit);
            struct kedge_diag diag;
            int err = verify(kedge_buf_view(&text), NULL, &diag);
            ck_assert(err == KEDGE_E_VERIFY || err == KEDGE_E_FORMAT);
            decoded += err == KEDGE_E_VERIFY ? 1 : 0;
            tried++;
            text.ptr[i] ^= (uint8_t)(1u << bit);
        }
    }
    ck_assert(tried == text.len * 8 && decoded > 100);
    kedge_buf_deinit(&text);
}
END_TEST

START_TEST(what_is_wrong_is_said)
{
    struct history honest = {4, LEAVES}, forked = {9, 2}, same = {4, 1};
    struct kedge_vkey key = vkey_of(0), other_key = vkey_of(0);
    struct kedge_key_pair pair = pair_of(9);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str("other"), KEDGE_KEY_ED25519, &pair.public, &other_key),
                     KEDGE_OK);
    struct kedge_buf a = note_of(honest, WITNESSES_LOG), b = note_of(forked, WITNESSES_LOG);
    struct kedge_buf c = note_of(forked, "elsewhere"), d = note_of(same, WITNESSES_LOG);
    struct kedge_buf forged = note_by(pair, forked, WITNESSES_LOG);
    struct kedge_path path, short_path, wrong_path;
    ck_assert_int_eq(kedge_consistency_prove_explicit(get, &forked, 4, 9, &path), KEDGE_OK);
    short_path = wrong_path = path;
    short_path.count--;
    wrong_path.hashes[path.count - 1].b[0] ^= 1;
    const struct {
        const struct kedge_buf *note;
        const struct kedge_path *path;
        const struct kedge_vkey *key;
        const char *said; /* NULL: proven */
    } cases[] = {
        {&b, &path, &key, NULL},
        {&d, NULL, &key, NULL},
        {&c, &path, &key, "of two origins"},
        {&b, &path, &other_key, "size 4 is not validly signed"},
        {&forged, &path, &key, "size 9 is not validly signed"},
        {&b, &short_path, &key, "does not lead from size 4 to 9"},
        {&b, &wrong_path, &key, "does not rebuild the root signed for size 9"},
        {&a, NULL, &key, "sizes 4 and 4 are consistent"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&text, KEDGE_FORK_EVIDENCE_MAX);
        struct kedge_fork_evidence e;
        struct kedge_diag diag = {0};
        struct kedge_hash actual;
        ck_assert_int_eq(kedge_fork_evidence_encode(kedge_buf_view(&a), kedge_buf_view(cases[i].note),
                                                    cases[i].path, &text),
                         KEDGE_OK);
        ck_assert_int_eq(kedge_fork_evidence_decode(kedge_buf_view(&text), &e), KEDGE_OK);
        int err = kedge_fork_evidence_verify(&e, cases[i].key, 1, &actual, &diag);
        ck_assert_int_eq(err, cases[i].said ? KEDGE_E_VERIFY : KEDGE_OK);
        ck_assert_msg(!cases[i].said || strstr(diag.text, cases[i].said), "%s", diag.text);
        ck_assert_int_eq(kedge_fork_evidence_verify(&e, NULL, 0, NULL, NULL), KEDGE_E_VERIFY);
        if (!err) {
            kedge_buf_clear(&text);
            kedge_fork_evidence_describe(&e, &actual, &text);
            kedge_buf_put_u8(&text, '\0');
            ck_assert_ptr_nonnull(
                strstr((const char *)text.ptr, "\"" WITNESSES_LOG "\" signed two histories"));
        }
    }
    kedge_buf_deinit(&a);
    kedge_buf_deinit(&b);
    kedge_buf_deinit(&c);
    kedge_buf_deinit(&d);
    kedge_buf_deinit(&forged);
}
END_TEST

START_TEST(only_the_one_spelling_is_read)
{
    struct kedge_buf text = evidence_of((struct history){4, LEAVES}, (struct history){9, 2});
    struct kedge_fork_evidence e;
    memset(&e, 0x5a, sizeof e);
    for (size_t len = 0; len < text.len; len++) {
        ck_assert_int_eq(kedge_fork_evidence_decode(kedge_view_of(text.ptr, len), &e), KEDGE_E_FORMAT);
    }
    ck_assert_uint_eq(e.path.count, 0x5a5a5a5a);
    ck_assert_int_eq(kedge_fork_evidence_decode(kedge_buf_view(&text), &e), KEDGE_OK);
    /* Notes in the wrong order, a path where sizes are equal, none where they differ, too much of it. */
    struct kedge_buf bad KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&bad, KEDGE_FORK_EVIDENCE_MAX + 1);
    static const char first[] = "kedge.dev/fork-evidence@v1\n";
    static const char hash[] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    const struct {
        struct kedge_view a, b;
        unsigned hashes;
        int err;
    } cases[] = {{e.old_note, e.new_note, 1, KEDGE_OK},       {e.new_note, e.old_note, 1, KEDGE_E_FORMAT},
                 {e.old_note, e.new_note, 0, KEDGE_E_FORMAT}, {e.old_note, e.old_note, 1, KEDGE_E_FORMAT},
                 {e.old_note, e.old_note, 0, KEDGE_OK},       {e.old_note, e.new_note, 64, KEDGE_OK},
                 {e.old_note, e.new_note, 65, KEDGE_E_FORMAT}};
    struct kedge_fork_evidence out;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kedge_buf_clear(&bad);
        kedge_buf_put_str(&bad, first);
        for (unsigned j = 0; j < cases[i].hashes; j++) {
            kedge_buf_put_str(&bad, hash);
        }
        kedge_buf_put_u8(&bad, '\n');
        kedge_buf_put(&bad, cases[i].a.ptr, cases[i].a.len);
        kedge_buf_put_u8(&bad, '\n');
        kedge_buf_put(&bad, cases[i].b.ptr, cases[i].b.len);
        ck_assert_msg(kedge_fork_evidence_decode(kedge_buf_view(&bad), &out) == cases[i].err, "case %zu", i);
    }
    /* The encoder refuses what the decoder would. */
    struct kedge_path one = {.count = 1}, none = {0};
    size_t len = bad.len;
    ck_assert_int_eq(kedge_fork_evidence_encode(e.old_note, e.new_note, NULL, &bad), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_fork_evidence_encode(e.old_note, e.new_note, &none, &bad), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_fork_evidence_encode(e.old_note, e.old_note, &one, &bad), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_fork_evidence_encode(e.old_note, kedge_view_str("x\n"), &one, &bad),
                     KEDGE_E_FORMAT);
    ck_assert_uint_eq(bad.len, len);
    kedge_buf_deinit(&text);
}
END_TEST

START_TEST(any_allocation_may_fail)
{
    struct kedge_buf text = evidence_of((struct history){4, LEAVES}, (struct history){9, 2});
    int err = KEDGE_E_NOMEM;
    for (long n = 1; err && n < 100; n++) {
        struct kedge_diag diag;
        kedge_mem_fail_at(n);
        struct kedge_vkey key = vkey_of(0);
        struct kedge_fork_evidence e;
        err = kedge_fork_evidence_decode(kedge_buf_view(&text), &e);
        err = err ? err : kedge_fork_evidence_verify(&e, &key, 1, NULL, &diag);
        kedge_mem_fail_at(0);
        ck_assert(err == KEDGE_OK ? n > 6 : err == KEDGE_E_NOMEM);
    }
    ck_assert_int_eq(err, KEDGE_OK);
    kedge_buf_deinit(&text);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("fork_evidence");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, every_fork_is_proven_and_every_honest_pair_is_not);
    tcase_add_test(tc, an_honest_log_cannot_be_framed);
    tcase_add_test(tc, what_is_wrong_is_said);
    tcase_add_test(tc, only_the_one_spelling_is_read);
    tcase_add_test(tc, any_allocation_may_fail);
    Suite *s = suite_create("chain/fork_evidence");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
