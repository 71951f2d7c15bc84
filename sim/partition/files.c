/* A site's samples as the files that a trainer reads, and the binding (policy.json: data) that names them:
 * IDX for images of bytes, as MNIST's are, and npz for everything else. */
#include "sim/partition/files.h"

#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/idx.h"
#include "common/tensor/npz.h"

/* "…":"dir/name" with escapes. */
static void put_path(struct kedge_buf *out, const char *key, const char *dir, const char *name)
{
    struct kedge_buf path;
    kedge_buf_init(&path, KEDGE_PATH_MAX);
    kedge_buf_printf(&path, "%s/%s", dir, name);
    kedge_buf_printf(out, "\"%s\":", key);
    kedge_json_put_string(out, kedge_buf_view(&path));
    if (path.err && !out->err) {
        out->err = path.err;
    }
    kedge_buf_deinit(&path);
}

static void put_source(struct kedge_buf *out, const char *key, const char *dir, const char *images,
                       const char *labels, double scale)
{
    char text[KEDGE_REAL_MAX];
    kedge_real_encode(scale, text);
    kedge_buf_printf(out, "\"%s\":{\"format\":\"idx\",", key);
    put_path(out, "images", dir, images);
    kedge_buf_put_u8(out, ',');
    put_path(out, "labels", dir, labels);
    kedge_buf_printf(out, ",\"scale\":\"%s\"}", text);
}

void kedge_partition_put_binding(const char *dir, double scale, struct kedge_buf *out)
{
    kedge_buf_put_u8(out, '{');
    put_source(out, "train", dir, "train-images.idx", "train-labels.idx", scale);
    kedge_buf_put_u8(out, ',');
    put_source(out, "test", dir, "test-images.idx", "test-labels.idx", scale);
    kedge_buf_put_u8(out, '}');
}

static int write_file(const char *dir, const char *name, const struct kedge_buf *content,
                      struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    if (content->err) {
        return kedge_diag_set(reterr, content->err, "%s/%s: %s", dir, name, kedge_strerror(content->err));
    }
    int err = kedge_path_join(path, dir, name);
    if (err) {
        return kedge_diag_set(reterr, err, "%s/%s: path too long", dir, name);
    }
    return kedge_file_write(path, kedge_buf_view(content), 0600, reterr);
}

/* Images as rows of bytes, and labels, as MNIST has them. */
static int write_part(const char *dir, const char *images, const char *labels, const struct kedge_dataset *ds,
                      const uint32_t *rows, uint32_t count, struct kedge_diag *reterr)
{
    const uint32_t dims[] = {count, ds->features};
    struct kedge_buf out;
    kedge_buf_init(&out, (size_t)count * ds->features + 64);
    kedge_idx_put_header(dims, 2, &out);
    for (uint32_t i = 0; i < count; i++) {
        kedge_buf_put(&out, ds->bytes + (size_t)rows[i] * ds->features, ds->features);
    }
    int err = write_file(dir, images, &out, reterr);
    kedge_buf_clear(&out);
    kedge_idx_put_header(dims, 1, &out);
    for (uint32_t i = 0; i < count; i++) {
        kedge_buf_put_u8(&out, (uint8_t)ds->labels[rows[i]]);
    }
    if (!err) {
        err = write_file(dir, labels, &out, reterr);
    }
    kedge_buf_deinit(&out);
    return err;
}

int kedge_partition_write_idx(const char *dir, const struct kedge_dataset *ds,
                              const struct kedge_partition *p, uint32_t site, struct kedge_diag *reterr)
{
    uint32_t train_count, test_count;
    const uint32_t *train = kedge_partition_train(p, site, &train_count);
    const uint32_t *test = kedge_partition_test(p, site, &test_count);
    if (!ds->bytes || ds->classes > 256) {
        return kedge_diag_set(reterr, KEDGE_E_ARG,
                              "%s: only data of bytes with at most 256 classes are split into "
                              "IDX files",
                              dir);
    }
    int err = write_part(dir, "train-images.idx", "train-labels.idx", ds, train, train_count, reterr);
    if (!err) {
        err = write_part(dir, "test-images.idx", "test-labels.idx", ds, test, test_count, reterr);
    }
    if (err) {
        return err;
    }
    struct kedge_buf json;
    kedge_buf_init(&json, 64 * 1024);
    kedge_partition_put_binding(dir, (double)ds->scale, &json);
    kedge_buf_put_u8(&json, '\n');
    err = write_file(dir, "binding.json", &json, reterr);
    kedge_buf_deinit(&json);
    return err;
}

/* For real values, which IDX has no place for. */
int kedge_partition_write_npz(const char *path, const struct kedge_dataset *ds, struct kedge_diag *reterr)
{
    const uint64_t x[] = {ds->n, ds->features}, y[] = {ds->n};
    const struct kedge_npz_array arrays[] = {
        {.name = "x", .type = KEDGE_NPY_F4, .dims_count = 2, .dims = x, .data = ds->reals},
        {.name = "y", .type = KEDGE_NPY_I4, .dims_count = 1, .dims = y, .data = ds->labels}};
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&out, SIZE_MAX);
    KEDGE_TRY(kedge_npz_write(arrays, 2, &out));
    return out.err ? out.err : kedge_file_write(path, kedge_buf_view(&out), 0600, reterr);
}

void kedge_partition_put_npz_source(struct kedge_buf *out, const char *key, const char *path)
{
    kedge_buf_printf(out, "\"%s\":{\"format\":\"npz\",\"path\":", key);
    kedge_json_put_string(out, kedge_view_str(path));
    kedge_buf_put_str(out, "}");
}
