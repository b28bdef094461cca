"""Splits that Python gives to a run have one form and one meaning, or an error names the split."""

import shutil

import numpy as np
import pytest

import lacuna as lc

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)).astype(np.float32) * 10 + 5
Y = (X[:, 0] > 5).astype(np.int64)
T = X[:, 0] + 95
CONFIG = {
    "model": ["flatten", {"type": "linear", "out_features": 6}, "relu", "linear"],
    "optimizer": {"type": "adam", "lr": 0.05},
    "train": {"epochs": 2, "batch_size": 10, "threads": 1},
}


class Rows(lc.Dataset):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index].item()


@pytest.mark.parametrize("split", ["test", "validation"])
def test_what_is_not_normalized_is_refused(tmp_path, split):
    for section, answers, key in (
        ({"normalize": "standard"}, Y, "normalize"),
        ({"normalize": {"mean": 5, "std": 10}}, Y, "normalize"),
        ({"normalize_targets": True}, T, "normalize_targets"),
    ):
        config = {**CONFIG, "data": section}
        arrays = lc.train(
            config, run_dir=tmp_path / key, data={"train": (X, answers), split: (X, answers)}
        )
        assert arrays.state == "finished"
        data = {"train": (X, answers), split: Rows(X, answers)}
        with pytest.raises(lc.ConfigError, match=f"the {split} split gives its examples") as raised:
            lc.train(config, run_dir=tmp_path / "wrong", data=data)
        assert raised.value.key == f"data.{key}"
        with pytest.raises(lc.ConfigError, match=f"the {split} split gives its examples"):
            lc.evaluate(arrays, data=data)
        shutil.rmtree(tmp_path / key)
    with pytest.raises(lc.ConfigError, match="the training split gives its examples"):
        lc.train({**CONFIG, "data": {"normalize": "standard"}}, run_dir=tmp_path / "w", data=Rows(X, Y))
    # Nothing is changed without these keys.
    rows = lc.train(CONFIG, run_dir=tmp_path / "rows", data={"train": (X, Y), split: Rows(X, Y)})
    both = lc.train(CONFIG, run_dir=tmp_path / "both", data={"train": (X, Y), split: (X, Y)})
    assert rows.summary[f"{split}_accuracy"] == both.summary[f"{split}_accuracy"]


def test_splits_of_another_kind_are_refused(tmp_path):
    named = lc.ArrayDataset(X, Y, class_names=["neg", "pos"])
    bytes_ = RNG.integers(0, 256, (40, 4), dtype=np.uint8)
    for train, test, message in (
        (named, lc.ArrayDataset(X, 1 - Y, class_names=["pos", "neg"]), "classes pos, neg"),
        (named, lc.ArrayDataset(X, Y, class_names=["cat", "dog"]), "classes cat, dog"),
        ((bytes_, Y), (bytes_.astype(np.int64), Y), "numbers, train has bytes"),
        ((bytes_, Y), (bytes_.astype(np.float32), Y), "numbers, train has bytes"),
        ((X, Y), (bytes_, Y), "bytes, train has numbers"),
        ((X, Y), (X[:, :3], Y), r"examples of shape \[3\]"),
        ((X, Y), Rows(X[:, :3], Y), r"examples of shape \[3\]"),
        ((X, Y), (X, T), "1 targets"),
        ((X, T), (X, Y), "0 targets"),
    ):
        for split in ("test", "validation"):
            with pytest.raises(lc.DataError, match=f"split {split} has .*{message}"):
                lc.train(CONFIG, run_dir=tmp_path / "wrong", data={"train": train, split: test})
    assert not (tmp_path / "wrong").exists()
    fractions = bytes_.astype(np.float32) / 255
    assert lc.plan(CONFIG, data={"train": (bytes_, Y), "test": (fractions, Y)}).steps == 8
    same = lc.ArrayDataset(X, Y, class_names=["neg", "pos"])
    assert lc.plan(CONFIG, data={"train": named, "test": same}).steps == 8


def test_load_data_reads_as_a_new_run_does(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("abcabcabd" * 30)
    section = {"type": "text", "path": str(text), "tokenizer": "characters", "context": 4}
    data = lc.load_data(section)
    config = {
        "data": section,
        "model": {"type": "gpt2", "n_layer": 1, "n_head": 1, "n_embd": 8},
        "optimizer": {"type": "adam", "lr": 0.01},
        "train": {"steps": 1, "batch_size": 4, "threads": 1},
    }
    run = lc.train(config, run_dir=tmp_path / "run")
    assert data["train"].num_classes == lc.load(run).model["transformer.wte.weight"].shape[0]
