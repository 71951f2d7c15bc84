/* Submissions: updates of the open round and evaluations of closed ones. Each is checked against the tables,
 * its blob is verified by the host, its envelope appended to the tenant's ledger, and only then acknowledged.
 *
 * A refusal for what a selected site sent is marked on its input, so that the round need not wait for it and
 * the input list can say why; a failure of transport or storage is not held against it. */
#include <string.h>

#include "coordinator/core/core.h"

enum { BUSY_PAUSE_DIVISOR = 4 }; /* "busy" passes sooner than a failed write */

/* Whether the site may try again follows from the class of the error alone, so site and coordinator
 * agree on it without a second field. A pause goes with it, or thousands of sites would come back
 * at once. */
static struct kedge_coord_effect *turn_away(struct kedge_coord *c, const struct kedge_coord_event *ev,
                                            uint32_t request, int err)
{
    struct kedge_coord_effect *fx = kedgei_emit(c, KEDGE_FX_TURN_AWAY);
    fx->site = ev->site;
    fx->tenant = ev->site < c->site_count ? c->sites[ev->site].tenant : KEDGE_COORD_NONE;
    fx->job = ev->job;
    fx->round = ev->round;
    fx->kind = ev->kind;
    fx->request = request;
    fx->ticket = ev->ticket;
    fx->err = err;
    enum kedge_err_class class = kedge_err_class(err);
    bool again = class == KEDGE_CLASS_RETRY || class == KEDGE_CLASS_FULL || class == KEDGE_CLASS_UNKNOWN;
    fx->retry_ns = !again ? 0 : err == KEDGE_E_BUSY ? c->times.retry / BUSY_PAUSE_DIVISOR : c->times.retry;
    return fx;
}

static void say_closed(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct kedge_coord_effect *fx = kedgei_emit_site(c, KEDGE_FX_CLOSED, ev->job, ev->site);
    fx->round = ev->round;
    fx->group = ev->group;
    fx->kind = ev->kind;
    fx->request = ev->request;
    fx->ticket = ev->ticket;
    fx->err = KEDGE_E_ROUND_CLOSED;
}

/* The host makes the receipt; the core only says of which leaf. */
static void give_receipt(struct kedge_coord *c, const struct kedge_coord_event *ev, uint32_t request,
                         uint64_t leaf)
{
    struct kedge_coord_effect *fx = kedgei_emit_site(c, KEDGE_FX_RECEIPT, ev->job, ev->site);
    fx->round = ev->round;
    fx->group = ev->group;
    fx->kind = ev->kind;
    fx->request = request;
    fx->ticket = ev->ticket;
    fx->leaf = leaf;
}

/* Round of an update: KEDGE_OK when open, ROUND_CLOSED when its close is durable. */
static int check_round(const struct job *j, const struct kedge_coord_event *ev)
{
    if (ev->round < j->round || (j->closed_round != KEDGE_COORD_NONE && ev->round <= j->closed_round)) {
        return KEDGE_E_ROUND_CLOSED;
    }
    if (ev->round > j->round || j->stage == STAGE_WAITING_TO_OPEN || j->stage == STAGE_ROUND_OPENING
        || j->stage == STAGE_JOB_OPENING) {
        return KEDGE_E_ROUND_STALE;
    }
    if (j->stage == STAGE_COLLECT) {
        return KEDGE_OK;
    }
    return MUTANT(MUTANT_CLOSED_BEFORE_DURABLE) ? KEDGE_E_ROUND_CLOSED : KEDGE_E_BUSY;
}

/* The same in an asynchronous job: a task is open until its update is in a list or counts no more. */
static int check_task(const struct job *j, const struct row *row, const struct kedge_coord_event *ev)
{
    if (!kedgei_is_asynchronous(j) || !kedgei_is_on(j, row, ev->round)
        || (MUTANT(MUTANT_LATE_IS_CLOSED) && ev->round < j->round)) {
        return check_round(j, ev);
    }
    bool known = row->pub.train.progress == KEDGE_INPUT_ACCEPTED;
    return j->stage == STAGE_COLLECT && (known || kedgei_has_room(j)) ? KEDGE_OK : KEDGE_E_BUSY;
}

/* Does the content fit what was asked of this site? */
static int check_content(const struct job *j, const struct row *row, const struct kedge_coord_event *ev)
{
    bool pretrain = ev->kind == KEDGE_TASK_PRETRAIN, choice = j->params.entry == KEDGE_ENTRY_CHOICE;
    bool fits = pretrain ? ev->group == KEDGE_COORD_NONE
                : choice ? ev->group < j->model_count
                         : ev->group == row->pub.group && row->pub.group_durable;
    if (!fits) {
        return KEDGE_E_WRONG_GROUP;
    }
    const struct kedge_digest *base = pretrain                    ? &j->initial
                                      : kedgei_is_asynchronous(j) ? kedgei_train_base(j, row)
                                                                  : kedgei_base(j, ev->group);
    if (memcmp(&ev->base, base, sizeof *base) != 0 && !(choice && MUTANT(MUTANT_CHOICE_UNCHECKED))) {
        return KEDGE_E_WRONG_BASE;
    }
    return ev->weight >= 1 && ev->weight <= j->params.weight_max ? KEDGE_OK : KEDGE_E_WEIGHT;
}

/* By the digest of the envelope: two signatures over the same update are two envelopes, and only
 * one of them is in the ledger. */
static bool same_envelope(const struct kedge_coord_input *in, const struct kedge_coord_event *ev)
{
    return memcmp(&in->envelope, &ev->envelope, sizeof in->envelope) == 0;
}

/* From here on the host holds the ticket, and the round cannot close until it is known what became
 * of it. */
static void take(struct kedge_coord *c, const struct kedge_coord_event *ev, enum item_kind kind,
                 enum kedge_input_progress progress)
{
    struct row *row = kedgei_row(c, ev->job, ev->site);
    struct kedge_coord_input *in = kedgei_input(row, kind);
    KEDGE_ASSERT(!kedgei_in_flight(in) && !row->item[kind].out && ev->ticket != KEDGE_COORD_NONE);
    if (kind != ITEM_EVALUATE) {
        kedgei_able_again(c, ev->job, ev->site); /* it could, after all */
    }
    in->progress = progress; /* the reason of an earlier refusal stays until this one is accepted */
    in->ticket = ev->ticket;
    in->envelope = ev->envelope;
    in->update = ev->update;
    in->weight = ev->weight;
    in->cost = ev->cost;
    in->group = kind == ITEM_PRETRAIN ? KEDGE_COORD_NONE : ev->group;
    row->item[kind].request = ev->request;
    kedgei_item_emit(c, ev->job, ev->site, kind);
    kedgei_row_refresh(c, ev->job, ev->site);
}

/* A site trains before it moves or after that: its ledger says for which group, by the order of its entries.
 */
static bool is_moving(const struct row *row, enum item_kind kind)
{
    return kind == ITEM_PRETRAIN ? kedgei_in_flight(&row->pub.train)
                                 : row->assign != ASSIGN_NONE || kedgei_in_flight(&row->pub.pretrain);
}

/* A site may send what it was asked for and nothing else: a training in a training round, a
 * pre-training where groups are made or where it has none, or when it may move. */
static bool is_asked(const struct job *j, const struct row *row, enum item_kind kind)
{
    if (kind == ITEM_TRAIN) {
        return j->kind == KEDGE_TASK_TRAIN;
    }
    bool pretrains = j->params.groups > 1 && j->params.entry != KEDGE_ENTRY_CHOICE
                     && j->params.entry != KEDGE_ENTRY_NEAREST;
    bool newcomer = pretrains && row->pub.group == KEDGE_COORD_NONE;
    return j->kind == KEDGE_TASK_PRETRAIN || newcomer || kedgei_may_migrate(j, row);
}

/* What is sent again must have the answer that it had the first time: the receipt when it was accepted, the
 * refusal when it was not, however often a site that lost the answer asks. So the order of the questions
 * matters: is the task this site's and open, was it answered already, is an earlier attempt still on its
 * way, and only then whether the content will do. A refusal for its content is kept, because the record
 * names who was refused and why; a refusal for the moment (busy, not selected) is not, and the site tries
 * again. */
static void submit_update(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct job *j = &c->jobs[ev->job];
    struct row *row = kedgei_row(c, ev->job, ev->site);
    bool pretrain = ev->kind == KEDGE_TASK_PRETRAIN;
    int err = check_task(j, row, ev);
    if (err == KEDGE_E_ROUND_CLOSED) {
        say_closed(c, ev);
        return;
    }
    bool on = kedgei_is_on(j, row, ev->round);
    if (err == KEDGE_OK && on && KEDGE_RARE(c, BUSY)) {
        err = KEDGE_E_BUSY;
    }
    bool speaks = on || (pretrain && kedgei_migrates(j, row));
    if (err != KEDGE_OK || !speaks) {
        turn_away(c, ev, ev->request, err != KEDGE_OK ? err : KEDGE_E_NOT_SELECTED);
        return;
    }
    enum item_kind kind = pretrain ? ITEM_PRETRAIN : ITEM_TRAIN;
    struct kedge_coord_input *in = kedgei_input(row, kind);
    if (in->progress == KEDGE_INPUT_ACCEPTED && !MUTANT(MUTANT_DUPLICATE_COUNTED)) {
        if (same_envelope(in, ev)) {
            give_receipt(c, ev, ev->request, in->leaf);
        } else if (!MUTANT(MUTANT_SILENT_REFUSAL)) {
            turn_away(c, ev, ev->request, KEDGE_E_DUPLICATE);
        }
        return;
    }
    if (kedgei_in_flight(in) || is_moving(row, kind)) {
        turn_away(c, ev, ev->request, KEDGE_E_BUSY); /* the first one may still fail, then this one counts */
        return;
    }
    bool asked = is_asked(j, row, kind);
    err = asked ? check_content(j, row, ev) : KEDGE_E_ARG;
    if (err != KEDGE_OK) {
        if (asked && !MUTANT(MUTANT_REFUSAL_UNRECORDED)) {
            in->progress = KEDGE_INPUT_REFUSED;
            in->reason = err;
            in->envelope = ev->envelope;
            in->update = ev->update;
            in->weight = ev->weight;
            kedgei_row_refresh(c, ev->job, ev->site);
        }
        turn_away(c, ev, ev->request, err)->recorded = asked;
        return;
    }
    if (kedgei_is_due(c, j)
        && (j->late || !on)) { /* or the round would stay open as long as somebody sends */
        turn_away(c, ev, ev->request, KEDGE_E_BUSY);
        return;
    }
    take(c, ev, kind, KEDGE_INPUT_VERIFYING);
}

/* The group that the site was in when this round had closed. */
static uint32_t evaluated_group(const struct job *j, const struct row *row, uint32_t round)
{
    uint32_t now = row->pub.group_durable ? row->pub.group : KEDGE_COORD_NONE;
    return round == j->closed_round ? now : kedgei_prior_group(j, row);
}

/* The model that an evaluation of this round is about, NULL when it is not kept any more or not yet there. */
static const struct kedge_digest *evaluated_model(const struct job *j, const struct row *row, uint32_t round)
{
    uint32_t group = evaluated_group(j, row, round);
    if (round == j->closed_round && group < j->model_count) {
        return &j->models[group];
    }
    return round == j->prior_round && group < j->prior_count ? &j->prior[group] : NULL;
}

/* Evaluations belong to closed rounds and hold nothing up. One of the round before the last is still taken
 * while its model is kept, since a site may have begun it when the next close came; each site counts once
 * for a round. */
static void submit_evaluation(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct job *j = &c->jobs[ev->job];
    struct row *row = kedgei_row(c, ev->job, ev->site);
    uint32_t done = row->pub.evaluated_round;
    if (j->closed_round == KEDGE_COORD_NONE || ev->round > j->closed_round || ev->round == 0) {
        turn_away(c, ev, ev->request, KEDGE_E_ROUND_STALE);
        return;
    }
    if (kedgei_in_flight(&row->evaluation)) {
        turn_away(c, ev, ev->request, KEDGE_E_BUSY);
        return;
    }
    if (done != KEDGE_COORD_NONE && ev->round <= done) {
        if (ev->round == row->evaluation_round && same_envelope(&row->evaluation, ev)) {
            give_receipt(c, ev, ev->request, row->evaluation.leaf);
        } else if (ev->round == done) {
            turn_away(c, ev, ev->request, KEDGE_E_DUPLICATE);
        } else {
            say_closed(c, ev);
        }
        return;
    }
    const struct kedge_digest *model = evaluated_model(j, row, ev->round);
    if (ev->round < j->closed_round && !model) {
        say_closed(c, ev);
    } else if (!model || ev->group != evaluated_group(j, row, ev->round)) {
        turn_away(c, ev, ev->request, KEDGE_E_WRONG_GROUP);
    } else if (memcmp(model, &ev->base, sizeof *model) != 0) {
        turn_away(c, ev, ev->request, KEDGE_E_WRONG_BASE);
    } else if (j->stage == STAGE_TESTING) {
        turn_away(c, ev, ev->request, KEDGE_E_BUSY); /* what is told of the round is what was there */
    } else if (j->stage == STAGE_JOB_CLOSING) {
        turn_away(c, ev, ev->request, KEDGE_E_ROUND_CLOSED);
    } else {
        row->evaluation_round = ev->round;
        take(c, ev, ITEM_EVALUATE, KEDGE_INPUT_APPENDING);
    }
}

/* A submission is a sign of life, too: a site that trains for long is heard of by its result. */
void kedgei_submit(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->request != KEDGE_COORD_NONE && ev->ticket != KEDGE_COORD_NONE);
    if (ev->site < c->site_count && c->sites[ev->site].active) {
        kedgei_presence_touch(c, ev->site);
    }
    int err = kedgei_check_speaker(c, ev);
    if (err != KEDGE_OK) {
        turn_away(c, ev, ev->request, err);
        return;
    }
    if (ev->job < c->limits.jobs_max) {
        kedgei_turn_ends(c, ev->job, ev->site);
    }
    if (ev->kind == KEDGE_TASK_EVALUATE) {
        submit_evaluation(c, ev);
    } else if (ev->kind == KEDGE_TASK_TRAIN || ev->kind == KEDGE_TASK_PRETRAIN) {
        submit_update(c, ev);
    } else {
        turn_away(c, ev, ev->request, KEDGE_E_ARG);
    }
}

static enum item_kind item_of(enum kedge_task_kind kind)
{
    KEDGE_ASSERT(kind == KEDGE_TASK_PRETRAIN || kind == KEDGE_TASK_TRAIN || kind == KEDGE_TASK_EVALUATE);
    return kind == KEDGE_TASK_PRETRAIN ? ITEM_PRETRAIN
           : kind == KEDGE_TASK_TRAIN  ? ITEM_TRAIN
                                       : ITEM_EVALUATE;
}

/* Gives an attempt up: answers it and leaves the input as a refusal (its own or an earlier one) or as
 * nothing. */
static void give_up(struct kedge_coord *c, const struct kedge_coord_event *ev, enum item_kind kind, int err,
                    bool refuse)
{
    struct row *row = kedgei_row(c, ev->job, ev->site);
    struct kedge_coord_input *in = kedgei_input(row, kind);
    turn_away(c, ev, row->item[kind].request, err)->recorded = refuse && kind != ITEM_EVALUATE;
    in->reason = refuse ? err : in->reason;
    in->progress = in->reason != KEDGE_OK ? KEDGE_INPUT_REFUSED : KEDGE_INPUT_NONE;
    in->ticket = row->item[kind].request = KEDGE_COORD_NONE;
    kedgei_row_refresh(c, ev->job, ev->site);
    KEDGE_ASSERT(!kedgei_in_flight(in));
}

/* For jobs that end. The site is told that there is no such job, which blames nobody. */
void kedgei_input_give_up(struct kedge_coord *c, uint32_t job, uint32_t site, enum item_kind kind)
{
    static const enum kedge_task_kind kinds[] = {KEDGE_TASK_PRETRAIN, KEDGE_TASK_TRAIN, KEDGE_TASK_EVALUATE};
    struct row *row = kedgei_row(c, job, site);
    const struct kedge_coord_event ev = {
        .job = job,
        .site = site,
        .round = kind == ITEM_EVALUATE ? row->evaluation_round : kedgei_task_round(&c->jobs[job], row),
        .kind = kinds[kind],
        .ticket = kedgei_input(row, kind)->ticket};
    give_up(c, &ev, kind, KEDGE_E_NO_JOB, false);
}

/* The host has looked at the bytes. A site that was revoked meanwhile is refused even if its update is
 * sound: whether it counts must follow from the order of statements, not from how long the check took. A
 * job that ends takes nothing more and blames nobody. */
void kedgei_verified(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct row *row = kedgei_row(c, ev->job, ev->site);
    enum item_kind kind = item_of(ev->kind);
    struct kedge_coord_input *in = kedgei_input(row, kind);
    struct job *j = &c->jobs[ev->job];
    KEDGE_ASSERT(kind != ITEM_EVALUATE && in->progress == KEDGE_INPUT_VERIFYING && in->ticket == ev->ticket);
    kedgei_item_done(j, &row->item[kind]);
    int err = ev->err;
    bool refuse = kedge_err_class(err) == KEDGE_CLASS_REJECT;
    if (!c->sites[ev->site].active && !MUTANT(MUTANT_ACCEPT_REVOKED)) {
        err = KEDGE_E_REVOKED;
        refuse = true;
    } else if (j->cancelling || j->failing != KEDGE_OK) {
        err = KEDGE_E_NO_JOB;
        refuse = false;
    } else if (!kedgei_is_member(c, j, ev->site) && c->sites[ev->site].active) { /* its tenant has left */
        err = KEDGE_E_NOT_JOINED;
        refuse = true;
    }
    if (err == KEDGE_OK || kedge_err_class(err) == KEDGE_CLASS_FULL) {
        kedgei_job_unstored(c, ev->job, ev->site, err);
    }
    if (err != KEDGE_OK) {
        give_up(c, ev, kind, err, refuse);
        return;
    }
    in->progress = KEDGE_INPUT_APPENDING;
    kedgei_item_emit(c, ev->job, ev->site, kind);
    if (MUTANT(MUTANT_RECEIPT_BEFORE_APPEND)) {
        give_receipt(c, ev, row->item[kind].request, 0);
    }
    kedgei_row_refresh(c, ev->job, ev->site);
}

/* The statement is durable in its ledger: from here on it counts, exactly once. */
static void accepted(struct kedge_coord *c, const struct kedge_coord_event *ev, enum item_kind kind)
{
    struct row *row = kedgei_row(c, ev->job, ev->site);
    struct kedge_coord_input *in = kedgei_input(row, kind);
    KEDGE_ASSERT(in->ticket == ev->ticket);
    in->progress = KEDGE_INPUT_ACCEPTED;
    in->reason = KEDGE_OK;
    in->leaf = ev->leaf;
    if (!MUTANT(MUTANT_RECEIPT_BEFORE_APPEND) || kind == ITEM_EVALUATE) {
        give_receipt(c, ev, row->item[kind].request, in->leaf);
    }
    in->ticket = row->item[kind].request = KEDGE_COORD_NONE;
    if (kind == ITEM_EVALUATE) {
        row->pub.evaluated_round = row->evaluation_round;
    } else if (kind == ITEM_TRAIN && c->jobs[ev->job].params.entry == KEDGE_ENTRY_CHOICE) {
        kedgei_group_set(&c->jobs[ev->job], row, in->group, true);
    } else if (kind == ITEM_PRETRAIN) {
        row->pub.shifted = false;
        if (c->jobs[ev->job].kind == KEDGE_TASK_TRAIN) {
            kedgei_assign_start(c, ev->job, ev->site, ASSIGN_WORK);
        }
    }
    kedgei_row_refresh(c, ev->job, ev->site);
}

/* Only an answer that cannot change settles an append. After any other error nobody knows whether the
 * statement is in the ledger, so the same statement is tried again until the ledger says; to give it up
 * here could leave one that counts without a receipt. */
void kedgei_appended(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    struct row *row = kedgei_row(c, ev->job, ev->site);
    enum item_kind kind = item_of(ev->kind);
    struct kedge_coord_input *in = kedgei_input(row, kind);
    KEDGE_ASSERT(in->progress == KEDGE_INPUT_APPENDING && in->ticket == ev->ticket);
    if (ev->err == KEDGE_OK) {
        kedgei_item_done(&c->jobs[ev->job], &row->item[kind]);
        accepted(c, ev, kind);
    } else if ((ev->err == KEDGE_E_REVOKED && !c->sites[ev->site].active)
               || (ev->err == KEDGE_E_NOT_JOINED && !kedgei_is_member(c, &c->jobs[ev->job], ev->site))) {
        /* Definite: the ledger holds site-revoked or job-left and not this statement, so it will never hold
         * it. */
        kedgei_item_done(&c->jobs[ev->job], &row->item[kind]);
        give_up(c, ev, kind, ev->err, true);
    } else if (kedgei_is_final(ev->err)) { /* definite, too: this site's statement is at fault, not its job */
        kedgei_item_done(&c->jobs[ev->job], &row->item[kind]);
        give_up(c, ev, kind, ev->err == KEDGE_E_EXISTS ? KEDGE_E_DUPLICATE : ev->err, true);
    } else if (MUTANT(MUTANT_FAILED_IS_NOT_DONE)) {
        kedgei_item_done(&c->jobs[ev->job], &row->item[kind]);
        give_up(c, ev, kind, KEDGE_E_BUSY, false);
    } else {
        kedgei_item_failed(c, ev->job, &row->item[kind], ev->err);
    }
}
