/* The keys of a ledger: who may sign what, what may come and go. One book, statement by statement. */
#include "chain/statement/keybook.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "tests/unit/chain/samples.h"

static struct kedge_statement st, out;
static struct kedge_keybook book;
static uint64_t next;
static struct kedge_diag diag;

enum { SIGNERS_MAX = 4 };

/* Signs `st` by the sample pairs named (0 ends), takes it apart, asks the book, takes it in. */
static int say(const uint8_t by[SIGNERS_MAX])
{
    struct kedge_buf a, b;
    struct kedge_signed_statement entry;
    struct kedge_key_pair pair = sample_pair(by[0]);
    kedge_buf_init(&a, KEDGE_ENTRY_MAX);
    diag = (struct kedge_diag){.err = KEDGE_OK};
    st.at = sample_position();
    ck_assert_msg(kedge_statement_sign(&st, &pair, &a, &diag) == KEDGE_OK, "%s", diag.text);
    for (int i = 1; i < SIGNERS_MAX && by[i]; i++) {
        pair = sample_pair(by[i]);
        kedge_buf_init(&b, KEDGE_ENTRY_MAX);
        ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&a), &pair, &b, NULL), KEDGE_OK);
        kedge_buf_deinit(&a);
        a = b;
    }
    ck_assert_int_eq(kedge_statement_read(kedge_buf_view(&a), &out, &entry, &diag), KEDGE_OK);
    int err = kedge_keybook_verify(&book, &out, &entry, &diag);
    err = err ? err : kedge_keybook_apply(&book, &out, next, &diag);
    next += err == KEDGE_OK;
    ck_assert(err == KEDGE_OK || diag.text[0]);
    kedge_buf_deinit(&entry.payload);
    kedge_buf_deinit(&a);
    return err;
}

#define BY(...) ((const uint8_t[SIGNERS_MAX]){__VA_ARGS__})

static struct kedge_public_key key(uint8_t n)
{
    return sample_pair(n).public;
}

static int say_key(uint8_t n)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_KEY};
    st.u.key = (struct kedge_st_key){KEDGE_SCOPE_ADMIN, sample_id("north"), key(n)};
    return say(BY(n));
}

static int say_added(enum kedge_key_role role, uint8_t n, const uint8_t *by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_KEY_ADDED};
    st.u.key_added = (struct kedge_st_key_added){sample_id("north"), role, key(n)};
    return say(by);
}

static int say_rotated(enum kedge_key_role role, const char *site, uint8_t from, uint8_t to,
                       const uint8_t *by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_KEY_ROTATED};
    st.u.key_rotated = (struct kedge_st_key_rotated){sample_id("north"), role, {.s = ""}, key(from), key(to)};
    if (site[0]) {
        st.u.key_rotated.site = sample_id(site);
    }
    return say(by);
}

static int say_revoked(enum kedge_key_role role, uint8_t n, const uint8_t *by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_KEY_REVOKED};
    st.u.key_revoked = (struct kedge_st_key_revoked){sample_id("north"), role, key(n), "stolen"};
    return say(by);
}

static int say_recovered(uint8_t n, const uint8_t *by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_KEY_RECOVERED};
    st.u.key_recovered = (struct kedge_st_key_recovered){sample_id("north"), key(n), "lost"};
    return say(by);
}

static int say_site(const char *name, uint8_t statement, uint8_t tls, const uint8_t *by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_SITE_ENROLLED};
    st.u.site_enrolled =
        (struct kedge_st_site_enrolled){sample_id("north"), sample_id(name), key(tls), key(statement)};
    return say(by);
}

static int say_site_gone(const char *name, uint8_t statement, const uint8_t *by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_SITE_REVOKED};
    st.u.site_revoked =
        (struct kedge_st_site_revoked){sample_id("north"), sample_id(name), key(statement), "sold"};
    return say(by);
}

static void begin(void)
{
    struct kedge_id tenant = sample_id("north");
    kedge_keybook_init(&book, &tenant);
    next = 0;
    ck_assert_int_eq(say_key(1), KEDGE_OK);
}

START_TEST(the_first_key_is_entry_0_alone)
{
    begin();
    ck_assert_uint_eq(kedge_keybook_admins(&book), 1);
    ck_assert_uint_eq(kedge_keybook_quorum(&book), 1);
    ck_assert_int_eq(say_key(1), KEDGE_E_EXISTS);
    ck_assert_int_eq(say_key(2), KEDGE_E_EXISTS);
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(more_than_half_of_the_admins_change_them)
{
    static const uint32_t quorum[] = {0, 1, 2, 2, 3, 3};
    begin();
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 2, BY(1)), KEDGE_E_DENIED); /* without the new key */
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 2, BY(2)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 2, BY(1, 2, 3)), KEDGE_E_DENIED); /* a stranger besides */
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 2, BY(1, 2)), KEDGE_OK);
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 3, BY(1, 3)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 3, BY(1, 2, 3)), KEDGE_OK);
    for (uint32_t n = 3; n < 5; n++) {
        ck_assert_uint_eq(kedge_keybook_quorum(&book), quorum[n]);
        ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, (uint8_t)(n + 1), BY(1, (uint8_t)(n + 1))),
                         KEDGE_E_DENIED);
        ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, (uint8_t)(n + 1),
                                   n == 3 ? BY(1, 2, (uint8_t)(n + 1)) : BY(1, 2, 3, (uint8_t)(n + 1))),
                         KEDGE_OK);
    }
    ck_assert_uint_eq(kedge_keybook_quorum(&book), quorum[5]);
    /* any of them signs a site in */
    ck_assert_int_eq(say_site("s1", 21, 22, BY(4)), KEDGE_OK);
    ck_assert_int_eq(say_site("s2", 23, 24, BY(6)), KEDGE_E_DENIED);
    /* the same key twice, an admin's key as recovery key */
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 5, BY(1, 2, 3, 5)), KEDGE_E_KEY);
    ck_assert_int_eq(say_added(KEDGE_ROLE_RECOVERY, 4, BY(1, 2, 3, 4)), KEDGE_E_KEY);
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 21, BY(1, 2, 3, 21)), KEDGE_E_KEY);
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(rotation_takes_both_keys)
{
    begin();
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_ADMIN, "", 1, 2, BY(1)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_ADMIN, "", 1, 2, BY(2)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_ADMIN, "", 1, 2, BY(1, 3)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_ADMIN, "", 1, 2, BY(1, 2, 3)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_RECOVERY, "", 1, 2, BY(1, 2)), KEDGE_E_KEY); /* another role */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_ADMIN, "", 3, 2, BY(2, 3)), KEDGE_E_KEY);    /* unknown */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_ADMIN, "", 1, 2, BY(1, 2)), KEDGE_OK);
    ck_assert_uint_eq(kedge_keybook_admins(&book), 1);
    ck_assert_int_eq(say_site("s1", 21, 22, BY(1)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_site("s1", 21, 22, BY(2)), KEDGE_OK);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_ADMIN, "", 1, 2, BY(1, 2)), KEDGE_E_REVOKED); /* replayed */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_ADMIN, "", 1, 3, BY(1, 3)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_ADMIN, "", 2, 1, BY(1, 2)), KEDGE_E_KEY); /* back again */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_ADMIN, "", 2, 21, BY(2, 21)), KEDGE_E_KEY);
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(a_site_rotates_its_own_key)
{
    begin();
    ck_assert_int_eq(say_site("s1", 21, 22, BY(1)), KEDGE_OK);
    ck_assert_int_eq(say_site("s2", 31, 32, BY(1)), KEDGE_OK);
    ck_assert_int_eq(say_site("s1", 41, 42, BY(1)), KEDGE_E_EXISTS);
    ck_assert_int_eq(say_site("s3", 43, 43, BY(1)), KEDGE_E_KEY);
    ck_assert_int_eq(say_site("s3", 43, 22, BY(1)), KEDGE_E_KEY);
    ck_assert_int_eq(say_site("s3", 1, 44, BY(1)), KEDGE_E_KEY);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE, "s2", 21, 23, BY(21, 23)), KEDGE_E_KEY);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE, "s9", 21, 23, BY(21, 23)), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE, "s1", 22, 23, BY(22, 23)), KEDGE_E_KEY); /* its TLS key */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE, "s1", 21, 23, BY(1, 23)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE, "s1", 21, 23, BY(21, 23)), KEDGE_OK);
    struct kedge_id s1 = sample_id("s1");
    const struct kedge_book_key *k = kedge_keybook_of(&book, KEDGE_ROLE_SITE, &s1);
    struct kedge_public_key now = key(23), then = key(21);
    ck_assert(k && kedge_public_key_eq(&k->key, &now) && k->from == 3 && kedge_book_key_in_force(k));
    k = kedge_keybook_find(&book, &then);
    ck_assert(k && k->until == 3 && !k->revoked);
    ck_assert_int_eq(say_site_gone("s1", 21, BY(1)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_site_gone("s1", 23, BY(23)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_site_gone("s1", 23, BY(1)), KEDGE_OK);
    ck_assert_int_eq(say_site_gone("s1", 23, BY(1)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE, "s1", 23, 24, BY(23, 24)), KEDGE_E_REVOKED);
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(a_sites_tls_key_is_rotated_by_its_statement_key)
{
    struct kedge_id site = sample_id("s1");
    struct kedge_public_key now = key(23);
    begin();
    ck_assert_int_eq(say_site("s1", 21, 22, BY(1)), KEDGE_OK);
    ck_assert_int_eq(say_site("s2", 31, 32, BY(1)), KEDGE_OK);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 22, 23, BY(22, 23)),
                     KEDGE_E_DENIED); /* not the one that goes */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 22, 23, BY(1, 23)),
                     KEDGE_E_DENIED); /* nor an admin */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 22, 23, BY(21)),
                     KEDGE_E_DENIED); /* who has it? */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 22, 23, BY(31, 23)),
                     KEDGE_E_DENIED); /* another site */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s2", 22, 23, BY(31, 23)), KEDGE_E_KEY);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s9", 22, 23, BY(21, 23)), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 21, 23, BY(21, 23)),
                     KEDGE_E_KEY); /* its statement key */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 22, 32, BY(21, 32)), KEDGE_E_KEY); /* s2's */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 22, 21, BY(21)),
                     KEDGE_E_DENIED); /* one key, two roles */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 22, 23, BY(21, 23)), KEDGE_OK);
    ck_assert(kedge_public_key_eq(&kedge_keybook_of(&book, KEDGE_ROLE_SITE_TLS, &site)->key, &now));
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 22, 24, BY(21, 24)), KEDGE_E_REVOKED); /* again */
    ck_assert_int_eq(say_site("s3", 41, 22, BY(1)), KEDGE_E_KEY); /* the one that went, for another site */
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE, "s1", 21, 25, BY(21, 25)), KEDGE_OK);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 23, 24, BY(21, 24)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 23, 24, BY(25, 24)), KEDGE_OK);
    ck_assert_int_eq(say_site_gone("s1", 25, BY(1)), KEDGE_OK);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_SITE_TLS, "s1", 24, 26, BY(25, 26)), KEDGE_E_REVOKED);
    ck_assert(!kedge_book_key_in_force(kedge_keybook_of(&book, KEDGE_ROLE_SITE_TLS, &site)));
    kedge_keybook_deinit(&book);
}
END_TEST

/* Key n of a long row, none of which is a sample. */
static struct kedge_public_key row_key(uint32_t n)
{
    struct kedge_key_pair pair;
    struct kedge_seed seed = {{0xee, (uint8_t)(n >> 8), (uint8_t)n}};
    kedge_key_from_seed(&seed, &pair);
    return pair.public;
}

START_TEST(a_thousand_rotations_leave_one_key)
{
    enum { ROTATIONS = 1000 };
    const struct kedge_book_key *k;
    struct kedge_public_key first = key(1), middle = row_key(ROTATIONS / 2), last = row_key(ROTATIONS);
    struct kedge_hash id;
    begin();
    for (uint32_t i = 0; i < ROTATIONS; i++) {
        st = (struct kedge_statement){.kind = KEDGE_ST_KEY_ROTATED};
        st.u.key_rotated = (struct kedge_st_key_rotated){
            .tenant = sample_id("north"), .old_key = i ? row_key(i) : first, .new_key = row_key(i + 1)};
        ck_assert_int_eq(kedge_keybook_apply(&book, &st, next++, &diag), KEDGE_OK);
    }
    ck_assert_uint_eq(kedge_keybook_admins(&book), 1);
    kedge_public_key_hash(&last, &id);
    ck_assert_int_eq(kedge_keybook_admin(&book, &id, &k), KEDGE_OK);
    kedge_public_key_hash(&middle, &id);
    ck_assert_int_eq(kedge_keybook_admin(&book, &id, &k), KEDGE_E_REVOKED);
    ck_assert(k->from == ROTATIONS / 2 && k->until == ROTATIONS / 2 + 1);
    id.b[3] ^= 1;
    ck_assert_int_eq(kedge_keybook_admin(&book, &id, &k), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(say_site("s1", 21, 22, BY(1)), KEDGE_E_REVOKED);
    st = (struct kedge_statement){.kind = KEDGE_ST_KEY_ROTATED};
    st.u.key_rotated =
        (struct kedge_st_key_rotated){.tenant = sample_id("north"), .old_key = last, .new_key = middle};
    ck_assert_int_eq(kedge_keybook_check(&book, &st, &diag), KEDGE_E_KEY);
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(a_stolen_admin_key_is_revoked_by_the_others)
{
    begin();
    ck_assert_int_eq(say_revoked(KEDGE_ROLE_ADMIN, 1, BY(1)), KEDGE_E_DENIED); /* the last one */
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 2, BY(1, 2)), KEDGE_OK);
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 3, BY(1, 2, 3)), KEDGE_OK);
    ck_assert_int_eq(say_revoked(KEDGE_ROLE_ADMIN, 2, BY(1)), KEDGE_E_DENIED); /* a thief of 1 */
    ck_assert_int_eq(say_revoked(KEDGE_ROLE_ADMIN, 9, BY(2, 3)), KEDGE_E_KEY);
    ck_assert_int_eq(say_revoked(KEDGE_ROLE_RECOVERY, 1, BY(2, 3)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_revoked(KEDGE_ROLE_ADMIN, 1, BY(2, 3)), KEDGE_OK);
    ck_assert_int_eq(say_revoked(KEDGE_ROLE_ADMIN, 1, BY(2, 3)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_site("s1", 21, 22, BY(1)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_revoked(KEDGE_ROLE_ADMIN, 3, BY(1, 2)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_revoked(KEDGE_ROLE_ADMIN, 2, BY(2)), KEDGE_OK); /* itself */
    ck_assert_uint_eq(kedge_keybook_admins(&book), 1);
    ck_assert_int_eq(say_site("s1", 21, 22, BY(3)), KEDGE_OK);
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(the_recovery_key_puts_one_admin_key_in_the_place_of_all)
{
    begin();
    ck_assert_int_eq(say_recovered(5, BY(1, 5)), KEDGE_E_DENIED); /* none is registered */
    ck_assert_int_eq(say_added(KEDGE_ROLE_RECOVERY, 9, BY(1)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_added(KEDGE_ROLE_RECOVERY, 9, BY(1, 9)), KEDGE_OK);
    ck_assert_int_eq(say_added(KEDGE_ROLE_RECOVERY, 8, BY(1, 8)), KEDGE_E_EXISTS);
    ck_assert_int_eq(say_site("s1", 21, 22, BY(9)), KEDGE_E_DENIED); /* it does nothing else */
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 2, BY(9, 2)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_revoked(KEDGE_ROLE_RECOVERY, 9, BY(1)), KEDGE_E_DENIED); /* a thief of 1 */
    ck_assert_int_eq(say_added(KEDGE_ROLE_ADMIN, 2, BY(1, 2)), KEDGE_OK);
    ck_assert_int_eq(say_recovered(5, BY(9)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_recovered(5, BY(1, 5)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_recovered(2, BY(9, 2)), KEDGE_E_KEY);
    ck_assert_int_eq(say_recovered(5, BY(9, 5)), KEDGE_OK);
    ck_assert_uint_eq(kedge_keybook_admins(&book), 1);
    ck_assert_int_eq(say_site("s1", 21, 22, BY(1)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_site("s1", 21, 22, BY(2)), KEDGE_E_REVOKED);
    ck_assert_int_eq(say_site("s1", 21, 22, BY(5)), KEDGE_OK);
    ck_assert_int_eq(say_rotated(KEDGE_ROLE_RECOVERY, "", 9, 10, BY(9, 10)), KEDGE_OK);
    ck_assert_int_eq(say_recovered(6, BY(9, 6)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_revoked(KEDGE_ROLE_RECOVERY, 10, BY(10)), KEDGE_OK);
    ck_assert_int_eq(say_recovered(6, BY(10, 6)), KEDGE_E_DENIED);
    ck_assert_int_eq(say_added(KEDGE_ROLE_RECOVERY, 11, BY(5, 11)), KEDGE_OK);
    kedge_keybook_deinit(&book);
}
END_TEST

/* A signature by the right key over something else. */
START_TEST(a_signature_of_another_statement_is_none)
{
    struct kedge_signed_statement entry;
    struct kedge_buf a KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_key_pair pair = sample_pair(1);
    begin();
    kedge_buf_init(&a, KEDGE_ENTRY_MAX);
    sample_statement(KEDGE_ST_JOB_JOINED, &st);
    ck_assert_int_eq(kedge_statement_sign(&st, &pair, &a, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_read(kedge_buf_view(&a), &out, &entry, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_keybook_verify(&book, &out, &entry, &diag), KEDGE_OK);
    entry.signatures[0].sig.b[5] ^= 1;
    ck_assert_int_eq(kedge_keybook_verify(&book, &out, &entry, &diag), KEDGE_E_VERIFY);
    kedge_buf_deinit(&entry.payload);
    kedge_keybook_deinit(&book);
}
END_TEST

/* One spelling: signatures ascend by keyid, each once, and only where several are allowed. */
START_TEST(several_signatures_have_one_spelling)
{
    struct kedge_buf a KEDGE_CLEANUP(kedge_buf_deinit), b KEDGE_CLEANUP(kedge_buf_deinit),
        c KEDGE_CLEANUP(kedge_buf_deinit), payload KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_key_pair one = sample_pair(1), two = sample_pair(2);
    struct kedge_dsse_entry entries[KEDGE_DSSE_SIGNATURES_MAX];
    struct kedge_signed_statement entry;
    uint32_t count;
    kedge_buf_init(&a, KEDGE_ENTRY_MAX);
    kedge_buf_init(&b, KEDGE_ENTRY_MAX);
    kedge_buf_init(&c, KEDGE_ENTRY_MAX);
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    sample_statement(KEDGE_ST_KEY_ROTATED, &st);
    ck_assert_int_eq(kedge_statement_sign(&st, &one, &a, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&a), &one, &b, &diag), KEDGE_E_EXISTS);
    ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&a), &two, &b, &diag), KEDGE_OK);
    kedge_buf_clear(&a);
    ck_assert_int_eq(kedge_statement_sign(&st, &two, &a, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&a), &one, &c, &diag), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_buf_view(&c))); /* in any order of signing */
    ck_assert_int_eq(kedge_dsse_decode_all(kedge_buf_view(&b), &payload, entries, &count), KEDGE_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_lt(memcmp(&entries[0].keyid, &entries[1].keyid, KEDGE_HASH_LEN), 0);
    ck_assert_int_eq(kedge_dsse_decode(kedge_buf_view(&b), &payload, entries), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_statement_open(kedge_buf_view(&b), &one.public, &out, NULL), KEDGE_E_FORMAT);
    /* the second signature twice, then both the other way round */
    size_t each = 64 + 88 + strlen("{\"keyid\":\"\",\"sig\":\"\"},");
    uint8_t *first = memmem(b.ptr, b.len, "{\"keyid\"", 8), saved[256];
    ck_assert_ptr_nonnull(first);
    memcpy(saved, first, each - 1);
    memcpy(first, first + each, each - 1);
    ck_assert_int_eq(kedge_dsse_decode_all(kedge_buf_view(&b), &payload, entries, &count), KEDGE_E_FORMAT);
    memcpy(first + each, saved, each - 1);
    ck_assert_int_eq(kedge_dsse_decode_all(kedge_buf_view(&b), &payload, entries, &count), KEDGE_E_FORMAT);
    for (size_t i = 0; i < c.len; i++) { /* cut anywhere */
        ck_assert_int_eq(kedge_dsse_decode_all(kedge_view_of(c.ptr, i), &payload, entries, &count),
                         KEDGE_E_FORMAT);
    }
    kedge_buf_clear(&a);
    kedge_buf_clear(&b);
    sample_statement(KEDGE_ST_JOB_JOINED, &st);
    ck_assert_int_eq(kedge_statement_sign(&st, &one, &a, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&a), &two, &b, &diag), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_dsse_add(kedge_buf_view(&a), &two, &b), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_read(kedge_buf_view(&b), &out, &entry, &diag), KEDGE_E_FORMAT);
    kedge_buf_deinit(&entry.payload);
}
END_TEST

START_TEST(admins_are_bounded)
{
    begin();
    struct kedge_dsse_entry none;
    memset(&none, 0, sizeof none);
    for (unsigned n = 2; n <= KEDGE_ADMIN_KEYS_MAX + 1; n++) {
        st = (struct kedge_statement){.kind = KEDGE_ST_KEY_ADDED};
        st.u.key_added = (struct kedge_st_key_added){sample_id("north"), KEDGE_ROLE_ADMIN, key((uint8_t)n)};
        ck_assert_int_eq(kedge_keybook_apply(&book, &st, n, &diag),
                         n <= KEDGE_ADMIN_KEYS_MAX ? KEDGE_OK : KEDGE_E_FULL);
    }
    ck_assert_uint_le(kedge_keybook_quorum(&book) + 1, KEDGE_DSSE_SIGNATURES_MAX);
    kedge_keybook_deinit(&book);
}
END_TEST

/* Many holders, all found again, also while memory runs out in between. */
START_TEST(many_sites_are_found_again)
{
    char name[16];
    begin();
    for (uint32_t i = 0; i < 120; i++) {
        snprintf(name, sizeof name, "s%03u", i);
        st = (struct kedge_statement){.kind = KEDGE_ST_SITE_ENROLLED};
        st.u.site_enrolled = (struct kedge_st_site_enrolled){
            sample_id("north"), sample_id(name), key((uint8_t)(10 + 2 * i)), key((uint8_t)(11 + 2 * i))};
        uint32_t before = book.count;
        kedge_mem_fail_at(1 + i % 3);
        int err = kedge_keybook_apply(&book, &st, 1 + i, NULL);
        kedge_mem_fail_at(0);
        ck_assert(err == KEDGE_OK || (err == KEDGE_E_NOMEM && book.count == before));
        ck_assert_int_eq(err ? kedge_keybook_apply(&book, &st, 1 + i, NULL) : KEDGE_OK, KEDGE_OK);
    }
    for (uint32_t i = 0; i < 120; i++) {
        snprintf(name, sizeof name, "s%03u", i);
        struct kedge_id id = sample_id(name);
        struct kedge_public_key statement = key((uint8_t)(11 + 2 * i)), tls = key((uint8_t)(10 + 2 * i));
        const struct kedge_book_key *k = kedge_keybook_of(&book, KEDGE_ROLE_SITE, &id);
        ck_assert(k && kedge_public_key_eq(&k->key, &statement) && k->from == 1 + i);
        k = kedge_keybook_find(&book, &tls);
        ck_assert(k && k->role == KEDGE_ROLE_SITE_TLS && kedge_id_eq(&k->holder, &id));
    }
    struct kedge_id nobody = sample_id("s999");
    ck_assert_ptr_null(kedge_keybook_of(&book, KEDGE_ROLE_SITE, &nobody));
    kedge_keybook_deinit(&book);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chain/keybook");
    TCase *tc = tcase_create("keybook");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_first_key_is_entry_0_alone);
    tcase_add_test(tc, more_than_half_of_the_admins_change_them);
    tcase_add_test(tc, rotation_takes_both_keys);
    tcase_add_test(tc, a_site_rotates_its_own_key);
    tcase_add_test(tc, a_sites_tls_key_is_rotated_by_its_statement_key);
    tcase_add_test(tc, a_thousand_rotations_leave_one_key);
    tcase_add_test(tc, a_stolen_admin_key_is_revoked_by_the_others);
    tcase_add_test(tc, the_recovery_key_puts_one_admin_key_in_the_place_of_all);
    tcase_add_test(tc, a_signature_of_another_statement_is_none);
    tcase_add_test(tc, several_signatures_have_one_spelling);
    tcase_add_test(tc, admins_are_bounded);
    tcase_add_test(tc, many_sites_are_found_again);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
