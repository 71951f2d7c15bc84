/* Files of a site's folder, written whole, and those of a task, used again by the next.
 *
 * Working files are large, short-lived and reproducible, so they are neither synced nor allocated anew for
 * each round: the next model is written over the former one's blocks. On a virtual machine that gives free
 * memory back to its host, taking fresh pages each round costs more than the copying. What must survive a
 * crash goes through slots (memory.c) or kedge_file_write and not through this file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/daemon/host.h"

enum { SECTOR = 512 };

int kedge_client_path(const struct kedge_site_host *h, char out[KEDGE_PATH_MAX], const char *format, ...)
{
    char name[KEDGE_PATH_MAX];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(name, sizeof name, format, ap);
    va_end(ap);
    return n < 0 || n >= KEDGE_PATH_MAX ? KEDGE_E_TOO_LONG : kedge_path_join(out, h->dir, name);
}

int kedge_client_work_file(const struct kedge_client_work *w, const char *name, char out[KEDGE_PATH_MAX])
{
    const char *slash = name[0] ? "/" : "";
    return w->index == 0 ? kedge_client_path(w->h, out, "work%s%s", slash, name)
                         : kedge_client_path(w->h, out, "work-%u%s%s", w->index, slash, name);
}

int kedge_client_work_path(const struct kedge_client_work *w, const char *kind,
                           const struct kedge_site_digest *digest, char out[KEDGE_PATH_MAX])
{
    char hex[2 * sizeof digest->b + 1], name[sizeof hex + 32];
    kedge_hex_encode(digest->b, sizeof digest->b, hex);
    snprintf(name, sizeof name, "%.30s-%s", kind, hex);
    return kedge_client_work_file(w, name, out);
}

/* A name that begins with a kept digest is kept, so the half-written "….part" of a wanted file stays, too,
 * and its download can use that room. */
void kedge_client_work_trim(const struct kedge_client_work *w, const char *kind,
                            const struct kedge_site_digest *keep, size_t count)
{
    char dir_path[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX], hex[2 * sizeof keep->b + 1];
    const size_t len = strlen(kind);
    DIR *dir = kedge_client_work_file(w, "", dir_path) == KEDGE_OK ? opendir(dir_path) : NULL;
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        bool wanted = strncmp(name, kind, len) != 0 || name[len] != '-';
        for (size_t i = 0; i < count && !wanted; i++) {
            kedge_hex_encode(keep[i].b, sizeof keep[i].b, hex);
            wanted = strncmp(name + len + 1, hex, sizeof hex - 1) == 0;
        }
        if (!wanted && kedge_path_join(path, dir_path, name) == KEDGE_OK) {
            (void)unlink(path);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* In place when it is as long as what is there: one write within a sector, which a disk writes as a whole. It
 * saves the new file, the rename and two changes of the folder each time the main chain has grown
 * (seen-main), which with many jobs is several times a minute. */
static bool overwrite(const char *path, struct kedge_view content)
{
    struct stat st;
    int fd = content.len <= SECTOR ? kedge_file_open(path, O_WRONLY | O_NOFOLLOW, NULL) : -1;
    bool done = fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size == content.len
                && pwrite(fd, content.ptr, content.len, 0) == (ssize_t)content.len;
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

int kedge_client_put_file(const char *path, struct kedge_view content)
{
    if (overwrite(path, content)) {
        return KEDGE_OK;
    }
    char temporary[KEDGE_PATH_MAX];
    int n = snprintf(temporary, sizeof temporary, "%s.part", path);
    if (n < 0 || n >= KEDGE_PATH_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    int fd = kedge_file_open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, NULL);
    int err = fd < 0 ? fd : kedge_fd_write(fd, content);
    if (fd >= 0 && close(fd) != 0 && !err) {
        err = kedge_errno(errno);
    }
    if (!err && rename(temporary, path) != 0) {
        err = kedge_errno(errno);
    }
    if (err && fd >= 0) {
        (void)unlink(temporary);
    }
    return err;
}

int kedge_client_reuse_begin(const char *path, int *ret_fd)
{
    int fd = kedge_file_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, NULL);
    if (fd < 0) {
        return fd;
    }
    *ret_fd = fd;
    return KEDGE_OK;
}

int kedge_client_reuse_end(int fd, uint64_t len)
{
    struct stat st;
    int err = fstat(fd, &st) == 0 ? KEDGE_OK : kedge_errno(errno);
    if (!err && (uint64_t)st.st_size != len && ftruncate(fd, (off_t)len) != 0) {
        err = kedge_errno(errno);
    }
    if (close(fd) != 0 && !err) {
        err = kedge_errno(errno);
    }
    return err;
}

void kedge_client_reuse_give(const char *old, const char *path)
{
    struct stat st;
    if (stat(old, &st) == 0 && st.st_nlink > 1) { /* evidence of a refusal: its bytes stay as they are */
        (void)unlink(old);
        return;
    }
    if (rename(old, path) != 0 && errno != ENOENT) {
        (void)unlink(old);
    }
}
