/* Who else may ask what operators ask: TLS keys that the main chain names, as operators or as auditors.
 * The owner of the state folder grants and revokes them, with the organisations that the policy demands; each
 * is a statement of the main chain, so that everybody learns of it. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_ROLES_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_ROLES_H

#include "chain/statement/statement.h"
#include "common/net/server.h"

struct json_t;
struct kedge_host;

/* Whether that key has the role now. */
bool kedge_host_has_role(const struct kedge_host *h, const struct kedge_public_key *key,
                         enum kedge_chain_role role);
/* Whether the peer may use an operators' verb: the door may all, operators all but role.*, auditors what only
 * reads. */
bool kedge_host_may_ask(const struct kedge_host *h, const struct kedge_net_peer *peer, const char *verb);
/* Who that is, in a few words, for the history of jobs: "owner" (through the door), "operator NAME", or
 * "operator" and the first digits of the key. ret: KEDGE_ACTOR_MAX + 1. */
void kedge_host_actor(const struct kedge_host *h, const struct kedge_net_peer *peer, char *ret);
/* Whether the peer's key is an admin's in force, or a viewer's, of any tenant. */
bool kedge_host_is_of_tenant(const struct kedge_host *h, const struct kedge_net_peer *peer);
/* "owner", "operator" or "auditor", of a peer that may ask at least "whoami". */
const char *kedge_host_role_name(const struct kedge_host *h, const struct kedge_net_peer *peer);
/* role.grant, role.revoke, role.quorum, role.rotate, role.submit, role.list; false: another verb. */
bool kedge_admin_roles(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                       const struct json_t *args);

#endif
