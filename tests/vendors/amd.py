"""AMD: Clang makes machine code for its chips, as AMD's driver does."""

from __future__ import annotations

import re
from pathlib import Path

from tests.vendors.clang import compile_to_assembly
from tests.vendors.figures import CompileError, Figures
from tests.vendors.toolchain import Toolchain

__all__ = ["assembly", "figures"]

_KERNEL_BEGINS = re.compile(r"^(\w+):\s+; @\1$", re.MULTILINE)
_KERNEL_ENDS = re.compile(r"^\.Lfunc_end\d+:", re.MULTILINE)
# CDNA2 calls it global_load_dwordx4, RDNA3 global_load_b128.
_LOAD = re.compile(
    r"\b(?:global|flat)_load_(?:dword(?:x(?P<words>\d))?\b|b(?P<bits>\d+)|(?P<small>\w+))"
)
_SMALL_NBYTES = {"ubyte": 1, "sbyte": 1, "u8": 1, "i8": 1, "ushort": 2, "sshort": 2, "u16": 2,
                 "i16": 2, "short_d16": 2, "short_d16_hi": 2, "d16_b16": 2, "d16_hi_b16": 2}
_FIELD = re.compile(r"^    \.(\w+):\s+(\S+)$", re.MULTILINE)


def assembly(tools: Toolchain, source: Path, options: str, chip: str = "gfx90a") -> str:
    """The assembly of a source file for a chip."""
    target = ("-target", "amdgcn-amd-amdhsa", f"-mcpu={chip}", "-nogpulib")
    return compile_to_assembly(tools, "amd", target, options, source)


def figures(
    tools: Toolchain, chips: tuple[str, ...], source: Path, options: str
) -> dict[str, dict[str, Figures]]:
    """Figures of each kernel of a source file for each chip."""
    return {
        chip: kernels_of_assembly(assembly(tools, source, options, chip)) for chip in chips
    }


def kernels_of_assembly(text: str) -> dict[str, Figures]:
    """The figures in an assembly's metadata, and its loads."""
    code, _, metadata = text.partition("amdhsa.kernels:")
    loads = {}
    for begin in _KERNEL_BEGINS.finditer(code):
        end = _KERNEL_ENDS.search(code, begin.end())
        loads[begin[1]] = max(
            map(_load_nbytes, _LOAD.finditer(code, begin.end(), end.start() if end else len(code))),
            default=0,
        )
    found = {}
    # The fields of a kernel are sorted, its arguments (deeper) come first.
    for kernel in re.split(r"^  - (?=\.)", metadata, flags=re.MULTILINE)[1:]:
        fields = dict(_FIELD.findall(kernel))
        name = fields["name"]
        if name not in loads:
            raise CompileError(f"the assembly has metadata, but no code of {name}")
        spilled = 4 * int(fields["vgpr_spill_count"])
        private = int(fields["private_segment_fixed_size"])
        found[name] = Figures(
            int(fields["vgpr_count"]), spilled, max(0, private - spilled),
            int(fields["group_segment_fixed_size"]), loads[name],
        )
    return found


def _load_nbytes(load: re.Match[str]) -> int:
    if load["bits"]:
        return int(load["bits"]) // 8
    if load["small"]:
        return _SMALL_NBYTES[load["small"]]
    return 4 * int(load["words"] or 1)
