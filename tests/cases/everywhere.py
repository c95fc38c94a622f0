"""A call of every public function, as text: the rows of `test_everywhere`, from the tables of other tests.

A row names the arrays that it is given; what else it names means the same in both libraries.
"""

import functools
import re
import warnings

from tests.bad_calls import calls, generate, inputs
from tests.benchmarks import cost_rows
from tests.cases import numpy_cases


class Row:
    """The text of a call, the arrays that it names, and what the other names mean."""

    def __init__(self, text, arrays, space):
        self.text, self.arrays, self.space = text, arrays, space

    def __repr__(self):
        return self.text

    def names(self):
        """The arrays that the call names, outside of strings, attributes and keywords."""
        return self._names

    @functools.cached_property
    def _names(self):
        bare = re.sub(r"\"[^\"]*\"|'[^']*'|\.\w+|\b\w+(?==[^=])|\blambda [\w, ]*:", "", self.text)
        return sorted(set(re.findall(r"\b\w+\b", bare)) & {*self.arrays, "key", "KEY"})

    def given(self, m):
        return [
            m.random.key(0) if name in ("key", "KEY") else m.numpy.asarray(self.arrays[name])
            for name in self.names()
        ]

    def function(self, m):
        """The call as a function of its arrays."""
        code, names, space = _compiled(self.text), self.names(), self.space(m)

        def fun(*args):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return eval(code, {**space, **dict(zip(names, args, strict=True))})

        return fun


_compiled = functools.cache(lambda text: compile(text, "<row>", "eval"))
_spaces = {}


def _space(m):
    """The modules by which rows name functions, and what `bad_calls` names."""
    if m.__name__ not in _spaces:
        space = inputs.namespace(m.__name__)
        space |= {"random": m.random, "nn": m.nn, "image": m.image, "scipy": m.scipy}
        _spaces[m.__name__] = {**space, "special": m.scipy.special}
    return _spaces[m.__name__]


_FACE = r"(jnp|lax|jax\.(random|nn|image|ops|scipy|numpy))\.|[A-Z]+\.|operator\.|divmod"
_ELSEWHERE = (
    r"save|load|REF\b|KEYS|MESH|\.lower\(|with_sharding|initializers|fromfile|to_device|addressable"
)


def rows():
    found = [Row(text, cost_rows.INPUTS, _space) for text in cost_rows.expressions()]
    found += [
        Row(text, numpy_cases.INPUTS, _space) for text in numpy_cases.lines(numpy_cases.CASES)
    ]
    listed = {text for text in calls.listed() if re.match(_FACE, text)}
    for base in generate.bases():
        text = generate._written(base.function, base.args, base.kwargs)
        if re.match(_FACE, text):
            listed.add(text)
    arrays = dict(inputs.ARRAYS)
    found += [Row(text, arrays, _space) for text in sorted(listed)]
    return [row for row in found if not re.search(_ELSEWHERE, row.text)]
