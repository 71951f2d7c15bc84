/* kedge anchor with a time-stamping authority (RFC 3161): run, status, verify. A token says that a checkpoint
 * existed at a time, by the word of an authority whose certificate the caller names; nothing about the log's
 * truth. */
#include "cli/anchor/anchor_tsa.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "chain/anchor/host/tsa_host.h"
#include "chain/state/state.h"
#include "cli/local.h"
#include "common/base/os/clock.h"

enum { TIMEOUT_MAX_S = 31 * 86400, INTERVAL_S = 3600, INTERVAL_MAX_S = 31 * 86400, TIME_MAX = 32 };

/* ---- run ---- */

struct session {
    struct kedge_cli *c;
    bool once, timed_out;
    uint64_t deadline_ms; /* --timeout; UINT64_MAX: none */
    struct kedge_tsa_progress now;
};

static bool go_on(void *arg, const struct kedge_tsa_progress *now)
{
    struct session *s = arg;
    s->now = *now;
    if (s->once && now->is_settled) {
        return false;
    }
    s->timed_out = kedge_cli_now_ms(arg) >= s->deadline_ms;
    return !kedge_cli_interrupted() && !s->timed_out;
}

static void say(void *arg, const char *text)
{
    const struct session *s = arg;
    kedge_cli_say(s->c, "%s\n", text);
}

static void format_time(int64_t seconds, char out[TIME_MAX])
{
    time_t t = (time_t)seconds;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || strftime(out, TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0) {
        snprintf(out, TIME_MAX, "?");
    }
}

static int end(struct kedge_cli *c, const struct session *s, uint64_t seconds)
{
    struct kedge_diag d = {.text = ""};
    char time[TIME_MAX];
    if (kedge_cli_interrupted()) {
        return kedge_cli_interrupt_end(c, "time-stamping", "%s", "the same command goes on where it was");
    }
    if (s->timed_out) {
        (void)kedge_diag_set(&d, KEDGE_E_TIMEOUT,
                             "no token for anything newer than %llu entries after %llu seconds",
                             (unsigned long long)s->now.size, (unsigned long long)seconds);
        (void)kedge_diag_hint(&d, "the same command goes on where it was");
        return kedge_cli_fail_as(c, KEDGE_E_TIMEOUT, &d, 3);
    }
    format_time(s->now.time_s, time);
    if (s->now.size > 0) {
        kedge_cli_say(c, "time-stamped: %llu entries, at %s; nothing is newer\n",
                      (unsigned long long)s->now.size, time);
    } else {
        kedge_cli_say(c, "the main chain has no signed checkpoint yet: nothing to time-stamp\n");
    }
    return kedge_cli_ok(c, json_pack("{s:{s:I,s:I}}", "last", "size", (json_int_t)s->now.size, "time_s",
                                     (json_int_t)s->now.time_s));
}

int kedge_cli_stamp_run(struct kedge_cli *c, const char *url)
{
    struct kedge_buf pem KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_diag d = {.text = ""};
    struct session s = {.c = c, .deadline_ms = UINT64_MAX};
    uint64_t seconds = 0, interval = 0;
    const char *ca = kedge_cli_option(c, "tsa-ca", NULL);
    kedge_buf_init(&pem, KEDGE_TSA_PEM_MAX);
    s.once = kedge_cli_flag(c, "once");
    if (!kedge_cli_number(c, "timeout", 1, TIMEOUT_MAX_S, 0, &seconds)
        || !kedge_cli_number(c, "interval", 1, INTERVAL_MAX_S, INTERVAL_S, &interval)
        || !kedge_cli_no_more(c, 0)) {
        return 2;
    }
    if (!ca) {
        return kedge_cli_usage(c, "--tsa needs --tsa-ca FILE: the certificates under which its tokens must "
                                  "verify");
    }
    if (seconds > 0 && !s.once) {
        return kedge_cli_usage(c, "--timeout SECONDS goes with --once");
    }
    s.deadline_ms = seconds > 0 ? kedge_cli_now_ms(&s) + seconds * 1000 : UINT64_MAX;
    int err = kedge_file_read(ca, &pem, &d);
    struct kedge_tsa_settings settings = {
        .url = url, .ca_pem = kedge_buf_view(&pem), .interval_ms = s.once ? 0 : interval * 1000};
    struct kedge_tsa_hooks hooks = {.now_ms = kedge_cli_now_ms,
                                    .wait_until = kedge_cli_wait_until,
                                    .go_on = go_on,
                                    .say = say,
                                    .arg = &s};
    kedge_cli_catch_interrupt();
    err = err ? err : kedge_tsa_run(c->state, &settings, &hooks, &d);
    return err ? kedge_cli_fail(c, err, &d) : end(c, &s, seconds);
}

/* ---- status ---- */

int kedge_cli_stamp_status(const struct kedge_cli *c, json_t **ret, struct kedge_diag *d)
{
    struct kedge_buf pem KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX], origin[KEDGE_ORIGIN_MAX + 1], deployment[KEDGE_DEPLOYMENT_MAX + 1],
        time[TIME_MAX];
    struct kedge_stamp s;
    size_t count = 0;
    *ret = NULL;
    kedge_buf_init(&pem, KEDGE_TSA_PEM_MAX);
    int err = kedge_state_deployment(c->state, deployment, d);
    err = err ? err : kedge_state_path(path, d, c->state, "anchors/tsa/ca.pem");
    if (!err && kedge_file_exists(path)) {
        err = kedge_file_read(path, &pem, d);
    }
    if (!err) {
        snprintf(origin, sizeof origin, "%s/main", deployment);
        err = kedge_tsa_newest(c->state, origin, kedge_buf_view(&pem), &s, &count, d);
    }
    if (err || count == 0) {
        return err;
    }
    format_time(s.token.time_s, time);
    kedge_cli_say(c, "%zu time stamp%s, the newest over the main chain's first %llu entries, at %s%s%s\n",
                  count, count == 1 ? "" : "s", (unsigned long long)s.size, time,
                  s.token.authority[0] ? " by " : " (not verified: anchors/tsa/ca.pem is missing)",
                  s.token.authority);
    *ret =
        json_pack("{s:I,s:I,s:s,s:s,s:s,s:b}", "count", (json_int_t)count, "size", (json_int_t)s.size, "time",
                  time, "authority", s.token.authority, "serial", s.token.serial, "verified", pem.len > 0);
    return *ret ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
}

/* ---- verify ---- */

static int say_yes(struct kedge_cli *c, const struct kedge_stamp *s, bool with_key)
{
    char time[TIME_MAX], root[KEDGE_HASH_HEX_LEN + 1];
    format_time(s->token.time_s, time);
    kedge_hash_hex(&s->root, root);
    kedge_cli_say(c,
                  "Verified: %s signed that a checkpoint of %llu entries with the root %s existed at %s "
                  "(serial %s, policy %s).\n%s",
                  s->token.authority, (unsigned long long)s->size, root, time, s->token.serial,
                  s->token.policy,
                  with_key ? "The checkpoint is signed by the log's key.\n"
                           : "The checkpoint's own signature was not checked: --log VKEY.\n");
    return kedge_cli_ok(c,
                        json_pack("{s:b,s:I,s:s,s:s,s:I,s:s,s:s,s:s,s:b}", "verified", 1, "size",
                                  (json_int_t)s->size, "root", root, "time", time, "time_s",
                                  (json_int_t)s->token.time_s, "authority", s->token.authority, "serial",
                                  s->token.serial, "policy", s->token.policy, "checkpoint_signed", with_key));
}

/* "DIR/SIZE.tsr" → "DIR/SIZE.note" */
static bool beside(const char *path, char out[KEDGE_PATH_MAX])
{
    size_t len = strlen(path);
    if (len < 5 || strcmp(path + len - 4, ".tsr") != 0 || len + 2 > KEDGE_PATH_MAX) {
        return false;
    }
    snprintf(out, KEDGE_PATH_MAX, "%.*s.note", (int)(len - 4), path);
    return true;
}

int kedge_cli_stamp_verify(struct kedge_cli *c, const char *path, struct kedge_view reply,
                           const char *note_path, const char *vkey, const char *ca_path)
{
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), ca KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_diag d = {.text = ""};
    struct kedge_vkey log;
    struct kedge_stamp s;
    char own[KEDGE_PATH_MAX];
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&ca, KEDGE_TSA_PEM_MAX);
    if (!ca_path) {
        return kedge_cli_usage(c, "--tsa-ca FILE is missing: the certificates under which a time stamp must "
                                  "verify");
    }
    if (!note_path && !beside(path, own)) {
        return kedge_cli_usage(c, "--checkpoint NOTE is missing: what was time-stamped");
    }
    if (vkey && kedge_vkey_decode(kedge_view_str(vkey), &log) != KEDGE_OK) {
        return kedge_cli_usage(c, "--log: no verifier key");
    }
    int err = kedge_file_read(note_path ? note_path : own, &note, &d);
    err = err ? err : kedge_file_read(ca_path, &ca, &d);
    if (!err && ca.len == 0) {
        err = kedge_diag_set(&d, KEDGE_E_KEY, "%s: no certificate in it", ca_path);
    }
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    err = kedge_stamp_check(kedge_buf_view(&note), reply, kedge_view_of(NULL, 0), vkey ? &log : NULL,
                            kedge_buf_view(&ca), &s, &d);
    if (err == KEDGE_E_VERIFY) {
        kedge_cli_say(c, "NOT verified: %s.\n", d.text);
        return kedge_cli_answer(c, json_pack("{s:b,s:s}", "verified", 0, "reason", d.text), 1);
    }
    return err ? kedge_cli_fail(c, err, &d) : say_yes(c, &s, vkey != NULL);
}
