/* Erasures in a tenant's copy: a file goes when the tenant's own admin ordered it, and never because the
 * coordinator says so. Otherwise a coordinator could have copies delete the evidence against it.
 *
 * So the copy keeps the tenant's keys itself, from the admin key that it was told at its beginning along
 * the rotations in the ledger, and checks each order with the keys of its moment. The order must name an
 * earlier entry, an update with that very file. Orders are read in one walk and carried out in a second
 * one, since an order can be carried out again after a crash without harm. A job's key is destroyed when
 * no update under it is left, by the ledger and not by the files: a file that is not here may still come. */
#include "chain/follow/erased.h"

#include <stdlib.h>

#include "common/base/mem.h"
#include "common/base/try.h"

enum { FIRST_CAP = 64 };

void kedge_follow_erased_init(struct kedge_follow_erased *e, const struct kedge_id *tenant,
                              const struct kedge_public_key *admin_key)
{
    *e = (struct kedge_follow_erased){.admin_key = *admin_key};
    kedge_keybook_init(&e->book, tenant);
}

void kedge_follow_erased_deinit(struct kedge_follow_erased *e)
{
    kedge_keybook_deinit(&e->book);
    kedge_mem_free(e->digests);
    kedge_mem_free(e->claims);
    *e = (struct kedge_follow_erased){.next = 0};
}

static void refuse(struct kedge_follow_erased *e, uint64_t index, const char *why)
{
    e->refused++;
    e->refused_at = index;
    (void)kedge_diag_set(&e->reason, KEDGE_E_DENIED, "%s", why);
}

/* ---- reading ---- */

struct walk {
    struct kedge_follow_erased *e;
    struct kedge_statement st;
    struct kedge_signed_statement entry;
};

static int add_claim(struct kedge_follow_erased *e, const struct kedge_statement *st, uint64_t index)
{
    KEDGE_TRY_MEM(kedge_mem_grow(&e->claims, &e->claim_cap, e->claim_count, FIRST_CAP, sizeof *e->claims));
    e->claims[e->claim_count++] = (struct kedge_follow_claim){st->subject, index, st->u.erased.entry};
    return KEDGE_OK;
}

/* A change of keys that nobody admitted changes nothing; the auditor names it. */
static int take_keys(struct walk *w, uint64_t index)
{
    struct kedge_follow_erased *e = w->e;
    if (w->st.kind == KEDGE_ST_KEY
        && (index != 0 || !kedge_public_key_eq(&w->st.u.key.public_key, &e->admin_key))) {
        return KEDGE_OK;
    }
    int err = kedge_keybook_verify(&e->book, &w->st, &w->entry, NULL);
    if (!err) {
        err = kedge_keybook_apply(&e->book, &w->st, index, NULL);
    }
    return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
}

static int take_erasure(struct walk *w, uint64_t index)
{
    struct kedge_diag why = {.text = ""};
    if (!kedge_id_eq(&w->st.u.erased.tenant, &w->e->book.tenant)) {
        refuse(w->e, index, "it is about another tenant");
        return KEDGE_OK;
    }
    int err = kedge_keybook_verify(&w->e->book, &w->st, &w->entry, &why);
    if (err == KEDGE_E_NOMEM) {
        return err;
    }
    if (err) {
        refuse(w->e, index, why.text);
        return KEDGE_OK;
    }
    return add_claim(w->e, &w->st, index);
}

static int visit_entry(void *arg, uint64_t index, struct kedge_view bytes)
{
    struct walk *w = arg;
    int err = bytes.len > 0 ? kedge_statement_read(bytes, &w->st, &w->entry, NULL) : KEDGE_E_FORMAT;
    if (!err && kedge_keybook_concerns(w->st.kind)) {
        err = take_keys(w, index);
    } else if (!err && w->st.kind == KEDGE_ST_ERASED) {
        err = take_erasure(w, index);
    } else if (err != KEDGE_E_NOMEM) {
        err = KEDGE_OK; /* what is no statement erases nothing */
    }
    if (bytes.len > 0) {
        kedge_buf_deinit(&w->entry.payload);
    }
    w->e->next = err ? w->e->next : index + 1;
    return err;
}

/* ---- carrying out ---- */

static int keep_digest(struct kedge_follow_erased *e, const struct kedge_hash *digest)
{
    KEDGE_TRY_MEM(kedge_mem_grow(&e->digests, &e->cap, e->count, FIRST_CAP, sizeof *e->digests));
    e->digests[e->count++] = *digest;
    return KEDGE_OK;
}

/* Whether the entry that it names, an earlier one, is an update of that file. */
static int names_update(struct walk *w, struct kedge_ledger *copy, const struct kedge_follow_claim *c,
                        bool *ret)
{
    struct kedge_buf bytes;
    *ret = false;
    if (c->entry >= c->index) {
        return KEDGE_OK;
    }
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    int err = kedge_ledger_get(copy, c->entry, &bytes);
    if (!err) {
        err = kedge_statement_read(kedge_buf_view(&bytes), &w->st, &w->entry, NULL);
        kedge_buf_deinit(&w->entry.payload);
        *ret = !err && w->st.kind == KEDGE_ST_UPDATE && kedge_hash_eq(&w->st.subject, &c->digest);
        err = err == KEDGE_E_NOMEM ? err : KEDGE_OK;
    }
    kedge_buf_deinit(&bytes);
    return err == KEDGE_E_WITHHELD ? KEDGE_OK : err;
}

/* The file goes first and its digest is noted after that. A claim is counted as settled only when both
 * are done, so after an error the next call begins with the same claim. */
static int settle(struct walk *w, struct kedge_ledger *copy, struct kedge_blobs *blobs,
                  const struct kedge_follow_claim *c, struct kedge_diag *d)
{
    bool is_update;
    int err = names_update(w, copy, c, &is_update);
    if (err) {
        return kedge_diag_set(d, err, "entry %llu of the tenant's ledger: %s", (unsigned long long)c->entry,
                              kedge_strerror(err));
    }
    if (!is_update) {
        refuse(w->e, c->index, "the entry that it names is no update of that file");
        return KEDGE_OK;
    }
    err = kedge_blobs_find(blobs, &c->digest, NULL) == KEDGE_E_NOT_FOUND
              ? kedge_blobs_unstage(blobs, &c->digest, d) /* a fetch may have been interrupted */
              : kedge_blobs_remove(blobs, &c->digest, d);
    return err ? err : keep_digest(w->e, &c->digest);
}

static int compare(const void *a, const void *b)
{
    return kedge_hash_cmp(a, b);
}

struct ending {
    struct walk *w;
    struct kedge_ledger *copy;
    const struct kedge_id *job;
};

/* KEDGE_E_EXISTS: an update of the job that nobody ordered to be erased. */
static int visit_update(void *arg, uint64_t index, struct kedge_view bytes)
{
    const struct ending *n = arg;
    struct walk *w = n->w;
    (void)index;
    int err = bytes.len > 0 ? kedge_statement_read(bytes, &w->st, &w->entry, NULL) : KEDGE_E_FORMAT;
    bool is_kept = !err && w->st.kind == KEDGE_ST_UPDATE && kedge_id_eq(&w->st.u.update.job, n->job)
                   && !bsearch(&w->st.subject, w->e->digests, w->e->count, sizeof *w->e->digests, compare);
    if (bytes.len > 0) {
        kedge_buf_deinit(&w->entry.payload);
    }
    return err == KEDGE_E_NOMEM ? err : is_kept ? KEDGE_E_EXISTS : KEDGE_OK;
}

/* The ledger's word that a key has nothing left to open; that no file is here says little. */
static bool is_over(void *arg, const struct kedge_id *job)
{
    struct ending *n = arg;
    n->job = job;
    return kedge_ledger_for_each(n->copy, 0, visit_update, n) == KEDGE_OK;
}

int kedge_follow_erase(struct kedge_follow_erased *e, struct kedge_ledger *copy, struct kedge_blobs *blobs,
                       struct kedge_diag *reterr)
{
    struct walk *w = kedge_mem_new(1, sizeof *w);
    size_t before = e->count;
    if (!w) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "the tenant's erasures: out of memory");
    }
    w->e = e;
    int err = kedge_ledger_for_each(copy, e->next, visit_entry, w);
    if (err) {
        (void)kedge_diag_set(reterr, err, "the tenant's erasures: %s", kedge_strerror(err));
    }
    for (; e->settled < e->claim_count && !err; e->settled += err ? 0 : 1) {
        err = settle(w, copy, blobs, &e->claims[e->settled], reterr);
    }
    if (e->settled == e->claim_count) {
        e->settled = e->claim_count = 0;
    }
    if (e->count > before) {
        struct ending n = {w, copy, NULL};
        size_t shredded;
        qsort(e->digests, e->count, sizeof *e->digests, compare);
        if (!err) {
            err = kedge_blobs_shred(blobs, is_over, &n, &shredded, reterr);
        }
    }
    kedge_mem_free(w);
    return err;
}

bool kedge_follow_is_erased(const struct kedge_follow_erased *e, const struct kedge_blob_wanted *wanted)
{
    return wanted->want == KEDGE_WANT_ERASED
           || (wanted->want == KEDGE_WANT_UPDATE && e->count > 0
               && bsearch(&wanted->digest, e->digests, e->count, sizeof *e->digests, compare));
}
