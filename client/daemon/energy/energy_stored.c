/* SITE/energy: what was used of budgets, and what was learnt of batches and power, as JSON. Pure.
 *
 * Real numbers are written as texts that read back as the same bits (kedge_real_encode): a mean that changed
 * a little with each start would let batches wander. All that is read is checked as input, and a file that is
 * damaged is an error that names it and not a fresh start, since a budget that is forgotten is a budget that
 * is not kept. */
#include "client/daemon/energy/energy_stored.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "common/base/text.h"
#include "common/json/json.h"

/* ---- writing ---- */

static json_t *real(double v)
{
    char text[KEDGE_REAL_MAX];
    kedge_real_encode(isfinite(v) ? v : 0, text);
    return json_string(text);
}

static json_t *budget_json(const struct kedge_budget *b)
{
    json_t *jobs = json_array();
    for (uint32_t i = 0; i < b->job_count; i++) {
        const struct kedge_budget_job *j = &b->jobs[i];
        json_array_append_new(jobs, json_pack("{s:s,s:o,s:I,s:o,s:o}", "job", j->job.s, "joules",
                                              real(j->joules), "rounds", (json_int_t)j->rounds, "mean",
                                              real(j->mean), "squares", real(j->squares)));
    }
    json_t *o = json_pack("{s:I,s:o,s:b,s:b,s:o}", "day", (json_int_t)b->day, "joules", real(b->day_joules),
                          "below_floor", (int)b->below_floor, "too_hot", (int)b->too_hot, "jobs", jobs);
    json_t *open = b->open_count > 0 ? json_array() : NULL;
    for (uint32_t i = 0; i < b->open_count; i++) {
        json_array_append_new(
            open, json_pack("{s:s,s:o}", "job", b->open[i].job.s, "reserved", real(b->open[i].reserved)));
    }
    if (open) {
        json_object_set_new(o, "open", open);
    }
    return o;
}

static json_t *size_json(const struct kedge_energy_task *t, uint32_t i)
{
    const struct kedge_batch_size *s = &t->rounds.batch.sizes[i];
    json_t *costs = json_array(), *levels = json_array();
    for (uint32_t k = 0; k < s->plays && k < KEDGE_BATCH_WINDOW; k++) {
        json_array_append_new(costs, real(s->cost[k]));
    }
    for (uint32_t k = 0; k < t->profiles[i].count; k++) {
        const struct kedge_profile_level *l = &t->profiles[i].levels[k];
        json_array_append_new(levels, json_pack("[o,i,o,o]", real(l->level), (int)l->windows,
                                                real(l->seconds), real(l->joules)));
    }
    return json_pack("{s:i,s:i,s:b,s:o,s:o,s:o}", "size", (int)s->size, "plays", (int)s->plays, "fails",
                     (int)s->fails, "speed", real(t->rounds.speed[i]), "costs", costs, "levels", levels);
}

static json_t *task_json(const struct kedge_energy_task *t)
{
    const struct kedge_rounds *r = &t->rounds;
    const struct kedge_batch_options *o = &r->batch.options;
    char key[2 * sizeof r->key + 1];
    json_t *sizes = json_array();
    for (uint32_t i = 0; i < r->batch.count; i++) {
        json_array_append_new(sizes, size_json(t, i));
    }
    kedge_hex_encode(r->key, sizeof r->key, key);
    return json_pack("{s:s,s:s,s:b,s:b,s:i,s:I,s:I,s:o,s:[o,o,o,o],s:[i,o,o],s:o,s:o}", "key", key, "quality",
                     kedge_quality_name(r->quality), "has_costs", (int)r->has_costs, "again", (int)r->again,
                     "start", (int)r->batch.start, "runs", (json_int_t)r->batch.runs, "reached",
                     (json_int_t)r->batch.reached, "spent", real(r->batch.spent), "options", real(o->stop),
                     real(o->explore), real(o->far_share), real(o->far_worse), "noise", (int)r->noise.pairs,
                     real(r->noise.s), real(r->noise.g2), "samples", real(r->samples), "sizes", sizes);
}

static int put_chunk(const char *text, size_t len, void *out)
{
    kedge_buf_put(out, text, len);
    return ((struct kedge_buf *)out)->err ? -1 : 0;
}

int kedge_energy_stored_encode(const struct kedge_energy_stored *s, struct kedge_buf *out)
{
    json_t *tasks = json_array();
    for (uint32_t i = 0; i < s->task_count; i++) {
        json_array_append_new(tasks, task_json(&s->tasks[i]));
    }
    json_t *o = json_pack("{s:o,s:o}", "budget", budget_json(&s->budget), "tasks", tasks);
    const int bad = o ? json_dump_callback(o, put_chunk, out, JSON_COMPACT) : -1;
    json_decref(o);
    return bad ? (out->err ? out->err : KEDGE_E_NOMEM) : KEDGE_OK;
}

/* ---- reading ---- */

static bool get_real(const json_t *v, double least, double *ret)
{
    const char *text = json_string_value(v);
    return text && kedge_real_decode(kedge_view_str(text), ret) == KEDGE_OK && *ret >= least;
}

static bool get_whole(const json_t *v, uint64_t most, uint64_t *ret)
{
    const json_int_t n = json_integer_value(v);
    *ret = (uint64_t)n;
    return json_is_integer(v) && n >= 0 && (uint64_t)n <= most;
}

static bool get_bool(const json_t *o, const char *key, bool *ret)
{
    const json_t *v = json_object_get(o, key);
    *ret = json_is_true(v);
    return json_is_boolean(v);
}

static bool get_id(const json_t *o, const char *key, struct kedge_id *ret)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text && kedge_id_from(kedge_view_str(text), ret) == KEDGE_OK;
}

/* One, or a list of rounds that are open, each of another job. */
static bool get_open(const json_t *v, struct kedge_budget *b)
{
    const size_t count = json_is_array(v) ? json_array_size(v) : v ? 1 : 0;
    bool ok = count <= KEDGE_BUDGET_OPEN_MAX;
    for (size_t i = 0; ok && i < count; i++) {
        const json_t *row = json_is_array(v) ? json_array_get(v, i) : v;
        struct kedge_budget_open *open = &b->open[i];
        ok = get_id(row, "job", &open->job) && get_real(json_object_get(row, "reserved"), 0, &open->reserved);
        for (size_t k = 0; k < i && ok; k++) {
            ok = !kedge_id_eq(&b->open[k].job, &open->job);
        }
        b->open_count += ok;
    }
    return ok;
}

static bool get_budget(const json_t *o, struct kedge_budget *b)
{
    const json_t *jobs = json_object_get(o, "jobs");
    uint64_t day = 0;
    bool ok = get_whole(json_object_get(o, "day"), 100000000, &day)
              && get_real(json_object_get(o, "joules"), 0, &b->day_joules)
              && get_bool(o, "below_floor", &b->below_floor) && get_bool(o, "too_hot", &b->too_hot)
              && json_is_array(jobs) && json_array_size(jobs) <= KEDGE_BUDGET_JOBS_MAX;
    b->day = (int64_t)day;
    for (size_t i = 0; ok && i < json_array_size(jobs); i++) {
        const json_t *row = json_array_get(jobs, i);
        struct kedge_budget_job *j = &b->jobs[b->job_count++];
        ok = get_id(row, "job", &j->job) && get_real(json_object_get(row, "joules"), 0, &j->joules)
             && get_whole(json_object_get(row, "rounds"), INT64_MAX, &j->rounds)
             && get_real(json_object_get(row, "mean"), 0, &j->mean)
             && get_real(json_object_get(row, "squares"), 0, &j->squares);
    }
    return ok && get_open(json_object_get(o, "open"), b);
}

static bool get_levels(const json_t *list, struct kedge_profile *p)
{
    bool ok = json_is_array(list) && json_array_size(list) <= KEDGE_PROFILE_LEVELS_MAX;
    for (size_t i = 0; ok && i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        struct kedge_profile_level *l = &p->levels[p->count++];
        uint64_t windows = 0;
        ok = get_real(json_array_get(row, 0), 0, &l->level)
             && get_whole(json_array_get(row, 1), 1000000000, &windows)
             && get_real(json_array_get(row, 2), 0, &l->seconds)
             && get_real(json_array_get(row, 3), 0, &l->joules)
             && (windows == 0 || (l->seconds > 0 && l->joules > 0));
        l->windows = (uint32_t)windows;
    }
    return ok;
}

static bool get_size(const json_t *o, struct kedge_energy_task *t, uint32_t i)
{
    struct kedge_batch_size *s = &t->rounds.batch.sizes[i];
    const json_t *costs = json_object_get(o, "costs");
    uint64_t size = 0, plays = 0;
    bool ok = get_whole(json_object_get(o, "size"), 65536, &size) && size >= 1
              && get_whole(json_object_get(o, "plays"), 2 * KEDGE_BATCH_WINDOW, &plays)
              && get_bool(o, "fails", &s->fails)
              && get_real(json_object_get(o, "speed"), 0, &t->rounds.speed[i]) && json_is_array(costs)
              && json_array_size(costs) == (plays < KEDGE_BATCH_WINDOW ? plays : KEDGE_BATCH_WINDOW);
    s->size = (uint32_t)size;
    s->plays = (uint32_t)plays;
    ok = ok && (i == 0 || s->size > s[-1].size);
    for (size_t k = 0; ok && k < json_array_size(costs); k++) {
        ok = get_real(json_array_get(costs, k), 0, &s->cost[k]) && s->cost[k] > 0;
    }
    return ok && get_levels(json_object_get(o, "levels"), &t->profiles[i]);
}

static bool get_quality(const json_t *v, enum kedge_quality *ret)
{
    for (int q = 0; q <= KEDGE_QUALITY_UNKNOWN; q++) {
        if (json_is_string(v)
            && strcmp(json_string_value(v), kedge_quality_name((enum kedge_quality)q)) == 0) {
            *ret = (enum kedge_quality)q;
            return true;
        }
    }
    return false;
}

/* The options are the bandit's own to judge: they begin it, and what it refuses is damaged. */
static bool get_bandit(const json_t *o, struct kedge_energy_task *t)
{
    const json_t *sizes = json_object_get(o, "sizes"), *options = json_object_get(o, "options");
    struct kedge_batch_options given = {.stop = 0};
    const size_t count = json_array_size(sizes);
    uint32_t plain[KEDGE_BATCH_SIZES_MAX];
    uint64_t start = 0;
    bool ok = json_is_array(sizes) && count >= 1 && count <= KEDGE_BATCH_SIZES_MAX
              && get_whole(json_object_get(o, "start"), count - 1, &start)
              && get_real(json_array_get(options, 0), 0, &given.stop)
              && get_real(json_array_get(options, 1), 0, &given.explore)
              && get_real(json_array_get(options, 2), 0, &given.far_share)
              && get_real(json_array_get(options, 3), 0, &given.far_worse);
    for (uint32_t i = 0; ok && i < count; i++) {
        plain[i] = (uint32_t)json_integer_value(json_object_get(json_array_get(sizes, i), "size"));
    }
    ok = ok
         && kedge_rounds_init(&t->rounds, &given, plain, (uint32_t)count, (uint32_t)start, NULL) == KEDGE_OK;
    for (uint32_t i = 0; ok && i < count; i++) {
        ok = get_size(json_array_get(sizes, i), t, i);
    }
    return ok;
}

static bool get_task(const json_t *o, struct kedge_energy_task *t)
{
    struct kedge_rounds *r = &t->rounds;
    const char *key = json_string_value(json_object_get(o, "key"));
    const json_t *noise = json_object_get(o, "noise");
    uint64_t pairs = 0;
    const bool ok =
        get_bandit(o, t) && key && kedge_hex_decode(kedge_view_str(key), r->key, sizeof r->key) == KEDGE_OK
        && get_quality(json_object_get(o, "quality"), &r->quality) && get_bool(o, "has_costs", &r->has_costs)
        && get_bool(o, "again", &r->again) && get_real(json_object_get(o, "samples"), 0, &r->samples)
        && get_whole(json_object_get(o, "runs"), INT64_MAX, &r->batch.runs)
        && get_whole(json_object_get(o, "reached"), r->batch.runs, &r->batch.reached)
        && get_real(json_object_get(o, "spent"), 0, &r->batch.spent)
        && get_whole(json_array_get(noise, 0), 1000000000, &pairs)
        && get_real(json_array_get(noise, 1), -1e300, &r->noise.s)
        && get_real(json_array_get(noise, 2), -1e300, &r->noise.g2);
    r->noise.pairs = (uint32_t)pairs;
    bool played = false;
    for (uint32_t i = 0; ok && i < r->batch.count; i++) {
        played = played || r->batch.sizes[i].plays > 0;
    }
    return ok && (played || r->batch.reached == 0);
}

int kedge_energy_stored_decode(struct kedge_view text, struct kedge_energy_stored *ret,
                               struct kedge_diag *reterr)
{
    json_t *o = NULL;
    memset(ret, 0, sizeof *ret);
    int err = kedgei_json_load(text, KEDGE_ENERGY_TEXT_MAX, "energy", &o, reterr);
    const json_t *tasks = json_object_get(o, "tasks");
    bool ok = !err && get_budget(json_object_get(o, "budget"), &ret->budget) && json_is_array(tasks)
              && json_array_size(tasks) <= KEDGE_ENERGY_TASKS_MAX;
    for (size_t i = 0; ok && i < json_array_size(tasks); i++) {
        ok = get_task(json_array_get(tasks, i), &ret->tasks[ret->task_count++]);
    }
    json_decref(o);
    if (!err && !ok) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "energy: expected budget and tasks with numbers in their ranges");
    }
    if (err) {
        memset(ret, 0, sizeof *ret);
    }
    return err;
}
