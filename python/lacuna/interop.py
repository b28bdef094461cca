"""Runs and weights of other tools: exported, imported, and a PyTorch state_dict as arrays."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

from lacuna import _lacuna
from lacuna.runs import Changes, Config, Path, Run, given_config, set_values

if TYPE_CHECKING:
    import numpy


def export(
    run: Path,
    format: str,
    path: Path,
    *,
    masks: bool = False,
    sparse: bool = False,
    only: Optional[str] = None,
    overwrite: bool = False,
    card: bool = False,
    last: bool = False,
) -> list[str]:
    """Writes a run's weights for other tools: "safetensors", "npz", "csr-npz", "onnx" or "hf".

    Values are float32, zero where a mask has no position; `masks` adds NAME_mask for each of them,
    and `sparse` stores the nonzeros alone (safetensors, onnx). Of a quantized run the int8 weights
    with their scales are written where the format has them; `only` ("int8" or "float32") chooses.
    Returns notes on what the file does not say. Raises ConfigError, CheckpointError; StateError if
    something is at `path` already and `overwrite` is false.
    """
    return _lacuna._export(
        os.fspath(run),
        format,
        os.fspath(path),
        masks,
        sparse,
        only or "",
        overwrite,
        card,
        last,
    )


def import_(
    weights: Union[Path, Mapping[str, Any]],
    config: Optional[Config] = None,
    *,
    run_dir: Path,
    set: Changes = None,
    find_pattern: bool = False,
) -> Run:
    """Makes a run of step 0 with another tool's weights, which `train` can go on with.

    weights: a file (safetensors, npz, npy), a folder of Hugging Face's, or a state_dict of arrays
    or PyTorch's tensors. config: the model and its data; if it is left out, the model is made of
    the names and shapes, and `set` must give the data. Raises as `train`, and where names or shapes
    do not fit, with a list of the differences.
    """
    if not isinstance(weights, Mapping):
        _lacuna._import(
            os.fspath(weights), given_config(config), set_values(set), os.fspath(run_dir), find_pattern
        )
        return Run(run_dir)
    import tempfile

    import numpy

    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "weights.npz")
        numpy.savez(file, **from_torch(weights))
        return import_(file, config, run_dir=run_dir, set=set, find_pattern=find_pattern)


def from_torch(state_dict: Mapping[str, Any]) -> dict[str, numpy.ndarray[Any, Any]]:
    """A PyTorch state_dict as arrays under the same names, without copies where memory allows.

    Tensors of the CPU are shared, not copied. The prefix "module." of DataParallel and the counters
    `num_batches_tracked` are left out.
    """
    import numpy

    arrays = {}
    for name, value in state_dict.items():
        if name.endswith("num_batches_tracked"):
            continue
        if hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        arrays[name[len("module."):] if name.startswith("module.") else name] = numpy.asarray(value)
    return arrays
