"""The submodule of `lazy_loader_module`. Floor 7: imports nothing."""


def a_function() -> int:
    return 42
