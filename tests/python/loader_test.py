"""Loaders over data of Python, which must not wait; answers of arrays; names of labels."""

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


def test_a_loop_after_a_break_yields_the_rest_of_the_epoch():
    loader = lc.Loader(lc.ArrayDataset(X, np.arange(40) % 2), batch_size=10)
    for _ in loader:
        break
    assert (loader.epoch, loader.batch_in_epoch) == (0, 1)
    assert len(list(loader)) == 3
    assert len(list(loader)) == 4


def test_labels_may_be_integer_keys_of_class_names(tmp_path):
    (tmp_path / "news.txt").write_text("1 a b\n2 c d\n1 e f\n")
    data = {"type": "labelled_text", "train": str(tmp_path / "news.txt")}
    names = {1: "World", 2: "Sports"}
    train = lc.load_data({**data, "class_names": names})["train"]
    assert train.class_names == ["World", "Sports"]
    same = lc.load_data({**data, "class_names": {str(k): v for k, v in names.items()}})
    assert same["train"].class_names == ["World", "Sports"]
    with pytest.raises(ValueError, match="'class_names': the key 1 is given twice"):
        lc.load_data({**data, "class_names": {1: "a", "1": "b"}})
    for key in (True, 1.5, None, (1,)):
        with pytest.raises(TypeError, match="is neither text nor an integer"):
            lc.load_data({**data, "class_names": {key: "a", 2: "b"}})
