"""Compiles OpenCL C, or loads the binary that was kept when it was compiled before.

Some drivers keep what they compiled (PoCL, NVIDIA's); for the others the binaries are kept here.
pyopencl has a cache of its own, which is not used: a process that dies while it writes leaves a
lock behind, and every build afterwards waits a minute for it and then fails; it fails, too, where
its folder cannot be written. Measured on Intel's CPU runtime: 60 ms from source, 2.4 ms from a
binary.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import itertools
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clfuse.runtime.files.storage import read_checked, subfolder, warn_once, write_checked

from . import driver_cache, llvm_passes
from .builtins import declarations, names_subgroups
from .processor import instruction_set

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["compile_program", "keeps_builds"]

#: Binaries kept on disk (10 to 50 kB each); above it the half that was not used for longest goes.
BINARIES_LIMIT = 8192

#: How many binaries are written before they are counted again; the first that a process writes
#: counts too.
COUNT_EVERY = 256

#: Enters every key: change it when the format of a file or the meaning of a key changes.
FORMAT = "2"

LARGEST_BINARY: Final = 64 << 20
"""Bytes; a file that has more was not written by us, and a binary that has more is not kept."""

POCL: Final = "Portable Computing Language"

KEEPING: Final = (POCL, "NVIDIA CUDA")
"""Platforms whose drivers keep what they have built, by its source."""

_tell_llvm: Final = functools.cache(llvm_passes.move_nothing)
"""Once a process, as it takes a millisecond: PoCL has loaded its LLVM with itself."""


def compile_program(
    context: cl.Context,
    handle: cl.Device,
    source: str,
    options: str,
    builtins_read: str = "",
    subgroups_read: str = "",
) -> cl._cl._Program:
    """Return a built program.

    context: of that device.
    handle: the one that it is built for.
    source: OpenCL C.
    options: the compiler's options.
    builtins_read, subgroups_read: see `traits.DeviceTraits`.

    Raises pyopencl.Error: the compiler refused, with its log in the text.
    Raises OSError: the compiler was not asked: it would end the process, for want of room on its
        disk.
    """
    from clfuse.runtime.drivers import opencl as cl

    if handle.platform.name == POCL:
        if problem := driver_cache.problem_of_build():
            raise OSError(errno.ENOSPC, problem)
        _tell_llvm()
    if keeps_builds(handle):
        return _from_source(context, handle, source, options, builtins_read, subgroups_read)
    path = _binary_path(handle, source, options)
    program = _load(context, handle, path, options) if path is not None else None
    if program is None:
        program = _from_source(context, handle, source, options, builtins_read, subgroups_read)
        if path is not None:
            binaries: Any = program.get_info(cl.program_info.BINARIES)
            _store(path, next(binary for binary in binaries if binary))
    return program


def keeps_builds(handle: cl.Device) -> bool:
    """Return whether a device's driver keeps on disk what it has built."""
    return handle.platform.name in KEEPING


_takes_declarations: dict[cl.Device, bool] = {}
"""Whether a device's compiler has built its first program, the probe, without its header."""


def _from_source(
    context: cl.Context,
    handle: cl.Device,
    source: str,
    options: str,
    builtins_read: str,
    subgroups_read: str,
) -> cl._cl._Program:
    from clfuse.runtime.drivers import opencl as cl

    without = _without_header(source, builtins_read, subgroups_read)
    if without is not None and _takes_declarations.get(handle, True):
        text, macro = without
        try:
            built = _built(cl._Program(context, text), handle, f"{options} -D{macro}")
        except cl.RuntimeError:
            # The source is wrong, or the device's compiler does not work like this: the
            # header decides.
            built = _built(cl._Program(context, source), handle, options)
            _takes_declarations.setdefault(handle, False)
        else:
            _takes_declarations[handle] = True
        return built
    return _built(cl._Program(context, source), handle, options)


def _without_header(source: str, builtins_read: str, subgroups_read: str) -> tuple[str, str] | None:
    """Return what to build in place of a source, and the macro by which the compiler leaves its
    header out; None if the source needs the header or there is none."""
    if builtins_read:
        declared = declarations(source)
        return None if declared is None else (declared + source, builtins_read)
    if subgroups_read and not names_subgroups(source):
        return source, subgroups_read
    return None


def _built(program: cl._cl._Program, handle: cl.Device, options: str) -> cl._cl._Program:
    """Build with these options alone.

    `pyopencl.Program.build` adds the folder of its own header files, which lies elsewhere in every
    environment: the drivers' caches, whose keys hold the options, would know no program again. And
    it warns of every log, of which Intel's compiler leaves one for each program. No filter is for
    one thread alone, and programs are built beside a program that may set its own.
    """
    from clfuse.runtime.drivers import opencl as cl

    try:
        program._build(options=options.encode(), devices=[handle])
    except cl.Error as error:
        logs = [f"{log}" for _, log in program._get_build_logs()]
        text = "\n\n".join([str(error), f"Build on {handle}:", *logs])
        record = cl._ErrorRecord(msg=text, code=error.code, routine=error.routine)
        raise cl.RuntimeError(record) from None
    return program


def _binary_path(handle: cl.Device, source: str, options: str) -> Path | None:
    """Return where the binary for this source is or would be kept; None without a cache folder."""
    from clfuse.runtime.drivers import opencl as cl

    folder = subfolder("programs")
    if folder is None:
        return None
    # The instruction set belongs to the key: one home may serve machines whose devices have the
    # same name.
    machine = instruction_set() if handle.type & cl.device_type.CPU else ""
    facts = (
        FORMAT, handle.platform.name, handle.name, handle.version, handle.driver_version, machine,
        options, source,
    )
    return folder / hashlib.sha256("\0".join(facts).encode()).hexdigest()


def _load(
    context: cl.Context, handle: cl.Device, path: Path, options: str
) -> cl._cl._Program | None:
    """Return the program of a stored binary; None where there is none that the driver takes."""
    from clfuse.runtime.drivers import opencl as cl

    binary = read_checked(path, LARGEST_BINARY)
    if binary is None:
        return None
    with suppress(OSError):
        os.utime(path)  # the time of the last use, by which old ones are removed
    with suppress(cl.Error):
        return _built(cl._Program(context, [handle], [binary]), handle, options)
    with suppress(OSError):
        path.unlink()
    return None


_writes = itertools.count()


def _store(path: Path, binary: bytes) -> None:
    """Keep a binary for later runs, which compile again where it cannot be written."""
    if len(binary) > LARGEST_BINARY:
        return
    try:
        write_checked(path, binary)
    except OSError as error:
        warn_once(error)
        return
    if next(_writes) % COUNT_EVERY == 0:
        with suppress(OSError):  # another process does the same
            _remove_oldest(path.parent)


def _remove_oldest(folder: Path) -> None:
    with os.scandir(folder) as entries:
        ages = sorted(
            (entry.stat(follow_symlinks=False).st_mtime, entry.path)
            for entry in entries
            if not entry.is_dir(follow_symlinks=False)
        )
    if len(ages) > BINARIES_LIMIT:
        for _, path in ages[: len(ages) // 2]:
            Path(path).unlink(missing_ok=True)
