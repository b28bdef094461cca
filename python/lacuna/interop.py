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

    Values are float32, and zero outside of masks. `masks` adds NAME_mask for each masked parameter,
    and `sparse` stores only the nonzeros (safetensors, onnx). For a quantized run, int8 weights and
    scales are written if the format supports them; `only` ("int8" or "float32") selects the form.
    `overwrite` replaces an existing file or folder. `card` also writes a model card into the folder
    ("hf"), or with format "" only the card. `last` exports the last checkpoint instead of the best.
    Returns notes on what the file does not contain. Raises ConfigError, CheckpointError; StateError
    if `path` exists and `overwrite` is false.
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
    """Makes a run of step 0 from the weights of another tool. `train` can continue it.

    weights: a file (safetensors, npz, npy, or ONNX that lacuna wrote), a Hugging Face folder, or a
    state_dict of arrays or of PyTorch's tensors. config: the model and its data. Without it, the
    model is inferred from names and shapes, and `set` must give the data. A state_dict is not kept
    as a file: to begin other runs with these weights, give the new run as `model.init_from`. Raises
    the errors of `train`; if names or shapes do not fit, the message lists the differences.
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
    """Converts a PyTorch state_dict to arrays under the same names.

    Tensors on the CPU are shared, not copied; bfloat16 becomes float32. The prefix
    "module." of DataParallel and the counters `num_batches_tracked` are left out.
    """
    import numpy

    arrays = {}
    for name, value in state_dict.items():
        if name.endswith("num_batches_tracked"):
            continue
        if hasattr(value, "detach"):
            value = value.detach().cpu()
            value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
        array = numpy.asarray(value)
        if array.dtype == object:
            kind = type(value).__name__
            raise TypeError(f"{name!r} is a {kind}, not an array; convert it (sparse ones by .toarray())")
        arrays[name[len("module."):] if name.startswith("module.") else name] = array
    return arrays
