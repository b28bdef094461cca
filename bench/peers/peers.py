"""Whole training steps of PyTorch and lacuna on this machine, side by side: four networks, dense and sparse, on
one thread and on all.

usage: bench/peers/peers.py [--minutes M] [--networks mlp gpt ...] [--threads 1 2 ...] [--program LACUNA]
                            [--python PYTHON] [--out FILE]

scripts/peers.sh installs and builds what is missing before it. A round runs each contender for a moment, in random
order, and keeps the median of its steps. Reported are the median over the rounds and their spread, (highest -
lowest) / median. A contender whose step takes longer than that moment runs in the first three rounds alone.

The networks are the same on either side (their numbers of parameters are compared), so are optimizer and batch.
PyTorch trains on one batch of noise, lacuna reads batches from its loader. PyTorch is the one that PYTHON
imports (default: Debian's, /usr/bin/python3). bf16 is autocast, and takes part where the processor multiplies bf16.
"""
import argparse
import json
import math
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import configurations

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
ROUNDS = 3  # at least
COLUMNS = ("network", "threads", "program", "kind", "sparsity", "ms", "spread", "rounds", "steps", "parameters")


def fail(text):
    sys.exit(f"peers: {text}")


def environment(threads):
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads)}


# PyTorch takes its memory from malloc. By default that returns large pieces to the system after each use, and touching
# new ones can take half of a step.
KEPT_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_TOP_PAD_": str(2**26)}


def fast_blas():
    """Puts the OpenBLAS before others that runs its products on PyTorch's own OpenMP threads. Debian prefers one with threads
    of its own, which take turns with PyTorch's: steps on two threads took up to four times as long."""
    folders = [*map(str, pathlib.Path("/usr/lib").glob("*/openblas-openmp")), os.environ.get("LD_LIBRARY_PATH", "")]
    return {"LD_LIBRARY_PATH": ":".join(filter(None, folders))}


class PyTorch:
    """A process that trains the contenders of PyTorch, and waits in between."""

    def __init__(self, python, threads):
        self.process = subprocess.Popen([python, "-B", str(FOLDER / "torch_worker.py"), str(threads)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment(threads) | KEPT_MEMORY | fast_blas())
        first = self.answer()
        if not first["blas"]:
            fail("PyTorch here computes products by a slow BLAS: the reference BLAS takes some 20 times as long as others, and "
                 "an OpenBLAS with threads of its own up to four times. Install another one, such as Debian's "
                 "libopenblas0-openmp (scripts/install_dependencies.sh --peers).")
        self.version = f"{first['version']} with {first['blas']}"

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            fail("PyTorch's process ended; see above")
        return json.loads(line)

    def ask(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Lacuna:
    """Runs the program once for each measurement, and reads its log of each step."""

    WARM = 3  # steps that are not counted: the first ones touch new memory

    def __init__(self, program, name, sparsity, threads, folder):
        self.program, self.name, self.sparsity, self.threads = program, name, sparsity, threads
        self.folder = pathlib.Path(folder)
        self.count = 0
        self.parameters = self.execute(2)[0]["numel"]  # measures layouts, which the program keeps
        self.ms = statistics.median(self.execute(self.WARM + 2)[1])

    def execute(self, steps):
        self.count += 1
        run = self.folder / f"run-{self.count}"
        config = self.folder / "config.yaml"
        config.write_text(configurations.configuration(self.name, self.sparsity, self.threads, steps,
                                                       self.folder.parent / "text.txt"), encoding="utf-8")
        ended = subprocess.run([self.program, "train", config, "--run-dir", run, "--quiet"], text=True,
                               capture_output=True, env=environment(self.threads))
        if ended.returncode != 0:
            fail(f"lacuna failed: {ended.stderr}{ended.stdout}")
        events = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        seconds = [event["seconds"] for event in events if event["split"] == "train"]
        ms = [1e3 * (b - a) for a, b in zip(seconds[self.WARM - 1:], seconds[self.WARM:])]
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
        subprocess.run(["rm", "-r", run], check=True)
        return summary, ms

    def run(self, seconds):
        ms = self.execute(self.WARM + max(2, math.ceil(1e3 * seconds / self.ms)))[1]
        self.ms = statistics.median(ms)
        return ms


def measure(name, threads, options, has_bf16, folder):
    """The rows of a network, and PyTorch's version."""
    end = time.monotonic() + 60 * options.minutes * configurations.NETWORKS[name].share / options.shares
    torch = PyTorch(options.python, threads)
    runs, parameters, moment = {}, {}, options.moment
    for number, contender in enumerate(configurations.contenders(name, has_bf16)):
        program, kind, sparsity = contender
        if program == "pytorch":
            made = torch.ask(make=[name, kind, sparsity], key=number)
            parameters[contender] = made["parameters"]
            runs[contender] = lambda warm, key=number: torch.ask(run=key, seconds=moment, warm=warm)["ms"]
        else:
            place = folder / f"{name}-{threads}-{number}"
            place.mkdir()
            lacuna = Lacuna(options.program, name, sparsity, threads, place)
            parameters[contender] = lacuna.parameters
            runs[contender] = lambda warm, lacuna=lacuna: lacuna.run(moment)
    medians, steps = {contender: [] for contender in runs}, dict.fromkeys(runs, 0)
    slow, longest, count = set(), 0.0, 0
    while count < ROUNDS or time.monotonic() + longest < end:
        start = time.monotonic()
        order = [contender for contender in runs if count < ROUNDS or contender not in slow]
        random.shuffle(order)
        for contender in order:
            ms = runs[contender](contender not in slow)
            medians[contender].append(statistics.median(ms))
            steps[contender] += len(ms)
            if medians[contender][-1] > 1e3 * moment and contender[1] == "csr":
                slow.add(contender)
        longest = time.monotonic() - start
        count += 1
    torch.close()
    rows = []
    for contender, times in medians.items():
        middle = statistics.median(times)
        rows.append((name, threads, *contender, f"{middle:.3f}", f"{(max(times) - min(times)) / middle:.3f}",
                     len(times), steps[contender], parameters[contender]))
    return rows, torch.version


def processor():
    """Its name, and what it multiplies bf16 with."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    def field(key):
        return next((line.split(":", 1)[1].strip() for line in text.splitlines()
                     if line.split(":")[0].strip() == key), "unknown")
    flags = field("flags").split()
    bf16 = "AMX" if "amx_bf16" in flags else "AVX-512" if "avx512_bf16" in flags else ""
    return f"{field('model name')} (family {field('cpu family')}, model {field('model')})", bf16


def busy_seconds():
    """Of all processors since the machine started, time stolen from a virtual machine included."""
    user, nice, system, _, _, irq, softirq, steal = map(int, pathlib.Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--minutes", type=float, default=5.0, help="time of all, about (default 5; three rounds may take longer)")
    words.add_argument("--moment", type=float, default=0.5, help="seconds of a contender in a round (default 0.5)")
    words.add_argument("--networks", nargs="+", choices=configurations.NETWORKS, help="default: all",
                       default=list(configurations.NETWORKS))
    words.add_argument("--threads", nargs="+", type=int, help="default: 1 and all")
    words.add_argument("--program", default=str(ROOT / "build/release/lacuna"))
    words.add_argument("--python", default="/usr/bin/python3", help="a Python with PyTorch")
    words.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/measurements/peers.tsv")
    options = words.parse_args()
    if subprocess.run([options.python, "-c", "import torch"], capture_output=True).returncode != 0:
        fail(f"{options.python} has no PyTorch; apt-get install python3-torch, or name another by --python")
    if not os.access(options.program, os.X_OK):
        fail(f"there is no program {options.program}; scripts/peers.sh builds it")
    threads = options.threads or sorted({1, len(os.sched_getaffinity(0))})
    options.shares = len(threads) * sum(configurations.NETWORKS[name].share for name in options.networks)
    name, bf16 = processor()
    if not bf16:
        print("peers: this processor does not multiply bf16, so bf16 is left out", file=sys.stderr)
    rows = []
    start, busy, own = time.monotonic(), busy_seconds(), own_seconds()
    with tempfile.TemporaryDirectory(prefix="lacuna-peers-") as folder:
        # Each of 65 characters, then noise; the token that hides others is not among them.
        characters = [chr(i) for i in range(33, 99) if chr(i) != "_"]
        (pathlib.Path(folder) / "text.txt").write_text("".join(characters + random.choices(characters, k=40000)))
        for count in threads:
            for network in options.networks:
                print(f"peers: {network}, {count} thread{'s' if count > 1 else ''}", file=sys.stderr, flush=True)
                added, version = measure(network, count, options, bool(bf16), pathlib.Path(folder))
                if len({row[-1] for row in added}) != 1:
                    fail(f"{network} has different numbers of parameters: {added}")
                rows += added
    others = (busy_seconds() - busy - (own_seconds() - own)) / ((time.monotonic() - start) * os.cpu_count())
    lacuna = subprocess.run([options.program, "--version"], text=True, capture_output=True, check=True).stdout.strip()
    partial = options.out.with_suffix(".new")
    with open(partial, "w", encoding="utf-8") as out:
        out.write(f"# processor\t{name}\n# bf16\t{bf16 or 'none'}\n# pytorch\t{version}\n# lacuna\t{lacuna}\n"
                  f"# date\t{time.strftime('%Y-%m-%d', time.gmtime())}\n# others\t{max(0.0, others):.3f}\n")
        for row in (COLUMNS, *rows):
            out.write("\t".join(map(str, row)) + "\n")
    partial.replace(options.out)
    print(f"peers: written: {options.out}; other programs took {100 * others:.1f} % of the processors",
          file=sys.stderr)


if __name__ == "__main__":
    main()
