"""Upstream and minijax in one process: either order, different settings, arrays passed between."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.both_ends

PROGRAM = """
import numpy as np
{imports}
minijax.config.update("jax_enable_x64", {ours})
jax.config.update("jax_enable_x64", {theirs})

def results(m):
    jnp = m.numpy
    x = jnp.arange(5) * 0.5
    f = lambda x: jnp.sum(jnp.sin(x) ** 2)
    tree = {{"a": x, "b": (x, None)}}
    leaves, treedef = m.tree_util.tree_flatten(tree)
    return [
        x, f(x), m.grad(f)(x), m.jit(m.vmap(m.grad(jnp.sin)))(x), m.random.normal(m.random.key(0), (3,)),
        jnp.asarray(3), jnp.asarray(2.5), *leaves, x @ x, m.lax.scan(lambda c, a: (c + a, c), 0.0, x)[1],
    ]

def flat(values):
    return [(np.asarray(v).tobytes(), str(v.dtype), bool(v.weak_type)) for v in values]

first = [flat(results(m)) for m in (minijax, jax)]
again = [flat(results(m)) for m in (jax, minijax)][::-1]
assert first == again
wide = lambda m: str(m.numpy.arange(3.0).dtype)
assert wide(minijax) == ("float64" if {ours} else "float32")
assert wide(jax) == ("float64" if {theirs} else "float32")

# An array of upstream's on a device of ours is not one of ours.
count = len(minijax.live_arrays())
borrowed = jax.device_put(np.ones(3), minijax.devices()[0])
assert len(minijax.live_arrays()) == count

# Arrays pass both ways, as NumPy arrays and by DLPack.
a, b = minijax.numpy.arange(4.0), jax.numpy.arange(4.0)
assert isinstance(minijax.numpy.asarray(np.asarray(b)) + a, minijax.Array)
assert isinstance(jax.numpy.asarray(np.asarray(a)) + b, jax.Array)
assert not isinstance(a, jax.Array) and not isinstance(b, minijax.Array)
np.testing.assert_array_equal(np.from_dlpack(a), np.from_dlpack(b))
np.testing.assert_array_equal(minijax.dlpack.from_dlpack(b), jax.dlpack.from_dlpack(a))

# A pytree class of one is a leaf of the other.
class Box:
    def __init__(self, x): self.x = x
minijax.tree_util.register_pytree_node(Box, lambda b: ((b.x,), None), lambda _, c: Box(*c))
assert len(minijax.tree_util.tree_leaves(Box(1))) == 1
assert isinstance(jax.tree_util.tree_leaves(Box(1))[0], Box)

# Settings of one do not touch the other; errors neither.
with minijax.enable_x64(True):
    assert wide(minijax) == "float64" and wide(jax) == ("float64" if {theirs} else "float32")
with jax.enable_x64(False):
    assert wide(jax) == "float32" and wide(minijax) == ("float64" if {ours} else "float32")
with minijax.debug_nans(True):
    jax.numpy.log(-1.0)
    try:
        minijax.numpy.log(-1.0)
    except FloatingPointError:
        pass
    else:
        raise AssertionError("debug_nans had no effect")
assert first == [flat(results(m)) for m in (minijax, jax)]
print("fine")
"""


@pytest.mark.parametrize(("ours", "theirs"), [(False, True), (True, False)])
@pytest.mark.parametrize("order", ["import jax\nimport minijax", "import minijax\nimport jax"])
def test_one_process(order, ours, theirs):
    imports = order + "\nimport jax.dlpack, minijax.numpy"
    program = PROGRAM.format(imports=imports, ours=ours, theirs=theirs)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("fine")


def test_results_alone_and_together():
    """What minijax computes does not depend on whether upstream was imported."""
    program = (
        "{first}import minijax, minijax.numpy as jnp, numpy as np\n"
        "x = jnp.linspace(0, 1, 7)\n"
        "y = minijax.grad(lambda x: jnp.sum(jnp.tanh(x) * minijax.random.normal("
        "minijax.random.key(3), (7,))))(x)\n"
        "print(np.asarray(y).tobytes().hex(), repr(x))\n"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", program.format(first=first)], capture_output=True, check=True
        ).stdout
        for first in ("", "import jax\n")
    ]
    assert found[0] == found[1]


def test_arrays_of_the_host_alone():
    """They reach programs, again and again, where upstream was not imported."""
    program = (
        "import minijax, minijax.numpy as jnp, numpy as np\n"
        "x = np.arange(3.0)\n"
        "for f in (jnp.sin, jnp.asarray, minijax.jit(jnp.cos), minijax.vmap(jnp.sin)):\n"
        "    assert [f(x).shape for _ in range(3)] == [(3,)] * 3\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


WITHOUT = """
import copy, pickle, sys

asked = []

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "jax":
            asked.append(name)
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Finder())
import minijax, numpy as np
from minijax import numpy as jnp
from minijax.experimental.layout import Format, Layout

minijax.config.update("jax_num_cpu_devices", 4)
minijax.config.update("jax_enable_x64", True)
P = minijax.sharding.PartitionSpec
mesh = minijax.make_mesh((4,), ("i",), axis_types=(minijax.sharding.AxisType.Auto,))
split, replicated = (minijax.NamedSharding(mesh, P(*axes)) for axes in (("i",), ()))
swapped = Format(Layout((1, 0)), minijax.sharding.SingleDeviceSharding(minijax.devices()[1]))
read = {
    "NumPy": np.asarray,
    "row": lambda x: np.asarray(x[0]),
    "parts": lambda x: [np.asarray(shard.data) for shard in x.addressable_shards],
    "replicated": lambda x: np.asarray(minijax.device_put(x, replicated)),
    "pickle": lambda x: np.asarray(pickle.loads(pickle.dumps(x))),
    "copy": lambda x: np.asarray(copy.deepcopy(x)),
    "repr": repr,
    "device": lambda x: np.asarray(minijax.device_put(x, minijax.devices()[1])),
    "dlpack": lambda x: np.asarray(jnp.from_dlpack(minijax.device_put(x, minijax.devices()[0]))),
    "pointer": lambda x: [shard.data.unsafe_buffer_pointer() and None for shard in x.addressable_shards],
}
packed = "int2 uint2 int4 uint4 float4_e2m1fn".split()  # that DLPack cannot say, or not jaxlib
names = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128 bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
    "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
)
for name in packed + names.split():
    dtype = jnp.dtype(name)
    value = (np.arange(8).reshape(4, 2) % 2).astype(dtype)
    for where in (None, split, replicated, swapped):
        x = minijax.device_put(value, where)
        for x in (x, minijax.jit(lambda x: x.T.T)(x)):
            for what, function in read.items():
                if what == "dlpack" and name in packed:
                    continue
                found = function(x)
                if isinstance(found, np.ndarray):
                    wanted = value[0] if what == "row" else value
                    assert found.dtype == dtype, (what, name, where, found.dtype)
                    assert found.tobytes() == wanted.tobytes(), (what, name, where, found)
x = minijax.device_put(np.arange(4.0), split)
assert minijax.pmap(lambda x: minijax.lax.psum(x, "i"), "i")(x).tolist() == [6.0] * 4
assert minijax.jit(lambda x: minijax.pure_callback(lambda y: y + 1, x, x))(jnp.zeros(2)).tolist() == [1, 1]
minijax.debug.visualize_array_sharding(x)
minijax.live_arrays()
assert not asked and "jax" not in sys.modules
print("fine")
"""


def test_nothing_asks_for_upstream():
    """No way to read an array imports `jax`, nor needs it: most users have not installed it."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("fine")
