"""Functions as schedules, runs that another process resumes, NumPy's functions of Variables, and one optimizer after
another."""

import subprocess
import sys

import numpy as np
import pytest

import lacuna as lc

SCRIPT = """
import sys
import numpy as np
import lacuna as lc

X = np.random.default_rng(0).random((40, 4), dtype=np.float32)
DATA = X, np.arange(40) % 2

def config(rate):
    return {
        "model": ["flatten", {"type": "linear", "out_features": 4}, "relu", "linear"],
        "optimizer": {"type": "sgd", "lr": rate},
        "data": {"validation": 0.2},
        "train": {"steps": 6, "batch_size": 16, "threads": 1, "checkpoint": {"every": 3}},
    }

def falling(step):
    return 0.1 * 0.5**step

def weights(run):
    return {p.name: p.to_numpy() for p in lc.load(run, last=True).parameters()}
"""
exec(SCRIPT)


def assert_same(run, other):
    mine, others = weights(run), weights(other)
    for name, values in mine.items():
        np.testing.assert_array_equal(values, others[name], err_msg=name)


def begin(folder):
    """A run of another process, which has ended in the middle."""
    call = f"config(falling), run_dir={str(folder)!r}, data=DATA, on_step=lambda s, *_: s < 3"
    subprocess.run([sys.executable, "-c", f"{SCRIPT}\nlc.train({call})"], check=True, timeout=100)


def test_a_run_of_this_process_goes_on_with_its_function(tmp_path):
    whole = lc.train(config(falling), run_dir=tmp_path / "whole", data=DATA)
    keys = {"run_dir": tmp_path / "run", "data": DATA}
    run = lc.train(config(falling), on_step=lambda s, *_: s < 3, **keys)
    lc.train(config(lambda step: 5.0), run_dir=tmp_path / "other", data=DATA)
    assert_same(run.resume(data=DATA), whole)


def test_a_function_of_another_process_is_refused(tmp_path):
    begin(tmp_path / "run")
    lc.SGD(lc.Model([lc.Linear(4, 2)]).parameters(), lr=lambda step: 5.0)  # has that number, too
    with pytest.raises(lc.ConfigError, match="optimizer.lr: .* function of another process: pass"):
        lc.train(run_dir=tmp_path / "run", resume=True, data=DATA)
    assert lc.evaluate(tmp_path / "run", data=DATA)["validation"]["examples"] == 8


def test_a_function_that_is_passed_again_takes_its_place(tmp_path):
    lc.SGD(lc.Model([lc.Linear(4, 2)]).parameters(), lr=lambda step: 5.0)
    begin(tmp_path / "run")
    # Also in the form that began the run: layers are written by their types alone.
    run = lc.train(config(falling), run_dir=tmp_path / "run", resume=True, data=DATA)
    assert run.state == "finished"
    assert_same(run, lc.train(config(falling), run_dir=tmp_path / "whole", data=DATA))


def test_a_variable_of_one_value_is_true_or_false():
    assert not lc.Variable(np.zeros(1, np.float32)) and lc.Variable(np.ones((1, 1), np.float32))
    with pytest.raises(ValueError, match="one value"):
        bool(lc.Variable(np.ones(2, np.float32)))
    with pytest.raises(TypeError, match="ids of tokens"):
        lc.Variable(np.ones((2, 2), np.int64), requires_grad=True)


def test_functions_of_numpy_do_not_cut_a_gradient_silently():
    values = np.float32([[1, 2], [3, 4]])
    a = lc.Variable(values, requires_grad=True)
    with pytest.raises(TypeError, match=r"numpy\.tanh records no gradient.*numpy\(\)"):
        np.tanh(a)
    with pytest.raises(TypeError, match="numpy.maximum records no gradient"):
        np.maximum(0, a * 2)
    total = np.zeros((2, 2), np.float32)
    with pytest.raises(TypeError, match="numpy.add records no gradient"):
        total += a
    # Operators of arrays and numbers of NumPy are those of the Variable.
    for product in (values * a, np.float32(2) * a, np.multiply(a, values), values @ a, values - a):
        assert isinstance(product, lc.Variable) and product.requires_grad
    np.testing.assert_array_equal((values - a).numpy(), 0 * values)
    # A constant is an array.
    np.testing.assert_array_equal(np.sqrt(a.detach()), np.sqrt(values))
    np.testing.assert_array_equal(np.abs(a.detach() - values), 0 * values)
    assert np.add.reduce(lc.Variable(values), axis=None) == values.sum()
    # Tests have no gradient to lose.
    assert np.isfinite(a).all() and not np.isnan((a * 2).sum()) and np.less(a, 5).all()
    assert (values == a).all() and np.greater(a, 0, out=values > 9).all()
    with pytest.raises(TypeError, match="give an array as out, not a Variable"):
        np.tanh(values, out=lc.Variable(values))


def test_a_later_optimizer_begins_anew():
    x, y = DATA
    model = lc.Model([lc.Linear(4, 8, name="fc1"), lc.ReLU(), lc.Linear(8, 2, name="fc2")])
    weight = model["fc1.weight"]

    def steps(optimizer, count):
        for _ in range(count):
            lc.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()

    first = lc.sparse.RigL(0.5, update={"freq": 1}, param_filter="fc1.weight")
    model.apply(first)
    earlier = lc.Adam(model.parameters(), lr=0.01)
    earlier.apply(first)
    steps(earlier, 5)
    later = lc.Adam(model.parameters(), lr=0.01)
    with pytest.raises(lc.StateError, match="applied to an optimizer already"):
        later.apply(first)
    assert later.state(weight) == {}  # the earlier one's are not taken,
    assert set(earlier.state(weight)) == {"exp_avg", "exp_avg_sq"}  # and looking takes them from nobody
    assert "fc1.weight/exp_avg" in earlier.state_dict()
    before = weight.to_numpy()
    steps(later, 1)
    # Adam's first step is as long as its learning rate.
    assert np.abs(weight.to_numpy() - before).max() < 0.01001


class Updating(lc.sparse.DynamicSparsityAlgorithm):
    """Calls a function in each of its updates."""

    def update_mask(self, weight, mask, sparsity):
        self.call()
        return mask


def test_an_algorithm_goes_to_a_later_optimizer():
    x, y = DATA
    model = lc.Model([lc.Linear(4, 8, name="fc1"), lc.ReLU(), lc.Linear(8, 2, name="fc2")])
    algorithm = Updating(0.5, update={"freq": 1})
    algorithm.call = lambda: None

    def step(optimizer):
        lc.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    model.apply(algorithm)
    earlier, later = lc.Adam(model.parameters(), lr=0.01), lc.SGD(model.parameters(), lr=0.01)
    earlier.apply(algorithm)
    step(earlier)
    with pytest.raises(lc.StateError, match=r"release_optimizer\(\) ends that"):
        later.apply(algorithm)
    for call in (algorithm.release, algorithm.release_optimizer):
        algorithm.call = call
        with pytest.raises(lc.StateError, match="was called while it updates masks"):
            step(earlier)
    algorithm.call = lambda: None
    algorithm.release_optimizer()
    with pytest.raises(lc.StateError, match="has not been applied to one"):
        algorithm.update()
    later.apply(algorithm)
    counted = algorithm.step
    step(earlier)
    assert algorithm.step == counted
    step(later)
    assert algorithm.step == counted + 1
    mask = model["fc1.weight"].mask
    algorithm.release()
    assert algorithm.weights == [] and algorithm.sparse_params == {}
    step(later)
    assert np.array_equal(model["fc1.weight"].mask, mask)
