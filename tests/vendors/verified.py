"""Which programs were compiled for all targets and kept their bars, by which compilers.

``verified.txt`` has the versions and a digest of each program: CI, which begins with nothing, need
not compile these again. `__main__` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.vendors.programs import Program

__all__ = ["digest", "read", "write"]

PATH = Path(__file__).parent / "verified.txt"

DIGEST_LENGTH = 12
"""Hexadecimal digits. Of ten thousand programs one in 10**10 new ones has a digest by chance."""

FORMAT = "1"
"""Change it when what is checked of a program changes: all are compiled again then."""


def digest(program: Program) -> str:
    """The digest of a program."""
    return program.key[:DIGEST_LENGTH]


def read(versions: dict[str, str]) -> set[str]:
    """The digests of verified programs; none where other compilers have verified them."""
    if not PATH.exists():
        return set()
    lines = PATH.read_text(encoding="utf-8").splitlines()
    if lines[: len(versions) + 1] != _header(versions):
        return set()
    return set(lines[len(versions) + 1 :])


def write(versions: dict[str, str], programs: Iterable[Program]) -> None:
    """Replace the file."""
    lines = [*_header(versions), *sorted({digest(program) for program in programs})]
    PATH.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _header(versions: dict[str, str]) -> list[str]:
    return [f"# format {FORMAT}", *[f"# {name} {version}" for name, version in versions.items()]]
