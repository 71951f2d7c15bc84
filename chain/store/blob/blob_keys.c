/* Keys of encrypted updates, one for each tenant and job, in memory while the store is open. Sealed ones
 * (with a passphrase) are known by their public half and opened when first used, so that a program which
 * needs none of them does not ask. Destroying a key is what makes every copy of a job's updates
 * unreadable, also those in backups that nobody can reach any more. */
#include "chain/store/blob/blob_keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/entropy.h"
#include "common/base/os/file.h"
#include "common/base/try.h"
#include "crypto/keyfile.h"

enum { KEYS_MAX = 65536 };

struct entry {
    struct kedge_id name; /* "" for a file from elsewhere with another kind of name */
    struct kedge_blob_key_id id;
    bool has_seed; /* else it is sealed and was not used yet */
    struct kedge_seed seed;
    char *path; /* owned */
};

struct kedge_blob_keys {
    char dir[KEDGE_PATH_MAX];
    pthread_mutex_t mutex; /* guards what follows */
    struct entry *entries;
    size_t count, cap;
};

/* ---- what is there ---- */

static void forget(struct entry *e)
{
    kedge_wipe(&e->seed, sizeof e->seed);
    kedge_mem_free(e->path);
}

/* KEYS_MAX bounds the memory that a folder full of files can take. */
static int remember(struct kedge_blob_keys *k, const struct entry *e)
{
    if (k->count == k->cap) {
        size_t cap = k->cap ? 2 * k->cap : 8;
        struct entry *entries = cap <= KEYS_MAX ? kedge_mem_new(cap, sizeof *entries) : NULL;
        KEDGE_TRY_MEM(entries);
        if (k->count > 0) { /* not resized: no copy of a key may stay behind */
            memcpy(entries, k->entries, k->count * sizeof *entries);
            kedge_wipe(k->entries, k->count * sizeof *entries);
        }
        kedge_mem_free(k->entries);
        k->entries = entries;
        k->cap = cap;
    }
    k->entries[k->count++] = *e;
    return KEDGE_OK;
}

static struct entry *find(struct kedge_blob_keys *k, const struct kedge_blob_key_id *id)
{
    for (size_t i = 0; i < k->count; i++) {
        if (memcmp(k->entries[i].id.b, id->b, sizeof id->b) == 0) {
            return &k->entries[i];
        }
    }
    return NULL;
}

static struct entry *find_name(struct kedge_blob_keys *k, const struct kedge_id *name)
{
    for (size_t i = 0; i < k->count; i++) {
        if (k->entries[i].name.s[0] && kedge_id_eq(&k->entries[i].name, name)) {
            return &k->entries[i];
        }
    }
    return NULL;
}

static const char going[] = ".pem.going"; /* what a key's file ends in while it is being destroyed */

/* "JOB.pem" */
static bool read_name(const char *file, struct kedge_id *ret)
{
    size_t len = strlen(file);
    return len > 4 && strcmp(file + len - 4, ".pem") == 0
           && kedge_id_from(kedge_view_of(file, len - 4), ret) == KEDGE_OK;
}

/* The identifier is computed from the public key, which a sealed file says in clear. The same key under
 * two file names is taken once. */
static int read_file(struct kedge_blob_keys *k, const char *path, struct kedge_diag *d)
{
    const char *slash = strrchr(path, '/');
    struct entry e = {.path = NULL};
    struct kedge_key_pair pair;
    struct kedge_public_key public_key;
    bool sealed = false;
    int err = kedge_keyfile_is_sealed(path, &sealed, &public_key, d);
    if (!err && !sealed) {
        err = kedge_keyfile_read_private(path, &pair, d);
        if (!err) {
            public_key = pair.public;
            kedge_key_seed(&pair, &e.seed);
            kedge_key_wipe(&pair);
            e.has_seed = true;
        }
    }
    if (err) {
        return err;
    }
    kedge_blob_key_id(&public_key, &e.id);
    if (find(k, &e.id)) {
        kedge_wipe(&e.seed, sizeof e.seed);
        return KEDGE_OK;
    }
    if (!read_name(slash ? slash + 1 : path, &e.name)) {
        e.name.s[0] = '\0';
    }
    e.path = kedge_mem_strdup(path);
    err = e.path ? remember(k, &e) : KEDGE_E_NOMEM;
    if (err) {
        forget(&e);
        (void)kedge_diag_set(d, err, "%s: %s", path, kedge_strerror(err));
    }
    kedge_wipe(&e.seed, sizeof e.seed);
    return err;
}

/* All "*.pem" of a folder; absent is fine. Only names that are identifiers: a key that is being destroyed
 * ("JOB.pem.going") and editors' copies are no keys. */
static int read_folder(struct kedge_blob_keys *k, const char *folder, struct kedge_diag *d)
{
    DIR *dir = opendir(folder);
    int err = KEDGE_OK;
    if (!dir) {
        err = kedge_errno(errno);
        return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : kedge_diag_set(d, err, "%s: cannot be listed", folder);
    }
    const struct dirent *e;
    while (!err && (e = readdir(dir)) != NULL) {
        char path[KEDGE_PATH_MAX];
        struct kedge_id name;
        if (read_name(e->d_name, &name)) {
            err = kedge_path_join(path, folder, e->d_name);
            err = err ? kedge_diag_set(d, err, "%s: path too long", folder) : read_file(k, path, d);
        }
    }
    closedir(dir);
    return err;
}

int kedge_blob_keys_open(const char *dir, struct kedge_blob_keys **ret, struct kedge_diag *reterr)
{
    struct kedge_blob_keys *k = strlen(dir) < KEDGE_PATH_MAX ? kedge_mem_new(1, sizeof *k) : NULL;
    if (!k) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", dir);
    }
    memcpy(k->dir, dir, strlen(dir) + 1);
    pthread_mutex_init(&k->mutex, NULL);
    int err = read_folder(k, dir, reterr);
    if (err) {
        kedge_blob_keys_close(k);
        return err;
    }
    *ret = k;
    return KEDGE_OK;
}

void kedge_blob_keys_close(struct kedge_blob_keys *keys)
{
    if (keys) {
        for (size_t i = 0; i < keys->count; i++) {
            forget(&keys->entries[i]);
        }
        kedge_mem_free(keys->entries);
        pthread_mutex_destroy(&keys->mutex);
        kedge_mem_free(keys);
    }
}

int kedge_blob_keys_add(struct kedge_blob_keys *keys, const char *path, struct kedge_diag *reterr)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        int err = kedge_errno(errno);
        return kedge_diag_set(reterr, err, "%s: %s", path, kedge_strerror(err));
    }
    pthread_mutex_lock(&keys->mutex);
    int err = S_ISDIR(st.st_mode) ? read_folder(keys, path, reterr) : read_file(keys, path, reterr);
    pthread_mutex_unlock(&keys->mutex);
    return err;
}

size_t kedge_blob_keys_count(struct kedge_blob_keys *keys)
{
    if (!keys) {
        return 0;
    }
    pthread_mutex_lock(&keys->mutex);
    size_t count = keys->count;
    pthread_mutex_unlock(&keys->mutex);
    return count;
}

bool kedge_blob_keys_at(struct kedge_blob_keys *keys, size_t i, struct kedge_id *ret_name,
                        struct kedge_blob_key_id *ret_id)
{
    pthread_mutex_lock(&keys->mutex);
    bool is = i < keys->count;
    if (is) {
        *ret_name = keys->entries[i].name;
        *ret_id = keys->entries[i].id;
    }
    pthread_mutex_unlock(&keys->mutex);
    return is;
}

/* ---- use ---- */

/* The file may have been replaced between the two readings; content decrypted with another key would be
 * refused chunk by chunk, with a message that leads nowhere. */
static int take_seed(struct entry *e, struct kedge_seed *ret, struct kedge_diag *d)
{
    if (!e->has_seed) {
        struct kedge_key_pair pair;
        struct kedge_blob_key_id id;
        KEDGE_TRY(kedge_keyfile_read_private(e->path, &pair, d));
        kedge_blob_key_id(&pair.public, &id);
        kedge_key_seed(&pair, &e->seed);
        kedge_key_wipe(&pair);
        if (memcmp(id.b, e->id.b, sizeof id.b) != 0) {
            return kedge_diag_set(d, KEDGE_E_KEY, "%s: another key than a moment ago", e->path);
        }
        e->has_seed = true;
    }
    *ret = e->seed;
    return KEDGE_OK;
}

/* A miss may be a key that a coordinator beside this reader has made since: the folder is read again
 * before the answer is no. */
int kedge_blob_keys_find(struct kedge_blob_keys *keys, const struct kedge_blob_key_id *id,
                         struct kedge_seed *ret, struct kedge_diag *reterr)
{
    if (!keys) {
        return kedge_diag_set(reterr, KEDGE_E_SEALED, "%s", kedge_strerror(KEDGE_E_SEALED));
    }
    pthread_mutex_lock(&keys->mutex);
    struct entry *e = find(keys, id);
    if (!e && read_folder(keys, keys->dir, NULL) == KEDGE_OK) { /* made since, by another process */
        e = find(keys, id);
    }
    int err = e ? take_seed(e, ret, reterr)
                : kedge_diag_set(reterr, KEDGE_E_SEALED, "%s: the key of this file is not here", keys->dir);
    pthread_mutex_unlock(&keys->mutex);
    return err;
}

/* The folder is there, and its entry and its parent's durable: no blob may outlive its key. Key first:
 * the key's file and its folders are durable before the first byte is encrypted under it. A blob whose
 * key was lost in a power cut would be lost as well. */
static int make_folder(const struct kedge_blob_keys *k, struct kedge_diag *d)
{
    char parent[KEDGE_PATH_MAX];
    int err = kedge_dir_make(k->dir, 0700, d);
    memcpy(parent, k->dir, sizeof parent);
    for (int i = 0; i < 2 && !err; i++) {
        char *slash = strrchr(parent, '/');
        if (!slash || slash == parent) {
            break;
        }
        *slash = '\0';
        err = kedge_dir_sync(parent);
        err = err ? kedge_diag_set(d, err, "%s: cannot sync the folder", parent) : KEDGE_OK;
    }
    return err;
}

/* The key by which its owner chose a passphrase or none: the coordinator's or the witness's, two folders
 * up. A new key is protected as its owner protects the other ones; asking for a passphrase in the middle
 * of an upload is no alternative. */
static bool find_like(const struct kedge_blob_keys *k, char out[KEDGE_PATH_MAX])
{
    static const char *const above[] = {"../../statement.pem", "../../tls.pem"};
    bool found = false;
    for (size_t i = 0; i < sizeof above / sizeof above[0] && !found; i++) {
        found = kedge_path_join(out, k->dir, above[i]) == KEDGE_OK && kedge_file_exists(out);
    }
    return found;
}

static int make(struct kedge_blob_keys *k, const char *path, struct kedge_diag *d)
{
    struct kedge_key_pair pair = {.secret = {0}};
    char like[KEDGE_PATH_MAX];
    int err = make_folder(k, d);
    if (!err && find_like(k, like)) {
        err = kedge_keyfile_make_like(path, like, &pair, d);
    } else if (!err) {
        kedge_key_generate(&pair);
        err = kedge_keyfile_write_private(path, &pair, d);
    }
    kedge_key_wipe(&pair);
    return err ? err : read_file(k, path, d);
}

/* One mutex covers looking and making, so two uploads of one job that begin at the same time get one key.
 */
int kedge_blob_keys_get(struct kedge_blob_keys *keys, const struct kedge_id *name,
                        struct kedge_blob_key_id *ret_id, struct kedge_seed *ret, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], file[KEDGE_ID_MAX + 8];
    pthread_mutex_lock(&keys->mutex);
    struct entry *e = find_name(keys, name);
    int err = KEDGE_OK;
    if (!e) {
        snprintf(file, sizeof file, "%s.pem", name->s);
        err = kedge_path_join(path, keys->dir, file);
        err = err ? kedge_diag_set(reterr, err, "%s: path too long", keys->dir) : KEDGE_OK;
        if (!err) {
            err = kedge_file_exists(path) ? read_file(keys, path, reterr) : make(keys, path, reterr);
        }
        e = err ? NULL : find_name(keys, name);
        if (!err && !e) {
            err = kedge_diag_set(reterr, KEDGE_E_KEY, "%s: the same key under two names", path);
        }
    }
    if (!err) {
        err = take_seed(e, ret, reterr);
    }
    if (!err) {
        *ret_id = e->id;
    }
    pthread_mutex_unlock(&keys->mutex);
    return err;
}

/* ---- the end of a key ---- */

/* Random bytes over all of it, where the file system writes in place. In place and synced, before the
 * name goes: unlinking alone leaves the bytes on the disk. Where the file system writes elsewhere this
 * does nothing, which docs/modules/store.md says. */
static int overwrite(const char *path, struct kedge_diag *d)
{
    uint8_t noise[KEDGE_PEM_MAX];
    struct stat st;
    int fd = kedge_file_open(path, O_WRONLY | O_NOFOLLOW, d);
    if (fd < 0) {
        return fd;
    }
    kedge_os_random(noise, sizeof noise);
    int err = fstat(fd, &st) == 0 && st.st_size <= (off_t)sizeof noise ? KEDGE_OK : KEDGE_E_IO;
    if (!err) {
        err = kedge_fd_write(fd, kedge_view_of(noise, (size_t)st.st_size));
    }
    if (!err && fsync(fd) != 0) {
        err = kedge_errno(errno);
    }
    close(fd);
    return err ? kedge_diag_set(d, err, "%s: cannot be overwritten", path) : KEDGE_OK;
}

static int end_file(const char *path, struct kedge_diag *d)
{
    int err = overwrite(path, d);
    if (!err && unlink(path) != 0 && errno != ENOENT) {
        err = kedge_diag_set(d, kedge_errno(errno), "%s: cannot be removed", path);
    }
    return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
}

static bool is_going(const char *name)
{
    size_t len = strlen(name), tail = strlen(going);
    return len > tail && strcmp(name + len - tail, going) == 0;
}

/* Keys whose destruction a crash interrupted: the order was given, so it is carried out before anything
 * else. */
int kedge_blob_keys_finish(struct kedge_blob_keys *keys, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    DIR *dir = opendir(keys->dir);
    const struct dirent *e;
    int err = KEDGE_OK;
    while (dir && !err && (e = readdir(dir)) != NULL) {
        if (is_going(e->d_name) && kedge_path_join(path, keys->dir, e->d_name) == KEDGE_OK) {
            err = end_file(path, reterr);
            if (!err) {
                err = kedge_dir_sync(keys->dir);
            }
        }
    }
    if (dir) {
        closedir(dir);
    }
    return err;
}

static int end_key(const struct kedge_blob_keys *keys, const struct entry *e, struct kedge_diag *reterr)
{
    char gone[KEDGE_PATH_MAX];
    if (snprintf(gone, sizeof gone, "%.*s%s", (int)strlen(e->path) - 4, e->path, going) >= KEDGE_PATH_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    if (rename(e->path, gone) != 0) {
        return kedge_diag_set(reterr, kedge_errno(errno), "%s: cannot be renamed", e->path);
    }
    KEDGE_TRY(kedge_dir_sync(keys->dir));
    KEDGE_TRY(end_file(gone, reterr));
    return kedge_dir_sync(keys->dir);
}

/* First it gets a name that is no key's: were it overwritten under its own, a crash in between would
 * leave a key that nobody can read, and with which no store opens. The entry is removed from memory only
 * after the file is gone; an error leaves a key that still works, and a later call tries again. */
int kedge_blob_keys_destroy(struct kedge_blob_keys *keys, const struct kedge_id *name,
                            struct kedge_diag *reterr)
{
    pthread_mutex_lock(&keys->mutex);
    struct entry *e = find_name(keys, name);
    int err = e ? end_key(keys, e, reterr)
                : kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "%s: no key \"%s\"", keys->dir, name->s);
    if (!err) {
        forget(e);
        *e = keys->entries[--keys->count];
        kedge_wipe(&keys->entries[keys->count], sizeof *e);
    }
    pthread_mutex_unlock(&keys->mutex);
    return err;
}
