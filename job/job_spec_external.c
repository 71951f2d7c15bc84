/* Jobs whose model only the sites' own trainers understand: the spec names its tensors, no layers.
 * Coordinator and auditor need no more: they check, add up and compare vectors by layout alone. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/text.h"
#include "job/job_spec_impl.h"

static int bad(struct kedge_diag *d, const char *key, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"external\": \"%s\": expected %s", key, expected);
}

static bool only_keys(const json_t *o, const char *const keys[], size_t count, const char **ret_other)
{
    void *it = json_object_iter((json_t *)(uintptr_t)o);
    for (; it; it = json_object_iter_next((json_t *)(uintptr_t)o, it)) {
        bool known = false;
        for (size_t i = 0; i < count && !known; i++) {
            known = strcmp(keys[i], json_object_iter_key(it)) == 0;
        }
        if (!known) {
            *ret_other = json_object_iter_key(it);
            return false;
        }
    }
    return true;
}

static int read_shape(const json_t *list, uint64_t dims[KEDGE_TENSOR_DIMS_MAX], uint32_t *ret_count,
                      struct kedge_diag *d)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > KEDGE_TENSOR_DIMS_MAX) {
        return bad(d, "shape", "a list of at most 8 whole numbers, [] for a single value");
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        json_int_t dim = json_integer_value(v);
        if (!json_is_integer(v) || dim < 1 || dim > UINT32_MAX) {
            return bad(d, "shape", "whole numbers from 1");
        }
        dims[i] = (uint64_t)dim;
    }
    *ret_count = (uint32_t)n;
    return KEDGE_OK;
}

/* Packed: length and bytes of the name, number of dimensions, each in 4 bytes of this machine's order. A
 * spec is copied by value, so it has no pointers; a fixed array with room for the longest names and shapes
 * would make it much larger. */
static int pack(struct kedge_external *e, const struct kedge_tensor *t, struct kedge_diag *d)
{
    size_t name_len = strlen(t->name), need = 2 + name_len + 4 * (size_t)t->dims_count;
    if (need > sizeof e->tensors - e->tensors_len) {
        return kedge_diag_set(d, KEDGE_E_TOO_LONG,
                              "job spec: \"external\": \"tensors\": names and shapes take more than %d bytes "
                              "at \"%s\"; shorten the names",
                              KEDGE_EXTERNAL_TENSORS_MAX, t->name);
    }
    uint8_t *at = e->tensors + e->tensors_len;
    *at++ = (uint8_t)name_len;
    memcpy(at, t->name, name_len);
    at += name_len;
    *at++ = (uint8_t)t->dims_count;
    for (uint32_t i = 0; i < t->dims_count; i++, at += 4) {
        uint32_t dim = (uint32_t)t->dims[i];
        memcpy(at, &dim, 4);
    }
    e->tensors_len += (uint32_t)need;
    return KEDGE_OK;
}

static int read_tensor(const json_t *v, struct kedge_layout *layout, struct kedge_external *e,
                       struct kedge_diag *d)
{
    static const char *const keys[] = {"name", "shape"};
    uint64_t dims[KEDGE_TENSOR_DIMS_MAX];
    const char *other, *name = json_string_value(json_object_get(v, "name"));
    uint32_t dims_count = 0;
    if (!name || strlen(name) != json_string_length(json_object_get(v, "name"))
        || !only_keys(v, keys, 2, &other)) {
        return bad(d, "tensors", "objects {\"name\": \"fc.weight\", \"shape\": [10, 64]}");
    }
    int err = read_shape(json_object_get(v, "shape"), dims, &dims_count, d);
    if (!err) {
        err = kedge_layout_add(layout, name, dims, dims_count, d);
    }
    if (!err) {
        err = pack(e, &layout->tensors[layout->count - 1], d);
    }
    return err ? kedge_diag_wrap(d, err, "job spec: tensor %u", layout->count) : KEDGE_OK;
}

static int read_tensors(const json_t *list, struct kedge_external *e, struct kedge_diag *d)
{
    size_t n = json_array_size(list);
    struct kedge_layout layout;
    if (n < 1 || n > KEDGE_TENSORS_MAX) {
        return bad(d, "tensors",
                   "a list of 1 to 1024 objects {\"name\": \"fc.weight\", \"shape\": [10, 64]}");
    }
    kedge_layout_init(&layout, KEDGE_DTYPE_F32);
    int err = KEDGE_OK;
    for (size_t i = 0; i < n && !err; i++) {
        err = read_tensor(json_array_get(list, i), &layout, e, d);
    }
    kedge_layout_deinit(&layout);
    return err;
}

/* Settings are the trainer's own. Only their length and characters are looked at here. */
static int read_settings(const json_t *v, struct kedge_external *e, struct kedge_diag *d)
{
    if (!v) {
        memcpy(e->settings, "{}", sizeof "{}");
        return KEDGE_OK;
    }
    char *text = json_is_object(v) ? json_dumps(v, JSON_COMPACT) : NULL;
    size_t len = text ? strlen(text) : 0;
    bool fits = text && len < sizeof e->settings && kedge_text_is_plain(kedge_view_of(text, len));
    if (fits) {
        memcpy(e->settings, text, len + 1);
    }
    free(text);
    return fits ? KEDGE_OK
                : bad(d, "settings",
                      "an object of at most 4095 bytes, written compactly, of characters that are seen");
}

int kedgei_spec_read_external(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    static const char *const keys[] = {"trainer", "tensors", "settings"};
    const json_t *name = json_object_get(v, "trainer");
    const char *other;
    struct kedge_external *e = &s->external;
    if (!json_is_object(v)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"external\": expected an object with \"trainer\" and \"tensors\"");
    }
    if (!only_keys(v, keys, 3, &other)) {
        (void)kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"external\": unknown key \"%.60s\"", other);
        kedge_nearest_hint(d, other, keys, 3, "its keys are trainer, tensors and settings");
        return KEDGE_E_FORMAT;
    }
    if (!json_is_string(name)
        || kedge_id_from(kedge_view_of(json_string_value(name), json_string_length(name)), &e->trainer)) {
        return bad(d, "trainer",
                   "the name that each site's owner binds to a command: a-z, 0-9, '.', '_', '-', at most 63 "
                   "characters, a letter or digit first");
    }
    int err = read_tensors(json_object_get(v, "tensors"), e, d);
    return err ? err : read_settings(json_object_get(v, "settings"), e, d);
}

int kedgei_spec_check_external(const struct kedge_job_spec *s, const json_t *root, struct kedge_diag *d)
{
    bool named = json_object_get(root, "external") != NULL;
    if (s->is_external != named) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"external\": expected with \"model\": \"external\", and with no other "
            "model");
    }
    if (!s->is_external) {
        return KEDGE_OK;
    }
    if (!s->has_initial_model) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"initial_model\" is missing: nobody but your trainer can make the first "
            "weights of an external model; give the file with --initial-model");
    }
    if (s->precision != KEDGE_PRECISION_F32) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"precision\": an external model's is its trainer's own affair");
    }
    if (kedge_job_spec_has_model_per_group_at_start(s)) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"strategy\": \"%s\" begins with random models, which nobody can make of "
            "an external one",
            s->strategy->name);
    }
    if (kedge_grouping_row(s->strategy->grouping)->by_last_layer) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"strategy\": \"%s\" groups by the last layer, and an external model has "
            "tensors, no layers; take \"flexcfl\"",
            s->strategy->name);
    }
    return KEDGE_OK;
}

/* The packed form was made by pack() of this process and is not checked again. */
static int external_layout(const struct kedge_external *e, struct kedge_layout *ret, struct kedge_diag *d)
{
    struct kedge_layout layout;
    int err = KEDGE_OK;
    kedge_layout_init(&layout, KEDGE_DTYPE_F32);
    for (uint32_t at = 0; at < e->tensors_len && !err;) {
        char name[KEDGE_TENSOR_NAME_MAX + 1];
        uint64_t dims[KEDGE_TENSOR_DIMS_MAX];
        uint32_t len = e->tensors[at++];
        memcpy(name, e->tensors + at, len);
        name[len] = '\0';
        at += len;
        uint32_t dims_count = e->tensors[at++];
        for (uint32_t i = 0; i < dims_count; i++, at += 4) {
            uint32_t dim;
            memcpy(&dim, e->tensors + at, 4);
            dims[i] = dim;
        }
        err = kedge_layout_add(&layout, name, dims, dims_count, d);
    }
    if (err) {
        kedge_layout_deinit(&layout);
        return err;
    }
    *ret = layout;
    return KEDGE_OK;
}

int kedge_job_spec_whole_layout(const struct kedge_job_spec *spec, struct kedge_layout *ret,
                                struct kedge_diag *reterr)
{
    return spec->is_external ? external_layout(&spec->external, ret, reterr)
                             : kedge_model_layout(&spec->model, ret, reterr);
}
