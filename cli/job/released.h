/* What the main chain proves of a job's models, before they are taken. A coordinator's bare word would do for
 * nobody: it could hand out another model, or another spec, under which the same model means something else.
 * So its answer brings two entries with their inclusion proofs, the release of each model and the opening of
 * the job, and the step that named its classes where it learnt them; they are held to the log key that was
 * known before, and to the witness policy of the trust file where that has one. */
#ifndef KEDGE_CLI_JOB_RELEASED_H
#define KEDGE_CLI_JOB_RELEASED_H

#include "chain/log/note.h"
#include "chain/log/witness_policy.h"
#include "cli/cli.h"
#include "common/tensor/class_names.h"
#include "crypto/hash.h"

struct kedge_cli_chain {
    struct kedge_vkey log;               /* of the main chain */
    struct kedge_witness_policy *policy; /* owned; NULL: no cosignature is demanded */
};

/* KEDGE_E_USAGE: no key is known against which anything could be checked. */
KEDGE_NODISCARD int kedge_cli_chain_open(struct kedge_cli *c, struct kedge_cli_chain *ret,
                                         struct kedge_diag *d);
void kedge_cli_chain_close(struct kedge_cli_chain *chain);

/* "release" and "proof" of a model's row: that this group's model of the job was released with this digest.
 * *ret_index: the entry. KEDGE_E_VERIFY: nothing proves it. */
KEDGE_NODISCARD int kedge_cli_check_release(const struct kedge_cli_chain *chain, const json_t *row,
                                            const struct kedge_id *job, const struct kedge_hash *digest,
                                            uint64_t *ret_index, struct kedge_diag *d);
/* "opened" and "opened_proof" of the answer: that the job was opened with this spec. KEDGE_E_VERIFY. */
KEDGE_NODISCARD int kedge_cli_check_opened(const struct kedge_cli_chain *chain, const json_t *answer,
                                           const struct kedge_id *job, const struct kedge_hash *spec,
                                           struct kedge_diag *d);
/* "named" and "named_proof", where the answer has them: what classes the job learnt; else none are.
 * KEDGE_E_VERIFY. */
KEDGE_NODISCARD int kedge_cli_check_named(const struct kedge_cli_chain *chain, const json_t *answer,
                                          const struct kedge_id *job, char ret[KEDGE_CLASS_NAMES_ROOM],
                                          struct kedge_diag *d);

#endif
