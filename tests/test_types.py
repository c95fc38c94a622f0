"""Values that are no ordinary arrays, given to every kind of function, beside upstream."""

import numpy as np
import pytest

from tests.harness.differential import BOTH, assert_same, x64
from tests.test_library_answers import answer, difference, expressions, space

# `S` and `D` are of 32 and 64 bits; what a function makes no use of may be given so.
STRUCTS = """
    m.jit(lambda a, v: {{v|(v, a.shape)|v * a.size|jnp.zeros_like(a) + v|str(a.dtype) == "float32"|a|a + v}})({{S|D}}, w)
    m.jit(lambda a, v: v, {{keep_unused=True|donate_argnums=0|inline=True}})(S, w) | m.jit(lambda t: t["b"])({"a": S, "b": w})
    m.jit(lambda a, v: v)({{m.ShapeDtypeStruct((), m.random.key(0).dtype)|m.ShapeDtypeStruct((2,), m.dtypes.float0)}}, w)
    m.vmap(lambda a, v: {{v|(a.shape, v)|a|v + a}}, ({{0|None}}, 0), {{0|None}})({{S|D}}, x[:2]) | m.vmap(lambda a: {{1.0|a|jnp.zeros_like(a)|jnp.sin(a)}})(S)
    m.jvp(lambda a, v: {{a|v|a * v|v * a.size}}, (S, w), ({{S|w[:2]}}, w)) | m.jvp(lambda v: {{v|1.0|2 * v}}, (w[:2],), (S,)) | m.jvp(lambda a: a, (D,), (D,))
    m.vjp(lambda a, v: {{a|v|a * v}}, {{S|D}}, w[:2])[1](w[:2]) | m.vjp(lambda v: {{w|2 * v}}, w)[1](m.typeof(w).shape and S)
    m.{{grad|jacfwd|jacrev}}(lambda a, v: v.sum(), {{0|1|(0, 1)}})(S, w) | m.grad(lambda v, a: v.sum())(w, S) | m.value_and_grad(lambda v, a: (v.sum(), a), has_aux=True)(w, S)
    m.linearize(lambda a, v: {{v|a * v}}, S, w[:2])[1](w[:2], w[:2]) | m.grad(m.jit(lambda a, v: v.sum()), {{0|1}})(S, w) | m.vmap(m.jit(lambda a, v: v), (None, 0))(S, w)
    lax.scan(lambda c, r: {{(c, 1.0)|(c, r)|(c + r, 1.0)}}, {{w|S}}, {{S|D|x}}) | lax.map(lambda r: {{1.0|r}}, S) | lax.fori_loop(0, 3, lambda i, c: c, S)
    lax.cond(True, lambda a, v: {{v|a}}, lambda a, v: v, S, w[:2]) | lax.switch(0, [lambda a: 1, lambda a: 2], D) | lax.associative_scan(jnp.add, S)
    m.checkpoint(lambda a, v: {{a|v}})(S, w) | m.named_call(lambda a, v: v)(S, w) | m.jit(lambda a, v: v).lower(S, w).compile()(S, w)
    m.typeof({{S|D}}) | m.eval_shape(lambda a: a, {{S|D}}) | m.make_jaxpr(lambda a: a)({{S|D}}) | m.jit(lambda a: a).lower(D).in_avals | m.jit(lambda a: a).eval_shape(D)
    m.jit(lambda a: a).lower(D).compile()(np.ones(2)) | m.linear_transpose(lambda a: 2 * a, {{S|D}})(jnp.ones(2)) | m.export.export(m.jit(lambda a: a))(D).in_avals
    m.tree.map(jnp.zeros_like, {"a": S, "b": w}) | jnp.{{zeros_like|ones_like|empty_like}}({{S|D}}) | jnp.result_type({{S|D}}) | jnp.shape(S)
    m.jit(lambda v: m.jit(lambda b, a: {{b * 2|b + a|(a, b)}})(v, {{S|D}}))(w) | m.jit(lambda v: m.jit(lambda b, a: b * 2, {{keep_unused=True|inline=True}})(v, S))(w)
    m.jit(m.{{vmap|grad|checkpoint|jacfwd}}(lambda v: m.jit(lambda b, a: m.jit(lambda b, c: 2 * b)(b, a))(v, S)))({{w|w[0]}}) | m.jit(lambda v: m.jvp(lambda v: m.jit(lambda b, a: 2 * b)(v, S), (v,), (v,)))(w)
    {{m.jit|}}(lambda v: lax.scan(lambda c, r: (m.jit(lambda b, a: 2 * b)(c, S), r), v, x))(w) | lax.map(lambda r: m.jit(lambda b, a: b)(r, S), x) | lax.associative_scan(lambda a, b: m.jit(lambda a, b, c: a + b)(a, b, S), x)
    m.pmap(lambda v: m.jit(lambda b, a: b)(v, S))(x[:1]) | m.pmap(lambda v, a: {{v|v + a}}, in_axes=(0, None))(x[:1], S) | m.jit(lambda v: m.checkpoint(lambda b, a: {{b|b * a}})(v, S))(w) | m.pure_callback(lambda b, a: b, w, w, S)
    m.jit(lambda v: m.jit(lambda b, a: {{2 * b|a}})(v, S)).lower(w){{.as_text() == ""|.compile()(w)}} | m.export.export(m.jit(lambda v: m.jit(lambda b, a: {{2 * b|a}})(v, S)))(w).call(w)
    jnp.{{sin|sum|array|ravel|negative}}(S) | w + S | jnp.concatenate([S, S]) | lax.sin(S) | m.jit(lambda: S)() | w[S] | m.block_until_ready(S) | m.device_put(S)
"""  # fmt: skip


def shown(m, found):
    """An answer with types, of arrays or of programs, as text."""
    if type(found).__module__.startswith(("jax", "minijax")) and not isinstance(found, m.Array):
        return str(found)
    is_struct = lambda v: isinstance(v, (m.ShapeDtypeStruct, m.core.ShapedArray))
    return m.tree.map(lambda v: str(v) if is_struct(v) else v, found, is_leaf=is_struct)


@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
def test_structs_are_handed_on(wide):
    found = []
    with x64(wide):
        names = {}
        for m in BOTH:
            structs = {"S": m.ShapeDtypeStruct((2,), "float32")}
            names[m] = space(m) | structs | {"D": m.ShapeDtypeStruct((2,), "float64")}
        for text in expressions(STRUCTS):
            theirs, ours = [shown(m, answer(m, text, names[m])) for m in BOTH]
            if "'TypeError'" in str(theirs):
                same = "'TypeError'" in str(ours)  # upstream's says where it was noticed
                found.append(None if same else f"{text}\n  ours {ours}, upstream {theirs}")
            elif str(theirs) != str(ours) or "Array" in str(theirs):
                found.append(difference(text, theirs, ours))
    assert not any(found), "\n".join(filter(None, found))


# `F` is of float0, `K` are random keys: what is no number.
NO_NUMBERS = """
    jnp.{{argmax|argmin|cumsum|nancumsum|cumprod|sort|argsort|frexp|ceil|floor|trunc|positive|rint|spacing|signbit|i0}}(F)
    jnp.{{append|dot|cross|add|power|hypot|maximum|matmul|inner|vdot|vecdot}}({{F, F|F, x|x, F|F, 1}})
    jnp.ldexp(F, {{F|x|1}}) | jnp.{{unique|unique_values|nonzero|flatnonzero|argwhere|where|roots}}(F) | jnp.full_like(F, 1) | jnp.{{union1d|setdiff1d|intersect1d|setxor1d}}(F, F)
    jnp.fft.{{fft|ifft|rfft|irfft|hfft|ihfft|fftn|irfftn|fftshift}}(F) | jnp.fft.{{fft2|ifft2|irfft2|rfft2}}(F[None]) | jnp.{{angle|isclose|rint|ediff1d}}({{F|F, x}}) | lax.full_like(F, 1)
    jnp.compress({{F, F|F, x|F, x, size=2|[True, False], F|[True], F, size=1|[0, 1], F[None], axis=1}}) | jnp.extract({{F, x|F, F|1, F[:1]}})
    scipy.special.{{expi|sici|fresnel|dawsn|erfcx|wofz|exp1}}(F) | m.nn.{{relu|softplus|celu|mish|hard_silu}}(F)
    jnp.{{ceil|floor|trunc|rint|positive|sin|sort|argmax|cumsum}}(K) | jnp.array_equiv({{K, K|K, K[:1]|K, 1|x, K}})
    jnp.insert(K, {{0|1|-1|[0, 1]|jnp.array([0, 1])|slice(0, 2)|3}}, {{K[0]|K[:2]}}) | jnp.insert(K[:0], 0, K[:2]) | jnp.insert(K[None], 1, K[0], axis=1)
    jnp.full_like(K, {{K|K[0]|1|K[:2]|K, shape=(2, 3)}}) | lax.full_like(K, {{K|K[0]|K[:2]}})
    jnp.{{diagflat|imag|real|isin}}(K{{|, K[1:]|, 1}}) | jnp.isin(K, K[1:], {{invert=True|method="compare_all"|method="sort"}}) | jnp.isin(K[:0], K) | m.jit(jnp.isin)(K, K[0])
    jnp.resize(K{{[:0], (2, 2)|, 0|, 4}}) | jnp.diagflat(K, -1) | jnp.{{tril|triu}}(K.reshape(3, 1){{|, -1}}) | m.vmap(jnp.diagflat)(K[None]) | m.vmap(lambda q: q.take(0))(K[:0].reshape(0, 2))
    jnp.{{gradient|roots|fft.fftn}}(K[0]) | jnp.{{roots|polyder|diff}}(K[:0]) | jnp.histogram_bin_edges(K, K) | jnp.take({{x|K[:0]}}, K[:0])
    m.jit(jnp.insert)(K, {{1|-9|9}}, K[0]) | m.vmap(lambda v: jnp.insert(v, 1, K[0]))(jnp.stack([K, K]))
"""


def test_what_is_no_number():
    found = []
    names = {m: space(m) | {"K": m.random.split(m.random.key(0), 3)} for m in BOTH}
    for m in BOTH:
        names[m]["F"] = np.zeros(3, m.dtypes.float0)
    for text in expressions(NO_NUMBERS):
        theirs, ours = [answer(m, text, names[m]) for m in BOTH]
        if isinstance(theirs, tuple) and isinstance(theirs[0], list):
            refused = isinstance(ours, tuple) and isinstance(ours[0], list)
            same = refused and {"TypeError", "ValueError"} & {
                *ours[0]
            }  # upstream: by accident others
            found.append(None if same else f"{text}\n  ours {ours}, upstream {theirs}")
        elif m.dtypes.float0 != getattr(theirs, "dtype", None):
            found.append(difference(text, theirs, ours))
    assert not any(found), "\n".join(filter(None, found))


@pytest.mark.parametrize("x", [1.0, 1j, np.ones(2, "float32")])
def test_one_hot_of_other_dtypes_is_deprecated(x):
    said = "jax.nn.one_hot input should be integer-typed; got dtype="
    outs = []
    for m in BOTH:
        with pytest.warns(DeprecationWarning, match=said):
            outs.append(m.nn.one_hot(x, 3))
    assert_same(*reversed(outs))
