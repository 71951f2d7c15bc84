/* The end of keys: when nothing is left that they encrypt.
 *
 * A key may be destroyed only when no blob and no open upload is encrypted under it, and when the caller
 * (the coordinator, who knows the ledger) says that the job's updates are all to be erased. Destroying it
 * too early would lose updates that an audit needs; too late, backups stay readable longer than was
 * promised. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "chain/store/blob/blobs_impl.h"
#include "common/base/mem.h"
#include "common/base/try.h"

struct key {
    struct kedge_id name;
    struct kedge_blob_key_id id;
    bool used;
};

struct users {
    struct key *keys;
    size_t count;
};

static void mark(const struct users *u, const struct kedge_blob_key_id *id)
{
    for (size_t i = 0; i < u->count; i++) {
        u->keys[i].used = u->keys[i].used || memcmp(u->keys[i].id.b, id->b, sizeof id->b) == 0;
    }
}

/* The key that the file at path is encrypted under. Only the head is read: no key is needed to know under
 * which key a file is. */
static bool read_key_id(const char *path, struct kedge_blob_key_id *ret)
{
    uint8_t head[KEDGE_BLOB_HEAD_LEN];
    enum kedge_aead aead;
    uint64_t begin, len;
    int fd = kedgei_blob_open(path, &begin, &len, NULL);
    bool is = fd >= 0 && len >= sizeof head && kedge_fd_read_at(fd, head, sizeof head, begin) == KEDGE_OK
              && kedge_blob_head_read(head, &aead, ret) == KEDGE_OK;
    if (fd >= 0) {
        close(fd);
    }
    return is;
}

static enum kedge_blob_verdict mark_file(void *arg, const struct kedge_hash *digest, uint64_t size,
                                         const char *path)
{
    struct kedge_blob_key_id id;
    (void)size;
    if (digest && read_key_id(path, &id)) {
        mark(arg, &id);
    }
    return KEDGE_BLOB_KEEP;
}

static int list_keys(struct kedge_blobs *b, struct users *u)
{
    size_t most = kedge_blob_keys_count(b->keys);
    struct key k = {.used = false};
    u->keys = kedge_mem_new(most + 1, sizeof *u->keys);
    KEDGE_TRY_MEM(u->keys);
    for (size_t i = 0; i < most && kedge_blob_keys_at(b->keys, i, &k.name, &k.id); i++) {
        if (k.name.s[0]) {
            u->keys[u->count++] = k;
        }
    }
    return KEDGE_OK;
}

/* Uploads that nobody has open: their key goes, and so do they. Before the key: an upload that nobody has
 * open could otherwise be resumed later, under a key that does not exist any more. */
static int drop_staged(const struct kedge_blobs *b, const struct key *k, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_key_id id;
    DIR *dir = opendir(b->staging_dir);
    if (!dir) {
        int err = kedge_errno(errno);
        return kedge_diag_set(d, err, "%s: cannot be listed", b->staging_dir);
    }
    const struct dirent *e;
    int err = KEDGE_OK;
    while (!err && (e = readdir(dir)) != NULL) {
        if (e->d_name[0] != '.' && kedge_path_join(path, b->staging_dir, e->d_name) == KEDGE_OK
            && read_key_id(path, &id) && memcmp(id.b, k->id.b, sizeof id.b) == 0 && unlink(path) != 0
            && errno != ENOENT) {
            err = kedge_diag_set(d, kedge_errno(errno), "%s: cannot be removed", path);
        }
    }
    closedir(dir);
    return err;
}

/* What an earlier call left unfinished comes first. Keys of open uploads count as used; that no upload of
 * the job begins meanwhile is part of what `may` says yes to, for the job has ended. */
int kedge_blobs_shred(struct kedge_blobs *b, kedge_blobs_may_shred *may, void *arg, size_t *ret_count,
                      struct kedge_diag *reterr)
{
    struct users u = {.count = 0};
    struct kedge_blob_key_id id;
    size_t done = 0;
    int err = b->keys ? kedge_blob_keys_finish(b->keys, reterr) : KEDGE_OK;
    if (err) {
        *ret_count = 0;
        return err;
    }
    err = b->keys ? list_keys(b, &u) : KEDGE_OK;
    if (err || u.count == 0) {
        kedge_mem_free(u.keys);
        *ret_count = 0;
        return err ? kedge_diag_set(reterr, err, "%s: out of memory", b->blobs_dir) : KEDGE_OK;
    }
    pthread_mutex_lock(&b->mutex);
    for (const struct kedge_upload *up = b->uploads; up; up = kedgei_upload_next(up)) {
        if (kedgei_upload_key(up, &id)) {
            mark(&u, &id);
        }
    }
    pthread_mutex_unlock(&b->mutex);
    err = kedge_blobs_for_each(b, mark_file, &u, reterr);
    for (size_t i = 0; i < u.count && !err; i++) {
        if (!u.keys[i].used && may(arg, &u.keys[i].name)) {
            err = drop_staged(b, &u.keys[i], reterr);
            if (!err) {
                err = kedge_blob_keys_destroy(b->keys, &u.keys[i].name, reterr);
            }
            done += !err;
        }
    }
    kedge_mem_free(u.keys);
    *ret_count = done;
    return err;
}
