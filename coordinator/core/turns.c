/* Whose round opens, where jobs share sites (coordinator/schedule/turn.h): what the core measures for it, and
 * whom it asks.
 *
 * A task keeps its site from the moment it is handed out until the site sends its result, or asks for work
 * without it in hand. That is measured here and not taken from what sites say, so nobody gains by what it
 * says. Of a round its longest task counts, for that is what the others wait for. Sites that take several
 * tasks at once keep nobody waiting and are not looked at. Asynchronous jobs neither wait nor are waited for:
 * their rounds do not keep their sites.
 *
 * Nothing of this is durable. After a restart all jobs are equal, which costs one turn at most. */
#include "coordinator/core/core.h"
#include "coordinator/schedule/share.h"
#include "coordinator/schedule/turn.h"

enum { SHARE_LEAST = KEDGE_SCHEDULE_WHOLE / 16 }; /* of an equal one: nobody waits for ever */

void kedgei_turn_begins(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    c->jobs[job].rows[site].given_ns = c->now_ns;
    c->sites[site].given |= UINT64_C(1) << job;
}

void kedgei_turn_ends(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    struct site *s = &c->sites[site];
    const uint64_t bit = UINT64_C(1) << job;
    struct job *j = &c->jobs[job];
    if ((s->given & bit) != 0 && j->used) { /* not a task of the job whose place this one has */
        uint64_t took_ns = c->now_ns - j->rows[site].given_ns;
        j->longest_ns = took_ns > j->longest_ns ? took_ns : j->longest_ns;
    }
    s->given &= ~bit;
}

void kedgei_turns_end(struct kedge_coord *c, uint32_t site, uint64_t but)
{
    for (uint64_t over = c->sites[site].given & ~but; over != 0; over &= over - 1) {
        kedgei_turn_ends(c, (uint32_t)__builtin_ctzll(over), site);
    }
}

/* By now: what the open round, or the last one, has taken so far is part of it. */
static struct kedge_schedule_job share_of(const struct job *j)
{
    uint64_t longest_ns = j->longest_ns > j->round_ns ? j->longest_ns : j->round_ns;
    return (struct kedge_schedule_job){
        .served_ns = j->served_ns, .since_ns = j->longest_ns, .round_ns = longest_ns};
}

/* Its next round may open, or one is under way and nothing keeps it from going on but sites at work. */
static bool goes_on(const struct job *j)
{
    bool halted = j->halted_by_operator || j->halted_by_quorum || j->failed_count > 0 || j->stalled;
    bool between = j->stage == STAGE_WAITING_TO_OPEN && j->ready_since_ns != UINT64_MAX;
    bool open = (j->stage >= STAGE_ROUND_OPENING && j->stage <= STAGE_ASSIGNING) && !j->late;
    return j->used && !halted && !kedgei_is_ending(j) && (between || open);
}

/* Is there a site that both could ask now, and that takes one task at a time? */
static bool share_sites(struct kedge_coord *c, struct job *a, struct job *b)
{
    if (kedgei_eligible_count(c, a) == 0 || kedgei_eligible_count(c, b) == 0) {
        return false;
    }
    for (uint32_t w = 0; w * 64 < c->site_count; w++) {
        for (uint64_t both = a->eligible[w] & b->eligible[w]; both != 0; both &= both - 1) {
            if (!c->sites[c->order[w * 64 + (uint32_t)__builtin_ctzll(both)]].takes_several) {
                return true;
            }
        }
    }
    return false;
}

/* The other jobs that it takes turns with, those of lower priority not among them: their numbers, at most
 * KEDGE_JOBS_MAX. */
static uint32_t others_of(struct kedge_coord *c, uint32_t job, uint32_t *ret)
{
    struct job *j = &c->jobs[job];
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->limits.jobs_max && !kedgei_is_asynchronous(j); i++) {
        struct job *o = &c->jobs[i];
        if (i != job && o->params.priority >= j->params.priority && goes_on(o) && !kedgei_is_asynchronous(o)
            && share_sites(c, j, o)) {
            ret[count++] = i;
        }
    }
    return count;
}

/* Of the time until it is due what its rounds need, each as long as its last one and a quarter. */
static uint32_t needed_by(const struct kedge_coord *c, const struct job *j, uint64_t round_ns)
{
    const uint64_t done = j->closed_round == KEDGE_COORD_NONE ? 0 : j->closed_round;
    if (j->params.due_ns <= c->now_ns || done >= j->params.rounds) {
        return 0;
    }
    const double left = 1.25 * (double)(j->params.rounds - done) * (double)round_ns;
    const double part = left / (double)(j->params.due_ns - c->now_ns);
    return part < 1 ? (uint32_t)(part * KEDGE_SCHEDULE_WHOLE) : (uint32_t)KEDGE_SCHEDULE_WHOLE;
}

static struct kedge_schedule_claim claim_of(const struct kedge_coord *c, const struct job *j,
                                            uint64_t round_ns)
{
    const uint32_t weight = j->useful || j->params.turn_weight == 0 ? 1 : j->params.turn_weight;
    return (struct kedge_schedule_claim){
        .weight = weight, .least = needed_by(c, j, round_ns), .due_ns = j->params.due_ns};
}

/* What each is to have of the time of sites that they share; jobs: count + 1 of them, mine the last. */
static void divide(const struct kedge_coord *c, const uint32_t *jobs, uint32_t count,
                   struct kedge_schedule_job *io)
{
    struct kedge_schedule_claim claims[KEDGE_JOBS_MAX];
    uint64_t shares[KEDGE_JOBS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        claims[i] = claim_of(c, &c->jobs[jobs[i]], io[i].round_ns);
    }
    kedge_schedule_divide(claims, count, KEDGE_SCHEDULE_WHOLE, c->times.share_floor, shares);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t share = shares[i] * count;
        io[i].share = share > SHARE_LEAST ? (uint32_t)share : SHARE_LEAST;
    }
}

bool kedgei_turn_waits(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    struct kedge_schedule_job share[KEDGE_JOBS_MAX];
    uint32_t others[KEDGE_JOBS_MAX], count = 0;
    if (share_of(j).round_ns > 0) {
        count = others_of(c, job, others);
    }
    others[count] = job;
    for (uint32_t i = 0; i <= count; i++) {
        share[i] = share_of(&c->jobs[others[i]]);
    }
    divide(c, others, count + 1, share);
    const struct kedge_schedule_job mine = share[count];
    j->share = mine.share;
    uint64_t wait = kedge_schedule_wait(&mine, share, count);
    j->turn_ns = wait > UINT64_MAX - j->ready_since_ns ? UINT64_MAX : j->ready_since_ns + wait;
    if (j->turn_ns > c->now_ns) {
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct job *o = &c->jobs[others[i]];
        const uint64_t since = kedge_schedule_counted(share[i].since_ns, share[i].share);
        const uint64_t served = kedge_schedule_served(&share[i], &mine);
        o->served_ns = served > since ? served - since : 0;
    }
    return false;
}

/* Its sites are asked: what the round before took is known now. */
void kedgei_turn_taken(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    const uint64_t took = kedge_schedule_counted(j->longest_ns, j->share);
    j->served_ns = took < UINT64_MAX - j->served_ns ? j->served_ns + took : UINT64_MAX;
    j->round_ns = j->longest_ns;
    j->longest_ns = 0;
    kedgei_turns_pass(c, job);
}

/* The host comes back at once for those that may open now. */
void kedgei_turns_pass(struct kedge_coord *c, uint32_t job)
{
    c->jobs[job].turn_ns = UINT64_MAX;
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        struct job *o = &c->jobs[i];
        if (o->used && o->stage == STAGE_WAITING_TO_OPEN && o->turn_ns != UINT64_MAX
            && o->turn_ns > c->now_ns) {
            o->turn_ns = c->now_ns;
        }
    }
}
