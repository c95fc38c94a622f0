"""Names that the text of a call may use: the library under test, valid arguments, wrong arguments.

A call is one line of Python, such as `jnp.sum(M, axis="abc")`, which means the same in both libraries:
`jax` is upstream in one child process and minijax in the other.
"""

import contextlib
import dataclasses
import decimal
import fractions
import importlib
import operator

import numpy as np

MODULES = [
    "ad_checkpoint",
    "checkpoint_policies",
    "core",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "dlpack",
    "dtypes",
    "errors",
    "example_libraries.optimizers",
    "example_libraries.stax",
    "experimental.checkify",
    "experimental.jet",
    "experimental.layout",
    "experimental.mesh_utils",
    "experimental.ode",
    "experimental.sparse",
    "export",
    "extend.core",
    "extend.linear_util",
    "extend.random",
    "ffi",
    "flatten_util",
    "image",
    "interpreters.ad",
    "interpreters.batching",
    "interpreters.partial_eval",
    "lax",
    "lax.linalg",
    "nn",
    "nn.initializers",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "ops",
    "random",
    "ref",
    "scipy.cluster.vq",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse.linalg",
    "scipy.spatial.transform",
    "scipy.special",
    "scipy.stats",
    "scipy.stats.bernoulli",
    "scipy.stats.beta",
    "scipy.stats.betabinom",
    "scipy.stats.binom",
    "scipy.stats.cauchy",
    "scipy.stats.chi2",
    "scipy.stats.dirichlet",
    "scipy.stats.expon",
    "scipy.stats.gamma",
    "scipy.stats.gennorm",
    "scipy.stats.geom",
    "scipy.stats.gumbel_l",
    "scipy.stats.gumbel_r",
    "scipy.stats.laplace",
    "scipy.stats.logistic",
    "scipy.stats.multinomial",
    "scipy.stats.multivariate_normal",
    "scipy.stats.nbinom",
    "scipy.stats.norm",
    "scipy.stats.pareto",
    "scipy.stats.poisson",
    "scipy.stats.t",
    "scipy.stats.truncnorm",
    "scipy.stats.uniform",
    "scipy.stats.vonmises",
    "scipy.stats.wrapcauchy",
    "sharding",
    "stages",
    "tree",
    "tree_util",
]

TABLED = [  # those of which `calls.py` chooses the functions
    "experimental.buffer_callback",
    "experimental.compute_on",
    "experimental.fused",
    "experimental.multihost_utils",
    "experimental.pallas",
    "experimental.pjit",
    "experimental.random",
    "experimental.rnn",
    "experimental.roofline",
    "experimental.scheduling_groups",
    "experimental.serialize_executable",
    "experimental.shard_alike",
    "experimental.shard_map",
    "experimental.sparse.linalg",
    "experimental.topologies",
    "experimental.xla_metadata",
    "monitoring",
    "profiler",
    "test_util",
]

ARRAYS = {  # those that a call may have traced: `jit(lambda M: call)(M)`
    "F": np.array([0.5, 0.25, 0.75], np.float32),
    "G": np.array([0.75, 0.5, 0.125], np.float32),
    "M": np.array([[0.5, 0.25, 0.75], [0.125, 1.0, 2.0]], np.float32),
    "SQ": np.array([[2.0, 0.5, 0.0], [0.5, 3.0, 0.25], [0.0, 0.25, 1.5]], np.float32),
    "T": np.linspace(0.1, 0.9, 24, dtype=np.float32).reshape(2, 3, 4),
    "I": np.array([2, 0, 1], np.int32),
    "IM": np.array([[0, 2, 1], [1, 1, 0]], np.int32),
    "U": np.array([7, 1, 3], np.uint8),
    "B": np.array([True, False, True]),
    "C": np.array([1 + 2j, -0.5j, 3], np.complex64),
    "S": np.array(0.5, np.float32),
    "N": np.array(1, np.int32),
    "IMG": np.ones((1, 2, 6, 6), np.float32),
    "KER": np.ones((3, 2, 3, 3), np.float32),
}


class WithArray:
    def __array__(self, dtype=None, copy=None):
        return np.ones(3, np.float32)


class Raising:
    def __array__(self, dtype=None, copy=None):
        raise OverflowError("on purpose")


class Indexed:
    def __index__(self):
        return 1


@dataclasses.dataclass
class Plain:
    a: int = 1


def deep(depth):
    nested = 1.0
    for _ in range(depth):
        nested = [nested]
    return nested


def namespace(library):
    """Everything that the text of a call may name."""
    root = importlib.import_module(library)
    for name in (*MODULES, *TABLED):
        with contextlib.suppress(ModuleNotFoundError):  # an attribute of its parent
            importlib.import_module(f"{library}.{name}")
    jnp, lax = root.numpy, root.lax
    names = {"jax": root, "jnp": jnp, "lax": lax, "np": np, "operator": operator}
    names |= {name: jnp.asarray(array) for name, array in ARRAYS.items()}
    names |= {
        "decimal": decimal, "fractions": fractions, "deep": deep, "WithArray": WithArray,
        "Raising": Raising, "Indexed": Indexed, "Plain": Plain, "P": root.sharding.PartitionSpec,
        "pl": root.experimental.pallas,
        "KEY": root.random.key(0), "KEYS": root.random.split(root.random.key(1), 3),
        "RAW": root.random.PRNGKey(0), "MESH": root.make_mesh((1,), ("x",)),
        "SPARSE": root.experimental.sparse.BCOO.fromdense(names["SQ"]),
        "SDS": root.ShapeDtypeStruct((3,), np.dtype("float32")),
        "AVAL": root.core.ShapedArray((3,), np.dtype("float32")),
        "TREE": {"a": names["F"], "b": [names["S"], None]},
        "TREEDEF": root.tree_util.tree_structure({"a": 1, "b": [2, None]}),
        "JAXPR": root.make_jaxpr(lambda x: x + 1)(1.0),
        "REF": root.new_ref(names["F"]),
    }  # fmt: skip
    names["SHARDING"] = root.sharding.NamedSharding(names["MESH"], names["P"]())
    return names


# Kinds of wrong arguments; each is right for some parameter, which is of no harm.
VALUES = """
None
NotImplemented
...
'abc'
''
'x'
'float32'
'i,j->ij'
b'ab'
bytearray(b'abc')
memoryview(b'abcdef')
memoryview(np.arange(3.0))
object()
Plain()
int
np.float32
np.dtype('float32')
print
operator
(lambda: None)
(lambda x: x)
(lambda x, y: x)
(lambda *a: 'no')
slice(0, 2)
slice(None)
range(3)
range(2**62)
(i for i in range(3))
iter([1, 2])
{}
{'a': 1}
{1, 2}
frozenset([1])
True
False
0
1
3
-1
-2
99
-99
2**31
2**32
2**62
-2**62
2**63
2**100
-2**100
1.5
-0.0
1e300
float('nan')
float('inf')
1j
np.int8(5)
np.uint64(2**63)
np.float16(2)
np.longdouble(1)
np.bool_(True)
np.str_('a')
np.datetime64('2020-01-01')
fractions.Fraction(1, 2)
decimal.Decimal(1)
Indexed()
WithArray()
Raising()
[]
()
[1, 2]
[1.5, 2.5, 3.5]
[0, 0]
(0, 0)
(0, 1, 2, 3)
(-9,)
(5,)
(None,)
(1.5,)
('a', 'b')
(2**31, 2**31)
(2**62,)
(2**62, 2**62)
(2**100,)
(-1, -1)
(3, -1)
(0,)
(2, 3)
((0, 1),)
((1, 1), (1, 1))
((2**62, 0),)
[[1, 2], [3]]
[1, 'a']
[None]
[[]]
deep(40)
np.zeros((0,), np.float32)
np.zeros((0, 3), np.float32)
np.ones((7, 5, 2), np.float32)
np.ones((3, 1), np.int32)
np.ones((2, 3), bool)
np.ones(3, np.complex64)
np.ones(4, np.float64)
np.ones(1, np.int64)
np.array(2)
np.array(2**62)
np.arange(4)
np.array([2**62, -2**62])
np.array([np.nan, np.inf, 1.0], np.float32)
np.array('a')
np.array(['a', 'b'])
np.array([b'a'])
np.array([object(), 1])
np.array(None)
np.array(['2020-01-01'], 'datetime64[D]')
np.zeros(2, [('a', 'f4'), ('b', 'i4')])
np.ones(3, np.longdouble)
np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
np.matrix([[1.0, 2.0]])
np.void(b'ab')
np.broadcast_to(np.float32(1), (2**20, 2**20))
F
I
B
C
SQ
T
KEY
KEYS
RAW
REF
SPARSE
SDS
AVAL
MESH
P('x')
SHARDING
TREEDEF
JAXPR
TREE
jnp.float32
jnp.bfloat16
jnp.sin
jax
jax.Array
jax.devices()[0]
jnp.zeros((0, 2))
jnp.ones(3, jnp.bfloat16)
jnp.ones((1, 2, 3, 4, 5))
""".strip().splitlines()
