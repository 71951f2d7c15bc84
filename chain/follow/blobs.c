/* Which files the entries of a copy name. The walk takes what it can read and passes over the rest:
 * entries of other tenants are withheld, and kinds that name no file need no understanding here. Whether
 * an entry is valid is the auditor's question; a file that nobody vouches for costs room and nothing else,
 * and its digest is checked when it is fetched. */
#include "chain/follow/blobs.h"

#include "chain/log/dsse.h"
#include "chain/statement/input_list.h"
#include "chain/statement/main_entry.h"
#include "chain/statement/statement.h"
#include "common/base/mem.h"
#include "common/base/try.h"

uint64_t kedge_follow_blob_max(const struct kedge_blob_wanted *wanted)
{
    if (wanted->want == KEDGE_WANT_LIST) {
        return wanted->of_tenant ? KEDGE_INPUT_LIST_MAX : KEDGE_SPEC_MAX;
    }
    return KEDGE_FOLLOW_MODEL_MAX;
}

struct walk {
    const struct kedge_hash *salted;
    kedge_follow_visit_blob *visit;
    void *arg;
    struct kedge_statement *st;
    struct kedge_buf payload;
};

static int tell(struct walk *w, enum kedge_blob_want want, bool of_tenant, const struct kedge_hash *digest)
{
    struct kedge_blob_wanted wanted = {.want = want, .of_tenant = of_tenant, .digest = *digest};
    if (want == KEDGE_WANT_UPDATE) {
        wanted.job = w->st->u.update.job;
    }
    return kedge_hash_is_zero(digest) ? KEDGE_OK : w->visit(w->arg, &wanted);
}

static int tell_list(struct walk *w, const struct kedge_hash *id, const struct kedge_hash *list)
{
    return w->salted && kedge_hash_eq(id, w->salted) ? tell(w, KEDGE_WANT_LIST, true, list) : KEDGE_OK;
}

static int tell_step(struct walk *w, const struct kedge_st_step *step)
{
    for (uint32_t g = 0; g < step->group_count; g++) {
        const struct kedge_hash *models[] = {&step->groups[g].aggregate,   &step->groups[g].after,
                                             &step->groups[g].direction,   &step->groups[g].stepped,
                                             &step->groups[g].state_after, &step->groups[g].trial};
        for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
            KEDGE_TRY(tell(w, KEDGE_WANT_MODEL, false, models[i]));
        }
    }
    return KEDGE_OK;
}

static int tell_statement(struct walk *w)
{
    const struct kedge_statement *st = w->st;
    int err = KEDGE_OK;
    switch ((int)st->kind) {
    case KEDGE_ST_UPDATE:
        return tell(w, KEDGE_WANT_UPDATE, true, &st->subject);
    case KEDGE_ST_ERASED:
        return tell(w, KEDGE_WANT_ERASED, true, &st->subject);
    case KEDGE_ST_JOB_ADMITTED:
    case KEDGE_ST_JOB_REFUSED:
        return tell(w, KEDGE_WANT_LIST, false, &st->subject);
    case KEDGE_ST_JOB_OPENED:
        KEDGE_TRY(tell(w, KEDGE_WANT_LIST, false, &st->subject));
        KEDGE_TRY(tell(w, KEDGE_WANT_MODEL, false, &st->u.job_opened.base_model));
        return tell(w, KEDGE_WANT_MODEL, false, &st->u.job_opened.initial_model);
    case KEDGE_ST_ROUND_OPENED:
        for (uint32_t t = 0; t < st->u.round_opened.tenant_count && !err; t++) {
            err = tell_list(w, &st->u.round_opened.tenants[t].id, &st->u.round_opened.tenants[t].list);
        }
        return err;
    case KEDGE_ST_AGGREGATE:
        for (uint32_t t = 0; t < st->u.aggregate.tenant_count && !err; t++) {
            err = tell_list(w, &st->u.aggregate.tenants[t].id, &st->u.aggregate.tenants[t].list);
        }
        return err ? err : tell(w, KEDGE_WANT_MODEL, false, &st->subject);
    case KEDGE_ST_STEP:
        return tell_step(w, &st->u.step);
    case KEDGE_ST_RELEASE:
        return tell(w, KEDGE_WANT_MODEL, false, &st->subject);
    default:
        return KEDGE_OK;
    }
}

static int visit_entry(void *arg, uint64_t index, struct kedge_view entry)
{
    struct walk *w = arg;
    struct kedge_main_entry in = {.kind = KEDGE_MAIN_STATEMENT, .body = entry};
    struct kedge_dsse_entry dsse;
    (void)index;
    if (entry.len == 0) {
        return KEDGE_OK; /* withheld */
    }
    int err = w->salted ? kedge_main_entry_decode(entry, &in) : KEDGE_OK;
    if (!err && in.kind == KEDGE_MAIN_CHECKPOINT) {
        return KEDGE_OK;
    }
    kedge_buf_clear(&w->payload);
    if (!err) {
        err = kedge_dsse_decode(in.body, &w->payload, &dsse);
    }
    if (!err) {
        err = kedge_statement_decode(kedge_buf_view(&w->payload), w->st, NULL);
    }
    if (err) {
        /* Of a kind, or with signatures, that name no blobs and that only the auditor looks into. */
        return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
    }
    return tell_statement(w);
}

int kedge_follow_blobs(struct kedge_ledger *copy, uint64_t from, const struct kedge_hash *salted,
                       kedge_follow_visit_blob *visit, void *arg)
{
    struct walk w = {.salted = salted, .visit = visit, .arg = arg, .st = kedge_mem_new(1, sizeof *w.st)};
    KEDGE_TRY_MEM(w.st);
    kedge_buf_init(&w.payload, KEDGE_ENTRY_MAX);
    int err = kedge_ledger_for_each(copy, from, visit_entry, &w);
    kedge_buf_deinit(&w.payload);
    kedge_mem_free(w.st);
    return err;
}
