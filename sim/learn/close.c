/* A round's close, by what closes the rounds of jobs (round/close): facts go in as this engine's items and
 * vectors, decisions come back as models, groups and what the next round begins with. */
#include <stdlib.h>
#include <string.h>

#include "aggregation/quantise.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/part.h"
#include "round/close/params.h"
#include "sim/learn/close.h"

/* ---- vectors ---- */

static struct kedge_blob_at at_values(const void *values)
{
    return (struct kedge_blob_at){.path = "a vector of the simulation", .values = values};
}

static int vector_of(void *arg, const struct kedge_hash *name, char path[KEDGE_PATH_MAX],
                     struct kedge_blob_at *ret_at)
{
    const struct kedgei_learn *l = arg;
    (void)path;
    *ret_at = at_values(kedgei_vectors_find(&l->vectors, name));
    return ret_at->values ? KEDGE_OK : KEDGE_E_NOT_FOUND;
}

/* One that was lent, or the pre-training that the site has its group by. */
static int update_of(void *arg, uint32_t site, const struct kedge_hash *name, char path[KEDGE_PATH_MAX],
                     struct kedge_blob_at *ret_at)
{
    const struct kedgei_learn *l = arg;
    const void *lent = kedgei_vectors_find(&l->vectors, name);
    (void)path;
    *ret_at = at_values(lent ? lent : l->sites[site].pretraining);
    return ret_at->values ? KEDGE_OK : KEDGE_E_NOT_FOUND;
}

static int facts_of(void *arg, const struct kedge_close_input *in, struct kedge_strategy_input *ret,
                    struct kedge_diag *d)
{
    const struct kedgei_learn_result *r = kedgei_learn_result(arg, (uint32_t)in->in.leaf);
    (void)d;
    ret->steps = r->steps;
    ret->loss = r->loss_before;
    return KEDGE_OK;
}

struct writer {
    uint8_t *bytes;
    uint64_t len, at;
};

static int write_bytes(void *arg, struct kedge_view bytes)
{
    struct writer *w = arg;
    if (bytes.len > w->len - w->at) {
        return KEDGE_E_TOO_LONG;
    }
    memcpy(w->bytes + w->at, bytes.ptr, bytes.len);
    w->at += bytes.len;
    return KEDGE_OK;
}

static int begin(void *arg, uint64_t len, struct kedge_close_file *ret, struct kedge_diag *d)
{
    struct writer *w = kedge_mem_new(1, sizeof *w);
    (void)arg;
    (void)d;
    if (w) {
        *w = (struct writer){.bytes = kedge_mem_new(len, 1), .len = len};
    }
    if (!w || !w->bytes) {
        kedge_mem_free(w);
        return KEDGE_E_NOMEM;
    }
    *ret = (struct kedge_close_file){w, {.write = write_bytes, .arg = w, .values_only = true}};
    return KEDGE_OK;
}

static int end(void *arg, struct kedge_close_file *file, int err, struct kedge_hash *ret,
               struct kedge_diag *d)
{
    struct kedgei_learn *l = arg;
    struct writer *w = file->writer;
    (void)d;
    if (err) {
        kedge_mem_free(w->bytes);
    } else {
        err = kedgei_vectors_give(&l->vectors, w->bytes, ret);
    }
    kedge_mem_free(w);
    return err;
}

static struct kedge_close_host host_of(struct kedgei_learn *l)
{
    return (struct kedge_close_host){l, vector_of, update_of, facts_of, begin, end, NULL};
}

/* ---- the job ---- */

bool kedgei_learn_pretrains(const struct kedgei_learn *l)
{
    return kedge_job_spec_groups_most(&l->job) > 1 && kedge_job_spec_entry(&l->job) == KEDGE_ENTRY_PRETRAIN;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Of what travels; a spec that no parser read may leave it to the default what that is. */
static int lay_out(struct kedgei_learn *l)
{
    struct kedge_layout whole;
    int err = kedge_job_spec_whole_layout(&l->job, &whole, l->reterr);
    if (err) {
        return err;
    }
    if (l->shared < l->d) {
        err = kedge_part_layout(&l->job.share, &whole, true, &l->layout, l->reterr);
        kedge_layout_deinit(&whole);
    } else {
        l->layout = whole;
    }
    l->has_layout = !err;
    KEDGE_ASSERT(err || l->layout.values_count == l->shared);
    return err;
}

int kedgei_learn_close_init(struct kedgei_learn *l)
{
    uint32_t tenants[KEDGE_SPEC_TENANTS_MAX] = {0};
    struct kedge_coord_job_params params;
    l->job = l->spec->job;
    if (l->job.grouping == KEDGE_GROUPING_NONE && kedge_job_spec_entry(&l->job) == KEDGE_ENTRY_PRETRAIN) {
        l->job.groups = 1; /* one model, whatever the spec says of groups */
    }
    if (kedge_job_spec_has_control(&l->job)) {
        l->job.control_sites = l->n + l->rule->needs_root;
    }
    KEDGE_TRY(kedgei_names_init(&l->names, l));
    kedge_close_params(&l->job, tenants, &params);
    l->params = params;
    l->at = (struct kedge_round_state){.round = KEDGE_ROUND_NONE, .kind = KEDGE_TASK_NONE};
    KEDGE_TRY(lay_out(l));
    return kedge_scale_limit(l->job.bound, l->job.scale, &l->limit);
}

void kedgei_learn_close_deinit(struct kedgei_learn *l)
{
    kedgei_names_deinit(&l->names);
    kedgei_vectors_deinit(&l->vectors);
    if (l->has_layout) {
        kedge_layout_deinit(&l->layout);
    }
}

enum kedge_task_kind kedgei_learn_kind(const struct kedgei_learn *l, uint32_t round)
{
    return kedge_coord_round_kind(&l->params, kedgei_learn_job_round(round), l->at.kind, l->at.regroup);
}

/* ---- facts ---- */

static void put_input(const struct kedgei_learn *l, struct kedge_close *c, uint32_t item)
{
    const struct kedgei_learn_item *of = &l->items[item];
    const struct kedgei_learn_site *s = &l->sites[of->site];
    const bool is_root = of->site == l->n;
    c->inputs[c->input_count++] =
        (struct kedge_close_input){.site = of->site,
                                   .tenant = s->tenant,
                                   .place = s->tenant,
                                   .group = of->pretrain || is_root ? 0 : s->group,
                                   .round = c->result->round - of->staleness,
                                   .former = s->group,
                                   .is_root = is_root,
                                   .in.leaf = item,
                                   .in.weight = kedgei_learn_result(l, item)->samples,
                                   .file = at_values(kedgei_learn_vector(l, item, 0))};
}

/* The updates that came, in the order of (tenant, site) as lists have them; where the first one asked is all
 * that counts, as they were asked. A root alone judges nobody. */
static int put_inputs(const struct kedgei_learn *l, struct kedge_close *c)
{
    enum { ITEM_BITS = 24 };
    const bool sorted = l->job.strategy->weigh != kedge_weigh_first;
    uint64_t *keys = kedge_mem_new((size_t)l->items_count + 1, sizeof *keys);
    uint32_t count = 0, roots = 0;
    KEDGE_TRY_MEM(keys);
    for (uint32_t i = 0; i < l->items_count; i++) {
        if (!kedgei_learn_result(l, i)->err) {
            const uint64_t tenant = l->sites[l->items[i].site].tenant, site = l->items[i].site;
            roots += l->items[i].site == l->n;
            keys[count++] = (sorted ? tenant << 48 | site << ITEM_BITS : 0) | i;
        }
    }
    qsort(keys, count, sizeof *keys, by_number);
    for (uint32_t k = 0; k < count && count > roots; k++) {
        put_input(l, c, (uint32_t)(keys[k] & ((1U << ITEM_BITS) - 1)));
    }
    kedge_mem_free(keys);
    return KEDGE_OK;
}

/* All sites with a group and the update that gave it; where groups are made anew those that sent none. */
static void put_others(struct kedgei_learn *l, struct kedge_close *c)
{
    const bool anew = c->result->kind == KEDGE_TASK_PRETRAIN;
    for (uint32_t i = 0; i < l->n; i++) {
        l->sites[i].is_input = false;
    }
    for (size_t i = 0; i < c->input_count && anew; i++) {
        l->sites[c->inputs[i].site].is_input = true;
    }
    for (uint32_t k = 0; k < l->names.sites; k++) {
        const uint32_t i = l->names.order[k];
        const struct kedgei_learn_site *s = &l->sites[i];
        if (s->group != KEDGE_ROUND_NONE && s->pretraining && !s->is_input) {
            c->others[c->other_count++] =
                (struct kedge_close_other){.site = i, .former = s->group, .place = s->tenant};
        }
    }
}

/* ---- decisions ---- */

void kedgei_learn_move(struct kedgei_learn *l, uint32_t site, uint32_t group)
{
    struct kedgei_learn_site *s = &l->sites[site];
    if (s->group != group) {
        l->line.migrations += s->group != KEDGE_ROUND_NONE;
        s->joined = l->line.round;
        s->group = group;
    }
}

void kedgei_learn_take_models(struct kedgei_learn *l)
{
    const struct kedge_hash *state = &l->at.group[0].server_state;
    const bool has_control = kedge_job_spec_has_control(&l->job) && !kedge_hash_is_zero(state);
    l->groups = l->at.groups;
    for (uint32_t g = 0; g < l->groups; g++) {
        memcpy(kedgei_learn_model(l, g), kedgei_vectors_find(&l->vectors, &l->at.group[g].model),
               l->shared * sizeof *l->models);
    }
    if (has_control) {
        memcpy(l->control, kedgei_vectors_find(&l->vectors, state), l->d * sizeof *l->control);
    }
}

static int take(struct kedgei_learn *l, const struct kedge_round_result *r)
{
    bool any = false;
    for (uint32_t i = 0; i < r->assigned_count; i++) {
        kedgei_learn_move(l, r->assigned_sites[i], r->assigned_groups[i]);
    }
    kedge_close_end(r, &l->at);
    kedgei_vectors_sweep(&l->vectors, &l->at);
    kedgei_learn_take_models(l);
    for (uint32_t g = 0; g < l->groups; g++) {
        l->trained[g] = r->trained[g];
        any = any || l->trained[g];
    }
    return any ? kedgei_learn_auxiliary(l) : KEDGE_OK;
}

/* Of too few updates no groups are made anew: at least as many as there are groups, or as were asked. */
static uint32_t quorum(const struct kedgei_learn *l)
{
    const uint32_t wanted = l->job.quorum > l->at.groups ? l->job.quorum : l->at.groups;
    return wanted < l->items_count ? wanted : l->items_count;
}

static int run(struct kedgei_learn *l, struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    const bool anew = r->kind == KEDGE_TASK_PRETRAIN, keeps = anew && l->at.groups > 0;
    KEDGE_TRY(put_inputs(l, c));
    r->kept = keeps && c->input_count < quorum(l);
    kedge_close_begin(&l->at, r);
    if ((anew && keeps) || kedge_job_spec_refreshes(&l->job, r->round)) {
        put_others(l, c);
    }
    if (r->kept) {
        kedge_close_keep(c);
        return KEDGE_OK;
    }
    if (anew) {
        return c->input_count ? kedge_close_pretrain(c) : KEDGE_E_NO_DIRECTION;
    }
    int err = kedge_close_weigh(c);
    return err ? err : kedge_close_train(c);
}

int kedgei_learn_close(struct kedgei_learn *l, enum kedge_task_kind kind, uint32_t job_round)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_round_result *r = kedge_mem_new(1, sizeof *r);
    struct kedge_close c = {.host = host_of(l),
                            .spec = &l->job,
                            .layout = &l->layout,
                            .limit = l->limit,
                            .result = r,
                            .inputs = kedge_mem_new((size_t)l->items_count + 1, sizeof *c.inputs),
                            .others = kedge_mem_new((size_t)l->n + 1, sizeof *c.others),
                            .d = &d};
    int err = r && c.inputs && c.others ? KEDGE_OK : KEDGE_E_NOMEM;
    err = err ? err : kedgei_vectors_lend(&l->vectors, l->w0, &c.initial);
    if (!err) {
        r->round = job_round;
        r->kind = kind;
        r->charged = kind == KEDGE_TASK_TRAIN ? kedgei_learn_charge(l) : 0;
        err = run(l, &c);
    }
    err = err ? err : take(l, r);
    kedge_round_result_free(r);
    kedge_mem_free(c.inputs);
    kedge_mem_free(c.others);
    return err ? kedge_diag_set(l->reterr, err, "round %u: the models: %s", l->line.round,
                                d.text[0] ? d.text : kedge_strerror(err))
               : KEDGE_OK;
}

int kedgei_learn_nearest(struct kedgei_learn *l, uint32_t site, const void *update, const float *last,
                         uint32_t *ret_group)
{
    const struct kedge_close_host host = host_of(l);
    struct kedge_place place = {.site = site, .count = l->at.groups};
    struct kedge_diag d = {.text = ""};
    double similarity;
    int err = update ? kedgei_vectors_lend(&l->vectors, update, &place.update) : KEDGE_OK;
    err = err || !last ? err : kedgei_vectors_lend(&l->vectors, last, &place.initial);
    err =
        err ? err : kedge_close_place(&host, &l->job, &l->layout, &l->at, &place, ret_group, &similarity, &d);
    return err ? kedge_diag_set(l->reterr, err, "group of site %u: %s", site,
                                d.text[0] ? d.text : kedge_strerror(err))
               : KEDGE_OK;
}
