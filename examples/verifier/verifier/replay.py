"""Re-execution: from the recorded inputs to the recorded models, bit for bit."""
from . import arithmetic
from .store import need, tensors_read, tensors_write
from .record import sha256

class Replay:
    def __init__(self, record):
        self.record, self.models, self.done, self.skipped = record, 0, [], []
        for name in sorted(record.jobs):
            job = record.jobs[name]
            if job.others:
                self.skipped.append(f"{name}: {', '.join(job.others)}")
                continue
            self.initial(job)
            for round_ in job.rounds:
                if round_.step:
                    self.round(job, round_)
            self.newcomers(job)

    def model(self, job, digest):
        return tensors_read(self.record.blobs.read(digest), "F32", job.layout, f"model {digest}")

    def update(self, job, tenant, digest):
        values = tensors_read(tenant.blobs.read(digest), "I32", job.layout, f"update {digest}")
        limit = int(float(job.spec.get("bound", "64")) * 2**job.scale)
        need(all(-limit <= v <= limit for v in values), "update", digest, "is beyond the job's bound")
        return values

    def same(self, job, dtype, values, digest, where, what):
        data = tensors_write(dtype, job.layout, values)
        made = sha256(data)
        need(made == digest, where, what, "is", digest, "but its inputs give", made)
        self.models += 1
        self.done.append(made)
        if not self.record.blobs.exists(digest):  # pruned: later rounds go on from what was made again
            self.record.blobs.packed[digest] = data

    def initial(self, job):
        where, digest = job.opened.where, job.opened.body["initial_model"]
        if "initial_model" in job.spec:
            need(job.spec["initial_model"] == digest, where, "begins with another model than its spec names")
            return
        self.same(job, "F32", arithmetic.initial_model(job.layout, job.fans, job.seed), digest, where, "initial model")

    def round(self, job, round_):
        erased = any(e.subject in t.erased for rows in round_.inputs.values() for t, _, e in rows)
        if erased or any(not self.record.blobs.exists(e.body["base"]) for e in round_.aggregates.values()):
            return self.skipped.append(f"{job.name}, round {round_.number}: an update was erased, of it or of what its model is made of")
        if round_.kind == "pretrain":
            self.cold_start(job, round_)
        for group, entry in sorted(round_.aggregates.items()):
            rows = [(int(r["weight"]), self.update(job, t, e.subject)) for t, r, e in round_.inputs[group]]
            values = arithmetic.mean(self.model(job, entry.body["base"]), rows, job.scale, sum(w for w, _ in rows))
            self.same(job, "F32", values, entry.subject, entry.where, f"aggregate of group {group}")

    def cold_start(self, job, round_):
        """Groups, and each group's direction, from the pre-training updates in the order of sites."""
        inputs = sorted((i for rows in round_.inputs.values() for i in rows), key=lambda i: (i[0].name, i[1]["site"]))
        updates = [(t.name, self.update(job, t, e.subject)) for t, _, e in inputs]
        groups = arithmetic.groups_of(updates, job.spec["groups"], job.seed, round_.number)
        stated = [r["group"] for _, r, _ in inputs]
        need(groups == stated, round_.step.where, "states groups", stated, "but the updates give", groups)
        for g in round_.step.body["groups"]:
            members = [u for u, number in zip(updates, groups) if number == g["group"]]
            values = arithmetic.direction(members, job.share)
            self.same(job, "I32", values, g["direction"], round_.step.where, f"direction of group {g['group']}")

    def newcomers(self, job):
        """Sites that came to a group by its direction, and all similarities."""
        for tenant in job.tenants:
            for (name, _), rows in tenant.groups.items():
                for _, group, fact in rows if name == job.name else []:
                    b = fact.body
                    if b["update"] in tenant.erased:
                        continue
                    at = b["round"] if b["how"] == "cold-start" else b["round"] - 1
                    round_ = [r for r in job.rounds if r.step and r.number <= at][-1]
                    directions = [tensors_read(self.record.blobs.read(g["direction"]), "I32", job.layout, "direction") for g in round_.step.body["groups"]]
                    update = self.update(job, tenant, b["update"])
                    if b["how"] == "cold-start":
                        _, similarity = arithmetic.nearest(update, [directions[group]])
                    else:
                        best, similarity = arithmetic.nearest(update, directions)
                        need(best == group, fact.where, "is in group", group, "but nearer to", best)
                    need(float(b["similarity"]) == similarity, fact.where, "has similarity", similarity)
