/* kedge job model: a job's models and its spec, each checked against its digest. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fetch.h"
#include "cli/local.h"
#include "common/base/limits.h"
#include "common/base/os/clock.h"
#include "common/tensor/npz.h"
#include "common/tensor/safetensors.h"
#include "crypto/hash.h"

enum { POLL_MS = 500, WAIT_MAX_S = 7 * 86400 };
#define NPZ_MAX ((size_t)UINT32_MAX) /* no Zip64 */

struct take {
    const char *job, *dir;
    bool npz, evidence;
    struct kedge_hash spec;
};

/* The same model as one NumPy array a tensor. */
static int write_npz(const char *model, const char *path, struct kedge_diag *d)
{
    struct kedge_map map;
    struct kedge_layout layout;
    struct kedge_buf out;
    uint64_t start;
    int err = kedge_map_open(model, &map, d);
    if (err) {
        return err;
    }
    err = kedge_safetensors_read(kedge_view_of(map.ptr, map.len), map.len, KEDGE_SAFETENSORS_CANONICAL,
                                 &layout, &start, d);
    if (err) {
        kedge_map_close(&map);
        return err;
    }
    kedge_buf_init(&out, NPZ_MAX);
    if (layout.dtype != KEDGE_DTYPE_F32) {
        err = kedge_diag_set(d, KEDGE_E_SHAPE, "not a model: its values are %s",
                             kedge_dtype_name(layout.dtype));
    } else { /* the map begins at a page, canonical data at a multiple of 8 */
        err = kedge_npz_write_model(&layout, (const float *)(const void *)(map.ptr + start), &out);
        err = err ? kedge_diag_set(d, err, "%s: cannot be made: %s", path, kedge_strerror(err)) : KEDGE_OK;
    }
    err = err ? err : kedge_file_write(path, kedge_buf_view(&out), 0600, d);
    kedge_buf_deinit(&out);
    kedge_layout_deinit(&layout);
    kedge_map_close(&map);
    return err;
}

/* DIR/JOB-gG.ENDING */
static int name_file(const struct take *t, const json_t *model, const char *ending, char out[KEDGE_PATH_MAX],
                     struct kedge_diag *d)
{
    char name[KEDGE_ID_MAX + 48];
    snprintf(name, sizeof name, "%s-g%lld.%s", t->job, (long long)kedge_cli_int(model, "group"), ending);
    int err = kedge_path_join(out, t->dir, name);
    return err ? kedge_diag_set(d, err, "--out %s: path too long", t->dir) : KEDGE_OK;
}

/* The job's spec beside its model: what kedge predict and the programs of others need to use it. */
static int take_spec(struct kedge_cli *c, const struct take *t, json_t *model, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    uint64_t size;
    int err = name_file(t, model, "json", path, d);
    err = err ? err : kedge_cli_fetch(c, t->job, &t->spec, path, &size, d);
    if (!err) {
        kedge_cli_say(c, "%s  the job's spec\n", path);
        json_object_set_new(model, "spec_file", json_string(path));
    }
    return err;
}

static int take_model(struct kedge_cli *c, const struct take *t, json_t *model, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], npz[KEDGE_PATH_MAX];
    const char *hex = kedge_cli_text(model, "digest");
    struct kedge_hash digest;
    uint64_t size;
    int err = name_file(t, model, "safetensors", path, d);
    err = err ? err : name_file(t, model, "npz", npz, d);
    if (err) {
        return err;
    }
    if (kedge_hash_from_hex(kedge_view_str(hex), &digest) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells no digest of the model");
    }
    err = kedge_cli_fetch(c, t->job, &digest, path, &size, d);
    if (err) {
        return err;
    }
    kedge_cli_say(c, "%s  %llu bytes of model, SHA-256 %.16s…\n", path, (unsigned long long)size, hex);
    json_object_set_new(model, "file", json_string(path));
    err = t->npz ? write_npz(path, npz, d) : KEDGE_OK;
    if (!err && t->npz) {
        kedge_cli_say(c, "%s\n", npz);
        json_object_set_new(model, "npz", json_string(npz));
    }
    return err ? err : take_spec(c, t, model, d);
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
    int err = KEDGE_OK;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !err; i++) {
        const json_t *text = json_object_get(model, files[i].member);
        if (!text) {
            return kedge_diag_set(d, KEDGE_E_STATE,
                                  "job %s has not released this model: there is no evidence yet", t->job);
        }
        err = name_file(t, model, files[i].ending, path, d);
        err = err ? err
                  : kedge_file_write(path, kedge_view_of(json_string_value(text), json_string_length(text)),
                                     0600, d);
        if (!err) {
            kedge_cli_say(c, "%s\n", path);
        }
    }
    return err;
}

/* Takes all groups' models, or that of `group`; moves what it took into `taken`. */
static int take_models(struct kedge_cli *c, const struct take *t, const json_t *models, uint64_t group,
                       json_t *taken, struct kedge_diag *d)
{
    json_t *model;
    size_t i;
    int err = KEDGE_OK;
    json_array_foreach(models, i, model)
    {
        if (group != UINT64_MAX && kedge_cli_int(model, "group") != (int64_t)group) {
            continue;
        }
        err = take_model(c, t, model, d);
        err = err || !t->evidence ? err : write_evidence(c, t, model, d);
        json_object_del(model, "release");
        json_object_del(model, "proof");
        json_object_del(model, "path"); /* a file of the coordinator's own */
        if (err) {
            return err;
        }
        json_array_append(taken, model);
    }
    return json_array_size(taken) > 0
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_STATE, "job %s has no such model (it has %zu)", t->job,
                                json_array_size(models));
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

int kedge_cmd_job_model(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct take t = {.dir = kedge_cli_option(c, "out", "."),
                     .npz = kedge_cli_flag(c, "npz"),
                     .evidence = kedge_cli_flag(c, "evidence")};
    struct kedge_id job;
    uint64_t group, wait_s;
    json_t *o = NULL;
    if (!kedge_cli_number(c, "group", 0, KEDGE_GROUPS_MAX - 1, UINT64_MAX, &group)
        || !kedge_cli_number(c, "wait", 0, WAIT_MAX_S, 0, &wait_s)) {
        return 2;
    }
    const char *name = kedge_cli_argument(c, 0);
    if (!name || kedge_id_from(kedge_view_str(name), &job) != KEDGE_OK) {
        return kedge_cli_usage(c, "JOB: expected a job's name");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    t.job = job.s;
    json_t *taken = json_array();
    int err = kedge_dir_make(t.dir, 0700, &d);
    kedge_cli_catch_interrupt();
    err = err ? err : ask_model(c, job.s, wait_s, &o, &d);
    if (!err && kedge_hash_from_hex(kedge_view_str(kedge_cli_text(o, "spec")), &t.spec) != KEDGE_OK) {
        err = kedge_diag_set(&d, KEDGE_E_FORMAT, "the coordinator tells no digest of the job's spec");
    }
    err = err ? err : take_models(c, &t, json_object_get(o, "models"), group, taken, &d);
    json_t *answer =
        json_pack("{s:s,s:s,s:o}", "job", job.s, "state", kedge_cli_text(o, "state"), "models", taken);
    json_decref(o);
    if (err) {
        json_decref(answer);
        return kedge_cli_fail(c, err, &d);
    }
    return kedge_cli_ok(c, answer);
}
