"""The check that no random key is used twice: what the setting `debug_key_reuse` turns on.

With the setting on, `dispatch.Program` asks here before it runs a program on arrays of keys. Every
key that there is has a number. The program is walked with the numbers of its keys in their places:
primitives that move elements move the numbers, those that draw from a key or split it consume it,
and one that is consumed again raises KeyReuseError, which names both places. With the setting off
nothing of this is met.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import errors
from minijax.arrays.array import ArrayImpl
from minijax.core.avals import ShapedArray
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var
from minijax.core.source import capture, summarize
from minijax.lax.prng import KeyType

__all__ = ["watcher_of"]

_CONSUMERS = frozenset(("random_bits", "random_split", "random_gamma"))
_MOVERS = frozenset((
    "broadcast_in_dim", "concatenate", "copy", "dynamic_slice", "dynamic_update_slice",
    "expand_dims", "gather", "optimization_barrier", "reshape", "rev", "select_n", "slice",
    "squeeze", "stack", "stop_gradient", "transpose", "unstack",
))  # fmt: skip
_JOINERS = frozenset(("concatenate", "stack"))
_SMALL = 64  # indices of more elements than this are not followed

# -- the keys that there are ------------------------------------------------------------------------

_counter = itertools.count()
_consumed: dict[int, str] = {}  # where each key was consumed, by its number
_numbered: dict[int, tuple[weakref.ref, np.ndarray]] = {}  # by the id of an array of keys


def _fresh(shape: Sequence[int]) -> np.ndarray:
    """Numbers for new keys."""
    count = int(np.prod(shape, dtype=np.int64))
    numbers = np.fromiter(itertools.islice(_counter, count), np.int64, count)
    return numbers.reshape(shape)


def _numbers_of(keys: ArrayImpl) -> np.ndarray:
    found = _numbered.get(id(keys))
    if found is not None and found[0]() is keys:
        return found[1]
    numbers = _fresh(keys.shape)
    _note(keys, numbers)
    return numbers


def _note(keys: ArrayImpl, numbers: np.ndarray) -> None:
    place = id(keys)
    _numbered[place] = (weakref.ref(keys, lambda _: _numbered.pop(place, None)), numbers)


def _is_key(aval: Any) -> bool:
    return isinstance(aval, ShapedArray) and type(aval.dtype) is KeyType


# -- walking a program ------------------------------------------------------------------------------


class _Walk:
    """One look at a program: `consumed` holds what it consumes, by number, with the places.

    Values are the numbers of keys, or, of small integers in a library function, themselves; None
    stands for what is not followed.
    """

    def __init__(self, place: str | None):
        self.place = place  # of all equations, for a library function that is called at once
        self.consumed: dict[int, str] = {}

    def consume(self, numbers: np.ndarray, place: str) -> None:
        for number in np.unique(numbers).tolist():
            first = self.consumed.get(number) or _consumed.get(number)
            if first is not None:
                again = "again there" if first == place else f"again at {place}"
                raise errors.KeyReuseError(
                    f"Previously-consumed key used once more: it was consumed at {first}, and "
                    f"{again}. The same key gives the same numbers: split it (random.split) and use "
                    "each new key once; where the same numbers are wanted, use random.clone(key)."
                )
            self.consumed[number] = place

    def join(self, operands: Sequence[Any], place: str) -> None:
        """A key that is there twice in the result may not be consumed."""
        seen: set[int] = set()
        for x in operands:
            numbers = set() if x is None else set(x.reshape(-1).tolist())
            for number in numbers & seen:
                self.consumed.setdefault(number, place)
            seen |= numbers

    def closed(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        jaxpr = closed.jaxpr
        consts = [
            _numbers_of(c) if isinstance(c, ArrayImpl) and _is_key(c.aval) else _known(c)
            for c in closed.consts
        ]
        values = dict(zip(jaxpr.constvars, consts, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))

        def read(atom):
            return _known(atom.val) if isinstance(atom, Literal) else values.get(atom)

        for eqn in jaxpr.eqns:
            outs = self.equation(eqn, [read(x) for x in eqn.invars])
            values.update(zip(eqn.outvars, outs, strict=True))
        return [read(x) for x in jaxpr.outvars]

    def equation(self, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
        name = eqn.primitive.name
        followed = any(_is_key(x.aval) for x in (*eqn.invars, *eqn.outvars))
        rule = _CONTROL.get(name)
        if rule is not None:
            outs = rule(self, eqn, operands)
        elif name in _CONSUMERS:
            self.consume(operands[0], self.place or summarize(eqn.source))
            outs = [None] * len(eqn.outvars)
        elif name in _MOVERS and followed:
            outs = _moved(eqn, operands)
            if name in _JOINERS:
                self.join(operands, self.place or summarize(eqn.source))
        elif not followed and self.place is not None:
            outs = _computed(eqn, operands)
        else:
            inner = _inner(eqn)
            outs = [None] * len(eqn.outvars) if inner is None else self.closed(inner, operands)
        return _complete(outs, eqn.outvars)


def _complete(outs: Sequence[Any], outvars: Sequence[Var]) -> list[Any]:
    """Keys of which it is not known where they come from are new ones."""
    return [
        _fresh(v.aval.shape) if out is None and _is_key(v.aval) else out
        for out, v in zip(outs, outvars, strict=True)
    ]


def _known(x: Any) -> Any:
    """The value of a small array of integers or booleans."""
    if isinstance(x, (ArrayImpl, np.ndarray, np.generic, int)) and np.size(x) <= _SMALL:
        dtype = getattr(x, "dtype", np.dtype(np.int32))
        if isinstance(dtype, np.dtype) and dtype.kind in "biu":
            return np.asarray(x)
    return None


def _run(eqn: JaxprEqn, operands: Sequence[Any]) -> list[np.ndarray]:
    outs = eqn.primitive.bind(*operands, **eqn.params)
    return [np.asarray(x) for x in (outs if eqn.primitive.multiple_results else [outs])]


def _computed(eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """Compute small known integers, such as the index of a slice."""
    small = all(
        isinstance(v.aval, ShapedArray) and v.aval.size <= _SMALL and v.aval.dtype.kind in "biu"
        for v in eqn.outvars
    )
    if not small or any(x is None for x in operands):
        return [None] * len(eqn.outvars)
    return list(_run(eqn, operands))


def _moved(eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """Run a primitive that moves elements on the numbers of keys, to see where each goes."""
    if any(x is None for x in operands):
        return [None] * len(eqn.outvars)
    places, numbers, start = [], [], 0
    for x, var in zip(operands, eqn.invars, strict=True):
        if _is_key(var.aval):
            places.append(np.arange(start, start + x.size, dtype=np.int32).reshape(x.shape))
            numbers.append(x.reshape(-1))
            start += x.size
        else:
            places.append(x)
    numbers = np.concatenate(numbers)
    outs = []
    for place in _run(eqn, places):
        inside = (place >= 0) & (place < start)
        out = numbers[np.where(inside, place, 0)] if start else _fresh(place.shape)
        outs.append(np.where(inside, out, _fresh(place.shape)))
    return outs


def _inner(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program that an equation calls with its own operands, if it holds one."""
    for value in eqn.params.values():
        if isinstance(value, ClosedJaxpr) and len(value.in_avals) == len(eqn.invars):
            return value
    return None


# -- control flow -----------------------------------------------------------------------------------


def _cond(walk: _Walk, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """Consume the keys that any branch consumes."""
    before, after, results = walk.consumed, {}, []
    for branch in eqn.params["branches"]:
        walk.consumed = dict(before)
        results.append(walk.closed(branch, operands[1:]))
        after.update(walk.consumed)
    walk.consumed = after
    return [_agreed(outs) for outs in zip(*results, strict=True)]


def _agreed(outs: Sequence[Any]) -> Any:
    first = outs[0]
    if any(x is None or first is None or not np.array_equal(x, first) for x in outs):
        return None
    return first


def _scan(walk: _Walk, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """The body is walked twice, so that what it consumes of what all iterations share shows."""
    params = eqn.params
    body, length = params["jaxpr"], params["length"]
    split = params["num_consts"], params["num_consts"] + params["num_carry"]
    consts, start, xs = operands[: split[0]], operands[split[0] : split[1]], operands[split[1] :]
    carry = start
    for turn in range(min(length, 2)):
        slices = [None if x is None else x[turn] for x in xs]
        outs = walk.closed(body, [*consts, *carry, *slices])
        carry = _complete(outs, [Var(aval) for aval in body.out_avals])[: params["num_carry"]]
    _consume_rest(walk, xs)
    ys = [None] * (len(eqn.outvars) - params["num_carry"])
    return [*(_agreed(pair) for pair in zip(start, carry, strict=True)), *ys]


def _consume_rest(walk: _Walk, xs: Sequence[Any]) -> None:
    """Consume, among the slices of a sequence that were not walked, those that the first slice was."""
    for x in xs:
        if x is not None and x.ndim and len(x) > 2:
            for places in zip(x[0].reshape(-1), x[2:].reshape(len(x) - 2, -1).T, strict=True):
                place = walk.consumed.get(int(places[0]))
                if place is not None:
                    walk.consume(places[1], place)


def _while(walk: _Walk, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    params = eqn.params
    split = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    of_cond, of_body, start = (
        operands[: split[0]], operands[split[0] : split[1]], operands[split[1] :],
    )  # fmt: skip
    body, carry = params["body_jaxpr"], start
    for _ in range(2):
        walk.closed(params["cond_jaxpr"], [*of_cond, *carry])
        outs = walk.closed(body, [*of_body, *carry])
        carry = _complete(outs, [Var(aval) for aval in body.out_avals])
    return [_agreed(pair) for pair in zip(start, carry, strict=True)]


_CONTROL: dict[str, Callable] = {"cond": _cond, "scan": _scan, "while": _while}

# -- watching programs ------------------------------------------------------------------------------


def watcher_of(closed: ClosedJaxpr) -> Callable | None:
    """Return what to call with the arguments of a program before it runs; None if it meets no keys.

    It gives what to call with the results.
    """
    if not _meets_keys(closed):
        return None
    info = closed.jaxpr.debug_info
    at_once = info is None or info.traced_for != "jit"

    def before(args: Sequence[ArrayImpl]) -> Callable:
        walk = _Walk(summarize(capture()) if at_once else None)
        outs = walk.closed(
            closed, [_numbers_of(a) if _is_key(a.aval) else _known_if(at_once, a) for a in args]
        )

        def after(results: Sequence[ArrayImpl]) -> None:
            _consumed.update(walk.consumed)
            for result, out in zip(results, outs, strict=True):
                if _is_key(result.aval) and out is not None:
                    _note(result, out)

        return after

    return before


def _known_if(wanted: bool, x: ArrayImpl) -> Any:
    return _known(x) if wanted else None


def _meets_keys(closed: ClosedJaxpr) -> bool:
    """Whether there may be keys in a program: among its own values, or in one that it calls."""
    jaxpr = closed.jaxpr
    atoms = itertools.chain(jaxpr.invars, *[(*eqn.invars, *eqn.outvars) for eqn in jaxpr.eqns])
    held = itertools.chain.from_iterable(_held(eqn) for eqn in jaxpr.eqns)
    return any(_is_key(x.aval) for x in atoms) or any(map(_meets_keys, held))


def _held(eqn: JaxprEqn) -> list[ClosedJaxpr]:
    values = itertools.chain.from_iterable(
        value if isinstance(value, tuple) else (value,) for value in eqn.params.values()
    )
    return [value for value in values if isinstance(value, ClosedJaxpr)]


hooks.fill(watcher_of=watcher_of)
