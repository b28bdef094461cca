#!/usr/bin/env python3
"""clang takes every source of the library, with the warnings that g++ is given, and without precompiled headers.

usage: clang_test.py BUILD_FOLDER CLANG

Only the syntax is checked, and of kernels one instruction set. The commands are those of compile_commands.json, without what only g++ knows.
"""
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
    words = shlex.split(re.sub(r"-include \S+cmake_pch\.hxx|-o \S+", "", entry["command"]))[1:]
    # In a source of several rooms, a name in a function may be one of another room's.
    more = ["-Wno-shadow"] if "Unity" in entry["file"] else []
    if "/kernels/" in entry["file"]:
        more += ["-DHWY_COMPILE_ONLY_STATIC"]  # one instruction set: all take three times as long
    return [clang, *(word for word in words if not word.startswith(UNKNOWN)), *more, "-fsyntax-only"]


def check(entry, clang):
    done = subprocess.run(command(entry, clang), cwd=entry["directory"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", errors="replace")
    return "" if done.returncode == 0 else f"{entry['file']}:\n{done.stdout[:4000]}"


def main():
    folder, clang = pathlib.Path(sys.argv[1]), sys.argv[2]
    entries = [entry for entry in json.loads((folder / "compile_commands.json").read_text()) if is_of_library(entry)]
    if len(entries) < 20:
        sys.exit(f"{folder}: only {len(entries)} sources of the library are compiled there")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = [text for text in pool.map(lambda entry: check(entry, clang), entries) if text]
    sys.exit("\n".join(found) if found else 0)


main()
