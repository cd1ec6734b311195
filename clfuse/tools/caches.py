"""The caches on disk: clfuse's, pyopencl's and the drivers'."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["cache_folders", "pyopencls_databases", "summary"]


def pyopencls_databases() -> list[Path]:
    """What pyopencl keeps in the folder of pytools, which keeps there what others do, too: earlier
    versions of clfuse have made them."""
    folder = cache_folders()["pyopencl"].parent / "pytools"
    return sorted(file for file in folder.glob("pdict-*-pyopencl-*.sqlite*") if not file.is_dir())


def cache_folders() -> dict[str, Path]:
    """Where compiled kernels, lists of drivers and measurements are kept: owner -> folder, existing
    or not. PoCL has what it compiles for clfuse in clfuse's, unless a variable names another."""

    home = Path(os.path.expanduser("~/.cache"))
    if os.path.isabs(asked := os.environ.get("XDG_CACHE_HOME", "")):
        home = Path(asked)
    try:
        # pyopencl's own dependency for this; on Linux the result is the same without it.
        import platformdirs
    except ModuleNotFoundError:
        pyopencl = home / "pyopencl"
    else:
        pyopencl = Path(platformdirs.user_cache_dir("pyopencl", "pyopencl"))
    cuda = os.environ.get("CUDA_CACHE_PATH") or os.path.expanduser("~/.nv/ComputeCache")
    folders = {
        "clfuse": home / "clfuse",
        "pyopencl": pyopencl,
        "PoCL": Path(os.environ.get("POCL_CACHE_DIR") or home / "pocl" / "kcache"),
        "NVIDIA": Path(cuda),
    }
    return {name: folder for name, folder in folders.items() if name != "NVIDIA" or folder.is_dir()}


COUNTING_S: Final = 2.0
"""For counting the files of one cache: PoCL's may have some hundred thousand, on a slow disk."""


def summary(folder: Path, most_s: float = COUNTING_S) -> str:
    """A folder's path, and how much is in it, as far as that is found in `most_s` seconds."""
    if not folder.is_dir():
        return f"{folder}: none yet"
    files, nbytes, end, more = 0, 0, time.monotonic() + most_s, ""
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # another process writes and removes files
            found = path.lstat()
            if not stat.S_ISDIR(found.st_mode):
                files += 1
                nbytes += found.st_size
        if time.monotonic() > end:
            more = "more than "
            break
    return f"{folder}: {more}{files} files, {more}{nbytes / 2**20:.1f} MiB"
