"""The calls of a training loop of one's own: models, losses, optimizers, algorithms, parameters."""

import numpy as np
import pytest

import lacuna as lc
from lacuna.sparse import SET, Group, RigL, Static

RNG = np.random.default_rng(0)


def images(count=64):
    x = RNG.random((count, 28, 28), dtype=np.float32)
    return x, np.arange(count) % 10


def mlp(seed=0):
    return lc.Model(
        [lc.Flatten(), lc.Linear(784, 30, name="fc1"), lc.ReLU(), lc.Linear(30, 10, name="fc2")],
        seed=seed,
    )


def train(model, optimizer, steps=5):
    x, y = images()
    for _ in range(steps):
        loss = lc.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


# Call 9: a model by hand.


def test_a_model_is_a_list_of_layers():
    model = mlp()
    assert [name for name, _ in model.named_parameters()] == [
        "fc1.weight",
        "fc1.bias",
        "fc2.weight",
        "fc2.bias",
    ]
    assert model.output_shape((28, 28)) == (10,)
    assert model(images(3)[0]).shape == (3, 10)


def test_a_model_is_what_a_configuration_describes():
    keys = [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out_features": 4}]
    for description in (keys, {"layers": keys}):
        assert lc.Model(description, input_shape=(2, 3))["fc1.weight"].shape == (4, 6)


def test_images_flow_through_convolutions_residuals_and_norms():
    model = lc.Model(
        [
            lc.Conv2d(3, 8, 3, padding=1, name="conv"),
            lc.BatchNorm2d(8),
            lc.Residual(lc.Conv2d(8, 8, 3, padding=1, bias=False), lc.ReLU()),
            lc.MaxPool2d(2),
            lc.Residual(lc.Conv2d(8, 16, 3, 2, 1), shortcut=[lc.Conv2d(8, 16, 1, 2)]),
            lc.GlobalAvgPool(),
            lc.Linear(16, 10, name="head"),
        ],
        input_shape=(3, 16, 16),
    )
    x = RNG.random((4, 3, 16, 16), dtype=np.float32)
    lc.cross_entropy(model(x), [0, 1, 2, 3]).backward()
    assert model["conv.weight"].grad.shape == (8, 3, 3, 3)


def test_mistakes_in_a_model_name_the_layer():
    with pytest.raises(lc.ConfigError, match="fc2.*30"):
        lc.Model([lc.Linear(4, 30, name="fc1"), lc.Linear(29, 2, name="fc2")])
    with pytest.raises(TypeError, match="input_shape"):
        lc.Model([lc.Conv2d(3, 8, 3)])
    with pytest.raises(lc.ConfigError, match="did you mean 'out_features'") as raised:
        lc.Model([lc.Layer("linear", in_features=3, out_feature=2)])
    assert raised.value.key == "0.out_feature"


def test_tokens_are_integers():
    model = lc.Model(
        [lc.Embedding(20, 8, name="tokens"), lc.Linear(8, 20, name="head")], input_shape=(5,)
    )
    ids = np.arange(10).reshape(2, 5)
    loss = lc.cross_entropy(model(ids), ids)
    loss.backward()
    assert model(ids).shape == (2, 5, 20) and model["tokens.weight"].grad.shape == (20, 8)


def test_a_sparse_embedding_changes_the_rows_of_its_tokens():
    model = lc.Model(
        [lc.Embedding(20, 8, name="tokens", sparse=True), lc.Linear(8, 20, name="head")],
        input_shape=(5,),
    )
    optimizer = lc.AdamW(model.parameters(), lr=1e-2)
    table = model["tokens.weight"]
    before = table.to_numpy()
    ids = np.array([[1, 2, 2, 7, 1]])
    lc.cross_entropy(model(ids), ids).backward()
    assert np.flatnonzero(np.abs(table.grad).sum(1)).tolist() == [1, 2, 7]
    optimizer.step()
    changed = np.abs(table.to_numpy() - before).sum(1)
    assert np.flatnonzero(changed).tolist() == [1, 2, 7]


# Call 10: a loop of one's own.


def test_a_loop_learns_and_gradients_are_those_of_formulas():
    model = mlp()
    optimizer = lc.Adam(model.parameters(), lr=1e-2)
    first = train(model, optimizer, 1)
    assert train(model, optimizer, 60) < first / 2

    x = RNG.random((6, 4), dtype=np.float32)
    y = RNG.random((6, 2), dtype=np.float32)
    linear = lc.Model([lc.Linear(4, 2, name="fc")])
    lc.mse_loss(linear(x), y).backward()
    w, b = linear["fc.weight"].to_numpy(), linear["fc.bias"].to_numpy()
    difference = 2 * (x @ w.T + b - y) / y.size
    np.testing.assert_allclose(linear["fc.weight"].grad, difference.T @ x, rtol=1e-5, atol=1e-6)


def test_operations_and_leaves():
    a = lc.Variable(np.float32([[1, 2], [3, 4]]), requires_grad=True)
    loss = ((2.0 - a) * a + lc.relu(a @ np.eye(2, dtype=np.float32))).sum() / 2
    assert loss.item() == (1 + 0 - 3 - 8 + 10) / 2
    loss.backward()
    np.testing.assert_array_equal(a.grad, (2 - 2 * a.numpy() + 1) / 2)
    with lc.no_grad():
        assert not (a * 2).requires_grad
    with pytest.raises(lc.StateError):
        loss.backward()
    with pytest.raises(lc.ShapeError):
        (a * 2).backward()


def test_losses_equal_their_formulas():
    logits = RNG.normal(size=(5, 3)).astype(np.float32)
    labels = np.array([0, 2, 1, -100, 1])
    log = np.log(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))
    counted = labels >= 0
    expected = -log[np.arange(5)[counted], labels[counted]].mean()
    assert lc.cross_entropy(logits, labels).item() == pytest.approx(expected, rel=1e-5)
    assert lc.cross_entropy(logits, np.full(5, -100)).item() == 0.0  # PyTorch: NaN
    targets = (logits > 0).astype(np.float32)
    expected = np.log1p(np.exp(-np.abs(logits))).mean()
    found = lc.binary_cross_entropy_with_logits(logits, targets).item()
    assert found == pytest.approx(expected, rel=1e-5)
    with pytest.raises(lc.DataError, match="3"):
        lc.cross_entropy(logits, [0, 1, 2, 3, 0])


# Call 11: optimizers.


def test_optimizers_take_numbers_schedules_and_functions():
    for lr in (0.1, {"type": "linear", "init": 0.1, "slope": 0.1}, lambda step: 0.1 * (step + 1)):
        model = mlp()
        optimizer = lc.SGD(model.parameters(), lr=lr, momentum=0.9)
        assert optimizer.lr == pytest.approx(0.1)
        train(model, optimizer, 1)
        assert optimizer.lr == pytest.approx(0.1 if lr == 0.1 else 0.2)
        assert list(optimizer.state("fc1.weight")) == ["momentum_buffer"]
    named = lc.optimizer({"type": "adamw", "lr": 1e-3, "betas": [0.8, 0.9]}, mlp().parameters())
    assert named.type == "adamw" and named.lr == 1e-3
    with pytest.raises(lc.ConfigError, match="did you mean 'momentum'"):
        lc.SGD(mlp().parameters(), lr=0.1, momentun=0.9)
    with pytest.raises(lc.ConfigError) as raised:
        lc.AdamW(mlp().parameters(), lr=1e-3, eps=-1.0)
    assert raised.value.key == "eps"


# Call 12: sparsity.


def test_masks_change_on_schedule():
    model = mlp()
    sparsity = RigL(sparsity=0.9, update={"freq": 2}, drop_fraction=0.3)
    model.apply(sparsity)
    optimizer = lc.AdamW(model.parameters(), lr=1e-3)
    optimizer.apply(sparsity)
    before = model["fc1.weight"].mask
    assert before.sum() == int((1 - np.float32(0.9)) * before.size)
    train(model, optimizer, 2)
    after = model["fc1.weight"].mask
    assert after.sum() == before.sum() and (after != before).any()
    assert (model["fc1.weight"].to_numpy()[~after] == 0).all()
    assert sparsity.step == 2 and {u["parameter"] for u in sparsity.last_update} == {
        "fc1.weight",
        "fc2.weight",
    }


def test_mistakes_in_sparsity_are_named():
    with pytest.raises(lc.ConfigError, match="drop_fraction"):
        RigL(0.9, drop_fracton=0.3)
    with pytest.raises(lc.ConfigError, match="needs `sparsity`"):
        RigL(update={"freq": 2})
    with pytest.raises(lc.StateError, match="before the optimizer"):
        lc.SGD(mlp().parameters(), lr=0.1).apply(Static(0.5))
    with pytest.raises(lc.ConfigError, match="fc3"):
        mlp().apply(Static(0.5, param_filter="fc3.*"))


# Call 13: parameters.


def test_parameters_say_what_they_are():
    model = mlp()
    weight = model["fc1.weight"]
    assert (weight.shape, weight.numel, weight.nnz) == ((30, 784), 23520, 23520)
    assert (weight.density, weight.layout) == (1.0, "dense")
    model.apply(Static(0.95, layout="csr"))
    assert (weight.layout, weight.density) == ("csr", 1176 / 23520)
    assert weight.sparsified_by == "static" and weight is model["fc1.weight"]
    np.testing.assert_array_equal(weight.values, weight.to_numpy().flat[weight.stored_positions])
    with pytest.raises(lc.StateError, match="fc1.weight"):
        model["fc1.wieght"]


# Call 14: values.


def test_values_are_views():
    model = mlp()
    weight = model["fc1.weight"]
    values = weight.values
    assert values.shape == (30, 784) and np.shares_memory(values, weight.values)
    values[0, :] = 7.0
    assert (weight.to_numpy()[0] == 7.0).all()
    copy = weight.to_numpy()
    copy[:] = 0
    assert (weight.to_numpy()[0] == 7.0).all()
    weight.values *= 2
    assert (weight.to_numpy()[0] == 14.0).all()


def test_values_written_through_a_view_are_multiplied_by():
    x, _ = images(4)
    for layout in ("csr", "masked"):
        model = mlp()
        model.apply(Static(0.9, layout=layout, param_filter="fc1.weight"))
        weight = model["fc1.weight"]
        values = weight.values
        model(x)  # derives from the values whatever the layout derives
        values[:] = 0.5
        dense = weight.to_numpy()
        assert set(np.unique(dense)) == {0.0, 0.5} and (dense != 0).sum() == weight.nnz
        flat = x.reshape(4, 784)
        hidden = np.maximum(flat @ dense.T + model["fc1.bias"].to_numpy(), 0)
        expected = hidden @ model["fc2.weight"].to_numpy().T + model["fc2.bias"].to_numpy()
        np.testing.assert_allclose(model(x).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_views_after_a_change_of_the_pattern():
    model = mlp()
    model.apply(Static(0.9, layout="csr", param_filter="fc1.weight"))
    weight = model["fc1.weight"]
    old, version = weight.values, weight.version
    kept = old.copy()
    mask = weight.mask
    moved = np.flatnonzero(mask)[0], np.flatnonzero(~mask)[0]
    mask.flat[moved[0]], mask.flat[moved[1]] = False, True
    weight.mask = mask
    assert weight.version != version and weight.nnz == len(old)
    np.testing.assert_array_equal(old, kept)  # its memory stays
    before = weight.to_numpy()
    old[:] = 9.0
    np.testing.assert_array_equal(weight.to_numpy(), before)
    for earlier in (old, old[:], old.reshape(-1)):
        with pytest.raises(lc.StateError, match="earlier pattern"):
            weight.values = earlier
    weight.values = weight.values
    weight.values = np.ones(weight.nnz, np.float32)
    assert weight.to_numpy().sum() == weight.nnz
    with pytest.raises(lc.ShapeError, match="assign"):
        weight.values = np.ones((30, 784), np.float32)
    weight.assign(np.full((30, 784), 2.0))
    assert weight.to_numpy().sum() == 2 * weight.nnz


def test_scipy_gets_the_nonzeros():
    pytest.importorskip("scipy")
    model = mlp()
    model.apply(Static(0.9))
    matrix = model["fc1.weight"].to_scipy()
    assert matrix.nnz == model["fc1.weight"].nnz
    np.testing.assert_array_equal(matrix.toarray(), model["fc1.weight"].to_numpy())
    np.testing.assert_array_equal(
        model["fc1.weight"].positions, np.flatnonzero(model["fc1.weight"].mask)
    )


# Call 15: masks.


def test_a_mask_moves_values_and_states():
    model = mlp()
    optimizer = lc.Adam(model.parameters(), lr=1e-3)
    train(model, optimizer, 2)
    weight = model["fc1.weight"]
    value, state = weight.to_numpy(), optimizer.state(weight)["exp_avg"].copy()
    mask = RNG.random(weight.shape) < 0.1
    weight.mask = mask
    np.testing.assert_array_equal(weight.mask, mask)
    np.testing.assert_array_equal(weight.to_numpy(), np.where(mask, value, 0))
    order = weight.stored_positions
    assert sorted(order) == list(weight.positions)
    np.testing.assert_array_equal(optimizer.state(weight)["exp_avg"], state.flat[order])
    weight.mask = np.ones_like(mask)
    np.testing.assert_array_equal(weight.to_numpy(), np.where(mask, value, 0))
    with pytest.raises(lc.ShapeError, match="fc1.weight"):
        weight.mask = mask[:3]
    with pytest.raises(TypeError, match="bool"):
        weight.mask = mask.astype(np.float32)


# Call 16: gradients and states.


def test_gradients_and_states_are_views():
    model = mlp()
    optimizer = lc.Adam(model.parameters(), lr=0.0)
    x, y = images()
    assert model["fc1.weight"].grad is None and optimizer.state("fc1.weight") == {}
    lc.cross_entropy(model(x), y).backward()
    weight = model["fc1.weight"]
    gradient = weight.grad
    gradient *= 0
    assert np.shares_memory(gradient, weight.grad) and not weight.grad.any()
    weight.grad = np.ones(weight.shape)
    optimizer.step()
    states = optimizer.state(weight)
    np.testing.assert_allclose(states["exp_avg"], 0.1, rtol=1e-6)
    states["exp_avg"][:] = 5.0
    assert (optimizer.state("fc1.weight")["exp_avg"] == 5.0).all()
    optimizer.zero_grad()
    assert weight.grad is None
    with pytest.raises(lc.ShapeError):
        weight.grad = np.ones(3)


def test_groups_and_states_resume_bit_for_bit():
    def make():
        model = mlp()
        sparsity = Group({"fc1.*": SET(0.9, update={"freq": 2}), "fc2.weight": Static(0.5)})
        model.apply(sparsity)
        optimizer = lc.Adam(model.parameters(), lr=1e-2)
        optimizer.apply(sparsity)
        return model, optimizer, sparsity

    x, y = images()

    def steps(parts, count):
        for _ in range(count):
            lc.cross_entropy(parts[0](x), y).backward()
            parts[1].step()
            parts[1].zero_grad()

    whole = make()
    steps(whole, 4)
    saved = whole[0].state(), whole[1].state_dict(), whole[2].state_dict()
    steps(whole, 4)
    resumed = make()
    resumed[0].load_state(saved[0])
    resumed[1].load_state_dict(saved[1])
    resumed[2].load_state_dict(saved[2])
    steps(resumed, 4)
    for name, parameter in whole[0].named_parameters():
        np.testing.assert_array_equal(parameter.to_numpy(), resumed[0][name].to_numpy())
        np.testing.assert_array_equal(parameter.mask, resumed[0][name].mask)


def test_state_dicts_hold_masks():
    model = mlp(1)
    model.apply(Static(0.9))
    state = model.state_dict()
    assert state["fc1.weight_mask"].dtype == bool and "fc1.bias_mask" not in state
    other = mlp(2)
    other.load_state_dict(state)
    x, _ = images(3)
    np.testing.assert_allclose(model(x).numpy(), other(x).numpy(), rtol=1e-5, atol=1e-6)
    assert other["fc1.weight"].nnz == model["fc1.weight"].nnz
    state["fc1.bias"] = state["fc1.bias"][:3]
    del state["fc2.weight"]
    with pytest.raises(lc.CheckpointError, match="fc1.bias.*fc2.weight"):
        other.load_state_dict(state)
