/* Whose joules: the meters tell what the device took, and several trainings may have taken it. The time is
 * cut into spans, which end when a training ends; of each span every training that was open in it has its
 * part, by processor time. So nothing is counted twice, the parts make the whole, and a part is modelled, for
 * processor time is not energy. One training alone has it all, as measured. Under work_lock. */
#include <math.h>
#include <unistd.h>

#include "client/daemon/energy/energy_impl.h"
#include "common/base/os/clock.h"

static const double share_error = 0.3;  /* of a part, as of shares (joules.h) */
static const double short_span_s = 2.0; /* too short for some meters: the power of the span before counts */

static double busy_s(const struct kedge_client_energy *e)
{
    uint64_t all, busy;
    kedge_sys_cpu(e->meters.root, &all, &busy);
    return (double)busy / 1e9;
}

static void begin_span(struct kedge_client_energy *e, uint64_t now)
{
    e->span_ns = e->ticked_ns = now;
    e->span_busy_s = busy_s(e);
    kedge_meters_begin(&e->meters, now);
}

/* A trainer that was started since has used all that it has in this span. */
static void follow_trainer(struct kedge_client_work *w)
{
    struct kedge_energy_window *own = &w->h->energy->windows[w->index];
    if (own->pid != w->trainer.process.pid) {
        own->spent_ns += own->seen_ns > own->cpu_ns ? own->seen_ns - own->cpu_ns : 0;
        own->pid = w->trainer.process.pid;
        own->cpu_ns = own->seen_ns = 0;
    }
}

void kedgei_energy_window_open(struct kedge_client_work *w, const struct kedge_id *job)
{
    struct kedge_client_energy *e = w->h->energy;
    const uint64_t now = kedge_os_now_ns();
    bool shared = false;
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        shared = shared || e->windows[i].is_open;
        e->windows[i].shared = e->windows[i].is_open;
    }
    e->windows[w->index] =
        (struct kedge_energy_window){.is_open = true,
                                     .shared = shared,
                                     .job = *job,
                                     .begun_ns = now,
                                     .ticked_ns = now,
                                     .pid = w->trainer.process.pid,
                                     .cpu_ns = kedge_sys_process_cpu(w->trainer.process.pid)};
    if (!shared) {
        e->last_power_w = 0;
        begin_span(e, now);
    }
}

/* Processor seconds of each open training's trainer in this span, and of all. */
static double processor_s(struct kedge_client_energy *e, double ret[KEDGE_SITE_WORKS_MAX])
{
    double sum = 0;
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        struct kedge_energy_window *v = &e->windows[i];
        const uint64_t cpu = v->is_open ? kedge_sys_process_cpu(v->pid) : 0;
        v->seen_ns = cpu > v->seen_ns ? cpu : v->seen_ns;
        const uint64_t since = v->seen_ns > v->cpu_ns ? v->seen_ns - v->cpu_ns : 0;
        ret[i] = v->is_open ? (double)(v->spent_ns + since) / 1e9 : 0;
        sum += ret[i];
    }
    return sum;
}

static uint32_t open_count(const struct kedge_client_energy *e)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        count += e->windows[i].is_open;
    }
    return count;
}

/* Of one training everything; of several by processor time; where none is seen (trainers on a GPU that wait)
 * in equal parts, for somebody used it. */
static double part_of(double own, double all, uint32_t count)
{
    return count == 1 ? 1 : all > 0 ? own / all : 1.0 / count;
}

/* What all open trainings together took in the span, by the meters, else by the owner's model; of it their
 * share where that is wanted. */
static struct kedge_joules read_span(struct kedge_client_energy *e, const struct kedge_energy_policy *p,
                                     double seconds, double own_s, uint64_t now)
{
    struct kedge_joule_sum sum;
    double load, idle;
    kedge_meters_finish(&e->meters, now, &sum, &load);
    const double others = busy_s(e) - e->span_busy_s;
    struct kedge_joules j = kedge_joules_total(&sum);
    if (j.quality == KEDGE_QUALITY_UNKNOWN && p->max_w > 0 && p->meters) {
        const long processors = sysconf(_SC_NPROCESSORS_ONLN);
        const double of = processors > 0 ? (double)processors : 1;
        j = kedge_joules_model(p->idle_w, p->max_w, (load >= 0 ? load : own_s / seconds) / of, seconds);
    }
    if (p->share) { /* a trainer that has ended tells no processor time, which is not to say that it took none
                     */
        j = own_s > 0 ? kedge_joules_share(&j, p->idle_w, seconds, own_s, fmax(own_s, others), &idle)
                      : kedge_joules_unknown("the trainer's processor time is not known");
    }
    if (j.quality == KEDGE_QUALITY_UNKNOWN && seconds < short_span_s && e->last_power_w > 0) {
        const double joules = e->last_power_w * seconds;
        j = kedge_joules_modelled(joules, joules / 2, joules * 2);
    }
    e->last_power_w = j.quality != KEDGE_QUALITY_UNKNOWN && seconds > 0 ? j.joules / seconds : 0;
    return j;
}

static void end_span(struct kedge_client_energy *e, const struct kedge_energy_policy *p, uint64_t now)
{
    double own[KEDGE_SITE_WORKS_MAX];
    const double all = processor_s(e, own), seconds = (double)(now - e->span_ns) / 1e9;
    const uint32_t count = open_count(e);
    const struct kedge_joules whole = read_span(e, p, seconds, all, now);
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        struct kedge_energy_window *v = &e->windows[i];
        if (!v->is_open) {
            continue;
        }
        const double f = part_of(own[i], all, count);
        struct kedge_joules part = whole;
        if (count > 1 && whole.quality != KEDGE_QUALITY_UNKNOWN) {
            part = kedge_joules_modelled(whole.joules * f, whole.low * f * (1 - share_error),
                                         whole.high * fmin(1, f * (1 + share_error)));
        }
        kedge_joules_add(&v->sum, &part);
        v->cpu_ns = v->seen_ns;
        v->spent_ns = 0;
    }
}

bool kedgei_energy_window_tick(struct kedge_client_work *w, double *ret_used)
{
    struct kedge_client_energy *e = w->h->energy;
    struct kedge_energy_window *v = &e->windows[w->index];
    const uint64_t now = kedge_os_now_ns();
    double own[KEDGE_SITE_WORKS_MAX], span = 0;
    bool any = false;
    if (!v->is_open) {
        return false;
    }
    follow_trainer(w);
    const uint64_t period = kedge_meters_period_ns(&e->meters);
    if (now < v->ticked_ns + period) {
        return false;
    }
    v->ticked_ns = now;
    if (now >= e->ticked_ns + period) {
        e->ticked_ns = now;
        kedge_meters_tick(&e->meters, now);
    }
    for (uint32_t i = 0; i < e->meters.count; i++) {
        const struct kedge_meter *m = &e->meters.meters[i];
        any = any || (m->counts && m->seen > 1 && !m->broken);
        span += m->counts ? m->joules : 0;
    }
    span = any ? span : kedgei_energy_assumed_w(e, w->policy) * (double)(now - e->span_ns) / 1e9;
    const double all = processor_s(e, own);
    *ret_used = v->sum.measured + v->sum.modelled + span * part_of(own[w->index], all, open_count(e));
    return true;
}

struct kedge_joules kedgei_energy_window_close(struct kedge_client_work *w, double *ret_seconds,
                                               bool *ret_shared)
{
    struct kedge_client_energy *e = w->h->energy;
    struct kedge_energy_window *v = &e->windows[w->index];
    const uint64_t now = kedge_os_now_ns();
    follow_trainer(w);
    end_span(e, &w->policy->energy, now);
    v->is_open = false;
    *ret_seconds = (double)(now - v->begun_ns) / 1e9;
    *ret_shared = v->shared;
    if (open_count(e) > 0) {
        begin_span(e, now);
    }
    return kedge_joules_total(&v->sum);
}
