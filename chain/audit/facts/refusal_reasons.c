/* What a refused envelope, a refused file and the record say of a refusal's reason. What none of them can
 * tell stays the coordinator's word. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/facts/buffer.h"
#include "chain/audit/facts/refusals.h"
#include "chain/state/refused.h"
#include "common/base/mem.h"
#include "common/base/os/kept.h"
#include "round/compute.h"

enum { PIECE = 1 << 16 };

void kedgei_refusal_convict(struct kedgei_look *l, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    kedgei_find_v(&l->a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_REFUSAL, l->where, format, ap);
    va_end(ap);
    l->is_bad = true;
}

/* ---- what was refused ---- */

static bool is_site_key(const struct kedgei_look *l, struct kedge_view envelope,
                        const struct kedge_public_key *key)
{
    return kedge_statement_open(envelope, key, l->claimed, NULL) == KEDGE_OK;
}

/* The key at enrolment and every key that the site rotated to: the refused envelope may be older than the
 * newest. */
static bool is_sites(const struct kedgei_look *l, struct kedge_view envelope)
{
    const struct kedgei_fact *enrolled = kedgei_log_find(l->log, "site-enrolled/%s", l->r->site.s);
    if (enrolled
        && is_site_key(l, envelope,
                       &((const struct kedge_st_site_enrolled *)enrolled->body)->statement_key)) {
        return true;
    }
    for (uint64_t i = 0; i < l->log->count; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(l->log, i);
        const struct kedge_st_key_rotated *k = fact->body;
        if (fact->kind == KEDGE_ST_KEY_ROTATED && k->role == KEDGE_ROLE_SITE
            && kedge_id_eq(&k->site, &l->r->site) && is_site_key(l, envelope, &k->new_key)) {
            return true;
        }
    }
    return false;
}

static bool says_the_same(const struct kedgei_look *l)
{
    const struct kedge_st_refused *r = l->r;
    const struct kedge_st_update *u = &l->claimed->u.update;
    return l->claimed->kind == KEDGE_ST_UPDATE && kedge_hash_eq(&l->claimed->subject, &r->update)
           && kedge_id_eq(&u->tenant, &r->tenant) && kedge_id_eq(&u->site, &r->site)
           && kedge_id_eq(&u->job, &r->job) && u->round == r->round && u->group == r->group
           && u->update_kind == r->update_kind;
}

/* The refusal names the envelope by its hash, so a file under that name with another hash is no evidence.
 * The envelope has to be the site's own and to say what the refusal says of it; otherwise the coordinator
 * signed a refusal of something that it never got. */
bool kedgei_refusal_envelope(struct kedgei_look *l)
{
    bool found = false;
    for (size_t i = 0; i < 2 && !found; i++) {
        char path[KEDGE_PATH_MAX];
        struct kedge_buf text;
        struct kedge_hash hash;
        kedge_buf_init(&text, KEDGE_ENTRY_MAX);
        if (kedge_kept_path(path, l->dirs[i], &l->r->site, l->st->subject.b, KEDGE_REFUSED_ENVELOPE)
                == KEDGE_OK
            && kedge_file_exists(path) && kedge_file_read(path, &text, NULL) == KEDGE_OK) {
            kedge_sha256(kedge_buf_view(&text), &hash);
            found = kedge_hash_eq(&hash, &l->st->subject);
        }
        if (found && !is_sites(l, kedge_buf_view(&text))) {
            kedgei_refusal_convict(l, "the refused envelope is not signed by a key of site \"%s\"",
                                   l->r->site.s);
        } else if (found && !says_the_same(l)) {
            kedgei_refusal_convict(l, "the refusal names another update than the refused envelope");
        }
        kedge_buf_deinit(&text);
    }
    return found && !l->is_bad;
}

/* In pieces, since an update can have gigabytes; the buffer is one for each thread. */
static bool has_digest(const struct kedge_blob_at *at)
{
    static _Thread_local uint8_t piece[PIECE];
    struct kedge_blob_file f;
    struct kedge_hasher *hasher = NULL;
    struct kedge_hash hash;
    if (kedge_blob_file_open(at, KEDGE_BLOB_READ, &f, NULL) != KEDGE_OK) {
        return false;
    }
    int err = kedge_hasher_new(&hasher);
    for (uint64_t offset = 0; offset < f.size && !err; offset += PIECE) {
        size_t len = f.size - offset < PIECE ? (size_t)(f.size - offset) : PIECE;
        err = kedge_blob_file_read(&f, offset, piece, len);
        if (!err) {
            kedge_hasher_update(hasher, kedge_view_of(piece, len));
        }
    }
    if (!err) {
        kedge_hasher_final(hasher, &hash);
    }
    kedge_hasher_free(hasher);
    kedge_blob_file_close(&f);
    return !err && kedge_hash_eq(&hash, &at->digest);
}

/* The refused file: beside the refusal, in the record, or an update's blob. */
static bool find_file(const struct kedgei_look *l, char path[KEDGE_PATH_MAX], struct kedge_blob_at *ret)
{
    *ret =
        (struct kedge_blob_at){.path = path, .keys = kedge_blobs_keys(l->log->blobs), .digest = l->r->update};
    for (size_t i = 0; i < 2; i++) {
        if (kedge_kept_path(path, l->dirs[i], &l->r->site, l->r->update.b, KEDGE_REFUSED_UPDATE) == KEDGE_OK
            && kedge_file_exists(path) && has_digest(ret)) {
            return true;
        }
    }
    return kedge_blobs_at(l->log->blobs, &l->r->update, path, ret) == KEDGE_OK && has_digest(ret);
}

/* ---- judging the reason ---- */

static enum kedgei_shown other(struct kedgei_look *l, const char *why)
{
    snprintf(l->why, sizeof l->why, "%s", why);
    return KEDGEI_SHOWN_OTHER;
}

static enum kedgei_shown nothing(struct kedgei_look *l, const char *why)
{
    snprintf(l->why, sizeof l->why, "%s", why);
    return KEDGEI_SHOWN_NOTHING;
}

/* The same check as the coordinator's (kedge_compute_check_update). Only a file that is here and fits
 * convicts; one that cannot be read shows nothing. */
static enum kedgei_shown judge_file(struct kedgei_look *l, int claimed)
{
    const struct kedge_compact *compact =
        kedge_job_spec_compact(&l->job->spec, l->r->update_kind == KEDGE_TRAIN_PRETRAIN);
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_at at;
    if (!l->job->usable || !find_file(l, path, &at)) {
        return nothing(l, "the refused file is not here");
    }
    int err = kedge_compute_check_update(&l->job->update_layout, &at, compact, l->job->limit, NULL);
    if (err == claimed) {
        return KEDGEI_SHOWN_FITS;
    }
    if (err && kedge_err_class(err) != KEDGE_CLASS_REJECT) {
        return nothing(l, "the refused file cannot be read");
    }
    snprintf(l->why, sizeof l->why, err ? "the file shows %s" : "the file is what the job asks for",
             err ? kedge_err_code(err) : "");
    return KEDGEI_SHOWN_OTHER;
}

static enum kedgei_shown judge_weight(struct kedgei_look *l)
{
    const struct kedge_st_update *u = &l->claimed->u.update;
    const struct kedge_job_spec *spec = &l->job->spec;
    bool fits = u->samples >= 1 && u->samples <= spec->weight_max
                && (u->update_kind == KEDGE_TRAIN_PRETRAIN
                    || (kedge_job_spec_takes(spec, u->samples, u->steps, u->loss)
                        && kedge_job_spec_takes_batch(spec, u->samples, u->steps, u->batch, u->learning_rate)
                        && kedge_job_spec_takes_classes(spec, u->round, u->classes)));
    return fits ? other(l, "the job takes the samples, steps and batch that the statement says")
                : KEDGEI_SHOWN_FITS;
}

/* Asynchronous jobs hand out several models at a time, and the record does not say which one a site was
 * given. */
static enum kedgei_shown judge_base(struct kedgei_look *l)
{
    const struct kedge_st_update *u = &l->claimed->u.update;
    struct kedge_hash base;
    if (u->update_kind == KEDGE_TRAIN_PRETRAIN) {
        base = ((const struct kedge_st_job_opened *)l->job->opened->body)->initial_model;
    } else if (kedgei_job_is_asynchronous(l->job)
               || !kedgei_model_before(l->job, l->round, u->group, &base)) {
        return nothing(l, "the record does not tell which model it was to start from");
    }
    return kedge_hash_eq(&base, &u->base) ? other(l, "it started from the very model that the record says")
                                          : KEDGEI_SHOWN_FITS;
}

/* The group was the site's, and no other was, for as long as the round was open. */
static enum kedgei_shown judge_group(struct kedgei_look *l)
{
    const struct kedge_st_update *u = &l->claimed->u.update;
    const struct kedge_job_spec *spec = &l->job->spec;
    uint64_t least = kedgei_anchored_before(l->log, l->round->opened->index);
    if (u->update_kind == KEDGE_TRAIN_PRETRAIN
        || kedge_job_spec_grouped_by(spec) == KEDGE_GROUPED_BY_UPDATE) {
        return nothing(l, "groups of pre-training and of the site's own choice are not judged");
    }
    uint32_t is = 0, others = 0;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        bool was = kedgei_group_was(l->log, &l->job->id, &l->r->site, least, KEDGEI_NEVER, g);
        is += was && g == u->group;
        others += was && g != u->group;
    }
    if (is + others == 0) {
        is = u->group == kedgei_first_group(l->a, l->job, l->log);
    }
    return is == 0       ? KEDGEI_SHOWN_FITS
           : others == 0 ? other(l, "it is for the group that the record gives the site")
                         : nothing(l, "the site was in this group and in others");
}

static enum kedgei_shown judge_selection(struct kedgei_look *l)
{
    const struct kedge_st_round_opened *o = l->round->opened->body;
    for (uint32_t t = 0; t < o->tenant_count; t++) {
        struct kedge_input_list list;
        if (kedgei_job_tenant(l->a, l->job, &o->tenants[t].id) != l->log) {
            continue;
        }
        if (!kedgei_list_read(l->a, l->log, &o->tenants[t].list, l->round->opened->index, &list,
                              &l->a->findings)) {
            return nothing(l, "the list of those selected is not here");
        }
        bool selected = false;
        for (uint32_t i = 0; i < list.count; i++) {
            selected =
                selected
                || (list.rows[i].use == KEDGE_USE_SELECTED && kedge_id_eq(&list.rows[i].site, &l->r->site));
        }
        kedge_input_list_deinit(&list);
        return selected ? other(l, "the round's list says that the site was selected") : KEDGEI_SHOWN_FITS;
    }
    return KEDGEI_SHOWN_FITS;
}

/* The coordinator refuses as a duplicate what is not the statement that it has. If it has none, or the
 * very same, the reason was invented. */
static enum kedgei_shown judge_duplicate(struct kedgei_look *l)
{
    const struct kedgei_fact *fact =
        kedgei_log_find(l->log, "update/%s/%08u/%s/%s", l->r->job.s, l->r->round,
                        l->r->update_kind == KEDGE_TRAIN_PRETRAIN ? "pretrain" : "train", l->r->site.s);
    struct kedge_hash accepted;
    if (!fact) {
        return l->round->step ? other(l, "the record has no other update of the site for this round")
                              : nothing(l, "the round is still open");
    }
    kedge_sha256(kedgei_entry_at(l->log, fact->index), &accepted);
    return kedge_hash_eq(&accepted, &l->st->subject)
               ? other(l, "what the record has of the site for this round is this very statement")
               : KEDGEI_SHOWN_FITS;
}

/* An update for a round that was not open yet; one that is closed is answered by "closed". */
static enum kedgei_shown judge_stale(struct kedgei_look *l)
{
    return l->round && l->round->opened->index < l->r->main_size
               ? other(l, "the main chain that it names had opened the round")
               : KEDGEI_SHOWN_FITS;
}

/* A job is gone for its sites from the moment it is being ended, which no statement tells. But what is being
 * ended takes no updates, so that no round opens and closes any more. */
static enum kedgei_shown judge_job(struct kedgei_look *l)
{
    const struct kedgei_job *job = l->job;
    uint64_t size = l->r->main_size;
    if (!job || job->opened->index >= size || (job->closed && job->closed->index < size)) {
        return KEDGEI_SHOWN_FITS;
    }
    for (size_t i = 0; i < job->round_count; i++) {
        const struct kedgei_round *round = kedgei_round_at(job, i);
        if (round->opened->index >= size && round->step) {
            return other(l, "the job went on: a round that was opened later was closed");
        }
    }
    return nothing(l, "the job had not ended then, and no round was opened and closed later");
}

/* By the main chain that the refusal itself names: what stood there already, the coordinator knew. */
static enum kedgei_shown judge_joined(struct kedgei_look *l)
{
    const struct kedgei_fact *joined = kedgei_log_find(l->log, "job-joined/%s", l->r->job.s);
    const uint64_t anchored = kedgei_anchored_before(l->log, l->r->main_size);
    if (kedgei_has_left(l->log, &l->r->job, UINT64_MAX)) {
        return kedgei_has_left(l->log, &l->r->job, anchored)
                   ? KEDGEI_SHOWN_FITS
                   : nothing(l, "the tenant left the job about that time, or later");
    }
    return !joined ? KEDGEI_SHOWN_FITS
           : joined->index < anchored
               ? other(l, "the tenant had joined the job, as the main chain that it names says")
               : nothing(l, "the tenant joined the job, before or later");
}

/* ARG: the round did not ask for an update of this kind. */
static enum kedgei_shown judge_kind(struct kedgei_look *l)
{
    bool pretrain = l->r->update_kind == KEDGE_TRAIN_PRETRAIN;
    if (pretrain == l->round->pretrain) {
        return other(l, "the round asked for updates of this kind");
    }
    return !pretrain || (l->job->usable && kedge_job_spec_groups_most(&l->job->spec) <= 1)
               ? KEDGEI_SHOWN_FITS
               : nothing(l, "newcomers and sites whose data have shifted pre-train in a round of training");
}

/* DENIED: the file had been erased before. An order that came later is none that the coordinator obeyed.
 * So an order that is not there, or is newer, decides nothing either way. */
static enum kedgei_shown judge_erased(struct kedgei_look *l)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&l->r->update, hex);
    const struct kedgei_fact *order = kedgei_log_find(l->log, "erased/%s", hex);
    if (!order) {
        return nothing(l, "the ledger has no order to erase it");
    }
    return order->index < kedgei_anchored_before(l->log, l->r->main_size)
               ? KEDGEI_SHOWN_FITS
               : nothing(l, "the order to erase it came about that time, or later");
}

/* For these reasons the round need not be open: they are about the time itself, the job or the site. */
bool kedgei_refusal_needs_open_round(int reason)
{
    switch (reason) {
    case KEDGE_E_ROUND_STALE:
    case KEDGE_E_NO_JOB:
    case KEDGE_E_NOT_JOINED:
    case KEDGE_E_NOT_ENROLLED:
    case KEDGE_E_REVOKED:
        return false;
    default:
        return true;
    }
}

/* Reasons about when, which the main chain decides; a copy that ends before it, or withholds some of it,
 * cannot tell. */
static enum kedgei_shown judge_time(struct kedgei_look *l, int claimed)
{
    if (l->a->skipped || l->r->main_size > l->a->main.count) {
        return nothing(l, "this record has less than the main chain that it names");
    }
    return claimed == KEDGE_E_NO_JOB        ? judge_job(l)
           : !l->job                        ? nothing(l, "this record has no such job")
           : claimed == KEDGE_E_ROUND_STALE ? judge_stale(l)
                                            : judge_joined(l);
}

static enum kedgei_shown judge_fields(struct kedgei_look *l, int claimed)
{
    return claimed == KEDGE_E_WEIGHT       ? judge_weight(l)
           : claimed == KEDGE_E_WRONG_BASE ? judge_base(l)
                                           : judge_group(l);
}

/* Three answers: the evidence bears the reason out, it shows something else (then the coordinator signed
 * an invention), or it shows nothing. Whatever no record can show, such as a full disk, stays the
 * coordinator's word. */
enum kedgei_shown kedgei_refusal_reason(struct kedgei_look *l, bool has_statement)
{
    int claimed = kedge_err_find(l->r->code);
    if (claimed == KEDGE_E_NO_JOB || claimed == KEDGE_E_ROUND_STALE || claimed == KEDGE_E_NOT_JOINED) {
        return judge_time(l, claimed);
    }
    if (!l->job || !l->round) {
        return nothing(l, "this record has no such round");
    }
    switch (claimed) {
    case KEDGE_E_NOT_SELECTED:
        return kedgei_job_is_asynchronous(l->job) ? nothing(l, "its rounds overlap") : judge_selection(l);
    case KEDGE_E_DUPLICATE:
        return judge_duplicate(l);
    case KEDGE_E_ARG:
        return judge_kind(l);
    case KEDGE_E_DENIED:
        return judge_erased(l);
    case KEDGE_E_SHAPE:
    case KEDGE_E_BOUND:
    case KEDGE_E_FORMAT:
    case KEDGE_E_TOO_LONG:
    case KEDGE_E_NOT_FINITE:
        return judge_file(l, claimed);
    case KEDGE_E_WEIGHT:
    case KEDGE_E_WRONG_BASE:
    case KEDGE_E_WRONG_GROUP:
        return has_statement && l->job->usable ? judge_fields(l, claimed)
                                               : nothing(l, "the refused envelope is not here");
    default:
        return nothing(l, "a reason that no record can show");
    }
}
