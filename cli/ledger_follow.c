/* kedge ledger follow: a witness at work. It copies the main chain's hashes and its tenant's ledger, checks
 * that both only ever grow, cosigns what it has seen, and keeps evidence when a log shows two histories.
 * Everything that it stores is proven first; what is in the way of a step is said, and the step is made
 * again. */
#include "chain/follow/follow.h"

#include <stdio.h>
#include <string.h>

#include "chain/checkpoint.h"
#include "chain/cosignature.h"
#include "chain/follow/erased.h"
#include "chain/fork_evidence.h"
#include "chain/json.h"
#include "chain/state/copy.h"
#include "cli/cli.h"
#include "cli/local.h"
#include "cli/witness_folder.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/wire/messages.h"

enum {
    CALL_MS = 30000,
    INTERVAL_MAX_S = 86400,
    PIECE = 1024 * 1024,
    TENANT_FILE_MAX = 4096,
    AGAIN_S = 60,  /* a cosignature says that nothing else was seen until its time */
    TRIES_MAX = 3, /* cosigning while the coordinator changes what it proposes */
};

enum blobs { BLOBS_NONE, BLOBS_LISTS, BLOBS_ALL };

/* What was cosigned last. */
struct said {
    uint64_t size, when_ns; /* when_ns 0: nothing yet */
};

struct watch {
    struct kedge_cli *c;
    const char *dir;
    struct kedge_witness_folder w;
    struct kedge_net_client *client;
    struct kedge_state_log main, own;
    struct kedge_buf frame;
    enum blobs blobs;
    uint64_t main_blobs_from, own_blobs_from; /* entries whose blobs are here */
    uint64_t final_size;                      /* of the main chain, as the coordinator tells */
    uint64_t final_taken;                     /* of that, what this folder has */
    struct said main_said, own_said;
};

/* ---- calls ---- */

/* One request; *ret borrows from the reply. An ERROR message is the coordinator's error. */
static int call(struct watch *f, const struct kedge_msg *ask, struct kedge_net_reply *reply,
                struct kedge_msg *ret, struct kedge_diag *d)
{
    kedge_buf_clear(&f->frame);
    int err = kedge_msg_encode(ask, &f->frame);
    err = err ? err : kedge_net_call(f->client, kedge_buf_view(&f->frame), CALL_MS, reply);
    err = err ? err : kedge_msg_decode(reply->view, ret);
    if (err) {
        return kedge_diag_set(d, err, "coordinator at %s: %s", f->w.address, kedge_strerror(err));
    }
    if (ret->type == KEDGE_MSG_ERROR) {
        f->c->told = true;
        return kedge_diag_set(d, kedge_msg_error_code(ret), "%.*s", (int)ret->u.error.text.len,
                              (const char *)ret->u.error.text.ptr);
    }
    return KEDGE_OK;
}

/* A piece of a resource; *ret_total is how much there is of it. */
static int read_piece(struct watch *f, const char *path, uint64_t offset, struct kedge_net_reply *reply,
                      struct kedge_view *ret, uint64_t *ret_total, struct kedge_diag *d)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_LOG_READ}, got;
    msg.u.log_read =
        (struct kedge_msg_log_read){.path = kedge_view_str(path), .offset = offset, .max = PIECE};
    int err = call(f, &msg, reply, &got, d);
    if (err) {
        return err;
    }
    const struct kedge_msg_chunk *chunk = &got.u.chunk;
    if (got.type != KEDGE_MSG_CHUNK || chunk->offset != offset || chunk->data.len > PIECE
        || chunk->total < offset || chunk->data.len > chunk->total - offset
        || (chunk->data.len == 0 && chunk->total > offset)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator gave an answer that is none");
    }
    *ret = chunk->data;
    *ret_total = chunk->total;
    return KEDGE_OK;
}

static int read_resource(struct watch *f, const char *path, struct kedge_buf *ret, struct kedge_diag *d)
{
    uint64_t offset = 0, total = 0;
    do {
        struct kedge_net_reply reply = {.impl = NULL};
        struct kedge_view piece;
        int err = read_piece(f, path, offset, &reply, &piece, &total, d);
        if (!err) {
            kedge_buf_put(ret, piece.ptr, piece.len);
            offset += piece.len;
            err = ret->err ? kedge_diag_set(d, ret->err, "%s: more than there can be", path) : KEDGE_OK;
        }
        kedge_net_reply_release(&reply);
        if (err) {
            return err;
        }
    } while (offset < total);
    return KEDGE_OK;
}

struct source {
    struct watch *f;
    const char *log; /* "main" or the tenant */
};

static int fetch(void *arg, const char *path, struct kedge_buf *ret, struct kedge_diag *d)
{
    struct source *s = arg;
    char full[KEDGE_ID_MAX + 128];
    snprintf(full, sizeof full, "%s/%s", s->log, path);
    return read_resource(s->f, full, ret, d);
}

/* ---- evidence ---- */

/* Keeps what convicts a log, under a name of its own; told even when nothing could be kept. */
static void keep_evidence(const struct watch *f, const struct kedge_buf *evidence, int err,
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

/* ---- cosigning ---- */

static int save_cosigned(const struct watch *f, bool is_main, struct kedge_view note, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, d, f->dir, "cosigned/%s.note", is_main ? "main" : "own");
    return err ? err : kedge_file_write(path, note, 0600, d);
}

static int send_note(struct watch *f, struct kedge_view note, struct kedge_diag *d)
{
    struct kedge_net_reply reply = {.impl = NULL};
    struct kedge_msg msg = {.type = KEDGE_MSG_COSIGN}, got;
    msg.u.cosign.note = note;
    int err = call(f, &msg, &reply, &got, d);
    if (!err && got.type != KEDGE_MSG_COSIGN_OK) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator gave an answer that is none");
    }
    if (!err) {
        f->final_size = got.u.cosign_ok.final_size;
    }
    kedge_net_reply_release(&reply);
    return err;
}

/* Cosigns the copy's newest checkpoint, which is the largest tree of that log that was ever seen here. */
static int cosign(struct watch *f, const struct kedge_state_log *log, struct kedge_diag *d)
{
    struct kedge_buf note, line, cosigned;
    struct kedge_note *parsed = kedge_mem_new(1, sizeof *parsed);
    uint64_t size;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&line, KEDGE_COSIGNATURE_LINE_MAX);
    kedge_buf_init(&cosigned, KEDGE_NOTE_MAX);
    int err = parsed ? kedge_ledger_checkpoint(log->ledger, &note, &size) : KEDGE_E_NOMEM;
    err = err ? err : kedge_note_parse(kedge_buf_view(&note), parsed);
    if (!err && size != kedge_ledger_size(log->ledger)) {
        err = KEDGE_E_STATE; /* on its way to a later checkpoint */
    }
    err = err ? err
              : kedge_cosignature_make(parsed->text, kedge_view_str(f->w.name), &f->w.cosign,
                                       kedge_os_unix_ms() / 1000, &line);
    err = err ? err : kedge_note_add_line(kedge_buf_view(&note), kedge_buf_view(&line), &cosigned);
    if (err) {
        (void)kedge_diag_set(d, err, "log %s: cannot cosign: %s", log->origin, kedge_strerror(err));
    }
    /* Kept before it is given away: a witness knows what it has said. */
    err = err ? err : save_cosigned(f, log == &f->main, kedge_buf_view(&cosigned), d);
    err = err ? err : send_note(f, kedge_buf_view(&cosigned), d);
    kedge_mem_free(parsed);
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&line);
    kedge_buf_deinit(&cosigned);
    return err;
}

/* ---- one log ---- */

/* A coordinator that shows less, or other, than it signed is told what it signed: it stops then. */
static void show_it(struct watch *f, const struct kedge_state_log *log)
{
    struct kedge_buf note;
    struct kedge_diag ignored;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    if (kedge_ledger_checkpoint(log->ledger, &note, NULL) == KEDGE_OK) {
        (void)!send_note(f, kedge_buf_view(&note), &ignored);
    }
    kedge_buf_deinit(&note);
}

static int follow_log(struct watch *f, struct kedge_state_log *log, const struct kedge_vkey *vkey,
                      bool *ret_grew, struct kedge_diag *d)
{
    struct source source = {f, log == &f->main ? "main" : f->w.tenant.s};
    struct kedge_follow follow = {.source = {fetch, &source}, .copy = log->ledger, .vkey = *vkey};
    struct kedge_follow_result result;
    struct kedge_buf evidence;
    kedge_buf_init(&evidence, KEDGE_FORK_EVIDENCE_MAX);
    int err = kedge_follow_log(&follow, &result, &evidence, d);
    if (err == KEDGE_E_FORK || err == KEDGE_E_SHORTER) {
        keep_evidence(f, &evidence, err, d);
        show_it(f, log);
    }
    kedge_buf_deinit(&evidence);
    *ret_grew = result.after > result.before;
    return err;
}

/* Nothing new, and what is not final for want of cosignatures has ours. */
static bool is_said(const struct watch *f, bool is_main, uint64_t size)
{
    const struct said *said = is_main ? &f->main_said : &f->own_said;
    bool settled = !is_main || f->final_size >= size;
    return said->when_ns != 0 && said->size == size && settled
           && kedge_os_now_ns() - said->when_ns < AGAIN_S * UINT64_C(1000000000);
}

/* Follows and cosigns; again while the coordinator is about to propose something newer. */
static int watch_log(struct watch *f, struct kedge_state_log *log, const struct kedge_vkey *vkey,
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
        err = cosign(f, log, d);
        if (!err) {
            *(log == &f->main ? &f->main_said : &f->own_said) = (struct said){size, kedge_os_now_ns()};
        }
        if (err != KEDGE_E_STATE) {
            break;
        }
    }
    return err;
}

/* The checkpoint that the quorum has cosigned, for whoever audits this copy; they judge it. */
static int take_final(struct watch *f, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    int err = read_resource(f, "main/cosigned", &note, d);
    err = err ? err : kedge_state_path(path, d, f->dir, "main/cosigned.note");
    if (!err && note.len > 0) {
        err = kedge_file_write(path, kedge_buf_view(&note), 0600, d);
    }
    f->final_taken = err ? f->final_taken : f->final_size;
    kedge_buf_deinit(&note);
    return err;
}

/* ---- blobs ---- */

struct blob_walk {
    struct watch *f;
    struct kedge_diag *d;
    uint64_t count, bytes;
    struct kedge_follow_erased erased; /* a replica does not keep these either */
};

/* Fetches a blob, going on where an earlier try was cut off. */
static int fetch_blob(struct watch *f, struct kedge_blobs *blobs, const char *path,
                      const struct kedge_hash *digest, uint64_t *ret_size, struct kedge_diag *d)
{
    struct kedge_net_reply reply = {.impl = NULL};
    struct kedge_upload *u = NULL;
    struct kedge_view piece;
    uint64_t total, again, have = 0;
    int err = read_piece(f, path, 0, &reply, &piece, &total, d);
    err = err ? err : kedge_upload_open(blobs, &f->w.witness, digest, total, &u, &have, d);
    bool is_read = have == 0; /* the first piece is at hand */
    while (!err && have < total) {
        if (!is_read) {
            kedge_net_reply_release(&reply);
            err = read_piece(f, path, have, &reply, &piece, &again, d);
        }
        err = err ? err : kedge_upload_write(u, have, piece, d);
        have += err ? 0 : piece.len;
        is_read = false;
    }
    kedge_net_reply_release(&reply);
    err = err ? err : kedge_upload_finish(u, d);
    err = err ? err : kedge_upload_commit(u, d);
    if (err) {
        kedge_upload_close(u);
    } else {
        *ret_size = total;
    }
    return err;
}

static int take_blob(void *arg, const struct kedge_blob_wanted *wanted)
{
    struct blob_walk *w = arg;
    struct watch *f = w->f;
    struct kedge_blobs *blobs = wanted->of_tenant ? f->own.blobs : f->main.blobs;
    char path[KEDGE_ID_MAX + KEDGE_HASH_HEX_LEN + 16], hex[KEDGE_HASH_HEX_LEN + 1];
    uint64_t size;
    if (f->blobs == BLOBS_LISTS && wanted->want != KEDGE_WANT_LIST) {
        return KEDGE_OK;
    }
    if (kedge_follow_is_erased(&w->erased, wanted)
        || kedge_blobs_find(blobs, &wanted->digest, NULL) == KEDGE_OK) {
        return KEDGE_OK;
    }
    kedge_hash_hex(&wanted->digest, hex);
    snprintf(path, sizeof path, "%s/blob/%s", wanted->of_tenant ? f->w.tenant.s : "main", hex);
    int err = fetch_blob(f, blobs, path, &wanted->digest, &size, w->d);
    if (!err) {
        w->count++;
        w->bytes += size;
    }
    return err;
}

static int take_blobs(struct watch *f, struct blob_walk *w, struct kedge_diag *d)
{
    struct kedge_hash salted;
    *w = (struct blob_walk){.f = f, .d = d};
    if (f->blobs == BLOBS_NONE) {
        return KEDGE_OK;
    }
    kedge_salted_tenant_id(f->own.salt, &f->w.tenant, &salted);
    uint64_t main_size = kedge_ledger_size(f->main.ledger), own_size = kedge_ledger_size(f->own.ledger);
    int err = kedge_follow_blobs(f->main.ledger, f->main_blobs_from, &salted, take_blob, w);
    f->main_blobs_from = err ? f->main_blobs_from : main_size;
    err = err ? err : kedge_follow_erase(f->own.ledger, f->own_blobs_from, f->own.blobs, &w->erased, d);
    err = err ? err : kedge_follow_blobs(f->own.ledger, f->own_blobs_from, NULL, take_blob, w);
    kedge_mem_free(w->erased.digests);
    w->erased.digests = NULL;
    f->own_blobs_from = err ? f->own_blobs_from : own_size;
    return err;
}

/* ---- opening ---- */

static int take_salt(struct watch *f, struct kedge_diag *d)
{
    struct kedge_buf text;
    json_t *o = NULL;
    char path[KEDGE_ID_MAX + 16];
    snprintf(path, sizeof path, "%s/tenant.json", f->w.tenant.s);
    kedge_buf_init(&text, TENANT_FILE_MAX);
    int err = read_resource(f, path, &text, d);
    err = err ? err : kedgei_json_load(kedge_buf_view(&text), TENANT_FILE_MAX, path, &o, d);
    if (!err
        && kedge_hex_decode(kedge_view_str(kedge_cli_text(o, "salt")), f->own.salt, KEDGE_SALT_LEN)
               != KEDGE_OK) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells no salt of tenant %s", f->w.tenant.s);
    }
    json_decref(o);
    kedge_buf_deinit(&text);
    return err ? err : kedge_state_copy_tenant(f->dir, &f->w.tenant, f->own.salt, d);
}

static int open_copies(struct watch *f, struct kedge_diag *d)
{
    uint8_t salt[KEDGE_SALT_LEN];
    int err = take_salt(f, d);
    memcpy(salt, f->own.salt, sizeof salt);
    err = err ? err : kedge_state_copy_open(f->dir, NULL, &f->w.main_log.key, &f->main, d);
    err = err ? err : kedge_state_copy_open(f->dir, &f->w.tenant, &f->w.log.key, &f->own, d);
    memcpy(f->own.salt, salt, sizeof salt);
    return err;
}

static int open_client(struct watch *f, struct kedge_diag *d)
{
    struct kedge_net_client_options options = {
        .url = f->w.address, .key = &f->w.tls, .server_key = &f->w.server_key, .connect_ms = CALL_MS / 3};
    return kedge_net_client_open(&options, &f->client, d);
}

static void watch_close(struct watch *f)
{
    kedge_net_client_close(f->client);
    kedge_state_log_close(&f->main);
    kedge_state_log_close(&f->own);
    kedge_witness_folder_wipe(&f->w);
    kedge_buf_deinit(&f->frame);
}

/* ---- the loop ---- */

static void say_step(const struct watch *f, const struct blob_walk *blobs)
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
static int step(struct watch *f, struct blob_walk *blobs, bool *ret_grew, struct kedge_diag *d)
{
    bool main_grew = false, own_grew = false;
    int err = f->main.ledger ? KEDGE_OK : open_copies(f, d);
    err = err ? err : watch_log(f, &f->main, &f->w.main_log, &main_grew, d);
    err = err ? err : watch_log(f, &f->own, &f->w.log, &own_grew, d);
    err = err || f->final_taken == f->final_size ? err : take_final(f, d);
    err = err ? err : take_blobs(f, blobs, d);
    *ret_grew = main_grew || own_grew || blobs->count > 0;
    return err;
}

/* What another try may mend. */
static bool is_passing(int err)
{
    return kedge_err_class(err) == KEDGE_CLASS_RETRY || err == KEDGE_E_STATE || err == KEDGE_E_NOT_ENROLLED
           || kedge_err_class(err) == KEDGE_CLASS_FULL;
}

static int watch_on(struct watch *f, uint64_t interval_s, bool once, struct kedge_diag *d)
{
    char last[KEDGE_DIAG_TEXT_MAX] = "";
    for (;;) {
        struct blob_walk blobs = {.count = 0};
        bool grew = false;
        *d = (struct kedge_diag){.text = ""};
        int err = step(f, &blobs, &grew, d);
        if (err && (once || !is_passing(err))) {
            return err;
        }
        if (err && strcmp(last, d->text) != 0) {
            kedge_cli_say(f->c, "%s; trying again\n", d->text);
        } else if (!err && (grew || once || last[0])) {
            say_step(f, &blobs);
        }
        snprintf(last, sizeof last, "%s", err ? d->text : "");
        if (once || kedge_cli_pause((uint32_t)(interval_s * 1000))) {
            return KEDGE_OK;
        }
    }
}

static bool take_blobs_option(struct kedge_cli *c, enum blobs *ret)
{
    const char *word = kedge_cli_option(c, "blobs", "lists");
    *ret = strcmp(word, "none") == 0 ? BLOBS_NONE : strcmp(word, "all") == 0 ? BLOBS_ALL : BLOBS_LISTS;
    if (*ret == BLOBS_LISTS && strcmp(word, "lists") != 0) {
        (void)kedge_cli_usage(c, "--blobs %s: expected none, lists or all", kedge_cli_word(word).s);
        return false;
    }
    return true;
}

int kedge_cmd_ledger_follow(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct watch f = {.c = c};
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
    err = err ? err : open_client(&f, &d);
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
