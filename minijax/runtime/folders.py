"""Private folders for files that run code when they are read, and files opened without trust.

Imports the standard library only. A folder is checked once and held by its descriptor: what happens
to its name afterwards leads nobody elsewhere. All checks of a file are on its open descriptor.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

__all__ = ["PRIVATE", "Untrusted", "open_file", "open_private", "resolved"]

PRIVATE = 0o700
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_RDONLY
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a FIFO does not block
_URL = r"[A-Za-z][A-Za-z0-9+.\-]*:/"


class Untrusted(OSError):
    """A folder or file that others may have written, or that is none of ours."""


def resolved(name: str | os.PathLike) -> Path:
    """Return the absolute path of a folder that the user named, without symbolic links.

    OSError for a URL, which would become a local folder of that name.
    """
    text = os.fspath(name)
    if re.match(_URL, text):
        raise OSError(
            f"{text!r} is a URL, and compiled programs are kept in local folders only: name one"
        )
    return Path(os.path.realpath(os.path.expanduser(text)))


def open_private(parent: Path, name: str) -> int:
    """Return the descriptor of the private folder `name` in `parent`; both are made if need be.

    Nothing that exists is changed. `Untrusted` if others may write to the folder, or may put another
    in its place: the folders above it must belong to the user or to root, and be writable by
    nobody else unless their sticky bit keeps others from renaming.
    """
    if not hasattr(os, "getuid"):
        raise OSError("this system does not tell who may write to a folder")
    _make(parent)
    for folder in (*reversed(parent.parents), parent):
        _check_above(folder, os.lstat(folder))
    above = os.open(parent, _FOLDER)
    try:
        _check_above(parent, os.fstat(above))
        try:
            os.mkdir(name, PRIVATE, dir_fd=above)
        except FileExistsError:
            pass
        made = os.open(name, _FOLDER, dir_fd=above)
    finally:
        os.close(above)
    info = os.fstat(made)
    if info.st_uid != os.getuid() or info.st_mode & 0o022:
        os.close(made)
        raise Untrusted(f"{_whose(info)} may write to the folder {parent / name}")
    return made


def _make(folder: Path) -> None:
    """Make a folder and those above it that are missing, for the user alone."""
    if not folder.is_dir():
        if folder.parent != folder:
            _make(folder.parent)
        try:
            os.mkdir(folder, PRIVATE)
        except FileExistsError:
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(folder)) from None


def _check_above(folder: Path, info: os.stat_result) -> None:
    # Whoever owns the root of the file system can do anything; in a container it may not be user 0.
    owned = info.st_uid in (0, os.getuid(), os.stat("/").st_uid)
    others = info.st_mode & stat.S_IWOTH
    group = info.st_mode & stat.S_IWGRP and not _is_own_group(info.st_gid)
    if not owned or ((others or group) and not info.st_mode & stat.S_ISVTX):
        raise Untrusted(
            f"{_whose(info)} may write to the folder {folder}, and loading a program runs its code"
        )


def _whose(info: os.stat_result) -> str:
    return "others" if info.st_uid == os.getuid() else f"user {info.st_uid} and maybe others"


def _is_own_group(gid: int) -> bool:
    """Whether a group has one member, the user, as where the usual umask is 002."""
    try:
        import grp
        import pwd

        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(gid)
    except (ImportError, KeyError):
        return False
    alone = set(group.gr_mem) <= {user.pw_name}
    return alone and gid == user.pw_gid and group.gr_name == user.pw_name


def open_file(name: str, flags: int, folder: int) -> int:
    """Open a file of a private folder; `Untrusted` unless it is a plain file that only we may write.

    FileNotFoundError if there is none.
    """
    try:
        handle = os.open(name, flags | _FILE, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENODEV):
            raise Untrusted(f"{name} is not a plain file") from None
        raise
    info = os.fstat(handle)
    if (
        not stat.S_ISREG(info.st_mode)
        or info.st_uid != os.getuid()
        or info.st_mode & 0o022
        or info.st_nlink > 1
    ):
        os.close(handle)
        raise Untrusted(f"{name} is not a plain file that only its owner, this user, may write")
    return handle
