"""Models that `shrink` made smaller give in PyTorch, and by the ONNX standard's text, what they give here."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import lacuna as lc

SOURCE = os.environ["LACUNA_SOURCE_DIR"]
IMAGES = {
    "data": {"type": "colour_glyphs", "train_size": 60, "test_size": 20, "normalize": "unit"},
    "model": {"type": "cifar_resnet", "depth": 8, "num_labels": 10},
    "optimizer": {"type": "sgd", "lr": 0.05, "momentum": 0.9},
    "train": {"epochs": 1, "batch_size": 20, "threads": 1},
}


class Residual(nn.Module):
    def __init__(self, layers, padding):
        super().__init__()
        self.layers = nn.ModuleDict(layers)
        self.padding = padding

    def forward(self, x):
        y = x
        for layer in self.layers.values():
            y = layer(y)
        if self.padding is not None:
            stride, before, channels = self.padding
            x = x[:, :, ::stride, ::stride]
            x = functional.pad(x, (0, 0, 0, 0, before, channels - before - x.shape[1]))
        return x + y


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3))


def torch_layer(layer, path, state):
    """A layer of a run's configuration, written out, with the weights of its path."""
    kind = layer if isinstance(layer, str) else layer["type"]
    weight = state.get(path + ".weight")
    if kind == "conv2d":
        made = nn.Conv2d(
            weight.shape[1],
            layer["out_channels"],
            layer["kernel"],
            layer.get("stride", 1),
            layer.get("padding", 0),
            bias=path + ".bias" in state,
        )
    elif kind == "batch_norm":
        made = nn.BatchNorm2d(weight.shape[0])
    elif kind == "linear":
        made = nn.Linear(weight.shape[1], layer["out_features"])
    elif kind == "relu":
        return nn.ReLU()
    elif kind == "global_average_pool":
        return Mean()
    else:
        raise AssertionError(kind)
    names = dict(made.named_parameters()) | dict(made.named_buffers())
    for name, tensor in names.items():
        if name != "num_batches_tracked":
            assert tensor.shape == state[f"{path}.{name}"].shape, f"{path}.{name}"
            tensor.data.copy_(state[f"{path}.{name}"])
    return made


def torch_layers(layers, prefix, state):
    made = {}
    for layer in layers:
        name = layer["name"]
        kind = layer["type"]
        if kind == "sequential":
            made[name] = nn.Sequential(*torch_layers(layer["layers"], prefix + name + ".", state).values())
        elif kind == "residual":
            padding = None
            for shortcut in layer.get("shortcut") or []:
                assert shortcut["type"] == "subsample_pad"
                padding = (shortcut["stride"][0], shortcut["before"], shortcut["channels"])
            made[name] = Residual(torch_layers(layer["layers"], prefix, state), padding)
        else:
            made[name] = torch_layer(layer, prefix + name, state)
    return made


@pytest.fixture(scope="module")
def shrunk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    whole = lc.train(IMAGES, run_dir=folder / "whole")
    return lc.shrink(whole, run_dir=folder / "small", to={"flops": 0.5}, method="saliency")


def pictures(count):
    return np.random.default_rng(0).random((count, 3, 32, 32), np.float32)


def test_a_shrunk_resnet_gives_the_same_in_pytorch(shrunk):
    model = lc.load(shrunk)
    state = {n: torch.as_tensor(a) for n, a in model.model.state_dict(masks=False).items()}
    layers = torch_layers(shrunk.config["model"]["layers"], "", state)
    theirs = nn.Sequential(*layers.values()).eval()
    widths = {m.out_channels for m in theirs.modules() if isinstance(m, nn.Conv2d)}
    assert max(widths) < 64
    x = pictures(20)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(
        model.predict(x), expected, rtol=0, atol=1e-5 * max(1.0, np.abs(expected).max())
    )


def test_a_shrunk_resnet_gives_the_same_by_the_standards_text(shrunk, tmp_path):
    pytest.importorskip("onnx")
    lc.export(shrunk, "onnx", tmp_path / "small.onnx")
    x = pictures(4)
    x.tofile(tmp_path / "x.bin")
    import onnx

    name = onnx.load(tmp_path / "small.onnx").graph.input[0].name
    subprocess.run(
        [
            sys.executable,
            os.path.join(SOURCE, "tests", "framework", "onnx", "evaluate.py"),
            tmp_path / "small.onnx",
            tmp_path / "y.bin",
            f"{name}:float32:4x3x32x32:{tmp_path / 'x.bin'}",
        ],
        check=True,
    )
    expected = lc.load(shrunk).predict(x)
    found = np.fromfile(tmp_path / "y.bin", np.float32).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(1.0, np.abs(expected).max()))
