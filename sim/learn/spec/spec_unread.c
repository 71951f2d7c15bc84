/* Idea: a row per key that only some specs read, with the question whether this one does. */
#include "sim/learn/spec/spec_unread.h"

#include <assert.h>
#include <string.h>

typedef bool reads_fn(const struct kedge_learn_spec *s);

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

static bool has_rule(const struct kedge_learn_spec *s)
{
    return strcmp(s->rule, "mean") != 0;
}

static bool has_tenants(const struct kedge_learn_spec *s)
{
    return s->tenants > 1;
}

static bool is_protocol(const struct kedge_learn_spec *s)
{
    return s->through == KEDGE_LEARN_THROUGH_PROTOCOL;
}

static bool has_groups(const struct kedge_learn_spec *s)
{
    return s->strategy->grouping != KEDGE_GROUPING_KIND_NONE || s->synthetic_updates;
}

static const struct {
    const char *section, *key;
    reads_fn *reads;
    bool of_groups; /* read by some strategies: another one of a comparison may */
    const char *why;
} rows[] = {
    {"world.data", "sites", deals_sites, false, "the data say which sites there are: leave it out"},
    {"world.data", "alpha", is_dirichlet, false, "read by the partitions dirichlet and synthetic only"},
    {"world.data", "beta", is_synthetic, false, "read by the partition synthetic only"},
    {"world.data", "per_site", is_shards, false, "read by the partition shards only"},
    {"world.data", "leak", is_letters, false, "read by the partition letters only"},
    {"world.data", "client", has_clients, false, "read by the partition clients only"},
    {"world.data", "label", has_clients, false, "read by the partition clients only"},
    {"world.data", "group", has_clients, false, "read by the partition clients only"},
    {"world.data", "step", has_clients, false, "read by the partition clients only"},
    {"world.data", "truth", has_clients, false, "read by the partition clients only"},
    {"world.data", "missing", has_clients, false, "read by the partition clients only"},
    {"world.data", "standardize", has_clients, false, "read by the partition clients only"},
    {"world.data", "steps", has_clients, false, "read by the partition clients only"},
    {"world.shift", "rate", shifts_at_random, false,
     "read with the kinds swap-all, swap-part and rotate only"},
    {"world.attack", "scale", has_attack, false, "there is no attack"},
    {"", "rule_fraction", has_rule, false, "the \"rule\" is the mean, which does not read it"},
    {"", "tenant_share_max", has_tenants, false,
     "there is one tenant: say how many by \"world\": {\"tenants\": …}"},
    {"world", "faults", is_protocol, false, "read with \"world\": {\"through\": \"protocol\"} only"},
    {"", "quorum", is_protocol, false, "read with \"world\": {\"through\": \"protocol\"} only"},
    {"", "groups", has_groups, true, "this strategy makes no groups"},
    {"", "choose", has_groups, true, "this strategy makes no groups"},
    {"", "pretrain_steps", has_groups, true, "this strategy makes no groups"},
    {"", "pretrain_sites", has_groups, true, "this strategy makes no groups"},
    {"", "regroup_every", has_groups, true, "this strategy makes no groups"},
    {"", "shift", has_groups, true, "this strategy makes no groups"},
};
#define ROWS (sizeof rows / sizeof rows[0])
static_assert(ROWS <= KEDGEI_SPEC_UNREAD_MAX, "a place for each");

void kedgei_spec_reads(const struct kedge_learn_spec *spec, struct kedgei_spec_read *ret)
{
    for (size_t i = 0; i < ROWS; i++) {
        ret->by[i] = ret->by[i] || rows[i].reads(spec);
    }
}

/* Whether the value at the token is that of the defaults. */
static bool is_default(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row, uint32_t at)
{
    static const size_t sizes[] = {
        [KEDGEI_SPEC_U32] = sizeof(uint32_t),  [KEDGEI_SPEC_U64] = sizeof(uint64_t),
        [KEDGEI_SPEC_REAL] = sizeof(double),   [KEDGEI_SPEC_BOOL] = sizeof(bool),
        [KEDGEI_SPEC_WORD] = sizeof(uint32_t), [KEDGEI_SPEC_ROUNDS] = sizeof(struct kedge_learn_rounds),
    };
    struct kedge_learn_spec given, usual;
    if (has_clients(l->spec) && row->offset == offsetof(struct kedge_learn_spec, sites)) {
        return false; /* spec.json has none either */
    }
    kedge_learn_spec_default(&usual);
    given = usual;
    if (kedgei_spec_read(l, row, at, &given) != KEDGE_OK) {
        return false;
    }
    const char *a = (const char *)&given + row->offset, *b = (const char *)&usual + row->offset;
    return row->kind == KEDGEI_SPEC_TEXT ? strcmp(a, b) == 0 : memcmp(a, b, sizes[row->kind]) == 0;
}

static const struct kedgei_spec_row *row_of(const char *section, const char *key)
{
    for (size_t i = 0; i < kedgei_spec_row_count; i++) {
        if (strcmp(kedgei_spec_rows[i].section, section) == 0 && strcmp(kedgei_spec_rows[i].key, key) == 0) {
            return &kedgei_spec_rows[i];
        }
    }
    return NULL;
}

/* The object of a section in the layer at `at`; KEDGE_JSON_NONE: it is not there. */
static uint32_t section_at(const struct kedgei_spec_layer *l, uint32_t at, const char *section)
{
    static const char world[] = "world";
    if (section[0] == '\0') {
        return at;
    }
    uint32_t outer = kedge_json_find(l->doc, at, world);
    bool is_outer = strcmp(section, world) == 0;
    return is_outer || outer == KEDGE_JSON_NONE || !kedge_json_is(l->doc, outer, KEDGE_JSON_OBJECT)
               ? outer
               : kedge_json_find(l->doc, outer, section + sizeof world);
}

int kedgei_spec_check_read(const struct kedgei_spec_layer *l, uint32_t at,
                           const struct kedgei_spec_read *read, bool alone)
{
    for (size_t i = 0; i < ROWS; i++) {
        bool is_inner = rows[i].section[0] != '\0';
        uint32_t in = section_at(l, at, rows[i].section);
        if (read->by[i] || in == KEDGE_JSON_NONE || (rows[i].of_groups && !alone)) {
            continue;
        }
        uint32_t value = kedge_json_find(l->doc, in, rows[i].key);
        const struct kedgei_spec_row *row = row_of(rows[i].section, rows[i].key);
        KEDGE_ASSERT(row != NULL);
        if (value != KEDGE_JSON_NONE && !is_default(l, row, value)) {
            return kedge_diag_set(l->d, KEDGE_E_FORMAT, "\"%s\"%s%s%s: found %s, but %s", rows[i].key,
                                  is_inner ? " in \"" : "", rows[i].section, is_inner ? "\"" : "",
                                  kedgei_spec_said(l->doc, value).s, rows[i].why);
        }
    }
    return KEDGE_OK;
}
