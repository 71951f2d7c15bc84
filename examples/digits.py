"""The digits of data/digits as a site sees them: its own part of the images, some of it for tests."""
import struct
from pathlib import Path

import numpy as np


def idx(path):
    """An IDX file of unsigned bytes."""
    data = Path(path).read_bytes()
    zero, kind, dims = struct.unpack(">HBB", data[:4])
    if zero != 0 or kind != 8:
        raise ValueError(f"{path}: expected an IDX file of unsigned bytes")
    shape = struct.unpack(f">{dims}I", data[4:4 + 4 * dims])
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * dims).reshape(shape)


def load(binding):
    """(train x, train y, test x, test y) of what the owner has bound: {"train": {"images": …, "labels": …}, "part": [0, 4]}."""
    images, labels = idx(binding["train"]["images"]), idx(binding["train"]["labels"])
    part, parts = binding.get("part", [0, 1])
    mine = np.arange(part, len(labels), parts)
    x, y = images[mine].reshape(len(mine), -1).astype(np.float32) / 16, labels[mine].astype(np.int64)
    held_out = len(mine) // 5
    return x[held_out:], y[held_out:], x[:held_out], y[:held_out]
