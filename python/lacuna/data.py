"""Data that a call is given: arrays, pairs, or datasets, as splits."""

from __future__ import annotations

import contextlib
from typing import Any, ContextManager, Dict, Iterable, Mapping, Optional, Tuple, Union

from lacuna import _lacuna
from lacuna._lacuna import ArrayDataset, Dataset

Given = Union[Dataset, Tuple[Any, Any], Mapping[str, Any], Iterable[Any]]


class _Wrapped(Dataset):
    """Something else that has __len__ and __getitem__, as a dataset of PyTorch's has."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self._source = source
        names = getattr(source, "classes", None)
        if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
            self.class_names = list(names)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: Any) -> Tuple[Any, Any]:
        x, y = self._source[index]
        return x, y


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def _is_pair(example: Tuple[Any, ...]) -> bool:
    if len(example) != 2:
        raise TypeError(f"found an example with {len(example)} part{'' if len(example) == 1 else 's'}")
    return True


def as_dataset(given: Given) -> Dataset:
    """Makes a dataset from examples: a Dataset; a pair of arrays (x, y); an object with `__len__`
    and `__getitem__`, such as a dataset of PyTorch; or an iterable of pairs (x, y), which is read once
    and stored as arrays. A DataLoader of PyTorch yields batches: give its `dataset`. Raises TypeError,
    DataError, ShapeError.
    """
    if isinstance(given, Dataset):
        return given
    if isinstance(given, tuple) and len(given) == 2 and all(_is_array(one) for one in given):
        return ArrayDataset(*given)
    if isinstance(given, (str, bytes, Mapping)) or _is_array(given):
        raise TypeError(
            f"expected a dataset, a pair of arrays (x, y) or examples (x, y), found {type(given)!r}"
        )
    if hasattr(given, "dataset") and hasattr(given, "batch_size"):
        raise TypeError(
            f"{type(given)!r} yields batches of examples: give its `dataset`, and `train.batch_size` in the "
            "configuration"
        )
    if hasattr(given, "__getitem__") and hasattr(given, "__len__"):
        if not isinstance(given, (list, tuple)):
            return _Wrapped(given)
    import numpy

    try:
        pairs = [(pair[0], pair[1]) for pair in map(tuple, given) if _is_pair(pair)]
    except (TypeError, ValueError) as error:
        raise TypeError(f"expected an iterable of pairs (x, y): {error}") from None
    if not pairs:
        raise _lacuna.DataError("the examples are empty")
    try:
        x = numpy.stack([numpy.asarray(x) for x, _ in pairs])
        y = numpy.stack([numpy.asarray(y) for _, y in pairs])
    except ValueError:
        raise _lacuna.ShapeError("the examples have different shapes") from None
    return ArrayDataset(x, y)


def splits_of(given: Given) -> Dict[str, Optional[Dataset]]:
    """The splits of data that a call is given, or that a registered name stands for."""
    named = given if isinstance(given, Mapping) else {"train": given}
    splits = {name: None if one is None else as_dataset(one) for name, one in named.items()}
    train = splits.get("train")
    if train is not None and train.num_classes > 0:
        for name, one in splits.items():
            if one is None or name == "train" or one.num_classes in (0, train.num_classes):
                continue
            if type(one) is not ArrayDataset:
                one.num_classes = train.num_classes
                continue
            # The largest class may be missing in a small split.
            x, y = named[name] if isinstance(named[name], tuple) else (None, None)
            if x is None or one.num_classes > train.num_classes:
                raise _lacuna.DataError(
                    f"the split {name} has {one.num_classes} classes, train has "
                    f"{train.num_classes}; give both num_classes"
                )
            splits[name] = ArrayDataset(x, y, num_classes=train.num_classes)
    return splits


def given_to(data: Optional[Given]) -> ContextManager[Any]:
    """While it is entered, a configuration's data of type `python` is this."""
    if data is None:
        return contextlib.nullcontext()
    return _lacuna._GivenData(splits_of(data))
