"""Saying why: what a cache missed, which operation a compiler refused, what no device can hold."""

from minijax.features.diagnostics import (
    cache_misses,
    execution,
    finite,
    large_arrays,
    leaks,
    long_compilations,
    lowered_programs,
    places,
    recompilations,
)
