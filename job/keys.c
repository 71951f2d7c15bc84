#include "job/keys.h"

#include <assert.h>
#include <string.h>

#include "aggregation/share_cap.h"
#include "job/job_spec_impl.h"

/* Words in the order of their enums (job_spec.h). */
const char *const kedgei_words_selection[] = {"uniform", "charged", NULL};
const char *const kedgei_words_learning_rate_rule[] = {"none", "sqrt", "linear", NULL};
const char *const kedgei_words_precision[] = {"f32", "tf32", "bf16", NULL};
const char *const kedgei_words_grouping[] = {"none", "flexcfl", NULL};
const char *const kedgei_words_choose[] = {"fixed", "silhouette", "gap", "most", "one", NULL};
const char *const kedgei_words_shift[] = {"none", "labels", "counts", "update", "loss", NULL};
const char *const kedgei_words_standardize[] = {"none", "local", "federated", NULL};
const char *const kedgei_words_metric[] = {"accuracy", "loss", NULL};

static_assert(KEDGE_RATE_LINEAR == 2 && KEDGE_PRECISION_BF16 == 2 && KEDGE_GROUPING_FLEXCFL == 1
                  && KEDGE_CHOOSE_ONE == 4 && KEDGE_SHIFT_TEST_LOSS == 4 && KEDGE_STANDARDIZE_FEDERATED == 3,
              "as many words as there are values; \"standardize\" may be unsaid");
/* keys.def has numbers, which docs show. */
static_assert(KEDGE_ROUNDS_MAX == 1000000 && KEDGE_SITES_MAX == 4096 && KEDGE_GROUPS_MAX == 64
                  && KEDGE_GROUPS_USUAL == 16 && KEDGE_SHARE_ONE == 1000000 && KEDGE_STALENESS_MAX == 64
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
