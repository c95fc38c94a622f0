"""The public face as type checkers see it: a program without errors, and mistakes that are
found.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

TYPED = Path(__file__).parent / "typed"
MISTAKES = {
    number
    for number, line in enumerate((TYPED / "mistakes.py").read_text().splitlines(), 1)
    if line.endswith("  # wrong")
}


def mypy(path, folder):
    """The lines of a program in which `mypy --strict` finds an error, and its report."""
    cache = ["--cache-dir", str(folder / "cache"), "--follow-imports=silent"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *cache, str(path)],
        capture_output=True, text=True,
    )  # fmt: skip
    found = re.findall(r":(\d+): error:", done.stdout)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return set(map(int, found)), done.stdout


def pyright(path, folder):
    """The lines of a program in which pyright, in its strict mode, finds an error."""
    # basedpyright is pyright in a wheel that brings all it needs.
    project = folder / "pyrightconfig.json"
    project.write_text(json.dumps({"include": [path.name], "typeCheckingMode": "strict"}))
    (folder / path.name).write_text(path.read_text())
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable,
         "-p", str(folder)],
        capture_output=True, text=True,
    )  # fmt: skip
    errors = [d for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    text = "\n".join(f"{d['range']['start']['line'] + 1}: {d['message']}" for d in errors)
    return {d["range"]["start"]["line"] + 1 for d in errors}, text


CHECKERS = {"mypy": mypy, "pyright": pyright}


@pytest.mark.parametrize("checker", CHECKERS)
def test_program(checker, tmp_path):
    lines, report = CHECKERS[checker](TYPED / "program.py", tmp_path)
    assert not lines, report


@pytest.mark.parametrize("checker", CHECKERS)
def test_mistakes_are_found(checker, tmp_path):
    lines, _ = CHECKERS[checker](TYPED / "mistakes.py", tmp_path)
    assert len(MISTAKES) >= 20
    assert MISTAKES.issubset(lines)


def test_the_program_runs():
    subprocess.run([sys.executable, str(TYPED / "program.py")], check=True)
