#!/usr/bin/env python3
"""Writes golden_dead.json: what `lacuna shrink --method dead` removes of a network with masks,
where the constant outputs of removed units go, and what is left of weights, masks and optimizer
states; computed with NumPy from docs/guides/shrinking.md.

usage: golden_dead.py > golden_dead.json

The dependencies between layers are written down by hand, and everything is computed in double
precision.
"""
import json
import sys

import numpy as np

random = np.random.default_rng(24)
SIZE = 7  # of images
LAYERS = """
- {type: conv2d, name: first, out_channels: 6, kernel: 3, padding: 1}
- relu
- {type: conv2d, name: stem, out_channels: 8, kernel: 3, padding: 1, bias: false}
- {type: batch_norm, name: bn}
- relu
- {type: residual, name: block, layers: [
    {type: conv2d, name: inner, out_channels: 7, kernel: 3, padding: 1}, relu,
    {type: conv2d, name: outer, out_channels: 8, kernel: 3, padding: 1}]}
- relu
- global_average_pool
- {type: linear, name: fc, out_features: 9}
- relu
- {type: linear, name: out, out_features: 3}
"""
# Units: (parameter, dimension) of what computes them and of what reads them, and what goes along.
GROUPS = {
    "first": ([("first.weight", 0)], [("stem.weight", 1)], [("first.bias", 0)]),
    "stream": (
        [("stem.weight", 0), ("outer.weight", 0)],
        [("inner.weight", 1), ("fc.weight", 1)],
        [
            ("bn.weight", 0),
            ("bn.bias", 0),
            ("bn.running_mean", 0),
            ("bn.running_var", 0),
            ("outer.bias", 0),
        ],
    ),
    "inner": ([("inner.weight", 0)], [("outer.weight", 1)], [("inner.bias", 0)]),
    "fc": ([("fc.weight", 0)], [("out.weight", 1)], [("fc.bias", 0)]),
}


def values(*shape, scale=1.0, middle=0.0):
    """Numbers that float32 has exactly, and a short text."""
    return np.round((middle + scale * random.uniform(-1, 1, shape)) * 1024) / 1024


def listed(array):
    return [float(f"{value:.9g}") for value in array.ravel()]


def shown(arrays):
    return {name: listed(array) for name, array in arrays.items()}


def relu(x):
    return np.maximum(x, 0)


def convolution(x, weight):
    """3 x 3 with padding 1, in NCHW."""
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sum(
        np.einsum("ncij,oc->noij", padded[:, :, r : r + height, c : c + width], weight[:, :, r, c])
        for r in range(3)
        for c in range(3)
    )


def by_channel(v):
    return v[None, :, None, None]


def network(p, x):
    """The outputs in evaluation mode, and what weights that read units are given."""
    given = {}
    given["stem.weight"] = relu(convolution(x, p["first.weight"]) + by_channel(p["first.bias"]))
    y = convolution(given["stem.weight"], p["stem.weight"]) - by_channel(p["bn.running_mean"])
    y = y * by_channel(p["bn.weight"] / np.sqrt(p["bn.running_var"] + 1e-5))
    given["inner.weight"] = y = relu(y + by_channel(p["bn.bias"]))
    inner = relu(convolution(y, p["inner.weight"]) + by_channel(p["inner.bias"]))
    given["outer.weight"] = inner
    y = relu(y + convolution(inner, p["outer.weight"]) + by_channel(p["outer.bias"]))
    given["fc.weight"] = y.mean(axis=(2, 3))
    given["out.weight"] = relu(given["fc.weight"] @ p["fc.weight"].T + p["fc.bias"])
    return given["out.weight"] @ p["out.weight"].T + p["out.bias"], given


def lines(array, dim):
    return np.moveaxis(array, dim, 0).reshape(array.shape[dim], -1)


def living(masks):
    """Units are removed until each that is left has a nonzero of a living unit on both sides."""
    alive = {g: np.ones(masks[gives[0][0]].shape[0], bool) for g, (gives, _, _) in GROUPS.items()}
    while True:
        left = {}
        for name, mask in masks.items():  # between living units
            left[name] = mask.copy()
            for group, (gives, takes, _) in GROUPS.items():
                for dim in (dim for other, dim in gives + takes if other == name):
                    shape = [-1 if i == dim else 1 for i in range(mask.ndim)]
                    left[name] &= alive[group].reshape(shape)
        count = sum(own.sum() for own in alive.values())
        for group, (gives, takes, _) in GROUPS.items():
            for slices in (gives, takes):
                found = [lines(left[name], dim).any(axis=1) for name, dim in slices]
                alive[group] &= np.any(found, axis=0)
        if count == sum(own.sum() for own in alive.values()):
            return alive


def folded(p, given, alive):
    """The mean of what a removed unit gives, times the sum of the taps that read it, is added to
    the bias of the layer that reads it, or subtracted from the running mean after that layer."""
    q = dict(p)
    for group, (_, takes, _) in GROUPS.items():
        for name, _ in takes:
            x = given[name]
            means = x.mean(axis=tuple(i for i in range(x.ndim) if i != 1)) * ~alive[group]
            w = p[name].reshape(*p[name].shape[:2], -1).sum(axis=2)
            bias = name.replace("weight", "bias")
            if bias in q:
                q[bias] = q[bias] + w @ means
            else:
                assert name == "stem.weight"
                q["bn.running_mean"] = q["bn.running_mean"] - w @ means
    return q


def cut(arrays, alive):
    left = dict(arrays)
    for group, slices in GROUPS.items():
        for name, dim in sum(slices, []):
            if name in left:
                left[name] = np.compress(alive[group], left[name], axis=dim)
    return left


def main():
    p = {
        "first.weight": values(6, 2, 3, 3, scale=0.5),
        "first.bias": values(6, scale=0.3, middle=0.3),
        "stem.weight": values(8, 6, 3, 3, scale=0.3),
        "bn.weight": values(8, scale=0.5, middle=1.0),
        "bn.bias": values(8, scale=0.3, middle=0.4),
        "bn.running_mean": values(8, scale=0.2),
        "bn.running_var": values(8, scale=0.5, middle=1.0),
        "inner.weight": values(7, 8, 3, 3, scale=0.2),
        "inner.bias": values(7, scale=0.2, middle=0.2),
        "outer.weight": values(8, 7, 3, 3, scale=0.2),
        "outer.bias": values(8, scale=0.2),
        "fc.weight": values(9, 8, scale=0.5),
        "fc.bias": values(9, scale=0.3, middle=0.5),
        "out.weight": values(3, 9, scale=0.6),
        "out.bias": values(3, scale=0.1),
    }
    masks = {name: random.uniform(size=a.shape) < 0.6 for name, a in p.items() if a.ndim > 1}
    masks["first.weight"][2] = False  # nothing comes in
    masks["stem.weight"][:, 5] = False  # nothing goes out
    masks["stem.weight"][1] = masks["outer.weight"][1] = False  # on both ways into a sum
    masks["inner.weight"][3] = False  # of what reads only that unit, nothing comes in either
    masks["inner.weight"][3, 1, 1, 1] = True
    masks["stem.weight"][4] = False  # on one of the ways alone: stays
    masks["outer.weight"][:, 6] = False
    masks["out.weight"][:, 7] = False
    # What gives only to a unit from which nothing goes out.
    masks["inner.weight"][:, 6] = masks["fc.weight"][:, 6] = False
    masks["fc.weight"][7, 6] = True
    masks["fc.weight"][2] = False
    for name, mask in masks.items():
        p[name] = p[name] * mask
    x = values(5, 2, SIZE, SIZE)
    outputs, given = network(p, x)
    alive = living(masks)
    states = {name: values(*a.shape) for name, a in p.items() if "running" not in name}
    states |= {name: own * masks.get(name, 1) for name, own in states.items()}
    smaller = cut(folded(p, given, alive), alive)
    result = {
        "layers": LAYERS,
        "example": [2, SIZE, SIZE],
        "arrays": shown(p),
        "masks": {name: [int(bit) for bit in mask.ravel()] for name, mask in masks.items()},
        "inputs": listed(x),
        "states": shown(states),
        "before": listed(outputs),
        "kept": {name: np.flatnonzero(own).tolist() for name, own in alive.items()},
        "smaller": shown(smaller),
        "smaller_masks": {
            name: [int(bit) for bit in mask.ravel()] for name, mask in cut(masks, alive).items()
        },
        "smaller_states": shown(cut(states, alive)),
        "after": listed(network(smaller, x)[0]),
    }
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    main()
