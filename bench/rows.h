/* A row of kedge-bench, and the measurements that make rows of the vector kernels. */
#ifndef KEDGE_BENCH_ROWS_H
#define KEDGE_BENCH_ROWS_H

#include <stdbool.h>

struct row {
    const char *name, *unit;
    double value, baseline, target;
    bool at_least; /* the target is a lower bound */
    bool holds;
};

enum { ROWS_MAX = 5 };

/* Whether the row was asked for, or all rows are. */
bool kedge_bench_wants(const char *row);

/* Each writes its rows and how many; none where something that it needs is missing, with a word to stderr.
 * Negative kedge_err on failure. */
int kedge_row_mean_kernel(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_mean_vs_torch(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_gram_vs_sgemm(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_grouping_100x45mb(struct row rows[ROWS_MAX], int *ret_count);
/* Seeds of the simulated federation, with the programs that lie beside this one. */
/* A million sites, a thousand of them in a round: rounds per second of processor time (baseline: ten thousand
 * sites) and memory. */
int kedge_row_crowd(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_chaos(struct row rows[ROWS_MAX], int *ret_count);
/* The planner: least part of the exact programme's reward over the settings of its page, energy per data unit
 * in the published setting, processor time of a round of a thousand devices. */
int kedge_row_plan(struct row rows[ROWS_MAX], int *ret_count);
/* Batch sizes by what they cost, replayed on Zeus's traces, 24 workloads: energy and time of the last runs,
 * cost of 20 and of 100 runs, in parts of the default's; none where the traces are not there. */
int kedge_row_batch(struct row rows[ROWS_MAX], int *ret_count);
/* Jobs with two targets, replayed on curves of Zeus's traces, 200 draws: mean time to the first target with
 * the default weight and floor (10 jobs of equal lengths; baseline: as published), the worst job's time to
 * the last one, and how far the published table is from what comes out (baseline: of the worst job's,
 * relative); none where the traces are not there. */
int kedge_row_targets(struct row rows[ROWS_MAX], int *ret_count);
/* Batch sizes within one job: cost for as much learning of its first 60 and of 300 rounds, in parts of the
 * default's (baseline: the worst workload's), and the latter in parts of that of one who knows the best size;
 * none where the traces are not there. */
int kedge_row_rounds(struct row rows[ROWS_MAX], int *ret_count);
/* What looking at meters, battery and temperature once a second takes of a core, and one reading of two
 * packages with memory. */
int kedge_row_meter(struct row rows[ROWS_MAX], int *ret_count);
/* Training steps of presets on one thread, batches of 10, 32 and 128, in turns with PyTorch (the baseline);
 * layers at a batch of 128 by the rate of bare sgemm; most memory of kedge-train with femnist-cnn (baseline:
 * its weights). */
int kedge_row_train_mclr(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_train_mlp(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_train_lenet(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_train_femnist(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_train_cifar(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_train_letters(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_train_layers(struct row rows[ROWS_MAX], int *ret_count);
int kedge_row_train_memory(struct row rows[ROWS_MAX], int *ret_count);

#endif
