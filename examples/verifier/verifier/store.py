"""The files of a record: LMDB's tables, blobs plain and encrypted, keys, safetensors. Nothing is written."""
import base64
import hashlib
import json
import math
import os
import struct
import zlib

from . import ciphers

class Bad(Exception):
    """Something in the record is not as the page says."""

def need(condition, *words):
    if not condition:
        raise Bad(" ".join(str(word) for word in words))

def read_json(data, what):
    def pairs(items):
        need(len({key for key, _ in items}) == len(items), what, "has a key twice")
        return dict(items)

    try:
        value = json.loads(data, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        raise Bad(f"{what} is no JSON: {error}") from None
    need(isinstance(value, dict), what, "is no JSON object")
    return value

WORDS = (b'{"0.weight":{"dtype":"F32","shape":[10,64],"data_offsets":[0,2560]},"0.bias":{"dtype":"I32","shape":[10],"data_offsets":[2560,2600]}}   '
         b'{"site":"site-1","use":"selected","group":0,"leaf":"candidate"refused","weight":"0","reason":""}\n'
         b'{"site":"site-1","use":"aggregated","group":0,"leaf":1,"leaf_hash":"","update":"","weight":"1","reason":""}\n')

def lengthen(how, size, stream, what):
    """Content of `size` bytes from its short form."""
    need(how in (1, 2, 3) and 0 < size <= 16384, what, "has a short form of another kind")
    reader = zlib.decompressobj(-12, zdict=WORDS)
    out = reader.decompress(stream, size + 1)
    need(reader.eof and not reader.unused_data and len(out) == size, what, "has another length than its short form says")
    start = size if how == 1 else 8 + int.from_bytes(out[:8], "little")
    need(start <= size and (size - start) % 4 == 0, what, "is a short form of no tensors")
    count, turn = (size - start) // 4, 2**32 - 1 if how == 2 else 2**31
    values = [int.from_bytes(out[start + i::count], "big") for i in range(count)]
    return out[:start] + struct.pack(f"<{count}I", *(v >> 1 ^ (v & 1) * turn for v in values))

class Lmdb:
    BRANCH, LEAF, BIG, SUB = 1, 2, 1, 2

    def __init__(self, folder):
        self.path = os.path.join(folder, "data.mdb")
        try:
            with open(self.path, "rb") as f:
                self.data = f.read()
        except OSError as error:
            raise Bad(f"{self.path}: {error.strerror}") from None
        need(len(self.data) >= 8192, self.path, "is too short for a store")
        metas = [self.meta(at) for at in (0, self.page_size())]
        root = max(metas, key=lambda m: m[1])[0]
        self.roots = {key: struct.unpack_from("<Q", value, 40)[0] for key, value in self.items(root)}

    def page_size(self):
        size = struct.unpack_from("<I", self.data, 16 + 24)[0]
        need(size in (4096, 8192, 16384, 32768, 65536), self.path, "has pages of", size, "bytes")
        return size

    def meta(self, at):
        """(root of the table of tables, transaction) of a meta page."""
        magic, version = struct.unpack_from("<II", self.data, at + 16)
        need(magic == 0xBEEFC0DE and version == 1, self.path, "is no LMDB store of data format 1")
        return struct.unpack_from("<Q", self.data, at + 16 + 24 + 48 + 40)[0], struct.unpack_from("<Q", self.data, at + 16 + 24 + 96 + 8)[0]

    def page(self, number):
        at = number * self.page_size()
        need(at + self.page_size() <= len(self.data), self.path, "has no page", number)
        return at

    def items(self, root):
        """(key, value) of a tree in order."""
        if root == 2**64 - 1:
            return
        seen, pending = set(), [root]
        while pending:
            number = pending.pop()
            need(number not in seen, self.path, "has page", number, "twice in a tree")
            seen.add(number)
            at = self.page(number)
            flags, lower = struct.unpack_from("<HH", self.data, at + 10)
            need(16 <= lower <= self.page_size() and flags & (self.BRANCH | self.LEAF), self.path, "page", number)
            nodes = [at + struct.unpack_from("<H", self.data, at + 16 + 2 * i)[0] for i in range((lower - 16) // 2)]
            if flags & self.BRANCH:
                for node in reversed(nodes):
                    low, high, top = struct.unpack_from("<HHH", self.data, node)
                    pending.append(low | high << 16 | top << 32)
                continue
            for node in nodes:
                low, high, flags, size = struct.unpack_from("<HHHH", self.data, node)
                key, start, length = self.data[node + 8:node + 8 + size], node + 8 + size, low | high << 16
                if flags & self.BIG:
                    start = self.page(struct.unpack_from("<Q", self.data, start)[0]) + 16
                need(start + length <= len(self.data), self.path, "has a record beyond its end")
                yield key, self.data[start:start + length]

    def table(self, name):
        return dict(self.items(self.roots.get(name.encode(), 2**64 - 1)))

class Blobs:
    """A folder of content-addressed files and of packs of small ones, encrypted ones opened with the keys of another folder."""
    def __init__(self, folder, keys):
        self.folder, self.keys, self.seen, self.packed = folder, {}, set(), {}
        numbers = [name[5:] for name in os.listdir(folder) if name.startswith("pack-")] if os.path.isdir(folder) else []
        for number in sorted(numbers, key=lambda text: int(text) if text.isdecimal() else 0):
            need(number.isdecimal() and number == str(int(number)), folder, "has a file pack-" + number)
            self.take_pack(os.path.join(folder, "pack-" + number))
        for name in sorted(os.listdir(keys)) if keys and os.path.isdir(keys) else []:
            if name.endswith(".pem"):
                with open(os.path.join(keys, name), encoding="ascii") as f:
                    lines = [line.strip() for line in f]
                need(lines[0] == "-----BEGIN PRIVATE KEY-----", keys, name, "is sealed or no private key")
                seed = base64.b64decode("".join(lines[1:lines.index("-----END PRIVATE KEY-----")]))[-32:]
                self.keys[hashlib.sha256(ciphers.ed25519_public(seed)).digest()[:16]] = seed

    def take_pack(self, path):
        """Records begin at multiples of 64 bytes; behind the last one there may be what an interrupted write left."""
        with open(path, "rb") as f:
            data = f.read()
        at, end = 0, 0
        while at + 64 <= len(data):
            head, size = data[at:at + 64], struct.unpack_from(">I", data, at + 8)[0]
            whole = (size + 127) // 64 * 64
            if (head[:5] != b"KPAK\x01" or head[5] not in (1, 2) or at + whole > len(data) or head[56:] != hashlib.sha256(head[:56]).digest()[:8]):
                at += 64
                continue
            need(at == end, path, "has bytes between its records at", end)
            here = data[at + 64:at + whole]
            need(not any(here[size if head[5] == 1 else 0:]), path, "has other bytes than zeros at", at)
            if head[5] == 1:
                self.packed[head[16:48].hex()] = here[:size]  # of two the later one
            at = end = at + whole

    def path(self, digest):
        return os.path.join(self.folder, digest[:2], digest[2:])

    def names(self):
        yield from self.packed
        for first in sorted(os.listdir(self.folder)) if os.path.isdir(self.folder) else []:
            for rest in sorted(os.listdir(os.path.join(self.folder, first))) if not first.startswith("pack-") else []:
                yield first + rest

    def exists(self, digest):
        return digest in self.packed or os.path.exists(self.path(digest))

    def read(self, digest):
        self.seen.add(digest)
        try:
            data = self.packed.get(digest)
            if data is None:
                with open(self.path(digest), "rb") as f:
                    data = f.read()
        except OSError as error:
            raise Bad(f"blob {digest}: {error.strerror}") from None
        if data.startswith(b"KEDGEBLB"):
            data = self.open(digest, data)
        elif data.startswith(b"KEDGEZLB"):
            need(zlib.crc32(data[8:12] + data[16:]) == int.from_bytes(data[12:16], "big"), "blob", digest, "has another checksum")
            data = lengthen(data[8], int.from_bytes(data[9:12], "big"), data[16:], digest)
        need(hashlib.sha256(data).hexdigest() == digest, "blob", digest, "has other content")
        return data

    def open(self, digest, data):
        head, at, out, number = data[:64], 64, b"", 0
        need(len(head) == 64 and head[8] in (1, 2) and head[10] == 16 and head[9] in (1, 2), "blob", digest, "has a head of another version")
        seed = self.keys.get(head[16:32])
        need(seed is not None, "blob", digest, "is encrypted, and its key is not here")
        key = hashlib.blake2b(b"kedge/blob-file/v1" + head + bytes.fromhex(digest), key=seed, digest_size=32).digest()
        nonce, unseal = (12, ciphers.gcm_open) if head[9] == 1 else (24, ciphers.xchacha_open)
        while True:
            chunk = data[at:at + nonce + 65536 + 16]
            at += len(chunk)
            last = at == len(data)
            plain = unseal(key, chunk[:nonce], struct.pack(">QB", number, last), chunk[nonce:])
            need(len(chunk) >= nonce + 16 and plain is not None, "blob", digest, "chunk", number, "does not open")
            out, number = out + plain, number + 1
            if last:
                return out if head[8] == 1 else lengthen(head[11], int.from_bytes(head[12:16], "big"), out, digest)

def tensors_read(data, dtype, layout, what):
    """Values of a safetensors file, one after the other, which has exactly this layout and canonical header."""
    header, count = tensors_header(dtype, layout), sum(math.prod(dims) for _, dims in layout)
    need(data.startswith(header) and len(data) == len(header) + 4 * count, what, "has another layout")
    return struct.unpack_from("<%d%s" % (count, "f" if dtype == "F32" else "i"), data, len(header))

def tensors_write(dtype, layout, values):
    return tensors_header(dtype, layout) + struct.pack("<%d%s" % (len(values), "f" if dtype == "F32" else "i"), *values)

def tensors_header(dtype, layout):
    at, parts = 0, []
    for name, dims in layout:
        end, shape = at + 4 * math.prod(dims), ",".join(map(str, dims))
        parts.append(f'"{name}":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{at},{end}]}}')
        at = end
    text = ("{" + ",".join(parts) + "}").encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text
