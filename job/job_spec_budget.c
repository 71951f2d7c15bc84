/* Key "budget": what the job's trainings may take in all, and what one update is charged.
 *
 * A charge follows from what the update's statement says, by one formula in binary64 for all three units, and
 * becomes a whole number of millionths, rounded up: sums of them are the same in any order. What a site says
 * is bounded before it counts, or one that lies could spend the whole budget by one statement: no update is
 * charged for more time than a round may take, nor for more power than `watts`. With that it is charged where
 * it states no joules, so that sites without a meter are not free. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "job/job_spec_impl.h"

static const double unit_most = 1e12, price_most = 1e6, watts_most = 1e6, watts_usual = 1000;
static const double millionth = 1e6;

static const char *const unit_names[] = {[KEDGE_JOB_BUDGET_NONE] = "none",
                                         [KEDGE_JOB_BUDGET_JOULES] = "joules",
                                         [KEDGE_JOB_BUDGET_SITE_MINUTES] = "site_minutes",
                                         [KEDGE_JOB_BUDGET_MONEY] = "money"};

const char *kedge_job_budget_unit_name(enum kedge_job_budget_unit unit)
{
    return unit_names[unit];
}

static int bad(struct kedge_diag *d, const char *text)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"budget\": %s", text);
}

/* *io stays where there is no such key. */
static int read_number(const json_t *o, const char *key, double least, double most, double *io,
                       struct kedge_diag *d)
{
    const json_t *v = json_object_get(o, key);
    double x = 0;
    if (!v) {
        return KEDGE_OK;
    }
    if (kedgei_json_real(v, &x) != KEDGE_OK || !(x >= least && x <= most)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"budget\": \"%s\": expected a number from %g to %g", key, least,
                              most);
    }
    *io = x;
    return KEDGE_OK;
}

static int check_names(const json_t *o, struct kedge_diag *d)
{
    static const char *const keys[] = {"joules",    "site_minutes",    "money",
                                       "per_joule", "per_site_minute", "watts"};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)o, name, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            is_known = is_known || strcmp(name, keys[i]) == 0;
        }
        if (!is_known) {
            (void)kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"budget\": unknown key \"%.60s\"", name);
            kedge_nearest_hint(
                d, name, keys, sizeof keys / sizeof keys[0],
                "its keys are joules, site_minutes, money, per_joule, per_site_minute and watts");
            return KEDGE_E_FORMAT;
        }
    }
    return KEDGE_OK;
}

static int read_unit(const json_t *o, struct kedge_job_budget *b, struct kedge_diag *d)
{
    uint32_t count = 0;
    for (enum kedge_job_budget_unit u = KEDGE_JOB_BUDGET_JOULES; u <= KEDGE_JOB_BUDGET_MONEY; u++) {
        if (json_object_get(o, unit_names[u])) {
            b->unit = u;
            count++;
        }
    }
    return count == 1
               ? KEDGE_OK
               : bad(d,
                     "expected one of \"joules\", \"site_minutes\" and \"money\", like {\"joules\": 50000}");
}

static int read_prices(const json_t *o, struct kedge_job_budget *b, struct kedge_diag *d)
{
    const bool has_price = json_object_get(o, "per_joule") || json_object_get(o, "per_site_minute");
    b->per_joule = b->unit == KEDGE_JOB_BUDGET_JOULES ? 1 : 0;
    b->per_site_minute = b->unit == KEDGE_JOB_BUDGET_SITE_MINUTES ? 1 : 0;
    if (b->unit != KEDGE_JOB_BUDGET_MONEY) {
        return has_price
                   ? bad(d,
                         "\"per_joule\" and \"per_site_minute\" are prices, of a budget of \"money\"; leave "
                         "them out")
                   : KEDGE_OK;
    }
    KEDGE_TRY(read_number(o, "per_joule", 0, price_most, &b->per_joule, d));
    KEDGE_TRY(read_number(o, "per_site_minute", 0, price_most, &b->per_site_minute, d));
    return b->per_joule > 0 || b->per_site_minute > 0
               ? KEDGE_OK
               : bad(d, "\"money\" needs a price above 0: \"per_joule\", \"per_site_minute\" or both");
}

int kedgei_spec_read_budget(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *o = json_object_get(root, "budget");
    struct kedge_job_budget b = {.unit = KEDGE_JOB_BUDGET_NONE};
    if (!o) {
        return KEDGE_OK;
    }
    if (!json_is_object(o)) {
        return bad(d, "expected an object like {\"joules\": 50000}");
    }
    KEDGE_TRY(check_names(o, d));
    KEDGE_TRY(read_unit(o, &b, d));
    KEDGE_TRY(read_number(o, unit_names[b.unit], 1 / millionth, unit_most, &b.most, d));
    KEDGE_TRY(read_prices(o, &b, d));
    if (b.per_joule > 0) {
        b.watts = watts_usual;
        KEDGE_TRY(read_number(o, "watts", 1 / millionth, watts_most, &b.watts, d));
    } else if (json_object_get(o, "watts")) {
        return bad(d, "\"watts\": nothing is charged for joules here; leave it out");
    }
    s->budget = b;
    return KEDGE_OK;
}

/* Longest time that an update is charged for: its round's, or where rounds overlap that of all in which it
 * may still count. */
static double seconds_most(const struct kedge_job_spec *s)
{
    const uint32_t rounds = s->strategy->asynchronous ? s->staleness_max + 1 : 1;
    return (double)s->round_timeout_s * (double)rounds;
}

static uint64_t millionths(double amount)
{
    const double whole = ceil(amount * millionth);
    return whole < 0x1p62 ? (uint64_t)whole : UINT64_C(1) << 62;
}

uint64_t kedge_job_spec_charge(const struct kedge_job_spec *spec, bool states_joules, double joules,
                               double seconds)
{
    const struct kedge_job_budget *b = &spec->budget;
    if (b->unit == KEDGE_JOB_BUDGET_NONE) {
        return 0;
    }
    const double time = seconds < seconds_most(spec) ? seconds : seconds_most(spec);
    const double energy_most = b->watts * time;
    const double energy = states_joules && joules < energy_most ? joules : energy_most;
    return millionths(b->per_joule * energy + b->per_site_minute * (time / 60));
}

uint64_t kedge_job_spec_budget(const struct kedge_job_spec *spec)
{
    return spec->budget.unit == KEDGE_JOB_BUDGET_NONE ? 0 : (uint64_t)floor(spec->budget.most * millionth);
}
