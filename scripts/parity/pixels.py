"""The pixels that a training with data.augment reads, found from outside.

The model is one linear layer from zero, trained with batches of one image. Its gradient is (p − y) xᵀ for the
weight and p − y for the bias, so an image is the quotient of what a step changes in both. Images are bytes and
can be compared exactly.
"""
import numpy as np

import data_order
import lacuna_runs

IMAGES, STEPS, SEED, AUGMENT = 6, 12, 5, {"crop": 4, "flip": True}


def config(kind):
    return {"data": {"type": kind, "limit": IMAGES, "normalize": "none", "augment": AUGMENT},
            "model": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out_features": 10}],
            "optimizer": {"type": "sgd", "lr": 2.0**-20},  # the outputs stay near zero: no p is near y
            "train": {"steps": STEPS, "batch_size": 1, "seed": SEED, "log_every": 1, "eval_every": STEPS,
                      "checkpoint": {"every": 1, "keep_last": STEPS + 1}}}


def read_by_lacuna(lacuna, kind, data_folder, folder, image_shape):
    """The image of each step, as bytes."""
    features = int(np.prod(image_shape))
    zeros = {"fc.weight": np.zeros((10, features), np.float32), "fc.bias": np.zeros(10, np.float32)}
    run_folder = lacuna_runs.start(lacuna, lacuna_runs.placed(config(kind), data_folder), folder, zeros, {})
    images, before = [], zeros
    for step in range(1, STEPS + 1):
        after = lacuna_runs.exported(lacuna, run_folder, step, f"{folder}/step.npz")
        weight, bias = (after[name].astype(np.float64) - before[name] for name in ("fc.weight", "fc.bias"))
        label = int(np.argmax(np.abs(bias)))
        images.append(np.rint(weight[label] / bias[label]).astype(np.int64).reshape(image_shape))
        before = after
    return np.stack(images)


def by_the_rules(images):
    """The same from the data set's own images [n, channels, rows, columns]."""
    changed = []
    for epoch in range(STEPS // IMAGES):
        for examples in data_order.epoch_batches(IMAGES, 1, SEED, epoch):
            changed.append(data_order.cropped_and_flipped(images[examples], examples, SEED, epoch, **AUGMENT)[0])
    return np.stack(changed).astype(np.int64)
