/* Places in ledgers: what a signer names (ledger.position), and what proves that an entry stands where it was
 * said to (ledger.receipt). */
#include <jansson.h>
#include <string.h>

#include "chain/log/merkle.h"
#include "chain/log/note.h"
#include "chain/log/proof.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/host.h"

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
    kedge_admin_ok(req,
                   json_pack("{s:s,s:s,s:o,s:I,s:o}", "deployment", h->config.deployment, "tenant", tenant.s,
                             "main_log_key", kedgei_json_hex(h->main.key.public.b, KEDGE_HASH_LEN), "size",
                             (json_int_t)size, "root", kedgei_json_hex(root.b, KEDGE_HASH_LEN)));
}

static int find_log(struct kedge_host *h, const struct kedge_admin_receipt *a,
                    const struct kedge_state_log **ret, struct kedge_diag *d)
{
    uint32_t t = a->is_main ? KEDGE_COORD_NONE : kedge_host_tenant_find(h, &a->log);
    if (!a->is_main && t == KEDGE_COORD_NONE) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no tenant \"%s\" here", a->log.s);
    }
    *ret = a->is_main ? &h->main : &h->tenants[t].log;
    return KEDGE_OK;
}

/* Under the newest checkpoint, which covers all that was answered for. */
static int make_proof(const struct kedge_state_log *log, uint64_t index, struct kedge_buf *ret_text,
                      struct kedge_buf *ret_entry)
{
    struct kedge_proof *proof KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *proof);
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit);
    uint64_t size = 0;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    KEDGE_TRY(proof ? kedge_ledger_checkpoint(log->ledger, &note, &size) : KEDGE_E_NOMEM);
    KEDGE_TRY(index >= size ? KEDGE_E_NOT_FOUND : KEDGE_OK);
    KEDGE_TRY(kedge_ledger_inclusion(log->ledger, index, size, &proof->path));
    KEDGE_TRY(kedge_ledger_get(log->ledger, index, ret_entry));
    proof->index = index;
    proof->note = kedge_buf_view(&note);
    kedge_proof_encode(proof, ret_text);
    return ret_text->err;
}

static json_t *vkey_of(const struct kedge_state_log *log)
{
    struct kedge_vkey vkey;
    struct kedge_buf text;
    json_t *o = NULL;
    kedge_buf_init(&text, KEDGE_VKEY_MAX + 1);
    if (kedge_vkey_make(kedge_view_str(log->origin), KEDGE_KEY_ED25519, &log->key.public, &vkey)
        == KEDGE_OK) {
        kedge_vkey_encode(&vkey, &text);
        o = json_stringn((const char *)text.ptr, text.len);
    }
    kedge_buf_deinit(&text);
    return o ? o : json_string("");
}

static int find_receipt(struct kedge_host *h, struct kedge_admin_receipt *a,
                        const struct kedge_state_log **ret, struct kedge_buf *ret_text,
                        struct kedge_buf *ret_entry, struct kedge_diag *d)
{
    KEDGE_TRY(find_log(h, a, ret, d));
    KEDGE_TRY(a->key ? kedge_ledger_find((*ret)->ledger, kedge_view_str(a->key), &a->index) : KEDGE_OK);
    KEDGE_TRY(make_proof(*ret, a->index, ret_text, ret_entry));
    if (ret_entry->len == 0
        || ret_entry->ptr[0] != '{') { /* a tenant's checkpoint: not for everybody, no text */
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "entry %llu of log %s is no statement",
                              (unsigned long long)a->index, a->log.s);
    }
    return KEDGE_OK;
}

/* Checkpoints of tenants in the main chain have no receipt here: their entries are salted so that
 * other tenants do not learn them. */
static void receipt(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_receipt a;
    const struct kedge_state_log *log = NULL;
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit), entry KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    int err = kedge_admin_receipt_args(args, &a, &d);
    if (!err) {
        err = find_receipt(h, &a, &log, &text, &entry, &d);
    }
    if (err) {
        if (!d.text[0]) {
            (void)kedge_diag_set(&d, err, "log %s has no such entry under a checkpoint: %s", a.log.s,
                                 kedge_strerror(err));
        }
        kedge_admin_error(req, err, &d);
        return;
    }
    kedge_admin_ok(req, json_pack("{s:s,s:I,s:s%,s:s%,s:o}", "log", a.log.s, "leaf_index",
                                  (json_int_t)a.index, "receipt", (const char *)text.ptr, text.len, "entry",
                                  (const char *)entry.ptr, entry.len, "log_key", vkey_of(log)));
}

bool kedge_admin_ledger(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                        const json_t *args)
{
    if (strcmp(verb, "ledger.position") == 0) {
        position(h, req, args);
        return true;
    }
    if (strcmp(verb, "ledger.receipt") == 0) {
        receipt(h, req, args);
        return true;
    }
    return false;
}
