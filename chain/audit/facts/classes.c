/* The names are in the entries alone: facts of updates are many, and few of them have any.
 *
 * Sites may name their classes, and the first step states the union of the names. Only entries hold these
 * texts, so they are read once more for the few rounds that ask. */
#include "chain/audit/facts/classes.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"

/* The statement of an entry once more. KEDGE_E_NOMEM, or what is wrong with it, which was said before. */
static int read_again(const struct kedgei_log *log, uint64_t index, struct kedge_statement *st)
{
    struct kedge_view bytes = kedgei_entry_at(log, index);
    struct kedge_signed_statement signed_by;
    struct kedge_main_entry entry = {.body = bytes};
    KEDGE_TRY(log->tenant.s[0] ? KEDGE_OK : kedge_main_entry_decode(bytes, &entry));
    int err = kedge_statement_read(entry.body, st, &signed_by, NULL);
    kedge_buf_deinit(&signed_by.payload);
    return err;
}

/* What updates in lists name together, into `united`. */
static int unite(const struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_round *round,
                 struct kedge_statement *st, char united[KEDGE_CLASS_NAMES_ROOM], struct kedgei_findings *f)
{
    for (size_t k = 0; k < round->update_count; k++) {
        const struct kedgei_update *row = kedgei_update_at(a, round->update_first + k);
        const struct kedgei_log *log = &a->tenants[row->tenant];
        if (!row->fact->has_classes || row->fact->listed == 0) {
            continue;
        }
        KEDGE_TRY(read_again(log, row->fact->index, st));
        if (!kedge_job_spec_takes_classes(&job->spec, round->number, st->u.update.classes)) {
            kedgei_error(f, KEDGE_AUDIT_UPDATE, log, row->fact->index,
                         "%u names of classes, but the model has %u outputs",
                         kedge_class_names_count(st->u.update.classes),
                         kedge_model_outputs(&job->spec.model));
        }
        KEDGE_TRY(kedge_class_names_unite(united, st->u.update.classes));
    }
    return KEDGE_OK;
}

/* With an incomplete copy the union is a lower bound: what is here must be in it, what is more cannot be
 * judged. */
void kedgei_check_classes(const struct kedgei_audit *a, const struct kedgei_job *job,
                          const struct kedgei_round *round, bool incomplete, struct kedgei_findings *f)
{
    if (!kedge_job_spec_asks_classes(&job->spec, round->number) || !round->step
        || !round->step->has_classes) {
        return;
    }
    char united[KEDGE_CLASS_NAMES_ROOM] = "";
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? unite(a, job, round, st, united, f) : KEDGE_E_NOMEM;
    bool fits = !err;
    if (!err) {
        err = read_again(&a->main, round->step->index, st);
    }
    if (!err) {
        const char *stated = st->u.step.classes;
        fits = kedge_class_names_count(stated) <= kedge_model_outputs(&job->spec.model)
               && kedge_class_names_include(stated, united)
               && (incomplete || kedge_class_names_include(united, stated));
    }
    if (err == KEDGE_E_NOMEM) {
        f->nomem = true;
    } else if (!fits) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, round->step->index,
                     "the names of classes are not those that the updates of round %u state together",
                     round->number);
    }
    kedge_mem_free(st);
}
