/* Times as text and back. */
#include "common/base/os/utc.h"

#include "tests/unit/base/check.h"

START_TEST(every_form)
{
    const int64_t t = 1795887909; /* 2026-11-28 17:45:09 UTC */
    ck_assert_str_eq(kedge_utc(t, KEDGE_UTC_RFC3339, "-").s, "2026-11-28T17:45:09Z");
    ck_assert_str_eq(kedge_utc(t, KEDGE_UTC_SECONDS, "-").s, "2026-11-28 17:45:09Z");
    ck_assert_str_eq(kedge_utc(t, KEDGE_UTC_MINUTES, "-").s, "2026-11-28 17:45Z");
    ck_assert_str_eq(kedge_utc(t, KEDGE_UTC_DAY, "-").s, "2026-11-28");
}
END_TEST

START_TEST(what_is_no_time)
{
    ck_assert_str_eq(kedge_utc(0, KEDGE_UTC_RFC3339, "never").s, "never");
    ck_assert_str_eq(kedge_utc(-5, KEDGE_UTC_RFC3339, "never").s, "never");
    ck_assert_str_eq(kedge_utc(INT64_MAX, KEDGE_UTC_DAY, "?").s, "?");
    ck_assert_str_eq(kedge_utc(INT64_C(253402300799), KEDGE_UTC_RFC3339, "?").s, "9999-12-31T23:59:59Z");
    ck_assert_str_eq(kedge_utc(INT64_C(253402300800), KEDGE_UTC_RFC3339, "?").s, "?");
    ck_assert_str_eq(kedge_utc(0, KEDGE_UTC_DAY, "0123456789012345678901234567890123456789").s,
                     "0123456789012345678901234567890");
}
END_TEST

START_TEST(one_spelling_is_read)
{
    static const char *const refused[] = {"",
                                          "2026-11-28",
                                          "2026-11-28 17:45:09Z",
                                          "2026-11-28t17:45:09z",
                                          "2026-11-28T17:45:09",
                                          "2026-11-28T17:45:09+",
                                          "2026-04-31T00:00:00Z",
                                          "2025-02-29T00:00:00Z",
                                          "2026-11-28T24:00:00Z",
                                          "2026-11-28T17:45:60Z",
                                          "2026-13-01T00:00:00Z",
                                          "1969-12-31T23:59:59Z",
                                          "2026-11-2 T17:45:09Z",
                                          "2026-11-28T17:45:09Z "};
    int64_t t = 1;
    ck_assert(kedge_utc_parse("2026-11-28T17:45:09Z", &t) && t == 1795887909);
    ck_assert(kedge_utc_parse("2024-02-29T23:59:59Z", &t) && t == 1709251199);
    ck_assert(kedge_utc_parse("1970-01-01T00:00:00Z", &t) && t == 0);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ck_assert_msg(!kedge_utc_parse(refused[i], &t), "%s", refused[i]);
    }
    for (int64_t s = 1; s < INT64_C(253402300800); s += 86400 * 11 + 12345) {
        ck_assert(kedge_utc_parse(kedge_utc(s, KEDGE_UTC_RFC3339, "").s, &t) && t == s);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {every_form, what_is_no_time, one_spelling_is_read};
    return run_suite("base/utc", tests, sizeof tests / sizeof tests[0]);
}
