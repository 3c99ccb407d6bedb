"""Safetensors files, and checkpoints with other weights, for the comparisons of this folder."""

import json
import struct
from pathlib import Path

import numpy as np

TYPES = {"F32": np.float32, "I64": np.int64, "F64": np.float64}


def read(path):
    """({name: array}, metadata) of a file; tensors of other types than TYPES are left out."""
    raw = Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] in TYPES:
            start, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(raw[start:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def write(path, tensors, metadata):
    names = {np.dtype(each): name for name, each in TYPES.items()}
    header, data = {"__metadata__": metadata}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_with_other_weights(path, change=None):
    """Makes every weight of a checkpoint one that matters: none is zero, no statistic is that of a new model."""
    tensors, metadata = read(path)
    random = np.random.default_rng(5)
    for name, array in tensors.items():
        if array.dtype == np.float32 and array.size:
            noise = random.normal(size=array.shape).astype(np.float32)
            spread = 0.1 if array.ndim < 2 else 0.5 / np.sqrt(np.prod(array.shape[1:]))
            tensors[name] = array + np.float32(spread) * noise
            if name.endswith("running_var"):  # small, so that signals pass through many layers
                tensors[name] = np.float32(0.2) + np.float32(0.05) * np.abs(noise)
    if change:
        change(tensors)
    for key in ("format", "xxh3"):  # its checksum is of other bytes
        metadata.pop(key, None)
    write(path, tensors, metadata)
