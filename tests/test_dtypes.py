"""The dtype module against upstream: promotion, categories, widths, names, warnings, errors."""

import enum
import itertools
import re
import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import dtypes
from minijax.config import override

pytestmark = pytest.mark.both_ends

NAMES = (
    "bool", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64", "int2", "int4", "int8",
    "int16", "int32", "int64", "float4_e2m1fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
DTYPES = tuple(np.dtype(getattr(ml_dtypes, name, name)) for name in NAMES)
RARE = tuple(map(np.dtype, ("int1", "uint1", "float6_e2m3fn", "float6_e3m2fn")))
WIDE = ("int64", "uint64", "float64", "complex128")
CATEGORIES = (
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
    np.floating, np.complexfloating, np.bool_, np.character, np.flexible,
)  # fmt: skip
PYTHON_TYPES = (bool, int, float, complex)


class Key(dtypes.ExtendedDType):
    """An extended dtype, as the random module makes them."""

    name = "key<fry>"
    type = dtypes.prng_key
    itemsize = 8
    _rules = None

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(Key)


KEY = Key()


class Valued:
    """What promotion sees of an array or a tracer."""

    def __init__(self, dtype, weak_type=False):
        self.dtype = dtype
        self.aval = self
        self.weak_type = weak_type


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    saved = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", request.param)
    with override("enable_x64", request.param):
        yield request.param
    jax.config.update("jax_enable_x64", saved)


@pytest.fixture(params=["standard", "strict"])
def promotion(request):
    saved = jax.config.jax_numpy_dtype_promotion
    jax.config.update("jax_numpy_dtype_promotion", request.param)
    with override("numpy_dtype_promotion", request.param):
        yield request.param
    jax.config.update("jax_numpy_dtype_promotion", saved)


def outcome(function, *args, **kwargs):
    """The result, or the class of the error; upstream's error classes count by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return type(error).__name__


def weak_tracers(body):
    """Call `body` with a {(dtype, weak): tracer} of upstream's, as only tracers carry any pair."""
    wide = jax.config.jax_enable_x64
    pairs = [(d, w) for d in DTYPES for w in (False, True) if wide or d.name not in WIDE]

    def traced(*tracers):
        body(dict(zip(pairs, tracers, strict=True)))
        return 0

    jax.eval_shape(traced, *[jax.ShapeDtypeStruct((), d, weak_type=w) for d, w in pairs])


def test_promotion_table(x64, promotion):
    """All pairs of (dtype, weak type), Python scalars and Python types, and each alone."""

    def body(upstream):
        theirs = {**upstream, **{("value", v): v for v in (True, 2, 1.5, 1j)}}
        theirs |= {("type", t): t for t in PYTHON_TYPES}
        ours = {key: x if isinstance(key[0], str) else Valued(*key) for key, x in theirs.items()}
        for a in theirs:
            _compare_promotion([theirs[a]], [ours[a]])
            for b in theirs:
                _compare_promotion([theirs[a], theirs[b]], [ours[a], ours[b]])

    weak_tracers(body)


def _compare_promotion(theirs, ours):
    expected = outcome(jax.dtypes.result_type, *theirs, return_weak_type_flag=True)
    got = outcome(dtypes.result_type, *ours, return_weak_type_flag=True)
    # Upstream fails with KeyError on the join of weak values below 8 bits: a fault, not a promise.
    if expected != "KeyError":
        assert got == expected, (ours, expected, got)


def _sums(m, wide):
    """Dtype and weak type of `a + b` for all weakly typed arrays and numbers, or the error."""
    kept = [d for d in DTYPES if wide or d.name not in WIDE]
    found = {}

    def sums(*arrays):
        given = {d.name: x for d, x in zip(kept, arrays, strict=True)} | {"2": 2, "1.5": 1.5}
        for (p, a), (q, b) in itertools.product(given.items(), repeat=2):
            out = outcome(lambda a, b: m.typeof(m.numpy.add(a, b)), a, b)
            found[p, q] = out if isinstance(out, str) else (out.dtype.name, out.weak_type)
        return 0

    m.eval_shape(sums, *[m.ShapeDtypeStruct((), d, weak_type=True) for d in kept])
    return found


def test_sums_of_weak_values(x64):
    """A sum of weak values is of their join, not of the width that numbers have."""
    ours, theirs = _sums(minijax, x64), _sums(jax, x64)
    assert {key: (ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]} == {}


@pytest.mark.parametrize("seed", range(3))
def test_promotion_of_three(x64, promotion, seed):
    def body(upstream):
        rng = np.random.default_rng(seed)
        keys = list(upstream)
        for _ in range(300):
            picked = [keys[i] for i in rng.integers(len(keys), size=3)]
            _compare_promotion([upstream[k] for k in picked], [Valued(*k) for k in picked])

    weak_tracers(body)


def test_promote_types(x64, promotion):
    everything = (*DTYPES, *PYTHON_TYPES, None, "M8[s]", str, dtypes.float0, "int8", jnp.bfloat16)
    for a in everything:
        for b in everything:
            assert outcome(dtypes.promote_types, a, b) == outcome(jnp.promote_types, a, b), (a, b)


def test_result_type_of_values(x64):
    class Real(float):
        pass

    groups = (
        (), (1,), (2**40,), (2**70,), (1, 2.0, 3j, np.int8), (np.float16, 1, 2.0, 3j), (None,),
        (np.float64(1), 1.0), (np.float32(1),), (np.int64(1), np.float16), (np.ones(2), 1),
        (np.ones(2, "i8"), np.uint32(3)), ("bfloat16", np.float16), ("f4", "i4"), ("abc",),
        (object(),), ([1, 2],), ((1,),), (np.array(["a"]),), (np.zeros(2, ">i4"),), ("M8[s]",),
        (dtypes.float0,), (dtypes.float0, dtypes.float0), (dtypes.float0, np.float32),
        (np.zeros(2, dtypes.float0), np.zeros(2, dtypes.float0)), (np.bool_(True), 1), (str,),
        (jnp.float32, 1), (jnp.bfloat16, jnp.float16), (jnp.int_,), (np.intc, np.longlong),
        (np.integer,), (object,), (np.dtype(">f4"),), (int, "float16"),
        (jax.ShapeDtypeStruct((2,), "float16"),),
        *[(d, 1) for d in RARE], *[(d, d) for d in RARE], *[(d, np.int8) for d in RARE],
    )  # fmt: skip
    for group in groups:
        expected = outcome(jax.dtypes.result_type, *group, return_weak_type_flag=True)
        assert outcome(dtypes.result_type, *group, return_weak_type_flag=True) == expected, group

    # Operations of upstream take subclasses of Python numbers as weak; so does result_type here.
    assert (jnp.ones(2, "float16") + Real(1)).dtype == dtypes.result_type("float16", Real(1))
    level = enum.IntEnum("level", "low high")
    assert (jnp.ones(2, "int8") + level.low).dtype == dtypes.result_type("int8", level.low)


def test_promote_is_canonical_and_memoised(x64):
    wide, narrow = (dtypes.int64, dtypes.int32)
    pairs = ((dtypes.uint32, False), (wide, False))
    expected = wide if x64 else narrow
    assert dtypes.promote(pairs) == (expected, False)
    assert dtypes.promote(pairs) is dtypes.promote(pairs)
    with override("enable_x64", not x64):
        assert dtypes.promote(pairs) == (narrow if x64 else wide, False)
    assert dtypes.lattice_result_type(np.zeros(2, "u4"), 1) == (dtypes.uint32, False)


def test_extended_dtypes_promote_with_themselves_only():
    assert dtypes.result_type(Valued(KEY), Valued(Key())) == KEY
    assert outcome(dtypes.result_type, Valued(KEY), 1.0) == "ValueError"
    assert outcome(dtypes.result_type, 1.0, Valued(KEY)) == "ValueError"
    assert outcome(dtypes.result_type, KEY) == "TypeError"
    assert dtypes.canonicalize_dtype(KEY, allow_extended_dtype=True) is KEY
    assert outcome(dtypes.canonicalize_dtype, KEY) == "ValueError"
    assert dtypes.check_user_dtype_supported(KEY) is KEY
    assert dtypes.dtype(Valued(KEY), canonicalize=True) is KEY
    assert dtypes.is_supported(KEY) and dtypes.is_extended(KEY)
    assert outcome(dtypes.extended) == outcome(jax.dtypes.extended) == "TypeError"


def test_promotion_errors_say_what_to_do(promotion):
    with pytest.raises(dtypes.TypePromotionError, match=r"\('float8_e5m2', 'int4'\).*astype"):
        dtypes.promote_types(dtypes.float8_e5m2, dtypes.int4)
    assert issubclass(dtypes.TypePromotionError, ValueError)


def test_canonicalize_dtype(x64):
    for one in (
        *DTYPES, *RARE, *PYTHON_TYPES, "int64", ">f4", "M8[s]", "abc", object, str, None, 3,
        jnp.int64, jnp.bfloat16, np.float64, np.zeros(3), dtypes.float0, [("a", "f4")],
    ):  # fmt: skip
        expected = outcome(jax.dtypes.canonicalize_dtype, one)
        for _ in range(2):  # the second answer comes from the memo
            got = outcome(dtypes.canonicalize_dtype, one)
            assert got == expected or (isinstance(one, list) and isinstance(got, np.dtype)), one


def test_default_dtypes(x64):
    assert dtypes.int_() == jnp.asarray(1).dtype
    assert dtypes.uint() == (np.uint64 if x64 else np.uint32)
    assert dtypes.float_() == jnp.asarray(1.0).dtype
    assert dtypes.complex_() == jnp.asarray(1j).dtype


@pytest.mark.parametrize(
    "one",
    [1, True, 1.0, 1j, np.float32(1), np.int8(1), np.ones(3, "bfloat16"), np.dtype("int4"), float,
     jnp.float32, "int32", None, np.zeros(2, "M8[s]"), np.zeros(2, dtypes.float0), np.complex64,
     object(), [1]],
    ids=lambda one: re.sub("0x[0-9a-f]+", "", repr(one)),
)  # fmt: skip
def test_scalar_type_of(one):
    assert outcome(dtypes.scalar_type_of, one) == outcome(jax.dtypes.scalar_type_of, one)


def test_dtype_of_values(x64):
    assert dtypes.dtype(1.0) == dtypes.float64
    assert dtypes.dtype(1.0, canonicalize=True) == dtypes.float_()
    assert dtypes.dtype(jnp.bfloat16) == dtypes.bfloat16
    assert [dtypes.is_python_scalar(x) for x in (1, True, 1j, np.float64(1), np.int8(1), [1])] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
    assert dtypes.dtype_and_weak_type(True) == (dtypes.bool_, False)
    assert dtypes.dtype_and_weak_type(np.float64(1)) == (dtypes.float64, False)
    assert dtypes.dtype_and_weak_type(float) == (dtypes.float64, True)


def test_issubdtype_table():
    theirs = {d: d for d in (*DTYPES, *RARE, *CATEGORIES, *PYTHON_TYPES, "f4", str, object, None)}
    theirs |= {getattr(jnp, d.name): getattr(jnp, d.name) for d in DTYPES}
    ours = dict(theirs)
    theirs |= {"key": jax.random.key(0).dtype, "extended": jax.dtypes.extended}
    theirs |= {"prng_key": jax.dtypes.prng_key, "abc": "abc", "float0": jax.dtypes.float0}
    ours |= {"key": KEY, "extended": dtypes.extended, "prng_key": dtypes.prng_key, "abc": "abc"}
    ours |= {"float0": dtypes.float0}
    for a in theirs:
        for b in theirs:
            expected = outcome(jax.dtypes.issubdtype, theirs[a], theirs[b])
            assert outcome(dtypes.issubdtype, ours[a], ours[b]) == expected, (a, b)


def test_isdtype_table():
    kinds = (
        "bool", "signed integer", "unsigned integer", "integral", "real floating",
        "complex floating", "numeric", "xyz", "float32", np.float32, jnp.bfloat16, np.floating,
        float, int, None, 3, [np.float32], (), (np.float32, "bool"), (("bool",),), ("xyz", "bool"),
        np.integer, jnp.int4,
    )  # fmt: skip
    for one in (*DTYPES, *RARE, float, int, bool, str, None, "abc", "int4"):
        for kind in kinds:
            assert outcome(dtypes.isdtype, one, kind) == outcome(jnp.isdtype, one, kind), (
                one,
                kind,
            )


def test_itemsize_bits():
    for one in (*DTYPES, *RARE, *PYTHON_TYPES, None, "abc", "M8[s]", dtypes.float0, jnp.int4):
        assert outcome(dtypes.itemsize_bits, one) == outcome(jax.dtypes.itemsize_bits, one), one
    assert outcome(dtypes.bit_width, KEY) == "ValueError"


def test_finfo_and_iinfo():
    assert dtypes.finfo is jax.dtypes.finfo is jnp.finfo
    assert dtypes.iinfo is jax.dtypes.iinfo is jnp.iinfo
    assert dtypes.finfo(dtypes.bfloat16).bits == 16
    assert (dtypes.iinfo(dtypes.int4).min, dtypes.iinfo(dtypes.int4).max) == (-8, 7)


def test_short_names():
    """As upstream prints them; 64-bit names come with x64 on."""
    with override("enable_x64", True):
        for one in (*DTYPES, *RARE):
            with jax.enable_x64(True):
                printed = str(jax.make_jaxpr(lambda x: x)(jax.ShapeDtypeStruct((2,), one)))
            assert f":{dtypes.short_name(one)}[2]." in printed
    printed = str(jax.make_jaxpr(lambda x: x)(np.zeros(2, dtypes.float0)))
    assert f":{dtypes.short_name(dtypes.float0)}[2]." in printed
    assert dtypes.short_name(KEY) == "key<fry>"


def test_supports_inf():
    for one in DTYPES:
        has = False
        if dtypes.issubdtype(one, np.inexact):
            has = bool(np.isinf(np.array(np.inf).astype(one)))
        assert dtypes.supports_inf(one) == has, one


def test_relatives_of_a_dtype(x64):
    """Against the operations of upstream that show each mapping."""
    shown = {
        dtypes.to_inexact_dtype: jnp.sin,
        dtypes.to_complex_dtype: jnp.fft.fft,
        dtypes.to_real_dtype: jnp.real,
        dtypes.to_numeric_dtype: lambda x: jnp.floor_divide(x, x),
    }
    below_four = ("int2", "uint2", "int1", "uint1")
    for mapping, operation in shown.items():
        for one in DTYPES:
            if (not x64 and one.name in WIDE) or one.name in below_four:
                continue
            result = outcome(jax.eval_shape, operation, jax.ShapeDtypeStruct((3,), one))
            if result != "TypeError":  # floor_divide of complex
                assert mapping(one) == result.dtype, (mapping, one)
    assert dtypes.to_floating_dtype("complex64") == dtypes.float32
    assert dtypes.to_floating_dtype("int8") == dtypes.float32
    assert dtypes.to_floating_dtype("bfloat16") == dtypes.bfloat16
    assert dtypes.to_inexact_dtype("int2") == dtypes.float32


def test_user_dtype_warning(x64):
    asked = (
        *DTYPES, *RARE, *PYTHON_TYPES, "f8", "int64", "float", np.float64, np.longlong, jnp.int_,
        jnp.float64, jnp.bfloat16, None, dtypes.float0, "M8[s]", "U3", str, object, np.longdouble,
        "abc", ">f4", 3, np.floating, [1, 2], np.ones(2, "f4"), Valued,
    )  # fmt: skip
    for one in asked:
        with warnings.catch_warnings(record=True) as theirs:
            warnings.simplefilter("always", UserWarning)
            expected = _dtype_or_error(lambda d: jax.eval_shape(lambda: jnp.zeros(0, d)).dtype, one)
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always", UserWarning)
            got = _dtype_or_error(lambda d: dtypes.check_user_dtype_supported(d, "zeros"), one)
        if not isinstance(one, np.ndarray):
            assert got == expected, one
        told = [w for w in theirs if issubclass(w.category, UserWarning)]
        assert len(ours) == len(told), one
        for w in ours:
            assert w.category is UserWarning and w.filename == __file__
            assert str(w.message).startswith("Explicitly requested dtype")


def test_result_type_warns_as_upstream(x64):
    for args in (("int64",), (np.int64, 1), (jnp.int_,), (int,), (None,), (np.ones(2), np.uint64)):
        with warnings.catch_warnings(record=True) as theirs:
            warnings.simplefilter("always")
            jax.dtypes.result_type(*args)
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            dtypes.result_type(*args)
        assert [w.category for w in ours] == [w.category for w in theirs], args


def _dtype_or_error(function, dtype):
    try:
        return function(dtype)
    except Exception as error:
        return type(error).__name__


def test_names_that_are_strings_of_numpy():
    """They have a dtype of their own, and are equal to Python's."""
    for m in (minijax, jax):
        name = np.str_("int16")
        assert m.numpy.ones(2).astype(name).dtype == m.numpy.zeros(2, name).dtype == np.int16
        assert m.numpy.zeros(2, "int16").dtype == m.dtypes.canonicalize_dtype(name) == np.int16
