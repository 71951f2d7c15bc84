/* Statements: golden bytes of each kind, strictness field by field, allocation failures. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "chain/log/lines.h"
#include "chain/statement/statement_read.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "tests/unit/chain/samples.h"

static struct kedge_statement st, out; /* too large for comfort on a stack */

static void encode(const struct kedge_statement *s, struct kedge_buf *b)
{
    struct kedge_diag diag;
    kedge_buf_init(b, KEDGE_ENTRY_MAX);
    int err = kedge_statement_encode(s, b, &diag);
    ck_assert_msg(err == KEDGE_OK, "%s", diag.text);
}

static void assert_same(const struct kedge_statement *a, const struct kedge_statement *b)
{
    struct kedge_buf x KEDGE_CLEANUP(kedge_buf_deinit), y KEDGE_CLEANUP(kedge_buf_deinit);
    encode(a, &x);
    encode(b, &y);
    ck_assert(a->kind == b->kind && kedge_view_eq(kedge_buf_view(&x), kedge_buf_view(&y)));
}

/* One envelope a line, in the order of the kinds, signed by the test key of seed 01 × 32. */
START_TEST(each_kind_has_its_golden_bytes)
{
    struct kedge_buf golden KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&golden, 1024 * 1024);
    struct kedge_diag diag;
    int err = kedge_file_read("tests/unit/chain/golden/statements.jsonl", &golden, &diag);
    ck_assert_msg(err == KEDGE_OK, "%s", diag.text);
    struct kedge_view rest = kedge_buf_view(&golden);
    struct kedge_key_pair pair = sample_pair(1);
    for (unsigned kind = 0; kind < KEDGE_ST_KIND_COUNT; kind++) {
        struct kedge_view line;
        ck_assert(kedgei_take_line(&rest, &line));
        sample_statement((enum kedge_statement_kind)kind, &st);
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&b, KEDGE_ENTRY_MAX);
        ck_assert_int_eq(kedge_statement_sign(&st, &pair, &b, &diag), KEDGE_OK);
        ck_assert_msg(kedge_view_eq(kedge_buf_view(&b), line), "%s: %.*s",
                      kedge_statement_kind_name((enum kedge_statement_kind)kind), (int)b.len, (char *)b.ptr);
        memset(&out, 0xee, sizeof out);
        ck_assert_int_eq(kedge_statement_open(line, &pair.public, &out, &diag), KEDGE_OK);
        ck_assert_mem_eq(&out.subject, &st.subject, sizeof st.subject);
        assert_same(&st, &out);
    }
    ck_assert_uint_eq(rest.len, 0);
}
END_TEST

START_TEST(values_come_back_as_they_were)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    sample_statement(KEDGE_ST_UPDATE, &st);
    encode(&st, &b);
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&b), &out, NULL), KEDGE_OK);
    const struct kedge_st_update *u = &out.u.update;
    ck_assert_str_eq(u->tenant.s, "north");
    ck_assert_str_eq(u->engine, "kedge-train/0.1.0 \"cpu\"");
    ck_assert_uint_eq(u->round, 3);
    ck_assert_uint_eq(u->samples, 120);
    ck_assert(u->learning_rate == 0.1 && u->energy_joules == 2.5 && u->seconds == 0.75);
    ck_assert_int_eq((int)u->energy_quality, KEDGE_ENERGY_MODELLED);
    ck_assert_int_eq((int)u->update_kind, KEDGE_TRAIN_TRAIN);
}
END_TEST

/* Kedge's spelling is read without a JSON tree; a leading blank makes it another spelling of the same. */
START_TEST(both_readers_agree)
{
    static struct kedge_statement other;
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit), c KEDGE_CLEANUP(kedge_buf_deinit),
        again KEDGE_CLEANUP(kedge_buf_deinit);
    sample_statement((enum kedge_statement_kind)_i, &st);
    encode(&st, &b);
    kedge_buf_init(&c, KEDGE_ENTRY_MAX);
    kedge_buf_put_u8(&c, ' ');
    kedge_buf_put(&c, b.ptr, b.len);
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&b), &out, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&c), &other, NULL), KEDGE_OK);
    ck_assert(memcmp(&out, &other, sizeof out) == 0);
    encode(&other, &again);
    ck_assert(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&b)));
    for (size_t i = 0; i < b.len; i++) { /* cut short anywhere, and each byte another */
        uint8_t old = b.ptr[i];
        ck_assert_int_ne(kedge_statement_decode(kedge_view_of(b.ptr, i), &out, NULL), KEDGE_OK);
        b.ptr[i] = c.ptr[1 + i] = old ^ 1;
        int one = kedge_statement_decode(kedge_buf_view(&b), &out, NULL);
        int two = kedge_statement_decode(kedge_buf_view(&c), &other, NULL);
        ck_assert_msg((one == KEDGE_OK) == (two == KEDGE_OK), "byte %zu", i);
        ck_assert(one != KEDGE_OK || memcmp(&out, &other, sizeof out) == 0);
        b.ptr[i] = c.ptr[1 + i] = old;
    }
}
END_TEST

/* The payload with `from` replaced by `to` must be refused, and nothing written. */
static void assert_refused(enum kedge_statement_kind kind, const char *from, const char *to)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit), c KEDGE_CLEANUP(kedge_buf_deinit);
    sample_statement(kind, &st);
    encode(&st, &b);
    kedge_buf_init(&c, 2 * KEDGE_ENTRY_MAX);
    uint8_t *p = memmem(b.ptr, b.len, from, strlen(from));
    ck_assert_msg(p != NULL, "no %s in the sample", from);
    kedge_buf_put(&c, b.ptr, (size_t)(p - b.ptr));
    kedge_buf_put_str(&c, to);
    kedge_buf_put(&c, p + strlen(from), b.len - (size_t)(p - b.ptr) - strlen(from));
    struct kedge_diag diag = {0};
    memset(&out, 0x5a, sizeof out);
    int err = kedge_statement_decode(kedge_buf_view(&c), &out, &diag);
    ck_assert_msg(err == KEDGE_E_FORMAT, "%s -> %s: %s", from, to, kedge_strerror(err));
    ck_assert(diag.text[0] != '\0' && diag.err == err);
    for (size_t i = 0; i < sizeof out; i++) {
        ck_assert_uint_eq(((uint8_t *)&out)[i], 0x5a);
    }
}

/* Unknown energy is not there; zero is a number; what a site tells beside it comes back. Statements from
 * before said 0 of what was unknown, and are read. */
START_TEST(unknown_energy_is_absent)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit), c KEDGE_CLEANUP(kedge_buf_deinit),
        e KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_st_update *u = &st.u.update;
    sample_statement(KEDGE_ST_UPDATE, &st);
    u->energy_joules = (double)NAN;
    u->energy_quality = KEDGE_ENERGY_UNKNOWN;
    snprintf(u->energy_how, sizeof u->energy_how, "rapl 2, device");
    snprintf(u->choice, sizeof u->choice, "32 of 4 to 256: tried");
    encode(&st, &b);
    kedge_buf_put_u8(&b, 0);
    ck_assert(!strstr((const char *)b.ptr, "energy_joules"));
    b.len--;
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&b), &out, NULL), KEDGE_OK);
    ck_assert(isnan(out.u.update.energy_joules));
    ck_assert_str_eq(out.u.update.energy_how, "rapl 2, device");
    ck_assert_str_eq(out.u.update.choice, "32 of 4 to 256: tried");
    u->energy_joules = 0;
    u->energy_quality = KEDGE_ENERGY_MEASURED;
    encode(&st, &c);
    kedge_buf_put_u8(&c, 0);
    ck_assert_ptr_nonnull(strstr((const char *)c.ptr, "\"energy_joules\":\"0\""));
    c.len--;
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&c), &out, NULL), KEDGE_OK);
    ck_assert(!(out.u.update.energy_joules < 0) && !(out.u.update.energy_joules > 0));
    assert_refused(KEDGE_ST_UPDATE, "\"energy_joules\":\"2.5\",", "");
    assert_refused(KEDGE_ST_UPDATE, "\"modelled\"", "\"unknown\"");
    sample_statement(KEDGE_ST_UPDATE, &st);
    u->energy_joules = 0;
    u->energy_quality = KEDGE_ENERGY_UNKNOWN;
    encode(&st, &e);
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&e), &out, NULL), KEDGE_OK);
    u->energy_joules = 1;
    ck_assert_int_eq(kedge_statement_encode(&st, &e, NULL), KEDGE_E_ARG);
}
END_TEST

START_TEST(reading_is_strict)
{
    static const struct {
        enum kedge_statement_kind kind;
        const char *from, *to;
    } cases[] = {
        {KEDGE_ST_UPDATE, "Statement/v1", "Statement/v0.1"},
        {KEDGE_ST_UPDATE, "{\"_type\"", "{\"more\":1,\"_type\""},
        {KEDGE_ST_UPDATE, "kedge.dev/update/v1", "kedge.dev/update/v2"},
        {KEDGE_ST_UPDATE, "kedge.dev/update/v1", "kedge.dev/unheard/v1"},
        {KEDGE_ST_UPDATE, "\"name\":\"update\",", ""},
        {KEDGE_ST_UPDATE, "\"name\":\"update\"", "\"name\":\"model\""},
        {KEDGE_ST_UPDATE, "\"sha256\":\"abab", "\"sha256\":\"ABAB"},
        {KEDGE_ST_UPDATE, "\"sha256\":\"abab", "\"sha256\":\"ab"},
        {KEDGE_ST_UPDATE, "\"sha256\":", "\"sha512\":"},
        {KEDGE_ST_UPDATE, "\"subject\":[{", "\"subject\":[{},{"},
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\"", "\"tenant\":\"North\""},
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\"", "\"tenant\":\"\""},
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\",", ""},
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\"", "\"tenant\":\"north\",\"tenant\":\"north\""},
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\"", "\"tenant\":\"north\",\"extra\":0"},
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\"", "\"tenamt\":\"north\""},
        {KEDGE_ST_UPDATE, "\"round\":3", "\"round\":-1"},
        {KEDGE_ST_UPDATE, "\"round\":3", "\"round\":3.0"},
        {KEDGE_ST_UPDATE, "\"round\":3", "\"round\":\"3\""},
        {KEDGE_ST_UPDATE, "\"round\":3", "\"round\":4294967299"},
        {KEDGE_ST_UPDATE, "\"round\":3", "\"round\":1000001"},
        {KEDGE_ST_UPDATE, "\"round\":3", "\"round\":null"},
        {KEDGE_ST_UPDATE, "\"group\":1", "\"group\":64"},
        {KEDGE_ST_UPDATE, "\"samples\":120", "\"samples\":9007199254740993"},
        {KEDGE_ST_UPDATE, "\"samples\":120", "\"samples\":18446744073709551616"},
        {KEDGE_ST_UPDATE, "\"update_kind\":\"train\"", "\"update_kind\":\"Train\""},
        {KEDGE_ST_UPDATE, "\"learning_rate\":\"0.1\"", "\"learning_rate\":0.1"},
        {KEDGE_ST_UPDATE, "\"learning_rate\":\"0.1\"", "\"learning_rate\":\"-0.1\""},
        {KEDGE_ST_UPDATE, "\"learning_rate\":\"0.1\"", "\"learning_rate\":\"nan\""},
        {KEDGE_ST_UPDATE, "\"learning_rate\":\"0.1\"", "\"learning_rate\":\"1e999\""},
        {KEDGE_ST_UPDATE, "\"learning_rate\":\"0.1\"", "\"learning_rate\":\" 0.1\""},
        {KEDGE_ST_UPDATE, "0.1.0 ", "0.1.0\\n"},
        {KEDGE_ST_UPDATE, "0.1.0 ", "0.1.0\\u0000"},
        {KEDGE_ST_UPDATE, "0.1.0 ", "\xff"},
        {KEDGE_ST_UPDATE, "\"base\":\"1111", "\"base\":\"11"},
        {KEDGE_ST_UPDATE, "\"predicate\":{", "\"predicate\":[{"},
        {KEDGE_ST_EVALUATION, "\"correct\":37", "\"correct\":41"},
        {KEDGE_ST_KEY, "\"tenant\":\"north\"", "\"tenant\":\"-\""},
        {KEDGE_ST_KEY, "\"public_key\":\"8a88e3dd",
         "\"public_key\":\"8a88e3de"}, /* subject no longer follows */
        {KEDGE_ST_KEY, "\"sha256\":\"", "\"sha256\":\"00"},
        {KEDGE_ST_GROUP_ASSIGNED, "\"update\":\"7171", "\"update\":\"7172"},
        {KEDGE_ST_JOB_OPENED, "\"tenants\":[\"3131", "\"tenants\":[\"3331"},
        {KEDGE_ST_JOB_OPENED, "\"tenants\":[", "\"tenants\":[1,"},
        {KEDGE_ST_ROUND_OPENED, "\"seed\":\"18446744073709551615\"", "\"seed\":\"18446744073709551616\""},
        {KEDGE_ST_ROUND_OPENED, "\"seed\":\"1", "\"seed\":\"01"},
        {KEDGE_ST_ROUND_OPENED, "{\"id\":\"3131", "{\"id\":\"3331"},
        {KEDGE_ST_ROUND_OPENED, "\"candidates\":4", "\"candidates\":4097"},
        {KEDGE_ST_ROUND_OPENED, "\"candidates\":4", "\"candidates\":4,\"more\":4"},
        {KEDGE_ST_ROUND_OPENED, "\"candidates\":4,", ""},
        {KEDGE_ST_ROUND_OPENED, "\"tenants\":[{", "\"tenants\":[7,{"},
        {KEDGE_ST_AGGREGATE, "\"4611686018427387904\"", "\"4611686018427387905\""},
        {KEDGE_ST_AGGREGATE, "\"rule\":\"fedavg/v1\"", "\"rule\":\"\""},
        {KEDGE_ST_STEP, "\"group\":1", "\"group\":0"},
        {KEDGE_ST_STEP, "\"group\":0", "\"group\":2"},
        {KEDGE_ST_RELEASE, "\"file\":\"digits-", "\"file\":\"../digits-"},
        {KEDGE_ST_RELEASE, "\"file\":\"digits-group-1.safetensors\"", "\"file\":\"..\""},
        {KEDGE_ST_JOB_CLOSED, "\"outcome\":\"completed\"", "\"outcome\":\"complete\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(cases[i].kind, cases[i].from, cases[i].to);
    }
}
END_TEST

/* Absent where they are zero, so that statements which have none keep their bytes; read by both readers. */
START_TEST(optional_fields_stand_where_they_say_something)
{
    static const struct {
        enum kedge_statement_kind kind;
        const char *from, *to;
    } cases[] = {
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\"", "\"tenant\":\"north\",\"loss\":\"0\""},
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\"", "\"tenant\":\"north\",\"loss\":\"-1\""},
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\"", "\"tenant\":\"north\",\"loss\":0.5"},
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\"", "\"tenant\":\"north\",\"lost\":\"1\""},
        {KEDGE_ST_UPDATE, "\"tenant\":\"north\",", "\"loss\":\"1\","},
        {KEDGE_ST_EVALUATION, "\"correct\":37", "\"correct\":37,\"personal_correct\":41"}, /* of 40 */
        {KEDGE_ST_EVALUATION, "\"correct\":37", "\"correct\":37,\"personal_correct\":0"},
        {KEDGE_ST_STEP, "\"group\":1", "\"group\":1,\"state_after\":\"\""},
        {KEDGE_ST_STEP, "\"group\":1", "\"group\":1,\"state\":\"1\""},
        {KEDGE_ST_STEP, "\"time_ms\":1790000004500", "\"time_ms\":0"},
        {KEDGE_ST_JOB_CLOSED, "\"time_ms\":1790000009000", "\"time_ms\":9007199254740993"},
        {KEDGE_ST_JOB_OPENED, "\"time_ms\":1790000000000", "\"time_ms\":-1"},
        {KEDGE_ST_ROUND_OPENED, "\"time_ms\":1790000002000", "\"time_ms\":\"1790000002000\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(cases[i].kind, cases[i].from, cases[i].to);
    }
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    sample_statement(KEDGE_ST_UPDATE, &st);
    st.u.update.loss = 0.75;
    snprintf(st.u.update.engine, sizeof st.u.update.engine, "plain");
    encode(&st, &b);
    static const char tail[] = "\",\"loss\":\"0.75\"}}";
    ck_assert_ptr_nonnull(memmem(b.ptr, b.len, tail, sizeof tail - 1));
    ck_assert(kedgei_statement_scan(kedge_buf_view(&b), &out));
    ck_assert_double_eq(out.u.update.loss, 0.75);
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&b), &out, NULL), KEDGE_OK);
    assert_same(&st, &out);
    kedge_buf_clear(&b);
    sample_statement(KEDGE_ST_STEP, &st);
    memset(&st.u.step.groups[1].state_after, 7, sizeof st.u.step.groups[1].state_after);
    ck_assert_int_eq(kedge_statement_encode(&st, &b, NULL), KEDGE_OK);
    ck_assert(kedgei_statement_scan(kedge_buf_view(&b), &out));
    ck_assert(kedge_hash_is_zero(&out.u.step.groups[1].state_before));
    assert_same(&st, &out);
}
END_TEST

START_TEST(witnesses_are_read_strictly)
{
    static const struct {
        enum kedge_statement_kind kind;
        const char *from, *to;
    } cases[] = {
        {KEDGE_ST_WITNESS_ENROLLED, "north.example/1", "north example/1"},
        {KEDGE_ST_WITNESS_ENROLLED, "north.example/1", "north.example+1"},
        {KEDGE_ST_WITNESS_ENROLLED, "\"name\":\"witness.north.example/1\"", "\"name\":\"\""},
        {KEDGE_ST_WITNESS_ENROLLED, ",\"name\":\"witness.north.example/1\"", ""},
        {KEDGE_ST_WITNESS_ENROLLED, "\"witness\":\"north-eye\"", "\"witness\":\"north eye\""},
        {KEDGE_ST_WITNESS_ENROLLED,
         "\"tls_key\":\"8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c",
         "\"tls_key\":\"8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394"}, /* the cosign_key
                                                                                             */
        {KEDGE_ST_WITNESS_REVOKED, "\"cosign_key\":\"81", "\"cosign_key\":\"82"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(cases[i].kind, cases[i].from, cases[i].to);
    }
}
END_TEST

START_TEST(erasures_are_read_strictly)
{
    static const struct {
        enum kedge_statement_kind kind;
        const char *from, *to;
    } cases[] = {
        {KEDGE_ST_ERASED, "\"update\":\"72", "\"update\":\"73"}, /* not the subject */
        {KEDGE_ST_ERASED, "\"entry\":12", "\"entry\":0"},        /* the admin's key */
        {KEDGE_ST_ERASED, "\"entry\":12,", ""},
        {KEDGE_ST_ERASED, "\"reason\":\"no longer needed\"", "\"reason\":\"\""},
        {KEDGE_ST_ERASED, "\"authority\":\"retention of 180 days\"", "\"authority\":\"\""},
        {KEDGE_ST_ERASED, "\"tenant\":\"north\"", "\"tenant\":\"\""},
        {KEDGE_ST_CONTACT, "\"commitment\":\"73", "\"commitment\":\"74"}, /* not the subject */
        {KEDGE_ST_CONTACT, "\"about\":\"north-1\"", "\"about\":\"North\""},
        {KEDGE_ST_CONTACT, "\"about\":\"north-1\",", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(cases[i].kind, cases[i].from, cases[i].to);
    }
}
END_TEST

START_TEST(depth_and_size_are_bounded)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, 1024 * 1024);
    for (int i = 0; i < 100000; i++) {
        kedge_buf_put_u8(&b, '[');
    }
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&b), &out, NULL), KEDGE_E_TOO_LONG);
    ck_assert_int_eq(kedge_statement_decode(kedge_view_of(b.ptr, 60000), &out, NULL), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_statement_decode(kedge_view_of(NULL, 0), &out, NULL), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_statement_decode(kedge_view_str("[]"), &out, NULL), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_statement_decode(kedge_view_str("{}"), &out, NULL), KEDGE_E_FORMAT);
}
END_TEST

START_TEST(writing_refuses_what_reading_would)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_ENTRY_MAX);
    struct kedge_diag diag;
    sample_statement(KEDGE_ST_UPDATE, &st);
    st.u.update.tenant.s[0] = 'N';
    ck_assert_int_eq(kedge_statement_encode(&st, &b, &diag), KEDGE_E_ARG);
    ck_assert_ptr_nonnull(strstr(diag.text, "tenant"));
    sample_statement(KEDGE_ST_UPDATE, &st);
    st.u.update.learning_rate = (double)INFINITY;
    ck_assert_int_eq(kedge_statement_encode(&st, &b, &diag), KEDGE_E_ARG);
    sample_statement(KEDGE_ST_UPDATE, &st);
    st.u.update.samples = KEDGE_ST_COUNT_MAX + 1;
    ck_assert_int_eq(kedge_statement_encode(&st, &b, &diag), KEDGE_E_ARG);
    sample_statement(KEDGE_ST_UPDATE, &st);
    memset(st.u.update.engine, 'x', sizeof st.u.update.engine); /* not even terminated */
    ck_assert_int_eq(kedge_statement_encode(&st, &b, &diag), KEDGE_E_ARG);
    sample_statement(KEDGE_ST_KEY, &st);
    memset(&st.u.key.public_key, 0, sizeof st.u.key.public_key); /* a point of small order */
    ck_assert_int_eq(kedge_statement_encode(&st, &b, &diag), KEDGE_E_ARG);
    sample_statement(KEDGE_ST_STEP, &st);
    st.u.step.group_count = 0;
    ck_assert_int_eq(kedge_statement_encode(&st, &b, &diag), KEDGE_E_ARG);
    st.u.step.group_count = KEDGE_GROUPS_MAX + 1;
    ck_assert_int_eq(kedge_statement_encode(&st, &b, &diag), KEDGE_E_ARG);
    sample_statement(KEDGE_ST_JOB_OPENED, &st);
    st.u.job_opened.tenants[1] = st.u.job_opened.tenants[0];
    ck_assert_int_eq(kedge_statement_encode(&st, &b, &diag), KEDGE_E_ARG);
    st.kind = KEDGE_ST_KIND_COUNT;
    ck_assert_int_eq(kedge_statement_encode(&st, &b, &diag), KEDGE_E_ARG);
    ck_assert_uint_eq(b.len, 0);
}
END_TEST

START_TEST(the_largest_statements_fit_into_an_entry)
{
    struct kedge_key_pair pair = sample_pair(1);
    sample_statement(KEDGE_ST_AGGREGATE, &st);
    st.u.aggregate.tenant_count = KEDGE_ST_TENANTS_MAX;
    for (uint32_t i = 0; i < KEDGE_ST_TENANTS_MAX; i++) {
        st.u.aggregate.tenants[i] =
            (struct kedge_st_aggregate_tenant){sample_hash((uint8_t)(255 - i)), KEDGE_SITES_MAX,
                                               KEDGE_ST_WEIGHT_SUM_MAX, KEDGE_SITES_MAX, sample_hash(9)};
    }
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_sign(&st, &pair, &b, NULL), KEDGE_E_ARG); /* descending */
    kedge_statement_sort(&st);
    ck_assert_int_eq(kedge_statement_sign(&st, &pair, &b, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_open(kedge_buf_view(&b), &pair.public, &out, NULL), KEDGE_OK);
    assert_same(&st, &out);
    kedge_buf_clear(&b);
    sample_statement(KEDGE_ST_ROUND_OPENED, &st);
    st.u.round_opened.tenant_count = KEDGE_ST_TENANTS_MAX;
    for (uint32_t i = 0; i < KEDGE_ST_TENANTS_MAX; i++) {
        st.u.round_opened.tenants[i] = (struct kedge_st_round_tenant){
            sample_hash((uint8_t)i), KEDGE_SITES_MAX, KEDGE_SITES_MAX, sample_hash(9)};
    }
    ck_assert_int_eq(kedge_statement_sign(&st, &pair, &b, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_open(kedge_buf_view(&b), &pair.public, &out, NULL), KEDGE_OK);
    assert_same(&st, &out);
}
END_TEST

START_TEST(opening_refuses_every_changed_bit_and_every_other_key)
{
    struct kedge_key_pair pair = sample_pair(1), other = sample_pair(2);
    sample_statement(KEDGE_ST_CLOSED, &st);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_sign(&st, &pair, &b, NULL), KEDGE_OK);
    struct kedge_diag diag;
    ck_assert_int_eq(kedge_statement_open(kedge_buf_view(&b), &other.public, &out, &diag), KEDGE_E_VERIFY);
    for (size_t i = 0; i < b.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            b.ptr[i] ^= (uint8_t)(1u << bit);
            ck_assert_int_ne(kedge_statement_open(kedge_buf_view(&b), &pair.public, &out, NULL), KEDGE_OK);
            b.ptr[i] ^= (uint8_t)(1u << bit);
        }
        ck_assert_int_ne(kedge_statement_open(kedge_view_of(b.ptr, i), &pair.public, &out, NULL), KEDGE_OK);
    }
    kedge_buf_put_u8(&b, '\n');
    ck_assert_int_eq(kedge_statement_open(kedge_buf_view(&b), &pair.public, &out, NULL), KEDGE_E_FORMAT);
}
END_TEST

static void *failing_malloc(size_t size)
{
    return kedge_mem_new(size, 1);
}

/* Every allocation fails in turn, jansson's too, until one run is clean: never success by halves, no leak. */
START_TEST(any_allocation_may_fail)
{
    struct kedge_key_pair pair = sample_pair(1);
    sample_statement(KEDGE_ST_UPDATE, &st); /* with a quote in a text: read by way of jansson */
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_sign(&st, &pair, &b, NULL), KEDGE_OK);
    json_set_alloc_funcs(failing_malloc, kedge_mem_free);
    int err = KEDGE_E_NOMEM;
    long n = 0;
    while (err && n < 10000) {
        memset(&out, 0x5a, sizeof out);
        kedge_mem_fail_at(++n);
        err = kedge_statement_open(kedge_buf_view(&b), &pair.public, &out, NULL);
        kedge_mem_fail_at(0);
        ck_assert(err == KEDGE_OK || err == KEDGE_E_NOMEM
                  || err == KEDGE_E_FORMAT); /* see common/json/json.h */
        ck_assert(err == KEDGE_OK || *(uint8_t *)&out == 0x5a);
    }
    ck_assert_int_eq(err, KEDGE_OK);
    ck_assert_int_gt((int)n, 20); /* so many allocations did fail */
    err = KEDGE_E_NOMEM;
    for (n = 0; err && n < 10000;) {
        struct kedge_buf c KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&c, KEDGE_ENTRY_MAX);
        kedge_mem_fail_at(++n);
        err = kedge_statement_sign(&st, &pair, &c, NULL);
        kedge_mem_fail_at(0);
        ck_assert(err == KEDGE_OK || (err == KEDGE_E_NOMEM && c.len == 0));
    }
    ck_assert_int_eq(err, KEDGE_OK);
    json_set_alloc_funcs(malloc, free);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("statement");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, each_kind_has_its_golden_bytes);
    tcase_add_test(tc, values_come_back_as_they_were);
    tcase_add_test(tc, unknown_energy_is_absent);
    tcase_add_loop_test(tc, both_readers_agree, 0, KEDGE_ST_KIND_COUNT);
    tcase_add_test(tc, reading_is_strict);
    tcase_add_test(tc, optional_fields_stand_where_they_say_something);
    tcase_add_test(tc, witnesses_are_read_strictly);
    tcase_add_test(tc, erasures_are_read_strictly);
    tcase_add_test(tc, depth_and_size_are_bounded);
    tcase_add_test(tc, writing_refuses_what_reading_would);
    tcase_add_test(tc, the_largest_statements_fit_into_an_entry);
    tcase_add_test(tc, opening_refuses_every_changed_bit_and_every_other_key);
    tcase_add_test(tc, any_allocation_may_fail);
    Suite *s = suite_create("chain/statement");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
