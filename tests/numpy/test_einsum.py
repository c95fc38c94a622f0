"""`einsum` multiplies in upstream's order: paths, their tables, dtypes of sums, and bits."""

import random

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same

LABELS = "abcdef"


def subscripts(rng, operands, repeats=False):
    """Random subscripts, and shapes for them in which a few axes broadcast."""
    sizes = {label: rng.choice((2, 3, 4, 5, 10)) for label in LABELS}
    draw = rng.choices if repeats else rng.sample
    inputs = ["".join(draw(LABELS, k=rng.randint(0, 3))) for _ in range(operands)]
    used = sorted(set("".join(inputs)))
    output = "".join(rng.sample(used, rng.randint(0, min(3, len(used)))))
    few = 0 if repeats else 0.05
    shapes = [
        tuple([1 if rng.random() < few else sizes[k] for k in labels]) for labels in inputs
    ]  # fmt: skip
    return f"{','.join(inputs)}->{output}", shapes


def path(library, text, shapes, **options):
    operands = [np.broadcast_to(np.float32(1), shape) for shape in shapes]
    return library.numpy.einsum_path(text, *operands, **options)


@pytest.mark.parametrize(
    ("optimize", "operands", "count"),
    [
        ("auto", 1, 20), ("auto", 2, 50), ("auto", 3, 100), ("auto", 4, 100), ("auto", 5, 40),
        ("auto", 6, 20), ("auto", 7, 20), ("auto", 8, 10), ("auto", 9, 10), ("auto", 12, 10),
        ("auto", 15, 20), ("auto", 20, 20), ("optimal", 4, 40), ("optimal", 5, 20),
        ("branch-all", 4, 40), ("branch-2", 5, 40), ("branch-1", 6, 40), ("greedy", 10, 40),
        ("eager", 16, 10), (True, 4, 20), (False, 4, 20), (None, 3, 5),
    ],
)  # fmt: skip
def test_paths_and_their_tables(optimize, operands, count):
    rng = random.Random(operands)
    for _ in range(count):
        text, shapes = subscripts(rng, operands, repeats=rng.random() < 0.2)
        ours, info = path(minijax, text, shapes, optimize=optimize)
        theirs, expected = path(jax, text, shapes, optimize=optimize)
        assert ours == theirs, (text, shapes)
        assert repr(info) == repr(expected), (text, shapes)
        for name in ("eq", "naive_cost", "opt_cost", "speedup", "scale_list", "size_list",
                     "largest_intermediate", "contraction_list", "indices",
                     "size_dict", "input_subscripts", "output_subscript", "path"):  # fmt: skip
            assert getattr(info, name) == getattr(expected, name), (name, text, shapes)


@pytest.mark.parametrize("optimize", ["dp", "dynamic-programming", "auto-hq", "random-greedy"])
@pytest.mark.parametrize("operands", [3, 6, 8])
def test_other_strategies_multiply_pairs(optimize, operands):
    rng = random.Random(operands)
    for _ in range(4):
        text, shapes = subscripts(rng, operands)
        ours, _ = path(minijax, text, shapes, optimize=optimize)
        assert [len(step) for step in ours] == [2] * (operands - 1)
        assert repr(path(minijax, text, shapes, optimize=ours)[1]) == repr(
            path(jax, text, shapes, optimize=ours)[1]
        )


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("a...b,b...c", [(2, 3, 4, 5), (5, 3, 4, 2)]),
        ("...,...", [(2, 3, 4), (2, 3, 4)]),
        ("i...,...", [(2, 3, 4), (3, 4)]),
        ("i...,...->...", [(2, 3, 4), (4,)]),
        ("...ij,...jk,...kl->...il", [(2, 3, 4), (4, 5), (2, 5, 6)]),
        ("ba,a...,...d", [(2, 3), (3, 4), (4, 5)]),
        (",".join("abcdefghijklmnopqrstuvwxyz") + "->", [(2,)] * 26),
    ],
)
def test_labels_of_tables(text, shapes):
    assert repr(path(minijax, text, shapes)[1]) == repr(path(jax, text, shapes)[1])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "complex64", "int8", "bool"])
@pytest.mark.parametrize("operands", [1, 2, 3, 4, 5])
def test_bits(operands, dtype):
    rng = random.Random(operands)
    values = np.random.default_rng(operands)
    for _ in range(8):
        text, shapes = subscripts(rng, operands, repeats=rng.random() < 0.3)
        arrays = [values.normal(0, 2, shape).astype("float32") for shape in shapes]
        ours, theirs = [
            library.numpy.einsum(text, *[library.numpy.asarray(x).astype(dtype) for x in arrays])
            for library in (minijax, jax)
        ]
        assert_same(ours, theirs, ulps=0 if dtype in ("int8", "bool") else 8)


@pytest.mark.parametrize("text", ["ij->i", "ij,k->k", "ij,kj->i", "ij,ij->", "ii->i", "ij->ji"])
@pytest.mark.parametrize(
    ("dtypes", "preferred"),
    [
        (("float16", "float16"), "float32"), (("float32", "float16"), "float16"),
        (("bfloat16", "float32"), None), (("bfloat16", "int32"), None),
        (("int16", "int16"), "int8"), (("int16", "int16"), "uint16"),
        (("int32", "bool"), None), (("bool", "bool"), "int32"), (("int32", "int32"), "float16"),
        (("float16", "float16"), "int32"), (("int32", "int32"), "bool"),
    ],
)  # fmt: skip
def test_dtypes_of_sums(text, dtypes, preferred):
    """Sums of one operand run in the dtype of the result, or in the operand's if that is wider."""
    x = np.linspace(-300, 300, 9).reshape(3, 3)
    both = [x[0] if labels == "k" else x for labels in text.split("->")[0].split(",")]

    def einsum(library):
        arrays = [library.numpy.asarray(x).astype(d) for x, d in zip(both, dtypes, strict=False)]
        return library.numpy.einsum(text, *arrays, preferred_element_type=preferred)

    try:
        expected = einsum(jax)
    except TypeError:  # a product cannot be narrower than its operands
        with pytest.raises(TypeError):
            einsum(minijax)
    else:
        assert_same(einsum(minijax), expected, ulps=0)


def test_dot_general_of_the_caller():
    def calls(library):
        seen = []

        def dot_general(a, b, *args, **options):
            seen.append((a.shape, b.shape, args, sorted(options.items())))
            return library.lax.dot_general(a, b, *args, **options)

        a, b, c = [library.numpy.ones(shape) for shape in ((2, 3), (3, 4), (4, 5))]
        result = library.numpy.einsum("ij,jk,kl->il", a, b, c, _dot_general=dot_general)
        return seen, result

    (ours, result), (theirs, expected) = calls(minijax), calls(jax)
    assert ours == theirs
    assert_same(result, expected)


@pytest.mark.parametrize(
    ("optimize", "error"),
    [
        ("edge", KeyError), ([(0, 1, 2)], NotImplementedError), ([(0, 1)], ValueError),
        ([(0, 5), (0, 1)], IndexError), (["einsum_path", (0, 1), (0, 1)], TypeError),
        (3, TypeError),
    ],
)  # fmt: skip
@pytest.mark.parametrize("library", [minijax, jax])
def test_paths_that_are_none(library, optimize, error):
    a, b, c = [library.numpy.ones(shape) for shape in ((2, 3), (3, 4), (4, 5))]
    with pytest.raises(error):
        library.numpy.einsum("ij,jk,kl->il", a, b, c, optimize=optimize)


@pytest.mark.parametrize("library", [minijax, jax])
def test_the_strategy_for_two_operands_is_not_looked_up(library):
    a, b = library.numpy.ones((2, 3)), library.numpy.ones((3, 4))
    assert library.numpy.einsum("ij,jk", a, b, optimize="edge").shape == (2, 4)


@pytest.mark.parametrize(
    "labels",
    [
        (["row", "sum"], ["sum", "column"], ["column", "row"]), (["z", "sum"], ["sum", "a"]),
        ([..., "sum"], ["sum", "a"], ["a", ...]), ([(1, 2), (0, 3)], [(0, 3), (1, 1)]),
        ([1.5, 2.5], [2.5, 0.5]), ("xy", "yz", "zx"), ([-1, 70], [70, 7]), ({"p": 1, "q": 2}, "qa"),
        ([0, "a"], ["a", 1]), ([None, 2], [2, 1]), ([[1], [2]], [[2], [3]]), ([1j, 2j], [2j, 3j]),
    ],
)  # fmt: skip
def test_labels_of_any_kind(labels):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32)
    operands = [a, labels[0], b.reshape(3, 4), *labels[1:]]
    outs = []
    for library in (minijax, jax):
        try:
            outs.append(library.numpy.einsum(*operands))
        except TypeError as error:
            outs.append(str(error).partition(" (e.g.")[0])
    if isinstance(outs[1], str):
        assert outs[0] == outs[1]
    else:
        assert_same(*outs)
