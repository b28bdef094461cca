#!/usr/bin/env python3
"""Writes docs/reference/python.md from the docstrings of the Python module, which must be importable.

usage: PYTHONPATH=build/release/python scripts/python_reference.py [FILE]
A test compares the page with the module.
"""
import argparse
import inspect
import pathlib
import re

import lacuna

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/reference/python.md"

HEAD = """# Python reference

<!-- Made by scripts/python_reference.py from the docstrings. -->

The names of the package `lacuna` (`import lacuna as lc`). The [guide](../guides/python.md) shows how to use them
together. A configuration `config` is a dict, the name of a YAML file, or YAML text. `set` changes its keys: a dict with
dotted keys, `{"sparsity.sparsity": 0.9}`, or a list of texts, `["sparsity.sparsity=0.9"]`. A subclass does not list the
members of its base class again.
"""

# The names under each heading; every other public name follows under the last heading.
RUNS = ("train plan load evaluate prune shrink quantize compare sweep export import_ from_torch "
        "Run Plan LoadedRun MaskPicture").split()
DATA = "Dataset ArrayDataset as_dataset load_data Loader".split()
ERRORS = "Error ConfigError ShapeError DataError CheckpointError StateError MemoryError".split()


def signature(thing, name):
    """`name(arguments)`, as Python or, of functions in C++, their first line of documentation has it."""
    first = (thing.__doc__ or "").split("\n")[0]
    if re.match(rf"{re.escape(name.rsplit('.', 1)[-1])}\(", first):
        arguments = first[first.index("("):]
        arguments = re.sub(r"lacuna(\._lacuna|::python|)(\.|::)", "", arguments)
        arguments = re.sub(r"\(self: [^,)]*(, )?", "(", arguments)
        return name + re.sub(r" -> .*$", "", arguments)
    try:
        text = str(inspect.signature(thing))
    except (ValueError, TypeError):
        return name
    text = re.sub(r"\(self(, )?", "(", re.sub(r" -> .*$", "", text))
    return name + re.sub(r": '([^']*)'", r": \1", text)


def documentation(thing):
    """The docstring as paragraphs, without a signature in its first line."""
    text = inspect.cleandoc(thing.__doc__ or "")
    lines = text.split("\n")
    if re.match(r"\w+\(.*\)( -> .*)?$", lines[0]):
        lines = lines[1:]
    paragraphs = []
    for paragraph in re.split(r"\n{2,}", "\n".join(lines).strip("\n")):
        rows = paragraph.split("\n")
        if not all(row.startswith("    ") for row in rows):  # no code: arguments begin paragraphs
            paragraph = re.sub(r"\n(?=[a-z_]+: )", "\n\n", "\n".join(row.strip() for row in rows))
            paragraph = paragraph.replace("<", "\\<")
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def anchor(name):
    """A link to the heading of a name."""
    return f"[{name}](#{name.lower().replace('.', '')})"


def nearest_base(cls, headings):
    """The first base that has a heading of its own, or None."""
    return next((base for base in inspect.getmro(cls)[1:] if base in headings), None)


def members(cls, base_on_page):
    """Public functions and properties of a class, without those of a base that the page describes."""
    found = {}
    described = inspect.getmro(base_on_page) if base_on_page else ()
    for base in reversed(inspect.getmro(cls)):
        if not base.__module__.startswith("lacuna") or base in described:
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or not member.__doc__:
                continue
            if member.__doc__ != getattr(getattr(base_on_page, name, None), "__doc__", None):
                found[name] = member
    return found


def is_bound(initial):
    """Whether it is a function in C++ with arguments of its own."""
    return initial is not None and (initial.__doc__ or "").startswith("__init__(")


def write_class(cls, name, out, headings):
    out.append(f"### {name}\n\n{documentation(cls)}\n")
    initial = vars(cls).get("__init__")
    if inspect.isfunction(initial) or is_bound(initial):
        called = signature(initial, "__init__").replace("__init__", name, 1)
        text = documentation(initial) if initial.__doc__ else ""
        out.append(f"```python\n{called}\n```\n" + (f"\n{text}\n" if text else ""))
    base = nearest_base(cls, headings)
    if base:
        out.append(f"A subclass of {anchor(headings[base])}.\n")
    for member_name, member in members(cls, base).items():
        if isinstance(member, property):
            out.append(f"- `{member_name}`: {flat(member)}")
        elif callable(member) or isinstance(member, (staticmethod, classmethod)):
            called = signature(getattr(member, "__func__", member), member_name)
            out.append(f"- `{called}`: {flat(member)}")
    out.append("")


def flat(thing):
    return re.sub(r"\s+", " ", documentation(thing))


def headings_of(names):
    """The heading of each class and function: the first name that is its own, otherwise the first one."""
    headings = {}
    for name, thing in names:
        if inspect.isclass(thing) or inspect.isfunction(thing):
            own = thing.__name__
            if thing not in headings or own == name.rsplit(".", 1)[-1] != headings[thing].rsplit(".", 1)[-1]:
                headings[thing] = name
    return headings


def write(name, thing, out, headings):
    if (inspect.isclass(thing) or inspect.isfunction(thing)) and headings[thing] != name:
        out.append(f"### {name}\n\nAnother name of {anchor(headings[thing])}.\n")
    elif inspect.isclass(thing):
        write_class(thing, name, out, headings)
    elif callable(thing):
        out.append(f"### {name}\n\n```python\n{signature(thing, name)}\n```\n\n{documentation(thing)}\n")


def is_of_lacuna(thing):
    return getattr(thing, "__module__", "").startswith("lacuna")


def page():
    """The page's text."""
    public = {
        name: getattr(lacuna, name)
        for name in sorted(dir(lacuna), key=str.lower)
        if not name.startswith("_") and not inspect.ismodule(getattr(lacuna, name))
    }
    layers = [name for name in public if hasattr(lacuna.layers, name)]
    groups = [
        ("Runs", RUNS),
        ("Data", DATA),
        ("Errors", ERRORS),
        ("Layers", layers),
        ("Everything else", [name for name in public if name not in RUNS + DATA + ERRORS + layers]),
    ]
    of_nn = [("nn." + name, getattr(lacuna.nn, name)) for name in ("Module", "Sequential", "ModuleList")]
    of_sparse = [
        ("sparse." + name, getattr(lacuna.sparse, name))
        for name in sorted(dir(lacuna.sparse), key=str.lower)
        if not name.startswith("_")
    ]
    of_sparse = [(name, thing) for name, thing in of_sparse if is_of_lacuna(thing)]
    headings = headings_of([*public.items(), *of_nn, *of_sparse])
    out = [HEAD]
    for title, names in groups:
        out.append(f"## {title}\n")
        for name in names:
            write(name, public[name], out, headings)
    for module, parts in ((lacuna.nn, of_nn), (lacuna.sparse, of_sparse)):
        out.append(f"## {module.__name__}\n\n{documentation(module)}\n")
        for name, thing in parts:
            write(name, thing, out, headings)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?", default=PAGE, type=pathlib.Path, help="the file that is written")
    parser.parse_args().page.write_text(page(), encoding="utf-8")
