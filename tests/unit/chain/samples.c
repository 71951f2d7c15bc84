#include "tests/unit/chain/samples.h"

#include <stdio.h>
#include <string.h>

struct kedge_key_pair sample_pair(uint8_t byte)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    memset(seed.b, byte, sizeof seed.b);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

struct kedge_hash sample_hash(uint8_t byte)
{
    struct kedge_hash h;
    memset(h.b, byte, sizeof h.b);
    return h;
}

struct kedge_id sample_id(const char *text)
{
    struct kedge_id id;
    int err = kedge_id_from(kedge_view_str(text), &id);
    KEDGE_ASSERT(err == KEDGE_OK);
    return id;
}

struct kedge_st_position sample_position(void)
{
    return (struct kedge_st_position){sample_pair(3).public, 1000, 12, sample_hash(0x91)};
}

static void put_text(char *out, size_t out_len, const char *text)
{
    snprintf(out, out_len, "%s", text);
}

static void fill_update(struct kedge_st_update *u)
{
    *u = (struct kedge_st_update){
        .tenant = sample_id("north"),
        .site = sample_id("north-1"),
        .job = sample_id("digits"),
        .round = 3,
        .group = 1,
        .update_kind = KEDGE_TRAIN_TRAIN,
        .base = sample_hash(0x11),
        .samples = 120,
        .steps = 60,
        .batch = 10,
        .learning_rate = 0.1,
        .energy_joules = 2.5,
        .energy_quality = KEDGE_ENERGY_MODELLED,
        .seconds = 0.75,
    };
    put_text(u->engine, sizeof u->engine, "kedge-train/0.1.0 \"cpu\"");
}

/* What the coordinator's clock said when the sample's job opened. */
static const uint64_t SAMPLE_MS = UINT64_C(1790000000000);

static void fill_job_opened(struct kedge_st_job_opened *o, const struct kedge_id *job)
{
    o->job = *job;
    o->parameters = 650;
    o->initial_model = sample_hash(0x81);
    o->tenant_count = 2;
    o->tenants[0] = sample_hash(0x31);
    o->tenants[1] = sample_hash(0x32);
    o->time_ms = SAMPLE_MS;
}

static void fill_round_opened(struct kedge_st_round_opened *r)
{
    *r = (struct kedge_st_round_opened){
        .job = sample_id("digits"),
        .round = 3,
        .round_kind = KEDGE_TRAIN_PRETRAIN,
        .seed = UINT64_MAX,
        .main_size = 17,
        .main_root = sample_hash(0x22),
        .tenant_count = 2,
        .tenants = {{sample_hash(0x31), 4, 2, sample_hash(0x41)},
                    {sample_hash(0x32), 5, 3, sample_hash(0x42)}},
        .time_ms = SAMPLE_MS + 2000,
    };
}

static void fill_aggregate(struct kedge_st_aggregate *a)
{
    *a = (struct kedge_st_aggregate){
        .job = sample_id("digits"),
        .round = 3,
        .group = 1,
        .scale = 20,
        .weight_sum = KEDGE_ST_WEIGHT_SUM_MAX,
        .count = 5,
        .base = sample_hash(0x11),
        .tenant_count = 2,
        .tenants = {{sample_hash(0x31), 2, 240, 0, sample_hash(0x43)},
                    {sample_hash(0x32), 3, 9007199254740993, 1, sample_hash(0x44)}},
    };
    put_text(a->rule, sizeof a->rule, "fedavg/v1");
}

static void fill_step(struct kedge_st_step *s)
{
    *s = (struct kedge_st_step){
        .job = sample_id("digits"),
        .round = 3,
        .eta = 0.05,
        .group_count = 2,
        .groups = {{.group = 0,
                    .before = sample_hash(0x51),
                    .aggregate = sample_hash(0x52),
                    .after = sample_hash(0x53),
                    .direction = sample_hash(0)},
                   {.group = 1,
                    .before = sample_hash(0x61),
                    .aggregate = sample_hash(0x62),
                    .after = sample_hash(0x63),
                    .direction = sample_hash(0x64)}},
        .time_ms = SAMPLE_MS + 4500,
    };
    put_text(s->rule, sizeof s->rule, "flexcfl-mixing/v1");
}

/* Who may say what: keys, sites, witnesses, roles. */
static void fill_authority(enum kedge_statement_kind kind, struct kedge_statement *st)
{
    struct kedge_id tenant = sample_id("north"), site = sample_id("north-1");
    struct kedge_public_key key1 = sample_pair(1).public, key2 = sample_pair(2).public;
    struct kedge_st_main_bound of = {"fl.example.org", sample_pair(3).public, 100000};
    switch ((int)kind) { /* the other kinds are not this function's */
    case KEDGE_ST_KEY:
        st->u.key = (struct kedge_st_key){KEDGE_SCOPE_LOG, tenant, key1};
        break;
    case KEDGE_ST_KEY_ADDED:
        st->u.key_added = (struct kedge_st_key_added){tenant, KEDGE_ROLE_RECOVERY, key1};
        break;
    case KEDGE_ST_KEY_ROTATED:
        st->u.key_rotated = (struct kedge_st_key_rotated){tenant, KEDGE_ROLE_SITE, site, key1, key2};
        break;
    case KEDGE_ST_KEY_REVOKED:
        st->u.key_revoked = (struct kedge_st_key_revoked){tenant, KEDGE_ROLE_ADMIN, key2, "laptop stolen"};
        break;
    case KEDGE_ST_KEY_RECOVERED:
        st->u.key_recovered = (struct kedge_st_key_recovered){tenant, key2, "the safe was opened"};
        break;
    case KEDGE_ST_SITE_ENROLLED:
        st->u.site_enrolled = (struct kedge_st_site_enrolled){tenant, site, key1, key2};
        break;
    case KEDGE_ST_SITE_REVOKED:
        st->u.site_revoked = (struct kedge_st_site_revoked){tenant, site, key2, "laptop lost"};
        break;
    case KEDGE_ST_WITNESS_ENROLLED:
        st->u.witness_enrolled = (struct kedge_st_witness_enrolled){tenant, sample_id("north-eye"), key1,
                                                                    key2, "witness.north.example/1"};
        break;
    case KEDGE_ST_WITNESS_REVOKED:
        st->u.witness_revoked =
            (struct kedge_st_witness_revoked){tenant, sample_id("north-eye"), key2, "moved"};
        break;
    case KEDGE_ST_ROLE_GRANTED:
        st->u.role_granted =
            (struct kedge_st_role_granted){of, KEDGE_CHAIN_AUDITOR, sample_id("court"), key1};
        break;
    case KEDGE_ST_ROLE_REVOKED:
        st->u.role_revoked =
            (struct kedge_st_role_revoked){of, KEDGE_CHAIN_OPERATOR, key2, "left the company"};
        break;
    case KEDGE_ST_STATEMENT_KEY_ROTATED:
        st->u.statement_key_rotated = (struct kedge_st_statement_key_rotated){of, key1, key2, "twice a year"};
        break;
    case KEDGE_ST_POLICY_CHANGED:
        st->u.policy_changed = (struct kedge_st_policy_changed){of, 3, 2};
        break;
    default:
        break;
    }
}

static void fill_evaluation(struct kedge_st_evaluation *st)
{
    *st = (struct kedge_st_evaluation){.tenant = sample_id("north"),
                                       .site = sample_id("north-1"),
                                       .job = sample_id("digits"),
                                       .round = 3,
                                       .group = 1,
                                       .samples = 40,
                                       .correct = 37,
                                       .loss = 0.30000000000000004};
}

/* What the coordinator signs and no log has. */
static void fill_round_tested(struct kedge_st_round_tested *t)
{
    *t = (struct kedge_st_round_tested){.job = sample_id("digits"),
                                        .round = 6,
                                        .evaluations = 8,
                                        .samples = 2000,
                                        .correct = 1650,
                                        .held = 3,
                                        .held_last = 1,
                                        .tier = 1,
                                        .time_ms = SAMPLE_MS + 8000};
}

static void fill_admission(enum kedge_statement_kind kind, struct kedge_st_job_admission *a)
{
    const bool is_in = kind == KEDGE_ST_JOB_ADMITTED;
    *a = (struct kedge_st_job_admission){.job = sample_id("digits"),
                                         .main_size = 41,
                                         .queue = sample_hash(0x17),
                                         .queued = 2,
                                         .round_ms = 61250,
                                         .round_from = is_in ? KEDGE_PROMISE_DECLARED : KEDGE_PROMISE_MEDIAN,
                                         .deadline_ms = SAMPLE_MS + 3600000,
                                         .guard_ms = 86400000,
                                         .share = is_in ? 5 : 0,
                                         .earliest_ms = is_in ? 0 : SAMPLE_MS + 7200000,
                                         .time_ms = SAMPLE_MS};
}

/* What is said of a job before it begins, and near its end. */
static void fill_job(enum kedge_statement_kind kind, struct kedge_statement *st)
{
    const struct kedge_id job = sample_id("digits");
    if (kind == KEDGE_ST_JOB_ADMITTED || kind == KEDGE_ST_JOB_REFUSED) {
        fill_admission(kind, &st->u.job_admission);
    } else if (kind == KEDGE_ST_JOB_OPENED) {
        fill_job_opened(&st->u.job_opened, &job);
    } else if (kind == KEDGE_ST_ROUND_TESTED) {
        fill_round_tested(&st->u.round_tested);
    } else if (kind == KEDGE_ST_RELEASE) {
        st->u.release = (struct kedge_st_release){
            .job = job, .round = 10, .group = 1, .file = "digits-group-1.safetensors"};
    } else {
        st->u.job_closed = (struct kedge_st_job_closed){
            .job = job, .rounds = 10, .outcome = KEDGE_OUTCOME_COMPLETED, .time_ms = SAMPLE_MS + 9000};
    }
}

static void fill_answer(enum kedge_statement_kind kind, struct kedge_statement *st)
{
    struct kedge_st_refused *r = &st->u.refused;
    if (kind == KEDGE_ST_CLOSED) {
        st->u.closed = (struct kedge_st_closed){sample_id("digits"), 3, sample_id("north"),
                                                sample_id("north-1"), "ROUND_CLOSED"};
        return;
    }
    *r = (struct kedge_st_refused){.job = sample_id("digits"),
                                   .round = 3,
                                   .group = 1,
                                   .update_kind = KEDGE_TRAIN_TRAIN,
                                   .tenant = sample_id("north"),
                                   .site = sample_id("north-1"),
                                   .update = sample_hash(0x74),
                                   .listed = 1,
                                   .main_size = 17,
                                   .main_root = sample_hash(0x22),
                                   .kept_until_s = 1792592000};
    snprintf(r->code, sizeof r->code, "BOUND");
    snprintf(r->reason, sizeof r->reason, "value out of the job's bound");
}

/* What a tenant's admin says of a site. */
static void fill_about(enum kedge_statement_kind kind, struct kedge_statement *st)
{
    const struct kedge_id tenant = sample_id("north"), site = sample_id("north-1");
    if (kind == KEDGE_ST_CONTACT) {
        st->u.contact = (struct kedge_st_contact){tenant, site, sample_hash(0x73)};
    } else {
        st->u.site_labels =
            (struct kedge_st_site_labels){tenant, site, sample_pair(1).public, 2, "gpu=h100 zone=eu-1"};
    }
}

static void fill_membership(enum kedge_statement_kind kind, struct kedge_statement *st)
{
    const struct kedge_id tenant = sample_id("north"), job = sample_id("digits");
    if (kind == KEDGE_ST_JOB_JOINED) {
        st->u.job_joined = (struct kedge_st_job_joined){tenant, job};
    } else {
        st->u.job_left = (struct kedge_st_job_left){tenant, job, "the study is over"};
    }
}

static void fill_policy(enum kedge_statement_kind kind, struct kedge_statement *st)
{
    if (kind == KEDGE_ST_POLICY) {
        st->u.policy =
            (struct kedge_st_policy){"fl.example.org", sample_pair(1).public, sample_pair(2).public};
    } else {
        st->u.quota_set = (struct kedge_st_quota_set){
            sample_hash(0x74), 2, KEDGE_TENANT_SUSPENDED, 100, 8, 200, 50, 1 << 20, "unpaid"};
    }
}

void sample_statement(enum kedge_statement_kind kind, struct kedge_statement *st)
{
    struct kedge_id tenant = sample_id("north"), site = sample_id("north-1"), job = sample_id("digits");
    memset(st, 0, sizeof *st);
    *st = (struct kedge_statement){.kind = kind, .subject = sample_hash(0xab), .at = sample_position()};
    switch (kind) {
    case KEDGE_ST_KEY:
    case KEDGE_ST_KEY_ADDED:
    case KEDGE_ST_KEY_ROTATED:
    case KEDGE_ST_KEY_REVOKED:
    case KEDGE_ST_KEY_RECOVERED:
    case KEDGE_ST_SITE_ENROLLED:
    case KEDGE_ST_SITE_REVOKED:
    case KEDGE_ST_WITNESS_ENROLLED:
    case KEDGE_ST_WITNESS_REVOKED:
    case KEDGE_ST_ROLE_GRANTED:
    case KEDGE_ST_ROLE_REVOKED:
    case KEDGE_ST_STATEMENT_KEY_ROTATED:
    case KEDGE_ST_POLICY_CHANGED:
        fill_authority(kind, st);
        break;
    case KEDGE_ST_JOB_JOINED:
    case KEDGE_ST_JOB_LEFT:
        fill_membership(kind, st);
        break;
    case KEDGE_ST_UPDATE:
        fill_update(&st->u.update);
        break;
    case KEDGE_ST_EVALUATION:
        fill_evaluation(&st->u.evaluation);
        break;
    case KEDGE_ST_GROUP_ASSIGNED:
        st->u.group_assigned = (struct kedge_st_group_assigned){
            tenant, site, job, 0, 2, KEDGE_GROUP_NEWCOMER, -0.125, sample_hash(0x71)};
        break;
    case KEDGE_ST_ERASED:
        st->u.erased = (struct kedge_st_erased){tenant, sample_hash(0x72), 12, "no longer needed",
                                                "retention of 180 days"};
        break;
    case KEDGE_ST_CONTACT:
    case KEDGE_ST_SITE_LABELS:
        fill_about(kind, st);
        break;
    case KEDGE_ST_QUOTA_SET:
    case KEDGE_ST_POLICY:
        fill_policy(kind, st);
        break;
    case KEDGE_ST_ROUND_OPENED:
        fill_round_opened(&st->u.round_opened);
        break;
    case KEDGE_ST_AGGREGATE:
        fill_aggregate(&st->u.aggregate);
        break;
    case KEDGE_ST_STEP:
        fill_step(&st->u.step);
        break;
    case KEDGE_ST_JOB_ADMITTED:
    case KEDGE_ST_JOB_REFUSED:
    case KEDGE_ST_JOB_OPENED:
    case KEDGE_ST_ROUND_TESTED:
    case KEDGE_ST_RELEASE:
    case KEDGE_ST_JOB_CLOSED:
        fill_job(kind, st);
        break;
    case KEDGE_ST_CLOSED:
    case KEDGE_ST_REFUSED:
        fill_answer(kind, st);
        break;
    case KEDGE_ST_KIND_COUNT:
        break;
    }
    kedge_statement_derive_subject(st);
}
