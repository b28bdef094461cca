"""Tensors of PyTorch and lacuna over one memory, where the order allows it."""

import numpy as np
import pytest
from pages import within_a_page

torch = pytest.importorskip("torch")

import lacuna as lc  # noqa: E402
from lacuna.interop import from_torch  # noqa: E402
from lacuna.sparse import Static  # noqa: E402


def test_dense_parameters_are_shared_with_pytorch():
    model = lc.Model([lc.Linear(20, 8, name="fc1")])
    tensor = torch.from_dlpack(model["fc1.weight"])
    assert tensor.data_ptr() == model["fc1.weight"].values.__array_interface__["data"][0]
    tensor.fill_(0.25)
    assert (model["fc1.weight"].to_numpy() == 0.25).all()
    x = np.ones((1, 20), np.float32)
    np.testing.assert_allclose(model(x).numpy(), 5 + model["fc1.bias"].to_numpy()[None], rtol=1e-6)


def test_sparse_parameters_become_dense_copies():
    model = lc.Model([lc.Linear(20, 8, name="fc1")])
    model.apply(Static(0.5, layout="csr"))
    tensor = torch.from_dlpack(model["fc1.weight"])
    np.testing.assert_array_equal(tensor.numpy(), model["fc1.weight"].to_numpy())


def test_tensors_go_in_and_out_without_copies():
    x = torch.from_numpy(within_a_page(np.random.default_rng(0).random((64, 20))))
    v = lc.Variable(x)
    assert v.numpy().__array_interface__["data"][0] == x.data_ptr()
    back = torch.from_dlpack(v)
    assert back.data_ptr() == x.data_ptr()
    model = lc.Model([lc.Linear(20, 8, name="fc1")])
    theirs = torch.nn.Linear(20, 8)
    model["fc1.weight"].assign(theirs.weight.detach())
    model["fc1.bias"].assign(theirs.bias.detach())
    np.testing.assert_allclose(
        model.predict(x), theirs(x).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    transposed = torch.rand(20, 64).t()
    np.testing.assert_allclose(
        model.predict(transposed), theirs(transposed).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    labels = torch.arange(64) % 8
    ours = lc.cross_entropy(model(x), labels).item()
    assert ours == pytest.approx(torch.nn.functional.cross_entropy(theirs(x), labels).item(), 1e-5)


def test_bfloat16_becomes_float32():
    values = torch.rand(8, 20).to(torch.bfloat16)
    model = lc.Model([lc.Linear(20, 8, name="fc1")])
    model["fc1.weight"].assign(values)
    np.testing.assert_array_equal(model["fc1.weight"].to_numpy(), values.float().numpy())
    arrays = from_torch({"fc1.weight": values, "fc1.bias": torch.zeros(8)})
    np.testing.assert_array_equal(arrays["fc1.weight"], values.float().numpy())


def test_batches_of_a_loader_are_no_examples():
    pairs = torch.utils.data.TensorDataset(torch.rand(64, 8), torch.rand(64, 1))
    loader = torch.utils.data.DataLoader(pairs, batch_size=16)
    config = {"model": [{"type": "linear", "name": "fc1", "out_features": 1}], "loss": "mse",
              "optimizer": {"type": "sgd", "lr": 0.1}, "train": {"steps": 1, "batch_size": 4}}
    with pytest.raises(TypeError, match="yields batches of examples: give its `dataset`"):
        lc.train(config, data=loader)


def test_state_dicts_of_pytorch_load():
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU()
    )
    theirs(torch.rand(8, 3, 6, 6))  # moves the running statistics
    model = lc.Model(
        [lc.Conv2d(3, 4, 3, padding=1, name="0"), lc.BatchNorm2d(4, name="1"), lc.ReLU(name="2")],
        input_shape=(3, 6, 6),
    )
    model.load_state_dict(theirs.state_dict())
    x = torch.rand(2, 3, 6, 6)
    expected = theirs.eval()(x).detach().numpy()
    np.testing.assert_allclose(model.predict(x), expected, rtol=1e-4, atol=1e-5)
    back = {k: torch.from_numpy(v) for k, v in model.state_dict().items()}
    assert torch.equal(back["0.weight"], theirs.state_dict()["0.weight"])
