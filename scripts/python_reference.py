#!/usr/bin/env python3
"""Writes docs/reference/python.md from the docstrings of the Python module, which must be importable.

usage: PYTHONPATH=build/release/python scripts/python_reference.py [FILE]
A test holds the page against the module.
"""
import inspect
import pathlib
import re
import sys

import lacuna

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/reference/python.md"

HEAD = """# Python reference

<!-- Made by scripts/python_reference.py from the docstrings. -->

What `import lacuna as lc` holds. The [guide](../guides/python.md) shows how the parts go together.
"""

# Headings with what stands under them; everything else that is public follows under the last one.
RUNS = ("train plan load evaluate prune compare sweep export import_ from_torch "
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


def members(cls):
    """Public functions and properties that a class defines or has from a base of lacuna's."""
    found = {}
    for base in reversed(inspect.getmro(cls)):
        if not base.__module__.startswith("lacuna"):
            continue
        for name, member in vars(base).items():
            if not name.startswith("_") and member.__doc__:
                found[name] = member
    return found


def is_bound(initial):
    """Whether it is a function in C++ with arguments of its own."""
    return initial is not None and (initial.__doc__ or "").startswith("__init__(")


def write_class(cls, name, out):
    out.append(f"### {name}\n\n{documentation(cls)}\n")
    initial = vars(cls).get("__init__")
    if inspect.isfunction(initial) or is_bound(initial):
        called = signature(initial, "__init__").replace("__init__", name, 1)
        text = documentation(initial) if initial.__doc__ else ""
        out.append(f"```python\n{called}\n```\n" + (f"\n{text}\n" if text else ""))
    for member_name, member in members(cls).items():
        if isinstance(member, property):
            out.append(f"- `{member_name}`: {flat(member)}")
        elif callable(member) or isinstance(member, (staticmethod, classmethod)):
            called = signature(getattr(member, "__func__", member), member_name)
            out.append(f"- `{called}`: {flat(member)}")
    out.append("")


def flat(thing):
    return re.sub(r"\s+", " ", documentation(thing))


def write(name, thing, out):
    if inspect.isclass(thing):
        write_class(thing, name, out)
    elif callable(thing):
        out.append(f"### {name}\n\n```python\n{signature(thing, name)}\n```\n\n{documentation(thing)}\n")


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
    out = [HEAD]
    for title, names in groups:
        out.append(f"## {title}\n")
        for name in names:
            write(name, public[name], out)
    out.append(f"## lacuna.nn\n\n{documentation(lacuna.nn)}\n")
    for name in ("Module", "Sequential", "ModuleList"):
        write("nn." + name, getattr(lacuna.nn, name), out)
    out.append(f"## lacuna.sparse\n\n{documentation(lacuna.sparse)}\n")
    for name in sorted(dir(lacuna.sparse), key=str.lower):
        thing = getattr(lacuna.sparse, name)
        if name.startswith("_") or not getattr(thing, "__module__", "").startswith("lacuna"):
            continue
        write("sparse." + name, thing, out)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    target.write_text(page(), encoding="utf-8")
