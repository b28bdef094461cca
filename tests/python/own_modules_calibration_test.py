"""Weights inside modules whose forward is in Python are pruned and quantized by their inputs."""

import pytest

import lacuna as lc

CONFIG = {
    "data": {"type": "glyphs", "train_size": 100, "test_size": 30},
    "model": [
        "flatten",
        {"type": "linear", "name": "fc1", "out_features": 16},
        {"type": "CalibratedBlock", "name": "block", "width": 16},
        {"type": "linear", "name": "fc2", "out_features": 10},
    ],
    "optimizer": {"type": "adam", "lr": 0.003},
    "train": {"epochs": 1, "batch_size": 20, "threads": 1},
}


@lc.register("CalibratedBlock")
class CalibratedBlock(lc.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = lc.nn.Linear(width, width)

    def forward(self, x):
        return lc.relu(self.fc(x))


@pytest.fixture(scope="module")
def dense(tmp_path_factory):
    return lc.train(CONFIG, run_dir=tmp_path_factory.mktemp("own") / "dense")


def half_is_left(run):
    values = lc.load(run)["block.fc.weight"].to_numpy()
    return (values != 0).sum() == values.size // 2


@pytest.mark.parametrize("method", ["magnitude", "wanda", "sparsegpt", "admm"])
def test_pruning(dense, tmp_path, method):
    assert half_is_left(lc.prune(dense, run_dir=tmp_path / "pruned", sparsity=0.5, method=method))


def test_pruning_in_the_first_step(tmp_path):
    section = {"algorithm": "sparsegpt", "sparsity": 0.5, "calibration": 64}
    assert half_is_left(lc.train(CONFIG, run_dir=tmp_path / "run", set={"sparsity": section}))


@pytest.mark.parametrize("algorithm", ["nearest", "gptq"])
def test_quantizing(dense, tmp_path, algorithm):
    section = {"algorithm": algorithm, "calibration": 64, "param_filter": ["block.fc.weight"]}
    run = lc.quantize(dense, {"quantize": section}, run_dir=tmp_path / "int8")
    assert [row["parameter"] for row in run.report["layers"]] == ["block.fc.weight"]
