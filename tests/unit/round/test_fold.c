/* Entries of a record folded by hand, a rule each: who is in which group by which update, what edges add up,
 * who is at work. Hashes are numbers. */
#include "round/fold.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES = 4 };

static struct kedge_job_spec spec;
static struct kedge_round_site sites[SITES];
static struct kedge_round_fold fold;
static struct kedge_statement st;

static struct kedge_hash hash(uint8_t number)
{
    return (struct kedge_hash){{number}};
}

static bool is(const struct kedge_hash *h, uint8_t number)
{
    const struct kedge_hash want = hash(number);
    return kedge_hash_eq(h, &want);
}

static void read_spec(const char *more)
{
    char text[600];
    struct kedge_diag d = {.text = ""};
    snprintf(text, sizeof text,
             "{\"name\":\"j\",\"tenants\":[\"a\",\"b\"],\"data\":\"x\",\"rounds\":9,"
             "\"model\":{\"preset\":\"mclr\",\"inputs\":1,\"classes\":2},%s}",
             more);
    ck_assert_msg(kedge_job_spec_parse(kedge_view_str(text), &spec, &d) == KEDGE_OK, "%s", d.text);
}

static int put(uint32_t site)
{
    return kedge_round_fold(&fold, &st, site);
}

/* Sites 0 and 1 are of the first tenant, 2 and 3 of the second. */
static void begin(const char *more)
{
    read_spec(more);
    for (uint32_t i = 0; i < SITES; i++) {
        sites[i] = kedge_round_site_first(&spec, i / 2);
    }
    kedge_round_fold_begin(&fold, &spec, sites, SITES);
    st = (struct kedge_statement){.kind = KEDGE_ST_JOB_OPENED};
    st.u.job_opened.initial_model = hash(1);
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
}

/* One list with these rows; row.site is the site's number. */
static int list(const struct kedge_input_row *rows, uint32_t count)
{
    struct kedge_input_row copy[SITES];
    uint32_t of[SITES];
    struct kedge_input_list l = {.rows = copy, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = rows[i];
        of[i] = (uint32_t)strtoul(rows[i].site.s, NULL, 10);
    }
    return kedge_round_fold_list(&fold, &st, &l, of);
}

static void open_round(uint32_t round, enum kedge_train_kind kind)
{
    const struct kedge_input_row rows[SITES] = {{.site = {"0"}, .use = KEDGE_USE_SELECTED},
                                                {.site = {"1"}, .use = KEDGE_USE_SELECTED},
                                                {.site = {"2"}, .use = KEDGE_USE_SELECTED},
                                                {.site = {"3"}, .use = KEDGE_USE_CANDIDATE}};
    st = (struct kedge_statement){.kind = KEDGE_ST_ROUND_OPENED};
    st.u.round_opened.round = round;
    st.u.round_opened.round_kind = kind;
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert_int_eq(list(rows, SITES), KEDGE_OK);
    ck_assert(fold.is_open && fold.round == round && sites[0].task == round
              && sites[3].task == KEDGE_ROUND_NONE);
    ck_assert(sites[3].is_candidate);
}

static void aggregate(const char *rule, const struct kedge_input_row *rows, uint32_t count)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_AGGREGATE};
    snprintf(st.u.aggregate.rule, sizeof st.u.aggregate.rule, "%s", rule);
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert_int_eq(list(rows, count), KEDGE_OK);
}

/* A step whose groups have models 10 + g and directions 20 + g (made: 30 + g), for the caller to change. */
static struct kedge_st_step *step(uint32_t round, uint32_t groups)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_STEP};
    st.u.step.round = round;
    st.u.step.group_count = groups;
    for (uint32_t g = 0; g < groups; g++) {
        st.u.step.groups[g].group = g;
        st.u.step.groups[g].after = hash((uint8_t)(10 + g));
        st.u.step.groups[g].direction = hash((uint8_t)(20 + g));
        st.u.step.groups[g].made = hash((uint8_t)(30 + g));
    }
    return &st.u.step;
}

static void assign(uint32_t site, uint32_t round, uint32_t group, enum kedge_group_how how, uint8_t update)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_GROUP_ASSIGNED};
    st.u.group_assigned =
        (struct kedge_st_group_assigned){.round = round, .group = group, .how = how, .update = hash(update)};
    ck_assert_int_eq(put(site), KEDGE_OK);
}

static void update(uint32_t site, uint32_t round, uint32_t group, uint64_t samples, uint8_t digest,
                   uint8_t base)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_UPDATE, .subject = hash(digest)};
    st.u.update = (struct kedge_st_update){.round = round,
                                           .group = group,
                                           .update_kind = KEDGE_TRAIN_TRAIN,
                                           .samples = samples,
                                           .base = hash(base)};
    ck_assert_int_eq(put(site), KEDGE_OK);
}

#define GROUPED "\"strategy\":\"flexcfl\",\"groups\":2,\"regroup_every\":2"
#define LIVING GROUPED ",\"options\":{\"refresh\":1,\"silhouette\":0.1,\"merge\":0.1,\"most\":4}"
#define ONE                                                              \
    "\"strategy\":\"flexcfl-adaptive\",\"groups\":2,\"choose\":\"one\"," \
    "\"options\":{\"trial_every\":1,\"most\":4}"
#define LEAF .leaf_hash = {{9}}

/* Round 0: two sites get groups, one sent nothing that points anywhere. */
static void cold_start(const char *more)
{
    const struct kedge_input_row rows[] = {
        {.site = {"0"}, .use = KEDGE_USE_GROUPED, .group = 0, .update = hash(40), LEAF},
        {.site = {"1"}, .use = KEDGE_USE_GROUPED, .group = 1, .update = hash(41), LEAF},
        {.site = {"2"}, .use = KEDGE_USE_REFUSED, .group = 0, .update = hash(42), LEAF}};
    begin(more);
    open_round(0, KEDGE_TRAIN_PRETRAIN);
    aggregate("flexcfl-cold-start/v2", rows, 3);
    step(0, 2);
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(sites[1].group == 1 && sites[1].is_unstated && is(&sites[1].by, 41));
    ck_assert(sites[1].since == KEDGE_ROUND_NONE && !sites[1].is_undecided);
    ck_assert(sites[2].group == KEDGE_ROUND_NONE && !sites[2].is_unstated);
    ck_assert(sites[0].task == KEDGE_ROUND_NONE && !sites[3].is_candidate && !fold.is_open);
    assign(0, 0, 0, KEDGE_GROUP_COLD_START, 40);
    assign(1, 0, 1, KEDGE_GROUP_COLD_START, 41);
    ck_assert(!sites[1].is_unstated && sites[1].since == 0);
    ck_assert(fold.state.groups == 2 && fold.state.round == 0 && fold.state.kind == KEDGE_TASK_PRETRAIN);
    ck_assert(is(&fold.state.group[1].model, 11) && is(&fold.state.group[1].direction, 21));
    ck_assert(kedge_hash_is_zero(&fold.state.group[1].direction_before));
}

START_TEST(groups_are_given_and_made_anew)
{
    const struct kedge_input_row rows[] = {
        {.site = {"0"}, .use = KEDGE_USE_GROUPED, .group = 1, .update = hash(50), LEAF},
        {.site = {"2"}, .use = KEDGE_USE_REFUSED, .group = 1, .update = hash(52), LEAF}};
    cold_start(GROUPED);
    open_round(1, KEDGE_TRAIN_TRAIN);
    assign(2, 1, 1, KEDGE_GROUP_NEWCOMER, 43);
    step(1, 2)->drift = 0.9;
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(fold.state.regroup && !sites[0].is_undecided);
    open_round(2, KEDGE_TRAIN_PRETRAIN);
    aggregate(KEDGE_RULE_RECLUSTER, rows, 2);
    step(2, 2)->groups[1].direction = hash(77);
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(sites[0].group == 1 && sites[0].is_unstated && is(&sites[0].by, 50));
    ck_assert(sites[2].group == 0 && sites[2].is_unstated && is(&sites[2].by, 52));  /* it had one: group 0 */
    ck_assert(sites[1].is_undecided && sites[1].group == 1 && is(&sites[1].by, 41)); /* in no list */
    ck_assert(sites[3].group == KEDGE_ROUND_NONE && !sites[3].is_undecided);
    ck_assert(is(&fold.state.group[1].direction, 77) && is(&fold.state.group[1].direction_before, 21));
    ck_assert(!fold.state.regroup);
    assign(1, 2, 0, KEDGE_GROUP_RECLUSTER, 41);
    ck_assert(!sites[1].is_undecided && sites[1].group == 0 && sites[1].since == 2);
}
END_TEST

START_TEST(groups_stay_where_too_few_come)
{
    const struct kedge_input_row rows[] = {
        {.site = {"1"}, .use = KEDGE_USE_REFUSED, .update = hash(51), LEAF}};
    cold_start(GROUPED);
    open_round(2, KEDGE_TRAIN_PRETRAIN);
    aggregate(KEDGE_RULE_KEPT, rows, 1);
    snprintf(step(2, 2)->rule, sizeof st.u.step.rule, "%s", KEDGE_RULE_KEPT);
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(sites[1].group == 1 && is(&sites[1].by, 41) && !sites[1].is_unstated && !sites[1].is_undecided);
}
END_TEST

START_TEST(groups_are_joined_and_cut)
{
    cold_start(LIVING);
    open_round(1, KEDGE_TRAIN_TRAIN);
    step(1, 2)->groups[1].merged_into = 1;
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(sites[1].group == 0 && sites[1].is_unstated && !sites[1].is_undecided && !sites[0].is_unstated);
    ck_assert(is(&fold.state.group[1].direction, 20)); /* found where the other is */
    assign(1, 1, 0, KEDGE_GROUP_MERGE, 41);
    open_round(2, KEDGE_TRAIN_TRAIN);
    step(2, 3)->groups[2].split_of = 1;
    st.u.step.groups[1].merged_into = 1;
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(sites[0].is_undecided && sites[1].is_undecided && sites[0].group == 0);
    ck_assert(!sites[2].is_undecided && fold.state.groups == 3);
    assign(1, 2, 2, KEDGE_GROUP_SPLIT, 41);
    open_round(3, KEDGE_TRAIN_TRAIN);
    ck_assert(!sites[0].is_undecided && sites[0].group == 0 && sites[0].since == 0); /* it has stayed */
}
END_TEST

/* Groups that began as one: one close takes a cut back and cuts another group. A number that it frees is used
 * by a later one. */
START_TEST(one_close_joins_and_cuts)
{
    cold_start(ONE);
    open_round(1, KEDGE_TRAIN_TRAIN);
    step(1, 3)->groups[2].split_of = 1;
    st.u.step.groups[0].tried_with = 3;
    st.u.step.groups[2].tried_with = 1;
    st.u.step.groups[0].trial = hash(70);
    st.u.step.groups[2].trial = hash(72);
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(sites[0].is_undecided && !sites[1].is_undecided);
    ck_assert(fold.state.group[2].tried_with == 1 && is(&fold.state.group[2].trial, 72));
    ck_assert(fold.state.group[0].tried_with == 3 && is(&fold.state.group[0].trial, 70));
    assign(0, 1, 2, KEDGE_GROUP_SPLIT, 40);
    open_round(2, KEDGE_TRAIN_TRAIN);
    step(2, 4)->groups[2].merged_into = 1;
    st.u.step.groups[3].split_of = 2;
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(sites[0].group == 0 && sites[0].is_unstated && !sites[0].is_undecided);
    ck_assert(sites[1].group == 1 && !sites[1].is_unstated && sites[1].is_undecided);
    ck_assert(is(&fold.state.group[2].direction, 20) && fold.state.group[2].merged_into == 1);
    ck_assert(fold.state.group[0].tried_with == 0 && kedge_hash_is_zero(&fold.state.group[0].trial));
    assign(0, 2, 0, KEDGE_GROUP_MERGE, 40);
    assign(1, 2, 3, KEDGE_GROUP_SPLIT, 41);
    ck_assert(sites[0].since == 2 && !sites[0].is_unstated && sites[1].group == 3 && !sites[1].is_undecided);
    open_round(3, KEDGE_TRAIN_TRAIN);
    step(3, 4)->groups[2].split_of = 1;
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(fold.state.group[2].merged_into == 0 && is(&fold.state.group[2].direction, 22));
    ck_assert(sites[0].is_undecided && sites[0].group == 0 && !sites[1].is_undecided);
    assign(0, 3, 2, KEDGE_GROUP_SPLIT, 40);
    ck_assert(sites[0].group == 2 && sites[0].since == 3);
}
END_TEST

/* CFL: the list says who goes; nobody else is moved. */
START_TEST(groups_part_by_lists)
{
    const struct kedge_input_row rows[] = {
        {.site = {"0"}, .use = KEDGE_USE_AGGREGATED, .update = hash(60), .weight = 1, LEAF},
        {.site = {"1"}, .use = KEDGE_USE_AGGREGATED, .update = hash(61), .weight = 1, .to = 1, LEAF}};
    begin("\"strategy\":\"cfl\"");
    ck_assert(sites[0].group == 0 && sites[0].since == KEDGE_ROUND_NONE);
    open_round(1, KEDGE_TRAIN_TRAIN);
    aggregate("fedavg/v1", rows, 2);
    step(1, 2)->groups[1].split_of = 1;
    st.u.step.groups[0].direction = st.u.step.groups[1].direction = hash(0);
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(sites[0].group == 0 && !sites[0].is_unstated && !sites[0].is_undecided);
    ck_assert(sites[1].group == 1 && sites[1].is_unstated && is(&sites[1].by, 61));
}
END_TEST

/* Edges: samples, not capped weights, until they meet. */
START_TEST(edges_add_up)
{
    const struct kedge_input_row rows[] = {
        {.site = {"0"}, .use = KEDGE_USE_AGGREGATED, .update = hash(60), .weight = 7, LEAF},
        {.site = {"1"}, .use = KEDGE_USE_AGGREGATED, .update = hash(61), .weight = 0, LEAF},
        {.site = {"2"}, .use = KEDGE_USE_AGGREGATED, .group = 1, .update = hash(62), .weight = 1, LEAF}};
    begin("\"strategy\":\"hierarchical\",\"options\":{\"edge_rounds\":3}");
    ck_assert(sites[1].group == 0 && sites[2].group == 1);
    for (uint32_t round = 1; round <= 3; round++) {
        open_round(round, KEDGE_TRAIN_TRAIN);
        update(0, round, 0, 30, 60, 1);
        update(1, round, 0, 50, 61, 1); /* left out by the rule: it weighs nothing */
        update(2, round, 1, 20, 62, 1);
        aggregate("fedavg/v1", rows, 3);
        step(round, 2);
        ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
        ck_assert_uint_eq(fold.state.group[0].weight_since_meeting, round < 3 ? round * 30 : 0);
        ck_assert_uint_eq(fold.state.group[1].weight_since_meeting, round < 3 ? round * 20 : 0);
    }
    ck_assert_uint_eq(kedge_round_fold_first(&spec, 5), 3);
    ck_assert_uint_eq(kedge_round_fold_first(&spec, 3), 0);
}
END_TEST

/* What sites trained, by the statement of an open round or by the list of a closed one. */
START_TEST(groups_follow_from_what_was_trained)
{
    const struct kedge_input_row rows[] = {
        {.site = {"0"}, .use = KEDGE_USE_AGGREGATED, .group = 1, .update = hash(60), .weight = 1, LEAF}};
    begin("\"strategy\":\"ifca\",\"groups\":2");
    ck_assert_uint_eq(sites[0].group, KEDGE_ROUND_NONE);
    open_round(1, KEDGE_TRAIN_TRAIN);
    update(2, 1, 1, 5, 62, 1);
    ck_assert(sites[2].group == 1 && is(&sites[2].by, 62));
    aggregate("ifca/v1", rows, 1);
    ck_assert(sites[0].group == 1 && is(&sites[0].by, 60) && kedge_hash_is_zero(&sites[0].last_update));
    ck_assert_uint_eq(kedge_round_fold_first(&spec, 8), 0);

    begin("\"strategy\":\"fesem\",\"groups\":2");
    fold.state.group[1].model = hash(5);
    open_round(1, KEDGE_TRAIN_TRAIN);
    assign(0, 1, 1, KEDGE_GROUP_NEAREST, 0);
    update(2, 1, 0, 5, 62, 1);
    ck_assert(is(&sites[2].last_update, 62) && is(&sites[2].last_base, 1));
    aggregate("fesem/v1", rows, 1);
    ck_assert(is(&sites[0].last_update, 60) && is(&sites[0].last_base, 5)); /* before the step */
    ck_assert(sites[0].group == 1 && sites[0].since == 1);
}
END_TEST

/* FedBuff: a site that stands in no list of the close goes on. */
START_TEST(sites_stay_at_work)
{
    const struct kedge_input_row rows[] = {{.site = {"0"}, .use = KEDGE_USE_AGGREGATED, .weight = 1, LEAF},
                                           {.site = {"1"}, .use = KEDGE_USE_REFUSED, .update = hash(61)}};
    const struct kedge_input_row next[] = {{.site = {"0"}, .use = KEDGE_USE_SELECTED},
                                           {.site = {"2"}, .use = KEDGE_USE_AWAY, .round = 1}};
    begin("\"strategy\":\"fedbuff\"");
    open_round(1, KEDGE_TRAIN_TRAIN);
    aggregate("fedbuff/v1", rows, 2);
    step(1, 1);
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert(sites[0].task == KEDGE_ROUND_NONE && sites[1].task == KEDGE_ROUND_NONE && sites[2].task == 1);
    st = (struct kedge_statement){.kind = KEDGE_ST_ROUND_OPENED};
    st.u.round_opened.round = 2;
    st.u.round_opened.round_kind = KEDGE_TRAIN_TRAIN;
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
    ck_assert_int_eq(list(next, 2), KEDGE_OK);
    ck_assert(sites[2].task == 1 && sites[2].is_away && !sites[2].is_candidate && sites[0].task == 2);
}
END_TEST

/* A group that the job cannot have ends the fold before an array does. */
START_TEST(what_no_job_has)
{
    const struct kedge_input_row to = {.site = {"0"}, .use = KEDGE_USE_AGGREGATED, .to = KEDGE_GROUPS_MAX};
    const struct kedge_input_row of = {.site = {"9"}, .use = KEDGE_USE_AGGREGATED, .group = 2};
    cold_start(GROUPED);
    open_round(1, KEDGE_TRAIN_TRAIN);
    aggregate("fedavg/v1", &to, 0);
    ck_assert_int_eq(list(&to, 1), KEDGE_E_CORRUPT);
    ck_assert_int_eq(list(&of, 1), KEDGE_E_CORRUPT);
    step(1, 2)->groups[1].merged_into = 3;
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_E_CORRUPT);
    step(1, 2)->groups[1].split_of = 3;
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_E_CORRUPT);
    step(1, 2)->groups[1].group = 0;
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_E_CORRUPT);
    step(1, 3);
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_E_CORRUPT);
    st = (struct kedge_statement){.kind = KEDGE_ST_GROUP_ASSIGNED};
    st.u.group_assigned.group = 2;
    ck_assert_int_eq(put(0), KEDGE_E_CORRUPT);
    ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK); /* of nobody */
    st = (struct kedge_statement){.kind = KEDGE_ST_UPDATE};
    st.u.update.group = 2;
    ck_assert_int_eq(put(0), KEDGE_E_CORRUPT);
    ck_assert(sites[0].group == 0 && fold.state.round == 0);
}
END_TEST

static struct kedge_hash digest(void)
{
    struct kedge_hash ret;
    ck_assert_int_eq(kedge_round_state_digest(&fold.state, sites, SITES, &ret), KEDGE_OK);
    return ret;
}

/* Every byte of what counts is in the digest: those of the state in use, and all of a site. */
START_TEST(digest_is_of_all)
{
    cold_start(GROUPED);
    const struct kedge_hash before = digest();
    const size_t end =
        offsetof(struct kedge_round_group, merged_into) + sizeof fold.state.group[0].merged_into;
    for (size_t i = 0; i < 2 * sizeof fold.state.group[0]; i++) {
        if (i % sizeof fold.state.group[0] >= end) {
            continue; /* padding */
        }
        uint8_t *byte = (uint8_t *)fold.state.group + i;
        *byte ^= 1;
        const struct kedge_hash now = digest();
        ck_assert_msg(!kedge_hash_eq(&now, &before), "byte %zu of the groups", i);
        *byte ^= 1;
    }
    sites[0].is_away = true;
    struct kedge_hash now = digest();
    ck_assert(!kedge_hash_eq(&now, &before));
    sites[0].is_away = false;
    sites[0].last_base = hash(3);
    now = digest();
    ck_assert(!kedge_hash_eq(&now, &before));
    sites[0].last_base = hash(0);
    fold.state.regroup = true;
    now = digest();
    ck_assert(!kedge_hash_eq(&now, &before));
    fold.state.regroup = false;
    sites[3].group = 1; /* of which the record says nothing */
    now = digest();
    ck_assert(kedge_hash_eq(&now, &before));
}
END_TEST

/* A budget's book: what the last rounds were charged, and what is spent as the last step says. */
START_TEST(book_of_a_budget)
{
    cold_start(GROUPED);
    const struct kedge_hash before = digest();
    ck_assert_uint_eq(fold.state.book.spent, 0);
    for (uint32_t round = 1; round <= KEDGE_SCHEDULE_COSTS + 2; round++) {
        open_round(round, KEDGE_TRAIN_TRAIN);
        step(round, 2)->groups[0].group = 0;
        st.u.step.charged = 10 * round;
        st.u.step.spent = 1000 + round;
        ck_assert_int_eq(put(KEDGE_ROUND_NONE), KEDGE_OK);
        ck_assert_uint_eq(fold.state.book.spent, 1000 + round);
    }
    for (uint32_t i = 0; i < KEDGE_SCHEDULE_COSTS; i++) {
        ck_assert_uint_eq(fold.state.book.costs[i], 10 * (KEDGE_SCHEDULE_COSTS + 2 - i));
    }
    const struct kedge_hash now = digest();
    fold.state.book.costs[KEDGE_SCHEDULE_COSTS - 1]++;
    const struct kedge_hash other = digest();
    ck_assert(!kedge_hash_eq(&now, &before) && !kedge_hash_eq(&now, &other));
}
END_TEST

/* A fold begins where all that counts is still to come. */
START_TEST(first_round_with_a_budget)
{
    struct kedge_job_spec own = {.strategy = kedge_strategy_find("fedavg"), .groups = 1};
    ck_assert_uint_eq(kedge_round_fold_first(&own, 30), 29);
    own.budget = (struct kedge_job_budget){.unit = KEDGE_JOB_BUDGET_JOULES, .most = 5, .per_joule = 1};
    ck_assert_uint_eq(kedge_round_fold_first(&own, 30), 30 - KEDGE_SCHEDULE_COSTS);
    ck_assert_uint_eq(kedge_round_fold_first(&own, KEDGE_SCHEDULE_COSTS), 0);
    ck_assert_uint_eq(kedge_round_fold_first(&own, 1), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fold");
    TCase *tc = tcase_create("rounds");
    tcase_add_test(tc, groups_are_given_and_made_anew);
    tcase_add_test(tc, groups_stay_where_too_few_come);
    tcase_add_test(tc, groups_are_joined_and_cut);
    tcase_add_test(tc, one_close_joins_and_cuts);
    tcase_add_test(tc, groups_part_by_lists);
    tcase_add_test(tc, edges_add_up);
    tcase_add_test(tc, groups_follow_from_what_was_trained);
    tcase_add_test(tc, sites_stay_at_work);
    tcase_add_test(tc, what_no_job_has);
    tcase_add_test(tc, digest_is_of_all);
    tcase_add_test(tc, book_of_a_budget);
    tcase_add_test(tc, first_round_with_a_budget);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
