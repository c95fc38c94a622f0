"""Several processes: jaxlib's distributed service, and how a process learns of its place.

The first process runs the service; all connect to it, and the platforms that are started afterwards
know of every process's devices.
"""

from __future__ import annotations

import atexit
import errno
import operator
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.config import local
from minijax.runtime import platforms, plugins
from minijax.runtime.versions import _jax

__all__ = ["Place", "initialize", "is_initialized", "shutdown", "state"]


class Place(NamedTuple):
    """The address of the coordinator, the number of processes, and which of them this one is."""

    coordinator_address: str | None
    num_processes: int | None
    process_id: int | None
    local_device_ids: Sequence[int] | None = None


class _State:
    """The state of the distributed runtime in this process."""

    def __init__(self):
        self.client: Any = None
        self.service: Any = None
        self.process_id = 0
        self.num_processes = 1
        self.coordinator_address: str | None = None
        self.visible_devices: Sequence[int] | None = None


state = _State()
_lock = threading.Lock()

# -- finding the place ------------------------------------------------------------------------------


def _from_variables() -> Place | None:
    """JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES, JAX_PROCESS_ID."""
    read = os.environ.get
    if not (read("JAX_COORDINATOR_ADDRESS") or read("JAX_NUM_PROCESSES") or read("JAX_PROCESS_ID")):
        return None
    count, number = read("JAX_NUM_PROCESSES"), read("JAX_PROCESS_ID")
    return Place(
        read("JAX_COORDINATOR_ADDRESS"),
        None if count is None else int(count),
        None if number is None else int(number),
    )


def _from_slurm() -> Place | None:
    read = os.environ.get
    if read("SLURM_JOB_ID") is None or read("SLURM_PROCID") is None:
        return None
    # The port is of the job: two jobs on one machine do not meet.
    port = int(read("SLURM_JOB_ID", "0")) % 4096 + (65535 - 4096)
    nodes = read("SLURM_STEP_NODELIST") or read("SLURM_NODELIST") or "localhost"
    local_id = read("SLURM_LOCALID")
    return Place(
        f"{_first_node(nodes)}:{port}",
        int(read("SLURM_NTASKS", "1")),
        int(read("SLURM_PROCID", "0")),
        None if local_id is None else [int(local_id)],
    )


def _first_node(nodes: str) -> str:
    """The first of Slurm's list: "node[01-03,07],x" begins with "node01"."""
    found = re.match(r"([^,\[]*)(?:\[([^\],-]*))?", nodes)
    return (found[1] + (found[2] or "")) if found else nodes


def _from_open_mpi() -> Place | None:
    read = os.environ.get
    uri = read("OMPI_MCA_orte_hnp_uri")
    if uri is None or read("OMPI_COMM_WORLD_RANK") is None:
        return None
    job, _, rest = uri.partition(".")
    address = re.search(r"tcp://(\[[^\]]*\]|[^,:]*)", rest)
    port = int(job) % 4096 + (65535 - 4096) if job.isdigit() else 61000
    return Place(
        f"{address[1] if address else 'localhost'}:{port}",
        int(read("OMPI_COMM_WORLD_SIZE", "1")),
        int(read("OMPI_COMM_WORLD_RANK", "0")),
        [int(read("OMPI_COMM_WORLD_LOCAL_RANK", "0"))],
    )


_CLUSTERS: dict[str, Callable[[], Place | None]] = {
    "env": _from_variables,
    "slurm": _from_slurm,
    "ompi": _from_open_mpi,
}


def _detected(method: str | None) -> Place:
    if method == "deactivate":
        return Place(None, None, None)
    if method is not None:
        if method not in _CLUSTERS:
            raise ValueError(
                f"cluster_detection_method={method!r} is not known: it is one of "
                f"{[*_CLUSTERS, 'deactivate']}."
            )
        return _CLUSTERS[method]() or Place(None, None, None)
    for find in _CLUSTERS.values():
        found = find()
        if found is not None:
            return found
    return Place(None, None, None)


# -- joining and leaving -----------------------------------------------------------------------------


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Join the processes of a distributed program; call it before anything that uses devices.

    - `coordinator_address`: "host:port" of process 0, the same in every process
    - `num_processes`, `process_id`: how many there are, and which this is; found from JAX_*
      variables, Slurm or Open MPI where they are not given
    - `initialization_timeout`, `heartbeat_timeout_seconds`, `shutdown_timeout_seconds`: how long to
      wait for the others, in seconds

    RuntimeError if it was called before, devices were used already, or the coordinator's port is in
    use; ValueError if the place of the process is not known or has no meaning; a timeout that names the address if the coordinator is not there.
    """
    with _lock:
        if state.client is None and platforms.started():
            raise RuntimeError(
                "jax.distributed.initialize() must be called before any JAX calls that might "
                "initialise the XLA backend. This includes any computation, but also calls to "
                "jax.devices, jax.device_put, and others."
            )
        found = _detected(cluster_detection_method)
        address = coordinator_address or found.coordinator_address
        count = found.num_processes if num_processes is None else num_processes
        number = found.process_id if process_id is None else process_id
        for name, value, told in (
            ("coordinator_address", address, "coordinator_address should be defined."),
            ("num_processes", count, "Number of processes must be defined."),
            ("process_id", number, "The process id of the current process must be defined."),
        ):
            if value is None:
                raise ValueError(
                    f"{told} Pass {name} to distributed.initialize, or set JAX_{name.upper()}."
                )
        if state.client is not None:
            raise RuntimeError("distributed.initialize should only be called once.")
        count, number = _as_int("num_processes", count), _as_int("process_id", number)
        for name, value in (
            ("initialization_timeout", initialization_timeout),
            ("heartbeat_timeout_seconds", heartbeat_timeout_seconds),
            ("shutdown_timeout_seconds", shutdown_timeout_seconds),
        ):
            if _as_int(name, value) <= 0:
                raise ValueError(f"{name}={value} must be a positive number of seconds.")
        if not 0 <= number < count:
            raise ValueError(
                "process_id and num_processes must be nonnegative, with process_id < num_processes. "
                f"Got process_id={number}, num_processes={count}."
            )
        _, port = _host_and_port("coordinator_address", address)
        ids = [local_device_ids] if isinstance(local_device_ids, int) else local_device_ids
        if ids is not None:
            ids = [_as_int("local_device_ids", n) for n in ids]
        if number == 0:
            bind = coordinator_bind_address or f"[::]:{port}"
            _check_free(bind)
            state.service = _jax.get_distributed_runtime_service(
                bind, count, heartbeat_timeout=heartbeat_timeout_seconds,
                shutdown_timeout=shutdown_timeout_seconds,
            )  # fmt: skip
        else:
            _wait_for(address, initialization_timeout)
        client = _jax.get_distributed_runtime_client(
            address, number, init_timeout=_LONG,
            heartbeat_timeout=heartbeat_timeout_seconds, shutdown_timeout=shutdown_timeout_seconds,
            use_compression=True,
        )  # fmt: skip
        _join(client, number, count, address, initialization_timeout)
        state.client, state.process_id, state.num_processes = client, number, count
        state.coordinator_address = address
        state.visible_devices = found.local_device_ids if ids is None else ids
        platforms.client_options.update(_cpu_options(client, number, count))
        plugins.joined.client, plugins.joined.visible = client, state.visible_devices
        plugins.joined.options = {"node_id": number, "num_nodes": count}
        atexit.register(shutdown)


def _as_int(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        kinds = {"num_processes": "a positive int", "process_id": "a nonnegative int"}
        raise TypeError(
            f"{name} must be {kinds.get(name, 'an int')}. Got {name}={value} of type {type(value)}."
        ) from None


def _host_and_port(name: str, address: Any) -> tuple[str, int]:
    """The parts of "host:port". ValueError for anything else."""
    host, found, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not (found and host and port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError(
            f"{name}={address!r} must be a string 'host:port', with a port from 1 to 65535, such as "
            "'10.0.0.1:1234'."
        )
    return host.strip("[]"), int(port)


def _check_free(address: str) -> None:
    """RuntimeError if the service could not listen there: jaxlib would end the process."""
    import socket  # here, as below: it takes 2.9 ms, of every start if above

    host, port = _host_and_port("coordinator_bind_address", address)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, port))
    except OSError as error:
        if host == "::" and error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            return _check_free(f"0.0.0.0:{port}")  # a machine without IPv6
        raise RuntimeError(
            f"The coordinator cannot listen at {address}: {error}. If the port is in use, by another "
            "program or by an earlier run that has not ended, give all processes another one in "
            "coordinator_address."
        ) from None


_LONG = 7 * 24 * 3600  # jaxlib ends the process when its own time is up: ours is to be up before


def _join(client: Any, number: int, count: int, address: str, seconds: float) -> None:
    """Wait for the others. TimeoutError if they do not come in time, RuntimeError if refused."""
    failed: list[Exception] = []

    def connect():
        try:
            client.connect()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(seconds)
    if not (failed or thread.is_alive()):
        return
    waited = f"within {seconds} s: {failed[0] if failed else 'they have not come'}"
    if not failed:
        _abandoned.append((client, state.service))
    state.service = None
    raise (RuntimeError if failed else TimeoutError)(
        f"Process {number} of {count} could not join the others at {address} {waited}. Are all "
        "processes started, with the same coordinator_address and num_processes?"
    )


_abandoned: list[Any] = []  # what a thread still waits with


def _wait_for(address: str, seconds: float) -> None:
    """TimeoutError that names the address if nothing listens there in time."""
    import socket

    where = _host_and_port("coordinator_address", address)
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(where, timeout=1.0).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"The coordinator at {address} could not be reached within {seconds} s: "
                    f"{error}. Is process 0 running there, and the port open?"
                ) from None
            time.sleep(0.2)


def _cpu_options(client: Any, number: int, count: int) -> dict[str, Any]:
    kind = local.context.settings.cpu_collectives_implementation
    collectives = None
    if kind == "gloo":
        collectives = _jax.make_gloo_tcp_collectives(distributed_client=client)
    elif kind not in (None, "none"):
        raise ValueError(
            f"cpu_collectives_implementation={kind!r} is not offered here: use 'gloo' or 'none'."
        )
    return {
        "distributed_client": client, "node_id": number, "num_nodes": count,
        "collectives": collectives,
    }  # fmt: skip


def is_initialized() -> bool:
    """Whether this process has joined others."""
    return state.client is not None


def shutdown() -> None:
    """Leave: wait for the others, and end the service in the process that runs it."""
    with _lock:
        client, service = state.client, state.service
        state.client = state.service = None
        if client is not None:
            client.shutdown()
        if service is not None:
            service.shutdown()
