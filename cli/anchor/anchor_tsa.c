/* kedge anchor with a time-stamping authority (RFC 3161): run, status, verify. A token says that a checkpoint
 * existed at a time, by the word of an authority whose certificate the caller names; nothing about the log's
 * truth. */
#include <stdio.h>
#include <string.h>

#include "chain/anchor/host/tsa_host.h"
#include "chain/state/state.h"
#include "cli/anchor/anchor.h"
#include "cli/local.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"

enum { INTERVAL_S = 3600, INTERVAL_MAX_S = 31 * 86400 };

/* ---- run ---- */

struct session {
    struct kedge_cli_anchor_run run;
    struct kedge_tsa_progress now;
};

static bool go_on(void *arg, const struct kedge_tsa_progress *now)
{
    struct session *s = arg;
    s->now = *now;
    return kedge_cli_anchor_goes_on(&s->run, now->is_settled);
}

static void say(void *arg, const char *text)
{
    const struct session *s = arg;
    kedge_cli_say(s->run.c, "%s\n", text);
}

/* Three ways out that are no error of the authority: interrupted (130), no token within --timeout (3), and
 * nothing newer to stamp (0). In each of them the same command goes on where this one ended. */
static int end(struct kedge_cli *c, const struct session *s)
{
    struct kedge_diag d = {.text = ""};
    if (kedge_cli_interrupted()) {
        return kedge_cli_interrupt_end(c, "time-stamping", "%s", "the same command goes on where it was");
    }
    if (s->run.timed_out) {
        (void)kedge_diag_set(&d, KEDGE_E_TIMEOUT,
                             "no token for anything newer than %llu entries after %llu seconds",
                             (unsigned long long)s->now.size, (unsigned long long)s->run.seconds);
        (void)kedge_diag_hint(&d, "the same command goes on where it was");
        return kedge_cli_fail_as(c, KEDGE_E_TIMEOUT, &d, 3);
    }
    if (s->now.size > 0) {
        kedge_cli_say(c, "time-stamped: %llu entries, at %s; nothing is newer\n",
                      (unsigned long long)s->now.size, kedge_utc(s->now.time_s, KEDGE_UTC_RFC3339, "?").s);
    } else {
        kedge_cli_say(c, "the main chain has no signed checkpoint yet: nothing to time-stamp\n");
    }
    return kedge_cli_ok(c, json_pack("{s:{s:I,s:I}}", "last", "size", (json_int_t)s->now.size, "time_s",
                                     (json_int_t)s->now.time_s));
}

/* With --once the interval does not count: the newest checkpoint is stamped now, if it is not yet. The
 * authority's certificates are needed although only a request is made, because a token is verified before it
 * is kept: one that no auditor can verify is no anchor. */
static int run(struct kedge_cli_anchor_run *asked)
{
    struct kedge_cli *c = asked->c;
    struct kedge_buf pem KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_diag d = {.text = ""};
    struct session s = {.run = *asked};
    uint64_t interval = 0;
    const char *ca = kedge_cli_option(c, "tsa-ca", NULL);
    kedge_buf_init(&pem, KEDGE_TSA_PEM_MAX);
    if (!kedge_cli_number(c, "interval", 1, INTERVAL_MAX_S, INTERVAL_S, &interval)
        || !kedge_cli_no_more(c, 0)) {
        return 2;
    }
    if (!ca) {
        return kedge_cli_usage(c, "--tsa needs --tsa-ca FILE: the certificates under which its tokens must "
                                  "verify");
    }
    KEDGE_CLI_TRY(c, kedge_file_read(ca, &pem, &d), &d);
    struct kedge_tsa_settings settings = {.url = asked->value,
                                          .ca_pem = kedge_buf_view(&pem),
                                          .interval_ms = asked->once ? 0 : interval * 1000};
    struct kedge_tsa_hooks hooks = {.now_ms = kedge_cli_now_ms,
                                    .wait_until = kedge_cli_wait_until,
                                    .go_on = go_on,
                                    .say = say,
                                    .arg = &s};
    kedge_cli_catch_interrupt();
    KEDGE_CLI_TRY(c, kedge_tsa_run(c->state, &settings, &hooks, &d), &d);
    return end(c, &s);
}

/* ---- status ---- */

/* Without the authority's certificates the newest token is told as well, and is called not verified: what it
 * says of itself is not proof. */
static int status(struct kedge_cli *c, json_t *io, int *io_code, struct kedge_diag *d)
{
    struct kedge_buf pem KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX], origin[KEDGE_ORIGIN_MAX + 1], deployment[KEDGE_DEPLOYMENT_MAX + 1];
    struct kedge_stamp s;
    size_t count = 0;
    (void)io_code;
    kedge_buf_init(&pem, KEDGE_TSA_PEM_MAX);
    KEDGE_TRY(kedge_state_deployment(c->state, deployment, d));
    KEDGE_TRY(kedge_state_path(path, d, c->state, "anchors/tsa/ca.pem"));
    if (kedge_file_exists(path)) {
        KEDGE_TRY(kedge_file_read(path, &pem, d));
    }
    snprintf(origin, sizeof origin, "%s/main", deployment);
    KEDGE_TRY(kedge_tsa_newest(c->state, origin, kedge_buf_view(&pem), &s, &count, d));
    if (count == 0) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no time stamp in %s/anchors/tsa", c->state);
    }
    struct kedge_utc time = kedge_utc(s.token.time_s, KEDGE_UTC_RFC3339, "?");
    kedge_cli_say(c, "%zu time stamp%s, the newest over the main chain's first %llu entries, at %s%s%s\n",
                  count, count == 1 ? "" : "s", (unsigned long long)s.size, time.s,
                  s.token.authority[0] ? " by " : " (not verified: anchors/tsa/ca.pem is missing)",
                  s.token.authority);
    json_t *row =
        json_pack("{s:I,s:I,s:s,s:s,s:s,s:b}", "count", (json_int_t)count, "size", (json_int_t)s.size, "time",
                  time.s, "authority", s.token.authority, "serial", s.token.serial, "verified", pem.len > 0);
    return json_object_set_new(io, "time_stamps", row) == 0
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
}

/* ---- verify ---- */

static int say_yes(struct kedge_cli *c, const struct kedge_stamp *s, bool with_key)
{
    char root[KEDGE_HASH_HEX_LEN + 1];
    struct kedge_utc time = kedge_utc(s->token.time_s, KEDGE_UTC_RFC3339, "?");
    kedge_hash_hex(&s->root, root);
    kedge_cli_say(c,
                  "Verified: %s signed that a checkpoint of %llu entries with the root %s existed at %s "
                  "(serial %s, policy %s).\n%s",
                  s->token.authority, (unsigned long long)s->size, root, time.s, s->token.serial,
                  s->token.policy,
                  with_key ? "The checkpoint is signed by the log's key.\n"
                           : "The checkpoint's own signature was not checked: --log VKEY.\n");
    return kedge_cli_ok(c,
                        json_pack("{s:b,s:I,s:s,s:s,s:I,s:s,s:s,s:s,s:b}", "verified", 1, "size",
                                  (json_int_t)s->size, "root", root, "time", time.s, "time_s",
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

/* The evidence of the other kind is JSON text, so one byte tells them apart. */
static bool is_evidence(struct kedge_view bytes)
{
    return bytes.len > 0 && bytes.ptr[0] == 0x30; /* DER's SEQUENCE */
}

/* What was stamped lies beside its token under the same name, unless --checkpoint names it. The certificates
 * are always the caller's: a token brings some along, and they prove nothing. */
static int verify(struct kedge_cli *c, const struct kedge_cli_anchor_file *file)
{
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), ca KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_diag d = {.text = ""};
    struct kedge_vkey log;
    struct kedge_stamp s;
    char own[KEDGE_PATH_MAX];
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&ca, KEDGE_TSA_PEM_MAX);
    if (!file->trusted) {
        return kedge_cli_usage(c, "--tsa-ca FILE is missing: the certificates under which a time stamp must "
                                  "verify");
    }
    if (!file->checkpoint && !beside(file->path, own)) {
        return kedge_cli_usage(c, "--checkpoint NOTE is missing: what was time-stamped");
    }
    if (file->log && kedge_vkey_decode(kedge_view_str(file->log), &log) != KEDGE_OK) {
        return kedge_cli_usage(c, "--log: no verifier key");
    }
    KEDGE_CLI_TRY(c, kedge_file_read(file->checkpoint ? file->checkpoint : own, &note, &d), &d);
    KEDGE_CLI_TRY(c, kedge_file_read(file->trusted, &ca, &d), &d);
    if (ca.len == 0) {
        return kedge_cli_fail(c, kedge_diag_set(&d, KEDGE_E_KEY, "%s: no certificate in it", file->trusted),
                              &d);
    }
    int err = kedge_stamp_check(kedge_buf_view(&note), file->bytes, kedge_view_of(NULL, 0),
                                file->log ? &log : NULL, kedge_buf_view(&ca), &s, &d);
    if (err == KEDGE_E_VERIFY) {
        kedge_cli_say(c, "NOT verified: %s.\n", d.text);
        return kedge_cli_answer(c, json_pack("{s:b,s:s}", "verified", 0, "reason", d.text), 1);
    }
    return err ? kedge_cli_fail(c, err, &d) : say_yes(c, &s, file->log != NULL);
}

const struct kedge_cli_anchor_kind kedge_cli_anchor_tsa = {.run_option = "tsa",
                                                           .verify_option = "tsa-ca",
                                                           .run = run,
                                                           .status = status,
                                                           .is_evidence = is_evidence,
                                                           .verify = verify};
