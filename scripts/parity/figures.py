"""PyTorch's figures of a few cases, stored for a test without PyTorch."""
import json

import numpy as np

# Each stands for others: optimizers of dense and sparse weights, a moving mask, weighted losses, accumulation, an
# average, shards, batch_norm's moments, augmentation, and the transformers with their orders of data.
STORED = ("sgd_nesterov_decay", "average_late", "csr_adamw", "rigl_csr", "accumulate_class_weights", "shards_odd",
          "convolutions_shards", "augment_held_out", "moments", "gpt", "bert_masked", "bert_classes",
          "bert_masked_accumulate")


def write(path, trained):
    """Of a dictionary of Trained by the names of cases."""
    stored = {}
    for name in STORED:
        if name not in trained:
            raise ValueError(f"--record needs the case {name}")
        case = trained[name]
        stored[name] = {"losses": [round(loss, 8) for loss in case.losses]}
        if case.test_loss is not None:
            stored[name]["test_loss"] = round(case.test_loss, 8)
        moments = {key: value for key, value in case.values.items() if ".running_" in key}
        if moments:
            stored[name]["moments"] = {key: [round(float(x), 8) for x in value] for key, value in moments.items()}
    with open(path, "w", encoding="utf-8") as file:
        # A line for each case.
        file.write("{\n" + ",\n".join(f'"{name}": {json.dumps(case)}' for name, case in stored.items()) + "\n}\n")


def read(path):
    with open(path, encoding="utf-8") as file:
        stored = json.load(file)
    for case in stored.values():
        case["losses"] = np.array(case["losses"])
        case["moments"] = {key: np.array(value) for key, value in case.get("moments", {}).items()}
    return stored
