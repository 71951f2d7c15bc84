#!/usr/bin/env python3
"""A time-stamping authority over HTTP: openssl ts -reply behind a small server on loopback, with moods.
    authority.py CNF MOODFILE        prints its port; MOODFILE says how it behaves:
    good, late (no answer), nonce, imprint, huge, html, error, redirect; anything else: a CNF to use instead"""
import http.server, os, pathlib, subprocess, sys, tempfile, time

cnf, moodfile = sys.argv[1], pathlib.Path(sys.argv[2])


def openssl(query, config):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "query")
        open(path, "wb").write(query)
        run = subprocess.run(["openssl", "ts", "-reply", "-config", config, "-queryfile", path],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return run.stdout


def query_over(digest, nonce):
    """SEQUENCE { 1, imprint, nonce, certReq TRUE } by hand, RFC 3161 2.4.1"""
    imprint = bytes.fromhex("3031300d060960864801650304020105000420") + digest
    number = bytes([2, len(nonce)]) + nonce
    body = bytes([2, 1, 1]) + imprint + number + bytes([1, 1, 255])
    return bytes([0x30, len(body)]) + body


class Authority(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def answer(self, status, body, kind="application/timestamp-reply", **headers):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        mood = moodfile.read_text().strip()
        query = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-type"] != "application/timestamp-query":
            return self.answer(415, b"")
        digest = query[query.index(bytes.fromhex("05000420")) + 4:][:32]
        if mood == "good":
            self.answer(200, openssl(query, cnf))
        elif mood == "late":
            time.sleep(30)
        elif mood == "nonce":
            self.answer(200, openssl(query_over(digest, b"\x07"), cnf))
        elif mood == "imprint":
            self.answer(200, openssl(query.replace(digest, bytes(32)), cnf))
        elif mood == "huge":
            self.answer(200, openssl(query, cnf) + bytes(1 << 20))
        elif mood == "html":
            self.answer(200, b"<html>not today</html>", "text/html")
        elif mood == "error":
            self.answer(503, openssl(query, cnf))
        elif mood == "redirect":
            self.answer(302, b"", location="http://127.0.0.1:1/")
        else:
            self.answer(200, openssl(query, mood))


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Authority)
print(server.server_address[1], flush=True)
server.serve_forever()
