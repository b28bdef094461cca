"""Modules whose forward is in Python: parts, names, states, sparsity, runs."""

import gc

import numpy as np
import pytest

import lacuna as lc
from lacuna import nn, sparse

RNG = np.random.default_rng(0)
X = RNG.random((16, 12), dtype=np.float32)
Y = np.arange(16) % 3


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.gain = nn.Parameter(np.full(width, 0.5))
        self.register_buffer("calls", np.zeros(1))

    def forward(self, x):
        if self.training:
            self.calls = self.calls + 1
        return x + self.gain * lc.relu(self.fc(self.norm(x)))


class Net(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(12, 8, name="in"), nn.ReLU())
        self.blocks = nn.ModuleList(Block(8) for _ in range(depth))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def train(model, optimizer, steps):
    for _ in range(steps):
        loss = lc.cross_entropy(model(X), Y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def test_parts_have_the_names_of_their_attributes():
    net = Net()
    assert [name for name, _ in net.named_parameters()][:5] == [
        "stem.in.weight",
        "stem.in.bias",
        "blocks.0.gain",
        "blocks.0.fc.weight",
        "blocks.0.fc.bias",
    ]
    assert net["blocks.1.fc.weight"] is net.blocks[1].fc.parameters()[0]
    assert net.blocks[1] is net.blocks.children()[1] and len(net.blocks) == 2
    assert "(blocks.0.norm): layer_norm" in repr(net)
    assert net.output_shape((12,)) == (3,) and net.training
    assert net.blocks[0].calls == 0  # finding the shape counts nothing


def test_gradients_are_those_of_the_formula():
    class Affine(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(RNG.random((2, 12)), use="linear")
            self.bias = nn.Parameter(np.zeros(2))

        def forward(self, x):
            return lc.linear(x, self.weight, self.bias)

    model = Affine()
    w = model.weight.to_numpy()
    lc.mse_loss(model(X), np.zeros((16, 2), np.float32)).backward()
    expected = (2 * (X @ w.T) / 32).T @ X
    np.testing.assert_allclose(model.weight.grad, expected, rtol=1e-4)
    model.apply(sparse.Static(0.5, layout="csr"))
    assert model.weight.layout == "csr"
    np.testing.assert_allclose(model(X).numpy(), X @ model.weight.to_numpy().T, rtol=1e-4)


def test_a_step_between_forward_and_backward_is_an_error():
    net = Net()
    optimizer = lc.SGD(net.parameters(), lr=0.1)
    first, second = (lc.cross_entropy(net(X), Y) for _ in range(2))
    first.backward()
    optimizer.step()
    with pytest.raises(lc.StateError, match="has changed since the forward pass; call backward before the optimizer's step"):
        second.backward()


def test_an_array_of_values_does_not_disturb_backward():
    net = Net()
    alive = net.head.weight.values
    for _ in range(2):
        losses = [lc.cross_entropy(net(X), Y) for _ in range(2)]
        assert np.abs(net.stem[0].weight.values).sum() > 0  # between forward and backward, only read
        for loss in losses:
            loss.backward()
    before = net(X).numpy()
    alive[:] = 0.0
    assert not np.array_equal(net(X).numpy(), before)
    loss = lc.cross_entropy(net(X), Y)
    alive[:] = 1.0
    with pytest.raises(lc.StateError, match="has changed since the forward pass"):
        loss.backward()


def test_masks_optimizers_and_modes_are_as_for_models():
    net = Net()
    sparsity = sparse.RigL(sparsity=0.5, update={"freq": 2})
    net.apply(sparsity)
    optimizer = lc.Adam(net.parameters(), lr=1e-2)
    optimizer.apply(sparsity)
    first = train(net, optimizer, 1)
    assert train(net, optimizer, 99) < first / 2
    assert net["blocks.0.fc.weight"].density == 0.5
    assert net.blocks[0].calls == 100
    assert net.eval() is net and not net.blocks[0].norm.training
    net(X)
    assert net.blocks[0].calls == 100
    found = net.evaluate(lc.ArrayDataset(X, Y))
    assert found["examples"] == 16 and found["accuracy"] > 0.8


def test_states_are_saved_and_loaded(tmp_path):
    net = Net()
    net.apply(sparse.Static(0.5))
    train(net, lc.SGD(net.parameters(), lr=0.1), 3)
    expected = net.predict(X)
    net.save(str(tmp_path / "net.h5"))
    other = Net()
    other.load_weights(str(tmp_path / "net.h5"))
    np.testing.assert_array_equal(other.predict(X), expected)
    state = net.state_dict()
    assert state["blocks.1.calls"] == 3 and state["head.weight_mask"].mean() == 0.5
    by_name = Net()
    by_name.load_state_dict(state)
    np.testing.assert_allclose(by_name.predict(X), expected, rtol=1e-5, atol=1e-6)
    assert by_name.blocks[1].calls == 3
    whole = Net()
    whole.load_state(net.state())
    np.testing.assert_array_equal(whole.predict(X), expected)
    whole.initialize(5)
    assert whole.blocks[0].gain.to_numpy()[0] == 0.5 and whole.blocks[0].calls == 0
    with pytest.raises(lc.CheckpointError, match="blocks.2"):
        Net(3).load_state_dict(state)


def test_modules_are_layers_of_models():
    block = Block(8)
    model = lc.Model([lc.Linear(12, 8, name="fc"), block, lc.Linear(8, 3, name="head")])
    assert model.output_shape((12,)) == (3,)
    names = [name for name, _ in model.named_parameters()]
    assert names[2] == "python_module1.gain" and block.path == "python_module1"
    del block
    gc.collect()
    lc.cross_entropy(model(X), Y).backward()
    assert model["python_module1.fc.weight"].grad is not None
    with pytest.raises(lc.ConfigError, match="8.*features|features.*8|12"):
        lc.Model([Block(8)], input_shape=(12,))


def test_several_inputs_and_keywords():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 4), nn.Linear(12, 4)

        def forward(self, x, z, scale=1.0):
            return lc.cat([self.a(x), self.b(z)], dim=1) * scale

    model = Mixed()
    assert model(X, X).shape == (16, 8)
    np.testing.assert_allclose(model(X, X, scale=2.0).numpy(), 2 * model(X, X).numpy())
    with pytest.raises(TypeError, match="missing"):
        model(X)


def test_a_shared_layer_shares_its_weights():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(12, 12)
            self.again = self.fc

        def forward(self, x):
            return self.again(self.fc(x))

    model = Twice()
    assert len(model.parameters()) == 2 and model.again is model.fc
    assert model(X).shape == (16, 12)


def test_convolutions_take_images_of_any_size():
    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(3, 4, 3, padding=1),
                nn.BatchNorm2d(4),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Residual(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()),
                nn.GlobalAvgPool(),
            )
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.body(x))

    model = Images()
    for side in (8, 40):
        assert model(np.ones((2, 3, side, side), np.float32)).shape == (2, 2)


def test_modules_outlive_each_other():
    for _ in range(20):
        net = Net()
        block, weight, handle = net.blocks[1], net["head.weight"], net.head
        optimizer = lc.SGD(net.parameters(), lr=0.1)
        del net
        gc.collect()
        assert block(np.ones((2, 8), np.float32)).shape == (2, 8)
        assert handle(np.ones((2, 8), np.float32)).shape == (2, 3)
        optimizer.step()
        del handle
        gc.collect()
        with pytest.raises(lc.StateError, match="gone"):
            block.extra = nn.Linear(2, 2)
        other = nn.Sequential(block)
        other[0].extra = nn.Linear(2, 2)
        assert other["0.extra.weight"].shape == (2, 2)
        del block, other
        gc.collect()
        assert weight.to_numpy().shape == (3, 8)


def test_a_thousand_modules_leave_nothing():
    import os

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def use(times):
        for _ in range(times):
            net = Net()
            lc.Model([Block(12)], input_shape=(12,))(X)
            net.apply(sparse.Static(0.5))
            lc.cross_entropy(net(X), Y).backward()

    use(100)
    gc.collect()
    before = resident()
    use(1000)
    gc.collect()
    assert resident() - before < 8 << 20


def test_mistakes_are_named():
    class Early(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(2, 2)

    class Unfinished(nn.Module):
        def __init__(self):
            pass

    class NoForward(nn.Module):
        pass

    class Number(nn.Module):
        def forward(self, x):
            return 3

    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    class Endless(nn.Module):
        def forward(self, x):
            return self(x)

    with pytest.raises(TypeError, match="before super"):
        Early()
    with pytest.raises(TypeError, match="__init__"):
        Unfinished()
    with pytest.raises(NotImplementedError, match="NoForward"):
        NoForward()(X)
    with pytest.raises(TypeError, match="Number.*Variable.*int"):
        Number()(X)
    with pytest.raises(KeyError, match="mine"):
        Fails()(X)
    with pytest.raises(RecursionError):
        Endless()(X)
    net = Net()
    with pytest.raises(lc.StateError, match="'head' is"):
        net.head = nn.Linear(8, 3)
    with pytest.raises(lc.StateError, match="'head' is"):
        net.head = None
    with pytest.raises(lc.StateError, match="'head' is"):
        del net.head
    with pytest.raises(TypeError, match="ModuleList"):
        net.more = [nn.Linear(2, 2)]
    with pytest.raises(TypeError, match="in_features"):
        net.more = nn.Linear(out_features=2)
    with pytest.raises(TypeError, match="built already"):
        net.more = lc.Model([lc.Linear(2, 2)])
    with pytest.raises(lc.StateError, match="only belong to one"):
        Net().more = net.blocks
    with pytest.raises(lc.StateError, match="part of itself"):
        net.blocks.append(net)
    with pytest.raises(lc.StateError, match="belongs to a module"):
        Net().gain = net.blocks[0].gain
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        net.nothing
    with pytest.raises(lc.ShapeError, match="calls"):
        net.blocks[0].calls = np.zeros(3)
    with pytest.raises(TypeError, match="ModuleList"):
        net.blocks(X)
    assert net(X).shape == (16, 3)


def test_a_registered_module_is_a_layer_of_runs(tmp_path):
    @lc.register("widened_of_test")
    class Widened(nn.Module):
        def __init__(self, width, input_shape):
            super().__init__()
            self.fc = nn.Linear(input_shape[0], width)

        def forward(self, x):
            return lc.relu(self.fc(x))

    config = {
        "data": {"type": "glyphs", "train_size": 60, "test_size": 20},
        "model": ["flatten", {"type": "widened_of_test", "width": 9, "name": "own"}, "linear"],
        "optimizer": {"type": "adam", "lr": 0.01},
        "sparsity": {"algorithm": "set", "sparsity": 0.5, "update": {"freq": 2}},
        "train": {"steps": 6, "batch_size": 20, "threads": 1, "checkpoint": {"every": 3}},
    }
    assert {row["parameter"] for row in lc.plan(config).parameters} >= {"own.fc.weight"}
    run = lc.train(config, run_dir=tmp_path / "whole")
    stopped = lc.train(config, run_dir=tmp_path / "parts", on_step=lambda step, *_: step < 3)
    stopped.resume()
    whole, parts = lc.load(run), lc.load(stopped)
    assert whole["own.fc.weight"].density == pytest.approx(0.5, abs=0.01)
    np.testing.assert_array_equal(whole["own.fc.weight"].to_numpy(), parts["own.fc.weight"].to_numpy())
    for wrong, message in (({"widht": 2}, "widht"), ({"width": -1}, "at least 1")):
        entry = {"type": "widened_of_test", "name": "own", **wrong}
        with pytest.raises(lc.ConfigError, match=message):
            lc.plan({**config, "model": ["flatten", entry, "linear"]})
