"""The check that no random key is used twice: what the setting `debug_key_reuse` turns on.

With the setting on, `dispatch.Program` asks here before it runs a program on arrays of keys. Every
key that there is has a number. The program is walked with the numbers of its keys in their places:
primitives that move elements move the numbers, those that draw from a key or split it consume it,
and one that is consumed again raises KeyReuseError, which names both places. What a checkpointed
function computes again gives the same numbers on purpose. With the setting off nothing of this is
met.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import errors
from minijax.arrays.array import ArrayImpl
from minijax.config import local
from minijax.core.avals import ShapedArray
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from minijax.core.primitive import RuleColumn
from minijax.core.source import capture, summarize
from minijax.features.checkpoint.checkpoint import AGAIN
from minijax.lax.barrier import optimization_barrier_p
from minijax.lax.compare import select_n_p
from minijax.lax.convert import copy_p, stop_gradient_p
from minijax.lax.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from minijax.lax.indexing import gather_p
from minijax.lax.joining import concatenate_p, stack_p, unstack_p
from minijax.lax.prng import KeyType, random_bits_p, random_split_p
from minijax.lax.random_gamma import random_gamma_p
from minijax.lax.shapes import reshape_p, rev_p, squeeze_p
from minijax.lax.shard_map import shard_map_p
from minijax.lax.slicing import slice_p
from minijax.transforms.primitives import broadcast_in_dim_p, transpose_p

__all__ = ["watcher_of"]

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


class _Reuse(Exception):
    """A key is consumed again. What is around it tells what was given the key, as it passes."""

    def __init__(self, number: int, places: str):
        super().__init__(number, places)
        self.number, self.places, self.told = number, places, ""

    def error(self) -> errors.KeyReuseError:
        return errors.KeyReuseError(
            f"{self.told} {self.places} The same key gives the same numbers: split it (random.split) "
            "and use each new key once; where the same numbers are wanted, use random.clone(key)."
        )


def _position(number: int, operands: Sequence[Any], avals: Sequence[Any]) -> int:
    """Return the index of the operand that has this key; 0 if it is closed over."""
    having = (
        index
        for index, (x, aval) in enumerate(zip(operands, avals, strict=True))
        if x is not None and _is_key(aval) and number in np.asarray(x)
    )
    return next(having, 0)


class _Walk:
    """One look at a program: `consumed` holds what it consumes, by number, with the places.

    Values are the numbers of keys, or, of small integers in a library function, themselves; None
    stands for what is not followed.
    """

    def __init__(self, place: str | None, looped: bool = False):
        self.place = place  # of the call, for what is called at once
        self.looped = looped  # a loop or a branch, in which equations have places of their own
        self.consumed: dict[int, str] = {}
        self.again = False  # within what a checkpointed function computes again

    def place_of(self, eqn: JaxprEqn) -> str:
        return summarize(eqn.source) if self.place is None or self.looped else self.place

    def consume(self, numbers: np.ndarray, place: str) -> None:
        for number in [] if self.again else np.unique(numbers).tolist():
            first = self.consumed.get(number) or _consumed.get(number)
            if first is not None:
                again = "again there" if first == place else f"again at {place}"
                raise _Reuse(number, f"It was consumed at {first}, and {again}.")
            self.consumed[number] = place

    def consumed_since(self, count: int, number: int) -> bool:
        """Whether a key was consumed after as many others."""
        return number in itertools.islice(self.consumed, count, None)

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

        count = len(self.consumed)
        for eqn in jaxpr.eqns:
            operands, outside = [read(x) for x in eqn.invars], self.again
            self.again = outside or AGAIN in str(eqn.scope)
            try:
                outs = self.equation(eqn, operands)
            except _Reuse as found:
                if not found.told and self.consumed_since(count, found.number):
                    index = _position(found.number, operands, [v.aval for v in eqn.invars])
                    found.told = f"In {_called_as(eqn)}, argument {index} is already consumed."
                raise
            self.again = outside
            values.update(zip(eqn.outvars, outs, strict=True))
        return [read(x) for x in jaxpr.outvars]

    def equation(self, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
        calls, rule = eqn.primitive.programs, _keys.rule(eqn.primitive)
        followed = any(_is_key(x.aval) for x in (*eqn.invars, *eqn.outvars))
        outs: Sequence[Any] = [None] * len(eqn.outvars)
        if calls is not None and (followed or calls.counts or self.place is None):
            outs = _called(self, eqn, operands)
        elif rule is not None and (followed or self.place is None):
            outs = rule(self, eqn, operands)
        elif not followed and self.place is not None:
            outs = _computed(eqn, operands)
        return _complete(outs, [v.aval for v in eqn.outvars])

    def one_of(self, programs: Sequence[ClosedJaxpr], args: Sequence[Any]) -> list[Any]:
        """Walk programs of which one is called: what any consumes is consumed."""
        before, after, results = self.consumed, {}, []
        for program in programs:
            program = ClosedJaxpr(program) if isinstance(program, Jaxpr) else program
            self.consumed = dict(before)
            results.append(_complete(self.closed(program, args), program.out_avals))
            after.update(self.consumed)
        self.consumed = after
        return [_agreed(outs) for outs in zip(*results, strict=True)]


def _complete(outs: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """Keys of which it is not known where they come from are new ones."""
    return [
        _fresh(aval.shape) if out is None and _is_key(aval) else out
        for out, aval in zip(outs, avals, strict=True)
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


# -- rules of primitives: `(walk, equation, operands) -> results` --------------------------------------

_keys = RuleColumn("key reuse")


def _consumed_by(walk: _Walk, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """Consume the key that numbers are drawn from."""
    walk.consume(operands[0], walk.place_of(eqn))
    return [None] * len(eqn.outvars)


def _called_as(eqn: JaxprEqn) -> str:
    """The name of a primitive; functions that draw numbers are compiled ones, for their users."""
    drawing = eqn.primitive in (random_bits_p, random_gamma_p)
    return "jit" if drawing else eqn.primitive.name


def _moved(walk: _Walk, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """Follow keys through a primitive that moves elements: it is run on their places."""
    if any(x is None for x in operands) or not any(_is_key(v.aval) for v in eqn.invars):
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


def _joined(walk: _Walk, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    outs = _moved(walk, eqn, operands)
    walk.join(operands, walk.place_of(eqn))
    return outs


def _on_parts(walk: _Walk, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    return walk.closed(eqn.params["jaxpr"], operands)


_keys.update({
    concatenate_p: _joined, shard_map_p: _on_parts, stack_p: _joined,
    **dict.fromkeys((random_bits_p, random_gamma_p, random_split_p), _consumed_by),
    **dict.fromkeys((
        broadcast_in_dim_p, copy_p, dynamic_slice_p, dynamic_update_slice_p, gather_p, optimization_barrier_p,
        reshape_p, rev_p, select_n_p, slice_p, squeeze_p, stop_gradient_p, transpose_p, unstack_p,
    ), _moved),
})  # fmt: skip


_REPEATED = "function leads to key reuse when repeatedly executed"
_LOOPS = {  # by primitive and parameter
    ("scan", "jaxpr"): (f"scan body {_REPEATED}, because key constants are repeatedly consumed:"),
    ("while", "body_jaxpr"): f"while_loop body {_REPEATED}:",
    ("while", "cond_jaxpr"): f"while_loop cond {_REPEATED}:",
}


def _called(walk: _Walk, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """Walk the programs that an equation calls.

    Those of a loop are walked twice, so that what it consumes of what all turns share shows.
    """
    calls, params = eqn.primitive.programs, eqn.params
    groups = calls.groups(operands, params)
    xs = [] if calls.mapped is None else groups[calls.mapped]
    start = [] if calls.carried is None else groups[calls.carried]
    count = len(walk.consumed)
    turns, outs = 1 if calls.carried is None else min(params.get("length", 2), 2), []
    for turn in range(turns):
        if xs:
            groups[calls.mapped] = [None if x is None else x[turn] for x in xs]
        for name in calls.inputs:
            try:
                outs = walk.one_of(calls.held(name, params), calls.given(name, groups))
            except _Reuse as found:
                if not found.told and turn and walk.consumed_since(count, found.number):
                    found.told = _LOOPS[eqn.primitive.name, name]
                raise
        if start:
            groups[calls.carried] = outs[: len(start)]
    if calls.carried is None:
        return outs
    _consume_rest(walk, xs)
    pairs = zip(start, groups[calls.carried], strict=True)
    return [*map(_agreed, pairs), *[None] * (len(eqn.outvars) - len(start))]


def _agreed(outs: Sequence[Any]) -> Any:
    first = outs[0]
    if any(x is None or first is None or not np.array_equal(x, first) for x in outs):
        return None
    return first


def _consume_rest(walk: _Walk, xs: Sequence[Any]) -> None:
    """Consume, among the slices of a sequence that were not walked, those that the first slice was."""
    for x in xs:
        if x is not None and x.ndim and len(x) > 2:
            for places in zip(x[0].reshape(-1), x[2:].reshape(len(x) - 2, -1).T, strict=True):
                place = walk.consumed.get(int(places[0]))
                if place is not None:
                    walk.consume(places[1], place)


# -- watching programs ------------------------------------------------------------------------------


def watcher_of(closed: ClosedJaxpr) -> Callable | None:
    """Return what to call with the arguments of a program before it runs; None if it meets no keys.

    It gives what to call with the results. The lines within functions that the user wrote are their
    own: of a jit, a loop or a branch; a library function has that of its call.
    """
    if not _meets_keys(closed):
        return None
    info, eqns = closed.jaxpr.debug_info, closed.jaxpr.eqns
    at_once = info is None or info.traced_for != "jit"
    looped = len(eqns) == 1 and eqns[0].primitive.rule_steps is not None
    called = _called_as(eqns[0]) if at_once and len(eqns) == 1 else "jit"
    called = "jit-compiled function" if called == "jit" else called

    def before(args: Sequence[ArrayImpl]) -> Callable:
        # Where a program is run operation by operation, each has the place of its equation.
        place = summarize(local.context.source or capture()) if at_once else None
        walk = _Walk(place, looped)
        given = [_numbers_of(a) if _is_key(a.aval) else _known_if(at_once, a) for a in args]
        try:
            outs = walk.closed(closed, given)
        except _Reuse as found:
            if not found.told:
                index = _position(found.number, given, closed.in_avals)
                found.told = f"Previously-consumed key passed to {called} at index {index}."
            raise found.error() from None

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
