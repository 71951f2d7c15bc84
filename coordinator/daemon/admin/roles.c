/* Who may ask what, by the way it comes: the owner through the socket in the state folder,
 * operators and auditors by their TLS keys. What changes the federation's authority is the owner's
 * alone. */
#include "coordinator/daemon/admin/roles.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/daemon/host.h"
#include "coordinator/daemon/tenant_keys.h"

enum { ACTOR_KEY_BYTES = 8 }; /* of a key that no statement names */

static bool is_in(const char *verb, const char *const *verbs)
{
    while (*verbs && strcmp(*verbs, verb) != 0) {
        verbs++;
    }
    return *verbs != NULL;
}

bool kedge_host_has_role(const struct kedge_host *h, const struct kedge_public_key *key,
                         enum kedge_chain_role role)
{
    const struct kedge_main_role *has = kedge_mainbook_role(&h->authority.book, key);
    return has && has->role == role;
}

static bool is_configured(const struct kedge_host *h, const struct kedge_public_key *key)
{
    bool yes = false;
    for (unsigned i = 0; i < h->config.operator_count; i++) {
        yes = yes || kedge_public_key_eq(&h->config.operators[i], key);
    }
    return yes;
}

/* A list of what auditors may read, and not of what they may not: a verb that is new is closed to
 * them until somebody decides otherwise. */
bool kedge_host_may_ask(const struct kedge_host *h, const struct kedge_net_peer *peer, const char *verb)
{
    static const char *const owner[] = {"role.grant",  "role.revoke", "role.quorum",
                                        "role.rotate", "role.submit", NULL};
    static const char *const reading[] = {"whoami",         "status",
                                          "trust",          "tenant.list",
                                          "site.list",      "key.list",
                                          "job.list",       "job.show",
                                          "role.list",      "witness.list",
                                          "ledger.updates", "job.events",
                                          "job.spec",       "job.costs",
                                          "job.groups",     "ledger.position",
                                          "ledger.receipt", "ledger.refusals",
                                          "event.list",     "event.record",
                                          "tenant.show",    NULL};
    if (peer->kind == KEDGE_NET_IPC) {
        return true; /* the socket is 0600: who can open it owns the state folder */
    }
    if (!peer->has_key || peer->kind != KEDGE_NET_TLS || is_in(verb, owner)) {
        return false;
    }
    return is_configured(h, &peer->key) || kedge_host_has_role(h, &peer->key, KEDGE_CHAIN_OPERATOR)
           || (is_in(verb, reading) && kedge_host_has_role(h, &peer->key, KEDGE_CHAIN_AUDITOR));
}

void kedge_host_actor(const struct kedge_host *h, const struct kedge_net_peer *peer, char *ret)
{
    char digits[2 * ACTOR_KEY_BYTES + 1];
    const struct kedge_main_role *role =
        peer->has_key ? kedge_mainbook_role(&h->authority.book, &peer->key) : NULL;
    if (peer->kind == KEDGE_NET_IPC) {
        snprintf(ret, KEDGE_ACTOR_MAX + 1, "owner");
    } else if (role) {
        snprintf(ret, KEDGE_ACTOR_MAX + 1, "operator %s", role->name.s);
    } else {
        kedge_hex_encode(peer->key.b, ACTOR_KEY_BYTES, digits);
        snprintf(ret, KEDGE_ACTOR_MAX + 1, "operator %s", digits);
    }
}

const char *kedge_host_role_name(const struct kedge_host *h, const struct kedge_net_peer *peer)
{
    return peer->kind == KEDGE_NET_IPC                 ? "owner"
           : kedge_host_may_ask(h, peer, "job.submit") ? "operator"
                                                       : "auditor";
}

/* Only over TLS: over plain connections a key is just a claim. */
bool kedge_host_is_of_tenant(const struct kedge_host *h, const struct kedge_net_peer *peer)
{
    bool yes = false;
    for (uint32_t i = 0; i < h->tenant_count && peer->has_key && peer->kind == KEDGE_NET_TLS && !yes; i++) {
        yes = kedge_tenant_shows_to(&h->tenants[i], &peer->key);
    }
    return yes;
}
