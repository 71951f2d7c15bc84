/* What the main chain says of the coordinator's statement key, of operators and auditors and of who approves
 * changes of these (chain/statement/mainbook.h), and how such a statement gets there. All on the loop thread.
 *
 * A rotation of the statement key must stand between what the old key signed and what the new one signs, in
 * the main chain and in every tenant's ledger. So, once asked for, nothing more is signed and handed over
 * until what is on its way has arrived, then tenants' checkpoints and the rotation become durable in one
 * piece, then the key is switched and what was held goes on. The new key's file is there before; whether it
 * is in force only the main chain says, also at the next start. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_AUTHORITY_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_AUTHORITY_H

#include "chain/statement/mainbook.h"
#include "common/net/server.h"

struct group_work;
struct json_t;
struct kedge_authority_change;
struct kedge_host;

struct kedge_authority {
    struct kedge_mainbook book;             /* as durable */
    struct kedge_authority_change *pending; /* being written; the next one is told to come again */
    bool holds;                             /* a rotation is under way */
    uint32_t assigning;                     /* group-assigned that were signed and are not durable yet */
    struct group_work *assigned;            /* those that are held */
    /* The newest statement-key-rotated envelopes, each after its length (u32): what sites follow. */
    struct kedge_buf rotations;
};

/* From the main chain, after its policy; takes up a rotation that a crash interrupted. KEDGE_E_KEY:
 * keys/statement.pem is not the key in force. KEDGE_E_CORRUPT, KEDGE_E_NOMEM, errors of key files. */
KEDGE_NODISCARD int kedge_host_authority_load(struct kedge_host *h, struct kedge_diag *d);
void kedge_host_authority_close(struct kedge_host *h);
/* What the statement key signs is to wait. */
bool kedge_host_authority_holds(const struct kedge_host *h);
/* Something that it signed may have arrived: the loop says so after each item. */
void kedge_host_authority_go_on(struct kedge_host *h);
/* A statement of a tenant's admins that is about to be appended gives no key that the coordinator has, an
 * operator, an auditor, or, of connections, another site or witness. KEDGE_E_KEY. */
KEDGE_NODISCARD int kedge_host_check_coming(const struct kedge_host *h, const struct kedge_statement *st,
                                            struct kedge_diag *d);
/* Whether any ledger gives or gave this key a role, or it is the coordinator's own. */
bool kedge_host_key_is_known(const struct kedge_host *h, const struct kedge_public_key *key);

/* A change, by the owner of the state folder. Takes `st`, whose bound it fills; with `propose` answers the
 * request with the envelope for organisations to approve, else appends it. `next`: the key that comes, of a
 * rotation. */
void kedge_authority_change(struct kedge_host *h, struct kedge_net_request *req, struct kedge_statement *st,
                            const struct kedge_key_pair *next, bool propose);
/* The same with an envelope that organisations approved. */
void kedge_authority_submit(struct kedge_host *h, struct kedge_net_request *req, struct kedge_view envelope);
/* A statement of the coordinator alone, which needs nobody's approval: signed, appended, taken in, answered.
 * Takes st over. One at a time with the changes of authority. */
void kedge_authority_state(struct kedge_host *h, struct kedge_net_request *req, struct kedge_statement *st);
/* Whether a quota-set about that tenant (salted) is being written: what it limits waits until it is known. */
bool kedge_authority_sets_quota(const struct kedge_host *h, const struct kedge_hash *tenant);
/* Makes the new key, off the loop, then as kedge_authority_change. */
void kedge_authority_rotate(struct kedge_host *h, struct kedge_net_request *req, const char *reason,
                            bool propose);
#endif
