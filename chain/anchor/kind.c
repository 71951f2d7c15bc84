/* The kinds that there are. Answers and reports list them in this order; sentences go the other way, so that
 * what needs nobody's further word comes first. */
#include "chain/anchor/kind.h"

#include <stdio.h>
#include <string.h>

#include "common/base/nearest.h"

static const struct kedge_anchor_kind *const kinds[] = {&kedge_anchor_evm, &kedge_anchor_tsa};

const struct kedge_anchor_kind *kedge_anchor_kind_at(size_t i)
{
    return i < sizeof kinds / sizeof kinds[0] ? kinds[i] : NULL;
}

size_t kedge_anchor_kind_count(void)
{
    size_t count = 0;
    while (count < KEDGE_ANCHOR_KINDS_MAX && kedge_anchor_kind_at(count)) {
        count++;
    }
    return count;
}

void kedge_anchor_name(const struct kedge_anchor_kind *kind, uint64_t number, char out[KEDGE_ANCHOR_NAME_MAX])
{
    snprintf(out, KEDGE_ANCHOR_NAME_MAX, "anchors/%s/%llu%s", kind->name, (unsigned long long)number,
             kind->suffix);
}

void kedge_anchor_note_name(const struct kedge_anchor_kind *kind, uint64_t number,
                            char out[KEDGE_ANCHOR_NAME_MAX])
{
    snprintf(out, KEDGE_ANCHOR_NAME_MAX, "anchors/%s/%llu%s", kind->name, (unsigned long long)number,
             kind->note_suffix);
}
