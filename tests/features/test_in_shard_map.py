"""Library functions with loops in them, within `shard_map` and its checks:
`tests/cases/in_shard_map.py`.
"""

from tests.cases.in_shard_map import PROGRAMS
from tests.harness.survivors import outcomes


def test_functions_with_loops():
    found = outcomes("in_shard_map", "minijax", PROGRAMS)
    wrong = {name: outcome for name, outcome in found.items() if outcome is not True}
    assert not wrong, "\n".join(f"{name}: {str(why)[:300]}" for name, why in wrong.items())
    assert len(found) > 100
