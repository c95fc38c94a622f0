"""`experimental.hijax`: types and primitives that libraries define, against upstream."""

import importlib
import re

import jax
import jax.extend
import jax.extend.core
import numpy as np
import pytest

import minijax
import minijax.extend
import minijax.extend.core
from tests.cases.hi_types import make, upstream_has_them
from tests.harness.differential import assert_same

if not upstream_has_them:
    pytest.skip("upstream's names are others in this version", allow_module_level=True)
LIBRARIES = make("jax"), make("minijax")
X = np.array([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]], np.float32)
V = np.arange(1, 4, dtype=np.float32)


def _plain(L, tree):
    """Values of the types that were defined as tuples of arrays."""

    def plain(x):
        if isinstance(x, L.QArray):
            return (x.qvalue, x.scale)
        if isinstance(x, L.Tup):
            return x.elts
        return x.get() if isinstance(x, L.Box) else x

    return L.j.tree.map(plain, tree)


def _outcome(L, program):
    try:
        return _plain(L, program(L, L.j, L.jnp)), None
    except Exception as error:
        return None, error


def _compare(program, weak=True):
    theirs, their_error = _outcome(LIBRARIES[0], program)
    ours, our_error = _outcome(LIBRARIES[1], program)
    if their_error is None:
        if our_error is not None:
            raise our_error
        assert_same(ours, theirs, weak=weak)
    else:
        assert our_error is not None, f"upstream raises {their_error!r}, here it gives {ours}"
        assert type(our_error).__name__ == type(their_error).__name__, repr(our_error)


def _ruled(L, j):
    """A function with a reverse rule of its own, which triples."""
    f = j.custom_vjp(lambda q, x: L.dequantize(q) * x)
    f.defvjp(lambda q, x: (f(q, x), (q, x)), lambda r, g: (3 * g * r[1], g.sum(keepdims=True)[0]))
    return f


def _stepped(L, j):
    """A function with a forward rule of its own, which takes five times the tangent."""
    f = j.custom_jvp(L.dequantize)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 5))
    return f


def _without_jit(j, run):
    with j.disable_jit():
        return run()


def _message(j, run):
    """The class and the first sentence of the error that a call raises."""
    with pytest.raises(Exception) as caught:
        run()
    return type(caught.value).__name__, re.split(r": arg| from a backward|\.$", str(caught.value))[
        0
    ]


def _with_backward(L, j, rule):
    """Gradients by a primitive whose backward rule returns `rule(cotangent)`."""
    kind = type("M", (L.Mul,), {"vjp_bwd_retval": lambda self, res, ct: rule(ct)})
    aval = j.typeof(1.0)
    return _message(j, lambda: j.grad(kind(aval, aval), (0, 1))(2.0, 3.0))


# -- values of a type -------------------------------------------------------------------------------

QUANTIZED = {
    "eager": lambda L, j, n: (L.quantize(X), L.dequantize(L.quantize(X))),
    "within": lambda L, j, n: j.jit(lambda x: L.dequantize(L.quantize(x)))(X),
    "result": lambda L, j, n: j.jit(L.quantize)(X),
    "argument": lambda L, j, n: j.jit(L.dequantize)(L.quantize(X)),
    "passed on": lambda L, j, n: j.jit(lambda q: (q, 1.0))(L.quantize(X)),
    "jit in jit": lambda L, j, n: j.jit(lambda q: j.jit(L.dequantize)(q) + 1)(L.quantize(X)),
    "called again": lambda L, j, n: [
        f(L.quantize(k * X)) for f in [j.jit(L.dequantize)] for k in (1.0, 2.0)
    ],
    "attribute": lambda L, j, n: j.jit(lambda q: q.qvalue)(L.quantize(X)),
    "type's method": lambda L, j, n: j.jit(lambda q: q.double())(L.quantize(X)),
    "type's property": lambda L, j, n: j.jit(lambda q: n.zeros(q.rank))(L.quantize(X)),
    "type's operator": lambda L, j, n: j.jit(lambda q: -q)(L.quantize(X)),
    "operator": lambda L, j, n: j.jit(lambda q: q + 1)(L.quantize(X)),
    "object's operator": lambda L, j, n: L.quantize(X) + 1,
    "numpy": lambda L, j, n: n.sin(L.quantize(X)),
    "grad through": lambda L, j, n: j.grad(lambda x: (L.dequantize(L.quantize(x)) ** 2).sum())(X),
    "grad": lambda L, j, n: j.grad(lambda q: (L.dequantize(q) ** 2).sum())(L.quantize(X)),
    "jit grad": lambda L, j, n: j.jit(j.grad(lambda q: (L.dequantize(q) ** 2).sum()))(L.quantize(X)),
    "grad jit": lambda L, j, n: j.grad(j.jit(lambda q: (L.dequantize(q) ** 2).sum()))(L.quantize(X)),
    "grad of two": lambda L, j, n: j.grad(lambda q, x: (L.dequantize(q) * x).sum(), (0, 1))(
        L.quantize(X), X
    ),
    "value and grad": lambda L, j, n: j.value_and_grad(lambda q: (L.dequantize(q) ** 2).sum())(
        L.quantize(X)
    ),
    "jvp": lambda L, j, n: j.jvp(lambda q: L.dequantize(q) ** 2, (L.quantize(X),), (X,)),
    "jvp jit": lambda L, j, n: j.jvp(j.jit(lambda q: L.dequantize(q) ** 2), (L.quantize(X),), (X,)),
    "jvp to": lambda L, j, n: j.jvp(L.quantize, (X,), (X,)),
    "vjp": lambda L, j, n: j.vjp(L.quantize, X)[1](X),
    "vjp of a value": lambda L, j, n: j.vjp(L.dequantize, L.quantize(X))[1](X),
    "vjp, wrong cotangent": lambda L, j, n: [
        _message(j, lambda: j.vjp(f, x)[1](L.quantize(X)))
        for f, x in ((L.quantize, X), (L.dequantize, L.quantize(X)))
    ],
    "vmap over an axis": lambda L, j, n: [
        _message(j, lambda: j.vmap(L.dequantize, in_axes=axis)(L.quantize(X))) for axis in (0, 1)
    ],
    "linearize": lambda L, j, n: j.linearize(L.dequantize, L.quantize(X)),
    "remat": lambda L, j, n: j.grad(j.checkpoint(lambda q: (L.dequantize(q) ** 2).sum()))(
        L.quantize(X)
    ),
    "vmap to": lambda L, j, n: j.vmap(L.quantize, out_axes=L.QSpec())(X[None]),
    "vmap over": lambda L, j, n: j.vmap(L.dequantize, in_axes=L.QSpec(), axis_size=2)(
        L.quantize(np.stack([X, 2 * X]))
    ),
    "vmap over one of two": lambda L, j, n: j.vmap(
        lambda q, x: L.dequantize(q) * x, in_axes=(L.QSpec(), 0)
    )(L.quantize(np.stack([X, 2 * X])), V[:2]),
    "no axis size": lambda L, j, n: j.vmap(L.dequantize, in_axes=L.QSpec())(L.quantize(X[None])),
    "vmap grad": lambda L, j, n: j.vmap(
        j.grad(lambda x: (L.dequantize(L.quantize(x)) ** 2).sum())
    )(X[None]),
    "scan xs": lambda L, j, n: j.lax.scan(
        lambda c, q: (c + L.dequantize(q).sum(), c), 0.0, L.quantize(np.stack([X, 2 * X])), length=2
    ),
    "scan carry": lambda L, j, n: j.lax.scan(
        lambda c, x: (L.quantize(L.dequantize(c) + x), L.quantize(2 * x)),
        L.quantize(X),
        np.stack([X, 2 * X]),
    ),
    "scan no length": lambda L, j, n: j.lax.scan(
        lambda c, q: (c, None), 0.0, L.quantize(np.stack([X, X]))
    ),
    "scan constant": lambda L, j, n: j.lax.scan(
        lambda c, x: (c + (L.dequantize(L.quantize(X)) * x).sum(), None), 0.0, V
    ),
    "grad scan": lambda L, j, n: j.grad(
        lambda q: L.dequantize(
            j.lax.scan(lambda c, x: (L.quantize(L.dequantize(c) * x), None), q, V)[0]
        ).sum()
    )(L.quantize(X)),
    "cond": lambda L, j, n: j.lax.cond(
        True, lambda q: L.quantize(2 * L.dequantize(q)), lambda q: q, L.quantize(X)
    ),
    "while": lambda L, j, n: j.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, L.quantize(2 * L.dequantize(c[1]))),
        (0, L.quantize(X)),
    ),
    "fori": lambda L, j, n: j.lax.fori_loop(
        0, 3, lambda i, q: L.quantize(2 * L.dequantize(q)), L.quantize(X)
    ),
    "compiled": lambda L, j, n: j.jit(lambda q, x: (L.quantize(L.dequantize(q) + x), x))
    .lower(L.quantize(X), X)
    .compile()(L.quantize(X), X),
    "custom_vjp": lambda L, j, n: j.grad(
        lambda q: _ruled(L, j)(q, n.asarray(V[:1])).sum()
    )(L.quantize(X)),
    "jit custom_vjp": lambda L, j, n: j.jit(
        j.value_and_grad(lambda q: _ruled(L, j)(q, n.asarray(V[:1])).sum())
    )(L.quantize(X)),
    "custom_jvp": lambda L, j, n: j.jit(j.grad(lambda q: _stepped(L, j)(q).sum()))(L.quantize(X)),
    "jvp of custom_jvp": lambda L, j, n: j.jvp(j.jit(_stepped(L, j)), (L.quantize(X),), (X,)),
    "in a dict": lambda L, j, n: j.jit(j.grad(lambda d: (L.dequantize(d["q"]) * d["x"]).sum()))(
        {"q": L.quantize(X), "x": 2.0}
    ),
    "static and keywords": lambda L, j, n: j.jit(
        lambda k, *, q: L.dequantize(q) * k, static_argnums=0
    )(3, q=L.quantize(X)),
    "grad cond": lambda L, j, n: j.grad(
        lambda q: L.dequantize(
            j.lax.cond(True, lambda q: q, lambda q: L.quantize(2 * L.dequantize(q)), q)
        ).sum()
    )(L.quantize(X)),
    "grad scan constant": lambda L, j, n: j.jit(
        j.grad(
            lambda q: j.lax.scan(lambda c, x: (c + (L.dequantize(q) * x).sum(), None), 0.0, V)[0]
        )
    )(L.quantize(X)),
    "grad scan xs": lambda L, j, n: j.grad(
        lambda qs: j.lax.scan(
            lambda c, q: (c + (L.dequantize(q) ** 2).sum(), None), 0.0, qs, length=2
        )[0]
    )(L.quantize(np.stack([X, X]))),
    "grad scan ys": lambda L, j, n: j.grad(
        lambda x: L.dequantize(j.lax.scan(lambda c, v: (c, L.quantize(x * v)), 0.0, V)[1]).sum()
    )(X),
    "printed within": lambda L, j, n: j.jit(
        lambda q: (j.debug.print("", ordered=False), L.dequantize(q))[1]
    )(L.quantize(X)),
    "no jit": lambda L, j, n: _without_jit(j, lambda: j.jit(L.dequantize)(L.quantize(X))),
    "base class": lambda L, j, n: L.h.HiType().lo_ty(),
    "no hash": lambda L, j, n: hash(L.h.HiType()),
    "no tangents": lambda L, j, n: L.h.HiType().to_tangent_aval(),
}  # fmt: skip


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized(name):
    _compare(QUANTIZED[name])


TUPLES = {
    "made": lambda L, j, n: L.tup(n.asarray(V), 5.0),
    "element": lambda L, j, n: j.jit(lambda t: L.get(t, 1) + L.get(t, 0))(L.tup(n.asarray(V), 5.0)),
    "grad": lambda L, j, n: j.grad(lambda x: (L.get(L.tup(x, x * x), 1) ** 2).sum())(V),
    "grad of both": lambda L, j, n: j.grad(
        lambda x: (lambda t: (L.get(t, 0) * L.get(t, 1)).sum())(L.tup(x, x * x))
    )(V),
    "jit grad": lambda L, j, n: j.jit(
        j.grad(lambda x: (lambda t: (L.get(t, 0) * L.get(t, 1)).sum())(L.tup(x, x * x)))
    )(V),
    "grad by it": lambda L, j, n: j.grad(lambda t: (L.get(t, 0) ** 2).sum())(L.tup(V, V)),
    "jvp": lambda L, j, n: j.jvp(lambda x: L.get(L.tup(x, x * x), 1), (V,), (V,)),
    "vmap": lambda L, j, n: j.vmap(
        lambda t: L.tup(L.get(t, 1), L.get(t, 0) * 2), in_axes=L.TupSpec((0, None)),
        out_axes=L.TupSpec((None, 0)), axis_size=3,
    )(L.tup(n.asarray(V), n.asarray(5.0))),
}  # fmt: skip


@pytest.mark.parametrize("name", TUPLES)
def test_tuples(name):
    _compare(TUPLES[name], weak=False)


# -- primitives ---------------------------------------------------------------------------------------

TREE = {"x": np.float32(2.0), "y": V}
PRIMITIVES = {
    "eager": lambda L, j, n: L.mul(V, 2 * V),
    "numbers": lambda L, j, n: j.jit(L.mul)(2.0, 3.0),
    "grad": lambda L, j, n: [j.grad(L.mul, k)(2.0, 3.0) for k in (0, 1, (0, 1))],
    "jit grad": lambda L, j, n: j.jit(j.grad(L.mul, (0, 1)))(2.0, 3.0),
    "grad jit": lambda L, j, n: j.grad(j.jit(L.mul), (0, 1))(2.0, 3.0),
    "grad twice": lambda L, j, n: j.grad(j.grad(lambda x: L.mul(x, L.mul(x, x))))(2.0),
    "jit grad twice": lambda L, j, n: j.jit(j.grad(j.grad(lambda x: L.mul(x, L.mul(x, x)))))(2.0),
    "jvp": lambda L, j, n: j.jvp(L.mul, (V, V), (V, 2 * V)),
    "jvp of one": lambda L, j, n: j.jvp(lambda x: L.mul(x, V), (V,), (V,)),
    "hessian": lambda L, j, n: j.hessian(lambda x: L.mul(L.mul(x, x), x))(2.0),
    "linearize": lambda L, j, n: j.linearize(L.mul, V, V)[1](V, 2 * V),
    "linearize in one": lambda L, j, n: j.linearize(lambda x: L.mul(x, V), V)[1](V),
    "linearize jit": lambda L, j, n: j.linearize(j.jit(lambda x: L.mul(x, V)), V)[1](V),
    "vmap": lambda L, j, n: j.vmap(L.mul, in_axes=(1, 0), out_axes=1)(L.ones(2, 3), V),
    "vmap one": lambda L, j, n: j.vmap(L.mul, in_axes=(0, None))(V, 2.0),
    "vmap grad": lambda L, j, n: j.vmap(j.grad(L.mul, (0, 1)))(V, 2 * V),
    "vmap vmap": lambda L, j, n: j.vmap(j.vmap(L.mul, in_axes=(0, None)), in_axes=(None, 0))(V, V[:2]),
    "grad vmap": lambda L, j, n: j.grad(lambda x, y: j.vmap(L.mul)(x, y).sum(), (0, 1))(V, V),
    "grad vmap one": lambda L, j, n: j.grad(
        lambda x, y: j.vmap(L.mul, in_axes=(0, None))(x, y).sum(), (0, 1)
    )(V, 2.0),
    "grad vmap vmap": lambda L, j, n: j.grad(
        lambda x, y: j.vmap(j.vmap(L.mul, in_axes=(0, None)), in_axes=(None, 0))(x, y).sum(), (0, 1)
    )(V, V[:2]),
    "jvp vmap": lambda L, j, n: j.jvp(j.vmap(L.mul, in_axes=(0, None)), (V, 2.0), (V, 1.0)),
    "vmap jit": lambda L, j, n: j.vmap(j.jit(L.mul))(V, V),
    "scan": lambda L, j, n: j.grad(
        lambda x: j.lax.scan(lambda c, _: (L.mul(c, c), None), x, None, length=2)[0]
    )(1.5),
    "cond": lambda L, j, n: j.grad(
        lambda x: j.lax.cond(x > 1, lambda x: L.mul(x, x), lambda x: x, x)
    )(1.5),
    "tree": lambda L, j, n: L.scaled(TREE, 3.0),
    "tree jit": lambda L, j, n: j.jit(lambda t: L.scaled(t, 3.0))(TREE),
    "tree grad": lambda L, j, n: j.grad(lambda t: L.scaled(t, 3.0)["rest"][0].sum())(TREE),
    "tree transpose": lambda L, j, n: j.linear_transpose(lambda t: L.scaled(t, 3.0), TREE)(
        {"first": n.float32(1.0), "rest": (n.asarray(V),)}
    ),
    "no vjp": lambda L, j, n: j.grad(L.bare)(2.0),
    "no jvp": lambda L, j, n: j.jvp(L.bare, (2.0,), (1.0,)),
    "no batch": lambda L, j, n: j.vmap(L.bare)(V),
    "no lin": lambda L, j, n: j.linearize(L.bare, 2.0),
    "no transpose": lambda L, j, n: j.linear_transpose(L.bare, 2.0)(1.0),
    "no expand": lambda L, j, n: type(
        "M", (L.Bare,), {"expand": L.h.VJPHiPrimitive.expand}
    )(j.typeof(1.0))(1.0),
    "no params": lambda L, j, n: type("M", (L.h.VJPHiPrimitive,), {})(),
    "both backward rules": lambda L, j, n: type("M", (L.Mul,), {"vjp_bwd": lambda *a: None})(
        j.typeof(1.0), j.typeof(1.0)
    ),
    "cotangent of another shape": lambda L, j, n: [
        _with_backward(L, j, rule)
        for rule in (lambda ct: (n.ones(3), ct), lambda ct: (ct, n.zeros((1,))))
    ],
    "cotangents of another tree": lambda L, j, n: [
        text.splitlines()[0]
        for rule in (lambda ct: ct, lambda ct: [ct, ct], lambda ct: (ct,), lambda ct: None)
        for text in _with_backward(L, j, rule)
    ],
    "zero of a weak type": lambda L, j, n: str(L.h.Zero(j.typeof(1.0))),
    "equal": lambda L, j, n: L.Bare(j.typeof(1.0)) == L.Bare(j.typeof(1.0)),
    "simple": lambda L, j, n: (L.twice(V), j.jit(L.twice)(V)),
    "simple grad": lambda L, j, n: j.grad(lambda x: L.twice(x).sum())(V),
    "simple jit grad": lambda L, j, n: j.jit(j.grad(lambda x: L.twice(x).sum()))(V),
    "simple scan": lambda L, j, n: j.lax.scan(lambda c, _: (L.twice(c), None), V, None, length=3)[0],
    "simple vmap": lambda L, j, n: j.vmap(L.twice)(V),
}  # fmt: skip


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives(name):
    _compare(PRIMITIVES[name], weak=False)


# -- values that change -------------------------------------------------------------------------------


def _step(L, box, by=1.0):
    box.set(box.get() + by)


def _held(L, run, start=1.0):
    """What a program gives, and what the box holds after it."""
    box = L.box(L.jnp.full(3, start))
    return run(box), box.get()


def _scanned(L, j, box):
    def body(c, x):
        box.set(box.get() * x)
        return c + box.get().sum(), None

    return j.lax.scan(body, 0.0, V)[0]


BOXES = {
    "eager": lambda L, j, n: _held(L, lambda b: _step(L, b)),
    "jit": lambda L, j, n: _held(L, lambda b: j.jit(lambda b: _step(L, b))(b)),
    "jit twice": lambda L, j, n: _held(L, lambda b: [f(b) for f in [j.jit(lambda b: _step(L, b))] * 2]),
    "captured": lambda L, j, n: _held(L, lambda b: [f(V) for f in [j.jit(lambda x: _step(L, b, x))] * 2]),
    "jit in jit": lambda L, j, n: _held(
        L, lambda b: j.jit(lambda b: (j.jit(lambda b: _step(L, b))(b), _step(L, b), b.get())[2])(b)
    ),
    "made within": lambda L, j, n: j.jit(lambda x: (lambda b: (_step(L, b), b.get())[1])(L.box(x)))(V),
    "other structure": lambda L, j, n: _held(
        L, lambda b: j.jit(lambda b, x: b.set({"a": x, "b": (x, x)}))(b, V)
    ),
    "other structure within": lambda L, j, n: _held(
        L, lambda b: j.jit(lambda b: (j.jit(lambda b: b.set((b.get(), 2.0)))(b), b.get()[1])[1])(b)
    ),
    "next call": lambda L, j, n: _held(
        L, lambda b: [f(b) for f in [j.jit(lambda b: b.set((b.get(),)))] for _ in range(3)]
    ),
    "scan": lambda L, j, n: _held(L, lambda b: _scanned(L, j, b)),
    "jit scan": lambda L, j, n: _held(L, lambda b: j.jit(lambda b: _scanned(L, j, b))(b)),
    "while": lambda L, j, n: _held(
        L, lambda b: j.lax.while_loop(lambda i: i < 3, lambda i: (_step(L, b), i + 1)[1], 0)
    ),
    "cond": lambda L, j, n: _held(
        L, lambda b: [j.lax.cond(p, lambda: _step(L, b), lambda: None) for p in (True, False)]
    ),
    "grad beside": lambda L, j, n: _held(
        L, lambda b: j.grad(lambda x: (_step(L, b), x * b.get().sum())[1])(2.0)
    ),
    "jit grad beside": lambda L, j, n: _held(
        L, lambda b: j.jit(j.grad(lambda x, b: (_step(L, b), x * b.get().sum())[1]))(2.0, b)
    ),
    "grad jit beside": lambda L, j, n: _held(
        L, lambda b: j.grad(j.jit(lambda x, b: (_step(L, b), x * b.get().sum())[1]))(2.0, b)
    ),
    "vmap beside": lambda L, j, n: _held(L, lambda b: j.vmap(lambda x: x * b.get())(V)),
    "vmap into": lambda L, j, n: _held(L, lambda b: j.vmap(lambda x: b.set(x))(V)),
    "grad of scan": lambda L, j, n: _held(
        L, lambda b: j.jit(j.grad(lambda x, b: x * _scanned(L, j, b)))(2.0, b)
    ),
    "of references": lambda L, j, n: [
        (j.jit(lambda b, r: (_step(L, b, r[...]), r.set(b.get()))[0])(b, r), b.get(), r[...])
        for b, r in [(L.box(n.asarray(V)), j.new_ref(n.ones(3)))]
    ],
    "state": lambda L, j, n: [a.shape for a in L.cur_qdd(L.box(n.asarray(V))).avals],
    "state within": lambda L, j, n: _held(
        L, lambda b: j.jit(lambda b: (b.set((b.get(),) * 2), n.ones(len(L.cur_qdd(b).avals)))[1])(b)
    ),
    "type_state": lambda L, j, n: _held(
        L, lambda b: j.jit(lambda b: n.ones(len(b.type_state().avals)))(b)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOXES)
def test_values_that_change(name):
    _compare(BOXES[name], weak=False)


# -- printing -----------------------------------------------------------------------------------------


def _shown(L, transformed):
    """How a value of a library's type is printed within a transformed function."""
    shown = []
    transformed(lambda q: (shown.append(repr(q).replace(L.j.__name__, "j")), L.dequantize(q))[1])
    return shown


PRINTED = {
    "type": lambda L, j: j.typeof(L.quantize(X)),
    "result type": lambda L, j: j.eval_shape(L.quantize, X),
    "conversion": lambda L, j: j.make_jaxpr(lambda x: L.dequantize(L.quantize(x)))(X),
    "argument": lambda L, j: j.make_jaxpr(L.dequantize)(L.quantize(X)),
    "traced": lambda L, j: j.jit(L.dequantize).trace(L.quantize(X)).jaxpr,
    "grad": lambda L, j: j.make_jaxpr(j.grad(lambda q: L.dequantize(q).sum()))(L.quantize(X)),
    "product": lambda L, j: j.make_jaxpr(lambda x, y: L.mul(x, y, why="so"))(2.0, 3.0),
    "simple": lambda L, j: j.make_jaxpr(L.twice)(2.0),
    "simple grad": lambda L, j: j.make_jaxpr(j.grad(L.twice))(2.0),
    "tuple": lambda L, j: j.make_jaxpr(lambda x: L.get(L.tup(x, x), 1))(2.0),
    "box": lambda L, j: j.make_jaxpr(lambda b: _step(L, b))(L.box(V)),
    "box in jit": lambda L, j: j.make_jaxpr(j.jit(lambda b: _step(L, b)))(L.box(V)),
    "new box": lambda L, j: j.make_jaxpr(lambda: L.box(2.0))(),
    "box in scan": lambda L, j: j.make_jaxpr(
        lambda b: j.lax.scan(lambda c, x: (b.set(b.get() + x), c)[::-1], 0.0, V)
    )(L.box(V)),
    "primitive": lambda L, j: L.Mul(j.typeof(1.0), j.typeof(1.0), why="so"),
    "plain types": lambda L, j: [
        type("T", (L.h.HiType,), {"__init__": lambda self, **fields: vars(self).update(fields)})(**f)
        for f in ({}, {"a": 1, "b": "x"})
    ],
    "values within jit": lambda L, j: _shown(L, lambda f: j.jit(f)(L.quantize(X))),
    "values within grad": lambda L, j: _shown(L, lambda f: j.grad(lambda x: f(L.quantize(x)).sum())(X)),
    "values within vjp": lambda L, j: _shown(L, lambda f: j.vjp(f, L.quantize(X))),
}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_printing(name):
    theirs, ours = [str(PRINTED[name](L, L.j)) for L in LIBRARIES]
    assert ours == theirs


PROGRAMS_OF_BOXES = {
    "held": lambda Box, j, n: (Box(1.0).get(), Box().get(), Box({"a": V}).get()),
    "set": lambda Box, j, n: [(b.set((2.0, V)), b.get())[1] for b in [Box(1.0)]],
    "jit": lambda Box, j, n: [
        (j.jit(lambda b: b.set((b.get(), V)))(b), b.get())[1] for b in [Box(1.0)]
    ],
    "within": lambda Box, j, n: j.jit(lambda x: (lambda b: (b.set(x * x), b.get())[1])(Box(x)))(V),
    "instance": lambda Box, j, n: j.jit(lambda b: isinstance(b, Box) + 0)(Box(1.0)),
    "differentiated": lambda Box, j, n: j.grad(lambda x: (Box(0.0).set(x), x)[1])(3.0),
    "mapped": lambda Box, j, n: j.vmap(lambda x: (Box(0.0).set(x), x)[1])(V),
    "state": lambda Box, j, n: len(j.experimental.cur_qdd(Box((1.0, V))).leaf_avals),
}


@pytest.mark.parametrize("name", PROGRAMS_OF_BOXES)
def test_boxes(name):
    def program(L, j, n):
        module = "jax._src.hijax" if j is jax else "minijax.experimental.boxes"
        return PROGRAMS_OF_BOXES[name](importlib.import_module(module).Box, j, n)

    _compare(program, weak=False)


# What upstream has no rules for: pairs of programs that give the same.
BEYOND = {
    "jit scan": lambda L, j, n: [
        how(lambda q: j.lax.scan(lambda c, x: (L.quantize(L.dequantize(c) * x), None), q, V)[0])(
            L.quantize(X)
        )
        for how in (j.jit, lambda f: f)
    ],
    "vmap jit": lambda L, j, n: [
        j.vmap(how(L.dequantize), in_axes=L.QSpec(), axis_size=1)(L.quantize(X[None]))
        for how in (j.jit, lambda f: f)
    ],
    "box returned": lambda L, j, n: [how(lambda x: L.box(x + 1))(V) for how in (j.jit, lambda f: f)],
    "box in a test": lambda L, j, n: [
        _held(L, lambda b: how(lambda b: j.lax.while_loop(
            lambda i: b.get()[0] < 5, lambda i: (_step(L, b), i + 1)[1], 0
        ))(b))
        for how in (j.jit, lambda f: f)
    ],
    "mapped, linearized": lambda L, j, n: [
        j.linearize(how(j.vmap(L.mul)), V, V)[1](V, V) for how in (j.jit, lambda f: f)
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_beyond_upstream(name):
    L = LIBRARIES[1]
    one, other = _plain(L, BEYOND[name](L, L.j, L.jnp))
    assert_same(one, jax.tree.map(np.asarray, other), weak=False)


ATTRIBUTES = {
    "aval": {"aval": "no type"},
    "none": {"__getattr__": lambda self, name: None},
    "not yet": {"aval": property(lambda self: self.j.typeof(self))},
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_values_are_their_own(name):
    """The type of a value is what was registered, whatever its class answers for `aval`."""

    def program(L, j, jnp):
        q = L.quantize(j.numpy.asarray(X))
        kind = type("Answering", (L.QArray,), {**ATTRIBUTES[name], "j": j})
        L.h.register_hitype(kind, lambda q: j.typeof(L.QArray(q.qvalue, q.scale)))
        value = kind(q.qvalue, q.scale)
        f = lambda q, x: (L.dequantize(q) * x).sum()
        out = f(value, X), j.jit(f)(value, X), j.grad(f, 1)(value, X), j.jit(lambda: f(value, X))()
        return *out, j.lax.scan(lambda c, x: (c + f(value, x), None), 0.0, X)[0]

    _compare(program)


def test_refused():
    L = LIBRARIES[1]
    box = L.box(V)
    with pytest.raises(TypeError, match="changes the type of a value"):
        minijax.lax.scan(lambda c, x: (box.set((box.get(), x)), (c, None))[1], 0.0, V)
    with pytest.raises(TypeError, match="structure of its in_avals"):
        L.Bare(minijax.typeof(1.0))(1.0, 2.0)
    with pytest.raises(TypeError, match="must give what its out_aval says"):
        type("M", (L.Bare,), {"expand": lambda self, x: (x, x)})(minijax.typeof(1.0))(1.0)
    with pytest.raises(TypeError, match="takes a value of a type that changes"):
        L.cur_qdd(1.0)


def test_programs_of_arrays_have_constants():
    """Once types are defined, calls are searched for them: also programs that share constants."""

    def program(L, j, jnp):
        power = jnp.float32(3.0)  # a constant of a program within the solve's
        inner = j.jit(lambda y: jnp.sin(y) ** power)
        loss = lambda y: jnp.sum(j.checkpoint(inner)(y) + 3 * y * y)
        matvec = lambda v: j.jvp(j.grad(loss), (X,), (v,))[1]
        solve = lambda apply, b: j.lax.fori_loop(0, 9, lambda _, v: v + (b - apply(v)) * 0.12, b)
        return j.lax.custom_linear_solve(matvec, X, solve, transpose_solve=solve)

    _compare(program)


def test_types_of_arrays():
    """What the type of a tuple asks of the types of its parts."""
    for x in (1.0, np.ones((3, 4), np.float32)):
        said = []
        for j in (jax, minijax):
            aval = j.typeof(x)
            stacked = aval.inc_rank(3, aval.leading_axis_spec())
            types = (aval, aval.inc_rank(3, None), stacked, stacked.dec_rank(3, 0))
            said.append([f(t) for t in types for f in (str, repr, aval.__class__.str_short)])
            said[-1] += [
                aval.str_short(True, True),
                str(j.typeof(j.new_ref(x)).str_short(False, True)),
            ]
            with pytest.raises(AssertionError):
                stacked.dec_rank(5, 0)
        assert said[0] == said[1]


def test_names():
    theirs = {n for n in dir(jax.experimental.hijax) if n[0] != "_"}
    ours = {n for n in dir(minijax.experimental.hijax) if n[0] != "_"}
    assert theirs - ours == set()
