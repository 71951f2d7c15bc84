/* All that is in blobs/: files by their names, records of packs, and what is neither. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/blob/blobs_impl.h"

static int fail(struct kedge_diag *d, const char *what, const char *path)
{
    int e = errno;
    return kedge_diag_set(d, kedge_errno(e), "%s: cannot %s: %s", path, what, strerror(e));
}

/* The digest that "ab" and the rest spell, or false. */
static bool read_name(const char *prefix, const char *rest, struct kedge_hash *ret)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    if (strlen(prefix) != 2 || strlen(rest) != KEDGE_HASH_HEX_LEN - 2) {
        return false;
    }
    memcpy(hex, prefix, 2);
    memcpy(hex + 2, rest, KEDGE_HASH_HEX_LEN - 1);
    return kedge_hash_from_hex(kedge_view_str(hex), ret) == KEDGE_OK;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Asks about one file and does as told; *ret_stop when the visitor has seen enough. Names are read
 * strictly, two and 62 lower-case hexadecimal digits: anything else is shown to the visitor as no blob
 * and is never opened. A file that is gone meanwhile is no error, for other processes may remove blobs as
 * well. */
static int visit_file(const char *dir, const char *prefix, const char *name, kedge_blobs_visit *visit,
                      void *arg, bool *ret_stop, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    struct stat st;
    int err = kedge_path_join(path, dir, name);
    if (err) {
        return kedge_diag_set(reterr, err, "%s/%s: path too long", dir, name);
    }
    if (lstat(path, &st) != 0) {
        return errno == ENOENT ? KEDGE_OK : fail(reterr, "look at", path);
    }
    struct kedge_hash digest;
    bool is_blob = S_ISREG(st.st_mode) && prefix && read_name(prefix, name, &digest);
    enum kedge_blob_verdict verdict = visit(arg, is_blob ? &digest : NULL, (uint64_t)st.st_size, path);
    *ret_stop = verdict == KEDGE_BLOB_STOP;
    if (verdict == KEDGE_BLOB_DELETE && unlink(path) != 0 && errno != ENOENT) {
        return fail(reterr, "remove", path);
    }
    return KEDGE_OK;
}

/* What is neither a folder nor a pack is shown as well, so that fsck can tell its operator of it. */
static int visit_folder(const char *blobs_dir, const char *prefix, kedge_blobs_visit *visit, void *arg,
                        bool *ret_stop, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_path_join(path, blobs_dir, prefix);
    if (err) {
        return kedge_diag_set(reterr, err, "%s: path too long", blobs_dir);
    }
    DIR *dir = opendir(path);
    struct stat st;
    uint32_t number;
    if (!dir && errno == ENOTDIR && kedgei_pack_name(prefix, &number) && lstat(path, &st) == 0
        && S_ISREG(st.st_mode)) {
        return KEDGE_OK; /* its records are visited one by one */
    }
    if (!dir) {
        return errno == ENOTDIR || errno == ELOOP
                   ? visit_file(blobs_dir, NULL, prefix, visit, arg, ret_stop, reterr)
                   : fail(reterr, "open", path);
    }
    const struct dirent *e;
    while (!err && !*ret_stop && (e = readdir(dir)) != NULL) {
        if (!is_dots(e->d_name)) {
            err = visit_file(path, prefix, e->d_name, visit, arg, ret_stop, reterr);
        }
    }
    closedir(dir);
    return err;
}

struct packed_visit {
    struct kedge_blobs *b;
    kedge_blobs_visit *visit;
    void *arg;
    int err;
    struct kedge_diag *reterr;
};

/* Removal goes through packs_remove, which overwrites the bytes, and not through the file. */
static bool visit_packed(void *arg, const struct kedgei_pack_record *record, const char *path, uint64_t len)
{
    struct packed_visit *v = arg;
    enum kedge_blob_verdict verdict = v->visit(v->arg, record ? &record->digest : NULL, len, path);
    if (verdict == KEDGE_BLOB_DELETE && record) {
        int err = kedgei_packs_remove(&v->b->packs, &record->digest, true, v->reterr);
        v->err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    return verdict != KEDGE_BLOB_STOP && !v->err;
}

int kedge_blobs_for_each(struct kedge_blobs *b, kedge_blobs_visit *visit, void *arg,
                         struct kedge_diag *reterr)
{
    struct packed_visit v = {b, visit, arg, KEDGE_OK, reterr};
    DIR *dir = opendir(b->blobs_dir);
    if (!dir) {
        return fail(reterr, "open", b->blobs_dir);
    }
    int err = KEDGE_OK;
    bool stop = false;
    const struct dirent *e;
    while (!err && !stop && (e = readdir(dir)) != NULL) {
        if (!is_dots(e->d_name)) {
            err = visit_folder(b->blobs_dir, e->d_name, visit, arg, &stop, reterr);
        }
    }
    closedir(dir);
    if (!err && !stop) {
        err = kedgei_packs_for_each(&b->packs, visit_packed, &v, reterr);
        if (!err) {
            err = v.err;
        }
    }
    return err;
}
