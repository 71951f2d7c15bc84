/* Updates of a job that compresses them, as kedge-client makes them: what earlier ones have left is added,
 * what is not sent is kept until the update counts (client/daemon/update/kept.h). */
#include <string.h>

#include "common/base/mem.h"
#include "sim/protocol/impl.h"

static uint32_t group_of(const struct kedgei_work *work)
{
    return work->choice_count > 0 ? work->choice : work->group;
}

/* What is to be sent, in left->next. */
static int add_left(struct kedgei_protocol *p, const struct kedgei_work *work, const int32_t *values)
{
    const size_t n = (size_t)p->layout.values_count;
    struct kedgei_left *left = &p->lefts[work->site];
    left->next = left->next ? left->next : kedge_mem_new(n, sizeof *left->next);
    if (!left->next) {
        return KEDGE_E_NOMEM;
    }
    memcpy(left->next, values, n * sizeof *values);
    if (left->own && left->own_group == group_of(work)) {
        kedge_compact_add(&p->job.compression, left->own, n, left->next);
    }
    return KEDGE_OK;
}

int kedgei_protocol_compact(struct kedgei_protocol *p, struct kedgei_work *work, const int32_t *values,
                            struct kedge_sink sink)
{
    const struct kedge_compact *c = &p->job.compression;
    const uint64_t n = p->layout.values_count;
    struct kedgei_left *left = &p->lefts[work->site];
    uint8_t block[KEDGE_COMPACT_BLOCK_BYTES_MAX];
    struct kedge_compact_plan plan;
    int err = add_left(p, work, values);
    err = err ? err : kedge_compact_plan(c, left->next, (size_t)n, &plan);
    kedge_compact_head_write(c->kind, n, block);
    err = err ? err : sink.write(sink.arg, kedge_view_of(block, KEDGE_COMPACT_HEAD));
    work->len = KEDGE_COMPACT_HEAD;
    for (uint64_t i = 0; i < n && !err; i += KEDGE_COMPACT_BLOCK) {
        const uint64_t some = n - i < KEDGE_COMPACT_BLOCK ? n - i : KEDGE_COMPACT_BLOCK;
        const size_t len = kedge_compact_block_write(&plan, left->next + i, (size_t)some, p->limit, block);
        err = sink.write(sink.arg, kedge_view_of(block, len));
        work->len += len;
    }
    left->next_group = group_of(work);
    return err;
}

void kedgei_protocol_left_settle(struct kedgei_protocol *p, const struct kedgei_update *u)
{
    struct kedgei_left *left = p->lefts ? &p->lefts[u->site] : NULL;
    if (left && left->next && sim_same(&left->by, &u->digest)) {
        int32_t *former = left->own;
        left->own = left->next;
        left->own_group = left->next_group;
        left->next = former;
        left->by = (struct kedge_digest){{0}};
    }
}

void kedgei_protocol_lefts_free(struct kedgei_protocol *p)
{
    for (uint32_t i = 0; p->lefts && i < p->sites; i++) {
        kedge_mem_free(p->lefts[i].own);
        kedge_mem_free(p->lefts[i].next);
    }
    kedge_mem_free(p->lefts);
}
