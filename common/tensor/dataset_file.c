/* The impure half of kedge_dataset: reading whole files. libc only, so that the trainer builds alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/tensor/dataset.h"

enum { CHUNK = 1 << 20 };

static int say_errno(const char *path, int os_errno, struct kedge_diag *reterr)
{
    int err = os_errno == ENOENT || os_errno == ENOTDIR ? KEDGE_E_NOT_FOUND
              : os_errno == EACCES                      ? KEDGE_E_DENIED
                                                        : KEDGE_E_IO;
    return kedge_diag_set(reterr, err, "%s: %s", path, strerror(os_errno));
}

/* The size where the file can tell, so that it is read in one piece; else 0. */
static size_t guess_size(FILE *f)
{
    long end = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
    rewind(f);
    return end > 0 && (uint64_t)end <= KEDGE_DATA_FILE_MAX ? (size_t)end : 0;
}

/* Appends until the end of the file. Its size is a guess only: it may grow or shrink meanwhile, and
 * files of /proc have size 0; what was read counts, and the bound holds for that. */
static int read_all(FILE *f, const char *path, size_t size, uint8_t **bytes, size_t *ret_len,
                    struct kedge_diag *reterr)
{
    size_t len = 0, cap = size + 1; /* one more, to meet the end at once */
    for (;;) {
        uint8_t *grown = kedge_mem_resize(*bytes, cap, 1);
        if (!grown) {
            return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: no memory for %zu bytes", path, cap);
        }
        *bytes = grown;
        errno = 0;
        len += fread(grown + len, 1, cap - len, f);
        if (ferror(f)) {
            return say_errno(path, errno ? errno : EIO, reterr);
        }
        if (len < cap) {
            *ret_len = len;
            return KEDGE_OK;
        }
        if (len > KEDGE_DATA_FILE_MAX) {
            return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: longer than %llu bytes", path,
                                  (unsigned long long)KEDGE_DATA_FILE_MAX);
        }
        cap += cap / 2 + CHUNK;
    }
}

/* Looks before it opens, for opening alone makes some devices act, and again after: it may be another. */
int kedge_data_file_open(const char *path, struct kedge_diag *reterr)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return say_errno(path, errno, reterr);
    }
    int fd = S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    if (S_ISREG(st.st_mode) && (fd < 0 || fstat(fd, &st) != 0)) {
        int e = errno;
        if (fd >= 0) {
            close(fd);
        }
        return say_errno(path, e, reterr);
    }
    if (!S_ISREG(st.st_mode)) {
        if (fd >= 0) {
            close(fd);
        }
        return S_ISDIR(st.st_mode) ? say_errno(path, EISDIR, reterr)
                                   : kedge_diag_set(reterr, KEDGE_E_IO, "%s: expected a regular file", path);
    }
    return fd;
}

int kedge_data_file_read(const char *path, uint8_t **ret_bytes, size_t *ret_len, struct kedge_diag *reterr)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    int fd = kedge_data_file_open(path, reterr);
    if (fd < 0) {
        return fd;
    }
    FILE *f = fdopen(fd, "rb");
    if (!f) {
        int e = errno;
        close(fd);
        return say_errno(path, e, reterr);
    }
    int err = read_all(f, path, guess_size(f), &bytes, &len, reterr);
    (void)fclose(f); /* nothing was written */
    if (err) {
        kedge_mem_free(bytes);
        return err;
    }
    *ret_bytes = bytes;
    *ret_len = len;
    return KEDGE_OK;
}
