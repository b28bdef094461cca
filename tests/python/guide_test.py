"""The code of docs/guides/python.md and of the README runs, block after block."""

import os
import pathlib
import re
import subprocess
import sys

import lacuna as lc

SOURCE = pathlib.Path(os.environ["LACUNA_SOURCE_DIR"])


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run(code, folder):
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(code)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert ended.stderr == ""
    return ended.stdout


def test_the_guide_runs(tmp_path):
    code = blocks((SOURCE / "docs" / "guides" / "python.md").read_text())
    assert len(code) >= 7
    run(code, tmp_path)
    assert lc.Run(tmp_path / "runs" / "b").config["train"]["epochs"] == 4


def test_the_readme_runs(tmp_path):
    (code,) = blocks((SOURCE / "README.md").read_text())
    (tmp_path / "configs").symlink_to(SOURCE / "configs")
    accuracy, density, values, mask = run([code], tmp_path).split(" ", 3)[:4]
    assert float(accuracy) > 0.95
    assert abs(float(density) - 0.05) < 0.01
