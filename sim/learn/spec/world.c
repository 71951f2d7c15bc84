#include "sim/learn/spec/world.h"

#include <assert.h>
#include <string.h>

#include "common/base/limits.h"

/* Words stand in the order of their enums (learn.h). */
static const char *const words_partition[] = {"iid",     "dirichlet", "shards",    "mnist",
                                              "letters", "fashion",   "synthetic", "rotated",
                                              "writers", "clients",   NULL};
static const char *const words_shift[] = {"none", "swap-all", "swap-part", "incremental", "rotate", NULL};
static const char *const words_attack[] = {"none",          "sign-flip", "scale", "label-flip", "alie",
                                           "inner-product", "backdoor",  "sybil", NULL};
static const char *const words_through[] = {"rounds", "protocol", NULL};
static const char *const words_train_on[] = {"cpu", "cuda", NULL};
static const char *const words_missing[] = {"refuse", "drop", "mean", NULL};
static const char *const words_standardize[] = {"none", "local", "federated", NULL};

static_assert(sizeof(enum kedge_learn_partition) == sizeof(uint32_t), "words are kept as uint32_t");
static_assert(KEDGE_LEARN_CLIENTS == 9 && KEDGE_LEARN_SHIFT_ROTATE == 4 && KEDGE_LEARN_ATTACK_SYBIL == 7
                  && KEDGE_LEARN_THROUGH_PROTOCOL == 1 && KEDGE_CSV_MISSING_MEAN == 2
                  && KEDGE_LEARN_STANDARDIZE_FEDERATED == 2 && KEDGE_LEARN_ON_CUDA == 1,
              "as many words as there are values");

/* ---- who reads what ---- */

static bool has_files(const struct kedge_learn_spec *s)
{
    return s->partition != KEDGE_LEARN_SYNTHETIC;
}

static bool deals_sites(const struct kedge_learn_spec *s)
{
    return !kedge_learn_spec_is_natural(s);
}

static bool has_clients(const struct kedge_learn_spec *s)
{
    return s->partition == KEDGE_LEARN_CLIENTS;
}

static bool is_dirichlet(const struct kedge_learn_spec *s)
{
    return s->partition == KEDGE_LEARN_DIRICHLET || s->partition == KEDGE_LEARN_SYNTHETIC;
}

static bool is_synthetic(const struct kedge_learn_spec *s)
{
    return s->partition == KEDGE_LEARN_SYNTHETIC;
}

static bool is_shards(const struct kedge_learn_spec *s)
{
    return s->partition == KEDGE_LEARN_SHARDS;
}

static bool is_letters(const struct kedge_learn_spec *s)
{
    return s->partition == KEDGE_LEARN_LETTERS;
}

static bool shifts_at_random(const struct kedge_learn_spec *s)
{
    return s->shift == KEDGE_LEARN_SHIFT_SWAP_ALL || s->shift == KEDGE_LEARN_SHIFT_SWAP_PART
           || s->shift == KEDGE_LEARN_SHIFT_ROTATE;
}

static bool has_attack(const struct kedge_learn_spec *s)
{
    return s->attack != KEDGE_LEARN_ATTACK_NONE;
}

static bool has_trace(const struct kedge_learn_spec *s)
{
    return s->trace[0] != '\0';
}

static bool is_protocol(const struct kedge_learn_spec *s)
{
    return s->through == KEDGE_LEARN_THROUGH_PROTOCOL;
}

static bool trains_in_rounds(const struct kedge_learn_spec *s)
{
    return !is_protocol(s);
}

#define always NULL
#define WHY_always NULL
#define WHY_has_files "the partition synthetic has no files"
#define WHY_deals_sites "the data say which sites there are: leave it out"
#define WHY_has_clients "read by the partition clients only"
#define WHY_is_dirichlet "read by the partitions dirichlet and synthetic only"
#define WHY_is_synthetic "read by the partition synthetic only"
#define WHY_is_shards "read by the partition shards only"
#define WHY_is_letters "read by the partition letters only"
#define WHY_shifts_at_random "read with the kinds swap-all, swap-part and rotate only"
#define WHY_has_attack "there is no attack"
#define WHY_has_trace "there is no trace"
#define WHY_is_protocol "read with \"through\": \"protocol\" only"
#define WHY_trains_in_rounds "through the protocol each site trains by itself, on the processor"

/* ---- the table ---- */

#define WORDS_WHOLE(section, key) NULL
#define WORDS_REAL(section, key) NULL
#define WORDS_YES(section, key) NULL
#define WORDS_TEXT(section, key) NULL
#define WORDS_ROUNDS(section, key) NULL
#define WORDS_OWN(section, key) NULL
#define WORDS_WORD(section, key) WORDS_OF_##section##_##key
#define WORDS_OF_data_partition words_partition
#define WORDS_OF_data_missing words_missing
#define WORDS_OF_data_standardize words_standardize
#define WORDS_OF_shift_kind words_shift
#define WORDS_OF_attack_kind words_attack
#define WORDS_OF_world_through words_through
#define WORDS_OF_world_train_on words_train_on
#define KEDGE_WORLD_KEY(in, word, of_kind, member, lowest, highest, usual, read_by, shown, meaning) \
    {#in,                                                                                           \
     #word,                                                                                         \
     KEDGEI_WORLD_##of_kind,                                                                        \
     offsetof(struct kedge_learn_spec, member),                                                     \
     lowest,                                                                                        \
     highest,                                                                                       \
     (usual),                                                                                       \
     (read_by),                                                                                     \
     WHY_##read_by,                                                                                 \
     WORDS_##of_kind(in, word)},
const struct kedgei_world_key kedgei_world_keys[] = {
#include "sim/learn/spec/world.def"
};
#undef KEDGE_WORLD_KEY
const size_t kedgei_world_key_count = sizeof kedgei_world_keys / sizeof kedgei_world_keys[0];

#define DEVICE(key, least, most, usual)                                                                      \
    {                                                                                                        \
        "devices", #key, KEDGEI_WORLD_REAL, offsetof(struct kedge_learn_device, key), least, most, usual, 0, \
            NULL, NULL                                                                                       \
    }
const struct kedgei_world_key kedgei_device_keys[] = {
    DEVICE(share, 1e-9, 1e6, 1),          DEVICE(samples_per_s, 1e-9, 1e12, 1000),
    DEVICE(bytes_per_s, 1e-9, 1e12, 1e6), DEVICE(joules_per_sample, 0, 1e6, 0),
    DEVICE(joules_per_s, 0, 1e6, 0),      DEVICE(available, 1e-6, 1, 1),
};
const size_t kedgei_device_key_count = sizeof kedgei_device_keys / sizeof kedgei_device_keys[0];

bool kedgei_world_is_read(const struct kedge_learn_spec *spec, const struct kedgei_world_key *row)
{
    return !row->is_read || row->is_read(spec);
}
