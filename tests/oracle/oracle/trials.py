"""Groups that are tried against each other: docs/record.md, "Groups that are tried"."""

import itertools

from verifier.arithmetic import cosine, dot, nearest, scale12

from . import groups, steps, weights

def enough(heard, sites, tenants):
    """Whether those that count, of (tenant, side, samples, loss, loss of the trial) in the order of tenants and sites, are enough to join or part by."""
    if any(sites[side] and not any(h[1] == side for h in heard) for side in (0, 1)):
        return False
    return len(heard) >= min(2, sum(sites)) and len({h[0] for h in heard}) >= min(2, tenants)

def joins(job, heard, sites, tenants):
    """*Joining* of two groups."""
    return enough(heard, sites, tenants) and steps.in_order(float(w) * d for w, d in differences(job, heard)) <= 0

def stays(job, heard, sites, tenants):
    """Whether *a cut* stays."""
    return bool(heard) and enough(heard, sites, tenants) and below(*measured(job, heard), 1)

def differences(job, heard):
    """(weight, difference of the two losses) of each, both within three times what is usual."""
    if not heard:
        return []
    made = [min(h[2], int(job.number("weight_max", 10**6))) for h in heard]
    most = 3 * middle([(w, 1) for w in made])
    made = weights.cap([h[0] for h in heard], [min(w, most) for w in made], 1, job.share)[0]
    found = [h[4] - h[3] for h in heard]
    bound = 3 * middle(list(zip(map(abs, found), made)))
    return [(w, max(-bound, min(bound, d))) for w, d in zip(made, found)]

def middle(weighed):
    """The least of the values up to which half of the weight is, of (value, weight)."""
    so_far, order = 0, sorted(weighed)
    for value, weight in order:
        so_far += weight
        if 2 * so_far >= sum(w for _, w in order):
            return value

def personal(job, heard, was):
    """Whether sites' own models serve them best. heard: as above, with the loss of the own model as the second."""
    heard = [h for h in heard if h[2] > 0 and h[3] >= 0 and h[4] > 0]
    if len(heard) < 2 or len({h[0] for h in heard}) < min(2, len(job.tenants)):
        return was
    mean, spread, worth = measured(job, heard)
    return mean <= 0 and (was or below(mean, spread, worth, 4))

def measured(job, heard):
    """Of the differences: mean, mean square off it, and how many inputs of one weight they are worth."""
    found = [(float(w), d) for w, d in differences(job, heard)]
    total = steps.in_order(w for w, _ in found)
    mean = steps.in_order(w * d for w, d in found) / total
    spread = steps.in_order(w * ((d - mean) * (d - mean)) for w, d in found) / total
    return mean, spread, total * total / steps.in_order(w * w for w, _ in found)

def below(mean, spread, worth, errors_squared):
    return mean < 0 and mean * mean * (worth - 1) > errors_squared * spread

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
        into, parted, cut, back = {b["group"]: b["group"] for b in before}, set(), False, {}
        for former in before:
            a, b = former["group"], former.get("tried_with", 0) - 1
            if b > a:
                mine = [m for g in (a, b) for m in members.get(g, [])]
                heard = [(h[0], int(h[1] == b), *h[2:5]) for h in found if h[1] in (a, b) and h[2] > 0 and h[3] >= 0 and h[4] >= 0]
                said = heard, [len(members.get(g, [])) for g in (a, b)], len({m[0] for m in mine})
                is_cut = former["after"] == before[b]["after"]
                cut = cut or is_cut
                if is_cut and stays(job, *said):
                    parted |= {a, b}
                elif is_cut or joins(job, *said):
                    into[b] = a
                    back[a] = next((r["whole"] for r in (former, before[b]) if is_cut and "whole" in r), former["direction"])
                    both = [i for i in self.inputs(job, round_, "aggregated") if i.row["group"] in (a, b)] if is_cut else None
                    self.join(job, round_, f"{where}, group {a}", [a, b], members, rows, after, both)
        was = job.closed(round_.number)
        was = bool(was and was.step.body.get("personal", 0))
        if any(b.get("tried_with") for b in before) or self.asks_own(job, round_.number - 1):
            was = personal(job, [(h[0], 0, h[2], h[3], h[5]) for h in found], was)
        self.same("personal", where, bool(round_.step.body.get("personal", 0)), was)
        homes = {b["group"]: into[b["merged_into"] - 1] if b.get("merged_into") else into[b["group"]] for b in before}
        live, follows, with_ = [g for g in homes if homes[g] == g], {}, {}
        may, pairs_too = self.next_trials(job, round_.number, live, parted, any(into[g] != g for g in into), cut)
        if may:
            free = [b["group"] for b in before if b.get("merged_into")]
            whole = [g for g in live if g in may and list(homes.values()).count(g) == 1 + sum(b.get("merged_into", 0) == g + 1 for b in before)]
            with_ = self.cuts(job, round_, where, rows, whole, free, members, before, after, follows)
            pairs_too = not with_ and (round_.number == 1 or self.asks_own(job, round_.number))
        for former in before:
            g, home = former["group"], homes[former["group"]]
            if g not in follows:
                follows[g] = (rows[home]["direction"] if former.get("merged_into") else back.get(g, former["direction"]), home + 1 if home != g else None)
                after[g] = after[home]
        self.same("joins", where, {g: (row["direction"], row.get("merged_into")) for g, row in rows.items()}, follows)
        now = {}
        for g, some in members.items():
            now.setdefault(into[g], []).extend(some)
        if pairs_too:
            with_ = pairs({g: job.direction(rows[g]["direction"]) for g in live})
            for a, b in with_.items():
                self.trial(job, f"{where}, group {a}", rows, sorted((a, b)), now, after, a)
        self.same("trials", where, {g: row["tried_with"] - 1 for g, row in rows.items() if row.get("tried_with")}, with_)

    def next_trials(self, job, number, live, parted, has_joined, had_cuts):
        """(groups that may be cut, whether pairs are tried)."""
        if number >= job.spec["rounds"]:
            return [], False
        is_due = self.asks_own(job, number)
        if job.spec.get("choose", job.choice) != "one":
            return [], is_due or has_joined
        turns = not (is_due or number == 1) or int(job.options["trial_every"]) == 1
        if had_cuts and not parted and turns and len(live) > 1:
            return [], True
        return live if is_due or number == 1 else sorted(parted), False

    def cuts(self, job, round_, where, rows, whole, free, members, before, after, follows):
        """*Cuts*: each group in two halves, which are tried by what the updates of each alone have made."""
        inputs, count, with_ = self.inputs(job, round_, "aggregated"), len(before), {}
        for g in whole:
            number, mine = free[0] if free else count, members.get(g, [])
            if number >= max(int(job.options["most"]), int(job.number("groups", 2))) or all(i.row["group"] != g for i in inputs):
                continue
            updates = [self.pretrained(job, m[0], m[2]) for m in mine]
            part = groups.halves(updates, [m[0] for m in mine]) if sum(map(any, updates)) >= 4 else []
            if min(sum(p == side and any(u) for p, u in zip(part, updates)) for side in (0, 1)) < 2:
                continue
            count, free = (count, free[1:]) if free else (count + 1, free)
            made = [self.made_direction(job, [(m[0], u) for m, u, p in zip(mine, updates, part) if p == side]) for side in (0, 1)]
            self.same("cut", f"{where}, group {g}", (rows[g].get("whole"), rows[g].get("made")), (before[g]["direction"], None))
            self.second_part(f"{where}, group {number}", rows.get(number), rows[g], g)
            sides = {m[:2]: nearest(u, [job.direction(rows[k]["direction"]) for k in (g, number)])[0] for m, u in zip(mine, updates)}
            for side, place in enumerate((g, number)):
                follows[place], with_[place] = (made[side] or before[g]["direction"], None), (number, g)[side]
                some = [i for i in inputs if i.row["group"] == g and sides.get(i.key) == side]
                here, start = f"{where}, group {place}", job.model(rows[g]["before"])
                if some:
                    self.vector("trial", here, job, rows[place].get("trial"), "F32", self.aggregated(job, round_, start, some)[2])
                else:
                    self.same("trial", here, rows[place].get("trial"), after[g])
            after[number] = after[g]
        return with_

    def trial(self, job, where, rows, both, members, after, g):
        """The mean of two models by their sites, as if they joined."""
        counts = sorted((name, k, sum(m[0] == name for m in members.get(k, []))) for k in both for name in job.tenants)
        counts = [c for c in counts if c[2]]
        made = weights.cap([c[0] for c in counts], [c[2] * weights.VOTE for c in counts], 1, job.share)[0] if counts else []
        sums = [sum(w for w, c in zip(made, counts) if c[1] == k) for k in both]
        self.vector("trial", where, job, rows[g].get("trial"), "F32",
                    steps.blend([job.model(after[k]) for k in both], sums if any(sums) else [1, 1]))
