/* Where a tenant's statement may stand: every rule of the page, each with what breaks it alone. */
#include "chain/statement/statement_position.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/merkle.h"
#include "tests/unit/chain/samples.h"

static struct kedge_statement st;
static struct kedge_keybook book;
static uint64_t size;
static struct kedge_diag diag;

static struct kedge_public_key key(uint8_t n)
{
    return sample_pair(n).public;
}

/* A ledger whose roots are told apart by their size. */
static struct kedge_hash root_at(uint64_t n)
{
    struct kedge_hash root;
    kedge_sha256(kedge_view_of((const uint8_t *)&n, sizeof n), &root);
    if (n == 0) {
        kedge_merkle_empty_root(&root);
    }
    return root;
}

static int root_of(void *arg, uint64_t n, struct kedge_hash *ret)
{
    ck_assert_uint_le(n, *(const uint64_t *)arg); /* nobody is asked for what there is not */
    *ret = root_at(n);
    return KEDGE_OK;
}

static struct kedge_st_position seen(uint64_t n)
{
    struct kedge_public_key main_log = key(9);
    struct kedge_hash root = root_at(n);
    return kedge_position_make(&main_log, n, &root, 1000);
}

static int judge(uint64_t late)
{
    struct kedge_public_key main_log = key(9);
    struct kedge_position_ledger ledger = {
        .main_log_key = &main_log, .size = size, .late = late, .root = root_of, .arg = &size};
    diag.text[0] = '\0';
    int err = kedge_position_judge(&book, &st, &ledger, &diag);
    ck_assert(err == KEDGE_OK || diag.text[0]);
    return err;
}

/* Judged, then taken in as the next entry. */
static void stands(void)
{
    ck_assert_msg(judge(0) == KEDGE_OK, "%s", diag.text);
    ck_assert_msg(kedge_keybook_apply(&book, &st, size, &diag) == KEDGE_OK, "%s", diag.text);
    size++;
}

static void blank(enum kedge_statement_kind kind, uint64_t seen_size)
{
    st = (struct kedge_statement){.kind = kind, .at = seen(seen_size)};
}

static void say_site(const char *name, uint8_t statement, uint8_t tls, uint64_t seen_size)
{
    blank(KEDGE_ST_SITE_ENROLLED, seen_size);
    st.u.site_enrolled =
        (struct kedge_st_site_enrolled){sample_id("north"), sample_id(name), key(tls), key(statement)};
}

static void say_contact(const char *about, uint8_t commitment, uint64_t seen_size)
{
    blank(KEDGE_ST_CONTACT, seen_size);
    st.u.contact.tenant = sample_id("north");
    st.u.contact.commitment = sample_hash(commitment);
    if (about[0]) {
        st.u.contact.about = sample_id(about);
    }
}

static void say_added(uint8_t n, uint64_t seen_size)
{
    blank(KEDGE_ST_KEY_ADDED, seen_size);
    st.u.key_added = (struct kedge_st_key_added){sample_id("north"), KEDGE_ROLE_ADMIN, key(n)};
}

static void say_joined(uint64_t seen_size)
{
    blank(KEDGE_ST_JOB_JOINED, seen_size);
    st.u.job_joined = (struct kedge_st_job_joined){sample_id("north"), sample_id("digits")};
}

/* Entry 0: the first key. Entries up to `entries` are updates, which no book takes in. */
static void begin(uint64_t entries)
{
    struct kedge_id tenant = sample_id("north");
    kedge_keybook_init(&book, &tenant);
    size = 0;
    blank(KEDGE_ST_KEY, 0);
    st.u.key = (struct kedge_st_key){KEDGE_SCOPE_ADMIN, tenant, key(1)};
    stands();
    size = entries;
}

START_TEST(one_that_saw_all_stands)
{
    begin(20);
    say_site("s1", 2, 3, 20);
    ck_assert_int_eq(judge(0), KEDGE_OK);
    st.at = seen(1); /* updates that came since are nothing that it rests on */
    ck_assert_int_eq(judge(0), KEDGE_OK);
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(none_stands_in_another_deployment)
{
    begin(20);
    say_joined(20);
    ck_assert_int_eq(judge(0), KEDGE_OK);
    st.at.main_log_key = key(8);
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    ck_assert_ptr_nonnull(strstr(diag.text, "another deployment"));
    struct kedge_position_ledger unknown = {.size = size, .root = root_of, .arg = &size};
    ck_assert_int_eq(kedge_position_judge(&book, &st, &unknown, &diag), KEDGE_OK);
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(none_stands_in_another_history)
{
    begin(20);
    say_joined(20);
    st.at.seen_root.b[31] ^= 1;
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    ck_assert_ptr_nonnull(strstr(diag.text, "another history"));
    say_joined(21); /* more than there is */
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(none_stands_later_than_it_may)
{
    begin(20);
    say_joined(20);
    st.at.before = 21;
    ck_assert_int_eq(judge(0), KEDGE_OK);
    ck_assert_int_eq(judge(1), KEDGE_E_POSITION); /* something may come in front of it */
    size = 21;
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    ck_assert_ptr_nonnull(strstr(diag.text, "sign it anew"));
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(nobody_signs_for_ever)
{
    begin(20);
    say_joined(20);
    st.at.before = 20 + KEDGE_POSITION_SPAN_MAX;
    ck_assert_int_eq(judge(0), KEDGE_OK);
    st.at.before++;
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    st.at.before = 20;
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    st.at.before = 1;
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    kedge_keybook_deinit(&book);
}
END_TEST

/* What the tenant's keys sign rests on which keys there are. */
START_TEST(admins_must_have_seen_their_keys)
{
    begin(20);
    say_added(4, 20);
    stands();
    say_joined(20);
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    ck_assert_ptr_nonnull(strstr(diag.text, "entry 20 has since changed"));
    say_site("s1", 2, 3, 20);
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    say_site("s1", 2, 3, 21);
    stands();
    say_added(5, 20);
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    say_added(5, 21); /* a site's enrolment is nothing to it */
    ck_assert_int_eq(judge(0), KEDGE_OK);
    kedge_keybook_deinit(&book);
}
END_TEST

/* A site's own rotation rests on the site's keys alone. */
START_TEST(sites_must_have_seen_what_was_said_of_them)
{
    begin(20);
    say_site("s1", 2, 3, 20);
    stands();
    say_site("s2", 6, 7, 20);
    stands();
    say_added(4, 22);
    stands();
    blank(KEDGE_ST_KEY_ROTATED, 21);
    st.u.key_rotated =
        (struct kedge_st_key_rotated){sample_id("north"), KEDGE_ROLE_SITE, sample_id("s1"), key(2), key(10)};
    struct kedge_statement rotation = st;
    st.at = seen(20);
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    st = rotation;
    stands();
    blank(KEDGE_ST_SITE_REVOKED, 23);
    st.u.site_revoked =
        (struct kedge_st_site_revoked){sample_id("north"), sample_id("s1"), key(10), "signed too early"};
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    st.at = seen(24);
    stands();
    blank(KEDGE_ST_SITE_REVOKED, 23);
    st.u.site_revoked = (struct kedge_st_site_revoked){sample_id("north"), sample_id("s2"), key(6), "other"};
    ck_assert_int_eq(judge(0), KEDGE_OK);
    kedge_keybook_deinit(&book);
}
END_TEST

/* Kept back and played after a later one, it would be the newest, which counts. */
START_TEST(an_older_contact_does_not_replace_a_newer_one)
{
    begin(20);
    say_site("s1", 2, 3, 20);
    stands();
    say_contact("s1", 0x11, 21);
    struct kedge_statement kept = st;
    say_contact("s1", 0x12, 21);
    stands();
    st = kept;
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    say_contact("", 0x13, 21);
    kept = st;
    ck_assert_int_eq(judge(0), KEDGE_OK); /* about the tenant: another subject */
    say_contact("", 0x14, 22);
    stands();
    st = kept;
    ck_assert_int_eq(judge(0), KEDGE_E_POSITION);
    kedge_keybook_deinit(&book);
}
END_TEST

START_TEST(kinds_without_a_place_stand_anywhere)
{
    begin(20);
    for (int kind = 0; kind < KEDGE_ST_KIND_COUNT; kind++) {
        bool has = kedge_statement_has_position((enum kedge_statement_kind)kind);
        sample_statement((enum kedge_statement_kind)kind, &st); /* its root is nobody's */
        ck_assert_msg((judge(0) == KEDGE_OK) == !has, "%s", kedge_statement_kind_name(st.kind));
    }
    kedge_keybook_deinit(&book);
}
END_TEST

/* The same said again, at another place and by somebody else, is the same. */
START_TEST(what_is_said_is_compared_without_its_place)
{
    static struct kedge_statement other;
    for (int kind = 0; kind < KEDGE_ST_KIND_COUNT; kind++) {
        sample_statement((enum kedge_statement_kind)kind, &st);
        other = st;
        other.at = seen(7);
        ck_assert(kedge_statement_says_same(&st, &other));
    }
    sample_statement(KEDGE_ST_JOB_JOINED, &st);
    other = st;
    other.u.job_joined.job = sample_id("others");
    ck_assert(!kedge_statement_says_same(&st, &other));
    other = st;
    other.subject.b[0] ^= 1; /* of another spec */
    ck_assert(!kedge_statement_says_same(&st, &other));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chain-statement-position");
    TCase *t = tcase_create("position");
    tcase_add_test(t, one_that_saw_all_stands);
    tcase_add_test(t, none_stands_in_another_deployment);
    tcase_add_test(t, none_stands_in_another_history);
    tcase_add_test(t, none_stands_later_than_it_may);
    tcase_add_test(t, nobody_signs_for_ever);
    tcase_add_test(t, admins_must_have_seen_their_keys);
    tcase_add_test(t, sites_must_have_seen_what_was_said_of_them);
    tcase_add_test(t, an_older_contact_does_not_replace_a_newer_one);
    tcase_add_test(t, kinds_without_a_place_stand_anywhere);
    tcase_add_test(t, what_is_said_is_compared_without_its_place);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
