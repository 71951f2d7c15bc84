/* Statements as they stand in the logs, each with the proof that it stands there, and the keys that signed.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/export/work.h"
#include "chain/proof.h"
#include "common/base/mem.h"
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
    int err = kedgei_ex_entry(log, index, &entry, w->reterr);
    if (err) {
        return err;
    }
    bool statement = entry.len > 0 && entry.ptr[0] == '{';
    err = kedgei_ex_put(&w->f, kedge_buf_view(&entry), w->reterr, "entries/%s-%08llu.%s", log->name,
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
    int err = put_entry(w, main, job->opened);
    for (size_t i = 0; i < job->round_count && !err; i++) {
        const struct kedgei_ex_round *round = &job->rounds[i];
        err = put_entry(w, main, round->opened);
        for (uint32_t g = 0; g < round->aggregate_count && !err; g++) {
            err = put_entry(w, main, round->aggregates[g]);
        }
        err = err ? err : put_entry(w, main, round->step);
        w->sum.rounds += round->step != KEDGEI_EX_NONE;
    }
    for (size_t g = 0; g < KEDGE_GROUPS_MAX && !err; g++) {
        err = put_entry(w, main, job->releases[g]);
    }
    return err ? err : put_entry(w, main, job->closed);
}

/* ---- keys ---- */

static int add_key(struct kedgei_ex_work *w, const struct kedgei_ex_log *log, const char *role,
                   const struct kedge_id *owner, const struct kedge_public_key *key, uint64_t from)
{
    if (w->key_count == w->key_cap) {
        size_t cap = w->key_cap ? 2 * w->key_cap : 32;
        struct kedgei_ex_key *keys = kedge_mem_resize(w->keys, cap, sizeof *keys);
        if (!keys) {
            return kedge_diag_set(w->reterr, KEDGE_E_NOMEM, "out of memory");
        }
        w->keys = keys;
        w->key_cap = cap;
    }
    w->keys[w->key_count++] = (struct kedgei_ex_key){log, role, *owner, *key, from, KEDGEI_EX_NONE};
    return KEDGE_OK;
}

static void end_key(struct kedgei_ex_work *w, const struct kedgei_ex_log *log,
                    const struct kedge_public_key *key, uint64_t index)
{
    for (size_t i = 0; i < w->key_count; i++) {
        struct kedgei_ex_key *k = &w->keys[i];
        if (k->log == log && k->until == KEDGEI_EX_NONE && kedge_public_key_eq(&k->key, key)) {
            k->until = index;
        }
    }
}

static int take_keys(struct kedgei_ex_work *w, struct kedgei_ex_log *log, uint64_t index)
{
    const struct kedge_statement *st = w->a;
    if (st->kind == KEDGE_ST_KEY) {
        return add_key(w, log, "tenant-admin", &log->log.tenant, &st->u.key.public_key, index);
    }
    if (st->kind == KEDGE_ST_SITE_ENROLLED) {
        return add_key(w, log, "site", &st->u.site_enrolled.site, &st->u.site_enrolled.statement_key, index);
    }
    if (st->kind == KEDGE_ST_SITE_REVOKED) {
        end_key(w, log, &st->u.site_revoked.statement_key, index);
    }
    return KEDGE_OK;
}

static json_t *key_json(const struct kedgei_ex_key *k)
{
    char hex[2 * KEDGE_KEY_LEN + 1];
    kedge_hex_encode(k->key.b, KEDGE_KEY_LEN, hex);
    json_t *o = json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "role", k->role, "owner",
                          k->owner.s[0] ? k->owner.s : k->log->name, "algorithm", "ed25519", "public_key",
                          hex, "log", k->log->log.origin, "valid_from", (json_int_t)k->from);
    if (k->until != KEDGEI_EX_NONE) {
        json_object_set_new(o, "valid_until", json_integer((json_int_t)k->until));
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
    int err = kedge_pem_put_public(&pem, &w->o->key.public);
    err = err ? err : kedgei_ex_put(&w->f, kedge_buf_view(&pem), w->reterr, "keys/attestations.pub.pem");
    kedge_buf_clear(&pem);
    err = err ? err : kedge_p256_put_public(&pem, &w->o->model_key);
    return err ? err : kedgei_ex_put(&w->f, kedge_buf_view(&pem), w->reterr, "keys/models.pub.pem");
}

int kedgei_ex_keys(struct kedgei_ex_work *w)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    const struct kedge_trust *trust = w->o->trust;
    struct kedgei_ex_key statement = {.log = &w->r.main,
                                      .role = "coordinator-statements",
                                      .key = trust->statement_key,
                                      .from = w->r.policy == KEDGEI_EX_NONE ? 0 : w->r.policy,
                                      .until = KEDGEI_EX_NONE};
    struct kedgei_ex_key exporter = {
        .log = &w->r.main, .role = "exporter", .key = w->o->key.public, .until = KEDGEI_EX_NONE};
    kedge_buf_init(&text, 16 * 1024 * 1024);
    int err = put_line(&text, key_json(&statement));
    err = err ? err : put_line(&text, vkey_json("log", &trust->main_log));
    for (uint32_t i = 0; i < w->r.tenant_count && !err; i++) {
        const struct kedgei_ex_log *log = &w->r.tenants[i];
        const struct kedge_trust_tenant *t = kedge_trust_find(trust, &log->log.tenant);
        if (t && log->permitted) {
            err = put_line(&text, vkey_json("log", &t->log));
        }
    }
    for (size_t i = 0; i < w->key_count && !err; i++) {
        err = put_line(&text, key_json(&w->keys[i]));
    }
    err = err ? err : put_line(&text, key_json(&exporter));
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

static void sum_up(struct kedgei_ex_job *job, const struct kedge_statement *st)
{
    if (st->kind == KEDGE_ST_UPDATE) {
        const struct kedge_st_update *u = &st->u.update;
        job->joules_known =
            (job->updates == 0 || job->joules_known) && u->energy_quality != KEDGE_ENERGY_UNKNOWN;
        job->joules += u->energy_joules;
        job->updates++;
    } else if (st->kind == KEDGE_ST_EVALUATION && st->u.evaluation.group < KEDGE_GROUPS_MAX) {
        const struct kedge_st_evaluation *e = &st->u.evaluation;
        struct kedgei_ex_metrics *m = &job->metrics[e->group];
        if (e->round > m->round || m->samples == 0) {
            *m = (struct kedgei_ex_metrics){.round = e->round};
        }
        if (e->round == m->round) {
            m->sites++;
            m->samples += e->samples;
            m->correct += e->correct;
            m->loss_sum += e->loss * (double)e->samples;
        }
    }
}

static int put_tenant(struct kedgei_ex_work *w, struct kedgei_ex_log *log)
{
    int err = put_entry(w, &w->r.main, log->anchor);
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
        if (job) {
            sum_up(job, w->a);
        }
        err = take_keys(w, log, i);
        err = err ? err : put_entry(w, log, i);
    }
    return err;
}

int kedgei_ex_statements(struct kedgei_ex_work *w)
{
    int err = put_entry(w, &w->r.main, w->r.policy);
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
