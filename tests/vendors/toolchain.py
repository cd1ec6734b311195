"""Finds the compilers, and says what is missing; ci/setup brings them.

- Clang with libclc, its library of OpenCL C's built-in functions, of the same version: Debian's and
  Ubuntu's clang-15 and libclc-15. It makes NVIDIA's PTX and AMD's machine code.
- ptxas of CUDA 12, the last one that knows sm_70: the wheel nvidia-cuda-nvcc-cu12.
- ocloc, which runs Intel's compiler: Debian's intel-opencl-icd or Ubuntu's intel-ocloc, unpacked
  into a folder and not installed, because a driver without its device would be there for every
  program on the machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["MissingError", "Toolchain", "find"]

ROOT = Path(__file__).parent.parent.parent

#: Where ci/setup unpacks what it does not install.
UNPACKED = ROOT / ".venv" / "vendors"

CLANG_VERSIONS = (15, 16, 17, 18)
"""Newest last; 15 is the one whose figures are in the table."""

LIBCLC = {"nvidia": "nvptx64--nvidiacl.bc", "amd": "amdgcn--amdhsa.bc"}


class MissingError(Exception):
    """A compiler is not there; the text names all that are missing."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The compilers: paths, and versions as they give them."""

    clang: Path
    libclc: Path
    ptxas: Path
    ocloc: Path
    versions: dict[str, str]


@lru_cache(maxsize=1)
def find() -> Toolchain:
    """All compilers.

    Raises
    ------
    MissingError
        Some are not there.
    """
    missing = []
    clang, libclc = _clang()
    if clang is None or libclc is None:
        missing.append("clang-15 and libclc-15 (apt)")
    ptxas = _ptxas()
    if ptxas is None:
        missing.append("ptxas (the wheel nvidia-cuda-nvcc-cu12)")
    ocloc = _ocloc()
    if ocloc is None:
        packages = "intel-opencl-icd or intel-ocloc"
        missing.append(f"ocloc ({packages}, unpacked into {UNPACKED.relative_to(ROOT)})")
    if missing:
        raise MissingError(f"missing: {', '.join(missing)}; ci/setup installs them as root")
    assert clang is not None
    assert libclc is not None
    assert ptxas is not None
    assert ocloc is not None
    versions = {
        "clang": _version([str(clang), "--version"], r"clang version (\S+)"),
        "ptxas": _version([str(ptxas), "--version"], r"\bV(\d\S+)"),
        "igc": _igc_version(ocloc),
    }
    return Toolchain(clang, libclc, ptxas, ocloc, versions)


def _version(command: list[str], pattern: str) -> str:
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(pattern, text)
    return found[1] if found else text.strip().splitlines()[-1]


def _clang() -> tuple[Path | None, Path | None]:
    for version in CLANG_VERSIONS:
        clang = shutil.which(f"clang-{version}")
        folders = [Path("/usr/lib/clc"), UNPACKED / "usr/lib/clc"]
        for folder in folders:
            # Debian's libclc packages exclude each other, and bitcode is for the version it is of.
            if clang and all((folder / name).exists() for name in LIBCLC.values()):
                return Path(clang), folder
    return None, None


def _ptxas() -> Path | None:
    path = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cuda_nvcc" / "bin" / "ptxas"
    return path if os.access(path, os.X_OK) else None


def _ocloc() -> Path | None:
    found = sorted(UNPACKED.glob("usr/lib/*/libocloc.so"))
    return found[0] if found else None


def _igc_version(ocloc: Path) -> str:
    """Intel's compiler is a library that ocloc loads, and has no way to ask it for its version."""
    for folder in (ocloc.parent, Path("/usr/lib") / ocloc.parent.name, Path("/usr/local/lib")):
        library = folder / "libigc.so.1"
        if library.exists():
            return hashlib.sha256(library.read_bytes()).hexdigest()[:12]
    raise MissingError(f"missing: libigc.so.1, which {ocloc} needs (libigc1, apt)")
