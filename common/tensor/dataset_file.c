/* The impure half of kedge_dataset: reading files and their stamps. Plain libc, so that the trainer builds alone. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/tensor/dataset.h"

static int say_errno(const char *path, int os_errno, struct kedge_diag *reterr)
{
    int err = os_errno == ENOENT || os_errno == ENOTDIR ? KEDGE_E_NOT_FOUND
              : os_errno == EACCES                      ? KEDGE_E_DENIED
                                                        : KEDGE_E_IO;
    return kedge_diag_set(reterr, err, "%s: %s", path, strerror(os_errno));
}

static int read_all(int fd, const char *path, uint8_t *bytes, size_t len, struct kedge_diag *reterr)
{
    size_t got = 0;
    while (got < len) {
        ssize_t n = read(fd, bytes + got, len - got);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? say_errno(path, errno, reterr)
                         : kedge_diag_set(reterr, KEDGE_E_IO, "%s: got shorter while it was read", path);
        }
        got += (size_t)n;
    }
    return KEDGE_OK;
}

int kedge_data_file_read(const char *path, uint8_t **ret_bytes, size_t *ret_len, struct kedge_diag *reterr)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return say_errno(path, errno, reterr);
    }
    int err = KEDGE_OK;
    uint8_t *bytes = NULL;
    if (fstat(fd, &st) != 0) {
        err = say_errno(path, errno, reterr);
    } else if (!S_ISREG(st.st_mode)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: not a regular file", path);
    } else if ((uint64_t)st.st_size > KEDGE_DATA_FILE_MAX) {
        err = kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: %lld bytes, at most %llu", path,
                             (long long)st.st_size, (unsigned long long)KEDGE_DATA_FILE_MAX);
    } else if (!(bytes = kedge_mem_new((size_t)st.st_size, 1))) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: no memory for %lld bytes", path, (long long)st.st_size);
    } else {
        err = read_all(fd, path, bytes, (size_t)st.st_size, reterr);
    }
    close(fd);
    if (err) {
        kedge_mem_free(bytes);
        return err;
    }
    *ret_bytes = bytes;
    *ret_len = (size_t)st.st_size;
    return KEDGE_OK;
}

static bool add_stamp(const char *path, uint64_t *stamp)
{
    struct stat st;
    if (path[0] == '\0') {
        return true;
    }
    if (stat(path, &st) != 0) {
        return false;
    }
    uint64_t parts[] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                        (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *stamp = (*stamp ^ parts[i]) * 0x100000001b3u;
        *stamp ^= *stamp >> 29;
    }
    return true;
}

uint64_t kedge_data_binding_stamp(const struct kedge_data_binding *binding)
{
    uint64_t stamp = 0xcbf29ce484222325u;
    bool found = add_stamp(binding->train.path, &stamp) && add_stamp(binding->train.labels_path, &stamp);
    if (found && binding->has_test) {
        found = add_stamp(binding->test.path, &stamp) && add_stamp(binding->test.labels_path, &stamp);
    }
    return !found ? 0 : stamp ? stamp : 1;
}
