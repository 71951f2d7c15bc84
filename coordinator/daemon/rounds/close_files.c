/* Where the functions of round/close find and leave this coordinator's files: models, directions and
 * states among the blobs of the main chain, updates among those of their tenants. */
#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/restore/restore_walk.h"
#include "coordinator/daemon/rounds/close.h"

/* Models may have been given up (pruned) before this start; the path is only composed here, and
 * opening it says what is missing. */
static int vector_of(void *arg, const struct kedge_hash *digest, char path[KEDGE_PATH_MAX],
                     struct kedge_blob_at *ret_at)
{
    const struct kedge_host *h = arg;
    *ret_at = (struct kedge_blob_at){.path = path, .digest = *digest};
    return kedge_blobs_path(h->main.blobs, digest, path);
}

static int update_of(void *arg, uint32_t site, const struct kedge_hash *digest, char ret[KEDGE_PATH_MAX],
                     struct kedge_blob_at *ret_at)
{
    struct kedge_host *h = arg;
    const struct kedge_blobs *blobs = h->tenants[h->sites[site].tenant].log.blobs;
    bool is_gone = kedge_blobs_find(blobs, digest, NULL) == KEDGE_E_NOT_FOUND;
    return is_gone ? KEDGE_E_NOT_FOUND : kedge_blobs_at(blobs, digest, ret, ret_at);
}

/* The statement is decoded and not verified again: it was verified when it was appended, and the
 * ledger's root covers it since. */
int kedgei_close_update(struct kedge_host *h, const struct kedge_close_input *in, struct kedge_statement *st,
                        struct kedge_diag *d)
{
    KEDGE_TRY(kedge_walk_entry(h->tenants[in->tenant].log.ledger, in->in.leaf, st, d));
    return st->kind == KEDGE_ST_UPDATE ? KEDGE_OK : KEDGE_E_CORRUPT;
}

/* Some strategies weigh by steps, loss or learning rate. These come from the signed statement
 * alone, never from memory, so the auditor has the same numbers. */
static int facts_of(void *arg, const struct kedge_close_input *in, struct kedge_strategy_input *facts,
                    struct kedge_diag *d)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? kedgei_close_update(arg, in, st, d) : KEDGE_E_NOMEM;
    if (!err) {
        facts->steps = st->u.update.steps;
        facts->loss = st->u.update.loss;
        facts->rate = st->u.update.learning_rate;
    }
    kedge_mem_free(st);
    return err;
}

static int sink_to_blob(void *arg, struct kedge_view bytes)
{
    return kedge_blob_writer_write(arg, bytes, NULL);
}

/* Results are written as they are computed, piece by piece, into a temporary file whose name
 * follows from its digest when it is finished. A model is never in memory as a whole. */
static int begin(void *arg, uint64_t len, struct kedge_close_file *ret, struct kedge_diag *d)
{
    struct kedge_host *h = arg;
    struct kedge_blob_writer *writer;
    KEDGE_TRY(kedge_blob_writer_open(h->main.blobs, len, &writer, d));
    *ret = (struct kedge_close_file){
        writer, {.write = sink_to_blob, .arg = writer, .cut = {.threads = h->config.close_threads}}};
    return KEDGE_OK;
}

static int end(void *arg, struct kedge_close_file *file, int err, struct kedge_hash *ret,
               struct kedge_diag *d)
{
    (void)arg;
    if (err) {
        kedge_blob_writer_abort(file->writer);
        return err;
    }
    return kedge_blob_writer_finish(file->writer, ret, NULL, d);
}

struct kedge_close_host kedge_host_close_files(struct kedge_host *h)
{
    return (struct kedge_close_host){h, vector_of, update_of, facts_of, begin, end, NULL};
}
