"""Names in configurations for your own algorithms, layers, data and schedules."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Type, TypeVar

from lacuna import _lacuna, data, nn

_T = TypeVar("_T", bound=Callable[..., Any])
_registered: Dict[str, Callable[..., Any]] = {}
_kinds: Dict[str, str] = {}
_found: Set[str] = set()  # names of classes that nobody has registered
_importing = False


def _doc(thing: Callable[..., Any], otherwise: str) -> str:
    import inspect  # it takes long

    return (inspect.getdoc(thing) or otherwise).split("\n")[0]


def _add_algorithm(name: str, cls: Callable[..., Any]) -> None:
    def make(keys: Dict[str, Any], seed: int) -> Any:
        import inspect

        newest = _class_named(name) if name in _found else None
        known: Callable[..., Any] = newest or _registered[name]
        try:
            inspect.signature(known.__init__)  # type: ignore[misc]
        except ValueError:  # inherited from the module, which takes all keys
            return known(**keys, seed=seed)
        has_seed = nn.takes(known.__init__, "seed")  # type: ignore[misc]
        return known(**keys, seed=seed) if has_seed else known(**keys)

    _lacuna._register_algorithm(name, _doc(cls, "an algorithm of a Python program"), make)


def _add_layer(name: str, cls: Callable[..., Any]) -> None:
    def make(keys: Dict[str, Any], input_shape: Tuple[int, ...]) -> Any:
        known = _registered[name]
        if nn.takes(known, "input_shape"):
            keys = {"input_shape": input_shape, **keys}
        return known(**keys)

    _lacuna._register_layer(name, _doc(cls, "a module of a Python program"), make)


def _add_data(name: str, thing: Callable[..., Any]) -> None:
    def make(keys: Dict[str, Any], seed: int) -> Any:
        known = _registered[name]
        if nn.takes(known, "seed"):
            keys = {"seed": seed, **keys}
        if isinstance(known, type) and nn.takes(known, "split"):
            return data.splits_of({s: known(split=s, **keys) for s in ("train", "test")})
        return data.splits_of(known(**keys))

    _lacuna._register_dataset(name, _doc(thing, "data of a Python program"), make)


def _add_schedule(name: str, _: Callable[..., Any]) -> None:
    _lacuna._register_schedule(name, lambda step: float(_registered[name](step)))


_ADD = {
    "algorithm": _add_algorithm,
    "layer": _add_layer,
    "data": _add_data,
    "schedule": _add_schedule,
}


def _kind_of(thing: Any, name: str) -> str:
    if not isinstance(thing, type):
        return "schedule"
    if issubclass(thing, _lacuna.SparsityAlgorithm):
        return "algorithm"
    if issubclass(thing, nn.Module):
        return "layer"
    if issubclass(thing, _lacuna.Dataset):
        return "data"
    raise TypeError(f"register: {name} is not a SparsityAlgorithm, nn.Module or Dataset")


def register(name: Optional[str] = None, *, kind: Optional[str] = None) -> Callable[[_T], _T]:
    """A decorator that gives a class or a function a name in configurations.

    - A class derived from `lacuna.sparse.SparsityAlgorithm` is used by `sparsity: {algorithm: NAME}`.
      It gets the other keys of the entry, and `seed`, as keywords.
    - A class derived from `lacuna.nn.Module` is used by `model: [{type: NAME}]`. It gets `input_shape`
      if its `__init__` accepts it.
    - A class derived from `lacuna.Dataset` is used by `data: {type: NAME}`. If its `__init__`
      accepts `split`, it is made once for "train" and once for "test".
    - A function f(step) is a schedule, used by `lr: {type: NAME}`.
    - A function with kind="data" is used by `data: {type: NAME}`. It returns what `train` accepts as
      `data`.

    name: by default the name of the class or function. Registering a name again replaces it; a name
    that lacuna itself uses raises StateError. Runs of `sweep`, and of the program
    `python3 -m lacuna --import MODULE`, know the names that a module registers on import.
    """
    if name is not None and not isinstance(name, str):
        raise TypeError("register: expected a name, as in @lacuna.register('mine')")
    if kind is not None and kind not in _ADD:
        raise ValueError(f"register: kind is one of {', '.join(_ADD)}, found {kind!r}")

    def decorate(thing: _T) -> _T:
        if not callable(thing):
            raise TypeError(f"register: expected a class or a function, found {thing!r}")
        known = thing.__name__ if name is None else name
        is_class = isinstance(thing, type)
        found = _kind_of(thing, known) if kind is None or is_class else kind
        if kind is not None and found != kind:
            raise TypeError(f"register: {known} is of kind {found}, not {kind}")
        if _kinds.get(known, found) != found:
            raise _lacuna.StateError(f"'{known}' is registered already, as {_kinds[known]}")
        is_new = known not in _registered
        before = _registered.get(known)
        _registered[known] = thing
        try:
            if is_new:
                _ADD[found](known, thing)
        except _lacuna.StateError:
            if before is None:
                del _registered[known]
            raise
        _kinds[known] = found
        _found.discard(known)
        if found == "algorithm":
            thing._lacuna_name = known  # type: ignore[attr-defined]
        return thing

    return decorate


def _subclasses(cls: type) -> Iterator[type]:
    for one in cls.__subclasses__():
        yield one
        yield from _subclasses(one)


def _class_named(name: str) -> Optional[Type[_lacuna.SparsityAlgorithm]]:
    """The newest algorithm's class of that name, as written if there is one, else in any case. The
    module may stand before it."""
    own = [c for c in _subclasses(_lacuna.SparsityAlgorithm) if not c.__module__.startswith("lacuna.")]
    folds: List[Callable[[str], str]] = [str, str.lower]
    for fold in folds:
        for cls in reversed(own):
            names = (
                cls.__name__,
                f"{cls.__module__}.{cls.__name__}",
                f"{cls.__module__}.{cls.__qualname__}",
            )
            if fold(name) in [fold(one) for one in names]:
                return cls
    return None


def _look_up_algorithm(name: str) -> str:
    """The name under which the registry has an algorithm of a class that is called so."""
    cls = _class_named(name)
    return name if cls is None else _name_of(cls)


def _name_of(cls: Type[_lacuna.SparsityAlgorithm]) -> str:
    known = cls.__dict__.get("_lacuna_name")
    if known is None:
        known = cls.__name__
        register(known)(cls)
        _found.add(known)
    return str(known)


_lacuna._set_algorithm_lookup(_look_up_algorithm)


def name_of_algorithm(cls: Type[_lacuna.SparsityAlgorithm]) -> str:
    """The name under which the registry has an algorithm's class."""
    if not issubclass(cls, _lacuna.SparsityAlgorithm):
        raise TypeError(f"algorithm: expected a name or a SparsityAlgorithm, found {cls!r}")
    if cls.__module__ == "lacuna._lacuna":
        return "semi_sparse" if cls is _lacuna.SemiSparse else cls.__name__
    return _name_of(cls)


def class_of_algorithm(name: str) -> Type[_lacuna.SparsityAlgorithm]:
    """Returns the class of the algorithm with this name. Case does not matter, except in a name that
    was given to `register`. Raises ConfigError for an unknown name, and for an algorithm that has
    no class in Python (dense, dynamic, srigl, structured and the one-shot methods): `configure`
    makes these."""
    for cls in _subclasses(_lacuna.SparsityAlgorithm):
        builtin = cls.__module__ == "lacuna._lacuna"
        if builtin and name.lower().replace("_", "") == cls.__name__.lower():
            return cls
    known = _registered.get(name)
    if isinstance(known, type) and issubclass(known, _lacuna.SparsityAlgorithm):
        return known
    found = _class_named(name)
    if found is None:
        try:
            _lacuna.configure({"algorithm": name})
        except _lacuna.ConfigError as error:
            if "unknown sparsity algorithm" in str(error):
                raise  # it says which names there are
        raise _lacuna.ConfigError(
            f"the algorithm '{name}' has no class in Python; use configure() to make it"
        )
    return found


def imports() -> List[str]:
    """Arguments by which `python3 -m lacuna` imports all modules that have registered names: a
    file, or a module's name. What has been registered without a file is not among them."""
    arguments: List[str] = []
    for thing in _registered.values():
        module = sys.modules.get(getattr(thing, "__module__", None) or "")
        file = getattr(module, "__file__", None)
        if module is None or file is None or module.__name__.split(".")[0] == "lacuna":
            continue
        name = module.__name__
        where = os.path.abspath(file) if name == "__main__" or "." not in name else name
        if where not in arguments:
            arguments += ["--import", where]
    return arguments


def unknown_to_others() -> List[str]:
    """Names that have been registered without a file, as in a notebook."""
    return [
        name
        for name, thing in _registered.items()
        if getattr(sys.modules.get(getattr(thing, "__module__", "")), "__file__", None) is None
    ]


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """While it lasts, nothing may be trained: a script is read for the names that it registers."""
    global _importing
    _importing = True
    try:
        yield
    finally:
        _importing = False


def require_no_import(what: str) -> None:
    """Raises StateError while a script is read for its names."""
    if _importing:
        raise _lacuna.StateError(
            f"{what} is called while this script is read for the names that it registers; put the "
            "call under `if __name__ == '__main__':`"
        )


def import_names(modules: Sequence[str]) -> None:
    """Imports modules, by name or by file, for the names that they register."""
    with importing():
        for module in modules:
            if not module.endswith(".py"):
                importlib.import_module(module)
                continue
            import runpy

            sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
            runpy.run_path(module, run_name="__lacuna_import__")
