/* The status history of jobs against a model: random moves, told twice, told out of turn, full and failing
 * disks, restarts and second coordinators. No move is lost, doubled or illegal, and a reader that comes again
 * and again sees each of them once. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/job_moves.h"
#include "tests/fixtures/effort.h"
#include "tests/fixtures/kv.h"
#include "tests/unit/base/check.h"

enum { RUNS = 2500, RUNS_FEW = 40, EVENTS = 400, STATES = 10, ENDS = 7 /* the first of them */ };

/* ---- which moves there are, told once more: a line for each state, a letter for each that may follow ----
 */

static const char letters[] = "pqegthscfx"; /* pending, queued, enrolling … completed, failed, cancelled */
static const char *const ways[STATES] = {
    [KEDGE_JOB_PENDING] = "q",     [KEDGE_JOB_QUEUED] = "ehfx",   [KEDGE_JOB_ENROLLING] = "gthfx",
    [KEDGE_JOB_GROUPING] = "thfx", [KEDGE_JOB_TRAINING] = "shfx", [KEDGE_JOB_HALTED] = "qegtshfx",
    [KEDGE_JOB_STORING] = "chfx",  [KEDGE_JOB_COMPLETED] = "",    [KEDGE_JOB_FAILED] = "",
    [KEDGE_JOB_CANCELLED] = "",
};

static bool may(unsigned from, unsigned to)
{
    return strchr(ways[from], letters[to]) != NULL;
}

START_TEST(test_transitions)
{
    for (unsigned from = 0; from < 256; from++) {
        for (unsigned to = 0; to < 256; to++) {
            bool allowed = kedge_job_state_allows((enum kedge_job_state)from, (enum kedge_job_state)to);
            ck_assert_msg(allowed == (from < STATES && to < STATES && may(from, to)), "%u to %u", from, to);
        }
    }
}
END_TEST

/* ---- a coordinator, what it believes, and what a model of it says ---- */

struct told {
    enum kedge_job_state state;
    int reason;
};

struct world {
    uint64_t random;
    struct kedge_kv *kv;
    struct kedge_id job;
    uint64_t epoch;
    struct kedge_job_moves moves;
    struct told way[KEDGE_JOB_MOVES_WAITING_MAX + 1]; /* the last that is durable, and what came since */
    uint32_t way_len;
    struct told stored[EVENTS + 1]; /* all that was ever durable */
    uint32_t stored_len;
    uint32_t seen; /* moves that the reader has */
    uint64_t seen_epoch;
    unsigned taken, repeated, refused, restarts, full;
};

static uint32_t below(struct world *w, uint32_t n)
{
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(w->random >> 33) % n;
}

static struct kedge_job_record record_of(const struct world *w, struct told now)
{
    struct kedge_job_record r = {.job = w->job, .state = now.state, .reason = now.reason};
    return r;
}

static void restart(struct world *w)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_kv_tx *tx;
    kedge_kv_faulty_set(w->kv, KEDGE_KV_FAULT_NONE, 0);
    ck_assert_int_eq(kedge_job_moves_epoch(w->kv, &w->epoch, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_begin(w->kv, false, &tx, &d), KEDGE_OK);
    struct kedge_job_record r = record_of(w, w->stored[w->stored_len - 1]);
    if (w->stored_len == 1) { /* there is no such job: its submission was never stored */
        kedge_job_moves_begin(&w->moves);
    } else {
        ck_assert_msg(kedge_job_moves_load(tx, &r, 1, &w->moves, &d) == KEDGE_OK, "%s", d.text);
    }
    kedge_kv_abort(tx);
    ck_assert_uint_eq(w->moves.waiting_count, 0);
    w->way[0] = w->stored[w->stored_len - 1];
    w->way_len = 1;
    ck_assert_int_eq(w->moves.state, w->way[0].state);
    ck_assert_int_eq(w->moves.reason, w->way[0].reason);
    ck_assert_uint_eq(w->moves.durable, w->stored_len - 1);
    w->restarts++;
}

/* A halt that nobody was told of, and is over, did not happen. */
static bool model_takes(struct world *w, struct told next)
{
    const uint32_t last = w->way_len - 1;
    if (last > 0 && w->way[last].state == KEDGE_JOB_HALTED && next.state == KEDGE_JOB_HALTED) {
        w->way[last] = next;
    } else if (last > 0 && w->way[last].state == KEDGE_JOB_HALTED && w->way[last - 1].state == next.state) {
        w->way_len--;
    } else if (last == KEDGE_JOB_MOVES_WAITING_MAX) {
        return false;
    } else {
        w->way[w->way_len++] = next;
    }
    return true;
}

static void take(struct world *w, enum kedge_job_state from, struct told to)
{
    const struct told now = w->way[w->way_len - 1];
    const struct kedge_job_move move = {
        .from = from, .to = to.state, .reason = to.reason, .ms = 1, .actor = "coordinator"};
    const enum kedge_job_move_outcome outcome = kedge_job_moves_take(&w->moves, &move);
    if (to.state == now.state && to.reason == now.reason) {
        ck_assert_int_eq(outcome, KEDGE_JOB_MOVE_REPEATED);
        w->repeated++;
    } else if (from != now.state || !may(from, to.state)
               || (to.reason && to.state != KEDGE_JOB_HALTED && to.state != KEDGE_JOB_FAILED)) {
        ck_assert_int_eq(outcome, KEDGE_JOB_MOVE_ILLEGAL);
        w->refused++;
    } else if (!model_takes(w, to)) {
        ck_assert_int_eq(outcome, KEDGE_JOB_MOVE_NO_ROOM);
        w->full++;
    } else {
        ck_assert_int_eq(outcome, KEDGE_JOB_MOVE_TAKEN);
        w->taken++;
    }
    const struct told after = w->way[w->way_len - 1];
    ck_assert(w->moves.state == after.state && w->moves.reason == after.reason);
}

static void took(struct world *w)
{
    for (uint32_t i = 1; i < w->way_len; i++) {
        w->stored[w->stored_len++] = w->way[i];
    }
    w->way[0] = w->way[w->way_len - 1];
    w->way_len = 1;
}

/* The commit meets a fault now and then. One whose outcome is not known ends the process. */
static void store(struct world *w)
{
    static const enum kedge_kv_fault faults[] = {KEDGE_KV_FAULT_NONE,   KEDGE_KV_FAULT_NONE,
                                                 KEDGE_KV_FAULT_NONE,   KEDGE_KV_FAULT_FULL,
                                                 KEDGE_KV_FAULT_FAILED, KEDGE_KV_FAULT_FAILED_BUT_DONE};
    const enum kedge_kv_fault fault = faults[below(w, 6)];
    struct kedge_diag d = {.text = ""};
    struct kedge_kv_tx *tx;
    if (w->stored_len + w->way_len > EVENTS) {
        return;
    }
    kedge_kv_faulty_set(w->kv, fault, fault != KEDGE_KV_FAULT_NONE);
    ck_assert_int_eq(kedge_kv_begin(w->kv, true, &tx, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_job_moves_put(tx, &w->job, w->epoch, &w->moves, &d), KEDGE_OK);
    int err = kedge_kv_commit(tx, &d);
    kedge_kv_faulty_set(w->kv, KEDGE_KV_FAULT_NONE, 0);
    if (!err) {
        kedge_job_moves_settle(&w->moves);
        ck_assert_uint_eq(w->moves.waiting_count, 0);
        took(w);
    } else if (err != KEDGE_E_DISK_FULL) {
        if (fault == KEDGE_KV_FAULT_FAILED_BUT_DONE) {
            took(w);
        }
        ck_assert_int_eq(kedge_kv_reopen(w->kv, &d), KEDGE_OK);
        restart(w);
    }
}

/* What it sees are the next ones of all that were ever durable, and no others. */
static void look(struct world *w, uint32_t most)
{
    struct kedge_job_move page[8];
    struct kedge_diag d = {.text = ""};
    uint32_t count;
    bool more;
    ck_assert_msg(kedge_job_moves_page(w->kv, &w->job, w->seen, most, page, &count, &more, &d) == KEDGE_OK,
                  "%s", d.text);
    const uint32_t left = w->stored_len - 1 - w->seen;
    ck_assert_uint_eq(count, left < most ? left : most);
    ck_assert(more == (left > most));
    for (uint32_t i = 0; i < count; i++) {
        const struct told before = w->stored[w->seen], now = w->stored[w->seen + 1];
        ck_assert_uint_eq(page[i].sequence, w->seen++);
        ck_assert(page[i].from == before.state && page[i].to == now.state && page[i].reason == now.reason);
        ck_assert(may(page[i].from, page[i].to) && page[i].epoch >= w->seen_epoch);
        w->seen_epoch = page[i].epoch;
    }
}

/* One that was away meanwhile knows less, and changes nothing. */
static void second_coordinator(struct world *w)
{
    struct kedge_job_moves old = w->moves;
    struct kedge_diag d = {.text = ""};
    struct kedge_kv_tx *tx;
    const struct kedge_job_move move = {.from = old.state, .to = KEDGE_JOB_HALTED, .actor = "coordinator"};
    if (w->epoch < 2 || kedge_job_moves_take(&old, &move) != KEDGE_JOB_MOVE_TAKEN || old.waiting_count == 0) {
        return;
    }
    ck_assert_int_eq(kedge_kv_begin(w->kv, true, &tx, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_job_moves_put(tx, &w->job, w->epoch - 1, &old, &d), KEDGE_E_EXISTS);
    kedge_kv_abort(tx);
}

static struct told any_told(struct world *w)
{
    static const int reasons[] = {KEDGE_OK, KEDGE_OK, KEDGE_E_SITES, KEDGE_E_DISK_FULL, KEDGE_E_TIMEOUT};
    return (struct told){(enum kedge_job_state)below(w, STATES), reasons[below(w, 5)]};
}

static void random_event(struct world *w)
{
    const struct told now = w->way[w->way_len - 1];
    struct told to = any_told(w);
    const bool spare_ends =
        (unsigned)to.state >= ENDS && below(w, 2000) > 0; /* or every run would be short */
    switch (below(w, 16)) {
    case 0:
    case 1:
        take(w, now.state, now); /* once more */
        break;
    case 2:
        take(w, (enum kedge_job_state)below(w, STATES), to); /* out of turn */
        break;
    case 3:
        if (below(w, 4) == 0) {
            restart(w);
        } else {
            second_coordinator(w);
        }
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        store(w);
        break;
    case 8:
        look(w, 1 + below(w, 7));
        break;
    default:
        if (!spare_ends) {
            take(w, now.state, to);
        }
        break;
    }
}

START_TEST(test_against_a_model)
{
    static struct world w;
    struct world sum = {.taken = 0};
    for (uint64_t run = 0; run < EFFORT(RUNS, RUNS_FEW); run++) {
        struct kedge_kv *memory;
        memset(&w, 0, sizeof w);
        w.random = 1 + run;
        w.job = (struct kedge_id){"demo"};
        ck_assert_int_eq(kedge_kv_memory_new(&memory), KEDGE_OK);
        ck_assert_int_eq(kedge_kv_faulty_new(memory, &w.kv), KEDGE_OK);
        w.stored[0] = (struct told){KEDGE_JOB_PENDING, KEDGE_OK};
        w.stored_len = 1;
        restart(&w);
        for (int i = 0; i < EVENTS; i++) {
            random_event(&w);
        }
        while (w.seen < w.stored_len - 1) {
            look(&w, 8);
        }
        sum.taken += w.taken;
        sum.repeated += w.repeated;
        sum.refused += w.refused;
        sum.restarts += w.restarts;
        sum.stored_len += w.stored_len - 1;
        kedge_kv_close(w.kv);
    }
    printf("%u taken, %u stored, %u repeated, %u refused, %u restarts\n", sum.taken, sum.stored_len,
           sum.repeated, sum.refused, sum.restarts);
    ck_assert(sum.taken > sum.stored_len && sum.stored_len > 0 && sum.refused > 0 && sum.repeated > 0);
}
END_TEST

/* ---- single rules ---- */

static struct kedge_job_move to(enum kedge_job_state from, enum kedge_job_state state, int reason)
{
    return (struct kedge_job_move){
        .from = from, .to = state, .reason = reason, .ms = 5, .actor = "coordinator"};
}

static void put(struct kedge_kv *kv, uint64_t epoch, struct kedge_job_moves *m)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_kv_tx *tx;
    const struct kedge_id job = {"demo"};
    ck_assert_int_eq(kedge_kv_begin(kv, true, &tx, &d), KEDGE_OK);
    ck_assert_msg(kedge_job_moves_put(tx, &job, epoch, m, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_int_eq(kedge_kv_commit(tx, &d), KEDGE_OK);
    kedge_job_moves_settle(m);
}

/* A site that comes and goes for ever fills no disk; what the job became is stored all the same. */
START_TEST(test_halts_are_bounded)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_job_moves m;
    struct kedge_kv *kv;
    uint64_t epoch;
    ck_assert_int_eq(kedge_kv_memory_new(&kv), KEDGE_OK);
    ck_assert_int_eq(kedge_job_moves_epoch(kv, &epoch, &d), KEDGE_OK);
    kedge_job_moves_begin(&m);
    m.state = KEDGE_JOB_TRAINING;
    m.durable = KEDGE_JOB_MOVES_MAX;
    struct kedge_job_move halt = to(KEDGE_JOB_TRAINING, KEDGE_JOB_HALTED, KEDGE_E_SITES),
                          on = to(KEDGE_JOB_HALTED, KEDGE_JOB_TRAINING, KEDGE_OK),
                          last = to(KEDGE_JOB_HALTED, KEDGE_JOB_STORING, KEDGE_OK);
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(kedge_job_moves_take(&m, &halt), KEDGE_JOB_MOVE_TAKEN);
        put(kv, epoch, &m);
        ck_assert_int_eq(kedge_job_moves_take(&m, &on), KEDGE_JOB_MOVE_TAKEN);
        put(kv, epoch, &m);
    }
    ck_assert_uint_eq(m.durable, KEDGE_JOB_MOVES_MAX);
    ck_assert_int_eq(kedge_job_moves_take(&m, &halt), KEDGE_JOB_MOVE_TAKEN);
    put(kv, epoch, &m);
    ck_assert_int_eq(kedge_job_moves_take(&m, &last), KEDGE_JOB_MOVE_TAKEN);
    put(kv, epoch, &m);
    ck_assert_uint_eq(m.durable, KEDGE_JOB_MOVES_MAX + 2);
    kedge_kv_close(kv);
}
END_TEST

/* What a restart finds in the main chain: every end from every state in which a job can be. */
START_TEST(test_led_to_an_end)
{
    for (unsigned from = 0; from < ENDS; from++) {
        for (unsigned end = 0; end < STATES; end++) {
            struct kedge_job_moves m;
            kedge_job_moves_begin(&m);
            m.state = (enum kedge_job_state)from;
            const struct kedge_job_move move = to(KEDGE_JOB_PENDING, (enum kedge_job_state)end, KEDGE_OK);
            const bool there = kedge_job_moves_lead(&m, &move);
            ck_assert_msg(end < ENDS || there, "%u to %u", from, end);
            ck_assert_int_eq(m.state, there ? end : from);
            unsigned at = from;
            for (uint32_t i = 0; i < m.waiting_count; i++) {
                ck_assert(m.waiting[i].from == at && may(at, m.waiting[i].to));
                at = m.waiting[i].to;
            }
            ck_assert_uint_eq(at, m.state);
        }
    }
}
END_TEST

/* A store of a version that kept no moves: its job's history begins where the job stands. */
START_TEST(test_older_store)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_job_record record = {.job = {"demo"}, .state = KEDGE_JOB_TRAINING};
    struct kedge_job_moves m;
    struct kedge_job_move page[4];
    struct kedge_kv *kv;
    struct kedge_kv_tx *tx;
    uint64_t epoch;
    uint32_t count;
    bool more;
    ck_assert_int_eq(kedge_kv_memory_new(&kv), KEDGE_OK);
    ck_assert_int_eq(kedge_job_moves_epoch(kv, &epoch, &d), KEDGE_OK);
    ck_assert_uint_eq(epoch, 1);
    ck_assert_int_eq(kedge_kv_begin(kv, false, &tx, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_job_moves_load(tx, &record, 7, &m, &d), KEDGE_OK);
    kedge_kv_abort(tx);
    ck_assert(m.durable == 0 && m.waiting_count == 0 && m.state == KEDGE_JOB_TRAINING);
    struct kedge_job_move next = to(KEDGE_JOB_TRAINING, KEDGE_JOB_STORING, KEDGE_OK);
    ck_assert_int_eq(kedge_job_moves_take(&m, &next), KEDGE_JOB_MOVE_TAKEN);
    put(kv, epoch, &m);
    ck_assert_int_eq(kedge_job_moves_page(kv, &record.job, 0, 4, page, &count, &more, &d), KEDGE_OK);
    ck_assert(count == 1 && !more && page[0].from == KEDGE_JOB_TRAINING && page[0].to == KEDGE_JOB_STORING);
    /* the older version ran again and ended it: the history is led there */
    record.state = KEDGE_JOB_COMPLETED;
    ck_assert_int_eq(kedge_kv_begin(kv, false, &tx, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_job_moves_load(tx, &record, 7, &m, &d), KEDGE_OK);
    ck_assert(m.durable == 1 && m.waiting_count == 1 && m.state == KEDGE_JOB_COMPLETED);
    record.state = KEDGE_JOB_GROUPING; /* nobody goes back */
    ck_assert_int_eq(kedge_job_moves_load(tx, &record, 7, &m, &d), KEDGE_E_CORRUPT);
    record.state = KEDGE_JOB_TRAINING; /* needs no reason, and has one */
    record.reason = KEDGE_E_DISK_FULL;
    ck_assert_int_eq(kedge_job_moves_load(tx, &record, 7, &m, &d), KEDGE_E_CORRUPT);
    kedge_kv_abort(tx);
    kedge_kv_close(kv);
}
END_TEST

START_TEST(test_causes)
{
    static const struct {
        int err;
        const char *cause;
    } rows[] = {{KEDGE_OK, "progress"},         {KEDGE_E_ENROL_TIME, "insufficient-resources"},
                {KEDGE_E_SITES, "site"},        {KEDGE_E_TIMEOUT, "site"},
                {KEDGE_E_NO_DIRECTION, "site"}, {KEDGE_E_CLOSED, "network"},
                {KEDGE_E_DISK_FULL, "storage"}, {KEDGE_E_CORRUPT, "storage"},
                {KEDGE_E_EXISTS, "chain"},      {KEDGE_E_VERIFY, "chain"},
                {KEDGE_E_NOMEM, "internal"},    {KEDGE_E_BUG, "internal"},
                {KEDGE_E_CANCELLED, "user"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_str_eq(kedge_job_cause_name(kedge_job_cause_of(rows[i].err)), rows[i].cause);
        ck_assert_int_eq(kedge_job_reason_of(kedge_strerror(rows[i].err)), rows[i].err);
    }
    ck_assert_str_eq(kedge_job_cause_name(KEDGE_CAUSE_COUNT), "unknown");
    ck_assert_int_eq(kedge_job_reason_of("2 sites: no data"), KEDGE_OK);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_transitions,   test_halts_are_bounded,
                                  test_led_to_an_end, test_older_store,
                                  test_causes,        test_against_a_model};
    return run_suite("coordinator-job-moves", tests, sizeof tests / sizeof tests[0]);
}
