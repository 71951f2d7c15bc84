/* Who cosigned, whether that is enough, and which quorums are safe. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/cosignature.h"
#include "chain/log/witness_quorum.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"
#include "tests/unit/chain/witnesses.h"

enum { TIME = 1767225600 };

/* A checkpoint of the log with cosignatures of witnesses first…last, each a second later. */
static struct kedge_buf note_by(unsigned first, unsigned last)
{
    struct kedge_buf b, out;
    kedge_buf_init(&b, KEDGE_NOTE_MAX);
    struct kedge_key_pair log = pair_of_witness(0);
    struct kedge_hash root = {{9}};
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(WITNESSES_LOG), 7, &root, &log, &b), KEDGE_OK);
    for (unsigned n = first; n <= last; n++) {
        struct kedge_buf line;
        struct kedge_note note;
        struct kedge_key_pair pair = pair_of_witness(n);
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
    demand = (struct kedge_witness_demand){.origin = kedge_view_str(WITNESSES_LOG)};
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
    demand.origin = kedge_view_str(WITNESSES_LOG);
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, bytes, &demand, &e, NULL), KEDGE_OK);
    demand.logs = &witness;
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, bytes, &demand, &e, NULL), KEDGE_E_ARG);
    demand.logs = two;
    demand.log_count = 2;
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, bytes, &demand, &e, NULL), KEDGE_E_ARG);
    /* A log's key that is a witness's of the policy, too. */
    struct kedge_key_pair pair = pair_of_witness(1);
    struct kedge_vkey shared;
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(WITNESSES_LOG), KEDGE_KEY_ED25519, &pair.public, &shared),
                     KEDGE_OK);
    demand.logs = &shared;
    demand.log_count = 1;
    ck_assert_int_eq(kedge_witness_policy_evaluate(p, bytes, &demand, &e, NULL), KEDGE_E_ARG);
    kedge_witness_policy_free(p);
    /* The right key under another name than the origin. */
    struct kedge_vkey renamed;
    struct kedge_key_pair log_pair = pair_of_witness(0);
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
                     "a\\u009bb");
    ck_assert_str_eq(kedge_witness_name_show(kedge_view_str(""), shown), "");
    char longest[KEDGE_WITNESS_NAME_MAX];
    memset(longest, 0xff, sizeof longest);
    ck_assert_uint_eq(strlen(kedge_witness_name_show(kedge_view_of(longest, sizeof longest), shown)),
                      64 * 4 + 3);
    for (size_t i = 1; i + 1 < sizeof longest; i += 2) { /* "aüüü…": the 64th byte is inside a letter */
        longest[i] = '\xc3';
        longest[i + 1] = '\xbc';
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
    TCase *tc = tcase_create("witness quorum");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_checkpoint_counts_by_its_log_and_its_quorum);
    tcase_add_test(tc, a_log_counts_for_its_own_origin_alone);
    tcase_add_test(tc, flat_quorums_are_safe_from_the_published_bound_on);
    tcase_add_test(tc, nested_quorums_called_safe_are_safe);
    tcase_add_test(tc, a_description_tells_the_quorum_and_what_is_odd);
    tcase_add_test(tc, any_allocation_may_fail);
    Suite *s = suite_create("chain/witness_quorum");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
