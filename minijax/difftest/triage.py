"""Is a difference of floats more than rounding? Perturbed inputs and other orders of evaluation say.

A composed program is ill-conditioned where its results move as much as the two libraries differ when its
inputs, or the results of its calls, move by one unit in the last place, or when its operations run one by
one instead of fused. The tolerance is also that of the least precise dtype that the program goes through.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from minijax.difftest import programs
from minijax.difftest.comparing import Tolerance, compare, eps_of
from minijax.difftest.running import Outcome, attempted, library
from minijax.difftest.subjects import run

__all__ = ["gaps", "perturbed", "spread", "triaged"]

_FACTOR = 16.0  # how much larger than the spread a difference must be
_ROUGH = 1e-4  # spacing of dtypes whose rounding may hide what moves by units of others
_NARROW = {
    "f32": "float32", "c64": "float32", "bf16": "bfloat16", "f16": "float16", "f8": "float8_e5m2",
}  # fmt: skip


def triaged(finding, tolerance: Tolerance, quick: bool = False):
    """Return a finding with the verdict "ill-conditioned" where it is, or unchanged.

    - `quick`: leave out the run operation by operation, which compiles each of them
    """
    program = finding.program
    eps = _least_precise(program)
    tolerance = dataclasses.replace(tolerance, eps=eps)
    if finding.difference.kind == "value" and not compare(finding.ours, finding.theirs, tolerance):
        return _ill(finding, f"within {tolerance.ulps:g} units of a dtype with spacing {eps:.2g}")
    inputs = [perturbed(program, seed) for seed in range(4)]
    if eps > _ROUGH:
        inputs += [perturbed(program, seed, eps) for seed in (0, 4)]
    base = dict(zip(finding.subjects, (finding.ours, finding.theirs), strict=True))
    spread = [0.0] * len(finding.ours.leaves)
    for name, whole in base.items():
        stepwise = name in ("minijax", "jax") and not quick
        others = [run(program, name, "eager")] if stepwise else []
        others += [
            run(_jittered(program, units, zeros), name)
            for zeros in (False, True)
            for units in (-1, 1)
        ]
        for other in others + _compiled_once(program, name, inputs):
            if other.error:
                continue
            found = compare(other, whole, tolerance)
            if found is not None and found.kind in ("special", "integer"):
                return _ill(finding, f"{name} itself gives {found.detail} when rounding differs")
            spread = [max(s, g) for s, g in zip(spread, gaps(other, whole), strict=True)]
    wider = dataclasses.replace(tolerance, absolute=tuple(_FACTOR * s for s in spread))
    if finding.difference.kind == "value" and not compare(finding.ours, finding.theirs, wider):
        return _ill(finding, f"results move by {max(spread):.3g} when inputs move by some units")
    return finding


def _jittered(program, units: int, zeros: bool):
    """Return a program in which what each call of the main function gives is moved by some units.

    - `zeros`: as well as what is zero, by units of the largest element
    """
    lines = []
    for line in programs.text(program).splitlines():
        lines.append(line)
        if found := re.match(r"    (v\d+) = ", line):  # a statement of the main function
            size = "jnp.max(jnp.abs(x), initial=0)" if zeros else "x"
            move = f"(x + jnp.asarray({units} * jnp.finfo(x.dtype).eps, x.dtype) * {size})"
            floats = "jnp.issubdtype(x.dtype, jnp.inexact)"
            lines.append(
                f"    {found[1]} = jax.tree.map(lambda x: {move} if {floats} else x, {found[1]})"
            )
    source = ("\n".join(lines), programs.arguments_text(program), program.operations())
    return dataclasses.replace(program, source=source)


def _compiled_once(program, name: str, inputs: list[tuple]) -> list[Outcome]:
    """Return the outcomes of `run` for several inputs of the same types."""
    if name not in ("minijax", "jax"):
        return [run(program, name, arguments=arguments) for arguments in inputs]
    module = library(name)
    function = module.jit(programs.compiled(program, module))
    call = lambda module, _, args: function(*args)
    return [attempted(program, name, call, arguments) for arguments in inputs]


def _ill(finding, reason: str):
    return dataclasses.replace(finding, verdict="ill-conditioned", evidence=(reason,))


def _least_precise(program) -> float:
    """Return the largest spacing among the float dtypes that a program goes through."""
    module = library("minijax")
    with module.enable_x64(program.x64):
        try:
            made = module.make_jaxpr(programs.compiled(program, module))(
                *programs.arguments(program)
            )
        except Exception:
            return 0.0
    found = set(re.findall(r"\b(f32|c64|bf16|f16|f8)", str(made)))
    return max((eps_of(_NARROW[name]) for name in found), default=0.0)


def spread(a: Outcome, b: Outcome) -> tuple[float, ...]:
    """Return by leaf how far values may differ whose inputs differ by one unit; none where a call failed."""
    return () if a.error or b.error else tuple(_FACTOR * gap for gap in gaps(a, b))


def gaps(a: Outcome, b: Outcome) -> list[float]:
    """Return by leaf the largest difference of finite elements."""
    found = []
    for x, y in zip(a.leaves, b.leaves, strict=True):
        if eps_of(x.dtype) == 0.0 or x.array.size == 0:
            found.append(0.0)
            continue
        wide = np.complex128 if x.array.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            gap = np.abs(x.array.astype(wide) - y.array.astype(wide))
        found.append(float(np.max(gap, where=np.isfinite(gap), initial=0.0)))
    return found


def perturbed(program, seed: int, spacing: float = 0.0) -> tuple:
    """Return the inputs of a program, with each float moved by a few units in the last place, 1 to 8 of them.

    An odd `seed` moves zeros as well, by units of the largest element.

    - `spacing`: of the dtype whose units they are, if it is less precise than that of the input
    """
    rng = np.random.RandomState(seed)
    units = 2 ** (seed % 4)  # where one unit is lost in the next rounding, more may show
    moved = []
    for value in programs.arguments(program):
        array = np.asarray(value)
        eps = eps_of(array.dtype.name)
        if eps == 0.0 or array.size == 0:
            moved.append(value)
        elif not isinstance(value, np.ndarray):
            moved.append(value * (1 + max(1e-7, spacing) * units * rng.choice((-1, 1))))
        else:
            signs = rng.choice((-1.0, 1.0), array.shape)
            wide = np.complex128 if array.dtype.kind == "c" else np.float64
            with np.errstate(all="ignore"):
                size = array.astype(wide)
                if seed % 2:
                    size = np.where(size == 0, np.max(np.abs(size)), size)
                moves = max(eps, spacing) * units * signs
                moved.append((array.astype(wide) + moves * size).astype(array.dtype))
    return tuple(moved)
