"""The schedules and mask functions of `lacuna.sparse`, under the name that its users import."""

from lacuna.sparse import masks, schedules
from lacuna.sparse.masks import *
from lacuna.sparse.schedules import *

__all__ = [*masks.__all__, *schedules.__all__]
