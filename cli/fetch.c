/* Piece by piece into a file beside the one that is wanted, hashed on the way. The file gets its name only
 * when the digest is the one on record, so a name that exists always stands for the right bytes, and an
 * interrupted command leaves at most a ".part". */
#include "cli/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/try.h"
#include "common/tensor/layout.h"

/* What is fetched is a model, at most as long as one can be. */
#define BLOB_MAX (sizeof(float) * KEDGE_LAYOUT_VALUES_MAX + KEDGE_TENSOR_HEADER_MAX + 8)

struct fetch {
    struct kedge_cli *c;
    struct kedge_net_client *client;
    struct kedge_hasher *hasher;
    struct kedge_msg_blob_get get;
    int fd;
    uint64_t total;
};

/* A coordinator may answer anything. A piece must begin where it was asked for, must not be empty, and must
 * keep to the length that the first piece told: else the file could grow without end, or be put together of
 * two. That the bytes are right is found out once, by the digest at the end. */
static int take_piece(struct fetch *f, const struct kedge_msg *msg, struct kedge_diag *d)
{
    const struct kedge_msg_chunk *chunk = &msg->u.chunk;
    if (msg->type == KEDGE_MSG_ERROR) {
        f->c->told = true;
        return kedge_diag_set(d, kedge_msg_error_code(msg), "%.*s", (int)msg->u.error.text.len,
                              (const char *)msg->u.error.text.ptr);
    }
    bool begins = f->get.offset == 0;
    if (msg->type != KEDGE_MSG_CHUNK || chunk->offset != f->get.offset || chunk->total > BLOB_MAX
        || (!begins && chunk->total != f->total) || chunk->data.len == 0
        || chunk->data.len > chunk->total - chunk->offset) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator gave an answer that is none");
    }
    f->total = chunk->total;
    kedge_hasher_update(f->hasher, chunk->data);
    int err = kedge_fd_write(f->fd, chunk->data);
    if (err) {
        return kedge_diag_set(d, err, "the file cannot be written: %s", strerror(errno));
    }
    f->get.offset += chunk->data.len;
    return KEDGE_OK;
}

/* At least a byte comes with each call, so that there is an end. */
static int fetch_all(struct fetch *f, struct kedge_diag *d)
{
    struct kedge_net_reply reply = {.impl = NULL};
    struct kedge_buf frame;
    int err = KEDGE_OK;
    kedge_buf_init(&frame, KEDGE_FRAME_MAX);
    do {
        struct kedge_msg msg = {.type = KEDGE_MSG_BLOB_GET}, answer;
        msg.u.blob_get = f->get;
        kedge_buf_clear(&frame);
        err = kedge_msg_encode(&msg, &frame);
        if (!err) {
            err = kedge_cli_call(f->client, kedge_buf_view(&frame), &reply, &answer);
        }
        err = err ? kedge_diag_set(d, err, "coordinator at %s: %s",
                                   f->c->connect ? f->c->connect : f->c->state, kedge_strerror(err))
                  : take_piece(f, &answer, d);
    } while (!err && f->get.offset < f->total && !kedge_cli_interrupted());
    err = !err && f->get.offset < f->total ? kedge_diag_set(d, KEDGE_E_CANCELLED, "interrupted") : err;
    kedge_net_reply_release(&reply);
    kedge_buf_deinit(&frame);
    return err;
}

/* Into the file that is open. */
static int fetch_blob(struct fetch *f, struct kedge_diag *d)
{
    struct kedge_key_pair key;
    struct kedge_public_key server;
    struct kedge_hash got, expected;
    int err = kedge_hasher_new(&f->hasher);
    if (err) {
        return kedge_diag_set(d, err, "%s", kedge_strerror(err));
    }
    memcpy(expected.b, f->get.digest, sizeof expected.b);
    f->c->told = false;
    err = kedge_cli_dial(f->c, &key, &server, &f->client, d);
    if (!err) {
        err = fetch_all(f, d);
    }
    kedge_net_client_close(f->client);
    kedge_key_wipe(&key);
    kedge_hasher_final(f->hasher, &got);
    kedge_hasher_free(f->hasher);
    return err || kedge_hash_eq(&expected, &got)
               ? err
               : kedge_diag_set(d, KEDGE_E_BLOB_DIGEST,
                                "what the coordinator sent has another SHA-256 than the one on record");
}

/* The file is synced before it gets its name. Whatever fails, the ".part" is removed: it is of no use to a
 * later try, which begins anew. */
int kedge_cli_fetch(struct kedge_cli *c, const char *job, const struct kedge_hash *digest, const char *path,
                    uint64_t *ret_size, struct kedge_diag *d)
{
    char part[KEDGE_PATH_MAX];
    struct fetch f = {.c = c, .get = {.max = KEDGE_CHUNK_MAX}};
    memcpy(f.get.digest, digest->b, sizeof digest->b);
    int n = snprintf(part, sizeof part, "%s.part", path);
    KEDGE_TRY(n > 0 && (size_t)n < sizeof part ? kedge_id_from(kedge_view_str(job), &f.get.job)
                                               : kedge_diag_set(d, KEDGE_E_TOO_LONG, "path too long"));
    f.fd = kedge_file_open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, d);
    if (f.fd < 0) {
        return f.fd;
    }
    int err = fetch_blob(&f, d);
    if (fsync(f.fd) != 0 && !err) {
        err = kedge_diag_set(d, kedge_errno(errno), "%s: %s", part, strerror(errno));
    }
    if (close(f.fd) != 0 && !err) {
        err = kedge_diag_set(d, kedge_errno(errno), "%s: %s", part, strerror(errno));
    }
    if (!err && rename(part, path) != 0) {
        err = kedge_diag_set(d, kedge_errno(errno), "%s: %s", path, strerror(errno));
    }
    if (err) {
        (void)unlink(part);
        return err;
    }
    *ret_size = f.total;
    return KEDGE_OK;
}
