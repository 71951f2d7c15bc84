/* Submissions: from an envelope that came to a receipt, each step asked for by the core. */
#ifndef KEDGE_COORDINATOR_DAEMON_SITES_SUBMIT_H
#define KEDGE_COORDINATOR_DAEMON_SITES_SUBMIT_H

#include "chain/statement/statement.h"
#include "common/base/bytes.h"
#include "common/base/limits.h"
#include "common/net/server.h"
#include "crypto/hash.h"

struct kedge_host;

enum { KEDGE_TICKETS_MAX = 2 * KEDGE_SITES_MAX };

struct kedge_ticket {
    bool used;
    uint32_t request, site, job;
    struct kedge_statement *st; /* owned: update or evaluation */
    struct kedge_buf envelope;
    struct kedge_hash envelope_hash; /* SHA-256 of the bytes */
    uint64_t leaf;
    bool blob_committed;
};

void kedge_host_submit(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                       struct kedge_view envelope);
void kedge_host_verify(struct kedge_host *h, uint32_t ticket);
void kedge_host_append(struct kedge_host *h, uint32_t ticket);
void kedge_host_receipt(struct kedge_host *h, uint32_t request, uint32_t tenant, uint64_t leaf);
/* A receipt may have been lost: answers with it when this very statement is in the ledger. */
bool kedge_host_receipt_if_known(struct kedge_host *h, uint32_t ticket);
/* Answers a submission to a closed round: the receipt when this very statement is in the ledger, else
 * "closed". */
void kedge_host_closed(struct kedge_host *h, uint32_t ticket, uint32_t round);
void kedge_host_ticket_free(struct kedge_host *h, uint32_t ticket);

#endif
