"""docs/record.md, "Base weights" and the cap on a tenant's share."""

import math

from verifier.arithmetic import cap_shares

VOTE = 1 << 20

def exact_square(values):
    """*Lengths*: the sum of squares, exact, and then one binary64 number of its two halves."""
    total = sum(q * q for q in values)
    return float(total >> 32) * 2.0**32 + float(total & 0xFFFFFFFF)

def whole(shares):
    """Real shares become whole numbers and a divisor."""
    divisor = max(1, min(int(2.0**20 / max(shares)), 1 << 44))
    return [max(1, int(share * float(divisor) + 0.5)) for share in shares], divisor

def in_order(values):
    total = 0.0
    for value in values:
        total += value
    return total

def fednova(job, inputs):
    rated = job.spec.get("batch") == "auto"
    samples = [float(i.states["samples"]) for i in inputs]
    way = [float(i.states["steps"]) * (float(i.states["learning_rate"]) if rated else 1.0) for i in inputs]
    every = in_order(samples)
    far = min(in_order(s * w for s, w in zip(samples, way)) / every, 16.0 * sorted(way)[(len(way) - 1) // 2])
    return whole([s / every * (far / w) for s, w in zip(samples, way)])

def power(base, halves):
    """F^(h/2) by products and one root."""
    if halves < 0:
        return 1.0 / math.sqrt(base)
    out = 1.0
    for _ in range(halves // 2):
        out *= base
    return out * math.sqrt(base) if halves % 2 else out

def qffl(job, inputs):
    q, rate = job.options["fairness"], 1.0 / job.number("learning_rate", "0.01")
    halves, total, owns, unit = int(2 * q), 0.0, [], 2.0**-job.scale
    for i in inputs:
        loss, square = max(float(i.states.get("loss", 0)), 1e-10), exact_square(i.values) * unit * unit
        own = rate * power(loss, halves)
        total += own
        if halves > 0:
            total += q * power(loss, halves - 2) * (rate * rate * square)
        owns.append(own)
    return whole([own / total for own in owns])

def fedbuff(number, inputs):
    return whole([1.0 / math.sqrt(1.0 + (number - i.states["round"])) / len(inputs) for i in inputs])

def base_weights(job, round_, inputs):
    """(weights, divisor) of an aggregate's inputs, before the cap."""
    if job.rule not in ("mean", "geometric-median", "norm-clipping"):
        weights = [VOTE] * len(inputs)
    elif round_.kind == "pretrain" or job.strategy in ("ifca", "fesem"):
        weights = [1] * len(inputs)
    elif job.strategy == "fednova":
        return fednova(job, inputs)
    elif job.strategy == "qffl":
        return qffl(job, inputs)
    elif job.strategy == "fedbuff":
        return fedbuff(round_.number, inputs)
    else:
        weights = [i.states["samples"] for i in inputs]
    return weights, sum(weights)

def cap(tenants, weights, divisor, share):
    """Weights that give no tenant more than its share; the divisor changes as their sum does."""
    if share >= 10**6:
        return weights, divisor
    capped = cap_shares(list(zip(tenants, weights)), share)
    return capped, max(1, divisor * sum(capped) // sum(weights))
