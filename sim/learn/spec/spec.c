#include <stdio.h>
#include <string.h>

#include "common/base/try.h"
#include "sim/learn/spec/spec_json.h"
#include "sim/learn/spec/world.h"
#include "sim/partition/recipes.h"

static uint32_t edges_of(const struct kedge_job_spec *job)
{
    return job->tenant_count < KEDGE_GROUPS_USUAL ? job->tenant_count : KEDGE_GROUPS_USUAL;
}

void kedge_learn_spec_set_tenants(struct kedge_learn_spec *spec, uint32_t count)
{
    enum { LETTERS = 26 };
    struct kedge_job_spec *job = &spec->job;
    job->tenant_count = count;
    for (uint32_t i = 0; i < count; i++) {
        memset(&job->tenants[i], 0, sizeof job->tenants[i]);
        if (count <= LETTERS) {
            (void)snprintf(job->tenants[i].s, sizeof job->tenants[i].s, "org-%c", (char)('a' + i));
        } else {
            (void)snprintf(job->tenants[i].s, sizeof job->tenants[i].s, "org-%04u", i);
        }
    }
    job->groups = job->strategy && kedge_job_spec_grouped_by(job) == KEDGE_GROUPED_BY_PLACE ? edges_of(job)
                                                                                            : job->groups;
}

static int bad(struct kedge_diag *d, const char *text)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "%s", text);
}

/* What jobs are and simulations are not. */
static int check_job(const struct kedge_learn_spec *s, struct kedge_diag *d)
{
    const struct kedge_job_spec *job = &s->job;
    const bool in_rounds = s->through != KEDGE_LEARN_THROUGH_PROTOCOL;
    const struct {
        bool is_asked;
        const char *what;
    } table[] = {
        {job->is_external,
         "\"model\": \"external\": the sites of a world are parts of one data set in memory, "
         "which no owner's trainer reads; kedge sim --export writes files for such trainers"},
        {job->has_initial_model, "\"initial_model\": a simulation begins from its seed"},
        {job->learns_classes || job->classes_count > 0, "\"classes\": the world's data have theirs"},
        {job->standardize != KEDGE_STANDARDIZE_UNSAID,
         "\"standardize\": of a world it stands in \"data\", see docs/cli.md"},
        {job->by_charge, "\"selection\": the sites of a world have no batteries"},
        {job->batch_auto, "\"batch\": \"auto\": simulated sites have nothing to choose by; say a number"},
        {job->precision != KEDGE_PRECISION_F32, "\"precision\": simulated sites train by f32"},
        {in_rounds && job->shift == KEDGE_SHIFT_TEST_LOSS && !kedge_job_spec_tries(job),
         "\"shift\": \"loss\" is simulated where groups are tried only: \"trial_every\""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].is_asked) {
            return bad(d, table[i].what);
        }
    }
    return KEDGE_OK;
}

/* Numbers of the table: programs may have set others than the reader would. */
static int check_numbers(const struct kedge_learn_spec *s, struct kedge_diag *d)
{
    for (size_t i = 0; i < kedgei_world_key_count; i++) {
        const struct kedgei_world_key *row = &kedgei_world_keys[i];
        const void *field = (const char *)s + row->offset;
        bool is_real = row->kind == KEDGEI_WORLD_REAL;
        if ((!is_real && row->kind != KEDGEI_WORLD_WHOLE) || !kedgei_world_is_read(s, row)) {
            continue;
        }
        double v = is_real ? *(const double *)field : *(const uint32_t *)field;
        if (!(v >= row->least && v <= row->most)) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\" in \"world\": %g, expected %g to %g", row->key,
                                  v, row->least, row->most);
        }
    }
    return KEDGE_OK;
}

/* What sites there are, and what is asked of them. */
static int check_sites(const struct kedge_learn_spec *s, struct kedge_diag *d)
{
    bool natural = kedge_learn_spec_is_natural(s);
    if (s->job.sites_per_round > s->sites && !natural) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"sites_per_round\": %u of %u sites",
                              s->job.sites_per_round, s->sites);
    }
    if (s->partition == KEDGE_LEARN_FASHION && s->sites != KEDGE_FASHION_SITES) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"sites\": %u, but this partition has %d", s->sites,
                              KEDGE_FASHION_SITES);
    }
    if (s->job.tenant_count > s->sites && !natural) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"tenants\": %u of %u sites", s->job.tenant_count,
                              s->sites);
    }
    if (s->partition == KEDGE_LEARN_DIRICHLET && s->alpha < 1e-4) {
        return bad(d, "\"alpha\": expected 0.0001 or more");
    }
    if (s->attack != KEDGE_LEARN_ATTACK_NONE && s->attackers <= 0) {
        return bad(d, "\"attack\": nobody attacks; expected a \"share\" above 0");
    }
    if (s->partition == KEDGE_LEARN_CLIENTS && s->planted > 0) {
        return bad(d, "\"planted\": not with the partition clients, whose data nothing would read");
    }
    if (s->job.compression.kind != KEDGE_COMPACT_NONE && s->attack != KEDGE_LEARN_ATTACK_NONE) {
        return bad(d, "\"compression\": attacks are made of whole updates");
    }
    if (s->train_on != KEDGE_LEARN_ON_CPU && s->through == KEDGE_LEARN_THROUGH_PROTOCOL) {
        return bad(d, "\"train_on\": through the protocol each site trains by itself, on the processor");
    }
    if (s->job.strategy->local->has_head && (s->attack == KEDGE_LEARN_ATTACK_BACKDOOR || s->planted > 0)) {
        return bad(d,
                   "a backdoor and planted updates are not simulated with a strategy whose sites keep a part "
                   "of the model");
    }
    return KEDGE_OK;
}

/* Data that change by steps change by nothing else, and jobs know of no steps. */
static int check_steps(const struct kedge_learn_spec *s, struct kedge_diag *d)
{
    const uint32_t count = s->steps.count;
    if (s->standardize == KEDGE_LEARN_STANDARDIZE_FEDERATED && s->through != KEDGE_LEARN_THROUGH_ROUNDS) {
        return bad(d,
                   "\"standardize\": \"federated\" takes a job's first two rounds, which are not simulated; "
                   "expected \"local\" or \"none\", or \"through\": \"rounds\"");
    }
    if (count == 0) {
        return KEDGE_OK;
    }
    if (s->standardize != KEDGE_LEARN_AS_IT_IS || s->missing == KEDGE_CSV_MISSING_MEAN) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "\"steps\": not with %s: what a site scales and fills by would change within its data",
            s->missing == KEDGE_CSV_MISSING_MEAN ? "\"missing\": \"mean\"" : "\"standardize\"");
    }
    if (count > KEDGE_LEARN_STEPS_MAX || s->steps.at[count - 1] >= s->job.rounds) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"steps\": one begins in round %u, but there are %u rounds",
                              s->steps.at[count - 1], s->job.rounds);
    }
    if (s->shift != KEDGE_LEARN_SHIFT_NONE) {
        return bad(d, "\"steps\": not with a shift of the world: the data change by their files");
    }
    return s->through == KEDGE_LEARN_THROUGH_PROTOCOL ? bad(d, "\"steps\": not through the protocol")
                                                      : KEDGE_OK;
}

int kedge_learn_spec_check(const struct kedge_learn_spec *s, struct kedge_diag *reterr)
{
    KEDGE_TRY(check_job(s, reterr));
    KEDGE_TRY(check_numbers(s, reterr));
    KEDGE_TRY(check_sites(s, reterr));
    return check_steps(s, reterr);
}
