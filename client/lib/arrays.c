/* Named arrays of a model, as libkedge-client offers them to trainers in any language: read from and written
 * to safetensors files. lib.h is the contract; errors are told by kedge_lib_error().
 *
 * Loading takes any order and metadata, for the files come from Kedge; saving refuses what the coordinator
 * would refuse later (NaN, infinities), while the trainer's author is still looking. A file appears whole or
 * not at all, by a rename. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/lib/lib.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights are copied as they lie in memory: safetensors is little endian"
#endif

struct kedge_arrays {
    struct kedge_layout layout; /* offsets: into `values`, in bytes */
    float *values;
    uint64_t cap;
};

struct kedge_arrays *kedge_arrays_new(void)
{
    struct kedge_arrays *a = kedge_mem_new(1, sizeof *a);
    if (a) {
        *a = (struct kedge_arrays){.values = NULL};
        kedge_layout_init(&a->layout, KEDGE_DTYPE_F32);
    }
    return a;
}

void kedge_arrays_free(struct kedge_arrays *a)
{
    if (a) {
        kedge_layout_deinit(&a->layout);
        kedge_mem_free(a->values);
        kedge_mem_free(a);
    }
}

static int make_room(struct kedge_arrays *a, uint64_t values)
{
    if (values <= a->cap) {
        return KEDGE_OK;
    }
    uint64_t cap = a->cap * 2 > values ? a->cap * 2 : values;
    float *p = kedge_mem_resize(a->values, (size_t)cap, sizeof *p);
    if (!p) {
        return kedgei_lib_fail(KEDGE_E_NOMEM, "no memory for %llu values", (unsigned long long)values);
    }
    a->values = p;
    a->cap = cap;
    return KEDGE_OK;
}

int kedge_arrays_add(struct kedge_arrays *a, const char *name, const uint64_t *dims, uint32_t dims_count,
                     const float *values)
{
    struct kedge_diag d = {.text = ""};
    uint64_t before = a->layout.values_count;
    if (dims_count > KEDGE_LIB_DIMS_MAX) {
        return kedgei_lib_fail(KEDGE_E_SHAPE, "tensor \"%s\" has %u dimensions, expected at most %d", name,
                               dims_count, KEDGE_LIB_DIMS_MAX);
    }
    uint64_t count = 1; /* room first: what the layout has must have values */
    for (uint32_t i = 0; i < dims_count; i++) {
        if (dims[i] == 0 || dims[i] > KEDGE_LAYOUT_VALUES_MAX / count) {
            return kedgei_lib_fail(KEDGE_E_SHAPE,
                                   "tensor \"%s\": dimension %u is %llu, expected 1 or more, and at most "
                                   "2^36 values together",
                                   name, i, (unsigned long long)dims[i]);
        }
        count *= dims[i];
    }
    KEDGE_TRY(make_room(a, before + count));
    int err = kedge_layout_add(&a->layout, name, dims, dims_count, &d);
    if (err) {
        return kedgei_lib_fail(err, "%s", d.text);
    }
    memcpy(a->values + before, values, (size_t)count * sizeof *values);
    return KEDGE_OK;
}

/* Names, shapes and places of its tensors; *io_start is where its values begin. */
static int read_head(int fd, uint64_t len, struct kedge_layout *ret, uint64_t *io_start, struct kedge_diag *d)
{
    uint64_t start = *io_start;
    if (start > len) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "it ends within its header");
    }
    uint8_t *head KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new((size_t)start, 1);
    KEDGE_TRY_MEM(head);
    return pread(fd, head, (size_t)start, 0) == (ssize_t)start
               ? kedge_safetensors_read(kedge_view_of(head, (size_t)start), len, KEDGE_SAFETENSORS_ANY, ret,
                                        io_start, d)
               : kedge_diag_set(d, KEDGE_E_IO, "cannot read it");
}

static int read_file(int fd, uint64_t len, struct kedge_arrays *a, struct kedge_diag *d)
{
    uint8_t first[8];
    uint64_t start = 0;
    if (len < sizeof first || pread(fd, first, sizeof first, 0) != (ssize_t)sizeof first) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%llu bytes, expected a safetensors file",
                              (unsigned long long)len);
    }
    KEDGE_TRY(kedge_safetensors_data_start(first, &start, d));
    KEDGE_TRY(read_head(fd, len, &a->layout, &start, d));
    if (a->layout.dtype != KEDGE_DTYPE_F32) {
        return kedge_diag_set(d, KEDGE_E_SHAPE, "its tensors are I32, expected F32");
    }
    KEDGE_TRY(make_room(a, a->layout.values_count));
    uint64_t left = a->layout.values_count * sizeof *a->values;
    for (uint8_t *at = (uint8_t *)a->values; left > 0;) {
        ssize_t n = pread(fd, at, (size_t)left, (off_t)start);
        if (n <= 0) {
            return kedge_diag_set(d, KEDGE_E_IO, "cannot read its values");
        }
        at += n, start += (uint64_t)n, left -= (uint64_t)n;
    }
    return KEDGE_OK;
}

int kedge_arrays_load(const char *path, struct kedge_arrays **ret)
{
    struct kedge_diag d = {.text = ""};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        int err = kedgei_lib_fail(KEDGE_E_IO, "%s: %s", path, fd < 0 ? strerror(errno) : "no regular file");
        if (fd >= 0) {
            close(fd);
        }
        return err;
    }
    struct kedge_arrays *a = kedge_arrays_new();
    int err = a ? read_file(fd, (uint64_t)st.st_size, a, &d) : KEDGE_E_NOMEM;
    close(fd);
    if (err) {
        kedge_arrays_free(a);
        return kedgei_lib_fail(err, "%s: %s", path, d.text[0] ? d.text : kedge_strerror(err));
    }
    *ret = a;
    return KEDGE_OK;
}

static int check_finite(const struct kedge_arrays *a)
{
    for (uint32_t t = 0; t < a->layout.count; t++) {
        const struct kedge_tensor *tensor = &a->layout.tensors[t];
        const float *v = a->values + tensor->offset / sizeof *v;
        for (uint64_t i = 0; i < tensor->count; i++) {
            if (!isfinite(v[i])) {
                return kedgei_lib_fail(KEDGE_E_NOT_FINITE,
                                       "tensor \"%s\": value %llu is %s, expected a number", tensor->name,
                                       (unsigned long long)i, isnan(v[i]) ? "NaN" : "infinite");
            }
        }
    }
    return KEDGE_OK;
}

static int write_file(const struct kedge_arrays *a, const char *path, int fd)
{
    struct kedge_buf header;
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 16);
    int err = kedge_safetensors_header(&a->layout, KEDGE_DTYPE_F32, &header);
    err = err ? kedgei_lib_fail(err, "%s: %s", path, kedge_strerror(err)) : KEDGE_OK;
    if (!err
        && (!kedgei_lib_write(fd, header.ptr, header.len)
            || !kedgei_lib_write(fd, a->values, (size_t)a->layout.values_count * sizeof *a->values))) {
        err = kedgei_lib_fail(KEDGE_E_IO, "%s: %s", path, strerror(errno));
    }
    kedge_buf_deinit(&header);
    return err;
}

int kedge_arrays_save(const struct kedge_arrays *a, const char *path)
{
    char temporary[4096 + 32];
    KEDGE_TRY(check_finite(a));
    if (a->layout.count == 0 || strlen(path) > 4096) {
        return kedgei_lib_fail(KEDGE_E_ARG,
                               "%.80s: expected at least one tensor, and a path of at most 4096 bytes", path);
    }
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    (void)unlink(temporary); /* of an earlier process with our number; O_EXCL meets no link or FIFO */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return kedgei_lib_fail(KEDGE_E_IO, "%s: %s", temporary, strerror(errno));
    }
    int err = write_file(a, path, fd);
    if (close(fd) != 0 && !err) {
        err = kedgei_lib_fail(KEDGE_E_IO, "%s: %s", temporary, strerror(errno));
    }
    if (!err && rename(temporary, path) != 0) {
        err = kedgei_lib_fail(KEDGE_E_IO, "%s: %s", path, strerror(errno));
    }
    if (err) {
        (void)unlink(temporary);
    }
    return err;
}

uint32_t kedge_arrays_count(const struct kedge_arrays *a)
{
    return a->layout.count;
}

const char *kedge_arrays_name(const struct kedge_arrays *a, uint32_t i)
{
    return i < a->layout.count ? a->layout.tensors[i].name : NULL;
}

uint32_t kedge_arrays_shape(const struct kedge_arrays *a, uint32_t i, uint64_t ret_dims[KEDGE_LIB_DIMS_MAX])
{
    if (i >= a->layout.count) {
        return 0;
    }
    const struct kedge_tensor *t = &a->layout.tensors[i];
    memcpy(ret_dims, t->dims, t->dims_count * sizeof t->dims[0]);
    return t->dims_count;
}

float *kedge_arrays_values(struct kedge_arrays *a, uint32_t i, uint64_t *ret_count)
{
    if (i >= a->layout.count) {
        *ret_count = 0;
        return NULL;
    }
    *ret_count = a->layout.tensors[i].count;
    return a->values + a->layout.tensors[i].offset / sizeof *a->values;
}
