/* The process that anchors a coordinator's main chain: settings, key, durable state, loop. It only reads the
 * coordinator's record and shares no memory, key or lock with it; it may run on the same machine or over a
 * mounted folder.
 *
 *   STATE/anchor.json             settings (below)
 *   STATE/anchors/evm/lock        one process per account
 *   STATE/anchors/evm/state       the machine's durable state
 *   STATE/anchors/evm/SEQ.json    evidence of each final anchor (chain/anchor/evm_evidence.h)
 *   STATE/anchors/evm/deploy.raw  the transaction that makes the contract, until it is mined */
#ifndef KEDGE_CHAIN_ANCHOR_HOST_EVM_HOST_H
#define KEDGE_CHAIN_ANCHOR_HOST_EVM_HOST_H

#include "chain/anchor/evm_anchor.h"
#include "chain/store/ledger.h"
#include "common/base/os/file.h"
#include "common/http/client.h"

struct kedge_anchor_settings {
    char rpc_url[KEDGE_HTTP_URL_MAX + 1];
    char key_file[KEDGE_PATH_MAX];
    char origin[KEDGE_ORIGIN_MAX + 1]; /* of the main chain */
    bool has_contract;
    struct kedge_evm_config config; /* without a sender: that comes from the key */
};
/* Reads STATE/anchor.json strictly. KEDGE_E_NOT_FOUND (with the way to make one), KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_anchor_settings_read(const char *state, struct kedge_anchor_settings *ret,
                                               struct kedge_diag *reterr);
/* The account's key: 64 hex digits (and a line's end) in a file that nobody else may read. KEDGE_E_DENIED,
 * _KEY. The caller wipes it. */
KEDGE_NODISCARD int kedge_anchor_key_read(const char *path, struct kedge_secp_secret *ret_secret,
                                          struct kedge_evm_address *ret_address, struct kedge_diag *reterr);

/* Time and what people see, so that tests can have an hour in a second. All may be called between two steps.
 */
struct kedge_anchor_hooks {
    uint64_t (*now_ms)(void *arg);
    void (*wait_until)(void *arg, uint64_t ms);                       /* may return early */
    bool (*go_on)(void *arg, const struct kedge_evm_anchor *machine); /* asked before each wait; false: end */
    void (*say)(void *arg, const char *text);
    void *arg;
};

enum kedge_anchor_flag {
    KEDGE_ANCHOR_ADOPT = 1, /* the operator's word after a stop (kedge_evm_anchor_adopt) */
};
/* Anchors until a hook says to end or the machine stops. Errors: of settings, key and lock; KEDGE_E_STATE
 * when the contract's code is not ours; when the machine stopped, its err, with its reason as the diagnostic.
 */
KEDGE_NODISCARD int kedge_anchor_run(const char *state, unsigned flags,
                                     const struct kedge_anchor_hooks *hooks, struct kedge_diag *reterr);
/* The machine as it is on disk, without the node; *ret_exists is false when there is none yet. */
KEDGE_NODISCARD int kedge_anchor_load(const char *state, const struct kedge_anchor_settings *settings,
                                      struct kedge_evm_anchor *ret, bool *ret_exists,
                                      struct kedge_diag *reterr);
/* Makes the contract, sets "contract" in STATE/anchor.json and returns its address. Calling it again after
 * any interruption goes on with the transaction that was signed first. */
KEDGE_NODISCARD int kedge_anchor_deploy(const char *state, const struct kedge_anchor_settings *settings,
                                        const struct kedge_anchor_hooks *hooks,
                                        struct kedge_evm_address *ret_contract, struct kedge_diag *reterr);
/* Sets "contract" in STATE/anchor.json. */
KEDGE_NODISCARD int kedge_anchor_settings_set_contract(const char *state,
                                                       const struct kedge_evm_address *contract,
                                                       struct kedge_diag *reterr);

#endif
