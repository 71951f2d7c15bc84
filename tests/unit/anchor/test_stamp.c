/* Time stamps over the main chain's checkpoints: what a token must be about, and the process that fetches
 * them, against an authority of OpenSSL's in virtual time. */
#include "chain/anchor/stamp.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chain/anchor/host/tsa_host.h"
#include "chain/log/checkpoint.h"
#include "chain/state/anchors.h"
#include "chain/state/state.h"
#include "common/base/mem.h"
#include "tests/fixtures/authority.h"

enum { START_S = 1767225600, YEAR_S = 31536000 }; /* 2026-01-01 */

static const char origin[] = "stamp.example/main";

/* ---- one token ---- */

struct made {
    struct kedge_key_pair key;
    struct kedge_vkey vkey;
    struct kedge_buf note, reply, pem;
};

static void make_note(struct kedge_key_pair *key, const char *name, uint64_t size, struct kedge_buf *out)
{
    struct kedge_hash root = {{7}};
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(name), size, &root, key, out), KEDGE_OK);
}

static void make(struct made *m, const struct fx_authority *a, int64_t at_s)
{
    struct kedge_buf query;
    kedge_buf_init(&query, 4096);
    kedge_buf_init(&m->note, KEDGE_NOTE_MAX);
    kedge_buf_init(&m->reply, KEDGE_TSR_MAX);
    kedge_buf_init(&m->pem, KEDGE_TSA_PEM_MAX);
    kedge_key_generate(&m->key);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(origin), KEDGE_KEY_ED25519, &m->key.public, &m->vkey),
                     KEDGE_OK);
    make_note(&m->key, origin, 12, &m->note);
    ck_assert_int_eq(kedge_timestamp_query(kedge_buf_view(&m->note), NULL, &query), KEDGE_OK);
    fx_authority_reply(a, kedge_buf_view(&query), at_s, &m->reply);
    fx_authority_pem(a, &m->pem);
    kedge_buf_deinit(&query);
}

static void unmake(struct made *m)
{
    kedge_buf_deinit(&m->note);
    kedge_buf_deinit(&m->reply);
    kedge_buf_deinit(&m->pem);
}

static int check(const struct made *m, const char *name, struct kedge_view ca, struct kedge_stamp *ret)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_stamp_check(kedge_buf_view(&m->note), kedge_buf_view(&m->reply), kedge_view_str(name),
                                &m->vkey, ca, ret, &d);
    ck_assert(!err || d.text[0]);
    return err;
}

START_TEST(a_stamped_checkpoint)
{
    struct fx_authority *a = fx_authority_open(START_S, START_S + YEAR_S);
    struct fx_authority *other = fx_authority_open(START_S, START_S + YEAR_S);
    struct kedge_view none = kedge_view_of(NULL, 0);
    struct kedge_key_pair stranger;
    struct kedge_stamp s;
    struct made m;
    make(&m, a, START_S + 5);
    ck_assert_int_eq(check(&m, origin, kedge_buf_view(&m.pem), &s), KEDGE_OK);
    ck_assert_uint_eq(s.size, 12);
    ck_assert_int_eq(s.root.b[0], 7);
    ck_assert_int_eq(s.token.time_s, START_S + 5);
    ck_assert_str_eq(s.token.authority, "CN=test authority");
    ck_assert(!s.token.has_nonce);
    ck_assert_int_eq(check(&m, origin, none, &s), KEDGE_OK); /* its claims */
    ck_assert_str_eq(s.token.authority, "");
    ck_assert_int_eq(check(&m, "stamp.example/org", kedge_buf_view(&m.pem), &s), KEDGE_E_VERIFY);
    struct kedge_buf pem;
    kedge_buf_init(&pem, KEDGE_TSA_PEM_MAX);
    fx_authority_pem(other, &pem);
    ck_assert_int_eq(check(&m, origin, kedge_buf_view(&pem), &s), KEDGE_E_VERIFY);
    ck_assert_int_eq(check(&m, origin, kedge_view_str("no certificate"), &s), KEDGE_E_KEY);
    kedge_key_generate(&stranger); /* who signs for the log */
    struct kedge_vkey own = m.vkey;
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(origin), KEDGE_KEY_ED25519, &stranger.public, &m.vkey),
                     KEDGE_OK);
    ck_assert_int_eq(check(&m, origin, kedge_buf_view(&m.pem), &s), KEDGE_E_VERIFY);
    m.vkey = own;
    m.note.ptr[m.note.len - 3] ^= 1; /* no byte of the note may change */
    ck_assert_int_ne(check(&m, origin, none, &s), KEDGE_OK);
    kedge_buf_clear(&m.note);
    make_note(&m.key, origin, 13, &m.note);
    ck_assert_int_eq(check(&m, origin, kedge_buf_view(&m.pem), &s), KEDGE_E_VERIFY);
    ck_assert_int_eq(check(&m, origin, none, &s), KEDGE_E_VERIFY);
    kedge_buf_clear(&m.note);
    kedge_buf_put_str(&m.note, "no note\n");
    ck_assert_int_eq(check(&m, origin, none, &s), KEDGE_E_FORMAT);
    kedge_buf_deinit(&pem);
    unmake(&m);
    fx_authority_close(a);
    fx_authority_close(other);
}
END_TEST

START_TEST(a_certificate_must_have_been_good_at_that_time)
{
    static const struct {
        int64_t at_s;
        int err;
    } rows[] = {{START_S + 5, KEDGE_OK},
                {START_S + YEAR_S - 5, KEDGE_OK},
                {START_S - 5, KEDGE_E_VERIFY},
                {START_S + YEAR_S + 5, KEDGE_E_VERIFY}};
    struct fx_authority *a = fx_authority_open(START_S, START_S + YEAR_S);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct made m;
        struct kedge_stamp s;
        make(&m, a, rows[i].at_s);
        ck_assert_msg(check(&m, origin, kedge_buf_view(&m.pem), &s) == rows[i].err, "row %zu", i);
        unmake(&m);
    }
    fx_authority_close(a);
}
END_TEST

/* ---- the process ---- */

enum mood { HONEST, DEAD, OTHER_NONCE, OTHER_IMPRINT, OTHER_CA, EXPIRED, FAST_CLOCK, GARBAGE, EMPTY, MOODS };

struct world {
    char state[64];
    struct fx_authority *honest, *other, *expired;
    enum mood mood;
    uint64_t now_ms, asked_ms[64];
    uint32_t asked;
    uint64_t end_ms;    /* go_on says so */
    bool until_settled; /* … or when nothing is newer */
    struct kedge_buf pem, said;
    struct kedge_tsa_progress last;
};

static uint64_t now_ms(void *arg)
{
    return ((struct world *)arg)->now_ms;
}

static void wait_until(void *arg, uint64_t ms)
{
    struct world *w = arg;
    w->now_ms = ms;
}

static bool go_on(void *arg, const struct kedge_tsa_progress *now)
{
    struct world *w = arg;
    w->last = *now;
    return !(w->until_settled && now->is_settled) && w->now_ms < w->end_ms;
}

static void say(void *arg, const char *text)
{
    struct world *w = arg;
    kedge_buf_put_str(&w->said, text);
    kedge_buf_put_str(&w->said, "\n");
}

static int answer(void *arg, struct kedge_view query, struct kedge_buf *reply, struct kedge_diag *d)
{
    struct world *w = arg;
    struct kedge_buf own;
    uint64_t nonce = 7;
    ck_assert_uint_lt(w->asked, sizeof w->asked_ms / sizeof w->asked_ms[0]);
    w->asked_ms[w->asked++] = w->now_ms;
    int64_t now_s = (int64_t)(w->now_ms / 1000);
    kedge_buf_init(&own, 4096);
    switch (w->mood) {
    case HONEST:
        fx_authority_reply(w->honest, query, now_s, reply);
        break;
    case DEAD:
        return kedge_diag_set(d, KEDGE_E_UNREACHABLE, "example.org: nobody there");
    case OTHER_NONCE: { /* a reply of its own over the same digest: replayed, or made up */
        struct kedge_buf note;
        char path[128];
        kedge_buf_init(&note, KEDGE_NOTE_MAX);
        snprintf(path, sizeof path, "%s/probe.note", w->state);
        ck_assert_int_eq(kedge_file_read(path, &note, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_timestamp_query(kedge_buf_view(&note), &nonce, &own), KEDGE_OK);
        fx_authority_reply(w->honest, kedge_buf_view(&own), now_s, reply);
        kedge_buf_deinit(&note);
        break;
    }
    case OTHER_IMPRINT:
        ck_assert_int_eq(kedge_timestamp_query(kedge_view_str("else"), &nonce, &own), KEDGE_OK);
        fx_authority_reply(w->honest, kedge_buf_view(&own), now_s, reply);
        break;
    case OTHER_CA:
        fx_authority_reply(w->other, query, now_s, reply);
        break;
    case EXPIRED:
        fx_authority_reply(w->expired, query, now_s, reply);
        break;
    case FAST_CLOCK:
        fx_authority_reply(w->honest, query, now_s + KEDGE_TSA_SKEW_S + 60, reply);
        break;
    case GARBAGE:
        kedge_buf_put_str(reply, "<html>not today</html>");
        break;
    case EMPTY:
        break;
    case MOODS:
    default:
        ck_abort();
    }
    kedge_buf_deinit(&own);
    return KEDGE_OK;
}

static void append(const struct world *w, const char *what)
{
    struct kedge_state_log log;
    struct kedge_ledger_append item = {.entry = kedge_view_str(what)};
    ck_assert_int_eq(kedge_state_log_open(w->state, NULL, KEDGE_STATE_WRITE, &log, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_append(log.ledger, &item, 1, NULL, NULL, NULL), KEDGE_OK);
    struct kedge_buf note;
    char path[128];
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_ledger_flush(log.ledger, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_checkpoint(log.ledger, &note, NULL), KEDGE_OK);
    snprintf(path, sizeof path, "%s/probe.note", w->state);
    ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&note), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&note);
    kedge_state_log_close(&log);
}

static void open_world(struct world *w)
{
    memset(w, 0, sizeof *w);
    snprintf(w->state, sizeof w->state, "/tmp/kedge-stamp-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(w->state));
    ck_assert_int_eq(rmdir(w->state), 0);
    ck_assert_int_eq(kedge_state_create(w->state, "stamp.example", NULL), KEDGE_OK);
    w->honest = fx_authority_open(START_S - YEAR_S, START_S + YEAR_S);
    w->other = fx_authority_open(START_S - YEAR_S, START_S + YEAR_S);
    w->expired = fx_authority_open(START_S - YEAR_S, START_S - 1);
    w->now_ms = (uint64_t)START_S * 1000;
    w->end_ms = UINT64_MAX;
    kedge_buf_init(&w->pem, KEDGE_TSA_PEM_MAX);
    kedge_buf_init(&w->said, 1 << 16);
    fx_authority_pem(w->honest, &w->pem);
    fx_authority_pem(w->expired, &w->pem);
}

static void close_world(struct world *w)
{
    fx_authority_close(w->honest);
    fx_authority_close(w->other);
    fx_authority_close(w->expired);
    kedge_buf_deinit(&w->pem);
    kedge_buf_deinit(&w->said);
    ck_assert_int_eq(kedge_dir_remove(w->state), KEDGE_OK);
}

static int run(struct world *w, uint64_t interval_s, struct kedge_diag *d)
{
    struct kedge_tsa_settings settings = {
        .url = "-", .ca_pem = kedge_buf_view(&w->pem), .interval_ms = interval_s * 1000};
    struct kedge_tsa_hooks hooks = {
        .now_ms = now_ms, .wait_until = wait_until, .go_on = go_on, .say = say, .post = answer, .arg = w};
    return kedge_tsa_run(w->state, &settings, &hooks, d);
}

static size_t tokens(const struct world *w)
{
    uint64_t *sizes = NULL;
    size_t count = 0;
    ck_assert_int_eq(kedge_anchor_list(w->state, &kedge_anchor_tsa, &sizes, &count, NULL), KEDGE_OK);
    kedge_mem_free(sizes);
    return count;
}

START_TEST(one_token_for_what_is_new)
{
    struct world w;
    struct kedge_diag d = {.text = ""};
    struct kedge_stamp s;
    size_t count = 0;
    open_world(&w);
    w.until_settled = true;
    ck_assert_msg(run(&w, 0, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(w.asked, 0); /* no entry, no checkpoint that says anything */
    append(&w, "one");
    ck_assert_msg(run(&w, 0, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(w.asked, 1);
    ck_assert_uint_eq(w.last.size, 1);
    ck_assert_msg(run(&w, 0, &d) == KEDGE_OK, "%s", d.text); /* nothing new, also after a restart */
    ck_assert_uint_eq(w.asked, 1);
    append(&w, "two");
    append(&w, "three");
    ck_assert_msg(run(&w, 0, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(w.asked, 2);
    ck_assert_uint_eq(tokens(&w), 2);
    ck_assert_msg(kedge_tsa_newest(w.state, origin, kedge_buf_view(&w.pem), &s, &count, &d) == KEDGE_OK, "%s",
                  d.text);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(s.size, 3);
    ck_assert_str_eq(s.token.authority, "CN=test authority");
    close_world(&w);
}
END_TEST

/* However much is appended: one per interval, of the newest. */
START_TEST(one_per_interval)
{
    struct world w;
    struct kedge_diag d = {.text = ""};
    open_world(&w);
    for (int i = 0; i < 20; i++) {
        append(&w, "more");
        w.end_ms = w.now_ms + 600 * 1000; /* ten minutes each */
        ck_assert_msg(run(&w, 3600, &d) == KEDGE_OK, "%s", d.text);
    }
    ck_assert_uint_ge(w.asked, 3);
    ck_assert_uint_le(w.asked, 4);
    for (uint32_t i = 1; i < w.asked; i++) {
        ck_assert_uint_ge(w.asked_ms[i] - w.asked_ms[i - 1], 3600 * 1000);
    }
    close_world(&w);
}
END_TEST

/* Whatever it answers, nothing is stored that does not hold; asking goes on, later each time, and ends well.
 */
START_TEST(authorities_that_fail_are_borne)
{
    static const char *const words[MOODS] = {
        [DEAD] = "nobody there",        [OTHER_NONCE] = "another nonce", [OTHER_IMPRINT] = "other bytes",
        [OTHER_CA] = "does not verify", [EXPIRED] = "expired",           [FAST_CLOCK] = "two clocks",
        [GARBAGE] = "no RFC 3161",      [EMPTY] = "no RFC 3161"};
    struct world w;
    struct kedge_diag d = {.text = ""};
    open_world(&w);
    append(&w, "one");
    w.mood = (enum mood)_i;
    w.end_ms = w.now_ms + 3600 * 1000; /* an hour */
    ck_assert_msg(run(&w, 60, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(tokens(&w), 0);
    ck_assert_uint_eq(w.last.failures, w.asked);
    ck_assert(!w.last.is_settled);
    kedge_buf_put_u8(&w.said, 0);
    ck_assert_msg(strstr((const char *)w.said.ptr, words[_i]) != NULL, "%s", (const char *)w.said.ptr);
    ck_assert_ptr_eq(strchr(strchr((const char *)w.said.ptr, '\n') + 1, '\n'), NULL); /* said once */
    ck_assert_uint_ge(w.asked, 10); /* 5 s, 10 s, … 300 s */
    ck_assert_uint_le(w.asked, 20);
    for (uint32_t i = 2; i < w.asked; i++) {
        uint64_t now = w.asked_ms[i] - w.asked_ms[i - 1], before = w.asked_ms[i - 1] - w.asked_ms[i - 2];
        ck_assert_uint_ge(now, before);
        ck_assert_uint_le(now, KEDGE_TSA_BACKOFF_MAX_MS);
    }
    w.mood = HONEST;
    w.until_settled = true;
    w.end_ms = UINT64_MAX;
    ck_assert_msg(run(&w, 60, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(tokens(&w), 1);
    close_world(&w);
}
END_TEST

START_TEST(another_history_is_not_stamped)
{
    struct world w;
    struct kedge_diag d = {.text = ""};
    char from[128], to[128];
    open_world(&w);
    w.until_settled = true;
    append(&w, "one");
    append(&w, "two");
    ck_assert_msg(run(&w, 0, &d) == KEDGE_OK, "%s", d.text);
    char old[sizeof w.state]; /* a main chain that begins anew, beside the old one's tokens */
    memcpy(old, w.state, sizeof old);
    snprintf(w.state, sizeof w.state, "%.50s-2", old);
    ck_assert_int_eq(kedge_state_create(w.state, "stamp.example", NULL), KEDGE_OK);
    snprintf(from, sizeof from, "%s/anchors", old);
    snprintf(to, sizeof to, "%s/anchors", w.state);
    ck_assert_int_eq(rename(from, to), 0);
    ck_assert_int_eq(kedge_dir_remove(old), KEDGE_OK);
    append(&w, "one");
    ck_assert_int_eq(run(&w, 0, &d), KEDGE_E_CORRUPT);
    append(&w, "other");
    ck_assert_int_eq(run(&w, 0, &d), KEDGE_E_FORK);
    append(&w, "more");
    ck_assert_int_eq(run(&w, 0, &d), KEDGE_E_FORK);
    ck_assert_uint_eq(w.asked, 1);
    close_world(&w);
}
END_TEST

START_TEST(what_cannot_pass_by_itself_ends_it)
{
    struct world w;
    struct kedge_diag d = {.text = ""};
    char path[128];
    open_world(&w);
    append(&w, "one");
    kedge_buf_clear(&w.pem);
    kedge_buf_put_str(&w.pem, "no certificate");
    ck_assert_int_eq(run(&w, 0, &d), KEDGE_E_KEY);
    kedge_buf_clear(&w.pem);
    fx_authority_pem(w.honest, &w.pem);
    snprintf(path, sizeof path, "%s/anchors/tsa/lock", w.state);
    int lock = kedge_file_lock(path, NULL);
    ck_assert_int_ge(lock, 0);
    ck_assert_int_eq(run(&w, 0, &d), KEDGE_E_LOCKED);
    close(lock);
    snprintf(path, sizeof path, "%s/anchors/tsa/9.tsr", w.state); /* a token that is none */
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str("x"), 0600, NULL), KEDGE_OK);
    snprintf(path, sizeof path, "%s/anchors/tsa/9.note", w.state);
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str("x"), 0600, NULL), KEDGE_OK);
    ck_assert_int_eq(run(&w, 0, &d), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(d.text, "anchors/tsa/9.tsr"));
    close_world(&w);
}
END_TEST

int main(void)
{
    KEDGE_ASSERT(kedge_crypto_init() == KEDGE_OK);
    Suite *s = suite_create("stamp");
    TCase *c = tcase_create("stamp");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, a_stamped_checkpoint);
    tcase_add_test(c, a_certificate_must_have_been_good_at_that_time);
    tcase_add_test(c, one_token_for_what_is_new);
    tcase_add_test(c, one_per_interval);
    tcase_add_loop_test(c, authorities_that_fail_are_borne, DEAD, MOODS);
    tcase_add_test(c, another_history_is_not_stamped);
    tcase_add_test(c, what_cannot_pass_by_itself_ends_it);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
