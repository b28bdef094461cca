#!/usr/bin/env python3
"""Doxygen's filter for Markdown: headings get the anchors that GitHub gives them, links with anchors lead to these.

usage: github_links.py FILE   prints the page as Doxygen reads it
"""
import pathlib
import re
import sys


def slug(heading):
    """The anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def label(path, anchor):
    return f"{pathlib.PurePosixPath(path).stem}-{anchor}".lower().replace(".", "-")


def page(path):
    in_code = False
    seen = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8").split("\n"):
        if line.lstrip().startswith("```"):
            in_code = not in_code
            yield re.sub(r"```(yaml|json|text|sh|diff)\b", "```", line)
            continue
        if in_code:
            yield line
            continue
        if line == "# Documentation":  # Doxygen takes the README of the project for the main page
            line += " {#documentation}"
        heading = re.match(r"(##+) (.*)", line)
        if heading:
            anchor = slug(heading[2])
            number = seen.get(anchor, 0)
            seen[anchor] = number + 1
            if number:
                anchor += f"-{number}"
            yield f"{line} {{#{label(path, anchor)}}}"
            continue
        line = re.sub(r"\*\*(`[^`]+`)\*\*", r"<b>\1</b>", line)
        link = r"\]\(([\w./-]+\.md)?#([\w-]+)\)"
        line = re.sub(link, lambda m: f"](#{label(m[1] or path, m[2])})", line)
        # What is no page stays a name.
        yield re.sub(r"(?<!!)\[([^]]+)\]\((?!https?:|#)([^)#]*?)(?<!\.md)\)", r"\1 (`\2`)", line)


def main():
    print("\n".join(page(sys.argv[1])))


if __name__ == "__main__":
    main()
