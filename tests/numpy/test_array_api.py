"""What the array API standard and the libraries built on it ask of `minijax.numpy`."""

import sys
import warnings

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import BOTH, assert_same, x64

C = np.array([0, 1j, 1, 1 + 1j, -0.0 + 1j], np.complex64)
EMPTY, EMPTIES = np.zeros((0, 0), np.float32), np.zeros((2, 0, 0), np.float32)
I8, B = np.array([3, 1, 2], np.int8), np.array([True, False, True])
P = np.array([0.1, 0.25, 0.65], np.float32)

ROWS = """
lax.convert_element_type(jnp.asarray(C), bool)
jnp.asarray(jnp.asarray(C), bool)
jnp.asarray(C).astype(bool)
jnp.astype(jnp.asarray(C), bool)
jnp.full((2,), 1j, bool)
jnp.sin(C)
jnp.cos(C)
jnp.isclose(B, np.array([True, True, True]), atol=1)
jnp.isclose(jnp.array([0, 1, 0], "int4"), jnp.array([1, 1, 0], "int4"), rtol=1)
jnp.cov(jnp.zeros(0))
jnp.cov(jnp.zeros((3, 0)), bias=True)
jnp.cov(jnp.zeros((0, 2)), jnp.zeros((1, 2)))
jnp.linalg.inv(EMPTY)
jnp.linalg.inv(EMPTIES)
jnp.linalg.solve(EMPTY, EMPTY)
jnp.linalg.solve(EMPTIES, jnp.zeros((2, 0, 3)))
jnp.linalg.matrix_power(EMPTY, -1)
jnp.linalg.matrix_rank(jnp.zeros((3, 0)), rtol=0.1)
grad(lambda a: jnp.linalg.solve(a, a).sum())(jnp.zeros((0, 0)))
jnp.minimum.at(jnp.asarray(I8), 0, 1.5, inplace=False)
jnp.logical_and.at(jnp.asarray(I8), jnp.array([0, 2]), 2, inplace=False)
jnp.logaddexp.at(jnp.asarray(I8), 0, 1, inplace=False)
jnp.add.reduceat(jnp.asarray(I8), jnp.array([0, 1]))
jnp.logical_xor.accumulate(jnp.asarray(I8), dtype="float32")
jnp.subtract.reduce(jnp.ones((2, 3)), axis=None, keepdims=True)
scipy.special.zeta(np.float32([2, 1, 0.5, -1, 3, 2]), np.float32([1, 2, 2, 2, 0, -0.5]))
scipy.special.zeta(2, 3.0)
scipy.special.kl_div(2, 3)
scipy.special.rel_entr(2.0, 3)
scipy.special.rel_entr(P, P + 0)
scipy.special.xlogy(0.0, np.nan)
scipy.special.multigammaln(5.0, 3.0)
scipy.fft.dctn(2)
scipy.fft.idctn(jnp.ones((2, 2), int), axes=())
scipy.stats.bernoulli.ppf(0, 0.3)
jnp.asarray(P).__dlpack_device__()[0].name
type(jnp.asarray(P).__dlpack__(dl_device=(1, 0))).__name__
jnp.logaddexp(np.complex64([1, complex(0.5, np.nan), np.nan]), np.complex64([3.5 - 2j, 3, 1j]))
jnp.logaddexp2(np.complex64(complex(-np.inf, 1)), np.complex64(complex(-np.inf, 2)))
jnp.unique_values(w(2))
jnp.unique(w(2.5), axis=0)
jnp.union1d(w(2), 3)
jnp.setdiff1d(w(2), I8)
jnp.setxor1d(w(2), w(1))
jnp.intersect1d(w(2), I8)
jnp.sort(w(2))
jnp.tril(w(2, (3, 3)))
jnp.pad(w(2), 1)
jnp.resize(w(2), 0)
jnp.dot(2, 3)
jnp.matmul(w(2), w(2))
jnp.vecdot(w(2), P)
jnp.inner(w(2.5), P)
jnp.diag(w(2))
jnp.diag(w(2, (3, 3)))
jnp.diagflat(w(2))
jnp.insert(w(2), 1, I8)
jnp.cross(w(2), w(1))
jnp.cross(w(2, 2), w(1, 2))
jnp.round(w(2.55), 1)
jnp.full_like(w(2), w(1))
jnp.full_like(w(2), 1)
jnp.from_dlpack(w(2))
jnp.logical_and(w(2), w(0))
jnp.logical_not(w(2))
jnp.logical_not(jnp.asarray(2))
jnp.isreal(w(2.5))
jnp.hypot(w(2.5), w(2))
jnp.hypot(jnp.asarray(2.0), 3)
jnp.gcd(w(2), w(4))
jnp.gcd(jnp.asarray(2), 4)
jnp.pow(w(2), w(4))
jnp.floor_divide(w(2.5), 2)
jnp.deg2rad(w(2.5))
jnp.sinc(w(2.5))
jnp.heaviside(w(2.5), 1)
jnp.logaddexp2(w(2.5), 1)
nn.softplus(w(2))
jnp.ones((3, 2))[np.zeros((0,), bool)]
jnp.ones((3, 2))[np.zeros((3, 0), bool)]
jnp.ones((0, 1))[jnp.zeros((0, 0), bool)]
jnp.ones((3, 2)).at[np.zeros((0, 2), bool)].set(5)
""".strip().splitlines()


def _value(text, library):
    names = {n: getattr(library, n) for n in ("lax", "scipy", "grad", "nn")}
    names["jnp"] = jnp = library.numpy
    names["w"] = lambda value, shape=3: jnp.broadcast_to(jnp.asarray(value), shape)  # weakly typed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, globals() | names)


@pytest.mark.parametrize("text", ROWS)
@pytest.mark.parametrize("wide", [False, True])
def test_rows(text, wide):
    with x64(wide):
        ours, theirs = _value(text, minijax), _value(text, jax)
        if isinstance(theirs, str):
            assert ours == theirs
            return
        assert_same(ours, theirs, where=text)
        a, b = np.asarray(ours), np.asarray(theirs)
        for x, y in ((a.real, b.real), (a.imag, b.imag)) if a.dtype.kind in "fc" else ():
            known = ~np.isnan(y)
            np.testing.assert_array_equal(np.signbit(x)[known], np.signbit(y)[known])


REFUSED = {  # libraries' tests look for the words
    "bool": (bool, "Attempted boolean conversion of traced array with shape float32"),
    "float": (float, "Abstract tracer value encountered where concrete value is expected: traced"),
    "index": (
        [1, 2].__getitem__,
        r"The __index__\(\) method was called on traced array with shape",
    ),
    "array": (
        np.asarray,
        r"The numpy.ndarray conversion method __array__\(\) was called on traced",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("library", BOTH, ids=["jax", "minijax"])
def test_what_is_said_of_tracers(name, library):
    function, words = REFUSED[name]
    x = library.numpy.asarray(0 if name == "index" else 0.0)
    with pytest.raises(TypeError, match=words):
        library.jit(function)(x)


def test_a_traced_axis():
    for library in BOTH:
        with pytest.raises(library.errors.ConcretizationTypeError, match="axis argument"):
            library.jit(lambda n, lib=library: lib.numpy.sum(lib.numpy.ones(3), axis=n))(0)


def test_kinds_are_all_checked():
    for library in BOTH:
        with pytest.raises(ValueError, match="foo"):
            library.numpy.isdtype("bool", ("bool", "foo"))


def test_iterating_takes_no_element_before_it_is_asked_for():
    x = minijax.numpy.arange(1_000_000)
    assert np.iterable(x)
    assert int(next(iter(x))) == 0 and int(next(reversed(x))) == 999_999
    values = list(minijax.numpy.arange(600.0))
    assert [float(v) for v in values] == list(range(600))
    assert [v.shape for v in minijax.numpy.ones((300, 2))] == [(2,)] * 300


@pytest.mark.parametrize(
    ("kinds", "accepted"),
    [("", True), ("array", True), ("array numpy", True), ("numpy int", False), ("str", False),
     ("array list", False)],
)  # fmt: skip
def test_module_for_classes(kinds, accepted):
    for library in BOTH:
        x = library.numpy.ones(2)
        known = {"array": type(x), "numpy": np.ndarray, "int": int, "str": str, "list": list}
        found = x.__array_module__([known[kind] for kind in kinds.split()])
        assert found is (library.numpy if accepted else NotImplemented)


def test_version_of_the_namespace():
    for library in BOTH:
        with pytest.raises(
            ValueError, match="api_version='1' is not available; available versions"
        ):
            library.numpy.ones(2).__array_namespace__(api_version="1")


def test_dlpack_of_other_devices():
    for library in BOTH:
        with pytest.raises(BufferError):
            library.numpy.ones(3).__dlpack__(dl_device=(7, 0))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="buffers from Python 3.12 on")
def test_buffers():
    for library in BOTH:
        x = library.numpy.arange(3.0)
        assert memoryview(x).readonly
        assert np.frombuffer(x, np.float32).tolist() == [0, 1, 2]
        with pytest.raises(BufferError):
            memoryview(library.numpy.ones(2, "bfloat16"))


@pytest.mark.parametrize(
    "call",
    ["np.argsort(x)", "np.argsort(x, axis=None)", "np.argsort(x, stable=True)", "np.sort(x)",
     "np.argpartition(x, 1)", "np.cumsum(x)", "np.argmax(x)", "np.clip(x, 1, 2)", "np.sin(x)"],
)  # fmt: skip
def test_functions_of_numpy_answer_with_the_same_type(call):
    answers = [eval(call, {"np": np, "x": library.numpy.array([[2.0, 3, 1]])}) for library in BOTH]
    kinds = [isinstance(answer, (np.ndarray, np.generic)) for answer in answers]
    assert kinds[0] == kinds[1]
    assert np.asarray(answers[0]).dtype == np.asarray(answers[1]).dtype
    np.testing.assert_array_equal(*answers)
