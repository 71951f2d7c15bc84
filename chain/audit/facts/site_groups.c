/* Which group a site is in: the order of its ledger decides, from each group-assigned on. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"

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

/* The first assignment has a key without a round behind the site, later ones with it: two stretches of
 * the sorted table, found by halves, in place of a walk over the ledger for every question. */
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

/* Between `least` and `most` the coordinator may have acted on the old group or the new one, so any that
 * was in force then is allowed. */
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

/* The last round up to `number`, NULL: there is none. Their numbers have no gaps (round_opened). */
static const struct kedgei_round *round_up_to(const struct kedgei_job *job, uint32_t number)
{
    if (job->round_count == 0 || number < kedgei_round_at(job, 0)->number) {
        return NULL;
    }
    size_t at = number - kedgei_round_at(job, 0)->number;
    return kedgei_round_at(job, at < job->round_count ? at : job->round_count - 1);
}

/* Bounded by the number of rounds; in practice at most one step back. */
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
