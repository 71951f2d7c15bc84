/* One line about an entry of a log: which statement, who, what. Nothing here is verified. */
#include <stdio.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/dsse.h"
#include "chain/log/note.h"
#include "chain/statement/main_entry.h"
#include "chain/statement/statement.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum { WHO_LEN = KEDGE_ST_NAME_MAX + KEDGE_ID_MAX + 2, WHAT_LEN = KEDGE_ST_REASON_MAX + 100, SHORT_HEX = 12 };

/* "Who" is the party that the statement is about, "what" the rest in a few words. Both are cut at their
 * length: a line is for finding an entry, and its content is shown by kedge ledger show LOG INDEX. */
struct line {
    char who[WHO_LEN], what[WHAT_LEN];
};

struct short_hex {
    char s[2 * KEDGE_HASH_LEN + 1];
};

/* Twelve digits are enough to recognise a key or a digest that one knows; they are never compared. */
static struct short_hex brief(const uint8_t bytes[KEDGE_HASH_LEN])
{
    struct short_hex h;
    kedge_hex_encode(bytes, KEDGE_HASH_LEN, h.s);
    h.s[SHORT_HEX] = '\0';
    return h;
}

static void set_site(struct line *l, const struct kedge_id *tenant, const struct kedge_id *site)
{
    snprintf(l->who, sizeof l->who, "%s/%s", tenant->s, site->s);
}

static const char *train_kind(enum kedge_train_kind kind)
{
    return kind == KEDGE_TRAIN_PRETRAIN ? "pretrain" : "train";
}

/* Who the key belongs to, and what happened to it. The default is the recovery: describe_statement sends no
 * other kind here. */
static void describe_key(const struct kedge_statement *st, struct line *l)
{
    static const char *const scopes[] = {"admin", "coordinator", "log"};
    static const char *const roles[] = {"admin", "recovery", "site", "site TLS"};
    const struct kedge_st_key *k = &st->u.key;
    const struct kedge_st_key_rotated *r = &st->u.key_rotated;
    switch ((int)st->kind) {
    case KEDGE_ST_KEY:
        snprintf(l->who, sizeof l->who, "%s", k->tenant.s[0] ? k->tenant.s : "coordinator");
        snprintf(l->what, sizeof l->what, "%s key %s", scopes[k->scope], brief(k->public_key.b).s);
        break;
    case KEDGE_ST_KEY_ADDED:
        snprintf(l->who, sizeof l->who, "%s", st->u.key_added.tenant.s);
        snprintf(l->what, sizeof l->what, "%s key %s", roles[st->u.key_added.role],
                 brief(st->u.key_added.public_key.b).s);
        break;
    case KEDGE_ST_KEY_ROTATED:
        snprintf(l->who, sizeof l->who, "%s%s%s", r->tenant.s, r->site.s[0] ? "/" : "", r->site.s);
        snprintf(l->what, sizeof l->what, "%s key %s, was %s", roles[r->role], brief(r->new_key.b).s,
                 brief(r->old_key.b).s);
        break;
    case KEDGE_ST_KEY_REVOKED:
        snprintf(l->who, sizeof l->who, "%s", st->u.key_revoked.tenant.s);
        snprintf(l->what, sizeof l->what, "%s key %s: %s", roles[st->u.key_revoked.role],
                 brief(st->u.key_revoked.public_key.b).s, st->u.key_revoked.reason);
        break;
    default:
        snprintf(l->who, sizeof l->who, "%s", st->u.key_recovered.tenant.s);
        snprintf(l->what, sizeof l->what, "only admin key %s: %s", brief(st->u.key_recovered.public_key.b).s,
                 st->u.key_recovered.reason);
        break;
    }
}

/* Sites, witnesses and joins: a tenant's member, and its key or the reason why it went. */
static void describe_member(const struct kedge_statement *st, struct line *l)
{
    switch ((int)st->kind) { /* the others are not of this family */
    case KEDGE_ST_SITE_ENROLLED:
        set_site(l, &st->u.site_enrolled.tenant, &st->u.site_enrolled.site);
        snprintf(l->what, sizeof l->what, "key %s", brief(st->u.site_enrolled.statement_key.b).s);
        break;
    case KEDGE_ST_SITE_REVOKED:
        set_site(l, &st->u.site_revoked.tenant, &st->u.site_revoked.site);
        snprintf(l->what, sizeof l->what, "%s", st->u.site_revoked.reason);
        break;
    case KEDGE_ST_WITNESS_ENROLLED:
        set_site(l, &st->u.witness_enrolled.tenant, &st->u.witness_enrolled.witness);
        snprintf(l->what, sizeof l->what, "%s, key %s", st->u.witness_enrolled.name,
                 brief(st->u.witness_enrolled.cosign_key.b).s);
        break;
    case KEDGE_ST_WITNESS_REVOKED:
        set_site(l, &st->u.witness_revoked.tenant, &st->u.witness_revoked.witness);
        snprintf(l->what, sizeof l->what, "%s", st->u.witness_revoked.reason);
        break;
    case KEDGE_ST_JOB_LEFT:
        snprintf(l->who, sizeof l->who, "%s", st->u.job_left.tenant.s);
        snprintf(l->what, sizeof l->what, "%s, %s", st->u.job_left.job.s, st->u.job_left.reason);
        break;
    default:
        snprintf(l->who, sizeof l->who, "%s", st->u.job_joined.tenant.s);
        snprintf(l->what, sizeof l->what, "%s, spec %s", st->u.job_joined.job.s, brief(st->subject.b).s);
        break;
    }
}

/* What sites did and what was ordered about it. Numbers are as they were signed; whether they hold is the
 * audit's question. */
static void describe_work(const struct kedge_statement *st, struct line *l)
{
    const struct kedge_st_update *u = &st->u.update;
    const struct kedge_st_evaluation *e = &st->u.evaluation;
    const struct kedge_st_group_assigned *g = &st->u.group_assigned;
    switch ((int)st->kind) {
    case KEDGE_ST_UPDATE:
        set_site(l, &u->tenant, &u->site);
        snprintf(l->what, sizeof l->what, "%s r%u g%u %s %s, %llu samples", u->job.s, u->round, u->group,
                 train_kind(u->update_kind), brief(st->subject.b).s, (unsigned long long)u->samples);
        break;
    case KEDGE_ST_EVALUATION:
        set_site(l, &e->tenant, &e->site);
        snprintf(l->what, sizeof l->what, "%s r%u g%u %llu of %llu right, loss %.4f", e->job.s, e->round,
                 e->group, (unsigned long long)e->correct, (unsigned long long)e->samples, e->loss);
        if (e->personal_correct > 0
            || e->personal_loss > 0) { /* of the model that the site keeps for itself */
            size_t len = strlen(l->what);
            snprintf(l->what + len, sizeof l->what - len, "; its own %llu, %.4f",
                     (unsigned long long)e->personal_correct, e->personal_loss);
        }
        break;
    case KEDGE_ST_ERASED:
        snprintf(l->who, sizeof l->who, "%s", st->u.erased.tenant.s);
        snprintf(l->what, sizeof l->what, "update %s of entry %llu: %.120s (%.60s)", brief(st->subject.b).s,
                 (unsigned long long)st->u.erased.entry, st->u.erased.reason, st->u.erased.authority);
        break;
    case KEDGE_ST_CONTACT:
        set_site(l, &st->u.contact.tenant, &st->u.contact.about);
        snprintf(l->what, sizeof l->what, "who answers for it: commitment %s", brief(st->subject.b).s);
        break;
    case KEDGE_ST_SITE_LABELS:
        set_site(l, &st->u.site_labels.tenant, &st->u.site_labels.site);
        snprintf(l->what, sizeof l->what, "labels %.250s",
                 st->u.site_labels.labels[0] ? st->u.site_labels.labels : "none");
        break;
    default:
        set_site(l, &g->tenant, &g->site);
        snprintf(l->what, sizeof l->what, "%s r%u g%u %s, similarity %.3f", g->job.s, g->round, g->group,
                 kedge_group_how_name(g->how), g->similarity);
        break;
    }
}

/* Counts of all tenants together: the lists themselves are blobs, and one line has no room for them. */
static void describe_round(const struct kedge_statement *st, struct line *l)
{
    const struct kedge_st_round_opened *r = &st->u.round_opened;
    const struct kedge_st_aggregate *a = &st->u.aggregate;
    const struct kedge_st_step *s = &st->u.step;
    uint64_t candidates = 0, selected = 0, refused = 0;
    switch ((int)st->kind) {
    case KEDGE_ST_ROUND_OPENED:
        for (uint32_t i = 0; i < r->tenant_count; i++) {
            candidates += r->tenants[i].candidates;
            selected += r->tenants[i].selected;
        }
        snprintf(l->who, sizeof l->who, "%s", r->job.s);
        snprintf(l->what, sizeof l->what, "r%u %s, %llu of %llu sites selected%s", r->round,
                 train_kind(r->round_kind), (unsigned long long)selected, (unsigned long long)candidates,
                 r->draw > 0 ? ", drawn again" : "");
        break;
    case KEDGE_ST_AGGREGATE:
        for (uint32_t i = 0; i < a->tenant_count; i++) {
            refused += a->tenants[i].refused;
        }
        snprintf(l->who, sizeof l->who, "%s", a->job.s);
        snprintf(l->what, sizeof l->what, "r%u g%u %s: %u used, %llu refused", a->round, a->group, a->rule,
                 a->count, (unsigned long long)refused);
        break;
    default:
        snprintf(l->who, sizeof l->who, "%s", s->job.s);
        snprintf(l->what, sizeof l->what, "r%u %s: %u group%s", s->round, s->rule, s->group_count,
                 s->group_count == 1 ? "" : "s");
        break;
    }
}

static void describe_quota(const struct kedge_st_quota_set *q, struct line *l)
{
    snprintf(l->who, sizeof l->who, "%s", brief(q->id.b).s);
    snprintf(l->what, sizeof l->what, "%ssites %u, jobs %u, tokens %u, %u statements/s, %llu bytes/s",
             q->standing == KEDGE_TENANT_SUSPENDED ? "suspended; " : "", q->sites, q->jobs, q->tokens,
             q->statements_per_s, (unsigned long long)q->bytes_per_s);
}

static void describe_admission(const struct kedge_statement *st, struct line *l)
{
    const struct kedge_st_job_admission *a = &st->u.job_admission;
    snprintf(l->who, sizeof l->who, "%s", a->job.s);
    if (st->kind == KEDGE_ST_JOB_ADMITTED) {
        snprintf(l->what, sizeof l->what, "needs %u/%u of its sites' time beside %u jobs with deadlines",
                 a->share, (unsigned)KEDGE_ST_SHARES, a->queued);
    } else {
        snprintf(l->what, sizeof l->what, "%s beside %u jobs with deadlines",
                 a->too_large ? "too large" : "its deadline cannot be met", a->queued);
    }
}

/* Statements of the main chain that are about a job or about who may change what. */
static void describe_job(const struct kedge_statement *st, struct line *l)
{
    static const char *const chain_roles[] = {"operator", "auditor"};
    static const char *const outcomes[] = {"completed", "cancelled", "failed"};
    const struct kedge_st_policy *p = &st->u.policy;
    const struct kedge_st_job_opened *j = &st->u.job_opened;
    const struct kedge_st_round_tested *t = &st->u.round_tested;
    const struct kedge_st_release *r = &st->u.release;
    const struct kedge_st_job_closed *c = &st->u.job_closed;
    switch ((int)st->kind) {
    case KEDGE_ST_ROLE_GRANTED:
        snprintf(l->who, sizeof l->who, "%s", st->u.role_granted.name.s);
        snprintf(l->what, sizeof l->what, "%s, key %s", chain_roles[st->u.role_granted.role],
                 brief(st->u.role_granted.public_key.b).s);
        break;
    case KEDGE_ST_ROLE_REVOKED:
        snprintf(l->who, sizeof l->who, "%s", chain_roles[st->u.role_revoked.role]);
        snprintf(l->what, sizeof l->what, "key %s: %s", brief(st->u.role_revoked.public_key.b).s,
                 st->u.role_revoked.reason);
        break;
    case KEDGE_ST_STATEMENT_KEY_ROTATED:
        snprintf(l->who, sizeof l->who, "%s", st->u.statement_key_rotated.of.deployment);
        snprintf(l->what, sizeof l->what, "statement key %s in the place of %s",
                 brief(st->u.statement_key_rotated.new_key.b).s,
                 brief(st->u.statement_key_rotated.old_key.b).s);
        break;
    case KEDGE_ST_POLICY_CHANGED:
        snprintf(l->who, sizeof l->who, "%s", st->u.policy_changed.of.deployment);
        snprintf(l->what, sizeof l->what, "%u organisations approve what concerns all",
                 st->u.policy_changed.admin_quorum);
        break;
    case KEDGE_ST_QUOTA_SET:
        describe_quota(&st->u.quota_set, l);
        break;
    case KEDGE_ST_POLICY:
        snprintf(l->who, sizeof l->who, "%s", p->deployment);
        snprintf(l->what, sizeof l->what, "statement key %s, log key %s", brief(p->statement_key.b).s,
                 brief(p->main_log_key.b).s);
        break;
    case KEDGE_ST_JOB_OPENED:
        snprintf(l->who, sizeof l->who, "%s", j->job.s);
        snprintf(l->what, sizeof l->what, "%u tenants, %llu parameters, spec %s", j->tenant_count,
                 (unsigned long long)j->parameters, brief(st->subject.b).s);
        break;
    case KEDGE_ST_ROUND_TESTED:
        snprintf(l->who, sizeof l->who, "%s", t->job.s);
        snprintf(l->what, sizeof l->what, "r%u %llu of %llu right at %u sites, %u targets reached", t->round,
                 (unsigned long long)t->correct, (unsigned long long)t->samples, t->evaluations, t->tier);
        break;
    case KEDGE_ST_RELEASE:
        snprintf(l->who, sizeof l->who, "%s", r->job.s);
        snprintf(l->what, sizeof l->what, "r%u g%u %s", r->round, r->group, r->file);
        break;
    case KEDGE_ST_JOB_CLOSED:
        snprintf(l->who, sizeof l->who, "%s", c->job.s);
        snprintf(l->what, sizeof l->what, "%s after %u rounds%s%s", outcomes[c->outcome], c->rounds,
                 c->reason[0] ? ": " : "", c->reason);
        break;
    default:
        break; /* a signed reply has no place in a log */
    }
}

/* The switch names every kind and has no default, so that the compiler asks for a line when a kind is added.
 */
static void describe_statement(const struct kedge_statement *st, struct line *l)
{
    switch (st->kind) {
    case KEDGE_ST_KEY:
    case KEDGE_ST_KEY_ADDED:
    case KEDGE_ST_KEY_ROTATED:
    case KEDGE_ST_KEY_REVOKED:
    case KEDGE_ST_KEY_RECOVERED:
        describe_key(st, l);
        break;
    case KEDGE_ST_SITE_ENROLLED:
    case KEDGE_ST_SITE_REVOKED:
    case KEDGE_ST_WITNESS_ENROLLED:
    case KEDGE_ST_WITNESS_REVOKED:
    case KEDGE_ST_JOB_JOINED:
    case KEDGE_ST_JOB_LEFT:
        describe_member(st, l);
        break;
    case KEDGE_ST_UPDATE:
    case KEDGE_ST_EVALUATION:
    case KEDGE_ST_GROUP_ASSIGNED:
    case KEDGE_ST_ERASED:
    case KEDGE_ST_CONTACT:
    case KEDGE_ST_SITE_LABELS:
        describe_work(st, l);
        break;
    case KEDGE_ST_JOB_ADMITTED:
    case KEDGE_ST_JOB_REFUSED:
        describe_admission(st, l);
        break;
    case KEDGE_ST_ROUND_OPENED:
    case KEDGE_ST_AGGREGATE:
    case KEDGE_ST_STEP:
        describe_round(st, l);
        break;
    case KEDGE_ST_POLICY:
    case KEDGE_ST_ROLE_GRANTED:
    case KEDGE_ST_ROLE_REVOKED:
    case KEDGE_ST_STATEMENT_KEY_ROTATED:
    case KEDGE_ST_POLICY_CHANGED:
    case KEDGE_ST_QUOTA_SET:
    case KEDGE_ST_JOB_OPENED:
    case KEDGE_ST_ROUND_TESTED:
    case KEDGE_ST_RELEASE:
    case KEDGE_ST_JOB_CLOSED:
    case KEDGE_ST_CLOSED:
    case KEDGE_ST_REFUSED:
    case KEDGE_ST_KIND_COUNT:
        describe_job(st, l);
        break;
    }
}

/* The three members are the same for every kind of entry, so that a script can list a log whose kinds it does
 * not know. */
static int put_line(json_t *row, const char *kind, const struct line *l)
{
    bool fine = json_object_set_new(row, "kind", json_string(kind)) == 0
                && json_object_set_new(row, "who", json_string(l->who)) == 0
                && json_object_set_new(row, "what", json_string(l->what)) == 0;
    return fine ? KEDGE_OK : KEDGE_E_NOMEM;
}

static int put_unreadable(json_t *row, const char *why)
{
    struct line l = {.who = ""};
    snprintf(l.what, sizeof l.what, "%.*s", (int)sizeof l.what - 1, why);
    return put_line(row, "unreadable", &l);
}

/* An entry that is no statement is a checkpoint of a tenant's log in the main chain, or nothing that this
 * program knows; the second is said in the row and is no error, for the other entries are still readable. */
static int put_checkpoint(struct kedge_view body, bool whole, json_t *row)
{
    struct line l = {.who = ""};
    struct kedge_checkpoint cp;
    struct kedge_note *note KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *note);
    if (!note) {
        return KEDGE_E_NOMEM;
    }
    if (kedge_note_parse(body, note) != KEDGE_OK || kedge_checkpoint_parse(note->text, &cp) != KEDGE_OK) {
        return put_unreadable(row, "neither a statement nor a checkpoint");
    }
    snprintf(l.who, sizeof l.who, "%.*s", (int)(cp.origin.len < WHO_LEN ? cp.origin.len : WHO_LEN - 1),
             (const char *)cp.origin.ptr);
    snprintf(l.what, sizeof l.what, "size %llu, root %s", (unsigned long long)cp.size, brief(cp.root.b).s);
    KEDGE_TRY(put_line(row, "checkpoint", &l));
    return whole && json_object_set_new(row, "note", json_stringn((const char *)body.ptr, body.len))
               ? KEDGE_E_NOMEM
               : KEDGE_OK;
}

/* Of one entry alone its content is shown, as it was signed. */
static int put_payload(struct kedge_view payload, json_t *row)
{
    json_t *o = NULL;
    int err = kedgei_json_load(payload, KEDGE_ENTRY_MAX, "statement", &o, NULL);
    return err || json_object_set_new(row, "payload", o) ? KEDGE_E_NOMEM
                                                         : KEDGE_OK; /* it was decoded before */
}

/* "signer", and "signers" where there are several. */
static int put_signers(const struct kedge_signed_statement *entry, json_t *row)
{
    char keyid[KEDGE_HASH_HEX_LEN + 1];
    json_t *all = json_array();
    bool fine = all != NULL;
    for (uint32_t i = 0; i < entry->signature_count; i++) {
        kedge_hash_hex(&entry->signatures[i].keyid, keyid);
        fine = fine && json_array_append_new(all, json_string(keyid)) == 0
               && (i > 0 || json_object_set_new(row, "signer", json_string(keyid)) == 0);
    }
    fine = fine && (entry->signature_count == 1 || json_object_set(row, "signers", all) == 0);
    json_decref(all);
    return fine ? KEDGE_OK : KEDGE_E_NOMEM;
}

static int put_decoded(const struct kedge_statement *st, const struct kedge_signed_statement *entry,
                       bool whole, json_t *row)
{
    struct line l = {.who = ""};
    describe_statement(st, &l);
    KEDGE_TRY(put_line(row, kedge_statement_kind_name(st->kind), &l));
    KEDGE_TRY(put_signers(entry, row));
    return whole ? put_payload(kedge_buf_view(&entry->payload), row) : KEDGE_OK;
}

/* Only memory ends the listing. An envelope that cannot be read is said in its row, with the reason. */
static int put_statement(struct kedge_view envelope, bool whole, json_t *row)
{
    struct kedge_signed_statement entry;
    struct kedge_diag d = {.text = ""};
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return KEDGE_E_NOMEM;
    }
    int err = kedge_statement_read(envelope, st, &entry, &d);
    if (!err) {
        err = put_decoded(st, &entry, whole, row);
    } else if (err != KEDGE_E_NOMEM) {
        err = put_unreadable(row, d.text);
    }
    kedge_buf_deinit(&entry.payload);
    return err;
}

/* An entry that cannot be read is described as such and is no error of the command: one damaged or unknown
 * entry must not hide the others. */
int kedge_cli_describe(struct kedge_view entry, bool in_main, bool whole, json_t *row)
{
    struct kedge_main_entry decoded = {.kind = KEDGE_MAIN_STATEMENT, .body = entry};
    if (in_main && kedge_main_entry_decode(entry, &decoded) != KEDGE_OK) {
        return put_unreadable(row, "neither a statement nor a checkpoint");
    }
    return decoded.kind == KEDGE_MAIN_CHECKPOINT ? put_checkpoint(decoded.body, whole, row)
                                                 : put_statement(decoded.body, whole, row);
}
