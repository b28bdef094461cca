"""Training sparse neural networks, truly sparse.

Names and arguments are those of PyTorch and of the common sparsity APIs. Arrays are NumPy arrays;
C-ordered float32 arrays are shared, not copied, except a few that reach the end of a memory page.
Nothing is printed until `log` is called.
"""

import os as _os

from lacuna import layers, nn, sparse
from lacuna._lacuna import (
    SGD,
    Adam,
    AdamW,
    ArrayDataset,
    CheckpointError,
    ConfigError,
    DataError,
    Dataset,
    Error,
    LoadedRun,
    Loader,
    MemoryError,
    Module,
    Optimizer,
    Parameter,
    Random,
    ShapeError,
    StateError,
    Variable,
    __version__,
    binary_cross_entropy_with_logits,
    bmm,
    cat,
    cross_entropy,
    distillation_loss,
    gelu,
    gelu_tanh,
    leaky_relu,
    linear,
    load,
    load_data,
    log,
    log_softmax,
    mse_loss,
    no_grad,
    num_threads,
    optimizer,
    random,
    relu,
    set_num_threads,
    sigmoid,
    silu,
    softmax,
    squared_relu,
    tanh,
)
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
    Sequential,
    Sigmoid,
    SiLU,
    Tanh,
)
from lacuna.data import as_dataset
from lacuna.display import MaskPicture
from lacuna.interop import export, from_torch, import_
from lacuna.model import Model
from lacuna.registry import register
from lacuna.runs import (
    Plan,
    Run,
    compare,
    evaluate,
    plan,
    prune,
    quantize,
    shrink,
    sweep,
    train,
)

# OpenMP's threads do not live on in a child of fork (a worker of a data loader): it works alone.
_os.register_at_fork(after_in_child=lambda: set_num_threads(1))

__all__ = [name for name in dir() if not name.startswith("_")] + ["__version__"]
