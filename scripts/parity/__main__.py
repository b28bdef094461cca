"""Trains small models in lacuna and in PyTorch, from the same weights with the same batches, and prints the
largest differences. Data and weights are made; docs/reference/data-order.md describes the order of the data.

usage: /usr/bin/python3 scripts/parity [--lacuna PROGRAM] [--steps N] [--limit DIFFERENCE] [--folder FOLDER]
                                       [--float32] [--record FILE] [CASE ...]

Needs NumPy and PyTorch: apt-get install -y --no-install-recommends python3-numpy python3-torch
CASE is a glob over the names that --list prints; default: all. The exit code is 1 where a loss differs by more
than --limit, or a pixel at all. --record writes PyTorch's figures of the cases that tests/parity compares.
"""
import argparse
import dataclasses
import fnmatch
import os
import sys
import tempfile

import numpy as np

sys.dont_write_bytecode = True
import figures  # noqa: E402
import lacuna_runs  # noqa: E402
import made_data  # noqa: E402
import pixels  # noqa: E402
from cases import CASES  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def with_steps(case, steps):
    if not steps:
        return case
    train = {**case.config["train"], "steps": steps, "eval_every": steps}
    return dataclasses.replace(case, config={**case.config, "train": train})


def without_key_biases(values):
    """A key's bias adds the same to all scores of a query, so its gradient is rounding alone, and Adam scales
    that to steps of full size. These biases cannot be compared, and no output depends on them."""
    compared = {name: value for name, value in values.items() if not name.endswith("key.bias")}
    for name, value in compared.items():
        if name.endswith("c_attn.bias"):
            third = len(value) // 3
            compared[name] = np.concatenate([value[:third], value[2 * third:]])
    return compared


def largest(one, other):
    """The largest difference of two dictionaries of arrays, and its name."""
    one, other = without_key_biases(one), without_key_biases(other)
    return max((float(abs(one[name] - other[name]).max()), name) for name in one)


def compare(case, splits, data_folder, options):
    """Prints a line; returns the largest difference of a loss and PyTorch's training."""
    import torch  # here: --list needs no PyTorch

    import reference_training
    values, masks = case.initial(splits)
    ours = lacuna_runs.train(options.lacuna, case, data_folder, f"{options.folder}/{case.name}", values, masks)
    dtype = torch.float32 if options.float32 else torch.float64
    theirs = reference_training.train(case, splits, values, masks, dtype)
    differences = [abs(a - b) for a, b in zip(ours.losses, theirs.losses, strict=True)]
    difference = max(differences)
    tested = "" if ours.test_loss is None else f"{abs(ours.test_loss - theirs.test_loss):.1e}"
    value, name = largest(ours.values, theirs.values)
    step = differences.index(difference) + 1
    print(f"{case.name:26s} {difference:.1e} {step:5d}  {tested:8s} {value:.1e} {name}  "
          f"({theirs.losses[0]:.4f} to {theirs.losses[-1]:.4f})", flush=True)
    return difference, theirs


def compare_pixels(kind, splits, data_folder, options):
    """Prints a line; returns how many pixels differ."""
    images = splits["train"][0]
    found = pixels.read_by_lacuna(options.lacuna, kind, data_folder, f"{options.folder}/pixels_{kind}",
                                  images.shape[1:])
    differ = int((found != pixels.by_the_rules(images)).sum())
    print(f"pixels of {kind}: {differ} of {found.size} differ", flush=True)
    return differ


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=["*"], metavar="CASE")
    parser.add_argument("--lacuna", default=f"{ROOT}/build/release/lacuna", metavar="PROGRAM")
    parser.add_argument("--steps", type=int, metavar="N", help="of each case; default: its own, mostly 50")
    parser.add_argument("--limit", type=float, default=1e-5, metavar="DIFFERENCE")
    parser.add_argument("--folder", metavar="FOLDER", help="where data and runs stay; default: a temporary one")
    parser.add_argument("--float32", action="store_true",
                        help="PyTorch's precision; default: double, so that only lacuna rounds")
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--list", action="store_true", help="print the cases' names")
    return parser.parse_args()


def main():
    options = parse()
    chosen = [case for name, case in CASES.items() if any(fnmatch.fnmatch(name, glob) for glob in options.cases)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not chosen:
        print(f"parity: no case matches {' '.join(options.cases)}; --list prints them", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        options.folder = options.folder or temporary
        data = {}
        for kind in made_data.MAKERS:
            folder = f"{options.folder}/data_{kind}"
            data[kind] = made_data.make(kind, folder), folder
        print("case                       loss    step  test     weights")
        worst, recorded = 0.0, {}
        for case in chosen:
            difference, theirs = compare(with_steps(case, options.steps), *data[case.kind], options)
            worst = max(worst, difference)
            recorded[case.name] = theirs
        differ = sum(compare_pixels(kind, *data[kind], options) for kind in ("mnist", "cifar10"))
    if options.record:
        figures.write(options.record, recorded)
    print(f"largest difference of a loss: {worst:.1e} (at most {options.limit:.0e} is expected)")
    return 0 if worst <= options.limit and differ == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
