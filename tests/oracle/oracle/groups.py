"""docs/record.md, "Groups by FlexCFL", but for eigenvectors and k-means (the reader in examples/ has those, of one kind of job)."""

import itertools
import math

from verifier.arithmetic import cosine, dot, half_even, scale12, to_float

from .steps import sum_of_squares
from .weights import in_order

def distances(updates):
    """1 − cosine of updates that are not zero: max(0, 1 − C_ij), 0 for i = j."""
    scaled = [scale12(u) for u in updates]
    square, n = [dot(x, x) for x in scaled], len(updates)
    out = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1, n):
            out[i][j] = out[j][i] = max(0.0, 1.0 - cosine(dot(scaled[i], scaled[j]), square[i], square[j]))
    return out

def madc(updates):
    """Distances of `flexcfl-madc`."""
    scaled = [scale12(u) for u in updates]
    square, n = [dot(x, x) for x in scaled], len(updates)
    if n <= 2:
        return distances(updates)
    c = [[1.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1, n):
            c[i][j] = c[j][i] = cosine(dot(scaled[i], scaled[j]), square[i], square[j])
    return [[0.0 if i == j else in_order(abs(c[i][z] - c[j][z]) for z in range(n) if z not in (i, j)) / (n - 2) for j in range(n)] for i in range(n)]

def joining(d, linkage, least, most=None, cut=None):
    """*Joining*: cluster of each point, numbered in the order of first members."""
    clusters, d = [[i] for i in range(len(d))], [row[:] for row in d]
    while len(clusters) > least:
        pairs = ((d[i][j], i, j) for i in range(len(clusters)) for j in range(i + 1, len(clusters)))
        nearest, i, j = min(pairs)
        if most is not None and len(clusters) <= most and nearest > cut:
            break
        a, b = float(len(clusters[i])), float(len(clusters[j]))
        for k, row in enumerate(d):
            if k not in (i, j):
                far = {"complete": max, "single": min, "average": lambda x, y: (a * x + b * y) / (a + b)}[linkage](d[i][k], d[j][k])
                row[i] = d[i][k] = far
        clusters[i] += clusters.pop(j)
        for row in d:
            row.pop(j)
        d.pop(j)
    out = {i: number for number, members in enumerate(clusters) for i in members}
    return [out[i] for i in range(len(out))]

def silhouette(d, cluster):
    """Of a clustering by its distances, without weights."""
    total, n = 0.0, len(cluster)
    for i in range(n):
        sums = {}
        for j in range(n):
            if j != i:
                sums.setdefault(cluster[j], []).append(d[i][j])
        means = {c: in_order(values) / len(values) for c, values in sums.items()}
        own, other = means.pop(cluster[i], None), min(means.values(), default=None)
        if own is not None and other is not None and max(own, other) != 0.0:
            total += (other - own) / max(own, other)
    return total / n

def cut_in_two(updates):
    """(part of each update, silhouette); updates of zeros are with part 0."""
    usable = [i for i, u in enumerate(updates) if any(u)]
    if len(usable) < 2:
        return [0] * len(updates), 0.0
    d = distances([updates[i] for i in usable])
    parts = joining(d, "complete", 2)
    of = dict(zip(usable, parts))
    return [of.get(i, 0) for i in range(len(updates))], silhouette(d, parts)

def halves(updates, tenants):
    """*Halves*: part of each update; those of zeros are in part 0."""
    if not all(any(u) for u in updates):
        found = iter(halves([u for u in updates if any(u)], [t for u, t in zip(updates, tenants) if any(u)]))
        return [next(found) if any(u) else 0 for u in updates]
    scaled, n, v = [scale12(u) for u in updates], len(updates), [max(map(tenants.count, tenants)) / tenants.count(t) for t in tenants]
    c = [[1.0 for _ in scaled] for _ in scaled]
    for i, j in itertools.combinations(range(n), 2):
        x, y = scaled[i], scaled[j]
        c[i][j] = c[j][i] = cosine(dot(x, y), dot(x, x), dot(y, y))
    mean = [in_order(w * x for w, x in zip(v, row)) / in_order(v) for row in c]
    all_of = in_order(w * m for w, m in zip(v, mean)) / in_order(v)
    b = [[x - mean[i] - mean[k] + all_of for k, x in enumerate(row)] for i, row in enumerate(c)]
    axis = b[max(range(n), key=lambda i: (b[i][i], -i))]
    for _ in range(6):
        axis = [in_order(x * (w * y) for x, w, y in zip(row, v, axis)) for row in b]
        length = math.sqrt(in_order(x * x for x in axis))
        if not length > 0.0:
            return [0] * n
        axis = [x / length for x in axis]
    part = [int(x < 0) for x in axis]
    for _ in range(16):
        to = [[in_order(w * x for w, x, p in zip(v, row, part) if p == side) for side in (0, 1)] for row in c]
        within = [in_order(w * t[side] for w, t, p in zip(v, to, part) if p == side) for side in (0, 1)]
        if min(within) <= 0.0:
            break
        moved = [int(t[1] / math.sqrt(within[1]) > t[0] / math.sqrt(within[0])) for t in to]
        if moved == part or sum(moved) in (0, n):
            break
        part = moved
    return [int(p != part[0]) for p in part]

def cfl_norms(updates, scale):
    """*CFL's norms*: (length of the mean, the longest)."""
    most = [max(map(abs, u)) for u in updates]
    scaled = [scale12(u) or [0] * len(u) for u in updates]
    n, unit = len(updates), 2047.0 * 2.0**scale
    a = [[float(dot(x, y)) for y in scaled] for x in scaled]
    longest = math.sqrt(max(a[i][i] * most[i] * most[i] for i in range(n))) / unit
    total = in_order(in_order(a[i][j] * most[j] for j in range(n)) * most[i] for i in range(n))
    return math.sqrt(total) / (unit * n) if total > 0.0 else 0.0, longest

def merges(directions, merge):
    """*Joined groups*: which group each goes into."""
    n = len(directions)
    scaled = [scale12(d) for d in directions]
    far = [[0.0 if i == j else 4.0 for j in range(n)] for i in range(n)]
    for i, j in itertools.combinations(range(n), 2):
        if scaled[i] and scaled[j]:
            c = cosine(dot(scaled[i], scaled[j]), dot(scaled[i], scaled[i]), dot(scaled[j], scaled[j]))
            if c > merge:
                far[i][j] = far[j][i] = max(0.0, 1.0 - c)
    cluster = joining(far, "complete", 1, n, 3.0)
    return [cluster.index(c) for c in cluster]

def one_minus(a, b):
    """1 − cosine of two directions."""
    x, y = scale12(a), scale12(b)
    return 1.0 - cosine(dot(x, y), dot(x, x), dot(y, y)) if x and y else 1.0

def drift(made, now):
    """How far directions have gone, over how far apart they were made."""
    far = max([0.0] + [one_minus(m, d) for m, d in zip(made, now)])
    if far == 0.0 or len(made) == 1:
        return 0.0
    pairs = [one_minus(a, b) for a, b in itertools.combinations(made, 2)]
    wide = in_order(pairs) / len(pairs)
    return min(1e6, far / wide) if wide > 0.0 else 1e6

def cheapest(cost):
    """Of each row the column, all different, with the least sum: shortest augmenting paths (Kuhn, Munkres), columns from 1."""
    n = len(cost)
    row_price, price, row_of = [0] * (n + 1), [0] * (n + 1), [0] * (n + 1)
    for row in range(1, n + 1):
        row_of[0], at, way, far, done = row, 0, [0] * (n + 1), {}, []
        while row_of[at]:
            done.append(at)
            i = row_of[at]
            for j in range(1, n + 1):
                if j not in done:
                    reduced = cost[i - 1][j - 1] - row_price[i] - price[j]
                    if j not in far or reduced < far[j]:
                        far[j], way[j] = reduced, at
            at = min((j for j in far if j not in done), key=lambda j: far[j])
            step = far[at]
            for j in done:
                row_price[row_of[j]] += step
                price[j] -= step
            far = {j: f - step for j, f in far.items() if j not in done}
        while at:
            row_of[at], at = row_of[way[at]], way[at]
    return [row_of.index(row, 1) - 1 for row in range(1, n + 1)]

def match(clusters, former, count):
    """*Numbers for groups made anew*: one for each cluster; former: the group of each update's site, or None.

    Sites that keep their number come before all else; then the first cluster's number, then the second's. So a site is worth
    count^count, and a number of cluster c so many count^(count-1-c) as it is below the largest: one sum, with one best choice."""
    overlap = [[sum(1 for c, g in zip(clusters, former) if (c, g) == (cluster, number)) for number in range(count)] for cluster in range(count)]
    return cheapest([[-(overlap[c][n] * count**count + (count - 1 - n) * count ** (count - 1 - c)) for n in range(count)] for c in range(count)])

def last_model(base, update, scale):
    """What a site's last model was: its base and what its update adds."""
    return [to_float(b + q * 2.0**-scale) for b, q in zip(base, update)]

def nearest_model(model, models):
    """(group, distance) of the nearest by Euclidean distance, ties to the lowest."""
    far = [sum_of_squares([x - y for x, y in zip(model, m)]) for m in models]
    best = min(range(len(models)), key=lambda g: far[g])
    return best, math.sqrt(far[best])

def mean_update(updates):
    return [half_even(sum(column), len(updates)) for column in zip(*updates)]
