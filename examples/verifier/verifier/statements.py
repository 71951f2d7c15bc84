"""The form of every statement: docs/record.md's schemas as one table. A field is NAME:TYPE, optional with '?'."""
import re

from .store import need

TABLE = """
key spec=key @ scope:=admin|coordinator|log tenant:id0 public_key:hex
site-enrolled spec=key @ tenant:id site:id tls_key:hex statement_key:hex
site-revoked spec=key @ tenant:id site:id statement_key:hex reason:text
witness-enrolled spec=key @ tenant:id witness:id tls_key:hex cosign_key:hex name:text
witness-revoked spec=key @ tenant:id witness:id cosign_key:hex reason:text
job-joined spec=spec @ tenant:id job:id
job-left spec=spec @ tenant:id job:id reason:text
update spec=update tenant:id site:id job:id round:int group:int update_kind:=pretrain|train base:hex samples:int steps:int batch:int learning_rate:real energy_joules:real? energy_quality:=measured|modelled|unknown seconds:real \
engine:text loss:real? energy_how:text? choice:text? classes:[text]? data_samples:int?
evaluation spec=model tenant:id site:id job:id round:int group:int samples:int correct:int loss:real personal_correct:int? personal_loss:real? trial:hex? trial_correct:int? trial_loss:real?
group-assigned spec=update tenant:id site:id job:id round:int group:int how:=cold-start|newcomer|migration|recluster|split|merge|choice|nearest similarity:real update:hex
erased spec=update @ tenant:id update:hex entry:int reason:text authority:text
contact spec=contact @ tenant:id about:id0 commitment:hex
site-labels spec=key @ tenant:id site:id statement_key:hex number:int labels:text
policy spec=key deployment:text statement_key:hex main_log_key:hex
quota-set spec=tenant id:hex number:int standing:=active|suspended sites:int jobs:int tokens:int statements_per_s:int bytes_per_s:int reason:text
job-admitted spec=spec job:id main_size:int queue:hex queued:int round_ms:int round_from:=declared|median|timeout deadline_ms:int guard_ms:int? share:int? too_large:int? earliest_ms:int? time_ms:int
job-refused spec=spec job:id main_size:int queue:hex queued:int round_ms:int round_from:=declared|median|timeout deadline_ms:int guard_ms:int? share:int? too_large:int? earliest_ms:int? time_ms:int
job-opened spec=spec job:id parameters:int initial_model:hex tenants:[hex] first_models:[group:int,model:hex]? time_ms:int?
round-opened spec=spec job:id round:int round_kind:=pretrain|train seed:u64 main_size:int main_root:hex tenants:[id:hex,candidates:int,selected:int,list:hex] draw:int? time_ms:int?
aggregate spec=model job:id round:int group:int rule:text scale:int weight_sum:u64 count:int base:hex tenants:[id:hex,accepted:int,weight_sum:u64,refused:int,list:hex]
step spec=model job:id round:int rule:text eta:real groups:[group:int,before:hex,aggregate:hex,after:hex,direction:hex,\
stepped:hex?,state_before:hex?,state_after:hex?,made:hex?,whole:hex?,split_of:int?,merged_into:int?,tried_with:int?,trial:hex?] drift:real? personal:int? time_ms:int? classes:[text]? charged:u64? spent:u64?
round-tested spec=spec job:id round:int evaluations:int samples:int correct:int tier:int held:int? held_last:int? time_ms:int?
release spec=model job:id round:int group:int file:text tier:int?
job-closed spec=spec job:id rounds:int outcome:=completed|cancelled|failed reason:text time_ms:int?
"""
POSITION = " main_log_key:hex before:int seen_size:int seen_root:hex"  # "@": the deployment and the place that it is for
ID, HEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}\Z"), re.compile(r"[0-9a-f]{64}\Z")
REAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?\Z")
WHOLE = re.compile(r"(0|[1-9][0-9]*)\Z")

def fields_of(words):
    """(name, kind, whether it may be absent) of each."""
    return [(name, kind.rstrip("?"), kind.endswith("?")) for name, kind in (word.split(":", 1) for word in words)]
KINDS = {}
for name, about, *words in (line.replace(" @", POSITION).split() for line in TABLE.replace("\\\n", "").strip().split("\n")):
    KINDS[name] = (about.split("=")[1], fields_of(words))

TESTS = {"int": lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= 2**53,
    "id": lambda v: isinstance(v, str) and ID.match(v) is not None, "id0": lambda v: v == "" or TESTS["id"](v),
    "hex": lambda v: isinstance(v, str) and HEX.match(v) is not None, "u64": lambda v: isinstance(v, str) and WHOLE.match(v) is not None and int(v) < 2**64,
    "real": lambda v: isinstance(v, str) and REAL.match(v) is not None,
    "text": lambda v: isinstance(v, str) and len(v.encode()) <= 1024 and all(c >= " " and c != "\x7f" for c in v),}

def fits(kind, value):
    if kind[0] == "=":
        return value in kind[1:].split("|")
    if kind[0] != "[":
        return TESTS[kind](value)
    if ":" not in kind:
        return isinstance(value, list) and all(fits(kind[1:-1], v) for v in value) and ascending(value)
    rows = fields_of(kind[1:-1].split(","))
    return isinstance(value, list) and all(isinstance(v, dict) and has_fields(rows, v) for v in value) and ascending([v[rows[0][0]] for v in value])

def ascending(values):
    return all(a < b for a, b in zip(values, values[1:]))

def has_fields(fields, body):
    names = [name for name, _, optional in fields if name in body or not optional]
    return set(body) == set(names) and all(fits(kind, body[name]) for name, kind, _ in fields if name in body)

def check_form(statement, where):
    """(kind, subject digest, predicate) of an in-toto statement that has the form of its kind."""
    need(set(statement) == {"_type", "subject", "predicateType", "predicate"}, where, "is no statement")
    need(statement["_type"] == "https://in-toto.io/Statement/v1", where, "is no in-toto statement")
    kind = re.fullmatch(r"https://kedge\.dev/([a-z-]+)/v1", str(statement["predicateType"]))
    need(kind and kind[1] in KINDS, where, "is a statement of unknown kind", statement["predicateType"])
    about, fields = KINDS[kind[1]]
    subjects, body = statement["subject"], statement["predicate"]
    need(isinstance(subjects, list) and len(subjects) == 1 and set(subjects[0]) == {"name", "digest"}
         and subjects[0]["name"] == about and set(subjects[0]["digest"]) == {"sha256"}
         and fits("hex", subjects[0]["digest"]["sha256"]), where, kind[1], "has another subject")
    need(isinstance(body, dict) and has_fields(fields, body), where, kind[1], "has other fields than its kind")
    return kind[1], subjects[0]["digest"]["sha256"], body
