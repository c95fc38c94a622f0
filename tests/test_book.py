"""The books in `examples`: chapters run, quote source that exists, and have the same parts."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minijax import explain
from minijax.core.primitive import all_primitives

ROOT = Path(__file__).resolve().parents[1]
_spec = importlib.util.spec_from_file_location("weekend", ROOT / "examples/weekend/book.py")
book = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(book)

each_chapter = pytest.mark.parametrize("path", book.CHAPTERS, ids=lambda path: path.stem)


@pytest.fixture(autouse=True)
def _primitives_of_chapters_are_forgotten():
    before = set(all_primitives)
    yield
    for name in set(all_primitives) - before:
        del all_primitives[name]


@each_chapter
def test_chapter_runs(path):
    """The checks of its exercises included; the notebook holds what it printed."""
    if "jax_num_cpu_devices" in path.read_text():  # before the first array is made
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return
    printed = book.run(path)
    made = json.loads(json.dumps(book.notebook(path, printed)))
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert [cell["source"] for cell in code] == [c.text for c in book.cells(path) if c.is_code]
    assert "".join(printed).strip()


@each_chapter
def test_quotations_resolve(path):
    names = re.findall(r"explain\.where\(\s*\"([\w.]+)\"", path.read_text())
    assert names
    for name in names:
        place = explain.where(name)
        assert Path(place.file).is_relative_to(ROOT / "minijax") and place.source.strip()


@each_chapter
def test_parts_of_a_chapter(path):
    """A title, a question, exercises with checked answers, and where to read on."""
    prose = [cell.text for cell in book.cells(path) if not cell.is_code]
    code = "\n".join(cell.text for cell in book.cells(path) if cell.is_code)
    title, question = prose[0].split("\n\n")[:2]
    assert title.startswith(f"# {int(path.stem[:2])}. ") and question.endswith("?*")
    exercises = re.findall(r"^## Exercise \d", "\n".join(prose), re.MULTILINE)
    assert len(exercises) >= 2 and len(re.findall(r"^assert ", code, re.MULTILINE)) >= 2
    assert prose[-1].startswith("## Read on")
    files = re.findall(
        r"`((?:core|transforms|lowering|arrays|lax|features|runtime|explain|difftest)/\S+?)`",
        prose[-1],
    )
    assert files
    for file in files:
        assert (ROOT / "minijax" / file).exists(), file
