"""Training within a process: interrupted, next to other threads, one at a time, without growth."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import lacuna as lc
import numpy
import pytest
from tiny_run import TINY

PROGRAM = """
import sys
import lacuna as lc
config = eval(sys.argv[1])
config["train"]["steps"] = 1_000_000
try:
    lc.train(config, run_dir=sys.argv[2], on_step=lambda step, *_: print(step, flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A finished run of the tiny configuration."""
    return lc.train(TINY, run_dir=tmp_path_factory.mktemp("runs") / "tiny")


def test_a_forked_process_trains_with_one_thread(tmp_path):
    config = {**TINY, "train": {**TINY["train"], "threads": 2}}
    program = f"""
import multiprocessing, lacuna as lc
lc.train({config!r}, run_dir="parent")
for function, arguments in ((lc.train, ({config!r},)), (lc.evaluate, ("parent",))):
    child = multiprocessing.get_context("fork").Process(
        target=function, args=arguments, kwargs={{"run_dir": "child"}} if function is lc.train else {{}})
    child.start()
    child.join(100)
    assert child.exitcode == 0, child.exitcode
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=250)
    parent, child = (lc.Run(tmp_path / name).summary for name in ("parent", "child"))
    assert parent["test_loss"] == child["test_loss"]
    assert (parent["threads"], child["threads"]) == (2, 1)


def test_ctrl_c_stops_after_a_checkpoint(tmp_path):
    config = {**TINY, "train": {**TINY["train"], "checkpoint": {"every": 1_000_000}}}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, repr(config), str(tmp_path / "run")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    lines = []
    for line in child.stdout:
        lines.append(line.strip())
        if line == "20\n":
            child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 0, child.stderr.read()
    assert lines[-1] == "interrupted"
    last = int(lines[-2])
    assert lc.load(tmp_path / "run", last=True).step == last


def test_other_threads_run_while_one_trains(tmp_path):
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.0001)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        lc.train(TINY, run_dir=tmp_path / "run", set={"train.steps": 200})
    finally:
        done.set()
        thread.join()
    assert counted > 5


def test_one_training_at_a_time(tmp_path):
    refused = []

    def train_inside(step, loss, metrics):
        with pytest.raises(lc.StateError, match="another training"):
            lc.train(TINY, run_dir=tmp_path / "inner")
        refused.append(step)
        return False

    lc.train(TINY, run_dir=tmp_path / "outer", on_step=train_inside)
    assert refused == [1]


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def forgo_huge_pages():
    """Otherwise the kernel may merge pages of the heap into huge pages, and more memory is resident."""
    PR_SET_THP_DISABLE = 41
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def test_a_thousand_runs_are_opened_and_let_go_without_growth(tiny):
    forgo_huge_pages()
    x = numpy.zeros((4, *lc.load(tiny).example_shape), numpy.uint8)

    def use(times):
        for _ in range(times):
            model = lc.load(tiny)
            model.predict(x)
            values = model["fc1.weight"].values
            del model
            assert numpy.isfinite(values).all()  # the array keeps its memory

    use(100)
    before = resident_bytes()
    use(1000)
    assert resident_bytes() - before < 2_000_000
