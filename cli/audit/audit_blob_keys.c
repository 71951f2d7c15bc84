/* --blob-key TENANT=FILE: keys of a tenant's encrypted updates, for an auditor whose copy lacks them. */
#include "cli/audit/audit_blob_keys.h"

#include <string.h>

/* Only the form is checked here. The files are opened by the auditor when an update of that tenant is met, so
 * a key that is never needed is never read. */
bool kedge_cli_blob_keys_take(struct kedge_cli *c, struct kedge_cli_blob_keys *ret)
{
    const char *text;
    ret->count = 0;
    while ((text = kedge_cli_option(c, "blob-key", NULL)) != NULL) {
        const char *is = strchr(text, '=');
        struct kedge_audit_blob_key *key = &ret->items[ret->count];
        if (ret->count == KEDGE_CLI_BLOB_KEYS_MAX) {
            (void)kedge_cli_usage(c, "--blob-key: at most %d", KEDGE_CLI_BLOB_KEYS_MAX);
            return false;
        }
        if (!is || !is[1]
            || kedge_id_from(kedge_view_of(text, (size_t)(is - text)), &key->tenant) != KEDGE_OK) {
            (void)kedge_cli_usage(c, "--blob-key %s: expected TENANT=FILE, a key file or a folder of such",
                                  kedge_cli_word(text).s);
            return false;
        }
        key->path = is + 1;
        ret->count++;
    }
    return true;
}
