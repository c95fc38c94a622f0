"""Members of arrays and tracers that no interpreter needs: conversions, text, refusals."""

from minijax.features.array_members import concrete, tracers
