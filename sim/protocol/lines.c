/* What a durable close has made becomes a line like those of the engine's own rounds: models are loaded,
 * sites are put into their groups, and the engine evaluates. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/train/weights.h"
#include "common/base/try.h"
#include "sim/protocol/impl.h"

enum { LINE_MAX = 1 << 22, MODELS_KEPT = 3 };

/* Data shift between two rounds. Sites that are at work have begun before it, so their training is computed
 * first, with the data as they were. */
void kedgei_protocol_opened(void *arg, uint32_t round, enum kedge_task_kind kind)
{
    struct kedgei_protocol *p = arg;
    (void)kind;
    if (!p->is_open) {
        p->is_open = true;
        p->first_ns = p->w->now_ns;
        if (p->spec->faults) {
            kedgei_protocol_trouble(p);
        }
    }
    if (round > 0 && p->spec->shift != KEDGE_LEARN_SHIFT_NONE) {
        kedgei_protocol_train(p); /* with the data as they were */
        int err = kedgei_learn_shift(p->l, round - 1);
        p->err = p->err ? p->err : err;
    }
}

/* ---- the line ---- */

/* Where the last close assigned nothing, a site is in the group that its device was told last. The start of
 * the groups counts as no migration. */
static void put_sites(struct kedgei_protocol *p)
{
    struct kedgei_learn *l = p->l;
    for (uint32_t i = 0; i < l->n; i++) {
        struct kedgei_learn_site *s = &l->sites[i];
        uint32_t group = kedge_job_spec_groups_most(&p->job) == 1  ? 0
                         : p->last.assigned[i] != KEDGE_COORD_NONE ? p->last.assigned[i]
                                                                   : p->w->devices[i].group[0];
        if (group != s->group) {
            l->line.migrations += s->group != KEDGE_ROUND_NONE && p->last.r.kind == KEDGE_TASK_TRAIN;
            s->joined = l->line.round;
            s->group = group;
        }
    }
}

/* Where a round was to make groups anew and too few came, nothing was trained: the model of all stays. */
static int put_models(struct kedgei_protocol *p)
{
    struct kedgei_learn *l = p->l;
    int err = KEDGE_OK;
    bool any = false;
    KEDGE_ASSERT(p->last.r.groups <= l->slots);
    l->groups = p->last.r.groups;
    l->at = p->at;
    for (uint32_t g = 0; g < l->groups && !err; g++) {
        char path[KEDGE_PATH_MAX];
        const struct kedge_digest model = kedgei_protocol_digest(&p->last.r.after[g]);
        kedgei_files_path(&p->files, &model, path);
        l->trained[g] = p->last.r.trained[g];
        any = any || l->trained[g];
        err = kedge_weights_read(path, &p->layout, kedgei_learn_model(l, g), p->d);
    }
    return err || !any ? err : kedgei_learn_auxiliary(l);
}

/* Means over the updates that the close used; none: NaN, which the report leaves empty. */
static void put_training(struct kedgei_protocol *p)
{
    struct kedgei_learn *l = p->l;
    double loss = 0, moved = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->last.input_count; i++) {
        const struct kedgei_update *u = kedgei_protocol_update(p, &p->last.inputs[i]);
        if (u) {
            loss += u->loss;
            moved += u->moved;
            count++;
        }
    }
    l->line.loss = count ? loss / count : (double)NAN;
    l->line.discrepancy = count ? moved / count : (double)NAN;
}

/* ---- record.jsonl ---- */

static void put_digests(struct kedge_buf *out, const char *key, const struct kedge_hash *digests,
                        uint32_t count)
{
    kedge_buf_printf(out, ",\"%s\":[", key);
    for (uint32_t g = 0; g < count; g++) {
        char hex[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&digests[g], hex);
        kedge_buf_printf(out, "%s\"%s\"", g ? "," : "", hex);
    }
    kedge_buf_put_str(out, "]");
}

/* Groups, numbered from 1 as in a step; 0: none. */
static void put_numbers(struct kedge_buf *out, const char *key, const uint32_t *numbers, uint32_t count)
{
    kedge_buf_printf(out, ",\"%s\":[", key);
    for (uint32_t g = 0; g < count; g++) {
        kedge_buf_printf(out, "%s%u", g ? "," : "", numbers[g]);
    }
    kedge_buf_put_str(out, "]");
}

/* What the close made beside models: states of servers, groups that became part of others or were cut off,
 * what every update weighs, in the order of its sites. Left out where there is nothing of the kind. */
static void put_close(const struct kedgei_protocol *p, struct kedge_buf *out)
{
    const struct kedge_round_result *last = &p->last.r;
    bool has_states = false, has_merged = false, has_split = false;
    for (uint32_t g = 0; g < last->groups; g++) {
        has_states = has_states || !kedge_hash_is_zero(&last->state_after[g]);
        has_merged = has_merged || last->merged_into[g] > 0;
        has_split = has_split || last->split_of[g] > 0;
    }
    if (has_states) {
        put_digests(out, "states", last->state_after, last->groups);
    }
    if (has_merged) {
        put_numbers(out, "merged_into", last->merged_into, last->groups);
    }
    if (has_split) {
        put_numbers(out, "split_of", last->split_of, last->groups);
    }
    for (uint32_t i = 0; i < p->last.input_count; i++) {
        kedge_buf_printf(out, "%s%llu", i ? "," : ",\"weights\":[", (unsigned long long)p->last.weights[i]);
    }
    kedge_buf_put_str(out, p->last.input_count > 0 ? "]" : "");
}

/* What the close stated, as digests, and who is in which group: two runs are compared line by line, so names
 * stand in the order of the record. */
static int put_record(struct kedgei_protocol *p)
{
    const struct kedge_round_result *last = &p->last.r;
    struct kedge_buf out;
    const char *between = ",\"groups\":{";
    if (p->record < 0) {
        return KEDGE_OK;
    }
    kedge_buf_init(&out, LINE_MAX);
    kedge_buf_printf(&out, "{\"round\":%u,\"kind\":\"%s\",\"updates\":%u", last->round,
                     last->kind == KEDGE_TASK_PRETRAIN ? "pretrain" : "train", p->last.input_count);
    put_digests(&out, "models", last->after, last->groups);
    put_digests(&out, "directions", last->directions,
                p->job.grouping != KEDGE_GROUPING_NONE ? last->groups : 0);
    put_close(p, &out);
    for (uint32_t i = 0; i < p->l->n && kedge_job_spec_groups_most(&p->job) > 1; i++) {
        uint32_t site = p->l->names.order[i], group = p->l->sites[site].group;
        struct kedge_id tenant, id;
        kedgei_names_tenant(&p->l->names, p->l->names.tenant[site], &tenant);
        kedgei_names_site(&p->l->names, site, &id);
        if (group != KEDGE_ROUND_NONE) {
            kedge_buf_printf(&out, "%s\"%s/%s\":%u", between, tenant.s, id.s, group);
            between = ",";
        }
    }
    kedge_buf_put_str(&out, between[1] ? "}\n" : "}}\n");
    int err = out.err ? out.err : kedge_fd_write(p->record, kedge_buf_view(&out));
    kedge_buf_deinit(&out);
    return err ? kedge_diag_set(p->d, err, "record.jsonl: %s", kedge_strerror(err)) : KEDGE_OK;
}

/* ---- files that nobody needs any more ---- */

/* Models are files, and a long run has thousands: only those are kept that something can still ask for. */
static bool is_needed(const struct kedgei_protocol *p, const struct kedge_hash *model)
{
    const struct kedge_digest digest = kedgei_protocol_digest(model);
    bool needed = sim_same(&digest, &p->initial);
    for (uint32_t g = 0; g < kedge_job_spec_models(&p->job); g++) {
        needed = needed || sim_same(&digest, &p->begin[g]);
    }
    for (uint32_t g = 0; g < p->last.r.groups; g++) {
        needed = needed || kedge_hash_eq(model, &p->last.r.after[g]);
    }
    for (uint32_t i = 0; p->trained && i < p->sites; i++) {
        needed = needed || kedge_hash_eq(model, &p->trained[i].base);
    }
    return needed;
}

static void drop(const struct kedgei_protocol *p, const struct kedge_hash *hash)
{
    const struct kedge_digest digest = kedgei_protocol_digest(hash);
    kedgei_files_drop(&p->files, &digest);
}

/* Models are kept for some rounds: sites that are late begin with older ones and, but in an asynchronous job,
 * are turned away. */
static void drop_models(struct kedgei_protocol *p, const struct kedge_round_result *before)
{
    const uint32_t keep = MODELS_KEPT + (kedge_job_spec_buffer(&p->job) > 0 ? p->job.staleness_max : 0);
    uint32_t left = 0;
    for (uint32_t g = 0; g < before->groups; g++) {
        p->former = sim_grow(p->former, p->former_count + 1, &p->former_max, sizeof *p->former);
        p->former[p->former_count++] = (struct kedgei_former){before->round, before->after[g]};
    }
    for (uint32_t g = 0; g < before->groups; g++) {
        const uint32_t with = before->tried_with[g];
        const bool is_others =
            with > 0 && with <= g && kedge_hash_eq(&before->trial[with - 1], &before->trial[g]);
        if (with > 0 && !is_others) {
            p->former = sim_grow(p->former, p->former_count + 1, &p->former_max, sizeof *p->former);
            p->former[p->former_count++] = (struct kedgei_former){before->round, before->trial[g]};
        }
    }
    for (uint32_t i = 0; i < p->former_count; i++) { /* in the order of rounds */
        const struct kedgei_former old = p->former[i];
        bool again = false; /* some later round has it, too */
        for (uint32_t k = i + 1; k < p->former_count; k++) {
            again = again || kedge_hash_eq(&old.model, &p->former[k].model);
        }
        if (old.round + keep > p->last.r.round || (!again && is_needed(p, &old.model))) {
            p->former[left++] = old;
        } else if (!again) {
            drop(p, &old.model);
        }
    }
    p->former_count = left;
}

/* Nobody but the next close asks for the state of a server. */
static void drop_states(struct kedgei_protocol *p, const struct kedge_round_result *before)
{
    for (uint32_t g = 0; g < before->groups; g++) {
        bool needed = kedge_hash_is_zero(&before->state_after[g]);
        for (uint32_t k = 0; k < KEDGE_GROUPS_MAX; k++) {
            needed = needed || kedge_hash_eq(&before->state_after[g], &p->last.r.state_after[k]);
        }
        if (!needed) {
            drop(p, &before->state_after[g]);
        }
    }
}

static bool is_some_sites_last(const struct kedgei_protocol *p, const struct kedgei_update *u)
{
    const struct kedge_hash hash = kedgei_protocol_hash(&u->digest);
    return p->trained && kedge_hash_eq(&p->trained[u->site].update, &hash);
}

static void drop_updates(struct kedgei_protocol *p)
{
    const uint32_t waits = kedge_job_spec_buffer(&p->job) > 0 ? p->job.staleness_max : 0;
    for (uint32_t i = p->kept_from; i < p->update_count; i++) {
        struct kedgei_update *u = &p->updates[i];
        bool is_over = u->round + waits <= p->last.r.round;
        if (!u->pretrain && !u->dropped && is_over && !is_some_sites_last(p, u)) {
            kedgei_files_drop(&p->files, &u->digest);
            u->dropped = true;
        }
        bool settled = u->dropped || u->pretrain;
        p->kept_from = i == p->kept_from && settled ? i + 1 : p->kept_from;
    }
}

/* ---- */

static int save(struct kedgei_protocol *p, uint32_t told)
{
    const struct kedge_learn_host *host = p->host;
    uint8_t state[8];
    if (!host->save || host->save_every == 0 || told % host->save_every != 0) {
        return KEDGE_OK;
    }
    kedge_store_be64(state, told);
    return host->save(host->arg, told, state, sizeof state);
}

/* Rounds that an earlier run told already are computed again when a run is resumed, and not told a second
 * time. */
static int tell(struct kedgei_protocol *p, uint64_t now_ns)
{
    struct kedgei_learn *l = p->l;
    if (p->last.r.round == 0) { /* the groups' start belongs to the first line */
        put_sites(p);
        return put_record(p);
    }
    l->line.round = p->last.r.round - 1;
    l->line.virtual_s = (double)(now_ns - p->first_ns) / (double)SIM_SECOND;
    put_sites(p);
    put_training(p);
    KEDGE_TRY(put_models(p));
    l->is_personal = p->last.r.is_personal;
    KEDGE_TRY(kedgei_learn_evaluate(l, l->line.round));
    KEDGE_TRY(put_record(p));
    kedgei_learn_tell_groups(l);
    if (p->last.r.round <= p->told) {
        return KEDGE_OK; /* told by the run that this one goes on with */
    }
    KEDGE_TRY(kedgei_learn_look(l, l->line.round + 1 == l->spec->job.rounds));
    if (p->host->on_round && !p->host->on_round(p->host->arg, &l->line)) {
        p->w->stopped = true;
        return KEDGE_OK;
    }
    return save(p, p->last.r.round);
}

/* The two closes change places, with their tables: nothing is allocated per round. What the former one kept
 * is dropped after the line was told, which still reads it. */
void kedgei_protocol_closed(void *arg, uint32_t round, uint64_t now_ns)
{
    struct kedgei_protocol *p = arg;
    struct kedgei_close before = p->last;
    KEDGE_ASSERT(p->next.r.round == round);
    p->last = p->next;
    p->next.assigned = before.assigned;
    p->next.inputs = before.inputs;
    p->next.weights = before.weights;
    kedge_close_end(&p->last.r, &p->at);
    kedgei_protocol_settle(p);
    int err = tell(p, now_ns);
    drop_models(p, &before.r);
    drop_states(p, &before.r);
    drop_updates(p);
    p->err = p->err ? p->err : err;
    p->w->stopped = p->w->stopped || p->err;
}
