/* May this site train now? Budgets in joules, a floor for the battery, chargers, hours, temperature: from
 * what is known, what is read and the clock. Pure. What a round may use is reserved before it begins and kept
 * durably, so that a crash forgets nothing: a budget is exceeded by at most one round. Rounds of several jobs
 * may be open at once; what is reserved for all of them counts. */
#ifndef KEDGE_CLIENT_ENERGY_BUDGET_H
#define KEDGE_CLIENT_ENERGY_BUDGET_H

#include <stdint.h>

#include "client/energy/joules.h"
#include "common/base/text.h"

enum {
    KEDGE_BUDGET_HOURS_MAX = 4,
    KEDGE_BUDGET_JOBS_MAX = 16,
    KEDGE_BUDGET_OPEN_MAX = 4,
    KEDGE_BUDGET_TEXT_MAX = 200
};

/* The owner's; 0 or none: no such limit. */
struct kedge_budget_rules {
    double joules_per_job, joules_per_day;
    double battery_floor; /* percent: below it nothing is begun, until 5 above it */
    bool charging_only;
    double celsius_max; /* above it nothing is begun, until 5 below it */
    uint32_t hours_count;
    struct {
        uint32_t from, to; /* minutes of the local day; from > to: over midnight */
    } hours[KEDGE_BUDGET_HOURS_MAX];
};

struct kedge_surroundings {
    bool has_battery, knows_battery, charging, knows_celsius;
    double battery_percent, celsius;
};

struct kedge_budget_clock {
    int64_t day;     /* local, since 1970 */
    uint32_t minute; /* of that day */
};

/* Of one job. */
struct kedge_budget_job {
    struct kedge_id job;
    double joules;   /* used so far */
    uint64_t rounds; /* … in so many rounds, whose joules have this mean and sum of squares about it */
    double mean, squares;
};

/* What is remembered; all zero at first. */
struct kedge_budget {
    int64_t day; /* the newest seen: a clock that jumps back opens no new one */
    double day_joules;
    uint32_t job_count; /* the oldest is forgotten first */
    struct kedge_budget_job jobs[KEDGE_BUDGET_JOBS_MAX];
    uint32_t open_count; /* rounds that have begun, each of another job */
    struct kedge_budget_open {
        struct kedge_id job;
        double reserved; /* it may use so much, which counts as used if nobody says otherwise */
    } open[KEDGE_BUDGET_OPEN_MAX];
    bool below_floor, too_hot;
};

enum kedge_budget_answer {
    KEDGE_BUDGET_YES,
    KEDGE_BUDGET_FLOOR,
    KEDGE_BUDGET_NO_BATTERY, /* there is one, and it cannot be read */
    KEDGE_BUDGET_CHARGER,
    KEDGE_BUDGET_HOURS,
    KEDGE_BUDGET_HOT,
    KEDGE_BUDGET_NO_CELSIUS, /* a limit, and nothing tells the temperature */
    KEDGE_BUDGET_JOB,
    KEDGE_BUDGET_DAY,
    KEDGE_BUDGET_RESERVED, /* there would be enough, were it not reserved for rounds that are open */
    KEDGE_BUDGET_TOO_DEAR, /* a round of this job takes more than any day, or the job, has */
};

/* May anything be begun? Floors have 5 points of hysteresis, hence `b` changes. */
enum kedge_budget_answer kedge_budget_ask(const struct kedge_budget_rules *rules, struct kedge_budget *b,
                                          const struct kedge_surroundings *s,
                                          const struct kedge_budget_clock *clock);
/* … a round of this job? `first` is what its first round may use, in joules, as far as can be said before one
 * was measured; at least 0. With YES its upper estimate is reserved: keep `b` durably before anything is
 * used. No round of this job is open. An estimate is caution and not knowledge: where all of a budget is
 * left, only rounds that were measured to take more than all of it are refused. */
enum kedge_budget_answer kedge_budget_begin(const struct kedge_budget_rules *rules, struct kedge_budget *b,
                                            const struct kedge_id *job, double first,
                                            const struct kedge_budget_clock *clock);
/* So much has been used by the job's open round until now: true when more must be reserved (`b` has it), to
 * be kept durably before the round goes on. */
bool kedge_budget_grow(struct kedge_budget *b, const struct kedge_id *job, double used);
/* The job's round has ended; unknown joules count as what was reserved. */
void kedge_budget_end(struct kedge_budget *b, const struct kedge_id *job, const struct kedge_joules *used);
/* … has not begun after all: nothing was used. */
void kedge_budget_cancel(struct kedge_budget *b, const struct kedge_id *job);
/* After a restart: rounds that never ended have used what was reserved. */
void kedge_budget_recover(struct kedge_budget *b);
/* What may be told of the battery (coordinator/core/coord.h has the same numbers): 0 nothing, 1 low (within
 * 20 points of the floor), 2 enough, 3 on mains or without a battery. */
enum kedge_battery_class {
    KEDGE_BATTERY_UNTOLD,
    KEDGE_BATTERY_LOW,
    KEDGE_BATTERY_ENOUGH,
    KEDGE_BATTERY_MAINS
};
enum kedge_battery_class kedge_battery_class(const struct kedge_budget_rules *rules,
                                             const struct kedge_surroundings *s);
/* Mean and 2 deviations of the job's rounds; `first` where there is none. */
double kedge_budget_upper(const struct kedge_budget *b, const struct kedge_id *job, double first);
/* Why not, with the numbers and the keys of policy.json that say so; "" for YES. */
void kedge_budget_text(enum kedge_budget_answer a, const struct kedge_budget_rules *rules,
                       const struct kedge_budget *b, const struct kedge_surroundings *s,
                       const struct kedge_budget_clock *clock, const struct kedge_id *job, double first,
                       char out[KEDGE_BUDGET_TEXT_MAX]);
/* When the hours that the owner permits begin next, in minutes of the local day. There are such rules, and it
 * is none of them now. */
uint32_t kedge_budget_next_hour(const struct kedge_budget_rules *rules, uint32_t minute);

#endif
