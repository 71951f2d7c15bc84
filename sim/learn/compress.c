/* What sites send of their updates when these are compressed, and what they keep of it for the next ones. */
#include <string.h>

#include "aggregation/quantise.h"
#include "common/base/mem.h"
#include "sim/learn/engine.h"

uint64_t kedgei_learn_update_bytes(const struct kedgei_learn *l)
{
    return kedge_compact_len_most(&l->spec->job.compression, l->d);
}

static int site_memory(struct kedgei_learn *l, struct kedgei_learn_site *s)
{
    l->whole = l->whole ? l->whole : kedge_mem_new(l->d, sizeof *l->whole);
    s->left = s->left ? s->left : kedge_mem_new(l->d, sizeof *s->left);
    return l->whole && s->left
               ? KEDGE_OK
               : kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for what compression leaves");
}

/* q becomes what is sent, and the site keeps the rest. What an update to another group's model has left is of
 * no use here. */
static int send(struct kedgei_learn *l, const struct kedge_compact *c, int32_t limit, uint32_t item,
                uint64_t *ret_len)
{
    struct kedgei_learn_site *s = &l->sites[l->items[item].site];
    int32_t *q = kedgei_learn_vector(l, item, 0);
    uint8_t block[KEDGE_COMPACT_BLOCK_BYTES_MAX];
    struct kedge_compact_plan plan;
    uint64_t len = KEDGE_COMPACT_HEAD;
    int err = site_memory(l, s);
    if (err) {
        return err;
    }
    if (s->left_group == s->group) {
        kedge_compact_add(c, s->left, l->d, q);
    }
    memcpy(l->whole, q, l->d * sizeof *q);
    err = kedge_compact_plan(c, q, l->d, &plan);
    for (uint64_t i = 0; i < l->d && !err; i += KEDGE_COMPACT_BLOCK) {
        uint64_t n = l->d - i < KEDGE_COMPACT_BLOCK ? l->d - i : KEDGE_COMPACT_BLOCK;
        len += kedge_compact_block_write(&plan, q + i, (size_t)n, limit, block);
    }
    for (uint64_t i = 0; i < l->d && !err; i++) {
        s->left[i] = q[i];
        q[i] = l->whole[i] - q[i];
    }
    s->left_group = s->group;
    *ret_len = len;
    return err;
}

int kedgei_learn_compress(struct kedgei_learn *l)
{
    const struct kedge_compact *c = &l->spec->job.compression;
    int32_t limit = 0;
    if (c->kind == KEDGE_COMPACT_NONE) {
        return KEDGE_OK;
    }
    int err = kedge_scale_limit(l->spec->job.bound, l->spec->job.scale, &limit);
    for (uint32_t i = 0; i < l->items_count && !err; i++) {
        uint64_t len = 0;
        if (kedgei_learn_result(l, i)->err) {
            continue; /* no update: what is left stays left */
        }
        err = send(l, c, limit, i, &len);
        if (l->items[i].site != l->n) { /* the root's bytes are not counted */
            l->line.bytes_up = l->line.bytes_up - l->d * 4 + len;
        }
    }
    return err;
}
