/* Places in ledgers: what a signer names (ledger.position). */
#include <jansson.h>
#include <string.h>

#include "chain/merkle.h"
#include "coordinator/daemon/admin.h"
#include "coordinator/daemon/admin_args.h"
#include "coordinator/daemon/host.h"

static json_t *hex_of(const uint8_t *bytes)
{
    char hex[2 * KEDGE_HASH_LEN + 1];
    kedge_hex_encode(bytes, KEDGE_HASH_LEN, hex);
    return json_string(hex);
}

static int take_tenant(const json_t *args, struct kedge_id *ret, struct kedge_diag *d)
{
    struct kedge_admin_filter wanted = {.tenant = NULL};
    int err = kedge_admin_filter_args(args, &wanted, d);
    if (!err && (!wanted.tenant || kedge_id_from(kedge_view_str(wanted.tenant), ret) != KEDGE_OK)) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT, "\"tenant\": expected a name of a-z, 0-9, '.', '_', '-'");
    }
    return err;
}

/* What there is of the tenant's ledger now; of a tenant that is not here yet, nothing: its first key names
 * that. */
static void position(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id tenant;
    struct kedge_hash root;
    uint64_t size = 0;
    int err = take_tenant(args, &tenant, &d);
    uint32_t t = err ? KEDGE_COORD_NONE : kedge_host_tenant_find(h, &tenant);
    kedge_merkle_empty_root(&root);
    if (t != KEDGE_COORD_NONE) {
        struct kedge_ledger *ledger = h->tenants[t].log.ledger;
        size = kedge_ledger_size(ledger);
        err = kedge_ledger_root(ledger, size, &root);
    }
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    kedge_admin_ok(req, json_pack("{s:s,s:s,s:o,s:I,s:o}", "deployment", h->config.deployment, "tenant",
                                  tenant.s, "main_log_key", hex_of(h->main.key.public.b), "size",
                                  (json_int_t)size, "root", hex_of(root.b)));
}

bool kedge_admin_ledger(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                        const json_t *args)
{
    if (strcmp(verb, "ledger.position") != 0) {
        return false;
    }
    position(h, req, args);
    return true;
}
