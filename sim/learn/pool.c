#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "aggregation/simd.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/dataset.h"
#include "common/tensor/idx.h"
#include "sim/learn/engine.h"

void kedgei_learn_pool_deinit(struct kedgei_learn_pool *pool)
{
    kedge_mem_free(pool->bytes);
    kedge_mem_free(pool->reals);
    kedge_mem_free(pool->labels);
    kedge_mem_free(pool->writers);
    kedge_clients_deinit(&pool->clients);
    kedge_mem_free(pool->mean);
    kedge_mem_free(pool->inverse);
    for (int k = 1; k < 4; k++) {
        kedge_mem_free(pool->turned[k]);
    }
    *pool = (struct kedgei_learn_pool){0};
}

/* ---- files ---- */

/* "images" names a folder without MNIST's files: which file in it could have been meant, for there is most
 * often one. */
static int say_no_part(const char *folder, const char *part, struct kedge_diag *reterr)
{
    char near[NAME_MAX + 1] = "";
    DIR *dir = opendir(folder);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        size_t len = strlen(e->d_name);
        bool fits = strstr(e->d_name, "-images.idx") || (len > 4 && strcmp(e->d_name + len - 4, ".csv") == 0);
        if (fits && (!near[0] || strcmp(e->d_name, near) < 0)) {
            snprintf(near, sizeof near, "%s", e->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
    kedge_diag_set(
        reterr, KEDGE_E_NOT_FOUND,
        "%s: expected train-images-idx3-ubyte and three more files as MNIST has them; %s-images is "
        "not there",
        folder, part);
    return near[0]
               ? kedge_diag_hint(reterr,
                                 "\"images\" may name a file X-images.idx (beside X-labels.idx) or X.csv: "
                                 "did you mean \"%s/%s\"?",
                                 folder, near)
               : kedge_diag_hint(
                   reterr, "\"images\" may name a file X-images.idx (beside X-labels.idx) or X.csv, too; "
                           "scripts/get-data fetches MNIST and Fashion-MNIST");
}

static int load_part(const char *folder, const char *part, struct kedge_dataset *ret,
                     struct kedge_diag *reterr)
{
    struct kedge_data_source source = {.format = KEDGE_DATA_IDX, .scale = 1};
    int a = snprintf(source.path, sizeof source.path, "%s/%s-images-idx3-ubyte", folder, part);
    int b = snprintf(source.labels_path, sizeof source.labels_path, "%s/%s-labels-idx1-ubyte", folder, part);
    if (a < 0 || b < 0 || (size_t)a >= sizeof source.path || (size_t)b >= sizeof source.labels_path) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "the folder's name is too long: %s", folder);
    }
    struct stat st;
    if (stat(source.path, &st) != 0) {
        return say_no_part(folder, part, reterr);
    }
    return kedge_dataset_load(&source, ret, reterr);
}

static int join_parts(struct kedgei_learn_pool *pool, const struct kedge_dataset *train,
                      const struct kedge_dataset *test, struct kedge_diag *reterr)
{
    uint64_t n = (uint64_t)train->n + test->n;
    if (!train->bytes || !test->bytes || !train->labels || !test->labels) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "the images are not bytes");
    }
    if (train->features != test->features || n > INT32_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "training images of %u pixels, test images of %u",
                              train->features, test->features);
    }
    pool->n = (uint32_t)n;
    pool->train_n = train->n;
    pool->features = train->features;
    pool->bytes = kedge_mem_new(pool->n, pool->features);
    pool->labels = kedge_mem_new(pool->n, sizeof *pool->labels);
    if (!pool->bytes || !pool->labels) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u images", pool->n);
    }
    memcpy(pool->bytes, train->bytes, (size_t)train->n * pool->features);
    memcpy(pool->bytes + (size_t)train->n * pool->features, test->bytes, (size_t)test->n * pool->features);
    memcpy(pool->labels, train->labels, train->n * sizeof *pool->labels);
    memcpy(pool->labels + train->n, test->labels, test->n * sizeof *pool->labels);
    return KEDGE_OK;
}

static int load_folder(struct kedgei_learn_pool *pool, const char *folder, struct kedge_diag *reterr)
{
    struct kedge_dataset train = {0}, test = {0};
    int err = load_part(folder, "train", &train, reterr);
    err = err ? err : load_part(folder, "t10k", &test, reterr);
    err = err ? err : join_parts(pool, &train, &test, reterr);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
    return err;
}

/* Beside digits-images.idx: digits-writers.csv, a line a sample, who wrote it. */
static int load_writers(struct kedgei_learn_pool *pool, const char *images, struct kedge_diag *reterr)
{
    char path[KEDGE_LEARN_PATH_MAX + 16];
    const char *at = strstr(images, "-images");
    struct kedge_buf bytes;
    (void)snprintf(path, sizeof path, "%.*s-writers.csv", (int)(at - images), images);
    pool->writers = kedge_mem_new(pool->n, sizeof *pool->writers);
    if (!pool->writers) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for the writers of %u samples", pool->n);
    }
    kedge_buf_init(&bytes, (size_t)pool->n * 8 + 1); /* five digits and a line's end */
    int err = kedge_file_read(path, &bytes, reterr);
    uint32_t count = 0;
    for (size_t from = 0; from < bytes.len && !err; count++) {
        const uint8_t *end = memchr(bytes.ptr + from, '\n', bytes.len - from);
        size_t len = (end ? (size_t)(end - bytes.ptr) : bytes.len) - from;
        struct kedge_view text = kedge_view_of(bytes.ptr + from, len);
        uint64_t writer = 0;
        text.len -= len > 0 && text.ptr[len - 1] == '\r';
        if (count == pool->n || kedge_decimal_decode(text, KEDGE_LEARN_SITES_MAX - 1, &writer)) {
            err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                 "%s: line %u: expected a whole number below %d, on %u lines in all", path,
                                 count + 1, KEDGE_LEARN_SITES_MAX, pool->n);
            break;
        }
        pool->writers[count] = (uint32_t)writer;
        from += len + 1;
    }
    if (!err && count != pool->n) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: %u lines, but there are %u samples", path, count,
                             pool->n);
    }
    kedge_buf_deinit(&bytes);
    return err;
}

/* "images.idx" beside "labels.idx": digits-images.idx and digits-labels.idx, one part. */
static int load_pair(struct kedgei_learn_pool *pool, const char *path, bool writers,
                     struct kedge_diag *reterr)
{
    struct kedge_data_source source = {.format = KEDGE_DATA_IDX, .scale = 1};
    struct kedge_dataset all = {0}, none = {0};
    const char *at = strstr(path, "-images");
    int a = snprintf(source.path, sizeof source.path, "%s", path);
    int b = snprintf(source.labels_path, sizeof source.labels_path, "%.*s-labels%s", (int)(at - path), path,
                     at + strlen("-images"));
    if (a < 0 || b < 0 || (size_t)a >= sizeof source.path || (size_t)b >= sizeof source.labels_path) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "the file's name is too long: %s", path);
    }
    int err = kedge_dataset_load(&source, &all, reterr);
    if (!err) {
        none.features = all.features;
        none.bytes = all.bytes;
        none.labels = all.labels;
        err = join_parts(pool, &all, &none, reterr);
    }
    kedge_dataset_deinit(&all);
    return err || !writers ? err : load_writers(pool, path, reterr);
}

/* The first column of a CSV file says who wrote the sample, the last is the label. */
static int split_writers(struct kedgei_learn_pool *pool, struct kedge_diag *reterr)
{
    uint32_t width = pool->features - 1;
    pool->writers = kedge_mem_new(pool->n, sizeof *pool->writers);
    if (!pool->writers || width == 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "a CSV file of writers needs a column before the features");
    }
    for (uint32_t i = 0; i < pool->n; i++) {
        const float *row = pool->reals + (size_t)i * pool->features;
        if (!(row[0] >= 0) || row[0] >= KEDGE_LEARN_SITES_MAX || row[0] != floorf(row[0])) {
            return kedge_diag_set(
                reterr, KEDGE_E_FORMAT,
                "sample %u: writer %g in the first column, expected a whole number below %d", i,
                (double)row[0], KEDGE_LEARN_SITES_MAX);
        }
        pool->writers[i] = (uint32_t)row[0];
    }
    for (uint32_t i = 0; i < pool->n; i++) {
        memmove(pool->reals + (size_t)i * width, pool->reals + (size_t)i * pool->features + 1,
                width * sizeof(float));
    }
    pool->features = width;
    return KEDGE_OK;
}

static int load_csv(struct kedgei_learn_pool *pool, const char *path, bool writers, struct kedge_diag *reterr)
{
    struct kedge_data_source source = {.format = KEDGE_DATA_CSV, .y = "last", .scale = 1};
    struct kedge_dataset all = {0};
    int a = snprintf(source.path, sizeof source.path, "%s", path);
    if (a < 0 || (size_t)a >= sizeof source.path) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "the file's name is too long: %s", path);
    }
    int err = kedge_dataset_load(&source, &all, reterr);
    if (err) {
        return err;
    }
    pool->n = pool->train_n = all.n;
    pool->features = all.features;
    pool->reals = kedge_mem_new((size_t)all.n * all.features, sizeof *pool->reals);
    pool->labels = all.labels;
    all.labels = NULL;
    if (!pool->reals) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u samples", all.n);
    } else {
        kedge_dataset_gather(&all, NULL, all.n, pool->reals);
    }
    kedge_dataset_deinit(&all);
    return err || !writers ? err : split_writers(pool, reterr);
}

static bool ends_with(const char *s, const char *end)
{
    size_t a = strlen(s), b = strlen(end);
    return a >= b && strcmp(s + a - b, end) == 0;
}

static int load_files(struct kedgei_learn_pool *pool, const struct kedge_learn_spec *spec,
                      struct kedge_diag *reterr)
{
    bool writers = spec->partition == KEDGE_LEARN_WRITERS;
    if (ends_with(spec->images, ".csv")) {
        return load_csv(pool, spec->images, writers, reterr);
    }
    if (ends_with(spec->images, ".idx") && strstr(spec->images, "-images")) {
        return load_pair(pool, spec->images, writers, reterr);
    }
    if (writers) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "%s: writers are the first column of a .csv file, or the lines of X-writers.csv "
            "beside X-images.idx",
            spec->images);
    }
    return load_folder(pool, spec->images, reterr);
}

/* ---- scaling and turning ---- */

/* Per pixel over the first n samples: mean and 1 / (standard deviation + 0.001); integers until the last
 * division. */
static int standardise(struct kedgei_learn_pool *pool, uint32_t n)
{
    uint32_t width = pool->features;
    uint64_t *sum KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(width, sizeof *sum),
                  *squares KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(width, sizeof *squares);
    for (uint32_t i = 0; i < n && sum && squares; i++) {
        const uint8_t *row = pool->bytes + (size_t)i * width;
        for (uint32_t k = 0; k < width; k++) {
            sum[k] += row[k];
            squares[k] += (uint32_t)row[k] * row[k];
        }
    }
    for (uint32_t k = 0; k < width && sum && squares; k++) {
        double mean = (double)sum[k] / n, variance = (double)squares[k] / n - mean * mean;
        pool->mean[k] = (float)mean;
        pool->inverse[k] = (float)(1.0 / (sqrt(variance > 0 ? variance : 0) + 0.001));
    }
    return sum && squares ? KEDGE_OK : KEDGE_E_NOMEM;
}

static int set_scale(struct kedgei_learn_pool *pool, enum kedge_learn_partition partition,
                     struct kedge_diag *reterr)
{
    if (!pool->bytes) {
        return KEDGE_OK;
    }
    pool->mean = kedge_mem_new_lines(pool->features, sizeof *pool->mean);
    pool->inverse = kedge_mem_new_lines(pool->features, sizeof *pool->inverse);
    if (!pool->mean || !pool->inverse) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u features", pool->features);
    }
    uint8_t most = 1;
    for (size_t i = 0; i < (size_t)pool->n * pool->features; i++) {
        most = pool->bytes[i] > most ? pool->bytes[i] : most;
    }
    for (uint32_t k = 0; k < pool->features; k++) {
        pool->inverse[k] = 1.0f / (float)most; /* 255; 16 for the small digits */
    }
    if (partition == KEDGE_LEARN_MNIST || partition == KEDGE_LEARN_FASHION) {
        return standardise(pool, partition == KEDGE_LEARN_MNIST ? pool->n : pool->train_n);
    }
    return KEDGE_OK;
}

static int set_turns(struct kedgei_learn_pool *pool, struct kedge_diag *reterr)
{
    uint32_t side = (uint32_t)lround(sqrt((double)pool->features));
    pool->side = pool->bytes && side * side == pool->features ? side : 0;
    for (uint32_t k = 1; k < 4 && pool->side; k++) {
        pool->turned[k] = kedge_mem_new(pool->features, sizeof *pool->turned[k]);
        if (!pool->turned[k]) {
            return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u features", pool->features);
        }
        for (uint32_t r = 0; r < side; r++) {
            for (uint32_t c = 0; c < side; c++) { /* one turn: row c of the original from the right */
                uint32_t from = c * side + (side - 1 - r);
                pool->turned[k][r * side + c] =
                    k == 1 ? from : pool->turned[1][pool->turned[k - 1][r * side + c]];
            }
        }
    }
    return KEDGE_OK;
}

/* out = (in − mean) · inverse, each step rounded: the same bits on every path. */
static void scale_row(const uint8_t *restrict in, const float *restrict mean, const float *restrict inverse,
                      size_t width, float *restrict out)
{
    for (size_t i = 0; i < width; i++) {
        out[i] = ((float)in[i] - mean[i]) * inverse[i];
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void scale_row_avx2(const uint8_t *in, const float *mean,
                                                           const float *inverse, size_t width, float *out)
{
    size_t i = 0;
    for (; i + 8 <= width; i += 8) {
        __m256 v = _mm256_cvtepi32_ps(
            _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(in + i))));
        v = _mm256_mul_ps(_mm256_sub_ps(v, _mm256_loadu_ps(mean + i)), _mm256_loadu_ps(inverse + i));
        _mm256_storeu_ps(out + i, v);
    }
    scale_row(in + i, mean + i, inverse + i, width - i, out + i);
}
#endif

void kedgei_learn_pool_row(const struct kedgei_learn_pool *pool, uint32_t row, uint32_t turn,
                           float *restrict out)
{
    size_t width = pool->features;
    if (pool->reals) {
        memcpy(out, pool->reals + row * width, width * sizeof *out);
        return;
    }
    const uint8_t *in = pool->bytes + row * width;
    const float *mean = pool->mean, *inverse = pool->inverse;
    if (turn == 0) {
#if defined(__x86_64__)
        if (kedge_simd_avx2()) {
            scale_row_avx2(in, mean, inverse, width, out);
            return;
        }
#endif
        scale_row(in, mean, inverse, width, out);
        return;
    }
    const uint32_t *from = pool->turned[turn];
    for (size_t i = 0; i < width; i++) {
        out[i] = ((float)in[from[i]] - mean[from[i]]) * inverse[from[i]];
    }
}

void kedgei_learn_pool_prefetch(const struct kedgei_learn_pool *pool, uint32_t row)
{
    const uint8_t *values = pool->bytes ? pool->bytes + (size_t)row * pool->features : NULL;
    for (uint32_t k = 0; k < pool->features && values; k += 64) {
        __builtin_prefetch(values + k);
    }
}

/* ---- partition ---- */

static int make_partition(struct kedgei_learn_pool *pool, const struct kedge_learn_spec *spec,
                          struct kedge_partition *ret, struct kedge_diag *reterr)
{
    struct kedge_pool_labels labels = {pool->labels, pool->n, pool->train_n, pool->classes};
    switch (spec->partition) {
    case KEDGE_LEARN_IID:
        return kedge_recipe_iid(&labels, spec->sites, spec->job.seed, ret, reterr);
    case KEDGE_LEARN_DIRICHLET:
        return kedge_recipe_dirichlet(&labels, spec->sites, spec->alpha, spec->job.seed, ret, reterr);
    case KEDGE_LEARN_SHARDS:
        return kedge_recipe_shards(&labels, spec->sites, spec->per_site, spec->job.seed, ret, reterr);
    case KEDGE_LEARN_MNIST:
        return kedge_recipe_mnist(&labels, spec->sites, spec->job.seed, ret, reterr);
    case KEDGE_LEARN_LETTERS:
        return kedge_recipe_letters(&labels, spec->sites, spec->leak, spec->job.seed, ret, reterr);
    case KEDGE_LEARN_FASHION:
        return kedge_recipe_fashion(&labels, spec->job.seed, ret, reterr);
    case KEDGE_LEARN_ROTATED:
        return kedge_recipe_rotated(&labels, spec->sites, spec->job.seed, ret, reterr);
    case KEDGE_LEARN_WRITERS:
        return kedge_recipe_writers(&labels, pool->writers, spec->job.seed, ret, reterr);
    case KEDGE_LEARN_CLIENTS:
    case KEDGE_LEARN_SYNTHETIC:
        break; /* came with its samples */
    }
    return KEDGE_E_BUG;
}

static int load_synthetic(struct kedgei_learn_pool *pool, const struct kedge_learn_spec *spec,
                          struct kedge_partition *ret, struct kedge_diag *reterr)
{
    struct kedge_synthetic s;
    KEDGE_TRY(kedge_recipe_synthetic(spec->sites, spec->alpha, spec->beta, spec->job.seed, &s, reterr));
    *pool = (struct kedgei_learn_pool){.n = s.n,
                                       .train_n = s.n,
                                       .features = KEDGE_SYNTHETIC_FEATURES,
                                       .classes = KEDGE_RECIPE_CLASSES,
                                       .reals = s.x,
                                       .labels = s.labels};
    *ret = s.partition;
    return KEDGE_OK;
}

int kedgei_learn_pool_load(struct kedgei_learn_pool *pool, const struct kedge_learn_spec *spec,
                           struct kedge_partition *ret_partition, struct kedge_diag *reterr)
{
    *pool = (struct kedgei_learn_pool){0};
    if (spec->partition == KEDGE_LEARN_SYNTHETIC) {
        return load_synthetic(pool, spec, ret_partition, reterr);
    }
    bool clients = spec->partition == KEDGE_LEARN_CLIENTS;
    KEDGE_TRY(clients ? kedgei_learn_clients_load(pool, spec, ret_partition, reterr)
                      : load_files(pool, spec, reterr));
    for (uint32_t i = 0; i < pool->n; i++) {
        uint32_t k = (uint32_t)pool->labels[i];
        pool->classes = k >= pool->classes ? k + 1 : pool->classes;
    }
    if (pool->classes > KEDGEI_LEARN_CLASSES_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "%s: %u classes, at most %d", spec->images,
                              pool->classes, KEDGEI_LEARN_CLASSES_MAX);
    }
    KEDGE_TRY(set_scale(pool, spec->partition, reterr));
    KEDGE_TRY(set_turns(pool, reterr));
    return clients ? KEDGE_OK : make_partition(pool, spec, ret_partition, reterr);
}
