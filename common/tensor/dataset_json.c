/* Data bindings: the JSON form described in dataset.h. */
#include <string.h>

#include "common/tensor/dataset_impl.h"

static int get_optional(const struct kedge_json *doc, uint32_t at, const char *key, const char *otherwise,
                        char *out, size_t out_len, struct kedge_diag *reterr)
{
    if (kedge_json_find(doc, at, key) == KEDGE_JSON_NONE) {
        memcpy(out, otherwise, strlen(otherwise) + 1);
        return KEDGE_OK;
    }
    return kedge_json_get_string(doc, at, key, out, out_len, reterr);
}

static int read_idx(const struct kedge_json *doc, uint32_t at, struct kedge_data_source *s,
                    struct kedge_diag *reterr)
{
    static const char *const keys[] = {"format", "images", "labels", "scale"};
    int err = kedge_json_check_keys(doc, at, "idx data", keys, 4, reterr);
    if (!err) {
        err = kedge_json_get_string(doc, at, "images", s->path, sizeof s->path, reterr);
    }
    return err ? err
               : kedge_json_get_string(doc, at, "labels", s->labels_path, sizeof s->labels_path, reterr);
}

static int read_csv(const struct kedge_json *doc, uint32_t at, struct kedge_data_source *s,
                    struct kedge_diag *reterr)
{
    static const char *const keys[] = {"format", "path", "label", "scale"};
    int err = kedge_json_check_keys(doc, at, "csv data", keys, 4, reterr);
    if (!err) {
        err = kedge_json_get_string(doc, at, "path", s->path, sizeof s->path, reterr);
    }
    return err ? err : get_optional(doc, at, "label", "last", s->y, sizeof s->y, reterr);
}

static int read_npz(const struct kedge_json *doc, uint32_t at, struct kedge_data_source *s,
                    struct kedge_diag *reterr)
{
    static const char *const keys[] = {"format", "path", "x", "y", "scale"};
    int err = kedge_json_check_keys(doc, at, "npz data", keys, 5, reterr);
    if (!err) {
        err = kedge_json_get_string(doc, at, "path", s->path, sizeof s->path, reterr);
    }
    if (!err) {
        err = get_optional(doc, at, "x", "x", s->x, sizeof s->x, reterr);
    }
    return err ? err : get_optional(doc, at, "y", "y", s->y, sizeof s->y, reterr);
}

static int read_text(const struct kedge_json *doc, uint32_t at, struct kedge_data_source *s,
                     struct kedge_diag *reterr)
{
    static const char *const keys[] = {"format", "path", "window", "step", "alphabet"};
    uint64_t window = 0, step = 1;
    int err = kedge_json_check_keys(doc, at, "text data", keys, 5, reterr);
    if (!err) {
        err = kedge_json_get_string(doc, at, "path", s->path, sizeof s->path, reterr);
    }
    if (!err) {
        err = kedge_json_get_u64(doc, at, "window", 1, KEDGE_DATA_WINDOW_MAX, &window, reterr);
    }
    if (!err && kedge_json_find(doc, at, "step") != KEDGE_JSON_NONE) {
        err = kedge_json_get_u64(doc, at, "step", 1, KEDGE_DATA_STEP_MAX, &step, reterr);
    }
    err = err ? err : get_optional(doc, at, "alphabet", kedge_text_alphabet, s->x, sizeof s->x, reterr);
    if (!err && s->x[0] == '\0') {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"alphabet\": expected at least one character");
    }
    s->window = (uint32_t)window;
    s->step = (uint32_t)step;
    return err;
}

int kedge_data_source_from_json(const struct kedge_json *doc, uint32_t at, struct kedge_data_source *ret,
                                struct kedge_diag *reterr)
{
    static const struct {
        const char *name;
        enum kedge_data_format format;
        int (*read)(const struct kedge_json *, uint32_t, struct kedge_data_source *, struct kedge_diag *);
    } formats[] = {{"idx", KEDGE_DATA_IDX, read_idx},
                   {"csv", KEDGE_DATA_CSV, read_csv},
                   {"npz", KEDGE_DATA_NPZ, read_npz},
                   {"text", KEDGE_DATA_TEXT, read_text}};
    uint32_t format = kedge_json_find(doc, at, "format");
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (!kedge_json_str_is(doc, format, formats[i].name)) {
            continue;
        }
        struct kedge_data_source s = {.format = formats[i].format, .scale = 1.0};
        int err = formats[i].read(doc, at, &s, reterr);
        if (!err && kedge_json_find(doc, at, "scale") != KEDGE_JSON_NONE) {
            err = kedge_json_get_real(doc, at, "scale", -1e30, 1e30, &s.scale, reterr);
        }
        if (!err) {
            *ret = s;
        }
        return err;
    }
    return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                          "\"format\": expected \"idx\", \"csv\", \"npz\" or \"text\"");
}

int kedge_data_binding_from_json(const struct kedge_json *doc, uint32_t at, struct kedge_data_binding *ret,
                                 struct kedge_diag *reterr)
{
    static const char *const keys[] = {"train", "test", "split"};
    struct kedge_data_binding b = {.split = 1.0};
    uint32_t train = kedge_json_find(doc, at, "train"), test = kedge_json_find(doc, at, "test");
    int err = kedge_json_check_keys(doc, at, "data", keys, 3, reterr);
    if (err) {
        return err;
    }
    if (train == KEDGE_JSON_NONE) {
        return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "data: \"train\" is missing");
    }
    err = kedge_data_source_from_json(doc, train, &b.train, reterr);
    if (err) {
        return kedge_diag_wrap(reterr, err, "data: train");
    }
    b.has_test = test != KEDGE_JSON_NONE;
    if (b.has_test) {
        err = kedge_data_source_from_json(doc, test, &b.test, reterr);
        if (err) {
            return kedge_diag_wrap(reterr, err, "data: test");
        }
    }
    if (kedge_json_find(doc, at, "split") != KEDGE_JSON_NONE) {
        if (b.has_test) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "data: give \"test\" or \"split\", not both");
        }
        err = kedge_json_get_real(doc, at, "split", 0.01, 1.0, &b.split, reterr);
        if (err) {
            return kedge_diag_wrap(reterr, err, "data");
        }
    }
    *ret = b;
    return KEDGE_OK;
}
