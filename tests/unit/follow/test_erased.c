/* Erasures in the ledger of a tenant, whose log the coordinator writes: those that an admin ordered remove
 * the file, those that somebody made up remove nothing. */
#include "chain/follow/erased.h"

#include "common/base/mem.h"
#include "tests/contract/ledger_fixture.h"
#include "tests/fixtures/kv.h"
#include "tests/unit/chain/samples.h"

enum { ADMIN = 1, SECOND = 2, SITE = 3, THIEF = 4 };

static struct fixture f;
static struct kedge_blobs *blobs;
static struct kedge_follow_erased erased;
static struct kedge_hash update, other, model; /* blobs that are here */
static struct kedge_statement st;
static struct kedge_diag diag;

static struct kedge_hash put_blob(const char *text)
{
    struct kedge_view part = kedge_view_str(text);
    struct kedge_hash digest;
    ck_assert_int_eq(kedge_blobs_put(blobs, &part, 1, &digest, &diag), KEDGE_OK);
    return digest;
}

static void append_bytes(struct kedge_view bytes)
{
    struct kedge_ledger_append item = {.entry = bytes};
    ck_assert_msg(kedge_ledger_append(f.l, &item, 1, NULL, NULL, &diag) == KEDGE_OK, "%s", diag.text);
}

/* Signs `st` by one key, or two, and appends it; the log takes what it is given. */
static void say(uint8_t by, uint8_t and_by)
{
    struct kedge_buf one, two;
    struct kedge_key_pair pair = sample_pair(by);
    st.at = sample_position();
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    kedge_buf_init(&two, KEDGE_ENTRY_MAX);
    ck_assert_msg(kedge_statement_sign(&st, &pair, &one, &diag) == KEDGE_OK, "%s", diag.text);
    if (and_by) {
        pair = sample_pair(and_by);
        ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&one), &pair, &two, &diag), KEDGE_OK);
    }
    append_bytes(kedge_buf_view(and_by ? &two : &one));
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&two);
}

static void say_key(uint8_t key)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_KEY};
    st.u.key = (struct kedge_st_key){KEDGE_SCOPE_ADMIN, sample_id("north"), sample_pair(key).public};
    say(key, 0);
}

static void say_rotated(uint8_t from, uint8_t to, uint8_t by)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_KEY_ROTATED};
    st.u.key_rotated = (struct kedge_st_key_rotated){.tenant = sample_id("north"),
                                                     .role = KEDGE_ROLE_ADMIN,
                                                     .old_key = sample_pair(from).public,
                                                     .new_key = sample_pair(to).public};
    say(by, to);
}

static void say_update(const struct kedge_hash *digest)
{
    sample_statement(KEDGE_ST_UPDATE, &st);
    st.subject = *digest;
    say(SITE, 0);
}

static void say_erased(const char *tenant, const struct kedge_hash *digest, uint64_t entry, uint8_t by)
{
    sample_statement(KEDGE_ST_ERASED, &st);
    st.u.erased.tenant = sample_id(tenant);
    st.u.erased.update = *digest;
    st.u.erased.entry = entry;
    kedge_statement_derive_subject(&st);
    say(by, 0);
}

static bool has(const struct kedge_hash *digest)
{
    return kedge_blobs_find(blobs, digest, NULL) == KEDGE_OK;
}

static bool is_unwanted(const struct kedge_hash *digest)
{
    struct kedge_blob_wanted wanted = {.want = KEDGE_WANT_UPDATE, .of_tenant = true, .digest = *digest};
    return kedge_follow_is_erased(&erased, &wanted);
}

static void look(void)
{
    ck_assert_msg(kedge_follow_erase(&erased, f.l, blobs, &diag) == KEDGE_OK, "%s", diag.text);
}

/* Entries: 0 the admin's key, 1 and 2 updates. */
static void set_up(void)
{
    struct kedge_id tenant = sample_id("north");
    struct kedge_public_key admin;
    char dir[96];
    fixture_init(&f);
    ck_assert_int_eq(kedge_kv_memory_new(&f.kv), KEDGE_OK);
    fixture_must_open(&f, true);
    snprintf(dir, sizeof dir, "%s/blobs", f.dir);
    ck_assert_int_eq(kedge_dir_make(dir, 0700, &diag), KEDGE_OK);
    ck_assert_msg(kedge_blobs_open(dir, NULL, &blobs, &diag) == KEDGE_OK, "%s", diag.text);
    update = put_blob("update");
    other = put_blob("other update");
    model = put_blob("model");
    admin = sample_pair(ADMIN).public;
    kedge_follow_erased_init(&erased, &tenant, &admin);
}

static void begin_ledger(void)
{
    say_key(ADMIN);
    say_update(&update);
    say_update(&other);
}

static void tear_down(void)
{
    kedge_follow_erased_deinit(&erased);
    kedge_blobs_close(blobs);
    fixture_deinit(&f);
}

START_TEST(an_admins_order_is_carried_out)
{
    begin_ledger();
    look();
    ck_assert(has(&update) && !is_unwanted(&update));
    say_erased("north", &update, 1, ADMIN);
    look();
    ck_assert(!has(&update) && is_unwanted(&update));
    ck_assert(has(&other) && !is_unwanted(&other));
    ck_assert_uint_eq(erased.refused, 0);
    say_rotated(ADMIN, SECOND, ADMIN);
    say_erased("north", &other, 2, SECOND);
    look();
    ck_assert(!has(&other) && is_unwanted(&other) && is_unwanted(&update));
    ck_assert_uint_eq(erased.next, kedge_ledger_size(f.l));
}
END_TEST

START_TEST(what_nobody_ordered_removes_nothing)
{
    begin_ledger();
    say_rotated(ADMIN, SECOND, ADMIN);
    say_rotated(SECOND, THIEF, ADMIN); /* not by the key that goes: no change */
    static const struct {
        const char *tenant, *why;
        uint64_t entry;
        uint8_t by;
        int what;
    } rows[] = {
        {"north", "admin key", 1, THIEF, 0},      {"north", "admin key", 1, SITE, 0},
        {"north", "rotated away", 1, ADMIN, 0},   {"south", "another tenant", 1, SECOND, 0},
        {"north", "no update", 2, SECOND, 0},     {"north", "no update", 3, SECOND, 0},
        {"north", "no update", 99999, SECOND, 0}, {"north", "no update", 1, SECOND, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        say_erased(rows[i].tenant, rows[i].what ? &model : &update, rows[i].entry, rows[i].by);
        look();
        ck_assert_uint_eq(erased.refused, i + 1);
        ck_assert_uint_eq(erased.refused_at, kedge_ledger_size(f.l) - 1);
        ck_assert_msg(strstr(erased.reason.text, rows[i].why), "row %zu: %s", i, erased.reason.text);
        ck_assert(has(&update) && has(&model) && !is_unwanted(&update) && !is_unwanted(&model));
    }
    look();
    ck_assert_uint_eq(erased.refused, sizeof rows / sizeof rows[0]);
}
END_TEST

/* A signature that is another entry's: the key ID is the admin's, the signature none of his. */
START_TEST(a_signature_counts_and_not_its_name)
{
    struct kedge_buf bytes;
    struct kedge_key_pair admin = sample_pair(ADMIN);
    begin_ledger();
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    sample_statement(KEDGE_ST_ERASED, &st);
    st.u.erased.update = update;
    st.u.erased.entry = 1;
    kedge_statement_derive_subject(&st);
    ck_assert_int_eq(kedge_statement_sign(&st, &admin, &bytes, &diag), KEDGE_OK);
    char *sig = memmem(bytes.ptr, bytes.len, "\"sig\":\"", 7);
    ck_assert_ptr_nonnull(sig);
    sig[7] = sig[7] == 'A' ? 'B' : 'A';
    append_bytes(kedge_buf_view(&bytes));
    kedge_buf_deinit(&bytes);
    look();
    ck_assert_uint_eq(erased.refused, 1);
    ck_assert(has(&update) && !is_unwanted(&update));
}
END_TEST

/* The coordinator makes a ledger with an admin of its own: not the one that is trusted. */
START_TEST(another_first_key_orders_nothing)
{
    say_key(THIEF);
    say_update(&update);
    say_erased("north", &update, 1, THIEF);
    say_key(ADMIN); /* too late */
    say_erased("north", &update, 1, ADMIN);
    append_bytes(kedge_view_str("no statement at all"));
    look();
    ck_assert_uint_eq(erased.refused, 2);
    ck_assert(has(&update) && !is_unwanted(&update));
}
END_TEST

START_TEST(sizes_are_bounded_by_kind)
{
    struct kedge_blob_wanted spec = {.want = KEDGE_WANT_LIST},
                             list = {.want = KEDGE_WANT_LIST, .of_tenant = true};
    struct kedge_blob_wanted of_update = {.want = KEDGE_WANT_UPDATE, .of_tenant = true};
    ck_assert_uint_eq(kedge_follow_blob_max(&spec), 65536);
    ck_assert_uint_eq(kedge_follow_blob_max(&list), 3 * 4096 * 512);
    ck_assert_uint_eq(kedge_follow_blob_max(&of_update), UINT64_C(17179869184));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("follow");
    TCase *t = tcase_create("erased");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, an_admins_order_is_carried_out);
    tcase_add_test(t, what_nobody_ordered_removes_nothing);
    tcase_add_test(t, a_signature_counts_and_not_its_name);
    tcase_add_test(t, another_first_key_orders_nothing);
    tcase_add_test(t, sizes_are_bounded_by_kind);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
