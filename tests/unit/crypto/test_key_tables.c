/* Signatures checked by tables against libsodium, the field under them against libcrypto's numbers. */
#include <check.h>
#include <openssl/bn.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "crypto/edwards.h"
#include "crypto/key_tables.h"

enum { KEYS = 60, MESSAGES = 40, FIELD_CASES = 20000, THREADS = 4, THREAD_KEYS = 700, SCALAR = 32 };

static struct kedge_rng rng;

static void set_up(void)
{
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_rng_init(&rng, 25519, KEDGE_RNG_TEST, 0, 0);
}

static void random_bytes(void *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)p)[i] = (uint8_t)kedge_rng_below(&rng, 256);
    }
}

static void random_key(struct kedge_key_pair *ret)
{
    struct kedge_seed seed;
    random_bytes(&seed, sizeof seed);
    kedge_key_from_seed(&seed, ret);
}

static bool sodium_accepts(const struct kedge_public_key *key, struct kedge_view message,
                           const struct kedge_signature *sig)
{
    return crypto_sign_verify_detached(sig->b, message.ptr, message.len, key->b) == 0;
}

/* ---- the field ---- */

/* Limbs up to what mul allows, often at their ends. */
static struct kedgei_fe random_fe(unsigned bits)
{
    struct kedgei_fe r;
    for (int i = 0; i < 5; i++) {
        uint64_t most = (UINT64_C(1) << bits) - 1;
        switch (kedge_rng_below(&rng, 4)) {
        case 0:
            r.v[i] = most - kedge_rng_below(&rng, 3);
            break;
        case 1:
            r.v[i] = KEDGEI_FE_MASK - kedge_rng_below(&rng, 40);
            break;
        case 2:
            r.v[i] = kedge_rng_below(&rng, 40);
            break;
        default:
            r.v[i] = kedge_rng_below(&rng, most);
        }
    }
    return r;
}

static void to_number(const struct kedgei_fe *a, BIGNUM *ret)
{
    BIGNUM *limb = BN_new();
    BN_zero(ret);
    for (int i = 4; i >= 0; i--) {
        BN_set_word(limb, a->v[i]);
        BN_lshift(ret, ret, 51);
        BN_add(ret, ret, limb);
    }
    BN_free(limb);
}

static void assert_is(const struct kedgei_fe *a, const BIGNUM *number, const BIGNUM *p, BN_CTX *ctx)
{
    uint8_t have[32], want[32];
    BIGNUM *reduced = BN_new();
    ck_assert_int_eq(BN_nnmod(reduced, number, p, ctx), 1);
    ck_assert_int_eq(BN_bn2lebinpad(reduced, want, sizeof want), sizeof want);
    kedgei_fe_encode(a, have);
    ck_assert_mem_eq(have, want, sizeof want);
    BN_free(reduced);
}

START_TEST(field_is_that_of_libcrypto)
{
    BN_CTX *ctx = BN_CTX_new();
    BIGNUM *p = BN_new(), *x = BN_new(), *y = BN_new(), *z = BN_new();
    BN_set_bit(p, 255);
    BN_sub_word(p, 19);
    for (int i = 0; i < FIELD_CASES; i++) {
        struct kedgei_fe a = random_fe(54), b = random_fe(54), r;
        to_number(&a, x);
        to_number(&b, y);
        assert_is(&a, x, p, ctx);
        BN_mul(z, x, y, ctx);
        r = kedgei_fe_mul(&a, &b);
        assert_is(&r, z, p, ctx);
        for (int k = 0; k < 5; k++) {
            ck_assert(r.v[k] < (UINT64_C(1) << 51) + (1 << 13));
        }
        BN_sqr(z, x, ctx);
        r = kedgei_fe_square(&a);
        assert_is(&r, z, p, ctx);
        a = random_fe(52);
        b = random_fe(52);
        to_number(&a, x);
        to_number(&b, y);
        BN_sub(z, x, y);
        r = kedgei_fe_sub(&a, &b);
        assert_is(&r, z, p, ctx);
        BN_add(z, x, y);
        r = kedgei_fe_add(&a, &b);
        assert_is(&r, z, p, ctx);
        uint8_t bytes[32];
        kedgei_fe_encode(&a, bytes);
        r = kedgei_fe_decode(bytes);
        assert_is(&r, x, p, ctx);
        if (i % 50 == 0 && BN_mod_inverse(z, x, p, ctx)) {
            r = kedgei_fe_invert(&a);
            assert_is(&r, z, p, ctx);
        }
    }
    BN_free(x);
    BN_free(y);
    BN_free(z);
    BN_free(p);
    BN_CTX_free(ctx);
}
END_TEST

/* ---- what is accepted ---- */

START_TEST(tables_accept_what_libsodium_accepts)
{
    static struct kedgei_key_table table;
    unsigned refused = 0;
    for (int i = 0; i < KEYS; i++) {
        struct kedge_key_pair pair;
        random_key(&pair);
        ck_assert(kedgei_key_table_init(&pair.public, &table));
        for (size_t len = 0; len < MESSAGES; len++) {
            uint8_t message[200];
            struct kedge_view view = kedge_view_of(message, len * 5);
            struct kedge_signature sig, other;
            random_bytes(message, sizeof message);
            kedge_sign(view, &pair, &sig);
            ck_assert(kedgei_key_table_accepts(&table, &pair.public, view, &sig));
            other = sig;
            size_t bit = kedge_rng_below(&rng, 512);
            other.b[bit / 8] ^= (uint8_t)(1u << bit % 8);
            ck_assert(!sodium_accepts(&pair.public, view, &other));
            ck_assert(!kedgei_key_table_accepts(&table, &pair.public, view, &other));
            if (len > 0) {
                message[kedge_rng_below(&rng, len * 5)] ^= 1;
                ck_assert(!kedgei_key_table_accepts(&table, &pair.public, view, &sig));
                refused++;
            }
        }
    }
    ck_assert_uint_eq(refused, KEYS * (MESSAGES - 1));
}
END_TEST

/* S + L says the same as S to those who reduce it; RFC 8032 section 5.1.7 refuses it. */
START_TEST(large_s_is_refused)
{
    static struct kedgei_key_table table;
    static const uint8_t order[SCALAR] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                                          0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
                                          0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};
    struct kedge_key_pair pair;
    struct kedge_signature sig;
    struct kedge_view message = kedge_view_str("message");
    random_key(&pair);
    kedge_sign(message, &pair, &sig);
    ck_assert(kedgei_key_table_init(&pair.public, &table));
    ck_assert(kedgei_key_table_accepts(&table, &pair.public, message, &sig));
    unsigned carry = 0;
    for (size_t i = 0; i < SCALAR; i++) {
        carry += (unsigned)sig.b[SCALAR + i] + order[i];
        sig.b[SCALAR + i] = (uint8_t)carry;
        carry >>= 8;
    }
    ck_assert(!sodium_accepts(&pair.public, message, &sig));
    ck_assert(!kedgei_key_table_accepts(&table, &pair.public, message, &sig));
}
END_TEST

/* A signature that its holder makes with R of their choice: R + torsion, S = r + k a. */
static void sign_with(const struct kedge_key_pair *pair, const uint8_t r[SCALAR], const uint8_t *torsion,
                      struct kedge_view message, struct kedge_signature *ret)
{
    uint8_t wide[64], a[64] = {0}, k[SCALAR], product[SCALAR];
    crypto_hash_sha512(a, pair->secret, SCALAR);
    a[0] &= 248;
    a[31] = (uint8_t)((a[31] & 127) | 64);
    memset(a + SCALAR, 0, SCALAR);
    uint8_t reduced[SCALAR];
    crypto_core_ed25519_scalar_reduce(reduced, a);
    memset(ret->b, 0, SCALAR);
    ret->b[0] = 1; /* the neutral element */
    if (!sodium_is_zero(r, SCALAR)) {
        ck_assert_int_eq(crypto_scalarmult_ed25519_base_noclamp(ret->b, r), 0);
    }
    if (torsion) {
        ck_assert_int_eq(crypto_core_ed25519_add(ret->b, ret->b, torsion), 0);
    }
    crypto_hash_sha512_state hash;
    crypto_hash_sha512_init(&hash);
    crypto_hash_sha512_update(&hash, ret->b, SCALAR);
    crypto_hash_sha512_update(&hash, pair->public.b, SCALAR);
    crypto_hash_sha512_update(&hash, message.ptr, message.len);
    crypto_hash_sha512_final(&hash, wide);
    crypto_core_ed25519_scalar_reduce(k, wide);
    crypto_core_ed25519_scalar_mul(product, k, reduced);
    crypto_core_ed25519_scalar_add(ret->b + SCALAR, product, r);
}

/* Of order 8 (RFC 8032's curve; listed in "Taming the many EdDSAs", 2020, table 6c). */
static const uint8_t ORDER_8[SCALAR] = {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
                                        0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
                                        0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05};

START_TEST(chosen_r_is_judged_as_libsodium_does)
{
    static struct kedgei_key_table table;
    struct kedge_key_pair pair;
    struct kedge_signature sig;
    struct kedge_view message = kedge_view_str("message");
    uint8_t r[SCALAR] = {0};
    random_key(&pair);
    ck_assert(kedgei_key_table_init(&pair.public, &table));
    r[0] = 7;
    sign_with(&pair, r, NULL, message, &sig); /* an ordinary signature, made by hand */
    ck_assert(sodium_accepts(&pair.public, message, &sig));
    ck_assert(kedgei_key_table_accepts(&table, &pair.public, message, &sig));
    sign_with(&pair, r, ORDER_8, message, &sig);
    ck_assert(!sodium_accepts(&pair.public, message, &sig));
    ck_assert(!kedgei_key_table_accepts(&table, &pair.public, message, &sig));
    r[0] = 0;
    sign_with(&pair, r, NULL, message, &sig); /* R neutral: the equation holds */
    ck_assert(!sodium_accepts(&pair.public, message, &sig));
    ck_assert(!kedgei_key_table_accepts(&table, &pair.public, message, &sig));
}
END_TEST

START_TEST(keys_outside_the_group_have_no_table)
{
    static struct kedgei_key_table table;
    struct kedge_key_pair pair;
    struct kedge_public_key key;
    random_key(&pair);
    ck_assert_int_eq(crypto_core_ed25519_add(key.b, pair.public.b, ORDER_8), 0);
    ck_assert(!kedgei_key_table_init(&key, &table)); /* of mixed order */
    memcpy(key.b, ORDER_8, sizeof key.b);
    ck_assert(!kedgei_key_table_init(&key, &table));
    memset(key.b, 0xff, sizeof key.b); /* y ≥ p */
    ck_assert(!kedgei_key_table_init(&key, &table));
    memset(key.b, 0, sizeof key.b);
    key.b[0] = 2; /* no point has this y */
    ck_assert(!kedgei_key_table_init(&key, &table));
    key.b[0] = 1;
    ck_assert(!kedgei_key_table_init(&key, &table));
}
END_TEST

/* ---- many keys, many threads ---- */

struct signed_message {
    struct kedge_key_pair pair;
    struct kedge_signature sig;
    uint8_t message[40];
};
static struct signed_message all[THREAD_KEYS];

static void *verify_all(void *arg)
{
    size_t wrong = 0;
    for (int pass = 0; pass < 6; pass++) {
        for (size_t i = 0; i < THREAD_KEYS; i++) {
            const struct signed_message *m = &all[i % (pass < 3 ? 20 : THREAD_KEYS)];
            struct kedge_signature bad = m->sig;
            bad.b[i % 64] ^= 4;
            struct kedge_view view = kedge_view_of(m->message, sizeof m->message);
            wrong += kedge_verify(view, &m->sig, &m->pair.public) != KEDGE_OK;
            wrong += i % 8 == 0 && kedge_verify(view, &bad, &m->pair.public) != KEDGE_E_VERIFY;
        }
    }
    *(size_t *)arg = wrong;
    return NULL;
}

START_TEST(more_keys_than_slots_from_many_threads)
{
    pthread_t threads[THREADS];
    size_t wrong[THREADS];
    ck_assert(!kedge_verify_allow_tables(true)); /* off until a host turns them on */
    for (size_t i = 0; i < THREAD_KEYS; i++) {
        random_key(&all[i].pair);
        random_bytes(all[i].message, sizeof all[i].message);
        kedge_sign(kedge_view_of(all[i].message, sizeof all[i].message), &all[i].pair, &all[i].sig);
    }
    for (size_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, verify_all, &wrong[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(wrong[i], 0);
    }
    ck_assert(kedge_verify_allow_tables(false));
    struct kedge_view view = kedge_view_of(all[0].message, sizeof all[0].message);
    bool is_known = false; /* a key that is met often gets its table */
    for (int i = 0; i < 200 && !is_known; i++) {
        is_known = kedgei_known_key_accepts(&all[0].pair.public, view, &all[0].sig);
    }
    ck_assert(is_known);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("key tables");
    TCase *t = tcase_create("key tables");
    tcase_add_checked_fixture(t, set_up, NULL);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, field_is_that_of_libcrypto);
    tcase_add_test(t, tables_accept_what_libsodium_accepts);
    tcase_add_test(t, large_s_is_refused);
    tcase_add_test(t, chosen_r_is_judged_as_libsodium_does);
    tcase_add_test(t, keys_outside_the_group_have_no_table);
    tcase_add_test(t, more_keys_than_slots_from_many_threads);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
