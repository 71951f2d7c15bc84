/* A model's files: walked with a list of folders in place of recursion, each opened without following links,
 * hashed as it is read. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/export/oms.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum { BLOCK = 256 * 1024 };

/* At the model's root only: left out by model signing tools unless they are told otherwise, so a checkout of
 * a model and its release have one signature. */
static const char *const git_paths[] = {".git", ".gitignore", ".gitattributes", ".github"};

struct walk {
    const char *root;
    const struct kedge_oms_ignore *ignore;
    struct kedge_oms_list *list;
    struct kedge_oms_list folders; /* names of folders still to be read; digests unused */
    size_t max;                    /* of either */
    struct kedge_hasher *hasher;
    uint8_t *block;
    struct kedge_diag *reterr;
};

void kedge_oms_list_deinit(struct kedge_oms_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        kedge_mem_free(list->files[i].name);
    }
    kedge_mem_free(list->files);
    memset(list, 0, sizeof *list);
}

static int add(struct kedge_oms_list *list, size_t max, const char *name, const struct kedge_hash *digest)
{
    if (list->count == max) {
        return KEDGE_E_FULL;
    }
    KEDGE_TRY_MEM(kedge_mem_grow(&list->files, &list->cap, list->count, 16, sizeof *list->files));
    char *copy = kedge_mem_strdup(name);
    KEDGE_TRY_MEM(copy);
    list->files[list->count].name = copy;
    list->files[list->count].digest = digest ? *digest : (struct kedge_hash){{0}};
    list->count++;
    return KEDGE_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct kedge_oms_file *)a)->name, ((const struct kedge_oms_file *)b)->name);
}

void kedge_oms_root(const struct kedge_oms_list *list, struct kedge_hash *ret_root)
{
    struct kedge_hasher *h = NULL;
    KEDGE_ASSERT(kedge_hasher_new(&h) == KEDGE_OK);
    for (size_t i = 0; i < list->count; i++) {
        kedge_hasher_update(h, kedge_view_of(list->files[i].digest.b, KEDGE_HASH_LEN));
    }
    kedge_hasher_final(h, ret_root);
    kedge_hasher_free(h);
}

static bool is_ignored(const struct walk *w, const char *name)
{
    for (size_t i = 0; i < sizeof git_paths / sizeof git_paths[0]; i++) {
        if (strcmp(name, git_paths[i]) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < w->ignore->count; i++) {
        if (strcmp(name, w->ignore->paths[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Read in blocks: models are larger than memory should hold. O_NOFOLLOW closes the gap between lstat in visit
 * and here, in which a link could take the file's place. */
static int hash_file(struct walk *w, const char *path, const char *name)
{
    int fd = kedge_file_open(path, O_RDONLY | (w->ignore->allow_symlinks ? 0 : O_NOFOLLOW), w->reterr);
    if (fd < 0) {
        return fd;
    }
    struct kedge_hash digest;
    ssize_t n = 1;
    while (n != 0) {
        n = read(fd, w->block, BLOCK);
        if (n < 0 && errno != EINTR) {
            int err = kedge_errno(errno);
            close(fd);
            return kedge_diag_set(w->reterr, err, "%s: cannot read", path);
        }
        if (n > 0) {
            kedge_hasher_update(w->hasher, kedge_view_of(w->block, (size_t)n));
        }
    }
    close(fd);
    kedge_hasher_final(w->hasher, &digest);
    int err = add(w->list, w->max, name, &digest);
    return err ? kedge_diag_set(w->reterr, err, "%s: %s", path, kedge_strerror(err)) : KEDGE_OK;
}

/* One thing in a folder; name is relative to the model. */
static int visit(struct walk *w, const char *name)
{
    char path[KEDGE_PATH_MAX];
    struct stat st = {.st_mode = 0};
    if (!kedge_utf8_is_valid(kedge_view_str(name))) {
        return kedge_diag_set(w->reterr, KEDGE_E_FORMAT,
                              "%s: a file's name is not UTF-8, which no signature can say", w->root);
    }
    if (is_ignored(w, name)) {
        return KEDGE_OK;
    }
    if (kedge_path_join(path, w->root, name) != KEDGE_OK) {
        return kedge_diag_set(w->reterr, KEDGE_E_TOO_LONG, "%s: a path in it is too long", w->root);
    }
    if (lstat(path, &st) != 0) {
        int err = kedge_errno(errno);
        return kedge_diag_set(w->reterr, err, "%s: cannot be looked at", path);
    }
    if (S_ISLNK(st.st_mode) && !w->ignore->allow_symlinks) {
        return kedge_diag_set(w->reterr, KEDGE_E_DENIED,
                              "%s: a symbolic link, which this signature does not allow", path);
    }
    if (S_ISLNK(st.st_mode) && stat(path, &st) != 0) {
        return kedge_diag_set(w->reterr, KEDGE_E_NOT_FOUND, "%s: a symbolic link to nothing", path);
    }
    if (S_ISDIR(st.st_mode)) {
        int err = add(&w->folders, w->max, name, NULL);
        return err ? kedge_diag_set(w->reterr, err, "%s: too many folders", path) : KEDGE_OK;
    }
    return hash_file(w, path, name); /* which refuses what is no regular file */
}

static int read_folder(struct walk *w, const char *name)
{
    char path[KEDGE_PATH_MAX], inside[KEDGE_PATH_MAX];
    if (name[0] == '\0') {
        int n = snprintf(path, sizeof path, "%s", w->root);
        if (n < 0 || (size_t)n >= sizeof path) {
            return kedge_diag_set(w->reterr, KEDGE_E_TOO_LONG, "%s: path too long", w->root);
        }
    } else if (kedge_path_join(path, w->root, name) != KEDGE_OK) {
        return kedge_diag_set(w->reterr, KEDGE_E_TOO_LONG, "%s: a path in it is too long", w->root);
    }
    DIR *dir = opendir(path);
    if (!dir) {
        int err = kedge_errno(errno);
        return kedge_diag_set(w->reterr, err, "%s: cannot be listed", path);
    }
    int err = KEDGE_OK;
    const struct dirent *entry;
    while (!err && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        int n = snprintf(inside, sizeof inside, "%s%s%s", name, name[0] ? "/" : "", entry->d_name);
        err = n < 0 || (size_t)n >= sizeof inside
                  ? kedge_diag_set(w->reterr, KEDGE_E_TOO_LONG, "%s: a path in it is too long", path)
                  : visit(w, inside);
    }
    closedir(dir);
    return err;
}

static int walk_all(struct walk *w)
{
    int err = read_folder(w, "");
    for (size_t i = 0; !err && i < w->folders.count; i++) { /* grows while it is walked; bounded by add */
        char name[KEDGE_PATH_MAX];
        snprintf(name, sizeof name, "%s", w->folders.files[i].name);
        err = read_folder(w, name);
    }
    return err;
}

int kedge_oms_read(const char *path, const struct kedge_oms_ignore *ignore, struct kedge_oms_list *ret_list,
                   struct kedge_diag *reterr)
{
    return kedge_oms_read_up_to(path, ignore, KEDGE_OMS_FILES_MAX, ret_list, reterr);
}

int kedge_oms_read_up_to(const char *path, const struct kedge_oms_ignore *ignore, size_t files_max,
                         struct kedge_oms_list *ret_list, struct kedge_diag *reterr)
{
    static const struct kedge_oms_ignore nothing = {NULL, 0, false};
    struct kedge_oms_list list = {NULL, 0, 0};
    struct walk w = {.root = path,
                     .ignore = ignore ? ignore : &nothing,
                     .list = &list,
                     .max = files_max,
                     .reterr = reterr};
    struct stat st = {.st_mode = 0};
    if (stat(path, &st) != 0) {
        int err = kedge_errno(errno);
        return kedge_diag_set(reterr, err, "%s: %s", path, kedge_strerror(err));
    }
    w.block = kedge_mem_new(1, BLOCK);
    int err = w.block ? kedge_hasher_new(&w.hasher) : KEDGE_E_NOMEM;
    if (err) {
        (void)kedge_diag_set(reterr, err, "%s: %s", path, kedge_strerror(err));
    } else {
        err = S_ISDIR(st.st_mode) ? walk_all(&w) : hash_file(&w, path, ".");
    }
    kedge_hasher_free(w.hasher);
    kedge_mem_free(w.block);
    kedge_oms_list_deinit(&w.folders);
    if (err) {
        kedge_oms_list_deinit(&list);
        return err;
    }
    if (list.count > 1) {
        qsort(list.files, list.count, sizeof *list.files, compare);
    }
    *ret_list = list;
    return KEDGE_OK;
}

/* The signature's place inside the model, or NULL when it lies elsewhere. A signature often lies in the
 * folder that it is about, and cannot name itself. Real paths are compared, for the caller may have given
 * either of the two in another form. */
static const char *place_inside(const char *folder, const char *signature, char out[KEDGE_PATH_MAX])
{
    char base[PATH_MAX], full[PATH_MAX];
    if (!signature || !realpath(folder, base) || !realpath(signature, full)) {
        return NULL;
    }
    size_t len = strlen(base);
    if (strncmp(full, base, len) != 0 || full[len] != '/' || strlen(full + len + 1) >= KEDGE_PATH_MAX) {
        return NULL;
    }
    snprintf(out, KEDGE_PATH_MAX, "%s", full + len + 1);
    return out;
}

/* The first difference of the two lists. Both lists are sorted by name, so one walk over both finds a
 * file that is missing, one too many, or one that differs. A file that nobody signed is an error as well:
 * a program might load it. */
static int compare_lists(const struct kedge_oms_list *want, const struct kedge_oms_list *have,
                         const char *path, struct kedge_diag *reterr)
{
    size_t i = 0, k = 0;
    while (i < want->count || k < have->count) {
        int order = i == want->count   ? 1
                    : k == have->count ? -1
                                       : strcmp(want->files[i].name, have->files[k].name);
        if (order != 0) {
            const char *name = order < 0 ? want->files[i].name : have->files[k].name;
            return kedge_diag_set(reterr, KEDGE_E_VERIFY, "%s: %s is %s", path, name,
                                  order < 0 ? "signed, but not here" : "here, but not signed");
        }
        if (!kedge_hash_eq(&want->files[i].digest, &have->files[k].digest)) {
            return kedge_diag_set(reterr, KEDGE_E_VERIFY, "%s: %s is not what was signed", path,
                                  want->files[i].name);
        }
        i++;
        k++;
    }
    return KEDGE_OK;
}

int kedge_oms_check(const struct kedge_oms *oms, const char *path, const char *signature,
                    struct kedge_diag *reterr)
{
    const char *paths[KEDGE_OMS_IGNORE_MAX + 1];
    char inside[KEDGE_PATH_MAX];
    struct kedge_oms_ignore ignore = {paths, 0, oms->allow_symlinks};
    struct kedge_oms_list have = {NULL, 0, 0};
    for (size_t i = 0; i < oms->ignore_count && i < KEDGE_OMS_IGNORE_MAX; i++) {
        paths[ignore.count++] = oms->ignore[i];
    }
    const char *own = place_inside(path, signature, inside);
    if (own) {
        paths[ignore.count++] = own;
    }
    int err = kedge_oms_read(path, &ignore, &have, reterr);
    if (!err) {
        err = compare_lists(&oms->list, &have, path, reterr);
        kedge_oms_list_deinit(&have);
    }
    return err;
}
