#!/usr/bin/env python3
"""Finds the best learning rate of networks of several widths and densities, with and without `parametrization: sparse_mup`.

A grid of factors of two: an MLP of five layers on a part of MNIST, or a GPT-2 of two layers on Tiny Shakespeare; for each
width, density, rate and seed one run of a few hundred steps. A run is a line of docs/measurements/learning_rates.tsv
(learning_rates_gpt.tsv) and is not done again unless its line is deleted, so a call that was stopped goes on where it was.
docs/measurements/learning_rates*.svg show the loss over the rates, a table on standard output the best rate of each
network. The grid begins with one seed and the rates in the middle.

usage: scripts/learning_rates.py DATA [--network mlp] [--optimizer adam] [--seeds 1] [--hours 1.0] [--dry-run]
         [--lacuna PROGRAM]
  DATA        the folder of MNIST, or for --network gpt the file of Tiny Shakespeare
  --dry-run   prints the configurations that would be run, and draws from what is there
  --hours     no run begins after so many hours
"""
import argparse
import collections
import json
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ["optimizer", "parametrization", "width", "density", "log2_lr", "seed", "loss"]
BASE_WIDTH = 64
WIDTHS = [64, 128, 256]
RATES = {"adam": range(-11, -2), "adamw": range(-11, -2), "sgd": range(-8, 3)}


def mlp(a, width):
    """An MLP of four hidden layers on 6,000 examples of MNIST."""
    layers = ["flatten"]
    for i in range(1, 5):
        layers += [f"{{type: linear, name: fc{i}, out_features: {width}, init: kaiming_normal}}", "relu"]
    layers.append("{type: linear, name: fc5, out_features: 10}")
    return (f"data: {{type: mnist, dir: {json.dumps(str(pathlib.Path(a.data).resolve()))}, limit: 7000, "
            f"validation: 1000, normalize: standard}}\n"
            f"model: [{', '.join(layers)}]\n")


def gpt(a, width):
    """A GPT-2 of two layers on Tiny Shakespeare, heads of 32 features.

    The initial values were tuned at the base, as sparse_mup asks: of the deviations 0.02, 0.04, 0.08 and 0.16, 0.08 gives
    the lowest loss at width 64 (2.151, 2.076, 2.032 and 2.072 at a rate of 2⁻⁷).
    """
    return (f"data: {{type: text, path: {json.dumps(str(pathlib.Path(a.data).resolve()))}, tokenizer: characters, "
            f"context: 64, validation: 0.1}}\n"
            f"model: {{type: gpt2, n_layer: 2, n_head: {width // 32}, n_embd: {width}, n_positions: 64, initializer_range: 0.08, "
            f"resid_pdrop: 0.0, embd_pdrop: 0.0, attn_pdrop: 0.0}}\n")


Network = collections.namedtuple("Network", "write steps batch optimizer densities files losses")
NETWORKS = {
    "mlp": Network(mlp, 200, 64, "", [1.0, 0.5, 0.2, 0.1, 0.05], "learning_rates", (0.25, 0.35, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)),
    "gpt": Network(gpt, 600, 12, ", warmup: 30, clip_norm: 1.0", [1.0, 0.5, 0.2, 0.1, 0.05], "learning_rates_gpt", (1.8, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0)),
}


def table_of(a):
    return ROOT / f"docs/measurements/{NETWORKS[a.network].files}.tsv"


def config(a, run):
    network = NETWORKS[a.network]
    density = "" if run.density == 1.0 else f"sparsity: {{algorithm: static, density: {run.density}}}\n"
    # Wider networks have more heads, not larger ones.
    heads = ", attention_scale: false" if a.network == "gpt" else ""
    scaled = f"parametrization: {{type: sparse_mup, base_width: {BASE_WIDTH}{heads}}}\n"
    return (network.write(a, run.width) +
            f"optimizer: {{type: {run.optimizer}, lr: {{type: cosine, init: {2.0 ** run.log2_lr!r}}}{network.optimizer}}}\n"
            + density + (scaled if run.parametrization == "sparse_mup" else "") +
            f"train: {{steps: {network.steps}, batch_size: {network.batch}, threads: 1, seed: {run.seed}, "
            f"log_every: {network.steps}}}\n")


Run = collections.namedtuple("Run", COLUMNS[:-1])


def grid(a):
    """All runs, the cheap and telling ones first: seed by seed, from the middle of the rates outwards."""
    rates = list(RATES[a.optimizer])
    middle = (rates[0] + rates[-1]) / 2
    for seed in range(a.seeds):
        for rate in sorted(rates, key=lambda r: abs(r - middle)):
            for width in WIDTHS:
                for density in NETWORKS[a.network].densities:
                    for name in ("none", "sparse_mup"):
                        yield Run(a.optimizer, name, width, density, rate, seed)


def read_table(a):
    known = {}
    if table_of(a).exists():
        for line in table_of(a).read_text().splitlines()[1:]:
            optimizer, name, width, density, rate, seed, loss = line.split("\t")
            known[Run(optimizer, name, int(width), float(density), int(rate), int(seed))] = float(loss)
    return known


def train(a, run, folder):
    path = pathlib.Path(folder, "config.yaml")
    path.write_text(config(a, run))
    command = [a.lacuna, "train", str(path), "--run-dir", str(pathlib.Path(folder, "run")), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    summary = pathlib.Path(folder, "run/summary.json")
    loss = json.loads(summary.read_text()).get("validation_loss") if summary.exists() else None
    shutil.rmtree(pathlib.Path(folder, "run"), ignore_errors=True)
    if loss is None:  # a loss that is not finite ends a run
        if "finite" not in done.stderr:
            sys.exit(f"{shlex.join(command)}: {done.stderr}")
        return math.inf
    return float(loss)


def run_grid(a):
    known = read_table(a)
    path = table_of(a)
    todo = [run for run in grid(a) if run not in known]
    print(f"{len(todo)} runs of {NETWORKS[a.network].steps} steps to do", file=sys.stderr)
    if a.dry_run:
        for run in todo:
            print(f"# {run}\n{config(a, run)}")
        return known
    if not path.exists():
        path.write_text("\t".join(COLUMNS) + "\n")
    end = time.monotonic() + 3600.0 * a.hours
    with tempfile.TemporaryDirectory() as folder:
        for run in todo:
            if time.monotonic() > end:
                print("the hours are over; call it again to go on", file=sys.stderr)
                break
            known[run] = train(a, run, folder)
            with path.open("a") as table:
                table.write("\t".join(str(value) for value in [*run, f"{known[run]:.5g}"]) + "\n")
    return known


def curves(known, optimizer):
    """The mean loss over the seeds by rate, for each parametrization, width and density."""
    sums = collections.defaultdict(lambda: collections.defaultdict(list))
    for run, loss in known.items():
        if run.optimizer == optimizer:
            sums[run.parametrization, run.width, run.density][run.log2_lr].append(loss)
    return {key: {rate: sum(losses) / len(losses) for rate, losses in sorted(by_rate.items())}
            for key, by_rate in sums.items()}


def best(curve):
    return min(curve, key=curve.get)


def print_table(a, found):
    print("| width | density | best rate, as written | with sparse_mup |\n|---|---|---|---|")
    for width in WIDTHS:
        for density in NETWORKS[a.network].densities:
            cells = []
            for name in ("none", "sparse_mup"):
                curve = found.get((name, width, density))
                cells.append("" if not curve else f"2^{best(curve)} ({curve[best(curve)]:.3f})")
            print(f"| {width} | {density:g} | {cells[0]} | {cells[1]} |")


def draw(a, found):
    """Two panels, a line for each network: colours are densities, dashes widths; the best rate has a dot."""
    colours = {1.0: "#222222", 0.5: "#1f77b4", 0.2: "#2ca02c", 0.1: "#ff7f0e", 0.05: "#d62728"}
    dashes = dict(zip(WIDTHS, ["", "6 3", "2 3"]))
    rates = list(RATES[a.optimizer])
    finite = [loss for curve in found.values() for loss in curve.values() if math.isfinite(loss)]
    if not finite:
        return
    low, high = 0.95 * min(finite), 3.0

    def x(panel, rate):
        return 66 + 400 * panel + 340 * (rate - rates[0]) / (rates[-1] - rates[0])

    def y(loss):
        return 40 + 320 * (math.log(high) - math.log(min(max(loss, low), high))) / (math.log(high) - math.log(low))

    svg = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 430" font-family="sans-serif" font-size="13">',
           "<title>Validation loss over learning rates, by width and density</title>",
           '<rect width="960" height="430" fill="white"/>']
    for panel, name in enumerate(("none", "sparse_mup")):
        title = "as written" if name == "none" else "parametrization: sparse_mup"
        svg.append(f'<text x="{x(panel, rates[0]) + 170}" y="25" text-anchor="middle">{title}</text>')
        for rate in rates[::2]:
            svg.append(f'<text x="{x(panel, rate):.0f}" y="380" text-anchor="middle">2^{rate}</text>')
            svg.append(f'<path d="M{x(panel, rate):.0f} 40V360" stroke="#dddddd"/>')
        for loss in NETWORKS[a.network].losses:
            if loss >= low:
                svg.append(f'<path d="M{x(panel, rates[0])} {y(loss):.1f}h340" stroke="#dddddd"/>')
                svg.append(f'<text x="{x(panel, rates[0]) - 6}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss:g}</text>')
        for (which, width, density), curve in sorted(found.items()):
            if which != name:
                continue
            points = " ".join(f"{x(panel, rate):.1f},{y(loss):.1f}" for rate, loss in curve.items())
            svg.append(f'<polyline points="{points}" fill="none" stroke="{colours[density]}" stroke-width="1.5" '
                       f'stroke-dasharray="{dashes[width]}"/>')
            svg.append(f'<circle cx="{x(panel, best(curve)):.1f}" cy="{y(curve[best(curve)]):.1f}" r="4" '
                       f'fill="{colours[density]}"/>')
        svg.append(f'<text x="{x(panel, rates[0]) + 170}" y="405" text-anchor="middle">learning rate</text>')
    svg.append('<text transform="translate(14 200) rotate(-90)" text-anchor="middle">validation loss</text>')
    for i, density in enumerate(NETWORKS[a.network].densities):
        svg.append(f'<path d="M860 {60 + 22 * i}h30" stroke="{colours[density]}" stroke-width="3"/>')
        svg.append(f'<text x="896" y="{64 + 22 * i}">{density:g}</text>')
    svg.append('<text x="860" y="44">density</text><text x="860" y="204">width</text>')
    for i, width in enumerate(WIDTHS):
        svg.append(f'<path d="M860 {220 + 22 * i}h30" stroke="#222222" stroke-width="2" stroke-dasharray="{dashes[width]}"/>')
        svg.append(f'<text x="896" y="{224 + 22 * i}">{width}</text>')
    svg.append("</svg>")
    end = "" if a.optimizer == "adam" else "_" + a.optimizer
    (ROOT / f"docs/measurements/{NETWORKS[a.network].files}{end}.svg").write_text("\n".join(svg) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("--network", default="mlp", choices=sorted(NETWORKS))
    parser.add_argument("--optimizer", default="adam", choices=sorted(RATES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--lacuna", default=str(ROOT / "build/release/lacuna"))
    a = parser.parse_args()
    found = curves(run_grid(a), a.optimizer)
    if found:
        print_table(a, found)
        draw(a, found)


if __name__ == "__main__":
    main()
