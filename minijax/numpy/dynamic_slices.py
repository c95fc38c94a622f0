"""`dslice`: what `x[start : start + size]` means where `start` is computed. Only re-exports.

`index_terms` knows what a `Slice` stands for.
"""

from minijax.lax.dynamic_slices import Slice, dslice

__all__ = ["Slice", "dslice"]
