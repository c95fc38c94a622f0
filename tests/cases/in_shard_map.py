"""Library functions with loops in them within `shard_map` and its checks, over eight devices.

Run by `test_in_shard_map` in a process of its own. The types of all programs are checked, which is
where loops fail. One in eight also runs (all of them if `SHARD_MAP_PROGRAMS` is "all"): it is given one
row of X on each device, and its values and gradient must be those of the rows one after the other.
"""

import importlib
import os

import numpy as np

from tests.harness import survivors

X = np.linspace(0.15, 0.85, 32, dtype=np.float32).reshape(8, 4)
SORTED = np.linspace(0, 1, 7, dtype=np.float32)
C4 = np.linspace(0.3, 2.0, 4, dtype=np.float32)
A = np.diag(C4) + 0.1


def _key(m):
    return m.random.key(3)


def _special(name, *before):
    return lambda m, x: getattr(m.scipy.special, name)(*before, x)


VALUES = {
    "searchsorted of a constant": lambda m, x: m.numpy.searchsorted(SORTED, x),
    "searchsorted in what varies": lambda m, x: m.numpy.searchsorted(x, SORTED),
    **{
        f"searchsorted by {how}": lambda m, x, how=how: m.numpy.searchsorted(SORTED, x, method=how)
        for how in ("scan", "scan_unrolled", "sort", "compare_all")
    },
    "digitize": lambda m, x: m.numpy.digitize(x, SORTED),
    "histogram": lambda m, x: m.numpy.histogram(x, bins=5, range=(0, 1))[0],
    "histogram of edges": lambda m, x: m.numpy.histogram(x, bins=SORTED)[0],
    "histogram2d": lambda m, x: m.numpy.histogram2d(x, C4, bins=3, range=[(0, 1), (0, 3)])[0],
    "isin": lambda m, x: m.numpy.isin(x, SORTED),
    "repeat": lambda m, x: m.numpy.repeat(x, np.array([1, 0, 2, 1]), total_repeat_length=4),
    "repeat by what varies": lambda m, x: m.numpy.repeat(
        C4, (x > 0.4).astype(int), total_repeat_length=3
    ),
    "choice": lambda m, x: m.random.choice(_key(m), x, (3,)),
    "choice with p": lambda m, x: m.random.choice(_key(m), 4, (3,), p=x / x.sum()),
    "choice of constants": lambda m, x: m.random.choice(_key(m), C4, (3,), p=x),
    "choice, no replacement": lambda m, x: m.random.choice(_key(m), x, (3,), replace=False),
    "permutation": lambda m, x: m.random.permutation(_key(m), x),
    "poisson": lambda m, x: m.random.poisson(_key(m), x * 20, (2, 4)),
    "binomial": lambda m, x: m.random.binomial(_key(m), 10.0, x),
    "binomial of constants": lambda m, x: m.random.binomial(_key(m), x * 20, 0.4),
    "multinomial": lambda m, x: m.random.multinomial(_key(m), 9.0, x / x.sum()),
    "categorical": lambda m, x: m.random.categorical(_key(m), x),
    "geometric": lambda m, x: m.random.geometric(_key(m), x),
    "unique": lambda m, x: m.numpy.unique(x > 0.4, size=2),
    "vq": lambda m, x: m.scipy.cluster.vq.vq(x[:, None], C4[:, None])[0],
}
GRADIENTS = {
    "beta": lambda m, x: m.random.beta(_key(m), x, C4),
    "beta of constants": lambda m, x: m.random.beta(_key(m), C4, C4) * x,
    "gamma": lambda m, x: m.random.gamma(_key(m), x),
    "loggamma": lambda m, x: m.random.loggamma(_key(m), x),
    "dirichlet": lambda m, x: m.random.dirichlet(_key(m), x),
    "student t": lambda m, x: m.random.t(_key(m), x),
    "chisquare": lambda m, x: m.random.chisquare(_key(m), x),
    "truncated_normal": lambda m, x: m.random.truncated_normal(_key(m), -x, C4),
    "multivariate_normal": lambda m, x: m.random.multivariate_normal(_key(m), x, A),
    "gammainc": _special("gammainc", 2.0),
    "gammaincc": _special("gammaincc", 2.0),
    "igamma": lambda m, x: m.lax.igamma(C4, x),
    "betainc": lambda m, x: m.scipy.special.betainc(2.0, C4, x),
    "exp1": _special("exp1"),
    "expi": _special("expi"),
    "expn": _special("expn", 3),
    "hyp1f1": lambda m, x: m.scipy.special.hyp1f1(1.5, 2.5, x),
    "sici": lambda m, x: m.scipy.special.sici(x)[0],
    "bessel_jn": lambda m, x: m.scipy.special.bessel_jn(x, v=3),
    "i0e": _special("i0e"),
    "interp": lambda m, x: m.numpy.interp(x, SORTED, SORTED**2),
    "interp of what varies": lambda m, x: m.numpy.interp(C4 / 3, np.float32([0, 0.3, 0.5, 1]), x),
    "percentile": lambda m, x: m.numpy.percentile(x, 30.0),
    "cumsum": lambda m, x: m.numpy.cumsum(x),
    "cumlogsumexp": lambda m, x: m.lax.cumlogsumexp(x),
    "associative_scan": lambda m, x: m.lax.associative_scan(m.numpy.multiply, x),
    "map": lambda m, x: m.lax.map(m.numpy.sin, x),
    "map in batches": lambda m, x: m.lax.map(m.numpy.sin, x, batch_size=3),
    "solve": lambda m, x: m.numpy.linalg.solve(A, x),
    "cg": lambda m, x: m.scipy.sparse.linalg.cg(lambda v: A @ v, x)[0],
    "bicgstab": lambda m, x: m.scipy.sparse.linalg.bicgstab(lambda v: A @ v, x)[0],
    "gmres": lambda m, x: m.scipy.sparse.linalg.gmres(lambda v: A @ v, x)[0],
    "expm": lambda m, x: m.scipy.linalg.expm(A * x.sum()),
    "odeint": lambda m, x: _odeint(m, lambda y, t: -y, x),
    "odeint of constants": lambda m, x: _odeint(m, lambda y, t, a: -y * a, C4, x.sum()),
    "resize": lambda m, x: m.image.resize(x[:, None], (6, 1), "cubic"),
    "map_coordinates": lambda m, x: m.scipy.ndimage.map_coordinates(A, [x * 3, x * 2], order=1),
    "regular grid": lambda m, x: m.scipy.interpolate.RegularGridInterpolator(
        (SORTED,), SORTED**2)(x[:, None]),
    "matrix_power": lambda m, x: m.numpy.linalg.matrix_power(A * x[0], 5),
    "logsumexp": lambda m, x: m.nn.logsumexp(x),
    "sort": lambda m, x: m.numpy.sort(-x),
    "top_k": lambda m, x: m.lax.top_k(x, 2)[0],
    "polyval": lambda m, x: m.numpy.polyval(C4, x),
    "polyval, unrolled": lambda m, x: m.numpy.polyval(C4, x, unroll=2),
}  # fmt: skip
# Loops without a rule for reverse mode, in upstream too.
VALUES |= {
    "random_gamma_grad": lambda m, x: m.lax.random_gamma_grad(C4, x),
    "minimize": lambda m, x: m.scipy.optimize.minimize(
        lambda v: ((v - x) ** 2).sum(), np.zeros(4, np.float32), method="BFGS").x,
}  # fmt: skip


def _odeint(m, f, y, *args):
    ode = importlib.import_module(f"{m.__name__}.experimental.ode")
    return ode.odeint(f, y, SORTED[:4], *args)


def _whole(m, f):
    """The program on one row, as one vector of floats."""

    def run(x):
        outs = [m.numpy.asarray(leaf) for leaf in m.tree_util.tree_leaves(f(m, x))]
        return m.numpy.concatenate([out.astype(np.float32).ravel() for out in outs])

    return run


def _program(f, gradient, runs):
    def run(m):
        for part in ("cluster.vq", "ndimage", "interpolate", "sparse.linalg", "optimize", "linalg"):
            importlib.import_module(f"{m.__name__}.scipy.{part}")
        importlib.import_module(f"{m.__name__}.image")
        mesh = m.sharding.Mesh(np.array(m.devices()), ("i",))
        row = alone = _whole(m, f)
        over = m.shard_map(
            lambda x: row(x[0])[None], mesh=mesh, in_specs=m.P("i"), out_specs=m.P("i")
        )
        if gradient:
            wave = lambda g: m.grad(lambda x: m.numpy.sum(m.numpy.cos(g(x))))
            over, alone = wave(over), wave(row)
        if not runs:
            return m.eval_shape(over, X).shape[0] == 8
        alone = m.jit(alone)
        expected = np.stack([np.asarray(alone(r)) for r in X])
        np.testing.assert_allclose(np.asarray(m.jit(over)(X)), expected, rtol=2e-4, atol=2e-5)
        return True

    return run


_KINDS = [(name, f, False) for name, f in (VALUES | GRADIENTS).items()]
_KINDS += [(f"gradient of {name}", f, True) for name, f in GRADIENTS.items()]
_ALL = os.environ.get("SHARD_MAP_PROGRAMS") == "all"
PROGRAMS = {
    name: _program(f, gradient, _ALL or number % 8 == 0)
    for number, (name, f, gradient) in enumerate(_KINDS)
}


def _of_what_is_alike(f, a):
    """The gradient, taken on each device, in what is the same on all of them: a sum over them."""

    def run(m):
        mesh = m.sharding.Mesh(np.array(m.devices()), ("i",))
        slope = m.grad(lambda a, x: m.numpy.sum(m.numpy.sin(f(m, a, x))))
        over = m.shard_map(slope, mesh=mesh, in_specs=(m.P(), m.P("i")), out_specs=m.P())
        alone = sum(
            np.asarray(slope(m.numpy.asarray(a), m.numpy.asarray(X[i : i + 1]))) for i in range(8)
        )
        np.testing.assert_allclose(np.asarray(m.jit(over)(a, X)), alone, rtol=2e-4, atol=2e-5)
        return True

    return run


def _scaled(m, a, x):
    config = m.nn.get_scaled_dot_general_config("mxfp8")
    x = m.numpy.tile(x, (1, 8))
    return m.nn.scaled_dot_general(a, x, (((1,), (1,)), ((), ())), configs=[config] * 3)


ALIKE = {
    "odeint": (lambda m, a, x: _odeint(m, lambda y, t, a: -y * a, x[0], a), np.float32(0.5)),
    "odeint of what it closes over": (
        lambda m, a, x: _odeint(m, lambda y, t: -y * a, x[0]), np.float32(0.5)
    ),
    "odeint from a constant": (
        lambda m, a, x: _odeint(m, lambda y, t, x: -y * a * x, C4, x.sum()), np.float32(0.5)
    ),
    "scaled_dot_general": (_scaled, np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)),
}  # fmt: skip
PROGRAMS |= {f"of what is alike: {name}": _of_what_is_alike(*row) for name, row in ALIKE.items()}


def _of_a_constant(f):
    """A sum of complex constants, at which XLA ends the process when it folds them."""

    def run(m):
        mesh = m.sharding.Mesh(np.array(m.devices()), ("i",))
        body = lambda _: f(m, m.numpy.full(8, 1.5, "complex64"))
        over = m.shard_map(body, mesh=mesh, in_specs=m.P(), out_specs=m.P(), check_vma=False)
        np.testing.assert_array_equal(np.asarray(m.jit(over)(X)).ravel()[:1], [12.0])
        return True

    return run


CONSTANTS = {
    "psum": lambda m, x: m.lax.psum(x, "i"),
    "psum of groups": lambda m, x: m.lax.psum(x, "i", axis_index_groups=[list(range(8))]),
    "pmean": lambda m, x: m.lax.pmean(x, "i") * 8,
    "psum_scatter": lambda m, x: m.lax.psum_scatter(x, "i"),
    "gradient of all_gather": lambda m, x: 1.5 * m.grad(
        lambda z: m.numpy.real(m.numpy.sum(m.lax.all_gather(z, "i"))))(x),
}  # fmt: skip
PROGRAMS |= {f"of a constant: {name}": _of_a_constant(f) for name, f in CONSTANTS.items()}

if __name__ == "__main__":
    survivors.main(PROGRAMS)
