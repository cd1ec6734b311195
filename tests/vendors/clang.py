"""OpenCL C to the assembly of one of Clang's targets, with libclc's built-in functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.vendors.running import run
from tests.vendors.toolchain import LIBCLC, Toolchain

__all__ = ["compile_to_assembly"]

STANDARD = "CL1.2"
"""What a driver takes a program for where nothing else is asked."""


def compile_to_assembly(
    tools: Toolchain, vendor: str, target: Sequence[str], options: str, source: Path
) -> str:
    """Return the assembly of a source file; the compiler's log is in the error if it refuses."""
    assembly = source.with_suffix(f".{vendor}.s")
    run([
        tools.clang, "-x", "cl", f"-cl-std={STANDARD}", "-Xclang", "-finclude-default-header",
        *target, "-Xclang", "-mlink-builtin-bitcode", "-Xclang", tools.libclc / LIBCLC[vendor],
        "-O3", "-w", *options.split(), "-S", source, "-o", assembly,
    ])
    return assembly.read_text(encoding="utf-8")
