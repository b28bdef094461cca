#!/usr/bin/env python3
"""clang takes every source of the library, with the warnings that g++ is given, and without precompiled headers.

usage: clang_test.py BUILD_FOLDER CLANG

Only the syntax is checked, and of kernels one instruction set. The commands are those of compile_commands.json, without
what only g++ knows. Kernels of a folder are checked as one source, but for int8's, whose sources stand for instruction
sets.
"""
import collections
import concurrent.futures
import json
import pathlib
import re
import shlex
import subprocess
import sys

UNKNOWN = ("--param", "-Wno-subobject-linkage", "-Wno-restrict", "-Wno-stringop", "-Wno-maybe", "-Winvalid-pch", "-O")


def is_of_library(entry):
    return " -o CMakeFiles/lacuna_" in entry["command"] and "precompiled" not in entry["file"]


def command(entry, clang):
    """The words of a command that reads a source from its standard input."""
    words = shlex.split(re.sub(r"-include \S+cmake_pch\.hxx|-o \S+", "", entry["command"]))[1:]
    # In a source of several rooms or kernels, a name in a function may be one of another's.
    more = ["-Wno-shadow"] if "Unity" in entry["file"] or is_kernel(entry) else []
    if is_kernel(entry):
        more += ["-DHWY_COMPILE_ONLY_STATIC"]  # one instruction set: all take three times as long
    words = [word for word in words if not word.startswith(UNKNOWN) and word not in ("-c", entry["file"])]
    return (clang, *words, *more, "-fsyntax-only", "-x", "c++", "-")


def is_kernel(entry):
    return "/kernels/" in entry["file"]


def sources_by_command(entries, clang):
    found = collections.defaultdict(list)
    for entry in entries:
        file = pathlib.Path(entry["file"])
        together = file.parent if is_kernel(entry) and file.parent.name != "int8" else file
        found[(together, entry["directory"], command(entry, clang))].append(entry["file"])
    return found


def check(key, files):
    _, directory, words = key
    done = subprocess.run(words, input="".join(f'#include "{file}"\n' for file in files), cwd=directory,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")
    return "" if done.returncode == 0 else f"{files}:\n{done.stdout[:4000]}"


def main():
    folder, clang = pathlib.Path(sys.argv[1]), sys.argv[2]
    entries = [entry for entry in json.loads((folder / "compile_commands.json").read_text()) if is_of_library(entry)]
    if len(entries) < 20:
        sys.exit(f"{folder}: only {len(entries)} sources of the library are compiled there")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = [text for text in pool.map(check, *zip(*sources_by_command(entries, clang).items())) if text]
    sys.exit("\n".join(found) if found else 0)


main()
