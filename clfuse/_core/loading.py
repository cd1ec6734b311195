"""Loads the compiled part of clfuse, where there is one that fits the source beside it.

``compiled.pyx`` has the common cases of recording in C. ``setup.py`` builds it where there are
Cython and a C compiler; without it clfuse does the same in Python. A build from another text than
the one beside it (after an edit, or on another branch) is not used.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType

from clfuse.config import at_import

__all__ = ["FOLDER", "digest", "find", "load", "state"]

FOLDER = Path(__file__).parent
"""Where what was compiled lies, ``*.pyx`` and ``*.pxi``. A wheel has it too; without it there is
nothing to compare."""

STALE = (
    f"clfuse's compiled module was built from another text than that in {FOLDER}: plain Python is "
    "used instead; build it anew with `pip install -e .` (or ci/setup)"
)

_state = ["not asked for yet"]


INCLUDED = (
    "elementary.cl", "exponential.cl", "logarithm.cl", "normal.cl", "philox.cl", "rejection.cl",
)
"""What it reads of the kernels' library."""


def digest(folder: Path) -> str:
    """What `setup.py` puts into the module, of the text that it is built from."""
    here = Path(__file__).parent.parent
    library = here / "kernels" / "lib"  # of a wheel; beside the package in a checkout
    if not library.is_dir():
        library = here.parent / "kernels" / "lib"
    paths = sorted(folder.glob("*.p[yx][xi]"))
    paths += [library / name for name in INCLUDED]
    return hashlib.sha256(b"".join([path.read_bytes() for path in paths])).hexdigest()


def state() -> str:
    """What became of it, in words."""
    return _state[0]


@cache
def load() -> ModuleType | None:
    """The compiled module, or None where it is not there, not up to date or not wanted."""
    module, _state[0] = find()
    return module


def find() -> tuple[ModuleType | None, str]:
    """As `load`, looked for anew, with what became of it."""
    if not at_import("compiled"):
        return None, "off (CLFUSE_COMPILED)"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None, "off: it counts on the interpreter's lock"
    try:
        module = importlib.import_module("clfuse._core.compiled")
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        return None, "not built" if is_missing else f"cannot be loaded: {error}"
    if (FOLDER / "compiled.pyx").is_file() and digest(FOLDER) != module.SOURCE:
        warnings.warn(STALE, RuntimeWarning, stacklevel=2)
        return None, "not used: built from another text than the one that is here"
    return module, "in use"
