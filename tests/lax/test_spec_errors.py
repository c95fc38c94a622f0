"""What messages of trees that do not fit, and of specs that cannot be, say beside upstream's, up to
the advice in them: the places by path, and what is wrong there.
"""

import re

import jax
import numpy as np
import pytest

import minijax

ADVICE = (
    "Entries in", "Array arguments' axis", "Check if these", "At that key path",  # upstream's
    "Shorten the spec", "Pad the arrays", "Reduce the results", "  there ", "Make them equal",
)  # fmt: skip

X, V = np.ones((2, 4), np.float32), np.ones(3, np.float32)


def both(x, y):
    return {"a": x, "b": (y, y)}


def mapped(f, ins, outs, *args, axes=frozenset()):
    """A call of `shard_map` over two axes, of which there need be no devices."""

    def call(j):
        kinds = (j.sharding.AxisType.Auto,) * 2
        mesh = j.sharding.AbstractMesh((2, 4), ("i", "j"), kinds)
        given = {"in_specs": ins(j.P), "out_specs": outs(j.P), "axis_names": axes}
        return j.eval_shape(j.shard_map(f, mesh=mesh, **given), *args)

    return call


def plain(P):
    return P()


def over_i(P):
    return P("i")


def over_j(P):
    return P("j")


SPECS = {
    "axes": mapped(both, lambda P: (P("z", ("i", "k")), [P("k")]), plain, X, [X]),
    "axes of results": mapped(both, over_i, lambda P: {"a": P(), "b": P("q")}, X, X),
    "axes that are not seen": mapped(lambda x: x, over_j, plain, X, axes={"i"}),
    "no specs": mapped(both, lambda P: ({"a": "i", "b": [3]}, P()), plain, {"a": X, "b": [X]}, X),
    "no specs of results": mapped(both, over_i, lambda P: {"a": 1, "b": P()}, X, X),
    "long": mapped(both, lambda P: (P("i", None, "j"), P(None, None)), plain, X, V),
    "long for all": mapped(both, lambda P: P("i", None, "j"), plain, X, X),
    "long in a tree": mapped(lambda d: d, lambda P: ({"q": P(None, "i")},), plain, {"q": [V]}),
    "long of several": mapped(lambda *xs: xs[0], lambda P: (P(), P("i", None)), plain, X, V),
    "long of results": mapped(
        both, lambda P: (P("i"), P("j")), lambda P: {"a": P("i"), "b": P("j", None, None)}, X, X
    ),
    "long of one result": mapped(lambda x: x, over_i, lambda P: P("i", None, None), X),
    "uneven": mapped(both, lambda P: (P(("i", "j")), P("j", "i")), plain, X, X),
    "uneven in a tree": mapped(lambda d: d, lambda P: ({"q": P("i")},), plain, {"q": [V, X]}),
    "uneven second dimension": mapped(lambda x: x, lambda P: P(None, ("j", "i")), plain, X),
    "uneven and twice": mapped(lambda x: x, lambda P: P("i", ("j", "i")), plain, X),
    "not replicated": mapped(lambda x: x, over_i, plain, X),
    "not replicated over one axis": mapped(lambda x: x, over_i, over_j, X.T),
    "not replicated over both": mapped(lambda x: x, lambda P: P("i", "j"), plain, X),
    "number of arguments": mapped(lambda x, y: x, lambda P: (P(),), plain, X, X),
    "keys": mapped(lambda d: d, lambda P: ({"a": P()},), plain, {"b": X}),
    "lengths": mapped(lambda d: d, lambda P: ({"a": [P(), P()]},), plain, {"a": [X]}),
    "structure of results": mapped(lambda x: (x, [x]), over_i, lambda P: (P("i"), (P("i"),)), X),
}


def sharding(j):
    return j.sharding.SingleDeviceSharding(j.devices("cpu")[0])


def placed(value, tree, **options):
    return lambda j: j.device_put(value, tree(sharding(j)), **options)


def constrained(value, tree):
    return lambda j: j.lax.with_sharding_constraint(value, tree(sharding(j)))


TREES = {
    "tree_map lengths": lambda j: j.tree.map(lambda x, y: x, [1, (1, 2)], [1, (1,)]),
    "tree_map keys": lambda j: j.tree.map(lambda x, y: x, {"a": 1}, {"b": 1}),
    "tree_map types": lambda j: j.tree.map(lambda x, y: x, ({"a": (1,)},), ({"a": [1]},)),
    "tree_map none": lambda j: j.tree.map(lambda x, y: x, [None], [1]),
    "tree_map children": lambda j: j.tree.map(lambda x, y: x, {"a": 1, "b": 2}, {"a": 1}),
    "vmap in_axes": lambda j: j.vmap(both, in_axes=({"a": 0}, 0))({"b": V}, V),
    "vmap out_axes": lambda j: j.vmap(both, out_axes={"a": 0, "b": (0, 0, 0)})(V, V),
    "device_put lengths": placed([X, X], lambda s: [s]),
    "device_put leaf": placed(X, lambda s: [s, s]),
    "device_put keys": placed({"a": X}, lambda s: {"b": s}),
    "device_put donate": placed(X, lambda s: s, donate=[True, False]),
    "device_put may_alias": placed([X], lambda s: s, may_alias=[True, False]),
    "constraint": constrained((X, X), lambda s: [s, s]),
    "constraint leaf": constrained(X, lambda s: (s, s)),
}

SIZES = {
    "one each": lambda j: j.vmap(both)(V, X),
    "most": lambda j: j.vmap(lambda d, y: y)({"a": V, "b": [X, X]}, X),
    "some": lambda j: j.vmap(lambda d, e: d)([V, X, V], {"y": X}),
    "three": lambda j: j.vmap(lambda x, y, z: x)(V, X, V[:1]),
    "axis_size": lambda j: j.vmap(both, axis_size=5)(V, V),
    "axes": lambda j: j.vmap(both, in_axes=(0, -1))(V, X),
    "axes that are none": lambda j: j.vmap(lambda x, y, z: x, in_axes=(0, None, 1))(V, X, X),
}


def said(call, j):
    with pytest.raises(Exception) as caught:
        call(j)
    text = str(caught.value).replace("minijax", "jax")
    for start in ADVICE:
        text = text.split(start)[0]
    text = re.sub(r"\{V:.*?\}", "", text)  # said of some results only
    # Upstream names a function of its own where results are not replicated.
    text = re.sub(r"(function ')\w+|(function ')<lambda>", r"\1\2f", text)
    names = lambda found: ", ".join(sorted(found[1].split(", ")))  # in any order
    text = re.sub(r"frozenset\(\{(.*?)\}\)", names, text)
    return type(caught.value).__name__, text.strip()


@pytest.mark.parametrize("name", SPECS)
def test_specs(name):
    assert said(SPECS[name], minijax) == said(SPECS[name], jax)


@pytest.mark.parametrize("name", TREES)
def test_trees(name):
    assert said(TREES[name], minijax) == said(TREES[name], jax)


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name):
    assert said(SIZES[name], minijax) == said(SIZES[name], jax)


def jitted(name, given, *args, result=lambda x: x):
    return lambda j: j.jit(result, **{name: given(sharding(j))})(*args)


ASKED = {
    "list": jitted("in_shardings", lambda s: [s], X),
    "list of several": jitted("in_shardings", lambda s: [s, None], X, X, result=lambda x, y: x),
    "one": jitted("in_shardings", lambda s: s, {"a": X}, result=lambda d: d["a"]),
    "wrong number": jitted("in_shardings", lambda s: (s, s), X),
    "too few": jitted("in_shardings", lambda s: (s,), X, X, result=lambda x, y: x),
    "dict": jitted("in_shardings", lambda s: {"a": s}, X),
    "number": jitted("in_shardings", lambda s: 1, X),
    "text": jitted("out_shardings", lambda s: (None, "a"), X),
    "number in a dict": jitted("out_shardings", lambda s: {"a": 3}, X),
    "device": jitted("in_shardings", lambda s: s._device, X),
}


@pytest.mark.parametrize("name", ASKED)
def test_shardings_of_jit(name):
    def run(j):
        try:
            return np.asarray(ASKED[name](j)).tolist()
        except (TypeError, ValueError) as error:
            return type(error).__name__, re.sub(r" of type <.*", "", str(error))

    assert run(minijax) == run(jax)


@pytest.mark.parametrize("name", ["in_shardings", "out_shardings"])
@pytest.mark.parametrize("given", [1, "a", [None, 2], object, np.ones(2)], ids=str)
def test_shardings_are_checked_before_the_call(name, given):
    for j in (minijax, jax):
        with pytest.raises(TypeError, match=f"{name} leaf specifications are expected"):
            j.jit(lambda x: x, **{name: given})
