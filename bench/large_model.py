#!/usr/bin/env python3
"""What a large model costs a federation of real processes on this machine: seconds of a round beside reading and writing the same
bytes, and the most anonymous memory that each process had; then a restart of the coordinator, the audit of the record and its
replay, and the model taken out of it. The sites run a trainer that changes every weight and computes nothing.

    bench/large_model.py BIN [--mb 256] [--sites 4] [--rounds 2] [--folder DIR] [--limit MIB]

BIN has the programs of a build with -DKEDGE_BENCH=ON. The folder needs (rounds + 4) x sites + rounds + 3 times the model: with 256 MB
and the rest as it stands 7.5 GB, with 1,000 MB 29 GB. Exit code 1: a process had more anonymous memory than the limit.
"""
import argparse
import json
import multiprocessing
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CLASSES, BLOCK, SAMPLE_S = 100, 4 << 20, 0.02
TRAINER = "kedge-bench-trainer-noise"


# ---- memory ----

class Watch(threading.Thread):
    """The most RssAnon, in MiB, of each program among a process and all that it starts."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.ended = pid, {}, threading.Event()

    def run(self):
        while not self.ended.wait(SAMPLE_S):
            self.look()

    def look(self):
        rows = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    status = (Path("/proc") / name / "status").read_text()
                except OSError:
                    continue
                rows[int(name)] = dict(line.split(":", 1) for line in status.splitlines())
        family, grown = {self.pid}, True
        while grown:
            more = {pid for pid, row in rows.items() if int(row["PPid"]) in family} - family
            family, grown = family | more, bool(more)
        for row in (rows[pid] for pid in family if pid in rows):
            program, kb = row["Name"].strip(), int(row.get("RssAnon", "0").split()[0])
            self.most[program] = max(self.most.get(program, 0), kb / 1024)

    def stop(self):
        self.ended.set()
        self.join()
        return self.most


def processor_s():
    """Of all that this process has started and seen the end of, with what those had."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(argv, log):
    """Its output, seconds, and memory by program."""
    begin = time.monotonic()
    with open(log, "wb") as errors:
        process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL)
    watch = Watch(process.pid)
    watch.start()
    out = process.stdout.read()
    code = process.wait()
    seconds, most = time.monotonic() - begin, watch.stop()
    if code != 0:
        sys.exit(f"{' '.join(map(str, argv))}: exit code {code}\n{Path(log).read_text()[-2000:]}{out.decode()[-2000:]}")
    return out, seconds, most


# ---- the same bytes ----

def pass_over(sources, target, syncs):
    """Reads all sources from their beginning to their end, writes as much as the first one has."""
    block, inputs = bytearray(BLOCK), [os.open(s, os.O_RDONLY) for s in sources]
    out = os.open(target, os.O_WRONLY | os.O_CREAT, 0o600)
    while n := os.readv(inputs[0], [block]):
        view = memoryview(block)[:n]
        for other in inputs[1:]:
            os.readv(other, [block])
        while view:
            view = view[os.write(out, view):]
    if syncs:
        os.fsync(out)
    for fd in inputs + [out]:
        os.close(fd)


def site_bytes(folder, number):
    """What a round reads and writes for a site: the model comes, is trained and compared, the update goes and is kept."""
    came, trained, update, kept = (folder / f"{name}-{number}" for name in ("came", "trained", "update", "kept"))
    pass_over([folder / "model"], came, False)
    pass_over([came], trained, False)
    pass_over([trained, came], update, False)
    pass_over([update], kept, True)


def round_bytes(folder, sites):
    """Sites at the same time, each a process; then the mean reads what was kept. Seconds, and those of processors."""
    begin, used = time.monotonic(), processor_s()
    workers = [multiprocessing.Process(target=site_bytes, args=(folder, number)) for number in range(sites)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.exitcode != 0:
            sys.exit("the baseline failed")
    kept = [folder / f"kept-{number}" for number in range(sites)]
    mean = multiprocessing.Process(target=pass_over, args=([folder / "model", *kept], folder / "mean", True))
    mean.start()
    mean.join()
    return time.monotonic() - begin, processor_s() - used


def baseline(folder, length, sites):
    folder.mkdir()
    with open(folder / "model", "wb") as model:
        for at in range(0, length, BLOCK):
            model.write(os.urandom(min(BLOCK, length - at)))
        os.fsync(model.fileno())
    seconds = []
    for _ in range(2):  # a site's files of the round before are written over, the coordinator's are new
        for kept in [*folder.glob("kept-*"), *folder.glob("mean")]:
            kept.unlink()
        os.sync()
        seconds.append(round_bytes(folder, sites))
    shutil.rmtree(folder)
    return seconds[-1]


# ---- the federation ----

def restart(args, state, log):
    """Seconds until the coordinator serves again, with its memory by then."""
    begin = time.monotonic()
    with open(log, "wb") as out:
        process = subprocess.Popen([args.bin / "kedge-coordinator", "--state", state], stdout=out, stderr=out)
    watch = Watch(process.pid)
    watch.start()
    while b'"serving"' not in log.read_bytes() and process.poll() is None:
        time.sleep(0.005)
    seconds = time.monotonic() - begin
    if process.poll() is not None:
        sys.exit(f"the coordinator ended: {log.read_text()[-2000:]}")
    watch.look()
    process.send_signal(signal.SIGTERM)
    process.wait()
    return seconds, watch.stop()


class Table:
    def __init__(self, limit):
        self.limit, self.holds = limit, True

    def memory(self, what, most):
        for program, mib in sorted(most.items()):
            if program.startswith("kedge") and not program.startswith(TRAINER[:15]):
                self.holds = self.holds and mib <= self.limit
                print(f"| {what}: RssAnon of {program} | {mib:.1f} MiB | <= {self.limit} |", flush=True)

    def seconds(self, what, seconds, beside=""):
        print(f"| {what} | {seconds:.2f} s | {beside} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--mb", type=int, default=256, help="size of the model's file, 10^6 bytes")
    parser.add_argument("--sites", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where a folder for the run is made, and removed")
    parser.add_argument("--limit", type=int, default=256, help="MiB of anonymous memory of each process")
    parser.add_argument("--no-audit", action="store_true", help="the rounds and the restart alone")
    args = parser.parse_args()
    args.bin = args.bin.resolve()
    scratch = Path(tempfile.mkdtemp(prefix="kedge-large-", dir=args.folder))
    try:
        table = Table(args.limit)
        measure(args, scratch, table)
    finally:
        shutil.rmtree(scratch)
    return 0 if table.holds else 1


def measure(args, scratch, table):
    inputs = args.mb * 10**6 // 4 // CLASSES - 1
    poc, log = scratch / "poc", scratch / "log"
    used = processor_s()
    out, _, most = run([args.bin / "kedge", "poc", poc, "--format", "json", "--rounds", args.rounds, "--tenants", 1,
                        "--sites", args.sites, "--groups", 1, "--model-inputs", inputs, "--model-classes", CLASSES,
                        "--trainer", args.bin / TRAINER], log)
    used = (processor_s() - used) / args.rounds
    rounds = [r["seconds"] for r in json.loads(out)["data"]["grouped"]["history"]]
    length = (inputs + 1) * CLASSES * 4
    print(f"model of {length / 1e6:.0f} MB, {args.sites} sites, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    last = float(statistics.median(map(float, rounds[1:] or rounds)))
    table.memory("rounds", most)
    for site in poc.glob("sites/*/*/work"):  # room for what follows
        shutil.rmtree(site)
    seconds, most = restart(args, poc / "state", log)
    table.seconds("coordinator serves again", seconds)
    table.memory("restart", most)
    if not args.no_audit:
        record = [poc, "--trust", poc / "trust.json"]
        for what, command in (("audit verify", ["audit", "verify", *record]), ("audit replay", ["audit", "replay", *record])):
            _, seconds, most = run([args.bin / "kedge", *command], log)
            table.seconds(what, seconds)
            table.memory(what, most)
    shutil.rmtree(poc)
    same, same_used = baseline(scratch / "same", length, args.sites)
    table.seconds("reading and writing the same bytes", same)
    table.seconds("a round", last, f"{last / same:.2f} of it; <= 1.3")
    table.seconds("reading and writing the same bytes, processors", same_used)
    table.seconds("a round, processors, the start's part included", used, f"{used / same_used:.2f} of it")


if __name__ == "__main__":
    sys.exit(main())
