"""Parts of golden.py: numbers that are drawn, groups of units, their scores by magnitude, and the
order in which units are removed, from the formulas of docs/guides/shrinking.md."""
import numpy as np

random = np.random.default_rng(21)


def values(*shape, scale=1.0, middle=0.0):
    """Numbers that float32 has exactly, and a short text."""
    drawn = middle + scale * random.uniform(-1, 1, shape)
    return np.round(drawn * 1024) / 1024


def listed(array):
    return [float(f"{value:.9g}") for value in array.ravel()]


def relu(x):  # of complex steps, too
    return np.where(x.real > 0, x, 0)


def cross_entropy(logits, labels):
    shifted = logits - logits.real.max(axis=1, keepdims=True)
    log_sums = np.log(np.exp(shifted).sum(axis=1))
    return (log_sums - shifted[np.arange(len(labels)), labels]).mean()


# The groups of units: (parameter, dimension) of what computes them and of what reads them, and
# of the biases that go with them.
def group_of(units, gives, takes, others):
    return {"units": units, "gives": gives, "takes": takes, "others": others}


BUFFERS = ["bn.running_mean", "bn.running_var"]


def lines(array, dim):
    return np.moveaxis(array, dim, 0).reshape(array.shape[dim], -1)


def magnitude_scores(p, group):
    def mean(slices):
        squares = [(lines(p[name], dim) ** 2).sum(axis=1) for name, dim in slices]
        return np.mean([s / s.mean() for s in squares], axis=0)

    return mean(group["gives"]) * mean(group["takes"])


def without(p, groups, kept):
    """The parameters without the units that do not stay."""
    left = dict(p)
    for group, stays in zip(groups, kept):
        for name, dim in group["gives"] + group["takes"]:
            left[name] = np.compress(stays, left[name], axis=dim)
        for name in group["others"]:
            left[name] = np.compress(stays, left[name], axis=0)
    return left


def flops(p, uses):
    return sum(2.0 * uses[name] * p[name].size for name in uses)


def numbers(p):
    return float(sum(array.size for name, array in p.items() if name not in BUFFERS))


def ranked(scores):
    """(key, group, unit) in the order of removal: each group loses the same fraction."""
    order = []
    for g, own in enumerate(scores):
        for rank, unit in enumerate(np.argsort(own, kind="stable")):
            order.append(((rank + 1) / len(own), g, int(unit)))
    return sorted(order, key=lambda entry: entry[0])


def by_score(scores):
    order = [(own[u], g, u) for g, own in enumerate(scores) for u in range(len(own))]
    return sorted(order, key=lambda entry: entry[0])


def least(group, part):
    return max(1, int(np.ceil(part * group["units"] - 1e-9)))


def in_blocks(order, groups, multiple, part):
    """Blocks of units whose removal leaves multiples, each at the place of its middle unit."""
    blocks = []
    for g, group in enumerate(groups):
        places = [i for i, (_, of, _) in enumerate(order) if of == g]
        left = group["units"]
        while places:
            size = left % multiple or multiple
            if len(places) < size or left - size < least(group, part):
                break
            blocks.append((places[size // 2], [order[i][1:] for i in places[:size]]))
            places, left = places[size:], left - size
    return [block for _, block in sorted(blocks)]


def kept_without(groups, blocks):
    kept = [np.ones(group["units"], bool) for group in groups]
    for block in blocks:
        for g, unit in block:
            kept[g][unit] = False
    return kept


def within(groups, blocks, target, part):
    """The shortest prefix within the target, from which blocks are put back, the last first."""
    for count in range(len(blocks) + 1):
        if part(kept_without(groups, blocks[:count])) <= target:
            break
    removed = blocks[:count]
    if all(len(block) == 1 for block in removed):
        return kept_without(groups, removed)
    for block in reversed(removed[:-1]):
        others = [other for other in removed if other is not block]
        if part(kept_without(groups, others)) <= target:
            removed = others
    return kept_without(groups, removed)


def require_apart(scores, what):
    for own in scores:
        gaps = np.diff(np.sort(own)) / np.abs(own).max()
        assert gaps.min() > 1e-4, (what, gaps.min())
