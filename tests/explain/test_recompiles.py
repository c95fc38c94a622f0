"""`explain.recompiles` and `f.explain_cache()`: why functions are traced again."""

import functools
import re

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.features.diagnostics import long_compilations
from minijax.features.diagnostics.recompilations import show

ONES = np.ones(3, np.float32)


class _Config:
    """An object that equals no other."""

    def __repr__(self):
        return "Config()"


class _Model:
    def step(self, x):
        return x + 1


def _free(x):
    return x * 2


def _shape():
    f = jax.jit(lambda x: x + 1)
    return f, [(ONES,), (np.ones(4, np.float32),)], "x is f32[4], before f32[3]", "Pad it"


def _axes():
    f = jax.jit(lambda x: x + 1)
    return f, [(ONES,), (ONES[None],)], "f32[1,3], before f32[3]", "as many axes"


def _dtype():
    f = jax.jit(lambda x: x + 1)
    return f, [(ONES,), (np.ones(3, np.int32),)], "x is i32[3]", "astype('float32')"


def _weak_type():
    f = jax.jit(lambda x: x + 1)
    return f, [(np.float32(1),), (1.0,)], "x is a Python number, before an array", "jnp.asarray(x"


def _structure():
    f = jax.jit(lambda p, y: p["a"])
    return f, [({"a": ONES}, 1), ({"b": ONES, "a": ONES}, 1)], "'b'", "as many arrays"


def _names():
    f = jax.jit(lambda x, y: x + y)
    return f, [((ONES, 1), {}), ((ONES,), {"y": 1})], "structure", "by position or by name"


def _static():
    f = jax.jit(lambda x, n: x * n, static_argnums=1)
    return f, [(ONES, 1), (ONES, 2)], "static argument n is 2, before 1", "trace it"


def _static_object():
    f = jax.jit(lambda x, c: x, static_argnames="c")
    calls = [((ONES,), {"c": _Config()}), ((ONES,), {"c": _Config()})]
    return f, calls, "static argument c is Config()", "frozen dataclass"


def _static_number():
    f = jax.jit(lambda x, n: x * n, static_argnums=1)
    return f, [(ONES, 0.1), (ONES, 0.2)], "is 0.2, before 0.1", "can be traced"


CAUSES = {
    "shape": _shape,
    "number of axes": _axes,
    "dtype": _dtype,
    "weak type": _weak_type,
    "number of arrays": _structure,
    "structure": _names,
    "static value": _static,
    "static object": _static_object,
    "static number": _static_number,
}


_MIXED = {
    "1.5 after 1": (1, 1.5, "jnp.asarray(x, 'float32')"),
    "1 after 1.5": (1.5, 1, "jnp.asarray(x, 'float32')"),
    "True after 2": (2, True, "jnp.asarray(x, 'int32')"),
    "an integer after floats": (ONES, ONES.astype(np.int32), "x.astype('float32')"),
    "floats after integers": (ONES.astype(np.int32), ONES, "x.astype('float32')"),
    "a number after an array": (np.float16(1), 2, "jnp.asarray(x, 'float16')"),
    "complex after float": (ONES, ONES.astype(np.complex64), "x.astype('complex64')"),
}


@pytest.mark.parametrize("name", _MIXED)
def test_types_that_change_are_converted_to_one_that_holds_both(name):
    before, now, remedy = _MIXED[name]
    f = jax.jit(lambda x: x + 1)
    f(before), f(now)
    change = explain.recompiles(f).changes[-1]
    assert (change.cause, change.remedy) == ("dtype", f"Convert it each time: {remedy}.")
    g = jax.jit(lambda x: x + 1)
    for x in (before, now):
        converted = eval(remedy, {"jnp": jnp, "x": x})
        np.testing.assert_array_equal(converted, x)
        g(converted)
    assert len(g.explain_cache()) == 1


def test_arguments_that_come_and_go_are_named():
    f = jax.jit(lambda p, x: x)
    f({"a": 1}, 2), f({"a": 1, "b": 2}, 2), f({"b": 1}, 2)
    told = [change.what for change in explain.recompiles(f).changes]
    assert told[0] == "p['b'] is there now"
    assert "p['a'] was there before" in told[1]


@pytest.mark.parametrize("cause", CAUSES)
def test_causes_of_one_function(cause):
    f, calls, what, remedy = CAUSES[cause]()
    for call in calls:
        args, named = (
            call if isinstance(call[-1], dict) and isinstance(call[0], tuple) else (call, {})
        )
        for _ in range(2):  # a call of the same types is found
            f(*args, **named)
    (change,) = explain.recompiles(f).changes
    assert change.cause == cause
    assert what in change.what
    assert remedy in change.remedy
    assert len(f.explain_cache()) == 2
    assert f.__name__ in str(f.explain_cache())


def test_causes_of_functions_made_anew():
    def lambdas():
        for _ in range(2):
            yield lambda x: x + 1

    def closures():
        for scale in (2, 3):

            def f(x, scale=None, *, factor=scale):
                return x * (scale or factor)

            yield f

    def over(scale):
        def f(x):
            return x * scale

        return f

    made = {
        "lambda or function defined anew": list(lambdas()),
        "new closure": [over(2), over(3)],
        "new partial": [functools.partial(_free), functools.partial(_free)],
        "new object": [_Model().step, _Model().step],
    }
    for cause, functions in made.items():
        for f in functions:
            jax.jit(f)(ONES)
        found = explain.recompiles(getattr(functions[0], "func", functions[0]))
        assert [c.cause for c in found.changes] == [cause], cause
    assert "(3, before 2)" in explain.recompiles(made["new closure"][0]).changes[0].what
    assert list(closures())


def test_causes_around_a_function():
    def f(x):
        return x + 1

    jax.jit(f)(ONES)
    jax.jit(f, keep_unused=True)(ONES)
    with jax.default_matmul_precision("highest"):
        jax.jit(f)(ONES)
    jax.vmap(jax.jit(f), axis_name="i")(ONES)
    causes = [change.cause for change in explain.recompiles(f).changes]
    assert causes[:2] == ["other options, or caches cleared", "setting"]
    assert "context" in causes[2:] or "number of axes" in causes[2:]

    def outer(x):
        g = jax.jit(lambda y: y * x)
        return g(1.0) + g(1.0)

    jax.jit(outer)(2.0)
    causes = {c.cause for r in explain.recompiles().records if r.name == "<lambda>"
              for c, *_ in r.changes if r.place == (__file__, outer.__code__.co_firstlineno + 1)}  # fmt: skip
    assert causes == {"other options, or caches cleared"}


def test_the_third_tracing_is_told_once(capsys):
    f = jax.jit(lambda x: x + 1)
    explain.recompiles(tell=True)
    try:
        for n in range(1, 9):
            f(np.ones(n, np.float32))
        told = capsys.readouterr().err
        explain.recompiles(tell=False)
        f(np.ones(9, np.float32))
        assert capsys.readouterr().err == ""
    finally:
        show(None)
    assert told.count("has been traced 3 times") == 1
    assert told.count("has been traced") == 2  # and the sixth
    assert f"{__file__}:" in told
    assert "shape: x is f32[3], before f32[" in told
    assert "f32[9]" in str(explain.recompiles(f))


def test_nothing_is_told_where_nobody_watches(capsys):
    f = jax.jit(lambda x: x)
    for n in range(5):
        f(np.ones(n, np.float32))
    assert capsys.readouterr() == ("", "")


def test_library_functions_are_not_counted():
    for n in range(3):
        jnp.var(jnp.ones(n + 1))
        jax.jit(jnp.sin)(np.ones(n, np.float32))
    assert not [
        r for r in explain.recompiles().records if "minijax" in r.place[0].split("/tests")[-1]
    ]


def test_a_long_compilation_is_told(monkeypatch, capsys):
    def f(x):
        for _ in range(60):
            x = jnp.sin(x) * 2 + jnp.cos(x)
        return x

    monkeypatch.setattr(long_compilations, "_AFTER", 0.0)
    jax.jit(f).lower(1.0).compile()
    assert capsys.readouterr().err == ""
    show(True)
    try:
        jax.jit(f).lower(2).compile()
        told = capsys.readouterr().err
    finally:
        show(None)
    assert re.fullmatch(r"compiling jit\(f\) for cpu, \d+ operations ... \d+\.\d s\n", told)
