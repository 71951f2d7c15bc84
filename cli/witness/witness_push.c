/* kedge witness push: the main chain's checkpoints to witnesses elsewhere (c2sp.org/tlog-witness), whose
 * cosignatures go to the coordinator. Which witnesses: those of the policy that have a URL. A process beside
 * the coordinator, which so stays without an HTTP client; it keeps nothing, for a witness tells what it has
 * seen. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/add_checkpoint.h"
#include "chain/log/witness_policy.h"
#include "chain/state/state.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "common/http/client.h"

enum {
    POST_MS = 5000,
    LOOK_MS = 1000,    /* between two looks at the coordinator */
    BACKOFF_MS = 5000, /* after a failure, doubled each time up to … */
    BACKOFF_MAX_MS = 300000,
    TRIES = 3,         /* in a row, when a witness has another size */
    INTERVAL_S = 3600, /* the same size is cosigned again, with a later time, after so long */
    INTERVAL_MAX_S = 86400
};

/* A witness elsewhere, and what this process knows of it. */
struct outside {
    char name[KEDGE_WITNESS_SHOWN_MAX];
    struct kedge_vkey vkey;
    struct kedge_http *http; /* NULL: its URL cannot be used */
    uint64_t known;          /* what it had cosigned when it was heard last */
    uint64_t size, done_ms;  /* what it cosigned last for us, and when */
    uint64_t again_ms;       /* not before, after a failure */
    uint32_t failures;
    char said[KEDGE_DIAG_TEXT_MAX]; /* last words, which are not said twice in a row */
};

struct push {
    struct kedge_cli *c;
    uint64_t interval_ms;
    struct kedge_buf policy_text; /* from which the table was made */
    struct outside *rows;
    uint32_t count;
    struct kedge_buf note; /* what is to be cosigned … */
    uint64_t size;         /* … and its size */
    uint64_t final_size;
};

/* A witness that is away for a day would fill the log with one sentence. */
static void say_once(struct push *p, struct outside *w, const char *text)
{
    if (strcmp(text, w->said) != 0) {
        snprintf(w->said, sizeof w->said, "%s", text);
        kedge_cli_say(p->c, "%s: %s\n", w->name, text);
    }
}

/* ---- who there is ---- */

static void free_rows(struct push *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        kedge_http_close(p->rows[i].http);
    }
    kedge_mem_free(p->rows);
    p->rows = NULL;
    p->count = 0;
}

/* A URL that cannot be used does not end the command: the others still cosign, and this one is told. */
static void open_row(struct push *p, const struct kedge_witness *from, struct outside *w)
{
    char url[KEDGE_WITNESS_URL_MAX + 32];
    struct kedge_diag d = {.text = ""};
    size_t len = from->url.len;
    while (len > 0 && from->url.ptr[len - 1] == '/') {
        len--;
    }
    snprintf(url, sizeof url, "%.*s/add-checkpoint", (int)len, (const char *)from->url.ptr);
    (void)kedge_witness_name_show(from->name, w->name);
    w->vkey = from->vkey;
    struct kedge_http_options o = {.url = url, .what = "its URL", .content_type = "text/plain"};
    if (kedge_http_open(&o, &w->http, &d) != KEDGE_OK) {
        w->http = NULL;
        say_once(p, w, d.text);
    }
}

/* The table anew, when the policy is another one. */
static int take_policy(struct push *p, const char *text, struct kedge_diag *d)
{
    struct kedge_witness_policy *policy = NULL;
    if (kedge_view_eq(kedge_buf_view(&p->policy_text), kedge_view_str(text))) {
        return KEDGE_OK;
    }
    int err = kedge_witness_policy_parse(kedge_view_str(text), &policy, d);
    struct outside *rows = err ? NULL : kedge_mem_new(policy->witness_count + 1, sizeof *rows);
    if (!rows) {
        kedge_witness_policy_free(policy);
        return err ? err : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    free_rows(p);
    p->rows = rows;
    for (uint32_t i = 0; i < policy->witness_count; i++) {
        if (policy->witnesses[i].is_supported && policy->witnesses[i].url.len > 0) {
            open_row(p, &policy->witnesses[i], &rows[p->count++]);
        }
    }
    kedge_witness_policy_free(policy);
    kedge_buf_clear(&p->policy_text);
    kedge_buf_put_str(&p->policy_text, text);
    return p->policy_text.err;
}

/* What is to be cosigned, and by whom. The coordinator says what it wants cosigned (witness.proposal) and by
 * whom, each time anew: neither is kept here. */
static int look(struct push *p, struct kedge_diag *d)
{
    json_t *o = NULL;
    KEDGE_TRY(kedge_cli_admin(p->c, json_pack("{s:s}", "verb", "witness.proposal"), &o, d));
    int err = take_policy(p, kedge_cli_text(o, "policy"), d);
    kedge_buf_clear(&p->note);
    kedge_buf_put_str(&p->note, kedge_cli_text(o, "note"));
    p->size = (uint64_t)kedge_cli_int(o, "size");
    p->final_size = (uint64_t)kedge_cli_int(o, "final_size");
    json_decref(o);
    return err ? err : p->note.err;
}

/* ---- one witness ---- */

/* From the state folder of this machine: the proof is of the log as it is stored, and the witness checks it
 * against what it has seen. */
static int prove_growth(const struct push *p, uint64_t old_size, struct kedge_path *ret, struct kedge_diag *d)
{
    struct kedge_state_log log;
    KEDGE_TRY(kedge_state_log_open(p->c->state, NULL, KEDGE_STATE_READ, &log, d));
    int err = kedge_ledger_consistency(log.ledger, old_size, p->size, ret);
    kedge_state_log_close(&log);
    return err;
}

/* No proof is needed where the witness has nothing yet, or this very size. */
static int make_request(const struct push *p, uint64_t old_size, struct kedge_buf *out, struct kedge_diag *d)
{
    struct kedge_path path = {.count = 0};
    int err = old_size > 0 && old_size < p->size ? prove_growth(p, old_size, &path, d) : KEDGE_OK;
    if (!err) {
        err = kedge_add_checkpoint_format(old_size, path.hashes, path.count, kedge_buf_view(&p->note), out);
    }
    return err ? kedge_diag_set(d, err, "no proof from %" PRIu64 " to %" PRIu64 " entries: %s", old_size,
                                p->size, kedge_strerror(err))
               : KEDGE_OK;
}

/* Asks until it has the proof that it wants. The protocol (c2sp.org/tlog-witness) wants a proof from the size
 * that the witness has, which is known only from its last answer: a witness that has another size says so
 * (409), and the request is made again from there, a bounded number of times. */
static int ask(const struct push *p, struct outside *w, struct kedge_buf *cosigned, struct kedge_diag *d)
{
    struct kedge_buf request KEDGE_CLEANUP(kedge_buf_deinit), body KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_witness_answer answer = {.reason = ""};
    kedge_buf_init(&request, KEDGE_ADD_CHECKPOINT_MAX);
    kedge_buf_init(&body, KEDGE_ADD_CHECKPOINT_BODY_MAX);
    for (int i = 0; i < TRIES; i++) {
        unsigned status = 0;
        struct kedge_witness_asked asked = {
            .note = kedge_buf_view(&p->note), .size = p->size, .old_size = w->known, .witness = &w->vkey};
        kedge_buf_clear(&request);
        kedge_buf_clear(&body);
        int err = make_request(p, w->known, &request, d);
        if (!err) {
            err = kedge_http_post(w->http, kedge_buf_view(&request), POST_MS, &status, &body, d);
        }
        if (!err) {
            err = kedge_add_checkpoint_judge(&asked, status, kedge_buf_view(&body), cosigned, &answer);
        }
        if (err) {
            return d->text[0] ? err : kedge_diag_set(d, err, "%s", kedge_strerror(err));
        }
        if (answer.outcome == KEDGE_WITNESS_COSIGNED) {
            w->known = p->size;
            return KEDGE_OK;
        }
        if (answer.outcome != KEDGE_WITNESS_AGAIN) {
            break;
        }
        w->known = answer.size;
    }
    w->known = 0; /* what it said may have been wrong */
    return kedge_diag_set(d, KEDGE_E_DENIED, "does not cosign: %s", answer.reason);
}

/* True when the coordinator has its cosignature of what is to be cosigned now. A failure delays this witness
 * alone, the longer the more often it fails, up to five minutes; only where the coordinator has moved on
 * (STATE) is it asked again at once. */
static bool push_to(struct push *p, struct outside *w)
{
    struct kedge_buf cosigned KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_diag d = {.text = ""};
    json_t *o = NULL;
    char text[64];
    kedge_buf_init(&cosigned, KEDGE_NOTE_MAX + 1);
    int err = ask(p, w, &cosigned, &d);
    if (!err) {
        kedge_buf_put_u8(&cosigned, 0);
        err = cosigned.err ? cosigned.err
                           : kedge_cli_admin(p->c,
                                             json_pack("{s:s,s:s}", "verb", "witness.cosign", "note",
                                                       (const char *)cosigned.ptr),
                                             &o, &d);
    }
    if (err) {
        uint32_t doublings = w->failures < 16 ? w->failures : 16;
        uint64_t wait = (uint64_t)BACKOFF_MS << doublings;
        w->failures++;
        w->again_ms = kedge_os_unix_ms()
                      + (err == KEDGE_E_STATE    ? 0
                         : wait < BACKOFF_MAX_MS ? wait
                                                 : BACKOFF_MAX_MS);
        say_once(p, w, d.text[0] ? d.text : kedge_strerror(err));
        return false;
    }
    p->final_size = (uint64_t)kedge_cli_int(o, "final_size");
    json_decref(o);
    w->failures = 0;
    w->size = p->size;
    w->done_ms = kedge_os_unix_ms();
    snprintf(text, sizeof text, "cosigned %" PRIu64 " entries", w->size);
    say_once(p, w, text);
    return true;
}

/* ---- the loop ---- */

/* How many have not cosigned what is to be cosigned now. One witness after the other, each with a time limit
 * (POST_MS): they are few, and the next turn comes in a second. */
static uint32_t step(struct push *p)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        struct outside *w = &p->rows[i];
        uint64_t now = kedge_os_unix_ms();
        bool fresh = w->size == p->size && now - w->done_ms < p->interval_ms;
        if (p->size == 0 || fresh) {
            continue;
        }
        missing += !w->http || now < w->again_ms || !push_to(p, w);
    }
    return missing;
}

static int end(struct push *p, uint32_t missing)
{
    kedge_cli_say(p->c,
                  "the main chain's first %" PRIu64 " entries are final; %u of %u witnesses elsewhere %s\n",
                  p->final_size, p->count - missing, p->count, "cosigned what it has now");
    return kedge_cli_answer(p->c,
                            json_pack("{s:I,s:I,s:I,s:I}", "size", (json_int_t)p->size, "final_size",
                                      (json_int_t)p->final_size, "witnesses", (json_int_t)p->count, "missing",
                                      (json_int_t)missing),
                            missing > 0 ? 1 : 0);
}

/* Ends by itself where waiting is no use: with --once, without any witness to ask, or without memory. A
 * coordinator that is away comes back. */
static int run(struct push *p, bool once)
{
    struct kedge_diag d = {.text = ""};
    char said[KEDGE_DIAG_TEXT_MAX] = "";
    do {
        d.text[0] = '\0';
        int err = look(p, &d);
        if (!err && p->count == 0) {
            err = kedge_diag_set(&d, KEDGE_E_STATE, "the witness policy names no witness with a URL");
            (void)kedge_diag_hint(&d,
                                  "STATE/witness-policy.txt: \"witness NAME VKEY https://…\", then start the "
                                  "coordinator again");
        }
        if (err && (once || err == KEDGE_E_STATE || err == KEDGE_E_NOMEM)) {
            return kedge_cli_fail(p->c, err, &d);
        }
        if (err && strcmp(said, d.text) != 0) { /* the coordinator is away: it comes back */
            kedge_cli_say(p->c, "%s\n", d.text);
        }
        snprintf(said, sizeof said, "%s", d.text);
        uint32_t missing = err ? 0 : step(p);
        if (once) {
            return end(p, missing);
        }
    } while (!kedge_cli_pause(LOOK_MS));
    return kedge_cli_interrupt_end(p->c, "pushing", "%s", "the same command goes on");
}

int kedge_cmd_witness_push(struct kedge_cli *c)
{
    struct push p = {.c = c};
    uint64_t interval;
    bool once = kedge_cli_flag(c, "once");
    if (!kedge_cli_number(c, "interval", 1, INTERVAL_MAX_S, INTERVAL_S, &interval)
        || !kedge_cli_no_more(c, 0)) {
        return 2;
    }
    p.interval_ms = interval * 1000;
    kedge_buf_init(&p.policy_text, KEDGE_WITNESS_POLICY_MAX);
    kedge_buf_init(&p.note, KEDGE_NOTE_MAX);
    kedge_cli_catch_interrupt();
    int code = run(&p, once);
    free_rows(&p);
    kedge_buf_deinit(&p.policy_text);
    kedge_buf_deinit(&p.note);
    return code;
}
