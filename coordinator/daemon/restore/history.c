/* Rounds of a job as people see them, computed from statements alone. While a job runs the rows are
 * made when statements are made or taken; of an ended job a worker reads them when somebody asks.
 * Both use the functions of this file, so the numbers are the same before and after a restart.
 *
 * Reading is bounded twice: by the rounds that fit one answer, and by the statements that were read
 * for it. A job of 100,000 rounds is told in pages. */
#include "coordinator/daemon/restore/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/statement/input_list.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/restore/restore_walk.h"

enum {
    STOP = 1,                   /* ends a scan of keys */
    ROW_JSON_MAX = 384,         /* bytes of a round in an answer … */
    GROUP_JSON_MAX = 320,       /* … and of each of its groups */
    PAGE_JSON_MAX = 768 * 1024, /* what is left of KEDGE_ADMIN_JSON_MAX goes to the rest of the answer */
    SIZE_DIGITS = 20,           /* of a checkpoint's key */
};

/* Larger losses count as this: mean squares of large numbers are below it, and sums over all sites stay below
 * 2^127. */
static const double loss_most = (double)(INT64_C(1) << (60 - KEDGE_LOSS_BITS));

/* By the largest JSON that a row can become: the answer has a fixed limit, and one that is too long
 * would be refused as a whole. */
uint32_t kedge_history_page_rounds(uint32_t groups)
{
    uint32_t fit = PAGE_JSON_MAX / (ROW_JSON_MAX + groups * GROUP_JSON_MAX);
    return fit < KEDGE_HISTORY_PAGE_MAX ? fit : KEDGE_HISTORY_PAGE_MAX;
}

/* ---- one row ---- */

/* Most jobs have one group, and a few have as many as there may be: rows have room for those of their job. */
struct kedge_round_history *kedge_history_rows_new(size_t count, uint32_t groups)
{
    const size_t align = _Alignof(struct kedge_group_metric), head = sizeof(struct kedge_round_history);
    const size_t behind = (count * head + align - 1) / align * align;
    struct kedge_round_history *rows =
        kedge_mem_new(behind + count * groups * sizeof(struct kedge_group_metric), 1);
    for (size_t i = 0; rows && i < count; i++) {
        rows[i].room = groups;
        rows[i].metrics = (struct kedge_group_metric *)(void *)((char *)rows + behind) + i * groups;
    }
    return rows;
}

void kedge_history_copy(struct kedge_round_history *to, const struct kedge_round_history *from)
{
    struct kedge_group_metric *metrics = to->metrics;
    KEDGE_ASSERT(to->room == from->room);
    memcpy(metrics, from->metrics, to->room * sizeof *metrics);
    *to = *from;
    to->metrics = metrics;
}

void kedge_history_begin(struct kedge_round_history *ret, const struct kedge_job_spec *spec, uint32_t round)
{
    const uint32_t groups = kedge_job_spec_groups_most(spec);
    *ret = (struct kedge_round_history){.round = round,
                                        .groups = groups < ret->room ? groups : ret->room,
                                        .room = ret->room,
                                        .metrics = ret->metrics};
    memset(ret->metrics, 0, ret->room * sizeof *ret->metrics);
}

/* No group beyond those that the job may have: the row has no room for it. */
static void see_groups(struct kedge_round_history *row, uint32_t groups)
{
    const uint32_t most = groups < row->room ? groups : row->room;
    row->groups = most > row->groups ? most : row->groups;
}

void kedge_history_add_aggregate(struct kedge_round_history *row, const struct kedge_st_aggregate *a)
{
    if (a->group < row->room) {
        row->metrics[a->group].members = a->count;
    }
    see_groups(row, a->group + 1);
    row->accepted += a->count;
    for (uint32_t i = 0; i < a->tenant_count; i++) {
        row->refused += a->tenants[i].refused;
    }
}

/* Sums of losses are whole numbers in 128 bits: statements come in any order, and a sum of
 * floating-point numbers would depend on it, so that the loss before and after a restart would
 * differ in its last digits. */
void kedge_history_add_evaluation(struct kedge_round_history *row, const struct kedge_st_evaluation *e)
{
    if (e->group >= row->room) {
        return;
    }
    struct kedge_group_metric *m = &row->metrics[e->group];
    double loss = e->loss > loss_most ? loss_most : e->loss < -loss_most ? -loss_most : e->loss;
    m->evaluations++;
    m->samples += e->samples;
    m->correct += e->correct;
    m->loss_sum +=
        (kedge_int128)(int64_t)(loss * (double)(INT64_C(1) << KEDGE_LOSS_BITS)) * (int64_t)e->samples;
    if (e->personal_correct > 0 || e->personal_loss > 0) {
        m->personal_samples += e->samples;
        m->personal_correct += e->personal_correct;
    }
}

double kedge_history_loss(const struct kedge_group_metric *m)
{
    return (double)m->loss_sum / (double)(INT64_C(1) << KEDGE_LOSS_BITS) / (double)m->samples;
}

/* ---- selected sites ---- */

static const struct kedge_history_log *log_by_salt(const struct kedge_history_source *s,
                                                   const struct kedge_hash *salted)
{
    for (uint32_t i = 0; i < s->tenant_count; i++) {
        if (kedge_hash_eq(&s->tenants[i].salted, salted)) {
            return &s->tenants[i];
        }
    }
    return NULL;
}

/* Sites of a list that take part in the round, whichever round their task is of. With a buffer,
 * round-opened counts those whom the round drew anew; who is still at work from an earlier round
 * stands in its lists only. */
static int count_at_work(const struct kedge_history_log *log, const struct kedge_hash *digest,
                         uint32_t *count, struct kedge_diag *d)
{
    struct kedge_input_list list;
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_INPUT_LIST_MAX);
    KEDGE_TRY(kedge_blobs_read(log->blobs, digest, &text, d));
    KEDGE_TRY(kedge_input_list_decode(kedge_buf_view(&text), &list));
    for (uint32_t i = 0; i < list.count; i++) {
        *count += list.rows[i].use != KEDGE_USE_CANDIDATE;
    }
    kedge_input_list_deinit(&list);
    return KEDGE_OK;
}

int kedge_history_take_opened(const struct kedge_history_source *source,
                              const struct kedge_st_round_opened *o, struct kedge_round_history *row,
                              struct kedge_diag *d)
{
    const bool buffered = kedge_job_spec_buffer(source->spec) > 0;
    uint32_t selected = 0;
    for (uint32_t i = 0; i < o->tenant_count; i++) {
        const struct kedge_history_log *log = buffered ? log_by_salt(source, &o->tenants[i].id) : NULL;
        if (buffered && !log) {
            return kedge_diag_set(d, KEDGE_E_CORRUPT,
                                  "round-opened of job %s, round %" PRIu32
                                  " names a tenant that is not of the job",
                                  o->job.s, o->round);
        }
        selected += buffered ? 0 : o->tenants[i].selected;
        KEDGE_TRY(buffered ? count_at_work(log, &o->tenants[i].list, &selected, d) : KEDGE_OK);
    }
    row->selected = selected;
    row->opened_ms = o->time_ms;
    return KEDGE_OK;
}

/* ---- reading ---- */

struct reader {
    struct kedge_walk walk; /* first: its callbacks find the reader by it */
    const struct kedge_history_source *source;
    struct kedge_history_page *page;
    struct kedge_round_history *row;
    const struct kedge_history_log *log; /* of the tenant whose turn it is */
    uint64_t statements;                 /* read so far */
};

/* Reads the statement KIND/JOB/ROUND of the main chain into the walk's. KEDGE_E_NOT_FOUND. By its
 * key and not by walking the chain: other jobs' statements stand between. */
static int read_of_round(struct reader *r, enum kedge_statement_kind kind, uint32_t round,
                         uint64_t *ret_index)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "%s/%s/%08" PRIu32, kedge_statement_kind_name(kind), r->source->spec->name.s,
             round);
    KEDGE_TRY(kedge_ledger_find(r->source->main, kedge_view_str(key), ret_index));
    r->statements++;
    return kedge_walk_read(&r->walk, r->source->main, *ret_index, kind);
}

static int take_aggregate(struct kedge_walk *w, uint64_t index)
{
    struct reader *r = (struct reader *)w;
    (void)index;
    r->statements++;
    kedge_history_add_aggregate(r->row, &w->st->u.aggregate);
    return KEDGE_OK;
}

static int take_evaluation(struct kedge_walk *w, uint64_t index)
{
    struct reader *r = (struct reader *)w;
    (void)index;
    r->statements++;
    kedge_history_add_evaluation(r->row, &w->st->u.evaluation);
    return KEDGE_OK;
}

/* An erased file takes its size with it; that it was there is counted. */
static int take_update(struct kedge_walk *w, uint64_t index)
{
    struct reader *r = (struct reader *)w;
    const struct kedge_st_update *u = &w->st->u.update;
    struct kedge_round_costs *c = &r->row->costs;
    uint64_t size = 0;
    (void)index;
    r->statements++;
    const int err = kedge_blobs_find(r->log->blobs, &w->st->subject, &size);
    if (err && err != KEDGE_E_NOT_FOUND) {
        return err;
    }
    const bool is_told = u->energy_joules >= 0; /* NaN is not */
    const bool is_measured = is_told && u->energy_quality == KEDGE_ENERGY_MEASURED;
    const bool is_modelled = is_told && u->energy_quality == KEDGE_ENERGY_MODELLED;
    c->updates++;
    c->erased += err == KEDGE_E_NOT_FOUND;
    c->bytes += size;
    c->measured += is_measured;
    c->modelled += is_modelled;
    c->untold += !is_measured && !is_modelled;
    c->joules_measured += is_measured ? u->energy_joules : 0;
    c->joules_modelled += is_modelled ? u->energy_joules : 0;
    c->site_seconds += u->seconds > 0 ? u->seconds : 0;
    c->trained += u->data_samples > 0 ? u->samples : 0;
    c->data += u->data_samples;
    return KEDGE_OK;
}

/* Of several draws of a round the last one counts. */
static int take_drawn(struct kedge_walk *w, uint64_t index)
{
    struct reader *r = (struct reader *)w;
    uint64_t opened_ms = r->row->opened_ms;
    (void)index;
    r->statements++;
    int err = kedge_history_take_opened(r->source, &w->st->u.round_opened, r->row, w->d);
    r->row->opened_ms = opened_ms;
    return err;
}

/* Fills r->row; its step is in the walk's statement. */
static int read_round(struct reader *r, uint32_t round, uint64_t step_index)
{
    const struct kedge_history_source *s = r->source;
    const struct kedge_st_step *step = &r->walk.st->u.step;
    uint64_t opened_index;
    kedge_history_begin(r->row, s->spec, round);
    see_groups(r->row, step->group_count);
    r->row->closed_ms = step->time_ms;
    r->row->charged = step->charged;
    r->row->spent = step->spent;
    r->row->main_size = r->row->statements = step_index + 1;
    int err = read_of_round(r, KEDGE_ST_ROUND_OPENED, round, &opened_index);
    if (err == KEDGE_E_NOT_FOUND) {
        return kedge_diag_set(r->walk.d, KEDGE_E_CORRUPT,
                              "the main chain has a step of job %s, round %" PRIu32 ", but no round-opened",
                              s->spec->name.s, round);
    }
    KEDGE_TRY(err);
    const char *job = s->spec->name.s;
    KEDGE_TRY(kedge_history_take_opened(s, &r->walk.st->u.round_opened, r->row, r->walk.d));
    KEDGE_TRY(kedge_walk_all(&r->walk, s->main, KEDGE_ST_ROUND_OPENED, job, round, take_drawn));
    KEDGE_TRY(kedge_walk_all(&r->walk, s->main, KEDGE_ST_AGGREGATE, job, round, take_aggregate));
    for (uint32_t i = 0; i < s->tenant_count && !r->page->without_evaluations; i++) {
        KEDGE_TRY(
            kedge_walk_all(&r->walk, s->tenants[i].ledger, KEDGE_ST_EVALUATION, job, round, take_evaluation));
    }
    for (uint32_t i = 0; i < s->tenant_count && r->page->with_costs; i++) {
        r->log = &s->tenants[i];
        KEDGE_TRY(kedge_walk_all(&r->walk, r->log->ledger, KEDGE_ST_UPDATE, job, round, take_update));
    }
    return KEDGE_OK;
}

/* ---- sizes of the tenants' ledgers ----
 * A tenant's checkpoints stand in the main chain in the order of their sizes, and their keys have the sizes.
 * The last one before the page's first step is found by halving, the others come after it. */

struct sizes {
    struct kedge_history_page *page;
    uint32_t at;          /* row that has not its sum yet */
    uint64_t current;     /* entries of the tenant's ledger, as of there */
    uint64_t size, index; /* of the checkpoint that was found */
};

static bool size_of_key(struct kedge_view key, uint64_t *ret)
{
    if (key.len < SIZE_DIGITS) {
        return false;
    }
    struct kedge_view digits = kedge_view_of(key.ptr + key.len - SIZE_DIGITS, SIZE_DIGITS);
    while (digits.len > 1 && digits.ptr[0] == '0') {
        digits.ptr++;
        digits.len--;
    }
    return kedge_decimal_decode(digits, INT64_MAX, ret) == KEDGE_OK;
}

static int see_first(void *arg, struct kedge_view key, uint64_t index)
{
    struct sizes *s = arg;
    s->index = index;
    return size_of_key(key, &s->size) ? STOP : KEDGE_E_CORRUPT;
}

/* Walks the tenant's checkpoints and the page's rows side by side, as both ascend: a row has the
 * size of the last checkpoint before its step. */
static int see_each(void *arg, struct kedge_view key, uint64_t index)
{
    struct sizes *s = arg;
    struct kedge_history_page *page = s->page;
    while (s->at < page->count && page->rows[s->at].main_size <= index) {
        page->rows[s->at++].statements += s->current;
    }
    return !size_of_key(key, &s->current) ? KEDGE_E_CORRUPT : s->at < page->count ? KEDGE_OK : STOP;
}

static int scan_sizes(const struct kedge_history_source *source, const struct kedge_id *tenant, uint64_t from,
                      kedge_ledger_visit_key *visit, struct sizes *s)
{
    char prefix[KEDGE_IDEM_KEY_MAX + 1], key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(prefix, sizeof prefix, "checkpoint/%s/", tenant->s);
    snprintf(key, sizeof key, "checkpoint/%s/%020" PRIu64, tenant->s, from);
    return kedge_ledger_scan_keys_from(source->main, kedge_view_str(prefix), kedge_view_str(key), visit, s);
}

/* The first checkpoint that matters is found by halving over sizes, each step one look at the first
 * key not below: a ledger of a million entries takes twenty looks, not a walk over all its
 * checkpoints. */
static int add_sizes(const struct kedge_history_source *source, const struct kedge_history_log *log,
                     struct kedge_history_page *page)
{
    struct sizes s = {.page = page};
    uint64_t low = 0, high = kedge_ledger_size(log->ledger), begin = 0;
    int err = KEDGE_OK;
    while (low <= high
           && (!err || err == STOP)) { /* is there one of at least `middle` before the first step? */
        uint64_t middle = low + (high - low) / 2;
        err = scan_sizes(source, &log->tenant, middle, see_first, &s);
        if (err == STOP && s.index < page->rows[0].main_size) {
            begin = s.size;
            low = s.size + 1;
        } else if (middle == 0) {
            break;
        } else {
            high = middle - 1;
        }
    }
    if (err && err != STOP) {
        return err;
    }
    err = scan_sizes(source, &log->tenant, begin, see_each, &s);
    while ((!err || err == STOP) && s.at < page->count) {
        page->rows[s.at++].statements += s.current;
    }
    return err == STOP ? KEDGE_OK : err;
}

/* The page ends after a whole round, never within one, so a row is complete wherever it is read. */
int kedge_history_read(const struct kedge_history_source *source, uint32_t from, uint32_t last,
                       struct kedge_history_page *page, struct kedge_diag *d)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    struct reader r = {.walk = {.d = d, .st = st}, .source = source, .page = page};
    uint64_t round = from, index;
    int err = st ? KEDGE_OK : KEDGE_E_NOMEM;
    page->count = 0;
    while (!err && round <= last && page->count < page->most && r.statements < KEDGE_HISTORY_STATEMENTS) {
        int found = read_of_round(&r, KEDGE_ST_STEP, (uint32_t)round++, &index);
        if (!found) {
            r.row = &page->rows[page->count++];
            err = read_round(&r, (uint32_t)round - 1, index);
        } else if (found != KEDGE_E_NOT_FOUND) { /* a round that is not closed, or was none of this job's */
            err = found;
        }
    }
    page->next = round <= last ? (uint32_t)round : KEDGE_HISTORY_END;
    for (uint32_t i = 0; i < source->tenant_count && !err && page->count > 0; i++) {
        err = add_sizes(source, &source->tenants[i], page);
    }
    kedge_mem_free(st);
    return err;
}
