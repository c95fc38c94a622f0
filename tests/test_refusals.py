"""Wrong calls beside upstream: the class of the error, and the sentence that its message begins
with, its full stop included.
"""

import re

import jax
import pytest

import minijax
from tests.cases import refusals, wrong_calls

OURS, THEIRS = refusals.imported(minijax), refusals.imported(jax)
TEXTS = wrong_calls.calls()
REASONS = {name: reason for reason, names in refusals.OTHERWISE.items() for name in names}


def outcome(call, m):
    with pytest.raises(Exception) as caught:
        call(m)
    return caught.value


def sentence(error):
    """The first sentence of a message, without addresses."""
    return re.match(r".*?[.:?!](?=\s|$)|.*", plain(error).split("\n")[0]).group()


def plain(error):
    text = str(error).strip()
    if text.startswith(("minijax", "module 'minijax")):  # a module says its own name
        text = re.sub(r"\bminijax\b", "jax", text)
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    return re.sub(r"np\.int64\((-?\d+)\)", r"\1", text)


@pytest.mark.parametrize("name", refusals.CALLS)
def test_refused_as_upstream_refuses(name):
    ours, theirs = (outcome(refusals.CALLS[name], m) for m in (OURS, THEIRS))
    kinds = [kind.__name__ for kind in type(ours).__mro__]
    assert (type(theirs).__name__ in kinds) == (name not in refusals.CLASSES), repr(ours)
    agrees = name not in refusals.CLASSES and plain(ours).startswith(sentence(theirs))
    assert agrees == (name not in REASONS), f"{ours}\nUpstream: {theirs}"


@pytest.fixture(scope="module")
def names():
    return [wrong_calls.names(library) for library in (minijax, jax)]


@pytest.mark.parametrize("text", TEXTS)
def test_begins_with_upstreams_sentence(text, names):
    code = compile(text, "<call>", "eval")
    ours, theirs = (outcome(lambda known: eval(code, dict(known)), known) for known in names)
    assert type(theirs).__name__ in [kind.__name__ for kind in type(ours).__mro__], repr(ours)
    agrees = plain(ours).startswith(sentence(theirs))
    assert agrees == (TEXTS[text] is None), f"{ours}\nUpstream: {theirs}"


def test_few_messages_begin_otherwise():
    assert sum(reason is not None for reason in TEXTS.values()) < 0.1 * len(TEXTS)


def test_exceptions_are_of_the_table():
    assert {*REASONS, *refusals.CLASSES} <= set(refusals.CALLS)
    assert set(refusals.CLASSES) <= set(REASONS)
    assert len(REASONS) < 0.15 * len(refusals.CALLS)
