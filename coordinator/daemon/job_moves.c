/* The status history of jobs. The rules are in the header; what has to be seen here is how little is enough
 * for them: a state, what waits to be stored, and the number of moves that are. Sequences have no gaps, so
 * the end of a history is found by halving, and a number that is there already means that somebody else wrote
 * it. */
#include "coordinator/daemon/job_moves.h"

#include <string.h>

#include "common/base/try.h"

enum { STOP = 1, LIFE_MAX = 8 }; /* states from the first to an end, without halts */

/* ---- causes ---- */

static const char *const cause_names[KEDGE_CAUSE_COUNT] = {
    [KEDGE_CAUSE_PROGRESS] = "progress",
    [KEDGE_CAUSE_USER] = "user",
    [KEDGE_CAUSE_RESOURCES] = "insufficient-resources",
    [KEDGE_CAUSE_SITE] = "site",
    [KEDGE_CAUSE_NETWORK] = "network",
    [KEDGE_CAUSE_STORAGE] = "storage",
    [KEDGE_CAUSE_CHAIN] = "chain",
    [KEDGE_CAUSE_INTERNAL] = "internal",
};

const char *kedge_job_cause_name(enum kedge_job_cause cause)
{
    return (unsigned)cause < KEDGE_CAUSE_COUNT ? cause_names[cause] : "unknown";
}

/* By the ranges of err.def: a hundred to a module. What a job is halted or failed with is told by name, all
 * others by where they come from. */
enum kedge_job_cause kedge_job_cause_of(int err)
{
    switch (err) {
    case KEDGE_OK:
        return KEDGE_CAUSE_PROGRESS;
    case KEDGE_E_ENROL_TIME: /* nobody joined, or too few sites came */
    case KEDGE_E_BUDGET:
        return KEDGE_CAUSE_RESOURCES;
    case KEDGE_E_SITES:
    case KEDGE_E_TIMEOUT: /* the quorum did not come in time */
        return KEDGE_CAUSE_SITE;
    case KEDGE_E_CANCELLED:
        return KEDGE_CAUSE_USER;
    case KEDGE_E_IO:
    case KEDGE_E_DISK_FULL:
    case KEDGE_E_DENIED: /* of a write */
    case KEDGE_E_FULL:
    case KEDGE_E_NOT_FOUND:
    case KEDGE_E_BLOB_MISSING:
    case KEDGE_E_CORRUPT:
        return KEDGE_CAUSE_STORAGE;
    case KEDGE_E_EXISTS: /* another entry has its key */
    case KEDGE_E_TOO_LONG:
    case KEDGE_E_UNKNOWN:
        return KEDGE_CAUSE_CHAIN;
    default:
        break;
    }
    return err <= -300   ? KEDGE_CAUSE_SITE
           : err <= -200 ? KEDGE_CAUSE_NETWORK
           : err <= -100 ? KEDGE_CAUSE_CHAIN
                         : KEDGE_CAUSE_INTERNAL;
}

int kedge_job_reason_of(const char *text)
{
    static const int errors[] = {
#define KEDGE_ERR(name, value, class, text) name,
#include "common/base/err.def"
#undef KEDGE_ERR
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (strcmp(kedge_strerror(errors[i]), text) == 0) {
            return errors[i];
        }
    }
    return KEDGE_OK;
}

/* ---- taking moves ---- */

void kedge_job_moves_begin(struct kedge_job_moves *ret)
{
    *ret = (struct kedge_job_moves){.state = KEDGE_JOB_PENDING};
}

/* What goes on as it should has no reason, so a halt that is over leaves nothing behind. */
static bool fits_state(const struct kedge_job_move *move)
{
    return move->reason == KEDGE_OK || move->to == KEDGE_JOB_HALTED || move->to == KEDGE_JOB_FAILED;
}

/* The halt that waits at the end, if the move leads back to where it began: then neither is stored. */
static bool undoes_halt(const struct kedge_job_moves *m, const struct kedge_job_move *move)
{
    const struct kedge_job_move *last = m->waiting_count > 0 ? &m->waiting[m->waiting_count - 1] : NULL;
    return last && last->to == KEDGE_JOB_HALTED && last->from == move->to && move->to != KEDGE_JOB_HALTED;
}

/* Two halts in a row, neither stored, are one with the later reason. */
static bool follows_halt(const struct kedge_job_moves *m, const struct kedge_job_move *move)
{
    return m->waiting_count > 0 && m->waiting[m->waiting_count - 1].to == KEDGE_JOB_HALTED
           && move->to == KEDGE_JOB_HALTED;
}

enum kedge_job_move_outcome kedge_job_moves_take(struct kedge_job_moves *m, const struct kedge_job_move *move)
{
    m->handed = 0; /* of a transaction that failed */
    if (move->to == m->state && move->reason == m->reason) {
        return KEDGE_JOB_MOVE_REPEATED;
    }
    if (move->from != m->state || !kedge_job_state_allows(move->from, move->to) || !fits_state(move)) {
        return KEDGE_JOB_MOVE_ILLEGAL;
    }
    if (undoes_halt(m, move)) {
        m->waiting_count--;
    } else {
        const bool again = follows_halt(m, move);
        if (!again && m->waiting_count == KEDGE_JOB_MOVES_WAITING_MAX) {
            return KEDGE_JOB_MOVE_NO_ROOM;
        }
        m->waiting_count += !again;
        struct kedge_job_move *last = &m->waiting[m->waiting_count - 1];
        const enum kedge_job_state from = again ? last->from : move->from;
        *last = *move;
        last->from = from;
    }
    m->state = move->to;
    m->reason = move->reason;
    return KEDGE_JOB_MOVE_TAKEN;
}

/* The next state on the way of a job that goes on to its end. */
static enum kedge_job_state next_towards(enum kedge_job_state from, enum kedge_job_state to)
{
    if (kedge_job_state_allows(from, to)) {
        return to;
    }
    switch (from) {
    case KEDGE_JOB_PENDING:
        return KEDGE_JOB_QUEUED;
    case KEDGE_JOB_QUEUED:
        return KEDGE_JOB_ENROLLING;
    case KEDGE_JOB_ENROLLING:
    case KEDGE_JOB_GROUPING:
        return KEDGE_JOB_TRAINING;
    case KEDGE_JOB_TRAINING:
    case KEDGE_JOB_HALTED:
        return KEDGE_JOB_STORING;
    case KEDGE_JOB_STORING:
    case KEDGE_JOB_COMPLETED:
    case KEDGE_JOB_FAILED:
    case KEDGE_JOB_CANCELLED:
        break;
    }
    return from; /* no way leads there */
}

bool kedge_job_moves_lead(struct kedge_job_moves *m, const struct kedge_job_move *move)
{
    enum kedge_job_state way[LIFE_MAX], at = m->state;
    uint32_t count = 0;
    if (!fits_state(move)) {
        return false;
    }
    if (at == move->to && m->reason == move->reason) {
        return true;
    }
    do {
        const enum kedge_job_state next = next_towards(at, move->to);
        if ((next == at && next != KEDGE_JOB_HALTED) || count == LIFE_MAX) {
            return false;
        }
        way[count++] = at = next;
    } while (at != move->to);
    if (m->waiting_count + count > KEDGE_JOB_MOVES_WAITING_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct kedge_job_move step = *move;
        step.from = m->state;
        step.to = way[i];
        if (i + 1 < count) {
            step.cause = KEDGE_CAUSE_PROGRESS;
            step.reason = KEDGE_OK;
        }
        const enum kedge_job_move_outcome outcome = kedge_job_moves_take(m, &step);
        KEDGE_ASSERT(outcome == KEDGE_JOB_MOVE_TAKEN);
    }
    return true;
}

/* ---- storing ---- */

/* The epoch is looked at in the same transaction: what an earlier start believes is out of date. */
static int check_epoch(struct kedge_kv_tx *tx, uint64_t epoch, struct kedge_diag *d)
{
    struct kedge_view value;
    uint64_t stored = 0;
    int err = kedge_kv_peek(tx, KEDGE_KV_STATE, kedge_view_str(KEDGE_EPOCH_KEY), &value);
    err = err ? err : kedge_epoch_decode(value, &stored, d);
    if (err && err != KEDGE_E_NOT_FOUND) {
        return err;
    }
    return stored == epoch ? KEDGE_OK
                           : kedge_diag_set(d, KEDGE_E_EXISTS,
                                            "coordinator.lmdb: another coordinator has started over it");
}

int kedge_job_moves_put(struct kedge_kv_tx *tx, const struct kedge_id *job, uint64_t epoch,
                        struct kedge_job_moves *m, struct kedge_diag *d)
{
    const bool full = m->durable >= KEDGE_JOB_MOVES_MAX && m->waiting_count > 0
                      && m->waiting[m->waiting_count - 1].to == KEDGE_JOB_HALTED;
    KEDGE_TRY(m->waiting_count > 0 ? check_epoch(tx, epoch, d) : KEDGE_OK);
    m->handed = 0;
    for (uint32_t i = 0; i < m->waiting_count - full; i++) {
        struct kedge_buf key KEDGE_CLEANUP(kedge_buf_deinit), value KEDGE_CLEANUP(kedge_buf_deinit);
        struct kedge_job_move *move = &m->waiting[i];
        kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
        kedge_buf_init(&value, KEDGE_RECORD_MAX);
        move->job = *job;
        move->sequence = m->durable + i;
        move->epoch = epoch;
        kedge_job_move_encode(move, &key, &value);
        KEDGE_TRY(key.err ? key.err : value.err);
        int err = kedge_kv_put(tx, KEDGE_KV_STATE, kedge_buf_view(&key), kedge_buf_view(&value),
                               KEDGE_KV_PUT_IF_ABSENT);
        if (err == KEDGE_E_EXISTS) {
            return kedge_diag_set(d, err, "coordinator.lmdb: move %u of job %s is there already",
                                  (unsigned)move->sequence, job->s);
        }
        KEDGE_TRY(err);
    }
    m->handed = m->waiting_count - full;
    return KEDGE_OK;
}

void kedge_job_moves_settle(struct kedge_job_moves *m)
{
    m->durable += m->handed;
    m->waiting_count -= m->handed;
    memmove(m->waiting, m->waiting + m->handed, m->waiting_count * sizeof m->waiting[0]);
    m->handed = 0;
}

/* ---- reading ---- */

static int peek_move(struct kedge_kv_tx *tx, const struct kedge_id *job, uint32_t sequence,
                     struct kedge_job_move *ret, struct kedge_diag *d)
{
    struct kedge_buf key KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_view value;
    kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
    kedge_job_move_key(job, sequence, &key);
    KEDGE_TRY(key.err);
    KEDGE_TRY(kedge_kv_peek(tx, KEDGE_KV_STATE, kedge_buf_view(&key), &value));
    return kedge_job_move_decode(kedge_buf_view(&key), value, ret, d);
}

/* How many moves there are, and the last of them: a bound by doubling, the rest by halving. */
static int find_end(struct kedge_kv_tx *tx, const struct kedge_id *job, uint32_t *ret_count,
                    struct kedge_job_move *ret_last, struct kedge_diag *d)
{
    struct kedge_job_move move;
    uint32_t have = 0, lacks = 1; /* moves below `have` are there, that before `lacks` is not */
    int err = KEDGE_OK;
    while (!err && lacks <= UINT32_MAX / 4) {
        err = peek_move(tx, job, lacks - 1, &move, d);
        if (!err) {
            have = lacks;
            *ret_last = move;
            lacks *= 2;
        }
    }
    while ((!err || err == KEDGE_E_NOT_FOUND) && lacks - have > 1) {
        const uint32_t middle = have + (lacks - have) / 2;
        err = peek_move(tx, job, middle - 1, &move, d);
        if (!err) {
            have = middle;
            *ret_last = move;
        } else {
            lacks = middle;
        }
    }
    *ret_count = have;
    return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
}

int kedge_job_moves_load(struct kedge_kv_tx *tx, const struct kedge_job_record *record, uint64_t now_ms,
                         struct kedge_job_moves *ret, struct kedge_diag *d)
{
    struct kedge_job_move last;
    struct kedge_job_move now = {.to = record->state,
                                 .reason = record->reason,
                                 .cause = kedge_job_cause_of(record->reason),
                                 .ms = now_ms,
                                 .actor = "coordinator"};
    struct kedge_job_moves m;
    kedge_job_moves_begin(&m);
    KEDGE_TRY(find_end(tx, &record->job, &m.durable, &last, d));
    m.state = m.durable > 0 ? last.to : record->state; /* a version that kept no moves made the job */
    m.reason = m.durable > 0 ? last.reason : record->reason;
    if (!kedge_job_moves_lead(&m, &now)) {
        return kedge_diag_set(
            d, KEDGE_E_CORRUPT, "coordinator.lmdb: job %s: its record says %s, its last move led to %s",
            record->job.s, kedge_job_state_name(record->state), kedge_job_state_name(m.state));
    }
    *ret = m;
    return KEDGE_OK;
}

struct page {
    struct kedge_job_move *ret;
    uint32_t next, most, count;
    struct kedge_diag *d;
};

static int take_move(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct page *p = arg;
    if (p->count == p->most) {
        return STOP;
    }
    KEDGE_TRY(kedge_job_move_decode(key, value, &p->ret[p->count], p->d));
    if (p->ret[p->count].sequence != p->next++) {
        return kedge_diag_set(p->d, KEDGE_E_CORRUPT, "coordinator.lmdb: a move of job %s is missing",
                              p->ret[p->count].job.s);
    }
    p->count++;
    return KEDGE_OK;
}

int kedge_job_moves_page(struct kedge_kv *kv, const struct kedge_id *job, uint32_t from, uint32_t most,
                         struct kedge_job_move *ret, uint32_t *ret_count, bool *ret_more,
                         struct kedge_diag *d)
{
    struct kedge_buf prefix KEDGE_CLEANUP(kedge_buf_deinit), key KEDGE_CLEANUP(kedge_buf_deinit);
    struct page page = {.ret = ret, .next = from, .most = most, .d = d};
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    kedge_buf_init(&prefix, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
    kedge_job_move_prefix(job, &prefix);
    kedge_job_move_key(job, from, &key);
    KEDGE_TRY(prefix.err ? prefix.err : key.err);
    KEDGE_TRY(kedge_kv_begin(kv, false, &tx, d));
    int err =
        kedge_kv_scan(tx, KEDGE_KV_STATE, kedge_buf_view(&prefix), kedge_buf_view(&key), take_move, &page);
    if (err && err != STOP) {
        return d->text[0] ? err
                          : kedge_diag_set(d, err, "coordinator.lmdb: cannot read the moves of job %s: %s",
                                           job->s, kedge_strerror(err));
    }
    *ret_more = err == STOP;
    *ret_count = page.count;
    return KEDGE_OK;
}

int kedge_job_moves_epoch(struct kedge_kv *kv, uint64_t *ret, struct kedge_diag *d)
{
    struct kedge_view key = kedge_view_str(KEDGE_EPOCH_KEY), value;
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_kv_tx *tx;
    uint64_t epoch = 0;
    kedge_buf_init(&text, KEDGE_RECORD_MAX);
    KEDGE_TRY(kedge_kv_begin(kv, true, &tx, d));
    int err = kedge_kv_peek(tx, KEDGE_KV_STATE, key, &value);
    err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err ? err : kedge_epoch_decode(value, &epoch, d);
    if (!err) {
        kedge_buf_put_u64(&text, ++epoch);
        err =
            text.err ? text.err : kedge_kv_put(tx, KEDGE_KV_STATE, key, kedge_buf_view(&text), KEDGE_KV_PUT);
    }
    KEDGE_TRY(kedge_kv_end(tx, err, d));
    *ret = epoch;
    return KEDGE_OK;
}
