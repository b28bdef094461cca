"""Trains random small configurations and checks what must hold for each of them.

A configuration is known by its seed and its number, so one that fails is repeated alone:
    run.py LACUNA FOLDER --seed S --first NUMBER --count 1
The folder of a configuration that fails is kept; other folders are removed. The exit code is 1 if an
invariant does not hold.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import sys
import time

import configurations
import data_makers
import extremes
import invariants
import program as lacuna


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lacuna", help="the program")
    parser.add_argument("folder", help="where to work; what an earlier run left there is replaced")
    parser.add_argument("--count", type=int, default=100, help="configurations (default 100)")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="configurations at a time")
    parser.add_argument("--extremes", default=4, metavar="N|all",
                        type=lambda text: None if text == "all" else int(text),
                        help="extreme values tried in each configuration (default 4)")
    parser.add_argument("--seconds", type=float, default=0,
                        help="begin no configuration after this time (default: no limit)")
    parser.add_argument("--without", nargs="*", default=[], help="invariants not to check",
                        choices=[invariant.__name__ for invariant in invariants.ALL])
    return parser.parse_args()


def check(options, data, number):
    """(kind, whether it trained, counts, faults, slowest extreme) of one configuration."""
    folder = f"{options.folder}/{options.seed}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    kind, config = configurations.configuration(options.seed, number, data)
    program = lacuna.Program(options.lacuna, f"{options.folder}/cache")
    case = invariants.Case(program, kind, config, folder, data,
                           random.Random(f"{options.seed}/{number}/checks"))
    case.slowest = (0, "")
    try:
        trained = invariants.check_case(case, options.without)
        if trained:
            extremes.check_extremes(case, options.extremes)
    except Exception as error:  # a fault of the checker or of a file that it reads: reported as one
        trained = True
        case.faults.append(f"checker: {type(error).__name__}: {error}")
    if not case.faults:
        invariants.remove_folder(case)
    return kind, trained, case.counts, case.faults, case.slowest


def main():
    options = arguments()
    options.folder = os.path.abspath(options.folder)
    options.lacuna = os.path.abspath(options.lacuna)
    data = f"{options.folder}/data"
    shutil.rmtree(data, ignore_errors=True)
    os.makedirs(options.folder, exist_ok=True)
    data_makers.make_data(data, options.seed)
    began, counts, failed, refused, done = time.monotonic(), collections.Counter(), 0, 0, 0
    slowest = (0, "")
    numbers = iter(range(options.first, options.first + options.count))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {}
        while True:
            late = 0 < options.seconds < time.monotonic() - began
            while not late and len(waiting) < options.jobs:
                number = next(numbers, None)
                if number is None:
                    break
                waiting[pool.submit(check, options, data, number)] = number
            if not waiting:
                break
            ended, _ = concurrent.futures.wait(
                waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in ended:
                number = waiting.pop(future)
                kind, trained, checks, faults, slow = future.result()
                done += 1
                refused += not trained
                counts.update(checks)
                slowest = max(slowest, slow)
                failed += bool(faults)
                for fault in faults:
                    print(f"{options.seed}-{number} {kind}: {fault}", flush=True)
    print(f"{done} configurations ({refused} refused by lacuna), {sum(counts.values())} checks, "
          f"{failed} configurations failed, {time.monotonic() - began:.0f} s")
    for name, count in sorted(counts.items()):
        print(f"{count:8} {name}")
    if slowest[0]:
        print(f"longest extreme: {slowest[0]} s, {slowest[1]}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
