/* Ledgers: durable statements per second, many tenants, a large one. */
#ifndef KEDGE_BENCH_BENCH_LEDGER_H
#define KEDGE_BENCH_BENCH_LEDGER_H

#include <stddef.h>
#include <stdint.h>

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

/* bench_ledger_scale.c. All work in a folder of $TMPDIR (or /tmp) that they remove. */

/* Signed statements of 900 bytes over eight tenants' ledgers, durable, per second; and bare verification. */
struct kedge_bench_ledger_tenants {
    double rate, verify_rate;
};
int kedge_bench_ledger_tenants(struct kedge_bench_ledger_tenants *ret);

/* One statement each 10 ms, from submission to the durable answer, alone and beside a neighbour that submits
 * as much as its queue takes. */
struct kedge_bench_quiet_tenant {
    double p99_ms, alone_ms;
    double neighbour_rate; /* its statements per second */
};
int kedge_bench_quiet_tenant(struct kedge_bench_quiet_tenant *ret);

/* A ledger of a million small entries, or of $KEDGE_BENCH_ENTRIES. */
struct kedge_bench_large_ledger {
    uint64_t size;
    double build_s;
    double open_ms;                              /* store and ledger, for signing; median */
    double proof_ms;                             /* one inclusion proof with its text */
    size_t proof_bytes, proof_bytes_ten_million; /* the longest text, here and by its levels at ten million */
};
int kedge_bench_large_ledger(struct kedge_bench_large_ledger *ret);

#endif
