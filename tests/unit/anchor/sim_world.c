#include "tests/unit/anchor/sim_world.h"

#include <check.h>
#include <string.h>

#include "common/base/mem.h"

static void root_of(uint64_t size, struct kedge_hash *ret)
{
    uint8_t be[8];
    kedge_store_be64(be, size);
    kedge_sha256(kedge_view_of(be, sizeof be), ret);
}

static void config_of(struct world *w)
{
    struct kedge_secp_public public;
    memset(w->key.b, 0x46, sizeof w->key.b);
    ck_assert_int_eq(kedge_secp_public_of(&w->key, &public), KEDGE_OK);
    w->config = (struct kedge_evm_config){.chain_id = 31337,
                                          .contract = {{1, 2, 3}},
                                          .interval_ms = 10 * 60 * 1000,
                                          .poll_ms = 24000,
                                          .resend_ms = 60000,
                                          .replace_ms = 180000,
                                          .gas = 120000,
                                          .max_fee = 8000000000,
                                          .daily_budget = 60000000000000000,
                                          .final = KEDGE_EVM_FINAL_FINALIZED};
    kedge_evm_address_of_key(&public, &w->config.sender);
    kedge_evm_namespace(kedge_view_str("example.org/main"), &w->config.ns);
}

struct world *world_new(uint64_t seed)
{
    struct world *w = kedge_mem_new(1, sizeof *w);
    ck_assert_ptr_nonnull(w);
    config_of(w);
    sim_init(&w->node, seed, &w->config);
    kedge_buf_init(&w->disk, KEDGE_EVM_STATE_MAX);
    ck_assert_int_eq(kedge_evm_anchor_init(&w->machine, &w->config, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_evm_anchor_init(&w->durable, &w->config, NULL), KEDGE_OK);
    w->main_size = 3;
    w->now_ms = w->node.now_ms = 1700000000000;
    return w;
}

void world_free(struct world *w)
{
    kedge_buf_deinit(&w->disk);
    kedge_mem_free(w);
}

static void save(struct world *w)
{
    struct kedge_diag d = {.text = ""};
    kedge_buf_clear(&w->disk);
    kedge_evm_anchor_save(&w->machine, &w->disk);
    ck_assert_int_eq(w->disk.err, KEDGE_OK);
    int err = kedge_evm_anchor_load(&w->durable, kedge_buf_view(&w->disk), &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&again, KEDGE_EVM_STATE_MAX);
    kedge_evm_anchor_save(&w->durable, &again);
    ck_assert(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&w->disk)));
}

void world_restart(struct world *w)
{
    w->crashes++;
    ck_assert_int_eq(kedge_evm_anchor_init(&w->machine, &w->config, NULL), KEDGE_OK);
    if (w->disk.len > 0) {
        ck_assert_int_eq(kedge_evm_anchor_load(&w->machine, kedge_buf_view(&w->disk), NULL), KEDGE_OK);
    }
}

/* Durable before the first send: the bytes stand in what is on disk. */
static void check_durable(const struct world *w, struct kedge_view raw)
{
    const struct kedge_evm_state *s = &w->durable.state;
    for (uint32_t i = 0; i < s->flight_count; i++) {
        for (uint32_t k = 0; k < s->flights[i].attempt_count; k++) {
            const struct kedge_evm_attempt *t = &s->flights[i].attempts[k];
            if (kedge_view_eq(kedge_view_of(t->raw, t->raw_len), raw)) {
                return;
            }
        }
    }
    ck_abort_msg("sent before it was durable");
}

/* A number of the log belongs to one number of the account, and the interval is kept between new anchors. */
static void check_signing(struct world *w, const struct kedge_evm_effect *fx)
{
    struct kedge_evm_point p;
    ck_assert_int_eq(kedge_evm_anchor_call_decode(fx->tx.data, &p), KEDGE_OK);
    ck_assert_uint_le(fx->tx.max_fee, w->config.max_fee);
    bool replacement = false;
    for (uint32_t i = 0; i < w->node.tx_count; i++) {
        const struct sim_tx *t = &w->node.txs[i];
        if (!t->ours) {
            continue;
        }
        const struct kedge_evm_point other = t->point;
        ck_assert_int_eq(other.seq == p.seq, t->tx.nonce == fx->tx.nonce);
        ck_assert(other.seq != p.seq || kedge_evm_point_eq(&other, &p));
        replacement |= other.seq == p.seq;
    }
    const struct kedge_evm_state *s = &w->durable.state;
    replacement |= s->flight_count > 0 && s->flights[s->flight_count - 1].point.seq >= p.seq;
    const struct kedge_evm_flight *f = &w->machine.state.flights[0];
    for (uint32_t i = 0; i < w->machine.state.flight_count;
         i++, f++) { /* an eighth more than the one before */
        if (f->point.seq == p.seq) {
            const struct kedge_evm_attempt *old = &f->attempts[f->attempt_count - 1];
            ck_assert_uint_ge(8 * fx->tx.max_fee, 9 * old->max_fee);
            ck_assert_uint_ge(8 * fx->tx.priority_fee, 9 * old->priority_fee);
        }
    }
    w->replaced += replacement;
    if (!replacement) {
        ck_assert_msg(w->planned_last_ms == 0 || w->disk.len == 0
                          || w->now_ms - s->planned_ms >= w->config.interval_ms,
                      "two anchors in one interval");
        w->planned_last_ms = w->now_ms;
    }
}

static void read_main(struct world *w, const struct kedge_evm_effect *fx, struct kedge_evm_event *ev)
{
    ev->kind = KEDGE_EVM_CHECKPOINT;
    ev->size = w->main_size;
    root_of(w->main_size, &ev->root);
    if (fx->at_size > 0 && fx->at_size <= w->main_size) {
        root_of(fx->at_size, &ev->root_at);
    }
}

static bool crashes(struct world *w, uint64_t one_in)
{
    return w->crash_faults && kedge_rng_below(&w->node.rng, one_in) == 0;
}

/* One round until the machine waits or stops. */
void world_round(struct world *w)
{
    struct kedge_evm_event ev = {.kind = KEDGE_EVM_TIMER};
    struct kedge_evm_effect fx;
    struct kedge_evm_answer answer;
    struct kedge_buf raw KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&raw, KEDGE_EVM_RAW_MAX);
    for (int turns = 0;; turns++) {
        ck_assert_int_lt(turns, 2000);
        kedge_evm_anchor_step(&w->machine, &ev, w->now_ms, &fx);
        memset(&ev, 0, sizeof ev);
        if (fx.said[0]) {
            memcpy(w->said, fx.said, sizeof w->said);
        }
        if (crashes(w, 400)) {
            world_restart(w);
            return;
        }
        if (fx.kind == KEDGE_EVM_WAIT) {
            return;
        }
        if (fx.kind == KEDGE_EVM_STOP) {
            w->stopped = true;
            w->stop_err = fx.err;
            return;
        }
        ev.kind = KEDGE_EVM_DONE;
        if (fx.kind == KEDGE_EVM_CALL) {
            if (fx.method == KEDGE_EVM_CALL_SEND) {
                check_durable(w, fx.raw);
            }
            sim_answer(&w->node, &fx, &answer);
            ev = (struct kedge_evm_event){.kind = KEDGE_EVM_ANSWER, .answer = &answer};
        } else if (fx.kind == KEDGE_EVM_READ) {
            read_main(w, &fx, &ev);
        } else if (fx.kind == KEDGE_EVM_SIGN) {
            check_signing(w, &fx);
            kedge_buf_clear(&raw);
            ck_assert_int_eq(kedge_evm_tx_sign(&fx.tx, &w->key, &raw, NULL), KEDGE_OK);
            ev = (struct kedge_evm_event){.kind = KEDGE_EVM_RAW, .raw = kedge_buf_view(&raw)};
        } else if (fx.kind == KEDGE_EVM_SAVE) {
            save(w);
            if (crashes(w, 20)) { /* written, but not told */
                world_restart(w);
                return;
            }
        } else if (fx.kind == KEDGE_EVM_RECORD) {
            ck_assert_uint_lt(fx.flight->point.seq, RECORDS);
            w->recorded[fx.flight->point.seq] = fx.flight->point;
            w->recorded_count =
                fx.flight->point.seq > w->recorded_count ? fx.flight->point.seq : w->recorded_count;
        }
    }
}

void world_run_until(struct world *w, uint64_t end_ms)
{
    while (w->now_ms < end_ms && !w->stopped) {
        world_round(w);
        uint64_t deadline = kedge_evm_anchor_deadline(&w->machine);
        w->now_ms = deadline > w->now_ms ? deadline : w->now_ms + 1000;
        if (w->grow_ms > 0 && kedge_rng_below(&w->node.rng, 3) == 0) {
            w->main_size += kedge_rng_below(&w->node.rng, 5);
        }
        sim_advance(&w->node, w->now_ms);
    }
}

/* What the final chain says, independent of the machine. */
void world_check_chain(const struct world *w)
{
    const struct sim_node *n = &w->node;
    uint64_t seq = 0, size = 0;
    for (uint32_t b = 1; b <= n->latest; b++) {
        for (uint32_t i = 0; i < n->blocks[b].tx_count; i++) {
            const struct sim_tx *t = &n->txs[n->mined[n->blocks[b].tx_from + i]];
            if (!t->ours) {
                continue;
            }
            ck_assert_uint_eq(t->point.seq, seq + 1);
            ck_assert_uint_ge(t->point.size, size);
            seq = t->point.seq;
            size = t->point.size;
            struct kedge_hash root;
            root_of(size, &root);
            ck_assert(kedge_hash_eq(&root, &t->point.root));
            uint64_t wei = 0; /* of all in the 24 hours that end here, at the most each could cost */
            for (uint32_t c = b; c > 0 && n->blocks[c].ms + 24 * HOUR > n->blocks[b].ms; c--) {
                for (uint32_t k = 0; k < n->blocks[c].tx_count; k++) {
                    const struct sim_tx *o = &n->txs[n->mined[n->blocks[c].tx_from + k]];
                    wei += o->ours ? o->tx.max_fee * o->tx.gas : 0;
                }
            }
            ck_assert_uint_le(wei, w->config.daily_budget);
        }
    }
    ck_assert_uint_eq(w->recorded_count, w->machine.state.last.seq);
    for (uint64_t s = 1; s <= w->recorded_count; s++) {
        ck_assert_uint_eq(w->recorded[s].seq, s);
    }
}
