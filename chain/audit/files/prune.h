/* Models that a record proves without having them. A model is intermediate when a round's aggregate made it
 * as it is, its job has ended, and it is neither a first nor a released nor a last model of any job: what the
 * round's updates and the model before give again, bit for bit. Its operator may give up its file
 * (chain/store/blob/pruned.h); verify tells of it, replay makes it again in a scratch folder and goes on from
 * there. */
#ifndef KEDGE_CHAIN_AUDIT_FILES_PRUNE_H
#define KEDGE_CHAIN_AUDIT_FILES_PRUNE_H

#include "chain/audit/rounds/replay.h"

/* Intermediate models by the record: of `job` (NULL: all), but for every n-th round (0: none is kept), and
 * only where none of the updates is erased. Appends digests, 32 bytes each, ascending. */
KEDGE_NODISCARD int kedgei_intermediate(struct kedgei_audit *a, const struct kedge_id *job,
                                        uint32_t keep_every, struct kedge_buf *ret);
/* What main/pruned.txt lists and may: into a->pruned. Other digests there are missing blobs like any. */
KEDGE_NODISCARD int kedgei_pruned_load(struct kedgei_audit *a);
/* Makes what is pruned again, round by round, before decisions are replayed; what cannot be made stays
 * missing. */
KEDGE_NODISCARD int kedgei_rebuild(struct kedgei_replay *r);
/* After the replay: decisions that begin with a model which was pruned and which nobody can make again, since
 * updates that it was made of are erased. They count as decisions over erased updates, and nothing that was
 * computed of them is part of the digest. */
void kedgei_tell_unmade(struct kedgei_replay *r);
/* Removes the scratch folder of that. */
void kedgei_rebuild_end(struct kedgei_audit *a);

#endif
