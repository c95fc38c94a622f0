"""`python -m minijax.explain script.py:function`: the stages of a function of a script.

python -m minijax.explain model.py:loss --args "jnp.ones((8, 4)), jnp.ones(8)" --save loss.html
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys

from minijax.explain.showing import explain


def main(arguments: list[str] | None = None) -> int:
    """Explain a function of a script, on a page or on standard output."""
    parser = argparse.ArgumentParser("minijax.explain", description=__doc__)
    parser.add_argument("target", help="a script and a function in it: script.py:function")
    parser.add_argument("--args", default="", help="arguments, in the script's names (and jnp, np)")
    parser.add_argument("--save", default=None, help="the page to write; else text is printed")
    parser.add_argument("--values", action="store_true", help="run it, and show ranges of values")
    options = parser.parse_args(arguments)
    path, colon, name = options.target.rpartition(":")
    if not colon:
        parser.error(f"{options.target!r} is not of the form script.py:function")
    spec = importlib.util.spec_from_file_location("explained", path)
    if spec is None or spec.loader is None:
        parser.error(f"{path!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["explained"] = module
    spec.loader.exec_module(module)
    import numpy as np

    import minijax
    import minijax.numpy as jnp

    scope = {"jax": minijax, "minijax": minijax, "jnp": jnp, "np": np, **vars(module)}
    ast.parse(f"f({options.args})", mode="eval")
    given, named = eval(f"(lambda *a, **k: (a, k))({options.args})", scope)
    found = explain(eval(name, scope), *given, values=options.values, **named)
    print(found.text() if options.save is None else found.save(options.save))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
