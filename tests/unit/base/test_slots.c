/* Records that are overwritten in turn: the newest whole one counts, whatever a crash left of the last write.
 */
#include "common/base/os/slots.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "tests/unit/base/check.h"

enum { MAX = KEDGE_SLOT_CONTENT_MAX };
static char dir[64], path[KEDGE_PATH_MAX];

static void put(uint64_t sequence, const char *text)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_slots_write(path, sequence, kedge_view_str(text), &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
}

static void expect(uint64_t sequence, const char *text)
{
    struct kedge_buf out;
    struct kedge_diag d = {.text = ""};
    uint64_t found = 0;
    kedge_buf_init(&out, MAX);
    int err = kedge_slots_read(path, &out, &found, &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(found, sequence);
    ck_assert(kedge_view_eq(kedge_buf_view(&out), kedge_view_str(text)));
    kedge_buf_deinit(&out);
}

static int error(void)
{
    struct kedge_buf out;
    uint64_t found = 0;
    kedge_buf_init(&out, MAX);
    int err = kedge_slots_read(path, &out, &found, NULL);
    kedge_buf_deinit(&out);
    return err;
}

static void set_up(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-slots-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(kedge_path_join(path, dir, "record"), KEDGE_OK);
}

static void tear_down(void)
{
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

START_TEST(in_turn)
{
    set_up();
    ck_assert_int_eq(error(), KEDGE_E_NOT_FOUND);
    put(1, "one, the longest of all");
    expect(1, "one, the longest of all");
    put(2, "two");
    expect(2, "two");
    put(3, "");
    expect(3, "");
    put(4, "four");
    put(5, "five");
    expect(5, "five");
    tear_down();
}
END_TEST

START_TEST(limits)
{
    static char most[MAX + 2];
    set_up();
    memset(most, 'x', sizeof most);
    most[MAX] = '\0';
    put(1, most);
    put(2, most);
    expect(2, most);
    most[MAX] = 'x';
    most[MAX + 1] = '\0';
    ck_assert_int_eq(kedge_slots_write(path, 3, kedge_view_str(most), NULL), KEDGE_E_TOO_LONG);
    most[MAX] = '\0';
    expect(2, most);
    tear_down();
}
END_TEST

/* Every prefix of a write over an older record, and every changed byte of it: the former record counts, or
 * the new one when all of it is there. */
START_TEST(torn)
{
    struct kedge_buf before, after;
    set_up();
    put(1, "first");
    put(2, "second");
    kedge_buf_init(&before, 4 * MAX);
    kedge_buf_init(&after, 4 * MAX);
    ck_assert_int_eq(kedge_file_read(path, &before, NULL), KEDGE_OK);
    put(3, "third and longer");
    ck_assert_int_eq(kedge_file_read(path, &after, NULL), KEDGE_OK);
    ck_assert_uint_eq(before.len, after.len);
    size_t end = 0; /* of what the write changed */
    for (size_t i = 0; i < after.len; i++) {
        end = before.ptr[i] != after.ptr[i] ? i + 1 : end;
    }
    ck_assert_uint_gt(end, 20);
    for (size_t cut = 0; cut <= end; cut++) {
        memcpy(before.ptr, after.ptr, cut);
        ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&before), 0600, NULL), KEDGE_OK);
        expect(cut < end ? 2 : 3, cut < end ? "second" : "third and longer");
    }
    for (size_t i = 0; i < end; i++) {
        after.ptr[i] ^= 1;
        ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&after), 0600, NULL), KEDGE_OK);
        expect(2, "second");
        after.ptr[i] ^= 1;
    }
    memset(after.ptr, 0, after.len);
    ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&after), 0600, NULL), KEDGE_OK);
    ck_assert_int_eq(error(), KEDGE_E_CORRUPT);
    kedge_buf_deinit(&before);
    kedge_buf_deinit(&after);
    tear_down();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {in_turn, limits, torn};
    return run_suite("base/slots", tests, sizeof tests / sizeof tests[0]);
}
