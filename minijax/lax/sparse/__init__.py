"""The primitives of sparse arrays: a file for each format. May import `lax` and the floors below."""
