/* What must hold of jobs that draw their sites by what these say of their batteries: the weights are what was
 * said, the seed and they alone decide, and nobody is forgotten. */
#include "sim/sim.h"
#include "sim/world.h"

enum { CHARGE_STREAM = 9, EPOCH_S = 12 };

/* A battery of its own: each class for a while. */
enum kedge_charge sim_charge_of(const struct sim *w, uint32_t site)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, w->seed, KEDGE_RNG_SIM, CHARGE_STREAM + site, w->now_ns / (EPOCH_S * SIM_SECOND));
    return (enum kedge_charge)kedge_rng_below(&rng, KEDGE_CHARGE_MAINS + 1);
}

void sim_charge_heard(struct sim *w, uint32_t site, enum kedge_charge charge)
{
    w->devices[site].said = charge;
    for (uint32_t j = 0; j < w->config.jobs; j++) {
        w->devices[site].said_since[j] |= (uint8_t)(1u << charge);
    }
}

void sim_charge_forgotten(struct sim *w)
{
    for (uint32_t i = 0; i < w->config.sites; i++) {
        for (uint32_t j = 0; j < w->config.jobs; j++) {
            w->devices[i].said_since[j] = 1u << KEDGE_CHARGE_UNTOLD;
        }
        w->devices[i].said = KEDGE_CHARGE_UNTOLD;
    }
}

/* Of a candidate: one of the classes that it said since the last round opened, or the last one before that.
 */
static void check_weight(struct sim *w, const struct sim_main *entry, uint32_t site, uint8_t weight)
{
    struct sim_device *d = &w->devices[site];
    bool said = false;
    for (enum kedge_charge c = KEDGE_CHARGE_UNTOLD; c <= KEDGE_CHARGE_MAINS; c++) {
        said = said || ((d->said_since[entry->job] >> c & 1) != 0 && weight == kedge_coord_charge_weight(c));
    }
    if (!said) {
        sim_violate(w, "site %u weighs %u in round %u, and said nothing like it", site, weight, entry->round);
    }
    d->said_since[entry->job] = (uint8_t)(1u << d->said);
}

/* A site that stays a candidate among the same ones has its turn. */
static void check_turn(struct sim *w, const struct sim_main *entry, uint32_t site, uint32_t count,
                       bool selected)
{
    uint32_t *waited = &w->devices[site].waited[entry->job], k = entry->selected_count;
    uint32_t turns = (k + 7) / 8, most = (count + turns - 1) / turns;
    *waited = selected ? 0 : *waited + 1;
    if (*waited >= most) {
        sim_violate(w, "site %u waits for %u rounds, of which %u select %u of %u", site, *waited, most, k,
                    count);
    }
}

void sim_check_charged(struct sim *w, const struct sim_main *entry)
{
    struct sim_job *j = &w->jobs[entry->job];
    if (entry->type != SIM_ROUND_OPENED || !j->params.by_charge) {
        return;
    }
    uint32_t count = 0, sites[KEDGE_SIM_SITES_MAX], scratch[2 * KEDGE_SIM_SITES_MAX], known;
    uint8_t weights[KEDGE_SIM_SITES_MAX];
    bool selected[KEDGE_SIM_SITES_MAX], low = false, spared = false;
    uint64_t set = SIM_HASH_START;
    const uint32_t *order = kedge_coord_site_order(w->server.core, &known);
    for (uint32_t i = 0; i < known; i++) {
        const struct kedge_coord_row *row = sim_job_row(w, entry->job, order[i]);
        if (row && row->candidate) {
            set = sim_hash(set, &order[i], sizeof order[i]);
            weights[count] = row->draw;
            sites[count++] = order[i];
        }
    }
    if (entry->kind != KEDGE_TASK_TRAIN) {
        j->charged_set = 0;
        return;
    }
    kedge_coord_select_charged(j->params.seed, entry->round, weights, count, j->params.sites_per_round,
                               scratch, selected);
    for (uint32_t i = 0; i < count; i++) {
        bool is = (entry->selected[sites[i] / 8] >> sites[i] % 8 & 1) != 0;
        if (is != selected[i]) {
            sim_violate(w, "site %u is%s selected in round %u, the seed and the weights say otherwise",
                        sites[i], is ? "" : " not", entry->round);
        }
        low = low || weights[i] == kedge_coord_charge_weight(KEDGE_CHARGE_LOW);
        spared = spared || !is;
        check_weight(w, entry, sites[i], weights[i]);
        w->devices[sites[i]].waited[entry->job] =
            set == j->charged_set ? w->devices[sites[i]].waited[entry->job] : 0;
        check_turn(w, entry, sites[i], count, is);
    }
    j->charged_set = set;
    w->fired[SIM_FAULT_SPARED] += low && spared;
}
