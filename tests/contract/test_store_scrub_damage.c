/* Closing a store whose file is damaged empties what is unused, or nothing. */
#include "marks_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/base/rng.h"

static void write_at(int fd, const uint8_t *bytes, size_t len, size_t offset)
{
    ck_assert_int_eq(pwrite(fd, bytes, len, (off_t)offset), (ssize_t)len);
}

/* Whether a flip there is of interest: all by which LMDB finds its way, and some of the rest. */
static bool is_chosen(const uint8_t *bytes, size_t at, struct kedge_rng *rng)
{
    const uint8_t *page = bytes + at / PAGE * PAGE;
    size_t place = at % PAGE;
    uint16_t flags, lower;
    memcpy(&flags, page + 10, 2);
    memcpy(&lower, page + 12, 2);
    bool is_structure = place < 16 || (at < 2 * PAGE ? place < 160 : flags < 4 && place < lower);
    return kedge_rng_below(rng, is_structure ? 12 : 200) == 0;
}

/* One flipped bit anywhere in the file of an open store: close empties all that is unused, or nothing; no
 * byte in use goes. (Values with pages of their own are left out: how long they are is believed.) */
START_TEST(damage_makes_nothing_go)
{
    struct kedge_buf dirty, clean, now;
    struct kedge_rng rng;
    make_dir();
    struct kedge_kv *kv = open_store(false);
    write_records(kv, false);
    read_file(&dirty);
    kedge_kv_close(kv);
    check_clean(false);
    read_file(&clean);
    ck_assert_uint_eq(clean.len, dirty.len);
    kedge_rng_init(&rng, 4, KEDGE_RNG_TEST, 0, 0);
    size_t flips = 0, refused = 0;
    int fd = open(marks_file, O_RDWR);
    for (size_t at = 0; at < dirty.len; at++) {
        if (!is_chosen(dirty.ptr, at, &rng)) {
            continue;
        }
        uint8_t byte = dirty.ptr[at] ^ (uint8_t)(1u << kedge_rng_below(&rng, 8));
        write_at(fd, dirty.ptr, dirty.len, 0);
        kv = open_store(false);
        write_at(fd, &byte, 1, at);
        kedge_kv_close(kv);
        read_file(&now);
        size_t emptied = 0;
        for (size_t i = 0; i < now.len; i++) {
            uint8_t was = i == at ? byte : dirty.ptr[i];
            emptied += now.ptr[i] != was;
            if (now.ptr[i] != was && (now.ptr[i] != 0 || clean.ptr[i] != 0)) {
                ck_abort_msg("the flip of byte %zu made byte %zu go", at, i);
            }
        }
        kedge_buf_deinit(&now);
        flips++;
        refused += emptied == 0;
    }
    close(fd);
    printf("scrub: %zu flips, %zu left all as it was\n", flips, refused);
    ck_assert_uint_gt(flips, 200);
    ck_assert_uint_gt(refused, flips / 50);
    ck_assert_uint_lt(refused, flips);
    kedge_buf_deinit(&dirty);
    kedge_buf_deinit(&clean);
    ck_assert_int_eq(kedge_dir_remove(marks_dir), KEDGE_OK);
}
END_TEST

static uint64_t word_at(const struct kedge_buf *b, size_t offset)
{
    uint64_t v;
    memcpy(&v, b->ptr + offset, sizeof v);
    return v;
}

/* Page of the entries, neither root: its number may stand in a list by the bounds. */
static uint64_t find_leaf(const struct kedge_buf *clean)
{
    for (size_t page = 2; page < clean->len / PAGE; page++) {
        const uint8_t *p = clean->ptr + page * PAGE;
        if (p[10] == 2 && memcmp(p + PAGE - RECORD, "<rec 000", 8) == 0) {
            return page;
        }
    }
    ck_abort_msg("no leaf");
}

/* What no bound of a number shows: 0: a page in use on the list of freed ones. 1: the newest state passed off
 * as an earlier one. 2: the older state passed off as a later one. */
START_TEST(lies_make_nothing_go)
{
    enum { FREE_ROOT = 16 + 64, NUMBER = 16 + 128 };
    struct kedge_buf clean, dirty, now;
    make_dir();
    struct kedge_kv *kv = open_store(false);
    write_records(kv, true);
    read_file(&dirty);
    kedge_kv_close(kv);
    read_file(&clean);
    size_t newest = word_at(&dirty, NUMBER) < word_at(&dirty, PAGE + NUMBER) ? PAGE : 0;
    size_t offset = (_i == 1 ? newest : PAGE - newest) + NUMBER;
    uint64_t value = word_at(&dirty, offset) + (_i == 1 ? UINT64_MAX - 1 : 2);
    if (_i == 0) {
        size_t list = word_at(&dirty, newest + FREE_ROOT) * PAGE;
        uint16_t node;
        ck_assert_uint_eq(dirty.ptr[list + 10], 2); /* a leaf; its first record: a key, a count, numbers */
        memcpy(&node, dirty.ptr + list + 16, sizeof node);
        offset = list + node + 24;
        value = find_leaf(&clean);
        ck_assert_uint_gt(word_at(&dirty, offset - 8), 0);
    }
    int fd = open(marks_file, O_RDWR);
    write_at(fd, dirty.ptr, dirty.len, 0);
    kv = open_store(false);
    memcpy(dirty.ptr + offset, &value, sizeof value);
    write_at(fd, dirty.ptr + offset, sizeof value, offset);
    kedge_kv_close(kv);
    close(fd);
    read_file(&now);
    ck_assert(kedge_view_eq(kedge_buf_view(&now), kedge_buf_view(&dirty)));
    kedge_buf_deinit(&now);
    kedge_buf_deinit(&dirty);
    kedge_buf_deinit(&clean);
    ck_assert_int_eq(kedge_dir_remove(marks_dir), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store scrub damage");
    TCase *t = tcase_create("close");
    tcase_set_timeout(t, 100);
    tcase_add_test(t, damage_makes_nothing_go);
    tcase_add_loop_test(t, lies_make_nothing_go, 0, 3);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
