"""Intel: ocloc runs IGC, the compiler of Intel's GPU driver, and takes its binaries apart.

Its registers belong to a hardware thread, which runs 8 to 32 work-items. What a thread has in
memory of its own (scratch) are spilled registers and private arrays, not told apart.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.vendors.figures import CompileError, Figures
from tests.vendors.running import run
from tests.vendors.toolchain import Toolchain

__all__ = ["assembly", "figures"]

# Records ("patch tokens", which newer releases write when asked to) of a kernel in a binary, and
# where the figures that are read lie in them; newer ones have a field more before the registers.
_LOCAL, _SCRATCH, _ENVIRONMENT = 15, 18, 23
_NBYTES_AT, _SIMD_AT, _REGISTERS_FROM_END = 4, 12, 52

_TOKEN = re.compile(r"4 Token (\d+)\n\t4 Size \d+\n\tHex ((?:[0-9a-f]{1,2} ?)*)")
# dg2, pvc: load.ugm.d32x4.a64, or .a32 with a buffer's number. With a "t" before the address, it is
# a block that a thread loads for all of its work-items; other addresses are scratch.
_LSC_LOAD = re.compile(r"\bload\.ugm\.d(\d+)(?:u\d+)?(?:x(\d+))?\.a(?:64\b|32\S*\.bti\[)")
# Chips before: "untyped surface read with xyzw", "byte gathering read 16b".
_UNTYPED_READ = re.compile(r"untyped surface read with (x?y?z?w?)")
_GATHERING_READ = re.compile(r"gathering read (\d+)b")


def _run(tools: Toolchain, *arguments: object) -> str:
    folder = str(tools.ocloc.parent)
    program = tools.ocloc.parents[2] / "bin" / "ocloc"
    return run([program, *arguments], LD_LIBRARY_PATH=folder)


def assembly(tools: Toolchain, source: Path, options: str, chip: str) -> dict[str, str]:
    """Each kernel's assembly; that under "" are the records of the binary."""
    folder = source.with_suffix(f".{chip}")
    folder.mkdir()
    log = _run(
        tools, "compile", "-file", source, "-device", chip, "-options", f"-w {options}",
        "-output", "program", "-out_dir", folder, "--format", "patchtokens",
    )
    binaries = list(folder.glob("*.bin"))
    if len(binaries) != 1:
        raise CompileError(f"ocloc, {chip}:\n{log}")
    taken_apart = folder / "apart"
    log = _run(tools, "disasm", "-file", binaries[0], "-dump", taken_apart, "-device", chip)
    found = {}
    for path in taken_apart.glob("*_KernelHeap.asm"):
        found[path.name.removesuffix("_KernelHeap.asm")] = path.read_text(errors="replace")
    if not found:
        raise CompileError(f"ocloc takes nothing apart, {chip}:\n{log}")
    found[""] = (taken_apart / "PTM.txt").read_text()
    return found


def figures(
    tools: Toolchain, chips: tuple[str, ...], source: Path, options: str
) -> dict[str, dict[str, Figures]]:
    """Figures of each kernel of a source file for each chip."""
    return {chip: kernels_of(assembly(tools, source, options, chip)) for chip in chips}


def kernels_of(texts: dict[str, str]) -> dict[str, Figures]:
    """The figures in what `assembly` has found."""
    found = {}
    for record in texts[""].split("KernelBinaryHeader:")[1:]:
        name = re.search(r"KernelName (\w+)", record)
        assert name is not None
        if name[1] not in texts:
            raise CompileError(f"ocloc takes {name[1]} not apart")
        tokens = {int(number): bytes.fromhex("".join(byte.zfill(2) for byte in data.split()))
                  for number, data in _TOKEN.findall(record)}
        scratch = _number(tokens[_SCRATCH], _NBYTES_AT) if _SCRATCH in tokens else 0
        environment = tokens[_ENVIRONMENT]
        simd = _number(environment, _SIMD_AT)
        registers = _number(environment, len(environment) - _REGISTERS_FROM_END)
        found[name[1]] = Figures(
            registers, 0, scratch // max(simd, 1),
            _number(tokens[_LOCAL], _NBYTES_AT) if _LOCAL in tokens else 0,
            widest_load(texts[name[1]]),
        )
    return found


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def widest_load(text: str) -> int:
    """The widest load of a work-item from global memory, in bytes."""
    loads = [int(bits) // 8 * int(lanes or 1) for bits, lanes in _LSC_LOAD.findall(text)]
    loads += [4 * len(components) for components in _UNTYPED_READ.findall(text)]
    loads += [int(bits) // 8 for bits in _GATHERING_READ.findall(text)]
    return max(loads, default=0)
