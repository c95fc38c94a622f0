"""Compiling ahead of time, and looking at each stage: traced, lowered, compiled."""

from minijax.features.stages import stages
