/* Records of coordinator.lmdb: whole ones come back as they were, damaged ones are refused by table and key.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "chain/statement/statement.h"
#include "coordinator/daemon/records.h"
#include "tests/unit/base/check.h"

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define NAMES "\"tenant\":\"org-a\",\"site\":\"site-1\""
#define KEYS "\"tls_key\":\"" HASH "\",\"statement_key\":\"" HASH "\""
#define JOB_BUT(rest) "{\"job\":\"demo\",\"spec\":\"" HASH "\",\"initial_model\":\"" HASH "\"," rest "}"

static const char digest[KEDGE_HASH_LEN + 1] = "0123456789abcdef0123456789abcdef"; /* any 32 bytes */

enum table { TOKEN, JOB };
static const struct {
    enum table table;
    const char *key, *text, *said; /* said NULL: it is taken */
} texts[] = {
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":1}", NULL},
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":9007199254740992," KEYS "}", NULL},
    {TOKEN, "short", "{" NAMES ",\"expiry_s\":1}", "the key is no digest"},
    {TOKEN, digest, "", "damaged record: record: "},
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":1", "not valid JSON"},
    {TOKEN, digest, "[]", "expected a JSON object"},
    {TOKEN, digest, "{" NAMES "}", "\"expiry_s\" is missing"},
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":-1}", "\"expiry_s\" has no right value"},
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":9007199254740993}", "\"expiry_s\" has no right value"},
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":1.5}", "\"expiry_s\" has no right value"},
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":\"1\"}", "\"expiry_s\" has no right value"},
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":1,\"expiry_s\":2}", "duplicate"},
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":1,\"ttl\":2}", "unknown key \"ttl\""},
    {TOKEN, digest, "{\"tenant\":\"Org\",\"site\":\"s\",\"expiry_s\":1}", "\"tenant\" has no right value"},
    {TOKEN, digest, "{\"tenant\":\"org\",\"site\":7,\"expiry_s\":1}", "\"site\" has no right value"},
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":1,\"tls_key\":\"" HASH "\"}", "stand together"},
    {TOKEN, digest, "{" NAMES ",\"expiry_s\":1,\"tls_key\":\"00\",\"statement_key\":\"" HASH "\"}",
     "\"tls_key\" has no right value"},
    {JOB, "demo", JOB_BUT("\"state\":9,\"reason\":-8,\"created_ms\":0,\"token\":\"" HASH "\""), NULL},
    {JOB, "demo", JOB_BUT("\"state\":0,\"reason\":0,\"created_ms\":1,\"token\":\"\""), NULL},
    {JOB, "other", JOB_BUT("\"state\":0,\"reason\":0,\"created_ms\":1,\"token\":\"\""),
     "\"job\" is another one"},
    {JOB, "demo", JOB_BUT("\"state\":10,\"reason\":0,\"created_ms\":1,\"token\":\"\""),
     "\"state\" has no right value"},
    {JOB, "demo", JOB_BUT("\"state\":-1,\"reason\":0,\"created_ms\":1,\"token\":\"\""),
     "\"state\" has no right value"},
    {JOB, "demo", JOB_BUT("\"state\":4294967296,\"reason\":0,\"created_ms\":1,\"token\":\"\""),
     "\"state\" has no right value"},
    {JOB, "demo", JOB_BUT("\"state\":0,\"reason\":1,\"created_ms\":1,\"token\":\"\""),
     "\"reason\" has no right value"},
    {JOB, "demo", JOB_BUT("\"state\":0,\"reason\":-99,\"created_ms\":1,\"token\":\"\""),
     "\"reason\" is no error"},
    {JOB, "demo", JOB_BUT("\"state\":0,\"reason\":0,\"created_ms\":-1,\"token\":\"\""),
     "\"created_ms\" has no right value"},
    {JOB, "demo", JOB_BUT("\"state\":0,\"reason\":0,\"created_ms\":1,\"token\":\"00\""),
     "\"token\" has no right value"},
    {JOB, "demo", JOB_BUT("\"state\":0,\"reason\":0,\"created_ms\":1,\"token\":\"" HASH "00\""),
     "\"token\" has no right value"},
    {JOB, "demo", JOB_BUT("\"state\":0,\"reason\":0,\"created_ms\":1,\"token\":null"),
     "\"token\" has no right value"},
    {JOB, "demo", JOB_BUT("\"state\":0,\"reason\":0,\"created_ms\":1"), "\"token\" is missing"},
    {JOB, "demo", "{\"job\":\"demo\",\"spec\":\"" HASH "\"}", "\"initial_model\" is missing"},
};

static int decode_text(enum table table, struct kedge_view key, struct kedge_view text, struct kedge_diag *d)
{
    struct kedge_token_record token;
    struct kedge_job_record job;
    return table == TOKEN ? kedge_token_record_decode(key, text, &token, d)
                          : kedge_job_record_decode(key, text, &job, d);
}

START_TEST(test_texts)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct kedge_diag d = {.text = ""};
        int err =
            decode_text(texts[i].table, kedge_view_str(texts[i].key), kedge_view_str(texts[i].text), &d);
        ck_assert_msg(err == (texts[i].said ? KEDGE_E_CORRUPT : KEDGE_OK), "%s: %d", texts[i].text, err);
        if (texts[i].said) {
            ck_assert_msg(strstr(d.text, texts[i].said) != NULL, "%s: %s", texts[i].text, d.text);
            ck_assert_msg(strstr(d.text, texts[i].table == TOKEN ? "table token" : "table job") != NULL
                              && strstr(d.text, texts[i].key) != NULL,
                          "%s: %s", texts[i].text, d.text);
        }
    }
}
END_TEST

/* Every byte of a record is flipped, and every beginning of it is tried: an error, or a record in range. */
START_TEST(test_torn)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct kedge_view key = kedge_view_str(texts[i].key);
        char text[KEDGE_RECORD_MAX];
        size_t len = strlen(texts[i].text);
        for (size_t at = 0; at < len && !texts[i].said; at++) {
            struct kedge_diag d = {.text = ""};
            ck_assert_int_eq(decode_text(texts[i].table, key, kedge_view_of(texts[i].text, at), &d),
                             KEDGE_E_CORRUPT);
            memcpy(text, texts[i].text, len);
            text[at] = (char)(text[at] ^ 0x80); /* never UTF-8 */
            ck_assert_int_eq(decode_text(texts[i].table, key, kedge_view_of(text, len), &d), KEDGE_E_CORRUPT);
        }
    }
}
END_TEST

/* A viewer's tenant and name are in the key. */
START_TEST(test_viewers)
{
    static const struct {
        const char *key, *text, *said; /* said NULL: it is taken */
    } rows[] = {
        {"viewer/org-a/board", "{\"key\":\"" HASH "\",\"since_s\":7}", NULL},
        {"viewer/org-a", "{\"key\":\"" HASH "\",\"since_s\":7}", "not that of a viewer"},
        {"viewer/org-a/", "{\"key\":\"" HASH "\",\"since_s\":7}", "not that of a viewer"},
        {"viewer//board", "{\"key\":\"" HASH "\",\"since_s\":7}", "not that of a viewer"},
        {"viewer/org-a/b/c", "{\"key\":\"" HASH "\",\"since_s\":7}", "not that of a viewer"},
        {"view", "{\"key\":\"" HASH "\",\"since_s\":7}", "not that of a viewer"},
        {"viewer/org-a/board", "{\"key\":\"00\",\"since_s\":7}", "\"key\" has no right value"},
        {"viewer/org-a/board", "{\"key\":\"" HASH "\"}", "\"since_s\" is missing"},
        {"viewer/org-a/board", "{\"key\":\"" HASH "\",\"since_s\":-1}", "\"since_s\" has no right value"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_diag d = {.text = ""};
        struct kedge_viewer_record r;
        struct kedge_buf key, text;
        int err =
            kedge_viewer_record_decode(kedge_view_str(rows[i].key), kedge_view_str(rows[i].text), &r, &d);
        ck_assert_msg(err == (rows[i].said ? KEDGE_E_CORRUPT : KEDGE_OK), "%s: %d", rows[i].key, err);
        if (err) {
            ck_assert_msg(strstr(d.text, rows[i].said) != NULL, "%s: %s", rows[i].key, d.text);
            continue;
        }
        kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
        kedge_buf_init(&text, KEDGE_RECORD_MAX);
        ck_assert_int_eq(kedge_viewer_record_encode(&r, &key, &text), KEDGE_OK);
        ck_assert(kedge_view_eq(kedge_buf_view(&key), kedge_view_str(rows[i].key)));
        ck_assert(kedge_view_eq(kedge_buf_view(&text), kedge_view_str(rows[i].text)));
        kedge_buf_deinit(&key);
        kedge_buf_deinit(&text);
    }
}
END_TEST

START_TEST(test_tokens_come_back)
{
    struct kedge_token_record r = {.tenant = {"org-a"}, .site = {"site-1"}, .expiry_s = 1234567890}, same;
    struct kedge_view key = kedge_view_str(digest);
    for (int used = 0; used < 2; used++) {
        struct kedge_buf text;
        kedge_buf_init(&text, KEDGE_RECORD_MAX);
        r.used = used != 0;
        memset(r.tls_key.b, used ? 0xab : 0, sizeof r.tls_key.b);
        memset(r.statement_key.b, used ? 0xcd : 0, sizeof r.statement_key.b);
        ck_assert_int_eq(kedge_token_record_encode(&r, &text), KEDGE_OK);
        ck_assert_int_eq(kedge_token_record_decode(key, kedge_buf_view(&text), &same, NULL), KEDGE_OK);
        ck_assert(kedge_id_eq(&same.tenant, &r.tenant) && kedge_id_eq(&same.site, &r.site));
        ck_assert(same.expiry_s == r.expiry_s && same.used == r.used);
        ck_assert(kedge_public_key_eq(&same.tls_key, &r.tls_key));
        ck_assert(kedge_public_key_eq(&same.statement_key, &r.statement_key));
        kedge_buf_deinit(&text);
    }
}
END_TEST

START_TEST(test_read_tokens)
{
    static const struct {
        const char *text, *said; /* NULL: it is taken */
    } rows[] = {
        {"{\"name\":\"n\",\"auditor\":0,\"tenant\":\"a\",\"created_s\":1,\"expiry_s\":2,\"revoked_s\":0}",
         NULL},
        {"{\"name\":\"n\",\"auditor\":1,\"created_s\":1,\"expiry_s\":2,\"revoked_s\":3}", NULL},
        {"{\"name\":\"n\",\"auditor\":1,\"tenant\":\"a\",\"created_s\":1,\"expiry_s\":2,\"revoked_s\":0}",
         "an auditor's or a tenant's"},
        {"{\"name\":\"n\",\"auditor\":0,\"created_s\":1,\"expiry_s\":2,\"revoked_s\":0}",
         "an auditor's or a tenant's"},
        {"{\"name\":\"n\",\"tenant\":\"a\",\"created_s\":1,\"expiry_s\":2,\"revoked_s\":0}",
         "\"auditor\" is missing"},
        {"{\"name\":\"n\",\"auditor\":2,\"created_s\":1,\"expiry_s\":2,\"revoked_s\":0}",
         "\"auditor\" has no right"},
        {"{\"name\":\"n\",\"auditor\":true,\"created_s\":1,\"expiry_s\":2,\"revoked_s\":0}",
         "\"auditor\" has no right"},
        {"{\"name\":\"n\",\"auditor\":1,\"created_s\":1,\"revoked_s\":0}", "\"expiry_s\" is missing"},
        {"{\"name\":\"n\",\"auditor\":1,\"created_s\":1,\"expiry_s\":2}", "\"revoked_s\" is missing"},
    };
    uint8_t bytes[KEDGE_READ_TOKEN_KEY_LEN] = {0};
    struct kedge_view key = kedge_view_of(bytes, sizeof bytes),
                      shorter = kedge_view_of(bytes, sizeof bytes - 1);
    kedge_read_token_key((const uint8_t *)digest, bytes);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_read_token_record r, same;
        struct kedge_diag d = {.text = ""};
        struct kedge_view text = kedge_view_str(rows[i].text);
        struct kedge_buf again;
        kedge_buf_init(&again, KEDGE_RECORD_MAX);
        int err = kedge_read_token_record_decode(key, text, &r, &d);
        ck_assert_int_eq(err, rows[i].said ? KEDGE_E_CORRUPT : KEDGE_OK);
        ck_assert_msg(!rows[i].said || (strstr(d.text, rows[i].said) && strstr(d.text, "table state")), "%s",
                      d.text);
        if (!err) {
            ck_assert_int_eq(kedge_read_token_record_encode(&r, &again), KEDGE_OK);
            ck_assert(kedge_view_eq(kedge_buf_view(&again), text));
            ck_assert_int_eq(kedge_read_token_record_decode(key, text, &same, &d), KEDGE_OK);
            ck_assert_mem_eq(&r, &same, sizeof r);
        }
        ck_assert_int_eq(kedge_read_token_record_decode(shorter, text, &r, &d), KEDGE_E_CORRUPT);
        bytes[0] ^= 1; /* never under another key */
        ck_assert_int_eq(kedge_read_token_record_decode(key, text, &r, &d), KEDGE_E_CORRUPT);
        bytes[0] ^= 1;
        kedge_buf_deinit(&again);
    }
}
END_TEST

START_TEST(test_jobs_come_back)
{
    struct kedge_job_record r = {.job = {"demo"},
                                 .state = KEDGE_JOB_HALTED,
                                 .reason = KEDGE_E_DISK_FULL,
                                 .created_ms = 1700000000123,
                                 .token = HASH},
                            same;
    struct kedge_buf text;
    memset(r.spec.b, 1, sizeof r.spec.b);
    memset(r.initial_model.b, 2, sizeof r.initial_model.b);
    kedge_buf_init(&text, KEDGE_RECORD_MAX);
    ck_assert_int_eq(kedge_job_record_encode(&r, &text), KEDGE_OK);
    ck_assert_int_eq(kedge_job_record_decode(kedge_view_str("demo"), kedge_buf_view(&text), &same, NULL),
                     KEDGE_OK);
    ck_assert(kedge_hash_eq(&same.spec, &r.spec) && kedge_hash_eq(&same.initial_model, &r.initial_model));
    ck_assert(same.state == r.state && same.reason == r.reason && same.created_ms == r.created_ms);
    ck_assert_str_eq(same.token, HASH);
    kedge_buf_deinit(&text);
}
END_TEST

/* ---- refusals ---- */

static const struct kedge_refusal_record refusal = {.job = {"demo"},
                                                    .tenant = {"org-a"},
                                                    .site = {"site-1"},
                                                    .round = 7,
                                                    .kind = KEDGE_TASK_TRAIN,
                                                    .err = KEDGE_E_WEIGHT,
                                                    .envelope = {{1, 2, 3}},
                                                    .update = {{4, 5, 6}},
                                                    .weight = 11};
static const char refusal_key[] = "demo/00000007/org-a/site-1/2";

static const char *const bad_keys[] = {"",
                                       "demo",
                                       "demo/",
                                       "demo/00000007",
                                       "demo/00000007/org-a/site-1/",
                                       "demo/00000007/org-a/site-1",
                                       "Demo/00000007/org-a/site-1/2",
                                       "demo/7/org-a/site-1/2",
                                       "demo/0000000x/org-a/site-1/2",
                                       "demo/01000001/org-a/site-1/2",
                                       "demo/000000007/org-a/site-1/2",
                                       "demo/00000007//site-1/2",
                                       "demo/00000007/org-a/site 1/2",
                                       "demo/00000007/org-a/site-1/0",
                                       "demo/00000007/org-a/site-1/3",
                                       "demo/00000007/org-a/site-1/22",
                                       "demo/00000007/org-a/site-1/2/"};

START_TEST(test_refusals)
{
    struct kedge_buf key, value;
    struct kedge_refusal_record same;
    struct kedge_diag d = {.text = ""};
    kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&value, KEDGE_RECORD_MAX);
    kedge_refusal_record_encode(&refusal, &key, &value);
    ck_assert(kedge_view_eq(kedge_buf_view(&key), kedge_view_str(refusal_key)));
    ck_assert_uint_eq(value.len, 76);
    ck_assert_int_eq(kedge_refusal_record_decode(kedge_buf_view(&key), kedge_buf_view(&value), &same, &d),
                     KEDGE_OK);
    ck_assert(kedge_id_eq(&same.job, &refusal.job) && kedge_id_eq(&same.tenant, &refusal.tenant)
              && kedge_id_eq(&same.site, &refusal.site));
    ck_assert(same.round == 7 && same.kind == KEDGE_TASK_TRAIN && same.err == KEDGE_E_WEIGHT
              && same.weight == 11);
    ck_assert(kedge_hash_eq(&same.envelope, &refusal.envelope)
              && kedge_hash_eq(&same.update, &refusal.update));
    for (size_t i = 0; i < sizeof bad_keys / sizeof bad_keys[0]; i++) {
        d.text[0] = '\0';
        ck_assert_msg(
            kedge_refusal_record_decode(kedge_view_str(bad_keys[i]), kedge_buf_view(&value), &same, &d)
                == KEDGE_E_CORRUPT,
            "%s", bad_keys[i]);
        ck_assert_ptr_nonnull(strstr(d.text, "table round, key"));
    }
    kedge_buf_put_u8(&value, 0);
    for (size_t len = 0; len <= value.len; len++) {
        int err = kedge_refusal_record_decode(kedge_buf_view(&key), kedge_view_of(value.ptr, len), &same, &d);
        ck_assert_int_eq(err, len == 76 ? KEDGE_OK : KEDGE_E_CORRUPT);
    }
    kedge_buf_deinit(&key);
    kedge_buf_deinit(&value);
}
END_TEST

static const struct {
    int err;
    uint64_t weight;
    const char *said;
} values[] = {
    {KEDGE_OK, 1, "its reason is no refusal"},
    {KEDGE_E_DISK_FULL, 1, "its reason is no refusal"},
    {1, 1, "its reason is no refusal"},
    {INT32_MIN, 1, "its reason is no refusal"},
    {KEDGE_E_BOUND, KEDGE_ST_COUNT_MAX + 1, "its weight is out of range"},
    {KEDGE_E_BOUND, UINT64_MAX, "its weight is out of range"},
    {KEDGE_E_BOUND, KEDGE_ST_COUNT_MAX, NULL},
};

START_TEST(test_refusal_values)
{
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct kedge_refusal_record r = refusal, same;
        struct kedge_diag d = {.text = ""};
        struct kedge_buf key, value;
        kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
        kedge_buf_init(&value, KEDGE_RECORD_MAX);
        r.err = values[i].err;
        r.weight = values[i].weight;
        kedge_refusal_record_encode(&r, &key, &value);
        int err = kedge_refusal_record_decode(kedge_buf_view(&key), kedge_buf_view(&value), &same, &d);
        ck_assert_int_eq(err, values[i].said ? KEDGE_E_CORRUPT : KEDGE_OK);
        ck_assert(!values[i].said || (strstr(d.text, values[i].said) && strstr(d.text, refusal_key)));
        kedge_buf_deinit(&key);
        kedge_buf_deinit(&value);
    }
}
END_TEST

/* Each byte of a move is looked at: its key, whether a job may move so, who and when. */
START_TEST(test_moves_come_back)
{
    const struct kedge_job_move m = {.job = {"demo.1"},
                                     .sequence = 1234567,
                                     .epoch = 3,
                                     .from = KEDGE_JOB_TRAINING,
                                     .to = KEDGE_JOB_HALTED,
                                     .cause = KEDGE_CAUSE_SITE,
                                     .reason = KEDGE_E_SITES,
                                     .ms = UINT64_C(1) << 53,
                                     .actor = "operator alice"};
    struct kedge_buf key, value;
    struct kedge_job_move same;
    kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&value, KEDGE_RECORD_MAX);
    kedge_job_move_encode(&m, &key, &value);
    ck_assert(kedge_view_eq(kedge_buf_view(&key), kedge_view_str("job-move/demo.1/0001234567")));
    ck_assert_int_eq(kedge_job_move_decode(kedge_buf_view(&key), kedge_buf_view(&value), &same, NULL),
                     KEDGE_OK);
    ck_assert(kedge_id_eq(&same.job, &m.job) && same.sequence == m.sequence && same.epoch == m.epoch);
    ck_assert(same.from == m.from && same.to == m.to && same.cause == m.cause && same.reason == m.reason);
    ck_assert(same.ms == m.ms);
    ck_assert_str_eq(same.actor, m.actor);
    static const struct {
        size_t at; /* of the value: this byte becomes that */
        uint8_t to;
        const char *said;
    } rows[] = {{0, 0xff, "out of range"},  {7, 0, "out of range"},
                {8, 1, "out of range"},     {16, 0, "is no error"},
                {20, 7, "no job makes"},    {21, 1, "no job makes"},
                {21, 200, "no job makes"},  {22, KEDGE_CAUSE_COUNT, "no job makes"},
                {23, 0, "no plain text"},   {24, 0x1b, "no plain text"},
                {30, 0xff, "no plain text"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_diag d = {.text = ""};
        uint8_t was = value.ptr[rows[i].at];
        value.ptr[rows[i].at] = rows[i].to;
        int err = kedge_job_move_decode(kedge_buf_view(&key), kedge_buf_view(&value), &same, &d);
        ck_assert_msg(err == KEDGE_E_CORRUPT, "%zu: %d", i, err);
        ck_assert_msg(strstr(d.text, rows[i].said) && strstr(d.text, "job-move/demo.1"), "%zu: %s", i,
                      d.text);
        value.ptr[rows[i].at] = was;
    }
    for (size_t len = 0; len <= 23; len++) {
        ck_assert_int_eq(
            kedge_job_move_decode(kedge_buf_view(&key), kedge_view_of(value.ptr, len), &same, NULL),
            KEDGE_E_CORRUPT);
    }
    static const char *const keys[] = {"",
                                       "job-move/",
                                       "job-move/0001234567",
                                       "job-move/demo/000123456",
                                       "job-move/demo/000123456x",
                                       "job-move/demo/9999999999",
                                       "job-move/demo/4294967295",
                                       "job-move/Demo/0001234567",
                                       "job-move/a/b/0001234567",
                                       "job-token/demo/0001234567"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        ck_assert_int_eq(kedge_job_move_decode(kedge_view_str(keys[i]), kedge_buf_view(&value), &same, NULL),
                         KEDGE_E_CORRUPT);
    }
    kedge_buf_deinit(&key);
    kedge_buf_deinit(&value);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_texts,          test_torn,        test_tokens_come_back, test_jobs_come_back, test_refusals,
        test_refusal_values, test_read_tokens, test_moves_come_back,  test_viewers};
    return run_suite("coordinator-records", tests, sizeof tests / sizeof tests[0]);
}
