"""What a user sees of an error: their own lines, and few of the library's."""

import os
import traceback

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.config import override

HOME = os.path.dirname(minijax.__file__)
X = np.ones(3, np.float32)


def wrong(x):
    return x + jnp.ones(4)


CALLS = {
    "eager": lambda: wrong(jnp.asarray(X)),
    "jit": lambda: minijax.jit(wrong)(X),
    "grad": lambda: minijax.grad(wrong)(X),
    "vmap": lambda: minijax.vmap(wrong)(np.ones((2, 3))),
    "scan": lambda: minijax.lax.scan(lambda c, x: (wrong(c), x), X, X),
    "nested": lambda: minijax.jit(minijax.vmap(minijax.grad(wrong)))(np.ones((2, 3))),
}


def frames(call):
    with pytest.raises(TypeError) as caught:
        call()
    error = caught.value
    assert error.__context__ is None
    names = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return names, error


@pytest.mark.parametrize("name", CALLS)
def test_the_user_sees_the_lines_of_the_user(name):
    names, error = frames(CALLS[name])
    assert sum(name.startswith(HOME) for name in names) <= 1
    assert names.count(__file__) >= 3
    assert "traceback_filtering" in error.__notes__[0]


def test_all_frames_are_shown_on_request():
    with override("traceback_filtering", "off"):
        names, error = frames(CALLS["nested"])
    assert len(names) > 10
    assert not hasattr(error, "__notes__")
