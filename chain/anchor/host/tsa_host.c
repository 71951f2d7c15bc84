/* The loop of time stamps. There is no state file: the newest pair on disk says what was stamped last and
 * when, which is all that a restart needs. Failures are of two kinds. What may pass (network, a wrong reply,
 * a store that is busy) is said and tried again, twice as late each time; what cannot (an old backup, a fork,
 * no more room) ends the process, as going on would cover it up. */
#include "chain/anchor/host/tsa_host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/anchor/host/main_chain.h"
#include "chain/state/anchors.h"
#include "chain/state/state.h"
#include "common/base/mem.h"
#include "common/base/os/entropy.h"
#include "common/base/try.h"

struct host {
    const char *state;
    const struct kedge_tsa_settings *settings;
    const struct kedge_tsa_hooks *hooks;
    char origin[KEDGE_ORIGIN_MAX + 1];
    struct kedge_http *http;
    int lock;
    size_t count;            /* of tokens here */
    struct kedge_stamp last; /* the newest; size 0: none */
    struct kedge_buf note;   /* the main chain's newest checkpoint … */
    uint64_t size;           /* … and its size */
    uint32_t failures;
    uint64_t again_ms;              /* not before, after a failure */
    char said[KEDGE_DIAG_TEXT_MAX]; /* last words, which are not said twice in a row */
};

static void say(struct host *h, const char *text)
{
    if (strcmp(text, h->said) != 0) {
        snprintf(h->said, sizeof h->said, "%s", text);
        h->hooks->say(h->hooks->arg, text);
    }
}

/* ---- what is here ---- */

static int read_below(const char *state, const char *name, struct kedge_buf *out, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, reterr, state, "%s", name);
    return err ? err : kedge_file_read(path, out, reterr);
}

/* What a token claims, read from its two files and verified. */
static int read_stamp(const char *state, const char *origin, uint64_t size, struct kedge_view ca_pem,
                      struct kedge_stamp *ret, struct kedge_diag *reterr)
{
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), reply KEDGE_CLEANUP(kedge_buf_deinit);
    char name[KEDGE_ANCHOR_NAME_MAX], note_name[KEDGE_ANCHOR_NAME_MAX];
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&reply, KEDGE_TSR_MAX);
    kedge_anchor_name(&kedge_anchor_tsa, size, name);
    kedge_anchor_note_name(&kedge_anchor_tsa, size, note_name);
    KEDGE_TRY(read_below(state, note_name, &note, reterr));
    KEDGE_TRY(read_below(state, name, &reply, reterr));
    int err = kedge_stamp_check(kedge_buf_view(&note), kedge_buf_view(&reply), kedge_view_str(origin), NULL,
                                ca_pem, ret, reterr);
    if (!err && ret->size != size) {
        err = kedge_diag_set(reterr, KEDGE_E_VERIFY, "is about a checkpoint of another size");
    }
    return err ? kedge_diag_wrap(reterr, err, "%s/%s", state, name) : KEDGE_OK;
}

int kedge_tsa_newest(const char *state, const char *origin, struct kedge_view ca_pem, struct kedge_stamp *ret,
                     size_t *ret_count, struct kedge_diag *reterr)
{
    uint64_t *sizes = NULL;
    size_t count = 0;
    struct kedge_stamp s;
    KEDGE_TRY(kedge_anchor_list(state, &kedge_anchor_tsa, &sizes, &count, reterr));
    int err = count > 0 ? read_stamp(state, origin, sizes[count - 1], ca_pem, &s, reterr) : KEDGE_OK;
    kedge_mem_free(sizes);
    if (err) {
        return err;
    }
    if (count > 0) {
        *ret = s;
    }
    *ret_count = count;
    return KEDGE_OK;
}

/* The main chain as it is now, which must still be the one that has tokens. */
static int read_main(struct host *h, struct kedge_diag *reterr)
{
    struct kedge_hash root, root_at = {{0}};
    kedge_buf_clear(&h->note);
    h->size = 0;
    int err = kedge_anchor_read_main(h->state, h->last.size, &h->size, &root, &root_at, &h->note, reterr);
    if (err == KEDGE_E_NOT_FOUND && h->last.size == 0) {
        return KEDGE_OK; /* nothing signed yet */
    }
    if (!err && h->size < h->last.size) {
        return kedge_diag_set(
            reterr, KEDGE_E_CORRUPT,
            "the main chain has %llu signed entries, and %llu of it were time-stamped: this "
            "is an old backup",
            (unsigned long long)h->size, (unsigned long long)h->last.size);
    }
    if (!err && h->last.size > 0 && !kedge_hash_eq(&root_at, &h->last.root)) {
        return kedge_diag_set(reterr, KEDGE_E_FORK,
                              "other entries were time-stamped than the first %llu of this main chain: two "
                              "histories",
                              (unsigned long long)h->last.size);
    }
    return err;
}

/* ---- one token ---- */

static int post(struct host *h, struct kedge_view query, struct kedge_buf *reply, struct kedge_diag *d)
{
    return h->hooks->post ? h->hooks->post(h->hooks->arg, query, reply, d)
                          : kedge_http_post(h->http, query, KEDGE_TSA_TIMEOUT_MS, NULL, reply, d);
}

/* Whether the reply is a token for this very query. The nonce (RFC 3161, section 2.4.1) keeps an old reply
 * over the same bytes from being passed off as a new one. The clocks are compared because the interval counts
 * from the token's time, and because a token of a wrong time proves a wrong thing for good. */
static int judge(struct host *h, struct kedge_view reply, uint64_t nonce, struct kedge_stamp *ret,
                 struct kedge_diag *d)
{
    struct kedge_stamp s;
    int err = kedge_stamp_check(kedge_buf_view(&h->note), reply, kedge_view_str(h->origin), NULL,
                                h->settings->ca_pem, &s, d);
    if (err) {
        return kedge_diag_wrap(d, err, "the authority's reply");
    }
    if (!s.token.has_nonce || s.token.nonce != nonce) {
        return kedge_diag_set(d, KEDGE_E_VERIFY,
                              "the token has another nonce: it was made for another query");
    }
    int64_t now_s = (int64_t)(h->hooks->now_ms(h->hooks->arg) / 1000), apart = s.token.time_s - now_s;
    if (apart > KEDGE_TSA_SKEW_S || apart < -KEDGE_TSA_SKEW_S) {
        return kedge_diag_set(
            d, KEDGE_E_VERIFY,
            "the token's time is %lld seconds from this machine's: one of the two clocks is "
            "wrong",
            (long long)apart);
    }
    *ret = s;
    return KEDGE_OK;
}

/* The note first: a token without it would say nothing. */
static int store(struct host *h, uint64_t size, struct kedge_view reply, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], name[KEDGE_ANCHOR_NAME_MAX];
    kedge_anchor_note_name(&kedge_anchor_tsa, size, name);
    KEDGE_TRY(kedge_state_path(path, d, h->state, "%s", name));
    KEDGE_TRY(kedge_file_write(path, kedge_buf_view(&h->note), 0644, d));
    kedge_anchor_name(&kedge_anchor_tsa, size, name);
    KEDGE_TRY(kedge_state_path(path, d, h->state, "%s", name));
    return kedge_file_write(path, reply, 0644, d);
}

static int stamp(struct host *h, struct kedge_diag *d)
{
    struct kedge_buf query KEDGE_CLEANUP(kedge_buf_deinit), reply KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_stamp s;
    uint64_t nonce;
    kedge_buf_init(&query, KEDGE_TSR_MAX);
    kedge_buf_init(&reply, KEDGE_TSR_MAX);
    kedge_os_random(&nonce, sizeof nonce);
    KEDGE_TRY(kedge_timestamp_query(kedge_buf_view(&h->note), &nonce, &query));
    KEDGE_TRY(post(h, kedge_buf_view(&query), &reply, d));
    KEDGE_TRY(judge(h, kedge_buf_view(&reply), nonce, &s, d));
    KEDGE_TRY(store(h, s.size, kedge_buf_view(&reply), d));
    char text[KEDGE_TSA_NAME_MAX + 128];
    h->last = s;
    h->count++;
    snprintf(text, sizeof text, "the main chain's first %llu entries are time-stamped by %s",
             (unsigned long long)s.size, s.token.authority);
    say(h, text);
    return KEDGE_OK;
}

/* ---- the loop ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What may pass by itself is said, and tried again later each time. */
static void put_off(struct host *h, uint64_t now, int err, const struct kedge_diag *d)
{
    uint32_t doublings = h->failures < 16 ? h->failures : 16;
    h->failures++;
    h->again_ms = now + least((uint64_t)KEDGE_TSA_BACKOFF_MS << doublings, KEDGE_TSA_BACKOFF_MAX_MS);
    say(h, d->text[0] ? d->text : kedge_strerror(err));
}

/* Asks for a token when one is due. The interval counts from the last token's own time, which a restart does
 * not lose. Only what cannot pass by itself is an error. */
static int step(struct host *h, uint64_t now, struct kedge_diag *reterr)
{
    struct kedge_diag d = {.text = ""};
    int err = read_main(h, &d);
    if (err == KEDGE_E_CORRUPT || err == KEDGE_E_FORK || err == KEDGE_E_NOMEM) {
        return kedge_diag_set(reterr, err, "%s", d.text[0] ? d.text : kedge_strerror(err));
    }
    if (err) {
        put_off(h, now, err, &d);
        return KEDGE_OK;
    }
    uint64_t due = h->last.size > 0 ? (uint64_t)h->last.token.time_s * 1000 + h->settings->interval_ms : 0;
    if (h->size == h->last.size || now < due || now < h->again_ms) {
        return KEDGE_OK;
    }
    if (h->count >= KEDGE_ANCHORS_MAX) {
        (void)kedge_diag_set(reterr, KEDGE_E_FULL,
                             "%s/anchors/tsa holds %d time stamps, as many as there may be", h->state,
                             (int)KEDGE_ANCHORS_MAX);
        (void)kedge_diag_hint(reterr,
                              "move old ones away, each .note with its .tsr; they stay good by themselves");
        return KEDGE_E_FULL;
    }
    err = stamp(h, &d);
    if (err == KEDGE_E_KEY || err == KEDGE_E_NOMEM) {
        return kedge_diag_set(reterr, err, "%s", d.text[0] ? d.text : kedge_strerror(err));
    }
    if (err) {
        put_off(h, now, err, &d);
    } else {
        h->failures = 0;
        h->again_ms = 0;
    }
    return KEDGE_OK;
}

static int loop(struct host *h, struct kedge_diag *reterr)
{
    const struct kedge_tsa_hooks *hooks = h->hooks;
    for (;;) {
        KEDGE_TRY(step(h, hooks->now_ms(hooks->arg), reterr));
        struct kedge_tsa_progress p = {.size = h->last.size,
                                       .time_s = h->last.size > 0 ? h->last.token.time_s : 0,
                                       .is_settled = h->size == h->last.size && h->failures == 0,
                                       .failures = h->failures};
        uint64_t now = hooks->now_ms(hooks->arg), until = now + KEDGE_TSA_POLL_MS;
        if (h->settings->interval_ms > 0) {
            until = least(until, now + h->settings->interval_ms);
        }
        if (h->again_ms > now) {
            until = least(until, h->again_ms);
        }
        do {
            if (!hooks->go_on(hooks->arg, &p)) {
                return KEDGE_OK;
            }
            hooks->wait_until(hooks->arg, until);
        } while (hooks->now_ms(hooks->arg) < until);
    }
}

static int open_host(struct host *h, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], deployment[KEDGE_DEPLOYMENT_MAX + 1];
    struct kedge_http_options options = {.url = h->settings->url,
                                         .what = "--tsa",
                                         .content_type = "application/timestamp-query",
                                         .plain = true};
    KEDGE_TRY(kedge_state_deployment(h->state, deployment, reterr));
    snprintf(h->origin, sizeof h->origin, "%s/main", deployment);
    KEDGE_TRY(h->hooks->post ? KEDGE_OK : kedge_http_open(&options, &h->http, reterr));
    KEDGE_TRY(kedge_state_path(path, reterr, h->state, "anchors/tsa"));
    KEDGE_TRY(kedge_dir_make(path, 0700, reterr));
    int err = kedge_state_path(path, reterr, h->state, "anchors/tsa/lock");
    if (!err) {
        h->lock = kedge_file_lock(path, reterr);
        err = h->lock < 0 ? h->lock : KEDGE_OK;
    }
    /* Its claims: it was verified before it was written, perhaps under another authority's certificates. */
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_tsa_newest(h->state, h->origin, kedge_view_of(NULL, 0), &h->last, &h->count, reterr));
    err = kedge_state_path(path, reterr, h->state, "anchors/tsa/ca.pem");
    return err ? err : kedge_file_write(path, h->settings->ca_pem, 0644, reterr);
}

int kedge_tsa_run(const char *state, const struct kedge_tsa_settings *settings,
                  const struct kedge_tsa_hooks *hooks, struct kedge_diag *reterr)
{
    struct host *h = kedge_mem_new(1, sizeof *h);
    if (!h) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    h->state = state;
    h->settings = settings;
    h->hooks = hooks;
    h->lock = -1;
    kedge_buf_init(&h->note, KEDGE_NOTE_MAX);
    int err = open_host(h, reterr);
    if (!err) {
        err = loop(h, reterr);
    }
    kedge_http_close(h->http);
    if (h->lock >= 0) {
        close(h->lock);
    }
    kedge_buf_deinit(&h->note);
    kedge_mem_free(h);
    return err;
}
