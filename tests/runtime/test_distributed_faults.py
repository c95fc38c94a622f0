"""Faults of `distributed.initialize`: each an error that says what to change, before jaxlib's own,
which would end the process."""

import re
import socket
import subprocess
import sys

import jax
import pytest

import minijax
from minijax import distributed

WRONG = {
    "no port": (("127.0.0.1", 1, 0), ValueError, "'host:port'"),
    "a port that is no number": (("127.0.0.1:abc", 1, 0), ValueError, "'host:port'"),
    "a port out of range": (("127.0.0.1:99999", 1, 0), ValueError, "1 to 65535"),
    "no host": ((":1234", 1, 0), ValueError, "'host:port'"),
    "no address": (("", 1, 0), ValueError, "coordinator_address should be defined"),
    "an address that is no string": ((5, 1, 0), ValueError, "'host:port'"),
    "a negative id": (("127.0.0.1:4567", 2, -1), ValueError, "process_id=-1"),
    "an id too large": (("127.0.0.1:4567", 2, 2), ValueError, "Got process_id=2, num_processes=2"),
    "no processes": (("127.0.0.1:4567", 0, 0), ValueError, "num_processes=0"),
    "fewer than none": (("127.0.0.1:4567", -2, 0), ValueError, "num_processes=-2"),
    "a count that is text": (("127.0.0.1:4567", "1", 0), TypeError, "num_processes"),
    "an id that is a float": (("127.0.0.1:4567", 1, 0.0), TypeError, "process_id"),
    "ids that are text": (("127.0.0.1:4567", 1, 0, "a"), TypeError, "local_device_ids"),
}


@pytest.fixture(autouse=True)
def unused(monkeypatch):
    """As if no device had been used yet."""
    monkeypatch.setattr("minijax.runtime.platforms.started", lambda: False)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_place(name):
    args, error, words = WRONG[name]
    with pytest.raises(error, match=re.escape(words)):
        distributed.initialize(*args, initialization_timeout=2)
    assert not distributed.is_initialized()


@pytest.mark.parametrize(
    "args",
    [
        (None,) * 3,
        ("a:1", None),
        ("a:1", 2),
        *[("a:1", *n) for n in [(2, -1), (2, 2), (0, 0), (-2, 0), ("1", 0), (1, 0.0)]],
    ],
)
def test_wrong_place_begins_with_upstreams_sentence(args, monkeypatch):
    monkeypatch.setattr("jax._src.xla_bridge.backends_are_initialized", lambda: False)

    def told(m):
        with pytest.raises((ValueError, TypeError)) as raised:
            m.distributed.initialize(*args, initialization_timeout=1)
        return f"{raised.type.__name__}: {raised.value}"

    assert told(minijax).startswith(told(jax))


@pytest.mark.parametrize("seconds", [0, -3])
def test_wrong_timeout(seconds):
    with pytest.raises(ValueError, match="initialization_timeout"):
        distributed.initialize("127.0.0.1:4567", 1, 0, initialization_timeout=seconds)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("listens", ["127.0.0.1", "::"])
def test_port_in_use(host, listens):
    family = socket.AF_INET6 if ":" in listens else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as other:
        other.bind((listens, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(RuntimeError, match="port is in use"):
            distributed.initialize(f"{host}:{port}", 1, 0, initialization_timeout=2)
    assert not distributed.is_initialized()


@pytest.mark.parametrize("bind", ["300.1.1.1:4567", "no.such.host.invalid:4567"])
def test_address_of_no_machine(bind):
    with pytest.raises(RuntimeError, match="cannot listen"):
        distributed.initialize("127.0.0.1:4567", 1, 0, coordinator_bind_address=bind)


@pytest.mark.parametrize("address", ["no.such.host.invalid:4567", "127.0.0.1:9"])
def test_no_coordinator(address):
    with pytest.raises(TimeoutError, match="could not be reached within 1 s"):
        distributed.initialize(address, 2, 1, initialization_timeout=1)


_AGAIN = """
import socket, minijax
with socket.socket() as other:
    other.bind(("", 0))
    other.listen()
    busy = other.getsockname()[1]
    try:
        minijax.distributed.initialize(f"127.0.0.1:{busy}", 1, 0)
    except RuntimeError as error:
        assert "port is in use" in str(error), error
with socket.socket() as free:
    free.bind(("", 0))
    port = free.getsockname()[1]
minijax.distributed.initialize(f"127.0.0.1:{port}", 1, 0)
try:
    minijax.distributed.initialize(f"127.0.0.1:{port}", 1, 0)
except RuntimeError as error:
    assert "only be called once" in str(error), error
print("done", minijax.numpy.ones(3).sum())
"""


def test_another_port_after_one_in_use():
    run = subprocess.run(
        [sys.executable, "-c", _AGAIN], capture_output=True, text=True, timeout=900
    )
    assert run.stdout.strip() == "done 3.0" and run.returncode == 0, run.stderr[-2000:]
