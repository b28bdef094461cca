"""Small data sets of every kind that the properties train on, the same for a seed on any machine."""
import gzip
import os
import struct
import zlib

import h5py
import numpy as np

WORDS = ("to be or not that is the question whether tis nobler in mind suffer slings and arrows of "
         "outrageous fortune").split()
TABLE_COLUMNS = ("a", "b", "c", "kind")


def sentence(random, low=4, high=14):
    return " ".join(random.choice(WORDS, random.integers(low, high)))


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def png(pixels):
    """The bytes of a PNG file of uint8 pixels [height, width] or [height, width, 3]."""
    def chunk(kind, body):
        return (struct.pack(">I", len(body)) + kind + body
                + struct.pack(">I", zlib.crc32(kind + body)))
    colour = 2 if pixels.ndim == 3 else 0
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, colour, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def write_images(folder, random):
    for split, count in (("train", 24), ("val", 7), ("test", 9)):
        for label, shade in (("cat", 60), ("dog", 130)):
            os.makedirs(f"{folder}/{split}/{label}")
            for i in range(count):
                shape = (int(random.integers(13, 22)), int(random.integers(12, 24)))
                if random.random() < 0.7:
                    shape += (3,)
                pixels = (random.integers(0, 120, shape) + shade).astype(np.uint8)
                with open(f"{folder}/{split}/{label}/{i}.png", "wb") as file:
                    file.write(png(pixels))


def table_rows(random, count):
    rows = []
    for _ in range(count):
        values = random.normal(size=3)
        kind = "small" if values[0] + 0.5 * values[1] < 0 else "large"
        rows.append([f"{value:.4f}" for value in values] + [kind])
    return rows


def write_table(path, rows, order=(0, 1, 2, 3)):
    """A CSV file whose columns, names and values, stand in this order."""
    lines = [",".join(row[i] for i in order) for row in [TABLE_COLUMNS, *rows]]
    write_text(path, "\n".join(lines) + "\n")


def write_arrays(path, random):
    with h5py.File(path, "w") as file:
        for prefix, count in (("train_", 210), ("test/", 53)):
            inputs = random.normal(size=(count, 12)).astype("f4")
            file[prefix + "inputs"] = inputs
            file[prefix + "targets"] = np.argmax(inputs[:, :3], axis=1).astype("i8")
        inputs = random.normal(size=(210, 12)).astype("f4")
        file["real_inputs"] = inputs
        file["real_targets"] = (inputs[:, :2] * 3 + 1).astype("f4")
        file["signals"] = random.normal(size=(200, 4, 20)).astype("f4")
        file["signal_targets"] = random.integers(0, 4, 200)


def write_idx(folder, random):
    os.makedirs(folder)
    for split, count in (("train", 130), ("t10k", 37)):
        labels = random.integers(0, 10, count).astype(np.uint8)
        pixels = random.integers(0, 90, (count, 28, 28)).astype(np.uint8)
        for image, label in zip(pixels, labels):
            image[2 * label:2 * label + 4] += 120
        with gzip.GzipFile(f"{folder}/{split}-images-idx3-ubyte.gz", "wb", mtime=0) as file:
            file.write(struct.pack(">IIII", 0x803, count, 28, 28) + pixels.tobytes())
        with open(f"{folder}/{split}-labels-idx1-ubyte", "wb") as file:
            file.write(struct.pack(">II", 0x801, count) + labels.tobytes())


def write_cifar(folder, random):
    os.makedirs(folder)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        records = random.integers(0, 256, (20, 3073)).astype(np.uint8)
        records[:, 0] %= 10
        with open(f"{folder}/{name}.bin", "wb") as file:
            file.write(records.tobytes())


def make_data(folder, seed):
    """Writes all of it into a new folder."""
    random = np.random.default_rng(seed)
    os.makedirs(folder)
    write_text(f"{folder}/text.txt", "\n".join(sentence(random) for _ in range(350)))
    write_text(f"{folder}/labelled.txt", "".join(
        f"{random.integers(0, 3)} {sentence(random)}\n" for _ in range(300)))
    pairs = [f'"{sentence(random)}","{sentence(random)}",{random.integers(0, 2)}'
             for _ in range(220)]
    write_text(f"{folder}/pairs.csv", "\n".join(["first,second,y", *pairs]) + "\n")
    rows = table_rows(random, 210)
    write_table(f"{folder}/table.csv", rows)
    write_table(f"{folder}/permuted.csv", rows, (2, 0, 1, 3))
    write_arrays(f"{folder}/arrays.h5", random)
    write_images(f"{folder}/images", random)
    write_idx(f"{folder}/idx", random)
    write_cifar(f"{folder}/cifar", random)
    os.makedirs(f"{folder}/tokens")
    for split, count in (("train", 3000), ("val", 400), ("test", 400)):
        random.integers(0, 50, count).astype("<u2").tofile(f"{folder}/tokens/{split}.bin")
