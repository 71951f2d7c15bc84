/* Which group a site is in: the order of its ledger decides, from each group-assigned on. And whether each of
 * them may stand where it does; that it names the right group is replay's to find. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"
#include "grouping/flexcfl.h"

/* Rows of keys that are a site's assignments in a job: its first one's, and those of later ones. */
struct assigned_keys {
    size_t first, first_end, later, later_end;
};

static size_t prefix_end(const struct kedgei_log *log, size_t at, struct kedge_view prefix, bool whole)
{
    for (; at < log->key_count; at++) {
        struct kedge_view key = kedgei_key_at(log, at)->key;
        if (key.len < prefix.len || (whole && key.len > prefix.len)
            || memcmp(key.ptr, prefix.ptr, prefix.len) != 0) {
            break;
        }
    }
    return at;
}

static struct assigned_keys keys_of(const struct kedgei_log *log, const struct kedge_id *job,
                                    const struct kedge_id *site)
{
    char text[KEDGE_IDEM_KEY_MAX + 2];
    struct assigned_keys k;
    int n = snprintf(text, sizeof text, "group-assigned/%s/%s/", job->s, site->s);
    KEDGE_ASSERT(n > 1 && (size_t)n < sizeof text);
    struct kedge_view prefix = kedge_view_of(text, (size_t)n), key = kedge_view_of(text, (size_t)n - 1);
    k.first = kedgei_log_lower(log, key);
    k.first_end = prefix_end(log, k.first, key, true);
    k.later = kedgei_log_lower(log, prefix);
    k.later_end = prefix_end(log, k.later, prefix, false);
    return k;
}

typedef bool assigned_better(uint64_t at, uint64_t best, uint64_t index);

/* The best of them, KEDGEI_NEVER for none so far. */
static const struct kedgei_fact *best_of(const struct kedgei_log *log, const struct kedge_id *job,
                                         const struct kedge_id *site, uint64_t index,
                                         assigned_better *is_better)
{
    struct assigned_keys k = keys_of(log, job, site);
    uint64_t best = KEDGEI_NEVER;
    for (size_t i = k.first; i < k.first_end; i++) {
        uint64_t at = kedgei_key_at(log, i)->index;
        best = is_better(at, best, index) ? at : best;
    }
    for (size_t i = k.later; i < k.later_end; i++) {
        uint64_t at = kedgei_key_at(log, i)->index;
        best = is_better(at, best, index) ? at : best;
    }
    return best == KEDGEI_NEVER ? NULL : kedgei_fact_at(log, best);
}

static bool is_later_before(uint64_t at, uint64_t best, uint64_t index)
{
    return at < index && (best == KEDGEI_NEVER || at > best);
}

static bool is_sooner_behind(uint64_t at, uint64_t best, uint64_t index)
{
    return at > index && at < best;
}

const struct kedgei_fact *kedgei_group_before(const struct kedgei_log *log, const struct kedge_id *job,
                                              const struct kedge_id *site, uint64_t index)
{
    return best_of(log, job, site, index, is_later_before);
}

const struct kedgei_fact *kedgei_group_behind(const struct kedgei_log *log, const struct kedge_id *job,
                                              const struct kedge_id *site, uint64_t index)
{
    return best_of(log, job, site, index, is_sooner_behind);
}

static uint32_t group_of(const struct kedgei_fact *fact)
{
    KEDGE_ASSERT(fact && fact->body);
    return ((const struct kedge_st_group_assigned *)fact->body)->group;
}

uint32_t kedgei_group_then(const struct kedgei_log *log, const struct kedge_id *job,
                           const struct kedge_input_row *row)
{
    const struct kedgei_fact *fact = kedgei_group_before(log, job, &row->site, row->leaf);
    return fact ? group_of(fact) : KEDGE_GROUP_NONE;
}

bool kedgei_group_was(const struct kedgei_log *log, const struct kedge_id *job, const struct kedge_id *site,
                      uint64_t least, uint64_t most, uint32_t group)
{
    const struct kedgei_fact *fact = kedgei_group_before(log, job, site, least);
    bool was = fact && group_of(fact) == group;
    struct assigned_keys k = keys_of(log, job, site);
    for (int part = 0; part < 2; part++) {
        size_t end = part ? k.later_end : k.first_end;
        for (size_t i = part ? k.later : k.first; i < end && !was; i++) {
            uint64_t at = kedgei_key_at(log, i)->index;
            was = at >= least && at < most && group_of(kedgei_fact_at(log, at)) == group;
        }
    }
    return was;
}

/* ---- may it stand there? ---- */

/* A newcomer's pretrain update may be of an earlier round: a restart can come between it and the decision. */
static bool rests_on_update(const struct kedgei_job *job, const struct kedgei_log *log,
                            const struct kedgei_fact *fact)
{
    const struct kedge_st_group_assigned *g = fact->body;
    for (uint32_t r = g->round < job->round_count ? g->round : (uint32_t)job->round_count;; r--) {
        const struct kedgei_fact *update =
            kedgei_log_find(log, "update/%s/%08u/pretrain/%s", g->job.s, r, g->site.s);
        if (update && update->index < fact->index && kedge_hash_eq(&update->subject, &g->update)) {
            return true;
        }
        if (r == 0) {
            return false;
        }
    }
}

/* The first group of a site. */
static void check_first(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_log *log,
                        const struct kedgei_fact *fact, const struct kedgei_fact *before)
{
    const struct kedge_st_group_assigned *g = fact->body;
    if (!rests_on_update(job, log, fact)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\": rests on no pretrain update of a round up to %u", g->site.s,
                     g->round);
    }
    if ((g->how == KEDGE_GROUP_COLD_START) != (g->round == 0)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\" in round %u: cold start is round 0, newcomers are later",
                     g->site.s, g->round);
    }
    if (before) {
        kedgei_error(&a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\": %s, but it has one since entry %llu", g->site.s,
                     kedge_group_how_name(g->how), (unsigned long long)before->index);
    }
}

/* While its round was open: behind what was anchored when it opened, in what its close anchored. */
static bool is_within_round(const struct kedgei_log *log, const struct kedgei_round *round, uint64_t index)
{
    return round->opened && index >= kedgei_anchored_before(log, round->opened->index)
           && (!round->step || index < kedgei_anchored_before(log, round->step->index));
}

/* The last round up to `number`, NULL: there is none. Their numbers have no gaps (round_opened). */
static const struct kedgei_round *round_up_to(const struct kedgei_job *job, uint32_t number)
{
    if (job->round_count == 0 || number < kedgei_round_at(job, 0)->number) {
        return NULL;
    }
    size_t at = number - kedgei_round_at(job, 0)->number;
    return kedgei_round_at(job, at < job->round_count ? at : job->round_count - 1);
}

const struct kedgei_round *kedgei_round_closed(const struct kedgei_job *job, uint32_t number)
{
    const struct kedgei_round *round = round_up_to(job, number);
    while (round && !round->step) { /* only the last one may have none */
        round = round > job->rounds ? round - 1 : NULL;
    }
    return round;
}

uint32_t kedgei_groups_after(const struct kedgei_job *job, uint32_t number)
{
    const struct kedgei_round *round = kedgei_round_closed(job, number);
    return round ? ((const struct kedge_st_step *)round->step->body)->group_count : job->groups;
}

uint32_t kedgei_grouped_in(const struct kedgei_job *job, uint32_t number)
{
    const struct kedgei_round *round = round_up_to(job, number);
    return round ? round->grouped_in : 0;
}

/* A site's group when groups were made anew: once per site, behind the close that made them and in front of
 * the next round; by its update of that round or, where it sent none, by the one that gave it its last group.
 */
static void check_regrouped(struct kedgei_audit *a, const struct kedgei_job *job,
                            const struct kedgei_log *log, const struct kedgei_fact *fact,
                            const struct kedgei_fact *before)
{
    const struct kedge_st_group_assigned *g = fact->body;
    const struct kedge_st_group_assigned *last = before ? before->body : NULL;
    const struct kedgei_round *round = kedgei_round_find(job, g->round);
    const struct kedgei_fact *update =
        kedgei_log_find(log, "update/%s/%08u/pretrain/%s", g->job.s, g->round, g->site.s);
    const struct kedge_hash *by = update ? &update->subject : last ? &last->update : NULL;
    struct kedgei_findings *f = &a->findings;
    if (!by || !kedge_hash_eq(by, &g->update)) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\": rests neither on its update of round %u nor on its last group's",
                     g->site.s, g->round);
    }
    if (last && last->round >= g->round) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "site \"%s\" was given a group of round %u before, in entry %llu", g->site.s,
                     last->round, (unsigned long long)before->index);
    }
    bool next = round && round + 1 < job->rounds + job->round_count;
    if (!round || !kedgei_regroups(round) || !round->step) {
        kedgei_error_if_settled(a, f, KEDGE_AUDIT_GROUP, log, fact->index,
                                "group of site \"%s\": round %u made no groups anew", g->site.s, g->round);
    } else if (fact->index < kedgei_anchored_before(log, round->step->index)
               || (next && fact->index >= kedgei_anchored_after(log, round[1].opened->index))) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "site \"%s\" was not given its group of round %u between that round and the next",
                     g->site.s, g->round);
    }
}

/* A site's next group by its own pre-training, done since the last one and in this round. */
static void check_migration(struct kedgei_audit *a, const struct kedgei_job *job,
                            const struct kedgei_log *log, const struct kedgei_fact *fact,
                            const struct kedgei_fact *before)
{
    const struct kedge_st_group_assigned *g = fact->body;
    const struct kedge_st_group_assigned *last = before ? before->body : NULL;
    const struct kedgei_round *round = kedgei_round_find(job, g->round);
    const struct kedgei_fact *update =
        kedgei_log_find(log, "update/%s/%08u/pretrain/%s", g->job.s, g->round, g->site.s);
    struct kedgei_findings *f = &a->findings;
    if (job->spec.shift == KEDGE_SHIFT_TEST_NONE) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "site \"%s\" moved: job \"%s\" lets no site move", g->site.s, g->job.s);
    }
    if (!last) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index, "site \"%s\" moved, but was in no group",
                     g->site.s);
    } else if (g->round < last->round || g->round - last->round < job->spec.migration_pause) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "site \"%s\" moved in rounds %u and %u, which are fewer than %u apart", g->site.s,
                     last->round, g->round, job->spec.migration_pause);
    }
    if (!update || update->index >= fact->index || (before && update->index <= before->index)
        || !kedge_hash_eq(&update->subject, &g->update)) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "site \"%s\" moved in round %u without a pre-training of its own in that round",
                     g->site.s, g->round);
    }
    const struct kedgei_fact *trained =
        kedgei_log_find(log, "update/%s/%08u/train/%s", g->job.s, g->round, g->site.s);
    if (trained && trained->index < fact->index) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "site \"%s\" moved in round %u after it had trained in it, in entry %llu", g->site.s,
                     g->round, (unsigned long long)trained->index);
    }
    if (g->round == 0 || (round && (round->pretrain || !is_within_round(log, round, fact->index)))) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "site \"%s\" moved while round %u was not open for training", g->site.s, g->round);
    }
}

void kedgei_check_assigned(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_log *log,
                           const struct kedgei_fact *fact)
{
    const struct kedge_st_group_assigned *g = fact->body;
    const struct kedgei_fact *before = kedgei_group_before(log, &g->job, &g->site, fact->index);
    switch (g->how) {
    case KEDGE_GROUP_COLD_START:
    case KEDGE_GROUP_NEWCOMER:
        check_first(a, job, log, fact, before);
        break;
    case KEDGE_GROUP_MIGRATION:
        check_migration(a, job, log, fact, before);
        break;
    case KEDGE_GROUP_RECLUSTER:
        check_regrouped(a, job, log, fact, before);
        break;
    case KEDGE_GROUP_SPLIT:
    case KEDGE_GROUP_MERGE:
        (kedge_job_spec_splits(&job->spec) ? kedgei_check_parted : kedgei_check_moved)(a, job, log, fact,
                                                                                       before);
        break;
    case KEDGE_GROUP_NEAREST:
        kedgei_check_nearest(a, job, log, fact, before);
        break;
    case KEDGE_GROUP_CHOICE:
        kedgei_error(&a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\": no rule of job \"%s\" gives groups by %s", g->site.s, g->job.s,
                     kedge_group_how_name(g->how));
        break;
    }
    bool made = g->how != KEDGE_GROUP_NEWCOMER && g->how != KEDGE_GROUP_MIGRATION;
    uint32_t groups = kedgei_groups_after(job, made || g->round == 0 ? g->round : g->round - 1);
    bool cut = kedge_job_spec_splits(&job->spec) && g->how == KEDGE_GROUP_SPLIT;
    bool gives = job->spec.grouping != KEDGE_GROUPING_NONE || g->how == KEDGE_GROUP_NEAREST || cut;
    if (g->group >= groups || !gives) {
        kedgei_error_if_settled(a, &a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                                "site \"%s\" given group %u, job \"%s\" has %u", g->site.s, g->group,
                                g->job.s, groups);
    }
    if (!kedgei_round_find(job, g->round) || (g->round == 0 && !kedgei_round_find(job, 0)->step)) {
        kedgei_error_if_settled(a, &a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                                "group of site \"%s\" from round %u, which has no result", g->site.s,
                                g->round);
    }
}
