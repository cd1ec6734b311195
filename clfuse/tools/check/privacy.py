"""Removes private facts from a report: names of users and hosts, and places of files."""

from __future__ import annotations

import getpass
import os
import platform
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["public"]

COMMON: Final = frozenset(
    "root user admin runner ubuntu debian localhost nobody home python clfuse numpy docker".split()
)
"""Names that say nothing of anybody, and that are words of reports, too."""

LEAST_LETTERS: Final = 3
"""Of a name: a shorter one is part of too many words."""

PUBLIC_FOLDERS: Final = ("/etc/OpenCL/", "/usr/lib/", "/usr/share/", "/usr/include/")

_PATH = re.compile(r"""(?<![\w:/.<>])(?:/|[A-Za-z]:[\\/]|~/)[^\s"'`,;:()\[\]{}<>|]*[\\/]?""")


def _names() -> dict[str, str]:
    """Names of this machine and its user -> what stands for them."""
    found = {platform.node(): "<host>", platform.node().split(".")[0]: "<host>"}
    with suppress(KeyError, OSError, ImportError):  # there may be no such entry
        found[getpass.getuser()] = "<user>"
    found[Path(os.path.expanduser("~")).name] = "<user>"
    return {
        name: mark for name, mark in found.items()
        if len(name) >= LEAST_LETTERS and name.lower() not in COMMON
    }


def _folders() -> dict[str, str]:
    """Folders whose place is private -> what stands for them, the longest first."""
    package = str(Path(__file__).parents[2])
    found = {
        package: "clfuse", os.path.expanduser("~"): "~", tempfile.gettempdir(): "<tmp>",
    }  # fmt: skip
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def _shortened(match: re.Match[str]) -> str:
    path = match[0]
    if path.startswith(PUBLIC_FOLDERS) or path.count("/") + path.count("\\") < 2:
        return path
    return "<...>/" + path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def public(text: str, names: Mapping[str, str] | None = None) -> str:
    """The text without folders, but for public ones, and without names of the user and host.

    Examples
    --------
    >>> public("KernelBuildError: see /home/jane/papers/a.cl", {"jane": "<user>"})
    'KernelBuildError: see <...>/a.cl'
    >>> public("on jane-pc by jane", {"jane": "<user>", "jane-pc": "<host>"})
    'on <host> by <user>'
    >>> public("/etc/OpenCL/vendors/pocl.icd, 3 / 4, float32/float64")
    '/etc/OpenCL/vendors/pocl.icd, 3 / 4, float32/float64'
    """
    for folder, mark in _folders().items():
        if len(folder) > 1:
            text = text.replace(folder, mark)
    text = _PATH.sub(_shortened, text)
    known = _names() if names is None else names
    for name in sorted(known, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", known[name], text)
    return text
