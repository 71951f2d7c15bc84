"""What decides a model: whole numbers, and binary64 with + - * / and the square root in a fixed order."""
import math
import struct

MASK = 2**64 - 1
SELECT, KMEANS, INIT = 1, 2, 3
RESTARTS, ITERATIONS, SWEEPS = 10, 20, 40
ONE = 1 << 20  # the share of one input where tenants share a direction

class Stream:
    def __init__(self, seed, purpose, a=0, b=0):
        x = seed
        for word in (purpose, a, b):
            x, z = self.split(x)
            x = z ^ word
        self.s = []
        for _ in range(4):
            x, z = self.split(x)
            self.s.append(z)

    @staticmethod
    def split(x):
        x = x + 0x9E3779B97F4A7C15 & MASK
        z = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return x, z ^ z >> 31

    def u64(self):
        s, turn = self.s, lambda v, k: (v << k | v >> 64 - k) & MASK
        out, t = turn(s[1] * 5 & MASK, 7) * 9 & MASK, s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = turn(s[3], 45)
        return out

    def below(self, n):
        limit = MASK - MASK % n
        while True:
            v = self.u64()
            if v < limit:
                return v % n

    def unit(self):
        return (self.u64() >> 11) * 2.0**-53

    def sample(self, items, k):
        """Moves a uniform sample of k to the front, in random order."""
        for i in range(min(k, len(items))):
            j = i + self.below(len(items) - i)
            items[i], items[j] = items[j], items[i]

def select(seed, number, count, k):
    """Places of the k selected among `count` candidates."""
    places = list(range(count))
    if k == 0 or k >= count:
        return set(places)
    Stream(seed, SELECT, number).sample(places, k)
    return set(places[:k])

def quota(available, want):
    """How many of each, as equal as may be, `want` in all where there are as many."""
    low = 0
    while low < want and sum(min(n, low + 1) for n in available) <= want:
        low += 1
    left, take = want - sum(min(n, low) for n in available), []
    for n in available:
        more = 1 if n > low and left > 0 else 0
        left -= more
        take.append(min(n, low) + more)
    return take

def select_by_quota(seed, number, tenants, wanted):
    """Places of those who pre-train; tenants: the tenant of each candidate, in order."""
    most = min(len(tenants), 512)
    wanted = most if wanted == 0 or wanted > most else wanted
    if wanted == len(tenants):
        return set(range(wanted))
    names = sorted(set(tenants))
    available = [tenants.count(name) for name in names]
    stream, order, chosen, first = Stream(seed, SELECT, number), list(range(len(names))), set(), 0
    stream.sample(order, len(order))
    take = dict(zip(order, quota([available[t] for t in order], wanted)))
    for t, n in enumerate(available):
        places = list(range(first, first + n))
        stream.sample(places, take[t])
        chosen |= set(places[:take[t]])
        first += n
    return chosen

def cap_shares(inputs, share):
    """Weights under a cap of share millionths; inputs: (tenant, weight), a tenant's in the order of its sites."""
    sums, counts = {}, {}
    for tenant, weight in inputs:
        sums[tenant] = sums.get(tenant, 0) + weight
        counts[tenant] = counts.get(tenant, 0) + 1
    if share >= 10**6:
        return [weight for _, weight in inputs]
    low, high = 0, max(sums.values())
    if share * len(sums) < 10**6:
        low = high = min(sums.values())
    while low < high:
        middle = high - (high - low) // 2
        if 10**6 * middle <= share * sum(min(w, middle) for w in sums.values()):
            low = middle
        else:
            high = middle - 1
    level, so_far, out = low, {}, []
    factor = max([1] + [-(-counts[t] // level) for t in sums if sums[t] > level])
    for tenant, weight in inputs:
        if sums[tenant] <= level:
            out.append(factor * weight)
            continue
        whole, room = factor * sums[tenant] - counts[tenant], factor * level - counts[tenant]
        before = so_far.get(tenant, 0)
        so_far[tenant] = before + factor * weight - 1
        out.append(1 + (so_far[tenant] * room // whole - before * room // whole if whole else 0))
    return out

def to_float(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]

def mean(base, inputs, scale, divisor):
    """base + sum of weight * q over divisor * 2^scale; inputs: (weight, values)."""
    below = float(divisor) * float(1 << scale)
    return [to_float(b + float(sum(w * q[i] for w, q in inputs)) / below) for i, b in enumerate(base)]

def initial_model(layout, fans, seed):
    """Glorot's uniform weights where a tensor has a fan, else zeros."""
    out = []
    for index, ((_, dims), fan) in enumerate(zip(layout, fans)):
        stream, limit = Stream(seed, INIT, index), math.sqrt(6.0 / fan) if fan else 0.0
        for _ in range(math.prod(dims)):
            out.append(to_float((stream.unit() * 2.0 - 1.0) * limit) if fan else 0.0)
    return out

def half_even(n, d):
    """Nearest whole number to n / d, ties to even."""
    q, r = divmod(n, d)
    return q + (1 if 2 * r > d or (2 * r == d and q & 1) else 0)

def scale12(values):
    most = max(map(abs, values), default=0)
    return [half_even(v * 2047, most) for v in values] if most else None

def dot(a, b):
    return sum(x * y for x, y in zip(a, b))

def cosine(xy, xx, yy):
    return float(xy) / math.sqrt(float(xx)) / math.sqrt(float(yy))

def nearest(update, directions):
    """(group, cosine) of the nearest direction that is not zero; (0, 0.0) for a zero update."""
    u, best, most = scale12(update), None, 0.0
    for j, direction in enumerate(directions):
        d = scale12(direction)
        if u is None or d is None:
            continue
        c = cosine(dot(u, d), dot(u, u), dot(d, d))
        if best is None or c > most:
            best, most = j, c
    return (0, 0.0) if best is None else (best, most)

def direction(members, share):
    """Of a group; members: (tenant, values) in the order of tenants and sites."""
    scaled = [scale12(values) for _, values in members]
    usable = [(members[i][0], x) for i, x in enumerate(scaled) if x is not None]
    if not usable:
        return [0] * len(members[0][1])
    shares = cap_shares([(tenant, ONE) for tenant, _ in usable], min(share, 333333))
    lengths = [float(w) / math.sqrt(float(dot(x, x))) for w, (_, x) in zip(shares, usable)]
    most = max(lengths)
    weights = [int(length / most * 2.0**20 + 0.5) for length in lengths]
    total = sum(weights)
    return [half_even(4096 * sum(w * x[i] for w, (_, x) in zip(weights, usable)), total) for i in range(len(members[0][1]))]

def jacobi(a):
    """(values, vectors) of a symmetric matrix, largest first."""
    n, a = len(a), [row[:] for row in a]

    def squares(diagonal):
        total = 0.0
        for i in range(n):
            for j in range(i if diagonal else i + 1, n):
                square = a[i][j] * a[i][j]
                total += square if i == j else 2.0 * square
        return total

    small, v = 1e-32 * squares(True), [[float(i == j) for j in range(n)] for i in range(n)]
    for _ in range(SWEEPS):
        if squares(False) <= small:
            break
        for p in range(n):
            for q in range(p + 1, n):
                if a[p][q] != 0.0:
                    turn(a, v, p, q)
    left, values, vectors = [a[k][k] for k in range(n)], [], []
    for _ in range(n):
        best = max((k for k in range(n) if left[k] is not None), key=lambda k: (left[k], -k))
        values.append(left[best])
        left[best] = None
        top = max(range(n), key=lambda k: (abs(v[best][k]), -k))
        vectors.append([-x for x in v[best]] if v[best][top] < 0.0 else v[best][:])
    return values, vectors

def turn(a, v, p, q):
    """The rotation that brings a[p][q] to zero."""
    theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q])
    length = abs(theta) + math.sqrt(theta * theta + 1.0)
    t = -1.0 / length if theta < 0.0 else 1.0 / length
    c = 1.0 / math.sqrt(t * t + 1.0)
    s, app, aqq, apq = t * c, a[p][p], a[q][q], a[p][q]
    for rows in (a, v):
        x, y = rows[p], rows[q]
        rows[p] = [c * i - s * j for i, j in zip(x, y)]
        rows[q] = [s * i + c * j for i, j in zip(x, y)]
    a[p][p], a[q][q], a[p][q], a[q][p] = app - t * apq, aqq + t * apq, 0.0, 0.0
    for k, row in enumerate(a):
        row[p], row[q] = a[p][k], a[q][k]

def in_order(values):
    total = 0.0
    for value in values:
        total += value
    return total

def far(a, b):
    return in_order((x - y) * (x - y) for x, y in zip(a, b))

def drawn(weights, aim, chosen=None):
    """The first place at which the running sum is above aim; only places that `chosen` admits count."""
    total, last = 0.0, None
    for i, weight in enumerate(weights):
        total += weight
        if chosen is None or chosen[i] > 0.0:
            last = i
            if total > aim:
                return i
    return last

def seed_centres(points, weights, k, stream):
    centres, near, taken = [], [0.0] * len(points), set()
    for c in range(k):
        if c == 0:
            at = drawn(weights, stream.unit() * in_order(weights))
        else:
            mass = [w * d for w, d in zip(weights, near)]
            total, share = in_order(mass), stream.unit()
            at = drawn(mass, share * total, near) if total > 0.0 else None
            if at is None:
                at = next(i for i in range(len(points)) if i not in taken)
        centres.append(points[at][:])
        taken.add(at)
        near = [far(p, points[at]) if c == 0 else min(d, far(p, points[at])) for p, d in zip(points, near)]
    return centres

def kmeans_once(points, weights, k, stream):
    """(cluster of each point, inertia) of one start."""
    centres, cluster, dims = seed_centres(points, weights, k, stream), [None] * len(points), len(points[0])
    for _ in range(ITERATIONS):
        near = [[far(p, c) for c in centres] for p in points]
        now = [min(range(k), key=lambda c, row=row: (row[c], c)) for row in near]
        if now == cluster:
            break
        cluster, distance = now, [row[c] for row, c in zip(near, now)]
        for c in range(k):
            if c not in cluster:
                at = max((i for i in range(len(points)) if cluster.count(cluster[i]) > 1), key=lambda i: (distance[i], -i))
                cluster[at], distance[at] = c, 0.0
        for c in range(k):
            mass, total = 0.0, [0.0] * dims
            for p, w, own in zip(points, weights, cluster):
                if own == c:
                    mass += w
                    total = [t + w * x for t, x in zip(total, p)]
            centres[c] = [t / mass for t in total]
    return cluster, in_order(w * far(p, centres[c]) for p, w, c in zip(points, weights, cluster))

def groups_of(updates, count, seed, number):
    """Group of each of (tenant, values), None for a zero one; by unit-norm EDC, tenants alike."""
    usable = [(i, tenant, scale12(values)) for i, (tenant, values) in enumerate(updates)]
    usable = [row for row in usable if row[2] is not None]
    if not usable:
        return [0] * len(updates)
    n, k = len(usable), min(count, len(usable))
    tenants = [tenant for _, tenant, _ in usable]
    weights = [1.0 / tenants.count(tenant) for tenant in tenants]
    square = [dot(x, x) for _, _, x in usable]
    a = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            c = 1.0 if i == j else cosine(dot(usable[i][2], usable[j][2]), square[i], square[j])
            a[i][j] = a[j][i] = c * (math.sqrt(weights[i]) * math.sqrt(weights[j]))
    values, vectors = jacobi(a)
    axes = [(math.sqrt(value) if value > 0.0 else 0.0, vector) for value, vector in zip(values[:k], vectors)]
    points = [[root * vector[i] / math.sqrt(weights[i]) for root, vector in axes] for i in range(n)]
    best = None
    for restart in range(RESTARTS):
        cluster, inertia = kmeans_once(points, weights, k, Stream(seed, KMEANS, number, restart))
        if best is None or inertia < best[1]:
            best = (cluster, inertia)
    names, out = {}, [None] * len(updates)
    for (i, _, _), c in zip(usable, best[0]):
        out[i] = names.setdefault(c, len(names))
    return out
