"""The states of an optimizer, by parameter and by name."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple, Union

import numpy as np

from lacuna import _lacuna
from lacuna._lacuna import Parameter


class StateArray(np.ndarray):  # type: ignore[type-arg]
    """A view of one state of a parameter. Set requires_dense to keep it at every position."""

    _place: Tuple[_lacuna.Optimizer, str, str]

    @property
    def requires_dense(self) -> bool:
        """Whether the state is kept at every position. Works in layouts that store every position."""
        optimizer, parameter, name = self._place
        return optimizer.requires_dense(parameter, name)

    @requires_dense.setter
    def requires_dense(self, dense: bool) -> None:
        optimizer, parameter, name = self._place
        optimizer.set_requires_dense(parameter, name, dense)


class States:
    """The type of `optimizer.state`.

    optimizer.state[p] has all states of a parameter (or its name) as arrays by name, and creates
    missing ones as zeros. optimizer.state(p) has the existing ones. A state's `requires_dense =
    True` keeps it at every position, whatever the mask.
    """

    def __init__(self, optimizer: _lacuna.Optimizer) -> None:
        self._optimizer = optimizer

    def __call__(self, parameter: Union[str, Parameter]) -> Dict[str, StateArray]:
        """Returns the existing states of a parameter."""
        return self._arrays(parameter, False)

    def __getitem__(self, parameter: Union[str, Parameter]) -> Dict[str, StateArray]:
        """Returns all states of a parameter."""
        return self._arrays(parameter, True)

    def _arrays(self, parameter: Union[str, Parameter], made: bool) -> Dict[str, StateArray]:
        name = parameter if isinstance(parameter, str) else parameter.name
        arrays: Dict[str, StateArray] = {}
        for state, values in self._optimizer._states(parameter, made).items():
            array = values.view(StateArray)
            array._place = (self._optimizer, str(name), state)
            arrays[state] = array
        return arrays

    def __contains__(self, parameter: Any) -> bool:
        return any(parameter is one or parameter == one.name for one in self)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._optimizer.parameters)

    def __len__(self) -> int:
        return len(self._optimizer.parameters)

    def keys(self) -> List[Parameter]:
        """The parameters that the optimizer trains."""
        return list(self)

    def values(self) -> List[Dict[str, StateArray]]:
        """Returns the states of each parameter."""
        return [self[parameter] for parameter in self]

    def items(self) -> List[Tuple[Parameter, Dict[str, StateArray]]]:
        """Returns pairs of a parameter and its states."""
        return [(parameter, self[parameter]) for parameter in self]
