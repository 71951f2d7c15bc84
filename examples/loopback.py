"""A federation on this machine, as an operator and the owners of sites would set it up by hand: every step is a command of
kedge. For the examples, and for tests that need sites with policies of their own."""
import json
import subprocess
import time
from pathlib import Path

PATIENCE_S = 120


class Federation:
    def __init__(self, bin_dir, folder, deployment="loopback.test"):
        self.bin, self.dir = Path(bin_dir).resolve(), Path(folder).resolve()
        self.state, self.processes, self.address = self.dir / "state", {}, None
        self.tenants = []
        self.run("init", self.state, "--deployment", deployment, "--listen", "tls+tcp://127.0.0.1:0")
        self.start("coordinator", "kedge-coordinator", "--state", self.state)
        self.until(lambda: (self.state / "address").exists() and self.run("status", "--state", self.state, code=None)[0] == 0,
                   "the coordinator starts")
        self.address = (self.state / "address").read_text().strip()

    def run(self, *argv, code=0):
        """One call of kedge: (exit code, stdout, stderr)."""
        done = subprocess.run([self.bin / "kedge", *map(str, argv)], text=True, errors="replace", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=2 * PATIENCE_S, check=False)
        if code is not None and done.returncode != code:
            raise RuntimeError(f"kedge {' '.join(map(str, argv))}: exit {done.returncode}: {done.stderr[-900:]}")
        return done.returncode, done.stdout, done.stderr

    def kedge(self, *argv):
        """One of the operator's, with its answer."""
        return json.loads(self.run(*argv, "--state", self.state, "--format", "json")[1])["data"]

    def start(self, name, program, *argv):
        with open(self.dir / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen([self.bin / program, *map(str, argv)], stdin=subprocess.DEVNULL,
                                                    stdout=log, stderr=log)

    def log(self, name):
        return (self.dir / f"{name}.log").read_text(errors="replace")

    def until(self, condition, what, patience=PATIENCE_S):
        end = time.monotonic() + patience
        while not condition():
            ended = [name for name, process in self.processes.items() if process.poll() is not None]
            if ended or time.monotonic() > end:
                tail = "".join(f"\n{name}: {self.log(name)[-900:]}" for name in ended)
                raise RuntimeError(f"waited in vain until {what}{tail}")
            time.sleep(0.02)

    def add_tenant(self, name):
        self.run("tenant", "add", name, "--admin-key", self.dir / f"{name}.pem", "--state", self.state)
        self.tenants.append(name)

    def add_site(self, tenant, site, policy, address=None):
        """address: where the site reaches the coordinator, if not at its own."""
        folder, token = self.dir / site, self.dir / f"{site}.token"
        folder.mkdir()
        (folder / "policy.json").write_text(json.dumps(policy))
        self.run("site", "enroll", tenant, site, "--address", address or self.address, "--out", token, "--state", self.state)
        self.start(site, "kedge-client", "--site", folder, "--enroll-file", token)
        self.run("site", "approve", tenant, site, "--admin-key", self.dir / f"{tenant}.pem", "--wait", PATIENCE_S,
                 "--state", self.state)

    def submit(self, spec, first=None):
        path = self.dir / f"{spec['name']}.json"
        path.write_text(json.dumps({"tenants": sorted(self.tenants), **spec}))
        self.run("job", "submit", path, *(("--initial-model", first) if first else ()), "--state", self.state)
        for tenant in self.tenants:
            self.run("job", "join", spec["name"], tenant, "--admin-key", self.dir / f"{tenant}.pem", "--state", self.state)

    def wait(self, job, patience=PATIENCE_S):
        """True: it is completed."""
        return self.run("job", "wait", job, "--timeout", patience, "--state", self.state, code=None)[0] == 0

    def accuracies(self, job):
        """What the sites measured after each round, percent."""
        return [round(100 * float(one["accuracy"]), 1) for one in self.kedge("job", "show", job)["history"] if "accuracy" in one]

    def audits(self):
        """Both of an auditor's checks, over the stopped federation's record: exit codes and what was said."""
        trust = self.dir / "trust.json"
        self.run("audit", "trust", "--out", trust, "--state", self.state)
        self.stop()
        return [self.run("audit", verb, self.dir, "--trust", trust, code=None) for verb in ("verify", "replay")]

    def stop(self, *names):
        going = [self.processes.pop(name) for name in names or list(self.processes)]
        for process in going:
            if process.poll() is None:
                process.terminate()
        for process in going:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
