#!/usr/bin/env python3
"""Verifies a Kedge record, and with --replay makes its models again.

    verify.py RECORD --trust FILE [--replay] [--format json]

Exit codes: 0 it holds; 1 it does not; 2 wrong arguments or a file that cannot be read."""

import argparse
import json
import sys
import zlib

from verifier.record import Record, sha256
from verifier.replay import Replay
from verifier.store import Bad

def main():
    parser = argparse.ArgumentParser(description="Verifies a Kedge record from docs/record.md alone.")
    parser.add_argument("record", help="folder with state/, or the state folder itself")
    parser.add_argument("--trust", required=True, help="keys from elsewhere (trust.json)")
    parser.add_argument("--replay", action="store_true", help="make every model again from its recorded inputs")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    args = parser.parse_args()
    out, code = {"holds": True}, 0
    try:
        record = Record(args.record, args.trust)
        out.update(entries=record.main.size + sum(t.log.size for t in record.tenants.values()), jobs=len(record.jobs), tenants=len(record.tenants),
                   main_size=record.main.size, main_root=record.main.tree.root(record.main.size).hex())
        if args.replay:
            replay = Replay(record)
            out.update(made_again=replay.models, replay_digest=sha256("".join(replay.done).encode()), not_made_again=replay.skipped)
    except Bad as error:
        out, code = {"holds": False, "finding": str(error)}, 1
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, zlib.error) as error:
        out, code = {"holds": False, "finding": f"not in the form of a record: {type(error).__name__}: {error}"}, 1
    except OSError as error:
        out, code = {"holds": False, "finding": f"{error.filename}: {error.strerror}"}, 2
    text = json.dumps(out) if args.format == "json" else tell(out)
    print("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text))  # nothing that a terminal obeys
    return code

def tell(out):
    if not out["holds"]:
        return f"The record does not hold: {out['finding']}"
    text = [f"{out['entries']} entries of {out['tenants']} ledgers and the main chain are consistent and signed, "
            f"up to size {out['main_size']} of the main chain."]
    if "made_again" in out:
        text.append(f"{out['made_again']} models and directions were made again, bit for bit (their digests: {out['replay_digest'][:16]}…).")
        text += [f"Not made again: {line}." for line in out["not_made_again"]]
    return "\n".join(text)

if __name__ == "__main__":
    sys.exit(main())
