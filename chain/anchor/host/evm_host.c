/* The loop around the state machine: does what each effect says and comes back with its outcome. */
#include "chain/anchor/host/evm_host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/anchor/evm_contract.h"
#include "chain/anchor/evm_evidence.h"
#include "chain/anchor/host/evm_rpc.h"
#include "chain/anchor/host/main_chain.h"
#include "chain/log/checkpoint.h"
#include "chain/state/state.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "crypto/sign.h"

struct host {
    const char *state;
    const struct kedge_anchor_hooks *hooks;
    struct kedge_anchor_settings settings;
    struct kedge_secp_secret key;
    struct kedge_evm_anchor machine;
    struct kedge_evm_rpc *rpc;
    struct kedge_evm_answer answer;
    struct kedge_buf raw;
    int lock;
    char said[KEDGE_DIAG_TEXT_MAX]; /* last words, which are not said twice in a row */
};

/* ---- effects ---- */

static int save(struct host *h, struct kedge_diag *reterr)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX];
    kedge_buf_init(&bytes, KEDGE_EVM_STATE_MAX);
    kedge_evm_anchor_save(&h->machine, &bytes);
    int err = bytes.err ? bytes.err : kedge_state_path(path, reterr, h->state, "anchors/evm/state");
    return err ? err : kedge_file_write(path, kedge_buf_view(&bytes), 0600, reterr);
}

/* Checked by the same function as an auditor's before it is written: a file that does not hold would be worse
 * than none, and later nobody could ask the node again for what was wrong. */
static int write_evidence(const struct host *h, const struct kedge_evm_evidence *e, struct kedge_diag *reterr)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX];
    kedge_buf_init(&text, KEDGE_EVM_EVIDENCE_MAX);
    KEDGE_TRY(kedge_evm_evidence_check(e, reterr));
    KEDGE_TRY(kedge_evm_evidence_write(e, &text));
    KEDGE_TRY(
        kedge_state_path(path, reterr, h->state, "anchors/evm/%llu.json", (unsigned long long)e->point.seq));
    return kedge_file_write(path, kedge_buf_view(&text), 0644, reterr);
}

/* What the node cannot give (header, state proof) or the store no longer has (the checkpoint of that size) is
 * left out: the signed transaction alone still proves who anchored what, where. */
static int record(struct host *h, const struct kedge_evm_flight *f, struct kedge_diag *reterr)
{
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    KEDGE_TRY_MEM(e);
    const struct kedge_evm_attempt *t = &f->attempts[f->mined_attempt];
    e->chain_id = h->settings.config.chain_id;
    e->contract = h->settings.config.contract;
    e->sender = h->settings.config.sender;
    snprintf(e->origin, sizeof e->origin, "%s", h->settings.origin);
    e->point = f->point;
    e->tx_hash = t->hash;
    e->raw = kedge_view_of(t->raw, t->raw_len);
    e->block = f->block;
    e->block_hash = f->block_hash;
    e->log_index = f->log_index;
    snprintf(e->finality, sizeof e->finality, "%s", kedge_evm_phase_name(f->phase));
    kedge_anchor_read_checkpoint(h->state, f->point.size, &note);
    e->checkpoint = kedge_buf_view(&note);
    kedge_evm_rpc_evidence(h->rpc, e);
    int err = write_evidence(h, e, reterr);
    kedge_evm_evidence_deinit(e);
    kedge_mem_free(e);
    return err;
}

static void say(struct host *h, const char *text)
{
    if (text[0] && strcmp(text, h->said) != 0) {
        snprintf(h->said, sizeof h->said, "%s", text);
        h->hooks->say(h->hooks->arg, text);
    }
}

/* Does what fx says; *ev is the outcome. */
static void perform(struct host *h, const struct kedge_evm_effect *fx, struct kedge_evm_event *ev)
{
    struct kedge_diag d = {.text = ""};
    memset(ev, 0, sizeof *ev);
    ev->kind = KEDGE_EVM_DONE;
    if (fx->kind == KEDGE_EVM_CALL) {
        kedge_evm_rpc_call(h->rpc, &h->settings.config, fx, &h->answer);
        ev->kind = KEDGE_EVM_ANSWER;
        ev->answer = &h->answer;
    } else if (fx->kind == KEDGE_EVM_READ) {
        ev->kind = KEDGE_EVM_CHECKPOINT;
        ev->err = kedge_anchor_read_main(h->state, fx->at_size, &ev->size, &ev->root, &ev->root_at, NULL, &d);
        ev->err = ev->err == KEDGE_E_NOT_FOUND ? KEDGE_OK : ev->err; /* size 0: nothing signed yet */
    } else if (fx->kind == KEDGE_EVM_SIGN) {
        ev->kind = KEDGE_EVM_RAW;
        kedge_buf_clear(&h->raw);
        ev->err = kedge_evm_tx_sign(&fx->tx, &h->key, &h->raw, NULL);
        ev->raw = kedge_buf_view(&h->raw);
    } else if (fx->kind == KEDGE_EVM_SAVE) {
        ev->err = save(h, &d);
    } else if (fx->kind == KEDGE_EVM_RECORD) {
        ev->err = record(h, fx->flight, &d);
    }
    if (ev->err && d.text[0]) {
        say(h, d.text);
    }
}

/* Effects are done one by one in the machine's order. Its promise that a transaction is durable before it is
 * first sent rests on that: SAVE comes back before SEND is asked for. A wait may return early, by a signal,
 * so the clock decides whether it is over. */
static int loop(struct host *h, struct kedge_diag *reterr)
{
    const struct kedge_anchor_hooks *hooks = h->hooks;
    struct kedge_evm_event ev = {.kind = KEDGE_EVM_TIMER};
    struct kedge_evm_effect fx;
    for (;;) {
        kedge_evm_anchor_step(&h->machine, &ev, hooks->now_ms(hooks->arg), &fx);
        if (fx.kind == KEDGE_EVM_STOP) {
            return kedge_diag_set(reterr, fx.err, "%s", fx.said);
        }
        say(h, fx.said);
        if (fx.kind != KEDGE_EVM_WAIT) {
            perform(h, &fx, &ev);
            continue;
        }
        uint64_t until = kedge_evm_anchor_deadline(&h->machine);
        do {
            if (!hooks->go_on(hooks->arg, &h->machine)) {
                return KEDGE_OK;
            }
            hooks->wait_until(hooks->arg, until);
        } while (hooks->now_ms(hooks->arg) < until);
        memset(&ev, 0, sizeof ev);
        ev.kind = KEDGE_EVM_TIMER;
    }
}

/* ---- start ---- */

int kedge_anchor_load(const char *state, const struct kedge_anchor_settings *settings,
                      struct kedge_evm_anchor *ret, bool *ret_exists, struct kedge_diag *reterr)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX];
    kedge_buf_init(&bytes, KEDGE_EVM_STATE_MAX);
    int err = kedge_evm_anchor_init(ret, &settings->config, reterr);
    if (err) {
        return kedge_diag_wrap(reterr, err, "%s/anchor.json", state);
    }
    err = kedge_state_path(path, reterr, state, "anchors/evm/state");
    *ret_exists = !err && kedge_file_exists(path);
    if (*ret_exists) {
        err = kedge_file_read(path, &bytes, reterr);
        if (!err) {
            err = kedge_evm_anchor_load(ret, kedge_buf_view(&bytes), reterr);
            if (err == KEDGE_E_STATE) {
                (void)kedge_diag_hint(reterr,
                                      "for a new beginning move %s/anchors/evm away; anchors that were made "
                                      "stay on their chain",
                                      state);
            }
            err = err ? kedge_diag_wrap(reterr, err, "%s", path) : KEDGE_OK;
        }
    }
    return err;
}

/* Another contract, or none, at this address would take the money and anchor nothing. A node that does not
 * answer is no reason to end: the machine waits for it. */
static int check_code(struct host *h, struct kedge_diag *reterr)
{
    struct kedge_buf code KEDGE_CLEANUP(kedge_buf_deinit);
    uint8_t ours[KEDGE_EVM_CONTRACT_LEN];
    struct kedge_diag d = {.text = ""};
    char address[KEDGE_EVM_ADDRESS_TEXT];
    kedge_buf_init(&code, KEDGE_EVM_EVIDENCE_MAX);
    if (kedge_evm_rpc_code(h->rpc, &h->settings.config.contract, &code, &d) != KEDGE_OK) {
        return KEDGE_OK;
    }
    kedge_evm_contract_code(ours);
    if (kedge_view_eq(kedge_buf_view(&code),
                      kedge_view_of(ours + KEDGE_EVM_CONTRACT_HEAD, sizeof ours - KEDGE_EVM_CONTRACT_HEAD))) {
        return KEDGE_OK;
    }
    kedge_evm_address_text(&h->settings.config.contract, address);
    (void)kedge_diag_set(reterr, KEDGE_E_STATE, "%s: at this address is %s on the node's chain", address,
                         code.len > 0 ? "another contract" : "no contract");
    (void)kedge_diag_hint(reterr, "compare chain_id, rpc_url and contract in %s/anchor.json", h->state);
    return KEDGE_E_STATE;
}

/* The lock is held before the state is read: two processes with one account would both take the same number,
 * and each would replace the other's transactions. */
static int open_host(struct host *h, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_anchor_settings_read(h->state, &h->settings, reterr));
    int err = kedge_anchor_key_read(h->settings.key_file, &h->key, &h->settings.config.sender, reterr);
    if (!err && !h->settings.has_contract) {
        (void)kedge_diag_set(reterr, KEDGE_E_STATE, "%s/anchor.json: contract: missing", h->state);
        (void)kedge_diag_hint(reterr, "kedge anchor deploy --state %s makes it", h->state);
        err = KEDGE_E_STATE;
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_state_path(path, reterr, h->state, "anchors/evm"));
    KEDGE_TRY(kedge_dir_make(path, 0700, reterr));
    err = kedge_state_path(path, reterr, h->state, "anchors/evm/lock");
    if (!err) {
        h->lock = kedge_file_lock(path, reterr);
        err = h->lock < 0 ? h->lock : KEDGE_OK;
    }
    return err ? err : kedge_evm_rpc_open(h->settings.rpc_url, &h->rpc, reterr);
}

static int run(struct host *h, unsigned flags, struct kedge_diag *reterr)
{
    bool exists = false;
    KEDGE_TRY(open_host(h, reterr));
    KEDGE_TRY(kedge_anchor_load(h->state, &h->settings, &h->machine, &exists, reterr));
    if (flags & KEDGE_ANCHOR_ADOPT) {
        kedge_evm_anchor_adopt(&h->machine);
    }
    KEDGE_TRY(check_code(h, reterr));
    return loop(h, reterr);
}

int kedge_anchor_run(const char *state, unsigned flags, const struct kedge_anchor_hooks *hooks,
                     struct kedge_diag *reterr)
{
    struct host *h = kedge_mem_new(1, sizeof *h);
    KEDGE_TRY_MEM(h);
    h->state = state;
    h->hooks = hooks;
    h->lock = -1;
    kedge_buf_init(&h->raw, KEDGE_EVM_RAW_MAX);
    int err = run(h, flags, reterr);
    kedge_evm_rpc_close(h->rpc);
    if (h->lock >= 0) {
        close(h->lock);
    }
    kedge_wipe(&h->key, sizeof h->key);
    kedge_buf_deinit(&h->raw);
    kedge_mem_free(h);
    return err;
}
