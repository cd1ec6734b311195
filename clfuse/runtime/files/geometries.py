"""Geometries that tuning has chosen for kernels, kept in the user's cache between runs.

The file is text, a line a kernel: the device with its driver, the kernel with the size of its
arrays, what is changed, its time before and after, how much was tried, and its name. It is read
once and appended to; a later line about the same kernel counts, and a run goes on where another has
left off. Only lines that are whole are believed: one that another process is still writing, or left
incomplete when it died, is lost, and nothing else. What a line says is checked once more by who
makes the kernel, and no result depends on it.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from pathlib import Path
from typing import Final

from clfuse.dataclass import frozen
from clfuse.process import locks
from clfuse.target.traits import DeviceTraits

from .storage import append_line, cache_folder, tail_of_lines, warn_once

__all__ = ["Kept", "about", "find", "forget", "note", "of_device"]

FILE_NAME: Final = "geometries.txt"

FORMAT: Final = 1
"""Stands before every line: change it when the meaning of one changes."""

LARGEST_FILE: Final = 1 << 20
"""Bytes, some 8,000 kernels: where it is reached, the older half goes."""

MOST_KNOWN: Final = 1 << 14
"""Kernels that are known, more than a file has: where they are more, the file is read again."""

_CHANGE: Final = rb"[a-z_]{1,20}=\d{1,9}"

_LINE: Final = re.compile(
    rb"^%d ([0-9a-f]{16}) ([0-9a-f]{32}) (-|%s(?:,%s){0,7}) (\d{1,15}) (\d{1,15}) (\d{1,3})"
    rb" (\w{1,200}) ([0-9a-f]{8})$" % (FORMAT, _CHANGE, _CHANGE),
    re.MULTILINE | re.ASCII,
)


@frozen
class Kept:
    """What was chosen for a kernel.

    kernel: its name in OpenCL C.
    changes: fields of its geometry with the values that are better than those that were planned;
        none where these are the best.
    before_ns, after_ns: its usual times, as it was planned and with the changes.
    tried: how many of its candidates were tried, in their order.
    key: the kernel with the size of its arrays.
    """

    kernel: str
    changes: tuple[tuple[str, int], ...]
    before_ns: int
    after_ns: int
    tried: int
    key: str

    def __str__(self) -> str:
        if not self.changes:
            return "as planned, which no other geometry was better than"
        changed = ", ".join([f"{name} {value}" for name, value in self.changes])
        saved = round(100 * (1 - self.after_ns / max(self.before_ns, 1)))
        before, after = self.before_ns / 1e3, self.after_ns / 1e3
        return f"{changed}: {after:,.0f} us instead of {before:,.0f} us, {saved}% less"


_known: Final[dict[Path | None, dict[tuple[str, str], Kept]]] = {}
"""File, or None without one -> (device, kernel) -> what was in it when it was read, and what this
process has noted since."""

_lock = locks.make()


def about(traits: DeviceTraits) -> str:
    """A device with its driver, as the file names it."""
    names = [traits.name, traits.platform, traits.vendor, traits.driver, str(traits.compute_units)]
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]


def find(device: str, key: str) -> Kept | None:
    """What was chosen for a kernel, in an earlier run or in this one; None if nothing was."""
    with _lock:
        return _read(_path()).get((device, key))


def of_device(device: str) -> list[Kept]:
    """What was chosen for all kernels of a device, in the order in which it was."""
    with _lock:
        return [kept for (about, _), kept in _read(_path()).items() if about == device]


def note(device: str, kept: Kept) -> None:
    """Keep a choice for later runs, which tune again where it cannot be written."""
    path = _path()
    with _lock:
        if len(_read(path)) >= MOST_KNOWN:
            del _known[path]
        known = _read(path)
        known.pop((device, kept.key), None)
        known[device, kept.key] = kept
        if path is None:
            return
        try:
            append_line(path, _line(device, kept), _LINE, LARGEST_FILE)
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


def _read(path: Path | None) -> dict[tuple[str, str], Kept]:
    found = _known.get(path)
    if found is None:
        found = _known[path] = {}
        for match in _LINE.finditer(tail_of_lines(path, LARGEST_FILE)):
            device, key, changes, before, after, tried, name, check = match.groups()
            if b"%08x" % zlib.crc32(match[0][: -len(check) - 1]) != check:
                continue
            pairs = [] if changes == b"-" else changes.decode().split(",")
            chosen = tuple([(field, int(number)) for field, number in map(_split, pairs)])
            place = device.decode(), key.decode()
            found.pop(place, None)
            found[place] = Kept(
                name.decode(), chosen, int(before), int(after), int(tried), key.decode()
            )
    return found


def _split(change: str) -> tuple[str, str]:
    field, _, number = change.partition("=")
    return field, number


def _line(device: str, kept: Kept) -> bytes:
    changes = ",".join([f"{name}={value}" for name, value in kept.changes]) or "-"
    numbers = f"{kept.before_ns} {kept.after_ns} {kept.tried}"
    name = re.sub(r"\W", "_", kept.kernel, flags=re.ASCII)[:200]
    text = f"{FORMAT} {device} {kept.key} {changes} {numbers} {name}".encode()
    return b"%s %08x" % (text, zlib.crc32(text))
