#!/usr/bin/env python3
"""The loop of the rows sim-learn in NumPy and in PyTorch, for kedge-bench.

    bench/compare_learn.py [--machine] [FOLDER]

Rates of both, a line each: name, sample visits per second of processor time on one thread; with --machine per second by
the clock, with as many threads as the libraries like. FOLDER: on its MNIST files instead of random images.

FedAvg with a linear classifier: 1000 clients with log-normal amounts of 784 pixels, 20 of them per round, 10
epochs in batches of 10, SGD with L2, then the weighted mean. Both are written as one would write them for speed:
whole batches, no data loader, gradients of the linear model by hand in NumPy, autograd in torch and, as a second
row, torch's matrix products by hand. Where a library is missing that line is left out.
"""
import os
import sys
import time

MACHINE = "--machine" in sys.argv
FOLDER = [word for word in sys.argv[1:] if word != "--machine"]
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    if not MACHINE:  # before the libraries are loaded
        os.environ[name] = "1"
now = time.perf_counter if MACHINE else time.process_time

CLIENTS, PER_ROUND, EPOCHS, BATCH, PIXELS, CLASSES, LR, L2, SECONDS = 1000, 20, 10, 10, 784, 10, 0.03, 0.001, 4.0


def load(np, folder):
    rng = np.random.RandomState(1)
    if folder:
        with open(os.path.join(folder, "train-images-idx3-ubyte"), "rb") as f:
            x = np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, PIXELS).astype(np.float32) / 255
        with open(os.path.join(folder, "train-labels-idx1-ubyte"), "rb") as f:
            y = np.frombuffer(f.read(), np.uint8, offset=8).astype(np.int64)
    else:
        x = rng.rand(60000, PIXELS).astype(np.float32)
        y = rng.randint(0, CLASSES, len(x)).astype(np.int64)
    sizes = rng.lognormal(0, 2, CLIENTS)
    sizes = np.maximum(9, (sizes / sizes.sum() * len(x)).astype(int))
    starts = np.minimum(np.concatenate([[0], np.cumsum(sizes)[:-1]]), len(x) - sizes)
    return x, y, sizes, starts


def run(np, data, train, zero, mean):
    """Rounds until the time is up; sample visits per second."""
    x, y, sizes, starts = data
    rng, model, visits, begin = np.random.RandomState(2), zero(), 0, now()
    while now() - begin < SECONDS:
        updates = []
        for c in rng.choice(CLIENTS, PER_ROUND, replace=False):
            rows = slice(starts[c], starts[c] + sizes[c])
            updates.append((sizes[c], train(model, x[rows], y[rows], rng)))
            visits += int(sizes[c]) * EPOCHS
        model = mean(updates)
    return visits / (now() - begin)


def in_numpy(np, data):
    def train(model, x, y, rng):
        w, b = model[0].copy(), model[1].copy()
        for _ in range(EPOCHS):
            order = rng.permutation(len(x))
            for at in range(0, len(x), BATCH):
                rows = order[at:at + BATCH]
                xb, n = x[rows], len(rows)
                z = xb @ w + b
                z -= z.max(axis=1, keepdims=True)
                np.exp(z, out=z)
                z /= z.sum(axis=1, keepdims=True)
                z[np.arange(n), y[rows]] -= 1
                z /= n
                w -= LR * (xb.T @ z + 2 * L2 * w)
                b -= LR * z.sum(axis=0)
        return w, b

    def mean(updates):
        total = sum(n for n, _ in updates)
        return [sum(n * u[k] for n, u in updates) / total for k in (0, 1)]

    zero = lambda: [np.zeros((PIXELS, CLASSES), np.float32), np.zeros(CLASSES, np.float32)]
    return run(np, data, train, zero, lambda u: [a.astype(np.float32) for a in mean(u)])


def in_torch(np, data, by_hand):
    import torch
    if not MACHINE:
        torch.set_num_threads(1)
    x, y, sizes, starts = data
    data = torch.from_numpy(x), torch.from_numpy(y), sizes, starts
    loss = torch.nn.CrossEntropyLoss()

    def train_autograd(model, x, y, rng):
        net = torch.nn.Linear(PIXELS, CLASSES)
        with torch.no_grad():
            net.weight.copy_(model[0])
            net.bias.copy_(model[1])
        sgd = torch.optim.SGD([{"params": [net.weight], "weight_decay": 2 * L2}, {"params": [net.bias]}], lr=LR)
        for _ in range(EPOCHS):
            order = torch.from_numpy(rng.permutation(len(x)))
            for at in range(0, len(x), BATCH):
                rows = order[at:at + BATCH]
                sgd.zero_grad()
                loss(net(x[rows]), y[rows]).backward()
                sgd.step()
        return net.weight.detach(), net.bias.detach()

    def train_by_hand(model, x, y, rng):
        w, b = model[0].clone(), model[1].clone()
        with torch.no_grad():
            for _ in range(EPOCHS):
                order = torch.from_numpy(rng.permutation(len(x)))
                for at in range(0, len(x), BATCH):
                    rows = order[at:at + BATCH]
                    xb, n = x[rows], len(rows)
                    z = torch.softmax(torch.addmm(b, xb, w.t()), 1)
                    z[torch.arange(n), y[rows]] -= 1
                    w.mul_(1 - 2 * LR * L2).addmm_(z.t(), xb, alpha=-LR / n)
                    b.sub_(z.sum(0), alpha=LR / n)
        return w, b

    def mean(updates):
        total = float(sum(n for n, _ in updates))
        return [sum(float(n) / total * u[k] for n, u in updates) for k in (0, 1)]

    zero = lambda: [torch.zeros(CLASSES, PIXELS), torch.zeros(CLASSES)]
    return run(np, data, train_by_hand if by_hand else train_autograd, zero, mean)


def main():
    try:
        import numpy as np
    except ImportError:
        print("skipped: NumPy is not installed for", sys.executable)
        return 0
    data = load(np, FOLDER[0] if FOLDER else None)
    print("numpy %.0f" % in_numpy(np, data))
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed for", sys.executable)
        return 0
    print("torch %.0f" % in_torch(np, data, False))
    print("torch-by-hand %.0f" % in_torch(np, data, True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
