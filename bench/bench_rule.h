/* Speed of robust rules over 50 updates of 10 MB, one thread. */
#ifndef KEDGE_BENCH_BENCH_RULE_H
#define KEDGE_BENCH_BENCH_RULE_H

/* Medians of this thread's own time, in 10^6 parameters × updates per second: a rule from updates to result
 * (norms, Gram matrix, weights, tiles), and reading the updates alone. Negative kedge_err on failure. */
struct kedge_bench_rules {
    double median, trimmed_mean, krum, reading;
};
int kedge_bench_rules(struct kedge_bench_rules *ret);

#endif
