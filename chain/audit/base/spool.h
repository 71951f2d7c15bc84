/* One log out of its store and into a scratch file, by a child process: whatever a damaged file does to LMDB
 * ends there. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_BASE_SPOOL_H
#define KEDGE_CHAIN_AUDIT_BASE_SPOOL_H

#include "chain/audit/base/scratch.h"
#include "chain/state/state.h"

struct kedgei_spooling {
    const char *state;
    const struct kedge_id *tenant; /* NULL: main chain */
    bool beside;
    bool unsigned_heads; /* checkpoints will be verified under a trusted key, not under the stored one */
    uint32_t timeout_ms;
    uint64_t most; /* bytes that may come out of the store: a damaged one may be read in circles */
};

struct kedgei_spool {
    struct kedge_view records; /* a map: kedgei_scratch_unmap */
    struct kedge_hash salted;
    bool is_copy, damaged;
    char damage[KEDGE_DIAG_TEXT_MAX]; /* what the full check of the store found, when damaged */
    uint64_t entries, heads, keys;    /* records of each kind, no more than can be in the file */
};

/* Runs the full check of chain/store and reads everything. KEDGE_E_CORRUPT when the child died or there
 * is no end of records. */
KEDGE_NODISCARD int kedgei_spool(const struct kedgei_spooling *what, struct kedgei_scratch *scratch,
                                 struct kedgei_spool *ret, struct kedge_diag *reterr);

struct kedgei_spool_record {
    char kind;       /* 'e' entry, 'h' checkpoint, 'w' leaf hash of a withheld entry, 'k' idempotency key */
    uint64_t number; /* index of an entry, size of a checkpoint */
    struct kedge_view bytes;
};
/* Entries come ascending, then checkpoints, withheld ones, keys ascending. False at the end. */
bool kedgei_spool_next(struct kedge_reader *r, struct kedgei_spool_record *ret);

#endif
