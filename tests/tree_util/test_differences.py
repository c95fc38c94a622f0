"""What errors say of two structures that differ, beside upstream's: each place, and why."""

import collections
import re

import jax
import jax.export
import numpy as np
import pytest

import minijax
import minijax.export

Pair = collections.namedtuple("Pair", "x y")
Dict, Default = collections.OrderedDict, collections.defaultdict


class Indexed:
    """A node without keys, with metadata."""

    def __init__(self, children, aux=None):
        self.children, self.aux = children, aux

    def tree_flatten(self):
        return self.children, self.aux

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(children, aux)


class Named(Indexed):
    """One that names its children."""

    def tree_flatten_with_keys(self):
        keys = [f"k{index}" for index in range(len(self.children))]
        named = zip(map(jax.tree_util.GetAttrKey, keys), self.children, strict=True)
        return list(named), self.aux


for library in (minijax, jax):
    library.tree_util.register_pytree_node_class(Indexed)
    library.tree_util.register_pytree_with_keys_class(Named)

PAIRS = {
    "lengths": ((1, 2), (1,)),
    "lengths of lists": ([[1]], [[1, 2, 3]]),
    "leaf": (1, [1]),
    "node": ([1], 1),
    "none": ((1, [None]), (1, [2])),
    "keys": ({"a": 1}, {"b": 1}),
    "more keys": ({"a": 1}, {"a": 1, "b": 2}),
    "other keys": ({"a": 1, "b": 2}, {"c": 3}),
    "no keys": ({}, {"a": 1}),
    "integer keys": ({1: 2}, {2: 2}),
    "types": ((1,), [1]),
    "named tuple": (Pair(1, 2), (1, 2)),
    "in a named tuple": (Pair(1, 2), Pair((1,), 2)),  # upstream calls the second `.x` too
    "order": (Dict(a=1, b=2), Dict(b=2, a=1)),
    "ordered": ({"a": 1}, Dict(a=1)),
    "default": (Default(list, a=1), Default(list, b=1)),
    "more of a default": (Default(list, a=1), Default(list, b=1, c=2)),
    "children": (Indexed((1,)), Indexed((1, 2))),
    "child": (Indexed((1, 2)), Indexed((1, [2]))),
    "metadata": (Indexed((1,), "one"), Indexed((1,), "other")),
    "named children": (Named((1, 2)), Named((1,))),
    "named child": ([Named((1, 2))], [Named((1, {"a": 2}))]),
    "deep": ({"a": (1, {"c": 2})}, {"a": (1, {"c": [2]})}),
    "several": ([1, 1, (1, 1)], [1, (), (1, {})]),
}


def pulled(j, one, other):
    def spread(x):
        return j.tree.map(lambda _: x, one)

    return j.vjp(spread, 1.0)[1](j.tree.map(np.float32, other))


USERS = {
    "scan": lambda j, one, other: j.lax.scan(lambda c, _: (other, None), one, None, length=2),
    "while": lambda j, one, other: j.lax.while_loop(lambda c: False, lambda c: other, one),
    "cond": lambda j, one, other: j.lax.cond(True, lambda: one, lambda: other),
    "switch": lambda j, one, other: j.lax.switch(0, [lambda: one, lambda: one, lambda: other]),
    "vjp": pulled,
    "compiled": lambda j, one, other: j.jit(lambda x: 1).lower(one).compile()(other),
    "keyword": lambda j, one, other: j.jit(lambda *, x: 1).lower(x=one).compile()(x=other),
    "exported": lambda j, one, other: j.export.export(j.jit(lambda x: 1))(one).call(other),
}


def said(user, j, pair):
    with pytest.raises((TypeError, ValueError)) as caught:
        USERS[user](j, *PAIRS[pair])
    text = str(caught.value).replace("minijax", "jax")
    text = re.sub(r"<class '(jax\._src\.core\.ShapedArray|int)'>", "pytree leaf", text)
    text = re.sub(r"(key sets: )\{(.*?)\}", lambda m: m[1] + str(sorted(m[2].split())), text)
    text = re.sub(r"structure of the (result|diff).*\n", "", text)  # which function it is
    text = text.removesuffix("Static arguments are left out when a compiled function is called.")
    lines = [line for line in text.split("\n") if line]
    return type(caught.value).__name__, lines


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("user", USERS)
def test_as_upstream_says_it(user, pair):
    ours, theirs = (said(user, j, pair) for j in (minijax, jax))
    if "the input tree structure is:" in theirs[1]:  # upstream's, where it finds no place
        assert ours[0] == theirs[0] and "NoneType" in "".join(ours[1])
        return
    assert ours == theirs
