/* kedge job model: copies a job's models out of the coordinator's store, each checked against its digest. */
#include <stdio.h>
#include <string.h>

#include "chain/store/blob_file.h"
#include "cli/cli.h"
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
};

/* The same model as one NumPy array a tensor. */
static int write_npz(const struct kedge_map *map, const char *path, struct kedge_diag *d)
{
    struct kedge_layout layout;
    struct kedge_buf out;
    uint64_t start;
    int err = kedge_safetensors_read(kedge_view_of(map->ptr, map->len), map->len, KEDGE_SAFETENSORS_CANONICAL,
                                     &layout, &start, d);
    if (err) {
        return err;
    }
    kedge_buf_init(&out, NPZ_MAX);
    if (layout.dtype != KEDGE_DTYPE_F32) {
        err = kedge_diag_set(d, KEDGE_E_SHAPE, "not a model: its values are %s",
                             kedge_dtype_name(layout.dtype));
    } else { /* the map begins at a page, canonical data at a multiple of 8 */
        err = kedge_npz_write_model(&layout, (const float *)(const void *)(map->ptr + start), &out);
        err = err ? kedge_diag_set(d, err, "%s: cannot be made: %s", path, kedge_strerror(err)) : KEDGE_OK;
    }
    err = err ? err : kedge_file_write(path, kedge_buf_view(&out), 0600, d);
    kedge_buf_deinit(&out);
    kedge_layout_deinit(&layout);
    return err;
}

/* Where the model lies as seen from here: a coordinator with a relative state folder tells a path from its
 * own working folder. */
static int find_model(const struct kedge_cli *c, const char *told, char out[KEDGE_PATH_MAX],
                      struct kedge_diag *d)
{
    const char *tail = told[0] == '/' || c->connect ? NULL : strstr(told, "main/blobs/");
    int n = tail ? snprintf(out, KEDGE_PATH_MAX, "%s/%s", c->state, tail)
                 : snprintf(out, KEDGE_PATH_MAX, "%s", told);
    return n > 0 && n < KEDGE_PATH_MAX
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells no path of the model");
}

static int take_model(const struct kedge_cli *c, const struct take *t, json_t *model, struct kedge_diag *d)
{
    char name[KEDGE_ID_MAX + 40], path[KEDGE_PATH_MAX], from[KEDGE_PATH_MAX];
    struct kedge_hash expected, got;
    struct kedge_blob_at at = {.path = NULL};
    struct kedge_blob_file file;
    snprintf(name, sizeof name, "%s-g%lld.%s", t->job, (long long)kedge_cli_int(model, "group"),
             t->npz ? "npz" : "safetensors");
    int err = kedge_path_join(path, t->dir, name);
    if (err) {
        return kedge_diag_set(d, err, "--out %s: path too long", t->dir);
    }
    if (kedge_hash_from_hex(kedge_view_str(kedge_cli_text(model, "digest")), &expected) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells no digest of the model");
    }
    err = find_model(c, kedge_cli_text(model, "path"), from, d);
    at.path = from;
    err = err ? err : kedge_blob_file_open(&at, KEDGE_BLOB_MAP, &file, d);
    if (err) {
        (void)kedge_diag_hint(d, "models are read from the coordinator's store: run this on its machine");
        return err;
    }
    const struct kedge_map *map = &file.map;
    kedge_sha256(kedge_view_of(map->ptr, map->len), &got);
    if (!kedge_hash_eq(&expected, &got)) {
        err = kedge_diag_set(d, KEDGE_E_BLOB_DIGEST, "%s: its SHA-256 is not the one on record", from);
    } else if (t->npz) {
        err = write_npz(map, path, d);
    } else {
        err = kedge_file_write(path, kedge_view_of(map->ptr, map->len), 0600, d);
    }
    if (!err) {
        kedge_cli_say(c, "%s  %zu bytes of model, SHA-256 %.16s…\n", path, map->len,
                      kedge_cli_text(model, "digest"));
        json_object_set_new(model, "file", json_string(path));
    }
    kedge_blob_file_close(&file);
    return err;
}

/* The release's statement and that it is in the main chain: kedge ledger verify FILE.tlog-proof --entry
 * FILE.json. */
static int write_evidence(const struct kedge_cli *c, const struct take *t, json_t *model,
                          struct kedge_diag *d)
{
    static const struct {
        const char *member, *ending;
    } files[] = {{"release", "release.json"}, {"proof", "release.tlog-proof"}};
    char path[KEDGE_PATH_MAX], name[KEDGE_ID_MAX + 48];
    int err = KEDGE_OK;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !err; i++) {
        const json_t *text = json_object_get(model, files[i].member);
        if (!text) {
            return kedge_diag_set(d, KEDGE_E_STATE,
                                  "job %s has not released this model: there is no evidence yet", t->job);
        }
        snprintf(name, sizeof name, "%s-g%lld.%s", t->job, (long long)kedge_cli_int(model, "group"),
                 files[i].ending);
        err = kedge_path_join(path, t->dir, name);
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
static int take_models(const struct kedge_cli *c, const struct take *t, const json_t *models, uint64_t group,
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
