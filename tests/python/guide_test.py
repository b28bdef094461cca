"""The code of docs/guides/python.md runs, block after block."""

import os
import pathlib
import re
import subprocess
import sys

import lacuna as lc

GUIDE = pathlib.Path(os.environ["LACUNA_SOURCE_DIR"]) / "docs" / "guides" / "python.md"


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_guide_runs(tmp_path):
    code = blocks(GUIDE.read_text())
    assert len(code) >= 7
    program = "\n".join(code)
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert ended.stderr == ""
    assert lc.Run(tmp_path / "runs" / "b").config["train"]["epochs"] == 4
