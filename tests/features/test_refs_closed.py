"""References that a function closes over, under every transform: read, written and added to.

Values and what the reference holds after are upstream's; what upstream refuses is refused. Where
upstream is wrong or refuses what has a meaning, the row says so.
"""

import jax
import numpy as np
import pytest

import minijax

X = np.arange(4, dtype=np.float32)


def read(m, r, x):
    return r[...] + x


def write(m, r, x):
    r[...] = 2.0
    return x


def write_mapped(m, r, x):
    r[...] = x
    return x


def count(m, r, x):
    r[...] += 1.0
    return r[...] * x


def swap(m, r, x):
    return m.ref.swap(r, (), 5.0) * x


def addupdate(m, r, x):
    m.ref.addupdate(r, (), 1.0)
    return x


ACTS = (read, write, write_mapped, count, swap, addupdate)


def _custom_jvp(m, f):
    g = m.custom_jvp(lambda x: f(x) * x)
    g.defjvp(lambda p, t: (g(*p), t[0] * 2))
    return g


def _custom_vjp(m, f):
    g = m.custom_vjp(lambda x: f(x) * x)
    g.defvjp(lambda x: (g(x), x), lambda saved, ct: (ct * 2,))
    return g


def _shard_map(m, f):
    mesh = m.make_mesh((1,), ("i",))
    return m.shard_map(f, mesh=mesh, in_specs=m.P("i"), out_specs=m.P("i"))


def _thrice(m, f):
    return lambda x: m.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]


def _while(m, f):
    step = lambda c: (c[0] + 1, f(c[1]))
    return lambda x: m.lax.while_loop(lambda c: c[0] < 2, step, (0, x))[1]


def _product(f):
    return lambda x: f(x) * x


TRANSFORMS = {
    "jit": lambda m, f: m.jit(f)(3.0),
    "scan": lambda m, f: m.lax.scan(lambda c, x: (c, f(x)), 0, X)[1],
    "while": lambda m, f: _while(m, f)(3.0),
    "cond": lambda m, f: m.lax.cond(X[0] < 1, f, lambda x: x, 3.0),
    "map": lambda m, f: m.lax.map(f, X),
    "grad": lambda m, f: m.grad(_product(f))(3.0),
    "jvp": lambda m, f: m.jvp(_product(f), (3.0,), (1.0,)),
    "linearize": lambda m, f: m.linearize(_product(f), 3.0)[0],
    "grad of scan": lambda m, f: m.grad(_thrice(m, f))(3.0),
    "custom_jvp": lambda m, f: _custom_jvp(m, f)(3.0),
    "grad of custom_jvp": lambda m, f: m.grad(_custom_jvp(m, f))(3.0),
    "custom_vjp": lambda m, f: _custom_vjp(m, f)(3.0),
    "grad of custom_vjp": lambda m, f: m.grad(_custom_vjp(m, f))(3.0),
    "shard_map": lambda m, f: _shard_map(m, f)(X),
    "checkpoint": lambda m, f: m.checkpoint(f)(3.0),
    "jit of checkpoint": lambda m, f: m.jit(m.checkpoint(f))(3.0),
    "vmap": lambda m, f: m.vmap(f)(X),
    "vmap, not mapped": lambda m, f: m.vmap(lambda x: f(1.0) + x)(X),
    "jit of vmap": lambda m, f: m.jit(m.vmap(f))(X),
    "jit of vmap, not mapped": lambda m, f: m.jit(m.vmap(lambda x: m.jit(f)(1.0) + x))(X),
    "vmap of jit": lambda m, f: m.vmap(m.jit(f))(X),
    "vmap of scan": lambda m, f: m.vmap(_thrice(m, f))(X),
    "vmap of while": lambda m, f: m.vmap(_while(m, f))(X),
    "vmap of vmap": lambda m, f: m.vmap(m.vmap(f))(X.reshape(2, 2)),
    "vmap of checkpoint": lambda m, f: m.vmap(m.checkpoint(f))(X),
    "vmap of custom_vjp": lambda m, f: m.vmap(_custom_vjp(m, f))(X),
    "jacfwd": lambda m, f: m.jacfwd(f)(X[1]),
    "vmap of cond": lambda m, f: m.vmap(lambda x: m.lax.cond(x > 1, f, lambda x: x, x))(X),
}  # fmt: skip

# By transform and act, or act alone.
OTHERWISE = {
    ("vmap of cond", read): "upstream's cond has no rule for references under vmap",
    ("vmap of cond", None): "both refuse, with different errors",
    (None, addupdate): "upstream fails inside where it is differentiated",
}


def outcome(m, transform, act):
    r = m.new_ref(m.numpy.float32(1.0))
    try:
        result = TRANSFORMS[transform](m, lambda x: act(m, r, x))
    except Exception as error:
        return type(error).__name__, str(error)
    return [np.asarray(x) for x in m.tree_util.tree_leaves((result, r[...]))]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_closed_over(transform):
    for act in ACTS:
        ours, theirs = outcome(minijax, transform, act), outcome(jax, transform, act)
        if isinstance(theirs, tuple):
            keys = (transform, act), (transform, None), (None, act)
            reason = next((OTHERWISE[key] for key in keys if key in OTHERWISE), None)
            if isinstance(ours, tuple) and reason is None:
                assert ours[0] == theirs[0], (act, ours, theirs)
                # The sentence, up to the type of the reference.
                assert ours[1].split(". ")[0] == theirs[1].split(". ")[0], act
            elif reason is None:
                assert isinstance(ours, tuple), (act, ours, theirs)
            continue
        assert not isinstance(ours, tuple), (act, ours, theirs)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=f"{transform} {act}")


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("how", ["grad", "jit of grad", "value_and_grad of jit", "scan"])
def test_checkpoint_writes_once(how, act):
    """As without it: upstream writes again where it computes again."""

    def run(around):
        r = minijax.new_ref(minijax.numpy.float32(1.0))
        f = around(lambda x: minijax.numpy.sin(act(minijax, r, x) * x))
        made = {
            "grad": lambda: minijax.grad(f),
            "jit of grad": lambda: minijax.jit(minijax.grad(f)),
            "value_and_grad of jit": lambda: minijax.value_and_grad(minijax.jit(f)),
            "scan": lambda: minijax.grad(_thrice(minijax, f)),
        }[how]()
        try:
            return minijax.tree_util.tree_leaves((made(3.0), r[...]))
        except Exception as error:
            return str(error)

    ours, plain = run(minijax.checkpoint), run(lambda f: f)
    if isinstance(plain, str):
        assert isinstance(ours, str) and "set/swap" in plain and "set/swap" in ours
    else:
        np.testing.assert_allclose(ours, plain, rtol=1e-6)


def test_stateful_generator_refuses_vmap():
    """One generator for all lanes would give each the same number."""
    for m in (minijax, jax):
        key = m.new_ref(m.random.key(0))

        def draw(x, m=m, key=key):
            key[...], mine = m.random.split(key[...])
            return x + m.random.normal(mine)

        with pytest.raises(Exception, match="vmapped value on an unbatched array reference"):
            m.vmap(draw)(X)
        assert np.isfinite(np.asarray(m.jit(draw)(X))).all()
