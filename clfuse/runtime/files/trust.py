"""Trust in folders on disk: whether one is this user's alone, so that its files may be run.

A driver loads machine code that it finds in a cache. So no other user may write there, or put
another folder in its place: a folder's owner and mode count, and those of every folder above it.
Others may write to a folder above where its sticky bit keeps them from renaming what is not theirs
(``/tmp``), and so may a group that has no other member.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

__all__ = ["close_to_others", "make", "others_write", "problem_of_file", "trouble_with"]

PRIVATE = 0o700
"""Of every folder that clfuse makes, whatever the umask."""

#: Elsewhere than on POSIX there are no such owners and modes.
_HAS_OWNERS = hasattr(os, "geteuid")


def trouble_with(folder: str) -> str:
    """Say what keeps a folder from being ours alone, with the address that it concerns; empty if
    nothing does. What is missing of it is made, private.

    folder: an absolute path without symbolic links (`os.path.realpath`).

    Raises OSError: it cannot be made.
    """
    make(folder)
    if not _HAS_OWNERS:
        return "" if os.path.isdir(folder) else f"{folder} is no folder"
    places = [folder]
    while os.path.dirname(places[0]) != places[0]:
        places.insert(0, os.path.dirname(places[0]))
    owners = {0, os.geteuid()}
    # The owner of the root folder has all of it: in a container that may be a number without a
    # user there.
    above = owners | {os.lstat(os.sep).st_uid}
    for place in places:
        found = os.lstat(place)
        is_last = place == folder
        if not stat.S_ISDIR(found.st_mode):
            return f"{place} is no folder"
        if found.st_uid not in (owners if is_last else above):
            return f"{place} belongs to another user (number {found.st_uid})"
        if others_write(found) and (is_last or not found.st_mode & stat.S_ISVTX):
            return f"{place} may be written by others (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


def close_to_others(folder: str) -> None:
    """Let no other user read a folder that is ours; nothing happens where that cannot be."""
    found = os.lstat(folder)
    if _HAS_OWNERS and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != PRIVATE:
        # A file system may only read, or have no modes.
        with suppress(OSError):
            os.chmod(folder, PRIVATE)


def make(folder: str) -> None:
    """Make a folder and what is missing above it, readable by this user alone.

    Raises OSError: it cannot be made.
    """
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    if above != folder:
        make(above)
    try:
        os.mkdir(folder, PRIVATE)
    except FileExistsError:
        return  # another process was quicker; a file in its place is found by who opens it
    os.chmod(folder, PRIVATE)  # a umask may have taken the owner's bits, too


def others_write(found: os.stat_result) -> bool:
    """Whether other users may write a file or folder."""
    if not _HAS_OWNERS:
        return False
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_private_group(found.st_gid)


def _is_private_group(number: int) -> bool:
    """Whether a group is root's, or has this user as its only member: with such groups, named as
    their users, the usual umask lets the group write."""
    if number == 0:
        return True
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return (
        group.gr_name == user.pw_name
        and user.pw_gid == number
        and set(group.gr_mem) <= {user.pw_name}
    )


def problem_of_file(found: os.stat_result, largest: int | None) -> str:
    """Say why an open file is none that clfuse has written: not regular, another's, or too large;
    empty if it may be."""
    if not stat.S_ISREG(found.st_mode):
        return "is no regular file"
    if _HAS_OWNERS and found.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (number {found.st_uid})"
    if others_write(found):
        return f"may be written by others (mode {stat.S_IMODE(found.st_mode):o})"
    if largest is not None and found.st_size > largest:
        return f"has {found.st_size:,} bytes, more than {largest:,}"
    return ""
