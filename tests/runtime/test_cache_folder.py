"""The folder of the cache of compiled programs: a user's files in it stay as they are, whatever
happens.

Each case gets a folder with a user's files, folders and links; their bytes, modes and times are
compared before and after. Most cases drive the cache in this process; a few start others.
"""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import minijax
import minijax.numpy as jnp
from minijax.config import override
from minijax.runtime import cache, executables, folders, platforms, plugins
from minijax.runtime.versions import CompileOptions

pytestmark = pytest.mark.both_ends

ROOT = Path(__file__).resolve().parents[2]
NAME = f"minijax-programs-{os.getuid()}"
HEAD = len(cache._MAGIC) + 32
A, B = "a" * 64, "b" * 64


def snapshot(folder):
    """What is in a folder besides our own: types, modes, times and bytes."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        if NAME in path.parts:
            continue
        info = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        times = None if path == folder else info.st_mtime_ns
        found[path] = (info.st_mode, info.st_uid, info.st_nlink if content else 0, times, content)
    return found


@pytest.fixture
def folder(tmp_path):
    """A folder with a user's files in it, which must not change."""
    made = tmp_path / "shared"
    made.mkdir(mode=0o755)
    made.chmod(0o755)
    for index, mode in enumerate((0o644, 0o600, 0o444, 0o755, 0o666)):
        path = made / f"user{index}"
        path.write_bytes(bytes([index]) * 5000)
        path.chmod(mode)
        os.utime(path, (index + 1, index + 1))
    (made / "jit_f-0123-cache").write_bytes(b"of upstream" * 500)
    (made / "jit_f-0123-atime").write_bytes(b"8 bytes.")
    (made / ".new-mine").write_bytes(b"in the making, by another program")
    (made / f"{A}.program").write_bytes(b"looks like ours")
    (made / "sub").mkdir(mode=0o750)
    (made / "sub" / "deep").write_bytes(b"deep")
    (made / "link").symlink_to(made / "user0")
    for path in made.rglob("*"):
        if not path.is_symlink() and path.name.startswith((".new", "jit", "sub")):
            os.utime(path, (5, 5))
    before = snapshot(made)
    yield made
    made.chmod(stat.S_IMODE(before[made][0]))
    assert snapshot(made) == before


@pytest.fixture(autouse=True)
def _others_are_forgotten():
    cache.reset_cache()
    yield
    cache.reset_cache()


def entries(folder):
    return sorted(p.name.removesuffix(".program") for p in (folder / NAME).glob("*.program"))


def size(folder):
    return sum(p.stat().st_size for p in (folder / NAME).glob("*.program"))


def quiet(call, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call(*args)


# -- damage, and what is not ours ------------------------------------------------------------------


def _flip(index):
    return lambda c: c[:index] + bytes([c[index] ^ 1]) + c[index + 1 :]


DAMAGE = {
    "empty": lambda c: b"",
    "one byte": lambda c: c[:1],
    "half": lambda c: c[: len(c) // 2],
    "last byte gone": lambda c: c[:-1],
    "one more byte": lambda c: c + b"\0",
    "head alone": lambda c: c[:HEAD],
    "foreign": lambda c: b"something else entirely",
    "of the first format": lambda c: b"minijax program 1\n" + c[HEAD - 32 :],
    "zeros": lambda c: bytes(len(c)),
    **{f"bit of byte {i}": _flip(i) for i in (0, 17, 18, 49, 50, 200, -1)},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_dropped(folder, damage):
    kept = cache.DiskCache(folder, -1)
    kept.put(A, bytes(range(256)))
    path = folder / NAME / f"{A}.program"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match="was damaged and has been removed"):
        assert kept.get(A) is None
    assert entries(folder) == [] and quiet(kept.get, A) is None
    kept.put(A, b"anew")
    assert quiet(kept.get, A) == b"anew"


def test_swapped_entries_are_refused(folder):
    kept = cache.DiskCache(folder, -1)
    kept.put(A, b"one")
    kept.put(B, b"two")
    one, two, aside = (folder / NAME / f"{key}" for key in (f"{A}.program", f"{B}.program", "x"))
    one.rename(aside), two.rename(one), aside.rename(two)
    for key in (A, B):
        with pytest.warns(UserWarning, match="damaged"):
            assert kept.get(key) is None


def _link(path, folder):
    path.symlink_to(folder / "user0")


def _program_link(path, folder):
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


def _hard_link(path, folder):
    path.unlink()
    os.link(folder.parent / "outside", path)


def _writable(path, folder):
    path.chmod(0o666)


def _of_another(path, folder):
    os.chown(path, 12345, -1)


STRANGERS = {
    "link to a user's file": (lambda p, f: (p.unlink(), _link(p, f)), True),
    "link to a program": (_program_link, True),
    "dangling link": (lambda p, f: (p.unlink(), p.symlink_to(f / "absent")), True),
    "hard link": (_hard_link, True),
    "writable by others": (_writable, True),
    "another's": (_of_another, True),
    "FIFO": (lambda p, f: (p.unlink(), os.mkfifo(p)), True),
    "folder": (lambda p, f: (p.unlink(), p.mkdir()), False),
    "device": (lambda p, f: (p.unlink(), p.symlink_to("/dev/zero")), True),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_what_is_not_ours_is_not_read(folder, name):
    make, replaced = STRANGERS[name]
    if name == "another's" and os.getuid() != 0:
        pytest.skip("only root gives files away")
    outside = folder.parent / "outside"
    outside.write_bytes(b"a file of the user's")
    kept = cache.DiskCache(folder, -1)
    kept.put(A, b"one")
    make(folder / NAME / f"{A}.program", folder)
    before = outside.stat().st_mtime_ns
    begun = time.monotonic()
    with pytest.warns(UserWarning, match="is not used: .* is not a plain file"):
        assert kept.get(A) is None
    assert quiet(kept.get, A) is None, "one warning"
    if replaced:
        kept.put(A, b"anew")
        assert kept.get(A) == b"anew"
    else:
        with pytest.raises(IsADirectoryError):
            kept.put(A, b"anew")
        assert not list((folder / NAME).glob(".new-*"))
    assert outside.read_bytes() == b"a file of the user's"
    assert outside.stat().st_mtime_ns == before
    assert time.monotonic() - begun < 60, "a FIFO hangs nobody"


@pytest.mark.parametrize("key", ["../user0", "/etc/passwd", ".total", "", "é", "x" * 5000, "a\0b"])
def test_keys_name_no_other_place(folder, key):
    kept = cache.DiskCache(folder, -1)
    kept.put(key, b"x")
    assert kept.get(key) == b"x" and len(entries(folder)) == 1
    kept.drop(key)
    assert kept.get(key) is None


# -- whose the folder is ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o750, 0o711, 0o1777, 0o1770, 0o2755])
def test_modes_that_do(folder, mode):
    made = folder / "sub2"
    made.mkdir()
    try:
        made.chmod(mode)
        quiet(cache.DiskCache, made, -1).put(A, b"x")
        assert stat.S_IMODE(made.stat().st_mode) == mode
        assert (made / NAME).stat().st_mode & 0o777 == 0o700  # setgid is passed on
        assert stat.S_IMODE((made / NAME / f"{A}.program").stat().st_mode) == 0o600
    finally:
        subprocess.run(["rm", "-r", made], check=True)


def _refused(named, match):
    """The warnings of asking twice for a cache in a folder that is refused."""
    with override("compilation_cache_dir", str(named)), pytest.warns(UserWarning, match=match) as w:
        assert cache.disk_cache() is cache.disk_cache() is None
    return w


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("mode", [0o777, 0o757, 0o2777, 0o733])
def test_what_others_may_write_is_refused(folder, monkeypatch, mode, depth):
    named = folder.joinpath(*["d"] * depth)
    try:
        named.mkdir(parents=True, exist_ok=True)
        folder.chmod(mode)
        with pytest.raises(folders.Untrusted, match=f"may write to the folder {folder}"):
            cache.DiskCache(named, -1)
        assert not (named / NAME).exists() and stat.S_IMODE(folder.stat().st_mode) == mode
        told = _refused(named, "is off: .* may write")
        assert len(told) == 1
    finally:
        if depth:
            subprocess.run(["rm", "-r", folder / "d"], check=True)


@pytest.mark.parametrize("own", [True, False])
def test_a_group_of_one_is_the_user(folder, monkeypatch, own):
    folder.chmod(0o775)
    monkeypatch.setattr(folders, "_is_own_group", lambda gid: own)
    if own:
        cache.DiskCache(folder, -1).put(A, b"x")
    else:
        with pytest.raises(folders.Untrusted):
            cache.DiskCache(folder, -1)


@pytest.mark.parametrize("kind", ["another's", "writable", "link", "file"])
def test_what_stands_in_our_place_is_refused(tmp_path, kind):
    ours, target = tmp_path / NAME, tmp_path / "target"
    target.mkdir(mode=0o700)
    if kind == "file":
        ours.write_text("mine")
    elif kind == "link":
        ours.symlink_to(target)
    else:
        ours.mkdir(mode=0o700)
        ours.chmod(0o777 if kind == "writable" else 0o700)
        if kind == "another's":
            if os.getuid() != 0:
                pytest.skip("only root gives folders away")
            os.chown(ours, 12345, -1)
    before = ours.lstat()
    with pytest.raises(OSError):
        cache.DiskCache(tmp_path, -1)
    assert ours.lstat() == before and not list(target.iterdir())


def test_a_folder_of_another_user_is_refused(tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root gives folders away")
    os.chown(tmp_path, 12345, -1)
    for mode in (0o700, 0o755, 0o1777):
        tmp_path.chmod(mode)
        with pytest.raises(folders.Untrusted, match="user 12345 and maybe others may write"):
            cache.DiskCache(tmp_path, -1)
    assert not list(tmp_path.iterdir())


def test_through_a_link(folder):
    link = folder.parent / "link"
    link.symlink_to(folder)
    cache.DiskCache(link, -1).put(A, b"x")
    assert entries(folder) == [A] and link.is_symlink()


def test_folders_that_are_made_are_private(tmp_path):
    old = os.umask(0)
    try:
        cache.DiskCache(tmp_path / "x" / "y", -1).put(A, b"x")
    finally:
        os.umask(old)
    for made in (tmp_path / "x", tmp_path / "x" / "y", tmp_path / "x" / "y" / NAME):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_folder_that_is_swapped_leads_nowhere(folder):
    kept = cache.DiskCache(folder, -1)
    kept.put(A, b"x")
    (folder / NAME).rename(folder / f"{NAME}-moved")
    try:
        (folder / NAME).symlink_to(folder / "sub")
        kept.put(B, b"y")
        assert kept.get(A) == b"x" and kept.get(B) == b"y"
    finally:
        subprocess.run(["rm", "-r", folder / f"{NAME}-moved", folder / NAME], check=True)


def test_a_folder_that_is_removed_is_made_again(folder):
    kept = cache.DiskCache(folder, 10_000)
    kept.put(A, b"x")
    subprocess.run(["rm", "-r", folder / NAME], check=True)
    assert kept.get(A) is None
    kept.put(A, b"x")
    assert kept.get(A) == b"x"


# -- names of folders ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["gs://bucket/x", "s3://b", "file:///tmp/x", "hdfs://h:1/x", "gs:/bucket/x"]
)
def test_urls_are_no_folders(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    assert len(_refused(url, "URL")) == 1
    monkeypatch.setenv("MINIJAX_CACHE_DIR", url)
    with pytest.raises(OSError, match="URL"):
        cache.default_folder()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("base", ["relative", "./x", "", "~/x"])
def test_a_relative_cache_home_is_ignored(tmp_path, monkeypatch, base):
    monkeypatch.delenv("MINIJAX_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.default_folder() == tmp_path / ".cache" / "minijax"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert cache.default_folder() == tmp_path / "c" / "minijax"


@pytest.mark.parametrize("home", ["", "relative", "/nonexistent/home"])
def test_without_a_home(monkeypatch, home):
    monkeypatch.delenv("MINIJAX_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    with pytest.raises(OSError, match="no home folder"):
        cache.default_folder()
    with pytest.warns(UserWarning, match="is off"):
        assert cache.disk_cache() is None
    assert not os.path.exists("/nonexistent")


def test_names_of_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folders.resolved("~/x") == tmp_path / "x"
    assert folders.resolved("a/b") == tmp_path / "a" / "b"


# -- the bound -------------------------------------------------------------------------------------


def entry(count):
    return bytes(count - HEAD)


@pytest.mark.parametrize("limit", [1000, 1500, 4000])
def test_the_bound_holds_after_every_write(folder, limit):
    kept = cache.DiskCache(folder, limit)
    for index in range(40):
        kept.put(f"{index:064}", entry(100 + 31 * index % 900))
        assert size(folder) <= limit
        assert kept.get(f"{index:064}") is not None, "the latest is kept"
        assert int((folder / NAME / ".total").read_text()) == size(folder)


@pytest.mark.parametrize("limit", [-1, -5])
def test_no_limit(folder, limit):
    kept = cache.DiskCache(folder, limit)
    for index in range(50):
        kept.put(f"{index:064}", entry(1000))
    assert len(entries(folder)) == 50


def test_a_limit_of_zero_is_off(folder):
    with (
        override("compilation_cache_dir", str(folder)),
        override("compilation_cache_max_size", 0),
    ):
        assert cache.disk_cache() is None
    assert not (folder / NAME).exists()


def test_what_is_above_the_limit_alone_is_not_kept(folder):
    kept = cache.DiskCache(folder, 1000)
    kept.put(A, entry(500))
    kept.put(B, entry(1001))
    assert entries(folder) == [A]


def test_least_recently_used_go_first(folder):
    kept = cache.DiskCache(folder, 1000)
    keys = [f"{index:064}" for index in range(4)]
    for index, key in enumerate(keys[:3]):
        kept.put(key, entry(300))
        os.utime(folder / NAME / f"{key}.program", (index + 1, index + 1))
    kept.get(keys[0])
    kept.put(keys[3], entry(300))
    assert entries(folder) == [keys[0], keys[2], keys[3]]


def test_a_full_folder_is_not_looked_at_for_each_write(folder, monkeypatch):
    looked = []
    evict = cache.DiskCache.evict
    monkeypatch.setattr(cache.DiskCache, "evict", lambda kept: looked.append(1) or evict(kept))
    kept = cache.DiskCache(folder, 400 * 100)
    for index in range(1000):
        kept.put(f"{index:064}", entry(100))
        assert size(folder) <= 400 * 100
    assert kept.get(f"{999:064}") is not None
    assert len(looked) < 20


def test_two_that_write_share_the_bound(folder):
    one, two = cache.DiskCache(folder, 2000), cache.DiskCache(folder, 2000)
    for index in range(20):
        (one, two)[index % 2].put(f"{index:064}", entry(300))
        assert size(folder) <= 2000
    two.put(f"{19:064}", entry(100))
    assert int((folder / NAME / ".total").read_text()) == size(folder)


@pytest.mark.parametrize("text", [b"", b"nonsense", b"-5\n", b"12", b"9" * 40])
def test_a_total_that_is_lost_is_counted_again(folder, text):
    kept = cache.DiskCache(folder, 2000)
    for index in range(6):
        kept.put(f"{index:064}", entry(300))
    (folder / NAME / ".total").write_bytes(text)
    kept.put(A, entry(300))
    assert size(folder) <= 2000
    assert int((folder / NAME / ".total").read_text()) == size(folder)


@pytest.mark.parametrize("kind", ["held", "link", "folder"])
def test_a_total_that_cannot_be_used(folder, monkeypatch, kind):
    monkeypatch.setattr(cache, "_PATIENCE", 0.01)
    kept, total = cache.DiskCache(folder, 1000), folder / NAME / ".total"
    if kind == "held":
        import fcntl

        total.touch(0o600)
        held = total.open("rb")
        fcntl.flock(held, fcntl.LOCK_EX)
    elif kind == "link":
        total.symlink_to(folder / "user0")
    else:
        total.mkdir()
    for index in range(8):
        kept.put(f"{index:064}", entry(300))
        assert size(folder) <= 1000
    if kind == "held":
        held.close()


def test_stale_files_of_killed_writers_are_removed(folder):
    (cache.DiskCache(folder, 1000)).put(A, b"x")
    ours = folder / NAME
    for name, age in ((".new-1-old", 7200), (".new-2-young", 60), ("stranger", 7200)):
        (ours / name).write_bytes(b"part")
        os.utime(ours / name, (time.time() - age,) * 2)
    cache.DiskCache(folder, 1000).put(B, b"y")
    cache.DiskCache(folder, 1).evict()
    assert sorted(p.name for p in ours.iterdir()) == [".new-2-young", ".total", "stranger"]


def test_many_writers(folder):
    """Eight processes that write, read and evict at once, some of them killed."""
    program = f"""
import os, random, signal, sys
from minijax.runtime import cache

def write(index):
    kept, own = cache.DiskCache({str(folder)!r}, 20_000), random.Random(index)
    for count in range(40 if index < 6 else 5000):
        key = f"{{own.randrange(60):064}}"
        kept.put(key, key.encode() * 20)
        assert kept.get(key) in (None, key.encode() * 20)
        if count == 10 and index >= 6:
            os.write(begun, b"x")

ends, begun = os.pipe()
children = []
for index in range(8):
    pid = os.fork()
    if pid == 0:
        try:
            write(index)
            os._exit(0)
        finally:
            os._exit(1)
    children.append(pid)
os.read(ends, 1), os.read(ends, 1)
for pid in children[6:]:
    os.kill(pid, signal.SIGKILL)
print([os.waitpid(pid, 0)[1] for pid in children])
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True,
        check=True, timeout=900,
    )  # fmt: skip
    assert done.stdout.strip() == str([0] * 6 + [signal.SIGKILL.value] * 2), done.stderr
    kept = cache.DiskCache(folder, 20_000)
    kept.put(A, b"x")
    assert size(folder) <= 20_000
    for key in entries(folder):
        assert quiet(kept.get, key) is not None


# -- what the system refuses -----------------------------------------------------------------------


def test_a_full_disk(folder):
    kept = cache.DiskCache(folder, 1 << 20)
    kept.put(A, b"x")
    old, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, old[1]))
    try:
        with pytest.raises(OSError) as error:
            kept.put(B, bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert error.value.errno == errno.EFBIG
    assert entries(folder) == [A] and not list((folder / NAME).glob(".new-*"))
    kept.put(B, bytes(100_000))
    assert kept.get(B) == bytes(100_000)


@pytest.mark.parametrize("where", ["write", "replace", "utime", "mkdir"])
def test_a_folder_that_is_only_read(folder, monkeypatch, where):
    def refuse(*args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    kept = cache.DiskCache(folder, -1)
    kept.put(A, b"x")
    if where == "write":
        kept._swept = True
        monkeypatch.setattr(cache, "open_file", _reading_only(cache.open_file, refuse))
    else:
        monkeypatch.setattr(cache.os, where, refuse)
    if where == "mkdir":
        with pytest.raises(OSError, match="Read-only"):
            cache.DiskCache(folder.parent / "other", -1)
        kept.put(B, b"y")
    elif where == "utime":
        kept.put(B, b"y")
    else:
        with pytest.raises(OSError, match="Read-only"):
            kept.put(B, b"y")
    assert quiet(kept.get, A) == b"x"
    assert not list((folder / NAME).glob(".new-*"))


def _reading_only(opened, refuse):
    return lambda name, flags, at: refuse() if flags & os.O_WRONLY else opened(name, flags, at)


def test_what_cannot_be_kept_is_one_warning(folder, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache.DiskCache, "_place", refuse)

    def add(numbers):
        return [float(minijax.jit(lambda x, n=n: x + n)(jnp.float32(1))) for n in numbers]

    with (
        override("compilation_cache_dir", str(folder)),
        pytest.warns(UserWarning, match="could not be kept on disk: .*No space") as told,
    ):
        assert add((0.5, 1.5, 2.5)) == [1.5, 2.5, 3.5]
    assert len([w for w in told if "could not be kept" in str(w.message)]) == 1
    assert entries(folder) == []


# -- keys and settings -----------------------------------------------------------------------------


def _key(**settings):
    from contextlib import ExitStack

    devices = tuple(platforms.devices("cpu")[:1])
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(override(name, value))
        return cache.program_key("module", devices, executables.compile_options(devices))


def test_every_compile_option_is_in_the_key():
    settings = {"disable_most_optimizations": True}
    if hasattr(CompileOptions().executable_build_options, "memory_fitting_effort"):
        settings |= {"memory_fitting_effort": 0.5, "exec_time_optimization_effort": 0.5}
    keys = [_key(), *(_key(**{name: value}) for name, value in settings.items())]
    assert len(set(keys)) == len(keys)
    devices = tuple(platforms.devices("cpu")[:1])
    options = executables.compile_options(devices, overrides={"xla_cpu_enable_fast_math": True})
    assert cache.program_key("module", devices, options) not in keys


def test_efforts_are_given_to_xla():
    build = CompileOptions().executable_build_options
    if not hasattr(build, "memory_fitting_effort"):
        pytest.skip("this jaxlib has levels instead")
    with override("memory_fitting_effort", 0.25), override("exec_time_optimization_effort", 0.75):
        options = executables.compile_options(tuple(platforms.devices("cpu")[:1]))
    build = options.executable_build_options
    assert (build.memory_fitting_effort, build.exec_time_optimization_effort) == (0.25, 0.75)


def test_the_library_is_in_the_key(tmp_path, monkeypatch):
    client = platforms.backend("cpu")
    library, keys = tmp_path / "plugin.so", set()
    for content, moment in ((b"x" * 300_000, 5), (b"x" * 300_000, 6), (b"y" + b"x" * 299_999, 6)):
        library.write_bytes(content)
        os.utime(library, (moment, moment))
        monkeypatch.setitem(plugins.identities, client, plugins.library_identity(str(library)))
        keys.add(_key())
    assert len(keys) == 3
    assert plugins.library_identity(str(tmp_path / "absent")) is None


@pytest.mark.parametrize(
    ("setting", "value", "count"),
    [
        ("persistent_cache_min_compile_time_secs", 1000.0, 0),
        ("persistent_cache_min_compile_time_secs", 0.0, 1),
        ("persistent_cache_min_entry_size_bytes", 10**9, 0),
        ("persistent_cache_min_entry_size_bytes", -1, 1),
        ("compilation_cache_max_size", -1, 1),
        ("compilation_cache_max_size", 0, 0),
        ("compilation_cache_max_size", 100, 0),
    ],
)
def test_settings_say_what_is_kept(folder, setting, value, count):
    x = jnp.float32(2)
    with override("compilation_cache_dir", str(folder)), override(setting, value):
        minijax.clear_caches()
        minijax.jit(lambda x: x * 0.7251)(x)
    assert len(entries(folder)) == count if (folder / NAME).exists() else count == 0


def test_shared_with_upstream(folder):
    """Upstream keeps its programs in the folder itself: ours are pruned, its own are not."""
    program = """
import jax, minijax, minijax.numpy as jnp
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.jit(lambda x: x * 2)(1.0)
for n in range(6):
    minijax.jit(lambda x: x * n)(1.0)
"""
    names = set(os.listdir(folder))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_COMPILATION_CACHE_DIR": str(folder)}
    environment |= {"MINIJAX_COMPILATION_CACHE_MAX_SIZE": "12000"}
    environment.pop("MINIJAX_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    theirs = set(os.listdir(folder)) - names - {NAME}
    assert theirs and all(name.startswith("jit_") for name in theirs)
    assert 0 < size(folder) <= 12000
    for name in theirs:
        (folder / name).unlink()
