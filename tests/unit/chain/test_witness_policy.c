/* Witness policies: the published files, and what each kind of line may not be. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/lines.h"
#include "chain/log/witness_quorum.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"
#include "tests/unit/chain/witnesses.h"

static void name_witnesses(const struct kedge_witness_policy *p, struct kedge_view list, bool *cosigned)
{
    struct kedge_view head;
    memset(cosigned, 0, KEDGE_WITNESSES_MAX * sizeof *cosigned);
    bool more = !vector_is(list, "-");
    while (more) {
        more = kedgei_cut(&list, ',', &head);
        struct kedge_view name = more ? head : list;
        uint32_t i = 0;
        while (i < p->witness_count && !kedge_view_eq(p->witnesses[i].name, name)) {
            i++;
        }
        ck_assert_uint_lt(i, p->witness_count);
        cosigned[i] = true;
    }
}

START_TEST(published_policies_parse_and_evaluate_as_their_table_says)
{
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("policy/valid/evaluation.tsv");
    size_t rows = 0;
    while (vector_table_next(&t)) {
        char base[64], name[96];
        snprintf(name, sizeof name, "policy/valid/%s.policy", vector_str(t.columns[0], base, sizeof base));
        struct kedge_buf text = vector_file(name);
        struct kedge_witness_policy *p = policy_of(kedge_buf_view(&text));
        bool cosigned[KEDGE_WITNESSES_MAX];
        name_witnesses(p, t.columns[1], cosigned);
        ck_assert_msg(kedge_witness_quorum_is_met(p, cosigned) == vector_is(t.columns[2], "yes"), "row %zu",
                      rows);
        kedge_witness_policy_free(p);
        kedge_buf_deinit(&text);
        rows++;
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 23);
}
END_TEST

START_TEST(published_invalid_policies_are_refused)
{
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("policy/invalid/reasons.tsv");
    size_t rows = 0;
    while (vector_table_next(&t)) {
        char base[64], name[96];
        snprintf(name, sizeof name, "policy/invalid/%s.policy", vector_str(t.columns[0], base, sizeof base));
        struct kedge_buf text = vector_file(name);
        struct kedge_witness_policy *p = NULL;
        struct kedge_diag diag = {0};
        ck_assert_msg(kedge_witness_policy_parse(kedge_buf_view(&text), &p, &diag) == KEDGE_E_FORMAT, "%s",
                      base);
        ck_assert_ptr_null(p);
        ck_assert_msg(strncmp(diag.text, "line ", 5) == 0 || strstr(diag.text, "quorum line"), "%s: %s", base,
                      diag.text);
        kedge_buf_deinit(&text);
        rows++;
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 26);
}
END_TEST

START_TEST(errors_name_the_line_and_what_was_expected)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "no quorum line"},
        {"quorum none", "line 1: no line end, expected LF"},
        {"\n# c\n\xff\n", "line 3: unknown keyword \"\\xff\", expected log, witness, group or quorum"},
        {"quorum none\r\n", "line 1: control character 0d, expected text with lines that end in LF"},
        {"quorum\n", "line 1: expected quorum NAME, or quorum none"},
        {"quorum a b\n", "line 1: expected quorum NAME"},
        {"quorum W\n", "line 1: \"W\" is not the name"},
        {"quorum none\nquorum none\n", "line 2: a second quorum line"},
        {"log\n", "line 1: expected log KEY [URL]"},
        {"log a\n", "line 1: malformed key, expected NAME+HHHHHHHH+BASE64"},
        {"log a+12345678+A=\n", "line 1: key is not the base64"},
        {"log $0 https://a # b\n", "line 1: text after the key, expected at most a URL"},
        {"log $0x\n", "line 1: key is not the base64"},
        {"log $1\n", "line 1: key of type 04, expected 01"},
        {"log $0\nlog $0\n", "line 2: the same public key as another log's"},
        {"witness\n", "line 1: expected witness NAME KEY [URL]"},
        {"witness W\n", "line 1: expected witness NAME KEY [URL]"},
        {"witness W $0\n", "line 1: key of type 01, expected 04"},
        {"witness none $1\n", "line 1: the name \"none\" is taken"},
        {"witness W $1\nwitness W $2\n", "line 2: the name \"W\" is used twice"},
        {"witness V $1\nwitness W $1\n", "line 2: the same public key as another witness's"},
        {"group\n", "line 1: expected group NAME"},
        {"group G\n", "line 1: expected group NAME"},
        {"group G any\n", "line 1: group without members"},
        {"group G any G\n", "line 1: \"G\" is not the name"},
        {"witness W $1\ngroup W any W\n", "line 2: the name \"W\" is used twice"},
        {"witness W $1\ngroup G 0 W\n", "line 2: threshold must be all, any or a number from 1 to 1"},
        {"witness W $1\ngroup G 2 W\n", "line 2: threshold must be"},
        {"witness W $1\ngroup G 01 W\n", "line 2: threshold must be"},
        {"witness W $1\ngroup G +1 W\n", "line 2: threshold must be"},
        {"witness W $1\ngroup G 18446744073709551617 W\n", "line 2: threshold must be"},
        {"witness W $1\ngroup G 1 none\n", "line 2: \"none\" cannot be a member"},
        {"witness W $1\ngroup G 1 W W\n", "line 2: \"W\" is a member already"},
        {"witness W $1\ngroup G 1 W\ngroup H 1 W\n", "line 3: \"W\" is a member already"},
        {"witness W $1\ngroup G 1 W\ngroup H 1 G G\n", "line 3: \"G\" is a member already"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_buf text = expand(cases[i].text);
        struct kedge_witness_policy *p = NULL;
        struct kedge_diag diag = {0};
        ck_assert_msg(kedge_witness_policy_parse(kedge_buf_view(&text), &p, &diag) == KEDGE_E_FORMAT,
                      "case %zu", i);
        ck_assert_msg(strncmp(diag.text, cases[i].said, strlen(cases[i].said)) == 0, "case %zu: %s", i,
                      diag.text);
        ck_assert_ptr_null(p);
        kedge_buf_deinit(&text);
    }
}
END_TEST

/* One public key as a log's and as a witness's, each under its proper type. */
START_TEST(a_key_serves_one_role)
{
    struct kedge_key_pair pair = pair_of(0);
    struct kedge_vkey v;
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str("w"), KEDGE_KEY_COSIGNATURE, &pair.public, &v), KEDGE_OK);
    struct kedge_buf text = expand("log $0\nwitness W ");
    kedge_vkey_encode(&v, &text);
    kedge_buf_put_str(&text, "\nquorum W\n");
    struct kedge_witness_policy *p = NULL;
    struct kedge_diag diag;
    ck_assert_int_eq(kedge_witness_policy_parse(kedge_buf_view(&text), &p, &diag), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(diag.text, "a key serves one role"));
    kedge_buf_deinit(&text);
}
END_TEST

/* count lines "KIND name key" with made-up keys; kind 0 log, 1 witness, 2 group. */
static int parse_many(unsigned kind, unsigned count)
{
    struct kedge_buf text = expand(kind == 2 ? "witness W0 $1\n" : "");
    for (unsigned i = 0; i < count; i++) {
        struct kedge_seed seed = {{(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(7 + kind)}};
        struct kedge_key_pair pair;
        struct kedge_vkey v;
        char name[32];
        kedge_key_from_seed(&seed, &pair);
        snprintf(name, sizeof name, "n%u", i);
        ck_assert_int_eq(kedge_vkey_make(kedge_view_str(name),
                                         kind == 0 ? KEDGE_KEY_ED25519 : KEDGE_KEY_COSIGNATURE, &pair.public,
                                         &v),
                         KEDGE_OK);
        if (kind == 2) { /* a chain of groups, as deep as there are groups */
            kedge_buf_printf(&text, "group W%u all W%u\n", i + 1, i);
            continue;
        }
        kedge_buf_printf(&text, kind == 0 ? "log " : "witness %s ", name);
        kedge_vkey_encode(&v, &text);
        kedge_buf_put_u8(&text, '\n');
    }
    if (kind == 0) {
        kedge_buf_put_str(&text, "quorum none\n");
    } else {
        kedge_buf_printf(&text, "quorum %c%u\n", kind == 1 ? 'n' : 'W', kind == 1 ? count - 1 : count);
    }
    struct kedge_witness_policy *p = NULL;
    int err = kedge_witness_policy_parse(kedge_buf_view(&text), &p, NULL);
    if (!err && kind == 2) {
        bool cosigned[KEDGE_WITNESSES_MAX] = {true};
        ck_assert(kedge_witness_quorum_is_met(p, cosigned));
        cosigned[0] = false;
        ck_assert(!kedge_witness_quorum_is_met(p, cosigned));
    }
    kedge_witness_policy_free(p);
    kedge_buf_deinit(&text);
    return err;
}

START_TEST(limits_are_as_stated)
{
    for (unsigned kind = 0; kind < 3; kind++) {
        ck_assert_int_eq(parse_many(kind, 128), KEDGE_OK);
        ck_assert_int_eq(parse_many(kind, 129), KEDGE_E_TOO_LONG);
    }
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, 2 * KEDGE_WITNESS_POLICY_MAX);
    kedge_buf_put_str(&text, "quorum none\n#");
    while (text.len < KEDGE_WITNESS_POLICY_MAX - 1) {
        kedge_buf_put_u8(&text, '#');
    }
    kedge_buf_put_u8(&text, '\n');
    struct kedge_witness_policy *p = NULL;
    ck_assert_int_eq(kedge_witness_policy_parse(kedge_buf_view(&text), &p, NULL), KEDGE_OK);
    kedge_witness_policy_free(p);
    p = NULL;
    kedge_buf_put_u8(&text, '\n');
    ck_assert_int_eq(kedge_witness_policy_parse(kedge_buf_view(&text), &p, NULL), KEDGE_E_TOO_LONG);
    /* Names and URLs. */
    for (unsigned extra = 0; extra < 4; extra++) {
        struct kedge_buf line = expand("witness ");
        for (unsigned i = 0; i < KEDGE_WITNESS_NAME_MAX + (extra & 1); i++) {
            kedge_buf_put_u8(&line, 'n');
        }
        struct kedge_vkey v = vkey_of(1);
        kedge_buf_put_u8(&line, '\t');
        kedge_vkey_encode(&v, &line);
        kedge_buf_put_u8(&line, ' ');
        for (unsigned i = 0; i < KEDGE_WITNESS_URL_MAX + (extra >> 1); i++) {
            kedge_buf_put_u8(&line, 'u');
        }
        kedge_buf_put_str(&line, "\nquorum none\n");
        ck_assert_int_eq(kedge_witness_policy_parse(kedge_buf_view(&line), &p, NULL),
                         extra ? KEDGE_E_TOO_LONG : KEDGE_OK);
        kedge_buf_deinit(&line);
        kedge_witness_policy_free(p);
        p = NULL;
    }
}
END_TEST

/* A type-06 key of made-up bytes: NAME + ID + base64(06 ‖ 1,312 bytes). */
static void put_mldsa_key(const char *name, size_t key_len, struct kedge_buf *out)
{
    uint8_t blob[1 + 1400] = {6};
    char hex[9];
    struct kedge_hash h;
    struct kedge_buf named KEDGE_CLEANUP(kedge_buf_deinit);
    memset(blob + 1, 0x77, key_len);
    kedge_buf_init(&named, 64);
    kedge_buf_printf(&named, "%s\n", name);
    kedge_sha256_2(kedge_buf_view(&named), kedge_view_of(blob, 1 + key_len), &h);
    kedge_hex_encode(h.b, 4, hex);
    kedge_buf_printf(out, "%s+%s+", name, hex);
    kedge_base64_put(out, kedge_view_of(blob, 1 + key_len));
}

START_TEST(post_quantum_witnesses_parse_and_never_count)
{
    struct kedge_buf text = expand("log $0\nwitness W1 $1\nwitness PQ ");
    size_t at = text.len;
    put_mldsa_key("pq.example.org", 1312, &text);
    kedge_buf_put_str(&text, " https://pq.example.org\ngroup G any W1 PQ\nquorum G\n");
    struct kedge_witness_policy *p = policy_of(kedge_buf_view(&text));
    ck_assert(p->witnesses[0].is_supported && !p->witnesses[1].is_supported);
    struct kedge_quorum_safety s;
    kedge_witness_quorum_safety(p, &s);
    ck_assert(s.is_reachable && !s.is_safe && s.n == 2 && s.k == 1);
    kedge_witness_policy_free(p);
    /* "all" of them cannot be had. */
    uint8_t *any = memmem(text.ptr, text.len, "any", 3);
    any[0] = 'a'; /* "all" */
    any[1] = any[2] = 'l';
    p = policy_of(kedge_buf_view(&text));
    kedge_witness_quorum_safety(p, &s);
    ck_assert(!s.is_reachable && s.is_safe);
    struct kedge_diag diag;
    ck_assert_int_eq(kedge_witness_policy_require_safe(p, false, NULL, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_witness_policy_require_safe(p, true, &s, &diag), KEDGE_E_DENIED);
    ck_assert_ptr_nonnull(strstr(diag.text, "ML-DSA-44"));
    kedge_witness_policy_free(p);
    p = NULL;
    text.len = at;
    put_mldsa_key("pq.example.org", 1311, &text);
    kedge_buf_put_str(&text, "\nquorum none\n");
    ck_assert_int_eq(kedge_witness_policy_parse(kedge_buf_view(&text), &p, &diag), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(diag.text, "line 3: ML-DSA-44 key of 1311 bytes, expected 1312"));
    kedge_buf_deinit(&text);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("witness policy");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, published_policies_parse_and_evaluate_as_their_table_says);
    tcase_add_test(tc, published_invalid_policies_are_refused);
    tcase_add_test(tc, errors_name_the_line_and_what_was_expected);
    tcase_add_test(tc, a_key_serves_one_role);
    tcase_add_test(tc, limits_are_as_stated);
    tcase_add_test(tc, post_quantum_witnesses_parse_and_never_count);
    Suite *s = suite_create("chain/witness_policy");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
