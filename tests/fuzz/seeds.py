#!/usr/bin/env python3
"""Seeds for the fuzzers: a small federation is run and taken to pieces; what it has none of is written here.

Usage: seeds.py BIN OUT     BIN is the folder with kedge, kedge-coordinator, kedge-client and kedge-train;
OUT/fuzz_NOUN gets the files for each fuzzer. Without them a fuzzer spends its seconds on the first brace.
"""
import base64
import hashlib
import io
import json
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parent.parent / "e2e"))

import packs

SEED_MAX = 8192  # what scripts/test lets a fuzzer make; longer ones would be cut
EACH_MAX = 40

FEATURES = {"train": {"format": "csv", "path": "a.csv", "label": "y"},
            "test": {"format": "npz", "path": "b.npz", "features": "x", "labels": "y", "scale": "0.5"}}
TASKS = [{"id": "7", "op": op, "model": model, "base": "/a", "out": "/b", "data": FEATURES, "epochs": 1, "batch": 10,
          "lr": "0.03", "l2": "0.001", "seed": "123", "evaluate_base": True, "threads": 2}
         for op in ("train", "evaluate")
         for model in ({"preset": "mclr", "inputs": 64, "classes": 10},
                       {"preset": "mlp", "inputs": 64, "hidden": 16, "classes": 10},
                       {"layers": [{"type": "dense", "in": 4, "out": 3}, {"type": "relu"},
                                   {"type": "dense", "in": 3, "out": 2}]},
                       {"input": [1, 9, 9], "loss": "mse",
                        "layers": [{"type": "conv2d", "out": 4, "kernel": 3, "stride": 2, "padding": 1, "activation": "relu"},
                                   {"type": "groupnorm", "groups": 2}, {"type": "maxpool", "kernel": 2}, {"type": "flatten"},
                                   {"type": "dropout", "rate": "0.5"}, {"type": "dense", "out": 3}]},
                       {"input": [6], "layers": [{"type": "embedding", "in": 9, "out": 2}, {"type": "layernorm"},
                                                 {"type": "lstm", "out": 3}, {"type": "gelu"}, {"type": "dense", "out": 9}]},
                       {"preset": "char-lstm"})]
SIMULATIONS = [{"seed": "1", "seeds": 20, "tenants": 3, "sites": 4, "rounds": 10, "groups": 3, "sites_per_round": 0,
                "faults": "all", "signatures": "keyed"}, {"faults": "none", "signatures": "real"}]
LEARNING = [{"preset": "mnist-1000-mclr", "name": "a", "seed": "7", "strategy": "flexcfl", "options": {"refresh": 5}, "shift": "update",
             "rule": "krum", "rule_fraction": 0.2,
             "world": {"data": {"images": "mnist", "partition": "dirichlet", "sites": 20, "alpha": 0.5},
                       "shift": {"kind": "swap-all"}, "attack": {"kind": "alie", "share": 0.1}}},
            {"rounds": 5, "groups": 2, "variants": {"a": {"strategy": "ifca", "mixing": "0.1", "world": {"tenants": 3}}},
             "model": {"preset": "mlp", "inputs": 4, "hidden": 3, "classes": 2},
             "world": {"data": {}, "planted": 2, "devices": [{"share": 1, "available": 0.5}]}}]
CONFIG = {"deployment": "seed.test", "listen": ["tls+tcp://127.0.0.1:7443", "tcp://[::1]:0"], "operators": ["11" * 32],
          "workers": 2, "lease_ms": 600000, "offline_grace_ms": 1000, "settle_ms": 0, "insecure": True,
          "https_listen": "https://0.0.0.0:8443", "https_certificate": "/c", "https_key": "/k", "https_connections": 8}
EXTERNAL = {"model": "external", "grouping": "none", "groups": 1, "initial_model": "ab" * 32, "external": {
    "trainer": "net", "tensors": [{"name": "w", "shape": [10, 64]}, {"name": "b", "shape": []}], "settings": {"a": [1]}}}
SPEC = {"name": "capped", "tenants": ["org-a", "org-b"], "seed": "3", "data": "digits", "rounds": 8, "quorum": 1,
        "model": {"preset": "mlp", "inputs": 64, "hidden": 16, "classes": 10}, "sites_min": 2, "local_epochs": 1,
        "batch": 10, "learning_rate": "0.1", "round_timeout_s": 5, "enrol_within_s": 600, "tenant_share_max": "0.6", "grouping": "flexcfl",
        "groups": 2}
DIGEST = hashlib.sha256(b"signed").hexdigest()
POLICIES = [{"jobs": "*", "data": {"digits": {"train": FEATURES["train"], "test": FEATURES["test"]}}},
            {"jobs": ["a", "b-1"], "trainer": ["kedge-train", "--flag"], "threads": 2, "train_seconds_max": 60,
             "memory_max": 1 << 30, "insecure": True, "data": {}},
            {"energy": {"meters": True, "scope": "share", "power": "cpu", "power_rule": "slowdown=1.1", "power_idle_w": "4.5",
                        "power_max_w": 60, "battery_floor": 20, "hours": ["22:00-06:00"], "joules_per_day": 5000,
                        "charging_only": True, "temperature_max_c": 80, "root": "/", "batch": "fixed"}},
            {"trainers": {"net": {"command": ["python3", "x.py"], "environment": {"A": "b"}, "seconds_max": 9, "network": True}}}]
ENERGY = [{"budget": {"day": 20000, "joules": "12.5", "below_floor": False, "too_hot": False, "jobs": [
    {"job": "j", "joules": "12.5", "rounds": 1, "mean": "12.5", "squares": "0"}], "open": {"job": "j", "reserved": "25"}},
    "tasks": [{"key": "ab" * 32, "quality": "measured", "has_costs": True, "again": False, "start": 0, "runs": 1, "reached": 1,
               "spent": "2", "options": ["1.5", "0.5", "0.3", "1.5"], "noise": [4, "200", "8"], "samples": "300", "sizes": [
                   {"size": 4, "plays": 1, "fails": False, "speed": "0.01", "costs": ["2"], "levels": [[ "100", 1, "2", "8"]]},
                   {"size": 8, "plays": 0, "fails": True, "speed": "0", "costs": [], "levels": []}]}]}]
SITE = {"tenant": "org-a", "site": "site-1", "server": "tls+tcp://127.0.0.1:7443", "server_key": "11" * 32,
        "token_secret": "22" * 32}
STORED = [{"enrolled": True, "results": [], "last_signed": {"job": "a", "kind": 2, "round": 7}},
          {"enrolled": False, "results": [
              {"job": "a", "kind": kind, "round": 7, "group": 1, "update_len": 99, "base": "00" * 32,
               "update": "01" * 32, "envelope": DIGEST, "signed": "signed"} for kind in (1, 3)]}]
ANSWERS = [{"id": "7", "status": "ok", "samples": 1437, "steps": 144, "batch": 10, "train_loss": "0.53",
            "seconds": "0.012", "test_samples": 360, "test_correct": 301, "test_loss": "0.61",
            "engine": "kedge-train 0.1.0 cpu openblas"},
           {"id": "7", "status": "error", "code": "DATA", "message": "a.csv: no such file"},
           {"status": "ok", "seconds": "1", "samples": 1, "steps": 0, "engine": "\u00e9" * 40}]
REQUESTS = [{"verb": "status"}, {"verb": "ledger.position", "tenant": "org-a"}, {"verb": "ledger.receipt", "log": "main", "index": 3}, {"verb": "ledger.receipt", "log": "org-a", "key": "key/admin"}, {"verb": "tenant.add", "tenant": "org-a", "envelope": "{}"},
            {"verb": "tenant.join", "tenant": "org-a", "envelope": "{}"},
            {"verb": "site.token", "tenant": "org-a", "site": "site-1", "ttl_s": 600, "address": "tls+tcp://h:1"},
            {"verb": "site.pending", "tenant": "org-a", "site": "site-1"}, {"verb": "site.list", "tenant": "org-a"},
            {"verb": "site.enroll", "tenant": "org-a", "envelope": "{}"},
            {"verb": "read.token", "tenant": "org-a", "name": "n", "ttl_s": 9}, {"verb": "read.revoke", "name": "n"},
            {"verb": "read.token", "auditor": True, "ttl_s": 9},
            {"verb": "job.submit", "spec": json.dumps(SPEC), "token": "t", "initial": "/m"},
            {"verb": "job.show", "job": "capped", "from_round": 7}, {"verb": "job.halt", "job": "capped"},
            {"verb": "job.events", "job": "capped", "from": 7, "limit": 9},
            {"verb": "job.list", "after": "capped", "limit": 9, "state": "ended", "since_ms": 1, "prefix": "c", "tenant": "acme"}]
DIGEST_KEY = bytes(range(32))
TOKEN_RECORD = {"tenant": "org-a", "site": "site-1", "expiry_s": 1700000000}
HTTP_HEADS = ["GET /main/tile/0/x001/234.p/7 HTTP/1.1\r\nHost: h:1\r\nAuthorization: Bearer kedge-read-1.0a0b\r\n\r\n",
              "HEAD https://h/org-a/checkpoint HTTP/1.0\r\nConnection: x, close\r\n\r\n",
              "GET /a/blob/0 HTTP/1.1\r\nHost: h\r\nRange: bytes=1-9\r\n\r\nGET",
              "GET / HTTP/1.1\r\nhost:h\r\nrange: bytes=-7\r\n\r\n",
              "POST /main/checkpoint HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\n",
              "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\nX: a\r\n b\r\n\r\n"]
READ_TOKEN = {"name": "n", "auditor": 0, "tenant": "a", "created_s": 1, "expiry_s": 2, "revoked_s": 0}
RECORDS = [(3, b"read-token/" + DIGEST_KEY, json.dumps(READ_TOKEN).encode()),
           (0, DIGEST_KEY, json.dumps(TOKEN_RECORD).encode()),
           (0, DIGEST_KEY, json.dumps(TOKEN_RECORD | {"tls_key": "11" * 32, "statement_key": "22" * 32}).encode()),
           (1, b"demo", json.dumps({"job": "demo", "spec": "00" * 32, "initial_model": "01" * 32, "state": 5, "reason": -8,
                                    "created_ms": 1700000000123, "token": ""}).encode()),
           (2, b"demo/00000007/org-a/site-1/2", struct.pack(">i32s32sQ", -301, DIGEST_KEY, DIGEST_KEY, 11)),
           (4, b"seen/org-a/site-1", struct.pack(">Q", 1700000000123)), (5, b"job-token/" + b"11" * 32, b"demo"),
           (6, b"job-move/demo/0000000007", struct.pack(">QQiBBB", 3, 1700000000123, -416, 4, 5, 3) + b"operator alice")]
ADDRESSES = ("tls+tcp://127.0.0.1:7443", "tls+tcp://[::1]:0", "tls+tcp://*:7443", "tcp://localhost:1",
             "ipc:///run/kedge.ipc", "tls+tcp://coordinator.example.org:65535")
TEXTS = ("0.03125", "-1e-300", "1000", "00ff7f", "Zm9vYmFy", "org-a", "1.7976931348623157e308")
TOKEN = ("kedge-enroll-1.AAAAGHRscyt0Y3A6Ly8xMjcuMC4wLjE6NzQ0MxERERERERERERERERERERERERERERERERERERERERERB"
         "GFjbWUGc2l0ZS0xIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIAAAAAa0nSALNpRpA")
LOG_VKEY = "fl.example.org/tenant-a+407d9fc7+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
WITNESS_VKEYS = ("fl.example.org/w1+e7a8d0f0+BNBKsjJ0K7SrOhNovUYV5ObQIkq3GgFrr4UgozLJd4c3",
                 "fl.example.org/w2+731fc1e1+BCBAQONkwQ8r7Jwf5QChzUwkfInWUKAe1+gsq6hnh3wh",
                 "fl.example.org/w3+7411a1db+BGbNYIuSi4jlDg7+qjP68cQ87+BylLC4fp/gq6ajz3Yz")
WITNESS_LINES = "".join(f"witness W{i} {vkey} https://w{i}.example.org\n" for i, vkey in enumerate(WITNESS_VKEYS, 1))
WITNESS_POLICIES = ("quorum none\n", f"# one\nlog {LOG_VKEY} https://log.example.org\n{WITNESS_LINES}quorum W1\n",
                    f"{WITNESS_LINES}group G 2 W1 W2\n\ngroup H all G W3\nquorum H\n",
                    f"\t{WITNESS_LINES}group\tG  any W1\ngroup H 1 G\n  # aside\nquorum G\nlog {LOG_VKEY}\n")
TILES = ("tile/0/000", "tile/0/273.p/112", "tile/63/x001/x234/067.p/255", "tile/entries/x001/000",
         "tile/entries/x009/x223/x372/x036/x854/x775/807.p/255")
BUNDLES = ((b"one", b"two", b"three"), (b"", b"withheld before", b""), (b"e",) * 256, (b"long" * 500,))
TABLE = "x1,x2,y\n0.5,-1e3,0\n\"1\",2,1\r\n3,4,0\n"


def note(size, root=b"\x07" * 32, cosigners=0):
    lines = [f"\u2014 fl.example.org/tenant-a {base64.b64encode(bytes.fromhex('407d9fc7') + b's' * 64).decode()}\n"]
    lines += [f"\u2014 fl.example.org/w{i} {base64.b64encode(bytes(3) + bytes([i]) + bytes(8) + b's' * 64).decode()}\n"
              for i in range(cosigners)]
    return f"fl.example.org/tenant-a\n{size}\n{base64.b64encode(root).decode()}\n\n" + "".join(lines)


def hashes(count):
    return "".join(base64.b64encode(bytes([i]) * 32).decode() + "\n" for i in range(count))


def npy(kind, shape, values):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({','.join(map(str, shape))},), }}"
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values


def npz(compression, **more):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, array in more.items():
            archive.writestr(name + ".npy", array)
        archive.writestr("x.npy", npy("<f4", (2, 3), struct.pack("<6f", *range(6))))
        archive.writestr("y.npy", npy("<i8", (2,), struct.pack("<2q", 0, 1)))
    return out.getvalue()


def idx(kind, shape, values):
    return struct.pack(">BBBB", 0, 0, kind, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + values


WORD = "0x" + "00" * 31 + "ab"
# Key 1234 with the value "v": a leaf; a branch that holds one; an extension to such a branch.
TRIE_ROOTS = ("c58320123476", "d580c482323476" + "80" * 15, "d7820012d3" + "80" * 3 + "c23476" + "80" * 13)
RLPS = ["c88363617483646f67", "c7c0c1c0c3c0c1c0",  # and the transaction of EIP-155
        "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195"
        "fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"]
NODE_RESULTS = ["0x7a69", None, WORD, "0x" + "00" * 128, {"number": "0x5", "hash": WORD},
                {"baseFeePerGas": ["0x5", "0x9"], "reward": [["0x3b9aca00"]]},
                {"transactionHash": "0x" + "00" * 32, "status": "0x1", "blockNumber": "0x2", "blockHash": WORD,
                 "logs": [{"address": "0x" + "00" * 20, "data": "0x" + "00" * 96, "logIndex": "0x0", "topics": [
                     "0xf2dc27bba37cc65c51a40fc6bc7e37111b375bdabc83b6af250201f5c75d7bd7", WORD, WORD, WORD]}]}]


class Seeds:
    def __init__(self, out):
        self.out = out

    def put(self, noun, *contents):
        folder = self.out / f"fuzz_{noun}"
        folder.mkdir(parents=True, exist_ok=True)
        for content in contents:
            data = content.encode() if isinstance(content, str) else bytes(content)
            if 0 < len(data) <= SEED_MAX and len(list(folder.glob("seed-*"))) < EACH_MAX:
                (folder / f"seed-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data)

    def put_json(self, noun, *values):
        self.put(noun, *(json.dumps(value) for value in values))
        self.put("json", *(json.dumps(value) for value in values))


def written(seeds):
    seeds.put_json("task", *TASKS)
    seeds.put_json("sim_spec", *SIMULATIONS)
    seeds.put_json("learn_spec", *LEARNING)
    seeds.put_json("config", CONFIG)
    seeds.put_json("job_spec", SPEC, dict(SPEC, **EXTERNAL))
    seeds.put_json("policy", *POLICIES)
    seeds.put_json("energy_stored", *ENERGY)
    seeds.put_json("site_json", SITE)
    seeds.put_json("stored", *STORED)
    seeds.put_json("metrics", *ANSWERS)
    seeds.put_json("admin", *REQUESTS)
    seeds.put("frontier", *(struct.pack(">Q", size) + bytes(range(32)) * size.bit_count() for size in (0, 1, 6, 255)))
    seeds.put("tile", *TILES)
    seeds.put("tile", *(bytes([len(b) - 1]) + b"".join(struct.pack(">H", len(e)) + e for e in b) for b in BUNDLES))
    seeds.put("records", *(bytes([table, len(key)]) + key + value for table, key, value in RECORDS))
    seeds.put("proxy", b"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\n")
    seeds.put("address", *ADDRESSES)
    seeds.put("http", *("\x07" + head for head in HTTP_HEADS))
    seeds.put("witness_policy", *WITNESS_POLICIES)
    seeds.put("cosignature", note(8), *(note(8, cosigners=ours) + "\0" + note(8, cosigners=theirs)
                                       for ours, theirs in ((0, 2), (3, 1))))
    seeds.put("add_checkpoint", "7\n", *(note(8, cosigners=count).split("\n\n", 1)[1] for count in (1, 2)))
    seeds.put("fork_evidence", *(f"kedge.dev/fork-evidence@v1\n{hashes(count)}\n{note(old)}\n{note(8, bytes(32), 1)}"
                                 for old, count in ((8, 0), (4, 2), (5, 4))))
    seeds.put("rlp", *(bytes.fromhex(rlp) for rlp in RLPS))
    seeds.put("evm_trie", *(b"\x02\x12\x34" + struct.pack(">H", len(node)) + node
                            for node in map(bytes.fromhex, TRIE_ROOTS)))
    seeds.put("evm_state", bytes(1 + 48 + 1 + 3 * 8 + 32 + 26 * 16 + 4 + 2 + 4))
    seeds.put("evm_anchor_step", *(b"".join(hashlib.sha256(bytes([i, j])).digest() for j in range(128)) for i in range(8)))
    seeds.put("evm_rpc", *(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}) for result in NODE_RESULTS))
    seeds.put("text", *TEXTS)
    seeds.put("wire", TOKEN)
    seeds.put("packed", *(struct.pack(">H", 1000) + bytes([w]) + bytes(range(32)) * w for w in (0, 1, 7, 31, 32)))
    seeds.put("packed", struct.pack(">H", 3000) + bytes([3]) + bytes(96) + bytes([0, 2]) + b"\x5a" * 64)
    seeds.put("compact", *(bytes([kind, 0, 5]) + block for kind, block in (
        (0, b"\3\0\0\0\x9c\0\2\x55\0\x2a"), (1, bytes.fromhex("96c30000a0407e4380bffe42")),
        (2, bytes.fromhex("0f0000d4feffff02fe000000017f000000")), (3, bytes.fromhex("0a0003000000009c0255012a")))))
    seeds.put("reading", "262143328850\n", "18446744073709551615", "-1500000\n", "12a", "18446744073709551616")
    # the first two bytes choose options: label, separator, header; decimal comma, missing, target, names, columns left out
    seeds.put("csv", *(options + text for options in ("\0\0", "\2\x10", "\0\x14", "\x10\x22")
                       for text in (TABLE, TABLE.replace(",", ";"))))
    seeds.put("csv", "\0\x10sep=;\na;id;y\n1,5;NA;m\n\"2\";\"q \"\"x\"\"\";b\n", b"\x80\x41id,a,y\r7,1.5,0\r,,\r8,true,1\r",
              "\x0c\x20 1.0\t 2  b\n 3 4 0\n", "\0\x0aa,b,y\n1,?,-2.5\n,2,1e3\n", b"\0\x80\xef\xbb\xbfy,a\n1,2\n")
    texts = {"client": npy("<U2", (2,), "a\0bc".encode("utf-32-le")), "group": npy("|S3", (2,), b"x\0\0y\0\0")}
    seeds.put("npz", npz(zipfile.ZIP_STORED), npz(zipfile.ZIP_DEFLATED), npz(zipfile.ZIP_STORED, **texts))
    # the first byte: csv, npz or leaf in its last two bits, then whether client, label, group, step are named; missing
    steps = {"who": npy("<i8", (2,), struct.pack("<2q", 7, 7)), "step": npy("|u1", (2,), b"\0\1")}
    seeds.put("clients", "\0a,client,y\n1,ann,cat\n2,ann,dog\n", b"\x94who,group,a,step,label,y\nu,g,1,0,3,1\nu,g,,0,4,2\n",
              b"\x01" + npz(zipfile.ZIP_STORED, **texts), b"\x11" + npz(zipfile.ZIP_DEFLATED, **texts),
              b"\x25" + npz(zipfile.ZIP_STORED, **steps),
              '\2{"users": ["a"], "num_samples": [2], "user_data": {"a": {"x": [[1, 2e1], [3, 4]], "y": [0, 1], "z": [{}]}}}',
              '\2{"users": ["b", "a"], "user_data": {"a": {"y": [0, 1], "x": [1, -2]}, "b": {"x": [[3], [5]], "y": [1, 0]}}}')
    seeds.put("idx", idx(8, (2, 2, 2), bytes(range(8))), idx(8, (4,), bytes(4)), idx(13, (2,), struct.pack(">2f", 1, 2)))


def taken_apart(seeds, kedge, folder):
    trust = json.loads((folder / "trust.json").read_text())
    seeds.put_json("trust", trust)
    account = "0x" + 20 * "0b"
    seeds.put_json("trust", dict(trust, anchors={
        "evm": {"chain_id": 1, "contract": account, "account": account},
        "tsa_ca": "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n", "required": True}))
    seeds.put_json("site_json", trust)
    for noun, name in (("policy", "policy"), ("site_json", "site"), ("stored", "memory")):
        seeds.put(noun, *(path.read_bytes() for path in sorted(folder.rglob(f"{name}.json"))))
    notes = [text for text in trust.get("seen", [])]
    notes += [path.read_text() for path in (folder / "state" / "high-water").iterdir() if path.stat().st_size < 4096]
    seeds.put("note", *notes)
    seeds.put("checkpoint", *notes, *(note.split("\n\n")[0] + "\n" for note in notes))
    for path in sorted(folder.rglob("*.json")):
        seeds.put("json", path.read_bytes())
    seeds.put("pem", *(path.read_bytes() for path in sorted(folder.rglob("*.pem"))))
    seeds.put("safetensors", *(path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))))
    blobs = [blob for log in sorted(folder.rglob("ledger.lmdb")) for blob in packs.blobs(log.parent)]
    seeds.put("short_form", *(stored for stored in (blob.stored() for blob in blobs) if stored[:8] == b"KEDGEZLB"))
    for content in (blob.read_bytes() for blob in blobs):
        if content[:1] == b"{":
            seeds.put("job_spec", content)
        else:
            seeds.put("safetensors" if content[8:9] == b"{" else "input_list", content)
    for path in sorted(folder.rglob("data.mdb")):
        for _, stored, envelope in packs.packed(path.parent):
            seeds.put("entry_form", stored)
            seeds.put("dsse", envelope)
            seeds.put("proof", envelope)
            payload = base64.b64decode(json.loads(envelope)["payload"])
            seeds.put("statement", payload)
            predicate = json.loads(payload)["predicate"]
            if predicate.get("scope") == "admin":
                seeds.put_json("admin", {"verb": "tenant.add", "tenant": predicate["tenant"],
                                         "envelope": envelope.decode()})
    for index in ("0", "2"):
        answer = subprocess.run([kedge, "ledger", "prove", "main", index, "--state", folder / "state"],
                                stdout=subprocess.PIPE, check=True)
        (seeds.out / "fuzz_proof" / f"seed-receipt-{index}").write_bytes(answer.stdout)


TSA = """[tsa]\ndefault_tsa=t\n[t]\nserial=serial\nsigner_cert=tsa.pem\nsigner_key=tsa.key\nsigner_digest=sha256
default_policy=1.2.3.4.1\ndigests=sha256\ness_cert_id_alg=sha256\n[x]\nextendedKeyUsage=critical,timeStamping
[req]\ndistinguished_name=dn\n[dn]\n"""


def exported(seeds, kedge, folder):
    """Model signatures of an export, and a time stamp over its checkpoint by an authority that openssl plays."""
    out = folder / "exported"
    subprocess.run([kedge, "audit", "export", folder, "--out", out, "--trust", folder / "trust.json", "--keys",
                    folder / "export-keys"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    for path in sorted(out.rglob("model.sig")):
        bundle = path.read_bytes()
        seeds.put("oms", b"b" + bundle, base64.b64decode(json.loads(bundle)["dsseEnvelope"]["payload"]))
    (folder / "tsa.cnf").write_text(TSA)
    (folder / "serial").write_text("01\n")
    note = next((out / "checkpoints").iterdir())
    for command in (f"req -config tsa.cnf -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tsa.key "
                    f"-out tsa.pem -days 9 -subj /CN=t -extensions x", f"ts -query -data {note} -sha256 -cert -out q",
                    "ts -reply -config tsa.cnf -queryfile q -out reply.tsr"):
        subprocess.run(["openssl", *command.split()], cwd=folder, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
    seeds.put("timestamp", (folder / "reply.tsr").read_bytes())


def main():
    kedge, seeds = Path(sys.argv[1]).resolve() / "kedge", Seeds(Path(sys.argv[2]))
    written(seeds)
    with tempfile.TemporaryDirectory(prefix="kedge-seeds-") as scratch:
        folder = Path(scratch) / "poc"
        subprocess.run([kedge, "poc", folder, "--tenants", "2", "--sites", "2", "--groups", "2", "--rounds", "3"],
                       stdout=subprocess.DEVNULL, check=True)
        taken_apart(seeds, kedge, folder)
        exported(seeds, kedge, folder)


main()
