/* A site as a state machine: memory, dispatch, and what it does in each state.
 *
 * Like the coordinator's core it computes and never waits: an event goes in with the time, effects come
 * out, and every effect that is awaited has a serial number. So crashes, lost answers and races are tested
 * by choosing events, without threads and clocks.
 *
 * A site has a few works, each on one task of another job. Each is in one state and has at most one effect
 * open; all that is durable (results, data shifts, enrolment) is in `memory`, which is stored as a whole.
 * Heartbeats go beside them, so that a long training does not look like an absence. */
#include "client/core/site.h"

#include <string.h>

#include "client/core/core.h"

enum { SENDS_FOR = 3 }; /* failures in a row of one that sends, while others have results, too */

void kedge_site_times_default(struct kedge_site_times *ret)
{
    static const uint64_t ms = 1000000;
    ret->poll_wait = 20000 * ms;
    ret->poll_min = 20 * ms;
    ret->heartbeat = 4000 * ms;
    ret->backoff_min = 100 * ms;
    ret->backoff_max = 15000 * ms;
    ret->trouble_min = 5000 * ms;
    ret->refused_pause = 30000 * ms;
    ret->trouble_max = 900000 * ms;
    ret->stopped_poll = 600000 * ms;
}

static const char *const note_names[] = {
    [KEDGE_SITE_NOTE_ENROLLED] = "enrolled",       [KEDGE_SITE_NOTE_TASK] = "task",
    [KEDGE_SITE_NOTE_REFUSED] = "refused",         [KEDGE_SITE_NOTE_FAILED] = "failed",
    [KEDGE_SITE_NOTE_RECEIPT] = "receipt",         [KEDGE_SITE_NOTE_DROPPED] = "dropped",
    [KEDGE_SITE_NOTE_UNREACHABLE] = "unreachable", [KEDGE_SITE_NOTE_STOPPED] = "stopped",
    [KEDGE_SITE_NOTE_RESUMED] = "resumed",         [KEDGE_SITE_NOTE_REFUSING] = "refusing",
};

const char *kedge_site_kind_name(enum kedge_site_kind kind)
{
    switch (kind) {
    case KEDGE_SITE_PRETRAIN:
        return "pretrain";
    case KEDGE_SITE_TRAIN:
        return "train";
    case KEDGE_SITE_EVALUATE:
        return "evaluate";
    }
    return "unknown";
}

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
    [KEDGE_SITE_ENDING] = "ending",
    [KEDGE_SITE_STOPPED] = "stopped",
    [KEDGE_SITE_REFUSING] = "refusing",
};

const char *kedge_site_state_name(enum kedge_site_state state)
{
    return (size_t)state < sizeof state_names / sizeof state_names[0] ? state_names[state] : "unknown";
}

size_t kedge_site_size(uint32_t works)
{
    return sizeof(struct kedge_site) + works * sizeof(struct work);
}

int kedge_site_init(void *mem, size_t mem_len, const struct kedge_site_params *params,
                    struct kedge_site **ret)
{
    const struct kedge_site_times *t = &params->times;
    const uint32_t works = params->works > 0 ? params->works : 1;
    if (works > KEDGE_SITE_WORKS_MAX || mem_len < kedge_site_size(works) || t->poll_wait == 0
        || t->poll_min == 0 || t->heartbeat == 0 || t->backoff_min == 0 || t->backoff_max < t->backoff_min
        || t->refused_pause == 0 || t->trouble_min == 0 || t->trouble_max == 0 || t->stopped_poll == 0
        || (!params->allow_all && params->allowed_count > 0 && !params->allowed)) {
        return KEDGE_E_ARG;
    }
    struct kedge_site *s = mem;
    memset(s, 0, kedge_site_size(works));
    s->params = *params;
    s->params.works = works;
    s->params.at_once = params->at_once > 0 ? params->at_once : works;
    s->w = s->works;
    s->beat_ns = UINT64_MAX;
    for (uint32_t i = 0; i < works; i++) {
        s->works[i].wake_ns = UINT64_MAX;
    }
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
    memset(fx, 0, offsetof(struct kedge_site_effect, at_work));
    fx->type = type;
    fx->work = (uint32_t)(s->w - s->works);
    return fx;
}

struct kedge_site_effect *kedgei_site_log(struct kedge_site *s, enum kedge_site_note note, int err)
{
    struct kedge_site_effect *fx = kedgei_site_emit(s, KEDGE_SITE_FX_LOG);
    fx->note = note;
    fx->err = err;
    fx->task = s->w->task;
    return fx;
}

bool kedgei_site_is_transient(int err)
{
    enum kedge_err_class class = kedge_err_class(err);
    return class == KEDGE_CLASS_RETRY || class == KEDGE_CLASS_FULL || class == KEDGE_CLASS_UNKNOWN;
}

/* Every change of state goes through kedgei_site_go, so that three things stay true without being set
 * anywhere else: a state begins at once (wake_ns is now), the right to send ends with the states that send,
 * and a heartbeat is due exactly while something is in hand. kedgei_site_works_are_valid checks the last two
 * after each step of a simulation. */
static bool any_works(const struct kedge_site *s)
{
    bool any = false;
    for (uint32_t i = 0; i < s->params.works && !any; i++) {
        any = kedgei_site_is_working(&s->works[i]);
    }
    return any;
}

void kedgei_site_go(struct kedge_site *s, enum kedge_site_state state)
{
    KEDGE_ASSERT(s->w->open == 0 && state != KEDGE_SITE_NEW);
    bool before = any_works(s), had = kedgei_site_is_working(s->w);
    s->w->state = state;
    s->w->wake_ns = s->now_ns;
    s->w->sends = s->w->sends && (state == KEDGE_SITE_UPLOADING || state == KEDGE_SITE_SUBMITTING);
    bool has = kedgei_site_is_working(s->w);
    s->poll_is_stale = s->poll_is_stale || (had && !has); /* its job is free */
    if (!has && !any_works(s)) {
        s->beat_ns = UINT64_MAX;
    } else if (has && !before) {
        s->beat_ns = kedgei_site_after(s, s->params.times.heartbeat);
    }
}

/* Exponential, and jittered over its upper half, so that sites which failed together do not come back
 * together: the pause is drawn from the upper half of the doubled one, never below half of it, else a
 * coordinator that is down would be asked as often as one that answers. What the coordinator asked for is
 * kept as a lower bound, itself at most backoff_max, for an hour-long pause in a hostile answer must not
 * silence a site. */
void kedgei_site_back_off(struct kedge_site *s, int err, uint64_t at_least_ns)
{
    const struct kedge_site_times *t = &s->params.times;
    uint64_t pause = t->backoff_min;
    for (uint32_t i = 0; i < s->w->failures && pause < t->backoff_max; i++) {
        pause = pause <= t->backoff_max / 2 ? pause * 2 : t->backoff_max;
    }
    pause = KEDGE_RARE(s, LONG_PAUSE) ? t->backoff_max : pause;
    pause -= kedge_rng_below(&s->rng, pause / 2 + 1);
    uint64_t least = at_least_ns < t->backoff_max
                         ? at_least_ns
                         : t->backoff_max; /* what the coordinator asked for, bounded */
    s->w->wake_ns = kedgei_site_after(s, pause > least ? pause : least);
    s->w->failures = s->w->failures < UINT32_MAX ? s->w->failures + 1 : s->w->failures;
    s->w->reason = err;
    s->w->sends = s->w->sends && s->w->failures <= SENDS_FOR; /* then others may: it uploads again */
    KEDGE_ASSERT(s->w->open == 0 && s->w->wake_ns > s->now_ns);
}

/* Calls are not aborted: a request cannot be taken back, and its answer is passed over because `open` is 0
 * from here on. ABORT is for what costs the host time or energy. */
void kedgei_site_abort_work(struct kedge_site *s)
{
    if (s->w->open != 0
        && (s->w->open_type == KEDGE_SITE_FX_FETCH || s->w->open_type == KEDGE_SITE_FX_TRAIN
            || s->w->open_type == KEDGE_SITE_FX_UPLOAD)) {
        kedgei_site_emit(s, KEDGE_SITE_FX_ABORT)->serial = s->w->open;
    }
    s->w->open = 0;
}

static void for_work(struct kedge_site *s, uint32_t work)
{
    KEDGE_ASSERT(work < s->params.works);
    s->w = &s->works[work];
}

static void say_refusing(struct kedge_site *s)
{
    kedgei_site_log(s, KEDGE_SITE_NOTE_REFUSING, s->w->reason);
    s->w->wake_ns = kedgei_site_after(s, s->params.times.stopped_poll);
}

/* All works refuse, for the main chain is the site's and not a job's. Loops over works that end with the
 * first one leave s->w at it: what follows (a log line, a pause) is said once, for the site. */
static void begin_refusing(struct kedge_site *s, int err)
{
    s->beat = 0;
    for (uint32_t i = s->params.works; i-- > 0;) {
        for_work(s, i);
        kedgei_site_go(s, KEDGE_SITE_REFUSING);
        s->w->reason = err;
    }
    say_refusing(s); /* the first one, for all */
}

void kedgei_site_refuse(struct kedge_site *s, int err, const struct kedge_site_chain *shown)
{
    for (uint32_t i = 0; i < s->params.works; i++) {
        for_work(s, i);
        kedgei_site_abort_work(s);
    }
    struct kedge_site_effect *fx = kedgei_site_emit(s, KEDGE_SITE_FX_REFUSE);
    fx->err = err;
    fx->seen = s->seen;
    fx->shown = *shown;
    begin_refusing(s, err);
}

/* The tenant has revoked the site, or its token is not taken. Results are given up: no coordinator will take
 * them, and kept ones would block their works. The order of effects is the contract's: the PERSIST that no
 * longer names the results comes before each FORGET, so that a crash in between leaves files that nothing
 * names, and never a name without its file. Only the first work is STOPPED and asks again every ten minutes;
 * the others are free, and stand by while the first asks. */
void kedgei_site_stop(struct kedge_site *s, int err)
{
    bool told = s->works[0].state == KEDGE_SITE_STOPPED;
    uint32_t count = MUTANT(MUTANT_SITE_STOPS_ONE) ? 0 : s->memory.result_count;
    for (uint32_t i = s->params.works; i-- > 0;) {
        for_work(s, i);
        if (!MUTANT(MUTANT_SITE_STOPS_ONE) || i == 0) {
            kedgei_site_abort_work(s);
        }
    }
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
    if (!told) {
        kedgei_site_log(s, KEDGE_SITE_NOTE_STOPPED, err);
    }
    for (uint32_t i = s->params.works; i-- > 0 && !(MUTANT(MUTANT_SITE_STOPS_ONE) && i > 0);) {
        for_work(s, i);
        kedgei_site_go(s, i > 0 ? KEDGE_SITE_POLLING : KEDGE_SITE_STOPPED);
    }
    for_work(s, 0);
    s->w->reason = err;
    s->w->wake_ns = kedgei_site_after(s, s->params.times.stopped_poll);
}

static struct kedge_site_effect *begin(struct kedge_site *s, enum kedge_site_effect_type type)
{
    KEDGE_ASSERT(s->w->open == 0);
    struct kedge_site_effect *fx = kedgei_site_emit(s, type);
    fx->serial = s->w->open = ++s->last_serial;
    s->w->open_type = type;
    return fx;
}

/* A poll is built from what is true now: the main chain as it was seen, shifts, jobs at work. asked_size
 * remembers the first of these, for the answer is judged by what the site had seen when it asked, not by what
 * it has seen when the answer is read (chain.h). */
static struct kedge_site_effect *begin_call(struct kedge_site *s, enum kedge_site_call call)
{
    struct kedge_site_effect *fx = begin(s, KEDGE_SITE_FX_CALL);
    fx->call = s->w->open_call = call;
    fx->seen = s->seen;
    if (call == KEDGE_SITE_CALL_POLL) {
        kedgei_site_shift_tell(s, fx);
        kedgei_site_tell_at_work(s, fx);
        kedgei_site_anew_tell(s, fx);
        s->poll = fx->serial;
        s->poll_is_stale = false;
    }
    s->w->asked_size = s->seen.size;
    return fx;
}

static void fetch(struct kedge_site *s)
{
    struct kedge_site_effect *fx = begin(s, KEDGE_SITE_FX_FETCH);
    fx->task = s->w->task;
    fx->blob = s->w->blob;
    switch (s->w->blob) {
    case KEDGE_SITE_BLOB_SPEC:
        fx->digest = s->w->task.spec;
        fx->len = s->w->task.spec_len;
        break;
    case KEDGE_SITE_BLOB_MODEL:
        fx->digest = s->w->task.choice_count > 0 ? s->w->task.choices[s->w->choice] : s->w->task.base;
        fx->len = s->w->task.base_len;
        break;
    case KEDGE_SITE_BLOB_CONTROL:
        fx->digest = s->w->task.control;
        fx->len = s->w->task.control_len;
        break;
    case KEDGE_SITE_BLOB_TRIAL:
        fx->digest = s->w->task.trial;
        fx->len = s->w->task.base_len;
        break;
    }
}

/* Begins what the state asks for. */
static void act(struct kedge_site *s)
{
    switch (s->w->state) {
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
            s->w->wake_ns = kedgei_site_after(s, s->params.times.stopped_poll); /* REST ends it before */
            return;
        }
        begin_call(s, KEDGE_SITE_CALL_POLL)->wait_ns =
            KEDGE_RARE(s, SHORT_POLL) ? 0 : s->params.times.poll_wait;
        return;
    case KEDGE_SITE_FETCHING:
        fetch(s);
        return;
    case KEDGE_SITE_TRAINING:
        begin(s, KEDGE_SITE_FX_TRAIN)->task = s->w->task;
        return;
    case KEDGE_SITE_PERSISTING:
        kedgei_site_remember(s, &begin(s, KEDGE_SITE_FX_PERSIST)->memory);
        return;
    case KEDGE_SITE_UPLOADING:
        s->w->sends = true;
        begin(s, KEDGE_SITE_FX_UPLOAD)->result = *kedgei_site_first(s, s->w);
        return;
    case KEDGE_SITE_SUBMITTING:
        s->w->sends = true;
        begin_call(s, KEDGE_SITE_CALL_SUBMIT)->result =
            MUTANT(MUTANT_SITE_SENDS_OTHERS) ? s->memory.results[0] : *kedgei_site_first(s, s->w);
        return;
    case KEDGE_SITE_ENDING:
        kedgei_site_ended(s, begin_call(s, KEDGE_SITE_CALL_ENDED));
        return;
    }
}

/* A heartbeat is a busy poll of the site as a whole, with a serial of its own, beside what works have open: a
 * work that trains for an hour has TRAIN open and nothing else, and would look like an absent site. A
 * heartbeat never brings a task. */
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

/* Recovery and the first start are the same path: what is durable decides. A work with results goes on with
 * the first of them; a work without polls; a site that was never confirmed enrols first, and its results, if
 * there are any, wait for that. */
static void start(struct kedge_site *s, const struct kedge_site_event *ev)
{
    KEDGE_ASSERT(s->w->state == KEDGE_SITE_NEW && ev->memory.result_count <= KEDGE_SITE_STORED_MAX);
    KEDGE_ASSERT(ev->memory.shift_count <= KEDGE_SITE_SHIFTS_MAX);
    s->memory = ev->memory;
    s->seen = ev->seen;
    s->anew = true;
    s->memory.result_count = MUTANT(MUTANT_SITE_FORGETS_ALL) ? 0 : s->memory.result_count;
    s->memory.shift_count = MUTANT(MUTANT_SITE_FORGETS_SHIFTS) ? 0 : s->memory.shift_count;
    for (uint32_t i = 0; i < s->memory.result_count; i++) {
        KEDGE_ASSERT(s->memory.results[i].work < s->params.works);
    }
    for (uint32_t i = s->params.works; i-- > 0;) {
        for_work(s, i);
        const struct kedge_site_result *first = kedgei_site_first(s, s->w);
        if (first) {
            kedgei_site_log(s, KEDGE_SITE_NOTE_RESUMED, KEDGE_OK)->result = *first;
        }
        if (ev->err == KEDGE_OK && !s->memory.enrolled) {
            kedgei_site_go(s, KEDGE_SITE_ENROLLING);
        } else if (ev->err == KEDGE_OK) {
            kedgei_site_next_result(s);
        }
    }
    if (ev->err != KEDGE_OK) {
        begin_refusing(s, ev->err);
    }
}

/* The end of a rest lets free works ask at once, but not those in a back-off: their pause answers a failure,
 * which the rest has not mended. */
static void rest(struct kedge_site *s, bool rests)
{
    s->rests = rests;
    if (!rests) {
        kedgei_site_troubles_forget(s);
    }
    for (uint32_t i = 0; i < s->params.works && !rests; i++) {
        struct work *w = &s->works[i];
        if (w->state == KEDGE_SITE_POLLING && w->open == 0 && w->failures == 0) {
            w->wake_ns = s->now_ns;
        }
    }
}

/* The work that an event is for: a completion's, else the first. */
static void find_work(struct kedge_site *s, const struct kedge_site_event *ev)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < s->params.works; i++) {
        found = ev->serial != 0 && s->works[i].open == ev->serial ? i : found;
    }
    for_work(s, found);
}

static void handle(struct kedge_site *s, const struct kedge_site_event *ev)
{
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
}

/* A step handles its event, then begins whatever is due in any work. It is a loop over all works and not only
 * over the one that the event was for, because one event can free others: a poll that has gone stale, a
 * result that another one may now send after. Works are looked at in their order, and what an earlier one
 * begins (a poll) can make a later one stand by. */
static bool is_due(const struct kedge_site *s, const struct work *w)
{
    return w->open == 0 && w->wake_ns <= s->now_ns && !kedgei_site_stands_by(s, w);
}

void kedge_site_step(struct kedge_site *s, const struct kedge_site_event *ev,
                     struct kedge_site_effects *ret_fx)
{
    KEDGE_ASSERT(ev->now_ns >= s->now_ns);
    KEDGE_ASSERT((ev->type == KEDGE_SITE_EV_START) == (s->works[0].state == KEDGE_SITE_NEW));
    s->now_ns = ev->now_ns;
    s->fx = ret_fx;
    ret_fx->count = 0;
    find_work(s, ev);
    handle(s, ev);
    for (uint32_t i = 0; i < s->params.works; i++) {
        if (is_due(s, &s->works[i])) {
            for_work(s, i);
            act(s);
        }
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
    uint64_t at = s->beat == 0 ? s->beat_ns : UINT64_MAX;
    for (uint32_t i = 0; i < s->params.works; i++) {
        const struct work *w = &s->works[i];
        bool waits = w->open == 0 && w->wake_ns < at && !kedgei_site_stands_by(s, w);
        at = waits ? w->wake_ns : at;
    }
    return at;
}

bool kedge_site_is_valid(const struct kedge_site *s)
{
    return s->beat <= s->last_serial && kedgei_site_works_are_valid(s) && kedgei_site_shifts_are_valid(s);
}

void kedge_site_view(const struct kedge_site *s, struct kedge_site_view *ret)
{
    uint32_t shown = s->params.works;
    memset(ret, 0, sizeof *ret);
    for (uint32_t i = 0; i < s->params.works; i++) {
        const struct work *w = &s->works[i];
        bool begun = w->state == KEDGE_SITE_FETCHING || w->state == KEDGE_SITE_TRAINING
                     || w->state == KEDGE_SITE_ENDING;
        ret->works[i] = (struct kedge_site_work_view){w->state, w->reason, begun ? &w->task : NULL,
                                                      kedgei_site_first(s, w)};
        shown = kedgei_site_is_working(w) && i < shown ? i : shown;
    }
    const struct kedge_site_work_view *first = &ret->works[shown < s->params.works ? shown : 0];
    ret->work_count = s->params.works;
    ret->state = first->state;
    ret->reason = first->reason;
    ret->task = first->task;
    ret->memory = &s->memory;
    ret->tasks = s->tasks;
    ret->receipts = s->receipts;
    ret->dropped = s->dropped;
    ret->lacks_data = kedgei_site_lacks_data(s);
}
