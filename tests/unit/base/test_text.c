/* Strict codecs: what is valid round-trips, and every one-byte change of a valid text either is refused or
 * decodes to something that encodes back to exactly that text: no second spelling. */
#include "common/base/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/unit/base/check.h"

/* Decodes text, encodes the value into out; returns the length, or 0 when the text is refused. */
typedef size_t respell_fn(struct kedge_view text, char out[256]);

/* Replacement, insertion and deletion of one byte at each place. */
static void check_mutations(respell_fn *respell, const char *valid)
{
    char out[256];
    size_t len = strlen(valid);
    ck_assert_uint_lt(len, 250);
    ck_assert_uint_eq(respell(kedge_view_str(valid), out), len);
    ck_assert_mem_eq(out, valid, len);
    for (size_t at = 0; at <= len; at++) {
        for (int change = 0; change < 2 * 256 + 1; change++) {
            uint8_t text[256];
            size_t n = len;
            memcpy(text, valid, len);
            if (change < 256 && at < len) {
                text[at] = (uint8_t)change;
            } else if (change < 512) {
                memmove(text + at + 1, text + at, len - at);
                text[at] = (uint8_t)change;
                n = len + 1;
            } else if (at < len) {
                memmove(text + at, text + at + 1, len - at - 1);
                n = len - 1;
            }
            size_t spelt = respell(kedge_view_of(text, n), out);
            ck_assert_msg(spelt == 0 || (spelt == n && memcmp(out, text, n) == 0),
                          "\"%.*s\" accepted as \"%.*s\"", (int)n, (const char *)text, (int)spelt, out);
        }
    }
}

static size_t respell_hex(struct kedge_view text, char out[256])
{
    uint8_t bytes[64];
    if (text.len == 0 || kedge_hex_decode(text, bytes, text.len / 2) != KEDGE_OK) {
        return 0;
    }
    kedge_hex_encode(bytes, text.len / 2, out);
    return text.len / 2 * 2;
}

static size_t respell_base64(struct kedge_view text, char out[256])
{
    struct kedge_buf bytes, again;
    kedge_buf_init(&bytes, 256);
    kedge_buf_init(&again, 256);
    size_t len = 0;
    if (kedge_base64_decode(text, false, &bytes) == KEDGE_OK) {
        kedge_base64_put(&again, kedge_buf_view(&bytes));
        len = again.len;
        memcpy(out, again.ptr ? again.ptr : (const uint8_t *)"", len);
    }
    kedge_buf_deinit(&bytes);
    kedge_buf_deinit(&again);
    return len;
}

static size_t respell_decimal(struct kedge_view text, char out[256])
{
    uint64_t v;
    return kedge_decimal_decode(text, UINT64_MAX, &v) == KEDGE_OK
               ? (size_t)snprintf(out, 256, "%llu", (unsigned long long)v)
               : 0;
}

static size_t respell_id(struct kedge_view text, char out[256])
{
    struct kedge_id id;
    return kedge_id_from(text, &id) == KEDGE_OK ? (size_t)snprintf(out, 256, "%s", id.s) : 0;
}

START_TEST(one_byte_mutations)
{
    check_mutations(respell_hex, "00ff7f80a5");
    check_mutations(respell_base64, "TWFu");
    check_mutations(respell_base64, "TWFuTWE=");
    check_mutations(respell_base64, "AP+/TQ==");
    check_mutations(respell_decimal, "0");
    check_mutations(respell_decimal, "1234567890");
    check_mutations(respell_decimal, "18446744073709551615");
    check_mutations(respell_id, "site-01.a_b");
    check_mutations(respell_id, "0");
}
END_TEST

START_TEST(hex_lengths)
{
    uint8_t out[4] = {9, 9, 9, 9};
    ck_assert_int_eq(kedge_hex_decode(kedge_view_str("0102"), out, 2), KEDGE_OK);
    ck_assert(out[0] == 1 && out[1] == 2 && out[2] == 9);
    static const char *const bad[] = {"", "01", "010", "01020", "010203", "0A02", "010g", " 102", "0x02"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedge_hex_decode(kedge_view_str(bad[i]), out, 2), KEDGE_E_FORMAT);
        ck_assert(out[0] == 1 && out[1] == 2); /* outputs only on success */
    }
    ck_assert_int_eq(kedge_hex_decode(kedge_view_str(""), out, 0), KEDGE_OK);
}
END_TEST

START_TEST(base64_of_rfc4648)
{
    static const char *const table[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}}; /* RFC 4648 §10 */
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct kedge_view plain = kedge_view_str(table[i][0]), text = kedge_view_str(table[i][1]);
        struct kedge_buf b;
        kedge_buf_init(&b, text.len); /* the limit is exact for encoding … */
        kedge_base64_put(&b, plain);
        ck_assert_int_eq(b.err, KEDGE_OK);
        ck_assert(kedge_view_eq(kedge_buf_view(&b), text));
        ck_assert_uint_eq(kedge_base64_len(plain.len), text.len);
        kedge_buf_deinit(&b);
        kedge_buf_init(&b, plain.len); /* … and for decoding, padding included */
        ck_assert_int_eq(kedge_base64_decode(text, false, &b), KEDGE_OK);
        ck_assert(kedge_view_eq(kedge_buf_view(&b), plain));
        kedge_buf_deinit(&b);
        if (plain.len > 0) {
            kedge_buf_init(&b, plain.len - 1);
            ck_assert_int_eq(kedge_base64_decode(text, false, &b), KEDGE_E_TOO_LONG);
            ck_assert_uint_eq(b.len, 0);
            kedge_buf_deinit(&b);
        }
    }
}
END_TEST

START_TEST(base64_refuses)
{
    static const char *const bad[] = {"A",        "AA",   "AAA",  "AAAAA", "====",    "A===",     "AA=A",
                                      "=AAA",     "AB==", "AAB=", "AA\n",  "AA= ",    "Zg==Zg==", "AAAA====",
                                      "AA==AAAA", "AA--", "__AA", "AA,A",  "AA\377A", " AAA"};
    struct kedge_buf b;
    kedge_buf_init(&b, 64);
    kedge_buf_put_str(&b, "keep");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(kedge_base64_decode(kedge_view_str(bad[i]), false, &b) == KEDGE_E_FORMAT, "%s", bad[i]);
        ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_view_str("keep")));
    }
    ck_assert_int_eq(kedge_base64_decode(kedge_view_str("-_-_"), true, &b), KEDGE_OK);
    ck_assert_uint_eq(b.len, 7);
    ck_assert_mem_eq(b.ptr + 4, "\xfb\xff\xbf", 3);
    kedge_mem_fail_at(1);
    struct kedge_buf fresh;
    kedge_buf_init(&fresh, 64);
    ck_assert_int_eq(kedge_base64_decode(kedge_view_str("AAAA"), false, &fresh), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
    kedge_buf_deinit(&fresh);
    kedge_buf_deinit(&b);
}
END_TEST

START_TEST(decimal_limits)
{
    uint64_t v = 77;
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      "01",
                                      "00",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "1e3",
                                      "0x1",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "100000000000000000000",
                                      "1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(kedge_decimal_decode(kedge_view_str(bad[i]), UINT64_MAX, &v) == KEDGE_E_FORMAT, "%s",
                      bad[i]);
    }
    ck_assert_int_eq(kedge_decimal_decode(kedge_view_str("101"), 100, &v), KEDGE_E_FORMAT);
    ck_assert(v == 77);
    ck_assert_int_eq(kedge_decimal_decode(kedge_view_str("100"), 100, &v), KEDGE_OK);
    ck_assert(v == 100);
    ck_assert_int_eq(kedge_decimal_decode(kedge_view_of("1\0", 2), 100, &v), KEDGE_E_FORMAT);
}
END_TEST

START_TEST(ids)
{
    struct kedge_id a, b;
    char longest[KEDGE_ID_MAX + 2];
    memset(longest, 'x', sizeof longest);
    ck_assert(kedge_id_is_valid(kedge_view_of(longest, KEDGE_ID_MAX)));
    ck_assert(!kedge_id_is_valid(kedge_view_of(longest, KEDGE_ID_MAX + 1)));
    static const char *const bad[] = {"", ".a", "-a", "_a", "A", "aB", "a/b", "a b", "..", "a\n", "ä"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedge_id_from(kedge_view_str(bad[i]), &a), KEDGE_E_FORMAT);
    }
    ck_assert_int_eq(kedge_id_from(kedge_view_of(longest, KEDGE_ID_MAX), &a), KEDGE_OK);
    ck_assert_uint_eq(strlen(a.s), KEDGE_ID_MAX);
    ck_assert_int_eq(kedge_id_from(kedge_view_str("abc"), &a), KEDGE_OK);
    ck_assert_int_eq(kedge_id_from(kedge_view_str("abd"), &b), KEDGE_OK);
    ck_assert(!kedge_id_eq(&a, &b) && kedge_id_eq(&a, &a));
    ck_assert(kedge_id_cmp(&a, &b) < 0 && kedge_id_cmp(&b, &a) > 0 && kedge_id_cmp(&a, &a) == 0);
    for (size_t i = 3; i < sizeof a.s; i++) {
        ck_assert_int_eq(a.s[i], 0); /* the whole value is defined: it is hashed and compared as bytes */
    }
}
END_TEST

START_TEST(real_is_shortest)
{
    static const struct {
        double v;
        const char *text;
    } table[] = {
        {0, "0"},
        {-0.0, "-0"},
        {0.1, "0.1"},
        {1e-5, "1e-05"},
        {1.0 / 3, "0.3333333333333333"},
        {1e21, "1e+21"},
        {-2.5, "-2.5"},
        {100, "1e+02"},
        {123456, "123456"},
        {0.1 + 0.2, "0.30000000000000004"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {0x1p-1074, "5e-324"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[KEDGE_REAL_MAX];
        double back = 1;
        kedge_real_encode(table[i].v, text);
        ck_assert_str_eq(text, table[i].text);
        ck_assert_int_eq(kedge_real_decode(kedge_view_str(text), &back), KEDGE_OK);
        ck_assert_mem_eq(&back, &table[i].v, sizeof back); /* bit for bit, the sign of zero included */
    }
}
END_TEST

START_TEST(real_round_trips_any_bits)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 5, KEDGE_RNG_TEST, 0, 0);
    for (int i = 0; i < 3000; i++) {
        uint64_t bits = kedge_rng_u64(&rng);
        double v, back = 0;
        char text[KEDGE_REAL_MAX];
        memcpy(&v, &bits, sizeof v);
        if (isfinite(v)) {
            kedge_real_encode(v, text);
            ck_assert_int_eq(kedge_real_decode(kedge_view_str(text), &back), KEDGE_OK);
            ck_assert_mem_eq(&back, &v, sizeof v);
        }
    }
}
END_TEST

/* What kedge_real_encode promises, tried digit by digit. */
static void check_fewest(double v)
{
    char text[KEDGE_REAL_MAX], fewest[KEDGE_REAL_MAX];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(fewest, sizeof fewest, "%.*g", digits, v);
        if (strtod(fewest, NULL) == v) {
            break;
        }
    }
    kedge_real_encode(v, text);
    ck_assert_str_eq(text, fewest);
}

START_TEST(real_has_fewest_digits)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 6, KEDGE_RNG_TEST, 0, 0);
    for (int n = 1; n <= 60; n++) { /* shares */
        for (int k = 0; k <= n; k++) {
            check_fewest((double)k / n);
        }
    }
    for (int e = -1074; e < 1024; e++) { /* where a number's lower neighbour is nearer than its upper one */
        const double v = ldexp(1, e);
        check_fewest(v);
        check_fewest(nextafter(v, 0));
        check_fewest(-nextafter(v, DBL_MAX));
    }
    for (int e = -323; e <= 308; e++) {
        const double v = pow(10, e);
        check_fewest(v);
        check_fewest(nextafter(v, 0));
        check_fewest(v * 0.999999999999999);
        check_fewest(v * (double)(kedge_rng_u64(&rng) % 1000000));
    }
}
END_TEST

START_TEST(real_refuses)
{
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      ".5",
                                      "5.",
                                      "1e",
                                      "1e+",
                                      "1E5",
                                      "0x1p3",
                                      "nan",
                                      "inf",
                                      "-inf",
                                      "1e999",
                                      "-1e999",
                                      "1,5",
                                      " 1",
                                      "1 ",
                                      "1f",
                                      "--1",
                                      "1e5.0",
                                      "1.2.3",
                                      "1_0",
                                      "0.00000000000000000000000000000000000001"};
    double v = 42;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(kedge_real_decode(kedge_view_str(bad[i]), &v) == KEDGE_E_FORMAT, "\"%s\"", bad[i]);
    }
    ck_assert_int_eq(kedge_real_decode(kedge_view_of("1\0002", 3), &v), KEDGE_E_FORMAT);
    ck_assert(v == 42);
}
END_TEST

/* Every one-byte change of a real: what is accepted keeps to the alphabet of the grammar and is finite. */
START_TEST(real_mutations)
{
    static const char valid[] = "-12.5e-3";
    for (size_t at = 0; at < sizeof valid - 1; at++) {
        for (int c = 0; c < 256; c++) {
            char text[sizeof valid];
            double v = 0;
            memcpy(text, valid, sizeof valid);
            text[at] = (char)c;
            if (kedge_real_decode(kedge_view_of(text, sizeof valid - 1), &v) == KEDGE_OK) {
                ck_assert_msg(c != 0 && strchr("0123456789.e+-", c), "byte %d at %zu", c, at);
                ck_assert(isfinite(v));
            }
        }
    }
}
END_TEST

/* The Unicode Standard, table 3-7, as an oracle on all 1- and 2-byte strings and edge cases of the others. */
START_TEST(utf8)
{
    for (unsigned a = 0; a < 256; a++) {
        uint8_t one = (uint8_t)a;
        ck_assert_int_eq(kedge_utf8_is_valid(kedge_view_of(&one, 1)), a < 0x80);
        for (unsigned b = 0; b < 256; b++) {
            uint8_t two[2] = {(uint8_t)a, (uint8_t)b};
            bool expected = (a < 0x80 && b < 0x80) || (a >= 0xc2 && a <= 0xdf && b >= 0x80 && b <= 0xbf);
            ck_assert_int_eq(kedge_utf8_is_valid(kedge_view_of(two, 2)), expected);
        }
    }
    static const char *const good[] = {"",
                                       "é",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "€",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "a€b"};
    static const char *const bad[] = {
        "\xe0\x9f\xbf",     "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xc0\xaf",     "\xc1\xbf",     "\xe2\x82",         "\xf0\x90\x80",
        "\xe2\x28\xa1",     "a\x80",        "\xff",         "\xe2\x82\xac\xe2"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(kedge_utf8_is_valid(kedge_view_str(good[i])), "good %zu", i);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!kedge_utf8_is_valid(kedge_view_str(bad[i])), "bad %zu", i);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        one_byte_mutations,     hex_lengths,  base64_of_rfc4648, base64_refuses,
        decimal_limits,         ids,          real_is_shortest,  real_round_trips_any_bits,
        real_has_fewest_digits, real_refuses, real_mutations,    utf8};
    return run_suite("base/text", tests, sizeof tests / sizeof tests[0]);
}
