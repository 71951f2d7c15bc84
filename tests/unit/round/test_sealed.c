/* Decisions over encrypted updates give the bytes that they give over plain ones, however many there are; a
 * damaged or closed file ends them with an error that names it. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregation/share_cap.h"
#include "chain/store/blob/blobs.h"
#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "round/control.h"
#include "round/update_stream.h"

enum { VALUES = 40000, FILES = 5, MANY = 1300, SCALE = 16, LIMIT = 1 << 20 };

static char dir[64];
static struct kedge_layout layout;
static struct kedge_blobs *plain, *sealed;
static struct kedge_blob_at at[2][FILES];
static char paths[2][FILES][KEDGE_PATH_MAX], base_path[KEDGE_PATH_MAX];
static struct kedge_hash digests[FILES];

static int sink(void *arg, struct kedge_view bytes)
{
    kedge_buf_put(arg, bytes.ptr, bytes.len);
    return ((struct kedge_buf *)arg)->err;
}

static void put(struct kedge_blobs *b, const struct kedge_id *key, const struct kedge_buf *file,
                struct kedge_hash *ret)
{
    static const struct kedge_id site = {"site-1"};
    struct kedge_upload *u;
    uint64_t offset;
    kedge_sha256(kedge_buf_view(file), ret);
    ck_assert_int_eq(kedge_upload_open(b, &site, key, ret, file->len, &u, &offset, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_write(u, 0, kedge_buf_view(file), NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_OK);
}

static void set_up(void)
{
    static const struct kedge_id job = {"job"};
    char at_plain[80], at_sealed[80], keys[80];
    struct kedge_buf file;
    struct kedge_hash base;
    snprintf(dir, sizeof dir, "/tmp/kedge-compute-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(at_plain, sizeof at_plain, "%s/plain", dir);
    snprintf(at_sealed, sizeof at_sealed, "%s/sealed", dir);
    snprintf(keys, sizeof keys, "%s/keys", dir);
    const struct kedge_blobs_options options = {.keys_dir = keys, .encrypt = true};
    ck_assert_int_eq(kedge_blobs_open(at_plain, NULL, &plain, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_open(at_sealed, &options, &sealed, NULL), KEDGE_OK);
    kedge_layout_init(&layout, KEDGE_DTYPE_I32);
    ck_assert_int_eq(kedge_layout_add(&layout, "w", (const uint64_t[]){200, VALUES / 200}, 2, NULL),
                     KEDGE_OK);
    kedge_buf_init(&file, 1 << 20);
    for (uint32_t k = 0; k <= FILES; k++) { /* the last one is the base */
        kedge_buf_clear(&file);
        ck_assert_int_eq(
            kedge_safetensors_header(&layout, k < FILES ? KEDGE_DTYPE_I32 : KEDGE_DTYPE_F32, &file),
            KEDGE_OK);
        for (uint32_t i = 0; i < VALUES; i++) {
            uint32_t mixed = (i + k * 7919u) * 2654435761u + (k % 2 ? i << 7 : 0);
            int32_t q = (int32_t)(mixed >> 12) - (1 << 19);
            float w = (float)q / 1024;
            kedge_buf_put(&file, k < FILES ? (const void *)&q : (const void *)&w, 4);
        }
        if (k == FILES) {
            put(plain, NULL, &file, &base);
            break;
        }
        put(plain, &job, &file, &digests[k]);
        put(sealed, &job, &file, &digests[k]);
        ck_assert_int_eq(kedge_blobs_at(plain, &digests[k], paths[0][k], &at[0][k]), KEDGE_OK);
        ck_assert_int_eq(kedge_blobs_at(sealed, &digests[k], paths[1][k], &at[1][k]), KEDGE_OK);
    }
    ck_assert_int_eq(kedge_blobs_path(plain, &base, base_path), KEDGE_OK);
    kedge_buf_deinit(&file);
}

static void tear_down(void)
{
    kedge_blobs_close(plain);
    kedge_blobs_close(sealed);
    kedge_layout_deinit(&layout);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

/* which: 0 plain, 1 encrypted, 2 every other. */
static int mean_of(int which, size_t count, struct kedge_buf *ret, struct kedge_diag *d)
{
    struct kedge_compute_input *inputs = kedge_mem_new(count, sizeof *inputs);
    struct kedge_job_spec spec = {.scale = SCALE, .strategy = kedge_strategy_find("fedavg")};
    struct kedge_compute_weights weights = {kedge_rule_find("mean"), kedge_mem_new(count, sizeof(uint64_t)),
                                            0};
    for (size_t i = 0; i < count; i++) {
        size_t k = i % FILES;
        inputs[i].update = at[which == 2 ? (int)(i % 2) : which][k];
        weights.weight[i] = i * i % 1000 + 1;
        weights.divisor += weights.weight[i];
    }
    kedge_buf_init(ret, 1 << 20);
    int err =
        kedge_compute_aggregate(&spec, &layout, &(struct kedge_blob_at){.path = base_path}, inputs, count,
                                &weights, LIMIT, (struct kedge_sink){.write = sink, .arg = ret}, d);
    kedge_mem_free(inputs);
    kedge_mem_free(weights.weight);
    return err;
}

START_TEST(means_are_the_same)
{
    static const size_t counts[] = {1, FILES, 512, MANY};
    set_up();
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct kedge_buf results[3];
        for (int which = 0; which < 3; which++) {
            struct kedge_diag d = {.text = ""};
            ck_assert_msg(mean_of(which, counts[i], &results[which], &d) == KEDGE_OK, "%s", d.text);
            ck_assert_uint_gt(results[which].len, 4 * VALUES);
            ck_assert(kedge_view_eq(kedge_buf_view(&results[which]), kedge_buf_view(&results[0])));
        }
        for (int which = 0; which < 3; which++) {
            kedge_buf_deinit(&results[which]);
        }
    }
    tear_down();
}
END_TEST

static const struct {
    const char *rule, *strategy;
} chosen[] = {
    {"median", "fedavg"},         {"trimmed-mean", "fedavg"}, {"krum", "fedavg"},
    {"multi-krum", "fedavg"},     {"bulyan", "fedavg"},       {"geometric-median", "qffl"},
    {"norm-clipping", "fednova"}, {"mean", "qffl"},           {"mean", "fednova"},
};

/* Weights by lengths and inner products, and order statistics, whose tiles end elsewhere when files are
 * encrypted. */
START_TEST(rules_are_the_same)
{
    struct kedge_compute_input inputs[FILES];
    struct kedge_buf first, result;
    uint64_t weight[FILES], recorded[FILES];
    struct kedge_diag d = {.text = ""};
    struct kedge_job_spec spec = {.scale = SCALE,
                                  .learning_rate = 0.1,
                                  .tenant_share_max = KEDGE_SHARE_ONE,
                                  .rule = kedge_rule_find(chosen[_i].rule),
                                  .strategy = kedge_strategy_find(chosen[_i].strategy)};
    spec.rule_params = spec.rule->defaults;
    spec.options = spec.strategy->defaults;
    set_up();
    for (int which = 0; which < 3; which++) {
        struct kedge_compute_weights weights = {.weight = weight};
        for (size_t i = 0; i < FILES; i++) {
            inputs[i] = (struct kedge_compute_input){
                .update = at[which == 2 ? i % 2 : (size_t)which][i],
                .facts = {.samples = 10 + i, .steps = 3 + i % 4, .loss = 0.5 + 0.125 * (double)(i % 3)}};
        }
        int err = kedge_compute_weigh(&spec, &layout, false, inputs, FILES, &weights, &d);
        ck_assert_msg(!err, "%s: %s", chosen[_i].rule, d.text);
        kedge_buf_init(&result, 1 << 20);
        err =
            kedge_compute_aggregate(&spec, &layout, &(struct kedge_blob_at){.path = base_path}, inputs, FILES,
                                    &weights, LIMIT, (struct kedge_sink){.write = sink, .arg = &result}, &d);
        ck_assert_msg(!err, "%s: %s", chosen[_i].rule, d.text);
        if (which == 0) {
            first = result;
            memcpy(recorded, weight, sizeof weight);
            continue;
        }
        ck_assert_mem_eq(weight, recorded, sizeof weight);
        ck_assert(kedge_view_eq(kedge_buf_view(&result), kedge_buf_view(&first)));
        kedge_buf_deinit(&result);
    }
    struct kedge_compute_weights alone = {.weight = weight}; /* from the statements, without files */
    int err = kedge_compute_weigh(&spec, NULL, false, inputs, FILES, &alone, &d);
    bool enough = !alone.rule->needs_norms && !alone.rule->needs_gram
                  && !(alone.rule->samples && spec.strategy->weigh == kedge_weigh_qffl);
    ck_assert_int_eq(err, enough ? KEDGE_OK : KEDGE_E_NOT_FOUND);
    ck_assert(!enough || memcmp(weight, recorded, sizeof weight) == 0);
    kedge_buf_deinit(&first);
    tear_down();
}
END_TEST

START_TEST(groups_and_directions_are_the_same)
{
    struct kedge_job_spec spec = {
        .groups = 2, .seed = 7, .tenant_share_max = 1000000, .strategy = kedge_strategy_find("flexcfl")};
    static const uint32_t tenant[FILES] = {0, 1};
    uint32_t group[2][FILES], groups[2], nearest[2];
    double cosine[2];
    struct kedge_buf directions[2];
    struct kedge_hash digest;
    char path[KEDGE_PATH_MAX];
    const struct kedge_blob_at directions_at[] = {{.path = path}, {.path = paths[0][1]}};
    set_up();
    for (int k = 0; k < 2; k++) {
        const struct kedge_compute_sites all = {at[k], tenant, FILES}, three = {at[k], tenant, 3};
        ck_assert_int_eq(kedge_compute_groups(&layout, &all, &spec, 0, group[k], &groups[k], NULL), KEDGE_OK);
        kedge_buf_init(&directions[k], 1 << 20);
        ck_assert_int_eq(kedge_compute_direction(&layout, &three, &spec,
                                                 (struct kedge_sink){.write = sink, .arg = &directions[k]},
                                                 NULL),
                         KEDGE_OK);
        ck_assert_int_eq(kedge_compute_check_update(&layout, &at[k][0], NULL, LIMIT, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_compute_check_update(&layout, &at[k][0], NULL, 1000, NULL), KEDGE_E_BOUND);
    }
    ck_assert_uint_eq(groups[0], groups[1]);
    ck_assert_mem_eq(group[0], group[1], sizeof group[0]);
    ck_assert(kedge_view_eq(kedge_buf_view(&directions[0]), kedge_buf_view(&directions[1])));
    put(plain, NULL, &directions[0], &digest);
    ck_assert_int_eq(kedge_blobs_path(plain, &digest, path), KEDGE_OK);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(
            kedge_compute_nearest(&layout, &at[k][4], directions_at, 2, &nearest[k], &cosine[k], NULL),
            KEDGE_OK);
        kedge_buf_deinit(&directions[k]);
    }
    ck_assert_uint_eq(nearest[0], nearest[1]);
    ck_assert(memcmp(&cosine[0], &cosine[1], sizeof cosine[0]) == 0);
    tear_down();
}
END_TEST

/* Weights by the updates' lengths, of more updates than can be open at once: equal updates weigh alike,
 * wherever they stand. */
START_TEST(lengths_of_many)
{
    struct kedge_job_spec spec = {.scale = SCALE,
                                  .rule = kedge_rule_find("mean"),
                                  .strategy = kedge_strategy_find("qffl"),
                                  .tenant_share_max = KEDGE_SHARE_ONE,
                                  .learning_rate = 0.1};
    struct kedge_compute_input inputs[MANY] = {{.tenant = 0}};
    uint64_t weight[2][MANY];
    spec.options = spec.strategy->defaults;
    set_up();
    for (int which = 0; which < 2; which++) {
        struct kedge_compute_weights weights = {.weight = weight[which]};
        struct kedge_diag d = {.text = ""};
        for (size_t i = 0; i < MANY; i++) {
            inputs[i].update = at[which][i % FILES];
            inputs[i].facts =
                (struct kedge_strategy_input){.samples = 3, .steps = 1, .loss = 1 + (double)(i % FILES)};
        }
        ck_assert_msg(kedge_compute_weigh(&spec, &layout, false, inputs, MANY, &weights, &d) == KEDGE_OK,
                      "%s", d.text);
        for (size_t i = 0; i < MANY; i++) {
            ck_assert_uint_eq(weight[which][i], weight[0][i % FILES]);
        }
    }
    ck_assert_uint_ne(weight[0][0], weight[0][1]);
    tear_down();
}
END_TEST

/* ---- updates of two halves: of a model of half their values, so that the second begins within a chunk ----
 */

static int32_t half_value(int32_t i, int k)
{
    return (i * 37 + k * 1009) % 4001 - 2000;
}

static void put_halves(struct kedge_blobs *in, const struct kedge_layout *whole, int k,
                       char path[KEDGE_PATH_MAX], struct kedge_compute_input *ret)
{
    static const struct kedge_id job = {"job"};
    struct kedge_hash digest;
    struct kedge_buf file;
    kedge_buf_init(&file, 1 << 20);
    ck_assert_int_eq(kedge_safetensors_header(whole, KEDGE_DTYPE_I32, &file), KEDGE_OK);
    for (int32_t i = 0; i < VALUES; i++) {
        int32_t q = half_value(i, k);
        kedge_buf_put(&file, &q, sizeof q);
    }
    put(in, &job, &file, &digest);
    *ret = (struct kedge_compute_input){.facts.samples = 1};
    ck_assert_int_eq(kedge_blobs_at(in, &digest, path, &ret->update), KEDGE_OK);
    kedge_buf_deinit(&file);
}

static void put_half_model(const struct kedge_layout *half, char path[KEDGE_PATH_MAX])
{
    struct kedge_hash digest;
    struct kedge_buf file;
    kedge_buf_init(&file, 1 << 20);
    ck_assert_int_eq(kedge_safetensors_header(half, KEDGE_DTYPE_F32, &file), KEDGE_OK);
    for (int i = 0; i < VALUES / 2; i++) {
        float w = (float)i / 16;
        kedge_buf_put(&file, &w, sizeof w);
    }
    put(plain, NULL, &file, &digest);
    ck_assert_int_eq(kedge_blobs_path(plain, &digest, path), KEDGE_OK);
    kedge_buf_deinit(&file);
}

/* c = Σ q / (7 · 2^16) of the second half. */
static void check_control(const struct kedge_buf *state)
{
    for (int32_t i = 0; i < VALUES / 2; i += 997) {
        float c;
        double sum = 0;
        for (int k = 0; k < FILES; k++) {
            sum += half_value(i + VALUES / 2, k);
        }
        memcpy(&c, state->ptr + state->len - 4 * (size_t)(VALUES / 2 - i), sizeof c);
        ck_assert_float_eq(c, (float)(sum / (7 * 65536.0)));
    }
}

START_TEST(control_variates_are_the_same)
{
    struct kedge_job_spec spec = {.scale = SCALE,
                                  .rule = kedge_rule_find("mean"),
                                  .strategy = kedge_strategy_find("scaffold"),
                                  .server = KEDGE_SERVER_CONTROL,
                                  .tenant_share_max = KEDGE_SHARE_ONE,
                                  .control_sites = 7};
    struct kedge_compute_input inputs[FILES], all[2][FILES];
    struct kedge_buf first[3], got[3];
    struct kedge_layout half, whole;
    uint64_t weight[FILES] = {1, 2, 3, 4, 5};
    const struct kedge_compute_weights weights = {spec.rule, weight, 15};
    char path[KEDGE_PATH_MAX], names[2][FILES][KEDGE_PATH_MAX];
    set_up();
    spec.options = spec.strategy->defaults;
    kedge_layout_init(&half, KEDGE_DTYPE_I32);
    ck_assert_int_eq(kedge_layout_add(&half, "w", (const uint64_t[]){VALUES / 2}, 1, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_job_spec_update_layout(&spec, &half, &whole, NULL), KEDGE_OK);
    put_half_model(&half, path);
    for (int k = 0; k < 2 * FILES; k++) {
        put_halves(k % 2 ? sealed : plain, &whole, k / 2, names[k % 2][k / 2], &all[k % 2][k / 2]);
    }
    for (int which = 0; which < 3; which++) {
        struct kedge_diag d = {.text = ""};
        const struct kedge_blob_at from = {.path = path};
        struct kedge_sink sinks[3];
        for (int k = 0; k < FILES; k++) {
            inputs[k] = all[which == 2 ? k % 2 : which][k];
        }
        for (int i = 0; i < 3; i++) {
            kedge_buf_init(&got[i], 1 << 20);
            sinks[i] = (struct kedge_sink){.write = sink, .arg = &got[i]};
        }
        int err = kedge_compute_aggregate(&spec, &half, &from, inputs, FILES, &weights, LIMIT, sinks[0], &d);
        err = err ? err
                  : kedge_compute_control_step(&spec, &half, &from, &from, NULL, inputs, FILES, sinks[1],
                                               sinks[2], &d);
        ck_assert_msg(!err, "%s", d.text);
        ck_assert_uint_lt(got[0].len, 4 * (VALUES / 2) + 200);
        check_control(&got[2]);
        for (int i = 0; i < 3; i++) {
            first[i] = which == 0 ? got[i] : first[i];
            ck_assert(kedge_view_eq(kedge_buf_view(&got[i]), kedge_buf_view(&first[i])));
            if (which > 0) {
                kedge_buf_deinit(&got[i]);
            }
        }
    }
    for (int i = 0; i < 3; i++) {
        kedge_buf_deinit(&first[i]);
    }
    kedge_layout_deinit(&half);
    kedge_layout_deinit(&whole);
    tear_down();
}
END_TEST

/* Whatever the pieces, a stream accepts what the file's check accepts. */
START_TEST(streams_agree_with_files)
{
    static const size_t pieces[] = {1 << 20, 65536, 1000, 7, 3};
    struct kedge_update_stream *s;
    struct kedge_buf file;
    struct kedge_hash of = {{1}}, other = {{2}};
    set_up();
    kedge_buf_init(&file, 1 << 20);
    ck_assert_int_eq(kedge_file_read(paths[0][0], &file, NULL), KEDGE_OK);
    for (int fault = 0; fault < 6; fault++) {
        size_t place = fault == 1 ? 3 : fault == 2 ? 40 : file.len - 1 - 4000 * (size_t)fault;
        uint8_t saved = file.ptr[place];
        file.ptr[place] =
            fault >= 1 && fault <= 3 ? (uint8_t)(saved ^ 0x40) : saved; /* 3: a value out of bounds */
        for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
            size_t end = fault == 4 ? file.len - 1 : file.len;
            ck_assert_int_eq(kedge_update_stream_open(&layout, LIMIT, &of, &s), KEDGE_OK);
            for (size_t from = 0; from < end; from += pieces[i]) {
                size_t n = end - from < pieces[i] ? end - from : pieces[i];
                kedge_update_stream_feed(s, fault == 5 && from > 0 ? from + 1 : from,
                                         kedge_view_of(file.ptr + from, n));
            }
            bool whole = fault == 5 && pieces[i] >= file.len;
            ck_assert_msg(kedge_update_stream_accepts(s, &of) == (fault == 0 || whole),
                          "fault %d, pieces of %zu", fault, pieces[i]);
            ck_assert(!kedge_update_stream_accepts(s, &other));
            kedge_update_stream_feed(s, end, kedge_view_of("x", 1));
            ck_assert(!kedge_update_stream_accepts(s, &of));
            kedge_update_stream_close(s);
        }
        file.ptr[place] = saved;
    }
    ck_assert(!kedge_update_stream_accepts(NULL, &of));
    kedge_buf_deinit(&file);
    tear_down();
}
END_TEST

START_TEST(errors_name_the_file)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf result;
    set_up();
    at[1][2].keys = NULL;
    ck_assert_int_eq(mean_of(1, FILES, &result, &d), KEDGE_E_SEALED);
    ck_assert_ptr_nonnull(strstr(d.text, paths[1][2]));
    kedge_buf_deinit(&result);
    at[1][2].keys = at[1][1].keys;
    int fd = open(paths[1][2], O_RDWR);
    uint8_t byte;
    off_t last = lseek(fd, -1, SEEK_END);
    ck_assert(pread(fd, &byte, 1, last) == 1);
    byte ^= 1;
    ck_assert(pwrite(fd, &byte, 1, last) == 1 && close(fd) == 0);
    ck_assert_int_eq(mean_of(1, FILES, &result, &d), KEDGE_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(d.text, paths[1][2]));
    kedge_buf_deinit(&result);
    struct kedge_blob_at swapped = at[1][0]; /* another update's file under this one's name */
    swapped.digest = digests[1];
    ck_assert_int_eq(kedge_compute_check_update(&layout, &swapped, NULL, LIMIT, &d), KEDGE_E_CORRUPT);
    tear_down();
}
END_TEST

int main(void)
{
    if (kedge_crypto_init() != KEDGE_OK) {
        return 1;
    }
    Suite *suite = suite_create("compute sealed");
    TCase *t = tcase_create("sealed");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, means_are_the_same);
    tcase_add_test(t, lengths_of_many);
    tcase_add_loop_test(t, rules_are_the_same, 0, (int)(sizeof chosen / sizeof chosen[0]));
    tcase_add_test(t, groups_and_directions_are_the_same);
    tcase_add_test(t, control_variates_are_the_same);
    tcase_add_test(t, streams_agree_with_files);
    tcase_add_test(t, errors_name_the_file);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
