"""The child process of `subjects`: runs the programs that it is sent under one library, one at a time.

Started by its path, with the Python of any environment: of minijax it then imports `programs` and `running`
alone, which need NumPy and ml_dtypes. Requests and outcomes are pickled, over standard input and output.
"""

from __future__ import annotations

import os
import pathlib
import pickle
import sys
import types

_HERE = pathlib.Path(__file__).resolve().parent


def _without_the_library() -> None:
    """Make `minijax.difftest` a package whose modules are found but whose `__init__` does not run."""
    sys.path[:] = [p for p in sys.path if pathlib.Path(p).resolve() != _HERE]  # it shadows nothing
    for name, folder in (("minijax", _HERE.parent), ("minijax.difftest", _HERE)):
        module = types.ModuleType(name)
        module.__path__ = [str(folder)]
        sys.modules[name] = module


def _interpreted(program, arguments: tuple):
    """Return the result of a program by the StableHLO reference interpreter, which aborts on custom calls."""
    import numpy as np

    import minijax
    from minijax.difftest import programs
    from minijax.runtime import mlir_modules

    function = programs.compiled(program, minijax)
    places = [i for i, x in enumerate(arguments) if isinstance(x, np.ndarray)]  # not Python scalars
    dtypes = [arguments[i].dtype for i in places]

    def whole(*arrays):
        inputs = list(arguments)
        for i, x, dtype in zip(places, arrays, dtypes, strict=True):
            inputs[i] = _unpacked(x, dtype)
        return minijax.tree_util.tree_map(_packed, function(*inputs))

    inputs = [np.ascontiguousarray(_packed(arguments[i])) for i in places]
    module = minijax.jit(whole, keep_unused=True).lower(*inputs).compiler_ir("stablehlo")
    found = mlir_modules.interpreted(module, inputs)
    kinds, tree = minijax.tree_util.tree_flatten(minijax.eval_shape(function, *arguments))
    arrays = [_unpacked(x, k.dtype).reshape(k.shape) for x, k in zip(found, kinds, strict=True)]
    return minijax.tree_util.tree_unflatten(tree, arrays)


def _packed(x):
    """Return an array in a dtype that both NumPy and the attributes of MLIR hold."""
    import numpy as np

    from minijax import numpy as jnp

    name = str(x.dtype)
    if name.startswith("complex"):
        return (np if isinstance(x, np.ndarray) else jnp).stack([x.real, x.imag])
    if name in ("float32", "float64", "int32", "int64", "uint8", "uint32", "uint64"):
        return x
    return x.astype("int32" if "int" in name or name == "bool" else "float32")


def _unpacked(x, dtype):
    return (x[0] + 1j * x[1] if str(dtype).startswith("complex") else x).astype(dtype)


def main(library: str) -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # programs may print
    if library == "jax":
        _without_the_library()
    from minijax.difftest import running

    answer = running.run
    if library == "interpreter":
        answer = lambda program, _, how, arguments: running.attempted(
            program,
            "minijax",
            lambda module, function, args: _interpreted(program, args),
            arguments,
        )
    while True:
        try:
            program, how, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(answer(program, library, how, arguments), replies)
        replies.flush()


if __name__ == "__main__":
    main(sys.argv[1])
