"""docs/record.md, "Compact updates": an update's whole numbers in fewer bytes."""

import struct

from verifier.store import need

MAGIC, BLOCK = b"kdgupd1", 4096
INT8, BF16, TOPK, TOPK_INT8 = 1, 2, 3, 4

def read(data, count, what):
    """The whole numbers of a compact update of so many values."""
    kind, stated = data[7], struct.unpack_from("<Q", data, 8)[0]
    need(kind in (INT8, BF16, TOPK, TOPK_INT8) and stated == count, what, "is no compact update of so many values")
    at, out = 16, []
    while len(out) < count:
        n = min(BLOCK, count - len(out))
        values, at = {INT8: int8, BF16: bf16, TOPK: topk, TOPK_INT8: topk}[kind](data, at, n, kind)
        out += values
    need(at == len(data), what, "has bytes after its last block")
    return out

def int8(data, at, n, _):
    step = struct.unpack_from("<I", data, at)[0]
    return [code * step for code in struct.unpack_from(f"<{n}b", data, at + 4)], at + 4 + n

def bf16(data, at, n, _):
    bits = struct.unpack_from(f"<{n}H", data, at)
    return [int(struct.unpack("<f", struct.pack("<I", b << 16))[0]) for b in bits], at + 2 * n

def topk(data, at, n, kind):
    """Entries of a gap and a value, or a code that counts steps; all other values are 0."""
    length, out, place = struct.unpack_from("<H", data, at)[0], [0] * n, 0
    at, end, step = at + 2, at + 2 + length, 1
    if kind == TOPK_INT8 and length:
        step, at = struct.unpack_from("<I", data, at)[0], at + 4
    while at < end:
        gap = shift = 0
        while True:
            gap, shift, at = gap | (data[at] & 127) << shift, shift + 7, at + 1
            if data[at - 1] < 128:
                break
        value, at = (struct.unpack_from("<i", data, at)[0], at + 4) if kind == TOPK else (struct.unpack_from("<b", data, at)[0], at + 1)
        out[place + gap], place = value * step, place + gap + 1
    return out, end
