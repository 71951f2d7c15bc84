/* Files: bounded reads, durable writes (temporary file, fsync, rename, fsync of the folder), folders, maps.
 */
#ifndef KEDGE_COMMON_BASE_OS_FILE_H
#define KEDGE_COMMON_BASE_OS_FILE_H

#include <stdint.h>

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum { KEDGE_PATH_MAX = 1024 };

/* "dir/name" into out, KEDGE_E_TOO_LONG when it does not fit. */
KEDGE_NODISCARD int kedge_path_join(char out[KEDGE_PATH_MAX], const char *dir, const char *name);
/* path as an absolute one without links. KEDGE_E_TOO_LONG where that does not fit: realpath(3) asks for room
 * for PATH_MAX bytes, which is more. KEDGE_E_NOT_FOUND and the others of kedge_errno. */
KEDGE_NODISCARD int kedge_path_real(const char *path, char out[KEDGE_PATH_MAX], struct kedge_diag *reterr);
/* errno to KEDGE_E_NOT_FOUND, _DISK_FULL (ENOSPC, EDQUOT, EROFS), _DENIED (EACCES, EPERM) or _IO. */
int kedge_errno(int os_errno);

/* A descriptor of a regular file, or a negative error that names the path. flags as of open(2); O_CLOEXEC is
 * added, and what O_CREAT makes has mode 0600. Links are followed unless flags say O_NOFOLLOW. Never waits
 * and opens nothing else: KEDGE_E_IO for a folder, FIFO, socket or device. A program that opens a path that
 * another party may have named or made goes through here. */
KEDGE_NODISCARD int kedge_file_open(const char *path, int flags, struct kedge_diag *reterr);
/* That path is a regular file, links followed: for libraries that open by path themselves. KEDGE_E_NOT_FOUND,
 * KEDGE_E_IO as above. Another process may put something else there right after this. */
KEDGE_NODISCARD int kedge_file_check(const char *path, struct kedge_diag *reterr);
/* Appends the whole regular file to ret, refusing one longer than ret's max. */
KEDGE_NODISCARD int kedge_file_read(const char *path, struct kedge_buf *ret, struct kedge_diag *reterr);
/* The same, also for a pipe (a shell's <(…), /dev/stdin), which is read to its end. */
KEDGE_NODISCARD int kedge_file_or_pipe_read(const char *path, struct kedge_buf *ret,
                                            struct kedge_diag *reterr);
/* The same for standard input, whatever it is: waits until its end. */
KEDGE_NODISCARD int kedge_stdin_read(struct kedge_buf *ret, struct kedge_diag *reterr);
/* All or nothing and durable: the file holds the old or the new content at any crash. mode such as 0600. */
KEDGE_NODISCARD int kedge_file_write(const char *path, struct kedge_view content, unsigned mode,
                                     struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_dir_make(const char *path, unsigned mode,
                                   struct kedge_diag *reterr); /* and parents */
KEDGE_NODISCARD int kedge_dir_sync(const char *path);
/* The folder with all in it; absent is fine. No links are followed; KEDGE_E_ARG when path itself is no
 * folder. */
KEDGE_NODISCARD int kedge_dir_remove(const char *path);
bool kedge_file_exists(const char *path);
/* Size in bytes or a negative error. */
int64_t kedge_file_size(const char *path);

/* All of v where the descriptor stands; a negative error with errno as write(2) left it. */
KEDGE_NODISCARD int kedge_fd_write(int fd, struct kedge_view v);
/* len bytes at offset; KEDGE_E_CORRUPT when the file ends before, with out partly written. */
KEDGE_NODISCARD int kedge_fd_read_at(int fd, uint8_t *out, size_t len, uint64_t offset);

/* A read-only map of a whole regular file; close with kedge_map_close. An empty file has ptr NULL, len 0. */
struct kedge_map {
    const uint8_t *ptr;
    size_t len;
};
KEDGE_NODISCARD int kedge_map_open(const char *path, struct kedge_map *ret, struct kedge_diag *reterr);
/* Of len bytes from offset, which must be in the file. */
KEDGE_NODISCARD int kedge_map_part(int fd, uint64_t offset, uint64_t len, struct kedge_map *ret);
void kedge_map_close(struct kedge_map *map);

/* Exclusive advisory lock on a file (created if absent); held until the descriptor is closed or the process
 * ends. Returns the descriptor or KEDGE_E_LOCKED. */
KEDGE_NODISCARD int kedge_file_lock(const char *path, struct kedge_diag *reterr);
/* The same, but waits for up to wait_ms while another process has it, and logs that it waits: a process that
 * was killed keeps its locks until the system has taken down its memory, which takes seconds when there is a
 * lot of it. KEDGE_E_LOCKED then says how long it has waited. */
KEDGE_NODISCARD int kedge_file_lock_within(const char *path, uint32_t wait_ms, struct kedge_diag *reterr);

#endif
