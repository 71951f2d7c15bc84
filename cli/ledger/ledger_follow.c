/* kedge ledger follow: a witness at work. It copies the main chain's hashes and its tenant's ledger, checks
 * that both only ever grow, cosigns what it has seen, and keeps evidence when a log shows two histories.
 * Everything that it stores is proven first; what is in the way of a step is said, and the step is made
 * again. */
#include "chain/follow/follow.h"

#include <stdio.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/fork_evidence.h"
#include "cli/ledger/follow.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum {
    INTERVAL_MAX_S = 86400,
    TENANT_FILE_MAX = 4096,
    AGAIN_S = 60,          /* a cosignature says that nothing else was seen until its time */
    COSIGN_PAUSE_MS = 250, /* the coordinator takes so many cosignatures a second */
    TRIES_MAX = 3,         /* cosigning while the coordinator changes what it proposes */
};

struct source {
    struct kedgei_watch *f;
    const char *log; /* "main" or the tenant */
};

static int fetch(void *arg, const char *path, struct kedge_buf *ret, struct kedge_diag *d)
{
    struct source *s = arg;
    char full[KEDGE_ID_MAX + 128];
    snprintf(full, sizeof full, "%s/%s", s->log, path);
    return kedgei_follow_resource(s->f, full, ret, d);
}

/* ---- evidence ---- */

/* Keeps what convicts a log, under a name of its own; told even when nothing could be kept. */
static void keep_evidence(const struct kedgei_watch *f, const struct kedge_buf *evidence, int err,
                          struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_hash digest;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    if (evidence->len == 0) {
        return;
    }
    kedge_sha256(kedge_buf_view(evidence), &digest);
    kedge_hash_hex(&digest, hex);
    struct kedge_diag why = {.text = ""};
    int kept =
        kedge_state_path(path, &why, f->dir, "evidence/%.16s.%s", hex, err == KEDGE_E_FORK ? "fork" : "note");
    kept = kept ? kept : kedge_file_write(path, kedge_buf_view(evidence), 0600, &why);
    (void)kedge_diag_hint(d, kept ? "the evidence could not be kept: %s" : "kept as %s",
                          kept ? why.text : path);
}

/* ---- one log ---- */

/* Of the main chain the copy has hashes only, of the tenant's own ledger every entry. A fork or a log that
 * shrank is evidence: it is kept first, and the coordinator is shown its own signature afterwards. */
static int follow_log(struct kedgei_watch *f, struct kedge_state_log *log, const struct kedge_vkey *vkey,
                      bool *ret_grew, struct kedge_diag *d)
{
    struct source source = {f, log == &f->main ? "main" : f->w.tenant.s};
    struct kedge_follow follow = {
        .source = {fetch, &source}, .copy = log->ledger, .vkey = *vkey, .whole = log == &f->own};
    struct kedge_follow_result result;
    struct kedge_buf evidence;
    kedge_buf_init(&evidence, KEDGE_FORK_EVIDENCE_MAX);
    int err = kedge_follow_log(&follow, &result, &evidence, d);
    if (err == KEDGE_E_FORK || err == KEDGE_E_SHORTER) {
        keep_evidence(f, &evidence, err, d);
        kedgei_follow_show(f, log);
    }
    kedge_buf_deinit(&evidence);
    *ret_grew = result.after > result.before;
    return err;
}

/* Nothing new, and what is not final for want of cosignatures has ours. */
static bool is_said(const struct kedgei_watch *f, bool is_main, uint64_t size)
{
    const struct kedgei_said *said = is_main ? &f->main_said : &f->own_said;
    bool settled = !is_main || f->final_size >= size;
    return said->when_ns != 0 && said->size == size && settled
           && kedge_os_now_ns() - said->when_ns < AGAIN_S * UINT64_C(1000000000);
}

/* Follows and cosigns; again while the coordinator is about to propose something newer, or hears another
 * cosignature of this witness. A coordinator asks for cosignatures of what it has now, and that may change
 * while a witness works: STATE and BUSY mean "look again", a few times, with a pause. */
static int watch_log(struct kedgei_watch *f, struct kedge_state_log *log, const struct kedge_vkey *vkey,
                     bool *ret_grew, struct kedge_diag *d)
{
    int err = KEDGE_OK;
    *ret_grew = false;
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        bool grew;
        err = follow_log(f, log, vkey, &grew, d);
        *ret_grew = *ret_grew || grew;
        uint64_t size = kedge_ledger_size(log->ledger);
        if (err || is_said(f, log == &f->main, size)) {
            break;
        }
        err = kedgei_follow_cosign(f, log, d);
        if (!err) {
            *(log == &f->main ? &f->main_said : &f->own_said) = (struct kedgei_said){size, kedge_os_now_ns()};
        }
        if ((err != KEDGE_E_STATE && err != KEDGE_E_BUSY) || i + 1 == TRIES_MAX
            || kedge_cli_pause(COSIGN_PAUSE_MS)) {
            break;
        }
    }
    return err;
}

/* The checkpoint that the quorum has cosigned, for the auditors of this copy; they judge it. */
static int take_final(struct kedgei_watch *f, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    KEDGE_TRY(kedgei_follow_resource(f, "main/cosigned", &note, d));
    KEDGE_TRY(kedge_state_path(path, d, f->dir, "main/cosigned.note"));
    KEDGE_TRY(note.len > 0 ? kedge_file_write(path, kedge_buf_view(&note), 0600, d) : KEDGE_OK);
    f->final_taken = f->final_size;
    return KEDGE_OK;
}

/* ---- opening ---- */

/* The salt hides the tenant's name in the main chain. Without it in the copy, nobody could tell the tenant's
 * own entries there from those of others. */
static int take_salt(struct kedgei_watch *f, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    json_auto_t *o = NULL;
    char path[KEDGE_ID_MAX + 16];
    snprintf(path, sizeof path, "%s/tenant.json", f->w.tenant.s);
    kedge_buf_init(&text, TENANT_FILE_MAX);
    KEDGE_TRY(kedgei_follow_resource(f, path, &text, d));
    KEDGE_TRY(kedgei_json_load(kedge_buf_view(&text), TENANT_FILE_MAX, path, &o, d));
    if (kedge_hex_decode(kedge_view_str(kedge_cli_text(o, "salt")), f->own.salt, KEDGE_SALT_LEN)
        != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells no salt of tenant %s", f->w.tenant.s);
    }
    return kedge_state_copy_tenant(f->dir, &f->w.tenant, f->own.salt, d);
}

/* Opening fills the struct anew, so the salt that was just fetched is put back into it. */
static int open_copies(struct kedgei_watch *f, struct kedge_diag *d)
{
    uint8_t salt[KEDGE_SALT_LEN];
    KEDGE_TRY(take_salt(f, d));
    memcpy(salt, f->own.salt, sizeof salt);
    KEDGE_TRY(kedge_state_copy_open(f->dir, NULL, &f->w.main_log.key, &f->main, d));
    KEDGE_TRY(kedge_state_copy_open(f->dir, &f->w.tenant, &f->w.log.key, &f->own, d));
    memcpy(f->own.salt, salt, sizeof salt);
    return KEDGE_OK;
}

static int open_client(struct kedgei_watch *f, struct kedge_diag *d)
{
    struct kedge_net_client_options options = {.url = f->w.address,
                                               .key = &f->w.tls,
                                               .server_key = &f->w.server_key,
                                               .connect_ms = KEDGEI_FOLLOW_CALL_MS / 3};
    return kedge_net_client_open(&options, &f->client, d);
}

static void watch_close(struct kedgei_watch *f)
{
    kedge_follow_erased_deinit(&f->erased);
    kedge_net_client_close(f->client);
    kedge_state_log_close(&f->main);
    kedge_state_log_close(&f->own);
    kedge_witness_folder_wipe(&f->w);
    kedge_buf_deinit(&f->frame);
}

/* ---- the loop ---- */

static void say_step(const struct kedgei_watch *f, const struct kedgei_blob_count *blobs)
{
    kedge_cli_say(f->c, "main %llu  %s %llu  final %llu",
                  (unsigned long long)kedge_ledger_size(f->main.ledger), f->w.tenant.s,
                  (unsigned long long)kedge_ledger_size(f->own.ledger), (unsigned long long)f->final_size);
    if (blobs->count > 0) {
        kedge_cli_say(f->c, "  %llu blobs, %llu bytes", (unsigned long long)blobs->count,
                      (unsigned long long)blobs->bytes);
    }
    kedge_cli_say(f->c, "\n");
}

/* The main chain first: what it says of the tenant's ledger is in that ledger by then. */
static int step(struct kedgei_watch *f, struct kedgei_blob_count *blobs, bool *ret_grew, struct kedge_diag *d)
{
    bool main_grew = false, own_grew = false;
    KEDGE_TRY(f->main.ledger ? KEDGE_OK : open_copies(f, d));
    int err = watch_log(f, &f->main, &f->w.main_log, &main_grew, d);
    if (!err) {
        err = watch_log(f, &f->own, &f->w.log, &own_grew, d);
    }
    if (!err && f->final_taken != f->final_size) {
        err = take_final(f, d);
    }
    if (!err) {
        err = kedgei_follow_take_blobs(f, blobs, d);
    }
    *ret_grew = main_grew || own_grew || blobs->count > 0;
    return err;
}

/* What another try may mend. */
static bool is_passing(int err)
{
    return kedge_err_class(err) == KEDGE_CLASS_RETRY || err == KEDGE_E_STATE || err == KEDGE_E_NOT_ENROLLED
           || kedge_err_class(err) == KEDGE_CLASS_FULL;
}

/* A witness runs for months. What may pass (no network, a full disk, a coordinator that starts) is said once
 * and tried again; what convicts the log, or is wrong in this folder, ends the command, for a person has to
 * look. */
static int watch_on(struct kedgei_watch *f, uint64_t interval_s, bool once, struct kedge_diag *d)
{
    char last[KEDGE_DIAG_TEXT_MAX] = "";
    for (;;) {
        struct kedgei_blob_count blobs = {.count = 0};
        bool grew = false;
        *d = (struct kedge_diag){.text = ""};
        int err = step(f, &blobs, &grew, d);
        if (err && (once || !is_passing(err))) {
            return err;
        }
        if (err && !kedge_cli_interrupted() && strcmp(last, d->text) != 0) {
            kedge_cli_say(f->c, "%s; trying again\n", d->text);
        } else if (!err && (grew || once || last[0])) {
            say_step(f, &blobs);
        }
        snprintf(last, sizeof last, "%s", err ? d->text : "");
        if (once || kedge_cli_interrupted() || kedge_cli_pause((uint32_t)(interval_s * 1000))) {
            return KEDGE_OK;
        }
    }
}

static bool take_blobs_option(struct kedge_cli *c, enum kedgei_blobs *ret)
{
    const char *word = kedge_cli_option(c, "blobs", "lists");
    *ret = strcmp(word, "none") == 0  ? KEDGEI_BLOBS_NONE
           : strcmp(word, "all") == 0 ? KEDGEI_BLOBS_ALL
                                      : KEDGEI_BLOBS_LISTS;
    if (*ret == KEDGEI_BLOBS_LISTS && strcmp(word, "lists") != 0) {
        (void)kedge_cli_usage(c, "--blobs %s: expected none, lists or all", kedge_cli_word(word).s);
        return false;
    }
    return true;
}

/* The connection is opened once and kept, since a witness asks every second. Everything is closed and wiped
 * by watch_close(), however far it came. */
int kedge_cmd_ledger_follow(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedgei_watch f = {.c = c};
    uint64_t interval;
    bool once = kedge_cli_flag(c, "once");
    if (!kedge_cli_number(c, "interval", 1, INTERVAL_MAX_S, 1, &interval)
        || !take_blobs_option(c, &f.blobs)) {
        return 2;
    }
    f.dir = kedge_cli_argument(c, 0);
    if (!f.dir) {
        return kedge_cli_usage(c, "DIR is missing: the witness's folder (kedge witness init makes it)");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    kedge_buf_init(&f.frame, KEDGE_FRAME_MAX);
    int err = kedge_witness_folder_read(f.dir, &f.w, &d);
    kedge_follow_erased_init(&f.erased, &f.w.tenant, &f.w.admin_key);
    if (!err) {
        err = open_client(&f, &d);
    }
    if (!err) {
        kedge_cli_catch_interrupt();
        err = watch_on(&f, interval, once, &d);
    }
    json_t *o = err ? NULL
                    : json_pack("{s:s,s:I,s:I,s:I}", "tenant", f.w.tenant.s, "main_size",
                                (json_int_t)(f.main.ledger ? kedge_ledger_size(f.main.ledger) : 0), "size",
                                (json_int_t)(f.own.ledger ? kedge_ledger_size(f.own.ledger) : 0),
                                "final_size", (json_int_t)f.final_size);
    watch_close(&f);
    return err ? kedge_cli_fail(c, err, &d) : kedge_cli_ok(c, o);
}
