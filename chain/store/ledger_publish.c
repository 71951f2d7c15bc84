/* A ledger's new head, where readers see it. */
#include "chain/store/ledger.h"
#include "chain/store/ledger_impl.h"

/* At open, of a store that was closed in good order: the mark that is found was made durable with the
 * checkpoint that it is of; or it will be, with those of all ledgers that are being opened
 * (kedge_kv_sync_together). A coordinator of thousands of tenants would sync as many files at each start. */
static bool is_marked(const struct kedge_ledger *l, uint64_t size, const struct kedge_hash *root)
{
    struct kedgei_high_water mark;
    return l->mark_is_durable
           && kedgei_high_water_read(l->high_water_path, l->origin, &mark, NULL) == KEDGE_OK
           && mark.size == size && kedge_hash_eq(&mark.root, root);
}

/* The mark is asked before anything is signed and raised before the signature is shown. A crash between
 * the two leaves a mark of a size that nobody has seen signed, which is harmless; the other order could
 * leave a signature that the mark does not know, and an old backup could then sign another root for that
 * size. An error of the class "corrupt" or "fork" puts the ledger out of service: from then on it must
 * sign nothing, whatever is asked. The same bytes as before need not be stored again, so note_is_stored
 * survives a signature that is made a second time. */
int kedgei_publish(struct kedge_ledger *l, struct kedge_diag *reterr)
{
    uint64_t size = l->state.frontier.size;
    const struct kedge_hash *root = &l->state.root;
    bool marked = l->high_water_path[0] != '\0';
    int err = marked ? kedgei_high_water_allows(l->high_water_path, l->origin, size, root, reterr) : KEDGE_OK;
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_CHECKPOINT_MAX);
    if (!err) {
        err = kedge_checkpoint_sign(kedge_view_str(l->origin), size, root, l->key, &note);
        err = err ? kedge_diag_set(reterr, err, "ledger %s: cannot sign: %s", l->origin, kedge_strerror(err))
                  : KEDGE_OK;
        if (!err && marked && !is_marked(l, size, root)) {
            err = kedge_kv_changing(l->kv, reterr);
            err = err ? err : kedgei_high_water_write(l->high_water_path, l->origin, size, root, reterr);
        }
    }
    l->mark_is_durable = false; /* from here on each is written */
    if (err) {
        kedge_kv_doubt(l->kv);
        kedge_buf_deinit(&note);
        if (err == KEDGE_E_CORRUPT || err == KEDGE_E_FORK) {
            pthread_mutex_lock(&l->mutex);
            l->status = err;
            pthread_mutex_unlock(&l->mutex);
        }
        return err;
    }
    pthread_mutex_lock(&l->mutex);
    struct kedge_buf old = l->note;
    l->note_is_stored = l->note_is_stored && kedge_view_eq(kedge_buf_view(&old), kedge_buf_view(&note));
    l->note = note;
    l->note_size = size;
    l->has_note = true;
    pthread_mutex_unlock(&l->mutex);
    kedge_buf_deinit(&old);
    return KEDGE_OK;
}
