/* What must hold of sites that are in several jobs at once. */
#include "sim/world.h"

static uint32_t in_hand(const struct kedge_site_view *v)
{
    uint32_t jobs = 0;
    for (uint32_t i = 0; i < v->work_count; i++) {
        const struct kedge_site_work_view *k = &v->works[i];
        jobs |= k->task ? 1u << sim_job_of(&k->task->job) : 0;
        jobs |= k->result ? 1u << sim_job_of(&k->result->job) : 0;
    }
    return jobs;
}

void sim_check_asks(struct sim *w, uint32_t site)
{
    const struct sim_device *d = &w->devices[site];
    struct kedge_site_view v;
    kedge_site_view(d->core, &v);
    bool open = false, idle = false;
    uint32_t busy = 0;
    for (uint32_t i = 0; i < v.work_count; i++) {
        bool free = v.works[i].state == KEDGE_SITE_POLLING;
        open = open || (d->poll != 0 && d->open_call[i] == d->poll);
        idle = idle || (free && v.works[i].reason == KEDGE_OK && d->open_call[i] == 0);
        busy += !free;
    }
    uint32_t jobs = in_hand(&v);
    w->fired[SIM_FAULT_BESIDE] += (jobs & (jobs - 1)) != 0;
    if (open && idle && busy < d->at_once && (d->left_out & ~jobs) != 0) {
        sim_violate(w, "site %u does not ask for a job that it has nothing in hand of", site);
    }
}

void sim_check_sends(struct sim *w, uint32_t site, const struct kedge_site_effect *fx)
{
    const struct sim_device *d = &w->devices[site];
    if (fx->result.work != fx->work) {
        sim_violate(w, "site %u sends the result of another task", site);
    }
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        bool submits = d->open_call[i] != 0 && d->call_of[i] == KEDGE_SITE_CALL_SUBMIT;
        if (i != fx->work && (submits || d->open_upload[i] != 0)) {
            sim_violate(w, "site %u sends two results at a time: the coordinator keeps one upload", site);
        }
    }
}
