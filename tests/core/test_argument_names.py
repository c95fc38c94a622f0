"""The names of arguments, in errors and in programs, where others of the call are static."""

import functools
import logging
import re

import jax
import jax.numpy
import pytest

import minijax
import minijax.numpy

# The function of `(use, static, left)`, where `use` is done to an argument; how it is called.
CALLS = {
    "first": (lambda use: lambda n, y, z=1: use(y), {"static_argnums": 0}, (3, 1.0), {}),
    "first by name": (lambda use: lambda n, y, z=1: use(y), {"static_argnames": "n"}, (3, 1.0), {}),
    "first as keyword": (lambda use: lambda n, y: use(y), {"static_argnames": "n"}, (), {"n": 3, "y": 1.0}),
    "first and last": (lambda use: lambda n, y, z: use(y), {"static_argnums": (0, 2)}, (3, 1.0, 2), {}),
    "from the end": (lambda use: lambda n, y, z: use(y), {"static_argnums": -3}, (3, 1.0, 2.0), {}),
    "last": (lambda use: lambda n, y: use(n), {"static_argnums": -1}, (1.0, 3), {}),
    "of the rest": (lambda use: lambda n, *r: use(r[1]), {"static_argnums": (0, 1)}, (3, 2, 1.0), {}),
    "of all": (lambda use: lambda *r: use(r[1]), {"static_argnums": 0}, (3, 1.0), {}),
    "keyword only": (lambda use: lambda y, *, n, z: use(z), {"static_argnames": "n"}, (1.0,), {"n": 3, "z": 1.0}),
    "further keywords": (lambda use: lambda *r, **k: use(k["b"]), {"static_argnames": "a"}, (1.0,), {"a": 3, "b": 1.0}),
    "pytree": (lambda use: lambda n, p: use(p["k"][1]), {"static_argnums": 0}, (3, {"k": [1.0, 2.0]}), {}),
    "partial": (
        lambda use: functools.partial(lambda a, n, y: use(y), 1), {"static_argnums": 0}, (3, 1.0), {},
    ),
}  # fmt: skip


def _named(error):
    return re.findall(
        r"(?:value of the argument|at path|argument path is) ([\w\[\]'\"]+)", str(error)
    )[0]


def _told(m, make, marks, args, kwargs, use):
    with pytest.raises((TypeError, OverflowError)) as caught:
        m.jit(make(lambda x: use(m, x)), **marks)(*args, **kwargs)
    return _named(caught.value)


USES = {
    "if": lambda m, x: 1 if x > 0 else 2,
    "float": lambda m, x: float(x),
    "range": lambda m, x: list(range(x.astype(int))),
    "shape": lambda m, x: m.numpy.zeros(x.astype(int)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_concrete_values(call, use):
    assert _told(minijax, *call, use) == _told(jax, *call, use)


@pytest.mark.parametrize("value", ["text", 10**20, object()], ids=["text", "large", "object"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_values_that_are_no_arrays(call, value):
    make, marks, args, kwargs = call
    give = lambda x: value if type(x) is float else x
    args, kwargs = jax.tree.map(give, (args, kwargs))
    use = lambda m, x: x
    assert _told(minijax, make, marks, args, kwargs, use) == _told(
        jax, make, marks, args, kwargs, use
    )


def _parameters(m, make, marks, args, kwargs):
    """The names in the module and in HLO, and those that a compiled function compares types by."""
    lowered = m.jit(make(lambda x: x + 1), **marks).lower(*args, **kwargs)
    text = lowered.as_text("hlo")
    named = re.findall(r'loc\("([^"/]*)"\)', lowered.as_text(debug_info=True))
    return re.findall(r"(\S+) = \S+ parameter", text[text.index("ENTRY") :]), named


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_parameters_of_programs(call):
    assert _parameters(minijax, *call) == _parameters(jax, *call)


def _mismatch(m):
    compiled = m.jit(lambda n, y: y, static_argnums=0).lower(3, m.numpy.ones(3)).compile()
    with pytest.raises(TypeError, match="Argument types differ from the types") as caught:
        compiled(m.numpy.ones(4))
    return str(caught.value)


def test_compiled_for_other_types():
    assert _mismatch(minijax) == _mismatch(jax)


def _static(m, transform):
    use = lambda n, y: float(m.numpy.sum(y))
    if transform == "checkpoint":
        return m.checkpoint(use, static_argnums=0)(3, 1.0)
    if transform == "make_jaxpr":
        return m.make_jaxpr(use, static_argnums=0)(3, 1.0)
    function = getattr(m, transform)(use, nondiff_argnums=(0,))
    if transform == "custom_jvp":
        function.defjvp(lambda n, primals, tangents: (primals, tangents))
    else:
        function.defvjp(lambda n, y: (y, None), lambda n, _, g: (g,))
    return m.jit(function, static_argnums=0)(3, 1.0)


@pytest.mark.parametrize("transform", ["checkpoint", "make_jaxpr", "custom_jvp", "custom_vjp"])
def test_other_transforms(transform):
    with pytest.raises(minijax.errors.ConcretizationTypeError) as caught:
        _static(minijax, transform)
    assert _named(caught.value) == "y"
    with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
        _static(jax, transform)
    assert _named(caught.value) == ("unknown" if transform == "custom_vjp" else "y")


def test_cache_misses(caplog):
    f = minijax.jit(lambda n, y: y, static_argnums=0)
    with minijax.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        f(3, 1.0)
        f(3, 1)
    assert "* at y," in caplog.text and "at n" not in caplog.text
    assert "y: " in str(f.explain_cache()) and "n: " not in str(f.explain_cache())


def _nested_options(m):
    inner = m.jit(lambda x: x, compiler_options={"xla_embed_ir_in_executable": True})
    with pytest.raises(ValueError) as caught:
        m.jit(lambda x: inner(x))(1.0)
    return re.split(r"\. Give|\sand source", str(caught.value))[0]


def test_options_of_a_nested_jit():
    assert _nested_options(minijax) == _nested_options(jax)
