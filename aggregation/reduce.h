/* Sums of squares in binary64 over a fixed tree, equal bit for bit however the vector is tiled or shared
 * out. A block is 1,024 elements (the last may be shorter): eight lane sums, lane l taking elements l, l
 * + 8, …; then ((l0 + l4) + (l2 + l6)) + ((l1 + l5) + (l3 + l7)). Block sums are joined as leaves of the
 * tree whose left part is the largest power of two below their number (the shape of RFC 6962). Pure. */
#ifndef KEDGE_AGGREGATION_REDUCE_H
#define KEDGE_AGGREGATION_REDUCE_H

#include <stddef.h>
#include <stdint.h>

enum { KEDGE_REDUCE_BLOCK = 1024 };

struct kedge_reduce {
    uint64_t count;   /* leaves so far; its set bits say which entries of the stack hold */
    double stack[64]; /* stack[k]: sum of a full subtree of 2^k leaves */
};

void kedge_reduce_init(struct kedge_reduce *reduce);
/* Appends the next leaf. */
void kedge_reduce_push(struct kedge_reduce *reduce, double leaf);
/* Root of the tree so far, 0 when empty. */
double kedge_reduce_root(const struct kedge_reduce *reduce);

/* Pushes all blocks of a tile. Every tile but the last is a multiple of KEDGE_REDUCE_BLOCK long. */
void kedge_sumsq_push(struct kedge_reduce *reduce, const float *x, size_t n);

#endif
