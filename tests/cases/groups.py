"""Collectives within groups of positions along an axis, over eight devices: run by
`test_collectives` in a process of its own for each library."""

import itertools

import numpy as np

from tests.harness import survivors

X = np.arange(256, dtype=np.float32).reshape(8, 8, 4)
GROUPS = {
    "pairs": [[0, 1], [2, 3], [4, 5], [6, 7]],
    "halves": [[0, 2, 4, 6], [1, 3, 5, 7]],
    "reversed": [[3, 2, 1, 0], [7, 6, 5, 4]],
    "one": [[0, 1, 2, 3, 4, 5, 6, 7]],
    "singles": [[n] for n in range(8)],
    "an array": np.arange(8).reshape(2, 4),
    "uneven": [[0, 1, 2], [3, 4, 5, 6, 7]],
    "missing": [[0, 1], [2, 3]],
    "repeated": [[0, 1], [1, 2], [3, 4], [5, 6]],
    "too large": [[0, 1], [2, 3], [4, 5], [6, 9]],
    "negative": [[0, 1], [2, 3], [4, 5], [6, -1]],
    "none": [],
}
_part = lambda x, groups: x[: len(groups[0])] if len(groups) else x
OPERATIONS = {
    "psum": lambda lax, x, g: lax.psum(x, "i", axis_index_groups=g),
    "psum of integers": lambda lax, x, g: lax.psum(x.astype("int32"), "i", axis_index_groups=g),
    "psum of a number": lambda lax, x, g: x * lax.psum(1, "i", axis_index_groups=g),
    "pmean": lambda lax, x, g: lax.pmean(x, "i", axis_index_groups=g),
    "pmax": lambda lax, x, g: lax.pmax(x, "i", axis_index_groups=g),
    "pmin": lambda lax, x, g: lax.pmin(x, "i", axis_index_groups=g),
    "all_gather": lambda lax, x, g: lax.all_gather(x, "i", axis_index_groups=g),
    "all_gather, axis 1": lambda lax, x, g: lax.all_gather(x, "i", axis=1, axis_index_groups=g),
    "all_gather, tiled": lambda lax, x, g: lax.all_gather(
        x, "i", axis=1, tiled=True, axis_index_groups=g),
    "psum_scatter": lambda lax, x, g: lax.psum_scatter(_part(x, g), "i", axis_index_groups=g),
    "psum_scatter, tiled": lambda lax, x, g: lax.psum_scatter(
        x, "i", tiled=True, axis_index_groups=g),
    "psum_scatter, too many parts": lambda lax, x, g: lax.psum_scatter(
        x, "i", axis_index_groups=g),
    "all_to_all": lambda lax, x, g: lax.all_to_all(_part(x, g), "i", 0, 0, axis_index_groups=g),
    "all_to_all, 0 to 1": lambda lax, x, g: lax.all_to_all(
        _part(x, g), "i", 0, 1, axis_index_groups=g),
    "all_to_all, tiled": lambda lax, x, g: lax.all_to_all(
        x, "i", 0, 1, tiled=True, axis_index_groups=g),
    "pswapaxes": lambda lax, x, g: lax.pswapaxes(_part(x, g), "i", 0, axis_index_groups=g),
}  # fmt: skip


def _mapped(m, how, f):
    if how == "vmap":
        return m.vmap(f, axis_name="i")
    if how == "pmap":
        return m.pmap(f, axis_name="i")
    if how == "pmap of vmap":
        return m.pmap(m.vmap(f, in_axes=-1, out_axes=-1), axis_name="i")
    mesh = m.sharding.Mesh(np.array(m.devices()), ("i",))
    return m.shard_map(
        lambda x: f(x[0])[None], mesh=mesh, in_specs=m.P("i"), out_specs=m.P("i"),
        check_vma=how == "shard_map",
    )  # fmt: skip


PROGRAMS = {}


def _program(how, operation, groups, gradient):
    def run(m):
        mapped = _mapped(m, how, lambda x: OPERATIONS[operation](m.lax, x, GROUPS[groups]))
        x = np.stack([X, X + 1], -1) if how == "pmap of vmap" else X
        if gradient:
            mapped = m.grad(lambda x, f=mapped: m.numpy.sin(f(x) * 0.01).sum())
        out = np.asarray(mapped(x), np.float64)
        return [list(out.shape), np.round(out, 4).ravel().tolist()]

    PROGRAMS[f"{operation}, {groups}, {how}{', gradient' * gradient}"] = run


EVERYWHERE = ("pairs", "reversed", "repeated")  # the other groups within pmap only
for _operation, _groups in itertools.product(OPERATIONS, GROUPS):
    for _how in ("pmap", "shard_map", "shard_map, unchecked", "vmap", "pmap of vmap"):
        if _how == "pmap" or _groups in EVERYWHERE:
            _program(_how, _operation, _groups, False)
for _operation, _groups in itertools.product(OPERATIONS, ("pairs", "reversed")):
    if "integers" not in _operation and _operation not in ("pmax", "pmin"):
        _program("pmap", _operation, _groups, True)

if __name__ == "__main__":
    survivors.main(PROGRAMS)
