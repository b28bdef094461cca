#!/usr/bin/env python3
"""Writes golden.json: which units `lacuna shrink` and `structured` remove, and what is left of a
model, computed with NumPy from the formulas of docs/guides/shrinking.md.

usage: golden.py > golden.json

The dependencies between layers are written down by hand, derivatives are taken by complex steps,
and everything is computed in double precision.
"""
import json
import sys

import numpy as np
from golden_units import (
    by_score,
    cross_entropy,
    flops,
    group_of,
    in_blocks,
    lines,
    listed,
    magnitude_scores,
    numbers,
    random,
    ranked,
    relu,
    require_apart,
    values,
    within,
    without,
)


def convolution(x, weight, bias=None):
    """3 x 3 with padding 1, in NCHW."""
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = sum(
        np.einsum("ncij,oc->noij", padded[:, :, r : r + height, c : c + width], weight[:, :, r, c])
        for r in range(3)
        for c in range(3)
    )
    return y if bias is None else y + bias[None, :, None, None]


def network(p, x, inputs=None):
    """stem, bn, relu, a residual block, relu, mean, fc, relu, out: in evaluation mode. What weights
    that read units are given goes into `inputs`."""
    given = {} if inputs is None else inputs
    y = convolution(x, p["stem.weight"])
    factor = p["bn.weight"] / np.sqrt(p["bn.running_var"] + 1e-5)
    y = (y - p["bn.running_mean"][None, :, None, None]) * factor[None, :, None, None]
    y = relu(y + p["bn.bias"][None, :, None, None])
    given["inner.weight"] = y
    inner = relu(convolution(y, p["inner.weight"], p["inner.bias"]))
    given["outer.weight"] = inner
    y = relu(y + convolution(inner, p["outer.weight"], p["outer.bias"]))
    y = y.mean(axis=(2, 3))
    given["fc.weight"] = y
    y = relu(y @ p["fc.weight"].T + p["fc.bias"])
    given["out.weight"] = y
    return y @ p["out.weight"].T + p["out.bias"]


LAYERS = """
- {type: conv2d, name: stem, out_channels: 8, kernel: 3, padding: 1, bias: false}
- {type: batch_norm, name: bn}
- relu
- {type: residual, name: block, layers: [
    {type: conv2d, name: inner, out_channels: 12, kernel: 3, padding: 1}, relu,
    {type: conv2d, name: outer, out_channels: 8, kernel: 3, padding: 1}]}
- relu
- global_average_pool
- {type: linear, name: fc, out_features: 10}
- relu
- {type: linear, name: out, out_features: 3}
"""
SIZE = 6  # of images
NETWORK_GROUPS = [
    group_of(
        8,
        [("stem.weight", 0), ("bn.weight", 0), ("outer.weight", 0)],
        [("inner.weight", 1), ("fc.weight", 1)],
        ["bn.bias", "bn.running_mean", "bn.running_var", "outer.bias"],
    ),
    group_of(12, [("inner.weight", 0)], [("outer.weight", 1)], ["inner.bias"]),
    group_of(10, [("fc.weight", 0)], [("out.weight", 1)], ["fc.bias"]),
]
def columns_given(x):
    """[rows, inputs * taps]: of images, what each pixel of a 3 x 3 convolution reads."""
    if x.ndim == 2:
        return x
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = [padded[:, :, r : r + height, c : c + width] for r in range(3) for c in range(3)]
    return np.stack(taps, axis=2).transpose(0, 3, 4, 1, 2).reshape(-1, x.shape[1] * 9)


def error_scores(p, inputs, group):
    """tr(W_S (H^-1_SS)^-1 W_S^T) / ||X W^T||^2, where H has 1 % of its mean diagonal added."""
    scores = np.zeros(group["units"])
    for name, _ in group["takes"]:
        x, w = columns_given(inputs[name]), lines(p[name], 0)
        gram = x.T @ x
        damped = gram + 0.01 * np.trace(gram) / len(gram) * np.eye(len(gram))
        inverse = np.linalg.inv(damped)
        taps = len(gram) // group["units"]
        for unit in range(group["units"]):
            own = slice(unit * taps, (unit + 1) * taps)
            block = np.linalg.inv(inverse[own, own])
            scores[unit] += np.trace(w[:, own] @ block @ w[:, own].T) / ((x @ w.T) ** 2).sum()
    return scores


def choices():
    p = {
        "stem.weight": values(8, 2, 3, 3, scale=0.5),
        "bn.weight": values(8, scale=0.5, middle=1.0),
        "bn.bias": values(8, scale=0.3),
        "bn.running_mean": values(8, scale=0.2),
        "bn.running_var": values(8, scale=0.5, middle=1.0),
        "inner.weight": values(12, 8, 3, 3, scale=0.2),
        "inner.bias": values(12, scale=0.2),
        "outer.weight": values(8, 12, 3, 3, scale=0.2),
        "outer.bias": values(8, scale=0.2),
        "fc.weight": values(10, 8, scale=0.5),
        "fc.bias": values(10, scale=0.3, middle=0.6),
        "out.weight": values(3, 10, scale=0.6),
        "out.bias": values(3, scale=0.1),
    }
    x = values(6, 2, SIZE, SIZE)
    labels = np.array([0, 1, 2, 2, 1, 0])
    pixels = SIZE * SIZE
    uses = dict.fromkeys(["stem.weight", "inner.weight", "outer.weight"], pixels)
    uses |= {"fc.weight": 1, "out.weight": 1}
    groups = NETWORK_GROUPS

    def change(group, unit, batch):
        """The derivative of the loss by a factor of the weights that read a unit."""
        moved = dict(p)
        for name, dim in group["takes"]:
            factor = np.ones(group["units"], complex)
            factor[unit] += 1e-30j
            shape = [-1 if i == dim else 1 for i in range(p[name].ndim)]
            moved[name] = p[name] * factor.reshape(shape)
        loss = cross_entropy(network(moved, x[batch].astype(complex)), labels[batch])
        return loss.imag / 1e-30

    batches = [slice(0, 3), slice(3, 6)]
    magnitude = [magnitude_scores(p, group) for group in groups]
    saliency = [
        np.array([sum(change(g, u, b) ** 2 for b in batches) for u in range(g["units"])])
        for g in groups
    ]
    inputs = {}
    network(p, x, inputs)
    error = [error_scores(p, inputs, group) for group in groups]
    cost = [
        sum(2.0 * uses[n] * p[n].size / g["units"] for n, _ in g["gives"] + g["takes"] if n in uses)
        for g in groups
    ]
    per_cost = [own / of for own, of in zip(saliency, cost)]
    require_apart(magnitude, "magnitude")
    require_apart(per_cost, "saliency")
    parts = {
        "flops": lambda kept: flops(without(p, groups, kept), uses) / flops(p, uses),
        "parameters": lambda kept: numbers(without(p, groups, kept)) / numbers(p),
    }
    cases = []
    for method, budget, target, multiple in [
        ("magnitude", "flops", 0.5, 1),
        ("magnitude", "flops", 0.5, 4),
        ("saliency", "flops", 0.4, 1),
        ("saliency", "parameters", 0.6, 1),
        ("saliency", "flops", 0.7, 2),
    ]:
        order = ranked(magnitude) if method == "magnitude" else by_score(per_cost)
        kept = within(groups, in_blocks(order, groups, multiple, 0.1), target, parts[budget])
        cases.append(
            {
                "method": method,
                "to": {budget: target},
                "round_to": multiple,
                "kept": [np.flatnonzero(own).tolist() for own in kept],
                "part": parts[budget](kept),
                "outputs": listed(network(without(p, groups, kept), x)),
            }
        )
    return {
        "layers": LAYERS,
        "example": [2, SIZE, SIZE],
        "arrays": {name: listed(array) for name, array in p.items()},
        "inputs": listed(x),
        "labels": labels.tolist(),
        "scores": {
            "magnitude": [listed(own) for own in magnitude],
            "saliency": [listed(own) for own in saliency],
            "error": [listed(own) for own in error],
        },
        "cases": cases,
    }


HEADS, WIDTH, TOKENS = 4, 3, 5  # features of a head
ATTENTION_LAYERS = """
- {type: linear, name: qkv, out_features: 36}
- {type: attention, name: attention, heads: 4, mask: ''}
- {type: linear, name: out, out_features: 2}
"""


def attention(p, x, heads):
    """qkv, heads without a mask, out: x [examples, tokens, features]."""
    qkv = x @ p["qkv.weight"].T + p["qkv.bias"]
    q, k, v = (
        part.reshape(*x.shape[:2], heads, WIDTH).transpose(0, 2, 1, 3)
        for part in np.split(qkv, 3, axis=-1)
    )
    products = np.exp(q @ k.transpose(0, 1, 3, 2) / np.sqrt(WIDTH))
    y = products / products.sum(axis=-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1) @ p["out.weight"].T + p["out.bias"]


def heads():
    """A unit is a head: rows of queries, keys and values, and columns of what reads it."""
    p = {
        "qkv.weight": values(3 * HEADS * WIDTH, 6, scale=0.8),
        "qkv.bias": values(3 * HEADS * WIDTH, scale=0.3),
        "out.weight": values(2, HEADS * WIDTH, scale=0.6),
        "out.bias": values(2, scale=0.1),
    }
    x = values(3, TOKENS, 6)
    rows = (p["qkv.weight"] ** 2).sum(axis=1).reshape(3, HEADS, WIDTH).sum(axis=(0, 2))
    columns = (p["out.weight"] ** 2).sum(axis=0).reshape(HEADS, WIDTH).sum(axis=1)
    scores = rows / rows.mean() * columns / columns.mean()
    require_apart([scores], "heads")
    kept = np.sort(np.argsort(scores)[HEADS // 2 :])
    own = (kept[:, None] * WIDTH + np.arange(WIDTH)).ravel()
    all_parts = np.concatenate([own + part * HEADS * WIDTH for part in range(3)])
    left = {
        "qkv.weight": p["qkv.weight"][all_parts],
        "qkv.bias": p["qkv.bias"][all_parts],
        "out.weight": p["out.weight"][:, own],
        "out.bias": p["out.bias"],
    }
    return {
        "layers": ATTENTION_LAYERS,
        "example": [TOKENS, 6],
        "arrays": {name: listed(array) for name, array in p.items()},
        "inputs": listed(x),
        "scores": listed(scores),
        "kept": kept.tolist(),
        "outputs": listed(attention(left, x, len(kept))),
    }


def main():
    # In the order in which they were added: each draws from the same numbers.
    parts = {"choices": choices(), "trajectories": trajectories(), "heads": heads()}
    json.dump(parts, sys.stdout)
    print()


MLP_GROUPS = [
    group_of(12, [("fc1.weight", 0)], [("fc2.weight", 1)], ["fc1.bias"]),
    group_of(10, [("fc2.weight", 0)], [("fc3.weight", 1)], ["fc2.bias"]),
]
STEPS, LAST_UPDATE, RATE = 10, 8, 0.25


def mlp_gradients(p, x, labels):
    hidden1 = x @ p["fc1.weight"].T + p["fc1.bias"]
    hidden2 = np.maximum(hidden1, 0) @ p["fc2.weight"].T + p["fc2.bias"]
    logits = np.maximum(hidden2, 0) @ p["fc3.weight"].T + p["fc3.bias"]
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    d3 = exponents / exponents.sum(axis=1, keepdims=True)
    d3[np.arange(len(labels)), labels] -= 1
    d3 /= len(labels)
    d2 = d3 @ p["fc3.weight"] * (hidden2 > 0)
    d1 = d2 @ p["fc2.weight"] * (hidden1 > 0)
    return {
        "fc1.weight": d1.T @ x,
        "fc1.bias": d1.sum(axis=0),
        "fc2.weight": d2.T @ np.maximum(hidden1, 0),
        "fc2.bias": d2.sum(axis=0),
        "fc3.weight": d3.T @ np.maximum(hidden2, 0),
        "fc3.bias": d3.sum(axis=0),
    }


def trajectory(initial, x, labels, criterion, budget, left, multiple):
    """SGD, every second step of which masks units: the masks after each update, what is left."""
    p = {name: array.copy() for name, array in initial.items()}
    groups = MLP_GROUPS
    masks = {name: np.ones_like(array) for name, array in p.items() if name.endswith("weight")}
    present = [np.ones(group["units"], bool) for group in groups]
    changes = [np.zeros(group["units"]) for group in groups]
    weights = {name: 1 for name in masks}
    parts = {
        "flops": lambda kept: flops(without(initial, groups, kept), weights)
        / flops(initial, weights),
        "parameters": lambda kept: numbers(without(initial, groups, kept)) / numbers(initial),
    }
    updates = []
    for step in range(1, STEPS + 1):
        gradients = mlp_gradients(p, x, labels)
        for group, sums in zip(groups, changes):
            (name, dim), *_ = group["takes"]
            sums += lines(p[name] * gradients[name] * masks[name], dim).sum(axis=1) ** 2
        for name in p:
            p[name] = p[name] - RATE * gradients[name] * masks.get(name, 1.0)
        if step % 2 != 0 or step > LAST_UPDATE:
            continue
        removed = (1.0 - left) * (1.0 - (1.0 - step / LAST_UPDATE) ** 3)
        if criterion == "magnitude":
            scores = [magnitude_scores(p, group) for group in groups]
        elif criterion == "error":
            hidden1 = np.maximum(x @ p["fc1.weight"].T + p["fc1.bias"], 0)
            hidden2 = np.maximum(hidden1 @ p["fc2.weight"].T + p["fc2.bias"], 0)
            given = {"fc2.weight": hidden1, "fc3.weight": hidden2}
            scores = [error_scores(p, given, group) for group in groups]
        else:
            scores = [sums.copy() for sums in changes]
        require_apart([own[stays] for own, stays in zip(scores, present)], (criterion, step))
        for own, stays in zip(scores, present):
            own[~stays] = -1.0
        if criterion != "magnitude":
            cost = [
                sum(2.0 * p[n].size / g["units"] for n, _ in g["gives"] + g["takes"])
                for g in groups
            ]
            order = by_score([own / of for own, of in zip(scores, cost)])
        else:
            order = ranked(scores)
        kept = within(groups, in_blocks(order, groups, multiple, 0.1), 1.0 - removed, parts[budget])
        for group, stays, still in zip(groups, present, kept):
            stays &= still
            for name, dim in group["gives"] + group["takes"]:
                shape = [-1 if i == dim else 1 for i in range(2)]
                masks[name] = masks[name] * stays.reshape(shape)
        for name in masks:
            p[name] = p[name] * masks[name]
        for sums in changes:
            sums[:] = 0.0
        updates.append({"step": step, "kept": [np.flatnonzero(own).tolist() for own in present]})
    return {
        "criterion": criterion,
        "to": {budget: left},
        "round_to": multiple,
        "updates": updates,
        "last": {name: listed(array) for name, array in p.items()},
    }


def trajectories():
    initial = {
        "fc1.weight": values(12, 6, scale=0.6),
        "fc1.bias": values(12, scale=0.3, middle=0.4),
        "fc2.weight": values(10, 12, scale=0.5),
        "fc2.bias": values(10, scale=0.3, middle=0.4),
        "fc3.weight": values(4, 10, scale=0.6),
        "fc3.bias": values(4, scale=0.1),
    }
    x = values(16, 6)
    labels = random.integers(0, 4, 16)
    return {
        "arrays": {name: listed(array) for name, array in initial.items()},
        "inputs": listed(x),
        "labels": labels.tolist(),
        "steps": STEPS,
        "last_update": LAST_UPDATE,
        "rate": RATE,
        "cases": [
            trajectory(initial, x, labels, *case)
            for case in [
                ("magnitude", "flops", 0.4, 1),
                ("saliency", "flops", 0.4, 1),
                ("saliency", "parameters", 0.5, 1),
                ("magnitude", "flops", 0.4, 4),
                ("saliency", "parameters", 0.5, 2),
                ("error", "flops", 0.4, 1),
                ("error", "parameters", 0.5, 2),
            ]
        ],
    }


if __name__ == "__main__":
    main()
