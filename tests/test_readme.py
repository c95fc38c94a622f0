"""The README: each block of Python runs alone, as printed, and prints what `# ->` states."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minijax

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1][:40])
def test_block(block, tmp_path):
    path = tmp_path / "block.py"
    path.write_text(block)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    if 'platform="tpu"' in block and importlib.util.find_spec("libtpu") is None:
        assert "pip install 'minijax-xla[tpu]'" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for stated in re.findall(r"# -> (.*)", block):
        assert stated in printed


def test_the_tour_names_each_file_once():
    rows = re.search(r"\| file \|.*?\n\n", TEXT, re.DOTALL)[0].strip().splitlines()
    named = [name for row in rows for name in re.findall(r"`(\S+\.py)`", row.split("|")[1])]
    folders = [ROOT / "minijax" / name for name in ("core", "transforms", "lowering", "arrays")]
    there = [path for folder in folders for path in folder.glob("*.py")]
    files = [f"{path.parent.name}/{path.name}" for path in there if path.stem != "__init__"]
    assert sorted(named) == sorted(files)


def calls(run):
    """The functions of minijax that run, as pairs of file and name, in the order of their calls."""
    found, folder = [], f"{Path(minijax.__file__).parent}/"

    def note(frame, event, arg):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folder):
            found.append((code.co_filename.removeprefix(folder), code.co_name))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(
    ("title", "transformed"),
    [
        ("grad(jit(f))(x)", lambda f: minijax.grad(minijax.jit(f))),
        ("jit(vmap(grad(f)))(x)", lambda f: minijax.jit(minijax.vmap(minijax.grad(f)))),
    ],
)
def test_functions_on_the_way_of_a_call(title, transformed):
    lines = re.search(rf"^{re.escape(title)}\n((?:    .*\n)+)", TEXT, re.MULTILINE)[1].splitlines()
    way = [
        (line.split()[0], name, mark)
        for line in lines
        for name, mark in re.findall(r"(\w+)(\*?)", line.split(maxsplit=1)[1].split(":")[0])
    ]
    x = minijax.numpy.ones((2,) if "vmap" in title else ())
    call = transformed(lambda x: minijax.numpy.sin(x) * x)
    first, second = calls(lambda: call(x)), calls(lambda: call(x))
    for run, wanted in (first, way), (second, [step for step in way if not step[2]]):
        rest = iter(run)
        for file, name, _ in wanted:
            assert (file, name) in rest, (file, name)
    kept = {step[:2] for step in way if step[2]} - {step[:2] for step in way if not step[2]}
    assert not kept & set(second)
    assert "vmap" not in title or len(second) == 1
