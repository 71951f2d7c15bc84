/* Rows of the learning simulator: its speed beside NumPy and PyTorch, and how well planted groups are found.
 */
#ifndef KEDGE_BENCH_ROWS_LEARN_H
#define KEDGE_BENCH_ROWS_LEARN_H

#include "bench/rows.h"

/* Sample visits per second of processor time, one thread, against the same loop in NumPy and in PyTorch. */
int kedge_row_learn_speed(struct row rows[ROWS_MAX], int *ret_count);
/* Adjusted Rand index of planted groups: least from round 10 on, at rest and while sites swap their data. */
int kedge_row_learn_groups(struct row rows[ROWS_MAX], int *ret_count);
/* Points of test accuracy by which sites lie above their group at the end of the round in which they came to
 * it, mean over rounds: FlexCFL on Fashion-MNIST by the letters recipe. No row where the images are not
 * there. */
int kedge_row_learn_newcomers(struct row rows[ROWS_MAX], int *ret_count);
/* Updates of training by topk-int8 at a share of 1 %, against whole ones, three seeds: points of accuracy
 * lost in the mean of the last ten rounds, on MNIST and Fashion-MNIST, where all twenty sites take part in
 * every round and where each is selected rarely; and how many times fewer bytes of updates go up. A minute.
 */
int kedge_row_compress(struct row rows[ROWS_MAX], int *ret_count);
/* Differences of test accuracy between two strategies, five seeds each, as docs/experiments measures them
 * with `kedge sim`: FlexCFL against what it was published against, and our best strategy against FlexCFL as
 * published (the part of its error, mean of the last ten rounds, that is removed). Minutes each; they need
 * the images (scripts/get-data). */
int kedge_row_accuracy_published(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_accuracy_best(struct row rows[ROWS_MAX], int *ret_count);

#endif
