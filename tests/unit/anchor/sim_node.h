/* A simulated node of an Ethereum-compatible chain with the contract on it: blocks, a pool, reorganisations,
 * fees, dead hours, lost answers, lies; all from one seed. It answers what chain/anchor/evm_anchor.h asks. */
#ifndef KEDGE_TESTS_UNIT_ANCHOR_SIM_NODE_H
#define KEDGE_TESTS_UNIT_ANCHOR_SIM_NODE_H

#include "chain/anchor/evm_anchor.h"
#include "common/base/rng.h"

enum {
    SIM_BLOCKS = 20000,
    SIM_TXS = 1024,
    SIM_POOL = 32,
    SIM_BLOCK_MS = 12000,
    SIM_SAFE = 8,
    SIM_FINAL = 16
};

enum sim_lie {
    SIM_HONEST,
    SIM_LIE_CHAIN,      /* another chain id */
    SIM_LIE_NO_EVENT,   /* receipts that succeeded without event */
    SIM_LIE_ROOT,       /* events with another root */
    SIM_LIE_REVERTED,   /* receipts that failed */
    SIM_LIE_BLOCK,      /* receipts of blocks that are not canonical */
    SIM_LIE_FINAL_BACK, /* block 5 is the last final one again */
    SIM_LIE_FINAL_HASH, /* the final block changes */
    SIM_LIE_HEAD_AHEAD, /* the contract is further than we are */
    SIM_LIE_HEAD_BACK,
    SIM_LIE_HEAD_ROOT,
    SIM_LIES,
};

struct sim_tx {
    struct kedge_hash hash;
    struct kedge_evm_tx tx;
    struct kedge_evm_point point;
    uint8_t raw[KEDGE_EVM_ANCHOR_RAW_MAX];
    size_t raw_len;
    bool ours; /* an anchor of the machine's key; else only a nonce that is used */
};

struct sim_block {
    struct kedge_hash hash;
    uint64_t ms;
    uint32_t tx_from, tx_count; /* indices into mined[] */
    uint64_t nonce;             /* of the account behind this block */
    struct kedge_evm_head head; /* of the contract behind this block */
};

struct sim_node {
    struct kedge_rng rng;
    const struct kedge_evm_config *config;
    uint64_t chain_id, now_ms, base_fee, down_until_ms;
    bool faults; /* lost answers, dead hours, reorganisations, spikes */
    enum sim_lie lie;
    uint32_t latest, block_count;
    struct sim_block blocks[SIM_BLOCKS];
    uint32_t tx_count;
    struct sim_tx txs[SIM_TXS]; /* all that ever came in */
    uint32_t mined_count;
    uint32_t mined[SIM_BLOCKS]; /* indices into txs, block by block */
    uint32_t pool_count, pool[SIM_POOL];
    uint32_t reorgs, lost, sends, refused;
};

void sim_init(struct sim_node *n, uint64_t seed, const struct kedge_evm_config *config);
/* Time goes by: blocks are mined. */
void sim_advance(struct sim_node *n, uint64_t now_ms);
/* The newest `depth` blocks are replaced by empty ones; their transactions leave the pool as well. */
void sim_reorg(struct sim_node *n, uint32_t depth);
/* Someone else uses the account's next number. */
void sim_foreign(struct sim_node *n);
void sim_answer(struct sim_node *n, const struct kedge_evm_effect *fx, struct kedge_evm_answer *ret);
uint32_t sim_final(const struct sim_node *n);

#endif
