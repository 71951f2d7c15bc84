/* Who could be selected now, and who has something to do with the open round: sets that are kept as things
 * change, so that opening and closing a round costs those who take part and not all who could.
 *
 * The first is a bit per place in the site order, with counts per block, so that the n-th eligible site is
 * found without looking at those before it. It is made anew when sites or tenants came since. The second
 * is a list: rows that are not in it are as a closed round leaves them. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/core.h"

enum { WORD_BITS = 64, BLOCK_WORDS = 64, BLOCK_BITS = WORD_BITS * BLOCK_WORDS };

static uint32_t blocks_of(uint32_t sites)
{
    return (sites + BLOCK_BITS - 1) / BLOCK_BITS;
}

uint32_t kedgei_eligible_words(uint32_t sites)
{
    return blocks_of(sites) * BLOCK_WORDS;
}

/* No other job's open round waits for it, but rounds of jobs that are halted (free.c). */
static bool is_free(const struct kedge_coord *c, const struct job *j, uint32_t site)
{
    if (!j->params.elastic || c->sites[site].takes_several) {
        return true;
    }
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        const struct job *o = &c->jobs[i];
        const bool takes = o->used && o != j && !o->halted_by_operator && !kedgei_is_asynchronous(o);
        if (takes && o->rows[site].unresolved) {
            return false;
        }
    }
    return true;
}

static bool is_eligible(const struct kedge_coord *c, const struct job *j, uint32_t site)
{
    bool at_work = kedgei_is_asynchronous(j) && j->rows[site].pub.selected && !MUTANT(MUTANT_DRAWN_AT_WORK);
    bool able = !kedgei_is_unable(&j->rows[site]) || MUTANT(MUTANT_UNABLE_DRAWN);
    return kedgei_is_member(c, j, site) && c->sites[site].presence == PRESENCE_ONLINE && !at_work && able
           && kedgei_fits(c, j, site) && is_free(c, j, site);
}

/* One bit and two counts for one site. While the set is stale nothing is kept up: the next question
 * makes all of it. */
void kedgei_eligible_update(struct kedge_coord *c, struct job *j, uint32_t site)
{
    if (j->eligible_stale) {
        return;
    }
    uint32_t at = c->sites[site].position;
    uint64_t *word = &j->eligible[at / WORD_BITS], bit = UINT64_C(1) << at % WORD_BITS;
    bool is = (*word & bit) != 0, shall = is_eligible(c, j, site);
    if (is != shall) {
        *word ^= bit;
        j->eligible_counts[at / BLOCK_BITS] += shall ? 1 : UINT32_MAX; /* modulo 2^32: one less */
        j->eligible_count += shall ? 1 : UINT32_MAX;
    }
}

static void rebuild(struct kedge_coord *c, struct job *j)
{
    uint32_t words = kedgei_eligible_words(c->limits.sites_max);
    memset(j->eligible, 0, words * sizeof *j->eligible);
    memset(j->candidates, 0, words * sizeof *j->candidates);
    memset(j->eligible_counts, 0, words / BLOCK_WORDS * sizeof *j->eligible_counts);
    j->eligible_count = 0;
    j->eligible_stale = false;
    for (uint32_t at = 0; at < c->site_count; at++) {
        uint32_t site = c->order[at];
        c->sites[site].position = at;
        kedgei_eligible_update(c, j, site);
        uint64_t bit = UINT64_C(1) << at % WORD_BITS;
        j->candidates[at / WORD_BITS] |= j->rows[site].pub.candidate ? bit : 0;
    }
}

uint32_t kedgei_eligible_count(struct kedge_coord *c, struct job *j)
{
    if (j->eligible_stale) {
        rebuild(c, j);
    }
    return j->eligible_count;
}

/* Only bits that have changed since the last round are looked at, 64 places at a time: most sites
 * were candidates before and still are. */
uint32_t kedgei_candidates_mark(struct kedge_coord *c, struct job *j)
{
    (void)kedgei_eligible_count(c, j);
    uint32_t words = (c->site_count + WORD_BITS - 1) / WORD_BITS;
    for (uint32_t w = 0; w < words; w++) {
        uint64_t changed = j->eligible[w] ^ j->candidates[w];
        for (; changed != 0; changed &= changed - 1) {
            uint32_t bit = (uint32_t)__builtin_ctzll(changed);
            struct row *row = &j->rows[c->order[w * WORD_BITS + bit]];
            row->pub.candidate = (j->eligible[w] >> bit & 1) != 0;
        }
        j->candidates[w] = j->eligible[w];
    }
    return j->eligible_count;
}

/* Blocks first, then words, then bits; no list of candidates has to be made. */
uint32_t kedgei_candidate_at(const struct kedge_coord *c, const struct job *j, uint32_t rank)
{
    KEDGE_ASSERT(rank < j->eligible_count && !j->eligible_stale);
    uint32_t block = 0;
    for (; rank >= j->eligible_counts[block]; block++) {
        rank -= j->eligible_counts[block];
    }
    uint32_t w = block * BLOCK_WORDS, in_word;
    for (; rank >= (in_word = (uint32_t)__builtin_popcountll(j->eligible[w])); w++) {
        rank -= in_word;
    }
    uint64_t word = j->eligible[w];
    for (; rank > 0; rank--) {
        word &= word - 1;
    }
    uint32_t at = w * WORD_BITS + (uint32_t)__builtin_ctzll(word);
    KEDGE_ASSERT(at < c->site_count);
    return c->order[at];
}

/* The inverse of kedgei_candidate_at: how many candidates stand before this one. */
uint32_t kedgei_candidate_rank(const struct job *j, const struct site *site)
{
    uint32_t rank = 0, word = site->position / WORD_BITS;
    for (uint32_t w = 0; w < word; w++) {
        rank += (uint32_t)__builtin_popcountll(j->eligible[w]);
    }
    uint64_t before = (UINT64_C(1) << site->position % WORD_BITS) - 1;
    return rank + (uint32_t)__builtin_popcountll(j->eligible[word] & before);
}

bool kedgei_eligible_is_valid(const struct kedge_coord *c, const struct job *j)
{
    uint32_t count = 0;
    for (uint32_t at = 0; at < c->site_count && !j->eligible_stale; at++) {
        uint32_t site = c->order[at];
        bool is = (j->eligible[at / WORD_BITS] >> at % WORD_BITS & 1) != 0;
        if (c->sites[site].position != at || is != is_eligible(c, j, site)) {
            return false;
        }
        count += is;
    }
    return j->eligible_stale || count == j->eligible_count;
}

static int compare_ranks(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Candidates of each tenant that has any, in site order; returns how many such tenants there are. */
static uint32_t count_by_tenant(const struct kedge_coord *c, const struct job *j,
                                uint32_t available[KEDGE_JOB_TENANTS_MAX])
{
    uint32_t tenants = 0, last = KEDGE_COORD_NONE;
    for (uint32_t at = 0; at < c->site_count; at++) {
        if ((j->eligible[at / WORD_BITS] >> at % WORD_BITS & 1) == 0) {
            continue;
        }
        uint32_t tenant = c->sites[c->order[at]].tenant;
        if (tenants == 0 || tenant != last) {
            KEDGE_ASSERT(tenants < KEDGE_JOB_TENANTS_MAX);
            available[tenants++] = 0;
            last = tenant;
        }
        available[tenants - 1]++;
    }
    return tenants;
}

/* What each candidate weighs, in their order, and in its row. */
static void weigh(struct kedge_coord *c, struct job *j)
{
    uint32_t n = 0;
    for (uint32_t at = 0; at < c->site_count; at++) {
        uint32_t site = c->order[at];
        bool counts = j->kind == KEDGE_TASK_TRAIN && (j->eligible[at / WORD_BITS] >> at % WORD_BITS & 1) != 0;
        j->rows[site].pub.draw = counts ? kedge_coord_charge_weight(c->sites[site].charge) : 0;
        c->weights[n] = j->rows[site].pub.draw;
        n += counts;
    }
}

static void pick(struct kedge_coord *c, const struct job *j, uint32_t count, uint32_t n)
{
    if (j->kind == KEDGE_TASK_PRETRAIN && !MUTANT(MUTANT_TENANTS_UNEQUAL)) {
        uint32_t available[KEDGE_JOB_TENANTS_MAX];
        uint32_t tenants = count_by_tenant(c, j, available);
        kedge_coord_pick_by_quota(j->params.seed, j->round, available, tenants, n, c->scratch, c->picks);
    } else if (j->params.has_root) {
        uint32_t root = kedgei_candidate_rank(j, &c->sites[kedgei_root_find(c, j)]);
        kedge_coord_pick_root(j->params.seed, j->round, count, root, n, c->scratch, c->picks);
    } else if (j->params.by_charge && !MUTANT(MUTANT_CHARGE_UNUSED)) {
        kedge_coord_pick_charged(j->params.seed, j->round, c->weights, count, n, c->scratch, c->picks);
    } else {
        kedge_coord_pick(j->params.seed, j->round, count, n, c->scratch, c->picks);
    }
}

void kedgei_select(struct kedge_coord *c, struct job *j)
{
    uint32_t count = kedgei_candidates_mark(c, j), wanted = j->params.sites_per_round;
    uint32_t n = j->kind == KEDGE_TASK_PRETRAIN ? kedge_coord_pretrain_wanted(j->params.pretrain_sites, count)
                 : kedgei_is_asynchronous(j)    ? kedge_coord_draws(wanted, kedgei_places(c, j), count)
                 : wanted == 0 || wanted >= count ? count
                                                  : wanted;
    bool all = n == count;
    if (j->params.by_charge) {
        weigh(c, j);
    }
    if (!all) {
        pick(c, j, count, n);
        qsort(c->picks, n, sizeof *c->picks, compare_ranks);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t site = kedgei_candidate_at(c, j, all ? i : c->picks[i]);
        struct kedge_coord_row *row = &j->rows[site].pub;
        KEDGE_ASSERT(row->candidate && (!row->selected || MUTANT(MUTANT_DRAWN_AT_WORK)));
        j->selected_count += !row->selected;
        row->selected = true;
        row->task_round = j->round;
        kedgei_touch(j, site);
    }
}

void kedgei_touch(struct job *j, uint32_t site)
{
    struct row *row = &j->rows[site];
    if (!row->touched) {
        row->touched = true;
        j->touched[j->touched_count++] = site;
    }
}

void kedgei_touched_tidy(struct job *j)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < j->touched_count; i++) {
        struct row *row = &j->rows[j->touched[i]];
        const struct kedge_coord_row *p = &row->pub;
        row->touched = p->selected || p->shifted || kedgei_is_unable(row) || row->in_flight
                       || row->assign != ASSIGN_NONE || (p->group != KEDGE_COORD_NONE && !p->group_durable);
        if (row->touched) {
            j->touched[kept++] = j->touched[i];
        }
    }
    j->touched_count = kept;
}

void kedgei_offer_all(struct job *j)
{
    j->offer = 0;
    j->offer_touched = false;
}

void kedgei_offer_touched(struct job *j)
{
    if (j->offer == KEDGE_COORD_NONE) {
        j->offer = 0;
        j->offer_touched = true;
    }
}
