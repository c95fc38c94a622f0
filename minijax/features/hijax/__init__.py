"""Types and primitives that libraries define (`minijax.experimental.hijax`).

Read `types`, `tracers`, `lowering`, `primitives`; `qdd` and `states` are for values that change.
"""
