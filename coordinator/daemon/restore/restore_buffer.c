#include "coordinator/daemon/restore/restore_buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/members.h"
#include "coordinator/daemon/restore/restore_groups.h"

/* Reads the statement of that key of the main chain into w->st. */
static int read_main(struct kedge_walk *w, enum kedge_statement_kind kind, uint32_t round, const char *behind)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t index;
    snprintf(key, sizeof key, "%s/%s/%08" PRIu32 "%s", kedge_statement_kind_name(kind), w->job->spec.name.s,
             round, behind);
    int err = kedge_ledger_find(w->h->main.ledger, kedge_view_str(key), &index);
    err = err == KEDGE_E_NOT_FOUND ? kedge_diag_set(w->d, KEDGE_E_CORRUPT, "the main chain has no %s", key)
                                   : err;
    return err ? err : kedge_walk_read(w, w->h->main.ledger, index, kind);
}

int kedge_restore_models(struct kedge_walk *w, uint32_t last)
{
    uint32_t kept = w->job->params.staleness_max, from = last > kept ? last - kept : 1;
    int err = KEDGE_OK;
    for (uint32_t r = from; w->job->params.buffer > 0 && r < last && !err; r++) {
        struct kedge_digest model;
        struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_ROUND,
                                       .job = w->job->slot,
                                       .round = r,
                                       .kind = KEDGE_TASK_TRAIN,
                                       .closed = true,
                                       .model_count = 1,
                                       .models = &model};
        err = read_main(w, KEDGE_ST_STEP, r, "");
        if (!err) {
            memcpy(model.b, w->st->u.step.groups[0].after.b, sizeof model.b);
            kedge_host_step(w->h, &ev);
        }
    }
    return err;
}

/* Of the close: whoever stands in a list of it has done with its task. */
static int row_settled(struct kedge_walk *w, uint32_t site, const struct kedge_input_row *row)
{
    (void)row;
    w->settled[site] = true;
    return KEDGE_OK;
}

static int row_at_work(struct kedge_walk *w, uint32_t site, const struct kedge_input_row *row)
{
    struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_ROW,
                                   .job = w->job->slot,
                                   .site = site,
                                   .round = row->round > 0 ? row->round : w->job->round,
                                   .selected = true};
    if (row->use != KEDGE_USE_CANDIDATE && !w->settled[site]) {
        kedge_host_step(w->h, &ev);
    }
    return KEDGE_OK;
}

int kedge_restore_at_work(struct kedge_walk *w, const struct kedge_st_round_opened *opened)
{
    struct kedge_st_aggregate *a = kedge_mem_new(1, sizeof *a);
    w->settled = kedge_mem_new(KEDGE_SITES_MAX, sizeof *w->settled);
    int err = a && w->settled ? read_main(w, KEDGE_ST_AGGREGATE, opened->round, "/00") : KEDGE_E_NOMEM;
    if (!err) {
        *a = w->st->u.aggregate;
    }
    for (uint32_t i = 0; !err && i < a->tenant_count; i++) {
        err = kedge_restore_rows(w, &a->tenants[i].id, &a->tenants[i].list, row_settled);
    }
    for (uint32_t i = 0; !err && i < opened->tenant_count; i++) {
        err = kedge_restore_rows(w, &opened->tenants[i].id, &opened->tenants[i].list, row_at_work);
    }
    kedge_mem_free(w->settled);
    w->settled = NULL;
    kedge_mem_free(a);
    return err;
}

static int of_task(struct kedge_walk *w, uint64_t index)
{
    const struct kedge_st_update *u = &w->st->u.update;
    uint32_t site = kedge_host_site_find(w->h, w->tenant, &u->site);
    const struct kedge_coord_row *row =
        site == KEDGE_COORD_NONE ? NULL : kedge_coord_row(w->h->coord, w->job->slot, site);
    bool is_open = row && row->selected && row->task_round == u->round;
    return is_open ? w->each_open(w, index) : KEDGE_OK;
}

int kedge_restore_updates(struct kedge_walk *w, uint32_t open, kedge_walk_each *each)
{
    uint32_t kept = w->job->params.buffer > 0 ? w->job->params.staleness_max : 0;
    int err = KEDGE_OK;
    w->each_open = each;
    for (uint32_t r = open > kept ? open - kept : 1; kept > 0 && r < open && !err; r++) {
        err = kedge_walk_tenants(w, KEDGE_ST_UPDATE, r, of_task);
    }
    return err ? err
               : kedge_walk_tenants(w, KEDGE_ST_UPDATE, open, w->job->params.buffer > 0 ? of_task : each);
}
