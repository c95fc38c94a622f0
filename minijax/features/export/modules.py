"""Modules that are kept: as portable bytes, for several platforms, and as a part of other modules.

The calling convention is upstream's: `main` takes the index of the platform if there are several,
then a token for each ordered effect, then those arguments that it reads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, sdy, stablehlo

from minijax.features.mlir_rules import make_private, rename
from minijax.lowering.module import Module
from minijax.runtime.escape import symbol
from minijax.runtime.mlir_modules import described, parse, shared_context

__all__ = [
    "STABLE_TARGETS",
    "for_platforms",
    "from_portable",
    "merge",
    "to_portable",
    "unstable_calls",
]

_MAIN = "func.func public @main("
_INDEX = 'tensor<i32> {jax.global_constant = "_platform_index"} loc(unknown)'

# Targets of custom calls that XLA and jaxlib promise to keep, as upstream's export takes them.
STABLE_TARGETS = frozenset(
    (
        "AllocateBuffer", "ApproxTopK", "Eigh", "LuDecomposition",
        "ProductOfElementaryHouseholderReflectors", "Qr", "SPMDFullToShardShape",
        "SPMDShardToFullShape", "Sharding", "annotate_device_placement", "cu_threefry2x32_ffi",
        "cusparse_gtsv2_ffi", "hip_threefry2x32_ffi", "mosaic_gpu_v2", "shape_assertion",
        "stablehlo.dynamic_approx_top_k", "stablehlo.dynamic_reduce_window",
        "stablehlo.dynamic_rng_bit_generator", "stablehlo.dynamic_top_k", "tf.call_tf_function",
        "tpu_custom_call",
        *[f"{gpu}_lu_pivots_to_permutation" for gpu in ("cu", "hip")],
        *[
            f"{gpu}solver_{routine}_ffi" for gpu in ("cu", "hip")
            for routine in ("geqrf", "gesvd", "gesvdj", "getrf", "orgqr", "potrf", "syevd", "sytrd")
        ],
        *[
            f"lapack_{kind}{routine}_ffi" for kind in "sdcz"
            for routine in ("gees", "geev", "gehrd", "geqrf", "gesdd", "getrf", "gtsv", "potrf", "trsm")
        ],
        *[f"lapack_{kind}{r}_ffi" for kind in "sd" for r in ("orgqr", "syevd", "sytrd")],
        *[f"lapack_{kind}{r}_ffi" for kind in "cz" for r in ("ungqr", "heevd", "hetrd")],
    )
)  # fmt: skip


def to_portable(text: str, result_names: Sequence[str], polymorphic: bool) -> bytes:
    """A module as bytes that versions of StableHLO of the four weeks before read, and later ones.

    The module says whether it is for symbolic sizes or several platforms (`polymorphic`).
    NotImplementedError for operations that have no form for symbolic sizes here.
    """
    ages = stablehlo.StablehloCompatibilityRequirement
    target = stablehlo.get_version_from_compatibility_requirement(ages.WEEK_4)
    with shared_context():
        try:
            module = described(text, result_names)
        except ir.MLIRError as error:
            if "?x" not in text:
                raise
            raise NotImplementedError(
                "the program has an operation that minijax cannot write for symbolic sizes yet: give "
                f"the sizes that it works on, or another operation. MLIR says: {error}"
            ) from None
        module.operation.attributes["jax.uses_shape_polymorphism"] = ir.BoolAttr.get(polymorphic)
        return stablehlo.serialize_portable_artifact(module, target, True)


def _module(artifact: bytes) -> ir.Module:
    context = shared_context()
    with context, ir.Location.unknown(context):
        return stablehlo.deserialize_portable_artifact(context, artifact)


def from_portable(artifact: bytes) -> str:
    """The text of a module that was kept as bytes."""
    return _module(artifact).operation.get_asm(enable_debug_info=True)


def _operations(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _operations(inner.operation)


def unstable_calls(artifact: bytes, allowed: Collection[str]) -> list[str]:
    """The custom calls of a module, as text, whose targets nobody promises to keep."""
    found = []
    for op in _operations(_module(artifact).operation):
        if op.operation.name == "stablehlo.custom_call":
            target = ir.StringAttr(op.operation.attributes["call_target_name"]).value
            if target not in STABLE_TARGETS and target not in allowed:
                found.append(f"{op} at {op.operation.location}")
    return found


# -- several platforms -----------------------------------------------------------------------------


def for_platforms(texts: Sequence[str], platforms: Sequence[str]) -> str:
    """One module from those of several platforms, which takes the index of the platform first.

    What is the same for all is written once; else `main` chooses among the programs.
    """
    first = texts[0]
    if len(texts) == 1:
        return first
    if all(text == first for text in texts):
        comma = "" if f"{_MAIN})" in first else ", "
        return first.replace(_MAIN, f"{_MAIN}%platform: {_INDEX}{comma}", 1)
    with shared_context(), ir.Location.unknown(shared_context()):
        chosen, parts = [], []
        for text in texts:
            if text in texts[: len(chosen)]:
                chosen.append(chosen[texts.index(text)])
                continue
            suffix = "" if text is first else f"_{platforms[len(chosen)]}"
            called = f"main_on_{platforms[len(chosen)]}"
            part = parse(text)
            rename(part, lambda old, s=suffix, c=called: c if old == "main" else f"{old}{s}")
            for op in part.body.operations:
                kinds = _stripped(op) if isinstance(op, func.FuncOp) else None
                if ir.StringAttr(op.attributes["sym_name"]).value == called:
                    kinds_of_main = kinds
                parts.append(
                    op.operation.get_asm(
                        large_elements_limit=None, enable_debug_info=True, use_local_scope=True
                    )
                )
            chosen.append(called)
        head = next(line for line in first.split("\n") if line.startswith(_MAIN))
        main = _choosing(head, chosen, *kinds_of_main)
    opening = first.split("\n", 1)[0]
    return "\n".join([opening, *parts, main, "}\n"])


def _stripped(function: Any) -> tuple[list[str], list[str]]:
    """Make a function private, without what is said of its arguments; the types of those, of results."""
    make_private(function)
    for name in ("arg_attrs", "res_attrs"):
        if name in function.attributes:
            del function.attributes[name]
    return list(map(str, function.type.inputs)), list(map(str, function.type.results))


def _choosing(head: str, names: Sequence[str], ins: Sequence[str], outs: Sequence[str]) -> str:
    """The function that calls one of several by the index of the platform."""
    comma = ", " if ins else ""
    head = head.replace(_MAIN, f"{_MAIN}%platform: {_INDEX}{comma}", 1)
    kinds = f"({', '.join(ins)}) -> ({', '.join(outs)})"
    # Tokens stand before the arguments, and have names of their own.
    inputs = [piece.split(":")[0].strip() for piece in _parameters(head)][1:]
    many = f":{len(outs)}" if len(outs) > 1 else ""
    refer = lambda name: [f"{name}#{i}" for i in range(len(outs))] if many else [name][: len(outs)]
    ends = ", ".join(outs)

    def branch(name: str) -> str:
        result = f"%b{many} = " if outs else ""
        called = f'{result}"func.call"({", ".join(inputs)}) <{{callee = {symbol(name)}}}> : {kinds}'
        return f'{{\n{called}\n"stablehlo.return"({", ".join(refer("%b"))}) : ({ends}) -> ()\n}}'

    result = f"%r{many} = " if outs else ""
    case = f'{result}"stablehlo.case"(%platform) ({", ".join(map(branch, names))}) : (tensor<i32>) -> ({ends})'
    end = f"return {', '.join(refer('%r'))} : {ends}" if outs else "return"
    return "\n".join([head, case, end, "}"])


def _parameters(head: str) -> list[str]:
    """The parameters in the first line of a function, split at the commas between them."""
    out, depth = [""], 0
    for c in re.sub(r'"(?:[^"\\]|\\.)*"', '""', head[len(_MAIN) :]):
        depth += (c in "({[<") - (c in ")}]>")
        if depth < 0:
            return out
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return out


# -- one module in another ------------------------------------------------------------------------------


def merge(text: Module, artifact: bytes, name: str) -> str:
    """Write the functions of a kept module into one in the making: the name of its `main` there."""
    with shared_context(), ir.Location.unknown(shared_context()):
        part = _module(artifact)

        def choose(old: str) -> str:
            return text.unique(name if old == "main" else f"exported_{old}")

        names = rename(part, choose)
        for op in part.body.operations:
            if isinstance(op, func.FuncOp):
                _stripped(op)
            written = op.operation.get_asm(large_elements_limit=None)
            (text.header if isinstance(op, sdy.MeshOp) else text.functions).append(written)
    return names["main"]
