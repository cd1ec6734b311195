"""Where the runtime keeps files between runs; `runtime.vendors` and `runtime.compiler` ask here."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["cache_folder", "write_whole"]


def cache_folder() -> Path | None:
    """Return the user's cache folder for clfuse, which need not exist yet; None for a user without
    a home."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Where there is no home, the tilde stays.
    return Path(root, "clfuse") if os.path.isabs(root) else None


def write_whole(path: Path, contents: bytes) -> None:
    """Write a file so that another process sees all of it or none.

    Raises
    ------
    OSError
        The folder cannot be made or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
