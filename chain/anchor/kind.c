/* The kinds that there are, and where their files lie. */
#include "chain/anchor/kind.h"

#include <stdio.h>

static const struct kedge_anchor_kind *const kinds[] = {
#define KEDGE_ANCHOR_KIND(name) &kedge_anchor_##name,
#include "chain/anchor/kinds.def"
#undef KEDGE_ANCHOR_KIND
};

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

void kedge_trust_anchors_deinit(struct kedge_trust_anchors *trust)
{
    const struct kedge_anchor_kind *kind;
    for (size_t i = 0; (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        if (kind->trust_free) {
            kind->trust_free(trust);
        }
    }
}
