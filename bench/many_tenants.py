#!/usr/bin/env python3
"""What idle tenants cost a coordinator, as a real process: anonymous memory, threads, open files and address space, each as the
difference to a coordinator without tenants and divided by their number; once when they were just added and have been left alone,
and once after a restart. Printed with it: how long a start takes, from the program's start until it serves, after an orderly end
and after SIGKILL, and the orderly end.

    bench/many_tenants.py BIN [--tenants N] [--starts N]
"""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PATIENCE_S, IDLE_S = 600, 3
SERVING = b'"serving"'


class Coordinator:
    def __init__(self, bin_dir, scratch):
        self.bin, self.state, self.log = bin_dir, scratch / "state", scratch / "log"
        self.process = None

    def start(self):
        """Seconds until it serves."""
        begin, at = time.monotonic(), self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.bin / "kedge-coordinator", "--state", self.state], stdout=log, stderr=log)
        while SERVING not in self.log.read_bytes()[at:]:
            if self.process.poll() is not None or time.monotonic() - begin > PATIENCE_S:
                sys.exit(f"the coordinator does not serve; its log:\n{self.log.read_bytes()[at:].decode()}")
            time.sleep(0.005)
        return time.monotonic() - begin

    def stop(self, how=signal.SIGTERM):
        begin = time.monotonic()
        self.process.send_signal(how)
        self.process.wait()
        return time.monotonic() - begin

    def look(self):
        """Anonymous memory and address space in kB, threads, open files."""
        proc = Path("/proc") / str(self.process.pid)
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
        return {"anonymous_kb": int(status["RssAnon"].split()[0]), "address_space_kb": int(status["VmSize"].split()[0]),
                "threads": int(status["Threads"]), "files": len(os.listdir(proc / "fd"))}

    def add(self, number):
        name = f"t-{number:05d}"
        key = self.state.parent / f"{name}.pem"
        done = subprocess.run([self.bin / "kedge", "tenant", "add", name, "--admin-key", key, "--state", self.state],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S)
        if done.returncode != 0:
            sys.exit(f"tenant {number} was refused: {done.stdout.decode()}")


def tell(when, empty, full, tenants):
    each = {key: (full[key] - empty[key]) / tenants for key in full}
    print(f"{when}: of each tenant {each['anonymous_kb']:.1f} kB of anonymous memory, {each['threads']:.2f} threads, "
          f"{each['files']:.2f} open files, {each['address_space_kb'] / 1024:.1f} MiB of addresses; the process has "
          f"{full['anonymous_kb'] / 1024:.0f} MiB, {full['threads']} threads, {full['files']} files")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--tenants", type=int, default=2000)
    parser.add_argument("--starts", type=int, default=5)
    args = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="kedge-tenants-"))
    c = Coordinator(args.bin.resolve(), scratch)
    subprocess.run([c.bin / "kedge", "init", c.state, "--deployment", "bench", "--listen", "tls+tcp://127.0.0.1:0"], check=True,
                   stdout=subprocess.DEVNULL)
    try:
        c.start()
        time.sleep(IDLE_S)
        empty = c.look()
        begin = time.monotonic()
        with ThreadPoolExecutor(os.cpu_count()) as several:
            list(several.map(c.add, range(args.tenants)))
        took = time.monotonic() - begin
        time.sleep(IDLE_S)
        print(f"{args.tenants} tenants, each added by a command of its own: {took:.1f} s")
        tell("added and left alone", empty, c.look(), args.tenants)
        for after, how in (("an orderly end", signal.SIGTERM), ("SIGKILL", signal.SIGKILL)):
            starts, ends = [], []
            for _ in range(args.starts):
                ends.append(c.stop(how))
                starts.append(c.start())
            time.sleep(IDLE_S)
            tell(f"after a restart after {after}", empty, c.look(), args.tenants)
            print(f"until it serves after {after}: median {statistics.median(starts):.2f} s "
                  f"({', '.join(f'{s:.2f}' for s in starts)}); end: median {statistics.median(ends):.2f} s")
    finally:
        if c.process and c.process.poll() is None:
            c.stop()
        shutil.rmtree(scratch, ignore_errors=True)


main()
