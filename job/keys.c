#include "job/keys.h"

#include <assert.h>
#include <string.h>

#include "aggregation/share_cap.h"
#include "common/base/limits.h"
#include "job/job_spec_impl.h"

/* Words in the order of their enums (job_spec.h). */
const char *const kedgei_words_selection[] = {"uniform", "charged", NULL};
const char *const kedgei_words_learning_rate_rule[] = {"none", "sqrt", "linear", NULL};
const char *const kedgei_words_precision[] = {"f32", "tf32", "bf16", NULL};
const char *const kedgei_words_grouping[] = {"none", "flexcfl", NULL};
const char *const kedgei_words_choose[] = {"fixed", "silhouette", "gap", NULL};
const char *const kedgei_words_shift[] = {"none", "labels", "counts", "update", NULL};
const char *const kedgei_words_standardize[] = {"none", "local", "federated", NULL};
const char *const kedgei_words_metric[] = {"accuracy", "loss", NULL};

static_assert(KEDGE_RATE_LINEAR == 2 && KEDGE_PRECISION_BF16 == 2 && KEDGE_GROUPING_FLEXCFL == 1
                  && KEDGE_CHOOSE_GAP == 2 && KEDGE_SHIFT_TEST_UPDATE == 3
                  && KEDGE_STANDARDIZE_FEDERATED == 3,
              "as many words as there are values; \"standardize\" may be unsaid");
/* keys.def has numbers, which docs show. */
static_assert(KEDGE_ROUNDS_MAX == 1000000 && KEDGE_SITES_MAX == 4096 && KEDGE_GROUPS_MAX == 16
                  && KEDGE_SHARE_ONE == 1000000 && KEDGE_STALENESS_MAX == 64
                  && KEDGEI_STALENESS_DEFAULT == 16,
              "limits are those of keys.def");

#define WORDS_OF_WHOLE32(key) NULL
#define WORDS_OF_WHOLE64(key) NULL
#define WORDS_OF_SEED(key) NULL
#define WORDS_OF_REAL(key) NULL
#define WORDS_OF_SHARE(key) NULL
#define WORDS_OF_WORD(key) kedgei_words_##key
#define WORDS_OF_OWN(key) NULL
#define KEDGE_JOB_KEY(word, of_kind, member, lowest, highest, usual, required, shown, meaning) \
    {.key = #word,                                                                             \
     .kind = KEDGE_JOB_KEY_##of_kind,                                                          \
     .offset = offsetof(struct kedge_job_spec, member),                                        \
     .least = (lowest),                                                                        \
     .most = (highest),                                                                        \
     .fallback = (usual),                                                                      \
     .is_required = (required),                                                                \
     .shown_default = (shown),                                                                 \
     .text = (meaning),                                                                        \
     .words = WORDS_OF_##of_kind(word)},
const struct kedge_job_key kedge_job_keys[] = {
#include "job/keys.def"
};
#undef KEDGE_JOB_KEY
const size_t kedge_job_key_count = sizeof kedge_job_keys / sizeof kedge_job_keys[0];

const struct kedge_job_key *kedge_job_key_find(const char *key)
{
    for (size_t i = 0; i < kedge_job_key_count; i++) {
        if (strcmp(kedge_job_keys[i].key, key) == 0) {
            return &kedge_job_keys[i];
        }
    }
    return NULL;
}

/* ---- which of them a job reads ---- */

static bool is_external(const struct kedge_job_spec *s)
{
    return s->is_external;
}

static bool has_layers(const struct kedge_job_spec *s)
{
    return !s->is_external;
}

static bool has_initial_model(const struct kedge_job_spec *s)
{
    return s->has_initial_model;
}

static bool has_classes(const struct kedge_job_spec *s)
{
    return s->learns_classes || s->classes_count > 0;
}

static bool says_scales(const struct kedge_job_spec *s)
{
    return s->standardize != KEDGE_STANDARDIZE_UNSAID;
}

static bool is_asynchronous(const struct kedge_job_spec *s)
{
    return s->strategy->asynchronous;
}

static bool chooses_batch(const struct kedge_job_spec *s)
{
    return s->batch_auto;
}

static bool makes_groups(const struct kedge_job_spec *s)
{
    return s->grouping == KEDGE_GROUPING_FLEXCFL;
}

static bool has_groups(const struct kedge_job_spec *s)
{
    return s->groups > 1 && (makes_groups(s) || kedge_job_spec_models(s) > 1);
}

static bool has_models(const struct kedge_job_spec *s)
{
    return makes_groups(s) || kedge_job_spec_models(s) > 1;
}

static bool has_server(const struct kedge_job_spec *s)
{
    return s->server != KEDGE_SERVER_CONTROL;
}

static bool has_options(const struct kedge_job_spec *s)
{
    for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT; i++) {
        if (kedgei_spec_uses_option(s, kedge_strategy_option_at(i))) {
            return true;
        }
    }
    return false;
}

static bool has_fraction(const struct kedge_job_spec *s)
{
    return s->rule->uses_fraction;
}

static bool has_bound(const struct kedge_job_spec *s)
{
    return s->rule->uses_bound;
}

static bool is_compressed(const struct kedge_job_spec *s)
{
    return s->compression.kind != KEDGE_COMPACT_NONE;
}

/* Of a world the sites are all there are, and the root is one more. */
static bool names_root(const struct kedge_job_spec *s)
{
    return s->rule->needs_root && !s->in_world;
}

static bool counts_control(const struct kedge_job_spec *s)
{
    return kedge_job_spec_has_control(s) && !s->in_world;
}

static bool says_least(const struct kedge_job_spec *s)
{
    return s->sites_min > 0;
}

/* All other keys are read by every job. */
static const struct {
    const char *key;
    bool (*by)(const struct kedge_job_spec *s);
} read_when[] = {
    {"external", is_external},
    {"initial_model", has_initial_model},
    {"classes", has_classes},
    {"standardize", says_scales},
    {"staleness_max", is_asynchronous},
    {"batch_start", chooses_batch},
    {"batch_least", chooses_batch},
    {"batch_most", chooses_batch},
    {"learning_rate_rule", chooses_batch},
    {"precision", has_layers},
    {"grouping", makes_groups},
    {"groups", has_groups},
    {"choose", kedgei_spec_lives},
    {"pretrain_steps", makes_groups},
    {"pretrain_sites", makes_groups},
    {"shift", makes_groups},
    {"regroup_every", makes_groups},
    {"migration_pause", makes_groups},
    {"mixing", has_models},
    {"share", kedge_job_spec_has_head},
    {"options", has_options},
    {"server", has_server},
    {"rule_fraction", has_fraction},
    {"rule_bound", has_bound},
    {"compression", is_compressed},
    {"control_sites", counts_control},
    {"root_site", names_root},
    {"sites_min", says_least},
};

bool kedge_job_key_is_read(const struct kedge_job_spec *spec, const struct kedge_job_key *key)
{
    for (size_t i = 0; i < sizeof read_when / sizeof read_when[0]; i++) {
        if (strcmp(read_when[i].key, key->key) == 0) {
            return read_when[i].by(spec);
        }
    }
    return true;
}
