"""A ResNet that `shrink` made smaller gives in PyTorch what it gives here."""

import numpy as np
import pytest
import torch
from safetensors_file import read_safetensors
from shrunk_runs import assert_close, pictures, shrunk_resnet
from torch import nn
from torch.nn import functional

import lacuna as lc


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
    return shrunk_resnet(tmp_path_factory.mktemp("runs"))


def test_a_shrunk_resnet_gives_the_same_in_pytorch(shrunk, tmp_path):
    model = lc.load(shrunk)
    lc.export(shrunk, "safetensors", tmp_path / "small.safetensors")
    state = read_safetensors(tmp_path / "small.safetensors")
    arrays = model.model.state_dict(masks=False)
    assert state.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(state[name].numpy(), array, err_msg=name)
    layers = torch_layers(shrunk.config["model"]["layers"], "", state)
    theirs = nn.Sequential(*layers.values()).eval()
    widths = {m.out_channels for m in theirs.modules() if isinstance(m, nn.Conv2d)}
    assert max(widths) < 64
    x = pictures(20)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(x)).numpy()
    assert_close(model.predict(x), expected)
