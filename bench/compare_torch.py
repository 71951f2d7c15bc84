#!/usr/bin/env python3
"""torch's float sums over the shape of the row mean-kernel, beside bench_aggregation, on one thread.

    bench/compare_torch.py [BUILD/bin/bench_aggregation]
    bench/compare_torch.py --torch        only torch's rates, a line each: for kedge-bench's row mean-vs-torch

Ten sources of 45 MB. torch: acc.add_(x, alpha=w) per source, and torch.stack(sources).sum(0). Both programs
count source bytes, take the processor time of their own thread and the median of 9; they take turns three
times, and the medians of these are printed with their ratio. Where torch is missing it says so and ends.
"""
import os
import re
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
SOURCES, COORDINATES, RUNS, TURNS = 10, 45 * 1000 * 1000 // 4, 9, 3
GIGABYTES = 1e-9 * SOURCES * COORDINATES * 4


def median_rate(function):
    function()
    seconds = []
    for _ in range(RUNS):
        start = time.thread_time()
        function()
        seconds.append(time.thread_time() - start)
    return GIGABYTES / statistics.median(seconds)


def main():
    bench = sys.argv[1] if len(sys.argv) > 1 else "build/bench/bin/bench_aggregation"
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed for", sys.executable)
        return 0
    alone = bench == "--torch"
    if not alone and not os.access(bench, os.X_OK):
        print(f"{bench}: not there; build it: ninja -C BUILD bench_aggregation", file=sys.stderr)
        return 1
    torch.set_num_threads(1)
    torch.manual_seed(1)
    sources = [torch.randn(COORDINATES) * 0.01 for _ in range(SOURCES)]
    weights = [1.0 / (k + 3) for k in range(SOURCES)]
    base = torch.randn(COORDINATES)
    acc = torch.empty(COORDINATES)

    def add_each():
        acc.copy_(base)
        for x, w in zip(sources, weights):
            acc.add_(x, alpha=w)

    def stack_sum():
        torch.sum(torch.stack(sources), dim=0, out=acc)

    if alone:
        print(f"GB/s {median_rate(add_each):.4f}")
        print(f"GB/s {median_rate(stack_sum):.4f}")
        return 0
    rates = {"kedge": [], "read": [], "add_": [], "stack().sum(0)": []}
    for _ in range(TURNS):
        said = subprocess.run([bench], check=True, capture_output=True, text=True).stdout
        mean, read = re.findall(r" 1 thread.*= ([0-9.]+) GB/s; read ([0-9.]+) GB/s", said)[-1]  # the widest path
        rates["kedge"].append(float(mean))
        rates["read"].append(float(read))
        rates["add_"].append(median_rate(add_each))
        rates["stack().sum(0)"].append(median_rate(stack_sum))
    middle = {name: statistics.median(of) for name, of in rates.items()}
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, one thread, GB/s of source bytes")
    for name, rate in middle.items():
        print(f"  {name:16} {rate:6.2f}   kedge is {middle['kedge'] / rate:.2f} times that")
    return 0


if __name__ == "__main__":
    sys.exit(main())
