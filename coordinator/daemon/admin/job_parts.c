#include "coordinator/daemon/admin/job_parts.h"

#include <jansson.h>

#include "common/json/json.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/tenant_keys.h"

enum { SHOWN_MAX = 200 }; /* sites in one answer; sums are of all */

struct sums {
    uint64_t sites, samples, seconds, joules; /* seconds: of the slowest; both in millionths */
    uint64_t unmeasured, untold;              /* sites of which is not known what they take, what joules */
};

static json_t *millionths(uint64_t value)
{
    return kedgei_json_number((double)value / 1e6);
}

/* What is not known is left out, and is in no sum. */
static json_t *site_row(const struct kedge_host *h, const struct kedge_job *job, uint32_t site,
                        struct sums *io)
{
    const struct kedge_round_site *s = &job->sites[site];
    json_t *o = json_pack("{s:s,s:s,s:i}", "tenant", h->tenants[h->sites[site].tenant].id.s, "site",
                          h->sites[site].id.s, "percent", (int)s->percent);
    /* Of a site that has trained already in this round what it said of that. */
    const bool is_known = kedge_round_cost_counts(&s->cost, job->round + 1),
               has_joules = s->cost.is.has_joules;
    io->sites++;
    io->unmeasured += !is_known;
    io->untold += is_known && !has_joules;
    if (!is_known) {
        return o;
    }
    const uint64_t samples = kedge_percent_of(s->cost.is.samples, s->percent);
    const uint64_t time = kedge_plan_part_time(&s->cost.is, s->percent);
    json_object_set_new(o, "samples", json_integer((json_int_t)samples));
    json_object_set_new(o, "seconds", millionths(time));
    io->samples += samples;
    io->seconds = time > io->seconds ? time : io->seconds;
    if (has_joules) {
        const uint64_t energy = kedge_plan_part_energy(&s->cost.is, s->percent);
        json_object_set_new(o, "joules", millionths(energy));
        io->joules = energy < UINT64_MAX - io->joules ? io->joules + energy : UINT64_MAX; /* sites claim it */
    }
    return o;
}

void kedge_admin_put_plan(struct kedge_host *h, const struct kedge_job *job,
                          const struct kedge_public_key *for_admin, json_t *o)
{
    struct kedge_coord_job_view view;
    struct sums sums = {0};
    if (!kedge_job_spec_plans(&job->spec, job->round) || !kedge_host_job_view(h, job, &view)
        || !view.round_open || view.round_kind != KEDGE_TASK_TRAIN) {
        return;
    }
    json_t *rows = json_array();
    for (uint32_t i = 0; i < h->site_count; i++) {
        const struct kedge_coord_row *row = kedge_coord_row(h->coord, job->slot, i);
        const bool is_told = !for_admin || kedge_tenant_shows_to(&h->tenants[h->sites[i].tenant], for_admin);
        if (!row || !row->selected || job->sites[i].percent == 0 || !is_told) {
            continue;
        }
        json_t *one = site_row(h, job, i, &sums);
        if (json_array_size(rows) < SHOWN_MAX) {
            json_array_append_new(rows, one);
        } else {
            json_decref(one);
        }
    }
    json_object_set_new(o, "plan",
                        json_pack("{s:i,s:I,s:I,s:I,s:I,s:o,s:o,s:o}", "round", (int)job->round,
                                  "sites_planned", (json_int_t)sums.sites, "unmeasured",
                                  (json_int_t)sums.unmeasured, "untold_joules", (json_int_t)sums.untold,
                                  "samples", (json_int_t)sums.samples, "seconds", millionths(sums.seconds),
                                  "joules", millionths(sums.joules), "sites", rows));
}
