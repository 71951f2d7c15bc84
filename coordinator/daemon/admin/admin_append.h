/* Appending what a tenant's admins signed: checked against the tenant's keys (chain/statement/keybook.h), put
 * into its ledger, then taken into the tables and answered. On the loop thread. While a statement that
 * changes keys is being written, the tenant's next one is told to come again: whether it is valid depends on
 * what stands before it. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_ADMIN_APPEND_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_ADMIN_APPEND_H

#include <jansson.h>

#include "chain/log/merkle.h"
#include "chain/statement/statement.h"
#include "common/net/server.h"
#include "coordinator/daemon/loop.h"

struct kedge_admin_append {
    struct kedge_item item;
    struct kedge_host *h;
    struct kedge_net_request *req;
    struct kedge_statement *st;
    uint32_t tenant;
    void (*then)(struct kedge_host *h,
                 struct kedge_admin_append *a); /* durable, before the answer; may set err, why */
    void (*undo)(struct kedge_host *h, struct kedge_admin_append *a); /* may be NULL: on failure */
    uint64_t index;
    struct kedge_hash leaf; /* of the envelope */
    bool repeated; /* the ledger holds this statement, signed at this position or at an earlier one */
    struct kedge_buf stored; /* then: the entry that says it */
    bool changes_keys;       /* others wait for it */
    int err;
    char why[KEDGE_DIAG_TEXT_MAX]; /* it failed */
};

struct kedge_admin_append *kedge_admin_append_new(struct kedge_net_request *req);
/* Opens "envelope" with the keys of the tenant that the arguments name; fills st and tenant. What the ledger
 * holds already is `repeated` and not judged again. KEDGE_E_DENIED, KEDGE_E_REVOKED, KEDGE_E_KEY,
 * KEDGE_E_POSITION, KEDGE_E_BUSY, … */
KEDGE_NODISCARD int kedge_admin_append_open(struct kedge_host *h, const json_t *args,
                                            enum kedge_statement_kind kind, struct kedge_admin_append *a,
                                            struct kedge_diag *d);
/* Appends the envelope; afterwards `then` and the answer. `a` is gone for the caller. */
void kedge_admin_append_submit(struct kedge_host *h, struct kedge_admin_append *a, const json_t *args,
                               const char *idem_key);
/* Without an answer. */
void kedge_admin_append_free(struct kedge_admin_append *a);
/* Answers with the error and frees `a`. */
void kedge_admin_append_fail(struct kedge_admin_append *a, int err, const struct kedge_diag *d);

#endif
