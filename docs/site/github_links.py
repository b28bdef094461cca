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


def joined(text):
    """The text with each link on one line: Doxygen loses a link whose text is broken, and what follows it."""
    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [re.sub(r"\[((?!\n\n)[^][])+\]\(", lambda m: re.sub(r"\s+", " ", m[0]), part) for part in parts[::2]]
    return "".join(parts)


def quoted(text):
    """Doxygen takes `…'…` for a quotation, unless the code stands between two backquotes."""
    return re.sub(r"`([^`]+)`", lambda m: f"``{m[1]}``" if "'" in m[1] else m[0], text)


def named(link):
    """The text of a link and its target; the target alone where they are equal."""
    target = re.sub(r"^(\.\./)+", "", link[2])
    return f"`{target}`" if link[1].strip("`") == target else f"{link[1]} (`{target}`)"


def page(path):
    in_code = False
    seen = {}
    for line in joined(pathlib.Path(path).read_text(encoding="utf-8")).split("\n"):
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
        line = quoted(line)
        line = re.sub(r"\*\*(`[^`]+`(?:, `[^`]+`)*)\*\*", r"<b>\1</b>", line)
        line = re.sub(r"!\[([^]]*)\]\((?:\.\./)+", r"![\1](docs/", line)
        # Doxygen shows backquotes in the text of a link.
        line = re.sub(r"\[(`[^`]+`(?:, `[^`]+`)*)\]\(", lambda m: f"[{m[1].replace('`', '')}](", line)
        link = r"\]\(([\w./-]+\.md)?#([\w-]+)\)"
        line = re.sub(link, lambda m: f"](#{label(m[1] or path, m[2])})", line)
        # A target that is not a page is shown as a name.
        yield re.sub(r"(?<!!)\[([^]]+)\]\((?!https?:|#)([^)#]*?)(?<!\.md)\)", named, line)


def main():
    print("\n".join(page(sys.argv[1])))


if __name__ == "__main__":
    main()
