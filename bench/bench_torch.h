/* torch's float sums, measured by bench/compare_torch.py in a process of its own. */
#ifndef KEDGE_BENCH_BENCH_TORCH_H
#define KEDGE_BENCH_BENCH_TORCH_H

/* 10^9 bytes per second, counted on source bytes: the fastest of torch's ways to add ten sources of 45 MB,
 * one thread. KEDGE_E_NOT_FOUND: there is no Python with torch. */
int kedge_bench_torch(double *ret_gbps);

#endif
