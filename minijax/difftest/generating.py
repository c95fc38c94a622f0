"""Random programs from the tables of signatures, the same on any machine for a seed and a version.

`Generator` draws a call, finds operands of its types among the values in scope (or adapts some), and asks
`minijax.eval_shape` for the types of the result, so that every call extends a well-typed scope. A call
that is refused may end a program: the other library says whether it should have been. Choices come from
one `random.Random` seeded by text, and never from the order of a set or of hashes.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import re
from collections.abc import Sequence

import minijax
from minijax.difftest import domains, signatures
from minijax.difftest.programs import HEAD, Call, Function, Program, Type, Value, namespace
from minijax.difftest.signatures import Operand, Row, Slot

__all__ = ["MODES", "Profile", "generate"]

MODES = ("composed", "single", "abstract")
_ELEMENTS = 48  # arrays of programs are at most this large
_CHOICE = re.compile(r"\{([^{}]*;[^{}]*)\}")
_STATIC = re.compile(r"%(\w+)")


@dataclasses.dataclass(frozen=True)
class Profile:
    """The distribution that programs are drawn from.

    - `calls`: bounds of the number of calls of the main function
    - `depth`: how deep functions nest
    - `transforms`: the probability of a call to take functions
    - `focused`: by the number of a program, modulo the length: how many single operations under
      transforms it is about; 0 for a program of any calls
    - `direct`: the share of these operations that are all that is transformed
    - `only`: operations to draw from, or () for all
    """

    calls: tuple[int, int] = (2, 6)
    depth: int = 3
    transforms: float = 0.4
    focused: tuple[int, ...] = (3, 1, 0, 4, 2, 0, 1, 4, 3, 2)
    direct: float = 0.8
    only: tuple[str, ...] = ()


def generate(
    seed: int, number: int, mode: str = "composed", profile: Profile = Profile()
) -> Program:
    """Return program `number` of a seed.

    - `seed`, `number`: integers that name the program
    - `mode`: "composed", "single" (one call on special values) or "abstract" (one call, types only)
    - `profile`: how large and of what the program is

    Returns a `Program`. ValueError for another mode. Source: this package.

    >>> difftest.generate(0, 1) == difftest.generate(0, 1)
    True
    """
    if mode not in MODES:
        raise ValueError(f"mode is one of {MODES}, got {mode!r}.")
    generator = Generator(random.Random(f"{seed}/{number}/{mode}"), profile)
    with minijax.enable_x64(generator.x64):
        if mode == "composed":
            main, values = generator.composed(generator.dealt(seed, number))
        else:
            main, values = generator.single(mode)
    return Program(main, values, generator.x64, mode, f"{mode} {seed}/{number}")


class Refused(Exception):
    """A call that `eval_shape` refuses, or whose results no program should hold."""


@dataclasses.dataclass
class Scope:
    """Variables with their types: whole results by name, and arrays within them by expression."""

    roots: dict
    entries: list[tuple[str, Type]]
    axes: tuple[tuple[str, int], ...] = ()
    depth: int = 0
    calls: list[Call] = dataclasses.field(default_factory=list)
    own: tuple[str, ...] = ()  # the parameters of the function

    def shuffled(self, rng: random.Random, used: Sequence[str] = ()) -> list[tuple[str, Type]]:
        """Return the arrays in an order that is drawn, mostly with those of the function itself first.

        First come the results of its last call, so that calls depend on one another and on its parameters,
        and last the arrays in use.
        """
        entries = rng.sample(self.entries, len(self.entries))
        if self.own and rng.random() < 0.8:
            last = self.calls[-1].target if self.calls else ""
            place = lambda root: 0 if root == last else 1 if root in self.own else 2
            entries.sort(key=lambda entry: (entry[0] in used, place(_root(entry[0]))))
        return entries

    def add(self, name: str, tree) -> list[tuple[str, Type]]:
        """Add a result; return the arrays in it that programs can go on with."""
        self.roots[name] = tree
        leaves, _ = minijax.tree_util.tree_flatten_with_path(tree)
        found = [
            (name + minijax.tree_util.keystr(path), type_of(leaf))
            for path, leaf in leaves
            if str(getattr(leaf, "dtype", "")) in domains.SPECIAL
        ]
        self.entries += found
        return found


def type_of(leaf) -> Type:
    """Return the type of anything with a shape and a dtype."""
    return Type(tuple(leaf.shape), str(leaf.dtype), bool(getattr(leaf, "weak_type", False)))


def struct(kind: Type):
    """Return the abstract value of a type."""
    return minijax.ShapeDtypeStruct(kind.shape, kind.dtype, weak_type=kind.weak)


class Generator:
    """The draws of one program."""

    def __init__(self, rng: random.Random, profile: Profile):
        self.rng, self.profile = rng, profile
        self.x64 = rng.random() < 0.3
        self.narrow = rng.random() < 0.3  # most programs are judged in 32 bits or more
        self.variables = self.functions = self.axes = 0
        self.inputs: list[tuple[str, Type]] = []
        self.values: list[Value] = []
        self.focus: Row | None = None
        chosen = lambda rows: [r for r in rows if not profile.only or r.operation in profile.only]
        rows = chosen(signatures.transforms())
        flagged = lambda flag: [r for r in rows if flag in r.flags]
        self.collectives, self.direct = flagged("collective"), flagged("direct")
        self.transforms = [r for r in rows if not r.flags & {"collective", "direct"}]
        self.named = flagged("named")
        self.derivatives = flagged("derivative") or self.transforms
        self.batching = [r for r in flagged("batch") if r not in self.direct] or self.transforms
        self.calls = chosen(signatures.functions())
        self.near = [r for r in self.calls if "primitive" in r.flags] or self.calls

    # -- whole programs ------------------------------------------------------------------------------

    def single(self, mode: str) -> tuple[Function, tuple[Value, ...]]:
        """Return a program of one call on inputs of its own; types are bent now and then."""
        rng = self.rng
        self.narrow = True
        while True:
            row = rng.choice(self.calls)
            types, bent = self.operand_types(row, special=True), False
            if mode == "abstract" and types and rng.random() < 0.5:
                index = rng.randrange(len(types))
                types[index] = self.bent(types[index])
                bent = True
            rate = rng.choice((0.0, 0.3)) if mode == "single" else 0.0
            for kind, operand in zip(types, row.operands, strict=True):
                self.parameter(kind, "" if bent else operand.domain, rate)
            call = self.complete(row, [name for name, _ in self.inputs], types, ())
            if mode == "abstract" or all(t.size <= _ELEMENTS for t in types):
                main = Function("program", tuple(self.inputs), (call,), (call.target,))
                return main, tuple(self.values)
            self.inputs, self.values = [], []

    def dealt(self, seed: int, number: int) -> list[tuple[Row, int]]:
        """Return the rows that a program is about, each with a number that grows whenever it is dealt.

        The programs of a seed take them from one shuffled deck after the other, so that each has its turn.
        """
        shares = self.profile.focused
        rounds, at = divmod(number, len(shares))
        first, count = rounds * sum(shares) + sum(shares[:at]), shares[at]
        rows = [r for r in self.calls if r.operands] if self.transforms else []
        rows += [r for r in self.transforms if r not in self.derivatives] if rows else []
        rows += self.collectives * 10 if self.named else []
        copies = [
            5 if "primitive" in r.flags or r.slots else 1 for r in rows
        ]  # with their own rules
        deck = [(row, copy) for row, n in enumerate(copies) for copy in range(n)]
        found = []
        for turn in range(first, first + count if deck else first):
            again, place = divmod(turn, len(deck))
            row, copy = deck[_order(seed, again, len(deck))[place]]
            found.append((rows[row], row + copy + again * copies[row]))
        return found

    def composed(self, dealt: list[tuple[Row, int]]) -> tuple[Function, tuple[Value, ...]]:
        """Return a program of several calls, in which functions nest.

        - `dealt`: operations that it is about, and numbers by which transforms of these are chosen
        """
        rng = self.rng
        calls, refused = (0, 1) if dealt else self.profile.calls, False
        scope = Scope({}, [])
        for row, turn in dealt:
            self.focus = row
            if rng.random() < self.profile.direct and (target := self.directly(turn, scope)):
                continue
            for kind, operand in zip(self.operand_types(row), row.operands, strict=True):
                self.parameter(kind, operand.domain, 0.0)
            if not self.inputs:
                self.parameter(self.free_type("f"), "", 0.0)
            self.extend(scope)
            target, refused = self.grow(scope)
            if refused:
                break
        self.focus = None
        if not dealt:
            for _ in range(rng.randint(1, 3)):
                self.parameter(self.free_type("f" if rng.random() < 0.6 else "fciub"), "", 0.0)
            self.extend(scope)
        for _ in range(0 if refused else rng.randint(*calls)):
            target, refused = self.grow(scope)
            if refused:
                break
        used = {name for call in scope.calls for name in call.uses()}
        ends = [call.target for call in scope.calls if call.target not in used]
        results = (target,) if refused or rng.random() < 0.1 else tuple(ends[-6:])
        return Function("program", tuple(self.inputs), tuple(scope.calls), results), tuple(
            self.values
        )

    def extend(self, scope: Scope) -> None:
        """Bring the inputs that are new into scope."""
        for name, kind in self.inputs:
            if name not in scope.roots:
                scope.roots[name] = struct(kind)
                scope.entries.append((name, kind))

    def parameter(self, kind: Type, domain: str, special: float) -> None:
        """Add an input."""
        self.inputs.append((self.variable(), kind))
        self.values.append(domains.draw_value(self.rng, kind, domain, special))

    def variable(self) -> str:
        self.variables += 1
        return f"v{self.variables - 1}"

    # -- types ---------------------------------------------------------------------------------------

    def dtype(self, kinds: str, special: bool = False) -> str:
        """Draw a dtype of some kinds (or the dtype named); 32-bit ones most often."""
        if kinds in domains.SPECIAL:
            return kinds
        rng = self.rng
        letters = kinds if not special or rng.random() < 0.96 else kinds + "e"
        letter = "f" if "f" in letters and rng.random() < 0.4 else rng.choice(letters)
        narrow, wide = domains.DTYPES[letter]
        if wide and self.x64 and rng.random() < 0.6:
            return rng.choice(wide)
        if not self.narrow and letter == "f":
            return narrow[0]
        return narrow[0] if rng.random() < (0.4 if special else 0.75) else rng.choice(narrow)

    def free_type(
        self, kinds: str, dims: tuple[str, ...] = ("...",), bound=None, special=False
    ) -> Type:
        """Draw a type: dimensions bind symbols in `bound`."""
        rng, bound = self.rng, {} if bound is None else bound
        shape: list[int] = []
        for token in dims:
            if token == "...":
                if "..." not in bound:
                    ranks = (0, 1, 1, 2, 2, 3) if len(dims) == 1 else (0, 0, 0, 1)
                    bound["..."] = tuple(self.extent() for _ in range(rng.choice(ranks)))
                shape += bound["..."]
            elif token.isdigit():
                shape.append(int(token))
            else:
                if token not in bound:
                    bound[token] = self.extent(few=token != token.lower())
                shape.append(bound[token])
        dtype = self.dtype(kinds, special)
        weak = not shape and rng.random() < 0.3 and dtype in self.weak_dtypes()
        return Type(tuple(shape), dtype, weak)

    def weak_dtypes(self) -> tuple[str, ...]:
        return ("int64", "float64", "complex128") if self.x64 else ("int32", "float32", "complex64")

    def extent(self, few: bool = False) -> int:
        return self.rng.choice((1, 2, 2, 3, 3, 4) if few or self.rng.random() < 0.93 else (0,))

    def operand_types(self, row: Row, special: bool = False) -> list[Type]:
        """Draw the types of the operands of a row."""
        bound: dict = {}
        types: list[Type] = []
        for operand in row.operands:
            types.append(self.operand_type(operand, types, bound, special))
        return types

    def operand_type(self, operand: Operand, types: list[Type], bound: dict, special: bool) -> Type:
        kinds = types[0].dtype if operand.kinds == "=" else operand.kinds
        dims = operand.dims
        if dims and dims[0][0] == "=":
            shape = types["=ABCD".index(dims[0][1]) - 1].shape
            dims = tuple(str(n) for n in shape)
        if dims is None:
            dims = tuple(str(n) for n in self.broadcasting(types[0].shape))
        return self.free_type(kinds, dims, bound, special)

    def broadcasting(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Draw a shape that broadcasts with one."""
        if self.rng.random() < 0.6:
            return shape
        kept = shape[self.rng.randint(0, len(shape)) :]
        return tuple(1 if self.rng.random() < 0.2 else n for n in kept)

    def bent(self, kind: Type) -> Type:
        """Return a type that the signature may not allow."""
        rng = self.rng
        way = rng.randrange(4)
        if way == 0:
            return Type(kind.shape, self.dtype("fciub", True))
        if way == 1 and kind.shape:
            shape = list(kind.shape)
            shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 5))
            return Type(tuple(shape), kind.dtype)
        if way == 2:
            return Type((*kind.shape, rng.choice((1, 2))), kind.dtype)
        return Type(kind.shape[1:], kind.dtype)

    # -- calls ---------------------------------------------------------------------------------------

    def grow(self, scope: Scope) -> tuple[str, bool]:
        """Add one call to a scope; return the name of its result, and whether it was refused."""
        rng = self.rng
        for _ in range(12):
            kept = len(scope.calls), dict(scope.roots), list(scope.entries)
            rows = self.near if rng.random() < 0.3 else self.calls
            if self.focus is not None and not (scope.depth and scope.calls) and rng.random() < 0.9:
                rows = self.around(scope) or [self.focus]
            elif scope.axes and self.collectives and rng.random() < 0.5:
                rows = self.collectives
            elif self.transforms and scope.depth < self.profile.depth:
                if rng.random() < self.profile.transforms or not rows:
                    rows = self.transforms
            if scope.axes:  # within one shard_map there is no other: see the tests of its refusals
                rows = [row for row in rows if "shard_map" not in row.operation] or self.calls
            try:
                row = rng.choice(rows)
                if row is not self.focus and scope.depth and not _has_floats(row):
                    if rng.random() < 0.7:
                        raise Refused  # its results have no derivatives
                return self.emit(scope, self.call(row, scope)), False
            except Refused as refused:
                if refused.args and not scope.depth and rng.random() < 0.3:
                    scope.calls.append(refused.args[0])
                    return refused.args[0].target, True
                del scope.calls[kept[0] :]
                scope.roots, scope.entries = kept[1], kept[2]
        call = Call(
            self.variable(), "jnp.sin(A)", (self.coerced(scope, scope.entries[0], "float32"),)
        )
        return self.emit(scope, dataclasses.replace(call, operation="jnp.sin")), False

    def around(self, scope: Scope) -> list[Row]:
        """Return the transforms of which one is put around the focus, or none."""
        rng, depth = self.rng, scope.depth
        if self.focus in self.collectives and not scope.axes:
            return self.derivatives if depth == 0 and rng.random() < 0.5 else self.named
        if depth > 1 or (depth == 1 and rng.random() < 0.6):
            return []
        derivatives = self.derivatives
        if not any("c" in operand.kinds for operand in self.focus.operands):
            derivatives = [r for r in derivatives if "complex" not in r.flags] or derivatives
        weights = (5 if _has_floats(self.focus) else 0, 2, 3)
        return rng.choices((derivatives, self.batching, self.transforms), weights)[0]

    def directly(self, turn: int, scope: Scope) -> str:
        """Add a transform of one call of the focus, on inputs of its own; return the name of its result.

        Most arrays of floats among the operands are differentiated, and some are mapped as well. Returns
        nothing if the focus has no such transform.

        - `turn`: chooses the transform, and whether it is mapped
        """
        rows = [row for row in self.direct if _has_floats(self.focus) or "batch" in row.flags]
        for _ in range(4 if rows and self.focus not in self.collectives else 0):
            kept = len(self.inputs), dict(scope.roots), list(scope.entries)
            row = rows[turn % len(rows)]
            maps = "batch" in row.flags or turn // len(rows) % 3 > 0
            try:
                return self.emit(scope, self.transformed(row, maps, scope))
            except Refused:
                del self.inputs[kept[0] :], self.values[kept[0] :]
                scope.roots, scope.entries = kept[1:]
        return ""

    def transformed(self, row: Row, maps: bool, scope: Scope) -> Call:
        """Return a call of a row with the flag `direct`, whose function calls the focus.

        - `maps`: whether it is within `vmap`
        """
        rng, focus = self.rng, self.focus
        types = self.operand_types(focus)
        moved = [i for i, kind in enumerate(types) if kind.kind in "fc" or "batch" in row.flags]
        if not moved:
            raise Refused
        if rng.random() < 0.2:
            moved = sorted(rng.sample(moved, rng.randint(1, len(moved))))
        mapped = rng.sample(moved, rng.randint(1, len(moved))) if maps else ()
        names, inner = [], []
        for i, (kind, operand) in enumerate(zip(types, focus.operands, strict=True)):
            kind = dataclasses.replace(kind, weak=kind.weak and i not in moved)
            shape = (2, *kind.shape) if i in mapped else kind.shape
            self.parameter(dataclasses.replace(kind, shape=shape), operand.domain, 0.0)
            names.append(self.inputs[-1][0])
            inner.append((self.variable() if i in moved else names[i], kind))
        self.extend(scope)
        own = Scope({name: struct(kind) for name, kind in inner}, list(inner), depth=1)
        target = self.emit(own, self.nested(focus, own, [name for name, _ in inner], types))
        if "inexact" in row.flags and any(kind.kind not in "fc" for _, kind in own.calls[0].types):
            raise Refused
        parameters = tuple(inner[i] for i in moved)
        function = Function(f"f{self.functions}", parameters, tuple(own.calls), (target,))
        self.functions += 1
        given = f"({', '.join('ABCDE'[: len(moved)])},)"
        template = row.template.replace("%args", "xs" if maps else given)
        if maps:
            axes = tuple(0 if i in mapped else None for i in moved)
            template = f"jax.vmap(lambda *xs: {template}, in_axes={axes})(*{given})"
        operands = tuple(names[i] for i in moved)
        return Call(self.variable(), template, operands, (function,), row.operation)

    def emit(self, scope: Scope, call: Call) -> str:
        """Append a call whose types can be found."""
        tree = self.infer(scope, call)
        found = scope.add(call.target, tree)
        if not found:
            del scope.roots[call.target]
            raise Refused
        scope.calls.append(dataclasses.replace(call, types=tuple(found)))
        return call.target

    def infer(self, scope: Scope, call: Call):
        """Return the tree of abstract results of a call. Refused where there is none."""
        used = sorted(call.uses() & set(scope.roots))
        names = ", ".join(["jax", *used])
        lines = [f"def inferred({names}):", *("    " + line for line in HEAD)]
        for function in call.functions:
            lines += function.lines("    ")
        lines += ["    " + line for line in call.statement().splitlines()]
        lines.append(f"    return {call.target}")
        space = namespace()
        try:
            exec("\n".join(lines), space)
            run = lambda args: space["inferred"](minijax, *args)
            tree = _abstract(run, [scope.roots[name] for name in used], scope.axes)
        except Exception:
            raise Refused(call) from None
        leaves = minijax.tree_util.tree_leaves(tree)
        if sum(type_of(leaf).size for leaf in leaves if hasattr(leaf, "shape")) > _ELEMENTS:
            raise Refused
        return tree

    def call(self, row: Row, scope: Scope) -> Call:
        """Return a call of a row, whose operands are in scope after adapting."""
        bound: dict = {}
        names: list[str] = []
        types: list[Type] = []
        for operand in row.operands:
            entry = self.fitting(operand, scope, names, types, bound)
            if entry is None:
                wanted = self.operand_type(operand, types, bound, False)
                entry = self.adapted(scope, scope.shuffled(self.rng, names)[0], wanted)
            if operand.domain:
                entry = self.into_domain(scope, entry, operand.domain)
            names.append(entry[0])
            types.append(entry[1])
        return self.nested(row, scope, names, types)

    def nested(self, row: Row, scope: Scope, names: list[str], types: list[Type]) -> Call:
        """Return a call of a row on operands in scope, with functions for its slots.

        Those of the focus itself are any functions.
        """
        axis = None
        if any(slot.axis for slot in row.slots):
            size = 2 if "shard" in row.operation else (types[0].shape or (1,))[0]
            axis = (f"i{self.axes}", size)
            self.axes += 1
        functions: list[Function] = []
        results: list[Type] = []
        focus = self.focus
        if row is focus:
            self.focus = None
        try:
            for slot in row.slots:
                outer = [] if "closed" in row.flags else list(scope.entries)
                function, result = self.function(slot, scope, outer, types, axis, results)
                functions.append(function)
                results.append(result)
        finally:
            self.focus = focus
        return self.complete(row, names, types, tuple(functions), axis, scope.axes)

    def fitting(self, operand: Operand, scope: Scope, used, types: list[Type], bound: dict):
        """Return an array in scope that is such an operand, or None. Binds dimensions.

        - `used`: names of the operands before it, which it seldom equals
        """
        for name, kind in scope.shuffled(self.rng, used)[:4]:
            if name in used and self.rng.random() < 0.8:
                continue
            if operand.kinds == "=":
                fits = kind.dtype == types[0].dtype
            else:
                fits = kind.dtype == operand.kinds or (
                    not operand.kinds[-1].isdigit() and kind.kind in operand.kinds
                )
            if not fits:
                continue
            if operand.dims is None:
                if _broadcast(kind.shape, types[0].shape):
                    return name, kind
            elif operand.dims and operand.dims[0][0] == "=":
                if kind.shape == types["=ABCD".index(operand.dims[0][1]) - 1].shape:
                    return name, kind
            elif (found := _matched(operand.dims, kind.shape, bound)) is not None:
                bound.update(found)
                return name, kind
        return None

    def adapted(self, scope: Scope, entry, wanted: Type):
        """Add calls that bring an array to a shape and a dtype; return it."""
        name, kind = entry
        if kind.shape != wanted.shape:
            whole = wanted.shape == ()
            template = "jnp.sum(A)" if whole else f"jnp.resize(A, {wanted.shape})"
            operation = "jnp.sum" if whole else "jnp.resize"
            name = self.emit(scope, Call(self.variable(), template, (name,), (), operation))
        return self.coerced(scope, (name, kind), wanted.dtype), dataclasses.replace(
            wanted, weak=False
        )

    def coerced(self, scope: Scope, entry, dtype: str) -> str:
        name, kind = entry
        root = scope.roots.get(name)
        now = str(root.dtype) if hasattr(root, "dtype") else kind.dtype
        if now == dtype:
            return name
        real = now.startswith("complex") and not dtype.startswith("complex")
        template = f'{"jnp.real(A)" if real else "jnp.asarray(A)"}.astype("{dtype}")'
        return self.emit(scope, Call(self.variable(), template, (name,), (), "astype"))

    def into_domain(self, scope: Scope, entry, domain: str):
        name, kind = entry
        template = domains.ADAPTERS[domain][0 if kind.kind in "fc" else 1]
        if template == "A" or kind.kind == "b":
            return entry
        target = self.emit(scope, Call(self.variable(), template, (name,), (), "domain"))
        now = type_of(scope.roots[target])
        if now.dtype != kind.dtype or now.shape != kind.shape:
            return self.adapted(scope, (target, now), kind)
        return target, now

    def function(self, slot: Slot, scope: Scope, outer: list, types: list[Type], axis, results):
        """Return a nested function of a slot and the type of its (first) result.

        - `outer`: arrays of outer functions that it may use
        """
        rng = self.rng
        parameters = [(self.variable(), _parameter(p, types)) for p in slot.parameters]
        rng.shuffle(outer)
        closed = outer[: rng.choice((0, 0, 1, 2))]
        roots = {n: t for n, t in scope.roots.items() if any(_root(e) == n for e, _ in closed)}
        roots |= {name: struct(kind) for name, kind in parameters}
        entries = closed + parameters
        axes = scope.axes + ((axis,) if axis is not None and slot.axis else ())
        own = tuple(name for name, _ in parameters)
        inner = Scope(roots, entries, axes, scope.depth + 1, own=own)
        name = f"f{self.functions}"
        self.functions += 1
        for _ in range(rng.choice((1, 1, 2, 3))):
            self.grow(inner)
        found, kinds = [], "fciub" if slot.result == "any" else "fc"
        for call in reversed(inner.calls):  # the last with floats, where derivatives may be taken
            found = [entry for entry in call.types if entry[1].kind in kinds]
            if found:
                break
        found = found or list(inner.calls[-1].types)
        entry = rng.choice(found)
        wanted = self.result(slot.result, types, results, entry[1])
        if wanted is not None and (entry[1].shape, entry[1].dtype) != (wanted.shape, wanted.dtype):
            entry = self.adapted(inner, entry, wanted)
        texts = (entry[0],)
        if wanted is None and len(found) > 1 and rng.random() < 0.3:
            texts = tuple(text for text, _ in found[:3])
        return Function(name, tuple(parameters), tuple(inner.calls), texts), entry[1]

    def result(self, wanted: str, types, results, got: Type) -> Type | None:
        """Return the type that a function must give, or None if any will do."""
        if wanted == "any":
            return None
        if wanted in ("float", "inexact"):
            kinds = "f" if wanted == "float" else "fc"
            return Type(got.shape, "float32") if got.kind not in kinds else None
        if wanted == "scalar":
            return Type((), got.dtype if got.kind == "f" else "float32")
        if wanted in "FGH":
            return results["FGH".index(wanted)]
        if wanted == "A0":
            return Type((), types[0].dtype)
        return _parameter(wanted, types)

    def complete(self, row: Row, names, types, functions, axis=None, axes=()) -> Call:
        """Draw the static parameters of a call."""
        rng = self.rng
        template = row.template
        while found := _CHOICE.search(template):
            choice = rng.choice(found[1].split(";"))
            template = template[: found.start()] + choice + template[found.end() :]
        first = types[0] if types else Type((), "float32")
        drawn: dict[str, str] = {}
        if axis is not None:
            drawn["newaxis"] = axis[0]
        if axes:
            drawn["name"] = rng.choice(axes)[0]

        def static(found):
            word = found[1]
            if word in ("newaxis", "name"):
                return drawn[word]
            return self.static(word, first)

        template = _STATIC.sub(lambda f: static(f) if _known(f[1]) else f[0], template)
        return Call(self.variable(), template, tuple(names), functions, row.operation)

    def static(self, word: str, first: Type) -> str:
        """Draw a static parameter: see `signatures`."""
        rng, rank = self.rng, len(first.shape)
        if word in ("axis", "axis0"):
            low = 0 if word == "axis0" else -rank
            return str(rng.randrange(low, max(rank, 1)) if rng.random() < 0.95 else rank)
        if word == "axes":
            return str(tuple(sorted(rng.sample(range(rank), rng.randint(0, rank)))))
        if word == "perm":
            return str(tuple(rng.sample(range(rank), rank)))
        if word == "shape":
            return rng.choice(_shapes(first.size))
        if word in ("dtype", "dtype0", "fdtype"):
            kinds = {"dtype": "fciub", "dtype0": "fiu", "fdtype": "f"}[word]
            return f'"{self.dtype(kinds, special=word == "dtype")}"'
        return str(rng.choice(_CHOICES[word]))


@functools.lru_cache(16)
def _order(seed: int, again: int, size: int) -> list[int]:
    """Return the order of the deck that a seed deals for another time."""
    return random.Random(f"{seed}/{again}").sample(range(size), size)


_CHOICES = {
    "bool": (True, False), "int": (0, 1, 2, -1), "k": (0, 0, 1, -1, 2), "size": (1, 2, 3, 4),
    "decimals": (0, 1, -1, 2), "seed": (0, 1, 42, 2**31 - 1),
}  # fmt: skip


def _has_floats(row: Row) -> bool:
    return any(set(operand.kinds) & set("fc") for operand in row.operands)


def _known(word: str) -> bool:
    return word in _CHOICES or word in (
        "axis", "axis0", "axes", "perm", "shape", "dtype", "dtype0", "fdtype", "newaxis", "name",
    )  # fmt: skip


def _abstract(run, structs, axes):
    """Evaluate abstractly within named axes."""
    if not axes:
        return minijax.eval_shape(run, structs)

    def nested(args):
        mapped = lambda: run(args)
        for name, size in axes:
            mapped = minijax.vmap(mapped, axis_name=name, axis_size=size)
        return mapped()

    tree = minijax.eval_shape(nested, structs)
    cut = lambda s: minijax.ShapeDtypeStruct(s.shape[len(axes) :], s.dtype, weak_type=s.weak_type)
    return minijax.tree_util.tree_map(cut, tree)


def _root(text: str) -> str:
    return re.match(r"v\d+", text)[0]


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def _matched(dims: tuple[str, ...], shape: tuple[int, ...], bound: dict) -> dict | None:
    """Return what the symbols of a pattern stand for in a shape, or None."""
    found = dict(bound)
    rest = len(shape) - (len(dims) - ("..." in dims))
    if rest < 0 or ("..." not in dims and rest):
        return None
    at = 0
    for token in dims:
        if token == "...":
            if found.setdefault("...", shape[at : at + rest]) != shape[at : at + rest]:
                return None
            at += rest
            continue
        wanted = int(token) if token.isdigit() else found.setdefault(token, shape[at])
        if wanted != shape[at]:
            return None
        at += 1
    return found


def _parameter(text: str, types: list[Type]) -> Type:
    """Return the type of `A`, `A-1` (without its axis 1), `A/2` (half of it), `A[]` or `int`."""
    if text == "int":
        return Type((), "int32")
    kind = types["ABCDE".index(text[0])]
    kind = dataclasses.replace(kind, weak=False)
    if text[1:] == "[]":
        return dataclasses.replace(kind, shape=())
    if text[1:] == "/2":
        return dataclasses.replace(kind, shape=(kind.shape[0] // 2, *kind.shape[1:]))
    if text[1:2] == "-":
        axis = int(text[2:])
        shape = list(kind.shape)
        del shape[axis]
        return dataclasses.replace(kind, shape=tuple(shape))
    return kind


def _shapes(size: int) -> list[str]:
    found = [f"({size},)", "(-1,)" if size else "(0, 1)", f"({size}, 1)", f"(1, {size})"]
    found += [f"({n}, {size // n})" for n in (2, 3) if size and size % n == 0]
    return found + (["()"] if size == 1 else []) + ["(7,)"] * (len(found) == 4 and size == 5)
