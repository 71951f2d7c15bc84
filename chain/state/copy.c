/* The folder of a tenant that follows a coordinator: laid out as a state folder, but without the keys that
 * could sign, so that the programs which read a state folder read a copy, too. It must never be made in a
 * coordinator's own folder: replicas are extended with what another party sent.
 *
 * The deployment and the tenant's salt are fixed by the first run. A coordinator that tells another salt
 * later would make the tenant's entries of the main chain unrecognisable, so the copy refuses it. */
#include "chain/state/copy.h"

#include <stdio.h>
#include <string.h>

#include "chain/store/replica.h"

static int make_dir(const char *dir, const char *name, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, d, dir, "%s", name);
    return err ? err : kedge_dir_make(path, 0700, d);
}

int kedge_state_copy_create(const char *dir, const char *deployment, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], text[KEDGE_DEPLOYMENT_MAX + 64], known[KEDGE_DEPLOYMENT_MAX + 1];
    int err = kedge_state_path(path, reterr, dir, "keys/statement.pem");
    if (!err && kedge_file_exists(path)) {
        return kedge_diag_set(reterr, KEDGE_E_STATE,
                              "%s is a coordinator's state folder; copies need one of their own", dir);
    }
    err = err ? err : kedge_state_path(path, reterr, dir, "config.json");
    err = err ? err : make_dir(dir, ".", reterr);
    err = err ? err : make_dir(dir, "main", reterr);
    err = err ? err : make_dir(dir, "tenants", reterr);
    if (!err && kedge_file_exists(path)) {
        err = kedge_state_deployment(dir, known, reterr);
        return err ? err
               : strcmp(known, deployment) == 0
                   ? KEDGE_OK
                   : kedge_diag_set(reterr, KEDGE_E_STATE, "%s has copies of %s, not of %s", dir, known,
                                    deployment);
    }
    snprintf(text, sizeof text,
             "{\n  \"deployment\": \"%s\",\n  \"encrypt_blobs\": true,\n  \"pack_blobs\": true\n}\n",
             deployment);
    return err ? err : kedge_file_write(path, kedge_view_str(text), 0600, reterr);
}

int kedge_state_copy_tenant(const char *dir, const struct kedge_id *tenant,
                            const uint8_t salt[KEDGE_SALT_LEN], struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], hex[2 * KEDGE_SALT_LEN + 1], text[512];
    struct kedge_buf known;
    kedge_hex_encode(salt, KEDGE_SALT_LEN, hex);
    snprintf(text, sizeof text, "{\n  \"tenant\": \"%s\",\n  \"salt\": \"%s\"\n}\n", tenant->s, hex);
    snprintf(path, sizeof path, "tenants/%s", tenant->s);
    int err = make_dir(dir, path, reterr);
    err = err ? err : kedge_state_path(path, reterr, dir, "tenants/%s/tenant.json", tenant->s);
    if (err || !kedge_file_exists(path)) {
        return err ? err : kedge_file_write(path, kedge_view_str(text), 0600, reterr);
    }
    kedge_buf_init(&known, sizeof text);
    err = kedge_file_read(path, &known, reterr);
    if (!err && !kedge_view_eq(kedge_buf_view(&known), kedge_view_str(text))) {
        err = kedge_diag_set(reterr, KEDGE_E_STATE, "%s: the coordinator now tells another salt of tenant %s",
                             path, tenant->s);
    }
    kedge_buf_deinit(&known);
    return err;
}

int kedge_state_copy_open(const char *dir, const struct kedge_id *tenant,
                          const struct kedge_public_key *log_key, struct kedge_state_log *ret,
                          struct kedge_diag *reterr)
{
    struct kedge_blobs_options blobs = {.read_only = false};
    char keys[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX], folder[KEDGE_ID_MAX + 16],
        deployment[KEDGE_DEPLOYMENT_MAX + 1];
    struct kedge_kv_lmdb_options kv = {.create = true};
    struct kedge_state_log log = {.kv = NULL};
    int err = kedge_state_deployment(dir, deployment, reterr);
    if (err) {
        return err;
    }
    log.tenant = tenant ? *tenant : log.tenant;
    snprintf(folder, sizeof folder, "%s%s", tenant ? "tenants/" : "main", tenant ? tenant->s : "");
    snprintf(log.origin, sizeof log.origin, "%s/%s", deployment, tenant ? tenant->s : "main");
    err = kedge_state_path(path, reterr, dir, "%s/ledger.lmdb", folder);
    err = err ? err : kedge_kv_lmdb_open(path, &kv, &log.kv, reterr);
    err = err ? err : kedge_replica_open(log.kv, log.origin, log_key, true, &log.ledger, reterr);
    err = err ? err : kedge_state_path(path, reterr, dir, "%s", folder);
    err = err ? err : kedge_state_blob_options(dir, tenant, keys, &blobs, reterr);
    err = err ? err : kedge_blobs_open(path, &blobs, &log.blobs, reterr);
    if (err) {
        kedge_state_log_close(&log);
        return kedge_diag_wrap(reterr, err, "copy of log %s", log.origin);
    }
    *ret = log;
    return KEDGE_OK;
}
