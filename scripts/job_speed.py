#!/usr/bin/env python3
"""Measures the speedup by processes and threads on this machine, and the cost of shards.

The same run is made by one process with one thread, without and with shards; by one process with N threads; and by N
processes with one thread each. These runs follow each other, in several rounds.

usage: scripts/job_speed.py CONFIG [--processes N] [--steps N] [--rounds N] [--shards N]
       [--set PATH=VALUE]... [--mpirun "OPTIONS"]
Prints the time of a step (the median of a run's steps, in the fastest round) and the ratios. Needs a quiet machine
and one core per process. The program is that of LACUNA_BUILD_DIR (default: build/release; target lacuna_program).
"""
import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from step_numbers import median, steps_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
LACUNA = pathlib.Path(os.environ.get("LACUNA_BUILD_DIR", ROOT / "build/release")) / "lacuna"


def step_seconds(a, processes, threads, shards):
    """The median of a step's seconds in one run; each step is logged."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMP_NUM_THREADS=str(threads))
    launch = ["mpirun", "-np", str(processes), *shlex.split(a.mpirun)] if processes > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        command = [*launch, LACUNA, "train", a.config, "--run-dir", run, "--quiet"]
        for setting in (*a.set, f"train.steps={a.steps}", f"train.shards={shards}", f"train.threads={threads}",
                        "train.log_every=1", f"train.eval_every={a.steps}",
                        f"train.checkpoint={{every: {a.steps}}}"):
            command += ["--set", setting]
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              encoding="utf-8")
        if done.returncode != 0:
            sys.exit(f"job_speed: {shlex.join(map(str, command))} ended with code {done.returncode}:\n"
                     f"{done.stderr}")
        return median(steps_of(run), "step_seconds")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--mpirun", default="--bind-to core", help="options of mpirun's")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    a = parser.parse_args()
    n = a.processes
    runs = {"whole": (1, 1, 0), "one": (1, 1, a.shards), "threads": (1, n, a.shards),
            "processes": (n, 1, a.shards)}
    best = {}
    for _ in range(a.rounds):
        for name, run in runs.items():
            best[name] = min(best.get(name, float("inf")), step_seconds(a, *run))
    for name, (processes, threads, shards) in runs.items():
        print(f"{processes} x {threads}, {shards or 'no'} shards".ljust(20), f"{1e3 * best[name]:9.2f} ms a step")
    print(f"{n} x 1 is {best['one'] / best['processes']:.2f} times as fast as 1 x 1, and "
          f"{best['threads'] / best['processes']:.2f} times as fast as 1 x {n}; "
          f"{a.shards} shards take {best['one'] / best['whole']:.2f} times as long as none")


if __name__ == "__main__":
    main()
