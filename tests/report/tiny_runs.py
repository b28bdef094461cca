"""Runs that the checks of this folder look at: glyphs, a small network, RigL."""
import os
import shutil
import subprocess

CONFIG = """
data: {type: glyphs, train_size: 1000, test_size: 200, validation: 0.1}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 40}
  - relu
  - {type: linear, name: fc2, out_features: 10}
optimizer: {type: adam, lr: 0.005}
sparsity: {algorithm: rigl, sparsity: 0.8, update: {freq: 5}, param_filter: default}
train: {epochs: 4, batch_size: 50, threads: 1, log_every: 5, checkpoint: {every: 7}}
"""


def fresh_folder(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    with open(os.path.join(path, "config.yaml"), "w", encoding="utf-8") as file:
        file.write(CONFIG)
    return path


def lacuna(program, *arguments, expect=0, **environment):
    ended = subprocess.run([program, *arguments], capture_output=True, text=True,
                           env={**os.environ, **environment}, check=False)
    assert ended.returncode == expect, (arguments, ended.returncode, ended.stderr)
    return ended.stdout


def train(program, folder, name, *more, expect=0, **environment):
    run = os.path.join(folder, name)
    lacuna(program, "train", os.path.join(folder, "config.yaml"), "--run-dir", run, "--quiet",
           *more, expect=expect, **environment)
    return run
