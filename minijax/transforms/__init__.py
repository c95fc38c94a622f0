"""The transformations: one file an interpreter. See the layers in README.md."""
