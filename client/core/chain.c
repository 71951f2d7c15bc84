#include "client/core/chain.h"

#include <string.h>

enum kedge_site_chain_verdict kedge_site_chain_judge(const struct kedge_site_chain *seen, uint64_t asked_size,
                                                     const struct kedge_site_chain *shown, bool breaks)
{
    KEDGE_ASSERT(asked_size <= seen->size);
    if (shown->size == 0) {
        return KEDGE_SITE_CHAIN_MISSING;
    }
    if (shown->size == seen->size) {
        bool same = memcmp(shown->root.b, seen->root.b, sizeof seen->root.b) == 0;
        return same ? KEDGE_SITE_CHAIN_SAME : KEDGE_SITE_CHAIN_FORK;
    }
    if (breaks && shown->size >= asked_size) {
        return KEDGE_SITE_CHAIN_FORK;
    }
    if (shown->size > seen->size) {
        return asked_size == seen->size ? KEDGE_SITE_CHAIN_NEWER : KEDGE_SITE_CHAIN_LATE;
    }
    return shown->size >= asked_size ? KEDGE_SITE_CHAIN_LATE : KEDGE_SITE_CHAIN_SHORTER;
}
