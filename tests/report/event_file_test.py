"""Reads TensorBoard's event files of runs, after the description of the format, and compares them
with metrics.jsonl: of a run to the end, and of one that was killed and resumed.

usage: event_file_test.py LACUNA FOLDER

TFRecord: length (uint64), masked CRC-32C of its 8 bytes, data, masked CRC-32C of the data; all little
endian; masked: rotated right by 15 bits, plus 0xa282ead8. Data is an Event of protocol buffers:
wall_time = 1 (double), step = 2 (int64), file_version = 3, summary = 5; Summary: value = 1; Value:
tag = 1, simple_value = 2 (float), image = 4; Image: height = 1, width = 2, encoded_image_string = 4.
"""
import glob
import json
import os
import struct
import sys
import zlib

from tiny_runs import fresh_folder, train


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    with open(path, "rb") as file:
        data = file.read()
    place = 0
    while place < len(data):
        head = data[place:place + 8]
        (length,) = struct.unpack("<Q", head)
        assert struct.unpack_from("<I", data, place + 8)[0] == masked(head), "length's checksum"
        record = data[place + 12:place + 12 + length]
        assert len(record) == length, "cut off"
        assert struct.unpack_from("<I", data, place + 12 + length)[0] == masked(record), "checksum"
        place += length + 16
        yield record


def fields(data):
    place = 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 1:
            value, place = struct.unpack_from("<d", data, place)[0], place + 8
        elif kind == 5:
            value, place = struct.unpack_from("<f", data, place)[0], place + 4
        else:
            assert kind == 2, kind
            size = varint()
            value, place = data[place:place + size], place + size
        yield key >> 3, value


def read_run(run):
    """{(tag, step): float or (width, height, png)}; nothing may be there twice."""
    files = glob.glob(os.path.join(run, "tensorboard", "*tfevents*"))
    assert len(files) == 1, files
    found, times = {}, []
    for number, record in enumerate(records(files[0])):
        event = dict(fields(record))
        times.append(event[1])
        if number == 0:
            assert event[3] == b"brain.Event:2", event
            continue
        for field, value in fields(event[5]):
            assert field == 1
            value = dict(fields(value))
            key = (value[1].decode(), event.get(2, 0))
            assert key not in found, f"{key} appears twice"
            if 4 in value:
                image = dict(fields(value[4]))
                found[key] = (image[2], image[1], image[4])
            else:
                found[key] = value[2]
    return found, times


def expected_of(run):
    """What metrics.jsonl says, under the tags of docs/reference/run-folder.md."""
    expected = {}

    def add(tag, event, value):
        expected[(tag, event["step"])] = struct.unpack("<f", struct.pack("<f", value))[0]

    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as lines:
        for event in map(json.loads, lines):
            split = event["split"]
            if split == "update":
                for key in ("churn", "dropped", "grown", "nnz", "ever_active", "dead_rows",
                            "dead_columns"):
                    add(f"{key}/{event['parameter']}", event, event[key])
                continue
            for key in ("loss", "accuracy", "top5_accuracy", "perplexity"):
                if key in event:
                    add(f"{split}/{key}", event, event[key])
            if split == "train":
                add("train/lr", event, event["lr"])
                add("train/examples_per_second", event, event["examples_per_second"])
            for name, fractions in event.get("sparsity", {}).items():
                for key, value in fractions.items():
                    add(f"sparsity/{name}/{key}", event, value)
    return expected


def dark_pixels(png):
    """How many pixels of a picture of two colours are dark."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    place, packed = 8, b""
    while place < len(png):
        size, kind = struct.unpack_from(">I4s", png, place)
        body = png[place + 8:place + 8 + size]
        assert struct.unpack_from(">I", png, place + 8 + size)[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, bits = struct.unpack_from(">IIB", body)
        if kind == b"IDAT":
            packed += body
        place += size + 12
    assert bits == 1
    raw = zlib.decompress(packed)
    line = (width + 7) // 8 + 1
    assert len(raw) == line * height
    return sum(bin(byte).count("1") for y in range(height)
               for byte in raw[y * line + 1:(y + 1) * line])


def check(run):
    found, times = read_run(run)
    scalars = {key: value for key, value in found.items() if not isinstance(value, tuple)}
    expected = expected_of(run)
    assert len(expected) > 100
    assert scalars == expected, set(scalars) ^ set(expected)
    assert times == sorted(times), "time goes back"
    pictures = {key: value for key, value in found.items() if isinstance(value, tuple)}
    steps = {0, 18, 36, 54, 72}
    assert set(pictures) == {(f"mask/fc{i}.weight", step) for i in (1, 2) for step in steps}
    width, height, png = pictures[("mask/fc2.weight", 72)]
    assert (width, height) == (40, 10)
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        layer = [p for p in json.load(file)["parameters"] if p["name"] == "fc2.weight"][0]
    assert dark_pixels(png) == layer["nnz"]
    return {key: value for key, value in found.items() if key[0] != "train/examples_per_second"}


def main():
    program, folder = sys.argv[1], fresh_folder(sys.argv[2])
    vectors = {bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43, bytes(range(32)): 0x46DD794E}
    for data, crc in vectors.items():  # RFC 3720, appendix B.4
        assert crc32c(data) == crc
    tensorboard = ("--set", "train.tensorboard=true")
    whole = check(train(program, folder, "whole", *tensorboard))
    for name, fault in (("early", "step.between:3"), ("late", "step.between:40")):
        run = train(program, folder, name, *tensorboard, expect=-9, LACUNA_FAULT=fault)
        with open(glob.glob(os.path.join(run, "tensorboard", "*"))[0], "ab") as file:
            file.write(b"half a record")
        assert check(train(program, folder, name, "--resume")) == whole, name
    # One that begins without, and one that is asked to go on when it has ended.
    train(program, folder, "switched", expect=-9, LACUNA_FAULT="step.between:30")
    assert check(train(program, folder, "switched", "--resume", *tensorboard)) == whole
    assert check(train(program, folder, "whole", "--resume")) == whole


if __name__ == "__main__":
    main()
