"""Small modules: dslice, fwd_and_bwd, composite, monitoring, the profiler, the environment,
deprecated names.
"""

import importlib
import warnings

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same
from tests.harness.rules import in_both

X = np.arange(20.0, dtype=np.float32).reshape(4, 5)

WINDOWS = {
    "static": lambda m, x, i: x[m.ds(1, 2)],
    "outside": lambda m, x, i: x[m.ds(3, 2)],
    "from the end": lambda m, x, i: x[m.ds(-2, 2)],
    "traced": lambda m, x, i: x[m.ds(i, 2)],
    "strides": lambda m, x, i: x[:, m.ds(i, 2, 2)],
    "static strides": lambda m, x, i: x[:, m.ds(1, 2, 2)],
    "two": lambda m, x, i: x[m.ds(i, 2), m.ds(i + 1, 3)],
    "with an integer": lambda m, x, i: x[m.ds(i, 2), -1],
    "with an array": lambda m, x, i: x[m.ds(i, 2), np.array([0, 3, 1])],
    "with a new axis": lambda m, x, i: x[None, m.ds(i, 2), ..., 0],
    "empty": lambda m, x, i: x[m.ds(i, 0)],
    "set": lambda m, x, i: x.at[m.ds(i, 2)].set(-1),
    "add outside": lambda m, x, i: x.at[m.ds(i + 2, 3)].add(100),
    "filled": lambda m, x, i: x.at[m.ds(i + 2, 3)].get(mode="fill", fill_value=-1),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_dslice(name):
    f = WINDOWS[name]
    in_both(lambda m: f(m, m.numpy.asarray(X), m.numpy.asarray(1)))
    in_both(lambda m: m.jit(lambda x, i: f(m, x, i))(X, 1))
    in_both(
        lambda m: m.grad(lambda x: (f(m, x, m.numpy.asarray(2)) ** 2).sum())(m.numpy.asarray(X))
    )


@pytest.mark.parametrize("jitted", [True, False])
def test_fwd_and_bwd(jitted):
    def run(m):
        f = lambda x, y: ({"z": m.numpy.sin(x) * y}, y)
        fwd, bwd = m.fwd_and_bwd(f, argnums=(0, 1), has_aux=True, jitted=jitted)
        out, residuals, aux = fwd(X, X + 1)
        one, other = bwd(residuals, {"z": m.numpy.asarray(X)})
        single = m.fwd_and_bwd(lambda x: x * x, 0, jitted=jitted)
        return out, aux, one, other, single[1](single[0](X)[1], m.numpy.asarray(X))

    assert_same(run(minijax), run(jax))


def test_composite_text():
    def text(m):
        f = m.lax.composite(lambda x, *, k, s, b: x * k, name="my.op", version=2)
        call = lambda x: f(x, k=3, s='a"b', b=True)
        lines = m.jit(call).lower(X).as_text().splitlines()
        return next(line for line in lines if "stablehlo.composite" in line)

    assert text(minijax).replace("@my_op", "@my.op") == text(jax)


def test_compilations_are_recorded():
    seen = []
    listen = lambda event, duration, **kwargs: seen.append((event, kwargs.get("fun_name")))
    minijax.monitoring.register_event_duration_secs_listener(listen)
    try:
        f = minijax.jit(lambda x: x * 3 + 1)
        f(X), f(X)
    finally:
        minijax.monitoring.unregister_event_duration_listener(listen)
    stages = [event.rpartition("/")[2] for event, name in seen if name]  # without the disk cache's
    wanted = ["jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration"]
    assert stages == wanted
    with pytest.raises(AssertionError):
        minijax.monitoring.unregister_event_duration_listener(listen)


def test_events_of_compilations_agree(tmp_path):
    """All that listeners hear of a nested program, which is compiled and then read from the disk."""

    def heard(m):
        seen = []
        folder = tmp_path / m.__name__
        settings = {
            "jax_compilation_cache_dir": str(folder), "jax_enable_compilation_cache": True,
            "jax_persistent_cache_min_compile_time_secs": 0.0,
            "jax_persistent_cache_min_entry_size_bytes": -1,
        }  # fmt: skip
        names = [name.removeprefix("jax_") for name in settings]
        before = [getattr(m.config, f"jax_{name}") for name in names]
        listeners = {
            "event": lambda event, **about: seen.append((event, about)),
            "event_duration_secs": lambda event, _, **about: seen.append((event, "took", about)),
            "scalar": lambda event, _, **about: seen.append((event, "begins", about)),
        }
        for name, value in settings.items():
            m.config.update(name, value)
        for kind, listener in listeners.items():
            getattr(m.monitoring, f"register_{kind}_listener")(listener)
        try:
            for _ in range(2):
                m.clear_caches()
                reset = importlib.import_module(
                    "minijax.runtime.cache" if m is minijax else "jax._src.compilation_cache"
                )
                reset.reset_cache()
                inner = m.jit(lambda x: x * 5)
                m.jit(lambda x: (inner(x) * 2).sum())(np.ones(3, np.float32))
        finally:
            m.monitoring.clear_event_listeners()
            for name, value in zip(settings, before, strict=True):
                m.config.update(name, value)
        return [one for one in seen if not one[0].endswith(("using_cache", "disabled_cache"))]

    assert heard(minijax) == heard(jax)


def test_profile(tmp_path):
    profiler = minijax.profiler
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        with profiler.TraceAnnotation("an annotation"):
            minijax.jit(lambda x: x + 1)(X).block_until_ready()
        with pytest.raises(RuntimeError, match="already been started"):
            profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    (path,) = tmp_path.rglob("*.xplane.pb")
    data = profiler.ProfileData.from_file(str(path))
    names = {e.name for plane in data.planes for line in plane.lines for e in line.events}
    assert "an annotation" in names
    assert list(tmp_path.rglob("perfetto_trace.json.gz"))
    assert profiler.device_memory_profile()[:2] == b"\x1f\x8b"


def test_environment():
    text = minijax.print_environment_info(return_string=True)
    assert "jaxlib" in text and "device info" in text
    with pytest.warns(UserWarning, match="process_count"):
        assert minijax.host_count() == 1


PLACES = {
    "full": lambda m, where: m.lax.full((3,), 2.0, sharding=where),
    "full_like": lambda m, where: m.lax.full_like(m.numpy.ones(3), 2.0, sharding=where),
    "zeros": lambda m, where: m.numpy.zeros(3, device=where),
    "pure_callback": lambda m, where: m.jit(
        lambda x: m.pure_callback(
            lambda a: a, m.ShapeDtypeStruct((20,), "float32"), x, sharding=where
        )
    )(X.ravel()),
}


@pytest.mark.parametrize("name", PLACES)
def test_sharding_of_one_device(name):
    def run(m):
        return PLACES[name](m, m.sharding.SingleDeviceSharding(m.devices()[0]))

    ours, theirs = run(minijax), run(jax)
    assert_same(ours, theirs)
    assert ours.committed == theirs.committed


# Registries and classes of upstream's compiler, which have no counterpart.
INTERNAL = {
    "core": (
        "JaxprPpContext", "JaxprPpSettings", "OutputType", "abstract_token",
        "aval_mapping_handlers", "custom_typechecks", "literalable_types", "no_axis_name",
        "pytype_aval_mappings", "trace_ctx",
    ),
    "interpreters.pxla": (
        "ArrayMapping", "Index", "MeshAxisName", "MeshComputation", "MeshExecutable",
        "_UNSPECIFIED", "array_mapping_to_axis_resources", "global_aval_to_result_handler",
        "global_avals_to_results_handler", "global_result_handlers",
    ),
}  # fmt: skip
MODULES = (
    "core", "experimental.pallas", "experimental.pallas.tpu", "experimental.pjit",
    "experimental.shard_map", "interpreters.pxla", "scipy.special",
)  # fmt: skip


def _deprecated():
    """The names of upstream that still work, with a warning."""
    for module in MODULES:
        table = importlib.import_module(f"jax.{module}")._deprecations
        for name, (_, value) in table.items():
            if value is not None and name not in INTERNAL.get(module, ()):
                yield f"{module}.{name}"


DEPRECATED = sorted(_deprecated()) if jax.__version__ == "0.10.2" else []
REMOVED = [
    "core.get_aval", "core.TraceTag", "core.subjaxprs", "core.traverse_jaxpr_params",
    "device_put_replicated", "scipy.special.sph_harm", "ad_checkpoint.checkpoint",
    "ad_checkpoint.remat", "interpreters.ad.reducing_transposes", "interpreters.batching.NotMapped",
    "interpreters.pxla.shard_args", "interpreters.pxla.ShardingSpec", "lax.pvary", "numpy.fix",
]  # fmt: skip


def _looked_up(library, path):
    """What a name gives, and the warnings or the words of the error."""
    *modules, name = path.split(".")
    module = importlib.import_module(".".join([library.__name__, *modules]))
    if library is jax:
        vars(module).pop(name, None)  # where another test has replaced it and put it back
        getattr(module.__getattr__, "cache_clear", lambda: None)()  # some warn once a process
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            value = getattr(module, name)
        except AttributeError as error:
            return None, str(error)
    return value, [(w.category, str(w.message).replace("minijax", "jax")) for w in found]


@pytest.mark.parametrize("path", DEPRECATED)
def test_deprecated_name(path):
    (ours, said), (theirs, wanted) = (_looked_up(library, path) for library in (minijax, jax))
    assert said == wanted and wanted
    assert callable(ours) == callable(theirs)


@pytest.mark.parametrize("path", DEPRECATED)
def test_deprecated_name_warns_once_in_an_import(path):
    module, name = f"minijax.{path}".rsplit(".", 1)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        exec(f"from {module} import {name}", {})
    assert [w.category for w in found] == [DeprecationWarning]


def _entered(mesh):
    with mesh:
        return mesh.shape["x"]


WARNED = {
    "array by position": lambda m: m.numpy.array([1, 2], np.int32, False, "K", 2),
    "array, copy by position": lambda m: m.numpy.array([1, 2], None, True),
    "array by position in jit": lambda m: m.jit(lambda x: m.numpy.array(x, None, True))(1.0),
    "mesh": lambda m: _entered(m.make_mesh((1,), ("x",))),
    "dtype of an array": lambda m: np.dtype(m.numpy.ones(2)),
    "jnp.dtype of an array": lambda m: m.numpy.dtype(m.numpy.ones(2)),
    "issubdtype of an array": lambda m: m.numpy.issubdtype(m.numpy.ones(2), np.floating),
    "issubdtype, a second array": lambda m: m.numpy.issubdtype(np.float32, m.numpy.ones(2)),
    "can_cast of an array": lambda m: m.numpy.can_cast(m.numpy.ones(2), int),
    "promote_types of an array": lambda m: m.numpy.promote_types(m.numpy.ones(2), int),
    "isdtype of an array": lambda m: m.numpy.isdtype(m.numpy.ones(2), "integral"),
    "type of an array": lambda m: m.ShapeDtypeStruct((2,), m.numpy.ones(2)).dtype,
    "ndim": lambda m: m.numpy.ndim([1]),
    "shape": lambda m: m.numpy.shape([1]),
    "from complex": lambda m: m.numpy.astype(m.numpy.ones(2) * 1j, float),
    "method, from complex": lambda m: (m.numpy.ones(2) * 1j).astype(int),
    "one_hot": lambda m: m.nn.one_hot(m.numpy.ones(2), 3),
    "wide": lambda m: m.numpy.zeros(2, "float64"),
    "wide uniform": lambda m: m.random.uniform(m.random.key(0), (2,), "float64"),
    "wide gamma": lambda m: m.random.gamma(m.random.key(0), 1.0, dtype="float64"),
    "wide randint": lambda m: m.random.randint(m.random.key(0), (2,), 0, 5, dtype="int64"),
    "wide bits": lambda m: m.random.bits(m.random.key(0), (2,), "uint64"),
    "wide trace": lambda m: m.numpy.trace(m.numpy.eye(2), dtype="float64"),
    "wide orthogonal": lambda m: m.random.orthogonal(m.random.key(0), 2, dtype="float64"),
}  # fmt: skip


OF_0_10 = pytest.mark.skipif(jax.__version__ != "0.10.2", reason="newer ones refuse it")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=OF_0_10) if n.startswith("array") else n for n in WARNED]
)
def test_warning_begins_with_upstreams_sentence(name):
    def found(m):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            value = WARNED[name](m)
        return value, [(w.category, str(w.message), w.filename) for w in told]

    (ours, said), (theirs, wanted) = found(minijax), found(jax)
    assert_same(ours, theirs)
    assert wanted
    wanted = [one for at, one in enumerate(wanted) if one[1] not in [w[1] for w in wanted[:at]]]
    assert len(said) == len(wanted)
    for (category, text, place), (other, told, _) in zip(said, wanted, strict=True):
        assert category is other and place == __file__
        assert text.replace("minijax", "jax").startswith(told.split(". ")[0].removesuffix("."))


@OF_0_10
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_array_takes_five_by_position_at_most():
    for m in (minijax, jax):
        with pytest.raises(TypeError, match="takes at most 5 positional arguments but 6 were"):
            m.numpy.array([1], None, True, "K", 0, 3)
        with pytest.raises(NotImplementedError, match="Only implemented for order='K'"):
            m.numpy.array([1], None, True, "C")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pjit_takes_shardings_by_position():
    def found(m):
        pjit = importlib.import_module(f"{m.__name__}.experimental.pjit").pjit
        mesh = m.make_mesh((1,), ("x",), axis_types=(m.sharding.AxisType.Auto,))
        with mesh:
            split = pjit(lambda x, n: x * n, None, m.P("x"), 1)(X, 3)
        return pjit.__name__, str(split.sharding.spec), split

    assert_same(found(minijax), found(jax))


@pytest.mark.parametrize("path", REMOVED)
def test_removed_name(path):
    (ours, said), (theirs, wanted) = (_looked_up(library, path) for library in (minijax, jax))
    assert ours is theirs is None
    if jax.__version__ == "0.10.2":
        assert said.replace("minijax", "jax") == wanted


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("degree", [0, 1, 2, 7])
def test_legendre(degree):
    z = np.array([-1, -0.5, 0, 0.3, 0.99, 1], np.float32)

    def found(library):
        special, points = library.scipy.special, library.numpy.asarray(z)
        return (
            *special.lpmn(degree, degree, points),
            special.lpmn_values(degree, degree, points, True),
            library.jvp(
                lambda z: special.lpmn_values(degree, degree, z, True), *[(points[1:5],)] * 2
            ),
        )

    assert_same(found(minijax), found(jax), size=1.0)


LAYOUTS = {
    "reduced": lambda m, w, one, x: w(x * 2, one(1, 0)).sum(0),
    "gradient": lambda m, w, one, x: m.grad(lambda x: (w(x, one(1, 0)) ** 2).sum())(x),
    "tangent": lambda m, w, one, x: m.jvp(lambda x: w(x, one(1, 0)), (x,), (x,)),
    "mapped": lambda m, w, one, x: m.vmap(lambda x: w(x, one(0)), in_axes=1)(x),
    "a tree": lambda m, w, one, x: w({"a": x, "b": (x[0],)}, {"a": one(1, 0), "b": one(0)}),
    "a number": lambda m, w, one, x: w(x[0, 1], one()),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_constraint(name):
    def result(library):
        module = importlib.import_module(f"{library.__name__}.experimental.layout")
        given = module.with_layout_constraint, lambda *order: module.Layout(order)
        return library.jit(lambda x: LAYOUTS[name](library, *given, x))(X)

    assert_same(result(minijax), result(jax))


@pytest.mark.parametrize("order", [(0,), (0, 0), None])
def test_layout_constraint_refuses(order):
    for library in (minijax, jax):
        module = importlib.import_module(f"{library.__name__}.experimental.layout")
        layout = None if order is None else module.Layout(order)
        with pytest.raises(ValueError, match=r"layout"):
            library.jit(lambda x: module.with_layout_constraint(x, layout))(X)
