/* Anchoring the main chain's roots on an Ethereum-compatible chain, as a state machine: one event in, one
 * effect out. It talks through its host, one question at a time, and believes a node only what it can check.
 *
 *   PLANNED → SIGNED → SENT → MINED → SAFE → FINALIZED, and back to SENT when the block was reorganised away
 *
 * What holds, whatever the node does or the host's crashes interrupt:
 * - raw bytes and nonce are durable before they are first sent, and only those bytes are ever sent again;
 * - sequence numbers have no gaps, and a sequence number belongs to one nonce: replacements for a higher fee
 * keep nonce and call, so that no two transactions with one sequence number can both be mined;
 * - at most one transaction per interval, none while the main chain has nothing new;
 * - what unmined transactions can cost at most and what was mined in the last 24 hours stays, together,
 * within the daily budget. It counts gas limit times fee limit as signed: it needs no word of a node's;
 * - a node that contradicts itself or the main chain stops the machine, with the reason, until an operator
 * says otherwise.
 *
 * Pure: time is what the host says (Unix milliseconds; going back is taken as standing still). */
#ifndef KEDGE_CHAIN_ANCHOR_EVM_ANCHOR_H
#define KEDGE_CHAIN_ANCHOR_EVM_ANCHOR_H

#include "chain/anchor/evm_abi.h"
#include "common/base/diag.h"

enum {
    KEDGE_EVM_FLIGHT_MAX = 16,   /* anchors that are signed but not final: finality takes minutes */
    KEDGE_EVM_ATTEMPTS_MAX = 12, /* transactions of one anchor: 12.5 % more each time is 4 times the fee */
    KEDGE_EVM_ANCHOR_RAW_MAX = 320,
    KEDGE_EVM_TEXT_MAX = 240,
    KEDGE_EVM_HOURS = 26, /* of what was spent: 24, the running one, and the one that a window cuts */
    KEDGE_EVM_STATE_MAX = 128 * 1024, /* bytes of the durable state */
};

/* ---- configuration ---- */

enum kedge_evm_final { KEDGE_EVM_FINAL_SAFE, KEDGE_EVM_FINAL_FINALIZED };

struct kedge_evm_config {
    uint64_t chain_id;
    struct kedge_evm_address contract, sender;
    struct kedge_hash ns;
    uint64_t interval_ms;  /* between two anchors, at least */
    uint64_t poll_ms;      /* between two looks at the chain while something is under way */
    uint64_t resend_ms;    /* an unmined transaction is sent again after this time */
    uint64_t replace_ms;   /* and replaced by one with a higher fee after this */
    uint64_t gas;          /* gas limit of one anchor */
    uint64_t max_fee;      /* wei per gas, at most */
    uint64_t daily_budget; /* wei in any 24 hours, at most */
    enum kedge_evm_final final;
};

/* ---- what is durable ---- */

enum kedge_evm_phase {
    KEDGE_EVM_PLANNED, /* in memory only */
    KEDGE_EVM_SIGNED,
    KEDGE_EVM_SENT,
    KEDGE_EVM_MINED,
    KEDGE_EVM_SAFE,
    KEDGE_EVM_FINALIZED,
};
const char *kedge_evm_phase_name(enum kedge_evm_phase phase);

struct kedge_evm_attempt {
    struct kedge_hash hash;
    uint64_t max_fee, priority_fee; /* wei per gas */
    uint64_t signed_ms;
    uint16_t raw_len;
    uint8_t raw[KEDGE_EVM_ANCHOR_RAW_MAX];
};

struct kedge_evm_flight {
    struct kedge_evm_point point;
    enum kedge_evm_phase phase;
    uint64_t nonce, sent_ms;
    uint64_t since_ms; /* waits for a block since then: signed, or reorganised away */
    uint32_t attempt_count;
    struct kedge_evm_attempt attempts[KEDGE_EVM_ATTEMPTS_MAX]; /* fees ascend */
    uint64_t charged_hour; /* its cost is in that hour of the state; 0: in none */
    /* MINED and beyond: */
    uint32_t mined_attempt;
    uint64_t block, log_index;
    struct kedge_hash block_hash;
};

struct kedge_evm_state {
    struct kedge_evm_point last; /* newest final anchor; seq 0: none yet */
    bool begun;                  /* `last` and next_nonce are known */
    uint64_t next_nonce, planned_ms;
    uint64_t final_number; /* highest block that was final, 0: none */
    struct kedge_hash final_hash;
    uint32_t flight_count;
    struct kedge_evm_flight flights[KEDGE_EVM_FLIGHT_MAX]; /* seq and nonce ascend */
    struct {
        uint64_t hour, wei; /* hours since 1970 */
    } spent[KEDGE_EVM_HOURS];
    int stop_err; /* KEDGE_OK: goes on */
    char stop_text[KEDGE_EVM_TEXT_MAX];
};

/* ---- events ---- */

enum kedge_evm_method {
    KEDGE_EVM_CALL_CHAIN_ID, /* eth_chainId: number */
    KEDGE_EVM_CALL_NONCE,    /* eth_getTransactionCount(sender, tag): number */
    KEDGE_EVM_CALL_BLOCK,    /* eth_getBlockByNumber(tag): found, number, hash */
    KEDGE_EVM_CALL_BLOCK_AT, /* eth_getBlockByNumber(number): found, number, hash */
    KEDGE_EVM_CALL_RECEIPT,  /* eth_getTransactionReceipt(hash): found, receipt */
    KEDGE_EVM_CALL_HEADS,    /* eth_call heads(sender, ns) at latest: head */
    KEDGE_EVM_CALL_FEES,     /* eth_feeHistory: base_fee, priority_fee */
    KEDGE_EVM_CALL_SEND,     /* eth_sendRawTransaction(raw): hash */
};
enum kedge_evm_tag { KEDGE_EVM_LATEST, KEDGE_EVM_PENDING, KEDGE_EVM_TAG_SAFE, KEDGE_EVM_TAG_FINALIZED };

struct kedge_evm_receipt {
    bool succeeded;
    uint64_t block;
    struct kedge_hash block_hash;
    bool has_event; /* a log of the contract that is Anchored */
    struct kedge_evm_anchored event;
    uint64_t log_index;
};

struct kedge_evm_answer {
    int err; /* KEDGE_OK; KEDGE_E_DENIED: the node's own refusal, see text; anything else: outcome unknown */
    char text[KEDGE_EVM_TEXT_MAX]; /* the node's words or the host's */
    bool found;                    /* false: the node knows no such thing */
    uint64_t number, base_fee, priority_fee;
    struct kedge_hash hash;
    struct kedge_evm_receipt receipt;
    struct kedge_evm_head head;
};

enum kedge_evm_event_kind {
    KEDGE_EVM_TIMER,      /* also the first event after init or load */
    KEDGE_EVM_ANSWER,     /* to CALL */
    KEDGE_EVM_CHECKPOINT, /* to READ: err, size, root, root_at */
    KEDGE_EVM_RAW,        /* to SIGN: err, raw */
    KEDGE_EVM_DONE,       /* to SAVE and RECORD: err */
};
struct kedge_evm_event {
    enum kedge_evm_event_kind kind;
    int err;
    const struct kedge_evm_answer *answer;
    uint64_t size; /* of the newest signed checkpoint of the main chain, 0: none */
    struct kedge_hash root, root_at;
    struct kedge_view raw;
};

/* ---- effects ---- */

enum kedge_evm_effect_kind {
    KEDGE_EVM_WAIT,   /* until kedge_evm_anchor_deadline */
    KEDGE_EVM_CALL,   /* ask the node */
    KEDGE_EVM_READ,   /* read the main chain: newest checkpoint, and the root of its first at_size entries */
    KEDGE_EVM_SIGN,   /* sign tx */
    KEDGE_EVM_SAVE,   /* make the state durable (kedge_evm_anchor_save) */
    KEDGE_EVM_RECORD, /* write the evidence of a final anchor, durably */
    KEDGE_EVM_STOP,   /* over: err and said; only the operator can go on */
};
struct kedge_evm_effect {
    enum kedge_evm_effect_kind kind;
    enum kedge_evm_method method;
    enum kedge_evm_tag tag;
    uint64_t number;                       /* block */
    struct kedge_hash hash;                /* transaction */
    struct kedge_view raw;                 /* to send; borrowed until the next step */
    struct kedge_evm_tx tx;                /* to sign; its data borrowed until the next step */
    uint64_t at_size;                      /* READ; 0: no root_at wanted */
    const struct kedge_evm_flight *flight; /* RECORD */
    int err;
    char said[KEDGE_EVM_TEXT_MAX]; /* for people, when something happened; else empty */
};

/* ---- the machine: about 70 KB, no heap ---- */

enum kedge_evm_stage {
    KEDGE_EVM_AT_REST,
    KEDGE_EVM_AT_READ,
    KEDGE_EVM_AT_CHAIN,
    KEDGE_EVM_AT_FINAL,
    KEDGE_EVM_AT_OLD_FINAL,
    KEDGE_EVM_AT_SAFE,
    KEDGE_EVM_AT_RECEIPT,
    KEDGE_EVM_AT_CANON,
    KEDGE_EVM_AT_FOREIGN,
    KEDGE_EVM_AT_HEAD,
    KEDGE_EVM_AT_ADOPT,
    KEDGE_EVM_AT_RECORD,
    KEDGE_EVM_AT_SAVE,
    KEDGE_EVM_AT_SEND,
    KEDGE_EVM_AT_NONCE_PENDING,
    KEDGE_EVM_AT_NONCE_LATEST,
    KEDGE_EVM_AT_FEES,
    KEDGE_EVM_AT_SIGN,
    KEDGE_EVM_AT_SAVE_SIGNED,
    KEDGE_EVM_AT_STOP,
};

struct kedge_evm_anchor { /* private but for state, which may be read */
    struct kedge_evm_config config;
    struct kedge_evm_state state;
    enum kedge_evm_stage stage;
    uint64_t now_ms, deadline_ms;
    uint32_t failures; /* rounds of questions in a row that the node spoilt */
    uint32_t odd;      /* rounds in a row with a receipt out of a block that is not canonical */
    uint32_t foreign;  /* rounds in a row in which someone else had used a nonce of ours */
    uint32_t behind;   /* rounds in a row in which the head lagged behind what is mined */
    uint32_t back;     /* rounds in a row in which the final block was before the one known */
    bool dirty;        /* state differs from what is durable */
    bool replacing;    /* FEES, SIGN: for the first unmined flight, not for a new one */
    bool want_plan;    /* the main chain has something new and it is time */
    bool underpriced;  /* the node wants more for the first unmined flight */
    bool again;        /* new transactions to send before rest */
    uint64_t new_size;
    struct kedge_hash new_root, root_at;
    uint64_t at_size;
    struct kedge_evm_head head;
    uint64_t safe, final, nonce_pending;
    struct kedge_hash final_hash;
    uint32_t flight, attempt; /* cursors */
    struct kedge_evm_receipt receipt;
    struct kedge_evm_flight fresh; /* PLANNED */
    uint64_t fee, priority;
    uint8_t call[KEDGE_EVM_ANCHOR_CALL_LEN];
    char said[KEDGE_EVM_TEXT_MAX], waits_for[KEDGE_EVM_TEXT_MAX];
};

/* Starts without history. KEDGE_E_ARG for a configuration that could do nothing: zero gas, fee, interval or
 * poll, or a budget below one anchor at gas · 1 wei. */
KEDGE_NODISCARD int kedge_evm_anchor_init(struct kedge_evm_anchor *a, const struct kedge_evm_config *config,
                                          struct kedge_diag *reterr);
/* Behind init: takes up what kedge_evm_anchor_save gave. KEDGE_E_CORRUPT, or KEDGE_E_STATE when it belongs to
 * another chain, contract, sender or main chain; then the machine is as after init. */
KEDGE_NODISCARD int kedge_evm_anchor_load(struct kedge_evm_anchor *a, struct kedge_view bytes,
                                          struct kedge_diag *reterr);
/* Appends the durable form of the state. */
void kedge_evm_anchor_save(const struct kedge_evm_anchor *a, struct kedge_buf *out);
/* The operator's word after a stop, or after the state was lost: forgets what was under way and takes the
 * contract's head for the truth, if the main chain has that root at that size. Spent money stays counted. */
void kedge_evm_anchor_adopt(struct kedge_evm_anchor *a);

/* TIMER when the deadline has come; else exactly the answer to the last effect. */
void kedge_evm_anchor_step(struct kedge_evm_anchor *a, const struct kedge_evm_event *event, uint64_t now_ms,
                           struct kedge_evm_effect *ret_effect);
uint64_t kedge_evm_anchor_deadline(const struct kedge_evm_anchor *a);
/* True when nothing is under way and nothing new is due: the newest root that was read is final. */
bool kedge_evm_anchor_is_settled(const struct kedge_evm_anchor *a);
/* Wei that count against the budget at the machine's time. */
uint64_t kedge_evm_anchor_committed(const struct kedge_evm_anchor *a);

/* What a node's refusal of a transaction means, by its words: clients have no common codes. */
enum kedge_evm_refusal {
    KEDGE_EVM_REFUSAL_OTHER,
    KEDGE_EVM_REFUSAL_KNOWN,       /* it has these bytes already */
    KEDGE_EVM_REFUSAL_NONCE_LOW,   /* mined, or the nonce is used: the receipt tells */
    KEDGE_EVM_REFUSAL_UNDERPRICED, /* wants a higher fee */
    KEDGE_EVM_REFUSAL_CHAIN,       /* signed for another chain */
    KEDGE_EVM_REFUSAL_FUNDS,       /* the account cannot pay */
};
enum kedge_evm_refusal kedge_evm_refusal_of(const char *text);

#endif
