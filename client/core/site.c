/* Memory, dispatch, and what a site does in each state. */
#include "client/core/site.h"

#include <string.h>

#include "client/core/core.h"

void kedge_site_times_default(struct kedge_site_times *ret)
{
    static const uint64_t ms = 1000000;
    ret->poll_wait = 20000 * ms;
    ret->poll_min = 20 * ms;
    ret->heartbeat = 4000 * ms;
    ret->backoff_min = 100 * ms;
    ret->backoff_max = 15000 * ms;
    ret->refused_pause = 30000 * ms;
    ret->stopped_poll = 600000 * ms;
}

static const char *const note_names[] = {
    [KEDGE_SITE_NOTE_ENROLLED] = "enrolled",       [KEDGE_SITE_NOTE_TASK] = "task",
    [KEDGE_SITE_NOTE_REFUSED] = "refused",         [KEDGE_SITE_NOTE_FAILED] = "failed",
    [KEDGE_SITE_NOTE_RECEIPT] = "receipt",         [KEDGE_SITE_NOTE_DROPPED] = "dropped",
    [KEDGE_SITE_NOTE_UNREACHABLE] = "unreachable", [KEDGE_SITE_NOTE_STOPPED] = "stopped",
    [KEDGE_SITE_NOTE_RESUMED] = "resumed",         [KEDGE_SITE_NOTE_REFUSING] = "refusing",
};

const char *kedge_site_note_name(enum kedge_site_note note)
{
    return (size_t)note < sizeof note_names / sizeof note_names[0] ? note_names[note] : "unknown";
}

static const char *const state_names[] = {
    [KEDGE_SITE_NEW] = "new",
    [KEDGE_SITE_ENROLLING] = "enrolling",
    [KEDGE_SITE_POLLING] = "polling",
    [KEDGE_SITE_FETCHING] = "fetching",
    [KEDGE_SITE_TRAINING] = "training",
    [KEDGE_SITE_PERSISTING] = "persisting",
    [KEDGE_SITE_UPLOADING] = "uploading",
    [KEDGE_SITE_SUBMITTING] = "submitting",
    [KEDGE_SITE_STOPPED] = "stopped",
    [KEDGE_SITE_REFUSING] = "refusing",
};

const char *kedge_site_state_name(enum kedge_site_state state)
{
    return (size_t)state < sizeof state_names / sizeof state_names[0] ? state_names[state] : "unknown";
}

size_t kedge_site_size(void)
{
    return sizeof(struct kedge_site);
}

int kedge_site_init(void *mem, size_t mem_len, const struct kedge_site_params *params,
                    struct kedge_site **ret)
{
    const struct kedge_site_times *t = &params->times;
    if (mem_len < sizeof(struct kedge_site) || t->poll_wait == 0 || t->poll_min == 0 || t->heartbeat == 0
        || t->backoff_min == 0 || t->backoff_max < t->backoff_min || t->refused_pause == 0
        || t->stopped_poll == 0 || (!params->allow_all && params->allowed_count > 0 && !params->allowed)) {
        return KEDGE_E_ARG;
    }
    struct kedge_site *s = mem;
    memset(s, 0, sizeof *s);
    s->params = *params;
    s->beat_ns = s->wake_ns = UINT64_MAX;
    kedge_rng_init(&s->rng, params->seed, KEDGE_RNG_JITTER, 0, 0);
    *ret = s;
    return KEDGE_OK;
}

uint64_t kedgei_site_after(const struct kedge_site *s, uint64_t pause_ns)
{
    return pause_ns < UINT64_MAX - s->now_ns ? s->now_ns + pause_ns : UINT64_MAX;
}

struct kedge_site_effect *kedgei_site_emit(struct kedge_site *s, enum kedge_site_effect_type type)
{
    KEDGE_ASSERT(s->fx && s->fx->count < KEDGE_SITE_EFFECTS_MAX);
    struct kedge_site_effect *fx = &s->fx->items[s->fx->count++];
    memset(fx, 0, sizeof *fx);
    fx->type = type;
    return fx;
}

struct kedge_site_effect *kedgei_site_log(struct kedge_site *s, enum kedge_site_note note, int err)
{
    struct kedge_site_effect *fx = kedgei_site_emit(s, KEDGE_SITE_FX_LOG);
    fx->note = note;
    fx->err = err;
    fx->task = s->task;
    return fx;
}

bool kedgei_site_is_transient(int err)
{
    enum kedge_err_class class = kedge_err_class(err);
    return class == KEDGE_CLASS_RETRY || class == KEDGE_CLASS_FULL || class == KEDGE_CLASS_UNKNOWN;
}

static bool is_working(const struct kedge_site *s)
{
    return s->state >= KEDGE_SITE_FETCHING && s->state <= KEDGE_SITE_SUBMITTING;
}

void kedgei_site_go(struct kedge_site *s, enum kedge_site_state state)
{
    KEDGE_ASSERT(s->open == 0 && state != KEDGE_SITE_NEW);
    bool before = is_working(s);
    s->state = state;
    s->wake_ns = s->now_ns;
    if (!is_working(s)) {
        s->beat_ns = UINT64_MAX;
    } else if (!before) {
        s->beat_ns = kedgei_site_after(s, s->params.times.heartbeat);
    }
}

/* Exponential, and jittered over its upper half, so that sites which failed together do not come back
 * together. */
void kedgei_site_back_off(struct kedge_site *s, int err, uint64_t at_least_ns)
{
    const struct kedge_site_times *t = &s->params.times;
    uint64_t pause = t->backoff_min;
    for (uint32_t i = 0; i < s->failures && pause < t->backoff_max; i++) {
        pause = pause <= t->backoff_max / 2 ? pause * 2 : t->backoff_max;
    }
    pause = KEDGE_RARE(s, LONG_PAUSE) ? t->backoff_max : pause;
    pause -= kedge_rng_below(&s->rng, pause / 2 + 1);
    uint64_t least = at_least_ns < t->backoff_max ? at_least_ns : t->backoff_max; /* whoever asked for more */
    s->wake_ns = kedgei_site_after(s, pause > least ? pause : least);
    s->failures = s->failures < UINT32_MAX ? s->failures + 1 : s->failures;
    s->reason = err;
    KEDGE_ASSERT(s->open == 0 && s->wake_ns > s->now_ns);
}

void kedgei_site_abort_work(struct kedge_site *s)
{
    if (s->open != 0
        && (s->open_type == KEDGE_SITE_FX_FETCH || s->open_type == KEDGE_SITE_FX_TRAIN
            || s->open_type == KEDGE_SITE_FX_UPLOAD)) {
        kedgei_site_emit(s, KEDGE_SITE_FX_ABORT)->serial = s->open;
    }
    s->open = 0;
}

static void say_refusing(struct kedge_site *s)
{
    kedgei_site_log(s, KEDGE_SITE_NOTE_REFUSING, s->reason);
    s->wake_ns = kedgei_site_after(s, s->params.times.stopped_poll);
}

static void begin_refusing(struct kedge_site *s, int err)
{
    s->beat = 0;
    kedgei_site_go(s, KEDGE_SITE_REFUSING);
    s->reason = err;
    say_refusing(s);
}

void kedgei_site_refuse(struct kedge_site *s, int err, const struct kedge_site_chain *shown)
{
    kedgei_site_abort_work(s);
    struct kedge_site_effect *fx = kedgei_site_emit(s, KEDGE_SITE_FX_REFUSE);
    fx->err = err;
    fx->seen = s->seen;
    fx->shown = *shown;
    begin_refusing(s, err);
}

void kedgei_site_stop(struct kedge_site *s, int err)
{
    kedgei_site_abort_work(s);
    uint32_t count = s->memory.result_count;
    for (uint32_t i = 0; i < count; i++) {
        kedgei_site_shift_settle(s, &s->memory.results[i], false);
    }
    if (count > 0) {
        s->memory.result_count = 0;
        kedgei_site_persist(s);
    }
    for (uint32_t i = 0; i < count; i++) {
        kedgei_site_emit(s, KEDGE_SITE_FX_FORGET)->result = s->memory.results[i];
        s->dropped++;
    }
    if (s->state != KEDGE_SITE_STOPPED) {
        kedgei_site_log(s, KEDGE_SITE_NOTE_STOPPED, err);
    }
    kedgei_site_go(s, KEDGE_SITE_STOPPED);
    s->reason = err;
    s->wake_ns = kedgei_site_after(s, s->params.times.stopped_poll);
}

static struct kedge_site_effect *begin(struct kedge_site *s, enum kedge_site_effect_type type)
{
    KEDGE_ASSERT(s->open == 0);
    struct kedge_site_effect *fx = kedgei_site_emit(s, type);
    fx->serial = s->open = ++s->last_serial;
    s->open_type = type;
    return fx;
}

static struct kedge_site_effect *begin_call(struct kedge_site *s, enum kedge_site_call call)
{
    struct kedge_site_effect *fx = begin(s, KEDGE_SITE_FX_CALL);
    fx->call = s->open_call = call;
    fx->seen = s->seen;
    if (call == KEDGE_SITE_CALL_POLL) {
        kedgei_site_shift_tell(s, fx);
    }
    s->asked_size = s->seen.size;
    return fx;
}

static void fetch(struct kedge_site *s)
{
    struct kedge_site_effect *fx = begin(s, KEDGE_SITE_FX_FETCH);
    fx->task = s->task;
    fx->blob = s->blob;
    switch (s->blob) {
    case KEDGE_SITE_BLOB_SPEC:
        fx->digest = s->task.spec;
        fx->len = s->task.spec_len;
        break;
    case KEDGE_SITE_BLOB_MODEL:
        fx->digest = s->task.choice_count > 0 ? s->task.choices[s->choice] : s->task.base;
        fx->len = s->task.base_len;
        break;
    case KEDGE_SITE_BLOB_CONTROL:
        fx->digest = s->task.control;
        fx->len = s->task.control_len;
        break;
    }
}

/* Begins what the state asks for. */
static void act(struct kedge_site *s)
{
    switch (s->state) {
    case KEDGE_SITE_NEW:
        return;
    case KEDGE_SITE_REFUSING:
        say_refusing(s);
        return;
    case KEDGE_SITE_ENROLLING:
        begin_call(s, KEDGE_SITE_CALL_ENROLL);
        return;
    case KEDGE_SITE_STOPPED:
        if (!s->memory.enrolled) {
            begin_call(s, KEDGE_SITE_CALL_ENROLL);
            return;
        }
        begin_call(s, KEDGE_SITE_CALL_POLL)->wait_ns = 0;
        return;
    case KEDGE_SITE_POLLING:
        if (s->rests) {
            s->wake_ns = kedgei_site_after(s, s->params.times.stopped_poll); /* REST ends it before */
            return;
        }
        begin_call(s, KEDGE_SITE_CALL_POLL)->wait_ns =
            KEDGE_RARE(s, SHORT_POLL) ? 0 : s->params.times.poll_wait;
        return;
    case KEDGE_SITE_FETCHING:
        fetch(s);
        return;
    case KEDGE_SITE_TRAINING:
        begin(s, KEDGE_SITE_FX_TRAIN)->task = s->task;
        return;
    case KEDGE_SITE_PERSISTING:
        begin(s, KEDGE_SITE_FX_PERSIST)->memory = s->memory;
        return;
    case KEDGE_SITE_UPLOADING:
        begin(s, KEDGE_SITE_FX_UPLOAD)->result = s->memory.results[0];
        return;
    case KEDGE_SITE_SUBMITTING:
        begin_call(s, KEDGE_SITE_CALL_SUBMIT)->result = s->memory.results[0];
        return;
    }
}

static void beat(struct kedge_site *s)
{
    struct kedge_site_effect *fx = kedgei_site_emit(s, KEDGE_SITE_FX_CALL);
    fx->serial = s->beat = ++s->last_serial;
    fx->seen = s->seen;
    s->beat_asked_size = s->seen.size;
    fx->call = KEDGE_SITE_CALL_POLL;
    fx->busy = true;
    kedgei_site_shift_tell(s, fx);
}

static void start(struct kedge_site *s, const struct kedge_site_event *ev)
{
    KEDGE_ASSERT(s->state == KEDGE_SITE_NEW && ev->memory.result_count <= KEDGE_SITE_RESULTS_MAX);
    KEDGE_ASSERT(ev->memory.shift_count <= KEDGE_SITE_SHIFTS_MAX);
    s->memory = ev->memory;
    s->seen = ev->seen;
    s->memory.result_count = MUTANT(MUTANT_SITE_FORGETS_ALL) ? 0 : s->memory.result_count;
    s->memory.shift_count = MUTANT(MUTANT_SITE_FORGETS_SHIFTS) ? 0 : s->memory.shift_count;
    if (s->memory.result_count > 0) {
        kedgei_site_log(s, KEDGE_SITE_NOTE_RESUMED, KEDGE_OK)->result = s->memory.results[0];
    }
    if (ev->err != KEDGE_OK) {
        begin_refusing(s, ev->err);
    } else if (!s->memory.enrolled) {
        kedgei_site_go(s, KEDGE_SITE_ENROLLING);
    } else {
        kedgei_site_next_result(s);
    }
}

static void rest(struct kedge_site *s, bool rests)
{
    s->rests = rests;
    if (!rests && s->state == KEDGE_SITE_POLLING && s->open == 0 && s->failures == 0) {
        s->wake_ns = s->now_ns;
    }
}

void kedge_site_step(struct kedge_site *s, const struct kedge_site_event *ev,
                     struct kedge_site_effects *ret_fx)
{
    KEDGE_ASSERT(ev->now_ns >= s->now_ns);
    KEDGE_ASSERT((ev->type == KEDGE_SITE_EV_START) == (s->state == KEDGE_SITE_NEW));
    s->now_ns = ev->now_ns;
    s->fx = ret_fx;
    ret_fx->count = 0;
    switch (ev->type) {
    case KEDGE_SITE_EV_START:
        start(s, ev);
        break;
    case KEDGE_SITE_EV_REPLY:
        kedgei_site_reply(s, ev);
        break;
    case KEDGE_SITE_EV_CALL_FAILED:
        kedgei_site_call_failed(s, ev);
        break;
    case KEDGE_SITE_EV_FETCHED:
    case KEDGE_SITE_EV_FETCH_FAILED:
    case KEDGE_SITE_EV_TRAINED:
    case KEDGE_SITE_EV_TRAIN_FAILED:
    case KEDGE_SITE_EV_UPLOADED:
    case KEDGE_SITE_EV_UPLOAD_FAILED:
    case KEDGE_SITE_EV_PERSISTED:
        kedgei_site_worked(s, ev);
        break;
    case KEDGE_SITE_EV_SHIFTED:
        kedgei_site_shifted(s, &ev->job);
        break;
    case KEDGE_SITE_EV_POLICY:
        kedgei_site_policy(s, ev);
        break;
    case KEDGE_SITE_EV_REST:
        rest(s, ev->rest);
        break;
    case KEDGE_SITE_EV_TIMER:
        break;
    }
    if (s->open == 0 && s->wake_ns <= s->now_ns) {
        act(s);
    }
    bool early = s->beat == 0 && s->beat_ns != UINT64_MAX && KEDGE_RARE(s, EARLY_BEAT);
    if (s->beat == 0 && (s->beat_ns <= s->now_ns || early)) {
        beat(s);
    }
    s->fx = NULL;
#ifdef KEDGE_CORE_CHECKS
    KEDGE_ASSERT(kedge_site_is_valid(s));
#endif
}

uint64_t kedge_site_deadline_ns(const struct kedge_site *s)
{
    uint64_t wake = s->open == 0 ? s->wake_ns : UINT64_MAX;
    uint64_t next_beat = s->beat == 0 ? s->beat_ns : UINT64_MAX;
    return wake < next_beat ? wake : next_beat;
}

bool kedge_site_is_valid(const struct kedge_site *s)
{
    bool has_results = s->state == KEDGE_SITE_PERSISTING || s->state == KEDGE_SITE_UPLOADING
                       || s->state == KEDGE_SITE_SUBMITTING;
    bool has_none = s->state == KEDGE_SITE_POLLING || s->state == KEDGE_SITE_FETCHING
                    || s->state == KEDGE_SITE_TRAINING || s->state == KEDGE_SITE_STOPPED;
    uint32_t count = s->memory.result_count;
    return count <= KEDGE_SITE_RESULTS_MAX && (!has_results || count > 0) && (!has_none || count == 0)
           && s->open <= s->last_serial && s->beat <= s->last_serial && (s->open == 0 || s->open != s->beat)
           && (s->state == KEDGE_SITE_NEW || s->open != 0 || s->wake_ns != UINT64_MAX)
           && is_working(s) == (s->beat_ns != UINT64_MAX) && kedgei_site_shifts_are_valid(s);
}

void kedge_site_view(const struct kedge_site *s, struct kedge_site_view *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->state = s->state;
    ret->reason = s->reason;
    ret->task = s->state == KEDGE_SITE_FETCHING || s->state == KEDGE_SITE_TRAINING ? &s->task : NULL;
    ret->memory = &s->memory;
    ret->tasks = s->tasks;
    ret->receipts = s->receipts;
    ret->dropped = s->dropped;
}
