"""Programs as users write them: NaN, silent faults and repeated tracing are told with their line."""

import traceback

import pytest

import minijax as jax
from minijax import explain
from tests.cases import faulty_programs
from tests.cases.faulty_programs import FAULTS, NANS, RETRACED, line_of

FILE = faulty_programs.__file__


_INFINITIES = {  # by name: the text of the line that made an infinity of which the NaN came
    "softmax_without_the_maximum": "e = jnp.exp(x)",
    "distances_of_all_pairs": "distance = jnp.sqrt(squares)",
    "potential_with_a_cutoff": "inverse = 1.0 / r",
}
_WRITTEN = {  # what is to be written for a masked `where`
    "entropy_of_a_policy": (
        "safe = jnp.where(p > 0, p, 1.0); jnp.where(p > 0, -safe * jnp.log(safe), 0.0)"
    ),
    "potential_with_a_cutoff": (
        "safe = jnp.where(r < 0.1, 1.0, r), and repulsion computed from safe instead of r"
    ),
    "cardinal_sine_in_a_layer": (
        "safe = jnp.where(x == 0, 1.0, x); jnp.where(x == 0, 1.0, jnp.sin(safe) / safe)"
    ),
    "huber_loss_by_root": (
        "safe = jnp.where(jnp.abs(error) < 1, 1.0, error), and large computed from safe instead of "
        "error"
    ),
    "root_of_large_values": (
        "safe = jnp.where(jnp.abs(x) > 1e-06, x, 1.0); "
        "jnp.where(jnp.abs(x) > 1e-06, jnp.sqrt(jnp.abs(safe)), 0.0)"
    ),
}


@pytest.mark.parametrize("name", NANS)
def test_the_line_of_the_first_nan(name):
    f, backward, masked = NANS[name]
    with pytest.raises(FloatingPointError, match="the first NaN arose at") as caught:
        explain.nan(f)()
    error, said = caught.value, str(caught.value)
    assert error.line == (FILE, line_of(f)), said
    assert (error.backward, error.masked) == (backward, masked), said
    _, told, where = said.partition("inf was made at ")
    assert where.split("\n")[1].strip() == _INFINITIES[name] if name in _INFINITIES else not told
    assert ("Give that one a harmless operand first:" in said) == masked
    assert not masked or said.split("\n")[-1].strip() == _WRITTEN[name]


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types:FutureWarning")
def test_silent_faults_are_errors_with_their_line(name):
    f, kind = FAULTS[name]
    with jax.strict(), pytest.raises(kind) as caught:
        f()
    error = caught.value
    frames = [x.lineno for x in traceback.extract_tb(error.__traceback__) if x.filename == FILE]
    if kind is ValueError:  # in upstream's words, raised where the dtype is asked for
        assert frames[-1] == line_of(f)
    else:
        assert f"{FILE}:{line_of(f)}" in str(error)


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.filterwarnings("ignore")
def test_they_are_silent_otherwise(name):
    FAULTS[name][0]()


@pytest.mark.parametrize("name", RETRACED)
def test_the_call_that_traces_again(name):
    f, cause = RETRACED[name]
    before = {record.name: len(record.changes) for record in explain.recompiles().records}
    f()
    place = f"{FILE}:{line_of(f)}:"
    found = [
        (change.cause, record)
        for record in explain.recompiles().records
        for change, _, caller in record.changes
        if caller.startswith(place)
    ]
    assert found, before
    assert {cause for cause, _ in found} == {cause}
    assert all(record.place[0] == FILE for _, record in found)
