/* The job spec: defaults, what each key takes, what is refused and how it is named. */
#include "job/job_spec.h"
#include "job/keys.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/share_cap.h"

#define HEAD                                                                                             \
    "{\"name\":\"j\",\"tenants\":[\"org-a\",\"org-b\",\"org-c\"],\"data\":\"d\",\"rounds\":3,\"model\":" \
    "{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}"

#define CONTROLLED(sites) HEAD ",\"strategy\":\"scaffold\",\"sites_per_round\":" #sites
#define ROOTED(site) HEAD ",\"rule\":\"root-trust\",\"sites_per_round\":9,\"root_site\":" site "}"

#define COMPACT(what) HEAD ",\"compression\":{" what "}}"
#define SPARSE "\"compression\":{\"kind\":\"topk\",\"share\":\"0.01\"}"
#define DENSE "\"compression\":{\"kind\":\"int8\"}"

#define BUFFERED HEAD ",\"strategy\":\"fedbuff\""

#define EDGES HEAD ",\"strategy\":\"hierarchical\""

static int parse(const char *text, struct kedge_job_spec *ret, struct kedge_diag *d)
{
    *d = (struct kedge_diag){.text = ""};
    return kedge_job_spec_parse(kedge_view_str(text), ret, d);
}

START_TEST(test_defaults)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_int_eq(parse(HEAD "}", &s, &d), KEDGE_OK);
    ck_assert_uint_eq(s.seed, 1);
    ck_assert_uint_eq(s.sites_per_round, 0);
    ck_assert(!s.by_charge);
    ck_assert_uint_eq(s.batch, 10);
    ck_assert_uint_eq(s.groups, 1);
    ck_assert_uint_eq(s.scale, 20);
    ck_assert_uint_eq(s.weight_max, 1000000);
    ck_assert_uint_eq(s.tenant_share_max, KEDGE_SHARE_ONE);
    ck_assert_uint_eq(s.round_timeout_s, 3600);
    ck_assert_uint_eq(s.enrol_within_s, 86400);
    ck_assert_str_eq(s.strategy->name, "fedavg");
    ck_assert_str_eq(s.rule->name, "mean");
    ck_assert_int_eq(s.server, KEDGE_SERVER_NONE);
    ck_assert_str_eq(kedge_job_spec_step_rule(&s, true, false).s, "flexcfl-cold-start/v2");
    ck_assert_str_eq(kedge_job_spec_step_rule(&s, false, false).s, "identity/v1");
    ck_assert_str_eq(kedge_job_spec_step_rule(&s, false, true).s, "flexcfl-mixing/v1");
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, false, s.rule).s, "fedavg/v1");
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, true, s.rule).s, "flexcfl-cold-start/v2");
}
END_TEST

static const struct {
    const char *text;
    uint32_t share; /* 0: refused */
} shares[] = {
    {"\"1\"", 1000000},
    {"\"1.0\"", 1000000},
    {"\"1.000000\"", 1000000},
    {"\"0.5\"", 500000},
    {"\"0.333334\"", 333334},
    {"\"0.999999\"", 999999},
    {"\"0.333333\"", 0}, /* three tenants: not a whole */
    {"\"0.000001\"", 0},
    {"\"0\"", 0},
    {"\"0.0\"", 0},
    {"\"1.000001\"", 0},
    {"\"2\"", 0},
    {"\"0.5000000\"", 0},
    {"\"0.\"", 0},
    {"\".5\"", 0},
    {"\"00.5\"", 0},
    {"\"-0.5\"", 0},
    {"\"+0.5\"", 0},
    {"\"5e-1\"", 0},
    {"\" 0.5\"", 0},
    {"\"0,5\"", 0},
    {"\"0.5.\"", 0},
    {"\"\"", 0},
    {"0.5", 500000}, /* a number is the same as its text */
    {"0.333334", 333334},
    {"1", 1000000},
    {"1.0", 1000000},
    {"0.3333335", 0},
    {"0", 0},
    {"-0.5", 0},
    {"2", 0},
    {"null", 0},
    {"[\"0.5\"]", 0},
    {"\"half\"", 0},
    {"true", 0},
};

START_TEST(test_shift)
{
    static const struct {
        const char *keys;
        enum kedge_shift_test shift;
        uint32_t pause;
    } rows[] = {
        {"", KEDGE_SHIFT_TEST_NONE, 1},
        {",\"grouping\":\"flexcfl\",\"groups\":2", KEDGE_SHIFT_TEST_LABELS, 1},
        {",\"strategy\":\"fedprox\",\"grouping\":\"flexcfl\",\"groups\":2,\"options\":{\"refresh\":5,"
         "\"merge\":0.9}",
         KEDGE_SHIFT_TEST_LABELS, 1},
        {",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":\"none\"", KEDGE_SHIFT_TEST_NONE, 1},
        {",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":\"update\",\"migration_pause\":9",
         KEDGE_SHIFT_TEST_UPDATE, 9},
        {",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":\"counts\"", KEDGE_SHIFT_TEST_COUNTS, 1},
        {",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":\"update\"", KEDGE_SHIFT_TEST_UPDATE, 10},
    };
    struct kedge_job_spec s;
    struct kedge_diag d;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s}", HEAD, rows[i].keys);
        ck_assert_msg(parse(text, &s, &d) == KEDGE_OK, "%s", d.text);
        ck_assert_int_eq(s.shift, rows[i].shift);
        ck_assert_uint_eq(s.migration_pause, rows[i].pause);
    }
}
END_TEST

START_TEST(test_precision)
{
    static const char *const words[] = {"f32", "tf32", "bf16"};
    struct kedge_job_spec s;
    struct kedge_diag d;
    enum kedge_precision p = KEDGE_PRECISION_TF32;
    ck_assert(parse(HEAD "}", &s, &d) == KEDGE_OK && s.precision == KEDGE_PRECISION_F32);
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s,\"precision\":\"%s\"}", HEAD, words[i]);
        ck_assert_msg(parse(text, &s, &d) == KEDGE_OK, "%s", d.text);
        ck_assert_int_eq(s.precision, i);
        ck_assert_str_eq(kedge_precision_name(s.precision), words[i]);
    }
    ck_assert_int_eq(kedge_precision_parse(NULL, &p), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_precision_parse("", &p), KEDGE_E_FORMAT);
    ck_assert_int_eq(p, KEDGE_PRECISION_TF32);
}
END_TEST

START_TEST(test_tenant_share)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    char text[512];
    snprintf(text, sizeof text, "%s,\"tenant_share_max\":%s}", HEAD, shares[_i].text);
    int err = parse(text, &s, &d);
    if (shares[_i].share == 0) {
        ck_assert_msg(err == KEDGE_E_FORMAT, "%s is taken", shares[_i].text);
        ck_assert_ptr_nonnull(strstr(d.text, "tenant_share_max"));
        return;
    }
    ck_assert_msg(err == KEDGE_OK, "%s: %s", shares[_i].text, d.text);
    ck_assert_uint_eq(s.tenant_share_max, shares[_i].share);
    bool capped = shares[_i].share < KEDGE_SHARE_ONE;
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, false, s.rule).s,
                     capped ? "fedavg-capped/v1" : "fedavg/v1");
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, true, s.rule).s,
                     capped ? "flexcfl-cold-start-capped/v2" : "flexcfl-cold-start/v2");
}
END_TEST

/* What is wrong, and the words by which it must be named. */
static const struct {
    const char *text, *named;
} wrong[] = {
    {"", "empty"},
    {"\n", "empty"},
    {"[]", "object"},
    {"{\"name\":\"j\"", "line 1"},
    {"{\"name\":\"j\",\"name\":\"k\"}", "line 1"},
    {HEAD ",\"model\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}", "nested deeper than 16"},
    {HEAD ",\"round\":3}", "\"round\""},
    {"{\"name\":\"j\"}", "\"tenants\" is missing"},
    {"{\"name\":\"J\",\"tenants\":[\"a\"]}", "\"name\""},
    {"{\"name\":\"j\",\"tenants\":[\"b\",\"a\",\"b\"]}", "\"b\" is there twice"},
    {HEAD ",\"learnin_rate\":1}", "\"learnin_rate\""},
    {"{\"name\":\"j\",\"tenants\":[]}", "\"tenants\""},
    {HEAD ",\"tenant_share_max\":\"0.5\\u0000\"}", "line 1"},
    {HEAD ",\"batch\":0}", "\"batch\""},
    {HEAD ",\"batch\":\"10\"}", "\"batch\""},
    {HEAD ",\"learning_rate\":\"fast\"}", "\"learning_rate\""},
    {HEAD ",\"learning_rate\":\"nan\"}", "\"learning_rate\""},
    {HEAD ",\"seed\":-1}", "\"seed\""},
    {HEAD ",\"seed\":\"18446744073709551616\"}", "\"seed\""},
    {HEAD ",\"groups\":2}", "\"groups\""},
    {HEAD ",\"grouping\":\"flexcfl\"}", "\"groups\""},
    {HEAD ",\"grouping\":\"other\"}", "\"grouping\""},
    {HEAD ",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":\"sometimes\"}", "\"shift\": expected"},
    {HEAD ",\"grouping\":\"flexcfl\",\"groups\":2,\"shift\":true}", "\"shift\": expected"},
    {HEAD ",\"grouping\":\"flexcfl\",\"groups\":2,\"migration_pause\":0}", "\"migration_pause\""},
    {HEAD ",\"shift\":\"labels\"}", "\"shift\": expected no other value"},
    {HEAD ",\"regroup_every\":4}", "\"regroup_every\""},
    {HEAD ",\"grouping\":\"flexcfl\",\"groups\":2,\"regroup_every\":1}", "\"regroup_every\""},
    {HEAD ",\"bound\":\"4096\",\"scale\":20}", "\"bound\""},
    {HEAD ",\"initial_model\":\"00\"}", "\"initial_model\""},
    {HEAD ",\"strategy\":\"fedbest\"}", "\"strategy\": \"fedbest\": expected one of \"fedavg\", \"fedprox\""},
    {HEAD ",\"strategy\":7}", "\"strategy\""},
    {BUFFERED ",\"grouping\":\"flexcfl\",\"groups\":2}", "\"fedbuff\" has one model"},
    {BUFFERED ",\"sites_per_round\":9}", "\"buffer\" 10: expected a whole number of updates from 1 to 9"},
    {BUFFERED ",\"options\":{\"buffer\":\"2.5\"}}", "\"buffer\" 2.5: expected a whole number"},
    {BUFFERED ",\"options\":{\"buffer\":\"0\"}}", "\"buffer\": expected a number"},
    {BUFFERED ",\"options\":{\"proximal\":\"1\"}}", "takes \"buffer\" only"},
    {BUFFERED ",\"quorum\":11,\"sites_min\":11}", "\"quorum\": expected at most 10"},
    {BUFFERED ",\"staleness_max\":65}", "\"staleness_max\": expected a whole number from 0 to 64"},
    {BUFFERED ",\"rule\":\"krum\",\"options\":{\"buffer\":\"513\"}}", "expected \"buffer\" from 1 to 512"},
    {BUFFERED ",\"rule\":\"root-trust\",\"sites_per_round\":10,\"root_site\":\"org-a/r\"}",
     "steps with the updates that came"},
    {HEAD ",\"staleness_max\":3}", "\"staleness_max\": with strategy \"fedavg\""},
    {HEAD ",\"options\":{\"buffer\":\"3\"}}", "\"options\": \"buffer\""},
    {HEAD ",\"strategy\":\"ifca\"}", "\"groups\": expected 2 to 64 with strategy \"ifca\""},
    {HEAD ",\"strategy\":\"ifca\",\"groups\":65}", "\"groups\": expected a whole number from 1 to 64"},
    {HEAD ",\"strategy\":\"flexcfl-adaptive\",\"groups\":2,\"options\":{\"most\":\"65\"}}",
     "\"most\": expected a number from 1 to 64"},
    {HEAD ",\"strategy\":\"fesem\"}", "\"groups\": expected 2 to 64 with strategy \"fesem\""},
    {HEAD ",\"strategy\":\"fesem\",\"groups\":2,\"options\":{\"edge_rounds\":\"2\"}}", "takes none"},
    {HEAD ",\"strategy\":\"ifca\",\"groups\":2,\"grouping\":\"flexcfl\"}",
     "\"grouping\": \"flexcfl\", but strategy"},
    {HEAD ",\"strategy\":\"ifca\",\"groups\":2,\"initial_model\":\""
          "0000000000000000000000000000000000000000000000000000000000000001\"}",
     "\"initial_model\": with strategy \"ifca\" every group's model begins at random"},
    {HEAD ",\"strategy\":\"cfl\",\"groups\":2}", "\"groups\": expected no other value than 1"},
    {HEAD ",\"strategy\":\"cfl\",\"sites_per_round\":5}",
     "\"sites_per_round\": with strategy \"cfl\" every site"},
    {HEAD ",\"strategy\":\"cfl\",\"mixing\":\"0.1\"}",
     "\"mixing\": strategy \"cfl\" cuts groups so that they part"},
    {HEAD ",\"strategy\":\"cfl\",\"grouping\":\"flexcfl\",\"groups\":2}",
     "\"grouping\": \"flexcfl\", but strategy"},
    {HEAD ",\"strategy\":\"cfl\",\"rule\":\"median\"}", "\"rule\": \"median\" takes at most 512 updates"},
    {HEAD ",\"strategy\":\"cfl\",\"options\":{\"split_after\":\"1.5\"}}",
     "\"split_after\": expected a whole number"},
    {HEAD ",\"strategy\":\"cfl\",\"options\":{\"most\":\"4\"}}",
     "takes \"split_mean\", \"split_max\", \"split_after\" only"},
    {HEAD ",\"options\":{\"split_mean\":\"1\"}}", "\"options\": \"split_mean\""},
    {HEAD ",\"strategy\":\"local\"}", "\"local\" runs in simulations only"},
    {"{\"name\":\"j\",\"tenants\":[\"org-a\"],\"data\":\"d\",\"rounds\":3,\"strategy\":\"hierarchical\","
     "\"model\":"
     "{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}}",
     "\"tenants\": with strategy \"hierarchical\" an edge is a tenant"},
    {EDGES ",\"groups\":2}", "\"groups\": with strategy \"hierarchical\" there is one for each tenant"},
    {EDGES ",\"grouping\":\"flexcfl\",\"groups\":2}", "\"grouping\": \"flexcfl\", but strategy"},
    {EDGES ",\"mixing\":\"0.1\"}", "\"mixing\": with strategy \"hierarchical\" edges meet instead"},
    {EDGES ",\"options\":{\"edge_rounds\":\"2.5\"}}", "\"edge_rounds\": expected a whole number"},
    {EDGES ",\"options\":{\"edge_rounds\":\"0\"}}", "\"edge_rounds\": expected a number"},
    {EDGES ",\"options\":{\"proximal\":\"1\"}}", "takes \"edge_rounds\" only"},
    {EDGES ",\"weight_max\":1000000000}", "\"weight_max\": with strategy \"hierarchical\""},
    {EDGES ",\"rule\":\"root-trust\",\"root_site\":\"org-a/s\",\"sites_per_round\":9}",
     "measures one group's"},
    {EDGES ",\"regroup_every\":4}", "\"regroup_every\""},
    {EDGES ",\"shift\":\"labels\"}", "\"shift\": expected no other value"},
    {HEAD ",\"strategy\":\"flexcfl\",\"grouping\":\"none\"}", "\"grouping\": \"none\""},
    {HEAD ",\"strategy\":\"flexcfl\"}", "\"groups\""},
    {HEAD ",\"strategy\":\"fedclust\",\"grouping\":\"none\"}", "\"grouping\": \"none\""},
    {HEAD ",\"strategy\":\"fedclust\",\"choose\":\"gap\"}",
     "\"choose\": strategy \"fedclust\" leaves no number"},
    {HEAD ",\"choose\":\"silhouette\"}", "\"choose\": strategy \"fedavg\" leaves no number"},
    {HEAD ",\"strategy\":\"flexcfl\",\"groups\":2,\"choose\":\"best\"}", "\"choose\": expected \"fixed\""},
    {HEAD ",\"strategy\":\"flexcfl\",\"groups\":2,\"choose\":2}", "\"choose\": expected \"fixed\""},
    {HEAD ",\"strategy\":\"flexcfl-madc\",\"groups\":2,\"choose\":\"gap\"}", "\"gap\" has no meaning"},
    {HEAD ",\"strategy\":\"flexcfl\",\"groups\":2,\"options\":{\"link\":\"1\"}}",
     "takes \"refresh\", \"merge\""},
    {HEAD ",\"strategy\":\"flexcfl\",\"groups\":2,\"options\":{\"refresh\":\"1.5\"}}",
     "\"refresh\": expected a whole number"},
    {HEAD ",\"strategy\":\"flexcfl\",\"groups\":2,\"options\":{\"merge\":\"0.9\"}}",
     "expected \"refresh\" from 1"},
    {HEAD ",\"strategy\":\"flexcfl\",\"groups\":2,\"mixing\":\"1\",\"options\":{\"refresh\":\"1\",\"merge\":"
          "\"0.9\"}}",
     "\"mixing\": groups that may become one"},
    {HEAD ",\"strategy\":\"flexcfl\",\"groups\":2,\"choose\":\"one\"}",
     "\"choose\": \"one\": groups are cut by trials; expected \"options\": \"trial_every\" from 1"},
    {HEAD ",\"strategy\":\"flexcfl-adaptive\",\"groups\":2,\"choose\":\"one\",\"server\":\"adam\"}",
     "\"choose\": \"one\": a part is tried by its updates alone"},
    {HEAD ",\"options\":[]}", "\"options\": expected an object"},
    {HEAD ",\"options\":{\"server_lr\":\"1\"}}", "\"options\": \"server_lr\": strategy \"fedavg\""},
    {HEAD ",\"options\":{\"settle\":\"9\"}}", "\"options\": \"settle\": strategy \"fedavg\""},
    {CONTROLLED(4) ",\"control_sites\":4,\"options\":{\"settle\":\"9\"}}", "takes \"server_lr\" only"},
    {HEAD ",\"strategy\":\"fedadam\",\"options\":{\"settle\":\"1000001\"}}", "\"settle\": expected"},
    {HEAD ",\"strategy\":\"fedadam\",\"options\":{\"proximal\":\"1\"}}", "takes \"server_lr\", \"momentum\""},
    {HEAD ",\"strategy\":\"fedadam\",\"options\":{\"momentum\":\"1\"}}", "\"momentum\": expected"},
    {HEAD ",\"strategy\":\"fedadam\",\"options\":{\"momentum\":\"half\"}}", "expected a number"},
    {HEAD ",\"strategy\":\"fedadam\",\"options\":{\"beta\":\"0.5\"}}", "\"beta\""},
    {HEAD ",\"server\":\"lamb\"}", "\"server\": expected one of \"none\", \"momentum\""},
    {HEAD ",\"selection\":\"best\"}", "\"selection\": expected \"uniform\" or \"charged\""},
    {HEAD ",\"selection\":1}", "\"selection\": expected \"uniform\" or \"charged\""},
    {HEAD ",\"selection\":\"charged\"}", "\"sites_per_round\": expected 1 or more with \"selection\""},
    {HEAD ",\"selection\":\"charged\",\"sites_per_round\":9,\"strategy\":\"fedbuff\"}",
     "does not go with strategy"},
    {HEAD
     ",\"selection\":\"charged\",\"sites_per_round\":9,\"rule\":\"root-trust\",\"root_site\":\"org-a/s\"}",
     "does not go with rule"},
    {HEAD ",\"rule\":\"mode\",\"sites_per_round\":9}", "\"rule\": expected one of \"mean\", \"median\""},
    {HEAD ",\"rule\":\"median\"}", "expected \"sites_per_round\" from 1 to 512"},
    {HEAD ",\"rule\":\"median\",\"sites_per_round\":513}", "expected \"sites_per_round\" from 1 to 512"},
    {HEAD ",\"rule\":\"median\",\"sites_per_round\":9,\"grouping\":\"flexcfl\",\"groups\":2,"
          "\"pretrain_sites\":0}",
     "expected \"pretrain_sites\" from 1 to 512"},
    {HEAD ",\"rule_fraction\":\"0.1\"}", "rule \"mean\" has no use for it"},
    {HEAD ",\"rule\":\"median\",\"sites_per_round\":9,\"rule_bound\":\"1\"}", "has no use for it"},
    {HEAD ",\"rule\":\"trimmed-mean\",\"sites_per_round\":9,\"rule_fraction\":\"0.5\"}", "\"rule_fraction\""},
    {HEAD ",\"rule\":\"trimmed-mean\",\"sites_per_round\":9,\"rule_fraction\":\".1\"}", "a number from 0"},
    {HEAD ",\"strategy\":\"fednova\",\"local_epochs\":20}", "\"weight_max\""},
    {HEAD ",\"strategy\":\"fednova\",\"local_momentum\":\"0.9\"}", "\"local_momentum\""},
    {HEAD ",\"local_momentum\":\"1\"}", "\"local_momentum\""},
    {HEAD ",\"clip\":\"-1\"}", "\"clip\""},
    {HEAD ",\"precision\":\"f64\"}", "\"precision\": expected \"f32\", \"tf32\" or \"bf16\""},
    {HEAD ",\"precision\":32}", "\"precision\": expected"},
    {HEAD ",\"rule\":\"root-trust\",\"sites_per_round\":9}", "\"root_site\": expected \"TENANT/SITE\""},
    {ROOTED("7"), "\"root_site\": expected \"TENANT/SITE\""},
    {ROOTED("\"org-a\""), "\"root_site\": expected \"TENANT/SITE\""},
    {ROOTED("\"org-a/\""), "\"root_site\": expected \"TENANT/SITE\""},
    {ROOTED("\"org-a/s/1\""), "\"root_site\": expected \"TENANT/SITE\""},
    {ROOTED("\"org-z/s1\""), "\"org-z\" is none of the job's \"tenants\""},
    {ROOTED("\"org-a/s1\",\"quorum\":1"), "\"quorum\": expected 2 or more"},
    {ROOTED("\"org-a/s1\",\"sites_min\":1"), "\"sites_min\": expected 2 or more"},
    {ROOTED("\"org-a/s1\",\"grouping\":\"flexcfl\",\"groups\":2"), "leave out \"grouping\""},
    {HEAD ",\"rule\":\"root-trust\",\"root_site\":\"org-a/s1\"}",
     "expected \"sites_per_round\" from 1 to 512"},
    {HEAD ",\"rule\":\"root-trust\",\"root_site\":\"org-a/s1\",\"sites_per_round\":1}", "expected 2 to 512"},
    {HEAD ",\"root_site\":\"org-a/s1\"}", "rule \"mean\" has no use for it"},
    {HEAD ",\"control_sites\":4}", "strategy \"fedavg\" has no use for it"},
    {HEAD ",\"strategy\":\"scaffold\",\"sites_per_round\":4}", "\"control_sites\": expected a whole number"},
    {CONTROLLED(4) ",\"control_sites\":\"4\"}", "\"control_sites\": expected a whole number"},
    {CONTROLLED(4) ",\"control_sites\":0}", "\"control_sites\": expected a whole number"},
    {CONTROLLED(4) ",\"control_sites\":3}", "\"sites_per_round\": expected 1 to 3"},
    {CONTROLLED(0) ",\"control_sites\":600}", "\"sites_per_round\": expected 1 to 512"},
    {CONTROLLED(513) ",\"control_sites\":600}", "\"sites_per_round\": expected 1 to 512"},
    {CONTROLLED(4) ",\"control_sites\":4,\"server\":\"adam\"}", "\"server\": not with strategy \"scaffold\""},
    {CONTROLLED(4) ",\"control_sites\":4,\"rule\":\"median\"}", "\"rule\": not with strategy \"scaffold\""},
    {CONTROLLED(4) ",\"control_sites\":4,\"tenant_share_max\":\"0.5\"}",
     "\"tenant_share_max\": not with strategy \"scaffold\""},
    {CONTROLLED(4) ",\"control_sites\":4,\"grouping\":\"flexcfl\",\"groups\":2}",
     "\"grouping\": not with strategy \"scaffold\""},
    {CONTROLLED(4) ",\"control_sites\":4,\"options\":{\"proximal\":\"1\"}}", "takes \"server_lr\" only"},
    {HEAD ",\"compression\":\"int8\"}", "\"compression\": expected an object"},
    {COMPACT(""), "\"kind\": expected \"int8\""},
    {COMPACT("\"kind\":\"none\""), "\"kind\": expected \"int8\""},
    {COMPACT("\"kind\":\"topk\""), "\"share\" is missing"},
    {COMPACT("\"kind\":\"topk-int8\",\"share\":\"0\""), "\"compression\": \"share\": expected a share"},
    {COMPACT("\"kind\":\"topk\",\"share\":0.0000001"), "\"compression\": \"share\": expected a share"},
    {COMPACT("\"kind\":\"int8\",\"share\":\"0.01\""), "send all values"},
    {COMPACT("\"kind\":\"int8\",\"carry\":\"1.1\""), "\"compression\": \"carry\": expected a share"},
    {COMPACT("\"kind\":\"int8\",\"bits\":4"), "\"compression\": unknown key \"bits\""},
    {CONTROLLED(4) ",\"control_sites\":4," DENSE "}", "\"compression\": not with strategy \"scaffold\""},
    {HEAD ",\"strategy\":\"qffl\"," DENSE "}", "\"compression\": not with strategy \"qffl\""},
    {HEAD ",\"strategy\":\"cfl\"," DENSE "}", "\"compression\": not with strategy \"cfl\""},
    {HEAD ",\"strategy\":\"fesem\",\"groups\":2," DENSE "}", "\"compression\": not with strategy \"fesem\""},
    {HEAD ",\"rule\":\"median\",\"sites_per_round\":9," SPARSE "}", "no vote for zero"},
    {HEAD ",\"strategy\":\"qffl\",\"tenant_share_max\":\"0.5\"}", "\"tenant_share_max\""},
};

START_TEST(test_compression)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_int_eq(parse(HEAD "}", &s, &d), KEDGE_OK);
    ck_assert_ptr_null(kedge_job_spec_compact(&s, false));
    ck_assert_int_eq(parse(COMPACT("\"kind\":\"topk-int8\",\"share\":\"0.01\""), &s, &d), KEDGE_OK);
    const struct kedge_compact *c = kedge_job_spec_compact(&s, false);
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(c->kind, KEDGE_COMPACT_TOPK_INT8);
    ck_assert_uint_eq(c->share, 10000);
    ck_assert_uint_eq(c->carry, KEDGE_COMPACT_SHARE_ONE);
    ck_assert_ptr_null(kedge_job_spec_compact(&s, true)); /* pre-trainings come whole */
    ck_assert_int_eq(parse(COMPACT("\"kind\":\"bf16\",\"carry\":\"0\""), &s, &d), KEDGE_OK);
    ck_assert_uint_eq(s.compression.carry, 0);
    ck_assert_int_eq(parse(COMPACT("\"kind\":\"topk\",\"share\":\"1\",\"carry\":\"0.9\""), &s, &d), KEDGE_OK);
    ck_assert_uint_eq(s.compression.carry, 900000);
    ck_assert_int_eq(parse(HEAD ",\"rule\":\"median\",\"sites_per_round\":9," DENSE "}", &s, &d), KEDGE_OK);
}
END_TEST

START_TEST(test_wrong)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_msg(parse(wrong[_i].text, &s, &d) != KEDGE_OK, "%s is taken", wrong[_i].text);
    ck_assert_msg(strstr(d.text, wrong[_i].named) != NULL, "%s: %s", wrong[_i].text, d.text);
}
END_TEST

/* An edge for each tenant, and when they meet. */
/* A round takes `buffer` updates, so that is what bounds their sum: 10 · 2^21 · 2^30 stays below 2^62, and
 * with 4096 of them it would not. */
START_TEST(test_buffer)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_int_eq(parse(BUFFERED "}", &s, &d), KEDGE_OK);
    ck_assert_uint_eq(kedge_job_spec_buffer(&s), 10);
    ck_assert_uint_eq(s.staleness_max, 16);
    ck_assert(!kedge_job_spec_weighs_samples(&s));
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, false, s.rule).s, "fedbuff/v1");
    ck_assert_str_eq(kedge_job_spec_step_rule(&s, false, false).s, "identity/v1");
    ck_assert_int_eq(parse(BUFFERED
                           ",\"options\":{\"buffer\":\"3\"},\"staleness_max\":0,\"sites_per_round\":3,"
                           "\"quorum\":3,\"rule\":\"median\",\"server\":\"adam\"}",
                           &s, &d),
                     KEDGE_OK);
    ck_assert_uint_eq(kedge_job_spec_buffer(&s), 3);
    ck_assert_uint_eq(s.staleness_max, 0);
    ck_assert_int_eq(parse(BUFFERED ",\"bound\":\"1023\",\"weight_max\":2097152}", &s, &d), KEDGE_OK);
    ck_assert_int_ne(parse(HEAD ",\"bound\":\"1023\",\"weight_max\":2097152}", &s, &d), KEDGE_OK);
    ck_assert_int_eq(parse(HEAD "}", &s, &d), KEDGE_OK);
    ck_assert_uint_eq(kedge_job_spec_buffer(&s), 0);
}
END_TEST

START_TEST(test_edges)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_int_eq(parse(EDGES ",\"server\":\"adam\",\"options\":{\"edge_rounds\":\"2\"}}", &s, &d),
                     KEDGE_OK);
    ck_assert_uint_eq(s.groups, 3);
    ck_assert_uint_eq(kedge_job_spec_models(&s), 3);
    ck_assert_int_eq(s.grouping, KEDGE_GROUPING_NONE);
    ck_assert(!kedge_job_spec_meets(&s, 0) && !kedge_job_spec_meets(&s, 1) && kedge_job_spec_meets(&s, 2));
    ck_assert_str_eq(kedge_job_spec_meeting_rule(&s).s, "fedadam+edge-meeting/v1");
    ck_assert_uint_eq(kedge_job_spec_edge(2), 2);
    ck_assert_uint_eq(kedge_job_spec_edge(17), 1);
    ck_assert_uint_eq(kedge_job_spec_meeting_share(&s, 7, 9), 9);
    ck_assert_uint_eq(kedge_job_spec_meeting_share(&s, 0, 9), 0); /* its rule left it out */
    ck_assert_int_eq(parse(EDGES ",\"rule\":\"median\",\"sites_per_round\":3,\"groups\":3}", &s, &d),
                     KEDGE_OK);
    ck_assert_uint_eq(kedge_job_spec_meeting_share(&s, 7, 9), 1); /* a rule that gives each a vote */
    ck_assert_str_eq(kedge_job_spec_meeting_rule(&s).s, "edge-meeting/v1");
    ck_assert_int_eq(parse(HEAD "}", &s, &d), KEDGE_OK);
    ck_assert(!kedge_job_spec_meets(&s, 5) && kedge_job_spec_models(&s) == 1);
}
END_TEST

/* What a spec chooses, and how the record names what then runs. */
static const struct {
    const char *keys, *aggregate, *cold, *step, *mixed;
} chosen[] = {
    {"\"strategy\":\"fedavg\"", "fedavg/v1", "flexcfl-cold-start/v2", "identity/v1", "flexcfl-mixing/v1"},
    {"\"strategy\":\"fedprox\"", "fedavg/v1", "flexcfl-cold-start/v2", "identity/v1", "flexcfl-mixing/v1"},
    {"\"strategy\":\"ditto\",\"options\":{\"personal\":\"0.5\"}", "fedavg/v1", "flexcfl-cold-start/v2",
     "identity/v1", "flexcfl-mixing/v1"},
    {"\"strategy\":\"fednova\"", "fednova/v1", "flexcfl-cold-start/v2", "identity/v1", "flexcfl-mixing/v1"},
    {"\"strategy\":\"scaffold\",\"control_sites\":9,\"sites_per_round\":9", "fedavg/v1",
     "flexcfl-cold-start/v2", "scaffold/v1", "scaffold+flexcfl-mixing/v1"},
    {"\"strategy\":\"qffl\"", "qffl/v1", "flexcfl-cold-start/v2", "identity/v1", "flexcfl-mixing/v1"},
    {"\"strategy\":\"fedadam\"", "fedavg/v1", "flexcfl-cold-start/v2", "fedadam/v1",
     "fedadam+flexcfl-mixing/v1"},
    {"\"server\":\"momentum\"", "fedavg/v1", "flexcfl-cold-start/v2", "fedavgm/v1",
     "fedavgm+flexcfl-mixing/v1"},
    {"\"strategy\":\"fedadam\",\"server\":\"none\"", "fedavg/v1", "flexcfl-cold-start/v2", "identity/v1",
     "flexcfl-mixing/v1"},
    {"\"strategy\":\"fedavgm\",\"server\":\"yogi\"", "fedavg/v1", "flexcfl-cold-start/v2", "fedyogi/v1",
     "fedyogi+flexcfl-mixing/v1"},
    {"\"rule\":\"median\",\"sites_per_round\":9", "median/v1", "flexcfl-cold-start+median/v2", "identity/v1",
     "flexcfl-mixing/v1"},
    {"\"rule\":\"median\",\"sites_per_round\":9,\"tenant_share_max\":\"0.5\"", "median-capped/v1",
     "flexcfl-cold-start+median-capped/v2", "identity/v1", "flexcfl-mixing/v1"},
    {"\"rule\":\"norm-clipping\",\"strategy\":\"fednova\",\"sites_per_round\":9", "fednova+norm-clipping/v1",
     "flexcfl-cold-start+norm-clipping/v2", "identity/v1", "flexcfl-mixing/v1"},
    {"\"rule\":\"root-trust\",\"root_site\":\"org-a/s1\",\"sites_per_round\":9", "root-trust/v1",
     "flexcfl-cold-start+root-trust/v2", "identity/v1", "flexcfl-mixing/v1"},
    {"\"rule\":\"krum\",\"rule_fraction\":\"0.3\",\"strategy\":\"fedadagrad\",\"sites_per_round\":9",
     "krum/v1", "flexcfl-cold-start+krum/v2", "fedadagrad/v1", "fedadagrad+flexcfl-mixing/v1"},
};

START_TEST(test_chosen)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    char text[1024];
    snprintf(text, sizeof text, "%s,%s}", HEAD, chosen[_i].keys);
    ck_assert_msg(parse(text, &s, &d) == KEDGE_OK, "%s: %s", text, d.text);
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, false, s.rule).s, chosen[_i].aggregate);
    ck_assert_str_eq(kedge_job_spec_aggregate_rule(&s, true, s.rule).s, chosen[_i].cold);
    ck_assert_str_eq(kedge_job_spec_step_rule(&s, false, false).s, chosen[_i].step);
    ck_assert_str_eq(kedge_job_spec_step_rule(&s, false, true).s, chosen[_i].mixed);
}
END_TEST

/* Numbers: the strategy's, then the server's, then the spec's. */
START_TEST(test_numbers)
{
    struct kedge_job_spec s;
    struct kedge_diag d;
    ck_assert_int_eq(parse(HEAD "}", &s, &d), KEDGE_OK);
    ck_assert(kedge_job_spec_takes(&s, 10, 0, 1e300));
    ck_assert_int_eq(parse(HEAD ",\"strategy\":\"fednova\",\"local_epochs\":3}", &s, &d), KEDGE_OK);
    ck_assert(kedge_job_spec_takes(&s, 11, 6, 0) && kedge_job_spec_takes(&s, 11, 1, 0));
    ck_assert(!kedge_job_spec_takes(&s, 11, 7, 0) && !kedge_job_spec_takes(&s, 11, 0, 0));
    ck_assert_int_eq(parse(HEAD ",\"strategy\":\"qffl\"}", &s, &d), KEDGE_OK);
    ck_assert(kedge_job_spec_takes(&s, 11, 1000, 1e6));
    ck_assert(!kedge_job_spec_takes(&s, 11, 1000, 1.5e6) && !kedge_job_spec_takes(&s, 11, 1ull << 31, 0));
    const struct kedge_strategy *adam = kedge_strategy_find("fedadam");
    ck_assert_int_eq(parse(HEAD
                           ",\"strategy\":\"fedprox\",\"server\":\"adam\",\"options\":{\"proximal\":\"0.25\","
                           "\"server_lr\":\"0.5\",\"settle\":\"40\"}}",
                           &s, &d),
                     KEDGE_OK);
    ck_assert_double_eq(s.options.proximal, 0.25);
    ck_assert_double_eq(s.options.settle, 40);
    ck_assert_double_eq(s.options.server_lr, 0.5);
    ck_assert_double_eq(s.options.momentum, adam->defaults.momentum);
    ck_assert_double_eq(s.options.second_moment, adam->defaults.second_moment);
    ck_assert_int_eq(parse(HEAD ",\"strategy\":\"flexcfl\",\"groups\":3}", &s, &d), KEDGE_OK);
    ck_assert_int_eq(s.grouping, KEDGE_GROUPING_FLEXCFL);
    ck_assert_uint_eq(s.pretrain_sites, 60);
    ck_assert_int_eq(parse(HEAD ",\"grouping\":\"flexcfl\",\"groups\":3}", &s, &d), KEDGE_OK);
    ck_assert_str_eq(s.strategy->name, "flexcfl");
    ck_assert_int_eq(
        parse(HEAD ",\"rule\":\"trimmed-mean\",\"sites_per_round\":9,\"rule_fraction\":\"0.3\"}", &s, &d),
        KEDGE_OK);
    ck_assert_double_eq(s.rule_params.fraction, 0.3);
    const struct kedge_id site = {"s1"}, other = {"s2"};
    ck_assert(!kedge_job_spec_is_root(&s, 0, &site));
    ck_assert_int_eq(parse(ROOTED("\"org-a/s1\""), &s, &d), KEDGE_OK);
    ck_assert_uint_eq(s.quorum, 2);
    ck_assert_uint_eq(s.sites_min, 2);
    ck_assert(kedge_job_spec_is_root(&s, 0, &site) && !kedge_job_spec_is_root(&s, 0, &other));
    ck_assert(!kedge_job_spec_is_root(&s, 1, &site)); /* of the same name, of another tenant */
}
END_TEST

/* Every key that the page lists is one that the parser knows, with the default that the page tells. */
START_TEST(test_page)
{
    char line[1024], text[1200];
    struct kedge_job_spec s;
    struct kedge_diag d;
    size_t keys = 0;
    FILE *page = fopen("docs/job-spec.md", "r");
    ck_assert_ptr_nonnull(page);
    while (fgets(line, sizeof line, page)) {
        char key[64], fallback[64];
        if (sscanf(line, "| `%63[a-z_0-9]` | %63[^|] |", key, fallback) != 2) {
            continue;
        }
        keys++;
        bool is_object = strcmp(key, "options") == 0 || strcmp(key, "plan") == 0;
        snprintf(text, sizeof text, "%s,\"%s\":%s}", HEAD, key, is_object ? "7" : "{}");
        ck_assert_int_ne(parse(text, &s, &d), KEDGE_OK); /* known, but of another type */
        ck_assert_msg(!strstr(d.text, "unknown key"), "docs/job-spec.md: %s", d.text);
        size_t len = strcspn(fallback, " ");
        fallback[len] = '\0';
        if (strncmp(fallback, "required", 8) != 0 && strcmp(fallback, "made") != 0
            && strcmp(fallback, "the") != 0 && strcmp(key, "shift") != 0 && !strstr(key, "pretrain")) {
            char plain[64];
            size_t n = 0;
            for (size_t i = 0; fallback[i]; i++) { /* without code marks and thousands' commas */
                if (fallback[i] != '`' && fallback[i] != ',') {
                    plain[n++] = fallback[i];
                }
            }
            plain[n] = '\0';
            struct kedge_job_spec with, without;
            const char *head =
                strncmp(key, "batch_", 6) == 0 ? HEAD ",\"strategy\":\"fednova\",\"batch\":\"auto\"" : HEAD;
            snprintf(text, sizeof text, "%s,\"%s\":%s}", head, key, plain);
            ck_assert_msg(parse(text, &with, &d) == KEDGE_OK, "%s: %s", text, d.text);
            snprintf(text, sizeof text, "%s}", head);
            ck_assert_msg(parse(text, &without, &d) == KEDGE_OK, "%s: %s", text, d.text);
            ck_assert_msg(memcmp(&with, &without, sizeof with) == 0, "docs/job-spec.md: default of %s", key);
        }
    }
    fclose(page);
    ck_assert_uint_eq(keys, kedge_job_key_count);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chain job spec");
    TCase *t = tcase_create("job spec");
    tcase_add_test(t, test_defaults);
    tcase_add_test(t, test_compression);
    tcase_add_loop_test(t, test_tenant_share, 0, sizeof shares / sizeof shares[0]);
    tcase_add_test(t, test_shift);
    tcase_add_test(t, test_precision);
    tcase_add_test(t, test_buffer);
    tcase_add_test(t, test_edges);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_loop_test(t, test_chosen, 0, sizeof chosen / sizeof chosen[0]);
    tcase_add_test(t, test_numbers);
    tcase_add_test(t, test_page);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
