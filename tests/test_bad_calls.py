"""Calls with wrong arguments: sizes that cannot be, and a part of the sweep of `tests.bad_calls`."""

import operator
from importlib.metadata import version

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from tests.bad_calls import expected
from tests.bad_calls.judging import judge
from tests.bad_calls.running import outcomes

HUGE = {
    "zeros": lambda: jnp.zeros(2**62),
    "no dimension of XLA": lambda: jnp.zeros(2**63),
    "two sizes": lambda: jnp.ones((2**31, 2**31)),
    "empty, with large sizes": lambda: jnp.zeros((2**62, 2**62, 0)),
    "arange": lambda: jnp.arange(2**62),
    "tile": lambda: jnp.tile(jnp.ones(3), 2**60),
    "pad": lambda: jnp.pad(jnp.ones(3), 2**62),
    "random": lambda: jax.random.normal(jax.random.key(0), (2**62,)),
    "stacked by scan": lambda: lax.scan(lambda c, x: (c, c), jnp.zeros(4), None, length=2**60),
    "within": lambda: jax.jit(lambda x: jnp.sort(x + jnp.zeros(2**62))[:3])(1.0),
    "folded, complex": lambda: jax.jit(lambda x: jnp.zeros(2**61, "complex64")[:3] + x)(1.0),
    "of a function": lambda: jax.jit(lambda: jax.jit(lambda: jnp.zeros(2**62))()[:3])(),
    "carried": lambda: jax.jit(
        lambda x: lax.fori_loop(0, 2, lambda i, c: c + 1, jnp.zeros(2**62))[:3]
    )(1.0),
    "of a branch": lambda: jax.jit(
        lambda x: lax.cond(x > 0, lambda: jnp.zeros(2**62), lambda: jnp.ones(2**62))[:3]
    )(1.0),
    "compiled before": lambda: jax.jit(lambda: jnp.zeros(2**62)).lower().compile(),
}


@pytest.mark.parametrize("name", HUGE)
def test_an_array_that_cannot_be_is_refused_with_its_bytes(name):
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as caught:
        HUGE[name]()
    words = str(caught.value).split()
    wanted = int(words[words.index("allocating") + 1])
    held = int(words[words.index("has") + 1])
    assert wanted >= 2**62 and 2**28 < held < 2**50


def test_more_than_the_memory_is_refused_with_both_numbers():
    with pytest.raises(
        jax.errors.JaxRuntimeError, match=rf"allocating {2**52} bytes: cpu:0 has \d+ bytes"
    ):
        jnp.zeros(2**50)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: jnp.zeros(2**62)[:3] + x,
        lambda x: (jnp.zeros(2**62) * 2 + 1)[:3] + x - 1,
        lambda x: jnp.zeros((2**31, 2**31)).T[0, :3] + x,
        lambda x: (jnp.zeros((2**62, 0)), jnp.ones(3) * x)[1],
        lambda x: (jnp.ones(2**62) + x, jnp.ones(3) * x)[1],
    ],
)
def test_large_arrays_that_are_folded_are_no_error(fun):
    assert np.array_equal(jax.jit(fun)(2.0), [2, 2, 2])


ENDLESS = {
    "rank": lambda: lax.broadcast_to_rank(jnp.ones(3), 2**62),
    "ndmin": lambda: jnp.array(1.0, ndmin=2**62),
    "shape": lambda: jnp.zeros(range(2**62)),
    "shape of a reshape": lambda: jnp.ones(3).reshape(range(2**62)),
    "shape of lax": lambda: lax.broadcasted_iota(int, range(2**62), 0),
    "repetitions": lambda: jnp.tile(jnp.ones(3), range(2**62)),
    "new axes": lambda: jnp.expand_dims(jnp.ones(3), range(2**62)),
    "polyint": lambda: jnp.polyint(jnp.ones(3), 2**62),
    "array_split": lambda: jnp.array_split(jnp.ones(3), 2**62),
    "unstack": lambda: jax.eval_shape(jnp.unstack, jax.ShapeDtypeStruct((2**40,), "float32")),
    "hadamard": lambda: jax.scipy.linalg.hadamard(2**62),
    "hilbert": lambda: jax.scipy.linalg.hilbert(2**62),
    "bernoulli": lambda: jax.scipy.special.bernoulli(2**62),
    "multigammaln": lambda: jax.scipy.special.multigammaln(jnp.ones(3), 2**62),
    "tril_indices": lambda: jnp.tril_indices(2**62),
    "static arguments": lambda: jax.jit(operator.add, static_argnums=range(2**62)),
    "arguments to differentiate": lambda: jax.grad(operator.add, range(2**62)),
    "unrolled": lambda: lax.fori_loop(0, 10**9, operator.add, 0, unroll=True),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_number_of_steps_that_would_not_end_is_refused(name):
    with pytest.raises(ValueError, match="must be at most"):
        ENDLESS[name]()


@pytest.mark.parametrize("name", ["ifft2", "fftn", "rfftn", "irfft2"])
def test_sizes_of_transforms_without_an_end_are_refused(name):
    for given in ({"s": range(2**62)}, {"axes": range(2**62)}):
        with pytest.raises(ValueError, match=r"positive|ax[ie]s|dimensions"):
            getattr(jnp.fft, name)(jnp.ones((2, 3)), **given)


def test_trips_that_their_dtype_does_not_hold_are_refused():
    with pytest.raises(OverflowError, match="too large to convert to int32"):
        lax.fori_loop(0, 2**62, lambda i, x: x, 0.0)


def test_differences_of_a_high_order_are_none():
    assert jnp.diff(jnp.ones((2, 3)), n=2**62).shape == (2, 0)


# -- what sweeps with other seeds found -------------------------------------------------------------

FOUND = """
jax.make_mesh(range(2**62), ('x',))
jax.process_count(backend=jax.devices()[0])
jax.scipy.spatial.transform.Rotation.from_euler(P('x'), F)
jnp.apply_over_axes((lambda *a: 'no'), T, [0, 2])
jnp.ravel_multi_index(range(2**62), (3, 3))
jnp.ravel_multi_index(range(3), (3, 3))
jnp.tile(M, range(2**62))
lax.rng_uniform(0.0, 1.0, -2)
lax.rng_uniform(0.0, 1.0, (-2,))
lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), -2)
lax.dot(MESH, I, precision='abc')
jax.experimental.ode.odeint(lambda y, t: -y, jnp.ones(3, jnp.float16), jnp.linspace(0.0, 1.0, 3))
lax.conv(IMG, bytearray(b'abc'), (1, 1), np.matrix([[1.0, 2.0]]))
lax.conv(IMG, KER, (1, 1), np.matrix([[1.0, 2.0]]))
jax.vmap(lambda SQ: lax.linalg.cholesky_update(SQ, 99))(jnp.stack([SQ, SQ]))
lax.index_take(M, range(2**62), (1,))
jax.vmap(lambda F: lax.linalg.qr(F))(SQ)
jax.vmap(lambda F: lax.linalg.svd(F))(SQ)
jax.vmap(lambda F: lax.linalg.eig(F))(SQ)
jax.vmap(lambda F: lax.linalg.tridiagonal(F))(SQ)
jax.image.scale_and_translate([[]], (4, 6), (0, 1), jnp.ones(2), jnp.zeros(2), 'linear')
jax.random.orthogonal(KEY, 3, 2**32, None)
jax.experimental.jet.jet(jnp.sin, (F,), (range(2**62),))
jax.experimental.jet.jet(jnp.sin, (F,), np.broadcast_to(np.float32(1), (2**20, 2**20)))
jax.experimental.rnn.get_num_params_in_lstm(2, 3, 2**100, False)
jax.experimental.rnn.init_lstm_weight(KEY, 2, 3, np.uint64(2**63), False)
np.asarray(jax.random.orthogonal(KEY, 3, 2**26))
""".strip().splitlines()

# What upstream takes, and a user may mean.
TAKEN = """
jax.make_jaxpr(lambda x: x, static_argnums=(2, 3))
jax.eval_shape(lambda F: jax.pure_callback(lambda x: np.asarray(x), SDS, F, sharding=2), F)
jnp.eye(3, k=True)
jnp.iscomplexobj(np.array(['a']))
jnp.iscomplexobj(np.clongdouble(1))
jnp.iscomplexobj(SDS)
jnp.isrealobj(np.datetime64('2020-01-01'))
jnp.isrealobj(jnp.complex64)
jnp.frompyfunc(lambda x, y: x, np.int8(2), 1)(F, I)
jax.experimental.ode.odeint(lambda y, t: -y, jnp.zeros((0, 3)), jnp.linspace(0.0, 1.0, 3))
jax.export.export(jax.jit(jnp.sin))(AVAL).out_avals
jax.devices('')
jax.local_device_count('')
jax.process_index(backend='')
jax.ops.segment_sum(F, I, 3, out_sharding=SHARDING)
jax.ops.segment_max(F, I, 3, out_sharding=None)
jax.example_libraries.stax.Dense(3, b_init=np.ones(3))
jax.nn.initializers.normal()(KEY, (2, 3), out_sharding=SHARDING).sharding.mesh.axis_names
jax.nn.initializers.he_normal()(KEY, (2, 3), out_sharding=SHARDING).sharding.mesh.axis_names
jax.nn.initializers.zeros(KEY, (2, 3), out_sharding=SHARDING).sharding.mesh.axis_names
jax.nn.initializers.constant(1.0)(KEY, (2, 3), out_sharding=SHARDING).sharding.mesh.axis_names
jax.experimental.sparse.bcoo_multiply_dense(SPARSE, B)
jax.experimental.sparse.bcoo_multiply_dense(SPARSE, I)
jax.experimental.sparse.bcoo_multiply_dense(SPARSE, C)
jax.experimental.sparse.sparsify(jnp.sum)(SPARSE, axis=1).todense()
jax.experimental.sparse.sparsify(lambda x, y: x @ y)(SPARSE, y=F)
""".strip().splitlines()


def test_calls_that_are_right_give_what_upstream_gives():
    ours, theirs = outcomes("minijax", TAKEN), outcomes("jax", TAKEN)
    wrong = [row for row in zip(TAKEN, ours, theirs, strict=True) if row[1] != row[2]]
    assert not wrong and all("ok" in their for their in theirs), "\n".join(map(str, wrong))


NUMBERS = (True, np.True_, 1.0, np.float32(1), np.int8(1), np.array(1))


@pytest.mark.parametrize("name", ["feature_group_count", "batch_group_count"])
def test_numbers_of_groups_of_other_types_count_as_integers(name):
    for number in NUMBERS:
        jax.clear_caches()  # where equal numbers have one program
        found = lax.conv_general_dilated(
            np.ones((1, 2, 5), np.float32), np.ones((3, 2, 1), np.float32), (1,), "SAME",
            **{name: number},
        )  # fmt: skip
        assert np.array_equal(found, np.full((1, 3, 5), 2))


def test_wrong_calls_that_longer_sweeps_found_end_in_errors():
    found = outcomes("minijax", FOUND)
    wrong = [pair for pair in zip(FOUND, found, strict=True) if "ok" in pair[1] or judge(*pair)]
    assert not wrong, "\n".join(map(str, wrong))


# -- a part of the sweep ----------------------------------------------------------------------------

SLICES = 4


@pytest.fixture(scope="module")
def part():
    return expected.read()


@pytest.mark.parametrize("slice_", range(SLICES))
def test_wrong_calls_end_in_errors_of_upstreams_classes(part, slice_):
    made, letters = part
    pairs = [
        (call, letter)
        for valid in list(made)[slice_::SLICES]
        for call, letter in zip(made[valid], letters[valid], strict=True)
    ]
    found = outcomes("minijax", [call for call, _ in pairs])
    wrong = [
        (judge(call, ours) or f"expected {letter}", call, ours)
        for (call, letter), ours in zip(pairs, found, strict=True)
        if judge(call, ours) or expected.unlike(letter, ours)
    ]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.skipif(version("jax") != "0.10.2", reason="signatures differ between versions")
def test_upstreams_outcomes_are_known(part):
    letters = "".join(part[1].values())
    assert letters.count(expected.ANY) < 0.5 * len(letters)
    assert letters.count(expected.DIFFERS) < 0.05 * len(letters)
