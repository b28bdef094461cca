"""Names for algorithms and schedules of one's own."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Optional, TypeVar

from lacuna import _lacuna

_T = TypeVar("_T", bound=Callable[..., Any])
_registered: Dict[str, Callable[..., Any]] = {}


def _make(name: str) -> Callable[[Dict[str, Any], int], Any]:
    def make(keys: Dict[str, Any], seed: int) -> Any:
        cls = _registered[name]
        try:
            known = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
        except ValueError:  # inherited from the module, which takes all keys
            return cls(**keys, seed=seed)
        if any(p.name == "seed" or p.kind is inspect.Parameter.VAR_KEYWORD for p in known):
            return cls(**keys, seed=seed)
        return cls(**keys)

    return make


def register(name: Optional[str] = None) -> Callable[[_T], _T]:
    """Makes a class of algorithms, or a function of the step, a name in configurations.

    A class derived from `lacuna.sparse.SparsityAlgorithm` is what `sparsity: {algorithm: NAME}`
    makes, with the other keys of the entry as keywords, and `seed`. A function f(step) is a
    schedule: `lr: {type: NAME}`. Without a name it is the class's or function's own. A name that
    was registered before gets the new one; those that come with lacuna raise StateError.
    """

    def decorate(thing: _T) -> _T:
        known = thing.__name__ if name is None else name
        is_class = isinstance(thing, type)
        if is_class and not issubclass(thing, _lacuna.SparsityAlgorithm):  # type: ignore[arg-type]
            raise TypeError(f"register: {known} is no SparsityAlgorithm")
        is_new = known not in _registered
        _registered[known] = thing
        try:
            if is_new and is_class:
                doc = (inspect.getdoc(thing) or "an algorithm of a Python program").split("\n")[0]
                _lacuna._register_algorithm(known, doc, _make(known))
            elif is_new:
                _lacuna._register_schedule(known, lambda step: float(_registered[known](step)))
        except _lacuna.StateError:
            del _registered[known]
            raise
        if is_class:
            thing._lacuna_name = known  # type: ignore[attr-defined]
        return thing

    return decorate
