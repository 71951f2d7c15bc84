"""The rules of a record: which statement may stand where, signed by whom, and what its fields must be."""
import hashlib
import os

from . import arithmetic
from .log import Log, Vkey
from .store import Blobs, need, read_json

ROW = ("site", "use", "group", "leaf", "leaf_hash", "update", "weight", "reason")
LINE = "{" + ",".join('"%s":%s' % (k, "%d" if k in ("group", "leaf") else '"%s"') for k in ROW) + "}\n"
USES = ["candidate", "selected", "aggregated", "grouped", "refused", "working", "away", "evaluated"]
TENANT_KEYS = {"key": "admin", "site-enrolled": "{site}", "site-revoked": "{site}", "witness-enrolled": "{witness}",
               "witness-revoked": "{witness}", "job-joined": "{job}", "job-left": "{job}", "erased": "{update}", "contact": "{commitment}", "site-labels": "{site}/{number:08}",
               "update": "{job}/{round:08}/{update_kind}/{site}", "evaluation": "{job}/{round:08}/{site}", "group-assigned": "{job}/{site}{tail}"}
MAIN_KEYS = {"policy": "", "quota-set": "/{id}/{number:08}", "job-opened": "/{job}", "round-opened": "/{job}/{round:08}", "step": "/{job}/{round:08}",
             "aggregate": "/{job}/{round:08}/{group:02}", "release": "/{job}/{group:02}", "job-closed": "/{job}"}
OTHERS = "strategy options rule server compression root_site selection choose control_sites external staleness_max budget plan targets deadline_s".split()

def sha256(data):
    return hashlib.sha256(data).hexdigest()

class Tenant:
    """A tenant's ledger, blobs, and the keys in force, entry by entry."""
    def __init__(self, record, row):
        self.name, self.record = row["tenant"], record
        folder = os.path.join(record.state, "tenants", self.name)
        with open(os.path.join(folder, "tenant.json"), "rb") as f:
            about = read_json(f.read(), f"tenant.json of {self.name}")
        need(about["tenant"] == self.name, folder, "is of another tenant")
        self.salted = sha256(bytes.fromhex(about["salt"]) + self.name.encode())
        self.log = Log(self.name, os.path.join(folder, "ledger.lmdb"), Vkey(row["log"]))
        need(self.log.vkey.name == f"{record.deployment}/{self.name}", self.name, "has a log of another origin")
        self.blobs = Blobs(os.path.join(folder, "blobs"), os.path.join(record.state, "keys", "updates", self.name))
        self.admin, self.sites, self.given = bytes.fromhex(row["admin_key"]), {}, {row["admin_key"]}
        self.groups, self.erased = {}, {}  # (job, site): [(entry, group, fact)]

    def check_all(self):
        checks = {"site-enrolled": self.site_enrolled, "site-revoked": self.site_revoked, "update": self.by_site, "evaluation": self.by_site,
                  "group-assigned": self.group_assigned, "erased": self.erasure, "job-left": self.job_left}
        for entry in self.log.entries:
            need(entry.body.get("tenant") == self.name, entry.where, "is about another tenant")
            need((entry.index == 0) == (entry.kind == "key"), entry.where, "the first entry is the first key, and only it")
            need(entry.index or entry.body["public_key"] == self.admin.hex(), entry.where, "is not the trust file's key")
            checks.get(entry.kind, lambda e: e.signed_by(self.admin))(entry)
            self.record.check_position(entry, self)
            need(self.log.find(self.idempotency(entry)) is entry, entry.where, "has another idempotency key")

    @staticmethod
    def idempotency(entry):
        b = {**entry.body, "tail": getattr(entry, "key_tail", "")}
        need(entry.kind in TENANT_KEYS, entry.where, entry.kind, "does not belong in a tenant's ledger")
        return f"{entry.kind}/" + TENANT_KEYS[entry.kind].format(**b)

    def site_enrolled(self, entry):
        b = entry.body
        entry.signed_by(self.admin)
        need(b["site"] not in self.sites, entry.where, "enrols a site twice")
        need(not self.given & {b["tls_key"], b["statement_key"]}, entry.where, "gives a key that was given before")
        self.given |= {b["tls_key"], b["statement_key"]}
        self.sites[b["site"]] = {"key": bytes.fromhex(b["statement_key"]), "since": entry.index, "until": len(self.log.entries) + 1}

    def site_revoked(self, entry):
        entry.signed_by(self.admin)
        site = self.sites.get(entry.body["site"])
        need(site and site["until"] > entry.index and site["key"].hex() == entry.body["statement_key"], entry.where,
             "revokes a site that is not enrolled with that key")
        site["until"] = entry.index

    def by_site(self, entry):
        site = self.sites.get(entry.body["site"])
        need(site and entry.index < site["until"], entry.where, entry.kind, "of a site that is not enrolled")
        self.need_member(entry)
        entry.signed_by(site["key"])

    def need_member(self, entry):
        joined, left = (self.log.find(f"job-{moved}/{entry.body['job']}") for moved in ("joined", "left"))
        need(joined is not None and joined.index < entry.index, entry.where, "before joining")
        need(left is None or entry.index < left.index, entry.where, "after leaving")

    def job_left(self, entry):
        entry.signed_by(self.admin)
        joined = self.log.find(f"job-joined/{entry.body['job']}")
        need(joined is not None and joined.index < entry.index and joined.subject == entry.subject, entry.where, "leaves another job than it joined")

    def group_assigned(self, entry):
        b = entry.body
        entry.signed_by(self.record.key)
        rows = self.groups.setdefault((b["job"], b["site"]), [])
        tails = [""] if not rows else [f"/{b['round']}", f"/{b['round']:08}", f"/{b['round']:08}/close"]
        entry.key_tail = next((t for t in tails if self.log.keys.get(f"group-assigned/{b['job']}/{b['site']}{t}") == entry.index), tails[-1])
        rows.append((entry.index, b["group"], entry))

    def erasure(self, entry):
        entry.signed_by(self.admin)
        first = self.log.entries[entry.body["entry"]]
        need(first.index < entry.index and first.kind == "update" and first.subject == entry.body["update"], entry.where, "erases what no update before it is")
        need(not self.blobs.exists(entry.body["update"]), entry.where, "is erased, and its file is still there")
        self.erased[entry.body["update"]] = entry

    def group_at(self, job, site, index):
        """Group in force at an entry; None before the first."""
        return ([None] + [group for at, group, _ in self.groups.get((job, site), []) if at < index])[-1]

class Round:
    def __init__(self, opened):
        self.opened, self.number, self.kind = opened, opened.body["round"], opened.body["round_kind"]
        self.aggregates, self.step, self.selected, self.candidates, self.covered = {}, None, set(), [], {}
        self.inputs = {}  # group: [(tenant, row, entry)] that count

class Job:
    """A job as its statements tell it."""
    def __init__(self, record, opened):
        self.name, self.opened, self.closed, self.releases, self.rounds = opened.body["job"], opened, None, {}, []
        self.spec = read_json(record.blobs.read(opened.subject), f"spec of {self.name}")
        need(self.spec["name"] == self.name, opened.where, "opens a job of another name")
        self.tenants = [record.tenants[name] for name in sorted(self.spec["tenants"])]
        need(sorted(t.salted for t in self.tenants) == opened.body["tenants"], opened.where, "names other tenants")
        self.grouped = self.spec.get("grouping", "none") == "flexcfl"
        self.scale, self.seed = self.spec.get("scale", 20), int(self.spec.get("seed", "1"))
        share = self.spec.get("tenant_share_max", "1")  # in quotes, or a number of at most 6 decimal places
        whole, _, part = (share if isinstance(share, str) else f"{share:.6f}").partition(".")
        self.share = int(whole + part.ljust(6, "0"))
        self.layout, self.fans = self.shape()
        self.others = [key for key in OTHERS if key in self.spec and self.spec[key] not in ("flexcfl", "fedavg", "mean", "uniform")]
        self.others += [key for key in ("regroup_every", "mixing") if float(self.spec.get(key, 0)) > 0]
        self.others += ["model"] if self.layout is None else []

    def shape(self):
        """(layout, fan of each tensor) of the model, (None, None) of one that is not made here."""
        model = self.spec["model"] if isinstance(self.spec["model"], dict) else {}
        if model.get("preset") not in ("mclr", "mlp"):
            return None, None
        widths = [model["inputs"]] + ([model["hidden"]] if "hidden" in model else []) + [model["classes"]]
        sizes = list(enumerate(zip(widths, widths[1:])))
        layout = [t for i, (n, m) in sizes for t in ((f"{i}.weight", [m, n]), (f"{i}.bias", [m]))]
        fans = [fan for _, (n, m) in sizes for fan in (n + m, 0)]
        if self.spec.get("standardize") == "federated":  # what the sites find of their inputs: zeros at first
            layout += [("standardize.mean", [4, widths[0]]), ("standardize.variance", [4, widths[0]]), ("standardize.stage", [1])]
            fans += [0, 0, 0]
        return layout, fans

    def round(self, number):
        return next((r for r in self.rounds if r.number == number), None)

    def model_before(self, number, group):
        """The model of a group before a round."""
        last = [r for r in self.rounds if r.step and r.number < number]
        if not last or (self.grouped and number == 0):
            return self.opened.body["initial_model"]
        return last[-1].step.body["groups"][group]["after"]

    def groups_after(self, number):
        last = [r for r in self.rounds if r.step and r.number <= number]
        return len(last[-1].step.body["groups"]) if last else 1

class Record:
    """A whole record, checked as it is read."""
    def __init__(self, folder, trust):
        self.state = os.path.join(folder, "state") if os.path.isdir(os.path.join(folder, "state")) else folder
        self.models = os.path.join(folder, "models")
        with open(trust, "rb") as f:
            self.trust = read_json(f.read(), trust)
        self.quotas, self.deployment, self.jobs, self.listed = {}, self.trust["deployment"], {}, {}  # listed: entries in lists, by tenant
        self.main = Log("main", os.path.join(self.state, "main", "ledger.lmdb"), Vkey(self.trust["main_log"]))
        need(self.main.vkey.name == f"{self.deployment}/main", "the main chain's key is of another deployment")
        self.blobs = Blobs(os.path.join(self.state, "main", "blobs"), None)
        self.key = bytes.fromhex(self.trust["statement_key"])
        self.tenants = {row["tenant"]: Tenant(self, row) for row in self.trust["tenants"]}
        there = sorted(os.listdir(os.path.join(self.state, "tenants")))
        need(there == sorted(self.tenants), "the record has tenants", there, "the trust file", sorted(self.tenants))
        self.anchors = {name: [] for name in self.tenants}  # (main entry, size)
        self.find_checkpoints()
        for tenant in self.tenants.values():
            tenant.check_all()
        for entry in self.main.entries:
            self.check_main(entry)
        for job in self.jobs.values():
            self.check_job(job)
        self.check_updates()
        self.check_blobs()

    def find_checkpoints(self):
        """Which entries of each ledger are anchored where."""
        for entry in self.main.entries:
            if entry.kind == "checkpoint":
                name = entry.note.split("\n", 1)[0].rpartition("/")[2]
                need(name in self.tenants, entry.where, "is of a tenant that the trust file has not")
                size = self.tenants[name].log.covers(entry.note, entry.where)
                need(not self.anchors[name] or size >= self.anchors[name][-1][1], entry.where, "is smaller than before")
                self.anchors[name].append((entry.index, size))

    def anchored(self, name, index):
        """Entries of a tenant that its last checkpoint in front of a main entry covers."""
        return max([size for at, size in self.anchors[name] if at < index], default=0)

    def anchored_next(self, name, index):
        return min([size for at, size in self.anchors[name] if at > index], default=self.tenants[name].log.size)

    def check_position(self, entry, tenant):
        """Where statements name a deployment and a place in their ledger, both must be these."""
        b = entry.body
        if "main_log_key" in b:
            need(b["main_log_key"] == self.main.vkey.key.hex(), entry.where, "is of another deployment")
        if "deployment" in b:
            need(b["deployment"] == self.deployment, entry.where, "is of another deployment")
        if "seen_size" in b:
            need(b["seen_size"] <= entry.index and tenant.log.tree.root(b["seen_size"]).hex() == b["seen_root"],
                 entry.where, "has seen another ledger than this one")
            need(entry.index < b["before"] <= b["seen_size"] + 2**24, entry.where, "stands after the place it may stand at")

    def check_main(self, entry):
        if entry.kind == "checkpoint":
            name = entry.note.split("\n", 1)[0].rpartition("/")[2]
            size = dict(self.anchors[name])[entry.index]
            need(self.main.find(f"checkpoint/{name}/{size:020}") is entry, entry.where, "has another idempotency key")
            return
        b, kind = entry.body, entry.kind
        need(kind in MAIN_KEYS, entry.where, kind, "does not belong in the main chain, or is not judged by this program")
        need(self.main.find(kind + MAIN_KEYS[kind].format(**b) + (f"/{b['draw']:02}" if "draw" in b else "")) is entry, entry.where, "has another idempotency key")
        need((entry.index == 0) == (kind == "policy"), entry.where, "the policy is entry 0, and only it")
        entry.signed_by(self.key)
        if kind == "policy":
            need(b == {"deployment": self.deployment, "statement_key": self.key.hex(), "main_log_key": self.main.vkey.key.hex()},
                 entry.where, "the policy is of another deployment")
        elif kind == "quota-set":
            self.quotas[b["id"]] = self.quotas.get(b["id"], 0) + 1
            need(b["number"] == self.quotas[b["id"]], entry.where, "is out of turn")
        elif kind == "job-opened":
            self.jobs[b["job"]] = Job(self, entry)
        else:
            need(b["job"] in self.jobs, entry.where, "is of a job that was not opened")
            job = self.jobs[b["job"]]
            need(job.closed is None, entry.where, "is of a job that is closed")
            if job.others:  # its rules are not in this program
                return
            {"round-opened": self.open_round, "aggregate": self.aggregate, "step": self.step, "release": self.release,
             "job-closed": self.close_job}[kind](job, entry)

    def open_round(self, job, entry):
        b, first = entry.body, 0 if job.grouped else 1
        if "draw" in b:  # in the place of the opening before: nothing had come to it
            last = job.rounds.pop() if job.rounds else None
            need(last and not last.aggregates and (b["round"], b["draw"]) == (last.number, last.opened.body.get("draw", 0) + 1),
                 entry.where, "draws a round again that was not open")
        need(b["round"] == (job.rounds[-1].number + 1 if job.rounds else first), entry.where, "is not the next round")
        need(not job.rounds or job.rounds[-1].step, entry.where, "opens before the step of the round before")
        need(b["round"] <= job.spec["rounds"] and (b["round_kind"] == "pretrain") == (b["round"] == 0), entry.where, "is a round too many, or of the wrong kind")
        need(int(b["seed"]) == job.seed and entry.subject == job.opened.subject, entry.where, "is of another spec")
        need(b["main_size"] <= entry.index and self.main.tree.root(b["main_size"]).hex() == b["main_root"], entry.where,
             "names a state of the main chain that never was")
        job.rounds.append(round_ := Round(entry))
        by_salt = {t.salted: t for t in job.tenants}
        for row in b["tenants"]:
            need(row["id"] in by_salt, entry.where, "has a tenant that is not of its job")
            tenant = by_salt[row["id"]]
            rows = self.read_list(tenant, row["list"], entry)
            need(len(rows) == row["candidates"] > 0, entry.where, "states another number of candidates")
            need(sum(r["use"] == "selected" for r in rows) == row["selected"], entry.where, "states others selected")
            need(len({r["site"] for r in rows}) == len(rows), entry.where, "has a site twice")
            for r in rows:
                self.check_candidate(job, round_, tenant, r)
                round_.candidates.append((tenant.name, r["site"]))
            round_.selected |= {(tenant.name, r["site"]) for r in rows if r["use"] == "selected"}
        self.check_selection(job, round_)

    def check_candidate(self, job, round_, tenant, row):
        entry = round_.opened
        before, after = self.anchored(tenant.name, entry.index), self.anchored_next(tenant.name, entry.index)
        site, joined, left = tenant.sites.get(row["site"]), tenant.log.find(f"job-joined/{job.name}"), tenant.log.find(f"job-left/{job.name}")
        need(site and site["since"] < after and site["until"] >= before, entry.where, row["site"], "was not enrolled")
        need(joined and joined.index < after, entry.where, tenant.name, "had not joined")
        need(not left or left.index >= before, entry.where, tenant.name, "had left")
        plain = tuple(row[k] for k in ROW[3:])
        need(row["use"] in ("candidate", "selected") and plain == (0, "0" * 64, "0" * 64, "0", ""), entry.where, "row of", row["site"], "is no candidate's")
        groups = {tenant.group_at(job.name, row["site"], before)} | {g for at, g, _ in tenant.groups.get((job.name, row["site"]), []) if before <= at < after}
        need(row["group"] in {g or 0 for g in groups}, entry.where, row["site"], "is in another group")

    def check_selection(self, job, round_):
        places, spec = sorted(round_.candidates), job.spec
        if round_.kind == "pretrain":
            wanted = spec.get("pretrain_sites", 20 * spec["groups"])
            chosen = arithmetic.select_by_quota(job.seed, round_.number, [t for t, _ in places], wanted)
        else:
            chosen = arithmetic.select(job.seed, round_.number, len(places), spec.get("sites_per_round", 0))
        need({places[i] for i in chosen} == round_.selected, round_.opened.where, "selects others than the seed does")

    def read_list(self, tenant, digest, entry):
        """Rows of an input list, which has one spelling."""
        rows = [read_json(line, f"{entry.where}: list") for line in tenant.blobs.read(digest).decode().splitlines()]
        out = "".join(LINE % tuple(row[k] for k in ROW) for row in rows)
        order = [(r["site"], USES.index(r["use"]), r["group"], r["leaf"], r["update"]) for r in rows]
        need(sha256(out.encode()) == digest and order == sorted(set(order)), entry.where, "has a list in another spelling")
        return rows

    def aggregate(self, job, entry):
        b, round_ = entry.body, self.open_one(job, entry)
        need(not round_.aggregates or b["group"] > max(round_.aggregates), entry.where, "is out of order")
        round_.aggregates[b["group"]] = entry
        need(b["base"] == job.model_before(round_.number, b["group"]), entry.where, "is not based on its group's model")
        need(b["scale"] == job.scale, entry.where, "has another scale")
        need(b["weight_sum"] == str(sum(int(t["weight_sum"]) for t in b["tenants"]))
             and b["count"] == sum(t["accepted"] for t in b["tenants"]), entry.where, "its tenants do not add up")
        name, version = ("flexcfl-cold-start", 2) if round_.kind == "pretrain" else ("fedavg", 1)
        need(b["rule"] == f"{name}{'-capped' if job.share < 10**6 else ''}/v{version}", entry.where, "has rule", b["rule"])
        need({t["id"] for t in b["tenants"]} <= {t.salted for t in job.tenants}, entry.where, "has a tenant that is not of its job")

    def check_lists(self, job, round_, entry):
        """The rows of an aggregate, against the ledgers."""
        b, by_salt = entry.body, {t.salted: t for t in job.tenants}
        counted, inputs = ("grouped" if round_.kind == "pretrain" else "aggregated"), []
        for line in b["tenants"]:
            tenant = by_salt[line["id"]]
            rows = self.read_list(tenant, line["list"], entry)
            used = [r for r in rows if r["use"] == counted]
            need(len(used) == line["accepted"] and str(sum(int(r["weight"]) for r in used)) == line["weight_sum"]
                 and sum(r["use"] == "refused" for r in rows) == line["refused"] and rows, entry.where, tenant.name, "has other inputs than stated")
            for row in rows:
                self.check_row(job, round_, entry, tenant, row)
                if row["use"] == counted:
                    inputs.append((tenant, row, tenant.log.entries[row["leaf"]]))
        inputs.sort(key=lambda i: (i[0].name, i[1]["site"]))
        round_.inputs[b["group"]] = inputs
        base = [(t.name, 1 if counted == "grouped" else e.body["samples"]) for t, _, e in inputs]
        need([str(w) for w in arithmetic.cap_shares(base, job.share)] == [r["weight"] for _, r, _ in inputs], entry.where,
             "has weights that its statements do not give")

    def check_row(self, job, round_, entry, tenant, row):
        where = f"{entry.where}: row of {row['site']} of {tenant.name}"
        home = row["group"] if row["group"] in round_.aggregates else min(round_.aggregates)
        need(home == entry.body["group"], where, "belongs in another list")
        need(row["use"] in ("aggregated", "grouped", "refused") and (row["use"] == "refused") == bool(row["reason"]), where,
             "has use", row["use"], "and reason", row["reason"])
        if row["leaf_hash"] == "0" * 64:
            need(row["use"] == "refused" and row["leaf"] == 0 and row["weight"] == "0", where, "names no statement")
            return
        need(row["leaf"] < self.anchored(tenant.name, entry.index), where, "no checkpoint covers its statement")
        update = tenant.log.entries[row["leaf"]]
        need(update.hash.hex() == row["leaf_hash"] and update.kind == "update" and update.subject == row["update"]
             and (update.body["job"], update.body["site"]) == (job.name, row["site"]) and update.body["round"] == round_.number, where, "names another update")
        kind = {"aggregated": "train", "grouped": "pretrain", "refused": "pretrain"}[row["use"]]
        need(update.body["update_kind"] == kind, where, "uses an update of another kind")
        need(kind == "pretrain" or update.body["group"] == row["group"], where, "is of another group")
        if row["use"] == "grouped":
            given = next((g for at, g, f in tenant.groups.get((job.name, row["site"]), []) if at > row["leaf"] and f.body["update"] == row["update"]), None)
            need(given == row["group"] or (given is None and job.closed is None), where, "gave its site another group")
        need(update.index not in tenant.record.listed.setdefault(tenant.name, set()), where, "stands in a second row")
        tenant.record.listed[tenant.name].add(update.index)

    def open_one(self, job, entry):
        need(job.rounds and job.rounds[-1].number == entry.body["round"] and job.rounds[-1].step is None, entry.where, "is of a round that is not open")
        return job.rounds[-1]

    def step(self, job, entry):
        b, round_ = entry.body, self.open_one(job, entry)
        need(round_.aggregates, entry.where, "is a step without an aggregate")
        groups = len(round_.aggregates) if round_.kind == "pretrain" else job.groups_after(round_.number)
        need([g["group"] for g in b["groups"]] == list(range(groups)), entry.where, "has other groups")
        for g in b["groups"]:
            made = round_.aggregates.get(g["group"])
            need(g["before"] == job.model_before(round_.number, g["group"]), entry.where, "does not begin at its model")
            need(g["aggregate"] == (made.subject if made else g["before"]), entry.where, "has another aggregate")
            need(g["after"] == g["aggregate"], entry.where, "changes an aggregate without a rule")
            need((g["direction"] != "0" * 64) == job.grouped, entry.where, "direction missing or stated without groups")
            need(set(g) == {"group", "before", "aggregate", "after", "direction"}, entry.where, "has other fields")
            if round_.kind == "train" and job.grouped:
                last = [r for r in job.rounds if r.step][-1].step.body["groups"][g["group"]]
                need(g["direction"] == last["direction"], entry.where, "changes a direction")
        need(b["rule"] == ("flexcfl-cold-start/v2" if round_.kind == "pretrain" else "identity/v1"), entry.where, "has rule", b["rule"])
        need(float(b["eta"]) == 0.0, entry.where, "has another eta")
        need(entry.subject == b["groups"][0]["after"], entry.where, "has another subject")
        round_.step = entry
        for t in job.tenants:
            round_.covered[t.name] = self.anchored(t.name, entry.index)

    def release(self, job, entry):
        b, rounds = entry.body, [r for r in job.rounds if r.step]
        need(entry.subject == (rounds[-1].step.body["groups"][b["group"]]["after"] if rounds
                               else job.opened.body["initial_model"]), entry.where, "releases another model")
        need(b["file"] == f"{job.name}-g{b['group']}.safetensors", entry.where, "names another file")
        need(b["group"] == len(job.releases), entry.where, "is out of order")
        job.releases[b["group"]] = entry
        path = os.path.join(self.models, b["file"])
        if os.path.isdir(self.models):
            need(os.path.exists(path), path, "is missing")
            with open(path, "rb") as f:
                need(sha256(f.read()) == entry.subject, path, "is not the model that the record releases")

    def close_job(self, job, entry):
        done = job.rounds[-1].number if job.rounds and job.rounds[-1].step else 0
        if entry.body["outcome"] == "completed":
            need(entry.body["rounds"] == job.spec["rounds"] == done, entry.where, "is completed in other rounds")
            need(len(job.releases) == job.groups_after(done), entry.where, "is completed without all releases")
        job.closed = entry

    def check_job(self, job):
        for round_ in job.rounds:
            for entry in round_.aggregates.values():
                self.check_lists(job, round_, entry)
            named = sorted({name for rows in round_.inputs.values() for _, _, e in rows for name in e.body.get("classes", [])})
            need(not round_.step or round_.step.body.get("classes", []) == named, round_.opened.where, "names other classes than its updates")

    def check_updates(self):
        """Every update stands in one list, was asked for, and trained from its group's model."""
        for tenant in self.tenants.values():
            for entry in tenant.log.entries:
                if entry.kind == "update":
                    self.check_update(tenant, entry)
                elif entry.kind == "evaluation":
                    self.check_evaluation(tenant, entry)

    def job_of(self, entry):
        need(entry.body["job"] in self.jobs, entry.where, "is of a job that was not opened")
        return self.jobs[entry.body["job"]]

    def check_update(self, tenant, entry):
        b, job = entry.body, self.job_of(entry)
        if job.others:
            return
        round_, trains = job.round(b["round"]), b["update_kind"] == "train"
        need(round_, entry.where, "is an update of a round that was not opened")
        alone = not trains and job.spec.get("shift", "labels") != "none" and b["round"] > 0
        need((tenant.name, b["site"]) in round_.selected or alone, entry.where, "was not selected")
        in_force = tenant.group_at(job.name, b["site"], entry.index) or 0
        need(b["group"] == (in_force if trains else 0), entry.where, "names another group")
        base = job.model_before(b["round"], b["group"]) if trains else job.opened.body["initial_model"]
        need(b["base"] == base, entry.where, "trained from another model")
        need(bool(b.get("classes")) == (job.spec.get("classes") == "federated" and b["round"] == 1), entry.where, "names classes or does not")
        need(1 <= b["samples"] <= job.spec.get("weight_max", 10**6), entry.where, "has too many samples")
        covered = round_.step is None or entry.index >= round_.covered.get(tenant.name, 0)
        need(covered or entry.index in self.listed.get(tenant.name, ()), entry.where, "stands in no list of its round")

    def check_evaluation(self, tenant, entry):
        b, job = entry.body, self.job_of(entry)
        round_ = job.round(b["round"])
        need(job.others or round_ and round_.step and entry.subject == round_.step.body["groups"][b["group"]]["after"], entry.where, "evaluates another model")
        need(b["correct"] <= b["samples"], entry.where, "has more correct than samples")

    def check_blobs(self):
        """Every file that is there was named, and every named one is there."""
        for job in self.jobs.values():
            self.blobs.seen |= {job.opened.subject, job.opened.body["initial_model"]}
            for round_ in job.rounds:
                self.blobs.seen |= {v for g in (round_.step.body["groups"] if round_.step else []) for v in g.values()
                                    if isinstance(v, str)} | {e.subject for e in round_.aggregates.values()}
        for tenant in self.tenants.values():
            tenant.blobs.seen |= {e.subject for e in tenant.log.entries if e.kind == "update"} - set(tenant.erased)
        for name, blobs in [("main", self.blobs), *((t.name, t.blobs) for t in self.tenants.values())]:
            there, named = set(blobs.names()), blobs.seen - {"0" * 64}
            named -= (self.pruned() if name == "main" else set()) - there
            need(there == named or any(j.others for j in self.jobs.values()), name, "has blobs that nothing names, or lacks",
                 "named ones:", *sorted(there ^ named)[:3])

    def pruned(self):
        """What main/pruned.txt lists of models that a replay makes again: aggregates but those of a job's last round."""
        path = os.path.join(self.state, "main", "pruned.txt")
        if not os.path.exists(path):
            return set()
        with open(path, encoding="ascii") as f:
            lines = f.read().splitlines()
        need(lines[:1] == ["kedge-pruned/v1"], path, "is of another version")
        rounds = [[r for r in job.rounds if r.step] for job in self.jobs.values()]
        last = {g["after"] for steps in rounds for r in steps[-1:] for g in r.step.body["groups"]}
        return set(lines[1:]) & {e.subject for steps in rounds for r in steps[:-1] for e in r.aggregates.values()} - last
