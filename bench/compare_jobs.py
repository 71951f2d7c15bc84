#!/usr/bin/env python3
"""What a job loses to one on the same sites whose tasks take ten times as long, as real processes: three sites, twenty rounds,
trainers that wait. Printed is how much longer the short job takes beside the long one than alone, the median of runs, with the
ratio of each. What it takes alone holds for the machine as it is then, so a run is a pair.

    bench/compare_jobs.py BIN [--unit S] [--times N] [--runs N]
"""
import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS, LONG_RATE, SHORT_RATE, PATIENCE_S = 20, "0.01", "0.1", 600


class World:
    """A federation of one tenant and three sites, with trainers that tell jobs apart by their learning rate."""

    def __init__(self, bin_dir, unit, times):
        self.bin, self.scratch, self.processes = bin_dir, Path(tempfile.mkdtemp(prefix="kedge-jobs-")), []
        self.fed, self.log = self.scratch / "fed", open(self.scratch / "log", "ab")
        trainer = self.scratch / "trainer"
        trainer.write_text(f"""#!/bin/sh
while read -r line; do
    case "$line" in
    *'"lr":"{LONG_RATE}"'*) sleep {unit * times} ;;
    *'"op":"train"'*) sleep {unit} ;;
    esac
    printf '%s\\n' "$line"
done | exec '{bin_dir}/kedge-train'
""")
        trainer.chmod(0o755)
        self.kedge("poc", self.fed, "--tenants=1", "--sites=3", "--rounds=1", "--groups=1", "--strategy=fedavg", "--trainer", trainer)
        specs = list(self.fed.glob("fed*.json"))
        if not specs:
            sys.exit(f"kedge poc made no federation; what it said is in {self.log.name}")
        self.template = json.loads(specs[0].read_text())
        self.start("kedge-coordinator", "--state", self.fed / "state")
        for site in sorted((self.fed / "sites").glob("*/*")):
            self.start("kedge-client", "--site", site)
        end = time.monotonic() + PATIENCE_S
        while sum(site["online"] for site in self.ask("site", "list").get("sites", [])) < 3 and time.monotonic() < end:
            time.sleep(0.05)

    def kedge(self, *argv):
        done = subprocess.run([self.bin / "kedge", *map(str, argv)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
                              timeout=PATIENCE_S)
        return done.stdout

    def ask(self, *argv):
        try:
            return json.loads(self.kedge(*argv, "--state", self.fed / "state", "--format", "json")).get("data") or {}
        except ValueError:
            return {}

    def start(self, program, *argv):
        self.processes.append(subprocess.Popen([self.bin / program, *map(str, argv)], stdout=self.log, stderr=self.log))

    def submit(self, name, rounds, rate):
        spec = self.fed / f"{name}.json"
        spec.write_text(json.dumps({**self.template, "name": name, "rounds": rounds, "learning_rate": rate, "evaluate_every": 0}))
        self.ask("job", "submit", spec)
        for tenant in self.template["tenants"]:
            self.ask("job", "join", name, tenant, "--admin-key", self.fed / "tenants" / tenant / "admin.pem")

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)


def seconds(args, beside):
    world = World(args.bin.resolve(), args.unit, args.times)
    try:
        if beside:
            world.submit("long", 100 * ROUNDS, LONG_RATE)
            time.sleep(1.5 * args.unit * args.times)
        begin = time.monotonic()
        world.submit("short", ROUNDS, SHORT_RATE)
        world.kedge("job", "wait", "short", "--state", world.fed / "state", "--timeout", PATIENCE_S)
        took = time.monotonic() - begin
        if world.ask("job", "show", "short").get("state") != "completed":
            sys.exit("the short job did not complete")
        return took
    finally:
        world.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--unit", type=float, default=0.2, help="seconds of the short job's task (0.2)")
    parser.add_argument("--times", type=float, default=10, help="how much longer the other's are (10)")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    pairs = [(seconds(args, False), seconds(args, True)) for _ in range(args.runs)]
    ratios = [with_other / alone for alone, with_other in pairs]
    print(f"alone {statistics.median(p[0] for p in pairs):.2f} s, beside the other {statistics.median(p[1] for p in pairs):.2f} s: "
          f"{statistics.median(ratios):.2f} times as long ({', '.join(f'{r:.2f}' for r in ratios)})")


main()
