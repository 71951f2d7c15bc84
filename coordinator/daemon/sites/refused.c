/* Refused updates: the signed refusal, the site's envelope and the file are kept for a time, so
 * that a refusal can be judged by others and held against a coordinator that refused wrongly.
 *
 * A hostile site decides how often it is refused. So all of it is bounded, per site and per tenant,
 * in number and in bytes, and what nobody has looked at is the last to go. */
#include "coordinator/daemon/sites/refused.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/state/refused.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/kept.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/erase.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/shred.h"
#include "coordinator/daemon/sites/requests.h"

enum { DAY_S = 86400, MB = 1000000 };
static const uint64_t HOUR_NS = 3600u * 1000000000ull;

/* Of one tenant; values only, for workers. */
struct folder {
    char dir[KEDGE_PATH_MAX];
    uint64_t days, bytes;
};

static int folder_of(const struct kedge_host *h, const struct kedge_id *tenant, struct folder *ret)
{
    ret->days = h->config.refused_days;
    ret->bytes = (uint64_t)h->config.refused_mb * MB;
    return kedge_refused_dir(ret->dir, NULL, h->state, tenant);
}

/* What is beyond the bounds goes, what was shown and is oldest first, and the log says so. */
static void tidy(const struct folder *f)
{
    const struct kedge_kept_rule rules[] = {
        {KEDGE_REFUSED_REFUSAL, KEDGE_REFUSED_PER_SITE, KEDGE_REFUSED_PER_TENANT, 0},
        {KEDGE_REFUSED_ENVELOPE, KEDGE_REFUSED_PER_SITE, KEDGE_REFUSED_PER_TENANT, 0},
        {KEDGE_REFUSED_UPDATE, KEDGE_REFUSED_FILES_PER_SITE, 0, f->bytes},
    };
    struct kedge_diag d = {.text = ""};
    struct kedge_kept_gone gone;
    uint64_t now_s = kedge_os_unix_ms() / 1000;
    int err = kedge_kept_tidy(f->dir, rules, sizeof rules / sizeof rules[0], KEDGE_REFUSED_SHOWN,
                              f->days * DAY_S, now_s, &gone, &d);
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "refused updates", "%s", d.text[0] ? d.text : kedge_strerror(err));
    } else if (gone.beyond > 0) {
        kedge_log(KEDGE_LOG_WARN, "refused updates",
                  "%s: %" PRIu32 " of the oldest files went before their time, %" PRIu32
                  " of them shown to nobody: more were refused than is kept; look with kedge ledger refusals",
                  f->dir, gone.beyond, gone.unseen);
    }
}

/* ---- files ---- */

/* The place of the file, with its folder; false: files are not kept, or none of this size. */
static bool is_wanted(const struct folder *f, uint64_t size)
{
    return f->days > 0 && f->bytes > 0 && size <= f->bytes;
}

static void say_not_kept(const struct kedge_host *h, uint32_t site, int err)
{
    const struct kedge_site_entry *s = &h->sites[site];
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "refused file not kept", "tenant=%s site=%s: %s",
                  h->tenants[s->tenant].id.s, s->id.s, kedge_strerror(err));
    }
}

/* A second name for the same file (a hard link) costs no space and no time, and it keeps the bytes
 * when the first name is removed. */
void kedge_host_refused_keep_file(const struct kedge_host *h, uint32_t site, const struct kedge_hash *update,
                                  const char *from)
{
    const struct kedge_site_entry *s = &h->sites[site];
    struct folder f;
    int64_t size = kedge_file_size(from);
    int err = folder_of(h, &h->tenants[s->tenant].id, &f);
    if (!err && size >= 0 && is_wanted(&f, (uint64_t)size)) {
        err = kedge_kept_link(f.dir, &s->id, update->b, KEDGE_REFUSED_UPDATE, from);
    }
    say_not_kept(h, site, err);
}

/* A blob that lies in a file with others has no name that could be linked: it is copied. */
static int keep_blob(const struct kedge_host *h, const struct kedge_site_entry *s,
                     const struct kedge_hash *update)
{
    const struct kedge_tenant *t = &h->tenants[s->tenant];
    char from[KEDGE_PATH_MAX], to[KEDGE_PATH_MAX];
    struct folder f;
    uint64_t bytes, stored_ms;
    int err = kedge_blobs_stored(t->log.blobs, update, &bytes, &stored_ms);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    KEDGE_TRY(folder_of(h, &t->id, &f));
    if (!is_wanted(&f, bytes)) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedge_blobs_path(t->log.blobs, update, from));
    KEDGE_TRY(kedge_kept_path(to, f.dir, &s->id, update->b, KEDGE_REFUSED_UPDATE));
    err = kedge_kept_link(f.dir, &s->id, update->b, KEDGE_REFUSED_UPDATE, from);
    return err == KEDGE_E_NOT_FOUND ? kedge_blobs_copy_packed(t->log.blobs, update, to, NULL) : err;
}

void kedge_host_refused_keep_blob(const struct kedge_host *h, uint32_t site, const struct kedge_hash *update)
{
    say_not_kept(h, site, keep_blob(h, &h->sites[site], update));
}

int kedge_host_refused_erase(const struct kedge_host *h, uint32_t tenant, const struct kedge_hash *update,
                             struct kedge_diag *d)
{
    struct folder f;
    KEDGE_TRY(folder_of(h, &h->tenants[tenant].id, &f));
    return kedge_kept_remove(f.dir, update->b, KEDGE_REFUSED_UPDATE, d);
}

/* ---- refusing ---- */

/* Where the main chain is, as far as the loop has taken it in: that decided, and by that the statement key in
 * force is known. The ledger may have more already. */
static int place(const struct kedge_host *h, struct kedge_st_refused *r)
{
    r->main_size = h->main_known;
    return kedge_ledger_root(h->main.ledger, h->main_known, &r->main_root);
}

struct refuse_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct folder folder;
    struct kedge_public_key key; /* that signed */
    struct kedge_statement *st;
    struct kedge_buf envelope, refusal;
    int code, err; /* why the update is refused; whether it could be kept */
};

static int sign_where_it_is(const struct kedge_host *h, struct refuse_work *w)
{
    KEDGE_TRY(place(h, &w->st->u.refused));
    return kedge_statement_sign(w->st, &h->statement_key, &w->refusal, NULL);
}

bool kedge_host_refuses(const struct kedge_host *h, uint32_t site, const struct kedge_statement *st, int err)
{
    return st->kind == KEDGE_ST_UPDATE && kedge_err_class(err) == KEDGE_CLASS_REJECT && h->sites[site].active;
}

/* The refusal of this very envelope that is kept already says what the new one would: a site that asks again
 * costs no second write. */
static bool read_kept(struct refuse_work *w, const char *path, struct kedge_statement *st)
{
    struct kedge_buf text;
    const struct kedge_st_refused *new = &w->st->u.refused, *old = &st->u.refused;
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    bool same = kedge_file_exists(path) && kedge_file_read(path, &text, NULL) == KEDGE_OK
                && kedge_statement_open(kedge_buf_view(&text), &w->key, st, NULL) == KEDGE_OK
                && st->kind == KEDGE_ST_REFUSED && kedge_hash_eq(&st->subject, &w->st->subject)
                && strcmp(old->code, new->code) == 0 && old->listed == new->listed;
    if (same) {
        kedge_buf_clear(&w->refusal);
        kedge_buf_put(&w->refusal, text.ptr, text.len);
    }
    kedge_buf_deinit(&text);
    return same && !w->refusal.err;
}

/* The envelope is written before the refusal: a refusal whose envelope is missing would promise
 * evidence that is not there. */
static int write_new(const struct refuse_work *w, const char *envelope, const char *refusal)
{
    KEDGE_TRY(kedge_dir_make(w->folder.dir, 0700, NULL));
    KEDGE_TRY(kedge_file_write(envelope, kedge_buf_view(&w->envelope), 0600, NULL));
    return kedge_file_write(refusal, kedge_buf_view(&w->refusal), 0600, NULL);
}

static int keep(struct refuse_work *w)
{
    const struct kedge_st_refused *r = &w->st->u.refused;
    char refusal[KEDGE_PATH_MAX], envelope[KEDGE_PATH_MAX];
    const uint8_t *about = w->st->subject.b;
    KEDGE_TRY(kedge_kept_path(refusal, w->folder.dir, &r->site, about, KEDGE_REFUSED_REFUSAL));
    KEDGE_TRY(kedge_kept_path(envelope, w->folder.dir, &r->site, about, KEDGE_REFUSED_ENVELOPE));
    struct kedge_statement *old = kedge_mem_new(1, sizeof *old);
    KEDGE_TRY_MEM(old);
    int err = KEDGE_OK;
    if (!read_kept(w, refusal, old)) {
        err = write_new(w, envelope, refusal);
        tidy(&w->folder);
    }
    kedge_mem_free(old);
    return err;
}

static void refuse_run(struct kedge_host *h, struct kedge_work *work)
{
    (void)h;
    struct refuse_work *w = (struct refuse_work *)work;
    w->err = w->st->u.refused.kept_until_s > 0 ? keep(w) : KEDGE_OK;
}

/* If it could not be kept, the refusal is signed again without the promise. The signature costs
 * little; a promise that cannot be met would be held against the coordinator. */
static void refuse_done(struct kedge_host *h, struct kedge_item *item)
{
    struct refuse_work *w = (struct refuse_work *)item;
    const char *text = kedge_strerror(w->code);
    int err = KEDGE_OK;
    if (w->err) { /* nothing is promised that is not there */
        kedge_log(KEDGE_LOG_WARN, "refusal not kept", "%s: %s", w->folder.dir, kedge_strerror(w->err));
        w->st->u.refused.kept_until_s = 0;
        kedge_buf_clear(&w->refusal);
        err = sign_where_it_is(h, w);
    }
    if (err) {
        kedge_host_reply_error(w->req, w->code, 0, text);
    } else {
        struct kedge_msg error = kedge_msg_of_error(w->code, 0, text), msg = {.type = KEDGE_MSG_REFUSED};
        msg.u.refused.code = error.u.error.code;
        msg.u.refused.text = error.u.error.text;
        msg.u.refused.envelope = kedge_buf_view(&w->refusal);
        msg.u.refused.rotations = kedge_buf_view(&h->authority.rotations);
        kedge_host_reply(w->req, &msg);
    }
    kedge_buf_deinit(&w->envelope);
    kedge_buf_deinit(&w->refusal);
    kedge_mem_free(w->st);
    kedge_mem_free(w);
}

static int fill(const struct kedge_host *h, const struct kedge_refused_update *u, struct kedge_statement *st)
{
    const struct kedge_st_update *update = &u->st->u.update;
    const struct kedge_site_entry *s = &h->sites[u->site];
    uint64_t days = h->config.refused_days;
    st->kind = KEDGE_ST_REFUSED;
    st->subject = u->hash;
    st->u.refused = (struct kedge_st_refused){
        .job = update->job,
        .round = update->round,
        .group = update->group,
        .update_kind = update->update_kind,
        .tenant = h->tenants[s->tenant].id,
        .site = s->id,
        .update = u->st->subject,
        .listed = u->listed,
        .kept_until_s = days > 0 ? kedge_os_unix_ms() / 1000 + days * DAY_S : 0,
    };
    snprintf(st->u.refused.code, sizeof st->u.refused.code, "%s", kedge_err_code(u->err));
    snprintf(st->u.refused.reason, sizeof st->u.refused.reason, "%s", kedge_strerror(u->err));
    return place(h, &st->u.refused);
}

static int make_refusal(const struct kedge_host *h, const struct kedge_refused_update *u,
                        struct refuse_work *w)
{
    KEDGE_TRY(fill(h, u, w->st));
    KEDGE_TRY(folder_of(h, &w->st->u.refused.tenant, &w->folder));
    KEDGE_TRY(w->envelope.err);
    return kedge_statement_sign(w->st, &h->statement_key, &w->refusal, NULL);
}

/* Signed on the loop with the key that is in force there, written by a worker, answered when it is
 * durable. */
void kedge_host_refuse(struct kedge_host *h, const struct kedge_refused_update *u)
{
    struct refuse_work *w = kedge_mem_new(1, sizeof *w);
    struct kedge_statement *st = w ? kedge_mem_new(1, sizeof *st) : NULL;
    int err = st ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err) {
        *w = (struct refuse_work){.work = {.item = {refuse_done}, .run = refuse_run},
                                  .req = u->req,
                                  .key = h->statement_key.public,
                                  .st = st,
                                  .code = u->err};
        kedge_buf_init(&w->envelope, KEDGE_ENTRY_MAX);
        kedge_buf_init(&w->refusal, KEDGE_ENTRY_MAX);
        kedge_buf_put(&w->envelope, u->envelope.ptr, u->envelope.len);
        err = make_refusal(h, u, w);
    }
    if (!err) {
        kedge_host_work(h, &w->work);
        return;
    }
    kedge_host_reply_error(u->req, u->err, 0, kedge_strerror(u->err));
    if (st) {
        kedge_buf_deinit(&w->envelope);
        kedge_buf_deinit(&w->refusal);
    }
    kedge_mem_free(st);
    kedge_mem_free(w);
}

/* ---- what is too old ---- */

struct look_work {
    struct kedge_work work;
    struct kedge_shred shred;
    struct folder folder;
};

/* The order to erase it came, and then a crash. */
static int drop_erased(void *arg, const struct kedge_id *owner, const uint8_t digest[KEDGE_KEPT_DIGEST],
                       const char *path)
{
    const struct look_work *w = arg;
    struct kedge_hash update;
    (void)owner;
    (void)path;
    memcpy(update.b, digest, sizeof update.b);
    return kedge_ledger_has_erased(w->shred.ledger, &update)
               ? kedge_kept_remove(w->folder.dir, digest, KEDGE_REFUSED_UPDATE, NULL)
               : KEDGE_OK;
}

/* A job all of whose updates were refused has no order that would end its key: it goes when the last of their
 * files has gone. */
static void destroy_keys(const struct look_work *w)
{
    struct kedge_diag d = {.text = ""};
    size_t count = 0;
    int err = kedge_shred_run_if_due(&w->shred, &count, &d);
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "keys not destroyed", "%s", d.text[0] ? d.text : kedge_strerror(err));
    } else if (count > 0) {
        kedge_log(KEDGE_LOG_INFO, "keys destroyed", "%s: %zu under which nothing was left", w->folder.dir,
                  count);
    }
}

static void look_run(struct kedge_host *h, struct kedge_work *work)
{
    struct look_work *w = (struct look_work *)work;
    struct kedge_diag d = {.text = ""};
    (void)h;
    int err = kedge_kept_each(w->folder.dir, KEDGE_REFUSED_UPDATE, drop_erased, w, &d);
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "refused updates", "%s", d.text[0] ? d.text : kedge_strerror(err));
    }
    tidy(&w->folder);
    destroy_keys(w);
}

static void look_done(struct kedge_host *h, struct kedge_item *item)
{
    struct look_work *w = (struct look_work *)item;
    (void)h;
    kedge_shred_end(&w->shred);
    kedge_mem_free(w);
}

uint64_t kedge_host_refused_due_ns(const struct kedge_host *h)
{
    return h->refused_due_ns;
}

/* Once an hour, one piece of work for each tenant. What cannot be started now is done an hour
 * later; nothing depends on the moment. */
void kedge_host_refused_look(struct kedge_host *h, uint64_t now_ns)
{
    if (now_ns < h->refused_due_ns) {
        return;
    }
    h->refused_due_ns = now_ns + HOUR_NS;
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        struct look_work *w = kedge_mem_new(1, sizeof *w);
        if (!w || folder_of(h, &h->tenants[i].id, &w->folder) != KEDGE_OK
            || kedge_shred_begin(h, i, &w->shred) != KEDGE_OK) {
            kedge_mem_free(w);
            continue; /* the next hour's look is as good */
        }
        w->work = (struct kedge_work){.item = {look_done}, .run = look_run};
        kedge_host_work(h, &w->work);
    }
}
