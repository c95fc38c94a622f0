"""Counterparts of what upstream's private modules hold, by what they are about. `jax.modules`
says of which.
"""
