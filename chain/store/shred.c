/* The end of a key: when nothing is left that it encrypts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "chain/store/blobs_impl.h"

struct users {
    struct kedge_blob_key_id id;
    bool found;
};

static bool is_under(const char *path, const struct kedge_blob_key_id *id)
{
    uint8_t head[KEDGE_BLOB_HEAD_LEN];
    struct kedge_blob_key_id is;
    enum kedge_aead aead;
    int fd = kedge_file_open(path, O_RDONLY | O_NOFOLLOW, NULL);
    bool under = fd >= 0 && kedge_fd_read_at(fd, head, sizeof head, 0) == KEDGE_OK
                 && kedge_blob_head_read(head, &aead, &is) == KEDGE_OK
                 && memcmp(is.b, id->b, sizeof is.b) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return under;
}

static enum kedge_blob_verdict find_user(void *arg, const struct kedge_hash *digest, uint64_t size,
                                         const char *path)
{
    struct users *u = arg;
    (void)size;
    u->found = u->found || (digest && is_under(path, &u->id));
    return u->found ? KEDGE_BLOB_STOP : KEDGE_BLOB_KEEP;
}

/* Uploads that nobody has open: their key goes, and so do they. */
static int drop_staged(const struct kedge_blobs *b, const struct kedge_blob_key_id *id, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    DIR *dir = opendir(b->staging_dir);
    if (!dir) {
        int err = kedge_errno(errno);
        return kedge_diag_set(d, err, "%s: cannot be listed", b->staging_dir);
    }
    const struct dirent *e;
    int err = KEDGE_OK;
    while (!err && (e = readdir(dir)) != NULL) {
        if (e->d_name[0] != '.' && kedge_path_join(path, b->staging_dir, e->d_name) == KEDGE_OK
            && is_under(path, id) && unlink(path) != 0 && errno != ENOENT) {
            err = kedge_diag_set(d, kedge_errno(errno), "%s: cannot be removed", path);
        }
    }
    closedir(dir);
    return err;
}

int kedge_blobs_shred(struct kedge_blobs *b, const struct kedge_id *name, bool *ret_done,
                      struct kedge_diag *reterr)
{
    struct users users = {.found = false};
    struct kedge_id is;
    bool known = false;
    *ret_done = false;
    for (size_t i = 0; b->keys && !known && kedge_blob_keys_at(b->keys, i, &is, &users.id); i++) {
        known = is.s[0] && kedge_id_eq(&is, name);
    }
    if (!known) {
        return KEDGE_OK;
    }
    pthread_mutex_lock(&b->mutex);
    for (const struct kedge_upload *u = b->uploads; u; u = kedgei_upload_next(u)) {
        users.found = users.found || kedgei_upload_is_under(u, &users.id);
    }
    pthread_mutex_unlock(&b->mutex);
    int err = users.found ? KEDGE_OK : kedge_blobs_for_each(b, find_user, &users, reterr);
    if (err || users.found) {
        return err;
    }
    err = drop_staged(b, &users.id, reterr);
    err = err ? err : kedge_blob_keys_destroy(b->keys, name, reterr);
    *ret_done = !err;
    return err;
}
