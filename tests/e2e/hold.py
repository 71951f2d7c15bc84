"""Rounds that wait for their test: where a round takes some milliseconds, a job would be over before a test has ended its programs
as often as it means to. The trainers of a federation begin no training while as many rounds are closed as the test allows."""

import pathlib


class Hold:
    """For the federation of poc in `folder`: `trainer` is what its sites call, kedge-train behind a wait. `log`: the coordinator's."""

    def __init__(self, bin_dir, folder, log=None):
        log = log or folder / "logs" / "coordinator.log"
        self.limit = folder.parent / f"{folder.name}.limit"
        self.trainer = folder.parent / f"{folder.name}.trainer"
        self.trainer.write_text(f"""#!/bin/sh
closed() {{ sed -n 's/.*"round closed","detail":"job=[^ ]* round=\\([0-9]*\\) .*/\\1/p' '{log}' | tail -n 1; }}
held() {{ limit=$(cat '{self.limit}' 2>/dev/null) && closed=$(closed) && [ "${{closed:-0}}" -ge "$limit" ]; }}
while read -r line; do
    case "$line" in *'"op":"train"'*) while held; do sleep 0.02; done ;; esac
    printf '%s\\n' "$line"
done | exec '{bin_dir}/kedge-train'
""")
        self.trainer.chmod(0o755)

    def allow(self, rounds):
        """So many are closed, then the next one waits."""
        fresh = pathlib.Path(f"{self.limit}.new")
        fresh.write_text(str(rounds))
        fresh.rename(self.limit)  # nobody reads half of it

    def allow_kills(self, killed, kills, rounds):
        """As many rounds as leave each of the kills that are still to come some of its own."""
        if killed < kills:
            self.allow(rounds * (killed + 1) // (kills + 1))
        else:
            self.free()

    def free(self):
        self.limit.unlink(missing_ok=True)
