"""Training sparse neural networks, truly sparse.

The calls are those of PyTorch and of the sparsity API that its users know. Arrays are NumPy's;
float32 arrays in C order are shared, not copied. Nothing is printed until `log` is called.
"""

from lacuna._lacuna import (
    CheckpointError,
    ConfigError,
    DataError,
    Error,
    MemoryError,
    Random,
    ShapeError,
    StateError,
    __version__,
    log,
    num_threads,
    random,
    set_num_threads,
)

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataError",
    "Error",
    "MemoryError",
    "Random",
    "ShapeError",
    "StateError",
    "__version__",
    "log",
    "num_threads",
    "random",
    "set_num_threads",
]

from lacuna.display import MaskPicture
from lacuna.runs import (
    LoadedRun,
    Plan,
    Run,
    compare,
    evaluate,
    export,
    from_torch,
    import_,
    load,
    plan,
    prune,
    sweep,
    train,
)

__all__ += [
    "LoadedRun",
    "MaskPicture",
    "Plan",
    "Run",
    "compare",
    "evaluate",
    "export",
    "from_torch",
    "import_",
    "load",
    "plan",
    "prune",
    "sweep",
    "train",
]
