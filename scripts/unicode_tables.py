#!/usr/bin/env python3
"""Writes framework/text/unicode_categories.cpp and unicode_letters.cpp from Python's own tables of
Unicode. Usage, in the root of the project: scripts/unicode_tables.py && clang-format -i on both."""
import argparse
import sys
import unicodedata

CODES = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF]
VERSION = unicodedata.unidata_version
HEAD = f"""#include "lacuna/framework/text/unicode.hpp"

// Written by scripts/unicode_tables.py from Unicode {VERSION}; change it there.
namespace lacuna::unicode {{

"""


def ranges(belongs):
    found = []
    for code in CODES:
        if not belongs(code):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def category(code):
    return unicodedata.category(chr(code))


def write_ranges(out, name, belongs):
    rows = ", ".join(f"{{{first:#x}, {last:#x}}}" for first, last in ranges(belongs))
    out.write(f"const std::vector<CodeRange>& {name}() {{\n"
              f"  static const std::vector<CodeRange> table = {{{rows}}};\n  return table;\n}}\n\n")


def lower_runs():
    """[first, last, step, difference] of the capitals whose small letter is one code point."""
    runs = []
    for code in CODES:
        small = chr(code).lower()
        if len(small) != 1 or ord(small) == code:
            continue
        difference = ord(small) - code
        if runs and runs[-1][3] == difference:
            run = runs[-1]
            step = code - run[1]
            if step <= 2 and (run[0] == run[1] or run[2] == step):
                run[1], run[2] = code, step
                continue
        runs.append([code, code, 1, difference])
    return runs


def bases():
    """Code points that decompose, and what of them is no accent: one code point, or several."""
    one, several = [], []
    for code in CODES:
        decomposed = unicodedata.normalize("NFD", chr(code))
        is_left_out = 0xAC00 <= code <= 0xD7A3 or 0xF900 <= code <= 0xFAFF or code >= 0x2F800
        if decomposed == chr(code) or is_left_out:
            continue
        base = [ord(c) for c in decomposed if unicodedata.category(c) != "Mn"]
        (one if len(base) == 1 else several).append((code, base))
    return one, several


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with open("framework/text/unicode_categories.cpp", "w", encoding="ascii") as out:
        out.write(HEAD)
        write_ranges(out, "letters", lambda c: category(c).startswith("L"))
        write_ranges(out, "numbers", lambda c: category(c).startswith("N"))
        write_ranges(out, "punctuation", lambda c: category(c).startswith("P"))
        write_ranges(out, "accents", lambda c: category(c) == "Mn")
        write_ranges(out, "controls", lambda c: category(c) in ("Cc", "Cf"))
        out.write("}  // namespace lacuna::unicode\n")
    one, several = bases()
    with open("framework/text/unicode_letters.cpp", "w", encoding="ascii") as out:
        out.write(HEAD)
        rows = ", ".join(f"{{{a:#x}, {b:#x}, {s}, {d}}}" for a, b, s, d in lower_runs())
        out.write("const std::vector<CaseRun>& capitals() {\n"
                  f"  static const std::vector<CaseRun> table = {{{rows}}};\n  return table;\n}}\n\n")
        rows = ", ".join(f"{{{c:#x}, {b[0]:#x}}}" for c, b in one)
        out.write("const std::vector<CodeRange>& bases() {\n"
                  f"  static const std::vector<CodeRange> table = {{{rows}}};\n  return table;\n}}\n\n")
        rows = ", ".join("{%#x, {%s}}" % (c, ", ".join("%#x" % x for x in b)) for c, b in several)
        out.write("const std::vector<LongBase>& long_bases() {\n"
                  f"  static const std::vector<LongBase> table = {{{rows}}};\n  return table;\n}}\n\n")
        out.write("}  // namespace lacuna::unicode\n")


if __name__ == "__main__":
    main()
