/* Key "share": of a strategy whose sites keep a head, or train over a frozen base, the tensors that travel.
 * The layout of the job's models, updates and directions is that of these alone. The rest is nobody's but the
 * site's, or the same for all and named by its digest. */
#include <jansson.h>
#include <string.h>

#include "common/base/try.h"
#include "job/job_spec_impl.h"

/* What a site does beside plain training, as data: trainer and simulator act by it. */
struct kedge_site_plan kedge_job_spec_site_plan(const struct kedge_job_spec *spec)
{
    const struct kedge_local *local = spec->strategy->local;
    return (struct kedge_site_plan){.numbers = kedge_local_plan(local, &spec->options),
                                    .has_own_model = local->has_own_model,
                                    .is_head_first = local->is_head_first,
                                    .sends_loss = spec->strategy->needs_loss};
}

bool kedge_job_spec_is_in_parts(const struct kedge_job_spec *spec)
{
    return spec->share.count > 0; /* the parser names the default's tensors */
}

bool kedge_job_spec_has_head(const struct kedge_job_spec *spec)
{
    return kedge_job_spec_is_in_parts(spec) && spec->strategy->local->has_head;
}

bool kedge_job_spec_has_base(const struct kedge_job_spec *spec)
{
    return kedge_job_spec_is_in_parts(spec) && spec->strategy->local->has_base;
}

int kedge_job_spec_layout(const struct kedge_job_spec *spec, struct kedge_layout *ret,
                          struct kedge_diag *reterr)
{
    struct kedge_layout whole;
    KEDGE_TRY(kedge_job_spec_whole_layout(spec, &whole, reterr));
    if (!kedge_job_spec_is_in_parts(spec)) {
        *ret = whole;
        return KEDGE_OK;
    }
    int err = kedge_part_layout(&spec->share, &whole, true, ret, reterr);
    kedge_layout_deinit(&whole);
    return err;
}

static int refuse(struct kedge_diag *d, const struct kedge_job_spec *s, const char *key, const char *why)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"%s\": not with strategy \"%s\": %s", key,
                          s->strategy->name, why);
}

static int read_words(const json_t *list, struct kedge_job_spec *s, struct kedge_diag *d)
{
    if (!json_is_array(list) || json_array_size(list) == 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"share\": expected a list of tensors, like [\"0\", \"2.weight\"]");
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        const char *word = json_string_value(v);
        const bool whole = word && strlen(word) == json_string_length(v); /* no NUL within */
        int err = kedge_part_add(&s->share, whole ? word : "", d);
        if (err) {
            return kedge_diag_wrap(d, err, "job spec: \"share\"");
        }
    }
    return KEDGE_OK;
}

/* All but the last layer, by the names of the tensors. */
static int name_default(struct kedge_job_spec *s, const struct kedge_layout *whole, struct kedge_diag *d)
{
    static const struct kedge_part usual = {.count = 0};
    int err = KEDGE_OK;
    for (uint32_t i = 0; i < whole->count && !err; i++) {
        err = kedge_part_has(&usual, whole, i) ? kedge_part_add(&s->share, whole->tensors[i].name, d)
                                               : KEDGE_OK;
    }
    return err;
}

/* What a base must be given with: nobody can guess what is to be trained, nor make what is not. */
static int check_base(const struct kedge_job_spec *s, const json_t *share, struct kedge_diag *d)
{
    if (s->in_world) {
        return refuse(d, s, "strategy", "a simulation begins from its seed, and has no base to train over");
    }
    if (!share) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"share\" is missing: strategy \"%s\" needs the tensors that are "
                              "trained and sent, like [\"0.lora_a\", \"0.lora_b\"]; all others are frozen",
                              s->strategy->name);
    }
    if (s->is_external && s->external.tensors_len == 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"external\": expected with \"model\": \"external\"");
    }
    return s->has_initial_model
               ? KEDGE_OK
               : kedge_diag_set(
                   d, KEDGE_E_FORMAT,
                   "job spec: \"initial_model\" is missing: strategy \"%s\" trains over a frozen "
                   "base, which is part of it; give the file of the whole model with "
                   "--initial-model",
                   s->strategy->name);
}

int kedgei_spec_read_share(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "share");
    const struct kedge_local *local = s->strategy->local;
    if (!local->has_head && !local->has_base) {
        return v ? kedge_diag_set(
                   d, KEDGE_E_FORMAT,
                   "job spec: \"share\": strategy \"%s\" has no use for it: its sites share all "
                   "tensors; \"fedper\" and \"fedrep\" keep the others at the site, \"adapters\" freezes "
                   "them",
                   s->strategy->name)
                 : KEDGE_OK;
    }
    KEDGE_TRY(local->has_base ? check_base(s, v, d) : KEDGE_OK);
    if (s->is_external && local->has_head) {
        return refuse(d, s, "model",
                      "the head of an external model would have no first weights, for those come from "
                      "outside");
    }
    int err = v ? read_words(v, s, d) : KEDGE_OK;
    struct kedge_layout whole;
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_job_spec_whole_layout(s, &whole, d));
    err = kedge_part_check(&s->share, &whole, d);
    err = err || v ? err : name_default(s, &whole, d);
    kedge_layout_deinit(&whole);
    return err ? kedge_diag_wrap(d, err, "job spec: \"share\"") : KEDGE_OK;
}

int kedgei_spec_check_share(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    if (kedge_job_spec_is_in_parts(s) && s->standardize == KEDGE_STANDARDIZE_FEDERATED) {
        return refuse(d, s, "standardize",
                      kedge_job_spec_has_head(s)
                          ? "what all sites find together is no part of a head; expected \"local\""
                          : "what all sites find together is no part of a base; expected \"local\"");
    }
    return KEDGE_OK;
}
