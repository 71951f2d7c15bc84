/* Updates that are refused for good: the coordinator answers with a signed statement (KEDGE_ST_REFUSED), and
 * keeps what somebody else needs to judge it, in STATE/tenants/T/refused/ (chain/state/refused.h). Loop
 * thread, but where it is said. */
#ifndef KEDGE_COORDINATOR_DAEMON_SITES_REFUSED_H
#define KEDGE_COORDINATOR_DAEMON_SITES_REFUSED_H

#include "chain/statement/statement.h"
#include "common/base/os/file.h"
#include "common/net/server.h"

struct json_t;
struct kedge_host;

/* An update statement whose signature holds. Borrowed, but for req, which is answered. */
struct kedge_refused_update {
    struct kedge_net_request *req;
    uint32_t site;
    const struct kedge_statement *st;
    struct kedge_view envelope;
    struct kedge_hash hash; /* of the envelope */
    int err;
    bool listed; /* the round's input list will say so */
};

/* Is this refusal of this statement one that is signed? Of class REJECT, of an update, by a site that is
 * enrolled: all else may pass, or is about nobody's work. */
bool kedge_host_refuses(const struct kedge_host *h, uint32_t site, const struct kedge_statement *st, int err);
/* Signs, keeps, answers; where that fails, the answer is a plain error. */
void kedge_host_refuse(struct kedge_host *h, const struct kedge_refused_update *u);
/* Keeps the file of a refused update, which is at `from` and may go from there. Any thread: the tables' names
 * of sites and tenants do not change. What fails is logged. */
void kedge_host_refused_keep_file(const struct kedge_host *h, uint32_t site, const struct kedge_hash *update,
                                  const char *from);
/* The same of one that is a blob of its tenant: before it is dropped. Loop thread. */
void kedge_host_refused_keep_blob(const struct kedge_host *h, uint32_t site, const struct kedge_hash *update);
/* An erased update is not kept here either. */
KEDGE_NODISCARD int kedge_host_refused_erase(const struct kedge_host *h, uint32_t tenant,
                                             const struct kedge_hash *update, struct kedge_diag *d);
/* Verbs ledger.refusals, ledger.erase-refused (admin_refusals.c); false: it is none of these. */
bool kedge_admin_refusals(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                          const struct json_t *args);
/* When the folders are looked through next for what is too old. */
uint64_t kedge_host_refused_due_ns(const struct kedge_host *h);
void kedge_host_refused_look(struct kedge_host *h, uint64_t now_ns);

#endif
