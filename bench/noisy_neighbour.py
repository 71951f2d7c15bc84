#!/usr/bin/env python3
"""What a tenant's rounds notice of a noisy neighbour, on one coordinator, as real processes over TLS: the quiet tenant trains a small
job on two sites; the noisy one has sites that flood it, half of them with polls, half with reads of their tenant's log (which
workers answer), sixty at a time each. Printed is how long a round takes, its median and 99th percentile: alone; while the flood goes
to another coordinator on this machine, which takes as much of the processors; and while it goes to the same one. The ratio of
the last two is what the coordinator owes its quiet tenant. Of every folder of programs that is given, so that builds are compared.

    bench/noisy_neighbour.py BIN… [--sites N] [--rounds N] [--runs N]
"""
import argparse
import json
import shutil
import statistics
import struct
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "e2e"))
import spy  # noqa: E402
from fair_tenants import OUTSTANDING, POLL, enrol_site  # noqa: E402
from field import Field  # noqa: E402

PATIENCE_S = 600


class Neighbours:
    """The quiet tenant's sites are programs; the noisy one's are keys of ours, which ask by themselves."""

    def __init__(self, bin_dir, sites):
        self.field = Field(bin_dir)
        self.field.start()
        for name in ("site-1", "site-2"):
            self.field.add(name)
        admin = self.field.scratch / "noisy.pem"
        self.field.kedge("tenant", "add", "noisy", "--admin-key", admin)
        self.server = ("127.0.0.1", int(self.field.address().rsplit(":", 1)[1]))
        self.keys = [enrol_site(self.field.bin, self.field.kedge, self.field.scratch, self.server, "noisy", admin, f"s{i}")
                     for i in range(sites)]
        self.jobs = 0

    def rounds(self, count):
        """Seconds of each round of a new job, from opening to closing; the first is left out."""
        self.jobs += 1
        name = f"quiet-{self.jobs}"
        self.field.submit(name, rounds=count, seed=self.jobs)
        if not self.field.finish(name, PATIENCE_S):
            sys.exit(f"{name} does not complete: {json.dumps(self.field.job(name))[:400]}")
        return [row["seconds"] for row in self.field.job(name)["history"] if row["round"] > 1]

    def flood(self, stop, answered):
        """Threads that ask until `stop`; each adds to answered[i] what it got."""
        threads = []
        for i, key in enumerate(self.keys):
            peer = spy.Peer(spy.dial(self.server, key, self.field.scratch))
            question = (POLL, struct.pack(">IIQB", 0, 0, 0, 0)) if i % 2 == 0 else spy.log_read("noisy/checkpoint")
            threads.append(threading.Thread(target=ask_on, args=(peer, question, stop, answered, i), daemon=True))
        for thread in threads:
            thread.start()
        return threads

    def end(self):
        self.field.end()
        shutil.rmtree(self.field.scratch, ignore_errors=True)


def ask_on(peer, question, stop, answered, i):
    while not stop.is_set():
        try:
            peer.ask_at_once([question] * OUTSTANDING)
            answered[i] += OUTSTANDING
        except (OSError, ConnectionError):
            return


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def measure(world, count, flooded):
    stop, answered = threading.Event(), [0] * len(world.keys)
    threads = flooded.flood(stop, answered) if flooded else []
    begin = time.monotonic()
    seconds = world.rounds(count)
    took = time.monotonic() - begin
    stop.set()
    for thread in threads:
        thread.join(60)
    return seconds, sum(answered) / took


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("bin", nargs="+", type=lambda text: Path(text).resolve())
    arguments.add_argument("--sites", type=int, default=8)
    arguments.add_argument("--rounds", type=int, default=200)
    arguments.add_argument("--runs", type=int, default=3)
    said = arguments.parse_args()
    worlds = [Neighbours(path, said.sites) for path in said.bin]
    elsewhere = Neighbours(said.bin[0], said.sites)
    try:
        print(f"{'programs':36} {'flood':9} {'median, ms':>10} {'p99, ms':>9} {'answers/s to the flood':>23}")
        for _ in range(said.runs):
            for world in worlds:
                for where, flooded in (("none", None), ("elsewhere", elsewhere), ("here", world)):
                    seconds, rate = measure(world, said.rounds, flooded)
                    print(f"{str(world.field.bin)[-36:]:36} {where:9} {1000 * statistics.median(seconds):10.1f} "
                          f"{1000 * percentile(seconds, 0.99):9.1f} {rate:23.0f}", flush=True)
    finally:
        for world in [*worlds, elsewhere]:
            world.end()


if __name__ == "__main__":
    main()
