"""Every place in which a user gives a program a name: functions from a name to the text of a
module.

Each function gives the text as it is handed to the compiler, and runs what can be run. Names that are
written as attributes by name (`key_`) must not be empty. `test_names` runs this file in a process of
its own, which has four devices and prints a line of JSON for each place and one for `MINIJAX_NAMES`
Unicode names (5,000 by hand; few in each run) that go through everything.
"""

from __future__ import annotations

import json
import os
import random
import sys
import traceback

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import export, ffi, lax
from minijax.ad_checkpoint import checkpoint_name
from minijax.experimental import pallas as pl
from minijax.experimental.custom_partitioning import custom_partitioning
from minijax.experimental.scheduling_groups import scheduling_group, xla_metadata_call
from minijax.experimental.xla_metadata import set_xla_metadata
from minijax.extend import source_info_util
from minijax.extend.core import Primitive
from minijax.interpreters import mlir
from minijax.runtime.mlir_modules import parse
from minijax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from tests.harness import upstream

__all__ = ["HALF", "HOSTILE", "PLACES"]

COUNT = int(os.environ.get("MINIJAX_NAMES", "60"))
HALF = "\ud800"
INJECTION = '") %9 = "stablehlo.sine"(%arg0) : (tensor<f32>) -> tensor<f32> loc("'
HOSTILE = (
    'a"b', "a\\b", "größe", "a\nb", "a\0b", "", "x" * 20_000, "\u202eabc", "a:b", "{x}", "=1", "@m", "a,b",
    'x"]>', "\U0001f600", "\x7f\x85\u2028", "main", "_where", "wrapped", "jit_main", "func.func", "f_0",
    "%0", "a) : (b", 'jit(f)/"', "loc", '\\"', "\\22", "module attributes {", "sdy.mesh @mesh",
    "../../a", "f6E2M3FN>", INJECTION, HALF,
)  # fmt: skip

P = PartitionSpec
PLACES: dict = {}
DATA: set[str] = set()  # the places whose strings mean something: they must be Unicode


def place(fun=None, *, data=False):
    if fun is None:
        return lambda fun: place(fun, data=data)
    PLACES[fun.__name__] = fun
    if data:
        DATA.add(fun.__name__)
    return fun


def function(name):
    def f(x):
        return jnp.sin(x) * 2

    f.__name__ = f.__qualname__ = name
    return f


def texts(fun, *args, run=True, **kwargs):
    """The modules of a function, without and with its places, once it has run and been shown."""
    jitted = jax.jit(fun)
    lowered = jitted.lower(*args, **kwargs)
    str(jax.make_jaxpr(fun)(*args, **kwargs))
    jitted.trace(*args, **kwargs).jaxpr.pretty_print(source_info=True, name_stack=True)
    if run:
        jitted(*args, **kwargs)
    return [lowered.as_text(), lowered.as_text(debug_info=True)]


def mesh_of(name):
    return Mesh(np.array(jax.devices()[:2]), (name,))


def split(name):
    return jax.device_put(np.ones(4, np.float32), NamedSharding(mesh_of(name), P(name)))


@place
def function_name(name):
    return texts(function(name), 1.0)


@place
def nested_functions(name):
    fun = lambda x: jax.jit(function(name))(x) + jax.jit(function(name))(2 * x)
    return texts(lambda x: fun(x) + jax.jit(function("f"))(x) + jax.jit(function("f_0"))(x), 1.0)


@place
def scope(name):
    def fun(x):
        with jax.named_scope(name):
            return jnp.sin(x) + jax.grad(jnp.sin)(x)

    return texts(jax.grad(fun), 1.0)


@place
def name_stack(name):
    def fun(x):
        with source_info_util.extend_name_stack(name):
            return jnp.sin(x)

    return texts(fun, 1.0)


@place
def named_call(name):
    return texts(jax.named_call(jnp.sin, name=name), 1.0)


@place
def file_name(name):
    names = {"jnp": jnp}
    code = compile("def f(x):\n  return jnp.sin(x)", name.replace("\0", ""), "exec")  # takes no NUL
    exec(code, names)
    return texts(names["f"], 1.0)


@place
def key_of_argument(name):
    return texts(lambda tree: {name: jnp.sin(tree[name])}, {name: 1.0})


@place
def keyword(name):
    return texts(lambda **named: jnp.sin(named[name]), **{name: 1.0})


@place
def axis_of_argument(name):
    return texts(lambda x: jnp.sin(x) + x.sum(), split(name))


@place
def axis_of_constraint(name):
    where = NamedSharding(mesh_of(name), P(name))
    return texts(lambda x: lax.with_sharding_constraint(x + 1, where), np.ones(4, np.float32))


@place
def axis_of_shard_map(name):
    fun = lambda x: x + lax.psum(x.sum(), name) + lax.axis_index(name)
    return texts(
        jax.shard_map(fun, mesh=mesh_of(name), in_specs=P(name), out_specs=P(name)), split(name)
    )


@place
def axes_of_shard_map(name):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), (name, name + "_"))
    fun = jax.shard_map(
        lambda x: x + 1, mesh=mesh, in_specs=P(name), out_specs=P(name), axis_names={name}
    )
    return texts(fun, np.ones(4, np.float32))


@place
def explicit_axis(name):
    mesh = jax.make_mesh((2,), (name,), axis_types=(AxisType.Explicit,))
    with jax.set_mesh(mesh):
        x = jax.device_put(np.ones(4, np.float32), NamedSharding(mesh, P(name)))
        return texts(lambda x: jnp.sin(x) * 2, x)


@place
def axis_of_pmap(name):
    x = np.ones((2, 1), np.float32)
    assert jax.pmap(lambda x: lax.psum(x, name), axis_name=name)(x).shape == x.shape
    return []


@place
def axis_of_vmap(name):
    return texts(jax.vmap(lambda x: lax.psum(x, name), axis_name=name), np.ones((2, 1), np.float32))


@place(data=True)
def target(name):
    return texts(
        lambda x: ffi.ffi_call(name or "t", jax.ShapeDtypeStruct((), np.float32))(x), 1.0, run=False
    )


@place(data=True)
def key_of_target(name):
    call = ffi.ffi_call("t", jax.ShapeDtypeStruct((), np.float32))
    return texts(lambda x: call(x, **{name or "k": name}, d={name or "k": name}), 1.0, run=False)


@place(data=True)
def legacy_config(name):
    call = ffi.ffi_call(
        "t",
        jax.ShapeDtypeStruct((), np.float32),
        custom_call_api_version=2,
        legacy_backend_config=name,
    )
    return texts(call, 1.0, run=False)


@place(data=True)
def key_of_composite(name):
    call = lax.composite(lambda x, **k: jnp.sin(x), "a.b")
    return texts(lambda x: call(x, **{name or "k": name}), 1.0)


@place(data=True)
def metadata(name):
    def fun(x):
        with set_xla_metadata(**{name or "k": name}):
            return jnp.sin(x) + set_xla_metadata(jnp.cos(x), **{name or "k": name})

    return texts(fun, 1.0)


@place(data=True)
def metadata_of_call(name):
    return texts(xla_metadata_call(jnp.sin, **{name or "k": name}), 1.0)


@place(data=True)
def group(name):
    return texts(scheduling_group(name)(jnp.sin), 1.0)


@place
def custom_rules(name):
    f, g = jax.custom_jvp(function(name)), jax.custom_vjp(function(name))
    f.defjvp(lambda x, t: (f(x[0]), t[0]))
    g.defvjp(lambda x: (x, x), lambda r, t: (t,))
    return [*texts(lambda x: f(x) + g(x), 1.0), *texts(jax.grad(lambda x: f(x) + g(x)), 1.0)]


@place
def checkpoints(name):
    inner = lambda x: jnp.sin(checkpoint_name(jnp.sin(x), name))
    kept = jax.checkpoint(inner, policy=jax.checkpoint_policies.save_only_these_names(name))
    return [*texts(jax.grad(kept), 1.0), *texts(jax.grad(jax.checkpoint(function(name))), 1.0)]


@place
def callbacks(name):
    def called(x):
        return np.asarray(x)

    called.__name__ = name
    kind = jax.ShapeDtypeStruct((), np.float32)
    return [
        *texts(lambda x: jax.pure_callback(called, kind, x), 1.0),
        *texts(lambda x: jax.debug.callback(called, x), 1.0),
    ]


@place
def exported_function(name):
    made = export.export(jax.jit(function(name)))(1.0)
    kept = export.deserialize(made.serialize())
    assert kept.fun_name == made.fun_name
    return [*texts(kept.call, 1.0), made.mlir_module()]


@place
def exported_for_two(name):
    made = export.export(jax.jit(function(name)), platforms=("cpu", "tpu"))(1.0)
    return [export.deserialize(made.serialize()).mlir_module()]


@place(data=True)
def allowed_target(name):
    fun = lambda x: ffi.ffi_call(name or "t", jax.ShapeDtypeStruct((), np.float32))(x)
    allowed = [export.DisabledSafetyCheck.custom_call(name or "t")]
    made = export.export(jax.jit(fun), disabled_checks=allowed)(1.0)
    assert list(export.deserialize(made.serialize()).disabled_safety_checks) == allowed
    return [made.mlir_module()]


@place
def partitioned_function(name):
    call = custom_partitioning(function(name))
    call.def_partition(
        lambda mesh, ins, out: (mesh, jnp.sin, out.sharding, tuple(x.sharding for x in ins)),
        sharding_rule="i -> i",
    )
    texts(call, split(name))
    return []  # operations are chosen by the number of the call


@place
def kernel(name):
    def double(i, o):
        o[...] = i[...] * 2

    double.__name__ = name
    kind = jax.ShapeDtypeStruct((8,), np.float32)
    call = pl.pallas_call(double, out_shape=kind, interpret=True, name=name or None)
    return texts(call, np.ones(8, np.float32))


@place
def primitive(name):
    p = Primitive(name)
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x + 1, multiple_results=False))
    return texts(p.bind, 1.0)


@place
def annotation(name):
    with jax.profiler.TraceAnnotation(name):
        return texts(jax.profiler.annotate_function(function(name), name=name), 1.0)


def operations(text):
    """The names of the operations of a module, in order, with how they nest."""

    def walk(op):
        return (
            op.operation.name,
            [walk(inner) for region in op.regions for b in region for inner in b],
        )

    return walk(parse(text).operation)


def hostile(where):
    """Assert that hostile names at one place give the operations of a plain name."""
    put = PLACES[where]
    plain = [operations(text) for text in put("plain")]
    for name in HOSTILE:
        if not name and where == "explicit_axis":
            continue  # an axis without a name counts as none
        if HALF in name and where in DATA:
            with pytest.raises(TypeError, match="UTF-8"):
                put(name)
            continue
        assert [operations(text) for text in put(name)] == plain, ascii(name)[:80]


def unicode_names(count):
    """Names of random letters from all of Unicode, identifiers and others."""
    rng = random.Random(5)
    while count:
        points = [
            rng.randrange(1, rng.choice((128, 0x800, 0x10000, sys.maxunicode + 1)))
            for _ in range(6)
        ]
        name = "".join(map(chr, points))
        if not any(0xD800 <= point < 0xE000 for point in points):
            count -= 1
            yield name


def everything():
    """Assert that programs with Unicode names are transformed, lowered, exported and run."""
    x = np.arange(4, dtype=np.float32)
    wanted = jnp.sin(x) * 2
    chips = np.array(jax.devices()[:2])
    for number, name in enumerate(unicode_names(COUNT)):
        f, mesh = function(name), Mesh(chips, (name,))
        text = jax.jit(f).lower(x).as_text(debug_info=True)
        assert text.count("stablehlo.sine") == 1, ascii(name)
        mapped = jax.vmap(lambda x, f=f, n=name: f(x) + lax.psum(x, n), axis_name=name)
        jax.jit(mapped).lower(x)
        loss = lambda x, f=f: jax.jit(f)(x).sum()
        jax.jit(jax.grad(loss)).lower(x)
        spec = P(name)
        split = jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
        jax.jit(split).lower(jax.device_put(x, NamedSharding(mesh, spec)))
        made = export.export(jax.jit(f))(x)
        kept = export.deserialize(made.serialize())
        assert kept.fun_name == name
        if number % 20 == 0:
            for call in (jax.jit(f), jax.jit(split), kept.call):
                np.testing.assert_array_equal(call(x), wanted)
            jax.jit(mapped)(x), jax.grad(loss)(x)


def main():
    os.environ |= upstream.devices(4)
    checks = {where: lambda where=where: hostile(where) for where in PLACES}
    for where, check in {**checks, "unicode": everything}.items():
        try:
            check()
            problem = None
        except Exception:
            problem = traceback.format_exc(limit=-3)
        print(json.dumps({"where": where, "problem": problem}), flush=True)


if __name__ == "__main__":
    main()
