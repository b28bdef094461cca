"""Holds the lines that README.md shows of the quickstart's training against those that this training prints.

Times, speeds and memory must have the same form. Accuracy and loss depend on the order of the sums, which differs
between instruction sets: 98.55 % and 0.0520 (avx512), 98.62 % and 0.0567 (avx2), 98.62 % and 0.0560 (sse4, baseline),
98.58 % and 0.0599 (reference), on an AMD Zen 5. All else must be equal.

usage: quickstart_lines_test.py LACUNA SOURCE FOLDER
"""
import os
import re
import shutil
import subprocess
import sys

NUMBER = r"[\d.,]+(?:e[+-]\d+)?"
TIME = rf"(?:[\d:]+:\d\d|{NUMBER} m?s)"
# What the machine and its load decide, and the word that stands for it in a comparison.
MEASURED = [
    (rf"{TIME} of training, {TIME} per step, {TIME} per epoch, {NUMBER} examples/s", "TIMES"),
    (rf"memory at most {NUMBER} [kMG]B", "MEMORY"),
    (rf"{NUMBER} times (?:faster|slower) than dense", "SPEED"),
    (rf"\({TIME} per step, dense {TIME}, (?:measured|predicted)\)", "STEPS"),
]
# Values that depend on the instruction set, and how far they may be from those of README.md: several times the
# differences that were measured. The bytes of csr depend on the mask, which RigL chooses by gradients: 548 or 549 kB.
NEAR = [
    (rf"(?<=test accuracy )({NUMBER})(?= %)", 0.25),
    (rf"(?<=loss )({NUMBER})", 0.015),
    (rf"({NUMBER})(?= kB of values)", 5.0),
    (rf"({NUMBER})(?= times larger)", 0.05),
]


def lines_of_readme(source):
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        blocks = re.findall(r"^```text\n(last .*?)^```", file.read(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1, blocks
    return blocks[0].splitlines()


def command_of_script(source):
    """The line of scripts/quickstart.sh that trains."""
    with open(os.path.join(source, "scripts/quickstart.sh"), encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if line.startswith('"$build/lacuna" train ')]
    assert len(lines) == 1, lines
    return lines[0]


def form(line):
    for pattern, word in MEASURED + [(pattern, "NEAR") for pattern, _ in NEAR]:
        line = re.sub(pattern, word, line)
    return line


def differences(shown, printed):
    """What README shows differently, as texts."""
    found = [f"README.md shows\n  {old}\nbut the program prints\n  {new}"
             for old, new in zip(shown, printed) if form(old) != form(new)]
    for pattern, tolerance in NEAR:
        old, new = (float(re.search(pattern, "\n".join(lines))[1]) for lines in (shown, printed))
        if abs(old - new) > tolerance:
            found.append(f"README.md shows {old}, but the program prints {new} ({pattern})")
    return found


def main():
    lacuna, source, folder = (os.path.abspath(path) for path in sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.symlink(os.path.join(source, "configs"), os.path.join(folder, "configs"))
    # One thread gives the same numbers. `layout: auto` measures on this machine how weights are stored, and bytes
    # depend on it; csr is what it takes at 90 % sparsity on a machine that nothing disturbs.
    script = (f"build=$(dirname '{lacuna}'); run=runs/quickstart; set -- --threads 1 --set sparsity.layout=csr\n"
              + command_of_script(source))
    ended = subprocess.run(["bash", "-e", "-c", script], cwd=folder, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    assert ended.returncode == 0, ended.stdout
    shown = lines_of_readme(source)
    printed = ended.stdout.splitlines()[-len(shown):]
    print("\n".join(printed))
    wrong = differences(shown, printed)
    assert not wrong, "\n".join(wrong)
    # Each part of the lines is compared: a changed number, unit or word is found.
    for old, new in ("26,520", "26,521"), ("549 kB", "560 kB"), ("9.54", "9.55"), ("examples/s", "images/s"), (
            "98.55", "97.55"), ("0.05202", "0.5202"), ("step 1,570", "step 1,571"), ("runs/quickstart", "runs/start"):
        text = "\n".join(shown)
        assert old in text, old
        assert differences(text.replace(old, new).splitlines(), shown), old


main()
