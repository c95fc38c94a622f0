"""References that functions with derivative rules are given, and tangents of references.

A backward rule reads and writes references in the backward pass: within loops, branches, compiled and
checkpointed calls too. Results and what the references hold after are upstream's.
"""

import jax
import numpy as np
import pytest

import minijax

X = np.arange(3, dtype=np.float32)
ONE = np.float32(1)


def _rule(m, forward, backward):
    f = m.custom_vjp(lambda r, x: x)
    f.defvjp(forward, backward)
    return lambda r, x: m.numpy.sin(f(r, x))


def _put(r, ct):
    r[...] = ct
    return None, ct


def _add(r, ct):
    r[...] += ct
    return None, ct * (r[...] + 3)


def _forward(r, x):
    r[...] += x
    return x, r


RULES = {
    "put": lambda m: _rule(m, lambda r, x: (x, r), _put),
    "add": lambda m: _rule(m, lambda r, x: (x, r), _add),
    "both ways": lambda m: _rule(m, _forward, _add),
    "read": lambda m: _rule(m, lambda r, x: (x, (r, x)), lambda s, ct: (None, ct + s[0][...])),
}


def _scan(m, body, x, length=3, **options):
    return m.lax.scan(lambda c, _: (body(c), None), x, None, length=length, **options)[0]


# Functions of x that give the reference r to f.
PROGRAMS = {
    "plain": lambda m, f: f,
    "twice": lambda m, f: lambda r, x: f(r, f(r, x)),
    "jit": lambda m, f: m.jit(f),
    "jit twice": lambda m, f: lambda r, x: m.jit(f)(r, m.jit(f)(r, x)),
    "closed jit": lambda m, f: lambda r, x: m.jit(lambda x: f(r, x))(x),
    "scan": lambda m, f: lambda r, x: _scan(m, lambda c: f(r, c), x),
    "reversed scan": lambda m, f: lambda r, x: _scan(m, lambda c: f(r, c), x, reverse=True),
    "unrolled scan": lambda m, f: lambda r, x: _scan(m, lambda c: f(r, c), x, unroll=2),
    "nested scan": lambda m, f: (
        lambda r, x: _scan(m, lambda c: _scan(m, lambda d: f(r, d), c, 2), x)
    ),
    "fori_loop": lambda m, f: lambda r, x: m.lax.fori_loop(0, 3, lambda i, c: f(r, c), x),
    "scan of jit": lambda m, f: lambda r, x: _scan(m, m.jit(lambda c: f(r, c)), x),
    "checkpoint": lambda m, f: m.checkpoint(f),
    "checkpoint of jit": lambda m, f: m.checkpoint(m.jit(f)),
    "checkpoint of scan": lambda m, f: m.checkpoint(lambda r, x: _scan(m, lambda c: f(r, c), x)),
    "scan of checkpoint": lambda m, f: lambda r, x: _scan(m, m.checkpoint(lambda c: f(r, c)), x),
    "not differentiated": lambda m, f: lambda r, x: x * m.jit(lambda r: f(r, np.float32(2)))(r),
    "while_loop": lambda m, f: (
        lambda r, x: x * m.lax.while_loop(lambda c: c < 3, lambda c: f(r, c) + c, ONE)
    ),
    "two references": lambda m, f: (
        lambda r, x: m.jit(lambda r, s, x: f(r, f(s, x)))(r, m.new_ref(m.numpy.float32(7)), x)
    ),
    "made within": lambda m, f: lambda r, x: f(m.new_ref(2 * r[...]), f(m.new_ref(r[...]), x)),
    "made within, jit": lambda m, f: lambda r, x: m.jit(f)(m.new_ref(r[...]), f(r, x)),
    "made within, scan": lambda m, f: (
        lambda r, x: (lambda s: _scan(m, lambda c: f(s, f(r, c)), x) + s[...])(
            m.new_ref(m.numpy.float32(7))
        )
    ),
    "of differentiated values": lambda m, f: lambda r, x: f(m.new_ref(x), x),
}
TRANSFORMS = {
    "grad": lambda m, f: lambda r, x: m.grad(f, 1)(r, x),
    "jit of grad": lambda m, f: m.jit(m.grad(f, 1)),
    "value": lambda m, f: f,
    "jit": lambda m, f: m.jit(f),
    "vjp called twice": lambda m, f: lambda r, x: _pulled(m, f, r, x),
}


def _pulled(m, f, r, x):
    y, pull = m.vjp(lambda x: f(r, x), x)
    return y, pull(y), r[...], pull(2 * y)


UPSTREAM_FAILS = {("closed jit", "value")}


def _same(ours, theirs):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=3e-6)


def _run(m, rule, program, transform):
    r = m.new_ref(m.numpy.float32(0.5))
    f = TRANSFORMS[transform](m, PROGRAMS[program](m, RULES[rule](m)))
    return f(r, m.numpy.float32(1)), r[...]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("rule", RULES)
def test_backward_rules_read_and_write_references(rule, program, transform):
    ours = _run(minijax, rule, program, transform)
    try:
        theirs = _run(jax, rule, program, transform)
    except Exception:
        assert (program, transform) in UPSTREAM_FAILS
        return
    _same(ours, theirs)


@pytest.mark.parametrize("program", ["cond", "switch"])
def test_rules_within_branches(program):
    """Upstream has no types for the residuals of branches that are references."""
    m, r = minijax, minijax.new_ref(ONE)
    f = RULES["both ways"](m)
    branches = {
        "cond": lambda x: m.lax.cond(x > 0, lambda: f(r, x), lambda: x),
        "switch": lambda x: m.lax.switch(1, [lambda: x, lambda: f(r, x), lambda: 2 * x]),
    }
    got = m.grad(branches[program])(ONE), r[...]
    s = minijax.new_ref(ONE)
    _same(got, (m.grad(lambda x: f(s, x))(ONE), s[...]))


REFUSED = {
    "vmap within grad": lambda m, f: lambda r, x: m.grad(lambda x: m.vmap(f)(r, x).sum())(x),
    "vmap of jit within grad": lambda m, f: (
        lambda r, x: m.grad(lambda x: m.vmap(m.jit(f))(r, x).sum())(x)
    ),
    "vmap within jit": lambda m, f: m.jit(m.vmap(f)),
    "made in jit": lambda m, f: lambda r, x: m.grad(m.jit(lambda x: f(m.new_ref(x), x)))(x[0]),
    "made in scan": lambda m, f: (
        lambda r, x: m.grad(lambda x: _scan(m, lambda c: f(m.new_ref(c), c), x))(x[0])
    ),
}


@pytest.mark.parametrize("program", REFUSED)
def test_what_is_refused_says_what_to_do(program):
    f = RULES["add"](minijax)
    with pytest.raises(NotImplementedError, match=r"Map the gradient|Make the reference outside"):
        REFUSED[program](minijax, f)(minijax.new_ref(X), X)
    if "vmap" in program:
        r, s = minijax.new_ref(X), jax.new_ref(X)
        got = minijax.vmap(minijax.grad(minijax.jit(f), 1))(r, X), r[...]
        _same(got, (jax.vmap(jax.grad(jax.jit(RULES["add"](jax)), 1))(s, X), s[...]))


@pytest.mark.parametrize("wrap", [lambda m, f: f, lambda m, f: m.jit(f)], ids=["eager", "jit"])
def test_forward_mode_is_refused(wrap):
    for m in (jax, minijax):
        f = RULES["both ways"](m)
        with pytest.raises((TypeError, NotImplementedError)) as caught:
            m.jvp(wrap(m, lambda x, f=f, r=m.new_ref(ONE): f(r, x)), (ONE,), (ONE,))
    assert "forward-mode" in str(caught.value) or "discharge" in str(caught.value)


# -- tangents of references ---------------------------------------------------------------------------


def _times(m, x, r):
    r[...] = r[...] * x
    return r[...]


TANGENTS = {
    "plain": lambda m, r, t: m.jvp(lambda x, r: _times(m, x, r), (2.0, r), (1.0, t)),
    "jit": lambda m, r, t: m.jvp(m.jit(lambda x, r: _times(m, x, r)), (2.0, r), (1.0, t)),
    "in jit": lambda m, r, t: m.jit(
        lambda r, t: m.jvp(lambda x, r: _times(m, x, r), (2.0, r), (1.0, t))
    )(r, t),
    "cond": lambda m, r, t: m.jvp(
        lambda x, r: m.lax.cond(x > 0, lambda: _times(m, x, r), lambda: r[...]), (2.0, r), (1.0, t)
    ),
    "scan": lambda m, r, t: m.jvp(
        lambda x, r: m.lax.scan(lambda c, _: (c * 2, _times(m, c, r)), x, None, length=3),
        (2.0, r), (1.0, t),
    ),
    "part": lambda m, r, t: m.jvp(
        lambda x, r: (r.__setitem__(0, x), r[...])[1], (2.0, r), (1.0, t)
    ),
    "constant written": lambda m, r, t: m.jvp(
        lambda x, r: (r.__setitem__(..., m.numpy.ones(3)), r[...] * x)[1], (2.0, r), (1.0, t)
    ),
    "only read": lambda m, r, t: m.jvp(lambda x, r: r[...] * x, (2.0, r), (1.0, t)),
    "twice": lambda m, r, t: m.jvp(
        lambda x: m.jvp(lambda x, r: r[1:] * x**2, (x, r), (1.0, t)), (2.0,), (1.0,)
    ),
    "vmap": lambda m, r, t: m.vmap(
        lambda x, r, t: m.jvp(lambda x, r: _times(m, x, r), (x, r), (1.0, t))
    )(X, r, t),
}  # fmt: skip


@pytest.mark.parametrize("program", TANGENTS)
def test_references_have_references_as_tangents(program):
    found = []
    for m in (minijax, jax):
        r, t = m.new_ref(m.numpy.asarray(X + 1)), m.new_ref(m.numpy.asarray(X - 1))
        found.append((TANGENTS[program](m, r, t), r[...], t[...]))
    _same(*found)


@pytest.mark.parametrize("tangent", [1.0, X, "wrong shape", "wrong dtype"])
def test_other_tangents_of_references_are_refused(tangent):
    made = {"wrong shape": np.zeros(2, "f"), "wrong dtype": np.zeros(3, "float16")}
    if isinstance(tangent, str):
        tangent = minijax.new_ref(made[tangent])
    with pytest.raises(TypeError, match="tangent of a reference is a reference of its type"):
        minijax.jvp(lambda r: r[...], (minijax.new_ref(X),), (tangent,))
    with pytest.raises(TypeError, match="tangent of a reference is a reference of its type"):
        minijax.jvp(lambda r: r[0], (minijax.new_ref(X),), (tangent,))


# -- gradients of references --------------------------------------------------------------------------


def _write(r, index, value):
    r[index] = value


# Functions of a reference. Upstream 0.10.2 differentiates those that read parts of it.
OF_REFS = {
    "read": lambda m, r: r[...] ** 2,
    "parts": lambda m, r: r[0] * r[1],
    "written": lambda m, r: (_write(r, ..., m.numpy.sin(r[...])), r[...] * 2)[1],
    "part written": lambda m, r: (_write(r, 1, r[0] * r[2]), r[1:] * r[1])[1],
    "constant written": lambda m, r: (_write(r, 0, 7.0), r[0] * r[1])[1],
    "overwritten": lambda m, r: (_write(r, ..., m.numpy.ones(3)), r[...])[1],
    "added to": lambda m, r: (m.ref.addupdate(r, 0, r[1]), m.numpy.sin(r[...]))[1],
    "jit": lambda m, r: m.jit(lambda r: (_write(r, 0, r[1] ** 2), m.numpy.cos(r[...]))[1])(r),
    "cond": lambda m, r: m.lax.cond(r[0] > 0, lambda: r[1] * r[2], lambda: r[0]),
    "checkpoint": lambda m, r: m.checkpoint(lambda r: m.numpy.sin(r[...]) * r[0])(r),
    "scan": lambda m, r: _scan_parts(m, r, write=False),
    "scan that writes": lambda m, r: _scan_parts(m, r, write=True),
    "fori_loop": lambda m, r: (
        m.lax.fori_loop(0, 3, lambda i, c: (_write(r, 0, r[0] * r[i]), c)[1], 0),
        r[...],
    )[1],
    "another inside": lambda m, r: (lambda q: (_write(q, ..., r[...] * q[...]), q[...])[1])(
        m.new_ref(r[...])
    ),
    "not at all": lambda m, r: m.numpy.ones(2),
}
DIFFERENTIATED_UPSTREAM = ("parts", "scan", "scan that writes", "not at all")


def _scan_parts(m, r, write):
    def body(c, i):
        if write:
            r[i] = r[i] * c
        return c + r[i], None

    return m.lax.scan(body, ONE, m.numpy.arange(3))[0]


@pytest.mark.parametrize("wrap", ["eager", "jit", "pulled later"])
@pytest.mark.parametrize("name", OF_REFS)
def test_gradients_of_references_are_added_to_references(name, wrap):
    """Of what the reference holds at first; what the gradient's holds is of what it holds at last."""

    def found(m):
        r, g = m.new_ref(m.numpy.asarray(X + 1)), m.new_ref(m.numpy.asarray(X * 10 + 1))
        run = lambda r: m.vjp(lambda r: OF_REFS[name](m, r), r)
        pull = lambda f, g: f.with_refs(g)(m.numpy.ones(out[0].shape))
        out = []

        def whole(r, g):
            y, f = run(r)
            out[:] = [y]
            assert repr(pull(f, g)) == "(GradRef(),)"
            return y

        if wrap == "pulled later":
            y, f = m.jit(run)(r)
            out[:] = [y]
            m.jit(pull)(f, g)
            return y, r[...], g[...]
        y = (m.jit(whole) if wrap == "jit" else whole)(r, g)
        return y, r[...], g[...]

    def pure(v):
        r = minijax.new_ref(v)
        return OF_REFS[name](minijax, r), r[...]

    ours = found(minijax)
    outs, pull = minijax.vjp(pure, minijax.numpy.asarray(X + 1))
    cts = minijax.numpy.ones(np.shape(outs[0])), minijax.numpy.asarray(X * 10 + 1)
    for got, wanted in zip(ours, (*outs, *pull(cts)), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=3e-6)
    if name in DIFFERENTIATED_UPSTREAM and wrap == "eager":
        _same(ours, found(jax))


def test_gradients_of_references_beside_values():
    for m in (minijax, jax):
        r, g, h = m.new_ref(m.numpy.asarray(X)), m.new_ref(m.numpy.zeros(3)), m.new_ref(ONE)
        f = lambda d, x: d["r"][1] * x + d["r"][2]
        y, pull = m.vjp(f, {"r": r}, np.float32(2))
        assert pull.with_refs({"r": g}, h)(ONE) == ({"r": m.ad.GradRef()}, m.ad.GradRef())
        assert (y, *g[...], h[...]) == (4, 0, 2, 1, 2)
        assert pull.with_refs({"r": g}, m.ad.GradValue())(ONE)[1] == 1
        assert [*g[...]] == [0, 4, 2]
    pull = minijax.vjp(f, {"r": minijax.new_ref(X)}, np.float32(2))[1]
    with pytest.raises(ValueError, match=r"Bind one before the call, as in f_vjp.with_refs"):
        pull(ONE)
    assert str(pull.with_refs({"r": minijax.ad.DontWant()}, minijax.ad.GradValue())(ONE)[0]) == (
        "{'r': DidntWant()}"
    )
