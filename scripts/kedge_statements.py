"""docs/statements.md from the tables in chain/statement/statement_kinds.c: every kind's fields, and a sample of it."""

import hashlib
import json
import re
import sys

from kedge_source import ROOT, read

HEAD = """# Statements

Made from `chain/statement/statement_kinds.c` by `scripts/gen-docs`; change that file, not this page. [record.md](record.md) says who signs which
statement, where it stands and what it demands. A payload is one line of JSON in exactly this spelling: no white space, members in the order of
the table, text in UTF-8 with `\\"` and `\\\\` escaped and no control characters:

    {"_type":"https://in-toto.io/Statement/v1","subject":[{"name":NAME,"digest":{"sha256":HEX}}],"predicateType":TYPE,"predicate":{…}}

| type | spelling |
|---|---|
| id | text of 1 to 63 characters `a-z`, `0-9`, and from the second on `.`, `_`, `-` |
| key | Ed25519 public key: 64 hexadecimal digits, lower case, a point of prime order |
| hash | SHA-256: 64 hexadecimal digits, lower case |
| text a…b | UTF-8 of so many bytes, without control characters; *file*: a name without `/` |
| integer a…b | a JSON integer |
| decimal ≤ b | a whole number as a text of decimal digits |
| real | a finite number as a decimal text; *real ≥ 0*: not below zero. Readers take its binary64, and never write it again |
| one of … | one of these texts |
| names | an array of texts of 1 to 127 bytes, strictly ascending by their bytes, together at most 4,096 with one more each |
| list a…b | an array of so many, strictly ascending by the first member |

A field marked *optional* is left out where its value is zero, empty or all zeros, and only then; *may be absent* where there is no value.
Samples show every field; keys are those of RFC 8032, digests are made up, and nothing signed them.
"""

KEYS = ("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e")
TEXTS = {"deployment": "fl.example.org", "name": "witness.example.org", "rule": "fedavg/v1", "engine": "kedge-train",
         "file": "digits-g0.safetensors", "authority": "data protection officer", "energy_how": "RAPL package",
         "choice": "planned", "reason": "as agreed", "labels": "gpu=h100 zone=eu"}
IDS = {"tenant": "org-a", "site": "site-1", "job": "digits", "witness": "witness-1", "name": "operator-1"}
SOURCE = "chain/statement/statement_kinds.c"
FIELD = re.compile(r"\{FIELD\(([^()]*)\)([^{}]*)\}|"
                   r"\b(ID_OR_EMPTY|ID|KEY|HASH|TEXT|FILE_NAME|ENUM|U32|U64_TEXT|U64|REAL_POS|REAL|LIST|OPTIONAL|BOUND|POSITION|ROUND|GROUP)"
                   r"\(([^()]*)\)")


def fail(what):
    sys.exit(f"{SOURCE}: scripts/kedge_statements.py cannot read {what}")


def constants():
    text = read(ROOT, "chain/statement/statement.h") + read(ROOT, "common/base/limits.h")
    found = dict(re.findall(r"\b(KEDGE_\w+)\s*=\s*([^,;}/]+)", text))
    found.update(re.findall(r"#define (KEDGE_\w+)\s+(\(.*\)|\S+)", text))
    return found


def number(text, names):
    text = text.strip()
    if text == "UINT64_MAX":
        return 2**64 - 1
    for _ in range(8):
        text = re.sub(r"KEDGE_\w+", lambda m: f"({names[m.group()]})" if m.group() in names else fail(m.group()), text)
        text = re.sub(r"\(uint\d+_t\)|UINT\d+_C", "", text)
    if not re.fullmatch(r"[\d\s()+*<-]+", re.sub(r"(?<=\d)[uUlL]+", "", text)):
        fail(text)
    return int(eval(re.sub(r"(?<=\d)[uUlL]+", "", text), {"__builtins__": {}}))  # digits and operators only


def between(low, high):
    return f"{low}…" + ("2^53" if high == 2**53 else "2^62" if high == 2**62 else "2^64 − 1" if high == 2**64 - 1 else str(high))


class Table:
    def __init__(self):
        self.text = re.sub(r"/\*.*?\*/", "", read(ROOT, SOURCE), flags=re.S)
        self.text = re.sub(r"\bPOSITION,", "POSITION(),", self.text)
        self.names = constants()
        self.words = {n: re.findall(r'"([^"]*)"', b) for n, b in
                      re.findall(r"static const char \*const (\w+)\[\] = \{(.*?)\};", self.text, re.S)}
        self.bodies = dict(re.findall(r"static const struct kedgei_field (\w+)\[\] = \{(.*?)\n?\};", self.text, re.S))
        self.lists = dict(re.findall(r"static const struct kedgei_list (\w+) = \{(.*?)\};", self.text, re.S))

    def row(self, kind, args, more):
        args = [a.strip() for a in args.split(",")]
        row = {"optional": ".optional = true" in more or kind == "OPTIONAL", "lacks": ".lacks = true" in more}
        if kind == "OPTIONAL":
            kind, args = args[0], args[1:]
        if kind == "FIELD":
            kind = args[2]
            low, high = re.search(r"\.min = ([^,}]+)", more), re.search(r"\.max = ([^,}]+)", more)
            args[2:] = [low.group(1) if low else "0", high.group(1) if high else "0"]
            listed = re.search(r"\.list = &(\w+)", more)
            args[2:] = [listed.group(1)] if listed else args[2:]
        row.update(type=kind, name=args[1] if len(args) > 1 else "", args=args[2:])
        return row

    def rows(self, table):
        if table not in self.bodies:
            fail(table)
        if table == "bare_hash_field":
            return [{"type": "HASH", "name": "id", "args": [], "optional": False, "lacks": False}]
        found = []
        for spelled, more, kind, args in FIELD.findall(self.bodies[table]):
            kind, args = kind or "FIELD", args or spelled
            short = {"BOUND": [("TEXT", "deployment", ["1", "KEDGE_ST_NAME_MAX"]), ("KEY", "main_log_key", []),
                               ("U64", "before", ["1", "KEDGE_ST_COUNT_MAX"])],
                     "POSITION": [("KEY", "main_log_key", []), ("U64", "before", ["1", "KEDGE_ST_COUNT_MAX"]),
                                  ("U64", "seen_size", ["0", "KEDGE_ST_COUNT_MAX"]), ("HASH", "seen_root", [])],
                     "ROUND": [("U32", "round", ["0", "KEDGE_ROUNDS_MAX"])],
                     "GROUP": [("U32", "group", ["0", "KEDGE_GROUPS_MAX - 1"])]}.get(kind)
            if short:
                found += [{"type": t, "name": n, "args": a, "optional": False, "lacks": False} for t, n, a in short]
            else:
                found.append(self.row(kind, args, more))
        left = re.sub(r"[\s,{}]", "", FIELD.sub("", self.bodies[table]))
        return found if not left else fail(f"{table}: {left}")

    def list_of(self, row):
        body = self.lists.get(row["args"][0].lstrip("&")) or fail(row["args"][0])
        low = re.search(r"\.min = ([^,]+),", body)
        return {"min": number(low.group(1), self.names) if low else 0,
                "max": number(re.search(r"\.max = ([^,]+),", body).group(1), self.names),
                "rows": self.rows(re.search(r"\.fields = (\w+)", body).group(1)), "bare": ".bare = true" in body}

    def describe(self, row):
        t, a = row["type"], row["args"]
        n = [number(x, self.names) for x in a] if t in ("TEXT", "FILE_NAME", "U32", "U64", "U64_TEXT") else []
        if t == "LIST":
            inner = self.list_of(row)
            of = "hashes" if inner["bare"] else "objects, see below"
            text = f"list {between(inner['min'], inner['max'])} of {of}"
        else:
            text = {"ID": lambda: "id", "ID_OR_EMPTY": lambda: "id, or empty", "KEY": lambda: "key", "HASH": lambda: "hash",
                    "TEXT": lambda: f"text {between(n[0], n[1])}", "FILE_NAME": lambda: f"file, text 1…{n[0]}",
                    "ENUM": lambda: "one of " + ", ".join(f"`{w}`" for w in self.words[a[0]]),
                    "U32": lambda: f"integer {between(n[0], n[1])}", "U64": lambda: f"integer {between(n[0], n[1])}",
                    "U64_TEXT": lambda: f"decimal ≤ {between(0, n[-1])[2:]}", "REAL": lambda: "real",
                    "REAL_POS": lambda: "real ≥ 0", "NAMES": lambda: "names"}[t]()
        return text + (", optional" if row["optional"] else "") + (", may be absent" if row["lacks"] else "")

    def value(self, row, used):
        t, a, name = row["type"], row["args"], row["name"]
        if t == "LIST":
            inner = self.list_of(row)
            items = [self.value(r, used) for r in inner["rows"]]
            return [items[0]] if inner["bare"] else [dict(zip([r["name"] for r in inner["rows"]], items))]
        if t == "KEY":
            used.append(name)
            return KEYS[(len(used) - 1) % len(KEYS)]
        low = number(a[0], self.names) if t in ("U32", "U64") else 0
        return {"ID": lambda: IDS.get(name, "org-a"), "ID_OR_EMPTY": lambda: "", "HASH": lambda: hashlib.sha256(name.encode()).hexdigest(),
                "TEXT": lambda: TEXTS.get(name, "text"), "FILE_NAME": lambda: TEXTS["file"], "ENUM": lambda: self.words[a[0]][0],
                "U32": lambda: max(low, 1), "U64": lambda: 1000 if name == "before" else max(low, 1),
                "U64_TEXT": lambda: "1", "REAL": lambda: "0.5",
                "REAL_POS": lambda: "0.5", "NAMES": lambda: ["benign", "malignant"]}[t]()


def field_table(table, rows):
    return "| field | type |\n|---|---|\n" + "".join(f"| `{r['name']}` | {table.describe(r)} |\n" for r in rows)


def subject_of(rest, predicate, name):
    at = re.search(r"\.subject_offset = AT\(\w+,\s*([\w.\[\]]+)\)", rest)
    value = predicate
    for step in re.findall(r"\w+", at.group(1)) if at else []:
        value = value[int(step)] if step.isdigit() else value if step == "of" else value[step]
    if "KEDGEI_SUBJECT_KEY_HASH" in rest:
        return hashlib.sha256(bytes.fromhex(value)).hexdigest(), f"SHA-256 of `{at.group(1).replace('of.', '')}`"
    if "KEDGEI_SUBJECT_COPY" in rest:
        return value, f"`{at.group(1)}`"
    return hashlib.sha256(name.encode()).hexdigest(), f"digest of the {name}"


def page():
    table, out = Table(), [HEAD]
    body = table.text[table.text.index("kedgei_kinds["):]
    kinds = re.findall(r'\{KIND\("([\w-]+)",\s*"(\w+)",\s*(\w+)\)(.*?)\}', body, re.S)
    if len(kinds) != len(re.findall(r"\[KEDGE_ST_(?!KIND_COUNT)\w+\] =", body)):
        fail("kedgei_kinds")
    for kind, about, fields, rest in kinds:
        rows = table.rows(fields)
        used = []
        predicate = {r["name"]: table.value(r, used) for r in rows}
        digest, subject = subject_of(rest, predicate, about)
        sample = {"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": about, "digest": {"sha256": digest}}],
                  "predicateType": f"https://kedge.dev/{kind}/v1", "predicate": predicate}
        out.append(f"\n## {kind}\n\nSubject `{about}`: {subject}.\n\n{field_table(table, rows)}")
        for r in rows:
            if r["type"] == "LIST" and not table.list_of(r)["bare"]:
                out.append(f"\nEach of `{r['name']}`:\n\n{field_table(table, table.list_of(r)['rows'])}")
        out.append(f"\n```json\n{json.dumps(sample, separators=(',', ':'), ensure_ascii=False)}\n```\n")
    return "".join(out)
