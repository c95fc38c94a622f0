"""The libraries' answers beside upstream's: values, dtypes, weak types, structures, and errors.

Each line is an expression, or several: `{{a|b}}` stands for `a` in one and for `b` in another.
"""

import importlib
import re
import warnings

import jax
import numpy as np
import pytest

from tests.harness.differential import BOTH, assert_same, x64

# What upstream answers otherwise since 0.12: orders are cut to integers, tangents stay weak.
_CHANGED = r"special\.(expn|zeta)" if jax.__version_info__ >= (0, 12) else "never"

ANSWERS = {
    "products": """
        jnp.{{dot|vdot|inner|kron}}({{2|2.0|2j|w|wi|weak}}, {{2|2j|weak|jnp.float16(2)}})
        jnp.{{dot|inner|matmul|vecdot|convolve|outer}}({{w|wi|h|x|i|b}}, {{w|wi|x|i|b}})
        jnp.matmul(w, {{w|wi}}, preferred_element_type="{{float32|float16|int8}}")
        jnp.einsum("{{i,i|i,j|i,i->i}}", {{w|wi|h|x}}, {{w|wi|x}})
        jnp.einsum("i,i", w, w, preferred_element_type="float32") | jnp.tensordot(w, {{w|wi|x}}, 1)
        jnp.inner({{True|b}}, True) | jnp.inner(True, b)
        lax.dot_general(w, w, (((0,), (0,)), ((), ())), preferred_element_type={{None|"float32"|"bfloat16"}})
        lax.conv_general_dilated(w[None, None], w[None, None], (1,), "SAME", preferred_element_type={{None|"float32"}})
        m.grad(lambda v: jnp.{{dot(v, 2.0)|vdot(2.0, v)|einsum(",->", v, 2.0)|tensordot(v, 2.0, 0)}})({{1.5|weak|np.float32(2)|jnp.float16(1)}})
        m.grad(lambda v: jnp.{{dot(v, v)|dot(v, 1j).real|dot(v, 3)|dot(v, jnp.bfloat16(3)).astype(float)}})({{1.5|weak|jnp.float16(1)}})
        m.grad(lambda v: jnp.{{dot(v, v)|inner(v, v)|matmul(v, v)|einsum("i,j->ij", v, v).sum()}})({{w|x}})
    """,
    "powers": """
        m.grad(lambda v: jnp.{{median(v)|nanmedian(v)|quantile(v, 0.5)|percentile(v, 5.0)|nanquantile(v, 0.5)|quantile(x, v)|append(x, v).sum()|poly(jnp.ravel(v)).sum()}})(0.7)
        m.jacfwd({{lambda v: v ** 2.0|lambda v: jnp.float_power(v, 2)|lambda v: lax.pow(v, 2.0)|m.jacfwd(lambda v: v ** 3.0)}})(0.7) | m.jacfwd(lambda v, u: (v ** 2.0, v ** u), (0, 1))(0.7, x)
        jnp.power({{2|2.0|-2|True|2j|weak|np.float32(2)|jnp.int8(3)|i|h}}, {{jnp.int8(2)|jnp.uint8(3)|np.int8(2)|jnp.array(2)|np.array(2, "int64")}})
        jnp.power({{2|2.0|True|jnp.int8(3)}}, {{True|np.True_|np.array(True)|jnp.array(True)|jnp.array([2])|wi}})
        jnp.power({{2|jnp.int8(2)|True}}, {{jnp.array(-1)|np.int8(-1)}})
        {{2|2.0|weak|i}} ** jnp.int8(3) | jnp.int8(3) ** {{2|2.0|weak}}
        m.{{grad|jit|vmap}}(lambda v: v ** {{known|jnp.int8(3)}})({{w if "m.vmap" in TEXT else 2.0}})
        m.jit(lambda v: (v**known, v ** jnp.array(2)))({{2|2.0|x}})
    """,
    "complex numbers and sets of them": """
        jnp.angle({{1j|-1.0|3|True|weak|w|-w|jnp.full(2, 1j)|wi|i|h|b}}, deg={{True|False}})
        jnp.angle({{np.float16|jnp.float16|jnp.bfloat16|np.float32|np.int16}}({{-1|2}}))
        m.{{jit|vmap|grad}}(jnp.angle)({{h if "m.vmap" in TEXT else jnp.float16(-1)}})
        jnp.unique({{1j|jnp.full(3, 1j)|3|1.5|w}}{{|, size=2|, return_index=True}})
        jnp.{{setdiff1d|intersect1d|setxor1d|union1d}}({{1j|jnp.full(2, 1j)|w}}, {{2j|jnp.full(2, 1j)|1.0}})
        jnp.unwrap({{jnp.zeros(0, int)|jnp.zeros((0, 2), int)|jnp.uint8([1, 9, 2])|x[:0]}}, {{axis=0|period=4}})
    """,
    "frequencies, transforms and signals": """
        scipy.signal.stft(h, nperseg=2, return_onesided=False)[1] | m.image.resize({{2.0|3}}, (), "{{nearest|cubic}}")
        scipy.ndimage.map_coordinates({{[1.0, 2.0]|x}}, [x[:2]], 1{{|, cval=None}})
        jnp.polyder(jnp.ones({{(2, 3)|(3, 1)|(2, 3, 2)|(1, 3)}}), {{0|1|2}})
        jnp.{{polyder|polyint}}({{2.0|x[:0]|jnp.ones((0, 2))}}, 0) | jnp.polymul({{x|x[:0]}}, {{x[:0]|jnp.ones((0, 2))|jnp.ones((2, 0))}})
        jnp.fft.fftfreq(5, {{1.0|0.1}}, dtype={{None|int|"int8"|bool|"float16"|"complex64"}})
        jnp.fft.rfftfreq(5, {{1.0|0.1}}, dtype={{None|int|"int8"|"float16"|"complex64"}})
        jnp.fft.{{rfft|fft}}(h) | lax.fft(h, "{{RFFT|FFT}}", (2,))
        scipy.fft.{{dctn|idctn}}(jnp.ones((2, 3)), axes={{(0, 0)|(1, -1)|(0, 1)}})
        scipy.signal.welch(jnp.ones(32, "float16"), nperseg=8, return_onesided=False)[0]
        scipy.signal.istft(jnp.ones((9, 4), complex), nperseg=30)
        jnp.trapezoid(jnp.ones((3, 4)), dx={{[1.0, 2.0, 3.0]|(1, 2, 3)|np.arange(3)|2}})
    """,
    "interpolation": """
        scipy.ndimage.map_coordinates(x, [jnp.array([-0.5, 0.5, 1.5, 2.5, 0.49999997, -1.5, -2.5])], 0, {{"constant"|"nearest"|"wrap"|"mirror"|"reflect"}}, 9.0)
        scipy.ndimage.map_coordinates(x, [h], 0, {{"constant"|"wrap"}}) | scipy.ndimage.map_coordinates(x, [b], {{0|1}})
        scipy.ndimage.map_coordinates({{i|x|b|h}}, [jnp.array([5.0, 1.0])], {{0|1}}, cval={{1j|2.5|True|-1}})
        scipy.ndimage.map_coordinates(jnp.{{int8|uint8}}([1, 2]), [jnp.array([5.0])], 1, cval={{300|-1|-129}})
        tree.leaves(grid()) | tree.leaves(grid(fill_value=None)) | str(tree.structure(grid("nearest")))
        m.{{jit|grad}}(lambda r: r(jnp.array([[0.5]])).sum())(grid()) | tree.map(lambda v: 2 * v, grid())(jnp.array([[0.5], [3.0], [9.0]]))
    """,
    "normalizing": """
        m.nn.standardize({{i|x|b|3|True|h}}, mean={{0.0|0|x}}, variance={{2.0|jnp.float32(2)}})
        m.nn.standardize({{i|x|b|h}}, mean={{0.0|0|x}})
        m.nn.standardize({{i|x|b|h}}, {{-1|None|()}}, variance={{2.0|None}})
    """,
    "special functions and clusters": """
        m.random.{{randint(m.random.key(0), (2, -3), 0, 5)|bernoulli(m.random.key(0), 0.5, (2, -3))|gamma(m.random.key(0), 1.0, (2, -3))|t(m.random.key(0), 1.0, (2, -3))}}
        m.jit(m.grad(lambda p: m.random.binomial(m.random.key(0), 5.0, p)))(0.3) | m.random.multinomial(m.random.key(0), 5.0, 0.5{{, shape=(3,)|}})
        scipy.special.expn({{1.7|0.5|20.5|-1.5|-2}}, {{2.5|1.0001|40.0}}) | scipy.special.expn({{1.5|-0.5|-1}}, {{0.5|1.0}}) | scipy.special.expn(-1, 0.0)
        m.jvp(lambda v: scipy.special.expn({{2.5|-1}}, v), (2.5,), (1.0,))
        m.jvp(lambda v: scipy.special.zeta({{2.5|2}}, v), (0.7,), (1.0,)) | m.jvp(lambda v: scipy.special.zeta(v, 2.5), (1.7,), (1.0,))
        cluster.vq(jnp.array([[1j], [2.0]]), jnp.array([[1.0], [0.0]])) | cluster.vq({{h|i|x}}, x)
        scipy.optimize.minimize(lambda v: v @ v, x, method="{{BFGS|l-bfgs-experimental-do-not-rely-on-this}}", options={"foo": 1})
    """,
    "trees": """
        flatten_util.ravel_pytree({{[1.0, 2]|[1j, 2.0]|[True, 1]}})[1]({{x[:2]|i|np.arange(2.0)|h}})
        flatten_util.ravel_pytree([h, i])[1]({{x|i|i[:2]}}) | flatten_util.ravel_pytree(x)[1]({{i|h|x + 1j}})
        tree_util.register_dataclass(int)
        m.{{value_and_grad|grad}}(lambda v: {{v * 1j|jnp.int32(v)}})(1.0) | m.{{value_and_grad|grad}}(lambda v: v)(1j)
        m.{{value_and_grad|grad}}(lambda v: v.real, holomorphic=True)(1j)
        m.grad(m.custom_gradient(lambda v, w: (v * w, lambda g: {{[g * w, g * v]|(g * w, g * v)}})), (0, 1))(3.0, 2.0)
    """,
}  # fmt: skip

# Arrays of 64 bits where x64 is disabled, of those made by `wide`.
WIDE = """
    f + 1 | f * f | jnp.sin(f) | f[1:] | f.at[0].set(1) | f > 1 | m.jit(lambda v: v + 1)(f)
    {{f|n|z|jnp.arange(3.0)}}[n] | jnp.zeros((3, 3))[n, n] | jnp.zeros((3, 3)).at[n, n].set(1)
    f.at[n].{{set(0.0)|add(1)|get()}} | f.take(n) | jnp.take_along_axis(f, n, 0) | f.at[n[0]].add(f[1])
    z.real | z.imag | lax.{{real|imag|abs|conj}}(z) | lax.abs(n) | abs(n) | lax.complex(f, f) | jnp.conj(z)
    jnp.angle(z) | m.random.{{key|PRNGKey}}(n[{{0|2}}]) | m.random.key(n[2] * 2**20 * 2**20)
    m.random.fold_in(m.random.key(0), n[1]) | jnp.exp(z) | m.grad(lambda v: (v**3).sum())(f) | lax.top_k(f, 2)
"""


def _expanded(text):
    found = re.search(r"\{\{(.*?)\}\}", text)
    if not found:
        return [text.replace("TEXT", repr(text))]
    head, tail = text[: found.start()], text[found.end() :]
    return [one for part in found[1].split("|") for one in _expanded(head + part + tail)]


def expressions(table):
    lines = [line.strip() for line in table.splitlines() if line.strip()]
    return [text for line in lines for part in _parts(line) for text in _expanded(part)]


def _parts(line):
    """The expressions of a line, between bars outside of braces."""
    return [part.strip() for part in re.split(r"\|(?![^{]*\}\})", line)]


def space(m):
    jnp = m.numpy
    load = lambda name: importlib.import_module(f"{m.__name__}.{name}")
    grid = lambda *args, **kwargs: load("scipy.interpolate").RegularGridInterpolator(
        (jnp.arange(3.0),), jnp.arange(3.0) ** 2, *args, **kwargs
    )
    for name in ("fft", "signal", "ndimage", "special", "optimize"):
        load(f"scipy.{name}")
    return {
        "m": m, "jnp": jnp, "lax": m.lax, "np": np, "scipy": m.scipy, "tree": m.tree,
        "tree_util": m.tree_util, "flatten_util": load("flatten_util"), "grid": grid,
        "cluster": load("scipy.cluster.vq"), "known": jnp.int8(3), "weak": jnp.asarray(2.0),
        "x": jnp.array([0.5, 2.0, 3.0]), "i": jnp.array([3, -1, 2], "int8"), "w": jnp.full(3, 2.0),
        "wi": jnp.full(3, 2), "h": jnp.array([-0.5, 1.0, 2.0], "float16"),
        "b": jnp.array([True, False, True]),
    }  # fmt: skip


def answer(m, text, names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(text, names)
        except Exception as error:
            said = str(error).splitlines()[0]
            return [kind.__name__ for kind in type(error).__mro__], said


def _is_error(found):
    return isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], list)


def difference(text, theirs, ours):
    """What differs between two answers, or None. Messages begin with upstream's first sentence."""
    if _is_error(theirs) or _is_error(ours):
        agree = (
            _is_error(theirs) and _is_error(ours) and theirs[0][0] in ours[0]
            and ours[1].startswith(re.split(r"\. |\.$", theirs[1])[0])
        )  # fmt: skip
        return None if agree else f"{text}\n    upstream {theirs}\n    ours {ours}"
    try:
        if isinstance(theirs, str):
            assert ours == theirs
        else:
            assert_same(ours, theirs, ulps=8 if "float16" in text or "h" in text else None)
    except AssertionError as error:
        return f"{text}\n    {str(error).strip()[:300]}"
    return None


@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
@pytest.mark.parametrize("area", ANSWERS)
def test_answers_of_libraries(area, wide):
    found = []
    with x64(wide):
        names = {m: space(m) for m in BOTH}
        for text in expressions(ANSWERS[area]):
            if not re.search(_CHANGED, text):
                found.append(difference(text, *[answer(m, text, names[m]) for m in BOTH]))
    assert not any(found), "\n".join(filter(None, found))


@pytest.mark.parametrize("index", ["y[0]", "y[1:]", "y[jnp.array([0])]", "y.at[0].set(1.0)"])
def test_indexing_of_a_deleted_array(index):
    for m in BOTH:
        y = m.numpy.arange(3.0)
        y.delete()
        with pytest.raises(RuntimeError, match="Array has been deleted with shape=float32"):
            eval(index, {"y": y, "jnp": m.numpy})


@pytest.mark.parametrize("name", ["psum", "pmean", "pmax", "pmin"])
@pytest.mark.parametrize("axes", [("i", "i"), ("i", "j", "i")])
def test_reductions_over_an_axis_that_is_named_twice(name, axes):
    for m in BOTH:
        fun = lambda x, m=m: getattr(m.lax, name)(x, axes)
        with pytest.raises(ValueError, match="duplicate value in 'axes' of reduction"):
            m.vmap(m.vmap(fun, axis_name="j"), axis_name="i")(m.numpy.ones((2, 3)))


def test_arrays_of_64_bits_without_x64():
    names = {}
    with x64(True):
        for m in BOTH:
            f = m.numpy.arange(3.0) + 0.5
            names[m] = {
                "m": m,
                "jnp": m.numpy,
                "lax": m.lax,
                "f": f,
                "z": f + 1j,
                "n": m.numpy.arange(3),
            }
    found = [
        difference(text, *[answer(m, text, names[m]) for m in BOTH]) for text in expressions(WIDE)
    ]
    assert not any(found), "\n".join(filter(None, found))
