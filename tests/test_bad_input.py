"""Wrong calls: upstream's error class, and a message that names what is wrong and what to do.

Each row is a call, as a function of the library, and words that our message must contain: the
argument or value at fault, and the remedy. The rows of SAME_WORDS have words that upstream's message
has too: suites that were written for upstream look for them.
"""

import importlib
import pickle
import re
import subprocess
import sys

import jax
import numpy as np
import pytest

import minijax

pytestmark = pytest.mark.both_ends

CALLS = {}


def wrong(label, *words):
    def register(call):
        assert label not in CALLS, label
        CALLS[label] = (call, words)
        return call

    return register


def table(rows):
    for label, (words, call) in rows.items():
        wrong(label, *words)(call)


X = np.arange(3.0, dtype=np.float32)
Y = np.ones((2, 3), np.float32)
FOUR, INTS = np.ones(4, np.float32), np.arange(3, dtype=np.int32)
IMG, KER = np.ones((1, 2, 4, 4), np.float32), np.ones((2, 2, 3, 3), np.float32)


def applied(m, function):
    numbers = m.lax.ScatterDimensionNumbers((), (0,), (0,))
    return m.lax.scatter_apply(
        m.numpy.ones(3), m.numpy.array([[0]]), function, numbers, update_shape=(1,)
    )


def leak(m):
    kept = []
    m.jit(lambda x: kept.append(x))(1.0)
    return kept[0]


def setitem(m):
    x = m.numpy.arange(3)
    x[0] = 1


def donated(m):
    import warnings

    x = m.numpy.arange(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m.jit(lambda a: a + 1, donate_argnums=0)(x)
    x.delete()
    return x + 1


def np_in_jit(m):
    return m.jit(lambda x: np.sin(x))(X)


table({
    # shapes
    "add shapes": (["(3,)", "(4,)"], lambda m: m.numpy.ones(3) + m.numpy.ones(4)),
    "mul shapes": (["(2, 3)", "(2, 2)"], lambda m: m.numpy.ones((2, 3)) * m.numpy.ones((2, 2))),
    "lax add shapes": (["(3,)", "(4,)"], lambda m: m.lax.add(X, np.ones(4, np.float32))),
    "lax add ranks": (["(3,)", "(2, 3)"], lambda m: m.lax.add(X, Y)),
    "lax add dtypes": (["float32", "int32"], lambda m: m.lax.add(X, np.arange(3, dtype=np.int32))),
    "matmul shapes": (["(2, 3)"], lambda m: m.numpy.matmul(Y, Y)),
    "matmul scalar": (["operand 1", "`*`"], lambda m: m.numpy.matmul(Y, 2.0)),
    "dot shapes": (["(2, 3)"], lambda m: m.numpy.dot(Y, Y)),
    "reshape size": (["(3,)", "(2, 2)"], lambda m: m.numpy.arange(3.0).reshape(2, 2)),
    "reshape two unknown": (["-1"], lambda m: m.numpy.arange(3.0).reshape(-1, -1)),
    "concatenate shapes": (["(2, 3), (3,)", "reshape"], lambda m: m.numpy.concatenate([Y, X])),
    "concatenate nothing": (["at least one array"], lambda m: m.numpy.concatenate([])),
    "stack shapes": (["(3,), (2,)", "broadcast"], lambda m: m.numpy.stack([X, X[:2]])),
    "broadcast_to": (["float32[3]", "float32[2,2]"], lambda m: m.numpy.broadcast_to(X, (2, 2))),
    "where shapes": (["(3,), (4,)", "or be 1"], lambda m: m.numpy.where(X > 0, X, np.ones(4))),
    "squeeze": (["shape=(3,)", "(0,)", "size 1"], lambda m: m.numpy.squeeze(X, axis=0)),
    "transpose axes": (["(0, 0)", "(2, 3)", "once"], lambda m: m.numpy.transpose(Y, (0, 0))),
    "einsum size": (["'j'", "(2, 3)", "reshape"], lambda m: m.numpy.einsum("ij,jk->ik", Y, Y)),
    "lax reshape": (["(3,)"], lambda m: m.lax.reshape(X, (2,))),
    "lax slice": (["limit_indices (5,)", "(3,)"], lambda m: m.lax.slice(X, (0,), (5,))),
    "lax dynamic_slice": (["slice_sizes", "(5,)", "(3,)"], lambda m: m.lax.dynamic_slice(X, (0,), (5,))),
    "lax dynamic_slice ranks": (["start_indices", "got 2", "(3,)"], lambda m: m.lax.dynamic_slice(X, (0, 0), (1, 1))),
    "lax pad": (["padding_config", "(3,)"], lambda m: m.lax.pad(X, np.float32(0), ((0, 0, 0), (0, 0, 0)))),
    "lax concatenate": (["(3,), (2, 3)", "reshape"], lambda m: m.lax.concatenate([X, Y], 0)),
    "lax broadcast_in_dim": (["(3,)", "(2, 2)", "(0,)"], lambda m: m.lax.broadcast_in_dim(X, (2, 2), (0,))),
    "lax select": (["(4,), (3,)", "broadcast"], lambda m: m.lax.select(X > 0, X, np.ones(4, np.float32))),
    "lax dot_general": (["(2, 3)", "same sizes"], lambda m: m.lax.dot_general(Y, Y, (((1,), (0,)), ((), ())))),
    "lax conv rank": (["window_strides", "(1, 1)"], lambda m: m.lax.conv(Y, Y, (1, 1), "SAME")),
    "lax transpose": (["(0, 2)", "(2, 3)", "permutation"], lambda m: m.lax.transpose(Y, (0, 2))),
    "lax clamp": (["max.shape=(4,)", "broadcast"], lambda m: m.lax.clamp(np.float32(0), X, np.ones(4, np.float32))),
    # axes
    "sum axis": (["2"], lambda m: m.numpy.sum(Y, axis=2)),
    "sum negative axis": (["-3"], lambda m: m.numpy.sum(Y, axis=-3)),
    "sum axis twice": (["(0, 0)", "duplicate"], lambda m: m.numpy.sum(Y, axis=(0, 0))),
    "argmax axis": (["axis 1", "-1 to 0"], lambda m: m.numpy.argmax(m.numpy.arange(3.0), axis=1)),
    "cumsum axis": (["axis 1", "-1 to 0"], lambda m: m.numpy.cumsum(X, axis=1)),
    "sort axis": (["axis 3", "-1 to 0"], lambda m: m.numpy.sort(X, axis=3)),
    "moveaxis": (["axis 1", "-1 to 0"], lambda m: m.numpy.moveaxis(X, 0, 1)),
    "swapaxes": (["axis 1", "-1 to 0"], lambda m: m.numpy.swapaxes(m.numpy.arange(3.0), 0, 1)),
    "expand_dims": (["axis 3", "-2 to 1"], lambda m: m.numpy.expand_dims(X, 3)),
    "concatenate axis": (["axis 1", "-1 to 0"], lambda m: m.numpy.concatenate([X, X], axis=1)),
    "flip axis": (["axis 1", "-1 to 0"], lambda m: m.numpy.flip(X, axis=1)),
    "take axis": (["axis 2", "-1 to 0"], lambda m: m.numpy.take(X, 0, axis=2)),
    "max of nothing": (["(0,)", "'initial'"], lambda m: m.numpy.max(np.zeros(0, np.float32))),
    "argmax of nothing": (["(0,)", "size 0"], lambda m: m.numpy.argmax(np.zeros(0, np.float32))),
    # dtypes and kinds of values
    "sum of a list": (["list"], lambda m: m.numpy.sum([1, 2, 3])),
    "sin of a string": (["str"], lambda m: m.numpy.sin("a")),
    "sin of None": (["NoneType", "position 0", "asarray"], lambda m: m.numpy.sin(None)),
    "array of strings": (["'a'", "numeric"], lambda m: m.numpy.array(["a", "b"])),
    "array of objects": (["object", "numeric"], lambda m: m.numpy.array([object()])),
    "long double": (["float128", "numeric"], lambda m: m.numpy.sin(np.longdouble(2))),
    "long doubles": (["float128", "numeric"], lambda m: m.device_put(np.ones(2, np.longdouble))),
    "bad dtype": (["no_such_dtype", "jnp.float32"], lambda m: m.numpy.zeros(3, "no_such_dtype")),
    "negative size": (["(-1,)", "shape", "nonnegative"], lambda m: m.numpy.zeros(-1)),
    "lax sin of integers": (["int32"], lambda m: m.lax.sin(np.arange(3, dtype=np.int32))),
    "lax not of floats": (["float32"], lambda m: m.lax.bitwise_not(X)),
    "lax while predicate": (["float32[3]", "cond_fun", ".any()"], lambda m: m.lax.while_loop(lambda x: x, lambda x: x, X)),
    "bitwise and of floats": (["float32", "integer, bool", "astype"], lambda m: m.numpy.bitwise_and(X, X)),
    "left shift of floats": (["float32", "integer", "astype"], lambda m: m.numpy.left_shift(X, X)),
    "arange of nothing": (["start"], lambda m: m.numpy.arange()),
    "int of a vector": (["(3,)"], lambda m: int(m.numpy.arange(3))),
    "float of a vector": (["(3,)", "float()", "pick one"], lambda m: float(m.numpy.arange(3))),
    "truth of a vector": (["any"], lambda m: bool(m.numpy.arange(3))),
    "index by a float array": (["float32[]", "int(x)"], lambda m: [1, 2][m.numpy.float32(1)]),
    "len of a scalar": (["unsized"], lambda m: len(m.numpy.float32(1))),
    "iterate a scalar": (["0-d"], lambda m: list(m.numpy.float32(1))),
    "hash": (["unhashable"], lambda m: hash(m.numpy.arange(3))),
    "item assignment": ([".at["], setitem),
    # indexing
    "too many indices": (["2 were indexed", "(3,)"], lambda m: m.numpy.arange(3)[0, 0]),
    "float index": (["float64", "position 0", "astype(int)"], lambda m: m.numpy.arange(3)[1.0]),
    "float array index": (["float32", "position 0", "astype(int)"], lambda m: m.numpy.arange(3)[X]),
    "list index": (["array(seq)"], lambda m: m.numpy.arange(3)[[0, 1]]),
    "string index": (["idx='a'", "position"], lambda m: m.numpy.arange(3)["a"]),
    "two ellipses": (["..."], lambda m: m.numpy.ones((2, 3))[..., ..., 0]),
    "mask of another shape": (["(2,)", "[3]", "mask"], lambda m: m.numpy.arange(3)[np.array([True, False])]),
    "traced mask": (["where"], lambda m: m.jit(lambda x: x[x > 0])(X)),
    "traced slice": (["position 0", "dynamic_slice_in_dim"], lambda m: m.jit(lambda x, n: x[:n])(X, 2)),
    "at set shape": (["(5,)", "shape=()"], lambda m: m.numpy.arange(3).at[0].set(np.arange(5))),
    "at mode": (["mode"], lambda m: m.numpy.arange(3).at[5].get(mode="nowhere")),
    # traced values where known ones are needed
    "if on a tracer": (["cond"], lambda m: m.jit(lambda x: 1 if x > 0 else 2)(1.0)),
    "while on a tracer": (["while_loop"], lambda m: m.jit(lambda x: x if x else x)(1.0)),
    "int of a tracer": (["static"], lambda m: m.jit(lambda x: int(x))(1.0)),
    "float of a tracer": (["static"], lambda m: m.jit(lambda x: float(x))(1.0)),
    "range of a tracer": (["static"], lambda m: m.jit(lambda n: sum(range(n)))(3)),
    "NumPy on a tracer": (["minijax.numpy"], np_in_jit),
    "shape from a tracer": (["shape", "static"], lambda m: m.jit(lambda n: m.numpy.zeros(n))(3)),
    "arange of a tracer": (["'stop'", "static"], lambda m: m.jit(lambda n: m.numpy.arange(n))(3)),
    "leaked tracer": (["leaked"], lambda m: leak(m) + 1),
    "leaked into jit": (["leaked"], lambda m: m.jit(lambda y: leak(m) + y)(1.0)),
    "nonzero of a tracer": (["size"], lambda m: m.jit(m.numpy.nonzero)(X)),
    "unique of a tracer": (["size"], lambda m: m.jit(m.numpy.unique)(X)),
    "tolist of a tracer": (["tolist()", "argument x", "static"], lambda m: m.jit(lambda x: x.tolist())(X)),
    # jit
    "jit of no function": (["callable"], lambda m: m.jit(3)),
    "jit argument": (["str"], lambda m: m.jit(lambda x: x)("a")),
    "jit result": (["str"], lambda m: m.jit(lambda x: "a")(1.0)),
    "static unhashable": (
        ["hashable", "[1]"], lambda m: m.jit(lambda x, n: x, static_argnums=1)(1.0, [1])
    ),
    "static out of range": (["5"], lambda m: m.jit(lambda x: x, static_argnums=5)(1.0)),
    "static name": (["'z'"], lambda m: m.jit(lambda x: x, static_argnames="z")(1.0)),
    "static argnums type": (["static_argnums", "'a'", "integers"], lambda m: m.jit(lambda x: x, static_argnums="a")(1.0)),
    "donated buffer": (["deleted"], donated),
    "missing argument": (["'y'"], lambda m: m.jit(lambda x, y: x)(1.0)),
    "compiled types": (
        ["float32[3]", "float32[2,3]"], lambda m: m.jit(lambda x: x).lower(X).compile()(Y)
    ),
    # grad and its kin
    "grad vector output": (["(3,)", "jac"], lambda m: m.grad(lambda x: x)(X)),
    "grad integer input": (["allow_int"], lambda m: m.grad(lambda x: x * 1.0)(1)),
    "grad boolean input": (["allow_int"], lambda m: m.grad(lambda x: x * 1.0)(True)),
    "grad complex output": (["holomorphic"], lambda m: m.grad(lambda x: x * 1j)(1.0)),
    "grad integer output": (["vjp"], lambda m: m.grad(lambda x: x.astype(np.int32))(X[0])),
    "grad tree output": (["scalar"], lambda m: m.grad(lambda x: (x, x))(1.0)),
    "grad argnums range": (["argnums"], lambda m: m.grad(lambda x: x, argnums=2)(1.0)),
    "grad argnums type": (["argnums"], lambda m: m.grad(lambda x: x, argnums="a")(1.0)),
    "grad without arguments": (["argnums=0", "at least 1"], lambda m: m.grad(lambda x: x)()),
    "grad of no function": (["callable"], lambda m: m.grad(1.0)),
    "grad has_aux": (["pair"], lambda m: m.grad(lambda x: x, has_aux=True)(1.0)),
    "grad holomorphic real": (
        ["holomorphic"], lambda m: m.grad(lambda x: x, holomorphic=True)(1.0)
    ),
    "jacrev complex": (["holomorphic"], lambda m: m.jacrev(lambda x: x * 1j)(X)),
    "jacfwd integers": (["int32"], lambda m: m.jacfwd(lambda x: x)(np.arange(3, dtype=np.int32))),
    "jvp lists": (["tuple"], lambda m: m.jvp(lambda x: x, 1.0, 1.0)),
    "jvp structure": (["structure"], lambda m: m.jvp(lambda x: x, (X,), ((X, X),))),
    "jvp shape": (["(3,)"], lambda m: m.jvp(lambda x: x, (X,), (X[:2],))),
    "jvp dtype": (["int32"], lambda m: m.jvp(lambda x: x, (X,), (X.astype(np.int32),))),
    "vjp structure": (["structure"], lambda m: m.vjp(lambda x: x, X)[1]((X, X))),
    "vjp shape": (["(3,)", "float32"][1:], lambda m: m.vjp(lambda x: x, X)[1](X[:2])),
    "linearize tangent": (["float32[2]", "float32[3]", "primals"], lambda m: m.linearize(lambda x: x, X)[1](X[:2])),
    "while in reverse": (
        ["while_loop"],
        lambda m: m.grad(lambda x: m.lax.while_loop(lambda c: c < 9.0, lambda c: c * 2, x))(1.0),
    ),
    "linear_transpose": (["'sin'", "not linear"], lambda m: m.linear_transpose(m.numpy.sin, X)(X)),
    "custom_vjp forward": (["jvp"], lambda m: forward_through_custom_vjp(m)),
    "custom_vjp count": (["bwd rule", "tuple"], lambda m: m.grad(bad_custom_vjp(m, lambda r, ct: (ct, ct)))(1.0)),
    "custom_vjp shape": (["bwd rule", "output[0]", "float32[3]", "float32[]"], lambda m: m.grad(bad_custom_vjp(m, lambda r, ct: (X,)))(1.0)),
    "custom_vjp without rule": (["defvjp"], lambda m: m.grad(m.custom_vjp(lambda x: x))(1.0)),
    "custom_jvp without rule": (["defjvp"], lambda m: m.custom_jvp(lambda x: x)(1.0)),
    # vmap
    "vmap sizes": (["size 2", "size 3"], lambda m: m.vmap(m.numpy.add)(Y, X)),
    "vmap in_axes count": (["in_axes"], lambda m: m.vmap(lambda x: x, in_axes=(0, 0))(X)),
    "vmap in_axes type": (["in_axes"], lambda m: m.vmap(lambda x: x, in_axes="a")(X)),
    "vmap in_axes rank": (["rank"], lambda m: m.vmap(lambda x: x, in_axes=1)(X)),
    "vmap all None": (["in_axes"], lambda m: m.vmap(lambda x: x, in_axes=None)(X)),
    "vmap no arguments": (["at least one argument"], lambda m: m.vmap(lambda: 1)()),
    "vmap out_axes None": (["at vmap out_axes,", "axis spec None", "batched on axis 0"], lambda m: m.vmap(lambda x: x, out_axes=None)(X)),
    "vmap out_axes range": (["out_axes", "axis 5 is out of bounds for array of dimension 1"], lambda m: m.vmap(lambda x: x, out_axes=5)(X)),
    "vmap out_axes tree": (["out_axes"], lambda m: m.vmap(lambda x: x, out_axes=(0, 0))(X)),
    "vmap scalar": (["rank"], lambda m: m.vmap(lambda x: x)(1.0)),
    "vmap axis_size": (["`axis_size` argument was 5", "size 3"], lambda m: m.vmap(lambda x: x, axis_size=5)(X)),
    "unbound axis": (["axis"], lambda m: m.lax.psum(X, "i")),
    # control flow
    "cond branches differ": (["true_fun", "false_fun", "Revise"], lambda m: m.lax.cond(True, lambda x: x, lambda x: (x, x), X)),
    "cond branch dtypes": (
        ["float32", "int32"],
        lambda m: m.lax.cond(True, lambda x: x, lambda x: x.astype(np.int32), m.numpy.asarray(X)),
    ),
    "out_sharding of a device": (["out_sharding", "NamedSharding"], lambda m: m.lax.dot(
        X, X, out_sharding=m.sharding.SingleDeviceSharding(m.devices()[0])
    )),
    "cond predicate": (["Pred", "(3,)", ".any()"], lambda m: m.lax.cond(X, lambda x: x, lambda x: x, X)),
    "switch without branches": (["branch", "at least one"], lambda m: m.lax.switch(0, [], X)),
    "switch index": (["Index", "float32", "convert"], lambda m: m.lax.switch(0.5, [lambda x: x, lambda x: x], X)),
    "scan carry": (["carry"], lambda m: m.lax.scan(lambda c, x: ((c, c), x), 0.0, X)),
    "scan carry shape": (["carry"], lambda m: m.lax.scan(lambda c, x: (X, x), 0.0, X)),
    "scan lengths": (["3, 2", "xs"], lambda m: m.lax.scan(lambda c, x: (c, c), 0.0, (X, Y))),
    "scan without xs": (["length"], lambda m: m.lax.scan(lambda c, x: (c, c), 0.0, None)),
    "scan no pair": (["pair", "float32[]"], lambda m: m.lax.scan(lambda c, x: c, 0.0, X)),
    "while carry": (["carry", "float32[3]", "Revise"], lambda m: m.lax.while_loop(lambda c: c < 1, lambda c: X, 0.0)),
    "fori bounds": (["lower and upper", "float32 and int32", "astype"], lambda m: m.lax.fori_loop(0.5, 2, lambda i, c: c, 0.0)),
    # what needs values, of tracers
    "truth of a traced vector": (["float32[3]", "a.any()"], lambda m: m.jit(lambda x: bool(x))(X)),
    "float of a traced vector": (["ndim=1", "index"], lambda m: m.jit(lambda x: float(x))(X)),
    "index by a float": (["integer scalar", "float32[]"], lambda m: m.jit(lambda x: [1, 2][x])(1.0)),
    "index by a vector": (["integer scalar", "int32[3]"], lambda m: m.jit(range)(np.arange(3, dtype=np.int32))),
    "devices of a tracer": (["devices", "concrete"], lambda m: m.jit(lambda x: x.devices())(X)),
    "committed tracer": (["committed", "concrete"], lambda m: m.jit(lambda x: x.committed)(X)),
    "waiting for a tracer": (["block_until_ready"], lambda m: m.jit(lambda x: x.block_until_ready())(X)),
    "pickle of a tracer": (["reduce", "concrete"], lambda m: m.vmap(lambda x: (pickle.dumps(x), x)[1])(X)),
    "values of a traced jvp": (["float32[3]"], lambda m: m.jvp(lambda x: x.devices(), (X,), (X,))),
    "lax axis": (["axis 7", "-2 to 1"], lambda m: m.lax.slice_in_dim(Y, 0, 1, axis=7)),
    "masked array": (["masked", "filled"], lambda m: m.numpy.sin(np.ma.array(X, mask=[1, 0, 0]))),
    # trees, devices, settings, random
    "tree_map structure": (["length 2", "length 1", "same structure"], lambda m: m.tree_util.tree_map(lambda a, b: a, [1, 2], [1])),
    "unflatten count": (["expected 1", "got 0"], lambda m: m.tree_util.tree_unflatten(m.tree_util.tree_structure([1]), [])),
    "device_put value": (["object", "array"], lambda m: m.device_put(object())),
    "device_put place": (["nowhere of type", "Device"], lambda m: m.device_put(X, "nowhere")),
    "unknown platform": (["nowhere"], lambda m: m.devices("nowhere")),
    "unknown setting": (["no_such"], lambda m: m.config.update("jax_no_such", 1)),
    "random key": (["(3,)", "(2,)"], lambda m: m.random.normal(X, (3,))),
    "random shape": (["(2.5,)", "integer"], lambda m: m.random.normal(m.random.key(0), (2.5,))),
    "random dtype": (["dtype", "int32", "float"], lambda m: m.random.normal(m.random.key(0), (3,), np.int32)),
    "key arithmetic": (["key<fry>", "key_data"], lambda m: m.random.key(0) + 1),
    "choice without replacement": (
        ["size 5", "size 3", "replace"], lambda m: m.random.choice(m.random.key(0), 3, (5,), replace=False)
    ),
})  # fmt: skip


def forward_through_custom_vjp(m):
    return m.jvp(bad_custom_vjp(m, lambda r, ct: (ct,)), (1.0,), (1.0,))


def yields(x):
    yield x


def pulled(m):
    return m.vjp(lambda x: (x, x), 1.0)[1]


def inner_options(m):
    inner = m.jit(lambda x: x, compiler_options={"xla_cpu_enable_fast_math": True})
    return m.make_jaxpr(inner)(1.0)


def here(m):
    return m.sharding.SingleDeviceSharding(m.devices()[0])


def over_abstract_mesh(m):
    mesh = m.sharding.AbstractMesh((1,), ("x",))
    return m.sharding.NamedSharding(mesh, m.sharding.PartitionSpec("x"))


def nans(m, call):
    with m.debug_nans(True):
        call()


table({
    # what jit, the stages and the derivatives are given
    "jit of a generator": (["generator function", "yields"], lambda m: m.jit(yields)),
    "static and donated": (["cannot intersect", "'x'"], lambda m: m.jit(lambda x: x, static_argnums=0, donate_argnums=0)),
    "jit argument by path": (["at path x['a'][1]", "<class 'str'>"], lambda m: m.jit(lambda x: x)({"a": [1, "b"]})),
    "eval_shape argument": (["at path x", "<class 'str'>"], lambda m: m.eval_shape(lambda x: x, "a")),
    "jit of a large integer": (["argument path is x", "int32"], lambda m: m.jit(lambda x: x)(2**40)),
    "make_jaxpr result": (["output component [1]['a']"], lambda m: m.make_jaxpr(lambda x: (x, {"a": "b"}))(1.0)),
    "make_jaxpr unhashable": (["hashable", "[2]"], lambda m: m.make_jaxpr(lambda x, n: x, static_argnums=1)(1.0, [2])),
    "vmap result": (["batched function", "<class 'str'>"], lambda m: m.vmap(lambda x: (x, "a"))(X)),
    "inner compiler options": (["compiler_options", "top-level"], inner_options),
    "in_shardings and keywords": (["kwargs", "in_shardings"], lambda m: m.jit(lambda x: x, in_shardings=here(m))(x=1.0)),
    "in_shardings without devices": (["AbstractMesh"], lambda m: m.jit(lambda x: x, in_shardings=over_abstract_mesh(m))(X)),
    "constraint without devices": (["AbstractMesh", "NamedSharding"], lambda m: m.lax.with_sharding_constraint(m.numpy.ones(2), over_abstract_mesh(m))),
    "device and in_shardings": (["device", "in_shardings"], lambda m: m.jit(lambda x: x, backend="cpu", in_shardings=here(m))),
    "nan by its operation": (["encountered in log"], lambda m: nans(m, lambda: m.jit(lambda x: m.numpy.log(x) * 2)(-1.0))),
    "donated array devices": (["deleted", "float32[3]"], lambda m: used_up(m).devices()),
    "donated array given": (["deleted or donated"], lambda m: m.jit(lambda x: x)(used_up(m))),
    "jvp of list and tuple": (["tree structure"], lambda m: m.jvp(lambda x: x, [1.0], (1.0,))),
    "vjp of two cotangents": (["2 arguments", "single argument"], lambda m: pulled(m)(1.0, 1.0)),
    "linear_transpose structure": (["cotangent tree", "{'b': *}"], lambda m: m.linear_transpose(lambda x: {"a": x}, 1.0)({"b": 1.0})),
    "grad argnums negative": (["-3", "len(args) == 1"], lambda m: m.grad(lambda x: x, argnums=-3)(1.0)),
    "grad argnums empty": (["argnums", "()"], lambda m: m.grad(lambda x: x, argnums=())(1.0)),
    "jacrev argnums range": (["value 2 ", "len(args) == 1"], lambda m: m.jacrev(lambda x: x, argnums=2)(1.0)),
    "jacfwd of integers": (["real-valued inputs", "int32", "jvp"], lambda m: m.jacfwd(lambda x: x)(1)),
    "float0 operand": (["float0"], lambda m: m.lax.add(np.zeros(2, m.dtypes.float0), np.zeros(2, m.dtypes.float0))),
    "int of a complex number": (["complex"], lambda m: int(m.numpy.complex64(1j))),
    "linear solve structure": (["matvec() output pytree structure"], lambda m: m.lax.custom_linear_solve(lambda x: (x,), X, lambda f, b: b)),
})  # fmt: skip


KEYS = lambda m: m.random.split(m.random.key(0), 3)
SWAPPED = np.arange(3.0, dtype=np.float32).astype(">f4")
MASKED = np.ma.array(X, mask=[1, 0, 0])


def traced(m, call):
    return m.eval_shape(call)


def zero_axis(m):
    return m.pmap(lambda x: x)(np.zeros((0, 2)))


def pair_rule(m):
    f = m.custom_jvp(lambda x: x * 2)
    f.defjvps(lambda t, out, x: (t, t))
    return m.jvp(f, (1.0,), (1.0,))


table({
    # values that no array here holds
    "another byte order": ([">f4", "byte order"], lambda m: m.numpy.sin(SWAPPED)),
    "byte order under jit": (["byte order", "path x"], lambda m: m.jit(lambda x: x)(SWAPPED)),
    "byte order of a constant": (["byte order"], lambda m: traced(m, lambda: m.lax.sin(SWAPPED))),
    "device_put another byte order": (["byte order"], lambda m: m.device_put(SWAPPED)),
    "masked constant": (["masked", "filled"], lambda m: traced(m, lambda: m.lax.sin(MASKED))),
    "device_put masked": (["masked", "filled"], lambda m: m.device_put(MASKED)),
    "eval_shape of objects": (["object", "path x"], lambda m: m.eval_shape(lambda x: x, np.array([1], object))),
    "eval_shape of a large integer": (["path is x", "int32"], lambda m: m.eval_shape(lambda x: x, 2**40)),
    "lower with a large integer": (["too large", "int32"], lambda m: m.jit(lambda x: x).lower(2**40)),
    "large constant": (["too large", "int32"], lambda m: traced(m, lambda: m.numpy.ones(2) + 2**40)),
    "zeros_like of objects": (["object", "numeric"], lambda m: m.numpy.zeros_like(np.array([1, 2], object))),
    "float0 in arithmetic": (["float0", "tangents"], lambda m: m.numpy.ones(2) * np.zeros(2, m.dtypes.float0)),
    "NumPy array as a dtype": (["dtype=arr.dtype", "float64"], lambda m: m.numpy.zeros(3, np.ones(2))),
    "sum of keys": (["key<fry>", "numbers"], lambda m: traced(m, lambda: m.numpy.sum(KEYS(m)))),
    # sizes and counts
    "zeros_like of negative size": (["(-1,)", "nonnegative"], lambda m: m.numpy.zeros_like(X, shape=-1)),
    "window of negative size": (["bartlett", "-1"], lambda m: m.numpy.bartlett(-1)),
    "kaiser of negative size": (["kaiser", "-1"], lambda m: m.numpy.kaiser(-1, 1.0)),
    "window of a tracer": (["M argument of jnp.hamming", "static"], lambda m: m.jit(lambda n: m.numpy.hamming(n))(3)),
    "diag_indices of a tracer": (["'n' argument of jnp.diag_indices", "static"], lambda m: m.jit(lambda n: m.numpy.diag_indices(n))(3)),
    "split backwards": (["nonnegative", "(2, 1)", "increasing"], lambda m: m.numpy.split(X, [2, 1])),
    "split past the end": (["nonnegative", "from 0 to 3"], lambda m: m.numpy.split(X, [5])),
    "repeat by floats": (["float32", "astype"], lambda m: m.numpy.repeat(X, np.float32(2))),
    "repeat to a negative length": (["total_repeat_length=-1"], lambda m: m.numpy.repeat(X, 2, total_repeat_length=-1)),
    "median of nothing": (["(0,)", "non-empty"], lambda m: m.numpy.median(np.zeros(0, np.float32))),
    "orthogonal of negative size": (["n=-1"], lambda m: m.random.orthogonal(m.random.key(0), -1)),
    "hadamard of a fraction": (["power of 2", "1.5"], lambda m: m.scipy.linalg.hadamard(1.5)),
    # kinds of arguments
    "arange of a boolean": (["bool", "numeric dtype"], lambda m: m.numpy.arange(True)),
    "fromfunction of booleans": (["bool", "numeric"], lambda m: m.numpy.fromfunction(lambda i: i, (2,), dtype=bool)),
    "vander of booleans": (["bool", "astype"], lambda m: m.numpy.vander(X > 0)),
    "ix_ of booleans": (["Boolean", "nonzero"], lambda m: m.numpy.ix_(X > 0)),
    "eye with a fraction": (["k must be a scalar integer", "1.0"], lambda m: m.numpy.eye(3, k=1.0)),
    "tri with a boolean": (["offset must be an integer", "True"], lambda m: m.numpy.tri(3, k=True)),
    "tril with a boolean": (["offset must be an integer", "True"], lambda m: m.numpy.tril(Y, k=True)),
    "trace with a boolean": (["scalar integer", "True"], lambda m: m.numpy.trace(Y, offset=True)),
    "insert at a fraction": (["integer typed", "1.0"], lambda m: m.numpy.insert(X, 1.0, 5)),
    "insert at a boolean": (["integer typed", "True"], lambda m: m.numpy.insert(X, True, 5)),
    "tril_indices_from a list": (["list", "asarray"], lambda m: m.numpy.tril_indices_from([[1, 2], [3, 4]])),
    "permute_dims without axes": (["axes", "None", "transpose"], lambda m: m.numpy.permute_dims(Y, None)),
    "moveaxis without axes": (["None", "integers"], lambda m: m.numpy.moveaxis(Y, None, 0)),
    "ball with a list": (["list", "asarray"], lambda m: m.random.ball(m.random.key(0), 2, [2.0])),
    "precision as a list": (["Precision", "[1]"], lambda m: m.lax.dot(X, X, precision=[1])),
    "padding as a number": (["padding argument", "3.5"], lambda m: m.lax.conv(IMG, KER, (1, 1), 3.5)),
    "lu_solve of a vector": (["lu_factor", "(3,)"], lambda m: m.scipy.linalg.lu_solve((X, INTS), X)),
    "hankel with a scalar row": (["at least 1-dimensional"], lambda m: m.scipy.linalg.hankel(X, np.float32(3))),
    # transforms and trees
    "jit of None": (["callable", "None"], lambda m: m.jit(None)),
    "custom_jvp of a number": (["callable", "3"], lambda m: m.jvp(rule_of(m, 3), (1.0,), (1.0,))),
    "defjvps of a pair": (["equal container (pytree) structures"], pair_rule),
    "named_scope of a number": (["string", "3"], lambda m: m.named_scope(3)),
    "unknown matmul precision": (["enum", "wrong"], lambda m: m.default_matmul_precision("wrong")),
    "static_argnums as a list": (["static_argnums", "[1]", "tuple"], lambda m: m.checkpoint(lambda x, y: x, static_argnums=[1])(1.0, 2.0)),
    "pmap over nothing": (["size 0"], zero_axis),
    "mesh of no sizes": (["axis_shapes", "ints", "None"], lambda m: m.make_mesh((None,), ("x",))),
    "treedef_tuple of numbers": (["structures", "tree_structure"], lambda m: m.tree_util.treedef_tuple([1])),
})  # fmt: skip


def rule_of(m, fun):
    f = m.custom_jvp(fun)
    f.defjvp(lambda p, t: (p[0], t[0]))
    return f


def used_up(m):
    x = m.numpy.arange(3.0)
    m.jit(lambda a: a + 1, donate_argnums=0)(x)
    return x


def bad_custom_vjp(m, bwd):
    f = m.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), bwd)
    return f


def leak_mapped(m):
    kept = []
    m.vmap(lambda x: (kept.append(x), x)[1])(X)
    return kept[0]


def strictly(m):
    with m.numpy_dtype_promotion("strict"):
        return m.numpy.ones(3) + m.numpy.ones(3, int)


SAME_WORDS = [
    ("which is not a valid JAX type", lambda m: m.jit(lambda: m.custom_derivatives.SymbolicZero(m.typeof(X)))()),
    ("which is not a valid JAX type", lambda m: m.jit(lambda: m.make_jaxpr(lambda x: x)(X).jaxpr.invars[0])()),
    ("Unknown backend nope", lambda m: m.jit(lambda x: x, backend="nope")(1.0)),
    ("Unknown backend: 'gpu' requested, but no platforms that are", lambda m: m.devices("gpu")),
    ("Unknown backend: 'gpu' requested, but no platforms that are", lambda m: m.jit(lambda x: x, backend="gpu")(1.0)),
    ("unknown dialect: nope", lambda m: m.jit(lambda x: x).lower(X).compiler_ir("nope")),
    ("Abstract tracer value encountered where concrete value is expected:", lambda m: m.jit(lambda x: x.tobytes())(X)),
    ("The 'block_until_ready' method is not available on traced array with shape", lambda m: m.jit(lambda x: x.block_until_ready())(X)),
    ("Abstract tracer value encountered where concrete value is expected:", lambda m: m.jit(lambda x: m.numpy.where(x > 0))(X)),
    ("Abstract tracer value encountered where concrete value is expected:", lambda m: m.jit(lambda x: m.numpy.union1d(x, x))(X)),
    ("Abstract tracer value encountered where concrete value is expected:", lambda m: m.jit(lambda x: m.numpy.repeat(m.numpy.ones(3), x))(INTS)),
    ("Abstract tracer value encountered where concrete value is expected:", lambda m: m.jit(lambda x: m.numpy.arange(0, x))(3)),
    ("Abstract tracer value encountered where concrete value is expected:", lambda m: m.jit(lambda x: m.numpy.linspace(0, 1, x))(3)),
    ("Shapes must be 1D sequences of concrete values of integer type, got", lambda m: m.jit(lambda x: m.numpy.eye(x))(3)),
    ("Abstract tracer value encountered where concrete value is expected:", lambda m: m.jit(lambda x: m.numpy.sum(m.numpy.ones((2, 3)), axis=x))(0)),
    ("Abstract tracer value encountered where concrete value is expected:", lambda m: m.jit(lambda x: m.numpy.expand_dims(m.numpy.ones((2, 3)), x))(0)),
    ("Abstract tracer value encountered where concrete value is expected:", lambda m: m.jit(lambda x: m.numpy.split(m.numpy.ones(4), x))(2)),
    ("Passing an array as a dtype argument is no longer supported; instead of", lambda m: m.jit(lambda x: m.numpy.ones(3, dtype=x))(2)),
    ("Encountered an unexpected tracer", lambda m: m.numpy.sin(leak(m))),
    ("Encountered an unexpected tracer", lambda m: leak_mapped(m) + 1.0),
    ("JAX only supports number, bool, and string dtypes, got dtype <class", lambda m: m.numpy.arange(3).astype(str)),
    ("broadcast_in_dim shape must have every element be nonnegative, got (3,", lambda m: m.numpy.ones(3).repeat(-1)),
    ("Using a non-tuple sequence for multidimensional indexing is not allowed;", lambda m: m.numpy.arange(3)[[0, 1]]),
    ("expected function with aux output to return a two-element tuple, but got", lambda m: m.grad(lambda x: x, has_aux=True)(1.0)),
    ("expected function with aux output to return a two-element tuple, but got", lambda m: m.linearize(lambda x: x, 1.0, has_aux=True)),
    ("Error interpreting argument to cumsum as a JAX value", lambda m: m.lax.cumsum([1, 2])),
    ("lax.add requires arguments to have the same dtypes, got float32, int32.", lambda m: m.lax.add(X, INTS)),
    ("Error interpreting argument to add as a JAX value", lambda m: m.lax.add(X, "a")),
    ("Error interpreting argument to add as a JAX value", lambda m: m.lax.add(X, [1, 2, 3])),
    ("lax.add requires arguments to have the same dtypes, got float32,", lambda m: m.lax.add(1.0, 1j)),
    ("Error interpreting argument to neg as a JAX value", lambda m: m.lax.neg("a")),
    ("Error interpreting argument to pure_callback as a JAX value", lambda m: m.pure_callback(len, X, "a")),
    ("Error interpreting argument to io_callback as a JAX value", lambda m: m.experimental.io_callback(len, X, X, "a")),
    ("lax.max requires arguments to have the same dtypes, got float32, int32.", lambda m: m.lax.max(X, INTS)),
    ("lax.select requires arguments to have the same dtypes, got float32,", lambda m: m.lax.select_n(X > 0, X, INTS)),
    ("Attempting to convert array of shape () from int8 of size 8 bits to int32", lambda m: m.lax.bitcast_convert_type(np.ones((), np.int8), np.int32)),
    ("transpose permutation isn't a permutation of operand dimensions, got", lambda m: m.lax.transpose(Y, (0, 2))),
    ("transpose permutation isn't a permutation of operand dimensions, got", lambda m: m.lax.transpose(Y, (0,))),
    ("broadcast_in_dim operand dimension sizes must either be 1, or be equal to", lambda m: m.lax.broadcast_in_dim(X, (2, 2), (0,))),
    ("broadcast_in_dim broadcast_dimensions must have length equal to operand", lambda m: m.lax.broadcast_in_dim(X, (3, 2), (0, 1))),
    ("broadcast_in_dim broadcast_dimensions must be a subset of output", lambda m: m.lax.broadcast_in_dim(X, (3, 2), (2,))),
    ("broadcast_in_dim broadcast_dimensions must have every element be", lambda m: m.lax.broadcast_in_dim(X, (3, 2), (-1,))),
    ("broadcast_in_dim target broadcast shape must have equal or higher rank to", lambda m: m.lax.broadcast_in_dim(X, (), (0,))),
    ("repeated axis in lax.expand_dims: (0, 0)", lambda m: m.lax.expand_dims(X, (0, 0))),
    ("concatenate requires a non-empty sequences of arrays", lambda m: m.lax.concatenate([], 0)),
    ("lax.concatenate requires arguments to have the same dtypes, got float32,", lambda m: m.lax.concatenate([X, INTS], 0)),
    ("Error interpreting argument to concatenate as a JAX value", lambda m: m.lax.concatenate([X, "a"], 0)),
    ("rev dimensions must all be less than operand ndim", lambda m: m.lax.rev(X, (1,))),
    ("rev dimensions must have every element be nonnegative", lambda m: m.lax.rev(X, (-1,))),
    ("must be less than or equal to operand shape", lambda m: m.lax.slice(X, (0,), (5,))),
    ("slice strides must have every element be", lambda m: m.lax.slice(X, (0,), (3,), (-1,))),
    ("slice strides must have length equal to the number of dimensions of the", lambda m: m.lax.slice(X, (0,), (3,), (1, 1))),
    ("slice limit_indices must be less than or equal to operand shape, got", lambda m: m.lax.slice_in_dim(X, 0, 7)),
    ("slice slice_sizes must be less than or equal to operand shape, got", lambda m: m.lax.dynamic_slice(X, (0,), (5,))),
    ("Length of slice indices must match number of operand dimensions (2 vs", lambda m: m.lax.dynamic_slice(X, (0, 0), (1, 1))),
    ("start_indices arguments to dynamic_slice must be scalars", lambda m: m.lax.dynamic_slice(X, (INTS,), (1,))),
    ("slice slice_sizes must be greater than or equal to zero, got slice_sizes", lambda m: m.lax.dynamic_slice(X, (0,), (-1,))),
    ("Slice indices must be a 1D sequence, got (1, 1)", lambda m: m.lax.dynamic_slice(X, np.zeros((1, 1), int), (1,))),
    ("reps length must be equal to the ndim of x, got len(reps)=2 and x.ndim=1.", lambda m: m.lax.tile(X, (2, 2))),
    ("duplicate value in 'axes' of reduction: (0, 0)", lambda m: m.lax.reduce(X, 0.0, m.lax.add, (0, 0))),
    ("reduce found non-scalar initial value: [(3,)]", lambda m: m.lax.reduce(X, X, m.lax.add, (0,))),
    ("argmin and argmax require non-empty reduced dimension. operand.shape=(0,)", lambda m: m.lax.argmax(np.zeros((0,), np.float32), 0, np.int32)),
    ("reduce_window expected init_values to be scalars but init_values have", lambda m: m.lax.reduce_window(X, X, m.lax.add, (2,), (1,), "VALID")),
    ("conv_general_dilated window and window_strides must have the same number", lambda m: m.lax.conv(IMG, KER, (1,), "SAME")),
    ("conv_general_dilated lhs feature dimension size divided by", lambda m: m.lax.conv(IMG, KER[:, :1], (1, 1), "SAME")),
    ("convolution requires lhs and rhs ndim to be equal, got 4 and", lambda m: m.lax.conv(IMG, KER[0], (1, 1), "SAME")),
    ("lax.conv_general_dilated requires arguments to have the same dtypes, got", lambda m: m.lax.conv(IMG, KER.astype(np.int32), (1, 1), "SAME")),
    ("Wrong number of explicit pads for convolution: expected 2, got", lambda m: m.lax.conv_general_dilated(IMG, KER, (1, 1), ((0, 0),))),
    ("padding argument to conv_general_dilated should be a string or a sequence", lambda m: m.lax.conv_general_dilated(IMG, KER, (1, 1), 3)),
    ("conv_general_dilated feature_group_count must divide lhs feature", lambda m: m.lax.conv_general_dilated(IMG, KER, (1, 1), "SAME", feature_group_count=3)),
    ("conv_general_dilated batch_group_count must divide lhs batch dimension", lambda m: m.lax.conv_general_dilated(IMG, KER, (1, 1), "SAME", batch_group_count=2)),
    ("convolution dimension_numbers list/tuple must be length 3", lambda m: m.lax.conv_general_dilated(IMG, KER, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW"))),
    ("convolution dimension_numbers[0] must have len equal to the ndim of lhs", lambda m: m.lax.conv_general_dilated(IMG, KER, (1, 1), "SAME", dimension_numbers=("NCH", "OIH", "NCH"))),
    ("convolution dimension_numbers[0] cannot have duplicate characters, got", lambda m: m.lax.conv_general_dilated(IMG, KER, (1, 1), "SAME", dimension_numbers=("NCHH", "OIHW", "NCHW"))),
    ("convolution dimension_numbers must be tuple/list or None, got <class", lambda m: m.lax.conv_general_dilated(IMG, KER, (1, 1), "SAME", dimension_numbers="nope")),
    ("Precision argument must be one of", lambda m: m.lax.conv_general_dilated(IMG, KER, (1, 1), "SAME", precision="nope")),
    ("Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got NOPE.", lambda m: m.lax.conv(IMG, KER, (1, 1), "NOPE")),
    ("All dilations must be positive, got (0, 1).", lambda m: m.lax.conv_general_dilated(IMG, KER, (1, 1), "SAME", rhs_dilation=(0, 1))),
    ("At most one of batch_group_count and feature_group_count may be > 1, got batch_group_count=2 and feature_group_count=2", lambda m: m.lax.conv_general_dilated(np.ones((2, 4, 4, 4), np.float32), KER, (1, 1), "SAME", feature_group_count=2, batch_group_count=2)),
    ("add: arrays must have the same number of dimensions, got {1, 2}", lambda m: m.lax.add(Y, X)),
    ("Arguments to batch_matmul must have same ndim, got 4, 2", lambda m: m.lax.batch_matmul(IMG, Y)),
    ("Arguments to batch_matmul must be at least 2D, got 1, 2", lambda m: m.lax.batch_matmul(X, Y)),
    ("Tolerances must be non-negative.", lambda m: m.lax.Tolerance(atol=-1.0)),
    ("At least one of atol, rtol, or ulps must be set", lambda m: m.lax.Tolerance()),
    ("Accuracy nope not supported", lambda m: m.lax.exp(X, accuracy="nope")),
    ("reduce_precision: exponent_bits must be positive; got 0", lambda m: m.lax.reduce_precision(X, 0, 10)),
    ("reduce_precision: mantissa_bits must be non-negative; got -1", lambda m: m.lax.reduce_precision(X, 5, -1)),
    ("dtype must be specified.", lambda m: m.lax.convert_element_type(1.5, None)),
    ("not a valid gufunc signature: nope", lambda m: m.numpy.vectorize(lambda x: x, signature="nope")(X)),
    ("`indices` must not be longer than `shape`: indices=(0, 0, 0), shape=", lambda m: m.new_ref(m.numpy.ones((2, 3)))[0, 0, 0]),
    ("`indices` must not be longer than `shape`: indices=", lambda m: m.jit(lambda x: m.new_ref(x)[0, ..., 0])(X)),
    ("index is out of bounds for axis 0 with size 0", lambda m: m.jit(lambda x, i: x[i])(X[:0], 1)),
    ("index 1 is out of bounds for axis 0 with size 1", lambda m: m.random.categorical(m.random.key(0), X, axis=1)),
    ("Unrecognized padding type: expected", lambda m: m.lax.conv_transpose(IMG, KER, (1, 1), "NOPE")),
    ("jax.lax.dot: dimension_numbers must be specified when not performing", lambda m: m.lax.dot(X, FOUR)),
    ("`preferred_element_type` must not be narrower than the original type, got", lambda m: m.lax.dot(INTS, INTS, preferred_element_type=np.float16)),
    ("dot_general requires lhs dimension numbers to be nonnegative and less", lambda m: m.lax.dot_general(Y, Y, (((2,), (0,)), ((), ())))),
    ("dot_general requires equal numbers of lhs_batch and rhs_batch dimensions,", lambda m: m.lax.dot_general(Y, Y, (((1,), (1,)), ((0,), ())))),
    ("dot_general requires lhs batch dimensions to be disjoint from contracting", lambda m: m.lax.dot_general(Y, Y, (((1,), (1,)), ((1,), (1,))))),
    ("dot_general requires lhs contracting dimensions to be distinct, got", lambda m: m.lax.dot_general(Y, Y, (((1, 1), (1, 1)), ((), ())))),
    ("dot_general requires lhs batch dimensions and rhs batch dimensions to", lambda m: m.lax.dot_general(Y, np.ones((3, 4), np.float32), (((), ()), ((0,), (0,))))),
    ("Arguments to batch_matmul must be at least 2D, got 1, 1", lambda m: m.lax.batch_matmul(X, X)),
    ("Unknown FFT type 'nope'", lambda m: m.lax.fft(X * 1j, "nope", (3,))),
    ("FFT input shape (3,) minor dimensions must be equal to fft_lengths (4,)", lambda m: m.lax.fft(X * 1j, "fft", (4,))),
    ("FFT input shape (3,) must have at least as many input dimensions as", lambda m: m.lax.fft(X * 1j, "fft", (1, 3))),
    ("only real valued inputs supported for rfft", lambda m: m.lax.fft(X * 1j, "rfft", (3,))),
    ("Cannot concatenate arrays with different numbers of dimensions: got (3,), (2, 3)", lambda m: m.numpy.concatenate([X, Y])),
    ("have no available implicit dtype promotion path", lambda m: m.numpy.concatenate([X, Y.astype("int4")])),
    ("jax.numpy.arange: arguments must be scalars; got stop=[0. 1. 2.]", lambda m: m.numpy.arange(X)),
    ("Passing complex start/stop/step to jnp.arange is no longer supported", lambda m: m.numpy.arange(1j)),
    ("Shapes must be 1D sequences of concrete values of integer type, got", lambda m: m.numpy.eye(2.5)),
    ("The array passed to from_dlpack must have __dlpack__ and __dlpack_device__", lambda m: m.numpy.from_dlpack("a")),
    ("n argument to diag_indices must be nonnegative, got -1", lambda m: m.numpy.diag_indices(-1)),
    ("jax.numpy.block does not allow empty list arguments", lambda m: m.numpy.block([])),
    ("broadcast_in_dim shape must have every element be an integer type, got", lambda m: m.numpy.repeat(X, 1.5)),
    ("rot90 requires its first argument to have ndim at least two, but got", lambda m: m.numpy.rot90(X)),
    ("np.delete(arr, obj): got obj.dtype=float64; must be integer or bool.", lambda m: m.numpy.delete(X, np.array([1.0]))),
    ("jax.numpy.quantile does not support overwrite_input=True or out != None", lambda m: m.numpy.median(X, out=X)),
    ("'float' object cannot be interpreted as an integer", lambda m: m.numpy.round(X, 1.5)),
    ("size and fill_value arguments cannot be used in three-term where", lambda m: m.numpy.where(X > 0, X, X, size=3)),
    ("inconsistent size for core dimension 'm': 4 vs 3", lambda m: m.numpy.matvec(Y, FOUR)),
    ("Spacing arrays must have the same length as the dimension along which the", lambda m: m.numpy.gradient(X, FOUR)),
    ("jax.numpy.vectorize can only exclude integer or string arguments, but", lambda m: m.numpy.vectorize(lambda x: x, excluded={1.5})(X)),
    ("left hand array must be at least two dimensional; got a.shape=(3,)", lambda m: m.numpy.linalg.solve(X, X)),
    ("jnp.linalg.cond: for p='nope', array must be square; got arr.shape=(2, 3)", lambda m: m.numpy.linalg.cond(Y, p="nope")),
    ("JAX encountered invalid PRNG key data: expected key_data to have ndim,", lambda m: m.random.key_impl("a")),
    ("unexpected PRNG key type <class 'NoneType'>", lambda m: m.random.normal(None)),
    ("dtype=key<fry> is not a valid dtype for JAX type promotion", lambda m: m.numpy.where(True, m.random.key(0), 1.0)),
    ("`jax.device_put` only accepts `None`, `jax.sharding.Sharding`,", lambda m: m.device_put(X, "nope")),
    ("device_put device specification must be a tree prefix of the", lambda m: m.device_put([X, X], [here(m)])),
    ("axis_types passed to Mesh must be of type `jax.sharding.AxisType`", lambda m: m.make_mesh((1,), ("x",), axis_types=3)),
    ("Specified axis_size 3 doesn't match received axis_size 1", lambda m: m.pmap(lambda x: x, axis_size=3)(np.ones(1))),
    ("repeat requires ndarray or scalar arguments, got <class 'list'> at position 1", lambda m: m.numpy.repeat(X, [1, 2, 3])),
    ("Mesh axis names cannot be None", lambda m: m.sharding.Mesh(m.devices(), (None,))),
    ("Expected mesh of type `jax.sharding.Mesh`", lambda m: m.set_mesh(3)),
    ("sharding should be an instance of `jax.sharding`", lambda m: m.make_array_from_callback((3,), 3, lambda i: X)),
    ("Expected shard shape (3,) doesn't match the single device array shape", lambda m: m.make_array_from_callback((3,), here(m), lambda i: FOUR)),
    ("jax.make_array_from_single_device_arrays `arrays` argument must be a list", lambda m: m.make_array_from_single_device_arrays((3,), here(m), m.numpy.ones(3))),
    ("pmap out_axes must be an int, None, or (nested) container with those", lambda m: m.pmap(lambda x: x, out_axes="a")(np.ones(2))),
    ("new enum value must be in ['allow', 'warn', 'raise'], got nope of type", lambda m: m.config.update("jax_numpy_rank_promotion", "nope")),
    ("'nope' is not a valid NumpyDtypePromotion", lambda m: m.config.update("jax_numpy_dtype_promotion", "nope")),
    ("'nope' is not a valid LegacyPrngKeyState", lambda m: m.legacy_prng_key("nope").__enter__()),
    ("Positional argument indices, e.g. for `static_argnums`, must have value greater than or equal", lambda m: m.fwd_and_bwd(lambda x: x, argnums=5)[0](1.0)),
    ("convolution dimension_numbers elements must each have the same set of spatial characters, got", lambda m: m.lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), ("NCH", "OIH", "NCQ"))),
    ("Evaluation rule for 'unknown' not implemented", lambda m: importlib.import_module(f"{m.__name__}.extend.core").Primitive("unknown").bind(1.0)),
    ("Abstract evaluation for 'unknown' not implemented", lambda m: m.make_jaxpr(importlib.import_module(f"{m.__name__}.extend.core").Primitive("unknown").bind)(1.0)),
    ("have no available implicit dtype promotion path when", strictly),
    ("Input dtypes ('float8_e4m3fn', 'float8_e5m2') have no available implicit", lambda m: m.numpy.promote_types(m.numpy.float8_e4m3fn, m.numpy.float8_e5m2)),
    ("s must have at most x.ndim (2) elements, got 3", lambda m: m.scipy.fft.dctn(Y, s=(1, 2, 3))),
    ("All elements of result_shape_dtypes must have 'shape' and 'dtype'", lambda m: m.ffi.ffi_call("nope", "a")),
]  # fmt: skip

table({
    "clip without an array": (["No input was provided to the clip function"], lambda m: m.numpy.clip(None, 0, 1)),
    "an axis moved twice": (["duplicate value in 'axis'"], lambda m: m.numpy.moveaxis(Y, (0, 0), (1, 0))),
    "several axes of vecdot": (["integer"], lambda m: m.numpy.vecdot(Y, Y, axis=(0, 1))),
    "a scalar to join": (["hstack", "sequence"], lambda m: m.numpy.hstack(1.0)),
    "a triangle of negative size": (["(-1, -1)", "nonnegative"], lambda m: m.numpy.tril_indices(-1)),
    "a triangle of negative width": (["nonnegative", "(3, -1)"], lambda m: m.numpy.triu_indices(3, m=-1)),
    "tri of negative size": (["nonnegative"], lambda m: m.numpy.tri(3, -2)),
    "histogram2d of two lengths": (["one length", "(3,)", "(4,)"], lambda m: m.numpy.histogram2d(X, FOUR)),
    "histogram2d of matrices": (["vectors", "(2, 3)"], lambda m: m.numpy.histogram2d(Y, Y)),
    "histogram2d of scalars": (["vectors"], lambda m: m.numpy.histogram2d(1.0, 1.0)),
    "histogram2d with a word": (["bins='a'"], lambda m: m.numpy.histogram2d(X, X, bins="a")),
    "half a bin": (["float"], lambda m: m.numpy.histogram(X, bins=1.5)),
    "half a bin of some dimensions": (["float"], lambda m: m.numpy.histogramdd(Y, bins=[2, 1.5, 2])),
    "a range of one": (["`range` must be either None or a sequence"], lambda m: m.numpy.histogram(X, range=1)),
    "the same axis twice": (["axis1 and axis2", "same"], lambda m: m.numpy.diagonal(Y, axis1=0, axis2=-2)),
    "the same axis of trace": (["axis1 and axis2", "same"], lambda m: m.numpy.trace(Y, axis1=0, axis2=0)),
    "half a diagonal": (["k must be a scalar integer", "1.5"], lambda m: m.numpy.trace(Y, offset=1.5)),
    "half an argument": (["nin and nout must be integers", "1.5"], lambda m: m.numpy.frompyfunc(m.numpy.add, 1.5, 1)),
    "float places of reduceat": (["indices must have an integer type", "float32"], lambda m: m.numpy.add.reduceat(X, X)),
    "float indices to ravel": (["is not an integer type", "float32"], lambda m: m.numpy.ravel_multi_index((X, INTS), (2, 3))),
    "a shape of shapes": (["scalar or 1D sequence"], lambda m: m.numpy.unravel_index(5, ((2, 3),))),
    "zeros of a traced array": (["trim_zeros", "traced"], lambda m: m.jit(m.numpy.trim_zeros)(X)),
    "zeros of an axis that is not": (["axis 3", "out of bounds"], lambda m: m.numpy.trim_zeros(Y, axis=3)),
    "complex polygamma": (["polygamma does not support complex"], lambda m: m.scipy.special.polygamma(1, 1j)),
    "complex entr": (["entr does not support complex"], lambda m: m.scipy.special.entr(1j)),
    "complex rel_entr": (["rel_entr does not support complex"], lambda m: m.scipy.special.rel_entr(1j, 1.0)),
    "complex poch": (["poch does not support complex"], lambda m: m.scipy.special.poch(1j, 1.0)),
    "complex gammainc": (["igamma does not accept dtype complex64"], lambda m: m.scipy.special.gammainc(1j, 1.0)),
    "hyp1f1 of two shapes": (["shapes=[(), (2,), (3,)]"], lambda m: m.scipy.special.hyp1f1(1.0, np.ones(2), np.ones(3))),
    "values put along an axis": (["'values' must be broadcastable to 'indices'"], lambda m: m.numpy.put_along_axis(X, INTS[:1], Y[0, :2], 0, inplace=False)),
    "more values put along an axis": (["'values' must be broadcastable to 'indices'"], lambda m: m.numpy.put_along_axis(Y, INTS[None, :1], Y[:1], 0, inplace=False)),
    "shifts in two dimensions": (["scalars or 1D arrays", "(1, 1)"], lambda m: m.numpy.roll(X, [[1]])),
    "no shift": (["scalars or 1D arrays"], lambda m: m.numpy.roll(X, None)),
    "a bucket of negative size": (["bucket_size", "-1"], lambda m: m.ops.segment_sum(X, INTS, bucket_size=-1)),
    "a function of scatter_apply": (["Invalid return type from reduction function"], lambda m: applied(m, lambda x: (x, x))),
    "no result of scatter_apply": (["Invalid return type from reduction function"], lambda m: applied(m, lambda x: None)),
    "two dtypes of random_gamma_grad": (["same dtypes", "float16"], lambda m: m.lax.random_gamma_grad(m.numpy.ones(3), m.numpy.ones(3, "float16"))),
    "two shapes of random_gamma_grad": (["Incompatible shapes for broadcasting: shapes=[(3,), (4,)]"], lambda m: m.lax.random_gamma_grad(m.numpy.ones(3), m.numpy.ones(4))),
})  # fmt: skip
for name in ("logaddexp", "logaddexp2", "floor_divide", "divmod", "copysign", "heaviside", "ldexp"):
    wrong(f"shapes of {name}", "(2,)", "(3,)")(
        lambda m, name=name: getattr(m.numpy, name)(np.ones(2, int), np.ones(3, int))
    )


def raised(m, call):
    try:
        call(m)
    except Exception as error:
        return error
    return None


if jax.__version_info__ >= (0, 11):  # which raises another error, or none
    del CALLS["constraint without devices"]
    del CALLS["split past the end"]


def test_there_are_enough():
    assert len(CALLS) >= 100, len(CALLS)


@pytest.mark.parametrize("label", CALLS)
def test_wrong_call(label):
    call, words = CALLS[label]
    theirs, ours = raised(jax, call), raised(minijax, call)
    assert theirs is not None, "upstream accepts this call"
    assert ours is not None, f"accepted, and upstream raises {type(theirs).__name__}: {theirs}"
    names = [kind.__name__ for kind in type(ours).__mro__]
    assert type(theirs).__name__ in names, f"{type(ours).__name__}: {ours} is not {type(theirs)}"
    text = str(ours)
    assert words, f"the row says nothing of the message: {text}"
    for word in words:
        assert re.search(re.escape(word), text, re.IGNORECASE), f"{word!r} is not in: {text}"


@pytest.mark.parametrize(("words", "call"), SAME_WORDS, ids=[words for words, _ in SAME_WORDS])
def test_upstreams_words(words, call):
    theirs, ours = raised(jax, call), raised(minijax, call)
    assert ours is not None, "accepted"
    if jax.__version_info__ < (0, 11):  # newer ones word some of these otherwise
        assert words in str(theirs).replace("\n", " "), f"upstream says: {theirs}"
        names = [kind.__name__ for kind in type(ours).__mro__]
        assert type(theirs).__name__ in names, f"{ours!r} is not {type(theirs)}"
    assert words in str(ours).replace("minijax", "jax"), f"{words!r} is not in: {ours}"


# In a process of its own: what is left of the stack depends on what the process did before.
DEEP = """
import minijax

def nested(function, times):
    for _ in range(times):
        function = (lambda inner: lambda x: minijax.lax.cond(x > 0, inner, lambda y: y, x))(function)
    return function

def lists(depth):
    found = [1.0]
    for _ in range(depth):
        found = [found]
    return found

def depth(n=0):
    try:
        return depth(n + 1)
    except RecursionError:
        return n

CASES = {
    "functions": lambda: nested(lambda x: x, 400)(1.0),
    "gradient": lambda: minijax.grad(nested(lambda x: x, 400))(1.0),
    "argument": lambda: minijax.jit(lambda x: 1.0)(lists(5000)),
    "mapped": lambda: minijax.vmap(lambda x: x)(lists(5000)),
    "result": lambda: minijax.jit(lambda: lists(5000))(),
    "array": lambda: minijax.numpy.array(lists(5000)),
}
before = depth()
for name, call in CASES.items():
    try:
        call()
    except RecursionError as error:
        assert "maximum recursion depth exceeded" in str(error), error
        assert name == "array" or "are nested too deeply" in str(error), error
    else:
        raise AssertionError(f"{name} is taken")
    assert depth() == before, (name, before, depth())
    assert minijax.jit(nested(lambda x: x + 1, 20))(1.0) == 2
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="limits of containers differ")
def test_what_is_nested_too_deeply_is_refused_and_the_session_works_on():
    done = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
