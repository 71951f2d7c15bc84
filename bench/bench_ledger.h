/* Durable statements per second on one ledger. */
#ifndef KEDGE_BENCH_BENCH_LEDGER_H
#define KEDGE_BENCH_BENCH_LEDGER_H

/* Medians of several runs; rates in statements per second of wall time, cpu_us the process's CPU time per
 * statement, which a busy machine does not distort. */
struct kedge_bench_ledger {
    double rate, low, high; /* the whole path */
    double verify_rate;     /* Ed25519 verification alone, the same two threads */
    double lmdb_rate;       /* LMDB alone, 256 entries a commit */
    double entries_per_commit;
    double cpu_us, verify_cpu_us;
};
/* Works in a folder of /tmp that it removes. Negative kedge_err on failure, said on stderr. */
int kedge_bench_ledger(struct kedge_bench_ledger *ret);

#endif
