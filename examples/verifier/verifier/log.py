"""A log: Merkle tree (RFC 6962), signed notes and checkpoints (C2SP), entries that are DSSE envelopes of statements."""
import base64
import functools
import hashlib
import json
import re
import struct
import zlib

from . import ciphers
from .statements import check_form
from .store import Lmdb, need, read_json

TYPE = "application/vnd.in-toto+json"

def leaf_hash(entry):
    return hashlib.sha256(b"\0" + entry).digest()

def parent(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()

class Tree:
    """Roots of all sizes that are asked for, from the leaf hashes."""
    def __init__(self, leaves):
        self.levels = [leaves]
        while len(self.levels[-1]) > 1:
            row = self.levels[-1]
            self.levels.append([parent(row[i], row[i + 1]) for i in range(0, len(row) - 1, 2)])

    def root(self, size):
        """Of the first `size` leaves: the peaks of its binary digits, folded from the right."""
        total, at = None, size
        for level in range(size.bit_length()):
            if size >> level & 1:
                at -= 1 << level
                peak = self.levels[level][at >> level]
                total = peak if total is None else parent(peak, total)
        return hashlib.sha256(b"").digest() if total is None else total

class Vkey:
    """name+hash+base64(type, key) (C2SP signed-note)."""
    def __init__(self, text):
        self.name, identity, encoded = text.split("+", 2)
        raw = base64.b64decode(encoded, validate=True)
        need(len(raw) == 33 and raw[0] == 1, "a log's key is not of type 1:", text)
        self.key = raw[1:]
        self.id = hashlib.sha256(self.name.encode() + b"\n" + raw).digest()[:4]
        need(self.id.hex() == identity, "a vkey whose hash is another:", text)

def read_checkpoint(note, vkey):
    """(size, root) of a checkpoint that the log's key signed; its origin is the key's name."""
    text, _, lines = note.partition("\n\n")
    rows = text.split("\n")
    need(len(rows) >= 3 and rows[0] == vkey.name, "a checkpoint of", rows[0], "where one of", vkey.name, "is expected")
    signatures = [base64.b64decode(line.rsplit(" ", 1)[1], validate=True) for line in lines.split("\n") if line.startswith(f"\u2014 {vkey.name} ")]
    own = [raw[4:] for raw in signatures if raw[:4] == vkey.id]
    need(own, "checkpoint of", vkey.name, "is not signed by its log")
    need(all(verify(vkey.key, text.encode() + b"\n", raw) for raw in own), "checkpoint of", vkey.name, "has a bad signature")
    need(rows[1].isdigit() and str(int(rows[1])) == rows[1], "checkpoint of", vkey.name, "has no size")
    return int(rows[1]), base64.b64decode(rows[2], validate=True)

verify = functools.cache(ciphers.ed25519_verify)

def spell(payload, signatures):
    return json.dumps({"payload": base64.b64encode(payload).decode(), "payloadType": TYPE, "signatures": [
        {"keyid": k, "sig": base64.b64encode(s).decode()} for k, s in signatures]}, separators=(",", ":")).encode()

def note_of(origin, size, parts):
    """The signed checkpoint of root (32), key id (4) and signature (64)."""
    return f"{origin}\n{size}\n{base64.b64encode(parts[:32]).decode()}\n\n\u2014 {origin} {base64.b64encode(parts[32:]).decode()}\n".encode()

def unpack(stored, words):
    """The entry that lies so in the table: as it is, a packed envelope (1; 2: its digests apart), or a tenant's checkpoint (3)."""
    if stored[:1] not in (b"\1", b"\2", b"\3"):
        return stored[stored[:1] == b"\0":]
    need(zlib.crc32(stored[5:]) == int.from_bytes(stored[1:5], "big"), "a packed entry has another checksum")
    if stored[0] == 3:
        return stored[5:37] + note_of(stored[145:].decode(), int.from_bytes(stored[137:145], "big"), stored[37:137])
    at = 6 + 96 * stored[5]
    digests = stored[at + 3:at + 3 + 32 * stored[at + 2]].hex().encode() if stored[0] == 2 else b""
    text = zlib.decompressobj(-12, zdict=words).decompress(stored[at + 2 + (stored[0] == 2) + len(digests) // 2:], 65536)
    payload = re.sub(rb"[\1-\37]", lambda byte: digests[64 * byte[0][0] - 64:64 * byte[0][0]], text)
    return spell(payload, [(stored[i:i + 32].hex(), stored[i + 32:i + 96]) for i in range(6, at, 96)])

class Entry:
    """An entry of a log: a statement, or (main chain) a tenant's checkpoint after a salt of 32 bytes."""
    def __init__(self, log, index, raw):
        self.log, self.index, self.raw, self.hash = log, index, raw, leaf_hash(raw)
        self.where, self.note = f"{log.name}[{index}]", None
        if raw[:1] != b"{":
            need(len(raw) > 32 and raw[0] & 0x80, self.where, "is neither a statement nor a checkpoint")
            self.kind, self.note, self.body, self.subject = "checkpoint", raw[32:].decode(), {}, ""
            return
        envelope = read_json(raw, self.where)
        need(list(envelope) == ["payload", "payloadType", "signatures"], self.where, "is no envelope")
        need(envelope["payloadType"] == TYPE, self.where, "has payload type", envelope["payloadType"])
        self.payload = base64.b64decode(envelope["payload"], validate=True)
        self.signatures = [(s["keyid"], base64.b64decode(s["sig"], validate=True)) for s in envelope["signatures"]]
        need(self.signatures and self.signatures == sorted(dict(self.signatures).items()), self.where, "has signatures out of order")
        need(spell(self.payload, self.signatures) == raw, self.where, "is not in the one spelling of an envelope")
        self.kind, self.subject, self.body = check_form(read_json(self.payload, self.where), self.where)

    def signed_by(self, *keys):
        """Exactly these keys (raw bytes) signed."""
        pae = b"DSSEv1 %d %s %d %s" % (len(TYPE), TYPE.encode(), len(self.payload), self.payload)
        by = {hashlib.sha256(key).hexdigest(): key for key in keys}
        need({k for k, _ in self.signatures} == set(by), self.where, self.kind, "is signed by other keys")
        for keyid, signature in self.signatures:
            need(verify(by[keyid], pae, signature), self.where, self.kind, "has a bad signature")

class Log:
    """All entries of one log, held against its tree and its newest checkpoint."""
    def __init__(self, name, folder, vkey):
        self.name, self.vkey = name, vkey
        store = Lmdb(folder)
        meta, table = store.table("meta"), store.table("entry")
        heads = {key: note_of(vkey.name, int.from_bytes(key, "big"), note[1:]) if note[:1] == b"\1" else note for key, note in store.table("head").items()}
        need(meta.get(b"schema") in [b"kedge ledger %d" % n for n in (2, 3, 4)], name, "has ledger schema", meta.get(b"schema"))
        need(meta[b"origin"] == vkey.name.encode() and meta[b"key"] == vkey.key, name, "is of another origin or key")
        need(b"copy" not in meta, name, "is a copy that withholds entries; this program reads whole logs")
        self.raw = [unpack(table[struct.pack(">Q", i)], meta.get(b"words", b"")) for i in range(len(table))]
        self.tree = Tree([leaf_hash(raw) for raw in self.raw])
        need(heads, name, "has no checkpoint")
        self.size, root = read_checkpoint(heads[max(heads)].decode(), vkey)
        need(self.size == len(self.raw), name, "has", len(self.raw), "entries, its newest checkpoint signs", self.size)
        need(self.tree.root(self.size) == root, name, "is not the log that its newest checkpoint signs")
        for key, note in heads.items():
            size, root = read_checkpoint(note.decode(), vkey)
            need(key == struct.pack(">Q", size) and self.tree.root(size) == root, name, "contradicts a checkpoint of", size)
        self.entries = [Entry(self, i, raw) for i, raw in enumerate(self.raw)]
        self.keys = {key.decode(): struct.unpack_from(">Q", value)[0] for key, value in store.table("idem").items()}
        need(len(self.keys) == len(self.entries), name, "has", len(self.keys), "idempotency keys")

    def find(self, key):
        """The entry with that idempotency key, or None."""
        return self.entries[self.keys[key]] if key in self.keys else None

    def covers(self, note, where):
        """Size of a checkpoint of this log, which must be one of its roots."""
        size, root = read_checkpoint(note, self.vkey)
        need(size <= self.size and self.tree.root(size) == root, where, "has a checkpoint of another", self.name)
        return size
