#include "client/daemon/update/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon/update/parts.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"

/* ---- which, and where ---- */

int kedge_client_base_check(const struct kedge_client_work *w, const struct kedge_site_task *t,
                            struct kedge_diag *d)
{
    if (!kedge_job_spec_has_base(w->spec)) {
        return t->control_len == 0 || (kedge_job_spec_has_control(w->spec) && t->kind == KEDGE_SITE_TRAIN)
                   ? KEDGE_OK
                   : kedge_diag_set(
                       d, KEDGE_E_DENIED,
                       "the coordinator offers a file beside the model, for which the job's spec "
                       "has no use");
    }
    return t->control_len > 0 && memcmp(t->control.b, w->spec->initial_model.b, sizeof t->control.b) == 0
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_DENIED,
                                "the coordinator's task does not name the base that the job's spec does");
}

int kedge_client_whole_check(const struct kedge_client_work *w, struct kedge_diag *d)
{
    const uint64_t len = kedge_safetensors_file_len(&w->whole, KEDGE_DTYPE_F32),
                   most = w->policy->model_bytes_max;
    return len <= most ? KEDGE_OK
                       : kedge_diag_set(
                           d, KEDGE_E_DENIED,
                           "the job's whole model has %llu bytes, policy.json's \"model_bytes_max\" is %llu",
                           (unsigned long long)len, (unsigned long long)most);
}

int kedge_client_base_path(const struct kedge_client_work *w, const struct kedge_site_digest *digest,
                           char ret[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX], hex[2 * sizeof digest->b + 1];
    kedge_hex_encode(digest->b, sizeof digest->b, hex);
    KEDGE_TRY(kedge_client_path(w->h, folder, "bases"));
    KEDGE_TRY(kedge_dir_make(folder, 0700, d));
    return kedge_path_join(ret, folder, hex);
}

/* Counts the files of the folder but `used`, and finds the one that was used before all others. */
static uint32_t find_oldest(const char *folder, const char *used, char ret[KEDGE_PATH_MAX])
{
    char path[KEDGE_PATH_MAX];
    struct timespec least = {0};
    struct dirent *entry;
    struct stat st;
    uint32_t count = 0;
    DIR *dir = opendir(folder);
    while (dir && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || kedge_path_join(path, folder, entry->d_name) != KEDGE_OK
            || strcmp(path, used) == 0 || lstat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
            continue;
        }
        const bool is_older = st.st_mtim.tv_sec < least.tv_sec
                              || (st.st_mtim.tv_sec == least.tv_sec && st.st_mtim.tv_nsec < least.tv_nsec);
        if (count++ == 0 || is_older) {
            least = st.st_mtim;
            memcpy(ret, path, sizeof path);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

void kedge_client_base_used(const struct kedge_client_work *w, const char *path)
{
    char folder[KEDGE_PATH_MAX], oldest[KEDGE_PATH_MAX];
    (void)utimensat(AT_FDCWD, path, NULL, 0);
    if (kedge_client_path(w->h, folder, "bases") != KEDGE_OK) {
        return;
    }
    for (int i = 0; i < KEDGE_BASES_MAX && find_oldest(folder, path, oldest) >= KEDGE_BASES_MAX; i++) {
        if (unlink(oldest) != 0) {
            return;
        }
    }
}

/* ---- before the training ---- */

int kedge_client_base_join(struct kedge_client_work *w, const struct kedge_site_task *t, const char *shared,
                           struct kedge_client_base *ret, struct kedge_diag *d)
{
    struct kedge_client_base b;
    struct kedge_client_model base, part;
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_client_base_check(w, t, d));
    KEDGE_TRY(kedge_client_work_file(w, "whole", b.whole));
    KEDGE_TRY(kedge_client_work_file(w, "whole-trained", b.out));
    KEDGE_TRY(kedge_client_base_path(w, &t->control, path, d));
    KEDGE_TRY(kedge_client_model_open(&w->whole, path, &base, d));
    int err = kedge_client_model_open(&w->layout, shared, &part, d);
    if (!err) {
        err = kedge_client_model_write(
            w, true, (struct kedge_client_source){.shared = part.values, .whole = base.values}, b.whole, d);
        kedge_client_model_close(&part);
    }
    kedge_client_model_close(&base);
    if (!err) {
        *ret = b;
    }
    return err;
}

/* ---- after the training ---- */

/* A step of a tensor that nobody sends would be lost, and the others were made for it. */
static int check_frozen(const struct kedge_client_work *w, const uint8_t *before, const uint8_t *after,
                        struct kedge_diag *d)
{
    for (uint32_t i = 0; i < w->whole.count; i++) {
        const struct kedge_tensor *t = &w->whole.tensors[i];
        if (!kedge_part_has(&w->spec->share, &w->whole, i)
            && memcmp(before + t->offset, after + t->offset, (size_t)t->count * sizeof(float)) != 0) {
            return kedge_diag_set(
                d, KEDGE_E_TRAINER,
                "trainer: it changed tensor \"%s\", which is frozen in this job; \"trainable\" "
                "of the request names those that it may change",
                t->name);
        }
    }
    return KEDGE_OK;
}

int kedge_client_base_split(struct kedge_client_work *w, const struct kedge_client_base *b,
                            const char *shared, struct kedge_diag *d)
{
    struct kedge_client_model before, after;
    const uint64_t part_len = kedge_safetensors_file_len(&w->layout, KEDGE_DTYPE_F32);
    if (kedge_file_size(b->out) == (int64_t)part_len) { /* shorter than any whole model of the job */
        KEDGE_TRY(kedge_client_model_open(&w->layout, b->out, &after, d));
        int err = kedge_client_model_write(w, false, (struct kedge_client_source){.shared = after.values},
                                           shared, d);
        kedge_client_model_close(&after);
        return err;
    }
    KEDGE_TRY(kedge_client_model_open(&w->whole, b->out, &after, d));
    int err = kedge_client_model_open(&w->whole, b->whole, &before, d);
    if (!err) {
        err = check_frozen(w, before.values, after.values, d);
        if (!err) {
            err = kedge_client_model_write(w, false, (struct kedge_client_source){.whole = after.values},
                                           shared, d);
        }
        kedge_client_model_close(&before);
    }
    kedge_client_model_close(&after);
    return err;
}
