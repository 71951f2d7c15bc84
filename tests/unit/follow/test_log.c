/* Following logs that are honest, forked, cut, or served by somebody who changes what passes. */
#include "chain/follow/follow.h"

#include "chain/follow/bare_note.h"
#include "chain/log/cosignature.h"
#include "chain/log/fork_evidence.h"
#include "chain/store/ledger_tiles.h"
#include "chain/store/replica.h"
#include "tests/contract/ledger_fixture.h"
#include "tests/fixtures/kv.h"

struct server {
    struct kedge_ledger *l; /* what it serves */
    bool withhold;
    unsigned spoil_at; /* the n-th answer has one bit changed, 0: none */
    unsigned answers, bytes;
    unsigned stop_at; /* the n-th request fails, 0: none */
};

static bool may_read(void *arg, uint64_t index, struct kedge_view entry)
{
    (void)entry;
    return !((struct server *)arg)->withhold || index % 5 != 2;
}

static int fetch(void *arg, const char *path, struct kedge_buf *ret, struct kedge_diag *d)
{
    struct server *s = arg;
    struct kedge_tile tile;
    size_t before = ret->len;
    int err;
    if (++s->answers == s->stop_at) {
        return kedge_diag_set(d, KEDGE_E_CLOSED, "the connection was lost");
    }
    if (strcmp(path, "checkpoint") == 0) {
        err = kedge_ledger_checkpoint(s->l, ret, NULL);
    } else {
        ck_assert_int_eq(kedge_tile_parse(kedge_view_str(path), &tile), KEDGE_OK);
        err = kedge_ledger_resource(s->l, &tile, may_read, s, ret);
    }
    if (!err && s->answers == s->spoil_at) {
        ret->ptr[before + (ret->len - before) / 2] ^= 1;
    }
    return err ? kedge_diag_set(d, err, "%s", kedge_strerror(err)) : KEDGE_OK;
}

struct world {
    struct kedge_key_pair key;
    struct kedge_kv *kv[3];
    struct kedge_ledger *log, *other, *copy; /* two histories by one key, and the copy of what is served */
    struct server server;
    struct kedge_follow f;
    struct kedge_buf evidence;
    struct kedge_diag d;
};

static struct kedge_ledger *open_log(struct world *w, int i)
{
    struct kedge_ledger_options options = {.origin = ORIGIN, .key = &w->key, .create = true};
    struct kedge_ledger *l;
    ck_assert_int_eq(kedge_kv_memory_new(&w->kv[i]), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_open(w->kv[i], &options, &l, &w->d), KEDGE_OK);
    return l;
}

static void world_init(struct world *w)
{
    memset(w, 0, sizeof *w);
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_key_generate(&w->key);
    w->log = open_log(w, 0);
    w->other = open_log(w, 1);
    struct kedge_kv *inner;
    ck_assert_int_eq(kedge_kv_memory_new(&inner), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_faulty_new(inner, &w->kv[2]), KEDGE_OK);
    ck_assert_int_eq(kedge_replica_open(w->kv[2], ORIGIN, &w->key.public, true, &w->copy, &w->d), KEDGE_OK);
    w->server.l = w->log;
    w->f.source.fetch = fetch;
    w->f.source.arg = &w->server;
    w->f.copy = w->copy;
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(ORIGIN), KEDGE_KEY_ED25519, &w->key.public, &w->f.vkey),
                     KEDGE_OK);
    kedge_buf_init(&w->evidence, KEDGE_FORK_EVIDENCE_MAX);
}

static void world_deinit(struct world *w)
{
    kedge_buf_deinit(&w->evidence);
    kedge_ledger_close(w->copy);
    kedge_ledger_close(w->log);
    kedge_ledger_close(w->other);
    for (int i = 0; i < 3; i++) {
        kedge_kv_close(w->kv[i]);
    }
}

static void grow(struct world *w, struct kedge_ledger *l, uint64_t size)
{
    ck_assert_int_eq(append_range(l, kedge_ledger_size(l), size, 256, &w->d), KEDGE_OK);
}

static int follow(struct world *w)
{
    struct kedge_follow_result result;
    kedge_buf_clear(&w->evidence);
    w->d = (struct kedge_diag){.err = KEDGE_OK};
    return kedge_follow_log(&w->f, &result, &w->evidence, &w->d);
}

static void must_equal(struct world *w)
{
    uint64_t size = kedge_ledger_size(w->server.l), signed_size;
    struct kedge_hash root, expected;
    ck_assert_uint_eq(kedge_ledger_size(w->copy), size);
    ck_assert_int_eq(kedge_ledger_checkpoint(w->copy, NULL, &signed_size), KEDGE_OK);
    ck_assert_uint_eq(signed_size, size);
    ck_assert_int_eq(kedge_ledger_root(w->copy, size, &root), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_root(w->server.l, size, &expected), KEDGE_OK);
    ck_assert(kedge_hash_eq(&root, &expected));
    ck_assert_msg(kedge_ledger_check(w->copy, NULL, NULL, &w->d) == KEDGE_OK, "%s", w->d.text);
}

START_TEST(an_honest_log_is_copied_at_any_size)
{
    static const uint64_t sizes[] = {0, 1, 2, 5, 255, 256, 257, 600, 16384, 16385, 34000, 34000};
    struct world w;
    world_init(&w);
    w.server.withhold = true;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        grow(&w, w.log, sizes[i]);
        ck_assert_msg(follow(&w) == KEDGE_OK, "size %llu: %s", (unsigned long long)sizes[i], w.d.text);
        must_equal(&w);
        ck_assert_uint_eq(w.evidence.len, 0);
    }
    struct kedge_buf entry;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_ledger_get(w.copy, 33997, &entry), KEDGE_E_WITHHELD);
    ck_assert_int_eq(kedge_ledger_get(w.copy, 33996, &entry), KEDGE_OK);
    kedge_buf_deinit(&entry);
    world_deinit(&w);
}
END_TEST

/* Every answer in turn is lost: the copy is always a prefix, and goes on from there. */
START_TEST(a_lost_connection_loses_nothing)
{
    struct world w;
    world_init(&w);
    grow(&w, w.log, 17000);
    for (unsigned stop = 1; stop < 200; stop++) {
        w.server.answers = 0;
        w.server.stop_at = stop;
        int err = follow(&w);
        if (!err) {
            break;
        }
        ck_assert_int_eq(err, KEDGE_E_CLOSED);
        ck_assert_msg(kedge_ledger_check(w.copy, NULL, NULL, &w.d) == KEDGE_OK, "%s", w.d.text);
    }
    must_equal(&w);
    world_deinit(&w);
}
END_TEST

/* One bit of any answer: refused, nothing of it is stored, and the log is not accused of it. */
START_TEST(changed_answers_are_refused)
{
    struct world w;
    world_init(&w);
    grow(&w, w.log, 300);
    ck_assert_int_eq(follow(&w), KEDGE_OK);
    grow(&w, w.log, 900);
    unsigned refused = 0;
    for (unsigned at = 1; at < 40; at++) {
        w.server.answers = 0;
        w.server.spoil_at = at;
        int err = follow(&w);
        if (!err && w.server.answers < at) {
            break;
        }
        ck_assert_msg(err == KEDGE_E_VERIFY || err == KEDGE_E_FORMAT, "answer %u: %s", at,
                      kedge_strerror(err));
        ck_assert_uint_eq(w.evidence.len, 0);
        ck_assert_int_eq(kedge_ledger_check(w.copy, NULL, NULL, &w.d), KEDGE_OK);
        refused++;
    }
    ck_assert_uint_ge(refused, 5);
    must_equal(&w);
    world_deinit(&w);
}
END_TEST

static void must_convict(struct world *w)
{
    struct kedge_fork_evidence e;
    ck_assert_uint_gt(w->evidence.len, 0);
    ck_assert_int_eq(kedge_fork_evidence_decode(kedge_buf_view(&w->evidence), &e), KEDGE_OK);
    ck_assert_int_eq(kedge_fork_evidence_verify(&e, &w->f.vkey, 1, NULL, &w->d), KEDGE_OK);
}

/* The other history shares the first 100 entries. */
static void fork_off(struct world *w, uint64_t size)
{
    struct kedge_ledger_append item = {.entry = kedge_view_str("another entry")};
    grow(w, w->other, 100);
    ck_assert_int_eq(kedge_ledger_append(w->other, &item, 1, NULL, NULL, &w->d), KEDGE_OK);
    grow(w, w->other, size);
    w->server.l = w->other;
}

START_TEST(forks_convict_the_log)
{
    static const uint64_t sizes[] = {101, 150, 256, 299, 300, 301, 512, 900};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct world w;
        world_init(&w);
        grow(&w, w.log, 300);
        ck_assert_int_eq(follow(&w), KEDGE_OK);
        fork_off(&w, sizes[i]);
        ck_assert_msg(follow(&w) == KEDGE_E_FORK, "size %llu: %s", (unsigned long long)sizes[i], w.d.text);
        must_convict(&w);
        w.server.l = w.log; /* the copy is what it was */
        ck_assert_int_eq(follow(&w), KEDGE_OK);
        must_equal(&w);
        world_deinit(&w);
    }
}
END_TEST

START_TEST(an_old_backup_is_no_fork)
{
    struct world w;
    world_init(&w);
    grow(&w, w.log, 300);
    ck_assert_int_eq(follow(&w), KEDGE_OK);
    grow(&w, w.other, 200); /* the same entries: a backup of this log */
    w.server.l = w.other;
    ck_assert_int_eq(follow(&w), KEDGE_E_SHORTER);
    ck_assert_ptr_nonnull(strstr(w.d.text, "300"));
    ck_assert_uint_eq(kedge_ledger_size(w.copy), 300);
    world_deinit(&w);
}
END_TEST

START_TEST(another_key_is_refused)
{
    struct world w;
    struct kedge_key_pair other;
    world_init(&w);
    grow(&w, w.log, 10);
    kedge_key_generate(&other);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(ORIGIN), KEDGE_KEY_ED25519, &other.public, &w.f.vkey),
                     KEDGE_OK);
    ck_assert_int_eq(follow(&w), KEDGE_E_VERIFY);
    ck_assert_uint_eq(kedge_ledger_size(w.copy), 0);
    world_deinit(&w);
}
END_TEST

/* Asked each second: nothing is written when nothing is new. */
START_TEST(an_unchanged_checkpoint_is_not_written_again)
{
    struct world w;
    world_init(&w);
    grow(&w, w.log, 300);
    ck_assert_int_eq(follow(&w), KEDGE_OK);
    kedge_kv_faulty_set(w.kv[2], KEDGE_KV_FAULT_READ_ONLY, 0);
    ck_assert_msg(follow(&w) == KEDGE_OK, "%s", w.d.text);
    grow(&w, w.log, 301);
    ck_assert_int_eq(follow(&w), KEDGE_E_DISK_FULL);
    kedge_kv_faulty_set(w.kv[2], KEDGE_KV_FAULT_NONE, 0);
    ck_assert_int_eq(follow(&w), KEDGE_OK);
    must_equal(&w);
    world_deinit(&w);
}
END_TEST

/* A tenant may read all of its own ledger. */
START_TEST(nothing_is_withheld_from_a_whole_copy)
{
    struct world w;
    world_init(&w);
    w.f.whole = true;
    w.server.withhold = true;
    grow(&w, w.log, 300);
    ck_assert_int_eq(follow(&w), KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(w.d.text, "entry 2 is withheld"));
    ck_assert_uint_eq(kedge_ledger_size(w.copy), 0);
    w.server.withhold = false;
    ck_assert_msg(follow(&w) == KEDGE_OK, "%s", w.d.text);
    must_equal(&w);
    world_deinit(&w);
}
END_TEST

/* A note full of lines that somebody made up still takes one more, for they are left out. */
START_TEST(a_full_note_takes_a_cosignature)
{
    struct world w;
    struct kedge_buf note, line, fuller, bare;
    struct kedge_note *parsed = malloc(sizeof *parsed);
    char name[32];
    world_init(&w);
    grow(&w, w.log, 10);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&bare, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_ledger_checkpoint(w.log, &note, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&note), parsed), KEDGE_OK);
    struct kedge_view text = parsed->text; /* stays where it is: the first note is kept */
    struct kedge_buf first = note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_put(&note, first.ptr, first.len);
    for (int i = 0; i < KEDGE_NOTE_SIGNATURES_MAX; i++) {
        snprintf(name, sizeof name, "invented.example/%d", i);
        kedge_buf_init(&line, KEDGE_COSIGNATURE_LINE_MAX);
        kedge_buf_init(&fuller, KEDGE_NOTE_MAX);
        ck_assert_int_eq(kedge_cosignature_make(text, kedge_view_str(name), &w.key, 1700000000, &line),
                         KEDGE_OK);
        int err = kedge_note_add_line(kedge_buf_view(&note), kedge_buf_view(&line), &fuller);
        ck_assert_int_eq(err, i < KEDGE_NOTE_SIGNATURES_MAX - 1 ? KEDGE_OK : KEDGE_E_TOO_LONG);
        if (!err) {
            kedge_buf_deinit(&note);
            note = fuller;
        } else {
            ck_assert_int_eq(kedge_follow_bare_note(kedge_buf_view(&note), &w.f.vkey, &bare), KEDGE_OK);
            ck_assert(kedge_view_eq(kedge_buf_view(&bare), kedge_buf_view(&first)));
            kedge_buf_clear(&fuller);
            ck_assert_int_eq(kedge_note_add_line(kedge_buf_view(&bare), kedge_buf_view(&line), &fuller),
                             KEDGE_OK);
            kedge_buf_deinit(&fuller);
        }
        kedge_buf_deinit(&line);
    }
    struct kedge_vkey other = w.f.vkey;
    other.id[0] ^= 1;
    ck_assert_int_eq(kedge_follow_bare_note(kedge_buf_view(&note), &other, &bare), KEDGE_E_VERIFY);
    kedge_buf_deinit(&first);
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&bare);
    free(parsed);
    world_deinit(&w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("follow");
    TCase *t = tcase_create("log");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, an_honest_log_is_copied_at_any_size);
    tcase_add_test(t, a_lost_connection_loses_nothing);
    tcase_add_test(t, changed_answers_are_refused);
    tcase_add_test(t, forks_convict_the_log);
    tcase_add_test(t, an_old_backup_is_no_fork);
    tcase_add_test(t, another_key_is_refused);
    tcase_add_test(t, an_unchanged_checkpoint_is_not_written_again);
    tcase_add_test(t, nothing_is_withheld_from_a_whole_copy);
    tcase_add_test(t, a_full_note_takes_a_cosignature);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
