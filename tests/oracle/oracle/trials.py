"""Groups that are tried against each other: docs/record.md, "Groups that are tried"."""

import itertools

from verifier.arithmetic import cosine, dot, scale12

from . import steps, weights

def decide(job, heard, sites, tenants):
    """Whether two groups join. heard: (tenant, side, samples, loss, loss of the trial) in the order of tenants and sites."""
    heard = [h for h in heard if h[2] > 0 and h[3] >= 0 and h[4] >= 0]
    if any(sites[side] and not any(h[1] == side for h in heard) for side in (0, 1)):
        return False
    if len(heard) < min(2, sum(sites)) or len({h[0] for h in heard}) < min(2, tenants):
        return False
    return steps.in_order(float(w) * d for w, d in differences(job, heard)) <= 0 if heard else True

def differences(job, heard):
    """(weight, difference of the two losses within the bound) of each."""
    made = [min(h[2], int(job.number("weight_max", 10**6))) for h in heard]
    made = weights.cap([h[0] for h in heard], made, 1, job.share)[0] if heard else []
    so_far, bound = 0, 0.0
    for loss, weight in sorted(zip((h[3] for h in heard), made)):
        so_far += weight
        bound = loss
        if 2 * so_far >= sum(made):
            break
    return [(w, max(-bound, min(bound, h[4] - h[3]))) for w, h in zip(made, heard)]

def personal(job, heard, was):
    """Whether sites' own models serve them best. heard: as above, with the loss of the own model as the second."""
    heard = [h for h in heard if h[2] > 0 and h[3] >= 0 and h[4] > 0]
    if len(heard) < 2 or len({h[0] for h in heard}) < min(2, len(job.tenants)):
        return was
    found = [(float(w), d) for w, d in differences(job, heard)]
    total = steps.in_order(w for w, _ in found)
    mean = steps.in_order(w * d for w, d in found) / total
    spread = steps.in_order(w * ((d - mean) * (d - mean)) for w, d in found) / total
    worth = total * total / steps.in_order(w * w for w, _ in found)
    return mean <= 0 and (was or mean * mean * (worth - 1) > 4 * spread)

def pairs(directions):
    """Of {group: direction}: always the two nearest that are left, ties to the lowest numbers."""
    scaled, near = {g: scale12(d) for g, d in directions.items()}, {}
    for a, b in itertools.combinations(sorted(scaled), 2):
        x, y = scaled[a], scaled[b]
        near[a, b] = cosine(dot(x, y), dot(x, x), dot(y, y)) if x and y else 0.0
    found, free = {}, set(scaled)
    while len(free) > 1:
        a, b = max((p for p in near if set(p) <= free), key=lambda p: (near[p], -p[0], -p[1]))
        found[a], found[b] = b, a
        free -= {a, b}
    return found

class Trials:
    """What follows from trials; `same`, `vector`, `members` and `join` are the other parts' of a telling."""

    @staticmethod
    def asks_own(job, number):
        """Whether sites that train after this round say what their training has made of its models."""
        return 0 < number < job.spec["rounds"] and number % int(job.options["trial_every"]) == 0

    def counts(self, job, body, row):
        """Whether an evaluation is of its group's trial or, where there is none, of what the site has made of the model."""
        if row.get("trial"):
            return body.get("trial") == row["trial"]
        return "trial" not in body and float(body.get("personal_loss", 0)) > 0 and self.asks_own(job, body["round"])

    def found(self, job, round_, where, before):
        """(tenant, group, samples, loss, loss of the trial, loss of its own model) of all rows `evaluated`, which are evaluations of the trials before."""
        found, last = [], {}
        for tenant, row in round_.rows("evaluated"):
            entry = tenant.entries[row["leaf"]]
            b = entry.body
            said = (row["leaf_hash"], row["site"], row["group"], int(row["weight"]), entry.kind, b["job"], b["round"], b.get("trial"))
            self.same("evaluated", where, said, (entry.hash.hex(), b["site"], b["group"], b["samples"], "evaluation", job.name,
                                                 round_.number - 1, before[row["group"]].get("trial")))
            found.append((tenant.name, b["group"], b["samples"], float(b["loss"]), float(b.get("trial_loss", 0)), float(b.get("personal_loss", 0))))
            last[tenant.name] = max(last.get(tenant.name, 0), row["leaf"])
        for name, index in last.items():
            came = [e for e in self.record.tenants[name].entries[:index + 1] if e.kind == "evaluation" and e.body["job"] == job.name
                    and e.body["round"] == round_.number - 1 and self.counts(job, e.body, before[e.body["group"]])]
            self.same("evaluated", where, sum(f[0] == name for f in found), len(came))
        return found

    def tried(self, job, round_, where, rows, before, after):
        members, found = self.members(job, round_), self.found(job, round_, where, before)
        into = {b["group"]: b["group"] for b in before}
        for former in before:
            a, b = former["group"], former.get("tried_with", 0) - 1
            if b > a:
                mine = [m for g in (a, b) for m in members.get(g, [])]
                heard = [(h[0], int(h[1] == b), *h[2:5]) for h in found if h[1] in (a, b)]
                if decide(job, heard, [len(members.get(g, [])) for g in (a, b)], len({m[0] for m in mine})):
                    into[b] = a
                    self.join(job, f"{where}, group {a}", [a, b], members, rows, after)
        follows = {}
        for former in before:
            g, home = former["group"], former.get("merged_into", 0) - 1
            home = into[home] if home >= 0 else into[g]
            direction = rows[home]["direction"] if former.get("merged_into") else former["direction"]
            follows[g] = (direction, home + 1 if home != g else None)
            after[g] = after[home]
        self.same("joins", where, {g: (row["direction"], row.get("merged_into")) for g, row in rows.items()}, follows)
        was = job.closed(round_.number)
        was = bool(was and was.step.body.get("personal", 0))
        if any(b.get("tried_with") for b in before) or self.asks_own(job, round_.number - 1):
            was = personal(job, [(h[0], 0, h[2], h[3], h[5]) for h in found], was)
        self.same("personal", where, bool(round_.step.body.get("personal", 0)), was)
        due = round_.number < job.spec["rounds"] and (any(into[g] != g for g in into) or round_.number % int(job.options["trial_every"]) == 0)
        live = [g for g in follows if follows[g][1] is None] if due else []
        with_ = pairs({g: job.direction(rows[g]["direction"]) for g in live})
        self.same("trials", where, {g: row["tried_with"] - 1 for g, row in rows.items() if row.get("tried_with")}, with_)
        now = {}
        for g, some in members.items():
            now.setdefault(into[g], []).extend(some)
        for a, b in with_.items():
            self.trial(job, f"{where}, group {a}", rows, sorted((a, b)), now, after, a)

    def trial(self, job, where, rows, both, members, after, g):
        """The mean of two models by their sites, as if they joined."""
        counts = sorted((name, k, sum(m[0] == name for m in members.get(k, []))) for k in both for name in job.tenants)
        counts = [c for c in counts if c[2]]
        made = weights.cap([c[0] for c in counts], [c[2] * weights.VOTE for c in counts], 1, job.share)[0] if counts else []
        sums = [sum(w for w, c in zip(made, counts) if c[1] == k) for k in both]
        self.vector("trial", where, job, rows[g].get("trial"), "F32",
                    steps.blend([job.model(after[k]) for k in both], sums if any(sums) else [1, 1]))
