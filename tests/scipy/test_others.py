"""The small modules of `minijax.scipy` against upstream: each of their public names."""

import importlib

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same, sample
from tests.harness.libraries import both

IMAGE = sample((4, 5), np.float32)
PLACES = [sample((30,), np.float32, 1) * 4, sample((30,), np.float32, 2) * 4]
MATRIX = (IMAGE[:, :4] @ IMAGE[:, :4].T + 4 * np.eye(4)).astype(np.float32)
GENERAL = (IMAGE[:, :4] + 4 * np.eye(4)).astype(np.float32)
RIGHT = sample((4,), np.float32, 3)
BOUNDS = {"ulps": 1024, "size": 0.2}  # of iterations that end by tolerances


def module(m, name):
    return importlib.import_module(f"{m.__name__}.scipy.{name}")


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect", "unknown"])
@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates(order, mode):
    for image in (IMAGE, np.arange(20).reshape(4, 5)):
        both(
            lambda m: module(m, "ndimage").map_coordinates(image, PLACES, order, mode, 2.0),
            **BOUNDS,
        )


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("place", ["int32", "uint8", "float16", "float32"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "float32", "complex64"])
def test_map_coordinates_of_dtypes(dtype, place, order):
    image = np.arange(12).reshape(3, 4).astype(dtype)
    places = [np.asarray([0, 1, 2], place)] * 2
    both(lambda m: module(m, "ndimage").map_coordinates(image, places, order), **BOUNDS)


def test_map_coordinates_derivatives_and_errors():
    def run(m, image, x, y):
        return m.numpy.sum(module(m, "ndimage").map_coordinates(image, [x, y], 1, "nearest") ** 2)

    both(lambda m: m.grad(lambda *xs: run(m, *xs), (0, 1, 2))(IMAGE, *PLACES), **BOUNDS)
    both(lambda m: module(m, "ndimage").map_coordinates(IMAGE, PLACES[:1], 1))
    both(lambda m: module(m, "ndimage").map_coordinates(IMAGE, PLACES, 2))


GRID = (np.asarray([0, 1, 3, 4], np.float32), np.asarray([0, 1, 2, 5, 6], np.float32))
ASKED = np.stack(PLACES, axis=-1)


@pytest.mark.parametrize("fill", [np.nan, 0.0, None])
@pytest.mark.parametrize("method", ["linear", "nearest", "unknown"])
def test_grid_interpolation(method, fill):
    made = lambda m: module(m, "interpolate").RegularGridInterpolator(
        GRID, IMAGE, method, False, fill
    )
    both(lambda m: made(m)(ASKED), **BOUNDS)


def test_grid_interpolation_of_other_shapes():
    made = lambda m, *args, **given: module(m, "interpolate").RegularGridInterpolator(
        *args, **given
    )
    both(lambda m: made(m, GRID, IMAGE)(tuple(PLACES)), **BOUNDS)
    both(lambda m: made(m, GRID, IMAGE)((1.5, 0.5)), **BOUNDS)
    both(lambda m: made(m, GRID, IMAGE)((1.5, m.numpy.ones((2, 1)))), **BOUNDS)
    both(lambda m: made(m, GRID[:1], IMAGE)(ASKED[:, :1]), **BOUNDS)
    both(lambda m: made(m, GRID, IMAGE)(ASKED.reshape(5, 6, 2)), **BOUNDS)
    both(lambda m: made(m, GRID, IMAGE)(ASKED[0]), **BOUNDS)
    both(lambda m: made(m, GRID, IMAGE)(ASKED[:, :1]))
    both(lambda m: made(m, GRID, IMAGE, bounds_error=True))
    both(lambda m: made(m, (*GRID, GRID[0]), IMAGE))


def test_vq():
    for obs, codes in ((IMAGE, IMAGE[:2] + 1), (IMAGE[0], IMAGE[1]), (IMAGE, IMAGE[0])):
        both(lambda m: module(m, "cluster.vq").vq(obs, codes), **BOUNDS)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_iterative_solvers(name):
    A = MATRIX if name == "cg" else GENERAL
    tree = {"a": RIGHT, "b": np.ones((1, 2), np.float32)}

    def run(m, A, b):
        solve = lambda *args, **given: getattr(module(m, "sparse.linalg"), name)(*args, **given)
        apply = lambda t: {"a": m.numpy.asarray(A) @ t["a"], "b": 2 * t["b"]}
        inverse = np.diag(1 / np.diag(MATRIX))
        plain = solve(A, b, tol=1e-6)
        return plain, solve(apply, tree, tol=1e-6), solve(A, b, x0=b, M=inverse, tol=1e-6)

    both(lambda m: run(m, A, RIGHT), **BOUNDS)
    total = lambda m: lambda *xs: m.numpy.sum(run(m, *xs)[0][0])
    both(lambda m: m.grad(total(m), (0, 1))(A, RIGHT), **BOUNDS)
    stacked = np.stack([RIGHT, 2 * RIGHT + 1])
    both(lambda m: m.vmap(lambda b: run(m, A, b)[0][0])(stacked), **BOUNDS)
    for args in ((A[:2], RIGHT), ("no matrix", RIGHT), (A, RIGHT, [RIGHT])):
        both(lambda m: getattr(module(m, "sparse.linalg"), name)(*args))


def test_gmres_one_direction_after_another():
    run = lambda m, **given: module(m, "sparse.linalg").gmres(GENERAL, RIGHT, tol=1e-6, **given)
    both(lambda m: run(m, solve_method="incremental"), **BOUNDS)
    both(lambda m: run(m, restart=2), **BOUNDS)
    both(lambda m: run(m, solve_method="unknown"))


def test_minimize():
    find = lambda m, *args, **given: module(m, "optimize").minimize(*args, **given)
    quadratic = lambda x: (x**2).sum() + x[0]
    both(lambda m: tuple(find(m, quadratic, np.ones(2, np.float32), method="BFGS")), **BOUNDS)
    both(lambda m: find(m, quadratic, np.ones(2, np.float32), method="unknown"))
    both(lambda m: find(m, quadratic, np.ones(2, np.float32), 1.0, method="BFGS"))

    def rosenbrock(x, a):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2).sum()

    # Upstream's line search gives up here in float32.
    found = find(minijax, rosenbrock, np.zeros(3, np.float32), (1.0,), method="BFGS")
    np.testing.assert_allclose(found.x, np.ones(3), atol=1e-3)
    jitted = minijax.jit(lambda x: find(minijax, rosenbrock, x, (1.0,), method="BFGS").x)
    np.testing.assert_allclose(jitted(np.zeros(3, np.float32)), np.ones(3), atol=1e-3)


def _complex_bowl(m, z):
    away = z - np.array([1 + 2j, -0.5j], np.complex64)
    return m.numpy.sum((away * m.numpy.conj(away)).real * np.array([1, 3], np.float32))


OBJECTIVES = {
    "bowl": (lambda m, x: ((x - 2) ** 2).sum(), np.zeros(3), np.full(3, 2.0)),
    "Rosenbrock": (
        lambda m, x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(),
        np.zeros(6), np.ones(6),
    ),
    "Himmelblau": (
        lambda m, x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2,
        np.ones(2), np.array([3.0, 2.0]),
    ),
    "Matyas": (
        lambda m, x: 0.26 * (x @ x) - 0.48 * x[0] * x[1], np.full(2, 3.0), np.zeros(2),
    ),
    "complex": (_complex_bowl, np.zeros(2, np.complex64), np.array([1 + 2j, -0.5j])),
}  # fmt: skip
LIMITED_MEMORY = "l-bfgs-experimental-do-not-rely-on-this"


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("options", [{}, {"maxcor": 3}, {"norm": 2, "ftol": 0.0}], ids=str)
def test_minimize_with_limited_memory(name, options):
    fun, start, least = OBJECTIVES[name]
    start = start.astype(np.result_type(start.dtype, np.float32), copy=False)
    start = start if start.dtype.kind == "c" else start.astype(np.float32)

    def run(m):
        minimize = module(m, "optimize").minimize
        return minimize(
            lambda x: fun(m, x), m.numpy.asarray(start), method=LIMITED_MEMORY, options=options
        )

    ours, theirs = run(minijax), run(jax)
    np.testing.assert_allclose(ours.x, least, atol=5e-3)
    for mine, upstreams in zip(ours, theirs, strict=True):
        assert getattr(mine, "dtype", mine) == getattr(upstreams, "dtype", upstreams)
        assert getattr(mine, "weak_type", None) == getattr(upstreams, "weak_type", None)
    jitted = minijax.jit(lambda: run(minijax).x)()
    np.testing.assert_allclose(jitted, ours.x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "status"),
    [({"maxiter": 2}, 1), ({"maxfun": 3}, 2), ({"maxgrad": 3}, 3), ({"ftol": 0.1}, 4), ({}, 0)],
    ids=str,
)
def test_why_limited_memory_stops(options, status):
    for m in (jax, minijax):
        found = module(m, "optimize").minimize(
            lambda x: ((x - 3) ** 4).sum(), m.numpy.zeros(2), method=LIMITED_MEMORY, options=options
        )
        assert int(found.status) == status and bool(found.success) == (status == 0), m


QUATS, VECTORS = sample((5, 4), np.float32), sample((5, 3), np.float32, 4)
SEQUENCES = ["xyz", "XYZ", "zxz", "ZYX", "yxy", "ZXZ", "xx", "xyZ"]


@pytest.mark.parametrize("quats", [QUATS, QUATS[0]], ids=["many", "one"])
def test_rotations(quats):
    rotation = lambda m: module(m, "spatial.transform").Rotation

    def run(m):
        made = rotation(m).from_quat(quats)
        names = ("as_matrix", "as_mrp", "as_quat", "as_rotvec", "inv", "magnitude")
        outs = [getattr(made, name)() for name in names]
        outs += [made.as_quat(canonical=True, scalar_first=True), made.as_rotvec(degrees=True)]
        outs += [made.apply(VECTORS), made.apply(VECTORS[0], inverse=True), made.single]
        outs += [made * rotation(m).from_quat(QUATS[1])]
        return m.tree_util.tree_leaves(outs)

    assert_same(run(minijax), run(jax), **BOUNDS)
    angles = VECTORS if quats.ndim > 1 else VECTORS[0]
    for seq in SEQUENCES:
        both(lambda m: rotation(m).from_quat(quats).as_euler(seq), **BOUNDS)
        both(lambda m: rotation(m).from_euler(seq, angles).quat, **BOUNDS)
    both(lambda m: len(rotation(m).from_quat(quats)))
    both(lambda m: rotation(m).from_quat(quats)[1].quat, **BOUNDS)


def test_making_rotations():
    rotation = lambda m: module(m, "spatial.transform").Rotation
    for name in ("from_mrp", "from_rotvec"):
        for vectors in (VECTORS, VECTORS[0], 1e-4 * VECTORS):
            both(lambda m: getattr(rotation(m), name)(vectors).quat, **BOUNDS)
    matrix = np.asarray(rotation(jax).from_quat(QUATS).as_matrix())
    both(lambda m: rotation(m).from_matrix(matrix).quat, **BOUNDS)
    assert rotation(minijax).identity(3).quat.tolist() == [[0, 0, 0, 1]] * 3
    both(lambda m: rotation(m).from_quat(QUATS).mean(np.arange(5.0)).as_matrix(), **BOUNDS)
    assert rotation(minijax).identity().quat.tolist() == [0, 0, 0, 1]
    drawn = rotation(minijax).random(minijax.random.key(0), 4)
    np.testing.assert_allclose(np.linalg.norm(drawn.quat, axis=-1), 1, rtol=1e-6)
    joined = rotation(minijax).concatenate([drawn, drawn[0]])
    assert len(joined) == 5


def test_slerp():
    def run(m, times):
        spatial = module(m, "spatial.transform")
        given = np.asarray([0, 1, 2, 4, 5], np.float32)
        made = spatial.Slerp.init(given, spatial.Rotation.from_quat(QUATS))
        return made(times).quat, m.tree_util.tree_leaves(made)

    for times in (np.asarray([0.5, 1, 3, 4.5, 0, 5], np.float32), np.float32(2.5)):
        both(lambda m: run(m, times), **BOUNDS)


def test_every_name_is_there():
    for name in ("cluster.vq", "interpolate", "ndimage", "optimize", "sparse.linalg",
                 "spatial.transform"):  # fmt: skip
        theirs = {n for n in dir(module(jax, name)) if not n.startswith("_")}
        ours = {n for n in dir(module(minijax, name)) if not n.startswith("_")}
        assert theirs <= ours, name


@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
@pytest.mark.parametrize(
    ("fun", "error"),
    [(lambda x: (x, x), ValueError), (lambda x: x[None], ValueError), (lambda x: [x], TypeError),
     (lambda x: [x[:1], x[1:]], ValueError), (lambda x: x * 1j, TypeError)],
)  # fmt: skip
def test_linear_functions_give_what_the_right_side_is(solver, fun, error):
    b = np.float32([1, 2])
    for m in (minijax, jax):
        with pytest.raises(error):
            getattr(module(m, "sparse.linalg"), solver)(fun, b)
