"""Pytrees against upstream's: same leaves, structures, printing, key paths and error classes."""

import collections
import copy
import dataclasses
import functools
import operator
import pickle
from typing import NamedTuple

import jax
import jax.tree_util as ju
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax
import minijax.tree as mt
import minijax.tree_util as mu

pytestmark = pytest.mark.both_ends

OD = collections.OrderedDict
DD = collections.defaultdict


class Point(NamedTuple):
    x: object
    y: object


class SubPoint(Point):
    pass


class Pair:
    def __init__(self, *items, tag=None):
        self.items, self.tag = items, tag

    def __repr__(self):
        return f"Pair({self.items}, {self.tag})"

    def __eq__(self, other):
        return (self.items, self.tag) == (other.items, other.tag)

    def tree_flatten(self):
        return self.items, self.tag

    def tree_flatten_with_keys(self):
        return [(f"k{i}", x) for i, x in enumerate(self.items)], self.tag

    @classmethod
    def tree_unflatten(cls, tag, items):
        return cls(*items, tag=tag)


class Keyed(Pair):
    pass


class KeyedOnly:
    """Has no tree_flatten: the children come from the pairs."""

    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return f"KeyedOnly({self.x})"

    def __eq__(self, other):
        return self.x == other.x

    def tree_flatten_with_keys(self):
        return ((mu.GetAttrKey("x"), self.x),), "aux"

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@dataclasses.dataclass
class Data:
    a: object
    b: object = 0
    c: object = dataclasses.field(default=7, metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class Static:
    x: int


@dataclasses.dataclass
class Plain:
    b: object
    a: object
    meta: object = 3
    lost: object = 5
    late: object = dataclasses.field(default=1, init=False)


for lib in (mu, ju):
    lib.register_pytree_node_class(Pair)
    lib.register_pytree_with_keys_class(Keyed)
    lib.register_pytree_with_keys_class(KeyedOnly)
    lib.register_dataclass(Data)
    lib.register_dataclass(Plain, ["a", "b"], ["meta"], ["lost"])
    lib.register_static(Static)


def isnone(x):
    return x is None


def islist(x):
    return isinstance(x, list)


def never(x):
    return False


def structure(lib, tree):
    return lib.tree_structure(tree)


def show(value):
    """Comparable text of a result; class names of the two libraries are made alike."""
    text = repr(value).replace("minijax.tree_util", "jax.tree_util").replace("_Opaque", "Shim")
    return text.replace("_HashableCallableShim", "Shim")


def outcome(call, lib):
    try:
        return "ok", show(call(lib))
    except Exception as e:
        return "error", type(e)


def agree(call):
    assert outcome(call, mu) == outcome(call, ju)


def g(*args, **kwargs):
    return args, kwargs


G2 = functools.partial(g, 1, x=2)

TREES = [
    1,
    None,
    (),
    [],
    {},
    (1,),
    [1, (2, [3, None]), {"b": 4, "a": (5,)}],
    {"z": {3: 1, 1: 2}, "y": []},
    {2.5: 1, True: 2},
    {None: 1},
    OD(b=1, a=[2]),
    OD({"b": 1, 1: 2}),
    DD(list, {"b": 1, "a": (2, 3)}),
    Point(1, [2, None]),
    SubPoint(1, {"k": 2}),
    Pair(1, [2, 3], tag="t"),
    Pair(),
    Keyed(1, (2,), tag=4),
    KeyedOnly([1, 2]),
    Data(1, [2, 3]),
    Data(None, 2, c="other"),
    [Static(3), 1],
    Plain(1, 2, 9, 9),
    type("ListSubclass", (list,), {})([1]),
    type("DictSubclass", (dict,), {})(a=1),
    range(3),
    "text",
    # errors
    {"a": 1, 1: 2},
    {None: 1, 2: 2},
    DD(list, {"a": 1, 1: 2}),
    [1, {(1, "a"): 1, (1, 2): 2}],
]
PREDICATES = [None, isnone, islist, never, lambda x: True, lambda x: 0, lambda x: 1 / 0, 5]


@pytest.mark.parametrize("is_leaf", PREDICATES)
@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_flatten(tree, is_leaf):
    agree(lambda lib: lib.tree_flatten(tree, is_leaf))
    agree(lambda lib: lib.tree_leaves(tree, is_leaf))
    agree(lambda lib: lib.tree_structure(tree, is_leaf))
    agree(lambda lib: lib.tree_flatten_with_path(tree, is_leaf))
    agree(lambda lib: lib.tree_leaves_with_path(tree, is_leaf))
    agree(lambda lib: lib.tree_map(lambda x: (x,), tree, is_leaf=is_leaf))
    agree(lambda lib: lib.tree_map_with_path(lambda p, x: lib.keystr(p), tree, is_leaf=is_leaf))
    agree(lambda lib: lib.tree_all(tree, is_leaf=is_leaf))
    agree(lambda lib: lib.all_leaves([tree, 1], is_leaf))
    agree(lambda lib: lib.all_leaves(iter([1, 2]), is_leaf))


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_structures(tree):
    agree(lambda lib: lib.flatten_one_level(tree))
    agree(lambda lib: lib.is_tree_node(type(tree)))
    agree(lambda lib: structure(lib, tree).node_data())
    agree(lambda lib: lib.treedef_children(structure(lib, tree)))
    agree(lambda lib: lib.treedef_is_leaf(structure(lib, tree)))
    agree(lambda lib: lib.treedef_tuple(iter([structure(lib, tree)] * 2)))
    agree(lambda lib: structure(lib, tree).num_nodes)
    agree(lambda lib: structure(lib, tree) == structure(lib, [tree]))
    agree(lambda lib: structure(lib, tree) == structure(lib, copy.deepcopy(tree)))
    agree(lambda lib: structure(lib, tree).compose(structure(lib, (1, None))))
    agree(lambda lib: lib.tree_unflatten(structure(lib, tree), [10]))
    agree(lambda lib: lib.tree_unflatten(structure(lib, tree), lib.tree_leaves(tree)))
    if not isinstance(tree, Point):  # jaxlib 0.10 repeats the first field's key; checked below
        agree(lambda lib: lib.flatten_one_level_with_keys(tree))


def test_one_level_of_a_namedtuple_names_each_field():
    pairs, _ = mu.flatten_one_level_with_keys(Point(1, 2))
    assert list(pairs) == [(mu.GetAttrKey("x"), 1), (mu.GetAttrKey("y"), 2)]


@pytest.mark.parametrize("tree", TREES[:23], ids=repr)
@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_treedef_copies_and_pickles(tree, clone):
    treedef = mu.tree_structure(tree)
    twin = clone(treedef)
    assert (twin, hash(twin), repr(twin)) == (treedef, hash(treedef), repr(treedef))
    assert mu.treedef_tuple([treedef, twin]) == mu.tree_structure((tree, tree))


@pytest.mark.parametrize("simple", [False, True])
@pytest.mark.parametrize("separator", ["", "/"])
def test_keystr(simple, separator):
    def paths(lib):
        own = (lib.SequenceKey(1), lib.DictKey("a"), lib.DictKey((3, 0.5)), lib.GetAttrKey("x"))
        return [(), (*own, lib.FlattenedIndexKey(2)), ("a", 1), ((1, 2), int), 5]

    for i in range(5):
        agree(lambda lib, i=i: lib.keystr(paths(lib)[i], simple=simple, separator=separator))
    agree(lambda lib: lib.keystr((lib.DictKey("a"),), True))


def test_is_leaf_takes_path():
    tree = [1, [2, {"a": 3}]]

    def shallow(path, x):
        return len(path) == 1

    for name in ("tree_flatten_with_path", "tree_leaves_with_path"):
        agree(lambda lib, name=name: getattr(lib, name)(tree, shallow, True))
        agree(lambda lib, name=name: getattr(lib, name)(tree, shallow))
        agree(lambda lib, name=name: getattr(lib, name)(tree, is_leaf_takes_path=True))
    for takes in (True, False):
        agree(
            lambda lib, takes=takes: lib.tree_map_with_path(
                lambda p, x: (p, x), tree, is_leaf=shallow, is_leaf_takes_path=takes
            )
        )


# (prefix, full tree): half of them agree, half do not
PAIRS = [
    (1, [2, {"a": 3}]),
    (1, None),
    (None, 1),
    (None, None),
    ([None], [1]),
    ([1, None], [2, {"a": 3, "b": 5}]),
    ([1, 2], [[3], {"a": 1}]),
    ([1, 2], [1]),
    ([1, 2], (1, 2)),
    ([1, 2], {"a": 1}),
    ([1], 5),
    ((), []),
    ({"a": 1}, {"b": 1}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({"a": 1, "b": 2}, {"b": {"c": 1}, "a": 2}),
    ([{"a": (1, 2)}], [{"a": (1, [2, 3])}]),
    ([{"a": (1, 2)}], [{"a": (1, 2, 3)}]),
    (Point(1, 2), (1, 2)),
    (Point(1, (2,)), Point(1, (2, 3))),
    (Point(1, 2), Point([1], (2, 3))),
    (Point(1, 2), SubPoint(1, 2)),
    (DD(list, a=1), DD(dict, a=1)),
    (OD(a=1), {"a": 1}),
    (OD(a=1, b=2), OD(b=1, a=2)),
    (Pair(1, 2), Pair(1)),
    (Pair(1, tag=2), Pair(1, tag=3)),
    (Pair(1, [2], tag=2), Pair(1, [[2, 2]], tag=2)),
    ([Static(1)], [Static(2)]),
    (Data(1, (1, 2)), Data(1, (2,))),
    (Data(1, (1, 2)), Data(1, (2, 3), c=0)),
    (Data(1, 2), Data([1, 1], 2)),
    ([[1], 5], [[3], [3]]),
]


@pytest.mark.parametrize("is_leaf", [None, isnone, islist])
@pytest.mark.parametrize(("prefix", "full"), PAIRS, ids=repr)
def test_prefixes(prefix, full, is_leaf):
    agree(lambda lib: lib.tree_map(lambda *xs: xs, prefix, full, is_leaf=is_leaf))
    agree(lambda lib: lib.tree_map(lambda *xs: xs, prefix, prefix, full, is_leaf=is_leaf))
    agree(lambda lib: lib.tree_map_with_path(lambda *xs: xs, prefix, full, is_leaf=is_leaf))
    agree(lambda lib: lib.tree_broadcast(prefix, full, is_leaf))
    try:
        ju.tree_map(lambda *xs: xs, prefix, full, is_leaf=is_leaf)
    except ValueError as e:
        theirs = str(e)
        with pytest.raises(ValueError, match="pytree structure error") as ours:
            mu.tree_map(lambda *xs: xs, prefix, full, is_leaf=is_leaf)
        if not isinstance(prefix, Point):  # jaxlib 0.10 repeats the first field's key
            assert theirs.splitlines()[1].strip() in str(ours.value)  # the same key path is named
        assert "rest[0]" in str(ours.value)
        assert mu.prefix_errors(prefix, full, is_leaf)
        with pytest.raises(ValueError, match="full_tree"):
            mu.broadcast_prefix(prefix, full, is_leaf)
    else:
        assert not mu.prefix_errors(prefix, full, is_leaf)
        assert len(mu.broadcast_prefix(prefix, full, is_leaf)) == len(mu.tree_leaves(full))


def test_prefix_errors_lists_every_place():
    makers = mu.prefix_errors([(1, 2), 3, {"a": None}], [(1,), [4], {"a": 5}])
    messages = [str(make("spec", "value")) for make in makers]
    assert len(messages) == 2
    assert "spec[0]" in messages[0]
    assert "tuple of length 2" in messages[0]
    assert "tuple of length 1" in messages[0]
    assert "spec[2]['a']" in messages[1]
    assert "leaf of type int" in messages[1]
    assert "is_leaf" in messages[1]


def test_flatten_axes():
    treedef = mu.tree_structure((({"a": 1, "b": [2, 3]}, 4, None), {"k": 5}))
    axes = functools.partial(mu.flatten_axes, "in_axes", treedef)
    assert axes(0) == [0] * 5
    assert axes(None) == [None] * 5
    assert axes(((0, 1, None), 2)) == [0, 0, 0, 1, 2]
    assert axes((({"a": None, "b": [1, 2]}, None, 7), {"k": 3})) == [None, 1, 2, None, 3]
    with pytest.raises(ValueError, match=r"in_axes\[0\]\[0\]") as e:
        axes((({"a": 0, "c": 1}, 0, 0), 0))
    assert "['c']" in str(e.value)
    with pytest.raises(ValueError, match=r"    in_axes\[1\]\n"):
        axes(((0, [1], 0), 0), kws=True)
    with pytest.raises(ValueError, match="length 2"):
        axes(((0, 1), 0), kws=True)
    # the structure's own constructors are never called with stand-ins for the leaves
    strict = mu.tree_structure(Data(1, [2]))
    assert mu.flatten_axes("x", strict, Data(None, 3)) == [None, 3]


def test_reduce():
    def pair(a, b):
        return a, b

    for tree in ([], [1, [2, 3]], [None, 4], list(range(9)), list(range(7))):
        for is_leaf in (None, isnone):
            agree(lambda lib, t=tree, p=is_leaf: lib.tree_reduce(pair, t, is_leaf=p))
            agree(lambda lib, t=tree, p=is_leaf: lib.tree_reduce(pair, t, None, p))
            agree(lambda lib, t=tree, p=is_leaf: lib.tree_reduce(pair, t, initializer=9, is_leaf=p))
            agree(lambda lib, t=tree, p=is_leaf: lib.tree_reduce_associative(pair, t, is_leaf=p))
            agree(lambda lib, t=tree: lib.tree_reduce_associative(pair, t, identity=100))
    agree(lambda lib: lib.tree_reduce_associative(pair, [1], 5))
    agree(lambda lib: lib.tree_all([1], None))


TRANSPOSES = [
    ([1, 2], (1, 2), [(1, 2), (3, 4)]),
    ([1, 2], (1, 2), [(1, 2), (3, [4])]),
    ([1, 2], (1, 2), {"a": 1, "b": 2, "c": 3, "d": 4}),
    ([1, 2], (1, 2), [(1, 2), (3,)]),
    ([1, 2], (1, 2), [(1, 2), (3, (4, 5))]),
    ([1, 2], (1, 2), [(1, 2)]),
    ([1, None, 2], (1, 2), [(1, 2), None, (3, 4)]),
    ([1, 2], (1, None), [(1, None), (3, None)]),
    ([1, 2], (1, None), [(1, None), (3, 4)]),
    (1, (1, 2), (1, 2)),
    ({"a": 1}, 1, {"a": 1}),
    ((), (), ()),
    ([1], (), [()]),
]


@pytest.mark.parametrize("infer", [False, True])
@pytest.mark.parametrize(("outer", "inner", "tree"), TRANSPOSES)
def test_transpose(outer, inner, tree, infer):
    def call(lib):
        inner_def = None if infer else structure(lib, inner)
        return lib.tree_transpose(structure(lib, outer), inner_def, tree)

    agree(call)


def test_transpose_of_no_outer_leaves():
    # upstream refuses an outer structure without leaves unless the inner one has none either
    treedefs = mu.tree_structure([]), mu.tree_structure({"a": 1})
    assert mu.tree_transpose(*treedefs, []) == {"a": []}
    with pytest.raises(IndexError, match="inner_treedef"):
        mu.tree_transpose(treedefs[0], None, [])


def test_wrong_arguments():
    agree(lambda lib: lib.tree_unflatten(structure(lib, [1, 2]), [1]))
    agree(lambda lib: lib.tree_unflatten(structure(lib, [1, 2]), [1, 2, 3]))
    agree(lambda lib: lib.tree_unflatten(structure(lib, [1, 2]), 3))
    agree(lambda lib: lib.tree_map(1, 5))
    agree(lambda lib: lib.tree_map(1, []))
    agree(lambda lib: lib.tree_map(abs))
    agree(lambda lib: lib.treedef_tuple([1]))
    agree(lambda lib: lib.all_leaves(5))
    agree(lambda lib: lib.PyTreeDef())


@pytest.mark.parametrize(
    "call",
    [
        lambda: mu.tree_unflatten([1, 2], [1, 2]),
        lambda: mu.treedef_children(5),
        lambda: mu.treedef_is_leaf(5),
        lambda: mu.tree_transpose([1], mu.tree_structure(1), 2),
        lambda: mu.build_tree(5, [1]),
    ],
)
def test_what_is_no_structure_is_a_type_error(
    call,
):  # upstream's is an AttributeError of the inside
    with pytest.raises(TypeError, match="takes structures of pytrees"):
        call()


@pytest.mark.parametrize("fun", [mu.tree_leaves, mu.tree_structure, minijax.jit(lambda x: 1)])
def test_containers_nested_too_deeply_are_a_recursion_error(fun):
    """How deep is too deep depends on the version of Python: what is not works."""
    tree = 1.0
    for _ in range(5000):
        tree = [tree]
    refused = "maximum recursion depth exceeded in flatten"
    try:
        told = refused if fun(tree) else None
    except RecursionError as error:
        told = str(error)
    assert refused in told


def test_build_tree():
    treedef = mu.tree_structure({"a": 1, "b": (2, 3)})
    assert mu.build_tree(treedef, [1, iter([2, 3])]) == {"a": 1, "b": (2, 3)}


# Partial


PARTIALS = [
    lambda P: P(g, 1, x=[2, 3]),
    lambda P: P(func=g),
    lambda P: P(G2, 3, x=4, y=5),
    lambda P: P(P(g, 1), 2),
    lambda P: P(P(G2, 3), 2, z=(1, 2)),
    lambda P: functools.partial(P(g, 1), 2),
    lambda P: P(5),
    lambda P: P(),
]


@pytest.mark.parametrize("make", PARTIALS)
def test_partial(make):
    agree(lambda lib: make(lib.Partial))
    agree(lambda lib: make(lib.Partial)(7, w=8))
    agree(lambda lib: lib.tree_flatten(make(lib.Partial)))
    agree(lambda lib: lib.tree_flatten_with_path(make(lib.Partial)))
    agree(lambda lib: lib.flatten_one_level(make(lib.Partial)))
    agree(lambda lib: lib.flatten_one_level_with_keys(make(lib.Partial)))
    agree(lambda lib: lib.tree_map(lambda x: x * 2, make(lib.Partial))())
    agree(lambda lib: lib.tree_map(lambda x, y: x, make(lib.Partial), lib.Partial(g, 1)))
    agree(lambda lib: structure(lib, make(lib.Partial)) == structure(lib, make(lib.Partial)))
    agree(lambda lib: (make(lib.Partial).args, make(lib.Partial).keywords))
    agree(lambda lib: pickle.loads(pickle.dumps(make(lib.Partial))))
    agree(lambda lib: pickle.loads(pickle.dumps(structure(lib, make(lib.Partial)))))
    agree(lambda lib: copy.deepcopy(make(lib.Partial)))


def test_partial_is_a_functools_partial_with_an_opaque_function():
    p = mu.Partial(G2, 3)
    assert isinstance(p, functools.partial)
    assert p.func == G2
    assert hash(p.func) == hash(G2)
    assert p.func == mu.Partial(G2, 4).func
    assert p.func != mu.Partial(functools.partial(g, 1, x=2)).func
    assert (p.func.func, p.func.args, p.func.keywords) == (G2.func, G2.args, G2.keywords)


# Registration


def fresh(base=Pair):
    return type("Fresh", (base,), {})


def fresh_dataclass():
    @dataclasses.dataclass
    class Fresh:
        a: object
        b: object
        c: object = dataclasses.field(default=7, metadata={"static": True})

    return Fresh


REGISTRATIONS = [
    lambda lib: lib.register_pytree_node(list, lambda x: (x, None), lambda _, x: x),
    lambda lib: lib.register_pytree_node(type(None), lambda x: (x, None), lambda _, x: x),
    lambda lib: lib.register_pytree_node(OD, lambda x: (x, None), lambda _, x: x),
    lambda lib: lib.register_pytree_node(lib.Partial, lambda x: (x, None), lambda _, x: x),
    lambda lib: lib.register_pytree_node(Pair, Pair.tree_flatten, Pair.tree_unflatten),
    lambda lib: lib.register_pytree_node(fresh(), 5, Pair.tree_unflatten),
    lambda lib: lib.register_pytree_node_class(fresh(object)),
    lambda lib: lib.register_pytree_with_keys_class(fresh(object)),
    lambda lib: lib.register_static(Static),
    lambda lib: lib.register_dataclass(Data),
    lambda lib: lib.register_dataclass(fresh(object)),
    lambda lib: lib.register_dataclass(fresh(object), data_fields=["a"]),
    lambda lib: lib.register_dataclass(fresh_dataclass(), data_fields=["a", "b"]),
    lambda lib: lib.register_dataclass(fresh_dataclass(), meta_fields=["a", "b"]),
    lambda lib: lib.register_dataclass(fresh_dataclass(), ["a", "b"], []),
    lambda lib: lib.register_dataclass(fresh_dataclass(), ["a", "b"], [], ["c"]),
    lambda lib: lib.register_dataclass(fresh_dataclass(), ["a", "b", "q"], ["c"]),
    lambda lib: lib.register_dataclass(fresh_dataclass(), ["a", "b"], ["a", "c"]),
    lambda lib: lib.register_dataclass(fresh_dataclass(), "ab", "c", "z"),
    lambda lib: lib.register_dataclass(fresh_dataclass(), ["a", "b", "c"], [], ["c"]),
    lambda lib: lib.register_dataclass(type("Late", (Plain,), {})),
    lambda lib: lib.register_dataclass(5),
]


@pytest.mark.parametrize("i", range(len(REGISTRATIONS)))
def test_registering(i):
    agree(REGISTRATIONS[i])


@pytest.mark.parametrize("fields", [["a", "b"], ["a", "b", "c", "q"], ["a", "b", "q"]], ids=str)
def test_fields_that_are_not_those_of_the_dataclass(fields):
    texts = []
    for lib in (ju, mu):
        with pytest.raises(ValueError) as caught:
            lib.register_dataclass(fresh_dataclass(), fields, [])
        texts.append(str(caught.value))
    theirs, ours = texts
    assert ours.startswith(theirs)


def test_drop_fields_with_inferred_fields():
    cls = mu.register_dataclass(fresh_dataclass(), drop_fields=["c"])
    assert mu.tree_leaves(cls(1, 2)) == [1, 2]
    assert mu.tree_structure(cls(1, 2, 3)) == mu.tree_structure(cls(1, 2, 4))


def test_registering_what_is_no_class_is_refused():
    with pytest.raises(TypeError, match="must be a class"):
        mu.register_pytree_node(5, Pair.tree_flatten, Pair.tree_unflatten)


def test_bad_flatten_functions():
    for bad in ((1, 2, 3), (1, 2), 5):
        agree(lambda lib, bad=bad: _with_flatten(lib, lambda _, bad=bad: bad))
    agree(lambda lib: _with_flatten(lib, lambda x: (iter(x.items), [1])))


def _with_flatten(lib, flatten_func):
    cls = fresh()
    lib.register_pytree_node(cls, flatten_func, cls.tree_unflatten)
    return lib.tree_flatten(cls(1, 2))


def test_flatten_with_keys_func():
    def call(lib):
        cls = fresh()
        lib.register_pytree_node(
            cls, cls.tree_flatten, cls.tree_unflatten, cls.tree_flatten_with_keys
        )
        return lib.tree_flatten_with_path([cls(1, [2])]), lib.tree_flatten([cls(1, 2)])

    agree(call)


@pytest.mark.parametrize(("own", "other"), [(mu, ju), (ju, mu)])
def test_registries_are_separate(own, other):
    classes = [fresh(), fresh_dataclass(), fresh()]
    own.register_pytree_node_class(classes[0])
    own.register_dataclass(classes[1])
    own.register_static(classes[2])
    for cls in classes:
        assert own.is_tree_node(cls)
        assert not other.is_tree_node(cls)
        value = cls(1, 2)
        assert other.tree_leaves([value]) == [value]
    other.register_static(classes[2])
    assert other.is_tree_node(classes[2])
    assert not other.is_tree_node(own.Partial)
    assert mu.default_registry is mu.registry is not ju.default_registry


def test_static_field():
    @mu.register_dataclass
    @dataclasses.dataclass
    class C:
        x: int
        y: int = mt.static(default=3)
        z: int = mt.static(default=4, metadata={"static": False, "note": 1})

    assert mu.tree_flatten(C(1))[0] == [1, 4]
    assert mt.map(operator.neg, C(1)) == C(-1, 3, -4)
    for kwargs in ({}, {"default": 3}, {"metadata": None}, {"metadata": {"q": 1}}, {"metadata": 5}):
        ours, theirs = (outcome(lambda m, kw=kwargs: m.static(**kw), m) for m in (mt, jax.tree))
        assert ours == theirs


def test_short_names():
    for name in mt.__all__:
        assert hasattr(jax.tree, name)
        if name != "static":
            short, long = getattr(mt, name), getattr(mu, f"tree_{name}")
            assert short.__name__ == name and short.__code__ is long.__code__


# Random trees


def _nodes(children):
    keys = st.text("abc", max_size=2)
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(keys, children, max_size=3),
        st.dictionaries(keys, children, max_size=3).map(OD),
        st.dictionaries(keys, children, max_size=3).map(lambda d: DD(list, d)),
        st.builds(Point, children, children),
        st.builds(Data, children, children, st.integers(0, 1)),
        st.builds(Pair, children, tag=st.integers(0, 1)),
        st.builds(Keyed, children, children),
    )


LEAVES = st.one_of(st.integers(-9, 9), st.none(), st.builds(Static, st.integers(0, 2)))
RANDOM = st.recursive(LEAVES, _nodes, max_leaves=12)


@given(RANDOM)
@settings(max_examples=100, deadline=None)
def test_random_tree(tree):
    for is_leaf in (None, isnone, islist):
        agree(lambda lib, p=is_leaf: lib.tree_flatten(tree, p))
        agree(lambda lib, p=is_leaf: lib.tree_flatten_with_path(tree, p))
        agree(lambda lib, p=is_leaf: lib.tree_map(lambda *xs: xs, tree, tree, is_leaf=p))
    leaves, treedef = mu.flatten(tree)
    assert mu.unflatten(treedef, leaves) == tree
    assert mu.generate_key_paths(tree) == mu.tree_leaves_with_path(tree)
    assert mu.flatten_axes("x", treedef, tree) == mu.broadcast_prefix(tree, tree) == leaves
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    agree(lambda lib: lib.tree_transpose(structure(lib, [1, 2]), None, [tree, tree]))


@given(RANDOM, RANDOM)
@settings(max_examples=100, deadline=None)
def test_random_pair(a, b):
    agree(lambda lib: lib.tree_map(lambda *xs: xs, a, b))
    agree(lambda lib: lib.tree_broadcast(a, b))
    agree(lambda lib: structure(lib, a) == structure(lib, b))
    agree(lambda lib: structure(lib, a).compose(structure(lib, b)))


@given(RANDOM, st.data())
@settings(max_examples=100, deadline=None)
def test_random_prefix(tree, data):
    """Cut a tree at a random set of nodes: the cut is a prefix, and each leaf finds its cut."""
    nodes = []
    mu.tree_flatten(tree, lambda x: nodes.append(x) or False)
    chosen = data.draw(st.lists(st.sampled_from(nodes), max_size=3)) if nodes else []
    cut = mu.tree_map(lambda x: "cut", tree, is_leaf=lambda x: any(x is c for c in chosen))
    agree(lambda lib: lib.tree_broadcast(cut, tree))
    assert not mu.prefix_errors(cut, tree)
    leaves, treedef = mu.flatten(tree)
    assert mu.flatten_axes("x", treedef, cut) == ["cut"] * len(leaves)
