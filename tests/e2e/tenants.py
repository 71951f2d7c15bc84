"""A coordinator and organisations that govern themselves, each from a home of its own. For tests in this folder."""
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from field import make_data, own_host

PATIENCE_S = 120
PORT = 7443
SPEC = {"batch": 10, "learning_rate": "0.1", "rounds": 2, "data": "mine",
        "model": {"preset": "mclr", "inputs": 4, "classes": 3}}


class World:
    def __init__(self, bin_dir):
        self.bin, self.dir = Path(bin_dir).resolve(), Path(tempfile.mkdtemp(prefix="kedge-tenants-"))
        self.url, self.server_key = f"tls+tcp://{own_host()}:{PORT}", None
        self.coordinator, self.clients, self.failed = None, {}, 0

    def check(self, name, fine, detail=""):
        self.failed += not fine
        print(f"{'ok  ' if fine else 'FAIL'} {name}{'' if fine else f': {str(detail)[:800]}'}", flush=True)

    def public_key(self):
        """Of a key that nobody keeps."""
        made = subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-outform", "DER"], check=True, capture_output=True)
        public = subprocess.run(["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"], input=made.stdout,
                                check=True, capture_output=True)
        return public.stdout[-32:].hex()

    def operate(self, *argv):
        """The operator's data, or None."""
        done = subprocess.run([self.bin / "kedge", *map(str, argv), "--state", "state", "--format", "json"], cwd=self.dir,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL)
        self.check("operator: " + " ".join(map(str, argv[:3])), done.returncode == 0, done.stdout + done.stderr)
        return json.loads(done.stdout).get("data") if done.returncode == 0 else None

    def refuse(self, *argv):
        """What the operator is told when it is refused, or nothing when it is not."""
        done = subprocess.run([self.bin / "kedge", *map(str, argv), "--state", "state", "--format", "json"], cwd=self.dir,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL)
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def start(self):
        with open(self.dir / "log", "ab") as log:
            self.coordinator = subprocess.Popen([self.bin / "kedge-coordinator", "--state", "state"], cwd=self.dir,
                                                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self, kill=False):
        if self.coordinator and self.coordinator.poll() is None:
            (self.coordinator.kill if kill else self.coordinator.terminate)()
            self.coordinator.wait(PATIENCE_S)

    def end(self):
        for client in self.clients.values():
            client.terminate()
            client.wait(PATIENCE_S)
        self.stop()


class Tenant:
    """An organisation: a folder that is its admin's home, its keys, its sites; nothing of the coordinator's machine."""

    def __init__(self, world, name, site):
        self.world, self.name, self.site = world, name, site
        self.home = world.dir / f"home-of-{name}"
        self.home.mkdir()
        self.key = self.home / "admin.pem"
        self.heard = []

    def run(self, *argv, form="json"):
        """(exit code, what was printed) of a command in the tenant's home."""
        environment = {**os.environ, "HOME": str(self.home)}
        for variable in ("KEDGE_STATE", "KEDGE_CONFIG", "KEDGE_PROFILE", "XDG_CONFIG_HOME"):
            environment.pop(variable, None)
        done = subprocess.run([self.world.bin / "kedge", *map(str, argv), "--format", form], cwd=self.home,
                              capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False, env=environment,
                              stdin=subprocess.DEVNULL)
        self.heard.append((argv, done.stdout + done.stderr))
        return done.returncode, done.stdout + done.stderr

    def yes(self, *argv):
        code, text = self.run(*argv)
        self.world.check(f"{self.name}: " + " ".join(map(str, argv[:3])), code == 0, text)
        try:
            return json.loads(text[text.index("{"):text.rindex("}") + 1]).get("data") or {}
        except ValueError:
            return {}

    def no(self, name, word, *argv):
        code, text = self.run(*argv)
        self.world.check(f"{self.name}: {name}", code != 0 and word in text, (code, text))

    def log_in(self):
        return self.yes("login", self.world.url, "--server-key", self.world.server_key, "--key", self.key)

    def set_up_site(self):
        """A device that comes with the token that the tenant made, and is approved by the tenant alone."""
        self.yes("site", "enroll", self.name, self.site, "--address", self.world.url, "--out", f"{self.site}.token")
        folder = self.home / self.site
        folder.mkdir()
        make_data(self.home / "mine.csv", self.name)
        (folder / "policy.json").write_text(json.dumps(
            {"jobs": "*", "data": {"mine": {"train": {"format": "csv", "path": str(self.home / "mine.csv")},
                                            "split": "0.8"}}}))
        self.start_site("--enroll-file", f"{self.site}.token")
        self.yes("site", "approve", self.name, self.site, "--wait", PATIENCE_S)

    def start_site(self, *argv):
        with open(self.world.dir / "log", "ab") as log:
            self.world.clients[self.name] = subprocess.Popen([self.world.bin / "kedge-client", "--site", self.site, *argv],
                                                             cwd=self.home, stdout=log, stderr=log)

    def enrol_device(self, site):
        """A device that comes with its token, and goes again: it waits for its admin then."""
        folder = self.home / site
        folder.mkdir()
        (folder / "policy.json").write_text('{"jobs": []}')
        with open(self.world.dir / "log", "ab") as log:
            self.world.clients[site] = subprocess.Popen(
                [self.world.bin / "kedge-client", "--site", site, "--enroll-file", f"{site}.token"], cwd=self.home,
                stdout=log, stderr=log)


def wait_until_up(world, tenant):
    end = time.monotonic() + PATIENCE_S
    while tenant.run("status")[0] != 0 and time.monotonic() < end:
        time.sleep(0.1)
    world.check("the coordinator is up again", tenant.run("status")[0] == 0)
