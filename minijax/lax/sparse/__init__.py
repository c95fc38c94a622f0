"""The primitives of sparse arrays: a file for each format."""
