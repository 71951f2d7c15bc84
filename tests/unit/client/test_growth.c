/* What an answer proves of the main chain: of one history, of two, without proof, unsigned; and what a site
 * keeps of it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/merkle.h"
#include "client/daemon/host.h"
#include "common/base/os/file.h"
#include "tests/fixtures/run.h"

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
        bool heals; /* a site that refused another one */
    } rows[] = {
        {{0, 99}, {9, 99}, NONE, KEDGE_OK, false, false},   /* nothing was seen: nothing to grow out of */
        {{9, 99}, {9, 99}, NONE, KEDGE_OK, false, true},    /* the same */
        {{9, 99}, {9, 3}, NONE, KEDGE_OK, true, false},     /* of the same size and another root */
        {{9, 99}, {8, 99}, NONE, KEDGE_OK, false, false},   /* smaller: the core judges */
        {{9, 99}, {12, 99}, HONEST, KEDGE_OK, false, true}, /* it grew */
        {{8, 99}, {9, 99}, HONEST, KEDGE_OK, false, true},  /* out of a whole subtree */
        {{9, 99}, {12, 99}, NONE, KEDGE_E_FORMAT, false, false}, /* without a proof: no answer, no evidence */
        {{8, 99}, {9, 99}, NONE, KEDGE_E_FORMAT, false, false},  /* … also out of a whole subtree */
        {{9, 99}, {12, 3}, NONE, KEDGE_E_FORMAT, false, false},  /* … though it is another history */
        {{9, 99}, {12, 3}, HONEST, KEDGE_OK, true, false},       /* the other history's own proof */
        {{9, 99}, {12, 99}, SPOILT, KEDGE_OK, true, false},
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
        const struct kedge_site_chain seen = chain_of(rows[_i].seen);
        ck_assert(kedge_client_heals(&seen, &ret, breaks) == rows[_i].heals);
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

static void put(const struct kedge_site_host *h, const char *name, struct kedge_view text)
{
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_client_path(h, path, "%s", name), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, text, 0600, NULL), KEDGE_OK);
}

static void check_file(const struct kedge_site_host *h, const char *name, struct kedge_view text)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf found;
    kedge_buf_init(&found, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_client_path(h, path, "%s", name), KEDGE_OK);
    ck_assert_int_eq(kedge_file_read(path, &found, NULL), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&found), text));
    kedge_buf_deinit(&found);
}

/* A seen-main that is too long for a note is forgotten; what is seen from then on is kept, and is the
 * evidence when another chain is shown. */
START_TEST(test_evidence_behind_a_damaged_memory)
{
    static const char seen[] = "what was seen\n", shown[] = "what was shown\n";
    static uint8_t too_long[KEDGE_NOTE_MAX + 1];
    struct kedge_site_host *h = calloc(1, sizeof *h);
    ck_assert_ptr_nonnull(h);
    memset(too_long, 'x', sizeof too_long);
    snprintf(h->dir, sizeof h->dir, "/tmp/kedge-seen-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(h->dir));
    put(h, "seen-main", kedge_view_of(too_long, sizeof too_long));
    kedge_client_seen_read(h);
    ck_assert(h->seen.size == 0 && h->fatal == KEDGE_OK);
    h->seen_note.err = KEDGE_E_TOO_LONG; /* as any reader may leave it */
    h->shown_note = kedge_view_str(seen);
    kedge_client_seen_keep(h, &(struct kedge_site_effect){.seen.size = 3});
    check_file(h, "seen-main", kedge_view_str(seen));
    h->shown_note = kedge_view_str(shown);
    kedge_client_seen_refuse(
        h, &(struct kedge_site_effect){.err = KEDGE_E_SHORTER, .seen.size = 3, .shown.size = 2});
    check_file(h, "refused-main/seen", kedge_view_str(seen));
    check_file(h, "refused-main/shown", kedge_view_str(shown));
    ck_assert_int_eq(h->fatal, KEDGE_E_SHORTER);
    kedge_buf_deinit(&h->seen_note);
    ck_assert_int_eq(kedge_dir_remove(h->dir), KEDGE_OK);
    free(h);
}
END_TEST

/* A bit of a root that turned is no second history: a site that knows the log's key begins anew. */
START_TEST(test_damaged_memory)
{
    struct kedge_site_host *h = calloc(1, sizeof *h);
    struct kedge_key_pair log = pair_of(1);
    struct kedge_hash root = {{7}};
    struct kedge_buf note;
    char path[KEDGE_PATH_MAX];
    ck_assert_ptr_nonnull(h);
    h->trust.known = true;
    ck_assert_int_eq(
        kedge_vkey_make(kedge_view_str(ORIGIN), KEDGE_KEY_ED25519, &log.public, &h->trust.main_log),
        KEDGE_OK);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(ORIGIN), 9, &root, &log, &note), KEDGE_OK);
    snprintf(h->dir, sizeof h->dir, "/tmp/kedge-seen-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(h->dir));
    ck_assert_int_eq(kedge_client_path(h, path, "seen-main"), KEDGE_OK);
    for (size_t bit = 0; bit <= 8 * note.len; bit++) { /* none at last */
        const bool turned = bit < 8 * note.len;
        note.ptr[turned ? bit / 8 : 0] ^= turned ? (uint8_t)(1U << bit % 8) : 0;
        ck_assert_int_eq(kedge_client_put_file(path, kedge_buf_view(&note)), KEDGE_OK);
        note.ptr[turned ? bit / 8 : 0] ^= turned ? (uint8_t)(1U << bit % 8) : 0;
        kedge_client_seen_read(h);
        ck_assert(h->seen.size == (turned ? 0 : 9) && h->fatal == KEDGE_OK);
        kedge_buf_deinit(&h->seen_note);
    }
    ck_assert_mem_eq(h->seen.root.b, root.b, sizeof root.b);
    kedge_buf_deinit(&note);
    ck_assert_int_eq(kedge_dir_remove(h->dir), KEDGE_OK);
    free(h);
}
END_TEST

/* ---- working files ---- */

static void put_work(const struct kedge_client_work *w, const char *kind, uint8_t byte, const char *behind,
                     bool is_there)
{
    struct kedge_site_digest digest;
    char path[KEDGE_PATH_MAX];
    memset(digest.b, byte, sizeof digest.b);
    ck_assert_int_eq(kedge_client_work_path(w, kind, &digest, path), KEDGE_OK);
    ck_assert_uint_lt(strlen(path) + strlen(behind), sizeof path);
    memcpy(path + strlen(path), behind, strlen(behind) + 1);
    if (is_there) {
        ck_assert_msg(kedge_file_exists(path), "%s", path);
    } else {
        ck_assert_int_eq(kedge_file_write(path, kedge_view_str("x"), 0600, NULL), KEDGE_OK);
    }
}

START_TEST(models_of_other_tasks_go)
{
    struct kedge_site_host *h = calloc(1, sizeof *h);
    struct kedge_client_work *w = &h->works[0], *other = &h->works[1];
    struct kedge_site_digest keep[2];
    w->h = other->h = h;
    other->index = 1;
    char path[KEDGE_PATH_MAX];
    (void)snprintf(h->dir, sizeof h->dir, "/tmp/kedge-work-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(h->dir));
    ck_assert_int_eq(kedge_path_join(path, h->dir, "work"), KEDGE_OK);
    ck_assert_int_eq(kedge_dir_make(path, 0700, NULL), KEDGE_OK);
    for (uint8_t b = 1; b <= 4; b++) {
        put_work(w, "model", b, "", false);
    }
    put_work(w, "model", 5, ".part", false);
    put_work(w, "model", 2, ".part", false);
    put_work(w, "models", 1, "", false);
    put_work(w, "update", 1, "", false);
    ck_assert_int_eq(kedge_client_work_file(other, "", path), KEDGE_OK);
    ck_assert_int_eq(kedge_dir_make(path, 0700, NULL), KEDGE_OK);
    put_work(other, "model", 1, "", false); /* of another task at once: nothing to do with this one */
    memset(keep[0].b, 2, sizeof keep[0].b);
    memset(keep[1].b, 4, sizeof keep[1].b);
    kedge_client_work_trim(w, "model", keep, 2);
    put_work(other, "model", 1, "", true);
    put_work(w, "model", 2, "", true);
    put_work(w, "model", 4, "", true);
    put_work(w, "model", 2, ".part", true);
    put_work(w, "models", 1, "", true);
    put_work(w, "update", 1, "", true);
    for (uint8_t b = 1; b <= 5; b += 2) {
        struct kedge_site_digest gone;
        memset(gone.b, b, sizeof gone.b);
        ck_assert_int_eq(kedge_client_work_path(w, "model", &gone, path), KEDGE_OK);
        ck_assert(!kedge_file_exists(path));
        memcpy(path + strlen(path), ".part", sizeof ".part");
        ck_assert(!kedge_file_exists(path));
    }
    kedge_client_work_trim(w, "model", NULL, 0);
    ck_assert_int_eq(kedge_client_work_path(w, "model", &keep[0], path), KEDGE_OK);
    ck_assert(!kedge_file_exists(path));
    ck_assert_int_eq(kedge_dir_remove(h->dir), KEDGE_OK);
    free(h);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("growth");
    tcase_add_test(tc, test_evidence_behind_a_damaged_memory);
    tcase_add_test(tc, test_damaged_memory);
    tcase_add_loop_test(tc, test_growth, 0, 11);
    tcase_add_test(tc, test_signed_by_another);
    tcase_add_test(tc, models_of_other_tasks_go);
    Suite *s = suite_create("client/growth");
    suite_add_tcase(s, tc);
    return run_suite(s);
}
