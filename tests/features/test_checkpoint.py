"""checkpoint and its policies against upstream: values, programs, and what XLA makes of them."""

import functools
import re

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

import minijax
import minijax.ad_checkpoint
from tests.harness.differential import BOTH, assert_same

pytestmark = pytest.mark.both_ends

CASES = {}
ONE = np.float32(0.7)


def cases(**functions):
    CASES.update(functions)


def vec(n=3):
    return np.linspace(0.3, 1.7, n).astype(np.float32)


def matrix(n=3):
    return np.linspace(-1.0, 1.0, n * n).astype(np.float32).reshape(n, n)


def dot(m, x, y):
    return m.lax.dot_general(x, y, (((1,), (0,)), ((), ())))


def layers(m, x, w, n=3):
    for i in range(n):
        x = m.lax.sin(m.ad_checkpoint.checkpoint_name(dot(m, x, w), f"layer{i}"))
    return m.lax.cos(x)


def sines(m):
    return lambda x: m.lax.sin(m.lax.sin(m.lax.sin(x)))


# -- transforms -----------------------------------------------------------------------------------

TRANSFORMS = {
    "eager": lambda m, f: f(ONE),
    "jit": lambda m, f: m.jit(f)(ONE),
    "grad": lambda m, f: m.grad(f)(ONE),
    "jit grad": lambda m, f: m.jit(m.grad(f))(ONE),
    "grad jit": lambda m, f: m.grad(m.jit(f))(ONE),
    "value_and_grad": lambda m, f: m.value_and_grad(f)(ONE),
    "grad grad": lambda m, f: m.grad(m.grad(f))(ONE),
    "jit grad grad": lambda m, f: m.jit(m.grad(m.grad(f)))(ONE),
    "grad checkpoint grad": lambda m, f: m.grad(m.checkpoint(m.grad(f)))(ONE),
    "checkpoint checkpoint": lambda m, f: m.grad(m.checkpoint(m.checkpoint(f)))(ONE),
    "jvp": lambda m, f: m.jvp(f, (ONE,), (ONE,)),
    "jvp grad": lambda m, f: m.jvp(m.grad(f), (ONE,), (ONE,)),
    "grad jvp": lambda m, f: m.grad(lambda x: m.jvp(f, (x,), (x,))[1])(ONE),
    "vmap": lambda m, f: m.vmap(f)(vec()),
    "vmap grad": lambda m, f: m.vmap(m.grad(f))(vec()),
    "grad vmap": lambda m, f: m.grad(lambda x: m.numpy.sum(m.vmap(f)(x)))(vec()),
    "jit vmap grad": lambda m, f: m.jit(m.vmap(m.grad(f)))(vec()),
    "hessian": lambda m, f: m.hessian(lambda x: m.numpy.sum(f(x)))(vec()),
    "jacrev": lambda m, f: m.jacrev(f)(vec()),
    "linearize": lambda m, f: m.linearize(f, ONE)[1](ONE),
    "vjp": lambda m, f: m.vjp(f, ONE)[1](ONE),
}
UPSTREAM_REFUSES = {"grad grad", "jit grad grad", "grad checkpoint grad"}  # of offloaded values
MAKERS = {
    "plain": lambda m: m.checkpoint(sines(m)),
    "of jit": lambda m: m.checkpoint(m.jit(sines(m))),
    "no barrier": lambda m: m.checkpoint(sines(m), prevent_cse=False),
    "everything": lambda m: m.checkpoint(
        sines(m), policy=m.checkpoint_policies.everything_saveable
    ),
    "one name": lambda m: m.checkpoint(
        lambda x: m.lax.sin(m.ad_checkpoint.checkpoint_name(m.lax.sin(x), "a")),
        policy=m.checkpoint_policies.save_only_these_names("a"),
    ),
    "offloaded": lambda m: m.checkpoint(
        lambda x: m.lax.sin(m.ad_checkpoint.checkpoint_name(m.lax.sin(x), "a")),
        policy=m.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[],
            names_which_can_be_offloaded=["a"],
            offload_src="device",
            offload_dst="pinned_host",
        ),
    ),
}
for _maker, _make in MAKERS.items():
    for _name, _run in TRANSFORMS.items():
        if _maker == "offloaded" and _name in UPSTREAM_REFUSES:
            continue
        CASES[f"{_maker}: {_name}"] = lambda m, make=_make, run=_run: run(m, make(m))

POLICIES = {
    "none": lambda p: None,
    "nothing": lambda p: p.nothing_saveable,
    "everything": lambda p: p.everything_saveable,
    "dots": lambda p: p.dots_saveable,
    "dots without batch": lambda p: p.dots_with_no_batch_dims_saveable,
    "names": lambda p: p.save_only_these_names("layer0", "layer2"),
    "names but": lambda p: p.save_any_names_but_these("layer1"),
    "anything but": lambda p: p.save_anything_except_these_names("layer1"),
    "both": lambda p: p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("layer1")),
    "offload dots": lambda p: p.offload_dot_with_no_batch_dims("device", "pinned_host"),
    "offload names": lambda p: p.save_and_offload_only_these_names(
        names_which_can_be_saved=["layer0"],
        names_which_can_be_offloaded=["layer1"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
    "own": lambda p: lambda prim, *_, **params: str(prim) == "sin",
}


def network(m, policy, inner=None, **options):
    body = functools.partial(layers, m)
    body = m.jit(body) if inner == "jit" else body
    f = m.checkpoint(body, policy=POLICIES[policy](m.checkpoint_policies), **options)
    return lambda x, w: m.numpy.sum(f(x, w))


for _policy in POLICIES:
    for _inner in (None, "jit"):
        CASES[f"network {_policy} {_inner}"] = lambda m, p=_policy, i=_inner: m.grad(
            network(m, p, i), (0, 1)
        )(matrix(), matrix())
        CASES[f"network in jit {_policy} {_inner}"] = lambda m, p=_policy, i=_inner: m.jit(
            m.grad(network(m, p, i), (0, 1))
        )(matrix(), matrix())
    CASES[f"network mapped {_policy}"] = lambda m, p=_policy: m.vmap(
        m.grad(network(m, p), (0, 1)), (0, None)
    )(np.stack([matrix()] * 2), matrix())
    if not _policy.startswith("offload"):
        CASES[f"network twice {_policy}"] = lambda m, p=_policy: m.grad(
            lambda x, w: m.numpy.sum(m.grad(network(m, p))(x, w))
        )(matrix(), matrix())


# -- arguments and errors -------------------------------------------------------------------------


def flagged(m):
    return lambda x, n: m.lax.sin(x) if n else m.lax.cos(x)


def product(m):
    return lambda x, y: m.lax.sin(x) * m.lax.sin(y)


cases(
    static=lambda m: m.grad(m.checkpoint(flagged(m), static_argnums=(1,)))(ONE, True),
    static_negative=lambda m: m.grad(m.checkpoint(flagged(m), static_argnums=-1))(ONE, False),
    static_unhashable=lambda m: m.grad(m.checkpoint(flagged(m), static_argnums=(1,)))(ONE, [1]),
    static_changes=lambda m: [
        f(ONE, n)
        for f in [m.jit(m.checkpoint(flagged(m), static_argnums=(1,)), static_argnums=1)]
        for n in (True, False, True)
    ],
    static_out_of_range=lambda m: m.checkpoint(flagged(m), static_argnums=(5,))(1.0, 2.0),
    static_by_keyword=lambda m: m.checkpoint(flagged(m), static_argnums=1)(1.0, n=True),
    not_static=lambda m: m.checkpoint(flagged(m))(1.0, True),
    control_flow=lambda m: m.grad(m.checkpoint(lambda x: x if x > 0 else -x))(1.0),
    keyword=lambda m: m.grad(m.checkpoint(product(m)))(ONE, y=ONE),
    no_function=lambda m: m.checkpoint(policy=None),
    string=lambda m: m.checkpoint(lambda x: x)("a"),
    string_result=lambda m: m.checkpoint(lambda x: "a")(1.0),
    tree=lambda m: m.grad(
        lambda d: m.checkpoint(lambda d: {"c": m.lax.sin(d["a"]) * d["b"]})(d)["c"]
    )({"a": ONE, "b": ONE}),
    integers=lambda m: m.grad(
        m.checkpoint(lambda x, n: (m.lax.sin(x), n)), has_aux=True
    )(ONE, np.int32(2)),
    nothing=lambda m: m.jit(m.checkpoint(lambda: 3.0))(),
    closes_over_argument=lambda m: m.grad(
        lambda x: m.checkpoint(lambda y: m.lax.sin(x) * y)(x)
    )(ONE),
    closes_over_batch=lambda m: m.vmap(
        lambda x: m.grad(m.checkpoint(lambda y: m.lax.sin(x) * y * y))(x)
    )(vec()),
    closes_over_array=lambda m: m.grad(
        lambda x: m.numpy.sum(m.checkpoint(lambda y: y * vec())(x))
    )(ONE),
    policy_no_function=lambda m: m.grad(m.checkpoint(sines(m), policy=3))(ONE),
    policy_string=lambda m: m.grad(m.checkpoint(sines(m), policy=lambda *a, **k: "yes"))(ONE),
    policy_none=lambda m: m.grad(m.checkpoint(sines(m), policy=lambda *a, **k: None))(ONE),
    prevent_some=lambda m: m.grad(
        m.checkpoint(product(m), prevent_cse=(True, False)), (0, 1)
    )(ONE, ONE),
    prevent_some_tree=lambda m: m.grad(
        m.checkpoint(lambda x, y: product(m)(x[0], y), prevent_cse=(True, False)), (0, 1)
    )((ONE, ONE), ONE),
    prevent_too_few=lambda m: m.checkpoint(product(m), prevent_cse=(True,))(ONE, ONE),
    prevent_some_jvp=lambda m: m.jit(
        lambda x: m.grad(lambda x: m.jvp(
            m.checkpoint(product(m), prevent_cse=(True, False)), (x, x), (x, ONE))[1])(x)
    )(ONE),
    name=lambda m: m.jit(lambda x: m.ad_checkpoint.checkpoint_name({"a": x, "b": 2}, "n"))(ONE),
    name_grad=lambda m: m.grad(lambda x: m.ad_checkpoint.checkpoint_name(m.lax.sin(x), "n"))(ONE),
    name_vmap=lambda m: m.vmap(lambda x: m.ad_checkpoint.checkpoint_name(x, "n"))(vec()),
    name_string=lambda m: m.ad_checkpoint.checkpoint_name("a", "n"),
    name_number=lambda m: m.ad_checkpoint.checkpoint_name(vec(), 3),
    names_overlap=lambda m: m.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"],
        offload_src="device", offload_dst="pinned_host",
    ),
    both_not_boolean=lambda m: m.grad(
        m.checkpoint(
            sines(m),
            policy=m.checkpoint_policies.save_from_both_policies(
                m.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
                m.checkpoint_policies.dots_saveable,
            ),
        )
    )(ONE),
)  # fmt: skip


def in_scan(m, policy, inside):
    policy = POLICIES[policy](m.checkpoint_policies)

    def step(c, w):
        return m.lax.sin(dot(m, c, w)), None

    def run(x, w):
        body = m.checkpoint(step, policy=policy, prevent_cse=False) if inside else step
        return m.numpy.sum(m.lax.scan(body, x, w)[0])

    return run if inside else m.checkpoint(run, policy=policy)


def in_cond(m, policy):
    return m.checkpoint(
        lambda x, w: m.numpy.sum(
            m.lax.cond(m.numpy.sum(x) < 0, lambda: m.lax.sin(dot(m, x, w)), lambda: m.lax.cos(x))
        ),
        policy=POLICIES[policy](m.checkpoint_policies),
    )


for _policy in ("none", "dots", "everything"):
    for _inside in (True, False):
        for _wrap in ("eager", "jit"):
            CASES[f"scan {_policy} {_inside} {_wrap}"] = lambda m, p=_policy, i=_inside, w=_wrap: (
                m.jit if w == "jit" else (lambda f: f)
            )(m.grad(in_scan(m, p, i), (0, 1)))(matrix(), np.stack([matrix()] * 4))
    CASES[f"cond {_policy}"] = lambda m, p=_policy: m.grad(in_cond(m, p), (0, 1))(
        matrix(), matrix()
    )


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    found = []
    for m in BOTH:
        try:
            found.append((CASES[name](m), None))
        except Exception as error:
            found.append((None, error))
    (theirs, their_error), (ours, our_error) = found
    if our_error is not None and their_error is None:
        raise our_error
    names = [e and type(e).__name__ for e in (our_error, their_error)]
    assert names[0] == names[1], f"{our_error!r}, {their_error!r}"
    if their_error is None:
        assert_same(ours, theirs, where=name)


def test_static_names():
    """Upstream takes `static_argnames` and does not heed them."""
    for make in (
        lambda f: minijax.checkpoint(f, static_argnames="n")(ONE, True),
        lambda f: minijax.checkpoint(f, static_argnames=("n",))(ONE, n=True),
    ):
        assert_same(make(flagged(minijax)), jax.lax.sin(ONE))


def test_concrete_is_gone():
    with pytest.raises(NotImplementedError, match="static_argnums"):
        minijax.checkpoint(lambda x: x, concrete=True)
    with pytest.raises(TypeError):
        minijax.checkpoint(3)


def test_traced_once():
    calls = [0]

    def f(x):
        calls[0] += 1
        return minijax.lax.sin(x)

    g = minijax.checkpoint(f)
    for _ in range(2):
        g(1.0)
        minijax.checkpoint(f)(1.0)
        minijax.grad(g)(1.0)
    assert calls[0] == 1
    g(np.ones(3, np.float32))
    assert calls[0] == 2


# -- programs -------------------------------------------------------------------------------------

PRINTED = {
    "call": lambda m: m.make_jaxpr(m.checkpoint(sines(m)))(ONE),
    "grad": lambda m: m.make_jaxpr(m.grad(m.checkpoint(sines(m))))(ONE),
    "no barrier": lambda m: m.make_jaxpr(m.grad(m.checkpoint(sines(m), prevent_cse=False)))(ONE),
    "jvp": lambda m: m.make_jaxpr(lambda x: m.jvp(m.checkpoint(sines(m)), (x,), (x,)))(ONE),
    "vmap": lambda m: m.make_jaxpr(m.vmap(m.checkpoint(sines(m))))(vec()),
    "of jit": lambda m: m.make_jaxpr(m.grad(m.checkpoint(m.jit(sines(m)))))(ONE),
    "nested": lambda m: m.make_jaxpr(
        m.grad(m.checkpoint(lambda x: m.lax.sin(m.checkpoint(sines(m))(x))))
    )(ONE),
    "some": lambda m: m.make_jaxpr(
        m.grad(m.checkpoint(product(m), prevent_cse=(True, False)), (0, 1))
    )(ONE, ONE),
    "closure": lambda m: m.make_jaxpr(
        m.grad(lambda x: m.checkpoint(lambda y: m.lax.sin(x) * y)(x))
    )(ONE),
    "everything": lambda m: m.make_jaxpr(
        m.grad(m.checkpoint(sines(m), policy=m.checkpoint_policies.everything_saveable))
    )(ONE),
    "array": lambda m: m.make_jaxpr(m.checkpoint(lambda x: m.lax.mul(x, vec())))(vec()),
    "name": lambda m: m.make_jaxpr(lambda x: m.ad_checkpoint.checkpoint_name((x, 2.0), "n"))(ONE),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed(name):
    ours, theirs = (str(PRINTED[name](m)) for m in (minijax, jax))
    assert ours == theirs


def operations(m, f, *args):
    """How often each StableHLO operation stands in the lowered gradient."""
    text = m.jit(m.grad(f, (0, 1))).lower(*args).as_text()
    names = re.findall(r"stablehlo\.(dot_general|sine|cosine|optimization_barrier)", text)
    return {name: names.count(name) for name in sorted(set(names))}


def _line(eqn):
    return minijax.core.source.Source(*eqn.source).position[0]


@pytest.mark.parametrize("transform", [lambda f: f, minijax.vmap, minijax.jit, minijax.checkpoint])
@pytest.mark.parametrize("scanned", [False, True])
def test_recomputed_operations_have_the_lines_of_their_operations(transform, scanned):
    @minijax.checkpoint
    def block(x):
        y = x * 2.0
        z = minijax.numpy.sqrt(y)
        return minijax.numpy.sin(z) * z

    def loss(x):
        if scanned:
            x = minijax.lax.scan(lambda c, _: (block(c), None), x, None, length=2)[0]
        return minijax.numpy.sum(block(x))

    first = block.__wrapped__.__code__.co_firstlineno + 1
    wanted = {"sqrt": first + 2, "div": first + 2, "sin": first + 3, "cos": first + 3}
    found = {}

    def walk(jaxpr, within):
        for eqn in jaxpr.eqns:
            if within and eqn.primitive.name in wanted:
                found.setdefault(eqn.primitive.name, set()).add(_line(eqn))
            for inner in minijax.core.jaxpr.jaxprs_in_params(eqn.params):
                walk(inner, within or eqn.primitive.name == "remat2")

    gradient = minijax.grad(lambda x: minijax.numpy.sum(transform(loss)(x)))
    walk(minijax.make_jaxpr(gradient)(vec()).jaxpr, False)
    assert found == {name: {line} for name, line in wanted.items()}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("inner", [None, "jit"])
def test_recomputed_operations(policy, inner):
    """The policy decides which operations stand twice in the program of a gradient."""
    ours, theirs = (
        operations(m, network(m, policy, inner), matrix(), matrix()) for m in (minijax, jax)
    )
    assert ours == theirs


@pytest.mark.parametrize("policy", ["none", "everything", "dots", "names"])
def test_cost_in_xla(policy):
    """FLOPs and temporary memory of the compiled gradient are upstream's, or less."""

    def cost(m):
        def deep(x, w):
            f = m.checkpoint(
                functools.partial(layers, m, n=8),
                policy=POLICIES[policy](m.checkpoint_policies),
            )
            return m.numpy.sum(f(f(f(x, w), w), w))

        compiled = m.jit(m.grad(deep, (0, 1))).lower(matrix(64), matrix(64)).compile()
        analysis = compiled.cost_analysis()
        analysis = analysis[0] if isinstance(analysis, list) else analysis
        return analysis["flops"], compiled.memory_analysis().temp_size_in_bytes

    ours, theirs = cost(minijax), cost(jax)
    assert ours[0] <= 1.02 * theirs[0]
    assert ours[1] <= 1.1 * theirs[1]


def test_memory_is_saved():
    """Checkpointing takes less temporary memory and more work, where XLA heeds the barrier."""

    def cost(m, wrap):
        def deep(x, w):
            for _ in range(6):
                x = wrap(functools.partial(layers, m, n=6))(x, w)
            return m.numpy.sum(x)

        compiled = m.jit(m.grad(deep)).lower(matrix(64), matrix(64)).compile()
        analysis = compiled.cost_analysis()
        analysis = analysis[0] if isinstance(analysis, list) else analysis
        return analysis["flops"], compiled.memory_analysis().temp_size_in_bytes

    ours, theirs = (
        np.array(cost(m, m.checkpoint)) / np.array(cost(m, lambda f: f)) for m in (minijax, jax)
    )
    np.testing.assert_allclose(ours, theirs, rtol=0.02)


def test_derivatives_of_offloaded():
    """Upstream refuses these."""
    for name in UPSTREAM_REFUSES:
        run = TRANSFORMS[name]
        offloaded, plain = (run(minijax, MAKERS[n](minijax)) for n in ("offloaded", "one name"))
        assert_same(offloaded, plain)


def test_offloading_on_a_gpu():
    """The program that a GPU is given moves the saved value to the host and back."""

    def moves(m):
        lowered = m.jit(m.grad(MAKERS["offloaded"](m))).trace(ONE)
        text = lowered.lower(lowering_platforms=("cuda",)).as_text()
        return re.findall(r"annotate_device_placement.*_xla_buffer_placement = \"(\w+)\"", text)

    assert moves(minijax) == moves(jax) == ["pinned_host", "device"]


# -- policies -------------------------------------------------------------------------------------

QUESTIONS = {
    "dot": ("dot_general", {"dimension_numbers": (((1,), (0,)), ((), ()))}),
    "batched dot": ("dot_general", {"dimension_numbers": (((1,), (0,)), ((0,), (0,)))}),
    "convolution": ("conv_general_dilated", {}),
    "sin": ("sin", {}),
    "layer0": ("name", {"name": "layer0"}),
    "layer1": ("name", {"name": "layer1"}),
}


# Upstream's `save_anything_except_these_names` saves these names, too.
@pytest.mark.parametrize("policy", sorted(POLICIES.keys() - {"none", "own", "anything but"}))
@pytest.mark.parametrize("question", QUESTIONS)
def test_decisions(policy, question):
    def ask(m):
        name, params = QUESTIONS[question]
        policies = m.ad_checkpoint
        prim = {
            "dot_general": m.lax.dot_general_p,
            "conv_general_dilated": m.lax.conv_general_dilated_p,
            "sin": m.lax.sin_p,
        }.get(name)
        if prim is None:
            prim = m.make_jaxpr(lambda x: m.ad_checkpoint.checkpoint_name(x, "a"))(1.0).eqns[0]
            prim = prim.primitive
        found = POLICIES[policy](m.checkpoint_policies)(prim, **params)
        if isinstance(found, bool):
            return found
        if found is policies.Saveable:
            return "saveable"
        return "recompute" if found is policies.Recompute else tuple(found.__dict__.values()) if (
            hasattr(found, "__dict__")
        ) else tuple(found)  # fmt: skip

    assert ask(minijax) == ask(jax)


def test_policy_names():
    ours = set(vars(minijax.checkpoint_policies))
    assert ours >= set(vars(jax.checkpoint_policies))


# -- saved residuals ------------------------------------------------------------------------------


def saved_lines(m, f, capsys):
    m.ad_checkpoint.print_saved_residuals(f, matrix(), matrix())
    lines = capsys.readouterr().out.strip().splitlines()
    return sorted(re.sub(r" from .*[/\\].*$", "", line) for line in lines)


@pytest.mark.parametrize("policy", [p for p in POLICIES if not p.startswith("offload")])
def test_saved_residuals(policy, capsys):
    """Types and origins of what is saved; where in the file, each library says in its way."""
    ours, theirs = (saved_lines(m, network(m, policy), capsys) for m in (minijax, jax))
    assert [line.replace("of neg", "of sin") for line in ours] == theirs


def test_saved_residuals_say_where(capsys):
    minijax.ad_checkpoint.print_saved_residuals(sines(minijax), ONE)
    out = capsys.readouterr().out
    assert out.count("output of cos from ") == 3
    assert __file__ in out


OFFLOADED = {
    "names": (
        lambda p: p.save_and_offload_only_these_names(
            names_which_can_be_saved=["layer0"], names_which_can_be_offloaded=["layer1"],
            offload_src="device", offload_dst="pinned_host",
        ),
        1,
    ),
    "dots": (lambda p: p.offload_dot_with_no_batch_dims("device", "pinned_host"), 3),
    "to the device": (lambda p: p.offload_dot_with_no_batch_dims("device", "device"), 0),
}  # fmt: skip


@pytest.mark.parametrize("how", ["eager", "jit", "scan"])
@pytest.mark.parametrize("name", OFFLOADED)
def test_offloaded_values_lie_on_the_host(name, how):
    """By their types, and by the arrays that a backward pass keeps."""
    make, count = OFFLOADED[name]

    def found(m):
        f = m.checkpoint(lambda x, w: layers(m, x, w).sum(), policy=make(m.checkpoint_policies))
        if how == "scan":
            body = lambda w: lambda x, _: (f(x, w) * x, None)
            run = lambda x, w: m.lax.scan(body(w), x, None, length=2)[0].sum()
        else:
            run = f
        given = m.numpy.asarray(matrix()), m.numpy.asarray(matrix() / 2)
        pullback = lambda x, w: m.vjp(run, x, w)[1]
        kept = (m.jit(pullback) if how == "jit" else pullback)(*given)
        leaves = m.tree.leaves(kept)
        on_host = [x for x in leaves if x.sharding.memory_kind == "pinned_host"]
        assert len(on_host) == sum("<host>" in str(m.typeof(x)) for x in leaves)
        return len(on_host), kept(np.float32(1))

    ours, theirs = found(minijax), found(jax)
    assert ours[0] == theirs[0] == count
    assert_same(ours[1], theirs[1], size=10.0)


def test_what_runs_again_is_in_a_scope_of_its_own():
    def scopes(m):
        def layer(x):
            with m.named_scope("layer"):
                return m.numpy.sin(x) * 2

        def loss(x):
            return m.checkpoint(layer)(x).sum()

        text = m.jit(m.grad(loss)).lower(np.ones(3, np.float32)).as_text(debug_info=True)
        found = re.findall(r'loc\("jit\(loss\)/([^"]*layer[^"]*)"', text)
        return {name.replace("jvp(jvp())", "jvp()") for name in found}

    assert scopes(minijax) == scopes(jax)
    assert any("rematted_computation/layer" in name for name in scopes(minijax))
