"""Warm start: structures whose kernels were worth building, kept in a file between runs.

The file is text in the user's cache, with a digest a line. It is read once and appended to. Only
lines that are a digest are believed, so a line that another process is still writing, or left
incomplete when it died, is lost, and nothing else. A line too many costs a plan that was made
early, one too few costs a wait. Results do not depend on any of them.
"""

from __future__ import annotations

import re
from pathlib import Path

from clfuse.process import locks
from clfuse.runtime.files.storage import append_line, cache_folder, tail_of_lines, warn_once

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

_lock = locks.make()


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
            append_line(path, f"{FORMAT} {name}".encode(), _LINE, LARGEST_FILE)
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
        text = tail_of_lines(path, LARGEST_FILE)
        found = _known[path] = {name.decode() for name in _LINE.findall(text)}
    return found
