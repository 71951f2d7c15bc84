/* What must hold in the end and after every restart: receipts, answers, append-only logs, progress. */

#include "sim/world.h"

/* Receipts that sites hold are in the ledgers, whatever crashed since. */
void sim_check_acks(struct sim *w)
{
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct sim_device *d = &w->devices[i];
        const struct sim_ledger *l = &w->ledgers[d->tenant];
        for (uint32_t a = 0; a < d->ack_count; a++) {
            if (d->acks[a].leaf >= l->count
                || !sim_same(&l->entries[d->acks[a].leaf].envelope, &d->acks[a].envelope)) {
                sim_violate(w, "site %u has a receipt for a statement that is lost", i);
            }
        }
    }
}

bool sim_job_is_stuck(const struct sim *w, uint32_t job)
{
    struct kedge_coord_job_view view;
    if (!sim_job_view(w, job, &view) || view.state >= KEDGE_JOB_COMPLETED) {
        return false;
    }
    uint32_t able = 0, there = 0, ready = 0;
    for (uint32_t i = 0; i < w->config.sites; i++) {
        const struct sim_device *d = &w->devices[i];
        const struct kedge_coord_row *row = sim_job_row(w, job, i);
        bool member = false;
        for (uint32_t t = 0; t < view.params->tenant_count; t++) {
            member = member || view.params->tenants[t] == d->tenant;
        }
        if (!row || !member || d->revoked_told) {
            continue;
        }
        there++;
        ready += !d->lazy;
        const struct kedge_coord_input *in =
            view.round_kind == KEDGE_TASK_PRETRAIN ? &row->pretrain : &row->train;
        able += row->selected && !d->lazy && in->progress != KEDGE_INPUT_ACCEPTED;
    }
    bool anew = view.round_kind == KEDGE_TASK_PRETRAIN && view.round > 0;
    uint32_t wanted = anew ? 0 : view.params->quorum; /* at the deadline groups are kept */
    uint32_t quorum = wanted < view.selected_count ? wanted : view.selected_count;
    uint32_t least =
        view.params->sites_min < view.params->quorum ? view.params->sites_min : view.params->quorum;
    return view.round_open ? view.accepted_count + able < quorum
                           : there < view.params->sites_min || ready < least;
}

static void check_jobs(struct sim *w)
{
    for (uint32_t i = 0; i < w->config.jobs && !w->failed; i++) {
        const struct sim_main *end = sim_main_find(w, SIM_JOB_CLOSED, i, 0);
        if (!end || w->jobs[i].state != end->state) {
            sim_violate(w, "job %u does not end: %s, %s, %u main entries", i,
                        kedge_job_state_name(w->jobs[i].state), kedge_err_code(w->jobs[i].reason),
                        w->main_count);
        } else if (end->state == KEDGE_JOB_FAILED
                   && !(w->jobs[i].reason == KEDGE_E_SITES && w->fired[SIM_FAULT_TRAINING_FAILED] > 0)) {
            sim_violate(w, "job %u failed", i);
        } else if (end->state == KEDGE_JOB_CANCELLED && !w->jobs[i].cancel_wanted) {
            sim_violate(w, "job %u is cancelled, and nobody asked for it", i);
        }
    }
}

/* Nobody is left without an answer: polls have theirs when their time is over, submissions when their writes
 * are done. */
static void check_answered(struct sim *w)
{
    const struct sim_server *s = &w->server;
    for (uint32_t i = 0; s->up && i < s->request_max; i++) {
        const struct sim_request *r = &s->requests[i];
        if (r->used && w->now_ns - r->at_ns > s->times.lease) {
            sim_violate(w, "request %u of site %u waits for an answer since %.3f", r->id, r->site,
                        (double)r->at_ns / (double)SIM_SECOND);
        }
    }
}

static void check_ledgers(struct sim *w)
{
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        uint64_t hash = SIM_HASH_START;
        for (uint32_t i = 0; i < w->ledgers[t].count; i++) {
            const struct sim_entry *e = &w->ledgers[t].entries[i];
            hash = sim_hash(hash, e->envelope.b, sizeof e->envelope.b);
            const struct sim_main *end = sim_main_find(w, SIM_JOB_CLOSED, e->job, 0);
            if (e->type == SIM_UPDATE && !e->listed && end && end->state == KEDGE_JOB_COMPLETED) {
                sim_violate(w, "update of site %u in round %u is in no input list", e->site, e->round);
            }
        }
        if (hash != w->ledgers[t].hash) {
            sim_violate(w, "ledger %u was rewritten", t);
        }
    }
}

void sim_check_end(struct sim *w)
{
    check_jobs(w);
    if (w->failed) {
        return;
    }
    check_answered(w);
    check_ledgers(w);
    sim_check_acks(w);
    sim_sign_check_end(w);
}
