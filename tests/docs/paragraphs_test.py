"""Paragraphs and list items of the documents have at most five lines of at most 120 characters.

Tables, code, headings and the parts that scripts write between two comments are not counted. Of CHANGELOG, only what
precedes the first list is checked, and docs/reference/python.md is made from docstrings.

usage: paragraphs_test.py SOURCE
"""
import glob
import os
import re
import sys

MOST_LINES, MOST_CHARACTERS = 5, 120
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.) ")
NOT_TEXT = ("|", "#", "<!--")


def paragraphs(lines):
    """(number of the first line, lines) of each paragraph and list item."""
    found, is_fenced, is_generated, is_list, is_code = [], False, False, False, False
    is_open = False  # whether the line before belongs to a paragraph
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("```"):
            is_fenced, is_open = not is_fenced, False
            continue
        if text.startswith("<!--"):
            is_generated = text.startswith(("<!-- begin of", "<!-- table:"))
        if is_fenced or is_generated or not text or text.startswith(NOT_TEXT):
            is_open = is_code = False
            continue
        is_item = bool(ITEM.match(line))
        if not is_open:
            is_list = is_item or (is_list and line.startswith(" "))
            is_code = line.startswith("    ") and not is_list
        is_list = is_list or is_item
        if is_code:
            is_open = True
        elif is_item or not is_open:
            found.append((number, [line]))
            is_open = True
        else:
            found[-1][1].append(line)
    return found


def faults(name, lines):
    if name == "CHANGELOG.md":
        lines = lines[:next(i for i, line in enumerate(lines) if line.startswith("- "))]
    for number, paragraph in paragraphs(lines):
        if len(paragraph) > MOST_LINES:
            yield f"{name}:{number}: {len(paragraph)} lines, at most {MOST_LINES}: {paragraph[0].strip()}"
        for i, line in enumerate(paragraph):
            if len(line) > MOST_CHARACTERS:
                yield f"{name}:{number + i}: {len(line)} characters, at most {MOST_CHARACTERS}"


def check_the_check():
    long = ["line"] * (MOST_LINES + 1)
    assert len(list(faults("a.md", long))) == 1
    assert len(list(faults("a.md", ["- item"] + ["  line"] * MOST_LINES))) == 1
    assert len(list(faults("a.md", ["x" * (MOST_CHARACTERS + 1)]))) == 1
    assert len(list(faults("a.md", ["- item", ""] + ["    line"] * 6))) == 1  # a paragraph of the item
    for fine in (["- item"] * 6, ["    code"] * 6, ["```", *long, "```"], ["| cell |"] * 6, long[1:],
                 ["<!-- begin of a script -->", *long, "<!-- end of a script -->"], long[:3] + [""] + long[:3],
                 ["text:", ""] + ["    code"] * 6):
        assert not list(faults("a.md", fine)), fine


def main():
    source = sys.argv[1]
    check_the_check()
    names = [os.path.relpath(path, source) for path in sorted(glob.glob(glob.escape(source) + "/docs/**/*.md", recursive=True))]
    names = [name for name in names if name != "docs/reference/python.md"]
    assert len(names) > 20, names
    found = []
    for name in ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", *names]:
        with open(os.path.join(source, name), encoding="utf-8") as file:
            found += faults(name, file.read().splitlines())
    assert not found, "\n" + "\n".join(found)


main()
