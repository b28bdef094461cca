"""Holds every command line of the README and of docs/ that begins with `lacuna` against what the
program's --help says: the command, each option and whether it takes a value, how many arguments there are,
and that configurations of this repository that are named exist. Nothing is carried out.

usage: commands_test.py LACUNA SOURCE
"""
import glob
import os
import re
import shlex
import subprocess
import sys


class Command:
    """What `lacuna NAME --help` tells."""

    def __init__(self, lacuna, name):
        text = subprocess.run([lacuna, name, "--help"], capture_output=True, text=True).stdout
        usage = next(line for line in text.splitlines() if line.startswith("Usage:"))
        arguments = usage.split("[OPTIONS]")[1].split()
        self.most = 10**6 if "..." in usage else len(arguments)
        self.least = sum(not argument.startswith("[") for argument in arguments if argument != "...")
        self.takes_value = {}
        for line in text.splitlines():
            option = re.match(r"\s+((?:-\w,)?--?[\w-]+(?:,--[\w-]+)*)(?:\s(\S+))?", line)
            if option:
                for spelling in option[1].split(","):
                    rest = line[option.end(1):]
                    # A name of a value follows after one space, the description after several.
                    self.takes_value[spelling] = bool(re.match(r" (?!Excludes)\S", rest))


def logical_lines(text):
    """Lines of fenced and indented blocks, with those that end in a backslash joined."""
    fenced, joined, has_prompt = None, "", False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced, has_prompt = None if fenced is not None else line[3:].strip(), False
            continue
        has_prompt = has_prompt or line.startswith("$ ")
        if has_prompt and not line.startswith("$ "):
            continue  # what the command before has printed
        if fenced in ("sh", "", "bash", "console") or (fenced is None and line.startswith("    ")):
            joined += line.strip()
            if joined.endswith("\\"):
                joined = joined[:-1]
                continue
            yield number, joined
            joined = ""


def command_of(line):
    """The words after `lacuna`, or None where the line is none."""
    line = re.sub(r"^(\$|#)\s*", "", line)
    match = re.match(r"(?:[A-Z_]+=\S+ )*(?:\S*/)?lacuna (.+)", line)
    if not match or "…" in line:
        return None
    text = match[1]
    if "[--" in text:  # a synopsis
        text = text.replace("[", "").replace("]", "")
    words = shlex.split(text, comments=True)
    for stop in ("|", ">", "2>", "&&", "<"):
        if stop in words:
            words = words[:words.index(stop)]
    return words


def check(words, commands, source):
    if words[0] not in commands:
        return "there is no such command"
    command, arguments, rest = commands[words[0]], [], words[1:]
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            arguments.append(word)
            continue
        option, _, value = word.partition("=")
        if option not in command.takes_value:
            return f"there is no option {option}"
        if command.takes_value[option] and not value:
            if not rest:
                return f"{option} has no value"
            rest.pop(0)
    if not command.least <= len(arguments) <= command.most:
        return f"{len(arguments)} arguments, expected {command.least} to {command.most}"
    for argument in arguments:
        if argument.startswith("configs/") and not os.path.exists(os.path.join(source, argument)):
            return f"{argument} is not there"
    return None


def main():
    lacuna, source = sys.argv[1:]
    text = subprocess.run([lacuna, "--help"], capture_output=True, text=True).stdout
    names = re.findall(r"^  ([a-z]+) ", text[text.index("Subcommands:"):], re.MULTILINE)
    commands = {name: Command(lacuna, name) for name in names}
    assert "train" in commands and commands["train"].takes_value["--set"], text
    assert check(["train", "configs/quickstart.yaml", "--sett", "a=1"], commands, source)
    assert check(["train", "configs/none.yaml"], commands, source)
    assert check(["predict", "run"], commands, source)
    wrong, found = [], 0
    for path in [os.path.join(source, "README.md")] + sorted(glob.glob(source + "/docs/**/*.md", recursive=True)):
        for number, line in logical_lines(open(path, encoding="utf-8").read()):
            words = command_of(line)
            if not words:
                continue
            found += 1
            problem = check(words, commands, source)
            if problem:
                wrong.append(f"{os.path.relpath(path, source)}:{number}: {line}: {problem}")
    print(f"{found} commands")
    assert not wrong, "\n".join(wrong)
    assert found > 25, found


main()
