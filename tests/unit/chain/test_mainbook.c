/* What the main chain says of authority: who may sign what, what may come and go, who approves. One book,
 * statement by statement; each rule is broken once. */
#include "chain/statement/mainbook.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "tests/unit/chain/samples.h"

enum { LOG_KEY = 2, SIGNERS_MAX = 6, TENANTS = 3 };

static struct kedge_statement st, out;
static struct kedge_mainbook book;
static uint64_t next;
static struct kedge_diag diag;
static struct kedge_approvals approvals;

static struct kedge_public_key key(uint8_t n)
{
    return sample_pair(n).public;
}

/* Tenant 0 has the admins 100 and 101, 1 has 110, 2 has 120; 109 was one of tenant 0, 130 is one of two
 * tenants. */
static int find_admin(void *arg, const struct kedge_hash *keyid, uint32_t *ret_tenant,
                      struct kedge_public_key *ret_key)
{
    static const struct {
        uint8_t pair;
        uint32_t tenant;
        int err;
    } admins[] = {{100, 0, 0},
                  {101, 0, 0},
                  {110, 1, 0},
                  {120, 2, 0},
                  {109, 0, KEDGE_E_REVOKED},
                  {130, 0, KEDGE_E_EXISTS}};
    (void)arg;
    for (size_t i = 0; i < sizeof admins / sizeof admins[0]; i++) {
        struct kedge_hash h;
        *ret_key = key(admins[i].pair);
        kedge_public_key_hash(ret_key, &h);
        if (kedge_hash_eq(&h, keyid)) {
            *ret_tenant = admins[i].tenant;
            return admins[i].err;
        }
    }
    return KEDGE_E_NOT_FOUND;
}

static const struct kedge_organisations organisations = {find_admin, NULL};

/* Signs `st` by the sample pairs named (0 ends), takes it apart, asks the book, takes it in. */
static int say(const uint8_t *by)
{
    struct kedge_buf a, b;
    struct kedge_signed_statement entry;
    uint32_t others = 0;
    struct kedge_key_pair pair = sample_pair(by[0]);
    kedge_buf_init(&a, KEDGE_ENTRY_MAX);
    diag = (struct kedge_diag){.err = KEDGE_OK};
    ck_assert_msg(kedge_statement_sign(&st, &pair, &a, &diag) == KEDGE_OK, "%s", diag.text);
    for (int i = 1; by[i]; i++) {
        pair = sample_pair(by[i]);
        kedge_buf_init(&b, KEDGE_ENTRY_MAX);
        ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&a), &pair, &b, NULL), KEDGE_OK);
        kedge_buf_deinit(&a);
        a = b;
    }
    ck_assert_int_eq(kedge_statement_read(kedge_buf_view(&a), &out, &entry, &diag), KEDGE_OK);
    int err = kedge_mainbook_verify(&book, &out, &entry, &others, &diag);
    err = err ? err : kedge_mainbook_approved(&book, &out, &entry, &organisations, &approvals, &diag);
    err = err ? err : kedge_mainbook_apply(&book, &out, next, &diag);
    next += err == KEDGE_OK;
    ck_assert(err == KEDGE_OK || diag.text[0]);
    kedge_buf_deinit(&entry.payload);
    kedge_buf_deinit(&a);
    return err;
}

#define BY(...) ((const uint8_t[SIGNERS_MAX + 1]){__VA_ARGS__})

static struct kedge_st_main_bound bound(void)
{
    return (struct kedge_st_main_bound){"fl.example.org", key(LOG_KEY), 5000};
}

static int say_rotated(uint8_t from, uint8_t to, const uint8_t *by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_STATEMENT_KEY_ROTATED};
    st.u.statement_key_rotated = (struct kedge_st_statement_key_rotated){bound(), key(from), key(to), ""};
    return say(by);
}

static int say_granted(uint8_t n, const uint8_t *by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_ROLE_GRANTED};
    st.u.role_granted =
        (struct kedge_st_role_granted){bound(), KEDGE_CHAIN_OPERATOR, sample_id("ops"), key(n)};
    return say(by);
}

static int say_revoked(uint8_t n, enum kedge_chain_role role, const uint8_t *by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_ROLE_REVOKED};
    st.u.role_revoked = (struct kedge_st_role_revoked){bound(), role, key(n), "left"};
    return say(by);
}

static int say_quorum(uint64_t number, uint32_t quorum, const uint8_t *by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_POLICY_CHANGED};
    st.u.policy_changed = (struct kedge_st_policy_changed){bound(), number, quorum};
    return say(by);
}

static int say_policy(uint8_t by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_POLICY};
    st.u.policy = (struct kedge_st_policy){"fl.example.org", key(1), key(LOG_KEY)};
    return say(BY(by));
}

static void begin(void)
{
    kedge_mainbook_init(&book);
    next = 0;
    ck_assert_int_eq(say_policy(1), KEDGE_OK);
}

static void end(void)
{
    kedge_mainbook_deinit(&book);
}

START_TEST(the_policy_is_entry_0_alone)
{
    kedge_mainbook_init(&book);
    next = 0;
    ck_assert_ptr_null(kedge_mainbook_key(&book));
    ck_assert_int_ne(say_granted(5, BY(1)), KEDGE_OK); /* nobody has authority yet */
    ck_assert_int_eq(say_policy(3), KEDGE_E_DENIED);
    ck_assert_int_eq(say_policy(1), KEDGE_OK);
    ck_assert_int_eq(say_policy(1), KEDGE_E_EXISTS);
    ck_assert(kedge_public_key_eq(kedge_mainbook_key(&book), &(struct kedge_public_key){0}) == false);
    ck_assert_uint_eq(book.admin_quorum, 0);
    end();
}
END_TEST

START_TEST(the_statement_key_is_rotated_by_both)
{
    struct kedge_hash id;
    begin();
    ck_assert_int_eq(say_rotated(1, 3, BY(1)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(1, 3, BY(3)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(1, 3, BY(1, 3, 7)), KEDGE_E_DENIED); /* a stranger's on top */
    ck_assert_int_eq(say_rotated(7, 3, BY(7, 3)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(1, 3, BY(1, 3)), KEDGE_OK);
    ck_assert_int_eq(say_rotated(1, 3, BY(1, 3)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_rotated(1, 4, BY(3, 4)), KEDGE_E_KEY); /* the old one does not go twice */
    ck_assert_int_eq(say_rotated(3, 1, BY(3, 1)), KEDGE_E_KEY); /* nor come back */
    ck_assert_int_eq(say_rotated(3, LOG_KEY, BY(3, LOG_KEY)), KEDGE_E_KEY);
    ck_assert_int_eq(say_granted(5, BY(1)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_granted(5, BY(3)), KEDGE_OK);
    ck_assert_int_eq(say_rotated(3, 5, BY(3, 5)), KEDGE_E_KEY); /* an operator's */
    struct kedge_public_key first = key(1), now = key(3);
    ck_assert(kedge_public_key_eq(kedge_mainbook_key(&book), &now));
    kedge_public_key_hash(&first, &id);
    ck_assert_uint_eq(kedge_mainbook_find(&book, &id)->until, 1);
    kedge_public_key_hash(&now, &id);
    ck_assert_uint_eq(kedge_mainbook_find(&book, &id)->from, 1);
    id.b[0] ^= 1;
    ck_assert_ptr_null(kedge_mainbook_find(&book, &id));
    end();
}
END_TEST

START_TEST(roles_come_and_go_once)
{
    struct kedge_public_key five = key(5);
    begin();
    ck_assert_int_eq(say_granted(1, BY(1)), KEDGE_E_KEY);
    ck_assert_int_eq(say_granted(LOG_KEY, BY(1)), KEDGE_E_KEY);
    ck_assert_int_eq(say_granted(5, BY(5)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_granted(5, BY(1)), KEDGE_OK);
    ck_assert_int_eq(say_granted(5, BY(1)), KEDGE_E_KEY);
    ck_assert_ptr_nonnull(kedge_mainbook_role(&book, &five));
    ck_assert_int_eq(say_revoked(6, KEDGE_CHAIN_OPERATOR, BY(1)), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(say_revoked(5, KEDGE_CHAIN_AUDITOR, BY(1)), KEDGE_E_KEY);
    ck_assert_int_eq(say_revoked(5, KEDGE_CHAIN_OPERATOR, BY(1)), KEDGE_OK);
    ck_assert_ptr_null(kedge_mainbook_role(&book, &five));
    ck_assert(kedge_mainbook_names(&book, &five));
    ck_assert_int_eq(say_revoked(5, KEDGE_CHAIN_OPERATOR, BY(1)), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(say_granted(5, BY(1)), KEDGE_E_KEY); /* once and for all */
    ck_assert_int_eq(say_rotated(1, 5, BY(1, 5)), KEDGE_E_KEY);
    end();
}
END_TEST

START_TEST(a_statement_is_for_one_main_chain_and_for_a_while)
{
    begin();
    st = (struct kedge_statement){.kind = KEDGE_ST_ROLE_GRANTED};
    st.u.role_granted =
        (struct kedge_st_role_granted){bound(), KEDGE_CHAIN_OPERATOR, sample_id("ops"), key(5)};
    struct kedge_st_main_bound *of = &st.u.role_granted.of;
    of->main_log_key = key(9); /* of the same name */
    ck_assert_int_eq(say(BY(1)), KEDGE_E_DENIED);
    *of = bound();
    of->deployment[0] = 'x';
    ck_assert_int_eq(say(BY(1)), KEDGE_E_DENIED);
    *of = bound();
    of->before = next;
    ck_assert_int_eq(say(BY(1)), KEDGE_E_STATE);
    of->before = next + 1;
    ck_assert_int_eq(say(BY(1)), KEDGE_OK);
    end();
}
END_TEST

START_TEST(organisations_approve)
{
    begin();
    ck_assert_int_eq(say_quorum(2, 2, BY(1)), KEDGE_E_DENIED); /* nobody approved the quorum itself */
    ck_assert_int_eq(say_quorum(2, 2, BY(1, 100, 110)), KEDGE_E_EXISTS); /* out of turn */
    ck_assert_int_eq(say_quorum(1, 2, BY(1, 100, 101)), KEDGE_E_DENIED); /* one organisation */
    ck_assert_int_eq(say_quorum(1, 2, BY(1, 100, 110)), KEDGE_OK);
    ck_assert_uint_eq(book.admin_quorum, 2);
    ck_assert_int_eq(say_quorum(1, 2, BY(1, 100, 110)), KEDGE_E_EXISTS); /* replayed */

    ck_assert_int_eq(say_granted(5, BY(1)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_granted(5, BY(1, 100)), KEDGE_E_DENIED);
    ck_assert_uint_eq(approvals.count, 1);
    ck_assert_int_eq(say_granted(5, BY(1, 100, 101)), KEDGE_E_DENIED); /* two admins of one */
    ck_assert_uint_eq(approvals.count, 1);
    ck_assert_int_eq(say_granted(5, BY(1, 100, 109)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_granted(5, BY(1, 110, 109)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_granted(5, BY(1, 100, 110, 7)), KEDGE_E_DENIED); /* a stranger among them */
    ck_assert_int_eq(say_granted(5, BY(1, 100, 130)), KEDGE_E_DENIED);    /* of two tenants: of none */
    ck_assert_int_eq(say_granted(5, BY(100, 110, 120)), KEDGE_E_DENIED);  /* not without the coordinator */
    ck_assert_int_eq(say_granted(5, BY(1, 101, 120)), KEDGE_OK);
    ck_assert_uint_eq(approvals.count, 2);
    ck_assert_int_eq(say_revoked(5, KEDGE_CHAIN_OPERATOR, BY(1)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(1, 3, BY(1, 3)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(1, 3, BY(1, 3, 110, 120)), KEDGE_OK);

    ck_assert_int_eq(say_quorum(2, 3, BY(3, 100, 110)), KEDGE_E_DENIED); /* as many as it is to be */
    ck_assert_int_eq(say_quorum(2, 3, BY(3, 100, 110, 120)), KEDGE_OK);
    ck_assert_int_eq(say_quorum(3, 0, BY(3, 100, 110)), KEDGE_E_DENIED); /* as many as it was */
    ck_assert_int_eq(say_quorum(3, 0, BY(3, 100, 110, 120)), KEDGE_OK);
    ck_assert_int_eq(say_granted(6, BY(3)), KEDGE_OK);
    end();
}
END_TEST

START_TEST(an_approval_serves_its_statement_only)
{
    struct kedge_buf a, b;
    struct kedge_signed_statement one, other;
    struct kedge_key_pair coordinator = sample_pair(1), admin = sample_pair(100);
    uint32_t others;
    begin();
    kedge_buf_init(&a, KEDGE_ENTRY_MAX);
    kedge_buf_init(&b, KEDGE_ENTRY_MAX);
    st = (struct kedge_statement){.kind = KEDGE_ST_ROLE_GRANTED};
    st.u.role_granted =
        (struct kedge_st_role_granted){bound(), KEDGE_CHAIN_AUDITOR, sample_id("court"), key(5)};
    ck_assert_int_eq(kedge_statement_sign(&st, &admin, &a, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_read(kedge_buf_view(&a), &out, &one, NULL), KEDGE_OK);
    st.u.role_granted.role = KEDGE_CHAIN_OPERATOR; /* the same key, as an operator */
    ck_assert_int_eq(kedge_statement_sign(&st, &coordinator, &b, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_read(kedge_buf_view(&b), &out, &other, NULL), KEDGE_OK);
    other.signatures[other.signature_count++] = one.signatures[0];
    ck_assert_int_eq(kedge_mainbook_verify(&book, &out, &other, &others, NULL), KEDGE_OK);
    ck_assert_uint_eq(others, 1);
    ck_assert_int_eq(kedge_mainbook_approved(&book, &out, &other, &organisations, &approvals, &diag),
                     KEDGE_E_VERIFY);
    kedge_buf_deinit(&one.payload);
    kedge_buf_deinit(&other.payload);
    kedge_buf_deinit(&a);
    kedge_buf_deinit(&b);
    end();
}
END_TEST

/* Pair n of a long row, none of which is a sample. */
static struct kedge_key_pair row_pair(uint32_t n)
{
    struct kedge_key_pair pair;
    struct kedge_seed seed = {{0xee, (uint8_t)(n >> 8), (uint8_t)n}};
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

static int rotate_row(uint32_t from)
{
    struct kedge_statement *s = &st;
    *s = (struct kedge_statement){.kind = KEDGE_ST_STATEMENT_KEY_ROTATED};
    s->u.statement_key_rotated = (struct kedge_st_statement_key_rotated){
        bound(), from ? row_pair(from).public : key(1), row_pair(from + 1).public, ""};
    return kedge_mainbook_apply(&book, s, next++, &diag);
}

START_TEST(a_long_chain_of_rotations_ends)
{
    struct kedge_hash id;
    begin();
    for (uint32_t i = 0; i < KEDGE_STATEMENT_KEYS_MAX - 1; i++) {
        ck_assert_int_eq(rotate_row(i), KEDGE_OK);
    }
    ck_assert_int_eq(rotate_row(KEDGE_STATEMENT_KEYS_MAX - 1), KEDGE_E_FULL);
    struct kedge_public_key first = key(1);
    kedge_public_key_hash(&first, &id);
    ck_assert_uint_eq(kedge_mainbook_find(&book, &id)->until, 1);
    struct kedge_public_key last = row_pair(KEDGE_STATEMENT_KEYS_MAX - 1).public;
    ck_assert(kedge_public_key_eq(kedge_mainbook_key(&book), &last));
    end();
}
END_TEST

/* The rotation of pair `from` to pair `to`, signed by `by`, as sites are shown it. */
static void show(struct kedge_buf *shown, uint8_t from, uint8_t to, uint8_t by)
{
    struct kedge_buf one, both;
    struct kedge_key_pair old = sample_pair(by), new = sample_pair(to);
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    kedge_buf_init(&both, KEDGE_ENTRY_MAX);
    st = (struct kedge_statement){.kind = KEDGE_ST_STATEMENT_KEY_ROTATED};
    st.u.statement_key_rotated = (struct kedge_st_statement_key_rotated){bound(), key(from), key(to), ""};
    ck_assert_int_eq(kedge_statement_sign(&st, &old, &one, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&one), &new, &both, NULL), KEDGE_OK);
    kedge_buf_put_u32(shown, (uint32_t)both.len);
    kedge_buf_put(shown, both.ptr, both.len);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&both);
}

START_TEST(a_site_follows_what_it_is_shown)
{
    struct kedge_buf shown;
    struct kedge_public_key first = key(1), third = key(3), fourth = key(4), now;
    kedge_buf_init(&shown, 65536);
    ck_assert_int_eq(kedge_mainbook_follow(&first, "fl.example.org", kedge_buf_view(&shown), &now), KEDGE_OK);
    ck_assert(kedge_public_key_eq(&now, &first));
    show(&shown, 1, 3, 1);
    size_t one = shown.len;
    show(&shown, 3, 4, 3);
    struct kedge_view all = kedge_buf_view(&shown);
    ck_assert_int_eq(kedge_mainbook_follow(&first, "fl.example.org", all, &now), KEDGE_OK);
    ck_assert(kedge_public_key_eq(&now, &fourth));
    ck_assert_int_eq(kedge_mainbook_follow(&third, "fl.example.org", all, &now), KEDGE_OK);
    ck_assert(kedge_public_key_eq(&now, &fourth)); /* a newer trust file */
    ck_assert_int_eq(kedge_mainbook_follow(&first, "other.example.org", all, &now), KEDGE_E_DENIED);
    for (size_t cut = 1; cut < one; cut += 7) {
        ck_assert_int_ne(
            kedge_mainbook_follow(&first, "fl.example.org", kedge_view_of(all.ptr, one - cut), &now),
            KEDGE_OK);
    }
    kedge_buf_clear(&shown);
    show(&shown, 1, 3, 9); /* a thief of nothing */
    now = first;
    ck_assert_int_eq(kedge_mainbook_follow(&first, "fl.example.org", kedge_buf_view(&shown), &now),
                     KEDGE_E_DENIED);
    ck_assert(kedge_public_key_eq(&now, &first));
    kedge_buf_deinit(&shown);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mainbook");
    TCase *t = tcase_create("mainbook");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_policy_is_entry_0_alone);
    tcase_add_test(t, the_statement_key_is_rotated_by_both);
    tcase_add_test(t, roles_come_and_go_once);
    tcase_add_test(t, a_statement_is_for_one_main_chain_and_for_a_while);
    tcase_add_test(t, organisations_approve);
    tcase_add_test(t, an_approval_serves_its_statement_only);
    tcase_add_test(t, a_long_chain_of_rotations_ends);
    tcase_add_test(t, a_site_follows_what_it_is_shown);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    if (kedge_crypto_init() != KEDGE_OK) {
        return 1;
    }
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
