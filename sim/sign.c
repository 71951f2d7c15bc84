/* Signed facts by a keyed hash: as binding as a signature for those who do not know how it is made, and a
 * thousand times faster. real.c has the same functions with those of chain/. */
#include <string.h>

#include "sim/real.h"
#include "sim/world.h"

static struct kedge_digest keyed(uint32_t site, const struct kedge_site_result *result, uint64_t weight)
{
    struct kedge_site_digest facts[2] = {result->base, result->update};
    uint64_t key = UINT64_C(0x9e3779b97f4a7c15) * (site + 1);
    uint64_t what = (uint64_t)result->round << 40 | (uint64_t)(result->group & 0xff) << 32
                    | (uint64_t)result->kind << 16 | sim_job_of(&result->job);
    return sim_digest(key, what, weight, facts, sizeof facts);
}

void sim_sign_result(struct sim *w, uint32_t site, struct kedge_site_result *result, uint64_t weight)
{
    if (w->real) {
        sim_real_sign_result(w, site, result, weight);
        return;
    }
    struct kedge_digest envelope = keyed(site, result, weight);
    result->envelope = sim_to_site(&envelope);
}

int sim_open_result(struct sim *w, uint32_t site, struct kedge_site_result *result, uint64_t *weight)
{
    if (w->real) {
        return sim_real_open_result(w, site, result, weight);
    }
    struct kedge_digest want = keyed(site, result, *weight);
    return memcmp(want.b, result->envelope.b, sizeof want.b) == 0 ? KEDGE_OK : KEDGE_E_VERIFY;
}

void sim_sign_entry(struct sim *w, uint32_t tenant, struct sim_entry *entry)
{
    if (w->real) {
        sim_real_sign_entry(w, tenant, entry);
        return;
    }
    uint64_t what =
        (uint64_t)entry->type << 56 | (uint64_t)entry->why << 48 | (uint64_t)entry->round << 16 | entry->job;
    entry->envelope = sim_digest(what, entry->site, entry->group, &tenant, sizeof tenant);
}

void sim_entry_appended(struct sim *w, uint32_t tenant, const struct sim_entry *entry)
{
    if (w->real) {
        sim_real_entry_appended(w, tenant, entry);
    }
}

void sim_main_appended(struct sim *w, struct sim_main *entry)
{
    if (w->real) {
        sim_real_main_appended(w, entry);
    }
}

uint32_t sim_prove_receipt(struct sim *w, uint32_t tenant, uint32_t leaf)
{
    return w->real ? sim_real_prove_receipt(w, tenant, leaf) : leaf + 1;
}

uint32_t sim_prove_closed(struct sim *w, uint32_t site, const struct kedge_site_result *result)
{
    return w->real ? sim_real_prove_closed(w, site, result) : 0;
}

bool sim_check_proof(struct sim *w, uint32_t site, const struct sim_event *answer,
                     const struct kedge_site_digest *envelope)
{
    if (w->real) {
        return sim_real_check_proof(w, site, answer, envelope);
    }
    if (answer->reply.kind == KEDGE_SITE_REPLY_CLOSED) {
        return true;
    }
    const struct sim_ledger *l = &w->ledgers[w->devices[site].tenant];
    return answer->proof == answer->weight + 1 && answer->weight < l->count
           && memcmp(l->entries[answer->weight].envelope.b, envelope->b, sizeof envelope->b) == 0;
}

void sim_sign_check_end(struct sim *w)
{
    if (w->real) {
        sim_real_check_end(w);
    }
}
