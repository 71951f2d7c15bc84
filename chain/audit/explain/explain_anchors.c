/* Which anchors outside have the statement behind a model: the earliest of each kind. */

#include "chain/audit/explain/explain_impl.h"

#include "common/base/os/utc.h"

/* The main chain's entry that says that the model is what it is. */
static const struct kedgei_fact *statement_of(const struct kedgei_origin *origin)
{
    const struct kedgei_job *job = origin->job;
    if (origin->release) {
        return origin->release;
    }
    if (origin->round_count == 0) {
        return job->opened;
    }
    const struct kedgei_round *round = kedgei_round_at(job, origin->round_count - 1);
    const struct kedgei_fact *aggregate =
        origin->group < KEDGE_GROUPS_MAX ? round->aggregates[origin->group] : NULL;
    return round->step ? round->step : aggregate ? aggregate : round->opened;
}

/* RFC 3339; null: not told. */
static json_t *json_time(int64_t seconds)
{
    struct kedge_utc text = kedge_utc(seconds, KEDGE_UTC_RFC3339, "");
    return text.s[0] ? json_string(text.s) : json_null();
}

static json_t *explain_anchor(const struct kedge_audit_anchor *row, bool *nomem)
{
    const struct kedge_anchor_claim *claim = &row->claim;
    char name[KEDGE_ANCHOR_NAME_MAX];
    json_t *o = json_object();
    kedge_anchor_name(row->kind, row->number, name);
    kedgei_json_set(o, "kind", json_string(row->kind->told), nomem);
    kedgei_json_set(o, "file", json_string(name), nomem);
    kedgei_json_set(o, "entries", json_integer((json_int_t)claim->size), nomem);
    kedgei_json_set(o, "trusted", json_boolean(claim->trusted), nomem);
    kedgei_json_set(o, "time", json_time(claim->time_s), nomem);
    kedgei_json_set(o, "by", json_string(claim->by), nomem);
    if (row->kind->describe && o) {
        row->kind->describe(claim, o);
    }
    return o;
}

/* The earliest that covers the statement is the strongest: from then on the history up to it could not be
 * written anew. */
json_t *kedgei_explain_anchors(const struct kedgei_audit *a, const struct kedgei_origin *origin, bool *nomem)
{
    const struct kedgei_fact *fact = statement_of(origin);
    const struct kedge_anchor_kind *kind;
    json_t *list = json_array();
    for (size_t i = 0; (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        const struct kedge_audit_anchor *row =
            kedge_audit_anchor_first(a->outside, a->outside_count, kind, fact->index);
        if (row) {
            *nomem = json_array_append_new(list, explain_anchor(row, nomem)) != 0 || *nomem;
        }
    }
    return list;
}
