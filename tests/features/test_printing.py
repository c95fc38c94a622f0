"""Jaxprs print as upstream's do: the same programs in both libraries, compared as text.

The programs use lax operations, and a primitive of the test's own that has any parameters.
"""

import functools
import itertools
import re

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
import minijax.features.printing
from minijax.core.avals import ShapedArray
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import Primitive
from minijax.features.printing import format_jaxpr
from tests.harness.differential import BOTH

pytestmark = pytest.mark.both_ends

THEIRS = jax.extend.core.Primitive("printing_test")
THEIRS.multiple_results = True
OURS = Primitive("printing_test", multiple_results=True, holds_programs=True)


@THEIRS.def_abstract_eval
def _(*avals, n=1, **params):
    return [jax.core.ShapedArray((3,), jnp.float32)] * n


@OURS.shape_rule
def _(*avals, n=1, **params):
    return [ShapedArray((3,), np.dtype(np.float32))] * n


VECTOR = np.ones(3, np.float32)


def call(m, *args, **params):
    return (THEIRS if m is jax else OURS).bind(*args, **params)


@functools.cache
def scale(m):
    def scale(x):
        return m.lax.mul(x, x)

    return m.jit(scale)


@functools.cache
def nested(m):
    def outer(x):
        return m.lax.neg(scale(m)(scale(m)(x)))

    return m.jit(outer)


@functools.cache
def numbered(m, number):
    def f(x):
        for _ in range(number):
            x = m.lax.neg(x)
        return x

    return m.jit(f)


@functools.cache
def program(m, length=1):
    """A small program, to stand in parameters."""

    def fun(x):
        for _ in range(length):
            x = m.lax.neg(x)
        return x

    return m.make_jaxpr(fun)(VECTOR)


def long(count, m, x):
    for _ in range(count):
        x = m.lax.sin(x)
    return x


def jitted(m, fun, *args, **options):
    return m.jit(fun, **options)(*args)


PROGRAMS = {
    "nothing": lambda m, x: x,
    "literals": lambda m, x: (1, 2.0, x, True, 1j),
    "one equation": lambda m, x: m.lax.sin(x),
    "two equations": lambda m, x: m.lax.sin(m.lax.cos(x)),
    "three equations": lambda m, x: m.lax.sin(m.lax.cos(m.lax.sin(x))),
    "names beyond z": lambda m, x: long(60, m, x),
    "number operand": lambda m, x: m.lax.add(x, np.float32(1.1)),
    "infinite operand": lambda m, x: m.lax.mul(x, np.float32(-np.inf)),
    "constant": lambda m, x: m.lax.add(x, np.arange(3.0, dtype=np.float32)),
    "unread result": lambda m, x: (m.lax.sin(x), m.lax.cos(x))[1],
    "unread results": lambda m, x: call(m, x, n=3)[1],
    "no result": lambda m, x: call(m, x, n=0),
    "no operand": lambda m, x: call(m, n=1),
    "long lines of results": lambda m, x: call(m, x, n=30),
    "long lines of operands": lambda m, x: call(m, *call(m, x, n=60)),
    "parameters": lambda m, x: call(m, x, b=1, a=None, name="n", Z=2.5, c=(1, (2,)), d="text"),
    "dtype parameter": lambda m, x: call(m, x, p=np.dtype("int8"), q=(np.dtype("int8"),)),
    "long parameter": lambda m, x: call(m, x, p="x" * 90),
    "function parameter": lambda m, x: call(m, x, p=long, q=(long,), r={"a": 1}.get),
    "program parameter": lambda m, x: call(m, x, p=program(m), q=1),
    "programs parameter": lambda m, x: call(m, x, p=(program(m, 2), program(m, 3)), q="y" * 80),
    "short programs parameter": lambda m, x: call(m, x, p=(program(m),), q="y" * 80),
    "shared program": lambda m, x: (call(m, x, p=program(m)), call(m, x, p=program(m))),
    "twice in a tuple": lambda m, x: call(m, x, p=(program(m), program(m))),
    "long program": lambda m, x: call(m, x, p=program(m, 11)),
    "jit": lambda m, x: scale(m)(x),
    "jit twice": lambda m, x: scale(m)(scale(m)(x)),
    "jit of two shapes": lambda m, x: (
        scale(m)(scale(m)(x)), scale(m)(np.float32(1)), scale(m)(np.float32(1))
    ),
    "jit in jit": lambda m, x: nested(m)(x),
    "jit in jit twice": lambda m, x: nested(m)(nested(m)(x)),
    "inner and outer": lambda m, x: (nested(m)(x), scale(m)(x)),
    "same name": lambda m, x: [
        numbered(m, k)(numbered(m, k)(x)) for k in (1, 2, 3)
    ],
    "jit of lambda": lambda m, x: jitted(m, lambda y: m.lax.sin(m.lax.sin(y)), x),
    "jit, argument twice": lambda m, x: jitted(m, m.lax.mul, m.lax.sin(x), m.lax.sin(x)),
    "jit, argument passed on": lambda m, x: jitted(
        m, lambda a, b: (b, a, m.lax.mul(a, b), 1.0), m.lax.sin(x), m.lax.cos(x)
    ),
    "jit, unread results": lambda m, x: jitted(
        m, lambda a: (a, m.lax.sin(a), m.lax.cos(a)), x
    )[2],
    "jit, unread inside": lambda m, x: jitted(m, lambda a: (m.lax.sin(a), m.lax.cos(a))[1], x),
    "jit, kept": lambda m, x: jitted(m, lambda a: 1.0, x, keep_unused=True),
    "jit, donated": lambda m, x: jitted(m, m.lax.neg, x, donate_argnums=0),
    "long jit": lambda m, x: numbered(m, 11)(x),
    "jit of some length": lambda m, x: numbered(m, 10)(x),
    "name of a variable": lambda m, x: named_a(m)(named_a(m)(x)),
}  # fmt: skip


@functools.cache
def named_a(m):
    def a(x):
        return m.lax.neg(x)

    return m.jit(a)


def text(m, name, **options):
    jaxpr = m.make_jaxpr(functools.partial(PROGRAMS[name], m))(VECTOR)
    return jaxpr.pretty_print(**options) if options else str(jaxpr)


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name):
    assert text(minijax, name) == text(jax, name)


@pytest.mark.parametrize("name", ["jit in jit", "long lines of results", "shared program"])
@pytest.mark.parametrize("options", [{"print_shapes": False}, {"width": 40}, {"width": 200},
                                     {"print_effects": True}])  # fmt: skip
def test_options(name, options):
    assert text(minijax, name, **options) == text(jax, name, **options)


@pytest.mark.parametrize("count", range(1, 30))
def test_where_parameters_break(count):
    length = 40 + count
    for tail in ("", "y" * 5):
        ours, theirs = (
            str(m.make_jaxpr(lambda x, m=m: call(m, x, p="x" * length, q=tail))(VECTOR))
            for m in BOTH
        )
        assert ours == theirs


@pytest.mark.parametrize("count", range(2, 60, 3))
def test_where_lines_break(count):
    ours, theirs = (
        str(m.make_jaxpr(lambda *xs, m=m: (call(m, *xs), xs[::-1]))(*[VECTOR] * count))
        for m in BOTH
    )
    assert ours == theirs


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int4", "int8", "uint32", "float8_e4m3fn", "bfloat16", "float16", "float32",
     "complex64", "float8_e5m2"],
)  # fmt: skip
def test_dtypes_and_literals(dtype):
    x = np.ones(2, jnp.dtype(dtype))
    ours, theirs = (str(m.make_jaxpr(lambda x, m=m: call(m, x, x.dtype.type(1)))(x)) for m in BOTH)
    assert ours == theirs


NUMBERS = [
    *itertools.product(
        ["float32", "bfloat16", "float16", "complex64", "int32"], [0.1, 1e30, 2.0, -0.0, 3.14159, 3]
    ),
    ("complex64", 0.1 + 0.1j),
]


@pytest.mark.parametrize(("dtype", "number"), NUMBERS)
@pytest.mark.parametrize("fun", ["multiply", "maximum", "equal"])
def test_numbers_beside_arrays(fun, dtype, number):
    x = np.ones(2, jnp.dtype(dtype))
    ours, theirs = (
        str(m.make_jaxpr(lambda x, m=m: getattr(m.numpy, fun)(x, number))(x)) for m in BOTH
    )
    assert ours == theirs


def test_numbers_given_to_calls():
    ours, theirs = (
        str(m.make_jaxpr(lambda x, m=m: (jitted(m, m.lax.mul, x, 0.1), 0.1))(VECTOR)) for m in BOTH
    )
    assert ours == theirs


INDICES = {
    "...": lambda r: r[...],
    "()": lambda r: r[()],
    "None": lambda r: r[None],
    ":": lambda r: r[:],
    ":, :": lambda r: r[:, :],
    "..., :": lambda r: r[..., :],
    ":, ...": lambda r: r[:, ...],
    "0": lambda r: r[0],
    "0, ...": lambda r: r[0, ...],
    "..., 0": lambda r: r[..., 0],
    "-1": lambda r: r[-1],
    "whole": lambda r: r[0:5, ::1],
    "beyond": lambda r: r[0:50],
    "negative": lambda r: r[-3:-1],
    "none": lambda r: r[3:1],
    "tail": lambda r: r[1:, :2],
    "array": lambda r: r[np.array([0, 1]), 1:],
    "set": lambda r: r.__setitem__(slice(None), np.ones((5, 6), np.float32)),
    "set all": lambda r: r.__setitem__(..., np.ones((5, 6), np.float32)),
}


@pytest.mark.parametrize("index", INDICES)
def test_indices_of_references(index):
    def shown(m):
        def fun(x):
            ref = m.new_ref(x)
            INDICES[index](ref)
            return ref[...]

        lines = str(m.make_jaxpr(fun)(np.ones((5, 6), np.float32))).splitlines()
        return [line for line in lines if "<-" in line]

    assert shown(minijax) == shown(jax)


def test_lowered_hlo_with_names_of_operations():
    def fun(x, m):
        with m.named_scope("outer"), m.named_scope("inner"):
            y = m.numpy.sin(x)
        return m.jit(m.numpy.cos)(y).sum()

    def names(m, debug):
        lowered = m.jit(functools.partial(fun, m=m)).lower(VECTOR)
        text = lowered.as_text("hlo", debug_info=debug)
        assert 'source_file="-"' not in text and "%" not in text
        return set(re.findall(r'op_name="(.*?/.*?)"', text))

    assert names(minijax, False) == names(jax, False) == set()
    assert names(minijax, True) == names(jax, True) != set()


def test_places_of_lowered_text_are_lines_of_the_user():
    def fun(x):
        return minijax.jit(minijax.numpy.cos)(x).sum()

    assert 'loc("-"' not in minijax.jit(fun).lower(VECTOR).as_text(debug_info=True)


def scoped(m):
    def fun(x):
        with m.named_scope("outer"), m.named_scope("inner"):
            y = m.lax.sin(x)
        return scale(m)(y)

    return m.make_jaxpr(fun)(VECTOR)


def test_name_stack():
    ours, theirs = (scoped(m).pretty_print(name_stack=True) for m in BOTH)
    assert ours == theirs


def test_source_info():
    ours, theirs = (scoped(m).pretty_print(source_info=True) for m in BOTH)
    assert ours == theirs
    assert re.search(r"test_printing\.py:\d+:\d+ \(scoped\.<locals>\.fun\)", ours)


def test_equations_alone():
    for name in ("two equations", "jit", "long parameter"):
        ours, theirs = (
            str(m.make_jaxpr(functools.partial(PROGRAMS[name], m))(VECTOR).eqns[0]) for m in BOTH
        )
        assert ours == theirs


def test_open_and_closed_print_alike():
    closed = program(minijax, 2)
    assert isinstance(closed, ClosedJaxpr)
    assert str(closed) == repr(closed) == str(closed.jaxpr) == format_jaxpr(closed.jaxpr)


def test_unknown_option_is_refused():
    with pytest.raises(TypeError):
        program(minijax).pretty_print(no_such_option=True)


def test_programs_shared_many_times_print_fast():
    f = minijax.lax.sin
    for _ in range(40):
        inner = f
        f = minijax.jit(lambda x, inner=inner: inner(inner(x)))
    assert str(minijax.make_jaxpr(f)(VECTOR)).count("\n") < 400


RESULTS = {
    "one": lambda m: (lambda x: x + 1, (1.0,), {}),
    "none": lambda m: (lambda x: None, (1.0,), {}),
    "a tuple": lambda m: (lambda x: (x, [x, (x * 2,)]), (1.0,), {}),
    "a tree": lambda m: (
        lambda params, *rest, flag: {"a b": params["w"] + rest[0], 'q"': {"z": flag, "n": None}},
        ({"w": np.ones((2, 3), np.float32)}, np.ones(3, np.float32)), {"flag": 2.0},
    ),
    "donated": lambda m: (m.jit(lambda x, y: (y, x * 2), donate_argnums=0), (1.0, 2.0), {}),
    "in part": lambda m: (lambda x, y: [y], (np.ones(3, np.float32), 2.0), {}),
}  # fmt: skip


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("name", RESULTS)
def test_lowered_text_names_arguments_and_results(name, debug):
    def signature(m):
        fun, args, kwargs = RESULTS[name](m)
        text = m.jit(fun).lower(*args, **kwargs).as_text(debug_info=debug)
        for number, place in re.findall(r"^#(loc\d*) = loc\((\".*\")\)$", text, re.M):
            text = text.replace(f"loc(#{number})", f"loc({place})")
        return next(line for line in text.splitlines() if "@main" in line)

    assert signature(minijax) == signature(jax)


SHARDS = {
    "a leaf": lambda m, x, s: m.tree.leaves(s) == [s],
    "equal to itself": lambda m, x, s: (s == s, s == x.addressable_shards[0], len({s})),
    "items": lambda m, x, s: s[0],
    "unpacked": lambda m, x, s: list(s),
    "attribute": lambda m, x, s: setattr(s, "name", 1),
    "property": lambda m, x, s: setattr(s, "device", 1),
    "made": lambda m, x, s: (
        (made := type(s)(m.devices()[0], x.sharding, (2, 3))).index and made.data
    ),
    "class": lambda m, x, s: m.Shard is type(s),
    "members": lambda m, x, s: [name for name in dir(s) if name[0] != "_"],
    "argument": lambda m, x, s: m.jit(lambda s: s)(s),
}


@pytest.mark.parametrize("name", SHARDS)
def test_shards(name):
    def found(m):
        x = m.numpy.arange(6.0).reshape(2, 3)
        try:
            return SHARDS[name](m, x, x.addressable_shards[0])
        except Exception as error:
            return type(error)

    assert found(minijax) == found(jax)


def test_shards_print_their_data():
    def shown(m):
        x = m.numpy.arange(6.0).reshape(2, 3)
        return repr(x.addressable_shards), str(x.addressable_shards[0])

    assert shown(minijax) == shown(jax)


def test_variables_are_printed_with_their_types():
    found = []
    for m in (minijax, jax):
        jaxpr = m.make_jaxpr(lambda x, y: x.astype("bfloat16") * y)(np.ones((2, 3), "f"), 1.0).jaxpr
        variables = [*jaxpr.invars, *jaxpr.outvars, *jaxpr.eqns[0].outvars]
        found.append([re.sub(r"id=\d+", "id", repr(v)) for v in variables])
    assert found[0] == found[1] and found[0][0] == "Var(id):float32[2,3]"
