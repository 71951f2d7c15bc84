/* Witnesses as their tenants' ledgers say: who they are. */
#include "coordinator/daemon/sites/known.h"
#include "coordinator/daemon/witness/witness_impl.h"

uint32_t kedge_host_witness_find(const struct kedge_host *h, uint32_t tenant, const struct kedge_id *id)
{
    for (uint32_t i = 0; i < h->witnesses->count; i++) {
        const struct kedgei_witness *w = &h->witnesses->rows[i];
        if (w->tenant == tenant && kedge_id_eq(&w->id, id)) {
            return i;
        }
    }
    return KEDGE_COORD_NONE;
}

uint32_t kedge_host_witness_count(const struct kedge_host *h)
{
    return h->witnesses->count;
}

/* A witness may be revoked and enrolled again with the same key. The row in force answers first; a
 * revoked one alone still answers, so that its owner is told "revoked" and not "unknown". */
uint32_t kedge_host_witness_by_key(const struct kedge_host *h, const struct kedge_public_key *tls_key)
{
    uint32_t found = KEDGE_COORD_NONE; /* one that is revoked, unless there is another */
    for (uint32_t i = 0; i < h->witnesses->count; i++) {
        const struct kedgei_witness *w = &h->witnesses->rows[i];
        if (kedge_public_key_eq(&w->tls_key, tls_key) && (w->active || found == KEDGE_COORD_NONE)) {
            found = i;
        }
    }
    return found;
}

uint32_t kedge_host_witness_tenant(const struct kedge_host *h, uint32_t witness)
{
    return h->witnesses->rows[witness].tenant;
}

const struct kedge_public_key *kedge_host_witness_tls_key(const struct kedge_host *h, uint32_t witness)
{
    return &h->witnesses->rows[witness].tls_key;
}

bool kedge_host_witness_has_key(const struct kedge_host *h, uint32_t witness,
                                const struct kedge_public_key *cosign_key)
{
    return kedge_public_key_eq(&h->witnesses->rows[witness].vkey.key, cosign_key);
}

bool kedge_host_witness_is_active(const struct kedge_host *h, uint32_t witness)
{
    return h->witnesses->rows[witness].active;
}
