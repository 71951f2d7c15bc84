/* The error list: total, unique, stable in form; diagnostics; exit codes. */
#include "common/base/diag.h"
#include "common/base/err.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/base/check.h"

struct row {
    const char *name;
    int value;
    const char *class;
    const char *text;
};

static const struct row rows[] = {
#define KEDGE_ERR(name, value, class, text) {#name, value, #class, text},
#include "common/base/err.def"
#undef KEDGE_ERR
};

enum { ROWS = sizeof rows / sizeof rows[0] };

START_TEST(list_is_total_and_unique)
{
    for (size_t i = 0; i < ROWS; i++) {
        ck_assert_int_lt(rows[i].value, 0);
        ck_assert_str_eq(kedge_strerror(rows[i].value), rows[i].text);
        ck_assert_str_eq(kedge_err_name(rows[i].value), rows[i].name);
        ck_assert_int_eq(strncmp(rows[i].name, "KEDGE_E_", 8), 0);
        ck_assert_str_eq(kedge_err_code(rows[i].value), rows[i].name + 8);
        ck_assert_int_eq(kedge_err_find(rows[i].name + 8), rows[i].value);
        ck_assert_uint_gt(strlen(rows[i].text), 0);
        for (size_t j = 0; j < i; j++) {
            ck_assert_int_ne(rows[i].value, rows[j].value);
            ck_assert_str_ne(rows[i].name, rows[j].name);
            ck_assert_str_ne(rows[i].text, rows[j].text);
        }
    }
}
END_TEST

START_TEST(any_int_has_text_class_and_exit_code)
{
    for (int err = -5000; err <= 5000; err++) {
        ck_assert_ptr_nonnull(kedge_strerror(err));
        ck_assert_ptr_nonnull(kedge_err_name(err));
        ck_assert_ptr_nonnull(kedge_err_code(err));
        int code = kedge_exit_code(err);
        ck_assert(code == 0 || (code >= 1 && code <= 5) || code == 70);
        ck_assert_int_eq(code == 0, err == KEDGE_OK);
    }
    ck_assert_str_eq(kedge_strerror(1), "unknown error");
    ck_assert_str_eq(kedge_err_code(1), "?");
    ck_assert_int_eq(kedge_err_class(1), KEDGE_CLASS_BUG);
    ck_assert_int_eq(kedge_err_find("NO_SUCH_CODE"), KEDGE_E_UNKNOWN);
    ck_assert_int_eq(kedge_err_find(""), KEDGE_E_UNKNOWN);
    ck_assert_str_eq(kedge_err_code(KEDGE_OK), "OK");
}
END_TEST

START_TEST(exit_codes)
{
    static const struct {
        int err, code;
    } table[] = {
        {KEDGE_OK, 0},          {KEDGE_E_VERIFY, 1}, {KEDGE_E_ROUND_CLOSED, 1},
        {KEDGE_E_USAGE, 2},     {KEDGE_E_ARG, 2},    {KEDGE_E_UNREACHABLE, 3},
        {KEDGE_E_NOT_FOUND, 3}, {KEDGE_E_IO, 3},     {KEDGE_E_DISK_FULL, 3},
        {KEDGE_E_TIMEOUT, 3},   {KEDGE_E_DENIED, 4}, {KEDGE_E_CORRUPT, 5},
        {KEDGE_E_FORK, 5},      {KEDGE_E_BUG, 70},   {-99999, 70},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        ck_assert_msg(kedge_exit_code(table[i].err) == table[i].code, "%s: %d", kedge_err_name(table[i].err),
                      kedge_exit_code(table[i].err));
    }
}
END_TEST

START_TEST(diag_set_wrap_hint)
{
    struct kedge_diag d;
    ck_assert_int_eq(kedge_diag_set(&d, KEDGE_E_FORMAT, "line %d: bad %s", 7, "comma"), KEDGE_E_FORMAT);
    ck_assert_int_eq(d.err, KEDGE_E_FORMAT);
    ck_assert_str_eq(d.text, "line 7: bad comma");
    ck_assert_str_eq(d.hint, "");
    ck_assert_int_eq(kedge_diag_hint(&d, "remove it in %s", "a.json"), KEDGE_E_FORMAT);
    ck_assert_str_eq(d.hint, "remove it in a.json");
    ck_assert_int_eq(kedge_diag_wrap(&d, KEDGE_E_ARG, "spec %d", 1), KEDGE_E_ARG);
    ck_assert_str_eq(d.text, "spec 1: line 7: bad comma");
    ck_assert_str_eq(d.hint, "remove it in a.json");
    ck_assert_int_eq(d.err, KEDGE_E_ARG);
    ck_assert_int_eq(kedge_diag_set(&d, KEDGE_E_BUSY, "again"), KEDGE_E_BUSY);
    ck_assert_str_eq(d.hint, "");

    ck_assert_int_eq(kedge_diag_set(NULL, KEDGE_E_IO, "x"), KEDGE_E_IO);
    ck_assert_int_eq(kedge_diag_wrap(NULL, KEDGE_E_IO, "x"), KEDGE_E_IO);
    ck_assert_int_eq(kedge_diag_hint(NULL, "x"), KEDGE_E_UNKNOWN);
}
END_TEST

START_TEST(diag_never_overflows)
{
    char longest[2 * KEDGE_DIAG_TEXT_MAX];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (size_t len = 0; len < sizeof longest; len++) { /* every prefix length, below and beyond the room */
        struct {
            struct kedge_diag d;
            char guard[8];
        } box;
        memset(&box, 'G', sizeof box);
        kedge_diag_set(&box.d, KEDGE_E_FORMAT, "%s", "inner");
        kedge_diag_wrap(&box.d, KEDGE_E_FORMAT, "%.*s", (int)len, longest);
        kedge_diag_hint(&box.d, "%s", longest);
        ck_assert_uint_lt(strnlen(box.d.text, sizeof box.d.text), sizeof box.d.text);
        ck_assert_uint_lt(strnlen(box.d.hint, sizeof box.d.hint), sizeof box.d.hint);
        ck_assert_mem_eq(box.guard, "GGGGGGGG", 8);
        if (len + 2 + 5 < KEDGE_DIAG_TEXT_MAX) {
            ck_assert_str_eq(box.d.text + len, ": inner");
        }
    }
}
END_TEST

/* A text that is cut says so, and between characters. */
START_TEST(diag_says_when_it_is_cut)
{
    char longest[KEDGE_DIAG_TEXT_MAX + 8];
    struct kedge_diag d = {.text = ""};
    for (size_t shift = 0; shift < 2;
         shift++) { /* of two-byte characters, so that both halves meet the end */
        memset(longest, 'a', sizeof longest);
        for (size_t i = shift; i + 1 < sizeof longest; i += 2) {
            memcpy(longest + i, "\xc3\xbc", 2);
        }
        longest[sizeof longest - 2 + shift] = '\0';
        ck_assert_int_eq(kedge_diag_set(&d, KEDGE_E_FORMAT, "%s", longest), KEDGE_E_FORMAT);
        ck_assert_int_eq(kedge_diag_hint(&d, "%s", longest), KEDGE_E_FORMAT);
        const char *const texts[] = {d.text, d.hint};
        for (size_t i = 0; i < 2; i++) {
            size_t len = strlen(texts[i]), whole = i ? KEDGE_DIAG_HINT_MAX : KEDGE_DIAG_TEXT_MAX;
            ck_assert_uint_ge(len, whole - 2);
            ck_assert_str_eq(texts[i] + len - 3, "…");
            ck_assert_uint_eq((len - 3 - shift) % 2, 0);
            ck_assert_mem_eq(texts[i], longest, len - 3);
        }
    }
    (void)kedge_diag_set(&d, KEDGE_E_FORMAT, "inner");
    longest[KEDGE_DIAG_TEXT_MAX - 6] = '\0';
    (void)kedge_diag_wrap(&d, KEDGE_E_FORMAT, "%s", longest); /* ": inner" does not fit */
    ck_assert_str_eq(d.text + strlen(d.text) - 3, "…");
}
END_TEST

START_TEST(failed_assertion_aborts)
{
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(STDERR_FILENO);
        KEDGE_ASSERT(1 + 1 == 3);
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {list_is_total_and_unique,
                                  any_int_has_text_class_and_exit_code,
                                  exit_codes,
                                  diag_set_wrap_hint,
                                  diag_never_overflows,
                                  diag_says_when_it_is_cut,
                                  failed_assertion_aborts};
    return run_suite("base/err", tests, sizeof tests / sizeof tests[0]);
}
