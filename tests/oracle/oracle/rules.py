"""docs/record.md, "Robust rules"."""

import math

from verifier.arithmetic import dot, scale12, to_float

from .weights import VOTE, exact_square, in_order

COORDINATE = ("median", "trimmed-mean", "bulyan")

class Measures:
    """*Lengths*, *products* and *squared distances* of updates, each made when it is asked for."""
    def __init__(self, updates):
        self.updates, self.n = updates, len(updates)
        self.most = [max(map(abs, u), default=0) for u in updates]
        self.square = [exact_square(u) for u in updates]
        self.length = [math.sqrt(s) for s in self.square]
        self.scaled = [scale12(u) or [0] * len(u) for u in updates]
        self.p = [[0.0] * self.n for _ in updates]
        for i in range(self.n):
            for j in range(i, self.n):
                product = float(dot(self.scaled[i], self.scaled[j])) * ((self.most[i] / 2047.0) * (self.most[j] / 2047.0))
                self.p[i][j] = self.p[j][i] = max(product, self.square[i]) if i == j else product

    def distance(self, i, j):
        p = self.p
        return 0.0 if i == j else max(0.0, p[i][i] + p[j][j] - 2.0 * p[i][j])

def bad_ones(votes, fraction):
    return sum(votes) * fraction // (10**6 * VOTE)

def effective(rule, votes, fraction):
    """The rule that runs: the spec's, or the median where the inputs are too few for it."""
    least = {"krum": 2, "multi-krum": 2, "bulyan": 4}.get(rule)
    return rule if least is None or sum(votes) >= (least * bad_ones(votes, fraction) + 3) * VOTE else "median"

def score(m, votes, i, among, most):
    """Krum's: votes times squared distance over the nearest others, the last one in part."""
    total = 0.0
    for j in sorted((j for j in among if j != i), key=lambda j: m.distance(i, j)):
        take = min(votes[j], most)
        total += float(take) * m.distance(i, j)
        most -= take
        if most <= 0:
            break
    return total

def krum_scores(m, votes, want):
    return [score(m, votes, i, range(m.n), want - votes[i]) for i in range(m.n)]

def krum(m, votes, f, many):
    want = sum(votes) - (f + 1) * VOTE
    scores = krum_scores(m, votes, want)
    if not many:
        best = min(range(m.n), key=lambda i: scores[i])
        return [int(i == best) for i in range(m.n)], 1
    left, weights = want - VOTE, [0] * m.n
    divisor = left
    for i in sorted(range(m.n), key=lambda i: scores[i]):
        weights[i] = min(votes[i], left)
        left -= weights[i]
    return weights, divisor

def bulyan(m, f):
    left, weights, votes = list(range(m.n)), [0] * m.n, [VOTE] * m.n
    while len(left) > 2 * f:
        most = max(1, len(left) - f - 2) * VOTE
        scores = {i: score(m, votes, i, left, most) for i in left}
        best = min(left, key=lambda i: scores[i])
        weights[best] = VOTE
        left.remove(best)
    return weights, sum(weights)

def weighted_median(values, weights):
    """The first value in ascending order at which the votes so far are at least those after it."""
    so_far, total = 0, sum(weights)
    for i in sorted(range(len(values)), key=lambda i: values[i]):
        so_far += weights[i]
        if so_far >= total - so_far:
            return values[i]
    return 0.0

def geometric_median(m, weights):
    n, total = m.n, float(sum(weights))
    p = [w / total for w in weights]
    away = [[math.sqrt(m.distance(i, j)) for j in range(n)] for i in range(n)]
    sums = [in_order(p[j] * away[i][j] for j in range(n)) for i in range(n)]
    medoid = min(range(n), key=lambda i: sums[i])
    alpha, taken = [0.0] * n, 0.0
    for i in sorted(range(n), key=lambda i: away[medoid][i]):
        if taken < 0.5:
            alpha[i] = p[i]
            taken += p[i]
    alpha = [a / taken for a in alpha]
    middle = weighted_median(m.length, weights)
    if middle == 0.0:
        middle = min((x for x in m.length if x > 0.0), default=0.0)
    least = 2.0**-10 * middle
    for _ in range(128 if least > 0.0 else 0):
        r = [in_order(m.p[i][j] * alpha[j] for j in range(n)) for i in range(n)]
        z = in_order(alpha[i] * r[i] for i in range(n))
        square = [m.p[i][i] - 2.0 * r[i] + z for i in range(n)]
        delta = [math.sqrt(s) if s > least * least else least for s in square]
        alpha = [p[i] / delta[i] for i in range(n)]
        whole = in_order(alpha)
        alpha = [a / whole for a in alpha]
    out = [int(a * float(n) * 2.0**20 + 0.5) for a in alpha]
    return out, sum(out)

def norm_clipping(lengths, weights, divisor, bound):
    bound = bound if bound > 0.0 else weighted_median(lengths, weights)
    if all(length <= bound for length in lengths):
        return weights, divisor
    unit = len(weights) * VOTE
    while sum(w * unit // divisor for w in weights) > 2**31 - 1:
        unit //= 2
    counts = [w * unit // divisor for w in weights]
    return [int(float(c) * (bound / length)) if length > bound else c for c, length in zip(counts, lengths)], unit

def root_trust(m, votes, root):
    """Weights of all but the root, whose own is 0; votes: of the others, the root's is not looked at."""
    trust, stretch = [0.0] * m.n, [0.0] * m.n
    for i in range(m.n):
        inner = m.p[i][root]
        if i != root and m.length[i] > 0.0 and m.length[root] > 0.0 and inner > 0.0:
            trust[i] = min(1.0, inner / m.length[i] / m.length[root])
            stretch[i] = min(256.0, m.length[root] / m.length[i])
    for s in range(64):
        counts = [0.0 if i == root else float(votes[i]) * 2.0**-s * trust[i] for i in range(m.n)]
        weights = [int(c * x) for c, x in zip(counts, stretch)]
        if in_order(float(w) * float(most) for w, most in zip(weights, m.most)) < 2.0**61:
            break
    return weights, max(1, sum(math.ceil(c) for c in counts))

def columns(rule, base, updates, votes, f, scale):
    """*Coordinate rules*, value by value: a sum of sorted copies over how many there are of them."""
    used = [(u, w) for u, w in zip(updates, votes) if w > 0]
    out, copies = [], sum(w for _, w in used)
    for k, start in enumerate(base):
        column = sorted((u[k], w) for u, w in used)
        if rule == "bulyan":
            total, kept = nearest_to_median([v for v, _ in column], len(column) - 2 * f)
        else:
            first, last = ((copies - 1) // 2, copies // 2) if rule == "median" else (f * VOTE, copies - f * VOTE - 1)
            total, kept, at = 0, last - first + 1, 0
            for value, w in column:
                total += value * max(0, min(at + w, last + 1) - max(at, first))
                at += w
        out.append(to_float(start + float(total) / (float(kept) * float(1 << scale))))
    return out

def nearest_to_median(values, count):
    """Sum of the so many values nearest to the median, of two equally near ones the lower."""
    n, at = len(values), 0
    twice = values[(n - 1) // 2] + values[n // 2]  # twice the median, so that it is whole
    while at + count < n and abs(2 * values[at + count] - twice) < abs(2 * values[at] - twice):
        at += 1
    return sum(values[at:at + count]), count
