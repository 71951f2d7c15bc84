"""A model is taken from elsewhere and used: `kedge job model --connect`, `kedge predict`, and the lines for Python in
docs/python.md as they stand there. For tests in this folder."""
import csv
import hashlib
import io
import json
import random
import re
import subprocess
import sys
from pathlib import Path

from field import PATIENCE_S, report

NAMES = ["no, thanks", "perhaps", "yes"]
DOC = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def flowers(path, seed, samples):
    """With a header, quotes, classes by name, an identifier, and columns of quite different sizes."""
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["id", "length", "width", "weight", "age", "answer"])
        for i in range(samples):
            label = rng.randrange(3)
            x = [rng.gauss(label == k, 0.45) for k in range(4)]
            rows.writerow([f"n-{i}", f"{x[0]:.4f}", f"{100 + 20 * x[1]:.3f}", f"{1e4 * x[2]:.1f}", f"{x[3]:.4f}", NAMES[label]])


def train(world):
    """The newcomer's job: two sites with training and test files of their own."""
    for k, site in enumerate(world.sites):
        for part, samples in (("train", 240), ("test", 100 + 30 * k)):
            flowers(world.scratch / f"{part}-{k}.csv", f"{part}{k}", samples)
        source = {"format": "csv", "label": "answer", "ignore": ["id"]}
        site.policy(data={"mine": {"train": {"format": "csv", "path": str(world.scratch / f"{site.name}.csv")}, "split": "0.8"},
                          "answers": {part: {**source, "path": str(world.scratch / f"{part}-{k}.csv")}
                                      for part in ("train", "test")}})
        report(f"{site.name} has the policy with these files", site.reload(), site.log.read_text()[-600:])
    for name, standardize, rounds in (("answers", "local", 3), ("together", "federated", 5)):
        world.submit(name, rounds=rounds, data="answers", classes=NAMES, standardize=standardize, sites_min=2, quorum=2)
        report(f"{name}: a job with names and scales completes", world.finish(name), world.job(name))


def predict(world, *argv, code=0):
    done = subprocess.run([world.bin / "kedge", "predict", *map(str, argv)], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S)
    report(f"predict {' '.join(Path(str(a)).name for a in argv)}: exit {code}", done.returncode == code,
           f"{done.returncode} {done.stdout[-300:]} {done.stderr[-600:]}")
    return done


def check_accuracy(world, name):
    """As the sites counted of the last model on the same rows."""
    model = world.kedge("job", "model", name, "--out", world.scratch / "models", "--npz", "--evidence")["models"][0]["file"]
    last = world.job(name)["history"][-1]["groups"][0]
    right = samples = 0
    for k in range(2):
        scales = ["--train", world.scratch / f"train-{k}.csv"] if name == "answers" else []  # the other model knows them
        answer = json.loads(predict(world, model, world.scratch / f"test-{k}.csv", "--label", "answer", "--ignore", "id", *scales,
                                    "--format", "json").stdout)["data"]
        right, samples = right + answer["correct"], samples + answer["samples"]
    report(f"{name}: predict is right as often as the job's own evaluation said", (samples, right) ==
           (last["test_samples"], last["test_correct"]) and 0.6 * samples < right, (samples, right, last))
    return Path(model)


def check_refused(world, model):
    """What would be wrong in silence is said."""
    data = world.scratch / "test-0.csv"
    said = predict(world, model, data, "--label", "answer", "--ignore", "id", code=2).stderr
    report("without --train: which file is missing", "--train" in said, said)
    said = predict(world, model, data, "--train", world.scratch / "train-0.csv", code=1).stderr
    report("too many columns: how many there are", "found 6 columns, expected 4" in said and "--ignore" in said, said)
    (world.scratch / "lonely.safetensors").write_bytes(model.read_bytes())
    said = predict(world, world.scratch / "lonely.safetensors", data, code=3).stderr
    report("no spec beside the model: how to name it", "--spec" in said, said)


def elsewhere(world, key):
    """The words of one who is not at the coordinator's machine."""
    trust = world.scratch / "trust.json"
    world.kedge("audit", "trust", "--out", trust)
    return ["--connect", world.address(), "--server-key", world.kedge("status")["fingerprint"], "--key", key, "--trust", trust]


def ask(world, job, key, out, *more):
    """One call of kedge job model from elsewhere: exit code, answer, error."""
    words = elsewhere(world, key)
    words = words[:-2] if "--trust" in more else words
    done = subprocess.run([world.bin / "kedge", "job", "model", job, "--out", out, *words, *more, "--format", "json"],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    answer = json.loads(done.stdout)
    return done.returncode, answer.get("data"), answer.get("error")


def take_elsewhere(world):
    """As an operator with a key of their own; what comes is what the door gives."""
    key, use = world.scratch / "operator.pem", world.scratch / "use"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True, capture_output=True)
    far = elsewhere(world, key)
    use.mkdir()
    argv = [world.bin / "kedge", "job", "model", "first", "--out", use / "models", "--npz", *far, "--format", "json"]
    blind = subprocess.run([word for word in map(str, argv) if word != "--trust" and not word.endswith("/trust.json")],
                           capture_output=True, text=True, timeout=PATIENCE_S)
    report("without keys to check it against nothing is asked", blind.returncode == 2 and "--trust FILE" in blind.stdout, blind.stdout)
    refused = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    report("job model by a stranger is refused", refused.returncode == 4 and not list((use / "models").iterdir()), refused.stdout)
    report("and told which key it was", json.loads(refused.stdout)["error"]["keys"] == [
        {"option": "--key", "file": str(key), "public": public_of(world, key)}], refused.stdout)
    world.kedge("role", "grant", "far-away", "--role", "operator", "--public", public_of(world, key))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    row = json.loads(done.stdout).get("data", {}).get("models", [{}])[0]
    report("an operator takes it from elsewhere", done.returncode == 0, done.stdout)
    report("it is the one on record", hashlib.sha256(Path(row["file"]).read_bytes()).hexdigest() == row["digest"]
           == world.job("first")["models"][0], row)
    report("and its spec", hashlib.sha256(Path(row["spec_file"]).read_bytes()).hexdigest() == world.job("first")["spec"], row)
    report("--npz writes both", Path(row["npz"]).stat().st_size > 0, row)
    return use


def take_as_admin(world):
    """With the tenant's own key: models of jobs that it joined, once they are released. Who is not joined is told the same of
    what exists and of what does not."""
    other, second, out = world.scratch / "other.pem", world.scratch / "second.pem", world.scratch / "by-admins"
    world.kedge("tenant", "add", "other", "--admin-key", other)
    world.kedge("key", "add", "acme", "--admin-key", world.admin, "--new-key", second)
    for key in (world.admin, second):
        code, answer, error = ask(world, "first", key, out)
        row = (answer or {}).get("models", [{}])[0]
        report(f"the tenant's admin takes it with {key.name}", code == 0 and row["released"] and set(answer) == {"job", "state", "models"}, error)
        report("it is the one on record, with its spec", row["digest"] == world.job("first")["models"][0] == hashlib.sha256(
            Path(row["file"]).read_bytes()).hexdigest() and Path(row["spec_file"]).stat().st_size > 0, row)
    log = world.kedge("status")["main_log"]
    done = subprocess.run([world.bin / "kedge", "ledger", "verify", out / "first-g0.release.tlog-proof", "--log", log, "--entry",
                           out / "first-g0.release.json"], capture_output=True, text=True, timeout=PATIENCE_S)
    report("what proves it is kept and verifies", done.returncode == 0, done.stdout + done.stderr)
    answers = [ask(world, job, other, world.scratch / "nothing") for job in ("first", "answers", "no-such-job")]
    report("who has not joined is refused, whatever there is", answers[0][0] == 4 and answers.count(answers[0]) == 3
           and "names a tenant" in answers[0][2]["message"] and not list((world.scratch / "nothing").iterdir()), answers)
    for words in (["job", "groups", "first"], ["role", "list"], ["job", "stop", "first"]):
        done = subprocess.run([world.bin / "kedge", *words, *elsewhere(world, world.admin)], capture_output=True, text=True, timeout=PATIENCE_S)
        report(f"an admin is no operator: {' '.join(words)}", done.returncode == 4, done.stdout + done.stderr)
    world.kedge("key", "revoke", "acme", public_of(world, second), "--admin-key", second)
    code, _, error = ask(world, "first", second, out)
    report("an admin's key that was revoked takes nothing", code == 4, error)
    code, _, error = ask(world, "first", world.admin, out, "--trust", trust_of_another(world))
    report("under another main chain's key nothing is taken", code == 1 and error["code"] == "VERIFY", (code, error))


def trust_of_another(world):
    """The same deployment's names, under a key that signed nothing here."""
    trust, path = json.loads((world.scratch / "trust.json").read_text()), world.scratch / "another-trust.json"
    made = world.scratch / "another"
    subprocess.run([world.bin / "kedge", "init", made, "--deployment", trust["deployment"]], check=True, capture_output=True)
    vkey = subprocess.run([world.bin / "kedge", "ledger", "list", "--state", made, "--format", "json"], check=True, capture_output=True, text=True)
    trust["main_log"] = next(row["vkey"] for row in json.loads(vkey.stdout)["data"]["logs"] if row["log"] == "main")
    trust["seen"] = []
    path.write_text(json.dumps(trust))
    return path


def public_of(world, key):
    return json.loads(subprocess.run([world.bin / "kedge", "key", "public", key, "--format", "json"], capture_output=True, text=True,
                                     check=True, timeout=PATIENCE_S).stdout)["data"]["key"]


def while_it_runs(world, job):
    """Of a job that goes on nothing is released: its tenant waits, an operator takes what is in use when they say so."""
    key, out = world.scratch / "operator.pem", world.scratch / "in-use"
    code, _, error = ask(world, job, world.admin, out)
    report("the admin of a job that goes on waits for its end", code == 1 and "goes on" in error["message"], error)
    code, _, error = ask(world, job, key, out)
    report("an operator elsewhere takes no model that nothing proves", code == 1 and "--unreleased" in error["hint"], error)
    code, answer, error = ask(world, job, key, out, "--unreleased")
    report("but when that is asked for", code == 0 and not answer["models"][0]["released"], error)


def check_python(world, use):
    """The lines of the page give what kedge predict gives."""
    lines = (world.scratch / "site-1.csv").read_text().splitlines()[:40]
    (use / "new.csv").write_text("".join(line.rpartition(",")[0] + "\n" for line in lines))  # without labels
    rows = list(csv.DictReader(io.StringIO(predict(world, use / "models" / "first-g0.safetensors", use / "new.csv",
                                                   "--probabilities").stdout)))
    classes, shares = [int(row["class"]) for row in rows], [[float(row[str(c)]) for c in range(3)] for row in rows]
    report("without labels: a row for each sample", len(rows) == 40 and "label" not in rows[0] and len(set(classes)) == 3, rows[:2])
    section = DOC.read_text().split("## Using a model\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.S)
    report("the page has three times six lines", [len(block.splitlines()) for block in blocks] == [6, 6, 6], blocks)
    for needs, block in zip(("numpy", "torch", "sklearn"), blocks):
        python = next((p for p in ("/usr/bin/python3", sys.executable) if Path(p).exists() and subprocess.run(
            [p, "-c", f"import numpy, {needs}"], capture_output=True).returncode == 0), None)
        if not python:
            print(f"skip the lines for {needs}, which is not installed", flush=True)
            continue
        done = subprocess.run([python, "-c", block], cwd=use, capture_output=True, text=True, timeout=PATIENCE_S)
        told = [json.loads(line) for line in done.stdout.splitlines()]
        far = max((abs(a - b) for mine, theirs in zip(shares, told[1]) for a, b in zip(mine, theirs)), default=1) if len(told) == 2 else 1
        report(f"the lines for {needs}", done.returncode == 0 and told[:1] == [classes] and far < 2e-5, (far, done.stdout[:200], done.stderr))


def check_record(world):
    """What job model writes beside models belongs to the record: the spec must be the job's own."""
    world.kedge("job", "model", "first", "--out", world.scratch / "models")
    world.audit("with models, specs, npz and evidence")
    spec = world.scratch / "models" / "first-g0.json"
    good = spec.read_bytes()
    spec.write_bytes(good + b" ")
    done = subprocess.run([world.bin / "kedge", "audit", "verify", world.scratch, "--trust", world.scratch / "trust.json"],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    report("another spec beside a model is found", done.returncode == 1 and "is not the spec of the job" in done.stdout,
           done.stdout[-600:])
    spec.write_bytes(good)


def run(world):
    """With a field of two sites and its job "first"."""
    train(world)
    check_accuracy(world, "together")
    check_refused(world, check_accuracy(world, "answers"))
    check_python(world, take_elsewhere(world))
    take_as_admin(world)
    check_record(world)
