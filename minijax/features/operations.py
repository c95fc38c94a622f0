"""Shorthands for operations of StableHLO that many lowering rules write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray
from minijax.lowering.module import Builder, Value
from minijax.runtime.escape import quoted

__all__ = ["OperationBuilder", "layouts_text"]


def layouts_text(orders: Sequence[Sequence[int]]) -> str:
    """The layouts of arrays as an attribute: dimensions from the one that varies fastest."""
    parts = [
        f"dense<{list(order) if len(order) else ''}> : tensor<{len(order)}xindex>"
        for order in orders
    ]
    return f"[{', '.join(parts)}]"


class OperationBuilder(Builder):
    """A builder with methods for common operations; all functions are written by one."""

    __slots__ = ()

    def full(self, value: Any, aval: ShapedArray) -> Value:
        """An array of this type, filled with one number."""
        return self.broadcast(self.constant(value, aval.update(shape=())), aval.shape, ())

    def convert(self, x: Value, dtype: np.dtype) -> Value:
        if x.dtype == dtype:
            return x
        return self.op("stablehlo.convert", (x,), x.aval.update(dtype=dtype))

    def compare(self, x: Value, y: Value, direction: str, kind: str | None = None) -> Value:
        """`stablehlo.compare` with direction EQ, NE, LT, LE, GT or GE."""
        if kind is None:
            code = x.dtype.kind
            kind = (
                "UNSIGNED" if code in "ub" or x.dtype.name.startswith("uint")
                else "SIGNED" if code == "i" or x.dtype.name.startswith("int")
                else "FLOAT"
            )  # fmt: skip
        attributes = (
            f"compare_type = #stablehlo<comparison_type {kind}>, "
            f"comparison_direction = #stablehlo<comparison_direction {direction}>"
        )
        out = x.aval.update(dtype=np.dtype(np.bool_), weak_type=False)
        return self.op("stablehlo.compare", (x, y), out, attributes)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        if x.shape == tuple(shape):
            return x
        return self.op("stablehlo.reshape", (x,), x.aval.update(shape=tuple(shape)))

    def statements(self, text: str, outs: Sequence[Any]) -> list[Value]:
        """One operation written out in the form of its own dialect, and its results."""
        name = self._name()
        if len(outs) == 1:
            values = [Value(name, outs[0])]
        else:
            values = [Value(f"{name}#{index}", aval) for index, aval in enumerate(outs)]
            name = f"{name}:{len(outs)}"
        self.lines.append(f"{name} = {text}{self.location}" if outs else text + self.location)
        return values

    def custom_call(
        self,
        target: str,
        operands: Sequence[Value],
        outs: Sequence[Any],
        *,
        config: str = "",
        api_version: int = 4,
        side_effect: bool = False,
        layouts: tuple[Sequence, Sequence] | None = None,
        aliases: Sequence[tuple[int, int]] = (),
        calls: Sequence[str] = (),
        extra: str = "",
    ) -> list[Value]:
        """A call of a registered target; `config` is a dictionary attribute for the typed FFI.

        `layouts` are those of the operands and of the results (see `layouts_text`), `aliases` pairs
        of an operand and the result that takes its memory. `calls` are functions that the callee applies, and `extra`
        further attributes (see `op_n`).
        """
        parts = [
            f"call_target_name = {quoted(target)}",
            f"api_version = {api_version} : i32",
            f"has_side_effect = {'true' if side_effect else 'false'}",
        ]
        if config:
            parts.append(f"backend_config = {config}")
        if layouts is not None:
            for what, orders in zip(("operand", "result"), layouts, strict=True):
                parts.append(f"{what}_layouts = {layouts_text(orders)}")
        if aliases:
            shown = [
                "#stablehlo.output_operand_alias<output_tuple_indices = "
                f"[{out if len(outs) > 1 else ''}], operand_index = {index}, "
                "operand_tuple_indices = []>"
                for index, out in aliases
            ]
            parts.append(f"output_operand_aliases = [{', '.join(shown)}]")
        if calls:
            parts.append(f"called_computations = [{', '.join([f'@{name}' for name in calls])}]")
        return self.op_n("stablehlo.custom_call", operands, outs, ", ".join(parts), (), extra)
