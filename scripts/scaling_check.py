#!/usr/bin/env python3
"""Measures a run by several processes on this machine, and prints the prediction of a model next to it.

The model is that of docs/development/scaling.md. Computation, latency and bandwidth are measured here, too.

usage: scripts/scaling_check.py CONFIG [--processes N] [--steps N] [--mpirun "OPTIONS"]
       [--set PATH=VALUE]... [--rate 1gbit --delay 50us]
Needs a quiet machine with one core per process; it makes about four runs of `--steps` steps. The program and
bench_network are those of LACUNA_BUILD_DIR (default: build/release); build both first (targets lacuna_program,
bench_network). With --rate and --delay (in tc's units), it also predicts for such a network, and prints the part of
the exchange that is hidden behind the backward pass.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile

import scaling
from step_numbers import floats_of, median, steps_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("LACUNA_BUILD_DIR", ROOT / "build/release"))
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "1"))


def fail(message):
    sys.exit(f"scaling_check: {message}")


def text_of(command):
    done = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True)
    if done.returncode != 0:
        fail(f"{shlex.join(map(str, command))} ended with code {done.returncode}:\n{done.stderr}")
    return done.stdout


def train(config, run, steps, sets, launch=()):
    """The command of a run of so many steps that logs each."""
    command = [*launch, BUILD / "lacuna", "train", config, "--run-dir", run, "--quiet"]
    for setting in (*sets, f"train.steps={steps}", "train.log_every=1", f"train.eval_every={steps}",
                    f"train.checkpoint={{every: {steps}}}"):
        command += ["--set", setting]
    return command


def written(run, key):
    found = re.search(rf"^  {key}: (\d+)", (run / "config.yaml").read_text(), re.M)
    return int(found.group(1)) if found else None


def tensors_of(run, folder):
    """How many parameters a run has, and how many messages its batch normalizations gather."""
    file = folder / "weights.npz"
    text_of([BUILD / "lacuna", "export", run, "--format", "npz", "--out", file, "--last"])
    names = zipfile.ZipFile(file).namelist()
    norms = [name for name in names if "running_mean" in name]
    buffers = [name for name in names if "running_" in name or "num_batches" in name]
    return len(names) - len(buffers), len(norms)


def compute_alone(a, folder, batch, shards):
    """Seconds of a step of one process's share, while the others compute theirs: on one machine
    they share its memory and its clock."""
    sets = (*a.set, f"train.batch_size={batch // a.processes}", f"train.shards={shards // a.processes}")
    runs = [folder / f"alone{i}" for i in range(a.processes)]
    started = [subprocess.Popen(train(a.config, run, a.steps, sets), env=ENVIRONMENT,
                                stdout=subprocess.DEVNULL) for run in runs]
    if any([one.wait() != 0 for one in started]):
        fail("a run of one process failed (see above)")
    return max(median(steps_of(run), "step_seconds") for run in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--mpirun", default="--bind-to core", help="options of mpirun's")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    parser.add_argument("--rate", help="of another network, as 1gbit")
    parser.add_argument("--delay", help="of another network, as 50us")
    parser.add_argument("--backward", type=float, default=0.6, help="share of a step in backward")
    a = parser.parse_args()
    a.set.append("train.threads=" + ENVIRONMENT["OMP_NUM_THREADS"])
    launch = ["mpirun", "-np", str(a.processes), *shlex.split(a.mpirun)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text_of(train(a.config, folder / "together", a.steps, a.set, launch))
        together = steps_of(folder / "together")
        batch, shards = (written(folder / "together", key) for key in ("batch_size", "shards"))
        if batch is None or batch % a.processes:
            fail(f"train.batch_size must be there, and be divisible by {a.processes}; found {batch}")
        compute = compute_alone(a, folder, batch, shards)
        tensors, norms = tensors_of(folder / "together", folder)
    network = json.loads(text_of([*launch, BUILD / "bench/bench_network"]))
    report(a, network, compute, together, tensors, norms)
    if a.rate or a.delay:
        network["bytes_per_second"] = number(a.rate or "1gbit", RATES) / 8
        network["latency"] = number(a.delay or "50us", TIMES)
        report_of_other(a, network, compute, together, tensors, norms)


RATES = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def number(text, units):
    """A number with a unit, as tc writes it."""
    found = re.fullmatch(r"([0-9.]+)([a-z]+)", text)
    if not found or found.group(2) not in units:
        fail(f"'{text}' is no number with one of the units {', '.join(units)}")
    return float(found.group(1)) * units[found.group(2)]


def statistics_of(events, processes):
    """Bytes of a process's own numbers in a step."""
    return median(events, "statistics_bytes_sent") / scaling.rounds_of(processes)


def report_of_other(a, network, compute, together, tensors, norms):
    floats = floats_of(together, a.processes)
    costs = (network["latency"], network["overhead"], network["bytes_per_second"] * 8e-9)
    exchange = scaling.exchange(a.processes, floats, tensors, *costs)
    hidden = scaling.hidden(a.processes, compute, a.backward, floats, tensors, *costs)
    seconds, _, efficiency = scaling.step(a.processes, compute, a.backward, floats, tensors,
                                          2 * norms + 2, statistics_of(together, a.processes), *costs,
                                          network["memory_bytes_per_second"])
    print(f"at {costs[2]:g} Gbit/s and {1e6 * costs[0]:g} us, by the model: exchange {1e3 * exchange:.2f} "
          f"ms, of which {100 * hidden / exchange:.0f} % are hidden (backward is taken for "
          f"{100 * a.backward:.0f} % of a step); {1e3 * seconds:.2f} ms a step, "
          f"{100 * efficiency:.1f} % efficiency")


def report(a, network, compute, together, tensors, norms):
    n = a.processes
    floats = floats_of(together, n)
    gathers, statistics = 2 * norms + 2, statistics_of(together, n)
    costs = (network["latency"], network["overhead"], network["bytes_per_second"] * 8e-9)
    seconds, added, efficiency = scaling.step(n, compute, a.backward, floats, tensors, gathers, statistics,
                                              *costs, network["memory_bytes_per_second"],
                                              network["gather"])
    waits = scaling.gathered(n, gathers, statistics, *costs, network["gather"])
    exchange = scaling.exchange(n, floats, tensors, *costs)
    measured = median(together, "step_seconds")
    print(f"network     {n} processes: latency {1e6 * network['latency']:.1f} us, "
          f"{1e6 * network['overhead']:.2f} us a message, gather {1e6 * network['gather']:.1f} us, "
          f"{network['bytes_per_second'] / 1e9:.2f} GB/s, "
          f"memory {network['memory_bytes_per_second'] / 1e9:.1f} GB/s")
    print(f"model       {floats:.0f} floats in {tensors} tensors, "
          f"{scaling.buckets_of(n, floats, tensors)} buckets; {gathers} gathers a step, "
          f"of {statistics:.0f} bytes in all")
    print(f"compute     {1e3 * compute:.2f} ms a step, each process its share alone")
    print(f"exchange    {1e3 * exchange:.2f} ms predicted; "
          f"gathers {1e3 * waits:.2f} ms, "
          f"packing {1e3 * scaling.handled(n, floats, network['memory_bytes_per_second']):.2f} ms")
    print(f"waited      {1e3 * median(together, 'wait_seconds'):.2f} ms measured after backward")
    print(f"step        {1e3 * seconds:.2f} ms predicted ({100 * efficiency:.1f} % efficiency), "
          f"{1e3 * measured:.2f} ms measured ({100 * compute / measured:.1f} %)")
    print(f"            measured / predicted = {measured / seconds:.3f}")


if __name__ == "__main__":
    main()
