/* What a close began with, from the record: rows of lists, statements, the step before. Files are only
 * named here; those that the engine makes are hashed.
 *
 * The engine of round/close is the coordinator's own. It is run again here over what the record says the
 * round began with, and asks after every decision (kedgei_closing_decided). Three ways in: with files
 * (replay), without any (verify: every vector counts as gone), and with the rows of lists alone
 * (weights). They differ only in what is said to be here. */
#include "chain/audit/rounds/closing.h"

#include <string.h>

#include "chain/audit/facts/buffer.h"
#include "chain/audit/facts/erased.h"
#include "common/base/mem.h"
#include "common/base/try.h"

static const struct kedgei_log *log_of(const struct kedgei_closing *c, const struct kedgei_input *in)
{
    return &c->r->a->tenants[c->job->tenants[in->place]];
}

/* What the statement that a row names tells about its update. False: it names none. The signed statement
 * and not the list's row is what a site said; that the row agrees with it is checked in facts/inputs.c. */
static bool statement_of(const struct kedgei_log *log, const struct kedge_input_row *row,
                         struct kedge_strategy_input *ret)
{
    const struct kedgei_fact *fact = row->leaf < log->count ? kedgei_fact_at(log, row->leaf) : NULL;
    const struct kedge_st_update *u = fact && fact->kind == KEDGE_ST_UPDATE ? fact->body : NULL;
    if (u) {
        *ret = (struct kedge_strategy_input){
            .samples = u->samples, .steps = u->steps, .rate = u->learning_rate, .loss = u->loss};
    }
    return u != NULL;
}

/* ---- files ---- */

static int vector_of(void *arg, const struct kedge_hash *digest, char path[KEDGE_PATH_MAX],
                     struct kedge_blob_at *ret_at)
{
    const struct kedgei_closing *c = arg;
    *ret_at = (struct kedge_blob_at){.path = path, .digest = *digest};
    return c->is_blind ? KEDGE_E_NOT_FOUND : kedge_blobs_path(c->r->a->main.blobs, digest, path);
}

/* The update by which a site has its group. An erased update is not looked for, even if its file is still
 * here: a replay must not depend on a file that should be gone. */
static int update_of(void *arg, uint32_t site, const struct kedge_hash *digest, char ret[KEDGE_PATH_MAX],
                     struct kedge_blob_at *ret_at)
{
    const struct kedgei_closing *c = arg;
    if (c->is_blind) {
        return KEDGE_E_NOT_FOUND;
    }
    const struct kedgei_log *log = log_of(c, &c->members.items[site - c->inputs.count]);
    return kedgei_erased(c->r->a, log, digest) ? KEDGE_E_NOT_FOUND
                                               : kedge_blobs_at(log->blobs, digest, ret, ret_at);
}

/* Staleness is the engine's own, from the rounds; all other numbers are the statement's. */
static int facts_of(void *arg, const struct kedge_close_input *in, struct kedge_strategy_input *ret,
                    struct kedge_diag *d)
{
    const struct kedgei_closing *c = arg;
    const struct kedgei_input *item = in->site < c->inputs.count ? &c->inputs.items[in->site] : NULL;
    struct kedge_strategy_input said;
    (void)d;
    if (item && statement_of(log_of(c, item), &item->row, &said)) {
        said.staleness = ret->staleness;
        *ret = said;
    }
    return KEDGE_OK; /* where there is no statement, no weights are judged */
}

/* What is made is hashed, and kept where somebody wants the file. */
struct writer {
    struct kedge_hasher *hasher;
    struct kedge_blob_writer *copy;
};

static int write_bytes(void *arg, struct kedge_view bytes)
{
    const struct writer *w = arg;
    kedge_hasher_update(w->hasher, bytes);
    return w->copy ? kedge_blob_writer_write(w->copy, bytes, NULL) : KEDGE_OK;
}

/* Nothing is written to the disk: the engine's results only have to have the recorded digest. A copy is
 * kept where a pruned model is to be made again (files/prune.c). */
static int begin(void *arg, uint64_t len, struct kedge_close_file *ret, struct kedge_diag *d)
{
    const struct kedgei_closing *c = arg;
    struct writer *w = kedge_mem_new(1, sizeof *w);
    int err = w ? kedge_hasher_new(&w->hasher) : KEDGE_E_NOMEM;
    (void)len;
    (void)d;
    if (err) {
        kedge_mem_free(w);
        return err;
    }
    w->copy = c->r->writer;
    *ret = (struct kedge_close_file){w, {.write = write_bytes, .arg = w}};
    return KEDGE_OK;
}

static int end(void *arg, struct kedge_close_file *file, int err, struct kedge_hash *ret,
               struct kedge_diag *d)
{
    struct writer *w = file->writer;
    (void)arg;
    (void)d;
    if (!err) {
        kedge_hasher_final(w->hasher, ret);
    }
    kedge_hasher_free(w->hasher);
    kedge_mem_free(w);
    return err;
}

/* ---- inputs ---- */

/* Sites that are left out and updates that are gone count as such; of a tenant that is not here nothing
 * is known but that its group was trained. The order is that of the lists (tenant, site), which the
 * coordinator used as well: sums of reals and draws depend on it. A group with an aggregate of which a
 * list is not here gets an input that is gone, so the engine takes the recorded decision and does not
 * judge by half of the updates. */
static int put_inputs(struct kedgei_closing *c)
{
    struct kedge_close *close = &c->close;
    close->inputs = kedge_mem_new(c->inputs.count + KEDGE_GROUPS_MAX + 1, sizeof *close->inputs);
    KEDGE_TRY_MEM(close->inputs);
    for (size_t i = 0; i < c->inputs.count; i++) {
        const struct kedgei_input *item = &c->inputs.items[i];
        const struct kedgei_log *log = log_of(c, item);
        struct kedge_close_input *in = &close->inputs[close->input_count++];
        struct kedge_strategy_input said = {.samples = item->row.weight};
        c->unlisted = !statement_of(log, &item->row, &said) || c->unlisted;
        *in = (struct kedge_close_input){
            .site = (uint32_t)i,
            .place = item->place,
            .group = c->round->pretrain ? 0 : item->row.group,
            .round = c->round->number - kedgei_staleness(c->round->number, &item->row),
            .former = kedgei_group_then(log, &c->job->id, &item->row),
            .weight = item->row.weight,
            .is_gone = c->is_blind || kedgei_erased(c->r->a, log, &item->row.update) != NULL,
            .is_root = kedge_job_spec_is_root(&c->job->spec, item->place, &item->row.site),
            .left_out = !c->round->pretrain && item->row.group >= c->result.groups,
            .in.weight = said.samples};
        in->group = in->left_out ? 0 : in->group;
        KEDGE_TRY(kedge_blobs_at(log->blobs, &item->row.update, in->path, &in->file));
    }
    const uint32_t groups = c->round->pretrain ? KEDGE_GROUPS_MAX : c->result.groups;
    const bool lacks = c->is_blind || !kedgei_job_whole(c->job);
    for (uint32_t g = 0; g < groups; g++) {
        if (c->round->aggregates[g] && (c->lacks ? c->lacks[g] : lacks)) {
            close->inputs[close->input_count++] = (struct kedge_close_input){
                .site = UINT32_MAX, .group = g, .round = c->round->number, .is_gone = true};
        }
    }
    return KEDGE_OK;
}

/* Both are in site order; *io_at: the first input that may be this site's. */
static uint32_t input_of(const struct kedgei_closing *c, const struct kedgei_input *site, size_t *io_at)
{
    const struct kedgei_inputs *in = &c->inputs;
    while (*io_at < in->count && kedgei_inputs_cmp_sites(&in->items[*io_at], site) < 0) {
        ++*io_at;
    }
    const bool is_its = *io_at < in->count && kedgei_inputs_cmp_sites(&in->items[*io_at], site) == 0;
    return is_its ? (uint32_t)*io_at : KEDGE_COORD_NONE;
}

/* In site order, those who had a group when the round closed. Only where the close asks for them:
 * directions, trials. Their updates lie with the tenants, and are found by the statement that gave the
 * group. */
static int put_others(struct kedgei_closing *c)
{
    struct kedge_close *close = &c->close;
    const bool any = kedgei_refreshes(c->job, c->round) || kedgei_tries(c->job, c->round);
    if (!c->step || !any || !kedgei_job_whole(c->job)) {
        return KEDGE_OK;
    }
    int err = kedgei_members_of_close(c->r->a, c->job, c->round, KEDGE_GROUP_NONE, false, &c->members);
    close->others = kedge_mem_new(c->members.count + 1, sizeof *close->others);
    err = err || close->others ? err : KEDGE_E_NOMEM;
    for (size_t i = 0, at = 0; i < c->members.count && !err; i++) {
        const struct kedgei_input *item = &c->members.items[i];
        bool is_known = item->row.group < c->result.groups;
        close->others[close->other_count++] =
            (struct kedge_close_other){.site = (uint32_t)(c->inputs.count + i),
                                       .former = is_known ? item->row.group : 0,
                                       .place = item->place,
                                       .input = input_of(c, item, &at),
                                       .update = item->row.update};
    }
    return err;
}

/* What sites had found of the trials of the step before. */
static int put_evaluations(struct kedgei_closing *c)
{
    struct kedge_close *close = &c->close;
    struct kedgei_inputs in = {.items = NULL};
    int err = kedgei_evaluations_of_close(c->r->a, c->job, c->round, &in);
    close->lacks_evaluations = err == KEDGE_E_NOT_FOUND || !kedgei_job_whole(c->job);
    close->evaluations = kedge_mem_new(in.count + 1, sizeof *close->evaluations);
    err = close->evaluations && err != KEDGE_E_NOMEM ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; i < in.count && !err; i++) {
        const struct kedge_input_row *row = &in.items[i].row;
        const struct kedgei_log *log = log_of(c, &in.items[i]);
        const struct kedgei_fact *fact = row->leaf < log->count ? kedgei_fact_at(log, row->leaf) : NULL;
        const struct kedge_st_evaluation *e = fact && fact->kind == KEDGE_ST_EVALUATION ? fact->body : NULL;
        close->lacks_evaluations = close->lacks_evaluations || !e;
        if (e) {
            close->evaluations[close->evaluation_count++] =
                (struct kedge_close_evaluation){.site = (uint32_t)i,
                                                .place = in.items[i].place,
                                                .group = e->group,
                                                .leaf = row->leaf,
                                                .samples = e->samples,
                                                .loss = e->loss,
                                                .trial_loss = e->trial_loss,
                                                .personal_loss = e->personal_loss};
        }
    }
    kedgei_inputs_deinit(&in);
    return err;
}

/* ---- before ---- */

/* What edges have added up in the rounds since they met. The coordinator keeps this sum between rounds;
 * here it is added up again from the lists back to the last meeting, because nothing in the record states
 * it. */
static int put_since(struct kedgei_closing *c)
{
    const struct kedgei_round *first = c->round;
    while (first > c->job->rounds && !kedgei_meets(c->job, first - 1)) {
        first--;
    }
    int err = KEDGE_OK;
    for (const struct kedgei_round *round = first; round < c->round && !err; round++) {
        struct kedgei_inputs in = {.items = NULL};
        err = kedgei_inputs_of_close(c->r->a, c->job, round, KEDGE_GROUP_NONE, &in);
        for (size_t i = 0; i < in.count && !err; i++) {
            const struct kedge_input_row *row = &in.items[i].row;
            struct kedge_strategy_input said;
            if (!statement_of(log_of(c, &in.items[i]), row, &said)) {
                err = KEDGE_E_CORRUPT; /* it names no statement: verify says so */
            } else {
                c->result.since[row->group] +=
                    kedge_job_spec_meeting_share(&c->job->spec, row->weight, said.samples);
            }
        }
        kedgei_inputs_deinit(&in);
    }
    return err;
}

/* Numbers of groups come from the step before. Where it cannot be read, from the aggregates, so that the
 * round can still be judged. The model and state before are the round's own recorded ones: that they are
 * those of the step before is checked by itself (step.c), and one wrong step must not make all later
 * rounds wrong. */
static void put_before(struct kedgei_closing *c)
{
    struct kedge_round_result *r = &c->result;
    const struct kedge_st_step *earlier =
        c->round > c->job->rounds && c->round[-1].step ? c->round[-1].step->body : NULL;
    r->groups = earlier ? earlier->group_count : kedge_job_spec_models(&c->job->spec);
    r->is_personal = earlier && earlier->personal > 0;
    for (uint32_t g = r->groups; g < KEDGE_GROUPS_MAX && !c->round->pretrain && !earlier; g++) {
        r->groups = c->round->aggregates[g] ? g + 1 : r->groups; /* where the step before cannot be read */
    }
    for (uint32_t g = 0; g < r->groups; g++) {
        const struct kedge_st_step_group *was = earlier ? &earlier->groups[g] : NULL;
        const struct kedge_st_step_group *now =
            c->step && g < c->step->group_count ? &c->step->groups[g] : NULL;
        const struct kedgei_fact *aggregate = c->round->pretrain ? NULL : c->round->aggregates[g];
        (void)kedgei_model_before(c->job, c->round, g, &r->before[g]);
        if (aggregate && !c->is_blind) {
            r->before[g] = ((const struct kedge_st_aggregate *)aggregate->body)->base;
        }
        if (was) {
            const struct kedge_hash *direction = kedgei_direction_of(c->round[-1].step, g);
            r->directions[g] = direction ? *direction : was->direction;
            r->state_before[g] = was->state_after;
            r->made[g] = c->last ? was->made : r->made[g];
            r->merged_into[g] = c->last && was->merged_into <= g ? was->merged_into : 0;
            r->trial_before[g] = was->trial;
            if (c->last && was->split_of > 0 && was->split_of <= r->groups) {
                const uint32_t from = was->split_of - 1;
                r->whole_before[from] = r->whole_before[g] = earlier->groups[from].whole;
            }
            r->tried_before[g] = c->last && was->tried_with <= r->groups ? was->tried_with : 0;
        }
        if (now && !c->round->pretrain && !c->is_blind) {
            r->state_before[g] = now->state_before;
        }
    }
}

static void put_round(struct kedgei_closing *c)
{
    const struct kedgei_round *round = c->round;
    const struct kedge_st_job_opened *o = c->job->opened->body;
    c->step = round->step ? round->step->body : NULL;
    c->last = kedgei_makes_groups(round) || round == c->job->rounds || !round[-1].step ? NULL
                                                                                       : round[-1].step->body;
    c->close =
        (struct kedge_close){.host = {c, vector_of, update_of, facts_of, begin, end, kedgei_closing_decided},
                             .spec = &c->job->spec,
                             .layout = &c->job->layout,
                             .limit = c->job->limit,
                             .initial = o->initial_model,
                             .result = &c->result,
                             .d = &c->diag};
    c->result.round = round->number;
    c->result.kind = round->pretrain ? KEDGE_TASK_PRETRAIN : KEDGE_TASK_TRAIN;
    put_before(c);
}

int kedgei_closing_init(struct kedgei_closing *c, const struct kedgei_replay *r,
                        const struct kedgei_decision *of, bool one)
{
    *c = (struct kedgei_closing){.r = r, .job = of->job, .round = of->round, .one = one};
    put_round(c);
    int err = kedgei_inputs_of_close(r->a, c->job, c->round, one ? of->group : KEDGE_GROUP_NONE, &c->inputs);
    err = err == KEDGE_E_NOMEM ? err : put_inputs(c);
    if (!err) {
        err = put_others(c);
    }
    if (!err && !one && kedgei_tries(c->job, c->round)) {
        err = put_evaluations(c);
    }
    if (!err && kedgei_meets(c->job, c->round)) {
        c->since_err = put_since(c);
    }
    return c->since_err == KEDGE_E_NOMEM ? KEDGE_E_NOMEM : err;
}

/* A site for each group, of which nothing is known but that it speaks for the group: directions are
 * estimated again. And each edge has added up something. One gone input for each group suffices: it makes
 * the engine ask for every decision, and each is answered from the record. */
int kedgei_closing_init_blind(struct kedgei_closing *c, const struct kedgei_replay *r,
                              const struct kedgei_job *job, const struct kedgei_round *round)
{
    *c = (struct kedgei_closing){.r = r, .job = job, .round = round, .is_blind = true};
    put_round(c);
    c->close.others = kedge_mem_new(KEDGE_GROUPS_MAX, sizeof *c->close.others);
    c->close.lacks_evaluations = true;
    KEDGE_TRY_MEM(c->close.others);
    for (uint32_t g = 0; g < c->result.groups; g++) {
        c->result.since[g] = 1;
        if (!round->pretrain && !c->result.merged_into[g]) {
            c->close.others[c->close.other_count++] =
                (struct kedge_close_other){.site = UINT32_MAX, .former = g};
        }
    }
    return put_inputs(c);
}

int kedgei_closing_init_listed(struct kedgei_closing *c, const struct kedgei_replay *r,
                               const struct kedgei_job *job, const struct kedgei_round *round,
                               struct kedgei_inputs *inputs, const bool *lacks)
{
    *c = (struct kedgei_closing){
        .r = r, .job = job, .round = round, .is_blind = true, .lacks = lacks, .inputs = *inputs};
    *inputs = (struct kedgei_inputs){.items = NULL};
    kedgei_inputs_sort(&c->inputs);
    put_round(c);
    return put_inputs(c);
}

void kedgei_closing_deinit(struct kedgei_closing *c)
{
    kedgei_inputs_deinit(&c->inputs);
    kedgei_inputs_deinit(&c->members);
    kedge_mem_free(c->close.inputs);
    kedge_mem_free(c->close.others);
    kedge_mem_free(c->close.evaluations);
    kedge_mem_free(c->result.assigned_sites);
    kedge_mem_free(c->result.assigned_groups);
}

/* ---- once more ---- */

/* It is made of updates of all tenants, or of what they say. Of a tenant's copy such decisions cannot be
 * repeated, since they need updates that only other ledgers name. */
static bool is_of_all(const struct kedgei_decision *d)
{
    bool of_models = d->kind == KEDGEI_MIXING || d->kind == KEDGEI_DRIFT
                     || (d->kind == KEDGEI_SERVER && !kedge_close_steps_by_updates(&d->job->spec));
    return !of_models;
}

static int run(struct kedgei_closing *c)
{
    if (c->round->kept) {
        kedge_close_keep(&c->close);
        return KEDGE_OK;
    }
    if (c->round->pretrain) {
        return kedge_close_pretrain(&c->close);
    }
    int err = kedge_close_weigh(&c->close);
    return err ? err : kedge_close_train(&c->close);
}

int kedgei_closing_state(struct kedgei_closing *c, struct kedge_st_step *ret)
{
    struct kedgei_findings none KEDGE_CLEANUP(kedgei_findings_deinit) = {
        .items = NULL}; /* no decision of a list is judged */
    c->f = &none;
    KEDGE_TRY(run(c));
    kedge_close_state_step(&c->result, &c->job->spec, ret);
    return KEDGE_OK;
}

/* Decisions that are taken are marked before the engine runs; the engine then asks for them like for all
 * others and gets the recorded answer. */
void kedgei_replay_close(const struct kedgei_replay *r, struct kedgei_decision *items, size_t count, bool one,
                         struct kedgei_findings *f)
{
    struct kedgei_closing *c = kedge_mem_new(1, sizeof *c);
    if (!c) {
        f->nomem = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        items[i].is_taken =
            items[i].erased > 0 /* told: erased.c */
            || (is_of_all(&items[i]) && !kedgei_job_whole(items[i].job) && KEDGEI_SKIP(r->a, decisions));
    }
    int err = kedgei_closing_init(c, r, &items[0], one);
    c->items = items;
    c->item_count = count;
    c->f = f;
    if (!err) {
        err = run(c);
    }
    kedgei_closing_end(c, err);
    kedgei_closing_deinit(c);
    kedge_mem_free(c);
}
