/* A close is several entries of one batch: aggregates, a group each, and right after them the step. The event
 * is the step's; what was accepted and refused is summed up from the aggregates before it. */
#include "coordinator/events/recorded.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/dsse.h"
#include "chain/log/note.h"
#include "chain/statement/main_entry.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* A tenant's name is the end of its log's origin, DEPLOYMENT/TENANT. */
static int read_checkpoint(struct kedge_view text, struct kedge_event *ret)
{
    struct kedge_checkpoint c;
    struct kedge_note *note KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *note);
    KEDGE_TRY(note ? kedge_note_parse(text, note) : KEDGE_E_NOMEM);
    KEDGE_TRY(kedge_checkpoint_parse(note->text, &c));
    size_t from = c.origin.len;
    while (from > 0 && c.origin.ptr[from - 1] != '/') {
        from--;
    }
    KEDGE_TRY(kedge_id_from(kedge_view_of(c.origin.ptr + from, c.origin.len - from), &ret->tenant));
    ret->kind = KEDGE_EVENT_HEAD;
    ret->size = c.size;
    ret->hash = c.root;
    return KEDGE_OK;
}

/* The statement of an entry, or its checkpoint as an event. Signatures were checked when it was appended. */
static int read_entry(struct kedge_ledger *main, uint64_t index, struct kedge_statement *ret_st,
                      struct kedge_event *ret_head, bool *ret_is_head)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit), payload KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_main_entry entry;
    struct kedge_dsse_entry dsse;
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_ledger_get(main, index, &bytes));
    KEDGE_TRY(kedge_main_entry_decode(kedge_buf_view(&bytes), &entry));
    *ret_is_head = entry.kind == KEDGE_MAIN_CHECKPOINT;
    if (*ret_is_head) {
        return read_checkpoint(entry.body, ret_head);
    }
    KEDGE_TRY(kedge_dsse_decode(entry.body, &payload, &dsse));
    return kedge_statement_decode(kedge_buf_view(&payload), ret_st, NULL);
}

/* The scratch holds an aggregate of the event's round, or something else, which ends the walk. */
static bool add_aggregate(const struct kedge_statement *st, struct kedge_event *e)
{
    const struct kedge_st_aggregate *a = &st->u.aggregate;
    if (st->kind != KEDGE_ST_AGGREGATE || a->round != e->round || !kedge_id_eq(&a->job, &e->job)) {
        return false;
    }
    for (uint32_t i = 0; i < a->tenant_count; i++) {
        e->accepted += a->tenants[i].accepted;
        e->refused += a->tenants[i].refused;
    }
    return true;
}

static int add_before_step(struct kedge_ledger *main, uint64_t index, struct kedge_statement *scratch,
                           struct kedge_event *e)
{
    struct kedge_event head;
    bool is_head = false, more = true;
    for (uint64_t back = 1; more && back <= KEDGE_GROUPS_MAX && back <= index; back++) {
        KEDGE_TRY(read_entry(main, index - back, scratch, &head, &is_head));
        more = !is_head && add_aggregate(scratch, e);
    }
    return KEDGE_OK;
}

/* How long the round was open, by the times of its first round-opened and of its step. */
static int add_seconds(struct kedge_ledger *main, struct kedge_statement *scratch, struct kedge_event *e)
{
    char key[KEDGE_ID_MAX + 64];
    struct kedge_event head;
    uint64_t index;
    bool is_head = false;
    snprintf(key, sizeof key, "round-opened/%s/%08" PRIu32, e->job.s, e->round);
    int err = kedge_ledger_find(main, kedge_view_str(key), &index);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    KEDGE_TRY(read_entry(main, index, scratch, &head, &is_head));
    if (!is_head && scratch->kind == KEDGE_ST_ROUND_OPENED && scratch->u.round_opened.time_ms > 0
        && e->time_ms > scratch->u.round_opened.time_ms) {
        e->round_ms = e->time_ms - scratch->u.round_opened.time_ms;
    }
    return KEDGE_OK;
}

static int take_step(struct kedge_ledger *main, uint64_t index, struct kedge_statement *st,
                     struct kedge_event *e)
{
    const struct kedge_st_step *s = &st->u.step;
    e->kind = KEDGE_EVENT_ROUND_CLOSED;
    e->job = s->job;
    e->round = s->round;
    e->groups = s->group_count;
    e->time_ms = s->time_ms;
    KEDGE_TRY(add_before_step(main, index, st, e)); /* st is scratch from here on */
    return add_seconds(main, st, e);
}

static void take_opened(const struct kedge_st_round_opened *o, struct kedge_event *e)
{
    e->kind = KEDGE_EVENT_ROUND_OPENED;
    e->job = o->job;
    e->round = o->round;
    e->draw = o->draw;
    e->is_pretraining = o->round_kind == KEDGE_TRAIN_PRETRAIN;
    e->time_ms = o->time_ms;
    for (uint32_t i = 0; i < o->tenant_count; i++) {
        e->selected += o->tenants[i].selected;
    }
}

static void take_closed(const struct kedge_st_job_closed *c, struct kedge_event *e)
{
    e->kind = KEDGE_EVENT_JOB_CLOSED;
    e->job = c->job;
    e->round = c->rounds;
    e->time_ms = c->time_ms;
    e->to = c->outcome == KEDGE_OUTCOME_COMPLETED ? "completed"
            : c->outcome == KEDGE_OUTCOME_FAILED  ? "failed"
                                                  : "cancelled";
}

static int take_statement(struct kedge_ledger *main, uint64_t index, struct kedge_statement *st,
                          struct kedge_event *e, bool *ret_is_event)
{
    *ret_is_event = true;
    switch ((int)st->kind) {
    case KEDGE_ST_JOB_OPENED:
        e->kind = KEDGE_EVENT_JOB_OPENED;
        e->job = st->u.job_opened.job;
        e->time_ms = st->u.job_opened.time_ms;
        return KEDGE_OK;
    case KEDGE_ST_ROUND_OPENED:
        take_opened(&st->u.round_opened, e);
        return KEDGE_OK;
    case KEDGE_ST_STEP:
        return take_step(main, index, st, e);
    case KEDGE_ST_RELEASE:
        e->kind = KEDGE_EVENT_RELEASE;
        e->job = st->u.release.job;
        e->round = st->u.release.round;
        e->group = st->u.release.group;
        e->hash = st->subject;
        return KEDGE_OK;
    case KEDGE_ST_JOB_CLOSED:
        take_closed(&st->u.job_closed, e);
        return KEDGE_OK;
    default:
        *ret_is_event = false;
        return KEDGE_OK;
    }
}

int kedge_event_recorded(struct kedge_ledger *main, uint64_t index, struct kedge_statement *scratch,
                         struct kedge_event *ret, bool *ret_is_event, struct kedge_diag *reterr)
{
    struct kedge_event e = {.entry = index};
    int err = read_entry(main, index, scratch, &e, ret_is_event);
    if (!err && !*ret_is_event) {
        err = take_statement(main, index, scratch, &e, ret_is_event);
    }
    if (err && err != KEDGE_E_NOT_FOUND && err != KEDGE_E_NOMEM) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "main chain, entry %" PRIu64 ": %s", index,
                              kedge_strerror(err));
    }
    *ret = e;
    return err;
}
