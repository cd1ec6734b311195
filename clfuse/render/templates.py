"""Finds and renders the Mako templates and the OpenCL C library; used by `render.kernels` alone.

Installed from a wheel they are the package `clfuse.kernels`; in a checkout they lie in ``kernels/``
beside the package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from .expressions import Preamble

_HEAD: Final = "#ifndef __FAST_RELAXED_MATH__\n#pragma OPENCL FP_CONTRACT OFF\n#endif\n"
"""No fused multiply-add but under fast-math: NumPy's bits have two roundings."""

_FP64: Final = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"


@cache
def folder() -> Path:
    """The folder that holds ``*.cl.mako`` and ``lib/*.cl``."""
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "kernels", package.parent / "kernels"):
        if (candidate / "map.cl.mako").is_file():
            return candidate
    raise FileNotFoundError(
        f"clfuse's kernel templates: neither {package / 'kernels'} nor "
        f"{package.parent / 'kernels'} has them; "
        "reinstall clfuse"
    )


@cache
def library(name: str) -> str:
    """The text of ``kernels/lib/<name>``: plain OpenCL C, not rendered."""
    return (folder() / "lib" / name).read_text(encoding="utf-8")


_kept_in: Path | None = None


def keep_in(place: Path | None) -> None:
    """Keep templates as the Python modules that Mako makes of them in a folder, which need not
    exist: a later process takes 1 ms for one in place of 7 to 60."""
    global _kept_in
    _kept_in = place


@cache
def _template(name: str) -> Any:
    from mako.template import Template

    source = folder() / name
    if _kept_in is not None:
        digest = hashlib.blake2b(source.read_bytes(), digest_size=16).hexdigest()
        kept = str(_kept_in / f"{name}-{digest}.py")
        try:
            return Template(filename=str(source), module_filename=kept, strict_undefined=True)
        except Exception:  # noqa: BLE001
            # A folder that cannot be written, or a damaged module, which may fail in any way. The
            # text is there; what is wrong with it fails below.
            pass
    return Template(filename=str(source), strict_undefined=True)


def render(name: str, context: Mapping[str, Any]) -> str:
    """Render ``kernels/<name>``."""
    return str(_template(name).render(**context))


def head(preamble: Preamble, fp64: bool) -> tuple[str, ...]:
    """What stands above a kernel: pragmas, library files, instantiated macros."""
    parts = [_HEAD]
    if fp64:
        parts.append(_FP64)
    parts += [library(name) + "\n" for name in preamble.libraries]
    parts += [f"{define}\n" for define in preamble.defines]
    return tuple(parts)
