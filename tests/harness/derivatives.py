"""Derivatives of a function of numbers at many points, under both libraries, and where they differ."""

import re

import numpy as np

TOLERANCES = {np.float32: 1e-3, np.float64: 1e-7}
AT_ONCE = 84  # rows, the most that a table has


def derivatives(m, f, names, rows, dtype, kinds):
    """Arrays with a derivative for each row, by kind and name of argument: "reverse by x".

    - `names`: of the arguments; those that are None are not differentiated
    - `kinds`: some of "reverse", "forward", "second"

    They run operation by operation, always for as many rows: so a few operations are compiled for all
    functions, where programs of second derivatives take seconds each.
    """
    nums = tuple(i for i, name in enumerate(names) if name is not None)
    names = [name for name in names if name is not None]
    reverse, forward = m.grad(f, nums), m.jacfwd(f, nums)
    made = {"reverse": reverse, "forward": forward, "second": m.jacfwd(reverse, nums)}

    def all_kinds(*xs):
        return {kind: made[kind](*xs) for kind in kinds}

    with m.enable_x64(dtype == np.float64), m.disable_jit():
        given = np.resize(np.asarray(rows, dtype), (AT_ONCE, len(rows[0])))
        found = m.vmap(all_kinds)(*map(m.numpy.asarray, given.T))
        labels = {}
        for kind, by in found.items():
            for name, x in zip(names, by, strict=True):
                pairs = zip(names, x, strict=True) if kind == "second" else [("", x)]
                for second, value in pairs:
                    label = f"{kind} by {name}" + (f" and {second}" if second else "")
                    labels[label] = np.asarray(value)[: len(rows)]
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
