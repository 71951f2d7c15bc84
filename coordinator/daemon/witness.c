#include "coordinator/daemon/witness.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/cosignature.h"
#include "chain/witness_quorum.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/log_read.h"
#include "coordinator/daemon/loop.h"

struct witness {
    uint32_t tenant;
    struct kedge_id id;
    struct kedge_public_key tls_key;
    struct kedge_vkey vkey;
    bool active;
    bool heard; /* it has cosigned the main chain since the start */
    uint64_t last_seen_ms;
    uint64_t main_size, own_size; /* of what it cosigned last */
};

/* What witnesses are asked to cosign of one log, with the cosignatures that came so far. */
struct proposal {
    struct kedge_buf note;
    uint64_t size, since_ns;
};

struct kedge_witnesses {
    struct witness rows[KEDGE_HOST_WITNESSES_MAX];
    uint32_t count;
    struct kedge_witness_policy *policy; /* NULL: none */
    bool has_quorum;
    struct proposal main, tenants[KEDGE_TENANTS_MAX];
    struct kedge_buf final_note; /* main chain's, cosigned by the quorum */
    uint64_t final_size;
    bool settled;
    uint64_t started_ns;
};

/* ---- the table ---- */

static bool is_main(uint32_t log)
{
    return log == KEDGE_COORD_NONE;
}

static int read_policy(struct kedge_host *h, bool strict, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    struct kedge_quorum_safety safety;
    struct kedge_witnesses *w = h->witnesses;
    int err = kedge_state_path(path, d, h->state, "witness-policy.txt");
    if (err || !kedge_file_exists(path)) {
        return err;
    }
    kedge_buf_init(&text, KEDGE_WITNESS_POLICY_MAX);
    err = kedge_file_read(path, &text, d);
    if (!err) {
        err = kedge_witness_policy_parse(kedge_buf_view(&text), &w->policy, d);
        err = err ? kedge_diag_wrap(d, err, "%s", path) : KEDGE_OK;
    }
    kedge_buf_deinit(&text);
    if (err) {
        return err;
    }
    w->has_quorum = w->policy->quorum.kind != KEDGE_QUORUM_NONE;
    err = kedge_witness_policy_require_safe(w->policy, strict, &safety, d);
    if (err) {
        return kedge_diag_wrap(d, err, "%s", path);
    }
    if (w->has_quorum && !safety.is_safe) {
        kedge_log(KEDGE_LOG_WARN, "witness policy", "%s", safety.text);
    }
    return KEDGE_OK;
}

/* That the quorum holds for the note over our main chain. */
static int evaluate(const struct kedge_host *h, struct kedge_view note, uint64_t *ret_size,
                    struct kedge_diag *d)
{
    struct kedge_vkey log;
    struct kedge_witness_evaluation *e = kedge_mem_new(1, sizeof *e);
    struct kedge_witness_demand demand = {
        .origin = kedge_view_str(h->main.origin), .logs = &log, .log_count = 1};
    int err =
        e ? kedge_vkey_make(demand.origin, KEDGE_KEY_ED25519, &h->main.key.public, &log) : KEDGE_E_NOMEM;
    err = err ? err : kedge_witness_policy_evaluate(h->witnesses->policy, note, &demand, e, d);
    if (!err) {
        *ret_size = e->checkpoint.size;
    }
    kedge_mem_free(e);
    return err;
}

/* What was final before the restart is so still; a file that says nothing usable is no reason not to start.
 */
static int read_final(struct kedge_host *h, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_diag why = {.text = ""};
    struct kedge_witnesses *w = h->witnesses;
    int err = kedge_state_path(path, d, h->state, "main/cosigned.note");
    if (err || !w->has_quorum || !kedge_file_exists(path)) {
        return err;
    }
    err = kedge_file_read(path, &w->final_note, &why);
    err = err ? err : evaluate(h, kedge_buf_view(&w->final_note), &w->final_size, &why);
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "cosigned checkpoint",
                  "%s does not count: %s; witnesses will be asked again", path, why.text);
        kedge_buf_clear(&w->final_note);
        w->final_size = 0;
    }
    return KEDGE_OK;
}

int kedge_host_witnesses_open(struct kedge_host *h, bool strict, struct kedge_diag *d)
{
    struct kedge_witnesses *w = kedge_mem_new(1, sizeof *w);
    h->witnesses = w;
    if (!w) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory at start");
    }
    kedge_buf_init(&w->main.note, KEDGE_NOTE_MAX);
    kedge_buf_init(&w->final_note, KEDGE_NOTE_MAX);
    for (uint32_t i = 0; i < KEDGE_TENANTS_MAX; i++) {
        kedge_buf_init(&w->tenants[i].note, KEDGE_NOTE_MAX);
    }
    int err = read_policy(h, strict, d);
    w->settled = !w->has_quorum;
    w->started_ns = kedge_os_now_ns();
    return err ? err : read_final(h, d);
}

bool kedge_host_witnesses_settled(struct kedge_host *h)
{
    struct kedge_witnesses *w = h->witnesses;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        missing += w->rows[i].active && !w->rows[i].heard;
    }
    bool waited = kedge_os_now_ns() - w->started_ns >= (uint64_t)KEDGE_SETTLE_MS * 1000000u;
    if (!w->settled && missing > 0 && waited) {
        kedge_log(KEDGE_LOG_WARN, "witnesses",
                  "%" PRIu32 " of them were not heard since the start; beginning without their word",
                  missing);
    }
    w->settled = w->settled || missing == 0 || waited;
    return w->settled;
}

void kedge_host_witnesses_close(struct kedge_host *h)
{
    struct kedge_witnesses *w = h->witnesses;
    if (!w) {
        return;
    }
    kedge_witness_policy_free(w->policy);
    kedge_buf_deinit(&w->main.note);
    kedge_buf_deinit(&w->final_note);
    for (uint32_t i = 0; i < KEDGE_TENANTS_MAX; i++) {
        kedge_buf_deinit(&w->tenants[i].note);
    }
    kedge_mem_free(w);
    h->witnesses = NULL;
}

uint32_t kedge_host_witness_find(const struct kedge_host *h, uint32_t tenant, const struct kedge_id *id)
{
    for (uint32_t i = 0; i < h->witnesses->count; i++) {
        const struct witness *w = &h->witnesses->rows[i];
        if (w->tenant == tenant && kedge_id_eq(&w->id, id)) {
            return i;
        }
    }
    return KEDGE_COORD_NONE;
}

uint32_t kedge_host_witness_by_key(const struct kedge_host *h, const struct kedge_public_key *tls_key)
{
    for (uint32_t i = 0; i < h->witnesses->count; i++) {
        if (kedge_public_key_eq(&h->witnesses->rows[i].tls_key, tls_key)) {
            return i;
        }
    }
    return KEDGE_COORD_NONE;
}

const struct kedge_public_key *kedge_host_witness_tls_key(const struct kedge_host *h, uint32_t witness)
{
    return &h->witnesses->rows[witness].tls_key;
}

bool kedge_host_witness_has_key(const struct kedge_host *h, uint32_t witness,
                                const struct kedge_public_key *cosign_key)
{
    return kedge_public_key_eq(&h->witnesses->rows[witness].vkey.key, cosign_key);
}

bool kedge_host_witness_is_active(const struct kedge_host *h, uint32_t witness)
{
    return h->witnesses->rows[witness].active;
}

int kedge_host_witness_add(struct kedge_host *h, uint32_t tenant, const struct kedge_st_witness_enrolled *st)
{
    struct kedge_witnesses *w = h->witnesses;
    struct witness row = {.tenant = tenant, .id = st->witness, .tls_key = st->tls_key, .active = true};
    if (w->count == KEDGE_HOST_WITNESSES_MAX) {
        return KEDGE_E_FULL;
    }
    bool is_used = kedge_host_witness_by_key(h, &st->tls_key) != KEDGE_COORD_NONE
                   || kedge_host_site_by_key(h, &st->tls_key) != KEDGE_COORD_NONE
                   || kedge_host_witness_find(h, tenant, &st->witness) != KEDGE_COORD_NONE;
    int err = is_used ? KEDGE_E_EXISTS
                      : kedge_vkey_make(kedge_view_str(st->name), KEDGE_KEY_COSIGNATURE, &st->cosign_key,
                                        &row.vkey);
    if (!err) {
        w->rows[w->count++] = row;
    }
    return err;
}

void kedge_host_witness_revoke(struct kedge_host *h, uint32_t witness)
{
    h->witnesses->rows[witness].active = false;
}

/* ---- proposals ---- */

static struct kedge_ledger *ledger_of(const struct kedge_host *h, uint32_t log)
{
    return is_main(log) ? h->main.ledger : h->tenants[log].log.ledger;
}

static struct proposal *proposal_of(struct kedge_host *h, uint32_t log)
{
    return is_main(log) ? &h->witnesses->main : &h->witnesses->tenants[log];
}

/* The proposal of a log as of now; an old one gives way to the newest checkpoint. */
static struct proposal *propose(struct kedge_host *h, uint32_t log)
{
    struct proposal *p = proposal_of(h, log);
    uint64_t now = kedge_os_now_ns(), size;
    bool awaited = is_main(log) && h->witnesses->has_quorum && p->size > h->witnesses->final_size;
    if (p->note.len > 0 && awaited && now - p->since_ns < (uint64_t)KEDGE_PROPOSAL_HOLD_MS * 1000000u) {
        return p;
    }
    if (kedge_ledger_checkpoint(ledger_of(h, log), NULL, &size) == KEDGE_OK
        && (p->note.len == 0 || size > p->size)) {
        kedge_buf_clear(&p->note);
        if (kedge_ledger_checkpoint(ledger_of(h, log), &p->note, &p->size) == KEDGE_OK) {
            p->since_ns = now;
        }
    }
    return p;
}

/* ---- cosignatures ---- */

struct keep_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    char path[KEDGE_PATH_MAX];
    struct kedge_buf note;
    bool is_main;
    uint64_t size; /* final with it, 0: not */
    struct kedge_diag diag;
    int err;
};

static void keep_run(struct kedge_host *h, struct kedge_work *work)
{
    struct keep_work *k = (struct keep_work *)work;
    (void)h;
    k->err = kedge_file_write(k->path, kedge_buf_view(&k->note), 0600, &k->diag);
}

static void keep_done(struct kedge_host *h, struct kedge_item *item)
{
    struct keep_work *k = (struct keep_work *)item;
    struct kedge_witnesses *w = h->witnesses;
    if (k->err) {
        kedge_log(KEDGE_LOG_ERROR, "cosigned checkpoint", "%s", k->diag.text);
        kedge_host_reply_error(k->req, k->err, 1000, "the cosignature could not be stored; send it again");
    } else {
        if (k->is_main && k->size > w->final_size) {
            kedge_buf_clear(&w->final_note);
            kedge_buf_put(&w->final_note, k->note.ptr, k->note.len);
            w->final_size = k->size;
            kedge_log(KEDGE_LOG_INFO, "final", "the first %" PRIu64 " entries of the main chain", k->size);
        }
        struct kedge_msg msg = {.type = KEDGE_MSG_COSIGN_OK};
        msg.u.cosign_ok.final_size = kedge_host_final_size(h);
        kedge_host_reply(k->req, &msg);
    }
    kedge_buf_deinit(&k->note);
    kedge_mem_free(k);
}

/* Stores what the log's witnesses cosigned; the answer comes when it is durable. */
static void keep(struct kedge_host *h, struct kedge_net_request *req, uint32_t log, const struct proposal *p,
                 bool final)
{
    struct kedge_diag d = {.text = ""};
    struct keep_work *k = kedge_mem_new(1, sizeof *k);
    if (!k) {
        kedge_host_reply_error(req, KEDGE_E_NOMEM, 1000, kedge_strerror(KEDGE_E_NOMEM));
        return;
    }
    *k = (struct keep_work){.work = {{keep_done}, keep_run}, .req = req, .is_main = is_main(log)};
    k->size = final ? p->size : 0;
    kedge_buf_init(&k->note, KEDGE_NOTE_MAX);
    kedge_buf_put(&k->note, p->note.ptr, p->note.len);
    int err = k->note.err;
    err = err ? err
          : is_main(log)
              ? kedge_state_path(k->path, &d, h->state, "main/cosigned.note")
              : kedge_state_path(k->path, &d, h->state, "tenants/%s/cosigned.note", h->tenants[log].id.s);
    if (err) {
        kedge_host_reply_error(req, err, 0, kedge_strerror(err));
        kedge_buf_deinit(&k->note);
        kedge_mem_free(k);
        return;
    }
    kedge_host_work(h, &k->work);
}

/* A checkpoint that our own key signed and that our log does not have: we are an old backup, or there are two
 * of us. Whoever shows it is right, whatever else they are. */
static bool is_ahead(struct kedge_host *h, uint32_t log, struct kedge_view note, struct kedge_diag *d)
{
    struct kedge_checkpoint c;
    struct kedge_vkey vkey;
    struct kedge_hash root;
    const struct kedge_state_log *l = is_main(log) ? &h->main : &h->tenants[log].log;
    if (kedge_vkey_make(kedge_view_str(l->origin), KEDGE_KEY_ED25519, &l->key.public, &vkey) != KEDGE_OK
        || kedge_checkpoint_open(note, kedge_view_str(l->origin), &vkey, 1, &c, NULL) != KEDGE_OK) {
        return false;
    }
    uint64_t have = kedge_ledger_size(l->ledger);
    if (c.size > have) {
        (void)kedge_diag_set(
            d, KEDGE_E_CORRUPT,
            "log %s was signed with %" PRIu64 " entries and has %" PRIu64
            " here: this is an old backup or a rolled-back machine; restore the newest state, or "
            "repair it from a tenant's copy (kedge ledger repair)",
            l->origin, c.size, have);
        return true;
    }
    if (kedge_ledger_root(l->ledger, c.size, &root) == KEDGE_OK && !kedge_hash_eq(&root, &c.root)) {
        (void)kedge_diag_set(d, KEDGE_E_FORK,
                             "log %s was signed with another history of its first %" PRIu64
                             " entries: its key is used in two places",
                             l->origin, c.size);
        return true;
    }
    return false;
}

/* The log that a note is about: one that this witness may speak of. */
static bool find_log(const struct kedge_host *h, const struct witness *w, const struct kedge_note *note,
                     uint32_t *ret_log)
{
    struct kedge_checkpoint c;
    if (kedge_checkpoint_parse(note->text, &c) != KEDGE_OK) {
        return false;
    }
    bool own = kedge_view_eq(c.origin, kedge_view_str(h->tenants[w->tenant].log.origin));
    *ret_log = own ? w->tenant : KEDGE_COORD_NONE;
    return own || kedge_view_eq(c.origin, kedge_view_str(h->main.origin));
}

/* The line of the witness's key in a note; none: an empty view. */
static struct kedge_view line_of(const struct kedge_note *note, const struct kedge_vkey *vkey)
{
    for (uint32_t i = 0; i < note->line_count; i++) {
        const struct kedge_note_line *line = &note->lines[i];
        if (kedge_view_eq(line->name, kedge_view_str(vkey->name))
            && memcmp(line->id, vkey->id, KEDGE_KEY_ID_LEN) == 0) {
            return line->line;
        }
    }
    return kedge_view_of(NULL, 0);
}

/* Puts the cosignature into the proposal. */
static int take(struct proposal *p, const struct kedge_note *note, const struct kedge_vkey *vkey,
                struct kedge_diag *d)
{
    struct kedge_buf merged;
    struct kedge_view line = line_of(note, vkey);
    if (p->note.len < note->text.len || memcmp(p->note.ptr, note->text.ptr, note->text.len) != 0
        || p->note.ptr[note->text.len] != '\n') {
        return kedge_diag_set(d, KEDGE_E_STATE,
                              "another checkpoint is to be cosigned by now; ask for it again");
    }
    if (line.len == 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the note has no cosignature of key %s", vkey->name);
    }
    kedge_buf_init(&merged, KEDGE_NOTE_MAX);
    int err = kedge_cosignature_accept(kedge_buf_view(&p->note), line, vkey, 1, &merged, NULL);
    if (err) {
        kedge_buf_deinit(&merged);
        return kedge_diag_set(d, err, "the cosignature of key %s: %s", vkey->name, kedge_strerror(err));
    }
    kedge_buf_deinit(&p->note);
    p->note = merged;
    return KEDGE_OK;
}

static void cosign(struct kedge_host *h, struct kedge_net_request *req, struct witness *w,
                   struct kedge_view bytes)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_note *note = kedge_mem_new(1, sizeof *note);
    uint32_t log = KEDGE_COORD_NONE;
    int err = note ? kedge_note_parse(bytes, note) : KEDGE_E_NOMEM;
    if (!err && !find_log(h, w, note, &log)) {
        err = kedge_diag_set(&d, KEDGE_E_DENIED, "no checkpoint of a log that this witness cosigns");
    }
    if (!err && is_ahead(h, log, bytes, &d)) {
        kedge_log(KEDGE_LOG_ERROR, "stopping", "%s (shown by witness %s of %s)", d.text, w->id.s,
                  h->tenants[w->tenant].id.s);
        kedge_host_reply_error(req, d.err, 0, d.text);
        kedge_mem_free(note);
        kedge_host_fail(h, d.err, "a witness has seen more of a log than there is");
        return;
    }
    struct proposal *p = propose(h, log);
    err = err ? err : take(p, note, &w->vkey, &d);
    kedge_mem_free(note);
    if (err) {
        kedge_host_reply_error(req, err, err == KEDGE_E_STATE ? 100 : 0,
                               d.text[0] ? d.text : kedge_strerror(err));
        return;
    }
    uint64_t size, *last = is_main(log) ? &w->main_size : &w->own_size;
    *last = p->size;
    w->heard = w->heard || is_main(log);
    bool final = !is_main(log) || !h->witnesses->has_quorum
                 || evaluate(h, kedge_buf_view(&p->note), &size, &d) == KEDGE_OK;
    keep(h, req, log, p, final);
}

uint64_t kedge_host_final_size(const struct kedge_host *h)
{
    return h->witnesses->has_quorum ? h->witnesses->final_size : kedge_ledger_size(h->main.ledger);
}

void kedge_host_final_note(const struct kedge_host *h, struct kedge_buf *out)
{
    kedge_buf_put(out, h->witnesses->final_note.ptr, h->witnesses->final_note.len);
}

void kedge_host_witness_policy(const struct kedge_host *h, struct kedge_buf *out)
{
    if (h->witnesses->policy) {
        kedge_witness_policy_encode(h->witnesses->policy, out);
    }
}

void kedge_host_witness_tell(const struct kedge_host *h, struct kedge_buf *out)
{
    const char *between = "";
    for (uint32_t i = 0; i < h->witnesses->count; i++) {
        const struct witness *w = &h->witnesses->rows[i];
        if (w->active) {
            kedge_buf_printf(out, "%s%s of %s %" PRIu64, between, w->id.s, h->tenants[w->tenant].id.s,
                             w->main_size);
            between = ", ";
        }
    }
    if (!between[0]) {
        kedge_buf_put_str(out, "there are none");
    }
}

void kedge_host_witness_rows(const struct kedge_host *h, json_t *list)
{
    for (uint32_t i = 0; i < h->witnesses->count; i++) {
        const struct witness *w = &h->witnesses->rows[i];
        char tls[2 * KEDGE_KEY_LEN + 1], cosign_key[2 * KEDGE_KEY_LEN + 1];
        struct kedge_buf vkey;
        kedge_buf_init(&vkey, KEDGE_VKEY_MAX + 1);
        kedge_vkey_encode(&w->vkey, &vkey);
        kedge_hex_encode(w->tls_key.b, KEDGE_KEY_LEN, tls);
        kedge_hex_encode(w->vkey.key.b, KEDGE_KEY_LEN, cosign_key);
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:s,s:s,s:s%}", "tenant", h->tenants[w->tenant].id.s,
                            "witness", w->id.s, "state", w->active ? "active" : "revoked", "last_seen_ms",
                            (json_int_t)w->last_seen_ms, "main_size", (json_int_t)w->main_size, "own_size",
                            (json_int_t)w->own_size, "tls_key", tls, "cosign_key", cosign_key, "vkey",
                            (const char *)vkey.ptr, vkey.len));
        kedge_buf_deinit(&vkey);
    }
}

/* ---- reading ---- */

static void reply_whole(struct kedge_net_request *req, struct kedge_view bytes)
{
    struct kedge_msg reply = {.type = KEDGE_MSG_CHUNK};
    reply.u.chunk = (struct kedge_msg_chunk){.total = bytes.len, .data = bytes};
    kedge_host_reply(req, &reply);
}

/* By its salt a tenant knows its own checkpoints and rows in the main chain. */
static void tell_salt(const struct kedge_host *h, struct kedge_net_request *req, uint32_t tenant)
{
    char hex[2 * KEDGE_SALT_LEN + 1], text[KEDGE_ID_MAX + 256];
    kedge_hex_encode(h->tenants[tenant].log.salt, KEDGE_SALT_LEN, hex);
    snprintf(text, sizeof text, "{\"tenant\": \"%s\", \"salt\": \"%s\"}\n", h->tenants[tenant].id.s, hex);
    reply_whole(req, kedge_view_str(text));
}

/* Witnesses are shown the proposal as the log's checkpoint. */
static void log_read(struct kedge_host *h, struct kedge_net_request *req, const struct witness *w,
                     const struct kedge_msg_log_read *msg)
{
    char own[KEDGE_ID_MAX + 16], salt[KEDGE_ID_MAX + 16];
    struct kedge_log_reader reader = {.tenant = w->tenant};
    snprintf(own, sizeof own, "%s/checkpoint", h->tenants[w->tenant].id.s);
    snprintf(salt, sizeof salt, "%s/tenant.json", h->tenants[w->tenant].id.s);
    if (kedge_view_eq(msg->path, kedge_view_str(salt))) {
        tell_salt(h, req, w->tenant);
    } else if (kedge_view_eq(msg->path, kedge_view_str(own))) {
        reply_whole(req, kedge_buf_view(&propose(h, w->tenant)->note));
    } else if (kedge_view_eq(msg->path, kedge_view_str("main/checkpoint"))) {
        reply_whole(req, kedge_buf_view(&propose(h, KEDGE_COORD_NONE)->note));
    } else if (kedge_view_eq(msg->path, kedge_view_str("main/cosigned"))) {
        reply_whole(req, kedge_buf_view(&h->witnesses->final_note));
    } else {
        kedge_host_log_read(h, req, &reader, msg);
    }
}

void kedge_host_witness_request(struct kedge_host *h, struct kedge_net_request *req, uint32_t witness,
                                const struct kedge_msg *msg)
{
    struct witness *w = &h->witnesses->rows[witness];
    w->last_seen_ms = kedge_os_unix_ms();
    switch ((int)msg->type) {
    case KEDGE_MSG_COSIGN:
        cosign(h, req, w, msg->u.cosign.note);
        break;
    case KEDGE_MSG_LOG_READ:
        log_read(h, req, w, &msg->u.log_read);
        break;
    default:
        kedge_host_reply_error(req, KEDGE_E_DENIED, 0, "a witness may not ask this");
        break;
    }
}
