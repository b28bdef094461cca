"""What the module has before anything is trained: exceptions, random numbers, the log."""

import os
import subprocess
import sys

import numpy as np
import pytest

import lacuna as lc


def test_exceptions_are_classes_of_pythons_kinds():
    for error in (lc.ShapeError, lc.ConfigError, lc.CheckpointError, lc.DataError, lc.StateError):
        assert issubclass(error, lc.Error)
    assert issubclass(lc.ShapeError, ValueError)
    assert issubclass(lc.MemoryError, MemoryError)
    assert not issubclass(lc.StateError, ValueError)


def test_random_numbers_are_functions_of_seed_name_and_step():
    draws = lc.random(3, "fc1.weight", 7).uniform((4, 5))
    assert draws.shape == (4, 5) and draws.dtype == np.float32
    assert (draws >= 0).all() and (draws < 1).all()
    np.testing.assert_array_equal(draws, lc.random(3, "fc1.weight", 7).uniform((4, 5)))
    assert (draws != lc.random(3, "fc1.weight", 8).uniform((4, 5))).any()
    numbers = lc.random(0, "x").integers(10, (1000,))
    assert numbers.dtype == np.int64 and set(numbers) == set(range(10))


def test_threads_can_be_set():
    threads = lc.num_threads()
    lc.set_num_threads(1)
    assert lc.num_threads() == 1
    lc.set_num_threads(threads)
    with pytest.raises(lc.StateError):
        lc.set_num_threads(0)


def test_import_prints_nothing_and_does_not_import_numpy():
    code = "import sys, lacuna; print('numpy' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, env=os.environ
    )
    assert (run.stdout, run.stderr) == ("False\n", "")


def test_a_shortcut_is_used_whatever_the_shapes():
    x = np.array([[1.0, -2.0, 3.0, -4.0]], np.float32)
    model = lc.Model([lc.Residual("relu", shortcut=["tanh"])], input_shape=(4,))
    np.testing.assert_allclose(model.predict(x), np.maximum(x, 0) + np.tanh(x), rtol=1e-6)
    linear = lc.Model([lc.Residual(lc.Linear(4, 4), shortcut=[lc.Linear(4, 4)])], input_shape=(4,))
    assert len(list(linear.named_parameters())) == 4
