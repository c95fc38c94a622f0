"""Pallas kernels in interpret mode, against upstream: values, under transforms, and wrong calls."""

from types import ModuleType

import jax
import numpy as np
import pytest

import minijax
from tests.cases.pallas_cases import (
    KERNELS,
    OTHERS,
    M,
    N,
    X,
    halves,
    out,
    pallas,
    rows,
    tpu,
    triton,
)
from tests.harness.differential import assert_same, x64
from tests.harness.rules import arrays, in_both, outcome

pytestmark = pytest.mark.both_ends

sine = KERNELS["sin"]

# -- kernels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    make = KERNELS[name]
    in_both(lambda m: make(m, pallas(m))(m.numpy.asarray(X)))
    in_both(lambda m: m.jit(make(m, pallas(m)))(m.numpy.asarray(X)))
    in_both(lambda m: m.vmap(make(m, pallas(m)), in_axes=1)(m.numpy.stack([X, X + 1], 1)))


# Upstream's own rule fails where blocks are read before they are written, and for inner kernels.
@pytest.mark.parametrize("name", sorted(set(KERNELS) - {"loops", "pl_loop", "branches", "twice"}))
def test_kernels_forward(name):
    make = KERNELS[name]

    def run(m):
        return m.jvp(make(m, pallas(m)), (m.numpy.asarray(X),), (m.numpy.cos(X),))

    in_both(run)
    in_both(lambda m: m.jit(lambda: run(m))())


def test_twice_mapped_and_twice_differentiated():
    def mapped(m):
        f = sine(m, pallas(m))
        return m.vmap(m.vmap(f), in_axes=1)(m.numpy.stack([X] * 6).reshape(2, 3, 8))

    def differentiated(m):
        f = sine(m, pallas(m))
        x = m.numpy.asarray(X)
        one = lambda x: m.jvp(f, (x,), (x,))[1]
        return m.jvp(one, (x,), (x,)), m.vmap(one)(m.numpy.stack([x, x]))

    in_both(mapped)
    in_both(differentiated)


# Later releases have other memory spaces, and show an input what was written to its output.
NEWER = jax.__version_info__ >= (0, 11)
CHANGED = ("alias_partial", "scratch")
newer = pytest.mark.skipif(NEWER, reason="later releases have other names")


@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    if NEWER and name in CHANGED:
        return
    in_both(lambda m: OTHERS[name](m, pallas(m)))


@pytest.mark.parametrize("name", ["grid", "matmul", "edges", "loops", "unsized_grid", "element"])
def test_with_64_bits(name):
    make = OTHERS.get(name) or (lambda m, pl: KERNELS[name](m, pl)(X))
    with x64(True):
        in_both(lambda m: make(m, pallas(m)))


DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_written(dtype):
    def run(m):
        pl, kind = pallas(m), getattr(m.numpy, dtype)
        copy = lambda x, o: o.__setitem__(..., x[...])
        specs = {"in_specs": [rows(pl, 2)], "out_specs": pl.BlockSpec((2,), lambda i: 2 * i)}
        f = pl.pallas_call(copy, out(m, 9, dtype=kind), grid=(2,), interpret=True, **specs)
        return f(m.numpy.ones(3, kind)).astype(np.float64)

    with x64(True):
        in_both(run)


@pytest.mark.parametrize("dtype", ["int2", "int4", "uint4", "float4_e2m1fn"])
def test_what_is_not_written_in_less_than_a_byte(dtype):
    """Not in a loop: the compiler of this jaxlib dies of upstream's."""

    def run(m):
        kind = out(m, 3, dtype=getattr(m.numpy, dtype))
        found = pallas(m).pallas_call(lambda o: None, kind, interpret=True)()
        return found.dtype.name, [float(x) for x in np.asarray(found)]

    assert repr(run(minijax)) == repr(run(jax))


# -- references -----------------------------------------------------------------------------------


def _iota(m, n):
    return m.lax.broadcasted_iota(np.int32, (n,), 0)


READS = {
    "int": lambda m, pl, r: r[1],
    "negative": lambda m, pl, r: r[-1],
    "computed": lambda m, pl, r: r[_iota(m, 4)[1]],
    "computed beyond": lambda m, pl, r: r[_iota(m, 4)[1] + 8],
    "computed below": lambda m, pl, r: r[_iota(m, 4)[1] - 2],
    "beyond": lambda m, pl, r: r[7],
    "below": lambda m, pl, r: r[-7, 9],
    "slice": lambda m, pl, r: r[1:3],
    "slices": lambda m, pl, r: r[1:, ::2],
    "slice beyond": lambda m, pl, r: r[2:9],
    "dots": lambda m, pl, r: r[..., 1],
    "window": lambda m, pl, r: r[pl.ds(1, 2)],
    "windows": lambda m, pl, r: r[pl.ds(1, 2), pl.ds(0, 3, 2)],
    "computed window": lambda m, pl, r: r[pl.ds(_iota(m, 4)[1], 2)],
    "computed window beyond": lambda m, pl, r: r[pl.ds(_iota(m, 4)[3], 2), pl.ds(1, 2)],
    "computed window below": lambda m, pl, r: r[pl.ds(_iota(m, 4)[1] - 2, 2)],
    "computed window, stride": lambda m, pl, r: r[pl.ds(_iota(m, 4)[1], 2, 2)],
    "window and int": lambda m, pl, r: r[pl.ds(_iota(m, 4)[1], 2), _iota(m, 4)[3]],
    "array": lambda m, pl, r: r[_iota(m, 3)],
    "array beyond": lambda m, pl, r: r[_iota(m, 3) * 2 - 1],
    "arrays": lambda m, pl, r: r[_iota(m, 2)[:, None], _iota(m, 3)],
    "array and slice": lambda m, pl, r: r[1:, _iota(m, 2)],
    "array and window": lambda m, pl, r: r[_iota(m, 2), pl.ds(1, 3)],
    "window and array": lambda m, pl, r: r[pl.ds(1, 3), _iota(m, 2)],
    "int and array": lambda m, pl, r: r[1, _iota(m, 2)],
    "array and window beyond": lambda m, pl, r: r[_iota(m, 2), pl.ds(_iota(m, 5)[4], 3)],
    "array and window below": lambda m, pl, r: r[_iota(m, 2), pl.ds(_iota(m, 5)[0] - 2, 3)],
    "window beyond and array": lambda m, pl, r: r[pl.ds(_iota(m, 5)[3], 3), _iota(m, 2)],
    "window with gaps beyond": lambda m, pl, r: r[pl.ds(_iota(m, 5)[3], 2, 2)],
    "view": lambda m, pl, r: r.at[1][...],
    "view of a view": lambda m, pl, r: r.at[1:3].at[1][2:4],
    "computed views": lambda m, pl, r: r.at[pl.ds(_iota(m, 2)[1], 3)].at[pl.ds(1, 2)][...],
    "reshaped": lambda m, pl, r: r.reshape(24)[1:3],
    "bits": lambda m, pl, r: r.bitcast(m.numpy.int32)[1],
    "method": lambda m, pl, r: r.get(),
    "view's type": lambda m, pl, r: r[...] * r.at[1:3].shape[0] + r.at[0].ndim + len(r),
}


@pytest.mark.parametrize("name", READS)
def test_reading(name):
    def run(m):
        pl = pallas(m)
        read = lambda r: READS[name](m, pl, r)
        kind = m.eval_shape(lambda x: _evaluated(m, pl, read, x), m.numpy.asarray(M))
        return pl.pallas_call(lambda x, o: o.__setitem__(..., read(x)), kind, interpret=True)(M)

    in_both(run)


def _evaluated(m, pl, read, x):
    return m.jit(lambda x: read(m.new_ref(x)))(x)


WRITES = {
    "int": lambda m, pl, x, o: o.__setitem__(1, x[1]),
    "beyond": lambda m, pl, x, o: o.__setitem__((9, -9), 5.0),
    "element": lambda m, pl, x, o: o.__setitem__((1, 2), 3.0),
    "computed": lambda m, pl, x, o: o.__setitem__(_iota(m, 4)[2], x[1]),
    "computed beyond": lambda m, pl, x, o: o.__setitem__(_iota(m, 4)[2] + 8, x[1]),
    "computed below": lambda m, pl, x, o: o.__setitem__(_iota(m, 4)[1] - 2, x[1]),
    "slice": lambda m, pl, x, o: o.__setitem__(slice(1, 3), x[0:2]),
    "window": lambda m, pl, x, o: o.__setitem__(pl.ds(1, 2), x[2:]),
    "window, stride": lambda m, pl, x, o: o.__setitem__(pl.ds(0, 2, 2), x[2:]),
    "computed window": lambda m, pl, x, o: o.__setitem__(pl.ds(_iota(m, 4)[3], 2), x[2:]),
    "window with gaps beyond": lambda m, pl, x, o: o.__setitem__(
        pl.ds(_iota(m, 4)[2], 2, 2), x[2:]
    ),
    "window beyond and array": lambda m, pl, x, o: o.__setitem__(
        (_iota(m, 2), pl.ds(_iota(m, 5)[4], 3)), x[2:, 1:4]
    ),
    "array": lambda m, pl, x, o: o.__setitem__(_iota(m, 2) * 2, x[2:]),
    "array beyond": lambda m, pl, x, o: o.__setitem__(_iota(m, 3) * 2, x[1:]),
    "slice and array": lambda m, pl, x, o: o.__setitem__((slice(None), _iota(m, 2)), x[:, 2:4]),
    "added": lambda m, pl, x, o: m.ref.addupdate(o, pl.ds(_iota(m, 4)[1], 2), x[2:]),
    "added twice": lambda m, pl, x, o: m.ref.addupdate(o, _iota(m, 4) // 2, x[...]),
    "in place": lambda m, pl, x, o: o.__setitem__(1, o[1] * 2 + x[2]),
    "view": lambda m, pl, x, o: o.at[1].__setitem__(slice(0, 2), x[2, 1:3]),
    "view of a view": lambda m, pl, x, o: o.at[1:3].at[1].__setitem__(2, 5.0),
    "swapped": lambda m, pl, x, o: x.__setitem__(..., o.swap(x[...])),
}


@pytest.mark.parametrize("name", WRITES)
def test_writing(name):
    def run(m):
        pl = pallas(m)

        def kernel(x, o):
            o[...] = x[...] * 0 + 1
            WRITES[name](m, pl, x, o)

        return pl.pallas_call(kernel, out(m, 4, 6), interpret=True)(M)

    in_both(run)


# -- what minijax has and upstream has not --------------------------------------------------------


def test_forward_derivatives_of_all_kinds_of_kernels():
    """Indices of the grid, scratch, aliases, integers, kernels in loops: compared with functions."""
    m, pl = minijax, pallas(minijax)
    x = m.numpy.asarray(X)

    def places(x, n, o, k, s):
        s[...] = x[...] * x[...]
        o[...] = s[...] * pl.program_id(0) + n[...] + o[...] * 2
        k[...] = n[...]

    f = pl.pallas_call(
        places, [out(m, 8), out(m, 8, dtype=np.int32)], grid=(4,), in_specs=[rows(pl, 2)] * 2,
        out_specs=[rows(pl, 2)] * 2, scratch_shapes=[pl.ANY((2,), np.float32)], interpret=True,
        input_output_aliases={0: 0},
    )  # fmt: skip
    step = np.repeat(np.arange(4), 2).astype(np.float32)
    plain = lambda x: (x * x * step + N + x * 2, m.numpy.asarray(N))
    for given in (lambda x: f(x, N), lambda x: m.vmap(f, (0, None))(x[None], N)):
        outs, dots = m.jvp(given, (x,), (x,))
        wanted, slopes = m.jvp(plain, (x,), (x,))
        assert_same(tuple([y.reshape(8) for y in outs]), wanted)
        assert_same(dots[0].reshape(8), slopes[0])
        assert dots[1].dtype == m.dtypes.float0
    for name in ("loops", "pl_loop", "branches", "twice"):
        g = KERNELS[name](m, pl)
        shift = np.float32(1e-2)
        _, slope = m.jvp(g, (x,), (m.numpy.ones(8),))
        nearby = (np.asarray(g(x + shift)) - np.asarray(g(x - shift))) / (2 * shift)
        np.testing.assert_allclose(slope, nearby, rtol=2e-2, atol=2e-2)


def test_linearized_and_not_transposed():
    m, pl = minijax, pallas(minijax)
    f = sine(m, pl)
    value, push = m.linearize(f, m.numpy.asarray(X))
    assert_same(value, jax.numpy.sin(X) * 2)
    assert_same(push(m.numpy.ones(8)), jax.numpy.cos(X) * 2)
    assert_same(m.jacfwd(f)(m.numpy.asarray(X)), jax.numpy.diag(jax.numpy.cos(X) * 2))
    in_both(lambda m: m.grad(lambda x: sine(m, pallas(m))(x).sum())(X))


def test_indices_in_inner_functions():
    """`program_id` within a loop, a branch, a jitted function, a map."""
    m, pl = minijax, pallas(minijax)
    place = m.jit(lambda x: x + pl.program_id(0))

    def kernel(x, o):
        m.lax.fori_loop(0, 2, lambda i, _: o.__setitem__(i, place(x[i]) * pl.num_programs(0)), None)
        pl.when(pl.program_id(0) == 1)(lambda: o.__setitem__(1, pl.program_id(0) * 1.0))
        o[...] += m.vmap(lambda v: v * pl.program_id(0))(x[...])

    found = pl.pallas_call(kernel, out(m, 8), **halves(pl))(X)
    step = np.repeat(np.arange(4), 2)
    wanted = (X + step) * 4
    wanted[3] = 1
    assert_same(found, jax.numpy.asarray(wanted + X * step))


def test_sizes_in_functions_that_are_remembered():
    """What one kernel recorded is not found by a kernel over another grid."""
    m, pl = minijax, pallas(minijax)
    times = m.jit(lambda x: x * pl.num_programs(0))
    body = lambda i, c: c * pl.num_programs(0)

    def kernel(x, o):
        o[...] = times(x[...]) + m.lax.fori_loop(0, 2, body, 1.0)

    for size in (2, 4):
        found = pl.pallas_call(kernel, out(m, 8), grid=(size,), interpret=True)(X)
        np.testing.assert_array_equal(found, X * size + size**2)
    with pytest.raises(ValueError, match="out of bounds"):
        pl.pallas_call(kernel, out(m, 8), interpret=True)(X)
    with pytest.raises(AssertionError, match="is for kernels"):
        times(X)


def test_complex_numbers():
    m, pl = minijax, pallas(minijax)
    z = (X + 1j).astype(np.complex64)
    f = pl.pallas_call(
        lambda x, o: o.__setitem__(..., x[...] * 1j), out(m, 8, dtype=np.complex64), **halves(pl)
    )
    np.testing.assert_array_equal(f(z), z * 1j)


# -- functions outside of kernels -----------------------------------------------------------------


def test_numbers():
    def run(m):
        pl = pallas(m)
        n = m.numpy.int32
        return (
            [pl.cdiv(7, 2), pl.cdiv(-7, 2), pl.cdiv(n(7), 2), pl.cdiv(7, n(2)), pl.cdiv(n(-7), 2)],
            [pl.align_to(7, 4), pl.align_to(8, 4), pl.align_to(n(7), 4)],
            [pl.next_power_of_2(k) for k in (0, 1, 2, 3, 5, 8, 9)],
            [pl.strides_from_shape(s) for s in ((), (2,), (2, 3, 4))],
            [pl.broadcast_to(m.numpy.float32(1), (2, 3)), pl.empty((2,), np.int32)],
            [pl.empty_like({"a": m.numpy.asarray(X)}), pl.multiple_of(m.numpy.asarray(N), 4)],
            pl.loop(0, 5, init_carry=0)(lambda i, c: c + i),
        )

    in_both(run)


COSTS = {
    "add": lambda m, x: x + 1,
    "product": lambda m, x: m.numpy.einsum("ij,kj->ik", x, x),
    "power": lambda m, x: x**3 + m.lax.integer_pow(x, 5),
    "sigmoid": lambda m, x: m.nn.sigmoid(x) + m.numpy.exp(x),
    "shares": lambda m, x: m.numpy.exp(x - x.max()) / m.numpy.exp(x).sum(),
    "where": lambda m, x: m.numpy.where(x > 0, x, 0),
    "tree": lambda m, x: {"a": x, "b": m.numpy.sum(x)},
    "jit": lambda m, x: m.jit(m.numpy.sin)(x),
    "loop": lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c + 1, x),
    "bool": lambda m, x: x > 1,
}


@pytest.mark.parametrize("name", COSTS)
def test_costs(name):
    ours, theirs = (
        pallas(m).estimate_cost(lambda x, m=m: COSTS[name](m, x), out(m, 4, 6))
        for m in (minijax, jax)
    )
    assert repr(ours) == repr(theirs) and ours.to_json() == theirs.to_json()


@newer
def test_how_things_are_shown():
    def shown(m):
        pl = pallas(m)
        grid = repr(pl.GridSpec(grid=2).grid), pl.GridSpec(grid=[2]).in_specs
        dims = pl.Element(3), pl.squeezed, pl.Blocked(1), pl.BoundedSlice(2)
        names = [list(kind) for kind in (pl.MemorySpace, pl.RevisitMode, pl.DeviceIdType)]
        printed = m.make_jaxpr(sine(m, pl))(X)
        kept = [line for line in str(printed).split("\n") if "Mapping" in line or "Ref<" in line]
        hints = pl.CostEstimate(1, 2, 3), pl.Buffered(2), pl.ds(0, 2), pl.ds(None), str(pl.ANY)
        blocks = pl.BlockSpec((2, 6), None, pl.Buffered(2)), pl.BlockSpec(memory_space=pl.ANY)
        grids = pl.GridSpec(2, [blocks[0]], blocks[1]), pl.GridSpec((("i", 2), ("j", 3)))
        return repr((grid, dims[1:], str(dims[0]), names, kept, hints, blocks, grids))

    assert shown(minijax) == shown(jax)


def test_printing(capfd):
    def run(m):
        pl = pallas(m)

        def kernel(x, o):
            pl.debug_print("step {} {}", pl.program_id(0), x[0])
            pl.debug_print("plain", x[1])
            o[...] = x[...]

        pl.pallas_call(kernel, out(m, 8), **halves(pl))(X)
        m.effects_barrier()
        return sorted(capfd.readouterr().out.split("\n"))

    assert run(minijax) == run(jax)


def test_programs_as_text():
    assert "stablehlo.add" in pallas(minijax).lower_as_mlir(lambda x: x + 1, out(minijax, 3))


# -- wrong calls ----------------------------------------------------------------------------------


def _copy(x, o):
    o[...] = x[...]


def _call(kernel=_copy, shape=(8,), dtype=np.float32, args=(X,), **options):
    def run(m):
        pl = pallas(m)
        given = {name: f(m, pl) if callable(f) else f for name, f in options.items()}
        f = pl.pallas_call(kernel, out(m, *shape, dtype=dtype), **{"interpret": True, **given})
        return f(*arrays(m, args))

    return run


def _specs(first, last=((2,), lambda i: i)):
    return {
        "grid": (4,),
        "in_specs": lambda m, pl: [pl.BlockSpec(*first)],
        "out_specs": lambda m, pl: pl.BlockSpec(*last),
    }


def _captures(x, o):
    o[...] = x[...] + np.arange(8, dtype=np.float32)


def _to_a_ref(x, o):
    o[...] = x


WRONG = {
    "not interpreted": (_call(interpret=False), "Only interpret mode is supported on CPU"),
    "rank": (_call(**_specs(((2, 2), lambda i: (i, 0)))), "same number of dimensions"),
    "indices": (_call(**_specs(((2,), lambda i: (i, 0)))), "must return 1 values"),
    "index arguments": (_call(**_specs(((2,), lambda i, j: i))), "missing 1 required"),
    "float index": (_call(**_specs(((2,), lambda i: i * 1.0))), "must return integer scalars"),
    "small index": (_call(**_specs(((2,), lambda i: i.astype(np.uint8)))), "integer scalars"),
    "vector index": (_call(**_specs(((2,), lambda i: i[None]))), "must return integer scalars"),
    "constant in index": (
        _call(**_specs(((2,), lambda i: N.astype(np.int32) + i))), "must return integer",
    ),
    "block int": (_call(**_specs((2, lambda i: i))), "not iterable"),
    "two specs": (
        _call(in_specs=lambda m, pl: [pl.BlockSpec()] * 2), "`in_specs` and `inputs` do not match",
    ),
    "one spec": (_call(in_specs=lambda m, pl: pl.BlockSpec()), "must be a tuple or a list"),
    "no spec": (_call(in_specs=lambda m, pl: [None]), "do not match"),
    "text for a spec": (_call(in_specs=["a"]), "memory_space"),
    "two out specs": (
        _call(out_specs=lambda m, pl: [pl.BlockSpec()] * 2), "`out_specs` and `out_shape` do not",
    ),
    "captured": (_call(_captures), "captures constants [f32[8]]"),
    "returns": (_call(lambda x, o: x[...]), "should return None"),
    "few parameters": (_call(lambda x: None), "positional argument"),
    "many parameters": (_call(lambda x, y, o: None), "missing 1 required"),
    "out shape": (_call(shape=(4,)), "Invalid shape for `swap`"),
    "out dtype": (_call(dtype=np.int32), "Invalid dtype for `swap`"),
    "scalar": (_call(lambda x, o: o.__setitem__(..., 1.0)), "Invalid shape for `swap`"),
    "list": (_call(lambda x, o: o.__setitem__(..., [1.0])), "is not a valid JAX type"),
    "reference": (_call(_to_a_ref), "Cannot store a Ref into another Ref"),
    "window beyond": (
        lambda m: _call(lambda x, o: o.__setitem__(..., x[pallas(m).ds(6, 8)]))(m), "Out of bound",
    ),
    "grid float": (_call(grid=(1.0,)), "Grid must be a tuple of integers"),
    "grid text": (_call(grid="a"), "Grid must be a tuple of integers"),
    "no grid": (_call(grid=None), "grid"),
    "grid twice": (
        _call(grid_spec=lambda m, pl: pl.GridSpec((1,)), grid=(1,)), "`grid` must be `()`",
    ),
    "specs twice": (
        _call(grid_spec=lambda m, pl: pl.GridSpec((1,)), in_specs=lambda m, pl: [pl.BlockSpec()]),
        "`in_specs` must be",
    ),
    "alias of no input": (_call(input_output_aliases={1: 0}), "input index 1 outside"),
    "alias to no output": (_call(input_output_aliases={0: -1}), "output index -1 outside"),
    "alias of another type": (
        _call(lambda x, o: None, shape=(4,), input_output_aliases={0: 0}), "different abstract",
    ),
    "axis": (lambda m: _call(lambda x, o: pallas(m).program_id(1), grid=(2,))(m), "out of bounds"),
    "scratch of a type": (
        _call(lambda x, o, s: None, scratch_shapes=lambda m, pl: [out(m, 2)]), "get_ref_aval",
    ),
    "text": (_call(args=("a",)), ""),
    "named argument": (
        lambda m: pallas(m).pallas_call(_copy, out(m, 8), interpret=True)(x=X), "unexpected keyword",
    ),
    "out text": (
        lambda m: pallas(m).pallas_call(_copy, "a", interpret=True)(X), "Invalid out_shape type",
    ),
    "out float": (
        lambda m: pallas(m).pallas_call(_copy, out(m, 8.0), interpret=True)(X), "integer",
    ),
    "bounded slice": (
        lambda m: _call(
            grid=(4,),
            in_specs=lambda m, pl: [
                pl.BlockSpec((pl.BoundedSlice(2),), lambda i: pl.ds(i * 2, 2))
            ],
            out_specs=lambda m, pl: pl.BlockSpec((2,), lambda i: i),
        )(m),
        "Unsupported block dim type",
    ),
    "outside": (lambda m: pallas(m).program_id(0), "is for kernels"),
    "power": (lambda m: pallas(m).next_power_of_2(-1), "non-negative"),
    "broadcast": (lambda m: pallas(m).broadcast_to(m.numpy.asarray(X), (2,)), "Incompatible"),
    "cdiv of floats": (lambda m: pallas(m).cdiv(m.numpy.float32(7), 2), "divides integers"),
    "equation": (lambda m: tpu(m).einshape("a(bc)->abc", M), "Ambiguous split"),
    "parts": (lambda m: tpu(m).einshape("a(bc)->abc", M, b=4), "Cannot split"),
    "repeated": (lambda m: tpu(m).einshape("ab->a", M), "Only reordering"),
    "unknown axis": (lambda m: tpu(m).einshape("ab->abc", M), "Unknown dimension"),
    "stride": (lambda m: pallas(m).ds(0, 2, -1), "must be >= 0"),
    "cost of a number": (lambda m: pallas(m).estimate_cost(lambda x: x, 1.0), "shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name):
    run, words = WRONG[name]
    in_both(run)
    error = outcome(run, minijax)[1]
    assert error is not None and words in str(error), error


# -- what is named as kernels for Triton name it --------------------------------------------------


def _interpreted(kernel, *args, shapes=((8,),), dtype=np.int32):
    """Run `kernel(triton, *references)`, of which the last are outputs."""

    def run(m):
        kinds = [out(m, *shape, dtype=dtype) for shape in shapes]
        call = pallas(m).pallas_call(
            lambda *refs: kernel(triton(m), *refs), kinds, interpret=True,
            compiler_params=triton(m).CompilerParams(num_warps=4),
        )  # fmt: skip
        return call(*map(m.numpy.asarray, args))

    return run


def _swapping(triton, x, o, old):
    o[...] = x[...]
    old[...] = triton.atomic_cas(o, 2, 9)


def _accumulating(name):
    def kernel(m):
        pl = pallas(m)

        def add(x, o):
            pl.when(pl.program_id(0) == 0)(lambda: o.__setitem__(..., m.numpy.zeros(1, np.int32)))
            getattr(triton(m), f"atomic_{name}")(o, slice(None), x[...])

        specs = {"in_specs": [rows(pl, 1)], "out_specs": pl.BlockSpec((1,), lambda i: 0)}
        f = pl.pallas_call(add, out(m, 1, dtype=np.int32), grid=(8,), interpret=True, **specs)
        return f(m.numpy.asarray(N))

    return kernel


INDICES = {
    "all": (lambda x: slice(None), 8),
    "slice": (lambda x: slice(2, 5), 3),
    "scalar": (lambda x: x[1] + 2, ()),
    "elements": (lambda x: x[1:5], 4),
}
V = np.array([3, 9, 1, 4, 4, 0, 7, 2], np.int32)
TRITON = {
    "load": _interpreted(
        lambda t, x, o: o.__setitem__(..., t.load(x, eviction_policy="evict_last", volatile=True)), N
    ),
    "masked": _interpreted(
        lambda t, x, o: t.store(o, t.load(x, mask=x[...] > 2, other=-1)), N
    ),
    "masked parts": _interpreted(
        lambda t, x, o: (
            o.__setitem__(..., x[...]),
            t.store(o.at[2:6], t.load(x.at[:4], mask=x[1:5] > 2, other=7), mask=x[2:6] < 5),
        )[0], N,
    ),
    "one mask": _interpreted(lambda t, x, o: t.store(o, t.load(x, mask=True, other=0)), N),
    "narrow mask": _interpreted(lambda t, x, o: t.store(o, t.load(x, mask=x[:4] > 2)), N),
    "swapped": _interpreted(_swapping, np.int32(2), shapes=((), ())),
    "not swapped": _interpreted(_swapping, np.int32(3), shapes=((), ())),
    "swapped many": _interpreted(_swapping, N, shapes=((8,), (8,))),
    "hint": _interpreted(lambda t, x, o: o.__setitem__(..., t.max_contiguous(x[...], 8)), N),
    "dot": lambda m: triton(m).dot(m.numpy.asarray(M), m.numpy.asarray(M.T)),
    "dot transposed": lambda m: triton(m).dot(
        m.numpy.asarray(M), m.numpy.asarray(M[:, :2]), trans_a=True, allow_tf32=False
    ),
    "dot of transposed": lambda m: triton(m).dot(
        m.numpy.asarray(M), m.numpy.asarray(M[:2]), trans_b=True, precision="highest"
    ),
    **{
        f"dot of {kind}": lambda m, kind=kind: triton(m).dot(
            m.numpy.asarray(M, kind), m.numpy.asarray(M.T, kind)
        )
        for kind in ("float16", "int8", "uint8", "bool")
    },
    "dot of vectors": lambda m: triton(m).dot(m.numpy.asarray(X), m.numpy.asarray(X)),
    "dot with both": lambda m: triton(m).dot(
        m.numpy.asarray(M), m.numpy.asarray(M.T), allow_tf32=True, precision="highest"
    ),
    "tanh of integers": lambda m: triton(m).approx_tanh(m.numpy.asarray(N)),
    "assembly": lambda m: triton(m).elementwise_inline_asm(
        "tanh.approx.f32 $0, $1;", args=[m.numpy.asarray(X)], constraints="=f,f", pack=1,
        result_shape_dtypes=[out(m, 8)],
    ),
    **{f"{name} over a grid": _accumulating(name) for name in ("add", "max", "min")},
}  # fmt: skip


@pytest.mark.parametrize("name", TRITON)
def test_triton(name):
    in_both(TRITON[name])


def _updated(name, index, size, mask=None):
    def kernel(triton, x, v, o, old):
        o[...] = x[...]
        old[...] = x[...]
        options = {} if mask is None else {"mask": mask(v[:size] if size != () else v[0])}
        where = slice(size) if size != () else 0
        old[where] = getattr(triton, f"atomic_{name}")(o, index(x), v[where], **options)

    return _interpreted(kernel, N, V, shapes=((8,), (8,)))


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("name", ["add", "max", "min"])
def test_updates_of_triton(name, index):
    in_both(_updated(name, *INDICES[index]))


# Upstream interprets neither these nor masks.
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("name", ["add", "and", "max", "min", "or", "xchg", "xor"])
def test_all_updates_of_triton(name, index, masked):
    change = {
        "add": np.add, "and": np.bitwise_and, "max": np.maximum, "min": np.minimum,
        "or": np.bitwise_or, "xchg": lambda old, v: v, "xor": np.bitwise_xor,
    }[name]  # fmt: skip
    where, size = INDICES[index]
    mask = (lambda v: v > 2) if masked else None
    new, old = _updated(name, where, size, mask)(minijax)
    place = where(N)
    v = V[:size] if size != () else V[0]
    wanted, was = N.copy(), N.copy()
    was[: size if size != () else 1] = N[place]
    wanted[place] = (
        np.where(mask(v), change(N[place], v), N[place]) if masked else change(N[place], v)
    )
    np.testing.assert_array_equal(new, wanted)
    np.testing.assert_array_equal(old, was)


def test_what_only_a_gpu_runs_upstream():
    def kernel(triton, x, o):
        triton.debug_barrier()
        o[...] = triton.approx_tanh(x[...])

    found = _interpreted(kernel, X, dtype=np.float32)(minijax)
    np.testing.assert_allclose(found[0], np.tanh(X), rtol=1e-6)


@newer
def test_names():
    """Every name is upstream's; the others say that they are not there."""
    pl = pallas(minijax)
    assert set(pl.__all__) <= set(dir(pallas(jax)))
    assert set(tpu(minijax).__all__) <= set(dir(tpu(jax)))
    assert set(triton(minijax).__all__) == {n for n in dir(triton(jax)) if n[0] != "_"}
    absent = {name for name in dir(pallas(jax)) if name[0] != "_"} - set(pl.__all__)
    absent = {name for name in absent if not isinstance(vars(pallas(jax)).get(name), ModuleType)}
    for name in absent:
        with pytest.raises(AttributeError, match="minijax has no"):
            getattr(pl, name)
    assert absent <= {
        "Indirect", "delay", "enable_poison_buffers", "get_global", "pallas_export_experimental",
        "select_ref",
    }, absent  # fmt: skip


@pytest.mark.parametrize(
    "name", ["BufferType", "ChipVersion", "CoreType", "SideEffectType", "Tiling"]
)
def test_kinds_that_kernels_for_tpus_name(name):
    ours, theirs = (getattr(tpu(m), name) for m in (minijax, jax))

    def shown(kind, names):
        members = [kind[n] for n in names]
        facts = [n for n, x in vars(ours).items() if isinstance(x, property)]
        return [(m.name, m.value, str(m), repr(m), [getattr(m, f) for f in facts]) for m in members]

    names = [member.name for member in ours]
    assert shown(ours, names) == shown(theirs, names)
    assert jax.__version__ != "0.10.2" or names == [member.name for member in theirs]
