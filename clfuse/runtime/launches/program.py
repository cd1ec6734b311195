"""Programs: rendered OpenCL C, built once for each source and device."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clfuse import events
from clfuse.config import settings
from clfuse.counters import counters
from clfuse.errors import AllocationError, KernelBuildError
from clfuse.process import locks
from clfuse.runtime.context import lost
from clfuse.runtime.devices.device import Device
from clfuse.runtime.devices.selection import when_renewed
from clfuse.runtime.drivers.compiler import compile_program
from clfuse.runtime.files.reports import write_report

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["Program", "build"]

#: A NumPy dtype for each scalar argument of a kernel, None for each buffer.
Arguments = tuple["np.dtype[Any] | None", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """One kernel, built and ready to launch.

    device: where it runs.
    name: the kernel's name in the source.
    source: OpenCL C.
    arguments: A NumPy dtype for a scalar argument, None for a buffer.
    kernel: not safe to use by two threads at once: `runtime.launches.launch` holds the device's
        lock.
    inline: whether the calling thread runs it: see `runtime.drivers.inline`.
    compiled: from which `runtime.launches.launch` makes kernel objects that keep their arguments.
    quick: of `runtime.context.waits`.
    brought_in: not empty once the pages of its constants are in memory: from the start on, but
        where the device `loads_pages_late`.
    """

    device: Device
    name: str
    source: str
    arguments: Arguments
    kernel: cl.Kernel
    compiled: cl._cl._Program
    inline: bool = False
    quick: dict[float, int] = field(default_factory=dict)
    brought_in: list[bool] = field(default_factory=list)


#: Programs kept in memory; the least recently asked for goes first. Measured: a program takes
#: 1.5 MB (PoCL 3.1) to 6 MB (Intel 2026.2), and comes back from disk in some milliseconds.
PROGRAMS_LIMIT = 256

LONGEST_NAME: Final = 120
"""Characters of a kernel's name. PoCL calls files and folders by it, and ends the process where a
file system takes no name of that length; few take more than 255."""

_Key = tuple[Device, str, str, str, Arguments, bool]

_programs: dict[_Key, Program] = {}

_turns: Final[dict[_Key, Any]] = {}
"""What is being built -> who builds it has this lock."""

_lock = locks.make()


def _forget(device: Device) -> None:
    """Let go of a lost device's programs."""
    with _lock:
        for key in [key for key in _programs if key[0] is device]:
            del _programs[key]


when_renewed.append(_forget)


def build(
    device: Device,
    source: str,
    name: str,
    arguments: Sequence[np.dtype[Any] | None],
    *,
    relaxed: bool = False,
    inline: bool = False,
) -> Program:
    """Return the kernel `name` of a source, built for a device; the same source is built once.

    Parameters
    ----------
    device : Device
        Where it will run.
    source : str
        OpenCL C.
    name : str
        A kernel in it.
    arguments : sequence of numpy.dtype or None
        The dtype of each scalar argument, None for each buffer.
    relaxed : bool
        Whether the kernel only calculates, so that ``CLFUSE_FP=fast`` may approximate in it.
    inline : bool
        Whether the calling thread runs it, on a device that has `Device.inline`.

    Raises KernelBuildError: the compiler refused; its `path` names a file with source and log.
    """
    if len(name) > LONGEST_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        short = f"{name[: LONGEST_NAME - 17]}_{digest}"
        name, source = short, f"#define {name} {short}\n{source}"
    options = build_options(device, relaxed=relaxed)
    key = (device, source, name, options, tuple(arguments), inline)
    with _lock:
        program = _programs.pop(key, None)
        if program is not None:
            _programs[key] = program
            return program
        turn = _turns.setdefault(key, locks.make())
    with turn:
        try:
            program = _programs.get(key)  # another thread has built it meanwhile
            if program is None:
                start_ns = time.perf_counter_ns()
                program = _build(*key)
                for listener in events.listeners:
                    listener.built(name, start_ns, time.perf_counter_ns())
                with _lock:
                    while len(_programs) >= PROGRAMS_LIMIT:
                        del _programs[next(iter(_programs))]
                    _programs[key] = program
        finally:
            _turns.pop(key, None)
    return program


def build_options(device: Device, *, relaxed: bool) -> str:
    """Return the compiler options that settings and traits ask for, for a kernel that may be
    `relaxed` or not.

    No warnings: generated code compares values with themselves, and PoCL's compiler says so on the
    program's standard error."""
    options = ["-w"]
    if relaxed and settings.fp == "fast":
        options.append("-cl-fast-relaxed-math")
    elif device.traits.correctly_rounded_divide:
        options.append("-cl-fp32-correctly-rounded-divide-sqrt")
    if device.traits.build_options:
        options.append(device.traits.build_options)
    if device.traits.schedule == "gpu" and device.traits.group_options:
        options.append(device.traits.group_options)
    return " ".join(options)


def _build(
    device: Device, source: str, name: str, options: str, arguments: Arguments, inline: bool
) -> Program:
    from clfuse.runtime.drivers import opencl as cl

    handle = device.handle
    if inline:
        assert device.inline is not None
        handle = device.inline.handle
    simulation = device.simulation
    given = source if simulation is None else simulation.source(source)
    try:
        compiled = lost.call_driver(
            device, name, compile_program, device.context, handle, given, options,
            device.traits.builtins_read, device.traits.subgroups_read,
        )  # fmt: skip
        kernel = lost.call_driver(device, name, cl.Kernel, compiled, name)
    except OSError as error:  # the driver's compiler has no room on its disk
        raise KernelBuildError(
            f"{name}: OpenCL C cannot be built on {device.name}: {error.strerror}"
        ) from error
    except (cl.Error, AllocationError) as error:
        raise _refused(device, source, name, options, str(error)) from error
    if simulation is not None:
        problem = simulation.problem_of_build(kernel, source, arguments, device)
        if problem:
            raise _refused(device, source, name, options, problem)
    counters["programs_built"] += 1
    brought_in = [] if device.traits.loads_pages_late else [True]
    return Program(device, name, source, arguments, kernel, compiled, inline, brought_in=brought_in)


def _refused(device: Device, source: str, name: str, options: str, log: str) -> KernelBuildError:
    path = write_report(name, _report(device, source, options, log))
    return KernelBuildError(
        f"{name}: OpenCL C did not build on {device.name} (driver {device.traits.driver}):"
        f" {_first_error(log)}; source and build log are in {path}; CLFUSE_DEVICE selects"
        " another device",
        path,
        log,
    )


def _first_error(log: str) -> str:
    for line in log.splitlines():
        if "error:" in line:
            return line.strip()[:300]
    return " ".join(log.split())[:300]


def _report(device: Device, source: str, options: str, log: str) -> str:
    """Source and log as one text that a compiler still takes."""
    comment = log.replace("*/", "* /")
    header = f"{device!r}, driver {device.traits.driver}, options {options!r}"
    return f"/* {header}\n{comment}\n*/\n{source}"
