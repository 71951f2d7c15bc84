""""Plans": the part of its data that each selected site of a round trains on."""

import math

KEPT, UNIT, MOST, USUAL = 32, 1 << 20, 1 << 57, {"data": 10, "energy": 1, "time": 3, "least_percent": 10}

def part_of(n, percent):
    return -(-n * percent // 100)

def planned(job, round_):
    finding = 2 if job.spec.get("standardize") == "federated" else 1 if job.spec.get("classes") == "federated" else 0
    return job.spec.get("plan", "none") != "none" and round_.kind == "train" and round_.number > finding

def said(job, tenant, site, number):
    """(samples of all data, trained, microseconds, microjoules or None) of the site's last update that counts, or None."""
    mine = [e.body for e in tenant.entries if e.kind == "update" and (e.body["job"], e.body["site"], e.body["update_kind"]) == (job.name, site, "train")
            and 1 <= number - e.body["round"] <= KEPT and "data_samples" in e.body]
    b = max(mine, key=lambda body: body["round"], default={})
    us, uj = (math.floor(min(float(b.get(key, 0)), 1e9) * 1e6) for key in ("seconds", "energy_joules"))
    return (b["data_samples"], b["samples"], us, None if b["energy_quality"] == "unknown" else uj) if b else None

def parts(job, costs):
    """Percent by key, of what is known of each (None: nothing)."""
    spec, known = {**USUAL, **(job.spec["plan"] if isinstance(job.spec["plan"], dict) else {})}, {key: c for key, c in costs.items() if c}
    data, energy, time = (math.floor(float(spec[k]) * 1e6) for k in ("data", "energy", "time"))
    dearest = max(((c[3], c[1]) for c in known.values() if c[3] is not None), key=lambda r: r[0] * 10**30 // r[1], default=(0, 1))
    takes = lambda amount, trained, samples: min(MOST, -(-amount * samples // trained))

    def of(cost, percent):
        samples, rate = part_of(cost[0], percent), (cost[3], cost[1]) if cost[3] is not None else dearest
        return samples, takes(cost[2], cost[1], samples), takes(*rate, samples)

    alls = [of(c, 100) for c in known.values()]
    samples, slowest, joules = sum(a[0] for a in alls), max((a[1] for a in alls), default=0), sum(a[2] for a in alls)
    term = lambda weight, amount, whole: weight * amount * UNIT // whole if whole else 0
    options = {key: [(t, term(data, n, samples) - term(energy, e, joules), -p) for p in range(int(spec["least_percent"]), 101) for n, t, e in [of(c, p)]]
               for key, c in known.items()}
    tried = [(limit, {key: max(((gain, p) for t, gain, p in rows if t <= limit), default=None) for key, rows in options.items()})
             for limit in {t for rows in options.values() for t, _, _ in rows}]
    worths = [(sum(gain for gain, _ in of_all.values()) - term(time, limit, slowest), -limit, of_all) for limit, of_all in tried if None not in of_all.values()]
    return {**{key: 100 for key in costs}, **{key: -p for key, (_, p) in max(worths, key=lambda w: w[:2], default=(0, 0, {}))[2].items()}}
