"""Finds and renders the Mako templates and the OpenCL C library.

Installed from a wheel they are the package `clfuse.kernels`; in a checkout they lie in ``kernels/``
beside the package.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from clfuse.process import deferred

from .lines.expressions import Preamble

_HEAD: Final = "#ifndef __FAST_RELAXED_MATH__\n#pragma OPENCL FP_CONTRACT OFF\n#endif\n"
"""No fused multiply-add but under fast-math: NumPy's bits have two roundings."""

SHIPPED: Final = "compiled"
"""The folder beside the templates where ``setup.py`` puts the modules that Mako makes of them."""

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


@cache
def _prepare_mako() -> None:
    """Import what Mako imports at its start, without Pygments, which would color its pages of
    errors, and without the entry points of its plugins: 4 ms in place of 60."""
    if "mako.exceptions" in sys.modules:
        return
    with deferred.found_by({"importlib.metadata": deferred.Deferring}):
        import importlib.metadata  # noqa: F401
    if "pygments" in sys.modules:
        return
    coloring = "mako.ext.pygmentplugin"
    sys.modules[coloring] = None  # type: ignore[assignment]  # an ImportError, which Mako expects
    try:
        import mako.exceptions  # noqa: F401
    finally:
        del sys.modules[coloring]


@cache
def _template(name: str) -> Any:
    _prepare_mako()
    source = folder() / name
    shipped = _shipped(source)
    if shipped is not None:
        from mako.template import ModuleTemplate

        return ModuleTemplate(shipped, template_filename=str(source))
    from mako.template import Template

    return Template(filename=str(source), strict_undefined=True)


def _shipped(source: Path) -> ModuleType | None:
    """The Python module that ``setup.py`` made of a template, which lies beside the templates: 1 ms
    in place of 7 to 60. None where there is none, or it was made of another text or by another
    Mako."""
    from mako.codegen import MAGIC_NUMBER

    place = source.parent / SHIPPED / f"{source.name.replace('.', '_')}.py"
    if not place.is_file():
        return None
    spec = spec_from_file_location(f"{__package__}.{SHIPPED}.{place.stem}", place)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    made_of = getattr(module, "_source_digest", None), getattr(module, "_magic_number", None)
    return module if made_of == (digest, MAGIC_NUMBER) else None


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
