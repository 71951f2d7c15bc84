/* Key "compression": how updates of training come (aggregation/compact.h), and what a job whose updates do
 * cannot be besides. */
#include <jansson.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/try.h"
#include "job/job_spec_impl.h"

static int bad(struct kedge_diag *d, const char *text)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"compression\": %s", text);
}

static int read_kind(const json_t *v, struct kedge_compact *c, struct kedge_diag *d)
{
    const char *text = json_string_value(v);
    for (unsigned kind = KEDGE_COMPACT_INT8; text && kind < KEDGE_COMPACT_KINDS; kind++) {
        if (strcmp(text, kedge_compact_name((enum kedge_compact_kind)kind)) == 0) {
            c->kind = (enum kedge_compact_kind)kind;
            return KEDGE_OK;
        }
    }
    return bad(d, "\"kind\": expected \"int8\", \"bf16\", \"topk\" or \"topk-int8\"");
}

static int read_share(const json_t *v, struct kedge_compact *c, struct kedge_diag *d)
{
    uint64_t share = 0;
    if (!kedge_compact_is_sparse(c->kind)) {
        return v ? bad(d, "\"share\": \"int8\" and \"bf16\" send all values; leave it out") : KEDGE_OK;
    }
    if (!v) {
        return bad(d, "\"share\" is missing: of the values, how many an update has, like \"0.01\"");
    }
    int err = kedgei_spec_share(v, "compression\": \"share", &share, d);
    c->share = err ? 0 : (uint32_t)share;
    return err;
}

static int read_carry(const json_t *v, struct kedge_compact *c, struct kedge_diag *d)
{
    uint64_t carry = 0;
    const char *text = json_string_value(v);
    c->carry = KEDGE_COMPACT_SHARE_ONE;
    bool is_zero = text ? strcmp(text, "0") == 0 : json_is_number(v) && json_number_value(v) == 0;
    if (!v || is_zero) {
        c->carry = v ? 0 : c->carry;
        return KEDGE_OK;
    }
    int err = kedgei_spec_share(v, "compression\": \"carry", &carry, d);
    c->carry = err ? 0 : (uint32_t)carry;
    return err;
}

static int check_names(const json_t *o, struct kedge_diag *d)
{
    static const char *const keys[] = {"kind", "share", "carry"};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)o, name, value)
    {
        if (strcmp(name, "kind") != 0 && strcmp(name, "share") != 0 && strcmp(name, "carry") != 0) {
            (void)kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"compression\": unknown key \"%.60s\"", name);
            kedge_nearest_hint(d, name, keys, 3, "its keys are kind, share and carry");
            return KEDGE_E_FORMAT;
        }
    }
    return KEDGE_OK;
}

int kedgei_spec_read_compression(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *o = json_object_get(root, "compression");
    if (!o) {
        return KEDGE_OK;
    }
    if (!json_is_object(o)) {
        return bad(d, "expected an object like {\"kind\": \"topk-int8\", \"share\": \"0.01\"}");
    }
    KEDGE_TRY(check_names(o, d));
    KEDGE_TRY(read_kind(json_object_get(o, "kind"), &s->compression, d));
    KEDGE_TRY(read_share(json_object_get(o, "share"), &s->compression, d));
    KEDGE_TRY(read_carry(json_object_get(o, "carry"), &s->compression, d));
    const char *why = kedge_strategy_refuses_compact(
        s->strategy, kedge_compact_is_sparse(s->compression.kind), s->rule->kind == KEDGE_RULE_MEAN);
    return why ? kedge_diag_set(d, KEDGE_E_FORMAT,
                                "job spec: \"compression\": not with strategy \"%s\" and rule \"%s\": %s",
                                s->strategy->name, s->rule->name, why)
               : KEDGE_OK;
}

/* Pre-trainings are never compressed: groups are made of their directions. */
const struct kedge_compact *kedge_job_spec_compact(const struct kedge_job_spec *spec, bool pretrain)
{
    return pretrain || spec->compression.kind == KEDGE_COMPACT_NONE ? NULL : &spec->compression;
}
