#!/usr/bin/env python3
"""PyTorch's samples per second for the nets of models.h, a whole training step as one CUDA graph: MODEL BATCH 1 RATE.

    bench/gpu/torch_graphs.py [SECONDS]      77: no torch, or no device that it can use

A step gathers a batch from data on the device, goes forward and back in F32 (no TF32) and takes SGD's step; the graph is
replayed. Median of five.
"""
import statistics
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    print("# no torch here", file=sys.stderr)
    sys.exit(77)

SAMPLES, TIMES = 2048, 5


class LastOf(nn.Module):
    """Two LSTMs over embedded characters, then the last step's values."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(80, 8)
        self.lstm = nn.LSTM(8, 256, num_layers=2, batch_first=True)
        self.out = nn.Linear(256, 80)

    def forward(self, x):
        return self.out(self.lstm(self.embedding(x))[0][:, -1])


def conv(i, o, pad):
    return [nn.Conv2d(i, o, 5, padding=pad), nn.ReLU()]


MODELS = {
    "mclr": ((784,), 10, lambda: nn.Linear(784, 10)),
    "mlp": ((784,), 10, lambda: nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))),
    "lenet": ((1, 28, 28), 10, lambda: nn.Sequential(
        *conv(1, 6, 2), nn.MaxPool2d(2), *conv(6, 16, 0), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))),
    "femnist-cnn": ((1, 28, 28), 62, lambda: nn.Sequential(
        *conv(1, 32, 2), nn.MaxPool2d(2), *conv(32, 64, 2), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 2048), nn.ReLU(),
        nn.Linear(2048, 62))),
    "cifar-cnn": ((3, 32, 32), 10, lambda: nn.Sequential(
        *conv(3, 64, 2), nn.MaxPool2d(3, 2), *conv(64, 64, 2), nn.MaxPool2d(3, 2), nn.Flatten(), nn.Linear(3136, 384),
        nn.ReLU(), nn.Linear(384, 192), nn.ReLU(), nn.Linear(192, 10))),
    "char-lstm": ((80,), 80, LastOf),
}


class Step:
    """A net, data on the device, and one captured training step of a batch."""

    def __init__(self, name, batch):
        shape, classes, make = MODELS[name]
        self.net = make().cuda()
        self.x = (torch.randint(0, 80, (SAMPLES, *shape), device="cuda") if name == "char-lstm"
                  else torch.rand(SAMPLES, *shape, device="cuda"))
        self.y = torch.randint(0, classes, (SAMPLES,), device="cuda")
        self.rows = torch.zeros(batch, dtype=torch.long, device="cuda")
        self.order = [torch.randint(0, SAMPLES, (batch,), device="cuda") for _ in range(64)]
        self.optimiser = torch.optim.SGD(self.net.parameters(), lr=1e-4)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.run()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.run()

    def run(self):
        self.optimiser.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(self.net(self.x[self.rows]), self.y[self.rows])
        loss.backward()
        self.optimiser.step()

    def seconds(self, steps):
        torch.cuda.synchronize()
        begin = time.monotonic()
        for i in range(steps):
            self.rows.copy_(self.order[i % 64])
            self.graph.replay()
        torch.cuda.synchronize()
        return time.monotonic() - begin


def rate(name, batch, wanted):
    step, steps = Step(name, batch), 20
    while step.seconds(steps) < wanted and steps < 1000000:
        steps *= 4
    return statistics.median(steps * batch / step.seconds(steps) for _ in range(TIMES))


def main():
    if not torch.cuda.is_available():
        print("# torch is here, but no device that it can use", file=sys.stderr)
        return 77
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    wanted = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3
    print(f"# torch {torch.__version__}")
    for name in MODELS:
        for batch in (10, 32, 128):
            print(f"{name} {batch} 1 {rate(name, batch, wanted):.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
