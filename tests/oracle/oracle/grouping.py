"""Sites and their groups, round by round: docs/record.md, "Groups of sites" and "Several models without a pre-training"."""

from verifier import arithmetic
from verifier.arithmetic import nearest
from verifier.store import tensors_write

from . import groups, steps, weights
from .facts import ZERO, Input, sha256

DRIFT_MOST, PART_MOST = 1.0 / 3.0, 16

class Grouping:
    """The half of a telling that is about groups; `same`, `vector`, `aggregate` and `inputs` are the other half's."""

    def last_layer(self, job, values):
        """`fedclust` sees the coordinates of the last layer alone."""
        start = job.count - job.last_layer
        return [0] * start + list(values[start:]) if job.strategy == "fedclust" else values

    def pretrained(self, job, tenant, digest):
        return self.last_layer(job, job.update(self.record.tenants[tenant], digest))

    def clusters(self, job, round_, inputs):
        """Group of each update as *Groups by FlexCFL* and *Joining* have it, or None where that takes what is not told here."""
        updates, fixed = [self.last_layer(job, i.values) for i in inputs], job.spec.get("choose", job.choice) == "fixed"
        if not all(any(u) for u in updates):
            return None
        if job.spec.get("choose", job.choice) == "one":
            return [0] * len(updates)
        if job.strategy == "fedclust":
            return groups.joining(groups.distances(updates), "average", 1, int(job.number("groups", 16)), job.options["link"])
        if job.strategy == "flexcfl-madc" and fixed:
            return groups.joining(groups.madc(updates), "complete", min(int(job.number("groups")), len(updates)))
        most = job.spec.get("choose", job.choice) == "most"
        if job.strategy not in ("flexcfl-plain", "flexcfl-madc") and (fixed or most):
            count = int(job.number("groups"))
            count = min(max(count, int(job.options["most"])), max(min(count, int(job.options["most"])), len(inputs) // 3)) if most else count
            return arithmetic.groups_of([(i.tenant, u) for i, u in zip(inputs, updates)], count, job.seed, round_.number)
        return None

    def made_direction(self, job, members):
        """*Direction of a group* of (tenant, values): its digest, or None where all updates are zero."""
        if not any(any(values) for _, values in members):
            return None
        return sha256(tensors_write("I32", job.layout, arithmetic.direction(members, job.share)))

    def cold_start(self, job, round_, where):
        """`flexcfl-cold-start/v2`: round 0."""
        inputs = self.inputs(job, round_, "grouped")
        said, follows = [i.row["group"] for i in inputs], self.clusters(job, round_, inputs)
        if follows is not None:
            self.same("groups", where, said, follows)
        self.same("rule", where, round_.step.body["rule"], "flexcfl-cold-start/v2")
        for row in round_.step.body["groups"]:
            g, here = row["group"], f"{where}, group {row['group']}"
            mine = [i for i in inputs if i.row["group"] == g]
            self.aggregate(job, round_, here, g, mine)
            subject = round_.aggregates[g].subject
            self.same("step", here, (row["before"], row["aggregate"], row["after"]), (job.opened.body["initial_model"], subject, subject))
            self.same("direction", here, row["direction"], self.made_direction(job, [(i.tenant, self.last_layer(job, i.values)) for i in mine]))

    def groups_made_anew(self, job, round_, where):
        """`flexcfl-recluster/v2`."""
        inputs, last = self.inputs(job, round_, "grouped"), job.closed(round_.number).step.body["groups"]
        former = [job.in_force(i.key, i.leaf) for i in inputs]
        former = [e.body["group"] if e else None for e in former]
        said, found = [i.row["group"] for i in inputs], self.clusters(job, round_, inputs)
        if found is None:  # then the clusters are a fact, and only their numbers follow
            names = {}
            found = [names.setdefault(g, len(names)) for g in said]
        numbers = groups.match(found, former, max(found) + 1)
        self.same("groups", where, said, [numbers[c] for c in found])
        self.same("rule", where, round_.step.body["rule"], "flexcfl-recluster/v2")
        self.same("groups", where, [row["group"] for row in round_.step.body["groups"]], sorted(numbers))
        for row in round_.step.body["groups"]:
            g, here = row["group"], f"{where}, group {row['group']}"
            mine, entry = [(i, f) for i, f in zip(inputs, former) if i.row["group"] == g], round_.aggregates[g]
            before = last[g]["after"] if g < len(last) else job.opened.body["initial_model"]
            self.same("base", here, (entry.body["base"], row["before"]), (before, before))
            self.same("rule", here, entry.body["rule"], "flexcfl-recluster/v2")
            counts = [f is not None or all(other is None for _, other in mine) for _, f in mine]
            made = iter(arithmetic.cap_shares([(i.tenant, 1) for (i, _), c in zip(mine, counts) if c], 1))
            made = [next(made) if c else 0 for c in counts]
            self.same("weights", here, [i.weight for i, _ in mine], made)
            sums = [sum(w for w, (_, f) in zip(made, mine) if f == number) for number in range(len(last))]
            values = steps.blend([job.model(r["after"]) for r in last], sums) if any(sums) else job.model(job.opened.body["initial_model"])
            self.vector("blend", here, job, entry.subject, "F32", values)
            self.same("step", here, (row["aggregate"], row["after"], row.get("state_after", ZERO), row.get("made")), (entry.subject, entry.subject, ZERO, None))
            self.same("direction", here, row["direction"], self.made_direction(job, [(i.tenant, self.last_layer(job, i.values)) for i, _ in mine]))

    def groups_kept(self, job, round_, where):
        """`flexcfl-kept/v1`: fewer came than there are groups, or than the quorum, and all stays as it was."""
        last, came = job.closed(round_.number).step.body["groups"], len(job.updates(round_.number, "pretrain"))
        self.same("groups kept", where, came < max(len(last), int(job.number("quorum", 1))), True)
        for row, former in zip(round_.step.body["groups"], last):
            follows = {**{k: former[k] for k in former if k not in ("state_before", "stepped", "whole", "split_of")},
                       "before": former["after"], "aggregate": former["after"]}
            self.same("groups kept", where, {k: v for k, v in row.items() if k != "state_before"}, follows)

    # ---- groups that live

    def due(self, job, round_):
        every = int(job.options["refresh"])
        return every and round_.number % every == 0 and round_.number < job.spec["rounds"]

    def members(self, job, round_):
        """Of each group, (tenant, site, digest of the update that gave it its group) as the close's checkpoints cover them."""
        found = {}
        for (name, site), given in sorted(job.assigned.items()):
            last = job.in_force((name, site), self.record.anchored(name, round_.step.index))
            if last is not None:
                found.setdefault(last.body["group"], []).append((name, site, last.body["update"]))
        return found

    def without_directions_again(self, job, round_, where, rows, before, after):
        """Directions stay; a group that is part of another has what that one has."""
        for former in before:
            row, here = rows[former["group"]], f"{where}, group {former['group']}"
            home = rows[former["merged_into"] - 1] if former.get("merged_into") else None
            self.same("direction", here, (row["direction"], row.get("made"), row.get("merged_into")),
                      ((home or former)["direction"], (home or former).get("made"), former.get("merged_into")))
            if home:
                after[row["group"]] = after[home["group"]]
        if "drift" in round_.step.body:
            self.same("drift", where, round_.step.body["drift"], None)

    def directions_again(self, job, round_, where, rows, before, after):
        """"Directions estimated again" and "Groups that are cut and joined"."""
        members, read = self.members(job, round_), lambda m: (m[0], self.pretrained(job, m[0], m[2]))
        live = [b["group"] for b in before if not b.get("merged_into")]
        now = {g: self.made_direction(job, [read(m) for m in members.get(g, [])]) or before[g]["direction"] for g in live}
        made = {g: before[g].get("made", before[g]["direction"]) for g in live}
        tensors = {digest: job.direction(digest) for g, digest in made.items()}
        drift = 0.0
        for g in live:
            said = rows[g].get("whole", rows[g]["direction"])
            self.same("direction", f"{where}, group {g}", said, now[g])
            tensors[now[g]] = job.direction(said)
        if any(rows[g].get("whole", rows[g]["direction"]) != now[g] for g in live):
            return
        drift = groups.drift([tensors[made[g]] for g in live], [tensors[now[g]] for g in live])
        self.same("drift", where, float(round_.step.body.get("drift", 0)), drift)
        into = {g: g for g in live}
        if drift <= DRIFT_MOST and job.options["merge"] < 1:
            into = {g: live[i] for g, i in zip(live, groups.merges([tensors[now[g]] for g in live], job.options["merge"]))}
        follows = {g: (now[g], made[g] if made[g] != now[g] else None, into[g] + 1 if into[g] != g else None) for g in live}
        for g in sorted(set(into.values())):
            joined = [l for l in live if into[l] == g]
            if len(joined) > 1:
                self.join(job, round_, f"{where}, group {g}", joined, members, rows, after)
        if drift <= DRIFT_MOST and job.options["silhouette"] < 1 and all(into[g] == g for g in live):
            self.cut(job, where, members, rows, before, follows, after)
        for g, former in enumerate(before):
            if former.get("merged_into"):
                home = into.get(former["merged_into"] - 1, former["merged_into"] - 1)
                if g not in follows:
                    follows[g], after[g] = (*follows[home][:2], former["merged_into"]), after[home]
        said = {g: (row["direction"], row.get("made"), row.get("merged_into")) for g, row in rows.items()}
        self.same("directions", where, said, follows)

    def join(self, job, round_, where, joined, members, rows, after, inputs=None):
        """Models of groups that become one: the mean of theirs, weighted by their sites, under the cap; of a cut that is taken back, what its inputs make."""
        if inputs is not None:
            start = job.model(rows[joined[0]]["before"])
            self.vector("join", where, job, rows[joined[0]]["after"], "F32", self.aggregated(job, round_, start, inputs)[2] if inputs else start)
            for g in joined:
                after[g] = rows[joined[0]]["after"]
            return
        counts = sorted((name, g, sum(m[0] == name for m in members.get(g, []))) for g in joined for name in job.tenants)
        counts = [c for c in counts if c[2]]
        made = weights.cap([c[0] for c in counts], [c[2] * weights.VOTE for c in counts], 1, job.share)[0] if counts else []
        sums = [sum(w for w, c in zip(made, counts) if c[1] == g) for g in joined]
        values = steps.blend([job.model(after[g]) for g in joined], sums if any(sums) else [1] * len(joined))
        self.vector("join", where, job, rows[joined[0]]["after"], "F32", values)
        for g in joined:
            after[g] = rows[joined[0]]["after"]

    def cut(self, job, where, members, rows, before, follows, after):
        """Groups whose updates fall in two parts."""
        free = [b["group"] for b in before if b.get("merged_into")]
        count = len(before)
        for g in [b["group"] for b in before if not b.get("merged_into")]:
            number = free[0] if free else count
            if number >= int(job.options["most"]):
                break
            mine = members.get(g, [])
            updates = [self.pretrained(job, m[0], m[2]) for m in mine]
            parts, quality = groups.cut_in_two(updates) if len(mine) >= 4 else ([], 0.0)
            if min(parts.count(0), parts.count(1)) < 2 or quality < job.options["silhouette"]:
                self.same("cut", f"{where}, group {g}", rows[g].get("whole"), None)
                continue
            count, free = (count, free[1:]) if free else (count + 1, free)
            for place, part in ((g, 0), (number, 1)):
                digest = self.made_direction(job, [(m[0], u) for m, u, p in zip(mine, updates, parts) if p == part])
                follows[place] = (digest, None, None)
            self.second_part(f"{where}, group {number}", rows.get(number), rows[g], g)
            after[number] = after[g]

    def second_part(self, where, row, whole, g):
        """The row of what is cut off has models and states of the group that it was."""
        keys = ("before", "aggregate", "stepped", "after", "state_before", "state_after")
        said = (row.get("split_of"), [row.get(k) for k in keys]) if row else None
        self.same("cut", where, said, (g + 1, [whole.get(k) for k in keys]))

    def groups_that_part(self, job, round_, where, rows, after, by_group):
        """`cfl`."""
        count, moved = len(job.groups(round_)), {}
        for g in sorted(by_group):
            inputs = by_group[g]
            if round_.number < int(job.options["split_after"]) or count >= PART_MOST or len(inputs) < 3:
                continue
            mean, longest = groups.cfl_norms([i.values for i in inputs], job.scale)
            if not (mean < job.options["split_mean"] and longest > job.options["split_max"]):
                continue
            parts, _ = groups.cut_in_two([i.values for i in inputs])
            if 1 not in parts:
                continue
            moved.update({i.key: count for i, part in zip(inputs, parts) if part})
            self.second_part(f"{where}, group {count}", rows.get(count), rows[g], g)
            after[count], count = after[g], count + 1
        self.same("parts", where, {i.key: i.row["to"] for inputs in by_group.values() for i in inputs if "to" in i.row}, moved)
        self.same("parts", where, len(rows), count)

    # ---- statements of groups

    def group_assigned(self, job):
        """"The group in force": every `group-assigned` follows from an update and a step, and none is missing."""
        for key, given in job.assigned.items():
            for at, entry in enumerate(given):
                self.assignment(job, key, entry, given[at - 1] if at else None)
        for round_ in job.rounds:
            if round_.step:
                self.all_assigned(job, round_)

    def assignment(self, job, key, entry, last):
        b, where, tenant = entry.body, f"{job.name}, {key[0]}/{key[1]}, entry {entry.index}", self.record.tenants[key[0]]
        if b["how"] == "nearest":
            return self.e_step(job, where, key, entry)
        if job.strategy == "cfl":
            rows = [r for t, r in self.round_of(job, b["round"]).rows("aggregated") if (t.name, r["site"]) == key]
            self.same("assignment", where, (b["group"], b["update"], float(b["similarity"])), (rows[0].get("to"), rows[0]["update"], 0.0))
            return None
        given_at_close = b["how"] in ("cold-start", "recluster", "split", "merge")
        step = (self.round_of(job, b["round"]) if given_at_close else job.closed(b["round"])).step.body["groups"]
        directions = [job.direction(step[(row.get("merged_into") or row["group"] + 1) - 1]["direction"]) for row in step]
        update = self.pretrained(job, key[0], b["update"])
        row = next((r for t, r in self.round_of(job, b["round"]).rows("grouped") if given_at_close and (t.name, r["site"]) == key), None)
        if b["how"] in ("cold-start", "recluster") and row:
            group = row["group"]
            self.same("assignment", where, b["update"], row["update"])
        elif b["how"] == "merge":
            group = step[last.body["group"]]["merged_into"] - 1
        elif b["how"] == "split":
            new = next(r["group"] for r in step if r.get("split_of") == last.body["group"] + 1)
            group = nearest(update, [directions[last.body["group"]], directions[new]])[0]
            group = (last.body["group"], new)[group]
        else:
            group = nearest(update, directions)[0]
        if given_at_close and not row:
            self.same("assignment", where, b["update"], last.body["update"])
        self.same("assignment", where, b["group"], group)
        self.same("similarity", where, float(b["similarity"]), nearest(update, [directions[group]])[1])
        return None

    def round_of(self, job, number):
        return next(r for r in job.rounds if r.number == number)

    def e_step(self, job, where, key, entry):
        """"Last models" (`fesem`)."""
        b, tenant = entry.body, self.record.tenants[key[0]]
        group, distance, update = self.nearest_group(job, key, b["round"], entry.index)
        self.same("assignment", where, (b["group"], b["update"], float(b["similarity"])), (group, update, 1.0 / (1.0 + distance)))

    def nearest_group(self, job, key, number, index):
        tenant = self.record.tenants[key[0]]
        trained = [e for e in tenant.entries[:index] if e.kind == "update" and (e.body["job"], e.body["site"]) == (job.name, key[1])]
        model = job.model(job.opened.body["initial_model"])
        if trained:
            model = groups.last_model(job.model(trained[-1].body["base"]), job.update(tenant, trained[-1].subject), job.scale)
        models = [job.model(row["after"]) for row in job.groups(self.round_of(job, number))]
        return *groups.nearest_model(model, models), trained[-1].subject if trained else ZERO

    def all_assigned(self, job, round_):
        """Who must have got a group by this round, and where none was stated the one in force is the one that follows."""
        where = f"{job.name}, round {round_.number}"
        if job.strategy == "fesem":
            for tenant, entry in job.updates(round_.number, "train"):
                key = tenant.name, entry.body["site"]
                self.same("assignment", where, entry.body["group"], self.nearest_group(job, key, round_.number, entry.index)[0])
            return
        given = {(key, e.body["group"]) for key, es in job.assigned.items() for e in es if e.body["round"] == round_.number
                 and e.body["how"] in ("cold-start", "recluster", "split", "merge")}
        rows, due = round_.step.body["groups"], set()
        if round_.kind == "pretrain" and round_.step.body["rule"] != "flexcfl-kept/v1":
            due = {((t.name, r["site"]), r["group"]) for t, r in round_.rows("grouped")}
            others = {(name, site) for group in self.members(job, round_).values() for name, site, _ in group} - {key for key, _ in due}
            self.same("assigned", where, {key for key, _ in given} - {key for key, _ in due}, others)
            given = {x for x in given if x[0] not in others}
        elif job.strategy == "cfl":
            due = {((t.name, r["site"]), r["to"]) for t, r in round_.rows("aggregated") if "to" in r}
        elif job.living:
            for group, members in self.members(job, round_).items():
                new = next((r["group"] for r in rows if r.get("split_of") == group + 1), None)
                home = rows[group].get("merged_into")
                for name, site, digest in members:
                    if home:
                        due.add(((name, site), home - 1))
                    elif new is not None:
                        update = self.pretrained(job, name, digest)
                        if nearest(update, [job.direction(rows[group]["direction"]), job.direction(rows[new]["direction"])])[0] == 1:
                            due.add(((name, site), new))
        self.same("assigned", where, given, due)
