"""Values that Python gives a model count in the next call and the next step, or are refused."""

import numpy as np
import pytest

import lacuna as lc
from lacuna import sparse

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 16)).astype(np.float32)
Y = X[:, :4].argmax(1)
NM = {"type": "nm", "n": 2, "m": 4}


def layers():
    return [lc.Linear(16, 8, name="fc1"), lc.ReLU(), lc.Linear(8, 4, name="fc2")]


def step(model, optimizer):
    lc.cross_entropy(model(X), Y).backward()
    optimizer.step()
    optimizer.zero_grad()


@pytest.mark.parametrize(
    "algorithm",
    [
        lambda: sparse.Static(sparsity=0.5, param_filter="fc1.weight"),
        lambda: sparse.STE(sparsity=0.5, update={"freq": 1000}, param_filter="fc1.weight"),
        lambda: sparse.STE(
            sparsity=0.5, update={"freq": 1000}, param_filter="fc1.weight", layout="masked"
        ),
        lambda: sparse.SemiSparse(pattern=NM, every=1000, param_filter="fc1.weight"),
    ],
)
def test_written_values_stay(algorithm):
    def write(weight):
        weight.values[...] *= 2  # the array is gone before the next call

    def assign(weight):
        weight.assign(np.full(weight.shape, 3, np.float32))

    for way in (write, assign):
        model = lc.Model(layers(), seed=1)
        model.apply(one := algorithm())
        optimizer = lc.SGD(model.parameters(), lr=0.0)
        optimizer.apply(one)
        step(model, optimizer)
        way(model["fc1.weight"])
        given = model["fc1.weight"].to_numpy()
        step(model, optimizer)
        np.testing.assert_array_equal(model["fc1.weight"].to_numpy(), given)


def test_a_mask_that_is_assigned_takes_values_of_the_master():
    model = lc.Model(layers(), seed=1)
    dense = model["fc1.weight"].to_numpy()
    model.apply(one := sparse.STE(sparsity=0.5, update={"freq": 1000}, param_filter="fc1.weight"))
    optimizer = lc.SGD(model.parameters(), lr=0.0)
    optimizer.apply(one)
    step(model, optimizer)
    weight = model["fc1.weight"]
    mask = ~weight.mask
    weight.mask = mask
    step(model, optimizer)
    np.testing.assert_array_equal(weight.to_numpy(), np.where(mask, dense, 0))


def test_a_quantized_model_refuses_changes(tmp_path):
    data = {"train": lc.ArrayDataset(X, Y, num_classes=4)}
    config = {
        "model": [
            {"type": "linear", "name": "a", "out_features": 32},
            "relu",
            {"type": "linear", "name": "b", "out_features": 32},
            {"type": "batch_norm", "name": "n"},
            "relu",
            {"type": "linear", "name": "o", "out_features": 4},
        ],
        "optimizer": {"type": "adam", "lr": 0.01},
        "train": {"steps": 10, "batch_size": 20, "threads": 1},
    }
    lc.train(config, run_dir=tmp_path / "f", data=data)
    lc.quantize(
        tmp_path / "f",
        {"quantize": {"param_filter": ["b.weight"]}},
        run_dir=tmp_path / "q",
        data=data,
    )

    def values(m):
        m["b.weight"].values[...] = 0

    def bias(m):
        m["b.bias"].values[...] = 5

    def norm(m):
        m["n.weight"].values[...] = 5

    def mask(m):
        m["b.weight"].mask = np.zeros(m["b.weight"].shape, bool)

    def assign(m):
        m["b.weight"].assign(np.zeros(m["b.weight"].shape, np.float32))

    def static(m):
        m.apply(sparse.Static(0.97, param_filter="b.weight"))

    for act in (values, bias, norm, mask, assign, static):
        run = lc.load(tmp_path / "q")
        before = run.predict(X[:9])
        run.model["b.weight"].to_numpy()
        assert run.model["b.weight"].values.any()  # reading changes nothing
        np.testing.assert_array_equal(run.predict(X[:9]), before)
        act(run.model)
        with pytest.raises(lc.StateError, match=r"'[bn]' .* has changed since"):
            run.predict(X[:9])
        run = lc.load(tmp_path / "f")
        before = run.predict(X[:9])
        act(run.model)
        assert not np.array_equal(run.predict(X[:9]), before), act.__name__


def test_overrides_may_call_their_base_from_anywhere():
    class Saves(sparse.SET):
        def extended(self):
            return {**super().state_dict(), "n": 1}

        def state_dict(self):
            return self.extended()

        def load_state_dict(self, state):
            self.restore({k: v for k, v in state.items() if k != "n"})

        def restore(self, state):
            super().load_state_dict(state)

    class Wants(sparse.RigL):
        def wants_dense_gradient(self, step):
            return super().wants_dense_gradient(step) or step % 7 == 0

    for kind in (Saves, Wants):
        model = lc.Model(layers())
        model.apply(one := kind(sparsity=0.5, update={"freq": 1}, param_filter="*.weight"))
        optimizer = lc.SGD(model.parameters(), lr=0.1)
        optimizer.apply(one)
        step(model, optimizer)
        one.load_state_dict(one.state_dict())
    rigl = sparse.RigL(sparsity=0.5, update={"freq": 10})
    assert rigl.wants_dense_gradient(10) and not rigl.wants_dense_gradient(11)

    class Asks(sparse.SET):
        def update_mask(self, p, mask, sparsity):
            for wrong in ((float("nan"), 10), (1.5, 10), (0.5, -1)):
                with pytest.raises(lc.ConfigError, match="kept_after_drop"):
                    p.kept_after_drop(*wrong)
            return super().update_mask(p, mask, sparsity)

    model = lc.Model(layers())
    model.apply(one := Asks(sparsity=0.5, update={"freq": 1}, param_filter="*.weight"))
    optimizer = lc.SGD(model.parameters(), lr=0.1)
    optimizer.apply(one)
    step(model, optimizer)


def test_what_is_written_beside_the_mask_becomes_zero_each_time():
    model = lc.Model(layers(), seed=1)
    model.apply(sparse.Static(sparsity=0.5, param_filter="fc1.weight", layout="masked"))
    weight = model["fc1.weight"]
    expected = model.predict(X)
    values, beside = weight.values, ~weight.mask
    for _ in range(3):
        values[beside] = 5
        np.testing.assert_array_equal(model.predict(X), expected)
        assert (values[beside] == 0).all()
