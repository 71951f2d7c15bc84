/* Files between the site and a trainer of its owner's: the trainer gets a copy, and what it leaves is copied
 * while it is checked. It may be any program; whatever it does to its files later changes nothing of what is
 * signed. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/daemon/trainer/trainer.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"

enum { TILE_VALUES = 65536 };

static int folder_of(struct kedge_client_work *w, char out[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    int err = kedge_client_path(w->h, out, "trainers/%s", w->spec->external.trainer.s);
    return err ? err : kedge_dir_make(out, 0700, d);
}

static int remove_old(const char *path, struct kedge_diag *d)
{
    return unlink(path) == 0 || errno == ENOENT
               ? KEDGE_OK
               : kedge_diag_set(d, kedge_errno(errno), "%s: %s", path, strerror(errno));
}

/* O_EXCL after the removal, and O_NOFOLLOW: the folder is the trainer's to write in, and a link that it puts
 * there must not make this daemon write elsewhere. */
static int write_new(const char *to, struct kedge_view bytes, struct kedge_diag *d)
{
    KEDGE_TRY(remove_old(to, d));
    int fd = kedge_file_open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, d);
    if (fd < 0) {
        return fd;
    }
    int err = kedge_fd_write(fd, bytes);
    close(fd);
    return err ? kedge_diag_set(d, err, "%s: %s", to, kedge_strerror(err)) : KEDGE_OK;
}

static int copy(const char *from, const char *to, struct kedge_diag *d)
{
    struct kedge_map map;
    KEDGE_TRY(kedge_map_open(from, &map, d));
    int err = write_new(to, kedge_view_of(map.ptr, map.len), d);
    kedge_map_close(&map);
    return err;
}

/* Another task may be with a trainer of this name. */
static int name_in(const struct kedge_client_work *w, const char *folder, const char *kind,
                   char ret[KEDGE_PATH_MAX])
{
    char name[32];
    int n = w->index > 0 ? snprintf(name, sizeof name, "%s-%u.safetensors", kind, w->index)
                         : snprintf(name, sizeof name, "%s.safetensors", kind);
    return n < 0 || n >= (int)sizeof name ? KEDGE_E_TOO_LONG : kedge_path_join(ret, folder, name);
}

int kedge_client_trainer_give(struct kedge_client_work *w, const char *base, const char *drift,
                              const char *personal, struct kedge_trainer_given *ret, struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX];
    struct kedge_trainer_given g = {.drift = "", .personal = ""};
    KEDGE_TRY(folder_of(w, folder, d));
    KEDGE_TRY(name_in(w, folder, "base", g.base));
    KEDGE_TRY(name_in(w, folder, "out", g.out));
    KEDGE_TRY(copy(base, g.base, d));
    if (drift) {
        KEDGE_TRY(name_in(w, folder, "drift", g.drift));
        KEDGE_TRY(copy(drift, g.drift, d));
    }
    if (personal) {
        KEDGE_TRY(name_in(w, folder, "personal", g.personal));
        KEDGE_TRY(remove_old(g.personal, d));
        KEDGE_TRY(kedge_file_exists(personal) ? copy(personal, g.personal, d) : KEDGE_OK);
    }
    KEDGE_TRY(remove_old(g.out, d));
    *ret = g;
    return KEDGE_OK;
}

/* ---- taking ---- */

struct taken {
    const char *path;
    const struct kedge_layout *wanted; /* what the file must have */
    int fd;
    uint64_t start; /* of the data */
    struct kedge_layout layout;
    struct kedge_diag *d;
};

/* The header says how long it is, and a hostile one may say anything: the length is bounded first
 * (kedge_safetensors_data_start), then the file's own length must be the header and exactly the job's values,
 * and only then memory is taken for the header. */
static int read_head(struct kedge_client_work *w, struct taken *t)
{
    uint8_t first[8];
    uint64_t start = 0;
    off_t len = lseek(t->fd, 0, SEEK_END);
    if (len < 8 || kedge_fd_read_at(t->fd, first, sizeof first, 0) != KEDGE_OK) {
        return kedge_diag_set(t->d, KEDGE_E_FORMAT, "%lld bytes, expected a safetensors file",
                              (long long)len);
    }
    KEDGE_TRY(kedge_safetensors_data_start(first, &start, t->d));
    if (kedge_job_spec_has_base(w->spec) && (uint64_t)len == start + kedge_layout_data_len(&w->layout)) {
        t->wanted = &w->layout; /* without what is frozen */
    }
    uint64_t expected = start + kedge_layout_data_len(t->wanted);
    if ((uint64_t)len != expected) {
        return kedge_diag_set(
            t->d, KEDGE_E_FORMAT, "%lld bytes, expected %llu: the header and %llu values of 4 bytes",
            (long long)len, (unsigned long long)expected, (unsigned long long)t->wanted->values_count);
    }
    uint8_t *head KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new((size_t)start, 1);
    KEDGE_TRY_MEM(head);
    KEDGE_TRY(kedge_fd_read_at(t->fd, head, (size_t)start, 0));
    return kedge_safetensors_read(kedge_view_of(head, (size_t)start), (uint64_t)len, KEDGE_SAFETENSORS_ANY,
                                  &t->layout, &t->start, t->d);
}

/* The tensor in its file that the model has under this name. */
static int find(const struct taken *t, const struct kedge_tensor *wanted, const struct kedge_tensor **ret)
{
    char expected[KEDGE_SHAPE_TEXT_MAX], found[KEDGE_SHAPE_TEXT_MAX];
    const struct kedge_tensor *got = kedge_layout_find(&t->layout, wanted->name);
    kedge_shape_text(wanted->dims, wanted->dims_count, expected);
    if (!got) {
        return kedge_diag_set(t->d, KEDGE_E_SHAPE, "no tensor \"%s\", expected one of shape %s", wanted->name,
                              expected);
    }
    bool same = got->dims_count == wanted->dims_count
                && memcmp(got->dims, wanted->dims, wanted->dims_count * sizeof wanted->dims[0]) == 0;
    kedge_shape_text(got->dims, got->dims_count, found);
    *ret = got;
    return same ? KEDGE_OK
                : kedge_diag_set(t->d, KEDGE_E_SHAPE, "tensor \"%s\" has shape %s, expected %s", wanted->name,
                                 found, expected);
}

/* Read, checked and written tile by tile from the same buffer: what was checked is what is written, whatever
 * the trainer does to its file meanwhile. A NaN or an infinity would spoil the mean of the whole round, so it
 * ends here, with its tensor and place. */
static int take_tensor(const struct taken *t, const struct kedge_tensor *wanted, float *tile, int out)
{
    const struct kedge_tensor *got = NULL;
    KEDGE_TRY(find(t, wanted, &got));
    for (uint64_t i = 0; i < wanted->count; i += TILE_VALUES) {
        size_t n = wanted->count - i < TILE_VALUES ? (size_t)(wanted->count - i) : TILE_VALUES;
        KEDGE_TRY(kedge_fd_read_at(t->fd, (uint8_t *)tile, n * sizeof *tile,
                                   t->start + got->offset + i * sizeof *tile));
        for (size_t k = 0; k < n; k++) {
            if (!isfinite(tile[k])) {
                return kedge_diag_set(t->d, KEDGE_E_NOT_FINITE,
                                      "tensor \"%s\": value %llu is %s, expected a number", wanted->name,
                                      (unsigned long long)(i + k), isnan(tile[k]) ? "NaN" : "infinite");
            }
        }
        KEDGE_TRY(kedge_fd_write(out, kedge_view_of(tile, n * sizeof *tile)));
    }
    return KEDGE_OK;
}

/* In the model's own order and with a header of our own, so that the bytes of an update do not depend on a
 * trainer's library, its order of tensors or its metadata. */
static int write_canonical(const struct taken *t, int out, uint64_t *ret_len)
{
    struct kedge_buf header;
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    float *tile = kedge_mem_new(TILE_VALUES, sizeof *tile);
    int err = tile ? kedge_safetensors_header(t->wanted, KEDGE_DTYPE_F32, &header) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_fd_write(out, kedge_buf_view(&header));
    }
    for (uint32_t i = 0; i < t->wanted->count && !err; i++) {
        err = take_tensor(t, &t->wanted->tensors[i], tile, out);
    }
    *ret_len = header.len + kedge_layout_data_len(t->wanted);
    kedge_mem_free(tile);
    kedge_buf_deinit(&header);
    return err;
}

static int take_file(struct kedge_client_work *w, struct taken *t, const char *to)
{
    uint64_t len = 0;
    int out = -1;
    KEDGE_TRY(read_head(w, t));
    if (t->layout.dtype != KEDGE_DTYPE_F32 || t->layout.count != t->wanted->count) {
        return kedge_diag_set(t->d, KEDGE_E_SHAPE, "%u tensors of type %s, expected %u of F32",
                              t->layout.count, kedge_dtype_name(t->layout.dtype), t->wanted->count);
    }
    KEDGE_TRY(kedge_client_reuse_begin(to, &out));
    int err = write_canonical(t, out, &len);
    int end_err = kedge_client_reuse_end(out, err ? 0 : len);
    return err ? err : end_err;
}

int kedge_client_trainer_take(struct kedge_client_work *w, const char *from, const char *to,
                              struct kedge_diag *d)
{
    struct taken t = {.path = from, .wanted = &w->whole, .d = d};
    t.fd = kedge_file_open(from, O_RDONLY | O_NOFOLLOW, NULL);
    if (t.fd < 0) {
        return kedge_diag_set(
            d, KEDGE_E_TRAINER,
            "trainer \"%s\": it said ok, but left no weights: expected a safetensors file at %s",
            w->spec->external.trainer.s, from);
    }
    int err = take_file(w, &t, to);
    close(t.fd);
    kedge_layout_deinit(&t.layout);
    return err ? kedge_diag_wrap(d, err, "trainer \"%s\": what it trained, %s", w->spec->external.trainer.s,
                                 from)
               : KEDGE_OK;
}
