"""Runs lacuna and reads what it leaves, in forms that can be compared."""
import glob
import hashlib
import json
import os
import resource
import subprocess

import h5py
import numpy as np

ADDRESS_SPACE = 6 << 30


class Program:
    """The program under test. Its commands end by themselves or by a time limit, which is a fault."""

    def __init__(self, path, cache, seconds=120):
        self.path, self.seconds = path, seconds
        self.environment = {**os.environ, "LACUNA_CACHE_DIR": cache, "OMP_WAIT_POLICY": "passive"}

    def __call__(self, *arguments, seconds=None, **environment):
        """(exit code, or 'timeout'; standard output; standard error). A signal's code is below 0."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            ended = subprocess.run(
                [self.path, *map(str, arguments)], capture_output=True, text=True,
                env={**self.environment, **environment}, timeout=seconds or self.seconds,
                errors="replace", preexec_fn=limit, check=False)
        except subprocess.TimeoutExpired:
            return "timeout", "", ""
        return ended.returncode, ended.stdout, ended.stderr


def refusal_fault(code, errors):
    """What is wrong with how a command ended that may refuse: '' where nothing is."""
    if code == 0:
        return ""
    if code not in (1, 2):
        return f"ended with {code}: {errors[-300:]}"
    return "" if "error: " in errors else f"exit code {code} without a message: {errors[-300:]}"


def last_checkpoint(run):
    """Every array of a run's last checkpoint, by its path."""
    files = sorted(glob.glob(f"{glob.escape(run)}/checkpoints/step-*.h5"))
    if not files:
        return None
    arrays = {}
    with h5py.File(files[-1]) as file:
        def visit(name, item):
            if isinstance(item, h5py.Dataset):
                arrays[name] = item[()]
        file.visititems(visit)
    return arrays


def same_bits(left, right):
    left, right = np.asarray(left), np.asarray(right)
    if left.dtype == object or right.dtype == object:
        return np.array_equal(left, right)
    return left.shape == right.shape and left.tobytes() == right.tobytes()


def checkpoint_differences(left, right):
    """Names of arrays that differ in a bit, at most five; 'no checkpoint' where there is none."""
    if left is None or right is None:
        return ["no checkpoint"]
    names = sorted(set(left) | set(right))
    return [name for name in names if name not in left or name not in right
            or not same_bits(left[name], right[name])][:5]


def events(run):
    """The lines of metrics.jsonl, without times and rates."""
    with open(f"{run}/metrics.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        for key in [key for key in line
                    if key.endswith(("seconds", "_per_second", "bytes_sent"))]:
            del line[key]
    return lines


def dense_weights(arrays):
    """float32 arrays of a checkpoint's model by name, whatever their layout."""
    weights = {}
    for name, value in arrays.items():
        if not name.startswith("model/"):
            continue
        if name.endswith("/values") and name[:-7] + "/indptr" in arrays:
            base = name[:-7]
            shape = [int(extent) for extent in arrays[base + "/shape"]]
            starts, columns = arrays[base + "/indptr"], arrays[base + "/indices"]
            matrix = np.zeros((shape[0], int(np.prod(shape[1:]))), "f4")
            for row in range(shape[0]):
                part = slice(int(starts[row]), int(starts[row + 1]))
                matrix[row, columns[part]] = value[part]
            weights[base] = matrix.reshape(shape)
        elif isinstance(value, np.ndarray) and value.dtype == np.float32:
            weights[name] = value
    return weights


def tree_hash(*roots):
    """{path: hash of its bytes} of all files below these folders, and of files among them."""
    found = {}
    for root in roots:
        files = [root] if os.path.isfile(root) else [
            os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names]
        for path in files:
            with open(path, "rb") as file:
                found[path] = hashlib.sha256(file.read()).hexdigest()
    return found


def evaluate(program, run, *settings, **environment):
    """{split: measures} of `eval --last`, or a string that says how it ended."""
    options = [part for setting in settings for part in ("--set", setting)]
    code, output, errors = program("eval", run, "--last", "--json", *options, **environment)
    if code != 0:
        return f"eval ended with {code}: {errors[-300:]}"
    return {split["split"]: split for split in json.loads(output)["splits"]}


def evaluation_fault(expected, found, tolerance=2e-5):
    """Where two results of `evaluate` differ: '' where they do not."""
    if isinstance(expected, str) or isinstance(found, str):
        return "" if expected == found else f"{expected} / {found}"
    if set(expected) != set(found):
        return f"splits {sorted(expected)} / {sorted(found)}"
    for split, measures in expected.items():
        for name in ("loss", "accuracy", "r2", "mae", "perplexity"):
            left, right = measures.get(name), found[split].get(name)
            if (left is None) != (right is None):
                return f"{split} {name} {left} / {right}"
            if left is not None and not abs(left - right) <= tolerance * max(1, abs(left)):
                return f"{split} {name} {left} / {right}"
    return ""
