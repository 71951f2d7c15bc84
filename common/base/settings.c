/* Keys of the configuration files, with ranges and defaults. One table is read by the parsers and
 * by `doctor`, so what the one takes and what the other says of it cannot differ. */
#include "common/base/settings.h"

#include <stddef.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/nearest.h"

enum { KEYS_MAX = 64 };

const struct kedge_setting kedge_settings_coordinator[] = {
    {"deployment", false, 0, 0, 0},
    {"listen", false, 0, 0, 0},
    {"operators", false, 0, 0, 0},
    {"insecure", false, 0, 0, 0},
    {"witness_strict", false, 0, 0, 0},
    {"encrypt_blobs", false, 0, 0, 0},
    {"pack_blobs", false, 0, 0, 0},
    {"workers", true, 0, 16, 0},
    {"close_threads", true, 0, 16, 0},
    {"lease_ms", true, KEDGE_LEASE_MIN_MS, 3600000, 15000},
    {"offline_grace_ms", true, 100, 3600000, 5000},
    {"settle_ms", true, 0, 3600000, 1000},
    {"https_listen", false, 0, 0, 0},
    {"https_certificate", false, 0, 0, 0},
    {"https_key", false, 0, 0, 0},
    {"https_connections", true, 8, 4096, 256},
    {"events", false, 0, 0, 0},
    {"events_folder", false, 0, 0, 0},
    {"events_listen", false, 0, 0, 0},
    {"events_tenants", false, 0, 0, 0},
    {"deadline_guard_s", true, 0, 31536000, 86400},
    {"target_weight", true, 1, 1000, 4},
    {"share_floor_percent", true, 0, 100, 50},
    {"refused_days", true, 0, 3650, 30},
    {"refused_mb", true, 0, 1000000, 1000},
    {NULL, false, 0, 0, 0},
};

const struct kedge_setting kedge_settings_policy[] = {
    {"jobs", false, 0, 0, 0},
    {"data", false, 0, 0, 0},
    {"trainer", false, 0, 0, 0},
    {"trainers", false, 0, 0, 0},
    {"model_bytes_max", true, 1, INT64_MAX, (uint64_t)2 << 30},
    {"threads", true, 0, 256, 1},
    {"train_seconds_max", true, 0, 604800, 3600},
    {"trainer_idle_seconds", true, 0, 604800, 300},
    {"memory_max", true, 0, INT64_MAX, 0},
    {"memory_all", true, 0, INT64_MAX, 0},
    {"jobs_at_once", true, 1, 4, 1},
    {"gpu_at_once", true, 1, 4, 1},
    {"witness_age_max_s", true, 0, INT64_MAX / 2, 86400},
    {"insecure", false, 0, 0, 0},
    {"energy", false, 0, 0, 0},
    {"tell", false, 0, 0, 0},
    {"stop_seconds", true, 0, 3600, 10},
    {"proxy", false, 0, 0, 0},
    {"proxy_login_file", false, 0, 0, 0},
    {"idle", false, 0, 0, 0},
    {"device", false, 0, 0, 0},
    {"precision", false, 0, 0, 0},
    {NULL, false, 0, 0, 0},
};

const struct kedge_setting kedge_settings_site[] = {
    {"tenant", false, 0, 0, 0},     {"site", false, 0, 0, 0},         {"server", false, 0, 0, 0},
    {"server_key", false, 0, 0, 0}, {"token_secret", false, 0, 0, 0}, {NULL, false, 0, 0, 0},
};

const struct kedge_setting *kedge_setting_find(const struct kedge_setting *table, const char *key)
{
    for (const struct kedge_setting *row = table; row->key; row++) {
        if (strcmp(row->key, key) == 0) {
            return row;
        }
    }
    return NULL;
}

int kedge_setting_unknown(const char *where, const struct kedge_setting *table, const char *key,
                          struct kedge_diag *reterr)
{
    const char *keys[KEYS_MAX];
    size_t count = 0;
    for (; table[count].key && count < KEYS_MAX; count++) {
        keys[count] = table[count].key;
    }
    (void)kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: unknown key \"%.60s\"", where, key);
    kedge_nearest_hint(reterr, key, keys, count, "");
    return KEDGE_E_FORMAT;
}
