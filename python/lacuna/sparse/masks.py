"""Masks made of scores, with the counts and ties of the algorithms, and the first masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple, Union

from lacuna import _lacuna

if TYPE_CHECKING:  # slow, and in the stubs alone
    from numpy.typing import ArrayLike

    from lacuna._lacuna import Mask


class ScoreShaper:
    """How the positions of an array are divided into competitions of their own: here not at all."""

    _along = ""
    num_groups = 1


class ScoreFlattener(ScoreShaper):
    """One competition over the whole array."""


class OutputGroupScoreShaper(ScoreShaper):
    """Rows (outputs) in num_groups equal groups: `balance_out_groups`."""

    _along = "rows"

    def __init__(self, num_groups: int) -> None:
        self.num_groups = num_groups


class InputGroupScoreShaper(ScoreShaper):
    """Columns (inputs) in num_groups equal groups: `balance_in_groups`."""

    _along = "columns"

    def __init__(self, num_groups: int) -> None:
        self.num_groups = num_groups


def _groups(shaper: Optional[ScoreShaper]) -> Tuple[str, int]:
    return ("", 1) if shaper is None else (shaper._along, shaper.num_groups)


def make_mask_topk_sparsity(
    score: ArrayLike, sparsity: float, score_shaper: Optional[ScoreShaper] = None
) -> Mask:
    """The positions with the largest scores, int((1 - sparsity) size) of them; ties: the lower
    index."""
    return _lacuna._mask_of_largest(score, float(sparsity), *_groups(score_shaper))


def make_mask_drop_minimum(
    score: ArrayLike,
    mask: Mask,
    drop_fraction: float,
    score_shaper: Optional[ScoreShaper] = None,
) -> Mask:
    """The mask without a fraction of its positions, those with the smallest scores."""
    return _lacuna._mask_without_smallest(score, mask, float(drop_fraction), *_groups(score_shaper))


def make_mask_grow_maximum(
    score: ArrayLike,
    mask: Mask,
    sparsity: float,
    mask_nonzero: Optional[int] = None,
    score_shaper: Optional[ScoreShaper] = None,
) -> Mask:
    """The mask and others with the largest scores, until it has int((1 - sparsity) size)
    positions. mask_nonzero, how many it has already, is counted where it is absent."""
    return _lacuna._mask_with_largest(score, mask, float(sparsity), *_groups(score_shaper))


class InitMethod(str):
    """A built-in `init_method`, which is its name and makes a mask when it is called."""

    def __call__(
        self,
        p: Any,
        sparsity: float = 0.0,
        score_shaper: Optional[ScoreShaper] = None,
        device: Any = None,
    ) -> Mask:
        """The mask of this method for a parameter or an array. device is not used."""
        return _lacuna._first_mask(str(self), p, float(sparsity), *_groups(score_shaper))


random = InitMethod("random")
topk = InitMethod("topk")
from_zeros = InitMethod("from_zeros")
checkerboard = InitMethod("checkerboard")
balanced = InitMethod("balanced")


def make_init_method(
    init_method: Union[str, Callable[..., Any]]
) -> Union[InitMethod, Callable[..., Any]]:
    """The function f(p, sparsity) of an `init_method`, which may be one already. Raises
    ConfigError."""
    if not isinstance(init_method, str):
        return init_method
    _lacuna._first_mask(init_method, [[1.0]], 0.0, "", 1)  # refuses names that there are not
    return InitMethod(init_method)


__all__ = [
    "InitMethod",
    "InputGroupScoreShaper",
    "OutputGroupScoreShaper",
    "ScoreFlattener",
    "ScoreShaper",
    "balanced",
    "checkerboard",
    "from_zeros",
    "make_init_method",
    "make_mask_drop_minimum",
    "make_mask_grow_maximum",
    "make_mask_topk_sparsity",
    "random",
    "topk",
]
