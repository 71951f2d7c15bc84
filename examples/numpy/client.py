#!/usr/bin/env python3
"""A network with one hidden layer, in NumPy alone, as a trainer of Kedge."""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for digits.py

import kedge
from digits import load

HIDDEN = 32


class DigitsClient(kedge.NumPyClient):
    names = ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]
    understands = {"proximal"}
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
        base, w = parameters, [p.astype(np.float64) for p in parameters]
        rng, loss, steps = np.random.default_rng(config["seed"]), 0.0, 0
        for _ in range(config["epochs"]):
            order = rng.permutation(len(y))
            for batch in np.array_split(order, max(1, len(y) // config["batch"])):
                gradients, loss = self.gradients(w, x[batch], y[batch])
                for p, g, b in zip(w, gradients, base):
                    p -= config["lr"] * (g + config.get("proximal", 0) * (p - b))
                steps += 1
        return w, len(y), {"steps": steps, "train_loss": loss, "labels": np.bincount(y, minlength=10).tolist()}

    def evaluate(self, parameters, config):
        _, _, x, y = self.set_data(config)
        p = self.forward(parameters, x)[1]
        loss = -np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean()
        return float(loss), len(y), {"accuracy": float((p.argmax(1) == y).mean())}

    @staticmethod
    def forward(w, x):
        hidden = np.maximum(x @ w[0].T + w[1], 0)
        logits = hidden @ w[2].T + w[3]
        e = np.exp(logits - logits.max(1, keepdims=True))
        return hidden, e / e.sum(1, keepdims=True)

    @classmethod
    def gradients(cls, w, x, y):
        hidden, p = cls.forward(w, x)
        loss = float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean())
        d = p
        d[np.arange(len(y)), y] -= 1
        d /= len(y)
        below = (d @ w[2]) * (hidden > 0)
        return [below.T @ x, below.sum(0), d.T @ hidden, d.sum(0)], loss


if __name__ == "__main__":
    kedge.run(DigitsClient(), trainer="digits-numpy")
