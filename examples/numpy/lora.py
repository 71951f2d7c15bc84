#!/usr/bin/env python3
"""LoRA in NumPy alone, as a trainer of Kedge: y = x (W + A B), where W is frozen and A and B are trained and sent."""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for digits.py

import kedge
from digits import load

RANK = 4


class LoraClient(kedge.NumPyClient):
    names = ["fc.weight", "lora.a", "lora.b"]

    def get_parameters(self, config):
        """The base, here random, and its adapters. B is zero, so that the first model is the base."""
        rng = np.random.default_rng(1)
        return [rng.normal(0, 0.1, (64, 10)), rng.normal(0, 0.3, (64, RANK)), np.zeros((RANK, 10))]

    def fit(self, parameters, config):
        x, y, _, _ = load(config["data"])
        frozen, a, b = parameters  # config["trainable"] is ["lora.a", "lora.b"]
        rng, steps, losses = np.random.default_rng(config["seed"]), 0, []
        for _ in range(config["epochs"]):
            for batch in np.array_split(rng.permutation(len(y)), max(1, len(y) // config["batch"])):
                d, loss = self.gradient(x[batch] @ (frozen + a @ b), y[batch])
                moved = x[batch].T @ d
                a, b = a - config["lr"] * moved @ b.T, b - config["lr"] * a.T @ moved
                losses.append(loss)
                steps += 1
        return [a, b], len(y), {"steps": steps, "train_loss": losses[-1]}  # what is frozen may be left out

    def evaluate(self, parameters, config):
        _, _, x, y = load(config["data"])
        frozen, a, b = parameters
        scores = x @ (frozen + a @ b)
        return self.gradient(scores, y)[1], len(y), {"correct": int((scores.argmax(1) == y).sum())}

    @staticmethod
    def gradient(scores, y):
        """Of the mean cross entropy by the scores; and that itself."""
        p = np.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss = float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean())
        p[np.arange(len(y)), y] -= 1
        return p / len(y), loss


if __name__ == "__main__":
    kedge.run(LoraClient(), trainer="digits-lora")
