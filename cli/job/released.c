/* That a model, a spec or names of classes are what the main chain says: entry, inclusion proof, checkpoint
 * and, where the trust file asks for it, the witnesses' quorum, all under a key that was known before.
 *
 * The model itself is fetched by its digest, so the digest is the only thing that has to be proven. A
 * coordinator that shows another job's release, an older one of another group, or one without its proof is
 * refused with what was wrong; nothing is written. */
#include "cli/job/released.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/audit/audit.h"
#include "chain/log/merkle.h"
#include "chain/log/proof.h"
#include "chain/log/witness_quorum.h"
#include "cli/receipt.h"
#include "common/base/mem.h"
#include "job/job_spec.h"

/* The quorum of witnesses comes from the caller's trust file, never from the coordinator, which would ask for
 * as few as it has. */
static int take_policy(const char *path, struct kedge_cli_chain *chain, struct kedge_diag *d)
{
    struct kedge_trust trust;
    int err = kedge_trust_read(path, &trust, d);
    if (err) {
        return kedge_diag_wrap(d, err, "--trust");
    }
    if (trust.witness_policy) {
        err = kedge_witness_policy_parse(kedge_view_str(trust.witness_policy), &chain->policy, d);
    }
    kedge_trust_deinit(&trust);
    return err;
}

/* The key of the main chain is the one that was known before (receipt.h): from the trust file, or on the
 * coordinator's machine from its folder. */
int kedge_cli_chain_open(struct kedge_cli *c, struct kedge_cli_chain *ret, struct kedge_diag *d)
{
    struct kedge_cli_chain chain = {.policy = NULL};
    int err = kedge_cli_main_vkey(c, &chain.log, d);
    err = err || !c->trust ? err : take_policy(c->trust, &chain, d);
    if (!err) {
        *ret = chain;
    }
    return err;
}

void kedge_cli_chain_close(struct kedge_cli_chain *chain)
{
    kedge_witness_policy_free(chain->policy);
    chain->policy = NULL;
}

static int check_quorum(const struct kedge_cli_chain *chain, struct kedge_view note, struct kedge_diag *d)
{
    struct kedge_witness_demand demand = {
        .origin = kedge_view_str(chain->log.name), .logs = &chain->log, .log_count = 1};
    struct kedge_witness_evaluation *e KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *e);
    return e ? kedge_witness_policy_evaluate(chain->policy, note, &demand, e, d) : KEDGE_E_NOMEM;
}

/* Entry, proof, checkpoint and key belong together. */
static int open_entry(const struct kedge_cli_chain *chain, const json_t *o, const char *entry_name,
                      const char *proof_name, struct kedge_statement *ret, uint64_t *ret_index,
                      struct kedge_diag *d)
{
    const char *entry = kedge_cli_text(o, entry_name), *text = kedge_cli_text(o, proof_name);
    struct kedge_proof *proof = kedge_mem_new(1, sizeof *proof);
    struct kedge_signed_statement parts;
    struct kedge_hash leaf;
    int err = proof ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err && (!entry[0] || kedge_proof_decode(kedge_view_str(text), proof) != KEDGE_OK)) {
        err = kedge_diag_set(d, KEDGE_E_VERIFY, "the coordinator shows no entry of %s with its proof",
                             chain->log.name);
    }
    if (!err) {
        kedge_merkle_leaf(kedge_view_str(entry), &leaf);
        err = kedge_proof_verify(proof, &leaf, kedge_view_str(chain->log.name), &chain->log, 1, NULL)
                      == KEDGE_OK
                  ? KEDGE_OK
                  : kedge_diag_set(
                      d, KEDGE_E_VERIFY,
                      "entry, proof and checkpoint do not belong together under the key of %s that "
                      "was known before",
                      chain->log.name);
    }
    err = err || !chain->policy ? err : check_quorum(chain, proof->note, d);
    if (!err) {
        err = kedge_statement_read(kedge_view_str(entry), ret, &parts, d);
        kedge_buf_deinit(&parts.payload);
        *ret_index = proof->index;
    }
    kedge_mem_free(proof);
    return err;
}

/* What was wrong, all of it, is the coordinator's doing, and the same to the person who asked. */
static int not_proven(int err, const char *what, const struct kedge_id *job, struct kedge_diag *d)
{
    if (!err || err == KEDGE_E_NOMEM) {
        return err;
    }
    char why[KEDGE_DIAG_TEXT_MAX];
    snprintf(why, sizeof why, "%.400s", d->text);
    (void)kedge_diag_set(d, KEDGE_E_VERIFY, "nothing proves that this is %s of job %s: %s", what, job->s,
                         why[0] ? why : kedge_strerror(err));
    (void)kedge_diag_hint(d, "nothing was taken; compare the trust file with what others have, and ask them "
                             "what the main chain shows (kedge ledger follow, kedge audit verify)");
    return KEDGE_E_VERIFY;
}

/* The signature says that an entry is in the log; this says that it is the right one: a release, of this job,
 * of this group, of this digest. Without any of the four, a true entry could be shown for another model. */
int kedge_cli_check_release(const struct kedge_cli_chain *chain, const json_t *row,
                            const struct kedge_id *job, const struct kedge_hash *digest, uint64_t *ret_index,
                            struct kedge_diag *d)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? open_entry(chain, row, "release", "proof", st, ret_index, d) : KEDGE_E_NOMEM;
    if (!err
        && (st->kind != KEDGE_ST_RELEASE || !kedge_id_eq(&st->u.release.job, job)
            || (int64_t)st->u.release.group != kedge_cli_int(row, "group")
            || !kedge_hash_eq(&st->subject, digest))) {
        err = kedge_diag_set(d, KEDGE_E_VERIFY, "entry %" PRIu64 " of %s says something else", *ret_index,
                             chain->log.name);
    }
    kedge_mem_free(st);
    return not_proven(err, "a released model", job, d);
}

/* The job's first entry names the digest of its spec, so the spec that is fetched by it is the one that the
 * tenants joined. */
int kedge_cli_check_opened(const struct kedge_cli_chain *chain, const json_t *answer,
                           const struct kedge_id *job, const struct kedge_hash *spec, struct kedge_diag *d)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    uint64_t index = 0;
    int err = st ? open_entry(chain, answer, "opened", "opened_proof", st, &index, d) : KEDGE_E_NOMEM;
    if (!err
        && (st->kind != KEDGE_ST_JOB_OPENED || !kedge_id_eq(&st->u.job_opened.job, job)
            || !kedge_hash_eq(&st->subject, spec))) {
        err = kedge_diag_set(d, KEDGE_E_VERIFY, "entry %" PRIu64 " of %s says something else", index,
                             chain->log.name);
    }
    kedge_mem_free(st);
    return not_proven(err, "the spec", job, d);
}

/* A job that learnt the names of its classes has them in a step of the main chain; a job whose spec has them
 * shows none, which is no error. */
int kedge_cli_check_named(const struct kedge_cli_chain *chain, const json_t *answer,
                          const struct kedge_id *job, char ret[KEDGE_CLASS_NAMES_ROOM], struct kedge_diag *d)
{
    uint64_t index = 0;
    memset(ret, 0, KEDGE_CLASS_NAMES_ROOM);
    if (!json_object_get(answer, "named")) {
        return KEDGE_OK;
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? open_entry(chain, answer, "named", "named_proof", st, &index, d) : KEDGE_E_NOMEM;
    if (!err
        && (st->kind != KEDGE_ST_STEP || !kedge_id_eq(&st->u.step.job, job)
            || st->u.step.round != KEDGE_CLASSES_ROUND)) {
        err = kedge_diag_set(d, KEDGE_E_VERIFY, "entry %" PRIu64 " of %s says something else", index,
                             chain->log.name);
    }
    if (!err) {
        memcpy(ret, st->u.step.classes, KEDGE_CLASS_NAMES_ROOM);
    }
    kedge_mem_free(st);
    return not_proven(err, "the names of the classes", job, d);
}
