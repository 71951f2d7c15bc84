/* Making the contract (kedge anchor deploy), with the account's lock held: one transaction, kept on disk from
 * before it is sent until the address is known. */
#include <string.h>
#include <unistd.h>

#include "chain/anchor/evm_contract.h"
#include "chain/anchor/host/evm_host.h"
#include "chain/anchor/host/evm_rpc.h"
#include "chain/state/state.h"
#include "common/base/try.h"
#include "crypto/sign.h"

enum { DEPLOY_GAS = 400000, POLL_MS = 2000, POLLS_MAX = 300, POLLS_PER_SEND = 10 };

struct deploy {
    const char *state;
    const struct kedge_anchor_settings *settings;
    const struct kedge_anchor_hooks *hooks;
    struct kedge_evm_rpc *rpc;
    struct kedge_secp_secret key;
    struct kedge_evm_address sender;
    struct kedge_buf raw;
};

static int ask(struct deploy *p, enum kedge_evm_method method, enum kedge_evm_tag tag,
               struct kedge_evm_answer *ret, struct kedge_diag *reterr)
{
    struct kedge_evm_effect fx = {.method = method, .tag = tag, .raw = kedge_buf_view(&p->raw)};
    struct kedge_evm_config config = p->settings->config;
    config.sender = p->sender;
    kedge_evm_rpc_call(p->rpc, &config, &fx, ret);
    return ret->err ? kedge_diag_set(reterr, ret->err, "%s", ret->text) : KEDGE_OK;
}

static int check_chain(struct deploy *p, struct kedge_diag *reterr)
{
    struct kedge_evm_answer answer;
    int err = ask(p, KEDGE_EVM_CALL_CHAIN_ID, KEDGE_EVM_LATEST, &answer, reterr);
    if (!err && answer.number != p->settings->config.chain_id) {
        err = kedge_diag_set(
            reterr, KEDGE_E_STATE, "the node is of chain %llu, the configuration of chain %llu",
            (unsigned long long)answer.number, (unsigned long long)p->settings->config.chain_id);
    }
    return err;
}

/* Signs and keeps; the largest fee and the daily budget hold here as well. */
static int sign(struct deploy *p, const char *path, struct kedge_diag *reterr)
{
    uint8_t code[KEDGE_EVM_CONTRACT_LEN];
    struct kedge_evm_answer nonce, fees;
    const struct kedge_evm_config *c = &p->settings->config;
    uint64_t cost = 0;
    kedge_evm_contract_code(code);
    KEDGE_TRY(ask(p, KEDGE_EVM_CALL_NONCE, KEDGE_EVM_PENDING, &nonce, reterr));
    KEDGE_TRY(ask(p, KEDGE_EVM_CALL_FEES, KEDGE_EVM_LATEST, &fees, reterr));
    struct kedge_evm_tx tx = {.kind = KEDGE_EVM_EIP1559,
                              .chain_id = c->chain_id,
                              .nonce = nonce.number,
                              .gas = DEPLOY_GAS,
                              .max_fee = c->max_fee,
                              .priority_fee = fees.priority_fee < c->max_fee ? fees.priority_fee : c->max_fee,
                              .creates = true,
                              .data = kedge_view_of(code, sizeof code)};
    uint64_t wanted = fees.base_fee < UINT64_MAX / 4 ? 2 * fees.base_fee + tx.priority_fee : UINT64_MAX;
    tx.max_fee = wanted < tx.max_fee ? wanted : tx.max_fee;
    if (kedge_evm_tx_cost(&tx, &cost) != KEDGE_OK || cost > c->daily_budget
        || fees.base_fee > c->max_fee - tx.priority_fee) {
        return kedge_diag_set(
            reterr, KEDGE_E_DENIED,
            "the contract could cost %llu wei at a base fee of %llu: beyond daily_budget_wei or "
            "max_fee_per_gas_wei",
            (unsigned long long)cost, (unsigned long long)fees.base_fee);
    }
    kedge_buf_clear(&p->raw);
    int err = kedge_evm_tx_sign(&tx, &p->key, &p->raw, NULL);
    return err ? err : kedge_file_write(path, kedge_buf_view(&p->raw), 0600, reterr);
}

/* The same bytes are sent again now and then, since nodes forget what waits. Answers to a send decide
 * nothing, as in the state machine; only missing money is told at once, for no waiting mends it. */
static int wait_mined(struct deploy *p, const struct kedge_hash *hash, struct kedge_evm_address *ret,
                      struct kedge_diag *reterr)
{
    struct kedge_evm_answer answer;
    bool succeeded = false;
    for (int i = 0; i < POLLS_MAX; i++) {
        if (i % POLLS_PER_SEND == 0) {
            (void)!ask(p, KEDGE_EVM_CALL_SEND, KEDGE_EVM_LATEST, &answer, NULL);
            if (answer.err == KEDGE_E_DENIED
                && kedge_evm_refusal_of(answer.text) == KEDGE_EVM_REFUSAL_FUNDS) {
                return kedge_diag_set(reterr, KEDGE_E_DENIED, "%s", answer.text);
            }
        }
        int err = kedge_evm_rpc_created(p->rpc, hash, ret, &succeeded, reterr);
        if (!err) {
            return succeeded ? KEDGE_OK
                             : kedge_diag_set(reterr, KEDGE_E_DENIED, "the chain refused the contract");
        }
        p->hooks->wait_until(p->hooks->arg, p->hooks->now_ms(p->hooks->arg) + POLL_MS);
    }
    (void)kedge_diag_set(reterr, KEDGE_E_TIMEOUT, "the contract's transaction is not mined yet");
    (void)kedge_diag_hint(reterr, "the same command again goes on waiting");
    return KEDGE_E_TIMEOUT;
}

/* Where a contract stands follows from who makes it: a node that names another place has another contract in
 * mind. */
static int check_address(const struct kedge_evm_address *sender, uint64_t nonce,
                         const struct kedge_evm_address *told, struct kedge_diag *reterr)
{
    struct kedge_evm_address ours;
    char text[2][KEDGE_EVM_ADDRESS_TEXT];
    kedge_evm_address_of_contract(sender, nonce, &ours);
    if (kedge_evm_address_eq(told, &ours)) {
        return KEDGE_OK;
    }
    kedge_evm_address_text(told, text[0]);
    kedge_evm_address_text(&ours, text[1]);
    return kedge_diag_set(reterr, KEDGE_E_VERIFY,
                          "the node says that the transaction made the contract %s; it can only make %s",
                          text[0], text[1]);
}

/* deploy.raw is the whole state of a deployment: with it an interrupted one goes on waiting for the same
 * transaction, without it a second contract would be paid for. It goes away last, when the settings name the
 * contract. */
static int run(struct deploy *p, struct kedge_evm_address *ret, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_evm_tx tx;
    struct kedge_evm_address signer;
    struct kedge_hash hash;
    KEDGE_TRY(kedge_anchor_key_read(p->settings->key_file, &p->key, &p->sender, reterr));
    KEDGE_TRY(kedge_evm_rpc_open(p->settings->rpc_url, &p->rpc, reterr));
    KEDGE_TRY(check_chain(p, reterr));
    int err = kedge_state_path(path, reterr, p->state, "anchors/evm/deploy.raw");
    if (!err) {
        err = kedge_file_exists(path) ? kedge_file_read(path, &p->raw, reterr) : sign(p, path, reterr);
    }
    if (err) {
        return err;
    }
    err = kedge_evm_tx_decode(kedge_buf_view(&p->raw), &tx, &signer, &hash);
    if (!err && (!kedge_evm_address_eq(&signer, &p->sender) || tx.chain_id != p->settings->config.chain_id)) {
        err = kedge_diag_set(reterr, KEDGE_E_STATE, "%s: begun with another key or chain", path);
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(wait_mined(p, &hash, ret, reterr));
    KEDGE_TRY(check_address(&signer, tx.nonce, ret, reterr));
    err = kedge_anchor_settings_set_contract(p->state, ret, reterr);
    if (!err && unlink(path) != 0) {
        err = kedge_diag_set(reterr, KEDGE_E_IO, "%s: cannot be removed", path);
    }
    return err;
}

int kedge_anchor_deploy(const char *state, const struct kedge_anchor_settings *settings,
                        const struct kedge_anchor_hooks *hooks, struct kedge_evm_address *ret_contract,
                        struct kedge_diag *reterr)
{
    struct deploy p = {.state = state, .settings = settings, .hooks = hooks};
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_path(path, reterr, state, "anchors/evm"));
    KEDGE_TRY(kedge_dir_make(path, 0700, reterr));
    KEDGE_TRY(kedge_state_path(path, reterr, state, "anchors/evm/lock"));
    int lock = kedge_file_lock(path, reterr);
    if (lock < 0) {
        return lock;
    }
    kedge_buf_init(&p.raw, KEDGE_EVM_RAW_MAX);
    int err = run(&p, ret_contract, reterr);
    close(lock);
    kedge_evm_rpc_close(p.rpc);
    kedge_wipe(&p.key, sizeof p.key);
    kedge_buf_deinit(&p.raw);
    return err;
}
