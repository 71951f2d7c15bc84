/* Models come, updates go: by pieces, resumed where the other side is, checked by digest. On the work thread.
 *
 * Nothing that arrives is used before the SHA-256 over the whole file is the one that the task names, so a
 * piece may come packed, as a difference, or from a coordinator that restarted in between, and none of it has
 * to be trusted. Files here are not synced: after a power cut they are checked once (is_sound) and fetched
 * again if need be. An upload asks where to go on before it sends a large file, as the coordinator may have
 * most of it from an attempt that was cut off. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/daemon/host.h"
#include "client/daemon/update/base.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"
#include "common/wire/packed.h"

/* Large files go by pieces that stay in a processor's cache from the wire to the hash and the file. */
enum { PIECE = 1024 * 1024, SLICE = 64 * KEDGE_PACKED_BLOCK };
enum {
    CHUNK_TIMEOUT_MS = 60000,
    BUSY_TRIES = 200,
    BUSY_PAUSE_MS = 10,
    LATER_MAX_MS = 5000, /* however long it says: what is at work here must get on */
    LATER_STEP_MS = 100
};

struct transfer_item {
    struct kedge_site_item item;
    struct kedge_site_effect fx;
    int err;
    enum kedge_trouble trouble;
    char why[KEDGE_STATUS_TEXT_MAX]; /* in words; "": err says it */
};

static int call(struct kedge_client_work *w, const struct kedge_msg *msg, struct kedge_net_reply *reply,
                struct kedge_msg *ret)
{
    struct kedge_buf frame;
    kedge_buf_init(&frame, KEDGE_FRAME_MAX);
    int err = kedge_msg_encode(msg, &frame);
    if (!err) {
        err = kedge_net_call(w->h->net, kedge_buf_view(&frame), CHUNK_TIMEOUT_MS, reply);
    }
    kedge_buf_deinit(&frame);
    return err ? err : kedge_msg_decode(reply->view, ret);
}

/* KEDGE_OK for an answer that is no error. An answer "come back in …" is one that has been waited for: then
 * the piece may be asked for again, and the error is KEDGE_E_BUSY. The wait is cut into steps, each of which
 * looks whether the work was given up, so that a stop of the daemon does not take as long as a busy
 * coordinator likes. */
static int take_error(struct kedge_client_work *w, uint64_t serial, const struct kedge_msg *answer)
{
    if (answer->type != KEDGE_MSG_ERROR) {
        return KEDGE_OK;
    }
    uint32_t told = answer->u.error.retry_ms;
    uint32_t later = told < BUSY_PAUSE_MS ? BUSY_PAUSE_MS : told < LATER_MAX_MS ? told : LATER_MAX_MS;
    int err = kedge_msg_error_code(answer);
    for (uint32_t waited = 0; err == KEDGE_E_BUSY && waited < later; waited += LATER_STEP_MS) {
        if (kedge_client_aborted(w, serial)) {
            return KEDGE_E_CANCELLED;
        }
        kedge_os_sleep_ms(later - waited < LATER_STEP_MS ? later - waited : LATER_STEP_MS);
    }
    return err;
}

/* ---- fetch ---- */

/* A download on its way into fd, which holds `base`'s model when there is one: overwritten piece by piece. */
struct fetch {
    const struct kedge_site_effect *fx;
    const struct kedge_site_digest *base; /* NULL: whatever is in the file, pieces come whole */
    struct kedge_hasher *hasher;
    int fd;
    uint64_t offset;
};

static int keep(struct fetch *f, struct kedge_view bytes)
{
    kedge_hasher_update(f->hasher, bytes);
    int err = kedge_fd_write(f->fd, bytes);
    f->offset += err ? 0 : bytes.len;
    return err;
}

/* A piece as what it has that the base has not. */
static int keep_since(struct fetch *f, const struct kedge_msg_chunk_packed *c)
{
    uint8_t slice[SLICE], before[SLICE];
    struct kedge_unpacker u;
    int err = kedge_unpack_begin(&u, c->data, c->len);
    for (size_t n; !err && (n = kedge_unpack(&u, slice, sizeof slice)) > 0;) {
        err = kedge_fd_read_at(f->fd, before, n, f->offset);
        if (!err) {
            kedge_words_add(slice, before, n);
            err = keep(f, kedge_view_of(slice, n));
        }
    }
    return err;
}

/* Every number of an answer is held against what was asked for before a byte is taken: the offset must be
 * ours, the total the task's, and a piece may be neither empty (that would never end) nor longer than what is
 * left. */
static int take_piece(struct fetch *f, const struct kedge_msg *answer)
{
    const uint64_t total = f->fx->len, left = total - f->offset;
    const struct kedge_msg_chunk *c = &answer->u.chunk;
    const struct kedge_msg_chunk_packed *p = &answer->u.chunk_packed;
    if (answer->type == KEDGE_MSG_CHUNK && c->offset == f->offset && c->total == total && c->data.len > 0
        && c->data.len <= left) {
        return keep(f, c->data);
    }
    if (answer->type == KEDGE_MSG_CHUNK_PACKED && f->base && p->offset == f->offset && p->total == total
        && p->len <= left) {
        return keep_since(f, p);
    }
    return KEDGE_E_FORMAT;
}

static int fetch_piece(struct kedge_client_work *w, struct fetch *f)
{
    const struct kedge_site_effect *fx = f->fx;
    uint32_t max = fx->len <= KEDGE_CHUNK_MAX ? KEDGE_CHUNK_MAX : PIECE;
    struct kedge_msg msg = {.type = KEDGE_MSG_BLOB_GET}, answer;
    struct kedge_net_reply reply KEDGE_CLEANUP(kedge_net_reply_release) = {.impl = NULL};
    if (f->base) {
        msg.type = KEDGE_MSG_BLOB_GET_SINCE;
        msg.u.blob_get_since =
            (struct kedge_msg_blob_get_since){.job = fx->task.job, .offset = f->offset, .max = max};
        memcpy(msg.u.blob_get_since.digest, fx->digest.b, sizeof fx->digest.b);
        memcpy(msg.u.blob_get_since.base, f->base->b, sizeof f->base->b);
    } else {
        msg.u.blob_get = (struct kedge_msg_blob_get){.job = fx->task.job, .offset = f->offset, .max = max};
        memcpy(msg.u.blob_get.digest, fx->digest.b, sizeof fx->digest.b);
    }
    KEDGE_TRY(call(w, &msg, &reply, &answer));
    KEDGE_TRY(take_error(w, fx->serial, &answer));
    return take_piece(f, &answer);
}

/* Downloads to a temporary file and renames it when the digest is right; where there is `old`, the file of
 * the model base, in its room and as what is new since then. Not synced: it can be fetched again, and whole,
 * for a failure leaves no base behind. */
static int fetch_file(struct kedge_client_work *w, const struct kedge_site_effect *fx, const char *path,
                      const char *old, const struct kedge_site_digest *base)
{
    char temporary[KEDGE_PATH_MAX + 8];
    struct kedge_hash digest;
    struct fetch f = {.fx = fx, .fd = -1};
    snprintf(temporary, sizeof temporary, "%s.part", path);
    KEDGE_TRY(kedge_hasher_new(&f.hasher));
    if (old) {
        f.base = base && kedge_file_size(old) == (int64_t)fx->len ? base : NULL;
        kedge_client_reuse_give(old, temporary);
    }
    unsigned busy = 0;
    int err = kedge_client_reuse_begin(temporary, &f.fd);
    while (!err && f.offset < fx->len) {
        err = kedge_client_aborted(w, fx->serial) ? KEDGE_E_CANCELLED : fetch_piece(w, &f);
        err = err == KEDGE_E_BUSY && busy++ < BUSY_TRIES ? KEDGE_OK : err; /* its time has been waited for */
    }
    kedge_hasher_final(f.hasher, &digest);
    kedge_hasher_free(f.hasher);
    int end_err = f.fd >= 0 ? kedge_client_reuse_end(f.fd, err ? 0 : fx->len) : KEDGE_OK;
    if (!err) {
        err = end_err;
    }
    if (!err && memcmp(digest.b, fx->digest.b, sizeof digest.b) != 0) {
        err = KEDGE_E_BLOB_DIGEST;
    }
    if (!err && rename(temporary, path) != 0) {
        err = kedge_errno(errno);
    }
    if (err && f.fd >= 0) {
        unlink(temporary);
    }
    return err;
}

/* Whether a file of a former process is still what its name says: files here are not synced, so a power cut
 * may have left any bytes in one of the right length. */
static bool is_sound(const char *path, uint64_t len, const struct kedge_site_digest *digest)
{
    struct kedge_hasher *hasher;
    struct kedge_hash found;
    if (kedge_file_size(path) != (int64_t)len || kedge_hasher_new(&hasher) != KEDGE_OK) {
        return false;
    }
    size_t piece_len = len < PIECE ? (size_t)len : PIECE;
    uint8_t *piece = kedge_mem_new(piece_len, 1);
    int fd = piece ? kedge_file_open(path, O_RDONLY | O_NOFOLLOW, NULL) : -1;
    bool whole = fd >= 0;
    for (uint64_t at = 0; whole && at < len;) {
        size_t n = len - at < piece_len ? (size_t)(len - at) : piece_len;
        whole = kedge_fd_read_at(fd, piece, n, at) == KEDGE_OK;
        kedge_hasher_update(hasher, (struct kedge_view){piece, whole ? n : 0});
        at += n;
    }
    if (fd >= 0) {
        close(fd);
    }
    kedge_mem_free(piece);
    kedge_hasher_final(hasher, &found);
    kedge_hasher_free(hasher);
    return whole && memcmp(found.b, digest->b, sizeof found.b) == 0;
}

/* Where a blob of this kind is kept, and the digest of the last one; one of each kind is kept. */
static const char *kind_of(struct kedge_client_work *w, enum kedge_site_blob blob,
                           struct kedge_site_digest **ret_last)
{
    switch (blob) {
    case KEDGE_SITE_BLOB_MODEL:
        *ret_last = &w->model_digest;
        return "model";
    case KEDGE_SITE_BLOB_CONTROL: /* or the base, which does not stay here */
        *ret_last = &w->control_digest;
        return "control";
    case KEDGE_SITE_BLOB_TRIAL:
        *ret_last = &w->trial_digest;
        return "trial";
    case KEDGE_SITE_BLOB_SPEC:
        break;
    }
    *ret_last = NULL;
    return "spec";
}

/* Models of other tasks go, also those of a task that was given up between several: what stays is what this
 * one chooses between or, where it has one, that and the former one, whose room it takes. */
static void drop_models(const struct kedge_client_work *w, const struct kedge_site_effect *fx)
{
    const struct kedge_site_digest both[] = {fx->digest, w->model_digest};
    bool chooses = fx->task.choice_count > 0;
    kedge_client_work_trim(w, "model", chooses ? fx->task.choices : both,
                           chooses ? fx->task.choice_count : 2);
}

/* A model is as long as its spec says, and nothing else is fetched: whatever the coordinator calls it, a file
 * that cannot be the job's model would only fill the disk. */
static int check_len(struct kedge_client_work *w, const struct kedge_site_effect *fx, struct kedge_diag *d)
{
    if (fx->blob == KEDGE_SITE_BLOB_SPEC) {
        return KEDGE_OK;
    }
    struct kedge_layout control;
    KEDGE_TRY(kedge_client_spec(w, &fx->task.job, &fx->task.spec, d));
    KEDGE_TRY(kedge_client_whole_check(w, d));
    KEDGE_TRY(kedge_client_base_check(w, &fx->task, d));
    const bool beside = fx->blob == KEDGE_SITE_BLOB_CONTROL, is_base = kedge_job_spec_has_base(w->spec);
    const bool variate = beside && !is_base;
    KEDGE_TRY(variate ? kedge_job_spec_control_layout(&w->layout, &control, d) : KEDGE_OK);
    const struct kedge_layout *layout = variate ? &control : beside ? &w->whole : &w->layout;
    const uint64_t expected = kedge_safetensors_file_len(layout, KEDGE_DTYPE_F32);
    if (variate) {
        kedge_layout_deinit(&control);
    }
    return fx->len == expected
               ? KEDGE_OK
               : kedge_diag_set(
                   d, KEDGE_E_DENIED,
                   "the coordinator offers %llu bytes as the job's model, expected %llu by its spec",
                   (unsigned long long)fx->len, (unsigned long long)expected);
}

/* The base of a job, once: in the work's folder until it is whole, then beside those of other jobs. */
static int fetch_base(struct kedge_client_work *w, const struct kedge_site_effect *fx, const char *path,
                      struct kedge_diag *d)
{
    char kept[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_client_base_path(w, &fx->digest, kept, d));
    const bool known = memcmp(w->base_digest.b, fx->digest.b, sizeof fx->digest.b) == 0;
    if (!(known && kedge_file_size(kept) == (int64_t)fx->len) && !is_sound(kept, fx->len, &fx->digest)) {
        KEDGE_TRY(fetch_file(w, fx, path, NULL, NULL));
        KEDGE_TRY(rename(path, kept) == 0 ? KEDGE_OK : kedge_errno(errno));
        kedge_log(KEDGE_LOG_INFO, "base fetched", "job=%s bytes=%llu", fx->task.job.s,
                  (unsigned long long)fx->len);
    }
    w->base_digest = fx->digest;
    kedge_client_base_used(w, kept);
    return KEDGE_OK;
}

/* A model, a control variate or a trial: of each kind the last one is here. */
static int fetch_vector(struct kedge_client_work *w, const struct kedge_site_effect *fx, const char *kind,
                        struct kedge_site_digest *last, const char *path)
{
    char old[KEDGE_PATH_MAX];
    const bool known = memcmp(last, &fx->digest, sizeof *last) == 0;
    if (!(known && kedge_file_size(path) == (int64_t)fx->len) && !is_sound(path, fx->len, &fx->digest)) {
        const bool since = fx->blob == KEDGE_SITE_BLOB_MODEL; /* what is new since the former model */
        const bool replaces = !known && kedge_client_work_path(w, kind, last, old) == KEDGE_OK
                              && !(since && fx->task.choice_count > 0);
        KEDGE_TRY(fetch_file(w, fx, path, replaces ? old : NULL, since ? last : NULL));
    }
    *last = fx->digest;
    return KEDGE_OK;
}

static int fetch_spec(struct kedge_client_work *w, const struct kedge_site_effect *fx, const char *path,
                      struct kedge_diag *d)
{
    const bool known = w->spec && memcmp(w->spec_digest.b, fx->digest.b, sizeof w->spec_digest.b) == 0;
    if (!(known && kedge_file_size(path) == (int64_t)fx->len) && !is_sound(path, fx->len, &fx->digest)) {
        KEDGE_TRY(fetch_file(w, fx, path, NULL, NULL));
    }
    return kedge_client_spec(w, &fx->task.job, &fx->digest, d);
}

static int fetch_blob(struct kedge_client_work *w, const struct kedge_site_effect *fx, struct kedge_diag *d)
{
    struct kedge_site_digest *last;
    char path[KEDGE_PATH_MAX];
    const char *kind = kind_of(w, fx->blob, &last);
    KEDGE_TRY(kedge_client_work_path(w, kind, &fx->digest, path));
    KEDGE_TRY(check_len(w, fx, d));
    if (fx->blob == KEDGE_SITE_BLOB_SPEC) {
        return fetch_spec(w, fx, path, d);
    }
    if (fx->blob == KEDGE_SITE_BLOB_MODEL) {
        drop_models(w, fx);
    }
    return fx->blob == KEDGE_SITE_BLOB_CONTROL && kedge_job_spec_has_base(w->spec)
               ? fetch_base(w, fx, path, d)
               : fetch_vector(w, fx, kind, last, path);
}

static void fetch_run(struct kedge_client_work *w, struct kedge_site_item *item)
{
    struct transfer_item *t = (struct transfer_item *)item;
    struct kedge_diag d = {.text = ""};
    w->trouble = KEDGE_TROUBLE_NONE;
    t->err = fetch_blob(w, &t->fx, &d);
    if (t->err) {
        bool ours = t->err == KEDGE_E_DISK_FULL; /* else there is no folder to name */
        snprintf(t->why, sizeof t->why, "%.150s%s%.*s", ours ? w->h->dir : "", ours ? ": " : "",
                 ours ? 100 : KEDGE_STATUS_TEXT_MAX - 1, d.text[0] ? d.text : kedge_strerror(t->err));
        kedge_log(KEDGE_LOG_WARN, "fetch", "job=%s: %s", t->fx.task.job.s, t->why);
    }
    t->trouble = w->trouble;
}

static void fetch_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    struct transfer_item *t = (struct transfer_item *)item;
    struct kedge_site_event ev = {.type = t->err ? KEDGE_SITE_EV_FETCH_FAILED : KEDGE_SITE_EV_FETCHED,
                                  .serial = t->fx.serial,
                                  .err = t->err};
    kedge_client_ended_note(item->work, t->trouble, t->why[0] ? t->why : kedge_strerror(t->err), &ev);
    kedge_client_service_step(h, &ev, t->why);
    kedge_mem_free(t);
}

static void start(struct kedge_site_host *h, const struct kedge_site_effect *fx,
                  void (*run)(struct kedge_client_work *, struct kedge_site_item *),
                  void (*handle)(struct kedge_site_host *, struct kedge_site_item *))
{
    struct transfer_item *t = kedge_mem_new(1, sizeof *t);
    KEDGE_ASSERT(t);
    *t = (struct transfer_item){.item = {.run = run, .handle = handle}, .fx = *fx};
    kedge_client_works_do(&h->works[fx->work], &t->item);
}

void kedge_client_fetch(struct kedge_site_host *h, const struct kedge_site_effect *fx)
{
    start(h, fx, fetch_run, fetch_handle);
}

/* ---- upload ---- */

/* The request for a piece, without its payload, and how long that will be. A piece goes packed only if that
 * is shorter, so an update that does not compress costs nothing but the look at it. */
static struct kedge_msg put_of(const struct kedge_site_result *r, uint64_t offset, size_t len,
                               size_t packed_len)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_BLOB_PUT};
    struct kedge_msg_blob_put *p = &msg.u.blob_put;
    if (packed_len < len) {
        struct kedge_msg_blob_put_packed *q = &msg.u.blob_put_packed;
        msg.type = KEDGE_MSG_BLOB_PUT_PACKED;
        *q = (struct kedge_msg_blob_put_packed){.job = r->job,
                                                .round = r->round,
                                                .group = r->group,
                                                .total = r->update_len,
                                                .offset = offset,
                                                .len = (uint32_t)len,
                                                .data = {NULL, packed_len}};
        memcpy(q->digest, r->update.b, sizeof q->digest);
        return msg;
    }
    *p = (struct kedge_msg_blob_put){.job = r->job,
                                     .round = r->round,
                                     .group = r->group,
                                     .total = r->update_len,
                                     .offset = offset,
                                     .data = {NULL, len}};
    memcpy(p->digest, r->update.b, sizeof p->digest);
    return msg;
}

/* Sends the piece at `offset` (an empty one asks where to go on), packed when that makes it shorter, and
 * learns the next offset. */
static int put_piece(struct kedge_client_work *w, const struct kedge_site_effect *fx, struct kedge_view piece,
                     uint64_t offset, uint64_t *ret_next, bool *ret_complete)
{
    const struct kedge_site_result *r = &fx->result;
    size_t packed_len = kedge_packed_len(piece);
    size_t len = packed_len < piece.len ? packed_len : piece.len;
    struct kedge_msg msg = put_of(r, offset, piece.len, packed_len), answer;
    struct kedge_net_outgoing out;
    struct kedge_net_reply reply KEDGE_CLEANUP(kedge_net_reply_release) = {.impl = NULL};
    uint8_t prefix[KEDGE_MSG_PREFIX_MAX];
    size_t prefix_len;
    KEDGE_TRY(kedge_msg_prefix(&msg, prefix, &prefix_len));
    KEDGE_TRY(kedge_net_call_begin(w->h->net, prefix_len + len, &out));
    memcpy(out.ptr, prefix, prefix_len);
    if (msg.type == KEDGE_MSG_BLOB_PUT_PACKED) {
        if (kedge_pack(piece, out.ptr + prefix_len, len) != len) { /* the file changes under our hands */
            kedge_net_outgoing_discard(&out);
            return KEDGE_E_CORRUPT;
        }
    } else if (len > 0) {
        memcpy(out.ptr + prefix_len, piece.ptr, len);
    }
    KEDGE_TRY(kedge_net_call_send(w->h->net, &out, CHUNK_TIMEOUT_MS, &reply));
    KEDGE_TRY(kedge_msg_decode(reply.view, &answer));
    KEDGE_TRY(take_error(w, fx->serial, &answer));
    if (answer.type != KEDGE_MSG_PUT_OK || answer.u.put_ok.next_offset > r->update_len) {
        return KEDGE_E_FORMAT;
    } else {
        *ret_next = answer.u.put_ok.next_offset;
        *ret_complete = answer.u.put_ok.complete;
    }
    return KEDGE_OK;
}

/* `piece` holds PIECE bytes, or the whole of a file that goes at once. The coordinator says the next offset,
 * and it may be anywhere: forward, where it has more than was sent, or back to 0, where it has lost the file.
 * What bounds the loop is patience and not the number of pieces: BUSY_TRIES answers that say "later", or
 * leave the offset where it was, end it. */
static int upload_pieces(struct kedge_client_work *w, const struct kedge_site_effect *fx, int fd,
                         uint8_t *piece)
{
    uint64_t total = fx->result.update_len;
    uint64_t next = 0;
    bool complete = false;
    uint64_t len =
        total < KEDGE_CHUNK_MAX ? total : 0; /* a small file goes at once, a large one asks first */
    for (unsigned busy = 0; !complete;) {
        uint64_t before = next;
        if (kedge_client_aborted(w, fx->serial)) {
            return KEDGE_E_CANCELLED;
        }
        KEDGE_TRY(kedge_fd_read_at(fd, piece, (size_t)len, next));
        int err = put_piece(w, fx, kedge_view_of(piece, (size_t)len), next, &next, &complete);
        if (err && (err != KEDGE_E_BUSY || busy++ >= BUSY_TRIES)) {
            return err; /* a "later" below the bound has been waited for */
        }
        if (!err && !complete && next == before && ++busy > BUSY_TRIES) {
            return KEDGE_E_STATE; /* no progress */
        }
        len = total - next < PIECE ? total - next : PIECE;
    }
    return KEDGE_OK;
}

/* Read and not mapped: where the disk fails, that is this update's error, and no signal for the daemon. */
static int upload_file(struct kedge_client_work *w, const struct kedge_site_effect *fx, const char *path)
{
    uint64_t total = fx->result.update_len;
    struct stat st;
    int fd = kedge_file_open(path, O_RDONLY | O_NOFOLLOW, NULL);
    if (fd < 0) {
        return fd;
    }
    bool whole = fstat(fd, &st) == 0 && (uint64_t)st.st_size == total;
    uint8_t *piece = whole ? kedge_mem_new(total < KEDGE_CHUNK_MAX ? (size_t)total + 1 : PIECE, 1) : NULL;
    int err = !whole ? KEDGE_E_CORRUPT : !piece ? KEDGE_E_NOMEM : upload_pieces(w, fx, fd, piece);
    kedge_mem_free(piece);
    close(fd);
    return err;
}

static void upload_run(struct kedge_client_work *w, struct kedge_site_item *item)
{
    struct transfer_item *t = (struct transfer_item *)item;
    char path[KEDGE_PATH_MAX];
    t->err = kedge_client_work_path(w, "update", &t->fx.result.update, path);
    t->err = t->err ? t->err : upload_file(w, &t->fx, path);
    if (t->err) {
        kedge_log(KEDGE_LOG_WARN, "upload", "job=%s round=%u: %s", t->fx.result.job.s, t->fx.result.round,
                  kedge_strerror(t->err));
    }
}

static void upload_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    struct transfer_item *t = (struct transfer_item *)item;
    struct kedge_site_event ev = {.type = t->err ? KEDGE_SITE_EV_UPLOAD_FAILED : KEDGE_SITE_EV_UPLOADED,
                                  .serial = t->fx.serial,
                                  .err = t->err};
    kedge_mem_free(t);
    kedge_client_step(h, &ev);
}

void kedge_client_upload(struct kedge_site_host *h, const struct kedge_site_effect *fx)
{
    start(h, fx, upload_run, upload_handle);
}
