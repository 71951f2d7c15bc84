#!/usr/bin/env python3
"""Whole federations as real processes over TLS, and what a hostile or unlucky world does to them.

Usage: federation.py BIN [--seed N] [--only WORD] [--kills N] [--keep]
BIN is the folder with kedge, kedge-coordinator, kedge-client and kedge-train. Prints one line per check; exit 1
when any failed. Kills and tampering are drawn from the printed seed, but land where the clock lets them.
"""
import argparse
import contextlib
import errno
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True

import packs

# A machine's disk may stand still for minutes; no step takes near as long. A hang is a failure, not a wait.
PATIENCE_S = 240
passed = 0
failed = 0


def report(name, ok, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(f"{'ok  ' if ok else 'FAIL'} {name}{': ' + detail if detail else ''}", flush=True)
    return bool(ok)


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def finding(answer):
    """The first finding of an audit, or else the last thing that was said."""
    lines = [line for line in answer.stdout.splitlines() if line.endswith("]")]
    return lines[0][:200] if lines else last_line(answer.stdout + answer.stderr)


def children(pid):
    """All descendants of a process as (pid, comm), from /proc."""
    parents = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_text()
        except OSError:
            continue  # it ended meanwhile
        comm = stat[stat.index("(") + 1:stat.rindex(")")]
        fields = stat[stat.rindex(")") + 2:].split()
        parents.setdefault(int(fields[1]), []).append((int(entry), comm))
    found, open_pids = [], [pid]
    while open_pids:
        below = parents.get(open_pids.pop(), [])
        found += below
        open_pids += [child for child, _ in below]
    return found


def sign_of(count):
    """How the next of many ends: every other one is asked to, as an operator does."""
    return (signal.SIGKILL, signal.SIGTERM)[count % 2]


def end_daemon(process, number, patience):
    """Ends a daemon by this signal; its exit code. A daemon that has not come so far that it waits for SIGTERM is ended by the system:
    that is looked for first."""
    def waits():
        status = Path("/proc", str(process.pid), "status").read_text()
        return int(re.search(r"^SigBlk:\s*([0-9a-f]+)", status, re.M)[1], 16) >> (signal.SIGTERM - 1) & 1

    if number == signal.SIGTERM:
        wait_for(lambda: process.poll() is not None or waits(), patience)
    process.send_signal(number)
    return process.wait(patience)


def faults(log):
    """How programs of poc ended, as its log tells, where it was neither by these two signals nor well."""
    said = re.findall(r"was killed by signal \d+|ended with code \d+", Path(log).read_text(errors="replace"))
    fine = (f"was killed by signal {int(signal.SIGKILL)}", f"was killed by signal {int(signal.SIGTERM)}", "ended with code 0")
    return [how for how in said if how not in fine]


class Federation:
    def __init__(self, world, name, **parameters):
        self.world = world
        self.dir = world.scratch / name
        self.trust = self.dir / "trust.json"
        self.log = world.scratch / f"{name}.log"
        self.parameters = [f"--{key}={value}" for key, value in parameters.items()]

    def start(self):
        with open(self.log, "ab") as log:
            process = subprocess.Popen([self.world.kedge, "poc", self.dir, *self.parameters], stdout=log, stderr=log)
        self.world.started.append(process)
        return process

    def finish(self, process, patience=PATIENCE_S):
        try:
            return process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return "a hang"

    def state(self):
        return last_line(self.log.read_text(errors="replace"))

    def audits(self, name, code):
        """The supervisor's exit code and both audits must all be 0."""
        verify, replay = self.audit("verify"), self.audit("replay")
        detail = f"poc {code}, verify {verify.returncode}, replay {replay.returncode}"
        for answer in (verify, replay):
            if answer.returncode:
                detail += "; " + finding(answer)
        if code != 0:
            detail += f"; {self.state()}"
        return report(name, code == 0 and verify.returncode == 0 and replay.returncode == 0, detail)

    def audit(self, verb, where=None):
        return self.world.run("audit", verb, where or self.dir, "--trust", self.trust)


class World:
    def __init__(self, bin_dir, scratch, rng, kills):
        self.bin, self.scratch, self.rng, self.kills = bin_dir, scratch, rng, kills
        self.kedge = bin_dir / "kedge"
        self.started = []
        self.clean = None

    def run(self, *argv):
        try:
            return subprocess.run([self.kedge, *map(str, argv)], text=True, errors="replace", timeout=PATIENCE_S,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(argv, 124, "", "timed out")

    def stop_all(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()  # its children end with it
                process.wait()

    def finished(self):
        """One small finished federation, shared by the checks that only read or copy it."""
        if self.clean is None:
            federation = Federation(self, "clean", tenants=2, sites=2, rounds=6, groups=2)
            federation.code = federation.finish(federation.start())
            self.clean = federation
        return self.clean


def wait_for(condition, patience=PATIENCE_S):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    return None


# ---- the checks -----------------------------------------------------------------------------------------------

def check_small(world):
    federation = world.finished()
    federation.audits("small: 2 tenants with 2 sites, 6 rounds in 2 groups, audited", federation.code)
    models = list((federation.dir / "models").glob("*.safetensors"))
    report("small: released models lie in models/", len(models) == 3, f"{len(models)} files")


def check_still(world):
    """A trainer that changes nothing tells no sites apart: they make one group, and the record holds."""
    federation = Federation(world, "still", tenants=2, sites=1, rounds=2, groups=2,
                            trainer=world.bin / "kedge-train-identity")
    code = federation.finish(federation.start())
    models = list((federation.dir / "models").glob("flexcfl-g*.safetensors"))
    report("still: sites that learn nothing make one group", code == 0 and len(models) == 1,
           f"poc {code}, {len(models)} models; {federation.state()}")
    federation.audits("still: the record of a job that learnt nothing", 0)


def check_kill(world):
    for victim in ("kedge-coordinator", "kedge-client", "kedge-train"):
        rounds = max(20, world.kills * (6 if victim == "kedge-train" else 3))
        federation = Federation(world, f"kill-{victim}", tenants=2, sites=2, rounds=rounds, groups=2)
        process = federation.start()
        killed = 0
        end = time.monotonic() + PATIENCE_S
        wait_for(lambda: process.poll() is not None or receipts_of(federation))
        while process.poll() is None and killed < world.kills and time.monotonic() < end:
            time.sleep(world.rng.uniform(0.02, 0.25))
            moved = wait_for(lambda: [p for p, comm in children(process.pid) if comm.startswith(victim[:15])],
                             5)  # none is left when the job has ended
            if moved and process.poll() is None:
                try:
                    os.kill(world.rng.choice(moved), sign_of(killed))
                    killed += 1
                except ProcessLookupError:
                    pass
        code = federation.finish(process)
        # A fast machine may be done before all of them, a slow one may run out of patience.
        report(f"kill: {victim} met kill -9 and SIGTERM", 2 * killed >= world.kills, f"{killed} of {world.kills} times")
        federation.audits(f"kill: {victim}: the federation completes", code)
        bad = faults(federation.log)
        report(f"kill: {victim}: no daemon ended by a fault", not bad, " ".join(bad))
        check_receipts(world, federation, f"kill: {victim}")
        check_states(world, federation.dir / "state", [federation.dir / "logs" / "coordinator.log"])


def receipts_of(federation):
    """What the clients noted of every receipt that they got and checked: site, leaf index, leaf hash."""
    found = []
    for log in sorted((federation.dir / "logs").glob("org-*.log")):
        for line in log.read_text(errors="replace").split("\n")[:-1]:  # the last one may be on its way
            if '"event":"acknowledged"' in line:
                fact = dict(word.split("=", 1) for word in json.loads(line)["detail"].split())
                found.append((log.stem, int(fact["index"]), fact["leaf"]))
    return found


def check_receipts(world, federation, name):
    """Every statement that was acknowledged to a client is in its tenant's ledger, at its place, and there once."""
    leaves, doubled = {}, []
    for tenant in sorted((federation.dir / "state" / "tenants").iterdir()):
        answer = world.run("ledger", "show", tenant.name, "--state", federation.dir / "state", "--limit", 100000,
                           "--format", "json")
        if answer.returncode:
            report(f"{name}: the ledger of {tenant.name} is shown", False, last_line(answer.stderr))
            return
        entries = json.loads(answer.stdout)["data"]["entries"]
        leaves[tenant.name] = {entry["index"]: entry["leaf_hash"] for entry in entries}
        hashes = list(leaves[tenant.name].values())
        doubled += [one for one in set(hashes) if hashes.count(one) > 1]
    receipts = receipts_of(federation)
    lost = [one for one in receipts if leaves[one[0][:5]].get(one[1]) != one[2]]
    report(f"{name}: every receipt of a client is in its ledger", receipts and not lost,
           f"{len(receipts)} receipts; {len(lost)} lost {lost[:2] if lost else ''}")
    report(f"{name}: no statement is there twice", not doubled, f"{sum(map(len, leaves.values()))} statements")


def check_resume(world):
    federation = Federation(world, "resume", tenants=2, sites=2, rounds=20, groups=2)
    for wait in (*(world.rng.uniform(0.02, 0.3) for _ in range(4)), world.rng.uniform(0.8, 2.5)):
        process = federation.start()
        time.sleep(wait)
        process.kill()
        process.wait()
        leftover = wait_for(lambda: not any("kedge" in comm and cwd_of(pid, federation.dir)
                                            for pid, comm in children(1)))
        report(f"resume: supervisor killed after {wait:.2f} s takes its children along", leftover is not None)
    federation.audits("resume: the same folder again goes on and completes", federation.finish(federation.start()))
    before = federation.audit("verify").stdout
    port = int((federation.dir / "state" / "address").read_text().rsplit(":", 1)[1])
    with elsewhere(port):  # as another program may have got it meanwhile
        code = federation.finish(federation.start())
    federation.audits("resume: a finished folder again is left as it is, even when its port is another's", code)
    after = federation.audit("verify").stdout
    report("resume: and gains no round", count_of(before, "rounds") == count_of(after, "rounds") != "")


def elsewhere(port):
    """Takes the port of 127.0.0.1, or leaves it to who has it."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as e:
        if e.errno != errno.EADDRINUSE:
            raise
        return contextlib.nullcontext()


def check_torn_files(world):
    """A power cut leaves any bytes in what a site does not sync: specs and models are fetched again, a torn memory of
    the main chain is said and begun anew."""
    federation = Federation(world, "torn", tenants=2, sites=2, rounds=40, groups=2)
    process = federation.start()
    def unsynced(what):
        return [path for folder in federation.dir.glob("sites/*/*/work") for path in folder.glob(what)]

    met = wait_for(lambda: unsynced("model-*"))
    process.kill()
    process.wait()
    wait_for(lambda: not any("kedge" in comm and cwd_of(pid, federation.dir) for pid, comm in children(1)))
    torn = [*unsynced("model-*"), *unsynced("spec-*"), *federation.dir.glob("sites/*/*/seen-main")]
    torn = [path for path in torn if path.stat().st_size > 0]  # one may have been begun only
    for path in torn:
        spoil(path, "flip", world.rng)
    report("torn files: a site killed with files that no sync vouches for", met, f"{len(torn)} files spoiled")
    federation.audits("torn files: the federation completes", federation.finish(federation.start()))
    misled = [str(path.relative_to(federation.dir)) for path in federation.dir.glob("sites/*/*/refused-main*")]
    report("torn files: no site took its own torn memory for another history", not misled, " ".join(misled))


def check_half_settings(world):
    """Supervisor killed while it writes the first file of all: its temporary file makes the folder nobody else's."""
    for name, whole in (("poc.json.1.0.tmp", True), ("poc.json.old", False)):
        federation = Federation(world, f"half-{name}", tenants=1, sites=1, rounds=1, groups=1)
        federation.dir.mkdir()
        (federation.dir / name).write_text('{"tenants"')
        code = federation.finish(federation.start())
        report(f"half settings: with {name} the same command " + ("goes on" if whole else "refuses"), (code == 0) == whole,
               f"poc {code}; {federation.state()}")


def check_half_site(world):
    """Supervisor and client killed while a site's folder is made: the same command again goes on with what it finds."""
    for moment in ("sites/org-a/site-1/policy.json", "sites/org-a/site-1/enroll.token", "sites/org-a/site-1/keys",
                   "sites/org-a/site-1/site.json"):
        federation = Federation(world, f"half-{Path(moment).name}", tenants=1, sites=2, rounds=3, groups=1)
        process = federation.start()
        met = wait_for((federation.dir / moment).exists)
        process.kill()
        process.wait()
        wait_for(lambda: not any("kedge" in comm and cwd_of(pid, federation.dir) for pid, comm in children(1)))
        report(f"half site: killed when {moment} came to be", met)
        folder = federation.dir / "sites" / "org-a" / "site-2"
        if folder.is_dir():  # what a kill within a write leaves: the temporary file, and not yet the file
            policy = folder / "policy.json"
            text = policy.read_bytes() if policy.exists() else b"{}"
            (folder / "policy.json.1.0.tmp").write_bytes(text[:len(text) // 2])
            policy.unlink(missing_ok=True)
        federation.audits("half site: the same folder again goes on and completes",
                          federation.finish(federation.start()))


def cwd_of(pid, folder):
    """Whether the command line of a process names the folder."""
    try:
        return str(folder).encode() in Path("/proc", str(pid), "cmdline").read_bytes()
    except OSError:
        return False


def count_of(report_text, what):
    for line in report_text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == what:
            return words[1]
    return ""


def spoil(path, kind, rng):
    data = bytearray(path.read_bytes())
    if kind == "flip":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    elif kind == "truncate":
        path.write_bytes(data[:len(data) - 1 - rng.randrange(min(64, len(data)))])
    else:
        path.unlink()


def check_found(world, name, federation, change):
    """Copies the record, changes the copy, and demands that an auditor says no and names something."""
    copy = world.scratch / "tampered"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(federation.dir, copy, symlinks=True)
    change(copy)
    answer = federation.audit("verify", copy)
    if answer.returncode == 0:
        answer = federation.audit("replay", copy)
    said = finding(answer)
    report(f"tamper: {name}", answer.returncode in (1, 3, 5) and len(said) > 20, f"exit {answer.returncode}; {said}")


def check_tamper(world):
    federation = world.finished()
    files = {
        "blob": [p for p in federation.dir.rglob("*") if "blobs" in p.parts and p.is_file() and p.stat().st_size],
        "model": sorted((federation.dir / "models").glob("*.safetensors")),
    }
    for what, paths in files.items():
        for kind in ("flip", "truncate", "remove"):
            path = world.rng.choice(sorted(paths)).relative_to(federation.dir)
            check_found(world, f"{kind} {what} {str(path)[-40:]}", federation,
                        lambda copy: spoil(copy / path, kind, world.rng))
    for log, folder in (("main", "main"), *((t.name, f"tenants/{t.name}")
                                            for t in sorted((federation.dir / "state" / "tenants").iterdir()))):
        path = Path("state", folder, "ledger.lmdb", "data.mdb")
        statements = statements_of(world, federation, log, path)
        raw = (federation.dir / path).read_bytes()
        report(f"tamper: {path} holds each statement once and nothing of others",
               len(list(packs.packed((federation.dir / path).parent))) == len(statements) == len(set(statements))
               and b'"payloadType"' not in raw and all(raw.count(text) == 1 for text in statements), f"{len(statements)} statements")
        statement = world.rng.choice(statements)
        at, bit = world.rng.randrange(len(statement)), 1 << world.rng.randrange(8)

        def change(copy):
            data = bytearray((copy / path).read_bytes())
            data[data.find(statement) + at] ^= bit
            (copy / path).write_bytes(data)
        check_found(world, f"bit {bit:02x} of byte {at} of a statement in {path}", federation, change)


def statements_of(world, federation, log, path):
    """The log's statements as they lie in its file."""
    answer = world.run("ledger", "show", log, "--state", federation.dir / "state", "--limit", 100000, "--format", "json")
    leaves = {entry["leaf_hash"] for entry in json.loads(answer.stdout)["data"]["entries"]}
    return sorted(stored for _, stored, entry in packs.packed((federation.dir / path).parent)
                  if hashlib.sha256(b"\0" + entry).hexdigest() in leaves)


def check_exit_codes(world):
    federation = world.finished()
    answer = world.run("audit", "verify", federation.dir)
    report("codes: verify without --trust does not say yes", answer.returncode == 1, f"exit {answer.returncode}")
    answer = world.run("audit", "verify", world.scratch / "absent", "--trust", federation.trust)
    report("codes: audit of a missing folder", answer.returncode == 3 and answer.stderr.strip() != "",
           f"exit {answer.returncode}; {last_line(answer.stderr)}")
    answer = world.run("no-such-verb")
    report("codes: unknown command", answer.returncode == 2 and answer.stderr.strip() != "")


class Standing:
    """The coordinator and the clients of a finished poc folder, started by hand."""

    def __init__(self, world, federation):
        self.world, self.dir = world, federation.dir
        self.state = federation.dir / "state"
        self.processes = {}
        self.launch("coordinator", "kedge-coordinator", "--state", self.state)
        wait_for(lambda: self.run("status").returncode == 0)
        for site in sorted((self.dir / "sites").glob("*/*")):
            self.launch(f"{site.parent.name}/{site.name}", "kedge-client", "--site", site)

    def launch(self, name, program, *argv):
        with open(self.world.scratch / "standing.log", "ab") as log:
            process = subprocess.Popen([self.world.bin / program, *argv], stdout=log, stderr=log)
        self.processes[name] = process
        self.world.started.append(process)

    def run(self, *argv):
        return self.world.run(*argv, "--state", self.state)

    def admin_key(self, tenant):
        return self.dir / "tenants" / tenant / "admin.pem"

    def open_job(self, spec):
        path = self.world.scratch / f"{spec['name']}.json"
        path.write_text(json.dumps(spec))
        answers = [self.run("job", "submit", path)]
        answers += [self.run("job", "join", spec["name"], tenant, "--admin-key", self.admin_key(tenant))
                    for tenant in spec["tenants"]]
        bad = [answer for answer in answers if answer.returncode]
        return report(f"{spec['name']}: submitted and joined", not bad, last_line(bad[0].stderr) if bad else "")

    def stop(self):
        for process in reversed(self.processes.values()):
            process.send_signal(signal.SIGCONT)
            process.terminate()
        slow = []
        for name, process in self.processes.items():
            try:
                process.wait(30)  # a client ends its training first, for at most 10 s
            except subprocess.TimeoutExpired:
                process.kill()
                slow.append(name)
        codes = {name: p.returncode for name, p in self.processes.items() if p.returncode}
        return slow, codes


def check_states(world, state, logs):
    """What the coordinator had as it opened each round, restarted or not, is what the record folds to."""
    had = {}
    for line in "".join(Path(log).read_text(errors="replace") for log in logs).splitlines():
        if '"round opened"' in line or '"round drawn again"' in line:
            event = dict(word.split("=", 1) for word in json.loads(line)["detail"].split())
            had[f"{event['job']} {event['round']}"] = event["state"]  # one that was not recorded is opened again
    answer = subprocess.run([world.bin / "round_states", state], capture_output=True, text=True, timeout=120)
    folded = dict(line.rsplit(" ", 1) for line in answer.stdout.splitlines())
    other = [key for key in folded if had.get(key) != folded[key]]
    fine = answer.returncode == 0 and folded and not other
    return report(f"the state of all {len(folded)} rounds of {len({key.split()[0] for key in folded})} jobs is what the record folds to",
                  fine, "" if fine else f"exit {answer.returncode}: {last_line(answer.stderr)} {other[:20]}")


def job_spec(job, **changes):
    spec = {"name": job, "tenants": ["org-a", "org-b"], "seed": "3", "data": "digits", "rounds": 8,
            "model": {"preset": "mclr", "inputs": 64, "classes": 10}, "sites_min": 2, "quorum": 1, "local_epochs": 1,
            "batch": 10, "learning_rate": "0.1", "round_timeout_s": 5}
    spec.update(changes)
    return spec


def check_specs(world, standing):
    cases = (
        ("unknown key", {"roundz": 4}, "roundz", (1, 2)),
        ("wrong type", {"rounds": "4"}, "rounds", (1, 2)),
        ("zero rounds", {"rounds": 0}, "rounds", (1, 2)),
        ("far too many rounds", {"rounds": 2 ** 60}, "rounds", (1, 2)),
        ("no number", {"learning_rate": "fast"}, "learning_rate", (1, 2)),
        ("negative rate", {"learning_rate": "-1"}, "learning_rate", (1, 2)),
        ("hostile name", {"name": "../../etc"}, "name", (1, 2)),
        ("a tenant twice", {"tenants": ["org-b", "org-a", "org-b"]}, "tenants", (1, 2)),
        ("no model", {"model": None}, "model", (1, 2)),
        ("unknown tenant", {"tenants": ["org-a", "org-z"]}, "org-z", (1,)),
        ("unknown grouping", {"grouping": "by-luck"}, "grouping", (1, 2)),
    )
    path = world.scratch / "bad.json"
    for name, change, word, codes in cases:
        path.write_text(json.dumps(job_spec("bad", **change)))
        answer = standing.run("job", "submit", path)
        report(f"specs: {name} is refused and named", answer.returncode in codes and word in answer.stderr,
               f"exit {answer.returncode}; {answer.stderr.strip()[:120]}")
    for name, text in (("malformed", '{"name": "bad",'), ("empty", ""), ("not an object", "[1]"),
                       ("deep", "[" * 5000), ("key twice", '{"name": "a", "name": "b"}')):
        path.write_text(text)
        answer = standing.run("job", "submit", path)
        report(f"specs: {name} JSON is refused", answer.returncode in (1, 2) and answer.stderr.strip() != "",
               f"exit {answer.returncode}; {answer.stderr.strip()[:120]}")
    answer = standing.run("job", "list")
    report("specs: none of them became a job", answer.returncode == 0 and "bad" not in answer.stdout)


def check_stopped_site(world, standing):
    victim = standing.processes["org-b/site-2"]
    if not standing.open_job(job_spec("asleep", rounds=40, round_timeout_s=2)):
        return
    time.sleep(0.3)
    victim.send_signal(signal.SIGSTOP)
    answer = standing.run("job", "wait", "asleep", "--timeout", "120")
    # Rounds of 2 s until its lease of 5 s ends; the other sites' held polls are 20 s.
    shown = standing.run("job", "show", "asleep", "--format", "json")
    took = [float(row["seconds"]) for row in json.loads(shown.stdout)["data"]["history"]]
    late = [seconds for seconds in took if seconds >= 2]
    report("asleep: a client stopped in mid-job holds nobody up for good",
           answer.returncode == 0 and len(took) == 40 and len(late) <= 5 and max(took) < 10,
           f"exit {answer.returncode}, {len(late)} rounds waited, {max(took):.1f} s at most; {last_line(answer.stderr)}")
    victim.send_signal(signal.SIGCONT)
    report("asleep: it wakes up into the federation", victim.poll() is None)


def check_revoked_site(world, standing):
    if not standing.open_job(job_spec("revoked", rounds=40)):
        return
    time.sleep(0.3)
    answer = standing.run("site", "revoke", "org-a", "site-1", "--admin-key", standing.admin_key("org-b"))
    report("revoked: another tenant's administrator cannot", answer.returncode in (1, 4), f"exit {answer.returncode}")
    answer = standing.run("site", "revoke", "org-a", "site-1", "--admin-key", standing.admin_key("org-a"))
    report("revoked: its own can, in mid-job", answer.returncode == 0, last_line(answer.stderr))
    answer = standing.run("job", "wait", "revoked", "--timeout", "120")
    report("revoked: the job completes without it", answer.returncode == 0,
           f"exit {answer.returncode}; {last_line(answer.stderr)}")
    words = []
    for name in ("tls", "statement"):
        path = standing.dir / "sites" / "org-a" / "site-1" / "keys" / f"{name}.pem"
        words.append(f"{path}, whose public key is {json.loads(standing.run('key', 'public', path, '--format', 'json').stdout)['data']['key']}")
    said = wait_for(lambda: [line for line in (world.scratch / "standing.log").read_text(errors="replace").splitlines()
                             if '"event":"keys used"' in line])
    named = said and all(word in said[-1] for word in words)
    report("revoked: its log names the files of its keys, and the keys", bool(named), "" if named else f"{said}, expected {words}")


def check_unjoined(world, standing):
    """A job that nobody joins ends by its deadline, also when the coordinator was away then; its place is free again."""
    for name, seconds in (("unjoined", 1), ("unjoined-2", 2)):
        path = world.scratch / f"{name}.json"
        path.write_text(json.dumps(job_spec(name, enrol_within_s=seconds)))
        answer = standing.run("job", "submit", path)
        report(f"{name}: submitted", answer.returncode == 0, last_line(answer.stderr))
    coordinator = standing.processes["coordinator"]
    coordinator.kill()
    coordinator.wait()
    standing.launch("coordinator", "kedge-coordinator", "--state", standing.state)
    wait_for(lambda: standing.run("status").returncode == 0)
    for name in ("unjoined", "unjoined-2"):
        standing.run("job", "wait", name, "--timeout", "60")
        shown = json.loads(standing.run("job", "show", name, "--format", "json").stdout)["data"]
        report(f"{name}: ends as failed, and says why", shown["state"] == "failed" and "enrol_within_s" in
               shown.get("reason_text", ""), f"{shown['state']}: {shown.get('reason_text')}")


def check_half_tenant(world, standing):
    """A coordinator killed within `tenant add`: the same command again goes on with what it finds."""
    key = world.scratch / "org-c.pem"
    answer = standing.run("tenant", "add", "org-c", "--admin-key", key)
    report("half tenant: added", answer.returncode == 0, last_line(answer.stderr))
    coordinator = standing.processes["coordinator"]
    coordinator.kill()
    coordinator.wait()
    (standing.state / "tenants" / "org-c" / "tenant.json").unlink()  # written last
    standing.launch("coordinator", "kedge-coordinator", "--state", standing.state)
    wait_for(lambda: standing.run("status").returncode == 0)
    answer = standing.run("tenant", "list")
    report("half tenant: is none yet", answer.returncode == 0 and "org-c" not in answer.stdout)
    answer = standing.run("tenant", "add", "org-c", "--admin-key", key)
    report("half tenant: added again", answer.returncode == 0, last_line(answer.stderr))
    answer = standing.run("tenant", "list")
    report("half tenant: is whole", answer.returncode == 0 and "org-c" in answer.stdout, last_line(answer.stderr))
    answer = standing.run("audit", "trust")
    if report("half tenant: its keys are told", answer.returncode == 0, last_line(answer.stderr)):
        (standing.dir / "trust.json").write_text(answer.stdout)


def check_standing(world):
    federation = Federation(world, "standing", tenants=2, sites=2, rounds=2, groups=1)
    if federation.finish(federation.start()) != 0:
        report("standing: a federation to work on", False, federation.state())
        return
    standing = Standing(world, federation)
    try:
        check_specs(world, standing)
        check_stopped_site(world, standing)
        check_revoked_site(world, standing)
        for job in ("asleep", "revoked"):
            answer = standing.run("job", "model", job, "--out", federation.dir / "models")
            report(f"standing: the model of {job} is taken", answer.returncode == 0, last_line(answer.stderr))
        check_unjoined(world, standing)
        check_half_tenant(world, standing)
    finally:
        slow, codes = standing.stop()
    report("standing: SIGTERM ends every program in time", not slow, " ".join(slow))
    codes.pop("org-a/site-1", None)  # a revoked client says so by its code
    report("standing: and with code 0", not codes, str(codes) if codes else "")
    federation.audits("standing: the record with a sleeper and a revoked site", 0)


CHECKS = (("small", check_small), ("codes", check_exit_codes), ("still", check_still), ("kill", check_kill),
          ("resume", check_resume), ("torn", check_torn_files), ("half-settings", check_half_settings),
          ("half-site", check_half_site), ("standing", check_standing),
          ("tamper", check_tamper))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin", type=Path)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    parser.add_argument("--only", default="")
    parser.add_argument("--kills", type=int, default=4, help="times that each program is killed")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="kedge-e2e-"))
    world = World(args.bin.resolve(), scratch, random.Random(args.seed), args.kills)
    print(f"seed {args.seed}" + (f", folder {scratch}" if args.keep else ""), flush=True)
    try:
        for name, check in CHECKS:
            if args.only in name:
                began = time.monotonic()
                check(world)
                print(f"     {name} took {time.monotonic() - began:.1f} s", flush=True)
    finally:
        world.stop_all()
        if not args.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
