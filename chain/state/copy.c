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
#include "common/base/try.h"

static int make_dir(const char *dir, const char *name, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, d, dir, "%s", name);
    return err ? err : kedge_dir_make(path, 0700, d);
}

int kedge_state_copy_create(const char *dir, const char *deployment, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], text[KEDGE_DEPLOYMENT_MAX + 64], known[KEDGE_DEPLOYMENT_MAX + 1];
    KEDGE_TRY(kedge_state_path(path, reterr, dir, "keys/statement.pem"));
    if (kedge_file_exists(path)) {
        return kedge_diag_set(reterr, KEDGE_E_STATE,
                              "%s is a coordinator's state folder; copies need one of their own", dir);
    }
    KEDGE_TRY(kedge_state_path(path, reterr, dir, "config.json"));
    KEDGE_TRY(make_dir(dir, ".", reterr));
    KEDGE_TRY(make_dir(dir, "main", reterr));
    KEDGE_TRY(make_dir(dir, "tenants", reterr));
    if (kedge_file_exists(path)) {
        KEDGE_TRY(kedge_state_deployment(dir, known, reterr));
        return strcmp(known, deployment) == 0
                   ? KEDGE_OK
                   : kedge_diag_set(reterr, KEDGE_E_STATE, "%s has copies of %s, not of %s", dir, known,
                                    deployment);
    }
    snprintf(text, sizeof text,
             "{\n  \"deployment\": \"%s\",\n  \"encrypt_blobs\": true,\n  \"pack_blobs\": true\n}\n",
             deployment);
    return kedge_file_write(path, kedge_view_str(text), 0600, reterr);
}

int kedge_state_copy_tenant(const char *dir, const struct kedge_id *tenant,
                            const uint8_t salt[KEDGE_SALT_LEN], struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], hex[2 * KEDGE_SALT_LEN + 1], text[512];
    struct kedge_buf known KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&known, sizeof text);
    kedge_hex_encode(salt, KEDGE_SALT_LEN, hex);
    snprintf(text, sizeof text, "{\n  \"tenant\": \"%s\",\n  \"salt\": \"%s\"\n}\n", tenant->s, hex);
    snprintf(path, sizeof path, "tenants/%s", tenant->s);
    KEDGE_TRY(make_dir(dir, path, reterr));
    KEDGE_TRY(kedge_state_path(path, reterr, dir, "tenants/%s/tenant.json", tenant->s));
    if (!kedge_file_exists(path)) {
        return kedge_file_write(path, kedge_view_str(text), 0600, reterr);
    }
    KEDGE_TRY(kedge_file_read(path, &known, reterr));
    return kedge_view_eq(kedge_buf_view(&known), kedge_view_str(text))
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_STATE,
                                "%s: the coordinator now tells another salt of tenant %s", path, tenant->s);
}

static int open_stores(const char *dir, const struct kedge_id *tenant, const struct kedge_public_key *log_key,
                       struct kedge_state_log *log, struct kedge_diag *reterr)
{
    struct kedge_blobs_options blobs = {.read_only = false};
    struct kedge_kv_lmdb_options kv = {.create = true};
    char keys[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX], folder[KEDGE_ID_MAX + 16];
    snprintf(folder, sizeof folder, "%s%s", tenant ? "tenants/" : "main", tenant ? tenant->s : "");
    KEDGE_TRY(kedge_state_path(path, reterr, dir, "%s/ledger.lmdb", folder));
    KEDGE_TRY(kedge_kv_lmdb_open(path, &kv, &log->kv, reterr));
    KEDGE_TRY(kedge_replica_open(log->kv, log->origin, log_key, true, &log->ledger, reterr));
    KEDGE_TRY(kedge_state_path(path, reterr, dir, "%s", folder));
    KEDGE_TRY(kedge_state_blob_options(dir, tenant, keys, &blobs, reterr));
    return kedge_blobs_open(path, &blobs, &log->blobs, reterr);
}

int kedge_state_copy_open(const char *dir, const struct kedge_id *tenant,
                          const struct kedge_public_key *log_key, struct kedge_state_log *ret,
                          struct kedge_diag *reterr)
{
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    struct kedge_state_log log = {.kv = NULL};
    KEDGE_TRY(kedge_state_deployment(dir, deployment, reterr));
    log.tenant = tenant ? *tenant : log.tenant;
    snprintf(log.origin, sizeof log.origin, "%s/%s", deployment, tenant ? tenant->s : "main");
    int err = open_stores(dir, tenant, log_key, &log, reterr);
    if (err) {
        kedge_state_log_close(&log);
        return kedge_diag_wrap(reterr, err, "copy of log %s", log.origin);
    }
    *ret = log;
    return KEDGE_OK;
}
