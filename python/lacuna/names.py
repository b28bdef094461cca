"""Values that some APIs have as attributes and others as functions, and that work as both here."""

from __future__ import annotations

from typing import Any, Callable, Tuple

from lacuna._lacuna import Parameter


class ParameterName(str):
    """A parameter's full name, which has the parameter's attributes: name.mask, name.shape."""

    parameter: Parameter

    def __new__(cls, parameter: Parameter) -> "ParameterName":
        """The name of a parameter."""
        name = super().__new__(cls, parameter.name)
        object.__setattr__(name, "parameter", parameter)
        return name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.parameter, attribute)

    def __setattr__(self, attribute: str, value: Any) -> None:
        setattr(self.parameter, attribute, value)

    def __array__(self, dtype: Any = None) -> Any:
        return self.parameter.__array__(dtype)

    def __reduce__(self) -> Tuple[Any, ...]:
        return str, (str(self),)


class _Callable:
    """Makes a number callable: a base to the left of int or float."""

    _function: Callable[..., Any]

    def __new__(cls, value: float, function: Callable[..., Any]) -> Any:
        """value, and what a call of it does."""
        made = super().__new__(cls, value)  # type: ignore[call-arg]
        made._function = function
        return made

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


class CallableInt(_Callable, int):
    """An integer that gives itself, or another value, when it is called."""

    def __reduce__(self) -> Tuple[Any, ...]:
        return int, (int(self),)


class CallableFloat(_Callable, float):
    """A number that gives another value when it is called."""

    def __reduce__(self) -> Tuple[Any, ...]:
        return float, (float(self),)
