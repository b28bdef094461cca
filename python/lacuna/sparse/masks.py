"""Masks made from scores, by the algorithms' rules of rounding and ties, and first masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple, Union

from lacuna import _lacuna

if TYPE_CHECKING:  # slow, and in the stubs alone
    from numpy.typing import ArrayLike

    from lacuna._lacuna import Mask


class ScoreShaper:
    """Divides an array into groups of positions that compete separately. The base has one group."""

    _along = ""
    num_groups = 1


class ScoreFlattener(ScoreShaper):
    """One group: all positions of the array compete."""


class OutputGroupScoreShaper(ScoreShaper):
    """Divides rows (outputs) into num_groups equal groups, as `balance_out_groups` does."""

    _along = "rows"

    def __init__(self, num_groups: int) -> None:
        self.num_groups = num_groups


class InputGroupScoreShaper(ScoreShaper):
    """Divides columns (inputs) into num_groups equal groups, as `balance_in_groups` does."""

    _along = "columns"

    def __init__(self, num_groups: int) -> None:
        self.num_groups = num_groups


def _groups(shaper: Optional[ScoreShaper]) -> Tuple[str, int]:
    return ("", 1) if shaper is None else (shaper._along, shaper.num_groups)


def make_mask_topk_sparsity(
    score: ArrayLike, sparsity: float, score_shaper: Optional[ScoreShaper] = None
) -> Mask:
    """Returns the mask of the int((1 - sparsity) * size) positions with the largest scores. If
    scores are equal, the lower index is kept."""
    return _lacuna._mask_of_largest(score, float(sparsity), *_groups(score_shaper))


def make_mask_drop_minimum(
    score: ArrayLike,
    mask: Mask,
    drop_fraction: float,
    score_shaper: Optional[ScoreShaper] = None,
) -> Mask:
    """Returns the mask of the int((1 - drop_fraction) * n) positions with the largest scores, of the
    n positions of `mask`. If scores are equal, the lower index is kept."""
    return _lacuna._mask_without_smallest(score, mask, float(drop_fraction), *_groups(score_shaper))


def make_mask_grow_maximum(
    score: ArrayLike,
    mask: Mask,
    sparsity: float,
    mask_nonzero: Optional[int] = None,
    score_shaper: Optional[ScoreShaper] = None,
) -> Mask:
    """Returns the mask with positions of the largest scores added, until it has
    int((1 - sparsity) * size) positions. mask_nonzero is not used: the mask is counted."""
    return _lacuna._mask_with_largest(score, mask, float(sparsity), *_groups(score_shaper))


class InitMethod(str):
    """A built-in `init_method`: a string (its name) that can also be called to make a mask."""

    def __call__(
        self,
        p: Any,
        sparsity: float = 0.0,
        score_shaper: Optional[ScoreShaper] = None,
        device: Any = None,
    ) -> Mask:
        """Makes the mask for a parameter or an array. device is not used."""
        return _lacuna._first_mask(str(self), p, float(sparsity), *_groups(score_shaper))


random = InitMethod("random")
topk = InitMethod("topk")
from_zeros = InitMethod("from_zeros")
checkerboard = InitMethod("checkerboard")
balanced = InitMethod("balanced")


def make_init_method(
    init_method: Union[str, Callable[..., Any]]
) -> Union[InitMethod, Callable[..., Any]]:
    """Returns the function f(p, sparsity) of an `init_method`: a name, or such a function. Raises
    ConfigError."""
    if not isinstance(init_method, str):
        return init_method
    _lacuna._first_mask(init_method, [[1.0]], 0.0, "", 1)  # refuses unknown names
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
