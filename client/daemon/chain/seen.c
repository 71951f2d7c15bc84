/* What this site remembers of the main chain, and the evidence when it is shown another one. On the loop. */
#include <inttypes.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "client/daemon/host.h"
#include "common/base/os/log.h"
#include "common/base/try.h"

enum { ROOT_SHOWN = 8 }; /* bytes of a root in the log: the whole is in the evidence */

int kedge_client_chain_of(struct kedge_view note, const struct kedge_vkey *key, struct kedge_site_chain *ret)
{
    struct kedge_checkpoint cp;
    struct kedge_note parsed;
    if (key) {
        KEDGE_TRY(kedge_checkpoint_open(note, kedge_view_str(key->name), key, 1, &cp, NULL));
    } else {
        KEDGE_TRY(kedge_note_parse(note, &parsed));
        KEDGE_TRY(kedge_checkpoint_parse(parsed.text, &cp));
    }
    ret->size = cp.size;
    memcpy(ret->root.b, cp.root.b, sizeof ret->root.b);
    return KEDGE_OK;
}

/* Not there: KEDGE_E_NOT_FOUND. With a key: not signed by it: KEDGE_E_VERIFY. */
static int read_note(const struct kedge_site_host *h, const char *name, const struct kedge_vkey *key,
                     struct kedge_buf *ret_note, struct kedge_site_chain *ret, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    kedge_buf_init(ret_note, KEDGE_NOTE_MAX);
    KEDGE_TRY(kedge_client_path(h, path, "%s", name));
    int err = kedge_file_read(path, ret_note, d);
    return err ? err : kedge_client_chain_of(kedge_buf_view(ret_note), key, ret);
}

void kedge_client_seen_say(const struct kedge_site_host *h)
{
    const struct kedge_site_refusal *r = &h->refusal;
    char seen[2 * ROOT_SHOWN + 1], shown[2 * ROOT_SHOWN + 1];
    kedge_hex_encode(r->seen.root.b, ROOT_SHOWN, seen);
    kedge_hex_encode(r->shown.root.b, ROOT_SHOWN, shown);
    kedge_log(
        KEDGE_LOG_ERROR, "main chain refused",
        "%s: this site has seen %" PRIu64 " entries of the main chain (root %s…), the coordinator shows "
        "%" PRIu64 " (root %s…). Nothing is trained, signed or sent. Both checkpoints are in "
        "%s/refused-main: ask the coordinator's operator. When the right chain is back, this site goes on by "
        "itself; to accept the one that was shown: kedge-client accept-main",
        r->err == KEDGE_E_SHORTER ? "the chain was cut, as by a restored backup" : kedge_strerror(r->err),
        r->seen.size, seen, r->shown.size, shown, h->dir);
}

/* Evidence of a former process. What is in it may be damaged: that it is there is what counts. `shown` is
 * written last (kedge_client_seen_refuse), so a power cut before that leaves no refusal; the same answer of
 * the coordinator brings it about again. */
static void read_evidence(struct kedge_site_host *h)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf note;
    struct kedge_diag d = {.text = ""};
    struct kedge_site_refusal *r = &h->refusal;
    if (kedge_client_path(h, path, "refused-main/shown") != KEDGE_OK || !kedge_file_exists(path)) {
        return;
    }
    int err = read_note(h, "refused-main/shown", NULL, &note, &r->shown, &d);
    kedge_buf_deinit(&note);
    int seen_err = read_note(h, "refused-main/seen", NULL, &note, &r->seen, &d);
    kedge_buf_deinit(&note);
    r->err = !err && !seen_err && r->shown.size < r->seen.size ? KEDGE_E_SHORTER : KEDGE_E_FORK;
    h->fatal = r->err;
}

/* It is not synced, so a power cut may leave any bytes in it. A site that knows the main log's key believes
 * what that key has signed alone: another root in it would convict an honest coordinator of two histories. */
void kedge_client_seen_read(struct kedge_site_host *h)
{
    struct kedge_diag d = {.text = ""};
    const struct kedge_vkey *key = h->trust.known ? &h->trust.main_log : NULL;
    read_evidence(h);
    int err = read_note(h, "seen-main", key, &h->seen_note, &h->seen, &d);
    if (err && err != KEDGE_E_NOT_FOUND) {
        kedge_log(KEDGE_LOG_WARN, "seen-main",
                  "%s/seen-main: expected a checkpoint of the main chain: %s; beginning anew", h->dir,
                  d.text[0] ? d.text : kedge_strerror(err));
        h->seen = (struct kedge_site_chain){.size = 0};
    }
}

void kedge_client_seen_keep(struct kedge_site_host *h, const struct kedge_site_effect *fx)
{
    char path[KEDGE_PATH_MAX];
    h->seen = fx->seen;
    h->seen_note.len = 0;
    h->seen_note.err = KEDGE_OK;
    kedge_buf_put(&h->seen_note, h->shown_note.ptr, h->shown_note.len);
    int err = h->seen_note.err ? h->seen_note.err : kedge_client_path(h, path, "seen-main");
    if (!err) {
        err = kedge_client_put_file(path, h->shown_note);
    }
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "seen-main", "%s/seen-main: %s", h->dir, kedge_strerror(err));
    }
}

/* The new folder's own name is made durable first; kedge_file_write syncs no more than a file and its folder.
 * `shown` is last: it alone makes a refusal (read_evidence), and by then what it contradicts is there too. */
static int write_evidence(const struct kedge_site_host *h, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_client_path(h, path, "refused-main"));
    KEDGE_TRY(kedge_dir_make(path, 0700, d));
    KEDGE_TRY(kedge_dir_sync(h->dir));
    KEDGE_TRY(kedge_client_path(h, path, "refused-main/seen"));
    KEDGE_TRY(kedge_file_write(path, kedge_buf_view(&h->seen_note), 0600, d));
    KEDGE_TRY(kedge_client_path(h, path, "refused-main/shown"));
    return kedge_file_write(path, h->shown_note, 0600, d);
}

/* The site refuses even when the evidence cannot be written: h->refusal and h->fatal are set first. */
void kedge_client_seen_refuse(struct kedge_site_host *h, const struct kedge_site_effect *fx)
{
    struct kedge_diag d = {.text = ""};
    h->refusal = (struct kedge_site_refusal){fx->err, fx->seen, fx->shown};
    h->fatal = fx->err;
    int err = write_evidence(h, &d);
    if (err) {
        kedge_log(KEDGE_LOG_ERROR, "refused-main", "the evidence cannot be kept: %s",
                  d.text[0] ? d.text : kedge_strerror(err));
    }
}
