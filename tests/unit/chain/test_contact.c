/* Openings of contacts: what is written reads back, and nothing else does. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/statement/contact.h"
#include "crypto/sign.h"

static const char OPENING[] =
    "{\n  \"format\": \"kedge-contact/v1\",\n  \"tenant\": \"north\",\n  \"about\": \"ward-3\",\n  \"salt\": "
    "\"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\",\n  \"text\": \"example update "
    "payload\"\n}\n";

static struct kedge_contact sample(void)
{
    struct kedge_contact c = {.tenant = {"north"}, .about = {"ward-3"}, .text = "example update payload"};
    for (size_t i = 0; i < KEDGE_COMMITMENT_SALT_LEN; i++) {
        c.salt.b[i] = (uint8_t)i;
    }
    return c;
}

START_TEST(an_opening_reads_back)
{
    struct kedge_contact c = sample(), again;
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash commitment;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_buf_init(&out, KEDGE_CONTACT_FILE_MAX);
    ck_assert_int_eq(kedge_contact_write(&c, &out), KEDGE_OK);
    ck_assert_uint_eq(out.len, strlen(OPENING));
    ck_assert_mem_eq(out.ptr, OPENING, out.len);
    ck_assert_int_eq(kedge_contact_read(kedge_buf_view(&out), &again, NULL), KEDGE_OK);
    ck_assert_mem_eq(&again, &c, sizeof c);
    kedge_contact_commitment(&again,
                             &commitment); /* second vector of commitment.tsv, the format's proposal */
    kedge_hash_hex(&commitment, hex);
    ck_assert_str_eq(hex, "83de356a730fcd40bf094597ab5e4257942eb11e9cbd1116eb239db76b61a104");
}
END_TEST

START_TEST(the_longest_text_fits_its_file)
{
    struct kedge_contact c = sample(), again;
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&out, KEDGE_CONTACT_FILE_MAX);
    memset(c.text, '\n', KEDGE_CONTACT_TEXT_MAX); /* six bytes each */
    c.about.s[0] = '\0';
    memset(&c.about, 0, sizeof c.about);
    ck_assert_int_eq(kedge_contact_write(&c, &out), KEDGE_OK);
    ck_assert_int_eq(kedge_contact_read(kedge_buf_view(&out), &again, NULL), KEDGE_OK);
    ck_assert_str_eq(again.text, c.text);
}
END_TEST

static const struct {
    const char *from, *to;
} wrong[] = {
    {"contact/v1", "contact/v2"},
    {"\"north\"", "\"North\""},
    {"\"north\"", "\"\""},
    {"\"ward-3\"", "\"ward 3\""},
    {"\"ward-3\"", "3"},
    {"0001", "000G"},
    {"0001", "00010"},
    {"\"example update payload\"", "\"\""},
    {"\"example update payload\"", "\"a\\u0007b\""},
    {"\"example update payload\"", "7"},
    {"\"tenant\"", "\"tenant\": \"north\", \"more\": 1, \"x\""},
    {"  \"about\": \"ward-3\",\n", ""},
    {"}\n", "} x"},
};

START_TEST(other_text_is_refused)
{
    char text[1000];
    const char *at = strstr(OPENING, wrong[_i].from);
    ck_assert_ptr_nonnull(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - OPENING), OPENING, wrong[_i].to,
             at + strlen(wrong[_i].from));
    struct kedge_contact c = {.text = "untouched"};
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_contact_read(kedge_view_str(text), &c, &d), KEDGE_E_FORMAT);
    ck_assert_str_eq(c.text, "untouched");
    ck_assert(d.text[0] != '\0');
}
END_TEST

START_TEST(texts_are_bounded)
{
    char text[KEDGE_CONTACT_TEXT_MAX + 2];
    memset(text, 'a', sizeof text);
    ck_assert(kedge_contact_text_is_valid(kedge_view_of(text, KEDGE_CONTACT_TEXT_MAX)));
    ck_assert(!kedge_contact_text_is_valid(kedge_view_of(text, KEDGE_CONTACT_TEXT_MAX + 1)));
    ck_assert(!kedge_contact_text_is_valid(kedge_view_of(text, 0)));
    text[3] = '\0';
    ck_assert(!kedge_contact_text_is_valid(kedge_view_of(text, 9)));
    text[3] = (char)0xff;
    ck_assert(!kedge_contact_text_is_valid(kedge_view_of(text, 9)));
    text[3] = '\n';
    ck_assert(kedge_contact_text_is_valid(kedge_view_of(text, 9)));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("contact");
    TCase *t = tcase_create("contact");
    KEDGE_ASSERT(kedge_crypto_init() == KEDGE_OK);
    tcase_add_test(t, an_opening_reads_back);
    tcase_add_test(t, the_longest_text_fits_its_file);
    tcase_add_loop_test(t, other_text_is_refused, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(t, texts_are_bounded);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
