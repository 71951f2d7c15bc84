/* Witness policies: the published files, what each kind of line may not be, who cosigned, which quorums are
 * safe. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/cosignature.h"
#include "chain/lines.h"
#include "chain/witness_quorum.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"

enum { TIME = 1767225600 };
#define LOG_NAME "fl.example.org/tenant-a"

static struct kedge_key_pair pair_of(uint8_t byte)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    memset(seed.b, byte, sizeof seed.b);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

/* The log has seed 00…, witness wN has seed of bytes 10+N, as ../shared/vectors/policy. */
static struct kedge_vkey vkey_of(unsigned n)
{
    char name[64];
    struct kedge_key_pair pair = pair_of(n == 0 ? 0 : (uint8_t)(0x10 + n));
    struct kedge_vkey v;
    snprintf(name, sizeof name, n == 0 ? LOG_NAME : "fl.example.org/w%u", n);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(name), n == 0 ? KEDGE_KEY_ED25519 : KEDGE_KEY_COSIGNATURE,
                                     &pair.public, &v),
                     KEDGE_OK);
    return v;
}

/* "$N" becomes the vkey of witness N, "$0" the log's. */
static struct kedge_buf expand(const char *template)
{
    struct kedge_buf b;
    kedge_buf_init(&b, 4 * KEDGE_WITNESS_POLICY_MAX);
    for (const char *p = template; *p; p++) {
        if (*p != '$') {
            kedge_buf_put_u8(&b, (uint8_t)*p);
            continue;
        }
        unsigned n = 0;
        while (p[1] >= '0' && p[1] <= '9') {
            n = n * 10 + (unsigned)(*++p - '0');
        }
        struct kedge_vkey v = vkey_of(n);
        kedge_vkey_encode(&v, &b);
    }
    ck_assert_int_eq(b.err, KEDGE_OK);
    return b;
}

static struct kedge_witness_policy *policy_of(struct kedge_view text)
{
    struct kedge_witness_policy *p = NULL;
    struct kedge_diag diag = {0};
    int err = kedge_witness_policy_parse(text, &p, &diag);
    ck_assert_msg(err == KEDGE_OK, "%s", diag.text);
    /* Encoding gives a policy that encodes to itself. */
    struct kedge_buf a KEDGE_CLEANUP(kedge_buf_deinit), b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&a, 4 * KEDGE_WITNESS_POLICY_MAX);
    kedge_buf_init(&b, 4 * KEDGE_WITNESS_POLICY_MAX);
    kedge_witness_policy_encode(p, &a);
    struct kedge_witness_policy *again = NULL;
    ck_assert_int_eq(kedge_witness_policy_parse(kedge_buf_view(&a), &again, NULL), KEDGE_OK);
    kedge_witness_policy_encode(again, &b);
    ck_assert(kedge_view_eq(kedge_buf_view(&a), kedge_buf_view(&b)));
    kedge_witness_policy_free(again);
    return p;
}

static struct kedge_witness_policy *policy_from(const char *template)
{
    struct kedge_buf text = expand(template);
    struct kedge_witness_policy *p = policy_of(kedge_buf_view(&text));
    kedge_buf_deinit(&text); /* the policy has its own copy */
    return p;
}

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
        {"log $0 https://a # b\n", "line 1: text behind the key, expected at most a URL"},
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
    kedge_buf_printf(&text, "quorum %s%u\n",
                     kind == 0   ? "none # "
                     : kind == 1 ? "n"
                                 : "W",
                     kind == 2 ? count : count - 1);
    if (kind == 0) { /* "quorum none # 127" is no quorum line */
        text.len -=
            text.len - (size_t)((uint8_t *)memmem(text.ptr, text.len, "quorum none", 11) - text.ptr) - 11;
        kedge_buf_put_u8(&text, '\n');
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
    memcpy(any, "all", 3);
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

/* A checkpoint of the log with cosignatures of witnesses first…last, each a second later. */
static struct kedge_buf note_by(unsigned first, unsigned last)
{
    struct kedge_buf b, out;
    kedge_buf_init(&b, KEDGE_NOTE_MAX);
    struct kedge_key_pair log = pair_of(0);
    struct kedge_hash root = {{9}};
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(LOG_NAME), 7, &root, &log, &b), KEDGE_OK);
    for (unsigned n = first; n <= last; n++) {
        struct kedge_buf line;
        struct kedge_note note;
        struct kedge_key_pair pair = pair_of((uint8_t)(0x10 + n));
        struct kedge_vkey v = vkey_of(n);
        kedge_buf_init(&line, KEDGE_COSIGNATURE_LINE_MAX);
        kedge_buf_init(&out, KEDGE_NOTE_MAX);
        ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&b), &note), KEDGE_OK);
        ck_assert_int_eq(kedge_cosignature_make(note.text, kedge_view_str(v.name), &pair, TIME + n, &line),
                         KEDGE_OK);
        ck_assert_int_eq(kedge_note_add_line(kedge_buf_view(&b), kedge_buf_view(&line), &out), KEDGE_OK);
        kedge_buf_deinit(&b);
        kedge_buf_deinit(&line);
        b = out;
    }
    return b;
}

static const char three[] = "log $0\nwitness W1 $1\nwitness W2 $2\nwitness W3 $3\nwitness W4 $4\n"
                            "group G 3 W1 W2 W3 W4\nquorum G\n";

START_TEST(a_checkpoint_counts_by_its_log_and_its_quorum)
{
    struct kedge_witness_policy *p = policy_from(three);
    struct kedge_witness_demand demand = {0};
    struct kedge_witness_evaluation e;
    struct kedge_diag diag;
    struct kedge_buf two = note_by(1, 2), all = note_by(1, 5);
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, kedge_buf_view(&all), &demand, &e, &diag), KEDGE_OK);
    ck_assert(e.quorum_met && e.cosigned_count == 4 && e.checkpoint.size == 7);
    ck_assert(e.states[3] == KEDGE_WITNESS_COSIGNED && e.times_s[3] == TIME + 4);
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, kedge_buf_view(&two), &demand, &e, &diag),
                     KEDGE_E_DENIED);
    ck_assert(!e.quorum_met && e.cosigned_count == 2 && e.states[2] == KEDGE_WITNESS_ABSENT);
    ck_assert_ptr_nonnull(strstr(diag.text, "2 of 4 witnesses cosigned (W1, W2)"));
    ck_assert_ptr_nonnull(strstr(diag.hint, "absent: W3, W4"));
    /* Times. */
    demand.time_min_s = TIME + 2;
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, kedge_buf_view(&all), &demand, &e, NULL), KEDGE_OK);
    ck_assert(e.states[0] == KEDGE_WITNESS_TOO_EARLY && e.cosigned_count == 3 && e.times_s[0] == TIME + 1);
    demand.time_max_s = TIME + 3;
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, kedge_buf_view(&all), &demand, &e, NULL),
                     KEDGE_E_DENIED);
    ck_assert(e.states[3] == KEDGE_WITNESS_TOO_LATE && e.cosigned_count == 2);
    demand = (struct kedge_witness_demand){.origin = kedge_view_str(LOG_NAME)};
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, kedge_buf_view(&all), &demand, &e, NULL), KEDGE_OK);
    demand.origin = kedge_view_str("fl.example.org/tenant-b");
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, kedge_buf_view(&all), &demand, &e, &diag),
                     KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(diag.text, "expected \"fl.example.org/tenant-b\""));
    /* One bad line of a known witness spoils the note, of an unknown one it does not. */
    demand.origin.ptr = NULL;
    all.ptr[all.len - 8] ^= 1; /* w5's, whom the policy does not know */
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, kedge_buf_view(&all), &demand, &e, NULL), KEDGE_OK);
    struct kedge_note note;
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&all), &note), KEDGE_OK);
    size_t at = (size_t)(note.lines[4].base64.ptr - all.ptr) + 40;
    all.ptr[at] = all.ptr[at] == 'A' ? 'B' : 'A';
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, kedge_buf_view(&all), &demand, &e, NULL),
                     KEDGE_E_VERIFY);
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, kedge_view_str("no note"), &demand, &e, NULL),
                     KEDGE_E_FORMAT);
    kedge_buf_deinit(&two);
    kedge_buf_deinit(&all);
    kedge_witness_policy_free(p);
}
END_TEST

START_TEST(a_log_counts_for_its_own_origin_alone)
{
    /* The policy lists another log only: cosignatures without the log's own signature are worth nothing. */
    struct kedge_witness_policy *p = policy_from("witness W1 $1\nquorum W1\n");
    struct kedge_witness_demand demand = {0};
    struct kedge_witness_evaluation e;
    struct kedge_buf note = note_by(1, 1);
    struct kedge_view bytes = kedge_buf_view(&note);
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, bytes, &demand, &e, NULL), KEDGE_E_VERIFY);
    struct kedge_vkey log = vkey_of(0), witness = vkey_of(1), two[2] = {log, log};
    demand.logs = &log;
    demand.log_count = 1;
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, bytes, &demand, &e, NULL), KEDGE_E_ARG);
    demand.origin = kedge_view_str(LOG_NAME);
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, bytes, &demand, &e, NULL), KEDGE_OK);
    demand.logs = &witness;
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, bytes, &demand, &e, NULL), KEDGE_E_ARG);
    demand.logs = two;
    demand.log_count = 2;
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, bytes, &demand, &e, NULL), KEDGE_E_ARG);
    /* A log's key that is a witness's of the policy, too. */
    struct kedge_key_pair pair = pair_of(0x11);
    struct kedge_vkey shared;
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(LOG_NAME), KEDGE_KEY_ED25519, &pair.public, &shared),
                     KEDGE_OK);
    demand.logs = &shared;
    demand.log_count = 1;
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, bytes, &demand, &e, NULL), KEDGE_E_ARG);
    kedge_witness_policy_free(p);
    /* The right key under another name than the origin. */
    struct kedge_vkey renamed;
    struct kedge_key_pair log_pair = pair_of(0);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str("other"), KEDGE_KEY_ED25519, &log_pair.public, &renamed),
                     KEDGE_OK);
    struct kedge_buf text = expand("quorum none\nlog "), signed_as KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_vkey_encode(&renamed, &text);
    kedge_buf_put_u8(&text, '\n');
    p = policy_of(kedge_buf_view(&text));
    struct kedge_note parsed;
    ck_assert_int_eq(kedge_note_parse(bytes, &parsed), KEDGE_OK);
    kedge_buf_init(&signed_as, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_note_sign(parsed.text, kedge_view_str("other"), &log_pair, &signed_as), KEDGE_OK);
    demand = (struct kedge_witness_demand){0};
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, kedge_buf_view(&signed_as), &demand, &e, NULL),
                     KEDGE_E_VERIFY);
    kedge_witness_policy_free(p);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&note);
}
END_TEST

START_TEST(flat_quorums_are_safe_from_the_published_bound_on)
{
    static const uint32_t bound[] = {1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7}; /* ledger reference §10, n = 1…10 */
    for (unsigned n = 1; n <= 10; n++) {
        for (unsigned k = 1; k <= n; k++) {
            struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
            kedge_buf_init(&text, 8192);
            for (unsigned i = 1; i <= n; i++) {
                kedge_buf_printf(&text, "witness W%u $%u\n", i, i);
            }
            kedge_buf_printf(&text, "group G %u", k);
            for (unsigned i = 1; i <= n; i++) {
                kedge_buf_printf(&text, " W%u", i);
            }
            kedge_buf_put(&text, "\nquorum G\n", 11); /* with its NUL */
            struct kedge_witness_policy *p = policy_from((const char *)text.ptr);
            struct kedge_quorum_safety s;
            struct kedge_diag diag = {0};
            int err = kedge_witness_policy_require_safe(p, true, &s, &diag);
            ck_assert_uint_eq(s.needed, bound[n]);
            ck_assert(s.n == n && s.k == k && s.is_reachable && !s.is_nested);
            ck_assert(s.is_safe == (k >= bound[n]));
            ck_assert_int_eq(err, s.is_safe ? KEDGE_OK : KEDGE_E_DENIED);
            ck_assert(strncmp(s.text, s.is_safe ? "safe: " : "unsafe: ", s.is_safe ? 6 : 8) == 0);
            kedge_witness_policy_free(p);
        }
    }
}
END_TEST

/* Every set of witnesses of small nested policies: called safe implies that dishonest witnesses as many as
 * may be away cannot be all that two quorums share. */
START_TEST(nested_quorums_called_safe_are_safe)
{
    static const struct {
        const char *text;
        uint32_t n, k;
        bool safe;
    } cases[] = {
        {"quorum none\n", 0, 0, false},
        {"witness A $1\nquorum A\n", 1, 1, true},
        {"witness A $1\nwitness B $2\nquorum A\n", 1, 1, true}, /* B has no say */
        {"witness A $1\nwitness B $2\ngroup G any A B\ngroup H all G\nquorum H\n", 2, 1, false},
        {"witness A $1\nwitness B $2\nwitness C $3\nwitness D $4\nwitness E $5\ngroup X all A B C\n"
         "group Y any D E\ngroup Q all X Y\nquorum Q\n",
         5, 4, true},
        {"witness A $1\nwitness B $2\nwitness C $3\nwitness D $4\nwitness E $5\ngroup X any A B\n"
         "group Y 2 C D E\ngroup Q all X Y\nquorum Q\n",
         5, 3, false},
        {"witness A $1\nwitness B $2\nwitness C $3\ngroup X all A B\ngroup Q any X C\nquorum Q\n", 3, 1,
         false},
        {"witness A $1\nwitness B $2\nwitness C $3\nwitness D $4\ngroup X 2 A B C\ngroup Q all X D\n"
         "quorum Q\n",
         4, 3, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_witness_policy *p = policy_from(cases[i].text);
        struct kedge_quorum_safety s;
        kedge_witness_quorum_safety(p, &s);
        ck_assert_msg(s.n == cases[i].n && s.k == cases[i].k && s.is_safe == cases[i].safe,
                      "case %zu: n %u k %u %s", i, s.n, s.k, s.text);
        uint32_t smallest = UINT32_MAX, overlap = UINT32_MAX;
        for (uint32_t a = 0; a < 1u << p->witness_count; a++) {
            for (uint32_t b = 0; b < 1u << p->witness_count; b++) {
                bool in_a[KEDGE_WITNESSES_MAX] = {false}, in_b[KEDGE_WITNESSES_MAX] = {false};
                for (uint32_t w = 0; w < p->witness_count; w++) {
                    in_a[w] = (a >> w & 1) != 0;
                    in_b[w] = (b >> w & 1) != 0;
                }
                if (kedge_witness_quorum_is_met(p, in_a) && kedge_witness_quorum_is_met(p, in_b)) {
                    uint32_t size = (uint32_t)__builtin_popcount(a);
                    uint32_t shared = (uint32_t)__builtin_popcount(a & b);
                    smallest = size < smallest ? size : smallest;
                    overlap = shared < overlap ? shared : overlap;
                }
            }
        }
        ck_assert_uint_eq(smallest, s.k);
        ck_assert(!s.is_safe || overlap > s.n - s.k);
        kedge_witness_policy_free(p);
    }
}
END_TEST

START_TEST(a_description_tells_the_quorum_and_what_is_odd)
{
    struct kedge_witness_policy *p =
        policy_from("log $0 https://log.example.org\nwitness Z\xc3\xbcrich $1\nwitness B\x9b $2 "
                    "https://w2\nwitness C $3\n"
                    "group G 2 Z\xc3\xbcrich B\x9b\ngroup unused any C\nquorum G\n");
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&out, 65536);
    kedge_witness_policy_describe(p, &out);
    static const char want[] =
        "logs: 1\n  fl.example.org/tenant-a at https://log.example.org\n"
        "witnesses: 3, 2 of them in the quorum\n  Z\xc3\xbcrich\n  B\\x9b at https://w2\n"
        "  C, outside the quorum: its word changes nothing\n"
        "quorum: G\n  G: 2 of Z\xc3\xbcrich, B\\x9b\n  unused: not used by the quorum\n"
        "safe: at least 2 of 2 witnesses satisfy the quorum, 2 are needed (1 + floor(2n/3)): the 0 that may "
        "be away could not, if dishonest, let the log show two histories\n"
        "note: every witness must answer, one that is away holds everything up\n";
    ck_assert_msg(vector_is(kedge_buf_view(&out), want), "%.*s", (int)out.len, (const char *)out.ptr);
    kedge_witness_policy_free(p);
    /* Names that would play with a terminal, and long ones cut between characters. */
    char shown[KEDGE_WITNESS_SHOWN_MAX];
    ck_assert_str_eq(kedge_witness_name_show(kedge_view_str("a\xc2\x9b"
                                                            "b"),
                                             shown),
                     "a\\xc2\\x9bb");
    ck_assert_str_eq(kedge_witness_name_show(kedge_view_str(""), shown), "");
    char longest[KEDGE_WITNESS_NAME_MAX];
    memset(longest, 0xff, sizeof longest);
    ck_assert_uint_eq(strlen(kedge_witness_name_show(kedge_view_of(longest, sizeof longest), shown)),
                      64 * 4 + 3);
    for (size_t i = 1; i + 1 < sizeof longest; i += 2) { /* "aüüü…": the 64th byte is inside a letter */
        memcpy(longest + i, "\xc3\xbc", 2);
    }
    longest[0] = 'a';
    kedge_witness_name_show(kedge_view_of(longest, sizeof longest), shown);
    ck_assert(kedge_utf8_is_valid(kedge_view_str(shown)));
    ck_assert_uint_eq(strlen(shown), 63 + 3);
}
END_TEST

START_TEST(any_allocation_may_fail)
{
    struct kedge_buf text = expand(three), note = note_by(1, 3);
    struct kedge_witness_demand demand = {0};
    int err = KEDGE_E_NOMEM;
    for (long n = 1; err && n < 200; n++) {
        struct kedge_witness_policy *p = NULL;
        struct kedge_witness_evaluation e;
        struct kedge_diag diag;
        kedge_mem_fail_at(n);
        err = kedge_witness_policy_parse(kedge_buf_view(&text), &p, &diag);
        ck_assert((err == KEDGE_OK) == (p != NULL));
        err = err ? err : kedge_witness_policy_evaluate(p, kedge_buf_view(&note), &demand, &e, &diag);
        kedge_mem_fail_at(0);
        ck_assert(err == KEDGE_OK || err == KEDGE_E_NOMEM);
        ck_assert(err != KEDGE_OK || n > 15);
        kedge_witness_policy_free(p);
    }
    ck_assert_int_eq(err, KEDGE_OK);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&note);
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
    tcase_add_test(tc, a_checkpoint_counts_by_its_log_and_its_quorum);
    tcase_add_test(tc, a_log_counts_for_its_own_origin_alone);
    tcase_add_test(tc, flat_quorums_are_safe_from_the_published_bound_on);
    tcase_add_test(tc, nested_quorums_called_safe_are_safe);
    tcase_add_test(tc, a_description_tells_the_quorum_and_what_is_odd);
    tcase_add_test(tc, any_allocation_may_fail);
    Suite *s = suite_create("chain/witness_policy");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
