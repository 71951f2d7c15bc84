"""What the tests of events share: a federation of poc that is watched, and a subscriber that speaks the protocol by hand."""
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

from field import PATIENCE_S, report, wait_for  # noqa: F401

RUN = 10 ** 10


def processes(name, below):
    """Processes of that name whose command line or environment is about this folder."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and Path("/proc", entry, "comm").read_text().strip() == name[:15]:
                line = Path("/proc", entry, "cmdline").read_bytes()
                if str(below).encode() in line:
                    found.append(int(entry))
        except OSError:
            pass
    return found


class Subscriber(threading.Thread):
    """A subscriber in SP, by hand: over a Unix socket or TCP. Reads until the stream ends."""

    def __init__(self, where):
        super().__init__(daemon=True)
        self.messages = []
        self.is_ipc = not isinstance(where, tuple)
        self.socket = socket.socket(socket.AF_UNIX if self.is_ipc else socket.AF_INET)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(where) if self.is_ipc else where)
        self.socket.sendall(b"\0SP\0\0\x21\0\0")
        self.hello = self.take(8)
        self.start()

    def take(self, count):
        got = b""
        while len(got) < count:
            more = self.socket.recv(count - len(got))
            if not more:
                raise EOFError
            got += more
        return got

    def run(self):
        try:
            while True:
                if self.is_ipc and self.take(1) != b"\1":
                    raise ValueError("no message of SP")
                topic, _, line = self.take(struct.unpack(">Q", self.take(8))[0]).partition(b" ")
                self.messages.append((topic.decode(), json.loads(line)))
        except (EOFError, OSError):
            pass

    def events(self):
        return [line for _, line in list(self.messages) if "seq" in line]


class Follower(threading.Thread):
    """kedge events --follow, as it prints."""

    def __init__(self, world, *options):
        super().__init__(daemon=True)
        self.lines = []
        self.errors = open(world.scratch / "follow.err", "ab")
        self.process = subprocess.Popen([world.kedge, "events", "--state", world.state, "--follow", *options],
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd="/")
        self.start()

    def run(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(PATIENCE_S)
        self.join(PATIENCE_S)
        return code


class World:
    def __init__(self, bin_dir, scratch):
        self.bin, self.scratch = bin_dir, scratch
        self.kedge = bin_dir / "kedge"
        self.dir = scratch / "federation"
        self.state = self.dir / "state"
        self.started = []

    def run(self, *argv):
        return subprocess.run([self.kedge, *map(str, argv)], text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def events(self, *options):
        answer = self.run("events", "--state", self.state, *options)
        return answer.returncode, [json.loads(line) for line in answer.stdout.splitlines()]

    def start(self, *argv, log):
        process = subprocess.Popen([str(a) for a in argv], stdout=open(log, "ab"), stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL)
        self.started.append(process)
        return process

    def companion(self):
        found = processes("kedge-events", self.state)
        return found[0] if len(found) == 1 else None

    def coordinator(self):
        found = processes("kedge-coordinator", self.state)
        return found[0] if len(found) == 1 else None

    def stop_all(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
