"""Schedules: dicts that a configuration accepts, and that can be called to compute their values."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Union

from lacuna import _lacuna


class HyperParameterSchedule:
    """A value that depends on the step. A subclass defines compute(self, step)."""

    def compute(self, step: int) -> float:
        """The value at a step."""
        raise NotImplementedError(f"the class '{type(self).__name__}' defines no compute()")

    def __call__(self, step: int, updates: int = 0) -> float:
        """The value at a step, before which so many updates were made."""
        return self.compute(step)


class _Keys(Dict[str, Any], HyperParameterSchedule):
    """A schedule that has a name in configurations."""

    def compute(self, step: int) -> float:
        """The value at a step."""
        return self(step)

    def __call__(self, step: int, updates: int = 0) -> float:
        """The value at a step, before which so many updates were made."""
        return _lacuna._schedule_value(dict(self), int(step), int(updates))


class Constant(_Keys):
    """The same value at every step."""

    def __init__(self, value: float) -> None:
        super().__init__(type="constant", value=value)


class Linear(_Keys):
    """init + step * slope."""

    def __init__(self, init: float, slope: float) -> None:
        super().__init__(type="linear", init=init, slope=slope)


class Exp(_Keys):
    """final + (init - final) * exp(step * gamma)."""

    def __init__(self, init: float, gamma: float, final: float = 1.0) -> None:
        super().__init__(type="exp", init=init, gamma=gamma, final=final)


class Power(_Keys):
    """init * beta ** step."""

    def __init__(self, init: float, beta: float) -> None:
        super().__init__(type="power", init=init, beta=beta)


class Cosine(_Keys):
    """From init to minimum over half_period steps along a cosine, then back, and so on."""

    def __init__(self, init: float, half_period: float, minimum: float = 0.0) -> None:
        super().__init__(type="cosine", init=init, half_period=half_period, minimum=minimum)


class Cycling(_Keys):
    """Each update uses the next value."""

    def __init__(self, values: Sequence[float]) -> None:
        super().__init__(type="cycling", values=list(values))


class Polynomial(_Keys):
    """From init at step start to final at step end; fastest at the beginning for power > 1."""

    def __init__(
        self, init: float, final: float, start: int, end: int, power: float = 3.0
    ) -> None:
        super().__init__(
            type="polynomial", init=init, final=final, start=start, end=end, power=power
        )


class Lambda(HyperParameterSchedule):
    """fn(step)."""

    def __init__(self, fn: Callable[[int], float]) -> None:
        self.fn = fn

    def compute(self, step: int) -> float:
        """fn(step)."""
        return self.fn(step)


class UpdateSchedule(Dict[str, Any]):
    """The steps on which masks change."""

    def is_update_step(self, step: int) -> bool:
        """Whether masks change at this step."""
        return _lacuna._is_update_step(dict(self), int(step))

    def __call__(self, step: int) -> bool:
        """Whether masks change at this step."""
        return self.is_update_step(step)


class FreqSchedule(UpdateSchedule):
    """Updates every freq steps, for start <= step < stop."""

    def __init__(self, freq: int = 1, start: int = 0, stop: Optional[int] = None) -> None:
        super().__init__(freq=freq, start=start)
        if stop is not None:
            self["stop"] = stop


class ListSchedule(UpdateSchedule):
    """Updates at the given steps."""

    def __init__(self, steps: Sequence[int]) -> None:
        super().__init__(steps=list(steps))


FreqUpdateSchedule = FreqSchedule
ListUpdateSchedule = ListSchedule


def make_hyperparam_schedule(
    schedule: Union[float, Sequence[float], Dict[str, Any], Callable[[int], float]]
) -> HyperParameterSchedule:
    """Makes the schedule of a number, a list (cycling), a dict with `type`, or f(step)."""
    if isinstance(schedule, HyperParameterSchedule):
        return schedule
    if isinstance(schedule, dict):
        made: HyperParameterSchedule = _Keys(schedule)
        made(0)  # refuses mistakes
        return made
    if isinstance(schedule, (list, tuple)):
        return Cycling(schedule)
    if isinstance(schedule, (int, float)) or not callable(schedule):
        return Constant(float(schedule))  # type: ignore[arg-type]
    return Lambda(schedule)


def make_update_schedule(
    update: Union[None, int, Sequence[int], Dict[str, Any]] = None
) -> UpdateSchedule:
    """Makes the update schedule of {freq, start, stop}, {steps}, a frequency or a list of steps.
    None means an update at every step."""
    if isinstance(update, UpdateSchedule):
        return update
    if update is None or isinstance(update, int):
        return FreqSchedule(1 if update is None else update)
    made: UpdateSchedule = UpdateSchedule(update) if isinstance(update, dict) else ListSchedule(update)
    made.is_update_step(0)  # refuses mistakes
    return made


__all__ = [
    "Constant",
    "Cosine",
    "Cycling",
    "Exp",
    "FreqSchedule",
    "FreqUpdateSchedule",
    "HyperParameterSchedule",
    "Lambda",
    "Linear",
    "ListSchedule",
    "ListUpdateSchedule",
    "Polynomial",
    "Power",
    "UpdateSchedule",
    "make_hyperparam_schedule",
    "make_update_schedule",
]
