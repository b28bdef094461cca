"""ResNets that `shrink` made smaller give in PyTorch what they give here."""

import numpy as np
import pytest
import torch
from safetensors_file import read_safetensors
from shrunk_runs import assert_close, pictures, shrunk_resnet, shrunk_wide_resnet
from torch import nn
from torch.nn import functional

import lacuna as lc


class Residual(nn.Module):
    def __init__(self, layers, shortcut):
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x):
        return self.shortcut(x) + self.layers(x)


class SubsamplePad(nn.Module):
    def __init__(self, stride, before, channels):
        super().__init__()
        self.stride, self.before, self.channels = stride, before, channels

    def forward(self, x):
        x = x[:, :, :: self.stride, :: self.stride]
        return functional.pad(x, (0, 0, 0, 0, self.before, self.channels - self.before - x.shape[1]))


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
    elif kind == "subsample_pad":
        return SubsamplePad(layer["stride"][0], layer["before"], layer["channels"])
    else:
        raise AssertionError(kind)
    names = dict(made.named_parameters()) | dict(made.named_buffers())
    for name, tensor in names.items():
        if name != "num_batches_tracked":
            assert tensor.shape == state[f"{path}.{name}"].shape, f"{path}.{name}"
            tensor.data.copy_(state[f"{path}.{name}"])
    return made


def torch_layers(layers, prefix, state):
    made = []
    for layer in layers:
        name = layer["name"]
        kind = layer["type"]
        if kind == "sequential":
            made.append(nn.Sequential(*torch_layers(layer["layers"], prefix + name + ".", state)))
        elif kind == "residual":
            branches = [torch_layers(layer.get(key) or [], prefix, state) for key in ("layers", "shortcut")]
            made.append(Residual(*branches))
        else:
            made.append(torch_layer(layer, prefix + name, state))
    return made


@pytest.mark.parametrize(
    "make_shrunk,layers,widest", [(shrunk_resnet, 7, 64), (shrunk_wide_resnet, 16, 128)]
)
def test_a_shrunk_resnet_gives_the_same_in_pytorch(make_shrunk, layers, widest, tmp_path):
    shrunk = make_shrunk(tmp_path)
    model = lc.load(shrunk)
    lc.export(shrunk, "safetensors", tmp_path / "small.safetensors")
    state = read_safetensors(tmp_path / "small.safetensors")
    arrays = model.model.state_dict(masks=False)
    assert state.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(state[name].numpy(), array, err_msg=name)
    theirs = nn.Sequential(*torch_layers(shrunk.config["model"]["layers"], "", state)).eval()
    widths = [m.out_channels for m in theirs.modules() if isinstance(m, nn.Conv2d)]
    assert len(widths) == layers
    assert max(widths) < widest
    x = pictures(20)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(x)).numpy()
    assert_close(model.predict(x), expected)
