/* What people's trust files say of anchors, where it is not what it must be. */
#include <string.h>

#include "chain/anchor/kind.h"
#include "common/base/nearest.h"

int kedgei_trust_bad(struct kedge_diag *d, const char *field, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "anchors: %s: expected %s", field, expected);
}

int kedgei_trust_check_keys(const json_t *object, const char *const *allowed, const char *what,
                            struct kedge_diag *d)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        size_t i = 0;
        while (allowed[i] && strcmp(allowed[i], key) != 0) {
            i++;
        }
        if (!allowed[i]) {
            (void)kedge_diag_set(d, KEDGE_E_FORMAT, "%s: unknown key \"%.60s\"", what, key);
            kedge_nearest_hint(d, key, allowed, i, "docs/record.md lists the keys of a trust file");
            return KEDGE_E_FORMAT;
        }
    }
    return KEDGE_OK;
}
