"""Runs lacuna from given weights, and reads what it has trained."""
import copy
import dataclasses
import json
import os
import shutil
import subprocess

import numpy as np


@dataclasses.dataclass
class Trained:
    losses: list  # of each step's batch, before its update
    values: dict  # parameters and buffers after the last step
    test_loss: float = None


def run(lacuna, *arguments):
    done = subprocess.run([lacuna, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"lacuna {' '.join(arguments)}: exit code {done.returncode}\n"
                           f"{done.stdout}{done.stderr}")


def placed(config, data_folder):
    """The configuration with the place of its data."""
    config = copy.deepcopy(config)
    if config["data"]["type"] == "labelled_text":
        config["data"]["train"] = f"{data_folder}/train.txt"
    else:
        config["data"]["dir"] = data_folder
    return config


def losses_of(run_folder):
    with open(f"{run_folder}/metrics.jsonl", encoding="utf-8") as lines:
        events = [event for event in map(json.loads, lines) if event["split"] == "train"]
    if [event["step"] for event in events] != list(range(1, len(events) + 1)):
        raise RuntimeError(f"{run_folder}/metrics.jsonl: expected a line for each step")
    return [event["loss"] for event in events]


def exported(lacuna, run_folder, step, path):
    """Parameters, buffers and masks of a checkpoint."""
    run(lacuna, "export", f"{run_folder}/checkpoints/step-{step:010d}.h5", "--format", "npz", "--out", path,
        "--overwrite")
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def write_initial(path, values, masks):
    pruned = {name: value * masks[name] if name in masks else value for name, value in values.items()}
    np.savez(path, **pruned, **{name + "_mask": mask for name, mask in masks.items()})


def start(lacuna, config, folder, values, masks, threads=1):
    """Trains in `folder`, from the first step, from these values, and returns the run folder."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    # JSON is YAML, too.
    with open(f"{folder}/config.yaml", "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    write_initial(f"{folder}/initial.npz", values, masks)
    run(lacuna, "train", f"{folder}/config.yaml", "--init-from", f"{folder}/initial.npz", "--run-dir",
        f"{folder}/run", "--threads", str(threads), "--quiet")
    return f"{folder}/run"


def train(lacuna, case, data_folder, folder, values, masks):
    """A case's training as lacuna does it."""
    run_folder = start(lacuna, placed(case.config, data_folder), folder, values, masks, case.threads)
    with open(f"{run_folder}/summary.json", encoding="utf-8") as file:
        summary = json.load(file)
    return Trained(losses_of(run_folder),
                   exported(lacuna, run_folder, case.config["train"]["steps"], f"{folder}/trained.npz"),
                   summary.get("test_loss"))
