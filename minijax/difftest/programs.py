"""Programs as data: typed values, calls, functions and whole programs, and their text.

A `Program` holds a main `Function` and the `Value`s that it is called with. A function is a list of
`Call`s in single-assignment form; a call is a template such as `jax.grad(F)(A)` in which the letters
`A` to `E` stand for operands, `F` to `H` for nested functions and `OUT` for the name of the result.
Transforms are calls with functions, so that they nest anywhere. A program is executed by compiling
the text that `text` returns: what is printed is what ran. `generate` makes programs, `shrink` takes
them apart, `scripts` wraps them into files.
"""

from __future__ import annotations

import dataclasses
import re

import ml_dtypes  # noqa: F401  (makes its dtypes known to NumPy by their names)
import numpy as np

__all__ = ["Call", "Function", "Program", "Type", "Value", "arguments_text", "namespace", "text"]

_LETTERS = re.compile(r"(?<![\"'\w.])(?:[A-H]|OUT)(?![\"'=])(?=\b|_)")
_NAME = re.compile(r"\bv\d+\b")


@dataclasses.dataclass(frozen=True)
class Type:
    """Shape, dtype name and weak type of one array."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False

    @property
    def kind(self) -> str:
        """One of the letters f, c, i, u, b: float, complex, signed, unsigned, boolean."""
        return kind_of(self.dtype)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


def kind_of(dtype: str) -> str:
    """Return the letter f, c, i, u or b of a dtype's name, O of others: of text, of dtypes as values."""
    return next((kind for name, kind in _KINDS.items() if dtype.startswith(name)), "O")


_KINDS = {"float": "f", "bfloat": "f", "complex": "c", "int": "i", "uint": "u", "bool": "b"}


@dataclasses.dataclass(frozen=True)
class Value:
    """An input of a program: its type and the text of its elements, in order."""

    type: Type
    elements: tuple[str, ...]

    def text(self) -> str:
        """Return an expression in `np`, `array`, `inf` and `nan`."""
        kind = self.type
        if kind.weak:
            return self.elements[0]
        if not self.elements:
            return f'np.zeros({kind.shape}, "{kind.dtype}")'
        if len(set(self.elements)) == 1 and kind.shape:
            return f'np.full({kind.shape}, {self.elements[0]}, "{kind.dtype}")'
        return f'array({_nested(list(self.elements), kind.shape)}, "{kind.dtype}")'


def _nested(elements: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return elements[0]
    step = len(elements) // shape[0]
    parts = [_nested(elements[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
    return "[" + ", ".join(parts) + "]"


@dataclasses.dataclass(frozen=True)
class Call:
    """One statement: the name of its result, its template, and what the letters stand for.

    - `types`: the arrays in the result, as expressions, with their types
    """

    target: str
    template: str
    operands: tuple[str, ...] = ()
    functions: tuple[Function, ...] = ()
    operation: str = ""
    types: tuple[tuple[str, Type], ...] = ()

    def statement(self) -> str:
        """Return the template with its letters replaced, as one or more assignments."""
        words = dict(zip("ABCDE", self.operands, strict=False)) | {"OUT": self.target}
        words |= dict(zip("FGH", (f.name for f in self.functions), strict=False))
        body = self.template if "OUT" in self.template else f"OUT = {self.template}"
        return _LETTERS.sub(lambda found: words.get(found[0], found[0]), body)

    def uses(self) -> set[str]:
        """Return the names of the variables that the call and its functions mention."""
        found = {name for text in self.operands for name in _NAME.findall(text)}
        for function in self.functions:
            found |= function.free()
        return found


@dataclasses.dataclass(frozen=True)
class Function:
    """A nested or main function: parameters with types, calls, and expressions that it returns."""

    name: str
    parameters: tuple[tuple[str, Type], ...]
    body: tuple[Call, ...]
    results: tuple[str, ...]

    def free(self) -> set[str]:
        """Return the names of variables of outer functions that the function mentions."""
        found = {name for text in self.results for name in _NAME.findall(text)}
        for call in self.body:
            found |= call.uses()
        return found - {name for name, _ in self.parameters} - {c.target for c in self.body}

    def calls(self):
        """Yield the calls of the function and of those nested in it."""
        for call in self.body:
            yield call
            for function in call.functions:
                yield from function.calls()

    def lines(self, indent: str = "", head: tuple[str, ...] = ()) -> list[str]:
        """Return the definition, line by line."""
        names = ", ".join((("jax",) if head else ()) + tuple(name for name, _ in self.parameters))
        inner = indent + "    "
        lines = [f"{indent}def {self.name}({names}):", *(inner + line for line in head)]
        for call in self.body:
            for function in call.functions:
                lines += function.lines(inner)
            lines += [inner + line for line in call.statement().splitlines()]
        result = self.results[0] if len(self.results) == 1 else "(" + ", ".join(self.results) + ")"
        return [*lines, f"{inner}return {result}"]


@dataclasses.dataclass(frozen=True)
class Program:
    """A main function, its inputs, and the settings that it runs under.

    - `mode`: "composed", "single" (one call, judged in units of the last place) or "abstract" (types only)
    - `source`: for a program read from a file, the texts of its function and of its inputs, and the
      operations in it; the main function and the values are then empty
    """

    main: Function
    values: tuple[Value, ...]
    x64: bool = False
    mode: str = "composed"
    label: str = ""
    source: tuple[str, str, tuple[str, ...]] | None = None

    def operations(self) -> tuple[str, ...]:
        """Return the sorted names of the operations and transforms called."""
        if self.source is not None:
            return self.source[2]
        return tuple(sorted({call.operation for call in self.main.calls()}))

    def size(self) -> tuple[int, ...]:
        """Return the numbers that shrinking reduces: calls, elements, length of the text."""
        calls = sum(1 for _ in self.main.calls())
        elements = sum(len(value.elements) for value in self.values)
        return calls, elements, len(text(self)) + len(arguments_text(self))


HEAD = ("jnp, lax, P = jax.numpy, jax.lax, jax.P",)
MODULES = (
    "scipy.special", "scipy.linalg", "scipy.stats", "scipy.signal", "scipy.ndimage", "scipy.fft",
    "scipy.integrate", "scipy.interpolate", "image", "ops", "nn.initializers", "flatten_util",
    "scipy.cluster.vq", "custom_batching", "ad_checkpoint", "custom_derivatives", "ref",
    "experimental", "lax.linalg",
)  # fmt: skip


def text(program: Program) -> str:
    """Return the definition of `program(jax, ...)` as Python."""
    if program.source is not None:
        return program.source[0]
    return "\n".join(program.main.lines(head=HEAD))


def arguments_text(program: Program) -> str:
    """Return the tuple of the inputs as Python."""
    if program.source is not None:
        return program.source[1]
    return "(" + "".join(value.text() + ", " for value in program.values).strip() + ")"


def namespace() -> dict:
    """Return the names that a program's text and its arguments are evaluated with."""
    return {"np": np, "array": np.array, "inf": float("inf"), "nan": float("nan")}


def arguments(program: Program) -> tuple:
    """Return the inputs: NumPy arrays and, for weak types, Python scalars."""
    return eval(arguments_text(program), namespace())


def compiled(program: Program, library):
    """Return the program as a function of its inputs under a library."""
    names = namespace()
    exec(compile(text(program), f"<program {program.label}>", "exec"), names)
    function = names[program.main.name]
    return lambda *args: function(library, *args)
