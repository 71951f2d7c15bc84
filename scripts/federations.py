"""Federations of many kinds, drawn anew from a number: data, sites, learning rate. For scripts/experiments --generalise.

A strategy's settings are chosen on some data; whether they hold elsewhere shows on data that were not there then. Federation n
of seed s is the same wherever it is drawn, and another s draws others. What varies: what tells sites apart (nothing, label
skew, labels with other meanings, features that are turned, pairs of classes that are exchanged), into how many kinds of sites
(2 to 40), how many samples each has, whether their data change midway, how fast they learn, and how many groups a job was told
to begin with, which nobody knows before."""

import math

import numpy as np

STRUCTURES = ["iid", "skew", "permuted", "rotated", "swapped"]
PLANTED = ["permuted", "rotated", "swapped"]


def log_uniform(rng, least, most):
    return math.exp(rng.uniform(math.log(least), math.log(most)))


def draw(seed, number):
    """What federation `number` is like, as words and numbers."""
    rng = np.random.default_rng([seed, number])
    structure = STRUCTURES[number % len(STRUCTURES)]
    sites = int(round(log_uniform(rng, 24, 160)))
    kinds = 1
    if structure in PLANTED:
        most = min(40, sites // 4)
        kinds = min(most, int(round(log_uniform(rng, 2, most))))
    return {
        "structure": structure,
        "sites": sites,
        "kinds": kinds,
        "classes": int(rng.integers(4, 11)),
        "features": int(rng.integers(12, 41)),
        "alpha": round(log_uniform(rng, 0.1, 2), 3) if structure == "skew" else None,
        "samples": int(round(log_uniform(rng, 30, 120))),
        "unequal": round(float(rng.uniform(1, 4)), 2),
        "noise": round(float(rng.uniform(0.8, 1.6)), 2),
        "mislabelled": round(float(rng.uniform(0, 0.1)), 3),
        "drift": bool(rng.random() < 0.25) if structure in PLANTED else False,
        "hidden": bool(rng.random() < 0.25),
        "learning_rate": round(log_uniform(rng, 0.02, 0.2), 4),
        "local_epochs": int(rng.choice([1, 2, 5])),
        "rounds": 80,
        "sites_per_round": max(8, sites // 8),
        "groups": int(rng.integers(2, 9)),
    }


class Kind:
    """What a kind of sites does to a sample of the task that all have in common."""

    def __init__(self, rng, what, number):
        n, d = what["classes"], what["features"]
        self.labels, self.turn = np.arange(n), None
        if what["structure"] == "permuted" and number > 0:
            self.labels = rng.permutation(n)
        if what["structure"] == "swapped" and number > 0:
            a, b = rng.choice(n, 2, replace=False)
            self.labels[[a, b]] = self.labels[[b, a]]
        if what["structure"] == "rotated" and number > 0:
            self.turn = np.linalg.qr(rng.normal(size=(d, d)))[0]

    def __call__(self, x, y):
        return x if self.turn is None else x @ self.turn, self.labels[y]


def samples_of(rng, what, means, count, shares):
    """Each class is two clouds, so that a straight border does not say all."""
    y = rng.choice(what["classes"], size=count, p=shares)
    x = means[y, rng.integers(0, 2, size=count)] + what["noise"] * rng.normal(size=(count, what["features"]))
    wrong = rng.random(count) < what["mislabelled"]
    return x, np.where(wrong, rng.integers(0, what["classes"], size=count), y)


def site_samples(rng, what, means, kinds, kind, step):
    count = max(12, int(what["samples"] * what["unequal"] ** rng.uniform(-1, 1)))
    n = what["classes"]
    shares = np.full(n, 1 / n) if what["alpha"] is None else rng.dirichlet(np.full(n, what["alpha"]))
    x, y = kinds[kind](*samples_of(rng, what, means, count, shares))
    return x, y, np.full(count, step)


def data(seed, number, what):
    """Arrays of an npz file: x, y, client, step and, where kinds are planted, group."""
    rng = np.random.default_rng([seed, number, 1])
    means = rng.normal(size=(what["classes"], 1, what["features"])) * 0.55 + 0.25 * rng.normal(size=(what["classes"], 2, what["features"]))
    kinds = [Kind(rng, what, k) for k in range(what["kinds"])]
    parts = []
    for site in range(what["sites"]):
        kind = site % what["kinds"]
        found = [site_samples(rng, what, means, kinds, kind, 0)]
        if what["drift"]:  # a third of the sites become another kind, their labels are as often as before
            later = int(rng.integers(what["kinds"])) if rng.random() < 1 / 3 else kind
            found.append(site_samples(rng, what, means, kinds, later, 1))
        for x, y, step in found:
            parts.append((x, y, step, np.full(len(y), site), np.full(len(y), kind)))
    x, y, step, client, group = (np.concatenate([p[i] for p in parts]) for i in range(5))
    out = {"x": x.astype(np.float32), "y": y.astype(np.int64), "client": client.astype(np.int64)}
    if what["drift"]:
        out["step"] = step.astype(np.int64)
    elif what["kinds"] > 1:
        out["group"] = group.astype(np.int64)
    return out


def spec(seed, number, what, path):
    """What `kedge sim` reads."""
    found = {"partition": "clients", "images": path}
    if what["drift"]:
        found.update(step="step", steps=[what["rounds"] // 2])
    elif what["kinds"] > 1:
        found["group"] = "group"
    layers = [{"type": "dense", "in": what["features"], "out": what["classes"]}]
    if what["hidden"]:
        layers = [{"type": "dense", "in": what["features"], "out": 32}, {"type": "relu"},
                  {"type": "dense", "in": 32, "out": what["classes"]}]
    return {"name": f"federation-{seed}-{number}", "seed": str(1000 * seed + number), "model": {"layers": layers},
            "rounds": what["rounds"], "sites_per_round": what["sites_per_round"], "local_epochs": what["local_epochs"], "batch": 10,
            "learning_rate": what["learning_rate"], "l2": 0.001, "bound": 2047, "weight_max": 100000, "groups": what["groups"],
            "world": {"data": found, "held_back": 0.2}}
