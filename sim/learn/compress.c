/* What sites send of their updates when these are compressed, and what they keep of it for the next ones. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/compute.h"
#include "sim/learn/engine.h"

uint64_t kedgei_learn_update_bytes(const struct kedgei_learn *l)
{
    return kedge_compact_len_most(&l->spec->job.compression, l->shared);
}

static int site_memory(struct kedgei_learn *l, struct kedgei_learn_site *s)
{
    l->whole = l->whole ? l->whole : kedge_mem_new(l->d, sizeof *l->whole);
    s->left = s->left ? s->left : kedge_mem_new(l->d, sizeof *s->left);
    return l->whole && s->left
               ? KEDGE_OK
               : kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for what compression leaves");
}

int kedgei_learn_compact(const struct kedgei_learn *l, int32_t *io, const struct kedge_sink *sink,
                         uint64_t *ret_len)
{
    const struct kedge_compact *c = &l->job.compression;
    const uint64_t n = l->shared;
    uint8_t block[KEDGE_COMPACT_BLOCK_BYTES_MAX];
    struct kedge_compact_plan plan;
    uint64_t sent = KEDGE_COMPACT_HEAD;
    KEDGE_TRY(kedge_compact_plan(c, io, (size_t)n, &plan));
    if (sink) {
        kedge_compact_head_write(c->kind, n, block);
        KEDGE_TRY(sink->write(sink->arg, kedge_view_of(block, KEDGE_COMPACT_HEAD)));
    }
    for (uint64_t i = 0; i < n; i += KEDGE_COMPACT_BLOCK) {
        const uint64_t some = n - i < KEDGE_COMPACT_BLOCK ? n - i : KEDGE_COMPACT_BLOCK;
        const size_t len = kedge_compact_block_write(&plan, io + i, (size_t)some, l->limit, block);
        if (sink) {
            KEDGE_TRY(sink->write(sink->arg, kedge_view_of(block, len)));
        }
        sent += len;
    }
    *ret_len = sent;
    return KEDGE_OK;
}

void kedgei_learn_add_left(const struct kedgei_learn *l, uint32_t site, uint32_t group, int32_t *io)
{
    const struct kedgei_learn_site *s = &l->sites[site];
    if (s->left && s->left_group == group) {
        kedge_compact_add(&l->job.compression, s->left, (size_t)l->shared, io);
    }
}

/* The item's update becomes what is sent, and the site keeps the rest. */
static int send(struct kedgei_learn *l, uint32_t item, uint64_t *ret_len)
{
    struct kedgei_learn_site *s = &l->sites[l->items[item].site];
    int32_t *q = kedgei_learn_vector(l, item, 0);
    KEDGE_TRY(site_memory(l, s));
    kedgei_learn_add_left(l, l->items[item].site, s->group, q);
    memcpy(l->whole, q, l->d * sizeof *q);
    KEDGE_TRY(kedgei_learn_compact(l, q, NULL, ret_len));
    for (uint64_t i = 0; i < l->shared; i++) {
        s->left[i] = q[i];
        q[i] = l->whole[i] - q[i];
    }
    s->left_group = s->group;
    return KEDGE_OK;
}

int kedgei_learn_compress(struct kedgei_learn *l)
{
    int err = KEDGE_OK;
    if (l->job.compression.kind == KEDGE_COMPACT_NONE) {
        return KEDGE_OK;
    }
    for (uint32_t i = 0; i < l->items_count && !err; i++) {
        uint64_t len = 0;
        if (kedgei_learn_result(l, i)->err) {
            continue; /* no update: what is left stays left */
        }
        err = send(l, i, &len);
        if (l->items[i].site != l->n) { /* the root's bytes are not counted */
            l->line.bytes_up = l->line.bytes_up - l->shared * 4 + len;
        }
    }
    return err;
}
