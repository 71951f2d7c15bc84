/* The coordinator's state folder: where everything is and how its logs are opened. Daemon, auditor and
 * command line share it.
 *
 *   STATE/config.json                  deployment name and settings of kedge-coordinator
 *   STATE/keys/tls.pem statement.pem   the coordinator's identity and its key for statements (0600)
 *   STATE/keys/statement-next.pem      the one that comes, from its making until the main chain has it
 *   STATE/keys/log-main.pem log-T.pem  one key per log, for checkpoints only
 *   STATE/keys/updates/T/JOB.pem         what encrypts tenant T's updates of a job
 * (chain/store/blob/blob_keys.h) STATE/coordinator.lmdb/            jobs, tokens, pending enrolments
 *   STATE/main/{ledger.lmdb,blobs,staging}
 *   STATE/tenants/T/{tenant.json,ledger.lmdb,blobs,staging,refused} (refused: refused.h)
 *   STATE/high-water/{main,T}          highest size ever signed, outside what a backup of a log holds
 *   STATE/in-use                       whose it is, while a coordinator runs (in_use.h)
 *   STATE/coordinator.ipc              the operator's door (0600) */
#ifndef KEDGE_CHAIN_STATE_STATE_H
#define KEDGE_CHAIN_STATE_STATE_H

#include "chain/statement/main_entry.h"
#include "chain/store/blob/blobs.h"
#include "chain/store/ledger.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "crypto/sign.h"

enum { KEDGE_DEPLOYMENT_MAX = 128 };

/* "STATE/<format…>" into out; KEDGE_E_TOO_LONG names the path. */
KEDGE_NODISCARD int kedge_state_path(char out[KEDGE_PATH_MAX], struct kedge_diag *reterr, const char *state,
                                     const char *format, ...) KEDGE_PRINTF(4, 5);

/* Makes a new state folder: keys, configuration with `deployment` (host-like name, no spaces or '+'), main
 * chain without entries. KEDGE_E_EXISTS when there is one. */
KEDGE_NODISCARD int kedge_state_create(const char *state, const char *deployment, struct kedge_diag *reterr);
/* Appends config.json's text. */
KEDGE_NODISCARD int kedge_state_config(const char *state, struct kedge_buf *ret, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_state_deployment(const char *state, char out[KEDGE_DEPLOYMENT_MAX + 1],
                                           struct kedge_diag *reterr);
enum kedge_state_key { KEDGE_STATE_KEY_TLS, KEDGE_STATE_KEY_STATEMENT, KEDGE_STATE_KEY_STATEMENT_NEXT };
KEDGE_NODISCARD int kedge_state_key(const char *state, enum kedge_state_key which, struct kedge_key_pair *ret,
                                    struct kedge_diag *reterr);
/* The statement key that comes: that of statement-next.pem, made when absent, sealed with the same passphrase
 * when statement.pem is sealed. Durable before it returns. */
KEDGE_NODISCARD int kedge_state_key_make_next(const char *state, struct kedge_key_pair *ret,
                                              struct kedge_diag *reterr);
/* statement-next.pem in the place of statement.pem: the main chain has it. */
KEDGE_NODISCARD int kedge_state_key_switch(const char *state, struct kedge_diag *reterr);

/* Which keys a tenant's blobs (NULL: those of the main chain, which have none) have, whether new updates are
 * encrypted and small blobs packed: as config.json's "encrypt_blobs" and "pack_blobs" say, which folders of
 * before these settings have not. keys_dir is the memory that options borrow. */
KEDGE_NODISCARD int kedge_state_blob_options(const char *state, const struct kedge_id *tenant,
                                             char keys_dir[KEDGE_PATH_MAX],
                                             struct kedge_blobs_options *options, struct kedge_diag *reterr);

/* The keys' folder of the tenant whose folder this is, "…/tenants/T"; false: it is called otherwise. */
bool kedge_state_blob_keys_beside(const char *folder, char out[KEDGE_PATH_MAX]);

/* One log with what belongs to it. */
struct kedge_state_log {
    struct kedge_id tenant; /* empty for the main chain */
    char origin[KEDGE_ORIGIN_MAX + 1];
    uint8_t salt[KEDGE_SALT_LEN]; /* hides the tenant's name in the main chain; zero for main */
    bool has_key;
    struct kedge_key_pair key;
    struct kedge_kv *kv;
    struct kedge_ledger *ledger;
    struct kedge_blobs *blobs;
};

enum kedge_state_mode {
    KEDGE_STATE_WRITE,     /* the coordinator */
    KEDGE_STATE_TAKE_OVER, /* the same at its start: waits KEDGE_LOCK_WAIT_MS for a former one that is dying
                            */
    KEDGE_STATE_READ,      /* beside a running coordinator */
    KEDGE_STATE_COPY,      /* a copy that nobody writes to: no locks, no keys needed, leaves no trace */
};

/* Folders, log key, salt and empty ledger of a new tenant. KEDGE_E_EXISTS. */
KEDGE_NODISCARD int kedge_state_tenant_create(const char *state, const struct kedge_id *tenant,
                                              struct kedge_diag *reterr);
/* tenant NULL: the main chain. The caller closes it. */
KEDGE_NODISCARD int kedge_state_log_open(const char *state, const struct kedge_id *tenant,
                                         enum kedge_state_mode mode, struct kedge_state_log *ret,
                                         struct kedge_diag *reterr);
void kedge_state_log_close(struct kedge_state_log *log);
/* Names of all tenants' folders that are whole, in ascending order, more than a coordinator takes, too;
 * *ret_ids is freed with kedge_mem_free. */
KEDGE_NODISCARD int kedge_state_tenants(const char *state, struct kedge_id **ret_ids, size_t *ret_count,
                                        struct kedge_diag *reterr);
/* SHA-256(salt ‖ tenant id): the tenant's name in the main chain. */
void kedge_state_salted_id(const struct kedge_state_log *log, struct kedge_hash *ret);

#endif
