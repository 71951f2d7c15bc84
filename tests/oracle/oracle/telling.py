"""Round by round: what follows from the facts in front of a decision, beside what the record says was decided. Each decision is
told from recorded facts alone, so that one that is wrong does not make those after it wrong."""

import collections

from verifier import arithmetic
from verifier.store import tensors_read, tensors_write

from . import budgets, deadlines, draws, plans, rules, steps, weights
from .facts import RULE_OF, ZERO, Input, sha256
from .grouping import Grouping
from .trials import Trials

GOLDEN = 0x9E3779B97F4A7C15

class Telling(Grouping, Trials):
    def __init__(self, record, names=()):
        self.record, self.findings, self.told, self.jobs = record, [], collections.Counter(), 0
        self.deadlines()
        for job in record.jobs.values():
            if not names or job.name in names:
                self.job(job)
                self.jobs += 1

    def same(self, section, where, said, follows):
        self.told[section] += 1
        if said != follows:
            self.findings.append(f"{where}: {section}: the record says {short(said)}, its facts give {short(follows)}")

    def vector(self, section, where, job, said, dtype, values, layout=None):
        self.same(section, where, said, sha256(tensors_write(dtype, layout or job.layout, values)))

    def job(self, job):
        self.first_models(job)
        at_work = {}
        for round_ in job.rounds:
            where = f"{job.name}, round {round_.number}"
            self.round_opened(job, round_, where, at_work)
            if not round_.step:
                continue
            self.rows(job, round_, where)
            if round_.kind == "train":
                self.training(job, round_, where)
            elif round_.step.body["rule"] == "flexcfl-kept/v1":
                self.groups_kept(job, round_, where)
            elif round_.number == 0:
                self.cold_start(job, round_, where)
            else:
                self.groups_made_anew(job, round_, where)
            self.same("step", where, round_.step.subject, round_.step.body["groups"][0]["after"])
            for tenant, row in round_.rows("aggregated") + round_.rows("refused"):
                at_work.pop((tenant.name, row["site"]), None)
        self.group_assigned(job)
        self.budget(job)
        self.targets(job)
        last = job.closed(1 << 60)
        for group, entry in job.releases.items():
            self.same("release", f"{job.name}, group {group}", entry.subject, (last.step.body["groups"] if last else job.groups(None))[group]["after"])

    def plan(self, job, round_, where, rows):
        """"Plans": what part of its data each site is given, and that its update is of that part."""
        if "plan" not in job.spec:
            return
        given = {(t.name, r["site"]): r["percent"] for t, r in rows if "percent" in r}
        costs = {(t.name, r["site"]): plans.said(job, t, r["site"], round_.number) for t, r in rows if r["use"] == "selected"}
        self.same("plan", where, given, plans.parts(job, costs) if plans.planned(job, round_) else {})
        for tenant, entry in job.updates(round_.number, "train"):
            b, percent = entry.body, given.get((tenant.name, entry.body["site"]), 0)
            self.same("plan", where, b["samples"] if percent else b.get("data_samples"), plans.part_of(b["data_samples"], percent) if percent else None)

    def budget(self, job):
        """"Budgets": what each step charges, and that its round could open."""
        costs, spent, last = [], 0, None
        for round_ in job.rounds if "budget" in job.spec else []:
            where = f"{job.name}, round {round_.number}"
            self.same("budget", where, "opened", "opened" if budgets.fits(job, spent, costs) else "halted")
            if round_.step:
                mine = [e for name in job.tenants for e in self.record.tenants[name].entries if e.kind == "update" and e.body["job"] == job.name
                        and (e.body["round"] == round_.number if job.strategy != "fedbuff" else self.came(name, last, e.index, round_))]
                costs.append(min(budgets.MOST, sum(budgets.charge(job, e.body) for e in mine)))
                spent, last = min(budgets.MOST, spent + costs[-1]), round_
                body = round_.step.body
                self.same("budget", where, (int(body.get("charged", 0)), int(body.get("spent", 0))), (costs[-1], spent))

    def deadlines(self):
        """"Deadlines": who was admitted and who refused, and that no job with a deadline was opened without."""
        promises = []
        for entry in self.record.main:
            if entry.kind not in ("job-admitted", "job-refused"):
                continue
            promise = deadlines.Promise(self.record, entry)
            body, is_in = deadlines.decide(self.record, promises, promise)
            where = f"main[{entry.index}], job {entry.body['job']}"
            self.same("deadlines", where, entry.kind == "job-admitted", is_in)
            self.same("deadlines", where, {key: entry.body.get(key, 0) for key in body}, body)
            promises += [promise] if entry.kind == "job-admitted" else []
        names = {p.body["job"] for p in promises}
        for job in self.record.jobs.values():
            self.same("deadlines", job.name, job.number("deadline_s") > 0, job.name in names)

    def targets(self, job):
        """"Targets": what evaluations come to, what is released for it, and where the job ends."""
        goals, hold, every = [round(float(t) * 1e6) for t in job.spec.get("targets", [])], int(job.number("hold", 3)), int(job.number("evaluate_every", 1))
        held, tier, told = [0] * len(goals), 0, {e.body["round"]: e for e in job.tested}
        for round_ in job.rounds if goals else []:
            where = f"{job.name}, round {round_.number}"
            self.same("targets", where, "opened" if tier == len(goals) else "", "")
            if not round_.step or round_.number % every or not 0 < round_.number < job.spec["rounds"]:
                continue
            if round_ is job.rounds[-1] and round_.number not in told and job.outcome != "completed":
                continue
            entry, before = told.pop(round_.number, None), tier
            mine = [e.body for name in job.tenants for e in self.record.tenants[name].entries if e.kind == "evaluation" and e.body["job"] == job.name
                    and e.body["round"] == round_.number and e.index < self.record.anchored(name, entry.index if entry else 0)]
            samples, correct = sum(e["samples"] for e in mine), sum(e["correct"] for e in mine)
            if samples and len(mine) >= int(job.number("quorum", 1)):
                held = [min(hold, n + 1) if correct * 10**6 >= goal * samples else 0 for goal, n in zip(goals, held)]
            tier = next((i for i, n in enumerate(held) if n < hold), len(goals))
            says = (entry.body["evaluations"], entry.body["samples"], entry.body["correct"], entry.body["tier"], entry.body.get("held", 0), entry.body.get("held_last", 0)) if entry else None
            self.same("targets", where, says, (len(mine), samples, correct, tier, *held, *[0] * (2 - len(held))))
            models = [g["after"] for g in round_.step.body["groups"]] if before < tier < len(goals) else []
            self.same("targets", where, [e.subject for e in job.tiers if e.body["round"] == round_.number], models)
        self.same("targets", job.name, sorted(told), [])
        if job.outcome == "completed":
            self.same("targets", job.name, job.rounds[-1].number == job.spec["rounds"] or bool(goals) and tier == len(goals), True)

    def first_models(self, job):
        """"Where models begin" and *first model*."""
        if "initial_model" in job.spec:
            return
        fans = [sum(dims) if name.endswith(".weight") else 0 for name, dims in job.layout]
        apart = job.strategy in ("ifca", "fesem")
        count = int(job.number("groups")) if apart else 1
        said = {0: job.opened.body["initial_model"], **{m["group"]: m["model"] for m in job.opened.body.get("first_models", [])}}
        for g in range(count):
            values = arithmetic.initial_model(job.layout, fans, (job.seed + g * GOLDEN) % 2**64)
            self.vector("first models", f"{job.name}, group {g}", job, said.pop(g, None), "F32", values)
        self.same("first models", job.name, sorted(said), [])

    def round_opened(self, job, round_, where, at_work):
        """"round-opened", "Drawn again", "Asynchronous rounds" and *selection*."""
        kind = draws.kind_of(job, round_.number)
        self.same("kind of round", where, round_.kind, kind)
        for opening in round_.openings:
            rows = self.record.lists(opening)
            if job.strategy == "fedbuff":
                for key in [k for k, t in at_work.items() if round_.number - t > int(job.number("staleness_max", 16))]:
                    at_work.pop(key)
                said = {(t.name, r["site"]): r.get("round") for t, r in rows if r["use"] in ("working", "away")}
                self.same("who is at work", where, said, at_work)
            said = {(t.name, r["site"]) for t, r in rows if r["use"] == "selected"}
            self.plan(job, round_, where, rows)
            self.same("selection", where, said, draws.selection(job, round_.number, kind, rows))
            for row in opening.body["tenants"]:
                mine = [r for t, r in rows if t.salted == row["id"]]
                self.same("selection", where, (row["candidates"], row["selected"]), (len(mine), sum(r["use"] == "selected" for r in mine)))
        if job.strategy == "fedbuff":
            at_work.update({key: round_.number for key in said})

    def rows(self, job, round_, where):
        """"aggregate": every update that came stands in one row, which is its statement; totals add up."""
        listed, last = [], job.closed(round_.number)
        for group, lists in round_.lists.items():
            entry, use = round_.aggregates[group], "aggregated" if round_.kind == "train" else "grouped"
            counted = [r for _, r in lists if r["use"] == use]
            self.same("totals", where, (entry.body["count"], int(entry.body["weight_sum"])), (len(counted), sum(int(r["weight"]) for r in counted)))
            for tenant, row in lists:
                if row["leaf_hash"] != ZERO and row["use"] != "evaluated":
                    statement = tenant.entries[row["leaf"]]
                    listed.append((tenant.name, row["leaf"]))
                    said = (row["leaf_hash"], row["update"], row["site"], row["group"] if row["use"] == "aggregated" else 0)
                    self.same("rows", where, said, (statement.hash.hex(), statement.subject, statement.body["site"], statement.body["group"]))
        came = [(name, e.index) for name in job.tenants for e in self.record.tenants[name].entries
                if e.kind == "update" and e.body["job"] == job.name and (e.body["round"] == round_.number if job.strategy != "fedbuff" else
                                                                         self.came(name, last, e.index, round_))]
        self.same("rows", where, sorted(listed), sorted(came))

    def came(self, name, last, index, round_):
        return (self.record.anchored(name, last.step.index) if last else 0) <= index < self.record.anchored(name, round_.step.index)

    def inputs(self, job, round_, use):
        return [Input(job, tenant, row) for tenant, row in round_.rows(use)]

    # ---- weights and aggregates

    def aggregate(self, job, round_, where, group, inputs):
        """Steps 1 to 4 of "Strategies and rules"."""
        entry, base = round_.aggregates[group], job.opened.body["initial_model"]
        if round_.kind == "train":
            base = job.groups(round_)[group]["after"]
        self.same("base", where, entry.body["base"], base)
        rule, made, values = self.aggregated(job, round_, job.model(base), inputs)
        self.same("weights", where, [i.weight for i in inputs], made)
        self.same("rule", where, entry.body["rule"], self.rule_name(job, round_, rule))
        self.vector("aggregate", where, job, entry.subject, "F32", values)

    def aggregated(self, job, round_, start, inputs):
        """(rule that runs, weights, model) of these inputs."""
        updates = [i.values[:job.count] for i in inputs]
        rule, made, divisor = self.weigh(job, round_, inputs, updates)
        if rule in rules.COORDINATE:
            bad = rules.bad_ones(made, job.fraction) if rule != "bulyan" else rules.bad_ones([weights.VOTE] * len(made), job.fraction)
            return rule, made, rules.columns(rule, start, updates, made, bad, job.scale)
        return rule, made, arithmetic.mean(start, list(zip(made, updates)), job.scale, divisor)

    def weigh(self, job, round_, inputs, updates):
        """(the rule that runs, the recorded weights, the divisor)."""
        root = next((n for n, i in enumerate(inputs) if "/".join(i.key) == job.spec.get("root_site")), None)
        counted = [i for n, i in enumerate(inputs) if n != root]
        base, divisor = weights.base_weights(job, round_, counted)
        if job.rule != "bulyan":
            base, divisor = weights.cap([i.tenant for i in counted], base, divisor, job.share)
        rule = rules.effective(job.rule, base, job.fraction)
        if rule in ("mean", "median", "trimmed-mean"):
            return rule, base, divisor
        if rule == "norm-clipping":
            lengths = [weights.exact_square(u) ** 0.5 for u in updates]
            return rule, *rules.norm_clipping(lengths, base, divisor, job.number("rule_bound") * 2.0**job.scale)
        measures = rules.Measures(updates)
        if rule == "geometric-median":
            return rule, *rules.geometric_median(measures, base)
        if rule == "root-trust":
            return rule, *rules.root_trust(measures, base[:root] + [0] + base[root:], root)
        bad = rules.bad_ones(base, job.fraction)
        return rule, *(rules.bulyan(measures, bad) if rule == "bulyan" else rules.krum(measures, base, bad, rule == "multi-krum"))

    @staticmethod
    def rule_name(job, round_, rule):
        capped = "-capped" if job.share < 10**6 and job.rule != "bulyan" else ""
        if round_.kind == "pretrain":
            return "flexcfl-cold-start" + (f"+{rule}" if rule != "mean" else "") + capped + "/v2"
        own = job.strategy if job.strategy in ("fednova", "qffl", "fedbuff", "ifca", "fesem") else "fedavg"
        if rule == "mean":
            return f"{own}{capped}/v1"
        both = own != "fedavg" and rule in ("geometric-median", "norm-clipping")
        return (f"{own}+" if both else "") + f"{rule}{capped}/v1"

    # ---- steps

    def training(self, job, round_, where):
        """"step" of a round of training: server, mixing, meetings, groups that live or part."""
        by_group = {}
        for i in self.inputs(job, round_, "aggregated"):
            by_group.setdefault(i.row["group"], []).append(i)
        self.same("aggregates", where, sorted(round_.aggregates), sorted(by_group) or sorted(round_.aggregates))
        for group, inputs in by_group.items():
            self.aggregate(job, round_, f"{where}, group {group}", group, inputs)
        before, body = job.groups(round_), round_.step.body
        rows = {row["group"]: row for row in body["groups"]}
        mixed = sorted(by_group) if job.number("mixing") > 0 and len(by_group) > 1 else []
        meets = job.strategy == "hierarchical" and round_.number % int(job.options["edge_rounds"]) == 0
        stepped = {}
        for g, former in enumerate(before):
            row, here = rows[g], f"{where}, group {g}"
            if "split_of" in row:  # the number of a group that had become part of another, taken by what is cut off
                continue
            made = round_.aggregates.get(g) if g in by_group else None
            self.same("step", here, row["before"], former["after"])
            self.same("step", here, row["aggregate"], made.subject if made else row["before"])
            stepped[g] = row["aggregate"]
            if job.server != "none" or job.strategy == "scaffold":
                stepped[g] = row.get("stepped", row["after"]) if made else row["aggregate"]
                self.server(job, round_, here, former, row, stepped[g], by_group.get(g))
        if mixed:
            made = steps.mixing([job.model(stepped[g]) for g in mixed], job.number("mixing"))
            for g, values in zip(mixed, made):
                self.vector("mixing", f"{where}, group {g}", job, rows[g]["after"], "F32", values)
        elif meets:
            self.meeting(job, round_, where, [stepped[g] for g in sorted(stepped)], rows)
        after = {g: row["after"] for g, row in rows.items()} if mixed or meets else dict(stepped)
        parts = [RULE_OF[job.server] if job.server != "none" else "", "scaffold" if job.strategy == "scaffold" else "",
                 "flexcfl-mixing" if mixed else "", "edge-meeting" if meets else ""]
        self.same("rule", where, body["rule"], ("+".join(p for p in parts if p) or "identity") + "/v1")
        self.same("eta", where, float(body["eta"]), job.number("mixing") if mixed else 0.0)
        if job.options["trial_every"]:
            self.tried(job, round_, where, rows, before, after)
        elif job.living and self.due(job, round_):
            self.directions_again(job, round_, where, rows, before, after)
        else:
            self.without_directions_again(job, round_, where, rows, before, after)
        if job.strategy == "cfl":
            self.groups_that_part(job, round_, where, rows, after, by_group)
        self.same("groups", where, sorted(rows), sorted(after))
        for g, row in rows.items():
            self.same("after", f"{where}, group {g}", row["after"], after.get(g))

    def server(self, job, round_, where, former, row, model, inputs):
        """"Servers that keep a state" and *control variates*."""
        self.same("state", where, row.get("state_before", ZERO), former.get("state_after", ZERO))
        if not inputs:
            self.same("state", where, row.get("state_after", ZERO), row.get("state_before", ZERO))
            return
        names = ["control"] if job.strategy == "scaffold" else ["momentum"] if job.server == "momentum" else ["momentum", "second_moment"]
        layout = [(f"{name}/{tensor}", dims) for name in names for tensor, dims in job.layout]
        if row.get("state_before", ZERO) != ZERO:
            whole = tensors_read(self.record.blobs.read(row["state_before"]), "F32", layout, where)
        else:
            whole = [0.0] * (job.count * len(names))
        states = [whole[n * job.count:(n + 1) * job.count] for n in range(len(names))]
        start, result = job.model(row["before"]), job.model(row["aggregate"])
        if job.strategy == "scaffold":
            values, control = steps.control_step(job, start, result, states[0], [i.values[job.count:] for i in inputs])
            new = [control]
        else:
            values, new = steps.server_step(job, round_.number, start, result, states)
        self.vector("server", where, job, model, "F32", values)
        self.vector("state", where, job, row["state_after"], "F32", [x for state in new for x in state], layout)

    def meeting(self, job, round_, where, models, rows):
        """"Edges": weights are what took part since the last meeting."""
        every, sums = int(job.options["edge_rounds"]), [0] * len(models)
        for past in job.rounds:
            if round_.number - every < past.number <= round_.number:
                for i in self.inputs(job, past, "aggregated"):
                    if i.weight:
                        sums[i.row["group"]] += i.states["samples"] if job.rule in ("mean", "geometric-median", "norm-clipping") else 1
        present = [g for g, total in enumerate(sums) if total]
        capped = weights.cap(present, [sums[g] for g in present], 1, job.share)[0]
        for g, weight in zip(present, capped):
            sums[g] = weight
        values = steps.blend([job.model(m) for m in models], sums)
        for g, row in rows.items():
            self.vector("meeting of edges", f"{where}, group {g}", job, row["after"], "F32", values)

def short(value):
    text = str(value)
    return text if len(text) <= 200 else text[:200] + "…"
