#include "tests/unit/anchor/sim_node.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void fill_hash(struct sim_node *n, struct kedge_hash *ret)
{
    for (size_t i = 0; i < sizeof ret->b; i += 8) {
        kedge_store_be64(ret->b + i, kedge_rng_u64(&n->rng));
    }
}

static bool chance(struct sim_node *n, uint64_t one_in)
{
    return n->faults && kedge_rng_below(&n->rng, one_in) == 0;
}

void sim_init(struct sim_node *n, uint64_t seed, const struct kedge_evm_config *config)
{
    memset(n, 0, sizeof *n);
    kedge_rng_init(&n->rng, seed, KEDGE_RNG_TEST, 0, 0);
    n->config = config;
    n->chain_id = config->chain_id;
    n->base_fee = 1000000000;
    n->block_count = 1;
    fill_hash(n, &n->blocks[0].hash);
}

uint32_t sim_final(const struct sim_node *n)
{
    return n->latest > SIM_FINAL ? n->latest - SIM_FINAL : 0;
}

static bool is_mined(const struct sim_node *n, uint32_t tx, uint32_t *ret_block)
{
    for (uint32_t b = n->latest; b > 0; b--) {
        const struct sim_block *k = &n->blocks[b];
        for (uint32_t i = 0; i < k->tx_count; i++) {
            if (n->mined[k->tx_from + i] == tx) {
                *ret_block = b;
                return true;
            }
        }
    }
    return false;
}

static bool accepts(const struct kedge_evm_head *head, const struct sim_tx *t)
{
    return t->point.seq == head->seq + 1 && t->point.size >= head->size;
}

static void mine(struct sim_node *n, bool empty)
{
    ck_assert_uint_lt(n->latest + 1, SIM_BLOCKS);
    struct sim_block *b = &n->blocks[n->latest + 1];
    *b = (struct sim_block){.ms = n->now_ms, .tx_from = n->mined_count};
    fill_hash(n, &b->hash);
    b->nonce = n->blocks[n->latest].nonce;
    b->head = n->blocks[n->latest].head;
    n->latest++;
    for (uint32_t i = 0; !empty && i < n->pool_count;) {
        const struct sim_tx *t = &n->txs[n->pool[i]];
        bool fits = t->tx.nonce == b->nonce && t->tx.max_fee >= n->base_fee;
        if (!fits) {
            i++;
            continue;
        }
        n->mined[n->mined_count++] = n->pool[i];
        b->tx_count++;
        b->nonce++;
        if (t->ours && accepts(&b->head, t)) {
            b->head = (struct kedge_evm_head){t->point.seq, t->point.size, n->latest, t->point.root};
        }
        n->pool[i] = n->pool[--n->pool_count];
        i = 0; /* the next number may be before it */
    }
}

void sim_reorg(struct sim_node *n, uint32_t depth)
{
    depth = depth < n->latest ? depth : n->latest;
    if (n->latest - depth < sim_final(n)) {
        return;
    }
    n->mined_count = n->blocks[n->latest - depth + 1].tx_from;
    n->latest -= depth;
    n->pool_count = 0;
    n->reorgs++;
    for (uint32_t i = 0; i < depth; i++) {
        mine(n, true);
    }
}

void sim_foreign(struct sim_node *n)
{
    struct sim_tx *t = &n->txs[n->tx_count];
    memset(t, 0, sizeof *t);
    t->tx.nonce = n->blocks[n->latest].nonce;
    t->tx.max_fee = UINT64_MAX;
    n->pool_count = 0;
    n->pool[n->pool_count++] = n->tx_count++;
    mine(n, false);
}

void sim_advance(struct sim_node *n, uint64_t now_ms)
{
    while (n->now_ms + SIM_BLOCK_MS <= now_ms) {
        n->now_ms += SIM_BLOCK_MS;
        uint64_t drift = n->base_fee / 16;
        n->base_fee += kedge_rng_below(&n->rng, 2 * drift + 1) - drift;
        n->base_fee = n->base_fee < 100000000 ? 100000000 : n->base_fee;
        n->base_fee = n->base_fee > 5000000000 && !n->faults ? 5000000000 : n->base_fee;
        if (chance(n, 150)) {
            n->base_fee *= 2 + kedge_rng_below(&n->rng, 6); /* a spike */
        }
        if (chance(n, 120) && n->base_fee > 4000000000) {
            n->base_fee = 1000000000;
        }
        mine(n, chance(n, 6));
        if (chance(n, 60)) {
            bool safe = n->config->final == KEDGE_EVM_FINAL_SAFE; /* what counts as final stays */
            sim_reorg(n, 1 + (uint32_t)kedge_rng_below(&n->rng, (safe ? SIM_SAFE : SIM_FINAL) - 1));
        }
        if (chance(n, 500)) {
            n->down_until_ms = n->now_ms + kedge_rng_below(&n->rng, 3600 * 1000);
        }
        if (chance(n, 100)) {
            n->pool_count = 0; /* the node was started anew */
        }
    }
}

/* ---- answers ---- */

static void refuse(struct kedge_evm_answer *ret, const char *text)
{
    ret->err = KEDGE_E_DENIED;
    snprintf(ret->text, sizeof ret->text, "%s", text);
}

static void take_tx(struct sim_node *n, struct kedge_view raw, struct kedge_evm_answer *ret)
{
    struct sim_tx t;
    struct kedge_evm_address sender;
    uint32_t block, at = 0;
    memset(&t, 0, sizeof t);
    ck_assert(raw.len <= sizeof t.raw);
    memcpy(t.raw, raw.ptr, raw.len);
    t.raw_len = raw.len;
    n->sends++;
    ck_assert_int_eq(kedge_evm_tx_decode(kedge_view_of(t.raw, raw.len), &t.tx, &sender, &t.hash), KEDGE_OK);
    ck_assert_int_eq(kedge_evm_anchor_call_decode(t.tx.data, &t.point), KEDGE_OK);
    ck_assert(kedge_evm_address_eq(&sender, &n->config->sender) && t.tx.chain_id == n->config->chain_id);
    t.tx.data = kedge_view_of(NULL, 0); /* was in raw */
    t.ours = true;
    while (at < n->tx_count && !kedge_hash_eq(&n->txs[at].hash, &t.hash)) {
        at++;
    }
    if (at == n->tx_count) {
        ck_assert_uint_lt(n->tx_count, SIM_TXS);
        n->txs[n->tx_count++] = t;
    }
    ret->hash = t.hash;
    if (is_mined(n, at, &block) || t.tx.nonce < n->blocks[n->latest].nonce) {
        refuse(ret, "nonce too low");
        return;
    }
    for (uint32_t i = 0; i < n->pool_count; i++) {
        const struct sim_tx *old = &n->txs[n->pool[i]];
        if (n->pool[i] == at) {
            refuse(ret, "already known");
            return;
        }
        if (old->tx.nonce == t.tx.nonce) { /* geth's rule: 10 % on both */
            if (t.tx.max_fee < old->tx.max_fee + old->tx.max_fee / 10
                || t.tx.priority_fee < old->tx.priority_fee + old->tx.priority_fee / 10) {
                n->refused++;
                refuse(ret, "replacement transaction underpriced");
                return;
            }
            n->pool[i] = at;
            return;
        }
    }
    ck_assert_uint_lt(n->pool_count, SIM_POOL);
    n->pool[n->pool_count++] = at;
}

static void tell_block(const struct sim_node *n, uint32_t number, struct kedge_evm_answer *ret)
{
    ret->found = number <= n->latest;
    if (ret->found) {
        ret->number = number;
        ret->hash = n->blocks[number].hash;
    }
}

static void tell_receipt(const struct sim_node *n, const struct kedge_hash *hash,
                         struct kedge_evm_answer *ret)
{
    uint32_t block;
    for (uint32_t i = 0; i < n->tx_count; i++) {
        const struct sim_tx *t = &n->txs[i];
        if (!t->ours || !kedge_hash_eq(&t->hash, hash) || !is_mined(n, i, &block)) {
            continue;
        }
        ret->found = true;
        ret->receipt.block = block;
        ret->receipt.block_hash = n->blocks[block].hash;
        ret->receipt.succeeded = n->lie != SIM_LIE_REVERTED && accepts(&n->blocks[block - 1].head, t);
        ret->receipt.has_event = ret->receipt.succeeded && n->lie != SIM_LIE_NO_EVENT;
        ret->receipt.event.who = n->config->sender;
        ret->receipt.event.point = t->point;
        ret->receipt.event.point.root.b[3] ^= n->lie == SIM_LIE_ROOT;
        ret->receipt.block_hash.b[3] ^= n->lie == SIM_LIE_BLOCK;
    }
}

static uint32_t tagged(const struct sim_node *n, enum kedge_evm_tag tag)
{
    if (tag == KEDGE_EVM_TAG_SAFE) {
        return n->latest > SIM_SAFE ? n->latest - SIM_SAFE : 0;
    }
    return tag == KEDGE_EVM_TAG_FINALIZED ? sim_final(n) : n->latest;
}

static uint64_t nonce_at(const struct sim_node *n, enum kedge_evm_tag tag)
{
    uint64_t nonce = n->blocks[tagged(n, tag)].nonce;
    for (uint32_t i = 0; tag == KEDGE_EVM_PENDING && i < n->pool_count; i++) {
        nonce = n->txs[n->pool[i]].tx.nonce >= nonce ? n->txs[n->pool[i]].tx.nonce + 1 : nonce;
    }
    return nonce;
}

static void tell_head(const struct sim_node *n, struct kedge_evm_answer *ret)
{
    ret->head = n->blocks[n->latest].head;
    if (n->lie == SIM_LIE_HEAD_AHEAD) {
        ret->head.seq += 5;
    } else if (n->lie == SIM_LIE_HEAD_BACK && ret->head.seq > 0) {
        ret->head = (struct kedge_evm_head){0};
    } else if (n->lie == SIM_LIE_HEAD_ROOT) {
        ret->head.root.b[0] ^= 1;
    }
}

void sim_answer(struct sim_node *n, const struct kedge_evm_effect *fx, struct kedge_evm_answer *ret)
{
    memset(ret, 0, sizeof *ret);
    if (n->now_ms < n->down_until_ms || chance(n, 40)) {
        ret->err = KEDGE_E_UNREACHABLE;
        n->lost++;
        return;
    }
    switch (fx->method) {
    case KEDGE_EVM_CALL_CHAIN_ID:
        ret->number = n->chain_id + (n->lie == SIM_LIE_CHAIN);
        break;
    case KEDGE_EVM_CALL_NONCE:
        ret->number = nonce_at(n, fx->tag);
        break;
    case KEDGE_EVM_CALL_BLOCK:
        tell_block(n, tagged(n, fx->tag), ret);
        if (fx->tag == KEDGE_EVM_TAG_FINALIZED && n->lie == SIM_LIE_FINAL_BACK) {
            tell_block(n, 5, ret);
        }
        break;
    case KEDGE_EVM_CALL_BLOCK_AT:
        tell_block(n, (uint32_t)fx->number, ret);
        ret->hash.b[0] ^= n->lie == SIM_LIE_FINAL_HASH;
        break;
    case KEDGE_EVM_CALL_RECEIPT:
        tell_receipt(n, &fx->hash, ret);
        break;
    case KEDGE_EVM_CALL_HEADS:
        tell_head(n, ret);
        break;
    case KEDGE_EVM_CALL_FEES:
        ret->base_fee = n->base_fee;
        ret->priority_fee = 100000000;
        break;
    case KEDGE_EVM_CALL_SEND:
        take_tx(n, fx->raw, ret);
        break;
    }
    if (chance(n, 40)) { /* done, but nobody hears of it */
        memset(ret, 0, sizeof *ret);
        ret->err = KEDGE_E_TIMEOUT;
        n->lost++;
    }
}
