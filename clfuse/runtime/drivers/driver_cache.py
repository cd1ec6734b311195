"""PoCL's cache of compiled programs: its folder, and whether a build may write to it.

PoCL writes every program into its cache and loads the machine code from there. It cannot do without
a cache, and looks for it when it starts: without one that can be written it lists no device. On a
full disk its compiler ends the process (LLVM's ``report_fatal_error``), as it does itself where a
disk is mounted with ``noexec``. So it gets a folder of clfuse's own, which is checked
(`files.trust`), or a temporary one; and before a build the disk must have room.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from clfuse.runtime.files import storage, trust

__all__ = ["FOLDER", "environment", "problem_of_build"]

VARIABLE: Final = "POCL_CACHE_DIR"

FOLDER: Final = "pocl"
"""Within clfuse's."""

ROOM_AT_START: Final = 64 << 20
"""Bytes: below that a process starts with another folder. A program takes .1 to 1 MB."""

ROOM_FOR_BUILD: Final = 8 << 20
"""Bytes: below that nothing is built. The largest kernel of the tests takes 2 MB while PoCL
compiles it."""

_current: str | None = None
"""What PoCL was told when it started; None before, or where there is no such folder."""


@contextmanager
def environment() -> Iterator[None]:
    """Tell PoCL where its cache is, if it is first asked for devices in this block.

    The variable is put back afterwards: a process that we start finds what the user set.
    """
    global _current
    before = os.environ.get(VARIABLE)
    found = _folder(before)
    _current = found or before
    if found is None or found == before:
        yield
        return
    os.environ[VARIABLE] = found
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def _folder(asked: str | None) -> str | None:
    """The folder that the user has asked for, or clfuse's; a temporary one where that is not ours,
    cannot be written, or has no room."""
    if asked:
        place = asked if storage.is_ours(asked) else None
    else:
        ours = storage.subfolder(FOLDER)
        place = None if ours is None else str(ours)
    if place is not None:
        problem = _problem_of(place)
        if not problem:
            return place
        storage.warn_once(problem)
    return storage.temporary_folder(ROOM_AT_START) or storage.temporary_folder(ROOM_FOR_BUILD)


def _problem_of(place: str) -> str:
    try:
        # A quota shows only when something is written.
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            file.write(bytes(4096))
        if not storage.runs_programs(place):
            return f"{place}: its disk is mounted so that no machine code is loaded from it"
        if storage.has_room(place, ROOM_AT_START):
            return ""
    except OSError as error:
        return f"{place}: {error.strerror or error}"
    return f"{place}: less than {ROOM_AT_START >> 20} MiB are left on its disk"


def problem_of_build() -> str:
    """Say why PoCL must not build a program now; empty if it may."""
    place = _current
    if place is None:
        return ""
    try:
        try:
            room = storage.has_room(place, ROOM_FOR_BUILD)
        except FileNotFoundError:
            trust.make(str(Path(place)))  # the cache was cleared
            room = storage.has_room(place, ROOM_FOR_BUILD)
    except OSError as error:
        return f"{place}: {error.strerror or error}"
    if room:
        return ""
    return (
        f"{place}: less than {ROOM_FOR_BUILD >> 20} MiB are left on its disk, where PoCL's compiler"
        " would end the process"
    )
