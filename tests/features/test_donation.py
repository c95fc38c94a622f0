"""Donation pairs a buffer with a result of its type, memory and parts, or says that it does not.

Upstream pairs across kinds of memory and then ends the process for some programs; none may here.
"""

import numpy as np
import pytest

import minijax as jax
from minijax.sharding import NamedSharding
from minijax.sharding import PartitionSpec as P
from tests.cases.donations import PROGRAMS
from tests.harness.survivors import outcomes

pytestmark = pytest.mark.both_ends

# Where upstream donates memory of one kind for a result of another, does not need to, or refuses.
OTHERWISE = {
    "a constant donated": "the array is an argument of the program here, and is gone",
    "a constant deleted": "the array is an argument of the program here, and is gone",
    "a constant and an argument": "one buffer is both, and is refused",
    "grad": "nothing is told of what a gradient cannot reuse",
}
REFUSED = ("donated and not, over devices",)  # upstream's process ends


def test_donations():
    ours, theirs = (
        outcomes("donations", "minijax", PROGRAMS),
        outcomes("donations", "jax", PROGRAMS),
    )
    wrong = {}
    for name in PROGRAMS:
        mine, other = ours[name], theirs[name]
        if mine[0] == "died":
            wrong[name] = mine, other
        elif name in OTHERWISE:
            if name != "grad":
                assert mine[0] == "raised" and {"DeletedError", "ArgumentError"} & set(mine[1]), (
                    mine
                )
        elif other[0] == "raised":
            same = mine[0] == "raised" and other[1][0] in mine[1]
            if not same and not name.startswith("twice: "):  # not donated here: nothing to refuse
                wrong[name] = mine, other
        elif other[0] == "died":
            if mine[0] == "raised" and name not in REFUSED:
                wrong[name] = mine, other
        elif mine != other:
            told = any(part in name for part in ("unpinned_host", "twice: ", "unstated: "))
            if mine[0] != other[0] or not (told and mine[1]):
                wrong[name] = mine, other
    assert not wrong, "\n".join(f"{name}: {pair}" for name, pair in wrong.items())


PLACES = {
    "none": lambda: None,
    "device": lambda: jax.devices()[0],
    "replicated": lambda: NamedSharding(jax.make_mesh((1,), ("x",)), P()),
    "split in one": lambda: NamedSharding(jax.make_mesh((1,), ("x",)), P("x")),
}


@pytest.mark.parametrize("there", PLACES)
@pytest.mark.parametrize("here", PLACES)
def test_what_device_put_shares_with_its_source_is_not_donated(here, there):
    source = jax.device_put(np.arange(8.0), PLACES[here]())
    moved = jax.device_put(source, PLACES[there](), donate=True)
    assert np.array_equal(moved, np.arange(8.0)) and np.array_equal(source, np.arange(8.0))
