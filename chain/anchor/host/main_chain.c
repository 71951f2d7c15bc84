#include "chain/anchor/host/main_chain.h"

#include "chain/log/checkpoint.h"
#include "chain/state/state.h"
#include "common/base/try.h"

/* Its newest checkpoint, and the root of that size as this machine's own entries make it: a store that
 * contradicts what was signed is not anchored. */
static int read_checkpoint(struct kedge_ledger *l, const char *state, struct kedge_buf *note,
                           struct kedge_checkpoint *ret, struct kedge_diag *reterr)
{
    struct kedge_note parsed;
    struct kedge_hash root;
    KEDGE_TRY(kedge_ledger_checkpoint(l, note, NULL));
    KEDGE_TRY(kedge_note_parse(kedge_buf_view(note), &parsed));
    KEDGE_TRY(kedge_checkpoint_parse(parsed.text, ret));
    KEDGE_TRY(kedge_ledger_root(l, ret->size, &root));
    return kedge_hash_eq(&root, &ret->root)
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                                "%s: the main chain's checkpoint has another root than it", state);
}

/* The log is opened anew each time and only for reading: the coordinator goes on writing, and what anchors
 * holds no file of it open while it waits for a chain or an authority. */
int kedge_anchor_read_main(const char *state, uint64_t at_size, uint64_t *ret_size,
                           struct kedge_hash *ret_root, struct kedge_hash *ret_root_at,
                           struct kedge_buf *ret_note, struct kedge_diag *reterr)
{
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_state_log log;
    struct kedge_checkpoint cp = {.size = 0};
    struct kedge_hash root_at = {{0}};
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    KEDGE_TRY(kedge_state_log_open(state, NULL, KEDGE_STATE_READ, &log, reterr));
    int err = read_checkpoint(log.ledger, state, &note, &cp, reterr);
    if (!err && at_size > 0 && at_size <= cp.size) {
        err = kedge_ledger_root(log.ledger, at_size, &root_at);
    }
    if (!err && ret_note) {
        kedge_buf_put(ret_note, note.ptr, note.len);
    }
    if (!err) {
        *ret_size = cp.size;
        *ret_root = cp.root;
        *ret_root_at = root_at;
    }
    kedge_state_log_close(&log);
    return err;
}

void kedge_anchor_read_checkpoint(const char *state, uint64_t size, struct kedge_buf *ret)
{
    struct kedge_state_log log;
    if (kedge_state_log_open(state, NULL, KEDGE_STATE_READ, &log, NULL) == KEDGE_OK) {
        if (kedge_ledger_checkpoint_at(log.ledger, size, ret) != KEDGE_OK) {
            kedge_buf_clear(ret);
        }
        kedge_state_log_close(&log);
    }
}
