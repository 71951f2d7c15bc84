/* What every table of client/train/ops.h must do, as one test program per back end:
 * test_train_ops.c for the CPU; others call the same suite with their own table. */
#ifndef KEDGE_TESTS_CONTRACT_TRAIN_OPS_H
#define KEDGE_TESTS_CONTRACT_TRAIN_OPS_H

#include "client/train/ops.h"

/* Runs the suite; the number of failed tests. tolerance: largest deviation of a gradient from central
 * differences, in units of its largest component. */
int train_ops_suite(const struct kedge_ops *ops, double tolerance);

#endif
