"""Which examples make up which batch, and how they are changed: lacuna's random numbers in NumPy.

docs/reference/data-order.md describes these rules. Everything is a pure function of the seed (train.seed), a name, a
stream (the epoch) and an index. Nothing here needs lacuna or PyTorch.
"""
import numpy as np

WORD = 0xFFFFFFFF
IGNORED = -100  # the label of a token that is not predicted
BATCHES_IN_RUN = 50
MOST_IN_MEMORY = 1 << 24


def hash_name(name):
    """64-bit FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def philox(counter, key):
    """Philox4x32-10: four words (arrays of uint64 below 2^32) from a counter of four and a key of two."""
    c, k = [np.asarray(word, dtype=np.uint64) for word in counter], list(key)
    low, half = np.uint64(WORD), np.uint64(32)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> half) ^ c[1] ^ np.uint64(k[0]), p1 & low, (p0 >> half) ^ c[3] ^ np.uint64(k[1]), p0 & low]
        k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
    return c


class CounterRng:
    """The random numbers of (seed, name, stream). Indices are integers or arrays of them."""

    def __init__(self, seed, name, stream=0):
        hashed = hash_name(name)
        mixed = philox([hashed & WORD, hashed >> 32, 0, 0], [seed & WORD, seed >> 32])
        self._key = (int(mixed[0]), int(mixed[1]))
        self._stream = (stream & WORD, stream >> 32)

    def block(self, index):
        """Words 4 index … 4 index + 3 of the sequence."""
        index = np.asarray(index, dtype=np.uint64)
        return philox([index & np.uint64(WORD), index >> np.uint64(32), *self._stream], self._key)

    def bits(self, index):
        """Word `index` of the sequence: uniform over 32 bits."""
        index = np.asarray(index, dtype=np.uint64)
        return np.choose((index & np.uint64(3)).astype(int), self.block(index >> np.uint64(2)))

    def uniform(self, index):
        """In [0, 1), a multiple of 2^-24."""
        return (self.bits(index) >> np.uint64(8)).astype(np.float64) * 2.0**-24

    def below(self, index, bound):
        """Uniform over [0, bound). Each index has two draws of 64 bits; the second replaces a first one that is
        at or above the largest multiple of the bound."""
        words, bound = self.block(index), np.asarray(bound, dtype=np.uint64)
        first = words[1] << np.uint64(32) | words[0]
        second = words[3] << np.uint64(32) | words[2]
        largest = np.uint64(0xFFFFFFFFFFFFFFFF)
        return (np.where(first < largest - largest % bound, first, second) % bound).astype(np.int64)


def permutation(size, seed, name, stream=0):
    """0 … size − 1, shuffled by Fisher and Yates from the last place on."""
    places = np.arange(size, 1, -1)
    others = CounterRng(seed, name, stream).below(places - 1, places).tolist()
    order = list(range(size))
    for place, other in zip((places - 1).tolist(), others):
        order[place], order[other] = order[other], order[place]
    return np.array(order, dtype=np.int64)


def scattered(indices, size, seed, name, stream=0):
    """What takes the place of permutation(...)[indices] above MOST_IN_MEMORY examples: a Feistel network of six
    rounds, through which numbers beyond the size are sent again."""
    rng, half_bits = CounterRng(seed, name, stream), 1
    while half_bits < 31 and (1 << 2 * half_bits) < size:
        half_bits += 1
    half, mask = np.uint64(half_bits), np.uint64((1 << half_bits) - 1)
    numbers = np.array(indices, dtype=np.uint64)
    open_ = np.ones(len(numbers), dtype=bool)
    while open_.any():
        left, right = numbers[open_] >> half, numbers[open_] & mask
        for step in range(6):
            left, right = right, left ^ (rng.bits(np.uint64(step) << half | right) & mask)
        numbers[open_] = left << half | right
        open_ = numbers >= size
    return numbers.astype(np.int64)


def balanced_draws(labels, seed, epoch):
    """The draws of an epoch of data.sampling: balanced, class after class."""
    order = permutation(len(labels), seed, "balanced", epoch)
    members = [order[np.asarray(labels)[order] == label] for label in np.unique(labels) if label != IGNORED]
    quotas = [len(labels) // len(members)] * len(members)
    for place in permutation(len(members), seed, "balanced.classes", epoch)[:len(labels) % len(members)]:
        quotas[place] += 1
    return np.concatenate([np.resize(examples, quota) for examples, quota in zip(members, quotas)])


def epoch_batches(size, batch_size, seed, epoch, lengths=None, drop_last=False, labels=None):
    """The examples of each batch of an epoch. `lengths`: tokens of each example, where they differ. `labels`: of
    each example, where classes are drawn equally often."""
    if labels is not None:
        order = balanced_draws(labels, seed, epoch)[permutation(size, seed, "loader", epoch)]
    elif size > MOST_IN_MEMORY and lengths is None:
        order = scattered(np.arange(size), size, seed, "loader", epoch)
    else:
        order = permutation(size, seed, "loader", epoch)
    whole = size // batch_size
    if lengths is not None:
        lengths = np.asarray(lengths)
        for first in range(0, whole, BATCHES_IN_RUN):
            part = slice(first * batch_size, min(first + BATCHES_IN_RUN, whole) * batch_size)
            order[part] = order[part][np.argsort(lengths[order[part]], kind="stable")]
        mixed = permutation(whole, seed, "loader.batches", epoch)
        order = np.concatenate([order[b * batch_size:(b + 1) * batch_size] for b in mixed] +
                               [order[whole * batch_size:]])
    end = whole * batch_size if drop_last else size
    return [order[first:min(first + batch_size, size)] for first in range(0, end, batch_size)]


def batches(size, batch_size, seed, **options):
    """(epoch, examples) of every batch, without end."""
    epoch = 0
    while True:
        for examples in epoch_batches(size, batch_size, seed, epoch, **options):
            yield epoch, examples
        epoch += 1


def held_out(size, count, seed):
    """The examples that stay for training and those of the validation split (data.validation: count)."""
    order = permutation(size, seed, "validation")
    return np.sort(order[count:]), np.sort(order[:count])


def shard(index, shards, examples):
    """Places in the batch of a shard's examples."""
    return slice(index * examples // shards, (index + 1) * examples // shards)


def cropped_and_flipped(images, indices, seed, epoch, crop=0, flip=False):
    """Images [n, channels, rows, columns] of bytes, as data.augment changes those with these indices."""
    rng, (rows, columns) = CounterRng(seed, "augment", epoch), images.shape[2:]
    changed = np.zeros_like(images)
    padded = np.pad(images, ((0, 0), (0, 0), (crop, crop), (crop, crop)))
    for i, index in enumerate(np.asarray(indices).tolist()):
        down = right = 0
        if crop:
            down = int(rng.below(8 * index, 2 * crop + 1))
            right = int(rng.below(8 * index + 1, 2 * crop + 1))
        changed[i] = padded[i, :, down:down + rows, right:right + columns]
        if flip and rng.below(8 * index + 2, 2) == 1:
            changed[i] = changed[i, :, :, ::-1]
    return changed


def hidden_tokens(ids, index, seed, epoch, fraction, mask_id, vocabulary_size, special_ids):
    """One example of a masked language model: the ids that the model reads, and the labels."""
    rng = CounterRng(seed, "hidden tokens in training", epoch)
    special_ids = sorted(special_ids)
    read, labels = np.array(ids), np.array(ids)
    labels[np.isin(labels, special_ids)] = IGNORED
    open_ = int((labels != IGNORED).sum())
    missing = min(max(int(np.floor(fraction * open_ + 0.5)), 1), open_)
    for i in range(len(ids)):
        if labels[i] == IGNORED:
            continue
        place = (index * len(ids) + i) * 3
        if rng.below(place, open_) >= missing:
            labels[i] = IGNORED
        else:
            missing -= 1
            fate = int(rng.below(place + 1, 10))
            if fate < 8:
                read[i] = mask_id
            elif fate == 8:
                token = int(rng.below(place + 2, vocabulary_size - len(special_ids)))
                for special in special_ids:
                    token += token >= special
                read[i] = token
        open_ -= 1
    return read, labels
