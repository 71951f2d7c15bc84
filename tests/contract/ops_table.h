/* The contract of client/train/ops.h as checks that any table must pass: every operation against formulas in
 * double precision (ops_table_reference.h), in shapes around the blocks of kernels, at addresses that begin
 * nowhere in particular, between guards that nobody may write to. No test library, so that scripts/gpu-check
 * runs the same on a device.
 *
 * Numbers are compared by |got − want| ≤ tolerance · 2^-23 · √terms · (|want| + root mean square of want),
 * where terms is how many products a value sums up. Every comparison is then shown to fail for one value that
 * is off by 1 %. */
#ifndef KEDGE_TESTS_CONTRACT_OPS_TABLE_H
#define KEDGE_TESTS_CONTRACT_OPS_TABLE_H

#include "client/train/ops.h"
#include "common/base/rng.h"

enum { OPS_TABLE_SITES_MAX = 8, OPS_TABLE_TENSORS = 24, OPS_TABLE_GUARD = 17, OPS_TABLE_TEXT = 512 };
#define OPS_TABLE_TOLERANCE 16.0

/* Floats of every site, on the device between guards and as they were put there. */
struct tensor {
    size_t count; /* of one site */
    void *block;
    float *at; /* on the device */
    float *host, *got;
    double *want;
};

struct suite {
    const struct kedge_ops *ops;
    struct kedge_device *dev;
    uint32_t sites;
    struct kedge_rng rng;
    char *text; /* what was wrong first; "" so far nothing */
    char what[128];
    struct tensor tensors[OPS_TABLE_TENSORS];
    uint32_t tensors_count;
    uint32_t counts[OPS_TABLE_SITES_MAX]; /* samples of each site in this step */
    unsigned long checks;
};

/* All of the contract on a device opened so: NULL, or what was wrong (text, of OPS_TABLE_TEXT bytes).
 * *ret_checks: comparisons made. */
const char *ops_table_check(const struct kedge_ops *ops, const struct kedge_ops_config *config, uint64_t seed,
                            char *text, unsigned long *ret_checks);

/* ---- for the checks ---- */

bool suite_failed(const struct suite *s);
void suite_fail(struct suite *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Names the case, for messages; gives back the tensors of the one before; tells the step's moment: n samples,
 * of which sites but the first have fewer, and the last, when there are several, none. */
void suite_case(struct suite *s, uint32_t n, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Random values from −size to size. */
struct tensor *tensor_random(struct suite *s, size_t count, double size);
/* To be written: NaN. */
struct tensor *tensor_empty(struct suite *s, size_t count);
/* The device gets host again. */
void tensor_put(struct suite *s, struct tensor *t);
/* Rows of `width` behind each site's count become 0. */
void tensor_mask(struct suite *s, struct tensor *t, size_t width);
/* want, which the caller has filled for every site, against what the device has. */
void tensor_check(struct suite *s, struct tensor *t, size_t terms, const char *name);
/* The first `rows` rows of `width` only, and of each site only those that count. */
void tensor_check_rows(struct suite *s, struct tensor *t, size_t width, size_t terms, const char *name);

void ops_table_layers(struct suite *s);   /* dense, conv2d, pools */
void ops_table_sequence(struct suite *s); /* embedding, lstm, norm */
void ops_table_rest(struct suite *s);     /* pointwise, dropout, losses, parameters */
void ops_table_device(struct suite *s);   /* memory, data, recordings */

#endif
