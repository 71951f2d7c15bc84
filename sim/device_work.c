/* What a site's core asks its host for: calls, fetches, training, uploads, writes. */
#include <string.h>

#include "sim/world.h"

enum { MS = 1000000, CALL_SLACK_S = 5, SLOW_TRAINING = 20 };

static struct sim_event *push(struct sim *w, enum sim_event_type type, uint64_t at_ns, uint32_t site,
                              uint64_t serial)
{
    struct sim_event *ev = sim_push(w, type, at_ns);
    ev->site = site;
    ev->term = w->devices[site].term;
    ev->serial = serial;
    if (type == SIM_DEVICE_DONE || type == SIM_DEVICE_DISK) {
        ev->site_event.serial = serial;
    }
    return ev;
}

/* Two bytes of an update's digest say what it is: [31] = 0xbd is one that the coordinator must refuse, [30]
 * gives its weight, 0xbd one that is over the limit. So a check anywhere can tell what should have happened
 * from the digest alone, without a table. */
static uint64_t weight_of(const struct sim *w, const struct kedge_site_result *result)
{
    if (w->payload) {
        struct kedge_digest update = sim_of_site(&result->update);
        return result->kind == KEDGE_SITE_EVALUATE ? 1 : w->payload->weight(w->payload->arg, &update);
    }
    return result->update.b[30] == 0xbd ? 101 : 1u + result->update.b[30] % 100u; /* 101 is over the limit */
}

static struct sim_event *push_submit(struct sim *w, uint64_t at_ns, uint32_t site, uint64_t serial,
                                     const struct kedge_site_result *result)
{
    struct sim_event *ev = push(w, SIM_TO_SERVER, at_ns, site, serial);
    ev->call = KEDGE_SITE_CALL_SUBMIT;
    ev->result = *result;
    ev->weight = weight_of(w, result);
    return ev;
}

/* A site that signs twice for one task: the coordinator must count it once. */
static void send_other_face(struct sim *w, uint32_t site, const struct kedge_site_result *result)
{
    struct kedge_site_result other = *result;
    struct sim_device *d = &w->devices[site];
    struct kedge_digest update = sim_digest(w->seq, site, result->round, "other", 5);
    update.b[30] = update.b[31] = 1;
    other.update = sim_to_site(&update);
    sim_sign_result(w, site, &other, weight_of(w, &other));
    d->uploads[d->upload_count++ % SIM_UPLOADS_KEPT] = update;
    push_submit(w, w->now_ns + 2 * sim_delay(w), site, 0, &other);
}

/* Somebody altered what a site signed: an update of its own making, a larger weight. */
static void send_forged(struct sim *w, uint32_t site, const struct kedge_site_result *result)
{
    struct sim_event *ev = push_submit(w, w->now_ns + sim_delay(w), site, 0, result);
    ev->result.envelope.b[0] ^= 1;
    ev->weight++;
}

/* What the call says was true when it was sent; a copy that comes late, or twice, still says it. Each work
 * has one call at a time, and the heartbeat a place of its own after theirs, since it goes on while their
 * calls are open.
 */
static void call(struct sim *w, uint32_t site, const struct kedge_site_effect *fx)
{
    struct sim_device *d = &w->devices[site];
    d->open_call[fx->busy ? KEDGE_SITE_WORKS_MAX : fx->work] = fx->serial;
    uint32_t at_work = 0;
    for (uint32_t i = 0; i < fx->at_work_count; i++) {
        at_work |= 1u << sim_job_of(&fx->at_work[i]);
    }
    uint32_t shifted = 0;
    for (uint32_t i = 0; i < fx->shifted_count; i++) {
        shifted |= 1u << sim_job_of(&fx->shifted[i]);
    }
    if (!fx->busy) {
        d->call_of[fx->work] = fx->call;
    }
    if (!fx->busy && fx->call == KEDGE_SITE_CALL_POLL) {
        d->poll = fx->serial;
        d->left_out = at_work;
    }
    uint64_t wait = fx->call == KEDGE_SITE_CALL_POLL ? fx->wait_ns : 0;
    const struct kedge_site_result ended = {
        .job = fx->task.job, .round = fx->task.round, .kind = fx->task.kind};
    if (fx->call == KEDGE_SITE_CALL_POLL) {
        sim_check_shift_told(w, site, fx);
    }
    push(w, SIM_CALL_TIMEOUT, w->now_ns + wait + CALL_SLACK_S * SIM_SECOND, site, fx->serial);
    if (fx->call == KEDGE_SITE_CALL_SUBMIT) {
        sim_check_sends(w, site, fx);
        sim_check_sent(w, site, &fx->result);
        bool update = fx->result.kind != KEDGE_SITE_EVALUATE;
        if (sim_chance(w, w->config.two_faced) && update) {
            sim_count(w, SIM_FAULT_TWO_FACED);
            send_other_face(w, site, &fx->result);
        }
        if (sim_fault(w, SIM_FAULT_FORGED, w->config.forged)) {
            send_forged(w, site, &fx->result);
        }
    }
    if (sim_fault(w, SIM_FAULT_LOST, w->config.loss)) {
        return;
    }
    for (int copies = sim_fault(w, SIM_FAULT_DOUBLED, w->config.duplicate) ? 2 : 1; copies > 0; copies--) {
        struct sim_event *ev = push(w, SIM_TO_SERVER, w->now_ns + sim_delay(w), site, fx->serial);
        ev->call = fx->call;
        ev->wait_ns = fx->wait_ns;
        ev->busy = fx->busy;
        ev->charge = sim_charge_of(w, site);
        ev->at_work = at_work;
        ev->shifted = shifted;
        ev->anew = fx->anew;
        ev->trouble = fx->trouble;
        ev->result = fx->call == KEDGE_SITE_CALL_ENDED ? ended : fx->result;
        ev->weight = fx->call == KEDGE_SITE_CALL_SUBMIT ? weight_of(w, &fx->result) : 0;
    }
}

static void fetch(struct sim *w, uint32_t site, const struct kedge_site_effect *fx)
{
    uint64_t at = w->now_ns + 2 * sim_delay(w);
    if (w->payload && (fx->blob == KEDGE_SITE_BLOB_MODEL || fx->blob == KEDGE_SITE_BLOB_TRIAL)) {
        const bool is_judged = fx->blob == KEDGE_SITE_BLOB_MODEL && fx->task.kind == KEDGE_SITE_EVALUATE;
        at += w->payload->transfer_ns(w->payload->arg, site,
                                      is_judged ? SIM_TRANSFER_JUDGED : SIM_TRANSFER_DOWN);
    }
    struct sim_event *ev = push(w, SIM_DEVICE_DONE, at, site, fx->serial);
    struct sim_device *d = &w->devices[site];
    struct kedge_digest model = sim_of_site(&fx->digest);
    uint32_t job = sim_job_of(&fx->task.job);
    int err = KEDGE_OK;
    bool cut = sim_inside(w, &d->cut_to_server) || sim_inside(w, &d->cut_to_site);
    if (!w->server.up || cut || sim_fault(w, SIM_FAULT_LOST, w->config.loss)) {
        err = KEDGE_E_UNREACHABLE;
    } else if (fx->blob == KEDGE_SITE_BLOB_MODEL && !sim_may_read(w, job, site, &model)) {
        err = KEDGE_E_NOT_FOUND;
    } else if (fx->blob == KEDGE_SITE_BLOB_MODEL) {
        sim_check_fetched(w, site, job, &model);
    }
    uint64_t *fetched = &d->fetched[fx->work];
    *fetched = fx->blob == KEDGE_SITE_BLOB_SPEC ? 0 : *fetched;
    for (uint32_t g = 0; g < fx->task.choice_count && !err; g++) {
        bool same = memcmp(fx->task.choices[g].b, fx->digest.b, sizeof fx->digest.b) == 0;
        *fetched |= (uint64_t)same << g;
    }
    if (w->server.up && sim_chance(w, w->config.nosy)) {
        sim_check_nosy(w, job);
    }
    ev->site_event.type = err == KEDGE_OK ? KEDGE_SITE_EV_FETCHED : KEDGE_SITE_EV_FETCH_FAILED;
    ev->site_event.err = err;
}

/* The site's own choice; some name another group than that whose model they trained. */
static void choose(struct sim *w, uint32_t site, uint32_t work, const struct kedge_site_task *task,
                   struct kedge_site_result *r)
{
    uint32_t job = sim_job_of(&task->job), count = task->choice_count;
    if (w->devices[site].fetched[work] != UINT64_MAX >> (KEDGE_GROUPS_MAX - count)) {
        sim_violate(w, "site %u chooses between %u models and has not seen all of them", site, count);
    }
    struct kedge_digest by = sim_digest(w->seq, site, task->round, "choice", 6);
    r->group = by.b[7] % count;
    r->base = task->choices[r->group];
    uint32_t rate = w->jobs[job].wrong_choice;
    if (rate > 0 && sim_fault(w, SIM_FAULT_WRONG_CHOICE, rate)) {
        r->group = (r->group + 1) % count;
    }
}

/* An evaluation that comes with a training round is of the model with which that round began, which the round
 * before has made. */
static void put_result(struct sim *w, uint32_t site, uint32_t work, const struct kedge_site_task *task,
                       enum kedge_site_kind kind, struct kedge_site_event *ev)
{
    struct kedge_site_result *r = &ev->results[ev->result_count++];
    r->job = task->job;
    r->kind = kind;
    r->round = kind == KEDGE_SITE_EVALUATE && task->kind == KEDGE_SITE_TRAIN ? task->round - 1 : task->round;
    r->group = task->group;
    r->base = task->base;
    if (task->choice_count > 0) {
        choose(w, site, work, task, r);
    }
    if (kind != KEDGE_SITE_EVALUATE) { /* training is not repeatable: every attempt yields other weights */
        struct kedge_digest update = sim_digest(w->seq, site, task->round, &r->base, sizeof r->base);
        bool bad = sim_fault(w, SIM_FAULT_BAD_UPDATE, w->config.bad);
        bool heavy = !bad && sim_fault(w, SIM_FAULT_BAD_WEIGHT, w->config.bad);
        update.b[31] = bad ? 0xbd : (uint8_t)(update.b[31] & 0x3f);
        update.b[30] = heavy ? 0xbd : (uint8_t)(update.b[30] & 0x3f);
        r->update = sim_to_site(&update);
        r->update_len = task->update_len;
    }
    sim_sign_result(w, site, r, weight_of(w, r));
}

/* Real training, and what is told about it; no result: it went wrong. */
static void put_trained(struct sim *w, uint32_t site, const struct kedge_site_task *task,
                        struct kedge_site_event *ev)
{
    struct kedge_digest update = {{0}};
    struct kedge_site_result *r = &ev->results[ev->result_count++];
    *r = (struct kedge_site_result){
        .job = task->job, .kind = task->kind, .round = task->round, .group = task->group, .base = task->base};
    if (task->kind != KEDGE_SITE_EVALUATE) {
        uint32_t choice = 0;
        int err = w->payload->end(w->payload->arg, site, task, &update, &choice);
        if (err) {
            ev->type = KEDGE_SITE_EV_TRAIN_FAILED;
            ev->err = KEDGE_E_TRAINER;
            ev->result_count = 0;
            return;
        }
        r->update = sim_to_site(&update);
        r->update_len = task->update_len;
        r->group = task->choice_count > 0 ? choice : r->group;
        r->base = task->choice_count > 0 ? task->choices[choice] : r->base;
    }
    sim_sign_result(w, site, r, weight_of(w, r));
    if (task->evaluate_base) {
        put_result(w, site, 0, task, KEDGE_SITE_EVALUATE, ev);
    }
}

void sim_device_worked(struct sim *w, uint32_t site, struct kedge_site_event *done)
{
    const struct kedge_site_task task = done->reply.task;
    put_trained(w, site, &task, done);
    if (done->type == KEDGE_SITE_EV_TRAINED && w->payload->has_shifted(w->payload->arg, site, &task)) {
        struct sim_event *ev = sim_push(w, SIM_SHIFT, w->now_ns);
        ev->site = site;
        ev->job = sim_job_of(&task.job);
    }
}

static void train(struct sim *w, uint32_t site, const struct kedge_site_effect *fx)
{
    uint64_t ns = (1 + sim_below(w, w->config.train_ms)) * MS;
    ns = w->payload ? w->payload->work_ns(w->payload->arg, site, &fx->task) : ns;
    ns = sim_fault(w, SIM_FAULT_TRAINING_SLOW, w->config.train_slow) ? SLOW_TRAINING * ns : ns;
    struct sim_event *ev = push(w, SIM_DEVICE_DONE, w->now_ns + ns, site, fx->serial);
    struct kedge_site_event *done = &ev->site_event;
    if (sim_fault(w, SIM_FAULT_TRAINING_FAILED, w->config.train_fail)) {
        done->type = KEDGE_SITE_EV_TRAIN_FAILED;
        done->err = KEDGE_E_TRAINER;
        return;
    }
    done->type = KEDGE_SITE_EV_TRAINED;
    if (w->payload) {
        done->reply.task = fx->task;
        w->payload->begin(w->payload->arg, site, &fx->task);
        return;
    }
    put_result(w, site, fx->work, &fx->task, fx->task.kind, done);
    if (fx->task.evaluate_base) {
        put_result(w, site, fx->work, &fx->task, KEDGE_SITE_EVALUATE, done);
    }
}

static void keep_receipt(struct sim_device *d, const struct kedge_site_result *result, uint64_t leaf)
{
    d->acks = sim_grow(d->acks, d->ack_count + 1, &d->ack_max, sizeof *d->acks);
    d->acks[d->ack_count++] = (struct sim_ack){(uint32_t)leaf, sim_of_site(&result->envelope)};
}

/* A pretraining that came behind the shift is acknowledged. */
static void answer_shift(struct sim_device *d, const struct kedge_site_result *result)
{
    uint32_t job = sim_job_of(&result->job);
    if (result->kind == KEDGE_SITE_PRETRAIN && d->answered[job]) {
        d->shifted[job] = d->answered[job] = false;
    }
}

void sim_device_execute(struct sim *w, uint32_t site, const struct kedge_site_effect *fx, uint64_t leaf)
{
    struct sim_device *d = &w->devices[site];
    uint64_t what = (uint64_t)fx->type << 32 | (uint64_t)fx->call << 16 | (uint64_t)fx->note;
    sim_note(w, "site", site, what, fx->serial ^ (uint64_t)(uint32_t)fx->err);
    switch (fx->type) {
    case KEDGE_SITE_FX_CALL:
        call(w, site, fx);
        return;
    case KEDGE_SITE_FX_FETCH:
        fetch(w, site, fx);
        return;
    case KEDGE_SITE_FX_TRAIN:
        train(w, site, fx);
        return;
    case KEDGE_SITE_FX_UPLOAD: {
        sim_check_sends(w, site, fx);
        d->open_upload[fx->work] = fx->serial;
        uint64_t at = w->now_ns + sim_delay(w);
        at += w->payload ? w->payload->transfer_ns(w->payload->arg, site, SIM_TRANSFER_UP) : 0;
        push(w, SIM_UPLOAD, at, site, fx->serial)->result = fx->result;
        return;
    }
    case KEDGE_SITE_FX_PERSIST: {
        uint64_t at = sim_disk(w, &d->disk_busy_ns, NULL);
        push(w, SIM_DEVICE_DISK, at, site, fx->serial)->site_event.memory = fx->memory;
        return;
    }
    case KEDGE_SITE_FX_SEEN:
        d->seen = fx->seen; /* written at once or, when it crashes midway, never */
        return;
    case KEDGE_SITE_FX_REFUSE:
        sim_violate(w, "site %u refuses a main chain of %llu entries after one of %llu", site,
                    (unsigned long long)fx->shown.size, (unsigned long long)fx->seen.size);
        return;
    case KEDGE_SITE_FX_LOG:
        if (fx->note == KEDGE_SITE_NOTE_RECEIPT) {
            keep_receipt(d, &fx->result, leaf);
            answer_shift(d, &fx->result);
        }
        if (fx->note == KEDGE_SITE_NOTE_DROPPED && kedge_err_class(fx->err) != KEDGE_CLASS_REJECT) {
            sim_violate(w, "site %u drops a result because of %s", site, kedge_err_code(fx->err));
        }
        if (fx->note == KEDGE_SITE_NOTE_RECEIPT || fx->note == KEDGE_SITE_NOTE_DROPPED) {
            sim_check_settled(w, site, &fx->result);
        }
        return;
    case KEDGE_SITE_FX_FORGET:
        sim_check_settled(w, site, &fx->result); /* a site that is revoked drops what it has */
        return;
    case KEDGE_SITE_FX_ABORT:
        d->open_upload[fx->work] = 0;
        return;
    }
}
