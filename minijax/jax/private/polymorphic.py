"""Counterparts of upstream's private functions on symbolic shapes, for
`jax._src.export.shape_poly`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.core.avals import get_aval
from minijax.export import sizes
from minijax.features.queries import is_dim
from minijax.features.symbolic import dims
from minijax.features.symbolic.dims import DimExpr, UnexpectedDimVar

DimSize = int | DimExpr


class ShapeEvaluator:
    """Gives sizes their values, where variables have those of `env`."""

    def __init__(self, env: dict[str, Any]):
        self.env = env

    def evaluate(self, e: Any) -> Any:
        """The value of a size; UnexpectedDimVar if one of its variables has none."""
        if not is_dim(e):
            return e
        missing = sorted(e.variables() - set(self.env))
        if missing:
            raise UnexpectedDimVar(missing[0], f"These have {list(self.env)}.")
        return dims.evaluate(e, self.env)


class BoundsPrecision(enum.Enum):
    """The question for which bounds are asked; all are answered by the best that are known."""

    FOR_GEQ0_OR_LEQ0 = 0
    FOR_GEQ0_OR_LT0 = 1
    BEST = 2


def _bounds_decision(d: Any, prec: BoundsPrecision) -> tuple[float, float]:
    """Numbers that a size is never below, and never above; infinite where that is not known."""
    whole = lambda x: int(x) if math.isfinite(x) else x
    return whole(dims._lower(d)), whole(-dims._lower(-d))


def cmp_comparable(i1: Any, i2: Any) -> int:
    """-1, 0 or 1: which of the two is less."""
    return int(i1 > i2) - int(i1 < i2)


def shape_and_dtype_jax_array(a: Any) -> tuple[tuple[Any, ...], np.dtype]:
    """The shape and the dtype that an argument has as an array."""
    aval = get_aval(a) if not hasattr(a, "shape") or isinstance(a, (np.ndarray, np.generic)) else a
    return tuple(aval.shape), aval.dtype


def all_dim_vars(args_avals: Sequence[Any]) -> list[str]:
    """The variables in shapes, in order of their names."""
    found = {name for a in args_avals for d in a.shape if is_dim(d) for name in d.variables()}
    return sorted(found)


def args_kwargs_path_to_str(path: Sequence[Any]) -> str:
    """`args[0]['x']` for a path in `(args, kwargs)`."""
    return ("args", "kwargs")[path[0].idx] + tree_util.keystr(tuple(path[1:]))


def pretty_print_dimension_descriptor(
    args_kwargs_tree: Any, flat_arg_idx: int, dim_idx: int | None
) -> str:
    """`args[0]['x'].shape[1]` for a dimension of a leaf; the leaf alone for None."""
    name = sizes.argument_names(args_kwargs_tree)[flat_arg_idx]
    return name if dim_idx is None else f"{name}.shape[{dim_idx}]"


def compute_dim_vars_from_arg_shapes(
    args_avals: Sequence[Any], *actual_args: Any, args_kwargs_tree: Any
) -> tuple[Any, ...]:
    """The values of the variables, in order of their names, for arguments of a symbolic program.

    ValueError if their shapes do not tell them, or do not fit.
    """
    wanted = SimpleNamespace(in_avals=tuple(args_avals), in_tree=args_kwargs_tree)
    sizes.check_solvable(args_kwargs_tree, args_avals)
    values = sizes.check_sizes(wanted, [get_aval(x) for x in actual_args])
    return tuple([values[name] for name in all_dim_vars(args_avals)])
