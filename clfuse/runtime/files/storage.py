"""The user's folder of kept files: where it lies, and how its files are read and written.

The folder is believed only if it is this user's alone (`trust`). Where no folder can be had, or
nothing can be written, everything works without, and one warning says why.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from clfuse.errors import DeviceWarning, warn_user

from . import trust

__all__ = [
    "append_line",
    "cache_folder",
    "has_room",
    "open_ours",
    "open_to_append",
    "read_checked",
    "read_ours",
    "runs_programs",
    "subfolder",
    "tail_of_lines",
    "temporary_folder",
    "warn_once",
    "write_checked",
    "write_whole",
]

CACHE_VARIABLE: Final = "XDG_CACHE_HOME"

#: Folders of earlier versions: the Python modules of templates, which are imported no more.
OBSOLETE: Final = ("templates",)

_checked: dict[tuple[str | None, int], Path | None] = {}
"""Path, and the user's number -> the folder if it is ours: asked once a process."""

_has_warned = False


def warn_once(problem: object) -> None:
    """Say why there is no cache, or why nothing is kept in it: once a process."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warn_user(
            f"clfuse keeps no compiled kernels between runs: {problem}. Results are the same, first"
            f" calls slower; {CACHE_VARIABLE} names another folder, and `python -m clfuse cache"
            " clear` removes what is there",
            DeviceWarning,
        )


def _cache_root() -> str | None:
    """Return the folder of all caches of this user; None for a user without a home."""
    root = os.environ.get(CACHE_VARIABLE)
    if not root and os.environ.get("HOME") != "":
        root = os.path.expanduser("~/.cache")
    # Where there is no home, the tilde stays.
    return root if root and os.path.isabs(root) else None


def cache_folder() -> Path | None:
    """Return the user's folder for clfuse, which is there and this user's alone; None, with one
    warning, where there is none."""
    root = _cache_root()
    return _checked_once(None if root is None else os.path.join(root, "clfuse"))


def subfolder(name: str) -> Path | None:
    """Return a folder within the user's folder for clfuse, which is there and this user's alone;
    None, with one warning, where it is not."""
    folder = cache_folder()
    return None if folder is None else _checked_once(str(folder / name))


def is_ours(folder: str) -> bool:
    """Whether a folder that the user has named is this user's alone; one warning where it is
    not."""
    return _checked_once(folder, is_users=True) is not None


def _checked_once(folder: str | None, *, is_users: bool = False) -> Path | None:
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    key = folder, user
    if key not in _checked:
        found, problem = _check(folder)
        _checked[key] = found
        if found is None:
            warn_once(problem)
        elif not is_users:
            trust.close_to_others(str(found))
            for name in OBSOLETE:
                shutil.rmtree(found / name, ignore_errors=True)
    return _checked[key]


def _check(folder: str | None) -> tuple[Path | None, str]:
    if folder is None:
        return None, "this user has no home"
    # Symbolic links are followed now and not again.
    place = os.path.realpath(folder)
    try:
        problem = trust.trouble_with(place)
    except OSError as error:
        return None, str(error)
    return (None, problem) if problem else (Path(place), "")


def forget() -> None:
    """Look at the folders again when they are asked for next, and warn again."""
    global _has_warned
    _checked.clear()
    _has_warned = False


# -- files -----------------------------------------------------------------------------------------

_NOT_WAITING: Final = (
    getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)  # fmt: skip


def open_ours(path: Path, largest: int | None = None) -> io.BufferedReader:
    """Open a file that clfuse may have written: no link, no pipe, no device, no other user's.

    path: in a folder that is ours.
    largest: bytes that it may have.

    Raises FileNotFoundError: there is none.
    Raises OSError: it is something else, or cannot be read.
    """
    handle = os.open(path, os.O_RDONLY | _NOT_WAITING)
    try:
        problem = trust.problem_of_file(os.fstat(handle), largest)
        if problem:
            raise OSError(errno.EINVAL, problem, str(path))
    except BaseException:
        os.close(handle)
        raise
    return open(handle, "rb")


def read_ours(path: Path, largest: int) -> bytes:
    """Return what is in a file that clfuse may have written; raises as `open_ours` does."""
    with open_ours(path, largest) as file:
        return file.read(largest)


def open_to_append(path: Path) -> int:
    """Open a file to append to it and return its descriptor; another kind of thing in its place is
    removed.

    Raises OSError: it cannot be made or written.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NOT_WAITING
    trust.make(str(path.parent))
    for _ in range(2):
        try:
            handle = os.open(path, flags, 0o600)
        except OSError as error:
            # A symbolic link; a pipe that no process reads.
            if error.errno not in (errno.ELOOP, errno.ENXIO):
                raise
            problem = str(error)
        else:
            problem = trust.problem_of_file(os.fstat(handle), None)
            if not problem:
                return handle
            os.close(handle)
        path.unlink()
    raise OSError(errno.EINVAL, problem, str(path))


def write_whole(path: Path, contents: bytes) -> None:
    """Write a file so that another process sees all of it or none, and no other user reads it.

    Raises OSError: the folder cannot be made or written.
    """
    trust.make(str(path.parent))
    handle, temporary = tempfile.mkstemp(prefix=path.name[:100], dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


MAGIC: Final = b"clfuse 1\n"
"""What a checked file begins with; then a digest follows, and the contents."""


def tail_of_lines(path: Path | None, largest: int) -> bytes:
    """The bytes of a file of lines, of one that is larger than that the last ones; none where there
    is no file. The reader tells by a pattern which lines are whole."""
    if path is None:
        return b""
    try:
        with open_ours(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - largest))
            return file.read(largest)
    except OSError:
        return b""


def append_line(path: Path, line: bytes, pattern: re.Pattern[bytes], largest: int) -> None:
    """Append a line to a file that other processes append to, too; where it is as large as that,
    the older half of its whole lines goes, and all that is not one.

    Parameters
    ----------
    path : Path
    line : bytes
        Without its end.
    pattern : re.Pattern
        Fits whole lines, without their ends.
    largest : int
        Bytes of the file.

    Raises OSError: it cannot be written.
    """
    try:
        is_full = path.lstat().st_size >= largest
    except FileNotFoundError:
        is_full = False
    if is_full:
        lines = [match[0] + b"\n" for match in pattern.finditer(tail_of_lines(path, largest))]
        write_whole(path, b"".join(lines[len(lines) // 2 :]))
    # The line ends one that another process has left unfinished. One write: others' come before it
    # or after it.
    handle = open_to_append(path)
    try:
        os.write(handle, b"\n" + line + b"\n")
    finally:
        os.close(handle)


def write_checked(path: Path, contents: bytes) -> None:
    """Write a file with a digest over its name, its length and its contents: for machine code,
    which drivers believe, and one flipped bit of which ends the process or computes something else.

    Raises OSError: the folder cannot be made or written.
    """
    write_whole(path, MAGIC + _digest(contents, path.name) + contents)


def read_checked(path: Path, largest: int) -> bytes | None:
    """Return what `write_checked` has written; None where there is no such file. One that is
    damaged, of another name, or no regular file is removed."""
    start = len(MAGIC) + hashlib.sha256().digest_size
    try:
        found = read_ours(path, start + largest)
    except FileNotFoundError:
        return None
    except OSError:  # a pipe, a link, another user's
        pass
    else:
        contents = found[start:]
        if found[:start] == MAGIC + _digest(contents, path.name):
            return contents
    with suppress(OSError):
        path.unlink()
    return None


def _digest(contents: bytes, name: str) -> bytes:
    digest = hashlib.sha256(b"%s\0%d\0" % (name.encode(), len(contents)))
    digest.update(contents)
    return digest.digest()


#: Where temporary folders may be besides Python's choice, which may be on a full disk.
MORE_PLACES: Final = ("/dev/shm", "/var/tmp")

# -- room ------------------------------------------------------------------------------------------


def has_room(folder: str, nbytes: int) -> bool:
    """Whether a disk has as many bytes left for this user, as far as it says so.

    Raises OSError: there is no such folder.
    """
    if not hasattr(os, "statvfs"):
        return True
    disk = os.statvfs(folder)
    # Some file systems have no size.
    return disk.f_blocks == 0 or disk.f_bavail * disk.f_frsize >= nbytes


def runs_programs(folder: str) -> bool:
    """Whether machine code may be loaded from a disk, as far as it says so: some are mounted so
    that it may not (``noexec``)."""
    if not hasattr(os, "ST_NOEXEC"):
        return True
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC


def temporary_folder(nbytes: int) -> str | None:
    """Make a private folder for machine code on a disk with that much room, which goes when the
    process ends; None where there is no such disk."""
    import atexit

    try:
        places = [tempfile.gettempdir(), *MORE_PLACES]
    except FileNotFoundError:  # no folder of them takes a file
        places = [*MORE_PLACES]
    for place in places:
        try:
            if not (has_room(place, nbytes) and runs_programs(place)):
                continue
            made = os.path.realpath(tempfile.mkdtemp(prefix="clfuse-cache-", dir=place))
            atexit.register(_remove, made, os.getpid())
            if not trust.trouble_with(made):
                return made
        except OSError:
            continue
    return None


def _remove(folder: str, process: int) -> None:
    # A process that was forked from this one needs it no less.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
