/* DIR/models: exactly the files that releases name, with their content, and what lies beside them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"
#include "common/base/os/file.h"
#include "common/base/try.h"
#include "round/shared_part.h"

#define WHOLE "-whole.safetensors"

static void model_finding(struct kedgei_audit *a, bool may_wait, const char *file, const char *what)
{
    char where[KEDGE_AUDIT_WHERE_MAX];
    snprintf(where, sizeof where, "models/%.*s", (int)(sizeof where - 8), file);
    kedgei_find(&a->findings, may_wait && a->options.live ? KEDGE_AUDIT_NOTE : KEDGE_AUDIT_ERROR,
                KEDGE_AUDIT_MODEL_FILE, where, "%s", what);
}

/* The name comes from a statement; one with a slash would lead out of the folder and counts as
 * unreadable. */
static void check_file(struct kedgei_audit *a, const struct kedgei_fact *release)
{
    const struct kedge_st_release *r = release->body;
    char path[KEDGE_PATH_MAX];
    struct kedge_map map;
    struct kedge_hash digest;
    if (strchr(r->file, '/') || kedge_path_join(path, a->models, r->file) != KEDGE_OK
        || kedge_map_open(path, &map, NULL) != KEDGE_OK) {
        if (!kedge_file_exists(path) && KEDGEI_SKIP(a, models)) {
            return;
        }
        model_finding(a, true, r->file, "cannot be read, but its release names it");
        return;
    }
    kedge_sha256(kedge_view_of(map.ptr, map.len), &digest);
    kedge_map_close(&map);
    if (!kedge_hash_eq(&digest, &release->subject)) {
        model_finding(a, false, r->file, "its content is not the model that its release names");
    }
}

static int hash_more(void *arg, struct kedge_view bytes)
{
    kedge_hasher_update(arg, bytes);
    return KEDGE_OK;
}

/* The digest of the released model with the base that its job trained over. */
static int hash_whole(const struct kedgei_audit *a, const struct kedgei_job *job,
                      const struct kedge_hash *model, struct kedge_hash *ret)
{
    char base_path[KEDGE_PATH_MAX], model_path[KEDGE_PATH_MAX];
    struct kedge_blob_at base, at;
    struct kedge_hasher *hasher;
    KEDGE_TRY(kedge_blobs_at(a->main.blobs, &job->spec.initial_model, base_path, &base));
    KEDGE_TRY(kedge_blobs_at(a->main.blobs, model, model_path, &at));
    KEDGE_TRY(kedge_hasher_new(&hasher));
    const struct kedge_sink sink = {.write = hash_more, .arg = hasher};
    int err = kedge_compute_whole(&job->spec, &base, &at, sink, NULL);
    kedge_hasher_final(hasher, ret);
    kedge_hasher_free(hasher);
    return err;
}

static void check_whole(struct kedgei_audit *a, const struct kedgei_job *job,
                        const struct kedgei_fact *release, const char *file)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_map map;
    struct kedge_hash digest, expected;
    if (kedge_path_join(path, a->models, file) != KEDGE_OK || kedge_map_open(path, &map, NULL) != KEDGE_OK) {
        model_finding(a, false, file, "cannot be read");
        return;
    }
    kedge_sha256(kedge_view_of(map.ptr, map.len), &digest);
    kedge_map_close(&map);
    if (!job->usable || !kedge_job_spec_has_base(&job->spec)
        || hash_whole(a, job, &release->subject, &expected) != KEDGE_OK
        || !kedge_hash_eq(&digest, &expected)) {
        model_finding(a, false, file, "its content is not the released model with the base of its job");
    }
}

/* What kedge job model puts beside FILE.safetensors: the same model for NumPy, the job's spec, the evidence,
 * and the whole model where the job trained a part. The files for NumPy cannot be told from others here; the
 * evidence proves itself. */
static bool is_beside(const char *file, const char *released)
{
    static const char *const endings[] = {
        ".json", ".npz", ".classes.json", ".release.json", ".release.tlog-proof", "-whole.json", WHOLE};
    static const char model[] = ".safetensors";
    size_t len = strlen(released), stem = len < sizeof model ? 0 : len - (sizeof model - 1);
    if (stem == 0 || strcmp(released + stem, model) != 0 || strncmp(file, released, stem) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (strcmp(file + stem, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void check_spec(struct kedgei_audit *a, const struct kedgei_job *job, const char *file)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_map map;
    struct kedge_hash digest;
    if (kedge_path_join(path, a->models, file) != KEDGE_OK || kedge_map_open(path, &map, NULL) != KEDGE_OK) {
        model_finding(a, false, file, "cannot be read");
        return;
    }
    kedge_sha256(kedge_view_of(map.ptr, map.len), &digest);
    kedge_map_close(&map);
    if (job->opened && !kedge_hash_eq(&digest, &job->opened->subject)) {
        model_finding(a, false, file, "its content is not the spec of the job that released this model");
    }
}

/* Whether a release names the file, or one that it belongs to. A file that belongs to a release is known
 * by the release's own name before its ending. */
static bool is_known(struct kedgei_audit *a, const char *file)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            const struct kedgei_fact *fact = a->jobs[j]->releases[g];
            const char *released = fact ? ((const struct kedge_st_release *)fact->body)->file : "";
            if (fact && strcmp(released, file) == 0) {
                return true;
            }
            if (fact && is_beside(file, released)) {
                size_t stem = strlen(released) - strlen(".safetensors");
                if (strcmp(file + stem, ".json") == 0 || strcmp(file + stem, "-whole.json") == 0) {
                    check_spec(a, a->jobs[j], file);
                } else if (strcmp(file + stem, WHOLE) == 0) {
                    check_whole(a, a->jobs[j], fact, file);
                }
                return true;
            }
        }
    }
    return false;
}

int kedgei_check_models(struct kedgei_audit *a)
{
    if (!a->models[0]) {
        return KEDGE_OK;
    }
    for (uint32_t j = 0; j < a->job_count; j++) {
        for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            if (a->jobs[j]->releases[g]) {
                check_file(a, a->jobs[j]->releases[g]);
            }
        }
    }
    DIR *dir = opendir(a->models);
    if (!dir) {
        return kedge_diag_set(&a->diag, kedge_errno(errno), "%s: cannot be listed", a->models);
    }
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0
            && !is_known(a, entry->d_name)) {
            model_finding(a, true, entry->d_name, "no release names this file");
        }
    }
    closedir(dir);
    return KEDGE_OK;
}
