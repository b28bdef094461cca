"""Reads a safetensors file for PyTorch by the format's description; Debian has no package for it."""

import json

import torch


def read_safetensors(path):
    """The file's float32 tensors by their names."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:begin]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", name
        first, last = (begin + offset for offset in entry["data_offsets"])
        values = torch.frombuffer(bytearray(content[first:last]), dtype=torch.float32)
        tensors[name] = values.reshape(entry["shape"])
    return tensors
