"""Configurations trained, runs resumed, looked at, used, pruned, compared, swept, in and out."""

import json
import os
import pathlib
import subprocess
import sys

import lacuna as lc
import numpy
import pytest
from tiny_run import TINY

TINY_YAML = """
data: {type: glyphs, train_size: 100, test_size: 30, validation: 10}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 12}
  - relu
  - {type: linear, name: fc2, out_features: 10}
optimizer: {type: adam, lr: 0.01}
sparsity: {algorithm: set, sparsity: 0.5, layout: csr, update: {freq: 3}}
train: {steps: 12, batch_size: 8, threads: 1, log_every: 3, eval_every: 4, checkpoint: {every: 4}}
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A finished run of the tiny configuration."""
    return lc.train(TINY, run_dir=tmp_path_factory.mktemp("runs") / "tiny")


def weights(run):
    model = lc.load(run, last=True)
    return {p.name: (p.to_numpy(), p.mask) for p in model.parameters()}


def assert_same(run, other):
    mine, others = weights(run), weights(other)
    assert mine.keys() == others.keys()
    for name, (values, mask) in mine.items():
        assert numpy.array_equal(values, others[name][0]), name
        assert numpy.array_equal(mask, others[name][1]), name


def test_a_dict_a_file_and_text_train_the_same_run(tiny, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("mlp.yaml").write_text(TINY_YAML)
    by_file = lc.train("mlp.yaml")
    assert pathlib.Path(by_file.run_dir) == pathlib.Path("runs/mlp")
    by_path = lc.train(pathlib.Path("mlp.yaml"), run_dir=pathlib.Path("by_path"))
    by_text = lc.train(TINY_YAML, run_dir="by_text")
    for run in (by_file, by_path, by_text):
        assert run.state == "finished"
        assert_same(run, tiny)
    assert capfd.readouterr() == ("", "")  # nothing is printed unless it is asked for


def test_set_changes_values_of_the_configuration(tmp_path):
    run = lc.train(
        TINY,
        run_dir=tmp_path / "run",
        set={"sparsity.sparsity": 0.9, "train.steps": 4, "optimizer.lr": numpy.float64(0.5)},
    )
    assert run.config["sparsity"]["sparsity"] == 0.9
    assert run.config["optimizer"]["lr"] == 0.5
    assert run.summary["steps"] == 4
    assert TINY["sparsity"]["sparsity"] == 0.5  # the dict stays as it was
    assert run.load()["fc1.weight"].density == pytest.approx(0.1, abs=0.01)


def test_the_program_trains_the_same_run(tiny, tmp_path):
    (tmp_path / "mlp.yaml").write_text(TINY_YAML)
    command = [os.environ["LACUNA_PROGRAM"], "train", "mlp.yaml", "--run-dir", "run", "--quiet"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert_same(tmp_path / "run", tiny)


def test_python_runs_the_program_s_commands(tiny):
    command = [sys.executable, "-m", "lacuna", "eval", tiny.run_dir, "--json"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    splits = {entry["split"]: entry for entry in json.loads(ended.stdout)["splits"]}
    assert splits["test"]["loss"] == tiny.evaluate()["test"]["loss"]
    wrong = subprocess.run([sys.executable, "-m", "lacuna", "trian"], capture_output=True)
    assert wrong.returncode == 2


def test_a_plan_has_records_and_refuses_mistakes():
    plan = lc.plan(TINY)
    assert plan.steps == 12
    layer = next(row for row in plan.layers if row["path"] == "fc1")
    assert layer["final_nnz"] < layer["parameters"]
    weight = next(row for row in plan.parameters if row["parameter"] == "fc1.weight")
    assert weight["update_steps"] == [3, 6, 9, 12]
    assert "12 steps" in str(plan) and "fc1.weight" in str(plan)
    assert "<table>" in plan._repr_html_() and "fc1.weight" in plan._repr_html_()
    with pytest.raises(lc.ConfigError, match="sparsty"):
        lc.plan({**TINY, "sparsty": 0.5})
    with pytest.raises(lc.ConfigError) as caught:
        lc.plan(TINY_YAML.replace("out_features: 12", "out_featurs: 12"))
    assert caught.value.line == 5
    assert "out_featurs" in caught.value.key


def test_steps_are_seen_with_metrics(tmp_path):
    seen = []
    lc.train(TINY, run_dir=tmp_path / "run", on_step=lambda *step: seen.append(step))
    assert [step for step, _, _ in seen] == list(range(1, 13))
    assert all(numpy.isfinite(loss) for _, loss, _ in seen)
    assert seen[0][2] == {}
    last = seen[-1][2]
    assert last["test"]["step"] == 8 and last["train"]["step"] == 9
    assert 0 <= last["validation"]["accuracy"] <= 1


def test_false_stops_after_a_checkpoint_and_a_resumed_run_is_the_same(tiny, tmp_path):
    run = lc.train(TINY, run_dir=tmp_path / "run", on_step=lambda step, *_: step < 7)
    assert run.state == "stopped" and run.summary is None
    assert lc.load(run, last=True).step == 7
    resumed = lc.train(run_dir=run, resume=True)
    assert resumed.state == "finished"
    assert_same(resumed, tiny)


def test_an_exception_in_a_callback_ends_the_run_as_it_is(tmp_path):
    def fail(step, loss, metrics):
        if step == 6:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        lc.train(TINY, run_dir=tmp_path / "run", on_step=fail)
    assert lc.load(tmp_path / "run", last=True).step == 4
    assert lc.Run(tmp_path / "run").resume().state == "finished"


def test_a_run_that_stopped_early_says_so_when_it_is_opened_again(tmp_path):
    train = {**TINY["train"], "steps": 200, "early_stopping": {"patience": 2}}
    config = {**TINY, "optimizer": {"type": "sgd", "lr": 1e-9}, "train": train}
    run = lc.train(config, run_dir=tmp_path / "run")
    assert run.state == lc.Run(tmp_path / "run").state == "stopped early"


def test_metrics_are_columns(tiny):
    metrics = tiny.metrics
    assert metrics["train"]["step"].tolist() == [3, 6, 9, 12]
    assert metrics["test"]["step"].tolist() == [4, 8, 12]
    assert metrics["test"]["accuracy"].dtype == numpy.float64
    assert set(metrics["update"]["parameter"]) == {"fc1.weight"}
    assert tiny.summary["test_loss"] == metrics["test"]["loss"][-1]


def test_a_resumed_run_may_change_its_optimizer(tiny, tmp_path):
    run = lc.train(TINY, run_dir=tmp_path / "run", set={"train.steps": 6})
    with pytest.raises(lc.ConfigError, match="optimizer.lr"):
        run.resume(set={"optimizer.lr": 1e-4, "train.steps": 12})
    resumed = run.resume(change={"optimizer.lr": 1e-4}, set={"train.steps": 12})
    assert resumed.metrics["train"]["lr"][-1] == pytest.approx(1e-4)
    assert "optimizer.lr" in (tmp_path / "run" / "changes.jsonl").read_text()
    with pytest.raises(lc.ConfigError, match="nothing to change"):
        lc.train(TINY, run_dir=tmp_path / "new", change={"optimizer.lr": 1})


def test_an_opened_run_predicts(tiny):
    model = lc.load(tiny)
    assert model.step == 12
    assert model.config["train"]["batch_size"] == 8
    shape = model.example_shape
    bytes_ = numpy.arange(3 * numpy.prod(shape)).reshape(3, *shape).astype(numpy.uint8)
    outputs = model.predict(bytes_)
    assert outputs.shape == (3, 10) and outputs.dtype == numpy.float32
    # Images as floats are what ToTensor makes of bytes.
    floats = bytes_.astype(numpy.float32) / 255
    assert numpy.allclose(model(floats), outputs, rtol=1e-4, atol=1e-5)
    one = model.predict(bytes_[0])
    assert one.shape == (10,) and numpy.allclose(one, outputs[0], rtol=1e-5, atol=1e-6)
    assert numpy.array_equal(model.predict(bytes_[:, ::-1][:, ::-1]), outputs)  # any strides
    many = model.predict(numpy.concatenate([bytes_] * 200))
    assert numpy.allclose(many[-3:], outputs, rtol=1e-5, atol=1e-6)
    with pytest.raises(lc.DataError, match="trained on"):
        model.predict(numpy.zeros((2, 5), numpy.float32))


def test_values_written_in_an_opened_run_count(tiny):
    model = lc.load(tiny)
    x = numpy.ones((1, *model.example_shape), numpy.float32)
    bias = model["fc2.bias"]
    before = model.predict(x)
    bias.values[:] += 1
    assert numpy.allclose(model.predict(x), before + 1, atol=1e-5)


def test_runs_and_opened_runs_are_evaluated(tiny):
    splits = lc.evaluate(tiny)
    assert set(splits) == {"validation", "test"}
    assert splits["test"]["examples"] == 30
    assert splits["test"]["loss"] == tiny.summary["test_loss"]
    assert lc.evaluate(tiny.run_dir, set={"train.eval_batch_size": 7})["test"]["accuracy"] == (
        splits["test"]["accuracy"]
    )
    model = lc.load(tiny)
    x = numpy.random.default_rng(0).integers(0, 256, (20, *model.example_shape)).astype(numpy.uint8)
    y = model.predict(x).argmax(axis=1)
    result = model.evaluate(x, y)
    assert result["accuracy"] == 1 and result["examples"] == 20
    with pytest.raises(lc.DataError):
        model.evaluate(x, y[:3])
    with pytest.raises(lc.CheckpointError):
        lc.load("no such run")


def test_a_regression_predicts_in_the_targets_unit(tmp_path):
    rng = numpy.random.default_rng(3)
    x = rng.normal(size=(200, 3))
    y = 100 + 10 * x @ [1, 2, -1]
    table = numpy.column_stack([x, y])
    numpy.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,c,y", comments="")
    run = lc.train(
        {
            "data": {
                "type": "csv", "train": str(tmp_path / "t.csv"), "label_column": "y",
                "task": "regression", "normalize_targets": True, "test": 0.2,
            },
            "model": [{"type": "linear"}],
            "optimizer": {"type": "adam", "lr": 0.05},
            "train": {"steps": 400, "batch_size": 40, "threads": 1},
        },
        run_dir=tmp_path / "run",
    )
    model = run.load()
    predicted = model.predict(x.astype(numpy.float32))[:, 0]
    assert numpy.abs(predicted - y).max() < 2
    assert model.evaluate(x, y)["rmse"] < 2


def test_a_run_is_pruned_and_trained_on(tiny, tmp_path):
    dense = lc.train(TINY, run_dir=tmp_path / "dense", set={"sparsity": None})
    pruned = lc.prune(dense, run_dir=tmp_path / "pruned", sparsity=0.8, method="magnitude")
    assert {row["method"] for row in pruned.report["rows"]} == {"magnitude"}
    assert lc.load(pruned)["fc1.weight"].density == pytest.approx(0.2, abs=0.01)
    by_section = lc.prune(
        dense,
        {"sparsity": {"algorithm": "magnitude", "sparsity": 0.8}},
        run_dir=tmp_path / "section",
    )
    assert_same(pruned, by_section)
    mask = lc.load(pruned)["fc1.weight"].mask
    assert pruned.resume(set={"train.steps": 5}).state == "finished"
    assert numpy.array_equal(lc.load(pruned, last=True)["fc1.weight"].mask, mask)
    with pytest.raises(lc.ConfigError, match="method|algorithm"):
        lc.prune(dense, run_dir=tmp_path / "wrong", sparsity=0.8, method="no such method")
    assert not (tmp_path / "wrong").exists()


def test_a_run_is_shrunk_and_trained_on(tiny, tmp_path):
    dense = lc.train(TINY, run_dir=tmp_path / "dense", set={"sparsity": None})
    small = lc.shrink(dense, run_dir=tmp_path / "small", to={"flops": 0.5})
    assert small.report["method"] == "magnitude"
    assert small.report["costs"]["flops"]["part"] == pytest.approx(0.5)
    kept = small.report["rows"][0]["kept"]
    assert lc.load(small)["fc1.weight"].shape[0] == kept < lc.load(dense)["fc1.weight"].shape[0]
    by_section = lc.shrink(
        dense, {"shrink": {"to": {"flops": 0.5}}}, run_dir=tmp_path / "section"
    )
    assert_same(small, by_section)
    assert small.resume(set={"train.steps": 5}).state == "finished"
    with pytest.raises(lc.ConfigError, match="cannot be reached"):
        lc.shrink(dense, run_dir=tmp_path / "wrong", to={"parameters": 0.001})
    with pytest.raises(TypeError, match="one budget"):
        lc.shrink(dense, run_dir=tmp_path / "wrong", to={"flops": 0.5, "time": 0.5})
    assert not (tmp_path / "wrong").exists()


def test_a_run_is_quantized_and_used_in_int8(tiny, tmp_path):
    dense = lc.train(TINY, run_dir=tmp_path / "dense", set={"sparsity": None})
    section = {"quantize": {"param_filter": ["fc1.weight"]}}
    quantized = lc.quantize(dense, section, run_dir=tmp_path / "int8")
    assert [row["parameter"] for row in quantized.report["layers"]] == ["fc1.weight"]
    assert quantized.report["int8"]["bytes"] < quantized.report["float32"]["bytes"]
    x = numpy.random.default_rng(0).random((4, 28, 28), dtype=numpy.float32)
    expected = lc.load(dense).predict(x)
    difference = numpy.abs(lc.load(quantized).predict(x) - expected).max()
    assert 0 < difference < 0.1 * numpy.abs(expected).max()
    with pytest.raises(lc.CheckpointError, match="quantized already"):
        lc.quantize(quantized, run_dir=tmp_path / "again")
    with pytest.raises(lc.ConfigError, match="algorithm"):
        lc.quantize(dense, {"quantize": {"algoritm": "gptq"}}, run_dir=tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


def test_a_run_with_int8_weights_alone_computes_with_them_in_float32(tiny, tmp_path):
    dense = lc.train(TINY, run_dir=tmp_path / "dense", set={"sparsity": None})
    section = {
        "quantize": {
            "algorithm": "nearest",
            "activations": {"when": "none"},
            "param_filter": ["fc1.weight"],
        }
    }
    quantized = lc.quantize(dense, section, run_dir=tmp_path / "int8")
    (layer,) = quantized.report["layers"]
    assert layer["input_scale"] == 0 and "input_zero" not in layer
    x = numpy.random.default_rng(0).random((4, 28, 28), dtype=numpy.float32)
    outputs = lc.load(quantized).predict(x)
    expected = lc.load(dense).predict(x)
    difference = numpy.abs(outputs - expected).max()
    assert 0 < difference < 0.01 * numpy.abs(expected).max()
    file = tmp_path / "int8.safetensors"
    lc.export(quantized, "safetensors", file)
    back = lc.import_(file, TINY, run_dir=tmp_path / "back", set={"sparsity": None})
    assert numpy.array_equal(lc.load(back).predict(x), outputs)


def test_runs_are_compared(tiny, tmp_path):
    other = lc.train(TINY, run_dir=tmp_path / "other", set={"optimizer.lr": 0.1})
    rows = lc.compare(tiny, other)
    table = rows if isinstance(rows, list) else rows.to_dict("records")
    by_name = {row["run"]: row for row in table}
    assert {row["optimizer.lr"] for row in table} == {0.01, 0.1}
    assert by_name["other"]["loss"] == other.summary["test_loss"]
    assert len(lc.compare(tmp_path, by="step")) == 1
    with pytest.raises(lc.ConfigError):
        lc.compare(tiny, by="weight")


def test_compare_gives_a_data_frame_where_pandas_is(tiny):
    pandas = pytest.importorskip("pandas")
    frame = lc.compare(tiny)
    assert isinstance(frame, pandas.DataFrame)
    assert frame["loss"][0] == tiny.summary["test_loss"]


def test_a_sweep_trains_all_combinations(tmp_path):
    config = {**TINY, "train": {**TINY["train"], "steps": 4}}
    over = {"optimizer.lr": [0.1, 0.01]}
    runs = lc.sweep(config, over, run_dir=tmp_path / "sweep", seeds=2, jobs=2)
    assert len(runs) == 4
    again = lc.sweep(config, over, run_dir=tmp_path / "sweep", seeds=2)
    assert len(again) == 4
    with pytest.raises(lc.ConfigError):
        lc.sweep(config, {"optimizer.lr": [-1]}, run_dir=tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


def test_weights_go_out_and_come_in(tiny, tmp_path):
    lc.export(tiny, "npz", tmp_path / "out.npz", masks=True)
    arrays = numpy.load(tmp_path / "out.npz")
    model = lc.load(tiny)
    assert numpy.array_equal(arrays["fc1.weight"], model["fc1.weight"].to_numpy())
    assert numpy.array_equal(arrays["fc1.weight_mask"], model["fc1.weight"].mask)
    static = {"sparsity": {"algorithm": "static", "layout": "csr"}}
    by_file = lc.import_(tmp_path / "out.npz", {**TINY, **static}, run_dir=tmp_path / "by_file")
    by_dict = lc.import_(dict(arrays), {**TINY, **static}, run_dir=tmp_path / "by_dict")
    assert_same(by_file, tiny)
    assert_same(by_dict, tiny)
    with pytest.raises(lc.StateError):
        lc.export(tiny, "npz", tmp_path / "out.npz")
    with pytest.raises(lc.ConfigError, match="safetensors"):
        lc.export(tiny, "safetensor", tmp_path / "other")
    with pytest.raises(lc.Error, match="fc3.weight"):
        lc.import_({"fc3.weight": numpy.zeros((2, 2))}, TINY, run_dir=tmp_path / "wrong")


def test_runs_are_shown_in_notebooks(tiny):
    html = tiny._repr_html_()
    assert "finished" in html and "data:image/png;base64," in html and "fc1.weight" in html
    picture = lc.MaskPicture(lc.load(tiny)["fc1.weight"])
    assert picture.caption == "fc1.weight" and picture.density == pytest.approx(0.5, abs=0.01)
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert "base64" in picture._repr_html_()


def test_masks_are_drawn_as_they_are(tmp_path):
    mask = numpy.zeros((4, 6), bool)
    mask[1, 2:5] = True
    picture = lc.MaskPicture(mask)
    picture.save(tmp_path / "mask.png")
    pixels = pytest.importorskip("PIL.Image").open(tmp_path / "mask.png").convert("L")
    dark = numpy.asarray(pixels) < 128
    assert numpy.array_equal(dark, mask)
