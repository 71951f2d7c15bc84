/* Statements as they stand in the logs, each with the proof that it stands there, and the keys that signed.
 */
#include <jansson.h>
#include <string.h>

#include "chain/export/work.h"
#include "chain/log/proof.h"
#include "chain/statement/keybook.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "crypto/keyfile.h"

/* ---- one entry ---- */

static int put_proof(struct kedgei_ex_work *w, struct kedgei_ex_log *log, uint64_t index)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_proof proof = {.index = index, .note = kedge_buf_view(&log->note)};
    kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
    int err = kedge_ledger_inclusion(log->log.ledger, index, log->size, &proof.path);
    if (!err) {
        kedge_proof_encode(&proof, &text);
        err = text.err;
    }
    if (err) {
        return kedge_diag_set(w->reterr, err, "%s[%llu]: no proof: %s", log->name, (unsigned long long)index,
                              kedge_strerror(err));
    }
    w->sum.proofs++;
    return kedgei_ex_put(&w->f, kedge_buf_view(&text), w->reterr, "proofs/%s-%08llu.tlog-proof", log->name,
                         (unsigned long long)index);
}

/* Entry and proof; a statement also joins the lineage, verbatim. */
static int put_entry(struct kedgei_ex_work *w, struct kedgei_ex_log *log, uint64_t index)
{
    struct kedge_buf entry KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    if (index == KEDGEI_EX_NONE || index >= log->size) {
        return KEDGE_OK; /* nothing there, or not yet under a checkpoint */
    }
    KEDGE_TRY(kedgei_ex_entry(log, index, &entry, w->reterr));
    bool statement = entry.len > 0 && entry.ptr[0] == '{';
    int err = kedgei_ex_put(&w->f, kedge_buf_view(&entry), w->reterr, "entries/%s-%08llu.%s", log->name,
                            (unsigned long long)index, statement ? "json" : "bin");
    if (!err && statement) {
        w->sum.statements++;
        kedge_buf_put(&w->lineage, entry.ptr, entry.len);
        kedge_buf_put_u8(&w->lineage, '\n');
        err = w->lineage.err;
    }
    return err ? err : put_proof(w, log, index);
}

/* ---- the main chain ---- */

static int put_job(struct kedgei_ex_work *w, const struct kedgei_ex_job *job)
{
    struct kedgei_ex_log *main = &w->r.main;
    KEDGE_TRY(put_entry(w, main, job->opened));
    for (size_t i = 0; i < job->round_count; i++) {
        const struct kedgei_ex_round *round = &job->rounds[i];
        KEDGE_TRY(put_entry(w, main, round->opened));
        for (uint32_t g = 0; g < round->aggregate_count; g++) {
            KEDGE_TRY(put_entry(w, main, round->aggregates[g]));
        }
        KEDGE_TRY(put_entry(w, main, round->step));
        w->sum.rounds += round->step != KEDGEI_EX_NONE;
    }
    for (size_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        KEDGE_TRY(put_entry(w, main, job->releases[g]));
    }
    return put_entry(w, main, job->closed);
}

/* ---- keys ---- */

/* until: KEDGE_KEYBOOK_ALWAYS while it is in force. */
static json_t *key_json(const char *role, const char *owner, const char *log,
                        const struct kedge_public_key *key, uint64_t from, uint64_t until)
{
    char hex[2 * KEDGE_KEY_LEN + 1];
    kedge_hex_encode(key->b, KEDGE_KEY_LEN, hex);
    json_t *o = json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "role", role, "owner", owner, "algorithm", "ed25519",
                          "public_key", hex, "log", log, "valid_from", (json_int_t)from);
    if (until != KEDGE_KEYBOOK_ALWAYS) {
        json_object_set_new(o, "valid_until", json_integer((json_int_t)until));
    }
    return o;
}

static int put_line(struct kedge_buf *out, json_t *o)
{
    int err = kedgei_ex_dump(o, out);
    json_decref(o);
    kedge_buf_put_u8(out, '\n');
    return err ? err : out->err;
}

static json_t *vkey_json(const char *role, const struct kedge_vkey *vkey)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_VKEY_MAX + 1);
    kedge_vkey_encode(vkey, &text);
    kedge_buf_put_u8(&text, 0);
    return text.err ? NULL
                    : json_pack("{s:s,s:s,s:s,s:s}", "role", role, "owner", vkey->name, "algorithm",
                                "ed25519", "vkey", (const char *)text.ptr);
}

static int put_public(struct kedgei_ex_work *w)
{
    struct kedge_buf pem KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&pem, KEDGE_EC_PEM_MAX);
    KEDGE_TRY(kedge_pem_put_public(&pem, &w->o->key.public));
    KEDGE_TRY(kedgei_ex_put(&w->f, kedge_buf_view(&pem), w->reterr, "keys/attestations.pub.pem"));
    kedge_buf_clear(&pem);
    KEDGE_TRY(kedge_p256_put_public(&pem, &w->o->model_key));
    return kedgei_ex_put(&w->f, kedge_buf_view(&pem), w->reterr, "keys/models.pub.pem");
}

/* A permitted tenant's keys, in the order of their coming. */
static int put_book(struct kedgei_ex_work *w, const struct kedgei_ex_log *log,
                    const struct kedge_keybook *book)
{
    for (uint32_t i = 0; i < book->count; i++) {
        const struct kedge_book_key *k = &book->keys[i];
        json_t *o = key_json(kedge_key_role_name(k->role), k->holder.s[0] ? k->holder.s : log->name,
                             log->log.origin, &k->key, k->from, k->until);
        if (k->revoked) {
            json_object_set_new(o, "revoked", json_true());
        }
        KEDGE_TRY(put_line(&w->key_lines, o));
    }
    return KEDGE_OK;
}

/* The coordinator's statement keys, each with the entries of the main chain that it came and went with. */
static int put_statement_keys(struct kedgei_ex_work *w, struct kedge_buf *out)
{
    const struct kedgei_ex_record *r = &w->r;
    const char *origin = r->main.log.origin;
    struct kedge_public_key key = w->o->trust->statement_key;
    uint64_t from = r->policy == KEDGEI_EX_NONE ? 0 : r->policy;
    int err = KEDGE_OK;
    for (uint32_t i = 0; i <= r->rotation_count && !err; i++) {
        bool last = i == r->rotation_count || r->rotations[i] >= r->main.size;
        err = put_line(out, key_json("coordinator's statement key", r->deployment, origin, &key, from,
                                     last ? KEDGE_KEYBOOK_ALWAYS : r->rotations[i]));
        if (err || last) {
            break;
        }
        from = r->rotations[i];
        err = kedgei_ex_read(&w->r.main, from, w->a, w->reterr);
        key = w->a->u.statement_key_rotated.new_key;
    }
    return err;
}

int kedgei_ex_keys(struct kedgei_ex_work *w)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    const struct kedge_trust *trust = w->o->trust;
    const char *origin = w->r.main.log.origin;
    kedge_buf_init(&text, 16 * 1024 * 1024);
    int err = put_statement_keys(w, &text);
    if (!err) {
        err = put_line(&text, vkey_json("log", &trust->main_log));
    }
    for (uint32_t i = 0; i < w->r.tenant_count && !err; i++) {
        const struct kedgei_ex_log *log = &w->r.tenants[i];
        const struct kedge_trust_tenant *t = kedge_trust_find(trust, &log->log.tenant);
        if (t && log->permitted) {
            err = put_line(&text, vkey_json("log", &t->log));
        }
    }
    kedge_buf_put(&text, w->key_lines.ptr, w->key_lines.len);
    if (!err) {
        err = put_line(&text, key_json("exporter's key", "exporter", origin, &w->o->key.public, 0,
                                       KEDGE_KEYBOOK_ALWAYS));
    }
    if (err) {
        return kedge_diag_set(w->reterr, err, "keys.jsonl: %s", kedge_strerror(err));
    }
    err = kedgei_ex_put(&w->f, kedge_buf_view(&text), w->reterr, "keys.jsonl");
    return err ? err : put_public(w);
}

/* ---- a permitted tenant's ledger ---- */

/* The job that a tenant's statement is about, or NULL for none. */
static const struct kedge_id *job_of(const struct kedge_statement *st)
{
    return st->kind == KEDGE_ST_JOB_JOINED       ? &st->u.job_joined.job
           : st->kind == KEDGE_ST_JOB_LEFT       ? &st->u.job_left.job
           : st->kind == KEDGE_ST_UPDATE         ? &st->u.update.job
           : st->kind == KEDGE_ST_EVALUATION     ? &st->u.evaluation.job
           : st->kind == KEDGE_ST_GROUP_ASSIGNED ? &st->u.group_assigned.job
                                                 : NULL;
}

static struct kedgei_ex_job *find_job(const struct kedgei_ex_record *r, const struct kedge_id *id)
{
    for (uint32_t i = 0; i < r->job_count; i++) {
        if (r->jobs[i]->release_count > 0 && kedge_id_eq(&r->jobs[i]->id, id)) {
            return r->jobs[i];
        }
    }
    return NULL;
}

/* One walk over a permitted tenant's ledger: statements about jobs that are not exported are passed over,
 * all others are put, and on the way keys are followed and what each site gave is added up. Keys are put
 * even if they signed nothing here: the check follows rotations from the first admin key on. */
static int put_tenant(struct kedgei_ex_work *w, struct kedgei_ex_log *log)
{
    struct kedge_keybook book;
    int err = put_entry(w, &w->r.main, log->anchor);
    kedge_keybook_init(&book, &log->log.tenant);
    for (uint64_t i = 0; i < log->size && !err; i++) {
        err = kedgei_ex_read(log, i, w->a, w->reterr);
        if (err) {
            break;
        }
        const struct kedge_id *id = job_of(w->a);
        struct kedgei_ex_job *job = id ? find_job(&w->r, id) : NULL;
        if (id && !job) {
            continue; /* of a job that is not exported */
        }
        if (job && kedgei_ex_job_sum(job, (uint32_t)(log - w->r.tenants), w->a) != KEDGE_OK) {
            err = kedge_diag_set(w->reterr, KEDGE_E_NOMEM, "out of memory");
            break;
        }
        if (kedge_keybook_concerns(w->a->kind)) {
            err = kedge_keybook_apply(&book, w->a, i, w->reterr);
        }
        if (!err) {
            err = put_entry(w, log, i);
        }
    }
    if (!err) {
        err = put_book(w, log, &book);
    }
    kedge_keybook_deinit(&book);
    return err;
}

int kedgei_ex_statements(struct kedgei_ex_work *w)
{
    int err = put_entry(w, &w->r.main, w->r.policy);
    for (uint32_t i = 0; i < w->r.rotation_count && !err; i++) {
        err = put_entry(w, &w->r.main, w->r.rotations[i]);
    }
    for (uint32_t j = 0; j < w->r.job_count && !err; j++) {
        if (w->r.jobs[j]->release_count > 0) {
            err = put_job(w, w->r.jobs[j]);
        }
    }
    for (uint32_t i = 0; i < w->r.tenant_count && !err; i++) {
        if (w->r.tenants[i].permitted) {
            err = put_tenant(w, &w->r.tenants[i]);
        }
    }
    return err;
}
