"""docs/reference/python.md is what the docstrings say."""

import importlib.util
import os
import pathlib

SOURCE = pathlib.Path(os.environ["LACUNA_SOURCE_DIR"])


def test_the_reference_is_that_of_the_module():
    spec = importlib.util.spec_from_file_location("reference", SOURCE / "scripts/python_reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), (
        "the page is old: run scripts/python_reference.py"
    )
