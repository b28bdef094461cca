"""What the dict of a state may hold."""

import pickle

import numpy as np
import pytest

import lacuna as lc
from lacuna import sparse

REFUSED = [b"ab", 1j, np.longdouble(1), np.array(1j), np.array(b"ab"), np.datetime64(1, "D")]


@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_other_values_are_refused(value):
    model = lc.Model([lc.Linear(20, 8)])
    with pytest.raises(TypeError, match="state 'x': a state holds numbers, texts, .* of rank 0"):
        model.load_state({"x": value})


@pytest.mark.parametrize("value", [2**70, -(2**63) - 1, np.array([2**63], np.uint64)], ids=repr)
def test_integers_of_more_than_64_bits_are_refused(value):
    model = lc.Model([lc.Linear(20, 8)])
    with pytest.raises(ValueError, match="state 'x': an integer must be at least -2"):
        model.load_state({"x": value})


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_a_configurations_integers_are_refused_by_key(tmp_path, value):
    with pytest.raises(ValueError, match=r"configuration 'train.steps': an integer must .* found -?\d"):
        lc.train({"train": {"steps": value}}, run_dir=tmp_path / "run")


def train(algorithm, run, **given):
    config = {
        "model": ["flatten", {"type": "linear", "out_features": 4}, "linear"],
        "optimizer": {"type": "sgd", "lr": 0.1},
        "sparsity": {"algorithm": algorithm, "sparsity": 0.5, "update": {"freq": 2}},
        "train": {"steps": 4, "batch_size": 8, "checkpoint": {"every": 2}},
    }
    x = np.random.default_rng(0).random((16, 5), dtype=np.float32)
    lc.train(config, run_dir=run, data=(x, np.arange(16) % 2), **given)


def test_an_algorithms_arrays_of_int8_come_back(tmp_path):
    signs = np.arange(-128, 128, dtype=np.int8).reshape(2, 128)
    restored = []

    class HasSigns(sparse.SET):
        def state_dict(self):
            return {**super().state_dict(), "signs": signs[:, ::2]}

        def load_state_dict(self, state):
            restored.append(state.pop("signs"))
            super().load_state_dict(state)

    train("HasSigns", tmp_path / "run")
    train("HasSigns", tmp_path / "run", resume=True, set={"train.steps": 6})
    assert restored and restored[-1].dtype == np.int8
    assert np.array_equal(restored[-1], signs[:, ::2])


def test_an_algorithms_state_is_refused_at_the_checkpoint(tmp_path):
    class PicklesItsState(sparse.SET):
        def state_dict(self):
            return {**super().state_dict(), "extra": pickle.dumps({})}

    with pytest.raises(TypeError, match="state 'extra': a state holds"):
        train("PicklesItsState", tmp_path / "run")
