/* Under which key a ledger of the simulated world holds a statement: that of the product's own ledgers, so
 * that two statements that share one there share it here. */
#include "chain/statement/entry_index.h"
#include "sim/world.h"

enum { KEY_MAX = 200 }; /* as in chain/store/ledger.h */

enum kedge_group_how sim_how_of(const struct sim *w, const struct sim_entry *e)
{
    const struct sim_main *closed = sim_main_find(w, SIM_ROUND_CLOSED, e->job, e->round);
    return e->why == KEDGE_WHY_NEWCOMER                          ? KEDGE_GROUP_NEWCOMER
           : e->why == KEDGE_WHY_MIGRATION                       ? KEDGE_GROUP_MIGRATION
           : e->why == KEDGE_WHY_NEAREST                         ? KEDGE_GROUP_NEAREST
           : e->round == 0                                       ? KEDGE_GROUP_COLD_START
           : closed && closed->model_count > closed->group_count ? KEDGE_GROUP_SPLIT
           : closed && closed->model_count < closed->group_count ? KEDGE_GROUP_MERGE
                                                                 : KEDGE_GROUP_RECLUSTER;
}

static void put_key(const struct sim *w, const struct sim_entry *e, struct kedge_buf *out)
{
    struct kedge_id site, job = w->jobs[e->type == SIM_REVOKED ? 0 : e->job].params.id;
    sim_site_id(w, e->site == SIM_NONE ? 0 : e->site, &site);
    switch (e->type) {
    case SIM_JOINED: {
        const struct kedge_st_job_joined body = {.job = job};
        kedge_statement_key(KEDGE_ST_JOB_JOINED, &body, out);
        return;
    }
    case SIM_REVOKED: {
        const struct kedge_st_site_revoked body = {.site = site};
        kedge_statement_key(KEDGE_ST_SITE_REVOKED, &body, out);
        return;
    }
    case SIM_UPDATE: {
        struct kedge_st_update body = {.job = job, .site = site, .round = e->round};
        body.update_kind = e->kind == KEDGE_TASK_PRETRAIN ? KEDGE_TRAIN_PRETRAIN : KEDGE_TRAIN_TRAIN;
        kedge_statement_key(KEDGE_ST_UPDATE, &body, out);
        return;
    }
    case SIM_EVALUATION: {
        const struct kedge_st_evaluation body = {.job = job, .site = site, .round = e->round};
        kedge_statement_key(KEDGE_ST_EVALUATION, &body, out);
        return;
    }
    case SIM_ASSIGNED: {
        struct kedge_st_group_assigned body = {.job = job, .site = site, .round = e->round};
        body.how = sim_how_of(w, e);
        kedge_statement_key(KEDGE_ST_GROUP_ASSIGNED, &body, out);
        return;
    }
    }
}

uint64_t sim_key_of(const struct sim *w, const struct sim_entry *e)
{
    struct kedge_buf key;
    kedge_buf_init(&key, KEY_MAX);
    put_key(w, e, &key);
    KEDGE_ASSERT(key.len > 0 && !key.err); /* a statement without a key could be appended twice */
    uint64_t h = sim_hash(SIM_HASH_START, key.ptr, key.len);
    kedge_buf_deinit(&key);
    return h;
}

static bool is_like(const struct sim_entry *a, const struct sim_entry *b)
{
    return a->type == b->type && a->site == b->site && (a->type == SIM_REVOKED || a->job == b->job);
}

const struct sim_entry *sim_ledger_find(const struct sim *w, uint32_t tenant, const struct sim_entry *like,
                                        uint32_t *ret_leaf)
{
    const struct sim_ledger *l = &w->ledgers[tenant];
    uint32_t at;
    if (!sim_index_find(&l->index, sim_key_of(w, like), &at)) {
        return NULL;
    }
    KEDGE_ASSERT(is_like(&l->entries[at], like)); /* two keys with one hash */
    *ret_leaf = at;
    return &l->entries[at];
}
