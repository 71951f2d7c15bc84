""""Plans": the part of its data that each selected site of a round trains on."""

import math

KEPT, UNIT, MOST = 32, 1 << 20, 1 << 57

def part_of(n, percent):
    return -(-n * percent // 100)

def planned(job, round_):
    """Rounds in which sites find something together are not planned."""
    finding = 2 if job.spec.get("standardize") == "federated" else 1 if job.spec.get("classes") == "federated" else 0
    return job.spec.get("plan", "none") != "none" and round_.kind == "train" and round_.number > finding

def said(job, tenant, site, number):
    """(samples of all data, trained, microseconds, microjoules or None) of the site's last update that counts, or None."""
    mine = {e.body["round"]: e.body for e in tenant.entries if e.kind == "update" and e.body["job"] == job.name and e.body["site"] == site
            and e.body["update_kind"] == "train" and 1 <= number - e.body["round"] <= KEPT and "data_samples" in e.body}
    if not mine:
        return None
    b = mine[max(mine)]
    amount = lambda value: math.floor(min(float(value), 1e9) * 1e6)
    return b["data_samples"], b["samples"], amount(b["seconds"]), None if b["energy_quality"] == "unknown" else amount(b["energy_joules"])

def parts(job, costs):
    """Percent by key, of what is known of each (None: nothing)."""
    spec = {"data": 10, "energy": 1, "time": 3, "least_percent": 10, **(job.spec["plan"] if isinstance(job.spec["plan"], dict) else {})}
    data, energy, time = (math.floor(float(spec[k]) * 1e6) for k in ("data", "energy", "time"))
    least, known = int(spec["least_percent"]), {key: c for key, c in costs.items() if c}
    rates = [(joules, trained) for _, trained, _, joules in known.values() if joules is not None]
    dearest = max(rates, key=lambda r: (r[0] * 10**30 // r[1])) if rates else None
    takes = lambda amount, trained, samples: min(MOST, -(-amount * samples // trained))

    def of(cost, percent):
        n, trained, us, uj = cost
        samples, rate = part_of(n, percent), (uj, trained) if uj is not None else dearest
        return samples, takes(us, trained, samples), takes(*rate, samples) if rate else 0

    alls = [of(c, 100) for c in known.values()]
    samples, slowest, joules = sum(a[0] for a in alls), max((a[1] for a in alls), default=0), sum(a[2] for a in alls)
    term = lambda weight, amount, whole: weight * amount * UNIT // whole if whole else 0
    options = {key: [(t, term(data, n, samples) - term(energy, e, joules), p) for p in range(least, 101) for n, t, e in [of(c, p)]] for key, c in known.items()}
    best = None
    for limit in sorted({t for rows in options.values() for t, _, _ in rows}):
        chosen = {key: max(((gain, -p) for t, gain, p in rows if t <= limit), default=None) for key, rows in options.items()}
        if None not in chosen.values():
            worth = sum(gain for gain, _ in chosen.values()) - term(time, limit, slowest)
            if best is None or worth > best[0]:
                best = worth, {key: -p for key, (_, p) in chosen.items()}
    return {**{key: 100 for key in costs}, **(best[1] if best else {})}
