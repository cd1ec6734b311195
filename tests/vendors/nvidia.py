"""NVIDIA: Clang makes PTX of a source, as NVIDIA's driver does, and ptxas machine code of that.

What ptxas says of each kernel are its figures; how wide it loads stands in the PTX, which ptxas
follows.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.vendors.clang import compile_to_assembly
from tests.vendors.figures import CompileError, Figures
from tests.vendors.running import run
from tests.vendors.toolchain import Toolchain

__all__ = ["assembly", "figures"]

PTX_VERSION = "7.8"
"""The first that knows sm_90."""

_TARGET = (
    "-target", "nvptx64-nvidia-nvcl",
    # NVIDIA's driver has them, Clang's description of its chips has not.
    "-Xclang", "-cl-ext=+cl_khr_int64_base_atomics,+cl_khr_int64_extended_atomics",
)

_ENTRY = re.compile(r"^(?:\.visible )?\.entry (\w+)\(", re.MULTILINE)
_LOAD = re.compile(r"\bld\.(?:volatile\.)?global(?:\.nc)?(?:\.v(\d))?\.[a-z](\d+)")
_COMPILED = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads.*?Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
_LOCAL = re.compile(r"(\d+) bytes smem")


def assembly(tools: Toolchain, source: Path, options: str) -> str:
    """The PTX of a source file."""
    target = list(_TARGET)
    if re.search(r"\batom_\w", source.read_text(encoding="utf-8")):
        target += ["-include", str(Path(__file__).parent / "nvidia_atomics.cl")]
    return compile_to_assembly(tools, "nvidia", target, options, source)


def figures(
    tools: Toolchain, chips: tuple[str, ...], source: Path, options: str
) -> dict[str, dict[str, Figures]]:
    """Figures of each kernel of a source file for each chip: ``{"sm_90": {"kernel": ...}}``."""
    ptx = assembly(tools, source, options)
    loads = widest_loads(ptx)
    found = {}
    for chip in chips:
        path = source.with_suffix(f".{chip}.ptx")
        path.write_text(for_chip(ptx, chip), encoding="utf-8")
        log = run([tools.ptxas, f"-arch={chip}", "-v", path, "-o", path.with_suffix(".cubin")])
        found[chip] = kernels_of_log(log, loads)
        if set(found[chip]) != set(loads):
            raise CompileError(f"ptxas says nothing of {sorted(set(loads) - set(found[chip]))}")
    return found


def for_chip(ptx: str, chip: str) -> str:
    """The same PTX for a chip: Clang writes the oldest version and chip that it needs."""
    ptx = re.sub(r"^\.version .*$", f".version {PTX_VERSION}", ptx, flags=re.MULTILINE)
    return re.sub(r"^\.target .*$", f".target {chip}", ptx, flags=re.MULTILINE)


def widest_loads(ptx: str) -> dict[str, int]:
    """Each kernel's widest load from global memory, in bytes."""
    entries = list(_ENTRY.finditer(ptx))
    ends = [*[entry.start() for entry in entries], len(ptx)][1:]
    return {
        entry[1]: max(
            (int(lanes or 1) * int(bits) // 8 for lanes, bits in
             _LOAD.findall(ptx, entry.end(), end)),
            default=0,
        )
        for entry, end in zip(entries, ends, strict=True)
    }


def kernels_of_log(log: str, loads: dict[str, int]) -> dict[str, Figures]:
    """The figures in what ``ptxas -v`` says."""
    found = {}
    for each in _COMPILED.finditer(log):
        spilled = max(int(each["stores"]), int(each["loads"]))
        local = _LOCAL.search(each["rest"])
        # A stack frame holds what is spilled, too.
        found[each["name"]] = Figures(
            int(each["registers"]), spilled, max(0, int(each["stack"]) - spilled),
            int(local[1]) if local else 0, loads.get(each["name"], 0),
        )
    return found
