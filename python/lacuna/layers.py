"""Layers, with PyTorch's names and arguments: the parts of a `Model`.

A layer here is a description, like an entry of a configuration's `model`; a `Model` builds it.
Sizes that follow from the previous layer, such as `in_features`, can be None.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from lacuna import _lacuna

Pair = Union[int, Tuple[int, int]]


class Layer:
    """A layer, by its type and keys in a configuration: Layer("linear", out_features=10)."""

    def __init__(self, type: str, name: Optional[str] = None, **keys: Any) -> None:
        self.type = type
        self.name = name
        self.keys = {key: value for key, value in keys.items() if value is not None}

    def to_config(self) -> Dict[str, Any]:
        """Returns the layer as an entry of a configuration."""
        config: Dict[str, Any] = {"type": self.type}
        if self.name is not None:
            config["name"] = self.name
        config.update({key: _to_config(value) for key, value in self.keys.items()})
        return config

    def __repr__(self) -> str:
        keys = "".join(f", {key}={value!r}" for key, value in self.keys.items())
        return f"Layer({self.type!r}, name={self.name!r}{keys})"

    def __call__(self, *_: Any) -> None:
        raise TypeError(f"a {self.type} layer can only be called as a part of a Model: Model([...])")


def _to_config(value: Any) -> Any:
    if isinstance(value, Layer):
        return value.to_config()
    if isinstance(value, (list, tuple)):
        return [_to_config(item) for item in value]
    if isinstance(value, _lacuna.OwnModule):
        return {"type": "python_module", "number": _lacuna._lend_module(value)}
    return value


def _window(kernel_size: Pair, stride: Optional[Pair], **rest: Any) -> Dict[str, Any]:
    return {"kernel": kernel_size, "stride": kernel_size if stride is None else stride, **rest}


def Linear(
    in_features: Optional[int] = None,
    out_features: Optional[int] = None,
    bias: bool = True,
    *,
    name: Optional[str] = None,
    init: Any = None,
) -> Layer:
    """y = x W^T + b. [..., in_features] -> [..., out_features]."""
    return Layer(
        "linear", name, in_features=in_features, out_features=out_features, bias=bias, init=init
    )


def Conv2d(
    in_channels: Optional[int],
    out_channels: int,
    kernel_size: Pair,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
    bias: bool = True,
    *,
    name: Optional[str] = None,
    init: Any = None,
) -> Layer:
    """2D convolution. [batch, in_channels, height, width] -> [batch, out_channels, ...]."""
    return Layer(
        "conv2d",
        name,
        in_channels=in_channels,
        out_channels=out_channels,
        **_window(kernel_size, stride, padding=padding, dilation=dilation),
        groups=groups,
        bias=bias,
        init=init,
    )


def Conv1d(
    in_channels: Optional[int],
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = True,
    *,
    name: Optional[str] = None,
    init: Any = None,
) -> Layer:
    """1D convolution. [batch, in_channels, length] -> [batch, out_channels, ...]."""
    return Layer(
        "conv1d",
        name,
        in_channels=in_channels,
        out_channels=out_channels,
        **_window(kernel_size, stride, padding=padding, dilation=dilation),
        groups=groups,
        bias=bias,
        init=init,
    )


def Flatten(*, name: Optional[str] = None) -> Layer:
    """[batch, ...] -> [batch, features]."""
    return Layer("flatten", name)


def ReLU(*, name: Optional[str] = None) -> Layer:
    """max(x, 0)."""
    return Layer("relu", name)


def LeakyReLU(negative_slope: float = 0.01, *, name: Optional[str] = None) -> Layer:
    """x for x >= 0, otherwise negative_slope * x."""
    return Layer("leaky_relu", name, negative_slope=negative_slope)


def GELU(approximate: str = "none", *, name: Optional[str] = None) -> Layer:
    """x times the normal distribution's cumulative function. approximate: "none" or "tanh"."""
    return Layer("gelu", name, approximate=approximate)


def SiLU(*, name: Optional[str] = None) -> Layer:
    """x * sigmoid(x)."""
    return Layer("silu", name)


def Sigmoid(*, name: Optional[str] = None) -> Layer:
    """1 / (1 + exp(-x))."""
    return Layer("sigmoid", name)


def Tanh(*, name: Optional[str] = None) -> Layer:
    """tanh(x)."""
    return Layer("tanh", name)


def Dropout(p: float = 0.5, *, name: Optional[str] = None) -> Layer:
    """Sets elements to zero with probability p, in training only."""
    return Layer("dropout", name, p=p)


def BatchNorm2d(
    num_features: Optional[int] = None,
    eps: float = 1e-5,
    momentum: float = 0.1,
    affine: bool = True,
    track_running_stats: bool = True,
    *,
    name: Optional[str] = None,
) -> Layer:
    """Normalizes each channel over the batch."""
    return Layer(
        "batch_norm",
        name,
        channels=num_features,
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
    )


BatchNorm1d = BatchNorm2d


def LayerNorm(
    normalized_shape: Optional[int] = None, eps: float = 1e-5, *, name: Optional[str] = None
) -> Layer:
    """Normalizes over the last dimension, whose size is normalized_shape."""
    return Layer("layer_norm", name, features=normalized_shape, eps=eps)


def RMSNorm(
    normalized_shape: Optional[int] = None, eps: float = 1e-6, *, name: Optional[str] = None
) -> Layer:
    """Divides by the root mean square over the last dimension."""
    return Layer("rms_norm", name, features=normalized_shape, eps=eps)


def GroupNorm(
    num_groups: int,
    num_channels: Optional[int] = None,
    eps: float = 1e-5,
    *,
    name: Optional[str] = None,
) -> Layer:
    """Normalizes groups of consecutive channels of each example."""
    return Layer("group_norm", name, groups=num_groups, channels=num_channels, eps=eps)


def MaxPool2d(
    kernel_size: Pair,
    stride: Optional[Pair] = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    *,
    name: Optional[str] = None,
) -> Layer:
    """The largest value of each window."""
    return Layer(
        "max_pool", name, **_window(kernel_size, stride, padding=padding, dilation=dilation)
    )


def AvgPool2d(
    kernel_size: Pair,
    stride: Optional[Pair] = None,
    padding: Pair = 0,
    count_include_pad: bool = True,
    *,
    name: Optional[str] = None,
) -> Layer:
    """The mean of each window."""
    return Layer(
        "avg_pool",
        name,
        **_window(kernel_size, stride, padding=padding, count_include_pad=count_include_pad),
    )


def GlobalAvgPool(*, name: Optional[str] = None) -> Layer:
    """The mean of each channel, as PyTorch's AdaptiveAvgPool2d(1) and Flatten."""
    return Layer("global_average_pool", name)


def Embedding(
    num_embeddings: Optional[int] = None,
    embedding_dim: Optional[int] = None,
    *,
    name: Optional[str] = None,
    init: Any = None,
    sparse: bool = False,
) -> Layer:
    """One vector per token. Ids [batch, length] -> [batch, length, embedding_dim].

    With sparse=True, a step updates only the rows of the batch's tokens, so its cost
    depends only on them.
    """
    return Layer(
        "token_embedding",
        name,
        vocab_size=num_embeddings,
        features=embedding_dim,
        init=init,
        sparse_gradient=True if sparse else None,
    )


def Sequential(*layers: Union[Layer, str], name: Optional[str] = None) -> Layer:
    """Layers one after the other. Their names are under the name of the Sequential."""
    return Layer("sequential", name, layers=list(layers))


def Residual(
    *layers: Union[Layer, str],
    shortcut: Optional[Sequence[Union[Layer, str]]] = None,
    name: Optional[str] = None,
) -> Layer:
    """layers(x) + shortcut(x); without a shortcut, layers(x) + x. Adds no level of names."""
    if shortcut is None:
        return Layer("residual", name, layers=list(layers))
    return Layer("residual", name, layers=list(layers), shortcut=list(shortcut), when="always")


def Parallel(*branches: Union[Layer, str], name: Optional[str] = None) -> Layer:
    """Gives all branches the same input, and concatenates their outputs."""
    return Layer("parallel", name, layers=list(branches))


_NEUTRAL = {
    "relu",
    "leaky_relu",
    "squared_relu",
    "gelu",
    "silu",
    "sigmoid",
    "tanh",
    "dropout",
    "flatten",
}
_SIZED = {"linear": "in_features", "layer_norm": "features", "rms_norm": "features"}


def input_shape_of(layers: Sequence[Dict[str, Any]]) -> Tuple[int, ...]:
    """The shape of one example, if the first layer with a size determines it."""
    for layer in layers:
        kind = layer["type"]
        if kind == "sequential":
            return input_shape_of(layer["layers"])
        if kind in _SIZED and _SIZED[kind] in layer:
            return (layer[_SIZED[kind]],)
        if kind not in _NEUTRAL:
            break
    raise TypeError(
        "Model: the first layers do not determine the shape of one example; give input_shape, such as "
        "input_shape=(3, 32, 32) for images [channels, height, width]"
    )


def _extents(value: Any) -> Tuple[int, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value, value)


def example_shape_of(config: Dict[str, Any]) -> Tuple[int, ...]:
    """A shape of one example that the layer of this entry takes, by the sizes that are given. Images
    are of 32 by 32 pixels, or as large as the kernel."""
    kind = config["type"]
    layers = config.get("layers") or [config]
    if kind in ("sequential", "residual", "parallel"):
        return example_shape_of(next((one for one in layers if one["type"] not in _NEUTRAL), {"type": "relu"}))
    if kind in _NEUTRAL or kind == "token_embedding":
        return (1,)
    size = config.get("in_features", config.get("features"))
    channels = config.get("in_channels", config.get("channels"))
    windows = ("conv1d", "conv2d", "max_pool", "avg_pool")
    if kind in windows:
        extents = zip(_extents(config.get("kernel", 1)), _extents(config.get("dilation", 1)))
        sides = [max(32, (kernel - 1) * dilation + 1) for kernel, dilation in extents]
        channels = 1 if kind.endswith("pool") else channels
        if channels is not None:
            return (channels, *(sides[:1] if kind == "conv1d" else sides))
    elif kind == "global_average_pool":
        return (1, 1, 1)
    elif channels is not None:
        return (channels, 1, 1)
    elif size is not None:
        return (size,)
    raise TypeError(
        f"a {kind} layer of a module needs its sizes, such as in_features or in_channels"
    )


def to_configs(layers: Sequence[Union[Layer, str, Dict[str, Any]]]) -> List[Dict[str, Any]]:
    """Layers as the entries of a configuration's `model`."""
    configs: List[Dict[str, Any]] = []
    if isinstance(layers, (str, bytes)):
        raise TypeError(f"Model: expected a list of layers, found {layers!r}")
    for layer in layers:
        if isinstance(layer, Layer):
            configs.append(layer.to_config())
        elif isinstance(layer, str):
            configs.append({"type": layer})
        elif isinstance(layer, dict):
            configs.append(layer)
        elif isinstance(layer, _lacuna.OwnModule):
            configs.append(_to_config(layer))
        else:
            raise TypeError(f"Model: expected a layer, found {layer!r}")
    return configs
