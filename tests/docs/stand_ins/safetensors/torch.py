"""load_file and save_file as the package safetensors has them, written from its file format, for machines that lack
the package: eight bytes with the length of a JSON header, the header, then the tensors' bytes."""
import json
import struct

import torch

TYPES = {"F32": torch.float32, "I64": torch.int64, "BOOL": torch.bool, "U8": torch.uint8}


def load_file(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def save_file(tensors, path):
    names = {dtype: name for name, dtype in TYPES.items()}
    header, parts, end = {}, [], 0
    for name, tensor in tensors.items():
        part = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [end, end + len(part)]}
        parts.append(part)
        end += len(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
