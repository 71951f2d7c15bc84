"""What the coordinator answers a party over TLS: a relay that the party's programs connect to, with the keys of both ends; and
a peer that asks by itself, in the bytes of common/wire/messages.def."""
import hashlib
import socket
import ssl
import struct
import subprocess
import threading


def certificate(key, out):
    """A self-signed certificate of a private key, with that key: what TLS shows a key in."""
    subprocess.run(["openssl", "req", "-x509", "-new", "-key", key, "-subj", "/CN=x", "-days", "9", "-out", out], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return out


def client_context(key, scratch):
    out = scratch / f"{hashlib.sha256(key.read_bytes()).hexdigest()[:16]}.crt"
    if not out.exists():
        certificate(key, out)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(out, key)
    return context


class Spy:
    """A relay between one party and the coordinator, with the keys of both: it keeps what the coordinator answers, and what
    the party says."""

    def __init__(self, server, server_key, party_key, scratch):
        self.server, self.party_key, self.scratch = server, party_key, scratch  # (host, port), PEM files
        self.heard, self.told = [], []  # a bytearray for each connection
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate(server_key, scratch / "server.crt"), server_key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tls+tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.relay, args=(near,), daemon=True).start()

    def relay(self, near):
        heard, told = bytearray(), bytearray()
        self.heard.append(heard)
        self.told.append(told)
        try:
            near = self.context.wrap_socket(near, server_side=True)
            far = client_context(self.party_key, self.scratch).wrap_socket(socket.create_connection(self.server))
        except (OSError, ssl.SSLError):
            near.close()
            return
        both(near, far, lambda: pump(near, far, told), lambda: pump(far, near, heard))

    def pieces(self, name):
        return [(f"{name}: what connection {i} was answered", bytes(one)) for i, one in enumerate(self.heard)]

    def told_pieces(self, name):
        return [(f"{name}: what it said over connection {i}", bytes(one)) for i, one in enumerate(self.told)]

    def close(self):
        self.listener.close()


def hang_up(*sockets):
    """Wakes those who wait for them. They are not closed yet: somebody else's next connection would get their numbers, and a
    thread that still reads the old one its bytes."""
    for one in sockets:
        try:
            socket.socket.shutdown(one, socket.SHUT_RDWR)
        except OSError:
            pass


def both(near, far, there, back):
    """Runs both directions of a relay side by side, and closes its ends when neither is used any more."""
    other = threading.Thread(target=there, daemon=True)
    other.start()
    back()
    other.join()
    for one in (near, far):
        one.close()


def pump(source, sink, keep):
    try:
        while data := source.recv(1 << 16):
            if keep is not None:
                keep += data
            sink.sendall(data)
    except (OSError, ValueError):
        pass
    hang_up(source, sink)


def dial(server, key, scratch):
    """A connection over TLS with a party's key."""
    return client_context(key, scratch).wrap_socket(socket.create_connection(server, timeout=30))


def door(state):
    """One of the operator, who owns the state folder."""
    found = socket.socket(socket.AF_UNIX)
    found.settimeout(30)
    found.connect(str(state / "coordinator.ipc"))
    return found


class Peer:
    """Asks the coordinator over a connection."""

    def __init__(self, connection):
        self.socket = connection
        self.socket.sendall(b"KEDGE\r\n\0" + struct.pack(">I", 1) + bytes(32))
        self.calls = 0
        self.take(44)

    def take(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("the coordinator hung up")
            data += more
        return data

    def ask(self, kind, fields):
        """The answer's body: version, type, fields."""
        return self.ask_at_once([(kind, fields)])[0]

    def ask_at_once(self, questions):
        """The answers to several questions, none of which waits for another's."""
        first, frames = self.calls, b""
        for kind, fields in questions:
            self.calls += 1
            body = bytes([1, kind]) + fields
            frames += struct.pack(">II", len(body), self.calls) + body
        self.socket.sendall(frames)
        answers = {}
        for _ in questions:
            length, call = struct.unpack(">II", self.take(8))
            answers[call] = self.take(length)
        return [answers[call] for call in range(first + 1, self.calls + 1)]


def word(text):
    return bytes([len(text)]) + text.encode()


def text(data):
    data = data.encode() if isinstance(data, str) else data
    return struct.pack(">I", len(data)) + data


def enroll(secret, tenant, site, key):
    return 0x02, secret + word(tenant) + word(site) + key


def blob_get(job, digest):
    return 0x04, word(job) + digest + struct.pack(">QI", 0, 1 << 16)


def blob_put(job, data):
    """A whole upload for round 0 in one piece."""
    return 0x05, word(job) + struct.pack(">II", 0, 0) + hashlib.sha256(data).digest() + struct.pack(">QQ", len(data), 0) + text(data)


def blob_get_since(job, digest, base):
    return 0x09, word(job) + digest + base + struct.pack(">QI", 0, 1 << 16)


def admin(json_text):
    return 0x07, text(json_text)


def log_read(path):
    return 0x0a, text(path) + struct.pack(">QI", 0, 1 << 16)
