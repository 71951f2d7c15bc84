#include "sim/learn/spec/spec_rows.h"

#include <assert.h>

#include "common/base/limits.h"
#include "sim/learn/learn.h"

/* Words stand in the order of their enums (learn.h). */
static const char *const partitions[] = {"iid",       "dirichlet", "shards",  "mnist",   "letters", "fashion",
                                         "synthetic", "rotated",   "writers", "clients", NULL};
static const char *const shifts[] = {"none", "swap-all", "swap-part", "incremental", "rotate", NULL};
static const char *const detectors[] = {"none", "labels", "counts", "update", NULL};
static const char *const attacks[] = {"none",          "sign-flip", "scale", "label-flip", "alie",
                                      "inner-product", "backdoor",  "sybil", NULL};
static const char *const throughs[] = {"rounds", "job-rounds", "protocol", NULL};
static const char *const train_ons[] = {"cpu", "cuda", NULL};
static const char *const compressions[] = {"none", "int8", "bf16", "topk", "topk-int8", NULL};
static const char *const missings[] = {"refuse", "drop", "mean", NULL};
static const char *const standardizes[] = {"none", "local", "federated", NULL};
static const char *const chooses[] = {"fixed", "silhouette", NULL};

static_assert(sizeof(enum kedge_learn_partition) == sizeof(uint32_t)
                  && sizeof(enum kedge_compact_kind) == sizeof(uint32_t),
              "words are kept as uint32_t");
static_assert(KEDGE_LEARN_CLIENTS == 9 && KEDGE_LEARN_SHIFT_ROTATE == 4 && KEDGE_LEARN_DETECT_UPDATE == 3
                  && KEDGE_LEARN_ATTACK_SYBIL == 7 && KEDGE_LEARN_THROUGH_PROTOCOL == 2
                  && KEDGE_CSV_MISSING_MEAN == 2 && KEDGE_LEARN_STANDARDIZE_FEDERATED == 2
                  && KEDGE_LEARN_ON_CUDA == 1 && KEDGE_COMPACT_TOPK_INT8 == 4,
              "as many words as there are values");

#define AT(field) offsetof(struct kedge_learn_spec, field)
#define WHOLE(section, key, field, least, most)                                  \
    {                                                                            \
        section, key, KEDGEI_SPEC_U32, AT(field), least, most, 0, 0, NULL, false \
    }
#define REAL(section, key, field, least, most)                                    \
    {                                                                             \
        section, key, KEDGEI_SPEC_REAL, AT(field), least, most, 0, 0, NULL, false \
    }
#define ABOVE(section, key, field, least, most)                                   \
    {                                                                             \
        section, key, KEDGEI_SPEC_REAL, AT(field), least, most, 1, 0, NULL, false \
    }
#define BELOW(section, key, field, least, most)                                   \
    {                                                                             \
        section, key, KEDGEI_SPEC_REAL, AT(field), least, most, 0, 1, NULL, false \
    }
#define YES_NO(section, key, field)                                        \
    {                                                                      \
        section, key, KEDGEI_SPEC_BOOL, AT(field), 0, 1, 0, 0, NULL, false \
    }
#define WORD(section, key, field, words)                                    \
    {                                                                       \
        section, key, KEDGEI_SPEC_WORD, AT(field), 0, 0, 0, 0, words, false \
    }
#define TEXT(section, key, field, words)                                                                     \
    {                                                                                                        \
        section, key, KEDGEI_SPEC_TEXT, AT(field), 0, sizeof((struct kedge_learn_spec *)0)->field - 1, 0, 0, \
            words, false                                                                                     \
    }

/* Of the partition "clients". */
#define CLIENTS(key, field)                                                                                 \
    {                                                                                                       \
        "world.data", key, KEDGEI_SPEC_TEXT, AT(field), 0, sizeof((struct kedge_learn_spec *)0)->field - 1, \
            0, 0, NULL, true                                                                                \
    }

/* Written only where there is a kind (spec_put.c). */
#define COMPRESSION(key, field, kind, least, most, above, words)                 \
    {                                                                            \
        "compression", key, kind, AT(field), least, most, above, 0, words, false \
    }

enum { EPOCHS_MAX = 10000, BATCH_MAX = 65536, STEPS_MAX = 1000000, SHARDS_MAX = 10000 };
#define LARGE 1e6
#define SECONDS_MAX 1e9

/* Outermost are the keys of a job with the words of job/keys.def; "world" has all else. */
const struct kedgei_spec_row kedgei_spec_rows[] = {
    TEXT("", "name", name, NULL),
    {"", "seed", KEDGEI_SPEC_U64, AT(seed), 0, 0, 0, 0, NULL, false},
    WHOLE("", "rounds", rounds, 1, KEDGE_ROUNDS_MAX),
    WHOLE("", "sites_per_round", sites_per_round, 0, KEDGE_LEARN_SITES_MAX),
    {"", "quorum", KEDGEI_SPEC_U32, AT(quorum), 0, KEDGE_LEARN_SITES_MAX, 0, 0, NULL, true},
    {"", "round_timeout_s", KEDGEI_SPEC_REAL, AT(deadline_s), 0, SECONDS_MAX, 0, 0, NULL, true},
    WHOLE("", "local_epochs", epochs, 1, EPOCHS_MAX),
    WHOLE("", "batch", batch, 1, BATCH_MAX),
    ABOVE("", "learning_rate", lr, 0, 1000),
    REAL("", "l2", l2, 0, 1000),
    WHOLE("", "groups", groups, 1, KEDGE_LEARN_GROUPS_MAX),
    WORD("", "choose", choose_groups, chooses),
    WHOLE("", "pretrain_steps", pretrain_steps, 1, STEPS_MAX),
    WHOLE("", "pretrain_sites", pretrain_sites, 0, KEDGE_LEARN_SITES_MAX),
    WORD("", "shift", detector, detectors),
    WHOLE("", "regroup_every", regroup_every, 0, KEDGE_ROUNDS_MAX),
    REAL("", "mixing", mixing, 0, 1000),
    ABOVE("", "tenant_share_max", tenant_share_max, 0, 1),
    WHOLE("", "evaluate_every", evaluate_every, 1, KEDGE_ROUNDS_MAX),
    TEXT("", "rule", rule, NULL),
    BELOW("", "rule_fraction", rule_fraction, 0, 0.5),
    COMPRESSION("kind", compression, KEDGEI_SPEC_WORD, 0, 0, 0, compressions),
    COMPRESSION("share", compression_share, KEDGEI_SPEC_REAL, 0, 1, true, NULL),
    COMPRESSION("carry", compression_carry, KEDGEI_SPEC_REAL, 0, 1, false, NULL),
    TEXT("world.data", "images", images, NULL),
    WORD("world.data", "partition", partition, partitions),
    {"world.data", "sites", KEDGEI_SPEC_U32, AT(sites), 1, KEDGE_LEARN_SITES_MAX, 0, 0, NULL, true},
    REAL("world.data", "alpha", alpha, 0, LARGE),
    REAL("world.data", "beta", beta, 0, LARGE),
    WHOLE("world.data", "per_site", per_site, 0, SHARDS_MAX),
    YES_NO("world.data", "leak", leak),
    CLIENTS("client", client),
    CLIENTS("label", label),
    CLIENTS("group", group),
    CLIENTS("step", step),
    CLIENTS("truth", truth),
    {"world.data", "missing", KEDGEI_SPEC_WORD, AT(missing), 0, 0, 0, 0, missings, true},
    {"world.data", "standardize", KEDGEI_SPEC_WORD, AT(standardize), 0, 0, 0, 0, standardizes, true},
    {"world.data", "steps", KEDGEI_SPEC_ROUNDS, AT(steps), 1, KEDGE_ROUNDS_MAX, 0, 0, NULL, true},
    YES_NO("world", "planted", synthetic_updates),
    WHOLE("world", "tenants", tenants, 1, KEDGE_LEARN_SITES_MAX),
    BELOW("world", "fail", fail, 0, 1),
    {"world", "trace", KEDGEI_SPEC_TEXT, AT(trace), 0, KEDGE_LEARN_PATH_MAX - 1, 0, 0, NULL, true},
    {"world", "trace_period_s", KEDGEI_SPEC_REAL, AT(trace_period_s), 0, SECONDS_MAX, 0, 0, NULL, true},
    {"world", "through", KEDGEI_SPEC_WORD, AT(through), 0, 0, 0, 0, throughs, true},
    {"world", "train_on", KEDGEI_SPEC_WORD, AT(train_on), 0, 0, 0, 0, train_ons, true},
    {"world", "faults", KEDGEI_SPEC_BOOL, AT(faults), 0, 1, 0, 0, NULL, true},
    WORD("world.shift", "kind", shift, shifts),
    REAL("world.shift", "rate", shift_rate, 0, 1),
    WORD("world.attack", "kind", attack, attacks),
    REAL("world.attack", "share", attackers, 0, 1),
    REAL("world.attack", "scale", attack_scale, -LARGE, LARGE),
};
const size_t kedgei_spec_row_count = sizeof kedgei_spec_rows / sizeof kedgei_spec_rows[0];

#define DEVICE(key, above, most)                                                                             \
    {                                                                                                        \
        "", #key, KEDGEI_SPEC_REAL, offsetof(struct kedge_learn_device, key), 0, most, above, 0, NULL, false \
    }

const struct kedgei_spec_row kedgei_device_rows[] = {
    DEVICE(share, 1, LARGE),        DEVICE(samples_per_s, 1, 1e12),
    DEVICE(bytes_per_s, 1, 1e12),   DEVICE(joules_per_sample, 0, LARGE),
    DEVICE(joules_per_s, 0, LARGE), DEVICE(available, 1, 1),
};
const size_t kedgei_device_row_count = sizeof kedgei_device_rows / sizeof kedgei_device_rows[0];
