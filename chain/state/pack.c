/* A folder for auditors: the logs, their blobs, anchors and cosignatures of one moment, and no key that
 * signs or opens connections. The order of the steps is backup.c's, for the same reasons. */
#include "chain/state/pack.h"

#include <stdio.h>
#include <string.h>

#include "chain/state/anchors.h"
#include "chain/state/backup.h"
#include "chain/state/backup_impl.h"
#include "common/base/try.h"

static bool is_number(const char *name, const char *end)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && strcmp(name + digits, end) == 0;
}

/* A kind's folder, or an anchor in it: what its host keeps beside them is the operator's. */
static bool is_anchor(const char *name, bool is_dir)
{
    const struct kedge_anchor_kind *kind;
    for (size_t i = 0; (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        size_t len = strlen(kind->name);
        if (strncmp(name, kind->name, len) != 0 || (!is_dir && name[len] != '/')) {
            continue;
        }
        if (is_dir ? name[len] == '\0'
                   : is_number(name + len + 1, kind->suffix)
                         || (kind->note_suffix && is_number(name + len + 1, kind->note_suffix))) {
            return true;
        }
    }
    return false;
}

/* A list of what is taken, not of what is left out: what is not known here stays with the operator. */
static bool is_for_auditors(void *arg, const char *name, bool is_dir)
{
    static const char anchors[] = "anchors/", tenants[] = "tenants/";
    (void)arg;
    if (strncmp(name, anchors, strlen(anchors)) == 0) {
        return is_anchor(name + strlen(anchors), is_dir);
    }
    if (is_dir) {
        bool tenant = strncmp(name, tenants, strlen(tenants)) == 0 && !strchr(name + strlen(tenants), '/');
        return tenant || strcmp(name, "main") == 0 || strcmp(name, "tenants") == 0
               || strcmp(name, "anchors") == 0;
    }
    bool of_tenant = strncmp(name, tenants, strlen(tenants)) == 0
                     && (kedgei_ends_with(name, "/tenant.json") || kedgei_ends_with(name, "/cosigned.note"));
    return of_tenant || strcmp(name, "main/cosigned.note") == 0;
}

/* The operator's config.json has addresses and settings that are none of an auditor's business. Programs
 * that read a state folder need no more of it than the deployment's name. */
static int write_config(const char *state, const char *out, struct kedge_diag *d)
{
    char deployment[KEDGE_DEPLOYMENT_MAX + 1], path[KEDGE_PATH_MAX], text[KEDGE_DEPLOYMENT_MAX + 64];
    KEDGE_TRY(kedge_state_deployment(state, deployment, d));
    KEDGE_TRY(kedge_state_path(path, d, out, "config.json"));
    snprintf(text, sizeof text, "{\n  \"deployment\": \"%s\"\n}\n", deployment);
    return kedge_file_write(path, kedge_view_str(text), 0600, d);
}

static int put_moment(const struct kedge_snapshot *s, const char *state, const char *out, bool update_keys,
                      struct kedge_diag *d)
{
    struct kedge_tree tree;
    const struct kedge_id *tenants;
    size_t count = kedge_snapshot_tenants(s, &tenants);
    KEDGE_TRY(kedgei_make_blob_folders(out, tenants, count, d));
    KEDGE_TRY(kedge_snapshot_put_stores(s, out, false, true, d));
    int err = kedge_backup_put_blobs(state, s, out, d);
    err = err || !update_keys ? err : kedgei_copy_update_keys(state, out, d);
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_tree_list(out, NULL, NULL, &tree, d));
    err = kedgei_drop_locks(out, &tree, d);
    kedge_tree_deinit(&tree);
    return err;
}

int kedge_state_pack(const char *state, const char *out, bool update_keys, struct kedge_diag *reterr)
{
    struct kedge_snapshot *s;
    KEDGE_TRY(write_config(state, out, reterr));
    KEDGE_TRY(kedgei_copy_tree(state, out, is_for_auditors, reterr));
    KEDGE_TRY(kedge_snapshot_take(state, &s, reterr));
    int err = put_moment(s, state, out, update_keys, reterr);
    kedge_snapshot_free(s);
    return err;
}
