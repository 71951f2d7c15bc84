"""The facts of a record: jobs, rounds, lists, statements. Nothing is judged here; signatures and proofs are for `kedge audit`
and examples/verifier. What is read is what docs/record.md, "Main chain", "Ledger of a tenant" and "Bytes", says is there."""

import functools
import hashlib
import json
import math
import os
import struct

from verifier.log import Entry, unpack
from verifier.store import Bad, Blobs, Lmdb, need, read_json, tensors_read

from . import compact

ZERO = "0" * 64
# "Options": what a strategy, or a server that the spec chose, has where the spec says nothing.
SERVER_OF = {"fedavgm": "momentum", "fedadagrad": "adagrad", "fedyogi": "yogi", "fedadam": "adam"}
RULE_OF = {"momentum": "fedavgm", "adagrad": "fedadagrad", "yogi": "fedyogi", "adam": "fedadam"}
SERVERS = {"none": {}, "momentum": {"server_lr": 0.1, "momentum": 0.9}, "adagrad": {"server_lr": 0.1, "momentum": 0.0, "adaptivity": 0.001},
           "yogi": {"server_lr": 0.01, "momentum": 0.9, "second_moment": 0.99, "adaptivity": 0.001},
           "adam": {"server_lr": 0.1, "momentum": 0.9, "second_moment": 0.99, "adaptivity": 0.001}}
OPTIONS = {"qffl": {"fairness": 1.0}, "fedbuff": {"buffer": 10}, "hierarchical": {"edge_rounds": 5}, "scaffold": {"server_lr": 1.0},
           "cfl": {"split_mean": 0.4, "split_max": 1.6, "split_after": 20}, "fedclust": {"link": 0.5},
           "flexcfl-adaptive": {"trial_every": 5}}

def sha256(data):
    return hashlib.sha256(data).hexdigest()

class Tenant:
    def __init__(self, state, name):
        folder = os.path.join(state, "tenants", name)
        with open(os.path.join(folder, "tenant.json"), "rb") as f:
            self.salted = sha256(bytes.fromhex(read_json(f.read(), folder)["salt"]) + name.encode())
        self.name, self.entries = name, read_log(name, os.path.join(folder, "ledger.lmdb"))
        self.blobs = Blobs(os.path.join(folder, "blobs"), os.path.join(state, "keys", "updates", name))
        self.erased = {e.subject for e in self.entries if e.kind == "erased"}

def read_log(name, folder):
    store = Lmdb(folder)
    table, words = store.table("entry"), store.table("meta").get(b"words", b"")
    log = type("Named", (), {"name": name})
    return [Entry(log, i, unpack(table[struct.pack(">Q", i)], words)) for i in range(len(table))]

class Input:
    """An update that counts, by its row in a list: who sent it, what it states, its whole numbers."""
    def __init__(self, job, tenant, row):
        self.tenant, self.site, self.row = tenant.name, row["site"], row
        self.weight, self.leaf, self.digest = int(row["weight"]), row["leaf"], row["update"]
        self.states = tenant.entries[row["leaf"]].body
        self.read = functools.partial(job.update, tenant, row["update"])

    @property
    def key(self):
        return self.tenant, self.site

    @property
    def values(self):
        return self.read()

class Round:
    def __init__(self, opened):
        self.openings, self.number, self.kind = [opened], opened.body["round"], opened.body["round_kind"]
        self.aggregates, self.step, self.lists = {}, None, {}

    @property
    def where(self):
        return f"round {self.number}"

    def rows(self, use):
        """(tenant, row) of that use in the lists of its aggregates, in the order of tenants and sites."""
        found = [(tenant, row) for lists in self.lists.values() for tenant, row in lists if row["use"] == use]
        return sorted(found, key=lambda r: (r[0].name, r[1]["site"]))

class Job:
    def __init__(self, record, opened):
        self.record, self.name, self.opened, self.rounds, self.releases = record, opened.body["job"], opened, [], {}
        self.spec = spec = read_json(record.blobs.read(opened.subject), f"spec of {self.name}")
        self.strategy = spec.get("strategy", "flexcfl" if spec.get("grouping") == "flexcfl" else "fedavg")
        self.grouped = spec.get("grouping") == "flexcfl" or self.strategy in ("fedclust", "flexcfl", "flexcfl-plain", "flexcfl-madc", "flexcfl-adaptive")
        self.living = self.grouped and self.strategy != "fedclust"
        self.server, self.rule = spec.get("server", SERVER_OF.get(self.strategy, "none")), spec.get("rule", "mean")
        self.options = {**SERVERS[self.server], "settle": 0, "refresh": 0, "merge": 1, "silhouette": 1, "most": 16, "trial_every": 0, **OPTIONS.get(self.strategy, {}),
                        **{name: float(value) for name, value in spec.get("options", {}).items()}}
        self.choice = "one" if self.strategy == "flexcfl-adaptive" else "fixed"
        self.tenants = sorted(spec["tenants"])
        self.scale, self.seed = int(spec.get("scale", 20)), int(spec.get("seed", "1"))
        self.share = self.millionths("tenant_share_max", "1")
        self.fraction = self.millionths("rule_fraction", "0.2")
        self.regroup_every = int(spec.get("regroup_every", 0))
        self.layout = layout_of(record.blobs.read(opened.body["initial_model"]))
        self.count = sum(math.prod(dims) for _, dims in self.layout)
        self.last_layer = sum(math.prod(dims) for name, dims in self.layout if name.split(".")[0] == self.layout[-1][0].split(".")[0])
        self.control = [("control/" + name, dims) for name, dims in self.layout]
        self.tested, self.tiers, self.outcome = [], [], None  # round-tested, releases of a tier; job-closed
        self.assigned = {}  # site: its group-assigned entries
        for name in self.tenants:
            for entry in record.tenants[name].entries:
                if entry.kind == "group-assigned" and entry.body["job"] == self.name:
                    self.assigned.setdefault((name, entry.body["site"]), []).append(entry)

    def millionths(self, key, default):
        return int(float(self.spec.get(key, default)) * 1e6 + 0.5)

    def number(self, key, default=0):
        return float(self.spec.get(key, default))

    @functools.lru_cache(maxsize=256)
    def model(self, digest):
        return tensors_read(self.record.blobs.read(digest), "F32", self.layout, f"model {digest}")

    @functools.lru_cache(maxsize=64)
    def direction(self, digest):
        return tensors_read(self.record.blobs.read(digest), "I32", self.layout, f"direction {digest}")

    @functools.lru_cache(maxsize=256)
    def update(self, tenant, digest):
        data = tenant.blobs.read(digest)
        if data.startswith(compact.MAGIC):
            return compact.read(data, self.count, digest)
        return tensors_read(data, "I32", self.layout + (self.control if self.strategy == "scaffold" else []), f"update {digest}")

    def updates(self, number, kind):
        """(tenant, entry) of all statements of a round's updates."""
        return [(self.record.tenants[name], e) for name in self.tenants for e in self.record.tenants[name].entries
                if e.kind == "update" and (e.body["job"], e.body["round"], e.body["update_kind"]) == (self.name, number, kind)]

    def in_force(self, key, index):
        """The site's last group-assigned before an entry of its ledger, or None."""
        return ([None] + [e for e in self.assigned.get(key, []) if e.index < index])[-1]

    def closed(self, before):
        """The last closed round before a number, or None."""
        return ([None] + [r for r in self.rounds if r.step and r.number < before])[-1]

    def groups(self, round_):
        """The rows of the step before a round, as they are in front of it."""
        last = self.closed(round_.number)
        if last:
            return last.step.body["groups"]
        first = {0: self.opened.body["initial_model"], **{m["group"]: m["model"] for m in self.opened.body.get("first_models", [])}}
        count = {"hierarchical": min(16, len(self.tenants)), "ifca": int(self.number("groups")), "fesem": int(self.number("groups"))}.get(self.strategy, 1)
        return [{"group": g, "after": first.get(g, first[0]), "direction": ZERO} for g in range(count)]

def layout_of(data):
    """(name, shape) of each tensor of a safetensors file."""
    header = json.loads(data[8:8 + struct.unpack_from("<Q", data)[0]])
    return [(name, about["shape"]) for name, about in header.items()]

class Record:
    def __init__(self, folder):
        state = os.path.join(folder, "state") if os.path.isdir(os.path.join(folder, "state")) else folder
        self.main, self.blobs = read_log("main", os.path.join(state, "main", "ledger.lmdb")), Blobs(os.path.join(state, "main", "blobs"), None)
        self.tenants = {name: Tenant(state, name) for name in sorted(os.listdir(os.path.join(state, "tenants")))}
        self.salts = {t.salted: t for t in self.tenants.values()}
        self.checkpoints, self.jobs = {name: [] for name in self.tenants}, {}
        for entry in self.main:
            self.take(entry)

    def take(self, entry):
        if entry.kind == "checkpoint":
            origin, size = entry.note.split("\n")[:2]
            self.checkpoints[origin.rpartition("/")[2]].append((entry.index, int(size)))
        elif entry.kind == "job-opened":
            self.jobs[entry.body["job"]] = Job(self, entry)
        elif entry.kind in ("round-opened", "aggregate", "step", "round-tested", "release", "job-closed"):
            job = self.jobs[entry.body["job"]]
            if entry.kind == "job-closed":
                job.outcome = entry.body["outcome"]
            elif entry.kind == "round-tested" or "tier" in entry.body:
                (job.tested if entry.kind == "round-tested" else job.tiers).append(entry)
            elif entry.kind == "release":
                job.releases[entry.body["group"]] = entry
            elif entry.kind == "round-opened" and entry.body.get("draw"):
                job.rounds[-1].openings.append(entry)
            elif entry.kind == "round-opened":
                job.rounds.append(Round(entry))
            elif entry.kind == "step":
                job.rounds[-1].step = entry
            else:
                job.rounds[-1].aggregates[entry.body["group"]] = entry
                job.rounds[-1].lists[entry.body["group"]] = self.lists(entry)

    def lists(self, entry):
        """(tenant, row) of all lists that a statement names, in the order of tenants and sites."""
        rows = []
        for line in entry.body["tenants"]:
            need(line["id"] in self.salts, entry.where, "names a tenant that is not here")
            tenant = self.salts[line["id"]]
            rows += [(tenant, read_json(text, entry.where)) for text in tenant.blobs.read(line["list"]).splitlines()]
        return sorted(rows, key=lambda r: (r[0].name, r[1]["site"]))

    def anchored(self, name, index):
        """How many entries of a tenant's ledger its last checkpoint before an entry of the main chain covers."""
        return max([size for at, size in self.checkpoints[name] if at < index], default=0)
