"""Tools that show what the transforms do. Each is taken from its own module."""
