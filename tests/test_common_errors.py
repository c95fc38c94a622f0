"""Common mistakes: upstream's class of error, the user's line, and a remedy that works.

Each row of `MISTAKES` is a script with a mistake, on the line marked `# here`; words that the message
must contain; and the script as the message would have it written, which is run too.
"""

import linecache
import textwrap
import traceback
import warnings

import pytest

pytestmark = pytest.mark.both_ends

MISTAKES = {}
HEADER = """\
from functools import partial
from typing import NamedTuple
import numpy as np
import {library} as jax
jnp, lax, random = jax.numpy, jax.lax, jax.random
x = jnp.arange(3.0)
"""
MOST_LINES = 25


def mistake(label, words, wrong, right):
    assert label not in MISTAKES, label
    MISTAKES[label] = words, textwrap.dedent(wrong).strip(), textwrap.dedent(right).strip()


# -- values of tracers -----------------------------------------------------------------------------

mistake(
    "branch on a tracer",
    ["bool[]", "branch on a tracer.py:9", "lax.cond"],
    """
    @jax.jit
    def f(x):
        if x > 0:  # here
            return x
        return -x
    f(1.0)
""",
    """
    f = jax.jit(lambda x: lax.cond(x > 0, lambda x: x, lambda x: -x, x))
    assert f(-1.0) == 1
""",
)
mistake(
    "while on a tracer",
    ["while on a tracer.py:9", "while_loop"],
    """
    @jax.jit
    def f(n):
        while n > 1:  # here
            n = n / 2
        return n
    f(8.0)
""",
    """
    assert jax.jit(lambda n: lax.while_loop(lambda n: n > 1, lambda n: n / 2, n))(8.0) == 1
""",
)
mistake(
    "range of a tracer",
    ["argument n", "static_argnums"],
    """
    @jax.jit
    def f(x, n):
        for i in range(n):  # here
            x = x + i
        return x
    f(1.0, 3)
""",
    """
    @partial(jax.jit, static_argnums=1)
    def f(x, n):
        for i in range(n):
            x = x + i
        return x
    assert f(1.0, 3) == 4
""",
)
mistake(
    "float of a tracer",
    ["argument x", "astype(float)"],
    """
    f = jax.jit(lambda x: float(x) * 2)  # here
    f(1)
""",
    """
    assert jax.jit(lambda x: x.astype(float) * 2)(1) == 2
""",
)
mistake(
    "NumPy of a tracer",
    ["argument x", "jax.numpy"],
    """
    f = jax.jit(lambda x: np.sin(x))  # here
    f(x)
""",
    """
    assert jax.jit(lambda x: jnp.sin(x))(x).shape == (3,)
""",
)
mistake(
    "item of a tracer",
    ["item of a tracer.py:7", "Return it"],
    """
    f = jax.jit(lambda x: x.sum().item())  # here
    f(x)
""",
    """
    assert jax.jit(lambda x: x.sum())(x).item() == 3
""",
)
mistake(
    "and of tracers",
    ["and of tracers.py:7", "logical_and"],
    """
    f = jax.jit(lambda x: x > 0 and x < 2)  # here
    f(1.0)
""",
    """
    assert jax.jit(lambda x: jnp.logical_and(x > 0, x < 2))(1.0)
""",
)
mistake(
    "truth of an array",
    ["any()", "all()"],
    """
    if x > 0:  # here
        print(x)
""",
    """
    if (x > 0).any():
        pass
""",
)
mistake(
    "size of a shape that is traced",
    ["argument n", "static_argnums"],
    """
    f = jax.jit(lambda n: jnp.zeros(n))  # here
    f(3)
""",
    """
    assert jax.jit(lambda n: jnp.zeros(n), static_argnums=0)(3).shape == (3,)
""",
)
mistake(
    "nonzero",
    ["argument x", "size"],
    """
    f = jax.jit(lambda x: jnp.nonzero(x)[0])  # here
    f(x)
""",
    """
    assert jax.jit(lambda x: jnp.nonzero(x, size=3)[0])(x).tolist() == [1, 2, 0]
""",
)
mistake(
    "mask of booleans",
    ["bool[3]", "minijax.numpy.where"],
    """
    f = jax.jit(lambda x: x[x > 0].sum())  # here
    f(x)
""",
    """
    assert jax.jit(lambda x: jnp.where(x > 0, x, 0).sum())(x) == 3
""",
)
mistake(
    "slice of a size that is traced",
    ["dynamic_slice"],
    """
    f = jax.jit(lambda x, n: x[n:n + 2])  # here
    f(x, 1)
""",
    """
    f = jax.jit(lambda x, n: lax.dynamic_slice(x, (n,), (2,)))
    assert f(x, 1).tolist() == [1, 2]
""",
)
mistake(
    "index of a list",
    ["argument i"],
    """
    names = ["a", "b"]
    jax.jit(lambda x, i: x if names[i] == "a" else -x)(x, 0)  # here
""",
    """
    names = ["a", "b"]
    jax.jit(lambda x, i: x if names[i] == "a" else -x, static_argnums=1)(x, 0)
""",
)

# -- shapes and dtypes -----------------------------------------------------------------------------

mistake(
    "shapes that do not broadcast",
    ["(3,)", "(4,)"],
    """
    y = x + jnp.ones(4)  # here
""",
    """
    y = x + jnp.ones((4, 1))
    assert y.shape == (4, 3)
""",
)
mistake(
    "shapes of a product",
    ["(2, 3)", "contracting"],
    """
    w = jnp.ones((2, 3))
    y = w @ w  # here
""",
    """
    w = jnp.ones((2, 3))
    assert (w @ w.T).shape == (2, 2)
""",
)
mistake(
    "shapes that are concatenated",
    ["(2, 3), (3,)", "reshape"],
    """
    y = jnp.concatenate([jnp.ones((2, 3)), x])  # here
""",
    """
    y = jnp.concatenate([jnp.ones((2, 3)), x.reshape(1, 3)])
""",
)
mistake(
    "arrays without a list",
    ["concatenate([a, b])"],
    """
    y = jnp.concatenate(x, x)  # here
""",
    """
    y = jnp.concatenate([x, x])
""",
)
mistake(
    "size of a reshape",
    ["(3,)", "(2, 2)"],
    """
    y = x.reshape(2, 2)  # here
""",
    """
    y = x.reshape(3, 1)
""",
)
mistake(
    "ragged lists",
    ["pad"],
    """
    y = jnp.array([[1, 2], [3]])  # here
""",
    """
    y = jnp.array([[1, 2], [3, 0]])
""",
)
mistake(
    "list for an array",
    ["[1.0, 2.0]", "asarray"],
    """
    y = jnp.sum([1.0, 2.0])  # here
""",
    """
    y = jnp.sum(jnp.array([1.0, 2.0]))
""",
)
mistake(
    "index of a float",
    ["float32"],
    """
    y = x[jnp.float32(1)]  # here
""",
    """
    assert x[jnp.float32(1).astype(int)] == 1
""",
)
mistake(
    "too many indices",
    ["2", "1-dimensional"],
    """
    y = x[0, 1]  # here
""",
    """
    y = x[None][0, 1]
""",
)
mistake(
    "static slice out of bounds",
    ["(5,)", "(3,)"],
    """
    y = lax.slice(x, (0,), (5,))  # here
""",
    """
    y = lax.slice(x, (0,), (3,))
""",
)
mistake(
    "dtypes of lax",
    ["float32", "int32"],
    """
    y = lax.add(x, jnp.arange(3))  # here
""",
    """
    y = lax.add(x, jnp.arange(3).astype(x.dtype))
""",
)
mistake(
    "axis out of bounds",
    ["axis 1"],
    """
    y = jnp.sum(x, axis=1)  # here
""",
    """
    y = jnp.sum(x, axis=0)
""",
)
mistake(
    "assignment to an item",
    ["x = x.at[0].set(y)"],
    """
    x[0] = 1  # here
""",
    """
    x = x.at[0].set(1)
    assert x[0] == 1
""",
)

# -- jit -------------------------------------------------------------------------------------------

mistake(
    "static argument that is not hashable",
    ["list", "tuple"],
    """
    f = jax.jit(lambda x, shape: x.reshape(shape), static_argnums=1)
    f(x, [3, 1])  # here
""",
    """
    f = jax.jit(lambda x, shape: x.reshape(shape), static_argnums=1)
    f(x, (3, 1))
""",
)
mistake(
    "static argument that is an array",
    ["unhashable"],
    """
    f = jax.jit(lambda x, y: x + y, static_argnums=1)
    f(x, x)  # here
""",
    """
    f = jax.jit(lambda x, y: x + y)
    f(x, x)
""",
)
mistake(
    "argument that is no array",
    ["path mode", "static_argnames"],
    """
    f = jax.jit(lambda x, mode: x if mode == "a" else -x)
    f(x, "a")  # here
""",
    """
    f = jax.jit(lambda x, mode: x if mode == "a" else -x, static_argnames="mode")
    f(x, "a")
""",
)
mistake(
    "result that is no array",
    ["output component [1]", "return arrays"],
    """
    f = jax.jit(lambda x: (x, "done"))
    f(x)  # here
""",
    """
    f = jax.jit(lambda x: (x, None))
    f(x)
""",
)
mistake(
    "donated array used again",
    ["deleted", "float32[3]"],
    """
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    f(x)
    y = x + 1  # here
""",
    """
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = f(x)
    y = x + 1
""",
)
mistake(
    "leaked tracer",
    ["float32[3]", "return them instead"],
    """
    kept = []
    @jax.jit
    def f(x):
        kept.append(x * 2)
        return x
    f(x)
    y = kept[0] + 1  # here
""",
    """
    @jax.jit
    def f(x):
        return x, x * 2
    y = f(x)[1] + 1
""",
)
mistake(
    "class that is no pytree",
    ["State", "register"],
    """
    class State:
        def __init__(self, x):
            self.x = x
    jax.jit(lambda s: s.x + 1)(State(x))  # here
""",
    """
    class State(NamedTuple):
        x: jax.Array
    jax.jit(lambda s: s.x + 1)(State(x))
""",
)

# -- grad ------------------------------------------------------------------------------------------

mistake(
    "grad of an integer",
    ["int32", "allow_int"],
    """
    jax.grad(lambda x: x ** 2)(3)  # here
""",
    """
    assert jax.grad(lambda x: x ** 2)(3.0) == 6
""",
)
mistake(
    "grad of a result that is no scalar",
    ["(3,)", ".sum()", "jacobian"],
    """
    jax.grad(lambda x: x ** 2)(x)  # here
""",
    """
    jax.grad(lambda x: jnp.sum(x ** 2))(x)
    jax.jacobian(lambda x: x ** 2)(x)
""",
)
mistake(
    "grad with aux forgotten",
    ["has_aux"],
    """
    def loss(x):
        return jnp.sum(x), {"x": x}
    jax.grad(loss)(x)  # here
""",
    """
    def loss(x):
        return jnp.sum(x), {"x": x}
    jax.grad(loss, has_aux=True)(x)
""",
)
mistake(
    "aux that is not returned",
    ["has_aux", "pair"],
    """
    jax.grad(lambda x: jnp.sum(x), has_aux=True)(x)  # here
""",
    """
    jax.grad(lambda x: (jnp.sum(x), None), has_aux=True)(x)
""",
)
mistake(
    "grad of complex values",
    ["holomorphic"],
    """
    jax.grad(lambda z: z ** 2)(1j)  # here
""",
    """
    assert jax.grad(lambda z: z ** 2, holomorphic=True)(1j) == 2j
""",
)
mistake(
    "grad of an argument that is not there",
    ["argnums", "1"],
    """
    jax.grad(lambda x: jnp.sum(x), argnums=1)(x)  # here
""",
    """
    jax.grad(lambda x: jnp.sum(x), argnums=0)(x)
""",
)
mistake(
    "tangent of another shape",
    ["(3,)", "(4,)"],
    """
    jax.jvp(jnp.sin, (x,), (jnp.ones(4),))  # here
""",
    """
    jax.jvp(jnp.sin, (x,), (jnp.ones_like(x),))
""",
)
mistake(
    "backward rule of custom_vjp",
    ["Custom VJP", "bwd of f", "tuple"],
    """
    @jax.custom_vjp
    def f(x, y):
        return x * y
    def bwd(res, g):
        return g * res[1]
    f.defvjp(lambda x, y: (x * y, (x, y)), bwd)
    jax.grad(f)(2.0, 3.0)  # here
""",
    """
    @jax.custom_vjp
    def f(x, y):
        return x * y
    def bwd(res, g):
        return g * res[1], g * res[0]
    f.defvjp(lambda x, y: (x * y, (x, y)), bwd)
    assert jax.grad(f)(2.0, 3.0) == 3
""",
)
mistake(
    "custom_vjp without rules",
    ["defvjp", "f"],
    """
    @jax.custom_vjp
    def f(x):
        return x
    jax.grad(f)(2.0)  # here
""",
    """
    @jax.custom_vjp
    def f(x):
        return x
    f.defvjp(lambda x: (x, None), lambda _, g: (g,))
    jax.grad(f)(2.0)
""",
)
mistake(
    "reverse mode of while_loop",
    ["fori_loop", "scan"],
    """
    def f(x):
        return lax.while_loop(lambda x: x < 9, lambda x: x * 2, x)
    jax.grad(f)(1.0)  # here
""",
    """
    def f(x):
        return lax.scan(lambda x, _: (x * 2, None), x, None, length=4)[0]
    assert jax.grad(f)(1.0) == 16
""",
)

# -- vmap and axes ---------------------------------------------------------------------------------

mistake(
    "sizes of mapped axes",
    ["argument a", "argument b", "3", "4"],
    """
    f = jax.vmap(lambda a, b: a * b)
    f(x, jnp.ones(4))  # here
""",
    """
    f = jax.vmap(lambda a, b: a * b, in_axes=(0, None))
    f(x, jnp.ones(4))
""",
)
mistake(
    "in_axes of another length",
    ["in_axes", "(0, 0, 0)"],
    """
    f = jax.vmap(lambda a, b: a * b, in_axes=(0, 0, 0))
    f(x, x)  # here
""",
    """
    f = jax.vmap(lambda a, b: a * b, in_axes=(0, 0))
    f(x, x)
""",
)
mistake(
    "in_axes that is no axis",
    ["in_axes", "got a"],
    """
    f = jax.vmap(lambda a, b: a * b, in_axes="a")  # here
""",
    """
    f = jax.vmap(lambda a, b: a * b, in_axes=0)
    f(x, x)
""",
)
mistake(
    "vmap of a scalar",
    ["argument b", "None"],
    """
    f = jax.vmap(lambda a, b: a * b)
    f(x, 2.0)  # here
""",
    """
    f = jax.vmap(lambda a, b: a * b, in_axes=(0, None))
    f(x, 2.0)
""",
)
mistake(
    "name of no axis",
    ["unbound axis name", "'i'", "axis_name"],
    """
    f = jax.vmap(lambda a: lax.psum(a, "i"))
    f(x)  # here
""",
    """
    f = jax.vmap(lambda a: lax.psum(a, "i"), axis_name="i")
    assert f(x)[0] == 3
""",
)

# -- loops and branches ----------------------------------------------------------------------------

mistake(
    "carry of scan of another type",
    ["carry", "int32", "float32", "astype"],
    """
    def body(c, x):
        return c + x, None
    lax.scan(body, jnp.int32(0), x)  # here
""",
    """
    def body(c, x):
        return c + x, None
    lax.scan(body, jnp.int32(0).astype(x.dtype), x)
""",
)
mistake(
    "body of scan without a pair",
    ["pair", "body"],
    """
    def body(c, x):
        return c + x
    lax.scan(body, 0.0, x)  # here
""",
    """
    def body(c, x):
        return c + x, None
    lax.scan(body, 0.0, x)
""",
)
mistake(
    "carry of while_loop",
    ["float32[3]", "float32[]", "carry c"],
    """
    lax.while_loop(lambda c: c.sum() < 9, lambda c: c.sum() + 1, x)  # here
""",
    """
    lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x)
""",
)
mistake(
    "carry of fori_loop",
    ["int32", "float32"],
    """
    lax.fori_loop(0, 3, lambda i, c: c * 0.5, jnp.int32(1))  # here
""",
    """
    lax.fori_loop(0, 3, lambda i, c: c * 0.5, 1.0)
""",
)
mistake(
    "branches that differ",
    ["float32[]", "int32[]", "astype"],
    """
    lax.cond(True, lambda x: x.sum(), lambda x: jnp.int32(0), x)  # here
""",
    """
    lax.cond(True, lambda x: x.sum(), lambda x: jnp.float32(0), x)
""",
)
mistake(
    "condition that is no scalar",
    ["(3,)", "scalar"],
    """
    lax.cond(x > 0, lambda x: x, lambda x: -x, x)  # here
""",
    """
    jnp.where(x > 0, x, -x)
""",
)
mistake(
    "lengths of scanned arrays",
    ["3", "4"],
    """
    lax.scan(lambda c, ab: (c, ab[0]), 0.0, (x, jnp.ones(4)))  # here
""",
    """
    lax.scan(lambda c, ab: (c, ab[0]), 0.0, (x, jnp.ones(4)[:3]))
""",
)

# -- trees, keys -----------------------------------------------------------------------------------

mistake(
    "trees that differ",
    ["'b'"],
    """
    params, grads = {"a": x, "b": x}, {"a": x}
    jax.tree.map(lambda p, g: p - g, params, grads)  # here
""",
    """
    params, grads = {"a": x, "b": x}, {"a": x, "b": x}
    jax.tree.map(lambda p, g: p - g, params, grads)
""",
)
mistake(
    "integer for a key",
    ["random.key"],
    """
    random.normal(0, (3,))  # here
""",
    """
    random.normal(random.key(0), (3,))
""",
)
mistake(
    "several keys for one",
    ["vmap"],
    """
    keys = random.split(random.key(0))
    random.normal(keys, (3,))  # here
""",
    """
    keys = random.split(random.key(0))
    jax.vmap(lambda key: random.normal(key, (3,)))(keys)
""",
)
mistake(
    "arithmetic of keys",
    ["key<fry>"],
    """
    random.key(0) + 1  # here
""",
    """
    random.fold_in(random.key(0), 1)
""",
)
mistake(
    "key that is used twice",
    ["key", "split"],
    """
    jax.config.update("jax_debug_key_reuse", True)
    try:
        key = random.key(0)
        random.normal(key)
        random.normal(key)  # here
    finally:
        jax.config.update("jax_debug_key_reuse", False)
""",
    """
    with jax.debug_key_reuse(True):
        one, other = random.split(random.key(0))
        random.normal(one)
        random.normal(other)
""",
)


def run(text, library, name):
    """Run a script; return the error and what Python prints of it."""
    source = HEADER.format(library=library) + text
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(source, name, "exec"), {})
    except Exception as error:
        error.__traceback__ = error.__traceback__.tb_next  # without this frame
        return error
    return None


@pytest.mark.parametrize("label", MISTAKES)
def test_a_common_mistake(label):
    words, wrong, right = MISTAKES[label]
    name = f"{label}.py"
    expected, error = run(wrong, "jax", name), run(wrong, "minijax", name)
    kinds = [kind.__name__ for kind in type(error).__mro__]
    assert type(expected).__name__ in kinds, (type(error), expected)
    message = str(error)
    assert not [word for word in words if word not in message], message
    printed = "".join(traceback.format_exception(error)).splitlines()
    assert len(printed) <= MOST_LINES, printed
    lines = [line for file, _, _, line in traceback.extract_tb(error.__traceback__) if file == name]
    assert any("# here" in line for line in lines), printed
    assert run(right, "minijax", name) is None
