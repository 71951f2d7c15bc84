/* Witnesses: parties of the tenants that keep copies of their ledger and of the main chain's hashes, and
 * cosign checkpoints (c2sp.org/tlog-cosignature). Who they are is in the tenants' ledgers
 * (`witness-enrolled`); how many of them must agree is STATE/witness-policy.txt (c2sp.org/tlog-policy), if
 * there is one.
 *
 * The main chain's checkpoint changes with every round, and a quorum must cosign one and the same. So a
 * checkpoint is proposed and stands until the quorum has cosigned it or KEDGE_PROPOSAL_HOLD_MS have passed;
 * witnesses are shown the proposal as the log's checkpoint. Rounds do not wait for it, releases do. On the
 * loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_WITNESS_WITNESS_H
#define KEDGE_COORDINATOR_DAEMON_WITNESS_WITNESS_H

#include "chain/statement/statement.h"
#include "common/net/server.h"
#include "common/wire/messages.h"

struct kedge_host;
struct kedge_witnesses; /* the table; kedge_host.witnesses */

enum {
    KEDGE_HOST_WITNESSES_MAX = 4096, /* enrolled at a time, … */
    KEDGE_TENANT_WITNESSES_MAX = 16, /* … and of one tenant */
    KEDGE_PROPOSAL_HOLD_MS = 3000,
    KEDGE_SETTLE_MS = 5000,
    KEDGE_SETTLE_RETRY_MS = 300
};
#define KEDGE_SETTLE_TEXT "the coordinator has just started and listens to its witnesses first"

/* Makes the table and reads policy and last final checkpoint from the state folder. KEDGE_E_DENIED: the
 * policy's quorum is unsafe and `strict`; KEDGE_E_FORMAT names the line. */
KEDGE_NODISCARD int kedge_host_witnesses_open(struct kedge_host *h, bool strict, struct kedge_diag *d);
void kedge_host_witnesses_close(struct kedge_host *h);

/* Whether a witness of the tenant with this TLS key could be added: KEDGE_E_FULL, KEDGE_E_EXISTS (a site or
 * witness has the key). */
KEDGE_NODISCARD int kedge_host_witness_check(const struct kedge_host *h, uint32_t tenant,
                                             const struct kedge_public_key *tls_key);
/* A witness whose statement is durable; errors of kedge_host_witness_check, KEDGE_E_KEY. */
KEDGE_NODISCARD int kedge_host_witness_add(struct kedge_host *h, uint32_t tenant,
                                           const struct kedge_st_witness_enrolled *st);
void kedge_host_witness_revoke(struct kedge_host *h, uint32_t witness);
/* KEDGE_COORD_NONE: none. */
uint32_t kedge_host_witness_find(const struct kedge_host *h, uint32_t tenant, const struct kedge_id *id);
/* Rows of the table, revoked ones among them. */
uint32_t kedge_host_witness_count(const struct kedge_host *h);
uint32_t kedge_host_witness_by_key(const struct kedge_host *h, const struct kedge_public_key *tls_key);
uint32_t kedge_host_witness_tenant(const struct kedge_host *h, uint32_t witness);
const struct kedge_public_key *kedge_host_witness_tls_key(const struct kedge_host *h, uint32_t witness);
bool kedge_host_witness_has_key(const struct kedge_host *h, uint32_t witness,
                                const struct kedge_public_key *cosign_key);
bool kedge_host_witness_is_active(const struct kedge_host *h, uint32_t witness);

/* False for up to KEDGE_SETTLE_MS after the start where a quorum is demanded, until each witness has cosigned
 * the main chain as it is here: a coordinator that was started from an old backup hears of it before it signs
 * anything.
 */
bool kedge_host_witnesses_settled(struct kedge_host *h);

/* Whose it is, and whether it is here: not revoked, and heard of within a minute, or twice its rhythm. */
bool kedge_host_witness_presence(const struct kedge_host *h, uint32_t witness, uint32_t *ret_tenant,
                                 struct kedge_id *ret_id);

/* What a witness asks: LOG_READ or COSIGN. */
void kedge_host_witness_request(struct kedge_host *h, struct kedge_net_request *req, uint32_t witness,
                                const struct kedge_msg *msg);

/* For witnesses elsewhere, who know nothing but checkpoints (c2sp.org/tlog-witness) and are asked by a
 * process of the operator's: appends the main chain's checkpoint that is to be cosigned now, … */
void kedge_host_outside_proposal(struct kedge_host *h, struct kedge_buf *out);
/* … and takes it with the cosignatures of witnesses that the policy names. KEDGE_E_STATE: another one is to
 * be cosigned by now. KEDGE_E_DENIED, _FORMAT, _VERIFY. KEDGE_E_CORRUPT, _FORK: it shows that this log is an
 * old backup or has two histories; the caller stops. */
KEDGE_NODISCARD int kedge_host_outside_cosign(struct kedge_host *h, struct kedge_view note,
                                              struct kedge_diag *d);

/* How many entries of the main chain are final: all that there are when no quorum is demanded. */
uint64_t kedge_host_final_size(const struct kedge_host *h);
/* Appends the last main checkpoint that the quorum cosigned; nothing without one. */
void kedge_host_final_note(const struct kedge_host *h, struct kedge_buf *out);
/* Appends the witness policy's text; nothing when there is none. */
void kedge_host_witness_policy(const struct kedge_host *h, struct kedge_buf *out);
/* Appends who has cosigned how far, for errors: "witness w1 of org-a 120, …". */
void kedge_host_witness_tell(const struct kedge_host *h, struct kedge_buf *out);

struct json_t;
/* Verbs witness.enroll, witness.revoke, witness.list; false: it is none of these. */
bool kedge_admin_witnesses(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                           const struct json_t *args);
/* Appends rows for witness.list to a JSON array. */
void kedge_host_witness_rows(const struct kedge_host *h, struct json_t *list);

#endif
