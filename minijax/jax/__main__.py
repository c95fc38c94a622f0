"""`python -m minijax.jax script.py args` and `python -m minijax.jax -m module args`.

Runs the program as Python itself would, with `import jax` resolving to minijax.
"""

import os
import runpy
import sys

from minijax.jax.finder import install

USAGE = """\
usage: python -m minijax.jax script.py [arguments]
       python -m minijax.jax -m module [arguments]
Runs a program written for JAX on minijax: within it, `import jax` is minijax."""


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(USAGE)
        raise SystemExit(0 if arguments and arguments[0] != "-m" else 2)
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    script = arguments[0]
    sys.argv = arguments
    if not os.path.isdir(script):
        # A directory or a zip file puts itself in front; a script's folder stands there.
        sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
