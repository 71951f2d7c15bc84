/* kedge job clone: the spec of a job, with some keys changed, as a new spec or a new job.
 *
 * The text that was submitted is changed and not what it was read to: a key that the spec left to its default
 * stays left to it. What comes of it is read as submit would read it, so a key that does not exist or a value
 * out of range is told here, by its name. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/job/job_ask.h"
#include "cli/job/job_send.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum { KEY_MAX = 128, SETS_MAX = 64, FLAGS = JSON_INDENT(2) | JSON_REAL_PRECISION(15) };

/* What the command line asks for; taken out of it before the job's name is looked for. */
struct changes {
    const char *sets[SETS_MAX];
    size_t count;
    const char *name, *token; /* NULL: none */
    bool submits;
};

static bool take_changes(struct kedge_cli *c, struct changes *ret)
{
    *ret = (struct changes){.count = 0};
    for (const char *pair = kedge_cli_option(c, "set", NULL); pair; pair = kedge_cli_option(c, "set", NULL)) {
        if (ret->count == SETS_MAX) {
            (void)kedge_cli_usage(c, "--set: at most %d of them", SETS_MAX);
            return false;
        }
        ret->sets[ret->count++] = pair;
    }
    ret->name = kedge_cli_option(c, "name", NULL);
    ret->token = kedge_cli_option(c, "submit-token", NULL);
    ret->submits = kedge_cli_flag(c, "submit");
    return true;
}

/* The object that holds the last part of a key such as "model.inputs", and that part; made where it is
 * absent. */
static json_t *holder_of(json_t *spec, char *key, const char **ret_last)
{
    json_t *at = spec;
    for (char *dot = strchr(key, '.'); dot && json_is_object(at); dot = strchr(key, '.')) {
        *dot = '\0';
        json_t *inner = json_object_get(at, key);
        if (!inner) {
            json_object_set_new(at, key, json_object());
            inner = json_object_get(at, key);
        }
        at = inner;
        key = dot + 1;
    }
    *ret_last = key;
    return json_is_object(at) && key[0] ? at : NULL;
}

/* A value is JSON where it can be read as such, else a text: --set rounds=20, --set rule=median. null takes
 * the key out. */
static int set_key(json_t *spec, const char *pair, struct kedge_diag *d)
{
    char key[KEY_MAX];
    const char *equals = strchr(pair, '='), *last;
    const size_t len = equals ? (size_t)(equals - pair) : 0;
    if (len == 0 || len >= sizeof key) {
        return kedge_diag_set(d, KEDGE_E_USAGE, "--set %s: expected KEY=VALUE", kedge_cli_word(pair).s);
    }
    memcpy(key, pair, len);
    key[len] = '\0';
    json_t *holder = holder_of(spec, key, &last);
    if (!holder) {
        return kedge_diag_set(d, KEDGE_E_USAGE,
                              "--set %s: what stands before the dot is no object of the spec",
                              kedge_cli_word(pair).s);
    }
    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (json_is_null(value)) {
        json_object_del(holder, last);
        return KEDGE_OK;
    }
    value = value ? value : json_string(equals + 1);
    return json_object_set_new(holder, last, value)
               ? kedge_diag_set(d, KEDGE_E_USAGE, "--set %s: expected UTF-8 text", kedge_cli_word(pair).s)
               : KEDGE_OK;
}

/* "first" becomes "first-2", that "first-3". */
static int next_name(const char *job, struct kedge_id *ret, struct kedge_diag *d)
{
    char name[KEDGE_ID_MAX + 16];
    uint64_t number = 1;
    const char *dash = strrchr(job, '-');
    size_t len = strlen(job);
    if (dash && kedge_decimal_decode(kedge_view_str(dash + 1), UINT32_MAX, &number) == KEDGE_OK) {
        len = (size_t)(dash - job);
    }
    snprintf(name, sizeof name, "%.*s-%llu", (int)len, job, (unsigned long long)number + 1);
    return kedge_id_from(kedge_view_str(name), ret) == KEDGE_OK
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_USAGE, "\"%s\" is no name for a job; choose one: --name NAME",
                                name);
}

/* Changes the keys, and gives the new spec its name. */
static int change(const struct changes *w, const char *job, json_t *spec, struct kedge_diag *d)
{
    struct kedge_id id;
    const char *name = w->name;
    for (size_t i = 0; i < w->count; i++) {
        KEDGE_TRY(set_key(spec, w->sets[i], d));
    }
    if (name && kedge_id_from(kedge_view_str(name), &id) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_USAGE, "--name %s: expected a name of a-z, 0-9, '.', '_', '-'",
                              kedge_cli_word(name).s);
    }
    if (!name && strcmp(kedge_cli_text(spec, "name"), job) == 0) { /* --set name=… is fine, too */
        KEDGE_TRY(next_name(job, &id, d));
        name = id.s;
    }
    return name && json_object_set_new(spec, "name", json_string(name)) ? KEDGE_E_NOMEM : KEDGE_OK;
}

/* The new spec as text, read as submit reads one. */
static int make(const struct changes *w, const char *job, struct kedge_view old,
                struct kedge_job_spec *ret_spec, struct kedge_buf *ret, struct kedge_diag *d)
{
    json_auto_t *spec = NULL;
    KEDGE_TRY(kedgei_json_load(old, KEDGE_SPEC_MAX, "job spec", &spec, d));
    KEDGE_TRY(change(w, job, spec, d));
    KEDGE_TRY(kedge_cli_dump(spec, FLAGS, ret));
    kedge_buf_put_str(ret, "\n");
    KEDGE_TRY(ret->err);
    int err = kedge_job_spec_parse(kedge_buf_view(ret), ret_spec, d);
    err = err ? err : kedge_job_spec_check_read(kedge_buf_view(ret), ret_spec, d);
    return err == KEDGE_E_NOT_FOUND ? KEDGE_E_FORMAT : err; /* a key: no file is missing */
}

static int clone(struct kedge_cli *c, const struct changes *w, const char *job, struct kedge_job_spec *spec)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf old KEDGE_CLEANUP(kedge_buf_deinit), text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&old, KEDGE_SPEC_MAX);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    KEDGE_CLI_TRY(c, kedge_cli_job_spec_text(c, job, &old, &d), &d);
    int err = make(w, job, kedge_buf_view(&old), spec, &text, &d);
    if (err) { /* a spec that came out wrong is wrong usage */
        return kedge_cli_fail_submit(c, err, &d);
    }
    if (w->submits) {
        return kedge_cli_job_send(c, json_stringn((const char *)text.ptr, text.len), spec, w->token, NULL);
    }
    if (!c->json) {
        fwrite(text.ptr, 1, text.len, stdout);
        return 0;
    }
    return kedge_cli_ok(c, json_loadb((const char *)text.ptr, text.len, 0, NULL));
}

int kedge_cmd_job_clone(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct changes w;
    struct kedge_id job;
    if (!take_changes(c, &w)) {
        return 2;
    }
    const char *name = kedge_cli_argument(c, 0);
    if (!name || kedge_id_from(kedge_view_str(name), &job) != KEDGE_OK) {
        return kedge_cli_usage(c, "JOB: expected a job's name of a-z, 0-9, '.', '_', '-'");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    if (!spec) {
        return kedge_cli_fail(c, kedge_diag_set(&d, KEDGE_E_NOMEM, "out of memory"), &d);
    }
    const int code = clone(c, &w, job.s, spec);
    kedge_mem_free(spec);
    return code;
}
