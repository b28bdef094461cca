"""A configuration that trains in a moment, for tests of runs."""

TINY = {
    "data": {"type": "glyphs", "train_size": 100, "test_size": 30, "validation": 10},
    "model": [
        "flatten",
        {"type": "linear", "name": "fc1", "out_features": 12},
        "relu",
        {"type": "linear", "name": "fc2", "out_features": 10},
    ],
    "optimizer": {"type": "adam", "lr": 0.01},
    "sparsity": {"algorithm": "set", "sparsity": 0.5, "layout": "csr", "update": {"freq": 3}},
    "train": {
        "steps": 12,
        "batch_size": 8,
        "threads": 1,
        "log_every": 3,
        "eval_every": 4,
        "checkpoint": {"every": 4},
    },
}
