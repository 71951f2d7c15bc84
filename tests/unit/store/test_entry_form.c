/* How entries lie in their table: every entry comes back byte for byte, a statement takes a third of the
 * room, and a bit that flipped, a stretch that is missing or a lie about the length is noticed. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "chain/store/checkpoint_form.h"
#include "chain/store/entry_form.h"
#include "common/base/limits.h"

static struct kedge_entry_packer *packer;
static const enum kedge_entry_forms both[] = {KEDGE_FORMS_PACKED, KEDGE_FORMS_SHORT, KEDGE_FORMS_SHORT};
static struct kedge_buf stored, room, envelope;

static void setup(void)
{
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_buf_init(&stored, KEDGE_ENTRY_STORED_MAX);
    kedge_buf_init(&room, KEDGE_ENTRY_MAX);
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
}

static void begin(enum kedge_entry_forms forms)
{
    packer = kedge_entry_packer_new(forms);
    ck_assert_ptr_nonnull(packer);
}

static void teardown(void)
{
    kedge_entry_packer_free(packer);
    packer = NULL;
    kedge_buf_deinit(&stored);
    kedge_buf_deinit(&room);
    kedge_buf_deinit(&envelope);
}

/* An update's statement, as one looks. */
static struct kedge_view statement(unsigned round)
{
    char text[2048], digest[2][KEDGE_HASH_HEX_LEN + 1];
    struct kedge_key_pair key;
    struct kedge_hash hash;
    for (int i = 0; i < 2; i++) {
        kedge_sha256(kedge_view_of(&round, sizeof round - (size_t)i), &hash);
        kedge_hash_hex(&hash, digest[i]);
    }
    snprintf(text, sizeof text,
             "{\"_type\":\"https://in-toto.io/Statement/"
             "v1\",\"subject\":[{\"name\":\"update\",\"digest\":{\"sha256\":\"%s\""
             "}}],\"predicateType\":\"https://kedge.dev/update/"
             "v1\",\"predicate\":{\"tenant\":\"clinic-3\",\"site\":\"site-7\","
             "\"job\":\"x-rays\",\"round\":%u,\"group\":2,\"update_kind\":\"train\",\"base\":\"%s\","
             "\"samples\":1437,"
             "\"steps\":144,\"batch\":10,\"learning_rate\":\"0.03\",\"energy_quality\":\"unknown\","
             "\"seconds\":\"0.01231\","
             "\"engine\":\"kedge-train 0.1.0 cpu openblas\",\"energy_how\":\"none; a part is unknown\"}}",
             digest[0], round, digest[1]);
    kedge_key_generate(&key);
    kedge_buf_clear(&envelope);
    ck_assert_int_eq(kedge_dsse_build(KEDGE_DSSE_IN_TOTO, kedge_view_str(text), &key, &envelope), KEDGE_OK);
    return kedge_buf_view(&envelope);
}

/* A tenant's checkpoint, as the main chain has it. */
static struct kedge_view checkpoint(uint64_t size, const char *origin)
{
    struct kedge_key_pair key;
    struct kedge_hash root;
    uint8_t salt[32] = {0x80};
    kedge_key_generate(&key);
    kedge_sha256(kedge_view_str(origin), &root);
    kedge_buf_clear(&envelope);
    kedge_buf_put(&envelope, salt, sizeof salt);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(origin), size, &root, &key, &envelope), KEDGE_OK);
    return kedge_buf_view(&envelope);
}

static void comes_back(struct kedge_view entry, struct kedge_entry_packer *with)
{
    struct kedge_view loaded;
    ck_assert_int_eq(kedge_entry_store(with, entry, &stored), KEDGE_OK);
    ck_assert_int_eq(kedge_entry_load(kedge_buf_view(&stored), &room, &loaded), KEDGE_OK);
    ck_assert(kedge_view_eq(loaded, entry));
}

START_TEST(statements_are_packed)
{
    begin(both[_i]);
    for (unsigned round = 1; round < 50; round++) {
        struct kedge_view entry = statement(round);
        comes_back(entry, packer);
        ck_assert_uint_lt(3 * stored.len, entry.len);
        comes_back(entry, NULL);
        ck_assert_uint_eq(stored.len, entry.len);
    }
}
END_TEST

START_TEST(several_signatures)
{
    begin(both[_i]);
    struct kedge_buf more;
    struct kedge_key_pair key;
    kedge_buf_init(&more, KEDGE_ENTRY_MAX);
    (void)statement(1);
    for (int i = 1; i < KEDGE_DSSE_SIGNATURES_MAX; i++) {
        kedge_key_generate(&key);
        kedge_buf_clear(&more);
        ck_assert_int_eq(kedge_dsse_add(kedge_buf_view(&envelope), &key, &more), KEDGE_OK);
        struct kedge_buf swap = envelope;
        envelope = more;
        more = swap;
        comes_back(kedge_buf_view(&envelope), packer);
        ck_assert_uint_lt(stored.len, envelope.len);
    }
    kedge_buf_deinit(&more);
}
END_TEST

START_TEST(others_are_as_they_are)
{
    begin(both[_i]);
    static uint8_t bytes[KEDGE_ENTRY_MAX];
    static const char *const odd[] = {
        "{", "{}", "{\"payload\":\"\",\"payloadType\":\"application/vnd.in-toto+json\"}", "x"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        comes_back(kedge_view_str(odd[i]), packer);
        ck_assert_uint_eq(stored.len, strlen(odd[i]));
    }
    for (unsigned first = 0; first < 256; first++) {
        bytes[0] = (uint8_t)first;
        comes_back(kedge_view_of(bytes, 1 + first % 3), packer);
        ck_assert_uint_eq(stored.len, 1 + first % 3 + (first <= 3));
        comes_back(kedge_view_of(bytes, sizeof bytes), packer);
    }
    struct kedge_view entry = statement(3); /* another spelling of it */
    memcpy(bytes, entry.ptr, entry.len);
    bytes[entry.len] = ' ';
    comes_back(kedge_view_of(bytes, entry.len + 1), packer);
    ck_assert_uint_eq(stored.len, entry.len + 1);
}
END_TEST

START_TEST(every_bit_counts)
{
    begin(both[_i]);
    struct kedge_view loaded, entry = statement(4);
    uint8_t bytes[2048];
    if (_i == 2) {
        entry = checkpoint(4, "example.org/a-tenant");
    }
    ck_assert_int_eq(kedge_entry_store(packer, entry, &stored), KEDGE_OK);
    ck_assert_int_eq(stored.ptr[0], 1 + _i);
    ck_assert_uint_lt(stored.len, sizeof bytes);
    for (size_t bit = 8; bit < 8 * stored.len; bit++) {
        memcpy(bytes, stored.ptr, stored.len);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(kedge_entry_load(kedge_view_of(bytes, stored.len), &room, &loaded), KEDGE_E_CORRUPT);
    }
    for (int bit = 0; bit < 8; bit++) { /* the form itself: something, and not the entry */
        memcpy(bytes, stored.ptr, stored.len);
        bytes[0] ^= (uint8_t)(1 << bit);
        int err = kedge_entry_load(kedge_view_of(bytes, stored.len), &room, &loaded);
        ck_assert(err == KEDGE_E_CORRUPT || !kedge_view_eq(loaded, entry));
    }
    for (size_t len = 1; len < stored.len; len++) {
        ck_assert_int_eq(kedge_entry_load(kedge_view_of(stored.ptr, len), &room, &loaded), KEDGE_E_CORRUPT);
    }
}
END_TEST

/* CRC-32 with the polynomial of IEEE 802.3, bit by bit. */
static void seal(uint8_t *bytes, size_t len)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 5; i < len; i++) {
        sum ^= bytes[i];
        for (int k = 0; k < 8; k++) {
            sum = sum >> 1 ^ (sum & 1 ? UINT32_C(0xedb88320) : 0);
        }
    }
    sum = ~sum;
    for (int i = 0; i < 4; i++) {
        bytes[1 + i] = (uint8_t)(sum >> (24 - 8 * i));
    }
}

/* With a right checksum: no signature, too many, a length that is none of the payload's, bytes after its end.
 */
START_TEST(lies)
{
    begin(both[_i]);
    struct kedge_view entry = statement(5), loaded;
    uint8_t bytes[4096] = {0};
    const size_t at = 6 + KEDGE_HASH_LEN + KEDGE_SIGNATURE_LEN; /* of the length */
    ck_assert_int_eq(kedge_entry_store(packer, entry, &stored), KEDGE_OK);
    memcpy(bytes, stored.ptr, stored.len);
    seal(bytes, stored.len);
    ck_assert_int_eq(memcmp(bytes, stored.ptr, stored.len), 0);
    struct {
        size_t place;
        uint8_t value;
        size_t more;
    } rows[] = {{5, 0, 0},      {5, 17, 0},      {5, 255, 0},     {5, 2, 0},      {at, 0xff, 0},
                {at, 0, 0},     {at + 1, 0, 0},  {0, 1, 1},       {at + 2, 0, 0}, {at + 2, 1, 0},
                {at + 2, 3, 0}, {at + 2, 32, 0}, {at + 2, 255, 0}};
    const size_t count = both[_i] == KEDGE_FORMS_SHORT ? sizeof rows / sizeof rows[0] : 8;
    for (size_t i = 0; i < count; i++) {
        memcpy(bytes, stored.ptr, stored.len);
        bytes[rows[i].place] = rows[i].value;
        bytes[stored.len] = 0;
        seal(bytes, stored.len + rows[i].more);
        ck_assert_msg(kedge_entry_load(kedge_view_of(bytes, stored.len + rows[i].more), &room, &loaded)
                          == KEDGE_E_CORRUPT,
                      "row %zu", i);
    }
}
END_TEST

#define HEX_16 "aaaaaaaabbbb0123"
#define HEX HEX_16 HEX_16 HEX_16 HEX_16

static void payload_comes_back(const char *payload)
{
    struct kedge_key_pair key;
    kedge_key_generate(&key);
    kedge_buf_clear(&envelope);
    ck_assert_int_eq(kedge_dsse_build(KEDGE_DSSE_IN_TOTO, kedge_view_str(payload), &key, &envelope),
                     KEDGE_OK);
    comes_back(kedge_buf_view(&envelope), packer);
}

/* Each digest is there once, as 32 bytes, however often the payload names it; what only looks like one is
 * left where it is. */
START_TEST(digests_stand_apart)
{
    const size_t at = 6 + KEDGE_HASH_LEN + KEDGE_SIGNATURE_LEN + 2; /* their number */
    char text[4096] = "[";
    begin(KEDGE_FORMS_SHORT);
    payload_comes_back("{\"a\":\"" HEX "\",\"b\":\"" HEX "\",\"c\":[\"" HEX "\",\"" HEX "\"]}");
    ck_assert(stored.ptr[0] == 2 && stored.ptr[at] == 1);
    payload_comes_back("\"" HEX "\"" HEX "\"");
    ck_assert(stored.ptr[0] == 2 && stored.ptr[at] == 1);
    payload_comes_back("[\"" HEX "0\",\"A" HEX_16 HEX_16 HEX_16 "aaaaaaaabbbb012\"]");
    ck_assert(stored.ptr[0] == 2 && stored.ptr[at] == 0);
    for (unsigned i = 0; i < 40; i++) { /* more than there are bytes for */
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "\"%064x\",", i);
    }
    payload_comes_back(text);
    ck_assert(stored.ptr[0] == 2 && stored.ptr[at] == 31);
    payload_comes_back("{\"a\":\n\"" HEX "\"}"); /* no statement: its bytes would stand for digests */
    ck_assert_int_eq(stored.ptr[0], '{');
}
END_TEST

/* A tenant's checkpoint is what differs from one to the next; spelled in another way it is as it is. */
START_TEST(checkpoints_of_tenants)
{
    begin(KEDGE_FORMS_SHORT);
    for (uint64_t size = 1; size < 1000000; size *= 7) {
        struct kedge_view entry = checkpoint(size, "example.org/a-tenant");
        comes_back(entry, packer);
        ck_assert_uint_eq(stored.len, 5 + 32 + 100 + 8 + strlen("example.org/a-tenant"));
        envelope.ptr[0] = '!'; /* no salt begins so */
        comes_back(entry, packer);
        ck_assert_uint_eq(stored.len, entry.len);
        envelope.ptr[0] = 0x80;
        envelope.ptr[33] = '\t';
        comes_back(entry, packer);
        ck_assert_uint_eq(stored.len, entry.len);
        (void)checkpoint(size, "example.org/a-tenant");
        kedge_buf_put_str(&envelope, "\n");
        comes_back(kedge_buf_view(&envelope), packer);
        ck_assert_uint_eq(stored.len, envelope.len);
        (void)checkpoint(size, "example.org/a-tenant"); /* signed twice */
        kedge_buf_put(&envelope, "", 1);                /* so that it can be searched */
        envelope.len--;
        const char *line = strstr((const char *)envelope.ptr + 33, "\n\n") + 2;
        struct kedge_view again = kedge_view_of(
            (const uint8_t *)line, envelope.len - (size_t)((const uint8_t *)line - envelope.ptr));
        uint8_t copy[512];
        memcpy(copy, again.ptr, again.len);
        kedge_buf_put(&envelope, copy, again.len);
        comes_back(kedge_buf_view(&envelope), packer);
        ck_assert_uint_eq(stored.len, envelope.len);
    }
}
END_TEST

/* A record of the table of heads, whose key is the size. */
START_TEST(heads)
{
    struct kedge_view note = checkpoint(77, "example.org/main"), origin = kedge_view_str("example.org/main");
    struct kedge_view loaded;
    note = kedge_view_of(note.ptr + 32, note.len - 32);
    struct kedge_view head = kedgei_head_store(origin, 77, note, &stored);
    ck_assert_uint_eq(head.len, 101);
    ck_assert_int_eq(kedge_head_load(origin, 77, head, &room, &loaded), KEDGE_OK);
    ck_assert(kedge_view_eq(loaded, note));
    for (size_t bit = 0; bit < 8 * head.len; bit++) { /* something that nobody signed, or no note */
        stored.ptr[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(kedge_head_load(origin, 77, head, &room, &loaded), KEDGE_OK);
        ck_assert(!kedge_view_eq(loaded, note));
        stored.ptr[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ck_assert_int_eq(kedge_head_load(origin, UINT64_MAX, head, &room, &loaded), KEDGE_E_CORRUPT);
    ck_assert_ptr_eq(kedgei_head_store(origin, 78, note, &stored).ptr, note.ptr);
    ck_assert_ptr_eq(kedgei_head_store(kedge_view_str("b"), 77, note, &stored).ptr, note.ptr);
    ck_assert_int_eq(kedge_head_load(origin, 77, note, &room, &loaded), KEDGE_OK);
    ck_assert(kedge_view_eq(loaded, note));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("entry_form");
    TCase *t = tcase_create("entry_form");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, statements_are_packed, 0, 2);
    tcase_add_loop_test(t, several_signatures, 0, 2);
    tcase_add_loop_test(t, others_are_as_they_are, 0, 2);
    tcase_add_loop_test(t, every_bit_counts, 0, 3);
    tcase_add_loop_test(t, lies, 0, 2);
    tcase_add_test(t, digests_stand_apart);
    tcase_add_test(t, checkpoints_of_tenants);
    tcase_add_test(t, heads);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
