"""The tables of scripts/equal_time.py: one line per run, per measured step and per evaluation."""
import collections
import csv
import os
import pathlib

FOLDER = pathlib.Path(os.environ.get("LACUNA_TABLES_DIR") or pathlib.Path(__file__).resolve().parent.parent / "docs/measurements")
RUNS = FOLDER / "equal_time.tsv"
STEPS = FOLDER / "equal_time_steps.tsv"
CURVES = FOLDER / "equal_time_curves.tsv"
Run = collections.namedtuple("Run", "row stage side network settings seed steps ms metric reported loss nnz bytes processor")
Point = collections.namedtuple("Point", "row side network settings seed step loss accuracy")
HEADS = {
    RUNS: Run._fields,
    STEPS: ("row", "side", "network", "ms", "lowest", "highest", "processor", "date"),
    CURVES: Point._fields,
}


def lines(path):
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.reader(file, delimiter="\t"))[1:]


def append(path, values):
    new = not path.exists()
    with path.open("a") as file:
        if new:
            file.write("\t".join(HEADS[path]) + "\n")
        file.write("\t".join(str(value) for value in values) + "\n")


def read():
    return [Run(*line) for line in lines(RUNS)]


def read_steps():
    return {(line[0], line[1], line[2]): float(line[3]) for line in lines(STEPS)}


def read_curves():
    return [Point(*line) for line in lines(CURVES)]
