/* policy.json: "trainers", commands of the owner's own with their limits. Pure.
 *
 * Limits are read by a table of keys, offsets and ranges. Words and variables are checked for zero bytes,
 * because a process's arguments and environment end at one: a JSON string may hold "\u0000", and what the
 * owner sees in the file and what the process gets would differ. */
#include "client/daemon/trainer/trainers.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"

struct number_row {
    const char *key;
    size_t offset;
    json_int_t least, most, fallback;
};

#define NUMBER(key, least, most, fallback)                                     \
    {                                                                          \
#key, offsetof(struct kedge_trainer_terms, key), least, most, fallback \
    }

static const struct number_row numbers[] = {
    NUMBER(seconds_max, 0, 604800, 0),       NUMBER(memory_max, 0, INT64_MAX, 0),
    NUMBER(cpu_seconds_max, 0, 31536000, 0), NUMBER(file_bytes_max, 0, INT64_MAX, (json_int_t)4 << 30),
    NUMBER(files_max, 16, 1048576, 256),     NUMBER(processes_max, 0, 1048576, 128),
};

enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

struct place {
    const char *where;
    const char *name; /* of the trainer */
    struct kedge_diag *d;
};

static int bad(const struct place *p, const char *key, const char *expected)
{
    return kedge_diag_set(p->d, KEDGE_E_FORMAT, "%s: \"trainers\": \"%.63s\": \"%.60s\": expected %s",
                          p->where, p->name, key, expected);
}

static int no_memory(const struct place *p)
{
    return kedge_diag_set(p->d, KEDGE_E_NOMEM, "%s: %s", p->where, kedge_strerror(KEDGE_E_NOMEM));
}

/* A word that a process can be given. */
static bool is_word(const json_t *v)
{
    return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v);
}

static int read_command(const json_t *v, const struct place *p, struct kedge_trainer_terms *t)
{
    size_t n = json_array_size(v);
    if (!json_is_array(v) || n == 0 || n > KEDGE_TRAINER_ARGS_MAX) {
        return bad(p, "command",
                   "a command as a list of 1 to 32 words, like [\"python3\", \"/opt/net/client.py\"]");
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *word = json_array_get(v, i);
        if (!is_word(word) || (i == 0 && json_string_length(word) == 0)) {
            return bad(p, "command", "a list of words");
        }
        t->command[i] = kedge_mem_strdup(json_string_value(word));
        if (!t->command[i]) {
            return no_memory(p);
        }
    }
    return KEDGE_OK;
}

static bool is_variable(const char *name)
{
    bool fine = name[0] != '\0' && !(name[0] >= '0' && name[0] <= '9');
    for (size_t i = 0; name[i] && fine; i++) {
        char c = name[i];
        fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    }
    return fine;
}

static int read_environment(const json_t *v, const struct place *p, struct kedge_trainer_terms *t)
{
    if (v && (!json_is_object(v) || json_object_size(v) > KEDGE_TRAINER_ENV_MAX)) {
        return bad(p, "environment", "an object of at most 32 variables, like {\"OMP_NUM_THREADS\": \"1\"}");
    }
    void *it = json_object_iter((json_t *)(uintptr_t)v);
    for (size_t i = 0; it; i++, it = json_object_iter_next((json_t *)(uintptr_t)v, it)) {
        const char *name = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        if (!is_variable(name) || !is_word(value)) {
            return bad(p, "environment", "names of letters, digits and '_', with strings");
        }
        size_t len = strlen(name) + json_string_length(value) + 2;
        t->environment[i] = kedge_mem_new(len, 1);
        if (!t->environment[i]) {
            return no_memory(p);
        }
        snprintf(t->environment[i], len, "%s=%s", name, json_string_value(value));
    }
    return KEDGE_OK;
}

static int read_bool(const json_t *o, const char *key, const struct place *p, bool *ret)
{
    const json_t *v = json_object_get(o, key);
    *ret = json_is_true(v);
    return v && !json_is_boolean(v) ? bad(p, key, "true or false") : KEDGE_OK;
}

static int read_numbers(const json_t *o, const struct place *p, struct kedge_trainer_terms *t)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        const struct number_row *row = &numbers[i];
        const json_t *v = json_object_get(o, row->key);
        json_int_t n = v ? json_integer_value(v) : row->fallback;
        if ((v && !json_is_integer(v)) || n < row->least || n > row->most) {
            char expected[96];
            snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)row->least,
                     (long long)row->most);
            return bad(p, row->key, expected);
        }
        *(uint64_t *)(void *)((char *)t + row->offset) = (uint64_t)n;
    }
    return KEDGE_OK;
}

static int check_keys(const json_t *o, const struct place *p)
{
    static const char *const words[] = {"command", "environment", "gpu", "network", "sandbox_required"};
    void *it = json_object_iter((json_t *)(uintptr_t)o);
    for (; it; it = json_object_iter_next((json_t *)(uintptr_t)o, it)) {
        const char *key = json_object_iter_key(it);
        bool known = false;
        for (size_t i = 0; i < sizeof words / sizeof words[0] && !known; i++) {
            known = strcmp(words[i], key) == 0;
        }
        for (size_t i = 0; i < NUMBERS && !known; i++) {
            known = strcmp(numbers[i].key, key) == 0;
        }
        if (!known) {
            return bad(p, key, "no such key");
        }
    }
    return KEDGE_OK;
}

static int read_one(const json_t *o, const struct place *p, struct kedge_trainer_terms *t)
{
    if (!json_is_object(o) || kedge_id_from(kedge_view_str(p->name), &t->name) != KEDGE_OK) {
        return kedge_diag_set(
            p->d, KEDGE_E_FORMAT,
            "%s: \"trainers\": \"%.63s\": expected a name of a-z, 0-9, '.', '_', '-' with an object "
            "like {\"command\": [\"python3\", \"/opt/net/client.py\"]}",
            p->where, p->name);
    }
    KEDGE_TRY(check_keys(o, p));
    KEDGE_TRY(read_command(json_object_get(o, "command"), p, t));
    KEDGE_TRY(read_environment(json_object_get(o, "environment"), p, t));
    KEDGE_TRY(read_numbers(o, p, t));
    KEDGE_TRY(read_bool(o, "network", p, &t->network));
    int err = read_bool(o, "gpu", p, &t->gpu);
    return err ? err : read_bool(o, "sandbox_required", p, &t->sandbox_required);
}

int kedge_trainers_parse(const json_t *v, const char *where, struct kedge_trainers *ret,
                         struct kedge_diag *reterr)
{
    struct kedge_trainers t = {.count = 0};
    struct place p = {.where = where, .name = "", .d = reterr};
    size_t n = json_object_size(v);
    int err = KEDGE_OK;
    if (v && (!json_is_object(v) || n > KEDGE_TRAINERS_MAX)) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "%s: \"trainers\": expected an object of at most 16: name to command and limits", where);
    }
    if (n == 0) {
        *ret = t;
        return KEDGE_OK;
    }
    t.list = kedge_mem_new(n, sizeof *t.list);
    if (!t.list) {
        return no_memory(&p);
    }
    void *it = json_object_iter((json_t *)(uintptr_t)v);
    for (; it && !err && t.count < n; it = json_object_iter_next((json_t *)(uintptr_t)v, it)) {
        p.name = json_object_iter_key(it);
        err = read_one(json_object_iter_value(it), &p, &t.list[t.count++]);
    }
    if (err) {
        kedge_trainers_deinit(&t);
        return err;
    }
    *ret = t;
    return KEDGE_OK;
}

void kedge_trainers_deinit(struct kedge_trainers *t)
{
    for (uint32_t i = 0; t->list && i < t->count; i++) {
        for (size_t k = 0; k < KEDGE_TRAINER_ARGS_MAX; k++) {
            kedge_mem_free(t->list[i].command[k]);
        }
        for (size_t k = 0; k < KEDGE_TRAINER_ENV_MAX; k++) {
            kedge_mem_free(t->list[i].environment[k]);
        }
    }
    kedge_mem_free(t->list);
    *t = (struct kedge_trainers){.count = 0};
}

const struct kedge_trainer_terms *kedge_trainers_find(const struct kedge_trainers *t,
                                                      const struct kedge_id *name)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (kedge_id_eq(&t->list[i].name, name)) {
            return &t->list[i];
        }
    }
    return NULL;
}
