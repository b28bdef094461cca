"""Shrunk models, evaluated by the ONNX standard's text, give the outputs that they give here."""

import os
import subprocess
import sys

import numpy as np
import pytest
from shrunk_runs import assert_close, bert_outputs, pictures, shrunk_bert, shrunk_resnet, tokens

import lacuna as lc

onnx = pytest.importorskip("onnx")
EVALUATE = os.path.join(
    os.environ["LACUNA_SOURCE_DIR"], "tests", "framework", "onnx", "evaluate.py"
)


def evaluated(path, inputs, folder):
    """The outputs of an ONNX file for named arrays."""
    assert {i.name for i in onnx.load(path).graph.input} == set(inputs)
    arguments = []
    for name, array in inputs.items():
        array.tofile(folder / f"{name}.bin")
        dims = "x".join(str(size) for size in array.shape)
        arguments.append(f"{name}:{array.dtype}:{dims}:{folder / name}.bin")
    command = [sys.executable, EVALUATE, str(path), str(folder / "outputs.bin")]
    ended = subprocess.run(command + arguments, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return np.fromfile(folder / "outputs.bin", np.float32).reshape(
        [int(size) for size in ended.stdout.split("x")]
    )


def test_a_shrunk_resnet_gives_the_same_by_the_standards_text(tmp_path):
    run = shrunk_resnet(tmp_path)
    lc.export(run, "onnx", tmp_path / "small.onnx")
    x = pictures(4)
    found = evaluated(tmp_path / "small.onnx", {"input": x}, tmp_path)
    assert_close(found, lc.load(run).predict(x))


def test_a_shrunk_bert_gives_the_same_by_the_standards_text(tmp_path):
    run = shrunk_bert(tmp_path)
    lc.export(run, "onnx", tmp_path / "small.onnx")
    model = lc.load(run)
    inputs = tokens(6, 9, model["bert.embeddings.word_embeddings.weight"].shape[0])
    found = evaluated(tmp_path / "small.onnx", inputs, tmp_path)
    assert_close(found, bert_outputs(model, inputs))
