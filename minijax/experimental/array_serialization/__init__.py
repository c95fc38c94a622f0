"""`minijax.experimental.array_serialization`: arrays in files, by TensorStore."""
