/* Receipts of what commands have appended. A coordinator's answer alone proves nothing: it could answer
 * that a site is revoked and append nothing. So after each answer the entry itself is asked for with its
 * inclusion proof and a signed checkpoint, held to what was asked for and to a log key that was known before,
 * and kept in a file: who signed such a checkpoint and left the entry out of the log has signed two
 * histories. */
#ifndef KEDGE_CLI_RECEIPT_H
#define KEDGE_CLI_RECEIPT_H

#include "chain/log/note.h"
#include "cli/cli.h"

/* What a request is about to append, and whose signature has to cover it. */
struct kedge_cli_append {
    bool is_main;
    struct kedge_id tenant;       /* whose ledger; empty for the main chain */
    struct kedge_statement *sent; /* owned; NULL: the coordinator makes the statement from the request */
    json_t *request;              /* owned */
    bool is_pinned;
    struct kedge_vkey log; /* when pinned */
    char deployment[KEDGE_ST_NAME_MAX + 1];
};

/* Whether the request appends, and if so under which log key; before anything is sent. *ret NULL: it does
 * not. KEDGE_E_USAGE: no key is known against which the answer could be checked. */
KEDGE_NODISCARD int kedge_cli_append_begin(struct kedge_cli *c, const json_t *request,
                                           struct kedge_cli_append **ret, struct kedge_diag *d);
/* After the coordinator's answer: gets, checks and keeps the receipt; sets "receipt" (the file) and
 * "checkpoint_size" in the answer. KEDGE_E_UNKNOWN: nothing proves that it was appended. */
KEDGE_NODISCARD int kedge_cli_append_end(struct kedge_cli *c, const struct kedge_cli_append *a,
                                         json_t *answer, struct kedge_diag *d);
void kedge_cli_append_free(struct kedge_cli_append *a);

/* Whether a key of the main chain is known, before a request that makes the coordinator append there. */
KEDGE_NODISCARD int kedge_cli_main_pin(struct kedge_cli *c, struct kedge_diag *d);
/* That key. KEDGE_E_USAGE: none is known. */
KEDGE_NODISCARD int kedge_cli_main_vkey(struct kedge_cli *c, struct kedge_vkey *ret, struct kedge_diag *d);
/* That the deployment for which the coordinator wants something signed is the one whose key was known before:
 * else it could have its tenants sign for another one. KEDGE_E_POSITION, KEDGE_E_USAGE as above. */
KEDGE_NODISCARD int kedge_cli_check_deployment(struct kedge_cli *c,
                                               const struct kedge_public_key *main_log_key,
                                               struct kedge_diag *d);
/* The same for what the coordinator appends to the main chain of itself, under this idempotency key: waits
 * for it for up to wait_ms. ret_st: what it says; the caller judges that. KEDGE_E_NOT_FOUND: it is not there.
 */
KEDGE_NODISCARD int kedge_cli_main_receipt(struct kedge_cli *c, const char *idem_key, uint32_t wait_ms,
                                           struct kedge_statement *ret_st, json_t *answer,
                                           struct kedge_diag *d);
/* Of a job that is said to be cancelled: its job-closed. KEDGE_E_UNKNOWN. */
KEDGE_NODISCARD int kedge_cli_cancel_receipt(struct kedge_cli *c, const struct kedge_id *job, json_t *answer,
                                             struct kedge_diag *d);

#endif
