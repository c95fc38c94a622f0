"""What outlives the deletion of an array that it was made of, as in upstream."""

import copy
import gc
import importlib
import pickle

import jax as upstream
import numpy as np
import pytest

import minijax as jax

pytestmark = pytest.mark.both_ends


def mesh_of_one(m):
    return m.sharding.NamedSharding(m.make_mesh((1,), ("a",)), m.sharding.PartitionSpec())


def written(m, x, how):
    ref = m.new_ref(m.numpy.zeros_like(x))
    how(m, ref, x)
    return ref


def read_twice(m, x):
    ref = m.new_ref(x)
    first, second = ref[...], ref[...]
    first.delete()
    return [second, ref]


MADE = {
    "np.from_dlpack": lambda m, x: np.from_dlpack(x),
    "capsule": lambda m, x: [x.__dlpack__(), m.numpy.ones(3)],
    "jnp.from_dlpack": lambda m, x: m.numpy.from_dlpack(x),
    "jnp.from_dlpack, no copy": lambda m, x: m.numpy.from_dlpack(x, copy=False),
    "np.asarray": lambda m, x: np.asarray(x),
    "device_get": lambda m, x: m.device_get(x),
    "array": lambda m, x: m.numpy.array(x),
    "copy": lambda m, x: [copy.copy(x), copy.deepcopy(x), x.copy(), pickle.loads(pickle.dumps(x))],
    "new_ref": lambda m, x: m.new_ref(x),
    "new_ref, read": lambda m, x: m.new_ref(x)[...],
    "read_twice": read_twice,
    "ref, written": lambda m, x: written(m, x, lambda m, ref, x: ref.__setitem__(..., x)),
    "ref, swapped": lambda m, x: written(m, x, lambda m, ref, x: m.ref.swap(ref, ..., x)),
    "freeze": lambda m, x: m.ref.freeze(m.new_ref(x)),
    "jit": lambda m, x: m.jit(lambda x: (x, x))(x),
    "jit, closed over": lambda m, x: m.jit(lambda: x)(),
    "compiled": lambda m, x: m.jit(lambda x: x).lower(x).compile()(x),
    "device_put, may_alias": lambda m, x: m.device_put(x, mesh_of_one(m), may_alias=False),
    "device_put, memory": lambda m, x: m.device_put(x, m.memory.Space.Device),
    "with_sharding_constraint": lambda m, x: m.lax.with_sharding_constraint(x, x.sharding),
    "with_sharding_constraint, mesh": lambda m, x: m.lax.with_sharding_constraint(
        x, mesh_of_one(m)
    ),
    "shard_map": lambda m, x: m.shard_map(
        lambda x: x, mesh=mesh_of_one(m).mesh, in_specs=m.P(), out_specs=m.P()
    )(x),
}


def survivors(m, make, end):
    """The values of what is made of an array, once that is deleted or donated."""
    x = m.numpy.asarray(np.arange(3, dtype=np.float32) + 1, copy=True)
    made = make(m, x)
    end(m, x)
    values = [np.asarray(y[...]) for y in m.tree_util.tree_leaves(made) if hasattr(y, "shape")]
    assert values and all(np.array_equal(v, [1, 2, 3]) or (v == 1).all() for v in values)
    return len(values)


ENDS = {
    "deleted": lambda m, x: x.delete(),
    "donated": lambda m, x: m.jit(lambda x: x * 2, donate_argnums=0)(x).block_until_ready(),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", MADE)
def test_results_outlive_their_argument(name, end):
    ours, theirs = (survivors(m, MADE[name], ENDS[end]) for m in (jax, upstream))
    assert ours == theirs


@pytest.mark.parametrize("m", [upstream, jax], ids=["upstream", "minijax"])
def test_a_program_that_fails_tells_why_though_its_argument_is_donated(m):
    def fail(x):
        raise ValueError("too small")

    f = m.jit(
        lambda x: m.pure_callback(fail, m.ShapeDtypeStruct(x.shape, x.dtype), x), donate_argnums=0
    )
    x = m.numpy.arange(3.0)
    with pytest.raises(m.errors.JaxRuntimeError, match="too small"):
        f(x).block_until_ready()
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]"):
        f(x)


KEPT = {
    "vjp, sin": lambda m, x: m.vjp(m.numpy.sin, x)[1],
    "vjp, square": lambda m, x: m.vjp(lambda x: x * x, x)[1],
    "vjp, linear": lambda m, x: m.vjp(lambda x: x * 2.0, x)[1],
    "vjp, two": lambda m, x: m.vjp(lambda x, y: (x * 2.0, m.numpy.sin(y)), x, x + 1)[1],
    "vjp, pytree": lambda m, x: m.vjp(lambda d: m.numpy.sin(d["a"]) + d["b"], {"a": x, "b": x})[1],
    "linearize": lambda m, x: m.linearize(m.numpy.sin, x)[1],
    "ref": lambda m, x: m.new_ref(x),
    "jit": lambda m, x: m.jit(lambda x: x + 1)(x),
    "cycle": lambda m, x: m.jit(lambda y: y + x)(1.0) is None,
    "scan": lambda m, x: m.lax.scan(lambda c, _: (c + x, None), x, None, length=2)[0] is None,
}


@pytest.mark.parametrize("name", KEPT)
def test_live_arrays_that_a_result_keeps(name):
    def kept(m):
        """Count the arrays that a result keeps, and those that are left when it is gone."""
        count = lambda: sum(a.shape == (1009,) for a in m.live_arrays())
        gc.collect()
        before = count()
        result = KEPT[name](m, m.numpy.arange(1009.0))
        gc.collect()
        counts = [count() - before]
        del result
        gc.collect()
        return [*counts, count() - before]

    assert kept(jax) == kept(upstream)


DTYPES = ["float32", "bool", "complex64", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("dtype", [*DTYPES, "float8_e8m0fnu", "float4_e2m1fn", "uint2"])
def test_numpy_keeps_what_it_reads(dtype, end):
    size = 1 << 17
    x = jax.numpy.ones(size, dtype)
    value = np.asarray(x)
    assert not value.flags.writeable
    if end == "deleted":
        x.delete()
    else:
        jax.jit(lambda x: jax.numpy.zeros_like(x), donate_argnums=0, keep_unused=True)(x)
    others = [jax.numpy.zeros(size, dtype).block_until_ready() for _ in range(8)]
    assert (value == np.ones((), value.dtype)).all() and len(others) == 8


# Calls that change nothing: some give the array itself, others an array with memory of its own.
UNCHANGED = [
    "lax.expand_dims(x, ())", "lax.broadcast_in_dim(x, x.shape, tuple(range(x.ndim)))",
    "lax.broadcast(x, ())", "lax.reshape(x, x.shape)", "lax.squeeze(x, ())",
    "lax.transpose(x, tuple(range(x.ndim)))", "lax.slice(x, (0,) * x.ndim, x.shape)",
    "lax.convert_element_type(x, x.dtype)", "lax.bitcast_convert_type(x, x.dtype)",
    "jnp.reshape(x, x.shape)", "jnp.reshape(x, x.shape, order='F')", "x.reshape(x.shape)",
    "x.reshape(-1)", "x.ravel()", "x.flatten()", "jnp.squeeze(x)", "jnp.transpose(x)", "x.T",
    "jnp.permute_dims(x, tuple(range(x.ndim)))", "jnp.swapaxes(x, 0, 0)", "jnp.moveaxis(x, 0, 0)",
    "jnp.broadcast_to(x, x.shape)", "jnp.broadcast_arrays(x, x)[1]", "jnp.atleast_1d(x)",
    "jnp.concatenate([x])", "jnp.concat([x])", "jnp.hstack([x])", "jnp.split(x, 1)[0]",
    "jnp.tile(x, 1)", "jnp.roll(x, 0)", "jnp.pad(x, 0)", "jnp.block(x)", "jnp.ix_(x)[0]",
    "jnp.meshgrid(x)[0]", "jnp.vectorize(lambda x: x)(x)",
    "jnp.vectorize(lambda x: x, signature='(n)->(n)')(x)", "jnp.apply_along_axis(lambda x: x, 0, x)",
    "x.view()", "x.view(x.dtype)", "x.astype(x.dtype)", "x[...]", "x[()]", "jnp.positive(x)",
    "jnp.real(x)", "jnp.conj(x)", "jnp.clip(x)", "jnp.sum(x, axis=())", "jnp.einsum('...->...', x)",
    "jnp.asarray(x)", "jnp.array(x)", "jnp.frombuffer(x, dtype=np.float32)", "jax.jit(lambda x: x)(x)",
    "jax.device_put(x)", "lax.stop_gradient(x)", "lax.optimization_barrier(x)",
]  # fmt: skip


def _outcome(m, call, shape):
    names = {"jax": m, "jnp": m.numpy, "lax": m.lax, "np": np}
    x = m.numpy.ones(shape) + 1
    try:
        out = eval(call, {**names, "x": x})
    except Exception as error:
        return [base.__name__ for base in type(error).__mro__]
    if out is x:
        return "the array itself"
    x.delete()
    return out.is_deleted()


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
def test_calls_that_change_nothing(shape):
    for call in UNCHANGED:
        ours, theirs = _outcome(jax, call, shape), _outcome(upstream, call, shape)
        assert ours == theirs or (type(ours) is type(theirs) is list and theirs[0] in ours), call


def test_keys_and_sums_that_change_nothing():
    for m in (jax, upstream):
        words = m.random.PRNGKey(0)
        assert m.random.key_data(words) is words
        sparse = importlib.import_module(f"{m.__name__}.experimental.sparse")
        matrix = sparse.BCOO.fromdense(m.numpy.ones(3))
        assert matrix.sum(()).data is not matrix.data


def test_attributes_that_users_set():
    for m in (jax, upstream):
        for x in (m.numpy.ones(3), m.random.key(0)):
            x.note = "mine"
            assert x.note == "mine" and not hasattr(x + 0 if x.ndim else x.copy(), "note")
            del x.note
            for name in ("note", "shape"):
                with pytest.raises(AttributeError):
                    delattr(x, name)
            with pytest.raises(AttributeError):
                x.shape = (1, 3)
        for transform in (m.jit, m.vmap):
            with pytest.raises(AttributeError):
                transform(lambda x: setattr(x, "note", "mine"))(m.numpy.ones(3))
