#!/usr/bin/env python3
"""Shuffled blocks and 2:4 inside blocks: the tables of docs/measurements/tables.md, Three open ideas.

usage: scripts/block_ideas.py MNIST_FOLDER [--seeds 0,1,2] [--epochs 2] [--program build/release/lacuna]
       [--runs runs/block_ideas]

Trains the MLP 784-320-128-10 dense (ten epochs), prunes both hidden layers by magnitude in each pattern, and trains
each pruned network for a few more epochs with its mask. Prints Markdown: the fraction of the dense weights' sum of
|w| that a mask keeps, and the test accuracy in percent before and after that training (mean, lowest and highest of
the seeds). Finished runs are not repeated. Needs numpy, and about ten minutes on a core of a quiet machine.

The features of a layer may be renumbered without changing the network: the pixels, the 320 and the 128 hidden features
have one order each, which the weights on both sides of them share.
"""
import argparse
import gzip
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np

CONFIG = pathlib.Path(__file__).resolve().parent.parent / "configs/mnist_mlp_dense.yaml"
SIZES = ["--set", "model.1.out_features=320", "--set", "model.3.out_features=128"]
PRUNED = {"fc1.weight": (1, 0), "fc2.weight": (2, 1)}  # with the layers of features of rows and of columns
FEATURES = [784, 320, 128]


# Masks. Scores [rows, columns] are what a mask should keep most of: |w|.

def largest(scores, count):
    """The `count` largest scores; of equal ones those that come first."""
    mask = np.zeros(scores.size, bool)
    mask[np.argsort(-scores, axis=None, kind="stable")[:count]] = True
    return mask.reshape(scores.shape)


def sums_of_blocks(scores, side):
    rows, columns = scores.shape
    return scores.reshape(rows // side, side, columns // side, side).sum((1, 3))


def largest_blocks(scores, side, density):
    sums = sums_of_blocks(scores, side)
    return largest(sums, int(density * sums.size + 1e-9))


def spread(blocks, side):
    return blocks.repeat(side, 0).repeat(side, 1)


def two_of_four(scores):
    """Of each four consecutive columns the two with the largest scores."""
    groups = scores.reshape(-1, 4)
    mask = np.zeros(groups.shape, bool)
    np.put_along_axis(mask, np.argsort(-groups, axis=1, kind="stable")[:, :2], True, axis=1)
    return mask.reshape(scores.shape)


# Orders of the features: order[place] = feature, and place // side is the group that a feature is in.

def swap_into_groups(worth, groups):
    """Swaps features between groups as long as a swap raises the sum of worth[feature, its group].

    Swaps without a feature in common do not change each other's gain, so that many are made at a time.
    """
    features = np.arange(len(groups))
    while True:
        moved = worth[:, groups]                 # [feature, other]: feature in the place of other
        own = moved[features, features]
        gain = moved + moved.T - own[:, None] - own[None, :]
        other = gain.argmax(1)
        best = gain[features, other]
        used = np.zeros(len(groups), bool)
        for i in np.argsort(-best, kind="stable"):
            j = other[i]
            if best[i] <= 1e-6:
                break
            if not (used[i] or used[j]):
                used[i] = used[j] = True
                groups[i], groups[j] = groups[j], groups[i]
        if not used.any():
            return groups


def permuted(scores, orders):
    return {name: s[np.ix_(orders[PRUNED[name][0]], orders[PRUNED[name][1]])] for name, s in scores.items()}


def kept_by_blocks(scores, orders, side, density):
    return sum(np.sort(sums_of_blocks(s, side), None)[::-1][:int(density * s.size / side**2 + 1e-9)].sum()
               for s in permuted(scores, orders).values())


def improve(scores, orders, side, density, rounds=40):
    """Choose blocks, then the group of each feature for these blocks, layer after layer, and again."""
    kept = kept_by_blocks(scores, orders, side, density)
    for _ in range(rounds):   # each step keeps no less than what was before it
        for layer, count in enumerate(FEATURES):
            worth = np.zeros((count, count // side))   # by feature and group, summed over both weights
            for name, s in permuted(scores, orders).items():
                blocks = largest_blocks(s, side, density).astype(float)
                for axis in (0, 1):
                    if PRUNED[name][axis] != layer:
                        continue
                    s_here, blocks_here = (s, blocks) if axis == 0 else (s.T, blocks.T)
                    # Sums over the other side's groups [place, other group], for the groups that are kept.
                    sums = s_here.reshape(count, -1, side).sum(2)
                    worth[orders[layer]] += sums @ blocks_here.T
            groups = np.empty(count, int)
            groups[orders[layer]] = np.arange(count) // side
            orders[layer] = np.argsort(swap_into_groups(worth, groups), kind="stable")
        before, kept = kept, kept_by_blocks(scores, orders, side, density)
        if kept <= before * (1 + 1e-4):
            break
    return kept, orders


def find_orders(scores, side, density):
    """The best of what is reached from three starts: as trained, the heaviest features first, and at random."""
    def heaviest(layer):
        return np.argsort(-sum(s.sum(1 - axis) / s.mean() for name, s in scores.items() for axis in (0, 1)
                               if PRUNED[name][axis] == layer), kind="stable")

    rng = np.random.default_rng(0)
    starts = [[np.arange(n) for n in FEATURES], [heaviest(layer) for layer in range(len(FEATURES))],
              [rng.permutation(n) for n in FEATURES]]
    return max((improve(scores, start, side, density) for start in starts), key=lambda found: found[0])[1]


def masks_of(weights, pattern, sparsity, orders):
    """The masks of a variant, by name, in the order of the weights as trained."""
    scores = {name: np.abs(weights[name]).astype(float) for name in PRUNED}
    density = round(1.0 - sparsity, 6)   # 1 − 0.9 is the key 0.1
    if pattern == "unstructured":
        return {name: largest(s, int(density * s.size + 1e-9)) for name, s in scores.items()}
    inside = pattern.startswith("2:4 in ")
    shuffled = "shuffled" in pattern
    side = int(pattern.split("×")[-1])
    if inside:
        density *= 2
    if not shuffled:
        used = [np.arange(n) for n in FEATURES]
    elif (side, density) in orders:
        used = orders[side, density]
    else:
        used = orders[side, density] = find_orders(scores, side, density)
    masks = {}
    for name, s in permuted(scores, used).items():
        four = two_of_four(s) if inside else np.ones(s.shape, bool)
        chosen = four & spread(largest_blocks(s * four, side, density), side)
        masks[name] = np.zeros(s.shape, bool)
        masks[name][np.ix_(used[PRUNED[name][0]], used[PRUNED[name][1]])] = chosen
    return masks


# Data and runs.

def read_idx(folder, name, header):
    for path, opened in ((folder / name, open), (folder / (name + ".gz"), gzip.open)):
        if path.exists():
            with opened(path, "rb") as file:
                return np.frombuffer(file.read(), np.uint8, offset=header)
    sys.exit(f"{folder} has no {name}")


class Runs:
    def __init__(self, arguments):
        self.data, self.program, self.folder = arguments.data.resolve(), arguments.program, arguments.runs
        self.epochs = arguments.epochs
        self.folder.mkdir(parents=True, exist_ok=True)
        train = read_idx(self.data, "train-images-idx3-ubyte", 16) / 255.0
        test = read_idx(self.data, "t10k-images-idx3-ubyte", 16).reshape(-1, 784) / 255.0
        self.images = (test - train.mean()) / train.std()
        self.labels = read_idx(self.data, "t10k-labels-idx1-ubyte", 8)

    def call(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"lacuna {' '.join(map(str, arguments))} failed:\n{done.stderr}")

    def train(self, name, seed, *arguments):
        """Test accuracy in percent after the run of this name, which is made if it is not there."""
        run = self.folder / name
        if not (run / "summary.json").exists():
            shutil.rmtree(run, ignore_errors=True)
            self.call("train", CONFIG, *SIZES, "--set", f"data.dir={self.data}", "--seed", seed, "--threads", 1,
                      "--run-dir", run, *arguments)
        return 100.0 * json.loads((run / "summary.json").read_text())["test_accuracy"]

    def dense(self, seed):
        accuracy = self.train(f"dense-{seed}", seed)
        file = self.folder / f"dense-{seed}.npz"
        self.call("export", self.folder / f"dense-{seed}", "--format", "npz", "--out", file, "--overwrite")
        with np.load(file) as arrays:
            return accuracy, {name: arrays[name] for name in arrays.files}

    def accuracy(self, weights):
        x = self.images
        for layer in ("fc1", "fc2", "fc3"):
            x = x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]
            x = x if layer == "fc3" else np.maximum(x, 0)
        return 100.0 * np.mean(x.argmax(1) == self.labels)

    def pruned(self, name, seed, weights, find_masks):
        """The share that masks keep, accuracy as pruned, and accuracy after training at the masks."""
        known = self.folder / f"{name}.json"
        if known.exists():
            return json.loads(known.read_text())
        masks = find_masks()
        total = sum(np.abs(weights[n]).sum() for n in masks)
        kept = sum(np.abs(weights[n][mask]).sum() for n, mask in masks.items())
        arrays = weights | {n: weights[n] * mask for n, mask in masks.items()}
        file = self.folder / f"{name}.npz"
        np.savez(file, **arrays, **{f"{n}_mask": mask for n, mask in masks.items()})
        after = self.train(name, seed, "--init-from", file.resolve(), "--set", f"train.epochs={self.epochs}",
                           "--set", "optimizer.lr=0.0005", "--set",
                           "sparsity={algorithm: static, init_method: inherit, layout: csr, "
                           "param_filter: [fc1.weight, fc2.weight]}")
        result = [100.0 * float(kept / total), float(self.accuracy(arrays)), after]
        known.write_text(json.dumps(result))
        return result


def spoken(values):
    return f"{np.mean(values):.2f} ({min(values):.2f}–{max(values):.2f})"


HEADER = "| sparsity | pattern | kept, % of Σ\\|w\\| | as pruned | trained on |\n|---|---|---|---|---|"
TABLES = [
    ("Shuffled blocks", [(s, p) for s in (0.8, 0.9)
                         for p in ("unstructured", "blocks 16×16", "shuffled blocks 16×16", "blocks 8×8",
                                   "shuffled blocks 8×8")]),
    ("2:4 inside blocks", [(s, p) for s in (0.75, 0.8, 0.9)
                           for p in ("unstructured", "blocks 16×16", "2:4 in blocks 16×16",
                                     "2:4 in shuffled blocks 16×16")] + [(0.95, "unstructured")]),
]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--program", default="build/release/lacuna")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs/block_ideas"))
    arguments = parser.parse_args()
    runs = Runs(arguments)
    dense, results = [], {}
    for seed in map(int, arguments.seeds.split(",")):
        accuracy, weights = runs.dense(seed)
        dense.append(accuracy)
        orders = {}   # found once for each side and density
        for sparsity, pattern in dict.fromkeys(v for _, variants in TABLES for v in variants):
            name = f"{pattern.replace(' ', '-').replace('×', 'x').replace(':', '')}-{100 * sparsity:.0f}-{seed}"
            results.setdefault((sparsity, pattern), []).append(
                runs.pruned(name, seed, weights, lambda: masks_of(weights, pattern, sparsity, orders)))
            print(name, *(f"{v:.2f}" for v in results[sparsity, pattern][-1]), file=sys.stderr, flush=True)
    print(f"Dense: {spoken(dense)}")
    for title, variants in TABLES:
        print(f"\n{title}\n\n{HEADER}")
        for variant in variants:
            columns = (spoken(column) for column in zip(*results[variant]))
            print(f"| {100 * variant[0]:.0f} % | {variant[1]} | " + " | ".join(columns) + " |")


if __name__ == "__main__":
    main()
