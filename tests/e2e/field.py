"""A coordinator and sites that a test starts, stops, cuts off and looks into one by one. For tests in this folder."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE_S = 120
SPEC = {"data": "mine", "batch": 10, "learning_rate": "0.1", "model": {"preset": "mclr", "inputs": 4, "classes": 3}}
# Speaks the trainer's contract by asking kedge-train, but takes its time: the seconds in the file DELAY. Where there is a file
# DELAY.turns, no more trainings than it says begin, over all starts; DELAY.begun counts them, and DELAY.held is there while one waits.
SLOW = """#!/usr/bin/env python3
import json, os, subprocess, sys, time
def number(end, kind=int):
    while os.path.exists(sys.argv[2] + end):
        if text := open(sys.argv[2] + end).read():  # empty: it is written to right now
            return kind(text)
inner = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for line in sys.stdin.buffer:
    time.sleep(number("", float))
    if number(".turns") is not None and json.loads(line)["op"] == "train":
        begun = number(".begun") or 0
        while begun >= number(".turns"):
            open(sys.argv[2] + ".held", "w").close()
            time.sleep(0.02)
        if os.path.exists(sys.argv[2] + ".held"):
            os.unlink(sys.argv[2] + ".held")
        open(sys.argv[2] + ".begun.new", "w").write(str(begun + 1))
        os.replace(sys.argv[2] + ".begun.new", sys.argv[2] + ".begun")
    inner.stdin.write(line)
    inner.stdin.flush()
    sys.stdout.buffer.write(inner.stdout.readline())
    sys.stdout.buffer.flush()
"""
failed = 0


def report(name, ok, detail=""):
    global failed
    failed += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {name}{': ' + str(detail)[:900] if detail and not ok else ''}", flush=True)
    return bool(ok)


def wait_for(condition, patience=PATIENCE_S):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    return None


def own_host():
    """A loopback address that no other process has: its ports are this test's, also while nobody listens."""
    pid = os.getpid()
    return f"127.{64 + (pid >> 16)}.{pid >> 8 & 255}.{pid & 255}"


def zone_at(hour):
    """A time zone in which it is this hour now, so that the hours of the policy are these or not."""
    now = time.gmtime()
    ahead = (hour * 60 + 30 - now.tm_hour * 60 - now.tm_min + 720) % 1440 - 720
    return f"TST{'-' if ahead >= 0 else '+'}{abs(ahead) // 60:02}:{abs(ahead) % 60:02}"


def make_data(path, seed, classes=3, inputs=4, samples=300):
    """Label in the last column."""
    rng = random.Random(seed)
    with open(path, "w", encoding="ascii") as out:
        for _ in range(samples):
            label = rng.randrange(classes)
            row = [f"{rng.random() + 2 * (label == i % classes):.3f}" for i in range(inputs)]
            out.write(",".join(row) + f",{label}\n")


def reals_in_quotes(value, where=""):
    """What --format json should tell as a number; a statement's payload is what was signed, in its own spelling."""
    if isinstance(value, str):
        return [(where, value)] if re.fullmatch(r"-?\d+(\.\d+(e[+-]?\d+)?|e[+-]?\d+)", value) else []
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [hit for key, part in parts if key != "payload" for hit in reals_in_quotes(part, f"{where}/{key}")]


class Site:
    """A site's folder and its daemon. `front` is put before the command: a network name space, strace."""

    def __init__(self, field, name, folder=None, front=()):
        self.field, self.name, self.front = field, name, list(front)
        self.dir = folder or field.scratch / name
        self.log = field.scratch / f"{name}.log"
        self.delay = field.scratch / f"{name}.delay"
        self.process = None
        self.delay.write_text("0")
        self.token = field.scratch / f"{name}.token"
        make_data(field.scratch / f"{name}.csv", name)

    def enroll(self, address):
        self.field.kedge("site", "enroll", "acme", self.name, "--address", address, "--out", self.token)
        self.dir.mkdir(exist_ok=True)
        self.policy()

    def allow(self, turns):
        """Lets the trainer begin so many trainings from now on, and no more."""
        begun = Path(f"{self.delay}.begun")
        total = turns + (int(begun.read_text()) if begun.exists() else 0)
        fresh = Path(f"{self.delay}.turns.new")
        fresh.write_text(str(total))
        fresh.rename(f"{self.delay}.turns")

    def hold(self):
        """Lets it begin no more; waits until it holds one that the daemon has asked for. What the daemon's log calls that one."""
        held = Path(f"{self.delay}.held")
        held.unlink(missing_ok=True)
        self.allow(0)
        return wait_for(held.exists) and self.events("task")[-1]

    def free(self):
        """Lets it begin as many as it likes again, once it is started anew."""
        Path(f"{self.delay}.turns").unlink()

    def policy(self, **more):
        slow = self.field.scratch / "slow"
        text = {"jobs": "*", "trainer": ["python3", str(slow), str(self.field.bin / "kedge-train"), str(self.delay)],
                "data": {"mine": {"train": {"format": "csv", "path": str(self.field.scratch / f"{self.name}.csv")},
                                  "split": "0.8"}}}
        text.update(more)
        (self.dir / "policy.json").write_text(json.dumps(text))

    def start(self, env=None):
        argv = [*self.front, self.field.bin / "kedge-client", "--site", self.dir]
        if not (self.dir / "site.json").exists():
            argv += ["--enroll-file", self.token]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, env={**os.environ, **(env or {})})
        self.field.processes.append(self.process)
        return self.process

    def reload(self):
        """The daemon reads its policy; true when that is in force, so that what follows meets the new one."""
        had = len(self.events("policy"))
        self.process.send_signal(signal.SIGHUP)
        return wait_for(lambda: len(self.events("policy")) > had)

    def stop(self, number=signal.SIGTERM, patience=PATIENCE_S):
        self.process.send_signal(number)
        return self.process.wait(patience)

    def status(self):
        try:
            return json.loads((self.dir / "status.json").read_text())
        except (OSError, ValueError):
            return {}

    def events(self, name):
        """Details of the log's lines of this event; the last line may be on its way."""
        found = []
        for line in self.log.read_text(errors="replace").split("\n")[:-1]:
            if f'"event":"{name}"' in line:
                found.append(json.loads(line[line.index("{"):])["detail"])
        return found


class Field:
    def __init__(self, bin_dir, front=(), address="tls+tcp://127.0.0.1:0"):
        self.bin = Path(bin_dir).resolve()
        self.scratch = Path(tempfile.mkdtemp(prefix="kedge-field-"))
        self.state, self.admin = self.scratch / "state", self.scratch / "admin.pem"
        self.processes, self.front, self.sites = [], list(front), []
        self.coordinator = None
        (self.scratch / "slow").write_text(SLOW)  # once: it is read whenever a trainer starts
        subprocess.run([self.bin / "kedge", "init", self.state, "--listen", address], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def kedge(self, *argv, check=True):
        done = subprocess.run([self.bin / "kedge", *map(str, argv), "--state", self.state, "--format", "json"], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S)
        if check and done.returncode:
            sys.exit(f"kedge {' '.join(map(str, argv))}: {done.stdout}{done.stderr}")
        data = json.loads(done.stdout).get("data") or {}
        quoted = reals_in_quotes(data)
        if quoted:
            report(f"kedge {' '.join(map(str, argv))} --format json: reals are numbers", False, quoted[:5])
        return data

    def start(self, env=None):
        with open(self.scratch / "coordinator.log", "ab") as log:
            self.coordinator = subprocess.Popen([*self.front, self.bin / "kedge-coordinator", "--state", self.state],
                                                stdout=log, stderr=log, env={**os.environ, **(env or {})})
        self.processes.append(self.coordinator)
        if not wait_for(lambda: self.kedge("status", check=False)):
            sys.exit("the coordinator does not start")
        if not self.admin.exists():
            self.kedge("tenant", "add", "acme", "--admin-key", self.admin)

    def address(self):
        return (self.state / "address").read_text().split()[0]

    def add(self, name, address=None, **how):
        """A site that is enrolled."""
        site = Site(self, name, **how)
        site.enroll(address or self.address())
        site.start()
        self.kedge("site", "approve", "acme", name, "--admin-key", self.admin, "--wait", 60)
        self.sites.append(site)
        return site

    def submit(self, name, **spec):
        path = self.scratch / f"{name}.json"
        path.write_text(json.dumps({"name": name, "tenants": ["acme"], **SPEC, **spec}))
        self.kedge("job", "submit", path)
        self.kedge("job", "join", name, "acme", "--admin-key", self.admin)

    def job(self, name):
        return self.kedge("job", "show", name)

    def round(self, name):
        return self.job(name).get("round", 0)

    def finish(self, name, patience=PATIENCE_S):
        """True when the job completes."""
        return wait_for(lambda: self.job(name).get("state") in ("completed", "failed", "cancelled"), patience) \
            and self.job(name).get("state") == "completed"

    def audit(self, name):
        """The whole record, as a stranger sees it: verified and every decision made again."""
        trust = self.scratch / "trust.json"
        self.kedge("audit", "trust", "--out", trust)
        for verb in ("verify", "replay"):
            done = subprocess.run([self.bin / "kedge", "audit", verb, self.scratch, "--trust", trust], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S)
            report(f"{name}: audit {verb}", done.returncode == 0, done.stdout[-900:])

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        if failed:
            for log in sorted(self.scratch.glob("*.log")):
                print(f"---- {log.name}\n{log.read_text(errors='replace')[-2500:]}")
        shutil.rmtree(self.scratch, ignore_errors=True)
