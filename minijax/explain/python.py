"""`explain.to_python`: the jaxpr of a function as Python source that runs.

Each equation becomes one line, a call of a public function (the tables are in `explain.calls`); each
sub-program becomes a function in front, with its derivative rules where it has some. The text runs
under `import minijax as jax` and under `import jax`.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import dtypes, lax, random, tree_util
from minijax.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from minijax.core.primitive import Primitive
from minijax.explain import callbacks, containers, kernels, program_calls, references
from minijax.explain.calls import BOUND, IMPLIED, IMPORTS, OF_SCALARS, OPAQUE, TEMPLATES, WINDOWS
from minijax.explain.custom_rules import jvp_program, rule_key, vjp_program
from minijax.explain.literals import (
    Operand,
    Text,
    array_text,
    dtype_text,
    in_force,
    literal,
    operand,
    tree_text,
    tuple_text,
)
from minijax.features.call_primitives import call_p, closed_call_p
from minijax.features.checkpoint.checkpoint import remat_p
from minijax.features.custom_rules.common import name_of
from minijax.features.custom_rules.custom_jvp import custom_jvp_call_p
from minijax.features.custom_rules.custom_vjp import custom_vjp_call_p
from minijax.features.sharding.constraints import reshard_p
from minijax.features.sharding.memory_layouts import asked_places
from minijax.features.symbolic.lowering import solved
from minijax.lax.control_flow.cond_rules import platform_index_p
from minijax.lax.linalg.singular_values import svd_p
from minijax.lax.shard_map import shard_map_p
from minijax.transforms.jit import PjitFunction, jit_p
from minijax.transforms.make_jaxpr import make_jaxpr
from minijax.transforms.primitives import add_any_p

__all__ = ["Source", "to_python"]

# Levels of rules of functions that rules call: each rule of `odeint` calls `odeint` on a larger system.
_RULES_IN_RULES = 1
_TAKEN = {*keyword.kwlist, *IMPORTS, "callbacks", "constants", "jax", "jnp", "lax", "np"}


class Source(str):
    """Python source of a program.

    `constants` has the arrays that are too large for the text, `callbacks` the functions of Python
    that the program calls, both by the names that the text has for them.
    """

    callbacks: dict[str, Callable]
    constants: dict[str, Any]
    name: str

    def function(self, callbacks: Mapping[str, Callable] | None = None) -> Callable[..., Any]:
        """Run the text, and return the function that it defines.

        `callbacks` has functions that it is to call in the place of those in `self.callbacks`.
        """
        names = {"callbacks": {**self.callbacks, **(callbacks or {})}, "constants": self.constants,
                 "__name__": f"explain.{self.name}"}  # fmt: skip
        exec(compile(self, f"<explain.{self.name}>", "exec"), names)
        return names[self.name]

    def under(self, library: str) -> Source:
        """The source with another import: `library` is "jax" or "minijax"."""
        text = re.sub(r"(?m)^(import|from) (mini)?jax(?=[ .])", rf"\1 {library}", str(self))
        text = re.sub(r"(?m)^import jax as jax$", "import jax", text)
        return _source(text, self.name, self)


def _source(text: str, name: str, held: Source | Module) -> Source:
    made = Source(text)
    made.name, made.callbacks, made.constants = name, held.callbacks, held.constants
    return made


def _identifier(text: str, default: str) -> str:
    name = re.sub(r"\W+", "_", text).strip("_")
    return name if name.isidentifier() and name not in _TAKEN else default


class _Names(dict):
    """The names of variables of one function."""

    def __init__(self, taken: set[str]):
        super().__init__()
        self.taken = taken
        self.count = 0

    def __missing__(self, var: Var) -> str:
        while True:
            number, text = self.count, ""
            self.count += 1
            while not text or number:
                number, digit = divmod(number, 26)
                text = chr(ord("a") + digit) + text
            if text not in self.taken and text not in _TAKEN:
                break
        self[var] = text
        self.taken.add(text)
        return text


class Module:
    """Functions and constants written so far."""

    def __init__(self) -> None:
        self.definitions: list[str] = []
        self.callbacks: dict[str, Callable] = {}
        self.constants: dict[str, Any] = {}  # those that are not written out
        self.constant_lines: list[str] = []
        self.named: dict[int, tuple[str, Any]] = {}  # by id, with the value to keep it alive
        self.taken: set[str] = set()
        self.functions: dict[tuple, tuple[str, Any]] = {}
        self.ruled: dict[Any, str] = {}
        self.outer_grid = 0  # dimensions of a kernel's grid that are not its own
        self.sizes: set[str] = set()  # dimension variables, which only the program itself can name
        self.in_rules = 0  # how many rules are being written, each within the one before

    def new_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

    def callback(self, function: Callable, called: str) -> str:
        """The expression for a function that the program calls."""
        name = next((name for name, known in self.callbacks.items() if known is function), None)
        if name is None:
            name = self.new_name(_identifier(called, "callback"))
            self.callbacks[name] = function
        return f"callbacks[{name!r}]"

    def held(self, value: Any, wanted: str) -> str:
        """The expression for a value that has no text."""
        name = wanted if wanted in self.taken else self.new_name(wanted)
        self.constants[name] = value
        return f"constants[{name!r}]"

    def tree(self, treedef: Any, operands: Sequence[str]) -> str:
        """The expression for a tree of this structure."""
        try:
            return tree_text(treedef.unflatten(map(Operand, operands)), operand)
        except Exception:  # a container that holds no texts
            held = self.held(treedef, self.new_name("tree"))
            return f"jax.tree.unflatten({held}, {tuple_text(operands)})"

    def arguments(self, treedef: Any, operands: Sequence[str]) -> list[str]:
        """The texts of the arguments of a call, of which `treedef` has positional ones and others."""
        found = callbacks.arguments(treedef, operands)
        if found is not None:
            return found
        args, kwargs = treedef.children()
        names, rest = kwargs.node_data()[1], list(operands)
        take = lambda tree: self.tree(tree, [rest.pop(0) for _ in range(tree.num_leaves)])
        found = [take(tree) for tree in args.children()]
        pairs = zip(names, kwargs.children(), strict=True)
        return found + [f"{name}={take(tree)}" for name, tree in pairs]

    def constant(self, value: Any, aval: Any) -> str:
        """The name of a constant."""
        if id(value) in self.named:
            return self.named[id(value)][0]
        name = self.new_name(f"const_{len(self.named)}")
        self.named[id(value)] = name, value
        if dtypes.issubdtype(aval.dtype, dtypes.prng_key):
            words = self.array(name, np.asarray(random.key_data(value)))
            text = f"jax.random.wrap_key_data({words}, impl={str(random.key_impl(value))!r})"
        else:
            text = self.array(name, np.asarray(value).astype(aval.dtype))
        self.constant_lines.append(f"{name} = {text}")
        return name

    def array(self, name: str, value: np.ndarray) -> str:
        text = array_text(value, dtype_text(value.dtype))
        if text is None:
            self.constants[name] = value
            text = f"constants[{name!r}]  # {value.dtype}{list(value.shape)}"
        return text

    def function(
        self,
        program: Jaxpr | ClosedJaxpr,
        name: str,
        groups: Sequence[tuple[str, int]] | None = None,
        results: Any = None,
        decorator: str = "",
    ) -> str:
        """Write a sub-program as a function, and return its name.

        `groups` are tuples of its inputs that it takes together, by name and length; `results`
        are the lengths of the tuples that it returns, 1 for a value that is no tuple, or 0 for None.
        """
        jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        key = (id(program), str(groups), str(results), decorator, self.outer_grid)
        if key not in self.functions:
            body = Body(self, jaxpr, getattr(program, "consts", ()))
            names = [body.names[v] for v in jaxpr.invars]
            head, lines = _parameters(names, groups)
            lines += [*body.lines(), f"return {_returned(body.outs(), results)}"]
            name = _identifier(name, "program")
            # Short names are those of variables.
            name = self.new_name(name if len(name) > 2 else f"function_{name}")
            self.define(name, head, lines, decorator)
            self.functions[key] = name, program
        return self.functions[key][0]

    def define(self, name: str, head: str, lines: Sequence[str], decorator: str = "") -> None:
        start = f"@{decorator}\n" if decorator else ""
        inner = "".join(f"    {line}\n" for line in lines)
        self.definitions.append(f"{start}def {name}({head}):\n{inner}")


def _parameters(names: list[str], groups: Sequence[tuple[str, int]] | None) -> tuple[str, list]:
    if groups is None:
        return ", ".join(names), []
    heads, lines, start = [], [], 0
    for head, count in groups:
        heads.append(head)
        if count:
            lines.append(f"{tuple_text(names[start : start + count])} = {head}")
        start += count
    return ", ".join(heads), lines


def _returned(outs: list[str], results: Any) -> str:
    if results is None:
        return tuple_text(outs)
    if results == 0:
        return "None"
    if results == 1:
        return outs[0]
    parts, start = [], 0
    for count in results:
        parts.append(tuple_text(outs[start : start + count]))
        start += count
    return tuple_text(parts)


class Body:
    """The lines of one program."""

    def __init__(self, module: Module, jaxpr: Jaxpr, consts: Sequence[Any]):
        self.module = module
        self.jaxpr = jaxpr
        self.names = _Names({"carry", "consts", "xs", *module.sizes})
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            self.names[var] = module.constant(value, var.aval)
        self.made: dict[Var, JaxprEqn] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        reads = [v for eqn in jaxpr.eqns for v in eqn.invars] + list(jaxpr.outvars)
        self.reads: dict[Any, int] = {}
        for v in reads:
            self.reads[v] = self.reads.get(v, 0) + 1

    def atom(self, atom: Var | Literal) -> str:
        if type(atom) is not Literal:
            return self.names[atom]
        aval, value = atom.aval, np.asarray(atom.val)
        if dtypes.issubdtype(aval.dtype, dtypes.prng_key) or value.dtype == dtypes.float0:
            return self.module.constant(atom.val, aval)
        if getattr(aval, "weak_type", False):
            number = value.item() if value.dtype.isbuiltin == 1 else None
            if number is not None and dtypes.canonicalize_dtype(type(number)) == aval.dtype:
                return literal(number)
        return array_text(value.astype(aval.dtype), dtype_text(aval.dtype)) or repr(value)

    def outs(self) -> list[str]:
        return [self.atom(v) for v in self.jaxpr.outvars]

    def predicate(self, atom: Any) -> JaxprEqn | None:
        """The conversion of a truth value that only a conditional reads."""
        eqn = self.made.get(atom) if type(atom) is not Literal else None
        if eqn is None or eqn.primitive is not lax.convert_element_type_p:
            return None
        return eqn if self.reads[atom] == 1 and eqn.invars[0].aval.dtype.kind == "b" else None

    def lines(self) -> list[str]:
        skipped = {
            id(self.predicate(eqn.invars[0])) for eqn in self.jaxpr.eqns
            if eqn.primitive is lax.cond_p and len(eqn.params["branches"]) == 2
        }  # fmt: skip
        return [self.line(eqn) for eqn in self.jaxpr.eqns if id(eqn) not in skipped]

    def line(self, eqn: JaxprEqn) -> str:
        operands = [self.atom(v) for v in eqn.invars]
        text = call_text(self, eqn, operands)
        used = [type(v) is not DropVar and self.reads.get(v, 0) > 0 for v in eqn.outvars]
        outs = [self.names[v] if u else "_" for v, u in zip(eqn.outvars, used, strict=True)]
        if not outs:
            return text
        left = tuple_text(outs) if eqn.primitive.multiple_results else outs[0]
        if eqn.primitive is lax.scan_p:  # gives a pair of tuples
            count = eqn.params["num_carry"]
            left = f"{tuple_text(outs[:count])}, {tuple_text(outs[count:])}"
        types = ", ".join(v.aval.str_short(True) for v in eqn.outvars)
        return f"{left} = {text}  # {types}"


def is_written(primitive: Primitive) -> bool:
    """Whether the text of an equation of this primitive is that of a public function."""
    tables = (RULES, TEMPLATES, OF_SCALARS, WINDOWS, BOUND)
    return any(primitive in table for table in tables) or _has_function(primitive.name)


def _has_function(name: str) -> bool:
    name = name.replace("-", "_")
    return any(callable(getattr(module, name, None)) for module in (lax, lax.linalg))


def call_text(body: Body, eqn: JaxprEqn, operands: list[str]) -> str:
    """The expression that an equation stands for."""
    primitive, params = eqn.primitive, eqn.params
    rule = RULES.get(primitive)
    if rule is not None:
        return rule(body, eqn, operands, **params)
    texts = {key: Text(value) for key, value in params.items()}
    if primitive in TEMPLATES:
        return TEMPLATES[primitive].format(*operands, args=Text(operands, tuple_text), **texts)
    if primitive in OF_SCALARS:
        return _over_scalars(OF_SCALARS[primitive], eqn.invars[0].aval.ndim, operands, texts)
    if primitive in WINDOWS:
        combine, identity = WINDOWS[primitive]
        return _window(combine, identity(eqn.invars[0].aval.dtype), operands[0], params)
    if primitive in BOUND:
        given = [*operands, *(f"{key}={_param(value)}" for key, value in params.items())]
        return f"{BOUND[primitive]}.{primitive.name}_p.bind({', '.join(given)})"
    if primitive not in OPAQUE and _has_function(primitive.name):
        return _same_name(primitive.name.replace("-", "_"), params, operands)
    return _bound(body, eqn, operands)


def _param(value: Any) -> str:
    """The text of a param that no function converts."""
    return f"jnp.dtype({value.name!r})" if isinstance(value, np.dtype) else literal(value)


def _bound(body: Body, eqn: JaxprEqn, operands: list[str]) -> str:
    """Call what binds a primitive that no public function applies, one of `callbacks`."""
    written, held = {}, {}
    for key, value in eqn.params.items():
        try:
            written[key] = _param(value)
        except TypeError:
            held[key] = value
    bind = partial(eqn.primitive.bind, **held) if held else eqn.primitive.bind
    named = body.module.callback(bind, eqn.primitive.name)
    given = [*operands, *(f"{key}={text}" for key, text in written.items())]
    return f"{named}({', '.join(given)})"


def _same_name(name: str, params: dict, operands: list[str]) -> str:
    """Call the function of `lax` that has the name and the params of a primitive."""
    text, function = f"lax.{name}", getattr(lax, name, None)
    if not callable(function):
        text, function = f"lax.linalg.{name}", getattr(lax.linalg, name, None)
    if not callable(function):
        raise NotImplementedError(f"to_python knows no public function that is {name!r}.")
    accepted = inspect.signature(function).parameters
    given = list(operands)
    for key, value in params.items():
        if key == "sharding" and value is not None and "out_sharding" in accepted:
            given.append(f"out_sharding={literal(value)}")
        elif key in accepted:
            default = accepted[key].default
            if default is inspect.Parameter.empty or value is not default:
                given.append(f"{key}={literal(value)}")
        elif key not in IMPLIED and value is not None:
            raise NotImplementedError(f"to_python: {text} does not take {key}={value!r}.")
    return f"{text}({', '.join(given)})"


def _over_scalars(template: str, ndim: int, operands: list[str], texts: dict) -> str:
    if not ndim:
        return template.format(*operands, **texts)
    names = ["key", "data"][: len(operands)]
    text = f"lambda {', '.join(names)}: {template.format(*names, **texts)}"
    for _ in range(ndim):
        text = f"jax.vmap({text})"
    return f"{text}({', '.join(operands)})"


def _window(combine: str, identity: Any, operand: str, params: dict) -> str:
    start = array_text(np.asarray(identity), dtype_text(identity.dtype))
    rest = ", ".join(f"{key}={literal(value)}" for key, value in params.items())
    return f"lax.reduce_window({operand}, {start}, lax.{combine}, {rest})"


# -- equations that hold programs, or whose results stand in another order ------------------------


def _jit(body, eqn, operands, *, jaxpr, name, **params):
    given = [f"{k}={params[k]}" for k in ("inline", "keep_unused") if params.get(k)]
    ins, outs = asked_places(jaxpr.jaxpr)
    given += [
        f"{name}={tuple_text(map(literal, places))}"
        for name, places in (("in_shardings", ins), ("out_shardings", outs))
        if any(place is not None for place in places)
    ]
    if options := params.get("compiler_options_kvs"):
        given.append(f"compiler_options={literal(dict(options))}")
    decorator = f"jax.jit({', '.join(given)})" if given else "jax.jit"
    function = body.module.function(jaxpr, name, decorator=decorator)
    return f"{function}({', '.join(operands)})"


def _call(body, eqn, operands, **params):
    (program,) = eqn.primitive.programs.all(params)
    return f"{body.module.function(program, 'call')}({', '.join(operands)})"


def _remat(body, eqn, operands, *, jaxpr, prevent_cse, differentiated, policy):
    """A checkpoint; one that has been differentiated keeps XLA from sharing what it computes anew."""
    together = prevent_cse if isinstance(prevent_cse, bool) else True
    if differentiated:
        args = ", ".join(operands)
        if together and operands:
            args = f"*lax.optimization_barrier({tuple_text(operands)})"
        return f"{body.module.function(jaxpr, 'checkpointed')}({args})"
    given = [] if together else ["prevent_cse=False"]
    if policy is not None:
        from minijax.ad_checkpoint import checkpoint_policies as known

        names = [n for n in dir(known) if getattr(known, n, None) is policy]
        if not names:
            raise NotImplementedError(f"to_python: the policy {policy!r} has no public name.")
        given.append(f"policy=jax.checkpoint_policies.{names[0]}")
    given.insert(0, body.module.function(jaxpr, "checkpointed"))
    return f"jax.checkpoint({', '.join(given)})({', '.join(operands)})"


def _scan(body, eqn, operands, *, jaxpr, length, num_carry, num_consts, reverse, unroll, **_):
    consts, rest = operands[:num_consts], operands[num_consts:]
    carry, xs = rest[:num_carry], rest[num_carry:]
    groups = [("consts", len(consts))] if consts else []
    groups += [("carry", num_carry), ("xs", len(xs))]
    results = (num_carry, len(eqn.outvars) - num_carry)
    step = body.module.function(jaxpr, "scan_body", groups, results)
    if consts:
        step = f"lambda carry, xs, consts={tuple_text(consts)}: {step}(consts, carry, xs)"
    given = [f"length={literal(length)}"]
    given += ["reverse=True"] if reverse else []
    given += [f"unroll={unroll}"] if unroll != 1 else []
    return f"lax.scan({step}, {tuple_text(carry)}, {tuple_text(xs)}, {', '.join(given)})"


def _while(body, eqn, operands, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    held = operands[:cond_nconsts], operands[cond_nconsts : cond_nconsts + body_nconsts]
    carry = operands[cond_nconsts + body_nconsts :]
    steps = []
    programs = ((cond_jaxpr, "while_cond", 1), (body_jaxpr, "while_body", None))
    for consts, (program, name, results) in zip(held, programs, strict=True):
        groups = [("consts", len(consts))] if consts else []
        step = body.module.function(program, name, [*groups, ("carry", len(carry))], results)
        bound = f"lambda carry, consts={tuple_text(consts)}: {step}(consts, carry)"
        steps.append(bound if consts else step)
    if cond_jaxpr.out_avals[0].shape:
        steps = _each_while(body.module, *steps)
    return f"lax.while_loop({', '.join(steps)}, {tuple_text(carry)})"


def _each_while(module: Any, proceeds: str, step: str) -> list[str]:
    """A loop with a predicate for each element, which changes no longer once its own is false."""
    each = module.ruled.get(_each_while)
    if each is None:
        module.ruled[_each_while] = each = module.new_name("each")
        wide = "lambda x: flags.reshape(flags.shape + (1,) * (x.ndim - flags.ndim))"
        chosen = "tuple(jnp.where(wide(x), x, y) for x, y in zip(new, old, strict=True))"
        module.define(each, "flags, new, old", [f"wide = {wide}", f"return {chosen}"])
    held = f"proceeds=({proceeds}), step=({step})"
    return [
        f"lambda carry, proceeds=({proceeds}): proceeds(carry).any()",
        f"lambda carry, {held}: {each}(proceeds(carry), step(carry), carry)",
    ]


def _cond(body, eqn, operands, *, branches, **_):
    names = [body.module.function(b, f"branch_{i}") for i, b in enumerate(branches)]
    args = "".join(f", {x}" for x in operands[1:])
    made = body.predicate(eqn.invars[0]) if len(branches) == 2 else None
    if made is not None:
        return f"lax.cond({body.atom(made.invars[0])}, {names[1]}, {names[0]}{args})"
    return f"lax.switch({operands[0]}, {tuple_text(names)}{args})"


def _platform_index(body, eqn, operands, *, platforms):
    cases = []
    for number, names in enumerate(platforms):
        for name in ("default",) if names is None else names:
            cases.append(f"{name}=lambda: np.int32({number})")
    return f"lax.platform_dependent({', '.join(cases)})"


def _linear_solve(body, eqn, operands, *, const_lengths, jaxprs):
    held, start = {}, 0
    for key, count in const_lengths._asdict().items():
        held[key] = operands[start : start + count]
        start += count
    right = operands[start:]

    has_aux = len(eqn.outvars) > len(right)

    def function(key, program, head):
        results = (len(right), len(eqn.outvars) - len(right)) if has_aux and head != "x" else None
        name = body.module.function(program, key, results=results)
        return f"lambda {head}, held={tuple_text(held[key])}: {name}(*held, *x)"

    given = [function("matvec", jaxprs.matvec, "x"), tuple_text(right)]
    given.append(function("solve", jaxprs.solve, "_, x"))
    if jaxprs.transpose_solve is not None:
        given.append(
            "transpose_solve=" + function("transpose_solve", jaxprs.transpose_solve, "_, x")
        )
    if jaxprs.vecmat is jaxprs.matvec:
        given.append("symmetric=True")
    if not has_aux:
        return f"lax.custom_linear_solve({', '.join(given)})"
    return f"jax.tree.leaves(lax.custom_linear_solve({', '.join(given)}, has_aux=True))"


def _shard_map(
    body, eqn, operands, *, jaxpr, mesh, in_specs, out_specs, newly_manual_axes, check_vma
):
    name = body.module.function(jaxpr, "per_shard")
    given = {"in_specs": in_specs, "out_specs": out_specs, "check_vma": check_vma}
    if not in_force(mesh):
        given = {"mesh": mesh, **given}
    if set(newly_manual_axes) != set(mesh.axis_names):
        given["axis_names"] = set(newly_manual_axes)
    rest = ", ".join(f"{key}={literal(value)}" for key, value in given.items())
    return f"jax.shard_map({name}, {rest})({', '.join(operands)})"


def _custom_jvp(body, eqn, operands, *, call_jaxpr, jvp, **_):
    module = body.module
    key = rule_key(jvp, call_jaxpr)
    name = module.ruled.get(key)
    if name is None:
        if module.in_rules > _RULES_IN_RULES:
            return f"{module.function(call_jaxpr, name_of(call_jaxpr))}({', '.join(operands)})"
        name = module.function(call_jaxpr, name_of(call_jaxpr), decorator="jax.custom_jvp")
        module.ruled[key] = name
        module.in_rules += 1
        program, moving, out_moving = jvp_program(jvp, call_jaxpr)
        count = len(moving)
        rule = Body(module, program.jaxpr, program.consts)
        inputs = [rule.names[v] for v in program.jaxpr.invars]
        dots = iter(inputs[count:])
        lines = [f"{tuple_text(inputs[:count])} = primals"] if count else []
        lines += (
            [f"{tuple_text(next(dots) if m else '_' for m in moving)} = tangents"] if count else []
        )
        lines += rule.lines()
        outs, results = rule.outs(), len(out_moving)
        steps = iter(outs[results:])
        still = (
            f"np.zeros({literal(v.aval.shape)}, jax.dtypes.float0)" if not m else next(steps)
            for v, m in zip(call_jaxpr.jaxpr.outvars, out_moving, strict=True)
        )
        lines.append(f"return {tuple_text(outs[:results])}, {tuple_text(still)}")
        module.define(module.new_name(f"{name}_jvp"), "primals, tangents", lines, f"{name}.defjvp")
        module.in_rules -= 1
    return f"{name}({', '.join(operands)})"


def _custom_vjp(body, eqn, operands, *, call_jaxpr, fwd, bwd, **_):
    module = body.module
    key = rule_key(fwd, call_jaxpr)
    name = module.ruled.get(key)
    if name is None:
        if module.in_rules > _RULES_IN_RULES:
            return f"{module.function(call_jaxpr, name_of(call_jaxpr))}({', '.join(operands)})"
        name = module.function(call_jaxpr, name_of(call_jaxpr), decorator="jax.custom_vjp")
        module.ruled[key] = name
        module.in_rules += 1
        forward, backward, given = vjp_program(fwd, bwd, call_jaxpr)
        results = len(call_jaxpr.jaxpr.outvars)
        held = len(forward.jaxpr.outvars) - results
        first = module.function(forward, f"{name}_fwd", results=(results, held))
        rule = Body(module, backward.jaxpr, backward.consts)
        inputs = [rule.names[v] for v in backward.jaxpr.invars]
        head, lines = _parameters(inputs, [("residuals", held), ("cts", results)])
        lines += rule.lines()
        found = iter(rule.outs())
        lines.append(f"return {tuple_text(next(found) if g else 'None' for g in given)}")
        second = module.new_name(f"{name}_bwd")
        module.define(second, head, lines)
        module.definitions.append(f"{name}.defvjp({first}, {second})\n")
        module.in_rules -= 1
    return f"{name}({', '.join(operands)})"


def _reduce(body, eqn, operands, *, jaxpr, dimensions, consts=(), **_):
    half = len(operands) // 2
    groups = [("xs", half), ("ys", half)]
    name = body.module.function(jaxpr, "combine", groups)
    return (
        f"lax.reduce({tuple_text(operands[:half])}, {tuple_text(operands[half:])}, "
        f"{name}, {literal(dimensions)})"
    )


def _convert(body, eqn, operands, *, new_dtype, weak_type, sharding):
    kind = {"f": "float", "i": "int", "c": "complex", "b": "bool"}.get(new_dtype.kind)
    if weak_type and kind and dtypes.canonicalize_dtype(eval(kind)) == new_dtype:
        return f"lax.convert_element_type({operands[0]}, {kind})"
    return f"lax.convert_element_type({operands[0]}, {dtype_text(new_dtype)})"


def _reshard(body, eqn, operands, *, dst_sharding, **params):
    if not dst_sharding.spec.split_axes <= set(dst_sharding.mesh.explicit_axes):
        return _bound(body, eqn, operands)  # towards the axes of `auto_axes`
    return f"jax.sharding.reshard({operands[0]}, {literal(dst_sharding)})"


def _device_put(body, eqn, operands, *, devices, **_):
    puts = [f"jax.device_put({x}, {literal(d)})" for x, d in zip(operands, devices, strict=True)]
    return tuple_text(puts)


def _add_any(body, eqn, operands):
    """A sum of cotangents, whose type is that of the first."""
    weak = [getattr(v.aval, "weak_type", False) for v in (*eqn.invars, *eqn.outvars)]
    function = "lax.add" if weak[2] == (weak[0] and weak[1]) else "primitives.add_jaxvals_p.bind"
    return f"{function}({', '.join(operands)})"


def _approx_top_k(body, eqn, operands, *, is_max_k, **params):
    rest = ", ".join(f"{key}={literal(value)}" for key, value in params.items())
    return f"lax.approx_{'max' if is_max_k else 'min'}_k({operands[0]}, {rest})"


def _svd(body, eqn, operands, **params):
    text = _same_name("svd", params, operands)
    if not params["compute_uv"]:
        return f"({text},)"
    return f"(lambda u, s, vh: (s, u, vh))(*{text})"


RULES: dict[Primitive, Callable] = {
    add_any_p: _add_any,
    call_p: _call,
    closed_call_p: _call,
    custom_jvp_call_p: _custom_jvp,
    custom_vjp_call_p: _custom_vjp,
    jit_p: _jit,
    lax.approx_top_k_p: _approx_top_k,
    lax.cond_p: _cond,
    lax.convert_element_type_p: _convert,
    lax.device_put_p: _device_put,
    lax.linear_solve_p: _linear_solve,
    lax.reduce_p: _reduce,
    lax.scan_p: _scan,
    lax.while_p: _while,
    platform_index_p: _platform_index,
    reshard_p: _reshard,
    remat_p: _remat,
    shard_map_p: _shard_map,
    svd_p: _svd,
    **callbacks.RULES,
    **containers.RULES,
    **kernels.RULES,
    **program_calls.RULES,
    **references.RULES,
}


# -- the program of a function --------------------------------------------------------------------


def _array_text(leaves: Any) -> Callable[[Any], str]:
    def write(leaf: Any) -> str:
        if not hasattr(leaf, "shape"):
            raise TypeError(type(leaf))
        return next(leaves)

    return write


def _argument_names(f: Any, count: int) -> list[str]:
    try:
        names = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        names = []
    usual = [p.name for p in names if p.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    return [usual[i] if i < len(usual) else f"arg{i}" for i in range(count)]


def to_python(f: Any, *args: Any, library: str = "minijax") -> Source:
    """Write a program as Python source that computes the same.

    - `f`: function of pytrees of arrays, or a closed jaxpr
    - `args`: its arguments, or `ShapeDtypeStruct`s in their place; none for a jaxpr. The program is
      that of the values of static ones
    - `library`: "minijax" or "jax", that which the text imports as `jax`

    The result is a string with `function()`, `constants`, `callbacks` and `under(library)`.
    Sub-programs are functions of their own, with their derivative rules; functions that the program
    calls back are taken from `callbacks`, as are bindings of primitives that no public function
    applies; `function(callbacks={name: f})` replaces some.

    >>> print(explain.to_python(lambda x: jnp.sin(x) * 2, 1.0).splitlines()[-3])
        a = lax.sin(x)  # f32[]
    """
    shape, static = None, ()
    if isinstance(f, (Jaxpr, ClosedJaxpr)):
        closed, given, name = f, f.invars, "program"
        names = [f"arg{i}" for i in range(len(given))]
    else:
        static = f._marks.static_positions(len(args)) if isinstance(f, PjitFunction) else ()
        closed, shape = make_jaxpr(f, static_argnums=static, return_shape=True)(*args)
        given, name = args, _identifier(getattr(f, "__name__", ""), "program")
        names = _argument_names(f, len(args))
    jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
    module = Module()
    sizes, _ = solved([getattr(v.aval, "shape", ()) for v in jaxpr.invars])
    names = [f"{name}_" if name in sizes else name for name in names]
    name = module.new_name(name)
    module.taken.update(names, sizes)
    module.sizes.update(sizes)
    body = Body(module, jaxpr, getattr(closed, "consts", ()))
    body.names.taken.update(names)
    lines, variables = [], iter(jaxpr.invars)
    for number, (arg_name, arg) in enumerate(zip(names, given, strict=True)):
        leaves = [] if number in static else tree_util.tree_leaves(arg)
        if len(leaves) == 1 and leaves[0] is arg:
            body.names[next(variables)] = arg_name
        elif leaves:
            parts = [body.names[next(variables)] for _ in leaves]
            lines.append(f"{tuple_text(parts)} = jax.tree.leaves({arg_name})")
    for size_name, (place, axis, factor, rest) in sizes.items():
        size = f"{body.names[jaxpr.invars[place]]}.shape[{axis}]"
        size = f"({size} - ({literal(rest)}))" if rest != 0 else size
        lines.append(f"{size_name} = {size}" + (f" // {factor}" if factor != 1 else ""))
    own = body.lines()
    if sizes:  # which the other functions read
        lines += [line for text in module.definitions for line in text.splitlines()]
        module.definitions.clear()
    lines += own
    try:
        result = tree_text(shape, _array_text(iter(body.outs())))
    except TypeError:
        result = tuple_text(body.outs()) + "  # its leaves"
    if isinstance(f, (Jaxpr, ClosedJaxpr)):
        result = tuple_text(body.outs())
    module.define(name, ", ".join(names), [*lines, f"return {result}"])
    text = _whole(module, library)
    return _source(text, name, module).under(library)


def _whole(module: Module, library: str) -> str:
    code = "\n\n".join(module.definitions)
    head = ["import minijax as jax", "import numpy as np"]
    used = "\n".join([*module.constant_lines, code])
    named = set(re.findall(r"(?<![\w.'\"])[a-zA-Z]\w*(?=[.(])|(?<=^@)\w+", used, re.MULTILINE))
    head += [line for name, line in IMPORTS.items() if name in named]
    head += ["", "lax, jnp = jax.lax, jax.numpy", *module.constant_lines]
    return "\n".join(head) + "\n\n\n" + code
