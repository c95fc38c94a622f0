"""Text that users give, as a module's text holds it. A name is data: whatever it contains, the
module that it is written into has the operations of one with a plain name. All other modules
that write text pass each string that is not their own through one of these functions, which
write the quotation marks too; `tests/lowering/test_names.py` finds those that do not. Strings come out in
ASCII and free of brackets, colons, commas and quotation marks, so that written lines may be
searched and taken apart without parsing them.
"""

from __future__ import annotations

import re
import string

__all__ = ["axis", "key", "label", "mangled", "quoted", "raw", "symbol", "unescaped", "utf8"]

_PLAIN = frozenset((string.ascii_letters + string.digits + " _.-/+*$").encode())
_BYTES = [chr(byte) if byte in _PLAIN else f"\\{byte:02X}" for byte in range(256)]
_ALL_PLAIN = r"[A-Za-z0-9 _.\-/+*$]*"
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_$.]*"
_NOT_OF_AXES = r"[^A-Za-z0-9_\-]"


def _written(text: str) -> str:
    if re.fullmatch(_ALL_PLAIN, text):
        return f'"{text}"'
    return raw(text.encode())


def quoted(text: str) -> str:
    """A string as an attribute of a module.

    TypeError unless it is a string, and one that UTF-8 can hold: without lone surrogates.
    """
    if not isinstance(text, str):
        raise TypeError(
            f"A name or a string attribute of a program must be a string: got {text!r} of type "
            f"{type(text)}."
        )
    try:
        return _written(text[:])
    except UnicodeEncodeError:
        raise TypeError(
            f"A name or a string attribute of a program must be text that UTF-8 can hold: got "
            f"{text!r}, which has half a surrogate pair. Leave it out."
        ) from None


def raw(data: bytes) -> str:
    """Bytes as an attribute of a module."""
    return f'"{data.decode("latin-1").translate(_BYTES)}"'


def utf8(text: str) -> str:
    """The text, with lone surrogates (as in the names of files in another encoding) spelled out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def label(text: str) -> str:
    """A string that means nothing to the program: the name of a place, a scope or a file."""
    return _written(utf8(text))


def unescaped(text: str) -> str:
    """Return the text that was written as what is between these quotation marks."""
    data = re.sub(r"\\([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)
    return data.encode("latin-1").decode(errors="replace")


def symbol(name: str) -> str:
    """A reference to a function or a mesh of the module, or its name where it is defined."""
    return f"@{name}" if re.fullmatch(_IDENTIFIER, name) else f"@{label(name)}"


def key(name: str) -> str:
    """The name of an attribute within a dictionary. ValueError if it is empty."""
    if isinstance(name, str) and not name:
        raise ValueError("An attribute of an operation needs a name: got an empty string.")
    return name if re.fullmatch(_IDENTIFIER, name) else quoted(name)


def axis(name: str) -> str:
    """The name of a mesh axis.

    All but plain characters stand as `%` and their numbers. XLA passes meshes on as text that it writes
    and reads with escapes of its own, and ends the process where it cannot read it again.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"The names of mesh axes over several devices must be strings: got {name!r} of type "
            f"{type(name)}."
        )
    return _written(re.sub(_NOT_OF_AXES, lambda found: f"%{ord(found[0]):X}.", name[:]))


def mangled(name: str) -> str:
    """The name of a module, as upstream makes it from that of a function."""
    return re.sub(r"[^\w.-]", "_", name).rstrip("_")
