#!/usr/bin/env python3
"""What forty tenants notice of ten greedy ones, on one coordinator, as a real process over TLS: each greedy tenant has fifteen sites
that keep sixty polls each unanswered (900 at a time), each regular one asks ten things, one after the other. Printed is how long a
regular request takes: alone, and beside the greedy ones; the mean of each tenant (its median and the slowest tenant's), of every
folder of programs that is given, so that two builds are compared in one run.

    bench/fair_tenants.py BIN… [--greedy N] [--regular N] [--sites N] [--runs N]
"""
import argparse
import base64
import json
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "e2e"))
import spy  # noqa: E402

PATIENCE_S, OUTSTANDING, EACH, WARM_S = 120, 60, 10, 0.3
POLL, ADMIN = 0x03, 0x07


class World:
    """A coordinator with tenants, whose sites' keys are ours: they speak for themselves."""

    def __init__(self, bin_dir, greedy, regular, sites):
        self.bin, self.scratch = bin_dir, Path(tempfile.mkdtemp(prefix="kedge-fair-"))
        self.state = self.scratch / "state"
        self.kedge("init", self.state, "--listen", "tls+tcp://127.0.0.1:0")
        self.log = open(self.scratch / "log", "ab")
        self.process = subprocess.Popen([self.bin / "kedge-coordinator", "--state", self.state], stdout=self.log, stderr=self.log)
        address = self.ask("status")["listen"][0]
        self.server = ("127.0.0.1", int(address.rsplit(":", 1)[1]))
        with ThreadPoolExecutor(4) as pool:
            self.greedy = list(pool.map(lambda i: self.add(f"greedy-{i}", sites), range(greedy)))
            self.regular = list(pool.map(lambda i: self.add(f"regular-{i}", 0), range(regular)))

    def kedge(self, *argv):
        done = subprocess.run([self.bin / "kedge", *map(str, argv)], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)
        if done.returncode != 0:
            sys.exit(f"kedge {' '.join(map(str, argv))}: {done.stderr.decode()}")
        return done.stdout

    def ask(self, *argv):
        return json.loads(self.kedge(*argv, "--state", self.state, "--format", "json"))["data"]

    def add(self, name, sites):
        """A tenant; the key of its admin and those of its sites."""
        admin = self.scratch / f"{name}.pem"
        self.ask("tenant", "add", name, "--admin-key", admin)
        return admin, [enrol_site(self.bin, self.ask, self.scratch, self.server, name, admin, f"s{i}")
                       for i in range(sites)]

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.scratch)


def make_key(scratch, name):
    path = scratch / f"{name}.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path], check=True, capture_output=True)
    path.chmod(0o600)
    return path


def enrol_site(bin_dir, ask, scratch, server, tenant, admin, site):
    """A site that is only keys: its TLS key's file. `ask` runs kedge as the operator."""
    tls, statement = make_key(scratch, f"{tenant}-{site}-tls"), make_key(scratch, f"{tenant}-{site}-st")
    told = subprocess.run([bin_dir / "kedge", "key", "public", statement, "--format", "json"], check=True, capture_output=True)
    token = scratch / f"{tenant}-{site}.token"
    ask("site", "enroll", tenant, site, "--out", token)
    peer = spy.Peer(spy.dial(server, tls, scratch))
    peer.ask(*spy.enroll(token_secret(token.read_text()), tenant, site, bytes.fromhex(json.loads(told.stdout)["data"]["key"])))
    peer.socket.close()
    ask("site", "approve", tenant, site, "--admin-key", admin)
    return tls


def token_secret(text):
    """The secret stands before the time of expiry and the checksum (common/wire/token.h)."""
    body = text.strip().rsplit(".", 1)[-1]
    return base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))[-44:-12]


def be_greedy(peer, stop):
    """Keeps so many polls unanswered that wait for nothing."""
    question = (POLL, struct.pack(">IIQB", 0, 0, 0, 0))
    while not stop.is_set():
        try:
            peer.ask_at_once([question] * OUTSTANDING)
        except (OSError, ConnectionError):
            return


def ask_in_turn(peer):
    """The mean of what its requests take, in ms."""
    text = b'{"verb":"job.show","job":"none"}'
    taken = []
    for _ in range(EACH):
        begin = time.monotonic()
        peer.ask(ADMIN, struct.pack(">I", len(text)) + text)
        taken.append(time.monotonic() - begin)
    return 1000 * statistics.mean(taken)


def measure(world, beside):
    """Means of the regular tenants, in ms."""
    stop, threads = threading.Event(), []
    peers = [spy.Peer(spy.dial(world.server, admin, world.scratch)) for admin, _ in world.regular]
    if beside:
        greedy = [spy.Peer(spy.dial(world.server, key, world.scratch)) for _, keys in world.greedy for key in keys]
        threads = [threading.Thread(target=be_greedy, args=(peer, stop), daemon=True) for peer in greedy]
        for thread in threads:
            thread.start()
        time.sleep(WARM_S)
    with ThreadPoolExecutor(len(peers)) as pool:
        means = list(pool.map(ask_in_turn, peers))
    stop.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    return means


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("bin", nargs="+", type=lambda text: Path(text).resolve())
    arguments.add_argument("--greedy", type=int, default=10)
    arguments.add_argument("--regular", type=int, default=40)
    arguments.add_argument("--sites", type=int, default=15)
    arguments.add_argument("--runs", type=int, default=3)
    said = arguments.parse_args()
    worlds = [World(path, said.greedy, said.regular, said.sites) for path in said.bin]
    try:
        print(f"{'programs':40} {'':8} {'median, ms':>10} {'slowest, ms':>11}")
        for _ in range(said.runs):
            for world in worlds:
                for beside in (False, True):
                    means = measure(world, beside)
                    print(f"{str(world.bin)[-40:]:40} {'beside' if beside else 'alone':8} {statistics.median(means):10.2f} "
                          f"{max(means):11.2f}", flush=True)
                    time.sleep(5)  # until all have their burst again
    finally:
        for world in worlds:
            world.close()


if __name__ == "__main__":
    main()
