/* Work on a task, from taking it to the settled result.
 *
 * A result is durable before anyone hears of it. Otherwise a crash after the upload would train again,
 * with another result, and the site would have signed two updates for one task. The durable result goes
 * only when the coordinator has given a receipt or a refusal that is final; every other answer is followed
 * by another attempt with the same bytes. */
#include "client/core/core.h"
#include "common/base/percent.h"

enum {
    FETCH_ATTEMPTS_MAX = 6,    /* then the task is given up: it may have gone stale */
    PERSIST_ATTEMPTS_MAX = 10, /* half a minute: what was trained is worth it; then the round is told */
};

static bool is_allowed(const struct kedge_site *s, const struct kedge_id *job)
{
    bool allowed = s->params.allow_all;
    for (uint32_t i = 0; i < s->params.allowed_count && !allowed; i++) {
        allowed = kedge_id_eq(&s->params.allowed[i], job);
    }
    return allowed;
}

/* A task comes from a coordinator that may be broken or hostile, and what it says steers downloads, disk
 * space and signatures. So all combinations that make no sense are refused here, in one place: a group is
 * missing exactly for a pre-training or a choice of models; only training evaluates its base, and only from
 * round 2 on, as round 1 has no earlier result; lengths are bounded before a byte is fetched. */
static int check_task(const struct kedge_site *s, const struct kedge_site_task *t)
{
    bool cold = t->group == KEDGE_SITE_NONE, choice = t->choice_count > 0;
    if (t->kind < KEDGE_SITE_PRETRAIN || t->kind > KEDGE_SITE_EVALUATE || t->round > KEDGE_ROUNDS_MAX
        || (t->kind == KEDGE_SITE_PRETRAIN || choice) != cold || (!cold && t->group >= KEDGE_GROUPS_MAX)
        || (t->evaluate_base && (t->kind != KEDGE_SITE_TRAIN || t->round < 2 || choice))
        || (choice && (t->kind != KEDGE_SITE_TRAIN || t->choice_count > KEDGE_GROUPS_MAX))
        || (t->percent > 0 && (t->kind != KEDGE_SITE_TRAIN || t->percent > KEDGE_PERCENT_ALL))
        || (t->has_trial && t->kind != KEDGE_SITE_EVALUATE && !t->evaluate_base)) {
        return KEDGE_E_FORMAT;
    }
    if (!is_allowed(s, &t->job)) {
        return KEDGE_E_DENIED;
    }
    bool small = t->spec_len <= KEDGE_SPEC_MAX && t->base_len <= s->params.base_max
                 && t->control_len <= s->params.base_max
                 && (t->kind == KEDGE_SITE_EVALUATE || t->update_len <= s->params.update_max);
    return small ? KEDGE_OK : KEDGE_E_TOO_LONG;
}

/* A task that will not be done. Both this and give_up_task below end it, and the coordinator hears of both;
 * they differ in what the owner's log says: "refused" is a decision, "failed" something that went wrong. */
static void refuse_task(struct kedge_site *s, int err, enum kedge_trouble why)
{
    kedgei_site_log(s, KEDGE_SITE_NOTE_REFUSED, err);
    kedgei_site_end_task(s, err, why);
}

void kedgei_site_policy(struct kedge_site *s, const struct kedge_site_event *ev)
{
    KEDGE_ASSERT(ev->allow_all || ev->allowed_count == 0 || ev->allowed);
    s->params.allow_all = ev->allow_all;
    s->params.allowed_count = ev->allowed_count;
    s->params.allowed = ev->allowed;
    s->params.at_once = ev->at_once > 0 ? ev->at_once : s->params.works;
    kedgei_site_troubles_forget(s); /* what was refused, or failed, may be otherwise now */
    for (uint32_t i = s->params.works; i-- > 0;) {
        s->w = &s->works[i];
        bool begun = s->w->state == KEDGE_SITE_FETCHING || s->w->state == KEDGE_SITE_TRAINING;
        if (begun && !is_allowed(s, &s->w->task.job)) {
            kedgei_site_abort_work(s);
            refuse_task(s, KEDGE_E_DENIED, KEDGE_TROUBLE_POLICY);
        } else if (s->w->state == KEDGE_SITE_POLLING && s->w->open == 0 && s->w->failures == 0) {
            s->w->wake_ns = s->now_ns; /* there may be something that is allowed now */
        }
    }
}

void kedgei_site_take_task(struct kedge_site *s, const struct kedge_site_task *task)
{
    KEDGE_ASSERT(s->w->open == 0 && !kedgei_site_first(s, s->w));
    s->w->task = *task;
    if (kedgei_site_still_troubled(s)) {
        return;
    }
    int err = s->rests ? KEDGE_E_DENIED : check_task(s, task);
    if (err != KEDGE_OK) {
        refuse_task(s, err, s->rests ? KEDGE_TROUBLE_ENERGY : KEDGE_TROUBLE_NONE);
        return;
    }
    s->tasks++;
    kedgei_site_log(s, KEDGE_SITE_NOTE_TASK, KEDGE_OK);
    s->w->blob = KEDGE_SITE_BLOB_SPEC;
    s->w->choice = 0;
    kedgei_site_go(s, KEDGE_SITE_FETCHING);
}

static void give_up_task(struct kedge_site *s, int err, enum kedge_trouble why)
{
    kedgei_site_log(s, KEDGE_SITE_NOTE_FAILED, err);
    kedgei_site_end_task(s, err, why);
}

/* A trial model is extra evidence, never a condition: when the coordinator does not have it any more, the
 * task is done without. A spec that policy forbids (DENIED) is a refusal, although its bytes are here.
 * Anything that may go better later is tried up to six times; beyond that the round may be over, and the task
 * blocks its work. */
static void fetch_failed(struct kedge_site *s, int err, enum kedge_trouble why)
{
    if (s->w->blob == KEDGE_SITE_BLOB_TRIAL && !kedgei_site_is_transient(err)) {
        s->w->task.has_trial = false; /* its round is over: the task is done without */
        kedgei_site_go(s, KEDGE_SITE_TRAINING);
    } else if (err == KEDGE_E_DENIED) {
        refuse_task(s, err, why);
    } else if (kedgei_site_is_transient(err) && s->w->failures < FETCH_ATTEMPTS_MAX
               && !KEDGE_RARE(s, FETCH_GIVEN_UP)) {
        kedgei_site_back_off(s, err, 0);
    } else {
        give_up_task(s, err, why);
    }
}

/* The order is spec, model or models to choose from, control variate, trial. The spec is first because it
 * decides whether the rest is wanted at all: the host looks at policy and data as soon as it is here, before
 * a large model is fetched. */
static void fetched(struct kedge_site *s)
{
    s->w->failures = 0;
    if (s->w->blob == KEDGE_SITE_BLOB_SPEC) {
        s->w->blob = KEDGE_SITE_BLOB_MODEL;
        kedgei_site_go(s, KEDGE_SITE_FETCHING);
    } else if (s->w->choice + 1 < s->w->task.choice_count && !MUTANT(MUTANT_SITE_CHOOSES_UNSEEN)) {
        s->w->choice++;
        kedgei_site_go(s, KEDGE_SITE_FETCHING);
    } else if (s->w->blob == KEDGE_SITE_BLOB_MODEL && s->w->task.control_len > 0) {
        s->w->blob = KEDGE_SITE_BLOB_CONTROL;
        kedgei_site_go(s, KEDGE_SITE_FETCHING);
    } else if (s->w->blob != KEDGE_SITE_BLOB_TRIAL && s->w->task.has_trial) {
        s->w->blob = KEDGE_SITE_BLOB_TRIAL;
        kedgei_site_go(s, KEDGE_SITE_FETCHING);
    } else {
        kedgei_site_go(s, KEDGE_SITE_TRAINING);
    }
}

static void trained(struct kedge_site *s, const struct kedge_site_event *ev)
{
    KEDGE_ASSERT(ev->result_count >= 1 && ev->result_count <= KEDGE_SITE_RESULTS_MAX);
    s->w->failures = 0;
    kedgei_site_results_add(s, ev->results, ev->result_count);
    kedgei_site_shift_answered(s, &ev->results[0]);
    if (MUTANT(MUTANT_SITE_SEND_UNPERSISTED)) {
        kedgei_site_next_result(s);
        return;
    }
    kedgei_site_go(s, KEDGE_SITE_PERSISTING);
}

void kedgei_site_persist(struct kedge_site *s)
{
    struct kedge_site_effect *fx = kedgei_site_emit(s, KEDGE_SITE_FX_PERSIST);
    fx->serial =
        ++s->last_serial; /* not awaited: at worst a restart submits once more and gets its receipt again */
    kedgei_site_remember(s, &fx->memory);
}

/* The one place that says how a site goes on: after a start, after a write of the memory, after each settled
 * result. A result with an update uploads its file first, an evaluation has none. Because the state follows
 * from the memory alone, a crash between any two of these steps resumes at the same one. */
void kedgei_site_next_result(struct kedge_site *s)
{
    const struct kedge_site_result *first = kedgei_site_first(s, s->w);
    s->w->upload_refused = false;
    if (!first) {
        kedgei_site_go(s, KEDGE_SITE_POLLING);
    } else {
        bool file = first->kind != KEDGE_SITE_EVALUATE && !KEDGE_RARE(s, SUBMIT_FIRST);
        kedgei_site_go(s, file ? KEDGE_SITE_UPLOADING : KEDGE_SITE_SUBMITTING);
    }
}

/* A result ends here and nowhere else, with a receipt, a "closed" or a final refusal. It leaves the memory
 * before its files may go (PERSIST, then FORGET). A refusal is followed by a pause: the next task would most
 * likely be refused for the same reason, and a site must not train in a circle. */
void kedgei_site_settle(struct kedge_site *s, int err)
{
    const struct kedge_site_result *first = kedgei_site_first(s, s->w);
    KEDGE_ASSERT(first && s->w->open == 0);
    const struct kedge_site_result result = *first;
    kedgei_site_results_drop_first(s);
    bool done = err == KEDGE_OK;
    kedgei_site_shift_settle(s, &result, done);
    kedgei_site_log(s, done ? KEDGE_SITE_NOTE_RECEIPT : KEDGE_SITE_NOTE_DROPPED, err)->result = result;
    kedgei_site_persist(s);
    kedgei_site_emit(s, KEDGE_SITE_FX_FORGET)->result = result;
    s->receipts += done ? 1 : 0;
    s->dropped += done ? 0 : 1;
    s->w->reason = err;
    kedgei_site_next_result(s);
    if (done || err == KEDGE_E_ROUND_CLOSED) {
        s->w->failures = 0;
    } else { /* it would be refused again: do not spin */
        kedgei_site_back_off(s, err, 0);
    }
}

static void uploaded(struct kedge_site *s, int err)
{
    if (err == KEDGE_OK || !kedgei_site_is_transient(err)) {
        /* A refused file may belong to a statement that was accepted before a crash: SUBMIT tells. */
        s->w->upload_refused = err != KEDGE_OK;
        s->w->failures = 0;
        kedgei_site_go(s, KEDGE_SITE_SUBMITTING);
        return;
    }
    if (s->w->failures == 0) {
        kedgei_site_log(s, KEDGE_SITE_NOTE_FAILED, err);
    }
    kedgei_site_back_off(s, err, 0);
}

/* What this work has made and nobody else knows of. The order is that of kedgei_site_settle: the memory
 * first, which another work may have written with these results in it. */
static void drop_results(struct kedge_site *s)
{
    struct kedge_site_result dropped[KEDGE_SITE_RESULTS_MAX];
    uint32_t count = 0;
    for (const struct kedge_site_result *first; (first = kedgei_site_first(s, s->w)) != NULL;) {
        KEDGE_ASSERT(count < KEDGE_SITE_RESULTS_MAX);
        dropped[count++] = *first;
        kedgei_site_results_drop_first(s);
    }
    kedgei_site_persist(s);
    for (uint32_t i = 0; i < count; i++) {
        kedgei_site_shift_settle(s, &dropped[i], false);
        kedgei_site_emit(s, KEDGE_SITE_FX_FORGET)->result = dropped[i];
        s->dropped++;
    }
}

/* A disk that stays full must not make a round wait for a site that says nothing but that it is at work. So
 * what was made is given up after a while, whose files take room, too, and the coordinator hears why. */
static void persisted(struct kedge_site *s, int err)
{
    if (err == KEDGE_OK) {
        s->w->failures = 0;
        kedgei_site_trouble_over(s, &s->w->task.job);
        kedgei_site_next_result(s);
    } else if (kedge_err_class(err) == KEDGE_CLASS_FULL && s->w->failures + 1 >= PERSIST_ATTEMPTS_MAX) {
        drop_results(s);
        give_up_task(s, err, KEDGE_TROUBLE_DISK);
    } else {
        kedgei_site_log(s, KEDGE_SITE_NOTE_FAILED, err);
        kedgei_site_back_off(s, err, 0);
    }
}

void kedgei_site_worked(struct kedge_site *s, const struct kedge_site_event *ev)
{
    if (ev->serial == 0 || ev->serial != s->w->open) {
        return; /* of something given up since, or of a PERSIST that nobody waits for */
    }
    KEDGE_ASSERT(s->w->open_type != KEDGE_SITE_FX_CALL);
    s->w->open = 0;
    int err = ev->err;
    if (ev->type == KEDGE_SITE_EV_FETCHED || ev->type == KEDGE_SITE_EV_FETCH_FAILED) {
        KEDGE_ASSERT(s->w->state == KEDGE_SITE_FETCHING);
        if (ev->type == KEDGE_SITE_EV_FETCHED) {
            fetched(s);
        } else {
            fetch_failed(s, err, ev->trouble);
        }
    } else if (ev->type == KEDGE_SITE_EV_TRAINED) {
        KEDGE_ASSERT(s->w->state == KEDGE_SITE_TRAINING);
        trained(s, ev);
    } else if (ev->type == KEDGE_SITE_EV_TRAIN_FAILED) {
        KEDGE_ASSERT(s->w->state == KEDGE_SITE_TRAINING);
        if (kedgei_site_is_transient(err)) {
            give_up_task(s, err, ev->trouble); /* and take it again, if it is still wanted by then */
        } else {
            refuse_task(s, err, ev->trouble);
        }
    } else if (ev->type == KEDGE_SITE_EV_PERSISTED) {
        KEDGE_ASSERT(s->w->state == KEDGE_SITE_PERSISTING);
        persisted(s, err);
    } else {
        KEDGE_ASSERT(s->w->state == KEDGE_SITE_UPLOADING);
        uploaded(s, ev->type == KEDGE_SITE_EV_UPLOADED ? KEDGE_OK : err);
    }
}
