"""`checkify` against upstream: messages with format specifications, values known to the function, errors
that are checked again, and what is raised.
"""

import jax
import jax.experimental.checkify
import numpy as np
import pytest

import minijax
import minijax.experimental.checkify


def _positive(j, x):
    j.experimental.checkify.check(x > 0, "must be positive: {x:.3f}, {y!r:>20}", x=x, y=x * 2)
    return x


FUNCTIONS = {
    "user": _positive,
    "nan": lambda j, x: j.numpy.log(x),
    "div": lambda j, x: 1 / (x + 1),
    "oob": lambda j, x: j.numpy.arange(3.0)[x.astype(int) + 7],
    "jit": lambda j, x: j.jit(lambda x: _positive(j, x))(x),
    "scan": lambda j, x: j.lax.scan(lambda c, y: (_positive(j, c) - y, c), x, x[None] + 1)[0],
    "cond": lambda j, x: j.lax.cond(
        x > 0, lambda x: _positive(j, x), lambda x: _positive(j, x - 1), x
    ),
    "grad": lambda j, x: j.grad(lambda x: _positive(j, x) ** 2)(x),
}
MESSAGES = {
    "width from a value": ("{x:{w}.2f}|", lambda j, x: {"x": x, "w": j.numpy.int32(9)}),
    "attributes": ("{x.shape} {x.dtype}", lambda j, x: {"x": x}),
    "array": ("{x} {y[a]}", lambda j, x: {"x": x[None], "y": {"a": x}}),
    "bfloat16": ("{x:.3f} {x}", lambda j, x: {"x": x.astype("bfloat16")}),
    "integers": ("{x:05d} {y:#x}", lambda j, x: {"x": x.astype(int), "y": x.astype("uint8")}),
    "unknown code": ("{x:zz}", lambda j, x: {"x": x}),
    "code of an array": ("{x:.2f}", lambda j, x: {"x": x[None]}),
    "no such value": ("{x} {z}", lambda j, x: {"x": x}),
    "no such place": ("{x} {}", lambda j, x: {"x": x}),
}
KNOWN = {
    "string": (lambda j, x, how: j.numpy.sum(x) if how == "sum" else x, ("sum",)),
    "size": (lambda j, x, n: j.numpy.zeros(n) + x, (3,)),
    "function": (lambda j, x, f: f(j, x), (lambda j, x: j.numpy.sin(x),)),
    "object": (lambda j, x, o: x, (object(),)),
    "NumPy": (lambda j, x, y: x + np.sin(y), (np.arange(3.0),)),
    "item": (lambda j, x: x + x.item(), ()),
    "keywords": (lambda j, x, d: x + d["n"] if d["how"] else x, ({"n": 2, "how": "add"},)),
    "passed on": (lambda j, x, y: (x, j.numpy.asarray(y)), (np.arange(3),)),
}
KINDS = ("user", "nan", "div", "index", "all")


def _outcome(run):
    """The result, or the class of the error and how its message begins."""
    try:
        return run()
    except Exception as error:
        return type(error), str(error).split("\n")[0].split(":")[0].strip("\"'")


def _errors(j, kind):
    return getattr(j.experimental.checkify, f"{kind}_checks")


def _read(error, out):
    found = error.get_exception()
    return error.get(), type(found).__name__, [(str(x.dtype), x.tolist()) for x in out]


def _same(run):
    mine, theirs = _outcome(lambda: run(minijax)), _outcome(lambda: run(jax))
    if isinstance(theirs, tuple) and isinstance(theirs[0], type):
        assert mine[0].__name__ == theirs[0].__name__
        assert mine[1] == theirs[1]
    else:
        assert mine == theirs


@pytest.mark.parametrize("x", [-1.0, 2.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_failures(name, x):
    def run(j):
        checked = j.experimental.checkify.checkify(
            lambda x: FUNCTIONS[name](j, x), _errors(j, "all")
        )
        error, out = checked(j.numpy.float32(x))
        return _read(error, [out] if np.isfinite(out) else [])

    _same(run)


@pytest.mark.parametrize("x", [-1.0, 2.0])
@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_filled_with_values(name, x):
    template, values = MESSAGES[name]

    def run(j):
        check = j.experimental.checkify.check
        fails = lambda x: check(x > 0, template, **values(j, x))
        return j.experimental.checkify.checkify(fails)(j.numpy.float32(x))[0].get()

    _same(run)


@pytest.mark.parametrize("name", KNOWN)
def test_the_function_knows_its_arguments(name):
    def run(j):
        fun, args = KNOWN[name]
        checked = j.experimental.checkify.checkify(lambda *args: fun(j, *args))
        error, out = checked(j.numpy.float32(1.5), *args)
        return _read(error, j.tree.leaves(out))

    _same(run)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("outer", KINDS)
@pytest.mark.parametrize("name", ["user", "nan", "div", "oob"])
def test_an_error_that_is_checked_again_keeps_its_kind(name, outer, mapped):
    def run(j):
        library = j.experimental.checkify
        checked = library.checkify(lambda x: FUNCTIONS[name](j, x), _errors(j, "all"))
        if mapped:
            error = j.vmap(checked)(j.numpy.asarray([2.0, -1.0, -1.5, 3.0]))[0]
        else:
            error = checked(j.numpy.float32(-1))[0]
        return _read(library.checkify(library.check_error, _errors(j, outer))(error)[0], [])

    _same(run)


@pytest.mark.parametrize("x", [[1.0, -1.0, -2.0], [-3.0, 1.0], [1.0, 2.0]])
def test_the_last_failure_of_a_mapped_error_is_raised(x):
    def run(j):
        library = j.experimental.checkify
        error = j.vmap(library.checkify(lambda x: _positive(j, x)))(j.numpy.asarray(x))[0]
        try:
            library.check_error(error)
        except ValueError as raised:
            return type(raised).__name__, str(raised)
        return None

    assert run(minijax) == run(jax)
    none = minijax.vmap(minijax.experimental.checkify.checkify(lambda x: _positive(minijax, x)))(
        minijax.numpy.zeros(0)
    )[0]
    assert minijax.jit(minijax.experimental.checkify.check_error)(none) is None


SOUND = {
    "after the last": lambda j, x: j.numpy.searchsorted(x, 9.0),
    "before the first": lambda j, x: j.numpy.searchsorted(x, -9.0, side="right"),
    "unrolled": lambda j, x: j.numpy.searchsorted(x, x + 1, method="scan_unrolled"),
    "interp": lambda j, x: j.numpy.interp(9.0, x, x),
    "digitize": lambda j, x: j.numpy.digitize(x + 1, x),
    "histogram": lambda j, x: j.numpy.histogram(x, 3)[0],
    "quantile": lambda j, x: j.numpy.quantile(x, 1.0),
    "repeat": lambda j, x: j.numpy.repeat(x, j.numpy.arange(4), total_repeat_length=6),
    "repeat, longer": lambda j, x: j.numpy.repeat(x, j.numpy.arange(4), total_repeat_length=9),
    "unique": lambda j, x: j.numpy.unique(x % 2, size=4, return_inverse=True)[0],
    "unique rows": lambda j, x: j.numpy.unique(x.reshape(2, 2) * 0, axis=0, size=2),
    "union1d": lambda j, x: j.numpy.union1d(x, x, size=6),
    "compress": lambda j, x: j.numpy.compress(x > 1, x, size=4),
    "extract": lambda j, x: j.numpy.extract(x > 1, x, size=3, fill_value=7),
    "float0": lambda j, x: np.zeros(2, j.dtypes.float0),
}


@pytest.mark.parametrize("name", SOUND)
def test_functions_of_the_library_that_do_not_fail(name):
    def run(j):
        checked = j.experimental.checkify.checkify(lambda x: SOUND[name](j, x), _errors(j, "all"))
        error, out = checked(j.numpy.arange(4.0))
        return error.get(), isinstance(out, j.Array), np.asarray(out).tolist()

    _same(run)


WRONG = (None, 3, "text", 1.5, [1.0], np.ones(2), np.array([True, False]), {}, object)


@pytest.mark.parametrize("name", ["check", "debug_check"])
@pytest.mark.parametrize("pred", WRONG, ids=lambda x: type(x).__name__)
def test_wrong_conditions(name, pred):
    _same(lambda j: getattr(j.experimental.checkify, name)(pred, "message"))
    _same(lambda j: getattr(j.experimental.checkify, name)(True, "message {x}", x=pred))
