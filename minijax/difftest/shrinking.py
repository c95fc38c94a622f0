"""The smallest program that still shows a difference: each step is run again before it is kept.

Steps remove results, calls, functions and inputs, replace what a call gives by one of its operands or by
a constant, move the body of a nested function out, and make values, shapes and dtypes plain. A step is
kept if the program is smaller by `Program.size` and differs in the same kind.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Iterator

from minijax.difftest.judging import Finding, judge
from minijax.difftest.programs import Call, Function, Program, Type, Value

__all__ = ["shrink"]

_KEEP_DETAIL = ("refusal", "error")


def shrink(
    finding: Finding,
    seconds: float = 60.0,
    judged: Callable[[Program], Finding | None] | None = None,
) -> Finding:
    """Return the finding of a smaller program with the same kind of difference.

    - `finding`: of `judge`
    - `seconds`: of CPU time, after which the smallest so far is returned
    - `judged`: runs a program in the place of `judge`

    Returns a `Finding`, with evidence and verdict anew. Source: greedy delta debugging.
    """
    judged = judged or judge
    deadline = time.process_time() + seconds
    best = finding
    progress = True
    while progress and time.process_time() < deadline:
        progress = False
        tried: set[str] = set()
        for candidate in _candidates(best.program):
            if time.process_time() > deadline:
                break
            key = repr(candidate)
            if candidate.size() >= best.program.size() or key in tried:
                continue
            tried.add(key)
            found = judged(candidate, True)
            if found is not None and _same(found, best):
                best, progress = found, True
                break
    whole = judged(dataclasses.replace(best.program, main=_renamed(best.program.main)), False)
    return whole if whole is not None and _same(whole, best) else best


def _same(found: Finding, other: Finding) -> bool:
    if found.settled:
        return False
    a, b = found.difference, other.difference
    return a.kind == b.kind and (a.kind not in _KEEP_DETAIL or a.detail == b.detail)


def _candidates(program: Program) -> Iterator[Program]:
    main = program.main
    change = lambda function: _pruned(dataclasses.replace(program, main=function))
    for call in main.body:  # up to a call
        for text, _ in call.types[:2] or ((call.target, None),):
            yield change(dataclasses.replace(main, results=(text,)))
    for text in main.results:
        yield change(dataclasses.replace(main, results=(text,)))
    yield change(main)
    calls = list(main.calls())
    for call in calls:
        for function in call.functions:
            yield change(_inlined(main, call, function))
    for call in calls:
        yield from _inputs_for(program, call)
        for operand in (*call.operands, *(name for name, _ in main.parameters)):
            yield change(_replaced(main, call.target, lambda text, operand=operand: operand))
        constant = {text: _constant(kind) for text, kind in call.types}
        if constant:
            yield change(_replaced(main, call.target, lambda text, c=constant: c.get(text, "1.0")))
        for function in call.functions:
            if len(function.results) > 1:
                for text in function.results:
                    only = dataclasses.replace(function, results=(text,))
                    yield change(_with_function(main, function.name, only))
            for name, _ in function.parameters:
                yield change(
                    _with_function(
                        main, function.name, dataclasses.replace(function, body=(), results=(name,))
                    )
                )
    yield from _simpler(program)


def _inputs_for(program: Program, call: Call) -> Iterator[Program]:
    """Make the result of a call of the main function an input."""
    if call not in program.main.body or len(call.types) != 1:
        return
    (_, kind), name = call.types[0], call.target + "0"
    main = _replaced(program.main, call.target, lambda _: name)
    kind = dataclasses.replace(kind, weak=False)
    main = dataclasses.replace(main, parameters=(*main.parameters, (name, kind)))
    values = (*program.values, Value(kind, _plain(kind)))
    yield _pruned(dataclasses.replace(program, main=main, values=values))


def _plain(kind: Type) -> tuple[str, ...]:
    word = {"b": "True", "f": "1.5", "c": "complex(1.5, 0.5)"}.get(kind.kind, "1")
    return (word,) * kind.size


def _constant(kind: Type) -> str:
    return f'jnp.ones({kind.shape}, "{kind.dtype}")' if not kind.weak else "1.0"


# -- changes of functions ---------------------------------------------------------------------------


def _root(text: str) -> str:
    return re.match(r"\w+", text)[0]


def _texts(function: Function, change: Callable[[str], str]) -> Function:
    """Return a function with all its operands and results changed."""
    body = tuple(
        dataclasses.replace(
            call,
            operands=tuple(map(change, call.operands)),
            functions=tuple(_texts(f, change) for f in call.functions),
        )
        for call in function.body
    )
    return dataclasses.replace(function, body=body, results=tuple(map(change, function.results)))


def _edited(function: Function, target: str, edit: Callable[[Call], tuple[Call, ...]]) -> Function:
    """Return a function in which the call with a target is replaced by others."""
    body: list[Call] = []
    for call in function.body:
        if call.target == target:
            body += edit(call)
        else:
            nested = tuple(_edited(f, target, edit) for f in call.functions)
            body.append(dataclasses.replace(call, functions=nested))
    return dataclasses.replace(function, body=tuple(body))


def _replaced(function: Function, target: str, text: Callable[[str], str]) -> Function:
    """Return a function without a call, whose results are replaced by other expressions."""
    without = _edited(function, target, lambda call: ())
    return _texts(without, lambda t: text(t) if _root(t) == target else t)


def _with_function(function: Function, name: str, other: Function) -> Function:
    body = tuple(
        dataclasses.replace(
            call,
            functions=tuple(
                other if f.name == name else _with_function(f, name, other) for f in call.functions
            ),
        )
        for call in function.body
    )
    return dataclasses.replace(function, body=body)


def _inlined(main: Function, call: Call, function: Function) -> Function:
    """Return a function in which a call is replaced by the body of a function that it takes."""
    words: dict[str, str] = {}
    given = list(call.operands)
    for name, kind in function.parameters:
        words[name] = (
            given.pop(0) if len(given) == len(call.operands) and given else _constant(kind)
        )
    inner = _texts(function, lambda t: words.get(t, t))
    result = inner.results[0]
    edited = _edited(main, call.target, lambda _: inner.body)
    return _texts(edited, lambda t: result if _root(t) == call.target else t)


def _pruned(program: Program) -> Program:
    """Return a program without calls and inputs that nothing uses."""
    main = _without_dead(program.main)
    used = main.free() | {n for n, _ in main.parameters} & _mentioned(main)
    kept = [i for i, (name, _) in enumerate(main.parameters) if name in used]
    main = dataclasses.replace(main, parameters=tuple(main.parameters[i] for i in kept))
    return dataclasses.replace(program, main=main, values=tuple(program.values[i] for i in kept))


def _mentioned(function: Function) -> set[str]:
    found = {_root(text) for text in function.results}
    for call in function.body:
        found |= {_root(text) for text in call.operands}
        for inner in call.functions:
            found |= _mentioned(inner)
    return found


def _without_dead(function: Function) -> Function:
    live = {_root(text) for text in function.results}
    body: list[Call] = []
    for call in reversed(function.body):
        if call.target in live:
            nested = tuple(_without_dead(f) for f in call.functions)
            call = dataclasses.replace(call, functions=nested)
            live |= {_root(text) for text in call.operands}
            for inner in nested:
                live |= _mentioned(inner)
            body.append(call)
    return dataclasses.replace(function, body=tuple(reversed(body)))


def _renamed(main: Function) -> Function:
    """Return a function whose variables and functions are numbered from zero."""
    names: dict[str, str] = {}

    def visit(function: Function) -> None:
        for name, _ in function.parameters:
            names.setdefault(name, f"v{len(names)}")
        for call in function.body:
            for inner in call.functions:
                visit(inner)
            names.setdefault(call.target, f"v{len(names)}")

    visit(main)
    change = lambda text: re.sub(r"\bv\d+\b", lambda m: names.get(m[0], m[0]), text)

    def rename(function: Function) -> Function:
        body = tuple(
            dataclasses.replace(
                call,
                target=names[call.target],
                operands=tuple(map(change, call.operands)),
                functions=tuple(map(rename, call.functions)),
                types=tuple((change(t), kind) for t, kind in call.types),
            )
            for call in function.body
        )
        parameters = tuple((names[n], kind) for n, kind in function.parameters)
        return Function(function.name, parameters, body, tuple(map(change, function.results)))

    return rename(main)


# -- changes of values ------------------------------------------------------------------------------


def _simpler(program: Program) -> Iterator[Program]:
    if program.x64:
        yield dataclasses.replace(program, x64=False)
    least = 0 if any(not v.elements for v in program.values) else 1
    sizes = sorted({n for value in program.values for n in value.type.shape}, reverse=True)
    for size in sizes:
        for less in (0, 1, 2):
            if least <= less < size:
                shapes = [
                    tuple(less if n == size else n for n in v.type.shape) for v in program.values
                ]
                yield _reshaped(program, shapes)
    for index, value in enumerate(program.values):
        shape = value.type.shape
        own = [v.type.shape for v in program.values]
        for axis, size in enumerate(shape):
            for less in (0, 1, size - 1):
                if least <= less < size:
                    smaller = (*shape[:axis], less, *shape[axis + 1 :])
                    yield _reshaped(program, [*own[:index], smaller, *own[index + 1 :]])
        if shape:
            yield _reshaped(program, [*own[:index], shape[1:], *own[index + 1 :]])
        for plain in ("0", "1", "2"):
            word = plain if value.type.kind != "b" else str(bool(int(plain)))
            yield _valued(program, index, (word,) * len(value.elements))
        for at, element in enumerate(value.elements):
            for plain in ("0", "1"):
                if element not in (plain, "True", "False"):
                    changed = (*value.elements[:at], plain, *value.elements[at + 1 :])
                    yield _valued(program, index, changed)


def _valued(program: Program, index: int, elements: tuple[str, ...]) -> Program:
    values = list(program.values)
    values[index] = dataclasses.replace(values[index], elements=elements)
    return dataclasses.replace(program, values=tuple(values))


def _reshaped(program: Program, shapes: list[tuple[int, ...]]) -> Program:
    """Return a program with inputs of other shapes, filled from the elements there were."""
    values, parameters = [], []
    for value, shape, (name, _) in zip(
        program.values, shapes, program.main.parameters, strict=True
    ):
        kind = Type(shape, value.type.dtype, value.type.weak)
        pool = value.elements or _plain(dataclasses.replace(kind, shape=()))
        elements = tuple(pool[i % len(pool)] for i in range(kind.size))
        values.append(Value(kind, elements))
        parameters.append((name, kind))
    main = dataclasses.replace(program.main, parameters=tuple(parameters))
    return dataclasses.replace(program, main=main, values=tuple(values))
