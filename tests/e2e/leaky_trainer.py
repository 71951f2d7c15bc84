"""A trainer that shows its data to everything it can reach: standard error, what it prints before an answer, the text of an error, fields
of an answer that nobody asked for, names of files. It trains nothing: what it leaves is the base. By Python's own library.

Usage: leaky_trainer.py
"""
import json
import shutil
import sys
from pathlib import Path


def main():
    for count, line in enumerate(sys.stdin):
        request = json.loads(line)
        secret = Path(request["data"]["train"]["path"]).read_text().splitlines()
        done = Path(secret[1][:40].replace(",", "-"))  # a file whose name is data
        print("rows:", secret[1], secret[2], file=sys.stderr, flush=True)
        if not done.exists():
            done.write_text(secret[1])
            print(json.dumps({"id": request["id"], "status": "error", "code": "data", "message": "bad row " + secret[1]}), flush=True)
            continue
        if request["op"] == "train":
            shutil.copy(request["base"], request["out"])
        print(json.dumps({"id": request["id"], "status": "ok", "samples": 7, "steps": 1, "seconds": "0.1", "row": secret[1], "first": secret[2],
                          "code": secret[1], "message": secret[2], "labels": [1234567890123, 2345678901234], "engine": "a leaky one",
                          "test_samples": 5, "test_correct": 2, "test_loss": "0.5", "train_loss": secret[1].split(",")[0]}), flush=True)


if __name__ == "__main__":
    main()
