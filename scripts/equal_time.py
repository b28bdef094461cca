#!/usr/bin/env python3
"""Compares sparse with dense networks at equal time, both sides tuned with the same effort.

The comparisons are in scripts/equal_time_rows.py. For each one:
1. The time of a step of every network is measured, one network after the other, in rounds, on one core. The budget of
   seconds divided by it is the network's number of steps, so that nothing depends on how busy the machine is later.
2. Trials: each side trains with the same number of settings (networks, learning rates, initial values, decay) for a tenth of
   the budget, unless the row says otherwise, with seed 0.
3. The best three of a side, at most two of one network, train for the whole budget.
4. In some rows, so do a few more values of one setting for each of the best two networks of a side.
5. The best of them all trains with the other seeds, too. Its mean and range are compared.

Every finished run is a line of docs/measurements/equal_time.tsv and is repeated only if its line is deleted, so a call
that was stopped can be continued. At the end, the runs in docs/measurements/equal-time.md, the summary in results.md and
equal_time.svg are written from the tables.

usage: scripts/equal_time.py DATA [--row NAME]... [--hours 1.0] [--seeds 3] [--dry-run] [--list] [--lacuna PROGRAM]
         [--measure-with "taskset -c 0"]
  DATA        a folder with cifar-10-batches-bin, text/tinyshakespeare.txt and text/sst2.{train,dev,test}.txt
  --dry-run   prints the commands that would be run next, and writes nothing
  --hours     no run begins after so many hours
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import shlex
import shutil
import statistics
import string
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import equal_time_report  # noqa: E402
from equal_time_rows import ROWS  # noqa: E402
from equal_time_table import CURVES, RUNS, STEPS, Run, append, read, read_steps  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEASURED_STEPS, WARM_STEPS, LOGGED_EVERY, ROUNDS = 120, 20, 20, 3
FULL_EVALUATIONS = 10
FINALISTS = 3


class OutOfTime(Exception):
    pass


def processor():
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    return f"{fields['model name']} (family {fields['cpu family']}, model {fields['model']})"


def text_of(settings):
    return " ".join(f"{key}={value}" for key, value in settings.items())


def settings_of(text):
    return dict(part.split("=", 1) for part in text.split())


class Trainer:
    """Builds the commands of a row's runs and runs them."""

    def __init__(self, a):
        self.a = a
        self.end = time.monotonic() + 3600.0 * a.hours
        self.folder = pathlib.Path(os.environ.get("LACUNA_RESULTS_DIR", ROOT / "runs/results")) / "equal_time"
        self.processor = processor()

    def command(self, row, side, network, settings, steps, folder, seed, more=()):
        values = {"data": self.a.data, "steps": steps, "warmup": max(1, min(100, steps // 20)), "three_quarters": max(1, 3 * steps // 4)}
        templates = [*row.data, *row.always, *side.always, *side.networks[network]]
        for key, value in settings.items():
            values[key] = value
            templates += row.choices[key]
        templates += [f"train.steps={steps}", f"train.log_every={LOGGED_EVERY}", "train.checkpoint=null", "train.epochs=null", *more]
        command = [self.a.lacuna, "train", str(ROOT / row.config)]
        for template in templates:
            command += ["--set", string.Template(template).substitute(values)]
        return command + ["--threads", "1", "--seed", str(seed), "--quiet", "--run-dir", str(folder)]

    def run(self, command, folder, prefix=()):
        """The events and the summary of a run. None where its loss was not finite."""
        if time.monotonic() > self.end:
            raise OutOfTime
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([*prefix, *command], capture_output=True, text=True, cwd=ROOT,
                              env=dict(os.environ, OMP_NUM_THREADS="1"))
        if not (folder / "summary.json").exists():
            if "finite" in done.stderr:
                return None
            sys.exit(f"{shlex.join(command)}: {done.stderr}")
        events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        summary = json.loads((folder / "summary.json").read_text())
        shutil.rmtree(folder, ignore_errors=True)
        return events, summary

    def measure(self, row):
        """Measures the steps of all networks of a row that have no time yet, in rounds."""
        missing = [(name, side, network) for name, side in row.sides.items() for network in side.networks
                   if (row.name, name, network) not in read_steps()]
        times = collections.defaultdict(list)
        for _ in range(ROUNDS if missing else 0):
            for name, side, network in missing:
                # One update of the masks in a hundred steps, as in a run.
                rare = [] if any("sparsity=null" in text for text in side.always) or name == "dense" else \
                    ["sparsity.update={freq: 100}"]
                settings = dict(side.defaults, **{key: values[0] for key, values in side.first.items()})
                folder = self.folder / "timing"
                command = self.command(row, side, network, settings, MEASURED_STEPS, folder, 0,
                                       ["train.eval_every=null", *rare])
                events, _ = self.run(command, folder, shlex.split(self.a.measure_with))
                seconds = {e["step"]: e["seconds"] for e in events if e["split"] == "train"}
                times[name, network].append(
                    1000.0 * (seconds[MEASURED_STEPS] - seconds[WARM_STEPS]) / (MEASURED_STEPS - WARM_STEPS))
        for (name, network), found in times.items():
            append(STEPS, [row.name, name, network, f"{statistics.median(found):.3f}", f"{min(found):.3f}",
                           f"{max(found):.3f}", self.processor, datetime.date.today().isoformat()])

    def steps(self, row, name, network, share):
        if row.steps:
            return int(row.steps * share)
        return max(20, int(1000.0 * row.seconds * share / read_steps()[row.name, name, network]))

    def train(self, row, name, network, settings, seed, stage):
        """Trains, unless the run is in the table, and returns its line there."""
        side = row.sides[name]
        key = (row.name, stage, name, network, text_of(settings), str(seed))
        known = {run[:6]: run for run in read()}
        if key in known:
            return known[key]
        steps = self.steps(row, name, network, row.trial if stage == "trial" else 1.0)
        every = "null" if stage == "trial" else str(max(1, steps // FULL_EVALUATIONS))
        folder = self.folder / "run"
        command = self.command(row, side, network, settings, steps, folder, seed, [f"train.eval_every={every}"])
        if self.a.dry_run:
            print(shlex.join(command))
            return None
        begin = time.monotonic()
        result = self.run(command, folder)
        ms = read_steps().get((row.name, name, network), 0.0)
        if result is None:
            worst = 0.0 if row.larger_is_better else float("inf")
            line = Run(*key, str(steps), f"{ms:.3f}", str(worst), str(worst), "inf", "0", "0", self.processor)
        else:
            events, summary = result
            line = Run(*key, str(steps), f"{ms:.3f}", f"{summary[row.metric]:.5f}", f"{summary[row.reported]:.5f}",
                       f"{summary['validation_loss']:.5f}", str(summary["nnz"]), str(summary["parameter_bytes"]),
                       self.processor)
            if stage == "full":
                for event in events:
                    if event["split"] == "validation":
                        append(CURVES, [row.name, name, network, text_of(settings), seed, event["step"],
                                        f"{event['loss']:.5f}", f"{event['accuracy']:.5f}"])
        append(RUNS, line)
        print(f"{time.strftime('%H:%M:%S')} {row.name} {stage} {name} {network}, {text_of(settings)}, seed {seed}: "
              f"{line.metric} ({time.monotonic() - begin:.0f} s)", flush=True)
        return line

    def trials(self, row, name):
        side = row.sides[name]
        found = []
        combinations = [dict()]
        for key, values in side.first.items():
            combinations = [dict(c, **{key: value}) for c in combinations for value in values]
        for network in side.networks:
            for choice in combinations:
                found.append(self.train(row, name, network, dict(side.defaults, **choice), 0, "trial"))
        if None in found:
            return None
        best = self.best(row, found)[0]
        for key, values in side.then.items():
            for value in values:
                settings = dict(settings_of(best.settings), **{key: str(value)})
                found.append(self.train(row, name, best.network, settings, 0, "trial"))
        return None if None in found else found

    def best(self, row, runs):
        return sorted(runs, key=lambda run: float(run.metric), reverse=row.larger_is_better)

    def best_two_networks(self, row, runs):
        """The best run of each."""
        found = {}
        for run in self.best(row, runs):
            found.setdefault(run.network, run)
        return list(found.values())[:2]

    def finalists(self, row, runs):
        chosen, count = [], collections.Counter()
        for run in self.best(row, runs):
            limit = FINALISTS - 1 if len(row.sides[run.side].networks) > 1 else FINALISTS
            if len(chosen) < FINALISTS and count[run.network] < limit:
                chosen.append(run)
                count[run.network] += 1
        return chosen

    def make(self, row):
        sizes = {name: (side.trials(), len(side.last_runs())) for name, side in row.sides.items()}
        assert len(set(sizes.values())) == 1, f"{row.name}: unequal numbers of trials {sizes}"
        if not self.a.dry_run:
            self.measure(row)
        elif not row.steps and any((row.name, name, network) not in read_steps()
                                   for name, side in row.sides.items() for network in side.networks):
            print(f"# {row.name}: its steps are measured first")
            return
        trials = {name: self.trials(row, name) for name in row.sides}
        if any(runs is None for runs in trials.values()):
            return
        full = {name: [] for name in row.sides}
        for place in range(FINALISTS):  # in turns, so that a call that stops early leaves pairs
            for name in row.sides:
                for run in self.finalists(row, trials[name])[place:place + 1]:
                    full[name].append(self.train(row, name, run.network, settings_of(run.settings), 0, "full"))
        if any(None in runs for runs in full.values()):
            return
        for name, side in row.sides.items():
            for best in self.best_two_networks(row, full[name]):
                for key, value in side.last_runs():
                    settings = dict(settings_of(best.settings), **{key: value})
                    full[name].append(self.train(row, name, best.network, settings, 0, "full"))
        if any(None in runs for runs in full.values()):
            return
        for seed in range(1, self.a.seeds):
            for name, runs in full.items():
                best = self.best(row, runs)[0]
                self.train(row, name, best.network, settings_of(best.settings), seed, "full")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", metavar="DATA", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--row", action="append", choices=[row.name for row in ROWS])
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--list", action="store_true", help="prints the rows with their trials, and ends")
    parser.add_argument("--lacuna", default=str(ROOT / "build/release/lacuna"))
    parser.add_argument("--measure-with", default="taskset -c 0", metavar="COMMAND", help="put before measured runs")
    a = parser.parse_args()
    rows = [row for row in ROWS if not a.row or row.name in a.row]
    if a.list:
        for row in rows:
            budget = f"{row.steps} steps" if row.steps else f"{row.seconds} s"
            print(f"{row.name}: {row.title}; {budget}, {row.sides['dense'].trials()} trials per side")
        return
    trainer = Trainer(a)
    try:
        for row in rows:
            trainer.make(row)
    except OutOfTime:
        print("the hours are over; call it again to go on", file=sys.stderr)
    if not a.dry_run:
        equal_time_report.write(ROWS)


if __name__ == "__main__":
    main()
