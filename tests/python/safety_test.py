"""What must not crash: garbage in any order, fork, pickling, threads, exceptions within C++."""

import copy
import gc
import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import lacuna as lc
from lacuna import sparse

X = np.random.default_rng(2).random((16, 20), dtype=np.float32)
Y = np.arange(16) % 3


class Own(sparse.DynamicSparsityAlgorithm):
    def update_mask(self, p, mask, sparsity):
        self.weight = p
        return p.grow_random(p.keep(mask, p.magnitudes, p.target_nnz // 2), self.rng(p), p.target_nnz)


def make_all():
    model = lc.Model([lc.Linear(20, 8, name="fc1"), lc.ReLU(), lc.Linear(8, 3, name="fc2")])
    algorithm = Own(sparsity=0.5, update={"freq": 1})
    group = sparse.Group({"fc1.*": algorithm, "fc2.*": sparse.Static(0.5)})
    model.apply(group)
    optimizer = lc.Adam(model.parameters(), lr=1e-3)
    optimizer.apply(group)
    step(model, optimizer)
    return {
        "model": model,
        "group": group,
        "algorithm": algorithm,
        "optimizer": optimizer,
        "parameter": model["fc1.weight"],
        "values": model["fc1.weight"].values,
        "state": optimizer.state("fc1.weight"),
        "weight": algorithm.weight,
        "members": group.algorithms,
        "loss": lc.cross_entropy(model(X), Y),
        "hook": group.register_target_sparsity_hook(lambda *_: None),
    }


def step(model, optimizer):
    lc.cross_entropy(model(X), Y).backward()
    optimizer.step()
    optimizer.zero_grad()


def use(things):
    """What is left works, or raises an exception of ours."""
    for name, thing in things.items():
        if name == "model":
            thing(X)
        elif name == "optimizer":
            for parameter in thing.parameters:
                parameter.grad = np.ones_like(parameter.values)
            thing.step()
        elif name in ("group", "algorithm"):
            try:
                thing.update()
            except lc.StateError:
                pass
            thing.state_dict()
        elif name in ("parameter", "weight"):
            try:
                np.asarray(thing).sum()
                thing.mask.sum()
            except lc.StateError:
                pass
        elif name == "loss":
            try:
                thing.backward()
            except lc.StateError:
                pass
        elif name == "hook":
            thing.remove()


def test_garbage_in_any_order():
    names = list(make_all())
    orders = itertools.chain(
        ([n] for n in names), itertools.permutations(["model", "group", "optimizer"])
    )
    for gone in orders:
        things = make_all()
        for name in gone:
            del things[name]
            use(things)
        gc.collect()
        while things:
            things.popitem()


def test_an_algorithm_lives_as_long_as_its_model():
    model = lc.Model([lc.Linear(20, 8, name="fc1")])
    model.apply(sparse.SET(0.5, update={"freq": 1}))
    gc.collect()
    assert model["fc1.weight"].sparsified_by == "set"
    optimizer = lc.SGD(model.parameters(), lr=0.1)
    algorithm = sparse.SET(0.5, update={"freq": 1})
    with pytest.raises(lc.StateError, match="already"):
        model.apply(algorithm)
    del model
    gc.collect()
    assert len(optimizer.parameters) == 2
    optimizer.step()


def test_arrays_keep_their_memory():
    model = lc.Model([lc.Linear(20, 8, name="fc1")])
    values, output = model["fc1.weight"].values, model(X).numpy()
    copies = values.copy(), output.copy()
    del model
    gc.collect()
    junk = [np.ones(n, np.float32) for n in range(1, 2000)]
    np.testing.assert_array_equal(values, copies[0])
    np.testing.assert_array_equal(output, copies[1])
    del junk


def test_a_variable_keeps_the_array_it_is_over():
    v = lc.Variable(np.arange(4096, dtype=np.float32))
    gc.collect()
    junk = [np.ones(4096, np.float32) for _ in range(50)]
    assert v.numpy().sum() == 4096 * 4095 / 2
    del junk


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_models_leave_nothing():
    for _ in range(100):
        make_all()
    gc.collect()
    before = resident()
    for _ in range(1000):
        make_all()
    gc.collect()
    assert resident() - before < 8 << 20


def test_pickling_is_refused_with_a_way_out():
    things = make_all()
    for name in ("model", "group", "algorithm", "optimizer", "parameter", "loss"):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(things[name])
        with pytest.raises(TypeError, match="cannot be pickled"):
            copy.deepcopy(things[name])
    model = things["model"]
    saved = pickle.loads(pickle.dumps((model.state(), things["optimizer"].state_dict())))
    restored = make_all()
    restored["model"].load_state(saved[0])
    restored["optimizer"].load_state_dict(saved[1])
    np.testing.assert_array_equal(restored["model"](X).numpy(), model(X).numpy())


def test_a_child_of_fork_computes():
    lc.set_num_threads(2)
    things = make_all()
    model = lc.Model([lc.Linear(512, 512, name="fc")])
    big = np.ones((512, 512), np.float32)
    expected = model(big).numpy().sum()

    def child(queue):
        step(things["model"], things["optimizer"])
        queue.put((lc.num_threads(), float(model(big).numpy().sum())))

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    threads, found = queue.get(timeout=60)
    process.join(60)
    assert threads == 1 and found == pytest.approx(expected, rel=1e-5) and process.exitcode == 0
    lc.set_num_threads(1)


def test_threads_of_python_run_while_products_do():
    model = lc.Model([lc.Linear(1024, 1024, name="fc")])
    big = np.ones((2048, 1024), np.float32)
    model(big)
    ticks, running = [], threading.Event()

    def tick():
        while not running.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    for _ in range(10):
        model(big)
    end = time.perf_counter()
    running.set()
    thread.join()
    assert sum(begin < t < end for t in ticks) >= 5


def test_many_threads_use_models_of_their_own():
    failures = []

    def work():
        try:
            for _ in range(5):
                make_all()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_exceptions_of_python_pass_through():
    class Broken(sparse.DynamicSparsityAlgorithm):
        def update_mask(self, p, mask, sparsity):
            raise KeyError("of mine")

    class WrongShape(sparse.DynamicSparsityAlgorithm):
        def update_mask(self, p, mask, sparsity):
            return mask[:1]

    class Nothing(sparse.DynamicSparsityAlgorithm):
        pass

    for kind, error in ((Broken, KeyError), (WrongShape, lc.ShapeError), (Nothing, TypeError)):
        model = lc.Model([lc.Linear(20, 8, name="fc1")])
        algorithm = kind(sparsity=0.5, update={"freq": 1})
        model.apply(algorithm)
        optimizer = lc.SGD(model.parameters(), lr=lambda step: 0.1)
        optimizer.apply(algorithm)
        with pytest.raises(error):
            step(model, optimizer)
        assert model["fc1.weight"].mask.sum() == 80  # the first mask
    with pytest.raises(ZeroDivisionError):
        lc.SGD(model.parameters(), lr=lambda step: 1 / 0).step()


def test_wrong_kinds_of_arguments_are_type_errors():
    model = lc.Model([lc.Linear(20, 3)])
    for call in (
        lambda: model("text"),
        lambda: model(None),
        lambda: lc.cross_entropy(model(X), Y + 0.5),
        lambda: lc.Model(["linear", 3], input_shape=(3,)),
        lambda: lc.Model([lc.Linear(3, 3)])["x"].nothing,
        lambda: sparse.Static(object()),
        lambda: lc.random(0, "x").uniform("shape"),
    ):
        with pytest.raises((TypeError, lc.Error)):
            call()


@pytest.mark.parametrize("order", [("lacuna", "torch"), ("torch", "lacuna")])
def test_pytorch_in_one_process(order):
    pytest.importorskip("torch")
    code = f"""
import {order[0]}
import {order[1]}
import numpy
lacuna.set_num_threads(2)
torch.set_num_threads(2)
x = numpy.random.default_rng(0).random((256, 256), dtype=numpy.float32)
model = lacuna.Model([lacuna.Linear(256, 256, name="fc")])
theirs = torch.nn.Linear(256, 256)
theirs.weight.data = torch.from_numpy(model["fc.weight"].to_numpy())
theirs.bias.data = torch.from_numpy(model["fc.bias"].to_numpy())
for _ in range(20):
    ours, other = model(x).numpy(), theirs(torch.from_numpy(x)).detach().numpy()
    assert abs(ours - other).max() < 1e-4
print("equal")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout == "equal\n", run.stderr


def test_the_interpreter_ends_with_functions_in_use():
    code = """
import lacuna
from lacuna import sparse

@lacuna.register("at_exit")
class AtExit(sparse.Dynamic):
    def update_mask(self, p, mask, sparsity):
        return mask

lacuna.register("schedule_at_exit")(lambda step: 0.1)
model = lacuna.Model([lacuna.Linear(4, 3)])
algorithm = sparse.configure({"algorithm": "at_exit", "sparsity": lambda step: 0.5})
algorithm.register_target_sparsity_hook(lambda *_: None)
model.apply(algorithm)
optimizer = lacuna.SGD(model.parameters(), lr={"type": "schedule_at_exit"})
optimizer.apply(algorithm)
optimizer.register_step_pre_hook(lambda _: None)
values = model.parameters()[0].values
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
