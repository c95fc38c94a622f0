"""Derivatives of a function of numbers at many points, under both libraries, and where they differ."""

import re

import numpy as np

TOLERANCES = {np.float32: 1e-3, np.float64: 1e-7}
AT_ONCE = 420  # rows, at least the rows of a table times its arguments


def derivatives(m, f, names, rows, dtype, kinds):
    """Arrays with a derivative for each row, by kind and name of argument: "reverse by x".

    - `names`: of the arguments; those that are None are not differentiated
    - `kinds`: some of "reverse", "forward", "second", which is forward over reverse

    They run operation by operation, always for as many rows: so a few operations are compiled for all
    functions, where programs of second derivatives take seconds each. A row and a direction are
    one entry of the batch, as a batch of directions within it has other shapes for each number of arguments.
    """
    nums = tuple(i for i, name in enumerate(names) if name is not None)
    names = [name for name in names if name is not None]
    directions = np.eye(len(names), dtype=dtype)

    def along(xs, direction):
        def chosen(*some):
            return f(*(some[nums.index(i)] if i in nums else x for i, x in enumerate(xs)))

        primals = [xs[i] for i in nums]
        every = tuple(range(len(nums)))
        made = {
            "reverse": lambda: m.grad(chosen, every)(*primals),
            "forward": lambda: m.jvp(chosen, primals, direction)[1],
            "second": lambda: m.jvp(m.grad(chosen, every), primals, direction)[1],
        }
        return {kind: made[kind]() for kind in kinds}

    def batch(table):
        return [m.numpy.asarray(x) for x in np.resize(table, (AT_ONCE, table.shape[1])).T]

    with m.enable_x64(dtype == np.float64), m.disable_jit():
        points = batch(np.tile(np.asarray(rows, dtype), (len(names), 1)))
        found = m.vmap(along)(points, batch(np.repeat(directions, len(rows), axis=0)))
    used = len(names), len(rows)
    labels = {}
    for kind, by in found.items():
        if kind == "forward":
            by = np.asarray(by)[: np.prod(used)].reshape(used)
            labels |= {f"forward by {name}": x for name, x in zip(names, by, strict=True)}
            continue
        for name, x in zip(names, by, strict=True):
            x = np.asarray(x)[: np.prod(used)].reshape(used)
            if kind == "reverse":  # in any direction
                labels[f"reverse by {name}"] = x[0]
            else:
                second = zip(names, x, strict=True)
                labels |= {f"second by {name} and {other}": y for other, y in second}
    return labels


def compare(modules, title, functions, names, rows, dtype, kinds):
    """Differences between the derivatives of two functions; a line too for what only the second takes."""
    first, second = modules
    lines = []
    for kind in kinds:
        given = names, rows, dtype, (kind,)
        ours = derivatives(second, functions[1], *given)
        try:
            theirs = derivatives(first, functions[0], *given)
        except TypeError:
            lines.append(f"{title} {dtype.__name__}: {kind} raises")
        else:
            lines += differences(title, theirs, ours, rows, dtype)
    return lines


def differences(title, theirs, ours, rows, dtype):
    """A line for each derivative that is finite in the first result and not the same in the second.

    Where an argument is NaN the second has only to be finite, and no more than a NaN forward: a selection
    afterwards drops a tangent that is NaN, but multiplies a cotangent's factor by zero.
    """
    lines = []
    for label, x in theirs.items():
        y, rtol = ours[label], TOLERANCES[dtype] * (10 if label.startswith("second") else 1)
        same = np.isclose(y, x, rtol=rtol, atol=rtol / 100)
        same |= np.isnan(rows).any(axis=1) & (np.isfinite(y) | (label[:7] == "forward"))
        for i in np.nonzero(np.isfinite(x) & ~same)[0]:
            at = ", ".join(repr(float(v)) for v in rows[i])
            lines.append(
                f"{title} {dtype.__name__}: {label} at ({at}): {x[i]:.5g}, ours {y[i]:.5g}"
            )
    return lines


def check_exceptions(lines, exceptions):
    """Fail for differences of no pattern of `exceptions`, and for patterns of no difference."""
    unknown = [line for line in lines if not any(re.search(p, line) for p in exceptions)]
    assert not unknown, "\n".join(unknown)
    unused = [p for p in exceptions if not any(re.search(p, line) for line in lines)]
    assert not unused, f"exceptions that are no longer needed: {unused}"
