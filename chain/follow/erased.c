#include "chain/follow/erased.h"

#include <stdlib.h>

#include "common/base/mem.h"

static int compare(const void *a, const void *b)
{
    return kedge_hash_cmp(a, b);
}

static int take(void *arg, const struct kedge_blob_wanted *wanted)
{
    struct kedge_follow_erased *e = arg;
    if (wanted->want != KEDGE_WANT_ERASED) {
        return KEDGE_OK;
    }
    if (e->count == e->cap) {
        size_t cap = e->cap ? 2 * e->cap : 64;
        struct kedge_hash *p = kedge_mem_resize(e->digests, cap, sizeof *p);
        if (!p) {
            return KEDGE_E_NOMEM;
        }
        e->digests = p;
        e->cap = cap;
    }
    e->digests[e->count++] = wanted->digest;
    return KEDGE_OK;
}

int kedge_follow_erase(struct kedge_ledger *copy, uint64_t from, struct kedge_blobs *blobs,
                       struct kedge_follow_erased *ret, struct kedge_diag *reterr)
{
    int err = kedge_follow_blobs(copy, from, NULL, take, ret);
    for (size_t i = 0; i < ret->count && !err; i++) {
        if (kedge_blobs_find(blobs, &ret->digests[i], NULL) == KEDGE_OK) {
            err = kedge_blobs_remove(blobs, &ret->digests[i], reterr);
        }
    }
    if (ret->count > 1) {
        qsort(ret->digests, ret->count, sizeof *ret->digests, compare);
    }
    return err;
}

bool kedge_follow_is_erased(const struct kedge_follow_erased *e, const struct kedge_blob_wanted *wanted)
{
    return wanted->want == KEDGE_WANT_ERASED
           || (wanted->want == KEDGE_WANT_UPDATE && e->count > 0
               && bsearch(&wanted->digest, e->digests, e->count, sizeof *e->digests, compare));
}
