"""A trainer for an external model that does what MODE says, for the first TIMES tasks (0: for all); behind them it is a good one, which
takes a step of a hundredth. Python's own library is all that it uses.

Usage: bad_trainer.py MODE TIMES
"""
import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path


def read(path):
    data = Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    values = {}
    for name, one in header.items():
        begin, end = one["data_offsets"]
        values[name] = (one["shape"], list(struct.unpack(f"<{(end - begin) // 4}f", data[8 + length + begin:8 + length + end])))
    return values


def write(path, tensors, dtype="F32", metadata=None):
    header, body = {"__metadata__": metadata} if metadata else {}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + 4 * len(values)]}
        body += struct.pack(f"<{len(values)}f", *values)
    text = json.dumps(header).encode()  # spaces and all: any writer's header
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def looks_around():
    """What it could do to its site and to others of this machine; what it could goes to found.json in its own folder."""
    site, own, could = Path.cwd().parent.parent, Path.cwd(), []
    names = [site / name for name in ("policy.json", "trust.json", "site.json", "status.json", "seen-main", "site.lock")]
    names += [p for p in site.glob("*/*") if p.parent.name not in ("trainers", "keys")] + list((site / "trainers").glob("*/*"))
    names += [site / "keys" / "tls.pem", site / "keys" / "site.pem"]
    for path in names:
        if own in path.parents:
            continue
        try:
            with open(path, "ab") as out:  # a space behind JSON changes nothing, should it come to that
                out.write(b" ")
            could.append(f"write {path.name}")
        except OSError:
            pass
        try:
            os.rename(path, str(path) + "-away")
            os.rename(str(path) + "-away", path)
            could.append(f"rename {path.name}")
        except OSError:
            pass
    for path in ("policy.json", "site.json", "trust.json", "keys"):
        try:
            could.append(f"read {path}: {len(os.listdir(site / path) if path == 'keys' else (site / path).read_bytes())}")
        except OSError:
            pass
    try:
        (site / "new").write_text("x")
        could.append("make a file")
    except OSError:
        pass
    for entry in os.listdir("/proc"):
        try:
            words = Path("/proc", entry, "cmdline").read_bytes() if entry.isdigit() else b""
        except OSError:
            continue
        if b"kedge-coordinator" in words or b"--site" in words:
            could.append(f"see {words!r}")
            try:
                os.kill(int(entry), 0)
                could.append(f"signal {entry}")
            except OSError:
                pass
    Path("found.json").write_text(json.dumps(could))


def misbehave(mode, request, tensors):
    """True: what is left goes as with a good one."""
    first = next(iter(tensors))
    if mode == "hang":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # left behind by a trainer"])
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    elif mode == "forks":  # without end, and every child too; without a bound it ends itself, for the machine's sake
        while os.getpid() < 3000:
            try:
                os.fork()
            except OSError:
                time.sleep(2)
        os._exit(1)
    elif mode == "crash":
        print("the last words of the trainer", file=sys.stderr, flush=True)
        os._exit(3)
    elif mode == "segfault":
        os.abort()
    elif mode == "garbage":
        print("epoch 1: loss \x07 0.5 \xff", flush=True)
    elif mode == "flood":
        while True:
            sys.stdout.write("x" * 65536)
    elif mode == "mumble":  # endless lines on standard error, and a good answer
        for i in range(20000):
            print(f"line {i} " + "y" * 400, file=sys.stderr)
        return True
    elif mode == "curious":
        looks_around()
        return True
    elif mode == "refuses":
        print(json.dumps({"id": request["id"], "status": "error", "code": "data", "message": "no data today"}), flush=True)
    elif mode == "stranger":
        print(json.dumps({"id": "0", "status": "ok", "samples": 9, "steps": 1, "seconds": "1"}), flush=True)
    elif mode == "twice":
        write(request["out"], tensors)
        print("\n".join([json.dumps({"id": request["id"], "status": "ok", "samples": 9, "steps": 1, "seconds": "1"})] * 2), flush=True)
    elif mode == "nan-metric":
        print(json.dumps({"id": request["id"], "status": "ok", "samples": 9, "steps": 1, "seconds": "nan"}), flush=True)
    elif mode == "nan":
        tensors[first][1][3] = float("nan")
    elif mode == "infinite":
        tensors[first][1][0] = float("inf")
    elif mode == "far":  # beyond the job's bound
        tensors[first][1][0] = 1e9
    elif mode == "shape":
        tensors[first] = (tensors[first][0][::-1], tensors[first][1])
    elif mode == "names":
        tensors["other"] = tensors.pop(first)
    elif mode == "extra":
        tensors["extra"] = ([1], [0.0])
    elif mode == "fifo":
        os.mkfifo(request["out"])
    elif mode == "link":
        os.symlink("/etc/hostname", request["out"])
    elif mode == "memory":
        hold = [bytearray(1 << 28) for _ in range(64)]
        return len(hold) > 0
    elif mode == "big":
        with open("big", "wb") as out:
            for _ in range(1 << 10):
                out.write(bytes(1 << 20))
    if mode in ("nan", "infinite", "far", "shape", "names", "extra"):
        return "as it is"
    return mode in ("fifo", "link", "silent", "cut", "type")


def answer(request, samples=9):
    reply = {"id": request["id"], "status": "ok", "samples": samples, "steps": 1, "seconds": "0.1", "engine": "a test's trainer"}
    if request["op"] == "evaluate" or request.get("evaluate_base"):
        reply.update(test_samples=9, test_correct=3, test_loss="1.5")
    print(json.dumps(reply), flush=True)


def good(request, tensors, how, step=0.01):
    if how != "as it is":
        tensors = {name: (shape, [v + step for v in values]) for name, (shape, values) in reversed(list(tensors.items()))}
    write(request["out"], tensors, metadata={"format": "pt"})


def main():
    mode, times = sys.argv[1], int(sys.argv[2])
    done = Path("done")  # of this site: a trainer that is started again goes on counting
    for line in sys.stdin:
        request = json.loads(line)
        count = int(done.read_text()) + 1 if done.exists() else 1
        done.write_text(str(count))
        tensors = read(request["base"])
        if request["op"] != "train" or mode == "good" or 0 < times < count:
            if request["op"] == "train":
                good(request, tensors, True)
            answer(request)
            continue
        if mode == "counts-much":  # more samples than any job takes
            good(request, tensors, True, 0.02)  # a file that no other site has
            answer(request, 10_000_000)
            continue
        how = misbehave(mode, request, tensors)
        if how is True and mode in ("mumble", "memory", "curious"):
            good(request, tensors, how)
        elif how == "as it is":
            good(request, tensors, how)
        elif mode == "cut":
            good(request, tensors, how)
            Path(request["out"]).write_bytes(Path(request["out"]).read_bytes()[:-3])
        elif mode == "type":
            write(request["out"], tensors, dtype="I32")
        if how:
            answer(request)


if __name__ == "__main__":
    main()
