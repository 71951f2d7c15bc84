"""docs/record.md, "Random streams": who is drawn."""

from verifier.arithmetic import SELECT, Stream, select, select_by_quota

def select_charged(seed, number, weights, k):
    """*Charged*: an eighth of the places goes round, the others are drawn by the weights 1, 4 and 8."""
    n = len(weights)
    if k == 0 or k >= n:
        return set(range(n))
    turns = -(-k // 8)
    first = number * turns % n
    drawn = {(first + i) % n for i in range(turns)}
    classes = {w: [i for i in range(n) if weights[i] == w and i not in drawn] for w in (1, 4, 8)}
    stream = Stream(seed, SELECT, number)
    while len(drawn) < k:
        at = stream.below(sum(w * len(members) for w, members in classes.items()))
        for w, members in classes.items():
            if at < w * len(members):
                place = at // w
                drawn.add(members[place])
                members[place] = members[-1]
                members.pop()
                break
            at -= w * len(members)
    return drawn

def kind_of(job, number):
    """"round-opened": which kind a round is, the one before having closed."""
    last = job.closed(number)
    if not job.grouped:
        return "train"
    if number == 0:
        return "pretrain"
    due = job.regroup_every and number % job.regroup_every == 0
    drifted = float(last.step.body.get("drift", 0)) > 1 / 3
    return "pretrain" if last.kind == "train" and number < job.spec["rounds"] and (due or drifted) else "train"

def selection(job, number, kind, rows):
    """Which of the rows (tenant, row) of an opening are selected, by their keys."""
    free = [(t.name, r) for t, r in rows if r["use"] in ("candidate", "selected")]
    keys, k = [(name, r["site"]) for name, r in free], int(job.number("sites_per_round"))
    if kind == "pretrain":
        groups = max(int(job.options["most"]), int(job.number("groups", 2))) if job.spec.get("choose", job.choice) in ("most", "one") else int(job.number("groups", 16))
        wanted = int(job.number("pretrain_sites", 20 * groups))
        return {keys[i] for i in select_by_quota(job.seed, number, [name for name, _ in keys], wanted)}
    if job.strategy == "fedbuff":  # the places that are not taken by sites at work
        k = k - sum(r["use"] == "working" for _, r in rows) if k else len(keys)
        return {keys[i] for i in select(job.seed, number, len(keys), k)} if k > 0 else set()
    if job.rule == "root-trust":
        root = tuple(job.spec["root_site"].split("/"))
        others = [key for key in keys if key != root]
        return {root} | {others[i] for i in select(job.seed, number, len(others), k - 1)}
    if job.spec.get("selection") == "charged":
        return {keys[i] for i in select_charged(job.seed, number, [int(r["weight"]) for _, r in free], k)}
    return {keys[i] for i in select(job.seed, number, len(keys), k)}
