"""Types and primitives that a library defines, made on upstream or on minijax: shared by the
tests.
"""

import importlib
from dataclasses import dataclass
from types import SimpleNamespace

# Later versions of upstream have other names, and fewer kinds of types.
upstream_has_them = hasattr(importlib.import_module("jax.experimental.hijax"), "VJPHiPrimitive")


def make(name: str) -> SimpleNamespace:
    """The library `name`, its hijax, and what is defined on it: quantized arrays, tuples, boxes."""
    j = importlib.import_module(name)
    importlib.import_module(f"{name}.numpy")
    h = importlib.import_module(f"{name}.experimental.hijax")
    if not hasattr(h, "MappingSpec"):  # upstream has it, and does not export it yet
        spec = importlib.import_module(f"{name}._src.hijax").MappingSpec
    else:
        spec = h.MappingSpec
    cur_qdd = importlib.import_module(f"{name}.experimental").cur_qdd
    L = SimpleNamespace(j=j, jnp=j.numpy, h=h, MappingSpec=spec, cur_qdd=cur_qdd)
    _quantized(L)
    _tuples(L)
    _products(L)
    _boxes(L)
    return L


def _quantized(L):
    j, jnp, h = L.j, L.jnp, L.h

    @dataclass(frozen=True)
    class QArray:
        qvalue: object
        scale: object

    @dataclass(frozen=True)
    class QSpec(L.MappingSpec):
        pass

    @dataclass(frozen=True)
    class QPspec(h.HiPspec):
        spec: object

        def to_lo(self):
            return (self.spec, self.spec)

    @dataclass(frozen=True)
    class QTy(h.HiType):
        shape: tuple

        def lo_ty(self):
            values = h.ShapedArray(self.shape, jnp.dtype("int8"))
            return [values, h.ShapedArray(self.shape[:-1], jnp.dtype("float32"))]

        def lower_val(self, q):
            return [q.qvalue, q.scale]

        def raise_val(self, qvalue, scale):
            return QArray(qvalue, scale)

        def to_tangent_aval(self):
            return h.ShapedArray(self.shape, jnp.dtype("float32"))

        def str_short(self, short_dtypes=False, mesh_axis_types=False):
            return f"q8[{','.join(map(str, self.shape))}]"

        __repr__ = str_short

        def dec_rank(self, size, spec):
            assert self.shape[0] == size
            return QTy(self.shape[1:])

        def inc_rank(self, size, spec):
            return QTy((size, *self.shape))

        def leading_axis_spec(self):
            return QSpec()

        def shard(self, mesh, manual_axes, check_vma, spec):
            return QTy(self.lo_ty()[0].shard(mesh, manual_axes, check_vma, spec.spec).shape)

        def unshard(self, mesh, check_vma, spec):
            return QTy(self.lo_ty()[0].unshard(mesh, check_vma, spec.spec).shape)

        def _neg(self, tracer):
            return L.quantize(-L.dequantize(tracer))

        double = h.aval_method(lambda self: L.quantize(2 * L.dequantize(self)))
        rank = h.aval_property(lambda self: len(self.shape))

    h.register_hitype(QArray, lambda q: QTy(q.qvalue.shape))

    class Quantize(h.VJPHiPrimitive):
        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), QTy(x.shape), {}
            super().__init__()

        def expand(self, x):
            scale = jnp.max(jnp.abs(x), axis=-1) / 127.0
            return QArray(jnp.round(x / scale[..., None]).astype(jnp.int8), scale)

        def vjp_fwd(self, nzs_in, x):
            return self(x), None

        def vjp_bwd_retval(self, res, g):
            return (g,)

        def jvp(self, primals, tangents):
            return self(*primals), tangents[0]

        def batch(self, axis_data, args, dims):
            (x,), (d,) = args, dims
            return L.quantize(jnp.moveaxis(x, d, 0)), QSpec()

    class Dequantize(h.VJPHiPrimitive):
        def __init__(self, q):
            self.in_avals, self.params = (q,), {}
            self.out_aval = h.ShapedArray(q.shape, jnp.dtype("float32"))
            super().__init__()

        def expand(self, q):
            return q.qvalue.astype("float32") * q.scale[..., None]

        def vjp_fwd(self, nzs_in, q):
            return self(q), None

        def vjp_bwd_retval(self, res, g):
            return (g,)

        def jvp(self, primals, tangents):
            return self(*primals), tangents[0]

        def batch(self, axis_data, args, dims):
            return L.dequantize(*args), 0

    L.QArray, L.QSpec, L.QTy, L.QPspec = QArray, QSpec, QTy, QPspec
    L.quantize = lambda x: Quantize(j.typeof(x))(x)
    L.dequantize = lambda q: Dequantize(j.typeof(q))(q)


def _tuples(L):
    j, h = L.j, L.h

    @dataclass(frozen=True)
    class Tup:
        elts: tuple

    @dataclass(frozen=True)
    class TupSpec(L.MappingSpec):
        val: tuple

    @dataclass(frozen=True)
    class TupTy(h.HiType):
        tys: tuple

        def lo_ty(self):
            return list(self.tys)

        def lower_val(self, tup):
            return list(tup.elts)

        def raise_val(self, *los):
            return Tup(tuple(los))

        def to_tangent_aval(self):
            return TupTy(tuple(ty.to_tangent_aval() for ty in self.tys))

        def vspace_zero(self):
            return L.tup(*[L.jnp.zeros(ty.shape, ty.dtype) for ty in self.tys])

        def vspace_add(self, x, y):
            return L.tup(*[L.get(x, i) + L.get(y, i) for i in range(len(self.tys))])

        def str_short(self, short_dtypes=False, mesh_axis_types=False):
            return "Tup{" + ",".join(ty.str_short(short_dtypes) for ty in self.tys) + "}"

        __repr__ = str_short

        def dec_rank(self, size, spec):
            return TupTy(tuple(_less(t, d) for t, d in zip(self.tys, spec.val)))

        def inc_rank(self, size, spec):
            return TupTy(tuple(_more(t, size, d) for t, d in zip(self.tys, spec.val)))

    def _less(ty, d):
        return ty if d is None else ty.update(shape=(*ty.shape[:d], *ty.shape[d + 1 :]))

    def _more(ty, size, d):
        return ty if d is None else ty.update(shape=(*ty.shape[:d], size, *ty.shape[d:]))

    h.register_hitype(Tup, lambda t: TupTy(tuple(map(j.typeof, t.elts))))

    class MakeTup(h.VJPHiPrimitive):
        def __init__(self, *elts):
            self.in_avals, self.out_aval, self.params = elts, TupTy(elts), {}
            super().__init__()

        def expand(self, *elts):
            return Tup(elts)

        def vjp_fwd(self, nzs_in, *elts):
            return self(*elts), None

        def vjp_bwd_retval(self, res, g):
            return tuple(L.get(g, i) for i in range(len(self.in_avals)))

        def jvp(self, primals, tangents):
            return self(*primals), L.tup(*map(h.instantiate_zeros, tangents))

        def batch(self, axis_data, args, dims):
            return L.tup(*args), TupSpec(tuple(dims))

    class Get(h.VJPHiPrimitive):
        def __init__(self, ty, idx):
            self.in_avals, self.out_aval, self.params = (ty,), ty.tys[idx], {"idx": idx}
            super().__init__()

        def expand(self, tup):
            return tup.elts[self.idx]

        def vjp_fwd(self, nzs_in, tup):
            return self(tup), None

        def vjp_bwd_retval(self, res, g):
            zeros = [L.jnp.zeros(ty.shape, ty.dtype) for ty in self.in_avals[0].tys]
            zeros[self.idx] = g
            return (L.tup(*zeros),)

        def jvp(self, primals, tangents):
            return self(*primals), L.get(tangents[0], self.idx)

        def batch(self, axis_data, args, dims):
            return L.get(args[0], self.idx), dims[0].val[self.idx]

    L.Tup, L.TupSpec = Tup, TupSpec
    L.tup = lambda *elts: MakeTup(*map(j.typeof, elts))(*elts)
    L.get = lambda tup, i: Get(j.typeof(tup), i)(tup)


def _products(L):
    j, jnp, h = L.j, L.jnp, L.h

    class Mul(h.VJPHiPrimitive):
        """A product whose reverse rule can be told from its forward one: it adds 10."""

        def __init__(self, x, y, **params):
            self.in_avals, self.out_aval, self.params = (x, y), x, params
            super().__init__()

        def expand(self, x, y):
            return x * y

        def vjp_fwd(self, nzs_in, x, y):
            return self(x, y), (x if nzs_in[1] else None, y if nzs_in[0] else None)

        def vjp_bwd_retval(self, res, g):
            x, y = res
            return None if y is None else g * y + 10.0, None if x is None else x * g + 10.0

        def jvp(self, primals, tangents):
            (x, y), (xd, yd) = primals, map(h.instantiate_zeros, tangents)
            return self(x, y), xd * y + x * yd

        def batch_dim_rule(self, axis_data, dims):
            return dims[1] if dims[0] is None else dims[0]

        def lin(self, nzs_in, x, y):
            return self(x, y), (x, y)

        def linearized(self, res, xd, yd):
            xd, yd = h.instantiate_zeros(xd), h.instantiate_zeros(yd)
            return xd * res[1] + res[0] * yd + 100.0 * xd

    class Scaled(h.VJPHiPrimitive):
        """Of a tree; linear in it; the backward rule adds to accumulators."""

        def __init__(self, tree, *, by):
            self.in_avals, self.params = (tree,), {"by": by}
            self.out_aval = {"first": tree["x"], "rest": (tree["y"],)}
            super().__init__()

        def expand(self, tree):
            return {"first": self.by * tree["x"], "rest": (self.by * tree["y"],)}

        def vjp_fwd(self, nzs_in, tree):
            return self(tree), ()

        def vjp_bwd(self, res, g, acc):
            acc["x"].accum(self.by * h.instantiate_zeros(g["first"]))
            acc["y"].accum(self.by * h.instantiate_zeros(g["rest"][0]))

        def transpose(self, ct, acc):
            acc["x"].accum(self.by * h.instantiate_zeros(ct["first"]))
            acc["y"].accum(self.by * h.instantiate_zeros(ct["rest"][0]))

    class Bare(h.VJPHiPrimitive):
        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), x, {"k": 3}
            super().__init__()

        def expand(self, x):
            return x * self.k

    class Twice(h.HiPrimitive):
        """A primitive of the simpler kind."""

        def abstract_eval(self, x, *, by):
            return x, set()

        def is_high(self, *avals, **params):
            return True

        def to_lojax(self, x, *, by):
            return x * by

        def jvp(self, primals, tangents, *, by):
            return self.bind(*primals, by=by), self.bind(*tangents, by=by)

        def transpose(self, ct, x, *, by):
            return [self.bind(ct, by=by)]

    twice_p = Twice("hi_twice")
    L.Mul, L.Bare = Mul, Bare
    L.mul = lambda x, y, **params: Mul(j.typeof(x), j.typeof(y), **params)(x, y)
    L.scaled = lambda tree, by: Scaled(j.tree.map(j.typeof, tree), by=by)(tree)
    L.bare = lambda x: Bare(j.typeof(x))(x)
    L.twice = lambda x: twice_p.bind(x, by=2.0)
    L.ones = lambda *shape: jnp.ones(shape, jnp.float32)


def _boxes(L):
    j, h = L.j, L.h

    @dataclass(frozen=True)
    class State:
        avals: tuple
        tree: object

        def to_tangent_qdd(self):
            return State(tuple(a.to_tangent_aval() for a in self.avals), self.tree)

        def normalize(self):
            return self

    class Box:
        def __init__(self, leaves, tree):
            self.leaves, self.tree = leaves, tree

        def cur_qdd(self):
            return State(tuple(map(j.typeof, self.leaves)), self.tree)

        def type_state(self):
            return self.cur_qdd()

        def get(self):
            return L.box_get(self)

        def set(self, value):
            L.box_set(self, value)

    @dataclass(frozen=True)
    class BoxTy(h.MutableHiType):
        get = h.aval_method(lambda self: L.box_get(self))
        set = h.aval_method(lambda self, value: L.box_set(self, value))

        def str_short(self, short_dtypes=False, **_):
            return "Box"

        __repr__ = __str__ = str_short

        def lo_ty_qdd(self, state):
            return list(state.avals)

        def new_from_loval(self, state, *values):
            return Box(list(values), state.tree)

        def read_loval(self, state, box):
            return list(box.leaves)

        def update_from_loval(self, state, box, *values):
            box.leaves, box.tree = list(values), state.tree

        def to_tangent_aval(self):
            return BoxTy()

    h.register_hitype(Box, lambda box: BoxTy())

    class Effect(L.j.extend.core.Effect if hasattr(j, "extend") else object):
        pass

    h.control_flow_allowed_effects.add_type(Effect)
    effects = {Effect()}

    class New(h.HiPrimitive):
        def is_high(self, *avals, **params):
            return True

        def abstract_eval(self, *avals, tree):
            return h.AvalQDD(BoxTy(), State(tuple(avals), tree)), effects

        def to_lojax(self, *leaves, tree):
            return Box(list(leaves), tree)

        impl = to_lojax

    class Set(h.HiPrimitive):
        multiple_results = True

        def is_high(self, *avals, **params):
            return True

        def abstract_eval(self, box, *avals, tree):
            box.mutable_qdd.update(State(tuple(avals), tree))
            return [], effects

        def to_lojax(self, box, *leaves, tree):
            box.leaves, box.tree = list(leaves), tree
            return []

        impl = to_lojax

    class Get(h.HiPrimitive):
        multiple_results = True

        def is_high(self, *avals, **params):
            return True

        def abstract_eval(self, box, *, avals):
            return list(avals), effects

        def to_lojax(self, box, *, avals):
            return list(box.leaves)

        impl = to_lojax

    new_p, set_p, get_p = New("box_new"), Set("box_put"), Get("box_read")

    def box(value):
        leaves, tree = j.tree.flatten(value)
        return new_p.bind(*map(L.jnp.asarray, leaves), tree=tree)

    def box_set(held, value):
        leaves, tree = j.tree.flatten(value)
        set_p.bind(held, *map(L.jnp.asarray, leaves), tree=tree)

    def box_get(held):
        state = L.cur_qdd(held)
        return j.tree.unflatten(state.tree, get_p.bind(held, avals=state.avals))

    L.box, L.box_set, L.box_get, L.Box = box, box_set, box_get, Box
