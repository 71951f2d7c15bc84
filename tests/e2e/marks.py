"""Marks of one tenant, looked for in all that another one can get hold of: raw, in hex, in base64 wherever it begins, and
hex within base64."""
import base64

LEAST = 10  # bytes of a mark; shorter ones could stand somewhere by chance


def base64_at(data, shift):
    """The characters that say nothing but data when it begins at that place of three."""
    text = base64.b64encode(bytes(shift) + data)
    return text[-(-8 * shift // 6):8 * (shift + len(data)) // 6]


def dresses(data):
    """Every way in which bytes are written down."""
    hexed = data.hex().encode()
    found = {data, hexed, hexed.upper()}
    for text in (data, hexed):
        for shift in range(3):
            inner = base64_at(text, shift)
            found |= {inner, inner.translate(bytes.maketrans(b"+/", b"-_"))}
    return found


def windows(data, width=24, count=4):
    """Some pieces of a file that cannot stand elsewhere by chance: of many different bytes."""
    found, at = [], 0
    while at + width <= len(data) and len(found) < count:
        piece = data[at:at + width]
        if len(set(piece)) >= 14:
            found.append(piece)
            at += max(width, len(data) // count)
        else:
            at += 4
    return found


class Marks:
    def __init__(self):
        self.needles = {}  # what it looks like: its name

    def add(self, name, data):
        data = data.encode() if isinstance(data, str) else data
        if len(data) < LEAST:
            raise ValueError(f"{name}: too short for a mark: {data!r}")
        for dress in dresses(data):
            self.needles[dress] = name

    def add_key(self, name, text):
        """Bytes that are known in hex."""
        self.add(name, bytes.fromhex(text))

    def names(self):
        return set(self.needles.values())

    def found_in(self, pieces):
        """{(mark, where)} in pieces, a list of (where, bytes)."""
        whole = b"\0|\0".join(piece for _, piece in pieces)
        hits = [needle for needle in self.needles if needle in whole]
        return {(self.needles[needle], where) for needle in hits for where, piece in pieces if needle in piece}

    def check_search(self):
        """A search that misses a mark in some dress, wherever it begins, proves nothing."""
        probe = Marks()
        probe.add("mark", b"marked/\xff\xfe\x00?>")
        data = b"marked/\xff\xfe\x00?>"
        for before in (b"", b"a", b"ab", b"abc"):
            for text in (data, data.hex().encode(), data.hex().upper().encode()):
                for worn in (before + text + b"z", base64.b64encode(before + text + b"z"),
                             base64.urlsafe_b64encode(before + text)):
                    if text.isupper() and worn != before + text + b"z":
                        continue  # nobody writes capitals within base64
                    if not probe.found_in([("here", worn)]):
                        raise AssertionError(f"the search is blind for {worn!r}")
        if probe.found_in([("here", data[:-1] + b"z")]):
            raise AssertionError("the search sees marks where there are none")
