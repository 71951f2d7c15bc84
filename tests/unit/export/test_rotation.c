/* Exports of a federation whose statement key has rotated. */
#include "tests/unit/export/made.h"

static void append_signed(struct made *m, const struct kedge_statement *st, const struct kedge_key_pair *by,
                          const struct kedge_key_pair *and_by)
{
    struct kedge_buf one, both, idem;
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    kedge_buf_init(&both, KEDGE_ENTRY_MAX);
    kedge_buf_init(&idem, KEDGE_IDEM_KEY_MAX);
    ck_assert_msg(kedge_statement_sign(st, by, &one, &m->d) == KEDGE_OK, "%s", m->d.text);
    if (and_by) {
        ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&one), and_by, &both, &m->d), KEDGE_OK);
    }
    kedge_statement_key(st->kind, &st->u, &idem);
    const struct kedge_ledger_append item = {.entry = kedge_buf_view(and_by ? &both : &one),
                                             .idem_key =
                                                 kedge_buf_view(and_by ? &idem : &(struct kedge_buf){0})};
    ck_assert_msg(kedge_ledger_append(m->main.ledger, &item, 1, NULL, NULL, &m->d) == KEDGE_OK, "%s",
                  m->d.text);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&both);
    kedge_buf_deinit(&idem);
}

/* All of the main chain's proofs in the export under its newest checkpoint, and its newest entry with them.
 */
static void prove_again(struct made *m, uint64_t old_size)
{
    struct kedge_buf note, entry;
    char name[96];
    uint64_t size = kedge_ledger_size(m->main.ledger);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_ledger_checkpoint(m->main.ledger, &note, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_get(m->main.ledger, size - 1, &entry), KEDGE_OK);
    snprintf(name, sizeof name, "out/entries/main-%08llu.json", (unsigned long long)(size - 1));
    put(name, kedge_buf_view(&entry));
    for (uint64_t i = 0; i < size; i++) {
        struct kedge_buf text;
        struct kedge_proof proof = {.index = i, .note = kedge_buf_view(&note)};
        snprintf(name, sizeof name, "out/proofs/main-%08llu.tlog-proof", (unsigned long long)i);
        if (i + 1 == size || kedge_file_exists(at(name))) {
            kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
            ck_assert_int_eq(kedge_ledger_inclusion(m->main.ledger, i, size, &proof.path), KEDGE_OK);
            kedge_proof_encode(&proof, &text);
            put(name, kedge_buf_view(&text));
            kedge_buf_deinit(&text);
        }
    }
    snprintf(name, sizeof name, "out/checkpoints/main-%llu.note", (unsigned long long)old_size);
    ck_assert_int_eq(unlink(at(name)), 0);
    snprintf(name, sizeof name, "out/checkpoints/main-%llu.note", (unsigned long long)size);
    put(name, kedge_buf_view(&note));
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&entry);
}

/* A release, once more, by that key: the last entry of the export. */
static void say_by(struct made *m, const struct kedge_key_pair *key)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    struct kedge_buf entry;
    ck_assert_ptr_nonnull(st);
    open_main(m);
    uint64_t size = kedge_ledger_size(m->main.ledger);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    for (uint64_t i = 0; i < size && st->kind != KEDGE_ST_RELEASE; i++) {
        kedge_buf_clear(&entry);
        ck_assert_int_eq(kedge_ledger_get(m->main.ledger, i, &entry), KEDGE_OK);
        (void)!kedge_statement_open(kedge_buf_view(&entry), &m->trust.statement_key, st, NULL);
    }
    ck_assert_int_eq(st->kind, KEDGE_ST_RELEASE);
    append_signed(m, st, key, NULL);
    prove_again(m, size);
    close_main(m);
    kedge_buf_deinit(&entry);
    kedge_mem_free(st);
}

START_TEST(statement_keys_are_followed_along_their_rotations)
{
    struct made m;
    struct kedge_key_pair old, new;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    struct kedge_buf keys;
    ck_assert_ptr_nonnull(st);
    prepare(&m);
    kedge_key_generate(&new);
    ck_assert_int_eq(kedge_keyfile_read_private(at("fed/state/keys/statement.pem"), &old, &m.d), KEDGE_OK);
    open_main(&m);
    st->kind = KEDGE_ST_STATEMENT_KEY_ROTATED;
    st->u.statement_key_rotated = (struct kedge_st_statement_key_rotated){
        .of = {.main_log_key = m.trust.main_log.key, .before = 100000},
        .old_key = old.public,
        .new_key = new.public};
    snprintf(st->u.statement_key_rotated.of.deployment, sizeof st->u.statement_key_rotated.of.deployment,
             "%s", m.trust.deployment);
    append_signed(&m, st, &old, &new);
    close_main(&m);
    make(&m);
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    kedge_buf_init(&keys, 1 << 20);
    ck_assert_int_eq(kedge_file_read(at("out/keys.jsonl"), &keys, NULL), KEDGE_OK);
    ck_assert_ptr_nonnull(memmem(keys.ptr, keys.len, "\"valid_until\":", 14));
    kedge_buf_deinit(&keys);
    say_by(&m, &new);
    sign_again(&m);
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    say_by(&m, &old);
    sign_again(&m);
    expect(&m, "not signed by a key that was in force");
    kedge_mem_free(st);
    finish(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("export-rotation");
    TCase *t = tcase_create("rotation");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, statement_keys_are_followed_along_their_rotations);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
