"""The submodule of `lazy_loader_module`."""


def a_function() -> int:
    return 42
