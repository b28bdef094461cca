"""Every public function, method and property is given nonsense: it raises an exception that a caller
can understand, or works; the process lives on. Each group runs in a process of its own, which names the
call that ends it."""

import inspect
import os
import pathlib
import random
import subprocess
import sys

import pytest

GROUPS = ["functions", "layers", "modules", "optimizers", "algorithms", "weights", "data", "runs"]
SEED = int(os.environ.get("LACUNA_NONSENSE_SEED", "0"))
ROUNDS = int(os.environ.get("LACUNA_NONSENSE_ROUNDS", "12"))

# What is not to be called: it would wait, end the process, or change what other calls see.
LEFT_OUT = {"set_num_threads", "log"}


def values(np, lc):
    """Arguments that make no sense in most places, made again for each call."""

    class Hostile:
        """Fails however it is looked at."""

        def __len__(self):
            raise ZeroDivisionError("len")

        def __iter__(self):
            raise ZeroDivisionError("iter")

        def __getitem__(self, key):
            raise ZeroDivisionError("getitem")

        def __bool__(self):
            raise ZeroDivisionError("bool")

        def __array__(self, *_):
            raise ZeroDivisionError("array")

    class Unmade(lc.nn.Module):
        def __init__(self):
            pass

    def unmade(kind):
        return kind.__new__(kind)

    endless = []
    endless.append(endless)
    loop = {}
    loop["a"] = loop
    return [
        lambda: None,
        lambda: True,
        lambda: 0,
        lambda: -1,
        lambda: 3,
        lambda: 2**62,
        lambda: -(2**63),
        lambda: 10**30,
        lambda: 0.5,
        lambda: float("nan"),
        lambda: float("inf"),
        lambda: -1e300,
        lambda: 1j,
        lambda: "",
        lambda: "text",
        lambda: "no\0thing",
        lambda: "\udc80",
        lambda: "fc1.weight",
        lambda: "/no/such/folder",
        lambda: ".",
        lambda: "x" * 100_000,
        lambda: b"bytes",
        lambda: [],
        lambda: (),
        lambda: {},
        lambda: [1, "two", None],
        lambda: endless,
        lambda: loop,
        lambda: {1: 2},
        lambda: {"type": 3},
        lambda: {"type": "adam", "lr": float("nan")},
        lambda: {"algorithm": "rigl", "sparsity": 2},
        lambda: (2**62, 2**62),
        lambda: (-1, 3),
        lambda: (0,),
        lambda: object(),
        lambda: object,
        lambda: Hostile(),
        lambda: (lambda *_: None),
        lambda: (lambda: 1 / 0),
        lambda: unmade(Unmade),
        lambda: unmade(lc.Dataset),
        lambda: unmade(lc.sparse.RigL),
        lambda: unmade(lc.Variable),
        lambda: np.zeros(0, np.float32),
        lambda: np.float32(3),
        lambda: np.array(2),
        lambda: np.full((2, 3), np.nan, np.float32),
        lambda: np.ones((4, 5)),
        lambda: np.ones((8, 20), np.float32)[::2, ::-1],
        lambda: np.array(["a", "b"]),
        lambda: np.array([object()]),
        lambda: np.array([1j]),
        lambda: np.zeros((2, 2, 2, 2, 2, 2, 2, 2, 2, 2), bool),
        lambda: np.broadcast_to(np.float32(1), (3, 20)),
        lambda: np.array([-5, 2**40]),
        lambda: np.ones((8, 20), bool),
        lambda: np.frombuffer(b"\1" * 41, np.uint8)[1:].view("<f4"),
        lambda: lc.Variable([1.0, 2.0]),
        lambda: lc.Model([lc.Linear(2, 2)]),
        lambda: lc.Parameter([[1.0]]),
        lambda: lc.sparse.Static(0.5),
        lambda: lc.ArrayDataset(np.ones((3, 2)), [0, 1, 1]),
        lambda: lc.Linear(3, 3),
        lambda: pathlib.Path("nothing.yaml"),
        lambda: range(3),
        lambda: (i for i in "ab"),
        lambda: Exception("value"),
    ]


def things(group, lc, np):
    """Functions that make an object whose members are called, or None with plain callables."""
    s = lc.sparse

    def model():
        return lc.Model([lc.Linear(20, 8, name="fc1"), lc.ReLU(), lc.Linear(8, 3, name="fc2")])

    class Net(lc.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = lc.nn.Linear(20, 3)
            self.register_buffer("b", np.zeros(2))

        def forward(self, x):
            return self.fc(x)

    class Own(s.Dynamic):
        def update_mask(self, p, mask, sparsity):
            return mask

    class Mine(lc.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return np.ones(20, np.float32), 1

    def trained(algorithm=None, optimizer=lc.Adam):
        m = model()
        if algorithm is not None:
            m.apply(algorithm)
        o = optimizer(m.parameters(), lr=0.1)
        if algorithm is not None:
            o.apply(algorithm)
        lc.cross_entropy(m(np.ones((4, 20), np.float32)), [0, 1, 2, 0]).backward()
        o.step()
        return m, o

    def applied(kind, **keywords):
        def make():
            algorithm = kind(**keywords)
            make.kept = trained(algorithm)
            return algorithm

        return make

    def weight(layout):
        def make():
            weight.kept = trained(s.Static(0.5, layout=layout))
            return weight.kept[0]["fc1.weight"]

        return make

    def own_weight():
        algorithm = Own(0.5)
        own_weight.kept = trained(algorithm), algorithm
        return algorithm.weights[0]

    def run():
        if not os.path.exists("run"):
            from tiny_run import TINY

            lc.train(TINY, run_dir="run", set={"train.steps": 4})
        return lc.Run("run")

    update = {"freq": 1}
    return {
        "functions": [lambda: lc.Variable(np.ones((2, 2)), requires_grad=True), lc.no_grad]
        + [lambda: lc.random(0, "x"), lambda: lc.MaskPicture(np.eye(3, dtype=bool))],
        "layers": [lambda: lc.Linear(3, 3)],
        "modules": [model, Net, lambda: lc.nn.ModuleList([lc.ReLU()]), lambda: model().children()[0]],
        "optimizers": [lambda: trained()[1], lambda: trained(s.Static(0.5), lc.SGD)[1]],
        "algorithms": [
            applied(s.Static, sparsity=0.5),
            applied(s.RigL, sparsity=0.5),
            applied(s.SET, sparsity=0.5, update=update),
            applied(s.GMP, sparsity=lambda step: 0.5),
            applied(Own, sparsity=0.5, update=update),
            lambda: s.Group({"fc1.*": s.Static(0.5)}),
            lambda: s.RigL(0.5),
            lambda: Own(0.5),
        ],
        "weights": [weight("csr"), weight("masked"), own_weight],
        "data": [
            lambda: lc.ArrayDataset(np.ones((5, 20)), [0, 1, 2, 1, 0]),
            Mine,
            lambda: lc.Loader(lc.ArrayDataset(np.ones((5, 20)), [0, 1, 2, 1, 0])),
        ],
        "runs": [run, lambda: lc.load(run()), lambda: lc.plan(run().config)],
    }[group]


def callables(group, lc):
    """Plain functions and classes of the group."""
    nn, s = lc.nn, lc.sparse
    layers = {n: getattr(lc.layers, n) for n in dir(lc.layers) if n[0].isupper()}
    algorithms = {n: getattr(s, n) for n in s.__all__}
    data = {n: getattr(lc, n) for n in ("Dataset", "ArrayDataset", "Loader", "load_data", "as_dataset")}
    runs = {
        n: getattr(lc, n)
        for n in "train plan load evaluate prune shrink quantize compare sweep export import_ from_torch Run"
        " Plan".split()
    }
    optimizers = {n: getattr(lc, n) for n in ("SGD", "Adam", "AdamW", "optimizer")}
    modules = {n: getattr(nn, n) for n in ("Module", "ModuleList", "Sequential")}
    modules["Model"] = lc.Model
    known = {"layers": layers, "algorithms": algorithms, "data": data, "runs": runs}
    known |= {"optimizers": optimizers, "modules": modules, "weights": {"Parameter": lc.Parameter}}
    if group != "functions":
        return known[group]
    taken = set().union(*known.values()) | LEFT_OUT
    return {n: getattr(lc, n) for n in lc.__all__ if n not in taken and callable(getattr(lc, n))}


def members(thing):
    """The names of an object's methods and properties."""
    special = "call getitem setitem len iter add sub mul matmul rmatmul truediv array fspath enter exit"
    names = [n for n in dir(type(thing)) if not n.startswith("_")]
    return names + [f"__{n}__" for n in special.split() if hasattr(type(thing), f"__{n}__")]


def work(group):
    """Calls everything of a group; prints a line before each call."""
    import faulthandler
    import gc
    import warnings

    import numpy as np

    import lacuna as lc

    warnings.simplefilter("ignore")
    faulthandler.enable()
    faulthandler.dump_traceback_later(240, exit=True)
    allowed = (
        *(TypeError, ValueError, lc.Error, LookupError, AttributeError, OverflowError, OSError),
        *(ArithmeticError, RecursionError, NotImplementedError, MemoryError, StopIteration),
    )
    rng = random.Random(f"{group} {SEED}")
    makers = values(np, lc)
    strange = 0

    def attempt(name, function):
        nonlocal strange
        count = rng.choice((0, 1, 1, 1, 2, 2, 3, 4))
        arguments = [rng.choice(makers)() for _ in range(count)]
        keywords = {}
        try:
            known = [p for p in inspect.signature(function).parameters.values()]
        except (TypeError, ValueError):
            known = []
        for parameter in known:
            if parameter.kind == inspect.Parameter.KEYWORD_ONLY and rng.random() < 0.4:
                keywords[parameter.name] = rng.choice(makers)()
            elif parameter.name == "run_dir":
                keywords["run_dir"] = "made"
        shown = ", ".join(ascii(type(a).__name__) for a in arguments)
        print(name, shown, *keywords, flush=True)
        try:
            result = function(*arguments, **keywords)
            if inspect.isgenerator(result):
                list(result)
            repr(result)[:0]
        except allowed as error:
            if not str(error) and isinstance(error, lc.Error):
                print("STRANGE: no message", name, flush=True)
                strange += 1
        except Exception as error:  # noqa: BLE001
            print("STRANGE:", name, ascii(type(error)), ascii(str(error))[:300], flush=True)
            strange += 1

    for _ in range(ROUNDS):
        for name, function in callables(group, lc).items():
            for _ in range(3):
                attempt(name, function)
        for make in things(group, lc, np):
            for name in members(make()):
                thing = make()
                where = f"{type(thing).__name__}.{name}"
                try:
                    member = getattr(thing, name)
                except allowed:
                    continue
                if callable(member):
                    attempt(where, member)
                    continue
                attempt(where + " =", lambda v=None, *_, t=thing, n=name: setattr(t, n, v))
        gc.collect()
    return strange


@pytest.mark.parametrize("group", GROUPS)
def test_nonsense_is_refused(group, tmp_path):
    code = f"import sys, nonsense_test; sys.exit(nonsense_test.work({group!r}) > 0)"
    path = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )
    strange = [line for line in ended.stdout.split("\n") if line.startswith("STRANGE")]
    last = ended.stdout.rstrip().rsplit("\n", 1)[-1]
    assert ended.returncode == 0, "\n".join(sorted(set(strange))) + f"\nlast call: {last}\n" + ended.stderr[-3000:]


def test_an_import_of_what_is_no_array_names_it():
    import lacuna as lc
    from tiny_run import TINY

    for wrong in (object(), {"a": 1}, [object()]):
        with pytest.raises(TypeError, match="'fc1.weight' is a .*, not an array; convert it"):
            lc.import_({"fc1.weight": wrong}, TINY, run_dir="never")
