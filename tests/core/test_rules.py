"""The table of rules is total: each cell of each primitive is a rule, or a stated reason."""

import inspect
import sys

import pytest

import minijax.lax.linalg
import minijax.lax.ragged_exchange  # registers its primitives
import minijax.random
from minijax import lax
from minijax.core.primitive import NoRule, all_primitives

pytestmark = pytest.mark.both_ends

ONE_OF = {
    "shape": ("rule_shape",),
    "jvp": ("rule_jvp",),
    "transpose": ("rule_transpose",),
    "batch": ("rule_batch", "rule_batch_axis"),
    "lower": ("rule_lower",),
}


def ours():
    """The primitives of the package, which stand in its modules: tests may have made others."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("minijax.")]
    found = {id(value) for module in modules for value in vars(module).values()}
    return {
        name: primitive
        for name, primitive in sorted(all_primitives.items())
        if id(primitive) in found
    }


@pytest.mark.parametrize("column", ONE_OF)
def test_every_cell_is_filled(column):
    assert len(ours()) > 190 and lax.add_p.name in ours() and minijax.random is not None
    empty = [
        name
        for name, primitive in ours().items()
        if all(getattr(primitive, slot) is None for slot in ONE_OF[column])
    ]
    assert not empty, f"no {column} rule, and no reason why: {empty}"


def test_reasons_say_something():
    for name, primitive in ours().items():
        for slots in ONE_OF.values():
            for slot in slots:
                cell = getattr(primitive, slot)
                if isinstance(cell, NoRule):
                    assert len(cell.reason) > 8, (name, slot)
                    with pytest.raises(cell.error):
                        cell()


def test_primitives_that_take_a_sharding_have_a_layout():
    missing = [
        name
        for name, primitive in ours().items()
        if {"sharding", "out_sharding"} & set(inspect.signature(primitive.rule_shape).parameters)
        and primitive.rule_layout is None
    ]
    assert not missing
