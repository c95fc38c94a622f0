"""Derivative and batching rules that a user gives: `custom_jvp`, `custom_vjp` and their kin."""
