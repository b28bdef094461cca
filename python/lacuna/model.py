"""Models built by hand."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Union

from lacuna import _lacuna
from lacuna.layers import Layer, input_shape_of, to_configs


class Model(_lacuna.Sequential):
    """A model of layers one after the other.

    layers: a list of layers, or a configuration's section `model`: a list of dicts, or a dict with
    `layers` or `type` (a preset). input_shape: the shape of one example, without the batch; it can
    be left out if the first layer with a size is a Linear, LayerNorm or RMSNorm. seed: of the initial
    values. Raises ConfigError; TypeError if input_shape is needed and missing.
    """

    def __init__(
        self,
        layers: Union[Sequence[Union[Layer, str, Dict[str, Any]]], Dict[str, Any]],
        input_shape: Optional[Sequence[int]] = None,
        seed: int = 0,
    ) -> None:
        description: Any = layers if isinstance(layers, dict) else to_configs(layers)
        if isinstance(layers, dict) and "layers" in layers:
            description = {**layers, "layers": to_configs(layers["layers"])}
        if input_shape is None:
            listed = description["layers"] if "layers" in description else description
            if isinstance(listed, dict):
                raise TypeError("Model: give input_shape, the shape of one example")
            input_shape = input_shape_of(listed)
        super().__init__(description, tuple(input_shape), seed)
