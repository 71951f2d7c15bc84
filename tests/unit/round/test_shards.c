/* Vectors made in shards: the same bytes for 1 to 16 shards, 1 to 4 threads and every order in which tiles
 * end and updates stand; and the same error, at the same place, where one goes wrong. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chain/store/blob/blobs.h"
#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "round/aggregate.h"
#include "round/meet.h"
#include "round/shards.h"
#include "round/step.h"
#include "tests/fixtures/effort.h"
#include "tests/fixtures/run.h"

enum { SHARDS = 16, THREADS = 4, CUTS = SHARDS * THREADS };

static struct kedge_cut cut_of(int i)
{
    return (struct kedge_cut){.threads = (unsigned)(i % THREADS) + 1, .shards = (unsigned)(i / THREADS) + 1};
}

/* ---- tiles that end in any order ---- */

enum { TILES_VALUES = 1000, NOWHERE = TILES_VALUES };

struct world {
    unsigned cut;
    uint64_t bad_make, bad_take; /* the tile with this value goes wrong */
    uint32_t taken[TILES_VALUES];
    size_t taken_count;
    uint64_t last_made;
    bool out_of_order;
};

static uint32_t mix_up(uint64_t a, uint64_t b)
{
    uint64_t x = (a + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (b + 1) * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (uint32_t)((x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 32);
}

static size_t some(void *arg, uint64_t first)
{
    (void)arg;
    const size_t n = mix_up(first, 1) % 13 + 1, left = (size_t)(TILES_VALUES - first);
    return n < left ? n : left;
}

/* Tiles take up to 60 us, as the cut's number decides: so they end in another order each time. */
static int make(void *arg, unsigned thread, uint64_t first, size_t n, void *out, struct kedge_diag *d)
{
    struct world *w = arg;
    const struct timespec pause = {.tv_nsec = mix_up(first, w->cut + 7) % 60 * 1000};
    uint32_t *values = out;
    ck_assert_uint_lt(thread, THREADS);
    nanosleep(&pause, NULL);
    for (size_t i = 0; i < n; i++) {
        values[i] = mix_up(first + i, 3);
    }
    const uint64_t before = __atomic_exchange_n(&w->last_made, first, __ATOMIC_RELAXED);
    if (before > first) {
        __atomic_store_n(&w->out_of_order, true, __ATOMIC_RELAXED);
    }
    return w->bad_make >= first && w->bad_make < first + n
               ? kedge_diag_set(d, KEDGE_E_CORRUPT, "tile at %u", (unsigned)first)
               : KEDGE_OK;
}

static int take(void *arg, uint64_t first, size_t n, const void *out)
{
    struct world *w = arg;
    ck_assert_uint_eq(first, w->taken_count);
    if (w->bad_take >= first && w->bad_take < first + n) {
        return KEDGE_E_DISK_FULL;
    }
    memcpy(w->taken + first, out, n * sizeof *w->taken);
    w->taken_count += n;
    return KEDGE_OK;
}

static int run_tiles(struct world *w, struct kedge_diag *d)
{
    const struct kedge_cut cut = cut_of((int)w->cut);
    const struct kedgei_tiles tiles = {.arg = w,
                                       .values = TILES_VALUES,
                                       .tile_bytes = 13 * sizeof(uint32_t),
                                       .length = some,
                                       .make = make,
                                       .take = take};
    return kedgei_shards_run(&cut, cut.threads, &tiles, d);
}

START_TEST(tiles_are_taken_in_order_whatever_the_cut)
{
    bool any = false;
    for (unsigned i = 0; i < CUTS; i++) {
        struct world w = {.cut = i, .bad_make = NOWHERE, .bad_take = NOWHERE};
        ck_assert_int_eq(run_tiles(&w, NULL), KEDGE_OK);
        ck_assert_uint_eq(w.taken_count, TILES_VALUES);
        for (uint64_t v = 0; v < TILES_VALUES; v++) {
            ck_assert_uint_eq(w.taken[v], mix_up(v, 3));
        }
        any = any || w.out_of_order;
    }
    ck_assert_msg(any, "all tiles ended in order: the test shows nothing");
}
END_TEST

/* What one thread would have said, and no value more or less. */
START_TEST(the_first_error_by_coordinates_counts)
{
    struct world alone = {.bad_make = 500, .bad_take = NOWHERE};
    struct kedge_diag said = {.text = ""};
    ck_assert_int_eq(run_tiles(&alone, &said), KEDGE_E_CORRUPT);
    ck_assert_uint_gt(alone.taken_count, 400);
    for (unsigned i = 1; i < CUTS; i++) {
        struct world w = {.cut = i, .bad_make = 500, .bad_take = 900};
        struct kedge_diag d = {.text = ""};
        ck_assert_int_eq(run_tiles(&w, &d), KEDGE_E_CORRUPT);
        ck_assert_str_eq(d.text, said.text);
        ck_assert_uint_eq(w.taken_count, alone.taken_count);
        w = (struct world){.cut = i, .bad_make = 600, .bad_take = 500};
        ck_assert_int_eq(run_tiles(&w, NULL), KEDGE_E_DISK_FULL);
        ck_assert_uint_eq(w.taken_count, alone.taken_count);
    }
}
END_TEST

/* ---- decisions ---- */

enum { VALUES = 9 * 65536 + 777, FILES = 3, MODELS = 3, SCALE = 16, LIMIT = 1 << 20 };

static char dir[64];
static struct kedge_layout layout;
static struct kedge_blobs *plain, *sealed;
static struct kedge_blob_at updates[FILES], models[MODELS];
static char update_paths[FILES][KEDGE_PATH_MAX], model_paths[MODELS][KEDGE_PATH_MAX];

static void put(struct kedge_blobs *b, enum kedge_dtype dtype, uint32_t k, char path[KEDGE_PATH_MAX],
                struct kedge_blob_at *ret)
{
    static const struct kedge_id site = {"site-1"}, job = {"job"};
    static int32_t q[VALUES];
    static float w[VALUES];
    struct kedge_buf file;
    struct kedge_hash digest;
    struct kedge_upload *u;
    uint64_t offset;
    kedge_buf_init(&file, 1 << 24);
    ck_assert_int_eq(kedge_safetensors_header(&layout, dtype, &file), KEDGE_OK);
    for (uint32_t i = 0; i < VALUES; i++) {
        q[i] = (int32_t)(mix_up(i, k) >> 12) - (1 << 19);
        w[i] = (float)q[i] / 1024;
    }
    kedge_buf_put(&file, dtype == KEDGE_DTYPE_I32 ? (const void *)q : (const void *)w, sizeof q);
    kedge_sha256(kedge_buf_view(&file), &digest);
    ck_assert_int_eq(
        kedge_upload_open(b, &site, b == sealed ? &job : NULL, &digest, file.len, &u, &offset, NULL),
        KEDGE_OK);
    ck_assert_int_eq(kedge_upload_write(u, 0, kedge_buf_view(&file), NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_at(b, &digest, path, ret), KEDGE_OK);
    kedge_buf_deinit(&file);
}

static void set_up(void)
{
    char at_plain[80], at_sealed[80], keys[80];
    snprintf(dir, sizeof dir, "/tmp/kedge-shards-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(at_plain, sizeof at_plain, "%s/plain", dir);
    snprintf(at_sealed, sizeof at_sealed, "%s/sealed", dir);
    snprintf(keys, sizeof keys, "%s/keys", dir);
    const struct kedge_blobs_options options = {.keys_dir = keys, .encrypt = true};
    ck_assert_int_eq(kedge_blobs_open(at_plain, NULL, &plain, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_open(at_sealed, &options, &sealed, NULL), KEDGE_OK);
    kedge_layout_init(&layout, KEDGE_DTYPE_I32);
    ck_assert_int_eq(kedge_layout_add(&layout, "w", (const uint64_t[]){VALUES}, 1, NULL), KEDGE_OK);
    for (uint32_t k = 0; k < FILES; k++) { /* the first is plain, the others are encrypted */
        put(k == 0 ? plain : sealed, KEDGE_DTYPE_I32, k, update_paths[k], &updates[k]);
    }
    for (uint32_t k = 0; k < MODELS; k++) {
        put(plain, KEDGE_DTYPE_F32, k, model_paths[k], &models[k]);
    }
}

static void tear_down(void)
{
    kedge_blobs_close(plain);
    kedge_blobs_close(sealed);
    kedge_layout_deinit(&layout);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

static int hash_in(void *arg, struct kedge_view bytes)
{
    kedge_hasher_update(arg, bytes);
    return KEDGE_OK;
}

static struct kedge_sink sink_of(struct kedge_hasher **hasher, const struct kedge_cut *cut)
{
    ck_assert_int_eq(kedge_hasher_new(hasher), KEDGE_OK);
    return (struct kedge_sink){.write = hash_in, .arg = *hasher, .cut = *cut};
}

static struct kedge_hash end_of(struct kedge_hasher *hasher)
{
    struct kedge_hash h;
    kedge_hasher_final(hasher, &h);
    kedge_hasher_free(hasher);
    return h;
}

/* The updates stand in another order for each cut; a mean and a median do not depend on it. */
static struct kedge_hash aggregate_of(const char *rule, const struct kedge_cut *cut, size_t turn)
{
    struct kedge_compute_input inputs[FILES];
    struct kedge_job_spec spec = {.scale = SCALE, .strategy = kedge_strategy_find("fedavg")};
    uint64_t weight[FILES];
    const struct kedge_compute_weights weights = {kedge_rule_find(rule), weight, 9};
    struct kedge_hasher *hasher;
    struct kedge_diag d = {.text = ""};
    spec.rule_params = weights.rule->defaults;
    for (size_t i = 0; i < FILES; i++) {
        const size_t k = (i + turn) % FILES;
        inputs[i] = (struct kedge_compute_input){.update = updates[k]};
        weight[i] = weights.rule->kind == KEDGE_RULE_COORDINATE ? KEDGE_RULE_VOTE : 2 + k;
    }
    int err = kedge_compute_aggregate(&spec, &layout, &models[0], inputs, FILES, &weights, LIMIT,
                                      sink_of(&hasher, cut), &d);
    ck_assert_msg(!err, "%s: %s", rule, d.text);
    return end_of(hasher);
}

START_TEST(aggregates_are_the_same_for_every_cut)
{
    static const char *const rules[] = {"mean", "median"};
    set_up();
    for (size_t r = 0; r < 2; r++) {
        const struct kedge_cut one = {.threads = 1};
        const struct kedge_hash expected = aggregate_of(rules[r], &one, 0);
        for (int i = 0; i < CUTS; i += r == 0 ? EFFORT(1, 5) : EFFORT(7, 21)) {
            const struct kedge_cut cut = cut_of(i);
            const struct kedge_hash got = aggregate_of(rules[r], &cut, (size_t)i);
            ck_assert_msg(kedge_hash_eq(&got, &expected), "%s, %u shards, %u threads", rules[r], cut.shards,
                          cut.threads);
        }
    }
    tear_down();
}
END_TEST

struct models_after {
    struct kedge_hash step, state, mixed[MODELS], blend;
};

static struct models_after models_after(const struct kedge_cut *cut)
{
    static const bool trained[MODELS] = {true, false, true};
    static const uint64_t weight[MODELS] = {3, 0, 5};
    struct kedge_job_spec spec = {.server = KEDGE_SERVER_ADAM, .strategy = kedge_strategy_find("fedavg")};
    struct kedge_hasher *h[MODELS];
    struct kedge_sink sinks[MODELS];
    struct kedge_diag d = {.text = ""};
    struct models_after r;
    spec.options = spec.strategy->defaults;
    sinks[0] = sink_of(&h[0], cut);
    sinks[1] = sink_of(&h[1], cut);
    int err = kedge_compute_server(&spec, 1, &layout, &models[0], &models[1], NULL, sinks[0], sinks[1], &d);
    ck_assert_msg(!err, "step: %s", d.text);
    r.step = end_of(h[0]);
    r.state = end_of(h[1]);
    for (size_t i = 0; i < MODELS; i++) {
        sinks[i] = sink_of(&h[i], cut);
    }
    err = kedge_compute_mixing(&layout, models, trained, MODELS, 0.25, sinks, &d);
    ck_assert_msg(!err, "mixing: %s", d.text);
    for (size_t i = 0; i < MODELS; i++) {
        r.mixed[i] = end_of(h[i]);
    }
    err = kedge_compute_blend(&layout, models, weight, MODELS, sink_of(&h[0], cut), &d);
    ck_assert_msg(!err, "blend: %s", d.text);
    r.blend = end_of(h[0]);
    return r;
}

START_TEST(models_are_the_same_for_every_cut)
{
    set_up();
    const struct kedge_cut one = {.threads = 1};
    const struct models_after expected = models_after(&one);
    ck_assert(!kedge_hash_eq(&expected.step, &expected.blend)
              && !kedge_hash_eq(&expected.mixed[0], &expected.mixed[2]));
    for (int i = 1; i < CUTS; i += EFFORT(6, 18)) {
        const struct kedge_cut cut = cut_of(i);
        const struct models_after got = models_after(&cut);
        ck_assert_msg(memcmp(&got, &expected, sizeof got) == 0, "%u shards, %u threads", cut.shards,
                      cut.threads);
    }
    tear_down();
}
END_TEST

/* Few values are not worth a thread, and what is asked for is bounded. */
START_TEST(threads_are_as_many_as_the_vector_is_worth)
{
    const struct kedge_cut many = {.threads = 1000}, none = {.threads = 0}, three = {.threads = 3};
    ck_assert_uint_eq(kedgei_shards_threads(&many, 100000), 1);
    ck_assert_uint_eq(kedgei_shards_threads(&many, 300000), 2);
    ck_assert_uint_eq(kedgei_shards_threads(&many, UINT64_C(1) << 36), KEDGE_CUT_THREADS_MAX);
    ck_assert_uint_eq(kedgei_shards_threads(&three, VALUES), 3);
    ck_assert_uint_eq(kedgei_shards_threads(&none, UINT64_C(1) << 36), 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("round-shards");
    TCase *t = tcase_create("shards");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, tiles_are_taken_in_order_whatever_the_cut);
    tcase_add_test(t, the_first_error_by_coordinates_counts);
    tcase_add_test(t, aggregates_are_the_same_for_every_cut);
    tcase_add_test(t, models_are_the_same_for_every_cut);
    tcase_add_test(t, threads_are_as_many_as_the_vector_is_worth);
    suite_add_tcase(s, t);
    return run_suite(s);
}
