"""`experimental.array_serialization` against upstream: files of one are read by the other."""

import importlib

import jax
import numpy as np
import pytest

import minijax

pytest.importorskip("tensorstore")
from jax.experimental.array_serialization import serialization as theirs
from jax.experimental.array_serialization import tensorstore_impl as their_impl

from minijax.experimental.array_serialization import serialization as ours
from minijax.experimental.array_serialization import tensorstore_impl as our_impl

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def _outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("ocdbt", [False, True])
@pytest.mark.parametrize("path", ["/tmp/x/", "gs://bucket/a/b", "s3://bucket/a", "a/b"])
def test_specs(path, ocdbt):
    found = [_outcome(lambda: s.get_tensorstore_spec(path, ocdbt=ocdbt)) for s in (ours, theirs)]
    assert found[0] == found[1]


ARRAYS = {
    "none": lambda j: None,
    "matrix": lambda j: j.numpy.ones((8, 2), "bfloat16"),
    "empty": lambda j: j.numpy.zeros((0, 3)),
    "scalar": lambda j: j.numpy.int8(1),
    "split": lambda j: j.device_put(
        j.numpy.ones((4, 2)),
        j.sharding.NamedSharding(j.make_mesh((1,), ("x",)), j.sharding.PartitionSpec("x")),
    ),
}


@pytest.mark.parametrize("options", [{}, {"ocdbt": True}, {"ocdbt": False, "driver": "zarr3"}])
@pytest.mark.parametrize("process", [None, 0, 3])
@pytest.mark.parametrize("path", ["/tmp/x", "gs://bucket/a/b", "s3://bucket/a", "gs://bucket", "a"])
def test_specs_of_processes_and_arrays(path, process, options):
    if path == "gs://bucket" and process is not None:
        assert _outcome(lambda: ours.get_tensorstore_spec(path, process_idx=process)) is ValueError
        return  # upstream makes a file of another name
    for name, array in ARRAYS.items():
        found = [
            _outcome(
                lambda make=make, j=j: make(path, process_idx=process, arr=array(j), **options)
            )
            for j, kinds in ((minijax, (ours, our_impl)), (jax, (theirs, their_impl)))
            for make in [kind.get_tensorstore_spec for kind in kinds]
        ]
        assert found[:2] == found[2:], name


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_files_of_specs_of_arrays(tmp_path, driver):
    for j, s, impl in ((minijax, ours, our_impl), (jax, theirs, their_impl)):
        array = j.numpy.asarray(X)
        spec = impl.get_tensorstore_spec(str(tmp_path / j.__name__ / "x"), arr=array, driver=driver)
        s.run_serialization([array], [spec])
        for j, s in ((minijax, ours), (jax, theirs)):
            (found,) = s.run_deserialization([j.numpy.ones(2).sharding], [spec])
            np.testing.assert_array_equal(found, X)


def test_each_array_has_a_spec(tmp_path):
    def outcomes(j, s):
        spec = [s.get_tensorstore_spec(str(tmp_path / j.__name__ / str(i))) for i in range(3)]
        x = j.numpy.ones(2)
        where = [x.sharding] * 2
        s.run_serialization([x, x], spec[:2])
        calls = (
            lambda: s.run_serialization([x, x], spec[:1]),
            lambda: s.run_serialization([x], spec[:2]),
            lambda: s.run_deserialization(where, spec[:1]),
            lambda: s.run_deserialization(where[:1], spec[:2]),
            lambda: s.run_deserialization(where, spec[:2], [(2,)]),
            lambda: s.run_deserialization(where, spec[:2], None, ["int8"]),
        )
        return [_outcome(call) for call in calls]

    assert outcomes(minijax, ours) == outcomes(jax, theirs) == [ValueError] * 6


@pytest.mark.parametrize(
    "spec", ["/tmp/x", "gs://b/a", {"kvstore": {"driver": "gcs"}}, {"kvstore": {"driver": "file"}}]
)
def test_remote(spec):
    assert ours.is_remote_storage(spec) == theirs.is_remote_storage(spec)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16", "complex64"])
@pytest.mark.parametrize("ocdbt", [False, True])
def test_files_of_both(tmp_path, dtype, ocdbt):
    libraries = {"ours": (minijax, ours), "theirs": (jax, theirs)}
    specs = {}
    for name, (j, s) in libraries.items():
        specs[name] = s.get_tensorstore_spec(str(tmp_path / name / "x"), ocdbt=ocdbt)
        s.run_serialization([j.numpy.asarray(X, dtype)], [specs[name]])
    for name, (j, s) in libraries.items():
        where = j.numpy.ones(2).sharding
        for spec in specs.values():
            whole, cut, other = (
                s.run_deserialization([where], [spec], shapes, kinds)[0]
                for shapes, kinds in ((None, None), ([(3, 2)], None), (None, [np.float32]))
            )
            assert isinstance(whole, j.Array), name
            wanted = np.asarray(X).astype(whole.dtype)
            np.testing.assert_array_equal(np.asarray(whole), wanted)
            padded = np.zeros((3, 2), wanted.dtype)
            padded[:2] = wanted[:, :2]
            np.testing.assert_array_equal(np.asarray(cut), padded)
            assert other.dtype == np.float32


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_arrays_are_read_in_the_layout_that_is_asked_for(tmp_path, order):
    found = []
    for j, s in ((minijax, ours), (jax, theirs)):
        layout = importlib.import_module(f"{j.__name__}.experimental.layout")
        spec = s.get_tensorstore_spec(str(tmp_path / j.__name__))
        s.run_serialization([j.numpy.asarray(X)], [spec])
        where = layout.Format(layout.Layout(order), j.numpy.ones(2).sharding)
        (read,) = s.run_deserialization([where], [spec])
        found.append((read.format.layout.major_to_minor, (read + 1).tolist()))
    assert found[0] == found[1] and found[0][0] == order


def test_manager(tmp_path):
    manager, done = ours.GlobalAsyncCheckpointManager(), []
    x = minijax.numpy.asarray(X)
    paths = [str(tmp_path / name) for name in "ab"]
    manager.serialize_with_paths([x, x + 1], paths, on_commit_callback=lambda: done.append(1))
    manager.wait_until_finished()
    assert done == [1]
    first, second = manager.deserialize_with_paths([x.sharding] * 2, paths)
    np.testing.assert_array_equal(np.asarray(second) - np.asarray(first), np.ones_like(X))
    manager.serialize_with_paths([x], paths[:1], on_commit_callback=lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        manager.wait_until_finished()
    manager.check_for_errors()
    with pytest.raises(ValueError, match="NOT_FOUND"):
        manager.deserialize_with_paths([x.sharding], [str(tmp_path / "none")])
