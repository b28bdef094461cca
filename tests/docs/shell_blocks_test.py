"""Runs the shell blocks of README.md, CONTRIBUTING.md and docs/, each document from its beginning in a folder of its own.

Every line of a block is run, but for those that shell_blocks.NOT_RUN lists with a reason; a new block is run too.
Configurations are those of the repository, cut to a few steps, and data sets are tiny. A document may use runs and files
that it does not make: those of RUNS and FILES, and YAML files whose text it shows ("prune.yaml contains:"). Words in
capitals (RUN, CONFIG, …) are filled in.

usage: shell_blocks_test.py LACUNA SOURCE FOLDER
"""
import os
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import shell_blocks

DENSE = "lacuna train configs/quickstart.yaml --set sparsity=null"
# Runs that documents begin with, and how they are made.
RUNS = {
    "quickstart": "lacuna train configs/quickstart.yaml",
    "x": "lacuna train configs/quickstart.yaml --set data.validation=0.1 --set train.early_stopping.patience=1",
    "dense": DENSE,
    "trained": DENSE,
    "masked": "lacuna train configs/quickstart.yaml --set 'sparsity={algorithm: structured, to: {flops: 0.5}}'",
    "sparse": "lacuna train norms.yaml",
    "gpt": "lacuna train gpt.yaml",
}
NORMS = """
data: {type: csv, train: numbers.csv, validation: 0.2, normalize: standard}
model: [{type: linear, out_features: 32}, relu, layer_norm, {type: linear, out_features: 32}, relu, linear]
optimizer: {type: adam, lr: 0.003}
sparsity: 0.5
train: {epochs: 2, batch_size: 16}
"""
GPT = """
data: {type: text, path: data/text/tinyshakespeare.txt, tokenizer: characters, context: 16}
model: {type: gpt2, n_layer: 1, n_head: 2, n_embd: 16, n_positions: 16}
optimizer: {type: adam, lr: 0.001}
train: {steps: 2, batch_size: 4}
"""
# Words that a reader replaces. `--run-dir` and `--out` get a new path instead.
FILLED_IN = {
    "RUN": "runs/dense", "CHECKPOINT": "runs/dense", "FILE": "weights.safetensors", "S": "0.5", "M": "magnitude",
    "PATH_TO_MNIST": "data/mnist", "PATH_TO_CIFAR10": "data/cifar10",
    "A_TEXT_FILE": "data/text/tinyshakespeare.txt",
}
# CONFIG, by the command that reads it.
CONFIG = {"prune": "half.yaml", "shrink": "fewer.yaml", "quantize": "int8_weights.yaml", "import": "gpt.yaml"}
FILES = {
    "norms.yaml": NORMS,
    "gpt.yaml": GPT,
    "half.yaml": "sparsity: {algorithm: wanda, sparsity: 0.5}\n",
    "fewer.yaml": "shrink: {method: magnitude, to: {flops: 0.5}}\n",
    "int8_weights.yaml": "quantize: {algorithm: nearest}\n",
}


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def make_data(place):
    """The files that the shipped configurations name, with few examples, and tables."""
    draw = random.Random(1)
    for split, count in ("train", 160), ("t10k", 40):
        write(f"{place}/data/mnist/{split}-images-idx3-ubyte",
              struct.pack(">IIII", 0x803, count, 28, 28) + draw.randbytes(count * 784))
        write(f"{place}/data/mnist/{split}-labels-idx1-ubyte",
              struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        write(f"{place}/data/cifar10/{name}.bin", b"".join(bytes([i % 10]) + draw.randbytes(3072) for i in range(12)))
    lines = ["ROMEO:", "But soft, what light through yonder window breaks?", "It is the east, and Juliet is the sun."]
    write(f"{place}/data/text/tinyshakespeare.txt", "".join(draw.choice(lines) + "\n" for _ in range(100)))
    rows = [[draw.random() for _ in range(8)] for _ in range(700)]
    table = ["a,b,c,d,e,f,g,h,kind"] + [",".join(f"{x:.3f}" for x in row) + f",{int(sum(row) > 4)}" for row in rows]
    write(f"{place}/numbers.csv", "\n".join(table) + "\n")
    write(f"{place}/test.csv", "\n".join(table[:20]) + "\n")


class Place:
    """Where everything runs: `begin` holds what the folder of each document begins with."""

    def __init__(self, lacuna, source, folder):
        shutil.rmtree(folder, ignore_errors=True)
        self.source, self.folder, self.begin = source, folder, os.path.join(folder, "begin")
        self.sweeps = shell_blocks.commands_of_sweeps(source)
        os.makedirs(os.path.join(folder, "bin"))
        os.symlink(lacuna, os.path.join(folder, "bin", "lacuna"))
        os.makedirs(os.path.join(folder, "home/.config/fish/completions"))
        os.makedirs(os.path.join(folder, "tmp"))
        self.environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
                            "HOME": os.path.join(folder, "home")}
        for root, _, names in os.walk(os.path.join(source, "configs")):
            for name in names:
                with open(os.path.join(root, name), encoding="utf-8") as file:
                    text = file.read()
                write(os.path.join(self.begin, os.path.relpath(root, source), name), shell_blocks.short_config(text))
        make_data(self.begin)
        for name, text in FILES.items():
            write(os.path.join(self.begin, name), text)
        shutil.copy(os.path.join(source, "tests/golden/models/resnet20_cifar10.safetensors"),
                    os.path.join(self.begin, "resnet20.safetensors"))
        for name, command in RUNS.items():
            self.run(self.begin, f"{command} --quiet --run-dir runs/{name}")
        self.run(self.begin, "lacuna export runs/gpt --format hf --out tuned_folder\n"
                             "lacuna export runs/gpt --format safetensors --out weights.safetensors")

    def run(self, place, script):
        ended = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=place, env=self.environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=200)
        assert ended.returncode == 0, f"{script}\nended with {ended.returncode}:\n{ended.stdout}"
        return ended.stdout


class Document:
    """The blocks of one document, run in their order."""

    def __init__(self, place, path):
        self.place, self.path = place, path
        self.blocks = shell_blocks.blocks_of(os.path.join(place.source, path))
        self.files = shell_blocks.named_files(self.blocks)
        self.folder = os.path.join(place.folder, re.sub(r"\W", "_", path[:-len(".md")]))
        self.new_paths = 0
        self.ran, self.left_out, self.printed = [], [], ""

    def run(self):
        """Returns an error, or None."""
        for block in self.blocks:
            if block.language != "sh":
                continue
            if not os.path.exists(self.folder):
                os.makedirs(os.path.join(self.folder, "new"))
                for name in os.listdir(self.place.begin):
                    if name != "runs":
                        os.symlink(os.path.join(self.place.begin, name), os.path.join(self.folder, name))
            try:
                script = self.script_of(block)
                self.printed += self.place.run(self.folder, script)
            except AssertionError as error:
                return f"{self.path}:{block.line}: {error}"
        return None

    def script_of(self, block):
        script, written = [], set()
        reasons = shell_blocks.reasons_not_to_run(block.text, self.place.sweeps)
        for line, reason in zip(shell_blocks.logical_lines(block.text), reasons):
            if reason:
                self.left_out.append((block.line, line.strip(), reason))
                continue
            if line.startswith("lacuna "):
                line = self.filled_in(line)
                words = shlex.split(line, comments=True)
                self.provide(words, written)
                written.add(shell_blocks.written_by(words))
            written.update(re.findall(r"> ?([\w./]+)", line))
            for pattern, text in shell_blocks.LIMITS:
                line = re.sub(pattern, text, line)
            if line.strip() and not line.startswith("#"):
                self.ran.append(line)
            script.append(line.replace("/tmp/", os.path.join(self.place.folder, "tmp") + "/"))
        return "\n".join(script)

    def filled_in(self, line):
        line = shell_blocks.shortest_synopsis(line)
        command = line.split()[1]
        fillings = {**FILLED_IN, "CONFIG": CONFIG.get(command, "configs/quickstart.yaml")}

        def path_to_write(match):
            self.new_paths += "--resume" not in line  # what is resumed was written by the line before
            return f"{match[1]} new/{self.new_paths}"

        line = re.sub(r"(--run-dir|--out) ([A-Z]+)\b(?![.\w])", path_to_write, line)
        return re.sub(r"(?<![\w'\"-])([A-Z][A-Z0-9_]*)\b(?![\w:=.])",
                      lambda match: fillings.get(match[1], match[1]), line)

    def provide(self, words, written):
        """Puts there what the command reads and no command before makes."""
        writes = shell_blocks.written_by(words) if "--resume" not in words else None
        for word in words[2:]:
            word = word.split("=")[-1]
            target = os.path.join(self.folder, word)
            if word == writes or word in written or os.path.exists(target):
                continue
            if word.startswith("runs/"):
                assert word[5:] in RUNS, f"no command before makes {word}, nor is it in RUNS of this test"
                shutil.copytree(os.path.join(self.place.begin, word), target)
            elif re.fullmatch(r"\w+\.yaml", word):
                assert word in self.files, f"no paragraph before a block of YAML says that it is {word}"
                write(target, self.text_of(word, words))

    def text_of(self, name, words):
        """What the document shows; a part of a training's configuration is added to that of the run it begins with."""
        text = self.files[name]
        if words[1] != "train" or re.search("^data:", text, re.MULTILINE):
            return shell_blocks.short_config(text)
        run = words[words.index("--init-from") + 1]
        with open(os.path.join(self.folder, run, "config.yaml"), encoding="utf-8") as file:
            return file.read() + shell_blocks.short_config(text)


def check_tour(tour):
    for name in ("report.html", "mlp.safetensors", "runs/sweep/report.html", "runs/pruned/prune.json"):
        assert os.path.getsize(os.path.join(tour.folder, name)) > 0, name
    with open(os.path.join(tour.folder, "answers.csv"), encoding="utf-8") as file:
        answers = file.read().splitlines()
    assert answers[0] == "class,p_large,p_small", answers
    assert [answer.split(",")[0] for answer in answers[1:]] == ["large", "small"], answers
    assert "\n".join(answers) in tour.printed


def main():
    lacuna, source, folder = (os.path.abspath(path) for path in sys.argv[1:])
    place = Place(lacuna, source, folder)
    documents = {path: Document(place, path) for path in shell_blocks.documents(source)}
    # Most of the time passes in starting and ending programs, so two documents at a time.
    with ThreadPoolExecutor(2) as pool:
        wrong = [error for error in pool.map(Document.run, documents.values()) if error]
    for path, document in documents.items():
        if document.ran or document.left_out:
            print(f"{path}: {len(document.ran)} lines run")
        for line, text, reason in document.left_out:
            print(f"  not run: {text} (line {line}): {reason}")
    assert not wrong, "\n\n".join(wrong)
    check_tour(documents["docs/guides/tour.md"])
    reasons = {reason for document in documents.values() for _, _, reason in document.left_out}
    assert reasons == {shell_blocks.OF_A_SWEEP} | {reason for _, reason in shell_blocks.NOT_RUN}, reasons
    assert sum(len(document.ran) for document in documents.values()) > 80


main()
