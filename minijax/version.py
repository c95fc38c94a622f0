"""The version of minijax, and the level of upstream's API that it speaks."""

__version__ = "0.1.0"
__version_info__: tuple[int, ...] = (0, 1, 0)
api_level = "0.10.2"
