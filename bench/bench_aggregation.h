/* Speed of the integer FedAvg pass beside the machine's reads and plain float sums. */
#ifndef KEDGE_BENCH_BENCH_AGGREGATION_H
#define KEDGE_BENCH_BENCH_AGGREGATION_H

/* Medians, one thread, 10^9 bytes per second counted on source bytes: the pass; reading alone; a float sum
 * that goes over memory once per source (as torch's add does); a float sum in one pass. Negative kedge_err on
 * failure. */
int kedge_bench_aggregation_mean(double *ret_gbps, double *ret_read_gbps, double *ret_float_gbps,
                                 double *ret_float_fused_gbps);

#endif
