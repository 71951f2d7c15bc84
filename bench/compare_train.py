#!/usr/bin/env python3
"""Training steps of kedge-train's presets in PyTorch, on one thread, for kedge-bench.

    bench/compare_train.py MODEL BATCH     MODEL: mclr, mlp (784-512-10), lenet, femnist-cnn, cifar-cnn, char-lstm

Says "ready", then answers each line on its input, a number of seconds, with samples per second of processor time
over that long. The whole step as one writes it: forward, cross-entropy, autograd, SGD, on a batch that is there
already; no data loader. Ends at the end of its input.
"""
import os
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"


def convolutional(nn, channels, padding, wide):
    layers, before = [], 1
    for out, pad in zip(channels, padding):
        layers += [nn.Conv2d(before, out, 5, padding=pad), nn.ReLU(), nn.MaxPool2d(2)]
        before = out
    layers.append(nn.Flatten())
    for i, (a, b) in enumerate(zip(wide, wide[1:])):
        layers += [nn.Linear(a, b)] + ([nn.ReLU()] if i + 2 < len(wide) else [])
    return nn.Sequential(*layers), (1, 28, 28), wide[-1]


def cifar(nn):
    return nn.Sequential(
        nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(64, 64, 5, padding=2), nn.ReLU(),
        nn.MaxPool2d(3, 2), nn.Flatten(), nn.Linear(64 * 7 * 7, 384), nn.ReLU(), nn.Linear(384, 192), nn.ReLU(),
        nn.Linear(192, 10))


def letters(nn):
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(80, 8), nn.LSTM(8, 256, 2, batch_first=True)
            self.out = nn.Linear(256, 80)

        def forward(self, x):
            return self.out(self.lstm(self.embedding(x))[0][:, -1])

    return Last()


def model(nn, name):
    if name == "char-lstm":
        return letters(nn), (80,), 80
    if name == "cifar-cnn":
        return cifar(nn), (3, 32, 32), 10
    if name == "mclr":
        return nn.Sequential(nn.Linear(784, 10)), (784,), 10
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)), (784,), 10
    if name == "lenet":
        return convolutional(nn, [6, 16], [2, 0], [400, 120, 84, 10])
    return convolutional(nn, [32, 64], [2, 2], [3136, 2048, 62])


def main():
    try:
        import torch
    except ImportError:
        return 0
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net, shape, classes = model(torch.nn, sys.argv[1])
    batch = int(sys.argv[2])
    is_text = sys.argv[1] == "char-lstm"
    x = torch.randint(0, 80, (batch, *shape)) if is_text else torch.rand(batch, *shape)
    y = torch.randint(0, classes, (batch,))
    sgd, loss = torch.optim.SGD(net.parameters(), lr=0.001), torch.nn.CrossEntropyLoss()

    def step():
        sgd.zero_grad()
        loss(net(x), y).backward()
        sgd.step()

    for _ in range(3):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        begin, samples, spent = time.process_time(), 0, 0.0
        while spent < float(line):
            step()
            samples += batch
            spent = time.process_time() - begin
        print("%.1f" % (samples / spent), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
