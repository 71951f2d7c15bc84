/* The texts of a site's folder and its trainer's answers: what is refused, and by which words. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client/daemon/chain/identity.h"
#include "client/daemon/policy.h"
#include "client/daemon/stored.h"
#include "client/daemon/trainer/metrics.h"
#include "common/base/mem.h"
#include "crypto/hash.h"

#define KEY "1111111111111111111111111111111111111111111111111111111111111111"
#define DEEP "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]" /* one level too many in an object */

struct refusal {
    const char *text, *said;
};

static const struct refusal policies[] = {
    {"", "empty, expected"},
    {"[]", "expected a JSON object"},
    {"{\"jobs\":\"*\",\"jobs\":\"*\"}", "duplicate"},
    {"{\"data\":{\"a\":" DEEP "}}", "nested deeper than 16"},
    {"{\"job\":\"*\"}", "unknown key \"job\""},
    {"{\"jobs\":\"all\"}", "\"jobs\": expected \"*\" or a list"},
    {"{\"jobs\":[\"A job\"]}", "\"jobs\": expected job names"},
    {"{\"jobs\":[1]}", "\"jobs\": expected job names"},
    {"{\"trainer\":\"kedge-train\"}", "\"trainer\": expected a command"},
    {"{\"trainer\":[]}", "\"trainer\": expected a command"},
    {"{\"trainer\":[\"\"]}", "\"trainer\": expected a list of words"},
    {"{\"trainer\":[\"a\",2]}", "\"trainer\": expected a list of words"},
    {"{\"threads\":257}", "\"threads\": expected a whole number from 0 to 256"},
    {"{\"threads\":-1}", "\"threads\": expected a whole number from 0 to 256"},
    {"{\"threads\":1.0}", "\"threads\": expected a whole number from 0 to 256"},
    {"{\"train_seconds_max\":604801}", "\"train_seconds_max\": expected"},
    {"{\"memory_max\":\"1\"}", "\"memory_max\": expected"},
    {"{\"jobs_at_once\":0}", "\"jobs_at_once\": expected a whole number from 1 to 4"},
    {"{\"jobs_at_once\":5}", "\"jobs_at_once\": expected a whole number from 1 to 4"},
    {"{\"gpu_at_once\":0}", "\"gpu_at_once\": expected a whole number from 1 to 4"},
    {"{\"memory_all\":-1}", "\"memory_all\": expected"},
    {"{\"insecure\":1}", "\"insecure\": expected true or false"},
    {"{\"data\":[]}", "\"data\": expected an object"},
    {"{\"proxy\":1}", "\"proxy\": expected \"http://HOST:PORT\""},
    {"{\"proxy\":\"socks://h:1\"}", "\"proxy\": expected"},
    {"{\"device\":\"gpu\"}", "\"device\": expected \"cpu\", \"cuda\" or \"auto\""},
    {"{\"device\":1}", "\"device\": expected"},
    {"{\"precision\":\"f16\"}", "\"precision\": expected \"f32\", \"tf32\" or \"bf16\""},
    {"{\"precision\":null}", "\"precision\": expected"},
    {"{\"stop_seconds\":3601}", "\"stop_seconds\": expected a whole number from 0 to 3600"},
};
enum { POLICIES = sizeof policies / sizeof policies[0] };

START_TEST(test_policy_refused)
{
    struct kedge_site_policy p = {.threads = 77};
    struct kedge_diag d;
    const struct refusal *r = &policies[_i];
    ck_assert_int_eq(kedge_policy_parse(kedge_view_str(r->text), "x/policy.json", &p, &d), KEDGE_E_FORMAT);
    ck_assert_msg(strncmp(d.text, "x/policy.json: ", 15) == 0 && strstr(d.text, r->said), "%s: %s", r->text,
                  d.text);
    ck_assert_uint_eq(p.threads, 77); /* untouched */
}
END_TEST

START_TEST(test_policy_taken)
{
    struct kedge_site_policy p;
    ck_assert_int_eq(kedge_policy_parse(kedge_view_str("{}"), "x", &p, NULL), KEDGE_OK);
    ck_assert(p.allow_all && !p.insecure && !p.data && !p.trainer[0]);
    ck_assert(p.threads == 1 && p.train_seconds_max == 3600 && p.memory_max == 0);
    ck_assert(p.jobs_at_once == 1 && p.gpu_at_once == 1 && p.memory_all == 0 && p.device == KEDGE_POLICY_CPU);
    kedge_policy_deinit(&p);
    ck_assert_int_eq(
        kedge_policy_parse(kedge_view_str("{\"jobs_at_once\":4,\"gpu_at_once\":2,\"memory_all\":7,"
                                          "\"device\":\"cuda\",\"threads\":9}"),
                           "x", &p, NULL),
        KEDGE_OK);
    const struct kedge_admission_limits l = kedge_policy_limits(&p);
    ck_assert(l.jobs_at_once == 4 && l.gpu_at_once == 2 && l.memory_all == 7 && l.threads == 9);
    ck_assert_str_eq(kedge_policy_device_name(p.device), "cuda");
    kedge_policy_deinit(&p);
    ck_assert_int_eq(
        kedge_policy_parse(kedge_view_str("{\"jobs\":[\"a\",\"b\"],\"trainer\":[\"t\",\"\"],\"threads\":0,"
                                          "\"memory_max\":9223372036854775807,\"data\":{\"d\":1}}"),
                           "x", &p, NULL),
        KEDGE_OK);
    ck_assert(!p.allow_all && p.job_count == 2 && strcmp(p.jobs[1].s, "b") == 0);
    ck_assert(strcmp(p.trainer[0], "t") == 0 && strcmp(p.trainer[1], "") == 0 && !p.trainer[2]);
    ck_assert(p.threads == 1 && p.memory_max == INT64_MAX && json_object_get(p.data, "d"));
    kedge_policy_deinit(&p);
    ck_assert_ptr_null(p.data);
}
END_TEST

/* The owner's device; of the precisions the one that rounds least counts. */
static bool tells(const char *tell, bool *ret_battery)
{
    struct kedge_site_policy p;
    char text[64];
    snprintf(text, sizeof text, "{\"tell\":%s}", tell);
    ck_assert_int_eq(kedge_policy_parse(kedge_view_str(text), "x", &p, NULL), KEDGE_OK);
    bool reasons = p.tells_reasons;
    *ret_battery = p.energy.tells_battery;
    kedge_policy_deinit(&p);
    return reasons;
}

START_TEST(test_policy_tell)
{
    struct kedge_site_policy p;
    struct kedge_diag d;
    bool battery;
    ck_assert(!tells("\"nothing\"", &battery) && !battery);
    ck_assert(!tells("\"battery\"", &battery) && battery);
    ck_assert(tells("\"reasons\"", &battery) && !battery);
    ck_assert(tells("[\"battery\",\"reasons\"]", &battery) && battery);
    ck_assert(!tells("[]", &battery) && !battery);
    static const char *const bad[] = {"{\"tell\":\"all\"}", "{\"tell\":1}", "{\"tell\":[\"nothing\"]}",
                                      "{\"tell\":[\"battery\",\"reasons\",\"battery\"]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedge_policy_parse(kedge_view_str(bad[i]), "x", &p, &d), KEDGE_E_FORMAT);
        ck_assert_ptr_nonnull(strstr(d.text, "\"tell\""));
    }
}
END_TEST

START_TEST(test_policy_device)
{
    struct kedge_site_policy p;
    ck_assert_int_eq(kedge_policy_parse(kedge_view_str("{}"), "x", &p, NULL), KEDGE_OK);
    ck_assert(p.device == KEDGE_POLICY_CPU && p.precision == KEDGE_PRECISION_F32);
    ck_assert_int_eq(kedge_policy_precision(&p, KEDGE_PRECISION_BF16), KEDGE_PRECISION_F32);
    kedge_policy_deinit(&p);
    ck_assert_int_eq(
        kedge_policy_parse(kedge_view_str("{\"device\":\"auto\",\"precision\":\"tf32\"}"), "x", &p, NULL),
        KEDGE_OK);
    ck_assert_str_eq(kedge_policy_device_name(p.device), "auto");
    ck_assert_int_eq(kedge_policy_precision(&p, KEDGE_PRECISION_BF16), KEDGE_PRECISION_TF32);
    ck_assert_int_eq(kedge_policy_precision(&p, KEDGE_PRECISION_F32), KEDGE_PRECISION_F32);
    kedge_policy_deinit(&p);
    ck_assert_int_eq(
        kedge_policy_parse(kedge_view_str("{\"device\":\"cuda\",\"precision\":\"bf16\"}"), "x", &p, NULL),
        KEDGE_OK);
    ck_assert_str_eq(kedge_policy_device_name(p.device), "cuda");
    ck_assert_int_eq(kedge_policy_precision(&p, KEDGE_PRECISION_BF16), KEDGE_PRECISION_BF16);
    ck_assert_int_eq(kedge_policy_precision(&p, KEDGE_PRECISION_TF32), KEDGE_PRECISION_TF32);
    kedge_policy_deinit(&p);
}
END_TEST

/* Jobs and words at their limits, and one more. */
START_TEST(test_policy_lists)
{
    static const struct {
        const char *key;
        size_t most;
    } lists[] = {{"jobs", KEDGE_POLICY_JOBS_MAX}, {"trainer", KEDGE_TRAINER_ARGS_MAX}};
    for (size_t i = 0; i < 2; i++) {
        for (size_t more = 0; more < 2; more++) {
            struct kedge_site_policy p;
            struct kedge_buf text;
            kedge_buf_init(&text, 4096);
            kedge_buf_printf(&text, "{\"%s\":[\"a\"", lists[i].key);
            for (size_t k = 1; k < lists[i].most + more; k++) {
                kedge_buf_put_str(&text, ",\"a\"");
            }
            kedge_buf_put_str(&text, "]}");
            int err = kedge_policy_parse(kedge_buf_view(&text), "x", &p, NULL);
            ck_assert_int_eq(err, more ? KEDGE_E_FORMAT : KEDGE_OK);
            if (!err) {
                kedge_policy_deinit(&p);
            }
            kedge_buf_deinit(&text);
        }
    }
}
END_TEST

static const char key_row[] = "\"server_key\":\"" KEY "\"";
static const char *const site_rows[] = {
    "\"tenant\":\"a\"", "\"site\":\"s\"",  "\"server\":\"tls+tcp://h:1\"", key_row, "\"tenant\":\"no name\"",
    "\"site\":1",       "\"server\":\"\"", "\"server_key\":\"11\"",
};

/* Each of the four missing, and each of them bad. */
START_TEST(test_site_refused)
{
    char text[512] = "{";
    struct kedge_site_config c;
    struct kedge_diag d;
    for (int i = 0; i < 4; i++) {
        const char *row = i != _i % 4 ? site_rows[i] : _i < 4 ? "\"x\":0" : site_rows[i + 4];
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i ? "," : "", row);
    }
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "}");
    ck_assert_int_eq(kedge_site_config_parse(kedge_view_str(text), "x/site.json", &c, &d), KEDGE_E_FORMAT);
    ck_assert_str_eq(d.text, "x/site.json: expected tenant, site, server and server_key");
}
END_TEST

START_TEST(test_site_taken)
{
    char text[512];
    struct kedge_site_config c;
    snprintf(text, sizeof text, "{%s,%s,%s,%s,\"token_secret\":\"%s\"}", site_rows[0], site_rows[1],
             site_rows[2], site_rows[3], KEY);
    ck_assert_int_eq(kedge_site_config_parse(kedge_view_str(text), "x", &c, NULL), KEDGE_OK);
    ck_assert(strcmp(c.tenant.s, "a") == 0 && strcmp(c.server, "tls+tcp://h:1") == 0);
    ck_assert(c.has_token && c.token_secret[31] == 0x11 && c.server_key.b[0] == 0x11);
}
END_TEST

/* ---- trust.json ---- */

static void vkey(const char *name, char ret[KEDGE_VKEY_MAX + 2])
{
    struct kedge_vkey key;
    struct kedge_seed seed = {{7}};
    struct kedge_key_pair pair;
    struct kedge_buf text;
    kedge_key_from_seed(&seed, &pair);
    kedge_buf_init(&text, KEDGE_VKEY_MAX + 1);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(name), KEDGE_KEY_ED25519, &pair.public, &key), KEDGE_OK);
    kedge_vkey_encode(&key, &text);
    snprintf(ret, KEDGE_VKEY_MAX + 2, "%.*s", (int)text.len, (const char *)text.ptr);
    kedge_buf_deinit(&text);
}

static const struct refusal trusts[] = {
    {"{", "["},
    {"\"deployment\"", "\"d\""},
    {"\"deployment\":\"", "\"deployment\":1,\"x\":\""},
    {"\"main_log\"", "\"m\""},
    {"d/main+", "d/main-"},
    {"\"statement_key\":\"11", "\"statement_key\":\"1"},
    {"\"tenants\"", "\"t\""},
    {"\"log\"", "\"l\""},
    {"d/a+", "d/a-"},
    {"\"tenant\":\"a\"", "\"tenant\":\"b\""},
};
enum { TRUSTS = sizeof trusts / sizeof trusts[0] };

static void sample_trust(char *ret, size_t max)
{
    char main_log[KEDGE_VKEY_MAX + 2], log[KEDGE_VKEY_MAX + 2];
    vkey("d/main", main_log);
    vkey("d/a", log);
    snprintf(ret, max,
             "{\"deployment\":\"d\",\"main_log\":\"%s\",\"statement_key\":\"%s\","
             "\"tenants\":[7,{\"tenant\":\"a\",\"log\":\"%s\"}]}",
             main_log, KEY, log);
}

START_TEST(test_trust_refused)
{
    char text[2048], bad[2048];
    const struct refusal *r = &trusts[_i];
    struct kedge_id tenant = {"a"};
    struct kedge_site_trust t = {.known = false};
    struct kedge_diag d = {.text = ""};
    sample_trust(text, sizeof text);
    const char *at = strstr(text, r->text);
    ck_assert_msg(at != NULL, "%s is not in %s", r->text, text);
    snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - text), text, r->said, at + strlen(r->text));
    ck_assert_msg(kedge_site_trust_parse(kedge_view_str(bad), "x/trust.json", &tenant, &t, &d)
                      == KEDGE_E_FORMAT,
                  "%s", bad);
    ck_assert(strncmp(d.text, "x/trust.json: ", 14) == 0 && !t.known);
}
END_TEST

START_TEST(test_trust_taken)
{
    char text[2048];
    struct kedge_id tenant = {"a"};
    struct kedge_site_trust t;
    sample_trust(text, sizeof text);
    ck_assert_int_eq(kedge_site_trust_parse(kedge_view_str(text), "x", &tenant, &t, NULL), KEDGE_OK);
    ck_assert(t.known && strcmp(t.deployment, "d") == 0 && t.statement_key.b[31] == 0x11);
    ck_assert(strcmp(t.main_log.name, "d/main") == 0 && strcmp(t.tenant_log.name, "d/a") == 0);
}
END_TEST

/* ---- memory ---- */

static const struct refusal memories[] = {
    {"\"kind\":2", "\"kind\":4"},
    {"\"kind\":2", "\"kind\":0"},
    {"\"kind\":2", "\"kind\":\"train\""},
    {"\"kind\":2", "\"kind\":4294967298"},
    {"\"round\":7", "\"round\":-1"},
    {"\"round\":7", "\"round\":1000001"},
    {"\"round\":7", "\"round\":4294967303"},
    {"\"round\":7", "\"round\":7.0"},
    {"\"group\":1", "\"group\":64"},
    {"\"group\":1", "\"group\":-1"},
    {"\"update_len\":99", "\"update_len\":-99"},
    {"\"update_len\":99", "\"update_len\":9007199254740993"},
    {"\"update_len\":99", "\"update_long\":99"},
    {"\"job\":\"j\"", "\"job\":\"J\""},
    {"\"base\":\"01", "\"base\":\"1"},
    {"\"signed\":\"text", "\"signed\":\"taxt"},
    {"\"enrolled\":true", "\"enrolled\":1"},
    {"\"results\":[", "\"results\":[0,"},
    {"\"results\":[", "\"results\":{},\"y\":["},
    {"\"signed\":[", "\"signed\":{},\"y\":["},
    {"\"signed\":[", "\"signed\":[0,"},
    {"\"work\":0", "\"work\":4"},
    {"\"work\":0", "\"work\":-1"},
    {"\"work\":0", "\"work\":\"0\""},
    {"\"job\":\"k\"", "\"job\":\"\""},
    {"\"kind\":1", "\"kind\":3"},
    {"\"round\":8", "\"round\":1000001"},
    {"\"kept\":[", "\"kept\":{},\"y\":["},
    {"\"kept\":[", "\"kept\":[0,"},
    {"\"accepted\":\"05", "\"accepted\":\"5"},
    {"\"pending\":\"06", "\"pending\":\"G6"},
};
enum { MEMORIES = sizeof memories / sizeof memories[0] };

static void sample(struct kedge_site_stored *s, struct kedge_buf *text)
{
    static char signed_text[] = "text of an envelope";
    struct kedge_hash hash;
    *s = (struct kedge_site_stored){
        .memory =
            {.enrolled = true,
             .result_count = 1,
             .results = {{.job = {"j"}, .kind = KEDGE_SITE_TRAIN, .round = 7, .group = 1, .update_len = 99}}},
        .signeds = {1, {{{"k"}, KEDGE_SITE_PRETRAIN, 8}}},
        .kept = {1, {{{"c"}, {{5}}, {{6}}}}}};
    s->memory.results[0].base.b[0] = 1;
    kedge_sha256(kedge_view_str(signed_text), &hash);
    memcpy(s->memory.results[0].envelope.b, hash.b, sizeof hash.b);
    s->envelopes[1] =
        (struct kedge_site_envelope){s->memory.results[0].envelope, signed_text, strlen(signed_text)};
    kedge_buf_init(text, KEDGE_STORED_TEXT_MAX);
    ck_assert_int_eq(kedge_stored_encode(s, text), KEDGE_OK);
    kedge_buf_put_u8(text, '\0');
}

START_TEST(test_memory_refused)
{
    struct kedge_site_stored s, back = {.memory = {.result_count = 77}};
    struct kedge_buf text;
    struct kedge_diag d = {.text = ""};
    const struct refusal *r = &memories[_i];
    char bad[2048];
    sample(&s, &text);
    const char *all = (const char *)text.ptr, *at = strstr(all, r->text);
    ck_assert_msg(at != NULL, "%s is not in %s", r->text, all);
    snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - all), all, r->said, at + strlen(r->text));
    ck_assert_msg(kedge_stored_decode(kedge_view_str(bad), &back, &d) == KEDGE_E_FORMAT, "%s", bad);
    ck_assert(d.text[0] != '\0' && back.memory.result_count == 77);
    kedge_buf_deinit(&text);
}
END_TEST

/* What a site wrote that was in one job at a time. */
START_TEST(test_memory_of_one_job_at_a_time)
{
    static const struct kedge_id k = {"k"};
    struct kedge_site_stored back;
    const char *old =
        "{\"enrolled\":true,\"results\":[],\"last_signed\":{\"job\":\"k\",\"kind\":2,\"round\":9}}";
    ck_assert_int_eq(kedge_stored_decode(kedge_view_str(old), &back, NULL), KEDGE_OK);
    ck_assert(back.memory.enrolled && kedge_signeds_has(&back.signeds, &k, KEDGE_SITE_TRAIN, 9));
    kedge_stored_deinit(&back);
}
END_TEST

/* Two works may not have one job, nor one work two. */
START_TEST(test_memory_of_works)
{
    struct kedge_site_stored s, back;
    struct kedge_buf text;
    for (int i = 0; i < 4; i++) {
        bool same_job = (i & 1) != 0, same_work = (i & 2) != 0;
        sample(&s, &text);
        kedge_buf_deinit(&text);
        kedge_buf_init(&text, KEDGE_STORED_TEXT_MAX);
        struct kedge_site_result *other = &s.memory.results[s.memory.result_count++];
        *other = s.memory.results[0];
        other->job.s[0] = same_job ? other->job.s[0] : 'z';
        other->work = same_work ? 0 : 3;
        ck_assert_int_eq(kedge_stored_encode(&s, &text), KEDGE_OK);
        int err = kedge_stored_decode(kedge_buf_view(&text), &back, NULL);
        ck_assert_int_eq(err, same_job == same_work ? KEDGE_OK : KEDGE_E_FORMAT);
        if (!err) {
            ck_assert_uint_eq(back.memory.results[1].work, other->work);
            kedge_stored_deinit(&back);
        }
        kedge_buf_deinit(&text);
    }
}
END_TEST

/* Of each job and kind the last task, of many the oldest goes. */
START_TEST(test_signeds)
{
    struct kedge_site_signeds s = {.count = 0};
    struct kedge_id job = {"a"};
    kedge_signeds_note(&s, &job, KEDGE_SITE_PRETRAIN, 1);
    kedge_signeds_note(&s, &job, KEDGE_SITE_TRAIN, 1);
    ck_assert(kedge_signeds_has(&s, &job, KEDGE_SITE_PRETRAIN, 1));
    kedge_signeds_note(&s, &job, KEDGE_SITE_TRAIN, 2);
    ck_assert(!kedge_signeds_has(&s, &job, KEDGE_SITE_TRAIN, 1) && s.count == 2);
    for (int i = 0; i < KEDGE_SIGNEDS_MAX; i++) {
        struct kedge_id other = {"b0"};
        other.s[1] = (char)('A' + i);
        kedge_signeds_note(&s, &other, KEDGE_SITE_TRAIN, 1);
    }
    ck_assert(s.count == KEDGE_SIGNEDS_MAX && !kedge_signeds_has(&s, &job, KEDGE_SITE_TRAIN, 2));
}
END_TEST

START_TEST(test_memory_back)
{
    struct kedge_site_stored s, back;
    struct kedge_buf text;
    sample(&s, &text);
    ck_assert_int_eq(kedge_stored_decode(kedge_view_of(text.ptr, text.len - 1), &back, NULL), KEDGE_OK);
    const struct kedge_site_result *r = &back.memory.results[0];
    ck_assert(back.memory.enrolled && back.memory.result_count == 1 && r->kind == KEDGE_SITE_TRAIN);
    ck_assert(r->round == 7 && r->group == 1 && r->update_len == 99 && r->base.b[0] == 1);
    ck_assert(back.envelopes[0].len == s.envelopes[1].len && !back.envelopes[1].text);
    static const struct kedge_id k = {"k"}, j = {"j"};
    ck_assert(kedge_signeds_has(&back.signeds, &k, KEDGE_SITE_PRETRAIN, 8));
    ck_assert(!kedge_signeds_has(&back.signeds, &k, KEDGE_SITE_TRAIN, 8));
    ck_assert(!kedge_signeds_has(&back.signeds, &j, KEDGE_SITE_PRETRAIN, 8));
    ck_assert(back.kept.count == 1 && strcmp(back.kept.items[0].job.s, "c") == 0);
    ck_assert(back.kept.items[0].accepted.b[0] == 5 && back.kept.items[0].pending.b[0] == 6);
    ck_assert_ptr_eq(kedge_envelope_find(back.envelopes, &r->envelope), &back.envelopes[0]);
    kedge_stored_deinit(&back);
    ck_assert_ptr_null(kedge_envelope_find(back.envelopes, &r->envelope));
    s.envelopes[1].text = NULL; /* a result without its envelope is never written */
    kedge_buf_clear(&text);
    ck_assert_int_eq(kedge_stored_encode(&s, &text), KEDGE_E_BUG);
    kedge_buf_deinit(&text);
}
END_TEST

/* ---- the trainer's answer ---- */

#define OK_TRAIN "{\"status\":\"ok\",\"seconds\":\"1\",\"samples\":2,\"steps\":3"

static const struct refusal answers[] = {
    {"", "empty, expected"},
    {"ok", "not valid JSON"},
    {"{}", "an answer without status"},
    {"{\"status\":\"error\",\"message\":\"no such file\"}", "trainer: no such file"},
    {"{\"status\":\"ok\",\"status\":\"ok\"}", "duplicate"},
    {"{\"status\":\"ok\",\"x\":" DEEP "}", "nested deeper"},
    {"{\"status\":\"ok\",\"seconds\":\"1\",\"samples\":2}", "lacks a metric"},
    {"{\"status\":\"ok\",\"seconds\":1,\"samples\":2,\"steps\":3}", "bad one"},
    {"{\"status\":\"ok\",\"seconds\":\"-1\",\"samples\":2,\"steps\":3}", "bad one"},
    {"{\"status\":\"ok\",\"seconds\":\"1e999\",\"samples\":2,\"steps\":3}", "bad one"},
    {"{\"status\":\"ok\",\"seconds\":\"1\",\"samples\":-2,\"steps\":3}", "bad one"},
    {"{\"status\":\"ok\",\"seconds\":\"1\",\"samples\":9007199254740993,\"steps\":3}", "bad one"},
    {OK_TRAIN ",\"test_samples\":4}", "lacks a metric"},
    {OK_TRAIN ",\"test_samples\":4,\"test_correct\":5,\"test_loss\":\"1\"}", "bad one"},
    {OK_TRAIN ",\"test_samples\":4,\"test_correct\":4,\"test_loss\":\"nan\"}", "bad one"},
    {OK_TRAIN ",\"classes\":\"a\"}", "expected \"classes\", a list"},
    {OK_TRAIN ",\"classes\":[1]}", "expected \"classes\", a list"},
    {OK_TRAIN ",\"classes\":[\"\"]}", "expected \"classes\", a list"},
    {OK_TRAIN ",\"classes\":[\"a\\u001b\"]}", "expected \"classes\", a list"},
};
enum { ANSWERS = sizeof answers / sizeof answers[0] };

START_TEST(test_answer_refused)
{
    struct kedge_metrics m = {.samples = 77};
    struct kedge_diag d = {.text = ""};
    const struct refusal *r = &answers[_i];
    ck_assert_int_eq(kedge_metrics_parse(kedge_view_str(r->text), true, true, &m, &d), KEDGE_E_TRAINER);
    ck_assert_msg(strncmp(d.text, "trainer: ", 9) == 0 && strstr(d.text, r->said), "%s: %s", r->text, d.text);
    ck_assert_uint_eq(m.samples, 77);
}
END_TEST

START_TEST(test_answer_taken)
{
    struct kedge_metrics m;
    ck_assert_int_eq(kedge_metrics_parse(kedge_view_str(OK_TRAIN "}"), true, true, &m, NULL), KEDGE_OK);
    ck_assert(m.samples == 2 && m.steps == 3 && m.test_samples == 0 && strcmp(m.engine, "unknown") == 0);
    ck_assert(!m.has_base_loss && m.classes[0] == '\0');
    ck_assert_int_eq(kedge_metrics_parse(kedge_view_str(OK_TRAIN ",\"classes\":[\"b\",\"a\",\"b\"]}"), true,
                                         true, &m, NULL),
                     KEDGE_OK);
    ck_assert_mem_eq(m.classes, "a\0b\0", 5);
    ck_assert_int_eq(
        kedge_metrics_parse(kedge_view_str(OK_TRAIN ",\"base_loss\":\"0.5\"}"), true, true, &m, NULL),
        KEDGE_OK);
    ck_assert(m.has_base_loss && m.base_loss == 0.5);
    static const char *const wrong[] = {"\"-0.5\"", "0.5", "\"inf\""};
    for (int i = 0; i < 3; i++) {
        char text[256];
        snprintf(text, sizeof text, OK_TRAIN ",\"base_loss\":%s}", wrong[i]);
        ck_assert_int_eq(kedge_metrics_parse(kedge_view_str(text), true, true, &m, NULL), KEDGE_E_TRAINER);
    }
    const char *test = "{\"status\":\"ok\",\"seconds\":\"0\",\"test_samples\":4,\"test_correct\":3,"
                       "\"test_loss\":\"0.5\",\"engine\":\"a\\nb\"}";
    ck_assert_int_eq(kedge_metrics_parse(kedge_view_str(test), false, true, &m, NULL), KEDGE_OK);
    ck_assert(m.test_correct == 3 && strcmp(m.engine, "a b") == 0 && !m.fallback[0]);
    ck_assert_int_eq(
        kedge_metrics_parse(kedge_view_str(OK_TRAIN ",\"fallback\":\"no\\tdevice\"}"), true, true, &m, NULL),
        KEDGE_OK);
    ck_assert_str_eq(m.fallback, "no device");
    ck_assert_int_eq(kedge_metrics_parse(kedge_view_str(test), true, true, &m, NULL), KEDGE_E_TRAINER);
}
END_TEST

/* A long name is cut between characters: 63 letters and a two-byte one leave 63. */
START_TEST(test_answer_engine)
{
    char text[256], name[64];
    struct kedge_metrics m;
    memset(name, 'e', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(text, sizeof text, OK_TRAIN ",\"engine\":\"%s\xc3\xa9tc\"}", name);
    ck_assert_int_eq(kedge_metrics_parse(kedge_view_str(text), true, false, &m, NULL), KEDGE_OK);
    ck_assert_str_eq(m.engine, name);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client-text");
    TCase *t = tcase_create("text");
    tcase_add_loop_test(t, test_policy_refused, 0, POLICIES);
    tcase_add_test(t, test_policy_taken);
    tcase_add_test(t, test_policy_device);
    tcase_add_test(t, test_policy_tell);
    tcase_add_test(t, test_policy_lists);
    tcase_add_loop_test(t, test_site_refused, 0, 8);
    tcase_add_test(t, test_site_taken);
    tcase_add_loop_test(t, test_trust_refused, 0, TRUSTS);
    tcase_add_test(t, test_trust_taken);
    tcase_add_loop_test(t, test_memory_refused, 0, MEMORIES);
    tcase_add_test(t, test_memory_back);
    tcase_add_test(t, test_memory_of_one_job_at_a_time);
    tcase_add_test(t, test_memory_of_works);
    tcase_add_test(t, test_signeds);
    tcase_add_loop_test(t, test_answer_refused, 0, ANSWERS);
    tcase_add_test(t, test_answer_taken);
    tcase_add_test(t, test_answer_engine);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
