/* The key "selection": how the sites of a round are drawn. */
#include <jansson.h>

#include "job/job_spec_impl.h"

int kedgei_spec_read_selection(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "selection");
    uint32_t word = 0;
    int err = v ? kedgei_spec_word(v, "selection", kedgei_words_selection, &word, d) : KEDGE_OK;
    s->by_charge = word == 1;
    if (err || !s->by_charge) {
        return err;
    }
    if (s->sites_per_round == 0) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"sites_per_round\": expected 1 or more with \"selection\": \"charged\": where all "
            "are selected there is nothing to choose");
    }
    if (s->rule->needs_root || s->strategy->asynchronous) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"selection\": \"charged\" does not go with %s \"%s\", which says itself who takes "
            "part",
            s->rule->needs_root ? "rule" : "strategy",
            s->rule->needs_root ? s->rule->name : s->strategy->name);
    }
    return KEDGE_OK;
}
