"""The table of rules is total: each cell of each primitive is a rule, or a stated reason."""

import inspect
import sys

import pytest

import minijax.lax.linalg
import minijax.random
from minijax import lax
from minijax.core.hooks import hooks
from minijax.core.primitive import NoRule, Primitive, RuleColumn, all_primitives

pytestmark = pytest.mark.both_ends

ONE_OF = {
    "shape": ("rule_shape",),
    "jvp": ("rule_jvp",),
    "transpose": ("rule_transpose",),
    "batch": ("rule_batch", "rule_batch_axis"),
    "lower": ("rule_lower",),
}


for _name in lax.__all__:  # some are imported when they are first asked for
    getattr(lax, _name)


def ours():
    """The primitives of the package, which stand in its modules: tests may have made others."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("minijax.")]
    found = {id(value) for module in modules for value in vars(module).values()}
    return {
        name: primitive
        for name, primitive in sorted(all_primitives.items(), key=str)
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


def primitive_with(**rules):
    p = Primitive("tested")
    p.shape_rule(rules.pop("shape", lambda x: x))
    p.lower(lambda b, x: b.op("stablehlo.sine", (x,), b.out))
    p.jvp(lambda primals, tangents: (p.bind(*primals), p.bind(*tangents)))
    for kind, rule in rules.items():
        getattr(p, kind)(rule)
    return p.bind


@pytest.mark.parametrize("given", [1.0, None, [], [1, 2, 3]], ids=repr)
@pytest.mark.parametrize(
    ("kind", "run"),
    [
        ("shape", lambda f: f(1.0)),
        ("jvp", lambda f: minijax.jvp(f, (1.0,), (1.0,))),
        ("batch", lambda f: minijax.vmap(f)(minijax.numpy.ones(2))),
        ("transpose", lambda f: minijax.linear_transpose(f, 1.0)(1.0)),
    ],
)
def test_results_that_a_rule_may_not_have(kind, run, given):
    f = primitive_with(**{kind: lambda *args: given})
    with pytest.raises(TypeError, match=f"The {kind} rule of 'tested' must return .*it returned"):
        run(f)


@pytest.mark.parametrize("given", [lambda x: None, lambda x: [], lambda x: [x, x]])
def test_a_lowering_rule_with_another_number_of_results(given):
    f = primitive_with(lower=lambda b, x: given(x))
    with pytest.raises(
        TypeError, match="The lower rule of 'tested' must return the values of 1 res"
    ):
        minijax.jit(f)(1.0)


def test_a_batch_rule_that_returns_all_dimensions():
    f = primitive_with(batch=lambda args, dims: (args[0], dims))
    with pytest.raises(TypeError, match="The batch rule of 'tested' must return a result and its"):
        minijax.vmap(f)(minijax.numpy.ones(2))


def test_a_shape_rule_of_several_results_that_returns_one():
    p = Primitive("tested", multiple_results=True)
    p.shape_rule(lambda x: x)
    with pytest.raises(TypeError, match="must return a list of abstract values; it returned Shap"):
        p.bind(1.0)


def test_errors_name_rules_without_a_name():
    p = Primitive("tested")

    @p.shape_rule
    def _(x, *, axis):
        return x

    with pytest.raises(TypeError, match=r"tested_shape\(\) missing 1 required keyword-only"):
        p.bind(1.0)


def test_a_rule_of_impl_may_extend_the_one_before():
    p = Primitive("tested")
    p.shape_rule(lambda x: x)
    p.lower(lambda b, x: b.op("stablehlo.sine", (x,), b.out))
    before = p.impl
    p.impl(lambda x: 2 * before(x))
    assert p.bind(1.0) == 2 * minijax.numpy.sin(1.0)


def test_the_order_of_lowering_rules_is_free():
    sine = lambda b, x: b.op("stablehlo.sine", (x,), b.out)
    cosine = lambda b, x: b.op("stablehlo.cosine", (x,), b.out)
    p, q = Primitive("tested"), Primitive("tested")
    p.lower(sine)
    p.lower_on("cuda", "rocm")(cosine)
    q.lower_on("cuda", "rocm")(cosine)
    q.lower(sine)
    for each in (p, q):
        each.shape_rule(lambda x: x)
        for platform, operation in (("cpu", "sine"), ("rocm", "cosine"), ("tpu", "sine")):
            traced = minijax.jit(each.bind).trace(1.0)
            lowered = traced.lower(lowering_platforms=(platform,))
            assert f"stablehlo.{operation}" in lowered.as_text()


def test_a_column_takes_primitives_only():
    with pytest.raises(
        TypeError, match="'tested' has rules of primitives, such as sin_p; got <func"
    ):
        RuleColumn("tested")(lax.sin)


def test_slots_are_filled_once():
    with pytest.raises(ValueError, match=r"There is no slot 'nothing': see the methods of .*Hooks"):
        hooks.fill(nothing=print)
    with pytest.raises(
        ValueError, match=r"'array_of' is filled already, by minijax\.arrays\.array"
    ):
        hooks.fill(array_of=print)
