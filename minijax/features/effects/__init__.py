"""Effects: what equations do besides computing their results. `core.effects` has the base class.

`kinds` are those of callbacks and of what is shown; `inputs` are those on inputs of a program;
`pending` are programs with effects that are under way.
"""

from minijax.features.effects import inputs, kinds, pending

__all__ = ["inputs", "kinds", "pending"]
