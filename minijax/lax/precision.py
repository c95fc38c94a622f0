"""How exactly products are computed: `Precision`, dot algorithms, and how they are written.

XLA's CPU computes float32 products exactly whatever is asked for; accelerators have faster, coarser
units, and use them at `Precision.DEFAULT`.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple, TypeAlias, Union

import ml_dtypes
import numpy as np

from minijax.config import local

__all__ = ["DotAlgorithm", "DotAlgorithmPreset", "Precision", "PrecisionLike"]

_ALIASES = {
    None: 0, "default": 0, "fastest": 0, "bfloat16": 0,
    "high": 1, "bfloat16_3x": 1, "tensorfloat32": 1,
    "highest": 2, "float32": 2,
}  # fmt: skip


class Precision(enum.Enum):
    """Precision of matrix products and convolutions on accelerators, whatever the operands' dtype.

    - `DEFAULT` ("default", "fastest", "bfloat16"): the fastest
    - `HIGH` ("high", "bfloat16_3x", "tensorfloat32"): slower and more accurate
    - `HIGHEST` ("highest", "float32"): the precision of the operands' dtype

    ValueError for another name. Source: the StableHLO attribute `precision`.

    >>> lax.Precision("high").name
    'HIGH'
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value):
        number = _ALIASES.get(value) if isinstance(value, (str, type(None))) else None
        return None if number is None else cls(number)

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """Algorithm of a matrix product, given by dtypes and numbers of components.

    - `lhs_precision_type`, `rhs_precision_type`: dtypes to which the operands are rounded
    - `accumulation_type`: dtype of the sums
    - `lhs_component_count`, `rhs_component_count`: numbers of terms into which elements are split
    - `num_primitive_operations`: number of products of such terms
    - `allow_imprecise_accumulation`: whether sums may be less precise

    Source: the StableHLO attribute `dot_algorithm`.

    >>> lax.DotAlgorithm(jnp.float32, jnp.float32, jnp.float32).num_primitive_operations
    1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


_BF16, _F16, _F32, _F64 = ml_dtypes.bfloat16, np.float16, np.float32, np.float64
_F8_OUTPUTS = (
    _F32, _F16, _BF16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e4m3b11fnuz,
)  # fmt: skip


class _Preset(NamedTuple):
    """The dtypes that a preset takes (None: any), and the fields of its StableHLO attribute."""

    storage: tuple | None = None
    accumulation: Any = None
    operands: str = ""
    operations: int = 1
    imprecise: bool = False
    on_cpu: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Named algorithms of matrix products: dtypes of operands and sums, and number of products.

    Accepted wherever `precision` is. Source: the StableHLO attribute `dot_algorithm`.

    >>> lax.DotAlgorithmPreset.BF16_BF16_F32.name
    'BF16_BF16_F32'
    """

    DEFAULT = 1
    ANY_F8_ANY_F8_F32 = 2
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 3
    ANY_F8_ANY_F8_ANY = 4
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 5
    F16_F16_F16 = 6
    F16_F16_F32 = 7
    BF16_BF16_BF16 = 8
    BF16_BF16_F32 = 9
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 12
    TF32_TF32_F32 = 13
    TF32_TF32_F32_X3 = 14
    F32_F32_F32 = 15
    F64_F64_F64 = 16

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """The dtypes the left operand may be stored in; None for any."""
        return _PRESETS[self].storage

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """The dtypes the right operand may be stored in; None for any."""
        return _PRESETS[self].storage

    @property
    def accumulation_type(self) -> Any:
        """The dtype of the sums; None for that of the result."""
        return _PRESETS[self].accumulation

    def supported_output_types(self, lhs_dtype: Any, rhs_dtype: Any) -> tuple[Any, ...] | None:
        """The dtypes a result may have for operands of these dtypes; None for any."""
        preset = _PRESETS[self]
        if preset.accumulation is None:
            return None
        if preset.operands == "any":
            return _F8_OUTPUTS
        outputs = (preset.accumulation,)
        first = preset.storage[0]
        if first is not preset.accumulation and lhs_dtype == rhs_dtype == np.dtype(first):
            outputs = (*outputs, first)
        return outputs


# The ways of asking for a precision: one for both operands, or one for each.
PrecisionLike: TypeAlias = Union[  # noqa: UP007
    Precision, str, tuple[Precision, Precision], tuple[str, str], DotAlgorithm,
    DotAlgorithmPreset, None,
]  # fmt: skip


_PRESETS = {
    DotAlgorithmPreset[name]: _Preset(*fields)
    for name, *fields in (
        ("DEFAULT",),
        ("ANY_F8_ANY_F8_F32", None, _F32, "any"),
        ("ANY_F8_ANY_F8_F32_FAST_ACCUM", None, _F32, "any", 1, True),
        ("ANY_F8_ANY_F8_ANY", None, None, "any"),
        ("ANY_F8_ANY_F8_ANY_FAST_ACCUM", None, None, "any", 1, True),
        ("F16_F16_F16", (_F16,), _F16, "f16", 1, False, True),
        ("F16_F16_F32", (_F16,), _F32, "f16"),
        ("BF16_BF16_BF16", (_BF16, _F32), _BF16, "bf16"),
        ("BF16_BF16_F32", (_BF16, _F32), _F32, "bf16", 1, False, True),
        ("BF16_BF16_F32_X3", (_F32,), _F32, "bf16", 3, False, True),
        ("BF16_BF16_F32_X6", (_F32,), _F32, "bf16", 6, False, True),
        ("BF16_BF16_F32_X9", (_F32,), _F32, "bf16", 9),
        ("TF32_TF32_F32", (_F32,), _F32, "tf32"),
        ("TF32_TF32_F32_X3", (_F32,), _F32, "tf32", 3),
        ("F32_F32_F32", (_F32,), _F32, "f32", 1, False, True),
        ("F64_F64_F64", (_F64,), _F64, "f64", 1, False, True),
    )
}

CanonicalPrecision = tuple[Precision, Precision] | DotAlgorithmPreset | DotAlgorithm | None
_known: dict[Any, CanonicalPrecision] = {}


def canonical_precision(precision: Any) -> CanonicalPrecision:
    """Canonicalize a `precision` argument: None, a pair of `Precision`, or an algorithm.

    None stands for the setting `default_matmul_precision`. ValueError for anything that is no
    precision.
    """
    if precision is None:
        precision = local.context.settings.default_matmul_precision
        if precision is None:
            return None
    try:
        return _known[precision]
    except (KeyError, TypeError):
        pass
    chosen = _canonical(precision)
    _known[precision] = chosen
    return chosen


def _canonical(precision: Any) -> CanonicalPrecision:
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, Precision):
        return precision, precision
    if isinstance(precision, str):
        if precision in _ALIASES:
            return (Precision(precision),) * 2
        if precision in DotAlgorithmPreset.__members__:
            return DotAlgorithmPreset[precision]
    elif isinstance(precision, tuple) and len(precision) == 2:
        if all(isinstance(p, Precision) or (p in _ALIASES and p) for p in precision):
            return Precision(precision[0]), Precision(precision[1])
    names = ", ".join(repr(name) for name in _ALIASES if name)
    raise ValueError(
        f"Precision argument must be one of: None, a lax.Precision, one of {names}, a tuple of two "
        "of these, a lax.DotAlgorithmPreset or its name, or a lax.DotAlgorithm; but got "
        f"{precision!r}."
    )


# -- as StableHLO attributes ----------------------------------------------------------------------


def precision_config(precision: CanonicalPrecision) -> str:
    """The attribute `precision_config`, for both operands."""
    if type(precision) is not tuple:
        precision = (Precision.DEFAULT, Precision.DEFAULT)
    items = ", ".join([f"#stablehlo<precision {p.name}>" for p in precision])
    return f"precision_config = [{items}]"


def has_algorithm(precision: CanonicalPrecision) -> bool:
    """Whether it names an algorithm, which says what operands become."""
    if isinstance(precision, DotAlgorithmPreset):
        return precision is not DotAlgorithmPreset.DEFAULT
    return isinstance(precision, DotAlgorithm)


def algorithm_types(precision: Any, lhs: Any, rhs: Any, out: Any) -> tuple[Any, Any, Any]:
    """The dtypes in which an algorithm takes its operands and gives its result."""
    if not isinstance(precision, DotAlgorithmPreset):
        return lhs, rhs, out
    storage = _PRESETS[precision].storage
    if storage is not None:
        lhs, rhs = (dtype if dtype in storage else np.dtype(storage[0]) for dtype in (lhs, rhs))
    outputs = precision.supported_output_types(lhs, rhs)
    if outputs is not None and out not in outputs:
        out = np.dtype(outputs[0])
    return lhs, rhs, out


def algorithm_attribute(precision: Any, platform: str, lhs: str, rhs: str, out: str) -> str:
    """The attribute `algorithm`, or nothing if none is asked for.

    `lhs`, `rhs` and `out` are element types as text. ValueError where the platform has none such.
    """
    if not has_algorithm(precision):
        return ""
    if isinstance(precision, DotAlgorithm):
        fields = list(precision)
        fields[:3] = [_element_type(t) for t in precision[:3]]
        supported, of_tiny = platform != "cpu", False
    else:
        preset = _PRESETS[precision]
        total = _element_type(preset.accumulation) if preset.accumulation else out
        left, right = (lhs, rhs) if preset.operands == "any" else (preset.operands,) * 2
        fields = [left, right, total, 1, 1, preset.operations, preset.imprecise]
        supported, of_tiny = preset.on_cpu or platform != "cpu", preset.operands == "any"
    if not supported:
        usable = ", ".join(p.name for p, preset in _PRESETS.items() if preset.on_cpu)
        raise ValueError(
            f"The precision '{precision}' is not supported by dot_general on "
            f"{platform.upper()}: give a lax.Precision, or one of {usable}."
        )
    if of_tiny and not lhs[:2] == rhs[:2] == "f8":
        given = " and ".join(_names.get(kind, kind) for kind in (lhs, rhs))
        raise ValueError(
            f"The dot algorithm {str(precision)!r} requires both inputs to have float8 dtypes. Got "
            f"{given} instead: convert them with .astype(...)."
        )
    fields[6] = "true" if fields[6] else "false"
    text = ", ".join(
        f"{name} = {value}" for name, value in zip(DotAlgorithm._fields, fields, strict=True)
    )
    return f", algorithm = #stablehlo.dot_algorithm<{text}>"


_element_types = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64"}
_names = {text: name for name, text in _element_types.items()}


def _element_type(dtype: Any) -> str:
    name = np.dtype(dtype).name
    return _element_types.get(name, name.replace("float8_e", "f8E").upper().replace("F8E", "f8E"))
