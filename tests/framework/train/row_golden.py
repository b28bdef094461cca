#!/usr/bin/env python3
"""Writes row_golden.json: training of tables whose rows get gradients only where a batch uses them,
and of a sparse table that is a head, too; computed with NumPy from the formulas below.

usage: row_golden.py > row_golden.json

Derivatives are taken by complex steps, and everything is computed in double precision. A step
changes the used rows U of a table, values and states, and no others; t counts the table's updates:

    factor = min(1, clip / (|g| + 1e-6)), with the norm of all gradients, of tables those of U
    adam    g += d w;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
            w -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)
    adamw   w -= lr d w, then as adam without d
    sgd     g += d w;  m = momentum m + g;  w -= lr (g + momentum m)   (nesterov)
"""
import json
import sys

import numpy as np

random = np.random.default_rng(42)
ROWS, FEATURES, CLASSES, STEPS = 12, 4, 5, 6
EPS = 1e-8


def values(*shape, scale):
    """Numbers that float32 has exactly, and a short text."""
    return np.round(scale * random.uniform(-1, 1, shape) * 1024) / 1024


def listed(array):
    return [float(f"{value:.9g}") for value in array.ravel()]


def cross_entropy(logits, labels):
    rows = logits.reshape(-1, logits.shape[-1])
    shifted = rows - rows.real.max(axis=1, keepdims=True)
    log_sums = np.log(np.exp(shifted).sum(axis=1))
    return (log_sums - shifted[np.arange(len(rows)), labels.ravel()]).mean()


def of_tokens(p, batch):
    return np.tanh(p["table.weight"][batch["ids"]]) @ p["head.weight"].T + p["head.bias"]


def of_bags(p, batch):
    """Sums of rows, each with a factor; an id of -1 is none."""
    factors = np.where(batch["ids"] < 0, 0.0, batch["values"])
    sums = (p["table.weight"][batch["ids"]] * factors[..., None]).sum(axis=1)
    return np.tanh(sums + p["table.bias"]) @ p["head.weight"].T + p["head.bias"]


def of_tied(p, batch):
    hidden = np.tanh(p["table.weight"][batch["ids"]] @ p["fc.weight"].T + p["fc.bias"])
    return hidden @ p["table.weight"].T


def gradients(p, network, batch):
    found = {}
    for name, array in p.items():
        found[name] = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            moved = {other: own.astype(complex) for other, own in p.items()}
            moved[name][place] += 1e-30j
            loss = cross_entropy(network(moved, batch), batch["labels"])
            found[name][place] = loss.imag / 1e-30
    return found


class Optimizer:
    def __init__(self, options, p):
        self.options, self.steps = options, 0
        slots = ["momentum_buffer"] if options["type"] == "sgd" else ["exp_avg", "exp_avg_sq"]
        self.states = {n: {s: np.zeros_like(a) for s in slots} for n, a in p.items()}

    def step(self, p, g, changes):
        """`changes`: of each array, True where an element may change."""
        o = self.options
        self.steps += 1
        t, lr, decay = self.steps, o["lr"], o.get("weight_decay", 0.0)
        lr *= min(1.0, t / o.get("warmup", 1))
        g = {name: np.where(changes[name], own, 0.0) for name, own in g.items()}
        norm = np.sqrt(sum((own**2).sum() for own in g.values()))
        for name in g:
            sizes = np.abs(g[name][g[name] != 0.0])
            assert sizes.min() > 1e-5, (name, sizes.min())  # float32 finds the sign, too
        clip = min(1.0, o.get("clip_norm", np.inf) / (norm + 1e-6))
        for name, state in self.states.items():
            w, own = p[name], clip * g[name]
            if o["type"] != "adamw":
                own = own + decay * w
            else:
                w = w * (1.0 - lr * decay)
            if o["type"] == "sgd":
                m = o["momentum"] * state["momentum_buffer"] + own
                new = {"momentum_buffer": m}
                w = w - lr * (own + o["momentum"] * m)
            else:
                b1, b2 = o.get("betas", (0.9, 0.999))
                m = b1 * state["exp_avg"] + (1 - b1) * own
                v = b2 * state["exp_avg_sq"] + (1 - b2) * own**2
                new = {"exp_avg": m, "exp_avg_sq": v}
                w = w - lr * m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + EPS)
            p[name] = np.where(changes[name], w, p[name])
            for slot in new:
                state[slot] = np.where(changes[name], new[slot], state[slot])


TABLE = f"{{type: token_embedding, name: table, vocab_size: {ROWS}, features: {FEATURES}"
HEAD = f"tanh, {{type: linear, name: head, out_features: {CLASSES}}}]"
TOKENS, BATCH, MOST = 3, 2, 3
NETWORKS = {
    "tokens": (of_tokens, f"[{TABLE}, sparse_gradient: true}}, {HEAD}", [TOKENS]),
    "padded": (of_tokens, f"[{TABLE}, sparse_gradient: true, padding_id: 4}}, {HEAD}", [TOKENS]),
    "bags": (
        of_bags,
        f"[{{type: embedding_bag, name: table, out_features: {FEATURES}}}, {HEAD}",
        [ROWS],
    ),
    "tied": (
        of_tied,
        f"[{TABLE}}}, {{type: linear, name: fc, out_features: {FEATURES}}}, tanh, "
        "{type: linear, name: head, tied_to: table, bias: false}]",
        [TOKENS],
    ),
}


def draw_batch(kind):
    """Few rows, some of them twice; of bags also none."""
    used = random.choice(ROWS, 4, replace=False)
    ids = random.choice(used, (BATCH, TOKENS))
    if kind == "padded":
        ids[0, 0], ids[1, 1] = 4, (used[0] if used[0] != 4 else used[1])
    batch = {"ids": ids}
    if kind == "bags":
        ids = np.array([random.choice(used, MOST, replace=False) for _ in range(4)])
        ids[1, 2] = ids[3, 1] = -1
        batch = {"ids": ids, "values": values(*ids.shape, scale=1.0) + 1.5}
    shape = (len(ids),) if kind == "bags" else ids.shape
    batch["labels"] = random.integers(0, ROWS if kind == "tied" else CLASSES, shape)
    return batch


def trained(kind, options):
    network, layers, example = NETWORKS[kind]
    p = {"table.weight": values(ROWS, FEATURES, scale=0.8)}
    if kind == "bags":
        p["table.bias"] = values(FEATURES, scale=0.2)
    if kind == "tied":
        p["fc.weight"] = values(FEATURES, FEATURES, scale=0.8)
        p["fc.bias"] = values(FEATURES, scale=0.2)
    else:
        p["head.weight"] = values(CLASSES, FEATURES, scale=0.8)
        p["head.bias"] = values(CLASSES, scale=0.2)
    mask = np.ones((ROWS, FEATURES), bool)
    if kind == "tied":
        mask = random.uniform(size=mask.shape) < 0.6
        p["table.weight"] = p["table.weight"] * mask
    initial = {name: listed(array) for name, array in p.items()}
    optimizer = Optimizer(options, p)
    steps = []
    for _ in range(STEPS):
        batch = draw_batch(kind)
        changes = {name: np.ones(array.shape, bool) for name, array in p.items()}
        used = np.unique(batch["ids"])
        used = used[(used >= 0) & (used != (4 if kind == "padded" else -1))]
        if kind == "tied":
            changes["table.weight"] = mask
        else:
            changes["table.weight"][:] = False
            changes["table.weight"][used] = True
        optimizer.step(p, gradients(p, network, batch), changes)
        steps.append(
            {name: own.ravel().tolist() for name, own in batch.items()}
            | {"shape": list(batch["ids"].shape), "used": used.tolist()}
            | {"table": listed(p["table.weight"])}
        )
    return {
        "kind": kind,
        "optimizer": options,
        "layers": layers,
        "example": example,
        "mask": [int(bit) for bit in mask.ravel()],
        "arrays": initial,
        "steps": steps,
        "last": {name: listed(array) for name, array in p.items()},
        "states": {
            name: {slot: listed(array) for slot, array in own.items()}
            for name, own in optimizer.states.items()
        },
    }


def main():
    adam = {"type": "adam", "lr": 0.02, "betas": [0.8, 0.95], "weight_decay": 0.02}
    adamw = {"type": "adamw", "lr": 0.03, "weight_decay": 0.1, "clip_norm": 0.2, "warmup": 3}
    sgd = {"type": "sgd", "lr": 0.2, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}
    cases = [
        ("tokens", adam),
        ("tokens", adamw),
        ("tokens", sgd),
        ("padded", adamw),
        ("bags", adam),
        ("bags", adamw),
        ("tied", adam),
        ("tied", adamw),
    ]
    json.dump([trained(kind, options) for kind, options in cases], sys.stdout)
    print()


if __name__ == "__main__":
    main()
