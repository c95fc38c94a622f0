"""Concrete arrays, and running programs on them. See the layers in README.md."""
