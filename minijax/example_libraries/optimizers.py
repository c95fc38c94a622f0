"""`minijax.example_libraries.optimizers`: a few optimizers, each a triple of functions.

`init_fn(params)` makes a state, `update_fn(step, grads, state)` the next one, `params_fn(state)`
reads the parameters. Parameters are trees of arrays; an optimizer is written for one array, and
`optimizer` takes it to trees. `step_size` is a number or a schedule, a function of the step. New
programs will want a library made for the purpose.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax import numpy as jnp
from minijax import tree_util
from minijax.core.array import Array
from minijax.errors import check_arguments_of
from minijax.tracebacks import public

__all__ = [
    "Array", "JoinPoint", "Optimizer", "OptimizerState", "Schedule", "adagrad", "adam", "adamax",
    "clip_grads", "constant", "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule",
    "momentum", "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant",
    "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip

Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """The three functions of an optimizer."""

    init_fn: Callable
    update_fn: Callable
    params_fn: Callable


class OptimizerState(NamedTuple):
    """The state of an optimizer: for each parameter a flat state, and how to read it."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda trees, packed: OptimizerState(packed[0], *trees),
)


class JoinPoint:
    """A leaf of one tree that holds another: `subtree`."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self):
        yield self.subtree


def _packed(tree_def: Any, states: Sequence[Any]) -> OptimizerState:
    pairs = [tree_util.tree_flatten(state) for state in states]
    return OptimizerState(
        tuple([leaves for leaves, _ in pairs]), tree_def, tuple([tree for _, tree in pairs])
    )


def _states(state: OptimizerState) -> list[Any]:
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree.unflatten(leaves) for tree, leaves in pairs]


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The tree of parameters with the state of each in its place, in a `JoinPoint`."""
    return opt_state.tree_def.unflatten(map(JoinPoint, _states(opt_state)))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`."""
    points, tree_def = tree_util.tree_flatten(marked_pytree)
    if not all(isinstance(point, JoinPoint) for point in points):
        raise AssertionError("every leaf of the tree must be a JoinPoint")
    return _packed(tree_def, [point.subtree for point in points])


def optimizer(opt_maker: Callable[..., tuple]) -> Callable[..., Optimizer]:
    """Decorator: a maker of `(init, update, get_params)` for one array becomes one for trees.

    TypeError if gradients do not have the structure of the parameters, or if an update changes the
    structure of the state.
    """

    @functools.wraps(opt_maker)
    def make(*args, **kwargs):
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_fn(params):
            leaves, tree_def = tree_util.tree_flatten(params)
            return _packed(tree_def, [init(x) for x in leaves])

        def update_fn(step, grads, opt_state):
            leaves, tree = tree_util.tree_flatten(grads)
            if tree != opt_state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the "
                    "parameter tree structure with which it was initialized: parameter tree "
                    f"{opt_state.tree_def} and grad tree {tree}."
                )
            states = _states(opt_state)
            new = _packed(tree, [update(step, g, s) for g, s in zip(leaves, states, strict=True)])
            for old_tree, new_tree in zip(opt_state.subtree_defs, new.subtree_defs, strict=True):
                if old_tree != new_tree:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match "
                        f"its input structure: input {old_tree} and output {new_tree}."
                    )
            return new

        def params_fn(opt_state):
            return opt_state.tree_def.unflatten([get_params(s) for s in _states(opt_state)])

        return Optimizer(init_fn, update_fn, params_fn)

    return make


# -- schedules ------------------------------------------------------------------------------------


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A function of the step: itself, or one that always gives a number. TypeError for arrays."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


def constant(step_size: Any) -> Schedule:
    """Always `step_size`."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Times `decay_rate` for every `decay_steps` steps."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Divided by `1 + decay_rate * i / decay_steps`, rounded down to whole periods if asked for."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0
) -> Schedule:
    """Decay from one step size to the other in `decay_steps` steps, as a power of the time that is
    left.
    """

    def schedule(i):
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """The value whose interval between boundaries the step is in. ValueError if counts do not fit."""
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if len(boundaries) != len(values) - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


# -- trees of gradients ---------------------------------------------------------------------------


def l2_norm(tree: Any) -> Array:
    """The Euclidean norm of all values of a tree together."""
    return jnp.sqrt(sum([jnp.vdot(x, x) for x in tree_util.tree_leaves(tree)]))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Scale a tree down to norm `max_norm` if it is longer."""
    norm = l2_norm(grad_tree)
    clip = lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm))
    return tree_util.tree_map(clip, grad_tree)


# -- the optimizers -------------------------------------------------------------------------------


def _with_slots(count: int, update: Callable) -> tuple:
    """An optimizer whose state is the parameter and `count` arrays like it, zeros at first."""

    def init(x):
        return (x, *[jnp.zeros_like(x) for _ in range(count)])

    return init, lambda i, g, state: update(i, g, *state), lambda state: state[0]


@optimizer
def sgd(step_size: Any) -> tuple:
    """Stochastic gradient descent."""
    size = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - size(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: float) -> tuple:
    """Gradient descent with momentum. Source: Polyak 1964."""
    size = make_schedule(step_size)

    def update(i, g, x, velocity):
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return _with_slots(1, update)


@optimizer
def nesterov(step_size: Any, mass: float) -> tuple:
    """Gradient descent with Nesterov's momentum. Source: Sutskever et al. 2013."""
    size = make_schedule(step_size)

    def update(i, g, x, velocity):
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return _with_slots(1, update)


def _scaled(g: Any, sums: Any) -> Any:
    """A gradient over the root of its sum of squares; 0 where that is 0."""
    return g * jnp.where(sums > 0, 1.0 / jnp.sqrt(jnp.where(sums > 0, sums, 1)), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> tuple:
    """Adagrad, with an average of its steps. Source: Duchi, Hazan & Singer 2011."""
    size = make_schedule(step_size)

    def update(i, g, x, squares, mean):
        squares = squares + jnp.square(g)
        mean = (1.0 - momentum) * _scaled(g, squares) + momentum * mean
        return x - size(i) * mean, squares, mean

    return _with_slots(2, update)


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> tuple:
    """RMSProp. Source: Tieleman & Hinton 2012."""
    size = make_schedule(step_size)

    def update(i, g, x, squares):
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        return x - size(i) * g / jnp.sqrt(squares + eps), squares

    return _with_slots(1, update)


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> tuple:
    """RMSProp with momentum."""
    size = make_schedule(step_size)

    def update(i, g, x, squares, velocity):
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + size(i) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _with_slots(2, update)


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> tuple:
    """Adam. Source: Kingma & Ba 2015, algorithm 1."""
    size = make_schedule(step_size)

    def update(i, g, x, m, v):
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        m_hat = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        v_hat = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - size(i) * m_hat / (jnp.sqrt(v_hat) + eps), m, v

    return _with_slots(2, update)


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> tuple:
    """AdaMax: Adam with the largest gradient in place of the mean square. Source: algorithm 2 there."""
    size = make_schedule(step_size)

    def update(i, g, x, m, u):
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        rate = size(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - rate * m / (u + eps), m, u

    return _with_slots(2, update)


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> tuple:
    """SM3: like Adagrad, with a sum kept for each index of each axis. A number is a vector of one.

    Source: Anil, Gupta, Koren & Singer 2019, algorithm SM3-II.
    """
    size = make_schedule(step_size)

    def init(x):
        shape = x.shape
        x = jnp.atleast_1d(x)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape], shape

    def update(i, g, state):
        x, mean, sums, shape = state
        g = jnp.atleast_1d(g)
        axes = range(x.ndim)
        spread = [
            jnp.expand_dims(s, [other for other in axes if other != axis])
            for axis, s in zip(axes, sums, strict=True)
        ]
        squares = functools.reduce(jnp.minimum, spread) + jnp.square(g)
        mean = (1.0 - momentum) * _scaled(g, squares) + momentum * mean
        sums = [squares.max(tuple([a for a in axes if a != axis])) for axis in axes]
        return x - size(i) * mean, mean, sums, shape

    return init, update, lambda state: state[0].reshape(state[3])


check_arguments_of(globals())
__dir__ = public(__name__)
