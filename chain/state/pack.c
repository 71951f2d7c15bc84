#include "chain/state/pack.h"

#include <stdio.h>
#include <string.h>

#include "chain/state/backup.h"
#include "chain/state/backup_impl.h"

static bool is_number(const char *name, const char *end)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && strcmp(name + digits, end) == 0;
}

/* A list of what is taken, not of what is left out: what is not known here stays with the operator. */
static bool is_for_auditors(void *arg, const char *name, bool is_dir)
{
    static const char evm[] = "anchors/evm/", tsa[] = "anchors/tsa/", tenants[] = "tenants/";
    (void)arg;
    if (is_dir) {
        bool tenant = strncmp(name, tenants, strlen(tenants)) == 0 && !strchr(name + strlen(tenants), '/');
        return tenant || strcmp(name, "main") == 0 || strcmp(name, "tenants") == 0
               || strcmp(name, "anchors") == 0 || strcmp(name, "anchors/evm") == 0
               || strcmp(name, "anchors/tsa") == 0;
    }
    if (strncmp(name, evm, strlen(evm)) == 0) {
        return is_number(name + strlen(evm), ".json");
    }
    if (strncmp(name, tsa, strlen(tsa)) == 0) {
        return is_number(name + strlen(tsa), ".note") || is_number(name + strlen(tsa), ".tsr");
    }
    bool of_tenant = strncmp(name, tenants, strlen(tenants)) == 0
                     && (kedgei_ends_with(name, "/tenant.json") || kedgei_ends_with(name, "/cosigned.note"));
    return of_tenant || strcmp(name, "main/cosigned.note") == 0;
}

static int write_config(const char *state, const char *out, struct kedge_diag *d)
{
    char deployment[KEDGE_DEPLOYMENT_MAX + 1], path[KEDGE_PATH_MAX], text[KEDGE_DEPLOYMENT_MAX + 64];
    int err = kedge_state_deployment(state, deployment, d);
    err = err ? err : kedge_state_path(path, d, out, "config.json");
    if (err) {
        return err;
    }
    snprintf(text, sizeof text, "{\n  \"deployment\": \"%s\"\n}\n", deployment);
    return kedge_file_write(path, kedge_view_str(text), 0600, d);
}

static int put_moment(const struct kedge_snapshot *s, const char *state, const char *out, bool update_keys,
                      struct kedge_diag *d)
{
    struct kedge_tree tree;
    const struct kedge_id *tenants;
    size_t count = kedge_snapshot_tenants(s, &tenants);
    int err = kedgei_make_blob_folders(out, tenants, count, d);
    err = err ? err : kedge_snapshot_put_stores(s, out, false, true, d);
    err = err ? err : kedge_backup_put_blobs(state, s, out, d);
    err = err || !update_keys ? err : kedgei_copy_update_keys(state, out, d);
    err = err ? err : kedge_tree_list(out, NULL, NULL, &tree, d);
    if (err) {
        return err;
    }
    err = kedgei_drop_locks(out, &tree, d);
    kedge_tree_deinit(&tree);
    return err;
}

int kedge_state_pack(const char *state, const char *out, bool update_keys, struct kedge_diag *reterr)
{
    struct kedge_snapshot *s;
    int err = write_config(state, out, reterr);
    err = err ? err : kedgei_copy_tree(state, out, is_for_auditors, reterr);
    err = err ? err : kedge_snapshot_take(state, &s, reterr);
    if (err) {
        return err;
    }
    err = put_moment(s, state, out, update_keys, reterr);
    kedge_snapshot_free(s);
    return err;
}
