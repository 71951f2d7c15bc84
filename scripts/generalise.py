"""Strategies over federations that nothing was chosen on (federations.py): scripts/experiments --generalise, and its part of the page."""

import json
import os
import statistics
import subprocess
import tempfile

BASE = ["fedavg", "flexcfl"]
OURS = "flexcfl-adaptive"
OWN = ["finetune", "ditto"]  # judged by the sites' own models; ours by those where its sites have found them better
NAMES = BASE + [OURS] + OWN
SEEDS = 3
LOSS = 0.003  # below the better of BASE by no more than this and one standard error

WORDS = {"iid": "nothing tells sites apart", "skew": "label shares, Dirichlet 0.1 to 2", "permuted": "labels mean other classes",
         "rotated": "features are turned", "swapped": "two classes are exchanged"}


def last_ten(variant):
    """Of each seed."""
    measure = "personal_last" if variant["name"] in OWN + [OURS] else "accuracy_last"
    return [run[measure] for run in variant["runs"]]


def run_one(kedge, seed, number, folder):
    import numpy as np  # not on every machine that only reads the page
    from federations import data, draw, spec

    what = draw(seed, number)
    table, text = os.path.join(folder, "data.npz"), os.path.join(folder, "spec.json")
    np.savez(table, **data(seed, number, what))
    with open(text, "w", encoding="utf-8") as f:
        json.dump(spec(seed, number, what, table), f)
    done = subprocess.run([kedge, "sim", text, "--compare", ",".join(NAMES), "--seeds", str(SEEDS), "--format", "json"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    variants = json.loads(done.stdout)["data"]["variants"]
    return {**what, "last": {v["name"]: [round(100 * a, 3) for a in last_ten(v)] for v in variants},
            "groups_alone": [round(100 * run["accuracy_last"], 3) for v in variants if v["name"] == OURS for run in v["runs"]],
            "bytes": {v["name"]: v["measures"]["bytes"]["mean"] for v in variants}}


def run(kedge, seed, count, commit, machine):
    """The result as data; a line of progress for each federation."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            found.append(run_one(kedge, seed, number, folder))
            f = found[-1]
            print(f"federation {number + 1} of {count}: {f['structure']}, {f['sites']} sites of {f['kinds']} kinds: " + ", ".join(
                f"{name} {statistics.fmean(f['last'][name]):.2f}" for name in NAMES), flush=True)
    return {"seed": seed, "commit": commit, "machine": machine, "federations": found}


def text_of(result):
    head = json.dumps({**result, "federations": []}).removesuffix("]}")
    return head + ",".join("\n" + json.dumps(f, separators=(",", ":")) for f in result["federations"]) + "]}\n"


def against_better(federation):
    """Of ours: the mean difference from the better of the two others, and its standard error, seed by seed."""
    last = federation["last"]
    better = max(BASE, key=lambda name: statistics.fmean(last[name]))
    differences = [a - b for a, b in zip(last[OURS], last[better])]
    return statistics.fmean(differences), statistics.stdev(differences) / len(differences) ** 0.5


def row_of(words, some):
    gaps = [against_better(f) for f in some]
    means = [statistics.fmean(statistics.fmean(f["last"][name]) for f in some) for name in NAMES]
    losses = sum(mean < -100 * LOSS - error for mean, error in gaps)
    return (f"| {words} | {len(some)} | " + " | ".join(f"{m:.2f}" for m in means)
            + f" | {statistics.fmean(g for g, _ in gaps):+.2f} | {min(g for g, _ in gaps):+.2f} | {losses} |")


def served(federations):
    """What a result says of ours since sites' own models may serve them."""
    if "groups_alone" not in federations[0]:
        return ""
    ratio = statistics.fmean(f["bytes"][OURS] / f["bytes"]["fedavg"] for f in federations)
    return (f" {OURS} is judged by those where its record says that they serve sites best, else by the groups'. It sends a model more to "
            f"each site at each trial: {ratio:.2f} times the traffic of fedavg in the mean, evaluations of each round's models left out for "
            f"all. All hold back a fifth of each site's training samples.")


def section(result):
    all_of = result["federations"]
    lines = ["## Federations drawn anew", "",
             f"`scripts/experiments --generalise {len(all_of)} --seeds-from {result['seed']}`: {len(all_of)} federations that no setting "
             f"was chosen on (`scripts/federations.py`): 24 to 160 sites, of 1 to 40 kinds, a learning rate from a decade, a number of "
             f"groups that was guessed, a quarter of the planted ones with sites that change their kind midway. {SEEDS} seeds each, "
             f"{all_of[0]['rounds']} rounds, absolute test accuracy of the last ten in %. Sources as of commit {result['commit']}.", "",
             f"**Δ**: {OURS} less the better of {' and '.join(BASE)}; **worst**: of one federation; **losses**: federations where it is "
             f"more than {100 * LOSS:.1f} points and one standard error below it. {' and '.join(OWN)} are judged by the sites' own models."
             + served(all_of), "",
             "| what tells sites apart | federations | " + " | ".join(NAMES) + " | Δ | worst | losses |",
             "|---|---:|" + "---:|" * len(NAMES) + "---:|---:|---:|"]
    for structure, words in WORDS.items():
        some = [f for f in all_of if f["structure"] == structure]
        if some:
            lines.append(row_of(words, some))
    return lines + [row_of("all", all_of), ""]
