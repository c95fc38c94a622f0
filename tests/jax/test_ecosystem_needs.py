"""What well-known libraries lean on beyond the plainest use of the API: each row is one such
thing.
"""

import gc
import inspect
import traceback
import warnings

import jax
import jax.extend.core
import jax.test_util
import numpy as np
import pytest
from jax.experimental import checkify as their_checkify
from jax.extend import linear_util as their_lu
from jax.interpreters import batching as their_batching
from jax.interpreters import mlir as their_mlir

import minijax
import minijax.test_util
from minijax.experimental import checkify
from minijax.extend import core, linear_util
from minijax.interpreters import batching, mlir
from tests.harness.differential import assert_same

FACES = {
    minijax: (core, checkify, batching, mlir, minijax.test_util, linear_util),
    jax: (jax.extend.core, their_checkify, their_batching, their_mlir, jax.test_util, their_lu),
}
X = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)
MASK = np.array([True, False, True])


def in_both(row):
    """`row(library, faces)` gives the same in both."""
    outs = []
    for m in (minijax, jax):
        names = ("core", "checkify", "batching", "mlir", "test_util", "lu")
        faces = type("Faces", (), dict(zip(names, FACES[m], strict=True)))
        outs.append(row(m, faces))
    ours, theirs = outs
    if isinstance(theirs, str):
        assert ours == theirs
    else:
        assert_same(ours, theirs)


# -- compiled functions as objects -----------------------------------------------------------------


def signature_of(m, faces):
    def f(x, *, y: int = 3):
        return x

    g = m.jit(f, static_argnames="y")
    return str([inspect.signature(g), inspect.signature(g, follow_wrapped=False), g.__signature__])


def class_of(m, faces):
    g = m.jit(lambda x: x)
    return type(g).__name__ + " " + str(g).partition(" at ")[0]


def leaks_checked(m, faces):
    kept = []
    with m.checking_leaks():
        first = m.jit(lambda x: x + 1)(1.0)
        with pytest.raises(Exception, match=r"[Ll]eaked"):
            m.jit(lambda x: kept.append(x) or x)(1.0)
    return first


OBJECTS = {"signature": signature_of, "class": class_of, "leaks": leaks_checked}


@pytest.mark.parametrize("name", OBJECTS)
def test_compiled_functions(name):
    in_both(OBJECTS[name])


# -- names of operations under transformations -----------------------------------------------------


def layered(m):
    def f(x):
        with m.named_scope("m"):
            y = m.lax.sin(x)
            with m.named_scope("n"):
                y = m.lax.cos(y)
        return y * y

    return f


def scoped(m, f):
    def g(x):
        with m.named_scope("outer"):
            return f(x)

    return g


NAMED = {
    "plain": lambda m, f: f,
    "jvp": lambda m, f: lambda x: m.jvp(f, (x,), (x,)),
    "grad": lambda m, f: m.grad(f),
    "vmap": lambda m, f: lambda x: m.vmap(f)(x[None]),
    "vmap of grad": lambda m, f: lambda x: m.vmap(m.grad(f))(x[None]),
    "grad in a scope": lambda m, f: scoped(m, m.grad(f)),
    "grad of a scope": lambda m, f: m.grad(scoped(m, f)),
    "vmap of grad in a scope": lambda m, f: lambda x: scoped(m, m.vmap(m.grad(f)))(x[None]),
    "grad of jit": lambda m, f: m.grad(m.jit(f)),
    "jit of grad": lambda m, f: m.jit(m.grad(f)),
    "grad of grad": lambda m, f: m.grad(m.grad(f)),
    "linearize": lambda m, f: lambda x: m.linearize(f, x)[1](x),
    "jvp of vmap": lambda m, f: lambda x: m.jvp(m.vmap(f), (x[None],), (x[None],)),
}


def stacks(jaxpr):
    for eqn in jaxpr.eqns:
        yield str(eqn.source_info.name_stack)
        if "jaxpr" in eqn.params:
            yield from ("inside " + name for name in stacks(eqn.params["jaxpr"].jaxpr))


@pytest.mark.parametrize("name", NAMED)
def test_names_of_operations(name):
    in_both(
        lambda m, faces: str(
            sorted({*stacks(m.make_jaxpr(NAMED[name](m, layered(m)))(np.float32(1)).jaxpr)})
        )
    )


# -- auxiliary data of any kind --------------------------------------------------------------------

THING = object()
AUX = {
    "grad": lambda m, f: m.grad(f, has_aux=True)(2.0)[1],
    "value_and_grad": lambda m, f: m.value_and_grad(f, has_aux=True)(2.0)[0][1],
    "vjp": lambda m, f: m.vjp(f, 2.0, has_aux=True)[2],
    "jvp": lambda m, f: m.jvp(f, (2.0,), (1.0,), has_aux=True)[2],
    "linearize": lambda m, f: m.linearize(f, 2.0, has_aux=True)[2],
    "jacrev": lambda m, f: m.jacrev(f, has_aux=True)(2.0)[1],
    "grad of grad": lambda m, f: m.grad(
        lambda x: m.grad(lambda y: f(x * y), has_aux=True)(x)[0], has_aux=False
    )(2.0),
}


@pytest.mark.parametrize("name", AUX)
def test_auxiliary_data(name):
    def run(m):
        aux = (THING, "text", np.arange(2), np.float32(1), True, 1.5)
        return AUX[name](m, lambda x: (x * x, (x * 3, *aux)))

    ours, theirs = run(minijax), run(jax)
    if isinstance(theirs, tuple):
        assert [type(x).__name__ for x in ours] == [type(x).__name__ for x in theirs]
        assert ours[1] is theirs[1] is THING and ours[2] == theirs[2]
        ours, theirs = ours[0], theirs[0]
    assert_same(ours, theirs)


# -- programs read, and traces defined, by libraries -----------------------------------------------


def test_closed_programs_have_the_fields_of_open_ones():
    def run(m, faces):
        table = m.numpy.arange(3.0)
        closed = m.make_jaxpr(lambda x: m.numpy.sin(x) * table)(X)
        fields = (closed.constvars, closed.invars, closed.outvars, closed.eqns)
        return str([[len(field) for field in fields], closed.is_high])

    in_both(run)


TRACED = {
    "unary": lambda m, x: [
        getattr(m.lax, name)(x)
        for name in (
            "cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin",
            "sqrt", "tan", "tanh", "neg", "abs", "floor", "erf", "is_finite",
        )
    ],
    "binary": lambda m, x: [
        f(x, x) for f in (m.lax.mul, m.lax.add, m.lax.div, m.lax.sub, m.lax.max, m.lax.pow, m.lax.eq)
    ],
    "stated": lambda m, x: [
        m.lax.exp(x, accuracy=m.lax.AccuracyMode.HIGHEST), m.lax.mul(x, x, out_dtype=np.float32),
    ],
    "shapes": lambda m, x: [
        m.lax.integer_pow(x, 2), m.lax.reshape(x, (6,)), m.lax.transpose(x, (1, 0)),
        m.lax.reduce_precision(x, 5, 10), m.lax.rev(x, (0,)), m.lax.convert_element_type(x, int),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", TRACED)
def test_traces_of_libraries(name):
    """A trace that notes primitives and params, and leaves the work to the one around it."""

    def run(m, faces):
        class Noted(m.core.Tracer):
            def __init__(self, trace, value):
                super().__init__(trace, m.typeof(value))
                self.value = value

        class Noting(m.core.Trace):
            def __init__(self, parent):
                super().__init__()
                self.outer, self.found = parent, []

            def process_primitive(self, primitive, tracers, params):
                self.found.append(f"{primitive} {sorted(params.items())}")
                values = [x.value if isinstance(x, Noted) else x for x in tracers]
                avals = [m.typeof(x) for x in values]
                out = primitive.bind_with_trace(self.outer, values, avals, params)
                return m.tree.map(lambda x: Noted(self, x), out)

        def traced(x):
            with faces.core.take_current_trace() as parent:
                trace = Noting(parent)
                with faces.core.set_current_trace(trace):
                    outs = TRACED[name](m, Noted(trace, x))
            found.extend(trace.found)
            return [out.value for out in outs]

        found = []
        program = str(m.make_jaxpr(traced)(X))
        outs = [
            np.asarray(out).astype(float).round(4).tolist() for out in traced(m.numpy.asarray(X))
        ]
        return f"{found} {program} {outs}"

    in_both(run)


@pytest.mark.parametrize("name", ["take_current_trace", "set_current_trace"])
def test_traces_of_dropped_contexts_stay(name):
    """A trace stays current until its context is left, not until the context is collected.

    Functions of `linear_util` hold contexts across a `yield`, and are dropped if what they wrap fails.
    """

    def run(m, faces):
        def state():
            return m.core.get_opaque_trace_state(convention="nnx")

        def f(x):
            before = state()
            outer = faces.core.take_current_trace()
            trace = outer.__enter__()
            outermost = state()
            if name == "set_current_trace":
                inner = faces.core.set_current_trace(trace)
                inner.__enter__()
                del inner
            else:
                outer.__exit__(None, None, None)
                dropped = faces.core.take_current_trace()
                dropped.__enter__()
                del dropped
            gc.collect()
            seen.extend([before == outermost, state() == before, state() == outermost])
            outer.__exit__(None, None, None)
            seen.append(state() == before)
            return x

        seen = []
        m.vmap(f)(m.numpy.asarray(X))
        return str(seen)

    in_both(run)


def held(m, faces):
    """`run(f)`: f under a trace that holds values, and gives calls with rules layers of its own."""

    class Held(m.core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, m.typeof(value))
            self.value = value

    class Holding(m.core.Trace):
        def __init__(self, outer, names):
            super().__init__()
            self.outer, self.names = outer, names

        def lowered(self, xs):
            return tuple(x.value if isinstance(x, Held) else x for x in xs)

        def bind(self, primitive, tracers, params):
            self.names.append(primitive.name)
            values = self.lowered(tracers)
            avals = tuple(map(m.typeof, values))
            return m.tree.map(
                lambda x: Held(self, x),
                primitive.bind_with_trace(self.outer, values, avals, params),
            )

        def process_primitive(self, primitive, tracers, params):
            assert m.numpy.ones(2).sum() == 2  # no trace is at work
            return self.bind(primitive, tracers, params)

        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            subfuns = (layer(fun, self.names), layer(jvp, self.names))
            params = {"subfuns": subfuns, "symbolic_zeros": symbolic_zeros}
            return self.bind(primitive, tracers, params)

        def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, *, out_trees, **_):
            self.names.append(fun.debug_info.func_name)
            with faces.core.set_current_trace(self):
                return fun.call_wrapped(*tracers)

    zero = m.custom_derivatives.SymbolicZero

    @faces.lu.transformation2
    def layer(f, names, *args):
        with faces.core.take_current_trace() as outer:
            trace = Holding(outer, names)
            with faces.core.set_current_trace(trace):
                outs = f(*[x if isinstance(x, zero) else Held(trace, x) for x in args])
        return trace.lowered(outs)

    def run(f):
        def g(*args):
            info = m.api_util.debug_info("held", f, args, {})
            fun = faces.lu.wrap_init(lambda *args: [f(*args)], debug_info=info)
            return layer(fun, names).call_wrapped(*args)[0]

        return g

    names = []
    return run, names


def own_jvp(m, symbolic_zeros):
    @m.custom_jvp
    def f(x, y):
        return m.lax.sin(x) * y

    def rule(primals, tangents):
        zero = m.custom_derivatives.SymbolicZero
        x, y = primals
        dx, dy = (m.lax.full_like(x, 3) if isinstance(t, zero) else t for t in tangents)
        return f(x, y), 5 * dx + m.lax.cos(x) * dy

    f.defjvp(rule, symbolic_zeros=symbolic_zeros)
    return f


def own_vjp(m):
    f = m.custom_vjp(lambda x, y: m.lax.sin(x) * y)
    f.defvjp(lambda x, y: (f(x, y), y), lambda y, ct: (ct * y * 7, ct))
    return f


RULED = {
    "jvp": lambda m: own_jvp(m, False),
    "jvp with symbolic zeros": lambda m: own_jvp(m, True),
    "vjp": own_vjp,
}
AROUND = {
    "nothing": lambda m, f: f,
    "jit": lambda m, f: m.jit(f),
    "vmap": lambda m, f: lambda x, y: m.vmap(f, (0, None))(x * np.ones((2, 1), np.float32), y),
    "jvp": lambda m, f: lambda x, y: m.jvp(f, (x, y), (y, x)),
    "jvp in x": lambda m, f: lambda x, y: m.jvp(lambda x: f(x, y), (x,), (y,)),
    "grad": lambda m, f: m.grad(lambda x, y: f(x, y).sum(), (0, 1)),
    "grad of jit": lambda m, f: m.grad(m.jit(lambda x, y: f(x, y).sum())),
    "vmap of grad": lambda m, f: (
        lambda x, y: m.vmap(m.grad(lambda x, y: f(x, y).sum()))(x[None], y[None])
    ),
    "jvp of jvp": lambda m, f: (
        lambda x, y: m.jvp(lambda x: m.jvp(lambda x: f(x, y), (x,), (y,))[1], (x,), (y,))
    ),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("rule", RULED)
def test_traces_of_libraries_take_calls_with_rules(rule, around):
    def run(m, faces):
        x, y = m.numpy.asarray(X[0]), m.numpy.asarray(X[1])
        inside, names = held(m, faces)
        out = AROUND[around](m, inside(RULED[rule](m)))(x, y)
        assert "sin" in names
        return out

    in_both(run)


def test_traces_of_libraries_inherit():
    def run(m, faces):
        trace = type("Empty", (m.core.Trace,), {})()
        known = [trace.is_valid(), trace.full_raise(2.0), trace.full_raise(trace) is trace]
        for f in (own_jvp(m, False), own_vjp(m), m.lax.add):
            with faces.core.set_current_trace(trace):
                try:
                    f(1.0, 2.0)
                except NotImplementedError as error:
                    known.append(str(error).partition("process_custom")[1])
        trace.invalidate()
        return str([*known, trace.is_valid()])

    in_both(run)


MODES = ("auto", "tracebackhide", "remove_frames", "quiet_remove_frames")


@pytest.mark.parametrize("mode", MODES)
def test_ways_of_filtering_tracebacks(mode):
    def run(m, faces):
        def failing(x):
            raise ValueError("mine")

        m.config.update("jax_traceback_filtering", mode)
        try:
            m.grad(m.jit(m.vmap(failing)))(X[0])
        except ValueError as error:
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
            cause = error.__cause__
        finally:
            m.config.update("jax_traceback_filtering", "auto")
        shown = [f.f_code.co_name for f in frames if "__tracebackhide__" not in f.f_locals]
        whole = cause is not None and len([*traceback.walk_tb(cause.__traceback__)]) > len(shown)
        return f"{shown} {type(cause).__name__} {whole}"

    in_both(run)


# -- what a backward rule may give -----------------------------------------------------------------

BACKWARD = {
    "one for a pair": (lambda g: (g,), ((1.0, 2.0),)),
    "one for a dict": (lambda g: (g,), ({"a": 1.0},)),
    "one inside": (lambda g: ({"a": g},), ({"a": (1.0, 2.0)},)),
    "None inside": (lambda g: ((g, None),), ((1.0, 2.0),)),
    "a list": (lambda g: [g, g], (1.0, (2.0, 3.0))),
    "no tuple": (lambda g: g, ((1.0, 2.0),)),
    "another container": (lambda g: ([g, g],), ((1.0, 2.0),)),
    "a key too many": (lambda g: ({"a": g, "b": g},), ({"a": 1.0},)),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_backward_rules(name):
    def run(m, faces):
        bwd, args = BACKWARD[name]

        @m.custom_vjp
        def f(*args):
            return m.tree.leaves(args)[0] * 2

        f.defvjp(lambda *args: (f(*args), args), lambda _, g: bwd(g))
        try:
            return m.grad(lambda *args: f(*args))(*args)
        except TypeError:
            return "refused"

    in_both(run)


def test_shardings_as_any_pytree():
    class Places(dict):
        """A container that cannot be hashed."""

    for m in (minijax, jax):
        m.tree_util.register_pytree_node(
            Places,
            lambda p: (list(p.values()), tuple(p)),
            lambda k, v: Places(zip(k, v, strict=True)),
        )

    def run(m, faces):
        one = m.sharding.SingleDeviceSharding(m.devices()[0])
        f = m.jit(lambda x: Places(a=x, b=x + 1), out_shardings=Places(a=one, b=None))
        return dict(f(X))

    in_both(run)


def test_attention_in_float16():
    def run(m, faces):
        q = m.numpy.asarray(X[None, :, None, :], np.float16)
        return m.nn.dot_product_attention(q, q, q).astype(np.float32).round(2)

    in_both(run)


# -- masks beside positional axes; shardings of types ----------------------------------------------

REDUCTIONS = ("mean", "sum", "prod", "var", "std", "all", "any")


@pytest.mark.parametrize("name", REDUCTIONS)
def test_mask_beside_an_axis(name):
    def run(m, faces):
        x, mask = m.numpy.asarray(X), m.numpy.asarray(MASK)
        return [getattr(x, name)(-1, where=mask) for _ in range(2)]

    in_both(run)


class Held:
    """An object that stands for an array, and passes its attributes on."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value

    def __getattr__(self, name):
        return getattr(self.value, name)


HELD = {
    "add": lambda m, a, b: a.value + b,
    "power": lambda m, a, b: a.value**b,
    "compare": lambda m, a, b: (a.value < b) * a.value,
    "matmul": lambda m, a, b: a.value @ b,
    "stack": lambda m, a, b: m.numpy.stack([a, b]),
    "zeros_like": lambda m, a, b: m.numpy.zeros_like(a) + b.value,
    "asarray": lambda m, a, b: m.numpy.asarray(a) + b.value,
    "weak": lambda m, a, b: a.value + Held(b.value[0]),
}


@pytest.mark.parametrize("name", HELD)
def test_objects_that_hold_arrays(name):
    def run(m, faces):
        x = m.numpy.asarray(X[0])
        f = lambda x: HELD[name](m, Held(x), Held(x + 1))
        total = lambda x: m.numpy.sum(f(x))
        number = lambda y: Held(y).value + Held(y * 2) + Held(3.0)
        return f(x), m.grad(total)(x), m.vmap(f)(x[None]), m.grad(number)(2.0)

    in_both(run)


SPLIT = {
    "bernoulli": lambda m, k, x, s: m.random.bernoulli(k, 0.5, (2, 3), out_sharding=s),
    "normal": lambda m, k, x, s: m.random.normal(k, (2, 3), out_sharding=s),
    "zeros": lambda m, k, x, s: m.numpy.zeros((2, 3), out_sharding=s),
    "einsum": lambda m, k, x, s: m.numpy.einsum("ij,kj->ik", x, x, out_sharding=s),
    "reshape": lambda m, k, x, s: m.numpy.reshape(x, (2, 3), out_sharding=s),
}


@pytest.mark.parametrize("name", SPLIT)
def test_sharding_of_a_type(name):
    def run(m, faces):
        x = m.numpy.asarray(X)
        where = m.typeof(x).sharding
        f = lambda k, x: SPLIT[name](m, k, x, where)
        return f(m.random.key(0), x), m.jit(f)(m.random.key(0), x)

    in_both(run)


def test_sharding_over_the_axes_of_the_mesh_in_force():
    def run(m, faces):
        kinds = (m.sharding.AxisType.Auto,)
        with m.set_mesh(m.make_mesh((1,), ("a",), axis_types=kinds)):
            axes = m.sharding.get_abstract_mesh()
            where = m.sharding.NamedSharding(axes, m.P("a"))
            out = m.lax.with_sharding_constraint(m.numpy.asarray(X), where)
            return f"{out.sharding.spec} {type(out.sharding.mesh).__name__} {np.asarray(out)}"

    in_both(run)


LABELS = ("1j,kj->1k", "0j,1j->01", "_j,kj->_k", "i j, k j -> i k")


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_einsum(labels):
    in_both(lambda m, faces: m.numpy.einsum(labels, X, X))


# -- rules that libraries bring --------------------------------------------------------------------


def primitive(faces, name, value, batch):
    p = faces.core.Primitive(name)
    p.def_impl(value)
    p.def_abstract_eval(lambda x: x)
    faces.mlir.register_lowering(p, faces.mlir.lower_fun(value, multiple_results=False))
    faces.batching.primitive_batchers[p] = batch
    return p


def watcher(m, faces, seen):
    """A primitive that notes that it was mapped."""

    def batch(args, dims):
        seen.append(True)
        return p.bind(*args), dims[0]

    p = primitive(faces, "needs_watch", lambda x: x, batch)
    return p.bind


def total(m, faces):
    """A primitive whose result is the same along a mapped axis."""
    p = primitive(faces, "needs_total", lambda x: x, lambda a, d: (p.bind(a[0].max(d[0])), None))
    return p.bind


def counter_of_while(m, watch, whole, x):
    step = lambda c: (watch(c[0]) + 1, c[1] * x)
    return m.lax.while_loop(lambda c: whole(c[1]) < 9.0, step, (0, x))


def counter_of_scan(m, watch, whole, x):
    step = lambda c, _: ((watch(c[0]) + whole(c[1]), c[1] * x), None)
    return m.lax.scan(step, (m.numpy.float32(0), x), None, length=3)[0]


def counter_of_cond(m, watch, whole, x):
    def step(c):
        n, y = m.lax.cond(c[0] > 1, lambda n, y: (n, y), lambda n, y: (n, y * x), *c)
        return watch(n) + 1, y

    return m.lax.while_loop(lambda c: c[0] < 3, step, (0, x))


def counter_of_nested(m, watch, whole, x):
    inner = lambda i, c: (watch(c[0]) + i, c[1] * x)
    step = lambda i, c: m.lax.fori_loop(0, 2, inner, c)
    return m.lax.fori_loop(0, 2, step, (0, x))


COUNTERS = {
    "while": counter_of_while, "scan": counter_of_scan, "cond": counter_of_cond,
    "nested": counter_of_nested,
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTERS)
def test_what_a_loop_does_not_map(name):
    def run(m, faces):
        seen = []
        watch, whole = watcher(m, faces, seen), total(m, faces)
        out = m.vmap(lambda x: COUNTERS[name](m, watch, whole, x))(np.array([1.5, 2.0], "f"))
        return out, len(seen) > 0

    in_both(run)


def test_rules_told_the_axis():
    def run(m, faces):
        told = []

        def batch(size, name, trace, args, dims):
            told.append((size, trace is None))
            return args[0], dims[0]

        p = faces.core.Primitive("needs_axis")
        p.def_abstract_eval(lambda x: x)
        faces.batching.axis_primitive_batchers[p] = batch
        out = m.vmap(p.bind, axis_name="i")(m.numpy.asarray(X))
        return out, str(told)

    (ours, our_told), (theirs, their_told) = (
        run(m, type("F", (), {"core": FACES[m][0], "batching": FACES[m][2]}))
        for m in (minijax, jax)
    )
    assert our_told == their_told
    assert_same(ours, theirs)


def test_python_in_a_lowering_rule():
    def run(m, faces):
        def lower(ctx, x):
            avals = ctx.avals_in, ctx.avals_out
            call = lambda x: (np.cos(np.asarray(x)),)
            results, _, kept = faces.mlir.emit_python_callback(
                ctx, call, None, [x], *avals, has_side_effect=False
            )
            ctx.module_context.add_keepalive(kept)
            return results

        p = faces.core.Primitive("needs_python")
        p.def_abstract_eval(lambda x: x)
        faces.mlir.register_lowering(p, lower)
        return m.jit(lambda x: p.bind(x) + 1)(X)

    in_both(run)


# -- checks ----------------------------------------------------------------------------------------


def positive(m, faces):
    def f(x):
        total = m.numpy.sum(x)
        faces.checkify.check(m.numpy.all(x > 0), "{x} {total!r}", x=x, total=total)
        return x * 2

    return f


def keyed(m, faces):
    def f(key):
        faces.checkify.check(False, "{key} {x!r}", key=key, x=m.random.bits(key))
        return key

    return f


CHECKS = {
    "array": lambda m, p, k: (p, X[0]),
    "jit": lambda m, p, k: (m.jit(p), X[0]),
    "fine": lambda m, p, k: (m.jit(p), X[0] + 3),
    "key": lambda m, p, k: (k, m.random.key(1)),
    "pmap": lambda m, p, k: (m.pmap(p), X[:1]),
    "pmap, fine": lambda m, p, k: (m.pmap(p), X[1:]),
    "pmap of vmap": lambda m, p, k: (m.pmap(m.vmap(p)), X[None]),
    "pmap after another": lambda m, p, k: (lambda x: m.pmap(p)(p(x)), X[1:]),
}


@pytest.mark.parametrize("name", CHECKS)
def test_messages_of_checks(name):
    def run(m, faces):
        f, x = CHECKS[name](m, positive(m, faces), keyed(m, faces))
        error, _ = faces.checkify.checkify(f)(x)
        try:
            error.throw()
            raised = "nothing"
        except ValueError as failure:
            raised = str(failure)
        return f"{error.get()}\n{raised}"

    in_both(run)


def test_where_differences_are_taken():
    def run(m, faces):
        seen = []

        def f(x):
            if isinstance(x, (np.ndarray, m.Array)) and not isinstance(x, m.core.Tracer):
                seen.append(np.asarray(x, np.float32))
            return m.numpy.sin(x)

        faces.test_util.check_grads(f, (X[0],), 1, modes=("fwd",))
        return np.sort(np.stack(seen), axis=0)

    in_both(run)


# -- what rules of custom derivatives are given ----------------------------------------------------


def scaled(m):
    """A function whose rules ask each argument for its shape, called with a number."""

    @m.custom_vjp
    def f(x, n):
        return x * n

    def fwd(x, n):
        return x * n, m.numpy.zeros((2, *n.shape), n.dtype) + n

    f.defvjp(fwd, lambda kept, ct: (ct * kept[0], None))
    return lambda x: f(x, 3)


def powered(m):
    @m.custom_jvp
    def f(x, n):
        return x**n

    @f.defjvp
    def _(primals, tangents):
        x, n = primals
        return f(x, n), m.numpy.full(n.shape, n) * x * tangents[0]

    return lambda x: f(x, 2)


def scanned(m, f):
    return lambda x: m.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


RECORDED = {
    "grad of jit": lambda m, f: m.grad(m.jit(f)),
    "jit of grad of jit": lambda m, f: m.jit(m.grad(m.jit(f))),
    "grad of checkpoint": lambda m, f: m.grad(m.checkpoint(f)),
    "grad of scan": lambda m, f: m.grad(scanned(m, f)),
    "grad of jit of vmap": lambda m, f: m.grad(m.jit(lambda x: m.vmap(f)(x[None])[0])),
    "vmap of grad of jit": lambda m, f: lambda x: m.vmap(m.grad(m.jit(f)))(x[None]),
    "grad of a program": lambda m, f: m.grad(
        lambda x: m.core.eval_jaxpr(m.make_jaxpr(f)(x).jaxpr, (), x)[0]
    ),
}


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("made", [scaled, powered])
def test_rules_of_recorded_calls_are_given_arrays(made, name):
    in_both(lambda m, faces: RECORDED[name](m, made(m))(np.float32(1.5)))


@pytest.mark.parametrize("known", [True, False])
def test_constants_stand_in_the_order_of_their_use(known):
    def run(m, faces):
        jnp, found = m.numpy, []

        def f(x):
            start = jnp.array(0) if known else x[0].astype(int)
            rows = jnp.zeros((5, 2))

            def g(y):
                places = (jnp.arange(5) + start) % 5
                return y * rows[(start - 1) % 5] + places.sum()

            found.extend(c.shape for c in m.make_jaxpr(g)(x).consts)
            return x

        m.jit(f)(jnp.ones(2))
        return str(found)

    in_both(run)


# -- values of types that libraries define ---------------------------------------------------------


class Boxed:
    def __init__(self, value):
        self.value = value


def taken(m):
    from importlib import import_module

    xla = import_module(f"{m.__name__}.interpreters.xla")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # upstream means to end it
        types = m.core.pytype_aval_mappings
    kind = type("Boxed", (Boxed,), {})
    types[kind] = lambda x: m.core.ShapedArray(x.value.shape, x.value.dtype)
    as_numpy = xla.canonicalize_dtype_handlers[np.ndarray]
    xla.canonicalize_dtype_handlers[kind] = lambda x: as_numpy(x.value)
    return kind(np.float32([0.5, 2]))


TAKEN = {
    "jnp": lambda m, x: m.numpy.sin(x),
    "lax": lambda m, x: m.lax.sin(x),
    "jit": lambda m, x: m.jit(lambda x: x + 1)(x),
    "grad": lambda m, x: m.grad(lambda x: (x * x).sum())(x),
    "typeof": lambda m, x: str(m.typeof(x)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_types_that_are_registered_are_arguments(name):
    in_both(lambda m, faces: TAKEN[name](m, taken(m)))


# -- single things ---------------------------------------------------------------------------------


def formats(m):
    from importlib import import_module

    layout = import_module(f"{m.__name__}.experimental.layout")
    place = m.sharding.SingleDeviceSharding(m.devices()[0])
    return layout.Format(layout.Layout((0, 1)), place), layout.Format(None, place)


def older_jit(m):
    from importlib import import_module

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # upstream means to end it
        return import_module(f"{m.__name__}.experimental.pjit").pjit


def product(m, a, b):
    return m.numpy.matmul(
        np.ones((*a, 2, 3), np.float32), np.arange(3, dtype=np.float32).reshape(b)
    )


class Quantity:
    """Quax's values have a shape, a dtype and a method `aval`."""

    shape, dtype, ndim, size = (2, 3), np.dtype("float32"), 2, 6

    def aval(self):
        return 3


def told_of(call, value):
    try:
        return str(call(value))
    except TypeError:
        return "TypeError"


LIKE_ARRAYS = {
    "zeros_like": lambda m, q: m.numpy.zeros_like(q),
    "ones_like": lambda m, q: m.numpy.ones_like(q, dtype=int),
    "full_like": lambda m, q: m.numpy.full_like(q, 2),
    "empty_like": lambda m, q: m.numpy.empty_like(q),
    "lax.full_like": lambda m, q: m.lax.full_like(q, 2),
    "result_type": lambda m, q: m.numpy.result_type(q, m.numpy.int8, 1.0),
    "can_cast": lambda m, q: m.numpy.can_cast(q, "int32"),
    "iscomplexobj": lambda m, q: m.numpy.iscomplexobj(q),
    "add": lambda m, q: m.numpy.add(q, 1),
    "lax.add": lambda m, q: m.lax.add(q, q),
    "typeof": lambda m, q: m.typeof(q),
    "eval_shape": lambda m, q: m.eval_shape(lambda x: x, q),
    "make_jaxpr": lambda m, q: m.make_jaxpr(lambda x: x)(q),
    "jit": lambda m, q: m.jit(lambda x: x)(q),
    "vmap": lambda m, q: m.vmap(lambda x: x)(q),
    "grad": lambda m, q: m.grad(lambda x: 1.0)(q),
    "split": lambda m, q: m.random.split(q),
}


@pytest.mark.parametrize("name", LIKE_ARRAYS)
def test_values_with_a_method_aval(name):
    ours, theirs = (
        told_of(lambda q, m=m: LIKE_ARRAYS[name](m, q), Quantity()) for m in (minijax, jax)
    )
    assert ours == theirs


def attributes_of_primitive(p):
    """Set attributes of a primitive, its own `bind` among them, and take them away again."""
    was = p.call_primitive
    p.call_primitive, p.ours, p.bind = not was, [1], lambda *args, **params: (args, params)
    told = str((p.call_primitive, p.ours, p.bind(1, y=2)))
    p.call_primitive = was
    del p.ours, p.bind
    return told + str((p.call_primitive, hasattr(p, "ours"), callable(p.bind)))


def with_other_code(fun):
    """Replace the code of a public function in place, as Qwix does, and restore it."""
    was = fun.__code__
    fun.__code__ = (lambda *args, **kwargs: str((args, kwargs))).__code__
    try:
        return fun(1, y=2)
    finally:
        fun.__code__ = was


SINGLE = {
    "expand_dims, range": lambda m, faces: m.numpy.expand_dims(X, range(2)),
    "expand_dims, array": lambda m, faces: m.numpy.expand_dims(X, np.array([0, 2])),
    "roll, range": lambda m, faces: m.numpy.roll(X, (1, 1), range(2)),
    "matmul, missing and 1": lambda m, faces: product(m, (), (1, 3, 1)),
    "matmul, 1 and missing": lambda m, faces: product(m, (1,), (3, 1)),
    "matmul, 2 and 1": lambda m, faces: product(m, (2,), (1, 1, 3, 1)),
    "matmul, 1 and 1": lambda m, faces: product(m, (1, 2), (1, 1, 3, 1)),
    "device_put, layout": lambda m, faces: m.device_put(X, formats(m)[0]),
    "device_put, format": lambda m, faces: str(m.device_put(X, formats(m)[1]).committed),
    "device_put, own format": lambda m, faces: m.device_put(
        m.numpy.asarray(X), m.numpy.asarray(X).format
    ),
    "device_put, tree": lambda m, faces: m.device_put([X, X], [formats(m)[1], None])[0],
    "pjit": lambda m, faces: older_jit(m)(lambda x: x * 2)(X),
    "vector space": lambda m, faces: str(m.typeof(X).at_least_vspace()),
    "calls": lambda m, faces: str(
        [getattr(faces.core.primitives, n).call_primitive for n in ("jit_p", "add_p", "scan_p")]
    ),
    "attributes of a primitive": lambda m, faces: attributes_of_primitive(
        faces.core.Primitive("p")
    ),
    "attributes of call": lambda m, faces: attributes_of_primitive(faces.core.primitives.call_p),
    "attributes of scan": lambda m, faces: attributes_of_primitive(m.lax.scan_p),
    "code of dot_general": lambda m, faces: with_other_code(m.lax.dot_general),
    "code of conv": lambda m, faces: with_other_code(m.lax.conv_general_dilated),
    "code of einsum": lambda m, faces: with_other_code(m.numpy.einsum),
    "devices in order": lambda m, faces: str(
        [d.id for d in formats(m)[0].sharding._addressable_device_assignment]
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_single_needs(name):
    in_both(SINGLE[name])


# -- flax's experimental types ---------------------------------------------------------------------
