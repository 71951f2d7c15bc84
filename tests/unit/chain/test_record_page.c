/* docs/statements.md is what readers in other languages go by: its samples are what Kedge reads and writes.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "chain/statement/statement.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "tests/fixtures/run.h"

enum { PAGE_MAX = 1 << 20 };

static struct kedge_buf page;
static struct kedge_statement *st;

static void set_up(void)
{
    kedge_buf_init(&page, PAGE_MAX);
    st = kedge_mem_new(1, sizeof *st);
    ck_assert_ptr_nonnull(st);
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    ck_assert_int_eq(kedge_file_read("docs/statements.md", &page, NULL), KEDGE_OK);
    kedge_buf_put_u8(&page, 0);
}

static void tear_down(void)
{
    kedge_mem_free(st);
    kedge_buf_deinit(&page);
}

/* The statement in that line, which must be the one spelling of it. */
static enum kedge_statement_kind read_sample(struct kedge_view line)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf again;
    kedge_buf_init(&again, KEDGE_ENTRY_MAX);
    ck_assert_msg(kedge_statement_decode(line, st, &d) == KEDGE_OK, "%s: %.*s", d.text, (int)line.len,
                  (const char *)line.ptr);
    ck_assert_msg(kedge_statement_encode(st, &again, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_msg(kedge_view_eq(line, kedge_buf_view(&again)), "%.*s\nis written\n%.*s", (int)line.len,
                  (const char *)line.ptr, (int)again.len, (const char *)again.ptr);
    kedge_buf_deinit(&again);
    return st->kind;
}

START_TEST(every_kind_has_a_sample_that_is_read_and_written)
{
    bool seen[KEDGE_ST_KIND_COUNT] = {false};
    const char *p = (const char *)page.ptr;
    while ((p = strstr(p, "\n{\"_type\"")) != NULL) {
        size_t len = strcspn(++p, "\n");
        seen[read_sample(kedge_view_of((const uint8_t *)p, len))] = true;
    }
    for (int kind = 0; kind < KEDGE_ST_KIND_COUNT; kind++) {
        char heading[80];
        const char *name = kedge_statement_kind_name((enum kedge_statement_kind)kind);
        snprintf(heading, sizeof heading, "\n## %s\n", name);
        ck_assert_msg(seen[kind], "%s has no sample", name);
        ck_assert_msg(strstr((const char *)page.ptr, heading) != NULL, "%s has no heading", name);
    }
}
END_TEST

/* The check above can fail: a member of another name. */
START_TEST(another_member_is_refused)
{
    struct kedge_buf changed;
    const char *from = strstr((const char *)page.ptr, "\n{\"_type\"");
    ck_assert_ptr_nonnull(from);
    size_t len = strcspn(++from, "\n");
    kedge_buf_init(&changed, KEDGE_ENTRY_MAX);
    kedge_buf_put(&changed, from, len);
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&changed), st, NULL), KEDGE_OK);
    char *scope = memmem(changed.ptr, changed.len, "\"scope\"", 7);
    ck_assert_ptr_nonnull(scope);
    scope[1] = 'S';
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&changed), st, NULL), KEDGE_E_FORMAT);
    kedge_buf_deinit(&changed);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("record page");
    TCase *t = tcase_create("statements");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, every_kind_has_a_sample_that_is_read_and_written);
    tcase_add_test(t, another_member_is_refused);
    suite_add_tcase(s, t);
    return run_suite(s);
}
