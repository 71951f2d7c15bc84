/* The table of statements: what stands in each predicate, in this order. Names are part of the record. */
#include <assert.h>

#include "chain/log/note.h"
#include "chain/statement/statement_fields.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define AT(kind, member) offsetof(struct kedge_st_##kind, member)

/* clang-format off */
#define FIELD(kind, member, t) .name = #member, .type = KEDGEI_##t, .offset = AT(kind, member)
#define ID(kind, member) {FIELD(kind, member, ID)}
#define ID_OR_EMPTY(kind, member) {FIELD(kind, member, ID_OR_EMPTY)}
#define KEY(kind, member) {FIELD(kind, member, KEY)}
#define HASH(kind, member) {FIELD(kind, member, HASH)}
#define TEXT(kind, member, lo, hi) {FIELD(kind, member, TEXT), .min = (lo), .max = (hi)}
#define FILE_NAME(kind, member, hi) {FIELD(kind, member, FILE), .min = 1, .max = (hi)}
#define ENUM(kind, member, words) {FIELD(kind, member, ENUM), .names = (words)}
#define U32(kind, member, lo, hi) {FIELD(kind, member, U32), .min = (lo), .max = (hi)}
#define U64(kind, member, lo, hi) {FIELD(kind, member, U64), .min = (lo), .max = (hi)}
#define U64_TEXT(kind, member, hi) {FIELD(kind, member, U64_TEXT), .max = (hi)}
#define REAL(kind, member) {FIELD(kind, member, REAL)}
#define REAL_POS(kind, member) {FIELD(kind, member, REAL_POS)}
#define LIST(kind, member, description) {FIELD(kind, member, LIST), .list = &(description)}
#define OPTIONAL(t, kind, member) {FIELD(kind, member, t), .optional = true}
#define BOUND(kind)                                                                                    \
    {.name = "deployment", .type = KEDGEI_TEXT, .offset = AT(kind, of.deployment), .min = 1,           \
     .max = KEDGE_ST_NAME_MAX},                                                                        \
    {.name = "main_log_key", .type = KEDGEI_KEY, .offset = AT(kind, of.main_log_key)},                 \
    {.name = "before", .type = KEDGEI_U64, .offset = AT(kind, of.before), .min = 1, .max = KEDGE_ST_COUNT_MAX}
#define POSITION                                                                                       \
    {.name = "main_log_key", .type = KEDGEI_KEY, .offset = offsetof(struct kedge_st_position, main_log_key), \
     .in_position = true},                                                                             \
    {.name = "before", .type = KEDGEI_U64, .offset = offsetof(struct kedge_st_position, before), .min = 1, \
     .max = KEDGE_ST_COUNT_MAX, .in_position = true},                                                  \
    {.name = "seen_size", .type = KEDGEI_U64, .offset = offsetof(struct kedge_st_position, seen_size), \
     .max = KEDGE_ST_COUNT_MAX, .in_position = true},                                                  \
    {.name = "seen_root", .type = KEDGEI_HASH, .offset = offsetof(struct kedge_st_position, seen_root), \
     .in_position = true}
#define ROUND(kind) U32(kind, round, 0, KEDGE_ROUNDS_MAX)
#define GROUP(kind) U32(kind, group, 0, KEDGE_GROUPS_MAX - 1)
/* clang-format on */

const char KEDGEI_STATEMENT_TYPE[] = "https://in-toto.io/Statement/v1";
static const char *const scope_names[] = {"admin", "coordinator", "log", NULL};
static const char *const chain_role_names[] = {"operator", "auditor", NULL};
static const char *const standing_names[] = {"active", "suspended", NULL};
static const char *const role_names[] = {"admin", "recovery", "site", "site-tls", NULL};
static const char *const train_names[] = {"pretrain", "train", NULL};
static const char *const energy_names[] = {"measured", "modelled", "unknown", NULL};
static const char *const how_names[] = {"cold-start", "newcomer", "migration", "recluster", "split",
                                        "merge",      "choice",   "nearest",   NULL};
static const char *const outcome_names[] = {"completed", "cancelled", "failed", NULL};
static const char *const source_names[] = {"declared", "median", "timeout", NULL};

static const struct kedgei_field key_fields[] = {
    ENUM(key, scope, scope_names),
    ID_OR_EMPTY(key, tenant),
    KEY(key, public_key),
    POSITION,
};

static const struct kedgei_field key_added_fields[] = {
    ID(key_added, tenant),
    ENUM(key_added, role, role_names),
    KEY(key_added, public_key),
    POSITION,
};

static const char *check_key_added(const struct kedge_statement *st)
{
    return st->u.key_added.role > KEDGE_ROLE_RECOVERY ? "role admin or recovery" : NULL;
}

static const struct kedgei_field key_rotated_fields[] = {
    ID(key_rotated, tenant),   ENUM(key_rotated, role, role_names), ID_OR_EMPTY(key_rotated, site),
    KEY(key_rotated, old_key), KEY(key_rotated, new_key),           POSITION,
};

static const char *check_key_rotated(const struct kedge_statement *st)
{
    const struct kedge_st_key_rotated *r = &st->u.key_rotated;
    if ((r->role > KEDGE_ROLE_RECOVERY) != (r->site.s[0] != '\0')) {
        return "a site exactly with the roles site and site-tls";
    }
    return kedge_public_key_eq(&r->old_key, &r->new_key) ? "a new_key that is new" : NULL;
}

static const struct kedgei_field key_revoked_fields[] = {
    ID(key_revoked, tenant),
    ENUM(key_revoked, role, role_names),
    KEY(key_revoked, public_key),
    TEXT(key_revoked, reason, 0, KEDGE_ST_REASON_MAX),
    POSITION,
};

static const char *check_key_revoked(const struct kedge_statement *st)
{
    return st->u.key_revoked.role > KEDGE_ROLE_RECOVERY ? "role admin or recovery" : NULL;
}

static const struct kedgei_field key_recovered_fields[] = {
    ID(key_recovered, tenant),
    KEY(key_recovered, public_key),
    TEXT(key_recovered, reason, 0, KEDGE_ST_REASON_MAX),
    POSITION,
};

static const struct kedgei_field site_enrolled_fields[] = {
    ID(site_enrolled, tenant),
    ID(site_enrolled, site),
    KEY(site_enrolled, tls_key),
    KEY(site_enrolled, statement_key),
    POSITION,
};

static const struct kedgei_field site_revoked_fields[] = {
    ID(site_revoked, tenant),
    ID(site_revoked, site),
    KEY(site_revoked, statement_key),
    TEXT(site_revoked, reason, 0, KEDGE_ST_REASON_MAX),
    POSITION,
};

static const struct kedgei_field witness_enrolled_fields[] = {
    ID(witness_enrolled, tenant),
    ID(witness_enrolled, witness),
    KEY(witness_enrolled, tls_key),
    KEY(witness_enrolled, cosign_key),
    TEXT(witness_enrolled, name, 1, KEDGE_ST_NAME_MAX),
    POSITION,
};

static const char *check_witness_enrolled(const struct kedge_statement *st)
{
    const struct kedge_st_witness_enrolled *w = &st->u.witness_enrolled;
    if (kedge_public_key_eq(&w->tls_key, &w->cosign_key)) {
        return "a cosign_key of its own";
    }
    return kedge_key_name_is_valid(kedge_view_str(w->name)) ? NULL : "name without white space and '+'";
}

static const struct kedgei_field witness_revoked_fields[] = {
    ID(witness_revoked, tenant),
    ID(witness_revoked, witness),
    KEY(witness_revoked, cosign_key),
    TEXT(witness_revoked, reason, 0, KEDGE_ST_REASON_MAX),
    POSITION,
};

static const struct kedgei_field job_joined_fields[] = {
    ID(job_joined, tenant),
    ID(job_joined, job),
    POSITION,
};

static const struct kedgei_field job_left_fields[] = {
    ID(job_left, tenant),
    ID(job_left, job),
    TEXT(job_left, reason, 0, KEDGE_ST_REASON_MAX),
    POSITION,
};

static const struct kedgei_field update_fields[] = {
    ID(update, tenant),
    ID(update, site),
    ID(update, job),
    ROUND(update),
    GROUP(update),
    ENUM(update, update_kind, train_names),
    HASH(update, base),
    U64(update, samples, 0, KEDGE_ST_COUNT_MAX),
    U64(update, steps, 0, KEDGE_ST_COUNT_MAX),
    U64(update, batch, 0, KEDGE_ST_COUNT_MAX),
    REAL_POS(update, learning_rate),
    {FIELD(update, energy_joules, REAL_POS), .lacks = true},
    ENUM(update, energy_quality, energy_names),
    REAL_POS(update, seconds),
    TEXT(update, engine, 1, KEDGE_ST_ENGINE_MAX),
    OPTIONAL(REAL_POS, update, loss),
    {FIELD(update, energy_how, TEXT), .max = KEDGE_ST_HOW_MAX, .optional = true},
    {FIELD(update, choice, TEXT), .max = KEDGE_ST_HOW_MAX, .optional = true},
    OPTIONAL(NAMES, update, classes),
    {FIELD(update, data_samples, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true},
};

/* Unknown is no number, and a zero in statements from before the field could be left out. */
static const char *check_update(const struct kedge_statement *st)
{
    const struct kedge_st_update *u = &st->u.update;
    const bool is_number = u->energy_joules >= 0, is_above = u->energy_joules > 0;
    return u->energy_quality == KEDGE_ENERGY_UNKNOWN
               ? (is_above ? "no energy_joules where they are unknown" : NULL)
               : (is_number ? NULL : "energy_joules where their quality is known");
}

static const struct kedgei_field evaluation_fields[] = {
    ID(evaluation, tenant),
    ID(evaluation, site),
    ID(evaluation, job),
    ROUND(evaluation),
    GROUP(evaluation),
    U64(evaluation, samples, 0, KEDGE_ST_COUNT_MAX),
    U64(evaluation, correct, 0, KEDGE_ST_COUNT_MAX),
    REAL(evaluation, loss),
    {FIELD(evaluation, personal_correct, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true},
    OPTIONAL(REAL_POS, evaluation, personal_loss),
    OPTIONAL(HASH, evaluation, trial),
    {FIELD(evaluation, trial_correct, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true},
    OPTIONAL(REAL_POS, evaluation, trial_loss),
};

static const char *check_evaluation(const struct kedge_statement *st)
{
    const struct kedge_st_evaluation *e = &st->u.evaluation;
    return e->correct <= e->samples && e->personal_correct <= e->samples && e->trial_correct <= e->samples
               ? NULL
               : "correct not above samples";
}

static const struct kedgei_field group_assigned_fields[] = {
    ID(group_assigned, tenant),
    ID(group_assigned, site),
    ID(group_assigned, job),
    ROUND(group_assigned),
    GROUP(group_assigned),
    ENUM(group_assigned, how, how_names),
    REAL(group_assigned, similarity),
    HASH(group_assigned, update),
};

const char *kedge_group_how_name(enum kedge_group_how how)
{
    return (unsigned)how <= KEDGE_GROUP_NEAREST ? how_names[how] : "unknown";
}

static const struct kedgei_field erased_fields[] = {
    ID(erased, tenant),
    HASH(erased, update),
    U64(erased, entry, 1, KEDGE_ST_COUNT_MAX),
    TEXT(erased, reason, 1, KEDGE_ST_REASON_MAX),
    TEXT(erased, authority, 1, KEDGE_ST_AUTHORITY_MAX),
    POSITION,
};

static const struct kedgei_field contact_fields[] = {
    ID(contact, tenant),
    ID_OR_EMPTY(contact, about),
    HASH(contact, commitment),
    POSITION,
};

static const struct kedgei_field site_labels_fields[] = {
    ID(site_labels, tenant),
    ID(site_labels, site),
    KEY(site_labels, statement_key),
    U32(site_labels, number, 1, KEDGE_ST_LABELS_MAX),
    TEXT(site_labels, labels, 0, KEDGE_ST_LABELS_TEXT_MAX),
    POSITION,
};

static_assert((int)KEDGE_ST_LABELS_TEXT_MAX == (int)KEDGE_LABELS_TEXT_MAX, "a whole set");

static const char *check_site_labels(const struct kedge_statement *st)
{
    return kedge_labels_are_valid(kedge_view_str(st->u.site_labels.labels))
               ? NULL
               : "labels like \"gpu=h100 zone=eu\": ascending, each key once, at most 16";
}

static const struct kedgei_field policy_fields[] = {
    TEXT(policy, deployment, 1, KEDGE_ST_NAME_MAX),
    KEY(policy, statement_key),
    KEY(policy, main_log_key),
};

static const struct kedgei_field role_granted_fields[] = {
    BOUND(role_granted),
    ENUM(role_granted, role, chain_role_names),
    ID(role_granted, name),
    KEY(role_granted, public_key),
};

static const struct kedgei_field role_revoked_fields[] = {
    BOUND(role_revoked),
    ENUM(role_revoked, role, chain_role_names),
    KEY(role_revoked, public_key),
    TEXT(role_revoked, reason, 0, KEDGE_ST_REASON_MAX),
};

static const struct kedgei_field statement_key_rotated_fields[] = {
    BOUND(statement_key_rotated),
    KEY(statement_key_rotated, old_key),
    KEY(statement_key_rotated, new_key),
    TEXT(statement_key_rotated, reason, 0, KEDGE_ST_REASON_MAX),
};

static const char *check_statement_key_rotated(const struct kedge_statement *st)
{
    const struct kedge_st_statement_key_rotated *r = &st->u.statement_key_rotated;
    return kedge_public_key_eq(&r->old_key, &r->new_key) ? "a new_key that is new" : NULL;
}

static const struct kedgei_field policy_changed_fields[] = {
    BOUND(policy_changed),
    U64(policy_changed, number, 1, KEDGE_ST_COUNT_MAX),
    U32(policy_changed, admin_quorum, 0, KEDGE_ST_QUORUM_MAX),
};

static const struct kedgei_field quota_set_fields[] = {
    HASH(quota_set, id),
    U64(quota_set, number, 1, KEDGE_ST_COUNT_MAX),
    ENUM(quota_set, standing, standing_names),
    U32(quota_set, sites, 0, KEDGE_ST_QUOTA_MAX),
    U32(quota_set, jobs, 0, KEDGE_ST_QUOTA_MAX),
    U32(quota_set, tokens, 0, KEDGE_ST_QUOTA_MAX),
    U32(quota_set, statements_per_s, 0, KEDGE_ST_QUOTA_MAX),
    U64(quota_set, bytes_per_s, 0, KEDGE_ST_QUOTA_BYTES_MAX),
    TEXT(quota_set, reason, 0, KEDGE_ST_REASON_MAX),
};

static const struct kedgei_field bare_hash_field[] = {{.name = "id", .type = KEDGEI_HASH}};

static const struct kedgei_field job_admission_fields[] = {
    ID(job_admission, job),
    U64(job_admission, main_size, 0, KEDGE_ST_COUNT_MAX),
    HASH(job_admission, queue),
    U32(job_admission, queued, 0, KEDGE_ST_PROMISES_MAX),
    U64(job_admission, round_ms, 1, KEDGE_ST_COUNT_MAX),
    ENUM(job_admission, round_from, source_names),
    U64(job_admission, deadline_ms, 1, KEDGE_ST_COUNT_MAX),
    {FIELD(job_admission, guard_ms, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true},
    {FIELD(job_admission, share, U32), .max = KEDGE_ST_SHARES, .optional = true},
    {FIELD(job_admission, too_large, U32), .max = 1, .optional = true},
    {FIELD(job_admission, earliest_ms, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true},
    U64(job_admission, time_ms, 1, KEDGE_ST_COUNT_MAX)};

static const struct kedgei_list job_opened_tenants = {
    .elem_size = sizeof(struct kedge_hash),
    .count_offset = AT(job_opened, tenant_count),
    .min = 1,
    .max = KEDGE_ST_TENANTS_MAX,
    .fields = bare_hash_field,
    .field_count = 1,
    .bare = true,
};

static const struct kedgei_field first_model_fields[] = {
    GROUP(first_model),
    HASH(first_model, model),
};

static const struct kedgei_list job_opened_first_models = {
    .elem_size = sizeof(struct kedge_st_first_model),
    .count_offset = AT(job_opened, first_model_count),
    .min = 1,
    .max = KEDGE_GROUPS_MAX - 1,
    .fields = first_model_fields,
    .field_count = COUNT(first_model_fields),
};

static const struct kedgei_field job_opened_fields[] = {
    ID(job_opened, job),
    U64(job_opened, parameters, 0, KEDGE_ST_COUNT_MAX),
    HASH(job_opened, initial_model),
    OPTIONAL(HASH, job_opened, base_model),
    LIST(job_opened, tenants, job_opened_tenants),
    {FIELD(job_opened, first_models, LIST), .list = &job_opened_first_models, .optional = true},
    {FIELD(job_opened, time_ms, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true},
};

static const struct kedgei_field round_tenant_fields[] = {
    HASH(round_tenant, id),
    U32(round_tenant, candidates, 0, KEDGE_SITES_MAX),
    U32(round_tenant, selected, 0, KEDGE_SITES_MAX),
    HASH(round_tenant, list),
};

static const struct kedgei_list round_opened_tenants = {
    .elem_size = sizeof(struct kedge_st_round_tenant),
    .count_offset = AT(round_opened, tenant_count),
    .max = KEDGE_ST_TENANTS_MAX,
    .fields = round_tenant_fields,
    .field_count = COUNT(round_tenant_fields),
};

static const struct kedgei_field round_opened_fields[] = {
    ID(round_opened, job),
    ROUND(round_opened),
    ENUM(round_opened, round_kind, train_names),
    U64_TEXT(round_opened, seed, UINT64_MAX),
    U64(round_opened, main_size, 0, KEDGE_ST_COUNT_MAX),
    HASH(round_opened, main_root),
    LIST(round_opened, tenants, round_opened_tenants),
    {FIELD(round_opened, draw, U32), .max = KEDGE_ST_DRAWS_MAX, .optional = true},
    {FIELD(round_opened, time_ms, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true},
};

static const struct kedgei_field aggregate_tenant_fields[] = {
    HASH(aggregate_tenant, id),
    U32(aggregate_tenant, accepted, 0, KEDGE_SITES_MAX),
    U64_TEXT(aggregate_tenant, weight_sum, KEDGE_ST_WEIGHT_SUM_MAX),
    U32(aggregate_tenant, refused, 0, KEDGE_SITES_MAX),
    HASH(aggregate_tenant, list),
};

static const struct kedgei_list aggregate_tenants = {
    .elem_size = sizeof(struct kedge_st_aggregate_tenant),
    .count_offset = AT(aggregate, tenant_count),
    .max = KEDGE_ST_TENANTS_MAX,
    .fields = aggregate_tenant_fields,
    .field_count = COUNT(aggregate_tenant_fields),
};

static const struct kedgei_field aggregate_fields[] = {
    ID(aggregate, job),
    ROUND(aggregate),
    GROUP(aggregate),
    TEXT(aggregate, rule, 1, KEDGE_ST_RULE_MAX),
    U32(aggregate, scale, 0, 62),
    U64_TEXT(aggregate, weight_sum, KEDGE_ST_WEIGHT_SUM_MAX),
    U32(aggregate, count, 0, KEDGE_SITES_MAX),
    HASH(aggregate, base),
    LIST(aggregate, tenants, aggregate_tenants),
};

static const struct kedgei_field step_group_fields[] = {
    GROUP(step_group),
    HASH(step_group, before),
    HASH(step_group, aggregate),
    HASH(step_group, after),
    HASH(step_group, direction),
    OPTIONAL(HASH, step_group, stepped),
    OPTIONAL(HASH, step_group, state_before),
    OPTIONAL(HASH, step_group, state_after),
    OPTIONAL(HASH, step_group, made),
    OPTIONAL(HASH, step_group, whole),
    {FIELD(step_group, split_of, U32), .max = KEDGE_GROUPS_MAX, .optional = true},
    {FIELD(step_group, merged_into, U32), .max = KEDGE_GROUPS_MAX, .optional = true},
    {FIELD(step_group, tried_with, U32), .max = KEDGE_GROUPS_MAX, .optional = true},
    OPTIONAL(HASH, step_group, trial),
};

static const struct kedgei_list step_groups = {
    .elem_size = sizeof(struct kedge_st_step_group),
    .count_offset = AT(step, group_count),
    .min = 1,
    .max = KEDGE_GROUPS_MAX,
    .fields = step_group_fields,
    .field_count = COUNT(step_group_fields),
};

static const struct kedgei_field step_fields[] = {
    ID(step, job),
    ROUND(step),
    TEXT(step, rule, 1, KEDGE_ST_RULE_MAX),
    REAL(step, eta),
    LIST(step, groups, step_groups),
    OPTIONAL(REAL_POS, step, drift),
    {FIELD(step, personal, U32), .max = 1, .optional = true},
    {FIELD(step, time_ms, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true},
    OPTIONAL(NAMES, step, classes),
    {FIELD(step, charged, U64_TEXT), .max = KEDGE_ST_CHARGE_MAX, .optional = true},
    {FIELD(step, spent, U64_TEXT), .max = KEDGE_ST_CHARGE_MAX, .optional = true},
};

static const struct kedgei_field round_tested_fields[] = {
    ID(round_tested, job),
    ROUND(round_tested),
    U32(round_tested, evaluations, 0, KEDGE_SITES_MAX),
    U64(round_tested, samples, 0, KEDGE_ST_COUNT_MAX),
    U64(round_tested, correct, 0, KEDGE_ST_COUNT_MAX),
    U32(round_tested, tier, 0, KEDGE_ST_TIERS_MAX),
    {FIELD(round_tested, held, U32), .max = KEDGE_ST_HOLD_MAX, .optional = true},
    {FIELD(round_tested, held_last, U32), .max = KEDGE_ST_HOLD_MAX, .optional = true},
    {FIELD(round_tested, time_ms, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true},
};

static const char *check_tested(const struct kedge_statement *st)
{
    return st->u.round_tested.correct <= st->u.round_tested.samples ? NULL : "no more correct than samples";
}

static const struct kedgei_field release_fields[] = {
    ID(release, job),
    ROUND(release),
    GROUP(release),
    FILE_NAME(release, file, KEDGE_ST_NAME_MAX),
    {FIELD(release, tier, U32), .max = KEDGE_ST_TIERS_MAX, .optional = true},
};

static const struct kedgei_field job_closed_fields[] = {
    ID(job_closed, job),
    U32(job_closed, rounds, 0, KEDGE_ROUNDS_MAX),
    ENUM(job_closed, outcome, outcome_names),
    TEXT(job_closed, reason, 0, KEDGE_ST_REASON_MAX),
    {FIELD(job_closed, time_ms, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true}};

static const struct kedgei_field closed_fields[] = {ID(closed, job), ROUND(closed), ID(closed, tenant),
                                                    ID(closed, site),
                                                    TEXT(closed, reason, 0, KEDGE_ST_CLOSED_REASON_MAX)};

static const struct kedgei_field refused_fields[] = {
    ID(refused, job),
    ROUND(refused),
    GROUP(refused),
    ENUM(refused, update_kind, train_names),
    ID(refused, tenant),
    ID(refused, site),
    HASH(refused, update),
    TEXT(refused, code, 1, KEDGE_ST_CODE_MAX),
    TEXT(refused, reason, 0, KEDGE_ST_REASON_MAX),
    U32(refused, listed, 0, 1),
    U64(refused, main_size, 0, KEDGE_ST_COUNT_MAX),
    HASH(refused, main_root),
    {FIELD(refused, kept_until_s, U64), .max = KEDGE_ST_COUNT_MAX, .optional = true}};

#define KIND(kind_name, about, table)                                                                     \
    .name = (kind_name), .predicate_type = "https://kedge.dev/" kind_name "/v1", .subject_name = (about), \
    .fields = (table), .field_count = COUNT(table)

bool kedge_statement_has_position(enum kedge_statement_kind kind)
{
    return (unsigned)kind <= KEDGE_ST_JOB_LEFT || kind == KEDGE_ST_ERASED || kind == KEDGE_ST_CONTACT
           || kind == KEDGE_ST_SITE_LABELS;
}

const struct kedgei_kind kedgei_kinds[KEDGE_ST_KIND_COUNT] = {
    [KEDGE_ST_KEY] = {KIND("key", "key", key_fields), .subject = KEDGEI_SUBJECT_KEY_HASH,
                      .subject_offset = AT(key, public_key)},
    [KEDGE_ST_KEY_ADDED] = {KIND("key-added", "key", key_added_fields), .subject = KEDGEI_SUBJECT_KEY_HASH,
                            .subject_offset = AT(key_added, public_key), .check = check_key_added,
                            .many_signers = true},
    [KEDGE_ST_KEY_ROTATED] = {KIND("key-rotated", "key", key_rotated_fields),
                              .subject = KEDGEI_SUBJECT_KEY_HASH, .subject_offset = AT(key_rotated, new_key),
                              .check = check_key_rotated, .many_signers = true},
    [KEDGE_ST_KEY_REVOKED] = {KIND("key-revoked", "key", key_revoked_fields),
                              .subject = KEDGEI_SUBJECT_KEY_HASH,
                              .subject_offset = AT(key_revoked, public_key), .check = check_key_revoked,
                              .many_signers = true},
    [KEDGE_ST_KEY_RECOVERED] = {KIND("key-recovered", "key", key_recovered_fields),
                                .subject = KEDGEI_SUBJECT_KEY_HASH,
                                .subject_offset = AT(key_recovered, public_key), .many_signers = true},
    [KEDGE_ST_SITE_ENROLLED] = {KIND("site-enrolled", "key", site_enrolled_fields),
                                .subject = KEDGEI_SUBJECT_KEY_HASH,
                                .subject_offset = AT(site_enrolled, statement_key)},
    [KEDGE_ST_SITE_REVOKED] = {KIND("site-revoked", "key", site_revoked_fields),
                               .subject = KEDGEI_SUBJECT_KEY_HASH,
                               .subject_offset = AT(site_revoked, statement_key)},
    [KEDGE_ST_WITNESS_ENROLLED] = {KIND("witness-enrolled", "key", witness_enrolled_fields),
                                   .subject = KEDGEI_SUBJECT_KEY_HASH,
                                   .subject_offset = AT(witness_enrolled, cosign_key),
                                   .check = check_witness_enrolled},
    [KEDGE_ST_WITNESS_REVOKED] = {KIND("witness-revoked", "key", witness_revoked_fields),
                                  .subject = KEDGEI_SUBJECT_KEY_HASH,
                                  .subject_offset = AT(witness_revoked, cosign_key)},
    [KEDGE_ST_JOB_JOINED] = {KIND("job-joined", "spec", job_joined_fields)},
    [KEDGE_ST_JOB_LEFT] = {KIND("job-left", "spec", job_left_fields)},
    [KEDGE_ST_UPDATE] = {KIND("update", "update", update_fields), .check = check_update},
    [KEDGE_ST_EVALUATION] = {KIND("evaluation", "model", evaluation_fields), .check = check_evaluation},
    [KEDGE_ST_GROUP_ASSIGNED] = {KIND("group-assigned", "update", group_assigned_fields),
                                 .subject = KEDGEI_SUBJECT_COPY,
                                 .subject_offset = AT(group_assigned, update)},
    [KEDGE_ST_ERASED] = {KIND("erased", "update", erased_fields), .subject = KEDGEI_SUBJECT_COPY,
                         .subject_offset = AT(erased, update)},
    [KEDGE_ST_CONTACT] = {KIND("contact", "contact", contact_fields), .subject = KEDGEI_SUBJECT_COPY,
                          .subject_offset = AT(contact, commitment)},
    [KEDGE_ST_SITE_LABELS] = {KIND("site-labels", "key", site_labels_fields),
                              .subject = KEDGEI_SUBJECT_KEY_HASH,
                              .subject_offset = AT(site_labels, statement_key), .check = check_site_labels},
    [KEDGE_ST_POLICY] = {KIND("policy", "key", policy_fields), .subject = KEDGEI_SUBJECT_KEY_HASH,
                         .subject_offset = AT(policy, main_log_key)},
    [KEDGE_ST_ROLE_GRANTED] = {KIND("role-granted", "key", role_granted_fields),
                               .subject = KEDGEI_SUBJECT_KEY_HASH,
                               .subject_offset = AT(role_granted, public_key), .many_signers = true},
    [KEDGE_ST_ROLE_REVOKED] = {KIND("role-revoked", "key", role_revoked_fields),
                               .subject = KEDGEI_SUBJECT_KEY_HASH,
                               .subject_offset = AT(role_revoked, public_key), .many_signers = true},
    [KEDGE_ST_STATEMENT_KEY_ROTATED] = {KIND("statement-key-rotated", "key", statement_key_rotated_fields),
                                        .subject = KEDGEI_SUBJECT_KEY_HASH,
                                        .subject_offset = AT(statement_key_rotated, new_key),
                                        .check = check_statement_key_rotated, .many_signers = true},
    [KEDGE_ST_POLICY_CHANGED] = {KIND("policy-changed", "key", policy_changed_fields),
                                 .subject = KEDGEI_SUBJECT_KEY_HASH,
                                 .subject_offset = AT(policy_changed, of.main_log_key), .many_signers = true},
    [KEDGE_ST_QUOTA_SET] = {KIND("quota-set", "tenant", quota_set_fields), .subject = KEDGEI_SUBJECT_COPY,
                            .subject_offset = AT(quota_set, id)},
    [KEDGE_ST_JOB_ADMITTED] = {KIND("job-admitted", "spec", job_admission_fields)},
    [KEDGE_ST_JOB_REFUSED] = {KIND("job-refused", "spec", job_admission_fields)},
    [KEDGE_ST_JOB_OPENED] = {KIND("job-opened", "spec", job_opened_fields)},
    [KEDGE_ST_ROUND_OPENED] = {KIND("round-opened", "spec", round_opened_fields)},
    [KEDGE_ST_AGGREGATE] = {KIND("aggregate", "model", aggregate_fields)},
    [KEDGE_ST_STEP] = {KIND("step", "model", step_fields), .subject = KEDGEI_SUBJECT_COPY,
                       .subject_offset = AT(step, groups[0].after)},
    [KEDGE_ST_ROUND_TESTED] = {KIND("round-tested", "spec", round_tested_fields), .check = check_tested},
    [KEDGE_ST_RELEASE] = {KIND("release", "model", release_fields)},
    [KEDGE_ST_JOB_CLOSED] = {KIND("job-closed", "spec", job_closed_fields)},
    [KEDGE_ST_CLOSED] = {KIND("closed", "envelope", closed_fields)},
    [KEDGE_ST_REFUSED] = {KIND("refused", "envelope", refused_fields)},
};
