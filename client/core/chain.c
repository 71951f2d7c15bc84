/* The verdict on a main chain that an answer shows; chain.h says what is demanded and why. The order of the
 * tests matters. The same size is decided by the root alone: no proof can excuse a second root. Then a proof
 * that breaks, which is evidence of a fork only if what is shown is at least as large as what the site had
 * seen when it asked. Only then sizes: larger is believed if the proof was made from what is seen now,
 * smaller is a cut unless the answer was merely overtaken. */
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
