/* Data bindings: the JSON form described in dataset.h. */
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"
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

/* A word of a list, by its place; the first one is the default. The message lists all words, so the
 * reader need not look them up. */
static int get_word(const struct kedge_json *doc, uint32_t at, const char *key, const char *const *words,
                    uint32_t count, uint32_t *ret, struct kedge_diag *reterr)
{
    char expected[128] = "";
    size_t used = 0;
    uint32_t v = kedge_json_find(doc, at, key);
    for (uint32_t i = 0; i < count; i++) {
        if (v == KEDGE_JSON_NONE || kedge_json_str_is(doc, v, words[i])) {
            *ret = v == KEDGE_JSON_NONE ? 0 : i;
            return KEDGE_OK;
        }
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%s\"%s\"",
                                 i == 0          ? ""
                                 : i + 1 < count ? ", "
                                                 : " or ",
                                 words[i]);
    }
    return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"%s\": expected %s", key, expected);
}

/* Appends a name with its NUL; used is what is there already. */
static int put_name(const struct kedge_json *doc, uint32_t at, const char *key, char *out, size_t out_len,
                    size_t *used, struct kedge_diag *reterr)
{
    char name[KEDGE_CSV_NAME_MAX + 1];
    if (!kedge_json_is(doc, at, KEDGE_JSON_STRING)
        || kedge_json_decode_string(doc, at, name, sizeof name) != KEDGE_OK || name[0] == '\0') {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"%s\": expected names of 1 to %d bytes", key,
                              KEDGE_CSV_NAME_MAX);
    }
    size_t len = strlen(name) + 1;
    if (*used + len > out_len) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "\"%s\": the names have more than %zu bytes together",
                              key, out_len);
    }
    memcpy(out + *used, name, len);
    *used += len;
    return KEDGE_OK;
}

/* "label": a column's name, "first", "last", or its number from 1. */
static int read_label(const struct kedge_json *doc, uint32_t at, struct kedge_data_source *s,
                      struct kedge_diag *reterr)
{
    uint64_t place = 0;
    if (!kedge_json_is(doc, kedge_json_find(doc, at, "label"), KEDGE_JSON_NUMBER)) {
        int err = get_optional(doc, at, "label", "last", s->y, sizeof s->y, reterr);
        return err || s->y[0]
                   ? err
                   : kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"label\": expected a column's name or number");
    }
    int err = kedge_json_get_u64(doc, at, "label", 1, KEDGE_CSV_COLUMNS_MAX, &place, reterr);
    s->csv.label_place = (uint32_t)place;
    return err;
}

/* "ignore": names and numbers of columns. */
static int read_ignore(const struct kedge_json *doc, uint32_t at, struct kedge_data_source *s,
                       struct kedge_diag *reterr)
{
    uint32_t list = kedge_json_find(doc, at, "ignore");
    if (list == KEDGE_JSON_NONE) {
        return KEDGE_OK;
    }
    if (!kedge_json_is(doc, list, KEDGE_JSON_ARRAY)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"ignore\": expected a list of columns");
    }
    uint32_t v = list + 1;
    size_t used = 0;
    for (uint32_t i = 0; i < doc->tokens[list].count; i++, v = doc->tokens[v].next) {
        uint64_t place;
        if (!kedge_json_is(doc, v, KEDGE_JSON_NUMBER)) {
            KEDGE_TRY(put_name(doc, v, "ignore", s->ignore, sizeof s->ignore, &used, reterr));
            s->csv.ignore.count++;
        } else if (kedge_decimal_decode(kedge_json_text(doc, v), KEDGE_CSV_COLUMNS_MAX, &place) == KEDGE_OK
                   && place > 0 && s->csv.ignore_count < KEDGE_CSV_IGNORE_MAX) {
            s->csv.ignore_places[s->csv.ignore_count++] = (uint32_t)place;
        } else {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                  "\"ignore\": expected at most %d numbers of columns, the first is 1",
                                  KEDGE_CSV_IGNORE_MAX);
        }
    }
    return KEDGE_OK;
}

/* Only characters that cannot be part of a number or of a quoted field. */
static int read_separator(const struct kedge_json *doc, uint32_t at, struct kedge_data_source *s,
                          struct kedge_diag *reterr)
{
    uint32_t v = kedge_json_find(doc, at, "separator");
    char text[2] = "";
    if (v == KEDGE_JSON_NONE) {
        return KEDGE_OK;
    }
    if (!kedge_json_is(doc, v, KEDGE_JSON_STRING)
        || kedge_json_decode_string(doc, v, text, sizeof text) != KEDGE_OK
        || !strchr("\t !#$%&'*,/:;|~", text[0]) || text[0] == '\0') {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "\"separator\": expected one of , ; | : / ! # $ %% & ' * ~, a blank or \"\\t\"");
    }
    s->csv.separator = text[0];
    return KEDGE_OK;
}

static int read_csv(const struct kedge_json *doc, uint32_t at, struct kedge_data_source *s,
                    struct kedge_diag *reterr)
{
    static const char *const keys[] = {"format",    "path",    "label",   "scale", "header",
                                       "separator", "decimal", "missing", "ignore"};
    static const char *const missing[] = {"refuse", "drop", "mean"}; /* as the enum counts them */
    static const char *const decimals[] = {".", ","};
    uint32_t what = 0, comma = 0;
    bool header = false;
    KEDGE_TRY(kedge_json_check_keys(doc, at, "csv data", keys, sizeof keys / sizeof *keys, reterr));
    KEDGE_TRY(kedge_json_get_string(doc, at, "path", s->path, sizeof s->path, reterr));
    KEDGE_TRY(read_label(doc, at, s, reterr));
    KEDGE_TRY(read_separator(doc, at, s, reterr));
    KEDGE_TRY(read_ignore(doc, at, s, reterr));
    KEDGE_TRY(get_word(doc, at, "missing", missing, 3, &what, reterr));
    KEDGE_TRY(get_word(doc, at, "decimal", decimals, 2, &comma, reterr));
    if (kedge_json_find(doc, at, "header") != KEDGE_JSON_NONE) {
        KEDGE_TRY(kedge_json_get_bool(doc, at, "header", &header, reterr));
        s->csv.header = header ? KEDGE_CSV_HEADER_YES : KEDGE_CSV_HEADER_NO;
    }
    s->csv.missing = (enum kedge_csv_missing)what;
    s->csv.decimal_comma = comma > 0;
    if (s->csv.decimal_comma && s->csv.separator == ',') {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"decimal\": a comma cannot be \"separator\" as well");
    }
    return KEDGE_OK;
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
    KEDGE_TRY(kedge_json_check_keys(doc, at, "text data", keys, 5, reterr));
    KEDGE_TRY(kedge_json_get_string(doc, at, "path", s->path, sizeof s->path, reterr));
    KEDGE_TRY(kedge_json_get_u64(doc, at, "window", 1, KEDGE_DATA_WINDOW_MAX, &window, reterr));
    if (kedge_json_find(doc, at, "step") != KEDGE_JSON_NONE) {
        KEDGE_TRY(kedge_json_get_u64(doc, at, "step", 1, KEDGE_DATA_STEP_MAX, &step, reterr));
    }
    KEDGE_TRY(get_optional(doc, at, "alphabet", kedge_text_alphabet, s->x, sizeof s->x, reterr));
    if (s->x[0] == '\0') {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"alphabet\": expected at least one character");
    }
    s->window = (uint32_t)window;
    s->step = (uint32_t)step;
    return KEDGE_OK;
}

/* A row for each format; the functions check the keys of their own format and refuse others. */
static int data_source_from_json(const struct kedge_json *doc, uint32_t at, struct kedge_data_source *ret,
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

/* The place of a name is the number of its class, so a name that stands twice would be two classes. */
static int read_classes(const struct kedge_json *doc, uint32_t at, struct kedge_data_binding *b,
                        struct kedge_diag *reterr)
{
    uint32_t list = kedge_json_find(doc, at, "classes");
    if (list == KEDGE_JSON_NONE) {
        return KEDGE_OK;
    }
    uint32_t count = kedge_json_is(doc, list, KEDGE_JSON_ARRAY) ? doc->tokens[list].count : 0;
    if (kedge_json_str_is(doc, list, "federated")) {
        b->tells_classes = true;
        return KEDGE_OK;
    }
    if (count < 2 || count > KEDGE_CSV_CLASSES_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"classes\": expected a list of 2 to %d names, or \"federated\"",
                              KEDGE_CSV_CLASSES_MAX);
    }
    uint32_t v = list + 1;
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++, v = doc->tokens[v].next) {
        size_t begin = used;
        KEDGE_TRY(put_name(doc, v, "classes", b->classes, sizeof b->classes, &used, reterr));
        const char *other = b->classes;
        for (uint32_t k = 0; k < i; k++, other = kedge_names_next(other)) {
            if (strcmp(other, b->classes + begin) == 0) {
                return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"classes\": \"%s\" is there twice", other);
            }
        }
    }
    b->classes_count = count;
    return KEDGE_OK;
}

static int read_split(const struct kedge_json *doc, uint32_t at, struct kedge_data_binding *b,
                      struct kedge_diag *reterr)
{
    if (kedge_json_find(doc, at, "split") == KEDGE_JSON_NONE) {
        return KEDGE_OK;
    }
    return b->has_test ? kedge_diag_set(reterr, KEDGE_E_FORMAT, "give \"test\" or \"split\", not both")
                       : kedge_json_get_real(doc, at, "split", 0.01, 1.0, &b->split, reterr);
}

static int read_binding(const struct kedge_json *doc, uint32_t at, struct kedge_data_binding *b,
                        struct kedge_diag *reterr)
{
    static const char *const standardize[] = {"none", "local"}; /* as the enum counts them */
    uint32_t train = kedge_json_find(doc, at, "train"), test = kedge_json_find(doc, at, "test"), how = 0;
    if (train == KEDGE_JSON_NONE) {
        return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "\"train\" is missing");
    }
    int err = data_source_from_json(doc, train, &b->train, reterr);
    if (err) {
        return kedge_diag_wrap(reterr, err, "train");
    }
    b->has_test = test != KEDGE_JSON_NONE;
    if (b->has_test) {
        err = data_source_from_json(doc, test, &b->test, reterr);
        if (err) {
            return kedge_diag_wrap(reterr, err, "test");
        }
    }
    KEDGE_TRY(read_split(doc, at, b, reterr));
    KEDGE_TRY(read_classes(doc, at, b, reterr));
    KEDGE_TRY(get_word(doc, at, "standardize", standardize, 2, &how, reterr));
    b->standardize = (enum kedge_data_standardize)how;
    return KEDGE_OK;
}

int kedge_data_binding_from_json(const struct kedge_json *doc, uint32_t at, struct kedge_data_binding *ret,
                                 struct kedge_diag *reterr)
{
    static const char *const keys[] = {"train", "test", "split", "classes", "standardize"};
    KEDGE_TRY(kedge_json_check_keys(doc, at, "data", keys, sizeof keys / sizeof *keys, reterr));
    struct kedge_data_binding *b = kedge_mem_new(1, sizeof *b);
    if (!b) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a data binding");
    }
    b->split = 1.0;
    int err = read_binding(doc, at, b, reterr);
    if (err) {
        err = kedge_diag_wrap(reterr, err, "data");
    } else {
        *ret = *b;
    }
    kedge_mem_free(b);
    return err;
}
