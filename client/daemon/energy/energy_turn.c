/* The loop's part: when the site rests, and what its owner is shown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/daemon/energy/energy_impl.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"

static const uint64_t look_every_ns = 1000000000u;

/* Unknown is null, never 0. */
static json_t *joules_json(double v, bool is_known)
{
    char text[KEDGE_REAL_MAX];
    if (!is_known || !isfinite(v)) {
        return json_null();
    }
    kedge_real_encode(floor(v + 0.5), text);
    return json_string(text);
}

static json_t *or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static bool any_counts(const struct kedge_client_energy *e)
{
    bool any = false;
    for (uint32_t i = 0; i < e->meters.count; i++) {
        any = any || e->meters.meters[i].counts;
    }
    return any;
}

/* By what a budget in joules is kept. */
static json_t *kept_by(const struct kedge_client_energy *e)
{
    char text[KEDGE_BUDGET_TEXT_MAX];
    if (any_counts(e) || e->policy.max_w > 0) {
        return json_string(any_counts(e) ? "meters" : "power_max_w");
    }
    snprintf(text, sizeof text,
             "%.0f W that are assumed while it trains: no meter is read here; power_idle_w and power_max_w "
             "would tell what it draws",
             e->assumed_w);
    return json_string(text);
}

static json_t *status_of(const struct kedge_client_energy *e)
{
    char meters[KEDGE_METER_HINT_MAX], sum[KEDGE_JOULES_TEXT_MAX];
    const struct kedge_joule_sum *s = &e->sum;
    const bool any = s->measured_count + s->modelled_count + s->unknown_count > 0;
    const bool budget = e->policy.rules.joules_per_day > 0 || e->policy.rules.joules_per_job > 0;
    kedge_meters_describe(&e->meters, meters);
    kedge_joules_text(s, sum);
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:i,s:o,s:o,s:o,s:o,s:o,s:o}", "meters", meters, "hint",
                     or_null(e->meters.hint), "since_start", any ? json_string(sum) : json_null(),
                     "measured_joules", joules_json(s->measured, s->measured_count > 0), "modelled_joules",
                     joules_json(s->modelled, s->modelled_count > 0), "unknown_tasks", (int)s->unknown_count,
                     "last_joules",
                     joules_json(e->last.joules, any && e->last.quality != KEDGE_QUALITY_UNKNOWN),
                     "last_read", or_null(e->last_how), "last_choice", or_null(e->last_choice),
                     "today_joules", joules_json(e->budget.day_joules, budget), "round_joules",
                     joules_json(e->last_upper, budget && e->last_upper > 0), "budget_by",
                     budget ? kept_by(e) : json_null());
}

static bool has_rules(const struct kedge_budget_rules *r)
{
    return r->battery_floor > 0 || r->charging_only || r->hours_count > 0 || r->celsius_max > 0
           || r->joules_per_day > 0;
}

/* Why nothing may be begun; "" when it may. */
static void ask(struct kedge_client_energy *e, char out[KEDGE_BUDGET_TEXT_MAX])
{
    const struct kedge_budget_clock clock = kedgei_energy_clock();
    struct kedge_surroundings s;
    const struct kedge_id none = {""};
    kedge_surroundings_see(&e->meters, &s);
    pthread_mutex_lock(&e->lock);
    e->battery = e->policy.tells_battery ? kedge_battery_class(&e->policy.rules, &s) : KEDGE_BATTERY_UNTOLD;
    const enum kedge_budget_answer a = kedge_budget_ask(&e->policy.rules, &e->budget, &s, &clock);
    kedge_budget_text(a, &e->policy.rules, &e->budget, &s, &clock, &none, 0, out);
    if (a == KEDGE_BUDGET_YES && e->refused_day > 0 && clock.day <= e->refused_day
        && e->policy.rules.joules_per_day > 0) {
        memcpy(out, e->refused, KEDGE_BUDGET_TEXT_MAX);
    }
    pthread_mutex_unlock(&e->lock);
}

/* The reason is shown whenever it changes, the core is told only when resting begins or ends. A daemon that
 * is finishing rests until its end. */
static void rest(struct kedge_site_host *h, const char *why)
{
    struct kedge_client_energy *e = h->energy;
    struct kedge_site_service *s = &h->service;
    const bool rests = why[0] != '\0';
    if (strcmp(s->waits_for, why) != 0) {
        s->changed = true;
        snprintf(s->waits_for, sizeof s->waits_for, "%s", why);
    }
    if (rests != e->rests && !s->status.finishing) { /* then it rests for good */
        struct kedge_site_event ev = {.type = KEDGE_SITE_EV_REST, .rest = rests};
        e->rests = rests;
        kedge_log(KEDGE_LOG_INFO, rests ? "resting" : "rested", "%s", rests ? why : "work is taken again");
        kedge_client_step(h, &ev);
    }
}

void kedge_client_energy_turn(struct kedge_site_host *h)
{
    struct kedge_client_energy *e = h->energy;
    const uint64_t now = kedge_os_now_ns();
    char why[KEDGE_BUDGET_TEXT_MAX] = "";
    pthread_mutex_lock(&e->lock);
    const struct kedge_idle_rules *idle = &h->service.idle.rules;
    const bool idles = idle->cpu_percent > 0 || idle->input_s > 0;
    const bool rules = has_rules(&e->policy.rules) || idles || e->policy.tells_battery, stale = !e->shown;
    if (stale) {
        json_decref(e->status);
        e->status = status_of(e);
        e->shown = true;
    }
    pthread_mutex_unlock(&e->lock);
    if (stale) {
        h->service.status.energy = e->status;
        h->service.changed = true;
    }
    if (now < e->look_ns && !stale) {
        return;
    }
    e->look_ns = rules ? now + look_every_ns : KEDGE_TIME_NEVER;
    e->battery = KEDGE_BATTERY_UNTOLD;
    if (rules) {
        ask(e, why);
    }
    if (idles && !why[0]) {
        _Static_assert((int)KEDGE_IDLE_TEXT_MAX <= (int)KEDGE_BUDGET_TEXT_MAX, "a reason fits");
        kedge_idle_ask(&h->service.idle, "/", now, why);
    }
    rest(h, why);
}

enum kedge_battery_class kedge_client_energy_tells(const struct kedge_site_host *h)
{
    return h->energy ? h->energy->battery : KEDGE_BATTERY_UNTOLD;
}

uint64_t kedge_client_energy_deadline_ns(const struct kedge_site_host *h)
{
    return h->energy->look_ns;
}
