/* Power fails while blobs are put into a pack and removed from it, at every write and in between, and the
 * disk loses, reorders and tears what was not flushed (disk_model.h): what was answered holds. Blobs that
 * were put are whole, of those that were removed no byte is left, and the pack can be gone on with. Control:
 * without flushes blobs are lost. */
#include <stdio.h>
#include <stdlib.h>

#include "chain/store/blob/blobs.h"
#include "chain/store/blob/packs.h"
#include "common/base/os/file.h"
#include "disk_model.h"

enum { STEPS = 60, LEN_MAX = 3000, IMAGES = 2000, CONTROL_IMAGES = 300 };

static char dir[64], copy[64];
static uint8_t content[STEPS][LEN_MAX];
static size_t len_of[STEPS];
static struct kedge_hash digest_of[STEPS];
/* After acknowledgement n the blobs below put_until are there, but for the first third of every removed one.
 */
static struct {
    uint32_t put, removed;
} told[2 * STEPS + 2];
static size_t told_count;

/* Blobs are removed in order, every third one. */
static bool is_removed(uint32_t i, uint32_t removed)
{
    return i % 3 == 0 && i / 3 < removed;
}

static struct kedge_blobs *open_store(const char *at)
{
    static const struct kedge_blobs_options options = {.pack = true};
    struct kedge_blobs *b;
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(kedge_blobs_open(at, &options, &b, &d) == KEDGE_OK, "%s", d.text);
    return b;
}

static void acknowledge(uint32_t put, uint32_t removed)
{
    told[told_count].put = put;
    told[told_count].removed = removed;
    (void)add_op(OP_ACKNOWLEDGE, 0, ++told_count);
}

static void record(void)
{
    char path[128];
    struct stat st;
    struct kedge_rng rng;
    kedge_rng_init(&rng, 7, KEDGE_RNG_TEST, 2, 3);
    for (uint32_t i = 0; i < STEPS; i++) {
        len_of[i] = 40 + (size_t)kedge_rng_below(&rng, LEN_MAX - 40);
        for (size_t k = 0; k < len_of[i]; k++) {
            content[i][k] = (uint8_t)kedge_rng_u64(&rng);
        }
        kedge_sha256(kedge_view_of(content[i], len_of[i]), &digest_of[i]);
    }
    struct kedge_blobs *b = open_store(dir);
    struct kedge_view part = kedge_view_of(content[0], len_of[0]);
    ck_assert_int_eq(kedge_blobs_put(b, &part, 1, NULL, NULL), KEDGE_OK);
    kedge_blobs_close(b);
    snprintf(path, sizeof path, "%s/blobs/pack-1", dir);
    ck_assert_int_eq(stat(path, &st), 0);
    struct kedge_buf start;
    kedge_buf_init(&start, IMAGE_MAX);
    ck_assert_int_eq(kedge_file_read(path, &start, NULL), KEDGE_OK);
    logged_inodes[0] = st.st_ino;
    struct op *whole = add_op(OP_WRITE, 0, 0);
    whole->data = start.ptr;
    whole->len = start.len;
    (void)add_op(OP_FLUSH, 0, 0);
    acknowledge(1, 0);
    is_logging = true;
    b = open_store(dir);
    uint32_t removed = 0;
    for (uint32_t i = 1; i < STEPS; i++) {
        part = kedge_view_of(content[i], len_of[i]);
        ck_assert_int_eq(kedge_blobs_put(b, &part, 1, NULL, NULL), KEDGE_OK);
        acknowledge(i + 1, removed);
        if (i % 5 == 4) {
            ck_assert_int_eq(kedge_blobs_remove(b, &digest_of[3 * removed], NULL), KEDGE_OK);
            acknowledge(i + 1, ++removed);
        }
    }
    kedge_blobs_close(b);
    is_logging = false;
}

static bool has_bytes(const struct disk_file *f, uint32_t i)
{
    for (size_t k = 0; k + 32 <= len_of[i]; k += 512 - 32) {
        if (memmem(f->image, f->image_len, content[i] + k, 32)) {
            return true;
        }
    }
    return false;
}

/* Whether all that was answered holds of this image. */
static bool judge(const struct disk *d, struct kedge_blobs *b)
{
    uint32_t put = told[d->acknowledged - 1].put, removed = told[d->acknowledged - 1].removed;
    bool next_goes = d->acknowledged < told_count && told[d->acknowledged].removed > removed;
    for (uint32_t i = 0; i < put; i++) {
        int err = kedge_blobs_verify(b, &digest_of[i], NULL);
        if (is_removed(i, removed)) {
            if (err != KEDGE_E_NOT_FOUND || has_bytes(&d->files[0], i)) {
                return false;
            }
        } else if (err && !(next_goes && i == 3 * removed)) {
            return false;
        }
    }
    return true;
}

static void look_at(const struct disk *d, size_t *lost)
{
    char path[128];
    snprintf(path, sizeof path, "%s/blobs/pack-1", copy);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, d->files[0].image, d->files[0].image_len, 0), (ssize_t)d->files[0].image_len);
    close(fd);
    struct kedge_blobs *b = open_store(copy);
    bool is_fine = judge(d, b);
    struct kedge_view part = kedge_view_of(content[STEPS - 1] + 1, len_of[STEPS - 1] - 1);
    struct kedge_hash next;
    ck_assert_int_eq(kedge_blobs_put(b, &part, 1, &next, NULL), KEDGE_OK); /* it is gone on with */
    ck_assert_int_eq(kedge_blobs_verify(b, &next, NULL), KEDGE_OK);
    is_fine = is_fine && judge(d, b);
    kedge_blobs_close(b);
    *lost += !is_fine;
}

/* flushes: false in the control. */
static size_t look_at_all(size_t images, bool flushes)
{
    struct disk *d = disk_new();
    struct kedge_rng rng;
    size_t lost = 0, seen = 0;
    kedge_rng_init(&rng, 11, KEDGE_RNG_TEST, 5, 6);
    while (seen < images) {
        for (unsigned i = 0; i < FILES; i++) {
            d->files[i].pending_count = 0;
            d->files[i].durable_len = d->files[i].image_len = 0;
            memset(d->files[i].durable, 0, IMAGE_MAX / 8);
        }
        d->acknowledged = 0;
        for (size_t i = 0; i < op_count && seen < images; i++) {
            if (flushes || i < 3 || ops[i].kind != OP_FLUSH) {
                step(d, &ops[i]);
            }
            if (i >= 3 && kedge_rng_below(&rng, 4) == 0) {
                crash(d, &ops[i], &rng);
                look_at(d, &lost);
                seen++;
            }
        }
    }
    disk_free(d);
    return lost;
}

START_TEST(what_was_answered_holds)
{
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(dir, sizeof dir, "%s/kedge-packs-XXXXXX", where);
    snprintf(copy, sizeof copy, "%s/kedge-image-XXXXXX", where);
    ck_assert(mkdtemp(dir) && mkdtemp(copy));
    ops = kedge_mem_new(OPS_MAX, sizeof *ops);
    ck_assert_ptr_nonnull(ops);
    record();
    kedge_blobs_close(open_store(copy));
    size_t lost = look_at_all(IMAGES, true), control = look_at_all(CONTROL_IMAGES, false);
    printf("power loss of a pack: %d images of %zu operations, %zu lost something answered; without flushes "
           "%zu of %d\n",
           IMAGES, op_count, lost, control, CONTROL_IMAGES);
    ck_assert_uint_eq(lost, 0);
    ck_assert_uint_gt(control, CONTROL_IMAGES / 2);
    for (size_t i = 0; i < op_count; i++) {
        kedge_mem_free(ops[i].data);
    }
    kedge_mem_free(ops);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
    ck_assert_int_eq(kedge_dir_remove(copy), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store packs power");
    TCase *t = tcase_create("power");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, what_was_answered_holds);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
