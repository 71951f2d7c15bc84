#include "client/daemon/update/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ---- a model's file, as it lies there ---- */

struct model_file {
    struct kedge_map map;
    const uint8_t *values;
};

static int open_model(const struct kedge_layout *layout, const char *path, struct model_file *ret,
                      struct kedge_diag *d)
{
    struct kedge_map map;
    struct kedge_layout got;
    uint64_t start = 0;
    KEDGE_TRY(kedge_map_open(path, &map, d));
    int err = kedge_safetensors_read(kedge_view_of(map.ptr, map.len), map.len, KEDGE_SAFETENSORS_CANONICAL,
                                     &got, &start, d);
    if (!err) {
        err = kedge_layout_check_same(layout, &got, KEDGE_DTYPE_F32, d);
        kedge_layout_deinit(&got);
    }
    if (err) {
        kedge_map_close(&map);
        return kedge_diag_wrap(d, err, "%s", path);
    }
    *ret = (struct model_file){.map = map, .values = map.ptr + start};
    return KEDGE_OK;
}

/* What the tensors of a layout are read from: `shared` those that travel, one after the other; `whole` the
 * others (or all of them, where shared is NULL), each where the whole model has it. */
struct source {
    const uint8_t *shared, *whole;
};

static int write_tensors(const struct kedge_client_work *w, bool all, struct source from, int fd,
                         uint64_t *ret_len)
{
    const struct kedge_layout *layout = all ? &w->whole : &w->layout;
    struct kedge_buf header;
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    int err = kedge_safetensors_header(layout, KEDGE_DTYPE_F32, &header);
    if (!err) {
        err = kedge_fd_write(fd, kedge_buf_view(&header));
    }
    *ret_len = header.len + kedge_layout_data_len(layout);
    kedge_buf_deinit(&header);
    for (uint32_t i = 0; i < w->whole.count && !err; i++) {
        const struct kedge_tensor *t = &w->whole.tensors[i];
        const bool travels = kedge_part_has(&w->spec->share, &w->whole, i);
        const size_t len = (size_t)t->count * sizeof(float);
        if (travels && from.shared) {
            err = kedge_fd_write(fd, kedge_view_of(from.shared, len));
            from.shared += len;
        } else if (travels || all) {
            err = kedge_fd_write(fd, kedge_view_of(from.whole + t->offset, len));
        }
    }
    return err;
}

static int write_model(const struct kedge_client_work *w, bool all, struct source from, const char *path,
                       struct kedge_diag *d)
{
    uint64_t len = 0;
    int fd = -1;
    int err = kedge_client_reuse_begin(path, &fd);
    if (!err) {
        err = write_tensors(w, all, from, fd, &len);
        int end_err = kedge_client_reuse_end(fd, err ? 0 : len);
        err = err ? err : end_err;
    }
    return err ? kedge_diag_set(d, err, "%s: %s", path, kedge_strerror(err)) : KEDGE_OK;
}

int kedge_client_base_join(struct kedge_client_work *w, const struct kedge_site_task *t, const char *shared,
                           struct kedge_client_base *ret, struct kedge_diag *d)
{
    struct kedge_client_base b;
    struct model_file base, part;
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_client_base_check(w, t, d));
    KEDGE_TRY(kedge_client_work_file(w, "whole", b.whole));
    KEDGE_TRY(kedge_client_work_file(w, "whole-trained", b.out));
    KEDGE_TRY(kedge_client_base_path(w, &t->control, path, d));
    KEDGE_TRY(open_model(&w->whole, path, &base, d));
    int err = open_model(&w->layout, shared, &part, d);
    if (!err) {
        err = write_model(w, true, (struct source){part.values, base.values}, b.whole, d);
        kedge_map_close(&part.map);
    }
    kedge_map_close(&base.map);
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
    struct model_file before, after;
    const uint64_t part_len = kedge_safetensors_file_len(&w->layout, KEDGE_DTYPE_F32);
    if (kedge_file_size(b->out) == (int64_t)part_len) { /* shorter than any whole model of the job */
        KEDGE_TRY(open_model(&w->layout, b->out, &after, d));
        int err = write_model(w, false, (struct source){after.values, NULL}, shared, d);
        kedge_map_close(&after.map);
        return err;
    }
    KEDGE_TRY(open_model(&w->whole, b->out, &after, d));
    int err = open_model(&w->whole, b->whole, &before, d);
    if (!err) {
        err = check_frozen(w, before.values, after.values, d);
        if (!err) {
            err = write_model(w, false, (struct source){NULL, after.values}, shared, d);
        }
        kedge_map_close(&before.map);
    }
    kedge_map_close(&after.map);
    return err;
}
