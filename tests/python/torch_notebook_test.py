"""The notebook that needs PyTorch runs."""

from notebooks_test import check


def test_notebook(tmp_path):
    check("pytorch.ipynb", tmp_path)
