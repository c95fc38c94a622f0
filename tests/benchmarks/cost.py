"""What compiled functions cost: XLA's FLOPs, bytes and temporary memory beside upstream's.

A row is an expression on the arrays of `cost_rows.INPUTS`, compiled by both libraries; where upstream
differentiates it, so is the gradient of the sum of its squares. Worst ratios first; a row above 1.05
tells how long it runs beside upstream's, and why XLA counts more.
"""

import re
import warnings

import jax
import numpy as np

import minijax
from minijax.config import override
from tests.benchmarks.cost_rows import INPUTS, expressions, reason
from tests.benchmarks.timing import compare_typical

_NAMES = re.compile(r"(?<![\w.\"])(key|" + "|".join(INPUTS) + r")(?![\w\"=])")


def _arguments(m, names):
    return [m.random.key(0) if name == "key" else m.numpy.asarray(INPUTS[name]) for name in names]


def _function(m, text, names):
    """The expression as a function of the arrays that it names."""
    code = compile(text, text, "eval")
    space = {"jax": m, "jnp": m.numpy, "np": np, "lax": m.lax, "random": m.random, "nn": m.nn}
    space |= {"image": m.image, "scipy": m.scipy, "special": m.scipy.special}

    def fun(*args):
        return eval(code, {**space, **dict(zip(names, args, strict=True))})

    return fun


def _gradient(m, fun, names):
    """The gradient of the sum of the squares of a function's results, in all arrays that have one."""
    inexact = [k for k, name in enumerate(names) if INPUTS.get(name, names).dtype.kind in "fc"]

    def squares(*args):
        leaves = [x for x in m.tree.leaves(fun(*args)) if m.numpy.issubdtype(x.dtype, np.inexact)]
        return sum(m.numpy.sum(m.numpy.square(m.numpy.abs(x))) for x in leaves)

    return m.grad(squares, inexact)


def _compiled(m, text, gradient):
    """A compiled program of the expression, or of its gradient, and its arguments."""
    names = sorted(set(_NAMES.findall(text)))
    fun = _function(m, text, names)
    args = _arguments(m, names)
    with override("enable_compilation_cache", False):
        return m.jit(_gradient(m, fun, names) if gradient else fun).lower(*args).compile(), args


def costs(program):
    found = program.cost_analysis()
    memory = program.memory_analysis()
    return [
        max(found.get("flops", 0.0), 0.0) + max(found.get("transcendentals", 0.0), 0.0),
        found.get("bytes accessed", 0.0),
        float(memory.temp_size_in_bytes),
    ]


# What is less than this on both sides counts as equal: FLOPs, bytes, bytes of temporary memory.
LEAST = (256, 4096, 4096)


def _row(text, gradient):
    """(worst ratio, label, ratios, programs) of one row, or None where there is nothing to compile."""
    label = f"grad of {text}" if gradient else text
    try:
        theirs = _compiled(jax, text, gradient)
    except Exception as error:
        if not gradient:
            print(f"  upstream, {label}: {type(error).__name__}: {str(error)[:150]}")
        return None
    try:
        ours = _compiled(minijax, text, gradient)
    except Exception as error:
        print(f"  {label}: {type(error).__name__}: {str(error)[:150]}")
        return None
    ratios = [
        max(our, least) / max(their, least)
        for our, their, least in zip(costs(ours[0]), costs(theirs[0]), LEAST, strict=True)
    ]
    return max(ratios), label, ratios, (ours, theirs)


def rows(table=None, only=""):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            row
            for text in expressions()
            if only in text
            for gradient in (False, True)
            if (row := _row(text, gradient))
        ]
    found.sort(key=lambda row: -row[0])
    print("\n== compiled cost, minijax / upstream: FLOPs, bytes, temporary memory (worst first)")
    for worst, label, ratios, programs in found:
        over = f"  time {_times(programs):.2f}: {reason(label)}" if worst > 1.05 else ""
        print(f"  {label[:60]:60s}" + "".join(f" {r:7.3f}" for r in ratios) + over)
    over = sum(row[0] > 1.05 for row in found)
    print(f"  {len(found)} rows, {over} above 1.05")
    return found


def _times(programs):
    """Ours to theirs of how long two compiled programs run."""
    calls = [
        lambda m=m, program=program, args=args: m.block_until_ready(program(*args))
        for m, (program, args) in zip((minijax, jax), programs, strict=True)
    ]
    ours, theirs = compare_typical(*calls, blocks=40)
    return ours / theirs
