"""The cache of compiled programs on disk: shared, bounded, private, and wary of damage."""

import os
import stat
import subprocess
import sys
import warnings

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.config import override
from minijax.experimental.compilation_cache import compilation_cache
from minijax.runtime import cache

pytestmark = pytest.mark.both_ends

PROGRAM = """
import minijax, minijax.numpy as jnp, sys
f = minijax.jit(lambda x: jnp.sin(x) * 3 + {number})
print(f(jnp.arange(4.0)).tolist())
"""


def run(folder, number=1, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", PROGRAM.format(number=number)],
        env={**os.environ, "MINIJAX_CACHE_DIR": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def inner(folder):
    """Our own folder within one that the user names."""
    return folder / f"minijax-programs-{os.getuid()}"


def programs(folder):
    return sorted(inner(folder).glob("*.program"))


def test_second_process_finds_the_programs(tmp_path):
    folder = tmp_path / "cache"
    first, _ = run(folder)
    kept = {p: p.stat().st_ino for p in programs(folder)}
    assert kept
    assert stat.S_IMODE(inner(folder).stat().st_mode) == 0o700
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in kept)
    again, errors = run(folder)
    assert again == first and not errors
    assert {p: p.stat().st_ino for p in programs(folder)} == kept, "nothing was written again"
    run(folder, number=2)
    assert len(programs(folder)) > len(kept)
    assert run(folder, XLA_FLAGS="--xla_cpu_enable_fast_math=true")[0]
    assert len(programs(folder)) > len(kept) + 1, "flags are part of the key"


def test_damage_is_noticed(tmp_path):
    """In a new process; `test_cache_folder` has the kinds of damage."""
    first, _ = run(tmp_path)
    for path in programs(tmp_path):
        content = path.read_bytes()
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    again, errors = run(tmp_path)
    assert again == first
    assert "damaged" in errors
    assert run(tmp_path) == (first, ""), "the damaged entries were replaced"


def test_off_by_a_setting(tmp_path):
    run(tmp_path / "a", MINIJAX_ENABLE_COMPILATION_CACHE="0")
    assert not (tmp_path / "a").exists()


def test_unusable_folder_is_a_warning(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache.reset_cache()
    with override("compilation_cache_dir", str(blocked)), pytest.warns(UserWarning, match="off"):
        assert minijax.jit(lambda x: x + 0.123)(jnp.ones(1)).shape == (1,)
    cache.reset_cache()


def test_the_folder_is_set_by_a_function(tmp_path):
    before = minijax.config.compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(tmp_path)
        minijax.jit(lambda x: x * 0.321)(jnp.ones(2))
        assert list(tmp_path.iterdir())
    finally:
        minijax.config.update("compilation_cache_dir", before)
        compilation_cache.reset_cache()


def test_eight_processes_at_once(tmp_path):
    command = [sys.executable, "-c", PROGRAM.format(number=5)]
    environment = {**os.environ, "MINIJAX_CACHE_DIR": str(tmp_path)}
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(8)
    ]
    results = [process.communicate() for process in running]
    assert all(process.returncode == 0 for process in running), results
    assert len({out for out, _ in results}) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(float(jnp.sin(1.0)))


TOLD = """
import logging, re, sys, {library} as jax

monitoring = jax.monitoring if hasattr(jax, "monitoring") else __import__("jax.monitoring").monitoring
told, wanted = [], ("Pers", "PERS", "Not w", "Writ", "Fin", "Comp", "Initializing backend 'c", "Backend 'c")

class Kept(logging.Handler):
    def emit(self, record):
        message = record.getMessage()
        if message.startswith(wanted):
            message = re.sub(r"[0-9a-f]{{64}}|[0-9.]+ sec|[0-9.]+s|[0-9]+ bytes", "N", message)
            told.append((record.levelname, message))

logging.getLogger().addHandler(Kept())
logging.getLogger().setLevel(logging.DEBUG)
seen = lambda event, *a, **k: "saved" in event or told.append((event, sorted(k), len(a)))
monitoring.register_event_listener(seen)
monitoring.register_event_duration_secs_listener(seen)
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.devices()
for number, (seconds, size, option) in enumerate([
    (100, -1, "x64"), (0, 10**9, "x64"), (0, -1, "x64"), (0, -1, "x64"), (0, -1, "compiles"),
    (100, -1, "misses"), (0, 10**9, "misses"), (0, -1, "misses"),
]):
    jax.config.update("jax_persistent_cache_min_compile_time_secs", seconds)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", size)
    jax.config.update("jax_log_compiles", option == "compiles")
    jax.config.update("jax_explain_cache_misses", option == "misses")
    jax.clear_caches()
    jax.jit(lambda x: x * ({{"misses": 7.5}}.get(option, 8.25)))(1.0)
print(*told, sep="\\n")
"""


def test_what_is_logged_and_recorded(tmp_path):
    def lines(library):
        program = TOLD.format(library=library)
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / library)],
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    ours = lines("minijax")
    assert sum("PERSISTENT COMPILATION CACHE MISS" in line for line in ours) == 6
    assert ours == lines("jax")
