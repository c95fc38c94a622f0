"""Values by dtype and domain: plain ones, special ones, and the expressions that reach a domain.

A domain says which operands a function is defined and smooth for. Single calls draw values from it;
in composed programs, whose values are whatever came before, an adapter maps them into it.
"""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np

from minijax.difftest.programs import Type, Value, kind_of

__all__ = ["ADAPTERS", "DTYPES", "SPECIAL", "draw_value"]

DTYPES = {  # by kind: those of 32-bit mode, and those that 64-bit mode adds
    "f": (("float32", "float16", "bfloat16"), ("float64",)),
    "c": (("complex64",), ("complex128",)),
    "i": (("int32", "int8", "int16"), ("int64",)),
    "u": (("uint8", "uint32", "uint16"), ("uint64",)),
    "b": (("bool",), ()),
    "e": (("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "uint4"), ()),
}

# Bounds of the plain values of a domain.
RANGES = {
    "": (-2.0, 2.0), "positive": (0.25, 3.0), "unit": (-0.9, 0.9), "above1": (1.25, 4.0),
    "prob": (0.1, 0.9), "nonzero": (0.5, 2.0), "small": (-1.0, 1.0), "count": (0.0, 4.0),
    "index": (0.0, 2.0), "large": (-30.0, 30.0), "spd": (-1.0, 1.0), "lower": (-1.0, 1.0),
    "square": (-1.0, 1.0), "sorted": (-2.0, 2.0), "shift": (0.0, 6.0),
}  # fmt: skip

# By domain: templates that map a float (or complex) and an integer operand into it.
ADAPTERS = {
    "positive": ("jnp.abs(A) + 0.5", "jnp.abs(A) % 5 + 1"),
    "unit": ("jnp.tanh(A) * 0.9", "A * 0"),
    "above1": ("jnp.abs(A) + 1.5", "jnp.abs(A) % 5 + 1"),
    "prob": ("jax.nn.sigmoid(A)", "A * 0"),
    "nonzero": ("jnp.where(A == 0, 1, A)", "jnp.where(A == 0, 1, A)"),
    "small": ("jnp.tanh(A)", "A % 3"),
    "count": ("jnp.floor(jnp.abs(A)) % 4", "A % 4"),
    "index": ("A * 0", "A % 2"),
    "shift": ("A * 0", "A % 7"),
    "spd": (
        "jnp.matmul(jnp.tanh(A), jnp.tanh(A).mT.conj()) + 2 * jnp.eye(A.shape[-1], dtype=A.dtype)",
        "A",
    ),
    "lower": ("jnp.tril(jnp.tanh(A), -1) + 2 * jnp.eye(A.shape[-1], dtype=A.dtype)", "A"),
    "square": ("jnp.tanh(A) + 3 * jnp.eye(A.shape[-1], dtype=A.dtype)", "A"),
    "sorted": ("jnp.sort(A, axis=-1)", "jnp.sort(A, axis=-1)"),
}

_TINY = {"float16": 2**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}


def _float_specials(dtype: str) -> tuple[str, ...]:
    """Return the texts of special values of a float dtype."""
    info = ml_dtypes.finfo(dtype)
    big, small = float(info.max), float(info.tiny)
    numbers = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, big, -big, small, -small, float(info.eps))
    found = [repr(x) for x in numbers]
    if dtype in _TINY:
        near = (1 + float(info.eps), 1 - float(info.eps) / 2, 88.5, -88.5, 710.0, 11.1, 1e-3, 3e4)
        found += ["inf", "-inf", "nan", repr(_TINY[dtype]), *map(repr, near)]
    return tuple(found)


def _integer_specials(dtype: str) -> tuple[str, ...]:
    info = ml_dtypes.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    around = {low, low + 1, high, high - 1, 0, 1, 2, 3, info.bits - 1, info.bits, high // 2}
    if low < 0:
        around |= {-1, -2, -info.bits}
    return tuple(str(x) for x in sorted(around) if low <= x <= high)


def _complex_specials(dtype: str) -> tuple[str, ...]:
    parts = ("0.0", "-0.0", "1.0", "-1.0", "inf", "-inf", "nan", "0.5", "2.0")
    return tuple(f"complex({x}, {y})" for x in parts for y in parts)


def _specials(dtype: str) -> tuple[str, ...]:
    kind = kind_of(dtype)
    if kind == "b":
        return ("True", "False")
    return {"c": _complex_specials, "f": _float_specials}.get(kind, _integer_specials)(dtype)


SPECIAL = {name: _specials(name) for old, new in DTYPES.values() for name in old + new}


def draw_value(rng: random.Random, kind: Type, domain: str = "", special: float = 0.0) -> Value:
    """Draw a value of a type: from a domain, with special values at a given rate.

    - `special`: the probability of each element to be a special value of its dtype
    """
    elements = []
    low, high = RANGES[domain]
    for _ in range(kind.size):
        if special and rng.random() < special:
            elements.append(rng.choice(SPECIAL[kind.dtype]))
        else:
            elements.append(_plain(rng, kind, low, high))
    if domain == "sorted" and not special:
        elements.sort(key=lambda x: complex(x).real if kind.kind == "c" else float(eval(x)))
    matrix = len(kind.shape) > 1 and kind.shape[-1] == kind.shape[-2]
    plain = not any("n" in x for x in elements)  # neither inf nor nan
    if domain in ("spd", "lower", "square") and matrix and plain and kind.kind in "fciu":
        elements = _matrices(elements, kind, domain)
    return Value(kind, tuple(elements))


def _plain(rng: random.Random, kind: Type, low: float, high: float) -> str:
    letter = kind.kind
    if letter == "b":
        return str(rng.random() < 0.5)
    if letter in "iu":
        start = max(int(low), 0) if letter == "u" else int(low * 2)
        return str(rng.randint(min(start, 1), min(max(int(high * 2), 1), 7)))
    if letter == "c":
        return f"complex({round(rng.uniform(low, high), 2)}, {round(rng.uniform(-1, 1), 2)})"
    return repr(round(rng.uniform(low, high), 2))


def _matrices(elements: list[str], kind: Type, domain: str) -> list[str]:
    """Make matrices well-conditioned: Hermitian and positive, triangular, or diagonally dominant."""
    numbers = np.array([eval(x) for x in elements]).reshape(kind.shape)
    n = kind.shape[-1]
    if domain == "spd":
        numbers = (numbers + np.conj(np.swapaxes(numbers, -1, -2))) / 2
    if domain == "lower":
        numbers = np.tril(numbers)
    if kind.kind in "fc":
        numbers = numbers + (n + 1) * np.eye(n)
    flat = numbers.reshape(-1).tolist()
    if kind.kind != "c":
        return [repr(round(x, 3)) if kind.kind == "f" else str(int(x)) for x in flat]
    return [f"complex({round(x.real, 3)}, {round(x.imag, 3)})" for x in flat]
