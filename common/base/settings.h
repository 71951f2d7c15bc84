/* The keys of the settings files that people write: what the daemons read and `kedge doctor` checks, one
 * table for both. Values other than whole numbers are their readers' affair. Pure. */
#ifndef KEDGE_COMMON_BASE_SETTINGS_H
#define KEDGE_COMMON_BASE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/diag.h"

struct kedge_setting {
    const char *key; /* NULL: the end of the table */
    bool is_number;  /* a whole number within the range below */
    uint64_t least, most, fallback;
};

extern const struct kedge_setting kedge_settings_coordinator[]; /* STATE/config.json of kedge-coordinator */
extern const struct kedge_setting kedge_settings_policy[];      /* SITE/policy.json of kedge-client */
extern const struct kedge_setting kedge_settings_site[]; /* SITE/site.json, which kedge-client writes */

/* The row of a key; NULL: no such key. */
const struct kedge_setting *kedge_setting_find(const struct kedge_setting *table, const char *key);

/* Says that `where` has a key that is no row, and which row comes near. Returns KEDGE_E_FORMAT. */
int kedge_setting_unknown(const char *where, const struct kedge_setting *table, const char *key,
                          struct kedge_diag *reterr);

#endif
