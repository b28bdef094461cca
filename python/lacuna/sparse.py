"""Sparsity algorithms, with the names and arguments that users of sparsity APIs know.

    s = lacuna.sparse.RigL(sparsity=0.9, update={"freq": 100, "stop": 1000}, drop_fraction=0.3)
    model.apply(s)
    optimizer.apply(s)

Keywords are the keys of an entry of a configuration's section `sparsity`: sparsity (a number, a
schedule, or f(step)), init_method, param_filter, update, drop_fraction, balance_in_groups,
balance_out_groups, pattern, distribution, layout, and seed.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

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
from lacuna.registry import register

Dynamic = DynamicSparsityAlgorithm

# Schedules, as a configuration has them.


def Constant(value: float) -> Dict[str, Any]:
    """value."""
    return {"type": "constant", "value": value}


def Linear(init: float, slope: float) -> Dict[str, Any]:
    """init + step slope."""
    return {"type": "linear", "init": init, "slope": slope}


def Exp(init: float, gamma: float, final: float = 1.0) -> Dict[str, Any]:
    """final + (init - final) exp(step gamma)."""
    return {"type": "exp", "init": init, "gamma": gamma, "final": final}


def Power(init: float, beta: float) -> Dict[str, Any]:
    """init beta ** step."""
    return {"type": "power", "init": init, "beta": beta}


def Cosine(init: float, half_period: float, minimum: float = 0.0) -> Dict[str, Any]:
    """From init to minimum in half_period steps, and back, along a cosine."""
    return {"type": "cosine", "init": init, "half_period": half_period, "minimum": minimum}


def Cycling(values: List[float]) -> Dict[str, Any]:
    """The next value at every update."""
    return {"type": "cycling", "values": values}


def Polynomial(
    init: float, final: float, start: int, end: int, power: float = 3.0
) -> Dict[str, Any]:
    """From init at step start to final at step end, fast at first."""
    return {
        "type": "polynomial",
        "init": init,
        "final": final,
        "start": start,
        "end": end,
        "power": power,
    }


def FreqUpdateSchedule(freq: int, start: int = 0, stop: Optional[int] = None) -> Dict[str, Any]:
    """Updates every freq steps, from start on, before stop."""
    return {"freq": freq, "start": start} if stop is None else dict(freq=freq, start=start, stop=stop)


def ListUpdateSchedule(steps: List[int]) -> Dict[str, Any]:
    """Updates at these steps."""
    return {"steps": steps}


__all__ = [
    "AcDc",
    "Constant",
    "Cosine",
    "Cycling",
    "Dynamic",
    "DynamicSparsityAlgorithm",
    "Exp",
    "FreqUpdateSchedule",
    "GMP",
    "Group",
    "Linear",
    "ListUpdateSchedule",
    "Polynomial",
    "Power",
    "RigL",
    "SET",
    "SNFS",
    "SNIP",
    "STE",
    "Saliency",
    "SemiSparse",
    "SparseWeight",
    "SparsityAlgorithm",
    "Static",
    "configure",
    "register",
]
