"""Runs the Python that docs/reference/checkpoint.md shows, as it stands, next to runs of the quickstart: one with
each layout, csr and masked, as which checkpoints hold weights. With SciPy, also the block on NumPy and SciPy of
docs/guides/interop.md, on exports of these runs.

usage: python_blocks_test.py LACUNA SOURCE FOLDER
"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys


def python_blocks(path):
    text = open(path, encoding="utf-8").read()
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run_numpy_block(lacuna, source, place):
    for file, form in ("weights.npz", "npz"), ("sparse.npz", "csr-npz"):
        subprocess.run([lacuna, "export", "runs/quickstart", "--format", form, "--out", file], cwd=place,
                       check=True, capture_output=True)
    block = [block for block in python_blocks(os.path.join(source, "docs/guides/interop.md"))
             if "scipy" in block]
    assert len(block) == 1, block
    inputs = "import numpy\ninputs = numpy.ones((2, 784), numpy.float32)\n"
    ended = subprocess.run([sys.executable, "-c", inputs + block[0]], cwd=place, capture_output=True, text=True)
    assert ended.returncode == 0, block[0] + ended.stderr
    assert "(300, 784) 0.1" in ended.stdout, ended.stdout
    assert os.path.exists(os.path.join(place, "mine.npz"))


def main():
    lacuna, source, folder = sys.argv[1:]
    blocks = python_blocks(os.path.join(source, "docs/reference/checkpoint.md"))
    assert len(blocks) == 3, len(blocks)
    for layout in "csr", "masked":
        place = os.path.join(folder, layout)
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        subprocess.run([lacuna, "train", os.path.join(source, "configs", "quickstart.yaml"), "--quiet",
                        "--set", "data.train_size=2000", "--set", "train.steps=100", "--set",
                        "data.test_size=100", "--set", "sparsity.update.stop=80",
                        "--set", "sparsity.layout=" + layout], cwd=place, check=True)
        outputs = []
        for block in blocks:
            ended = subprocess.run([sys.executable, "-c", block], cwd=place, capture_output=True,
                                   text=True)
            assert ended.returncode == 0, block + ended.stderr
            assert ended.stderr == "", ended.stderr
            outputs.append(ended.stdout)
        print("".join(outputs))
        assert outputs[0].startswith("100 "), outputs[0]
        # 90 % of 300 * 784 weights are zero, in either layout.
        assert "(300, 784) density 0.1" in outputs[0], outputs[0]
        assert "exp_avg_sq" in outputs[0], outputs[0]
        assert ("csr 23520 " in outputs[1]) == (layout == "csr"), outputs[1]
        if importlib.util.find_spec("scipy"):
            run_numpy_block(lacuna, source, place)


main()
