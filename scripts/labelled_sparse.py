#!/usr/bin/env python3
"""Writes synthetic data of extreme classification: sparse examples with several labels each, for data of type
labelled_sparse. Each label has features of its own; an example has most of the features of its labels, and others drawn
at random. Labels are drawn by Zipf's law, as in real data, and those of one example are neighbours.

    scripts/labelled_sparse.py OUT [--examples 100000] [--features 100000] [--labels 670000]

OUT gets train.txt and test.txt, a tenth as long. The same numbers give the same files.
"""
import argparse
import math
import pathlib
import random

FEATURES_OF_A_LABEL = 8


def features_of(label, features):
    return [(label * 2654435761 + (n + 1) * 40503 * (label + 97)) % 4294967291 % features
            for n in range(FEATURES_OF_A_LABEL)]


def example(options, rng):
    base = int(options.labels ** rng.random()) - 1  # log-uniform ranks: Zipf's law of exponent 1
    count = rng.randint(1, 2 * options.labels_each - 1)
    labels = sorted({(base + rng.randrange(2 * count)) % options.labels for _ in range(count)})
    chosen = {rng.randrange(options.features) for _ in range(options.features_each // 2)}
    for label in labels:
        chosen.update(rng.sample(features_of(label, options.features), FEATURES_OF_A_LABEL - 2))
    values = [rng.uniform(0.5, 1.5) for _ in chosen]
    length = math.sqrt(sum(value * value for value in values))
    features = " ".join(f"{f}:{v / length:.4f}" for f, v in zip(sorted(chosen), values))
    return ",".join(map(str, labels)) + " " + features + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--examples", type=int, default=100000, help="of train.txt")
    parser.add_argument("--features", type=int, default=100000)
    parser.add_argument("--labels", type=int, default=670000)
    parser.add_argument("--labels-each", type=int, default=5, help="about the mean number of an example")
    parser.add_argument("--features-each", type=int, default=75, help="the same of features")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    for name, examples in (("train", options.examples), ("test", max(options.examples // 10, 1))):
        with open(options.out / f"{name}.txt", "w", encoding="ascii") as out:
            out.write(f"{examples} {options.features} {options.labels}\n")
            for _ in range(examples):
                out.write(example(options, rng))


if __name__ == "__main__":
    main()
