#!/usr/bin/env python3
"""What jobs cost a coordinator, as a real process, that has had many of them, has as many in hand as it takes, which train at real
sites, and others that wait for a place: until it serves after a restart, a page of `job.list` (asked through the door, each page of
the list once), a page of those that failed, memory.

    bench/many_jobs.py BIN [--jobs N] [--training N] [--waiting N] [--sites N] [--starts N]
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/e2e"))

import spy
from field import Field, own_host

PATIENCE_S = 120
SERVING = b'"serving"'
PLACES = 64  # KEDGE_JOBS_MAX
SPEC = {"tenants": ["acme"], "data": "none", "rounds": 10, "batch": 10, "learning_rate": "0.1",
        "model": {"preset": "mclr", "inputs": 4, "classes": 3}}
TRAINS = {**SPEC, "data": "mine", "rounds": 1000000, "sites_min": 1}


class Coordinator:
    def __init__(self, field):
        self.field, self.log = field, field.scratch / "coordinator.log"
        self.process = self.door = None

    def start(self):
        """Seconds until it serves, and of processors till then."""
        begin, at = time.monotonic(), self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.field.bin / "kedge-coordinator", "--state", self.field.state], stdout=log, stderr=log)
        self.field.processes.append(self.process)
        while SERVING not in self.log.read_bytes()[at:]:
            if self.process.poll() is not None or time.monotonic() - begin > PATIENCE_S:
                sys.exit(f"the coordinator does not serve; its log:\n{self.log.read_bytes()[at:].decode()}")
            time.sleep(0.002)
        took = time.monotonic() - begin
        self.door = spy.Peer(spy.door(self.field.state))
        return took, self.processor_s()

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ask(self, **question):
        answer = self.door.ask(*spy.admin(json.dumps(question)))
        if answer[1] == 0xff:
            sys.exit(f"{question}: {answer!r}")
        return json.loads(answer[6:])

    def processor_s(self):
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def anonymous_mb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status[status.index("RssAnon:") + 8:].split()[0]) / 1024


def end_some(c, count):
    """Jobs that ended: cancelled before anybody joined."""
    for n in range(count):
        name = f"job-{n:06d}"
        c.ask(verb="job.submit", spec=json.dumps({"name": name, **SPEC}))
        c.ask(verb="job.cancel", job=name)


def train_some(c, field, count):
    """Jobs that train until nobody wants them any more; returns when each has closed a round."""
    names = [f"long-{n:02d}" for n in range(count)]
    for name in names:
        (field.scratch / f"{name}.json").write_text(json.dumps({"name": name, **TRAINS}))
        field.kedge("job", "submit", field.scratch / f"{name}.json")
        field.kedge("job", "join", name, "acme", "--admin-key", field.admin)
    end = time.monotonic() + PATIENCE_S
    while any(c.ask(verb="job.show", job=name)["round"] < 2 for name in names):
        if time.monotonic() > end:
            sys.exit("the jobs do not train")
        time.sleep(0.2)


def wait_some(c, count):
    """Jobs that wait; of tenants without sites, so many that each has no more than its share of the line."""
    for n in range(count):
        tenant = f"idle-{n % 3}"
        c.ask(verb="job.submit", spec=json.dumps({"name": f"later-{n:06d}", **SPEC, "tenants": [tenant]}))


def pages(c, **more):
    """Seconds of each page of the list, and how many jobs it had."""
    took, count, at = [], 0, {}
    while True:
        begin = time.monotonic()
        answer = c.ask(verb="job.list", **more, **at)
        took.append(time.monotonic() - begin)
        count += len(answer["jobs"])
        if "next" not in answer:
            return took, count
        at = {"from": answer["next"]}


def tell(what, took, count):
    print(f"{what}: {count} jobs in {len(took)} pages; a page: median {1000 * statistics.median(took):.1f} ms, "
          f"longest {1000 * max(took):.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--training", type=int, default=PLACES)
    parser.add_argument("--waiting", type=int, default=0)
    parser.add_argument("--sites", type=int, default=2)
    parser.add_argument("--starts", type=int, default=5)
    args = parser.parse_args()
    field = Field(args.bin, address=f"tls+tcp://{own_host()}:7443")
    c = Coordinator(field)
    try:
        c.start()
        for tenant in ("acme", "idle-0", "idle-1", "idle-2"):
            field.kedge("tenant", "add", tenant, "--admin-key", field.admin if tenant == "acme" else field.scratch / f"{tenant}.pem")
        begin = time.monotonic()
        end_some(c, args.jobs - args.training - args.waiting)
        for n in range(args.sites if args.training else 0):
            field.add(f"site-{n}").policy(trainer=[str(field.bin / "kedge-train")])
            field.sites[-1].reload()
        train_some(c, field, args.training)
        wait_some(c, args.waiting)
        print(f"{args.jobs} jobs, {args.training} of them train, {args.waiting} wait: made in {time.monotonic() - begin:.0f} s")
        print(f"anonymous memory before a restart: {c.anonymous_mb():.0f} MB")
        starts = []
        for _ in range(args.starts):
            c.stop()
            starts.append(c.start())
        took, used = [s for s, _ in starts], [s for _, s in starts]
        print(f"until it serves, after SIGKILL: median {statistics.median(took):.2f} s, longest {max(took):.2f} s; of processors "
              f"{statistics.median(used):.2f} s, at most {max(used):.2f} s")
        closed = sum(c.ask(verb="job.show", job=f"long-{n:02d}")["round"] for n in range(args.training))
        time.sleep(3)
        tell("job.list", *pages(c))
        tell("job.list of 256", *pages(c, limit=256))
        tell("job.list, those that run or wait", *pages(c, state="active"))
        tell("job.list, those that failed", *pages(c, state="failed"))
        tell("job.list of a tenant", *pages(c, tenant="acme"))
        closed = sum(c.ask(verb="job.show", job=f"long-{n:02d}")["round"] for n in range(args.training)) - closed
        print(f"rounds closed meanwhile: {closed}; anonymous memory: {c.anonymous_mb():.0f} MB")
    finally:
        field.end()


main()
