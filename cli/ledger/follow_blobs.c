/* What the copies name: fetched, as far as it is wanted, and removed when the tenant had it erased. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/follow/fetch.h"
#include "chain/store/blob/pruned.h"
#include "cli/ledger/follow.h"
#include "common/base/try.h"

enum { PRUNED_MAX = 1 << 27 };

struct walk {
    struct kedgei_watch *f;
    struct kedgei_blob_count *count;
    uint64_t missing; /* updates that the coordinator does not have */
    char first_missing[KEDGE_HASH_HEX_LEN + 1];
    struct kedge_buf pruned; /* digests of models that the operator gave up */
    struct kedge_diag *d;
};

/* A blob's pieces, as the coordinator gives them. chain/follow fetches a blob without knowing of a network:
 * it is handed who reads a piece and who says that it should stop. */
struct source {
    struct kedgei_watch *f;
    const char *path;
    struct kedge_net_reply reply; /* of the last piece */
};

static int read_piece(void *arg, uint64_t offset, struct kedge_view *ret, uint64_t *ret_total,
                      struct kedge_diag *d)
{
    struct source *s = arg;
    kedge_net_reply_release(&s->reply);
    return kedgei_follow_piece(s->f, s->path, offset, &s->reply, ret, ret_total, d);
}

static bool is_stopped(void *arg)
{
    (void)arg;
    return kedge_cli_interrupted();
}

static int fetch_blob(struct kedgei_watch *f, struct kedge_blobs *blobs, const char *path,
                      const struct kedge_blob_wanted *wanted, uint64_t *ret_size, struct kedge_diag *d)
{
    struct source source = {.f = f, .path = path, .reply = {.impl = NULL}};
    struct kedge_follow_pieces pieces = {read_piece, is_stopped, &source, path};
    int err = kedge_follow_fetch(&pieces, blobs, &f->w.witness, wanted, ret_size, d);
    kedge_net_reply_release(&source.reply);
    return err;
}

/* Each blob is checked by its digest as it comes (chain/follow/fetch.h). What is missing is not the end of
 * the walk: an update may just be on its way out by order of its tenant, and others are still to be had. What
 * was pruned is noted, so that an auditor of the copy is told. */
static int take_blob(void *arg, const struct kedge_blob_wanted *wanted)
{
    struct walk *w = arg;
    struct kedgei_watch *f = w->f;
    struct kedge_blobs *blobs = wanted->of_tenant ? f->own.blobs : f->main.blobs;
    char path[KEDGE_ID_MAX + KEDGE_HASH_HEX_LEN + 16], hex[KEDGE_HASH_HEX_LEN + 1];
    uint64_t size;
    if (f->blobs == KEDGEI_BLOBS_LISTS && wanted->want != KEDGE_WANT_LIST) {
        return KEDGE_OK;
    }
    if (kedge_follow_is_erased(&f->erased, wanted)
        || kedge_blobs_find(blobs, &wanted->digest, NULL) == KEDGE_OK) {
        return KEDGE_OK;
    }
    kedge_hash_hex(&wanted->digest, hex);
    snprintf(path, sizeof path, "%s/blob/%s", wanted->of_tenant ? f->w.tenant.s : "main", hex);
    int err = fetch_blob(f, blobs, path, wanted, &size, w->d);
    if (err == KEDGE_E_NOT_FOUND && wanted->want == KEDGE_WANT_UPDATE) {
        if (w->missing++ == 0) {
            snprintf(w->first_missing, sizeof w->first_missing, "%s", hex);
        }
        return KEDGE_OK; /* the others all the same */
    }
    if (err == KEDGE_E_WITHHELD && wanted->want == KEDGE_WANT_MODEL) {
        kedge_buf_put(&w->pruned, wanted->digest.b, KEDGE_HASH_LEN);
        return w->pruned.err; /* the others all the same */
    }
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(w->d, err, "the coordinator does not have %s, which the log names", path);
    }
    if (!err) {
        w->count->count++;
        w->count->bytes += size;
    }
    return err;
}

/* An erasure that no admin ordered: the file stays, and the reader is told. */
static void tell_refused(struct kedgei_watch *f)
{
    if (f->erased.refused > f->refused_told) {
        kedge_cli_say(f->c,
                      "%s: entry %" PRIu64 " states an erasure that counts for nothing: %s; what it "
                      "names is kept (%" PRIu64 " such)\n",
                      f->w.tenant.s, f->erased.refused_at, f->erased.reason.text, f->erased.refused);
        f->refused_told = f->erased.refused;
    }
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, KEDGE_HASH_LEN);
}

/* Sorts the digests; how many different ones they are. An aggregate and its step name the same model. */
static size_t count_different(struct kedge_buf *digests)
{
    size_t n = 0;
    qsort(digests->ptr, digests->len / KEDGE_HASH_LEN, KEDGE_HASH_LEN, compare);
    for (size_t at = 0; at < digests->len; at += KEDGE_HASH_LEN) {
        n += at == 0 || compare(digests->ptr + at - KEDGE_HASH_LEN, digests->ptr + at) != 0;
    }
    return n;
}

/* The coordinator says that its operator gave models up. The copy keeps that list, so that an auditor of it
 * is told; the auditor judges which of them may be missing. */
static int note_pruned(struct walk *w)
{
    char folder[KEDGE_PATH_MAX];
    struct kedgei_watch *f = w->f;
    int err = w->pruned.len > 0 ? kedge_state_path(folder, w->d, f->dir, "main") : KEDGE_OK;
    if (err || w->pruned.len == 0) {
        return err;
    }
    KEDGE_TRY(kedge_pruned_add(folder, kedge_buf_view(&w->pruned), w->d));
    f->c->told = false;
    kedge_cli_say(f->c,
                  "main: %zu models are not taken: the operator gave them up (kedge ledger prune); "
                  "a replay makes them again\n",
                  count_different(&w->pruned));
    return KEDGE_OK;
}

/* Erasures are carried out before anything is fetched, else a file would be fetched and removed in one turn.
 * The places up to which entries were walked move on only after a whole walk: what failed is tried again with
 * the next one. */
int kedgei_follow_take_blobs(struct kedgei_watch *f, struct kedgei_blob_count *ret, struct kedge_diag *d)
{
    struct kedge_hash salted;
    struct walk w = {.f = f, .count = ret, .d = d};
    *ret = (struct kedgei_blob_count){.count = 0};
    int err = kedge_follow_erase(&f->erased, f->own.ledger, f->own.blobs, d); /* all that is fetched now */
    tell_refused(f);
    if (err || f->blobs == KEDGEI_BLOBS_NONE) {
        return err;
    }
    kedge_buf_init(&w.pruned, PRUNED_MAX);
    kedge_salted_tenant_id(f->own.salt, &f->w.tenant, &salted);
    uint64_t main_size = kedge_ledger_size(f->main.ledger), own_size = kedge_ledger_size(f->own.ledger);
    err = kedge_follow_blobs(f->main.ledger, f->main_blobs_from, &salted, take_blob, &w);
    if (!err) {
        err = note_pruned(&w);
    }
    kedge_buf_deinit(&w.pruned);
    KEDGE_TRY(err);
    f->main_blobs_from = main_size;
    KEDGE_TRY(kedge_follow_blobs(f->own.ledger, f->own_blobs_from, NULL, take_blob, &w));
    if (w.missing > 0) {
        return kedge_diag_set(d, KEDGE_E_BLOB_MISSING,
                              "the coordinator does not have %" PRIu64 " updates, the first of them %s; when "
                              "they are being erased, their erasure follows",
                              w.missing, w.first_missing);
    }
    f->own_blobs_from = own_size;
    return KEDGE_OK;
}
