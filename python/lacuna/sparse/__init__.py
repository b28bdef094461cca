"""Sparsity algorithms, with the names and arguments of the common sparsity APIs.

    s = lacuna.sparse.RigL(sparsity=0.9, update={"freq": 100, "stop": 1000}, drop_fraction=0.3)
    model.apply(s)
    optimizer.apply(s)

Keywords are the keys of an entry of a configuration's section `sparsity`, such as sparsity (a
number, a schedule, or f(step)), density, fan_in, init_method, param_filter, update, drop_fraction,
balance_in_groups, balance_out_groups, pattern, distribution and layout; and seed.

Some defaults differ from those of a configuration, because an algorithm knows neither the number of
steps nor the output layer. Without `param_filter`, the output layer becomes sparse too. Without
`update`, masks change at every step. GMP and Saliency need a schedule of the sparsity, such as
Polynomial(0.0, 0.9, start=0, end=750). The same holds for `configure`.
"""

from __future__ import annotations

from typing import Type

from lacuna._lacuna import (
    GMP,
    RigL,
    SET,
    SNFS,
    SNIP,
    STE,
    AcDc,
    DynamicSparsityAlgorithm,
    Group,
    Saliency,
    SemiSparse,
    SparseWeight,
    SparsityAlgorithm,
    Static,
    configure,
)
from lacuna.registry import class_of_algorithm, register
from lacuna.sparse import masks, schedules
from lacuna.sparse.masks import (
    InitMethod,
    InputGroupScoreShaper,
    OutputGroupScoreShaper,
    ScoreFlattener,
    ScoreShaper,
    balanced,
    checkerboard,
    from_zeros,
    make_init_method,
    make_mask_drop_minimum,
    make_mask_grow_maximum,
    make_mask_topk_sparsity,
    random,
    topk,
)
from lacuna.sparse.schedules import (
    Constant,
    Cosine,
    Cycling,
    Exp,
    FreqSchedule,
    FreqUpdateSchedule,
    HyperParameterSchedule,
    Lambda,
    Linear,
    ListSchedule,
    ListUpdateSchedule,
    Polynomial,
    Power,
    UpdateSchedule,
    make_hyperparam_schedule,
    make_update_schedule,
)

Dynamic = DynamicSparsityAlgorithm
SparseParameter = SparseWeight


def map_sparsity_algorithm(name: str) -> Type[SparsityAlgorithm]:
    """Returns the class that a name in configurations stands for: a built-in algorithm that has a
    class, or a subclass, registered or not. Case does not matter. Raises ConfigError."""
    return class_of_algorithm(name)


__all__ = [
    "AcDc",
    "Dynamic",
    "DynamicSparsityAlgorithm",
    "GMP",
    "Group",
    "RigL",
    "SET",
    "SNFS",
    "SNIP",
    "STE",
    "Saliency",
    "SemiSparse",
    "SparseParameter",
    "SparseWeight",
    "SparsityAlgorithm",
    "Static",
    "configure",
    "map_sparsity_algorithm",
    "register",
]
__all__ += masks.__all__ + schedules.__all__
