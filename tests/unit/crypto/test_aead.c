/* Both ciphers against published vectors; round trips; any changed byte is found. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "crypto/aead.h"
#include "crypto/sign.h"

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t len = strlen(hex) / 2;
    ck_assert_int_eq(kedge_hex_decode(kedge_view_str(hex), out, len), KEDGE_OK);
    return len;
}

static const struct vector {
    enum kedge_aead cipher;
    const char *key, *nonce, *also, *plain, *sealed;
} vectors[] = {
    /* McGrew, Viega: The Galois/Counter Mode of Operation, test cases 13, 14 and 16. */
    {KEDGE_AEAD_AES256_GCM, "0000000000000000000000000000000000000000000000000000000000000000",
     "000000000000000000000000", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
    {KEDGE_AEAD_AES256_GCM, "0000000000000000000000000000000000000000000000000000000000000000",
     "000000000000000000000000", "", "00000000000000000000000000000000",
     "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
    {KEDGE_AEAD_AES256_GCM, "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
     "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
     "76fc6ece0f4e1768cddf8853bb2d551b"},
    /* draft-irtf-cfrg-xchacha-03, A.3.1. */
    {KEDGE_AEAD_XCHACHA20_POLY1305, "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
     "404142434445464748494a4b4c4d4e4f5051525354555657", "50515253c0c1c2c3c4c5c6c7",
     "4c616469657320616e642047656e746c656d656e206f662074686520636c6173"
     "73206f66202739393a204966204920636f756c64206f6666657220796f75206f"
     "6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73"
     "637265656e20776f756c642062652069742e",
     "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb"
     "731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452"
     "2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9"
     "21f9664c97637da9768812f615c68b13b52ec0875924c1c7987947deafd8780acf49"},
};

START_TEST(vectors_hold)
{
    const struct vector *v = &vectors[_i];
    uint8_t key[32], nonce[24], also[64], plain[256], sealed[256], out[256];
    from_hex(v->key, key);
    ck_assert_uint_eq(from_hex(v->nonce, nonce), kedge_aead_nonce_len(v->cipher));
    struct kedge_view a = kedge_view_of(also, from_hex(v->also, also));
    struct kedge_view p = kedge_view_of(plain, from_hex(v->plain, plain));
    size_t len = from_hex(v->sealed, sealed);
    kedge_aead_seal(v->cipher, key, nonce, a, p, out);
    ck_assert_uint_eq(len, p.len + KEDGE_AEAD_TAG_LEN);
    ck_assert_mem_eq(out, sealed, len);
    ck_assert_int_eq(kedge_aead_open(v->cipher, key, nonce, a, kedge_view_of(sealed, len), out), KEDGE_OK);
    if (p.len > 0) {
        ck_assert_mem_eq(out, plain, p.len);
    }
}
END_TEST

START_TEST(any_change_is_found)
{
    enum kedge_aead cipher = _i == 0 ? KEDGE_AEAD_AES256_GCM : KEDGE_AEAD_XCHACHA20_POLY1305;
    uint8_t key[32] = {1}, nonce[24] = {2}, also[9] = {3}, buf[100 + KEDGE_AEAD_TAG_LEN] = {4}, out[100];
    struct kedge_view a = kedge_view_of(also, sizeof also), sealed = kedge_view_of(buf, sizeof buf);
    kedge_aead_seal(cipher, key, nonce, a, kedge_view_of(buf, 100), buf); /* in place */
    ck_assert_int_eq(kedge_aead_open(cipher, key, nonce, a, sealed, out), KEDGE_OK);
    ck_assert_uint_eq(out[0], 4);
    struct {
        uint8_t *bytes;
        size_t len;
    } parts[] = {
        {key, sizeof key}, {nonce, kedge_aead_nonce_len(cipher)}, {also, sizeof also}, {buf, sizeof buf}};
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        for (size_t bit = 0; bit < 8 * parts[p].len; bit++) {
            parts[p].bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            memset(out, 0xee, sizeof out);
            ck_assert_int_eq(kedge_aead_open(cipher, key, nonce, a, sealed, out), KEDGE_E_VERIFY);
            ck_assert_uint_eq(out[0] | out[99], 0);
            parts[p].bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    ck_assert_int_eq(kedge_aead_open(cipher, key, nonce, a, kedge_view_of(buf, sizeof buf - 1), out),
                     KEDGE_E_VERIFY);
    ck_assert_int_eq(kedge_aead_open(cipher, key, nonce, a, kedge_view_of(buf, 15), out), KEDGE_E_VERIFY);
    ck_assert_int_eq(kedge_aead_open(cipher, key, nonce, a, sealed, out), KEDGE_OK);
}
END_TEST

START_TEST(derived_keys_differ)
{
    uint8_t key[32] = {7}, other[32] = {8}, a[32], b[32], c[32];
    const struct kedge_view one[] = {{(const uint8_t *)"label", 5}, {(const uint8_t *)"xy", 2}};
    const struct kedge_view two[] = {{(const uint8_t *)"label", 5}, {(const uint8_t *)"xz", 2}};
    kedge_derive_key(key, one, 2, a);
    kedge_derive_key(key, two, 2, b);
    kedge_derive_key(other, one, 2, c);
    ck_assert_mem_ne(a, b, 32);
    ck_assert_mem_ne(a, c, 32);
    kedge_derive_key(key, one, 2, b);
    ck_assert_mem_eq(a, b, 32);
}
END_TEST

int main(void)
{
    if (kedge_crypto_init() != KEDGE_OK) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("aead");
    TCase *tcase = tcase_create("aead");
    tcase_add_loop_test(tcase, vectors_hold, 0, sizeof vectors / sizeof vectors[0]);
    tcase_add_loop_test(tcase, any_change_is_found, 0, 2);
    tcase_add_test(tcase, derived_keys_differ);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
