"""Types and primitives that libraries define, made of arrays when a program is compiled."""
