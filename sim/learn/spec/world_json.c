/* "world" as JSON, read and printed by the table. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "sim/learn/spec/world.h"

enum { SAID_MAX = 44, EXPECTED_MAX = 200, KEYS_MAX = 64 };

/* ---- messages ---- */

static const char *where(const char *section)
{
    return strcmp(section, "world") == 0 ? "" : "world.";
}

static int refuse(const struct kedgei_world_key *row, const json_t *v, const char *expected,
                  struct kedge_diag *d)
{
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
    int err = kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\" in \"%s%s\": expected %s, found %.*s", row->key,
                             where(row->section), row->section, expected, SAID_MAX, text ? text : "?");
    free(text);
    return err;
}

static int refuse_words(const struct kedgei_world_key *row, const json_t *v, struct kedge_diag *d)
{
    char text[EXPECTED_MAX] = "one of ";
    for (size_t i = 0; row->words[i]; i++) {
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%s%s", i ? ", " : "", row->words[i]);
    }
    return refuse(row, v, text, d);
}

static int refuse_key(const struct kedgei_world_key *rows, size_t count, const char *section, const char *key,
                      struct kedge_diag *d)
{
    const char *names[KEYS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < count && n < KEYS_MAX; i++) {
        bool is_in = strcmp(rows[i].section, section) == 0;
        bool is_object = strcmp(section, "world") == 0 && strcmp(rows[i].section, "world") != 0
                         && (i == 0 || strcmp(rows[i].section, rows[i - 1].section) != 0);
        if (is_in || is_object) {
            names[n++] = is_in ? rows[i].key : rows[i].section;
        }
    }
    (void)kedge_diag_set(d, KEDGE_E_FORMAT, "unknown key \"%.60s\" in \"%s%s\"", key, where(section),
                         section);
    kedge_nearest_hint(d, key, names, n, "docs/cli.md has the keys");
    return KEDGE_E_FORMAT;
}

/* ---- values ---- */

static int read_rounds(const struct kedgei_world_key *row, const json_t *v, struct kedge_learn_rounds *ret,
                       struct kedge_diag *d)
{
    struct kedge_learn_rounds rounds = {0};
    char expected[EXPECTED_MAX];
    (void)snprintf(expected, sizeof expected, "a list of at most %d rounds from 1, in ascending order",
                   KEDGE_LEARN_STEPS_MAX);
    if (!json_is_array(v) || json_array_size(v) > KEDGE_LEARN_STEPS_MAX) {
        return refuse(row, v, expected, d);
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *one = json_array_get(v, i);
        const json_int_t n = json_integer_value(one), before = i ? (json_int_t)rounds.at[i - 1] : 0;
        if (!json_is_integer(one) || n <= before || n > KEDGE_ROUNDS_MAX) {
            return refuse(row, one, expected, d);
        }
        rounds.at[rounds.count++] = (uint32_t)n;
    }
    *ret = rounds;
    return KEDGE_OK;
}

static int read_text(const struct kedgei_world_key *row, const json_t *v, char *ret, struct kedge_diag *d)
{
    const char *text = json_string_value(v);
    bool is_fine = text && json_string_length(v) <= (size_t)row->most;
    for (const char *at = text; is_fine && *at; at++) {
        is_fine = (unsigned char)*at >= 0x20 && *at != 0x7f;
    }
    if (!is_fine) {
        return refuse(row, v, "text that is not too long and without control characters", d);
    }
    memcpy(ret, text, strlen(text) + 1);
    return KEDGE_OK;
}

static int read_number(const struct kedgei_world_key *row, const json_t *v, void *to, struct kedge_diag *d)
{
    char expected[EXPECTED_MAX];
    bool is_real = row->kind == KEDGEI_WORLD_REAL;
    double x = 0;
    bool is_it = is_real ? kedgei_json_real(v, &x) == KEDGE_OK : json_is_integer(v);
    x = is_real ? x : (double)json_integer_value(v);
    if (!is_it || !(x >= row->least && x <= row->most)) {
        (void)snprintf(expected, sizeof expected, "a %snumber from %.9g to %.9g", is_real ? "" : "whole ",
                       row->least, row->most);
        return refuse(row, v, expected, d);
    }
    if (is_real) {
        *(double *)to = x;
    } else {
        *(uint32_t *)to = (uint32_t)x;
    }
    return KEDGE_OK;
}

static int read_value(const struct kedgei_world_key *row, const json_t *v, void *base, struct kedge_diag *d)
{
    void *to = (char *)base + row->offset;
    switch (row->kind) {
    case KEDGEI_WORLD_WHOLE:
    case KEDGEI_WORLD_REAL:
        return read_number(row, v, to, d);
    case KEDGEI_WORLD_YES:
        if (!json_is_boolean(v)) {
            return refuse(row, v, "true or false", d);
        }
        *(bool *)to = json_is_true(v);
        return KEDGE_OK;
    case KEDGEI_WORLD_WORD:
        for (uint32_t i = 0; row->words[i]; i++) {
            if (json_is_string(v) && strcmp(json_string_value(v), row->words[i]) == 0) {
                *(uint32_t *)to = i;
                return KEDGE_OK;
            }
        }
        return refuse_words(row, v, d);
    case KEDGEI_WORLD_TEXT:
        return read_text(row, v, to, d);
    case KEDGEI_WORLD_ROUNDS:
        return read_rounds(row, v, to, d);
    case KEDGEI_WORLD_OWN:
        break;
    }
    return KEDGE_OK;
}

static void take_fallback(const struct kedgei_world_key *row, void *base)
{
    void *to = (char *)base + row->offset;
    if (row->kind == KEDGEI_WORLD_REAL) {
        *(double *)to = row->fallback;
    } else if (row->kind == KEDGEI_WORLD_WHOLE || row->kind == KEDGEI_WORLD_WORD) {
        *(uint32_t *)to = (uint32_t)row->fallback;
    } else if (row->kind == KEDGEI_WORLD_YES) {
        *(bool *)to = row->fallback > 0;
    } else if (row->kind == KEDGEI_WORLD_TEXT) {
        *(char *)to = '\0';
    } else if (row->kind == KEDGEI_WORLD_ROUNDS) {
        *(struct kedge_learn_rounds *)to = (struct kedge_learn_rounds){0};
    }
}

/* ---- the object ---- */

static const json_t *value_of(const json_t *world, const struct kedgei_world_key *row)
{
    bool is_outer = strcmp(row->section, "world") == 0;
    return json_object_get(is_outer ? world : json_object_get(world, row->section), row->key);
}

static const struct kedgei_world_key *find_key(const struct kedgei_world_key *rows, size_t count,
                                               const char *section, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].section, section) == 0 && (!key || strcmp(rows[i].key, key) == 0)) {
            return &rows[i];
        }
    }
    return NULL;
}

/* All keys of an object are rows of its section; in "world" a section's name, too. */
static int check_keys(const json_t *o, const struct kedgei_world_key *rows, size_t count, const char *section,
                      struct kedge_diag *d)
{
    bool is_outer = strcmp(section, "world") == 0;
    const char *key;
    json_t *v;
    if (!json_is_object(o)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s%s\": expected an object", where(section), section);
    }
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
    {
        bool is_object = is_outer && strcmp(key, "world") != 0 && find_key(rows, count, key, NULL);
        if (!is_object && !find_key(rows, count, section, key)) {
            return refuse_key(rows, count, section, key, d);
        }
    }
    return KEDGE_OK;
}

static int check_world(const json_t *world, struct kedge_diag *d)
{
    static const char *const sections[] = {"data", "shift", "attack"};
    int err = check_keys(world, kedgei_world_keys, kedgei_world_key_count, "world", d);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0] && !err; i++) {
        const json_t *o = json_object_get(world, sections[i]);
        err = o ? check_keys(o, kedgei_world_keys, kedgei_world_key_count, sections[i], d) : KEDGE_OK;
    }
    return err;
}

static int read_devices(const json_t *v, struct kedge_learn_spec *s, struct kedge_diag *d)
{
    const size_t n = json_array_size(v);
    if (v && (!json_is_array(v) || n > KEDGE_LEARN_DEVICES_MAX || n == 0)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"devices\": expected a list of 1 to %d device classes",
                              KEDGE_LEARN_DEVICES_MAX);
    }
    s->device_count = v ? (uint32_t)n : 1;
    for (uint32_t i = 0; i < s->device_count; i++) {
        const json_t *one = json_array_get(v, i);
        int err = v ? check_keys(one, kedgei_device_keys, kedgei_device_key_count, "devices", d) : KEDGE_OK;
        for (size_t k = 0; k < kedgei_device_key_count && !err; k++) {
            const json_t *number = json_object_get(one, kedgei_device_keys[k].key);
            take_fallback(&kedgei_device_keys[k], &s->devices[i]);
            err = number ? read_value(&kedgei_device_keys[k], number, &s->devices[i], d) : KEDGE_OK;
        }
        if (err) {
            return err;
        }
    }
    if (!v) { /* what a phone takes, for the columns of energy */
        s->devices[0].joules_per_sample = 0.01;
        s->devices[0].joules_per_s = 1;
    }
    return KEDGE_OK;
}

int kedgei_world_read(const json_t *world, const json_t *own, struct kedge_learn_spec *spec,
                      struct kedge_diag *d)
{
    KEDGE_TRY(world ? check_world(world, d) : KEDGE_OK);
    for (size_t i = 0; i < kedgei_world_key_count; i++) {
        const json_t *v = value_of(world, &kedgei_world_keys[i]);
        take_fallback(&kedgei_world_keys[i], spec);
        KEDGE_TRY(v ? read_value(&kedgei_world_keys[i], v, spec, d) : KEDGE_OK);
    }
    KEDGE_TRY(read_devices(json_object_get(world, "devices"), spec, d));
    if (!value_of(world, find_key(kedgei_world_keys, kedgei_world_key_count, "data", "images"))) {
        memcpy(spec->images, "mnist", sizeof "mnist"); /* its name serves on every machine */
    }
    for (size_t i = 0; i < kedgei_world_key_count; i++) {
        const struct kedgei_world_key *row = &kedgei_world_keys[i];
        if (!kedgei_world_is_read(spec, row)) {
            const json_t *v = value_of(own, row);
            if (v) {
                return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\" in \"%s%s\": it changes nothing: %s",
                                      row->key, where(row->section), row->section, row->why);
            }
            take_fallback(row, spec);
        }
    }
    spec->sites = kedge_learn_spec_is_natural(spec) ? 0 : spec->sites;
    return KEDGE_OK;
}

/* ---- printing ---- */

static void put_value(const struct kedgei_world_key *row, const void *base, struct kedge_buf *out)
{
    const void *from = (const char *)base + row->offset;
    const struct kedge_learn_rounds *rounds = from;
    char text[KEDGE_REAL_MAX];
    switch (row->kind) {
    case KEDGEI_WORLD_WHOLE:
        kedge_buf_printf(out, "%u", *(const uint32_t *)from);
        return;
    case KEDGEI_WORLD_REAL:
        kedge_real_encode(*(const double *)from, text);
        kedge_buf_put_str(out, text);
        return;
    case KEDGEI_WORLD_YES:
        kedge_buf_put_str(out, *(const bool *)from ? "true" : "false");
        return;
    case KEDGEI_WORLD_WORD:
        kedge_buf_printf(out, "\"%s\"", row->words[*(const uint32_t *)from]);
        return;
    case KEDGEI_WORLD_TEXT:
        kedgei_json_put_string(out, from);
        return;
    case KEDGEI_WORLD_ROUNDS:
        kedge_buf_put_str(out, "[");
        for (uint32_t i = 0; i < rounds->count; i++) {
            kedge_buf_printf(out, "%s%u", i ? ", " : "", rounds->at[i]);
        }
        kedge_buf_put_str(out, "]");
        return;
    case KEDGEI_WORLD_OWN:
        return;
    }
}

/* The members of a section, without braces. */
static void put_section(const struct kedgei_world_key *rows, size_t count, const char *section,
                        const struct kedge_learn_spec *spec, const void *base, struct kedge_buf *out)
{
    const char *between = "";
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].section, section) == 0 && rows[i].kind != KEDGEI_WORLD_OWN
            && kedgei_world_is_read(spec, &rows[i])) {
            kedge_buf_printf(out, "%s\"%s\": ", between, rows[i].key);
            put_value(&rows[i], base, out);
            between = ", ";
        }
    }
}

void kedgei_world_put(const struct kedge_learn_spec *spec, struct kedge_buf *out)
{
    static const char *const objects[] = {"data", "shift", "attack"};
    kedge_buf_put_str(out, "{");
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        kedge_buf_printf(out, "\"%s\": {", objects[i]);
        put_section(kedgei_world_keys, kedgei_world_key_count, objects[i], spec, spec, out);
        kedge_buf_put_str(out, "},\n    ");
    }
    put_section(kedgei_world_keys, kedgei_world_key_count, "world", spec, spec, out);
    kedge_buf_put_str(out, ",\n    \"devices\": [");
    for (uint32_t i = 0; i < spec->device_count; i++) {
        kedge_buf_put_str(out, i ? ", {" : "{");
        put_section(kedgei_device_keys, kedgei_device_key_count, "devices", spec, &spec->devices[i], out);
        kedge_buf_put_str(out, "}");
    }
    kedge_buf_put_str(out, "]}");
}
