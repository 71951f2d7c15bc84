/* Blob transfer: models and specs go out in chunks, updates come in to a staging file, resumable
 * and hashed on the way. File work runs on workers; who may read or write what is decided on the
 * loop.
 *
 * Every chunk is a request of its own, at an offset that the site names. So a cut link costs one
 * chunk, and no connection holds state beside the open upload. */
#include "coordinator/daemon/sites/blobs.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "common/wire/packed.h"
#include "coordinator/daemon/erase.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/ended_job.h"
#include "coordinator/daemon/rounds/first_models.h"
#include "coordinator/daemon/rounds/rounds.h"
#include "coordinator/daemon/shred.h"
#include "coordinator/daemon/sites/requests.h"
#include "round/update_stream.h"

enum { SLICE = 64 * KEDGE_PACKED_BLOCK };

/* ---- downloads ---- */

struct get_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_hash digest;
    bool has_base; /* the site has this model, and digest is what came of it */
    struct kedge_hash base;
    uint64_t offset;
    uint32_t max;
};

/* The answer was sent by the worker; only the memory goes here. */
static void get_done(struct kedge_host *h, struct kedge_item *item)
{
    (void)h;
    kedge_mem_free(item);
}

/* The chunk is read straight into the frame that goes out: no copy of up to 4 MiB in between. */
static int begin_reply(const struct get_work *w, const struct kedge_msg *msg, size_t len,
                       uint8_t **ret_payload)
{
    uint8_t prefix[KEDGE_MSG_PREFIX_MAX];
    uint8_t *frame;
    size_t prefix_len;
    int err = kedge_msg_prefix(msg, prefix, &prefix_len);
    if (err) {
        return err;
    }
    err = kedge_net_reply_begin(w->req, prefix_len + len, &frame);
    if (err) {
        return err;
    }
    memcpy(frame, prefix, prefix_len);
    *ret_payload = frame + prefix_len;
    return KEDGE_OK;
}

/* A blob, or what it is sent as the difference to. Read and not mapped: where the disk fails, a read is an
 * error for one site, and a map a signal for the whole coordinator. */
static struct kedge_blob_file open_source(const struct kedge_host *h, const struct kedge_hash *digest)
{
    struct kedge_blob_file f = {.fd = -1};
    struct kedge_blob_at at;
    char path[KEDGE_PATH_MAX];
    if (kedge_blobs_at(h->main.blobs, digest, path, &at) == KEDGE_OK
        && kedge_blob_file_open(&at, KEDGE_BLOB_READ, &f, NULL) != KEDGE_OK) {
        f.fd = -1;
    }
    return f;
}

static int send_plain(const struct get_work *w, const struct kedge_blob_file *blob, size_t len)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_CHUNK};
    uint8_t *payload;
    msg.u.chunk = (struct kedge_msg_chunk){.total = blob->size, .offset = w->offset, .data = {NULL, len}};
    KEDGE_TRY(begin_reply(w, &msg, len, &payload));
    KEDGE_TRY(kedge_blob_file_read(blob, w->offset, payload, len));
    kedge_net_reply_send(w->req);
    return KEDGE_OK;
}

/* What the piece has that the base's has not, slice by slice. */
static int read_since(const struct get_work *w, const struct kedge_blob_file *blob,
                      const struct kedge_blob_file *base, uint8_t *out, size_t len)
{
    uint8_t now[SLICE], before[SLICE];
    for (size_t at = 0; at < len; at += SLICE) {
        size_t n = len - at < SLICE ? len - at : SLICE;
        KEDGE_TRY(kedge_blob_file_read(blob, w->offset + at, now, n));
        KEDGE_TRY(kedge_blob_file_read(base, w->offset + at, before, n));
        kedge_words_since(now, before, n, out + at);
    }
    return KEDGE_OK;
}

/* The difference of two models that are one round apart has many equal bytes and packs well. If it
 * does not, the plain piece is sent instead, so a difference never costs more than the model
 * itself. */
static int send_since(const struct get_work *w, const struct kedge_blob_file *blob,
                      const struct kedge_blob_file *base, size_t len)
{
    uint8_t *since = kedge_mem_new(len, 1), *payload;
    int err = since ? read_since(w, blob, base, since, len) : KEDGE_E_NOMEM;
    struct kedge_view piece = kedge_view_of(since, len);
    size_t packed = err ? len : kedge_packed_len(piece);
    if (!err && packed < len) {
        struct kedge_msg msg = {.type = KEDGE_MSG_CHUNK_PACKED};
        msg.u.chunk_packed = (struct kedge_msg_chunk_packed){
            .total = blob->size, .offset = w->offset, .len = (uint32_t)len, .data = {NULL, packed}};
        err = begin_reply(w, &msg, packed, &payload);
        if (!err) {
            kedge_pack(piece, payload, packed);
            kedge_net_reply_send(w->req);
        }
    }
    kedge_mem_free(since);
    return err || packed < len ? err : send_plain(w, blob, len);
}

/* The offset is the peer's and is checked against the file's size before anything is computed with
 * it. */
static void get_run(struct kedge_host *h, struct kedge_work *work)
{
    struct get_work *w = (struct get_work *)work;
    struct kedge_blob_file blob = open_source(h, &w->digest), base = {.fd = -1};
    if (blob.fd < 0) {
        kedge_host_reply_error(w->req, KEDGE_E_NOT_FOUND, 0, "no such blob");
        return;
    }
    if (w->has_base) {
        base = open_source(h, &w->base);
    }
    if (w->offset > blob.size) { /* the peer's mistake, nothing of ours: no line in the log */
        kedge_host_reply_error(w->req, KEDGE_E_ARG, 0, "\"offset\" is after the blob's end");
        kedge_blob_file_close(&blob);
        kedge_blob_file_close(&base);
        return;
    }
    uint64_t left = blob.size - w->offset;
    uint32_t max = w->max < KEDGE_CHUNK_MAX ? w->max : KEDGE_CHUNK_MAX;
    size_t len = max < left ? max : (size_t)left;
    int err = base.fd >= 0 && base.size == blob.size && len > 0 ? send_since(w, &blob, &base, len)
                                                                : send_plain(w, &blob, len);
    if (err) {
        kedge_log(KEDGE_LOG_ERROR, "blob-read", "a blob cannot be read: %s", kedge_strerror(err));
        kedge_host_reply_error(w->req, err, 1000, "the blob cannot be read");
    }
    kedge_blob_file_close(&base);
    kedge_blob_file_close(&blob);
}

/* A base tells as much as the model itself with the difference: it must be the one that the same group had
 * before the round that made this model. */
static bool is_base(const struct kedge_job *job, const struct kedge_hash *digest, const uint8_t *base)
{
    bool found = false;
    for (uint32_t g = 0; job->result && g < job->result->groups; g++) {
        found = found
                || (kedge_hash_eq(&job->result->after[g], digest)
                    && memcmp(job->result->before[g].b, base, KEDGE_HASH_LEN) == 0);
    }
    return found;
}

static void send_later(struct kedge_host *h, const struct get_work *what)
{
    struct get_work *w = kedge_mem_new(1, sizeof *w);
    if (!w) {
        kedge_host_reply_error(what->req, KEDGE_E_NOMEM, 1000, "out of memory");
        return;
    }
    *w = *what;
    kedge_host_work(h, &w->work);
}

/* A site may read the spec of a job that its tenant joined, the models that its tasks or
 * evaluations are about, the control variate of a job in which it takes part, and a trial that it
 * is to judge. Everything else does not exist for it. */
void kedge_host_blob_get(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                         const struct kedge_msg *msg)
{
    const struct kedge_msg_blob_get_since *since = &msg->u.blob_get_since;
    bool is_since = msg->type == KEDGE_MSG_BLOB_GET_SINCE;
    const struct kedge_msg_blob_get get =
        is_since ? (struct kedge_msg_blob_get){.job = since->job, .offset = since->offset, .max = since->max}
                 : msg->u.blob_get;
    struct kedge_job *job = kedge_host_job_find(h, &get.job, false);
    struct kedge_hash digest;
    struct kedge_digest model;
    memcpy(digest.b, is_since ? since->digest : get.digest, sizeof digest.b);
    memcpy(model.b, digest.b, sizeof model.b);
    uint32_t tenant = h->sites[site].tenant;
    bool spec = job && job->joined[tenant] && kedge_hash_eq(&job->spec_digest, &digest);
    if (!job
        || (!spec && !kedge_coord_may_read(h->coord, job->slot, site, &model)
            && !kedge_host_may_read_control(h, job, site, &digest)
            && !kedge_host_may_read_trial(h, job, site, &digest))) {
        kedge_host_reply_error(req, KEDGE_E_NOT_FOUND, 0, "no such blob"); /* nor is it said that it exists */
        return;
    }
    struct get_work w = {.work = {.item = {get_done}, .run = get_run},
                         .req = req,
                         .digest = digest,
                         .has_base = is_since && is_base(job, &digest, since->base),
                         .offset = get.offset,
                         .max = get.max};
    if (w.has_base) {
        memcpy(w.base.b, since->base, sizeof w.base.b);
    }
    send_later(h, &w);
}

void kedge_host_blob_send(struct kedge_host *h, struct kedge_net_request *req,
                          const struct kedge_hash *digest, uint64_t offset, uint32_t max)
{
    const struct get_work w = {.work = {.item = {get_done}, .run = get_run},
                               .req = req,
                               .digest = *digest,
                               .offset = offset,
                               .max = max};
    send_later(h, &w);
}

/* ---- uploads ---- */

struct put_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    uint32_t site, job;
    struct kedge_blobs *blobs;
    struct kedge_id name, key;        /* key: the job's, whose updates are encrypted under one */
    struct kedge_hash digest, former; /* former: of the site's update before this one */
    uint64_t total, offset;
    struct kedge_view data;           /* in the request's frame */
    uint32_t packed;                  /* bytes that data stands for when it is packed; 0: it is plain */
    struct kedge_site_upload *upload; /* the worker's */
    struct kedge_update_stream
        *stream; /* for a new upload, which checks it as it comes; NULL: it is looked at later */
    bool done;
    uint64_t next; /* where to go on */
    int err;
    struct kedge_diag diag;
};

static void reply_put(struct kedge_net_request *req, uint64_t next, bool complete)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_PUT_OK};
    msg.u.put_ok = (struct kedge_msg_put_ok){.next_offset = next, .complete = complete};
    kedge_host_reply(req, &msg);
}

/* Writes, and checks what was written while it is in the cache: so a whole file of updates need not
 * be read again for that. */
static int write_piece(struct put_work *w, uint64_t at, struct kedge_view bytes)
{
    int err = kedge_upload_write(w->upload->file, at, bytes, &w->diag);
    struct kedge_update_stream *stream = kedge_upload_attached(w->upload->file);
    if (!err && stream) {
        kedge_update_stream_feed(stream, at, bytes);
    }
    return err;
}

static void release_stream(void *stream)
{
    kedge_update_stream_close(stream);
}

/* Slice by slice, so that what was unpacked is still in the cache when it is hashed and written. */
static int write_packed(struct put_work *w)
{
    uint8_t slice[SLICE];
    struct kedge_unpacker u;
    uint64_t at = w->offset;
    int err = kedge_unpack_begin(&u, w->data, w->packed);
    if (err) {
        return kedge_diag_set(&w->diag, err, "the piece at %llu is not packed as it should be",
                              (unsigned long long)at);
    }
    for (size_t n; !err && (n = kedge_unpack(&u, slice, sizeof slice)) > 0; at += n) {
        err = write_piece(w, at, kedge_view_of(slice, n));
    }
    return err;
}

/* The offset in the request must be where the upload stands. A piece at another one is not written,
 * and the answer tells the right one: that is how a site finds out after a restart of either side
 * where to go on. The digest is compared when the last byte has come; a file with another one is
 * removed, for nothing of it can be trusted. */
static void put_run(struct kedge_host *h, struct kedge_work *work)
{
    (void)h;
    struct put_work *w = (struct put_work *)work;
    uint64_t at = w->upload->file ? kedge_upload_offset(w->upload->file) : 0;
    int err = KEDGE_OK;
    if (!w->upload->file) {
        if (!kedge_hash_eq(&w->former, &w->digest)) {
            kedge_blobs_drop_cache(w->blobs, &w->former);
        }
        err = kedge_upload_open(w->blobs, &w->name, &w->key, &w->digest, w->total, &w->upload->file, &at,
                                &w->diag);
        if (!err && at == 0 && w->stream) {
            kedge_upload_attach(w->upload->file, w->stream, release_stream);
            w->stream = NULL;
        }
        if (err == KEDGE_E_EXISTS) {
            w->done = true;
            w->next = w->total;
            return;
        }
    }
    if (!err && w->data.len > 0 && w->offset == at && !w->done) {
        err = w->packed ? write_packed(w) : write_piece(w, w->offset, w->data);
        at = kedge_upload_offset(w->upload->file);
    } /* another offset: the answer tells the right one */
    if (!err && at == w->total && !w->done) {
        err = kedge_upload_finish(w->upload->file, &w->diag);
        w->done = !err;
        if (err == KEDGE_E_BLOB_DIGEST) {
            kedge_upload_abort(w->upload->file);
            w->upload->file = NULL;
        }
    }
    w->next = at;
    w->err = err;
}

/* Answers last: the site's next piece must not find this one still in work. */
static void put_done(struct kedge_host *h, struct kedge_item *item)
{
    struct put_work *w = (struct put_work *)item;
    struct kedge_site_entry *s = &h->sites[w->site];
    s->upload.is_whole = w->done;
    s->upload.digest = w->digest;
    kedge_uploads_give_back(h, w->site, kedge_os_now_ns());
    bool unstored = w->err && kedge_err_class(w->err) == KEDGE_CLASS_FULL;
    const uint64_t bit = UINT64_C(1) << w->job;
    const bool was = (s->unstored & bit) != 0;
    if (unstored && !was) {
        kedge_log(KEDGE_LOG_WARN, "update not stored", "tenant=%s site=%s: %s", h->tenants[s->tenant].id.s,
                  s->id.s, w->diag.text[0] ? w->diag.text : kedge_strerror(w->err));
    }
    if (unstored || was) {
        struct kedge_coord_event ev = {
            .type = KEDGE_EV_UPLOAD, .job = w->job, .site = w->site, .err = unstored ? w->err : KEDGE_OK};
        s->unstored = unstored ? s->unstored | bit : s->unstored & ~bit;
        kedge_host_step(h, &ev);
    }
    if (w->err) {
        kedge_host_reply_error(w->req, w->err, 1000, w->diag.text[0] ? w->diag.text : kedge_strerror(w->err));
    } else {
        reply_put(w->req, w->next, w->done);
    }
    kedge_update_stream_close(w->stream);
    kedge_mem_free(w);
}

/* All bounds before a byte is written: the site takes part in the round, the length is that of the
 * job's updates, the bytes were not erased by order, no other piece of the site is being written. */
static int may_put(struct kedge_host *h, uint32_t site, const struct kedge_msg_blob_put_packed *p,
                   struct kedge_job **ret_job, struct kedge_diag *d)
{
    struct kedge_job *job = kedge_host_job_find(h, &p->job, false);
    int err = job ? kedge_coord_may_upload(h->coord, job->slot, site, p->round) : KEDGE_E_NO_JOB;
    if (err) {
        return kedge_diag_set(d, err, "upload refused: %s", kedge_strerror(err));
    }
    const struct kedge_compact *compact = kedge_job_spec_compact(&job->spec, false);
    const uint64_t most = compact ? kedge_compact_len_most(compact, job->layout.values_count) : 0;
    if (p->total != job->update_len && (p->total > most || p->total <= KEDGE_COMPACT_HEAD)) {
        return kedge_diag_set(d, KEDGE_E_BLOB_SIZE,
                              compact
                                  ? "upload of %llu bytes refused: an update of job %s has at most %llu bytes"
                                  : "upload of %llu bytes refused: an update of job %s has %llu bytes",
                              (unsigned long long)p->total, job->spec.name.s,
                              (unsigned long long)(compact ? most : job->update_len));
    }
    struct kedge_hash digest;
    memcpy(digest.b, p->digest, sizeof digest.b);
    if (kedge_host_is_erased(h, h->sites[site].tenant, &digest)) {
        return kedge_diag_set(d, KEDGE_E_DENIED, "upload refused: this very update was erased by order of %s",
                              h->tenants[h->sites[site].tenant].id.s);
    }
    if (h->sites[site].upload.is_busy) {
        return kedge_diag_set(d, KEDGE_E_BUSY, "the former chunk of this site is still being written");
    }
    *ret_job = job;
    return KEDGE_OK;
}

/* A plain piece as if it were packed, but for len, which is 0. */
static struct kedge_msg_blob_put_packed piece_of(const struct kedge_msg *msg)
{
    const struct kedge_msg_blob_put *p = &msg->u.blob_put;
    if (msg->type == KEDGE_MSG_BLOB_PUT_PACKED) {
        return msg->u.blob_put_packed;
    }
    struct kedge_msg_blob_put_packed piece = {
        .job = p->job, .round = p->round, .total = p->total, .offset = p->offset, .data = p->data};
    memcpy(piece.digest, p->digest, sizeof piece.digest);
    return piece;
}

/* A new digest replaces what the site had begun: it has trained again, and only one upload of a
 * site may be open. */
void kedge_host_blob_put(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                         const struct kedge_msg *msg)
{
    struct kedge_diag d;
    const struct kedge_msg_blob_put_packed piece = piece_of(msg);
    struct kedge_job *job = NULL;
    struct kedge_site_entry *s = &h->sites[site];
    int err = may_put(h, site, &piece, &job, &d);
    struct put_work *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    if (!w) {
        kedge_host_reply_error(req, err ? err : kedge_diag_set(&d, KEDGE_E_NOMEM, "out of memory"), 10,
                               d.text);
        return;
    }
    struct kedge_tenant *t = &h->tenants[s->tenant];
    *w = (struct put_work){.work = {.item = {put_done}, .run = put_run},
                           .req = req,
                           .site = site,
                           .job = job->slot,
                           .blobs = t->log.blobs,
                           .name = s->id,
                           .key = job->spec.name,
                           .former = s->upload.digest,
                           .total = piece.total,
                           .offset = piece.offset,
                           .data = piece.data,
                           .packed = piece.len};
    memcpy(w->digest.b, piece.digest, KEDGE_HASH_LEN);
    if (s->upload.file && !kedge_hash_eq(&s->upload.digest, &w->digest)) {
        kedge_uploads_drop(h, site); /* another result has taken its place */
    }
    w->upload = kedge_uploads_take(h, site);
    w->done = w->upload->file && w->upload->is_whole;
    if (!w->upload->file && piece.offset == 0 && piece.total == job->update_len
        && kedge_update_stream_open(&job->update_layout, job->limit, &job->spec_digest, &w->stream)
               != KEDGE_OK) {
        w->stream = NULL; /* the whole file is looked at when its statement comes */
    }
    kedge_host_work(h, &w->work);
}

/* ---- sweep ---- */

/* A crash between making a blob durable and appending its statement leaves a file that nobody
 * names. The sweep removes these; it runs only when no job is working, at the start and at a clean
 * end, so nothing that is on its way can look like a leftover. */
struct sweep {
    struct kedge_host *h;
    struct kedge_hash *waiting; /* what jobs that wait name, ascending */
    size_t waiting_count;
    struct kedge_ledger *own; /* the tenant's; NULL for the main chain */
    uint64_t removed, erased, keys;
};

static int compare_hashes(const void *a, const void *b)
{
    return kedge_hash_cmp(a, b);
}

/* Specs, first models and bases of jobs that wait for a place. */
static int find_waiting(struct sweep *s)
{
    const struct kedge_waiting *t = &s->h->waiting;
    s->waiting = kedge_mem_new(3 * (size_t)t->count + 1, sizeof *s->waiting);
    KEDGE_TRY_MEM(s->waiting);
    for (uint32_t i = 0; i < t->count; i++) {
        s->waiting[s->waiting_count++] = t->jobs[i]->spec;
        s->waiting[s->waiting_count++] = t->jobs[i]->initial_model;
        s->waiting[s->waiting_count++] = t->jobs[i]->base;
    }
    qsort(s->waiting, s->waiting_count, sizeof *s->waiting, compare_hashes);
    return KEDGE_OK;
}

/* The spec of a job that ended before it was opened: only its record names it, and it is told for ever. */
static bool is_spec_of_record(struct kedge_host *h, const struct kedge_hash *digest, uint64_t size)
{
    struct kedge_job_record r;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_job_spec *spec = size <= 2 * KEDGE_SPEC_MAX ? kedge_mem_new(1, sizeof *spec) : NULL;
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    const bool is = spec && kedge_blobs_read(h->main.blobs, digest, &text, &d) == KEDGE_OK
                    && kedge_job_spec_parse(kedge_buf_view(&text), spec, &d) == KEDGE_OK
                    && kedge_job_record_get(h, &spec->name, &r, &d) == KEDGE_OK
                    && kedge_hash_eq(&r.spec, digest);
    kedge_mem_free(spec);
    return is;
}

/* A blob of a tenant stays if the main chain or its own ledger refers to it; one of the main chain
 * if the main chain does, or a job whose job-opened is still to come or never came. Files that are no blobs
 * are named and left alone: nobody knows whose they are. */
static enum kedge_blob_verdict sweep_one(void *arg, const struct kedge_hash *digest, uint64_t size,
                                         const char *path)
{
    struct sweep *s = arg;
    if (!digest) {
        kedge_log(KEDGE_LOG_WARN, "stray file", "%s is no blob", path);
        return KEDGE_BLOB_KEEP;
    }
    int err = kedge_ledger_find_ref(s->h->main.ledger, digest, NULL);
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX && !s->own; i++) { /* a job whose job-opened is still to come */
        const struct kedge_job *job = &s->h->jobs[i];
        if (job->used && (kedge_hash_eq(&job->spec_digest, digest) || kedge_first_models_has(job, digest))) {
            return KEDGE_BLOB_KEEP;
        }
    }
    if (!s->own && bsearch(digest, s->waiting, s->waiting_count, sizeof *digest, compare_hashes)) {
        return KEDGE_BLOB_KEEP;
    }
    if (err == KEDGE_E_NOT_FOUND && s->own) {
        err = kedge_ledger_find_ref(s->own, digest, NULL);
    }
    if (!err && s->own && kedge_ledger_has_erased(s->own, digest)) { /* the order came, then a crash */
        s->erased++;
        return KEDGE_BLOB_DELETE;
    }
    if (err == KEDGE_E_NOT_FOUND && !s->own && is_spec_of_record(s->h, digest, size)) {
        return KEDGE_BLOB_KEEP;
    }
    if (err == KEDGE_E_NOT_FOUND) {
        s->removed++;
        return KEDGE_BLOB_DELETE;
    }
    return KEDGE_BLOB_KEEP;
}

int kedge_host_sweep(struct kedge_host *h, struct kedge_diag *d)
{
    struct sweep s = {.h = h};
    KEDGE_TRY(find_waiting(&s));
    int err = kedge_blobs_for_each(h->main.blobs, sweep_one, &s, d);
    kedge_mem_free(s.waiting);
    for (uint32_t i = 0; i < h->tenant_count && !err; i++) {
        size_t keys = 0;
        s.own = h->tenants[i].log.ledger;
        err = kedge_blobs_for_each(h->tenants[i].log.blobs, sweep_one, &s, d);
        if (!err) {
            err = kedge_host_shred(h, i, &keys, d);
        }
        s.keys += keys;
    }
    if (s.keys > 0) {
        kedge_log(KEDGE_LOG_INFO, "keys destroyed", "%llu under which nothing was left",
                  (unsigned long long)s.keys);
    }
    if (s.removed > 0) {
        kedge_log(KEDGE_LOG_INFO, "sweep", "removed %llu blobs that no statement names",
                  (unsigned long long)s.removed);
    }
    if (s.erased > 0) {
        kedge_log(KEDGE_LOG_INFO, "erased", "removed %llu updates whose tenants had ordered it before",
                  (unsigned long long)s.erased);
    }
    return err;
}
