"""Modules whose forward is written in Python, with layers as in PyTorch's `torch.nn`.

    class Net(lacuna.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = lacuna.nn.Linear(784, 100)
            self.fc2 = lacuna.nn.Linear(100, 10)

        def forward(self, x):
            return self.fc2(lacuna.relu(self.fc1(x.flatten())))

A layer, module or parameter that is assigned to an attribute becomes a part of the module, under
the attribute's name. A layer is built when it is assigned, so its sizes must be given.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, List, Union

from lacuna import _lacuna
from lacuna._lacuna import Parameter
from lacuna.layers import (
    GELU,
    AvgPool2d,
    BatchNorm1d,
    BatchNorm2d,
    Conv1d,
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    GlobalAvgPool,
    GroupNorm,
    Layer,
    LayerNorm,
    LeakyReLU,
    Linear,
    MaxPool2d,
    Parallel,
    ReLU,
    Residual,
    RMSNorm,
    Sigmoid,
    SiLU,
    Tanh,
    example_shape_of,
    to_configs,
)

_Part = (Layer, _lacuna.Module, Parameter)


class Module(_lacuna.OwnModule):
    """The base class of your own modules: `__init__` assigns the parts, forward computes the output.

    Everything that `Model` offers works too: parameters, state dicts, sparsity, optimizers,
    training and evaluation mode, `save` and `load_weights`, `predict` and `evaluate`. A list of
    layers for `Model` can contain such a module. forward(self, *inputs) receives Variables and
    returns one; keywords of a call are passed to forward.

    A part can be assigned only once, and a module can be a part of only one other module. A layer
    that forward uses twice shares its weights.
    """

    def __init__(self) -> None:
        super().__init__(type(self).__name__)

    def forward(self, *inputs: _lacuna.Variable) -> _lacuna.Variable:
        """Computes the output. Dimension 0 of the inputs is the batch."""
        raise NotImplementedError(f"the class '{type(self).__name__}' defines no forward()")

    def register_buffer(self, name: str, values: Any) -> None:
        """Adds an attribute, an array that is saved and loaded but not trained."""
        self._check_name(name)
        self._add_buffer(name, values)

    def register_parameter(self, name: str, parameter: Parameter) -> None:
        """Assigns a parameter to the attribute of this name."""
        setattr(self, name, parameter)

    def add_module(self, name: str, module: Any) -> None:
        """Assigns a layer or a module to the attribute of this name."""
        setattr(self, name, module)

    def _check_name(self, name: str) -> None:
        if name in self.__dict__ or self._buffer(name) is not None:
            raise _lacuna.StateError(
                f"'{name}' is an attribute of {type(self).__name__} already; parts are assigned once"
            )

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            known = self.__dict__.get(name)
            if not isinstance(value, _Part):
                _refuse_parts_within(name, value)
                if isinstance(known, _Part):
                    raise _lacuna.StateError(
                        f"'{name}' is a part of {type(self).__name__}, and cannot be replaced"
                    )
                if known is None and hasattr(value, "__array__") and self._buffer(name) is not None:
                    self._set_buffer(name, value)
                    return
                super().__setattr__(name, value)
                return
            if known is value:
                return
            self._check_name(name)
            super().__setattr__(name, self._added(name, value))
        except TypeError as error:
            if "super().__init__()" in str(error):
                raise TypeError(
                    f"{type(self).__name__}.__init__ assigns '{name}' before super().__init__()"
                ) from None
            raise

    def _added(self, name: str, value: Any) -> Any:
        """The part that the value becomes."""
        if isinstance(value, Layer):
            return _add_layer(self, name, value)
        if isinstance(value, _lacuna.OwnModule):
            if value.path and any(part is value for _, part in self.named_modules()):
                return value  # another name for a part
            self._add_module(name, value)
        elif isinstance(value, Parameter):
            if not any(part is value for part in self.parameters()):
                self._add_parameter(name, value)
        elif not any(part is value for _, part in self.named_modules()):
            raise TypeError(
                f"{type(self).__name__}.{name}: a model that is built already cannot be a part of "
                "another; assign nn.Sequential(...) of its layers"
            )
        return value

    def __delattr__(self, name: str) -> None:
        if isinstance(self.__dict__.get(name), _Part):
            raise _lacuna.StateError(
                f"'{name}' is a part of {type(self).__name__}, and cannot be deleted"
            )
        super().__delattr__(name)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            try:
                found = self._buffer(name)
            except TypeError:  # before super().__init__()
                found = None
            if found is not None:
                return found
            return super().__getattr__(name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        lines = [f"  ({path}): {module.type}" for path, module in self.named_modules() if path]
        return "\n".join([f"{type(self).__name__}("] + lines + [")"]) if lines else (
            f"{type(self).__name__}()"
        )


class Sequential(Module):
    """Layers and modules one after the other. Parts without a name are named 0, 1, …"""

    def __init__(self, *layers: Union[Layer, str, _lacuna.OwnModule]) -> None:
        super().__init__()
        for index, layer in enumerate(layers):
            made = Layer(layer) if isinstance(layer, str) else layer
            setattr(self, getattr(made, "name", None) or str(index), made)

    def forward(self, *inputs: _lacuna.Variable) -> _lacuna.Variable:
        """Returns the output of the last module."""
        (x,) = inputs
        for module in self:
            x = module(x)
        return x

    def __iter__(self) -> Iterator[_lacuna.Module]:
        return iter(self.children())

    def __len__(self) -> int:
        return len(self.children())

    def __getitem__(self, key: Any) -> Any:
        """The module of that place; of a name, the parameter."""
        return super().__getitem__(key) if isinstance(key, str) else self.children()[key]


class ModuleList(Sequential):
    """A list of modules, for a module whose forward calls them."""

    def __init__(self, modules: Iterable[Union[Layer, str, _lacuna.OwnModule]] = ()) -> None:
        super().__init__(*modules)

    def append(self, module: Union[Layer, str, _lacuna.OwnModule]) -> "ModuleList":
        """Adds a module at the end."""
        setattr(self, str(len(self)), Layer(module) if isinstance(module, str) else module)
        return self

    def forward(self, *inputs: _lacuna.Variable) -> _lacuna.Variable:
        """Raises TypeError, because a list computes nothing."""
        raise TypeError("a ModuleList has no forward(); call its modules")


def _add_layer(owner: Module, name: str, layer: Layer) -> Any:
    if layer.type == "sequential":
        made = Sequential(*layer.keys.get("layers", ()))
        owner._add_module(name, made)
        return made
    (config,) = to_configs([layer])
    config.pop("name", None)
    return owner._add_layer(name, config, example_shape_of(config))


def _refuse_parts_within(name: str, value: Any) -> None:
    items: List[Any] = []
    if isinstance(value, (list, tuple)):
        items = list(value)
    elif isinstance(value, dict):
        items = list(value.values())
    for item in items:
        if isinstance(item, Layer) or (isinstance(item, _lacuna.OwnModule) and not item.path):
            raise TypeError(f"{name}: layers in a list are not parts of a module; use nn.ModuleList([...])")


def takes(function: Any, name: str) -> bool:
    """Whether a function or a class can be given that keyword."""
    import inspect  # it takes long

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == name or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


__all__ = [
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "GlobalAvgPool",
    "GroupNorm",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "Parallel",
    "Parameter",
    "RMSNorm",
    "ReLU",
    "Residual",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Tanh",
]
