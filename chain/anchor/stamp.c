/* A token is about bytes and says nothing of what they mean, so two things are joined here: the bytes are a
 * checkpoint (of this log, signed by this key, as far as the caller knows them), and the token is over
 * exactly these bytes. Only then do its time and the checkpoint's root belong together. */
#include "chain/anchor/stamp.h"

#include "chain/log/checkpoint.h"
#include "common/base/mem.h"

/* The checkpoint in the note; its signature, too, when the log's key is known. */
static int read_checkpoint(struct kedge_view note, struct kedge_view origin, const struct kedge_vkey *log,
                           struct kedge_checkpoint *ret, struct kedge_diag *reterr)
{
    struct kedge_note *parsed = kedge_mem_new(1, sizeof *parsed);
    int err = parsed ? kedge_note_parse(note, parsed) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_checkpoint_parse(parsed->text, ret);
    }
    kedge_mem_free(parsed);
    if (err == KEDGE_E_NOMEM) {
        return kedge_diag_set(reterr, err, "out of memory");
    }
    if (err) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "what was stamped is no signed checkpoint");
    }
    if (origin.ptr && !kedge_view_eq(ret->origin, origin)) {
        return kedge_diag_set(reterr, KEDGE_E_VERIFY, "the checkpoint that was stamped is of the log %.*s",
                              (int)(ret->origin.len < 255 ? ret->origin.len : 255),
                              (const char *)ret->origin.ptr);
    }
    if (log) {
        struct kedge_view name = kedge_view_str(log->name);
        err = kedge_checkpoint_open(note, name, log, 1, ret, NULL);
        if (err) {
            return kedge_diag_set(reterr, err == KEDGE_E_NOMEM ? err : KEDGE_E_VERIFY,
                                  "the checkpoint that was stamped is not signed by the log's key");
        }
    }
    return KEDGE_OK;
}

/* Without certificates the token is only parsed: its digest must be the note's, and what else it says is a
 * claim that may be shown and must not be counted (kedge_anchor_claim: trusted). */
int kedge_stamp_check(struct kedge_view note, struct kedge_view reply, struct kedge_view origin,
                      const struct kedge_vkey *log, struct kedge_view ca_pem, struct kedge_stamp *ret,
                      struct kedge_diag *reterr)
{
    struct kedge_stamp s = {.size = 0};
    struct kedge_checkpoint c = {.size = 0};
    struct kedge_hash digest;
    int err = read_checkpoint(note, origin, log, &c, reterr);
    if (err) {
        return err;
    }
    if (ca_pem.len > 0) {
        err = kedge_timestamp_verify(reply, note, ca_pem, &s.token, reterr);
    } else {
        err = kedge_timestamp_parse(reply, &s.token);
        kedge_sha256(note, &digest);
        if (err) {
            (void)kedge_diag_set(reterr, err, "no RFC 3161 reply that grants a token over a SHA-256 digest");
        } else if (!kedge_hash_eq(&digest, &s.token.imprint)) {
            err = kedge_diag_set(reterr, KEDGE_E_VERIFY, "the token is about other bytes");
        }
    }
    if (!err) {
        s.size = c.size;
        s.root = c.root;
        *ret = s;
    }
    return err;
}
