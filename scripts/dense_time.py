#!/usr/bin/env python3
"""Compares the times that `lacuna plan` gives with those of real runs: sparse ones, and dense ones of the same networks.

An MLP and ResNet-20 (MNIST and CIFAR-10), LeNet (drawn digits) and a small GPT (Tiny Shakespeare), each trained for so many
seconds by `train.seconds`, sparse and dense in turn. A line for each: the time of a step by plan and by the run, for both,
and how many of the seconds the sparse run took. Exits with 1 where plan's dense step is further from the real one than
the tolerance. The machine should have nothing else to do.

usage: scripts/dense_time.py MNIST_DIR CIFAR10_DIR TEXT_FILE [--seconds 20] [--tolerance 0.15] [--lacuna PROGRAM]
       [--only NAME]...
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def networks(a):
    """Name: configuration and its --set, for plan and for runs."""
    return {
        "mlp": ("mnist_mlp_rigl.yaml", [f"data.dir={a.mnist}"]),
        "lenet": ("glyphs_lenet.yaml", []),
        "resnet20": ("cifar10_resnet20_sparse.yaml", [f"data.dir={a.cifar10}"]),
        "gpt-mini": ("shakespeare_gpt_mini_rigl80.yaml", [f"data.path={a.text}"]),
    }


def lacuna(a, cache, *arguments):
    environment = dict(os.environ, LACUNA_CACHE_DIR=cache)
    done = subprocess.run([a.lacuna, *arguments], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"lacuna {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def run(a, folder, cache, config, sets):
    """summary.json of a run, and the seconds from its beginning to its last checkpoint."""
    lacuna(a, cache, "train", config, "--run-dir", folder, "--quiet", *sets)
    begin = os.path.getmtime(os.path.join(folder, "config.yaml"))
    end = max(os.path.getmtime(path) for path in pathlib.Path(folder, "checkpoints").iterdir())
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
        return json.load(file), end - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mnist", type=os.path.abspath)
    parser.add_argument("cifar10", type=os.path.abspath)
    parser.add_argument("text", type=os.path.abspath)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--tolerance", type=float, default=0.15)
    parser.add_argument("--lacuna", default=str(ROOT / "build/release/lacuna"))
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    a = parser.parse_args()
    worst = 0.0
    print("network    sparse ms: plan     run   dense ms: plan     run   speedup: plan     run   end of run   run/budget")
    for name, (config, sets) in networks(a).items():
        if a.only and name not in a.only:
            continue
        path = str(ROOT / "configs" / config)
        options = [word for one in sets for word in ("--set", one)]
        length = ["--set", f"train.seconds={a.seconds}"]
        with tempfile.TemporaryDirectory() as folder:
            cache = os.path.join(folder, "cache")
            plan = json.loads(lacuna(a, cache, "plan", path, "--json", *options))["time"]
            sparse, took = run(a, folder + "/sparse", cache, path, options + length)
            dense, _ = run(a, folder + "/dense", cache, path, options + length + ["--set", "sparsity=null"])
        step, dense_step = sparse["step_seconds"], dense["step_seconds"]
        error = plan["dense_step_seconds"] / dense_step - 1.0
        worst = max(worst, abs(error))
        print(f"{name:10} {1e3 * plan['step_seconds']:16.3f} {1e3 * step:7.3f} "
              f"{1e3 * plan['dense_step_seconds']:16.3f} {1e3 * dense_step:7.3f} {plan['speedup']:15.2f} "
              f"{dense_step / step:7.2f} {sparse['speedup']:12.2f} {took / a.seconds:12.2f}   dense {100 * error:+.1f} %",
              flush=True)
    print(f"plan's dense steps are within {100 * worst:.1f} % of real ones")
    return 0 if worst <= a.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
