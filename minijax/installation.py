"""Check that the folder of the package holds no files of another distribution.

Ground layer: imports the standard library only. The distribution "minijax" of PyPI is another
project, which installs its modules into a folder of the same name; ours is "minijax-xla". Whichever
of the two is installed last overwrites files of the other.
"""

from __future__ import annotations

import os

__all__ = ["check_installation"]

_FOREIGN = ("compute_graph.py", "nested_containers.py")  # modules that only the other one has


def check_installation(folder: str = os.path.dirname(__file__)) -> None:
    """Raise ImportError if the files of the other distribution lie in `folder`."""
    found = [name for name in _FOREIGN if os.path.exists(os.path.join(folder, name))]
    if found:
        raise ImportError(
            f"Two distributions are installed in {folder}: 'minijax-xla', which this is, and "
            f"'minijax', another project, whose files ({', '.join(found)}, ...) lie among ours and "
            "have overwritten some of them. Remove both and install this one again: "
            "pip uninstall -y minijax minijax-xla && pip install minijax-xla"
        )
