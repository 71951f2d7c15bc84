/* Whether a site trains now. Limits have a hysteresis of some percent or degrees, or a battery at its
 * floor would let training begin and end with every reading. What is not known is answered by a refusal
 * where the owner has set a limit on it: a floor is not kept by guessing. */
#include "client/energy/budget.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double hysteresis = 5, low_within = 20, grow_at = 0.8, grow_by = 1.5;

static struct kedge_budget_job *find(struct kedge_budget *b, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < b->job_count; i++) {
        if (kedge_id_eq(&b->jobs[i].job, job)) {
            return &b->jobs[i];
        }
    }
    return NULL;
}

static const struct kedge_budget_job *peek(const struct kedge_budget *b, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < b->job_count; i++) {
        if (kedge_id_eq(&b->jobs[i].job, job)) {
            return &b->jobs[i];
        }
    }
    return NULL;
}

/* The job's row, the last in the list from now on. */
static struct kedge_budget_job *use(struct kedge_budget *b, const struct kedge_id *job)
{
    struct kedge_budget_job row = {.job = *job}, *old = find(b, job);
    if (old) {
        row = *old;
    } else if (b->job_count == KEDGE_BUDGET_JOBS_MAX) {
        old = b->jobs;
    }
    if (old) {
        b->job_count--;
        memmove(old, old + 1, (size_t)(b->jobs + b->job_count - old) * sizeof *old);
    }
    b->jobs[b->job_count] = row;
    return &b->jobs[b->job_count++];
}

static struct kedge_budget_open *find_open(struct kedge_budget *b, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < b->open_count; i++) {
        if (kedge_id_eq(&b->open[i].job, job)) {
            return &b->open[i];
        }
    }
    return NULL;
}

static double reserved(const struct kedge_budget *b)
{
    double sum = 0;
    for (uint32_t i = 0; i < b->open_count; i++) {
        sum += b->open[i].reserved;
    }
    return sum;
}

static void turn_day(struct kedge_budget *b, const struct kedge_budget_clock *clock)
{
    if (clock->day > b->day) {
        b->day = clock->day;
        b->day_joules = 0;
    }
}

static bool in_hours(const struct kedge_budget_rules *rules, uint32_t minute)
{
    bool in = rules->hours_count == 0;
    for (uint32_t i = 0; i < rules->hours_count && !in; i++) {
        const uint32_t from = rules->hours[i].from, to = rules->hours[i].to;
        in = from < to ? minute >= from && minute < to : minute >= from || minute < to;
    }
    return in;
}

enum kedge_budget_answer kedge_budget_ask(const struct kedge_budget_rules *rules, struct kedge_budget *b,
                                          const struct kedge_surroundings *s,
                                          const struct kedge_budget_clock *clock)
{
    turn_day(b, clock);
    if (rules->battery_floor > 0 && s->knows_battery) {
        const double least = b->below_floor ? rules->battery_floor + hysteresis : rules->battery_floor;
        b->below_floor = s->battery_percent < fmin(least, 100);
    }
    if (rules->celsius_max > 0 && s->knows_celsius) {
        b->too_hot = s->celsius > (b->too_hot ? rules->celsius_max - hysteresis : rules->celsius_max);
    }
    if (rules->battery_floor > 0 && s->has_battery && !s->knows_battery) {
        return KEDGE_BUDGET_NO_BATTERY;
    }
    if (rules->battery_floor > 0 && b->below_floor) {
        return KEDGE_BUDGET_FLOOR;
    }
    if (rules->charging_only && s->has_battery && !s->charging) {
        return KEDGE_BUDGET_CHARGER;
    }
    if (!in_hours(rules, clock->minute)) {
        return KEDGE_BUDGET_HOURS;
    }
    if (rules->celsius_max > 0 && !s->knows_celsius) {
        return KEDGE_BUDGET_NO_CELSIUS;
    }
    return rules->celsius_max > 0 && b->too_hot ? KEDGE_BUDGET_HOT : KEDGE_BUDGET_YES;
}

enum kedge_battery_class kedge_battery_class(const struct kedge_budget_rules *rules,
                                             const struct kedge_surroundings *s)
{
    if (s->charging || !s->has_battery) {
        return KEDGE_BATTERY_MAINS;
    }
    if (!s->knows_battery) {
        return KEDGE_BATTERY_UNTOLD;
    }
    return s->battery_percent < rules->battery_floor + low_within ? KEDGE_BATTERY_LOW : KEDGE_BATTERY_ENOUGH;
}

/* Mean and two deviations: some 95 of 100 rounds stay below it if they are alike. With one round there is no
 * deviation yet, and half of the mean stands for it. */
double kedge_budget_upper(const struct kedge_budget *b, const struct kedge_id *job, double first)
{
    const struct kedge_budget_job *row = peek(b, job);
    if (!row || row->rounds == 0) {
        return first;
    }
    const double deviation = row->rounds > 1 ? sqrt(row->squares / (double)(row->rounds - 1)) : row->mean / 2;
    return row->mean + 2 * deviation;
}

/* What a round is held against a budget with, of which nothing is used or reserved yet: what rounds of the
 * job took on average. Two deviations above it, or an estimate before anything was measured, would keep the
 * site from ever learning what a round takes. */
static double cautious(double upper, double budget, double mean)
{
    return budget > 0 && mean <= budget ? fmin(upper, budget) : upper;
}

enum kedge_budget_answer kedge_budget_begin(const struct kedge_budget_rules *rules, struct kedge_budget *b,
                                            const struct kedge_id *job, double first,
                                            const struct kedge_budget_clock *clock)
{
    turn_day(b, clock);
    const struct kedge_budget_job *row = peek(b, job);
    const double used = row ? row->joules : 0, mean = row && row->rounds > 0 ? row->mean : 0;
    const double day = rules->joules_per_day, own = rules->joules_per_job;
    const double upper = cautious(cautious(kedge_budget_upper(b, job, first), day, mean), own, mean);
    if ((day > 0 && mean > day) || (own > 0 && mean > own)) {
        return KEDGE_BUDGET_TOO_DEAR;
    }
    if (own > 0 && used + upper > own) {
        return KEDGE_BUDGET_JOB;
    }
    if (day > 0 && b->day_joules + upper > day) {
        return KEDGE_BUDGET_DAY;
    }
    bool is_full = b->open_count == KEDGE_BUDGET_OPEN_MAX || find_open(b, job);
    bool beyond = day > 0 && b->day_joules + reserved(b) + upper > day;
    if (is_full || beyond) {
        return KEDGE_BUDGET_RESERVED;
    }
    b->open[b->open_count++] = (struct kedge_budget_open){*job, upper};
    return KEDGE_BUDGET_YES;
}

/* A round that uses more than was reserved keeps a reservation ahead of what it has used, in steps of half as
 * much again, so that it is written a few times and not at each look. */
bool kedge_budget_grow(struct kedge_budget *b, const struct kedge_id *job, double used)
{
    struct kedge_budget_open *open = find_open(b, job);
    if (!open || !(used > grow_at * open->reserved)) {
        return false;
    }
    open->reserved = used * grow_by / grow_at;
    return true;
}

static void forget(struct kedge_budget *b, struct kedge_budget_open *open)
{
    b->open_count--;
    memmove(open, open + 1, (size_t)(b->open + b->open_count - open) * sizeof *open);
    b->open[b->open_count] = (struct kedge_budget_open){.reserved = 0};
}

void kedge_budget_cancel(struct kedge_budget *b, const struct kedge_id *job)
{
    struct kedge_budget_open *open = find_open(b, job);
    if (open) {
        forget(b, open);
    }
}

/* The open round ends. The mean and the sum of squares are kept by Welford's recurrence (1962), which does
 * not lose the deviation in the difference of two large sums. What is only assumed (a crash, no meter) counts
 * as used but teaches nothing. */
static void charge(struct kedge_budget *b, struct kedge_budget_open *open, double joules, bool is_known)
{
    struct kedge_budget_job *row = use(b, &open->job);
    b->day_joules += joules;
    row->joules += joules;
    if (is_known) { /* Welford */
        const double off = joules - row->mean;
        row->rounds++;
        row->mean += off / (double)row->rounds;
        row->squares += off * (joules - row->mean);
    }
    forget(b, open);
}

void kedge_budget_end(struct kedge_budget *b, const struct kedge_id *job, const struct kedge_joules *used)
{
    struct kedge_budget_open *open = find_open(b, job);
    if (open) {
        const bool known = used->quality != KEDGE_QUALITY_UNKNOWN;
        charge(b, open, known ? used->joules : open->reserved, known);
    }
}

/* Rounds that were open when the process died have used something, at most what was reserved: it counts as
 * used. */
void kedge_budget_recover(struct kedge_budget *b)
{
    for (uint32_t i = b->open_count; i > 0; i--) {
        charge(b, b->open, b->open[0].reserved, false);
    }
}

uint32_t kedge_budget_next_hour(const struct kedge_budget_rules *rules, uint32_t minute)
{
    const uint32_t day = 24 * 60;
    uint32_t least = day;
    for (uint32_t i = 0; i < rules->hours_count; i++) {
        const uint32_t until = (rules->hours[i].from + day - minute % day) % day;
        least = until < least ? until : least;
    }
    return (minute + least) % day;
}

static void hours_text(const struct kedge_budget_rules *rules, uint32_t minute,
                       char out[KEDGE_BUDGET_TEXT_MAX])
{
    const uint32_t next = kedge_budget_next_hour(rules, minute);
    int n = snprintf(out, KEDGE_BUDGET_TEXT_MAX, "it is %02u:%02u, and its owner permits work from",
                     minute / 60, minute % 60);
    for (uint32_t i = 0; i < rules->hours_count && n > 0 && n < KEDGE_BUDGET_TEXT_MAX; i++) {
        const uint32_t from = rules->hours[i].from, to = rules->hours[i].to;
        n += snprintf(out + n, (size_t)(KEDGE_BUDGET_TEXT_MAX - n), "%s %02u:%02u to %02u:%02u",
                      i > 0 ? " and" : "", from / 60, from % 60, to / 60, to % 60);
    }
    if (n > 0 && n < KEDGE_BUDGET_TEXT_MAX) {
        snprintf(out + n, (size_t)(KEDGE_BUDGET_TEXT_MAX - n), " (hours); it begins again at %02u:%02u",
                 next / 60, next % 60);
    }
}

static void too_dear_text(const struct kedge_budget_rules *rules, double mean,
                          char out[KEDGE_BUDGET_TEXT_MAX])
{
    const bool day = rules->joules_per_day > 0 && mean > rules->joules_per_day;
    snprintf(out, KEDGE_BUDGET_TEXT_MAX, "a round of this job takes %.0f J, and %s has %.0f J (%s)", mean,
             day ? "a whole day" : "the whole job", day ? rules->joules_per_day : rules->joules_per_job,
             day ? "joules_per_day" : "joules_per_job");
}

void kedge_budget_text(enum kedge_budget_answer a, const struct kedge_budget_rules *rules,
                       const struct kedge_budget *b, const struct kedge_surroundings *s,
                       const struct kedge_budget_clock *clock, const struct kedge_id *job, double first,
                       char out[KEDGE_BUDGET_TEXT_MAX])
{
    const struct kedge_budget_job *row = peek(b, job);
    const double used = row ? row->joules : 0, upper = kedge_budget_upper(b, job, first);
    const size_t size = KEDGE_BUDGET_TEXT_MAX;
    out[0] = '\0';
    switch (a) {
    case KEDGE_BUDGET_YES:
        return;
    case KEDGE_BUDGET_FLOOR:
        snprintf(out, size,
                 "the battery has %.0f %%; below %.0f %% (battery_floor) nothing is begun until %.0f %%",
                 s->battery_percent, rules->battery_floor, fmin(100, rules->battery_floor + hysteresis));
        return;
    case KEDGE_BUDGET_NO_BATTERY:
        snprintf(out, size, "battery_floor is set, and the battery cannot be read");
        return;
    case KEDGE_BUDGET_CHARGER:
        snprintf(out, size, "charging_only is set, and the battery is not charging");
        return;
    case KEDGE_BUDGET_HOURS:
        hours_text(rules, clock->minute, out);
        return;
    case KEDGE_BUDGET_HOT:
        snprintf(out, size, "%.0f °C; above %.0f °C (temperature_max_c) nothing is begun until %.0f °C",
                 s->celsius, rules->celsius_max, rules->celsius_max - hysteresis);
        return;
    case KEDGE_BUDGET_NO_CELSIUS:
        snprintf(out, size, "temperature_max_c is set, and nothing here tells the temperature");
        return;
    case KEDGE_BUDGET_JOB:
        snprintf(out, size,
                 "this job has used %.0f J of %.0f J (joules_per_job), and a round may need %.0f J", used,
                 rules->joules_per_job, upper);
        return;
    case KEDGE_BUDGET_DAY:
        snprintf(out, size, "today %.0f J of %.0f J (joules_per_day) are used, and a round may need %.0f J",
                 b->day_joules, rules->joules_per_day, upper);
        return;
    case KEDGE_BUDGET_RESERVED:
        snprintf(out, size,
                 "today %.0f J of %.0f J (joules_per_day) are used, %.0f J are reserved for what runs, and a "
                 "round may need %.0f J",
                 b->day_joules, rules->joules_per_day, reserved(b), upper);
        return;
    case KEDGE_BUDGET_TOO_DEAR:
        too_dear_text(rules, row ? row->mean : 0, out);
        return;
    }
}
