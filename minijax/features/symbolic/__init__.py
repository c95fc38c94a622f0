"""Sizes that are known when an exported program is called: expressions, and dynamic StableHLO."""

from minijax.features.symbolic import lowering
