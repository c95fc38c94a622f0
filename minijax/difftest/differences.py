"""The derivative transforms of JAX by central differences: a witness of what the rules of derivatives give.

They nest, and go through whatever the function consists of. Derivatives are those of the function as it is
evaluated, whatever `custom_jvp`, `custom_vjp` or `stop_gradient` say, and where it is smooth and everything
has 64 bits they are precise to some 1e-7.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["Differences"]

_STEP = 2.0**-13


class Differences:
    """A library of JAX's API whose derivative transforms take differences.

    - `library`: the module that does everything else
    """

    def __init__(self, library: ModuleType):
        self.library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name)

    def jvp(self, f: Callable, primals, tangents) -> tuple[Any, Any]:
        def at(step: float):
            move = lambda x, t: x + step * t if self._inexact(x) else x
            return f(*self.tree.map(move, tuple(primals), tuple(tangents)))

        def slope(a, b):
            return (a - b) / (2 * _STEP) if self._inexact(a) else self._nothing(a)

        return f(*primals), self.tree.map(slope, at(_STEP), at(-_STEP))

    def linearize(self, f: Callable, *primals) -> tuple[Any, Callable]:
        return f(*primals), lambda *tangents: self.jvp(f, primals, tangents)[1]

    def vjp(self, f: Callable, *primals) -> tuple[Any, Callable]:
        leaves, tree = self.tree.flatten(primals)

        def along(number: int, index, direction: complex, cotangent):
            """Return the real part of the cotangent times the derivative along one element."""
            tangents = [self.numpy.zeros_like(x) for x in leaves]
            tangents[number] = tangents[number].at[index].set(direction)
            _, out = self.jvp(f, primals, self.tree.unflatten(tree, tangents))
            pairs = zip(self.tree.leaves(cotangent), self.tree.leaves(out), strict=True)
            return sum(self.numpy.sum((c * t).real) for c, t in pairs if self._inexact(t))

        def pull(cotangent):
            found = []
            for number, x in enumerate(leaves):
                if not self._inexact(x):
                    found.append(self._nothing(x))
                    continue
                made = self.numpy.zeros_like(x)
                for index in np.ndindex(np.shape(x)):
                    for d in (1, 1j) if self.numpy.iscomplexobj(x) else (1,):
                        part = along(number, index, d, cotangent)
                        made = made.at[index].add(np.conj(d) * part)
                found.append(made)
            return self.tree.unflatten(tree, found)

        return f(*primals), pull

    def value_and_grad(self, f: Callable, argnums=0, has_aux=False, holomorphic=False):
        def run(*args):
            def of(*chosen):
                new = dict(zip(places, chosen, strict=True))
                return f(*(new.get(number, x) for number, x in enumerate(args)))

            places = argnums if isinstance(argnums, tuple) else (argnums,)
            value_of = (lambda *chosen: of(*chosen)[0]) if has_aux else of
            value, pull = self.vjp(value_of, *(args[number] for number in places))
            slopes = pull(self.numpy.ones_like(value))
            return f(*args), slopes if isinstance(argnums, tuple) else slopes[0]

        return run

    def grad(self, f: Callable, argnums=0, has_aux=False, holomorphic=False) -> Callable:
        def run(*args):
            out, slopes = self.value_and_grad(f, argnums, has_aux)(*args)
            return (slopes, out[1]) if has_aux else slopes

        return run

    def jacfwd(self, f: Callable, holomorphic: bool = False) -> Callable:
        def run(x):
            basis = np.eye(np.size(x)).reshape(-1, *np.shape(x))
            columns = [self.jvp(f, (x,), (self.numpy.asarray(e, x.dtype),))[1] for e in basis]
            side_by_side = lambda *ts: self.numpy.stack(ts, -1).reshape(*np.shape(ts[0]), *x.shape)
            return self.tree.map(side_by_side, *columns)

        return run

    jacrev = jacfwd

    def hessian(self, f: Callable) -> Callable:
        return self.jacfwd(self.jacfwd(f))

    def _inexact(self, x: Any) -> bool:
        return self.numpy.issubdtype(self.numpy.result_type(x), self.numpy.inexact)

    def _nothing(self, x: Any) -> np.ndarray:
        return np.zeros(np.shape(x), self.dtypes.float0)
