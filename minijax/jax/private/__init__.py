"""Counterparts of what upstream's private modules hold, by what they are about. `jax.rooms` says of which.

Floor 7: may import all of minijax.
"""
