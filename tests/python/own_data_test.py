"""Data that Python gives to a run: arrays, pairs, datasets of its own, and names for them."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import lacuna as lc

RNG = np.random.default_rng(0)
X = RNG.random((60, 6, 4), dtype=np.float32)
Y = (X[:, 0, 0] * 3).astype(np.int64)
CONFIG = {
    "model": ["flatten", {"type": "linear", "out_features": 8}, "relu", {"type": "linear"}],
    "optimizer": {"type": "adam", "lr": 0.01},
    "train": {"steps": 6, "batch_size": 20, "threads": 1, "checkpoint": {"every": 3}},
}


class Mine(lc.Dataset):
    def __init__(self, count=60, x=X, y=Y):
        super().__init__()
        self.count, self.x, self.y = count, x, y
        self.threads = set()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.threads.add(threading.get_ident())
        return self.x[index], self.y[index]


def weights(run):
    return {p.name: p.to_numpy() for p in lc.load(run, last=True).parameters()}


def assert_same(run, other):
    mine, others = weights(run), weights(other)
    for name, values in mine.items():
        np.testing.assert_array_equal(values, others[name], err_msg=name)


def test_a_class_of_ones_own_is_a_dataset():
    data = Mine()
    assert (len(data), data.example_shape, data.num_classes, data.num_outputs) == (60, (6, 4), 3, 0)
    batches = list(lc.Loader(data, batch_size=25, shuffle=False))
    np.testing.assert_array_equal(np.concatenate([x for x, _ in batches]), X)
    np.testing.assert_array_equal(np.concatenate([y for _, y in batches]), Y)
    assert data.threads == {threading.get_ident()}
    named = Mine()
    named.class_names = ["a", "b", "c", "d"]
    assert named.num_classes == 4 and named.class_names == ["a", "b", "c", "d"]
    numbers = Mine(y=Y.astype(np.float32)[:, None] * [[1, 2]])
    assert (numbers.num_classes, numbers.num_outputs) == (0, 2)
    bytes_ = Mine(x=(X * 255).astype(np.uint8))
    (batch, _), *_ = lc.Loader(bytes_, batch_size=60, shuffle=False)
    np.testing.assert_allclose(batch, np.floor(X * 255) / 255, rtol=1e-6)
    model = lc.Model([lc.Flatten(), lc.Linear(24, 3)])
    assert model.evaluate(Mine())["examples"] == 60


def test_a_loader_keeps_the_object_of_its_dataset():
    loader = lc.Loader(Mine(), batch_size=30)
    assert sum(len(y) for _, y in loader) == 60


def test_all_forms_of_data_train_the_same_run(tmp_path):
    forms = {
        "pair": (X, Y),
        "arrays": lc.ArrayDataset(X, Y),
        "own": Mine(),
        "list": list(zip(X, Y)),
        "generator": ((x, y) for x, y in zip(X, Y)),
        "splits": {"train": (X, Y), "validation": None},
    }
    for name, data in forms.items():
        run = lc.train(CONFIG, run_dir=tmp_path / name, data=data)
        assert run.state == "finished"
        assert_same(run, tmp_path / "pair")
    assert forms["own"].threads == {threading.get_ident()}
    assert run.config["data"]["type"] == "python"


def test_the_section_data_says_what_becomes_of_the_examples(tmp_path):
    section = {"validation": 0.2, "test": 10, "normalize": "standard"}
    plan = lc.plan({**CONFIG, "data": section}, data=(X, Y))
    assert plan.steps == 6
    run = lc.train({**CONFIG, "data": section}, run_dir=tmp_path / "run", data=(X, Y))
    assert "validation_accuracy" in run.summary and "test_accuracy" in run.summary
    splits = lc.evaluate(run, data=(X, Y))
    assert splits["validation"]["examples"] == 12 and splits["test"]["examples"] == 10
    model = lc.load(run)
    assert model.predict(X).shape == (60, 3)
    (tmp_path / "c.yaml").write_text("model: [flatten, linear]\noptimizer: {type: sgd, lr: 0.1}\n")
    by_file = lc.train(
        tmp_path / "c.yaml", run_dir=tmp_path / "f", set={"train.steps": 2}, data=(X, Y)
    )
    assert by_file.state == "finished"


def test_a_run_goes_on_with_the_data_that_it_began_with(tmp_path):
    whole = lc.train(CONFIG, run_dir=tmp_path / "whole", data=Mine())
    run = lc.train(CONFIG, run_dir=tmp_path / "parts", data=Mine(), on_step=lambda s, *_: s < 3)
    with pytest.raises(lc.ConfigError, match="given by a Python program") as raised:
        run.resume()
    assert raised.value.key == "data.type" and raised.value.line > 0
    with pytest.raises(lc.CheckpointError, match="other training inputs"):
        run.resume(data=(X + 1, Y))
    assert run.resume(data=Mine()).state == "finished"
    assert_same(run, whole)
    pruned = lc.prune(
        run, run_dir=tmp_path / "pruned", sparsity=0.5, method="magnitude", data=Mine()
    )
    assert pruned.resume(data=Mine()).state == "finished"
    with pytest.raises(lc.ConfigError, match="Python program"):
        lc.evaluate(run)


def test_mistakes_in_data_are_named(tmp_path):
    class NoLength(lc.Dataset):
        pass

    class NoItems(lc.Dataset):
        def __len__(self):
            return 3

    class Fails(NoItems):
        def __getitem__(self, index):
            raise OSError("no disk")

    class NoPair(NoItems):
        def __getitem__(self, index):
            return X[index]

    class Ragged(NoItems):
        def __getitem__(self, index):
            return X[index][: index + 1], index % 2

    class Mixed(NoItems):
        def __getitem__(self, index):
            return X[index], index if index < 2 else 0.5

    class Texts(NoItems):
        def __getitem__(self, index):
            return "text", 0

    class Beyond(Mine):
        num_classes = 2

    class Early(lc.Dataset):
        def __init__(self):
            self.x = 3

    class Negative(NoItems):
        def __getitem__(self, index):
            return X[index], -(index % 2)

    for kind, error, message in (
        (NoLength, TypeError, "NoLength.*__len__"),
        (NoItems, TypeError, "NoItems.*__getitem__"),
        (Fails, OSError, "no disk"),
        (NoPair, TypeError, "example 0 of 'NoPair'.*pair"),
        (Ragged, lc.DataError, r"example \d of 'Ragged'.*shape"),
        (Mixed, lc.DataError, "example 2 of 'Mixed'.*kind"),
        (Texts, TypeError, "example 0 of 'Texts'.*numbers"),
        (Beyond, lc.DataError, "of 'Beyond' has class 2"),
        (Negative, lc.DataError, "example 1 of 'Negative' has class -1"),
    ):
        with pytest.raises(error, match=message):
            lc.train(CONFIG, run_dir=tmp_path / kind.__name__, data=kind())
        assert not (tmp_path / kind.__name__ / "checkpoints").exists()
        with pytest.raises(error):
            list(lc.Loader(kind(), batch_size=3))
    with pytest.raises(TypeError, match="__init__"):
        Early()
    with pytest.raises(TypeError, match="a dataset"):
        lc.Loader(X)
    for wrong in (X, "text", 3, {"train": 3}, {"tran": (X, Y)}, {}, [(1, 2, 3)], [1]):
        with pytest.raises((TypeError, lc.Error)):
            lc.train(CONFIG, run_dir=tmp_path / "wrong", data=wrong)
    with pytest.raises(lc.DataError, match="empty"):
        lc.train(CONFIG, run_dir=tmp_path / "wrong", data=[])
    with pytest.raises(lc.ShapeError, match="differ"):
        lc.as_dataset([(X[0], 1), (X[0][:2], 1)])
    with pytest.raises(lc.ConfigError, match="glyphs") as raised:
        lc.train({**CONFIG, "data": {"type": "glyphs"}}, run_dir=tmp_path / "two", data=(X, Y))
    assert raised.value.key == "data.type"
    with pytest.raises(lc.ConfigError, match="validatoin"):
        lc.plan({**CONFIG, "data": {"validatoin": 3}}, data=(X, Y))
    with pytest.raises(AttributeError, match="defines its own classes"):
        lc.ArrayDataset(X, Y).num_classes = 7
    assert not (tmp_path / "wrong").exists()


def test_other_datasets_are_taken_as_they_are():
    class Foreign:
        classes = ["no", "yes", "maybe"]

        def __len__(self):
            return 60

        def __getitem__(self, index):
            return X[index], Y[index]

    data = lc.as_dataset(Foreign())
    assert data.class_names == ["no", "yes", "maybe"] and len(data) == 60
    torch = pytest.importorskip("torch")
    tensors = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    (x, y), *_ = lc.Loader(lc.as_dataset(tensors), batch_size=60, shuffle=False)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)


MODULE = """
import numpy as np
import lacuna as lc

@lc.register("halves_of_test")
class Halves(lc.sparse.Dynamic):
    def update_mask(self, p, mask, sparsity):
        return p.grow_random(p.keep(mask, p.magnitudes, p.target_nnz // 2), self.rng(p), p.target_nnz)

@lc.register("stripes_of_test")
class Stripes(lc.Dataset):
    def __init__(self, count=40, split="train"):
        super().__init__()
        self.count = count if split == "train" else 10

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return np.full((3, 3), index % 2, np.float32), index % 2

@lc.register("pairs_of_test", kind="data")
def pairs(count):
    x = np.arange(count * 4, dtype=np.float32).reshape(count, 4)
    return {"train": (x, np.arange(count) % 2), "test": (x, np.arange(count) % 2)}

@lc.register("falling_of_test")
def falling(step):
    return 0.1 * 0.9**step

CONFIG = {
    "data": {"type": "stripes_of_test", "count": 30},
    "model": ["flatten", {"type": "linear", "out_features": 6}, "relu", "linear"],
    "optimizer": {"type": "sgd", "lr": {"type": "falling_of_test"}},
    "sparsity": {"algorithm": "halves_of_test", "sparsity": 0.5, "update": {"freq": 2}},
    "train": {"steps": 4, "batch_size": 10, "threads": 1},
}
"""
SCRIPT = MODULE + """
if __name__ == "__main__":
    runs = lc.sweep(CONFIG, {"sparsity.sparsity": [0.5, 0.8]}, run_dir="sweep", jobs=2)
    print(len(runs))
"""


def run_script(text, folder, *arguments):
    (folder / "script.py").write_text(text)
    return subprocess.run(
        [sys.executable, *(arguments or ["script.py"])],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_names_of_a_script_are_known_to_a_sweep(tmp_path):
    ended = run_script(SCRIPT, tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "2\n"), ended.stderr
    unguarded = SCRIPT.replace('if __name__ == "__main__":', "if True:").replace('"sweep"', '"two"')
    ended = run_script(unguarded, tmp_path)
    assert ended.returncode == 1 and "__name__" in ended.stderr
    without_file = ["-c", SCRIPT.replace('"sweep"', '"three"')]
    ended = run_script("", tmp_path, *without_file)
    assert ended.returncode == 1 and "registered without a file" in ended.stderr


def test_names_of_a_module_are_known_to_the_program_and_to_sweeps(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "names_of_test.py").write_text(MODULE)
    main = """
import lacuna as lc
from package import names_of_test as names
if __name__ == "__main__":
    lc.sweep(names.CONFIG, {"sparsity.sparsity": [0.5]}, run_dir="sweep")
    run = lc.train(names.CONFIG, run_dir="here")
    (swept,) = __import__("pathlib").Path("sweep").glob("*/summary.json")
    print(run.summary["test_loss"] == lc.Run(swept.parent).summary["test_loss"])
"""
    ended = run_script(main, tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr
    config = "data: {type: pairs_of_test, count: 20}\nmodel: [linear]\noptimizer: {type: sgd, lr: 0.01}\n"
    (tmp_path / "c.yaml").write_text(config + "train: {steps: 2, batch_size: 10}\n")
    program = ["-m", "lacuna", "--import", "package.names_of_test"]
    ended = run_script("", tmp_path, *program, "train", "c.yaml", "--run-dir", "by_program", "--quiet")
    assert ended.returncode == 0, ended.stderr
    assert lc.Run(tmp_path / "by_program").summary["steps"] == 2
    ended = run_script("", tmp_path, "-m", "lacuna", "--import", "no_such_module", "list")
    assert ended.returncode == 2 and "no_such_module" in ended.stderr


def test_registering_says_what_it_takes():
    with pytest.raises(TypeError, match="name"):
        lc.register(Mine)
    with pytest.raises(ValueError, match="kind"):
        lc.register("x_of_test", kind="optimizer")
    with pytest.raises(TypeError, match="not schedule"):
        lc.register("x_of_test", kind="schedule")(Mine)
    with pytest.raises(TypeError, match="callable|class or a function"):
        lc.register("x_of_test")(3)
    lc.register("once_of_test")(Mine)
    with pytest.raises(lc.StateError, match="as data"):
        lc.register("once_of_test")(lambda step: 1.0)
    with pytest.raises(lc.StateError, match="mnist"):
        lc.register("mnist")(Mine)


def test_images_may_lack_the_added_channel(tmp_path):
    x = RNG.integers(0, 256, (12, 8, 8)).astype(np.uint8)
    y = np.arange(12) % 3
    model = [{"type": "conv2d", "out_channels": 2, "kernel": 3}, "flatten", {"type": "linear", "out_features": 3}]
    config = {
        "data": {"add_channel": True},
        "model": model,
        "optimizer": {"type": "sgd", "lr": 0.1},
        "train": {"steps": 2, "batch_size": 4, "threads": 1},
    }
    run = lc.load(lc.train(config, run_dir=tmp_path / "run", data={"train": (x, y)}))
    outputs = run.predict(x[:, None])
    np.testing.assert_array_equal(run.predict(x), outputs)
    np.testing.assert_allclose(run.predict(x[0]), outputs[0], rtol=1e-6)
    assert run.evaluate(x, y) == run.evaluate(x[:, None], y)
    with pytest.raises(lc.DataError, match=r"shape \[4, 16\]"):
        run.predict(x.reshape(12, 4, 16))
