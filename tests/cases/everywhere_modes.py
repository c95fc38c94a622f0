"""Rows of `tests.cases.everywhere` on other arguments: empty arrays, numbers, and arrays for numbers."""

import ast
import inspect

import numpy as np

from tests.cases.everywhere import Row

_NUMBERS = {bool: np.bool_, int: np.int32, float: np.float32, complex: np.complex64}
# What may be given for a parameter whose default is None.
_FOR_NONE = (np.float32(0.5), np.int32(1), np.bool_(True), np.float32([0.25, 0.5, 0.75]))


def _varied(row, what, arrays, text=None, chosen=()):
    varied = Row(text or row.text, {**row.arrays, **arrays}, row.space)
    varied.label, varied.chosen = f"{what}: {varied.text}", chosen
    return varied


def empty(row):
    """A row for each size that its arrays have, made 0 wherever they have it; and in no batches."""
    given = {name: np.asarray(row.arrays[name]) for name in row.names() if name in row.arrays}
    for size in sorted({size for array in given.values() for size in array.shape}):
        shapes = {k: [0 if n == size else n for n in x.shape] for k, x in given.items()}
        arrays = {name: np.zeros(shapes[name], x.dtype) for name, x in given.items()}
        yield _varied(row, f"no {size}", arrays)
    if given:
        batch = {name: np.zeros((0, *x.shape), x.dtype) for name, x in given.items()}
        yield _varied(row, "no batch", batch)
        yield _varied(row, "batches", {name: np.stack([x, x]) for name, x in given.items()})


def arrays_of_empty(row):
    """A row whose arrays are empty for each number that may be an array."""
    for bare in empty(row):
        for varied in arrays(bare):
            varied.label = f"{bare.label.split(':')[0]}, {varied.label}"
            yield varied


def split(row):
    """A row for the arrays of each subset of size one, and for all, split over eight devices."""
    for chosen in _choices(row):
        parts = {name: np.concatenate([np.asarray(row.arrays[name])] * 8) for name in chosen}
        yield _varied(row, f"split {' '.join(chosen)}", parts, chosen=chosen)


def explicit(row):
    """A row for each way to split its arrays over two Explicit mesh axes of two devices.

    Each dimension of each array alone, the first and the last of one, and all arrays at once: along
    their first dimension, along their last, and over different axes.
    """
    ranks = {name: np.ndim(row.arrays.get(name, 0)) for name in row.names()}
    ranks = {name: rank for name, rank in ranks.items() if rank}
    wanted = [{name: (*[None] * axis, "x")} for name, rank in ranks.items() for axis in range(rank)]
    wanted += [{name: ("x", *[None] * (rank - 2), "y")} for name, rank in ranks.items() if rank > 1]
    if len(ranks) > 1:
        wanted.append(dict.fromkeys(ranks, ("x",)))
        wanted.append({name: (*[None] * (rank - 1), "x") for name, rank in ranks.items()})
        wanted.append({name: ("xy"[index % 2],) for index, name in enumerate(ranks)})
    for specs in wanted:
        sizes = {name: np.shape(row.arrays[name]) for name in specs}
        if all(n % 2 == 0 or not p for k, s in specs.items() for n, p in zip(sizes[k], s)):
            yield _varied(row, f"explicit {specs}", {}, chosen=specs)


def objects(row):
    """A row for each array, given as an object that becomes one."""
    for chosen in _choices(row):
        if len(chosen) == 1:
            yield _varied(row, f"object {chosen[0]}", {}, chosen=chosen)


def _choices(row):
    """All arrays of a row that have axes, and each of them alone."""
    names = [name for name in row.names() if np.ndim(row.arrays.get(name, 0))]
    return [[name] for name in names] + ([names] if len(names) > 1 else [])


def numbers(row):
    """The row with Python numbers, which are weakly typed, for its arrays."""
    given = {name: row.arrays[name] for name in row.names() if np.size(row.arrays.get(name, ()))}
    if given:
        first = {name: np.asarray(x).reshape(-1)[0].item() for name, x in given.items()}
        yield _varied(row, "scalars", first)


def arrays(row):
    """A row for each number that a call of the row names, with an array in its place."""
    try:
        tree = ast.parse(row.text, mode="eval")
    except SyntaxError:
        return
    for call in _calls(tree.body):
        args, keywords = call.args, call.keywords
        for n, node in enumerate(args):
            for value in _values(node):
                call.args = [*args[:n], ast.Name("ARG"), *args[n + 1 :]]
                yield _varied(row, "array", {"ARG": value}, ast.unparse(tree))
            call.args = args
        for n, keyword in enumerate(keywords):
            for value in _values(keyword.value):
                given = ast.keyword(keyword.arg, ast.Name("ARG"))
                call.keywords = [*keywords[:n], given, *keywords[n + 1 :]]
                yield _varied(row, "array", {"ARG": value}, ast.unparse(tree))
            call.keywords = keywords


def defaults(row, m):
    """A row for each parameter that its call leaves out, with an array for a number or None."""
    try:
        call = ast.parse(row.text, mode="eval").body
        function = eval(ast.unparse(call.func), row.space(m))
        parameters = inspect.signature(function).parameters.values()
    except Exception:  # no call, or a function without a signature
        return
    known = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    named = {keyword.arg for keyword in call.keywords}
    keywords = call.keywords
    for n, p in enumerate(known):
        if (n < len(call.args) and p.kind is not p.KEYWORD_ONLY) or p.name in named:
            continue
        if p.default is None:
            values = _FOR_NONE
        elif type(p.default) in _NUMBERS:
            values = [np.asarray(p.default, _NUMBERS[type(p.default)])]
        else:
            continue
        call.keywords = [*keywords, ast.keyword(p.name, ast.Name("ARG"))]
        for value in values:
            said = f"None as {value.dtype}{list(value.shape)}" if p.default is None else "array"
            yield _varied(row, said, {"ARG": value}, ast.unparse(call))


def _calls(tree):
    """The outer calls of an expression: those that are not within another's arguments."""
    if isinstance(tree, ast.Call):
        return [tree]
    if isinstance(tree, (ast.Tuple, ast.List)):
        return [call for item in tree.elts for call in _calls(item)]
    return []


def _values(node):
    """An array of what a node of a call stands for, if it stands for numbers."""
    try:
        value = ast.literal_eval(node)
        array = np.asarray(value)
    except ValueError:
        return
    first = array.reshape(-1)[0].item() if array.size and array.dtype.kind in "biufc" else None
    if type(first) in _NUMBERS:
        yield array.astype(_NUMBERS[type(first)])
