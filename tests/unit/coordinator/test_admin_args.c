/* Operators' requests: what is refused before anything is done, and by which words. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/merkle.h"
#include "chain/statement/statement.h"
#include "chain/statement/statement_position.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/wire/token.h"
#include "coordinator/daemon/admin/admin_args.h"

enum what {
    OPEN,
    SUBMIT,
    TOKEN,
    SIGNED,
    FILTER,
    FROM,
    EVENTS,
    LIST,
    READER,
    READER_NAME,
    VIEWER,
    VIEWER_NAME,
    GRANT,
    REVOKE,
    UPDATES,
    RECEIPT,
    QUORUM,
    ROTATE,
    ENVELOPE
};

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define KEY "\"key\":\"8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c\""
#define NAMES "\"tenant\":\"a\",\"site\":\"s\""

static const struct {
    enum what what;
    const char *text, *said; /* NULL: it is taken */
} cases[] = {
    {OPEN, "", "request: empty, expected a JSON object"},
    {OPEN, "[\"verb\"]", "expected a JSON object"},
    {OPEN, "{}", "\"verb\""},
    {OPEN, "{\"verb\":1}", "\"verb\""},
    {OPEN, "{\"verb\":\"a\",\"verb\":\"b\"}", "duplicate"},
    {OPEN, "{\"verb\":\"a\",\"x\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}", "deeper than 16"},
    {OPEN, "{\"verb\":\"a\",\"x\":[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]}", NULL},
    {SUBMIT, "{}", "expected \"spec\""},
    {SUBMIT, "{\"spec\":{}}", "\"spec\": expected a text"},
    {SUBMIT, "{\"spec\":\"\",\"token\":\"\"}", "\"token\" of at most 128"},
    {SUBMIT, "{\"spec\":\"\",\"token\":7}", "\"token\": expected a text"},
    {SUBMIT, "{\"spec\":\"\",\"initial\":[]}", "\"initial\": expected a text"},
    {SUBMIT, "{\"spec\":\"{}\",\"token\":\"t\",\"initial\":\"/m\"}", NULL},
    {TOKEN, "{\"site\":\"s\",\"ttl_s\":1}", "\"tenant\": expected a name"},
    {TOKEN, "{\"tenant\":\"a\",\"site\":\"S\",\"ttl_s\":1}", "\"site\": expected a name"},
    {TOKEN, "{" NAMES "}", "\"ttl_s\": expected 1 to 2592000"},
    {TOKEN, "{" NAMES ",\"ttl_s\":0}", "\"ttl_s\": expected 1 to 2592000"},
    {TOKEN, "{" NAMES ",\"ttl_s\":2592001}", "\"ttl_s\": expected 1 to 2592000"},
    {TOKEN, "{" NAMES ",\"ttl_s\":4294967297}", "\"ttl_s\": expected 1 to 2592000"},
    {TOKEN, "{" NAMES ",\"ttl_s\":1,\"address\":\"\"}", "\"address\": expected 1 to 255"},
    {TOKEN, "{" NAMES ",\"ttl_s\":1,\"address\":[]}", "\"address\": expected a text"},
    {TOKEN, "{" NAMES ",\"ttl_s\":2592000,\"address\":\"tcp://h:1\"}", NULL},
    {SIGNED, "{\"envelope\":\"x\"}", "\"tenant\": expected a name"},
    {SIGNED, "{\"tenant\":\"a\"}", "\"envelope\": expected a signed statement"},
    {SIGNED, "{\"tenant\":\"a\",\"envelope\":\"\"}", "\"envelope\": expected a signed statement"},
    {SIGNED, "{\"tenant\":\"a\",\"envelope\":{}}", "\"envelope\": expected a signed statement"},
    {SIGNED, "{\"tenant\":\"a\",\"envelope\":\"x\"}", NULL},
    {FILTER, "{\"tenant\":1}", "\"tenant\": expected a text"},
    {FILTER, "{\"site\":null}", "\"site\": expected a text"},
    {FILTER, "{}", NULL},
    {FROM, "{\"from_round\":-1}", "\"from_round\": expected a round's number"},
    {FROM, "{\"from_round\":\"1\"}", "\"from_round\": expected a round's number"},
    {FROM, "{\"from_round\":4294967296}", "\"from_round\": expected a round's number"},
    {FROM, "{\"from_round\":4294967295}", NULL},
    {LIST, "{}", NULL},
    {LIST, "{\"from\":\"a\",\"after\":\"a\"}", "exclude each other"},
    {LIST, "{\"after\":\"A\"}", "\"after\": expected a name"},
    {LIST, "{\"from\":\"\"}", "\"from\": expected a name"},
    {LIST, "{\"limit\":0}", "\"limit\": expected a number from 1 to 256"},
    {LIST, "{\"limit\":257}", "\"limit\": expected a number from 1 to 256"},
    {LIST, "{\"state\":\"compelted\"}", "\"state\": expected active, ended or"},
    {LIST, "{\"state\":7}", "\"state\": expected active, ended or"},
    {LIST, "{\"state\":\"active\"}", NULL},
    {LIST, "{\"state\":\"cancelled\"}", NULL},
    {LIST, "{\"since_ms\":-1}", "\"since_ms\": expected a time"},
    {LIST, "{\"since_ms\":\"1\"}", "\"since_ms\": expected a time"},
    {LIST, "{\"tenant\":\"a b\"}", "\"tenant\": expected a name"},
    {LIST, "{\"prefix\":\"a*\"}", "\"prefix\": expected a name"},
    {LIST,
     "{\"after\":\"a\",\"limit\":256,\"state\":\"ended\",\"since_ms\":1,\"prefix\":\"a\",\"tenant\":\"t\"}",
     NULL},
    {EVENTS, "{}", "\"job\": expected a name"},
    {EVENTS, "{\"job\":\"a\",\"from\":-1}", "\"from\": expected a number from 0 to 4294967294"},
    {EVENTS, "{\"job\":\"a\",\"from\":4294967295}", "\"from\": expected a number from 0 to 4294967294"},
    {EVENTS, "{\"job\":\"a\",\"from\":\"1\"}", "\"from\": expected a number"},
    {EVENTS, "{\"job\":\"a\",\"limit\":0}", "\"limit\": expected a number from 1 to 256"},
    {EVENTS, "{\"job\":\"a\",\"limit\":257}", "\"limit\": expected a number from 1 to 256"},
    {EVENTS, "{\"job\":\"a\",\"from\":4294967294,\"limit\":256}", NULL},
    {EVENTS, "{\"job\":\"a\"}", NULL},
    {UPDATES, "{}", "\"tenant\": expected a name"},
    {UPDATES, "{\"tenant\":\"org-a\"}", NULL},
    {UPDATES, "{\"tenant\":\"org-a\",\"from\":1024}", NULL},
    {UPDATES, "{\"tenant\":\"org-a\",\"from\":-1}", "\"from\": expected the index of an entry"},
    {UPDATES, "{\"tenant\":\"org-a\",\"from\":\"1\"}", "\"from\": expected the index of an entry"},
    {RECEIPT, "{\"log\":\"main\",\"index\":0}", NULL},
    {RECEIPT, "{\"log\":\"org-a\",\"key\":\"key/admin\"}", NULL},
    {RECEIPT, "{\"index\":0}", "\"log\": expected a name"},
    {RECEIPT, "{\"log\":\"main\"}", "expected either \"index\""},
    {RECEIPT, "{\"log\":\"main\",\"index\":0,\"key\":\"policy\"}", "expected either \"index\""},
    {RECEIPT, "{\"log\":\"main\",\"index\":-1}", "expected either \"index\""},
    {RECEIPT, "{\"log\":\"main\",\"index\":\"1\"}", "expected either \"index\""},
    {RECEIPT, "{\"log\":\"main\",\"key\":\"\"}", "\"key\": expected 1 to"},
    {FROM, "{}", NULL},
    {GRANT, "{\"name\":\"a\",\"role\":\"king\"," KEY "}", "\"role\": expected operator or auditor"},
    {GRANT, "{\"name\":\"a\"," KEY "}", "\"role\": expected operator or auditor"},
    {GRANT, "{\"role\":\"auditor\"," KEY "}", "\"name\": expected a name"},
    {GRANT, "{\"name\":\"a\",\"role\":\"auditor\"}", "\"key\": expected a public key"},
    {GRANT, "{\"name\":\"a\",\"role\":\"auditor\",\"key\":\"8a88\"}", "\"key\": expected a public key"},
    {GRANT, "{\"name\":\"a\",\"role\":\"auditor\",\"key\":\"" ZEROS "\"}", "\"key\": expected a public key"},
    {GRANT, "{\"name\":\"a\",\"role\":\"auditor\"," KEY "}", NULL},
    {GRANT, "{\"name\":\"a\",\"role\":\"auditor\",\"propose\":1," KEY "}",
     "\"propose\": expected true or false"},
    {GRANT, "{\"name\":\"a\",\"role\":\"auditor\",\"propose\":true," KEY "}", NULL},
    {QUORUM, "{}", "\"quorum\": expected 0 to 14"},
    {QUORUM, "{\"quorum\":-1}", "\"quorum\": expected 0 to 14"},
    {QUORUM, "{\"quorum\":15}", "\"quorum\": expected 0 to 14"},
    {QUORUM, "{\"quorum\":4294967296}", "\"quorum\": expected 0 to 14"},
    {QUORUM, "{\"quorum\":\"2\"}", "\"quorum\": expected 0 to 14"},
    {QUORUM, "{\"quorum\":2,\"propose\":null}", "\"propose\": expected true or false"},
    {QUORUM, "{\"quorum\":14,\"propose\":true}", NULL},
    {QUORUM, "{\"quorum\":0}", NULL},
    {ROTATE, "{\"reason\":[]}", "\"reason\": expected a text"},
    {ROTATE, "{\"propose\":\"yes\"}", "\"propose\": expected true or false"},
    {ROTATE, "{}", NULL},
    {ENVELOPE, "{}", "\"envelope\": expected a signed statement"},
    {ENVELOPE, "{\"envelope\":\"\"}", "\"envelope\": expected a signed statement"},
    {ENVELOPE, "{\"envelope\":\"x\"}", NULL},
    {REVOKE, "{\"reason\":7," KEY "}", "\"reason\": expected a text"},
    {REVOKE, "{}", "\"key\": expected a public key"},
    {REVOKE, "{" KEY "}", NULL},
    {READER, "{\"ttl_s\":1}", "expected either \"tenant\" or \"auditor\": true"},
    {READER, "{\"ttl_s\":1,\"auditor\":false}", "expected either \"tenant\" or \"auditor\": true"},
    {READER, "{\"ttl_s\":1,\"auditor\":true,\"tenant\":\"a\"}", "expected either"},
    {READER, "{\"ttl_s\":1,\"auditor\":1}", "\"auditor\": expected true or false"},
    {READER, "{\"ttl_s\":1,\"tenant\":\"A\"}", "\"tenant\": expected a name"},
    {READER, "{\"ttl_s\":1,\"tenant\":\"a\",\"name\":\"\"}", "\"name\": expected a name"},
    {READER, "{\"tenant\":\"a\"}", "\"ttl_s\": expected 1 to 94867200"},
    {READER, "{\"tenant\":\"a\",\"ttl_s\":94867201}", "\"ttl_s\": expected 1 to 94867200"},
    {READER, "{\"tenant\":\"a\",\"ttl_s\":94867200,\"auditor\":false,\"name\":\"n\"}", NULL},
    {READER, "{\"auditor\":true,\"ttl_s\":1}", NULL},
    {READER_NAME, "{}", "\"name\": expected a name"},
    {READER_NAME, "{\"name\":\"n\"}", NULL},
    {VIEWER, "{\"name\":\"n\"," KEY "}", "\"tenant\": expected a name"},
    {VIEWER, "{\"tenant\":\"a\"," KEY "}", "\"name\": expected a name"},
    {VIEWER, "{\"tenant\":\"a\",\"name\":\"n\"}", "\"key\": expected a public key"},
    {VIEWER, "{\"tenant\":\"a\",\"name\":\"n\",\"key\":\"" ZEROS "\"}", "\"key\": expected a public key"},
    {VIEWER, "{\"tenant\":\"a\",\"name\":\"n\"," KEY "}", NULL},
    {VIEWER_NAME, "{\"tenant\":\"a\",\"name\":7}", "\"name\": expected a name"},
    {VIEWER_NAME, "{\"tenant\":\"a\",\"name\":\"n\"}", NULL},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static int try_args(enum what what, const json_t *args, struct kedge_diag *d)
{
    struct kedge_admin_submit submit;
    struct kedge_admin_token token;
    struct kedge_admin_signed said;
    struct kedge_admin_filter filter;
    struct kedge_admin_reader reader;
    struct kedge_admin_viewer viewer;
    struct kedge_admin_role role;
    struct kedge_admin_updates updates;
    struct kedge_admin_events events;
    struct kedge_admin_list list;
    struct kedge_admin_receipt receipt;
    struct kedge_admin_quorum quorum;
    struct kedge_admin_rotate rotate;
    struct kedge_view envelope;
    struct kedge_id name;
    uint32_t round;
    switch (what) {
    case SUBMIT:
        return kedge_admin_submit_args(args, &submit, d);
    case TOKEN:
        return kedge_admin_token_args(args, &token, d);
    case SIGNED:
        return kedge_admin_signed_args(args, &said, d);
    case FILTER:
        return kedge_admin_filter_args(args, &filter, d);
    case FROM:
        return kedge_admin_from_round(args, &round, d);
    case LIST:
        return kedge_admin_list_args(args, &list, d);
    case EVENTS:
        return kedge_admin_events_args(args, &events, d);
    case READER:
        return kedge_admin_reader_args(args, &reader, d);
    case READER_NAME:
        return kedge_admin_reader_name(args, &name, d);
    case VIEWER:
        return kedge_admin_viewer_args(args, true, &viewer, d);
    case VIEWER_NAME:
        return kedge_admin_viewer_args(args, false, &viewer, d);
    case GRANT:
        return kedge_admin_role_args(args, true, &role, d);
    case REVOKE:
        return kedge_admin_role_args(args, false, &role, d);
    case UPDATES:
        return kedge_admin_updates_args(args, &updates, d);
    case RECEIPT:
        return kedge_admin_receipt_args(args, &receipt, d);
    case QUORUM:
        return kedge_admin_quorum_args(args, &quorum, d);
    case ROTATE:
        return kedge_admin_rotate_args(args, &rotate, d);
    case ENVELOPE:
        return kedge_admin_envelope_args(args, &envelope, d);
    case OPEN:
        break;
    }
    return KEDGE_E_BUG;
}

START_TEST(test_cases)
{
    struct kedge_diag d = {.text = ""};
    const char *text = cases[_i].text, *said = cases[_i].said, *verb;
    json_t *args = NULL;
    int err;
    if (cases[_i].what == OPEN) {
        err = kedge_admin_open(kedge_view_str(text), &args, &verb, &d);
    } else {
        args = json_loads(text, 0, NULL);
        ck_assert_ptr_nonnull(args);
        err = try_args(cases[_i].what, args, &d);
    }
    ck_assert_int_eq(err, said ? KEDGE_E_FORMAT : KEDGE_OK);
    ck_assert_msg(!said || strstr(d.text, said), "%s: %s", text, d.text);
    json_decref(args);
}
END_TEST

/* A text of a field at its longest, and one longer. */
static int try_length(enum what what, const char *key, size_t len)
{
    struct kedge_diag d;
    char *text = kedge_mem_new(len + 1, 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', len);
    json_t *args =
        json_pack("{s:s,s:s,s:i,s:s,s:s}", "tenant", "a", "site", "s", "ttl_s", 1, "spec", "", key, text);
    ck_assert_ptr_nonnull(args);
    int err = try_args(what, args, &d);
    json_decref(args);
    kedge_mem_free(text);
    return err;
}

START_TEST(test_lengths)
{
    ck_assert_int_eq(try_length(SUBMIT, "token", KEDGE_ADMIN_TOKEN_MAX), KEDGE_OK);
    ck_assert_int_eq(try_length(SUBMIT, "token", KEDGE_ADMIN_TOKEN_MAX + 1), KEDGE_E_FORMAT);
    ck_assert_int_eq(try_length(TOKEN, "address", KEDGE_TOKEN_ADDRESS_MAX), KEDGE_OK);
    ck_assert_int_eq(try_length(TOKEN, "address", KEDGE_TOKEN_ADDRESS_MAX + 1), KEDGE_E_FORMAT);
    ck_assert_int_eq(try_length(SIGNED, "envelope", KEDGE_ENTRY_MAX), KEDGE_OK);
    ck_assert_int_eq(try_length(SIGNED, "envelope", KEDGE_ENTRY_MAX + 1), KEDGE_E_FORMAT);
    ck_assert_int_eq(try_length(ENVELOPE, "envelope", KEDGE_ENTRY_MAX + 1), KEDGE_E_FORMAT);
    ck_assert_int_eq(try_length(ROTATE, "reason", KEDGE_ST_REASON_MAX), KEDGE_OK);
    ck_assert_int_eq(try_length(ROTATE, "reason", KEDGE_ST_REASON_MAX + 1), KEDGE_E_FORMAT);
}
END_TEST

static const struct kedge_public_key main_log_key = {{1}}; /* only compared */

/* What no admin has signed is no tenant's key. */
START_TEST(test_key)
{
    static const char *const bad[] = {"x", "{}", "{\"payload\":\"\",\"payloadType\":\"\",\"signatures\":[]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kedge_admin_signed a = {{"a"}, kedge_view_str(bad[i])};
        struct kedge_diag d;
        ck_assert_int_eq(kedge_admin_check_key(&a, &main_log_key, &d), KEDGE_E_DENIED);
        ck_assert_ptr_nonnull(strstr(d.text, "admin's key of tenant a"));
    }
}
END_TEST

static int check_signed_key(const struct kedge_st_position *at)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    struct kedge_key_pair pair;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf text;
    ck_assert_ptr_nonnull(st);
    kedge_key_generate(&pair);
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    st->kind = KEDGE_ST_KEY;
    st->u.key = (struct kedge_st_key){KEDGE_SCOPE_ADMIN, {"a"}, pair.public};
    st->at = *at;
    ck_assert_msg(kedge_statement_sign(st, &pair, &text, &d) == KEDGE_OK, "%s", d.text);
    struct kedge_admin_signed a = {{"a"}, kedge_buf_view(&text)};
    struct kedge_key_pair log;
    kedge_key_from_seed(&(struct kedge_seed){{7}}, &log);
    int err = kedge_admin_check_key(&a, &log.public, &d);
    ck_assert(err == KEDGE_OK || d.text[0]);
    kedge_buf_deinit(&text);
    kedge_mem_free(st);
    return err;
}

/* A first key is for this deployment, and for a ledger in which nothing stands yet. */
START_TEST(test_first_key_names_its_place)
{
    struct kedge_key_pair log, elsewhere;
    struct kedge_hash none;
    kedge_key_from_seed(&(struct kedge_seed){{7}}, &log);
    kedge_key_from_seed(&(struct kedge_seed){{8}}, &elsewhere);
    kedge_merkle_empty_root(&none);
    struct kedge_st_position at = kedge_position_make(&log.public, 0, &none, 10);
    ck_assert_int_eq(check_signed_key(&at), KEDGE_OK);
    at.main_log_key = elsewhere.public;
    ck_assert_int_eq(check_signed_key(&at), KEDGE_E_POSITION);
    at = kedge_position_make(&log.public, 3, &none, 10);
    ck_assert_int_eq(check_signed_key(&at), KEDGE_E_POSITION);
    at = kedge_position_make(&log.public, 0, &none, 10);
    at.seen_root.b[0] ^= 1;
    ck_assert_int_eq(check_signed_key(&at), KEDGE_E_POSITION);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator-admin-args");
    TCase *t = tcase_create("args");
    tcase_add_loop_test(t, test_cases, 0, CASES);
    tcase_add_test(t, test_lengths);
    tcase_add_test(t, test_key);
    tcase_add_test(t, test_first_key_names_its_place);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
