"""Small data sets and initial weights, made from random numbers that are the same everywhere.

Each maker writes the files that a `data` section reads and returns what PyTorch reads instead.
"""
import collections
import os

import numpy as np

from data_order import CounterRng

CLASSES = 10
VOCABULARY = 30  # of tokens(), the mask among them
MASK_ID = 29
MOST_WORDS = 12


def images(count, shape, name):
    """Bytes [count, *shape] and labels: a pattern of the class, and as much noise."""
    rng, size = CounterRng(1, name), int(np.prod(shape))
    labels = rng.below(np.arange(count), CLASSES)
    patterns = CounterRng(1, "patterns").below(np.arange(CLASSES * size), 128).reshape(CLASSES, size)
    noise = (rng.bits(8 * count + np.arange(count * size)) >> np.uint64(25)).astype(np.int64)
    pixels = (patterns[labels] + noise.reshape(count, size)).astype(np.uint8)
    return pixels.reshape(count, *shape), labels


def write_idx(path, array):
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    with open(path, "wb") as file:
        file.write(bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes())


def digits(folder, train=640, test=200):
    """Images of 28 x 28 in MNIST's format."""
    splits = {}
    for split, name, count in (("train", "train", train), ("test", "t10k", test)):
        pixels, labels = images(count, (28, 28), "digits." + split)
        write_idx(f"{folder}/{name}-images-idx3-ubyte", pixels)
        write_idx(f"{folder}/{name}-labels-idx1-ubyte", labels)
        splits[split] = (pixels[:, None], labels)
    return splits


def pictures(folder, train=320, test=100):
    """Images of 3 x 32 x 32 in CIFAR-10's format. *Requires* a multiple of five training images."""
    splits = {}
    for split, count in (("train", train), ("test", test)):
        pixels, labels = images(count, (3, 32, 32), "pictures." + split)
        records = np.concatenate([labels[:, None].astype(np.uint8), pixels.reshape(count, -1)], axis=1)
        if split == "test":
            records.tofile(f"{folder}/test_batch.bin")
        else:
            for i, part in enumerate(np.split(records, 5)):
                part.tofile(f"{folder}/data_batch_{i + 1}.bin")
        splits[split] = (pixels, labels)
    return splits


def tokens(folder, count=3000):
    """A sequence of tokens below MASK_ID in 16 bits each, in which most tokens follow from the one before."""
    noise = CounterRng(1, "tokens").below(np.arange(count), 4).tolist()
    sequence = [0]
    for i in range(1, count):
        sequence.append((7 * sequence[-1] + 3 + noise[i]) % MASK_ID)
    sequence = np.array(sequence)
    sequence.astype("<u2").tofile(f"{folder}/train.bin")
    return {"train": sequence}


def sentences(folder, count=400):
    """Lines of a label and 1 to MOST_WORDS words, of which the label can be told. Returns the ids of each
    sentence, as the tokenizer `words` numbers them: after [PAD] and [UNK], the most frequent word first."""
    rng, lines, labels = CounterRng(1, "sentences"), [], []
    for i in range(count):
        length = 1 + int(rng.below(64 * i, MOST_WORDS))
        drawn = rng.below(64 * i + 1 + np.arange(length), 200)
        words = [f"w{int(d) * int(d) // 2000}" for d in drawn]
        labels.append(int(sum(d % 2 for d in map(int, drawn)) * 2 > length))
        lines.append([f"{word}{'ab'[labels[-1]]}" if k == 0 else word for k, word in enumerate(words)])
    with open(f"{folder}/train.txt", "w", encoding="ascii") as file:
        file.writelines(f"{label} {' '.join(words)}\n" for label, words in zip(labels, lines))
    counts = collections.Counter(word for words in lines for word in words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    ids = {word: 2 + rank for rank, word in enumerate(ranked)}
    return {"train": ([[ids[word] for word in words] for words in lines], np.array(labels)),
            "vocabulary": 2 + len(ids)}


MAKERS = {"mnist": digits, "cifar10": pictures, "tokens": tokens, "labelled_text": sentences}


def make(kind, folder):
    """The splits of a kind of data, a key of MAKERS, whose files lie in `folder` then."""
    os.makedirs(folder, exist_ok=True)
    return MAKERS[kind](folder)


def weights(shapes):
    """Values of parameters and buffers from their names: factors of norms near 1, running variances 1, biases
    small, all others uniform with a variance of 1 / inputs."""
    values = {}
    for name, shape in shapes.items():
        uniform = CounterRng(1, name).uniform(np.arange(int(np.prod(shape)))).reshape(shape) * 2 - 1
        kind = name.rsplit(".", 1)[1]
        if kind == "running_var":
            value = np.ones(shape)
        elif kind == "running_mean":
            value = np.zeros(shape)
        elif len(shape) == 1:
            value = 0.1 * uniform + (kind == "weight")
        else:
            value = uniform * np.sqrt(3.0 / np.prod(shape[1:]))
        values[name] = value.astype(np.float32)
    return values


def masks(shapes, names, density):
    """Masks with that share of ones, to the nearest number, at positions drawn without replacement."""
    made = {}
    for name in names:
        mask = np.zeros(int(np.prod(shapes[name])), dtype=bool)
        draws = CounterRng(1, name + "/mask").bits(np.arange(mask.size))
        mask[np.argsort(draws, kind="stable")[:round(density * mask.size)]] = True
        made[name] = mask.reshape(shapes[name])
    return made
