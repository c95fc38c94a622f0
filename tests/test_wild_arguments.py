"""Arguments that make little sense: answered or refused as upstream does, each class by its members.

The rows are expressions. Both libraries give equal values, or errors of one class.
"""

import datetime
import itertools
import re

import jax
import jax.numpy
import numpy as np
import pytest

import minijax
import minijax.numpy

pytestmark = pytest.mark.both_ends


def rows(text):
    """Expressions, split at " | " and at line ends; {a|b} stands for each of these in turn."""
    found = []
    for row in re.split(r"\n|\s\|\s", text):
        parts = re.split(r"\{\{(.*?)\}\}", row.strip())
        choices = [[part] if i % 2 == 0 else part.split("|") for i, part in enumerate(parts)]
        found += ["".join(chosen) for chosen in itertools.product(*choices)]
    return [row for row in found if row]


def outcome(m, text, **names):
    space = {"m": m, "jnp": m.numpy, "lax": m.lax, "random": m.random, "np": np, **names}
    try:
        return "answered", _plain(m, eval(text, {**space, "datetime": datetime}))
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return kinds, str(error)


def _plain(m, tree):
    found = []
    for leaf in m.tree_util.tree_leaves(tree):
        if isinstance(leaf, m.Array):
            of_keys = m.dtypes.issubdtype(leaf.dtype, m.dtypes.prng_key)
            value = np.asarray(m.random.key_data(leaf) if of_keys else leaf)
            found.append((str(m.typeof(leaf)), value.tolist()))
        else:
            found.append(re.sub(r"0x\w+|minijax|jax", "", repr(leaf)))
    return found


def check(text, **names):
    """`names`: functions of the library that make values which the expression uses."""
    made = [{name: make(m) for name, make in names.items()} for m in (minijax, jax)]
    ours, theirs = (outcome(m, text, **x) for m, x in zip((minijax, jax), made, strict=True))
    if theirs[0] == "answered":
        assert ours == theirs
    else:
        assert theirs[0][0] in ours[0], f"{ours}\nUpstream: {theirs}"


OF_KEYS = rows("""
    all() | any() | argmax() | argpartition(0) | argsort() | astype("uint32") | byteswap() | choose([0]) | clip(0, 1)
    compress([True]) | conj() | cumsum() | diagonal() | dot(1) | flat | imag | item() | max() | mean() | mT | nonzero()
    ptp() | real | repeat(2) | round() | searchsorted(1) | sort() | std() | sum() | to_device(None) | trace() | var()
    view() | __array_namespace__() | __bool__() | __format__("d") | __round__() | flatten() | ravel() | T
    reshape(-1) | take(0) | squeeze() | copy() | at[...].apply(lambda key: key)
""")  # fmt: skip


@pytest.mark.parametrize("text", OF_KEYS)
def test_members_of_keys(text):
    for shape in [(), (3,)]:
        check(f"x.{text}", x=lambda m, shape=shape: m.random.split(m.random.key(0), shape))
