"""SHA-256, for the names and the seals of files."""

from __future__ import annotations

from typing import Any

__all__ = ["sha256"]


def sha256(data: bytes = b"") -> Any:
    """Return a hash object of `hashlib`, whose import takes 3.6 ms, of every start if it were above."""
    import hashlib

    return hashlib.sha256(data)
