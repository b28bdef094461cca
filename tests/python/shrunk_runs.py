"""Small runs whose models `shrink` made smaller, and inputs for them."""

import os

import numpy as np

import lacuna as lc

IMAGES = {
    "data": {"type": "colour_glyphs", "train_size": 60, "test_size": 20, "normalize": "unit"},
    "model": {"type": "cifar_resnet", "depth": 8, "num_labels": 10},
    "optimizer": {"type": "sgd", "lr": 0.05, "momentum": 0.9},
    "train": {"epochs": 1, "batch_size": 20, "threads": 1},
}
# The wide initial values make heads and units differ.
BERT = {
    "data": {"type": "labelled_text", "tokenizer": "words", "max_length": 12, "validation": 20},
    "model": {
        "type": "bert",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 12,
        "initializer_range": 0.2,
    },
    "optimizer": {"type": "adamw", "lr": 0.01},
    "train": {"epochs": 1, "batch_size": 10, "threads": 1},
}


def shrunk_resnet(folder):
    whole = lc.train(IMAGES, run_dir=folder / "whole")
    return lc.shrink(whole, run_dir=folder / "small", to={"flops": 0.5}, method="saliency")


def shrunk_wide_resnet(folder):
    """The WRN-16-2 of the configurations, whose shortcuts have convolutions of their own."""
    whole = lc.train(
        os.path.join(os.environ["LACUNA_SOURCE_DIR"], "configs", "cifar10_wrn16_2_rigl90.yaml"),
        run_dir=folder / "whole",
        set={**{key: IMAGES[key] for key in ("data", "optimizer", "train")}, "sparsity": None},
    )
    return lc.shrink(whole, run_dir=folder / "small", to={"flops": 0.5}, method="saliency")


def shrunk_bert(folder):
    fillers = ["", " a film", " this long film of mine"]
    words = [("bad", "dull"), ("good", "fine")]
    lines = []
    for i in range(120):
        first, last = words[i % 2]
        lines.append(f"{i % 2} {first}{fillers[i % 3]} {last}")
    (folder / "train.txt").write_text("\n".join(lines) + "\n")
    data = {**BERT["data"], "train": str(folder / "train.txt")}
    whole = lc.train({**BERT, "data": data}, run_dir=folder / "whole")
    return lc.shrink(whole, run_dir=folder / "small", to={"flops": 0.5}, method="saliency")


def pictures(count):
    return np.random.default_rng(0).random((count, 3, 32, 32), np.float32)


def tokens(count, length, vocabulary):
    """Named int64 arrays [count, length]; each second sentence ends with two tokens of padding."""
    random = np.random.default_rng(0)
    mask = np.ones((count, length), np.int64)
    mask[1::2, -2:] = 0
    types = np.broadcast_to(np.arange(length) >= length // 2, (count, length))
    return {
        "input_ids": random.integers(0, vocabulary, (count, length)),
        "attention_mask": mask,
        "token_type_ids": types.astype(np.int64),
    }


def bert_outputs(loaded, inputs):
    more = {name: array for name, array in inputs.items() if name != "input_ids"}
    return loaded.model(inputs["input_ids"], **more).numpy()


def assert_close(found, expected):
    """To 1e-5 of the largest output."""
    atol = 1e-5 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
