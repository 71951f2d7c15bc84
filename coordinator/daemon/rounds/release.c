/* What is handed out of a completed job, and when. The job is complete when job-closed is durable;
 * its models go out when the main chain is final up to their releases, which under a witness policy
 * means: when a quorum has cosigned a checkpoint beyond them. Until then a coordinator could still
 * show another history to others. */
#include "coordinator/daemon/rounds/release.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "chain/log/proof.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/rounds/classes.h"

static int see_release(void *arg, struct kedge_view key, uint64_t index)
{
    (void)key;
    *(uint64_t *)arg = index;
    return KEDGE_OK;
}

/* The release of the job's last models; or of those with which so many targets were reached last. */
static int find(struct kedge_host *h, const struct kedge_id *job, uint32_t group, uint32_t tier,
                uint64_t *ret_index)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    if (tier == 0) {
        snprintf(key, sizeof key, "release/%s/%02u", job->s, group);
        return kedge_ledger_find(h->main.ledger, kedge_view_str(key), ret_index);
    }
    snprintf(key, sizeof key, "release/%s/%02u/%u/", job->s, group, tier);
    *ret_index = UINT64_MAX;
    KEDGE_TRY(kedge_ledger_scan_keys(h->main.ledger, kedge_view_str(key), see_release, ret_index));
    return *ret_index == UINT64_MAX ? KEDGE_E_NOT_FOUND : KEDGE_OK;
}

/* The message says how far each witness is, since the operator's next question is which of them is
 * late. */
int kedge_host_release_find(struct kedge_host *h, const struct kedge_id *job, uint32_t group, uint32_t tier,
                            uint64_t *ret_index, struct kedge_diag *d)
{
    uint64_t index = 0, final = kedge_host_final_size(h);
    int err = find(h, job, group, tier, &index);
    if (err) {
        return kedge_diag_set(d, err, "job \"%s\", group %u: %s", job->s, group, kedge_strerror(err));
    }
    *ret_index = index;
    if (index < final) {
        return KEDGE_OK;
    }
    struct kedge_buf who;
    kedge_buf_init(&who, KEDGE_DIAG_TEXT_MAX / 2);
    kedge_host_witness_tell(h, &who);
    (void)kedge_diag_set(d, KEDGE_E_BUSY,
                         "job \"%s\" is released by entry %" PRIu64
                         " of the main chain, but its witnesses have cosigned %" PRIu64 " entries only: %.*s",
                         job->s, index, final, (int)who.len, who.ptr ? (const char *)who.ptr : "");
    kedge_buf_deinit(&who);
    return KEDGE_E_BUSY;
}

/* The checkpoint up to which the main chain is final: cosigned where a quorum is demanded. */
static int final_checkpoint(struct kedge_host *h, struct kedge_buf *note, uint64_t *ret_size)
{
    kedge_host_final_note(h, note);
    if (note->len > 0) {
        *ret_size = kedge_host_final_size(h);
        return note->err;
    }
    return kedge_ledger_checkpoint(h->main.ledger, note, ret_size);
}

static int make_proof(struct kedge_host *h, uint64_t index, struct kedge_buf *ret_entry,
                      struct kedge_buf *ret_text)
{
    struct kedge_proof proof = {.index = index};
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit);
    uint64_t size;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    KEDGE_TRY(final_checkpoint(h, &note, &size));
    KEDGE_TRY(kedge_ledger_inclusion(h->main.ledger, index, size, &proof.path));
    KEDGE_TRY(kedge_ledger_get(h->main.ledger, index, ret_entry));
    proof.note = kedge_buf_view(&note);
    kedge_proof_encode(&proof, ret_text);
    return ret_text->err;
}

/* An entry with its proof under the final checkpoint, so that who gets it can check it offline and
 * needs to trust nobody on the way. */
int kedge_host_main_tell(struct kedge_host *h, uint64_t index, json_t *o, const char *entry_name,
                         const char *proof_name, struct kedge_diag *d)
{
    struct kedge_buf entry KEDGE_CLEANUP(kedge_buf_deinit), text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
    int err = make_proof(h, index, &entry, &text);
    if (err) {
        return kedge_diag_set(d, err, "evidence from the main chain: %s", kedge_strerror(err));
    }
    json_object_set_new(o, entry_name, json_stringn((const char *)entry.ptr, entry.len));
    json_object_set_new(o, proof_name, json_stringn((const char *)text.ptr, text.len));
    return KEDGE_OK;
}

/* The job-opened goes with every model: it names the spec, without which a receiver could be given
 * a genuine model of another job. Where the job learnt its classes, the step that states them goes,
 * too. */
int kedge_host_opened_tell(struct kedge_host *h, const struct kedge_id *job, json_t *o, struct kedge_diag *d)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t index;
    snprintf(key, sizeof key, "job-opened/%s", job->s);
    KEDGE_TRY(kedge_ledger_find(h->main.ledger, kedge_view_str(key), &index));
    KEDGE_TRY(kedge_host_main_tell(h, index, o, "opened", "opened_proof", d));
    char names[KEDGE_CLASS_NAMES_ROOM] = "";
    KEDGE_TRY(kedge_learnt_classes(h, job, names, d));
    if (names[0] == '\0') {
        return KEDGE_OK;
    }
    snprintf(key, sizeof key, "step/%s/%08d", job->s, KEDGE_CLASSES_ROUND);
    KEDGE_TRY(kedge_ledger_find(h->main.ledger, kedge_view_str(key), &index));
    return kedge_host_main_tell(h, index, o, "named", "named_proof", d);
}
