#include "coordinator/daemon/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/restore_walk.h"

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
    for (uint32_t i = 0; h->roles && i < h->roles->count; i++) {
        if (h->roles->rows[i].active && h->roles->rows[i].granted.role == role
            && kedge_public_key_eq(&h->roles->rows[i].granted.public_key, key)) {
            return true;
        }
    }
    return false;
}

static bool is_configured(const struct kedge_host *h, const struct kedge_public_key *key)
{
    bool yes = false;
    for (unsigned i = 0; i < h->config.operator_count; i++) {
        yes = yes || kedge_public_key_eq(&h->config.operators[i], key);
    }
    return yes;
}

bool kedge_host_may_ask(const struct kedge_host *h, const struct kedge_net_peer *peer, const char *verb)
{
    static const char *const owner[] = {"role.grant", "role.revoke", NULL};
    static const char *const reading[] = {"status",       "trust",          "tenant.list", "site.list",
                                          "key.list",     "job.list",       "job.show",    "role.list",
                                          "witness.list", "ledger.updates", NULL};
    if (peer->kind == KEDGE_NET_IPC) {
        return true; /* the socket is 0600: whoever opens it owns the state folder */
    }
    if (!peer->has_key || peer->kind != KEDGE_NET_TLS || is_in(verb, owner)) {
        return false;
    }
    return is_configured(h, &peer->key) || kedge_host_has_role(h, &peer->key, KEDGE_CHAIN_OPERATOR)
           || (is_in(verb, reading) && kedge_host_has_role(h, &peer->key, KEDGE_CHAIN_AUDITOR));
}

static int load_granted(struct kedge_walk *w, uint64_t index)
{
    struct kedge_roles *r = w->h->roles;
    if (r->count == KEDGE_ROLES_MAX) {
        return kedge_diag_set(w->d, KEDGE_E_CORRUPT, "main chain: more than %d roles", KEDGE_ROLES_MAX);
    }
    r->rows[r->count].granted = w->st->u.role_granted;
    r->rows[r->count].from = index;
    r->rows[r->count].active = true;
    r->count++;
    return KEDGE_OK;
}

static int load_revoked(struct kedge_walk *w, uint64_t index)
{
    struct kedge_roles *r = w->h->roles;
    (void)index;
    for (uint32_t i = 0; i < r->count; i++) {
        if (kedge_public_key_eq(&r->rows[i].granted.public_key, &w->st->u.role_revoked.public_key)) {
            r->rows[i].active = false;
        }
    }
    return KEDGE_OK;
}

int kedge_host_roles_load(struct kedge_host *h, struct kedge_diag *d)
{
    struct kedge_walk w = {.h = h, .d = d, .st = kedge_mem_new(1, sizeof *w.st)};
    h->roles = kedge_mem_new(1, sizeof *h->roles);
    int err =
        w.st && h->roles ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "%s", kedge_strerror(KEDGE_E_NOMEM));
    err = err ? err
              : kedge_walk_all(&w, h->main.ledger, KEDGE_ST_ROLE_GRANTED, "", KEDGE_WALK_ALL, load_granted);
    err = err ? err
              : kedge_walk_all(&w, h->main.ledger, KEDGE_ST_ROLE_REVOKED, "", KEDGE_WALK_ALL, load_revoked);
    kedge_mem_free(w.st);
    return err;
}
