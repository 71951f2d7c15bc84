/* First models, made piece by piece: the bytes that they always had, however they are cut, in memory that
 * does not grow with them. */
#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/tensor/model.h"
#include "crypto/hash.h"
#include "round/beginning.h"
#include "round/compute.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WATCHED 1
#endif
#endif
#ifndef WATCHED
#define WATCHED 0 /* by a sanitizer, whose own memory would be measured */
#endif

enum {
    LARGE = WATCHED ? 100000 : 2500000, /* inputs of ten classes: a file of 100 MB */
    HELD = 1 << 20,                     /* bytes while it is made, the most */
    PIECE = 1 << 18,                    /* bytes that leave at once, the most */
};

struct shape {
    const char *model;
    uint64_t seed;
    uint32_t group;
    const char *digest; /* of the file, as it was when models were made whole */
};
static const struct shape shapes[] = {
    {"{\"preset\":\"mclr\",\"inputs\":1,\"classes\":1}", 1, 0,
     "df972852253f90db585020c2b96eddce23b71ea36d1719d9e97cff672fba2206"},
    {"{\"preset\":\"mclr\",\"inputs\":8191,\"classes\":10}", 2077, 0,
     "3180d9beaa4ab4dd731dfcba475dcf220172592cad6f817acfa02dd67310c743"},
    {"{\"preset\":\"mlp\",\"inputs\":784,\"hidden\":512,\"classes\":10}", 2078, 0,
     "57496cc3e9e3cde9b922b46ad6a8e1c381b83bee957c2772d3580d0a0a381186"},
    {"{\"preset\":\"mlp\",\"inputs\":784,\"hidden\":512,\"classes\":10}", 2078, 3,
     "75898c4d2d96f9e143ee60cb0201d345f6db7f02b6a2f96955b50a63aca88bb8"},
    {"{\"preset\":\"lenet\"}", 0, 0, "99f1c8be027064db07a47e3502e5de51234c1087d529688bdd7075403b931b13"},
    {"{\"preset\":\"cifar-cnn\"}", UINT64_MAX, 0,
     "04316678d218ec80d7f4940da958d9fb1c92d870b5166abd9b190f10078d20b5"},
    {"{\"preset\":\"char-lstm\"}", 5, 1, "2e8d4df444cc3c6d4e3e8a9e2506e5d61f869abf8ef3d634471aa773cf4bc993"},
    /* value 65,536 is amid the forget gates */
    {"{\"input\":[4],\"layers\":[{\"type\":\"embedding\",\"in\":8060,\"out\":3},{\"type\":\"layernorm\"},"
     "{\"type\":\"lstm\",\"out\":100},{\"type\":\"dense\",\"out\":3}]}",
     5, 0, "27cd8b3acca075919da02b7e914a719d5d32d260925c96e5ea20f2d4018e05a7"},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void model_of(const char *text, struct kedge_model_spec *ret)
{
    static struct kedge_json_token tokens[256];
    struct kedge_json doc;
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_json_parse(kedge_view_str(text), tokens, 256, &doc, &d), KEDGE_OK);
    ck_assert_msg(kedge_model_from_json(&doc, 0, ret, &d) == KEDGE_OK, "%s", d.text);
}

static int sink(void *arg, struct kedge_view bytes)
{
    kedge_hasher_update(arg, bytes);
    return KEDGE_OK;
}

START_TEST(bytes_never_change)
{
    const struct shape *s = &shapes[_i];
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    struct kedge_hasher *hasher;
    struct kedge_hash digest;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    ck_assert_ptr_nonnull(spec);
    model_of(s->model, &spec->model);
    spec->seed = s->seed;
    ck_assert_int_eq(kedge_hasher_new(&hasher), KEDGE_OK);
    ck_assert_int_eq(
        kedge_compute_beginning(spec, s->group, (struct kedge_sink){.write = sink, .arg = hasher}, NULL),
        KEDGE_OK);
    kedge_hasher_final(hasher, &digest);
    kedge_hash_hex(&digest, hex);
    ck_assert_str_eq(hex, s->digest);
    kedge_hasher_free(hasher);
    kedge_mem_free(spec);
}
END_TEST

/* Of a job whose sites keep a head what is shared, as it would be in the whole. */
static int gather(void *arg, struct kedge_view bytes)
{
    kedge_buf_put(arg, bytes.ptr, bytes.len);
    return ((struct kedge_buf *)arg)->err;
}

START_TEST(a_head_stays_at_the_sites)
{
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    struct kedge_buf whole, shared;
    float all[5 * 4 + 4 + 4 * 3 + 3];
    ck_assert_ptr_nonnull(spec);
    kedge_buf_init(&whole, 1 << 16);
    kedge_buf_init(&shared, 1 << 16);
    ck_assert_int_eq(kedge_model_mlp(5, 4, 3, &spec->model, NULL), KEDGE_OK);
    spec->seed = 4;
    kedge_model_init(&spec->model, 4, all);
    ck_assert_int_eq(kedge_compute_initial(spec, (struct kedge_sink){.write = gather, .arg = &whole}, NULL),
                     KEDGE_OK);
    ck_assert_mem_eq(whole.ptr + whole.len - sizeof all, all, sizeof all);
    ck_assert_int_eq(kedge_part_add(&spec->share, "1.weight", NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_compute_initial(spec, (struct kedge_sink){.write = gather, .arg = &shared}, NULL),
                     KEDGE_OK);
    ck_assert_mem_eq(shared.ptr + shared.len - 12 * sizeof *all, all + 24, 12 * sizeof *all);
    ck_assert_ptr_nonnull(memmem(shared.ptr, shared.len, "1.weight", 8));
    ck_assert_ptr_null(memmem(shared.ptr, shared.len, "bias", 4));
    kedge_buf_deinit(&whole);
    kedge_buf_deinit(&shared);
    kedge_mem_free(spec);
}
END_TEST

/* ---- memory ---- */

/* Bytes that belong to this process alone and to no file. */
static uint64_t anonymous(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && kib == 0 && fgets(line, sizeof line, f)) {
        kib = strncmp(line, "RssAnon:", 8) == 0 ? strtoull(line + 8, NULL, 10) : 0;
    }
    if (f) {
        fclose(f);
    }
    return kib * 1024;
}

struct watch {
    uint64_t held, len;
    size_t piece;
};

static int look(void *arg, struct kedge_view bytes)
{
    struct watch *w = arg;
    uint64_t now = anonymous();
    w->held = now > w->held ? now : w->held;
    w->piece = bytes.len > w->piece ? bytes.len : w->piece;
    w->len += bytes.len;
    return KEDGE_OK;
}

START_TEST(memory_does_not_grow_with_the_model)
{
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    struct watch w = {.held = 0};
    ck_assert_ptr_nonnull(spec);
    ck_assert_int_eq(kedge_model_mclr(LARGE, 10, &spec->model, NULL), KEDGE_OK);
    (void)malloc_trim(0);
    uint64_t before = anonymous();
    ck_assert_uint_gt(before, 0);
    ck_assert_int_eq(kedge_compute_initial(spec, (struct kedge_sink){.write = look, .arg = &w}, NULL),
                     KEDGE_OK);
    uint64_t held = w.held > before ? w.held - before : 0;
    printf("  a first model of %llu KiB: %llu KiB held, %zu bytes at once\n",
           (unsigned long long)w.len / 1024, (unsigned long long)held / 1024, w.piece);
    ck_assert_uint_gt(w.len, UINT64_C(40) * LARGE);
    ck_assert_uint_le(w.piece, PIECE);
    if (!WATCHED) {
        ck_assert_uint_le(held, HELD);
    }
    kedge_mem_free(spec);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("first models");
    TCase *t = tcase_create("first");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_head_stays_at_the_sites);
    tcase_add_loop_test(t, bytes_never_change, 0, SHAPES);
    tcase_add_test(t, memory_does_not_grow_with_the_model);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
