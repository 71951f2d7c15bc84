/* The stack holds full subtrees, like the peaks of a Merkle tree in the making. */
#include "aggregation/reduce.h"

#include <stdbool.h>

#include "common/base/err.h"

void kedge_reduce_init(struct kedge_reduce *reduce)
{
    *reduce = (struct kedge_reduce){.count = 0};
}

void kedge_reduce_push(struct kedge_reduce *reduce, double leaf)
{
    double sum = leaf;
    int level = 0;
    for (; level < 63 && (reduce->count >> level & 1) != 0; level++) {
        sum = reduce->stack[level] + sum;
    }
    reduce->stack[level] = sum;
    reduce->count++;
}

double kedge_reduce_root(const struct kedge_reduce *reduce)
{
    double sum = 0.0;
    bool empty = true;
    for (int level = 0; level < 64; level++) {
        if ((reduce->count >> level & 1) != 0) {
            sum = empty ? reduce->stack[level] : reduce->stack[level] + sum;
            empty = false;
        }
    }
    return sum;
}

/* Sum of squares of one block, n <= KEDGE_REDUCE_BLOCK; missing elements count as 0. Threads may make
 * leaves in any order; they are pushed in the order of the blocks. */
static double sumsq_block(const float *x, size_t n)
{
    KEDGE_ASSERT(n <= KEDGE_REDUCE_BLOCK);
    double lane[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (size_t l = 0; l < 8; l++) {
            lane[l] += (double)x[i + l] * (double)x[i + l];
        }
    }
    for (size_t l = 0; i + l < n; l++) {
        lane[l] += (double)x[i + l] * (double)x[i + l];
    }
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

void kedge_sumsq_push(struct kedge_reduce *reduce, const float *x, size_t n)
{
    for (size_t done = 0; done < n; done += KEDGE_REDUCE_BLOCK) {
        size_t block = n - done < KEDGE_REDUCE_BLOCK ? n - done : KEDGE_REDUCE_BLOCK;
        kedge_reduce_push(reduce, sumsq_block(x + done, block));
    }
}
