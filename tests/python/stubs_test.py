"""The stubs are what the module has: names, bases, and the names of arguments."""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lacuna
from lacuna import _lacuna

PACKAGE = Path(os.environ["LACUNA_SOURCE_DIR"]) / "python" / "lacuna"
SPECIAL = {
    "__init__",
    "__call__",
    "__getitem__",
    "__array__",
    "__len__",
    "__iter__",
    "__enter__",
    "__exit__",
    "__float__",
    "__dlpack__",
    "__dlpack_device__",
    "__getattr__",
    "__add__",
    "__radd__",
    "__sub__",
    "__rsub__",
    "__mul__",
    "__rmul__",
    "__matmul__",
    "__rmatmul__",
    "__neg__",
    "__truediv__",
}


def stubs():
    body = ast.parse((PACKAGE / "_lacuna.pyi").read_text()).body
    functions = {n.name: n for n in body if isinstance(n, ast.FunctionDef)}
    classes = {n.name: n for n in body if isinstance(n, ast.ClassDef)}
    return functions, classes


def arguments_of_stub(function):
    a = function.args
    names = [one.arg for one in a.posonlyargs + a.args]
    names += ["*args"] if a.vararg else []
    names += [one.arg for one in a.kwonlyargs]
    return names + (["**kwargs"] if a.kwarg else [])


def arguments_of_doc(doc, name):
    """The arguments in the first line that pybind11 writes."""
    line = doc.split("\n")[0]
    inside = re.match(rf"{re.escape(name)}\((.*)\) -> ", line).group(1)
    depth, parts, part = 0, [], ""
    for c in inside:
        depth += c in "[({"
        depth -= c in "])}"
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    names = [re.split(r"[:=]", p)[0].strip() for p in parts + [part] if p.strip()]
    return [name for name in names if name != "*"]


def compare(stub, function, where):
    doc = function.__doc__
    if "Overloaded function" in doc:
        return
    assert arguments_of_stub(stub) == arguments_of_doc(doc, stub.name), where


def test_functions_have_the_arguments_of_their_stubs():
    functions, _ = stubs()
    found = {n for n, f in vars(_lacuna).items() if inspect.isbuiltin(f)}
    assert set(functions) == found
    for name in found:
        compare(functions[name], getattr(_lacuna, name), name)


def test_classes_have_the_members_of_their_stubs():
    _, classes = stubs()
    found = {
        n for n, c in vars(_lacuna).items() if isinstance(c, type) and not n.startswith("_")
    }
    assert {n for n in classes if not n.startswith("_")} == found
    for name, stub in classes.items():
        if name.startswith("_"):
            continue
        cls = getattr(_lacuna, name)
        bases = [b.id for b in stub.bases]
        theirs = [b.__name__ for b in cls.__bases__ if b.__name__ != "pybind11_object"]
        assert bases == theirs, name
        if issubclass(cls, Exception):
            continue
        members, properties = {}, set()
        for node in stub.body:
            if isinstance(node, ast.FunctionDef):
                is_property = any(
                    isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list
                )
                properties.add(node.name) if is_property else members.update({node.name: node})
            elif isinstance(node, ast.AnnAssign):
                properties.add(node.target.id)
        own = vars(cls)
        public = {n for n in own if not n.startswith("_") or n in SPECIAL}
        if "__init__" in own and "__init__" not in members:
            public.discard("__init__")  # a base's arguments, or none: it is made by others
        named = set(members) | properties
        assert {n for n in named if not n.startswith("_") or n in SPECIAL} == public - {"__init__"} | (
            named & {"__init__"}
        ), name
        for member, node in members.items():
            compare(node, own[member], f"{name}.{member}")


def test_everything_has_a_docstring():
    for name in lacuna.__all__:
        thing = getattr(lacuna, name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            text = (inspect.getdoc(thing) or "").replace("\n", " ")
            assert len(text) > 5, name


@pytest.mark.skipif(shutil.which("mypy") is None, reason="mypy is not installed")
def test_the_package_passes_mypy(tmp_path):
    run = subprocess.run(
        ["mypy", "--strict", "--cache-dir", str(tmp_path), str(PACKAGE)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stdout + run.stderr
