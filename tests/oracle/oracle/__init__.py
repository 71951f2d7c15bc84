"""What docs/record.md says that follows from a record's facts, told a second time and compared with what the record says."""

import sys
from pathlib import Path

# The reader of entries, blobs and lists is the one in examples/, which was written from the same page.
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "verifier"))
