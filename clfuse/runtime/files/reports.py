"""Report files: source and log of a kernel that a compiler refused.

One file a text: a kernel that fails again writes its file again. The oldest go first.
"""

from __future__ import annotations

import hashlib
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from .storage import cache_folder, write_whole

__all__ = ["write_report"]

REPORTS_KEPT: Final = 32
"""Files at most: a program that is refused seldom has more kernels of that kind."""

NAME_LENGTH: Final = 80
"""Characters of a kernel's name in the name of its file, which may have 255 on most systems."""


def write_report(name: str, text: str) -> str:
    """Write what a compiler still takes into a file, and return its path."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    file = f"clfuse-{name[:NAME_LENGTH]}-{digest}.cl"
    kept = cache_folder()
    if kept is not None:
        try:
            return _written(kept / "reports", file, text)
        except OSError:
            pass  # a home that cannot be written
    return _written(_own_folder(), file, text)


def _written(folder: Path, file: str, text: str) -> str:
    write_whole(folder / file, text.encode())
    reports = sorted(folder.glob("clfuse-*.cl"), key=_written_at)
    for old in reports[:-REPORTS_KEPT]:
        old.unlink(missing_ok=True)
    return str(folder / file)


def _written_at(path: Path) -> float:
    """When a report was written; 0 where another process has just taken it away."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@cache
def _own_folder() -> Path:
    """A folder of this process, where there is no cache."""
    return Path(tempfile.mkdtemp(prefix="clfuse-reports-"))
