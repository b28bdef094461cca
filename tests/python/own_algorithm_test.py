"""An algorithm in Python is the one in C++ (examples/custom_sparsity.cpp), bit for bit, and resumes."""

import os
import subprocess

import numpy as np
import pytest

import lacuna as lc
from lacuna import sparse

EXAMPLE = os.environ.get("LACUNA_DESCENT_EXAMPLE", "")
CONFIG = os.path.join(os.environ["LACUNA_SOURCE_DIR"], "configs", "quickstart.yaml")
SHORT = {"train.epochs": 1, "data.train_size": 2000}


@lc.register("descent_in_python")
class Descent(sparse.SET):
    """SET that grows where the gradient is most negative, so that new weights begin positive."""

    def wants_dense_gradient(self, step):
        return self.is_update_step(step)

    def grow(self, p, kept, count):
        return p.grow_maximum(kept, np.maximum(-p.dense_grad, 0), count)


@lc.register("drifting")
class Drifting(sparse.Dynamic):
    """Moves its masks by random numbers and a count of its own."""

    count = 0

    def update_mask(self, p, mask, sparsity):
        self.count += 1
        rng = lc.random(self.count, p.name, self.step)
        kept = p.keep(mask, rng.uniform(p.shape), p.target_nnz // 2)
        return p.grow_random(kept, rng, p.target_nnz)

    def state_dict(self):
        return {**super().state_dict(), "count": self.count}

    def load_state_dict(self, state):
        super().load_state_dict({k: v for k, v in state.items() if k != "count"})
        self.count = state["count"]


def section(name):
    return {"algorithm": name, "sparsity": 0.9, "update": {"freq": 4}}


def loaded(run_dir):
    model = lc.load(run_dir).model
    return model.state_dict()


def assert_same(one, other):
    assert sorted(one) == sorted(other)
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


needs_train = pytest.mark.skipif(not hasattr(lc, "train"), reason="runs are not in this build")


@needs_train
@pytest.mark.skipif(not os.path.exists(EXAMPLE), reason="the examples are not built")
def test_an_algorithm_in_python_is_the_one_in_cpp(tmp_path):
    subprocess.run(
        [EXAMPLE, "train", CONFIG, "--quiet", "--run-dir", str(tmp_path / "cpp")]
        + [f"--set={key}={value}" for key, value in SHORT.items()]
        + ["--set=sparsity={algorithm: descent, sparsity: 0.9, update: {freq: 4}}"],
        check=True,
    )
    lc.train(CONFIG, run_dir=tmp_path / "py", set={**SHORT, "sparsity": section("descent_in_python")})
    cpp = loaded(tmp_path / "cpp")
    assert "fc1.weight_mask" in cpp
    assert_same(cpp, loaded(tmp_path / "py"))


@needs_train
def test_masks_of_an_algorithm_in_python_resume_bit_for_bit(tmp_path):
    options = {"data.train_size": 2000, "sparsity": section("drifting")}
    lc.train(CONFIG, run_dir=tmp_path / "whole", set={**options, "train.steps": 12})
    lc.train(CONFIG, run_dir=tmp_path / "parts", set={**options, "train.steps": 6})
    lc.train(run_dir=tmp_path / "parts", resume=True, change={"train.steps": 12})
    assert_same(loaded(tmp_path / "whole"), loaded(tmp_path / "parts"))


def test_algorithms_in_python_resume_in_loops_of_ones_own():
    x = np.random.default_rng(0).random((8, 20), dtype=np.float32)

    def make():
        model = lc.Model([lc.Linear(20, 10, name="fc1")])
        group = sparse.configure([{**section("drifting"), "update": {"freq": 1}}])
        model.apply(group)
        optimizer = lc.Adam(model.parameters(), lr=1e-2)
        optimizer.apply(group)
        return model, optimizer, group

    def steps(parts, count):
        for _ in range(count):
            lc.cross_entropy(parts[0](x), np.arange(8)).backward()
            parts[1].step()
            parts[1].zero_grad()

    whole = make()
    steps(whole, 3)
    state = whole[0].state(), whole[1].state_dict(), whole[2].state_dict()
    assert state[2]["0/count"] == 3 and state[2]["0/type"] == "drifting"
    steps(whole, 3)
    parts = make()
    for part, saved in zip((parts[0].load_state, *(p.load_state_dict for p in parts[1:])), state):
        part(saved)
    steps(parts, 3)
    assert_same(whole[0].state_dict(), parts[0].state_dict())
    with pytest.raises(lc.CheckpointError, match="drifting"):
        sparse.SET(0.5).load_state_dict(sparse.Static(0.5).state_dict() | {"type": "drifting"})


def test_names_are_taken_once():
    with pytest.raises(lc.StateError, match="rigl"):
        lc.register("rigl")(Drifting)
    assert lc.register("drifting")(Drifting) is Drifting  # as where a cell of a notebook runs again
    with pytest.raises(TypeError, match="not a SparsityAlgorithm"):
        lc.register("mine")(dict)


def test_registered_functions_are_schedules():
    @lc.register("halving_of_test")
    def halving(step):
        return 0.5**step

    model = lc.Model([lc.Linear(3, 3)])
    optimizer = lc.SGD(model.parameters(), lr={"type": "halving_of_test"})
    assert optimizer.lr == 1.0
    model.parameters()[0].grad = np.ones((3, 3))
    optimizer.step()
    assert optimizer.lr == 0.5


@pytest.mark.parametrize("bad", [float("nan"), 2.0, -1.0])
@pytest.mark.parametrize("key", ["sparsity", "drop_fraction"])
@pytest.mark.parametrize("kind", [sparse.SET, sparse.GMP])
def test_schedules_that_give_no_fraction_are_refused_in_own_loops(kind, key, bad):
    if (kind, key) == (sparse.GMP, "drop_fraction"):
        pytest.skip("gmp takes none")
    options = {"sparsity": 0.5, "update": {"freq": 1}, key: lambda step: 0.5 if step < 2 else bad}
    model = lc.Model([lc.Linear(20, 10, name="fc1")])
    algorithm = kind(**options)
    model.apply(algorithm)
    optimizer = lc.SGD(model.parameters(), lr=1e-2)
    optimizer.apply(algorithm)
    x = np.random.default_rng(0).random((8, 20), dtype=np.float32)
    with pytest.raises(lc.ConfigError, match=f"the {key} is .* expected a fraction from 0 to 1"):
        for _ in range(4):
            lc.cross_entropy(model(x), np.arange(8)).backward()
            optimizer.step()
            optimizer.zero_grad()
