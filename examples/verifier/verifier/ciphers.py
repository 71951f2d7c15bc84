"""What the standard library lacks: Ed25519 (RFC 8032), AES-256-GCM (SP 800-38D), XChaCha20-Poly1305 (RFC 8439 and the
draft on XChaCha). Slow, short, and only for reading: no secret is made here."""
import hashlib
import struct

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_M1, IDENTITY = pow(2, (P - 1) // 4, P), (0, 1, 1, 0)

def point_add(p, q):
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)

def point_mul(scalar, p):
    total = IDENTITY
    while scalar:
        if scalar & 1:
            total = point_add(total, p)
        p = point_add(p, p)
        scalar >>= 1
    return total

def point_eq(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0

def point_read(data):
    """The point, or None for bytes that no key or signature has: not canonical, not on the curve."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_M1 % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return (x, y, 1, x * y % P)

BASE = point_read((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))

def ed25519_public(seed):
    scalar = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little") & 2**254 - 8 | 2**254
    x, y, z, _ = point_mul(scalar, BASE)
    inverse = pow(z, P - 2, P)
    return (y * inverse % P | (x * inverse % P & 1) << 255).to_bytes(32, "little")

def ed25519_is_point(key):
    """A key that may be believed: on the curve, not of small order."""
    point = point_read(key) if len(key) == 32 else None
    return point is not None and not point_eq(point_mul(8, point), IDENTITY)

def ed25519_verify(key, message, signature):
    if len(signature) != 64 or not ed25519_is_point(key):
        return False
    a, r, s = point_read(key), point_read(signature[:32]), int.from_bytes(signature[32:], "little")
    if r is None or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    return point_eq(point_mul(s, BASE), point_add(r, point_mul(h, a)))

def double(x):
    return (x << 1 ^ (0x11B if x & 0x80 else 0)) & 0xFF

def make_sbox():
    """Inverses by walking the powers of 3 up and down, then the affine map."""
    sbox, p, q = [0x63] * 256, 1, 1
    for _ in range(255):
        p ^= double(p)
        for shift in (1, 2, 4):
            q ^= q << shift & 0xFF
        q ^= 0x09 if q & 0x80 else 0
        sbox[p] = (0x63 ^ q ^ (q << 1 | q >> 7) ^ (q << 2 | q >> 6) ^ (q << 3 | q >> 5) ^ (q << 4 | q >> 4)) & 255
    return sbox

SBOX = make_sbox()

def aes_schedule(key):
    w, rcon = [list(key[i:i + 4]) for i in range(0, 32, 4)], 1
    for i in range(8, 60):
        t = w[-1]
        if i % 8 == 0:
            t = [SBOX[b] for b in t[1:] + t[:1]]
            t[0] ^= rcon
            rcon = double(rcon)
        elif i % 8 == 4:
            t = [SBOX[b] for b in t]
        w.append([a ^ b for a, b in zip(w[i - 8], t)])
    return [sum(w[i:i + 4], []) for i in range(0, 60, 4)]

def aes_block(rounds, block):
    s = [a ^ b for a, b in zip(block, rounds[0])]
    for number, key in enumerate(rounds[1:], 1):
        s = [SBOX[s[(5 * i) % 16]] for i in range(16)]  # substituted, rows shifted
        if number < len(rounds) - 1:
            for c in range(0, 16, 4):
                column, all_ = s[c:c + 4], s[c] ^ s[c + 1] ^ s[c + 2] ^ s[c + 3]
                s[c:c + 4] = [column[r] ^ all_ ^ double(column[r] ^ column[(r + 1) % 4]) for r in range(4)]
        s = [a ^ b for a, b in zip(s, key)]
    return bytes(s)

def gcm_open(key, nonce, also, sealed):
    rounds, data, tag = aes_schedule(key), sealed[:-16], sealed[-16:]
    powers, h, total = [], int.from_bytes(aes_block(rounds, bytes(16)), "big"), 0
    for _ in range(128):
        powers.append(h)
        h = h >> 1 ^ (0xE1 << 120 if h & 1 else 0)
    for part in (also, data, struct.pack(">QQ", 8 * len(also), 8 * len(data))):
        for at in range(0, len(part), 16):
            total ^= int.from_bytes(part[at:at + 16].ljust(16, b"\0"), "big")
            product = 0
            for bit in range(128):
                if total >> 127 - bit & 1:
                    product ^= powers[bit]
            total = product
    pad = int.from_bytes(aes_block(rounds, nonce + b"\0\0\0\1"), "big")
    if total ^ pad != int.from_bytes(tag, "big"):
        return None
    pads = (aes_block(rounds, nonce + struct.pack(">I", 2 + at // 16)) for at in range(0, len(data), 16))
    return bytes(a ^ b for a, b in zip(data, (byte for block in pads for byte in block)))

def chacha_rounds(state):
    s = list(state)

    def quarter(a, b, c, d):
        for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = s[x] + s[y] & 0xFFFFFFFF
            s[z] ^= s[x]
            s[z] = (s[z] << n | s[z] >> 32 - n) & 0xFFFFFFFF

    for _ in range(10):
        for turn, i in ((turn, i) for turn in (0, 1) for i in range(4)):  # columns, then diagonals
            quarter(i, 4 + (i + turn) % 4, 8 + (i + 2 * turn) % 4, 12 + (i + 3 * turn) % 4)
    return s

SIGMA = struct.unpack("<4I", b"expand 32-byte k")

def hchacha(key, nonce):
    s = chacha_rounds(SIGMA + struct.unpack("<8I", key) + struct.unpack("<4I", nonce))
    return struct.pack("<8I", *s[:4], *s[12:])

def chacha_block(key, counter, nonce):
    state = SIGMA + struct.unpack("<8I", key) + (counter,) + struct.unpack("<3I", nonce)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(state, chacha_rounds(state))))

def xchacha_open(key, nonce, also, sealed):
    key, nonce = hchacha(key, nonce[:16]), bytes(4) + nonce[16:]
    data, tag, once = sealed[:-16], sealed[-16:], chacha_block(key, 0, nonce)
    r, s, total = int.from_bytes(once[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF, once[16:32], 0
    text = b"".join(part + bytes(-len(part) % 16) for part in (also, data))
    text += struct.pack("<QQ", len(also), len(data))
    for at in range(0, len(text), 16):
        total = (total + int.from_bytes(text[at:at + 16] + b"\1", "little")) * r % (2**130 - 5)
    if (total + int.from_bytes(s, "little")) % 2**128 != int.from_bytes(tag, "little"):
        return None
    out = bytearray()
    for at in range(0, len(data), 64):
        out += bytes(a ^ b for a, b in zip(data[at:at + 64], chacha_block(key, 1 + at // 64, nonce)))
    return bytes(out)
