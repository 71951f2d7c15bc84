/* Weights of a task: canonical safetensors files in and out. Canonical means one possible file for given
 * values (tensors in the model's order, no other metadata), so a file's digest is the model's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/train/task.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights are copied as they lie in memory: safetensors is little endian"
#endif

static int say_errno(struct kedge_diag *reterr, const char *path)
{
    int os_errno = errno, err = KEDGE_E_IO;
    if (os_errno == ENOENT || os_errno == ENOTDIR) {
        err = KEDGE_E_NOT_FOUND;
    } else if (os_errno == EACCES || os_errno == EPERM) {
        err = KEDGE_E_DENIED;
    } else if (os_errno == ENOSPC || os_errno == EROFS || os_errno == EDQUOT) {
        err = KEDGE_E_DISK_FULL;
    }
    return kedge_diag_set(reterr, err, "%s: %s", path, strerror(os_errno));
}

static int take_weights(struct kedge_view file, const struct kedge_layout *layout, float *values,
                        struct kedge_diag *reterr)
{
    struct kedge_layout found;
    uint64_t start = 0;
    KEDGE_TRY(kedge_safetensors_read(file, file.len, KEDGE_SAFETENSORS_CANONICAL, &found, &start, reterr));
    int err = kedge_layout_check_same(layout, &found, KEDGE_DTYPE_F32, reterr);
    kedge_layout_deinit(&found);
    if (err) {
        return err;
    }
    memcpy(values, file.ptr + start, layout->values_count * sizeof *values);
    float sum = 0.0f; /* 0·v is NaN for NaN and infinity, and NaN stays */
    for (uint64_t i = 0; i < layout->values_count; i++) {
        sum += 0.0f * values[i];
    }
    return sum == 0.0f ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOT_FINITE, "holds NaN or infinity");
}

/* The length is checked before the file is mapped: at most the header's limit and the values that the model
 * has. */
int kedge_weights_read(const char *path, const struct kedge_layout *layout, float *values,
                       struct kedge_diag *reterr)
{
    struct stat st;
    void *map = MAP_FAILED;
    int fd = kedge_data_file_open(path, reterr);
    if (fd < 0) {
        return fd;
    }
    if (fstat(fd, &st) != 0) {
        int err = say_errno(reterr, path);
        close(fd);
        return err;
    }
    uint64_t max = layout->values_count * sizeof *values + KEDGE_TENSOR_HEADER_MAX + 8;
    bool fits = st.st_size > 0 && (uint64_t)st.st_size <= max;
    if (fits) {
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    }
    close(fd);
    if (map == MAP_FAILED) {
        return fits ? say_errno(reterr, path)
                    : kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                     "%s: %lld bytes, expected a safetensors file of %llu "
                                     "values",
                                     path, (long long)st.st_size, (unsigned long long)layout->values_count);
    }
    int err = take_weights(kedge_view_of(map, (size_t)st.st_size), layout, values, reterr);
    munmap(map, (size_t)st.st_size);
    return err ? kedge_diag_wrap(reterr, err, "%s", path) : KEDGE_OK;
}

static bool write_all(int fd, const void *ptr, size_t len)
{
    const uint8_t *p = ptr;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        p += n;
        len -= (size_t)n;
    }
    return true;
}

/* Written under another name and renamed: a reader sees the whole model or none. */
int kedge_weights_write(const char *path, const struct kedge_layout *layout, const float *values,
                        struct kedge_diag *reterr)
{
    char temporary[KEDGE_DATA_PATH_MAX + 32];
    struct kedge_buf header;
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 16);
    int err = kedge_safetensors_header(layout, KEDGE_DTYPE_F32, &header);
    if (!err) {
        unlink(temporary); /* of an earlier process with our number that died; O_EXCL meets no FIFO or link */
    }
    int fd = err ? -1 : open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (err) {
        err = kedge_diag_set(reterr, err, "%s: %s", path, kedge_strerror(err));
    } else if (fd < 0) {
        err = say_errno(reterr, temporary);
    } else {
        bool done = write_all(fd, header.ptr, header.len)
                    && write_all(fd, values, layout->values_count * sizeof *values);
        if (!done) {
            err = say_errno(reterr, temporary);
        }
        if (close(fd) != 0 && !err) {
            err = say_errno(reterr, temporary);
        }
        if (!err && rename(temporary, path) != 0) {
            err = say_errno(reterr, path);
        }
        if (err) {
            unlink(temporary);
        }
    }
    kedge_buf_deinit(&header);
    return err;
}
