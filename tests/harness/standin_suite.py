"""A test suite in the style of those written for JAX, with its private testing helpers.

`test_standin_testing` runs it on upstream and on the stand-in, as `python standin_suite.py
--outcomes`, and compares what becomes of each test. It imports nothing of minijax. The classes
whose names begin with Wrong hold tests that must not pass.
"""

import functools
import json
import sys
import unittest
import warnings

import jax
import numpy as np
from absl.testing import absltest, parameterized
from jax import lax, random
from jax import numpy as jnp
from jax._src import api, array, config, core, deprecations, dtypes, lax_reference, util, xla_bridge
from jax._src import linear_util as lu
from jax._src import test_util as jtu
from jax._src.interpreters import ad, batching, mlir
from jax._src.lax import lax as lax_internal
from jax._src.numpy.util import promote_dtypes
from jax._src.sharding_impls import NamedSharding
from jax._src.util import partition_list, safe_map, safe_zip, split_list, unzip2
from jax.sharding import PartitionSpec as P

# ruff: noqa: C408, PT009, PT027 (the style of such suites)

jax.config.parse_flags_with_absl()
jtu.request_cpu_devices(8)
from jax._src.internal_test_util import lax_test_util  # noqa: E402 (upstream's starts its devices)

SHAPES = [(), (4,), (3, 4), (0, 2), jtu.NUMPY_SCALAR_SHAPE]
FLOATS = jtu.dtypes.all_floating
UNARY = [
    ("exp", np.exp, jtu.rand_small), ("sin", np.sin, jtu.rand_default), ("abs", np.abs, jtu.rand_default),
    ("sqrt", np.sqrt, jtu.rand_positive), ("floor", np.floor, jtu.rand_default),
    ("log1p", np.log1p, jtu.rand_small_positive), ("isnan", np.isnan, jtu.rand_some_nan),
    ("isinf", np.isinf, jtu.rand_some_inf_and_nan), ("sign", np.sign, jtu.rand_some_zero),
]  # fmt: skip
TOLERANCE = {jnp.bfloat16: 2e-2, np.float16: 2e-3, np.float32: 2e-6, np.float64: 1e-12}


class NumpyTest(jtu.JaxTestCase):
    @parameterized.named_parameters(
        dict(
            testcase_name=f"_{name}_{jtu.format_shape_dtype_string(shape, np.float32)}",
            name=name, reference=reference, maker=maker, shape=shape,
        )
        for name, reference, maker in UNARY
        for shape in ((), (0, 4), jtu.NUMPY_SCALAR_SHAPE)
    )  # fmt: skip
    def testUnary(self, name, reference, maker, shape):
        make = maker(self.rng())
        args_maker = lambda: [make(shape, np.float32)]
        function = getattr(jnp, name)
        self._CheckAgainstNumpy(reference, function, args_maker, tol=TOLERANCE)
        self._CompileAndCheck(function, args_maker, tol=TOLERANCE)

    @jtu.sample_product(
        [dict(shape=s, axis=a) for s, a in [((3, 4), 0), ((3, 4), -1), ((2, 3, 4), (0, 2)), ((5,), None)]],
        dtype=FLOATS + jtu.dtypes.all_integer,
        keepdims=[False, True],
    )  # fmt: skip
    def testSum(self, shape, axis, dtype, keepdims):
        make = jtu.rand_default(self.rng())
        args_maker = lambda: [make(shape, dtype)]

        @functools.partial(jtu.with_jax_dtype_defaults, use_defaults=dtype in (np.int64,))
        def reference(x):
            wide = np.float32 if dtype == jnp.bfloat16 else None
            out = np.sum(x, axis, dtype=wide, keepdims=keepdims)
            return np.asarray(out).astype(jnp.sum(x).dtype)

        function = lambda x: jnp.sum(x, axis, keepdims=keepdims)
        tolerance = jtu.join_tolerance(
            jtu.tolerance(dtype), {jnp.bfloat16: 0.2, np.float16: 1e-1, np.float32: 1e-4}
        )
        self._CheckAgainstNumpy(reference, function, args_maker, tol=tolerance)
        self._CompileAndCheck(function, args_maker, tol=tolerance)

    @jtu.sample_product(
        dtypes=[
            (np.float32, np.int32),
            (np.int8, np.uint8),
            (jnp.bfloat16, np.float32),
            (np.bool_, np.int16),
        ]
    )
    def testPromotion(self, dtypes):
        make = jtu.rand_default(self.rng())
        args_maker = lambda: [make((3,), dtype) for dtype in dtypes]
        with jtu.strict_promotion_if_dtypes_match(dtypes):
            self._CheckAgainstNumpy(jtu.promote_like_jnp(np.add), jnp.add, args_maker, tol=1e-2)
            self._CompileAndCheck(jnp.add, args_maker, tol=1e-2)

    def testStrictPromotion(self):
        with self.assertRaisesRegex(dtypes.TypePromotionError, "implicit (dtype )?promotion"):
            jnp.arange(3) + jnp.ones(3, jnp.bfloat16)
        with config.numpy_dtype_promotion("standard"):
            self.assertEqual((jnp.arange(3) + jnp.ones(3, jnp.bfloat16)).dtype, jnp.bfloat16)

    def testRankPromotion(self):
        with self.assertRaisesRegex(ValueError, "Operands could not be broadcast together"):
            jnp.ones(3) + jnp.ones((2, 3))
        with (
            config.numpy_rank_promotion("warn"),
            self.assertWarnsRegex(UserWarning, "rank promotion"),
        ):
            jnp.ones(3) + jnp.ones((2, 3))

    def testIndices(self):
        make, indices = jtu.rand_default(self.rng()), jtu.rand_indices_unique_along_axis(self.rng())
        args_maker = lambda: [make((4, 5), np.float32), indices(dim=5, shape=(4, 2), axis=1)]
        self._CheckAgainstNumpy(
            lambda x, i: np.take_along_axis(x, i, 1),
            lambda x, i: jnp.take_along_axis(x, i, 1),
            args_maker,
        )
        self._CompileAndCheck(lambda x, i: jnp.take_along_axis(x, i, axis=1), args_maker)

    @jtu.parameterized_filterable(kwargs=[dict(n=1), dict(n=3), dict(n=7)])
    def testUnique(self, *, n):
        values = jtu.rand_unique_int(self.rng())((n,), np.int32)
        self.assertArraysEqual(jnp.sort(jnp.asarray(values)), np.arange(n, dtype=np.int32))
        self.assertArraysEqual(jnp.unique(jnp.asarray([*values, *values])), np.arange(n))


class LaxTest(jtu.JaxTestCase):
    @jtu.sample_product(
        op=["add", "mul", "max", "min", "sub"], dtype=jtu.dtypes.numeric, shape=SHAPES
    )
    def testBinary(self, op, dtype, shape):
        if op in ("max", "min") and np.issubdtype(dtype, np.complexfloating):
            self.skipTest("complex numbers have no order")
        make = jtu.rand_default(self.rng())
        args_maker = lambda: [make(shape, dtype), make(shape, dtype)]
        reference = {"max": np.maximum, "min": np.minimum, "mul": np.multiply, "sub": np.subtract}
        self._CheckAgainstNumpy(reference.get(op, np.add), getattr(lax, op), args_maker, tol=1e-5)
        self._CompileAndCheck(getattr(lax, op), args_maker)

    @jtu.sample_product(
        shape=[(2,), (3, 2)], f=[lax.sin, lax.tanh, lambda x: lax.integer_pow(x, 3)]
    )
    def testGrads(self, shape, f):
        jtu.check_grads(f, (jtu.rand_default(self.rng(), scale=1)(shape, np.float32),), order=2)

    def testDotPrecision(self):
        x = np.ones((2, 2), np.float32)
        dot = functools.partial(lax.dot, precision=lax.Precision.HIGHEST)
        jtu.assert_dot_precision(lax.Precision.HIGHEST, dot, x, x)
        jtu.assert_dot_precision(
            lax.Precision.HIGHEST, jax.grad(lambda a, b: dot(a, b).sum()), x, x
        )
        jtu.assert_dot_preferred_element_type(
            jnp.float32, functools.partial(lax.dot, preferred_element_type=jnp.float32), x, x
        )

    def testPrivateNames(self):
        self.assertIs(lax_internal.add_p, lax.add_p)
        self.assertIs(api.jit, jax.jit)
        self.assertTrue(issubclass(array.ArrayImpl, jax.Array))
        converted = lax_internal._convert_element_type(1, np.dtype("int32"), weak_type=True)
        self.assertTrue(dtypes.is_weakly_typed(converted))
        self.assertEqual(lax_internal._const(np.float32(1), 2).dtype, np.float32)
        self.assertEqual(xla_bridge.get_backend().platform, jax.default_backend())
        self.assertEqual([x.dtype for x in promote_dtypes(1, 2.0)], [jnp.float32, jnp.float32])
        self.assertEqual(dtypes.default_float_dtype(), jnp.zeros(1).dtype)

    def testPrimitive(self):
        twice_p = core.Primitive("twice_of_the_suite")
        twice_p.def_impl(lambda x: jnp.asarray(x) * 2)
        twice_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
        mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: x * 2, multiple_results=False))
        ad.deflinear2(twice_p, lambda ct, x: [twice_p.bind(ct)])
        batching.defvectorized(twice_p)
        x = jtu.rand_default(self.rng())((3,), np.float32)
        self._CompileAndCheck(jax.vmap(jax.grad(lambda x: twice_p.bind(x) * 3.0)), lambda: [x])

    def testJaxprs(self):
        closed = jax.make_jaxpr(
            lambda x: lax.scan(lambda c, _: (jax.jit(jnp.sin)(c), None), x, None, length=3)
        )(1.0)
        self.assertIn("sin", [eqn.primitive.name for eqn in jtu.iter_eqns(closed)])
        core.check_jaxpr(closed.jaxpr)
        (out,) = core.jaxpr_as_fun(jax.make_jaxpr(jnp.cos)(1.0))(2.0)
        self.assertAllClose(out, np.cos(np.float32(2.0)))
        (out,) = core.eval_jaxpr(jax.make_jaxpr(jnp.cos)(1.0).jaxpr, (), 2.0)
        self.assertAllClose(out, np.cos(np.float32(2.0)))
        forward, backward = jtu.fwd_bwd_jaxprs(lambda x: jnp.sin(x) * 2, 1.0)
        self.assertIsInstance(forward, core.ClosedJaxpr)
        self.assertLen(backward.out_avals, 1)

    def testLinearUtil(self):
        f = lu.wrap_init(
            lambda x: x + 1, debug_info=jax.api_util.debug_info("suite", lambda x: x, (1,), {})
        )
        self.assertEqual(f.call_wrapped(2), 3)


RECORDS = {record.op: record for record in lax_test_util.lax_ops()}
REDUCERS = lax_test_util.lax_reduce_ops()
OPERATIONS = [
    ("sin", np.float32), ("tanh", jnp.bfloat16), ("log", np.complex64), ("sign", np.int8),
    ("erf", np.float16), ("lgamma", np.float32), ("add", np.int8), ("div", np.int32),
    ("max", np.float32), ("pow", np.float32), ("bitwise_xor", np.bool_), ("clz", np.int16),
    ("is_finite", np.float32), ("complex", np.float32), ("betainc", np.float32),
]  # fmt: skip


class LaxReferenceTest(jtu.JaxTestCase):
    def _case(self, op, dtype, shapes):
        record = RECORDS[op]
        self.assertIn(dtype, record.dtypes)
        make = record.rng_factory(self.rng())
        return record, lambda: [make(shape, dtype) for shape in (shapes * 3)[: record.nargs]]

    @jtu.sample_product(
        [dict(op=op, dtype=dtype) for op, dtype in OPERATIONS],
        shapes=[((3, 4),), ((0, 2),), ((2, 3), (1, 3))],
    )
    def testElements(self, op, dtype, shapes):
        record, args_maker = self._case(op, dtype, shapes)
        reference = getattr(lax_reference, op)
        self._CheckAgainstNumpy(reference, getattr(lax, op), args_maker, tol=record.tol)
        self._CompileAndCheck(getattr(lax, op), args_maker, tol=record.tol)

    def _CheckBatching(self, op, size, bdims, shapes, dtype, make, **tolerances):
        args = [
            make(lax_test_util.add_bdim(size, bdim, shape), dtype)
            for bdim, shape in zip(bdims, shapes)
        ]
        element = lax_test_util.args_slicer(args, bdims)
        wanted = np.stack([op(*element(i)) for i in range(size)])
        self.assertAllClose(jax.vmap(op, in_axes=bdims)(*args), wanted, **tolerances)

    @jtu.sample_product([dict(op=op, dtype=dtype) for op, dtype in OPERATIONS], shape=[(), (2, 3)])
    def testBatchedElements(self, op, dtype, shape):
        record = RECORDS[op]
        shapes = [shape] * record.nargs
        make = record.rng_factory(self.rng())
        for bdims in list(lax_test_util.all_bdims(*shapes))[:6]:
            self._CheckBatching(getattr(lax, op), 3, bdims, shapes, dtype, make, rtol=1e-2)

    @jtu.sample_product(
        padding=["VALID", "SAME", [(1, 2), (0, -1)]],
        numbers=[("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")],
        strides=[(1, 1), (2, 1)],
    )
    def testConvolutions(self, padding, numbers, strides):
        make = jtu.rand_small(self.rng())
        sizes = dict(zip("NCHWOI", (2, 3, 5, 4, 6, 3)))
        kernel = {**sizes, "H": 2, "W": 3}
        shapes = [[sizes[c] for c in numbers[0]], [kernel[c] for c in numbers[1]]]
        args_maker = lambda: [make(tuple(shape), np.float32) for shape in shapes]

        def run(library):
            return lambda lhs, rhs: library.conv_general_dilated(
                lhs, rhs, strides, padding, (1, 1), (1, 1), numbers
            )

        self._CheckAgainstNumpy(run(lax_reference), run(lax), args_maker)
        self._CompileAndCheck(run(lax), args_maker)

    @parameterized.parameters(*[(dims,) for dims in lax_test_util.all_bdims((2, 3), (3, 4))])
    def testBatchedDot(self, bdims):
        make = jtu.rand_default(self.rng())
        self._CheckBatching(lax.dot, 5, bdims, [(2, 3), (3, 4)], np.float32, make, rtol=1e-5)

    @jtu.sample_product(
        [dict(name=name, dtype=dtype)
         for name, dtypes in [("add", (np.int32, np.float32)), ("max", (np.uint8, np.float32)),
                              ("min", (np.int32, np.float32)), ("bitwise_and", (np.int32, np.int16))]
         for dtype in dtypes],
        axes=[(0,), (1, 2)],
    )  # fmt: skip
    def testReductions(self, name, dtype, axes):
        (record,) = [r for r in REDUCERS if r.op is getattr(lax, name) and dtype in r.dtypes][:1]
        make = jtu.rand_default(self.rng(), scale=100)
        init = np.asarray(record.init_val).astype(dtype)
        args_maker = lambda: [make((2, 3, 4), dtype)]

        def run(library, computation):
            return lambda x: library.reduce(x, init, computation, axes)

        reference = run(lax_reference, record.reference_op)
        self._CheckAgainstNumpy(reference, run(lax, record.op), args_maker)
        self._CompileAndCheck(run(lax, record.op), args_maker)
        jaxpr = jax.make_jaxpr(run(lax, record.op))(*args_maker())
        self.assertEqual([eqn.primitive for eqn in jaxpr.eqns], [record.primitive])

    @parameterized.parameters("VALID", "SAME")
    def testWindows(self, padding):
        make = jtu.rand_default(self.rng())
        args_maker = lambda: [make((4, 6), np.float32), np.float32(0)]

        def run(library):
            return lambda x, init: library.reduce_window(
                x, init, library.add, (2, 3), (1, 2), padding, (1, 1)
            )

        self._CheckAgainstNumpy(run(lax_reference), run(lax), args_maker, tol=1e-5)

    def testShapes(self):
        make = jtu.rand_default(self.rng())
        args_maker = lambda: [make((2, 3), np.float32)]
        for name, args in [
            ("pad", (np.float32(0), ((1, 0, 1), (-1, 2, 0)))), ("rev", ((0,),)),
            ("broadcast", ((4,),)), ("broadcast_in_dim", ((2, 5, 3), (0, 2))),
            ("reshape", ((3, 2), (1, 0))), ("transpose", ((1, 0),)), ("slice", ((0, 1), (2, 3))),
            ("dynamic_slice", ((1, 0), (1, 2))), ("sort", (0,)), ("top_k", (2,)),
            ("bitcast_convert_type", (np.int32,)), ("convert_element_type", (np.int8,)),
        ]:  # fmt: skip
            with self.subTest(name):
                run = lambda library, x: list(jax.tree.leaves(getattr(library, name)(x, *args)))
                self._CheckAgainstNumpy(
                    functools.partial(run, lax_reference), functools.partial(run, lax), args_maker
                )


class ApiTest(jtu.BufferDonationTestCase):
    @parameterized.parameters(*range(len(jtu.JIT_IMPLEMENTATION)))
    def testJitImplementations(self, index):
        f = jtu.JIT_IMPLEMENTATION[index](lambda x: x + 1)
        self.assertAllClose(f(np.float32(1)), np.float32(2))

    def testTracesOnce(self):
        f = jax.jit(lambda x: lax.sin(x))
        x, longer = jnp.ones(3), jnp.ones(4)
        with (
            jtu.count_jit_tracing_cache_miss() as traces,
            jtu.count_jit_and_pmap_lowerings() as lowered,
        ):
            for _ in range(3):
                f(x)
        self.assertEqual((traces(), lowered()), (1, 1))
        with jtu.assert_num_jit_and_pmap_compilations(0):
            f(x)
        with jtu.count_pjit_cpp_cache_miss() as misses:
            f(x)
            f(longer)
        self.assertEqual(misses(), 1)

    def testCacheMisses(self):
        f, x = jax.jit(lambda x: lax.cos(x)), np.ones(5, np.float32)
        self.assertCacheMisses(lambda: f(x), cpp=1, tracing=1, lowering=1)
        self.assertCacheMisses(lambda: f(x), cpp=0, tracing=0, lowering=0)
        compiled = f.lower(x).compile()
        self.assertCacheMisses(lambda: [compiled(x), compiled(x)], aot_call=1, lowering=0)

    def testCollectedJaxprs(self):
        with jtu.collect_lowered_jaxprs() as pairs:
            jax.jit(lambda x: lax.exp(x))(np.ones(2, np.float32))
        self.assertLen(pairs, 1)
        self.assertIn("exponential", str(pairs[0][1]))

        @jax.jit
        def inner(x):
            return lax.exp(x) * 2

        with jtu.count_subjaxpr_to_hlo_conversion("inner") as count:
            jax.jit(lambda x: inner(x) + inner(x))(1.0)
        self.assertEqual(count(), 1)

    @jtu.device_supports_buffer_donation()
    def testDonation(self):
        x = jnp.arange(4.0)
        self.assertNotDeleted(x)
        jax.jit(lambda x: x + 1, donate_argnums=0)(x)
        self.assertDeleted(x)

    def testErrors(self):
        jtu.check_raises(
            lambda: jnp.zeros(3).reshape(2), TypeError, "cannot reshape array of shape (3,)"
        )
        jtu.check_raises_regexp(
            lambda: jax.grad(lambda x: x)(1), TypeError, "grad requires real- or complex-valued"
        )

    def testTrees(self):
        tree = {"a": np.ones(2, np.float32), "b": (np.float32(1), [np.zeros(3, np.int32)])}
        doubled = jax.tree_util.tree_map(lambda x: x + x, tree)
        self.assertAllClose(jax.jit(lambda t: jax.tree.map(lambda x: x + x, t))(tree), doubled)
        jtu.check_eq(jax.tree.map(jnp.asarray, tree), tree)
        jtu.check_close(tree, jax.tree.map(jnp.asarray, tree))

    @jtu.sample_product(
        shape=[(), (1,), (10,), (2, 3)],
        dtype=[np.float32, np.complex64, jnp.bfloat16],
        tolerance=["atol", "rtol"],
    )
    def testTolerancesGrowWithSize(self, shape, dtype, tolerance):
        wanted = np.full(shape, 1, dtype)
        apart = {tolerance: 1 / 16, {"atol": "rtol", "rtol": "atol"}[tolerance]: 0.0}
        bound = wanted.size / 16
        found = wanted.copy()
        found.flat[-1:] = 1 + bound / 2
        jtu.check_close([found, np.zeros(100)], [wanted, np.zeros(100)], **apart)
        found.flat[-1:] = 1 + 2 * bound
        with self.assertRaises(AssertionError):
            jtu.check_close([found, np.zeros(100)], [wanted, np.zeros(100)], **apart)
        jtu.check_close(np.zeros((0, 3), dtype), np.zeros((0, 3), dtype))
        with self.assertRaises(AssertionError):
            jtu.check_close(np.zeros(3, dtype), np.zeros(() if shape else (1, 3), dtype))

    def testComparisons(self):
        struct = jax.ShapeDtypeStruct((2,), np.float32)
        self.assertAllClose(jax.eval_shape(lambda x: x + x, struct), struct)
        self.assertAllClose({"a": jnp.ones(1), "b": (1, None)}, {"a": np.ones(1), "b": (1, None)})
        self.assertAllClose(jnp.ones(2, jnp.int4), np.ones(2, jnp.int4))
        self.assertAllClose(np.float32(1), np.float32(1.01), rtol={np.float32: 0.1})
        self.assertDtypesMatch(jnp.int32(1), np.int64(2))
        self.assertRaises(TypeError, lambda: self.assertArraysEqual([None], [None]))

    def testUtilities(self):
        self.assertEqual(safe_map(lambda x, y: x + y, [1, 2], [3, 4]), [4, 6])
        self.assertEqual(list(safe_zip([1], [2])), [(1, 2)])
        self.assertRaises(ValueError, lambda: safe_zip([1], [2, 3]))
        self.assertEqual(unzip2([(1, 2), (3, 4)]), ((1, 3), (2, 4)))
        self.assertEqual(partition_list([True, False], [1, 2]), ([2], [1]))
        self.assertEqual(split_list([1, 2, 3], [1]), [[1], [2, 3]])
        self.assertEqual(util.canonicalize_axis(-1, 3), 2)
        self.assertEqual(util.HashablePartial(max, 1).args, (1,))

    def testDeprecations(self):
        deprecations.register("deprecation-of-the-suite")
        with self.assertDeprecationWarnsOrRaises("deprecation-of-the-suite", "is old"):
            deprecations.warn("deprecation-of-the-suite", "it is old", stacklevel=1)
        deprecations.accelerate("deprecation-of-the-suite")
        with self.assertDeprecationWarnsOrRaises("deprecation-of-the-suite", "is old"):
            deprecations.warn("deprecation-of-the-suite", "it is old", stacklevel=1)
        deprecations.unregister("deprecation-of-the-suite")

    @jtu.ignore_warning(message="nobody")
    def testWarnings(self):
        warnings.warn("nobody hears it", UserWarning)
        with self.assertWarns(UserWarning), self.assertNoWarnings():
            pass_on = jtu.ignore_warning(category=UserWarning)
            with pass_on:
                warnings.warn("hidden", UserWarning)
            with jtu.test_warning_util.record_warnings() as seen:
                warnings.warn("seen", UserWarning)
            self.assertLen(seen, 1)
            raise unittest.SkipTest("left in the middle")

    def testOutput(self):
        with jtu.capture_stdout() as output:
            jax.debug.print("x = {}", 3)
            jax.effects_barrier()
        self.assertMultiLineStrippedEqual("x = 3", output())

    @jtu.thread_unsafe_test()
    def testEnvironment(self):
        import os

        with jtu.set_env(VARIABLE_OF_THE_SUITE="1"):
            self.assertEqual(os.environ["VARIABLE_OF_THE_SUITE"], "1")
        self.assertNotIn("VARIABLE_OF_THE_SUITE", os.environ)


@jtu.with_config(jax_legacy_prng_key="allow", jax_numpy_dtype_promotion="standard")
class RandomTest(jtu.JaxTestCase):
    @jtu.sample_product(dtype=jtu.dtypes.floating, shape=[(), (1000,), (20, 30)])
    def testUniform(self, dtype, shape):
        x = random.uniform(random.PRNGKey(0), shape, dtype)
        self.assertEqual((x.shape, x.dtype), (shape, dtype))
        self.assertTrue(bool(((x >= 0) & (x < 1)).all()))

    def testBits(self):
        self.assertArraysEqual(
            random.bits(random.key(3), (2,)), random.bits(random.PRNGKey(3), (2,))
        )
        self.assertArraysEqual(random.key_data(random.key(1)), np.array([0, 1], np.uint32))

    def testSettings(self):
        self.assertEqual(jax.config.jax_numpy_dtype_promotion, "standard")
        self.assertTrue(jax.config.jax_enable_checks)
        self.assertEqual(config.legacy_prng_key.value, "allow")
        with config.enable_x64(True):
            self.assertTrue(config.enable_x64.value and jax.config.jax_enable_x64)
            self.assertEqual(jnp.arange(2.0).dtype, np.float64)
        with jtu.thread_local_config_context(jax_enable_x64=True):
            self.assertEqual(jnp.ones(2).dtype, np.float64)
        with jtu.global_config_context(jax_debug_nans=True):
            self.assertRaises(FloatingPointError, lambda: jnp.log(-1.0))
        self.assertRaises(AttributeError, lambda: jax.config.update("jax_no_such_flag", 1))
        self.assertRaises(AttributeError, lambda: jax.config.jax_no_such_flag)
        self.assertRaises(TypeError, lambda: bool(config.enable_x64))


@jtu.with_config(jax_enable_x64=True)
class WideTest(jtu.JaxTestCase):
    def testDtypes(self):
        self.assertDtypesMatch(jnp.ones(2), np.ones(2, np.float64))
        self.assertAllClose(jnp.sin(np.float64(1)), np.sin(np.float64(1)), atol=1e-15, rtol=1e-15)


class ShardingTest(jtu.JaxTestCase):
    def testMesh(self):
        mesh = jtu.create_mesh((4, 2), ("x", "y"))
        x = jax.device_put(
            np.arange(16.0, dtype=np.float32).reshape(8, 2), NamedSharding(mesh, P("x", "y"))
        )
        out = jax.jit(lambda x: x * 2)(x)
        self.assertTrue(out.sharding.is_equivalent_to(x.sharding, 2))
        self.assertArraysEqual(out, np.arange(16.0).reshape(8, 2) * 2)

    @jtu.with_explicit_mesh((2,), ("x",))
    def testExplicit(self, mesh):
        x = jax.device_put(np.ones(8, np.float32), P("x"))
        self.assertEqual(jax.typeof(x + x).sharding.spec, P("x"))
        self.assertEqual(mesh.axis_names, ("x",))

    def testTooManyDevices(self):
        jtu.create_mesh((4096,), ("x",))


class DeviceTest(jtu.JaxTestCase):
    @jtu.run_on_devices("gpu", "tpu")
    def testElsewhere(self):
        self.fail("not on a CPU")

    @jtu.run_on_devices("cpu")
    def testHere(self):
        self.assertTrue(jtu.test_device_matches(["cpu"]))
        self.assertEqual(jtu.device_under_test(), "cpu")
        self.assertFalse(jtu.is_device_cuda() or jtu.is_device_rocm() or jtu.is_device_tpu())

    @jtu.skip_on_devices("cpu", skip_reason="not here")
    def testLeftOut(self):
        self.fail("not on a CPU")

    @jtu.skip_on_flag("jax_enable_x64", False)
    def testFlag(self):
        self.fail("x64 is off")


class WrongTest(jtu.JaxTestCase):
    def testNumpy(self):
        self._CheckAgainstNumpy(np.cos, jnp.sin, lambda: [np.ones(2, np.float32)])

    def testDtype(self):
        self._CheckAgainstNumpy(
            lambda x: np.sin(x).astype(np.float16), jnp.sin, lambda: [np.ones(2, np.float32)]
        )

    def testImpure(self):
        calls = []
        self._CompileAndCheck(
            lambda x: calls.append(1) or x * len(calls), lambda: [np.ones(2, np.float32)]
        )

    def testRetraced(self):
        sizes = iter(range(1, 9))
        self._CompileAndCheck(lambda x: x, lambda: [np.ones(next(sizes), np.float32)])

    def testTolerance(self):
        self.assertAllClose(np.float32(1), np.float32(1 + 1e-4))

    def testShapes(self):
        self.assertArraysEqual(jnp.ones((2, 1)), np.ones(2, np.float32))

    def testLists(self):
        self.assertAllClose([1, 2], np.array([1, 2]))

    def testNoWarning(self):
        with self.assertWarns(UserWarning):
            pass

    def testWarning(self):
        with self.assertNoWarnings():
            warnings.warn("heard", UserWarning)

    def testGradient(self):
        f = jax.custom_jvp(jnp.sin)
        f.defjvp(lambda primals, tangents: (jnp.sin(*primals), tangents[0] * 3.0))
        jtu.check_grads(f, (np.float32(1.0),), order=1)

    def testPrecision(self):
        jtu.assert_dot_precision(lax.Precision.HIGHEST, lax.dot, np.ones((2, 2)), np.ones((2, 2)))

    def testCount(self):
        with jtu.assert_num_jit_and_pmap_compilations(1):
            pass

    def testMisses(self):
        f = jax.jit(lambda x: lax.tan(x))
        self.assertCacheMisses(lambda: f(np.ones(3, np.float32)), tracing=0)

    def testRaises(self):
        jtu.check_raises(lambda: None, ValueError, "")

    def testText(self):
        self.assertMultiLineStrippedEqual("one\ntwo", "one\nthree")

    def testSettingsChanged(self):
        with jtu.assert_global_configs_unchanged():
            jax.config.update("jax_debug_infs", True)

    def tearDown(self):
        jax.config.update("jax_debug_infs", False)
        super().tearDown()


class _Outcomes(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.found = {}

    def _note(self, test, outcome):
        name = test.id().removeprefix("__main__.").partition(" (")[0]  # without the parameters
        self.found[name] = outcome

    def addSuccess(self, test):
        self._note(test, ["passed", ""])

    def addSkip(self, test, reason):
        self._note(test, ["skipped", ""])

    def addFailure(self, test, err):
        self._note(test, ["failed", f"{err[0].__name__}: {err[1]}"[-600:]])

    addError = addFailure


if __name__ == "__main__":
    if "--outcomes" not in sys.argv:
        absltest.main(testLoader=jtu.JaxTestLoader())
    outcomes = _Outcomes()
    jtu.JaxTestLoader().loadTestsFromModule(sys.modules["__main__"]).run(outcomes)
    print(json.dumps(outcomes.found))
