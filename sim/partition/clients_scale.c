/* Missing values and scales of clients, by the functions that treat a site's own files (common/tensor). */
#include <string.h>

#include "common/base/mem.h"
#include "common/tensor/dataset.h"
#include "sim/partition/clients.h"

/* The client's rows as a set of its own, or, with back, from it to where they came from. */
static void copy_rows(struct kedge_clients *c, const uint32_t *rows, uint32_t n, float *x, bool back)
{
    for (uint32_t i = 0; i < n; i++) {
        float *there = c->x + (size_t)rows[i] * c->features, *here = x + (size_t)i * c->features;
        memcpy(back ? there : here, back ? here : there, c->features * sizeof *x);
    }
}

static struct kedge_dataset set_of(float *x, uint32_t n, uint32_t features)
{
    return (struct kedge_dataset){.n = n, .features = features, .reals = x, .scale = 1, .storage = x};
}

int kedge_clients_prepare(struct kedge_clients *c, const struct kedge_partition *p, bool fill,
                          bool standardize, struct kedge_diag *reterr)
{
    for (uint32_t u = 0; u < p->sites_count && (fill || standardize); u++) {
        uint32_t train_n, test_n;
        const uint32_t *train = kedge_partition_train(p, u, &train_n);
        const uint32_t *test = kedge_partition_test(p, u, &test_n);
        float *x = kedge_mem_new((size_t)train_n + test_n, c->features * sizeof *x);
        if (!x) {
            return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u samples of a client",
                                  train_n + test_n);
        }
        float *tested = x + (size_t)train_n * c->features;
        struct kedge_dataset training = set_of(x, train_n, c->features);
        struct kedge_dataset testing = set_of(tested, test_n, c->features);
        copy_rows(c, train, train_n, x, false);
        copy_rows(c, test, test_n, tested, false);
        int err = fill ? kedge_dataset_fill(&training, &testing, NULL, reterr) : KEDGE_OK;
        err = err || !standardize ? err : kedge_dataset_standardize(&training, &testing, reterr);
        copy_rows(c, train, train_n, x, true);
        copy_rows(c, test, test_n, tested, true);
        kedge_mem_free(x);
        if (err) {
            return kedge_diag_wrap(reterr, err, "client \"%.60s\"", c->names[u]);
        }
    }
    return KEDGE_OK;
}
