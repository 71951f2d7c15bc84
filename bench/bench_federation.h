/* Whole federations as real processes over TLS on loopback, by `kedge poc`, and what they cost. */
#ifndef KEDGE_BENCH_BENCH_FEDERATION_H
#define KEDGE_BENCH_BENCH_FEDERATION_H

#include <stdbool.h>

/* Files of a run stay in a folder of $TMPDIR (default /tmp) until kedge_bench_clean, those of large models
 * until it ends. */
struct kedge_bench_run {
    unsigned inputs, classes; /* model: (inputs + 1) × classes floats; 0: poc's own job with real training */
    unsigned sites, rounds;
    unsigned groups;    /* of sites, 0: 1; with more only memory is measured */
    bool plain;         /* tcp on loopback in place of TLS */
    bool plain_blobs;   /* updates are not encrypted at rest */
    bool unchanged;     /* kedge-train-identity: every update and model is the same bytes */
    bool noise;         /* kedge-bench-trainer-noise: every weight changes, so that updates pack badly */
    bool idle;          /* afterwards, measure an idle client */
    unsigned timeout_s; /* the run is given up */
};

struct kedge_bench_cost {
    double round_s;        /* median round, from its opening to the next one's */
    double first_round_s;  /* from poc's start to the end of the first round */
    double coordinator_mb; /* peak RssAnon of kedge-coordinator */
    double client_mb;      /* VmRSS of an idle kedge-client */
};

/* Negative kedge_err on failure, said on stderr. */
int kedge_bench_federation(const struct kedge_bench_run *run, struct kedge_bench_cost *ret);
/* Removes what the runs left. */
int kedge_bench_clean(void);
/* Median seconds of a 4 KB append with fdatasync(2) where the runs keep their files. Negative on failure. */
double kedge_bench_sync(unsigned times);
/* Median seconds from starting `kedge --version` to its end. Negative on failure. */
double kedge_bench_start(unsigned times);

#endif
