"""Warm start: structures whose kernels were worth building, kept in a file between runs.

The file is text in the user's cache, with a digest a line. It is read once and appended to. Only
lines that are a digest are believed, so a line that another process is still writing, or left
incomplete when it died, is lost, and nothing else. A line too many costs a plan that was made
early, one too few costs a wait. Results do not depend on any of them.
"""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

from clfuse.runtime.files.storage import (
    cache_folder,
    open_ours,
    open_to_append,
    warn_once,
    write_whole,
)

__all__ = ["forget", "is_known", "known", "note"]

FILE_NAME = "earned.txt"

FORMAT = 1
"""Stands before every digest: change it when the meaning of one changes."""

LARGEST_FILE = 1 << 20
"""Bytes, 30,000 digests: where it is reached, the older half goes."""

MOST_KNOWN = 1 << 15
"""Digests that are known, more than a file has: where they are more, the file is read again."""

_LINE = re.compile(rb"^%d ([0-9a-f]{32})$" % FORMAT, re.MULTILINE)

_known: dict[Path | None, set[str]] = {}
"""File, or None without one -> what was in it when it was read, and what this process has noted
since."""

_lock = threading.Lock()


def is_known(name: str) -> bool:
    """Whether a structure of this digest had kernels, in an earlier run or in this one."""
    path = _path()
    with _lock:
        return name in _read(path)


def known() -> frozenset[str]:
    """The digests of all structures that were worth their kernels."""
    with _lock:
        return frozenset(_read(_path()))


def note(name: str) -> None:
    """Keep a digest for later runs, which wait again where it cannot be written."""
    path = _path()
    with _lock:
        known = _read(path)
        if name in known:
            return
        if len(known) >= MOST_KNOWN:
            del _known[path]
            known = _read(path)
        known.add(name)
        if path is None:
            return
        try:
            _append(path, name)
        except OSError as error:
            problem = error
        else:
            return
    warn_once(problem)


def forget() -> None:
    """Read the file again when it is asked for next."""
    with _lock:
        _known.clear()


def _path() -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / FILE_NAME


def _read(path: Path | None) -> set[str]:
    found = _known.get(path)
    if found is None:
        tail = b"" if path is None else _tail(path)
        found = _known[path] = {name.decode() for name in _LINE.findall(tail)}
    return found


def _tail(path: Path) -> bytes:
    """The file's bytes, of one that is too large the last ones; none where there is no file."""
    try:
        with open_ours(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LARGEST_FILE))
            return file.read(LARGEST_FILE)
    except OSError:
        return b""


def _append(path: Path, name: str) -> None:
    try:
        is_full = path.lstat().st_size >= LARGEST_FILE
    except FileNotFoundError:
        is_full = False
    if is_full:
        names = _LINE.findall(_tail(path))
        write_whole(path, b"".join(_line(kept) for kept in names[len(names) // 2 :]))
    # The line ends one that another process has left unfinished. One write: others' come before it
    # or after it.
    handle = open_to_append(path)
    try:
        os.write(handle, b"\n" + _line(name.encode()))
    finally:
        os.close(handle)


def _line(name: bytes) -> bytes:
    return b"%d %s\n" % (FORMAT, name)
