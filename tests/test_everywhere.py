"""Every public function under the settings that a user may have: one table, from `tests.cases.everywhere`.

Types and errors of each row are compared with upstream's as given, with x64, where promotion of ranks
is an error, and where promotion of dtypes is strict; gradients of all rows are traced under both.
Then on empty arrays, gradients in both modes too, also with arrays for numbers, on Python numbers,
within `jit` with an array for each number and each parameter left out that upstream lets be one, within
`shard_map` with split and replicated arrays, on arrays split over Explicit mesh axes, and of objects
that become arrays: where both refuse, the classes of errors are the affair of `test_bad_calls`, but for
those of an array where a number must be known. Then the values of special operands, of every
elementwise function and dtype.
Exceptions and their reasons are in `tests.cases.everywhere_reasons`.
"""

import contextlib
import functools
import itertools
import re
import warnings

import jax
import numpy as np
import pytest

import minijax
from tests.cases import everywhere_modes, everywhere_reasons, special_values
from tests.cases.everywhere import Row, rows

RANK, DTYPE = {"numpy_rank_promotion": "raise"}, {"numpy_dtype_promotion": "strict"}
SETTINGS = {"plain": {}, "x64": {"enable_x64": True}, "rank": RANK, "dtype": DTYPE}
ROWS = rows()
PARTS = 16
TRACED = ("ConcretizationTypeError", "TracerArrayConversionError")


def leaf(x):
    if not hasattr(x, "dtype") or not hasattr(x, "shape"):
        return type(x).__name__
    if x.dtype == minijax.dtypes.float0:
        return tuple(x.shape), "float0"
    parts = list(getattr(getattr(x, "sharding", None), "spec", ()))
    while parts and parts[-1] is None:
        parts.pop()
    return tuple(x.shape), str(x.dtype), bool(getattr(x, "weak_type", False)), *parts


@contextlib.contextmanager
def within(m, settings):
    with contextlib.ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(getattr(m, name)(value))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield


def outcome(m, fun, args, settings, eager=False):
    """The types of the results, or the names of the classes of the error."""
    with within(m, settings):
        try:
            out = fun(*args) if eager else m.eval_shape(fun, *args)
        except Exception as error:
            return [kind.__name__ for kind in type(error).__mro__], str(error)[:300]
        return [leaf(x) for x in m.tree_util.tree_leaves(out)], None


def differ(ours, theirs):
    if theirs[1] is None or ours[1] is None:
        return ours != theirs
    return theirs[0][0] not in ours[0]


def compared(row, setting):
    """What differs in a row under a setting, or None."""
    found = {}
    eager = False
    for m in (jax, minijax):
        with within(m, SETTINGS[setting]):
            args = row.given(m)
        fun = row.function(m)
        found[m] = outcome(m, fun, args, SETTINGS[setting], eager)
        if m is jax and found[m][1] and not set(TRACED).isdisjoint(found[m][0]):
            eager = True  # what cannot be traced
            found[m] = outcome(m, fun, args, SETTINGS[setting], eager)
    if not differ(found[minijax], found[jax]):
        return None
    return f"{setting}: {row.text}\n    ours {found[minijax]}\n    upstream {found[jax]}"


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("setting", SETTINGS)
def test_types_and_errors(setting, part):
    found = [compared(row, setting) for row in ROWS[part::PARTS]]
    found = [text for text in found if text and not _reason(text)]
    assert not found, "\n".join(found)


def _reason(text):
    return everywhere_reasons.reason(everywhere_reasons.REASONS, text.splitlines()[0])


def gradient(row, m):
    """The gradient of the sum of the squares of a row's results, or None."""
    names, fun = row.names(), row.function(m)
    kinds = [np.dtype(row.arrays[n].dtype).kind if n in row.arrays else "" for n in names]
    places = [place for place, kind in enumerate(kinds) if kind in ("f", "c")]

    def squares(*args):
        leaves = [x for x in m.tree_util.tree_leaves(fun(*args)) if hasattr(x, "dtype")]
        leaves = [x for x in leaves if m.numpy.issubdtype(x.dtype, np.inexact)]
        sums = [m.numpy.sum(m.numpy.square(m.numpy.abs(x))).astype(np.float32) for x in leaves]
        return sum(sums, m.numpy.float32(0))

    return m.grad(squares, places) if places else None


@pytest.mark.parametrize("part", range(PARTS))
def test_gradients_promote_freely(part):
    found = []
    for row in ROWS[part::PARTS]:
        ours = gradient(row, minijax)
        if ours is None or outcome(minijax, ours, row.given(minijax), {})[1]:
            continue
        if not outcome(minijax, ours, row.given(minijax), RANK | DTYPE)[1]:
            continue
        for settings in (RANK, DTYPE):  # upstream refuses these operands
            mine = outcome(minijax, ours, row.given(minijax), settings)
            theirs = outcome(jax, gradient(row, jax), row.given(jax), settings)
            if mine[1] and not theirs[1]:
                found.append(f"{settings}: {row.text}: {mine}")
    assert not found, "\n".join(found)


PRODUCT = re.compile(
    r"(?:dot_general|conv_general_dilated)\[(.*?)preferred_element_type", re.DOTALL
)


def lowest_precision(row, m):
    """Whether every product within a call is of the highest precision; None if there is none."""
    try:
        products = PRODUCT.findall(str(m.make_jaxpr(row.function(m))(*row.given(m))))
    except Exception:
        return None
    return all("HIGHEST" in params for params in products) if products else None


@pytest.mark.parametrize("part", range(4))
def test_precision_of_products(part):
    """Where upstream asks for products of the highest precision, which matters on GPUs and TPUs."""
    rows = [row for row in ROWS if re.search("poly|linalg|optimize|signal", row.text)][part::4]
    found = [
        row.text
        for row in rows
        if lowest_precision(row, jax) and lowest_precision(row, minijax) is False
    ]
    assert not found, "\n".join(found)


def forward(row, m):
    """The results and tangents of a row, with respect to its arrays of numbers; or None."""
    names, fun = row.names(), row.function(m)
    kinds = [np.dtype(row.arrays[n].dtype).kind if n in row.arrays else "" for n in names]
    places = [place for place, kind in enumerate(kinds) if kind in ("f", "c")]

    def results(*args):
        given = [args[places.index(n)] if n in places else x for n, x in enumerate(results.args)]
        return [x for x in m.tree_util.tree_leaves(fun(*given)) if hasattr(x, "dtype")]

    def tangents(*args):
        results.args = args
        primals = [args[place] for place in places]
        return m.jvp(results, primals, primals)

    return tangents if places else None


def in_shard_map(row, m):
    """A row within `shard_map`: those of its results that vary over the mesh have an axis less."""
    names, fun = row.names(), row.function(m)
    auto = (m.sharding.AxisType.Auto,)
    mesh = m.sharding.AbstractMesh((8,), ("shards",), axis_types=auto)
    split = m.sharding.PartitionSpec("shards")

    def results(*args):
        leaves = [x for x in m.tree_util.tree_leaves(fun(*args)) if hasattr(x, "dtype")]
        return [varying(x) for x in leaves]

    def varying(x):
        if "shards" in m.typeof(x).mat.varying:
            return x[None]
        return m.lax.pcast(x, "shards", to="varying")[None, None]

    specs = tuple(split if name in row.chosen else m.sharding.PartitionSpec() for name in names)
    return m.shard_map(results, mesh=mesh, in_specs=specs, out_specs=split)


def over_explicit_axes(row, m, of=Row.function):
    """A row on arrays whose types say how they are split."""
    explicit = (m.sharding.AxisType.Explicit,) * 2
    mesh = m.sharding.AbstractMesh((2, 2), ("x", "y"), axis_types=explicit)
    specs = [m.sharding.PartitionSpec(*row.chosen.get(name, ())) for name in row.names()]
    fun = of(row, m)
    if fun is None:
        return None

    def results(*args):
        with m.sharding.use_abstract_mesh(mesh):
            out = fun(*[m.sharding.reshard(x, spec) for x, spec in zip(args, specs, strict=True)])
            return [x for x in m.tree_util.tree_leaves(out) if hasattr(x, "dtype")]

    return results


class Convertible:
    """An object that becomes an array."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return self.x


def of_objects(row, m):
    """A row with objects for those of its arrays that are chosen."""
    names, fun = row.names(), row.function(m)
    return lambda *args: fun(
        *[Convertible(x) if name in row.chosen else x for name, x in zip(names, args, strict=True)]
    )


# How the rows of a mode are called, if not as they stand.
AS_IT_IS = [("", Row.function)]
CALLS = {
    "empty": [*AS_IT_IS, ("gradient: ", gradient), ("forward: ", forward)],
    "split": [("", in_shard_map)],
    "explicit": [
        ("", over_explicit_axes),
        ("gradient: ", functools.partial(over_explicit_axes, of=gradient)),
        ("forward: ", functools.partial(over_explicit_axes, of=forward)),
    ],
    "objects": [("", of_objects)],
}


def test_operands_of_the_user_are_checked():
    for m in (jax, minijax):
        x, y = m.numpy.ones((2, 3)), m.numpy.ones(3)
        with m.numpy_rank_promotion("raise"):
            m.numpy.cov(x, fweights=np.array([1, 2, 3]))
            with pytest.raises(ValueError, match="could not be broadcast together"):
                m.numpy.add(x, y)
            with pytest.raises(ValueError, match="could not be broadcast together"):
                m.jit(lambda x, y: x * y)(x, y)


def _first_of_each_function():
    """A row of each function, by what stands before its arguments."""
    first = {}
    for row in ROWS:
        first.setdefault(row.text.split("(")[0], row)
    return list(first.values())


MODES = {
    "empty": lambda: (varied for row in ROWS for varied in everywhere_modes.empty(row)),
    "arrays of empty": lambda: (
        varied for row in ROWS for varied in everywhere_modes.arrays_of_empty(row)
    ),
    "numbers": lambda: (varied for row in ROWS for varied in everywhere_modes.numbers(row)),
    "arrays": lambda: (varied for row in ROWS for varied in everywhere_modes.arrays(row)),
    "defaults": lambda: (
        varied
        for row in _first_of_each_function()
        for varied in everywhere_modes.defaults(row, jax)
    ),
    "split": lambda: (
        varied for row in _first_of_each_function() for varied in everywhere_modes.split(row)
    ),
    "explicit": lambda: (
        varied for row in _first_of_each_function() for varied in everywhere_modes.explicit(row)
    ),
    "objects": lambda: (
        varied for row in _first_of_each_function() for varied in everywhere_modes.objects(row)
    ),
}


@functools.cache
def varied_rows(mode):
    """The rows of a mode, each once."""
    return list({row.label: row for row in MODES[mode]()}.values())


def context(refused):
    """The line of an error that says which argument's value is needed; None of another error."""
    kinds, message = refused
    return message.splitlines()[1] if message and kinds[0] == "ConcretizationTypeError" else None


def disagreement(row, of=Row.function):
    """What differs in the types of a row's results, or None.

    An array for a number is refused with upstream's class of error, which says where the value is
    needed; of other arguments, for both to refuse them is no difference.
    """
    functions = {m: of(row, m) for m in (jax, minijax)}
    if functions[jax] is None:
        return None
    theirs = outcome(jax, functions[jax], row.given(jax), {})
    kind = row.label.split(":")[0]
    if theirs[1] is not None and not kind.startswith(("no", "array")):  # it need not be taken
        return None
    ours = outcome(minijax, functions[minijax], row.given(minijax), {})
    if kind == "array":
        agree = not differ(ours, theirs) and context(theirs) in (None, context(ours))
    else:
        agree = not differ(ours, theirs) or None not in (ours[1], theirs[1])
    if agree:
        return None
    return f"{row.label}\n    ours {ours}\n    upstream {theirs}"


def disagreements(mode, row):
    """What differs in a row of a mode, in each way that it is called."""
    for said, of in CALLS.get(mode, AS_IT_IS):
        text = disagreement(row, of)
        if text:
            yield f"{mode}: {said}{text}"


@pytest.mark.parametrize("mode", MODES)
def test_modes(mode):
    found = []
    for row in varied_rows(mode):
        found += [text for text in disagreements(mode, row) if not _reason(text)]
    assert not found, "\n".join(found)


def values(row, m):
    """The results of a row within `jit`, as NumPy arrays of what compares."""
    fun, results = row.function(m), []
    leaves = m.jit(
        lambda *args: [x for x in m.tree_util.tree_leaves(fun(*args)) if hasattr(x, "dtype")]
    )(*row.given(m))
    for x in leaves:
        x = np.asarray(m.random.key_data(x) if "key" in str(x.dtype) else x)
        results.append(x.astype(np.float32) if x.dtype.kind == "V" else x)
    return results


def test_values_of_arrays_for_numbers():
    for row in varied_rows("arrays"):
        random = "rng_uniform" in row.label  # whose state is the device's
        if random or outcome(jax, row.function(jax), row.given(jax), {})[1] is not None:
            continue
        for ours, theirs in zip(values(row, minijax), values(row, jax), strict=True):
            narrow = ours.dtype.itemsize < 4 and ours.dtype.kind not in "biu"
            bound = 2e-3 if narrow else 2e-4
            np.testing.assert_allclose(ours, theirs, bound, bound, err_msg=row.label)


def _compared_rows(pattern):
    """What differs, or None, in each row that an exception speaks of."""
    for setting, row in itertools.product(SETTINGS, ROWS):
        if re.search(pattern, f"{setting}: {row.text}"):
            yield compared(row, setting)
    for mode in MODES:
        for row, (said, of) in itertools.product(varied_rows(mode), CALLS.get(mode, AS_IT_IS)):
            if re.search(pattern, f"{mode}: {said}{row.label}"):
                yield disagreement(row, of)


@pytest.mark.parametrize("pattern", everywhere_reasons.REASONS)
def test_every_exception_is_needed(pattern):
    """An exception whose rows all agree is to be deleted."""
    assert any(_compared_rows(pattern))


def _special_cases():
    """All functions of all dtypes, as "path, dtype"."""
    return list(itertools.product(special_values.functions(), special_values.DTYPES))


def _special_differences(path, dtype, excused):
    bound = everywhere_reasons.reason(everywhere_reasons.ULP, f"{dtype}: {path}") or 8
    return special_values.compare(path, dtype, bound, excused)


@pytest.mark.parametrize("part", range(PARTS))
def test_special_values(part):
    """Every elementwise function of signed zeros, infinities, NaN and extremes, in units of the last place."""
    excused = functools.partial(everywhere_reasons.reason, everywhere_reasons.OPERANDS)
    found = []
    for path, dtype in _special_cases()[part::PARTS]:
        if not everywhere_reasons.reason(everywhere_reasons.SPECIAL, f"{dtype}: {path}"):
            found += _special_differences(path, dtype, excused)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("pattern", [*everywhere_reasons.SPECIAL, *everywhere_reasons.OPERANDS])
def test_every_exception_of_special_values_is_needed(pattern):
    function, *operands = pattern.split(r"\(")
    cases = [case for case in _special_cases() if re.search(function, f"{case[1]}: {case[0]}")]
    others = lambda label: operands and not re.search(pattern, label)
    assert any(_special_differences(*case, others) for case in cases)
