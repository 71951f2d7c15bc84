/* Speed of the integer FedAvg pass beside the machine's reads and plain float sums. */
#ifndef KEDGE_BENCH_BENCH_AGGREGATION_H
#define KEDGE_BENCH_BENCH_AGGREGATION_H

/* Medians in 10^9 bytes per second, counted on source bytes. */
struct kedge_bench_mean {
    double mean;   /* the pass */
    double read;   /* reading alone */
    double passes; /* a float sum that goes over memory once per source, as torch's add does */
    double fused;  /* a float sum in one pass */
};

enum kedge_bench_pages {
    KEDGE_BENCH_PAGES_SMALL,
    KEDGE_BENCH_PAGES_LARGE, /* of 2 MiB, where the system gives such on request */
};

/* threads: 1 or 2, which share the coordinates; time is the processor time of the one that takes longest.
 * Negative kedge_err on failure. */
int kedge_bench_aggregation_mean(unsigned threads, enum kedge_bench_pages pages,
                                 struct kedge_bench_mean *ret);

#endif
