"""The blobs of a log's folder, be they files of their own or records of packs (chain/store/blob/packs.h), and the statements of
its store, packed ones too (chain/store/entry_form.h)."""

import hashlib
import os
import pathlib
import re
import struct
import sys
import zlib

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "verifier"))
from verifier.log import unpack  # noqa: E402
from verifier.store import Lmdb, lengthen  # noqa: E402

HEAD = 64


class Blob:
    """One blob: `path` is its file, or the pack in which its bytes are at `offset`."""

    def __init__(self, path, digest, offset, size):
        self.path, self.digest, self.offset, self.size = path, digest, offset, size
        self.packed = path.name.startswith("pack-")

    def read_bytes(self):
        """The content, or what it is encrypted as."""
        data = self.stored()
        return lengthen(data[8], int.from_bytes(data[9:12], "big"), data[16:], self.digest) if data[:8] == b"KEDGEZLB" else data

    def stored(self):
        """The bytes as they lie there."""
        with open(self.path, "rb") as f:
            f.seek(self.offset)
            return f.read(self.size)

    def write_bytes(self, data):
        """Puts as many bytes in the place of its own."""
        assert len(data) == self.size, (len(data), self.size)
        with open(self.path, "r+b") as f:
            f.seek(self.offset)
            f.write(data)

    def unlink(self):
        """What the coordinator would do, without its durability."""
        if not self.packed:
            self.path.unlink()
            return
        head = b"KPAK\x01\x02\0\0" + struct.pack(">II", self.size, 0) + bytes(40)
        with open(self.path, "r+b") as f:
            f.seek(self.offset - HEAD)
            f.write(head + hashlib.sha256(head).digest()[:8] + bytes(self.size))


def records(path):
    """(digest, offset, length, state) of a pack's records."""
    data, at = path.read_bytes(), 0
    while at + HEAD <= len(data):
        head = data[at:at + HEAD]
        size = struct.unpack_from(">I", head, 8)[0]
        if head[:5] != b"KPAK\x01" or head[56:] != hashlib.sha256(head[:56]).digest()[:8] or at + HEAD + size > len(data):
            at += HEAD
            continue
        yield head[16:48].hex(), at + HEAD, size, head[5]
        at += (size + 2 * HEAD - 1) // HEAD * HEAD


def blobs(folder):
    """All blobs below DIR/blobs, by digest; of records with one digest the last one."""
    folder, found = pathlib.Path(folder), {}
    for path in sorted(folder.glob("blobs/??/*")):
        try:
            found[path.parent.name + path.name] = Blob(path, path.parent.name + path.name, 0, path.stat().st_size)
        except FileNotFoundError:
            pass  # removed meanwhile
    packs = [name for name in os.listdir(folder / "blobs") if name.startswith("pack-")] if (folder / "blobs").is_dir() else []
    for name in sorted(packs, key=lambda name: int(name[5:])):
        path = folder / "blobs" / name
        for digest, offset, size, state in records(path):
            if state == 1:
                found[digest] = Blob(path, digest, offset, size)
    return [found[digest] for digest in sorted(found)]


def packed(store):
    """(offset, stored bytes, entry) of every packed entry in the file of a ledger's store, on freed pages, too."""
    data, words = (store / "data.mdb").read_bytes(), Lmdb(store).table("meta").get(b"words")
    for match in re.finditer(rb"\x02(?=.{4}[\x01-\x10])", data, re.DOTALL) if words else []:
        at = match.start() + 6 + 96 * data[match.start() + 5]
        size, reader = int.from_bytes(data[at:at + 2], "big"), zlib.decompressobj(-12, zdict=words)
        start = at + 3 + 32 * int.from_bytes(data[at + 2:at + 3], "big")
        stream = data[start:start + 2 * size + 64]
        try:
            text = reader.decompress(stream, size + 1)
        except zlib.error:
            continue
        stored = data[match.start():start + len(stream) - len(reader.unused_data)]
        if reader.eof and 0 < len(text) <= size and zlib.crc32(stored[5:]) == int.from_bytes(stored[1:5], "big"):
            yield match.start(), stored, unpack(stored, words)
