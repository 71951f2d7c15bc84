#!/usr/bin/env python3
"""What jobs cost a coordinator, as a real process, that has had many of them and has as many in hand as it takes: until it serves
after a restart, a page of `job.list` (asked through the door, each page of the list once), a page of those that failed, memory.
A kept folder (--keep DIR) is filled once and asked again by later runs.

    bench/many_jobs.py BIN [--jobs N] [--running N] [--starts N] [--keep DIR]
"""
import argparse
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/e2e"))

import spy

PATIENCE_S = 120
FULL = 12  # KEDGE_E_FULL on the wire
SERVING = b'"serving"'
SPEC = {"tenants": ["acme"], "data": "none", "rounds": 10, "batch": 10, "learning_rate": "0.1",
        "model": {"preset": "mclr", "inputs": 4, "classes": 3}}


class Coordinator:
    def __init__(self, bin_dir, folder):
        self.bin, self.state, self.log = bin_dir, folder / "state", folder / "log"
        self.process = self.door = None

    def start(self):
        """Seconds until it serves."""
        begin, at = time.monotonic(), self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.bin / "kedge-coordinator", "--state", self.state], stdout=log, stderr=log)
        while SERVING not in self.log.read_bytes()[at:]:
            if self.process.poll() is not None or time.monotonic() - begin > PATIENCE_S:
                sys.exit(f"the coordinator does not serve; its log:\n{self.log.read_bytes()[at:].decode()}")
            time.sleep(0.002)
        took = time.monotonic() - begin
        self.door = spy.Peer(spy.door(self.state))
        return took

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ask(self, **question):
        """The answer; where all places are taken, when one is free again: jobs end as fast as the disk stores it."""
        end = time.monotonic() + PATIENCE_S
        answer = self.door.ask(*spy.admin(json.dumps(question)))
        while answer[1] == 0xff and int.from_bytes(answer[2:6], "big") == FULL and time.monotonic() < end:
            time.sleep(0.05)
            answer = self.door.ask(*spy.admin(json.dumps(question)))
        if answer[1] == 0xff:
            sys.exit(f"{question}: {answer!r}")
        return json.loads(answer[answer.index(b"{"):])

    def anonymous_mb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status[status.index("RssAnon:") + 8:].split()[0]) / 1024


def fill(c, jobs, running):
    """Jobs that ended (cancelled: of an enrolment that nobody needed), and as many as there may be that wait for sites."""
    for n in range(jobs):
        name = f"job-{n:06d}"
        c.ask(verb="job.submit", spec=json.dumps({"name": name, **SPEC}))
        if n < jobs - running:
            c.ask(verb="job.cancel", job=name)


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
    parser.add_argument("--running", type=int, default=60)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    folder = args.keep or Path(tempfile.mkdtemp(prefix="kedge-jobs-"))
    folder.mkdir(exist_ok=True)
    c = Coordinator(args.bin.resolve(), folder)
    try:
        if not c.state.exists():
            subprocess.run([c.bin / "kedge", "init", c.state, "--deployment", "bench", "--listen", "tls+tcp://127.0.0.1:0"],
                           check=True, stdout=subprocess.DEVNULL)
            c.start()
            subprocess.run([c.bin / "kedge", "tenant", "add", "acme", "--admin-key", folder / "admin.pem", "--state", c.state],
                           check=True, stdout=subprocess.DEVNULL)
            begin = time.monotonic()
            fill(c, args.jobs, args.running)
            print(f"{args.jobs} jobs submitted, all but {args.running} cancelled: {time.monotonic() - begin:.0f} s")
            c.stop()
        starts = []
        for _ in range(args.starts):
            starts.append(c.start())
            c.stop()
        c.start()
        print(f"until it serves, after SIGKILL: median {statistics.median(starts):.2f} s, longest {max(starts):.2f} s")
        tell("job.list", *pages(c))
        tell("job.list of 256", *pages(c, limit=256))
        tell("job.list, those that run", *pages(c, state="active"))
        tell("job.list, those that failed", *pages(c, state="failed"))
        tell("job.list of a tenant", *pages(c, tenant="acme"))
        print(f"anonymous memory: {c.anonymous_mb():.0f} MB")
    finally:
        if c.process and c.process.poll() is None:
            c.stop()
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)


main()
