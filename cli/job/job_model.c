/* kedge job model: a job's models and its spec, each checked against its digest, and the digests against the
 * main chain (released.h). Only a model that is still in use has no release; from elsewhere it is taken when
 * that is asked for. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fetch.h"
#include "cli/job/released.h"
#include "cli/job/whole.h"
#include "cli/local.h"
#include "common/base/limits.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "common/tensor/npz.h"
#include "common/tensor/safetensors.h"
#include "crypto/hash.h"

enum { POLL_MS = 500, WAIT_MAX_S = 7 * 86400, TRIES = 20 };
#define NPZ_MAX ((size_t)UINT32_MAX) /* no Zip64 */

struct take {
    struct kedge_id job;
    const char *dir;
    bool npz, evidence, unreleased;
    uint64_t group; /* UINT64_MAX: all */
    struct kedge_hash spec;
    struct kedge_cli_chain chain;
    char classes[KEDGE_CLASS_NAMES_ROOM]; /* that the job learnt */
};

/* Refuses what is no model: updates are of integers, and an array of them would look like weights to who
 * loads it. */
static int put_npz(const struct kedge_layout *layout, const float *values, const char *path,
                   struct kedge_diag *d)
{
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&out, NPZ_MAX);
    if (layout->dtype != KEDGE_DTYPE_F32) {
        return kedge_diag_set(d, KEDGE_E_SHAPE, "not a model: its values are %s",
                              kedge_dtype_name(layout->dtype));
    }
    int err = kedge_npz_write_model(layout, values, &out);
    return err ? kedge_diag_set(d, err, "%s: cannot be made: %s", path, kedge_strerror(err))
               : kedge_file_write(path, kedge_buf_view(&out), 0600, d);
}

/* The same model as one NumPy array a tensor. */
static int write_npz(const char *model, const char *path, struct kedge_diag *d)
{
    struct kedge_map map;
    struct kedge_layout layout;
    uint64_t start;
    KEDGE_TRY(kedge_map_open(model, &map, d));
    int err = kedge_safetensors_read(kedge_view_of(map.ptr, map.len), map.len, KEDGE_SAFETENSORS_CANONICAL,
                                     &layout, &start, d);
    if (!err) { /* the map begins at a page, canonical data at a multiple of 8 */
        err = put_npz(&layout, (const float *)(const void *)(map.ptr + start), path, d);
        kedge_layout_deinit(&layout);
    }
    kedge_map_close(&map);
    return err;
}

/* DIR/JOB-gG.ENDING */
static int name_file(const struct take *t, const json_t *model, const char *ending, char out[KEDGE_PATH_MAX],
                     struct kedge_diag *d)
{
    char name[KEDGE_ID_MAX + 48];
    snprintf(name, sizeof name, "%s-g%lld.%s", t->job.s, (long long)kedge_cli_int(model, "group"), ending);
    int err = kedge_path_join(out, t->dir, name);
    return err ? kedge_diag_set(d, err, "--out %s: path too long", t->dir) : KEDGE_OK;
}

/* The job's spec beside its model: what kedge predict and the programs of others need to use it. */
static int take_spec(struct kedge_cli *c, const struct take *t, json_t *model, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    uint64_t size;
    KEDGE_TRY(name_file(t, model, "json", path, d));
    KEDGE_TRY(kedge_cli_fetch(c, t->job.s, &t->spec, path, &size, d));
    kedge_cli_say(c, "%s  the job's spec\n", path);
    json_object_set_new(model, "spec_file", json_string(path));
    return KEDGE_OK;
}

/* Of a job over a frozen base also the whole model, which people can use; "" without. */
static int take_whole(struct kedge_cli *c, const struct take *t, json_t *model, char ret[KEDGE_PATH_MAX],
                      struct kedge_diag *d)
{
    char stem[KEDGE_PATH_MAX];
    bool has = false;
    KEDGE_TRY(name_file(t, model, "safetensors", stem, d));
    const size_t len = strlen(stem) - sizeof ".safetensors" + 1;
    int n = snprintf(stem + len, sizeof stem - len, "-whole");
    KEDGE_TRY(n > 0 && (size_t)n < sizeof stem - len ? KEDGE_OK
                                                     : kedge_diag_set(d, KEDGE_E_TOO_LONG, "path too long"));
    KEDGE_TRY(kedge_cli_take_whole(c, t->job.s, kedge_cli_text(model, "spec_file"),
                                   kedge_cli_text(model, "file"), stem, &has, d));
    n = snprintf(ret, KEDGE_PATH_MAX, "%s%s", has ? stem : "", has ? ".safetensors" : "");
    if (has) {
        json_object_set_new(model, "whole", json_string(ret));
    }
    return n < KEDGE_PATH_MAX ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_TOO_LONG, "path too long");
}

static bool is_wanted(const struct take *t, const json_t *model)
{
    return t->group == UINT64_MAX || kedge_cli_int(model, "group") == (int64_t)t->group;
}

static int digest_of(const json_t *o, const char *key, const char *what, struct kedge_hash *ret,
                     struct kedge_diag *d)
{
    return kedge_hash_from_hex(kedge_view_str(kedge_cli_text(o, key)), ret) == KEDGE_OK
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells no digest of %s", what);
}

/* A model in use is not released: nothing but the coordinator's word says that it is the job's. It is taken
 * where the caller is beside the coordinator anyway, or has asked for it (--unreleased). */
static int check_model(const struct take *t, json_t *model, struct kedge_diag *d)
{
    struct kedge_hash digest;
    uint64_t entry = 0;
    int err = digest_of(model, "digest", "the model", &digest, d);
    bool released = json_object_get(model, "release") != NULL;
    if (!err && !released && !t->unreleased) {
        err = kedge_diag_set(d, KEDGE_E_STATE,
                             "job %s has not released this model: nothing proves that it is the job's",
                             t->job.s);
        (void)kedge_diag_hint(d, "wait for the end of the job (kedge job wait); --unreleased takes what the "
                                 "coordinator says is in use");
    } else if (!err && released) {
        err = kedge_cli_check_release(&t->chain, model, &t->job, &digest, &entry, d);
    }
    if (!err) {
        json_object_set_new(model, "released", json_boolean(released));
    }
    if (!err && released) {
        json_object_set_new(model, "entry", json_integer((json_int_t)entry));
    }
    return err;
}

/* The names that the job learnt, which its spec has not. */
static int write_classes(const struct kedge_cli *c, const struct take *t, json_t *model, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    json_auto_t *list = json_array();
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    for (const char *name = t->classes; *name != '\0'; name += strlen(name) + 1) {
        json_array_append_new(list, json_string(name));
    }
    if (json_array_size(list) == 0) {
        return KEDGE_OK;
    }
    KEDGE_TRY(name_file(t, model, "classes.json", path, d));
    KEDGE_TRY(kedge_cli_dump(list, JSON_COMPACT, &text));
    kedge_buf_put_str(&text, "\n");
    KEDGE_TRY(text.err);
    KEDGE_TRY(kedge_file_write(path, kedge_buf_view(&text), 0600, d));
    kedge_cli_say(c, "%s  the names of its classes\n", path);
    json_object_set_new(model, "classes_file", json_string(path));
    return KEDGE_OK;
}

/* Of a model that is in use, by the coordinator's word as all of it. */
static int name_classes(const json_t *o, char ret[KEDGE_CLASS_NAMES_ROOM], struct kedge_diag *d)
{
    const json_t *name;
    size_t i;
    json_array_foreach(json_object_get(o, "classes"), i, name)
    {
        char one[KEDGE_CLASS_NAMES_ROOM] = "";
        size_t len = json_string_length(name);
        if (len < 1 || len > KEDGE_CLASS_NAME_MAX || strlen(json_string_value(name)) != len) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells names of classes that are none");
        }
        memcpy(one, json_string_value(name), len);
        if (kedge_class_names_expected(one) || kedge_class_names_unite(ret, one) != KEDGE_OK) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells names of classes that are none");
        }
    }
    return KEDGE_OK;
}

/* Before anything is taken: what the coordinator says of models and spec is what the main chain says. */
static int check_answer(struct take *t, const json_t *o, struct kedge_diag *d)
{
    const json_t *models = json_object_get(o, "models");
    json_t *model;
    size_t i, wanted = 0, released = 0;
    int err = digest_of(o, "spec", "the job's spec", &t->spec, d);
    json_array_foreach(models, i, model)
    {
        if (err || !is_wanted(t, model)) {
            continue;
        }
        err = check_model(t, model, d);
        wanted++;
        released += json_is_true(json_object_get(model, "released"));
    }
    if (!err && wanted == 0) {
        err = kedge_diag_set(d, KEDGE_E_STATE, "job %s has no such model (it has %zu)", t->job.s,
                             json_array_size(models));
    }
    if (err || released == 0) {
        return err ? err : name_classes(o, t->classes, d);
    }
    err = kedge_cli_check_opened(&t->chain, o, &t->job, &t->spec, d);
    return err ? err : kedge_cli_check_named(&t->chain, o, &t->job, t->classes, d);
}

/* The order is that of what may fail: model, names, spec, and what is made of them. Each file has its name
 * only when it is whole; those that were taken stay there when a later one fails, and are right. */
static int take_model(struct kedge_cli *c, const struct take *t, json_t *model, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], npz[KEDGE_PATH_MAX], whole[KEDGE_PATH_MAX];
    const char *hex = kedge_cli_text(model, "digest");
    struct kedge_hash digest;
    uint64_t size;
    KEDGE_TRY(name_file(t, model, "safetensors", path, d));
    KEDGE_TRY(name_file(t, model, "npz", npz, d));
    KEDGE_TRY(digest_of(model, "digest", "the model", &digest, d));
    KEDGE_TRY(kedge_cli_fetch(c, t->job.s, &digest, path, &size, d));
    kedge_cli_say(c, "%s  %llu bytes of model, SHA-256 %.16s…\n", path, (unsigned long long)size, hex);
    if (json_is_true(json_object_get(model, "released"))) {
        kedge_cli_say(c, "  released by entry %lld of %s, under the key that was known before\n",
                      (long long)kedge_cli_int(model, "entry"), t->chain.log.name);
    } else {
        kedge_cli_say(c, "  not released: the job does not end with it, or has not ended\n");
    }
    json_object_set_new(model, "file", json_string(path));
    KEDGE_TRY(write_classes(c, t, model, d));
    KEDGE_TRY(take_spec(c, t, model, d));
    KEDGE_TRY(take_whole(c, t, model, whole, d));
    KEDGE_TRY(t->npz ? write_npz(whole[0] ? whole : path, npz, d) : KEDGE_OK);
    if (t->npz) {
        kedge_cli_say(c, "%s\n", npz);
        json_object_set_new(model, "npz", json_string(npz));
    }
    return KEDGE_OK;
}

/* The release's statement and that it is in the main chain: kedge ledger verify FILE.tlog-proof --entry
 * FILE.json. */
static int write_evidence(const struct kedge_cli *c, const struct take *t, json_t *model,
                          struct kedge_diag *d)
{
    static const struct {
        const char *member, *ending;
    } files[] = {{"release", "release.json"}, {"proof", "release.tlog-proof"}};
    char path[KEDGE_PATH_MAX];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const json_t *text = json_object_get(model, files[i].member);
        if (!text) {
            return kedge_diag_set(d, KEDGE_E_STATE,
                                  "job %s has not released this model: there is no evidence yet", t->job.s);
        }
        KEDGE_TRY(name_file(t, model, files[i].ending, path, d));
        KEDGE_TRY(kedge_file_write(path, kedge_view_of(json_string_value(text), json_string_length(text)),
                                   0600, d));
        kedge_cli_say(c, "%s\n", path);
    }
    return KEDGE_OK;
}

/* Takes all groups' models, or that of one; moves what it took into `taken`. */
static int take_models(struct kedge_cli *c, const struct take *t, const json_t *models, json_t *taken,
                       struct kedge_diag *d)
{
    json_t *model;
    size_t i;
    json_array_foreach(models, i, model)
    {
        if (!is_wanted(t, model)) {
            continue;
        }
        int err = take_model(c, t, model, d);
        bool proven = c->connect && json_is_true(json_object_get(model, "released"));
        err = err || !(t->evidence || proven) ? err : write_evidence(c, t, model, d);
        json_object_del(model, "release");
        json_object_del(model, "proof");
        json_object_del(model, "path"); /* a file of the coordinator's own */
        if (err) {
            return err;
        }
        json_array_append(taken, model);
    }
    return KEDGE_OK;
}

/* Asks until the witnesses have made the release final, or the time is over. */
static int ask_model(struct kedge_cli *c, const char *job, uint64_t wait_s, json_t **ret,
                     struct kedge_diag *d)
{
    uint64_t deadline = kedge_os_now_ns() + wait_s * UINT64_C(1000000000);
    for (;;) {
        int err = kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", "job.model", "job", job), ret, d);
        if (err != KEDGE_E_BUSY || kedge_os_now_ns() >= deadline || kedge_cli_pause(POLL_MS)) {
            return err;
        }
    }
}

static bool has_release(const json_t *models)
{
    const json_t *model;
    size_t i;
    bool found = false;
    json_array_foreach(models, i, model)
    {
        found = found || json_object_get(model, "release");
    }
    return found;
}

/* One answer, and what it names. */
static int take_answer(struct kedge_cli *c, struct take *t, uint64_t wait_s, json_t *taken,
                       const char **ret_state, json_t **ret_answer, struct kedge_diag *d)
{
    int err = ask_model(c, t->job.s, wait_s, ret_answer, d);
    if (err) {
        return err;
    }
    c->told = false; /* from here on the coordinator is judged */
    *ret_state = kedge_cli_text(*ret_answer, "state");
    const json_t *models = json_object_get(*ret_answer, "models");
    if (!c->connect && !t->chain.log.name[0] && has_release(models)) {
        err = kedge_cli_chain_open(c, &t->chain, d);
    }
    if (err) {
        return err;
    }
    err = check_answer(t, *ret_answer, d);
    return err ? err : take_models(c, t, models, taken, d);
}

/* From elsewhere nothing is asked without a key to check the answer; beside the coordinator one is needed for
 * what is released alone. A model in use may be replaced by the next round before it is fetched: then what is
 * in use now is asked for. */
static int take_all(struct kedge_cli *c, struct take *t, uint64_t wait_s, json_t *taken,
                    const char **ret_state, json_t **ret_answer, struct kedge_diag *d)
{
    KEDGE_TRY(c->connect ? kedge_cli_chain_open(c, &t->chain, d) : KEDGE_OK);
    int err = kedge_dir_make(t->dir, 0700, d);
    for (int tries = 0; !err && tries < TRIES; tries++) {
        json_decref(*ret_answer);
        *ret_answer = NULL;
        *ret_state = "";
        json_array_clear(taken);
        err = take_answer(c, t, wait_s, taken, ret_state, ret_answer, d);
        bool moved_on =
            err == KEDGE_E_NOT_FOUND && *ret_answer && !has_release(json_object_get(*ret_answer, "models"));
        if (!moved_on || tries + 1 == TRIES) {
            return err;
        }
        err = KEDGE_OK;
    }
    return err;
}

/* Beside the coordinator models in use are shown without being asked for: the operator reads that folder
 * anyway. From elsewhere the default is what is proven. */
int kedge_cmd_job_model(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct take t = {.dir = kedge_cli_option(c, "out", "."),
                     .npz = kedge_cli_flag(c, "npz"),
                     .evidence = kedge_cli_flag(c, "evidence"),
                     .unreleased = kedge_cli_flag(c, "unreleased") || !c->connect};
    uint64_t wait_s;
    json_t *o = NULL;
    const char *state = "";
    if (!kedge_cli_number(c, "group", 0, KEDGE_GROUPS_MAX - 1, UINT64_MAX, &t.group)
        || !kedge_cli_number(c, "wait", 0, WAIT_MAX_S, 0, &wait_s)) {
        return 2;
    }
    const char *name = kedge_cli_argument(c, 0);
    if (!name || kedge_id_from(kedge_view_str(name), &t.job) != KEDGE_OK) {
        return kedge_cli_usage(c, "JOB: expected a job's name");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    json_t *taken = json_array();
    kedge_cli_catch_interrupt();
    int err = take_all(c, &t, wait_s, taken, &state, &o, &d);
    json_t *answer = json_pack("{s:s,s:s,s:o}", "job", t.job.s, "state", state, "models", taken);
    json_decref(o);
    kedge_cli_chain_close(&t.chain);
    if (err) {
        json_decref(answer);
        return kedge_cli_fail(c, err, &d);
    }
    return kedge_cli_ok(c, answer);
}
