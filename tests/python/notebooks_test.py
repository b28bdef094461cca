"""The notebooks run, and what they hold is what is stored: outputs and pictures, no paths, no times."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(os.environ["LACUNA_SOURCE_DIR"]) / "examples" / "notebooks"


def texts(notebook):
    """What the cells print and return, as text."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream" and output["name"] == "stdout":
                yield "".join(output["text"])
            for kind, data in output.get("data", {}).items():
                if kind != "image/png":
                    yield re.sub(r"base64,[^\"]*", "", "".join(data))


def run(name, folder):
    """Executes a notebook; fails with its error."""
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute"]
    ended = subprocess.run(
        command + [str(FOLDER / name), "--output-dir", str(folder), "--output", name],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_WAIT_POLICY": "passive", "JUPYTER_PLATFORM_DIRS": "1"},
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads((folder / name).read_text())


def check(name, tmp_path):
    stored = json.loads((FOLDER / name).read_text())
    kinds = [
        kind
        for cell in stored["cells"]
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
    ]
    assert "image/png" in kinds
    for text in texts(stored):
        assert not re.search(r"/(tmp|home|root|work)/|\d+ ?m?s\b|\d\d:\d\d", text), text
    run_now = run(name, tmp_path)
    assert [cell["source"] for cell in run_now["cells"]] == [
        cell["source"] for cell in stored["cells"]
    ]
    assert len(list(texts(run_now))) == len(list(texts(stored)))


@pytest.mark.parametrize("name", ["first_steps.ipynb", "own_algorithm.ipynb"])
def test_notebook(name, tmp_path):
    check(name, tmp_path)


def test_every_notebook_is_run():
    assert {path.name for path in FOLDER.glob("*.ipynb")} == {
        "first_steps.ipynb", "own_algorithm.ipynb", "pytorch.ipynb",
    }
