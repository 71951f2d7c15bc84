/* What an auditor's work costs, as ratios to the machine's own limits measured in the same run. */
#ifndef KEDGE_BENCH_BENCH_AUDIT_H
#define KEDGE_BENCH_BENCH_AUDIT_H

#include <stdint.h>

struct kedge_bench_audit_verify {
    double rate;        /* statements per second of processor time, everything that `audit verify` does */
    double fast_rate;   /* the same with --fast */
    double verify_rate; /* bare Ed25519 verifications of as many bytes per second of processor time */
};

/* A record of two tenants, 32 sites and 100,000 updates; medians of three runs in turns, on one thread.
 * Negative kedge_err on failure, said on stderr. */
int kedge_bench_audit_verify(struct kedge_bench_audit_verify *ret);

struct kedge_bench_audit_replay {
    double rate;      /* bytes of blobs per second, everything that `audit replay` does */
    double read_rate; /* reading the same files, on as many threads */
    double hash_rate; /* SHA-256 of as many bytes in memory, on as many threads */
};

/* A record with updates of 4.8 MB, evicted from the page cache before each reading; medians of three runs in
 * turns, on all processors. */
int kedge_bench_audit_replay(struct kedge_bench_audit_replay *ret);

struct kedge_bench_audit_memory {
    uint64_t entries; /* of the record */
    double held;      /* bytes that `audit verify` held of no file, the most that was seen */
    double resident;  /* the same with what was mapped in of files */
};

/* A record of KEDGE_BENCH_ENTRIES entries, else 200,000, in $TMPDIR: about 1.3 KB each and 1.5 KB more while
 * they are verified, on all processors. */
int kedge_bench_audit_memory(struct kedge_bench_audit_memory *ret);

#endif
