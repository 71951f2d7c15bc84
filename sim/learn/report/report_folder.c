#include "sim/learn/report/report_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "common/base/try.h"
#include "sim/learn/report/report_sites.h"

enum { FILE_MODE = 0644, FOLDER_MODE = 0755 };
#define STATE_MAX ((size_t)1 << 36) /* models of every site: as much as a machine may hold */

static int at_path(const struct kedgei_folder *f, const char *name, char out[KEDGE_PATH_MAX],
                   struct kedge_diag *d)
{
    int err = kedge_path_join(out, f->dir, name);
    return err ? kedge_diag_set(d, err, "%.200s…: the path is too long", f->dir) : KEDGE_OK;
}

/* The lock is held until the folder is closed: two runs in one folder would write one file of rounds. */
int kedgei_folder_open(const char *dir, struct kedgei_folder *ret, struct kedge_diag *d)
{
    struct kedgei_folder f = {dir, -1, -1, -1, -1};
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_dir_make(dir, FOLDER_MODE, d));
    KEDGE_TRY(at_path(&f, "lock", path, d));
    f.lock = kedge_file_lock(path, d);
    KEDGE_TRY(f.lock < 0 ? f.lock : KEDGE_OK);
    *ret = f;
    return KEDGE_OK;
}

void kedgei_folder_close(struct kedgei_folder *f)
{
    int *const fds[] = {&f->jsonl, &f->csv, &f->sites, &f->lock};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (*fds[i] >= 0) {
            (void)close(*fds[i]);
            *fds[i] = -1;
        }
    }
}

/* No state is no error but KEDGE_E_NOT_FOUND: a run that was killed before its first save begins anew. */
int kedgei_folder_load(const struct kedgei_folder *f, struct kedge_buf *bytes, struct kedge_learn_saved *ret,
                       struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = at_path(f, "state.bin", path, d);
    if (err || !kedge_file_exists(path)) {
        return err ? err : KEDGE_E_NOT_FOUND;
    }
    kedge_buf_init(bytes, STATE_MAX);
    err = kedge_file_read(path, bytes, d);
    if (!err) {
        err = kedge_learn_read_saved(kedge_buf_view(bytes), ret, d);
        err = err ? kedge_diag_wrap(d, err, "%s", path) : KEDGE_OK;
        if (err) {
            (void)kedge_diag_hint(d, "name another folder, or remove this one and run it anew");
        }
    }
    return err;
}

bool kedgei_folder_is_used(const struct kedgei_folder *f)
{
    static const char *const names[] = {"state.bin", "rounds.jsonl", "summary.json"};
    char path[KEDGE_PATH_MAX];
    bool used = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        used = used || (kedge_path_join(path, f->dir, names[i]) == KEDGE_OK && kedge_file_exists(path));
    }
    return used;
}

static int open_file(const struct kedgei_folder *f, const char *name, int *ret, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = at_path(f, name, path, d);
    int fd = err ? err : kedge_file_open(path, O_WRONLY | O_CREAT | O_TRUNC, d);
    if (fd < 0) {
        return fd;
    }
    (void)fchmod(fd, FILE_MODE);
    *ret = fd;
    return KEDGE_OK;
}

static int put_bytes(int fd, const struct kedge_buf *text, struct kedge_diag *d)
{
    int err = text->err ? text->err : kedge_fd_write(fd, kedge_buf_view(text));
    return err ? kedge_diag_set(d, err, "cannot write the rounds: %s",
                                text->err ? kedge_strerror(err) : strerror(errno))
               : KEDGE_OK;
}

/* sites.jsonl with its first `count` lines, which a run that goes on does not make again. */
static int open_sites(struct kedgei_folder *f, uint32_t count, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], piece[1 << 16];
    off_t kept = 0, at = 0;
    ssize_t n = 1;
    int err = at_path(f, "sites.jsonl", path, d);
    int fd = err ? err : kedge_file_open(path, O_RDWR | O_CREAT, d);
    if (fd < 0) {
        return fd;
    }
    for (uint32_t lines = 0; lines < count && n > 0; at += n) {
        n = pread(fd, piece, sizeof piece, at);
        for (ssize_t i = 0; i < n && lines < count; i++) {
            if (piece[i] == '\n') {
                lines++;
                kept = at + i + 1;
            }
        }
    }
    (void)fchmod(fd, FILE_MODE);
    if (n < 0 || ftruncate(fd, kept) != 0 || lseek(fd, kept, SEEK_SET) < 0) {
        err = kedge_diag_set(d, kedge_errno(errno), "%s: %s", path, strerror(errno));
        (void)close(fd);
        return err;
    }
    f->sites = fd;
    return KEDGE_OK;
}

/* The files of rounds are written anew from the rounds in memory: after a kill, what stands in them may be
 * one line longer or shorter than the state. */
int kedgei_folder_begin(struct kedgei_folder *f, const struct kedge_learn_round *rounds, uint32_t count,
                        struct kedge_diag *d)
{
    KEDGE_TRY(open_file(f, "rounds.jsonl", &f->jsonl, d));
    KEDGE_TRY(open_file(f, "rounds.csv", &f->csv, d));
    KEDGE_TRY(open_sites(f, count, d));
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, 4096);
    kedge_learn_put_csv_head(&text);
    KEDGE_TRY(put_bytes(f->csv, &text, d));
    for (uint32_t i = 0; i < count; i++) {
        KEDGE_TRY(kedgei_folder_add(f, &rounds[i], d));
    }
    return KEDGE_OK;
}

int kedgei_folder_add(const struct kedgei_folder *f, const struct kedge_learn_round *round,
                      struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, 4096);
    kedge_learn_put_json_line(round, &text);
    KEDGE_TRY(put_bytes(f->jsonl, &text, d));
    kedge_buf_clear(&text);
    kedge_learn_put_csv_line(round, &text);
    return put_bytes(f->csv, &text, d);
}

int kedgei_folder_put(const struct kedgei_folder *f, const char *name, struct kedge_view content,
                      struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = at_path(f, name, path, d);
    return err ? err : kedge_file_write(path, content, FILE_MODE, d);
}

/* Of the last round only: in between, the engine's own state has them. */
static int put_models(const struct kedgei_folder *f, const struct kedge_learn_spec *spec,
                      const struct kedge_learn_view *view, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], name[64];
    uint64_t values = kedge_model_values_count(&spec->job.model);
    KEDGE_TRY(at_path(f, "models", path, d));
    KEDGE_TRY(kedge_dir_make(path, FOLDER_MODE, d));
    for (uint32_t g = 0; g < view->groups; g++) {
        struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&bytes, STATE_MAX);
        (void)snprintf(name, sizeof name, "models/group-%u.safetensors", g);
        KEDGE_TRY(kedge_learn_put_model(&spec->job.model, view->models + (size_t)g * values, &bytes, d));
        KEDGE_TRY(kedgei_folder_put(f, name, kedge_buf_view(&bytes), d));
    }
    return KEDGE_OK;
}

int kedgei_folder_look(struct kedgei_folder *f, const struct kedge_learn_spec *spec,
                       const struct kedge_learn_view *view, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, STATE_MAX);
    if (view->round == 0) {
        kedge_learn_put_sites(view, &text);
        KEDGE_TRY(text.err ? text.err : kedgei_folder_put(f, "sites.csv", kedge_buf_view(&text), d));
        kedge_buf_clear(&text);
    }
    kedge_learn_put_sites_line(view, &text);
    KEDGE_TRY(put_bytes(f->sites, &text, d));
    return view->round + 1 < spec->job.rounds && !view->is_last ? KEDGE_OK : put_models(f, spec, view, d);
}

int kedgei_folder_save(const struct kedgei_folder *f, const struct kedge_learn_saved *s, struct kedge_diag *d)
{
    struct kedge_buf bytes;
    if (fsync(f->jsonl) != 0 || fsync(f->csv) != 0 || fsync(f->sites) != 0) {
        return kedge_diag_set(d, kedge_errno(errno), "%s: the rounds cannot be made durable: %s", f->dir,
                              strerror(errno));
    }
    kedge_buf_init(&bytes, STATE_MAX);
    kedge_learn_put_saved(s, &bytes);
    int err = bytes.err ? kedge_diag_set(d, bytes.err, "%s: no memory for the state", f->dir)
                        : kedgei_folder_put(f, "state.bin", kedge_buf_view(&bytes), d);
    kedge_buf_deinit(&bytes);
    return err;
}
