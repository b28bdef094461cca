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
    """The overrides for data that is given, not configured."""
    if data is None or config is None:
        return overrides
    kind = _lacuna._data_type(config)
    if kind not in (None, "python"):
        error = _lacuna.ConfigError(
            f"data.type: the configuration's data is of type '{kind}', and `data` is given too; "
            "leave one of them out"
        )
        error.key = "data.type"
        raise error
    return [*overrides, "data.type=python"]


def set_values(values: Changes) -> list[str]:
    if isinstance(values, Mapping):
        values = dict(values)
    return _lacuna._assignments(values)


class Run:
    """A run. Everything that a run records is in its folder.

    `Run(folder)` opens an existing run; `train`, `prune`, `shrink`, `quantize` and `import_` return
    one. Functions that accept a run also accept the name of its folder. `report` is the dict of
    prune.json, shrink.json or quantize.json after these calls, otherwise None.
    """

    def __init__(self, run_dir: Path):
        self._dir = os.fspath(run_dir)
        self._state: Optional[str] = None
        self.report: Optional[dict[str, Any]] = None
        _lacuna._read_config(self._dir)  # raises DataError where there is no run

    @property
    def run_dir(self) -> str:
        """The run's folder."""
        return self._dir

    @property
    def state(self) -> str:
        """"finished", "stopped early", "stopped" (by the call that returned this run; can be
        resumed), or "unfinished" (no summary.json: stopped, killed, running, or not begun)."""
        if self._state is not None:
            return self._state
        if (summary := self.summary) is None:
            return "unfinished"
        return "stopped early" if summary.get("stopped_early") else "finished"

    @property
    def config(self) -> dict[str, Any]:
        """The run's resolved configuration, from its folder."""
        return _lacuna._read_config(self._dir)

    @property
    def summary(self) -> Optional[dict[str, Any]]:
        """Results, sizes and times (summary.json); None before the run has ended."""
        return _lacuna._read_summary(self._dir)

    @property
    def metrics(self) -> dict[str, dict[str, numpy.ndarray[Any, Any]]]:
        """The events of metrics.jsonl: for each split ("train", "validation", "test"), a dict of
        columns, which are arrays of equal length: numbers ("step", "loss", …) as float64, NaN if one
        is missing, or texts. "update" has a row per change of a mask."""
        return _lacuna._read_metrics(self._dir)

    def load(self, *, last: bool = False) -> LoadedRun:
        """Opens the run for predictions, as `load` does."""
        return _lacuna.load(self._dir, last=last)

    def evaluate(self, **options: Any) -> Metrics:
        """Evaluates the run, as `evaluate` does."""
        return evaluate(self._dir, **options)

    def resume(self, **options: Any) -> "Run":
        """Continues the run, with the options of `train`, and returns it."""
        self._state = train(run_dir=self._dir, resume=True, **options)._state
        return self

    def __fspath__(self) -> str:
        return self._dir

    def __repr__(self) -> str:
        return f"<lacuna.Run {self._dir!r}, {self.state}>"

    def _repr_html_(self) -> str:
        return display.run_html(self)


class Plan:
    """The size and cost of a run, computed before training. `print(plan)` shows a table.

    `report` is the dict that `lacuna plan --json` prints, `config` the resolved configuration.
    """

    def __init__(self, report: dict[str, Any], text: str, config: dict[str, Any]):
        self.report = report
        self.config = config
        self._text = text

    @property
    def layers(self) -> Any:
        """A list with one dict per module: path, type, output, parameters, nonzeros and FLOPs."""
        return self.report["layers"]

    @property
    def parameters(self) -> Any:
        """A list with one dict per parameter: shape, algorithm, nonzeros, layout and updates."""
        return self.report["parameters"]

    @property
    def steps(self) -> int:
        """Number of optimizer steps of the run."""
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

    run_dir: the folder; by default the configuration's `run_dir`, else runs/<name of its file>.
    resume: continue the run in that folder from its newest checkpoint, bit for bit as if it had
        never stopped. `set` can change keys that do not affect the numbers; `change` can also
        change the optimizer, and the change is recorded.
    on_step: called as f(step, loss, metrics) after each step. Steps count from 1, the loss is the
        mean over the step's examples, and metrics has the last event of each split by name:
        {"train": {"accuracy": …}, "test": {…}}. If it returns False, the run writes a checkpoint
        and ends. An exception ends the run without a checkpoint.
    data: the examples, in place of the configuration's `data.type`: a value that `as_dataset`
        accepts, or a dict of them for "train", "validation" and "test". The other keys of the
        section `data` apply as usual. The run folder does not contain the examples: pass the same
        data again to `resume` and to `evaluate`.

    Ctrl-C (SIGINT) ends the run after a checkpoint, and raises KeyboardInterrupt; a second one ends
    the process. Other Python threads run during the training. `train.threads` stays set afterwards.
    Raises ConfigError, DataError, CheckpointError, MemoryError; StateError if the folder is in use or
    another training is running in this process; Error if the training diverges.
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
    """Computes the size and cost of a run, and checks the configuration as `train` does.

    Data is read, but nothing is written. With `seconds`, steps of the run and of dense training are
    timed for this long each, and `plan.report["time"]` has the result. data: as for `train`.
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
    """Evaluates a run's checkpoint on its validation and test data: a dict of results per split.

    `set` can change the sections data, loss and train. `last` uses the last checkpoint, even
    if the best is kept. `data_changed` accepts data that differs from that of the training.
    data: the data that was passed to `train`, if any. Raises ConfigError, CheckpointError, DataError.
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
    """Prunes a trained run (or checkpoint) in one shot. The result is a new run.

    sparsity: the fraction of zeros, in [0, 1). method: "magnitude", "wanda", "sparsegpt" or "admm"
    (the default). Instead, `config` can give a section `sparsity`. `last` uses the last checkpoint,
    even if the best is kept. `run.report` describes the result, and `run.resume()` trains the pruned
    weights further. data: the data passed to `train`, if any. Raises the errors of `train`.
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
    """Removes whole units of a trained run (or checkpoint). The result is a new, smaller run.

    to: the part that remains, {"flops": 0.5}, {"parameters": 0.5} or {"time": 0.5}. method:
    "magnitude" (the default), "saliency", "error", or "dead", which has no `to`. Instead, `config`
    can give a section `shrink`, and sections that replace the run's. `last` uses the last checkpoint,
    even if the best is kept. `run.report` lists the units that stay, and `run.resume()` fine-tunes
    the smaller model. data: the data passed to `train`, if any. Raises the errors of `train`.
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
    """Converts layers of a trained run (or checkpoint) to int8. The result is a new run.

    `config` gives a section `quantize`; without it, the run's own section or the defaults apply.
    `last` uses the last checkpoint, even if the best is kept. `run.report` has the layers,
    and the results in float32 and in int8. `evaluate` and `load` run the model in int8. The new run
    cannot be resumed. data: the data that was passed to `train`, if any. Raises the errors of `train`.
    """
    with given_to(data):
        report = _lacuna._quantize(
            os.fspath(source), given_config(config), set_values(set), os.fspath(run_dir), last
        )
    return _reported(run_dir, report)


def compare(*runs: Path, by: Optional[str] = None) -> Any:
    """Compares results and settings of runs, the best run first.

    A folder that is not a run stands for the runs in it. by: "step" or "seconds" compares the runs
    after the same number of steps or seconds. Returns a pandas.DataFrame with one row per run, and
    the settings that differ as columns; without pandas, a list of dicts. Raises DataError, ConfigError.
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
    """Trains one run per combination of values and seed, each in its own process.

    over: {"optimizer.lr": [0.1, 0.01], …}, or a list of arguments of `lacuna sweep --over`.
    seeds: number of seeds per combination. jobs: number of runs at a time. random: number of
    combinations to draw, instead of all.

    Returns the runs as `compare` does. Ctrl-C ends the runs after a checkpoint; the same call
    continues them. Raises ConfigError before anything runs if a run could not begin; StateError if
    runs failed, with the folder of their output.

    The runs import the modules, and the script, that registered names. So put a script's own calls
    under `if __name__ == "__main__":`. Names registered in a notebook have no file, and are unknown
    to the runs.
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
            f"{failed} run{'' if failed == 1 else 's'} failed; the output is in "
            f"{os.fspath(run_dir)}, in files NAME.log"
        )
    return compare(*runs)
