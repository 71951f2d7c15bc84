"""docs/record.md, "Servers that keep a state", "Mixing", "Edges" and how models are blended."""

import math

from verifier.arithmetic import to_float

from .weights import in_order

def server_step(job, number, before, aggregate, states):
    """(model, states after) of one group; states: one list for each state of the server, zeros at first."""
    o, after, kind = job.options, [], job.server
    rate = o["server_lr"] * (o["settle"] / (o["settle"] + float(number))) if o["settle"] else o["server_lr"]
    decay, second = o["momentum"], o.get("second_moment", 0.0)
    new = [[] for _ in states]
    for i, start in enumerate(before):
        d = aggregate[i] - start
        if kind == "momentum":
            m = to_float(decay * states[0][i] + d)
            new[0].append(m)
            after.append(to_float(start + rate * m))
            continue
        m, v = to_float(decay * states[0][i] + (1.0 - decay) * d), states[1][i]
        if kind == "adagrad":
            v = v + d * d
        elif kind == "yogi":
            v = v - (1.0 - second) * (d * d) * float((v > d * d) - (v < d * d))
        else:
            v = second * v + (1.0 - second) * (d * d)
        v = to_float(v)
        new[0].append(m)
        new[1].append(v)
        after.append(to_float(start + rate * m / (math.sqrt(v) + o["adaptivity"])))
    return after, new

def control_step(job, before, aggregate, control, changes):
    """`scaffold/v1`: (model, the server's control variate)."""
    rate, below = job.options["server_lr"], float(int(job.spec["control_sites"])) * float(1 << job.scale)
    model = [a if rate == 1.0 else to_float(b + rate * (a - b)) for a, b in zip(aggregate, before)]
    return model, [to_float(c + float(sum(q[i] for q in changes)) / below) for i, c in enumerate(control)]

def sum_of_squares(values):
    """Over a fixed tree of blocks of 1,024 values."""
    blocks = []
    for at in range(0, len(values), 1024):
        lanes = [0.0] * 8
        for i, value in enumerate(values[at:at + 1024]):
            lanes[i % 8] += value * value
        s = lanes
        blocks.append(((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])))
    stack = []  # (leaves, sum): equal neighbours are joined at once, what is left from the right
    for block in blocks:
        stack.append((1, block))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            (n, right), (_, left) = stack.pop(), stack.pop()
            stack.append((2 * n, left + right))
    while len(stack) > 1:
        (n, right), (m, left) = stack.pop(), stack.pop()
        stack.append((n + m, left + right))
    return stack[0][1]

def mixing(models, eta):
    """`flexcfl-mixing/v1`: models in the ascending order of their groups."""
    norms, out = [math.sqrt(sum_of_squares(w)) for w in models], []
    for j, own in enumerate(models):
        others = [(w, norm) for l, (w, norm) in enumerate(zip(models, norms)) if l != j and norm > 0.0]
        divisor = 1.0 + eta * in_order(1.0 / norm for _, norm in others)
        out.append([to_float((x + eta * in_order(w[i] / norm for w, norm in others)) / divisor) for i, x in enumerate(own)])
    return out

def blend(models, weights):
    """*Blend*: the mean of models with whole weights, ascending by group; who weighs 0 is left out."""
    total, used = float(sum(weights)), [(m, float(w)) for m, w in zip(models, weights) if w > 0]
    return [to_float(in_order(w * m[i] for m, w in used) / total) for i in range(len(models[0]))]
