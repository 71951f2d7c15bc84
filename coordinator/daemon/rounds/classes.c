/* Classes that a job learns: its sites state the labels of their files in the updates of one round, and the
 * step of that round states all of them together. What is more than the job has use for ends it: to leave
 * some out would be a choice that nobody made. */
#include "coordinator/daemon/rounds/classes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/restore/restore_walk.h"
#include "coordinator/daemon/rounds/close.h"

int kedgei_close_classes(struct kedge_host *h, struct close_work *w, struct kedge_diag *d)
{
    const struct kedge_job_spec *spec = &w->job->spec;
    if (!kedge_job_spec_asks_classes(spec, w->close.result->round)) {
        return KEDGE_OK;
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; i < w->close.input_count && !err; i++) {
        err = kedgei_close_update(h, &w->close.inputs[i], st, d);
        if (!err && kedge_class_names_unite(w->classes, st->u.update.classes) != KEDGE_OK) {
            snprintf(w->classes_fault, sizeof w->classes_fault,
                     "its sites name more than %d bytes of classes together", KEDGE_CLASS_NAMES_BYTES_MAX);
            break;
        }
    }
    uint32_t count = kedge_class_names_count(w->classes), most = kedge_model_outputs(&spec->model);
    if (!err && !w->classes_fault[0] && (count < 2 || count > most)) {
        snprintf(w->classes_fault, sizeof w->classes_fault,
                 "its sites name %" PRIu32 " classes together, expected 2 to %" PRIu32
                 ", as many as its model has outputs",
                 count, most);
    }
    kedge_mem_free(st);
    return err;
}

/* Read from the step's statement: names of classes are part of what a model means, so they come
 * with the same evidence as the model. */
int kedge_learnt_classes(struct kedge_host *h, const struct kedge_id *job, char ret[KEDGE_CLASS_NAMES_ROOM],
                         struct kedge_diag *reterr)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t index;
    snprintf(key, sizeof key, "step/%s/%08d", job->s, KEDGE_CLASSES_ROUND);
    int err = kedge_ledger_find(h->main.ledger, kedge_view_str(key), &index);
    if (err == KEDGE_E_NOT_FOUND) {
        memset(ret, 0, KEDGE_CLASS_NAMES_ROOM);
        return KEDGE_OK;
    }
    KEDGE_TRY(err);
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    struct kedge_walk w = {.h = h, .d = reterr, .st = st};
    KEDGE_TRY(st ? kedge_walk_read(&w, h->main.ledger, index, KEDGE_ST_STEP) : KEDGE_E_NOMEM);
    memcpy(ret, st->u.step.classes, KEDGE_CLASS_NAMES_ROOM);
    return KEDGE_OK;
}
