"""Runs: trained, planned, opened, evaluated, pruned, shrunk, quantized, compared and swept.

A configuration is a dict, the name of a YAML file, or YAML text. `set` changes its values: a dict
with dotted keys, {"sparsity.sparsity": 0.9}, or a list of "key=value".
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

from lacuna import _lacuna, display, registry
from lacuna._lacuna import LoadedRun
from lacuna.data import Given, given_to

if TYPE_CHECKING:  # it takes longer to import than all of lacuna
    import numpy

Path = Union[str, "os.PathLike[str]"]
Config = Union[Mapping[str, Any], Path]
Changes = Union[Mapping[str, Any], Sequence[str], None]
Metrics = dict[str, dict[str, Any]]  # the columns or values of each split


def given_config(config: Optional[Config]) -> Any:
    if config is None or isinstance(config, (str, os.PathLike)):
        return config
    return dict(config)


def _for_data(config: Any, overrides: list[str], data: Optional[Given]) -> list[str]:
    """The overrides for data of Python's: it is drawn in the thread that trains."""
    kind = None if config is None else _lacuna._data_type(config)
    if data is not None:
        if kind not in (None, "python"):
            error = _lacuna.ConfigError(
                f"data.type: the configuration's data is of type '{kind}', and `data` is given too; "
                "leave one of them out"
            )
            error.key = "data.type"
            raise error
        if config is not None:
            overrides = [*overrides, "data.type=python"]
    if data is not None or registry.is_own_data(kind):
        overrides = [*overrides, "train.prefetch=0"]
    return overrides


def set_values(values: Changes) -> list[str]:
    if isinstance(values, Mapping):
        values = dict(values)
    return _lacuna._assignments(values)


class Run:
    """A run and its folder, which holds all that is known of it.

    `Run(folder)` opens one that is there; `train`, `prune`, `shrink` and `import_` return one. Anything that
    takes a run takes its folder's name too.
    """

    def __init__(self, run_dir: Path):
        self._dir = os.fspath(run_dir)
        self._state: Optional[str] = None
        self.report: Optional[dict[str, Any]] = None
        """What `prune`, `shrink` or `quantize` did: a dict as in prune.json, shrink.json or
        quantize.json."""
        _lacuna._read_config(self._dir)  # raises DataError where there is no run

    @property
    def run_dir(self) -> str:
        """The run's folder."""
        return self._dir

    @property
    def state(self) -> str:
        """"finished", "stopped early", "stopped" (it can go on), or "unfinished"."""
        if self._state is not None:
            return self._state
        return "unfinished" if self.summary is None else "finished"

    @property
    def config(self) -> dict[str, Any]:
        """The run's configuration, as its folder has it."""
        return _lacuna._read_config(self._dir)

    @property
    def summary(self) -> Optional[dict[str, Any]]:
        """Results, sizes and times of a run that has ended (summary.json); None before."""
        return _lacuna._read_summary(self._dir)

    @property
    def metrics(self) -> dict[str, dict[str, numpy.ndarray[Any, Any]]]:
        """The run's course: for each split ("train", "validation", "test") a dict of columns, as
        float64 arrays of equal length: "step", "epoch", "loss", "accuracy", "lr", …; NaN where a
        value is missing. "update" has a row for each change of a mask."""
        return _lacuna._read_metrics(self._dir)

    def load(self, *, last: bool = False) -> LoadedRun:
        """Opens the model: see `load`."""
        return _lacuna.load(self._dir, last=last)

    def evaluate(self, **options: Any) -> Metrics:
        """See `evaluate`."""
        return evaluate(self._dir, **options)

    def resume(self, **options: Any) -> "Run":
        """Goes on with the run, and returns it: see `train`."""
        self._state = train(run_dir=self._dir, resume=True, **options)._state
        return self

    def __fspath__(self) -> str:
        return self._dir

    def __repr__(self) -> str:
        return f"<lacuna.Run {self._dir!r}, {self.state}>"

    def _repr_html_(self) -> str:
        return display.run_html(self)


class Plan:
    """What a run will do, counted before any training. `print(plan)` shows it as a table."""

    def __init__(self, report: dict[str, Any], text: str, config: dict[str, Any]):
        self.report = report
        """All of it: a dict, as `lacuna plan --json` prints it."""
        self.config = config
        """The configuration with the value of every key that was left out."""
        self._text = text

    @property
    def layers(self) -> Any:
        """A record for each module: path, type, output, parameters, nonzeros and FLOPs: a list."""
        return self.report["layers"]

    @property
    def parameters(self) -> Any:
        """A record for each parameter: shape, algorithm, nonzeros, layout, updates: a list."""
        return self.report["parameters"]

    @property
    def steps(self) -> int:
        """Optimizer steps of the run."""
        return int(self.report["steps"])

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<lacuna.Plan: {self.steps} steps, {self.report['final_nnz']} nonzeros>"

    def _repr_html_(self) -> str:
        return display.plan_html(self)


def train(
    config: Optional[Config] = None,
    *,
    run_dir: Optional[Path] = None,
    set: Changes = None,
    resume: bool = False,
    change: Changes = None,
    on_step: Optional[Callable[[int, float, dict[str, Any]], Optional[bool]]] = None,
    data: Optional[Given] = None,
) -> Run:
    """Trains a configuration in a run folder, as `lacuna train` does, and returns the run.

    run_dir: the folder; by default the configuration's `run_dir`, else runs/NAME of its file.
    resume: go on with the run in that folder from its newest checkpoint, bit for bit as if it had
        never stopped. `set` may change what does not touch the numbers; `change` also the
        optimizer, which is recorded.
    on_step: called as f(step, loss, metrics) after each step: steps are counted from 1, the loss is
        the mean of the step's examples, and metrics has the last events of each split by name,
        {"train": {"accuracy": …}, "test": {…}}. If it returns False, the run writes a checkpoint
        and ends. What it raises ends the run without one.
    data: the examples, instead of the configuration's `data.type`: what `as_dataset` takes, or a
        dict of such for "train", "validation" and "test". The other keys of the section `data`
        count as for any data. The run's folder does not have it: give it again to `resume`, and to
        `evaluate`; it must be the same.

    Ctrl-C (SIGINT) ends the run after a checkpoint, and raises KeyboardInterrupt; a second one ends
    the process. Other Python threads run while it trains. `train.threads` stays set afterwards.
    Raises ConfigError, DataError, CheckpointError; StateError when the folder is in use, or another
    training is running in this process; Error when training diverges.
    """
    registry.require_no_import("train")
    given = given_config(config)
    overrides = _for_data(given, set_values(set) + set_values(change), data)
    folder = None if run_dir is None else os.fspath(run_dir)
    with given_to(data):
        trained, state, _ = _lacuna._train(
            given, overrides, folder, resume, change is not None, on_step
        )
    run = Run(trained)
    run._state = state
    return run


def plan(
    config: Config, *, set: Changes = None, seconds: float = 0.0, data: Optional[Given] = None
) -> Plan:
    """What a run of the configuration will do; mistakes in it are found as `train` finds them.

    Data is read, but nothing is written. With `seconds`, steps of the run and of dense training are
    timed for so long each, and `plan.report["time"]` has the result. `data` is as in `train`.
    Raises ConfigError, DataError, CheckpointError, MemoryError.
    """
    given = given_config(config)
    overrides = _for_data(given, set_values(set), data)
    with given_to(data):
        return Plan(*_lacuna._plan(given, overrides, seconds))


def evaluate(
    run: Path,
    *,
    set: Changes = None,
    last: bool = False,
    data_changed: bool = False,
    data: Optional[Given] = None,
) -> Metrics:
    """Loss, accuracy, … of a run's checkpoint on the data it holds out: a dict for each split.

    `set` may change the sections data, loss and train. `data_changed` accepts data that is not what
    it was in training. `data` is what the run was trained on, where `train` was given it. Raises
    ConfigError, CheckpointError, DataError.
    """
    with given_to(data):
        return _lacuna._evaluate(os.fspath(run), set_values(set), last, data_changed)


def _reported(run_dir: Path, report: Any) -> Run:
    """The run that was written there, with what was done to make it."""
    run = Run(run_dir)
    run.report = report
    return run


def prune(
    source: Path,
    config: Optional[Config] = None,
    *,
    run_dir: Path,
    sparsity: Optional[float] = None,
    method: Optional[str] = None,
    set: Changes = None,
    last: bool = False,
    data: Optional[Given] = None,
) -> Run:
    """Prunes a trained run (or checkpoint) in one shot, into a run of its own that can go on.

    sparsity: the fraction of zeros, in [0, 1); method: "magnitude", "wanda", "sparsegpt" or "admm"
    (the default). Instead of these, `config` gives a section `sparsity`. `run.report` says what was
    done. `run.resume()` trains on with the pruned weights. `data` is what the source was trained
    on, where `train` was given it. Raises as `train`.
    """
    with given_to(data):
        report = _lacuna._prune(
            os.fspath(source),
            given_config(config),
            set_values(set),
            os.fspath(run_dir),
            None if sparsity is None else repr(float(sparsity)),
            method,
            last,
        )
    return _reported(run_dir, report)


def shrink(
    source: Path,
    config: Optional[Config] = None,
    *,
    run_dir: Path,
    to: Optional[Mapping[str, float]] = None,
    method: Optional[str] = None,
    set: Changes = None,
    last: bool = False,
    data: Optional[Given] = None,
) -> Run:
    """Removes whole units of a trained run (or checkpoint), into a smaller run that can go on.

    to: what is left, {"flops": 0.5}, {"parameters": 0.5} or {"time": 0.5}; method: "magnitude" (the
    default), "saliency", "error" or "dead", which takes no `to`. Instead of these, `config` gives a
    section `shrink`, and may give sections that take the place of the run's. `run.report` has the
    units that stay. `run.resume()` fine-tunes the smaller model. `data` is what the source was
    trained on, where `train` was given it. Raises as `train`.
    """
    if to is not None and (not isinstance(to, Mapping) or len(to) != 1):
        raise TypeError('shrink: `to` must be a dict of one budget, as {"flops": 0.5}')
    budget = None if to is None else "".join(f"{k}={float(v)!r}" for k, v in to.items())
    with given_to(data):
        report = _lacuna._shrink(
            os.fspath(source),
            given_config(config),
            set_values(set),
            os.fspath(run_dir),
            budget,
            method,
            last,
        )
    return _reported(run_dir, report)


def quantize(
    source: Path,
    config: Optional[Config] = None,
    *,
    run_dir: Path,
    set: Changes = None,
    last: bool = False,
    data: Optional[Given] = None,
) -> Run:
    """Brings the linear layers of a trained run (or checkpoint) to int8, into a run of its own.

    `config` gives a section `quantize`; without it the run's own section counts, or the defaults.
    `run.report` has the layers, and the evaluation in float32 and in int8. `evaluate` and `load`
    run the model in int8; it is not trained on. `data` is what the source was trained on, where
    `train` was given it. Raises as `train`.
    """
    with given_to(data):
        report = _lacuna._quantize(
            os.fspath(source), given_config(config), set_values(set), os.fspath(run_dir), last
        )
    return _reported(run_dir, report)


def compare(*runs: Path, by: Optional[str] = None) -> Any:
    """Results and settings of runs side by side, the best first.

    A folder without a run stands for the runs below it. by: "step" or "seconds" compares them as
    they were when each had taken as many. Returns a pandas.DataFrame with a row for each run, and
    the settings that differ as columns; without pandas a list of dicts. Raises DataError.
    """
    if not runs:
        raise TypeError("compare: expected at least one run")
    report = _lacuna._compare([os.fspath(run) for run in runs], by or "")
    rows = [dict(row) for row in report["runs"]]
    for difference in report["differences"]:
        for row in rows:
            row[difference["key"]] = difference["values"].get(row["run"])
    try:
        import pandas  # type: ignore[import]
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def sweep(
    config: Config,
    over: Union[Mapping[str, Sequence[Any]], Sequence[str]],
    *,
    run_dir: Path,
    seeds: int = 1,
    jobs: int = 1,
    set: Changes = None,
    random: int = 0,
    random_seed: int = 0,
) -> Any:
    """Trains a run for each combination of values and each seed, each in a process of its own.

    over: {"optimizer.lr": [0.1, 0.01], …}, or a list of what `lacuna sweep --over` takes. random:
    so many combinations are drawn instead of all. The same call goes on with what is unfinished.
    Names that were registered are known to the runs, which import the modules and read the script
    that registered them: a script's own calls stand under `if __name__ == "__main__":`. What a
    notebook's cells register has no file, and is not known. Returns the runs as `compare` does. Ctrl-C ends the runs after a checkpoint. Raises ConfigError before anything runs
    if a run could not begin; StateError if some failed, with the folder of their output.
    """
    axes = list(over) if not isinstance(over, Mapping) else [
        f"{key}=" + ",".join(_lacuna._assignments({"v": value})[0][2:] for value in values)
        for key, values in over.items()
    ]
    registry.require_no_import("sweep")
    program = [sys.executable, "-m", "lacuna", *registry.imports()]
    try:
        runs, failed, _, _ = _lacuna._sweep(
            given_config(config), set_values(set), axes, os.fspath(run_dir), seeds, jobs, random,
            random_seed, program,
        )
    except _lacuna.ConfigError as error:
        for name in registry.unknown_to_others():
            if f"'{name}'" in str(error):
                raise _lacuna.ConfigError(
                    f"{error}; '{name}' was registered without a file, so that runs in other "
                    "processes do not know it: put the class into a module"
                ) from None
        raise
    if failed:
        raise _lacuna.StateError(
            f"{failed} runs failed; their output is in {os.fspath(run_dir)}, in files NAME.log"
        )
    return compare(*runs)
