/* The partitions of published experiments, re-created from their descriptions, and the usual skews. Each
 * gives a struct kedge_partition over a pool of labelled samples; unlike kedge_partition_make's, some of them
 * use a sample at several sites (the letters recipe as released, FashionMNIST-500 where a class is used up).
 * The same labels, numbers and seed give the same split. Pure.
 *
 * mnist: MNIST-1000; site u has the classes u and u + 1 modulo 10, log-normal amounts; no sample is shared.
 * Generator of litian96/FedProx, data/mnist.
 *
 * letters: site u has three neighbouring classes, the same amount of each, log-normal; at most 4,000 samples
 * of a class. `leak` repeats the fault of the released generator, whose test samples are others' training
 * samples. litian96/FedProx, data/nist.
 *
 * fashion: FashionMNIST-500, five classes a site, training and test samples from the official parts; drawn by
 * NumPy's legacy generator with seed 233, so that it is the same for everybody. Only the order inside a site
 * depends on the seed. litian96/ditto, data/fmnist.
 *
 * iid: equal shares of all samples. dirichlet: equal shares; a site's label shares ~ Dirichlet(alpha) (Hsu et
 * al. 2019). shards: `per_site` shards of samples sorted by label (McMahan et al. 2017). rotated: equal
 * shares of all samples, a seventh of them for testing; site u is to turn its images u mod 4 times. writers:
 * a site per writer. */
#ifndef KEDGE_SIM_PARTITION_RECIPES_H
#define KEDGE_SIM_PARTITION_RECIPES_H

#include "sim/partition/partition.h"

/* Samples 0 … train_n − 1 are the official training part. labels in [0, classes). */
struct kedge_pool_labels {
    const int32_t *labels;
    uint32_t n, train_n, classes;
};

enum { KEDGE_RECIPE_CLASSES = 10, KEDGE_FASHION_SITES = 500, KEDGE_FASHION_CLASSES_PER_SITE = 5 };

/* KEDGE_E_ARG says what does not fit: sites, classes, or a site that would have fewer than two samples. The
 * caller deinits ret (kedge_partition_deinit) after success. */
KEDGE_NODISCARD int kedge_recipe_mnist(const struct kedge_pool_labels *pool, uint32_t sites, uint64_t seed,
                                       struct kedge_partition *ret, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_recipe_letters(const struct kedge_pool_labels *pool, uint32_t sites, bool leak,
                                         uint64_t seed, struct kedge_partition *ret,
                                         struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_recipe_fashion(const struct kedge_pool_labels *pool, uint64_t seed,
                                         struct kedge_partition *ret, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_recipe_iid(const struct kedge_pool_labels *pool, uint32_t sites, uint64_t seed,
                                     struct kedge_partition *ret, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_recipe_dirichlet(const struct kedge_pool_labels *pool, uint32_t sites, double alpha,
                                           uint64_t seed, struct kedge_partition *ret,
                                           struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_recipe_shards(const struct kedge_pool_labels *pool, uint32_t sites,
                                        uint32_t per_site, uint64_t seed, struct kedge_partition *ret,
                                        struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_recipe_rotated(const struct kedge_pool_labels *pool, uint32_t sites, uint64_t seed,
                                         struct kedge_partition *ret, struct kedge_diag *reterr);
/* writers[i] of sample i; a site for every number from 0 to the largest that has two samples, in order. */
KEDGE_NODISCARD int kedge_recipe_writers(const struct kedge_pool_labels *pool, const uint32_t *writers,
                                         uint64_t seed, struct kedge_partition *ret,
                                         struct kedge_diag *reterr);

/* One (site, class) share of FashionMNIST-500: slices of the class's samples in file order, training and
 * test. */
struct kedge_fashion_slice {
    uint32_t class_index, train_start, train_count, test_start, test_count;
};
/* All of them, site by site, class by class; classes of 6,000 training and 1,000 test samples. */
void kedge_fashion_slices(
    struct kedge_fashion_slice slices[KEDGE_FASHION_SITES * KEDGE_FASHION_CLASSES_PER_SITE]);

/* Synthetic(alpha, beta) of litian96/FedProx: 60 features, 10 classes, log-normal amounts, a random linear
 * model per site whose centre is N(0, alpha) away and whose inputs' is N(0, beta). */
enum { KEDGE_SYNTHETIC_FEATURES = 60 };
struct kedge_synthetic {
    uint32_t n;
    float *x;        /* owned, n × KEDGE_SYNTHETIC_FEATURES */
    int32_t *labels; /* owned */
    struct kedge_partition partition;
};
KEDGE_NODISCARD int kedge_recipe_synthetic(uint32_t sites, double alpha, double beta, uint64_t seed,
                                           struct kedge_synthetic *ret, struct kedge_diag *reterr);
void kedge_synthetic_deinit(struct kedge_synthetic *s);

#endif
