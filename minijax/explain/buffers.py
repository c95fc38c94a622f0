"""Temporary memory of a compiled program: XLA's buffers, what makes them, and when they are in use.

XLA hands out its optimised module and, for CPUs, its buffer assignment as serialised protocol buffers
(`xla/service/hlo.proto`), of which the few fields that are needed are read here by their numbers. The
compilers of GPUs keep the assignment to themselves: it is worked out from the scheduled module.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

__all__ = ["Buffer", "Instruction", "assignment", "buffers", "in_use"]

# Opcodes whose result is among what they read: they neither make a buffer nor read one.
_FORWARDING = frozenset(
    ["all-reduce-done", "async-update", "bitcast", "get-tuple-element", "opt-barrier", "tuple"]
)
# Opcodes whose result may take the place of an operand that is read for the last time; those within
# a fusion that read an operand elsewhere than where they write.
_IN_PLACE = frozenset(["dynamic-update-slice", "fusion", "scatter", "select", "sort"])
_ELSEWHERE = frozenset(
    ["convolution", "copy", "dot", "gather", "reduce-window", "reverse", "transpose"]
)
# Opcodes whose result is there for the whole program, or is what they are given.
_LASTING = _FORWARDING | frozenset(
    [
        "all-gather-done",
        "async-done",
        "call",
        "collective-permute-done",
        "constant",
        "copy-done",
        "parameter",
    ]
)
# Instructions that begin what another one ends: the place of their operands in their result, and
# that of the result in what those that end are given.
_OPERANDS_AT = {
    "async-start": 0,
    "all-gather-start": 0,
    "collective-permute-start": 0,
    "copy-start": 1,
}
_RESULT_AT = {"async-done": 1, "all-gather-done": 1, "collective-permute-done": 1, "copy-done": 0}
# Opcodes whose result is that of the computation which they call.
_WRAPPING = frozenset(["async-start", "fusion"])
# Opcodes of computations whose buffers lie beside those of the program around them.
_CALLING = frozenset(["call", "conditional", "while"])

# By XLA's number of an element type, its bits; 8 where none is given, none for tokens.
_BITS = {
    3: 16, 4: 32, 5: 64, 7: 16, 8: 32, 9: 64, 10: 16, 11: 32, 12: 64, 14: 0, 15: 64, 16: 16, 17: 0,
    18: 128, 21: 4, 22: 4, 26: 2, 27: 2, 30: 1, 31: 1, 32: 4,
}  # fmt: skip
_TUPLE = 13

Index = tuple[int, ...]  # of an array within nested tuples


class Instruction(NamedTuple):
    """An instruction of a module; `element` is of a tuple, or the number of a parameter."""

    number: int
    name: str
    opcode: str
    op_name: str
    operands: tuple[int, ...]
    called: tuple[int, ...]
    element: int


class Buffer:
    """A value in memory, in use from instruction number `start` to number `end`.

    Values of one allocation whose bytes overlap are used one after the other, or are the same.
    `op_name` is the name of the operation that computes it, with its scopes, or empty; `readers` are
    those of the instructions that read it.
    """

    def __init__(self, maker: Instruction, index: Index, allocation: int, offset: int, size: int):
        self.maker, self.index = maker, index
        self.allocation, self.offset, self.size = allocation, offset, size
        self.start = self.end = 0
        self.readers: list[str] = []
        self.op_name = ""


def buffers(
    compiled: Any, known: Callable[[str], Any] = bool
) -> tuple[list[Buffer], list[Instruction]]:
    """Return the temporary buffers of a compiled program, and the instructions in their order.

    `known` says which names of operations tell something: without one of its own, a buffer has the
    name of what it is computed from, or for. RuntimeError where the compiler shows no module.
    """
    modules = compiled.runtime_executable().hlo_modules()
    if len(modules) != 1:
        raise RuntimeError("The compiler of this platform does not show the module it has made.")
    module = _Module(modules[0].as_serialized_hlo_module_proto())
    return _Assignment(module, assignment(compiled), known).temporaries, module.order


def assignment(compiled: Any) -> bytes:
    """Return XLA's buffer assignment of a program; empty where its compiler does not show it."""
    return getattr(compiled.memory_analysis(), "serialized_buffer_assignment_proto", b"")


def in_use(found: Iterable[Buffer], count: int) -> Iterator[tuple[int, list[Buffer]]]:
    """Yield the bytes in use during each of `count` instructions, and the buffers that hold them."""
    starting: list[list[Buffer]] = [[] for _ in range(count)]
    ending: list[list[Buffer]] = [[] for _ in range(count)]
    for buffer in found:
        starting[buffer.start].append(buffer)
        ending[buffer.end].append(buffer)
    alive: dict[Buffer, None] = {}
    for started, ended in zip(starting, ending, strict=True):
        alive.update(dict.fromkeys(started))
        yield _covered(alive)
        for buffer in ended:
            del alive[buffer]


def _covered(alive: Iterable[Buffer]) -> tuple[int, list[Buffer]]:
    """The bytes of buffers, each byte once, and the buffers that are not within another one."""
    total, allocation, reached, kept = 0, -1, 0, []
    rank = lambda b: (b.allocation, b.offset, -b.size, not b.op_name)
    for buffer in sorted(alive, key=rank):
        if buffer.allocation != allocation:
            allocation, reached = buffer.allocation, 0
        end = buffer.offset + buffer.size
        if end > reached:
            total += end - max(buffer.offset, reached)
            reached = end
            kept.append(buffer)
    return total, kept


class _Module:
    """Instructions and computations of an optimised module, by their numbers."""

    def __init__(self, text: bytes):
        parts = _fields(text)
        self.instructions: dict[int, Instruction] = {}
        self.sequences: dict[int, list[Instruction]] = {}
        self.roots: dict[int, Instruction] = {}
        self.callers: dict[int, tuple[Instruction, int]] = {}  # and which of the called it is
        self.homes: dict[int, int] = {}  # the computation of each parameter
        self.shapes: dict[int, bytes] = {}
        for computation in map(_fields, parts[3]):
            self._add(computation)
        for schedule in parts.get(7, ()):
            for entry in map(_fields, _fields(schedule).get(1, ())):
                order = _integers(_fields(entry[2][0]).get(1, ()))
                self.sequences[_number(entry, 1)] = [self.instructions[n] for n in order]
        self.order: list[Instruction] = []
        self.place: dict[int, int] = {}
        self.last: dict[int, int] = {}  # by computation, the place of its last instruction
        self.entry = _number(parts, 6)
        self._place_all(self.entry)

    def _add(self, computation: dict[int, list]) -> None:
        number, sequence = _number(computation, 5), []
        for held in map(_fields, computation[2]):
            text = lambda field, held=held: held[field][0].decode() if field in held else ""
            metadata = _fields(held[7][0]) if 7 in held else {}
            name = metadata[2][0].decode() if 2 in metadata else ""
            element = _number(held, 9 if text(2) == "parameter" else 13)
            found = Instruction(
                _number(held, 35), text(1), text(2), name, tuple(_integers(held.get(36, ()))),
                tuple(_integers(held.get(38, ()))), element,
            )  # fmt: skip
            self.instructions[found.number] = found
            self.shapes[found.number] = held[3][0]
            sequence.append(found)
            if found.opcode == "parameter":
                self.homes[found.number] = number
            for place, called in enumerate(found.called):
                self.callers[called] = found, place
        self.sequences[number] = sequence
        self.roots[number] = self.instructions[_number(computation, 6)]

    def _place_all(self, computation: int) -> None:
        """Put instructions in their order, those of bodies and branches before what calls them."""
        for instruction in self.sequences[computation]:
            if instruction.opcode in _CALLING:
                for called in instruction.called:
                    self._place_all(called)
            self.place[instruction.number] = len(self.order)
            self.order.append(instruction)
        self.last[computation] = len(self.order) - 1

    def is_in_place(self, instruction: Instruction) -> bool:
        """Whether XLA can write the result of an instruction into what it reads."""
        if instruction.opcode == "async-start":
            instruction = self.roots[instruction.called[0]]
        fused = [i for number in instruction.called for i in self.sequences[number]]
        moved = instruction.opcode == "fusion" and any(i.opcode in _ELSEWHERE for i in fused)
        return instruction.opcode in _IN_PLACE and not moved

    def caller(self, parameter: Instruction) -> tuple[Instruction, int] | None:
        """The instruction that a parameter takes an operand of, and which one."""
        found = self.callers.get(self.homes[parameter.number])
        if found is None:
            return None
        instruction, place = found
        if instruction.opcode == "conditional":
            return instruction, place + 1
        return instruction, parameter.element


class _Assignment:
    """The buffers of a module, and how they pass through its instructions."""

    def __init__(self, module: _Module, text: bytes, known: Callable[[str], Any]):
        self.module, self.known = module, known
        self.own: dict[int, dict[Index, Buffer]] = {}
        self.passed: dict[int, dict[Index, Buffer]] = {}
        self.readers: dict[Buffer, dict[Instruction, None]] = {}
        temporary = list(self._assigned(text) if text else self._worked_out())
        if text:
            self._use()
        self.temporaries = temporary
        for buffer in temporary:
            buffer.op_name = self._name(buffer, set())
            readers = self.readers.get(buffer, ())
            buffer.readers = [self._name_of(r, set()) or r.op_name for r in readers]

    def _assigned(self, text: bytes) -> Iterator[Buffer]:
        """Read XLA's assignment; yield the temporary buffers."""
        parts = _fields(text)
        makers = {}
        for value in map(_fields, parts.get(1, ())):
            place = _fields(value[3][0])
            makers[_number(value, 1)] = _number(place, 4), tuple(_integers(place.get(3, ())))
        for allocation in map(_fields, parts.get(3, ())):
            # 3: of a thread, 5: an argument, 7: a result, 12: a constant
            lasting = not allocation.keys().isdisjoint((3, 5, 7, 12))
            for assigned in map(_fields, allocation.get(9, ())):
                number, index = makers[_number(assigned, 1)]
                held = _number(allocation, 1), _number(assigned, 2), _number(assigned, 3)
                buffer = Buffer(self.module.instructions[number], index, *held)
                self.own.setdefault(number, {})[index] = buffer
                if not lasting and number in self.module.place:
                    yield buffer

    def _worked_out(self) -> Iterator[Buffer]:
        """Give each value of the module a buffer; yield those that are no results of the program.

        What a turn of a loop gives lies where the loop's values are. A value takes the place of an
        equally large operand that its instruction reads last, where XLA can write into what it reads.
        """
        module, count = self.module, itertools.count()
        for instruction in module.order:
            if instruction.opcode not in _LASTING:
                self.own[instruction.number] = {
                    index: Buffer(instruction, index, next(count), 0, size)
                    for index, size in _sizes(module.shapes[instruction.number])
                    if index[:1] != (_OPERANDS_AT.get(instruction.opcode),)
                }
        self._use()
        same: dict[int, int] = {}  # from an allocation to one that it is part of

        def placed(buffer: Buffer) -> int:
            allocation = buffer.allocation
            while allocation in same:
                allocation = same[allocation]
            return allocation

        results = set(self.values(module.roots[module.entry].number).values())
        for place, instruction in enumerate(module.order):
            if instruction.opcode not in ("while", "conditional"):
                continue
            outs, called = self.own[instruction.number], list(instruction.called)
            roots = [self.values(module.roots[number].number) for number in called]
            if instruction.opcode == "while":  # which calls its body first
                begun = self.values(instruction.operands[0])
                roots = [begun, roots[0]]
                for buffer in begun.values():
                    buffer.end = max(buffer.end, place)
            for found in roots:
                for index in found.keys() & outs.keys():
                    one, other = placed(found[index]), placed(outs[index])
                    if one != other:
                        same[one] = other
        for buffer in (buffer for held in self.own.values() for buffer in held.values()):
            buffer.allocation = placed(buffer)
        lasting = {buffer.allocation for buffer in results}
        for instruction in module.order:
            place = module.place[instruction.number]
            read = [
                buffer
                for operand in (instruction.operands if module.is_in_place(instruction) else ())
                for buffer in self.values(operand).values()
                if buffer.end == place and buffer.allocation not in lasting
            ]
            for buffer in self.own.get(instruction.number, {}).values():
                if buffer.allocation in lasting:
                    continue
                found = next((other for other in read if other.size == buffer.size), None)
                if found is not None:
                    buffer.allocation = found.allocation
                    read.remove(found)
                yield buffer

    def _use(self) -> None:
        module = self.module
        for number, held in self.own.items():
            for buffer in held.values():
                buffer.start = buffer.end = module.place.get(number, 0)
        for place, instruction in enumerate(module.order):
            if instruction.opcode in _FORWARDING:
                continue
            for operand in instruction.operands:
                for buffer in self.values(operand).values():
                    buffer.end = max(buffer.end, place)
                    self.readers.setdefault(buffer, {})[instruction] = None
        for computation, place in module.last.items():
            for buffer in self.values(module.roots[computation].number).values():
                buffer.end = max(buffer.end, place)

    def values(self, number: int) -> dict[Index, Buffer]:
        """The buffers that hold the result of an instruction, by their place in its tuples."""
        if number not in self.passed:
            found = dict(self._forwarded(self.module.instructions[number]))
            self.passed[number] = found | self.own.get(number, {})
        return self.passed[number]

    def _forwarded(self, instruction: Instruction) -> Iterable[tuple[Index, Buffer]]:
        operands, opcode = instruction.operands, instruction.opcode
        if opcode == "tuple":
            for place, operand in enumerate(operands):
                for index, buffer in self.values(operand).items():
                    yield (place, *index), buffer
        elif opcode == "get-tuple-element" or opcode in _RESULT_AT:
            element = _RESULT_AT.get(opcode, instruction.element)
            for index, buffer in self.values(operands[0]).items():
                if index[:1] == (element,):
                    yield index[1:], buffer
        elif opcode in _OPERANDS_AT:
            for place, operand in enumerate(operands):
                within = (place,) if opcode == "async-start" else ()
                for index, buffer in self.values(operand).items():
                    yield (_OPERANDS_AT[opcode], *within, *index), buffer
        elif opcode in ("all-reduce-done", "async-update", "bitcast", "opt-barrier", "while"):
            yield from self.values(operands[0]).items()
        elif opcode == "call":
            yield from self.values(self.module.roots[instruction.called[0]].number).items()
        elif opcode == "parameter":
            found = self.module.caller(instruction)
            if found is not None and found[0].opcode in _CALLING:
                yield from self.values(found[0].operands[found[1]]).items()

    # -- names -------------------------------------------------------------------------------------

    def _name(self, buffer: Buffer, seen: set) -> str:
        """The name of the operation that computes a buffer: in a loop, that of the last turn."""
        if buffer in seen:
            return ""
        seen.add(buffer)
        maker = buffer.maker
        loop = maker if maker.opcode == "while" else None
        if maker.opcode == "parameter":
            found = self.module.caller(maker)
            loop = found[0] if found is not None and found[0].opcode == "while" else None
        if loop is not None:
            turned = self.values(self.module.roots[loop.called[0]].number).get(buffer.index)
            name = self._name(turned, seen) if turned is not None else ""
            return name or loop.op_name
        name = self._name_of(maker, seen)
        for reader in () if name else self.readers.get(buffer, ()):
            if reader.opcode == "while":  # zeros that a loop begins with
                for index, begun in self.values(reader.operands[0]).items():
                    after = self.own.get(reader.number, {}).get(index)
                    if begun is buffer and after is not None:
                        return self._name(after, seen)
            name = name or self._name_of(reader, seen)  # what XLA makes for it, as an iota
        return name

    def _name_of(self, instruction: Instruction, seen: set) -> str:
        if instruction in seen:
            return ""
        seen.add(instruction)
        instructions, operands = self.module.instructions, instruction.operands
        if instruction.opcode in _WRAPPING:
            name = self._name_of(self.module.roots[instruction.called[0]], seen)
            return name or instruction.op_name
        if instruction.opcode == "parameter":
            found = self.module.caller(instruction)
            if found is None or found[0].opcode not in _WRAPPING:
                return ""
            return self._name_of(instructions[found[0].operands[found[1]]], seen)
        own = instruction.opcode != "while" and self.known(instruction.op_name)
        name = instruction.op_name if own else ""
        if instruction.opcode == "dynamic-update-slice":  # the rows that a loop writes
            return self._name_of(instructions[operands[1]], seen) or name
        if name or instruction.opcode in ("while", "call", "conditional"):
            return name
        names = (self._name_of(instructions[operand], seen) for operand in operands)
        return next(filter(None, names), "")


def _sizes(shape: bytes) -> Iterator[tuple[Index, int]]:
    """Yield the index and the bytes of each array of a shape."""
    parts = _fields(shape)
    kind = _number(parts, 2)
    if kind == _TUPLE:
        for place, part in enumerate(parts.get(4, ())):
            for index, size in _sizes(part):
                yield (place, *index), size
        return
    bits = math.prod(_integers(parts.get(3, ()))) * _BITS.get(kind, 8)
    if bits:
        yield (), -(-bits // 8)


# -- the wire format of protocol buffers -----------------------------------------------------------


def _fields(text: bytes) -> dict[int, list[Any]]:
    """Return the values of each field of a message: integers, and bytes for all others."""
    found: dict[int, list[Any]] = {}
    place, size = 0, len(text)
    while place < size:
        tag, place = _varint(text, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(text, place)
        else:
            length = 8 if kind == 1 else 4
            if kind == 2:
                length, place = _varint(text, place)
            value, place = text[place : place + length], place + length
        found.setdefault(tag >> 3, []).append(value)
    return found


def _number(message: dict[int, list[Any]], field: int) -> int:
    """An integer of a message: one that is zero is left out of it."""
    return message.get(field, [0])[0]


def _varint(text: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = text[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _integers(values: Iterable[Any]) -> Iterator[int]:
    """Yield the integers of a repeated field, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        place = 0
        while place < len(value):
            number, place = _varint(value, place)
            yield number
