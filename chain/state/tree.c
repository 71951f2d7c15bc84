/* Folders as lists of files, without recursion and within bounds of depth and number, because what is
 * listed may be a stranger's folder. Links are neither followed nor copied: one could lead to a file that
 * the copy must not have. Files that vanish during the walk are no error, for a coordinator may be
 * running. A copied file is hashed in the same pass, so that what was hashed is what was written. */
#include "chain/state/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/try.h"

enum { BLOCK = 1 << 18 };

static int nomem(struct kedge_diag *d, const char *dir)
{
    return kedge_diag_set(d, KEDGE_E_NOMEM, "%s: out of memory", dir);
}

static int add(struct kedge_tree *t, const char *dir, const char *name, struct kedge_diag *d)
{
    if (t->count == KEDGE_TREE_FILES_MAX) {
        return kedge_diag_set(d, KEDGE_E_TOO_LONG, "%s: more files than %d", dir, KEDGE_TREE_FILES_MAX);
    }
    char *copy =
        kedge_mem_grow(&t->names, &t->cap, t->count, 256, sizeof *t->names) ? kedge_mem_strdup(name) : NULL;
    if (!copy) {
        return nomem(d, dir);
    }
    t->names[t->count++] = copy;
    return KEDGE_OK;
}

void kedge_tree_deinit(struct kedge_tree *t)
{
    for (size_t i = 0; i < t->count; i++) {
        kedge_mem_free(t->names[i]);
    }
    kedge_mem_free(t->names);
    *t = (struct kedge_tree){.names = NULL};
}

struct listing {
    const char *dir;
    kedge_tree_wanted *wanted;
    void *arg;
    bool folders_too;
    struct kedge_tree files, folders; /* folders: those still to be looked into grow after the present one */
    struct kedge_diag *d;
};

static size_t depth_of(const char *name)
{
    size_t depth = name[0] != '\0';
    for (; *name; name++) {
        depth += *name == '/';
    }
    return depth;
}

static int take(struct listing *l, const char *below, const char *entry)
{
    char name[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    struct stat st;
    int err = below[0] ? kedge_path_join(name, below, entry) : KEDGE_OK;
    if (!below[0]) {
        size_t len = strlen(entry);
        err = len < sizeof name ? KEDGE_OK : KEDGE_E_TOO_LONG;
        memcpy(name, entry, err ? 0 : len + 1);
    }
    if (!err) {
        err = kedge_path_join(path, l->dir, name);
    }
    if (err) {
        return kedge_diag_set(l->d, err, "%s/%s: path too long", l->dir, below);
    }
    if (lstat(path, &st) != 0) {
        return errno == ENOENT ? KEDGE_OK /* gone again */
                               : kedge_diag_set(l->d, kedge_errno(errno), "%s: %s", path, strerror(errno));
    }
    bool is_dir = S_ISDIR(st.st_mode);
    if ((!is_dir && !S_ISREG(st.st_mode)) || (l->wanted && !l->wanted(l->arg, name, is_dir))) {
        return KEDGE_OK;
    }
    if (is_dir && depth_of(name) >= KEDGE_TREE_DEPTH_MAX) {
        return kedge_diag_set(l->d, KEDGE_E_TOO_LONG, "%s: folders in folders, deeper than %d", path,
                              KEDGE_TREE_DEPTH_MAX);
    }
    err = add(is_dir ? &l->folders : &l->files, l->dir, name, l->d);
    if (!err && is_dir && l->folders_too) {
        err = kedge_path_join(path, name, "");
        err = err ? kedge_diag_set(l->d, err, "%s: path too long", name) : add(&l->files, l->dir, path, l->d);
    }
    return err;
}

static int look_into(struct listing *l, const char *below)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_path_join(path, l->dir, below);
    DIR *dir = err ? NULL : opendir(path);
    if (!dir) {
        int e = errno;
        return err ? kedge_diag_set(l->d, err, "%s/%s: path too long", l->dir, below)
                   : kedge_diag_set(l->d, kedge_errno(e), "%s: %s", path, strerror(e));
    }
    for (struct dirent *e; !err && (e = readdir(dir)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            err = take(l, below, e->d_name);
        }
    }
    closedir(dir);
    return err;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list(struct listing *l, struct kedge_tree *ret)
{
    int err = look_into(l, "");
    for (size_t i = 0; i < l->folders.count && !err; i++) { /* at most KEDGE_TREE_DEPTH_MAX deep */
        err = look_into(l, l->folders.names[i]);
    }
    kedge_tree_deinit(&l->folders);
    if (err) {
        kedge_tree_deinit(&l->files);
        return err;
    }
    if (l->files.count > 0) {
        qsort(l->files.names, l->files.count, sizeof *l->files.names, compare);
    }
    *ret = l->files;
    return KEDGE_OK;
}

int kedge_tree_list(const char *dir, kedge_tree_wanted *wanted, void *arg, struct kedge_tree *ret,
                    struct kedge_diag *reterr)
{
    struct listing l = {.dir = dir, .wanted = wanted, .arg = arg, .d = reterr};
    return list(&l, ret);
}

int kedge_tree_list_all(const char *dir, struct kedge_tree *ret, struct kedge_diag *reterr)
{
    struct listing l = {.dir = dir, .folders_too = true, .d = reterr};
    return list(&l, ret);
}

/* ---- one file ---- */

static int pass_on(int from, int to, struct kedge_hasher *hasher, uint8_t *block, uint64_t *ret_bytes)
{
    *ret_bytes = 0;
    for (;;) {
        ssize_t n = read(from, block, BLOCK);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? kedge_errno(errno) : KEDGE_OK;
        }
        struct kedge_view bytes = kedge_view_of(block, (size_t)n);
        kedge_hasher_update(hasher, bytes);
        KEDGE_TRY(to < 0 ? KEDGE_OK : kedge_fd_write(to, bytes));
        *ret_bytes += (uint64_t)n;
    }
}

/* to < 0: it is only read. */
static int pass(int from, int to, struct kedge_hash *ret_digest, uint64_t *ret_bytes)
{
    struct kedge_hasher *hasher = NULL;
    struct kedge_hash digest;
    uint64_t bytes = 0;
    uint8_t *block = kedge_mem_new(1, BLOCK);
    int err = block ? kedge_hasher_new(&hasher) : KEDGE_E_NOMEM;
    if (!err) {
        err = pass_on(from, to, hasher, block, &bytes);
    }
    if (!err) {
        kedge_hasher_final(hasher, &digest);
    }
    kedge_hasher_free(hasher);
    kedge_mem_free(block);
    if (!err && ret_digest) {
        *ret_digest = digest;
    }
    if (!err && ret_bytes) {
        *ret_bytes = bytes;
    }
    return err;
}

/* The target must be new, and neither end may be a link: a copy writes over nothing and follows no link
 * that somebody put in its way. After an error the part that was written is removed, so a name in a copy
 * always stands for a whole file. */
int kedge_tree_copy_file(const char *from, const char *to, struct kedge_hash *ret_digest, uint64_t *ret_bytes,
                         struct kedge_diag *reterr)
{
    int in = kedge_file_open(from, O_RDONLY | O_NOFOLLOW, reterr);
    if (in < 0) {
        return in;
    }
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0) {
        int e = errno;
        close(in);
        return kedge_diag_set(reterr, e == EEXIST ? KEDGE_E_EXISTS : kedge_errno(e), "%s: cannot be made: %s",
                              to, strerror(e));
    }
    int err = pass(in, out, ret_digest, ret_bytes);
    close(in);
    err = close(out) == 0 || err ? err : kedge_errno(errno);
    if (err) {
        (void)unlink(to);
        return kedge_diag_set(reterr, err, "%s: cannot be copied to %s: %s", from, to, kedge_strerror(err));
    }
    return KEDGE_OK;
}

int kedge_tree_hash_file(const char *path, struct kedge_hash *ret_digest, uint64_t *ret_bytes,
                         struct kedge_diag *reterr)
{
    int fd = kedge_file_open(path, O_RDONLY | O_NOFOLLOW, reterr);
    if (fd < 0) {
        return fd;
    }
    int err = pass(fd, -1, ret_digest, ret_bytes);
    close(fd);
    return err ? kedge_diag_set(reterr, err, "%s: cannot be read: %s", path, kedge_strerror(err)) : KEDGE_OK;
}

int kedge_tree_make_parents(const char *dir, const char *name, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_path_join(path, dir, name);
    if (err) {
        return kedge_diag_set(reterr, err, "%s/%.60s…: path too long", dir, name);
    }
    *strrchr(path, '/') = '\0';
    return kedge_dir_make(path, 0700, reterr);
}

/* One syncfs of the file system in place of an fsync for each file and each folder, of which there may be
 * very many. Since Linux 5.8 it also reports errors of earlier writes. */
int kedge_tree_sync(const char *dir, struct kedge_diag *reterr)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int e = fd < 0 || syncfs(fd) != 0 ? errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    return e ? kedge_diag_set(reterr, kedge_errno(e), "%s: cannot be made durable: %s", dir, strerror(e))
             : KEDGE_OK;
}
