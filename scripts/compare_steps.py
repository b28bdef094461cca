#!/usr/bin/env python3
"""Compares whole training steps of two builds, in the same minutes: the sparse steps of NEW with the dense ones of OLD.

OLD and NEW are folders with the programs of a build's bench/ (build/release/bench): bench_model, bench_block and, of NEW,
bench_linear. The programs of both run in turns, in random order, each for a few seconds. A table at the end: for each
network the dense steps of both and the sparse one of NEW (medians of the runs), its speed over OLD's dense step and over
the faster dense one. OLD's models that its programs do not know are left empty. Wants a quiet machine, or --realtime.

usage: scripts/compare_steps.py OLD NEW [--rounds 3] [--repetitions 5] [--threads 1] [--only NAME]... [--realtime]
       [--core 0] [--seed 0]
"""
import argparse
import dataclasses
import json
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time


@dataclasses.dataclass
class Case:
    name: str
    title: str
    program: str
    sparsities: list
    options: list = dataclasses.field(default_factory=list)


CASES = [
    Case("gpt_mini", "GPT 4×128, 12 × 64 tokens", "model", [0.8, 0.9], ["--model", "gpt_mini"]),
    Case("gpt_6x384", "GPT 6×384, 16 × 256 tokens", "model", [0.9], ["--model", "gpt_6x384"]),
    Case("vit_cifar", "ViT 6×128, 128 × 65 tokens", "model", [0.8, 0.9], ["--model", "vit_cifar"]),
    Case("resnet20", "ResNet-20, batch 128", "model", [0.9], ["--model", "resnet20"]),
    Case("wrn16_2", "WRN-16-2, batch 128", "model", [0.9], ["--model", "wrn16_2"]),
    Case("block", "BERT-base block", "block", [0.9, 0.95]),
    Case("linear", "linear 128, 1024 × 1024", "linear", [0.5, 0.8, 0.9, 0.95, 0.98], ["--shape", "128x1024x1024"]),
]


class Build:
    def __init__(self, folder, arguments):
        self.folder = pathlib.Path(folder)
        self.arguments = arguments
        self.helps = {}

    def knows(self, program, option):
        if program not in self.helps:
            done = subprocess.run([self.folder / f"bench_{program}", "--help"], capture_output=True, text=True)
            self.helps[program] = done.stdout
        return option in self.helps[program]

    def rows(self, case, layouts):
        """The rows of a run; None where the program does not know the case."""
        command = ["taskset", "-c", self.arguments.core] if self.arguments.core else []
        command += [str(self.folder / f"bench_{case.program}"), *case.options, "--quick", "--repetitions",
                    str(self.arguments.repetitions), "--threads", str(self.arguments.threads), "--sparsity",
                    *map(str, case.sparsities)]
        if self.knows(case.program, "--layout"):
            command += ["--layout", *layouts]
        if self.arguments.realtime:
            command = ["chrt", "-f", "20", *command]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rows.json"
            done = subprocess.run([*command, "--json", str(file)], capture_output=True, text=True)
            if "there is no model" in done.stderr:
                return None
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: {done.stderr}")
            return json.loads(file.read_text())


def is_step(row):
    """Whether a row is of a whole step, or of all products of a layer."""
    return row.get("pass") in ("training", "forward+backward")


def collect(samples, build, case, rows):
    for row in rows or []:
        if not is_step(row):
            continue
        if case.program == "linear" and row["layout"] == "csr":  # its rows know the opponent's time
            samples.setdefault((case.name, build, "dense"), []).append(row["dense_ms"])
        if row["layout"] == "dense" and case.program != "linear":
            samples.setdefault((case.name, build, "dense"), []).append(row["ms"])
        if row["layout"] == "csr":
            samples.setdefault((case.name, build, round(row["sparsity"], 4)), []).append(row["ms"])


def text(value, digits=2):
    return "–" if value is None else f"{value:.{digits}f}"


def print_table(cases, samples):
    def median(*key):
        return statistics.median(samples[key]) if key in samples else None

    print("| | sparsity | dense, old | dense, new | csr, old | csr, new | new over old dense | over the faster dense |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for case in cases:
        old, new = median(case.name, "old", "dense"), median(case.name, "new", "dense")
        for sparsity in case.sparsities:
            before, sparse = median(case.name, "old", sparsity), median(case.name, "new", sparsity)
            dense = [value for value in (old, new) if value is not None]
            over_old = old / sparse if old and sparse else None
            over_best = min(dense) / sparse if dense and sparse else None
            print(f"| {case.title} | {100 * sparsity:g} % | {text(old)} | {text(new)} | {text(before)} | {text(sparse)} "
                  f"| {text(over_old)} | {text(over_best)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", action="append", choices=[case.name for case in CASES])
    parser.add_argument("--realtime", action="store_true", help="run the programs with real-time priority (chrt -f 20)")
    parser.add_argument("--core", default="", help="the processors to run on, as taskset -c takes them")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    cases = [case for case in CASES if not arguments.only or case.name in arguments.only]
    builds = {"old": Build(arguments.old, arguments), "new": Build(arguments.new, arguments)}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    order = random.Random(arguments.seed)
    samples = {}
    try:
        for _ in range(arguments.rounds):
            for case in order.sample(cases, len(cases)):
                for build in order.sample(["old", "new"], 2):
                    if case.program == "linear" and build == "old":
                        continue
                    began = time.monotonic()
                    collect(samples, build, case, builds[build].rows(case, ["csr"]))
                    print(f"{case.name}, {build}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    finally:  # what was measured until an interrupt is not lost
        print_table(cases, samples)


if __name__ == "__main__":
    main()
