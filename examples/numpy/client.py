#!/usr/bin/env python3
"""A network with one hidden layer, in NumPy alone, as a trainer of Kedge."""
import itertools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for digits.py

import kedge
from digits import load

HIDDEN = 32


class DigitsClient(kedge.NumPyClient):
    names = ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]
    understands = {"proximal", "drift", "momentum", "l2"}
    data = None

    def get_parameters(self, config):
        rng = np.random.default_rng(1)
        return [rng.normal(0, 0.1, (HIDDEN, 64)), np.zeros(HIDDEN), rng.normal(0, 0.1, (10, HIDDEN)), np.zeros(10)]

    def set_data(self, config):
        if self.data is None or self.data[0] != config["data"]:
            self.data = (config["data"], load(config["data"]))
        return self.data[1]

    def fit(self, parameters, config):
        x, y, _, _ = self.set_data(config)
        w, loss, steps = self.descend(x, y, parameters, parameters, config.get("proximal", 0), config)
        return w, len(y), {"steps": steps, "train_loss": loss, "labels": np.bincount(y, minlength=10).tolist()}

    def fit_personal(self, parameters, towards, config):
        x, y, _, _ = self.set_data(config)
        return self.descend(x, y, parameters, towards, config["personal_pull"], config)[0]

    def descend(self, x, y, begin, towards, pull, config):
        w, drift = [p.astype(np.float64) for p in begin], config.get("drift", [0] * len(begin))
        v, loss, steps = [np.zeros(p.shape) for p in w], 0.0, 0
        for batch in self.batches(len(y), config):
            gradients, loss = self.gradients(w, x[batch], y[batch])
            for i, g in enumerate(gradients):
                g += pull * (w[i] - towards[i]) - drift[i] + 2 * config.get("l2", 0) * w[i] * (w[i].ndim > 1)
                v[i] = config.get("momentum", 0) * v[i] + g
                w[i] -= config["lr"] * v[i]
            steps += 1
        return w, loss, steps

    @staticmethod
    def batches(count, config):
        """The samples of each step: of so many steps, or of so many passes."""
        rng, steps = np.random.default_rng(config["seed"]), config.get("steps", 0)
        passes = itertools.count() if steps else range(config["epochs"])
        pieces = (piece for _ in passes for piece in np.array_split(rng.permutation(count), max(1, count // config["batch"])))
        return itertools.islice(pieces, steps or None)

    @staticmethod
    def loss_of(p, y):
        return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean())

    def measure(self, parameters, config):
        x, y, _, _ = self.set_data(config)
        return self.loss_of(self.forward(parameters, x)[1], y)

    def evaluate(self, parameters, config):
        _, _, x, y = self.set_data(config)
        p = self.forward(parameters, x)[1]
        return self.loss_of(p, y), len(y), {"accuracy": float((p.argmax(1) == y).mean())}

    @staticmethod
    def forward(w, x):
        hidden = np.maximum(x @ w[0].T + w[1], 0)
        logits = hidden @ w[2].T + w[3]
        e = np.exp(logits - logits.max(1, keepdims=True))
        return hidden, e / e.sum(1, keepdims=True)

    @classmethod
    def gradients(cls, w, x, y):
        hidden, p = cls.forward(w, x)
        loss, d = cls.loss_of(p, y), p.copy()
        d[np.arange(len(y)), y] -= 1
        d /= len(y)
        below = (d @ w[2]) * (hidden > 0)
        return [below.T @ x, below.sum(0), d.T @ hidden, d.sum(0)], loss


if __name__ == "__main__":
    kedge.run(DigitsClient(), trainer="digits-numpy")
