"""Wrong calls of every public function, as lines of Python; the same for the same seed."""

import ast
import importlib
import inspect
import random
import re
from itertools import islice

from tests.bad_calls import inputs
from tests.bad_calls.calls import listed
from tests.bad_calls.names import PARAMETERS, UNSURE

EXCLUDED = {  # what a call would do to those after it, in the same process
    r"\.register_|\.def_|register_pytree|custom_partitioning": "registers for the whole process",
    r"printoptions": "changes how NumPy prints, for the whole process",
    r"clear_caches|clear_backends": "empties the caches of the process",
    r"breakpoint": "waits for the keyboard",
    r"distributed|profiler\.st|multihost_utils\.(live|reached)": "talks to other processes",
    r"jax\.config|set_mesh|set_current_trace|take_current_trace": "changes settings",
    r"inspect_array_sharding|visualize|print_environment": "prints",
    r"jax\.(core\.)?(Tracer|Trace|Value|Atom|Array|Device|Shard)\b": "is not to be called",
    r"jax\.stages\.|AbstractRef|\.Exported|checkify\.Error": "is made by the library alone",
    r"jax\.interpreters\.|jax\.extend\.": "is for those who extend the machine, with values of its own",
    r"dtypes\.bfloat16": "is of ml_dtypes, which ends the process for text that is no number",
    r"live_arrays|eval_context|SparseTracer": "depends on what else the process did",
    r"errors\.|dtypes\.prng_key|dtypes\.extended|ParamDict|TypePromotionError": "is a class to name",
    r"jax\.jit\.|ode\.(?!odeint)|jet\.(?!jet\b)": "is no part of the public interface",
}
TWICE = "  # two"  # which of them a library looks at first is its own affair
_ARRAYS = ("F",) * 6 + ("SQ", "SQ", "I", "I", "T", "C")
_TRACED = sorted(inputs.ARRAYS)


class Base:
    """A valid call in parts; `optional` are names of parameters that it leaves out."""

    def __init__(self, function, args, kwargs, optional):
        self.function, self.args, self.kwargs, self.optional = function, args, kwargs, optional


def _excluded(text):
    return any(re.search(pattern, text) for pattern in EXCLUDED)


def _optional(function, names, given):
    try:
        parameters = inspect.signature(eval(function, names)).parameters.values()
    except Exception:  # no signature, or an expression that upstream refuses
        return []
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    skip = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY][:given]
    return [name for name in known if name not in skip and not name.startswith("_")]


def _listed(names):
    for line in listed():
        call = ast.parse(line, mode="eval").body
        function = ast.unparse(call.func)
        kwargs = {k.arg: ast.unparse(k.value) for k in call.keywords}
        optional = [n for n in _optional(function, names, len(call.args)) if n not in kwargs]
        yield Base(function, [ast.unparse(a) for a in call.args], kwargs, optional)


def _public(names):
    """Paths of all public functions that both libraries have."""
    yield from ((f"jax.{name}", getattr(names["jax"], name)) for name in _names("jax"))
    for module in inputs.MODULES:
        path = f"jax.{module}"
        for name in _names(path):
            yield f"{path}.{name}", getattr(eval(path, names), name)


def _names(module):
    try:
        ours = importlib.import_module(f"mini{module}")
    except ImportError:  # an attribute of its parent
        parent, _, last = module.rpartition(".")
        ours = getattr(importlib.import_module(f"mini{parent}"), last)
    theirs = eval(module, {"jax": importlib.import_module("jax")})
    named = getattr(ours, "__all__", None) or dir(ours)
    return [n for n in sorted(named) if n[0] != "_" and callable(getattr(theirs, n, None))]


def _by_name(names, covered):
    for path, function in _public(names):
        short = path.replace("jax.numpy.", "jnp.").replace("jax.lax.", "lax.")
        if short in covered or inspect.ismodule(function):
            continue
        try:
            parameters = inspect.signature(function).parameters.values()
        except (ValueError, TypeError):
            yield Base(short, ["F"], {}, [])
            continue
        args, kwargs, optional = [], {}, []
        for p in parameters:
            if p.kind is p.VAR_KEYWORD:
                continue
            if p.default is p.empty:
                value = PARAMETERS.get(p.name, "F")
                if p.kind is p.KEYWORD_ONLY:
                    kwargs[p.name] = value
                else:
                    args.append(value)
            elif not p.name.startswith("_"):
                optional.append(p.name)
        yield Base(short, args, kwargs, optional)


def bases():
    """A valid call of every public function, in parts."""
    names = inputs.namespace("jax")
    given = list(_listed(names))
    found = [*given, *_by_name(names, {base.function for base in given})]
    return [base for base in found if not _excluded(base.function)]


def _written(function, args, kwargs):
    words = [*args, *(f"{name}={value}" for name, value in kwargs.items())]
    return f"{function}({', '.join(words)})"


def _inside(rng, text, value):
    """`text` with one of its items replaced, if it is a tuple or a list."""
    try:
        parsed = ast.parse(text, mode="eval").body
    except SyntaxError:
        return value
    if not isinstance(parsed, (ast.Tuple, ast.List)) or not parsed.elts:
        return value
    parsed.elts[rng.randrange(len(parsed.elts))] = ast.parse(value, mode="eval").body
    return ast.unparse(parsed)


def _replaced(rng, base, args, kwargs, value):
    where = [*range(len(args)), *kwargs, *base.optional]
    if not where:
        args.append(value)
        return
    place = rng.choice(where)
    if isinstance(place, int):
        args[place] = _inside(rng, args[place], value) if rng.random() < 0.3 else value
    else:
        old = kwargs.get(place)
        kwargs[place] = _inside(rng, old, value) if old and rng.random() < 0.3 else value


def _wrong(rng, base):
    """One wrong call of the function of `base`; `TWICE` ends it where two things may be wrong."""
    args, kwargs, kind = list(base.args), dict(base.kwargs), rng.random()
    twice = base.function in UNSURE
    if rng.random() < 0.1:
        twice, args = True, [rng.choice(_ARRAYS) if a == "F" else a for a in args]
    value = rng.choice(inputs.VALUES)
    if kind < 0.78:
        _replaced(rng, base, args, kwargs, value)
    elif kind < 0.86:
        _replaced(rng, base, args, kwargs, value)
        _replaced(rng, base, args, kwargs, rng.choice(inputs.VALUES))
        twice = True
    elif kind < 0.88:
        kwargs["nonsense"] = value
    elif kind < 0.90:
        args.append(value)
    elif kind < 0.92 and (args or kwargs):
        args.pop() if args else kwargs.popitem()
    else:
        _replaced(rng, base, args, kwargs, "t")
        traced = rng.choice(("np.int32(1)", "np.float32(0.5)", "np.arange(3)", "M", "True", "KEY"))
        call = f"jax.eval_shape(lambda t: {_written(base.function, args, kwargs)}, {traced})"
        return call + TWICE * twice
    return _transformed(rng, _written(base.function, args, kwargs)) + TWICE * twice


def _transformed(rng, call):
    kind = rng.random()
    named = [name for name in _TRACED if re.search(rf"\b{name}\b", call)]
    if kind > 0.45 or not named:
        return call
    name = rng.choice(named)
    if kind < 0.35:
        return f"jax.eval_shape(lambda {name}: {call}, {name})"
    if kind < 0.38:
        return f"jax.jit(lambda {name}: {call})({name})"
    if kind < 0.41:
        return f"jax.vmap(lambda {name}: {call})(jnp.stack([{name}, {name}]))"
    return f"jax.grad(lambda {name}: jnp.sum({call}))({name})"


def _endless(base, rng):
    while True:
        yield _wrong(rng, base)


def _streams(seed):
    """Wrong calls of each valid one without an end, by its text.

    They depend on that text and on the seed alone, not on what other functions there are.
    """
    valid = {_written(base.function, base.args, base.kwargs): base for base in bases()}
    return {text: _endless(base, random.Random(f"{seed} {text}")) for text, base in valid.items()}


def rounds(number, seed=0):
    """Wrong calls of each valid one, by its text: `number` of them."""
    return {text: list(islice(stream, number)) for text, stream in _streams(seed).items()}


def calls(count, seed=0):
    """`count` different wrong calls, as many of each function."""
    streams, found = _streams(seed).values(), {}
    while len(found) < count:
        found.update(dict.fromkeys(map(next, streams)))
    return list(found)[:count]
