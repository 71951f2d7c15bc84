/* What a close does to groups: who is in which, and how many there are. The rules stand for those of
 * strategies; like them they follow from the record alone, so that a round that is computed again says the
 * same. */
#include <string.h>

#include "common/base/bytes.h"
#include "sim/world.h"

enum { MOVES_EVERY = 4, PERMILLE = 1000 };

/* A number that belongs to this round, and to this site. */
static uint64_t draw(const struct sim *w, uint32_t job, uint32_t site, const char *what)
{
    const struct sim_pending *p = &w->jobs[job].pending;
    uint64_t about = (uint64_t)job << 32 | p->round;
    struct kedge_digest d = sim_digest(w->seed, about, site, what, strlen(what));
    return kedge_load_be64(d.b) >> 8;
}

/* SIM_NONE: it is in none, or not yet enrolled. */
static uint32_t group_of(const struct sim *w, uint32_t job, uint32_t site)
{
    return w->devices[site].enrolled ? w->devices[site].group[job] : SIM_NONE;
}

static struct kedge_digest mix(const struct sim_pending *p, uint32_t a, uint32_t b)
{
    return sim_digest(p->round, a, b, p->models, p->model_count * sizeof p->models[0]);
}

static void split(struct sim *w, uint32_t job)
{
    struct sim_pending *p = &w->jobs[job].pending;
    uint32_t group = (uint32_t)(draw(w, job, 0, "which") % p->model_count), made = p->model_count;
    struct kedge_digest model = mix(p, group, made);
    for (uint32_t i = 0; i < w->config.sites; i++) {
        if (group_of(w, job, i) == group && draw(w, job, i, "half") % 2 == 0) {
            p->groups[i] = made;
        }
    }
    p->models[p->model_count++] = model;
}

/* The last group becomes one with another; nobody stays in a group that is no more. */
static void merge(struct sim *w, uint32_t job)
{
    struct sim_pending *p = &w->jobs[job].pending;
    uint32_t from = p->model_count - 1, into = (uint32_t)(draw(w, job, 0, "which") % from);
    p->models[into] = mix(p, into, from);
    p->model_count--;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        if (group_of(w, job, i) == from) {
            p->groups[i] = into;
        }
    }
}

static void move(struct sim *w, uint32_t job)
{
    struct sim_pending *p = &w->jobs[job].pending;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        if (group_of(w, job, i) != SIM_NONE && draw(w, job, i, "moves") % MOVES_EVERY == 0) {
            p->groups[i] = (uint32_t)(draw(w, job, i, "to") % p->model_count);
        }
    }
}

void sim_move(struct sim *w, uint32_t job)
{
    const struct sim_job *j = &w->jobs[job];
    struct sim_pending *p = &w->jobs[job].pending;
    p->regroup = false;
    p->model_count = p->group_count;
    for (uint32_t g = 0; g < p->group_count; g++) {
        p->models[g] = p->sums[g].model;
    }
    if (p->kind == KEDGE_TASK_PRETRAIN || j->params.groups == 1 || kedge_entry_is_settled(j->params.entry)) {
        return;
    }
    p->regroup = draw(w, job, 0, "drift") % PERMILLE < j->drifts;
    if (draw(w, job, 0, "any") % PERMILLE >= j->moves) {
        return;
    }
    uint64_t how = draw(w, job, 0, "how") % 3;
    if (how == 0 && p->model_count < j->params.groups) {
        split(w, job);
    } else if (how == 1 && p->model_count > 1) {
        merge(w, job);
    } else {
        move(w, job);
    }
}
