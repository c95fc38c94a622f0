"""Lowering rules that build MLIR operations, and the names of `interpreters.mlir`, against
upstream.
"""

import functools
import itertools

import jax
import jax.extend.core
import jax.extend.mlir
import jax.interpreters.ad
import jax.interpreters.batching
import jax.interpreters.mlir
import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

import minijax
from minijax.extend import lowering
from minijax.extend import mlir as our_portable
from minijax.interpreters import ad as our_ad
from minijax.interpreters import batching as our_batching
from minijax.interpreters import mlir as our_mlir
from tests.harness.differential import assert_same

pytestmark = pytest.mark.both_ends

MLIR = {jax: jax.interpreters.mlir, minijax: our_mlir}
CORE = {jax: jax.extend.core, minijax: minijax.extend.core}
CORE = {jax: jax.extend.core, minijax: minijax.extend.core}
AD = {jax: jax.interpreters.ad, minijax: our_ad}
BATCHING = {jax: jax.interpreters.batching, minijax: our_batching}
_count = itertools.count()


def primitive(m, rule, shape=None, *, multiple=False, **options):
    p = CORE[m].Primitive(f"bound_{next(_count)}")
    p.multiple_results = multiple
    p.def_abstract_eval(shape or (lambda x, **params: m.core.ShapedArray(x.shape, x.dtype)))
    MLIR[m].register_lowering(p, rule, **options)
    return p


def both(run, **options):
    ours, theirs = run(minijax), run(jax)
    assert_same(ours, theirs, **options)
    return ours


X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


# -- rules ---------------------------------------------------------------------------------------------


def plain(m, ctx, x):
    return [hlo.sine(x)]


def view(m, ctx, x):
    return hlo.SineOp(x).results


def nested(m, ctx, x):
    return [(hlo.cosine(x),)]


def scaled(m, ctx, x):
    two = MLIR[m].ir_constant(np.full((2, 3), 2, np.float32))
    return [hlo.multiply(x, two)]


def typed(m, ctx, x):
    """Uses the types of the equation."""
    mlir = MLIR[m]
    kind = mlir.aval_to_ir_type(ctx.module_context, ctx.avals_out[0])
    assert kind == mlir.aval_to_ir_types(ctx.module_context, ctx.avals_in[0])[0] == x.type
    number = mlir.ir_constant(3, aval=m.core.ShapedArray((), np.float32))
    wide = hlo.broadcast_in_dim(kind, number, mlir.dense_int_array([]))
    return [hlo.add(x, wide)]


def with_function(m, ctx, x):
    """Calls a function of arrays."""
    f = lambda y: m.lax.sort(m.numpy.sin(y)) * 2 + y.sum()
    found = MLIR[m].lower_fun(f, multiple_results=False)(ctx, hlo.negate(x))
    return [hlo.negate(value) for value in MLIR[m].flatten_ir_values(found)]


def with_region(m, ctx, x):
    """An operation that holds a region."""
    scalar = ir.RankedTensorType.get([], ir.F32Type.get())
    zero = MLIR[m].ir_constant(np.float32(0))
    out = ir.RankedTensorType.get([2], ir.F32Type.get())
    total = hlo.ReduceOp([out], [x], [zero], MLIR[m].dense_int_array([1]))
    block = total.body.blocks.append(scalar, scalar)
    with ir.InsertionPoint(block):
        hlo.return_([hlo.add(*block.arguments)])
    wide = ir.RankedTensorType.get([2, 3], ir.F32Type.get())
    return [hlo.broadcast_in_dim(wide, total.results[0], MLIR[m].dense_int_array([0]))]


def with_program(m, ctx, x):
    """Computes a jaxpr."""
    mlir = MLIR[m]
    closed = m.make_jaxpr(lambda y: m.numpy.tanh(y) * 2)(X)
    found = mlir.core_call_lowering(ctx, x, name="inner", call_jaxpr=closed)
    (out,) = mlir.flatten_ir_values(found)
    return [out]


RULES = (plain, view, nested, scaled, typed, with_function, with_region, with_program)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_rules(rule):
    def run(m):
        p = primitive(m, lambda ctx, x: rule(m, ctx, x))
        y = m.numpy.asarray(X)
        f = lambda x: p.bind(p.bind(x) + 1) * x
        loop = lambda x: m.lax.fori_loop(0, 3, lambda _, c: p.bind(c), x)
        return m.jit(p.bind)(y), m.jit(f)(y), m.jit(loop)(y)

    both(run)


def test_several_results_and_params():
    def shape(x, *, scale):
        return [x, x]

    def run(m):
        def rule(ctx, x, *, scale):
            assert len(ctx.avals_in) == 1 and len(ctx.avals_out) == 2
            number = MLIR[m].ir_constant(np.full(X.shape, scale, np.float32))
            return [hlo.multiply(x, number), hlo.negate(x)]

        p = primitive(m, rule, shape, multiple=True)
        return m.jit(lambda x: p.bind(x, scale=3.0) + p.bind(x, scale=4.0))(X)

    both(run)


def test_what_rules_are_given():
    """Rules from outside are given tuples, and the numbers of a `jvp` as numbers."""

    def run(m):
        seen = []
        p = primitive(m, plain, lambda *xs: list(xs), multiple=True)
        p.def_impl(lambda *xs: list(xs))

        def note(*args):
            seen.extend([type(x) is tuple, type(x) is list] for x in args)

        def jvp(primals, tangents):
            note(primals, tangents)
            return p.bind(*primals), p.bind(*tangents)

        def batch(args, dims):
            note(args, dims)
            return p.bind(*args), dims

        def transpose(cts, *args):
            note(cts)
            return cts

        AD[m].primitive_jvps[p] = jvp
        AD[m].primitive_transposes[p] = transpose
        BATCHING[m].primitive_batchers[p] = batch
        (x,), (t,) = m.jvp(lambda x: p.bind(x), (1.0,), (2.0,))
        grads = m.grad(lambda x, y: sum(p.bind(x, y)), (0, 1))(1.0, 2.0)
        rows = m.vmap(lambda x, y: p.bind(x, y), (0, None))(X, 1.0)
        kinds = [isinstance(x, float), isinstance(t, float)]  # upstream's is a kind of float
        zero = AD[m].Zero(m.core.ShapedArray((2,), np.float32))
        kept = m.vmap(lambda x: zero)(X)  # as the rule of a primitive that vmaps one may give it
        return seen, kinds, float(x), float(t), grads, rows, type(kept) is AD[m].Zero

    both(run)


def test_transformed():
    """The other rules of such a primitive stand beside its lowering."""

    def run(m):
        ad = __import__(f"{m.__name__}.interpreters.ad", fromlist=["x"])
        batching = __import__(f"{m.__name__}.interpreters.batching", fromlist=["x"])
        sine = primitive(m, lambda ctx, x: [hlo.sine(x)])
        sine.def_impl(lambda x: m.jit(sine.bind)(x))
        ad.defjvp(sine, lambda t, x: t * m.numpy.cos(x))
        batching.defvectorized(sine)
        x = m.numpy.asarray(X[0])
        f = lambda x: sine.bind(x) ** 2
        grad = m.grad(lambda x: f(x).sum())
        return sine.bind(x), m.jit(m.vmap(f))(x), grad(x), m.jit(grad)(x), m.vmap(m.grad(f))(x)

    both(run)


def test_dtypes():
    names = ("bool", "int8", "uint16", "int32", "float16", "bfloat16", "complex64", "int4")

    def run(m):
        same = primitive(m, lambda ctx, x: [x])
        constant = primitive(
            m, lambda ctx, x: [MLIR[m].ir_constant(np.ones(ctx.avals_out[0].shape, x_type(ctx)))]
        )
        x_type = lambda ctx: ctx.avals_out[0].dtype
        out = []
        for name in names:
            x = m.numpy.zeros((2,), name)
            out += [m.jit(same.bind)(x), m.jit(constant.bind)(x)]
        return out

    both(run)


def test_random_keys():
    def run(m):
        same = primitive(m, lambda ctx, x: [x], lambda x: x)
        keys = m.random.split(m.random.key(0), 3)
        return m.random.key_data(m.jit(same.bind)(keys))

    both(run)


def test_platforms():
    def run(m):
        p = primitive(m, lambda ctx, x: [hlo.sine(x)])
        MLIR[m].register_lowering(p, lambda ctx, x: [hlo.cosine(x)], platform="cpu")
        MLIR[m].register_lowering(p, lambda ctx, x: [hlo.negate(x)], platform="tpu")
        text = m.jit(p.bind).trace(X).lower(lowering_platforms=("tpu",)).as_text()
        assert "negate" in text and "cosine" not in text
        return m.jit(p.bind)(X)

    both(run)


def test_equal_names():
    """Functions of rules of one name do not meet in a program."""

    def run(m):
        def rule(number):
            def inner(y):
                return y + number

            return lambda ctx, x: MLIR[m].lower_fun(inner, multiple_results=False)(ctx, x)

        parts = [primitive(m, rule(n)) for n in (1.0, 10.0)]
        for p in parts:
            p.name = "main"
        return m.jit(lambda x: parts[0].bind(x) + parts[1].bind(x) + parts[0].bind(x))(X)

    both(run)


WRONG = {
    "nothing": lambda m, ctx, x: None,
    "too many": lambda m, ctx, x: [x, x],
    "another type": lambda m, ctx, x: [MLIR[m].ir_constant(np.int32(1))],
    "an error": lambda m, ctx, x: {}["missing"],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules(name):
    for m in (jax, minijax):
        p = primitive(m, lambda ctx, x, m=m: WRONG[name](m, ctx, x))
        with pytest.raises(KeyError if name == "an error" else ValueError) as caught:
            m.jit(p.bind)(X)
    if name != "an error":
        assert "bound_" in str(caught.value)
    # The place is free again after an error.
    assert_same(minijax.jit(primitive(minijax, lambda ctx, x: [x]).bind)(X), X * 1, weak=False)


def test_missing_rules():
    for m in (jax, minijax):
        p = primitive(m, lambda ctx, x: [x], platform="cuda")
        with pytest.raises(NotImplementedError, match="not found for platform cpu"):
            m.jit(p.bind)(X)
        with pytest.raises(NotImplementedError, match="unknown platform foo"):
            MLIR[m].register_lowering(p, lambda ctx, x: [x], platform="foo")


# -- classes of primitives -----------------------------------------------------------------------------


def _tag(m):
    """A class with its rules as methods, of primitives that give their operands."""

    class Tag(CORE[m].Primitive):
        multiple_results = True

        def __init__(self):
            super().__init__(f"tag_{next(_count)}")
            MLIR[m].register_lowering(self, lambda ctx, *xs, **params: xs)
            AD[m].primitive_jvps[self] = lambda xs, ts, **params: (
                self.bind(*xs, **params),
                list(ts),
            )
            BATCHING[m].primitive_batchers[self] = lambda xs, dims, **params: (
                self.bind(*xs, **params), dims)  # fmt: skip

        def impl(self, *xs, **params):
            return [m.numpy.asarray(x) for x in xs]

        def abstract_eval(self, *avals, **params):
            return list(avals), CORE[m].no_effects

    return Tag()


def _scaling(m, **methods):
    """A class of primitives of one result."""

    def impl(self, x, *, by):
        return x * by

    def abstract_eval(self, x, *, by):
        return m.core.ShapedArray((*x.shape, by), x.dtype), CORE[m].no_effects

    rules = {"impl": impl, "abstract_eval": abstract_eval} | methods
    p = type("Scaling", (CORE[m].Primitive,), rules)(f"scaling_{next(_count)}")
    kind = lambda x, by: ir.RankedTensorType.get((*x.type.shape, by), x.type.element_type)
    dims = lambda x: ir.DenseI64ArrayAttr.get(range(x.type.rank))
    MLIR[m].register_lowering(p, lambda ctx, x, by: [hlo.broadcast_in_dim(kind(x, by), x, dims(x))])
    return p


def _counted(m):
    called = []

    def bind(self, *args, **params):
        called.append(len(args))
        return CORE[m].Primitive.bind(self, *args, **params)

    p = _scaling(m, bind=bind)
    program = m.make_jaxpr(lambda x: p.bind(x, by=2))(X)
    return str(p.bind(X, by=2).shape), len(called), str(CORE[m].jaxpr_as_fun(program)(X)[0].shape)


CLASSES = {
    "members": lambda m: (_tag(m).multiple_results, _scaling(m).multiple_results),
    "eager": lambda m: _tag(m).bind(X, 2.0, k=1),
    "jit": lambda m: m.jit(lambda x: _tag(m).bind(x, x * 2))(X),
    "grad": lambda m: m.grad(lambda x: (_tag(m).bind(x * 3, k=1)[0] * x).sum())(X),
    "vmap": lambda m: m.vmap(lambda x: _tag(m).bind(x)[0] + 1)(X),
    "one result": lambda m: _scaling(m).bind(X, by=3),
    "its type": lambda m: m.eval_shape(lambda x: _scaling(m).bind(x, by=3), X).shape,
    "compiled": lambda m: m.jit(lambda x: _scaling(m).bind(x, by=3))(X),
    "rules called": lambda m: (
        _scaling(m).impl(X, by=2),
        str(_scaling(m).abstract_eval(m.core.ShapedArray((3,), np.float32), by=2)),
        str(_tag(m).abstract_eval(m.core.ShapedArray((3,), np.float32))),
    ),
    "plain": lambda m: str(
        primitive(m, plain).abstract_eval(m.core.ShapedArray((3,), np.float32), k=1)
    ),
    "own bind": _counted,
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes_of_primitives(name):
    both(CLASSES[name])


def test_debug_info():
    def about(m):
        def named(x, *, y):
            return x + y

        info = m.make_jaxpr(named)(1.0, y=2.0).jaxpr.debug_info
        made = CORE[m].DebugInfo("a jit", info.func_src_info, ("p",), ("q",))
        bare = CORE[m].DebugInfo("a jit", "g", ("p",), ("q",))
        return str([(i.func_src_info, i.func_name, tuple(i.arg_names)) for i in (info, made, bare)]
                   + [(i.traced_for, i.result_paths) for i in (made, bare)])  # fmt: skip

    assert about(minijax) == about(jax)


def _tree_of(x, y, *rest, opt=3, **named):
    return {"a": x * y, "b": (x, [y + opt])}


def _body(carry, row):
    return carry + row, carry


def _below(i):
    return i.sum() < 9


def _next(i):
    return i + 1


class _Callable:
    def __call__(self, x):
        return x * 2

    def method(self, x):
        return x * 3


ROW = np.ones(3, np.float32)
DESCRIBED = {  # functions of a library and arguments, whose programs say where they come from
    "a function": (lambda m: _tree_of, ROW, ROW),
    "a partial": (lambda m: functools.partial(_tree_of, ROW), ROW),
    "jax's partial": (lambda m: m.tree_util.Partial(_tree_of, ROW), ROW),
    "a lambda": (lambda m: lambda a, b: (a, b * 2), ROW, ROW),
    "any arguments": (lambda m: lambda *a, **k: [b * 2 for b in a], ROW, ROW),
    "pytrees": (lambda m: lambda t, u: t["a"] * u[0], {"a": ROW, "b": ROW}, (ROW, [ROW])),
    "a method": (lambda m: _Callable().method, ROW),
    "jit": (lambda m: m.jit(_tree_of), ROW, ROW),
    "jit of a lambda": (lambda m: lambda x: m.jit(lambda z: z * 2)(x), ROW),
    "jit with keywords": (lambda m: lambda x: m.jit(_tree_of)(x, y=x, z=x), ROW),
    "a static number": (
        lambda m: lambda x: m.jit(lambda n, x: x * n, static_argnums=0)(3, x), ROW),
    "a static name": (
        lambda m: lambda x: m.jit(lambda x, *, n: x * n, static_argnames="n")(x, n=3), ROW),
    "no arguments": (lambda m: lambda x: m.jit(lambda: 1.0)() + x, ROW),
    "scan": (lambda m: lambda c, rows: m.lax.scan(_body, c, rows), ROW[0], ROW),
    "fori_loop": (lambda m: lambda x: m.lax.fori_loop(0, 3, lambda i, c: c * 2, x), ROW),
    "cond": (lambda m: lambda p, x: m.lax.cond(p, lambda z: z, lambda w: -w, x), True, ROW),
    "condition of while": (lambda m: lambda x: m.lax.while_loop(_below, _next, x), ROW),
    "checkpoint": (lambda m: m.checkpoint(_tree_of), ROW, ROW),
    "grad": (lambda m: m.grad(lambda x, y: m.jit(_next)(x * y).sum()), ROW, ROW),
    "jvp": (lambda m: lambda x: m.jvp(m.jit(_next), (x,), (x,)), ROW),
    "vjp": (lambda m: lambda x: m.vjp(m.jit(_next), x)[1](x), ROW),
    "linearize": (lambda m: lambda x: m.linearize(m.jit(_next), x)[1](x), ROW),
    "vmap": (lambda m: m.vmap(m.jit(_tree_of)), ROW, ROW),
    "jacfwd": (lambda m: m.jacfwd(m.jit(_next)), ROW),
    "hessian": (lambda m: m.hessian(lambda x: m.jit(_next)(x).sum()), ROW),
    "grad of scan": (lambda m: m.grad(lambda c, rows: m.lax.scan(_body, c, rows)[0]), ROW[0], ROW),
    "vmap of scan": (
        lambda m: m.vmap(lambda c, rows: m.lax.scan(_body, c, rows)), ROW, np.ones((3, 2), "f")),
}  # fmt: skip


def _infos(jaxpr):
    """What a jaxpr and those within it say of themselves."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    info = jaxpr.debug_info
    assert info.arg_names is None or len(info.arg_names) == len(jaxpr.invars)
    yield info.traced_for, info.func_src_info, info.arg_names
    for eqn in jaxpr.eqns:
        for name, value in sorted(eqn.params.items()):
            for one in value if isinstance(value, (tuple, list)) else [value]:
                if type(one).__name__ in ("Jaxpr", "ClosedJaxpr") and name != "fwd_jaxpr":
                    yield from _infos(one)


@pytest.mark.parametrize("name", DESCRIBED)
def test_debug_info_of_programs(name):
    make, *args = DESCRIBED[name]
    ours, theirs = (m.make_jaxpr(make(m))(*args) for m in (minijax, jax))
    found, wanted = (
        [(what, where.replace(jax.__name__, ""), names) for what, where, names in _infos(jaxpr)]
        for jaxpr in (ours, theirs)
    )
    if jax.__version__ == "0.10.2":
        assert found == wanted
        assert ours.jaxpr.debug_info.result_paths == theirs.jaxpr.debug_info.result_paths


# -- types, constants and attributes -----------------------------------------------------------------

ATTRIBUTES = [
    3, True, 2.5, 1j, "s", b"s", np.float32(1), np.int8(2), np.bool_(1), np.arange(3),
    np.ones((2, 2), np.float32), [1, 2], (1, "a"), {"a": 1}, None, np.dtype("float32"),
    np.array([True, False]), np.array(3), [1.5], np.zeros((0, 2)), np.float16(0.1),
]  # fmt: skip
DTYPES = (
    "bool", "int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32",
    "int64", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e8m0fnu", "float4_e2m1fn",
)  # fmt: skip
CONSTANTS = [
    np.float32(1), np.arange(3), np.ones((2, 2)), np.zeros((0, 2)), np.array([True, False]),
    np.ones(3, "bfloat16"), np.ones(3, "int4"), np.array([1j]), np.float64(0.1), "x", [1], None,
    np.zeros(2, jax.dtypes.float0),
]  # fmt: skip


def said(call):
    try:
        return str(call())
    except Exception as error:
        return type(error).__name__


def in_context(m, run):
    """What `run` says in a context of the library's, within a new module."""
    context = MLIR[m].make_ir_context()
    with context, ir.Location.unknown(context):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            return run(MLIR[m])


def compare(run):
    ours, theirs = in_context(minijax, run), in_context(jax, run)
    assert ours == theirs
    return ours


def test_attributes():
    compare(lambda mlir: [said(lambda v=v: mlir.ir_attribute(v)) for v in ATTRIBUTES])
    compare(
        lambda mlir: list(
            map(
                str,
                (
                    mlir.i32_attr(3), mlir.i64_attr(-4), mlir.dense_int_array([1, 2]),
                    mlir.dense_int_elements([1, 2]), mlir.token_type(), mlir.SEND_TO_HOST_TYPE,
                    mlir.DEVICE_TO_DEVICE_TYPE, mlir.RECV_FROM_HOST_TYPE,
                ),
            )
        )
    )  # fmt: skip


def test_types():
    kinds = [np.dtype(jax.numpy.dtype(name)) for name in DTYPES]
    compare(lambda mlir: [str(mlir.dtype_to_ir_type(kind)) for kind in kinds])
    compare(lambda mlir: said(lambda: mlir.dtype_to_ir_type(np.dtype(object))))

    def flattened(mlir):
        a, b = (ir.RankedTensorType.get(shape, ir.F32Type.get()) for shape in ([], [2]))
        x, y = mlir.ir_constant(np.float32(1)), mlir.ir_constant(np.ones(2, np.float32))
        values = mlir.unflatten_ir_values_like_types([x, y, x], [a, (b, a)])
        again = mlir.flatten_ir_values(values)
        return [
            list(map(str, mlir.flatten_ir_types([a, (b, a)]))), [str(v.type) for v in again],
            said(lambda: mlir.unflatten_ir_values_like_types([x, y], [a, (b, a)]) and 0) != "0",
            mlir.Token is ir.Value, mlir.Value is ir.Value,
        ]  # fmt: skip

    compare(flattened)


def test_constants():
    def text(mlir, value):
        (found,) = mlir.ir_constants(value)
        same = mlir.ir_constant(value)
        assert same.type == found.type
        return str(found).partition(" = ")[2]

    compare(lambda mlir: [said(lambda v=v: text(mlir, v)) for v in CONSTANTS])


def test_constant_handlers():
    class Kilo:
        def __init__(self, number):
            self.number = number

    def run(mlir):
        mlir.register_constant_handler(
            Kilo, lambda val, aval: mlir.ir_constant(np.float32(1000 * val.number))
        )
        return str(mlir.ir_constant(Kilo(2))).partition(" = ")[2]

    assert "2.000000e+03" in compare(run)


def test_shape_tensor():
    def run(m):
        def rule(ctx, x):
            dynamic = MLIR[m].ir_constant(np.int32(5))
            part = MLIR[m].shape_tensor(ctx.module_context, [1, dynamic, 3])
            known = MLIR[m].shape_tensor(ctx.module_context, [1, 2, 3])
            return [hlo.add(part, known)]

        p = primitive(m, rule, lambda x: m.core.ShapedArray((3,), np.int32))
        return m.jit(p.bind)(X)

    both(run)


# -- modules -------------------------------------------------------------------------------------------


def test_modules():
    """Modules as text and bytes, and one moved into another."""

    def run(mlir):
        one = ir.Module.parse("func.func @main() { return }\nfunc.func private @f() { return }")
        two = ir.Module.parse(
            "func.func @main() { call @f() : () -> ()\n return }\nfunc.func private @f() { return }"
        )
        name = mlir.merge_mlir_modules(one, "part", two)
        again = mlir.merge_mlir_modules(
            one, "part", ir.Module.parse("func.func @main() { return }")
        )
        one.operation.verify()
        text = mlir.module_to_string(one, enable_debug_info=False)
        code = mlir.module_to_bytecode(one)
        return name, again, text.count("func.func"), text.count("private"), code[:4]

    compare(run)


def test_a_program_as_a_module():
    closed = minijax.make_jaxpr(lambda x: minijax.numpy.sort(x) * 2)(X)
    made = our_mlir.lower_jaxpr_to_module("sorted", closed, platforms=("cpu",))
    text = our_mlir.module_to_string(made.module)
    assert "module @sorted" in text and "stablehlo.sort" in text and made.host_callbacks == []
    ctx = our_mlir.ModuleContext(("cpu",))
    with ctx.context, ir.Location.unknown(ctx.context):
        first = our_mlir.lower_jaxpr_to_fun(ctx, "f", closed, [], num_const_args=0, in_avals=())
        our_mlir.lower_jaxpr_to_fun(ctx, "f", closed, [], main_function=True)
    ctx.module.operation.verify()
    assert first.name.value == "f" and "@f_0" in str(ctx.module)
    with pytest.raises(NotImplementedError, match="arg_shardings"):
        our_mlir.lower_jaxpr_to_module("m", closed, arg_shardings=[1])


def test_portable_bytes():
    text = minijax.jit(lambda x: x + 1).lower(X).as_text()
    module = ir.Module.parse(text, context=our_mlir.make_ir_context())
    kept = our_portable.serialize_portable_artifact(module, "1.0.0")
    same = jax.extend.mlir.serialize_portable_artifact(module, "1.0.0")
    assert kept == same and b"StableHLO" in kept
    back = our_portable.deserialize_portable_artifact(kept, our_mlir.make_ir_context())
    assert "stablehlo.add" in str(back)
    assert isinstance(our_mlir.make_ir_context(), lowering.JaxIrContext)


def test_token_sets():
    from minijax.features.effects.kinds import OrderedDebugEffect, OrderedIOEffect

    a, b = OrderedIOEffect(), OrderedDebugEffect()
    tokens = our_mlir.TokenSet({a: 1, b: 2})
    assert tokens.get(a) == 1 and tokens.effects() == {a, b} and len(tokens) == 2
    assert tokens.subset([b]).items() == [(b, 2)]
    assert tokens.update_tokens(our_mlir.TokenSet({b: 3})).items() == [(a, 1), (b, 3)]
    assert our_mlir.lowerable_effects.contains(a)


def test_ordered_effects():
    """A rule of a primitive with an ordered effect is given its token, and gives the next."""
    from minijax.features.effects.kinds import OrderedIOEffect

    effect = OrderedIOEffect()
    seen = []

    def rule(ctx, x):
        seen.append([str(ctx.tokens_in.get(effect).type)])
        after = hlo.after_all([ctx.tokens_in.get(effect)])
        ctx.set_tokens_out(our_mlir.TokenSet({effect: after}))
        return [x]

    p = primitive(minijax, rule)
    p.rule_effects = lambda **params: frozenset([effect])
    text = minijax.jit(lambda x: p.bind(p.bind(x))).lower(X).as_text()
    assert seen == [["!stablehlo.token"]] * 2 and text.count("after_all") == 2
    assert_same(minijax.jit(p.bind)(X), X * 1, weak=False)


def _counting(m):
    """A function with an effect of a class of its own, which it says once of programs it is in."""
    effects = jax.extend.core.Effect if m is jax else minijax.extend.core.Effect
    kind = type("Counts", (effects,), {})
    effect = kind()
    p = CORE[m].Primitive(f"counts_{next(_count)}")
    p.def_effectful_abstract_eval(lambda x, *, by: (x, {effect} if x.ndim else set()))
    p.def_impl(lambda x, *, by: x)
    MLIR[m].register_lowering(p, lambda ctx, x, *, by: [x])
    return kind, lambda x: p.bind(m.numpy.asarray(x), by=1)


OWN_EFFECTS = {
    "eager": lambda m, f: f(X),
    "none": lambda m, f: m.jit(f)(1.0),
    "recorded": lambda m, f: len(m.make_jaxpr(lambda x: f(f(x)))(X).effects),
    "jit": lambda m, f: m.jit(f)(X),
    "cond": lambda m, f: m.lax.cond(True, f, f, X),
    "scan": lambda m, f: m.lax.scan(lambda c, _: (f(c), None), X, None, length=2),
    "while": lambda m, f: m.lax.while_loop(lambda c: c[0, 0] < 1, f, X),
    "fori": lambda m, f: m.lax.fori_loop(0, 2, lambda i, c: f(c), X),
    "remat": lambda m, f: m.checkpoint(f)(X),
    "remat under grad": lambda m, f: m.grad(lambda x: m.checkpoint(
        lambda x: (f(m.lax.stop_gradient(x)), x.sum())[1])(x))(X),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN_EFFECTS)
@pytest.mark.parametrize("said", [False, True])
def test_effects_of_ones_own(name, said):
    """Where programs may have them is for their library to say; elsewhere it is an error."""

    def run(m):
        kind, f = _counting(m)
        if said:
            MLIR[m].lowerable_effects.add_type(kind)
        try:
            return OWN_EFFECTS[name](m, f)
        except (ValueError, NotImplementedError) as error:
            return type(error).__name__

    ours, theirs = run(minijax), run(jax)
    assert_same(ours, theirs) if not isinstance(theirs, str) else None
    assert isinstance(theirs, str) == isinstance(ours, str) and (
        not isinstance(theirs, str) or ours == theirs
    )


# -- callbacks and calls -------------------------------------------------------------------------------


def test_callbacks():
    def run(m):
        def rule(ctx, x):
            call = lambda v: (np.sin(v) * 2, np.float32(v.sum()))
            results, token, kept = MLIR[m].emit_python_callback(
                ctx, call, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=True
            )
            assert token is None
            ctx.module_context.add_keepalive(kept)
            return results

        shape = lambda x: [x, m.core.ShapedArray((), np.float32)]
        p = primitive(m, rule, shape, multiple=True)
        f = m.jit(lambda x: p.bind(p.bind(x)[0] + 1))
        return f(X), m.jit(p.bind)(X)

    both(run)


def test_ordered_callbacks():
    """With a token before, the token after is given, and the calls run in order."""

    def run(m):
        seen = []

        def rule(ctx, x, *, number):
            token = hlo.create_token()
            out = [x]
            for count in range(3):
                call = lambda v, count=count: (seen.append((number, count)), v + 1)[1:]
                out, token, kept = MLIR[m].emit_python_callback(
                    ctx, call, token, out, ctx.avals_in, ctx.avals_out, has_side_effect=True
                )
                ctx.module_context.add_keepalive(kept)
                assert "token" in str(token.type)
            return out

        p = primitive(m, rule)
        out = m.jit(lambda x: p.bind(x, number=1))(X)
        out.block_until_ready()
        assert seen == [(1, 0), (1, 1), (1, 2)]
        return out

    both(run)


def test_wrong_callbacks():
    for m in (jax, minijax):

        def rule(ctx, x, m=m):
            results, _, kept = MLIR[m].emit_python_callback(
                ctx, lambda v: (np.float64(3),), None, [x], ctx.avals_in, ctx.avals_out,
                has_side_effect=False,
            )  # fmt: skip
            ctx.module_context.add_keepalive(kept)
            return results

        p = primitive(m, rule)
        with pytest.raises(Exception, match="Incorrect"):
            m.jit(p.bind)(X).block_until_ready()


def test_pruning_calls():
    """`dce_rules` with the rules for primitives that call a program."""

    def run(m, closed):
        pe = __import__(f"{m.__name__}.interpreters.partial_eval", fromlist=["x"])
        core = CORE[m]
        p = core.Primitive("calls")
        p.multiple_results = True
        shape = lambda jaxpr: [v.aval for v in jaxpr.outvars]
        p.def_abstract_eval(
            lambda *xs, call_jaxpr: shape(call_jaxpr.jaxpr if closed else call_jaxpr)
        )
        pe.dce_rules[p] = pe.dce_jaxpr_closed_call_rule if closed else pe.dce_jaxpr_call_rule
        inner = m.make_jaxpr(lambda x, y: [m.lax.sin(x), m.lax.cos(y), m.lax.mul(x, y)])(1.0, 2.0)
        call = inner if closed else inner.jaxpr
        outer = m.make_jaxpr(lambda x, y: p.bind(x, y, call_jaxpr=call))(1.0, 2.0).jaxpr
        out = []
        for used in itertools.product([False, True], repeat=3):
            made, inputs = pe.dce_jaxpr(outer, list(used))
            sizes = [
                len((c.jaxpr if closed else c).eqns)
                for c in (eqn.params["call_jaxpr"] for eqn in made.eqns)
            ]
            out.append((used, list(inputs), sizes, [len(eqn.outvars) for eqn in made.eqns]))
        return out

    for closed in (True, False):
        assert run(minijax, closed) == run(jax, closed)


def test_an_implementation_in_numpy_is_mapped():
    for m, batching in ((jax, jax.interpreters.batching), (minijax, our_batching)):
        p = CORE[m].Primitive("thrice")
        p.def_impl(lambda x: np.multiply(x, 3))
        batching.primitive_batchers[p] = lambda args, dims, p=p: (p.bind(*args), dims[0])
        assert m.vmap(lambda x: p.bind(p.bind(x)))(np.arange(3.0)).tolist() == [0, 9, 18]
