"""Pallas: kernels over blocks of arrays, as loops over a grid."""
