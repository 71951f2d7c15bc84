/* What a site keeps between its trainings. Of what compression leaves nothing is lost or sent twice; after a
 * crash at any moment the file counts that belongs to the update that was accepted. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon/host.h"
#include "client/daemon/update/kept.h"
#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "tests/fixtures/memory.h"
#include "tests/fixtures/run.h"

enum { INPUTS = 999, CLASSES = 5, VALUES = (INPUTS + 1) * CLASSES };

static struct kedge_site_host host;
static struct kedge_client_work work = {.h = &host};
static struct kedge_job_spec spec;
static const struct kedge_id job = {"j"};
static const struct kedge_site_digest none;

static const char *path_of(const char *name)
{
    static char paths[4][KEDGE_PATH_MAX + 64];
    static unsigned next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", host.dir, name);
    return p;
}

static void open_folder(enum kedge_compact_kind kind, uint32_t share, uint32_t carry)
{
    snprintf(host.dir, sizeof host.dir, "/tmp/kedge-own-left-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(host.dir));
    ck_assert_int_eq(kedge_dir_make(path_of("work"), 0700, NULL), KEDGE_OK);
    spec = (struct kedge_job_spec){
        .name = job, .scale = 8, .bound = 64, .learning_rate = 0.5, .compression = {kind, share, carry}};
    ck_assert_int_eq(kedge_model_mclr(INPUTS, CLASSES, &spec.model, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec.model, &work.layout, NULL), KEDGE_OK);
    ck_assert_uint_eq(work.layout.values_count, VALUES);
    work.spec = &spec;
}

static void close_folder(void)
{
    kedge_layout_deinit(&work.layout);
    ck_assert_int_eq(kedge_dir_remove(host.dir), KEDGE_OK);
}

static void write_model(const char *path, uint32_t seed)
{
    struct kedge_buf file;
    kedge_buf_init(&file, SIZE_MAX / 2);
    ck_assert_int_eq(kedge_safetensors_header(&work.layout, KEDGE_DTYPE_F32, &file), KEDGE_OK);
    for (uint32_t i = 0; i < VALUES; i++) {
        float v = seed ? (float)((i * 2654435761u + seed * 40503u) >> 20) / 256 - 8 : 0;
        kedge_buf_put(&file, &v, sizeof v);
    }
    ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&file), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&file);
}

static int open_residual(uint32_t group, const struct kedge_site_digest *in_force, struct kedge_kept *ret,
                         struct kedge_diag *d)
{
    int err = kedge_kept_open_or_begin(host.dir, &job, "residual", in_force, VALUES, ret, d);
    if (!err) {
        kedge_kept_set_group(ret, group);
    }
    return err;
}

/* Trains from zero to the model of this seed; what is sent goes to `sent`, what is left to `left`. */
static struct kedge_site_result train(uint32_t seed, uint32_t group, const struct kedge_site_digest *in_force,
                                      int32_t *sent, int32_t *left)
{
    struct kedge_site_result r = {.job = job};
    struct kedge_kept l;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf file;
    char path[KEDGE_PATH_MAX];
    write_model(path_of("work/base"), 0);
    write_model(path_of("work/out"), seed);
    ck_assert_int_eq(open_residual(group, in_force, &l, &d), KEDGE_OK);
    ck_assert_int_eq(
        kedge_client_make_update(&work, path_of("work/base"), path_of("work/out"), NULL, &l, 1, &r, &d),
        KEDGE_OK);
    ck_assert_int_eq(kedge_kept_write(host.dir, &job, &r.update, &l, &d), KEDGE_OK);
    memcpy(left, l.values, VALUES * sizeof *left);
    kedge_kept_close(&l);
    kedge_buf_init(&file, 1 << 20);
    ck_assert_int_eq(kedge_client_work_path(&work, "update", &r.update, path), KEDGE_OK);
    ck_assert_int_eq(kedge_file_read(path, &file, NULL), KEDGE_OK);
    ck_assert_uint_eq(file.len, r.update_len);
    struct kedge_hash digest;
    kedge_sha256(kedge_buf_view(&file), &digest);
    ck_assert_mem_eq(digest.b, r.update.b, sizeof digest.b);
    size_t at = KEDGE_COMPACT_HEAD;
    for (size_t i = 0; i < VALUES; i += KEDGE_COMPACT_BLOCK) {
        size_t n = VALUES - i < KEDGE_COMPACT_BLOCK ? VALUES - i : KEDGE_COMPACT_BLOCK;
        size_t len = kedge_compact_block_len(spec.compression.kind, n, file.ptr + at);
        uint32_t entries;
        ck_assert_int_eq(kedge_compact_block_read(spec.compression.kind, kedge_view_of(file.ptr + at, len), n,
                                                  sent + i, &entries),
                         KEDGE_OK);
        at += len;
    }
    ck_assert_uint_eq(at, file.len);
    kedge_buf_deinit(&file);
    return r;
}

static int32_t update_at(uint32_t seed, uint32_t i)
{
    return (int32_t)((i * 2654435761u + seed * 40503u) >> 20) - 8 * 256;
}

START_TEST(test_nothing_is_lost)
{
    int32_t sent[VALUES], left[VALUES], before[VALUES] = {0};
    struct kedge_site_digest accepted = none;
    open_folder((enum kedge_compact_kind)_i, 50000, KEDGE_COMPACT_SHARE_ONE);
    for (uint32_t round = 1; round <= 4; round++) {
        struct kedge_site_result r = train(round, 0, &accepted, sent, left);
        for (uint32_t i = 0; i < VALUES; i++) {
            ck_assert_int_eq((int64_t)sent[i] + left[i], (int64_t)update_at(round, i) + before[i]);
        }
        if (round != 2) { /* that one is not taken: what it left goes with it */
            memcpy(before, left, sizeof before);
            accepted = r.update;
        }
    }
    close_folder();
}
END_TEST

/* After a crash memory names the update before or the one behind: either file is there. */
START_TEST(test_crash)
{
    int32_t sent[VALUES], left[3][VALUES], again[VALUES];
    struct kedge_kept l;
    struct kedge_diag d = {.text = ""};
    open_folder(KEDGE_COMPACT_TOPK_INT8, 10000, KEDGE_COMPACT_SHARE_ONE);
    struct kedge_site_result one = train(1, 0, &none, sent, left[0]);
    struct kedge_site_result two = train(2, 0, &one.update, sent, left[1]);
    for (int which = 0; which < 2; which++) { /* the former first: the later one stays where it is */
        ck_assert_int_eq(open_residual(0, which ? &two.update : &one.update, &l, &d), KEDGE_OK);
        ck_assert_mem_eq(l.values, left[which], sizeof left[0]);
        kedge_kept_close(&l);
    }
    /* a training of the same again makes the same */
    struct kedge_site_result three = train(3, 0, &two.update, sent, left[2]);
    struct kedge_site_result same = train(3, 0, &two.update, sent, again);
    ck_assert_mem_eq(three.update.b, same.update.b, sizeof same.update.b);
    ck_assert_mem_eq(left[2], again, sizeof again);
    close_folder();
}
END_TEST

static void check_nothing_left(const struct kedge_site_digest *in_force, uint32_t group)
{
    static const int32_t zero[VALUES];
    struct kedge_kept l;
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(open_residual(group, in_force, &l, &d), KEDGE_OK);
    ck_assert_mem_eq(l.values, zero, sizeof zero);
    kedge_kept_close(&l);
}

START_TEST(test_lost_and_damaged)
{
    int32_t sent[VALUES], left[VALUES];
    struct kedge_buf file;
    open_folder(KEDGE_COMPACT_TOPK, 10000, KEDGE_COMPACT_SHARE_ONE);
    check_nothing_left(&none, 0);
    struct kedge_site_result r = train(1, 3, &none, sent, left);
    check_nothing_left(&none, 3);     /* it was not taken */
    check_nothing_left(&r.update, 2); /* of another group */
    struct kedge_site_digest other = {{9}};
    check_nothing_left(&other, 3); /* of an update that has no file */
    kedge_buf_init(&file, 1 << 20);
    ck_assert_int_eq(kedge_file_read(path_of("kept/j/residual"), &file, NULL), KEDGE_OK);
    file.ptr[file.len / 2] ^= 1;
    ck_assert_int_eq(kedge_file_write(path_of("kept/j/residual"), kedge_buf_view(&file), 0600, NULL),
                     KEDGE_OK);
    check_nothing_left(&r.update, 3);
    file.len -= 4;
    ck_assert_int_eq(kedge_file_write(path_of("kept/j/residual"), kedge_buf_view(&file), 0600, NULL),
                     KEDGE_OK);
    check_nothing_left(&r.update, 3);
    kedge_buf_deinit(&file);
    close_folder();
}
END_TEST

/* A vector that something depends on: what is not there and what is damaged are errors that say so. */
START_TEST(test_needed)
{
    struct kedge_kept k;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf file;
    struct kedge_site_digest u1 = {{1}}, u2 = {{2}};
    open_folder(KEDGE_COMPACT_TOPK, 10000, KEDGE_COMPACT_SHARE_ONE);
    ck_assert_int_eq(kedge_kept_open(host.dir, &job, "x", &none, 3, &k, &d), KEDGE_OK);
    ck_assert(k.is_new && k.count == 3);
    ((int32_t *)k.values)[2] = 7;
    k.group = 5;
    ck_assert_int_eq(kedge_kept_write(host.dir, &job, &u1, &k, &d), KEDGE_OK);
    kedge_kept_close(&k);
    ck_assert_int_eq(kedge_kept_open(host.dir, &job, "x", &u2, 3, &k, &d), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(d.text, "kept/j/x"));
    ck_assert_int_eq(kedge_kept_open(host.dir, &job, "y", &u1, 3, &k, &d), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_kept_open(host.dir, &job, "x", &u1, 4, &k, &d),
                     KEDGE_E_NOT_FOUND); /* "x.next" is damaged */
    ck_assert_int_eq(kedge_kept_open(host.dir, &job, "x", &u1, 3, &k, &d), KEDGE_OK);
    ck_assert(!k.is_new && k.group == 5 && ((int32_t *)k.values)[2] == 7);
    kedge_kept_close(&k);
    kedge_buf_init(&file, 1 << 10);
    ck_assert_int_eq(kedge_file_read(path_of("kept/j/x"), &file, NULL), KEDGE_OK);
    for (size_t i = 0; i < file.len; i++) { /* every byte but the update's digest, which is a name */
        file.ptr[i] ^= 4;
        ck_assert_int_eq(kedge_file_write(path_of("kept/j/x"), kedge_buf_view(&file), 0600, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_kept_open(host.dir, &job, "x", &u1, 3, &k, &d),
                         i >= 16 && i < 48 ? KEDGE_E_NOT_FOUND : KEDGE_E_CORRUPT);
        file.ptr[i] ^= 4;
    }
    kedge_buf_deinit(&file);
    close_folder();
}
END_TEST

/* Names of jobs may end as the second place's do. */
START_TEST(test_names)
{
    static const struct kedge_id other = {"j.next"};
    struct kedge_kept k;
    struct kedge_site_digest u1 = {{1}}, u2 = {{2}};
    open_folder(KEDGE_COMPACT_TOPK, 10000, KEDGE_COMPACT_SHARE_ONE);
    for (int which = 0; which < 2; which++) {
        const struct kedge_id *id = which ? &other : &job;
        ck_assert_int_eq(kedge_kept_open(host.dir, id, "x", &none, 1, &k, NULL), KEDGE_OK);
        *(int32_t *)k.values = 1 + which;
        ck_assert_int_eq(kedge_kept_write(host.dir, id, which ? &u2 : &u1, &k, NULL), KEDGE_OK);
        kedge_kept_close(&k);
    }
    for (int which = 0; which < 2; which++) {
        ck_assert_int_eq(
            kedge_kept_open(host.dir, which ? &other : &job, "x", which ? &u2 : &u1, 1, &k, NULL), KEDGE_OK);
        ck_assert_int_eq(*(int32_t *)k.values, 1 + which);
        kedge_kept_close(&k);
    }
    close_folder();
}
END_TEST

/* A site's own model is a file while the trainer works on it; what counts is what is kept. */
START_TEST(test_as_model)
{
    struct kedge_kept k;
    struct kedge_diag d = {.text = ""};
    struct kedge_site_digest u1 = {{1}};
    struct kedge_map map;
    open_folder(KEDGE_COMPACT_TOPK, 10000, KEDGE_COMPACT_SHARE_ONE);
    write_model(path_of("work/own"), 7); /* of a training that was not accepted */
    ck_assert_int_eq(kedge_kept_open(host.dir, &job, "personal", &none, VALUES, &k, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_kept_to_model(&k, &work.layout, path_of("work/own"), &d), KEDGE_OK);
    ck_assert(!kedge_file_exists(path_of("work/own")));
    ck_assert_int_eq(kedge_kept_from_model(&k, &work.layout, path_of("work/own"), &d), KEDGE_E_NOT_FOUND);
    write_model(path_of("work/own"), 5);
    ck_assert_int_eq(kedge_kept_from_model(&k, &work.layout, path_of("work/own"), &d), KEDGE_OK);
    ck_assert_int_eq(kedge_kept_write(host.dir, &job, &u1, &k, &d), KEDGE_OK);
    kedge_kept_close(&k);

    write_model(path_of("work/own"), 9);
    ck_assert_int_eq(kedge_kept_open(host.dir, &job, "personal", &u1, VALUES, &k, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_kept_to_model(&k, &work.layout, path_of("work/own"), &d), KEDGE_OK);
    write_model(path_of("work/same"), 5);
    struct kedge_map same;
    ck_assert_int_eq(kedge_map_open(path_of("work/own"), &map, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_map_open(path_of("work/same"), &same, &d), KEDGE_OK);
    ck_assert_uint_eq(map.len, same.len);
    ck_assert_mem_eq(map.ptr, same.ptr, map.len);
    kedge_map_close(&map);
    kedge_map_close(&same);
    ck_assert_int_eq(truncate(path_of("work/own"), 4000), 0);
    ck_assert_int_eq(kedge_kept_from_model(&k, &work.layout, path_of("work/own"), &d), KEDGE_E_FORMAT);
    kedge_kept_close(&k);
    close_folder();
}
END_TEST

/* A vector is a file from the beginning: memory does not hold it. */
START_TEST(test_larger_than_memory)
{
    enum { MANY = 2 << 20, MOST_KIB = 2048 };
    struct kedge_kept k;
    struct kedge_site_digest u1 = {{1}};
    struct kedge_diag d = {.text = ""};
    open_folder(KEDGE_COMPACT_TOPK, 10000, KEDGE_COMPACT_SHARE_ONE);
    const uint64_t before = anonymous_kib();
    for (int turn = 0; turn < 2; turn++) {
        ck_assert_int_eq(kedge_kept_open(host.dir, &job, "x", turn ? &u1 : &none, MANY, &k, &d), KEDGE_OK);
        int32_t *values = k.values;
        bool same = true;
        for (size_t i = 0; i < MANY; i++) {
            same = same && values[i] == (turn ? (int32_t)i : 0);
            values[i] = (int32_t)i;
        }
        ck_assert(same);
        ck_assert_int_eq(kedge_kept_write(host.dir, &job, &u1, &k, &d), KEDGE_OK);
        ck_assert_uint_lt(anonymous_kib(), before + MOST_KIB);
        kedge_kept_close(&k);
    }
    close_folder();
}
END_TEST

/* What a training does not end with leaves nothing, and what a killed one has left is of no account. */
START_TEST(test_left_behind)
{
    static const char garbage[] = "of a process that was killed";
    struct kedge_kept k;
    struct kedge_diag d = {.text = ""};
    open_folder(KEDGE_COMPACT_TOPK, 10000, KEDGE_COMPACT_SHARE_ONE);
    ck_assert_int_eq(kedge_dir_make(path_of("kept/j"), 0700, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path_of("kept/j/x.work"), kedge_view_str(garbage), 0600, NULL),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_kept_open(host.dir, &job, "x", &none, 3, &k, &d), KEDGE_OK);
    ck_assert_int_eq(((int32_t *)k.values)[0], 0);
    ck_assert(kedge_file_exists(path_of("kept/j/x.work")));
    kedge_kept_close(&k);
    ck_assert(!kedge_file_exists(path_of("kept/j/x.work")));
    ck_assert(!kedge_file_exists(path_of("kept/j/x.next")));
    close_folder();
}
END_TEST

/* It is as long as a model, and its job may be over: the next start takes it away, and nothing else. */
START_TEST(test_swept)
{
    static const char *const stay[] = {"kept/j/head", "kept/j/head.next", "kept/a.work/work", "kept/stray"},
                             *const go[] = {"kept/j/head.work", "kept/a.work/control.work"};
    open_folder(KEDGE_COMPACT_TOPK, 10000, KEDGE_COMPACT_SHARE_ONE);
    kedge_kept_sweep(host.dir); /* there is nothing yet */
    ck_assert_int_eq(kedge_dir_make(path_of("kept/j"), 0700, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_dir_make(path_of("kept/a.work"), 0700, NULL), KEDGE_OK);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(kedge_file_write(path_of(stay[i]), kedge_view_str("x"), 0600, NULL), KEDGE_OK);
    }
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(kedge_file_write(path_of(go[i]), kedge_view_str("x"), 0600, NULL), KEDGE_OK);
    }
    kedge_kept_sweep(host.dir);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_msg(kedge_file_exists(path_of(stay[i])), "%s", stay[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        ck_assert_msg(!kedge_file_exists(path_of(go[i])), "%s", go[i]);
    }
    close_folder();
}
END_TEST

/* Found out before the training, not by a signal within it: the blocks are there before the values are. */
START_TEST(test_no_room)
{
    const struct rlimit least = {8192, 8192};
    struct stat st;
    struct kedge_kept k;
    struct kedge_diag d = {.text = ""};
    open_folder(KEDGE_COMPACT_TOPK, 10000, KEDGE_COMPACT_SHARE_ONE);
    ck_assert_int_eq(kedge_kept_open(host.dir, &job, "x", &none, VALUES, &k, &d), KEDGE_OK);
    ck_assert_int_eq(stat(path_of("kept/j/x.work"), &st), 0);
    ck_assert_uint_ge((uint64_t)st.st_blocks * 512, VALUES * sizeof(int32_t));
    kedge_kept_close(&k);
    ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &least) == 0);
    ck_assert_int_lt(kedge_kept_open(host.dir, &job, "x", &none, VALUES, &k, &d), 0);
    ck_assert_msg(strstr(d.text, "x.work: no room for 5000 values") != NULL, "%s", d.text);
    ck_assert(!kedge_file_exists(path_of("kept/j/x.work")));
    close_folder();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client-kept");
    TCase *t = tcase_create("kept");
    tcase_set_timeout(t, 60); /* it waits for the disk */
    tcase_add_loop_test(t, test_nothing_is_lost, KEDGE_COMPACT_INT8, KEDGE_COMPACT_KINDS);
    tcase_add_test(t, test_crash);
    tcase_add_test(t, test_lost_and_damaged);
    tcase_add_test(t, test_needed);
    tcase_add_test(t, test_names);
    tcase_add_test(t, test_as_model);
    tcase_add_test(t, test_larger_than_memory);
    tcase_add_test(t, test_left_behind);
    tcase_add_test(t, test_swept);
    tcase_add_test(t, test_no_room);
    suite_add_tcase(s, t);
    return run_suite(s);
}
