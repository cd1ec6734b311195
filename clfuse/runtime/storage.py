"""Where files are kept between runs; `device`, `vendors` and `compiler` of the runtime ask here."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["cache_folder", "writable_cache", "write_whole"]

CACHE_VARIABLE = "XDG_CACHE_HOME"


def _cache_root() -> Path | None:
    """Return the folder of all caches of this user; None for a user without a home."""
    root = os.environ.get(CACHE_VARIABLE) or os.path.expanduser("~/.cache")
    # Where there is no home, the tilde stays.
    return Path(root) if os.path.isabs(root) else None


def cache_folder() -> Path | None:
    """Return the user's cache folder for clfuse, which need not exist; None without a home."""
    root = _cache_root()
    return root / "clfuse" if root is not None else None


@contextmanager
def writable_cache() -> Iterator[None]:
    """Give drivers a temporary cache where the user's cannot be written, for the length of a block.

    Without one PoCL lists no device and pyopencl cannot call a kernel: so it is in a container that
    runs under a user of its own. Both remember, when they start, where their cache is, so that
    starting them is what belongs into the block. The temporary folder goes when the process ends.
    """
    root = _cache_root()
    if root is not None and _is_writable(root):
        yield
        return
    import shutil  # rarely needed, and they import much
    import tempfile

    temporary = tempfile.mkdtemp(prefix="clfuse-cache-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    before = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = temporary
    try:
        yield
    finally:
        if before is None:
            del os.environ[CACHE_VARIABLE]
        else:
            os.environ[CACHE_VARIABLE] = before


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def write_whole(path: Path, contents: bytes) -> None:
    """Write a file so that another process sees all of it or none.

    Raises
    ------
    OSError
        The folder cannot be made or written.
    """
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
