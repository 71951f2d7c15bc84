/* Texts of others: what is plain, at both ends of each range, and how anything else is shown. Such characters
 * stand here by their numbers only, so that this file cannot mislead its own reader. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

/* UTF-8 by the book, surrogates and all. */
static size_t encode(uint32_t p, char out[5])
{
    size_t n = 0;
    if (p < 0x80) {
        out[n++] = (char)p;
    } else if (p < 0x800) {
        out[n++] = (char)(0xc0 | p >> 6);
    } else if (p < 0x10000) {
        out[n++] = (char)(0xe0 | p >> 12);
        out[n++] = (char)(0x80 | (p >> 6 & 0x3f));
    } else {
        out[n++] = (char)(0xf0 | p >> 18);
        out[n++] = (char)(0x80 | (p >> 12 & 0x3f));
        out[n++] = (char)(0x80 | (p >> 6 & 0x3f));
    }
    if (p >= 0x80) {
        out[n++] = (char)(0x80 | (p & 0x3f));
    }
    out[n] = '\0';
    return n;
}

static bool plain_within(uint32_t p)
{
    char text[12] = "a", c[5];
    size_t n = encode(p, c);
    memcpy(text + 1, c, n);
    text[1 + n] = 'b';
    return kedge_text_is_plain(kedge_view_of(text, n + 2));
}

START_TEST(every_range_ends_where_it_should)
{
    static const struct {
        uint32_t first, last;
    } refused[] = {{0, 0x1f},          {0x7f, 0x9f},        {0xad, 0xad},       {0x61c, 0x61c},
                   {0x180e, 0x180e},   {0x200b, 0x200b},    {0x200e, 0x200f},   {0x2028, 0x202e},
                   {0x2060, 0x206f},   {0xd800, 0xdfff},    {0xfdd0, 0xfdef},   {0xfeff, 0xfeff},
                   {0xfff9, 0xfffb},   {0xfffe, 0xffff},    {0x1fffe, 0x1ffff}, {0xe0000, 0xe007f},
                   {0xefffe, 0xeffff}, {0x10fffe, 0x10ffff}};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        uint32_t a = refused[i].first, b = refused[i].last;
        ck_assert_msg(!plain_within(a) && !plain_within(b) && !plain_within(a + (b - a) / 2), "%x to %x", a,
                      b);
        ck_assert_msg(a == 0 || a == 0x1fffe || plain_within(a - 1) || !kedge_char_is_plain(a - 1), "%x",
                      a - 1);
    }
    static const uint32_t plain[] = {
        0x20,   0x7e,   0xa0,   0xac,   0xae,    0x61b,   0x61d,   0x180d,  0x180f,  0x200a,  0x200c,
        0x200d, 0x2010, 0x2027, 0x202f, 0x205f,  0x2070,  0xd7ff,  0xe000,  0xfdcf,  0xfdf0,  0xfefe,
        0xff00, 0xfff8, 0xfffc, 0xfffd, 0x10000, 0x1f600, 0x1fffd, 0x20000, 0xdfffd, 0xe0080, 0x10fffd};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        ck_assert_msg(plain_within(plain[i]) && kedge_char_is_plain(plain[i]), "%x", plain[i]);
    }
    ck_assert(!kedge_char_is_plain(0x110000) && !kedge_char_is_plain(UINT32_MAX));
}
END_TEST

START_TEST(each_character_is_stepped_over)
{
    for (uint32_t p = 0; p <= 0x10ffff; p++) {
        char c[5];
        uint32_t got = UINT32_MAX;
        size_t n = encode(p, c), step = kedge_utf8_next(kedge_view_of(c, n), &got);
        bool surrogate = p >= 0xd800 && p <= 0xdfff;
        ck_assert_msg(surrogate ? step == 0 : step == n && got == p, "%x: %zu bytes, %x", p, step, got);
        ck_assert_uint_eq(n > 1 ? kedge_utf8_next(kedge_view_of(c, n - 1), &got) : 0, 0); /* cut */
    }
    static const char *const none[] = {"\x80",
                                       "\xc0\xaf",
                                       "\xc1\xbf",
                                       "\xe0\x9f\xbf",
                                       "\xf0\x8f\xbf\xbf",
                                       "\xf4\x90\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xff",
                                       "\xc3(",
                                       "\xe2\x82("};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        uint32_t got;
        ck_assert_msg(kedge_utf8_next(kedge_view_str(none[i]), &got) == 0, "case %zu", i);
        ck_assert(!kedge_text_is_plain(kedge_view_str(none[i]))
                  && !kedge_utf8_is_valid(kedge_view_str(none[i])));
    }
    uint32_t got;
    ck_assert_uint_eq(kedge_utf8_next(kedge_view_of("", 0), &got), 0);
}
END_TEST

START_TEST(lines_and_tabs_where_they_are_allowed)
{
    ck_assert(kedge_text_is_plain(kedge_view_of("", 0)) && kedge_text_is_plain_lines(kedge_view_of("", 0)));
    ck_assert(!kedge_text_is_plain(kedge_view_str("a\nb"))
              && kedge_text_is_plain_lines(kedge_view_str("a\n\tb")));
    ck_assert(!kedge_text_is_plain_lines(kedge_view_str("a\r\n")));
    ck_assert(!kedge_text_is_plain_lines(kedge_view_of("a\0b", 3))
              && !kedge_text_is_plain(kedge_view_of("a\0b", 3)));
}
END_TEST

/* NOLINTBEGIN(misc-misleading-bidirectional): they are what is shown escaped, and escaped here */
START_TEST(what_is_not_plain_is_shown)
{
    static const struct {
        const char *text, *shown, *made_plain;
    } cases[] = {{"plain \xc3\xbc\xf0\x9f\x98\x80", "plain \xc3\xbc\xf0\x9f\x98\x80",
                  "plain \xc3\xbc\xf0\x9f\x98\x80"},
                 {"\x1b[2J", "\\x1b[2J", "?[2J"},
                 {"a\n\tb\r", "a\n\tb\\x0d", "a  b "},
                 {"\xc2\x9b"
                  "31m",
                  "\\u009b31m", "?31m"},
                 {"\xe2\x80\xae"
                  "evil",
                  "\\u202eevil", "?evil"},
                 {"\xe2\x80\xa8|\xef\xbb\xbf", "\\u2028|\\ufeff", "?|?"},
                 {"\xf3\xa0\x81\x81", "\\U000e0041", "?"},
                 {"\xff"
                  "a\xe2\x80",
                  "\\xffa\\xe2\\x80", "?a??"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_buf out;
        char copy[64];
        kedge_buf_init(&out, 1024);
        kedge_text_put_shown(&out, kedge_view_str(cases[i].text));
        ck_assert_msg(kedge_view_eq(kedge_buf_view(&out), kedge_view_str(cases[i].shown)), "case %zu: %.*s",
                      i, (int)out.len, (const char *)out.ptr);
        ck_assert(kedge_text_is_plain_lines(kedge_buf_view(&out)));
        kedge_buf_deinit(&out);
        struct kedge_shown shown = kedge_text_shown(cases[i].text);
        ck_assert_str_eq(shown.s, cases[i].shown);
        snprintf(copy, sizeof copy, "%s", cases[i].text);
        kedge_text_make_plain(copy);
        ck_assert_str_eq(copy, cases[i].made_plain);
    }
}
END_TEST
/* NOLINTEND(misc-misleading-bidirectional) */

START_TEST(a_long_text_is_cut_between_characters)
{
    char long_text[5000];
    memset(long_text, 'x', sizeof long_text);
    memcpy(long_text + sizeof((struct kedge_shown *)0)->s - 3, "\x1b", 1);
    long_text[sizeof long_text - 1] = '\0';
    struct kedge_shown shown = kedge_text_shown(long_text);
    ck_assert_uint_eq(strlen(shown.s), sizeof shown.s - 3); /* "\x1b" takes four */
    char copy[6];
    kedge_text_copy_plain(copy, sizeof copy,
                          "abc\xe2\x80\xa6"); /* three bytes, for two of which there is room */
    ck_assert_str_eq(copy, "abc");
    kedge_text_copy_plain(copy, sizeof copy, "ab\xe2\x80\xa6");
    ck_assert_str_eq(copy, "ab\xe2\x80\xa6");
    kedge_text_copy_plain(copy, sizeof copy, "\x1b\xff\x80");
    ck_assert_str_eq(copy, "???");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base/plain");
    TCase *c = tcase_create("plain");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, every_range_ends_where_it_should);
    tcase_add_test(c, each_character_is_stepped_over);
    tcase_add_test(c, lines_and_tabs_where_they_are_allowed);
    tcase_add_test(c, what_is_not_plain_is_shown);
    tcase_add_test(c, a_long_text_is_cut_between_characters);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
