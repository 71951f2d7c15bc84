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

static bool has_fault(const struct kedge_learn_spec *s)
{
    return strcmp(s->strategy->name, "ifca") == 0 || strcmp(s->strategy->name, "fesem") == 0;
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
    {"data", "sites", deals_sites, false, "the data say which sites there are: leave it out"},
    {"data", "alpha", is_dirichlet, false, "read by the partitions dirichlet and synthetic only"},
    {"data", "beta", is_synthetic, false, "read by the partition synthetic only"},
    {"data", "per_site", is_shards, false, "read by the partition shards only"},
    {"data", "leak", is_letters, false, "read by the partition letters only"},
    {"data", "client", has_clients, false, "read by the partition clients only"},
    {"data", "label", has_clients, false, "read by the partition clients only"},
    {"data", "group", has_clients, false, "read by the partition clients only"},
    {"data", "step", has_clients, false, "read by the partition clients only"},
    {"data", "truth", has_clients, false, "read by the partition clients only"},
    {"data", "missing", has_clients, false, "read by the partition clients only"},
    {"data", "standardize", has_clients, false, "read by the partition clients only"},
    {"data", "steps", has_clients, false, "read by the partition clients only"},
    {"", "shift_rate", shifts_at_random, false, "read with \"shift\" swap-all, swap-part or rotate only"},
    {"", "attack_scale", has_attack, false, "there is no \"attack\""},
    {"", "rule_fraction", has_rule, false, "the \"rule\" is the mean, which does not read it"},
    {"", "tenant_share_max", has_tenants, false, "there is one tenant: say how many by \"tenants\""},
    {"", "as_released", has_fault, false, "read by the strategies ifca and fesem only"},
    {"", "faults", is_protocol, false, "read with \"through\": \"protocol\" only"},
    {"", "quorum", is_protocol, false, "read with \"through\": \"protocol\" only"},
    {"", "groups", has_groups, true, "this strategy makes no groups"},
    {"", "choose_groups", has_groups, true, "this strategy makes no groups"},
    {"", "pretrain_steps", has_groups, true, "this strategy makes no groups"},
    {"", "pretrain_scale", has_groups, true, "this strategy makes no groups"},
    {"", "embedding", has_groups, true, "this strategy makes no groups"},
    {"", "regroup_every", has_groups, true, "this strategy makes no groups"},
    {"", "detector", has_groups, true, "this strategy makes no groups"},
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

int kedgei_spec_check_read(const struct kedgei_spec_layer *l, uint32_t at,
                           const struct kedgei_spec_read *read, bool alone)
{
    uint32_t data = kedge_json_find(l->doc, at, "data");
    for (size_t i = 0; i < ROWS; i++) {
        bool inner = rows[i].section[0] != '\0';
        uint32_t in = inner ? data : at;
        if (read->by[i] || in == KEDGE_JSON_NONE || (rows[i].of_groups && !alone)) {
            continue;
        }
        uint32_t value = kedge_json_find(l->doc, in, rows[i].key);
        const struct kedgei_spec_row *row = row_of(rows[i].section, rows[i].key);
        KEDGE_ASSERT(row != NULL);
        if (value != KEDGE_JSON_NONE && !is_default(l, row, value)) {
            return kedge_diag_set(l->d, KEDGE_E_FORMAT, "\"%s\"%s: found %s, but %s", rows[i].key,
                                  inner ? " in \"data\"" : "", kedgei_spec_said(l->doc, value).s,
                                  rows[i].why);
        }
    }
    return KEDGE_OK;
}
