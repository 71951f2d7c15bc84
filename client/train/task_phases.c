/* "trainable" of a request: the part of the model that may change. "phases": parts of it that are trained one
 * after the other, each by itself. */

#include "client/train/task.h"
#include "common/base/try.h"

static int read_names(const struct kedge_json *doc, uint32_t list, const char *key, struct kedge_part *ret,
                      struct kedge_diag *reterr)
{
    char name[KEDGE_TENSOR_NAME_MAX + 1];
    if (list == KEDGE_JSON_NONE || !kedge_json_is(doc, list, KEDGE_JSON_ARRAY)
        || doc->tokens[list].count == 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"%s\": expected a list of names of tensors", key);
    }
    for (uint32_t at = list + 1, i = 0; i < doc->tokens[list].count; i++) {
        if (!kedge_json_is(doc, at, KEDGE_JSON_STRING)
            || kedge_json_decode_string(doc, at, name, sizeof name) != KEDGE_OK) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"%s\": expected names of at most %d characters",
                                  key, KEDGE_TENSOR_NAME_MAX);
        }
        int err = kedge_part_add(ret, name, reterr);
        if (err) {
            return kedge_diag_wrap(reterr, err, "\"%s\"", key);
        }
        at = doc->tokens[at].next;
    }
    return KEDGE_OK;
}

static int read_phase(const struct kedge_json *doc, uint32_t at, struct kedge_task_phase *ret,
                      struct kedge_diag *reterr)
{
    static const char *const keys[] = {"tensors", "epochs"};
    uint64_t epochs = 0;
    if (!kedge_json_is(doc, at, KEDGE_JSON_OBJECT)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "expected objects of \"tensors\" and \"epochs\"");
    }
    KEDGE_TRY(kedge_json_check_keys(doc, at, "phases", keys, sizeof keys / sizeof keys[0], reterr));
    KEDGE_TRY(kedge_json_get_u64(doc, at, "epochs", 1, 1000000, &epochs, reterr));
    ret->epochs = (uint32_t)epochs;
    return read_names(doc, kedge_json_find(doc, at, "tensors"), "tensors", &ret->part, reterr);
}

int kedgei_task_read_phases(const struct kedge_json *doc, struct kedge_task *t, struct kedge_diag *reterr)
{
    const uint32_t list = kedge_json_find(doc, 0, "phases"), part = kedge_json_find(doc, 0, "trainable");
    if (part != KEDGE_JSON_NONE && (list != KEDGE_JSON_NONE || t->personal[0])) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"trainable\": not together with \"phases\" and \"personal\"");
    }
    if (list == KEDGE_JSON_NONE) {
        return part == KEDGE_JSON_NONE ? KEDGE_OK : read_names(doc, part, "trainable", &t->trainable, reterr);
    }
    if (!kedge_json_is(doc, list, KEDGE_JSON_ARRAY) || doc->tokens[list].count == 0
        || doc->tokens[list].count > KEDGE_TASK_PHASES_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"phases\": expected a list of 1 to %d",
                              KEDGE_TASK_PHASES_MAX);
    }
    if (t->steps > 0 || t->personal[0] || t->drift[0]) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"phases\": not together with \"steps\", \"personal\" and \"drift\"");
    }
    int err = KEDGE_OK;
    for (uint32_t at = list + 1, i = 0; i < doc->tokens[list].count && !err; i++) {
        err = read_phase(doc, at, &t->phases[t->phase_count++], reterr);
        at = doc->tokens[at].next;
    }
    return err ? kedge_diag_wrap(reterr, err, "\"phases\"") : KEDGE_OK;
}
