/* Which updates a ledger orders to be erased. */
#include <stdio.h>

#include "chain/state/refused.h"
#include "coordinator/daemon/admin/admin_append.h"
#include "coordinator/daemon/erase.h"
#include "coordinator/daemon/host.h"

void kedge_erased_key(const struct kedge_hash *update, char out[KEDGE_IDEM_KEY_MAX + 1])
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(update, hex);
    snprintf(out, KEDGE_IDEM_KEY_MAX + 1, "erased/%s", hex);
}

bool kedge_ledger_find_erased(struct kedge_ledger *l, const struct kedge_hash *update, uint64_t *ret_index)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    kedge_erased_key(update, key);
    return kedge_ledger_find(l, kedge_view_str(key), ret_index) == KEDGE_OK;
}

bool kedge_ledger_has_erased(struct kedge_ledger *l, const struct kedge_hash *update)
{
    uint64_t index;
    return kedge_ledger_find_erased(l, update, &index);
}

/* An order that is being written counts already. Otherwise a site could send the bytes again
 * between the order and its durability, and the file would outlive the order. */
bool kedge_host_is_erased(const struct kedge_host *h, uint32_t tenant, const struct kedge_hash *update)
{
    const struct kedge_tenant *t = &h->tenants[tenant];
    return (t->erasing && kedge_hash_eq(&t->erased, update))
           || kedge_ledger_has_erased(t->log.ledger, update);
}
