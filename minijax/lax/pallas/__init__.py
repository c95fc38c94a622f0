"""Pallas: kernels over blocks of arrays, as loops over a grid. May import the floors below and `lax`."""
