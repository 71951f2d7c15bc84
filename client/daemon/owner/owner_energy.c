/* kedge-client doctor: what the owner's energy rules come to on this device, now. An owner who forbids more
 * than was meant sees a device that never trains, so each rule that keeps it from that is named. */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "client/daemon/energy/energy_impl.h"
#include "client/daemon/owner/owner.h"
#include "client/energy/host/perf.h"
#include "common/base/mem.h"

/* By what joules are counted. */
static void check_meters(struct kedge_doctor *k, const struct kedge_client_energy *e,
                         const struct kedge_site_policy *p)
{
    const struct kedge_energy_policy *own = &p->energy;
    const bool budget = own->rules.joules_per_day > 0 || own->rules.joules_per_job > 0;
    char found[KEDGE_METER_HINT_MAX];
    bool any = false;
    kedge_meters_describe(&e->meters, found);
    for (uint32_t i = 0; i < e->meters.count; i++) {
        any = any || e->meters.meters[i].counts;
    }
    if (any || own->max_w > 0 || !budget) {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "energy", own->meters ? e->meters.hint : "", "meters: %s%s",
                         found, any || own->max_w <= 0 ? "" : "; joules are modelled by power_max_w");
        return;
    }
    kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "energy",
                     e->meters.hint[0] ? e->meters.hint
                                       : "say what this device draws: power_idle_w and power_max_w",
                     "no meter is read here: the budget in joules counts %.0f W, which are assumed, while it "
                     "trains",
                     kedgei_energy_assumed_w(e, p));
}

/* Bytes of the largest file of a binding's training data. */
static double largest(const char *dir, const json_t *data, const char **ret_name)
{
    static const char *const keys[] = {"path", "images"};
    const char *name;
    json_t *binding;
    double most = 0;
    json_object_foreach((json_t *)(uintptr_t)data, name, binding)
    {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            const char *path = json_string_value(json_object_get(json_object_get(binding, "train"), keys[i]));
            char whole[KEDGE_PATH_MAX];
            struct stat st;
            if (path && kedge_path_join(whole, path[0] == '/' ? "" : dir, path) == KEDGE_OK
                && stat(whole, &st) == 0 && (double)st.st_size > most) {
                most = (double)st.st_size;
                *ret_name = name;
            }
        }
    }
    return most;
}

/* Do rounds fit the budgets? By those that were measured; else by what reading the data alone takes. */
static void check_rounds(struct kedge_doctor *k, const char *dir, const struct kedge_client_energy *e,
                         const struct kedge_site_policy *p)
{
    const struct kedge_budget_rules *r = &p->energy.rules;
    const struct kedge_budget *b = &e->stored.budget;
    for (uint32_t i = 0; i < b->job_count; i++) {
        const struct kedge_budget_job *job = &b->jobs[i];
        const bool day = r->joules_per_day > 0 && job->rounds > 0 && job->mean > r->joules_per_day;
        const bool own = r->joules_per_job > 0 && job->joules + job->mean > r->joules_per_job;
        if (day || own) {
            kedge_doctor_say(k, day ? KEDGE_DOCTOR_FAIL : KEDGE_DOCTOR_WARN, "budget",
                             day ? "raise joules_per_day, or leave that job out"
                                 : "raise joules_per_job, or leave it at that",
                             "a round of job %s took %.0f J, and %s %.0f J", job->job.s, job->mean,
                             day ? "a whole day has" : "of the job's are left",
                             day ? r->joules_per_day : fmax(0, r->joules_per_job - job->joules));
        }
    }
    const char *name = "";
    const double bytes = largest(dir, p->data, &name), watts = kedgei_energy_assumed_w(e, p);
    const double least = kedgei_energy_reading_s(bytes) * watts;
    if (r->joules_per_day > 0 && least > r->joules_per_day) {
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "budget", "raise joules_per_day, or bind less data",
                         "reading the %.1f MB of \"%s\" alone may take %.0f J, and a day has %.0f J",
                         bytes / 1e6, name, least, r->joules_per_day);
    }
}

/* May it train now? */
static void check_now(struct kedge_doctor *k, const struct kedge_client_energy *e,
                      const struct kedge_site_policy *p)
{
    const struct kedge_budget_clock clock = kedgei_energy_clock();
    const struct kedge_id none = {""};
    struct kedge_budget b = e->stored.budget;
    struct kedge_surroundings s;
    char why[KEDGE_BUDGET_TEXT_MAX];
    kedge_surroundings_see(&e->meters, &s);
    const enum kedge_budget_answer a = kedge_budget_ask(&p->energy.rules, &b, &s, &clock);
    kedge_budget_text(a, &p->energy.rules, &b, &s, &clock, &none, 0, why);
    if (a == KEDGE_BUDGET_NO_CELSIUS || a == KEDGE_BUDGET_NO_BATTERY) {
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, "energy",
                         "take that key out of policy.json, or set energy.root",
                         "this device never trains: %s", why);
    } else if (a != KEDGE_BUDGET_YES) {
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "energy", "wait, or change policy.json and reload",
                         "it rests now: %s", why);
    } else {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "energy", "", "it may train now");
    }
}

void kedgei_owner_energy(struct kedge_doctor *k, const char *dir)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    struct kedge_site_host *h = kedge_mem_new(1, sizeof *h);
    struct kedge_client_energy *e = kedge_mem_new(1, sizeof *e);
    json_t *shown = NULL;
    int err = h && e ? kedge_path_real(dir, h->dir, &d) : KEDGE_E_NOMEM;
    if (!err && kedge_client_read_policy(h, &h->policy, &shown, &d) == KEDGE_OK) { /* else it was said */
        const struct kedge_energy_policy *p = &h->policy->energy;
        const struct kedge_meters_options options = {
            p->root, p->meters ? p->nvml : "", p->gpu,
            p->meters && strcmp(p->root, "/") == 0 ? &kedge_perf_linux : NULL};
        h->energy = e;
        err = kedge_meters_open(&e->meters, &options);
        e->meters.count = p->meters ? e->meters.count : 0;
        if (!err) {
            err = kedgei_energy_read(h, &d);
        }
        if (!err) {
            check_meters(k, e, h->policy);
            check_rounds(k, h->dir, e, h->policy);
            check_now(k, e, h->policy);
        }
        kedge_meters_close(&e->meters);
        kedge_client_policy_let_go(h->policy);
        json_decref(shown);
    }
    if (err) {
        kedge_doctor_fail(k, "energy", "run it as the user whose site it is", err, &d);
    }
    kedge_mem_free(e);
    kedge_mem_free(h);
}
