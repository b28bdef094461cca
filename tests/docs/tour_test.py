"""Runs the commands of docs/guides/tour.md, but for those that need data, on short trainings.

usage: tour_test.py LACUNA SOURCE FOLDER
"""
import os
import re
import shutil
import subprocess
import sys

# What makes a training with a configuration of the repository short.
SHORT = ("--set data.train_size=1280 --set data.test_size=200 --set train.epochs=2 "
         "--set sparsity.update.freq=4 --set sparsity.update.stop=16")


def blocks_of(path):
    """The shell blocks of each section, by its title."""
    sections = re.split(r"^## ", open(path, encoding="utf-8").read(), flags=re.MULTILINE)[1:]
    return {section.splitlines()[0]: re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
            for section in sections}


def main():
    lacuna, source, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + "/bin")
    os.symlink(source + "/configs", folder + "/configs")
    with open(folder + "/bin/lacuna", "w", encoding="utf-8") as file:
        file.write(f'#!/bin/bash\ncase "$1 $2" in "train configs/"*|"sweep configs/"*) set -- "$@" {SHORT};; esac\n'
                   f'exec {lacuna} "$@"\n')
    os.chmod(folder + "/bin/lacuna", 0o755)
    environment = {**os.environ, "PATH": folder + "/bin:" + os.environ["PATH"], "OMP_NUM_THREADS": "1"}

    def run(script):
        ended = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert ended.returncode == 0, script + ended.stdout
        return ended.stdout

    run("lacuna train configs/quickstart.yaml")
    sections = blocks_of(source + "/docs/guides/tour.md")
    sections.pop("With data")
    printed = {title: "".join(run(block) for block in blocks) for title, blocks in sections.items()}
    assert sum(len(text) > 0 for text in printed.values()) == 4, printed.keys()
    for name in ("report.html", "mlp.safetensors", "runs/sweep/report.html", "runs/pruned/prune.json"):
        assert os.path.getsize(os.path.join(folder, name)) > 0, name
    answers = printed["A table of your own"].splitlines()[-3:]
    assert answers[0] == "class,p_large,p_small", answers
    assert [answer.split(",")[0] for answer in answers[1:]] == ["large", "small"], answers


main()
