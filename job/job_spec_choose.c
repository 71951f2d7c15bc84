/* How many groups a job has, and what chooses the number. */
#include <jansson.h>

#include "job/job_spec_impl.h"
#include "strategy/server.h"

static bool is_oneshot(const struct kedge_job_spec *s)
{
    return kedge_grouping_row(s->strategy->grouping)->by_last_layer;
}

/* How many groups there will be nobody has to guess then: "groups" is only one more bound of how many there
 * may be. */
static void begin_as_one(const json_t *root, struct kedge_job_spec *s)
{
    if (s->choose == KEDGE_CHOOSE_ONE && !json_object_get(root, "groups")) {
        s->groups = 2;
    }
}

/* A strategy that begins with one group begins with many where nothing is tried (`trial_every` 0): else it
 * would stay one.
 *
 * FedClust takes the number of groups from distances, so "groups" is the most that there may be, and 16
 * by default. Only FlexCFL (kedgei_spec_lives) leaves a choice to the spec. */
int kedgei_spec_read_choose(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, "choose");
    uint32_t word = 0;
    s->choose = s->strategy->choose;
    if (is_oneshot(s) && !json_object_get(root, "groups")) {
        s->groups = KEDGE_GROUPS_USUAL;
    }
    if (kedgei_spec_lives(s) && !json_object_get(root, "regroup_every")) {
        s->regroup_every = (uint32_t)s->options.regroup;
    }
    if (!v) {
        s->choose =
            s->choose == KEDGE_CHOOSE_ONE && s->options.trial_every < 1 ? KEDGE_CHOOSE_MOST : s->choose;
        begin_as_one(root, s);
        return KEDGE_OK;
    }
    if (!kedgei_spec_lives(s)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"choose\": strategy \"%s\" leaves no number of groups to choose; "
                              "leave it out",
                              s->strategy->name);
    }
    int err = kedgei_spec_word(v, "choose", kedgei_words_choose, &word, d);
    s->choose = (enum kedge_choose)word;
    begin_as_one(root, s);
    if (!err && s->choose == KEDGE_CHOOSE_GAP && s->strategy->edc == KEDGE_EDC_MADC) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"choose\": \"gap\" has no meaning for the distances of "
                              "strategy \"%s\"; expected \"silhouette\" or \"fixed\"",
                              s->strategy->name);
    }
    return err;
}

/* How many groups a job may have, from its first to its last round. Where groups are cut later, or their
 * number is chosen by the updates, this is a range; models, statements and arrays are sized by its end. A
 * spec may name the two in either order. */
void kedge_job_spec_groups(const struct kedge_job_spec *spec, uint32_t *ret_least, uint32_t *ret_most)
{
    uint32_t most = (uint32_t)spec->options.most;
    *ret_least = *ret_most = spec->groups;
    if (kedge_job_spec_grouped_by(spec) == KEDGE_GROUPED_BY_CUT) {
        *ret_most = KEDGE_GROUPS_USUAL;
    } else if (is_oneshot(spec)) {
        *ret_least = 1;
    } else if (spec->choose != KEDGE_CHOOSE_FIXED || spec->options.silhouette < 1) {
        *ret_least = spec->groups < most ? spec->groups : most;
        *ret_most = spec->groups < most ? most : spec->groups;
    }
}

/* FedClust groups by the last layer alone. Its kernel and biases are the last values of the layout, so all
 * that is before them is left out of distances by its place. */
uint64_t kedge_job_spec_sign_first(const struct kedge_job_spec *spec, const struct kedge_layout *layout)
{
    if (!is_oneshot(spec)) {
        return 0;
    }
    const struct kedge_layer *last = &spec->model.layers[spec->model.count - 1]; /* its kernel and biases */
    return layout->values_count - ((uint64_t)last->in + 1) * last->out;
}

uint32_t kedge_job_spec_groups_most(const struct kedge_job_spec *spec)
{
    uint32_t least, most;
    kedge_job_spec_groups(spec, &least, &most);
    return most;
}

/* Groups are estimated again, joined or cut only where FlexCFL made them: FedClust groups once, and the
 * ablations are there to be compared as they are. */
bool kedgei_spec_lives(const struct kedge_job_spec *s)
{
    const enum kedge_grouping_kind kind = s->strategy->grouping; /* NONE: "grouping" beside any strategy */
    return s->grouping == KEDGE_GROUPING_FLEXCFL
           && (kind == KEDGE_GROUPING_KIND_FLEXCFL || kind == KEDGE_GROUPING_KIND_NONE);
}

/* Not after the last round: nobody would train with what it finds. */
bool kedge_job_spec_refreshes(const struct kedge_job_spec *spec, uint32_t round)
{
    const uint32_t every = (uint32_t)spec->options.refresh;
    return kedgei_spec_lives(spec) && every > 0 && round > 0 && round % every == 0 && round < spec->rounds;
}

bool kedge_job_spec_tries(const struct kedge_job_spec *spec)
{
    return kedgei_spec_lives(spec) && spec->options.trial_every > 0;
}

bool kedge_job_spec_asks_own(const struct kedge_job_spec *spec, uint32_t round)
{
    const uint32_t every = (uint32_t)spec->options.trial_every;
    return kedge_job_spec_tries(spec) && round > 0 && round < spec->rounds && round % every == 0;
}

bool kedge_job_spec_begins_as_one(const struct kedge_job_spec *spec)
{
    return kedge_job_spec_tries(spec) && spec->choose == KEDGE_CHOOSE_ONE;
}

/* A close that joined groups tries the new ones at once, so that several joinings do not take several times
 * `trial_every`. */
bool kedge_job_spec_tries_after(const struct kedge_job_spec *spec, uint32_t round, bool has_joined)
{
    return kedge_job_spec_asks_own(spec, round)
           || (kedge_job_spec_tries(spec) && round > 0 && round < spec->rounds && has_joined);
}

/* From the first round on, since what is found late is of little use. */
bool kedge_job_spec_cuts_after(const struct kedge_job_spec *spec, uint32_t round)
{
    return kedge_job_spec_begins_as_one(spec) && round < spec->rounds
           && (round == 1 || kedge_job_spec_asks_own(spec, round));
}

int kedgei_spec_check_trials(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    const double whole = (double)(uint32_t)s->options.trial_every;
    if (s->options.trial_every < whole || s->options.trial_every > whole) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"options\": \"trial_every\": expected a whole number of rounds");
    }
    if (!kedge_job_spec_tries(s)) {
        return s->choose != KEDGE_CHOOSE_ONE
                   ? KEDGE_OK
                   : kedge_diag_set(d, KEDGE_E_FORMAT,
                                    "job spec: \"choose\": \"one\": groups are cut by trials; expected "
                                    "\"options\": \"trial_every\" from 1");
    }
    if (s->choose == KEDGE_CHOOSE_ONE && kedge_server_states(s->server) > 0) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"choose\": \"one\": a part is tried by its updates alone, not by "
            "what a server's optimiser makes of them; leave out \"server\", or choose \"most\"");
    }
    if (s->evaluate_every == 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"evaluate_every\": groups become one where the sites' evaluations "
                              "say so; expected 1 or more");
    }
    if (s->mixing > 0 || s->regroup_every > 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"%s\": groups that are tried against each other are neither mixed "
                              "nor made anew; leave it out",
                              s->mixing > 0 ? "mixing" : "regroup_every");
    }
    return KEDGE_OK;
}

bool kedge_job_spec_drifted(double drift)
{
    return kedge_strategy_drifted(drift);
}

int kedgei_spec_check_refresh(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    const double whole = (double)(uint32_t)s->options.refresh;
    if (s->options.refresh < whole || s->options.refresh > whole) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"options\": \"refresh\": expected a whole number of rounds");
    }
    if (kedgei_spec_lives(s) && whole < 1 && (s->options.merge < 1 || s->options.silhouette < 1)) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"options\": groups are cut and joined when their directions are estimated "
            "again: expected \"refresh\" from 1, or neither \"merge\" nor \"silhouette\"");
    }
    if (s->options.merge < 1 && s->mixing > 0) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"mixing\": groups that may become one (\"merge\") are not mixed; leave out "
            "one of the two");
    }
    return KEDGE_OK;
}
