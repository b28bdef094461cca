"""Loaders over data of Python's, which must not wait for each other; and answers of arrays."""

import subprocess
import sys

import numpy as np
import pytest

import lacuna as lc

RNG = np.random.default_rng(0)
X = RNG.random((40, 4), dtype=np.float32)

LOADERS = """
import threading, numpy as np, lacuna as lc

class Stripes(lc.Dataset):
    threads = set()
    def __len__(self): return 40
    def __getitem__(self, i):
        self.threads.add(threading.get_ident())
        return np.full(4, i, np.float32), i % 2

lc.register("stripes")(Stripes)
data = lc.load_data({"type": "stripes", "validation": 0.2})["train"]
for _ in range(20):
    loader = lc.Loader(data, batch_size=4, prefetch=2)
    for _ in loader:
        break
    loader.load_state_dict(loader.state_dict())
    epoch = iter(lc.Loader(data, batch_size=4))
    next(epoch)
    del epoch
assert Stripes.threads == {threading.get_ident()}, Stripes.threads
"""


def test_loaders_of_a_split_of_ones_own_data_end():
    subprocess.run([sys.executable, "-c", LOADERS], check=True, timeout=60)


def test_answers_that_are_true_or_false_are_two_classes():
    for answers in (X[:, 0] > 0.5, np.zeros(40, bool)):
        data = lc.ArrayDataset(X, answers)
        assert (data.num_classes, data.num_outputs) == (2, 0)
        assert data[0][1] == answers[0]
    assert lc.ArrayDataset(X, X[:, 0] > 0.5, num_classes=3).num_classes == 3


@pytest.mark.parametrize(
    "answers, found",
    [
        (np.zeros((20, 2), int), r"integer answers of shape \[20, 2\] do not fit 40 .* \[40\]"),
        (np.zeros((40, 1), int), r"expected \[40\], a class for each example"),
        (np.zeros((2, 40)), r"float answers of shape \[2, 40\].*\[40\] or \[40, outputs\]"),
        (np.zeros((40, 2, 2)), r"\[40, 2, 2\]"),
        (np.float32(1), r"shape \[\]"),
        (np.zeros(39), r"shape \[39\]"),
    ],
)
def test_answers_of_another_shape_are_refused(answers, found):
    with pytest.raises(lc.DataError, match=found):
        lc.ArrayDataset(X, answers)


def test_a_run_is_evaluated_with_answers_of_its_shape(tmp_path):
    y = np.stack([X[:, 0], X[:, 1] * 2], 1)
    config = {
        "model": ["linear"],
        "loss": "mse",
        "optimizer": {"type": "sgd", "lr": 0.1},
        "train": {"steps": 3, "batch_size": 20, "threads": 1},
    }
    run = lc.load(lc.train(config, run_dir=tmp_path / "run", data=(X, y)))
    whole = run.evaluate(X, y)
    assert whole["examples"] == 40
    assert run.evaluate(X[0], y[:1])["examples"] == 1
    with pytest.raises(lc.DataError, match=r"shape \[2, 40\] do not fit 40 examples"):
        run.evaluate(X, y.T)
