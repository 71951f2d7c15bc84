/* Everything is read from the main chain, up to a size that the statement names: so it does not matter what
 * happens meanwhile, or before a restart, and an auditor reads the same. */
#include "coordinator/daemon/rounds/promised.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/restore/restore_walk.h"
#include "round/close/promise.h"

struct reader {
    struct kedge_walk walk; /* first: its callback finds the reader by it */
    const struct kedge_promised_source *source;
    uint64_t size; /* of the main chain that is looked at */
    struct kedge_statement *st;
    struct kedge_promise *rows; /* KEDGE_ST_PROMISES_MAX; specs are owned */
    uint32_t count;
};

static bool is_there(const struct reader *r, uint64_t *ret_index, const char *format, const char *job,
                     uint32_t round)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, format, job, round);
    return kedge_ledger_find(r->source->main, kedge_view_str(key), ret_index) == KEDGE_OK
           && *ret_index < r->size;
}

static const char step_key[] = "step/%s/%08" PRIu32, opened_key[] = "round-opened/%s/%08" PRIu32;

/* Its last closed round: they close in their order, so it is found by halves. 0: there is none. */
static uint32_t last_round(const struct reader *r, const struct kedge_job_spec *spec)
{
    uint32_t low = 0, high = spec->rounds;
    uint64_t index;
    while (low < high) {
        const uint32_t mid = low + (high - low + 1) / 2;
        if (is_there(r, &index, step_key, spec->name.s, mid)) {
            low = mid;
        } else {
            high = mid - 1;
        }
    }
    return low;
}

static int time_of(struct reader *r, const char *format, const char *job, uint32_t round, uint64_t *ret_ms)
{
    uint64_t index;
    *ret_ms = 0;
    if (!is_there(r, &index, format, job, round)) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedge_walk_entry(r->source->main, index, r->st, r->walk.d));
    *ret_ms = r->st->kind == KEDGE_ST_STEP ? r->st->u.step.time_ms : r->st->u.round_opened.time_ms;
    return KEDGE_OK;
}

static int read_times(struct reader *r, struct kedge_promise *io)
{
    const char *job = io->spec->name.s;
    const uint32_t first = io->round > KEDGE_SCHEDULE_COSTS ? io->round - KEDGE_SCHEDULE_COSTS : 0;
    for (uint32_t round = first + 1; round <= io->round; round++) {
        uint64_t opened_ms, closed_ms;
        KEDGE_TRY(time_of(r, opened_key, job, round, &opened_ms));
        KEDGE_TRY(time_of(r, step_key, job, round, &closed_ms));
        kedge_schedule_charge(&io->times, closed_ms > opened_ms ? closed_ms - opened_ms : 0);
    }
    return KEDGE_OK;
}

static int read_spec(const struct reader *r, const struct kedge_hash *digest, struct kedge_job_spec *ret)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    KEDGE_TRY(kedge_blobs_read(r->source->blobs, digest, &text, r->walk.d));
    return kedge_job_spec_parse(kedge_buf_view(&text), ret, r->walk.d);
}

/* What holds back no other job is left out: those that have ended, or whose deadline has passed. */
static int take_admitted(struct kedge_walk *w, uint64_t index)
{
    struct reader *r = (struct reader *)w;
    const struct kedge_st_job_admission a = w->st->u.job_admission;
    uint64_t closed;
    if (index >= r->size || a.deadline_ms <= r->source->now_ms
        || is_there(r, &closed, "job-closed/%s", a.job.s, 0)) {
        return KEDGE_OK;
    }
    if (r->count == KEDGE_ST_PROMISES_MAX) {
        return kedge_diag_set(w->d, KEDGE_E_FULL,
                              "%u jobs with deadlines are under way, no more can be taken",
                              (unsigned)KEDGE_ST_PROMISES_MAX);
    }
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    KEDGE_TRY_MEM(spec);
    struct kedge_promise *p = &r->rows[r->count++];
    *p = (struct kedge_promise){.spec = spec, .round_ms = a.round_ms, .deadline_ms = a.deadline_ms};
    KEDGE_TRY(read_spec(r, &w->st->subject, spec));
    p->round = last_round(r, spec);
    return read_times(r, p);
}

static int decide(struct reader *r, const struct kedge_job_spec *spec, const struct kedge_hash *digest,
                  struct kedge_statement *ret)
{
    r->walk.st = kedge_mem_new(1, sizeof *r->walk.st);
    r->st = kedge_mem_new(1, sizeof *r->st);
    r->rows = kedge_mem_new(KEDGE_ST_PROMISES_MAX, sizeof *r->rows);
    KEDGE_TRY(r->walk.st && r->st && r->rows ? KEDGE_OK : KEDGE_E_NOMEM);
    KEDGE_TRY(
        kedge_walk_all(&r->walk, r->source->main, KEDGE_ST_JOB_ADMITTED, "", KEDGE_WALK_ALL, take_admitted));
    memset(ret, 0, sizeof *ret);
    ret->subject = *digest;
    ret->u.job_admission = (struct kedge_st_job_admission){.job = spec->name,
                                                           .main_size = r->size,
                                                           .guard_ms = r->source->guard_ms,
                                                           .time_ms = r->source->now_ms};
    ret->kind = kedge_close_promise(spec, r->rows, r->count, &ret->u.job_admission);
    return KEDGE_OK;
}

int kedge_promised_decide(const struct kedge_promised_source *source, const struct kedge_job_spec *spec,
                          const struct kedge_hash *spec_digest, struct kedge_statement *ret,
                          struct kedge_diag *d)
{
    struct reader r = {.walk = {.d = d}, .source = source, .size = kedge_ledger_size(source->main)};
    const int err = decide(&r, spec, spec_digest, ret);
    for (uint32_t i = 0; i < r.count; i++) {
        kedge_mem_free((void *)(uintptr_t)r.rows[i].spec);
    }
    kedge_mem_free(r.rows);
    kedge_mem_free(r.st);
    kedge_mem_free(r.walk.st);
    return err;
}

int kedge_promised_find(struct kedge_ledger *main, const struct kedge_id *job,
                        const struct kedge_hash *spec_digest, struct kedge_statement *ret, bool *ret_found,
                        struct kedge_diag *d)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t index;
    snprintf(key, sizeof key, "job-admitted/%s", job->s);
    const int err = kedge_ledger_find(main, kedge_view_str(key), &index);
    *ret_found = err == KEDGE_OK;
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    KEDGE_TRY(kedge_walk_entry(main, index, ret, d));
    return kedge_hash_eq(&ret->subject, spec_digest)
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_EXISTS,
                                "a job \"%s\" was admitted with another spec; names are not reused", job->s);
}
