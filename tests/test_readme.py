"""The README: each block of Python runs alone, as printed, and prints what `# ->` states."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


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
