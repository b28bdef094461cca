#!/usr/bin/env python3
"""Writes the column "may include" of the table of rooms in docs/development/architecture.md: what each room includes.

A room may include only rooms of rows above its own; the script ends with an error if one includes a room below. Run it
after a change that needs a new dependency, and check the difference: each new dependency is a decision.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs/development/architecture.md"
INCLUDE = re.compile(r'^\s*#include ["<]lacuna/([^">]+)[">]', re.MULTILINE)


def room_of(path, rooms):
    folder = pathlib.PurePosixPath(path).parent
    while str(folder) != "." and str(folder) not in rooms:
        folder = folder.parent
    return str(folder)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    lines = TABLE.read_text(encoding="utf-8").split("\n")
    begin = next(i for i, line in enumerate(lines) if line.startswith("| room |"))
    end = next(i for i in range(begin, len(lines)) if not lines[i].startswith("|"))
    rows = [i for i in range(begin, end) if lines[i].startswith("| `")]
    rooms = [lines[i].split("`")[1] for i in rows]
    used = {room: set() for room in rooms}
    for top in ("framework", "layers", "optimizers", "sparsity"):
        for file in sorted((ROOT / top).rglob("*")):
            if not file.is_file():
                continue
            room = room_of(file.relative_to(ROOT).as_posix(), used)
            for path in INCLUDE.findall(file.read_text(encoding="utf-8", errors="replace")):
                other = room_of(path, used)
                if other == room or other == ".":
                    continue
                if rooms.index(other) > rooms.index(room):
                    sys.exit(f"{file.relative_to(ROOT)}: {room} includes {path}, a room of a row below")
                used[room].add(other)
    for i, room in zip(rows, rooms):
        cells = lines[i].split(" | ")
        arrows = ", ".join(f"`{other}`" for other in reversed(rooms) if other in used[room])
        lines[i] = " | ".join(cells[:-1] + [f"{arrows} |" if arrows else "|"])
    TABLE.write_text("\n".join(lines), encoding="utf-8")
    print(f"{len(rooms)} rooms, {sum(map(len, used.values()))} arrows")


if __name__ == "__main__":
    main()
