"""What the source checks share: the files of the project, C without comments, a self-test harness."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def files(root):
    """Relative paths of all files that git does not ignore; without git, all but build folders."""
    try:
        out = subprocess.run(["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],
                             check=True, capture_output=True).stdout.decode()
        found = [f for f in out.split("\0") if f]
    except (OSError, subprocess.CalledProcessError):
        found = []
        for folder, folders, names in os.walk(root):
            folders[:] = [d for d in folders if not d.startswith(("build", ".git", "out"))]
            found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(f for f in found if os.path.isfile(os.path.join(root, f)))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def bare(text):
    """C with comments and literals blanked; lines stay where they are. Includes keep their names."""
    def blank(m):
        s = m.group(0)
        line = text[text.rfind("\n", 0, m.start()) + 1:m.start()]
        if s[0] == '"' and line.lstrip().startswith("#"):
            return s
        return re.sub(r"[^\n]", " ", s) if s[0] == "/" else s[0] + s[0]
    return TOKEN.sub(blank, text)


def report(problems, what):
    for p in problems:
        print(p)
    print(f"{what}: {len(problems)} problem(s)" if problems else f"{what}: clean")
    return 1 if problems else 0


def expect(problems, wanted):
    """Self-test: each wanted text must be found in some problem; nothing else may be reported."""
    missing = [w for w in wanted if not any(w in p for p in problems)]
    extra = [p for p in problems if not any(w in p for w in wanted)]
    for w in missing:
        print(f"self-test: a planted violation was not found: {w}")
    for p in extra:
        print(f"self-test: reported, but nothing is wrong there: {p}")
    if missing or extra:
        sys.exit(1)
    print(f"self-test: all {len(wanted)} planted violations found")
