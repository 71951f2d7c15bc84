"""Makes the record that the oracle checks: one small federation of real programs, and in it a job for each strategy, rule,
server and form of update, all at once. What the programs themselves say of it is not asked."""

import json
import signal
import subprocess
import time

PATIENCE_S = 480
TENANTS = ["org-c", "org-a", "org-b"]
COMMON = {"tenants": TENANTS, "data": "digits", "model": {"preset": "mclr", "inputs": 64, "classes": 10}, "seed": "7", "rounds": 3, "sites_min": 9,
          "quorum": 9, "sites_per_round": 6, "local_epochs": 1, "learning_rate": 0.1, "l2": "0.0005", "evaluate_every": 0, "round_timeout_s": 600}
ALL = {"sites_per_round": 9}
GROUPED = {"strategy": "flexcfl", "groups": 2, "pretrain_sites": 7, "pretrain_steps": 5, "shift": "none", "rounds": 4}

JOBS = {
    "mean": {"strategy": "fedavg", "seed": "18446744073709551615"},
    "fedprox": {"strategy": "fedprox", "tenant_share_max": 0.4},
    "fednova": {"strategy": "fednova", "local_epochs": 2, "tenant_share_max": "0.35"},
    "qffl": {"strategy": "qffl", "options": {"fairness": 1.5}},
    "clipped": {"strategy": "qffl", "rule": "norm-clipping", "server": "momentum", "options": {"settle": 4}},
    "momentum": {"strategy": "fedavgm"},
    "adagrad": {"strategy": "fedadagrad"},
    "yogi": {"strategy": "fedyogi", "tenant_share_max": 0.5},
    "adam": {"strategy": "fedadam", "rule": "trimmed-mean", "rule_fraction": 0.2, "options": {"settle": 10}},
    "control": {"strategy": "scaffold", "control_sites": 9, "options": {"server_lr": 0.7}},
    "median": {"strategy": "fedavg", "rule": "median", "tenant_share_max": 0.34},
    "trimmed": {"strategy": "fedavg", "rule": "trimmed-mean", "rule_fraction": 0.25, **ALL},
    "krum": {"strategy": "fedavg", "rule": "krum", "rule_fraction": 0.2, **ALL},
    "multi-krum": {"strategy": "fedprox", "rule": "multi-krum", "rule_fraction": 0.2, "tenant_share_max": 0.34, **ALL},
    "bulyan": {"strategy": "fedavg", "rule": "bulyan", "rule_fraction": 0.12, **ALL},
    "geometric": {"strategy": "fednova", "rule": "geometric-median"},
    "rooted": {"strategy": "fedavg", "rule": "root-trust", "root_site": "org-b/site-2", "tenant_share_max": 0.4},
    "too-few": {"strategy": "fedavg", "rule": "krum", "rule_fraction": 0.4},
    "buffered": {"strategy": "fedbuff", "budget": {"site_minutes": 100000}, "options": {"buffer": 3}, "quorum": 3, "sites_per_round": 6, "rounds": 6},
    "edges": {"strategy": "hierarchical", "options": {"edge_rounds": 2}, "server": "adam", "tenant_share_max": 0.4, "rounds": 5, "sites_per_round": 5},
    "chosen": {"strategy": "ifca", "groups": 2},
    "nearest": {"strategy": "fesem", "groups": 3, "rounds": 4},
    "parting": {"strategy": "cfl", "options": {"split_after": 2, "split_mean": 0.63, "split_max": 0.65}, "sites_per_round": 0, "rounds": 4},
    "oneshot": {**GROUPED, "strategy": "fedclust", "pretrain_sites": 6, "options": {"link": 0.3}},
    "grouped": {**GROUPED, "mixing": "0.05", "tenant_share_max": 0.6},
    "plain": {**GROUPED, "strategy": "flexcfl-plain", "server": "yogi"},
    "madc": {**GROUPED, "strategy": "flexcfl-madc", "rule": "median"},
    "regrouped": {**GROUPED, "groups": 3, "regroup_every": 2, "rounds": 5, "server": "momentum"},
    "cut": {**GROUPED, "rounds": 5, "options": {"refresh": 2, "silhouette": 0.01, "most": 4}},
    "joined": {**GROUPED, "groups": 4, "pretrain_sites": 0, "rounds": 5, "tenant_share_max": 0.5, "options": {"refresh": 2, "merge": 0.05}},
    "living": {**GROUPED, "choose": "silhouette", "server": "momentum", "rounds": 5, "options": {"refresh": 2, "merge": 0.98}},
    "adaptive": {**GROUPED, "groups": 4, "pretrain_sites": 0, "strategy": "flexcfl-adaptive", "choose": "most", "rounds": 6, "tenant_share_max": 0.6, "evaluate_every": 1,
                 "options": {"trial_every": 2}},
    "one-first": {**GROUPED, "seed": "23", "groups": 4, "pretrain_sites": 0, "strategy": "flexcfl-adaptive", "rounds": 9, "tenant_share_max": 0.6,
                  "evaluate_every": 1, "options": {"trial_every": 3}},
    "moves": {**GROUPED, "shift": "update", "migration_pause": 1, "rounds": 4},
    "charged": {"strategy": "fedavg", "selection": "charged", "rounds": 4},
    "int8": {"strategy": "fedprox", "compression": {"kind": "int8"}},
    "bf16": {"strategy": "fedavg", "rule": "median", "compression": {"kind": "bf16"}},
    "topk": {"strategy": "fednova", "compression": {"kind": "topk", "share": 0.1}},
    "topk-int8": {"strategy": "fedadam", "compression": {"kind": "topk-int8", "share": 0.05, "carry": 0.9}},
    "metered": {"strategy": "fedavg", "rounds": 5, "budget": {"money": 1000000, "per_joule": "0.001", "per_site_minute": 0.3, "watts": 40}},
    "planned": {"strategy": "fedavg", "rounds": 5, "plan": {"data": 9, "energy": 2, "time": "7.5", "least_percent": 7}},
    "planned-steps": {"strategy": "fednova", "rounds": 3, "plan": "auto"},
    "aimed": {"strategy": "fedavg", "rounds": 60, "evaluate_every": 1, "learning_rate": 0.5, "targets": [0.2, "0.8"], "hold": 2},
    "scaled": {"strategy": "fedavg", "standardize": "federated", "rounds": 4},
    "batches": {"strategy": "fednova", "batch": "auto", "weight_max": 10000},
}


class Federation:
    def __init__(self, bin_dir, folder):
        self.bin, self.dir, self.state, self.log, self.processes = bin_dir, folder / "fed", folder / "fed" / "state", folder / "log", []

    def kedge(self, *argv, may_fail=False):
        done = subprocess.run([self.bin / "kedge", *map(str, argv)], stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False)
        if done.returncode and not may_fail:
            raise RuntimeError(f"kedge {' '.join(map(str, argv))}: exit {done.returncode}: {done.stderr[-800:]}")
        return done.stdout

    def start(self, program, *argv):
        with open(self.log, "ab") as log:
            self.processes.append(subprocess.Popen([self.bin / program, *map(str, argv)], stdout=log, stderr=log))

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def answers(self):
        end = time.monotonic() + PATIENCE_S
        while subprocess.run([self.bin / "kedge", "status", "--state", self.state], capture_output=True, check=False).returncode:
            if time.monotonic() > end:
                raise RuntimeError("the coordinator does not answer")
            time.sleep(0.05)

    def submit(self, name, spec):
        path = self.dir / f"{name}.json"
        path.write_text(json.dumps({"name": name, **COMMON, **spec}))
        self.kedge("job", "submit", path, "--state", self.state)
        for tenant in TENANTS:
            self.kedge("job", "join", name, tenant, "--admin-key", self.dir / "tenants" / tenant / "admin.pem", "--state", self.state)


def make(bin_dir, folder, only=None):
    """The folder of a federation that ran all jobs, or only these, whether they complete or not, and stopped."""
    jobs, patience = only or JOBS, 60 if only else PATIENCE_S
    fed = Federation(bin_dir, folder)
    fed.kedge("poc", fed.dir, "--tenants=3", "--sites=3", "--rounds=1", "--groups=2", "--partition=planted", "--plain-blobs")
    try:
        fed.start("kedge-coordinator", "--state", fed.state)
        fed.answers()
        for name in jobs:
            fed.submit(name, JOBS[name])
        for site in sorted((fed.dir / "sites").glob("*/*")):
            fed.start("kedge-client", "--site", site)
        for name in jobs:
            fed.kedge("job", "wait", name, "--timeout", patience, "--state", fed.state, may_fail=only)
    finally:
        fed.stop()
    return fed.dir
