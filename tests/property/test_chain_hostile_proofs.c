/* Two million hostile proofs: mutants of inclusion and consistency proofs, receipts and cosigned checkpoints.
 * A mutant may pass only where it says what the honest original for the same question says: then it is one.
 * The size of a tree is not in its root but beside it in the signed checkpoint, so (size, root) change
 * together, as a liar would have to have them signed. SEED=n replays; MUTANTS=n sets the number (sanitizers:
 * a tenth). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/cosignature.h"
#include "chain/log/proof.h"
#include "common/base/rng.h"
#include "common/base/text.h"
#include "tests/fixtures/effort.h"

enum { LEVELS = 11, LEAVES = 1 << LEVELS, TEXT_MAX = 4096, WITNESSES = 2, TIME = 1767225600 };
#define ORIGIN "fl.example.org/tenant-a"
enum { MUTANTS = EFFORT(2000000, 200000) };

static struct kedge_hash tree[LEVELS + 1][LEAVES]; /* complete subtrees by level */
static struct kedge_hash roots[LEAVES + 1];        /* by size */
static struct kedge_rng rng;
static uint64_t mutants = MUTANTS;

struct counts {
    uint64_t tried, honest, malformed; /* honest: came out as an original, and passed as it must */
};

static void report(const char *what, const struct counts *c)
{
    printf("%s: %llu mutants, %llu malformed, %llu turned out honest, 0 of the rest verified\n", what,
           (unsigned long long)c->tried, (unsigned long long)c->malformed, (unsigned long long)c->honest);
    ck_assert_uint_gt(c->tried, 8 * c->honest); /* else the mutants are no mutants */
}

static uint64_t below(uint64_t n)
{
    return kedge_rng_below(&rng, n);
}

static int get(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret)
{
    (void)arg;
    if (level > LEVELS || index >= (uint64_t)LEAVES >> level) { /* ck_assert reports each success, too */
        ck_abort_msg("asked beyond the tree");
    }
    *ret = tree[level][index];
    return KEDGE_OK;
}

static void setup(void)
{
    uint64_t seed = 1;
    const char *text = getenv("SEED");
    const char *number = getenv("MUTANTS");
    if ((text && kedge_decimal_decode(kedge_view_str(text), UINT64_MAX, &seed) != KEDGE_OK)
        || (number && kedge_decimal_decode(kedge_view_str(number), UINT32_MAX, &mutants) != KEDGE_OK)) {
        ck_abort_msg("SEED or MUTANTS is not a number");
    }
    printf("SEED=%llu\n", (unsigned long long)seed);
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 2, 0);
    for (uint32_t i = 0; i < LEAVES; i++) {
        kedge_merkle_leaf(kedge_view_of(&i, sizeof i), &tree[0][i]);
    }
    for (unsigned level = 1; level <= LEVELS; level++) {
        for (size_t i = 0; i < (size_t)LEAVES >> level; i++) {
            kedge_merkle_node(&tree[level - 1][2 * i], &tree[level - 1][2 * i + 1], &tree[level][i]);
        }
    }
    for (uint64_t n = 0; n <= LEAVES; n++) {
        ck_assert_int_eq(kedge_merkle_root(get, NULL, n, &roots[n]), KEDGE_OK);
    }
}

/* Sizes of all magnitudes, 1…LEAVES. */
static uint64_t any_size(void)
{
    uint64_t n = 1 + below((uint64_t)2 << below(LEVELS + 1));
    return n > LEAVES ? LEAVES : n;
}

static bool is_same_path(const struct kedge_path *a, const struct kedge_path *b)
{
    return a->count == b->count
           && (a->count == 0 || memcmp(a->hashes, b->hashes, a->count * sizeof a->hashes[0]) == 0);
}

static void flip_bit(struct kedge_hash *h)
{
    h->b[below(KEDGE_HASH_LEN)] ^= (uint8_t)(1u << below(8));
}

static struct kedge_hash noise(void)
{
    struct kedge_hash h;
    for (size_t i = 0; i < sizeof h.b; i++) {
        h.b[i] = (uint8_t)below(256);
    }
    return h;
}

/* A hash that a liar may have at hand: a node, a root, noise, or the empty tree's. */
static struct kedge_hash any_hash(void)
{
    struct kedge_hash h;
    unsigned level = (unsigned)below(LEVELS + 1);
    switch (below(4)) {
    case 0:
        return tree[level][below((uint64_t)LEAVES >> level)];
    case 1:
        return roots[below(LEAVES + 1)];
    case 2:
        kedge_merkle_empty_root(&h);
        return h;
    default:
        return noise();
    }
}

/* transparency-dev/merkle's list of ways, and a few. */
static void damage_path(struct kedge_path *p)
{
    uint32_t at = (uint32_t)below(p->count + (uint64_t)1);
    switch (below(6)) {
    case 0: /* insert */
        if (p->count < KEDGE_PROOF_MAX) {
            memmove(&p->hashes[at + 1], &p->hashes[at], (p->count - at) * sizeof p->hashes[0]);
            p->hashes[at] = any_hash();
            p->count++;
        }
        return;
    case 1: /* remove */
        if (at < p->count) {
            memmove(&p->hashes[at], &p->hashes[at + 1], (p->count - at - 1) * sizeof p->hashes[0]);
            p->count--;
        }
        return;
    case 2: /* swap */
        if (p->count > 1) {
            uint32_t other = (uint32_t)below(p->count);
            at = at < p->count ? at : 0;
            struct kedge_hash h = p->hashes[at];
            p->hashes[at] = p->hashes[other];
            p->hashes[other] = h;
        }
        return;
    case 3: /* replace */
        if (at < p->count) {
            p->hashes[at] = any_hash();
        }
        return;
    case 4: /* cut short */
        p->count = at;
        return;
    default:
        if (at < p->count) {
            flip_bit(&p->hashes[at]);
        }
    }
}

static uint64_t damage_number(uint64_t v)
{
    switch (below(6)) {
    case 0:
        return v + 1;
    case 1:
        return v - 1; /* may wrap: hostile, too */
    case 2:
        return v ^ 2;
    case 3:
        return v * 2;
    case 4:
        return v / 2;
    default:
        return kedge_rng_u64(&rng) >> below(64);
    }
}

START_TEST(hostile_inclusion_proofs_fail)
{
    struct counts c = {0};
    while (c.tried < mutants * 45 / 100) {
        uint64_t n = any_size(), i = below(n);
        struct kedge_path original;
        ck_assert_int_eq(kedge_inclusion_prove(get, NULL, i, n, &original), KEDGE_OK);
        for (unsigned k = 0; k < 16; k++, c.tried++) {
            struct kedge_path path = original;
            struct kedge_hash leaf = tree[0][i], root = roots[n];
            uint64_t size = n, index = i;
            for (uint64_t times = 1 + below(2); times > 0; times--) {
                switch (below(8)) {
                case 0:
                    index = damage_number(index);
                    break;
                case 1:
                    leaf = any_hash();
                    break;
                case 2:
                    flip_bit(&leaf);
                    break;
                case 3:
                    root = noise();
                    break;
                case 4: /* another checkpoint of the log */
                    size = any_size();
                    root = roots[size];
                    break;
                default:
                    damage_path(&path);
                }
            }
            if (kedge_inclusion_verify(index, size, &leaf, path.hashes, path.count, &root) == KEDGE_OK) {
                struct kedge_path honest;
                ck_assert(index < size && kedge_hash_eq(&root, &roots[size]));
                ck_assert(kedge_hash_eq(&leaf, &tree[0][index]));
                ck_assert_int_eq(kedge_inclusion_prove(get, NULL, index, size, &honest), KEDGE_OK);
                ck_assert(is_same_path(&path, &honest));
                c.honest++;
            }
        }
    }
    report("inclusion proofs", &c);
}
END_TEST

START_TEST(hostile_consistency_proofs_fail)
{
    struct counts c = {0};
    while (c.tried < mutants * 40 / 100) {
        uint64_t n = any_size(), m = 1 + below(n);
        struct kedge_path original;
        ck_assert_int_eq(kedge_consistency_prove(get, NULL, m, n, &original), KEDGE_OK);
        for (unsigned k = 0; k < 16; k++, c.tried++) {
            struct kedge_path path = original;
            struct kedge_hash old_root = roots[m], root = roots[n];
            uint64_t old_size = m, size = n;
            for (uint64_t times = 1 + below(2); times > 0; times--) {
                switch (below(8)) {
                case 0:
                    old_size = any_size();
                    old_root = roots[old_size];
                    break;
                case 1:
                    size = any_size();
                    root = roots[size];
                    break;
                case 2:
                    old_root = noise();
                    break;
                case 3:
                    root = noise();
                    break;
                case 4: /* one root for both */
                    root = old_root;
                    break;
                default:
                    damage_path(&path);
                }
            }
            if (kedge_consistency_verify(old_size, size, &old_root, &root, path.hashes, path.count)
                == KEDGE_OK) {
                struct kedge_path honest;
                bool is_known =
                    kedge_hash_eq(&root, &roots[size]) && kedge_hash_eq(&old_root, &roots[old_size]);
                /* Equal sizes and equal roots agree whatever they are: there is nothing to prove. */
                ck_assert(old_size == size ? path.count == 0 && kedge_hash_eq(&root, &old_root) : is_known);
                ck_assert_int_eq(kedge_consistency_prove(get, NULL, old_size, size, &honest), KEDGE_OK);
                ck_assert(is_same_path(&path, &honest));
                c.honest++;
            }
        }
    }
    report("consistency proofs", &c);
}
END_TEST

static struct kedge_key_pair pair_of(uint8_t byte)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    memset(seed.b, byte, sizeof seed.b);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

static struct kedge_vkey vkey_of(uint8_t byte)
{
    struct kedge_key_pair pair = pair_of(byte);
    struct kedge_vkey v;
    char name[32];
    snprintf(name, sizeof name, byte == 0 ? ORIGIN : "w%u", byte);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(name), byte ? KEDGE_KEY_COSIGNATURE : KEDGE_KEY_ED25519,
                                     &pair.public, &v),
                     KEDGE_OK);
    return v;
}

/* A checkpoint of size n, cosigned by the witnesses or not. */
static struct kedge_buf note_of(uint64_t n, unsigned witnesses)
{
    struct kedge_key_pair pair = pair_of(0);
    struct kedge_buf b;
    kedge_buf_init(&b, TEXT_MAX);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(ORIGIN), n, &roots[n], &pair, &b), KEDGE_OK);
    struct kedge_note note;
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&b), &note), KEDGE_OK);
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, TEXT_MAX);
    kedge_buf_put(&text, note.text.ptr, note.text.len);
    for (unsigned w = 1; w <= witnesses; w++) {
        struct kedge_key_pair witness = pair_of((uint8_t)w);
        ck_assert_int_eq(kedge_cosignature_make(kedge_buf_view(&text), kedge_view_str(w == 1 ? "w1" : "w2"),
                                                &witness, TIME + w, &b),
                         KEDGE_OK);
    }
    return b;
}

/* A stretch of other's text, or of one's own. */
static void splice(uint8_t *text, size_t *len, size_t at, struct kedge_view other)
{
    size_t from = (size_t)below(other.len);
    size_t n = 1 + (size_t)below(other.len - from);
    n = n > TEXT_MAX - *len ? TEXT_MAX - *len : n;
    memmove(text + at + n, text + at, *len - at);
    memcpy(text + at, other.ptr + from, n);
    *len += n;
}

/* One way of spoiling bytes [begin, end) of text; other is an honest text to take pieces from. */
static void damage_text(uint8_t *text, size_t *len, size_t begin, size_t end, struct kedge_view other)
{
    static const char spice[] = "\n\n +=/0123456789-ABab\xe2\x80\x94\r";
    size_t at = begin + (size_t)below(end - begin);
    switch (below(7)) {
    case 0:
        text[at] ^= (uint8_t)(1u << below(8));
        return;
    case 1:
        text[at] = (uint8_t)spice[below(sizeof spice - 1)];
        return;
    case 2: { /* a stretch less */
        size_t n = 1 + (size_t)below(end - at);
        n = below(2) ? 1 : n;
        memmove(text + at, text + at + n, *len - at - n);
        *len -= n;
        return;
    }
    case 3:
        splice(text, len, at, other);
        return;
    case 4: /* one byte swapped with another */
        if (end - begin > 1) {
            size_t b = begin + (size_t)below(end - begin);
            uint8_t c = text[at];
            text[at] = text[b];
            text[b] = c;
        }
        return;
    case 5: /* a byte more */
        if (*len < TEXT_MAX) {
            memmove(text + at + 1, text + at, *len - at);
            text[at] = (uint8_t)spice[below(sizeof spice - 1)];
            *len += 1;
        }
        return;
    default: /* a digit or letter one up: stays well-formed more often than not */
        text[at]++;
    }
}

/* Verification of a receipt whose note is the original's: its signature is known to hold, which makes the
 * cheap nine tenths of the mutants cheap. */
static int verify_receipt(const struct kedge_proof *proof, const struct kedge_hash *leaf,
                          struct kedge_view note, uint64_t n, const struct kedge_vkey *key)
{
    if (kedge_view_eq(proof->note, note)) {
        return kedge_inclusion_verify(proof->index, n, leaf, proof->path.hashes, proof->path.count,
                                      &roots[n]);
    }
    return kedge_proof_verify(proof, leaf, kedge_view_str(ORIGIN), key, 1, NULL);
}

START_TEST(hostile_receipts_fail)
{
    struct counts c = {0};
    struct kedge_vkey key = vkey_of(0);
    static uint8_t text[2 * TEXT_MAX];
    while (c.tried < mutants * 13 / 100) {
        uint64_t n = any_size(), i = below(n);
        struct kedge_buf note = note_of(n, 0), original KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&original, TEXT_MAX);
        struct kedge_proof proof = {.index = i, .note = kedge_buf_view(&note)}, got;
        ck_assert_int_eq(kedge_inclusion_prove(get, NULL, i, n, &proof.path), KEDGE_OK);
        kedge_proof_encode(&proof, &original);
        size_t head = original.len - note.len;
        for (unsigned k = 0; k < 256; k++, c.tried++) {
            size_t len = original.len;
            memcpy(text, original.ptr, len);
            bool in_note = below(32) == 0;
            damage_text(text, &len, in_note ? head : 0, in_note ? len : head, kedge_buf_view(&original));
            if (kedge_proof_decode(kedge_view_of(text, len), &got) != KEDGE_OK) {
                c.malformed++;
                continue;
            }
            if (verify_receipt(&got, &tree[0][i], proof.note, n, &key) == KEDGE_OK) {
                struct kedge_note parsed;
                ck_assert(got.index == i && is_same_path(&got.path, &proof.path));
                ck_assert_int_eq(kedge_note_parse(got.note, &parsed), KEDGE_OK);
                ck_assert_uint_gt(note.len, parsed.text.len);
                ck_assert(memcmp(parsed.text.ptr, note.ptr, parsed.text.len) == 0);
                ck_assert(note.ptr[parsed.text.len] == '\n');
                c.honest++;
            }
        }
        kedge_buf_deinit(&note);
    }
    report("receipts", &c);
}
END_TEST

START_TEST(hostile_cosigned_checkpoints_fail)
{
    struct counts c = {0};
    struct kedge_vkey keys[1 + WITNESSES] = {vkey_of(0), vkey_of(1), vkey_of(2)};
    static uint8_t text[2 * TEXT_MAX];
    while (c.tried < mutants * 2 / 100) {
        uint64_t n = 1 + below(LEAVES - 1);
        struct kedge_buf a = note_of(n, WITNESSES), b = note_of(n + 1, WITNESSES);
        for (unsigned k = 0; k < 256; k++, c.tried++) {
            struct kedge_note_verdict verdicts[1 + WITNESSES];
            struct kedge_checkpoint checkpoint;
            size_t len = a.len;
            memcpy(text, a.ptr, len);
            damage_text(text, &len, 0, len, kedge_buf_view(below(2) ? &a : &b));
            struct kedge_view bytes = kedge_view_of(text, len);
            int err = kedge_checkpoint_open(bytes, kedge_view_str(ORIGIN), keys, 1 + WITNESSES, &checkpoint,
                                            verdicts);
            if (err) {
                c.malformed += err != KEDGE_E_VERIFY ? 1 : 0;
                continue;
            }
            /* Lines may have been lost, doubled or put in by strangers; what is said stays said. */
            ck_assert(checkpoint.size == n && kedge_hash_eq(&checkpoint.root, &roots[n]));
            ck_assert(verdicts[0].verified && checkpoint.extensions.len == 0);
            for (unsigned w = 1; w <= WITNESSES; w++) {
                ck_assert(!verdicts[w].verified || verdicts[w].time_s == TIME + w);
            }
            c.honest++;
        }
        kedge_buf_deinit(&a);
        kedge_buf_deinit(&b);
    }
    printf("cosigned checkpoints: %llu mutants, %llu malformed, %llu still said the signed, 0 of the rest "
           "verified\n",
           (unsigned long long)c.tried, (unsigned long long)c.malformed, (unsigned long long)c.honest);
    ck_assert_uint_gt(c.tried, 2 * c.honest);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("hostile proofs");
    tcase_add_unchecked_fixture(tc, setup, NULL);
    tcase_set_timeout(tc, 100);
    tcase_add_test(tc, hostile_inclusion_proofs_fail);
    tcase_add_test(tc, hostile_consistency_proofs_fail);
    tcase_add_test(tc, hostile_receipts_fail);
    tcase_add_test(tc, hostile_cosigned_checkpoints_fail);
    Suite *s = suite_create("property/hostile_proofs");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
