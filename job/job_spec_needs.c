/* Key "needs": labels that a site must have for the job to ask it. */
#include <inttypes.h>
#include <jansson.h>

#include "common/base/try.h"
#include "job/job_spec_impl.h"

static int take(const json_t *v, struct kedge_label_set *io, struct kedge_diag *d)
{
    const char *text = json_string_value(v);
    const struct kedge_view label = kedge_view_of(text, text ? json_string_length(v) : 0);
    switch (kedge_labels_add(io, label)) {
    case KEDGE_OK:
        return KEDGE_OK;
    case KEDGE_E_EXISTS:
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"needs\": \"%s\": a site has one label of each key", text);
    case KEDGE_E_FULL:
        return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"needs\": expected at most %d labels",
                              KEDGE_LABEL_COUNT_MAX);
    default:
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"needs\": \"%.80s\": expected a label like \"gpu=h100\", of a-z, 0-9, "
            "'.', '_', '-', at most %d characters on each side",
            text ? text : "", KEDGE_LABEL_PART_MAX);
    }
}

int kedgei_spec_read_needs(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "needs");
    if (!v) {
        return KEDGE_OK;
    }
    if (json_array_size(v) == 0) {
        return kedgei_spec_bad(d, "needs", "a list of labels, like [\"gpu=h100\", \"zone=eu\"]");
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        KEDGE_TRY(take(json_array_get(v, i), &s->needs, d));
    }
    const char *why = s->in_world ? "sites of a simulation have no labels; leave it out"
                      : s->rule->needs_root
                          ? "the root site is asked in every round, whatever its labels; leave it out"
                          : NULL;
    return why ? kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"needs\": %s", why) : KEDGE_OK;
}
