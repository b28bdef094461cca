#!/usr/bin/env -S python3 -IS
"""Stands in for `lacuna train`: writes what scripts/equal_time.py reads, a step of 10 ms, and a loss that depends on the
learning rate, the seed, the steps and, in runs of more than 4,000 steps, the weight decay. Its arguments are appended to
$TRAINER_LOG."""
import json
import os
import pathlib
import re
import sys

arguments = sys.argv[1:]
with open(os.environ["TRAINER_LOG"], "a", encoding="utf-8") as log:
    log.write(" ".join(arguments) + "\n")
sets = [arguments[i + 1] for i, argument in enumerate(arguments) if argument == "--set"]
steps = int(next(text for text in sets if text.startswith("train.steps=")).split("=")[1])
seed = int(arguments[arguments.index("--seed") + 1])
rate = float(re.search(r"init: ([0-9.e-]+), minimum", " ".join(sets)).group(1))
is_sparse = "sparsity=null" not in sets and any(text.startswith("sparsity=") for text in sets)
decay = float(next((text.split("=")[1] for text in sets if text.startswith("optimizer.weight_decay=")), 0.0))
loss = 2.0 + abs(rate - 3e-3) + 0.01 * seed - 0.1 * is_sparse - 1e-6 * steps
if steps > 4000:
    loss -= 0.01 * decay
folder = pathlib.Path(arguments[arguments.index("--run-dir") + 1])
folder.mkdir(parents=True)
with open(folder / "metrics.jsonl", "w", encoding="utf-8") as file:
    for step in range(20, steps + 1, 20):
        file.write(json.dumps({"step": step, "split": "train", "seconds": 0.01 * step}) + "\n")
    file.write(json.dumps({"step": steps, "split": "validation", "loss": loss, "accuracy": 1.0 / loss}) + "\n")
summary = {"validation_loss": loss, "validation_accuracy": 1.0 / loss, "test_accuracy": 1.0 / loss, "nnz": 1000,
           "parameter_bytes": 16000}
(folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
