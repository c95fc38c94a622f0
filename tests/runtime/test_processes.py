"""Several real processes over loopback: programs of `tests/harness/processes.py`, and faults."""

import socket
import subprocess
import sys

import pytest

import minijax

pytestmark = pytest.mark.both_ends


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(name, count, timeout=900):
    port = free_port()
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.harness.processes", name, str(count), str(number), str(port)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for number in range(count)
    ]  # fmt: skip
    outputs = []
    try:
        for process in started:
            outputs.append(process.communicate(timeout=timeout)[0])
    finally:
        for process in started:
            process.kill()
    return [process.returncode for process in started], outputs


@pytest.mark.parametrize("count", [2, 4])
def test_several_processes(count):
    codes, outputs = run("training,resharding,collectives,helpers,checkpoint,many_steps", count)
    assert codes == [0] * count, "\n".join(outputs)[-4000:]


def test_different_programs_are_reported():
    codes, outputs = run("mismatched", 2)
    assert codes == [0, 0], "\n".join(outputs)[-4000:]


def test_the_others_end_when_one_is_killed():
    codes, outputs = run("killed", 2)
    assert codes[1] == 17
    assert codes[0] != 0, outputs[0]


def call(code, timeout=300):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout
    )


def test_a_late_process_and_those_that_waited_are_told():
    codes, outputs = run("late", 2)
    assert 0 not in codes
    assert all("TimeoutError" in output and "127.0.0.1" in output for output in outputs), outputs


def test_an_absent_coordinator_is_named():
    port = free_port()
    result = call(
        "import minijax\n"
        f"minijax.distributed.initialize('127.0.0.1:{port}', 2, 1, initialization_timeout=2)"
    )
    assert "TimeoutError" in result.stderr and f"127.0.0.1:{port}" in result.stderr


def test_a_late_call_is_refused():
    result = call(
        "import minijax\nminijax.devices()\nminijax.distributed.initialize('127.0.0.1:1', 1, 0)"
    )
    assert "must be called before" in result.stderr


WRONG = {
    "no address": ({"num_processes": 2, "process_id": 0}, "coordinator_address"),
    "no count": ({"coordinator_address": "localhost:1", "process_id": 0}, "num_processes"),
    "no number": ({"coordinator_address": "localhost:1", "num_processes": 2}, "process_id"),
    "number": (
        {"coordinator_address": "localhost:1", "num_processes": 2, "process_id": 5}, "process_id=5",
    ),
    "method": ({"cluster_detection_method": "nowhere"}, "nowhere"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name, monkeypatch):
    from minijax.runtime import platforms

    monkeypatch.setattr(platforms, "started", lambda: False)
    arguments, word = WRONG[name]
    with pytest.raises(ValueError, match=word):
        minijax.distributed.initialize(**arguments)


CLUSTERS = {
    "slurm": (
        {"SLURM_JOB_ID": "7", "SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1",
         "SLURM_STEP_NODELIST": "node[01-04,09]"}, ("node01:61446", 8, 3, [1]),
    ),
    "ompi": (
        {"OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
         "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0"},
        ("10.96.0.1", 4, 2, [0]),
    ),
    "env": (
        {"JAX_COORDINATOR_ADDRESS": "h:1", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"},
        ("h:1", 2, 1, None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLUSTERS)
def test_clusters_are_found(name, monkeypatch):
    from minijax.runtime import distributed

    variables, (address, *rest) = CLUSTERS[name]
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    found = distributed._detected(name)
    assert found.coordinator_address.startswith(address)
    assert list(found[1:]) == rest
