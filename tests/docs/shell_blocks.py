"""Reads the shell commands that documents show: which blocks hold them, which of their lines cannot be run in a test and
why, and how a line that a reader has to fill in becomes one that runs. Nothing is run here."""
import dataclasses
import os
import re

# Lines that cannot be run here: how they are recognized, and why. A line that matches none of these is run.
NOT_RUN = [
    (r"(?:\S*/)?(?:apt-get|pip3?|install_dependencies\.sh)\b", "installs packages"),
    (r"(?:cmake|ctest)\b", "builds lacuna, or runs its tests"),
    (r"(?:\S*python3 |sudo )?(?:\./)?scripts/",
     "a script of the repository, which builds, or trains and measures for minutes to hours"),
    (r"(?:mpirun|srun)\b|#SBATCH", "starts processes on several sockets or machines; framework/distributed tests them"),
    (r"python3 spectrograms\.py|lacuna predict runs/sounds\b",
     "needs NumPy, PIL and sounds; images_and_sounds_test.py runs the blocks of sounds.md"),
    (r"source <\(lacuna completion zsh\)", "for zsh"),
]
OF_A_SWEEP = "stands at the head of a configuration in configs/sweeps as well, of which shipped_sweeps_test.cpp runs it"
# Long work, and what stands for it here.
LIMITS = [
    (r"--seeds \d+", "--seeds 1"),
    (r"--random \d+", "--random 2"),
    (r"(--over \S+=[^\s,]+,[^\s,]+),\S+", r"\1"),
    (r"train\.seconds=\d+", "train.seconds=1"),
    (r"train\.steps=\d+", "train.steps=20"),
    (r"tokens: \d+", "tokens: 20"),
]
# Words that begin a command where a block without a language, by its indentation, holds commands.
COMMANDS = ("lacuna ", "mpirun ", "srun ", "scripts/", "./scripts/", "sudo scripts/", "#!/bin/bash")


@dataclasses.dataclass
class Block:
    line: int
    language: str
    before: str  # the paragraphs since the block or heading before it
    text: str


def blocks_of(path):
    """Fenced blocks and, as of language sh, indented ones that begin with a command."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    blocks, before, i = [], [], 0
    while i < len(lines):
        fence, begin = re.match(r" *```(\w*)$", lines[i]), i
        is_indented = lines[i].startswith("    ") and lines[i].strip().startswith(COMMANDS) and not lines[i - 1].strip()
        if fence:
            i += 1
            while lines[i].strip() != "```":
                i += 1
            text = lines[begin + 1:i]
        elif is_indented:
            while i + 1 < len(lines) and lines[i + 1].startswith("    "):
                i += 1
            text = lines[begin:i + 1]
        if fence or is_indented:
            indent = min((len(line) - len(line.lstrip()) for line in text if line.strip()), default=0)
            blocks.append(Block(begin + 1, fence[1] if fence else "sh", "\n".join(before),
                                "".join(line[indent:] + "\n" for line in text)))
            before = []
        else:
            before = [] if lines[i].startswith("#") else before + [lines[i]]
        i += 1
    return blocks


def documents(source):
    """Paths below the source folder."""
    found = ["README.md", "CONTRIBUTING.md"]
    for folder, _, names in os.walk(os.path.join(source, "docs")):
        found += [os.path.relpath(os.path.join(folder, name), source) for name in names if name.endswith(".md")]
    return sorted(found)


def logical_lines(text):
    """Lines with those that end in a backslash joined; a line of options in brackets goes on with a synopsis."""
    return re.sub(r"\n(?=\[--)", " ", re.sub(r" *\\\n\s*", " ", text)).splitlines()


def commands_of_sweeps(source):
    """The command lines at the head of the configurations in configs/sweeps."""
    folder, commands = os.path.join(source, "configs/sweeps"), set()
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            head = "".join(re.findall(r"^#   (.*\n)", file.read(), re.MULTILINE))
        commands.update(line for line in logical_lines(head) if line.startswith("lacuna "))
    return commands


def reasons_not_to_run(text, sweeps):
    """For each logical line of a block, a reason not to run it, or None. A script is run as a whole or not at all.
    sweeps: as commands_of_sweeps."""
    reasons = []
    for line in logical_lines(text):
        command = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", line.strip())
        found = next((reason for pattern, reason in NOT_RUN if re.match(pattern, command)), None)
        reasons.append(OF_A_SWEEP if line in sweeps else found)
    if text.startswith("#!"):
        reasons = [next((reason for reason in reasons if reason), None)] * len(reasons)
    return reasons


def named_files(blocks):
    """Text of the YAML files that the paragraphs before a block name, as in "prune.yaml contains:"."""
    return {name: block.text for block in blocks if block.language in ("yaml", "yml")
            for name in re.findall(r"\b(?<!/)(\w+\.yaml)\b", block.before)}


def shortest_synopsis(line):
    """Without what is optional, and with the first of each choice."""
    line = re.sub(r" \[--[^]]*\]", "", line)
    line = re.sub(r"(?<=\w)\.\.\.", "", line)
    return re.sub(r"(?<=\w)(?:\|[\w-]+)+", "", line)


def written_by(words):
    """Path that a command line of lacuna writes, or None."""
    for option in ("--run-dir", "--out"):
        if option in words:
            return words[words.index(option) + 1]
    config = next((word for word in words[2:] if word.endswith(".yaml")), None)
    if words[1] == "train" and config and "--resume" not in words:
        return "runs/" + os.path.splitext(os.path.basename(config))[0]
    return None


def short_config(text):
    """A configuration of the repository for a training of a few steps on little data."""
    text = re.sub(r"^( *)type: glyphs.*", r"\1type: glyphs\n\1train_size: 400\n\1test_size: 60", text, flags=re.M)
    text = re.sub(r"\{type: (\w*glyphs)(?:, train_size: \d+, test_size: \d+)?",
                  r"{type: \1, train_size: 400, test_size: 60", text)
    for key, value in ("epochs", 2), ("steps", 4), ("freq", 1), ("stop", 2), ("warmup", 1):
        text = re.sub(rf"\b{key}: \d+", f"{key}: {value}", text)
    return text
