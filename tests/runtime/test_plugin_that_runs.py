"""A real PJRT plug-in beside the CPU of jaxlib: XLA's CPU client, behind the C API.

It comes with the package lammps-jax-pjrt-cpu, or MINIJAX_TEST_PLUGIN names its library; without
either the tests are left out.
"""

import importlib.util
import os
import pathlib

import pytest

from tests.runtime.test_plugins import child


def _library():
    named = os.environ.get("MINIJAX_TEST_PLUGIN")
    if named:
        return named
    spec = importlib.util.find_spec("lammps_jax_pjrt_cpu")
    if spec is None:
        return None
    return str(pathlib.Path(spec.origin).parent / "pjrt_c_api_cpu_plugin.so")


LIBRARY = _library()
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="lammps-jax-pjrt-cpu is not installed")

REGISTERING = """
def initialize():
    from jax._src import xla_bridge
    xla_bridge.register_plugin("other", priority={priority}, library_path={library!r})
"""
SETUP = """
import numpy as np
import minijax.numpy as jnp
other, cpu = minijax.devices("other")[0], minijax.devices("cpu")[0]
x = np.arange(4, dtype=np.float32)
at = lambda array: [d.client is other.client for d in array.devices()]
"""


def by_variable(code, **variables):
    return child(SETUP + code, PJRT_NAMES_AND_LIBRARY_PATHS=f"other:{LIBRARY}", **variables)[0]


def by_entry_point(code, folder, priority=400):
    info = folder / "brought-1.0.dist-info"
    folder.mkdir()
    (folder / "brought.py").write_text(REGISTERING.format(priority=priority, library=LIBRARY))
    info.mkdir()
    (info / "entry_points.txt").write_text("[jax_plugins]\nother = brought\n")
    return child(SETUP + code, folder)[0]


def by_namespace(code, folder, priority=400):
    package = folder / "jax_plugins" / "brought"
    package.mkdir(parents=True)
    text = REGISTERING.format(priority=priority, library=LIBRARY)
    (package / "__init__.py").write_text(text)
    return child(SETUP + code, folder)[0]


FOUND = """
out = minijax.jit(lambda x: jnp.sin(x) * 2)(minijax.device_put(x, other))
from minijax.runtime import plugins
print(json.dumps([at(out), np.asarray(out).tolist(), minijax.devices()[0].client is other.client,
                  plugins.identities.get(other.client)]))
"""


def test_found_in_three_ways(tmp_path):
    ways = [
        by_variable(FOUND),
        by_entry_point(FOUND, tmp_path / "a"),
        by_namespace(FOUND, tmp_path / "b", priority=-1),
    ]
    assert [way[0] for way in ways] == [[True]] * 3
    assert ways[0][1] == ways[1][1] == ways[2][1]
    assert [way[2] for way in ways] == [True, True, False]  # the preferred one is the default
    assert (
        len({way[3] for way in ways}) == 1 and len(ways[0][3]) == 64
    )  # is in keys of the disk cache


@pytest.mark.parametrize("name", ["cpu", "other", ""])
def test_preferred_platform(name):
    """`jax_platform_name` says which one is the default; the others can be named."""
    code = """
print(json.dumps([
    at(jnp.ones(2)), at(minijax.jit(lambda x: x + 1)(x)), minijax.devices()[0].client is other.client,
    at(minijax.device_put(x, other))]))
"""
    first = name != "cpu"
    assert by_variable(code, JAX_PLATFORM_NAME=name) == [[first], [first], first, [True]]


def test_two_platforms_in_one_process():
    found = by_variable(
        """
    there, here = minijax.device_put(x, other), minijax.device_put(x, cpu)
    f = lambda x: jnp.cumsum(jnp.sin(x) * x)
    where = {
        "put": at(there), "back": at(minijax.device_put(there, cpu)),
        "over": at(minijax.device_put(here, other)),
        "committed": at(minijax.jit(f)(there)), "committed here": at(minijax.jit(f)(here)),
        "backend": at(minijax.jit(f, backend="other")(x)),
        "backend here": at(minijax.jit(f, backend="cpu")(x)),
        "grad": at(minijax.grad(lambda x: f(x).sum())(there)),
        "vmap": at(minijax.vmap(lambda x: f(x[None]))(there)),
        "donated": at(minijax.jit(f, donate_argnums=0)(minijax.device_put(x, other))),
    }
    with minijax.default_device(other):
        where["default"] = at(jnp.ones(3))
    with minijax.default_device(cpu):
        where["default here"] = at(jnp.ones(3))
    mixed = told(lambda: there + here)
    same = np.asarray(minijax.jit(f)(there)).tolist() == np.asarray(minijax.jit(f)(here)).tolist()
    print(json.dumps([where, mixed, same]))
    """.replace("\n    ", "\n")
    )
    where, mixed, same = found
    for name, places in where.items():
        assert places == [not ("here" in name or name == "back")], name
    assert mixed.startswith("ValueError: Received incompatible devices for jitted computation")
    assert same


def test_a_kernel_that_the_plug_in_lacks():
    found = by_variable(
        """
    there = minijax.device_put(np.eye(3, dtype=np.float32), other)
    errors = [told(lambda: jnp.linalg.cholesky(there)), told(lambda: jnp.linalg.inv(there))]
    print(json.dumps(errors))
    """.replace("\n    ", "\n")
    )
    for error, kernel in zip(found, ("lapack_spotrf_ffi", "lapack_sgetrf_ffi"), strict=True):
        assert error.startswith("JaxRuntimeError: NOT_FOUND: No FFI handler registered for")
        assert f"has no kernel {kernel!r}" in error and "minijax.devices('cpu')" in error


MACHINE = """
from tests.cases import lax_cases
def leaves(m, function, args):
    return minijax.tree_util.tree_leaves(minijax.jit(lambda *xs: function(m, *xs))(*args))
ran, lacking, wrong = 0, 0, []
groups = ("ELEMENTS", "SHAPES", "REDUCTIONS", "PRODUCTS", "INDEXING", "CONTROL")
rows = [row for group in groups for row in getattr(lax_cases, group)]
for name, function, args in rows[::2]:
    if "v" in name.partition("@")[2]:
        continue
    try:
        here = leaves(minijax, function, minijax.device_put(args, cpu))
    except Exception:
        continue  # not of arguments alone
    try:
        there = leaves(minijax, function, minijax.device_put(args, other))
    except Exception as error:
        if "No FFI handler registered" in str(error):
            lacking += 1
        else:
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
        continue
    ran += 1
    for a, b in zip(here, there, strict=True):
        if not hasattr(a, "dtype") or not jnp.issubdtype(a.dtype, np.number):
            continue
        if not np.allclose(np.asarray(a, complex), np.asarray(b, complex), 1e-3, 1e-3, equal_nan=True):
            wrong.append(f"{name}: {a} is not {b}")
print(json.dumps([len(rows), ran, lacking, wrong]))
"""


def test_operations_on_both():
    """Half of them."""
    rows, ran, lacking, wrong = by_variable(MACHINE)
    assert not wrong, "\n".join(wrong)
    assert ran > 0.4 * rows and lacking < 0.05 * rows
