"""docs/record.md, "Deadlines": who is promised one, from what the main chain says of those before."""

import hashlib

from verifier.store import read_json

SHARES, PROMISED, STEPS, STEP_MS, FAR_MS, WORK_MOST = 16, 12, 512, 1000, 315360000000, 1 << 62


class Plan:
    """Free shares of a row of equal steps."""
    def __init__(self, far):
        self.step, self.free = max(STEP_MS, -(-far // STEPS)), [PROMISED] * STEPS

    def steps(self, due):
        return min(STEPS, -(-due // self.step))

    def ends(self, job, share):
        """The steps that it needs with at most so many shares in each; None: it does not end in time."""
        work, due = job
        for i in range(self.steps(due)):
            work -= min(share, self.free[i]) * 10**6 * min(self.step, due - i * self.step)
            if work <= 0:
                return i + 1
        return None

    def least(self, job):
        return next((k for k in range(1, PROMISED + 1) if self.ends(job, k) is not None), 0) if job[0] > 0 else 0

    def take(self, job, share):
        work, due = job
        for i in range(self.steps(due)):
            if work <= 0:
                break
            has = min(share, self.free[i])
            work -= has * 10**6 * min(self.step, due - i * self.step)
            self.free[i] -= has


def served(jobs):
    """Those that end in time, the nearest deadline first."""
    jobs = sorted(jobs, key=lambda j: j[1])
    plan, kept = Plan(jobs[-1][1] if jobs else 0), []
    for job in jobs:
        share = plan.least(job)
        plan.take(job, share)
        kept += [job] if share else []
    return kept


def beside(jobs, mine):
    """The share with which it ends in time and all others still do; 0: none."""
    plan, share = Plan(max([j[1] for j in jobs] + [mine[1]])), 0
    order = [j for j in jobs if j[1] <= mine[1]] + [None] + [j for j in jobs if j[1] > mine[1]]
    for job in order:
        needs = plan.least(job or mine)
        if job is None:
            share = needs
        if (job is None or share) and needs == 0 and (job or mine)[0] > 0 and (job is None or job[1] > mine[1]):
            return 0
        plan.take(job or mine, needs)
    return share


def earliest(jobs, work, due):
    low, high = due, max(due, STEP_MS)
    while not beside(jobs, (work, high)):
        if high == FAR_MS:
            return 0
        low, high = high, 2 * high if high < FAR_MS // 2 else FAR_MS
    while high - low > high // 64 and high - low > 1:
        mid = low + (high - low) // 2
        low, high = (low, mid) if beside(jobs, (work, mid)) else (mid, high)
    return high


def middle(values):
    return sorted(values)[(len(values) - 1) // 2] if values else 0


class Promise:
    def __init__(self, record, entry):
        self.entry, self.body = entry, entry.body
        self.spec = read_json(record.blobs.read(entry.subject), f"spec of {entry.body['job']}")
        self.tenants, self.rounds = set(self.spec["tenants"]), int(self.spec["rounds"])

    def seen(self, record, size):
        """(rounds left, ms of a round, deadline) as the first entries say; None: it has ended."""
        job, times, last = record.jobs.get(self.body["job"]), [], 0
        if any(e.kind == "job-closed" and e.body["job"] == self.body["job"] for e in record.main[:size]):
            return None
        for round_ in job.rounds if job else []:
            if round_.step and round_.step.index < size and round_.number > 0:
                last = round_.number
                times.append(max(0, round_.step.body.get("time_ms", 0) - round_.openings[0].body.get("time_ms", 0)))
        return max(0, self.rounds - last), max(times[-8:], default=0) or self.body["round_ms"], self.body["deadline_ms"]


def decide(record, promises, promise):
    """The body of the statement, and whether it is admitted."""
    body, spec = promise.body, promise.spec
    now, size, guard = body["time_ms"], body["main_size"], body.get("guard_ms", 0)
    rows = {p.body["job"]: (p, p.seen(record, size)) for p in promises if p.body["deadline_ms"] > now}
    rows = {name: (p, row) for name, (p, row) in rows.items() if row}
    reached, queue = set(promise.tenants), {}
    while more := {n: r for n, r in rows.items() if n not in queue and r[0].tenants & reached}:
        queue.update(more)
        reached = reached.union(*(p.tenants for p, _ in more.values()))
    digest, works, sizes, times = bytes(32), [], [], []
    for name in sorted(queue):
        p, (left, ms, deadline) = queue[name]
        digest = hashlib.sha256(digest + f"{name} {left} {ms} {deadline}\n".encode()).digest()
        works.append((work(left, ms), min(FAR_MS, deadline - now)))
        sizes.append(work(p.rounds, ms))
        times.append(ms)
    declared = int(spec.get("round_s", 0)) * 1000
    source = "declared" if declared else "median" if times else "timeout"
    ms = declared or middle(times) or int(spec.get("round_timeout_s", 3600)) * 1000
    due = int(spec["deadline_s"]) * 1000
    mine = work(promise.rounds, ms)
    is_large = guard > 0 and sizes and mine // 2 > middle(sizes) and sum(w for w, _ in works) > PROMISED * guard * 10**6
    kept = served(works)
    share = 0 if is_large else beside(kept, (mine, min(FAR_MS, due)))
    nearest = 0 if is_large or share else earliest(kept, mine, min(FAR_MS, due))
    return {"queue": digest.hex(), "queued": len(queue), "round_ms": ms, "round_from": source, "deadline_ms": now + due, "share": share,
            "too_large": int(bool(is_large)), "earliest_ms": now + nearest if nearest else 0}, share > 0


def work(rounds, ms):
    return min(WORK_MOST, ms * rounds * SHARES * 10**6 // 4 * 5)
