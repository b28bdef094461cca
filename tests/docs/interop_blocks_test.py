"""Runs the Python of docs/guides/interop.md on PyTorch, Cerebras and Hugging Face as it stands, between the commands that
stand next to it. Needs PyTorch. Without the package safetensors a stand-in reads and writes its format; without
transformers the block on Hugging Face is not run.

usage: interop_blocks_test.py LACUNA SOURCE FOLDER
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

# A ResNet-20 with the names that published files use, and the quickstart's MLP with a mask as cstorch registers
# them. The documents leave both to the reader.
RESNET = """
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)
def stage(inputs, channels, stride):
    return nn.Sequential(Block(inputs, channels, stride), *(Block(channels, channels, 1) for _ in range(2)))
class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.layer1, self.layer2, self.layer3 = stage(16, 16, 1), stage(16, 32, 2), stage(32, 64, 2)
        self.linear = nn.Linear(64, 10)
"""
MASKED = """
import torch
from torch import nn
model = nn.Sequential()
for name, inputs, outputs in ("fc1", 784, 300), ("fc2", 300, 100), ("fc3", 100, 10):
    model.add_module(name, nn.Linear(inputs, outputs))
model.fc1.register_buffer("weight_mask", torch.ones(300, 784, dtype=torch.bool))
"""
CHECK_MASKED = """
assert ((model.fc1.weight != 0) == model.fc1.weight_mask).all()
print("density", model.fc1.weight_mask.float().mean().item())
"""
# What a training in PyTorch leaves behind: a state dictionary of DataParallel in a dictionary.
SAVE = RESNET + """
torch.manual_seed(0)
torch.save({"state_dict": {"module." + k: v for k, v in ResNet20().state_dict().items()}}, "resnet20.th")
"""


def blocks_of(source, title):
    text = open(os.path.join(source, "docs/guides/interop.md"), encoding="utf-8").read()
    section = re.search(rf"^## {title}\n(.*?)^## ", text, re.DOTALL | re.MULTILINE).group(1)
    return re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


class Place:
    """A folder, and what runs in it."""

    def __init__(self, folder, lacuna, source):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        self.folder, self.lacuna = folder, lacuna
        self.environment = dict(os.environ)
        if not importlib.util.find_spec("safetensors"):
            self.environment["PYTHONPATH"] = os.path.join(source, "tests/docs/stand_ins")

    def run(self, *command):
        ended = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert ended.returncode == 0, " ".join(command) + ended.stdout + ended.stderr
        return ended.stdout

    def python(self, code):
        return self.run(sys.executable, "-B", "-c", code)

    def command(self, *words):
        return self.run(self.lacuna, *words)


def run_pytorch(place, source):
    save, load = blocks_of(source, "PyTorch")
    place.python(SAVE)
    place.python(save)
    config = ("data: {type: colour_glyphs, train_size: 64, test_size: 16}\nmodel: {type: cifar_resnet, depth: 20}\n"
              "optimizer: {type: sgd, lr: 0.1}\ntrain: {steps: 1, batch_size: 8}\n")
    with open(os.path.join(place.folder, "resnet20.yaml"), "w", encoding="utf-8") as file:
        file.write(config)
    place.command("import", "resnet20.safetensors", "--config", "resnet20.yaml", "--out", "runs/resnet20")
    place.command("eval", "runs/resnet20")
    export = re.match(r"# lacuna (.*)\n", load).group(1).split()
    place.command(*export)
    printed = place.python(RESNET + load)
    assert "'layer3.2.conv2.weight': 0.0" in printed, printed
    same = place.python(RESNET + load + "\nfor k, v in torch.load('resnet20.th')['state_dict'].items():\n"
                        "    assert torch.equal(v, model.state_dict()[k.removeprefix('module.')]), k\n"
                        "print('the same')")
    assert same.endswith("the same\n"), same


def run_cerebras(place, source):
    block, = blocks_of(source, "Cerebras")
    settings = ("data.train_size=1000", "data.test_size=100", "train.steps=10",
                "sparsity={algorithm: static, sparsity: 0.9, param_filter: fc1.weight}")
    place.command("train", os.path.join(source, "configs/quickstart.yaml"), "--quiet", "--run-dir", "runs/masked",
                  *(word for setting in settings for word in ("--set", setting)))
    place.command("export", "runs/masked", "--format", "safetensors", "--masks", "--out", "for_cstorch.safetensors")
    printed = place.python(MASKED + block + CHECK_MASKED)
    assert printed.startswith("density 0.1"), printed


def run_hugging_face(place, source):
    block, = blocks_of(source, "Hugging Face")
    with open(os.path.join(place.folder, "letters.txt"), "w", encoding="utf-8") as file:
        file.write("to be, or not to be, that is the question. " * 40)
    config = {"data": {"type": "text", "path": "letters.txt", "tokenizer": "characters", "context": 16},
              "model": {"type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 16},
              "optimizer": {"type": "adam", "lr": 0.001}, "train": {"steps": 2, "batch_size": 4}}
    with open(os.path.join(place.folder, "gpt.yaml"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    place.command("train", "gpt.yaml", "--quiet", "--run-dir", "runs/gpt")
    place.command("export", "runs/gpt", "--format", "hf", "--out", "gpt_folder")
    if not importlib.util.find_spec("transformers"):
        print("without transformers, the block on Hugging Face is not run")
        return
    place.python(block)
    place.command("import", "tuned_folder", "--config", "gpt.yaml", "--out", "runs/tuned")


def main():
    lacuna, source, folder = sys.argv[1:]
    place = Place(folder, lacuna, source)
    run_pytorch(place, source)
    run_cerebras(place, source)
    run_hugging_face(place, source)


main()
