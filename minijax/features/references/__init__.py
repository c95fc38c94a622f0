"""References: arrays that are changed in place.

`cells` has their type and what stands for one where no program is recorded; `discharge` makes
programs on values of those on references; `mapped` is for those that `vmap` maps.
"""

from minijax.features.references import discharge, effects, mapped

__all__ = ["discharge", "effects", "mapped"]
